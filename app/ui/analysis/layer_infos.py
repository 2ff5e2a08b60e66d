"""What the document knows of the layers that ran: types, shapes, and what they cost by their declarations."""

from __future__ import annotations

from dataclasses import dataclass

from app.ui.document import Document
from designer.graph.edits import Edit
from designer.graph.inference import Inference
from designer.graph.model import Layer
from designer.operators.api import Category
from designer.operators.inlining import has_instances, inline
from designer.profiling.cost import CostTable, cost_table

FLOPS, BYTES = 5e10, 1e10  # a second on an ordinary processor: only how they compare matters


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """What the document and the inference know of a layer. `memory` and `weight` are modelled: bytes, and work as time."""

    type: str
    title: str
    shape: str
    category: Category | None = None
    memory: int | None = None  # bytes of its outputs
    weight: float = 0.0  # seconds by its operations and bytes: how a group's measured time is shared out


def layer_infos(document: Document, fed: dict[str, tuple[int, ...]]) -> dict[str, LayerInfo]:
    """Of every layer as it ran, at the size of what was fed; those of templates have the names that the engine gives them."""
    graph = document.graph
    sizes: dict[str, tuple[Layer | None, Layer | None]] = {}
    for name, shape in fed.items():
        layer = graph.get(name)
        if layer is not None and len(shape) == 4 and "dims" in layer.params:
            sizes[name] = (layer, layer.with_param("dims", f"{shape[3]}x{shape[2]}x{shape[1]}"))
    sized = graph.copy()
    sized.apply(Edit("Size", sizes))
    if has_instances(sized):
        sized = inline(sized, document.registry)
    inference = Inference(sized, document.registry)
    batch = max((shape[0] for shape in fed.values() if shape), default=1)
    costs = cost_table(inference, precision="fp32", batch=batch)
    infos = {}
    for layer in sized:
        cls = document.registry.get(layer.type)
        outputs = inference.states[layer.name].outputs
        shape_text = ", ".join(str(t) for t in outputs) if outputs else "unknown"
        title, category = (cls.title, cls.category) if cls is not None else (layer.type, None)
        memory, weight = _figures(costs, layer.name)
        infos[layer.name] = LayerInfo(layer.type, title, shape_text, category, memory, weight)
    return infos


def _figures(costs: CostTable, name: str) -> tuple[int | None, float]:
    row = costs.rows.get(name)
    if row is None:
        return None, 0.0
    cost = costs.group([name])
    memory = sum(costs.bytes_of(kind) for kind in row.outputs)
    return memory, cost.flops / FLOPS + (cost.bytes_read + cost.bytes_written) / BYTES
