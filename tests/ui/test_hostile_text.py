"""Whatever a document holds, the window shows it as text: no label, tip or table takes it for markup."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("PySide6")
from hostile_networks import hostile_graph
from PySide6.QtCore import QAbstractItemModel, QModelIndex, Qt
from PySide6.QtGui import Qt as Texts
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QComboBox,
    QGraphicsView,
    QLabel,
    QMessageBox,
    QTabBar,
    QTextEdit,
    QWidget,
)
from window_kit import settle

from app.ui.canvas.network_image import ImageOptions, save
from app.ui.document.document import Document
from app.ui.shell.panels import PANELS
from app.ui.shell.window import MainWindow
from app.ui.widgets import theme
from designer.files.document import save_document
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui

DATA = Path(__file__).parent.parent / "data" / "hostile"


IMAGE = "\ufffc"  # in a text document where it would show, and fetch, an image


def tries_markup(html: str) -> bool:
    """Whether Qt would take the text for markup with the picture that all hostile texts hold."""
    if not Texts.mightBeRichText(html):
        return False
    page = QTextDocument()
    page.setHtml(html)
    return IMAGE in page.toPlainText()


def tips_of_model(model: QAbstractItemModel, parent: QModelIndex) -> Iterator[str]:
    for row in range(min(model.rowCount(parent), 200)):
        for column in range(model.columnCount(parent)):
            index = model.index(row, column, parent)
            yield str(model.data(index, Qt.ItemDataRole.ToolTipRole) or "")
        yield from tips_of_model(model, model.index(row, 0, parent))


def texts_as_markup(widget: QWidget) -> Iterator[str]:
    """All texts of a widget that Qt guesses or knows to be markup."""
    yield widget.toolTip()
    if isinstance(widget, QLabel) and widget.textFormat() is not Qt.TextFormat.PlainText:
        yield widget.text()
    if isinstance(widget, QTabBar):
        yield from (widget.tabToolTip(index) for index in range(widget.count()))
    if isinstance(widget, QTextEdit):
        yield widget.toHtml()
    if isinstance(widget, QAbstractItemView | QComboBox) and widget.model() is not None:
        yield from tips_of_model(widget.model(), QModelIndex())
    if isinstance(widget, QGraphicsView) and widget.scene() is not None:
        yield from (item.toolTip() for item in widget.scene().items())


def offenders(*windows: QWidget) -> set[str]:
    found = set()
    for window in windows:
        for widget in (window, *window.findChildren(QWidget)):
            widget.ensurePolished()
            for text in texts_as_markup(widget):
                if tries_markup(text):
                    found.add(f"{type(widget).__name__} {widget.objectName()[:60]!r}: {text[:120]!r}")
    return found


@pytest.fixture
def window(empty_window: MainWindow) -> MainWindow:
    theme.apply(QApplication.instance())
    return empty_window


def everything(window: MainWindow) -> set[str]:
    """What is wrong with each layer selected, in each template, and with every panel in sight."""
    for spec in PANELS:
        window.docks.show(spec.id)
    found = offenders(window)
    for name in list(window.context.document.graph.layers):
        window.context.select((name,))
        settle(window)
        found |= offenders(window)
        if window.context.enter(name):
            settle(window)
            window.context.select(tuple(window.context.document.graph.layers)[:1])
            found |= offenders(window)
            window.context.leave()
    return found


@pytest.mark.parametrize("document", ["names_as_markup", "hostile_networks"])
def test_no_text_of_a_document_becomes_markup_in_the_window(window, tmp_path, document) -> None:
    path = DATA / f"{document}.xml"
    if not path.exists():
        path = tmp_path / "hostile.xml"
        save_document(hostile_graph(), path)
    assert window.files.open(path)
    assert "\n".join(sorted(everything(window))) == ""
    window.context.root.history.mark_clean()


def test_labels_show_names_as_they_are_unless_they_say_otherwise(qtbot) -> None:
    theme.apply(QApplication.instance())
    plain, rich, box = QLabel("<b>layer</b>"), QLabel("<b>title</b>"), QMessageBox()
    rich.setTextFormat(Qt.TextFormat.RichText)
    box.setText("<b>layer</b>")
    for widget in (plain, rich, box):
        qtbot.addWidget(widget)
        widget.show()
    assert plain.textFormat() is Qt.TextFormat.PlainText
    assert rich.textFormat() is Qt.TextFormat.RichText
    assert all(label.textFormat() is Qt.TextFormat.PlainText for label in box.findChildren(QLabel) if label.text())


def test_no_text_of_a_document_becomes_markup_in_a_drawing(qapp, tmp_path) -> None:
    counts = []
    for graph in (hostile_graph(), hostile_graph(str, "plain")):
        save(Document(graph, default_registry()), tmp_path / "drawing.svg", ImageOptions())
        elements = [element.tag.rpartition("}")[2] for element in ElementTree.parse(tmp_path / "drawing.svg").iter()]
        counts.append(set(elements))
        assert "script" not in elements
    assert counts[0] == counts[1]
