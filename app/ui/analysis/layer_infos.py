"""What the document knows of the layers that ran: types, shapes, and what they cost by their declarations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from app.ui.document.document import Document
from app.ui.widgets.background import Background
from designer.graph.commands import set_params
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.api import Category
from designer.operators.inlining import inline, is_flat
from designer.operators.registry import Registry
from designer.profiling.cost import CostTable, cost_table
from designer.profiling.matching import match_rows
from designer.profiling.quantities import ValueSource
from designer.profiling.schema import OperatorProfile, ProfileRun
from designer.texts import tr, tr_data

FEW = 64  # layers of which everything is known at once; more are looked at in a thread
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
    measured: float | None = None  # ms in a profile, where there is one of this network


def layer_infos(
    graph: Graph,
    registry: Registry,
    fed: Mapping[str, tuple[int, ...]],
    precision: str = "fp32",
    run: ProfileRun | None = None,
) -> dict[str, LayerInfo]:
    """Of every layer as it ran, at the size of what was fed; those of templates have the names that the engine gives them."""
    sizes: dict[str, dict[str, str]] = {}
    for name, shape in fed.items():
        layer = graph.get(name)
        if layer is not None and len(shape) == 4 and "dims" in layer.params:
            sizes[name] = {"dims": f"{shape[3]}x{shape[2]}x{shape[1]}"}
    sized = graph.copy()
    sized.apply(set_params(sized, sizes))
    if not is_flat(sized):
        sized = inline(sized, registry)
    inference = Inference(sized, registry)
    batch = max((shape[0] for shape in fed.values() if shape), default=1)
    costs = cost_table(inference, precision=precision, batch=batch)
    profile = match_rows(run, inference).rows if run is not None and run.source is ValueSource.MEASURED else {}
    infos = {}
    for layer in sized:
        cls = registry.get(layer.type)
        outputs = inference.states[layer.name].outputs
        shape_text = ", ".join(str(t) for t in outputs) if outputs else tr("unknown")
        title, category = (tr_data(cls.title), cls.category) if cls is not None else (layer.type, None)
        memory, weight = _figures(costs, layer.name)
        infos[layer.name] = LayerInfo(
            layer.type, title, shape_text, category, memory, weight, _measured(costs, profile, layer.name)
        )
    return infos


def _measured(costs: CostTable, profile: Mapping[str, OperatorProfile], name: str) -> float | None:
    """The time in ms of a layer in a profile; layers that the engine fused there share their time by their weights."""
    row = profile.get(name)
    if row is None:
        return None
    weights = {layer: _figures(costs, layer)[1] for layer in row.layers}
    total = sum(weights.values())
    return row.time_ms * weights[name] / total if total else row.time_ms / len(weights)


def _figures(costs: CostTable, name: str) -> tuple[int | None, float]:
    row = costs.rows.get(name)
    if row is None:
        return None, 0.0
    cost = costs.group([name])
    memory = sum(costs.bytes_of(kind) for kind in row.outputs)
    return memory, cost.flops / FLOPS + (cost.bytes_read + cost.bytes_written) / BYTES


class LayerInfos(QObject):
    """The infos of the open document; `changed` when those of a large one come from the thread."""

    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.infos: dict[str, LayerInfo] = {}
        self._key: object = None
        self._request: tuple[Graph, Registry, dict[str, tuple[int, ...]], str, ProfileRun | None] | None = None
        self._background = Background(self)
        self._background.done.connect(self._done)
        self._background.failed.connect(lambda found: self._next())

    def ask(
        self, document: Document, fed: Mapping[str, tuple[int, ...]], revision: int, run: ProfileRun | None = None
    ) -> None:
        """The infos for what the document is now, and `run` of a profile; nothing is done when they are known."""
        precision = document.settings.precision
        key = (id(document), revision, tuple(sorted(fed.items())), precision, id(run))
        if key == self._key:
            return
        self._key = key
        if len(document.graph) <= FEW:
            self._request = None
            self.infos = layer_infos(document.graph, document.registry, fed, precision, run)
            return
        self._request = (document.graph.copy(), document.registry, dict(fed), precision, run)
        if not self._background.running:
            self._next()

    def _next(self) -> None:
        if self._request is not None:
            request, self._request = self._request, None
            key = self._key
            self._background.start(lambda: (key, layer_infos(*request)))

    def _done(self, answer: object) -> None:
        if self._request is not None:  # the document is another one by now
            self._next()
        elif isinstance(answer, tuple) and answer[0] == self._key:
            self.infos = answer[1]
            self.changed.emit()
