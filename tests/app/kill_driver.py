"""Edits and saves a given number of times, then waits to be killed: what `test_kill.py` starts. Every gesture follows from the seed.

After each finished gesture its number goes to the standard output. `gestures` replays the same work in the test's process.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from designer.files import journal as journal_module
from designer.files.disk_watch import digest_of
from designer.files.document import write_document
from designer.files.safekeeping import Safekeeping
from designer.graph import commands, frames
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.model import ActivationSpec, Frame, Layer, Source

LAYERS = 30
SAVE_EVERY = 9  # in the mean


def network() -> Graph:
    params = {"features": "8", "kernel": "3x3", "padding": "same"}
    layers = [Layer("in", "input", params={"dims": "64x64x3"})]
    for number in range(1, LAYERS):
        layers.append(
            Layer(
                f"n{number}",
                "convolution",
                (320 * number, 0),
                (Source(layers[-1].name),),
                params,
                ActivationSpec("relu"),
            )
        )
    return Graph(layers)


def gestures(history: History, seed: int) -> Iterator[bool]:
    """Do one gesture after the other; True where the document is to be saved instead."""
    chance = random.Random(seed)
    graph = history.graph
    for number in range(1_000_000):
        if chance.randrange(SAVE_EVERY) == 0:
            yield True
            continue
        names = sorted(n for n in graph.layers if n != "in")
        name = chance.choice(names)
        match chance.randrange(8):
            case 0:
                history.commit(commands.rename_layer(graph, name, f"r{number}"))
            case 1:
                history.commit(commands.set_params(graph, {name: {"features": str(number + 1)}}))
            case 2:
                history.commit(commands.move_layers(graph, dict.fromkeys(names[:10], (16 * number, 16))))
            case 3:
                layer = Layer(f"a{number}", "identity", (number, 0), (Source("in"),))
                history.commit(commands.add_layer(graph, layer))
            case 4 if len(names) > LAYERS // 2:
                history.commit(commands.remove_layers(graph, [name], heal=True))
            case 5:
                history.commit(frames.set_frame(graph, "f", Frame("f", f"title {number}")))
            case 6:
                history.redo()
            case _:
                history.undo()
        yield False


def work(seed: int, count: int, document: Path, journal: Path, descriptor: int) -> None:
    """Open the document, do `count` gestures, and wait for the end of the process."""
    from designer.files.document import parse_document

    data = document.read_bytes()
    graph = parse_document(data, validate=False).graph
    assert graph is not None
    history = History(graph)
    journal_module.COMPACT_BYTES = 3000 + seed % 3 * 4000  # so that it is written anew now and then
    keeping = Safekeeping(history, document, digest_of(data), folder=journal)
    for number, saves in enumerate(islice(gestures(history, seed), count), 1):
        if saves:
            keeping.save(document)
        os.write(descriptor, b"%d\n" % number)
    signal.pause()


def work_in_a_window(seed: int, count: int, document: Path, journal: Path, descriptor: int) -> None:
    """The same gestures on the document of the real window, which is shown on no screen."""
    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QApplication

    from app.ui.shell.window import MainWindow
    from designer.operators.registry import default_registry

    os.environ["LAYERWRIGHT_JOURNAL"] = str(journal)
    app = QApplication([])
    settings = QSettings(str(document.parent / "window.ini"), QSettings.Format.IniFormat)
    window = MainWindow(default_registry(), settings)
    window.show()
    assert window.files.open(document)
    app.processEvents()
    root = window.context.root
    for number, saves in enumerate(islice(gestures(root.history, seed), count), 1):
        if saves:
            assert window.files.save()
        if number % 5 == 0:
            app.processEvents()
        os.write(descriptor, b"%d\n" % number)
    signal.pause()


def serve(worker: Callable[[int, int, Path, Path, int], None]) -> None:
    """Start a worker for each line `seed count document journal`, as a copy of this process: that takes no time."""
    for text in sys.stdin:
        seed, count, document, journal = text.rstrip("\n").split("\t")
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            worker(int(seed), int(count), Path(document), Path(journal), 1)
        os.write(1, b"pid %d\n" % child)
        os.waitpid(child, 0)
        os.write(1, b"gone\n")


if __name__ == "__main__":
    (Path(sys.argv[1]) / "start.xml").write_bytes(write_document(network()))
    if sys.argv[2:] == ["window"]:
        import app.ui.shell.window

        assert app.ui.shell.window
    os.write(1, b"ready\n")
    serve(work_in_a_window if sys.argv[2:] == ["window"] else work)
