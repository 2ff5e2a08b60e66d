"""Values of a trace: their axes where the batch is merged with its neighbors, constants, reshapes, and how a module is run."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import Tensor, nn

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.graph.types import BATCH, DataType, Size2D, Size3D
from designer.importers.builder import GraphBuilder
from designer.importers.imported import Imported
from designer.importers.pytorch.conversion import (
    BatchError,
    Constant,
    Conversion,
    Merged,
    Repeated,
    TraceNode,
    UnsupportedError,
    Value,
    _around_batch,
    _numbers,
    axes_of,
    data_type,
)
from designer.importers.pytorch.importing import import_module
from designer.importers.pytorch.original import TorchOriginal
from designer.importers.pytorch.tracing import _repeated, reason_of, trace, where
from designer.importers.report import ImportReport, NodeOutcome, Outcome
from designer.operators.registry import Registry

N = Merged()
WINDOWS = Merged(1, 16)  # the batch and 16 windows
X = Source("x")


def test_axes_of_the_document_keep_the_batch_apart() -> None:
    assert Merged().axes() == (BATCH,)
    assert Merged(2).axes() == (2, BATCH)
    assert Merged(1, 3).axes() == (BATCH, 3)
    assert Merged(2, 3).axes() == (2, BATCH, 3)
    assert axes_of([4, Merged(2, 3), 5]) == (4, 2, BATCH, 3, 5)
    assert axes_of([]) == ()


def test_axes_of_a_value_in_the_document() -> None:
    x = Value(X, (4, WINDOWS, 5, 6))
    assert x.rank == 4
    assert [x.axis(axis) for axis in (0, 2, 3, -1, -2, -4)] == [0, 3, 4, 4, 3, 0]
    assert [x.place(axis) for axis in (0, 3, -1, -4)] == [0, 3, 3, 0]
    assert [x.size(axis) for axis in (0, 2, -1)] == [4, 5, 6]
    for axis in (1, -3):
        with pytest.raises(BatchError, match="along the batch"):
            x.axis(axis)
        with pytest.raises(BatchError, match="size of the batch"):
            x.size(axis)
    assert x.traced() == ((4, None, 5, 6), DataType.FLOAT32)
    assert not x.plain
    assert Value(X, (N, 5)).plain
    assert Value(X, (3, 5)).plain
    with pytest.raises(BatchError, match="along the batch"):
        Value(X, (N, 5)).axis(0)
    scalar = Value(X, (), DataType.INT64)
    assert (scalar.axis(0), scalar.rank, scalar.traced()) == (0, 0, ((), DataType.INT64))
    with pytest.raises(UnsupportedError, match="no axes"):
        scalar.place(0)


def test_constants_and_repeated_ones_in_the_trace() -> None:
    constant = Constant(torch.ones(2, 1, 3, dtype=torch.int32))
    assert constant.traced() == ((2, 1, 3), DataType.INT32)
    assert Repeated(constant).traced() == ((None, 1, 3), DataType.INT32)
    assert Repeated(constant, 1).traced() == ((2, None, 3), DataType.INT32)
    assert Repeated(constant, 2).traced() == ((2, 1, None), DataType.INT32)
    assert data_type("torch.float16") is DataType.FLOAT16
    with pytest.raises(UnsupportedError, match="the element type complex64"):
        data_type("torch.complex64".removeprefix("torch."))


@pytest.mark.parametrize(
    ("values", "dtype", "text"),
    [
        ([0.1, 0.1], np.float32, "0.1"), ([0.1, 0.2], np.float32, "0.1,0.2"), ([0.0, -0.0], np.float32, "0.0,-0.0"),
        ([-0.0, -0.0], np.float32, "-0.0,-0.0"), ([3, 3, 3], np.int64, "3"), ([3, 4], np.uint8, "3,4"), ([True, False], bool, "1,0"),
        ([1.0, 2.5], np.float64, "1.0,2.5"), ([0.5, 0.25], np.float16, "0.5,0.25"), ([7], np.int32, "7"),
    ],
)  # fmt: skip
def test_the_numbers_of_a_constant(values: list[Any], dtype: Any, text: str) -> None:
    assert _numbers(np.array(values, dtype)) == text


def sizes(shape: Sequence[Any], batch: int) -> list[int]:
    return [size.before * batch * size.after if isinstance(size, Merged) else size for size in shape]


@pytest.mark.parametrize("seed", range(60))
def test_a_reshape_keeps_the_values_in_their_order(seed: int) -> None:
    """The batch is behind as many values as before, whatever its size is; what cannot be kept is refused."""
    draw = Random(seed)
    front, back = ([draw.choice([1, 2, 3, 4]) for _ in range(draw.randint(0, 3))] for _ in range(2))
    shape = [*front, Merged(draw.choice([1, 2, 6]), draw.choice([1, 4, 12])), *back]
    merged = shape[len(front)]
    assert isinstance(merged, Merged)
    before, after = prod(front) * merged.before, merged.after * prod(back)
    wanted_front = draw.choice([[], [before], [2], [1, 3], front])
    wanted_back = draw.choice([[], [after], [2, 2], [3], back])
    wanted = [*wanted_front, None, *wanted_back]
    fits = before % prod(wanted_front) == 0 and after % prod(wanted_back) == 0
    if not fits:
        with pytest.raises(BatchError, match="splits the batch"):
            _around_batch(shape, wanted)
        return
    found = _around_batch(shape, wanted)
    assert [size for size in found if isinstance(size, int)] == [*wanted_front, *wanted_back]
    assert isinstance(found[len(wanted_front)], Merged)
    for batch in (1, 5):
        assert prod(sizes(found, batch)) == prod(sizes(shape, batch))
    old, new = axes_of(shape), axes_of(found)
    for part in (slice(None, old.index(BATCH)), slice(old.index(BATCH) + 1, None)):
        other = slice(None, new.index(BATCH)) if part.start is None else slice(new.index(BATCH) + 1, None)
        assert prod(size for size in old[part] if isinstance(size, int)) == prod(
            size for size in new[other] if isinstance(size, int)
        )


@pytest.mark.parametrize("wanted", [[2, 3], [None, None, 4]])
def test_a_reshape_has_the_batch_on_one_axis(wanted: list[int | None]) -> None:
    with pytest.raises(BatchError, match="the batch on several axes"):
        _around_batch([N, 4], wanted)


def conversion(registry: Registry) -> tuple[Conversion, Value]:
    """An empty import with an image of N x 4 x 6 x 8."""
    c = Conversion(GraphBuilder(registry))
    (source,) = c.builder.add("input", (), {"dims": Size3D(8, 6, 4)}, name="image", exact=True)
    c.batch = c.wrap(source)
    return c, c.batch


def document(c: Conversion, value: Value, x: np.ndarray) -> np.ndarray:
    """The values of a tensor of the document."""
    from designer.importers.verification import run_document

    c.builder.add("output", [value.source], {"analysis_view": "tensor"}, name="result", exact=True)
    return run_document(c.builder.finish()[0], c.builder.registry, Weights({}), {"image": x})["result"]


@pytest.mark.parametrize(
    "wanted",
    [
        [None, 4, 48], [None, 192], [None, 6, 8], [None, 2, 2, 6, 8], [None, 8],
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", [None, (1, 0, 2, 3), (2, 1, 0, 3), (1, 2, 0, 3)])
def test_reshapes_and_permutations_compute_what_torch_does(
    wanted: list[int | None], order: tuple[int, ...] | None, registry: Registry
) -> None:
    c, image = conversion(registry)
    x = np.random.default_rng(0).random((3, 4, 6, 8), np.float32)
    value = c.permuted(image, order) if order else image
    expected = torch.from_numpy(x).permute(order or (0, 1, 2, 3))
    targets = {(1, 0, 2, 3): [4, None, 8], (2, 1, 0, 3): [6, None, 8], (1, 2, 0, 3): [2, 2, 6, None, 8]}
    target = wanted if order is None else targets[order]
    numbers = [3 * 4 * 6 * 8 // prod(size for size in target if size) if size is None else size for size in target]
    try:
        made = c.reshaped(value, target)
    except BatchError:
        pytest.fail("it keeps the order of the values")
    expected = expected.reshape(numbers)
    found = document(c, made, x)
    flat = [size if isinstance(size, int) else 3 for size in axes_of(made.shape)]
    assert list(found.shape) == flat
    np.testing.assert_array_equal(found.reshape(numbers), expected.numpy())


def test_constants_are_layers_once(registry: Registry) -> None:
    c, _ = conversion(registry)
    small, large = Constant(torch.arange(16.0)), Constant(torch.arange(17.0), "net.table")
    learned = Constant(torch.ones(3), "net.gain", learned=True)
    scalar = Constant(torch.tensor(2.0), "net.scale", learned=True)
    integers = Constant(torch.arange(40), "ids")
    made = {}
    for name, item in (("small", small), ("large", large), ("learned", learned), ("scalar", scalar), ("ids", integers)):
        value = c.value(item)
        assert c.value(Constant(item.tensor, item.name, item.learned)) == value, "the same tensor"
        layer = c.builder.layers[value.source.layer]
        params = layer.params
        made[name] = (layer.name, layer.type, params.get("source") or "numbers", params.get("dtype") or "float32")
    assert made == {
        "small": ("constant", "tensor_constant", "numbers", "float32"),
        "large": ("net_table", "tensor_constant", "weights", "float32"),
        "learned": ("net_gain", "parameter", "numbers", "float32"),
        "scalar": ("net_scale", "tensor_constant", "numbers", "float32"),
        "ids": ("ids", "tensor_constant", "numbers", "int64"),
    }
    assert set(c.builder.weights) == {WeightKey("net_table", "value"), WeightKey("net_gain", "value")}
    c.builder.finish()
    assert c.builder.tensors == {"net.table": ("net_table.value",), "net.gain": ("net_gain.value",)}
    with pytest.raises(UnsupportedError, match="an empty tensor"):
        c.value(Constant(torch.ones(0, 3)))
    with pytest.raises(UnsupportedError, match="an argument is int, not a tensor"):
        c.value(3)


def test_constants_whose_layers_were_removed_are_made_again(registry: Registry) -> None:
    c, _ = conversion(registry)
    kept, gone = Constant(torch.ones(2)), Constant(torch.zeros(2))
    c.value(kept)
    mark = c.builder.mark()
    c.value(gone)
    c.builder.rollback(mark)
    c.forget()
    assert c.value(gone).source.layer in c.builder.layers
    assert len(c.builder.layers) == 3


def test_weights_are_constants_of_float32(registry: Registry) -> None:
    c, image = conversion(registry)
    item = Constant(torch.ones(2))
    assert c.weight(item) is item
    with pytest.raises(UnsupportedError, match="a weight is computed while running"):
        c.weight(image)
    for dtype in (torch.float64, torch.float16, torch.int64):
        with pytest.raises(UnsupportedError, match=f"a weight is {dtype}, but weights are float32"):
            c.weight(Constant(torch.ones(2, dtype=dtype)))


def step(statement: int | None, *, attached: bool = False, label: str = "net.part") -> TraceNode:
    """A node of a statement of generated code."""
    return TraceNode("node", "op", {}, (), label, ("net",), statement=statement, attached=attached)


def convolved(c: Conversion, x: Value, *names: str) -> Value:
    weights = {"kernel": Constant(torch.ones(2, 4, 1, 1), names[0]), "bias": Constant(torch.ones(2), names[1])}
    params = {"features": 2, "kernel": Size2D(1, 1)}
    return c.layer("convolution", [x], params, weights=weights)


@pytest.mark.parametrize(
    ("before", "after", "attached", "one"),
    [(1, 1, True, True), (1, 1, False, False), (1, 2, True, False), (None, None, True, False), (1, None, True, False)],
)
def test_an_activation_belongs_to_the_layer_of_its_statement(
    before: int | None, after: int | None, attached: bool, one: bool, registry: Registry
) -> None:
    c, image = conversion(registry)
    c.current = step(before)
    conv = convolved(c, image, "net.weight", "net.bias")
    c.current, c.made = step(after, attached=attached), []
    slope = Constant(torch.full((1,), 0.5), "net.slope")
    made = c.activate(conv, "prelu", {"per_channel": False}, weights={"activation_slope": slope})
    owner = conv.source.layer if one else made.source.layer
    assert (made.source == conv.source) is one
    assert (c.builder.layers[conv.source.layer].activation is not None) is one
    assert c.made == [owner]
    assert len(c.builder.layers) == (2 if one else 3)
    assert c.builder.weights[WeightKey(owner, "activation_slope")].tolist() == [0.5]
    c.builder.finish()
    assert c.builder.tensors["net.weight"] == (f"{conv.source.layer}.kernel",)
    assert c.builder.tensors["net.slope"] == (f"{owner}.activation_slope",) or not one
    if one:
        assert not c.builder.attach(made.source, ("relu", {}), {}), "a second one is another layer"


def test_only_the_last_layer_of_a_statement_is_a_part_of_the_next(registry: Registry) -> None:
    c, image = conversion(registry)
    c.current = step(1, label="net.first")
    flat = c.layer("flatten", [image], {"start_axis": 1, "end_axis": -1})
    assert c.part(flat, "flatten") is c.builder.layers[flat.source.layer]
    assert c.part(flat, "padding") is None
    assert c.part(Constant(torch.ones(2)), "flatten") is None
    c.current = step(2)
    assert c.part(flat, "flatten") is None, "another statement"
    c.current = None
    assert c.part(flat, "flatten") is None
    c.current = step(1)
    other = c.layer("flatten", [image], {"start_axis": 1, "end_axis": -1})
    assert c.part(flat, "flatten") is None, "it is not the last layer"
    assert c.builder.attach(other.source, ("relu", {}), {})
    assert c.part(other, "flatten") is None, "it has an activation"
    third = c.layer("flatten", [image], {"start_axis": 1, "end_axis": -1})
    part = c.part(third, "flatten")
    assert part is not None
    assert c.take(part) == image
    assert list(c.builder.layers) == ["image", flat.source.layer, other.source.layer]


def test_layers_have_the_name_and_scope_of_their_node_and_weights_their_names(registry: Registry) -> None:
    c, image = conversion(registry)
    c.current = step(1, label="net.conv.0")
    made = convolved(c, image, "net.conv.0.weight", "")
    assert made.source.layer == "net_conv_0"
    assert c.builder.scopes["net_conv_0"] == ("net",)
    assert c.made == ["net_conv_0"]
    c.current = None
    plain = c.layer("identity", [made])
    assert plain.source.layer == "identity"
    assert c.builder.scopes["identity"] == ()
    c.made = ["a", "b", "a"]
    c.record(step(1), Outcome.OPAQUE, "why")
    assert c.outcomes == [NodeOutcome("node", "op", Outcome.OPAQUE, ("a", "b"), "why")]
    c.builder.finish()
    assert c.builder.tensors == {"net.conv.0.weight": ("net_conv_0.kernel",)}
    with pytest.raises(UnsupportedError, match="its result is N x 2 x 6 x 8, but the module makes"):
        c.wrap(made.source, (N, 3, 6, 8))


# --- traces ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "repeated"),
    [((), ()), ((1,), (1,)), ((5,), (5,)), ((1, 3), (2, 3)), ((1, 3, 4, 5), (2, 3, 4, 5)), ((4, 3), (4, 3)), ((2, 1), (2, 1))],
)  # fmt: skip
def test_an_example_of_one_is_repeated_to_a_batch(shape: tuple[int, ...], repeated: tuple[int, ...]) -> None:
    x = torch.rand(shape)
    found = _repeated(x)
    assert tuple(found.shape) == repeated
    assert torch.equal(found[:1] if found.ndim else found, x[:1] if x.ndim else x)


class Reshapes(nn.Module):
    """Works for any batch, or for a vector."""

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        self.sizes = sizes

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(self.sizes) * 2


@pytest.mark.parametrize(
    ("sizes", "shape", "opened"),
    [((-1, 6), (2, 6), (None, 6)), ((-1, 6), (1, 6), (None, 6)), ((1, 5), (5,), (5,))],
)
def test_the_first_of_several_axes_is_left_open_as_the_batch(
    sizes: tuple[int, ...], shape: tuple[int, ...], opened: tuple[int | None, ...]
) -> None:
    found = trace(Reshapes(*sizes).eval(), [torch.rand(shape)], open_batch=True)
    assert found is not None
    assert (found.open_batch, found.doubts) == (True, ())
    (node,) = (item for item in found.program.graph.nodes if item.op == "placeholder")
    assert tuple(size if isinstance(size, int) else None for size in node.meta["val"].shape) == opened
    fixed = trace(Reshapes(*sizes).eval(), [torch.rand(shape)], open_batch=False)
    assert fixed is not None
    assert (fixed.open_batch, fixed.doubts) == (False, ())


def test_the_line_of_an_error_is_the_last_of_the_users_code_also_behind_others() -> None:
    def inner() -> None:
        raise ValueError("no")

    def outer() -> None:
        try:
            inner()
        except ValueError as error:
            raise RuntimeError("around") from error

    with pytest.raises(RuntimeError) as caught:
        outer()
    line = inner.__code__.co_firstlineno + 1
    assert where(caught.value) == f'test_torch_values.py:{line}: raise ValueError("no")'
    assert reason_of(caught.value) == "RuntimeError: around"
    assert where(ValueError()) == ""

    def within() -> None:
        try:
            inner()
        except ValueError:
            raise RuntimeError("later")  # noqa: B904 - the first error is only its context

    with pytest.raises(RuntimeError) as caught:
        within()
    assert where(caught.value) == f'test_torch_values.py:{line}: raise ValueError("no")'


def test_the_lines_of_the_import_itself_are_not_the_users() -> None:
    with pytest.raises(UnsupportedError) as caught:
        Value(X, ()).place(0)
    assert where(caught.value).startswith("test_torch_values.py:")
    assert where(caught.value).endswith(": Value(X, ()).place(0)")


# --- the original module --------------------------------------------------------------------------------------------


class Adds(nn.Module):
    """Adds its inputs, the second of which is a row, and returns a number too."""

    def forward(self, image: Tensor, row: Tensor) -> tuple[Tensor, int, Tensor]:
        image += 1
        return image + row, 3, row * 2


def original(**inputs: tuple[tuple[Any, ...], str]) -> TorchOriginal:
    return TorchOriginal(nn.Identity(), inputs, ["y"], Graph([]), SimpleNamespace())  # type: ignore[arg-type]


def test_cases_are_the_size_another_batch_and_another_size_that_the_document_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def shapes(follows: bool, **inputs: tuple[Any, ...]) -> list[list[tuple[int, ...]]]:
        monkeypatch.setattr(TorchOriginal, "_follows", lambda *_: follows)
        item = original(**{name: (shape, "float32") for name, shape in inputs.items()})
        return [[shape for shape, _ in case.values()] for case in item.cases()]

    assert shapes(True, x=(BATCH, 3, 4, 5)) == [[(1, 3, 4, 5)], [(2, 3, 4, 5)], [(1, 3, 36, 37)]]
    assert shapes(False, x=(BATCH, 3, 4, 5)) == [[(1, 3, 4, 5)], [(2, 3, 4, 5)]]
    assert shapes(True, x=(BATCH, 7)) == [[(1, 7)], [(2, 7)]]
    assert shapes(True, x=(3, 7)) == [[(3, 7)]]
    assert shapes(True, x=(2, 3, 4, 5), t=(BATCH, 9)) == [
        [(2, 3, 4, 5), (1, 9)], [(2, 3, 4, 5), (2, 9)], [(2, 3, 36, 37), (1, 9)],
    ]  # fmt: skip


class Cropped(nn.Module):
    """Keeps the first rows of an image, and returns another input as it is."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows = rows

    def forward(self, x: Tensor, t: Tensor, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if x.shape[3] == 99:
            raise ValueError("too wide")
        return x[:, :, : self.rows], t, u


@pytest.mark.parametrize(
    ("rows", "case", "follows"),
    [
        (5, {"x": (1, 3, 8, 9)}, True),
        (5, {"x": (1, 3, 5, 6)}, True),
        (5, {"x": (2, 3, 8, 9)}, False),  # of a document with a batch of any size, one image is asked for
        (6, {"x": (1, 3, 8, 9)}, False),
        (6, {"x": (1, 3, 5, 9)}, True),
        (5, {"x": (1, 3, 8, 99)}, False),
        (5, {"x": (1, 2, 8, 9)}, True),
        (5, {"x": (1, 3, 8, 9), "t": (1, 9)}, True),
        (5, {"x": (1, 3, 8, 9), "u": (3, 2)}, True),
        (5, {"x": (1, 1, 2**12, 2**12 + 1)}, False),
    ],
)
def test_a_document_follows_the_module_where_all_its_outputs_have_the_same_shape(
    rows: int, case: dict[str, tuple[int, ...]], follows: bool, registry: Registry
) -> None:
    layers = [
        Layer("x", "input", params={"dims": "4x5x3"}),
        Layer("t", "tensor_input", params={"shape": "7"}),
        Layer("u", "tensor_input", params={"shape": "2,2", "batch": "false"}),
        Layer("c", "slice", inputs=(Source("x"),), params={"axis": "2", "start": "0", "end": "5"}),
        *(Layer(f"out_{name}", "output", inputs=(Source(name),)) for name in "ctu"),
    ]
    cut = Layer("y", "template_output", inputs=(Source("c"),))
    template = Template("cut", (Layer("x", "template_input"), layers[3], cut))
    instance = Layer("c", "template", inputs=(Source("x"),), params={"template": "cut"})
    inputs = {"x": ((BATCH, 3, 5, 4), "float32"), "t": ((BATCH, 7), "float32"), "u": ((2, 2), "float32")}
    shapes = {"x": (1, 3, 5, 4), "t": (1, 7), "u": (2, 2), **case}
    for graph in (Graph(layers), Graph([*layers[:3], instance, *layers[4:]], templates=[template])):
        item = TorchOriginal(Cropped(rows), inputs, ["out_c", "out_t", "out_u"], graph, registry)
        assert item._follows({name: (shape, "float32") for name, shape in shapes.items()}) is follows
        assert graph["x"].params == {"dims": "4x5x3"}


def test_the_module_gets_its_inputs_in_their_order_as_copies() -> None:
    item = TorchOriginal(
        Adds(),
        {"z": ((2, 2), "float32"), "a": ((2,), "float32")},
        ["sum", "", "twice"],
        Graph([]),
        SimpleNamespace(),  # type: ignore[arg-type]
    )
    feeds = {"a": np.array([1, 2], np.float32), "z": np.zeros((2, 2), np.float32)}
    made = item.run(feeds)
    assert {name: array.tolist() for name, array in made.items()} == {"sum": [[2, 3], [2, 3]], "twice": [2, 4]}
    assert not feeds["z"].any(), "a module may write to its input"


def test_layers_whose_values_depend_on_the_size_are_found_by_another_import(registry: Registry) -> None:
    def graph(scale: float, place: int) -> Graph:
        return Graph(
            [
                Layer("x", "input", params={"dims": f"{place}x6x4"}),
                Layer("a", "scale_shift", inputs=(Source("x"),), params={"scale": str(scale)}, position=(place, 0)),
                Layer("b", "identity", inputs=(Source("a"),)),
                Layer("gone" if scale == 1 else "new", "identity", inputs=(Source("b"),)),
            ]
        )

    nan = np.array([np.nan, 1], np.float32)
    keys = {name: WeightKey(name, "value") for name in ("same", "other", "missing")}
    before = Weights({keys["same"]: nan, keys["other"]: nan, keys["missing"]: nan})
    after = Weights({keys["same"]: nan.copy(), keys["other"]: nan + 1})
    item = TorchOriginal(nn.Identity(), {"x": ((BATCH, 4, 6, 8), "float32")}, ["y"], graph(1, 8), registry)
    case = {"x": ((1, 4, 38, 40), "float32")}
    assert item.size_bound(case, before) == ()
    given: list[list[int]] = []

    def again(inputs: Sequence[Tensor]) -> Imported:
        given.extend(list(tensor.shape) for tensor in inputs)
        return Imported(graph(2, 40), after, ImportReport("x"))

    item.again = again
    assert item.size_bound(case, before) == ["a", "gone", "other", "missing"]
    assert given == [[1, 4, 38, 40]]

    def failing(_: Sequence[Tensor]) -> Imported:
        raise DiagnosticError.of("torch-trace", "no", remedy="no")

    item.again = failing
    assert item.size_bound(case, before) == ()


class WithoutValues(nn.Module):
    """Tensors of size 0, as configurable modules make them: part of a concatenation, written to, summed, a result."""

    def forward(self, x):
        nothing = torch.relu(x[:, 3:] * 2)
        x[:, 3:] += 1
        first, rest, empty = torch.split(x, [1, 2, 0], 1)
        empty = empty + nothing
        return torch.cat([rest, empty, first], 1) + nothing.sum(1, keepdim=True), empty


def test_tensors_of_size_zero_are_left_out(registry):
    found = import_module(WithoutValues(), [torch.rand(2, 3, 4, 5)], registry).verified(registry)
    assert found.report.opaque == 0
    assert found.report.max_abs_difference == 0.0
    assert {layer.type for layer in found.graph} >= {"split", "concatenation"}
    assert len([layer for layer in found.graph if layer.type == "output"]) == 1
    assert "the result 'y2' has no output: a constant is an empty tensor" in found.report.warnings
