"""What all panels share: the open document, the selection, the inspected layer and the engine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from PySide6.QtCore import QObject, Signal

from app.ui.document.comparison import DocumentComparison
from app.ui.document.document import Document
from app.ui.document.template_view import ScopeStep, TemplateView, find_layer
from designer.graph.diagnostics import Diagnostic
from designer.graph.edits import ChangeSet
from designer.graph.model import Layer
from designer.graph.template import INSTANCE, PARAMETER, enclosing
from designer.operators.registry import Registry
from designer.texts import tr

if TYPE_CHECKING:
    from app.ui.engine.client import EngineClient


class Context(QObject):
    """Panels get this one object. They never talk to each other directly.

    `root` is the open document, a file. `document` is what is shown of it: the root, or the inside of a template.
    """

    document_changed = Signal(Document)  # something else is shown now: another file, or another scope of it
    root_changed = Signal(Document)  # another file is open; comes before `document_changed`
    selection_changed = Signal(object)  # tuple of layer names, in the order of selection
    reveal_requested = Signal(str)  # show this layer on the canvas and select it
    inspect_requested = Signal(str)  # open the Channel Inspector for this layer
    inspected = Signal(str)  # the layer that the Channel Inspector shows now, empty: none
    canvas_requested = Signal()  # give the keyboard to the canvas
    add_requested = Signal(str)  # add a layer of this operator type where it suits the view
    analysis_requested = Signal()  # Run > Launch Analysis: prepare the network in the engine and show its output
    inference_requested = Signal()  # Run > Launch Inference: time N iterations in the engine and record the run
    agreement_wanted = Signal(object)  # show the document's code that was not agreed to; a callable: what follows a yes
    heat_requested = Signal(object)  # color the layers by this `Heat` of layer paths; None: no longer
    format_dropped = Signal(str, str)  # a number format, and the layer in sight that it was dropped on
    message = Signal(str, str)  # severity ("info", "warning", "error"), text: shown in the status bar

    def __init__(self, registry: Registry, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.registry = registry
        self._root: Document | None = None
        self._views: list[TemplateView] = []  # from the root inwards; the last one is shown
        self._trails: WeakKeyDictionary[Document, tuple[ScopeStep, ...]] = WeakKeyDictionary()  # where files were left
        self._shown: Document | None = None  # whose changes the selection follows
        self._selection: tuple[str, ...] = ()
        self.inspected_layer = ""  # the path of the last `inspected`
        self.inspected.connect(self._remember_inspected)  # before all others
        self.engine: EngineClient | None = None
        self.comparison = DocumentComparison(self)  # of the open document with another one
        self.root_changed.connect(self.comparison.follow)
        self.document_changed.connect(self.comparison.show)

    # --- the document ----------------------------------------------------------------------------------------

    @property
    def root(self) -> Document:
        """The open file."""
        if self._root is None:
            raise RuntimeError("no document is open yet")
        return self._root

    @property
    def document(self) -> Document:
        """What is shown: the open file, or the inside of one of its templates."""
        return self._views[-1] if self._views else self.root

    @property
    def has_document(self) -> bool:
        return self._root is not None

    def set_document(self, root: Document) -> None:
        """Open a file, or go back to one: it is shown where it was left."""
        if self._root is not None:
            self._root.changed.disconnect(self._on_root)
            self._trails[self._root] = self.scope
        self._forget_views(0)
        self._root = root
        root.changed.connect(self._on_root)  # before all others, so that views are true when panels hear of it
        self._views = self._views_along(self._trails.get(root, ()))
        self.root_changed.emit(root)
        self._show()

    # --- scopes ----------------------------------------------------------------------------------------------

    @property
    def scope(self) -> tuple[ScopeStep, ...]:
        """The way from the root to what is shown."""
        return tuple(ScopeStep(view.instance, view.template) for view in self._views)

    def enter(self, name: str) -> bool:
        """Show the inside of an instance that is in sight, else of the template of that name; False for neither."""
        layer = self.document.graph.get(name)
        if layer is not None and layer.type == INSTANCE:
            return self._enter(ScopeStep(name, layer.params.get(PARAMETER, "")))
        return self.set_scope((ScopeStep("", name),))

    def _enter(self, step: ScopeStep) -> bool:
        return self.set_scope((*self.scope, step))

    def way_to(self, template: str) -> tuple[ScopeStep, ...]:
        """The shortest way into a template through its instances; by its name alone where there is none."""
        ways: list[tuple[tuple[ScopeStep, ...], Iterable[Layer]]] = [((), self.root.graph)]
        seen = set()
        for way, layers in ways:
            for layer in layers:
                inner = (
                    self.root.graph.templates.get(layer.params.get(PARAMETER, "")) if layer.type == INSTANCE else None
                )
                if inner is not None and inner.name not in seen:
                    seen.add(inner.name)
                    ways.append(((*way, ScopeStep(layer.name, inner.name)), inner.layers))
                    if inner.name == template:
                        return ways[-1][0]
        return (ScopeStep("", template),)

    def leave(self) -> bool:
        """Show what is around the present scope and select the instance that one comes from; False at the root."""
        if not self._views:
            return False
        return self.set_scope(self.scope[:-1])

    def set_scope(self, scope: tuple[ScopeStep, ...]) -> bool:
        """Go along a way from the root; False when it leads nowhere, then nothing changes."""
        present = self.scope
        if scope == present:
            return True
        same = 0
        while same < min(len(scope), len(present)) and scope[same] == present[same]:
            same += 1
        made = self._views_along(scope[same:], self._views[same - 1] if same else self.root)
        if len(made) != len(scope) - same:
            for view in made:
                view.deleteLater()
            return False
        came_from = present[same].instance if len(scope) == same else ""
        kept, gone = self._views[:same], self._views[same:]
        self._views = [*kept, *made]
        self._show((came_from,) if came_from in self.document.graph else ())
        for view in gone:
            view.deleteLater()
        return True

    def undo(self) -> None:
        """Take back the last step and show where it was."""
        self._go_where(self.root.undo())

    def redo(self) -> None:
        self._go_where(self.root.redo())

    def _go_where(self, change: ChangeSet | None) -> None:
        """Stay where a change is seen, else leave the templates until it is."""
        if change is None or not self._views:
            return
        for depth in range(len(self._views), 0, -1):
            if self._views[depth - 1].template in change.templates:
                self.set_scope(self.scope[:depth])
                return
        if change.removed or change.computed or change.moved or change.frames or change.redrawn:
            self.set_scope(())
        elif change.templates:
            self.message.emit("info", tr("That was in the template '{name}'", name=min(change.templates)))

    def show_finding(self, finding: Diagnostic) -> bool:
        """Select the layer of a finding about what is shown; one inside of a template is gone to. False for no layer."""
        name = finding.layer
        if name is None and finding.template is not None and self.enter(finding.template):
            name = finding.inner
        while name is not None and finding.inner is not None and name in self.document.graph and self.enter(name):
            deeper = [
                d
                for d in self.document.diagnostics()
                if d.code == finding.code and (d.inner or d.layer) == finding.inner and d.layer is not None
            ]
            name = deeper[0].layer if deeper else finding.inner
        if name is None or name not in self.document.graph:
            return False
        self.reveal_requested.emit(name)
        return True

    def path_of(self, layer: str) -> str:
        """The name under which the engine knows a layer that is in sight; empty in a template that no instance led to."""
        steps = [view.instance for view in self._views]
        return ".".join((*steps, layer)) if all(steps) else ""

    def paths(self, layers: Iterable[str]) -> tuple[str, ...]:
        """`path_of` each, without those that have none."""
        return tuple(path for layer in layers if (path := self.path_of(layer)))

    def in_sight(self, path: str) -> str:
        """The layer that is shown for what the engine calls `path`: itself, or the instance it is inside of; else empty."""
        around = self.path_of("")
        if not path.startswith(around) or (self._views and not around):
            return ""
        rest = path.removeprefix(around)
        return next((name for name in enclosing(rest) if name in self.document.graph), "")

    def reveal(self, path: str) -> None:
        """Show the layer that the engine calls `path`, in the template that it is in."""
        found = self.find(path)
        if found is not None and self.set_scope(found[0]):
            self.reveal_requested.emit(found[1])

    def find(self, path: str) -> tuple[tuple[ScopeStep, ...], str] | None:
        """The scope and the name of a layer that the engine calls `path` (`group_1.conv_1`); None when it is nowhere."""
        return find_layer(self.root.graph, path)

    def path_after(self, path: str, change: ChangeSet) -> str:
        """The name that the engine has for the layer `path` after an edit that renamed or removed layers; empty: it is gone."""
        graph, rest, done = self.root.graph, path, ""
        renamed, gone = change.renamed, change.removed - change.renamed.keys()
        before = {new: old for old, new in change.renamed_templates.items()}
        while True:
            names = (name for name in enclosing(rest) if name not in gone and renamed.get(name, name) in graph)
            name = next(names, None)
            if name is None:
                return ""
            layer = graph[renamed.get(name, name)]
            done += layer.name
            template = layer.params.get(PARAMETER, "") if layer.type == INSTANCE else ""
            if name == rest or template not in self.root.graph.templates:
                return done if name == rest else ""
            renamed, gone = change.renamed_inside.get(before.get(template, template), {}), frozenset()
            graph, rest, done = self.root.graph.inside(template), rest[len(name) + 1 :], f"{done}."

    def _views_along(self, steps: tuple[ScopeStep, ...], outer: Document | None = None) -> list[TemplateView]:
        """Views for the steps as far as they lead."""
        outer = outer if outer is not None else self.root
        made: list[TemplateView] = []
        for step in steps:
            if not TemplateView.leads(outer, step):
                break
            outer = TemplateView(outer, step, self)
            made.append(outer)
        return made

    def _forget_views(self, first: int) -> None:
        gone, self._views = self._views[first:], self._views[:first]
        for view in gone:
            view.deleteLater()

    def _on_root(self, change: ChangeSet) -> None:
        """Keep the views true, from the root inwards; one that leads nowhere any more is left."""
        for number, view in enumerate(self._views):
            if not view.follow(change):
                self._forget_views(number)
                self._show()
                return

    def _show(self, selection: tuple[str, ...] = ()) -> None:
        if self._shown is not None:
            self._shown.changed.disconnect(self._follow)
        document = self._shown = self.document
        self._selection = ()
        self.document_changed.emit(document)
        document.changed.connect(self._follow)  # after the views, so that they know a new name before it is selected
        self._selection = selection
        self.selection_changed.emit(selection)

    # --- the selection ---------------------------------------------------------------------------------------

    @property
    def selection(self) -> tuple[str, ...]:
        return self._selection

    def select(self, names: tuple[str, ...]) -> None:
        """Set the selection. Listeners are notified only if it changes."""
        if names != self._selection:
            self._selection = names
            self.selection_changed.emit(names)

    def tell_result(self, good: bool, text: str) -> None:
        """Show how a command ended in the status bar."""
        self.message.emit("info" if good else "error", text)

    def _remember_inspected(self, layer: str) -> None:
        self.inspected_layer = layer

    def _follow(self, change: object) -> None:
        """Keep the selection true: renamed layers stay selected, removed ones do not."""
        if isinstance(change, ChangeSet) and change.removed and self._root is not None:
            names = (change.renamed.get(n, n) for n in self._selection)
            self.select(tuple(n for n in names if n in self.document.graph))
