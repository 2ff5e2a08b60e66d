"""A small network with its pictures, for the tests of the analysis panels."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import shiboken6
from pytestqt.qtbot import QtBot

from app.ui.document.document import Document
from app.ui.engine.analysis import AnalysisController, analysis_of
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.result import Phase
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry

WAIT = 60000


def small_network(hidden: int = 0) -> Graph:
    """input -> noise -> (a hidden convolution) -> convolution -> mix with the noisy picture -> output."""
    registry = default_registry()

    def layer(name: str, kind: str, *inputs: str, **params: str) -> Layer:
        cls = registry.get(kind)
        assert cls is not None
        sources = tuple(Source(i) for i in inputs)
        return Layer(name, kind, inputs=sources, params={**cls().texts(all=False), **params})

    return Graph(
        [
            layer("input_0", "input", dims="24x16x3", tiling="0"),
            layer("noise_0", "noise", "input_0", scale="0.1"),
            *([layer("conv_h", "convolution", "noise_0", features=str(hidden), kernel="5x5")] if hidden else []),
            layer("conv_0", "convolution", "conv_h" if hidden else "noise_0", features="3", kernel="3x3"),
            layer("mix_0", "mix", "conv_0", "noise_0"),
            layer("output_0", "output", "mix_0"),
        ]
    )


def picture(folder: Path, name: str = "picture.png", size: tuple[int, int] = (24, 16)) -> Path:
    """A file of random pixels, width x height."""
    from designer.runtime.images import write_image

    rng = np.random.default_rng(1)
    path = folder / name
    write_image(path, rng.random((1, 3, size[1], size[0]), np.float32))
    return path


_launched: list[Launched] = []


@pytest.fixture(autouse=True)
def engine_is_let_go() -> Iterator[None]:
    """Nobody goes on asking the engine that the next test gets: two who follow their networks would open them in turns."""
    yield
    while _launched:
        done = _launched.pop()
        if shiboken6.isValid(done.analysis):  # not so of a test of a module without this fixture
            done.analysis.blockSignals(True)  # what a test connected must not hear of it
            done.open(Graph())


SILENT = (
    sys.executable,
    "-c",
    "import time; time.sleep(60)",
)  # a command for a panel that needs no answer of its engine


@pytest.fixture
def silent_engine(context: Context) -> Iterator[EngineClient]:
    """An engine that never answers."""
    context.engine = EngineClient(context, command=SILENT)
    yield context.engine
    context.engine.close(kill=True)


class Launched:
    """A context whose analysis can be run."""

    def __init__(self, qtbot: QtBot, engine: EngineClient) -> None:
        _launched.append(self)
        self.qtbot = qtbot
        self.context = Context(default_registry())
        self.context.engine = engine
        self.analysis: AnalysisController = analysis_of(self.context)

    def open(self, graph: Graph) -> Document:
        document = Document(graph, self.context.registry)
        self.context.set_document(document)
        return document

    def launch_random(self) -> None:
        self.analysis.launch_random()
        self.wait(Phase.READY)

    def wait(self, phase: Phase) -> None:
        self.qtbot.waitUntil(lambda: self.analysis.phase is phase, timeout=WAIT)
