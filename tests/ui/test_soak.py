"""Random gestures on the real window, with a check of graph, canvas, file and undo as they go.

`LAYERWRIGHT_SOAK=10000` plays more of them. A failure names the seed and lists what was done.
"""

from __future__ import annotations

import gc
import os
import random
import threading
from collections import Counter

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import soak_kit
from PySide6.QtCore import QCoreApplication, QEvent, QObject
from PySide6.QtWidgets import QDockWidget, QGraphicsItem
from shiboken6 import isValid
from window_kit import open_window

from designer.graph.graph import Graph

GESTURES = int(os.environ.get("LAYERWRIGHT_SOAK", "400"))
SEEDS = 3
ROUND = 134  # gestures on one network
FULL = 2  # runs with all windows of the workspace; the others have the canvas and the Layer Editor, which is faster
DEEP = 25  # gestures between checks of inference and file


def without_views(graph: Graph) -> Graph:
    """A copy without the stored views, which undo passes by."""
    copy = graph.copy()
    copy.properties = {k: v for k, v in graph.properties.items() if not k.startswith("view")}
    return copy


@pytest.mark.parametrize("seed", range(SEEDS))
def test_anything_at_random(qtbot, tmp_path, monkeypatch, seed):
    """Every second run has items only for what is near the view, which otherwise only large networks have."""
    if seed % 2:
        monkeypatch.setattr("app.ui.canvas.projection.EAGER", 0)
        monkeypatch.setattr("app.ui.canvas.projection.BUDGET", 8)
        monkeypatch.setattr("app.ui.canvas.projection.FEW", 2)
    window = open_window(qtbot, tmp_path)
    if seed >= FULL:
        for dock in window.findChildren(QDockWidget):
            dock.setVisible(dock.objectName() == "dock.parameters")
        window.resize(800, 560)
    player = soak_kit.Player(window, random.Random(seed))
    for number in range(-(-GESTURES // (SEEDS * ROUND))):
        document = player.show(soak_kit.network(random.Random(f"{seed} {number}")))
        start = without_views(document.graph)
        player.log.clear()
        try:
            player.check()
            for step in range(ROUND):
                player.play()
                player.check()
                if step % DEEP == 0:
                    player.check_deeply()
            player.context.set_scope(())
            while document.redo() is not None:
                pass
            end = without_views(document.graph)
            while document.undo() is not None:
                pass
            assert without_views(document.graph) == start
            player.check()
            while document.redo() is not None:
                pass
            assert without_views(document.graph) == end
            player.check()
            player.check_deeply()
        except BaseException:
            print(f"seed {seed}, network {number}, after {len(player.log)} gestures:")
            print("\n".join(player.log))
            raise
        finally:
            document.history.mark_clean()  # closing asks for what is not saved


def alive() -> Counter[str]:
    """What is there of Qt, by class."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()
    # By type: `isinstance` would ask every object for its class, and torch has one that warns when asked.
    kept = [o for o in gc.get_objects() if issubclass(type(o), QObject | QGraphicsItem) and isValid(o)]
    return Counter(type(o).__qualname__ for o in kept) + Counter(thread=threading.active_count())


def test_a_closed_window_leaves_nothing(qtbot, tmp_path):
    """No widget, item, timer or thread is left of a window in which much was done."""
    found = []
    for number in range(3):  # the first one fills what is kept for good: fonts, icons, the registry
        window = open_window(qtbot, tmp_path)
        player = soak_kit.Player(window, random.Random(number))
        document = player.show(soak_kit.network(random.Random(number)))
        for _ in range(60):
            player.play()
        document.history.mark_clean()
        window.close()
        window.deleteLater()
        del window, player, document
        found.append(alive())
    assert found[2] - found[1] == Counter()
