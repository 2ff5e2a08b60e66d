"""The look of nodes as plain data, computed from the document and painted by `node_paint.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import cast

from app.ui.canvas import node_metrics
from app.ui.document.document import Document
from app.ui.widgets.message import SPOKEN
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.inference import LayerState
from designer.graph.model import Layer
from designer.graph.template import INSTANCE, PARAMETER
from designer.graph.types import TensorType
from designer.operators import links
from designer.operators.api import Category, Operator, Port
from designer.operators.registry import Read
from designer.texts import tr, tr_data, trn


@dataclass(frozen=True, slots=True)
class PortLook:
    """One port. `free` marks the empty input of a variadic port, `extra` one that is beyond the inputs with names of their own."""

    name: str
    tip: str = ""
    free: bool = False
    extra: bool = False


@dataclass(frozen=True, slots=True)
class NodeLook:
    """One node. `problem` is "error", "warning", "unknown" (because of another layer) or empty.

    `training`: part of the training branch, which inference leaves out. `collapsed`: only the title is shown. `bypassed`:
    drawn ghosted, because an input is passed through instead.
    """

    name: str
    title: str
    category: Category | None
    summary: str = ""
    activation: str = ""
    inputs: tuple[PortLook, ...] = ()
    outputs: tuple[PortLook, ...] = ()
    shapes: tuple[str, ...] = ()
    problem: str = ""
    inspected: bool = False
    training: bool = False
    tip: str = ""
    metric: str = ""  # shown below the node in place of the shapes
    collapsed: bool = False
    bypassed: bool = False

    @property
    def marks(self) -> int:
        """The number of marks in the title bar."""
        return bool(self.problem) + self.inspected + self.training

    @property
    def named_inputs(self) -> bool:
        """Whether input names are shown, which they are if there is more than one."""
        return len({p.name for p in self.inputs}) > 1

    @property
    def under(self) -> str:
        """The text below the node."""
        return self.metric or ", ".join(self.shapes)

    @property
    def named_outputs(self) -> bool:
        return len(self.outputs) > 1


def node_look(document: Document, name: str, *, inspected: bool = False) -> NodeLook:
    """The look of a layer in the current document; `inspected` means that the Channel Inspector shows it."""
    layer = document.graph[name]
    state = document.inference.states.get(name, LayerState())
    read = cast(Read, document.inference.read(name))
    operator, cls = read.operator, document.registry.get(layer.type)
    inputs = input_ports(layer, operator, cls)
    outputs = output_ports(operator, cls)
    problem = _problem(state)
    return NodeLook(
        name=name,
        title=tr_data(cls.title) if cls is not None else tr("unknown: {type}", type=layer.type),
        category=cls.category if cls is not None else None,
        summary=_summary(layer, operator) + _times(document, layer) + _frozen(layer),
        activation=layer.activation.type if layer.activation is not None else "",
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        shapes=tuple(shape_text(t) for t in state.outputs or ()),
        problem=problem,
        inspected=inspected,
        training=name in document.training,
        tip=_tip(document, layer, cls, state, node_metrics.summary(layer, read, state)),
        metric=node_metrics.metric(layer, read, state, node_metrics.shown()),
        collapsed=layer.collapsed,
        bypassed=layer.bypassed,
    )


def _frozen(layer: Layer) -> str:
    """The mark of a layer whose weights training keeps."""
    return f"  {tr('frozen')}" if layer.frozen else ""


def shape_text(tensor: TensorType) -> str:
    """The shape without its batch dimension: `32 x 64 x 64`."""
    text = str(tensor)
    return text.removeprefix("N x ")


def typed(tensor: TensorType) -> str:
    """Shape and element type: `N x 3 x 64 x 64 float32`."""
    shape = str(tensor)
    return shape if shape.endswith(tensor.dtype.value) else f"{shape} {tensor.dtype.value}"


def input_ports(layer: Layer, operator: Operator | None, cls: type[Operator] | None) -> list[PortLook]:
    """One look per input of `layer`; a variadic port has its connections and one free input."""
    declared: Sequence[Port] = operator.input_ports() if operator is not None else cls.inputs if cls is not None else ()
    if not declared:
        surplus = len(layer.inputs)
        return [PortLook(tr("input {number}", number=i), tr("input {number}", number=i)) for i in range(surplus)]
    looks: list[PortLook] = []
    for port in declared:
        if not port.variadic:
            looks.append(PortLook(port.name, _port_tip(port)))
            continue
        first = len(looks)
        connected = max(0, len(layer.inputs) - first)
        for number in range(connected + 1):
            extra = number > 0 and first > 0
            name = links.port_name(port, number) if extra else port.name  # the inputs of one port alone need no numbers
            looks.append(PortLook(name, _port_tip(port, number), free=number == connected, extra=extra))
    while len(looks) < len(layer.inputs):  # excess connections are shown so that they can be removed
        looks.append(PortLook(tr("input {number}", number=len(looks)), tr("excess connection: remove it")))
    return looks


def output_ports(operator: Operator | None, cls: type[Operator] | None) -> list[PortLook]:
    """One look per output. A layer of unknown type has one, so that its links stay visible."""
    if operator is not None:
        return [PortLook(p.name, _port_tip(p)) for p in operator.output_ports()]
    return [PortLook(p.name, _port_tip(p)) for p in cls.outputs] if cls is not None else [PortLook("y")]


def _port_tip(port: Port, number: int | None = None) -> str:
    ranks = (port.rank,) if isinstance(port.rank, int) else port.rank or ()
    parts = [port.name if number is None else f"{port.name} {number + 1}"]
    if ranks:
        parts.append(tr("rank {ranks}", ranks=tr(" or ").join(str(r) for r in ranks)))
    if port.dtypes:
        parts.append(tr(" or ").join(d.value for d in port.dtypes))
    if port.optional:
        parts.append(tr("optional"))
    text = ", ".join(parts)
    return f"{text}: {tr_data(port.doc)}" if port.doc else text


def _summary(layer: Layer, operator: Operator | None) -> str:
    if operator is None:
        return ""
    text = operator.summary()
    if not text and any(p.variadic for p in operator.input_ports()):
        count = sum(1 for source in layer.inputs if source is not None)
        text = trn("{count} input", "{count} inputs", count)
    return text


def _times(document: Document, layer: Layer) -> str:
    """The number of instances of this layer's template as ` ×N`, or an empty string if there is only one."""
    name = layer.params.get(PARAMETER, "") if layer.type == INSTANCE else ""
    count = document.instances[name] if name else 0
    return f" ×{count}" if count > 1 else ""


