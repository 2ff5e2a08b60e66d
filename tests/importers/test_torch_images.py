"""Operators of torch on images and sequences, with parameters that are not symmetric: the document computes the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from document_texts import check_call
from torch import Tensor, nn
from torch.nn import functional as F

from designer.graph.diagnostics import DiagnosticError
from designer.importers.pytorch.importing import import_module
from designer.operators.registry import Registry

aten: Any = torch.ops.aten


class OnImages(nn.Module):
    """Calls a function with N x 4 x 6 x 9, and with a kernel and indices of the module."""

    def __init__(self, function: Callable[..., Tensor | tuple[Tensor, ...]]) -> None:
        super().__init__()
        self.function = function
        self.kernel = nn.Parameter(torch.linspace(-1, 2, 96).reshape(6, 4, 2, 2).sin())
        self.register_buffer("places", torch.tensor([[3, 0, 5], [1, 1, 4]]))

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, ...]:
        return self.function(x, self.kernel, self.places)


def attended(x: Tensor, **more: Any) -> Tensor:
    """Attention among the rows of every channel; the keys are turned, so that scores are not symmetric."""
    return F.scaled_dot_product_attention(x, x.flip(-1), x * 2, **more)


def without_gradients(x: Tensor) -> Tensor:
    with torch.no_grad():
        half, mean = x * 0.5, x.mean((2, 3), keepdim=True)
    return half - mean * x


def without_autocast(x: Tensor, kernel: Tensor) -> Tensor:
    with torch.autocast("cpu", enabled=False):
        made = F.conv2d(x, kernel)
    return made + 1


ALL: dict[str, Callable[..., Tensor | tuple[Tensor, ...]]] = {
    # activations and functions of single values
    "rsqrt": lambda x, k, p: (x + 1).rsqrt(),
    "softshrink": lambda x, k, p: F.softshrink(x - 0.5, 0.3),
    "rrelu": lambda x, k, p: F.rrelu(x - 0.5, 0.1, 0.4),
    "elu": lambda x, k, p: F.elu(x - 0.5, 0.7),
    "celu": lambda x, k, p: F.celu(x - 0.5, 0.7),
    "hardtanh": lambda x, k, p: F.hardtanh(x, 0.25, 0.5),
    "leaky_relu": lambda x, k, p: F.leaky_relu(x - 0.5, 0.3),
    "softplus": lambda x, k, p: F.softplus(x * 8 - 4, 2, 3),
    "threshold": lambda x, k, p: F.threshold(x, 0.4, -3),
    "glu of an axis": lambda x, k, p: F.glu(x, 1),
    "glu of the last axis": lambda x, k, p: F.glu(x[..., :8]),
    "log_softmax": lambda x, k, p: x.log_softmax(-1),
    "clamp": lambda x, k, p: x.clamp(0.25, 0.5),
    "clamp below": lambda x, k, p: x.clamp(min=0.5),
    "clamp above": lambda x, k, p: x.clamp_max(0.5),
    "clamp integers": lambda x, k, p: (x * 9).int().clamp(min=3),
    "prelu of channels": lambda x, k, p: F.prelu(x - 0.5, k[:4, 0, 0, 0].detach() + 1),
    "round": lambda x, k, p: (x * 9).round(),
    # arithmetic
    "square root and square": lambda x, k, p: (x**0.5, x**2, x**3),
    "division by a power of two": lambda x, k, p: (x / 4, x / 3, x / -0.5),
    "logic": lambda x, k, p: (
        torch.logical_and(x > 0.2, x < 0.6).float(),
        torch.logical_or(x < 0.2, x > 0.6).float(),
        torch.logical_xor(x > 0.2, x > 0.6).float(),
        torch.logical_not(x > 0.2).float(),
    ),
    "bitwise logic": lambda x, k, p: (((x > 0.2) & (x < 0.6)).float(), ((x < 0.2) | (x > 0.6)).float(), (~(x > 0.2)).float(), ((x > 0.2) ^ (x > 0.6)).float()),
    "larger of two": lambda x, k, p: torch.max(x, x.flip(3)) - torch.min(x, x.flip(2)),
    "largest of all": lambda x, k, p: x - x.flatten(1).max(1).values[:, None, None, None],
    "largest and smallest": lambda x, k, p: (x.maximum(1 - x), x.minimum(1 - x)),
    "places of the smallest": lambda x, k, p: x.argmin(2, keepdim=True).float(),
    "masked_fill with infinity": lambda x, k, p: x.masked_fill(x < 0.25, float("-inf")).softmax(3),
    "masked_fill with a large number": lambda x, k, p: x.masked_fill(x < 0.25, 1e30),
    "masked_fill with a tensor": lambda x, k, p: x.masked_fill(x < 0.25, torch.tensor(2.5)),
    "zeros of the batch": lambda x, k, p: torch.cat([x, x.new_zeros(x.shape[0], 2, 6, 9)], 1),
    "numbers of the batch": lambda x, k, p: torch.cat([x, x.new_full((x.shape[0], 2, 6, 9), 0.5)], 1),
    "numbers of the batch that become integers": lambda x, k, p: x.new_full((x.shape[0], 4, 6, 9), 1.75).int() + x,
    "integers that are filled": lambda x, k, p: torch.zeros(6, 1, dtype=torch.int64).fill_(3) / 2 + x,
    "masked_fill with large numbers": lambda x, k, p: x.masked_fill(x < 0.25, float("inf")).sigmoid(),
    "a factor for parts of the channels": lambda x, k, p: (
        x.reshape(-1, 2, 6, 9).permute(1, 0, 2, 3) * torch.tensor([1.0, 3.0])[:, None, None, None]
    ).permute(1, 0, 2, 3).reshape(-1, 4, 6, 9),
    "a tensor that is filled": lambda x, k, p: x + torch.zeros(6, 1).fill_(2.5),
    "product of an axis": lambda x, k, p: x.prod(3, keepdim=True),
    "log of a sum": lambda x, k, p: x.logsumexp((1, 3)),
    "norm of order 2": lambda x, k, p: x.norm(dim=(2, 3), keepdim=True),
    "variance and mean": lambda x, k, p: torch.var_mean(x, (2, 3)),
    "population variance and mean": lambda x, k, p: torch.var_mean(x, 3, correction=0, keepdim=True),
    "matrix with a constant": lambda x, k, p: x @ torch.linspace(0, 1, 18).reshape(9, 2),
    "product with weights": lambda x, k, p: x[..., :4] @ k[:, :, 0, 0].T,
    # attention
    "attention": lambda x, k, p: attended(x),
    "attention with a scale": lambda x, k, p: attended(x, scale=0.7),
    "causal attention": lambda x, k, p: attended(x, is_causal=True),
    "attention with a bias": lambda x, k, p: attended(x, attn_mask=torch.linspace(-2, 2, 36).reshape(6, 6)),
    "attention of one head": lambda x, k, p: attended(x[:, 0]),
    "attention of one head, with a scale": lambda x, k, p: attended(x[:, 0], scale=0.7),
    "attention of one head, with a bias": lambda x, k, p: attended(
        x[:, 0], attn_mask=torch.linspace(-2, 2, 36).reshape(6, 6)
    ),
    # blocks of statements
    "without gradients": lambda x, k, p: without_gradients(x),
    "without autocast": lambda x, k, p: without_autocast(x, k),
    # convolutions
    "padding of the same size": lambda x, k, p: F.conv2d(x, k, padding="same", dilation=(1, 3)),
    "valid padding": lambda x, k, p: F.conv2d(x, k, k[:, 0, 0, 0], padding="valid", stride=(1, 2)),
    "different padding": lambda x, k, p: F.conv2d(x, k, stride=(2, 1), padding=(0, 1), dilation=(2, 1)),
    "groups": lambda x, k, p: F.conv2d(x, k[:, :2], groups=2),
    "computed kernel": lambda x, k, p: F.conv2d(x, k * 2 + 1, k[:, 1, 0, 1] * 3, (2, 1), (0, 1), (1, 2)),
    "computed kernel, groups": lambda x, k, p: F.conv2d(x, k[:, :2] * 2, groups=2, padding="same"),
    "computed kernel back": lambda x, k, p: F.conv_transpose2d(
        x, k[:4] * 2, None, (2, 3), (1, 0), (1, 2), 2, (1, 2)
    ),
    "row": lambda x, k, p: F.conv1d(x[:, :, 0], k[:, :, 0], padding=1, stride=2),
    "row of the same size": lambda x, k, p: F.conv1d(x[:, :, 0], k[:, :, 0], padding="same"),
    "row of columns back": lambda x, k, p: F.conv_transpose1d(x[:, :, 0], k[:4, :, 0], stride=3, padding=1, output_padding=1),
    "volume": lambda x, k, p: F.conv3d(
        x.reshape(-1, 4, 2, 3, 9), k[..., None], stride=(1, 2, 3), padding=(0, 1, 0)
    ),
    "volume of the same size": lambda x, k, p: F.conv3d(x.reshape(-1, 4, 2, 3, 9), k[..., None], padding="same"),
    "bilinear": lambda x, k, p: F.bilinear(
        x.mean((2, 3)), x[:, :2, 0, 0], k[..., 0].detach(), k[:, 0, 0, 0].detach()
    ),
    "rms_norm": lambda x, k, p: F.rms_norm(x, (9,), torch.linspace(1, 2, 9), 0.1),
    "rms_norm without parameters": lambda x, k, p: F.rms_norm(x * 1e-4, (6, 9)),
    "layer_norm of three axes": lambda x, k, p: F.layer_norm(x, (4, 6, 9), eps=0.1),
    "embedding": lambda x, k, p: F.embedding((x[:, :, 0] * 5).long(), k[:, :, 0, 1].detach()),
    "embedding of small integers": lambda x, k, p: F.embedding((x[:, 0] * 5).int(), k[:, :, 0, 1].detach()),
    # pooling and resizing
    "max_pool2d": lambda x, k, p: F.max_pool2d(x, (2, 3), (1, 2), (0, 1), (2, 1)),
    "max_pool2d, ceil": lambda x, k, p: F.max_pool2d(x, (4, 2), ceil_mode=True),
    "avg_pool2d": lambda x, k, p: F.avg_pool2d(x, (2, 3), (1, 2), (0, 1), count_include_pad=False),
    "avg_pool2d, counted": lambda x, k, p: F.avg_pool2d(x, (2, 3), (1, 2), (0, 1)),
    "avg_pool2d, divisor": lambda x, k, p: F.avg_pool2d(x, 2, divisor_override=3),
    "avg_pool2d, ceil": lambda x, k, p: F.avg_pool2d(x, (4, 2), ceil_mode=True),
    "lp_pool2d": lambda x, k, p: F.lp_pool2d(x, 3, (2, 3), 1),
    "max_pool1d": lambda x, k, p: F.max_pool1d(x[:, :, 0], 3, 2, 1, 2),
    "avg_pool1d": lambda x, k, p: F.avg_pool1d(x[:, :, 0], 3, 2, 1),
    "adaptive_avg_pool2d": lambda x, k, p: F.adaptive_avg_pool2d(x, (2, 4)),
    "adaptive_max_pool2d": lambda x, k, p: F.adaptive_max_pool2d(x, (3, 2)),
    "adaptive_avg_pool1d": lambda x, k, p: F.adaptive_avg_pool1d(x[:, :, 0], 4),
    "adaptive_max_pool1d": lambda x, k, p: F.adaptive_max_pool1d(x[:, :, 0], 2),
    "global maximum": lambda x, k, p: F.adaptive_max_pool2d(x, 1),
    "nearest": lambda x, k, p: F.interpolate(x, scale_factor=(2, 3)),
    "bilinear by a factor": lambda x, k, p: F.interpolate(x, scale_factor=(2, 3), mode="bilinear"),
    "bilinear to a size": lambda x, k, p: F.interpolate(x, (4, 10), mode="bilinear"),
    "bilinear to the corners": lambda x, k, p: F.interpolate(x, (8, 10), mode="bilinear", align_corners=True),
    "bilinear, smooth": lambda x, k, p: F.interpolate(x, (3, 5), mode="bilinear", antialias=True),
    "bicubic": lambda x, k, p: F.interpolate(x, (8, 5), mode="bicubic"),
    "pixel_shuffle": lambda x, k, p: F.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x, k, p: F.pixel_unshuffle(x, 3),
    **{
        f"grid_sample, {mode}, {border}": lambda x, k, p, mode=mode, border=border: F.grid_sample(
            x, x[:, :2, :, :5].permute(0, 2, 3, 1) * 3 - 1.5, mode, border, border == "border"
        )
        for mode in ("bilinear", "nearest", "bicubic")
        for border in ("zeros", "border", "reflection")
    },
    # moves
    "dropout": lambda x, k, p: F.dropout(x, 0.3, False),
    "dropout of channels": lambda x, k, p: F.dropout2d(x, 0.3, False),
    "dropout of rows": lambda x, k, p: F.dropout1d(x[:, 0], 0.3, False),
    "squeeze": lambda x, k, p: x[:, :1, :, :1].squeeze(3).squeeze(1),
    "squeeze of a long axis": lambda x, k, p: x.squeeze(2),
    "expand rows": lambda x, k, p: x[:, :, :1].expand_as(x) - x,
    "expand nothing": lambda x, k, p: x.expand(-1, -1, 6, 9) * 2,
    "repeat of a constant": lambda x, k, p: torch.cat([x, k[:1].detach().repeat(x.shape[0], 1, 3, 1)[..., :1]], 3),
    "constant of the batch": lambda x, k, p: torch.cat([x[..., :2, :2], k[:1].detach().expand(x.shape[0], -1, -1, -1)], 2),
    "concatenation of one": lambda x, k, p: torch.cat([x], 1) + 1,
    "split into one": lambda x, k, p: x.split(4, 1)[0] + 1,
    "tensor_split": lambda x, k, p: x.tensor_split(4, 3),
    "unbind": lambda x, k, p: x.unbind(1),
    "stack last": lambda x, k, p: torch.stack([x[..., 0], x[..., 1]], -1),
    "slice of the whole": lambda x, k, p: x[:, :, 0:6] + 1,
    "roll back": lambda x, k, p: x.roll((-2, 0), (3, 2)),
    "replication_pad1d": lambda x, k, p: aten.replication_pad2d(x, [2, 1, 0, 3]) + 1,
    "reflection_pad2d": lambda x, k, p: aten.reflection_pad2d(x, [2, 1, 0, 3]) + 1,
    "pad of nothing": lambda x, k, p: F.pad(x, (0, 0)) + 1,
    "pad of channels": lambda x, k, p: F.pad(x, (0, 1, 2, 0, 1, 3), value=0.5),
    "transposed matrices": lambda x, k, p: x.mT @ x,
    "index": lambda x, k, p: x[:, :, p[0]],
    "index by a matrix": lambda x, k, p: x[:, :, p],
    "index by small integers": lambda x, k, p: x[:, :, :, p.int()],
    "index_select": lambda x, k, p: x.index_select(-1, p[1]),
    "unfold": lambda x, k, p: F.unfold(x, (2, 3), (2, 1), (1, 0), (1, 2)),
    "fold": lambda x, k, p: F.fold(x.reshape(-1, 12, 18), (6, 6), (2, 1), stride=(2, 1)),
    "gather": lambda x, k, p: x.gather(2, (x[:, :, :2] * 5).long()),
    "topk": lambda x, k, p: tuple(part.float() for part in x.topk(2, 1, largest=False)),
    "topk of the last axis": lambda x, k, p: x.topk(3).values,
    "tril": lambda x, k, p: x.tril(1),
    "triu": lambda x, k, p: x.triu(-2),
    "channel_shuffle": lambda x, k, p: F.channel_shuffle(torch.cat([x, x[:, :2] * 2], 1), 2),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("name", ALL)
def test_a_function_of_torch_on_images_becomes_layers_that_compute_the_same(name: str, registry: Registry) -> None:
    torch.manual_seed(0)
    document = import_module(OnImages(ALL[name]), [torch.rand(2, 4, 6, 9)], registry).verified(registry)
    report = document.report
    check_call(f"images: {name}", document, registry)
    assert [item.reason for item in report.outcomes if item.outcome == "opaque"] == []
    assert report.max_rel_difference is not None, report.not_compared_because
    assert report.max_rel_difference <= 2e-5
    assert len({case.inputs["x"][0] for case in report.cases}) == 2, "the batch is fixed"


KEPT: dict[str, Callable[..., Tensor | tuple[Tensor, ...]]] = {
    "it rounds to decimals": lambda x, k, p: x.round(decimals=1),
    "its bounds are tensors": lambda x, k, p: x.clamp(x.mean(), x.amax()),
    "it rounds": lambda x, k, p: torch.div(x, 0.3, rounding_mode="floor"),
    "it works over all axes": lambda x, k, p: x - x.argmax(),
    "its order is 3": lambda x, k, p: torch.linalg.vector_norm(x, 3, 2),
    "it reduces int32": lambda x, k, p: (x * 8).int().amax(1),
    "it multiplies vectors": lambda x, k, p: torch.matmul(x, x[0, 0, 0]),
    "its keys have fewer heads": lambda x, k, p: F.scaled_dot_product_attention(x, x[:, :2], x[:, :2], enable_gqa=True),
    "its mask is not added": lambda x, k, p: attended(x[:, 0], is_causal=True),
    "it drops values at random": lambda x, k, p: attended(x, dropout_p=0.5),
    "its input has no batch": lambda x, k, p: F.max_pool2d(x[0], 2),
    "it uses the statistics of the batch": lambda x, k, p: F.batch_norm(x, None, None, training=True),
    "it uses running statistics": lambda x, k, p: F.instance_norm(
        x, torch.zeros(4), torch.ones(4), use_input_stats=False
    ),
    "it indexes several axes at once": lambda x, k, p: x[:, :, p[0], p[0]],
    "it shifts the flattened tensor": lambda x, k, p: x.roll(3),
    "it pads other axes than height and width in the mode reflect": lambda x, k, p: F.pad(x[:, 0], (2, 1), mode="reflect"),
    "its windows overlap": lambda x, k, p: F.fold(x.reshape(-1, 8, 27), (4, 9), (2, 1)),
    "its counts are a tensor": lambda x, k, p: x.repeat_interleave(torch.tensor([1, 2, 0, 1]), 1),
    "no layer can have its element type": lambda x, k, p: x.to(torch.complex64).abs(),
    "it sums over the batch": lambda x, k, p: torch.addbmm(x[0, 0, :, :6], x[:, 0], x[:, 1].mT),
    "it divides by 2 - 3": lambda x, k, p: x[..., :2].var(3, correction=3),
    "it has scales": lambda x, k, p: aten.elu(x, 1.0, 2.0, 1.0),
    "it is in training mode": lambda x, k, p: F.rrelu(x - 0.5, training=True),
    "it has more than 5 axes": lambda x, k, p: x.reshape(-1, 1, 2, 2, 6, 9) @ x.reshape(-1, 1, 2, 2, 9, 6),
    "it subtracts from a tensor": lambda x, k, p: torch.rsub(x, x * 2),
    "the value is computed while running": lambda x, k, p: x.masked_fill(x < 0.5, x.sum()),
    "its input has no batch ": lambda x, k, p: F.unfold(x[0], 2),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:var.*degrees of freedom")
@pytest.mark.parametrize("reason", KEPT)
def test_why_a_function_of_torch_is_kept_as_a_call(reason: str, registry: Registry) -> None:
    torch.manual_seed(0)
    document = import_module(OnImages(KEPT[reason]), [torch.rand(2, 4, 6, 9)], registry)
    report = document.report
    check_call(f"images, kept: {reason.strip()} ({len(reason)})", document, registry)
    found = [
        item.reason.partition(" (test_torch")[0] for item in report.outcomes if item.outcome in ("opaque", "custom")
    ]
    assert found == [reason.strip()]


RARE: dict[str, Callable[..., Any]] = {
    "places of the largest values": lambda x, k, p: F.max_pool2d(x, 2, return_indices=True)[1].float(),
    "complex numbers": lambda x, k, p: torch.view_as_real(torch.view_as_complex(x[..., :2].contiguous()) * 2),
    "values by a computed mask": lambda x, k, p: x[x > 0.5].sum(),
    "channels by a mask": lambda x, k, p: x[:, torch.tensor([True, False, True, True])],
    "a computed channel": lambda x, k, p: x[:, x[0, 0, 0, 0].long()],
    "sorted values": lambda x, k, p: x.sort(1)[0],
    "half precision": lambda x, k, p: (x.half() * 2).float(),
    "seven axes": lambda x, k, p: x.reshape(-1, 2, 2, 2, 3, 3, 3).sum((1, 2)),
    "results that are not tensors": lambda x, k, p: (x, None, 3.0),
    "nothing but a constant": lambda x, k, p: (x, k * 2),
}


@pytest.mark.parametrize("name", RARE)
def test_the_document_of_what_is_rarely_computed(name: str, registry: Registry) -> None:
    torch.manual_seed(0)
    document = import_module(OnImages(RARE[name]), [torch.rand(2, 4, 6, 9)], registry).verified(registry)
    check_call(f"rare: {name}", document, registry)
    report = document.report
    unable = [item.layers[-1] for item in report.outcomes if item.reason.endswith("; its layer cannot run")]
    assert report.not_compared_because == (f"the layers {', '.join(unable)} cannot run" if unable else "")
    assert report.agrees


@pytest.mark.parametrize(
    "compute",
    [
        pytest.param(lambda x, k, p: x[:, 4:].sum(1), id="channels"),
        pytest.param(lambda x, k, p: x[..., 9:].sum(3), id="width"),
    ],
)
def test_what_is_computed_from_a_part_without_elements_is_a_constant(compute, registry: Registry) -> None:
    document = import_module(OnImages(compute), [torch.rand(2, 4, 6, 9)], registry).verified(registry)
    assert [layer.type for layer in document.graph] == ["tensor_input", "tensor_constant", "output"]
    assert document.report.agrees
    assert not document.report.not_compared_because


def test_a_module_that_returns_a_part_without_elements_is_refused(registry: Registry) -> None:
    with pytest.raises(DiagnosticError, match="OnImages returns no tensor that depends on its inputs"):
        import_module(OnImages(lambda x, k, p: x[:, 4:]), [torch.rand(2, 4, 6, 9)], registry)


ALONG_THE_BATCH: dict[str, Callable[..., Tensor | tuple[Tensor, ...]]] = {
    "a computed tensor that is filled": lambda x, k, p: (x * 2).fill_(0.5) + x,
    "computed integers that are filled": lambda x, k, p: (x * 9).int().fill_(3),
    "a computed tensor that is set to zero": lambda x, k, p: (x * 2).zero_() + x,
    "computed kernel": lambda x, k, p: F.conv2d(x, k * x.mean(), k[:, 1, 0, 1] * 3, (2, 1), (0, 1), (1, 2)),
    "computed kernel and bias": lambda x, k, p: F.conv2d(x, k * x.mean(), k[:, 1, 0, 1] * x.amax()),
    "computed bias": lambda x, k, p: F.conv2d(x, k, k[:, 1, 0, 1] * x.amax()),
    "computed kernel of groups": lambda x, k, p: F.conv2d(x, k[:, :2] * x.sum(), groups=2, padding="same"),
    "computed kernel back": lambda x, k, p: F.conv_transpose2d(x, k[:4] * x.mean(), None, (2, 3), (1, 0), (1, 2), 2, (1, 2)),
    "computed matrix": lambda x, k, p: F.linear(x, k[:, 0, 0, :1].expand(6, 9) * x.mean()),
    "computed matrix and bias": lambda x, k, p: F.linear(x, k[:, 0, 0, :1].expand(6, 9) * x.mean(), k[:, 0, 1, 1] * x.sum()),
    "a vector without a batch": lambda x, k, p: F.linear(x.mean((0, 2, 3)), k[:, :, 0, 1], k[:, 0, 1, 1]) * 2,
    "pairs of samples": lambda x, k, p: x.flatten(1) @ x.flatten(1).T,
    "every sample minus every other": lambda x, k, p: x[:, None, :, 0, 0] - x[None, :, :, 0, 0],
    "the first sample": lambda x, k, p: x[0] * 2,
    "the last sample": lambda x, k, p: x[-1:] * x,
    "a part of the batch": lambda x, k, p: x.split(1)[1] + 1,
    "two samples": lambda x, k, p: torch.stack([x[1], x[0]]),
    "one sample repeated": lambda x, k, p: x[:1].repeat(x.shape[0], 1, 1, 1) + x,
    "one sample expanded": lambda x, k, p: x[:1].expand(x.shape[0], -1, -1, -1) - x,
    "the square of the batch": lambda x, k, p: x.mean((1,2,3))[:, None] + torch.zeros(x.shape[0], x.shape[0]),
    "minus the mean of the batch": lambda x, k, p: x - x.mean(0),
    "batch last": lambda x, k, p: x.permute(1,2,3,0) * 2,
    "batch last and back": lambda x, k, p: (x.permute(1,2,3,0) * 2).softmax(1).permute(3,0,1,2),
    "divided by the sum of all": lambda x, k, p: x / x.sum(),
    "a vector of all": lambda x, k, p: x.flatten() * 2,
    "softmax along the batch": lambda x, k, p: x.softmax(0),
    "running sum along the batch": lambda x, k, p: x.cumsum(0),
    "a rolled batch": lambda x, k, p: x.roll(1, 0),
    "a reversed batch": lambda x, k, p: x.flip(0),
    "a doubled batch": lambda x, k, p: torch.cat([x, x + 1]),
    "places of the largest samples": lambda x, k, p: x.argmax(0).float(),
    "a batch of patches": lambda x, k, p: x.reshape(-1, 2, 6, 9).mean(1),
    "patches and back": lambda x, k, p: (x.reshape(-1, 2, 6, 9) * 2).reshape(-1, 4, 6, 9),
    "times the size of the batch": lambda x, k, p: x * x.shape[0],
    "numbers of the samples": lambda x, k, p: x + torch.arange(x.shape[0])[:, None, None, None],
}  # fmt: skip
OPEN = ("every sample minus every other", "batch last", "batch last and back", "patches and back")


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("name", ALONG_THE_BATCH)
def test_what_depends_on_the_batch_is_imported_for_the_batch_of_the_example(name: str, registry: Registry) -> None:
    torch.manual_seed(0)
    document = import_module(OnImages(ALONG_THE_BATCH[name]), [torch.rand(2, 4, 6, 9)], registry).verified(registry)
    report = document.report
    check_call(f"images, along the batch: {name}", document, registry)
    assert report.opaque == 0
    assert report.max_rel_difference is not None
    assert report.max_rel_difference <= 2e-5
    assert {case.inputs["x"][0] for case in report.cases} == ({1, 2} if name in OPEN else {2})


MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear of a vector": (lambda: nn.Linear(4, 3), (2, 4)),
    "linear of two axes": (lambda: nn.Linear(4, 3, bias=False), (2, 5, 4)),
    "linear of five axes": (lambda: nn.Linear(4, 3), (2, 3, 2, 3, 4)),
    "linear of six axes": (lambda: nn.Linear(4, 3), (2, 1, 3, 2, 3, 4)),
    "normalized last axes of six": (lambda: nn.LayerNorm((3, 4), eps=0.1), (2, 1, 3, 2, 3, 4)),
    "lstm": (lambda: nn.LSTM(4, 3, 2, bias=False, batch_first=True), (2, 5, 4)),
    "lstm, sequence first": (lambda: nn.LSTM(4, 3), (5, 2, 4)),
    "gru, both ways": (lambda: nn.GRU(4, 3, 2, batch_first=True, bidirectional=True, dropout=0.2), (2, 5, 4)),
    "rnn": (lambda: nn.RNN(4, 3, batch_first=True), (2, 5, 4)),
    "rnn with relu": (lambda: nn.RNN(4, 3, 2, nonlinearity="relu", batch_first=True), (2, 5, 4)),
    "bilinear": (lambda: Twice(nn.Bilinear(4, 4, 3)), (2, 4)),
    "batch normalization without parameters": (lambda: nn.BatchNorm2d(3, eps=0.1, affine=False), (2, 3, 4, 5)),
    "group normalization without parameters": (lambda: nn.GroupNorm(2, 4, eps=0.1, affine=False), (2, 4, 3, 5)),
    "instance normalization of rows": (lambda: nn.InstanceNorm1d(4, eps=0.1, affine=True), (2, 4, 6)),
    "prelu": (lambda: nn.PReLU(3, 0.3), (2, 3, 4, 5)),
    "prelu of one slope": (lambda: nn.PReLU(init=0.3), (2, 3, 4)),
    "padded convolution": (lambda: nn.Conv2d(3, 4, (3, 4), padding=(2, 1), padding_mode="reflect"), (2, 3, 6, 7)),
    "circular convolution": (lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), (2, 3, 6, 7)),
    "rows of a convolution with the same length": (lambda: nn.Conv1d(4, 3, 4, padding="same", dilation=2), (2, 4, 9)),
    "a volume of a convolution with the same size": (
        lambda: nn.Conv3d(2, 3, (3, 3, 5), padding="same", dilation=(2, 1, 2), bias=False),
        (2, 2, 4, 5, 9),
    ),
    "a strided volume": (lambda: nn.Conv3d(4, 6, 2, (1, 2, 3), (1, 0, 1), groups=2), (2, 4, 4, 5, 6)),
    "rows back": (lambda: nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2, dilation=2), (2, 4, 5)),
    "an image back": (lambda: nn.ConvTranspose2d(4, 6, (3, 2), (2, 3), (1, 0), (1, 2), groups=2), (2, 4, 5, 3)),
    "layer normalization without bias": (lambda: nn.LayerNorm((5, 4), bias=False), (2, 3, 5, 4)),
    "layer normalization without parameters": (lambda: nn.LayerNorm(4, eps=0.1, elementwise_affine=False), (2, 3, 4)),
    "mean square normalization": (lambda: nn.RMSNorm(4, eps=0.1), (2, 3, 4)),
    "mean square normalization of two axes": (lambda: nn.RMSNorm((3, 4), elementwise_affine=False), (2, 5, 3, 4)),
    "group normalization of rows": (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    "batch normalization of a vector": (lambda: nn.BatchNorm1d(4, eps=0.1), (3, 4)),
    "instance normalization without parameters": (lambda: nn.InstanceNorm2d(4), (2, 4, 3, 5)),
    "lstm, both ways, sequence first": (lambda: nn.LSTM(4, 3, 2, bidirectional=True), (5, 2, 4)),
    "bilinear without bias": (lambda: Twice(nn.Bilinear(4, 4, 3, bias=False)), (2, 4)),
    "volume back": (lambda: nn.ConvTranspose3d(2, 3, (1, 2, 3), (1, 2, 1), bias=False), (2, 2, 3, 4, 5)),
}


class Twice(nn.Module):
    """Gives its input to both inputs of a module."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.inner(x, x * 2)
        return made


