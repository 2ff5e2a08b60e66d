"""The tables of Import Report, Differences and Type Checking: each cell and message compared with the data that it comes from."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import QAbstractItemModel, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolButton, QWidget
from pytestqt.qtbot import QtBot
from window_kit import shown

from app.ui.design.differences import LAYER, MARKS, DifferencesPanel
from app.ui.design.differences import rows as difference_rows
from app.ui.design.import_report import ImportReportPanel, Row, RowsModel, _case_texts, report_text
from app.ui.design.type_checking import TypeCheckingPanel, row_texts, unique
from app.ui.document.document import Document
from app.ui.document.import_record import ImportRecord
from app.ui.engine.context import Context
from app.ui.widgets import theme
from app.ui.widgets.tooltips import plain_tip
from designer.graph.commands import set_params
from designer.graph.compare import NetworkComparison, ValueDifference
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.graph.template import Template
from designer.importers.report import UNBOUNDED, ComparedCase, ImportReport, NodeOutcome, Outcome
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui


def cells(model: QAbstractItemModel) -> list[list[str]]:
    return [
        [model.index(row, column).data() for column in range(model.columnCount())] for row in range(model.rowCount())
    ]


def titles(model: QAbstractItemModel) -> list[str]:
    return [model.headerData(column, Qt.Orientation.Horizontal) for column in range(model.columnCount())]


@pytest.fixture
def context(qtbot: QtBot) -> Context:
    made = Context(default_registry())
    made.set_document(Document(Graph(), made.registry, parent=made))
    return made


# --- imports -------------------------------------------------------------------------------------------------------

REPORT = ImportReport(
    "net.onnx", "pytorch 2.9", 17, "an architecture; its license is MIT", 4, 2, 1, 1, {"block": 3, "head": 1}, 0.0125, 2.5e-7,
    cases=(
        ComparedCase({"x": (1, 3, 8, 16), "t": (1,)}, 0.0125, 2.5e-7, "out"), ComparedCase({"x": (2, 3, 8, 16)}, UNBOUNDED, UNBOUNDED),
    ),
    warnings=("the first warning", "the second one"),
    outcomes=(
        NodeOutcome("n1", "Conv", Outcome.KNOWN, ("conv", "relu")), NodeOutcome("n2", "Constant", Outcome.FOLDED, ("conv",)),
        NodeOutcome("n3", "Strange", Outcome.OPAQUE, ("strange",), "it is not known"), NodeOutcome("n4", "Add", Outcome.KNOWN),
    ),
    weights={"head.weight": "block.conv.kernel", "head.bias": "conv.bias"},
)  # fmt: skip


def test_every_cell_of_an_import_report_is_of_the_import(qtbot: QtBot, context: Context) -> None:
    panel = ImportReportPanel(context)
    qtbot.addWidget(panel)
    panel.show()
    context.root.imported = ImportRecord(Path("/models/net.onnx"), REPORT, context.root)
    context.root.imported.comparing = False
    context.root_changed.emit(context.root)
    tables = {"nodes": panel.nodes, "weights": panel.weights, "templates": panel.templates, "cases": panel.cases}
    assert {name: titles(table.model()) for name, table in tables.items()} == {
        "nodes": ["Node", "Type", "Outcome", "Layers", "Reason"], "weights": ["Tensor of the original", "Layer", "Tensor of the layer"],
        "templates": ["Template", "Instances"], "cases": ["Inputs", "Largest difference", "Relative", "Output"],
    }  # fmt: skip
    assert cells(panel.nodes.model()) == [
        ["n3", "Strange", "opaque", "strange", "it is not known"], ["n1", "Conv", "known", "conv, relu", ""],
        ["n4", "Add", "known", "", ""], ["n2", "Constant", "folded", "conv", ""],
    ]  # fmt: skip
    assert [panel.nodes.model().index(row, 0).data(Qt.ItemDataRole.DecorationRole) is not None for row in range(4)] == [
        True, False, False, False
    ]  # fmt: skip
    assert cells(panel.weights.model()) == [["head.weight", "block.conv", "kernel"], ["head.bias", "conv", "bias"]]
    assert cells(panel.templates.model()) == [["block", "3 instances"], ["head", "1 instance"]]
    assert cells(panel.cases.model()) == [
        ["x 1 x 3 x 8 x 16, t 1", "0.0125", "2.5e-07", "out"], ["x 2 x 3 x 8 x 16", "not comparable", "not comparable", ""]
    ]  # fmt: skip
    tabs = panel._tabs
    shown = [tabs.tabText(number) for number in range(tabs.count()) if tabs.isTabVisible(number)]
    assert shown == ["Nodes (4)", "Weights (2)", "Templates (2)", "Comparison (2)"]
    assert panel._head.text() == f"net.onnx  ·  pytorch 2.9  ·  opset 17  ·  {REPORT.counts()}"
    assert panel._facts.text() == "An architecture; its license is MIT."
    assert panel._warnings.text().splitlines()[-2:] == ["The first warning.", "The second one."]
    assert (panel._result._role, panel._facts._role, panel._warnings._role) == ("positive", "info", "warning")
    assert not panel.cases.isColumnHidden(3)


def test_a_copied_report_has_the_opaque_nodes_only() -> None:
    outcomes = (
        NodeOutcome("k", "Conv", Outcome.KNOWN, ("conv",), "a reason"), NodeOutcome("o1", "Odd", Outcome.OPAQUE, ("odd",), "it is not known"),
        NodeOutcome("f", "Constant", Outcome.FOLDED, (), "a constant"), NodeOutcome("o2", "Odder", Outcome.OPAQUE),
    )  # fmt: skip
    report = msgspec.structs.replace(REPORT, outcomes=outcomes)
    assert report_text(report).splitlines() == [
        "net.onnx", *report.summary().splitlines(), "opaque: o1 (Odd): it is not known", "opaque: o2 (Odder): "
    ]  # fmt: skip


def test_each_difference_of_a_comparison_is_a_number_or_cannot_be_compared() -> None:
    shapes = {"x": (1, 3, 8, 16), "t": (2,)}
    for absolute, relative, texts in (
        (0.0125, 2.5e-7, ("0.0125", "2.5e-07")), (0.5, UNBOUNDED, ("0.5", "not comparable")),
        (UNBOUNDED, 0.25, ("not comparable", "0.25")), (UNBOUNDED, UNBOUNDED, ("not comparable",) * 2), (0.0, 0.0, ("0", "0")),
    ):  # fmt: skip
        assert _case_texts(shapes, absolute, relative, "out") == ("x 1 x 3 x 8 x 16, t 2", *texts, "out")


@pytest.mark.parametrize(
    ("changes", "comparing", "role", "words"),
    [
        ({"max_rel_difference": 2.5e-7}, False, "positive", None), ({"max_rel_difference": 0.5}, False, "warning", None),
        ({"max_rel_difference": None, "not_compared_because": "it has no inputs"}, False, "info", None),
        ({}, True, "info", "Comparing with the original ..."),
    ],
)  # fmt: skip
def test_the_result_of_a_comparison_has_its_severity(
    qtbot: QtBot, context: Context, changes: dict[str, object], comparing: bool, role: str, words: str | None
) -> None:
    panel = ImportReportPanel(context)
    qtbot.addWidget(panel)
    report = msgspec.structs.replace(REPORT, **changes, templates={}, cases=())
    record = context.root.imported = ImportRecord(None, report, context.root)
    record.comparing = comparing
    context.root_changed.emit(context.root)
    assert panel._result._role == role
    text = panel._result.text()
    assert text == words if words else text.rstrip(".").casefold() == report.comparison().rstrip(".").casefold()
    tabs = panel._tabs
    assert [tabs.isTabVisible(number) for number in range(tabs.count())] == [True, True, False, False]
    panel.weights.show_rows([])
    assert panel.weights.isColumnHidden(2)
    context.set_document(Document(Graph(), context.registry, parent=context))
    assert panel._stack.currentIndex() == 0


def test_a_report_has_nothing_of_the_one_before(qtbot: QtBot, context: Context) -> None:
    """Documents with a full report, a short one and none in turn, and a comparison that ends while another one is shown."""
    panel = ImportReportPanel(context)
    qtbot.addWidget(panel)
    panel.resize(800, 500)
    panel.show()
    plain = ImportReport(
        "plain.onnx", nodes=1, known=1, outcomes=(NodeOutcome("n", "Conv", Outcome.KNOWN, ("conv",)),),
        not_compared_because="it has no inputs",
    )  # fmt: skip
    records: dict[str, ImportRecord | None] = {}
    documents = {}
    for name, report in (("full", REPORT), ("plain", plain), ("none", None)):
        document = documents[name] = Document(Graph(), context.registry, parent=context)
        records[name] = None
        if report is not None:
            record = records[name] = document.imported = ImportRecord(Path("/models/net.onnx"), report, document)
            record.comparing = False

    def state() -> tuple[str, bool, bool, list[str], list[bool]]:
        """The head, whether facts and warnings are seen, the visible tabs, and whether the last columns are seen."""
        if panel._stack.currentIndex() == 0:
            return "", False, False, [], []
        tabs = panel._tabs
        names = [tabs.tabText(number) for number in range(tabs.count()) if tabs.isTabVisible(number)]
        tables = (panel.nodes, panel.weights, panel.templates, panel.cases)
        last = [not each.isColumnHidden(each.source.columnCount() - 1) for each in tables if each.source.rows]
        seen = (panel._facts.isVisible(), panel._warnings.isVisible())
        return panel._head.text().partition("  ·  ")[0], *seen, names, last

    expected = {
        "full": ("net.onnx", True, True, ["Nodes (4)", "Weights (2)", "Templates (2)", "Comparison (2)"], [True] * 4),
        "plain": ("plain.onnx", False, False, ["Nodes (1)"], [False]),
        "none": ("", False, False, [], []),
    }
    for name in ("full", "plain", "full", "none", "plain", "none", "full"):
        context.set_document(documents[name])
        assert state() == expected[name], name
        if name != "full":  # the comparison of a document that is not shown goes on
            full = records["full"]
            assert full is not None
            full.comparing = True
            full.changed.emit()
            assert name == "none" or "it has no inputs" in panel._result.text()
            full.comparing = False
    for text, nodes, tensors in (  # of any column, in any case, in every table
        ("STRANGE", ["n3"], 0), ("is not", ["n3"], 0), ("folded", ["n2"], 0), ("relu", ["n1"], 0), ("opaque", ["n3"], 0),
        ("bias", [], 1), ("kernel", [], 1), ("conv", ["n1", "n2"], 2), ("", ["n3", "n1", "n4", "n2"], 2),
    ):  # fmt: skip
        panel._filter.setText(text)
        assert [row[0] for row in cells(panel.nodes.model())] == nodes
        assert panel.weights.model().rowCount() == tensors
    panel._filter.setText("n1")
    assert [row[0] for row in cells(panel.nodes.model())] == ["n1"]
    panel.nodes.clicked.emit(panel.nodes.model().index(0, 0))
    assert panel.nodes.row_at(panel.nodes.model().index(0, 0)).layers == ("conv", "relu")
    panel.nodes.sortByColumn(0, Qt.SortOrder.DescendingOrder)
    panel._filter.setText("")
    names = [row[0] for row in cells(panel.nodes.model())]
    assert names == ["n4", "n3", "n2", "n1"]
    found = [panel.nodes.row_at(panel.nodes.model().index(row, 0)).texts[0] for row in range(4)]
    assert found == names


def test_a_row_of_a_report_leads_to_the_layers_that_are_left(qtbot: QtBot, context: Context) -> None:
    """In the template of the first one; a layer outside of it may be called the same."""
    layers = [
        Layer("x", "template_input"),
        Layer("conv", "identity"),
        Layer("y", "template_output"),
        Layer("more", "identity"),
    ]
    graph = Graph(
        [Layer("use", "template", params={"template": "part"}), Layer("conv", "identity"), Layer("more", "identity")],
        templates=[Template("part", tuple(layers))],
    )
    context.set_document(Document(graph, context.registry, parent=context))
    panel = ImportReportPanel(context)
    qtbot.addWidget(panel)
    said: list[tuple[str, str]] = []
    context.message.connect(lambda kind, text: said.append((kind, text)))
    revealed: list[str] = []
    context.reveal_requested.connect(revealed.append)
    for row, path, selected in (
        (("conv", "more"), "", ("conv", "more")),
        (("use.conv", "more"), "use", ("conv",)),
        (("more", "use.conv", "conv"), "", ("more", "conv")),
        (("use.more", "use.conv", "use.more"), "use", ("more", "conv")),
        (("gone", "conv", "use.more"), "", ("conv",)),
        (("gone", "use.gone", "use.conv", "conv"), "use", ("conv",)),
    ):
        for before in ("use", ""):
            context.set_scope(context.find(f"{before}.conv")[0] if before else ())
            context.select(())
            revealed.clear()
            panel._reveal(Row(("",), row))
            assert (context.path_of(""), context.selection) == (f"{path}." if path else "", selected), row
            assert revealed == [selected[0]]
    assert not said
    panel._reveal(Row(("",), ()))
    panel._reveal(Row(("",), ("gone", "use.gone")))
    assert said == [("info", "The layer gone no longer exists")]


@pytest.mark.parametrize("how", ["click", "Enter"])
@pytest.mark.parametrize(
    ("table", "row", "selected"), [("nodes", 1, ("conv", "relu")), ("nodes", 3, ("conv",)), ("weights", 1, ("conv",))]
)
def test_a_row_of_an_import_report_selects_its_layers(
    qtbot: QtBot, context: Context, table: str, row: int, selected: tuple[str, ...], how: str
) -> None:
    document = Document(Graph([Layer("relu", "relu"), Layer("conv", "convolution")]), context.registry, parent=context)
    document.imported = ImportRecord(None, REPORT, document)
    context.set_document(document)
    panel = shown(qtbot, ImportReportPanel(context), 700, 400)
    view = {"nodes": panel.nodes, "weights": panel.weights}[table]
    panel._tabs.setCurrentWidget(view)
    panel._filter.setText("conv")  # rows of the table are not those of the report
    kept = [number for number, cells_ in enumerate(cells(view.source)) if "conv" in " ".join(cells_)]
    index = view.model().index(kept.index(row), 0)
    if how == "click":
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(index).center())
    else:
        view.setFocus()
        view.setCurrentIndex(index)
        qtbot.keyClick(view, Qt.Key.Key_Return)
    assert context.selection == selected


@pytest.mark.parametrize("how", ["click", "Enter"])
def test_a_row_of_the_differences_shows_its_layer(qtbot: QtBot, context: Context, how: str) -> None:
    layers = [Layer("a", "identity"), Layer("b", "identity")]
    document, other = (Document(Graph(layers), context.registry, parent=context) for _ in range(2))
    context.set_document(document)
    context.comparison.with_document(other)
    panel = shown(qtbot, DifferencesPanel(context), 700, 400)
    document.do(lambda g: set_params(g, {"b": {"unknown": "1"}}))
    qtbot.waitUntil(lambda: panel.tree.topLevelItemCount() == 1)
    item = panel.tree.topLevelItem(0)
    with qtbot.waitSignal(context.reveal_requested) as asked:
        if how == "click":
            place = panel.tree.visualItemRect(item).center()
            qtbot.mouseClick(panel.tree.viewport(), Qt.MouseButton.LeftButton, pos=place)
        else:
            panel.tree.setFocus()
            panel.tree.setCurrentItem(item)
            qtbot.keyClick(panel.tree, Qt.Key.Key_Return)
    assert asked.args == ["b"]


# --- differences ---------------------------------------------------------------------------------------------------


def test_every_difference_is_a_row_with_its_values() -> None:
    value, other = ValueDifference("features", "8", "16"), ValueDifference("input 1", "a", "b")
    found = NetworkComparison(
        added=("new",), removed=("old",), renamed={"before": "after"}, changed={"b": (value,), "a": (value, other)},
        rewired={"b": (other,), "c": (other,)}, moved={"m": ((1, 2), (3, 4))}, properties=(value,), frames=(other,),
        templates_added=("t1",), templates_removed=("t2",), templates={"t3": NetworkComparison(added=("x",))},
        types={"new": "relu", "old": "pooling"},
    )  # fmt: skip
    assert list(difference_rows(found)) == [
        ("+", "added", "new", ["relu"]), ("−", "removed", "old", ["pooling"]), ("=", "renamed", "after", ["before → after"]),
        ("~", "changed", "a", [str(value), str(other)]), ("~", "changed", "b", [str(value), str(other)]),
        ("~", "changed", "c", [str(other)]), ("+", "added template", "t1", [""]), ("−", "removed template", "t2", [""]),
        ("~", "changed template", "t3", [found.templates["t3"].summary()]), ("~", "frame", "", [str(other)]),
        ("~", "document", "", [str(value)]), ("→", "moved", "m", ["1, 2 → 3, 4"]),
    ]  # fmt: skip


def test_a_row_of_the_differences_has_its_values_in_rows_below_it(qtbot: QtBot, context: Context) -> None:
    """If there are several; up to six are open. It has the color of its sign and the name of its layer."""
    panel = DifferencesPanel(context)
    qtbot.addWidget(panel)
    values = tuple(ValueDifference(f"p{n} <b>", "1", str(n)) for n in range(8))
    counts = (1, 2, 6, 7, 8)
    found = NetworkComparison(
        added=("new",), removed=("old",), renamed={"a": "b"}, moved={"m": ((1, 2), (3, 4))},
        changed={f"layer {count}": values[:count] for count in counts}, types={"new": "relu"},
    )  # fmt: skip
    comparison = context.comparison
    comparison.other, comparison.title, comparison.result = Graph(), "the other", found
    for _ in range(2):  # nothing stays of the rows before
        comparison.changed.emit()
        rows = [panel.tree.topLevelItem(n) for n in range(panel.tree.topLevelItemCount())]
        wanted = list(difference_rows(found))
        assert panel.head.text() == f"Since the other: {found.summary()}"
        assert [row.text(0) for row in rows] == [f"{sign} {kind}" for sign, kind, *_ in wanted]
        for row, (sign, _kind, name, details) in zip(rows, wanted, strict=True):
            several = len(details) > 1
            assert (row.text(1), row.data(0, LAYER)) == (name, name)
            assert row.text(2) == (f"{len(details)} values" if several else details[0])
            below = [row.child(n) for n in range(row.childCount())]
            assert [[each.text(n) for n in range(3)] for each in below] == [
                ["", "", text] for text in details if several
            ]
            assert not several or row.isExpanded() is (len(details) <= 6)
            assert row.toolTip(2) == plain_tip("\n".join(details))
            assert row.foreground(0).color() == theme.color(MARKS[sign])
    comparison.stop()
    assert panel.tree.topLevelItemCount() == 0


# --- findings ------------------------------------------------------------------------------------------------------


def finding(number: int, severity: Severity = Severity.ERROR, **where: object) -> Diagnostic:
    """Texts in another order in every column."""
    return Diagnostic(f"code-{number}", f"message {9 - number}", severity, remedy=f"remedy {(number * 7) % 5}", **where)


FINDINGS = (
    finding(1, Severity.INFO, layer="d", line=7), finding(2, layer="a", port="input 2", parameter="kernel", line=3),
    finding(3, Severity.WARNING, layer="c", parameter="features"), finding(4, layer="b"),
)  # fmt: skip


RANKS = ("Error", "Warning", "Note")


def test_the_cells_of_a_finding_name_its_place() -> None:
    assert [row_texts(each) for each in FINDINGS] == [
        ("Note", "d", "line 7", "Message 8.", "Remedy 2."), ("Error", "a", "input 2", "Message 7.", "Remedy 4."),
        ("Warning", "c", "features", "Message 6.", "Remedy 1."), ("Error", "b", "", "Message 5.", "Remedy 3."),
    ]  # fmt: skip
    twice = (*FINDINGS, reported_again(FINDINGS[1]), finding(2, layer="a", port="input 3", parameter="kernel"))
    assert [(each.code, each.port) for each in unique(twice)] == [
        ("code-2", "input 2"), ("code-4", None), ("code-2", "input 3"), ("code-3", None), ("code-1", None)
    ]  # fmt: skip


def reported_again(found: Diagnostic) -> Diagnostic:
    """An equal finding of another reporter, with another remedy."""
    return Diagnostic(**{**found.as_dict(), "severity": found.severity, "remedy": "another remedy"})  # type: ignore[arg-type]


def test_findings_are_counted_sorted_and_filtered_by_every_column(
    qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Document, "diagnostics", lambda _: FINDINGS)
    panel = TypeCheckingPanel(context)
    qtbot.addWidget(panel)
    panel.resize(900, 400)
    panel.show()
    model, buttons = (
        panel._table.model(),
        {name: panel.findChild(QToolButton, f"type_checking.{name}") for name in ("error", "warning", "info")},
    )
    assert [button.text() for button in buttons.values()] == ["2 errors", "1 warning", "1 note"]
    usual = [row_texts(each) for each in unique(FINDINGS)]
    assert cells(model) == [list(row) for row in usual]
    assert [model.index(row, 3).data(Qt.ItemDataRole.ToolTipRole) for row in range(4)] == [
        f"{row_texts(each)[3]} [{each.code}]" for each in unique(FINDINGS)
    ]
    for column in range(5):
        for order in (Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder):
            panel._table.sortByColumn(column, order)
            found = [row[column] for row in cells(model)]
            expected = sorted((row[column] for row in usual), key=RANKS.index if not column else str.casefold)
            assert found == (expected if order is Qt.SortOrder.AscendingOrder else expected[::-1])
    panel._table.sortByColumn(0, Qt.SortOrder.AscendingOrder)
    field = panel._filter
    for words, layers in (
        ("code-3", "c"),
        ("FEATURES", "c"),
        ("message 5", "b"),
        ("remedy 2", "ad"),
        ("error b", "b"),
        ("nothing", ""),
    ):
        field.setText(words)
        assert [row[1] for row in cells(model)] == list(layers), words
    field.clear()
    for name, left in (("error", "cd"), ("warning", "abd"), ("info", "abc")):
        QTest.mouseClick(buttons[name], Qt.MouseButton.LeftButton)
        assert sorted(row[1] for row in cells(model)) == list(left)
        QTest.mouseClick(buttons[name], Qt.MouseButton.LeftButton)


def test_tips_of_an_import_report_are_plain_text(qtbot: QtBot) -> None:
    owner = QWidget()
    qtbot.addWidget(owner)
    model = RowsModel(("Node", "Layer"), owner)
    model.show_rows((Row(("a<b>&c", "plain")),))
    tips = [model.index(0, column).data(Qt.ItemDataRole.ToolTipRole) for column in (0, 1)]
    assert tips == ["<p>a&lt;b&gt;&amp;c</p>", "plain"]
