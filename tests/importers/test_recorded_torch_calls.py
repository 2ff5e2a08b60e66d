"""Many calls of torch in a few modules, each of which is traced once: the documents are those recorded, and compute the same.

A test of its own for each call, with its own trace, would take a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from document_texts import PLACE, layer_text
from recorded import check_recorded, rounded
from torch import Tensor, nn
from torch.nn import functional as F

from designer.importers.imported import Imported
from designer.importers.pytorch.importing import _imported, import_module
from designer.importers.pytorch.tracing import trace
from designer.operators.registry import Registry

Call = Callable[[Tensor, Any], Tensor]


class Calls(nn.Module):
    """A module that returns the results of all calls; they get its inputs and this module."""

    def __init__(self, calls: Sequence[Call]) -> None:
        super().__init__()
        self.calls = calls
        self.register_buffer("matrix", torch.linspace(-1, 2, 20).reshape(4, 5))
        self.register_buffer("row", torch.linspace(0.5, 2, 4))
        self.register_buffer("cube", torch.linspace(-1, 1, 24).reshape(2, 3, 4))
        self.register_buffer("whole", torch.arange(6).reshape(2, 3) % 2)
        self.kernel = nn.Parameter(torch.linspace(-0.3, 0.4, 5 * 4 * 3 * 2).reshape(5, 4, 3, 2))
        self.line = nn.Parameter(torch.linspace(-0.3, 0.4, 4 * 5).reshape(4, 5))
        self.table = nn.Parameter(torch.linspace(-1, 1, 10).reshape(5, 2))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(call(x, self) for call in self.calls)


def merged(x: Tensor) -> Tensor:
    """N x 2 x 4 -> (N 2) x 4: the batch merged with another axis."""
    return x.reshape(-1, 4)


def heads(image: Tensor) -> Tensor:
    """N x 4 x 6 x 8 -> N x 2 x 12 x 8."""
    return image.reshape(-1, 2, 12, 8)


def written(y: Tensor, write: Callable[[Tensor], Any]) -> Tensor:
    """A copy of a tensor after a write."""
    copy = y * 1
    write(copy)
    return copy + 0


def counted(x: Tensor) -> Tensor:
    return (x * 3).long()


VECTORS: list[Call] = [
    lambda x, m: torch.add(x, m.row, alpha=3),
    lambda x, m: torch.add(x, 2, alpha=3),
    lambda x, m: torch.div(x, 4),
    lambda x, m: torch.div(x, 3),
    lambda x, m: torch.div(x, m.row),
    lambda x, m: x**2 + x**0.5 + x**3,
    lambda x, m: torch.rsub(x, 1.5),
    lambda x, m: counted(x) + 2,
    lambda x, m: counted(x) * m.whole.sum(),
    lambda x, m: torch.addcmul(x, x, m.row),
    lambda x, m: torch.maximum(x, m.row).minimum(m.row * 2),
    lambda x, m: torch.max(x, m.row) - torch.min(x, m.row),
    lambda x, m: (x == 0.5).float() + (x != m.row) + (x <= 1) + (x >= m.row),
    lambda x, m: ((x > 0.25) & (x < m.row)).float(),
    lambda x, m: ((x > 0.25) | ~(x < 1)).float() + torch.logical_xor(x > 0.1, x > 0.2),
    lambda x, m: torch.where(x > m.row, m.row, x),
    lambda x, m: torch.where(x > 0.5, 1, 0) + x,
    lambda x, m: x.masked_fill(x > 0.5, float("-inf")).softmax(-1),
    lambda x, m: x.masked_fill(x > 0.5, m.row[0]),
    lambda x, m: x.double().float() + x.half().float(),
    lambda x, m: x.int().float() + x.bool().float(),
    lambda x, m: x.amax((1, 2), keepdim=True) + x.amin(-1, keepdim=True) + x.prod(1, keepdim=True),
    lambda x, m: x.logsumexp((1, 2)),
    lambda x, m: x.argmin(-1, keepdim=True).float() + x.argmax(1, keepdim=True),
    lambda x, m: torch.linalg.vector_norm(x, dim=-1) + torch.norm(x, p=1, dim=(1, 2), keepdim=True)[..., 0],
    lambda x, m: x.var((1, 2)) + x.std(1, unbiased=False).sum(-1),
    lambda x, m: torch.cat(torch.var_mean(x, -1), -1),
    lambda x, m: torch.cat(torch.var_mean(x, -1, keepdim=True), -1),
    lambda x, m: x.cumsum(-1),
    lambda x, m: x @ m.matrix,
    lambda x, m: x @ m.line,
    lambda x, m: m.matrix.t() @ x.transpose(1, 2),
    lambda x, m: torch.bmm(x, x.transpose(1, 2)),
    lambda x, m: F.linear(x, m.line.t(), m.row.sum().expand(5)),
    lambda x, m: F.linear(x[:, 0], m.line.t()),
    lambda x, m: F.bilinear(x, x, m.kernel[:, :, :, 0].transpose(1, 2).repeat(1, 2, 1)[:, :4].contiguous()),
    lambda x, m: torch.einsum("b i k, b j k -> b i j", x, x),
    lambda x, m: F.scaled_dot_product_attention(x, x, x, scale=0.3),
    lambda x, m: F.scaled_dot_product_attention(x, x, x, attn_mask=m.matrix[:2, :2]),
    lambda x, m: F.layer_norm(x, (2, 4)) + F.rms_norm(x, (4,), m.row, 0.1) + F.rms_norm(x, (4,)),
    lambda x, m: F.group_norm(x, 1, eps=0.2) + F.instance_norm(x, eps=0.1),
    lambda x, m: F.batch_norm(x, m.row[:2], m.row[2:], m.row[1:3], m.row[:2], eps=0.2),
    lambda x, m: F.batch_norm(x, m.row[:2], m.row[2:]),
    lambda x, m: F.relu6(x) + F.selu(x) + F.silu(x) + F.mish(x) + F.hardsigmoid(x) + F.hardswish(x) + F.softsign(x),
    lambda x, m: F.hardtanh(x, -0.25, 0.5) + F.hardtanh(x) + F.softshrink(x, 0.25) + F.rrelu(x, 0.1, 0.3),
    lambda x, m: F.leaky_relu(x, 0.3) + F.leaky_relu(x) + F.elu(x, 0.7) + F.celu(x, 1.5) + F.gelu(x) + F.elu(x),
    lambda x, m: F.softplus(x, 2, 0.5) + F.softplus(x) + F.threshold(x, 0.25, -3) + F.prelu(x, m.row[:1]),
    lambda x, m: F.prelu(x, m.row[:2]) + F.glu(x, 1) + x.log_softmax(1) + F.logsigmoid(x),
    lambda x, m: F.glu(x),
    lambda x, m: merged(x).softmax(1).view(-1, 2, 4),
    lambda x, m: x.clamp(0.1, 0.8) + x.clamp_min(0.3) + x.clamp_max(0.2) + x.clip(max=1) + x.clamp(min=0),
    lambda x, m: counted(x).clamp(min=1) + 0.0,
    lambda x, m: x.squeeze() + x.unsqueeze(1).squeeze(1) + x.unsqueeze(-1).squeeze(),
    lambda x, m: x.unsqueeze(0).squeeze(0) + x.squeeze(1),
    lambda x, m: x.mT.mT + x.swapaxes(1, 2).transpose(-1, -2),
    lambda x, m: x.expand(3, -1, -1, -1).sum(0),
    lambda x, m: m.cube[:1, :2].expand(x.shape[0], -1, -1) + x,
    lambda x, m: m.row.expand(x.shape[0], 2, 4) * x,
    lambda x, m: m.cube[:1, :2].repeat(x.shape[0], 1, 1) - x,
    lambda x, m: m.cube[:1, :1].repeat(x.shape[0], 2, 1) - x,
    lambda x, m: torch.cat([m.cube[:1].expand(x.shape[0], -1, -1), x], 1),
    lambda x, m: torch.stack([x, x + 1], -1).sum(-1) + torch.stack([x, x], 0).sum(0),
    lambda x, m: x.split(1, 1)[1] + x.split(4, 2)[0] + x.tensor_split(2, 2)[0].sum(-1, keepdim=True),
    lambda x, m: x.unbind(1)[1] + x.unbind(-1)[2].sum(-1, keepdim=True),
    lambda x, m: x.select(1, 0) + x[:, -1] + x[:, 1, 2:3],
    lambda x, m: x[..., -3:-1] + x[:, :, ::2] + x.narrow(2, 1, 2) + x[:, :, 1:100:2],
    lambda x, m: x.roll(1, 1) + x.roll((1, 2), (1, 2)) + x.roll(-1, -1),
    lambda x, m: x.flip((1, -1)),
    lambda x, m: F.pad(x, (1, 0, 2, 1)) + F.pad(x, (0, 1, 1, 2), value=2.5),
    lambda x, m: x[:, m.whole[0]] + x[:, :, [1, 3, 0, 2]].sum(1, keepdim=True)[..., :1],
    lambda x, m: x.index_select(2, torch.tensor([3, -1 + 1], dtype=torch.int32)),
    lambda x, m: x[:, m.whole],
    lambda x, m: x.topk(2).values + x.topk(2, 2, largest=False).indices,
    lambda x, m: x.triu() + x.tril(-1),
    lambda x, m: x.new_zeros(x.shape[0], 2, 1) + x + torch.ones(x.shape[0], 1, 1) + x.new_full((x.shape[0], 1, 4), 2.5),
    lambda x, m: x.flatten(1, -1) + x.flatten(-2),
    lambda x, m: x.reshape(-1, 4, 2).reshape(-1, 8) + x.view(-1, 8),
    lambda x, m: (merged(x) * m.row).sum(1).view(-1, 2) + (merged(x) + merged(x)[:, :1]).view(-1, 8)[:, :2],
    lambda x, m: merged(x).unsqueeze(1).expand(-1, 3, -1).reshape(-1, 2, 3, 4).sum(2),
    lambda x, m: merged(x).unsqueeze(0).squeeze(0).view(-1, 2, 4).permute(0, 2, 1),
    lambda x, m: x.permute(1, 0, 2).reshape(2, -1, 2, 2).permute(1, 0, 3, 2),
    lambda x, m: x.transpose(0, 1).sum(0) + x.transpose(0, 1)[0],
    lambda x, m: x.repeat_interleave(2, 1) + x.repeat(1, 2, 1),
    lambda x, m: F.dropout(x, 0.3, False) + F.alpha_dropout(x, 0.3) + F.dropout(merged(x), 0.2, False).view(-1, 2, 4),
    lambda x, m: written(x, lambda y: y.copy_(x[:, :1])),
    lambda x, m: written(x, lambda y: y.unsqueeze(1)[..., -2:].mul_(3)),
    lambda x, m: written(x, lambda y: y.clamp_(0.2, 0.6).relu_().sub_(1)),
    lambda x, m: written(x, lambda y: y.masked_fill_(y > 0.5, 0.0)),
]

KEPT_VECTORS: list[Call] = [  # some of which the library does not have
    lambda x, m: torch.div(x, 0.5, rounding_mode="floor"),
    lambda x, m: torch.rsub(x, m.row),
    lambda x, m: (counted(x) & 3) + 0.0,
    lambda x, m: torch.zeros_like(x) + x,
    lambda x, m: counted(x).sum(-1) + 0.0,
    lambda x, m: x.argmax() + 0.0,
    lambda x, m: torch.linalg.vector_norm(x, ord=3, dim=-1),
    lambda x, m: x @ m.row,
    lambda x, m: F.embedding(counted(x).clamp(0, 4), m.table),
    lambda x, m: F.embedding(counted(x).clamp(0, 4).int(), m.table),
    lambda x, m: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    lambda x, m: F.batch_norm(x, None, None, training=True),
    lambda x, m: x.clamp(m.row * 0, m.row),
    lambda x, m: x.round(decimals=1),
    lambda x, m: (x + 1.5).rsqrt() + x.log1p() + x.square() + x.reciprocal() + x.sign() + x.frac(),
    lambda x, m: torch.cat([x]) + torch.cat([x, -x], -1)[..., 4:] + torch.cat([torch.zeros(0), x]),
    lambda x, m: x.roll(3),
    lambda x, m: F.pad(x, (1, 1), mode="reflect"),
    lambda x, m: x.gather(2, counted(x).clamp(0, 3)),
    lambda x, m: written(x, lambda y: y.unbind(1)[1].mul_(2)),
]

IMAGES: list[Call] = [
    lambda x, m: F.conv2d(x, m.kernel, stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
    lambda x, m: F.conv2d(x, m.kernel[..., :1], m.matrix[0], padding="same"),
    lambda x, m: F.conv2d(x, m.kernel, padding="valid"),
    lambda x, m: F.conv2d(x, m.kernel[:4, :2], groups=2),
    lambda x, m: F.conv2d(F.pad(x, (1, 0, 2, 1)), m.kernel),
    lambda x, m: F.conv2d(F.pad(x, (1, 0, 2, 1), value=1.0), m.kernel),
    lambda x, m: F.conv1d(x[:, :, 0], m.kernel[..., 0], padding=1, stride=2),
    lambda x, m: F.conv1d(x[:, :, 0], m.kernel[..., 0], padding="same", dilation=3),
    lambda x, m: F.conv3d(x.unsqueeze(2), m.kernel.unsqueeze(2), padding=(0, 1, 1)),
    lambda x, m: F.conv_transpose2d(x, m.kernel[:4], stride=(2, 3), padding=(1, 0), output_padding=(1, 2)),
    lambda x, m: F.conv_transpose2d(x, m.kernel[:4], m.row, dilation=2),
    lambda x, m: F.conv_transpose2d(x, m.kernel[:4, :2], groups=2),
    lambda x, m: F.conv_transpose1d(x[:, :, 0], m.kernel[:4, :, :, 0], m.row, 2, 1, 1),
    lambda x, m: F.max_pool2d(x, 2),
    lambda x, m: F.avg_pool2d(x, (2, 3), (1, 2), (1, 0), True, False),
    lambda x, m: F.avg_pool2d(x, 2, divisor_override=3),
    lambda x, m: F.max_pool1d(x[:, :, 0], 3, 2, 1) + F.avg_pool1d(x[:, :, 0], 3, 2, 1),
    lambda x, m: F.lp_pool2d(x, 2, 2),
    lambda x, m: F.adaptive_avg_pool2d(x, (3, 4)) + F.adaptive_max_pool2d(x, (3, 4)),
    lambda x, m: F.adaptive_avg_pool2d(x, 1) + F.adaptive_max_pool2d(x, 1),
    lambda x, m: F.adaptive_avg_pool1d(x[:, :, 0], 2) + F.adaptive_max_pool1d(x[:, :, 0], 2),
    lambda x, m: F.adaptive_avg_pool1d(x[:, :, 0], 1),
    lambda x, m: F.interpolate(x, scale_factor=(2, 3)),
    lambda x, m: F.interpolate(x, size=(9, 10), mode="bilinear"),
    lambda x, m: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
    lambda x, m: F.interpolate(x, size=(12, 16), mode="bicubic"),
    lambda x, m: F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True),
    lambda x, m: F.interpolate(x, size=(3, 5), mode="bicubic", antialias=True),
    lambda x, m: F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), align_corners=True),
    lambda x, m: F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), "nearest", "border", align_corners=False),
    lambda x, m: F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), "bicubic", "reflection", align_corners=False),
    lambda x, m: F.channel_shuffle(x, 2),
    lambda x, m: F.unfold(x, (2, 3), dilation=(1, 2), padding=(1, 0), stride=(2, 1)),
    lambda x, m: F.fold(x.reshape(-1, 12, 16), (8, 8), (2, 2), stride=2),
    lambda x, m: F.dropout2d(x, 0.2, False) + F.dropout(x, 0.4, False),
    lambda x, m: F.pad(x, (1, 2, 0, 1), mode="circular") + F.pad(x, (1, 2, 0, 1), value=3),
    lambda x, m: F.pad(x, (1, 2, 0, 1, 1, 0), value=3),
    lambda x, m: F.scaled_dot_product_attention(heads(x), heads(x), heads(x), is_causal=True, scale=0.2),
    lambda x, m: F.scaled_dot_product_attention(heads(x), heads(x), heads(x), torch.zeros(12, 12)),
    lambda x, m: heads(x) @ heads(x).mT + m.row[:2, None, None],
    lambda x, m: F.linear(x.unsqueeze(1).unsqueeze(1), torch.ones(3, 8)),
    lambda x, m: F.layer_norm(x.unsqueeze(1).unsqueeze(1), (8,)),
    lambda x, m: F.instance_norm(x, weight=m.row, bias=m.row) + F.group_norm(x, 2, m.row, m.row),
    lambda x, m: x.mean(1, keepdim=True) * torch.sigmoid(x.amax((2, 3), keepdim=True)),
    lambda x, m: x.view(-1, 2, 2, 6, 8).mean(2) + x.unflatten(1, (2, 2)).sum(2),
    lambda x, m: (F.relu(F.conv2d(x, m.kernel)) * 2).flatten(1).sum(1),
    lambda x, m: x.to(memory_format=torch.channels_last).contiguous() + x.type_as(m.row),
]

KEPT_IMAGES: list[Call] = [  # some of which the library does not have
    lambda x, m: F.fold(x.reshape(-1, 12, 16), (5, 5), (2, 2), stride=1),
    lambda x, m: F.scaled_dot_product_attention(heads(x), heads(x), heads(x), torch.ones(12, 12).bool()),
    lambda x, m: x.unsqueeze(1).unsqueeze(1) @ torch.ones(8, 2),
    lambda x, m: F.instance_norm(x, m.row, m.row, use_input_stats=False),
    lambda x, m: F.local_response_norm(x, 3),
    lambda x, m: torch.fft.rfft(x).abs(),
]

FIXED_VECTORS: list[Call] = [  # those that need a fixed batch
    lambda x, m: x.sum() + x.mean((1, 2)).sum(0),
    lambda x, m: F.prelu(x.reshape(-1, 4)[:, :4], m.row).view(-1, 2, 4),
    lambda x, m: x.flatten(1) @ torch.ones(8, 2) + x.flatten(0, 1).sum(),
    lambda x, m: x.repeat(2, 1, 1)[0],
    lambda x, m: written(x, lambda y: y[:, 0].copy_(m.row)),
    lambda x, m: written(x, lambda y: y[:, :, 1:3].fill_(2)),
    lambda x, m: written(x, lambda y: y.zero_()),
    lambda x, m: written(x, lambda y: y[:, 1].zero_()),
    lambda x, m: written(x, lambda y: y.permute(0, 2, 1)[:, 0].add_(1)),
    lambda x, m: written(x, lambda y: y.__setitem__((slice(None), 0), x[:, 1])),
]

FIXED_IMAGES: list[Call] = [
    lambda x, m: F.conv2d(x, m.kernel * x.mean(), m.matrix[0], stride=2, padding=1),
    lambda x, m: F.conv_transpose2d(x, m.kernel[:4] * x.mean()),
    lambda x, m: (
        F.max_pool2d(x, (2, 3), (1, 2), (1, 0), (1, 2)) + F.max_pool2d(x, (2, 3), (1, 2), (1, 0), (1, 2), True).sum()
    ),
    lambda x, m: F.pixel_shuffle(x, 2) + F.pixel_unshuffle(x, 2).sum(),
    lambda x, m: x.reshape(-1, 3, 2, 4, 2).permute(0, 1, 3, 2, 4).reshape(-1, 12, 4)[:, :, :3],
    lambda x, m: F.conv2d(x, m.kernel, x.mean((0, 2, 3))[:1].expand(5), dilation=(1, 2)),
    lambda x, m: F.conv_transpose2d(x, m.kernel[:4], x.mean((0, 2, 3)), stride=2),
    lambda x, m: F.conv2d(x, m.kernel[:4, :2] * x.mean(), groups=2, padding=(1, 0), stride=(1, 2)),
    lambda x, m: F.linear(x, m.kernel[0, :, 0, :1] * x.mean() + torch.ones(4, 8), x.mean((0, 2, 3))),
]


def back(y: Tensor) -> Tensor:
    """(N 2) x a -> N x 2 x a."""
    return y.reshape(-1, 2, *y.shape[1:])


def turned(x: Tensor) -> Tensor:
    """N x 2 x 4 -> 2 x (N 4): the batch merged with an axis behind it, after another one."""
    return x.transpose(0, 1).reshape(2, -1)


def there(y: Tensor) -> Tensor:
    """a x (N 4) -> N x a x 4."""
    return y.reshape(y.shape[0], -1, 4).transpose(0, 1)


MERGED: list[Call] = [  # axes behind the merged batch have other places in the document
    lambda x, m: torch.cat(merged(x).split(2, 1)[::-1], 1).view(-1, 2, 4),
    lambda x, m: back(merged(x).split((1, 3), 1)[1]),
    lambda x, m: back(torch.stack(merged(x).unbind(1), 1)) + back(torch.stack([merged(x), merged(x)], -1).sum(-1)),
    lambda x, m: back(merged(x).select(1, 2)) + back(merged(x)[:, -1]),
    lambda x, m: back(merged(x)[:, 1:3]) + back(merged(x).narrow(1, 2, 2)) + back(merged(x)[:, ::2]),
    lambda x, m: back(merged(x).roll(1, 1)) + back(merged(x).flip(1)) + back(merged(x).cumsum(1)),
    lambda x, m: back(merged(x).log_softmax(-1)),
    lambda x, m: back(merged(x).amax(1)) + back(merged(x).sum(-1)) + back(merged(x).mean(1)),
    lambda x, m: back(merged(x).max(1).values) + back(merged(x).argmin(1)),
    lambda x, m: back(F.pad(merged(x), (1, 2))) + back(F.pad(merged(x), (-1, 4), value=2.0)),
    lambda x, m: back(merged(x)[:, [3, 0, 1]]) + back(merged(x).index_select(1, torch.tensor([1, 1, 2]))),
    lambda x, m: back(F.linear(merged(x), m.line.t(), m.cube[0, 0, :1].expand(5))),
    lambda x, m: back(F.layer_norm(merged(x), (4,), m.row, m.row)) + back(F.rms_norm(merged(x), (4,))),
    lambda x, m: back(merged(x).unsqueeze(2).expand(-1, -1, 3).reshape(-1, 12)),
    lambda x, m: back(merged(x).unflatten(1, (2, 2)).transpose(1, 2).flatten(1)),
    lambda x, m: back(merged(x).repeat_interleave(2, 1)),
    lambda x, m: back(torch.where(merged(x) > 0.5, merged(x), m.row)) + back(torch.maximum(merged(x), m.row)),
    lambda x, m: back(merged(x).masked_fill(merged(x) > 0.5, 2.0)) + back(merged(x).clamp(0.2, 0.6)),
    lambda x, m: back(written(merged(x), lambda y: y[:, 1:3].mul_(2))) + back(written(merged(x), lambda y: y.add_(1))),
    lambda x, m: back(merged(counted(x)) * 2) + back(merged(x > 0.5)),
    lambda x, m: x @ torch.tensor([[0.5 * row - column for column in range(5)] for row in range(4)]),
    lambda x, m: torch.where(x > 0.5, m.cube[:1, :2].expand(x.shape[0], -1, -1), x),
    lambda x, m: torch.where(x > 0.5, m.whole[:1, :2, None].expand(x.shape[0], -1, 4), x),
    lambda x, m: torch.ones(2, x.shape[0], 4, dtype=torch.int64).float() + x.transpose(0, 1),
    lambda x, m: x.new_ones(x.shape[0], 1, 1) + x.squeeze((1, 2)) + F.hardtanh(x - 0.5, -1, 0),
    lambda x, m: F.avg_pool2d(x.unsqueeze(1), 2, 2, ceil_mode=True, divisor_override=3),
    lambda x, m: there(turned(x).relu()),
    lambda x, m: there(turned(x).flip(0)),
    lambda x, m: there(turned(x).sum(0, keepdim=True)) + there(turned(x)[1:]) + there(turned(x).roll(1, 0)),
    lambda x, m: there(torch.cat([turned(x), turned(x)[:1]], 0)) + there(torch.stack([*turned(x).unbind(0)] * 2)[:3]),
    lambda x, m: there(turned(x).softmax(0)) + there(turned(x).t().t()) + there(turned(x).split(1, 0)[1]),
    lambda x, m: turned(x).unsqueeze(0).permute(2, 0, 1).flatten(1).reshape(-1, 4, 2),
    lambda x, m: F.scaled_dot_product_attention(*[merged(x).view(-1, 1, 2, 2)] * 3).reshape(-1, 2, 4),
]

KEPT_MERGED: list[Call] = [  # with the batch on several axes, or where the work is along it
    lambda x, m: x.unsqueeze(0) + x.unsqueeze(1),
    lambda x, m: x.unsqueeze(0) @ x.unsqueeze(1).mT,
    lambda x, m: x.flatten(1) @ x.flatten(1).t(),
    lambda x, m: back(F.glu(merged(x), 1)) + back(merged(x).topk(2, 1).values) + back(merged(x).repeat(1, 2))[..., :2],
    lambda x, m: back(merged(x) @ m.matrix) + there(turned(x) * 2 + 1)[..., :1],
    lambda x, m: x.permute(1, 2, 0) @ x.transpose(0, 1),
    lambda x, m: torch.cat([x, x], 0),
    lambda x, m: torch.cat([x, m.cube[:, :2]], 0),
    lambda x, m: x.chunk(2)[0],
    lambda x, m: x[1:] + x[:-1],
    lambda x, m: F.pad(x, (0, 0, 0, 0, 1, 0)),
    lambda x, m: x[: x.shape[0] - 1],
    lambda x, m: x.cumsum(0) + x.softmax(0) + x.flip(0),
    lambda x, m: F.linear(x.flatten(1).t(), x.flatten(1).t()),
    lambda x, m: torch.stack([x, x.new_zeros(x.shape[0], 2, 4)], 0),
    lambda x, m: (x > x.mean(0)).float(),
    lambda x, m: torch.logical_and(x, x > 0.5).float(),
    lambda x, m: torch.logical_not(counted(x)).float(),
    lambda x, m: F.dropout(x, 0.5, True) + F.alpha_dropout(x, 0.5, True),
    lambda x, m: F.rrelu(x, training=True),
    lambda x, m: torch.addbmm(m.matrix[:2, :2], x, x.mT) + torch.baddbmm(m.matrix[:2, :2], x, x.mT, beta=0.5, alpha=2),
    lambda x, m: (
        torch.addmm(m.row, x[:, 0], m.matrix[:, :4], beta=0) + torch.addmm(m.row, x[:, 0], m.matrix[:, :4], alpha=3)
    ),
    lambda x, m: m.row @ m.matrix + x.flatten(1)[:, :5],
    lambda x, m: torch.complex(x, x).abs() + x.to(torch.bfloat16),
]


FURTHER_VECTORS: list[Call] = [  # all of which the library has
    lambda x, m: torch.mul(3, x) + torch.div(3, x + 1),
    lambda x, m: torch.sub(x, 2, alpha=3) + torch.sub(x, m.row, alpha=2),
    lambda x, m: 2**x + x.pow(-1) + x**-0.5 + x.pow(x),
    lambda x, m: torch.ones(4).fill_(3) + x,
    lambda x, m: m.row.clone().fill_(2) + m.row.clone().zero_() + x,
    lambda x, m: written(counted(x), lambda y: y.add_(1)) + 0.5,
    lambda x, m: written(x, lambda y: y.copy_(m.row)),
    lambda x, m: written(x, lambda y: y.fill_(m.row[0])),
    lambda x, m: written(x, lambda y: y[:, :, -1].mul_(2)),
    lambda x, m: written(x, lambda y: y[..., -3].add_(x[..., 1])),
    lambda x, m: written(x, lambda y: y[..., -3:-1].add_(1)),
    lambda x, m: written(x.unsqueeze(1), lambda y: y.permute(0, 3, -3, 2)[:, 1].mul_(2)),
    lambda x, m: written(x, lambda y: y.view(-1, 8)[:, 2:5].sub_(1)),
    lambda x, m: written(x, lambda y: y.split((1, 3), 2)[1].mul_(2)),
    lambda x, m: written(x, lambda y: y.transpose(-1, 1)[:, -1].mul_(3)),
    lambda x, m: written(x, lambda y: y.to(torch.float32, copy=True).mul_(3)),
    lambda x, m: written(x, lambda y: y.transpose(1, 2).reshape(-1, 8).mul_(3)),
    lambda x, m: x.var(-1, correction=2) + x.std(-1, unbiased=False),
    lambda x, m: x.var(-1) + torch.var_mean(x, -1)[1],
    lambda x, m: m.matrix @ torch.ones(5, 4) @ x.mT,
    lambda x, m: x.unsqueeze(1).expand(-1, 3, -1, -1) @ x.unsqueeze(1).mT,
    lambda x, m: x.unsqueeze(1) @ m.cube[:, :2].mT,
    lambda x, m: torch.matmul(m.cube[0, :2], x.mT),
    lambda x, m: torch.addmm(m.row, x[:, 0], torch.ones(4, 4)),
    lambda x, m: torch.baddbmm(m.matrix[:2, :2], x, x.mT),
    lambda x, m: torch.stack([x, x[:, :1].expand(-1, 2, -1)], 1),
    lambda x, m: torch.cat([x, m.cube[:1, :2].expand(x.shape[0], -1, -1)], -1),
    lambda x, m: torch.full((x.shape[0], 1, 4), 2) * x,
    lambda x, m: torch.zeros(2, x.shape[0], 4) + x.transpose(0, 1),
    lambda x, m: x.clamp(0) + x.clamp(max=0.5),
    lambda x, m: counted(x).clamp(max=2) + 0.0,
    lambda x, m: counted(x).masked_fill(x > 0.5, 7) + 0.0,
    lambda x, m: x[:, 0].unsqueeze(1).masked_fill(x > 0.5, 7.0),
    lambda x, m: torch.where(x > 0.5, counted(x), x) + torch.where(x > 0.5, 1.5, counted(x)),
    lambda x, m: torch.where(x[:, :1] > 0.5, 1, 2) + x,
    lambda x, m: torch.min(x, 1, keepdim=True).indices.float() + torch.max(x, -1, keepdim=True).indices,
    lambda x, m: F.softmin(x, 1) + F.softmax(x, 2),
    lambda x, m: x.flip(1).flip((1, 2)) + x.cumsum(-2),
    lambda x, m: x.roll((0, 1), (1, 2)) + x.roll(-3, -1) + x.roll(0, 1),
    lambda x, m: x[:, :, 1::2] + x[:, :, :3:2] + x[:, :, -3:-1:2].sum(-1, keepdim=True),
    lambda x, m: x[:, :, -1:] + x[..., 3:4] + x.narrow(2, -2, 1),
    lambda x, m: F.pad(x, (-1, -1)) + F.pad(x, (1, -3)),
    lambda x, m: F.pad(x, (1, 2, 3, 4), value=-1),
    lambda x, m: x[:, torch.tensor([[0, 1], [1, 0]])],
    lambda x, m: x[..., m.whole[0]] + x.index_select(-1, torch.tensor([0, 0, 3])),
    lambda x, m: x.topk(1, 1, largest=False).values + x.topk(3, -1).values[..., :1],
    lambda x, m: x.tril(1) + x.triu(-1),
    lambda x, m: x.movedim((1, 2), (2, 1)) + x.movedim(1, 2) + x.swapdims(-1, 1),
    lambda x, m: x.flatten(1, 1) + x.flatten(0, 1).view(-1, 2, 4),
    lambda x, m: x[:, :1].squeeze((1,)) + x.unsqueeze(-2)[:, 0, 0] + x.unsqueeze(-1)[:, 0, :, 0],
    lambda x, m: x.repeat(1, 1, 2, 1) + x[:, :1].unsqueeze(1),
    lambda x, m: x.repeat_interleave(3, -1) + x.tile((2,))[..., :1],
    lambda x, m: m.row.repeat(2) + x.flatten(1),
    lambda x, m: m.row.repeat(x.shape[0], 2, 1) + x,
    lambda x, m: x[:, :1].expand(x.shape[0], 3, 4) + x[:, :1].expand(-1, 3, -1),
    lambda x, m: x[:, :, :1].expand_as(x) + m.row.expand(2, 4),
    lambda x, m: m.cube[:1].expand(x.shape[0], 3, 4) + m.row[:1].expand(x.shape[0], 3, 4),
    lambda x, m: (
        x.split([1, 3], -1)[1] + x.chunk(3, -1)[1].sum(-1, keepdim=True) + x.tensor_split((1, 3), -1)[1][..., :1]
    ),
    lambda x, m: x.unflatten(2, (-1, 2)) + x.unflatten(-1, (2, 2)),
    lambda x, m: x.view(x.shape[0], -1) + x.view(x.shape[0], 4, 2).flatten(1),
    lambda x, m: F.layer_norm(x, (4,), None, m.row) + F.layer_norm(x, (4,), m.row) + F.layer_norm(x, (4,), eps=0.3),
    lambda x, m: F.layer_norm(x, (2, 4), m.cube[0, :2], m.cube[1, :2]) + F.rms_norm(x, (2, 4), m.cube[0, :2], 0.5),
    lambda x, m: (
        F.group_norm(x, 2, m.row[:2]) + F.group_norm(x, 1, None, m.row[:2]) + F.instance_norm(x, weight=m.row[:2])
    ),
    lambda x, m: (
        F.batch_norm(x, m.row[:2], m.row[2:], None, m.row[:2]) + F.batch_norm(x, m.row[:2], m.row[2:], m.row[1:3])
    ),
    lambda x, m: F.hardtanh(x, 0, 6) + F.hardtanh(x, 0.1, 0.7) + F.relu6(x * 10) + F.softplus(x, 3),
    lambda x, m: (
        F.gelu(x, approximate="tanh")
        + F.threshold(x, 0.2, 0.1)
        + F.celu(x - 0.5, 0.4)
        + F.tanhshrink(x)
        + F.leaky_relu(x - 0.5, 0.0)
    ),
    lambda x, m: F.normalize(x, dim=-1) + F.normalize(x, p=1, dim=1),
    lambda x, m: (
        x.norm(dim=-1) + x.norm(p=1, dim=2) + torch.linalg.vector_norm(x, ord=1, dim=(1, 2), keepdim=True)[..., 0]
    ),
    lambda x, m: x.logsumexp(-1) + x.prod(-1) + x.amin(2) + x.mean(-1),
    lambda x, m: torch.addcmul(x, x, x, value=2) + torch.addcmul(m.row, x, x),
    lambda x, m: counted(x) / 2 + counted(x) * 0.5 + (counted(x) + True) + (x + (x > 0.5)),
    lambda x, m: (
        (counted(x) > 0.5).float() + (x > m.whole[0, 0]).float() + (counted(x) < x).float() + (x != 0.5).long()
    ),
    lambda x, m: (x > 0.5) * 2.5 + torch.logical_not(x > 0.5) + ((x > 0.5) & m.whole[0, :1].bool()),
    lambda x, m: F.embedding(counted(x), m.table, padding_idx=0),
    lambda x, m: torch.einsum("bij,jk->bik", x, m.matrix) + torch.einsum("bij->bi", x).unsqueeze(-1),
    lambda x, m: torch.outer(m.row, m.row) @ x.mT + torch.eye(4) @ x.mT,
    lambda x, m: torch.arange(4) + x + torch.arange(x.shape[2]) * x + torch.linspace(0, 1, 4) * x,
    lambda x, m: F.scaled_dot_product_attention(x.unsqueeze(1), x.unsqueeze(1), x.unsqueeze(1), is_causal=True),
]

FURTHER_IMAGES: list[Call] = [
    lambda x, m: F.conv2d(x, m.kernel, m.matrix[0], 2, (1, 2)),
    lambda x, m: F.conv1d(x[:, :, 0], m.kernel[..., 0], stride=2, padding=2, dilation=2),
    lambda x, m: torch.convolution(x, m.kernel[:4], None, (2, 2), (0, 0), (1, 1), True, (1, 1), 1),
    lambda x, m: F.conv_transpose3d(x.unsqueeze(2), m.kernel[:4].unsqueeze(2)),
    lambda x, m: F.conv3d(x.unsqueeze(2), m.kernel.unsqueeze(2), stride=(1, 2, 3)),
    lambda x, m: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    lambda x, m: F.max_pool2d(x, (2, 3)) + F.avg_pool2d(x, (2, 3)),
    lambda x, m: F.max_pool2d(x, 2, 1, 0, 2),
    lambda x, m: F.avg_pool2d(x, 3, 2, 1) + F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    lambda x, m: F.avg_pool2d(x, (3, 2), ceil_mode=True),
    lambda x, m: F.lp_pool2d(x, 2, (2, 3)) + F.lp_pool2d(x, 1, (2, 3)),
    lambda x, m: F.lp_pool2d(x, 3, 2, 1),
    lambda x, m: F.avg_pool1d(x[:, :, 0], 3, ceil_mode=True),
    lambda x, m: F.adaptive_max_pool2d(x, (2, 1)) + F.adaptive_avg_pool2d(x, (1, 8)).mean(-1, keepdim=True),
    lambda x, m: F.interpolate(x, scale_factor=1.5),
    lambda x, m: F.interpolate(x, scale_factor=0.5) + F.interpolate(x, size=(3, 4), mode="area"),
    lambda x, m: F.interpolate(x, scale_factor=(1, 2), mode="bilinear"),
    lambda x, m: F.interpolate(x, size=(6, 16), mode="bilinear", align_corners=True),
    lambda x, m: F.interpolate(x, size=(12, 20), mode="bicubic", align_corners=True),
    lambda x, m: F.interpolate(x, scale_factor=1.3, mode="bilinear", recompute_scale_factor=True),
    lambda x, m: F.interpolate(x, size=(12, 16), mode="bilinear", antialias=True),
    lambda x, m: F.fold(x.reshape(-1, 12, 16)[:, :, :12], (6, 8), (2, 2), stride=2),
    lambda x, m: F.unfold(x, (2, 3), padding=(1, 2), stride=(2, 3)),
    lambda x, m: F.unfold(x, 2),
    lambda x, m: F.pixel_shuffle(x, 2),
    lambda x, m: F.pixel_unshuffle(x, 2),
    lambda x, m: F.channel_shuffle(x, 4) + x.roll((1, -2), (2, 3)),
    lambda x, m: F.pad(x, (1, 2)) + F.pad(x, (1, 2, 3, 4), mode="reflect")[:, :, :6],
    lambda x, m: F.pad(x, (-1, 2, 1, -2)) + F.pad(x, (1, 0, 0, -1), mode="replicate"),
    lambda x, m: F.pad(x, (0, 0, 0, 0, 1, 2)),
    lambda x, m: F.pad(x, (0, 0, 0, 0, -1, 1)) + F.dropout2d(x, 0.3, False),
    lambda x, m: F.dropout3d(x.unsqueeze(2), 0.3, False),
    lambda x, m: F.dropout1d(x[:, :, 0], 0.3, False),
    lambda x, m: x.flatten(2).transpose(1, 2),
    lambda x, m: x.permute(0, 2, 3, 1)[:, ::2, 1::2],
    lambda x, m: x.view(-1, 4, 48).softmax(-1).view(-1, 4, 6, 8) + x * m.row.view(-1, 1, 1),
    lambda x, m: F.linear(x, torch.ones(3, 8), torch.ones(3)) + x @ torch.ones(8, 3),
    lambda x, m: torch.stack([x, x], 2).flatten(1, 2) + torch.stack([x, x], 1).flatten(1, 2),
    lambda x, m: (
        F.batch_norm(x, m.row, m.row + 1, m.row + 2, m.row + 3, eps=0.1) + F.group_norm(x, 2) + F.instance_norm(x)
    ),
    lambda x, m: F.layer_norm(x, (4, 6, 8)) + F.prelu(x - 0.5, m.row) + F.normalize(x),
    lambda x, m: F.glu(x, 1) + F.glu(x, 2)[:, :2].repeat(1, 1, 2, 1),
    lambda x, m: F.softmax(x, 1) + x.argmax(1, keepdim=True) + x.mean((2, 3), keepdim=True),
    lambda x, m: F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), align_corners=False),
]


@pytest.mark.parametrize(
    ("name", "calls", "shape"),
    [
        ("vectors", VECTORS, (3, 2, 4)),
        ("fixed_vectors", FIXED_VECTORS, (3, 2, 4)),
        ("kept_vectors", KEPT_VECTORS, (3, 2, 4)),
        ("merged", MERGED, (3, 2, 4)),
        ("images", IMAGES, (2, 4, 6, 8)),
        ("kept_images", KEPT_IMAGES, (2, 4, 6, 8)),
        ("fixed_images", FIXED_IMAGES, (2, 4, 6, 8)),
    ],
    ids=[
        "vectors",
        "vectors of a fixed batch",
        "vectors that are kept",
        "vectors with a merged batch",
        "images",
        "images that are kept",
        "images of a fixed batch",
    ],
)
def test_calls_of_torch_are_the_recorded_layers(
    name: str, calls: list[Call], shape: tuple[int, ...], registry: Registry
) -> None:
    found = import_module(Calls(calls).eval(), [torch.rand(shape)], registry)
    check_recorded(f"imports/torch_many_{name}.txt", text_of(found, registry))


def test_calls_that_need_a_fixed_batch_say_why(registry: Registry) -> None:
    """With an open batch, which an import tries first."""
    module = Calls(KEPT_MERGED).eval()
    opened = trace(module, [torch.rand(3, 2, 4)], open_batch=True)
    assert opened is not None
    found = _imported(opened, module, registry, "calls", None)
    check_recorded("imports/torch_many_kept_merged.txt", text_of(found, registry))


@pytest.mark.parametrize(
    ("name", "calls", "shape"),
    [("further_vectors", FURTHER_VECTORS, (3, 2, 4)), ("further_images", FURTHER_IMAGES, (2, 4, 6, 8))],
    ids=["vectors", "images"],
)
def test_calls_of_torch_become_layers_that_compute_the_same(
    name: str, calls: list[Call], shape: tuple[int, ...], registry: Registry
) -> None:
    found = import_module(Calls(calls).eval(), [torch.rand(shape)], registry)
    assert found.report.opaque == 0, [item.reason for item in found.report.outcomes if item.reason]
    check_recorded(f"imports/torch_many_{name}.txt", text_of(found, registry))
    report = found.verified(registry).report
    assert report.max_rel_difference is not None, report.not_compared_because
    assert report.max_rel_difference < 1e-4


def text_of(found: Imported, registry: Registry) -> str:
    """The layers of an import, what became of each node, and the rest of its report."""
    report = found.report
    lines = [layer_text(layer, registry) for layer in found.graph]
    lines += [f"{item.type} {item.outcome.value} {' '.join(item.layers)} {item.reason}" for item in report.outcomes]
    lines += [f"{key} is {place}" for key, place in report.weights.items()]
    lines += [f"warning: {warning}" for warning in report.warnings]
    return rounded("".join(PLACE.sub("", line).strip().replace("\n", "\\n") + "\n" for line in lines))