def _problem(state: LayerState) -> str:
    severities = {d.severity for d in state.diagnostics}
    if Severity.ERROR in severities:
        return "error"
    if state.because_of is not None:
        return "unknown"
    return "warning" if Severity.WARNING in severities else ""


def _tip(document: Document, layer: Layer, cls: type[Operator] | None, state: LayerState, metrics: str) -> str:
    lines = [f"<b>{escape(layer.name)}</b> - {escape(tr_data(cls.title) if cls is not None else layer.type)}"]
    if cls is not None and _first_line(cls):
        lines.append(escape(_first_line(cls)))
    if layer.bypassed:
        passed = document.inference.passed_input(layer.name)
        lines.append(
            tr("bypassed: passes '{source}' through in inference, analysis and exports", source=escape(str(passed)))
            if passed is not None
            else tr("bypassed")
        )
    if layer.frozen:
        lines.append(tr("frozen: training keeps its weights"))
    if layer.name in document.training:
        lines.append(tr("part of the training branch: left out of inference"))
    if state.outputs:
        lines.append(tr("output {types}", types=escape(", ".join(typed(t) for t in state.outputs))))
        if metrics:
            lines.append(escape(metrics))
    elif state.because_of is not None:
        lines.append(tr("output unknown because of '{layer}'", layer=escape(state.because_of)))
    lines += [_finding(d) for d in state.diagnostics]
    return "<br>".join(lines)


def _first_line(cls: type[Operator]) -> str:
    return tr_data(cls.help()).partition("\n")[0]


def _finding(finding: Diagnostic) -> str:
    remedy = f" ({finding.remedy})" if finding.remedy else ""
    return f"{tr_data(SPOKEN[finding.severity.value])}: {escape(finding.message + remedy)}"
