"""Single operators of torch with parameters that are not symmetric and not the default: the document computes the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")
from torch import Tensor, nn
from torch.nn import functional as F

from designer.importers.pytorch.importing import import_module
from designer.operators.registry import Registry


class Calls(nn.Module):
    """A module that calls a function with its input and a matrix."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("matrix", torch.linspace(-1, 2, 20).reshape(4, 5))

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, self.matrix)


def windows(x: Tensor) -> Tensor:
    """N x 2 x 4 -> (N 2) x 4: the batch merged with another axis."""
    return x.reshape(-1, x.shape[-1])


FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "addmm, alpha without beta": lambda x, m: torch.addmm(m[0], windows(x), m, beta=0, alpha=3).view(-1, 2, 5),
    "addmm, beta without alpha": lambda x, m: torch.addmm(m[0], windows(x), m, beta=0.5).view(-1, 2, 5),
    "addmm, alpha and beta": lambda x, m: torch.addmm(m[0], windows(x), m, beta=0.5, alpha=3).view(-1, 2, 5),
    "sum of a merged axis": lambda x, m: windows(x).sum(1, keepdim=True).view(-1, 2, 1),
    "mean of all but a merged axis": lambda x, m: windows(x).mean(-1).view(-1, 2),
    "largest of a merged axis": lambda x, m: (windows(x) - windows(x).amax(1, keepdim=True)).view(-1, 2, 4),
    "pad with a number": lambda x, m: F.pad(x, (1, 2), value=0.75),
    "pad rows with a number": lambda x, m: F.pad(x, (0, 1, 2, 0), value=-3),
    "constant_pad_nd": lambda x, m: torch.constant_pad_nd(x, (2, 1), 0.5),
    "cut by a negative border": lambda x, m: F.pad(x, (-1, 2), value=0.75),
    "reflect": lambda x, m: F.pad(x.unsqueeze(1), (2, 1, 0, 1), mode="reflect"),
    "replicate": lambda x, m: F.pad(x.unsqueeze(1), (2, 1, 0, 3), mode="replicate"),
    "movedim": lambda x, m: x.unsqueeze(1).movedim(3, 1),
    "movedim of two": lambda x, m: x.unsqueeze(1).movedim((3, 2), (1, 3)),
    "movedim of negative axes": lambda x, m: x.unsqueeze(2).movedim(-1, -2),
    "tile": lambda x, m: x.tile(2, 3),
    "tile with fewer repeats": lambda x, m: x.tile(3),
    "repeat": lambda x, m: x.repeat(1, 3, 2),
    "tile with more repeats": lambda x, m: x.repeat(3, 1, 2, 1),
    "repeat_interleave": lambda x, m: x.repeat_interleave(3, 1),
    "roll": lambda x, m: x.roll((1, 3), (1, 2)),
    "flip": lambda x, m: x.flip(2),
    "addcmul": lambda x, m: torch.addcmul(x, x, m[:2, :4], value=2.5),
    "baddbmm": lambda x, m: torch.baddbmm(
        m[:2].expand(x.shape[0], 2, 5), x, m.expand(x.shape[0], 4, 5), beta=2, alpha=3
    ),
    "subtract with alpha": lambda x, m: torch.sub(x, m[1, :4], alpha=2),
    "subtract from a number": lambda x, m: 2 - x,
    "divide a number": lambda x, m: 2 / (x + 3),
    "power of a number": lambda x, m: torch.pow(2.0, x),
    "variance": lambda x, m: x.var(2),
    "variance without correction": lambda x, m: x.var((1, 2), correction=0, keepdim=True),
    "deviation": lambda x, m: x.std(-1, keepdim=True),
    "norm of order 1": lambda x, m: torch.linalg.vector_norm(x, 1, 2),
    "cumsum": lambda x, m: x.cumsum(1),
    "argmax": lambda x, m: x.argmax(1).float(),
    "largest of an axis": lambda x, m: x.max(1).values,
    "smallest of an axis, place": lambda x, m: x.min(2, keepdim=True).indices.float(),
    "where with a number": lambda x, m: torch.where(x > 0.5, x, -2.0),
    "masked_fill": lambda x, m: x.masked_fill(x < 0.25, -7.0),
    "select": lambda x, m: x.select(2, -1),
    "slice with a step": lambda x, m: x[:, :, 1:4:2],
    "narrow": lambda x, m: x.narrow(2, 1, 2),
    "split": lambda x, m: x.split([1, 3], 2)[1],
    "chunk": lambda x, m: x.chunk(2, 2)[1],
    "stack": lambda x, m: torch.stack([x, -x], 2),
    "flatten": lambda x, m: x.unsqueeze(3).flatten(1, 2),
    "unflatten": lambda x, m: x.unflatten(2, (2, 2)),
    "transpose": lambda x, m: x.transpose(1, 2),
    "permute": lambda x, m: x.permute(0, 2, 1),
    "expand": lambda x, m: x.unsqueeze(2).expand(-1, 2, 3, 4),
    "einsum": lambda x, m: torch.einsum("bij,jk->bki", x, m),
    "softmax": lambda x, m: x.softmax(1),
}


FIXED_BATCH = (
    "addmm, alpha without beta",
    "addmm, beta without alpha",
    "addmm, alpha and beta",
)  # a matrix has the batch as rows


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_torch_becomes_layers_that_compute_the_same(name: str, registry: Registry) -> None:
    found = import_module(Calls(FUNCTIONS[name]).eval(), [torch.rand(3, 2, 4)], registry).verified(registry)
    assert found.report.opaque == 0, [item for item in found.report.outcomes if item.outcome == "opaque"]
    assert found.report.max_rel_difference is not None, found.report.not_compared_because
    assert found.report.max_rel_difference <= 1e-5
    assert len({case.inputs["x"][0] for case in found.report.cases}) == (1 if name in FIXED_BATCH else 2)
