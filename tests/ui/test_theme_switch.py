"""A switch of the theme leaves nothing behind: everything is painted as in a window that was opened in that theme."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QLineEdit, QToolBar, QWidget
from pytestqt.qtbot import QtBot
from shown_state import at_rest
from window_kit import network, open_window

from app.ui.canvas import link_paths, node_metrics
from app.ui.engine.profiling import profiling_of
from app.ui.shell.panels import PANELS
from app.ui.shell.window import MainWindow
from app.ui.widgets import theme
from designer.files.document import save_document
from designer.graph import commands
from designer.graph.model import Layer, Source
from designer.graph.template_commands import make_template
from designer.profiling.machine import Machine
from designer.profiling.quantities import ValueSource
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun

EDGE = 24  # levels by which the pixels of a line may differ
Looks = dict[str, np.ndarray]


@pytest.fixture
def opened(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> Iterator[Callable[[theme.Mode], MainWindow]]:
    """Opens windows of the same document, each with its own settings."""
    path = tmp_path / "named.xml"
    graph = network()
    graph.apply(commands.add_layer(graph, Layer("aside", "identity", (480, 160), (Source("conv"),))))
    graph.apply(make_template(graph, ["aside"], "part"))
    save_document(graph, path)

    def window(mode: theme.Mode) -> MainWindow:
        theme.apply(qapp, mode)
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        made = open_window(qtbot, folder)
        assert made.files.open(path)
        return made

    yield window
    theme.apply(qapp, "system")


def run() -> Profile:
    rows = tuple(
        OperatorProfile((name,), kind, time_ms=time, spread_ms=0.01, flops=1000, bytes=100, bound=bound)
        for name, kind, time, bound in (("conv", "convolution", 3.0, "compute"), ("mix", "mix", 1.0, "memory"))
    )
    run = ProfileRun("onnxruntime", "fp32", "nchw", "cpu", 1, "16x16", 5.0, 0.1, rows, source=ValueSource.MEASURED)
    return Profile(Machine("Test CPU", 2), "named", (run, run))


def fill(qtbot: QtBot, window: MainWindow) -> None:
    """Put something with a color into the panels."""
    root = window.context.root
    window.docks.show("differences")
    window.context.comparison.with_saved()
    root.do(lambda g: commands.set_params(g, {"conv": {"features": "-1"}}))
    root.do(lambda g: commands.remove_layers(g, ["strange"]))
    profiling = profiling_of(window.context)
    profiling.add(run())
    profiling.compare(tuple(profiling.entries))
    window.context.select(("conv", "mix"))
    at_rest(qtbot, window)


def looks(qtbot: QtBot, window: MainWindow) -> Looks:
    """The pixels of every panel, of the bars and of the canvas."""
    found: Looks = {}
    for spec in PANELS:
        window.docks.show(spec.id)
        at_rest(qtbot, window)
        found[spec.id] = pixels(window.docks.panel(spec.id))
    window.docks.set_workspace("Design")
    window.canvas.viewer.setFocus()
    window.canvas.frame_all()
    at_rest(qtbot, window)
    found["canvas"] = pixels(window.canvas)
    found["tabs"] = pixels(window.tabs.bar)
    window.status.clearMessage()  # it goes by itself after some time
    found["status"] = pixels(window.status)
    found["menu bar"] = pixels(window.menuBar())
    found["tool bar"] = pixels(window.findChild(QToolBar, "toolbar"))
    window.files.new()
    at_rest(qtbot, window)
    found["welcome"] = pixels(window.canvas)
    return found


def pixels(widget: QWidget) -> np.ndarray:
    for line in widget.findChildren(QLineEdit):
        line.home(False)  # how far a long text is scrolled depends on the widths it was painted with before
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    return np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.width(), 4)[:, :, :3].astype(int)


def test_after_a_switch_everything_is_painted_as_in_a_window_of_that_theme(qtbot, qapp, opened):
    def after_a_switch(before: theme.Mode) -> Looks:
        window = opened(before)
        fill(qtbot, window)
        looks(qtbot, window)  # makes all panels
        window.status.say("error", "it failed")
        theme.apply(qapp, "light")
        found = {"message": pixels(window.status)}
        at_rest(qtbot, window)
        found["welcome at once"] = pixels(window.canvas)
        window.tabs.step(1)
        found |= looks(qtbot, window)
        window.close_now()
        return found

    expected, shown = after_a_switch("light"), after_a_switch("dark")
    assert {name: image.shape for name, image in expected.items()} == {name: i.shape for name, i in shown.items()}
    different = {name: np.argwhere((np.abs(image - shown[name]) > EDGE).any(2)) for name, image in expected.items()}
    areas = {name: [*at.min(0).tolist(), *at.max(0).tolist()] for name, at in different.items() if len(at)}
    assert not areas  # top, left, bottom and right


def test_every_window_marks_the_theme_the_links_and_the_values_that_are_chosen_in_one_of_them(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path
) -> None:
    """They are shared by all windows; only the minimap is each window's own until the next start."""
    windows = [open_window(qtbot, tmp_path) for _ in range(2)]
    for window in windows:
        window.files.new()

    def marked(window: MainWindow) -> set[str]:
        names = [
            name for name in window.actions_.declared if name.startswith(("view.theme", "view.links", "view.figure"))
        ]
        assert len(names) > 6
        return {name for name in names if window.actions_[name].isChecked()}

    wanted = marked(windows[0])
    assert len(wanted) == 3
    try:
        for number, name in enumerate(
            ("view.theme_light", "view.links_angled", "view.figure_flops", "view.theme_dark", "view.links_curved",
             "view.figure_memory", "view.theme_system", "view.figure_shapes")
        ):  # fmt: skip
            windows[number % 2].actions_[name].trigger()
            kind = name.partition("_")[0]
            wanted = {each for each in wanted if not each.startswith(kind)} | {name}
            assert [marked(window) for window in windows] == [wanted, wanted]
            windows[number % 2].actions_[name].trigger()  # what is chosen already
            assert [marked(window) for window in windows] == [wanted, wanted]
    finally:
        theme.apply(qapp, "dark")
        link_paths.set_style(link_paths.CURVED)
        node_metrics.show(node_metrics.SHAPES)
