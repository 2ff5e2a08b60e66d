"""Controls that any layer publishes as data: a plugin's layer with every kind of them, worked with as a user does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("PySide6")

import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QLabel,
    QLineEdit,
    QPushButton,
    QSlider,
    QStyle,
    QStyleOptionSlider,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.ui.analysis.options import LayerOptions, OptionsArea
from app.ui.document.document import Document
from designer.graph.commands import add_layer, remove_layers, replace_layers, set_params
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.api import Option
from designer.operators.registry import load

pytestmark = pytest.mark.gui
ROOT = Path(__file__).parents[2]
PLUGIN = """
from designer.operators import api as op


class Every(op.Operator, type="every", title="Every control", category=op.Category.ANALYSIS, role=op.Role.ANALYSIS):
    '''A layer with every kind of control.'''

    inputs = (op.Port("x"),)
    on: bool = op.param(default=True, doc="Whether it does anything.")
    strength: float = op.param(default=1.0, min=0.0, max=4.0, doc="How much.", visible_when=("on", True))
    cells: int = op.param(default=4, min=1, max=64)
    mode: str = op.param(default="soft", choices=("soft", "hard"))
    caption: str = op.param(default="A title")
    seed: int = op.param(default=0, min=0, max=3)
    examples = (op.Example((op.image(),)),)

    def infer(self, inputs):
        return inputs[0]

    def evaluate(self, inputs):
        return (inputs[0] * self.strength if self.on else inputs[0],)

