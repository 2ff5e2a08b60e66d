"""What is said of the parts of a torch expression, of random ones whose parts are read in several places."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.operators.torch_data import (
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchItem,
    TorchMethod,
    TorchModule,
    TorchName,
    TorchParameter,
    children,
    modules,
    uses,
    uses_input,
    walk,
)
from designer.operators.torch_faults import check_shared

A, B = TorchInput(0), TorchInput(1)
NAME = TorchName("torch.float32")


@pytest.mark.parametrize(
    ("expr", "found"),
    [
        (TorchModule("torch.nn.Linear", {"bias": A}, (A, 2), "m"), [A, 2]),
        (TorchCall("torch.cat", ([A, B],), {"dim": 1, "out": B}), [[A, B], 1, B]),
        (TorchMethod("add", A, (B, 3), {"alpha": B, "dtype": NAME}), [A, B, 3, B, NAME]),
        (TorchItem(A, (slice(None), 1)), [A]),
        ((A, 1), [A, 1]),
        ([B], [B]),
        (A, []),
        (TorchParameter("w", (2,), (1.0, 2.0)), []),
        (NAME, []),
        ("text", []),
    ],
)
def test_the_direct_parts_of_an_expression(expr: Any, found: list[Any]) -> None:
    assert list(children(expr)) == found


def some_argument(draw: Random, known: list[TorchExpr]) -> Any:
    kind = draw.randrange(6)
    if kind == 0:
        return draw.choice([1, "mode", None, NAME])
    if kind == 1:
        return [draw.choice(known), draw.choice(known)]
    if kind == 2:
        return (draw.choice(known), [3, draw.choice(known)])
    return draw.choice(known)


def some_expression(draw: Random) -> Any:
    """Several results; each part reads parts that were made before it."""
    known: list[TorchExpr] = [TorchInput(0), TorchInput(1), TorchParameter("w", (2,))]
    for number in range(draw.randint(1, 9)):
        args = tuple(some_argument(draw, known) for _ in range(draw.randint(1, 3)))
        named = {f"k{place}": some_argument(draw, known) for place in range(draw.randint(0, 2))}
        match draw.randrange(5):
            case 0:
                made: TorchExpr = TorchModule("torch.nn.ReLU", {}, args, f"m{number}")
            case 1:
                made = TorchMethod("add", draw.choice(known), args, named)
            case 2 | 3:
                made = TorchItem(draw.choice(known), draw.choice([0, 1, slice(1)]))
            case _:
                made = TorchCall("torch.f", args, named)
        known.append(made)
    return tuple(draw.choice(known[3:]) for _ in range(draw.randint(1, 3)))


def flat(item: Any) -> list[TorchExpr]:
    """The expressions in an argument, in their order."""
    if isinstance(item, tuple | list):
        return [part for each in item for part in flat(each)]
    return [item] if isinstance(item, TorchExpr) else []


def reads(expr: Any) -> list[TorchExpr]:
    """The expressions that one reads itself."""
    match expr:
        case TorchModule():
            return flat(expr.args)
        case TorchCall():
            return flat((*expr.args, *expr.kwargs.values()))
        case TorchMethod():
            return flat((expr.target, *expr.args, *expr.kwargs.values()))
        case TorchItem():
            return flat(expr.value)
    return []


@pytest.mark.parametrize("seed", range(60))
def test_how_often_every_part_is_read(seed: int) -> None:
    """Once for each place in an expression that is computed; an item is not computed, so that its readers read the whole."""
    root = some_expression(Random(seed))
    parts: dict[int, TorchExpr] = {}
    order: list[TorchExpr] = []

    def enter(item: TorchExpr) -> None:
        if id(item) not in parts:
            parts[id(item)] = item
            order.append(item)
            for part in reads(item):
                enter(part)

    for item in flat(root):
        enter(item)

    def readers(part: TorchExpr) -> int:
        found = sum(item is part for item in flat(root))
        for item in parts.values():
            times = sum(read is part for read in reads(item))
            found += times * (readers(item) if isinstance(item, TorchItem) and times else 1)
        return found

    counts = uses(root)
    assert counts == {number: readers(part) for number, part in parts.items()}
    walked = [item for item in walk(root) if isinstance(item, TorchExpr)]
    assert [id(item) for item in walked] == [id(item) for item in order], "parents first, each once"
    for index in (0, 1, 2):
        inputs = [part for part in parts.values() if isinstance(part, TorchInput) and part.index == index]
        assert uses_input(root, index) == sum(readers(part) for part in inputs)
    assert uses_input(root) == uses_input(root, 0)
    assert [item.name for item in modules(root)] == [item.name for item in order if isinstance(item, TorchModule)]


LINEAR = TorchModule("torch.nn.Linear", {"in_features": 3, "out_features": 2}, (A,))
OTHER = TorchModule("torch.nn.Linear", {"in_features": 4, "out_features": 2}, (A,))
TABLE = TorchParameter("table", (2, 3))


@pytest.mark.parametrize(
    ("made", "present", "shared"),
    [
        ({"a": LINEAR}, {"a": LINEAR, "b": OTHER}, True),
        ({"a": LINEAR}, {"a": TorchModule(LINEAR.path, dict(LINEAR.kwargs), (B, 2))}, True),
        ({"a": LINEAR}, {"a": OTHER}, False),
        ({"a": LINEAR}, {"a": TorchModule("torch.nn.Bilinear", LINEAR.kwargs)}, False),
        ({"a": LINEAR}, {"b": LINEAR}, False),
        ({"a": LINEAR, "a_table": TABLE}, {"a": LINEAR}, False),
        ({"a": LINEAR, "a_table": TABLE}, {"a": LINEAR, "a_table": TABLE}, True),
        ({"a_table": TABLE}, {"a_table": TorchParameter("table", (3, 2))}, False),
        ({"a": {"one": LINEAR, "two": OTHER}}, {"a": {"one": LINEAR, "two": OTHER}}, True),
        ({"a": {"one": LINEAR, "two": OTHER}}, {"a": {"one": LINEAR, "two": LINEAR}}, False),
        ({"a": {"one": LINEAR}}, {"a": {"one": LINEAR, "two": OTHER}}, False),
        ({"a": {"one": LINEAR}}, {"a": LINEAR}, False),
        ({}, {"a": LINEAR}, True),
    ],
)
def test_layers_that_share_weights_need_the_same_modules_and_tensors(
    made: dict[str, Any], present: dict[str, Any], shared: bool
) -> None:
    if shared:
        check_shared("second", "first", made, present)
        return
    with pytest.raises(DiagnosticError) as caught:
        check_shared("second", "first", made, present)
    (found,) = caught.value.diagnostics
    assert (found.code, found.layer) == ("shared-shape", "second")
    assert found.message == ("'second' cannot share the weights of 'first': it needs tensors of other names or shapes")
