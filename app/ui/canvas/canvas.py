"""The central widget: the canvas of the open document. It turns gestures into edits and changes into items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import cast

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.ui.canvas import layer_clipboard, layout_boxes
from app.ui.canvas.difference_marks import DifferenceMarker
from app.ui.canvas.format_marks import FormatMarks
from app.ui.canvas.frames import FrameItem, needed_height
from app.ui.canvas.heat_overlay import HeatOverlay
from app.ui.canvas.inline_editor import InlineEditor
from app.ui.canvas.link_editor import Accepts, Connect, LinkEditor, RouteEditor, source_of
from app.ui.canvas.links import LinkItem
from app.ui.canvas.minimap import Minimap
from app.ui.canvas.node import LayerItem
from app.ui.canvas.placement import free_rect, settle
from app.ui.canvas.projection import Projection
from app.ui.canvas.quick_add import QuickAdd
from app.ui.canvas.remembered_views import RememberedViews
from app.ui.canvas.viewer import LayerViewer
from app.ui.document.document import Document
from app.ui.engine.context import Context
from designer.graph import commands, frames
from designer.graph.arrangement import GAP as NODE_GAP
from designer.graph.arrangement import NODE_WIDTH, Position, Side, align, around, distribute, on_grid
from designer.graph.bypass import bypass
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import ChangeSet, Edit
from designer.graph.freezing import freeze
from designer.graph.model import GRID, Layer
from designer.graph.template import INSTANCE, Template, would_recur
from designer.graph.template_commands import paste_with_templates
from designer.operators.default_layers import default_layer
from designer.operators.links import is_variadic, network_ends, open_sides
from designer.texts import tr, trn

NOTE_SIZE = (12 * GRID, 5 * GRID)
OPENING_ZOOM = 0.25  # least opening scale: names are readable; a larger document opens where it begins


class Canvas(QWidget):
    """Shows `context.document` and edits it."""

    selection_state_changed = Signal()  # what Delete, Copy, ... act on has changed
    menu_requested = Signal(QPoint)  # global position
    fixes_requested = Signal(QPoint)  # global position; for the selected layer

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._document: Document | None = None
        self.viewer = LayerViewer(self)
        self.projection = Projection(self.viewer)
        self._remembered = RememberedViews(self.viewer)
        self.minimap = Minimap(self.viewer, self.projection.far, self.projection.collect_blocks)
        self._join: Connect | None = None
        self._place = QPointF()
        self._quick_add = QuickAdd(context.registry, self)
        self._quick_add.chosen.connect(self._on_chosen)
        self._quick_add.offer_templates(self.templates)
        self._hint = QLabel(
            tr("Drag an operator from the Layer Palette, or press Space to search for one."), self.viewer
        )
        self._welcome: QWidget | None = None
        self._hint.setObjectName("canvas.hint")
        self._hint.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.viewer.installEventFilter(self)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(self.viewer)
        self.setFocusProxy(self.viewer)

        viewer = self.viewer
        viewer.layers_moved.connect(self._on_moved)
        viewer.selection_changed.connect(self._on_selected)
        viewer.frame_dragged.connect(self._on_frame_dragged)
        viewer.rename_requested.connect(self.rename_selection)
        viewer.inspect_requested.connect(self._open)
        viewer.quick_add_requested.connect(self._on_quick_add)
        viewer.operator_dropped.connect(self._on_dropped)
        viewer.format_dropped.connect(context.format_dropped)
        viewer.menu_requested.connect(self.menu_requested)
        viewer.fixes_requested.connect(self.fixes_requested)
        self.links = LinkEditor(
            context, viewer, self.projection, self.do, self.add, self.open_search, self.selection_to_edit
        )
        self.routes = RouteEditor(viewer, self.projection, self.do)
        viewer.link_refused.connect(lambda why: context.message.emit("error", tr("Not connected: {why}", why=why)))
        context.document_changed.connect(self._show)
        self.differences = DifferenceMarker(context, self.viewer, self.projection)
        self.heat = HeatOverlay(context, self.viewer, self.projection)
        self.formats = FormatMarks(context, self.viewer, self.projection)
        for overlay in (self.differences, self.heat, self.formats):
            context.document_changed.connect(overlay.refresh)  # after it is shown
        context.selection_changed.connect(self._select)
        context.reveal_requested.connect(self.reveal)
        context.inspect_requested.connect(self._mark_inspected)
        context.inspected.connect(self._mark_inspected)
        context.add_requested.connect(self._on_add_requested)
        context.canvas_requested.connect(self.viewer.setFocus)
        if context.has_document:
            self._show(context.document)

    # --- the document ----------------------------------------------------------------------------------------

    def _show(self, document: Document) -> None:
        self.viewer.cancel_drag()
        for editor in self.viewer.viewport().findChildren(InlineEditor):
            editor.discard()
        if self._document is not None:
            self._document.changed.disconnect(self._on_changed)
            self._document.states_changed.disconnect(self._on_states)
            self._document.inserted.disconnect(self._make_room_for)
        self._remembered.leave(document.root, self._context.scope)
        self._document = document
        self.projection.show(document)
        self._mark_inspected(self._context.inspected_layer)
        document.changed.connect(self._on_changed)
        document.states_changed.connect(self._on_states)
        document.inserted.connect(self._make_room_for)
        self._update_hint()
        self.viewer.setFocus()
        if not self._remembered.restore():
            self.viewer.frame_all(least=OPENING_ZOOM)
        self.selection_state_changed.emit()

    def _open(self, name: str) -> None:
        """Open a double-clicked layer: enter an instance, inspect any other layer under the name that the engine uses."""
        context = self._context
        if context.document.graph[name].type == INSTANCE and context.enter(name):
            return
        path = context.path_of(name)
        if path:
            context.inspect_requested.emit(path)
        else:
            context.message.emit(
                "info", tr("This layer does not run here. Open the template through an instance to inspect it.")
            )

    def _mark_inspected(self, path: str) -> None:
        """Mark the inspected layer if the current scope shows it."""
        around = self._context.path_of("")
        inside = path.startswith(around) and bool(around or not self._context.scope)
        self.projection.inspect(path.removeprefix(around) if inside else "")

    def _on_changed(self, change: ChangeSet) -> None:
        self.viewer.cancel_drag()
        hidden = self.projection.apply(change)
        self._update_hint()
        if hidden.intersection(self._context.selection):
            self._context.select(tuple(n for n in self._context.selection if n not in hidden))
        self._select()

    def _on_states(self, names: object) -> None:
        self.projection.refresh(cast(frozenset[str], names))

    def show_when_empty(self, widget: QWidget) -> None:
        """Show a widget in the middle of the canvas while the network is empty, where there is room for it."""
        self._welcome = widget
        widget.setParent(self.viewer.viewport())  # operators can be dropped on it
        for bar in (self.viewer.horizontalScrollBar(), self.viewer.verticalScrollBar()):
            bar.valueChanged.connect(self._update_hint)  # scrolling moves the children of the viewport
        self._update_hint()

    def _update_hint(self) -> None:
        document, welcome, around = self._document, self._welcome, self.viewer.rect()
        empty = document is not None and not (document.graph.layers or document.graph.frames)
        fits = welcome is not None and around.size().expandedTo(welcome.sizeHint()) == around.size()
        greets = empty and fits and document is self._context.root
        if welcome is not None:
            welcome.setVisible(greets)
            welcome.move(around.center() - welcome.rect().center())
        self._hint.setVisible(empty and not greets)
        self._hint.setGeometry(around)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._update_hint()
        return super().eventFilter(watched, event)

    @property
    def document(self) -> Document | None:
        """The current document."""
        return self._document

    def do(self, request: Callable[[Document], Edit]) -> Edit | None:
        """Commit the edit that `request` returns. Returns the edit, or None if it was refused (the document reports why)."""
        document = self._document
        if document is None:
            return None
        try:
            edit = request(document)
        except DiagnosticError as error:
            document.refused.emit(error.diagnostics)
            return None
        return edit if document.do(edit) else None

    def add(
        self,
        request: Callable[[Document], Edit],
        names: Sequence[str] | None = None,
        center: QPointF | None = None,
        *,
        free: bool = True,
    ) -> Edit | None:
        """Like `do`, then make room for `names` (default: the added layers), all in one undo step."""
        document = self._document
        if document is None:
            return None
        try:
            edit = request(document)
        except DiagnosticError as error:
            document.refused.emit(error.diagnostics)
            return None
        with document.group(edit.title):
            done = document.do(edit)
            if done:
                added = [n for n, (old, _) in edit.layers.items() if old is None] if names is None else names
                self.do(lambda d: settle(d.graph, self.projection, added, center, free=free))
        return edit if done else None

    def _make_room_for(self, name: str) -> None:
        """Make room for a layer that a fix or another edit has inserted."""
        self.do(lambda document: settle(document.graph, self.projection, [name]))

    # --- selection -------------------------------------------------------------------------------------------

    def _on_selected(self) -> None:
        found = set(self.viewer.selected_names())
        before = [n for n in self._context.selection if n in found]
        self._context.select((*before, *sorted(found.difference(before))))
        self.selection_state_changed.emit()

    def _select(self, _names: object = None) -> None:
        names = self._context.selection
        known = [n for n in names if n in self.projection]
        if known or self.viewer.selected_names():
            links = self.viewer.selected_links() if not known else []
            self.viewer.select_names(known)
            for link in links:
                link.setSelected(True)
        self._show_path()
        self.selection_state_changed.emit()

    def _show_path(self) -> None:
        """Highlight all links upstream and downstream of the selected layer, if there is exactly one."""
        before: set[str] = set()
        after: set[str] = set()
        if self._document is not None and len(self._context.selection) == 1:
            before = self._document.graph.upstream(self._context.selection)
            after = self._document.graph.downstream(self._context.selection)
        self.projection.show_path(before, after)

    @property
    def has_selection(self) -> bool:
        """Whether layers or links are selected."""
        return bool(self.viewer.scene().selectedItems() or self.projection.marked)

    def select_all(self) -> None:
        """Select what is shown: layers, and collapsed frames in place of the layers in them."""
        if self._document is not None:
            self._context.select(tuple(n for n in self._document.graph.layers if not self.projection.hides(n)))
            for item in self.projection.collapsed_frames:
                item.setSelected(True)
            self.selection_state_changed.emit()

    def reveal(self, name: str) -> None:
        """Select a layer and bring it into view."""
        item = self.projection.get(name)
        if item is not None and item.folded is not None:  # it would stay hidden
            members = self.projection.members
            self.do(lambda d: frames.collapse(d.graph, [], frames.hiding(d.graph, d.graph[name]), members))
        if item is not None:
            self._context.select((name,))
            self.viewer.reveal(item)

    def show_layer(self, name: str) -> None:
        """Scroll until a layer is visible."""
        item = self.projection.get(name)
        if item is not None:
            self.viewer.bring(item)

    def frame_all(self) -> None:
        self.viewer.frame_all()

    def frame_selection(self) -> None:
        """Zoom to the selection, or to everything if nothing is selected."""
        rect = QRectF()
        for name in self._selected_names():
            rect = rect.united(self.projection.entry(name).area())
        if not rect.isEmpty():
            self.viewer.frame_rect(rect)
        else:
            self.viewer.frame_all()

    # --- editing ---------------------------------------------------------------------------------------------

    def delete_selection(self, *, heal: bool = False) -> None:
        """Delete what is selected and shown. The layers hidden in a deleted frame stay, and are shown again."""
        self._delete([item.frame.id for item in self.viewer.selected_frames()], heal=heal)

    def _delete(self, ids: list[str], *, heal: bool = False) -> None:
        """Delete the selected layers and links, and these frames."""
        document, links = self._document, [link.key for link in self.viewer.selected_links()]
        layers = self._shown_names() if links or ids else self.selection_to_edit()
        if document is None:
            return
        if layers or links:
            with document.group(tr("Delete selection")) if ids else nullcontext():
                variadic = partial(is_variadic, document.inference)
                done = self.do(lambda d: commands.delete(d.graph, layers, links, variadic=variadic, heal=heal))
                if ids and done is not None:
                    self.do(lambda d: frames.remove_frames(d.graph, ids))
        elif ids:
            self.do(lambda d: frames.remove_frames(d.graph, ids))

    def copy_selection(self) -> None:
        names = self.selection_to_edit()
        if self._document is not None and names:
            layer_clipboard.copy(self._document.graph, names)

    def cut_selection(self) -> None:
        if self._shown_names():
            self.copy_selection()
        self._delete([])

    def paste(self, *, keep_links: bool = False) -> None:
        """Paste the layers of the clipboard at the pointer, or next to the originals, without covering other layers, and select them."""
        try:
            part = layer_clipboard.pasted()
        except DiagnosticError as error:
            if self._document is not None:
                self._document.refused.emit(error.diagnostics)
            return
        self._add_copies(list(part), self.viewer.pointer(), keep_links=keep_links, templates=part.templates.values())

    def duplicate_selection(self, *, keep_links: bool = False) -> None:
        if self._document is not None:
            names = self.selection_to_edit()
            title = trn("Duplicate layer", "Duplicate {count} layers", len(names))
            self._add_copies([self._document.graph[n] for n in names], None, keep_links=keep_links, title=title)

    def _add_copies(
        self,
        layers: list[Layer],
        center: QPointF | None,
        *,
        keep_links: bool,
        templates: Iterable[Template] = (),
        title: str = "",
    ) -> None:
        if not layers:
            return

        def copies(document: Document) -> Edit:
            edit = paste_with_templates(document.graph, layers, templates, keep_links=keep_links)
            return replace(edit, title=title or edit.title)

        edit = self.add(copies, center=center)
        if edit is not None:
            self._context.select(tuple(n for n, (old, _) in edit.layers.items() if old is None))

    def rename_selection(self) -> None:
        """Edit the name of the selected layer, or the text of the selected frame, on the canvas."""
        selected = self.viewer.selected_frames()
        names = self._shown_names() if selected else self.selection_to_edit()
        if len(names) == 1:
            self._edit_name(self.projection[names[0]])
        elif not names and len(selected) == 1:
            self._edit_frame(selected[0])

    def _edit_name(self, item: LayerItem) -> None:
        document, name = self._context.document, item.layer
        self.viewer.bring(item)
        editor = InlineEditor(
            self.viewer,
            "canvas.rename",
            tr("Name of the layer"),
            name,
            lambda text: document.do(lambda g: commands.rename_layer(g, name, text)),
            lambda text: commands.name_rule(document.graph, text),
        )
        editor.open_at(self.viewer.mapFromScene(item.box()).boundingRect())

    def _edit_frame(self, item: FrameItem) -> None:
        """Edit title and text of a frame: the first line is the title."""
        document, frame = self._context.document, item.frame
        editor = InlineEditor(
            self.viewer,
            "canvas.comment",
            tr("Title of the comment, then its text (Shift+Return: new line)"),
            frame.content,
            lambda text: document.do(
                lambda g: frames.write_frame(g, frame.id, text, needed_height(frame.rect[2], text))
            ),
            lines=True,
        )
        editor.open_at(self.viewer.mapFromScene(item.seen).boundingRect())

    def add_frame(self) -> None:
        """Add a comment frame around the selected layers, or in the middle of the view, and edit its title."""
        names = self._shown_names()
        if names and self._document is not None:
            places = {n: self._document.graph[n].position for n in names}
            rect = around(places, {n: layout_boxes.box_of(self.projection.entry(n)) for n in names})
        else:
            rect = self._rect_at(self.viewer.visible_center(), 20 * GRID, 10 * GRID)
        self._add_frame(rect, tr("Comment"))

    def add_note(self) -> None:
        """Add a small frame at the pointer, or in the middle of the view, clear of layers, and edit its text."""
        place = self.viewer.pointer() or self.viewer.visible_center()
        free = free_rect(self.projection, QRectF(*self._rect_at(place, *NOTE_SIZE)))
        self._add_frame(free.toRect().getRect(), tr("Note"))

    def _rect_at(self, center: QPointF, width: int, height: int) -> tuple[int, int, int, int]:
        x, y = on_grid(center.x() - width / 2, center.y() - height / 2)
        return x, y, width, height

    def _add_frame(self, rect: tuple[int, int, int, int], title: str) -> None:
        edit = self.do(lambda d: frames.add_frame(d.graph, rect, title))
        if edit is not None:
            self._context.select(())
            self.viewer.select_items([])
            for frame_id in edit.frames:
                item = self.projection.frame(frame_id)
                if item is not None:
                    item.setSelected(True)
            self.selection_state_changed.emit()
            self.rename_selection()

    def _on_frame_dragged(self, frame_id: str, rect: QRectF, places: object, inner: object) -> None:
        x, y, width, height = (round(v) for v in rect.getRect())
        moved, within = cast(dict[str, Position], places), cast(list[str], inner)
        self.do(lambda d: frames.move_frame(d.graph, frame_id, (x, y, width, height), moved, within))

    def bypass_selection(self) -> None:
        """Bypass the selected layers, or stop bypassing them if all are bypassed."""
        names = self.selection_to_edit()
        if names:
            self.do(lambda d: bypass(d.graph, d.inference, names, ends=network_ends(d.graph, d.registry, names)))

    def freeze_selection(self) -> None:
        """Keep the weights of the selected layers in training, or train them again if all are frozen."""
        names = self.selection_to_edit()
        if names:
            self.do(lambda d: freeze(d.graph, names))

    def quick_add(self) -> None:
        """Open the search to insert an operator into the link under the pointer, after the selected layer, or at the pointer."""
        pointer = self.viewer.pointer()
        hit = self.viewer.hit(self.viewer.mapFromScene(pointer)) if pointer is not None else None
        item = self._last_selected()
        if isinstance(hit, LinkItem) and pointer is not None:
            self._on_quick_add(pointer, hit)
        elif item is not None:
            self.viewer.bring(item)
            self.open_search(self._beside(item), self._reading(item))
        else:
            self._on_quick_add(pointer or self.viewer.visible_center(), None)

    def arrange(self, *, everything: bool = False) -> None:
        """Lay out the selected layers, or all layers."""
        names = None if everything else self.selection_to_edit()
        if names is None or names:
            self.do(lambda d: layout_boxes.arranged(d, self.projection, names))

    def align(self, side: Side) -> None:
        """Align the selected layers at one side."""
        names = self.selection_to_edit()
        if len(names) > 1:
            self.do(lambda d: align(d.graph, self._sizes(names), names, side))

    def distribute(self, *, vertical: bool) -> None:
        """Space the selected layers equally."""
        names = self.selection_to_edit()
        if len(names) > 2:
            self.do(lambda d: distribute(d.graph, self._sizes(names), names, vertical=vertical))

    def _sizes(self, names: Iterable[str]) -> dict[str, tuple[float, float]]:
        return {n: self.projection.entry(n).box().size().toTuple() for n in names}

    def selection_to_edit(self) -> list[str]:
        """The selected layers that a command acts on: those that are shown. Reports it if collapsed frames hide them all.

        A panel can select a hidden layer; editing it here would change the network where nothing is seen to change.
        """
        names = self._shown_names()
        if self._selected_names() and not names:
            text = tr("The selected layers are hidden in a collapsed frame. Expand the frame to edit them.")
            self._context.message.emit("info", text)
        return names

    def _shown_names(self) -> list[str]:
        return [n for n in self._selected_names() if not self.projection.hides(n)]

    def _selected_names(self) -> list[str]:
        return [n for n in self._context.selection if n in self.projection]

    def _last_selected(self) -> LayerItem | None:
        names = self._shown_names()
        return self.projection[names[-1]] if names else None

    def _on_moved(self, moved: object) -> None:
        places = cast(dict[str, Position], moved)
        self.do(lambda d: commands.move_layers(d.graph, places))

    # --- adding ----------------------------------------------------------------------------------------------

    def _on_dropped(self, type_name: str, place: QPointF) -> None:
        self._on_place(type_name, place, self.viewer.hit(self.viewer.mapFromScene(place)))

    def _on_place(self, type_name: str, place: QPointF, hit: object) -> None:
        if isinstance(hit, LinkItem):
            self._add(type_name, hit.nearest(place), self._insert(hit))
        else:
            self._add(type_name, place, None, free=False)
        self.viewer.setFocus()

    def _on_add_requested(self, type_name: str) -> None:
        """Add an operator from the palette (double-click or Enter): after the selected layer and connected to it, or in the middle."""
        item = self._last_selected()
        if item is None:
            self._add(type_name, self.viewer.visible_center(), None)
        else:
            self._add(type_name, self._beside(item), self._reading(item))

    def _beside(self, item: LayerItem) -> QPointF:
        """The center of a new layer of ordinary size that is placed after `item`."""
        box = item.box()
        return QPointF(box.right() + 2 * NODE_GAP + NODE_WIDTH / 2, box.center().y())

    def _reading(self, item: LayerItem) -> Connect:
        """The edit that connects a new layer to the first output of a selected one, if both have such a port."""
        graph, registry = self._context.document.graph, self._context.registry

        def join(layer: Layer) -> Edit:
            reads = bool(item.outputs) and open_sides(graph, registry, layer)[0]
            return commands.add_connected(graph, layer, source_of(item.outputs[0]) if reads else None, None)

        return join

    def _on_quick_add(self, place: QPointF, link: object) -> None:
        if isinstance(link, LinkItem):
            self.open_search(link.nearest(place), self._insert(link))
        else:
            self.open_search(place, None)

    def _insert(self, link: LinkItem) -> Connect:
        """The edit that inserts a new layer into a link, or only adds it if it has no input or no output."""
        graph, registry = self._context.document.graph, self._context.registry

        def join(layer: Layer) -> Edit:
            if not all(open_sides(graph, registry, layer)):
                return commands.add_layer(graph, layer)
            return commands.insert_on_link(graph, layer, *link.key)

        return join

    def open_search(self, place: QPointF, join: Connect | None, accepts: Accepts | None = None) -> None:
        if self._document is None:
            return
        self._join, self._place = join, place
        point = self.viewer.viewport().mapToGlobal(self.viewer.mapFromScene(place))
        self._quick_add.open_for(point, accepts)

    def templates(self) -> list[tuple[str, str]]:
        """The document's templates, each with the reason why it cannot be instantiated in the current scope, or an empty string."""
        document = self._document
        if document is None:
            return []
        around, templates = [step.template for step in self._context.scope], document.graph.templates
        clash = {name: would_recur(templates, around, name) for name in sorted(templates)}
        return [(name, tr("the template '{name}' would use itself", name=n) if n else "") for name, n in clash.items()]

    def _on_chosen(self, type_name: str) -> None:
        self._add(type_name, self._place, self._join)
        self.viewer.setFocus()

    def _add(self, type_name: str, center: QPointF, join: Connect | None, *, free: bool = True) -> None:
        document = self._document
        if document is None:
            return
        layer = default_layer(document.graph, document.registry, type_name, on_grid(*center.toTuple()))
        if layer is None:
            self._context.message.emit(
                "error", tr("The operator '{name}' is unknown: load its plugin, or add another one", name=type_name)
            )
            return
        edit = self.add(
            lambda d: join(layer) if join is not None else commands.add_layer(d.graph, layer), center=center, free=free
        )
        if edit is not None:
            self._context.select((layer.name,))
            if free:
                self.show_layer(layer.name)
