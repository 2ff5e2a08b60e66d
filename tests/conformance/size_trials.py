"""Networks whose size contracts are compared with torch, which runs them on the meta device."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch
from size_networks import networks
from torch.utils._python_dispatch import TorchDispatchMode
from torch_networks import torch_networks

from designer.files.document import read_document
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import Size3D
from designer.importers.formats import ImportOptions
from designer.importers.onnx.importing import import_proto
from designer.operators.deploy import deploy
from designer.operators.inlining import inlined
from designer.operators.registry import load
from designer.operators.size_contract import SizeContract, size_contract
from designer.operators.torch_program import build_program
from designer.operators.training_branch import training_branch
from designer.runtime.engines.torch_engine import Interpreter, build_module

REGISTRY = load(entry_points=False)
SAMPLES = Path(__file__).parents[2] / "samples"
LARGEST = 160


@dataclass(frozen=True)
class SizeCase:
    """A network, its contract, and whether torch computes outputs at a height and width of all inputs."""

    graph: Graph
    contract: SizeContract
    runs: Callable[[int, int], bool]

    def outcomes(self, *, all_pairs: bool) -> list[SizeTrial]:
        """What the rules and torch say about each size."""
        with KnownShapes():
            return [
                SizeTrial(height, width, by_rules(self.contract, height, width), self.runs(height, width))
                for height, width in sizes(self.contract, all_pairs=all_pairs)
            ]


class SizeTrial(NamedTuple):
    height: int
    width: int
    accepted: bool  # by the rules
    runs: bool  # in torch


class KnownShapes(TorchDispatchMode):
    """Runs an operator of torch once for every shape of its inputs: on the meta device results have nothing else.

    The result of an operator that torch tags as pointwise has the shape of its only tensor, and its strides if that is contiguous.
    """

    def __init__(self) -> None:
        super().__init__()
        self._results: dict[object, Any] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here, so torch need not import its compiler to switch that off."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func._schema.is_mutable or any(result.alias_info is not None for result in func._schema.returns):
            return func(*args, **kwargs)  # a view belongs to one tensor
        tensors = [item for item in args if isinstance(item, torch.Tensor)]
        if torch.Tag.pointwise in func.tags and len(tensors) == 1 and tensors[0].is_contiguous():
            return tensors[0]
        key = (func, _described(args), _described(tuple(kwargs.items())))
        if key not in self._results:
            self._results[key] = func(*args, **kwargs)
        return self._results[key]


def _described(item: object) -> object:
    """An argument with shapes in place of tensors."""
    if isinstance(item, torch.Tensor):
        return item.shape, item.stride(), item.dtype
    return tuple(map(_described, item)) if isinstance(item, tuple | list) else item


def samples() -> dict[str, Path]:
    """The samples and the networks to start from, by name."""
    return {
        str(path.relative_to(SAMPLES).with_suffix("")): path
        for path in sorted(SAMPLES.rglob("*.xml"))
        if not path.name.endswith(".settings.xml")
    }


class MetaNetwork:
    """A network built at the reference size of its contract; its weights keep their shapes."""

    def __init__(self, graph: Graph, contract: SizeContract) -> None:
        sized = Graph(
            layer.with_param("dims", str(Size3D(size[1], size[0], self._channels(layer.params))))
            if (size := contract.reference.get(layer.name)) is not None
            else layer
            for layer in graph
        )
        sized.templates = graph.templates
        inference = inlined(Inference(sized, REGISTRY))
        training = training_branch(inference.graph, REGISTRY)
        order = [name for name in inference.graph.order()[0] if name not in training]
        self.inputs = [name for name in order if name in contract.reference]
        outputs = [Source(name) for name in order if inference.graph[name].type == "output"]
        feeds = [Source(name) for name in self.inputs]
        layers = [n for n in order if n not in self.inputs and self._computes(inference, n)]
        self.tiling = {name: max(int(graph[name].params.get("tiling", "0") or 0), 1) for name in self.inputs}
        self.channels = {name: self._channels(graph[name].params) for name in self.inputs}
        self.program = build_program(inference, layers, feeds, outputs)
        with torch.device("meta"):
            self.module = build_module(self.program, []).eval()

    @staticmethod
    def _channels(params: object) -> int:
        return Size3D.parse(dict(params).get("dims", "256x256x3")).channels  # type: ignore[call-overload]

    @staticmethod
    def _computes(inference: Inference, name: str) -> bool:
        return inference.states[name].ok

    def runs(self, height: int, width: int) -> bool:
        """Whether torch computes outputs that are not empty at this size of all inputs, padded to their tiling."""
        feeds = [
            torch.empty(
                1, self.channels[n], *(-(-s // self.tiling[n]) * self.tiling[n] for s in (height, width)), device="meta"
            )
            for n in self.inputs
        ]
        try:
            with torch.no_grad():
                results = Interpreter(self.module, self.program)(feeds)
        except (RuntimeError, ValueError, IndexError):
            return False
        return all(result.numel() for result in results)


def module_runs(module: torch.nn.Module, height: int, width: int) -> bool:
    """Whether a module in torch computes an output that is not empty."""
    try:
        with torch.no_grad():
            return bool(module(torch.empty(1, 3, height, width, device="meta")).numel())
    except (RuntimeError, ValueError):
        return False


def _sample_case(path: Path) -> SizeCase:
    graph = read_document(path).graph
    assert graph is not None
    return _document_case(deploy(graph, REGISTRY))  # analysis layers have no form in torch


def _document_case(graph: Graph) -> SizeCase:
    contract = size_contract(graph, REGISTRY)
    return SizeCase(graph, contract, MetaNetwork(graph, contract).runs)


def _imported_case(make: Callable[[], torch.nn.Module], size: tuple[int, int]) -> SizeCase:
    """A module exported as ONNX and imported; what runs is the module itself."""
    import onnx

    module = make().eval()
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the old exporter
        torch.onnx.export(
            module,
            (torch.zeros(1, 3, *size),),
            stream,
            dynamo=False,
            input_names=["x"],
            output_names=["y"],
            dynamic_axes={"x": {0: "N", 2: "H", 3: "W"}},
        )
    proto = onnx.load_from_string(stream.getvalue())
    graph = import_proto(proto, Path("x.onnx"), REGISTRY, ImportOptions({"x": (1, 3, *size)})).graph
    module = module.to("meta")
    return SizeCase(graph, size_contract(graph, REGISTRY), lambda height, width: module_runs(module, height, width))


# By group and name, how to make each case.
CASES: dict[str, dict[str, Callable[[], SizeCase]]] = {
    "samples": {name: partial(_sample_case, path) for name, path in samples().items()},
    "imported": {name: partial(_imported_case, *made) for name, made in torch_networks().items()},
    "built": {name: partial(_document_case, graph) for name, graph in networks()},
}


def sizes(contract: SizeContract, *, all_pairs: bool) -> Iterator[tuple[int, int]]:
    """All pairs up to 160 x 160, or lines along both axes through valid and invalid sizes, and random pairs."""
    if all_pairs:
        yield from ((h, w) for h in range(1, LARGEST + 1) for w in range(1, LARGEST + 1))
        return
    random = Random(1)
    reference = next(iter(contract.reference.values()))
    yield from ((n, reference[1]) for n in range(1, LARGEST + 1, 11))
    yield from ((reference[0], n) for n in range(2, LARGEST + 1, 11))
    yield from ((h, w) for h in range(1, 4) for w in range(1, 4))
    yield from ((random.randint(1, LARGEST), random.randint(1, LARGEST)) for _ in range(8))


def by_rules(contract: SizeContract, height: int, width: int) -> bool:
    """What the rules say; where sizes depend on each other, the contract evaluates the pair."""
    if contract.coupled:
        return contract.accepts(dict.fromkeys(contract.reference, (height, width)))
    fits = all(height in item.height and width in item.width for item in contract.inputs)
    return fits and (height, width) not in contract.exceptions
