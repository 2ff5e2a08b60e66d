"""What can go wrong with the engine: real processes, really killed in every state, out of memory, and networks that cannot run.

Always the same: the window says what happened and why, offers to restart, and the document is whole.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("PySide6")
import analysis_kit as kit
import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.engine.protocol import PingRequest, TraceNonfiniteRequest, TraceReply
from app.process import module_command
from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.engine.client import EngineClient
from app.ui.engine.result import Phase
from designer.files.document import write_document
from designer.graph.commands import remove_layers, set_params
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry

pytestmark = [pytest.mark.gui, pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")]
WAIT = kit.WAIT


class Bench(kit.Launched):
    """An analysis panel on a small network, its engine, and what a user sees of them."""

    def __init__(self, qtbot: QtBot, engine: EngineClient, graph: Graph | None = None) -> None:
        super().__init__(qtbot, engine)
        self.engine = engine
        self.panel = AnalysisPanel(self.context)
        qtbot.addWidget(self.panel)
        self.panel.resize(900, 600)
        self.panel.show()
        self.document = self.open(graph or kit.small_network(8))
        self.frozen: list[int] = []

    def freeze(self) -> None:
        """The process is stopped, so that it stays in the state that the next request brings it to."""
        os.kill(self.engine.pid, signal.SIGSTOP)
        self.frozen.append(self.engine.pid)

    def kill(self) -> None:
        os.kill(self.engine.pid, signal.SIGKILL)

    @property
    def notice(self) -> str:
        label = self.panel.findChild(QLabel, "analysis.notice.text")
        assert isinstance(label, QLabel)
        return label.text() if label.isVisible() else ""

    def waits_for(self) -> list[str]:
        return list(self.engine.waits_for)

    def restart(self) -> None:
        button = self.panel.findChild(QPushButton, "analysis.notice.restart")
        assert isinstance(button, QPushButton)
        assert button.isVisible()
        self.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


@pytest.fixture
def engine(qapp: QApplication) -> Iterator[EngineClient]:
    client = EngineClient()
    yield client
    client.close()


@pytest.fixture
def bench(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(qtbot, engine)
    made.analysis.inputs.set_file("input_0", kit.picture(tmp_path))
    yield made
    for pid in made.frozen:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def ready(bench: Bench) -> None:
    bench.launch_random()


def starting(bench: Bench, folder: Path) -> str:
    bench.analysis.launch_random()
    return "open"  # the process has not said that it is there


def opening(bench: Bench, folder: Path) -> str:
    with bench.qtbot.waitSignal(bench.engine.started, timeout=WAIT):
        bench.engine.ask(PingRequest(), bench.analysis)
    bench.qtbot.waitUntil(lambda: not bench.engine.busy, timeout=WAIT)
    bench.freeze()
    bench.analysis.launch_random()
    return "open"


def feeding(bench: Bench, folder: Path) -> str:
    ready(bench)
    bench.freeze()
    bench.analysis.inputs.set_file("input_0", kit.picture(folder, "other.png", (200, 120)))
    return "set_input"


def running(bench: Bench, folder: Path) -> str:
    ready(bench)
    bench.freeze()
    bench.document.do(lambda g: set_params(g, {"noise_0": {"seed": "5"}}))
    bench.document.do(lambda g: set_params(g, {"noise_0": {"seed": "6"}}))
    return "run"


def editing(bench: Bench, folder: Path) -> str:
    ready(bench)
    bench.freeze()
    bench.document.do(lambda g: set_params(g, {"conv_0": {"kernel": "5x5"}}))
    bench.qtbot.waitUntil(lambda: "update" in bench.waits_for(), timeout=WAIT)
    return "update"


def capturing(bench: Bench, folder: Path) -> str:
    ready(bench)
    bench.freeze()
    bench.analysis.set_capture("conv_h")
    return "run"


def idle(bench: Bench, folder: Path) -> str:
    ready(bench)
    return ""


STATES: tuple[Callable[[Bench, Path], str], ...] = (
    starting, opening, feeding, running, editing, capturing, idle,
)  # fmt: skip


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_killed_in_every_state(bench: Bench, tmp_path: Path, state: Callable[[Bench, Path], str]) -> None:
    doing = state(bench, tmp_path)
    assert (doing in bench.waits_for()) if doing else not bench.engine.busy
    text, folder, pid = write_document(bench.document.graph), bench.engine.folder, bench.engine.pid
    assert folder is not None
    bench.kill()
    bench.wait(Phase.FAILED)
    assert "killed" in bench.notice
    assert "memory ran out" in bench.notice
    assert "Your document is unchanged" in bench.notice
    assert "Launch again" in bench.notice
    assert (" while it " in bench.notice) == bool(doing)
    assert write_document(bench.document.graph) == text
    assert not folder.exists()  # the tensors of a dead process take no memory
    assert not bench.engine.running
    bench.document.do(lambda g: set_params(g, {"mix_0": {"amount": "0.25"}}))  # one can go on working
    bench.restart()
    bench.wait(Phase.READY)
    assert bench.engine.pid != pid
    assert bench.notice == ""
    bench.document.undo()
    assert write_document(bench.document.graph) == text


def test_killed_again_and_again(bench: Bench) -> None:
    ready(bench)
    text = write_document(bench.document.graph)
    for _ in range(3):
        bench.kill()
        bench.wait(Phase.FAILED)
        bench.restart()
        bench.wait(Phase.READY)
    assert write_document(bench.document.graph) == text


def layer(name: str, kind: str, *inputs: str, **params: str) -> Layer:
    cls = default_registry().get(kind)
    assert cls is not None
    sources = tuple(Source(i) for i in inputs)
    return Layer(name, kind, inputs=sources, params={**cls().texts(all=False), **params})


@pytest.fixture
def narrow(qapp: QApplication) -> Iterator[EngineClient]:
    """An engine that may take little memory."""
    client = EngineClient(command=module_command("app.engine.worker", "--memory", "1200"))
    yield client
    client.close()


def test_memory_that_runs_out_is_told_and_a_smaller_picture_goes_on(
    qtbot: QtBot, narrow: EngineClient, tmp_path: Path
) -> None:
    graph = Graph(
        [
            layer("input_0", "input", dims="24x16x3", tiling="0"),
            layer("conv_0", "convolution", "input_0", features="48", kernel="3x3"),
            layer("norm_0", "instance_normalization", "conv_0"),
            layer("conv_1", "convolution", "norm_0", features="3", kernel="3x3"),
            layer("output_0", "output", "conv_1"),
        ]
    )
    bench = Bench(qtbot, narrow, graph)
    np.save(tmp_path / "large.npy", np.zeros((1, 3, 2600, 2600), np.float32))
    bench.analysis.inputs.set_file("input_0", tmp_path / "large.npy")
    bench.analysis.launch_random()
    bench.wait(Phase.FAILED)
    assert "memory" in bench.notice
    assert "smaller image" in bench.notice
    assert "norm_0" in bench.notice
    assert bench.engine.running  # it refused, it did not die
    text = write_document(bench.document.graph)
    bench.analysis.inputs.set_file("input_0", kit.picture(tmp_path))
    bench.wait(Phase.READY)
    assert bench.notice == ""
    assert write_document(bench.document.graph) == text


def test_a_network_without_such_layers_is_run_in_tiles_where_memory_is_short(
    qtbot: QtBot, narrow: EngineClient, tmp_path: Path
) -> None:
    bench = Bench(qtbot, narrow, kit.small_network(32))
    np.save(tmp_path / "large.npy", np.zeros((1, 3, 1600, 1600), np.float32))
    bench.analysis.inputs.set_file("input_0", tmp_path / "large.npy")
    bench.launch_random()
    assert bench.analysis.result is not None
    assert "tiles" in bench.analysis.result.note
    assert bench.analysis.result.outputs["output_0"].shape == (1, 3, 1600, 1600)


def test_a_layer_that_makes_no_numbers_is_seen(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> None:
    graph = Graph(
        [
            layer("input_0", "input", dims="24x16x3", tiling="0"),
            layer("lower_0", "scale_shift", "input_0", scale="1.0", shift="-0.5"),
            layer("log_0", "unary", "lower_0", function="log"),
            layer("output_0", "output", "log_0"),
        ]
    )
    bench = Bench(qtbot, engine, graph)
    bench.analysis.inputs.set_file("input_0", kit.picture(tmp_path))
    bench.launch_random()
    assert bench.analysis.result is not None
    assert 0.2 < bench.analysis.result.nonfinite["output_0"] < 0.8
    found: list[TraceReply] = []
    engine.ask(TraceNonfiniteRequest(), bench.analysis, found.append)
    qtbot.waitUntil(lambda: bool(found), timeout=WAIT)
    assert (found[0].layer, found[0].kind) == ("log_0", "nan")
    bench.document.do(lambda g: set_params(g, {"lower_0": {"shift": "0.5"}}))
    qtbot.waitUntil(lambda: bench.analysis.result is not None and not bench.analysis.result.nonfinite, timeout=WAIT)


def test_networks_that_cannot_run_say_why_and_go_on_when_mended(bench: Bench) -> None:
    ready(bench)
    bench.document.do(lambda g: remove_layers(g, ["conv_0"]))
    bench.wait(Phase.BLOCKED)
    assert "connect" in bench.notice.lower()
    bench.document.undo()
    bench.wait(Phase.READY)
    bench.document.do(lambda g: remove_layers(g, ["output_0"]))
    bench.wait(Phase.BLOCKED)
    assert "no output layer" in bench.notice
    bench.document.undo()
    bench.wait(Phase.READY)
    assert bench.notice == ""


def test_missing_weights_say_which_and_offer_what_can_be_done(bench: Bench, tmp_path: Path) -> None:
    bench.analysis.launch()
    bench.wait(Phase.WEIGHTS)
    assert "conv_" in bench.notice
    for name in ("weights", "random"):
        button = bench.panel.findChild(QPushButton, f"analysis.notice.{name}")
        assert isinstance(button, QPushButton)
        assert button.isVisible()
    empty = tmp_path / "empty"
    empty.mkdir()
    bench.analysis.choose_weights(empty)
    bench.wait(Phase.WEIGHTS)
    text = write_document(bench.document.graph)
    bench.launch_random()
    assert write_document(bench.document.graph) == text
