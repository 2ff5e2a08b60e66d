"""Sums in the fields of the Layer Editor, resetting, and several layers with different values."""

from __future__ import annotations

import operator
from fractions import Fraction

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QToolButton
from window_kit import shown

from app.ui.design.layer_editor import ParametersPanel
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.widgets.expression import ExpressionError, evaluate, is_expression, worked_out
from app.ui.widgets.number_field import NumberField
from app.ui.widgets.size_field import SizeField
from designer.graph.commands import set_params
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.registry import default_registry


@pytest.fixture
def context(qapp):
    context = Context(default_registry())
    first = {"features": "8", "kernel": "3x3", "note": "mine", "groups": "2"}
    spec = ActivationSpec("leaky_relu", {"negative_slope": "0.5"})
    layers = [
        Layer("input_0", "input", params={"dims": "64x48x4"}),
        Layer("conv_0", "convolution", inputs=(Source("input_0"),), params=first, activation=spec),
        Layer("conv_1", "convolution", inputs=(Source("conv_0"),), params={"features": "16"}),
        Layer("noise_0", "noise", inputs=(Source("conv_1"),)),
    ]
    context.set_document(Document(Graph(layers), context.registry))
    return context


@pytest.fixture
def panel(qtbot, context):
    return shown(qtbot, ParametersPanel(context), 340, 700)


def field(panel, name, kind=NumberField):
    return panel.findChild(kind, f"parameters.{name}")


def message(panel, name) -> str:
    return panel.findChild(QLabel, f"parameters.{name}.message").text()


def retype(qtbot, widget, text):
    widget.setFocus()
    widget.selectAll()
    qtbot.keyClicks(widget, text)


def params(context, layer):
    return context.document.graph[layer].params


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3*16", 48),
        ("2**5", 32),
        ("(64-32)/2", 16),
        ("7//2", 3),
        ("7%4", 3),
        ("-(2+1)", -3),
        ("+(2-3)", -1),
        ("-(2-3)", 1),
        ("4+-3", 1),
        ("4--3", 7),
        ("4-+3", 1),
        ("1*-+-3", 3),
        ("1*+-3", -3),
        ("-2**2", -4),
        ("-7//2", -4),
        ("-7%4", 1),
        ("0.1+0.2", Fraction(3, 10)),
    ],
)
def test_sums_are_exact(text, value):
    assert is_expression(text)
    assert evaluate(text) == value


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("3*", "valid expression"),
        ("__import__('os')", "numbers"),
        ("abs(3)", "numbers"),
        ("features*2", "numbers"),
        ("[1]*9", "numbers"),
        ("True+1", "numbers"),
        ("1j*2", "numbers"),
        ("1/0", "zero"),
        ("0**-1", "zero"),
        ("2**99999", "exponent"),
        ("2**0.5", "exponent"),
        ("9**64**3", "exponent"),
        ("(9**64)**64", "large"),
        ("1e999*2", "large"),
        ("1" * 121 + "+1", "characters"),
        ("(" * 60 + "1" + ")" * 59, "valid expression"),
        ("1 if 1 else 2+0", "numbers"),
        ("3<4+1", "numbers"),
    ],
)
def test_what_is_no_sum_is_refused_with_its_rule(text, rule):
    with pytest.raises(ExpressionError, match=rule):
        evaluate(text)


@given(st.text("0123456789+-*/%(). xe_,'[]", max_size=40))
def test_any_text_is_worked_out_or_refused(text):
    try:
        value = evaluate(text)
    except ExpressionError:
        return
    assert max(value.numerator.bit_length(), value.denominator.bit_length()) <= 512


SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
NUMBER = st.integers(0, 99).map(lambda n: (str(n), n))


def joined(parts):
    (a, x), sign, (b, y) = parts
    return f"({a}{sign}{b})", SIGNS[sign](x, y)


@given(st.recursive(NUMBER, lambda s: st.tuples(s, st.sampled_from("+-*"), s).map(joined), max_leaves=8))
def test_nested_sums_keep_their_order(found):
    text, value = found
    assert evaluate(text) == value


def test_the_parts_of_sizes_and_lists():
    assert worked_out("size2d", "2*8 x 3") == "16x3"
    assert worked_out("size3d", "2**8x256 × 1+2") == "256x256x3"
    assert worked_out("ints", "1, 2*3") == "1,6"
    assert worked_out("float", "1/4") == "0.25"
    with pytest.raises(ExpressionError, match=r"16\.5 is not an integer"):
        worked_out("int", "33/2")


