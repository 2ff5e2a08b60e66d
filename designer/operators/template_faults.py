"""Problems of templates and their instances that follow from names and structure alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.graph.template import INPUT, INSTANCE, OUTPUT, PARAMETER, closure, recursion
from designer.operators.api import Operator, Role
from designer.operators.library.development.template import TemplateInstance
from designer.texts import tr

MAX_DEPTH = 16  # templates inside templates
MAX_EXPANDED = 50_000  # layers that one instance represents, including those of templates inside


def structure(graph: Graph, name: str) -> tuple[Diagnostic, ...]:
    """Why a template cannot be replaced by its layers: it uses itself, or is too deep or too large."""
    path = recursion(graph.templates, name)
    if path:
        return (
            Diagnostic(
                "recursive-template",
                tr("the template '{name}' uses itself: {path}", name=name, path=" > ".join(path)),
                remedy=tr("remove one of these instances from its template"),
                template=name,
            ),
        )
    loops = [used for used in closure(graph.templates, name) if recursion(graph.templates, used)]
    if loops:
        return structure(graph, loops[0])
    depth, size = _extent(graph, name, {})
    if depth > MAX_DEPTH or size > MAX_EXPANDED:
        what = (
            tr("{depth} levels, the limit is {MAX_DEPTH}", depth=depth, MAX_DEPTH=MAX_DEPTH)
            if depth > MAX_DEPTH
            else tr("more than {MAX_EXPANDED} layers", MAX_EXPANDED=MAX_EXPANDED)
        )
        return (
            Diagnostic(
                "template-too-large",
                tr("the template '{name}' with the templates that it uses is too large: {what}", name=name, what=what),
                remedy=tr("use fewer templates inside templates"),
                template=name,
            ),
        )
    return ()


def _extent(graph: Graph, name: str, known: dict[str, tuple[int, int]]) -> tuple[int, int]:
    """(depth, number of layers) of a template that does not use itself. Iterative, because files may nest deeply."""
    todo = [name]
    while todo:
        present = todo[-1]
        template = graph.templates.get(present)
        uses = template.uses() if template is not None else ()
        open_ = [used for used in uses if used not in known]
        if open_:
            todo.extend(dict.fromkeys(open_))
            continue
        todo.pop()
        depth = 1 + max((known[used][0] for used in uses), default=0) if template is not None else 0
        size = len(template.layers) + sum(known[used][1] for used in uses) if template is not None else 0
        known[present] = (depth, min(size, MAX_EXPANDED + 1))
    return known[name]


def unknown(layer: Layer, names: Sequence[str]) -> Diagnostic:
    wanted = layer.params.get("template", "")
    shown = ", ".join(f"'{name}'" for name in names[:8])
    return Diagnostic(
        "unknown-template",
        tr("there is no template '{wanted}'", wanted=wanted) if wanted else tr("no template is selected"),
        layer=layer.name,
        parameter="template",
        remedy=tr("choose one of {shown}", shown=shown) if names else tr("create a template first"),
    )


def outside(layer: Layer) -> Diagnostic:
    return Diagnostic(
        "outside-template",
        tr("a layer of the type '{type}' is a port of a template but is outside any template", type=layer.type),
        layer=layer.name,
        remedy=tr("move it into a template, or use an input or output layer"),
    )


def misplaced(layer: Layer, cls: type[Operator] | None) -> Iterator[Diagnostic]:
    """Problems of a layer that cannot be inside a template as it is."""
    if layer.type == INPUT and layer.activation is not None:
        yield Diagnostic(
            "activation-on-port",
            tr("an input of a template passes its tensor through and cannot have an activation"),
            layer=layer.name,
            remedy=tr("remove it, or add an activation layer after the port"),
        )
    if cls is not None and cls.role in (Role.INPUT, Role.OUTPUT):
        wanted = INPUT if cls.role is Role.INPUT else OUTPUT
        yield Diagnostic(
            "not-in-template",
            tr("a layer of the type '{type}' belongs to the whole network", type=layer.type),
            layer=layer.name,
            remedy=tr("use a {wanted} layer in the template", wanted=wanted),
        )


def _shares(layer: Layer, template: str) -> bool:
    """Whether a layer is an instance of a template that uses its shared weights."""
    own = layer.params.get(PARAMETER) == template and layer.params.get("shared_weights", "").strip() == "true"
    return layer.type == INSTANCE and own


def clashes(
    name: str, operator: TemplateInstance, siblings: Sequence[str], graph: Graph, dotted: Sequence[str]
) -> Iterator[Diagnostic]:
    """Layers whose names are needed for the layers inside, or for shared weights.

    `siblings` and `dotted` are names that contain a dot: of layers in the same network as the instance, and of all layers.
    """
    taken = next((other for other in siblings if other.startswith(f"{name}.")), None)
    if taken is not None:
        yield Diagnostic(
            "template-name-clash",
            tr(
                "names that begin with '{name}.' are reserved for the layers inside '{name}', but "
                "'{taken}' has such a name",
                name=name,
                taken=taken,
            ),
            layer=name,
            remedy=tr("rename '{taken}'", taken=taken),
        )
    if operator.shared_weights:
        base = operator.template
        within = (n for n in dotted if n.startswith(f"{base}."))
        named = graph.get(base)
        other = base if named is not None and not _shares(named, base) else next(within, None)
        if other is not None:
            yield Diagnostic(
                "template-name-clash",
                tr(
                    "shared weights are named after the template '{base}', but the layer '{other}' has that name",
                    base=base,
                    other=other,
                ),
                layer=name,
                parameter="shared_weights",
                remedy=tr("rename the layer or the template"),
            )
