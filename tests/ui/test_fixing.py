"""Fixes from the canvas's own menu, on the real window."""

from __future__ import annotations

from itertools import product

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QPushButton, QTableView, QWidget
from window_kit import show, shown

from app.ui.design import fixes as fixing
from app.ui.design.fix_bar import FixBar
from app.ui.document.document import Document
from app.ui.widgets.tooltips import plain_tip
from designer.graph import commands
from designer.graph.commands import set_params
from designer.graph.diagnostics import Diagnostic
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.fixes import Fix
from designer.operators.registry import default_registry


def menu_at(window, name: str) -> QMenu:
    """The canvas's menu over a layer, opened by a right click."""
    view, point = window.canvas.viewer.viewport(), kit.node(window.canvas, name)
    kit.QTest.mouseClick(view, kit.Qt.MouseButton.RightButton, pos=point)
    QApplication.sendEvent(view, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, point, view.mapToGlobal(point)))
    return window.findChild(QMenu, "canvas.menu")


@pytest.fixture
def window(shared_window):
    return show(shared_window, kit.small_graph())


def test_a_layer_with_a_problem_offers_its_fixes(window):
    document = window.context.document
    document.do(lambda g: set_params(g, {"conv": {"features": "many"}}))
    menu = menu_at(window, "conv")
    fix = menu.actions()[0].menu()
    assert fix.objectName() == "canvas.menu.fix"
    entry = next(a for a in fix.actions() if a.text() == "Reset features to 32")
    entry.trigger()
    menu.close()
    assert document.graph["conv"].params["features"] == "32"
    document.undo()
    assert document.graph["conv"].params["features"] == "many"


def test_each_entry_of_the_menu_applies_the_fix_that_it_names(window):
    context = window.context
    document = context.document
    document.do(lambda g: set_params(g, {"conv": {"features": "many", "kernel": "0x0", "stride": "2x2"}}))
    broken, told = document.graph.copy(), []
    context.message.connect(lambda kind, text: told.append((kind, text)))
    found = fixing.fixes_of(document, document.diagnostics())
    assert len(found) >= 4
    for number, fix in enumerate(found):
        menu = QMenu(window)
        fixing.fill(menu, context, document.diagnostics())
        assert [a.text() for a in menu.actions()] == [each.title for each in found]
        told.clear()
        menu.actions()[number].trigger()
        mended = broken.copy()
        mended.apply(fix.edit)
        assert document.graph == mended, fix.title
        assert told == [("info", f"Fixed: {fix.title}. Press Ctrl+Z to undo.")]
        document.undo()
        assert document.graph == broken


def test_a_layer_without_one_has_no_such_menu(window):
    menu = menu_at(window, "conv")
    assert menu.findChild(QMenu, "canvas.menu.fix") is None
    menu.close()


def test_a_layer_that_waits_for_another_is_not_mended_itself(window):
    """`cat` is unknown because of `conv`; the fix is offered where the fault is."""
    window.context.document.do(lambda g: set_params(g, {"conv": {"features": "many"}}))
    menu = menu_at(window, "cat")
    assert menu.findChild(QMenu, "canvas.menu.fix") is None
    menu.close()


def test_inside_of_a_template_the_fix_is_a_step_of_the_file(window):
    part = Template(
        "part",
        (
            Layer("x", "template_input"),
            Layer("c", "convolution", (160, 0), (Source("x"),), {"features": "many"}),
            Layer("y", "template_output", (320, 0), (Source("c"),)),
        ),
    )
    layers = [
        Layer("in", "input", params={"dims": "16x12x3"}),
        Layer("t", "template", (320, 0), (Source("in"),), {"template": "part"}),
        Layer("out", "output", (640, 0), (Source("t"),)),
    ]
    root = Document(Graph(layers, templates=[part]), window.context.registry, parent=window.context)
    window.context.set_document(root)
    assert window.context.enter("t")
    inside = window.context.document
    found = fixing.fixes_of(inside, inside.diagnostics())
    assert [fix.title for fix in found] == ["Reset features to 32"]
    fixing.apply(window.context, found[0])
    assert inside.graph["c"].params["features"] == "32"
    assert not root.diagnostics()
    root.undo()
    assert inside.graph["c"].params["features"] == "many"


