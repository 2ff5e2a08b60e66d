"""What if: the predicted time and training memory of a network with other parameters, sizes, batches, precisions or machines."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.template import enclosing
from designer.graph.types import Size2D
from designer.operators.deploy import deploy
from designer.operators.registry import Registry
from designer.profiling.cost import CostTable, LayerCost, cost_table
from designer.profiling.devices import DEVICES, device_named
from designer.profiling.layer_work import ALIASES
from designer.profiling.measure import fixed_batch, sized
from designer.profiling.model import DataSheetModel, predict
from designer.profiling.predicted_here import predict_here
from designer.profiling.quantities import ValueSource
from designer.profiling.schema import ProfileRun
from designer.runtime.api import Progress, RunOptions
from designer.runtime.network import input_layers
from designer.texts import tr
from designer.units import dims_text

OPTIMIZER_STATES = {"sgd": 0, "sgd with momentum": 1, "rmsprop": 1, "adam": 2, "adamw": 2}
"""Values that an optimizer keeps per learned value."""

KEEP_RESULT = frozenset({"relu", "sigmoid", "tanh", "softmax", "log_softmax"})
"""Activations of which autograd keeps the result; of others it keeps the input, which another layer made if they are not attached."""
KEEP_MORE = frozenset({"softsign", "rrelu"})
"""Activations of which autograd also keeps a tensor of the size of the result."""


def predicted_run(
    graph: Graph,
    registry: Registry,
    options: RunOptions,
    *,
    batch: int = 1,
    size: Size2D | None = None,
    machine: str = "",
    store: Path | None = None,
    progress: Progress | None = None,
) -> ProfileRun:
    """The modelled run of the deployed network of a document: on `machine` of `devices.py`, or on this one.

    On this machine the operators of the network are measured one by one (`predicted_here.py`). Raises DiagnosticError
    ("unknown-machine", "not-modelled").
    """
    inference = sized(deploy(graph, registry), registry, size)
    batch = fixed_batch(inference) or batch
    table = cost_table(inference, precision=options.precision, batch=batch)
    if not table.rows:
        raise DiagnosticError(
            Diagnostic(
                "not-modelled", tr("the shapes of the network are not known"), remedy=tr("fix its problems first")
            )
        )
    base = _base(inference, options, batch)
    if machine:
        return predict(table, _data_sheet(machine, options.precision), base)
    if options.device != "cpu":
        message = tr("the GPU of this machine is not calibrated; its operators are measured instead")
        raise DiagnosticError(
            Diagnostic("not-modelled", message, remedy=tr("profile the network, or choose a machine"))
        )
    return predict_here(inference, registry, options, table, base, store, progress)


def _data_sheet(machine: str, precision: str) -> DataSheetModel:
    sheet = device_named(machine)
    if sheet is None:
        names = ", ".join(device.name for device in DEVICES)
        message = tr("the machine '{machine}' is not known", machine=machine)
        raise DiagnosticError(Diagnostic("unknown-machine", message, remedy=tr("choose one of {names}", names=names)))
    return DataSheetModel(sheet, precision)


def _base(inference: Inference, options: RunOptions, batch: int) -> ProfileRun:
    """The configuration that is predicted."""
    inputs: dict[str, tuple[int, ...]] = {}
    for name in input_layers(inference.graph, inference):
        outputs = inference.states[name].outputs
        if outputs:
            inputs[name] = outputs[0].concrete(batch)
    image = next((shape for shape in inputs.values() if len(shape) == 4), None)
    return ProfileRun(
        engine=options.engine,
        precision=options.precision,
        layout=options.layout,
        device=options.device,
        batch=batch,
        size=f"{image[3]}x{image[2]}" if image else "",
        time_ms=None,
        spread_ms=None,
        operators=(),
        source=ValueSource.MODELLED,
        threads=options.threads,
        inputs={name: dims_text(shape) for name, shape in inputs.items()},
    )


@dataclass(frozen=True)
class LayerTrainingMemory:
    """Bytes that a layer needs for a training step. `activations` are its outputs, kept for the backward pass."""

    layer: str
    weights: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations


@dataclass(frozen=True)
class TrainingMemory:
    """Modelled memory of a training step, by layer. Temporary buffers of kernels and of the framework are not included."""

    optimizer: str
    rows: tuple[LayerTrainingMemory, ...]

    @property
    def total(self) -> int:
        return sum(row.total for row in self.rows)


def training_memory(table: CostTable, optimizer: str = "adam") -> TrainingMemory:
    """Activations, gradients and optimizer states of every layer that needs memory.

    Weights that layers share count once; those of frozen layers have neither gradients nor optimizer states. Of layers before
    the first trained one, only the inputs and the tensors that a layer with a gradient reads are kept.
    """
    states = OPTIMIZER_STATES[optimizer]
    differentiated = _differentiated(table)
    read = _read_for_gradients(table, differentiated)
    seen: set[str] = set()
    rows = []
    for name, row in table.rows.items():
        shared = table.graph[name].weights_name
        first = shared not in seen
        seen.add(shared)
        learned = row.learned * table.item_bytes if first and not _is_frozen(table, name) else 0
        activations = 0
        if name in differentiated:
            activations = _kept(table, name, row.parameters)
        elif not _is_alias(row) and (name in read or not row.sources):
            activations = sum(table.bytes_of(kind) for kind in row.outputs)
        found = LayerTrainingMemory(name, row.weight_bytes if first else 0, learned, states * learned, activations)
        if found.total:
            rows.append(found)
    return TrainingMemory(optimizer, tuple(rows))


def _is_frozen(table: CostTable, name: str) -> bool:
    shared = table.graph[name].weights_name
    return any(outer in table.graph and table.graph[outer].frozen for outer in enclosing(shared))


def _differentiated(table: CostTable) -> set[str]:
    """The layers whose outputs need gradients: those with trained weights, and all that depend on one."""
    found: set[str] = set()
    for name, row in table.rows.items():
        trained = row.learned and not _is_frozen(table, name)
        if trained or any(source.layer in found for source in row.sources):
            found.add(name)
    return found


def _read_for_gradients(table: CostTable, differentiated: Collection[str]) -> set[str]:
    """The layers whose outputs are inputs of `differentiated` layers, also through layers that hand their input on."""
    found: set[str] = set()
    for name, row in reversed(list(table.rows.items())):
        if name in differentiated or (name in found and _is_alias(row)):
            found.update(source.layer for source in row.sources)
    return found


def _is_alias(row: LayerCost) -> bool:
    """Whether the output is the memory of the input."""
    return row.type in ALIASES and not row.parameters.get("activation", "")


def _kept(table: CostTable, name: str, parameters: Mapping[str, str]) -> int:
    """Bytes of the outputs, and of what autograd keeps for an activation besides its result."""
    row, activation = table.rows[name], parameters.get("activation", "")
    if _is_alias(row):
        return 0
    kept = [table.bytes_of(kind) for kind in row.outputs]
    input_is_kept = activation and activation not in KEEP_RESULT
    if input_is_kept and row.type != "activation" and row.type not in ALIASES:  # else the layer before made it
        kept.append(kept[0] * (2 if activation == "glu" else 1))
    if activation in KEEP_MORE:
        kept.append(kept[0])
    return sum(kept)
