"""Opening a network for commands and reports: document, shapes, diagnostics and weights."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from designer.files.document import read_document
from designer.files.locations import located
from designer.files.settings import find_settings, read_settings
from designer.files.weights import (
    Weights,
    WeightStatus,
    fill_missing,
    load_weights,
    required_weights,
    weight_diagnostics,
)
from designer.graph.diagnostics import Diagnostic, DiagnosticError, errors
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.live_cost import LiveCost
from designer.operators.registry import Registry, default_registry
from designer.operators.training_branch import training_branch

MAX_SHOWN = 20


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One layer in a table: shape as text (or "unknown because of X") and number of parameters.

    Layers of the training branch are excluded from inference.
    """

    layer: str
    type: str
    shape: str
    parameters: int
    training: bool = False


@dataclass(frozen=True)
class OpenedNetwork:
    """An opened network with its inferred shapes and diagnostics."""

    path: Path
    graph: Graph
    registry: Registry
    inference: Inference
    diagnostics: tuple[Diagnostic, ...]

    @property
    def has_errors(self) -> bool:
        return bool(errors(self.diagnostics))

    def rows(self) -> list[LayerRow]:
        """The layers in topological order."""
        order, cyclic = self.graph.order()
        training = self.training
        return [self._row(name, name in training) for name in (*order, *cyclic)]

    @property
    def training(self) -> frozenset[str]:
        """The layers of the training branch."""
        return training_branch(self.graph, self.registry)

    def _row(self, name: str, training: bool) -> LayerRow:
        state = self.inference.states[name]
        if state.outputs is not None:
            shape = ", ".join(str(t) for t in state.outputs)
        elif state.because_of:
            shape = f"unknown because of {state.because_of}"
        else:
            shape = "unknown"
        work = self._costs.of(name)
        return LayerRow(name, self.graph[name].type, shape, work.learned if work is not None else 0, training)

    @property
    def parameters(self) -> int:
        """The number of learned values; values shared by instances of a template count once."""
        return self._costs.total().learned

    @cached_property
    def _costs(self) -> LiveCost:
        costs = LiveCost(self.inference)
        costs.count()
        return costs

    def as_dict(self) -> dict[str, object]:
        """The network as JSON values."""
        return {
            "name": self.graph.name,
            "parameters": self.parameters,
            "layers": [asdict(row) for row in self.rows()],
            "diagnostics": [d.as_dict() for d in self.diagnostics],
        }


def open_network(path: Path, *, strict: bool = True) -> OpenedNetwork:
    """Read a network and infer its shapes. Raises DiagnosticError for an unreadable file and, if `strict`, for any error."""
    reading = read_document(path)
    if reading.graph is None:
        raise DiagnosticError(reading.diagnostics)
    registry = default_registry()
    inference = Inference(reading.graph, registry)
    plugins = registry.diagnostics
    found = (*reading.diagnostics, *plugins, *located(inference.diagnostics(), reading))
    if strict and errors(found):
        raise DiagnosticError(errors(found))
    return OpenedNetwork(path, reading.graph, registry, inference, found)


def load_weights_for(network: OpenedNetwork, given: Path | None, seed: int | None) -> Weights:
    """Load weights from `given` or the path in the settings. Missing weights are filled only if `seed` is given."""
    path = weights_location(network.path, given)
    required = required_weights(network.inference)
    weights = load_weights(path, required) if path is not None else Weights()
    missing = [key for key in required if key not in weights.tensors]
    if not missing:
        return weights
    if seed is not None:
        return fill_missing(weights, required, seed)
    others = sum(1 for r in weights.reports if r.status is WeightStatus.UNEXPECTED)
    summary = Diagnostic(
        "weights-missing",
        f"{len(missing)} of {len(required)} weights are missing or have the wrong shape"
        + (f"; {others} others are not used by this network" if others else ""),
        file=str(path) if path is not None else None,
        remedy="give --weights with a folder that contains them, or --random-weights SEED to fill them",
    )
    raise DiagnosticError((*errors(weight_diagnostics(weights))[:MAX_SHOWN], summary))


def weights_location(document: Path, given: Path | None) -> Path | None:
    """The path of the weights: `given`, else the one in the document's settings, else None."""
    if given is not None:
        return given
    found = find_settings(document)
    if found is None:
        return None
    location = Path(read_settings(found).settings.weights)
    return location if location.parts and location.exists() else None
