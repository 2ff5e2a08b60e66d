"""What panels and fields do in states that are seldom: texts that are wrong, rows that are gone, nothing chosen, keys of others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("PySide6")
from analysis_kit import SILENT

pytestmark = pytest.mark.gui

from PySide6.QtCore import QEvent, QModelIndex, QPoint, QRectF, Qt
from PySide6.QtGui import QImage, QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu
from pytestqt.qtbot import QtBot
from training_kit import Runs, project_context
from window_kit import shown

from app.engine.protocol import RunStep
from app.ui.analysis import report
from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.analysis.layer_infos import LayerInfo
from app.ui.analysis.network_overview import NetworkOverviewPanel
from app.ui.analysis.options import OptionsArea
from app.ui.analysis.output_view import OutputView
from app.ui.analysis.overview_model import LAYER, OverviewModel
from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.training import StartRequest
from app.ui.precision.precision_dialog import PrecisionDialog
from app.ui.precision.variants_panel import VariantsPanel
from app.ui.train.runs_model import COLUMNS
from app.ui.train.runs_panel import TrainingRunsPanel
from app.ui.train.sweep_dialog import SweepDialog
from app.ui.widgets.image_view import ImageView
from app.ui.widgets.number_field import NumberField
from app.ui.widgets.slider import SumBox
from designer.files.variants import Variant
from designer.graph.commands import remove_layers, set_params
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import Registry, default_registry, load

ROLE = Qt.ItemDataRole


def analysis_graph(**mix: str) -> Graph:
    return Graph(
        [
            Layer("image", "input", params={"dims": "8x8x3"}),
            Layer("noise", "noise", (160, 0), (Source("image"),)),
            Layer("mix", "mix", (320, 0), (Source("image"), Source("noise")), mix),
            Layer("out", "output", (480, 0), (Source("mix"),)),
        ]
    )


def context_of(graph: Graph, registry: Registry | None = None, path: Path | None = None) -> Context:
    made = Context(registry or default_registry())
    made.set_document(Document(graph, made.registry, path, parent=made))
    return made


# --- options of analysis layers ----------------------------------------------------------------------------------------


def test_a_layer_with_a_wrong_text_keeps_its_controls_so_that_it_can_be_mended_there(qtbot: QtBot) -> None:
    """The same controls, with what they showed, also while other layers come and go with them; the text comes from elsewhere."""
    context = context_of(analysis_graph())
    document = context.document
    area = shown(qtbot, OptionsArea(), 400, 500)
    area.show_document(document)
    document.changed.connect(area.follow)
    QApplication.processEvents()
    noise, mix = area._groups["noise"], area._groups["mix"]
    scale = document.graph["noise"].params.get("scale")
    for name, param in (("noise", "scale"), ("mix", "amount"), ("noise", "kind"), ("mix", "selection")):
        document.do(lambda g, n=name, p=param: set_params(g, {n: {p: "nonsense"}}))
        assert document.graph[name].params[param] == "nonsense"
        assert area._groups == {"noise": noise, "mix": mix}
        assert not noise.isHidden()
        assert not mix.isHidden()
        document.undo()
        assert area._groups == {"noise": noise, "mix": mix}
    assert document.graph["noise"].params.get("scale") == scale
    document.do(lambda g: set_params(g, {"noise": {"scale": "nonsense"}, "mix": {"amount": "0.25"}}))
    assert mix._operator.values()["amount"] == 0.25
    field = noise._rows[[row.option.param for row in noise._rows].index("scale")].widget
    field.box.selectAll()
    QTest.keyClicks(field.box, "0.5")
    QTest.keyClick(field.box, Qt.Key.Key_Return)
    assert document.graph["noise"].params["scale"] == "0.5", "it is mended with its control"
    assert area._groups == {"noise": noise, "mix": mix}


def test_options_without_a_document_or_of_a_layer_that_is_gone_do_nothing(qtbot: QtBot) -> None:
    context = context_of(analysis_graph())
    document = context.document
    area = shown(qtbot, OptionsArea(), 400, 500)
    changes: list[object] = []
    document.changed.connect(changes.append)
    document.do(lambda g: set_params(g, {"noise": {"scale": "0.5"}}))
    area.follow(changes[-1])  # nothing is shown
    assert area._groups == {}
    area.show_document(document)
    group = area._groups["noise"]
    assert area.layer_with("") == ""
    assert area.layer_with("something else") == ""
    document.do(lambda g: remove_layers(g, ["noise"]))
    before = document.graph.copy()
    group._write(group._rows[0].option, group._rows[0].option.choices[0] if group._rows[0].option.choices else 1)
    assert document.graph == before
    area.show_document(None)
    assert area._groups == {}
    assert not area._empty.isHidden()


# --- the report and the overview -----------------------------------------------------------------------------------------

PLUGIN = """
from designer.operators import api as op


