"""Small decisions of larger parts of the window: each for all that they depend on."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QPoint

from app.ui.canvas.format_marks import FormatMarks
from app.ui.inspector.channel_inspector import ChannelInspectorPanel
from app.ui.inspector.subject import Kind
from app.ui.precision.variants_panel import VariantsPanel
from app.ui.shell import menus
from designer.files.variants import Variant


@pytest.mark.parametrize(
    ("kind", "unit"), [(Kind.OUTPUT, "value"), (Kind.WEIGHTS, "weight"), (Kind.GRADIENT, "gradient")]
)
def test_the_legend_names_what_is_shown(kind: Kind, unit: str) -> None:
    shown: list[object] = []
    legend = SimpleNamespace(show_look=lambda *what: shown.append(what))
    ChannelInspectorPanel._show_legend(SimpleNamespace(legend=legend, subject=SimpleNamespace(kind=kind), _look="look"))
    assert shown == [("look", unit)]


@pytest.mark.parametrize("names", [(), ("a",), ("gone",), ("a", "b"), ("b", "gone")])
def test_fixes_are_those_of_one_selected_layer(monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]) -> None:
    filled: list[object] = []
    states = {name: SimpleNamespace(diagnostics=f"of {name}") for name in "ab"}
    inference = SimpleNamespace(states=states)
    context = SimpleNamespace(selection=names, document=SimpleNamespace(inference=inference))
    menu = SimpleNamespace(popup=filled.append)
    monkeypatch.setattr(menus.fixing, "fill", lambda *what: filled.append(what))
    menus.Menus.show_fixes(SimpleNamespace(_context=context, _made=lambda name: menu), QPoint(3, 4))
    assert filled == ([(menu, context, "of a"), QPoint(3, 4)] if names == ("a",) else [])


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("visible", [False, True])
def test_variants_with_found_formats_that_are_not_measured_are_measured_again(busy: bool, visible: bool) -> None:
    variants = [
        Variant("plain"),
        Variant("found", reasons={"a": "x"}),
        Variant("known", reasons={"a": "x"}),
        Variant("new", reasons={"b": "y"}),
    ]
    launched: list[object] = []
    VariantsPanel._judge_again(
        SimpleNamespace(
            _question=SimpleNamespace(busy=busy), isVisible=lambda: visible, launch=launched.append,
            variants=variants, _measured={"known": None, "other": None},
        )
    )  # fmt: skip
    assert launched == ([[variants[1], variants[3]]] if visible and not busy else [])


def test_formats_are_marked_at_the_layers_of_the_shown_network_alone() -> None:
    """Not at a layer of the same name in another template; those of a collapsed frame have one mark."""
    formats = {"a": "int8", "t/a": "fp16", "u/b": "int8", "c": "bf16", "d": "int8"}
    reasons = {"c": "why", "gone": "why", "e": "by hand"}
    paths = {"a": "a", "c": "c", "d": "d", "e": "e", "b": "t/b"}

    class Projection:
        def __contains__(self, name: str) -> bool:
            return name in paths

        def shown_for(self, name: str) -> str:
            return "frame" if name in ("c", "d") else name

        def entry(self, name: str) -> SimpleNamespace:
            return SimpleNamespace(area=lambda: f"area of {name}")

    marks = SimpleNamespace(
        _formats=SimpleNamespace(formats=formats, reasons=reasons, format_of=lambda path: f"format of {path}"),
        _context=SimpleNamespace(in_sight=lambda path: path.rpartition("/")[2], path_of=paths.get),
        _projection=Projection(),
        _badge=lambda area, layers: (area, layers),
    )
    assert FormatMarks._badges(marks) == [
        ("area of a", [("a", "format of a", "")]),
        ("area of frame", [("c", "format of c", "why"), ("d", "format of d", "")]),
        ("area of e", [("e", "format of e", "by hand")]),
    ]
