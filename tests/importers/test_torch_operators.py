"""Single operators of torch with parameters that are not symmetric and not the default: the document computes the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")
from document_texts import check_call
from torch import Tensor, nn
from torch.nn import functional as F

from designer.graph.diagnostics import DiagnosticError
from designer.importers.pytorch.importing import import_module
from designer.importers.pytorch.original import TorchOriginal
from designer.operators.registry import Registry
from exporters.pytorch import generate_source


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
    "layer_norm, bias only": lambda x, m: F.layer_norm(x, (4,), bias=m[:, 0]),
    "group_norm, bias only": lambda x, m: F.group_norm(x, 2, bias=m[0, :2]),
    "group_norm, scale only": lambda x, m: F.group_norm(x, 2, weight=m[0, :2]),
    "instance_norm, bias only": lambda x, m: F.instance_norm(x, bias=m[0, :2]),
    "batch_norm, bias only": lambda x, m: F.batch_norm(x, m[0, :2], m[3, :2], bias=m[1, :2]),
    "flip": lambda x, m: x.flip(2),
    "addcmul": lambda x, m: torch.addcmul(x, x, m[:2, :4], value=2.5),
    "baddbmm": lambda x, m: torch.baddbmm(
        m[:2].expand(x.shape[0], 2, 5), x, m.expand(x.shape[0], 4, 5), beta=2, alpha=3
    ),
    "subtract with alpha": lambda x, m: torch.sub(x, m[1, :4], alpha=2),
    "subtract from a number with alpha": lambda x, m: torch.sub(2.0, x, alpha=3),
    "add to a number with alpha": lambda x, m: torch.add(2, x, alpha=-0.5),
    "subtract from a number": lambda x, m: 2 - x,
    "divide a number": lambda x, m: 2 / (x + 3),
    "power of a number": lambda x, m: torch.pow(2.0, x),
    "variance": lambda x, m: x.var(2),
    "variance without correction": lambda x, m: x.var((1, 2), correction=0, keepdim=True),
    "deviation": lambda x, m: x.std(-1, keepdim=True),
    "norm of order 1": lambda x, m: torch.linalg.vector_norm(x, 1, 2),
    "cumsum": lambda x, m: x.cumsum(1),
    "argmax": lambda x, m: x.argmax(1).float(),
    "one-hot classes": lambda x, m: F.one_hot(x.argmax(1), 3).transpose(1, 2) * x[:, :1],
    "scatter": lambda x, m: x.scatter(2, x.topk(2).indices, x[:, :, :2] * 3),
    "linear of merged axes": lambda x, m: F.linear(windows(x), m[:3, :4], m[0, :3]).view(-1, 2, 3),
    "embedding of merged axes": lambda x, m: F.embedding((windows(x) * 3).long().reshape(-1), m).view(-1, 2, 4, 5),
    "scatter of a number": lambda x, m: x.scatter(1, x.argmax(1, keepdim=True), 2.5),
    "scatter_add": lambda x, m: x.scatter_add(1, x.argmax(1, keepdim=True), x[:, :1]),
    "scatter_reduce": lambda x, m: x.scatter_reduce(-1, x.argmax(2, keepdim=True), x[:, :, 1:2], "amax"),
    "a number for what is none": lambda x, m: torch.where(torch.isnan(torch.log(x - 0.5)), 7.0, x),
    "infinite values": lambda x, m: torch.where(torch.isinf(1 / (x - x)), x, 0.0),
    "infinite values of one sign": lambda x, m: (1 / (0 * x)).isposinf() * x - (-1 / (0 * x)).isneginf() * 3 * x,
    "bits of integers": lambda x, m: ((x * 90).long() & 12 | 32 ^ (x * 7).long()).float(),
    "inverted bits": lambda x, m: (~(x * 90).int()).float(),
    "integers and a number": lambda x, m: ((x * 9).long() >= 4) * x,
    "integers and a fraction": lambda x, m: ((x * 9).long() < 3.5) * x,
    "a mask of one value": lambda x, m: torch.where(torch.ones_like(x, dtype=torch.bool), x, m[0, 0]),
    "indices of one value": lambda x, m: x.gather(2, torch.full_like(x[:, :, :1], 3, dtype=torch.int64)),
    "zeros of a fixed size": lambda x, m: x + torch.zeros_like(m[:2, :4]) + torch.ones_like(m[0, 1]),
    "a crop that starts at a computed place": lambda x, m: x.narrow(2, (torch.tensor(x.shape[2]) - 2) // 2, 2),
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
    "linear with computed weights": lambda x, m: F.linear(x, m.t() * x.mean(), m[0]),
    "softmax of a tensor that is converted first": lambda x, m: (x * 8).int().softmax(1, dtype=torch.float32),
    "integers times a fraction": lambda x, m: (x * 8).int() * 0.5,
    "a fraction of integers": lambda x, m: (x * 8).int() / 3,
    "integers or a fraction": lambda x, m: torch.where(x > 0.5, (x * 8).int(), 1.5),
    "integers compared with a fraction": lambda x, m: ((x * 8).int() > 2.5).float(),
    "log-sigmoid of numbers whose sigmoid is 0": lambda x, m: F.logsigmoid(x * 900 - 600),
    "last two": lambda x, m: x.narrow(2, -2, 2),
    "approximate gelu": lambda x, m: F.gelu(x * 6 - 3, approximate="tanh"),
}


ONE_NUMBER: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "convolution": lambda x, m: F.conv2d(x, m.reshape(1, 1, 4, 5), stride=(2,), padding=(3,), dilation=(2,)),
    "transposed convolution": lambda x, m: F.conv_transpose2d(
        x, m.reshape(1, 1, 4, 5), stride=(3,), padding=(1,), output_padding=(2,), dilation=(2,)
    ),
    "largest of a window": lambda x, m: F.max_pool2d(x, (3,), stride=(2,), padding=(1,), dilation=(2,)),
    "mean of a window": lambda x, m: F.avg_pool2d(x, (3,), stride=(2,), padding=(1,)),
}


@pytest.mark.parametrize("name", ONE_NUMBER)
def test_a_list_of_one_number_holds_for_all_axes(name: str, registry: Registry) -> None:
    """Torch takes it for both axes of an image, and so does the layer that the call becomes."""
    found = import_module(Calls(ONE_NUMBER[name]).eval(), [torch.rand(2, 1, 9, 12)], registry).verified(registry)
    report = found.report
    assert report.opaque == 0, [item for item in report.outcomes if item.outcome == "opaque"]
    assert report.max_rel_difference is not None, report.not_compared_because
    assert report.max_rel_difference <= 1e-5


FIXED_BATCH = (
    "addmm, alpha without beta",
    "addmm, beta without alpha",
    "addmm, alpha and beta",
    "linear with computed weights",
)  # a matrix has the batch as rows, or depends on all of it


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_torch_becomes_layers_that_compute_the_same(name: str, registry: Registry) -> None:
    found = import_module(Calls(FUNCTIONS[name]).eval(), [torch.rand(3, 2, 4)], registry).verified(registry)
    assert found.report.opaque == 0, [item for item in found.report.outcomes if item.outcome == "opaque"]
    assert found.report.max_rel_difference is not None, found.report.not_compared_because
    assert found.report.max_rel_difference <= 1e-5
    assert len({case.inputs["x"][0] for case in found.report.cases}) == (1 if name in FIXED_BATCH else 2)
    check_call(f"function: {name}", found, registry)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, m: torch.matmul(m[0, :2], x),
        lambda x, m: torch.remainder(m[:2, :4], x + 2),
        lambda x, m: torch.fmod(x + 2, m[:2, :4]),
        lambda x, m: torch.lerp(m[:2, :4], m[2:, :4], x),
    ],
    ids=["vector", "matrix", "behind", "last"],
)
def test_a_call_that_is_kept_has_the_batch_of_whichever_tensor_has_it(
    call: Callable[[Tensor, Tensor], Tensor], registry: Registry
) -> None:
    found = import_module(Calls(call).eval(), [torch.rand(3, 2, 4)], registry).verified(registry)
    assert found.report.opaque == 1
    assert found.report.max_rel_difference is not None, found.report.not_compared_because
    assert found.report.max_rel_difference <= 1e-5
    assert {case.inputs["x"][0] for case in found.report.cases} == {1, 2}


SIZES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "roll": lambda x, m: x.roll((3, -2), (2, 3)),
    "variance": lambda x, m: x.var((2, 3), keepdim=True) * x,
    "deviation": lambda x, m: x.std(3, correction=2, keepdim=True) * x,
    "border that cuts": lambda x, m: F.pad(x, (-1, -2, 0, -1)),
    "slice from behind": lambda x, m: x[:, :, -4:-1, -3] - x[:, :, -3:, -1],
}


@pytest.mark.parametrize("name", SIZES)
def test_layers_follow_the_module_to_another_size(name: str, registry: Registry) -> None:
    found = import_module(Calls(SIZES[name]).eval(), [torch.rand(2, 3, 5, 6)], registry).verified(registry)
    assert found.report.opaque == 0
    assert found.report.cases[-1].inputs["x"][2] > 5
    assert found.report.max_rel_difference is not None
    assert found.report.max_rel_difference <= 1e-5
    assert found.report.size_note == ""
    check_call(f"other sizes: {name}", found, registry)


def test_a_module_that_computes_numbers_from_the_size_is_said_to_be_right_at_that_size_only(registry: Registry) -> None:
    module = Calls(lambda x, m: x.sum((2, 3), keepdim=True) / torch.ones(x.shape[2:]).sum() + m[0, 0])
    report = import_module(module.eval(), [torch.rand(2, 3, 5, 6)], registry).verified(registry).report
    assert {case.inputs["x"][2:] for case in report.cases} == {(5, 6)}
    assert report.agrees
    assert "inputs of 1 x 3 x 5 x 6" in report.size_note
    assert "'constant'" in report.size_note
    assert report.summary().endswith(f"warning: {report.size_note}")


def test_a_document_that_differs_at_another_size_by_itself_does_not_agree(registry: Registry) -> None:
    found = import_module(Calls(lambda x, m: x.roll(1, 2)).eval(), [torch.rand(2, 3, 5, 6)], registry)
    assert isinstance(found.original, TorchOriginal)
    found.original.module = Calls(lambda x, m: x.roll(x.shape[2] - 4, 2)).eval()
    report = found.verified(registry).report
    assert not report.agrees
    assert not report.size_note


KEPT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "an element type that layers do not have": lambda x, m: x.softmax(1, dtype=torch.float64),
    "factors that are not ratios of sizes": lambda x, m: torch.ops.aten._upsample_bilinear2d_aa(
        x.unsqueeze(1), [3, 3], False, 1.7, 0.9
    ),
    "attention that drops values": lambda x, m: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
    "a pooled image without a batch": lambda x, m: F.adaptive_avg_pool2d(x, 1),
    "an infinite order": lambda x, m: x.renorm(float("inf"), 2, 0.5),
    "a list of one tensor": lambda x, m: torch.gradient(x, dim=2)[0],
    "a shift by the whole size": lambda x, m: x.roll(4, 2),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_layers_do_not_compute_is_kept_as_a_call(name: str, registry: Registry) -> None:
    found = import_module(Calls(KEPT[name]).eval(), [torch.rand(3, 2, 4)], registry).verified(registry)
    report = found.report
    assert report.opaque == 1
    check_call(f"kept: {name}", found, registry)
    if name == "an infinite order":
        assert report.max_rel_difference == 0


class Unpools(nn.Module):
    """Two levels of pooling whose places the way up reads, as SegNet does."""

    def __init__(self, window: tuple[int, int], **options: int) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 1), nn.Conv2d(4, 3, 1)
        self.pool, self.unpool = nn.MaxPool2d(window, return_indices=True, **options), nn.MaxUnpool2d(window, **options)

    def forward(self, image: Tensor) -> Tensor:
        first, where = self.pool(self.first(image))
        second, deeper = self.pool(self.second(first))
        found: Tensor = self.last(self.unpool(self.unpool(second, deeper), where))
        return found


@pytest.mark.parametrize("window", [(2, 2), (2, 3)])
def test_an_unpooling_reads_the_image_that_was_pooled(window: tuple[int, int], registry: Registry) -> None:
    found = import_module(
        Unpools(window).eval(), [torch.rand(2, 3, 8, 16 if window == (2, 2) else 18)], registry
    ).verified(registry)
    report = found.report
    assert (report.opaque, report.size_note) == (0, "")
    assert report.max_rel_difference is not None
    assert report.max_rel_difference <= 1e-5
    unpoolings = [[str(source) for source in layer.inputs] for layer in found.graph if layer.type == "unpooling"]
    assert unpoolings == [["pool_2", "second"], ["unpool", "first"]]
    assert len({case.inputs["image"][2:] for case in report.cases}) == (2 if window == (2, 2) else 1), "also at 40 x 48"


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (3, 1), (2, 0)])
def test_an_unpooling_that_no_layer_does_is_kept_and_names_why(stride: int, padding: int, registry: Registry) -> None:
    """Windows of 3 x 3 with padding are as many as without for 9 pixels, but lie elsewhere."""

    def both(x: Tensor, m: Tensor) -> Tensor:
        pooled, places = F.max_pool2d(x, 3, stride, padding, return_indices=True)
        return F.max_unpool2d(pooled, places, 3, stride, padding, output_size=x.shape)

    report = import_module(Calls(both).eval(), [torch.rand(1, 3, 9, 9)], registry).report
    (kept,) = (item for item in report.outcomes if item.outcome == "opaque")
    assert kept.type == "max_unpool2d"
    assert "windows lie next to each other, without padding" in kept.reason


def test_calls_that_are_kept_with_other_arguments_are_classes_of_their_own(registry: Registry) -> None:
    """So the document can be exported."""

    def calls(x: Tensor, m: Tensor) -> Tensor:
        return x.renorm(2, 2, 0.5) + x.renorm(2, 1, 0.25) + x.renorm(2, 2, 0.5) * 2

    found = import_module(Calls(calls).eval(), [torch.rand(3, 2, 4)], registry).verified(registry)
    kept = [layer.params["class_name"] for layer in found.graph if layer.type == "custom"]
    assert sorted(kept) == ["Renorm", "Renorm", "Renorm2"]
    assert found.report.max_rel_difference is not None
    assert found.report.max_rel_difference <= 1e-5
    source = generate_source(found.graph, registry, "Net")
    assert source.count("class Renorm(") == source.count("class Renorm2(") == 1


def test_a_result_with_the_batch_merged_makes_the_batch_fixed(registry: Registry) -> None:
    found = import_module(Calls(lambda x, m: windows(x)).eval(), [torch.rand(3, 2, 4)], registry).verified(registry)
    assert [case.inputs["x"] for case in found.report.cases] == [(3, 2, 4)]
    assert found.report.max_rel_difference == 0


def test_an_empty_example_is_rejected(registry: Registry) -> None:
    with pytest.raises(DiagnosticError, match="the argument 'x' of forward cannot be an input"):
        import_module(Calls(lambda x, m: x + 1).eval(), [torch.rand(3, 0, 4)], registry)


def test_a_module_without_axes_is_imported(registry: Registry) -> None:
    report = import_module(Calls(lambda x, m: x.max(0).values).eval(), [torch.rand(())], registry).report
    assert report.opaque == 1


class CrossAttention(nn.Module):
    """Attention to a fixed tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, bias=False, batch_first=True)
        self.register_buffer("memory", torch.rand(2, 5, 4))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.attention(x, self.memory, self.memory, need_weights=False)[0]
        return found


