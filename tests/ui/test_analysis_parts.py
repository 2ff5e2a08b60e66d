"""Parts of the Analysis panel without an engine."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("PySide6")
from pytestqt.qtbot import QtBot

from app.engine.protocol import SetInputReply
from app.ui.analysis.input_row import InputRow
from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.inputs import photographs
from app.ui.engine.network_inputs import NetworkInputs
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui


def test_every_file_beyond_0_to_1_says_its_range(qtbot: QtBot) -> None:
    playback = analysis_of(Context(default_registry())).playback
    row = InputRow("input_0", playback)
    qtbot.addWidget(row)
    for name, values, text in (
        ("a.npy", (-1.0, 1.0), "tensor · values -1 … 1, drawn within 0 … 1"),
        ("b.npy", (-1.0, 1.0), "tensor · values -1 … 1, drawn within 0 … 1"),
        ("c.npy", None, "tensor"),
        ("d.npy", (0.0, 2.5), "tensor · values 0 … 2.5, drawn within 0 … 1"),
    ):
        row.show_file(Path(name), "")
        assert row._size.text() == "tensor"
        playback.fed("input_0", SetInputReply((1, 3, 8, 8), range=values))
        assert row._size.text() == text


def test_the_error_of_an_input_ends_with_its_layer(qtbot: QtBot) -> None:
    document = Document(Graph([Layer("a", "input"), Layer("b", "input")]), default_registry())
    inputs = NetworkInputs(document)
    inputs.set_document(document)
    document.changed.connect(inputs.follow)
    inputs.was_refused("a", (Diagnostic("bad-image", "it is not an image"),))
    assert set(inputs.errors) == {"a"}
    document.do(lambda graph: commands.remove_layers(graph, ["a"]))
    assert not inputs.errors


@pytest.mark.parametrize(("params", "fed"), [({}, True), ({"dims": "64x64x1"}, True), ({"dims": "64x64x8"}, False)])
def test_an_input_of_one_or_three_channels_is_fed_with_a_photograph(params: dict[str, str], fed: bool) -> None:
    document = Document(Graph([Layer("a", "input", params=params)]), default_registry())
    inputs = NetworkInputs(document)
    inputs.set_document(document)
    assert inputs.path("a") == (photographs()[0] if fed else None)
