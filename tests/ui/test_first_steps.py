"""A new user's first steps: File > New From, the welcome of an empty network, the tour, and the documentation."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QEvent, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QFont, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QLabel,
    QLineEdit,
    QListWidget,
    QMenu,
    QPushButton,
    QTextBrowser,
    QToolButton,
    QWidget,
)
from window_kit import action, open_window, press

import samples
from app.ui.shell.docs_viewer import FOLDER, pages
from app.ui.shell.guided_tour import WIDTH, Tour, TourHint, tour_steps
from app.ui.shell.panels import ANALYSIS, DESIGN
from app.ui.widgets import theme
from designer.graph.commands import add_layer, rename_layer, set_params
from designer.graph.model import Layer

WAIT = 60000


def link(window, name: str) -> QToolButton:
    found = window.findChild(QToolButton, f"welcome.{name}")
    assert found is not None, name
    return found


def welcome(window) -> QWidget:
    return window.findChild(QWidget, "welcome")


# --- new networks ------------------------------------------------------------------------------------------------


def test_new_from_opens_each_starting_point_as_an_unsaved_network(window):
    menu = window.findChild(QMenu, "menu.new_from")
    assert [a.objectName() for a in menu.actions()] == [f"file.new_{name}" for name in samples.STARTING_POINTS]
    for name, entry in zip(samples.STARTING_POINTS, menu.actions(), strict=True):
        entry.trigger()
        document = window.context.document
        assert document.path is None
        assert document.graph.name == name
        assert document.history.is_clean
        assert not document.diagnostics()
    assert len(window.tabs) == len(samples.STARTING_POINTS)
    press(window, "Ctrl+W")  # nothing to save, nothing is asked


def test_a_new_network_opens_in_design(window):
    window.docks.set_workspace("Analysis")
    press(window, "Ctrl+N")
    assert window.docks.workspace == "Design"
    window.docks.set_workspace("Profile")
    action(window, "file.new_dncnn").trigger()
    assert window.docks.workspace == "Design"


# --- the welcome -------------------------------------------------------------------------------------------------


def test_an_empty_network_offers_starting_points_until_it_has_a_layer(window):
    assert welcome(window).isVisible()
    press(window, "Space")
    line = window.findChild(QLineEdit, "quick_add.text")
    QTest.keyClicks(line, "input")
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert not welcome(window).isVisible()
    press(window, "Ctrl+Z")
    assert welcome(window).isVisible()
    QTest.mouseClick(link(window, "file.new_segmenter"), Qt.MouseButton.LeftButton)
    assert window.context.document.graph.name == "segmenter"
    assert not welcome(window).isVisible()
    assert len(window.tabs) == 1  # it replaced the blank one


def test_the_welcome_lists_recent_documents(window, tmp_path):
    path = tmp_path / "mine.xml"
    path.write_bytes(samples.path("dncnn.xml").read_bytes())
    window.files.open(path)
    press(window, "Ctrl+W")
    found = link(window, "recent")
    assert found.text() == "mine.xml"
    QTest.mouseClick(found, Qt.MouseButton.LeftButton)
    assert window.context.document.path == path


def test_the_welcome_lists_the_five_newest_documents(window, tmp_path):
    names = [f"{number}{'x' * 80 if number == 6 else ''}.xml" for number in range(7)]
    for name in names:
        path = tmp_path / name
        path.write_bytes(samples.path("dncnn.xml").read_bytes())
        window.files.open(path)
        press(window, "Ctrl+W")
    found = [made for made in window.findChildren(QToolButton, "welcome.recent") if made.isVisible()]
    texts = [made.text() for made in found]
    assert texts[1:] == names[-2:1:-1]
    assert texts[0].startswith("6xxx")
    assert texts[0].endswith("…")
    assert len(texts[0]) < len(names[6])
    assert all(name in made.toolTip() for name, made in zip(names[::-1], found, strict=False))


def test_where_the_welcome_has_no_room_a_hint_takes_its_place(qtbot, tmp_path):
    window = open_window(qtbot, tmp_path, size=(900, 560))
    window.files.new()
    hint = window.findChild(QLabel, "canvas.hint")
    assert hint.isVisible() != welcome(window).isVisible()
    window.canvas.setFixedSize(300, 200)
    QApplication.processEvents()
    assert hint.isVisible()
    assert not welcome(window).isVisible()


# --- the tour ----------------------------------------------------------------------------------------------------


def step(window) -> str:
    return window.findChild(QLabel, "tour.count").text()


def test_the_tour_follows_what_the_user_does(window, qtbot):
    pytest.importorskip("onnxruntime")
    window.start_engine_client()
    action(window, "help.tour").trigger()
    assert window.context.document.path == samples.documents()[0]
    assert window.findChild(QWidget, "tour").isVisible()
    assert step(window) == "Step 1 of 5"
    kit.click(window.canvas, kit.node(window.canvas, "conv_2s"))
    assert step(window) == "Step 2 of 5"
    press(window, "Space")
    line = window.findChild(QLineEdit, "quick_add.text")
    QTest.keyClicks(line, "identity")
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert step(window) == "Step 3 of 5"
    window.context.select(("conv_2s",))
    QApplication.processEvents()
    fields = window.docks.panel("parameters").findChildren(QWidget, "parameters.features")
    field = next(field for field in fields if field.isVisible())  # that of the other layer is deleted later
    field.setFocus()
    QTest.keyClick(field, Qt.Key.Key_Up)
    QTest.keyClick(field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: step(window) == "Step 4 of 5", timeout=WAIT)  # the trained weights follow
    press(window, "Ctrl+Z")
    assert step(window) == "Step 4 of 5"
    press(window, "Ctrl+Z")
    assert step(window) == "Step 5 of 5"
    press(window, "F5")
    title = window.findChild(QLabel, "tour.title")
    last = tour_steps()[-1].title
    qtbot.waitUntil(lambda: title.text() != last, timeout=WAIT)
    QTest.mouseClick(window.findChild(QPushButton, "tour.end"), Qt.MouseButton.LeftButton)
    assert not window.findChild(QWidget, "tour").isVisible()


def test_steps_can_be_skipped_and_the_tour_begins_again(window, qtbot):
    action(window, "help.tour").trigger()
    QTest.mouseClick(window.findChild(QPushButton, "tour.next"), Qt.MouseButton.LeftButton)
    assert step(window) == "Step 2 of 5"
    for _ in range(2):
        QTest.mouseClick(window.findChild(QPushButton, "tour.next"), Qt.MouseButton.LeftButton)
    assert step(window) == "Step 5 of 5"  # there is nothing to undo
    old = window.findChild(Tour)
    with qtbot.waitSignal(old.destroyed):
        action(window, "help.tour").trigger()
    assert step(window) == "Step 1 of 5"
    hint = window.findChild(QWidget, "tour")
    assert window.canvas.rect().contains(hint.geometry())


# --- documentation -----------------------------------------------------------------------------------------------


def test_the_pages_of_docs_are_shown_and_searched(window):
    action(window, "help.docs").trigger()
    dialog = window.findChild(QDialog, "docs")
    assert dialog.isVisible()
    titles = dialog.findChild(QListWidget, "docs.pages")
    page = dialog.findChild(QTextBrowser, "docs.page")
    assert titles.count() == len(pages()) == len(list(FOLDER.glob("*.md")))
    assert titles.item(0).text() == "Getting started"
    assert "Create a network" in page.toPlainText()
    address = page.document().find("listed in Operators").charFormat().anchorHref()
    page.anchorClicked.emit(QUrl(address))
    assert "depthwise_convolution" in page.toPlainText()
    line = dialog.findChild(QLineEdit, "docs.search")
    QTest.keyClicks(line, "unpooling")
    first = page.textCursor().selectionStart()
    assert page.textCursor().selectedText() == "unpooling"
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert page.textCursor().selectionStart() > first
    dialog.close()


@pytest.fixture
def docs(window) -> QDialog:
    action(window, "help.docs").trigger()
    return window.findChild(QDialog, "docs")


def link_colors(page: QTextBrowser) -> set[str]:
    """The colors of all links of the page."""
    found, block = set(), page.document().begin()
    while block.isValid():
        for part in block.textFormats():
            if part.format.anchorHref():
                found.add(part.format.foreground().color().name())
        block = block.next()
    return found


def test_links_of_the_documentation_follow_the_theme_and_the_reader_keeps_the_place(window, docs):
    page, line = docs.findChild(QTextBrowser, "docs.page"), docs.findChild(QLineEdit, "docs.search")
    action(window, "view.theme_light").trigger()
    QTest.keyClicks(line, "network")
    while page.verticalScrollBar().value() == 0:
        QTest.keyClick(line, Qt.Key.Key_Return)
    page.verticalScrollBar().setValue(page.verticalScrollBar().value() + 40)  # the reader scrolled on
    selected, place = page.textCursor().selectionStart(), page.verticalScrollBar().value()
    assert place > 40
    for mode in ("dark", "light"):
        action(window, f"view.theme_{mode}").trigger()
        QApplication.processEvents()
        assert link_colors(page) == {theme.color("accent").name()}, mode
        assert (page.textCursor().selectionStart(), page.textCursor().selectedText().lower()) == (selected, "network")
        assert page.verticalScrollBar().value() == place
    docs.close()


def test_the_search_of_the_documentation_goes_on_from_the_top_after_the_last_match(window, docs):
    page, line = docs.findChild(QTextBrowser, "docs.page"), docs.findChild(QLineEdit, "docs.search")
    QTest.keyClicks(line, "layers")
    first, seen = page.textCursor().selectionStart(), []
    for _ in range(page.toPlainText().lower().count("layers")):
        seen.append(page.textCursor().selectionStart())
        QTest.keyClick(line, Qt.Key.Key_Return)
    assert seen == sorted(set(seen)), "each match once, from the top"
    assert len(seen) > 1
    assert page.textCursor().selectionStart() == first
    text = page.toPlainText().lower()
    line.clear()
    QTest.keyClicks(line, "layer")
    for _ in range(3):
        QTest.keyClick(line, Qt.Key.Key_Return)
    here = page.textCursor().selectionStart()
    assert here > text.index("layer")
    for letter, typed in (("s", "layers"), (" ", "layers ")):
        QTest.keyClicks(line, letter)
        found = text.find(typed, here)
        here = found if found >= 0 else text.index(typed)
        assert page.textCursor().selectionStart() == here, "what is typed on is searched from where the reader is"
    line.clear()
    note, titles = docs.findChild(QLabel, "docs.message"), docs.findChild(QListWidget, "docs.pages")
    QTest.keyClicks(line, "photo")
    assert (note.isVisible(), page.textCursor().selectedText().casefold()) == (False, "photo")
    QTest.keyClicks(line, "x such word")
    assert not page.textCursor().hasSelection()
    assert (note.isVisible(), note.text()) == (True, "This page does not contain “photox such word”.")
    for _ in range(len("x such word")):
        QTest.keyClick(line, Qt.Key.Key_Backspace)
    assert not note.isVisible()
    lacks = [row for row, path in enumerate(pages()) if "photo" not in path.read_text("utf-8").casefold()]
    titles.setCurrentRow(lacks[0])
    assert note.text() == "This page does not contain “photo”."
    titles.setCurrentRow(0)
    assert page.textCursor().selectedText().casefold() == "photo", "the text is searched on each page"
    line.clear()
    assert not note.isVisible()
    docs.close()


def test_a_link_of_the_documentation_opens_its_page_or_the_browser(docs, monkeypatch):
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    titles, page = docs.findChild(QListWidget, "docs.pages"), docs.findChild(QTextBrowser, "docs.page")
    for row, path in enumerate(pages()):
        page.anchorClicked.emit(QUrl(path.name))
        assert titles.currentRow() == row
        assert page.toPlainText().startswith(titles.item(row).text().replace("`", ""))
    for address in ("https://onnx.ai/", "http://localhost/", "file:///etc/passwd", "gone.md"):
        page.anchorClicked.emit(QUrl(address))
        assert titles.currentRow() == len(pages()) - 1
    assert opened == ["https://onnx.ai/", "http://localhost/"]
    docs.close()


def test_headings_of_the_documentation_that_begin_with_code_are_bold(docs):
    titles, page = docs.findChild(QListWidget, "docs.pages"), docs.findChild(QTextBrowser, "docs.page")
    for row in range(titles.count()):
        titles.setCurrentRow(row)
        block = page.document().begin()
        while block.isValid():
            if block.blockFormat().headingLevel():
                assert all(part.format.fontWeight() == QFont.Weight.Bold for part in block.textFormats()), block.text()
            block = block.next()
    docs.close()


# --- the tour and other documents --------------------------------------------------------------------------------


def test_the_tour_follows_the_document_that_is_shown(window):
    window.files.new_from("denoiser")
    other = window.tabs.shown
    action(window, "help.tour").trigger()
    sample = window.tabs.shown
    QTest.mouseClick(window.findChild(QPushButton, "tour.next"), Qt.MouseButton.LeftButton)
    window.tabs.show(other)
    sample.document.do(lambda graph: add_layer(graph, Layer("aside", "identity")))
    assert step(window) == "Step 2 of 5", "the sample is not shown"
    sample.document.undo()
    other.document.do(lambda graph: add_layer(graph, Layer("aside", "identity")))
    assert step(window) == "Step 3 of 5"
    other.document.undo()
    sample.document.do(lambda graph: add_layer(graph, Layer("aside", "identity")))
    window.tabs.show(sample)
    QTest.mouseClick(window.findChild(QPushButton, "tour.next"), Qt.MouseButton.LeftButton)
    assert step(window) == "Step 4 of 5"
    sample.document.undo()
    assert step(window) == "Step 5 of 5"


def test_a_network_that_is_saved_needs_no_undo_in_the_tour(window, tmp_path):
    action(window, "help.tour").trigger()
    sample = window.tabs.shown
    sample.document.do(lambda graph: add_layer(graph, Layer("aside", "identity")))
    for _ in range(3):
        QTest.mouseClick(window.findChild(QPushButton, "tour.next"), Qt.MouseButton.LeftButton)
    assert step(window) == "Step 4 of 5"
    sample.document.mark_saved(tmp_path / "denoiser.xml")
    assert step(window) == "Step 5 of 5"


def hint_texts(window) -> tuple[str, ...]:
    """The title and the text of the hint, and the names of its buttons."""
    return tuple(window.findChild(QWidget, f"tour.{name}").text() for name in ("title", "text", "next", "end"))


def test_the_hint_of_the_tour_has_the_colors_of_the_theme_and_leaves_the_keyboard_to_the_canvas(window):
    action(window, "help.tour").trigger()
    hint, count = window.findChild(QWidget, "tour"), window.findChild(QLabel, "tour.count")
    for mode in ("light", "dark"):
        action(window, f"view.theme_{mode}").trigger()
        QApplication.processEvents()
        assert hint.palette().color(QPalette.ColorRole.Window).name() == theme.color("raised").name()
        assert count.palette().color(QPalette.ColorRole.WindowText).name() == theme.color("muted").name()
    for name in ("next", "end"):
        assert window.findChild(QPushButton, f"tour.{name}").focusPolicy() == Qt.FocusPolicy.TabFocus
    sizes = []
    for width in (1500, 760):
        window.resize(width, 700)
        QApplication.processEvents()
        sizes.append((hint.width(), min(340, window.canvas.width() - 32)))
        text = window.findChild(QLabel, "tour.text")
        assert text.height() >= text.heightForWidth(text.width())
    assert all(mine == wanted for mine, wanted in sizes), sizes


def test_a_step_of_the_tour_is_done_by_its_own_edit_only(window):
    action(window, "help.tour").trigger()
    press_next = window.findChild(QPushButton, "tour.next")
    document = window.context.document
    document.do(lambda graph: add_layer(graph, Layer("aside", "identity")))
    assert step(window) == "Step 1 of 5", "a layer is to be selected first"
    document.undo()
    QTest.mouseClick(press_next, Qt.MouseButton.LeftButton)
    document.do(lambda graph: rename_layer(graph, "conv_2s", "other"))
    window.context.select(("other",))
    window.context.select(())
    assert step(window) == "Step 2 of 5"
    document.do(lambda graph: add_layer(graph, Layer("aside", "convolution")))
    assert step(window) == "Step 3 of 5"
    document.do(lambda graph: add_layer(graph, Layer("another", "identity")))
    assert step(window) == "Step 3 of 5"
    document.do(lambda graph: set_params(graph, {"aside": {"features": "5"}}))
    assert step(window) == "Step 4 of 5"
    for _ in range(3):
        document.undo()
        assert step(window) == "Step 4 of 5"
    document.undo()
    assert step(window) == "Step 5 of 5"
    window.docks.set_workspace(ANALYSIS)
    assert step(window) == "Step 5 of 5", "nothing ran"
    window.context.select(("conv_2s",))
    action(window, "help.tour").trigger()
    assert (window.docks.workspace, window.context.selection) == (DESIGN, ()), "it begins where its first step is"


def test_the_hint_of_the_tour_stays_in_its_corner_and_ends_without_a_trace(window, qtbot):
    action(window, "help.tour").trigger()
    hint = window.findChild(QWidget, "tour")
    for width, height in ((1500, 900), (1100, 700)):
        window.resize(width, height)
        QApplication.processEvents()
        assert hint.geometry().left() == 16
        assert window.canvas.height() - hint.geometry().bottom() - 1 == 16
    canvas = QWidget()
    qtbot.addWidget(canvas)
    low = TourHint(canvas)
    for width, height in ((400, 60), (200, 400)):  # it keeps its head in a low canvas, and its text in a narrow one
        canvas.resize(width, height)
        low.show_step(1, tour_steps())
        assert (low.x(), low.y(), low.width()) == (16, max(0, height - low.height() - 16), min(WIDTH, width - 32))
        assert low.height() >= low.layout().totalHeightForWidth(low.width())
    assert window.docks.workspace == DESIGN
    assert window.context.selection == ()
    shown, said = [step(window)], [hint_texts(window)]
    while window.findChild(QPushButton, "tour.next").isVisible():
        QTest.mouseClick(window.findChild(QPushButton, "tour.next"), Qt.MouseButton.LeftButton)
        shown.append(step(window))
        said.append(hint_texts(window))
    assert said[:-1] == [
        (each.title, each.text, "Skip Step", "End Tour") for each in (*tour_steps()[:3], tour_steps()[4])
    ]
    assert "Documentation" in said[-1][1]
    assert [text[5] for text in shown[:-1]] == list("1235"), "undo is done already: there is nothing to undo"
    texts = {name: window.findChild(QWidget, f"tour.{name}") for name in ("count", "title", "next", "end")}
    assert texts["title"].text() == "This was the tour"
    assert texts["end"].text() == "Close"
    assert [texts[name].isVisible() for name in ("count", "title", "next", "end")] == [False, True, False, True]
    QTest.mouseClick(texts["end"], Qt.MouseButton.LeftButton)
    QApplication.processEvents()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert window.findChild(Tour) is None
    assert window.findChild(QWidget, "tour") is None
    window.context.select(())