ATTENTION: dict[str, Callable[[], nn.Module]] = {
    "sequence first": lambda: nn.TransformerEncoderLayer(4, 2, 8, activation="gelu"),
    "gelu of another kind": lambda: nn.TransformerEncoderLayer(
        4, 2, 8, activation=lambda x: F.gelu(x, approximate="tanh"), batch_first=True
    ),
    "an activation of two operators": lambda: nn.TransformerEncoderLayer(
        4, 2, 8, activation=lambda x: F.relu(x) * 2, batch_first=True
    ),
    "another epsilon": lambda: nn.TransformerEncoderLayer(4, 2, 8, layer_norm_eps=0.1, batch_first=True),
    "norm first": lambda: nn.TransformerEncoderLayer(
        4, 2, 8, dropout=0.3, activation="gelu", layer_norm_eps=0.1, batch_first=True, norm_first=True
    ),
    "no bias": lambda: nn.TransformerEncoderLayer(4, 1, 8, bias=False, batch_first=True),
    "other sources": CrossAttention,
}


@pytest.mark.parametrize("name", ATTENTION)
def test_a_module_is_one_layer_only_if_that_computes_the_same(name: str, registry: Registry) -> None:
    module = nn.Sequential(ATTENTION[name]())
    found = import_module(module, [torch.rand(2, 3, 4)], registry).verified(registry)
    assert found.report.opaque == 0
    assert found.report.max_rel_difference is not None
    assert found.report.max_rel_difference <= 1e-5
    check_call(f"attention: {name}", found, registry)