def test_a_sum_shows_its_result_and_enter_sets_it_in_one_step(qtbot, panel, context):
    context.select(("conv_1",))
    features = field(panel, "features")
    retype(qtbot, features, "3*16")
    assert message(panel, "features") == "= 48, press Enter to apply"
    assert params(context, "conv_1")["features"] == "16"  # not 3, which was a number while it was typed
    qtbot.keyClick(features, Qt.Key.Key_Return)
    assert params(context, "conv_1")["features"] == "48"
    assert features.text() == "48"
    assert message(panel, "features") == ""
    context.document.undo()
    assert params(context, "conv_1")["features"] == "16"
    assert context.document.history.undo_title is None


def test_a_wrong_text_leaves_what_was_there(qtbot, panel, context):
    context.select(("conv_1",))
    retype(qtbot, field(panel, "features"), "24*")
    field(panel, "name", QLineEdit).setFocus()
    assert params(context, "conv_1")["features"] == "16"
    assert "valid expression" in message(panel, "features")
    assert context.document.history.undo_title is None
    retype(qtbot, field(panel, "kernel.width"), "5")
    assert field(panel, "features").text() == "24*"  # still there to be mended
    assert params(context, "conv_1")["kernel"] == "5x3"


def test_leaving_the_field_sets_the_sum_too(qtbot, panel, context):
    context.select(("conv_1",))
    retype(qtbot, field(panel, "features"), "(64-32)/2+1")
    field(panel, "name", QLineEdit).setFocus()
    assert params(context, "conv_1")["features"] == "17"


def test_a_wrong_sum_names_its_rule_and_sets_nothing(qtbot, panel, context):
    context.select(("conv_1",))
    features = field(panel, "features")
    for text, rule in (("(3*16", "valid expression"), ("(3/2)", "not an integer"), ("(2-2)", "below the minimum of 1")):
        retype(qtbot, features, text)
        assert rule in message(panel, "features")
        qtbot.keyClick(features, Qt.Key.Key_Return)
        assert params(context, "conv_1")["features"] == "16"


def test_escape_takes_back_what_was_typed(qtbot, panel, context):
    """Digits are set while they are typed, so Escape has to set the old value again."""
    context.select(("conv_1",))
    features = field(panel, "features")
    retype(qtbot, features, "64")
    assert params(context, "conv_1")["features"] == "64"
    qtbot.keyClicks(features, "*2")
    qtbot.keyClick(features, Qt.Key.Key_Escape)
    assert features.text() == "16"
    assert params(context, "conv_1")["features"] == "16"
    assert context.document.history.undo_title is None


def test_a_size_as_one_text(qtbot, panel, context):
    context.select(("conv_1",))
    width = field(panel, "kernel.width")
    retype(qtbot, width, "2*8 x 3")
    assert message(panel, "kernel") == "= 16x3, press Enter to apply"
    qtbot.keyClick(width, Qt.Key.Key_Return)
    assert params(context, "conv_1")["kernel"] == "16x3"
    assert (width.text(), field(panel, "kernel.height").text()) == ("16", "3")
    retype(qtbot, field(panel, "kernel.height"), "2+3")
    qtbot.keyClick(field(panel, "kernel.height"), Qt.Key.Key_Return)
    assert params(context, "conv_1")["kernel"] == "16x5"


@pytest.mark.parametrize("leave", [False, True])
def test_only_the_last_text_of_a_field_counts(qtbot, panel, context, leave):
    """Also after a sum that was replaced before Enter or before the field was left. All of it is one step."""
    context.select(("conv_1",))
    before = context.document.graph["conv_1"].params
    for name, part, texts, value in (
        ("features", "features", ("3*16", "7"), "7"),
        ("features", "features", ("3*16", "5*5"), "25"),
        ("features", "features", ("7", "3*16", "9"), "9"),
        ("features", "features", ("3*16", "4*"), "16"),
        ("features", "features", ("3*16", "0"), "16"),
        ("kernel", "kernel.width", ("2*4", "5"), "5x3"),
        ("kernel", "kernel.width", ("2*8 x 3", "5x7"), "5x7"),
    ):
        widget = field(panel, part)
        for text in texts:
            retype(qtbot, widget, text)
        if leave:
            field(panel, "name", QLineEdit).setFocus()
        else:
            qtbot.keyClick(widget, Qt.Key.Key_Return)
        assert not message(panel, name).startswith("=")
        assert params(context, "conv_1")[name] == value, texts
        if context.document.history.undo_title is not None:
            context.document.undo()
        assert context.document.history.undo_title is None
        assert params(context, "conv_1") == before
        context.select(("conv_0",))
        context.select(("conv_1",))