class Plain(op.Operator, type="plain", title="Plain analysis", category=op.Category.ANALYSIS, role=op.Role.ANALYSIS):
    '''An analysis layer without a summary.'''

    inputs = (op.Port("x"),)
    strength: float = op.param(default=1.0)
    mode: str = op.param(default="soft", choices=("soft", "hard"))
    examples = (op.Example((op.image(),)),)

    def infer(self, inputs):
        return inputs[0]

    def evaluate(self, inputs):
        return (inputs[0],)
"""


def test_the_report_has_the_settings_of_every_analysis_layer_whether_it_sums_them_up_or_not(
    qtbot: QtBot, tmp_path: Path
) -> None:
    (tmp_path / "plain.py").write_text(PLUGIN)
    registry = load([tmp_path], entry_points=False)
    assert not registry.diagnostics
    layers = [
        Layer("image", "input", params={"dims": "8x8x3"}),
        Layer("plain", "plain", inputs=(Source("image"),), params={"strength": "2.5", "mode": "hard"}),
        Layer("bare", "plain", inputs=(Source("plain"),)),
        Layer("conv", "convolution", inputs=(Source("bare"),), params={"features": "3"}),
        Layer("wrong", "plain", inputs=(Source("conv"),), params={"strength": "x"}),
        Layer("out", "output", inputs=(Source("wrong"),)),
    ]
    seen = report.seen_in(context_of(Graph(layers), registry))
    assert seen.options == [
        ("plain", "Plain analysis", "strength 2.5, mode hard"),
        ("bare", "Plain analysis", ""),
    ]  # fmt: skip


STEPS = (
    RunStep(("a",), "torch", 1.0, cached=False),
    RunStep(("b", "c"), "torch", 3.0, cached=True),
    RunStep(("d",), "torch", 2.0, cached=False),
)


def infos() -> dict[str, LayerInfo]:
    return {name: LayerInfo("N x 3", "Convolution", "") for name in "abcd"}


def test_the_overview_has_headers_above_its_columns_only_and_layers_below_the_first_one() -> None:
    model = OverviewModel()
    model.show(STEPS, infos())
    for section in range(model.columnCount()):
        assert model.headerData(section, Qt.Orientation.Vertical) is None
        assert model.headerData(section, Qt.Orientation.Horizontal)
        assert model.headerData(section, Qt.Orientation.Horizontal, ROLE.ForegroundRole) is None
    assert [model.rowCount(model.index(row, 0)) for row in range(3)] == [0, 2, 0]
    assert [model.rowCount(model.index(1, column)) for column in range(1, model.columnCount())] == [0] * (
        model.columnCount() - 1
    )
    inside = model.index(1, 0, model.index(1, 0))
    assert model.rowCount(inside) == 0
    assert model.layer_at(inside) == "c"
    assert model.layer_at(QModelIndex()) == ""


def test_keys_of_the_overview_inspect_or_move(qtbot: QtBot) -> None:
    context = context_of(analysis_graph())
    panel = NetworkOverviewPanel(context)
    qtbot.addWidget(panel)
    panel.resize(500, 300)
    panel.show()
    panel.model.show(STEPS, infos())
    heard: list[QModelIndex] = []
    panel.tree.entered_key.connect(heard.append)
    panel.tree.setCurrentIndex(QModelIndex())
    QTest.keyClick(panel.tree, Qt.Key.Key_Return)
    assert heard == []
    panel.tree.setCurrentIndex(panel.model.index(0, LAYER))
    QTest.keyClick(panel.tree, Qt.Key.Key_Down)
    assert panel.tree.currentIndex().row() == 1
    assert heard == []
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
        QTest.keyClick(panel.tree, key)
        assert heard.pop().row() == 1


def test_the_menu_of_the_overview_is_for_a_layer(qtbot: QtBot) -> None:
    context = context_of(analysis_graph())
    panel = NetworkOverviewPanel(context)
    qtbot.addWidget(panel)
    panel.resize(500, 300)
    panel.model.show((RunStep(("noise",), "torch", 1.0, cached=False),), infos())
    asked: list[tuple[str, str]] = []
    context.inspect_requested.connect(lambda name: asked.append(("inspect", name)))
    context.reveal_requested.connect(lambda name: asked.append(("reveal", name)))
    panel._menu(QPoint(5, 5000))
    assert panel.findChildren(QMenu) == []
    panel.tree.expandAll()
    panel._menu(panel.tree.visualRect(panel.model.index(0, LAYER)).center())
    (menu,) = panel.findChildren(QMenu)
    assert [action.text() for action in menu.actions()] == ["Inspect channels of noise", "Show on the canvas"]
    for action in menu.actions():
        action.trigger()
    assert asked == [("inspect", "noise"), ("reveal", "noise")]
    menu.close()


def test_an_output_without_values_is_not_exported(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    context = context_of(analysis_graph())
    view = OutputView("out", analysis_of(context))
    qtbot.addWidget(view)
    QApplication.clipboard().setText("kept")
    monkeypatch.setattr("app.ui.analysis.output_view.ask_path", lambda *_: pytest.fail("nothing is asked"))
    for way in ("copy", "picture", "tensor"):
        view._export(way)
    assert QApplication.clipboard().text() == "kept"


# --- precision and training --------------------------------------------------------------------------------------------


def test_the_hint_of_the_variants_is_shown_while_there_are_none(qtbot: QtBot) -> None:
    context = context_of(analysis_graph())
    panel = VariantsPanel(context)
    qtbot.addWidget(panel)
    hint = "Add a variant, such as FP16, and measure what it does to the input image."
    assert panel.status.text() == hint
    context.root.change_settings(variants=(Variant("quick", "fp16"),))
    assert panel.status.text() == ""
    context.root.undo()
    assert panel.status.text() == hint


def test_variants_without_a_document_are_not_measured(qtbot: QtBot) -> None:
    panel = VariantsPanel(Context(default_registry()))
    qtbot.addWidget(panel)
    panel.launch()
    panel.launch([Variant("a")])
    assert panel.status.text() == ""
    assert panel.variants == ()
    assert not panel.measure.isEnabled()


def test_rows_of_runs_that_are_not_there_and_headers_beside_them_are_empty(qtbot: QtBot, tmp_path: Path) -> None:
    context = project_context(tmp_path)
    runs = Runs(qtbot, context)
    panel = TrainingRunsPanel(context)
    qtbot.addWidget(panel)
    first = runs.add("first", lr=0.1)
    model = panel.model
    assert model.index_of(first).row() == 0
    other = SimpleNamespace()
    assert not model.index_of(other).isValid()
    for row, column in ((-1, 0), (1, 0), (0, -1), (0, len(COLUMNS))):
        assert not model.index(row, column).isValid()
    assert not model.parent(model.index(0, 0)).isValid()
    assert model.rowCount(model.index(0, 0)) == 0
    for section in range(model.columnCount()):
        assert model.headerData(section, Qt.Orientation.Vertical, ROLE.DisplayRole) is None
        assert model.headerData(section, Qt.Orientation.Horizontal, ROLE.DecorationRole) is None
        assert model.headerData(section, Qt.Orientation.Horizontal, ROLE.DisplayRole)
    for role in (ROLE.DecorationRole, ROLE.CheckStateRole, ROLE.ForegroundRole):
        assert model.data(model.index(0, 0), role) is None


def test_a_sweep_whose_plan_became_wrong_says_why_and_stays_open(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = project_context(tmp_path)
    dialog = SweepDialog(context.root, StartRequest(tmp_path / "p", {}, "denoising"))
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
    qtbot.addWidget(dialog)
    dialog.show()
    heard: list[object] = []
    dialog.requested.connect(heard.append)
    dialog.rows[0].values.setText("0.1, 0.2")
    assert dialog.start.isEnabled()

    def refuse() -> list[object]:
        raise DiagnosticError((Diagnostic("sweep", "the values are used up", remedy="enter others"),))

    monkeypatch.setattr(dialog, "planned", refuse)
    dialog.start.click()
    assert "the values are used up" in dialog.message.text().casefold()
    assert heard == []
    assert dialog.isVisible()
    monkeypatch.undo()
    dialog.start.click()
    assert len(heard) == 1
    assert not dialog.isVisible()


# --- fields and views ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "steps", "after"),
    [
        ("abc", 1, "abc"), ("", 1, ""), ("3*4", 1, None), ("5", 1, "6"), ("5", -2, "3"), ("5", 10, "9"), ("5", -10, "0"),
        ("9", 1, "9"), ("0", -1, "0"), ("20", 1, "9"), ("-5", -1, "0"),
    ],
)  # fmt: skip
def test_steps_of_a_field_stay_between_its_bounds_and_leave_what_is_not_a_number(
    qtbot: QtBot, text: str, steps: int, after: str | None
) -> None:
    field = NumberField("n", "N", low=0, high=9)
    qtbot.addWidget(field)
    heard: list[str] = []
    field.edited.connect(heard.append)
    field.set_text(text)
    assert field.fixup(text) == text
    field.stepBy(steps)
    if after is None:
        assert field.text() in (text, "9")
        return
    assert field.text() == after
    assert heard == ([after] if after != text else [])


@pytest.mark.parametrize(
    ("low", "high", "step", "text", "steps", "after"),
    [
        (-3, 0, None, "-1", 5, "0"), (0, 3, None, "1", -5, "0"), (None, None, None, "0", -7, "-7"),
        (-3, 0, 2, "-3", 1, "-1"), (0.0, 0.5, 0.2, "0.3", 1, "0.5"), (-0.5, 0.0, 0.2, "-0.1", 1, "0"),
        (None, 0, None, "-2", 9, "0"), (0, None, None, "2", -9, "0"), (None, None, None, "1.5", 1, "1.6"),
    ],
)  # fmt: skip
def test_a_bound_of_zero_is_a_bound(
    qtbot: QtBot, low: float | None, high: float | None, step: float | None, text: str, steps: int, after: str
) -> None:
    whole = "." not in text and not isinstance(step, float)
    field = NumberField("n", "N", whole=whole, low=low, high=high, step=step)
    qtbot.addWidget(field)
    field.set_text(text)
    field.stepBy(steps)
    assert float(field.text()) == float(after)
    up = field.StepEnabledFlag.StepUpEnabled in field.stepEnabled()
    down = field.StepEnabledFlag.StepDownEnabled in field.stepEnabled()
    assert (up, down) == (high is None or float(after) < high, low is None or float(after) > low)


def test_a_sum_that_is_not_finished_keeps_the_value(qtbot: QtBot) -> None:
    box = SumBox(3, None)
    box.setRange(-10, 10)
    box.setKeyboardTracking(False)  # as every slider has it
    qtbot.addWidget(box)
    box.setValue(2.5)
    for text in ("", "25/", "a", "(", "1/0"):
        assert box.valueFromText(text) == 2.5, text
    assert box.valueFromText("25/255") == pytest.approx(25 / 255)
    field = box.findChild(QLineEdit)
    box.selectAll()
    QTest.keyClicks(field, "7/")
    assert box.value() == 2.5
    QTest.keyClicks(field, "2")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert box.value() == 3.5


def test_a_view_without_an_image_looks_nowhere(qtbot: QtBot) -> None:
    view = ImageView("view", "View", "nothing")
    qtbot.addWidget(view)
    view.resize(200, 100)
    heard: list[object] = []
    view.view_changed.connect(heard.append)
    view.zoom_changed.connect(heard.append)
    before = view.view
    for zoom in (None, 2.0):
        view.look_at(QRectF(0, 0, 4, 4), zoom)
        assert view.view == before
    assert heard == []


def test_keys_without_a_meaning_for_an_image_are_left_to_the_window(qtbot: QtBot) -> None:
    view = ImageView("view", "View", "nothing")
    qtbot.addWidget(view)
    image = QImage(8, 8, QImage.Format.Format_RGB32)
    image.fill(0)
    view.show_image(image)
    none = Qt.KeyboardModifier.NoModifier
    for key, text, taken in (
        (Qt.Key.Key_Plus, "+", True), (Qt.Key.Key_Left, "", True), (Qt.Key.Key_Q, "q", False), (Qt.Key.Key_F5, "", False),
        (Qt.Key.Key_Escape, "", False),
    ):  # fmt: skip
        event = QKeyEvent(QEvent.Type.ShortcutOverride, key, none, text)
        event.ignore()
        view.event(event)
        assert event.isAccepted() is taken, key


def test_the_box_of_inputs_is_there_while_the_network_has_inputs(qtbot: QtBot) -> None:
    context = context_of(analysis_graph())
    engine = context.engine = EngineClient(command=SILENT)
    panel = AnalysisPanel(context)
    qtbot.addWidget(panel)
    panel.resize(600, 400)
    panel.show()
    for graph, there in ((Graph(), False), (analysis_graph(), True), (Graph([Layer("a", "identity")]), False)):
        context.set_document(Document(graph, context.registry, parent=context))
        assert panel._inputs_box.isHidden() is not there
        assert set(panel._inputs) == ({"image"} if there else set())
    engine.close(kill=True)


def test_a_search_for_a_precision_ends_with_its_dialog(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    for how in ("accept", "reject", "close"):
        dialog = PrecisionDialog(context_of(analysis_graph()), "int8")
        qtbot.addWidget(dialog)
        dialog.show()
        ended: list[str] = []
        monkeypatch.setattr(type(dialog._question), "busy", property(lambda _: True))
        monkeypatch.setattr(dialog._question, "stop", lambda ended=ended: ended.append("stopped"))
        getattr(dialog, how)()
        assert ended == ["stopped"], how
        monkeypatch.undo()
