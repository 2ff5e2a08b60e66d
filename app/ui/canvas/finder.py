"""Finding layers by name, type, parameter or shape, and going from problem to problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from app.ui.canvas.canvas import Canvas
from app.ui.canvas.node_look import shape_text
from app.ui.document.document import Document
from app.ui.document.template_view import Step
from app.ui.engine.context import Context
from app.ui.widgets import theme
from app.ui.widgets.search_popup import Found, SearchPopup
from designer.graph.inference import LayerState
from designer.graph.model import Layer
from designer.operators.registry import Registry
from designer.texts import tr, tr_data

SHOWN = 200  # lines of the list


def matches(document: Document, query: str) -> Iterator[tuple[str, str]]:
    """(layer, where it was found) of the layers that hold every word of `query`, from left to right.

    Words are looked for in the name, the type, its title, `parameter=value` and the shapes.
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
    """Ctrl+F, F3 and F8."""

    def __init__(self, context: Context, canvas: Canvas) -> None:
        self._context = context
        self._canvas = canvas
        self._query = ""
        self._scope: tuple[Step, ...] = ()  # where the walk along problems began
        self._problem: str | None = None  # the layer there that was gone to last
        self._landed: tuple[object, object] | None = None  # scope and selection that it led to
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

    def _search(self, text: str) -> Iterator[Found]:
        return islice(self._found(text), SHOWN)

    def _found(self, text: str) -> Iterator[Found]:
        """What is shown first, then the insides of the templates that are not shown; their shapes depend on the instance."""
        document, scope = self._context.document, self._context.scope
        for name, where in matches(document, text):
            yield self._line(document.graph[name], name, where)
        for template in document.graph.templates.values():
            if text and not (scope and scope[-1].template == template.name):
                layers = {layer.name: layer for layer in template.layers}
                for name, _ in _matches(layers.values(), {}, document.registry, text):
                    yield self._line(layers[name], f"{template.name}/{name}", tr("in {name}", name=template.name))

    def _line(self, layer: Layer, key: str, where: str) -> Found:
        cls = self._context.registry.get(layer.type)
        return Found(key, layer.name, where, "", theme.category_icon(cls.category) if cls is not None else None)

    def _go(self, key: str) -> None:
        self._query = self._popup.text
        template, inside, name = key.rpartition("/")
        if inside:
            self._context.set_scope(self._context.way_to(template))
        self._canvas.reveal(name)
        self._canvas.setFocus()

    def next(self, step: int = 1) -> None:
        """The next layer that holds the words of the last search; asks for them first."""
        if not self._query:
            self.open()
            return
        names = [name for name, _ in matches(self._context.document, self._query)]
        if not self._walk(names, step):
            self._context.message.emit("info", tr("No layer matches '{query}'.", query=self._query))

    def next_problem(self, step: int = 1) -> None:
        """The next layer with a finding, from left to right; says what it is. One inside of a template is gone to."""
        context = self._context
        if (context.scope, context.selection) == self._landed:  # go on in the scope that the walk began in
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
        """Reveal the one of `names` after the selected layer, round and round; False when there is none."""
        if not names:
            return False
        present = self._context.selection[-1] if self._context.selection else None
        place = names.index(present) + step if present in names else 0 if step > 0 else -1
        self._canvas.reveal(names[place % len(names)])
        return True
