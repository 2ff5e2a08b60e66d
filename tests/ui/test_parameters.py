"""The Layer Editor with real keys and clicks: what is typed becomes edits, what is wrong stays in the field."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QTableWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from window_kit import empty, shown

from app.ui.design.layer_editor import ParametersPanel
from app.ui.design.layer_facts import LayerFacts
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.weight_surgery import weight_surgery_of
from app.ui.widgets.number_field import NumberField
from app.ui.widgets.param_editor import ParamEditor
from designer.graph import commands
from designer.graph.commands import connect, rename_layer, set_params
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.params import Parameter
from designer.operators.registry import default_registry


def small_graph() -> Graph:
    return Graph(
        [
            Layer("input_0", "input", params={"dims": "64x48x3"}),
            Layer("conv_0", "convolution", inputs=(Source("input_0"),), params={"features": "8", "kernel": "3x3"}),
            Layer("conv_1", "convolution", inputs=(Source("conv_0"),), params={"features": "16"}),
            Layer("output_0", "output", inputs=(Source("conv_1"),)),
            Layer("odd_0", "no_such_type", params={"a": "1", "b": "x"}),
        ]
    )


@pytest.fixture
def context(qapp):
    context = Context(default_registry())
    context.set_document(Document(small_graph(), context.registry))
    return context


@pytest.fixture
def panel(qtbot, context):
    return shown(qtbot, ParametersPanel(context), 340, 700)


def field(panel, name, kind=NumberField):
    found = panel.findChild(kind, f"parameters.{name}")
    assert found is not None, name
    return found


def retype(qtbot, widget, text):
    widget.setFocus()
    widget.selectAll()
    qtbot.keyClicks(widget, text)


def text_of(panel, name) -> str:
    return panel.findChild(QLabel, f"parameters.{name}").text()


def params(context, layer):
    return context.document.graph[layer].params


def test_without_a_selection_the_panel_says_what_stands_here(qtbot, panel, context):
    assert "Select a layer" in empty(panel).text()
    other = ParametersPanel(Context(context.registry))
    qtbot.addWidget(other)
    assert empty(other).text().startswith("Open or create")


def test_typing_a_number_changes_the_layer_and_is_one_undo_step(qtbot, panel, context):
    context.select(("conv_0",))
    features = field(panel, "features")
    assert features.text() == "8"
    retype(qtbot, features, "128")
    assert params(context, "conv_0")["features"] == "128"
    qtbot.keyClick(features, Qt.Key.Key_Return)
    context.document.undo()
    assert params(context, "conv_0")["features"] == "8"
    assert features.text() == "8"
    assert features.hasFocus()


@pytest.mark.parametrize("name", ["features", "groups"])
def test_values_that_are_entered_one_after_the_other_are_undone_one_by_one(qtbot, panel, context, name):
    context.select(("conv_0",))
    number = field(panel, name)
    first = number.text()
    for text in ("2", "4"):
        retype(qtbot, number, text)
        qtbot.keyClick(number, Qt.Key.Key_Return)
    for text in ("2", first):
        context.document.undo()
        assert number.text() == text
        assert params(context, "conv_0").get(name, first) == text
    assert context.document.undo() is None


def test_an_expression_waits_for_its_end_while_others_edit(qtbot, panel, context):
    context.select(("conv_0",))
    number, message = field(panel, "features"), "= 48, press Enter to apply"
    edits = (
        {"conv_1": {"features": "5"}},  # another layer
        {"conv_0": {"kernel": "5x5"}},  # another parameter
        {"conv_0": {"features": "9"}},  # the same one
    )
    for edit in edits:
        retype(qtbot, number, "3*16")
        assert text_of(panel, "features.message") == message
        context.document.do(lambda g, edit=edit: set_params(g, edit))
        assert number.text() == "3*16"
        qtbot.keyClick(number, Qt.Key.Key_Return)
        assert (params(context, "conv_0")["features"], number.text()) == ("48", "48")
        assert text_of(panel, "features.message") == ""
        context.document.undo()
        context.document.undo()
        assert params(context, "conv_0")["features"] == number.text() == "8"
    for end in ("reset", "escape"):  # it is given up
        retype(qtbot, number, "3*16")
        if end == "reset":
            panel.findChild(QToolButton, "parameters.features.reset").click()
        else:
            qtbot.keyClick(number, Qt.Key.Key_Escape)
        present = params(context, "conv_0")["features"]
        assert (present, number.text()) == {"reset": ("32", "32"), "escape": ("32", "32")}[end]
        number.setFocus()
        qtbot.keyClick(number, Qt.Key.Key_Return)
        assert (params(context, "conv_0")["features"], text_of(panel, "features.message")) == (present, "")


@pytest.mark.parametrize("later", [(), ("conv_1",)])
def test_channels_whose_weights_cannot_follow_are_written_also_after_another_selection(
    qtbot, panel, context, monkeypatch, later
):
    refuse = []
    monkeypatch.setattr(
        weight_surgery_of(context), "operate", lambda *args, failed=None, **kwargs: refuse.append(failed)
    )
    context.root.change_settings(weights="missing.npz")
    context.select(("conv_0",))
    features = field(panel, "features")
    retype(qtbot, features, "24")
    qtbot.keyClick(features, Qt.Key.Key_Return)
    context.select(later)
    assert params(context, "conv_0")["features"] == "8"
    refuse[0](Diagnostic("weights-missing", "there are none"))
    assert params(context, "conv_0")["features"] == "24"
    assert params(context, "conv_1")["features"] == "16"


def test_channels_whose_weights_cannot_follow_are_not_written_into_another_document(qtbot, panel, context, monkeypatch):
    asked, said = [], []
    monkeypatch.setattr(
        weight_surgery_of(context), "operate", lambda *args, failed=None, **kwargs: asked.append((args, kwargs, failed))
    )
    context.message.connect(lambda role, text: said.append((role, text)))
    context.root.change_settings(weights="missing.npz")
    first, second = context.document, Document(small_graph(), context.registry)
    for reason, shown_document in (("weights-missing", second), ("refused", second), ("refused", first)):
        context.set_document(first)
        context.select(("conv_0",))
        features = field(panel, "features")
        retype(qtbot, features, "24")
        qtbot.keyClick(features, Qt.Key.Key_Return)
        args, kwargs, failed = asked.pop()
        assert (args, kwargs, asked) == (("features", "conv_0"), {"features": 24}, [])
        context.set_document(shown_document)
        failed(Diagnostic(reason, "there are none"))
        why = [("warning", "The weights do not follow: there are none.")] if reason != "weights-missing" else []
        assert said == why
        said.clear()
        written = "24" if shown_document is first else "8"
        assert [document.graph["conv_0"].params["features"] for document in (first, second)] == [written, "8"]
    second.deleteLater()


def test_two_gestures_are_two_steps(qtbot, panel, context):
    context.select(("conv_0",))
    features = field(panel, "features")
    retype(qtbot, features, "12")
    qtbot.keyClick(features, Qt.Key.Key_Return)
    retype(qtbot, features, "24")
    qtbot.keyClick(features, Qt.Key.Key_Return)
    context.document.undo()
    assert params(context, "conv_0")["features"] == "12"


def test_edits_before_and_after_another_selection_are_two_steps(qtbot, panel, context):
    """Also where the field was not left between them."""
    context.select(("conv_0",))
    retype(qtbot, field(panel, "groups"), "2")
    context.select(("conv_1",))
    context.select(("conv_0",))
    retype(qtbot, field(panel, "groups"), "4")
    context.document.undo()
    assert params(context, "conv_0")["groups"] == "2"


def test_wrong_text_shows_the_rule_and_is_not_committed(qtbot, panel, context):
    context.select(("conv_0",))
    features = field(panel, "features")
    retype(qtbot, features, "abc")
    assert "not a whole number" in text_of(panel, "features.message")
    assert params(context, "conv_0")["features"] == "8"
    retype(qtbot, features, "0")
    assert "below the minimum of 1" in text_of(panel, "features.message")
    qtbot.keyClick(features, Qt.Key.Key_Escape)
    assert features.text() == "8"
    assert text_of(panel, "features.message") == ""
    assert context.document.history.undo_title is None


def test_arrow_keys_step_inside_the_bounds(qtbot, panel, context):
    context.select(("conv_0",))
    features = field(panel, "features")
    features.setFocus()
    qtbot.keyClick(features, Qt.Key.Key_Up)
    assert params(context, "conv_0")["features"] == "9"
    retype(qtbot, features, "1")
    qtbot.keyClick(features, Qt.Key.Key_Down)
    assert params(context, "conv_0")["features"] == "1"


def test_sizes_are_typed_by_component(qtbot, panel, context):
    context.select(("conv_0",))
    retype(qtbot, field(panel, "kernel.width"), "5")
    assert params(context, "conv_0")["kernel"] == "5x3"
    retype(qtbot, field(panel, "kernel.height"), "")
    qtbot.keyClick(field(panel, "kernel.height"), Qt.Key.Key_Backspace)
    assert "not a size" in text_of(panel, "kernel.message")
    assert params(context, "conv_0")["kernel"] == "5x3"
    context.select(("input_0",))
    retype(qtbot, field(panel, "dims.channels"), "1")
    assert params(context, "input_0")["dims"] == "64x48x1"


def test_four_digits_of_a_size_are_visible_in_a_narrow_panel(qtbot, panel, context):
    panel.resize(320, 700)
    context.select(("input_0",))
    context.document.do(lambda g: commands.set_params(g, {"input_0": {"dims": "1024x2048x256"}}))
    qtbot.waitUntil(lambda: field(panel, "dims.width").text() == "1024")
    for part in ("width", "height", "channels"):
        line = field(panel, f"dims.{part}").lineEdit()
        assert line.contentsRect().width() >= line.fontMetrics().horizontalAdvance(line.text()) + 4, part


def test_a_choice_shows_what_depends_on_it(qtbot, panel, context):
    context.select(("conv_0",))
    padding = field(panel, "padding", QComboBox)
    assert not field(panel, "padding_tuple.width").isVisible()
    padding.setFocus()
    qtbot.keyClick(padding, Qt.Key.Key_End)
    assert params(context, "conv_0")["padding"] == "tuple"
    assert field(panel, "padding_tuple.width").isVisible()


def test_types_with_different_defaults_show_their_own_and_have_no_common_reset(qtbot, panel, context):
    context.document.do(lambda g: commands.add_layer(g, Layer("up_0", "transposed_convolution")))
    context.select(("conv_1", "up_0"))
    stride = panel.findChild(QWidget, "parameters.stride")
    assert stride.text() == "x"  # 1x1 and 2x2
    assert "Default" not in stride.toolTip()
    assert "Default: 3x3." in panel.findChild(QWidget, "parameters.kernel").toolTip()
    assert not field(panel, "stride.reset", QToolButton).isEnabled()
    context.select(("conv_1",))
    assert stride_of(panel) == "1x1"
    context.select(("up_0",))
    assert stride_of(panel) == "2x2"


def test_the_same_fields_have_a_default_only_for_types_that_share_it(panel, context):
    kinds = {"path": "drop_path", "drop": "dropout", "drop_2d": "dropout_2d"}
    for name, kind in kinds.items():
        context.document.do(
            lambda g, n=name, k=kind: commands.add_layer(g, Layer(n, k, params={"probability": "0.25"}))
        )
    for names, shared in (
        (("path",), True), (("path", "drop"), False), (("drop",), True), (("drop", "drop_2d"), True),
        (("path", "drop", "drop_2d"), False), (("drop", "drop_2d"), True), (("path",), True),
    ):  # fmt: skip
        context.select(names)
        row = panel._operator_rows.rows["probability"]
        assert list(panel._operator_rows.rows) == ["probability"]
        assert (row.has_default, row._reset.isEnabled()) == (shared, shared)
        assert ("Default: " in row._doc.text()) is shared


def stride_of(panel) -> str:
    return panel.findChildren(QWidget, "parameters.stride")[-1].text()  # an earlier one is deleted later


def test_a_check_box_and_reset(qtbot, panel, context):
    context.select(("conv_0",))
    bias = field(panel, "apply_bias", QCheckBox)
    reset = field(panel, "apply_bias.reset", QToolButton)
    assert not reset.isEnabled()
    qtbot.keyClick(bias, Qt.Key.Key_Space)
    assert params(context, "conv_0")["apply_bias"] == "false"
    assert reset.isEnabled()
    qtbot.mouseClick(reset, Qt.MouseButton.LeftButton)
    assert params(context, "conv_0")["apply_bias"] == "true"
    assert bias.isChecked()


def test_help_is_shown_on_demand(qtbot, panel, context):
    context.select(("conv_0",))
    doc = panel.findChild(QLabel, "parameters.features.doc")
    assert not doc.isVisible()
    qtbot.mouseClick(field(panel, "features.help", QToolButton), Qt.MouseButton.LeftButton)
    assert doc.isVisible()
    assert "Number of filters" in doc.text()
    qtbot.mouseClick(field(panel, "help", QToolButton), Qt.MouseButton.LeftButton)
    assert "Apply learned filters" in text_of(panel, "doc")
    context.select(("odd_0",))  # its type is not known
    assert not panel.findChild(QLabel, "parameters.doc").isVisible()
    context.select(("conv_0",))
    assert panel.findChild(QLabel, "parameters.doc").isVisible()


def test_renaming_keeps_the_links_the_selection_and_the_focus(qtbot, panel, context):
    context.select(("conv_0",))
    name = field(panel, "name", QLineEdit)
    retype(qtbot, name, "encoder")
    qtbot.keyClick(name, Qt.Key.Key_Return)
    graph = context.document.graph
    assert graph["conv_1"].inputs == (Source("encoder"),)
    assert context.selection == ("encoder",)
    assert name.hasFocus()
    context.document.undo()
    assert name.text() == "conv_0"
    assert context.selection == ("conv_0",)


@pytest.mark.parametrize(("text", "rule"), [("conv_1", "used by another"), ("a/b", "slash"), (" ", "blank")])
def test_an_illegal_name_shows_the_rule_and_is_not_committed(qtbot, panel, context, text, rule):
    context.select(("conv_0",))
    name = field(panel, "name", QLineEdit)
    retype(qtbot, name, text)
    assert rule in text_of(panel, "name.message")
    qtbot.keyClick(name, Qt.Key.Key_Return)
    assert "conv_0" in context.document.graph
    qtbot.keyClick(name, Qt.Key.Key_Escape)
    assert name.text() == "conv_0"


def test_an_activation_is_attached_with_its_parameters(qtbot, panel, context):
    context.select(("conv_0",))
    combo = field(panel, "activation", QComboBox)
    combo.setFocus()
    qtbot.keyClicks(combo, "leaky")
    spec = context.document.graph["conv_0"].activation
    assert isinstance(spec, ActivationSpec)
    assert spec.type == "leaky_relu"
    parameter = context.registry.activations["leaky_relu"].parameters[0].name
    slope = field(panel, f"activation.{parameter}")
    first = slope.text()
    retype(qtbot, slope, "0.25")
    assert context.document.graph["conv_0"].activation.params[parameter] == "0.25"
    context.document.undo()
    assert (slope.text(), context.document.graph["conv_0"].activation) == (
        first,
        spec,
    )  # all that was typed is one step
    retype(qtbot, slope, "0.25")
    combo.setFocus()
    qtbot.keyClick(combo, Qt.Key.Key_Home)
    assert context.document.graph["conv_0"].activation is None


def test_an_activation_layer_is_not_said_to_have_no_parameters(panel, context):
    """Its parameters are those of the attached activation."""
    layers = [
        Layer("relu_0", "activation", inputs=(Source("input_0"),), activation=ActivationSpec("relu", {"alpha": "0.1"})),
        Layer("same_0", "identity", inputs=(Source("input_0"),)),
    ]
    for layer in layers:
        context.document.do(lambda g, layer=layer: commands.add_layer(g, layer))
    context.select(("same_0",))
    assert text_of(panel, "note") == "This operator has no parameters."
    context.select(("relu_0",))
    assert text_of(panel, "note") == ""


def test_shapes_learned_values_and_work_are_shown_and_follow(qtbot, panel, context):
    context.select(("conv_0",))
    shown = panel.findChild(LayerFacts, "parameters.facts")
    facts = shown.facts()
    assert facts["Input"] == "N x 3 x 48 x 64\nfrom input_0"
    assert facts["Output"] == "N x 8 x 48 x 64"
    assert facts["Parameters"] == str(8 * 3 * 9 + 8)
    assert facts["FLOPs, batch size 1"] == "~1.33 MFLOP"  # modelled, as in the status bar
    context.document.do(lambda g: commands.set_params(g, {"input_0": {"dims": "32x16x3"}}))
    assert shown.facts()["Output"] == "N x 8 x 16 x 32"


def test_a_problem_upstream_is_named_and_leads_there(qtbot, panel, context):
    context.document.do(lambda g: set_params(g, {"conv_0": {"features": "many"}}))
    context.select(("conv_1",))
    because = panel.findChild(QLabel, "parameters.facts.because")
    assert "conv_0" in because.text()
    with qtbot.waitSignal(context.reveal_requested) as asked:
        because.linkActivated.emit("conv_0")
    assert asked.args == ["conv_0"]
    context.select(("conv_0",))
    assert "not a whole number" in text_of(panel, "features.message")
    assert field(panel, "features").text() == "many"


def test_several_layers_share_their_parameters(qtbot, panel, context):
    context.select(("conv_0", "conv_1"))
    assert text_of(panel, "heading") == "2 layers: Convolution"
    features = field(panel, "features")
    assert features.text() == ""
    assert field(panel, "kernel.width").text() == "3"
    retype(qtbot, features, "24")
    assert {params(context, n)["features"] for n in ("conv_0", "conv_1")} == {"24"}
    context.document.undo()
    assert [params(context, n)["features"] for n in ("conv_0", "conv_1")] == ["8", "16"]
    assert not field(panel, "name", QLineEdit).isVisible()
    context.select(("conv_0", "odd_0"))
    assert text_of(panel, "heading") == "2 layers"


def test_a_check_box_of_layers_that_differ_is_half_checked(qtbot, panel, context):
    context.document.do(lambda g: set_params(g, {"conv_1": {"apply_bias": "false"}}))
    context.select(("conv_0", "conv_1"))
    bias = field(panel, "apply_bias", QCheckBox)
    assert bias.checkState() is Qt.CheckState.PartiallyChecked
    for state in ("true", "false"):
        qtbot.keyClick(bias, Qt.Key.Key_Space)
        assert {params(context, n)["apply_bias"] for n in ("conv_0", "conv_1")} == {state}
        assert bias.checkState() is (Qt.CheckState.Checked if state == "true" else Qt.CheckState.Unchecked)


def test_an_unknown_layer_shows_its_text_read_only(panel, context):
    context.select(("odd_0",))
    table = panel.findChild(QTableWidget, "parameters.raw")
    assert table.isVisible()
    assert [table.item(r, 1).text() for r in range(2)] == ["1", "x"]
    assert table.editTriggers() == QTableWidget.EditTrigger.NoEditTriggers
    assert "no_such_type" in text_of(panel, "note")


def test_a_draft_does_not_travel_to_another_layer(qtbot, panel, context):
    context.select(("conv_0",))
    retype(qtbot, field(panel, "features"), "x")
    context.select(("conv_1",))
    assert field(panel, "features").text() == "16"
    assert text_of(panel, "features.message") == ""
    assert params(context, "conv_0")["features"] == "8"


def test_other_edits_do_not_disturb_the_field_in_use(qtbot, panel, context):
    context.select(("conv_0",))
    features = field(panel, "features")
    retype(qtbot, features, "7x")
    context.document.do(lambda g: rename_layer(g, "conv_1", "last"))
    context.document.do(lambda g: connect(g, Source("input_0"), "last", 0))
    assert features.text() == "7x"
    assert features.hasFocus()


def test_deleting_the_layer_empties_the_panel(panel, context):
    from designer.graph.commands import remove_layers

    context.select(("conv_0",))
    context.document.do(lambda g: remove_layers(g, ["conv_0"]))
    assert "Select a layer" in empty(panel).text()
    assert empty(panel).isVisible()
    assert context.selection == ()


def test_tab_goes_down_the_panel(qtbot, panel, context):
    context.select(("input_0",))
    context.select(("conv_0",))
    qtbot.waitUntil(field(panel, "features").isVisible)
    field(panel, "name", QLineEdit).setFocus()
    visited = []
    while len(visited) < 60 and (not visited or visited[-1] != "parameters.activation"):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        visited.append(QApplication.focusWidget().objectName())
    order = ["features", "kernel.width", "kernel.height", "stride.width", "padding", "apply_bias", "activation"]
    assert [v for v in visited if v in {f"parameters.{n}" for n in order}] == [f"parameters.{n}" for n in order]


@pytest.mark.parametrize("back", [False, True])
def test_tab_leaves_the_editor(qtbot, context, back):
    """Tab goes from before the panel to what follows it, and back."""
    window = QWidget()
    box = QVBoxLayout(window)
    before, panel, after = QLineEdit(), ParametersPanel(context), QLineEdit()
    for widget in (before, panel, after):
        box.addWidget(widget)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitExposed(window)
    window.activateWindow()
    for name in ("input_0", "conv_0"):
        context.select((name,))
        qtbot.waitUntil(lambda name=name: panel.findChild(QLineEdit, "parameters.name").text() == name)
    start, end = (after, before) if back else (before, after)
    start.setFocus()
    qtbot.waitUntil(start.hasFocus)
    visited = []
    while QApplication.focusWidget() is not end:
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Backtab if back else Qt.Key.Key_Tab)
        assert QApplication.focusWidget() not in visited
        visited.append(QApplication.focusWidget())
    assert {"parameters.name", "parameters.kernel.height"} <= {widget.objectName() for widget in visited}


EXTENSIONS = {  # parameters that are written only for some of the types that share them, with the keys that change them
    "dilation": ("convolution", "depthwise_convolution", "dilation.width"),
    "groups": ("convolution", "convolution_1d", "groups"),
}


@pytest.mark.parametrize("name", EXTENSIONS)
@pytest.mark.parametrize("order", [1, -1])
def test_a_shared_parameter_is_written_as_each_type_writes_it(qtbot, panel, context, name, order):
    """An extension at its default is left out, but only where it is one."""
    one, other, changed = EXTENSIONS[name]
    for number, kind in enumerate((one, other)):
        context.document.do(lambda g, n=number, k=kind: commands.add_layer(g, Layer(f"shared_{n}", k)))
    context.select(("shared_0", "shared_1")[::order])
    for text, stored in (("2", ["2", "2"]), ("1", [None, "1"])):
        retype(qtbot, field(panel, changed), text)
        full = {value: f"{value}x1" if "." in changed else value for value in ("1", "2")}
        found = [params(context, f"shared_{n}").get(name) for n in (0, 1)]
        assert found == [full.get(value) for value in stored]


def ranged() -> dict[str, Parameter]:
    """Every number and size with a bound, by the name of its operator and its own."""
    registry = default_registry()
    classes = (*registry, *registry.activations.values())
    return {
        f"{cls.type}.{p.name}": p
        for cls in classes
        for p in cls.parameters
        if p.kind in ("int", "float", "size2d", "size3d")
        and not p.info.choices
        and (p.info.min, p.info.max) != (None, None)
    }


def test_no_field_steps_over_the_bounds_of_its_parameter(qtbot):
    """Arrow keys end at the bounds, and what they make is always a value that the parameter takes."""
    bounded = ranged()
    assert len(bounded) > 50
    for name, parameter in bounded.items():
        info, size = parameter.info, parameter.kind.startswith("size")
        editor = ParamEditor(name, parameter)
        qtbot.addWidget(editor)
        parts = editor.inner.fields if size else [editor.inner]
        for bound, steps in ((info.min, -1), (info.max, 1)):
            if bound is None or abs(bound) > 1e9:
                continue
            number = str(round(bound)) if size or parameter.kind == "int" else f"{bound:.12g}"
            text = "x".join([number] * len(parts))
            editor.set_text(text)
            for part in parts:
                part.stepBy(steps)
            assert parameter.parse(editor.text()) == parameter.parse(text), f"{name} steps over {bound}"
            editor.set_text(text)
            for part in parts:
                part.stepBy(-steps)
                parameter.parse(editor.text())
                assert parameter.parse(editor.text()) != parameter.parse(text), f"{name} stays at {bound}"


def test_tab_visits_the_buttons_of_a_row_before_the_next_row(qtbot, panel, context):
    context.select(("conv_0",))
    qtbot.waitUntil(field(panel, "features").isVisible)
    field(panel, "features").setFocus()
    visited = []
    while visited[-1:] != ["parameters.kernel.width"] and len(visited) < 9:
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        visited.append(QApplication.focusWidget().objectName())
    assert visited == [f"parameters.{n}" for n in ("features.reset", "features.help", "kernel.width")]


def test_all_parameters_of_several_layers_are_reset_if_one_of_them_differs(panel, context):
    names = ("conv_0", "conv_1")
    kind = context.document.graph["conv_0"].type
    document = context.document
    for name in names:
        if name not in document.graph:
            document.do(lambda g, name=name: commands.add_layer(g, Layer(name, kind)))
    button = panel.findChild(QToolButton, panel._reset.objectName())
    for changed in ((), names[:1], names[1:], names):
        for name in names:
            document.do(lambda g, name=name: commands.set_params(g, {name: {"features": "32", "kernel": "3x3"}}))
        document.do(lambda g, changed=changed: commands.set_params(g, {name: {"features": "7"} for name in changed}))
        context.select(names)
        if changed:
            assert button.isEnabled(), changed
            button.click()
        assert {params(context, name).get("features", "32") for name in names} == {"32"}, changed


def test_edits_of_the_same_parameter_of_other_layers_are_other_steps_of_undo(panel, context):
    document = context.document
    for name in ("conv_0", "conv_9"):
        if name not in document.graph:
            document.do(lambda g, name=name: commands.add_layer(g, Layer(name, g["conv_0"].type)))
    panel._write_param(("conv_0",), "features", "5")
    panel._write_param(("conv_0",), "features", "51")  # the next key of the same number
    panel._write_param(("conv_9",), "features", "6")
    panel._write_param(("conv_0", "conv_9"), "features", "7")
    assert [params(context, name)["features"] for name in ("conv_0", "conv_9")] == ["7", "7"]
    for expected in (("51", "6"), ("51", None)):
        document.undo()
        assert tuple(params(context, name).get("features") for name in ("conv_0", "conv_9")) == expected
    before = params(context, "conv_0").get("features")
    document.undo()
    assert params(context, "conv_0").get("features") not in (before, "5")
