"""The pixels that each function of torch reads, against those that change its result when they change."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from designer.operators.torch_data import (
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchItem,
    TorchMethod,
    TorchModule,
    TorchParameter,
)
from designer.runtime.reach import CHANNELS as CHANNEL
from designer.runtime.reach import COLUMNS, ROWS, UnknownReachError, back

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

X = TorchInput(0)
CHANNELS, HEIGHT, WIDTH = 4, 13, 16


def value(expr: Any, x: torch.Tensor) -> Any:
    """The value of an expression; the weights of modules are positive, so that nothing cancels out."""
    if isinstance(expr, TorchInput):
        return x
    if isinstance(expr, TorchParameter):
        return torch.ones(expr.shape)
    if isinstance(expr, tuple | list):
        return type(expr)(value(item, x) for item in expr)
    if not isinstance(expr, TorchExpr):
        return expr
    if isinstance(expr, TorchItem):
        return value(expr.value, x)[expr.index]
    if isinstance(expr, TorchMethod):
        return getattr(value(expr.target, x), expr.method)(*value(expr.args, x), **expr.kwargs)
    made = torch
    for name in expr.path.split(".")[1:]:
        made = getattr(made, name)
    if isinstance(expr, TorchModule):
        made = made(**expr.kwargs)
        for weight in made.parameters():
            torch.nn.init.constant_(weight, 0.5)
        made = made.eval()
        return made(*value(expr.args, x))
    return made(*value(expr.args, x), **{key: value(item, x) for key, item in expr.kwargs.items()})


def read_by(expr: TorchExpr, axis: int, x: torch.Tensor) -> list[set[int]]:
    """For each position of the result along an axis: the positions of the input whose change changes it."""
    with torch.no_grad():
        before = value(expr, x)
        found: list[set[int]] = [set() for _ in range(before.shape[2 + axis])]
        for place in range(x.shape[2 + axis]):
            for more in (3.0, -3.0):  # a larger maximum, or the loss of it
                changed = x.clone()
                changed.select(2 + axis, place).add_(more)
                apart = (value(expr, changed) - before).abs().amax([n for n in range(4) if n != 2 + axis])
                for index in torch.nonzero(apart > 1e-5).flatten().tolist():
                    found[index].add(place)
    return found


def module(name: str, **kwargs: Any) -> TorchModule:
    return TorchModule(f"torch.nn.{name}", kwargs)


def call(name: str, *args: Any, **kwargs: Any) -> TorchCall:
    return TorchCall(f"torch.nn.functional.{name}" if "." not in name else name, (X, *args), kwargs)


def conv(kernel: Any, **kwargs: Any) -> TorchModule:
    return module("Conv2d", in_channels=CHANNELS, out_channels=2, kernel_size=kernel, **kwargs)


def up(kernel: Any, **kwargs: Any) -> TorchModule:
    return module("ConvTranspose2d", in_channels=CHANNELS, out_channels=2, kernel_size=kernel, **kwargs)


CASES: dict[str, TorchExpr] = {
    "convolution": conv((3, 5), padding=(1, 2)),
    "even convolution with strides": conv((4, 2), stride=(2, 3), padding=(1, 0)),
    "dilated convolution": conv(3, dilation=(2, 3), padding=(2, 3)),
    "mirrored": conv((7, 5), padding=(3, 2), padding_mode="reflect"),
    "repeated edge": conv((7, 5), padding=(3, 2), padding_mode="replicate"),
    "wrapped": conv((5, 3), padding=(2, 1), padding_mode="circular"),
    "transposed": up((4, 3), stride=(2, 3), padding=(1, 0)),
    "transposed with gaps": up((1, 2), stride=(3, 3)),
    "transposed, dilated": up((3, 2), stride=2, dilation=(2, 3)),
    "transposed without stride": up((3, 5)),
    "max pooling": module("MaxPool2d", kernel_size=(3, 2), stride=(2, 1), padding=(1, 0)),
    "max pooling by its size": module("MaxPool2d", kernel_size=3),
    "dilated max pooling": module("MaxPool2d", kernel_size=2, stride=1, dilation=(3, 2)),
    "average pooling": module("AvgPool2d", kernel_size=(2, 3), stride=(3, 2), padding=(1, 1)),
    "pooling function": call("max_pool2d", kernel_size=(2, 4), stride=None),
    "average function": call("avg_pool2d", kernel_size=(4, 2), stride=(1, 2)),
    "filter": call("conv2d", TorchParameter("filter", (1, CHANNELS, 3, 5)), stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
    "nearest": module("Upsample", scale_factor=(2, 3), mode="nearest"),
    "nearest by a fraction": module("Upsample", scale_factor=(1.5, 2.5), mode="nearest"),
    "nearest, smaller": module("Upsample", scale_factor=0.5, mode="nearest"),
    "bilinear": module("Upsample", scale_factor=(2, 3), mode="bilinear"),
    "bilinear, aligned": module("Upsample", scale_factor=(2, 3), mode="bilinear", align_corners=True),
    "bicubic": module("Upsample", scale_factor=2, mode="bicubic"),
    "bilinear to a size": call("interpolate", size=(20, 11), mode="bilinear"),
    "bilinear to a size, aligned": call("interpolate", size=(7, 31), mode="bilinear", align_corners=True),
    "bicubic to a size": call("interpolate", size=(29, 9), mode="bicubic"),
    "nearest to a size": call("interpolate", size=(9, 27), mode="nearest"),
    "smoothed to a size": call("interpolate", size=(6, 5), mode="bilinear", antialias=True),
    "smoothed to a size, cubic": call("interpolate", size=(6, 21), mode="bicubic", antialias=True),
    "shuffle": module("PixelShuffle", upscale_factor=2),
    "padding": call("pad", (2, 1, 3, 0)),
    "padding of columns": call("pad", (2, 1)),
    "negative padding": call("pad", (-2, -1, -3, 0)),
    "mirrored padding": call("pad", (5, 4, 3, 2), mode="reflect"),
    "repeated padding": call("pad", (5, 4, 3, 2), mode="replicate"),
    "wrapped padding": call("pad", (5, 4, 3, 2), mode="circular"),
    "slice": TorchItem(X, (slice(None), slice(None), slice(2, -1), slice(3, None))),
    "slice from the start": TorchItem(X, (slice(None), slice(None), slice(None, -4))),
    "chosen rows": TorchItem(X, (slice(None), slice(None), [7, -1, 3])),
    "repetition": TorchMethod("repeat", X, ((1, 1, 2, 3),)),
    "narrow rows": TorchCall("torch.narrow", (X, 2, 4, 5)),
    "narrow columns": TorchCall("torch.narrow", (X, 3, 1, 9)),
    "pointwise": call("torch.tanh"),
    "along channels": call("normalize", dim=1),
    "clamp of a sum": TorchCall("torch.clamp", (TorchCall("torch.add", (conv(3, padding=1), conv(1))), -1e9, 1e9)),
    "two convolutions": TorchModule("torch.nn.Conv2d", {"in_channels": 2, "out_channels": 2, "kernel_size": (3, 1), "stride": 2}, (conv((3, 5), padding=1),)),
    "power of a method": TorchMethod("pow", TorchMethod("abs", TorchMethod("float", X)), (2,)),
}  # fmt: skip


@pytest.mark.parametrize("axis", [ROWS, COLUMNS])
@pytest.mark.parametrize("name", CASES)
def test_the_positions_that_a_function_reads(name: str, axis: int) -> None:
    expr = CASES[name]
    x = torch.rand((1, CHANNELS, HEIGHT, WIDTH), generator=torch.Generator().manual_seed(0)) + 1
    sizes = [(HEIGHT, WIDTH, CHANNELS)]
    expected = read_by(expr, axis, x)
    for place, positions in enumerate(expected):
        found = back(expr, axis, np.array([place]), sizes)
        read = found.places.get(0, np.zeros(0, np.int64))
        assert read.tolist() == sorted(set(read.tolist()))
        assert set(read.tolist()) == positions, place
        assert found.whole == ""
    some = np.array([1, len(expected) - 1])
    together = back(expr, axis, some, sizes).places.get(0, np.zeros(0, np.int64))
    assert set(together.tolist()) == expected[1] | expected[-1]
    step = back(expr, axis, some, sizes).steps.get(0)
    by_size = ("to a size", "chosen", "repetition", "aligned")
    if any(word in name for word in by_size):
        assert step is None or axis == COLUMNS
    elif "narrow" not in name and "slice" not in name and "padding" not in name:
        assert step is not None
        ratio = x.shape[2 + axis] / len(expected)
        assert abs(float(step) / ratio - 1) < 0.45  # the border changes the number of positions


@pytest.mark.parametrize(
    ("expr", "whole"),
    [
        (module("AdaptiveAvgPool2d", output_size=1), "torch.nn.AdaptiveAvgPool2d"),
        (module("InstanceNorm2d", num_features=4), "torch.nn.InstanceNorm2d"),
        (module("GroupNorm", num_groups=2, num_channels=4), "torch.nn.GroupNorm"),
        (call("softmax", dim=3), "torch.nn.functional.softmax"),
        (call("softmax", dim=-2), "torch.nn.functional.softmax"),
        (call("torch.mean", (2, 3), keepdim=True), "torch.mean"),
        (call("torch.cat"), "torch.cat"),
        (call("torch.cat", -1), "torch.cat"),
        (TorchCall("torch.tanh", (call("torch.amax", dim=2, keepdim=True),)), "torch.amax"),
    ],
)
def test_functions_that_read_the_whole_image(expr: TorchExpr, whole: str) -> None:
    for axis in (ROWS, COLUMNS):
        found = back(expr, axis, np.array([2]), [(HEIGHT, WIDTH, CHANNELS)])
        assert found.whole == whole
        assert found.places[0].tolist() == list(range((HEIGHT, WIDTH)[axis]))


@pytest.mark.parametrize(
    "expr",
    [
        call("torch.cumsum", 1), TorchMethod("view", X, (1, 2)), call("pad", (0, 0, 0, 0, 1, 1)), module("Fold", output_size=2),
        TorchItem(X, (slice(None), slice(None), slice(0, 5))), TorchItem(X, (slice(None), slice(None), slice(None, None, 2))),
        TorchItem(X, (0, slice(None))), TorchMethod("repeat", X, ((2, 2),)), TorchMethod("flatten", X, (1, 2)),
    ],
)  # fmt: skip
def test_functions_of_unknown_reach(expr: TorchExpr) -> None:
    with pytest.raises(UnknownReachError):
        back(expr, ROWS, np.array([2]), [(HEIGHT, WIDTH, CHANNELS)])


def test_inputs_of_one_pixel_or_of_another_kind() -> None:
    add = TorchCall("torch.add", (TorchInput(0), TorchInput(1)))
    found = back(add, ROWS, np.array([3, 4]), [(13, 16, 4), (1, 16, 4)])
    assert {index: places.tolist() for index, places in found.places.items()} == {0: [3, 4], 1: [0]}
    assert {index: float(step) for index, step in found.steps.items()} == {0: 1.0}
    assert back(add, ROWS, np.array([3]), [(13, 16, 4), None]).whole == "an input that is not an image"
    assert back(3.0, ROWS, np.array([3]), []).places == {}
    assert back(TorchParameter("w", (3,)), ROWS, np.array([3]), []).places == {}
    turned = TorchMethod("permute", TorchInput(0), ((0, 1, 3, 2),))
    found = back(turned, ROWS, np.array([3]), [(13, 16, 4)])
    assert (found.places[0].tolist(), dict(found.axes)) == ([3], {0: COLUMNS})
    for args, axis, other in (
        ((2, 3), ROWS, COLUMNS),
        ((3, 2), COLUMNS, ROWS),
        ((1, 2), ROWS, CHANNEL),
        ((-1, -2), ROWS, COLUMNS),
    ):
        found = back(TorchMethod("transpose", TorchInput(0), args), axis, np.array([3]), [(13, 16, 4)])
        assert (found.places[0].tolist(), dict(found.axes)) == ([3], {0: other})
    with pytest.raises(UnknownReachError):
        back(TorchMethod("transpose", TorchInput(0), (0, 2)), ROWS, np.array([3]), [(13, 16, 4)])
    unpool = TorchCall("torch.nn.functional.max_unpool2d", (TorchInput(0), TorchInput(1)), {"kernel_size": (2, 3)})
    for axis, expected in ((ROWS, [2, 3]), (COLUMNS, [1, 2])):
        found = back(unpool, axis, np.array([5, 6]), [(13, 16, 4), (13, 16, 4)])
        assert {index: places.tolist() for index, places in found.places.items()} == {0: expected, 1: expected}
    with pytest.raises(UnknownReachError, match="an input read along two axes"):
        back(TorchCall("torch.add", (turned, TorchInput(0))), ROWS, np.array([3]), [(13, 13, 4)])
    with pytest.raises(UnknownReachError, match="an input read at several scales"):
        back(TorchCall("torch.add", (module("MaxPool2d", kernel_size=2), X)), ROWS, np.array([3]), [(13, 13, 4)])


def test_edges_that_padding_repeats_are_named() -> None:
    expr = conv(5, padding=2, padding_mode="replicate")
    sizes = [(HEIGHT, WIDTH, CHANNELS)]
    edges = [back(expr, ROWS, np.array([place]), sizes).edges.get(0, np.zeros(0)).tolist() for place in range(HEIGHT)]
    assert edges == [[0], [0], *[[]] * 9, [12], [12]]
    both = back(expr, ROWS, np.arange(HEIGHT), sizes).edges[0]
    assert both.tolist() == [0, 12]
    assert back(conv(5, padding=2), ROWS, np.array([0]), sizes).edges == {}


SIZES = [(HEIGHT, WIDTH, CHANNELS)]
INNER = TorchCall("torch.tanh", (X,))  # its size is not known


@pytest.mark.parametrize(
    ("expr", "reason"),
    [
        (call("conv2d", TorchParameter("filter", (3, 5))), "torch.nn.functional.conv2d"),
        (call("conv2d", TorchCall("torch.cat", ([TorchParameter("a", (1, 4, 3, 5)), TorchParameter("b", (1, 4, 3, 5))],))), "torch.nn.functional.conv2d"),
        (call("conv2d", 3.0), "torch.nn.functional.conv2d"),
        (TorchModule("torch.nn.Upsample", {"scale_factor": 2, "mode": "bilinear", "align_corners": True}, (INNER,)), "torch.nn.Upsample with aligned corners"),
        (TorchCall("torch.nn.functional.interpolate", (INNER,), {"size": (5, 6)}), "torch.nn.functional.interpolate to a size"),
        (call("pad", (0, 0, 0, 0, 1, 1)), "torch.nn.functional.pad"),
        (TorchMethod("repeat", INNER, ((1, 1, 2, 3),)), "repeat"),
        (TorchMethod("repeat", X, ((2, 2),)), "repeat"),
        (TorchItem(INNER, (slice(None), slice(None), [2, -1])), "a negative index"),
        (TorchItem(X, (slice(None), slice(None), slice(0, 5))), "a slice with an absolute end"),
        (TorchItem(X, (slice(None), slice(None), slice(-3, None))), "a slice with an absolute end"),
        (TorchItem(X, (slice(None), slice(None), slice(None, None, 2))), "a slice"),
        (TorchItem(X, (0, slice(None))), "a slice"),
        (TorchItem(X, (slice(1, None), slice(None))), "a slice"),
        (TorchItem(X, (slice(None), 3)), "a slice"),
        (TorchCall("torch.narrow", (X, 2, TorchMethod("size", X, (1,)), 5)), "a number"),
        (TorchCall("torch.narrow", (X, 2, TorchMethod("size", INNER, (2,)), 5)), "a number"),
        (TorchCall("torch.narrow", (X, 2, TorchCall("torch.add", (3, 4)), 5)), "torch.add"),
        (TorchMethod("view", X, (1, 2)), "view"),
        (TorchMethod("flatten", X, (1, 2)), "flatten"),
        (call("torch.cumsum", 1), "torch.cumsum"),
    ],
)  # fmt: skip
def test_the_name_of_what_has_an_unknown_reach(expr: TorchExpr, reason: str) -> None:
    with pytest.raises(UnknownReachError) as caught:
        back(expr, ROWS, np.array([2]), SIZES)
    assert str(caught.value) == reason


def positions_of(expr: TorchExpr, axis: int, *places: int, sizes: Any = SIZES) -> list[int]:
    return back(expr, axis, np.array(places), sizes).places[0].tolist()


def test_parts_that_begin_at_a_size_of_an_input() -> None:
    """As templates of attention cut their windows: a start that follows from the sizes of inputs."""
    other = TorchInput(1)
    rows, columns = (TorchMethod("size", other, (dim,)) for dim in (2, 3))
    half = TorchCall("torch.floor_divide", (TorchCall("torch.sub", (TorchMethod("size", X, (2,)), rows)), 2))
    sizes = [(13, 16, 4), (8, 5, 4)]
    for start, begin in ((half, 2), (TorchCall("torch.tensor", (6,)), 6), (columns, 5), (rows, 8), (TorchCall("torch.sub", (7, 4)), 3)):  # fmt: skip
        expr = TorchCall("torch.narrow", (X, 2, start, 4))
        assert positions_of(expr, ROWS, 0, 1, sizes=sizes) == [begin, begin + 1]
        assert positions_of(expr, COLUMNS, 0, 1, sizes=sizes) == [0, 1]
        turned = TorchCall("torch.narrow", (X, 3, start, 4))
        assert positions_of(turned, COLUMNS, 0, 3, sizes=sizes) == [begin, begin + 3]
        assert positions_of(turned, ROWS, 0, 3, sizes=sizes) == [0, 3]


def test_items_and_repetitions_of_images_without_a_known_size() -> None:
    chosen = TorchItem(INNER, (slice(None), slice(None), [7, 0, 3]))
    assert positions_of(chosen, ROWS, 0, 2) == [3, 7]
    assert positions_of(chosen, ROWS, 1, 2, 3, 9) == [0, 3]  # only three rows are chosen
    assert positions_of(chosen, COLUMNS, 4, 5) == [4, 5]
    assert positions_of(TorchItem(X, 1), ROWS, 4) == [4]
    repeated = TorchMethod("repeat", INNER, ((1, 1, 1, 1),))
    assert positions_of(repeated, ROWS, 4) == [4]
    assert back(repeated, ROWS, np.array([4]), SIZES).steps == {0: 1}


def test_one_pixel_enlarged_with_aligned_corners() -> None:
    for size in ((1, 1), (1, 7)):
        expr = call("interpolate", size=size, mode="bilinear", align_corners=True)
        assert positions_of(expr, ROWS, 0) == [0]
    assert positions_of(call("interpolate", size=(1, 1), mode="bilinear"), ROWS, 0) == [6]
    assert positions_of(call("interpolate", size=(3, 3), mode="nearest"), ROWS, 0, 1, 2) == [0, 4, 8]


def test_images_with_zeros_between_their_pixels() -> None:
    """`unpooling` pads each pixel with zeros in a further axis and joins it with the rows or columns."""
    for args, dim, along in (((2, 3), 3, ROWS), ((3, 4), 4, COLUMNS)):
        numbers = (0, 0, 0, 2) if along == ROWS else (0, 2)
        padded = TorchCall("torch.nn.functional.pad", (TorchMethod("unsqueeze", X, (dim,)), numbers))
        expr = TorchMethod("flatten", padded, args)
        other = COLUMNS if along == ROWS else ROWS
        found = back(expr, along, np.array([0, 1, 3, 5, 6]), SIZES)
        assert (found.places[0].tolist(), found.steps) == ([0, 1, 2], {0: Fraction(1, 3)})
        assert positions_of(expr, other, 4, 5) == [4, 5]
        shifted = TorchCall("torch.nn.functional.pad", (TorchMethod("unsqueeze", X, (dim,)), (1, *numbers[1:])))
        with pytest.raises(UnknownReachError, match="flatten"):
            back(TorchMethod("flatten", shifted, args), along, np.array([0]), SIZES)
    for size, step, known in ((4, 4, True), (4, 2, False)):
        blocks = TorchMethod(
            "flatten", TorchMethod("movedim", TorchMethod("unfold", X, (2, size, step)), (4, 3)), (2, 3)
        )
        if known:
            assert positions_of(blocks, ROWS, 4, 5) == [4, 5]
        else:
            with pytest.raises(UnknownReachError, match="flatten"):
                back(blocks, ROWS, np.array([4]), SIZES)
