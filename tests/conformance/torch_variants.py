"""Random calls of torch for what few samples of its own database have: axes, ranks, borders, steps, writes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree

Call = Callable[..., Any]
Made = tuple[Call, list[tuple[int, ...]]]  # a function and the shapes of its inputs


class RandomCall(nn.Module):
    """A module that calls a function; with `merged` on its first two axes as one."""

    def __init__(self, call: Call, merged: bool) -> None:
        super().__init__()
        self.call, self.merged = call, merged

    def forward(self, x: Tensor, *others: Tensor) -> Any:
        if not self.merged:
            return self.call(x, *others)
        made = self.call(x.reshape(-1, *x.shape[2:]))
        return pytree.tree_map(lambda tensor: tensor.reshape(x.shape[0], x.shape[1], *tensor.shape[1:]), made)


def shape(r: Random, low: int = 2, high: int = 5) -> tuple[int, ...]:
    return tuple(r.randint(2, 5) for _ in range(r.randint(low, high)))


def axis(r: Random, rank: int, first: int = 0) -> int:
    """An axis, counted from the front or the back."""
    return r.randrange(first, rank) - r.choice((0, rank))


def image(r: Random, spatial: int, channels: int = 4) -> tuple[int, ...]:
    return (2, channels, *(r.randint(6, 9) for _ in range(spatial)))


def several(r: Random, calls: tuple[Call, ...]) -> Call:
    """Some of the functions, called with the same tensors."""
    chosen = r.sample(calls, min(len(calls), 5))
    return lambda *tensors: tuple(call(*tensors) for call in chosen)


def reduction(r: Random) -> Made:
    sizes = shape(r)
    name = r.choice(("mean", "sum", "amax", "amin", "logsumexp", "var", "std", "prod", "argmax", "argmin", "norm"))
    axes = r.sample(range(1, len(sizes)), r.randint(1, len(sizes) - 1))
    dims: Any = [place - r.choice((0, len(sizes))) for place in axes]
    if name in ("prod", "argmax", "argmin"):
        dims = dims[0]
    given: dict[str, Any] = {"dim": dims, "keepdim": r.random() < 0.5}
    if name in ("var", "std"):
        given["correction"] = r.choice((0, 1, 2)) if len(axes) > 1 else r.choice((0, 1))
    if name == "norm":
        given["p"] = r.choice((1, 2, 3, float("inf")))
    call = getattr(torch, name)
    return lambda x: call(x, **given), [sizes]


def extremes(r: Random) -> Made:
    sizes, name = shape(r), r.choice(("max", "min"))
    place, keep = axis(r, len(sizes), 1), r.random() < 0.5
    return lambda x: tuple(getattr(torch, name)(x, place, keepdim=keep)), [sizes]


def along_an_axis(r: Random) -> Made:
    sizes = (*shape(r, 1, 4), 4)
    place = r.choice((axis(r, len(sizes), 1) if len(sizes) > 1 else 0, -1))
    name = r.choice(("softmax", "log_softmax", "cumsum", "glu", "softmin"))
    if name == "glu":
        sizes, place = (*sizes[:-1], 6), -1
    call = F.glu if name == "glu" else F.softmin if name == "softmin" else getattr(torch, name)
    return lambda x: call(x, dim=place), [sizes]


def top(r: Random) -> Made:
    sizes = shape(r)
    place, most = axis(r, len(sizes), 1), r.random() < 0.5
    return lambda x: x.topk(2, dim=place, largest=most), [sizes]


def pooling(r: Random) -> Made:
    spatial = r.choice((1, 2))
    kernel = [r.randint(1, 3) for _ in range(spatial)]
    given: dict[str, Any] = {
        "stride": [r.randint(1, 3) for _ in range(spatial)],
        "padding": [r.randint(0, size // 2) for size in kernel],
        "ceil_mode": r.random() < 0.5,
    }
    if r.random() < 0.5:
        call = (F.max_pool1d, F.max_pool2d)[spatial - 1]
        given["dilation"] = [r.randint(1, 2) for _ in range(spatial)]
    else:
        call = (F.avg_pool1d, F.avg_pool2d)[spatial - 1]
        given["count_include_pad"] = r.random() < 0.5
        if spatial == 2 and r.random() < 0.5:
            given["divisor_override"] = r.randint(1, 5)
    if r.random() < 0.3:
        del given["stride"]
    return lambda x: call(x, kernel, **given), [image(r, spatial)]


def adaptive_pooling(r: Random) -> Made:
    spatial = r.choice((1, 2))
    size = [r.randint(1, 4) for _ in range(spatial)]
    calls = ((F.adaptive_avg_pool1d, F.adaptive_avg_pool2d), (F.adaptive_max_pool1d, F.adaptive_max_pool2d))
    call = r.choice(calls)[spatial - 1]
    return lambda x: call(x, size), [image(r, spatial)]


def convolution(r: Random) -> Made:
    spatial, groups = r.choice((1, 2, 2, 3)), r.choice((1, 2))
    kernel = [r.randint(1, 4) for _ in range(spatial)]
    given: dict[str, Any] = {"groups": groups, "dilation": [r.randint(1, 2) for _ in range(spatial)]}
    transposed = r.random() < 0.4
    bias = r.random() < 0.5
    if transposed:
        given["stride"] = [r.randint(2, 3) for _ in range(spatial)]
        given["padding"] = [r.randint(0, size - 1) for size in kernel]
        given["output_padding"] = [r.randint(0, 1) for _ in range(spatial)]
        kind: Any = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[spatial - 1]
    else:
        same = r.choice(("same", "valid", None))
        given["padding"] = same or [r.randint(0, 2) for _ in range(spatial)]
        given["stride"] = 1 if same == "same" else [r.randint(1, 3) for _ in range(spatial)]
        kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[spatial - 1]
    return kind(4, 6, kernel, bias=bias, **given), [image(r, spatial)]


def kernel_as_input(r: Random) -> Made:
    spatial, groups = r.choice((1, 2)), r.choice((1, 2))
    given = {"stride": r.randint(1, 2), "dilation": r.randint(1, 2), "padding": r.randint(0, 2), "groups": groups}
    call = (F.conv1d, F.conv2d)[spatial - 1]
    fixed = torch.randn(6, 4 // groups, *(r.randint(1, 3) for _ in range(spatial)))
    return lambda x, y: call(x, fixed * y.mean(), **given), [image(r, spatial), (2, 3)]


def padding(r: Random) -> Made:
    mode = r.choice(("constant", "constant", "reflect", "replicate", "circular"))
    if mode == "constant":
        sizes = shape(r)
        borders = [r.randint(-1, 3) for _ in range(2 * r.randint(1, len(sizes) - 1))]
        value = r.choice((0.0, 1.5))
        return lambda x: F.pad(x, borders, value=value), [sizes]
    spatial = r.choice((1, 2, 3))
    borders = [r.randint(0, 2) for _ in range(2 * spatial)]
    return lambda x: F.pad(x, borders, mode=mode), [image(r, spatial, 2)]


def slices(r: Random) -> Made:
    sizes = tuple(size + 3 for size in shape(r))
    index: list[Any] = [slice(None)]
    for size in sizes[1:]:
        start, end = r.randint(0, 2), r.randint(4, size)
        if r.random() < 0.5:
            start -= size
        if r.random() < 0.5 and end < size:
            end -= size
        index.append(
            r.choice(
                (
                    slice(None),
                    slice(start, end, r.randint(1, 3)),
                    slice(start, None),
                    slice(None, end),
                    r.randint(-4, 3),
                )
            )
        )
    return lambda x: x[tuple(index)], [sizes]


def places(r: Random) -> Made:
    sizes = tuple(size + 2 for size in shape(r))
    place = axis(r, len(sizes), 1)
    size = sizes[place]
    shift, start = r.randint(-3, 3), r.randint(0, 2)
    return several(
        r,
        (
            lambda x: x.roll(shift, place),
            lambda x: x.roll((shift, 1), (place, -1)),
            lambda x: x.flip(place),
            lambda x: x.flip((place, -1)) if place % x.ndim != x.ndim - 1 else x.flip(-1),
            lambda x: x.narrow(place, start, 2),
            lambda x: x.narrow(place, start - size, 2),
            lambda x: x.select(place, start - 3),
            lambda x: x.unbind(place)[start],
            lambda x: x.repeat_interleave(start + 2, place),
            lambda x: x.index_select(place, torch.tensor([1, 0, 2, 1])),
        ),
    ), [sizes]


def parts(r: Random) -> Made:
    sizes = tuple(size + 2 for size in shape(r))
    place = axis(r, len(sizes), 1)
    size = sizes[place]
    first = r.randint(1, size - 1)
    return several(
        r,
        (
            lambda x: x.split([first, size - first], place),
            lambda x: x.split(2, place),
            lambda x: x.chunk(3, place),
            lambda x: x.tensor_split(3, place),
            lambda x: x.tensor_split((1, first), place) if first > 1 else x,
        ),
    ), [sizes]


def joined(r: Random) -> Made:
    sizes = shape(r)
    place = axis(r, len(sizes), 1)
    other = list(sizes)
    other[place] += 1
    if r.random() < 0.5:
        return lambda x, y: torch.cat([x, y, x], place), [sizes, tuple(other)]
    place = axis(r, len(sizes) + 1, 1)
    return lambda x, y: torch.stack([x, y], place), [sizes, sizes]


def order(r: Random) -> Made:
    sizes = shape(r)
    rank = len(sizes)
    axes = [place - r.choice((0, rank)) for place in r.sample(range(rank), rank)]
    one, other = axis(r, rank), axis(r, rank)
    start, end = r.sample(range(rank), 2), r.sample(range(rank), 2)
    return several(
        r,
        (
            lambda x: x.permute(axes),
            lambda x: x.transpose(one, other),
            lambda x: x.movedim(one, other),
            lambda x: x.movedim(start, end),
            lambda x: x.swapaxes(one, other),
            lambda x: x.unsqueeze(1).unsqueeze(-1).squeeze((1, -1)).unsqueeze(one),
        ),
    ), [sizes]


def shapes(r: Random) -> Made:
    sizes = (*shape(r, 1, 3), 6)
    rank = len(sizes)
    one = r.randrange(rank)
    last = r.randint(one, rank - 1)
    counts = [r.randint(1, 3) for _ in range(rank + r.randint(0, 1))]
    where = axis(r, rank + 1)
    return several(
        r,
        (
            lambda x: x.flatten(one, last - rank),
            lambda x: x.unflatten(-1, (2, 3)),
            lambda x: x.unflatten(-1, (-1, 2)),
            lambda x: x.reshape(*x.shape[:-1], 3, 2),
            lambda x: x.reshape(-1, 3),
            lambda x: x.repeat(1, *counts[1:]) if len(counts) == rank else x.repeat(*counts),
            lambda x: x.tile(*counts[: max(1, rank - 1)]),
            lambda x: x.unsqueeze(where).expand(
                [3 if place == where % (rank + 1) else -1 for place in range(rank + 1)]
            ),
        ),
    ), [sizes]


def arithmetic(r: Random) -> Made:
    sizes = shape(r)
    other = tuple(r.choice((1, size)) for size in sizes[1:])[r.randint(0, len(sizes) - 2) :]
    if r.random() < 0.5:
        other = (sizes[0], *((1,) * (len(sizes) - 1 - len(other))), *other)
    call = several(
        r,
        (
            lambda x, y: torch.add(x, y, alpha=2.5),
            lambda x, y: torch.sub(y, x, alpha=-2),
            lambda x, y: x * y,
            lambda x, y: x / (y.abs() + 1),
            lambda x, y: torch.maximum(y, x),
            lambda x, y: torch.minimum(x, y + 1),
            lambda x, y: x.abs() ** y,
            lambda x, y: torch.addcmul(x, y, x, value=0.5),
            lambda x, y: torch.where(x > y, x, y),
            lambda x, y: torch.where(x >= y, 2.0, y),
            lambda x, y: x.masked_fill(y < 0.1, 3),
            lambda x, y: (x <= y).float() + (x != y).float() * 2 + (x == y).float() * 4,
            lambda x, y: torch.logical_and(x > 0, y < 0).float() + torch.logical_xor(x > 0, y > 0).float() * 2,
        ),
    )
    return call, [sizes, other]


def numbers(r: Random) -> Made:
    value = r.choice((2, -3, 0.5, 1.75, 4))
    return several(
        r,
        (
            lambda x: x + value,
            lambda x: torch.add(x, value, alpha=3),
            lambda x: x - value,
            lambda x: torch.sub(x, value, alpha=3),
            lambda x: value - x,
            lambda x: torch.rsub(x, value),
            lambda x: x * value,
            lambda x: x / value,
            lambda x: value / (x.abs() + 1),
            lambda x: (x.abs() + 1) ** value,
            lambda x: abs(value) ** x,
            lambda x: x.clamp(-0.5, value + 3),
            lambda x: x.clamp(min=value),
            lambda x: x.clamp(max=value),
            lambda x: x.clamp_min(0.1),
            lambda x: (x > value / 4).float(),
            lambda x: (x >= 0).int() + value,
            lambda x: (x * 4).int() / 3,
            lambda x: ((x * 4).int() > 0.5).float() + torch.where(x > 0, (x * 4).int(), 1.5),
            lambda x: (x * 4).int() * 0.5,
            lambda x: (x * 4).long() + x,
        ),
    ), [shape(r, 1, 5)]


def activation(r: Random) -> Made:
    slope = r.choice((0.1, 0.7, 1.5))
    call = several(
        r,
        (
            lambda x: F.leaky_relu(x, slope),
            lambda x: F.elu(x, slope),
            lambda x: F.celu(x, slope),
            lambda x: F.gelu(x, approximate="tanh"),
            F.gelu,
            lambda x: F.softplus(x, slope, 1.0),
            lambda x: F.threshold(x, slope, 9.0),
            lambda x: F.hardtanh(x, -slope, slope + 1),
            lambda x: F.softshrink(x, slope),
            lambda x: F.hardsigmoid(x) + F.hardswish(x) + F.relu6(x * 9) + F.selu(x) + F.mish(x),
            lambda x: F.softsign(x) + F.silu(x) + F.logsigmoid(x) + torch.log1p(x.abs()) + torch.rsqrt(x.abs() + 1),
            nn.PReLU(init=slope),
            lambda x: x.round() + x.floor() * 10 + x.ceil() * 100 + x.sign() * 1000,
        ),
    )
    return lambda x: call(x * 3), [shape(r, 1, 5)]


def product(r: Random) -> Made:
    inner = r.randint(2, 5)
    head = shape(r, 0, 2)
    one, other = (*head, 3, inner), (*(r.choice((1, size)) for size in head[r.randint(0, len(head)) :]), inner, 4)
    kind = r.choice(("matmul", "vector", "baddbmm", "constant", "linear", "computed", "einsum", "addmm"))
    if kind == "vector":
        return lambda x, y: x @ y, [one, (inner,)]
    if kind == "baddbmm":
        return lambda a, x, y: torch.baddbmm(a, x, y, beta=0.5, alpha=2), [(2, 3, 4), (2, 3, inner), (2, inner, 4)]
    if kind == "addmm":
        matrix, bias = torch.randn(inner, 4), torch.randn(4)
        beta, alpha = r.choice((0, 1, 2)), r.choice((1, 3))
        return lambda x: torch.addmm(bias, x, matrix, beta=beta, alpha=alpha), [(3, inner)]
    if kind == "constant":
        matrix = torch.randn(inner, 4)
        return lambda x: x @ matrix, [one]
    if kind == "computed":
        matrix, bias = torch.randn(4, inner), torch.randn(4)
        return lambda x: F.linear(x, matrix * x.mean(), bias), [one]
    if kind == "linear":
        return nn.Linear(inner, 4, bias=r.random() < 0.5), [one]
    if kind == "einsum":
        return lambda x, y: torch.einsum("b i k, b j k -> b j i", x, y), [(2, 3, inner), (2, 4, inner)]
    return torch.matmul, [one, other]


def normalization(r: Random) -> Made:
    kind = r.choice(("layer", "rms", "group", "instance", "batch"))
    epsilon, affine = r.choice((1e-5, 0.1)), r.random() < 0.5
    if kind in ("layer", "rms"):
        sizes = shape(r)
        count = r.randint(1, len(sizes) - 1)
        if kind == "rms":
            made: Any = nn.RMSNorm(sizes[-count:], eps=r.choice((None, epsilon)), elementwise_affine=affine)
        else:
            made = nn.LayerNorm(sizes[-count:], eps=epsilon, elementwise_affine=affine, bias=r.random() < 0.7)
    else:
        spatial = r.choice((1, 2, 3))
        sizes = image(r, spatial)
        made = {
            "group": lambda: nn.GroupNorm(2, 4, eps=epsilon, affine=affine),
            "instance": lambda: (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)[spatial - 1](
                4, eps=epsilon, affine=affine
            ),
            "batch": lambda: (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[spatial - 1](
                4, eps=epsilon, affine=affine
            ),
        }[kind]()
    for tensor in (*made.parameters(), *made.buffers()):
        if tensor.is_floating_point():
            nn.init.uniform_(tensor, 0.5, 2)
    return made.eval(), [sizes]


def resizing(r: Random) -> Made:
    mode = r.choice(("nearest", "bilinear", "bicubic", "area", "nearest-exact"))
    given: dict[str, Any] = {"mode": mode}
    if mode.startswith("bi"):
        given["align_corners"] = r.random() < 0.5
        given["antialias"] = not given["align_corners"] and r.random() < 0.5
    if r.random() < 0.5:
        given["size"] = [r.randint(3, 14), r.randint(3, 14)]
    else:
        given["scale_factor"] = r.choice((2, 3, 0.5, 1.5, (2.0, 3.0)))
        given["recompute_scale_factor"] = r.choice((None, True))
    return lambda x: F.interpolate(x, **given), [image(r, 2, 2)]


def sampling(r: Random) -> Made:
    given = {
        "mode": r.choice(("bilinear", "nearest", "bicubic")),
        "padding_mode": r.choice(("zeros", "border", "reflection")),
        "align_corners": r.random() < 0.5,
    }
    return lambda x, y: F.grid_sample(x, y * 0.7, **given), [image(r, 2, 2), (2, 4, 5, 2)]


def blocks(r: Random) -> Made:
    kernel, stride, border, dilation = (r.randint(1, 2) for _ in range(4))
    return r.choice(
        (
            (lambda x: F.pixel_shuffle(x, 2), [image(r, 2, 8)]),
            (lambda x: F.pixel_unshuffle(x, 2), [(2, 3, 4, 6)]),
            (lambda x: F.channel_shuffle(x, 2), [image(r, 2, 6)]),
            (lambda x: F.unfold(x, (kernel + 1, 2), dilation, border, stride), [image(r, 2, 2)]),
            (lambda x: F.fold(x, (4, 6), 2, stride=2), [(2, 8, 6)]),
            (lambda x: x.tril(stride - 2), [shape(r, 3, 4)]),
            (lambda x: x.triu(stride - 1), [shape(r, 3, 4)]),
        )
    )


def recurrent(r: Random) -> Made:
    kind: Any = r.choice((nn.LSTM, nn.GRU, nn.RNN))
    given: dict[str, Any] = {
        "num_layers": r.choice((1, 2)),
        "bidirectional": r.random() < 0.5,
        "bias": r.random() < 0.7,
    }
    if kind is nn.RNN:
        given["nonlinearity"] = r.choice(("tanh", "relu"))
    return kind(3, 4, batch_first=r.random() < 0.7, **given), [(2, 5, 3)]


def attention(r: Random) -> Made:
    kind = r.choice(("call", "mask", "module", "layer"))
    scale, causal = r.choice((None, 0.3)), r.random() < 0.5
    head = (2,) if r.random() < 0.3 else (2, 3)
    if kind == "call":
        return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale), [
            (*head, 4, 6),
            (*head, 5, 6),
            (*head, 5, 3),
        ]
    if kind == "mask":
        mask = torch.rand(4, 5) > 0.3 if causal else torch.randn(4, 5)
        return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask, scale=scale), [
            (*head, 4, 6),
            (*head, 5, 6),
            (*head, 5, 6),
        ]
    first = r.random() < 0.6
    if kind == "layer":
        active = r.choice(("relu", "gelu", lambda x: F.gelu(x, approximate="tanh"), lambda x: F.relu(x) * 2))
        return nn.TransformerEncoderLayer(
            8, 2, 6, 0.1, active, batch_first=first, norm_first=r.random() < 0.5
        ).eval(), [(2, 5, 8)]
    made = nn.MultiheadAttention(
        8,
        r.choice((1, 2)),
        bias=r.random() < 0.6,
        add_bias_kv=r.random() < 0.3,
        add_zero_attn=r.random() < 0.3,
        batch_first=first,
    )
    fixed, how = torch.randn(2, 5, 8), r.choice(("self", "cross", "constant", "weights"))
    made.eval()
    if how == "cross":
        return lambda x, y: made(x, y, y, need_weights=False)[0], [(2, 4, 8), (2, 5, 8)] if first else [
            (4, 2, 8),
            (5, 2, 8),
        ]
    if how == "constant":
        return lambda x: made(x, fixed, fixed, need_weights=False)[0], [(2, 5, 8)]
    return lambda x: made(x, x, x, need_weights=how == "weights"), [(2, 5, 8)]


def write(r: Random) -> Made:
    """A tensor is written through a view, and read."""
    start, end = r.randint(0, 1), r.randint(2, 3)
    place = axis(r, 3, 1)
    views: tuple[Call, ...] = (
        lambda y: y.narrow(place, start, end - start),
        lambda y: y.select(place, start - 2),
        lambda y: y.transpose(1, -1),
        lambda y: y.view(y.shape[0], -1),
        lambda y: y.permute(0, 2, 1),
        lambda y: y.unsqueeze(2),
        lambda y: y.split([1, 3], -1)[start],
        lambda y: y.chunk(2, -1)[start],
        lambda y: y[:, 1:, :2],
        lambda y: y,
    )
    first, second = r.choice(views), r.choice((lambda y: y, lambda y: y[..., 1:], lambda y: y[:, -1:]))
    change: Call = r.choice(
        (
            lambda v, x: v.mul_(3),
            lambda v, x: v.add_(x.mean(), alpha=2),
            lambda v, x: v.copy_(v * v),
            lambda v, x: v.fill_(2.5),
            lambda v, x: v.zero_(),
            lambda v, x: v.clamp_(0.2, 0.6),
            lambda v, x: v.sub_(1).relu_(),
        )
    )
    early = r.random() < 0.5

    def call(x: Tensor) -> Any:
        y = x * 2
        other = y.view(y.shape[0], -1) if early else y
        change(second(first(y)), x)
        return y + 1, other * 2

    return call, [(2, 3, 4)]


Generator = Callable[[Random], Made]
GENERATORS: tuple[Generator, ...] = (
    reduction,
    extremes,
    along_an_axis,
    top,
    pooling,
    adaptive_pooling,
    convolution,
    kernel_as_input,
    padding,
    slices,
    places,
    parts,
    joined,
    order,
    shapes,
    arithmetic,
    numbers,
    activation,
    product,
    normalization,
    resizing,
    sampling,
    blocks,
    recurrent,
    attention,
    write,
)


def variant(kind: Generator, seed: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A random call, in a third of the cases with the batch merged with the next axis where that is possible."""
    r = Random(f"{kind.__name__} {seed}")
    torch.manual_seed(seed)
    call, sizes = kind(r)
    inputs = tuple(torch.randn(size) for size in sizes)
    if len(inputs) == 1 and inputs[0].ndim > 1 and r.random() < 1 / 3:
        whole = torch.randn(2, *inputs[0].shape)
        module = RandomCall(call, True)
        try:
            module(whole)
        except (RuntimeError, ValueError, IndexError, AttributeError):
            pass
        else:
            return module, (whole,)
    return RandomCall(call, False), inputs
