"""Type Checking follows the document, filters, and leads to the layer."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QItemSelectionModel, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMenu, QPushButton, QTableView, QToolButton
from window_kit import empty, shown

from app.ui.design import fixes as fixing
from app.ui.design import type_checking
from app.ui.design.fix_bar import FixBar
from app.ui.design.type_checking import FindingsModel, TypeCheckingPanel, row_texts, unique
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.widgets.sentences import sentence
from app.ui.widgets.tooltips import plain_tip
from designer.graph.commands import add_layer, connect, set_params
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.graph.template_commands import edit_template, make_template
from designer.operators.fixes import Fix
from designer.operators.registry import default_registry


def broken_graph() -> Graph:
    return Graph(
        [
            Layer("input_0", "input", params={"dims": "64x48x3"}),
            Layer("conv_0", "convolution", inputs=(Source("input_0"),), params={"features": "many"}),
            Layer("pool_0", "pooling"),
            Layer("other_0", "identity", inputs=(Source("input_0"),), params={"strange": "1"}),
            Layer("output_0", "output", inputs=(Source("other_0"),)),
        ]
    )


@pytest.fixture
def context(qapp):
    context = Context(default_registry())
    context.set_document(Document(broken_graph(), context.registry))
    return context


@pytest.fixture
def panel(qtbot, context):
    return shown(qtbot, TypeCheckingPanel(context), 900, 260)


def rows(panel) -> list[tuple[str, str]]:
    model = panel.findChild(QTableView, "type_checking.findings").model()
    return [(model.index(r, 0).data(), model.index(r, 1).data()) for r in range(model.rowCount())]


def cell(panel, row, column=3):
    table = panel.findChild(QTableView, "type_checking.findings")
    return table, table.visualRect(table.model().index(row, column)).center()


def test_findings_are_listed_with_errors_first(panel):
    found = rows(panel)
    assert ("Error", "conv_0") in found
    assert ("Error", "pool_0") in found
    assert found[-1] == ("Warning", "other_0")
    assert panel.findChild(QToolButton, "type_checking.error").text() == "2 errors"
    assert panel.findChild(QToolButton, "type_checking.warning").text() == "1 warning"


def test_severity_has_a_shape_beside_its_colour(panel):
    model = panel.findChild(QTableView, "type_checking.findings").model()
    images = {
        model.index(r, 0).data(): model.index(r, 0).data(Qt.ItemDataRole.DecorationRole).pixmap(16, 16).toImage()
        for r in range(model.rowCount())
    }
    masks = [i.createAlphaMask() for i in images.values()]
    assert masks[0] != masks[1]


def test_mending_removes_findings_and_the_empty_state_says_so(qtbot, panel, context):
    do = context.document.do
    do(lambda g: set_params(g, {"conv_0": {"features": "4"}}))
    do(lambda g: connect(g, Source("input_0"), "pool_0", 0))
    qtbot.waitUntil(lambda: rows(panel) == [("Warning", "other_0")])
    context.set_document(Document(Graph([Layer("input_0", "input")]), context.registry))
    assert empty(panel).isVisible()
    assert empty(panel).text().startswith("No problems")
    do = context.document.do
    do(lambda g: set_params(g, {"input_0": {"dims": "3"}}))
    qtbot.waitUntil(lambda: rows(panel) == [("Error", "input_0")])


def test_a_template_without_problems_is_not_called_a_network_without(panel, context):
    context.root.do(lambda g: make_template(g, ["other_0"], "part"))
    context.root.do(lambda g: edit_template(g, "part", set_params(g.inside("part"), {"other_0": {"strange": None}})))
    assert context.enter(next(layer.name for layer in context.root.graph if layer.type == "template"))
    assert context.root.diagnostics()
    assert empty(panel).text() == "No problems in this template."
    context.leave()
    assert rows(panel)


def test_what_an_empty_list_says_whatever_it_said_before(qtbot, context):
    """Of a network with and without templates, of a template, behind a filter and before a document is open; each after each."""
    inside = (Layer("x", "template_input"), Layer("y", "template_output", inputs=(Source("x"),)))
    layer = Layer("input_0", "input", params={"dims": "8x8x3"})
    part = Layer("part_0", "template", inputs=(Source("input_0"),), params={"template": "part"})
    plain, wrong = Graph([layer]), Graph([Layer("input_0", "input", params={"dims": "8"})])
    fine = "check-circle-outline"
    nothing = shown(qtbot, TypeCheckingPanel(Context(default_registry())), 900, 260)
    before = "Open or create a network to see its problems here."
    assert (empty(nothing).text(), empty(nothing)._icon_name) == (before, fine)
    panel = shown(qtbot, TypeCheckingPanel(context), 900, 260)
    out = Layer("output_0", "output", inputs=(Source("part_0"),))
    with_template = Graph([layer, part, out], templates=[Template("part", inside)])
    made = {
        name: Document(graph, context.registry)
        for name, graph in (("plain", plain), ("whole", with_template), ("wrong", wrong))
    }
    expected = {
        "plain": ("No problems found.", fine),
        "whole": ("No problems found.", fine),
        "inside": ("No problems in this template.", fine),
        "hidden": ("The filter hides the only problem.", "filter-outline"),
        "wrong": None,
    }
    words = panel.findChild(QLineEdit, "type_checking.filter")
    names = list(expected)
    for name in [each for pair in itertools.product(names, names) for each in pair]:
        words.setText("nothing of this" if name == "hidden" else "")
        context.set_document(made["whole" if name == "inside" else "wrong" if name == "hidden" else name])
        context.set_scope(())
        if name == "inside":
            assert context.enter("part_0")
        says = (empty(panel).text(), empty(panel)._icon_name) if empty(panel).isVisible() else None
        assert says == expected[name], name
        assert bool(rows(panel)) is (name == "wrong")


def test_a_click_and_enter_reveal_the_layer(qtbot, panel, context):
    wanted = rows(panel)[1][1]
    table, spot = cell(panel, 1)
    with qtbot.waitSignal(context.reveal_requested) as asked:
        qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    assert asked.args == [wanted]
    qtbot.keyClick(table, Qt.Key.Key_Up)
    with qtbot.waitSignal(context.reveal_requested) as asked:
        qtbot.keyClick(table, Qt.Key.Key_Return)
    assert asked.args == [rows(panel)[0][1]]


def test_filters_by_word_and_by_severity(qtbot, panel):
    field = panel.findChild(QLineEdit, "type_checking.filter")
    qtbot.keyClicks(field, "POOL")
    assert rows(panel) == [("Error", "pool_0")]
    field.clear()
    qtbot.mouseClick(panel.findChild(QToolButton, "type_checking.error"), Qt.MouseButton.LeftButton)
    assert rows(panel) == [("Warning", "other_0")]
    qtbot.mouseClick(panel.findChild(QToolButton, "type_checking.warning"), Qt.MouseButton.LeftButton)
    assert "hides all 3" in empty(panel).text()


def test_a_finding_can_be_copied_with_its_code(qtbot, panel):
    table, spot = cell(panel, 0)
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert "[bad-parameter]" in QApplication.clipboard().text()


def test_without_a_document_it_says_what_will_stand_here(qtbot):
    panel = TypeCheckingPanel(Context(default_registry()))
    qtbot.addWidget(panel)
    assert empty(panel).text().startswith("Open or create")


def test_reader_and_inference_do_not_report_twice():
    read = Diagnostic("bad-parameter", "wrong", layer="a", line=3, file="x.xml")
    reported = Diagnostic("bad-parameter", "wrong", layer="a")
    other = Diagnostic("note", "well", Severity.INFO)
    assert unique([other, read, reported]) == (read, other)


def test_a_click_on_a_header_sorts(qtbot, panel):
    header = panel.findChild(QTableView, "type_checking.findings").horizontalHeader()
    spot = QPoint(header.sectionViewportPosition(1) + 5, header.height() // 2)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    names = [layer for _, layer in rows(panel)]
    assert names == sorted(names)


def test_the_fixes_of_a_finding_are_buttons(qtbot, panel, context):
    bar = panel.findChild(FixBar, "type_checking.fixes")
    table, place = cell(panel, [r[1] for r in rows(panel)].index("conv_0"))
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    qtbot.waitUntil(lambda: [fix.title for fix in bar.fixes][:1] == ["Reset features to 32"])
    before = context.document.graph.copy()
    button = bar.findChild(QPushButton, "type_checking.fixes.0")
    assert button.text() == "Reset features to 32"
    said = []
    context.message.connect(lambda severity, text: said.append(text))
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert context.document.graph["conv_0"].params["features"] == "32"
    assert said == ["Fixed: Reset features to 32. Press Ctrl+Z to undo."]
    assert context.document.history.undo_title == "Reset features to 32"
    qtbot.waitUntil(lambda: ("Error", "conv_0") not in rows(panel))
    qtbot.waitUntil(lambda: "Connect" in button.text())  # the finding that is shown now
    context.document.undo()
    assert context.document.graph == before


def test_fixes_of_a_large_network_come_later_and_follow_the_edits(qtbot, panel, context, monkeypatch):
    monkeypatch.setattr(fixing, "SLICE_MS", 0)  # as if the network were large
    bar = panel.findChild(FixBar, "type_checking.fixes")
    label = bar.findChild(QLabel, "type_checking.fixes.label")
    said = []
    show = bar.show_search
    monkeypatch.setattr(bar, "show_search", lambda: (show(), said.append(label.text())))
    for name in ("other_0", "conv_0"):
        said.clear()
        table, place = cell(panel, [r[1] for r in rows(panel)].index(name))
        qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
        qtbot.waitUntil(lambda: said == ["Searching for fixes..."])
        qtbot.waitUntil(lambda: len(bar.fixes) == 1)
    old = bar.fixes[0]
    context.document.do(lambda g: set_params(g, {"conv_0": {"kernel_size": "5x5"}}))  # the finding stays as it is
    qtbot.waitUntil(lambda: len(bar.fixes) == 1 and bar.fixes[0] != old)
    qtbot.mouseClick(bar.findChild(QPushButton, "type_checking.fixes.0"), Qt.MouseButton.LeftButton)
    assert context.document.graph["conv_0"].params == {"kernel_size": "5x5", "features": "32"}


def test_the_menu_of_a_finding_has_its_fixes(qtbot, panel, context):
    row = [r[1] for r in rows(panel)].index("other_0")
    table, place = cell(panel, row)
    table.customContextMenuRequested.emit(place)
    menu = panel.findChild(QMenu, "type_checking.menu")
    titles = [action.text() for action in menu.actions()]
    assert titles[0] == "Remove 'strange'"
    menu.actions()[0].trigger()
    menu.close()
    assert context.document.graph["other_0"].params == {}


def test_a_finding_without_a_fix_says_so(qtbot, panel, context):
    context.set_document(Document(Graph([Layer("a_0", "no_such_thing")]), context.registry))
    table, place = cell(panel, 0)
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    bar = panel.findChild(FixBar, "type_checking.fixes")
    label = bar.findChild(QLabel, "type_checking.fixes.label")
    qtbot.waitUntil(lambda: bar.isVisible() and label.text() == "No fix available.")


def test_buttons_go_into_another_line_in_a_narrow_dock(qtbot, panel):
    bar = panel.findChild(FixBar, "type_checking.fixes")
    bar.show_fixes([Fix(f"Do the thing number {n}", Edit("x")) for n in range(4)])
    panel.resize(900, 260)
    QApplication.processEvents()
    wide = bar.height()
    panel.resize(330, 260)
    QApplication.processEvents()
    buttons = bar.findChildren(QPushButton)
    assert bar.height() > wide
    assert all(bar.rect().contains(b.geometry()) for b in buttons)
    assert not any(a.geometry().intersects(b.geometry()) for a in buttons for b in buttons if a is not b)


def test_one_problem_is_selected_whatever_keys_are_held(qtbot, panel, context):
    """Ctrl is still held when the problems change after Ctrl+Z."""
    table = panel.findChild(QTableView, "type_checking.findings")
    search = panel.findChild(QLineEdit, "type_checking.filter")

    def selected() -> set[int]:
        return {index.row() for index in table.selectionModel().selectedIndexes()}

    QTest.keyPress(panel, Qt.Key.Key_Control, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.keyboardModifiers() == Qt.KeyboardModifier.ControlModifier
    try:
        for _ in range(2):
            context.document.do(lambda g: set_params(g, {"conv_0": {"features": "8"}}))
            qtbot.waitUntil(lambda: ("Error", "conv_0") not in rows(panel))
            assert selected() == {0}
            context.document.undo()
            qtbot.waitUntil(lambda: ("Error", "conv_0") in rows(panel))
            assert selected() == {table.currentIndex().row()}
        for text in ("pool", "", "pool", ""):
            search.setText(text)
            assert selected() == {table.currentIndex().row()}
    finally:
        QTest.keyRelease(panel, Qt.Key.Key_Control)


# --- the row after a fix, and searches that end ----------------------------------------------------------------------


def several() -> Graph:
    """Five convolutions with the same mistake, each with fixes."""
    layers = [Layer("image", "input", params={"dims": "32x32x3"})]
    layers += [
        Layer(f"conv_{n}", "convolution", inputs=(Source("image"),), params={"features": "none"}) for n in range(5)
    ]
    return Graph([*layers, Layer("out", "output", inputs=(Source("image"),))], name="several")


@pytest.fixture
def five(qtbot):
    """The panel over that network, its document and the layers of its rows, with the current one."""
    context = Context(default_registry())
    document = Document(several(), context.registry, parent=context)
    context.set_document(document)
    panel = shown(qtbot, TypeCheckingPanel(context), 900, 400)
    context.setParent(panel)

    def rest() -> None:
        qtbot.waitUntil(
            lambda: not (panel._later.isActive() or panel._find_fixes.isActive() or panel._search.active),
            timeout=30_000,
        )

    def state() -> tuple[list[str], str]:
        rest()
        model, current = panel._table.model(), panel._finding(panel._table.currentIndex())
        found = [model.index(row, 1).data() for row in range(model.rowCount())]
        return [name for name in found if name.startswith("conv")], (current.layer or "") if current is not None else ""

    return panel, document, state


def choose_layer(panel, name: str) -> None:
    model = panel._table.model()
    row = next(row for row in range(model.rowCount()) if model.index(row, 1).data() == name)
    QTest.mouseClick(panel._table.viewport(), Qt.MouseButton.LeftButton, pos=panel._table.visualRect(model.index(row, 3)).center())  # fmt: skip


def selected_rows(panel) -> list[int]:
    return sorted({index.row() for index in panel._table.selectionModel().selectedRows()})


@pytest.mark.parametrize(("fixed", "then"), [(0, "conv_1"), (1, "conv_2"), (3, "conv_4"), (4, "conv_3")])
def test_the_finding_that_took_the_row_of_a_fixed_one_is_the_next(five, fixed, then):
    panel, _, state = five
    names = state()[0]
    assert names == [f"conv_{n}" for n in range(5)]
    assert panel._table.model().rowCount() == 5
    choose_layer(panel, names[fixed])
    assert state()[1] == names[fixed]
    panel._fixes.chosen.emit(panel._fixes.fixes[0])
    assert state() == ([name for name in names if name != names[fixed]], then)
    assert selected_rows(panel) == [panel._table.currentIndex().row()]
    assert panel._fixes.isVisible()
    assert panel._fixes.fixes


def test_the_next_finding_is_that_of_the_shown_order(five):
    panel, _, state = five
    panel._table.sortByColumn(1, Qt.SortOrder.DescendingOrder)
    assert state()[0] == [f"conv_{n}" for n in (4, 3, 2, 1, 0)]
    choose_layer(panel, "conv_3")
    state()
    panel._fixes.chosen.emit(panel._fixes.fixes[0])
    assert state() == (["conv_4", "conv_2", "conv_1", "conv_0"], "conv_2")


def test_only_the_fix_itself_moves_on_from_its_row(five):
    panel, document, state = five
    state()
    choose_layer(panel, "conv_3")
    state()
    panel._fixes.chosen.emit(panel._fixes.fixes[0])
    assert state() == (["conv_0", "conv_1", "conv_2", "conv_4"], "conv_4")
    choose_layer(panel, "conv_1")
    document.do(lambda g: set_params(g, {"conv_1": {"features": "4"}}))  # not by a fix
    assert state() == (["conv_0", "conv_2", "conv_4"], "conv_0")
    document.undo()
    assert state()[1] == "conv_0"
    document.undo()
    assert state() == ([f"conv_{n}" for n in range(5)], "conv_0"), "the row of the last fix is forgotten"
    for name in ("conv_0", "conv_1", "conv_2", "conv_3", "conv_4"):
        assert state()[1] == name
        panel._fixes.chosen.emit(panel._fixes.fixes[0])
    assert state() == ([], "")
    assert not panel._fixes.isVisible()


def test_a_fix_that_changes_nothing_leaves_the_current_finding(five, monkeypatch):
    panel, document, state = five
    state()
    choose_layer(panel, "conv_2")
    state()
    monkeypatch.setattr(fixing, "apply", lambda context, fix: None)
    panel._fixes.chosen.emit(panel._fixes.fixes[0])
    assert state()[1] == "conv_2"
    document.do(lambda g: set_params(g, {"conv_0": {"features": "4"}}))
    assert state() == (["conv_1", "conv_2", "conv_3", "conv_4"], "conv_2")


def test_a_search_ends_with_its_document_its_finding_and_its_panel(five, monkeypatch):
    panel, document, state = five
    state()
    monkeypatch.setattr(fixing, "SLICE_MS", -1)  # a step a turn

    def begin(name: str) -> None:
        choose_layer(panel, name)
        panel._find_fixes.stop()
        panel._show_fixes()
        assert panel._search.active
        assert panel._fixes._label.text() == "Searching for fixes..."
        assert panel._fixes.fixes == ()

    begin("conv_1")
    panel.hide()
    panel._show_fixes()
    assert not panel._search.active
    assert not panel._fixes.isVisible()
    panel.show()
    begin("conv_2")
    panel._filter.setText("nothing like it")
    panel._show_fixes()
    assert not panel._search.active
    panel._filter.setText("")
    begin("conv_3")
    stopped: list[int] = []
    panel._search.found.connect(lambda _found: stopped.append(1))
    monkeypatch.setattr(type_checking, "LARGE", 3)
    other = Document(broken_graph(), document.registry, parent=panel._context)
    panel._context.set_document(other)
    assert not panel._search.active, "the search of another document"
    assert panel._model.findings == (), "those of a large network come after it has been shown"
    assert stopped == []
    assert state()[0]
    assert panel._finding(panel._table.currentIndex()) == panel._model.findings[0]
    before = panel._model.findings
    document.do(lambda g: set_params(g, {"conv_0": {"features": "4"}}))
    state()
    assert panel._model.findings == before, "the other document is not followed any more"


def test_the_buttons_of_the_severities_count_and_hide_their_findings(qtbot):
    context = Context(default_registry())
    document = Document(several(), context.registry, parent=context)
    document.reading = (
        *(Diagnostic("w", f"warning {n}", Severity.WARNING) for n in range(2)),
        Diagnostic("n", "a note", Severity.INFO),
    )
    context.set_document(document)
    panel = shown(qtbot, TypeCheckingPanel(context), 900, 400)
    context.setParent(panel)
    qtbot.waitUntil(lambda: not panel._later.isActive())
    texts = {"error": "error", "warning": "warning", "info": "note"}
    counts = {kind: sum(1 for d in panel._model.findings if d.severity.value == kind) for kind in texts}
    assert (counts["error"], counts["warning"]) == (5, 2)
    buttons = {kind: panel.findChild(QToolButton, f"type_checking.{kind}") for kind in texts}
    for kind, word in texts.items():
        number = counts[kind]
        assert buttons[kind].text() == f"{number} {word}{'' if number == 1 else 's'}"
        assert buttons[kind].accessibleName() == f"Show {word}s, {number}"
        assert buttons[kind].toolTip() == f"Show or hide the {word}s"
        assert buttons[kind].isChecked()
    names = {"Error": "error", "Warning": "warning", "Note": "info"}
    for hidden in (set(), {"error"}, {"warning", "info"}, {"error", "info"}, {"error", "warning", "info"}):
        for kind, button in buttons.items():
            button.setChecked(kind not in hidden)
        kinds = [names[severity] for severity, _ in rows(panel)]
        assert kinds == [kind for kind in texts for _ in range(counts[kind]) if kind not in hidden]
        assert panel._table.isVisible() is (len(hidden) < 3)
    total = sum(counts.values())
    assert empty(panel).text() == f"The filter hides all {total} problems."


def test_a_fix_that_is_refused_says_nothing_was_fixed(five):
    panel, document, state = five
    state()
    context, said, refused = panel._context, [], []
    context.message.connect(lambda severity, text: said.append((severity, text)))
    document.refused.connect(refused.append)
    fix = panel._fixes.fixes[0]
    fixing.apply(context, fix)
    assert said == [("info", f"Fixed: {fix.title}. Press Ctrl+Z to undo.")]
    said.clear()
    wrong = Fix(fix.title, lambda graph: connect(graph, Source("nowhere"), "conv_1", 0))  # type: ignore[arg-type]
    fixing.apply(context, wrong)
    assert len(refused) == 1
    assert said == []


@pytest.mark.parametrize(
    ("selected", "offered"), [((), False), (("conv_1",), True), (("image",), False), (("conv_1", "conv_2"), False)]
)
def test_only_a_single_layer_with_problems_has_a_menu_of_fixes(five, selected, offered):
    panel, _, state = five
    state()
    panel._context.select(selected)
    for filled in (True, False):
        menu = QMenu(panel)
        first = menu.addAction("first") if filled else None
        fixing.add_menu(menu, panel._context)
        added = menu.actions()[: len(menu.actions()) - filled]
        assert bool(added) is offered
        if offered:
            assert added[0].menu().objectName() == "canvas.menu.fix"
            assert (added[0].text(), added[0].menu().title()) == ("Fi&x", "Fi&x")
            assert [each.isSeparator() for each in added[1:]] == [True] * filled
            assert (menu.actions()[-1] is first) is filled
    empty_context = Context(default_registry(), panel)
    menu = QMenu(panel)
    fixing.add_menu(menu, empty_context)
    assert menu.actions() == []


def test_a_layer_in_a_template_has_a_menu_of_its_own_fixes(qtbot, context):
    """Also where the file has a layer of the same name that has other problems, or none."""
    outer = context.root
    outer.do(lambda g: make_template(g, ["conv_0"], "part"))
    inner = set_params(outer.graph.inside("part"), {"conv_0": {"features": "many", "kernel": "0x3"}})
    outer.do(lambda g: edit_template(g, "part", inner))
    outer.do(lambda g: add_layer(g, Layer("pool_1", "pooling")))
    assert context.enter(next(layer.name for layer in outer.graph if layer.type == "template"))
    for name, offered in (("conv_0", True), ("pool_0", False), ("pool_1", False)):
        context.select((name,))
        menu = QMenu()
        qtbot.addWidget(menu)
        fixing.add_menu(menu, context)
        assert bool(menu.actions()) is offered
    context.select(("conv_0",))
    menu = QMenu()
    qtbot.addWidget(menu)
    fixing.add_menu(menu, context)
    part = menu.actions()[0].menu()
    qtbot.waitUntil(
        lambda: part.findChild(QAction, "fix.search") is None or "Searching" not in part.actions()[-1].text()
    )
    expected = fixing.fixes_of(context.document, context.document.inference.states["conv_0"].diagnostics)
    shown_ = [action.text() for action in part.actions()]
    assert shown_ == ([fix.title for fix in expected] or ["No fix available: see Type Checking"])


# --- with made-up problems -------------------------------------------------------------------------------------------


class Problems(Document):
    """A network that has the problems that the test says."""

    told: tuple[Diagnostic, ...] = ()

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self.told

    def say(self, *found: Diagnostic) -> None:
        self.told = found
        self.states_changed.emit(set())


class Search(QObject):
    """In place of the search for fixes: notes what is searched for."""

    found = Signal(object)
    stopped = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.active = False
        self.asked: list[object] = []

    def start(self, document: Document, findings: list[Diagnostic]) -> None:
        self.active = True
        self.asked.append((document, *findings))

    def stop(self) -> None:
        self.active = False
        self.asked.append("stop")

    def heard(self) -> list[object]:
        for _ in range(4):  # one turn begins the next one
            QApplication.processEvents()
        asked, self.asked = self.asked, []
        return asked


def problem(name: str, severity: Severity = Severity.ERROR, **fields) -> Diagnostic:
    return Diagnostic(f"code-{name}", f"{name} is wrong", severity, layer=name, **fields)


A, B, C, D = (problem(name) for name in "abcd")


class Bench:
    """A panel over made-up problems, with made-up searches."""

    def __init__(self, qtbot, monkeypatch) -> None:
        monkeypatch.setattr(fixing, "FixSearch", Search)
        self.applied: list[object] = []
        monkeypatch.setattr(fixing, "apply", lambda context, fix: self.applied.append(fix))
        self.context = Context(default_registry())
        self.document = Problems(broken_graph(), self.context.registry)
        self.context.set_document(self.document)
        self.panel = shown(qtbot, TypeCheckingPanel(self.context), 900, 300)
        self.search, self.table, self.bar = self.panel._search, self.panel._table, self.panel._fixes

    def say(self, *found: Diagnostic) -> None:
        self.document.say(*found)
        for _ in range(4):
            QApplication.processEvents()

    def choose(self, finding: Diagnostic) -> None:
        row = [name for _, name in rows(self.panel)].index(finding.layer)
        self.table.setCurrentIndex(self.table.model().index(row, 0))
        QApplication.processEvents()

    def current(self) -> str | None:
        """The layer of the current problem, which alone is selected."""
        index = self.table.currentIndex()
        chosen = {i.row() for i in self.table.selectionModel().selectedRows()}
        assert chosen == ({index.row()} if index.isValid() else set())
        return index.siblingAtColumn(1).data() if index.isValid() else None


@pytest.fixture
def bench(qtbot, monkeypatch) -> Bench:
    return Bench(qtbot, monkeypatch)


def test_the_current_problem_stays_or_the_next_one_follows_a_fix(bench):
    """Without a fix, the first one follows; also where an earlier fix did not remove its problem."""
    fix = Fix("Do it", Edit("x"))
    for chosen in (A, B, C, D):
        for fixed in (False, True):
            bench.say()
            assert bench.current() is None
            bench.say(A, B, C, D)
            assert bench.current() == "a"
            bench.choose(chosen)
            bench.say(D, C, B, A)  # in another order
            assert bench.current() == (chosen.layer if chosen is not A else "d")  # the first one, if none was chosen
            bench.say(A, B, C, D)
            assert bench.current() == chosen.layer
            rest = [d for d in (A, B, C, D) if d is not chosen]
            if fixed:
                bench.bar.chosen.emit(fix)
            bench.say(*rest)
            number = (A, B, C, D).index(chosen)
            assert bench.current() == (rest[min(number, 2)].layer if fixed else "a" if chosen is not A else "b"), chosen
    assert bench.applied == [fix] * 4
    bench.say(A, B, C, D)
    bench.choose(C)
    bench.bar.chosen.emit(fix)
    bench.say(A, C, D)  # another problem went away with it
    assert bench.current() == "c"
    bench.say(A, D)
    assert bench.current() == "a"
    bench.bar.chosen.emit("no fix")
    assert len(bench.applied) == 5


def test_fixes_are_searched_for_the_current_problem_of_the_shown_network_alone(bench):
    search, document = bench.search, bench.document
    bench.say(A, B)
    search.heard()
    bench.choose(B)
    assert search.heard() == [(document, B)]
    assert bench.bar.isVisible()
    search.stopped.emit()  # the network changed meanwhile
    assert search.heard() == [(document, B)]
    bench.panel._filter.setText("b")
    search.heard()
    bench.panel._filter.setText("of nothing")
    assert search.heard()[-1] == "stop"
    assert not bench.bar.fixes
    bench.panel._filter.clear()
    assert search.heard()[-1] in ((document, A), (document, B))
    bench.panel.hide()
    bench.choose(A)
    bench.say(A, D)
    assert search.heard()[-1] == "stop"
    bench.panel.show()
    assert search.heard()[-1] == (document, A)
    other = Problems(broken_graph(), bench.context.registry)
    other.told = (C,)
    bench.context.set_document(other)
    assert search.asked[0] == "stop"
    assert search.heard()[-1] == (other, C)
    document.say(B)  # of the network that was shown before
    assert search.heard() == []
    assert rows(bench.panel) == [("Error", "c")]


def test_a_large_network_is_looked_at_a_moment_after_it_is_shown(bench, monkeypatch):
    monkeypatch.setattr("app.ui.design.type_checking.LARGE", 2)
    bench.say(A)
    other = Problems(broken_graph(), bench.context.registry)
    other.told = (C, D)
    bench.context.set_document(other)
    assert rows(bench.panel) == []
    assert bench.search.asked[-1] == "stop"
    QApplication.processEvents()
    assert rows(bench.panel) == [("Error", "c"), ("Error", "d")]


def test_problems_are_ordered_named_placed_counted_and_copied(bench):
    found = (
        problem("note", Severity.INFO, remedy="leave it"),
        problem("port", port="x", parameter="p", line=3),
        problem("warning", Severity.WARNING, parameter="p", line=4),
        problem("line", line=7),
        problem("port", port="y"),
        problem("port", port="x"),  # twice, without its parameter
        problem("plain", Severity.WARNING),
    )
    bench.say(*found)
    table, model = bench.table, bench.table.model()
    cells = [tuple(model.index(row, column).data() for column in range(5)) for row in range(model.rowCount())]
    assert cells == [
        ("Error", "port", "x", "Port is wrong.", ""),
        ("Error", "line", "line 7", "Line is wrong.", ""),
        ("Error", "port", "y", "Port is wrong.", ""),
        ("Error", "port", "x", "Port is wrong.", ""),
        ("Warning", "warning", "p", "Warning is wrong.", ""),
        ("Warning", "plain", "", "Plain is wrong.", ""),
        ("Note", "note", "", "Note is wrong.", "Leave it."),
    ]
    toggles = {s: bench.panel.findChild(QToolButton, f"type_checking.{s.value}") for s in Severity}
    assert [toggles[s].text() for s in Severity] == ["4 errors", "2 warnings", "1 note"]
    assert [toggles[s].accessibleName() for s in Severity] == [
        "Show errors, 4",
        "Show warnings, 2",
        "Show notes, 1",
    ]
    flags = QItemSelectionModel.SelectionFlag
    for row in (5, 1, 2):
        table.selectionModel().select(model.index(row, 0), flags.Select | flags.Rows)
    table.selectionModel().select(model.index(0, 0), flags.Deselect | flags.Rows)
    bench.panel._copy()
    assert QApplication.clipboard().text().splitlines() == [str(d) for d in (found[3], found[4], found[6])]
    for column, order in itertools.product(range(5), Qt.SortOrder):  # in the order of the table
        table.sortByColumn(column, order)
        chosen = {index.row() for index in table.selectionModel().selectedRows()}
        bench.panel._copy()
        copied = QApplication.clipboard().text().splitlines()
        assert copied == [str(bench.panel._finding(model.index(row, 0))) for row in sorted(chosen)]
        assert sorted(copied) == sorted(str(d) for d in (found[3], found[4], found[6]))
    table.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
    for text, names in (
        ("CODE-PORT", ["port"] * 3),
        ("wrong line", ["line"]),
        ("leave", ["note"]),
        ("warning p", ["warning", "plain"]),
        ("is absent", []),
    ):
        bench.panel._filter.setText(text)
        assert [name for _, name in rows(bench.panel)] == names, text
    bench.panel._filter.clear()
    table.sortByColumn(0, Qt.SortOrder.DescendingOrder)
    assert [what for what, _ in rows(bench.panel)] == ["Note", "Warning", "Warning", "Error", "Error", "Error", "Error"]
    table.sortByColumn(1, Qt.SortOrder.AscendingOrder)
    assert [name for _, name in rows(bench.panel)] == ["line", "note", "plain", "port", "port", "port", "warning"]


def test_every_fact_of_a_cell(qapp):
    """The tip of a problem ends with its code; only the severity has a mark; the severities are sorted by rank, not by name."""
    found = (
        problem("one", Severity.ERROR, port="X", remedy="mend <it>"),
        problem("two", Severity.WARNING, parameter="p"),
        problem("three", Severity.INFO, line=0),
    )
    model = FindingsModel()
    model.show_findings(found)
    assert (model.rowCount(), model.columnCount(), model.rowCount(model.index(0, 0))) == (3, 5, 0)
    heads = [model.headerData(n, Qt.Orientation.Horizontal) for n in range(5)]
    assert heads == ["Severity", "Layer", "Where", "Problem", "What to do"]
    assert model.headerData(0, Qt.Orientation.Vertical) is None
    assert model.headerData(0, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole) is None
    places = ("X", "p", "line 0")
    for row, (finding, rank) in enumerate(zip(found, "012", strict=True)):
        texts = row_texts(finding)
        assert texts[1:4] == (finding.layer, places[row], sentence(finding.message))
        for column, text in enumerate(texts):
            cell = model.index(row, column)
            tip = f"{text} [{finding.code}]" if column == 3 else text
            assert cell.data() == text
            assert cell.data(Qt.ItemDataRole.ToolTipRole) == plain_tip(tip)
            assert cell.data(Qt.ItemDataRole.UserRole) == (text.casefold() if column else rank)
            assert (cell.data(Qt.ItemDataRole.DecorationRole) is not None) is (column == 0)
            assert cell.data(Qt.ItemDataRole.FontRole) is None
            aligned = Qt.AlignmentFlag(cell.data(Qt.ItemDataRole.TextAlignmentRole))
            assert aligned == Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


def test_the_menu_is_that_of_the_problem_below_the_pointer(bench, monkeypatch):
    filled = []
    monkeypatch.setattr(fixing, "fill", lambda menu, context, findings: filled.append(findings))
    bench.say(A, B, C)
    bench.choose(A)
    for row, finding in enumerate((A, B, C)):
        table, place = cell(bench.panel, row)
        table.customContextMenuRequested.emit(place)
        assert filled.pop() == [finding]
        for menu in bench.panel.findChildren(QMenu, "type_checking.menu"):
            menu.close()
    table.customContextMenuRequested.emit(QPoint(5, table.viewport().height() - 2))
    assert filled == []
