"""After which edits and settings measured values of a document no longer hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from runtime_networks import chain

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.document_watch import DocumentWatch
from designer.files.settings import Settings
from designer.files.variants import Variant
from designer.graph import commands
from designer.graph.bypass import bypass
from designer.graph.model import Layer, Source
from designer.graph.template_commands import make_template
from designer.operators.registry import default_registry


class Watched:
    def __init__(self) -> None:
        self.context = Context(default_registry())
        self.documents = [Document(self.network(), self.context.registry, parent=self.context) for _ in range(2)]
        self.context.set_document(self.documents[0])
        self.watch = DocumentWatch(self.context, self.context)
        self.told: list[str] = []
        self.watch.edited.connect(lambda: self.told.append("edited"))
        self.watch.outdated.connect(lambda: self.told.append("outdated"))

    @staticmethod
    def network() -> Any:
        graph = chain(("conv", "convolution", {"features": 4}), ("same", "identity", {}))
        graph.apply(commands.add_layer(graph, Layer("loose", "identity")))
        return graph

    def of(self, act: Callable[[Document], object], document: int = 0) -> list[str]:
        self.told.clear()
        act(self.documents[document])
        return list(self.told)


@pytest.fixture
def watched(qapp: object) -> Watched:
    return Watched()


def edit(make: Callable[[Any], Any]) -> Callable[[Document], object]:
    return lambda document: document.do(make)


EDITS = {
    "a parameter": edit(lambda g: commands.set_params(g, {"conv": {"features": "8"}})),
    "another parameter that computes": edit(lambda g: commands.set_params(g, {"conv": {"stride": "2x2"}})),
    "a layer without links is removed": edit(lambda g: commands.remove_layers(g, ["loose"])),
    "a layer is removed": edit(lambda g: commands.remove_layers(g, ["same"])),
    "a layer is renamed": edit(lambda g: commands.rename_layer(g, "same", "other")),
    "a layer is added": edit(lambda g: commands.add_layer(g, Layer("new", "identity"))),
    "a link": edit(lambda g: commands.connect(g, Source("conv"), "loose", 0)),
    "bypassed": lambda document: document.do(bypass(document.graph, document.inference, ["same"])),
}
LOOKS = {
    "a layer is moved": edit(lambda g: commands.move_layers(g, {"conv": (7, 9)})),
    "notes of the network": edit(lambda g: commands.set_property(g, "author_notes", "a note")),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_that_computes_something_else_outdates_with_undo_and_redo(watched: Watched, name: str) -> None:
    both = ["edited", "outdated"]
    assert watched.of(EDITS[name]) == both
    assert watched.of(lambda document: document.undo()) == both
    assert watched.of(lambda document: document.redo()) == both
    assert watched.of(EDITS["a parameter"], document=1) == []


@pytest.mark.parametrize("name", LOOKS)
def test_an_edit_of_looks_outdates_nothing(watched: Watched, name: str) -> None:
    assert watched.of(LOOKS[name]) == []
    assert watched.of(lambda document: document.undo()) == []


RUN = {
    "engine": "torch", "precision": "fp16", "layout": "nhwc", "device": "cuda", "threads": 3, "tile": 64, "weights": "/w",
    "random_seed": 5, "input_files": {"image": "/a.png"},
}  # fmt: skip
OTHER = {"iterations": 77, "variants": (Variant("half", precision="fp16"),), "variant": "half"}


def test_settings_of_a_run_outdate_when_they_change_and_when_they_change_back(watched: Watched) -> None:
    for name, value in RUN.items():
        before = getattr(Settings(), name)
        assert getattr(watched.documents[0].settings, name) == before, name
        for each in (value, before):
            assert watched.of(lambda d, name=name, each=each: d.change_settings(**{name: each})) == ["outdated"], name
    watched.documents[0].change_settings(engine="torch", weights="/w")
    for name, value in OTHER.items():
        assert watched.of(lambda d, name=name, value=value: d.change_settings(**{name: value})) == [], name


def test_the_watch_follows_the_document_that_is_shown(watched: Watched) -> None:
    assert watched.of(watched.context.set_document, document=1) == []
    assert watched.of(EDITS["a parameter"]) == []
    assert watched.of(lambda document: document.change_settings(threads=3)) == []
    assert watched.of(EDITS["a parameter"], document=1) == ["edited", "outdated"]
    assert watched.of(lambda document: document.change_settings(threads=2), document=1) == ["outdated"]
    watched.context.set_document(watched.documents[0])  # with other settings than it was left with
    assert watched.of(lambda document: document.change_settings(threads=3)) == []
    assert watched.of(lambda document: document.change_settings(threads=4)) == ["outdated"]


def test_a_watch_that_is_made_while_a_template_is_shown_is_of_the_whole_network(watched: Watched) -> None:
    context, document = watched.context, watched.documents[0]
    assert document.do(lambda g: make_template(g, ["same"], "part"))
    instance = next(layer.name for layer in document.graph if layer.type == "template")
    assert context.enter(instance)
    told: list[str] = []
    late = DocumentWatch(context, context)
    late.edited.connect(lambda: told.append("edited"))
    late.outdated.connect(lambda: told.append("outdated"))
    both = ["edited", "outdated"]
    for expected, act in (
        (both, EDITS["a parameter"]),
        (both, EDITS["a layer without links is removed"]),
        (both, lambda document: document.undo()),
        ([], LOOKS["a layer is moved"]),
        (["outdated"], lambda document: document.change_settings(precision="fp16")),
        ([], lambda document: document.change_settings(iterations=7)),
        (both, lambda _: context.document.do(lambda g: commands.remove_layers(g, ["same"]))),
    ):
        told.clear()
        assert watched.of(act) == expected
        assert told == expected
