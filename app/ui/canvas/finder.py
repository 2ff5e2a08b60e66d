"""Search for layers by name, type, parameter or shape, and navigation between problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from app.ui.canvas.canvas import Canvas
from app.ui.canvas.node_look import shape_text
from app.ui.document.document import Document
from app.ui.document.template_view import ScopeStep
from app.ui.engine.context import Context
from app.ui.widgets import theme
from app.ui.widgets.search_popup import SearchMatch, SearchPopup
from designer.graph.inference import LayerState
from designer.graph.model import Layer
from designer.operators.registry import Registry
from designer.texts import tr, tr_data

SHOWN = 200  # maximum number of results


def matches(document: Document, query: str) -> Iterator[tuple[str, str]]:
    """Yield (layer, where it matched) for the layers that match every word of `query`, from left to right.

    Words are matched against the name, the type, its title, `parameter=value` and the shapes.
    """
    return _matches(document.graph, document.inference.states, document.registry, query)


def _matches(
    layers: Iterable[Layer], states: Mapping[str, LayerState], registry: Registry, query: str
) -> Iterator[tuple[str, str]]:
    words = query.casefold().replace(" x ", "x").split()
    for layer in sorted(layers, key=lambda layer: (layer.position, layer.name)):
        cls = registry.get(layer.type)
        state = states.get(layer.name)
        params = [f"{name}={text}" for name, text in layer.params.items()]
        if layer.activation is not None:
            params.append(f"activation={layer.activation.type}")
        shapes = [shape_text(tensor).replace(" ", "") for tensor in (state.outputs or ())] if state is not None else []
        title = tr_data(cls.title) if cls is not None else layer.type
        texts = [layer.name, layer.type, title, *params, *shapes]
        hits = [next((t for t in texts if word in t.casefold()), None) for word in words]
        if None not in hits:
            other = next((t for t in hits if t not in (None, layer.name)), None)
            yield layer.name, other or title


class Finder:
    """The commands behind Ctrl+F, F3 and F8."""

    def __init__(self, context: Context, canvas: Canvas) -> None:
        self._context = context
        self._canvas = canvas
        self._query = ""
        self._scope: tuple[ScopeStep, ...] = ()  # scope in which the walk through problems started
        self._problem: str | None = None  # last problem layer visited in that scope
        self._landed: tuple[object, object] | None = None  # scope and selection after the last step
        self._popup = SearchPopup(
            "find",
            tr("Find layers"),
            tr("Name, type, kernel=3x3, 64x64, ..."),
            tr("No layer matches."),
            self._search,
            canvas,
        )
        self._popup.chosen.connect(self._go)

    def open(self) -> None:
        self._popup.open_over(self._canvas, self._query)

    def _search(self, text: str) -> Iterator[SearchMatch]:
        return islice(self._found(text), SHOWN)

    def _found(self, text: str) -> Iterator[SearchMatch]:
        """Matches in the current scope first, then those around it and in other templates, without shapes, which depend on the instance."""
        document, scope, root = self._context.document, self._context.scope, self._context.root
        for name, where in matches(document, text):
            yield self._line(document.graph[name], name, where)
        if text and scope:
            for name, _ in matches(root, text):
                yield self._line(root.graph[name], f"/{name}", tr("in {name}", name=root.graph.name))
        for template in document.graph.templates.values():
            if text and not (scope and scope[-1].template == template.name):
                layers = {layer.name: layer for layer in template.layers}
                for name, _ in _matches(layers.values(), {}, document.registry, text):
                    yield self._line(layers[name], f"{template.name}/{name}", tr("in {name}", name=template.name))

    def _line(self, layer: Layer, key: str, where: str) -> SearchMatch:
        cls = self._context.registry.get(layer.type)
        return SearchMatch(key, layer.name, where, "", theme.category_icon(cls.category) if cls is not None else None)

    def _go(self, key: str) -> None:
        self._query = self._popup.text
        template, inside, name = key.rpartition("/")
        if inside:
            self._context.set_scope(self._context.way_to(template) if template else ())
        self._canvas.reveal(name)
        self._canvas.setFocus()

    def next(self, step: int = 1) -> None:
        """Go to the next match of the last query; open the search if there is none yet."""
        if not self._query:
            self.open()
            return
        names = [name for name, _ in matches(self._context.document, self._query)]
        if not self._walk(names, step):
            self._context.message.emit("info", tr("No layer matches '{query}'.", query=self._query))

    def next_problem(self, step: int = 1) -> None:
        """Go to the next layer with a diagnostic, from left to right, and show its message. Enters templates if needed."""
        context = self._context
        if (context.scope, context.selection) == self._landed:  # continue in the scope in which the walk started
            context.set_scope(self._scope)
        else:
            self._scope, self._problem = context.scope, context.selection[-1] if context.selection else None
        document = context.document
        found = {
            d.layer: d for d in reversed(document.diagnostics()) if d.layer is not None and d.layer in document.graph
        }
        names = sorted(found, key=lambda n: (document.graph[n].position, n))
        if not names:
            context.message.emit("info", tr("No problems"))
            return
        place = names.index(self._problem) + step if self._problem in names else 0 if step > 0 else -1
        self._problem = names[place % len(names)]
        problem = found[self._problem]
        context.show_finding(problem)
        self._landed = (context.scope, context.selection)
        text = f"{problem.message}: {problem.remedy}" if problem.remedy else problem.message
        context.message.emit(problem.severity.value, text)

    def _walk(self, names: list[str], step: int) -> bool:
        """Reveal the one of `names` that follows the selected layer, wrapping around. Returns False if `names` is empty."""
        if not names:
            return False
        present = self._context.selection[-1] if self._context.selection else None
        place = names.index(present) + step if present in names else 0 if step > 0 else -1
        self._canvas.reveal(names[place % len(names)])
        return True
