"""The imported ONNX file, run as it is, for the comparison with the document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.importers.imported import Imported
from designer.importers.verification import Feeds, changed_layers
from designer.operators.registry import Registry
from designer.runtime.engines.ort import reason_of
from designer.texts import tr

Case = Mapping[str, tuple[tuple[int, ...], str]]
MAX_ELEMENTS = 2**28  # of all inputs of a case
INTEGERS = frozenset(
    "ConvInteger DynamicQuantizeMatMul MatMulInteger MatMulIntegerToFloat QAttention QGemm QLinearConv QLinearMatMul".split()
)


@dataclass
class OnnxOriginal:
    """Runs the file with ONNX Runtime; if it does not know the operators, with the reference implementation of onnx.

    `inputs` and `outputs` map names in the file to names of layers.
    """

    path: Path
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    sizes: Sequence[Case]
    empty: Feeds = field(default_factory=dict)  # inputs without elements, which the document does not have
    graph: Graph | None = None  # the document
    registry: Registry | None = None
    again: Callable[[dict[str, tuple[int, ...]]], Imported] | None = (
        None  # imports the file with other shapes of inputs
    )
    _session: FileRunner | None = field(default=None, repr=False)

    def cases(self) -> Sequence[Case]:
        return [case for case in self.sizes if sum(int(np.prod(shape)) for shape, _ in case.values()) <= MAX_ELEMENTS]

    def size_bound(self, case: Case, weights: Weights) -> Sequence[str]:
        if self.graph is None or self.registry is None or self.again is None:
            return ()
        try:
            other = self.again({name: case[layer][0] for name, layer in self.inputs.items()})
        except DiagnosticError:
            return ()
        return changed_layers((self.graph, other.graph), (weights, other.weights), self.registry, case)

    def run(self, feeds: Feeds) -> dict[str, NDArray[Any]]:
        if self._session is None:
            self._session = FileRunner(self.path)
        given = {name: feeds[layer] for name, layer in self.inputs.items()} | dict(self.empty)
        found = self._session.run(list(self.outputs), given)
        return dict(zip(self.outputs.values(), found, strict=True))


class FileRunner:
    """Runs an ONNX file with ONNX Runtime; what that does not have, with the reference implementation of onnx."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._runs: list[Any] = [lambda: _session(path), lambda: _reference(path)]
        self._opened: Any = None

    def run(self, outputs: Sequence[str] | None, feeds: Feeds) -> list[NDArray[Any]]:
        """The outputs with these names, or all. Raises DiagnosticError with the reason of the runtime if neither can run the file."""
        try:
            if self._opened is None:
                self._opened = self._runs[0]()
            return list(self._opened.run(outputs, dict(feeds)))
        except Exception as error:  # the classes of the binding have no common base
            if len(self._runs) == 1:
                raise
            try:
                other = self._runs[1]()
                found = list(other.run(outputs, dict(feeds)))
            except Exception:  # the reference implementation raises anything: the runtime's reason is the better one
                text = tr("ONNX Runtime cannot run {name}: {reason}", name=self.path.name, reason=reason_of(error))
                raise DiagnosticError.of("original-failed", text) from None
            self._runs, self._opened = self._runs[1:], other
            return found


def _session(path: Path) -> Any:
    """A session with as few optimizations as possible: sums of products of integers are exact from the second level on."""
    from onnx import load

    from designer.runtime.engines.ort import WRONG, runtime, session_options

    options, levels = session_options(4), runtime().GraphOptimizationLevel
    integers = any(node.op_type in INTEGERS for node in load(path, load_external_data=False).graph.node)
    options.graph_optimization_level = levels.ORT_ENABLE_EXTENDED if integers else levels.ORT_ENABLE_BASIC
    providers = ["CPUExecutionProvider"]
    return runtime().InferenceSession(str(path), options, providers=providers, disabled_optimizers=[*WRONG])


def _reference(path: Path) -> Any:
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(str(path))
