"""Values by hand: shares of an error, ranges of values, PSNR of results, normalizations, and sizes in number formats."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import pytest
from runtime_networks import layer

from designer.files.variants import Variant
from designer.files.weights import WeightKey, Weights, fill_missing, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.metrics import result_psnr
from designer.precision import bits as bits_module
from designer.precision.bits import EQUAL, LADDER, BitsMeasurement, LayerBits
from designer.precision.blame import Blame, Blamed, Computation, Operator, Step, blame
from designer.precision.emulation import RangeObserver
from designer.precision.measure import weight_bytes
from designer.precision.mixed import PrecisionResult, Validation
from designer.precision.normalization import normalization_groups
from designer.runtime.api import RunOptions
from designer.runtime.number_formats import FORMATS
from designer.runtime.session import Session

torch = pytest.importorskip("torch")

X, Y, Z = Source("x"), Source("y"), Source("z")
OPERATORS = [Operator("first", (Y,)), Operator("second", (Z,))]
INPUT = {X: np.array([1.0, 2.0], np.float32)}


class Products(Computation):
    """y = first * x, and z = second * y."""

    def __init__(self, first, second):
        self._factors = {Y: (X, first), Z: (Y, second)}

    @property
    def tensors(self):
        return self._factors.keys()

    def step(self, makes, known):
        source, factor = self._factors[makes[0]]
        return Step((source,), lambda values: {makes[0]: values[source] * factor})


def test_the_share_of_an_operator_is_the_mean_of_both_orders():
    reports = []
    found = blame(OPERATORS, Products(2.0, 3.0), Products(2.5, 4.0), INPUT, [Z], lambda *each: reports.append(each))
    # from 6 to 10: the first adds 1.5 before and 2 after the second, which adds 2.5 after and 2 before the first
    assert [(item.layer, item.share) for item in found.operators] == [
        ("first", pytest.approx(1.75 / 4)),
        ("second", pytest.approx(2.25 / 4)),
    ]
    assert [item.deviation for item in found.operators] == pytest.approx([0.25, 1 / 3])
    assert found.rms == pytest.approx(sqrt((4**2 + 8**2) / 2))
    assert found.first == "first"
    assert reports == [(number, 8, ("first", "second")[number % 2]) for number in range(8)]


def test_an_operator_that_compensates_another_has_a_negative_share():
    found = blame(OPERATORS, Products(2.0, 3.0), Products(4.0, 2.0), INPUT, [Z])
    assert [item.share for item in found.operators] == pytest.approx([2.5, -1.5])  # 5 and -3 of 2
    assert found.operators[1].deviation == pytest.approx(1 / 3)


def test_the_first_operator_that_deviates_is_not_the_first_of_all():
    found = blame(OPERATORS, Products(2.0, 3.0), Products(2.0, 3.0001), INPUT, [Z])
    assert (found.first, [item.share for item in found.operators]) == ("second", pytest.approx([0.0, 1.0]))
    assert blame(OPERATORS, Products(2.0, 3.0), Products(2.0, 3.00001), INPUT, [Z]).first is None


@pytest.mark.parametrize(
    ("one", "other", "shares", "deviations", "first", "rms"),
    [
        ((0.0, 3.0), (2.0, 3.0), [1, 0], [sqrt(20), 0], "first", sqrt(90)),  # 2 and 4 instead of 0 and 0
        ((2.0, 0.0), (2.0, 1.0), [0, 1], [0, sqrt(20)], "second", sqrt(10)),
        ((2.0, 3.0), (0.0, 3.0), [1, 0], [1, 0], "first", sqrt(90)),
        ((0.0, 0.0), (0.0, 0.0), [0, 0], [0, 0], None, 0),
        ((0.0, 3.0), (0.0, 4.0), [0, 0], [0, 0], None, 0),  # the second one has nothing to multiply
        ((2.0, 3.0), (3.0, 2.0), [0, 0], [1 / 2, 1 / 3], "first", 0),  # they compensate each other
    ],
)
def test_results_that_are_0_have_absolute_deviations(one, other, shares, deviations, first, rms):
    found = blame(OPERATORS, Products(*one), Products(*other), INPUT, [Z])
    assert [item.share for item in found.operators] == pytest.approx(shares)
    assert [item.deviation for item in found.operators] == pytest.approx(deviations)
    assert (found.first, found.rms) == (first, pytest.approx(rms))


class Sums(Computation):
    """Each operator makes its factor times the sum of what it reads, and its square as a second tensor."""

    def __init__(self, reads, factors):
        self.reads, self.factors = reads, factors

    @property
    def tensors(self):
        return {source for name in self.reads for source in made_by(name)}

    def step(self, makes, known):
        name = makes[0].layer

        def run(values):
            found = self.factors[name] * sum(values[source] for source in self.reads[name])
            return dict(zip(made_by(name), (found, found**2), strict=True))

        return Step(tuple(self.reads[name]), run)


def made_by(name):
    return Source(name), Source(name, "y1")


@pytest.mark.parametrize("change", [1.0, 1e-3, 1e-7])
@pytest.mark.parametrize("seed", range(8))
def test_shares_of_branching_networks_are_those_of_runs_from_the_start(seed, change):
    """However small the difference of the two computations is."""
    dice = np.random.default_rng(seed)
    names, reads = "abcde", {}
    tensors = [X]
    for name in names:
        chosen = {*map(int, dice.integers(0, len(tensors), 2))}
        reads[name] = [tensors[number] for number in sorted(chosen)]
        tensors += made_by(name)
    inputs = {X: dice.uniform(0.5, 1, 3)}
    a = {name: dice.uniform(0.5, 1) for name in names}
    b = {name: a[name] * (1 if seed % 3 == 0 and name == "b" else 1 + change * dice.normal()) for name in names}
    outputs = [Source("e"), Source("d", "y1")]

    def result(first, second, count):
        """With the first operators of one computation and the others of the other."""
        values = dict(inputs)
        for number, name in enumerate(names):
            values.update(Sums(reads, first if number < count else second).step(made_by(name), ()).run(values))
        return np.concatenate([values[source] for source in outputs])

    error = result(a, b, 0) - result(a, b, 5)
    steps = []
    for number in range(5):
        forward = result(b, a, number + 1) - result(b, a, number)
        backward = result(a, b, number) - result(a, b, number + 1)
        steps.append((forward + backward) @ error / 2)
    operators = [Operator(name, made_by(name)) for name in names]
    found = blame(operators, Sums(reads, a), Sums(reads, b), inputs, outputs)
    expected = np.array(steps) / (error @ error)
    np.testing.assert_allclose([item.share for item in found.operators], expected, rtol=1e-5, atol=1e-5)
    assert sum(item.share for item in found.operators) == pytest.approx(1)
    assert found.rms == pytest.approx(np.sqrt((error**2).mean()), rel=1e-6)


def test_operators_are_ranked_by_the_size_of_their_share_then_by_deviation():
    items = (Blamed("a", 0.2, 9.0), Blamed("b", -0.7, 0.1), Blamed("c", 0.2, 10.0), Blamed("d", 0.5, 0.0))
    assert [item.layer for item in Blame(items, 1.0, None).ranked()] == ["b", "d", "c", "a"]


def test_results_of_another_shape_cannot_be_compared():
    class Longer(Products):
        def step(self, makes, known):
            source, factor = self._factors[makes[0]]
            return Step((source,), lambda values: {makes[0]: np.append(values[source], 1) * factor})

    with pytest.raises(DiagnosticError, match="'first' is 2 in one computation and 3 in the other"):
        blame(OPERATORS, Products(2.0, 3.0), Longer(2.0, 3.0), INPUT, [Z])


@pytest.mark.parametrize(
    ("one", "other"), [((2.0, inf), (2.0, 3.0)), ((2.0, 3.0), (2.0, inf)), ((2.0, inf), (2.0, inf))]
)
def test_the_layer_whose_results_have_no_size_is_named_whichever_computation_has_them(one, other):
    with pytest.raises(DiagnosticError, match="the results of the layer 'second' are NaN or infinite") as failed:
        blame(OPERATORS, Products(*one), Products(*other), INPUT, [Z])
    assert (failed.value.diagnostics[0].code, failed.value.diagnostics[0].layer) == ("not-finite", "second")


def test_ranges_of_values_over_several_operators():
    seen = RangeObserver()
    before = torch.tensor([0.0, -3.0, 2e-9, 70000.0, inf, float("nan"), 5e-9, -1e9])
    seen("a", "add", (), before, before.half().float())
    found = seen.ranges["a"]
    assert (found.values, found.nonfinite, found.overflowed, found.underflowed, found.terms) == (8, 2, 2, 2, 1)
    assert (found.largest, found.smallest) == (pytest.approx(1e9), pytest.approx(2e-9))
    seen("a", "mul", (), torch.tensor([4.0, -8.0, 1e-9]), torch.tensor([4.0, -8.0, 0.0]))
    assert (found.values, found.nonfinite, found.overflowed, found.underflowed) == (11, 2, 2, 3)
    assert (found.largest, found.smallest) == (pytest.approx(1e9), pytest.approx(1e-9))
    seen("b", "mul", (), torch.tensor([-4.0, 0.5]), torch.tensor([-4.0, 0.5]))
    seen("b", "mul", (), torch.zeros(0), torch.zeros(0))
    other = seen.ranges["b"]
    assert (other.largest, other.smallest, other.values, other.overflowed, other.underflowed) == (4.0, 0.5, 2, 0, 0)


@pytest.mark.parametrize(
    ("operator", "args", "result", "terms"),
    [
        ("sum", (torch.ones(2, 3, 4),), torch.ones(2, 1, 4), 3),
        ("mean", (torch.ones(2, 3, 4),), torch.ones(()), 24),
        ("addmm", (torch.ones(5), torch.ones(4, 7), torch.ones(7, 5)), torch.ones(4, 5), 7),
        ("bmm", (torch.ones(2, 4, 7), torch.ones(2, 7, 5)), torch.ones(2, 4, 5), 7),
        ("convolution", (None, torch.ones(6, 2, 3, 5), None, None, None, None, False, None, 3), torch.ones(1, 6, 2, 2), 30),
        ("convolution", (None, torch.ones(6, 4, 3, 5), None, None, None, None, True, None, 3), torch.ones(1, 12, 2, 2), 30),
        ("convolution", (None, torch.ones(6, 4, 3, 5), None, None, None, None, True, None, 1), torch.ones(1, 4, 2, 2), 90),
        ("relu", (torch.ones(2, 3),), torch.ones(2, 3), 1),
    ],
)  # fmt: skip
def test_how_many_terms_a_sum_has(operator, args, result, terms):
    seen = RangeObserver()
    seen("a", "relu", (), torch.ones(1), torch.ones(1))
    seen("a", operator, args, result, result)
    assert seen.ranges["a"].terms == terms
    seen("a", "relu", (), torch.ones(1), torch.ones(1))
    assert seen.ranges["a"].terms == terms  # the longest


@pytest.mark.parametrize(
    ("expected", "made", "db"),
    [
        (np.full((1, 1, 2, 2), 0.5), np.full((1, 1, 2, 2), 0.4), 20.0),  # an image from 0 to 1
        (np.full((1, 1, 1, 2), 0.2), np.array([[[[inf, 0.2]]]]), -10 * np.log10(0.32)),
        (np.full((1, 1, 1, 2), 0.7), np.array([[[[np.nan, 0.7]]]]), -10 * np.log10(0.245)),
        (np.array([[-3.0, 9.0]]), np.array([[-3.0, 7.8]]), 10 * np.log10(144 / 0.72)),  # their range
        (np.array([[-3.0, 9.0]]), np.array([[np.nan, 9.0]]), 10 * np.log10(2)),
        (np.array([[-3.0, 9.0]]), np.array([[-3.0, -inf]]), 10 * np.log10(2)),
        (np.array([[4.0, 4.0]]), np.array([[4.0, 4.2]]), 10 * np.log10(1 / 0.02)),  # no range: 1
        (np.array([[4.0, 5.0]]), np.array([[4.0, 5.0]]), inf),
        (np.full((1, 1, 2, 2), 0.5), np.full((1, 1, 2, 2), 0.5), inf),
        (np.array([[[[np.nan, 0.5, inf, 0.5]]]]), np.array([[[[np.nan, 0.4, 3.0, 0.6]]]]), 10 * np.log10(4 / 0.02)),
        (np.array([[-3.0, 9.0, np.nan, -inf]]), np.array([[-3.0, 7.8, 5.0, -inf]]), 10 * np.log10(4 * 144 / 1.44)),
        (np.array([[np.nan]]), np.array([[np.nan]]), inf),
    ],
)
def test_psnr_of_images_and_other_results(expected, made, db):
    assert result_psnr(expected.astype(np.float32), made.astype(np.float32)) == pytest.approx(db, abs=1e-4)


def groups(registry, *layers) -> set[frozenset[str]]:
    image = layer("image", "input", dims="8x4x3")
    last = layer("result", "output", layers[-1].name)
    inference = Inference(Graph([image, *layers, last]), registry)
    assert not inference.diagnostics()
    found = normalization_groups(inference)
    assert all(name in found[name] for name in found)
    return set(found.values())


def reduce(name, source, operation="mean"):
    return layer(name, "reduce", source, operation=operation, axes="1")


def binary(name, sources, operation):
    return layer(name, "element_wise", sources, operation=operation)


@pytest.mark.parametrize("operation", ["mean", "sum", "sum_of_squares", "norm", "l1_norm"])
def test_a_tensor_over_its_own_statistic_is_a_normalization(registry, operation):
    layers = reduce("statistic", "image", operation), binary("over", "image,statistic", "divide")
    assert groups(registry, *layers) == {frozenset({"statistic", "over"})}


@pytest.mark.parametrize(
    "layers",
    [
        (reduce("s", "image", "max"), binary("d", "image,s", "divide")),  # no statistic
        (reduce("s", "image"), binary("d", "s,image", "divide")),  # the statistic is above
        (reduce("s", "image"), binary("d", "image,s", "subtract")),
        (reduce("s", "image"), binary("d", "image,s", "multiply")),
        (reduce("s", "image"), layer("r", "unary", "s", function="sqrt"), binary("d", "image,r", "multiply")),
        (
            layer("r", "scale_shift", "image", scale="2"),
            reduce("s", "image"),
            binary("e", "image,s", "add"),
            binary("d", "e,r", "divide"),  # by the tensor itself
        ),
        (
            layer("r", "unary", "image", function="reciprocal"),
            reduce("s", "image"),
            binary("d", "r,s", "multiply"),  # the reciprocal is not that of the statistic
        ),
        (
            layer("c", "convolution", "image", None, features="3", kernel="1x1"),
            reduce("s", "image"),
            layer("t", "convolution", "s", None, features="3", kernel="1x1"),
            binary("d", "c,t", "divide"),  # a convolution is between
        ),
    ],
)
def test_what_is_not_a_normalization(registry, layers):
    assert not {group for group in groups(registry, *layers) if group}


def test_normalizations_that_share_a_layer_are_one_group(registry):
    found = groups(
        registry,
        layer("other", "convolution", "image", None, features="3", kernel="1x1"),
        binary("both", "image,other", "add"),
        reduce("of image", "image"),
        binary("one", "both,of image", "divide"),
        reduce("of other", "other"),
        binary("two", "both,of other", "divide"),
        binary("sum", "one,two", "add"),
    )
    assert found == {frozenset({"both", "of image", "one", "of other", "two"})}


def test_a_product_with_the_reciprocal_of_a_statistic(registry):
    found = groups(
        registry,
        layer("before", "scale_shift", "image", scale="2"),
        layer("square", "unary", "before", function="square"),
        reduce("mean", "square"),
        layer("shifted", "scale_shift", "mean", shift="1"),
        layer("inverse", "unary", "shifted", function="reciprocal"),
        binary("normal", "inverse,before", "multiply"),
        layer("after", "scale_shift", "normal", scale="3"),
    )
    assert frozenset({"mean", "shifted", "inverse", "normal"}) <= max(found, key=len)
    assert not {"after", "before", "image", "result"} & frozenset().union(*found)


@pytest.fixture
def bits(registry) -> BitsMeasurement:
    """16 weights in `a`, 10 in `b`."""
    graph = Graph(
        [
            layer("image", "input", dims="5x4x3"),
            layer("a", "convolution", "image", None, features="4", kernel="1x1"),
            layer("b", "convolution", "a", None, features="2", kernel="1x1"),
            layer("result", "output", "b"),
        ]
    )
    rng = np.random.default_rng(2)
    shapes = {("a", "kernel"): (4, 3, 1, 1), ("a", "bias"): (4,), ("b", "kernel"): (2, 4, 1, 1), ("b", "bias"): (2,)}
    tensors = {WeightKey(*key): rng.normal(0, 0.5, shape).astype(np.float32) for key, shape in shapes.items()}
    session = Session(graph, registry, Weights(tensors), RunOptions("torch", threads=1))
    session.set_input("image", rng.random((1, 3, 4, 5), np.float32), is_image=True)
    return BitsMeasurement(session)


def test_bytes_of_weights_by_format(bits):
    assert bits.layers == ("a", "b")
    assert bits.bytes({}) == 26 * 4
    assert bits.bytes({"a": "float16"}) == 16 * 2 + 10 * 4
    assert bits.bytes({"b": "int6"}) == 16 * 4 + 6 + 2 * 4  # biases have 32 bits
    assert bits.bytes({"a": "int2", "b": "int2"}) == 3 + 4 * 4 + 2 + 2 * 4


def test_the_bytes_of_a_choice_are_those_of_its_variant(registry):
    """Normalizations have more bits with integers than in FP16, so that no choice has them in an integer format."""
    graph = Graph(
        [
            layer("image", "input", dims="5x4x3"),
            layer("conv", "convolution", "image", None, features="4", kernel="3x3"),
            layer("norm", "batch_normalization", "conv"),
            layer("result", "output", "norm"),
        ]
    )
    inference = Inference(graph, registry)
    weights = fill_missing(Weights(), required_weights(inference), seed=3)
    session = Session(graph, registry, weights, RunOptions("torch", threads=1))
    session.set_input("image", np.random.default_rng(4).random((1, 3, 4, 5), np.float32), is_image=True)
    made = BitsMeasurement(session)
    points = made.points(made.layer_bits())
    assert [point.bytes for point in points] == [
        weight_bytes(Variant("", formats=p.formats), inference) for p in points
    ]
    assert [point.bytes for point in points] == sorted({point.bytes for point in points}, reverse=True)
    assert points[-1].formats == {"conv": "int2", "norm": "float16"}


def test_bits_of_a_network_whose_result_is_no_image_and_that_has_a_target(registry):
    graph = Graph(
        [
            layer("numbers", "tensor_input", shape="4"),
            layer("target", "tensor_input", shape="2"),
            layer("scores", "fully_connected", "numbers", None, features="2"),
            layer("result", "output", "scores"),
            layer("loss", "mse_loss", "scores,target"),
        ]
    )
    kernel = np.array([[3.0, -7.1, 2.2, 0.3], [-4.4, 0.7, 9.3, 1.0]], np.float32)
    tensors = {WeightKey("scores", "kernel"): kernel, WeightKey("scores", "bias"): np.zeros(2, np.float32)}
    session = Session(graph, registry, Weights(tensors), RunOptions("torch", threads=1))
    session.set_input("numbers", np.ones((1, 4), np.float32), is_image=False)
    session.set_input("target", np.ones((1, 2), np.float32), is_image=False)
    made = BitsMeasurement(session)
    exact, coarse = made._result({}), made._result({"scores": "int2"})
    assert made.psnr({"scores": "int2"}) == pytest.approx(result_psnr(exact, coarse))
    assert made.psnr({"scores": "int2"}) < 30  # scores of -1.6 and 6.6 are not clipped to 0..1


def test_each_choice_is_the_least_error_per_byte_that_is_saved(bits):
    formats = ("float16", "int8", "int6", "int4", "int2")
    cheap = LayerBits("a", 16, dict.fromkeys(formats, 120.0))
    dear = LayerBits("b", 10, dict(zip(formats, (60.0, 50.0, 40.0, 30.0, 20.0), strict=True)))
    reports = []
    found = bits.points([dear, cheap], lambda *each: reports.append(each[:2]))
    levels = [(each.formats.get("a"), each.formats.get("b")) for each in found]
    assert levels == [
        (None, None), *((each, None) for each in formats), *(("int2", each) for each in formats)
    ]  # fmt: skip
    assert [each.bytes for each in found] == [104, 72, 68, 65, 62, 59, 39, 35, 33, 31, 29]
    assert found[0].psnr == EQUAL
    assert found[0].psnr > found[2].psnr > found[-1].psnr
    assert reports == [(number, 11) for number in range(11)]


def test_the_error_counts_per_byte(bits):
    """`a` saves 16 x 16 bits for an error of 1.5e-6, `b` 10 x 16 bits for 1e-6."""
    formats = ("float16", "int8", "int6", "int4", "int2")
    first = LayerBits("a", 16, dict.fromkeys(formats, -10 * np.log10(1.5e-6)))
    second = LayerBits("b", 10, dict.fromkeys(formats, 60.0))
    found = bits.points([first, second])
    assert found[1].formats == {"a": "float16"}


def test_each_layer_alone(bits):
    reports = []
    first, second = bits.layer_bits(lambda *each: reports.append(each[:2]))
    assert (first.layer, first.weights, first.vectors) == ("a", 16, 4)
    assert (second.layer, second.weights, second.vectors) == ("b", 10, 2)
    assert reports == [(0, 2), (1, 2)]
    assert list(first.psnr) == ["float16", "int8", "int6", "int4", "int2"]
    assert first.psnr["float16"] > first.psnr["int8"] > first.psnr["int4"] > first.psnr["int2"]
    assert second.psnr["int6"] == bits.psnr({"b": "int6"})
    assert first.psnr != second.psnr


class Errors:
    """Stands in for an emulation: the result of an image differs from it by `errors[name]`, in outputs `a` and `b`."""

    def __init__(self, errors):
        self._errors, self.asked = errors, []

    def feed(self, images):
        ((_, self._image),) = images.items()

    def run(self, precision, formats):
        self.asked.append((precision, dict(formats)))
        error = self._errors[round(10 * float(self._image[0, 0, 0, 0]))]
        return {"a": self._image + error, "b": self._image + error / 10}


def validation(errors) -> Validation:
    images = {name: np.full((1, 1, 2, 2), number / 10, np.float32) for number, name in enumerate("xyz")}
    expected = {name: {"a": image, "b": image} for name, image in images.items()}
    return Validation(Errors(dict(enumerate(errors))), "image", images, expected, {}, {})


@pytest.mark.parametrize(
    ("errors", "count", "db"),
    [
        ((0.1, 0.01, 0.001), 32, 50.0),  # 20 and 40, 40 and 60, 60 and 80 dB
        ((0.1, 0.01, 0.001), 2, 40.0),
        ((0.1, 0.01, 0.001), 1, 30.0),
        ((0.1, 0.0, 0.0), 32, 30.0),  # equal results do not count
        ((0.0, 0.0, 0.0), 32, inf),
    ],
)
def test_the_quality_is_the_mean_of_the_first_images(errors, count, db):
    found = validation(errors)
    assert found.psnr("bf16", {"a": "float32"}, count) == pytest.approx(db, abs=0.01)
    assert found.emulation.asked == [("bf16", {"a": "float32"})] * min(count, 3)


@pytest.mark.parametrize(
    ("target", "psnr", "budget", "met", "precision"),
    [
        ("fp16", 40.0, None, True, "fp16"),
        ("bf16", 40.0, 40.0, True, "bf16"),
        ("bf16", 39.9, 40.0, False, "bf16"),
        ("mixed", 50.0, 50.0, True, "fp16"),
    ],
)
def test_a_budget_is_met_from_its_value(target, psnr, budget, met, precision):
    found = PrecisionResult(target, psnr, budget, {"a": "why"})
    assert (found.met, found.precision, found.formats) == (met, precision, {"a": "float32"})


class Sizes(BitsMeasurement):
    """Layers with weights of these shapes; nothing runs."""

    def __init__(self, shapes):
        self._shapes = shapes

    def psnr(self, formats):
        return float(len(formats))


@pytest.mark.parametrize("seed", range(12))
def test_choices_of_several_layers_are_those_of_a_search_step_by_step(seed, monkeypatch):
    """The next format down is that of the layer with the least added squared error for each bit that it saves."""
    dice = np.random.default_rng(seed)
    shapes, layers = {}, []
    for name in "abcd"[: 2 + seed % 3]:
        count = int(dice.integers(1, 40))
        # With two weights for a bias, INT8 has as many bits as FP16: the search ends there.
        kernels = (3, 3, 3), (2, 1, 1), ()
        shapes[name] = [(count, *kernels[int(dice.choice(3, p=(0.5, 0.2, 0.3)))]), (count,)]
        fall = np.cumsum(dice.uniform(0.5, 12, 5))
        layers.append(LayerBits(name, 0, dict(zip(LADDER[1:], 90 - fall - 20 * dice.random(), strict=True))))
    size = {
        each.layer: [sum(FORMATS[f].weight_bits(shape) for shape in shapes[each.layer]) for f in LADDER]
        for each in layers
    }
    error = {each.layer: [0.0] + [10 ** (-each.psnr[f] / 10) for f in LADDER[1:]] for each in layers}
    level, wanted = dict.fromkeys(error, 0), [{}]
    while True:
        steps = [
            ((error[n][now + 1] - error[n][now]) / (size[n][now] - size[n][now + 1]), n)
            for n, now in level.items()
            if now + 1 < len(LADDER) and size[n][now] > size[n][now + 1]
        ]
        if not steps:
            break
        level[min(steps)[1]] += 1
        wanted.append({n: LADDER[now] for n, now in level.items() if now})
    monkeypatch.setattr(bits_module, "POINTS", len(wanted))
    found = Sizes(shapes).points(layers)
    assert [point.formats for point in found] == wanted
    assert [point.bytes for point in found] == [
        -(-sum(size[n][LADDER.index(formats.get(n, "float32"))] for n in size) // 8) for formats in wanted
    ]
    assert [point.psnr for point in found] == [len(formats) for formats in wanted]
    monkeypatch.setattr(bits_module, "POINTS", 4)
    fewer = [point.formats for point in Sizes(shapes).points(layers)]
    last = len(wanted) - 1
    assert fewer == [wanted[round(part * last / 3)] for part in range(4)]
