"""Layer Palette: all operators by category, searchable, to be dragged onto the canvas."""

from __future__ import annotations

import html
from collections.abc import Iterable

from PySide6.QtCore import QMimeData, QPoint, QSize, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLineEdit,
    QMenu,
    QStackedWidget,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyState
from app.ui.widgets.operator_search import search
from designer.graph.edits import ChangeSet
from designer.graph.template import INSTANCE, would_recur
from designer.graph.template_commands import remove_template
from designer.operators.api import Category, Operator
from designer.operators.default_layers import INSTANCE_OF
from designer.texts import tr, tr_data

MIME_TYPE = "application/x-layerwright-operator"
_TYPE_ROLE = Qt.ItemDataRole.UserRole
_RECENT = 6


class OperatorTree(QTreeWidget):
    """The list of operators. A dragged item carries the operator's type name as UTF-8."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("palette.operators")
        self.setAccessibleName(tr("Operators"))
        self.setHeaderHidden(True)
        self.setDragEnabled(True)
        self.setDragDropMode(QAbstractItemView.DragDropMode.DragOnly)
        self.setIndentation(12)
        self.setUniformRowHeights(True)
        self.setFrameShape(QTreeWidget.Shape.NoFrame)

    def mimeTypes(self) -> list[str]:
        return [MIME_TYPE]

    def mimeData(self, items: Iterable[QTreeWidgetItem]) -> QMimeData:
        data = QMimeData()
        types = [t for t in (item.data(0, _TYPE_ROLE) for item in items) if t]
        if types:
            data.setData(MIME_TYPE, types[0].encode("utf-8"))
        return data


class PalettePanel(QWidget):
    panel_id = "palette"
    title = "Layer Palette"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("palette")
        self._context = context
        self._recent: list[str] = []
        self._document: Document | None = None
        self._closed: set[str] = set()
        self._counted: dict[str, int] = {}  # shown number of instances by template

        self._search = _SearchField()
        self._search.setObjectName("palette.search")
        self._search.setAccessibleName(tr("Search operators"))
        self._search.setPlaceholderText(tr("Search: conv2d, relu, maxpool ..."))
        self._search.setClearButtonEnabled(True)
        self._search.textChanged.connect(self._fill)
        self._search.returnPressed.connect(self._add_current)
        self._tree = OperatorTree()
        self._search.below = self._tree
        metrics = self._tree.fontMetrics()
        self._row = QSize(0, max(16, metrics.height()) + 4)
        widest = max((metrics.horizontalAdvance(tr_data(cls.title)) for cls in context.registry), default=0)
        margin = 2 * self._tree.indentation() + self._tree.verticalScrollBar().sizeHint().width() + 32
        self._tree.setMinimumWidth(min(widest + margin, 320))  # names are not cut off
        self._tree.itemActivated.connect(self._activate)
        self._tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._tree.customContextMenuRequested.connect(self._show_menu)
        self._tree.itemCollapsed.connect(lambda item: self._closed.add(item.text(0)))
        self._tree.itemExpanded.connect(lambda item: self._closed.discard(item.text(0)))
        self._empty = EmptyState("palette", "magnify", "")
        self._stack = QStackedWidget()
        self._stack.addWidget(self._tree)
        self._stack.addWidget(self._empty)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.setSpacing(8)
        layout.addWidget(self._search)
        layout.addWidget(self._stack, 1)

        context.document_changed.connect(self._watch)
        theme.changes().changed.connect(self._fill)
        if context.has_document:
            self._watch(context.document)
        if not self._tree.topLevelItemCount():
            self._fill()

    def recent(self) -> tuple[str, ...]:
        """Recently added types, newest first. The search prefers them; the list does not move for them."""
        return tuple(self._recent)

    def _watch(self, document: object) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._on_change)
            self._document.root.changed.disconnect(self._count)
        if isinstance(document, Document):
            before, self._document = self._document, document
            document.changed.connect(self._on_change)
            document.root.changed.connect(self._count)  # inside of a template too, whose layers stay as they are
            templates = any(shown is not None and shown.root.graph.templates for shown in (before, document))
            if templates or self._search.text():  # the list of all operators is the same for every document
                self._fill()

    def _count(self, _change: object) -> None:
        if self._counts() != self._counted:
            self._fill()

    def _on_change(self, change: object) -> None:
        if isinstance(change, ChangeSet) and change.templates:
            self._fill()
        if not isinstance(change, ChangeSet) or not change.added or self._document is None:
            return
        new = change.added - set(change.renamed.values())
        types = {self._document.graph[name].type for name in new if name in self._document.graph} - {INSTANCE}
        if len(types) == 1:  # added by a single gesture; pasted and imported layers do not count
            self._remember(types.pop())

    def _remember(self, type_name: str) -> None:
        if self._recent[:1] != [type_name]:
            self._recent = [type_name, *(t for t in self._recent if t != type_name)][:_RECENT]

    def _fill(self) -> None:
        query = self._search.text().strip()
        registry = self._context.registry
        self._tree.clear()
        self._counted = self._counts()
        templates = self._templates(query.casefold().split())
        if query:
            found = search(registry, query, self._recent)
            self._tree.setRootIsDecorated(False)
            self._tree.addTopLevelItems(templates)
            self._tree.addTopLevelItems([_item(cls, self._row) for cls in found])
            first = self._tree.topLevelItem(0)
            if first is not None:
                self._tree.setCurrentItem(first)
            self._empty.show_text(
                tr("No operator matches “{query}”. Try another word such as conv, pool or add.", query=query)
            )
        else:
            found = list(registry)
            self._tree.setRootIsDecorated(True)
            if templates:
                head = self._head(tr("Templates of This Document"), "group")
                head.addChildren(templates)
                self._tree.addTopLevelItem(head)
                head.setExpanded(head.text(0) not in self._closed)
            for category in Category:
                members = sorted(
                    (c for c in found if c.category is category), key=lambda c: tr_data(c.title).casefold()
                )
                if members:
                    self._group(tr_data(category.value), members)
            self._empty.show_text(tr("No operators are installed. Reinstall the program."))
        self._stack.setCurrentWidget(self._tree if found or templates else self._empty)

    def _group(self, title: str, members: Iterable[type[Operator]]) -> None:
        head = self._head(title, "")
        head.addChildren([_item(cls, self._row) for cls in members])
        self._tree.addTopLevelItem(head)
        head.setExpanded(title not in self._closed)

    def _head(self, title: str, icon: str) -> QTreeWidgetItem:
        """Add the heading of a group."""
        head = QTreeWidgetItem([title])
        head.setSizeHint(0, self._row)
        head.setFlags(Qt.ItemFlag.ItemIsEnabled)
        font = self.font()
        font.setBold(True)
        head.setFont(0, font)
        if icon:
            head.setIcon(0, theme.icon(icon, "muted"))
        return head

    # --- templates of the document -----------------------------------------------------------------------------

    def _counts(self) -> dict[str, int]:
        graph = self._document.root.graph if self._document is not None else None
        if graph is None or not graph.templates:
            return {}
        counts = graph.instance_counts()
        return {name: counts[name] for name in sorted(graph.templates)}

    def _templates(self, words: Iterable[str]) -> list[QTreeWidgetItem]:
        """Items for the templates of the document whose names contain all words."""
        around = [step.template for step in self._context.scope] if self._document is not None else []
        made = []
        for name, count in self._counted.items():
            if self._document is None or not all(word in f"{name.casefold()} template instance" for word in words):
                continue
            clash = would_recur(self._document.graph.templates, around, name)
            why = tr("the template '{name}' would use itself", name=clash) if clash else ""
            item = QTreeWidgetItem([name])
            item.setSizeHint(0, self._row)
            item.setIcon(0, theme.category_icon(Category.DEVELOPMENT))
            item.setData(0, _TYPE_ROLE, f"{INSTANCE_OF}{name}")
            shared = tr("{count} instances", count=count) if count != 1 else tr("1 instance")
            item.setData(
                0, Qt.ItemDataRole.AccessibleTextRole, tr("{name}, a template, {shared}", name=name, shared=shared)
            )
            tip = (
                tr("Cannot be added here: {why}", why=why)
                if why
                else tr("Drag it to the canvas or press Enter to add an instance.")
            )
            item.setToolTip(0, f"<b>{html.escape(name)}</b> ({shared})<p>{html.escape(tip)}</p>")
            item.setDisabled(bool(why))
            made.append(item)
        return made

    def _show_menu(self, place: QPoint) -> None:
        """Show the context menu of a template: open or delete it."""
        item = self._tree.itemAt(place)
        kind = str(item.data(0, _TYPE_ROLE) or "") if item is not None else ""
        if not kind.startswith(INSTANCE_OF) or self._document is None:
            return
        name, root = kind.removeprefix(INSTANCE_OF), self._document.root
        menu = QMenu(self)
        menu.setObjectName("palette.menu")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setToolTipsVisible(True)
        menu.addAction(tr("Open Template")).triggered.connect(
            lambda: self._context.set_scope(self._context.way_to(name))
        )
        remove = menu.addAction(tr("Delete Template"))
        remove.triggered.connect(lambda: root.do(lambda g: remove_template(g, name)))
        if self._counted.get(name):
            remove.setEnabled(False)
            remove.setToolTip(tr("Unavailable: {count} instances use it", count=self._counted[name]))
        menu.popup(self._tree.viewport().mapToGlobal(place))

    def _add_current(self) -> None:
        item = self._tree.currentItem()
        if item is not None:
            self._activate(item)

    def _activate(self, item: QTreeWidgetItem) -> None:
        type_name = item.data(0, _TYPE_ROLE)
        if type_name:
            self._context.add_requested.emit(type_name)


class _SearchField(QLineEdit):
    """A search field whose up and down keys move the selection in the list below it."""

    below: QTreeWidget | None = None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if (
            event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Up)
            and self.below is not None
            and self.below.topLevelItemCount()
        ):
            self.below.setFocus()
            self.below.keyPressEvent(event)
        elif event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
        else:
            super().keyPressEvent(event)


def _item(cls: type[Operator], size: QSize) -> QTreeWidgetItem:
    item = QTreeWidgetItem([tr_data(cls.title)])
    item.setSizeHint(0, size)
    item.setIcon(0, theme.category_icon(cls.category))
    item.setData(0, _TYPE_ROLE, cls.type)
    item.setData(0, Qt.ItemDataRole.AccessibleTextRole, f"{tr_data(cls.title)}, {tr_data(cls.category.value)}")
    item.setToolTip(0, tooltip(cls))
    item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsDragEnabled)
    return item


def tooltip(cls: type[Operator]) -> str:
    """Title, type and description of an operator as rich text."""
    paragraphs = "".join(f"<p>{html.escape(part)}</p>" for part in tr_data(cls.help()).split("\n\n") if part)
    return f"<b>{html.escape(tr_data(cls.title))}</b> <code>{html.escape(cls.type)}</code>{paragraphs}"
