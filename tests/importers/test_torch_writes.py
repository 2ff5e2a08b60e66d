"""Random programs of views of a tensor and of writes to them: the document computes what torch computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
from torch import Tensor, nn

from designer.importers.pytorch.importing import import_module
from designer.operators.registry import Registry


def half(x: Tensor, number: int) -> Tensor:
    return x.chunk(2, 1)[number % 2] if x.shape[1] % 2 == 0 else x


def set_first(x: Tensor, number: int) -> Tensor:
    x[:, 0] = x[:, -1] * 0.5
    return x


VIEWS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "some": lambda x, number: x[:, number : number + 2] if x.shape[1] > number else x,
    "end": lambda x, number: x[:, -1 - number % 2 :],
    "last": lambda x, number: x[..., 1:] if x.shape[-1] > 1 else x,
    "one": lambda x, number: x.select(1, min(number - 1, x.shape[1] - 1)) if x.dim() > 2 else x,
    "turned": lambda x, number: x.transpose(-1, -2) if x.dim() > 2 else x,
    "permuted": lambda x, number: x.permute(0, *range(2, x.dim()), 1),
    "flat": lambda x, number: x.reshape(x.shape[0], -1),
    "wide": lambda x, number: x.unsqueeze(1) if x.dim() < 4 else x,
    "half": half,
}
WRITES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "add": lambda x, number: x.add_(number + 0.5),
    "scale": lambda x, number: x.mul_(number + 0.25),
    "copy": lambda x, number: x.copy_(x.flip(1) * 0.5 + number),
    "fill": lambda x, number: x.fill_(float(number)),
    "set": set_first,
    "another tensor": lambda x, number: x + 1,
}


class Step(NamedTuple):
    """A new name for what a function makes of the tensor of another name."""

    kind: str
    name: str
    source: str
    number: int


class Program(nn.Module):
    """Runs steps, and sums the tensors of every second name and the last one."""

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, x: Tensor) -> Tensor:
        tensors = {"a": x * 2}
        for kind, name, source, number in self.steps:
            tensors[name] = (VIEWS | WRITES)[kind](tensors[source], number)
        total: Any = 0
        for weight, (name, tensor) in enumerate(tensors.items(), 1):
            if weight % 2 or name == self.steps[-1].name:
                total = total + (tensor * weight).flatten(1).sum(1, keepdim=True)
        return total


def program(seed: int, count: int = 10) -> list[Step]:
    """Views and writes in turns, each of a tensor that has a name."""
    random, names, steps = Random(seed), ["a"], []
    for number in range(count):
        kind = random.choice(list(VIEWS if number % 2 == 0 else WRITES))
        steps.append(Step(kind, f"t{number}", random.choice(names), random.randrange(3)))
        names.append(f"t{number}")
    return steps


@pytest.mark.parametrize("seed", [0, 17, 23, 26, 43])
def test_writes_to_views_in_any_order(seed: int, registry: Registry) -> None:
    torch.manual_seed(0)
    report = import_module(Program(program(seed)), [torch.rand(2, 4, 6)], registry).verified(registry).report
    assert report.opaque == 0
    assert report.max_rel_difference is not None, report.not_compared_because
    assert report.max_rel_difference <= 1e-5


def written(view: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Doubles a tensor, writes to a view or a copy of it, and returns it."""

    def run(x: Tensor) -> Tensor:
        made = x * 2
        view(made).mul_(3)
        return made

    return run


class Writes(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


COPIES: dict[str, tuple[Callable[[Tensor], Tensor], bool]] = {
    "neighbors as one axis": (lambda x: x[:, 1:3].reshape(x.shape[0], -1), False),
    "others as one axis": (lambda x: x[:, :, 1:3].reshape(x.shape[0], -1), True),
    "one column as one axis": (lambda x: x.transpose(1, 2)[:, :1].reshape(x.shape[0], -1), False),
    "the same type": (lambda x: x.transpose(1, 2).to(torch.float32), False),
    "the same type in a copy": (lambda x: x.to(torch.float32, copy=True), True),
    "contiguous": (lambda x: x.contiguous(), False),
    "contiguous again": (lambda x: x.transpose(1, 2).contiguous(), True),
    "the last row but one": (lambda x: x[:, -2], False),
    "the last rows": (lambda x: x[:, -2:], False),
    "rows in another order": (lambda x: x[:, :, None].permute(0, 2, 3, 1)[:, 0, 1:], False),
    "the second part": (lambda x: x.chunk(2, 1)[1], False),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_write_reaches_a_tensor_unless_torch_had_to_copy(name: str, registry: Registry) -> None:
    view, copies = COPIES[name]
    torch.manual_seed(0)
    x = torch.rand(2, 4, 6)
    assert torch.equal(written(view)(x), x * 2) == copies
    report = import_module(Writes(written(view)), [x], registry).verified(registry).report
    assert (report.opaque, report.max_abs_difference) == (0, 0)
    assert len({case.inputs["x"][0] for case in report.cases}) == 2, "the batch is fixed"


def unknown(view: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The values before and after a write by an operator that the library does not have."""

    def run(x: Tensor) -> Tensor:
        made = x * 2
        before = made.relu()
        view(made).fmod_(0.3)
        return before * 10 + made + made.exp()

    return run


UNKNOWN: dict[str, Callable[[Tensor], Tensor]] = {
    "all": lambda x: x,
    "one row": lambda x: x[:, 1],
    "the last column": lambda x: x[..., -1],
    "some": lambda x: x[:, 1:3],
    "turned": lambda x: x.transpose(1, 2),
    "as one axis": lambda x: x.view(x.shape[0], -1),
    "a copy": lambda x: x.clone(),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_write_that_is_kept_reaches_the_tensor_of_its_view(name: str, registry: Registry) -> None:
    found = import_module(Writes(unknown(UNKNOWN[name])), [torch.rand(2, 4, 6)], registry).verified(registry)
    assert found.report.opaque == 1
    assert found.report.max_rel_difference is not None, found.report.not_compared_because
    assert found.report.max_rel_difference <= 1e-5


def test_a_write_that_is_kept_leaves_the_input_of_the_network_as_it_was(registry: Registry) -> None:
    def run(x: Tensor) -> Tensor:
        before = x.relu()
        x.fmod_(0.3)
        return before * 10 + x

    found = import_module(Writes(run), [torch.rand(2, 4, 6)], registry).verified(registry)
    assert found.report.max_rel_difference is not None, found.report.not_compared_because
    assert found.report.max_rel_difference <= 1e-5