OPTIONS
"""


def options_of_the_guide() -> str:
    """The list of CONTRIBUTING.md, word for word."""
    section = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Add an analysis layer")[2]
    return section.partition("```python\n")[2].partition("```")[0]


class Drawn:
    """The controls of one layer `every_0`, and its document."""

    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        (folder / "every.py").write_text(PLUGIN.replace("OPTIONS", options_of_the_guide()))
        registry = load([folder], entry_points=False)
        assert not registry.diagnostics, registry.diagnostics[0].message
        cls, source = registry.get("every"), registry.get("input")
        assert cls is not None
        assert source is not None
        layers = [
            Layer("input_0", "input", params=source().texts()),
            Layer("every_0", "every", inputs=(Source("input_0"),), params=cls().texts()),
            Layer("output_0", "output", inputs=(Source("every_0"),)),
        ]
        self.document = Document(Graph(layers), registry)
        self.area = OptionsArea()
        qtbot.addWidget(self.area)
        self.area.show_document(self.document)
        self.document.changed.connect(self.area.follow)
        self.area.show()
        qtbot.waitExposed(self.area)

    def find(self, kind: type, name: str) -> QWidget:
        found = self.area.findChild(kind, f"analysis.every_0.{name}")
        assert found is not None, name
        assert found.accessibleName()
        return found

    def value(self, name: str) -> str:
        return self.document.graph["every_0"].params[name]


@pytest.fixture
def drawn(qtbot: QtBot, tmp_path: Path) -> Drawn:
    return Drawn(qtbot, tmp_path)


def test_every_kind_of_control_is_drawn_and_writes_to_the_document(qtbot: QtBot, drawn: Drawn) -> None:
    slider = drawn.find(QSlider, "strength")
    assert isinstance(slider, QSlider)
    slider.setFocus()
    QTest.keyClick(slider, Qt.Key.Key_Right)
    assert drawn.value("strength") == "1.05"  # the option's step
    cells = drawn.find(QSlider, "cells")
    assert isinstance(cells, QSlider)
    cells.setFocus()
    QTest.keyClick(cells, Qt.Key.Key_End)
    assert drawn.value("cells") == "16"  # the option's bound is narrower than the parameter's
    box = drawn.find(QComboBox, "mode")
    assert isinstance(box, QComboBox)
    assert [box.itemText(n) for n in range(box.count())] == ["soft", "hard"]
    QTest.keyClick(box, Qt.Key.Key_Down)
    assert drawn.value("mode") == "hard"
    edit = drawn.find(QLineEdit, "caption")
    QTest.keyClicks(edit, "!")
    assert drawn.value("caption") == "A title!"
    label = drawn.find(QLabel, "caption")
    assert isinstance(label, QLabel)
    assert label.text() == "A title!"
    texts = [found.text() for found in drawn.area.findChildren(QLabel)]
    assert "Only shown in the window." in texts
    button = drawn.find(QPushButton, "seed")
    for seed in ("1", "2", "3"):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        assert drawn.value("seed") == seed
    check = drawn.find(QCheckBox, "on")
    QTest.keyClick(check, Qt.Key.Key_Space)
    assert drawn.value("on") == "false"
    assert not slider.isVisible()  # it counts only while the layer is on
    drawn.document.undo()
    assert drawn.value("on") == "true"
    assert slider.isVisible()


def test_one_change_of_a_control_is_one_step_of_undo(qtbot: QtBot, drawn: Drawn) -> None:
    before = dict(drawn.document.graph["every_0"].params)
    slider = drawn.find(QSlider, "strength")
    assert isinstance(slider, QSlider)
    style = QStyleOptionSlider()
    slider.initStyleOption(style)

    def drag(distance: int) -> str:
        handle = slider.style().subControlRect(
            QStyle.ComplexControl.CC_Slider, style, QStyle.SubControl.SC_SliderHandle, slider
        )
        slider.initStyleOption(style)
        start = handle.center()
        QTest.mousePress(slider, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, start)
        for step in (2, 3, 4):
            QTest.mouseMove(slider, start + QPoint(distance * step, 0))
        QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, start)
        return drawn.value("strength")

    first = drag(3)
    assert first != before["strength"]
    assert drag(6) != first
    drawn.document.undo()  # releasing the slider ended the step before
    assert drawn.value("strength") == first
    drawn.document.undo()
    assert drawn.document.graph["every_0"].params == before
    edit = drawn.find(QLineEdit, "caption")
    for letter in "!?":
        QTest.keyClicks(edit, letter * 3)
        QTest.keyClick(edit, Qt.Key.Key_Return)
    drawn.document.undo()
    assert drawn.value("caption") == "A title!!!"
    drawn.document.undo()
    assert drawn.document.graph["every_0"].params == before


def test_each_press_and_each_choice_is_a_step_of_undo(qtbot: QtBot, drawn: Drawn) -> None:
    button, check = drawn.find(QPushButton, "seed"), drawn.find(QCheckBox, "on")
    box = drawn.find(QComboBox, "mode")
    assert isinstance(box, QComboBox)
    for press, name, values in (
        (lambda: box.setCurrentIndex(1 - box.currentIndex()), "mode", ("hard", "soft")),
        (lambda: qtbot.mouseClick(button, Qt.MouseButton.LeftButton), "seed", ("1", "2")),
        (lambda: QTest.keyClick(check, Qt.Key.Key_Space), "on", ("false", "true")),
    ):
        before = drawn.value(name)
        for value in values:
            press()
            assert drawn.value(name) == value
        drawn.document.undo()
        assert drawn.value(name) == values[0]
        drawn.document.undo()
        assert drawn.value(name) == before


def test_a_button_stays_within_the_bounds_of_its_parameter(qtbot: QtBot, drawn: Drawn) -> None:
    button = drawn.find(QPushButton, "seed")
    for seed in ("1", "2", "3", "0", "1"):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        assert drawn.value("seed") == seed


def test_what_it_says_is_what_it_does(drawn: Drawn) -> None:
    operator = drawn.document.inference.read("every_0").operator
    array = np.ones((1, 3, 4, 4), np.float32)
    np.testing.assert_array_equal(operator.evaluate((array,))[0], array)


def test_a_number_without_bounds_can_be_negative(qtbot: QtBot) -> None:
    registry = load([], entry_points=False)
    layers = [
        Layer("input_0", "input", params={"dims": "8x8x3"}),
        Layer("histo", "histogram", inputs=(Source("input_0"),)),
        Layer("output_0", "output", inputs=(Source("histo"),)),
    ]
    document, area = Document(Graph(layers), registry), OptionsArea()
    qtbot.addWidget(area)
    area.show_document(document)
    area.show()
    box = area.findChild(QDoubleSpinBox, "analysis.histo.low.number")
    assert box is not None
    box.selectAll()
    QTest.keyClicks(box, "-2.5")
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert document.graph["histo"].params["low"] == "-2.5"


def test_options_are_those_of_the_layers_and_each_control_has_its_own_undo(qtbot: QtBot) -> None:
    registry = load([], entry_points=False)
    layers = [
        Layer("input_0", "input", params={"dims": "8x8x3"}),
        Layer("noise", "noise", inputs=(Source("input_0"),)),
        Layer("mix", "mix", inputs=(Source("input_0"), Source("noise"))),
        Layer("output_0", "output", inputs=(Source("mix"),)),
    ]
    document, area = Document(Graph(layers), registry), OptionsArea()
    qtbot.addWidget(area)
    area.show_document(document)
    document.changed.connect(area.follow)
    area.show()

    def groups() -> list[str]:
        found = (group for group in area.findChildren(LayerOptions) if group.isVisible())
        return sorted(group.objectName().removeprefix("analysis.options.") for group in found)

    assert groups() == ["mix", "noise"]
    assert not area._empty.isVisible()
    for number, left in ((1, ["mix"]), (2, [])):
        document.do(lambda g, name=("noise", "mix")[number - 1]: remove_layers(g, [name]))
        qtbot.waitUntil(lambda left=left: groups() == left)
    assert area._empty.isVisible()
    for _ in range(2):
        document.undo()
    qtbot.waitUntil(lambda: groups() == ["mix", "noise"])
    assert not area._empty.isVisible()
    boxes = area.findChildren(QComboBox)
    assert len(boxes) >= 2
    for box in boxes:
        assert [box.itemText(row) for row in range(box.count())] == [
            str(box.itemData(row)).replace("_", " ") for row in range(box.count())
        ]
    scale = area.findChild(QDoubleSpinBox, "analysis.noise.scale.number")
    amount = area.findChild(QDoubleSpinBox, "analysis.mix.amount.number")
    assert scale is not None
    assert amount is not None
    for box, text in ((scale, "25/255"), (amount, "0.125")):
        box.selectAll()
        QTest.keyClicks(box, text)
        QTest.keyClick(box, Qt.Key.Key_Return)
        assert box.toolTip() or box.parentWidget().toolTip()
    params = document.graph["noise"].params, document.graph["mix"].params
    assert [params[0]["scale"], params[1]["amount"]] == ["0.098039216", "0.125"]
    document.undo()
    assert document.graph["noise"].params["scale"] == "0.098039216"
    assert amount.value() == 0.5
    document.undo()
    assert scale.value() != pytest.approx(25 / 255)
    plain = Layer("noise", "identity", inputs=(Source("input_0"),))
    document.do(lambda g: replace_layers(g, {"noise": plain}, "Replace", {}))
    qtbot.waitUntil(lambda: groups() == ["mix"])
    document.do(lambda g: set_params(g, {"mix": {"amount": "0.75"}}))
    document.undo()
    document.undo()  # the layer gets options, nothing is added
    qtbot.waitUntil(lambda: groups() == ["mix", "noise"])
    both = {"noise": {"scale": "0.3"}, "mix": {"amount": "0.25"}}
    document.do(lambda g: set_params(g, both))
    shown = [
        area.findChild(QDoubleSpinBox, f"analysis.{name}.number").value() for name in ("noise.scale", "mix.amount")
    ]
    assert shown == [0.3, 0.25]


def layer_options(qtbot: QtBot, drawn: Drawn, *options: Option) -> LayerOptions:
    """Controls for other options of the same layer."""
    operator = drawn.document.inference.read("every_0").operator
    assert operator is not None
    object.__setattr__(operator, "options", lambda: options)
    made = LayerOptions(drawn.document, "every_0", operator)
    qtbot.addWidget(made)
    drawn.document.changed.connect(lambda change: "every_0" in drawn.document.graph and made.refresh())
    made.show()
    return made


def test_a_button_turns_a_truth_value_over_and_steps_a_number(qtbot: QtBot, drawn: Drawn) -> None:
    made = layer_options(
        qtbot,
        drawn,
        Option("on", "button", "Switch"),
        Option("cells", "button", "More cells", step=31),
        Option("strength", "button", "Stronger", step=0.75, max=2.0, min=0.5),
        Option("caption", "button", "Say it"),
    )
    for name, values in (
        ("on", ("false", "true", "false", "true")),
        ("cells", ("35", "1", "32", "63", "1")),  # beyond the highest it begins at the lowest
        ("strength", ("1.75", "0.5", "1.25", "2.0", "0.5")),
        ("caption", ("A title",)),
    ):
        button = made.findChild(QPushButton, f"analysis.every_0.{name}")
        for value in values:
            button.click()
            shown = drawn.value(name)
            assert shown == value or float(shown) == float(value)
        if name != "caption":
            for before in (*reversed(values[:-1]),):
                drawn.document.undo()  # each press is a step of its own
                shown = drawn.value(name)
                assert shown == before or float(shown) == float(before)
            for _ in values[1:]:
                drawn.document.redo()


def test_a_value_that_the_parameter_refuses_is_said_and_not_written(qtbot: QtBot, drawn: Drawn) -> None:
    options = Option("strength", "float", "Strength", max=9.0), Option("caption", "text", "Caption")
    made = layer_options(qtbot, drawn, *options)
    box = made.findChild(QDoubleSpinBox, "analysis.every_0.strength.number")
    assert (box.minimum(), box.maximum()) == (0.0, 9.0)
    box.setValue(8.0)
    assert made.problem.startswith("Strength: ")
    assert made._problem.toolTip() != ""
    assert drawn.value("strength") == "1.0"
    box.setValue(3.0)
    assert float(drawn.value("strength")) == 3.0
    assert made.problem == ""
    drawn.document.do(lambda g: remove_layers(g, ["every_0"]))
    made._write(made._rows[0].option, 2.0)  # a control that is still there writes nothing
    assert "every_0" not in drawn.document.graph


def test_the_control_with_the_focus_keeps_it_when_the_controls_are_made_again(qtbot: QtBot, drawn: Drawn) -> None:
    """Other layers have other controls; the one that is used is found again by its name. The hint is for no controls at all."""
    drawn.area.activateWindow()
    QTest.qWaitForWindowActive(drawn.area)
    before = drawn.find(QLineEdit, "caption")
    before.setFocus()
    assert QApplication.focusWidget() is before
    drawn.document.do(lambda g: add_layer(g, Layer("every_1", "every", inputs=(Source("input_0"),))))
    after = drawn.find(QLineEdit, "caption")
    assert after is not before
    assert QApplication.focusWidget() is after
    assert drawn.area._empty.isHidden()
    assert set(drawn.area._groups) == {"every_0", "every_1"}
    drawn.document.do(lambda g: remove_layers(g, ["every_0", "every_1"]))
    assert not drawn.area._empty.isHidden()
    assert drawn.area._groups == {}
    drawn.document.undo()
    assert drawn.area._empty.isHidden()


@pytest.mark.parametrize("param", ["strength", "cells"])
@pytest.mark.parametrize("low", [None, -5.0, 0.0, 2.0])
@pytest.mark.parametrize("high", [None, 0.0, 3.0])
def test_bounds_of_a_number_are_those_of_the_option_also_zero_and_else_those_of_its_parameter(
    qtbot: QtBot, drawn: Drawn, param: str, low: float | None, high: float | None
) -> None:
    made = layer_options(qtbot, drawn, Option(param, "float", "Number", min=low, max=high))
    of_parameter = {"strength": (0.0, 4.0), "cells": (1.0, 64.0)}[param]
    expected = (of_parameter[0] if low is None else low, of_parameter[1] if high is None else high)
    (row,) = made._rows
    assert made._bounds(row.option) == expected
    box = row.widget.box
    if expected[0] <= float(drawn.value(param)) <= expected[1]:  # a value outside of them stretches them
        assert (box.minimum(), box.maximum()) == expected
        assert isinstance(box, QDoubleSpinBox) is (param == "strength")


def test_bounds_of_what_is_not_a_parameter_are_those_of_the_option(qtbot: QtBot, drawn: Drawn) -> None:
    made = layer_options(qtbot, drawn)
    for low, high in ((None, None), (0.0, None), (None, 0.0), (1.0, 2.0)):
        assert made._bounds(Option("nothing", "float", "Number", min=low, max=high)) == (low, high)


def test_choices_are_those_of_the_option_and_else_those_of_its_parameter(qtbot: QtBot, drawn: Drawn) -> None:
    for option, choices in (
        (Option("mode", "choice", "Mode"), ["soft", "hard"]),
        (Option("mode", "choice", "Mode", choices=("hard",)), ["hard"]),
        (Option("nothing", "choice", "Mode"), []),
    ):
        box = layer_options(qtbot, drawn, option).findChild(QComboBox)
        assert [box.itemData(index) for index in range(box.count())] == choices


def test_a_label_shows_a_value_as_it_is_written_or_its_sentence(qtbot: QtBot, drawn: Drawn) -> None:
    names = ("on", "strength", "cells", "mode", "caption", "seed")
    options = [Option(name, "label", name.title()) for name in names]
    made = layer_options(qtbot, drawn, *options, Option("nothing", "label", "Only a sentence."))

    def texts() -> dict[str, str]:
        found = {name: made.findChild(QLabel, f"analysis.every_0.{name}") for name in (*names, "nothing")}
        return {name: label.text() for name, label in found.items()}

    defaults = {"on": "true", "strength": "1.0", "cells": "4", "mode": "soft", "caption": "A title", "seed": "0"}
    assert texts() == defaults | {"nothing": "Only a sentence."}
    changed = {"on": "false", "strength": "0.000001", "cells": "64", "mode": "hard", "caption": "1.50", "seed": "3"}
    drawn.document.do(lambda g: set_params(g, {"every_0": changed}))
    operator = drawn.document.inference.read("every_0").operator
    assert operator is not None
    written = {name: operator.parameter(name).format(getattr(operator, name)) for name in names}
    assert texts() == written | {"nothing": "Only a sentence."}
    assert (written["on"], written["mode"], written["caption"]) == ("false", "hard", "1.50")
    drawn.document.undo()
    assert texts() == defaults | {"nothing": "Only a sentence."}


def test_a_problem_is_said_next_to_a_text_that_is_typed_alone(qtbot: QtBot, drawn: Drawn) -> None:
    """Without such a text the panel says it: `problem`, which says that it is displayed here, stays empty."""
    options = Option("strength", "float", "Strength"), Option("caption", "text", "Caption")
    typing, counting = layer_options(qtbot, drawn, *options), layer_options(qtbot, drawn, options[0])
    for strength, problem in (("1", False), ("70", True), ("x", True), ("2", False)):
        layer = drawn.document.graph["every_0"]
        wrong = replace(layer, params={**layer.params, "strength": strength})
        assert drawn.document.do(lambda g, layer=layer, wrong=wrong: Edit("Strength", {"every_0": (layer, wrong)}))
        assert (bool(typing.problem), counting.problem) == (problem, "")
        assert (typing._problem.isVisible(), counting._problem.isVisible()) == (True, False)