def test_a_fix_of_several_problems_is_offered_once(qapp, monkeypatch):
    """That of the first one, whatever kind of problem the others are."""
    offers = {"a": "one two", "b": "two three two", "c": "", "d": "one four"}
    made = {code: [Fix(title, Edit(code)) for title in titles.split()] for code, titles in offers.items()}

    def fixes(_graph, _registry, _inference, finding, _trial):
        yield
        return made[finding.code]

    monkeypatch.setattr(fixing, "finding_fixes", fixes)
    document = Document(kit.small_graph(), default_registry())
    for codes in ("abcd", "dcba", "c", ""):
        found = fixing.fixes_of(document, [Diagnostic(code, "it is wrong") for code in codes])
        titles = list(dict.fromkeys(title for code in codes for title in offers[code].split()))
        assert [fix.title for fix in found] == titles
        firsts = [next(code for code in codes if title in offers[code].split()) for title in titles]
        assert [fix.edit.title for fix in found] == firsts


# --- a slice at a time -------------------------------------------------------------------------------------------


@pytest.fixture
def slow(monkeypatch):
    """Every slice ends after one step, as if the network were large."""
    monkeypatch.setattr(fixing, "SLICE_MS", 0)


def break_it(document: Document) -> None:
    document.do(lambda g: set_params(g, {"conv": {"features": "many"}}))


def test_a_search_in_slices_finds_the_same(qtbot, window, slow):
    document = window.context.document
    break_it(document)
    search, found = fixing.FixSearch(window), []
    search.found.connect(found.append)
    search.start(document, document.diagnostics())
    assert search.active
    assert not found
    qtbot.waitUntil(lambda: not search.active)
    assert found == [fixing.fixes_of(document, document.diagnostics())]
    assert found[0]
    states, stopped = [], []
    search.stopped.connect(lambda: stopped.append(True))

    def next_one(_fixes: object) -> None:
        states.append(search.active)
        if len(states) == 1:
            search.start(document, [document.diagnostics()[-1]])
        else:
            document.do(lambda g: set_params(g, {"conv": {"features": "4"}}))

    search.found.connect(next_one)
    last = fixing.fixes_of(document, [document.diagnostics()[-1]])
    search.start(document, document.diagnostics())
    qtbot.waitUntil(lambda: len(states) == 2)  # the handler of the first one has begun the second one
    assert found == [found[0], found[0], last]
    assert (states, stopped, search.active) == ([False, False], [], False)


def test_an_edit_ends_a_search_and_another_finding_takes_its_place(qtbot, window, slow):
    document = window.context.document
    break_it(document)
    search, found, stopped = fixing.FixSearch(window), [], []
    search.found.connect(found.append)
    search.stopped.connect(lambda: stopped.append(True))
    search.start(document, document.diagnostics())
    document.do(lambda g: set_params(g, {"conv": {"padding": "sane"}}))
    assert not search.active
    assert stopped == [True]
    first, last = document.diagnostics()[0], document.diagnostics()[-1]
    assert first != last
    search.start(document, [first])
    search.start(document, [last])
    qtbot.waitUntil(lambda: not search.active)
    assert found == [fixing.fixes_of(document, [last])]


def test_the_menu_is_there_before_its_fixes(qtbot, window, slow):
    break_it(window.context.document)
    menu = menu_at(window, "conv")
    fix = menu.actions()[0].menu()
    assert [a.text() for a in fix.actions()] == ["Searching for fixes..."]
    assert not fix.actions()[0].isEnabled()
    qtbot.waitUntil(lambda: "Reset features to 32" in [a.text() for a in fix.actions()])
    assert all(a.isEnabled() for a in fix.actions())
    menu.close()


def test_a_click_on_the_mark_of_a_problem_offers_its_fixes(qtbot, window):
    break_it(window.context.document)
    canvas = window.canvas
    canvas.viewer.zoom_by(1 / canvas.viewer.zoom)
    item = canvas.projection["conv"]
    canvas.viewer.go(item.box().center())
    canvas.viewer.zoom_by(0.5)  # the mark is not painted at this scale
    with qtbot.assertNotEmitted(canvas.fixes_requested):
        kit.click(canvas, kit.at(canvas, item.mapToScene(item.layout.mark.center())))
    canvas.viewer.zoom_by(2)
    mark, title = (kit.at(canvas, item.mapToScene(place)) for place in (item.layout.mark.center(), QPointF(60, 12)))
    for pressed, released in ((mark, title), (title, mark)):  # thought better of
        with qtbot.assertNotEmitted(canvas.fixes_requested):
            QTest.mousePress(canvas.viewer.viewport(), kit.LEFT, Qt.KeyboardModifier.NoModifier, pressed)
            QTest.mouseRelease(canvas.viewer.viewport(), kit.LEFT, Qt.KeyboardModifier.NoModifier, released)
    kit.click(canvas, mark)
    menu = window.findChild(QMenu, "canvas.fixes")
    assert menu.isVisible()
    assert window.context.selection == ("conv",)
    entry = next(a for a in menu.actions() if a.text() == "Reset features to 32")
    entry.trigger()
    menu.close()
    assert window.context.document.graph["conv"].params["features"] == "32"