def test_integers_become_floats_where_they_are_compared(registry: Registry) -> None:
    found = import_module(Calls(lambda x, m: x > (x * 3).long()).eval(), [torch.rand(3, 2, 4)], registry)
    report = found.verified(registry).report
    assert (report.opaque, report.max_rel_difference) == (0, 0)
    (comparison,) = (layer for layer in found.graph if layer.type == "compare")
    types = [found.graph[source.layer].type for source in comparison.inputs if source is not None]
    assert types == ["tensor_input", "cast"]


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_groups_of_a_transposed_convolution(rank: int, bias: bool, registry: Registry) -> None:
    made = (nn.ConvTranspose1d, nn.ConvTranspose2d)[rank - 1](4, 6, 3, 2, 1, 1, groups=2, bias=bias)
    found = import_module(nn.Sequential(made).eval(), [torch.rand(2, 4, *(5, 6)[:rank])], registry).verified(registry)
    assert found.report.opaque == 0
    assert found.report.max_rel_difference is not None
    assert found.report.max_rel_difference <= 1e-5


class Results(nn.Module):
    """An image, a matrix per sample and the places of its largest values."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x * 2, x.mean(1), x.argmax(1, keepdim=True)


def test_images_are_shown_as_images_and_other_tensors_as_tensors(registry: Registry) -> None:
    graph = import_module(Results().eval(), [torch.rand(2, 3, 4, 5)], registry).graph
    views = [layer.params["analysis_view"] for layer in graph if layer.type == "output"]
    assert views == ["image", "tensor", "tensor"]


def a_view_and_then_its_base(y: Tensor, x: Tensor) -> Tensor:
    row = y[:, 0]
    row.add_(1)
    y.mul_(2)
    return row + 0


def a_base_and_then_its_view(y: Tensor, x: Tensor) -> Tensor:
    row = y[:, 0]
    y.mul_(2)
    row.add_(1)
    return y


def the_result_of_a_write(y: Tensor, x: Tensor) -> Tensor:
    y[:, 0].add_(1).mul_(3)
    return y


def a_view_twice(y: Tensor, x: Tensor) -> Tensor:
    turned = y.transpose(1, 2)
    turned[:, 1].mul_(2)
    turned.add_(1)
    return y


def the_base_of_a_view_of_a_view(y: Tensor, x: Tensor) -> Tensor:
    part = y.view(-1, 8)[:, :3]
    y.mul_(2)
    return part + 0


def a_view_of_which_another_one_is_read(y: Tensor, x: Tensor) -> Tensor:
    row, flat = y[:, 0], y.view(-1, 8)
    row.add_(1)
    return flat + 0


def a_part_of_a_split(y: Tensor, x: Tensor) -> Tensor:
    first, second = y.split([1, 3], 2)
    first.mul_(2)
    return y + second.sum(2, keepdim=True)


def a_tensor_that_was_split(y: Tensor, x: Tensor) -> Tensor:
    first, second = y.chunk(2, 2)
    y.mul_(2)
    return first - second


def a_copy(y: Tensor, x: Tensor) -> Tensor:
    copy = y.transpose(1, 2).contiguous()
    copy.mul_(2)
    return y + copy.sum()


def a_reshaped_tensor(y: Tensor, x: Tensor) -> Tensor:
    y.reshape(-1, 8)[:, 1:3].mul_(3)
    return y


def a_reshaped_copy(y: Tensor, x: Tensor) -> Tensor:
    copy = y.transpose(1, 2).reshape(-1, 8)
    copy[:, 1:3].mul_(3)
    return y + copy.view(-1, 2, 4)


def a_tensor_of_another_type(y: Tensor, x: Tensor) -> Tensor:
    y.to(torch.int32).mul_(3)
    return y


def a_tensor_of_the_same_type(y: Tensor, x: Tensor) -> Tensor:
    y.to(torch.float32).mul_(3)
    return y


def a_constant_with_a_view(y: Tensor, x: Tensor) -> Tensor:
    zeros = torch.zeros(2, 4)
    row = zeros[0]
    zeros.add_(1)
    zeros[1] = x[0, 0]
    zeros.mul_(2)
    return row + x


def a_number_to_a_row(y: Tensor, x: Tensor) -> Tensor:
    y[:, 1] = 3
    return y


def a_computed_number_to_a_row(y: Tensor, x: Tensor) -> Tensor:
    y[:, 1] = x.sum()
    return y


def a_tensor_many_times(y: Tensor, x: Tensor) -> Tensor:
    for number in range(4):
        y += number * x
    y.view(-1, 8)[:, 2] = 0.5
    return y


WRITES = (
    a_view_and_then_its_base,
    a_base_and_then_its_view,
    the_result_of_a_write,
    a_view_twice,
    the_base_of_a_view_of_a_view,
    a_view_of_which_another_one_is_read,
    a_part_of_a_split,
    a_tensor_that_was_split,
    a_copy,
    a_reshaped_tensor,
    a_reshaped_copy,
    a_tensor_of_another_type,
    a_tensor_of_the_same_type,
    a_constant_with_a_view,
    a_number_to_a_row,
    a_computed_number_to_a_row,
    a_tensor_many_times,
)


class Writes(nn.Module):
    """A module that calls a function with a tensor that it may write to, and with the input."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x + 1, x)


@pytest.mark.parametrize("function", WRITES, ids=lambda function: function.__name__)
def test_a_write_reaches_all_that_share_the_memory(
    function: Callable[[Tensor, Tensor], Tensor], registry: Registry
) -> None:
    found = import_module(Writes(function), [torch.rand(1, 2, 4)], registry).verified(registry)
    report = found.report
    check_call(f"write: {function.__name__}", found, registry)
    assert report.opaque == (1 if function is a_computed_number_to_a_row else 0)
    assert report.max_rel_difference is not None, report.not_compared_because
    assert report.max_rel_difference <= 1e-5


def every_second_row(y: Tensor, x: Tensor) -> Tensor:
    y[:, ::2].mul_(2)
    return y


def test_a_write_that_layers_cannot_make_leaves_a_layer_that_does_not_run(registry: Registry) -> None:
    report = import_module(Writes(every_second_row), [torch.rand(1, 2, 4)], registry).verified(registry).report
    assert report.not_compared_because == "the layers mul cannot run"
    (outcome,) = [item for item in report.outcomes if item.outcome == "opaque"]
    assert outcome.reason.startswith("it writes to a tensor through slice")
