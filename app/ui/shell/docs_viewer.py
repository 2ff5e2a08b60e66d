"""Help > Documentation: the pages of `docs/`."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSize, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QFont, QTextCharFormat, QTextCursor, QTextDocument
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QSplitter,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from app.ui.widgets import theme
from app.ui.widgets.message import Message
from designer.texts import tr

FOLDER = Path(__file__).parents[3] / "docs"
FIRST = "getting_started.md"
SIZE = QSize(960, 700)


def pages() -> list[Path]:
    """The pages, the one for beginners first."""
    return sorted(FOLDER.glob("*.md"), key=lambda path: (path.name != FIRST, path.name))


def page_title(path: Path) -> str:
    """The first heading of a page."""
    lines = path.read_text("utf-8").splitlines()
    return next((line.removeprefix("# ") for line in lines if line.startswith("# ")), path.stem)


class DocsViewer(QDialog):
    """A list of the pages, and the current page with a search field. Does not block the window."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("docs")
        self.setWindowTitle(tr("Documentation"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(SIZE)
        self._list = QListWidget()
        self._list.setObjectName("docs.pages")
        self._list.setAccessibleName(tr("Pages"))
        self._list.setSpacing(2)
        self._page = QTextBrowser()
        self._page.setObjectName("docs.page")
        self._page.setAccessibleName(tr("Documentation"))
        self._page.setOpenLinks(False)
        self._page.document().setDocumentMargin(16)
        self._page.anchorClicked.connect(self._follow)
        self._search = QLineEdit()
        self._search.setObjectName("docs.search")
        self._search.setAccessibleName(tr("Search this page"))
        self._search.setPlaceholderText(tr("Search this page"))
        self._search.setClearButtonEnabled(True)
        self._search.textChanged.connect(lambda _text: self._find(again=False))
        self._search.returnPressed.connect(lambda: self._find(again=True))
        self._message = Message("docs.message")
        for path in pages():
            item = QListWidgetItem(page_title(path))
            item.setData(Qt.ItemDataRole.UserRole, path.name)
            self._list.addItem(item)
        self._list.currentItemChanged.connect(self._on_page)
        right = QWidget()
        column = QVBoxLayout(right)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._search)
        column.addWidget(self._message)
        column.addWidget(self._page, 1)
        split = QSplitter()
        split.addWidget(self._list)
        split.addWidget(right)
        wide = self._list.sizeHintForColumn(0) + 2 * self._list.frameWidth() + 8
        split.setSizes([wide, SIZE.width() - wide])
        row = QHBoxLayout(self)
        row.addWidget(split)
        self._list.setCurrentRow(0)
        self._search.setFocus()
        theme.changes().changed.connect(self._apply_color)

    def _on_page(self, item: QListWidgetItem | None) -> None:
        """Show a page, and the text of the search field on it."""
        self._show(item)
        self._find(again=False)

    def _show(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            path = FOLDER / str(item.data(Qt.ItemDataRole.UserRole))
            self._page.setMarkdown(path.read_text("utf-8"))
            _make_headings_bold(self._page.document())

    def _apply_color(self) -> None:
        """Read the page again where it is: its links have the color of the theme in which it was read."""
        cursor, bar = self._page.textCursor(), self._page.verticalScrollBar()
        begin, end, place = cursor.anchor(), cursor.position(), bar.value()
        self._show(self._list.currentItem())
        cursor = self._page.textCursor()
        cursor.setPosition(begin)
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        self._page.setTextCursor(cursor)
        bar.setValue(place)

    def _follow(self, link: QUrl) -> None:
        """Show another page, or open an address in the browser."""
        for row in range(self._list.count()):
            if self._list.item(row).data(Qt.ItemDataRole.UserRole) == link.path():
                self._list.setCurrentRow(row)
                return
        if link.scheme() in ("http", "https"):
            QDesktopServices.openUrl(link)

    def _find(self, *, again: bool) -> None:
        """Select the next match, from the last one on, and from the start of the page after the end; say if there is none."""
        cursor = self._page.textCursor()
        if not again:
            cursor.setPosition(cursor.selectionStart())
            self._page.setTextCursor(cursor)
        text = self._search.text()
        found = not text or self._page.find(text)
        if not found:
            self._page.moveCursor(QTextCursor.MoveOperation.Start)
            found = self._page.find(text)
        self._message.show_message("" if found else tr("This page does not contain “{text}”.", text=text), "info")


def _make_headings_bold(document: QTextDocument) -> None:
    """Qt does not show a heading that starts with code as one."""
    bold = QTextCharFormat()
    bold.setFontWeight(QFont.Weight.Bold)
    block = document.begin()
    while block.isValid():
        if block.blockFormat().headingLevel():
            cursor = QTextCursor(block)
            cursor.select(QTextCursor.SelectionType.BlockUnderCursor)
            cursor.mergeCharFormat(bold)
        block = block.next()
