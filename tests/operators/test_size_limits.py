"""Sizes whose rules cannot be followed for all sizes, and products of sizes: what is said of them is right or said to be unproven."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.types import ShapeError, TensorType
from designer.operators import size_fix
from designer.operators.api import Operator, Port
from designer.operators.registry import load
from designer.operators.size_contract import SizeContract, size_contract
from designer.operators.size_fix import accept_every_size, obstacle
from designer.operators.symbolic_size import RefinePeriod, Region

COMPARED: dict[str, Callable[[int, int], bool]] = {
    "<": lambda value, limit: value < limit,
    "<=": lambda value, limit: value <= limit,
    ">": lambda value, limit: value > limit,
    ">=": lambda value, limit: value >= limit,
    "==": lambda value, limit: value == limit,
    "!=": lambda value, limit: value != limit,
}


@pytest.mark.parametrize("name", COMPARED)
def test_an_answer_about_a_polynomial_holds_in_its_region(name: str) -> None:
    """Of products of a size with itself and with sums; the region has the present step, and may be that step alone."""
    compare = COMPARED[name]
    polynomials: list[Callable[[int], int]] = [
        lambda n: n * n - 7 * n,
        lambda n: 5 * n - n * n,
        lambda n: n * (n + 1) * (n - 6),
        lambda n: n * n + 3,
        lambda n: 4 * n - 9,
        lambda n: 9 - 4 * n,
        lambda n: -n * n,
    ]
    widest = 0
    for (number, polynomial), limit, first, step in product(enumerate(polynomials), (-12, 0, 5), (0, 1), range(9)):
        region = Region((step,))
        answer = compare(polynomial(region.size(0, 2, first)), limit)
        low, high = region.low[0], region.high[0]
        assert low <= step
        assert high is None or step <= high
        for k in range(low, (high if high is not None else step + 25) + 1):
            assert compare(polynomial(2 * k + first), limit) == answer, (number, limit, first, step, k)
        widest += high is None
    assert widest > 100  # most answers hold without end


def test_an_answer_about_two_sizes_holds_for_these_only() -> None:
    region = Region((3, 5), place="layer")
    height, width = region.size(0, 1, 1), region.size(1, 1, 1)
    assert height < width
    assert (region.low, region.high, region.coupled) == ([3, 5], [3, 5], {"layer": {0, 1}})
    one = Region((3, 5), place="layer")
    assert one.size(0, 1, 1) < 9
    assert (one.low, one.high, one.coupled) == ([0, 0], [7, None], {})
    one.narrow(0, 2, 6)
    one.narrow(0, 1, 8)
    one.narrow(0, 0, None)
    assert (one.low, one.high) == ([2, 0], [6, None])


def test_a_size_is_a_number_where_it_has_to_be_one() -> None:
    region = Region((4,))
    size = region.size(0, 3, 2)  # 14
    assert (f"{size:>4}", str(size), repr(size), region.high) == ("  14", "14", "14", [None])
    assert [
        str(value) for value in (round(size), round(size, 1), size.__trunc__(), size.__floor__(), size.__ceil__())
    ] == ["14"] * 5
    assert region.high == [None]
    for read in (
        lambda s: s.bit_length(),
        lambda s: round(s, -1),
        lambda s: s**2,
        lambda s: s / 2,
        lambda s: 7 / s,
        hash,
        float,
    ):
        region = Region((4,))
        assert read(region.size(0, 3, 2)) == read(14)
        assert (region.low, region.high, region.coupled) == ([4], [4], {})


# --- networks --------------------------------------------------------------------------------------------------------


def layer(name: str, kind: str, *inputs: str, **params: object) -> Layer:
    return Layer(name, kind, inputs=tuple(map(Source, inputs)), params={k: str(v) for k, v in params.items()})


def contract_with(rule: Callable[[int, int], bool], dims: str = "32x32x3") -> tuple[Graph, SizeContract]:
    """A network with one layer that accepts an image where `rule` of height and width holds."""

    class Ruled(Operator, type="ruled", title="Ruled"):
        """Accepts what the rule of the case accepts."""

        inputs = (Port("x", rank=4),)

        def infer(self, inputs: Sequence[TensorType]) -> TensorType:
            x = inputs[0].image()
            if not rule(x.h, x.w):
                raise ShapeError(f"{x.h} is refused")
            return inputs[0]

    registry = load(entry_points=False)
    registry.register(Ruled)
    graph = Graph([layer("in", "input", dims=dims), layer("r", "ruled", "in"), layer("out", "output", "r")])
    return graph, size_contract(graph, registry)


def test_a_rule_with_a_long_period_is_tried_up_to_512() -> None:
    graph, contract = contract_with(lambda h, w: h % 4099 != 7)
    (item,) = contract.inputs
    assert not item.height.proven
    assert item.width.proven
    assert [n for n in range(1, 600) if n not in item.height] == [7]
    assert [(c.layer, c.size, c.message) for c in item.height.causes] == [("r", 7, "7 is refused")]
    assert obstacle(contract) == "the sizes that 'in' accepts are only known up to 512"
    with pytest.raises(DiagnosticError, match="only known up to 512"):
        accept_every_size(graph, load(entry_points=False), contract)


def test_an_unproven_width_is_an_obstacle_as_well() -> None:
    _, contract = contract_with(lambda h, w: w % 4099 != 7)
    (item,) = contract.inputs
    assert (item.height.proven, item.width.proven) == (True, False)
    assert obstacle(contract) == "the sizes that 'in' accepts are only known up to 512"


def test_an_operator_that_fails_with_symbolic_sizes_is_asked_with_numbers() -> None:
    _, contract = contract_with(lambda h, w: int.__add__(h, 0) >= 3)
    (item,) = contract.inputs
    assert [n for n in range(1, 600) if n not in item.height] == [1, 2]
    assert (item.height.proven, [c.size for c in item.height.causes]) == (False, [2])
    assert 1 in item.width


def test_a_period_that_is_not_too_long_is_proven() -> None:
    _, contract = contract_with(lambda h, w: h % 100 != 7)
    (item,) = contract.inputs
    assert item.height.proven
    assert [n for n in range(1, 220) if n not in item.height] == [7, 107, 207]
    assert (item.height.multiple_of, item.height.minimum, len(item.height.remainders)) == (100, 1, 99)


def test_single_sizes_below_an_endless_rule() -> None:
    _, contract = contract_with(lambda h, w: h in (3, 5) or (h >= 20 and h % 4 == 0))
    (item,) = contract.inputs
    found = item.height.as_dict()
    rules = found.pop("rules")
    assert found == {
        "multiple_of": 4, "remainders": [0], "minimum": 20, "maximum": None, "others": [3, 5], "because": ["r"], "proven": True,
        "text": str(item.height),
    }  # fmt: skip
    assert rules == [
        {"rule": "minimum", "layer": "r", "example": 4, "message": "4 is refused"},
        {"rule": "multiple_of", "layer": "r", "example": 6, "message": "6 is refused"},
    ]
    assert [n for n in range(1, 40) if n in item.height] == [3, 5, 20, 24, 28, 32, 36]
    _, contract = contract_with(lambda h, w: h in (6, 9, 12), "32x12x3")
    (item,) = contract.inputs
    found = item.height.as_dict()
    assert {key: found[key] for key in ("multiple_of", "remainders", "minimum", "maximum", "others")} == {
        "multiple_of": 3, "remainders": [0], "minimum": 6, "maximum": 12, "others": [6, 9, 12],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda h, w: h < 2 * w, "height of 'in' and width of 'in' depend on each other"),
        (lambda h, w: h * w > 40, "height of 'in' and width of 'in' depend on each other"),
    ],
)
def test_sizes_that_depend_on_each_other(rule: Callable[[int, int], bool], message: str) -> None:
    graph, contract = contract_with(rule, "12x10x3")
    assert contract.coupled == (("r", message),)
    assert not contract.exceptions
    for height, width in ((1, 1), (10, 4), (10, 6), (24, 12), (23, 12), (5, 8), (5, 9)):
        assert contract.accepts({"in": (height, width)}) == rule(height, width)
    (item,) = contract.inputs
    assert [n for n in range(1, 90) if n in item.height] == [n for n in range(1, 90) if rule(n, 12)]
    assert [n for n in range(1, 90) if n in item.width] == [n for n in range(1, 90) if rule(10, n)]
    with pytest.raises(DiagnosticError, match="depend on each other"):
        accept_every_size(graph, load(entry_points=False), contract)


@pytest.mark.parametrize(
    ("rule", "accepted"),
    [(lambda h, w: not (h % 3 == 2 and w % 3 == 2), False), (lambda h, w: h % 3 != 2 or w % 2 == 0, False)],
)
def test_a_pair_that_shows_that_sizes_depend_on_each_other(rule: Callable[[int, int], bool], accepted: bool) -> None:
    """At the size of the network the width is not asked for, so that only other pairs show it; the first one is named."""
    graph, contract = contract_with(rule, "12x10x3")
    ((place, message),) = contract.coupled
    found = re.fullmatch(r"height and width depend on each other, as (\d+) x (\d+) shows", message)
    assert found is not None
    width, height = map(int, found.groups())
    assert place == "r"
    assert rule(height, width) is accepted
    assert contract.accepts({"in": (height, width)}) is accepted
    (item,) = contract.inputs
    assert height in item.height
    assert width in item.width
    with pytest.raises(DiagnosticError, match="depend on each other"):
        accept_every_size(graph, load(entry_points=False), contract)


def test_pairs_of_small_sizes_are_exceptions() -> None:
    """Pairs that are refused although each size is accepted with others: a finite number of them."""
    _, contract = contract_with(lambda h, w: h * w > 2, "12x10x3")
    assert contract.exceptions == ((1, 1), (1, 2), (2, 1))
    assert not contract.coupled
    (item,) = contract.inputs
    assert item.height.is_free
    assert item.width.is_free


def test_a_division_by_a_size_asks_for_no_period() -> None:
    region = Region((2,))
    size = region.size(0, 4, 4)
    assert (3 * size) // size == 3
    assert (size * 5) % size == 0
    assert region.high == [None]
    with pytest.raises(RefinePeriod) as refine:
        _ = size // 6
    assert (refine.value.variable, refine.value.factor) == (0, 3)


def test_a_padding_that_does_not_help_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, contract = contract_with(lambda h, w: h % 4 == 0)
    monkeypatch.setattr(size_fix, "size_contract", lambda *_: contract)
    with pytest.raises(DiagnosticError) as caught:
        accept_every_size(graph, load(entry_points=False), contract)
    (finding,) = caught.value.diagnostics
    assert finding.message == "after padding, the valid sizes would still be multiples of 4 x any size"
    monkeypatch.setattr(size_fix, "size_contract", lambda *_: replace(contract, inputs=(), coupled=(("r", "why"),)))
    with pytest.raises(DiagnosticError, match="after padding, the valid sizes would still be no size"):
        accept_every_size(graph, load(entry_points=False), contract)


def test_a_plugin_without_its_parts_is_told_what_it_lacks() -> None:
    with pytest.raises(
        TypeError, match=r"^operator type 'Bad Type' must be lower case letters, digits and underscores$"
    ):

        class Bad(Operator, type="Bad Type"):
            pass

    with pytest.raises(TypeError, match=r"^Loose.size: declare parameters with param\(default=...\)$"):

        class Loose(Operator, type="loose"):
            size: int = 3

    class BareLayer(Operator, type="bare_layer_2"):
        pass

    bare = BareLayer()
    assert (bare.title, bare.icon, bare.synonyms) == ("Bare layer 2", "", ())
    for name in ("infer", "torch", "onnx", "evaluate"):
        with pytest.raises(NotImplementedError, match=f"^bare_layer_2: {name} is not declared$"):
            getattr(bare, name)(())
    assert (bare.flops((), ()), bare.weights(()), bare.summary(), bare.base_name()) == (0, (), "", "bare_layer_2")
    assert (bare.options(), bare.labels("y"), bare.reach(), bare.faults()) == ((), (), None, ())
    assert (bare.also_set("a", 1), bare.scaled_down(2), BareLayer.help()) == ({}, {}, "")