class Started(nn.Module):
    """A recurrent module whose state begins with a number."""

    def __init__(self, start: float) -> None:
        super().__init__()
        self.inner = nn.GRU(4, 3, batch_first=True)
        self.register_buffer("state", torch.full((1, 2, 3), start))

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.inner(x, self.state)[0]
        return made


class FirstResult(nn.Module):
    """What a module computes, without its states."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        made = self.inner(x)
        return made[0] if isinstance(made, tuple) else made


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_torch_becomes_layers_with_its_weights(name: str, registry: Registry) -> None:
    torch.manual_seed(0)
    make, shape = MODULES[name]
    module = FirstResult(make()).eval()
    document = import_module(module, [torch.rand(shape) - 0.5], registry).verified(registry)
    report = document.report
    check_call(f"module: {name}", document, registry)
    assert [item.reason for item in report.outcomes if item.outcome == "opaque"] == []
    assert report.max_rel_difference is not None, report.not_compared_because
    assert report.max_rel_difference <= 2e-5
    assert set(report.weights) == {key for key in module.state_dict() if "num_batches" not in key}


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (nn.LSTM(4, 3, proj_size=2, batch_first=True), "it projects its state"),
        (Started(0.0), None),
        (Started(0.5), "its first state is not zero"),
        (nn.BatchNorm1d(5, track_running_stats=False), "it uses the statistics of the batch"),
    ],
)
def test_why_a_module_is_kept(module: nn.Module, reason: str | None, registry: Registry) -> None:
    torch.manual_seed(0)
    report = import_module(FirstResult(module).eval(), [torch.rand(2, 5, 4)], registry).report
    found = [item.reason.partition(" (")[0] for item in report.outcomes if item.outcome == "opaque"]
    assert found[:1] == ([reason] if reason else [])
