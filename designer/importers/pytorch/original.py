"""The imported module, run as it is, for the comparison with the document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import Symbol
from designer.importers.imported import Imported
from designer.importers.verification import Feeds, changed_layers, seeded_feeds
from designer.operators.registry import Registry

if TYPE_CHECKING:
    import torch

STEP = 32  # that a second size is larger by
MAX_ELEMENTS = 2**24  # of an input at the second size
Case = Mapping[str, tuple[tuple[int, ...], str]]


@dataclass
class TorchOriginal:
    """Runs the module. `inputs` has shape and element type of each argument by layer, `outputs` the layer of each result."""

    module: torch.nn.Module
    inputs: Mapping[str, tuple[tuple[Any, ...], str]]
    outputs: Sequence[str]
    graph: Graph
    registry: Registry
    again: Callable[[Sequence[torch.Tensor]], Imported] | None = None  # imports the module for other inputs

    def cases(self) -> Sequence[Case]:
        """The size of the document, another batch, and another size if the document follows the module there."""
        found = [self._case(1, 0)]
        if self._case(2, 0) not in found:
            found.append(self._case(2, 0))
        other = self._case(1, STEP)
        if other not in found and self._follows(other):
            found.append(other)
        return found

    def _case(self, batch: int, more: int) -> Case:
        case = {}
        for name, (shape, dtype) in self.inputs.items():
            sizes = [batch if isinstance(size, Symbol) else size for size in shape]
            if len(sizes) == 4:
                sizes = [size + more if axis > 1 else size for axis, size in enumerate(sizes)]
            case[name] = (tuple(sizes), dtype)
        return case

    def _follows(self, case: Case) -> bool:
        """Whether the document has outputs of the module's shapes at other sizes. Sizes that its code computes are fixed."""
        if any(np.prod(shape) > MAX_ELEMENTS for shape, _ in case.values()):
            return False
        layers = []
        for layer in self.graph:
            if layer.name in case:
                shape = case[layer.name][0]
                if layer.type == "input":
                    layer = layer.with_param("dims", f"{shape[3]}x{shape[2]}x{shape[1]}")
                else:
                    fixed = layer.params.get("batch") == "false"
                    sizes = shape if fixed else shape[1:]
                    layer = layer.with_param("shape", ",".join(map(str, sizes)))
            layers.append(layer)
        graph = Graph(layers, name=self.graph.name, templates=self.graph.templates.values())
        inference = Inference(graph, self.registry.for_graph(graph))
        try:
            feeds = {name: np.zeros(shape, dtype) for name, (shape, dtype) in case.items()}
            expected = self.run(feeds)
        except Exception:  # foreign code: it does not have to run at other sizes
            return False
        for name, array in expected.items():
            kind = inference.type_of(Source(name))
            if kind is None or kind.concrete(1) != array.shape:
                return False
        return True

    def size_bound(self, case: Case, weights: Weights) -> Sequence[str]:
        import torch

        if self.again is None:
            return ()
        try:
            other = self.again([torch.from_numpy(array) for array in seeded_feeds(case).values()])
        except DiagnosticError:
            return ()
        return changed_layers((self.graph, other.graph), (weights, other.weights), self.registry, case)

    def run(self, feeds: Feeds) -> dict[str, NDArray[Any]]:
        import torch

        tensors = [torch.from_numpy(np.array(feeds[name], order="C")) for name in self.inputs]  # modules write to some
        with torch.no_grad():
            result = self.module(*tensors)
        leaves = list(torch.utils._pytree.tree_leaves(result))
        return {
            name: item.detach().numpy()
            for name, item in zip(self.outputs, leaves, strict=True)
            if name and isinstance(item, torch.Tensor)
        }
