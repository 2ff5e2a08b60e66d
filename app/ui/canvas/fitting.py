"""Whether a link would fit where it is about to end: trial inference of the one layer that would read it."""

from __future__ import annotations

from typing import cast

from app.ui.document.document import Document
from designer.graph.model import Source
from designer.graph.types import ShapeError, TensorType
from designer.operators.api import Port
from designer.operators.registry import Read

Key = tuple[str, int]  # consumer, input index


def misfit(document: Document, source: Source, consumer: str, index: int, loose: Key | None = None) -> str:
    """The rule that `consumer` would break by reading `source` at input `index`; empty when it fits or cannot be known.

    `loose` is the link that is being moved, which its consumer no longer reads. A port that is taken is no reason: the
    link there is replaced. Nothing is changed; one operator infers one time.
    """
    if loose == (consumer, index) and document.graph[consumer].inputs[index] == source:
        return ""
    read = cast(Read, document.inference.read(consumer))
    tensor = output_type(document, source)
    if read.operator is None or tensor is None:
        return ""
    inputs: list[Source | None] = list(document.graph[consumer].inputs)
    if loose is not None and loose[0] == consumer and loose[1] < len(inputs):
        inputs[loose[1]] = None
    inputs += [None] * (index + 1 - len(inputs))
    inputs[index] = source
    while inputs and inputs[-1] is None:
        inputs.pop()
    ports = read.operator.input_ports()
    variadic = bool(ports) and ports[-1].variadic
    types: list[TensorType] = []
    for number, other in enumerate(inputs):
        known = output_type(document, other) if other is not None else None
        if known is not None:
            types.append(known)
        elif other is not None or not (variadic and number >= len(ports) - 1):
            return ""  # something else is missing or unknown: the rest is seen when it is there
    try:
        outputs = read.operator.infer_checked(types)
        if read.activation is not None:
            read.activation.infer_checked(outputs[:1])
    except ShapeError as error:
        return "" if error.code == "missing-input" else error.message
    except Exception:  # a plugin's mistake; Type Checking tells it where it matters
        return ""
    return ""


def takes(port: Port, tensor: TensorType | None) -> bool:
    """Whether a port takes such a tensor, as far as its declaration says; yes where the tensor is unknown."""
    if tensor is None:
        return True
    ranks = (port.rank,) if isinstance(port.rank, int) else port.rank
    return (ranks is None or tensor.rank in ranks) and (not port.dtypes or tensor.dtype in port.dtypes)


def output_type(document: Document, source: Source) -> TensorType | None:
    """What flows out of a port; None where it is not known."""
    state = document.inference.states.get(source.layer)
    if state is None or not state.outputs:
        return None
    if not source.port:
        return state.outputs[0]
    operator = cast(Read, document.inference.read(source.layer)).operator
    names = [p.name for p in operator.output_ports()] if operator is not None else []
    number = names.index(source.port) if source.port in names else len(names)
    return state.outputs[number] if number < len(state.outputs) else None
