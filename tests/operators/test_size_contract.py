"""Input sizes that networks accept, from symbolic shape inference, and the fix that makes every size work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designer.graph.commands import move_layers, set_params
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.types import ShapeError, TensorType
from designer.operators.api import Operator, Port
from designer.operators.registry import load
from designer.operators.size_contract import SizeContract, SizeRule, _differences, size_contract
from designer.operators.size_fix import _progression, accept_every_size, is_free, obstacle
from designer.operators.symbolic_size import RefinePeriod, Region

REGISTRY = load(entry_points=False)


def layer(name: str, kind: str, *inputs: str, **params: object) -> Layer:
    sources = tuple(Source.parse(text) for text in inputs)
    return Layer(name, kind, inputs=sources, params={key: str(value) for key, value in params.items()})


def contract_of(*layers: Layer) -> SizeContract:
    return size_contract(Graph(layers), REGISTRY)


def unet(dims: str = "64x48x3") -> list[Layer]:
    return [
        layer("in", "input", dims=dims),
        layer("enc", "convolution", "in", features=4),
        layer("half", "pooling", "enc", size="2x2", stride="2x2"),
        layer("quarter", "pooling", "half", size="2x2", stride="2x2"),
        layer("up_1", "upsample", "quarter", factor="2x2"),
        layer("join_1", "concatenation", "half", "up_1"),
        layer("up_2", "upsample", "join_1", factor="2x2"),
        layer("join_2", "concatenation", "enc", "up_2"),
        layer("out", "output", "join_2"),
    ]


def test_a_unet_names_the_concatenations_that_need_multiples() -> None:
    contract = contract_of(*unet())
    rule = contract.inputs[0].height
    assert str(rule) == "multiples of 4"
    assert rule.because == ("join_2", "join_1")
    assert [n for n in range(1, 30) if n in rule] == [4, 8, 12, 16, 20, 24, 28]
    assert rule.causes[0].size == 5
    assert "input 2 is N x 8 x 4 x 64" in rule.causes[0].message


def test_the_message_of_a_rule_has_the_numbers_of_its_example() -> None:
    contract = contract_of(
        layer("in", "input", dims="24x16x3"),
        layer("norm", "layer_normalization", "in", axis=1),
        layer("out", "output", "norm"),
    )
    below = next(cause for cause in contract.inputs[0].height.causes if cause.rule == "minimum")
    assert below.size == 15
    assert below.message == "its weight 'scale' is 3 x 16 x 24 and would have to be 3 x 15 x 24"


def test_the_rule_is_found_although_the_document_has_an_invalid_size() -> None:
    contract = contract_of(*unet("50x30x3"))
    assert str(contract.inputs[0].width) == "multiples of 4"


def test_minimum_and_multiple_together() -> None:
    contract = contract_of(
        layer("in", "input", dims="64x64x3"),
        layer("blocks", "space_to_depth", "in", block_size=4),
        layer("conv", "convolution", "blocks", padding="valid", features=16),
        layer("out", "output", "conv"),
    )
    height = contract.inputs[0].height.as_dict()
    assert (height["multiple_of"], height["minimum"], height["because"]) == (4, 12, ["blocks", "conv"])
    assert height["text"] == "multiples of 4, at least 12"


def test_odd_sizes_have_a_remainder() -> None:
    contract = contract_of(
        layer("in", "input", dims="33x33x3"),
        layer("down", "convolution", "in", features=3, stride="2x2", padding="valid"),
        layer("up", "transposed_convolution", "down", features=3, padding="valid"),
        layer("sum", "element_wise", "in", "up"),
        layer("out", "output", "sum"),
    )
    assert str(contract.inputs[0].height) == "multiples of 2 plus 1, at least 3"


def test_a_fully_connected_layer_couples_height_and_width() -> None:
    contract = contract_of(
        layer("in", "input", dims="16x8x3"),
        layer("flat", "flatten", "in"),
        layer("fc", "fully_connected", "flat", features=2),
        layer("out", "output", "fc"),
    )
    assert str(contract.inputs[0].height) == "only 8"
    assert [name for name, _ in contract.coupled] == ["fc"]
    assert contract.accepts({"in": (4, 32)})
    assert not contract.accepts({"in": (8, 32)})
    assert "weight 'kernel' is 2 x 384" in contract.inputs[0].height.causes[0].message


def test_inputs_that_are_added_must_have_one_size() -> None:
    contract = contract_of(
        layer("a", "input", dims="32x32x3"),
        layer("b", "input", dims="32x32x3"),
        layer("pool", "pooling", "a", size="4x4", stride="4x4"),
        layer("other", "pooling", "b", size="4x4", stride="4x4"),
        layer("sum", "element_wise", "pool", "other"),
        layer("out", "output", "sum"),
    )
    assert contract.inputs[0].with_inputs == ("b",)
    assert str(contract.inputs[0].width) == "at least 4"


MEETINGS = {  # how two inputs meet, their own sizes, then: are they of one size, or which of their axes depend on each other
    ("element_wise", None, "8x6", "8x6"): "one size",
    ("element_wise", None, "8x6", "8x4"): "one size",
    ("concatenation", 1, "8x6", "5x6"): "one size",
    ("concatenation", 2, "8x6", "8x6"): "one size",
    ("concatenation", 2, "8x6", "8x4"): "width of 'a' and width of 'b'",
    ("concatenation", 2, "8x6", "5x6"): "one size",
    ("concatenation", 3, "8x6", "5x6"): "height of 'a' and height of 'b'",
    ("concatenation", 3, "8x6", "8x4"): "one size",
    ("matmul", None, "6x8", "4x6"): "width of 'a' and height of 'b'",
    ("crop", None, "8x6", "5x6"): "height of 'a' and width of 'a' and height of 'b' and width of 'b'",
}


@pytest.mark.parametrize("case", MEETINGS, ids=str)
def test_sizes_of_two_inputs_that_meet(case: tuple[str, int | None, str, str]) -> None:
    """What a rule says of one axis holds while the other sizes are those of the reference."""
    kind, axis, first, second = case
    contract = contract_of(
        layer("a", "input", dims=f"{first}x3"),
        layer("b", "input", dims=f"{second}x3"),
        layer("meet", kind, "a", "b", **({} if axis is None else {"axis": axis})),
        layer("out", "output", "meet"),
    )
    joined = MEETINGS[case] == "one size"
    assert [item.with_inputs for item in contract.inputs] == ([("b",), ("a",)] if joined else [(), ()])
    assert contract.coupled == (() if joined else (("meet", f"{MEETINGS[case]} depend on each other"),))
    for item in contract.inputs:
        for place, rule in enumerate((item.height, item.width)):
            for size in (*range(1, 12), *contract.reference[item.layer]):
                sizes = {name: list(contract.reference[name]) for name in (item.layer, *item.with_inputs)}
                for pair in sizes.values():
                    pair[place] = size
                assert contract.accepts({name: (h, w) for name, (h, w) in sizes.items()}) == (size in rule)


def test_independent_inputs_have_their_own_rules() -> None:
    contract = contract_of(
        layer("a", "input", dims="32x32x3"),
        layer("b", "input", dims="32x32x3"),
        layer("x", "space_to_depth", "a", block_size=4),
        layer("y", "space_to_depth", "b", block_size=2),
        layer("out_x", "output", "x"),
        layer("out_y", "output", "y"),
    )
    assert [(item.layer, str(item.width), item.with_inputs) for item in contract.inputs] == [
        ("a", "multiples of 4", ()),
        ("b", "multiples of 2", ()),
    ]
    assert not contract.coupled


def test_single_pixels_that_have_no_variance_are_exceptions() -> None:
    contract = contract_of(
        layer("in", "input", dims="32x32x3"),
        layer("norm", "instance_normalization", "in"),
        layer("out", "output", "norm"),
    )
    assert contract.exceptions == ((1, 1),)
    assert not contract.coupled


def test_tiling_of_an_input_makes_every_size_valid() -> None:
    padded = unet()
    padded[0] = layer("in", "input", dims="64x48x3", tiling=4)
    assert str(contract_of(*padded).inputs[0].height) == "any size"


def test_losses_do_not_count() -> None:
    contract = contract_of(
        layer("in", "input", dims="32x32x3"),
        layer("conv", "convolution", "in", features=3),
        layer("out", "output", "conv"),
        layer("blocks", "space_to_depth", "conv", block_size=2),
        layer("loss", "mse_loss", "blocks", "blocks"),
    )
    assert contract.inputs[0].height.is_free


def test_a_network_without_a_valid_size_says_why() -> None:
    contract = contract_of(layer("in", "input"), layer("conv", "convolution"), layer("out", "output", "conv"))
    assert contract.problem is not None
    assert contract.problem.layer == "conv"


def test_an_opaque_layer_is_only_known_for_its_shapes() -> None:
    contract = contract_of(
        layer("in", "input", dims="8x8x3"),
        layer("op", "opaque", "in", op_type="Mystery", shapes="N x 3 x 8 x 8"),
        layer("out", "output", "op"),
    )
    assert str(contract.inputs[0].height) == "only 8"
    assert contract.inputs[0].height.because == ("op",)


def test_an_operator_of_a_plugin_that_needs_plain_numbers_costs_the_proof_only() -> None:
    tens = {n: n // 10 for n in range(10, 100_000)}

    class Rounded(Operator, type="rounded", title="Rounded"):
        """Keeps whole tens of pixels, computed with tables of plain numbers."""

        inputs = (Port("x", rank=4),)

        def infer(self, inputs: Sequence[TensorType]) -> TensorType:
            x = inputs[0].image()
            if x.h not in tens:
                raise ShapeError("too small")
            return inputs[0].with_shape(x.n, x.c, tens[x.h] * 10, x.w)

    registry = load(entry_points=False)
    registry.register(Rounded)
    graph = Graph([layer("in", "input", dims="32x32x3"), layer("r", "rounded", "in"), layer("out", "output", "r")])
    rule = size_contract(graph, registry).inputs[0]
    assert (str(rule.height), rule.height.proven) == ("at least 10", False)
    assert (str(rule.width), rule.width.proven) == ("any size", True)


# --- the fix --------------------------------------------------------------------------------------------------------


def test_the_fix_is_one_edit_and_undo_restores_the_network() -> None:
    graph = Graph(unet())
    before = graph.copy()
    history = History(graph)
    history.commit(accept_every_size(graph, REGISTRY, size_contract(graph, REGISTRY)))
    assert is_free(size_contract(graph, REGISTRY))
    assert graph["out"].inputs == (Source("crop_padding_0"),)
    assert history.undo_title == "Accept Every Size"
    history.undo()
    assert graph == before
    assert history.undo() is None


def test_the_fix_makes_room() -> None:
    graph = Graph(
        [
            layer("in", "input", dims="64x64x4"),
            layer("blocks", "space_to_depth", "in", block_size=2),
            layer("image", "depth_to_space", "blocks", block_size=2),
            layer("out", "output", "image"),
        ]
    )
    graph.apply(move_layers(graph, {name: (256 * place, 0) for place, name in enumerate(graph.layers)}))
    graph.apply(accept_every_size(graph, REGISTRY, size_contract(graph, REGISTRY)))
    places = {name: layer.position[0] for name, layer in graph.layers.items()}
    assert all(places[target] - places[source] > 240 for source, _, target, _ in graph.links())  # the width of a layer


@pytest.mark.parametrize(("factor", "expected"), [("4x4", (49, 33)), ("2x2", (25, 17)), ("4x2", (25, 33))])
def test_the_cropped_output_has_the_scale_of_the_network(factor: str, expected: tuple[int, int]) -> None:
    graph = Graph(
        [
            layer("in", "input", dims="64x64x4"),
            layer("blocks", "space_to_depth", "in", block_size=2),
            layer("up", "upsample", "blocks", factor=factor),
            layer("smaller", "pooling", "up", size="2x2", stride="2x2"),
            layer("out", "output", "smaller"),
        ]
    )
    graph.apply(accept_every_size(graph, REGISTRY, size_contract(graph, REGISTRY)))
    graph.apply(set_params(graph, {"in": {"dims": "33x49x4"}}))
    outputs = Inference(graph, REGISTRY).states["out"].outputs
    assert outputs is not None
    assert outputs[0].shape[2:] == expected


def test_one_size_only_cannot_be_fixed_by_padding() -> None:
    contract = contract_of(
        layer("in", "input", dims="16x8x3"),
        layer("norm", "layer_normalization", "in", axis=-1),
        layer("out", "output", "norm"),
    )
    assert obstacle(contract) == "'in' accepts only 16 because of norm; padding cannot make images smaller"
    with pytest.raises(DiagnosticError, match="padding cannot make images smaller"):
        accept_every_size(Graph([]), REGISTRY, contract)


# --- symbolic sizes ------------------------------------------------------------------------------------------------

Step = Callable[[int], int]
STEPS: dict[str, Callable[[int], Step]] = {
    "add": lambda c: lambda n: n + c,
    "subtract": lambda c: lambda n: n - c,
    "from": lambda c: lambda n: c - n,
    "times": lambda c: lambda n: n * c,
    "floor": lambda c: lambda n: n // (c or 1),
    "ceil": lambda c: lambda n: -(-n // (c or 1)),
    "modulo": lambda c: lambda n: n % (c or 1),
    "at_least": lambda c: lambda n: max(n, c),
    "branch": lambda c: lambda n: n - 1 if n > c else n + 2,
    "equal": lambda c: lambda n: 7 if n == c else n,
    "index": lambda c: lambda n: n + len(range(c)),
    "plain": lambda c: lambda n: len(range(n % 5 if n > 0 else 1)) + n,
}


@given(
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9)), max_size=6),
    st.integers(1, 6),
    st.integers(0, 40),
)
def test_a_symbolic_result_holds_in_its_whole_region(steps: list[tuple[str, int]], first: int, step: int) -> None:
    program = [STEPS[name](constant) for name, constant in steps]

    def run(size: int) -> int:
        for function in program:
            size = function(size)
        return size

    period = 1
    while True:
        region = Region((step,))
        try:
            result = run(region.size(0, period, first))
            break
        except RefinePeriod as refine:
            period *= refine.factor
    low, high = region.low[0], region.high[0]
    assert low <= step
    assert high is None or step <= high
    for k in range(low, (high if high is not None else step + 60) + 1):
        expected = run(period * k + first)
        terms = getattr(result, "terms", None)
        found = sum(f * k ** m[0] for m, f in terms.items()) if terms is not None else result
        assert found == expected


@pytest.mark.parametrize(
    ("rule", "text", "values"),
    [
        (SizeRule(), "any size", (1, [0], 1, None, [])),
        (SizeRule(minimum=7), "at least 7", (1, [0], 7, None, [])),
        (SizeRule(8), "multiples of 8", (8, [0], 1, None, [])),
        (SizeRule(8, minimum=8), "multiples of 8", (8, [0], 8, None, [])),
        (SizeRule(8, minimum=16), "multiples of 8, at least 16", (8, [0], 16, None, [])),
        (SizeRule(6, (1, 3), 7, (2,)), "multiples of 6 plus 1, 3, at least 7, and 2", (6, [1, 3], 7, None, [2])),
        (SizeRule(1, (), 1, (12, 18)), "only 12, 18", (6, [0], 12, 18, [12, 18])),
        (SizeRule(1, (), 1, ()), "no size", (None, [0], None, None, [])),
    ],
)
def test_rules_as_text_and_as_values(rule: SizeRule, text: str, values: tuple[object, ...]) -> None:
    assert str(rule) == text
    made = rule.as_dict()
    assert tuple(made[name] for name in ("multiple_of", "remainders", "minimum", "maximum", "others")) == values
    assert made["text"] == text


def test_which_sizes_a_rule_has() -> None:
    rule = SizeRule(6, (1, 3), 7, (2,))
    assert [n for n in range(1, 22) if n in rule] == [2, 7, 9, 13, 15, 19, 21]
    assert rule.smallest == 2
    assert SizeRule(6, (1, 3), 7).smallest == 7
    assert SizeRule(1, (), 1, ()).smallest is None
    free = (SizeRule(), SizeRule(2), SizeRule(minimum=2), SizeRule(remainders=()))
    assert [each.is_free for each in free] == [True, False, False, False]


SMALL_RULES = [
    SizeRule(multiple, remainders, minimum, others)
    for multiple in (1, 2, 3, 6)
    for remainders in ((), (0,), (multiple - 1,), tuple(range(multiple)))
    for minimum in (1, 2, 4)
    for others in ((), (2,), (5,))
]


def test_differences_of_two_rules_are_all_found_or_have_no_end() -> None:
    for one, other in product(SMALL_RULES, SMALL_RULES):
        found = [n for n in range(1, 40) if (n in one) != (n in other)]
        assert _differences(one, other) == (None if any(n > 20 for n in found) else found), (one, other)


def test_padding_keeps_a_minimum_that_is_above_the_smallest_remainder() -> None:
    assert _progression(SizeRule(16, (5,), 5), 7) == (16, 5, 7)
    assert _progression(SizeRule(16, (5,), 5), 1) == (16, 5, 1)
    assert _progression(SizeRule(16, (0,), 16), 7) == (16, 0, 1)
