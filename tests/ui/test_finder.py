"""Find Next and Next Problem from wherever one is, and what a search matches."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
import template_networks
from PySide6.QtCore import QPoint, Qt

from app.ui.canvas.canvas import Canvas
from app.ui.canvas.finder import Finder, matches
from app.ui.canvas.quick_add import QuickAdd
from app.ui.document.document import Document
from app.ui.widgets.search_popup import SearchPopup
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.default_layers import INSTANCE_OF
from designer.operators.registry import default_registry

CONV = {"features": "8", "kernel": "3x3", "padding": "same"}


def network() -> Graph:
    """From left to right: image, First, second, third, and three layers that read nothing, one of them with two bad values."""
    return Graph(
        [
            Layer("third", "convolution", (960, 0), (Source("second"),), {**CONV, "kernel": "5x5"}),
            Layer("image", "input", (0, 0), params={"dims": "64x48x3"}),
            Layer("First", "convolution", (320, 0), (Source("image"),), CONV, ActivationSpec("relu")),
            Layer("second", "convolution", (640, 0), (Source("First"),), CONV),
            Layer("out", "output", (1280, 0), (Source("third"),)),
            Layer("open_b", "pooling", (640, 320)),
            Layer("open_a", "pooling", (320, 320), params={"strange": "1"}),
            Layer("open_c", "convolution", (960, 320), (), {**CONV, "kernel": "0x0", "features": "many"}),
        ]
    )


@pytest.fixture
def canvas(qtbot) -> Canvas:
    return kit.open_canvas(qtbot, network())


@pytest.fixture
def finder(canvas: Canvas) -> Finder:
    return Finder(canvas.context, canvas)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("convolution", ["First", "second", "third", "open_c"]),
        ("CONVOLUTION kernel=3X3", ["First", "second"]),
        ("first", ["First"]),
        ("FIRST", ["First"]),
        ("relu", ["First"]),
        ("activation=relu conv", ["First"]),
        ("8 x 48 x 64", ["First", "second", "third", "out"]),
        ("48x64 out", ["out"]),
        ("open", ["open_a", "open_b", "open_c"]),
        ("conv pooling", []),
        ("nothing", []),
    ],
)
def test_every_word_is_looked_for_in_any_case_from_left_to_right(canvas: Canvas, query: str, names: list[str]) -> None:
    found = [name for name, _ in matches(canvas.context.document, query)]
    assert sorted(found, key=found.index) == found
    assert found == names


def test_the_next_match_is_behind_the_selected_one_and_goes_around(canvas: Canvas, finder: Finder) -> None:
    context = canvas.context
    finder._query = "convolution"
    names = ["First", "second", "third", "open_c"]
    order = [name for name, _ in matches(context.document, "convolution")]
    assert sorted(order) == sorted(names)
    for start, step, wanted in (
        ((), 1, order[0]), ((), -1, order[-1]), (("image",), 1, order[0]), (("image",), -1, order[-1]),
        ((order[0],), 1, order[1]), ((order[0],), -1, order[-1]), ((order[-1],), 1, order[0]), ((order[1],), -1, order[0]),
        (("image", order[1]), 1, order[2]), ((order[2], "image"), 1, order[0]),
    ):  # fmt: skip
        context.select(start)
        finder.next(step)
        assert context.selection == (wanted,), (start, step)
    context.select(("image",))
    finder._query = "nothing"
    finder.next()
    assert context.selection == ("image",)
    assert canvas.messages[-1] == ("info", "No layer matches 'nothing'.")


def test_problems_are_gone_through_from_the_selected_layer(canvas: Canvas, finder: Finder) -> None:
    """From what was selected in between, and around the ends; the message is that of the layer."""
    context = canvas.context
    order = ["open_a", "open_b", "open_c"]
    found = {d.layer for d in context.document.diagnostics()}
    assert found == set(order)
    several = [d.message for d in context.document.diagnostics() if d.layer == "open_c"]
    assert len(set(several)) > 1

    def go(step: int = 1) -> str:
        finder.next_problem(step)
        (name,) = context.selection
        worst = next(d for d in context.document.diagnostics() if d.layer == name)
        assert name != "open_a" or sum(d.layer == name for d in context.document.diagnostics()) == 2
        level, text = canvas.messages[-1]
        assert level == worst.severity.value
        assert text.startswith(worst.message)
        return name

    assert [go() for _ in range(4)] == [*order, "open_a"]
    assert [go(-1) for _ in range(4)] == ["open_c", "open_b", "open_a", "open_c"]
    context.select(("open_a",))
    assert go() == "open_b"
    context.select(("open_a",))
    assert go(-1) == "open_c"
    for last, following in (("open_a", "open_b"), ("open_b", "open_c")):
        context.select(("image", "open_c", *(name for name in order[:2] if name != last), last))
        assert go() == following
    for nothing in ((), ("image",)):
        context.select(nothing)
        assert go() == "open_a"
        context.select(nothing)
        assert go(-1) == "open_c"
    context.document.do(lambda g: commands.remove_layers(g, order))
    finder.next_problem()
    assert canvas.messages[-1] == ("info", "No problems")


def rows(popup: SearchPopup) -> list[tuple[str, str, str]]:
    """Name, where it matched, and key of the rows that are visible."""
    role = Qt.ItemDataRole.UserRole
    items = [popup._list.topLevelItem(row) for row in range(popup._list.topLevelItemCount())]
    return [(item.text(0), item.text(1), item.data(0, role)) for item in items]


def test_the_search_remembers_its_text_and_goes_on_from_there(canvas: Canvas, finder: Finder) -> None:
    finder.next()  # nothing was looked for yet
    popup = finder._popup
    assert popup.isVisible()
    assert popup.text == ""
    assert len(rows(popup)) == 8
    popup._edit.setText("kernel=3x3")
    assert rows(popup) == [("First", "kernel=3x3", "First"), ("second", "kernel=3x3", "second")]
    assert popup._list.isVisible()
    assert not popup._nothing.isVisible()
    popup._edit.setText("nobody")
    assert rows(popup) == []
    assert popup._nothing.isVisible()
    popup._choose()
    assert popup.isVisible()
    popup._edit.setText("kernel=3x3")
    assert not canvas.viewer.hasFocus()
    popup._edit.returnPressed.emit()
    assert not popup.isVisible()
    assert canvas.viewer.hasFocus()
    assert canvas.context.selection == ("First",)
    finder.next()
    assert not popup.isVisible()
    assert canvas.context.selection == ("second",)
    finder.open()
    assert popup.text == "kernel=3x3"
    assert popup._edit.selectedText() == "kernel=3x3"
    popup.close()


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("first", "Convolution"),
        ("first kernel", "kernel=3x3"),
        ("kernel first", "kernel=3x3"),
        ("first features activation", "features=8"),
        ("conv first", "convolution"),
        ("48x64 first", "8x48x64"),
    ],
)
def test_a_match_says_where_it_was_found_besides_the_name(canvas: Canvas, query: str, detail: str) -> None:
    assert list(matches(canvas.context.document, query)) == [("First", detail)]


def test_layers_of_other_scopes_are_found_behind_those_of_this_one(qtbot) -> None:
    canvas = kit.open_canvas(qtbot, template_networks.nested())
    context, finder = canvas.context, Finder(canvas.context, canvas)
    root = context.root.graph

    def found(text: str) -> list[tuple[str, str]]:
        return [(match.key, match.detail) for match in finder._search(text)]

    inside = {name: [layer.name for layer in template.layers] for name, template in root.templates.items()}
    for scope in ((), context.way_to("residual")):
        assert context.set_scope(scope)
        here, own = scope[-1].template if scope else "", {name for name, _ in matches(context.document, "")}
        assert {key for key, _ in found("")} == own  # without a text: this scope only
        every = found("o")
        assert [key for key, _ in every[: len(own)] if "/" not in key] == [
            name for name, _ in matches(context.document, "o")
        ]
        others = {key: detail for key, detail in every if "/" in key}
        expected = {
            f"{name}/{layer.name}": f"in {name}"
            for name, template in root.templates.items()
            for layer in template.layers
            if name != here and any("o" in text for text in texts_of(layer))
        }
        around = {f"/{name}": f"in {root.name}" for name, _ in matches(context.root, "o")} if scope else {}
        assert others == {**expected, **around}
    assert context.set_scope(())
    for template, names in inside.items():
        finder._go(f"{template}/{names[0]}")
        assert context.scope[-1].template == template
        assert context.selection == (names[0],)
    finder._go("/head")
    assert (context.scope, context.selection) == ((), ("head",))
    many = Graph([Layer(f"relu_{n}", "relu", (n, 0)) for n in range(250)])
    context.set_document(Document(many, context.registry, parent=context))
    assert [key for key, _ in found("relu")] == [f"relu_{n}" for n in range(200)]


def texts_of(layer: Layer) -> list[str]:
    """What a layer can be found by without its shapes."""
    cls = default_registry().get(layer.type)
    params = [f"{name}={text}" for name, text in layer.params.items()]
    activation = [f"activation={layer.activation.type}"] if layer.activation is not None else []
    return [layer.name, layer.type, cls.title if cls is not None else "", *params, *activation]


# --- adding an operator -----------------------------------------------------------------------------------------------


def test_operators_that_were_added_last_come_first(qtbot) -> None:
    registry = default_registry()
    canvas = kit.open_canvas(qtbot, network())
    add = QuickAdd(registry, canvas)
    every = [match.key for match in add._operators("")]
    assert set(every) == {cls.type for cls in registry} | {cls.type for cls in registry.activations.values()}
    used = ["relu", "pooling", "convolution", "input", "output", "noise", "mix", "flatten", "softmax"]
    used = [name for name in used if name in every]
    for name in (*used, used[0]):
        add.chosen.emit(name)
    recent = [used[0], *reversed(used[1:])][:8]
    assert add._recent == recent
    assert [match.key for match in add._operators("")][: len(recent)] == recent
    assert sorted(match.key for match in add._operators("")) == sorted(every)
    accepted = registry.get("pooling")
    add.open_for(QPoint(10, 10), lambda cls: cls is accepted)
    assert [key for _, _, key in rows(add)] == ["pooling"]
    add.close()
    add.open_for(QPoint(10, 10))
    assert len(rows(add)) == len(every)
    add.close()
    (match,) = (found for found in add._operators("") if found.key == "pooling")
    assert (match.text, match.detail, match.enabled) == (accepted.title, "", True)
    assert match.tip == accepted.help().partition("\n")[0]


def test_templates_are_offered_with_the_reason_why_not(qtbot) -> None:
    add = QuickAdd(default_registry(), kit.open_canvas(qtbot, network()))
    add.offer_templates(lambda: (("Block", ""), ("outer", "it would be inside of itself")))

    def found(text: str) -> list[tuple[str, str, str, str, bool]]:
        every = [match for match in add._operators(text) if match.detail == "template"]
        return [(m.key, m.text, m.detail, m.tip, m.enabled) for m in every]

    block = (f"{INSTANCE_OF}Block", "Block", "template", "Another instance of this template", True)
    tip = "Cannot be added here: it would be inside of itself"
    outer = (f"{INSTANCE_OF}outer", "outer", "template", tip, False)
    for text, expected in (
        ("", [block, outer]),
        ("BLOCK", [block]),
        ("template out", [outer]),
        ("instance", [block, outer]),
        ("block outer", []),
        ("conv", []),
    ):
        assert found(text) == expected
    assert next(iter(add._operators(""))).key == block[0]
    add.open_for(QPoint(10, 10), lambda cls: False)
    add._edit.setText("outer")
    assert [key for _, _, key in rows(add)] == [outer[0]]
    add._list.setCurrentItem(add._list.topLevelItem(0))
    heard: list[str] = []
    add.chosen.connect(heard.append)
    add._choose()
    assert (heard, add.isVisible()) == ([], True)  # it cannot be added
    add.close()
