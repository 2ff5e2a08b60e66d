"""What happens in a session, in every order of two: what each panel shows of each event is recorded."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("PySide6")
pytest.importorskip("pyqtgraph")
pytestmark = pytest.mark.gui

from control_walk import ControlWalk
from profile_kit import RUN, profile_of
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot
from recorded_state import compare
from test_recorded_design import workshop
from window_kit import shown

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import profiling_of
from app.ui.shell.panels import PANELS, PanelSpec
from designer.files.variants import Variant
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry
from designer.profiling.schema import OperatorProfile

UNREAD = (  # engines of this machine, what comes from a process or is decoded, and the operators of the palette
    *("network_settings.engine", "network_settings.device", "network_settings.precision", "network_settings.layout"),
    *("network_settings.sizes", "palette.operators", "analysis.input"),
)


def other_network() -> Graph:
    return Graph(
        [
            Layer("image", "input", params={"dims": "16x8x3"}),
            Layer("first", "gaussian_blur", (200, 0), (Source("image"),)),
            Layer("result", "output", (400, 0), (Source("first"),)),
        ],
        name="other",
    )


class Happening:
    """A session with two documents, and what can happen in it."""

    def __init__(self, folder: Path) -> None:
        self.context = Context(default_registry())
        registry = self.context.registry
        self.documents = [
            Document(graph, registry, folder / f"{graph.name}.xml", parent=self.context)
            for graph in (workshop(), other_network())
        ]
        self.documents[0].restore_settings(variants=(Variant("half", "fp16"), Variant("plain")), variant="half")
        self.context.set_document(self.documents[0])
        self.profiling = profiling_of(self.context)
        self.count = 0

    def acts(self) -> dict[str, Callable[[], object]]:
        context = self.context
        return {
            "select one": lambda: self.select("first"),
            "select two": lambda: self.select("second", "first"),
            "change": self.change,
            "rename": self.rename,
            "remove": lambda: self.edit(lambda graph: commands.remove_layers(graph, ["norm"]), "norm"),
            "undo": context.undo,
            "enter": lambda: context.enter("block") if "block" in context.document.graph else None,
            "leave": context.leave,
            "run": self.run,
            "swap": self.swap,
        }

    def select(self, *names: str) -> None:
        self.context.select(tuple(name for name in names if name in self.context.document.graph))

    def edit(self, request: Callable[[Graph], object], *names: str) -> str | None:
        if not all(name in self.context.document.graph for name in names):
            return "cannot be done"
        self.context.document.do(request)
        return None

    def change(self) -> str | None:
        self.count += 1
        text = ("8", "0", "12")[self.count % 3]
        name = next((name for name in ("first", "inner") if name in self.context.document.graph), "")
        return self.edit(lambda graph: commands.set_params(graph, {name: {"features": text}}), name)

    def rename(self) -> str | None:
        graph = self.context.document.graph
        old, new = next(
            (pair for pair in (("second", "third"), ("third", "second")) if pair[0] in graph), ("first", "one")
        )
        return self.edit(lambda graph: commands.rename_layer(graph, old, new), old)

    def run(self) -> None:
        self.count += 1
        name = next(iter(self.context.root.graph.layers))
        rows = (
            OperatorProfile(("first",), "convolution", 4.0 + self.count % 3, 0.1, flops=10**9, bytes=1000),
            OperatorProfile((name,), "input", 1.0, 0.1),
        )
        made = replace(RUN, operators=rows, time_ms=5.0 + self.count % 3, precision=("fp32", "fp16")[self.count % 2])
        self.profiling.add(profile_of(made, network=self.context.root.graph.name))

    def swap(self) -> None:
        first, second = self.documents
        self.context.set_document(second if self.context.root is first else first)


@pytest.mark.parametrize("spec", PANELS, ids=lambda spec: spec.id)
def test_every_panel_follows(qtbot: QtBot, tmp_path: Path, spec: PanelSpec) -> None:
    kind = getattr(importlib.import_module(f"app.ui.{spec.module}"), spec.class_name)
    happening = Happening(tmp_path)
    panel = shown(qtbot, kind(happening.context), 500, 700)
    happening.context.setParent(panel)
    walk = ControlWalk(qtbot, panel, (happening.context,), acts=happening.acts(), of=(QWidget(panel),), unread=UNREAD)
    walk.contexts = []  # which is the same for all panels
    compare(f"events_{spec.id}", walk.walk())