def test_the_worst_problem_stays_current_until_the_user_chooses_one(qtbot, window):
    conv = Layer("conv", "convolution", (300, 0), (Source("in"),))
    show(window, Graph([Layer("in", "input", (0, 0), params={"dims": "16x16x3"}), conv]))
    document = window.context.document
    table = window.findChild(QTableView, "type_checking.findings")

    def current():
        return table.currentIndex().siblingAtColumn(3).data()

    qtbot.waitUntil(lambda: current() is not None and "no output" in current())
    document.do(lambda g: commands.add_layer(g, Layer("sum", "element_wise", (900, 0))))
    qtbot.waitUntil(lambda: table.model().rowCount() > 1)
    qtbot.waitUntil(lambda: "no output" not in current())
    last = table.model().index(table.model().rowCount() - 1, 0)
    table.setCurrentIndex(last)
    chosen, before = current(), table.model().rowCount()
    document.do(lambda g: commands.add_layer(g, Layer("other", "element_wise", (1200, 0))))
    qtbot.waitUntil(lambda: table.model().rowCount() > before)
    assert current() == chosen


def test_fixes_are_shown_without_a_click_in_the_list_and_next_to_the_parameters(qtbot, window):
    break_it(window.context.document)
    window.context.select(("conv",))
    shown = window.findChild(FixBar, "type_checking.fixes")
    near = window.findChild(FixBar, "parameters.fixes")
    qtbot.waitUntil(lambda: bool(shown.fixes) and bool(near.fixes))
    assert shown.isVisible()
    button = near.findChild(QPushButton, "parameters.fixes.0")
    assert near.fixes[0].title == "Reset features to 32"
    kit.QTest.mouseClick(button, kit.LEFT)
    assert window.context.document.graph["conv"].params["features"] == "32"
    assert not near.isVisible()


def test_titles_of_fixes_are_shortened_in_a_narrow_panel(qtbot):
    title = "Insert a 1x1 convolution that gives 'the_input_of_the_network' 32 channels <b>x</b>"
    panel = shown(qtbot, QWidget(), 900, 120)
    bar = FixBar("fixes", panel)
    bar.show_fixes([Fix(title, Edit("")), Fix(title.replace("32", "8"), Edit(""))])
    for width in (900, 300, 160, 240, 900):
        bar.setGeometry(0, 0, width, 120)
        QApplication.processEvents()
        for button in bar.findChildren(QPushButton):
            assert button.geometry().right() < width
            assert button.sizeHint().width() <= button.width()  # nothing is cut off
            assert button.text().startswith("Ins")
            assert button.text().endswith("x</b>")
            assert "&lt;b&gt;" in button.toolTip()
    assert bar.findChildren(QPushButton)[0].text() != bar.findChildren(QPushButton)[1].text()


def test_the_bar_offers_what_was_shown_last_whatever_was_shown_before(qtbot):
    panel = shown(qtbot, QWidget(), 900, 120)
    bar = FixBar("fixes", panel)
    bar.setGeometry(0, 0, 900, 120)
    chosen = []
    bar.chosen.connect(chosen.append)
    label = bar.findChild(QLabel, "fixes.label")
    lists = [None, (), tuple(Fix(f"Do {n} & <i>{n}</i>", Edit("")) for n in "abc"), (Fix("Other", Edit("")),)]
    assert bar.isHidden()
    for first, second in product(lists, repeat=2):
        for fixes in (first, second):
            bar.show_search()
            assert (label.text(), bar.fixes, bar.isHidden()) == ("Searching for fixes...", (), False)
            assert all(button.isHidden() for button in bar.findChildren(QPushButton))
            bar.show_fixes(fixes)
        assert bar.isHidden() is (second is None)
        assert bar.fixes == (second or ())
        assert label.text() == ("Fix:" if second else "No fix available.")
        buttons = [button for button in bar.findChildren(QPushButton) if not button.isHidden()]
        for number, (button, fix) in enumerate(zip(buttons, second or (), strict=True)):
            assert button.objectName() == f"fixes.{number}"
            assert button.text() == fix.title.replace("&", "&&")
            assert button.toolTip() == plain_tip(fix.title)
            assert button.accessibleName() == f"Fix: {fix.title}"
            button.click()
            assert chosen.pop() is fix
