"""A panel that has seen edits, undo, selections, renames and other documents shows what a panel shows that is made now."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

pytest.importorskip("PySide6")
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot
from random_steps import play
from shown_state import differences, named, of_tree
from window_kit import settle, shown

from app.ui.design.differences import DifferencesPanel
from app.ui.design.layer_editor import ParametersPanel
from app.ui.design.network_settings import NetworkSettingsPanel
from app.ui.design.type_checking import TypeCheckingPanel
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.widgets.number_field import NumberField
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template_commands import make_template
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui
SIZE = (360, 900)


def varied(features: str) -> Graph:
    """Layers with the same and with other parameters, an unknown type, one without parameters, and faults that edits make."""

    def conv(name: str, source: str, activation: ActivationSpec | None = None, **params: str) -> Layer:
        return Layer(name, "convolution", inputs=(Source(source),), params=params, activation=activation)

    graph = Graph(
        [
            Layer("image", "input", params={"dims": "16x16x3"}),
            conv("first", "image", ActivationSpec("leaky_relu", {"negative_slope": "0.1"}), features=features),
            conv("second", "first", features="4", kernel="3x3"),
            conv("third", "second", ActivationSpec("relu"), features="4"),
            Layer("pool", "max_pooling", inputs=(Source("third"),)),
            Layer("sum", "add", inputs=(Source("second"), Source("third"))),
            Layer("odd", "no_such_type", inputs=(Source("pool"),), params={"b": "x", "a": "1"}),
            Layer("odder", "no_such_type", params={"c": "2"}),
            Layer("result", "output", inputs=(Source("sum"),)),
            conv("apart", "image", features="4"),
        ]
    )
    graph.apply(make_template(graph, ["third"], "part"))
    return graph


class Followed:
    """Panels with two documents; `check` compares each with one that is made now."""

    def __init__(self, qtbot: QtBot, seed: int, *kinds: Callable[[Context], QWidget]) -> None:
        self.qtbot, self.random, self.kinds = qtbot, Random(seed), kinds
        self.context = Context(default_registry())
        self.documents = [Document(varied(n), self.context.registry, parent=self.context) for n in ("8", "6")]
        self.context.set_document(self.documents[0])
        self.panels = [shown(qtbot, kind(self.context), *SIZE) for kind in kinds]
        self.context.setParent(self.panels[0])

    @property
    def names(self) -> list[str]:
        return [layer.name for layer in self.context.document.graph]

    def any(self) -> str:
        return self.random.choice(self.names)

    def check(self) -> None:
        for kind, panel in zip(self.kinds, self.panels, strict=True):
            fresh = kind(self.context)
            fresh.resize(panel.size())
            fresh.show()
            settle(fresh)
            settle(panel)
            found = differences(self.state(fresh), self.state(panel))
            fresh.hide()
            fresh.setParent(panel)  # gone with it
            fresh.deleteLater()
            assert not found, found

    def state(self, panel: QWidget) -> dict[str, Any]:
        facts = named(panel.objectName(), of_tree(panel))
        state = {
            place: text for place, text in facts.items() if " QToolButton " not in place
        }  # Qt fades its buttons out
        nameless = [place for place in state if " QLabel " in place]  # rows that come later are later in the tree
        state["labels"] = sorted(str(state.pop(place)) for place in nameless)
        for field in panel.findChildren(NumberField):
            if field.isVisibleTo(panel):
                state[f"number {field.objectName()}"] = (field.text(), field.lineEdit().placeholderText())
        if isinstance(panel, ParametersPanel) and panel._stack.currentIndex():
            state["facts"] = list(panel._facts.facts().items())
        return state

    # --- steps ---------------------------------------------------------------------------------------------------

    def select(self) -> None:
        graph, count = self.context.document.graph, self.random.choice((0, 1, 1, 2, 3, len(self.names)))
        kind = graph[self.any()].type
        alike = [name for name in self.names if graph[name].type == kind]
        self.context.select(tuple(self.random.sample(self.names, min(count, len(self.names))) if count != 2 else alike))

    def set(self) -> None:
        """Of a selected layer, where there is one."""
        name = self.random.choice([n for n in self.context.selection if n in self.names] or self.names)
        key, text = self.random.choice(
            [("features", "5"), ("features", "4"), ("kernel", "3x3"), ("kernel", "0x1"), ("features", "x"), ("a", "7")]
        )
        self.context.document.do(lambda graph: commands.set_params(graph, {name: {key: text}}))

    def activate(self) -> None:
        spec = self.random.choice([None, ActivationSpec("relu"), ActivationSpec("elu", {"alpha": "0.5"})])
        name = self.any()
        self.context.document.do(lambda graph: commands.set_activation(graph, [name], spec))

    def rename(self) -> None:
        name = self.any()
        self.context.document.do(lambda graph: commands.rename_layer(graph, name, name.rstrip("_") + "_"))

    def remove(self) -> None:
        if len(self.names) > 4:
            name = self.any()
            self.context.document.do(lambda graph: commands.remove_layers(graph, [name]))

    def undo(self) -> None:
        for _ in range(self.random.choice((1, 1, 2, 5))):
            self.context.document.undo()

    def redo(self) -> None:
        self.context.document.redo()

    def make_template(self) -> None:
        if not self.context.scope:
            names, title = [self.any()], f"part{len(self.context.root.graph.templates)}"
            self.context.document.do(lambda graph: make_template(graph, names, title))

    def enter(self) -> None:
        names = sorted(self.context.root.graph.templates)
        self.context.set_scope(() if self.context.scope or not names else self.context.way_to(names[0]))

    def switch(self) -> None:
        self.documents.reverse()
        self.context.set_document(self.documents[0])

    def set_up(self) -> None:
        """Settings of the network."""
        changes = self.random.choice(
            [
                {"threads": 3},
                {"precision": "fp16"},
                {"device": "cuda:0"},
                {"engine": "nobody"},
                {"random_seed": 7},
                {"random_seed": None},
                {"weights": ""},
                {"weights": "missing.onnx"},
                {"tile": 300},
                {"layout": "nhwc"},
                {"iterations": 4},
            ]
        )
        self.context.root.change_settings(**changes)

    def compare(self) -> None:
        if self.context.comparison.other is None:
            self.context.comparison.with_document(self.documents[1])
        else:
            self.context.comparison.stop()

    EDITS = (
        "select",
        "set",
        "activate",
        "rename",
        "remove",
        "undo",
        "undo",
        "redo",
        "make_template",
        "enter",
        "switch",
    )

    def steps(self, *names: str) -> list[Callable[[], None]]:
        return [getattr(self, name) for name in names]


def test_the_layer_editor(qtbot: QtBot) -> None:
    made = Followed(qtbot, 1, ParametersPanel)
    play(made, made.steps(*made.EDITS, "select", "select", "set", "set"), 12)


@pytest.mark.parametrize("names", [("first", "second"), ("apart", "odd")])
def test_each_edit_of_one_of_the_selected_layers(qtbot: QtBot, names: tuple[str, ...]) -> None:
    """Also where others of them are left as they are: their values, and those that come after them."""
    made = Followed(qtbot, 0, ParametersPanel)
    document, context = made.documents[0], made.context
    context.select(names)
    edits: list[Callable[[Graph], Any]] = [
        lambda graph: commands.set_params(graph, {names[-1]: {"features": "5", "a": "9"}}),
        lambda graph: commands.set_params(graph, {names[0]: {"kernel": "1x1"}}),
        lambda graph: commands.set_activation(graph, [names[-1]], ActivationSpec("relu")),
        lambda graph: commands.set_activation(graph, [names[0]], ActivationSpec("elu", {"alpha": "0.5"})),
        lambda graph: commands.rename_layer(graph, names[-1], "renamed"),
        lambda graph: commands.remove_layers(graph, [names[-1]]),
        lambda graph: commands.remove_layers(graph, [names[0]]),
        lambda graph: commands.connect(graph, Source("image"), names[0], 0),
    ]
    for edit in edits:
        assert document.do(edit)
        made.check()
        document.undo()
        made.check()
        context.select(names)


def test_problems_and_differences(qtbot: QtBot) -> None:
    made = Followed(qtbot, 1, TypeCheckingPanel, DifferencesPanel)
    play(made, made.steps(*made.EDITS, "compare", "compare"), 9)


def test_the_network_settings(qtbot: QtBot) -> None:
    made = Followed(qtbot, 3, NetworkSettingsPanel)
    play(made, made.steps("set_up", "set_up", "set_up", "undo", "redo", "switch", "enter", "set"), 12)