def test_arrows_go_on_from_a_sum(qtbot, panel, context):
    context.select(("conv_1",))
    features = field(panel, "features")
    retype(qtbot, features, "2*8")
    qtbot.keyClick(features, Qt.Key.Key_Up)
    assert params(context, "conv_1")["features"] == "17"


def test_the_wheel_steps_only_with_the_focus(qtbot, panel, context):
    context.select(("conv_1",))
    features = field(panel, "features")

    def wheel() -> None:
        place = QPointF(10, 10)
        turn = QWheelEvent(
            place, features.mapToGlobal(place), QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(features, turn)

    field(panel, "name", QLineEdit).setFocus()
    wheel()
    assert params(context, "conv_1")["features"] == "16"
    features.setFocus()
    wheel()
    assert params(context, "conv_1")["features"] == "17"


def test_different_values_are_shown_as_such(panel, context):
    context.select(("conv_0", "conv_1"))
    line = field(panel, "features").lineEdit()
    assert (line.text(), line.placeholderText()) == ("", "8, 16")
    context.select(("conv_1",))
    assert line.text() == "16"


def test_an_unfinished_sum_leaves_the_value_that_undo_brought_back(qtbot, panel, context):
    context.select(("conv_1",))
    features = field(panel, "features")
    retype(qtbot, features, "24")
    qtbot.keyClick(features, Qt.Key.Key_Return)
    context.document.undo()
    assert (features.text(), features.hasFocus()) == ("16", True)
    retype(qtbot, features, "3*")
    assert params(context, "conv_1")["features"] == "16"


def test_sizes_that_differ_have_dots_in_every_field(panel, context):
    context.document.do(lambda g: set_params(g, {"conv_0": {"kernel": "5x3"}, "conv_1": {"kernel": "3x3"}}))
    for names, expected in (
        (("conv_0", "conv_1"), [("", "…"), ("", "…")]),
        (("conv_0",), [("5", "W"), ("3", "H")]),
        (("conv_1", "conv_0"), [("", "…"), ("", "…")]),
    ):
        context.select(names)
        lines = [part.lineEdit() for part in field(panel, "kernel", SizeField).fields]
        assert [line.text() for line in lines] == [text for text, _ in expected]
        if not lines[0].text():
            assert [line.placeholderText() for line in lines] == [dots for _, dots in expected]


def test_a_sum_for_several_layers_is_one_step(qtbot, panel, context):
    context.select(("conv_0", "conv_1"))
    features = field(panel, "features")
    retype(qtbot, features, "4*6")
    qtbot.keyClick(features, Qt.Key.Key_Return)
    assert [params(context, n)["features"] for n in ("conv_0", "conv_1")] == ["24", "24"]
    context.document.undo()
    assert [params(context, n)["features"] for n in ("conv_0", "conv_1")] == ["8", "16"]
    assert context.document.history.undo_title is None


def test_all_parameters_are_reset_in_one_step(qtbot, panel, context):
    context.select(("conv_0",))
    before = context.document.graph["conv_0"]
    reset = panel.findChild(QToolButton, "parameters.reset_all")
    assert reset.isEnabled()
    qtbot.mouseClick(reset, Qt.MouseButton.LeftButton)
    after = context.document.graph["conv_0"]
    assert after.params == {
        "features": "32",
        "kernel": "3x3",
        "note": "mine",
    }  # an unknown one stays, an extension goes
    assert after.activation.params == {"negative_slope": "0.01"}
    assert not reset.isEnabled()
    context.document.undo()
    assert context.document.graph["conv_0"] == before


def test_a_parameter_beyond_the_old_tools_is_written_only_where_it_is_not_the_default(qtbot, panel, context):
    context.select(("conv_1",))
    groups = field(panel, "groups")
    retype(qtbot, groups, "2")
    assert params(context, "conv_1")["groups"] == "2"
    qtbot.mouseClick(panel.findChild(QToolButton, "parameters.groups.reset"), Qt.MouseButton.LeftButton)
    assert "groups" not in params(context, "conv_1")
    assert groups.text() == "1"
    qtbot.mouseClick(panel.findChild(QToolButton, "parameters.features.reset"), Qt.MouseButton.LeftButton)
    assert params(context, "conv_1")["features"] == "32"


def test_help_tells_the_rule_about_sums_and_the_bounds(qtbot, panel, context):
    context.select(("conv_1",))
    qtbot.mouseClick(panel.findChild(QToolButton, "parameters.features.help"), Qt.MouseButton.LeftButton)
    text = panel.findChild(QLabel, "parameters.features.doc").text()
    assert "From 1 to 65536" in text
    assert "3*16" in text
