"""The modules that PyTorch tests itself with: the samples of its databases of operators and of modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.utils import _pytree as pytree

from designer.importers.pytorch.nodes import CONVERTERS

SEED = 3
MAX_ELEMENTS = 2**18  # of the inputs of a sample
RANDOM = (  # operators of which at least some samples draw numbers, from a generator that each call seeds
    *("attention", "bernoulli", "cauchy", "dropout", "empty", "exponential", "geometric", "log_normal"),
    *("multinomial", "normal", "rand", "rrelu", "uniform"),
)
NOT_TENSORS_OF_NUMBERS = ("_foreach", "combinations", "complex", "signal.", "sparse")
CUDA_ONLY = ("jiterator",)


class SampledCall(nn.Module):
    """A call whose tensors at the places `given` are inputs, the others buffers."""

    def __init__(self, call: Callable[..., Any], leaves: Sequence[Any], tree: Any, given: Sequence[int]) -> None:
        super().__init__()
        self.call, self.tree, self.given = call, tree, tuple(given)
        self.leaves = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor) and place not in self.given:
                self.register_buffer(f"tensor_{place}", leaf)

    def forward(self, *inputs: Tensor) -> Any:
        leaves = [getattr(self, f"tensor_{place}", leaf) for place, leaf in enumerate(self.leaves)]
        for place, tensor in zip(self.given, inputs, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.tree)
        return self.call(*args, **kwargs)


class Sample(NamedTuple):
    name: str
    module: nn.Module
    inputs: tuple[Tensor, ...]


Samples = Callable[[], Iterator[Sample]]


def databases(*, converted: bool) -> dict[str, Samples]:
    """The samples by operator and module; only of operators that have a converter, and of modules, with `converted`."""
    found: dict[str, Samples] = {}
    for info in op_db:
        if (
            torch.float32 in info.supported_dtypes("cpu")
            and not any(part in info.name for part in (*RANDOM, *NOT_TENSORS_OF_NUMBERS, *CUDA_ONLY))
            and not (converted and info.name.rpartition(".")[2] not in CONVERTERS)
        ):
            found[info.formatted_name] = partial(_of_operator, info)
    for info in module_db:
        found[info.name] = partial(_of_module, info)
    return found


def _of_operator(info: Any) -> Iterator[Sample]:
    torch.manual_seed(SEED)
    for number, item in enumerate(info.sample_inputs("cpu", torch.float32, requires_grad=False)):
        yield from _calls(f"{info.formatted_name} {number}", info.op, (item.input, *item.args), item.kwargs)


def _of_module(info: Any) -> Iterator[Sample]:
    torch.manual_seed(SEED)
    given = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=False)
    for number, item in enumerate(given):
        if item.forward_input is not None:
            module = info.module_cls(*item.constructor_input.args, **item.constructor_input.kwargs).eval()
            yield from _calls(f"{info.name} {number}", module, item.forward_input.args, item.forward_input.kwargs)


def _calls(name: str, call: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[Sample]:
    """A call with its first tensor as the only input, and with all as inputs."""
    leaves, tree = pytree.tree_flatten((tuple(args), kwargs))
    leaves = [leaf.detach().clone().contiguous() if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    for given in dict.fromkeys((tuple(places[:1]), tuple(places))):
        inputs = tuple(leaves[place] for place in given)
        if inputs and sum(tensor.numel() for tensor in inputs) <= MAX_ELEMENTS:
            yield Sample(
                f"{name}, {len(given)} of {len(places)} inputs", SampledCall(call, leaves, tree, given), inputs
            )
