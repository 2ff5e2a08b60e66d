"""What layers are colored with: shares, texts, differences, layers of inner scopes, and the critical path."""

from __future__ import annotations

import random

import pytest
from profiling_networks import layer_

from designer.graph.graph import Graph
from designer.profiling.difference import RowDifference, RunDifference
from designer.profiling.heat import DIFFERENCE, METRICS, Heat, critical_path, difference_heat, heat, in_scope
from designer.profiling.schema import OperatorProfile, ProfileRun


def run(*rows) -> ProfileRun:
    return ProfileRun("torch", "fp32", "nchw", "cpu", 1, "8x4", None, None, rows)


def row(layers, time_ms, **more) -> OperatorProfile:
    return OperatorProfile(tuple(layers.split()), "convolution", time_ms, **more)


@pytest.mark.parametrize(
    ("metric", "expected", "ends", "label"),
    [
        ("time", {"a": 0.004, "b": 0.001}, ("0", "4.00 ms"), "1.00 ms"),
        ("flops", {"a": 2e9, "b": 5e8}, ("0", "2.00 GFLOP"), "500 MFLOP"),
        ("memory", {"a": 1024, "b": 4096}, ("0", "4.00 KiB"), "4.00 KiB"),
        ("roof", {"a": 1.6, "b": 4.0}, ("0", "4.00 x"), "4.00 x"),
    ],
)
def test_amounts_of_each_metric(metric, expected, ends, label):
    rows = (
        row("a", 4.0, flops=2 * 10**9, bytes=1024, roof_ms=2.5),
        row("b", 1.0, flops=5 * 10**8, bytes=4096, roof_ms=0.25),
    )
    found = heat(run(*rows), METRICS[metric])
    assert found.values == pytest.approx(expected)
    assert found.most == pytest.approx(max(expected.values()))
    assert (found.ends, found.label("b")) == (ends, label)
    assert found.share("a") == pytest.approx(expected["a"] / max(expected.values()))


def test_rows_without_a_roof_have_no_distance_from_it():
    assert heat(run(row("a", 4.0), row("b", 1.0, roof_ms=0.5)), METRICS["roof"]).values == {"b": 2.0}


def test_a_layer_without_operations_has_the_amount_0():
    found = heat(run(row("a", 4.0, flops=8), row("b", 1.0)), METRICS["flops"])
    assert found.values == {"a": 8.0, "b": 0.0}
    assert (found.share("b"), found.label("b")) == (0.0, "0 FLOP")


def test_shares_without_any_amount():
    assert Heat(METRICS["time"], {}).most == 0.0
    assert Heat(METRICS["flops"], {"a": 0.0}).share("a") == 0.0


def test_differences_are_signed_and_those_within_the_noise_are_zero():
    rows = (
        RowDifference(("a", "t/x"), 5.0, 1.0, 0.1),
        RowDifference(("b", "t/y"), 1.0, 2.0, 0.1),
        RowDifference(("c",), 1.0, 1.05, 0.1),
        RowDifference((), 1.0, 3.0, 0.1),
        RowDifference(("new",), None, 0.5, 0.1),
    )
    before = run()
    found = difference_heat(RunDifference(before, before, rows[0], rows), lambda path: path.partition("/")[0])
    expected = {"a": -0.004, "t": -0.003, "b": 0.001, "c": 0.0, "new": 0.0005}
    assert found.values == pytest.approx(expected)
    assert found.signed
    assert found.most == pytest.approx(0.004)
    assert [found.share(name) for name in expected] == pytest.approx([-1.0, -0.75, 0.25, 0.0, 0.125])
    assert [found.label(name) for name in expected] == ["-4.00 ms", "-3.00 ms", "+1.00 ms", "0 s", "+500 \u00b5s"]
    assert found.ends == ("-4.00 ms", "+4.00 ms")
    assert not Heat(METRICS["time"], {}).signed
    hidden = difference_heat(RunDifference(before, before, rows[0], rows), lambda path: "" if path == "a" else path)
    assert set(hidden.values) == {"t/x", "b", "t/y", "c", "new"}


def test_a_scope_shows_the_largest_magnitude_with_the_label_of_its_layer():
    inner = Heat(
        DIFFERENCE, {"t/a": 0.001, "t/b": -0.003, "t/c": 0.002, "u": -0.001, "hidden/d": 0.009}, {"t/b": "faster"}
    )
    shown = in_scope(inner, lambda path: "" if path.startswith("hidden") else path.partition("/")[0])
    assert shown.values == {"t": -0.003, "u": -0.001}
    assert shown.labels == {"t": "faster", "u": "-1.00 ms"}
    assert shown.label("t") == "faster"
    assert shown.metric is DIFFERENCE


def test_a_scope_shows_layers_without_an_amount_and_of_equal_ones_the_last():
    found = Heat(METRICS["time"], {"t/a": 0.0, "u/a": 0.002, "u/b": 0.002}, {"u/a": "first", "u/b": "last"})
    shown = in_scope(found, lambda path: path.partition("/")[0])
    assert shown.values == {"t": 0.0, "u": 0.002}
    assert (shown.label("t"), shown.label("u")) == ("0 s", "last")


GRAPH = Graph(
    [
        layer_("image", "input", dims="8x4x3"),
        layer_("a", "convolution", "image"),
        layer_("b", "convolution", "image"),
        layer_("c", "element_wise", "a,b"),
        layer_("side", "convolution", "a"),
        layer_("result", "output", "c"),
    ]
)


@pytest.mark.parametrize(
    ("times", "path"),
    [
        ({"a": 3.0, "b": 5.0, "c": 1.0, "side": 1.0}, ("image", "b", "c")),
        ({"a": 3.0, "b": 2.5, "c": 1.0, "side": 0.5}, ("image", "a", "c")),
        ({"a": 3.0, "b": 5.0, "c": 1.0, "side": 4.0}, ("image", "a", "side")),
        ({"a b": 3.0, "c": 1.0, "side": 0.5}, ("image", "a", "b", "c")),
        ({"a": 3.0, "b": 3.0, "c": 1.0, "side": 0.5}, ("image", "a", "c")),  # of equally long ones the first
        ({"b": 3.0, "a": 3.0, "c": 1.0, "side": 1.0}, ("image", "a", "side")),
        ({"c": 1.0, "a": 2.0}, ("image", "a", "c")),  # a layer without a row takes no time
    ],
)
def test_the_critical_path_is_the_longest_chain(times, path):
    found = critical_path(run(*(row(layers, ms) for layers, ms in times.items())), GRAPH)
    assert tuple(name for name in found if name != "result") == path


@pytest.mark.parametrize(
    ("fused", "other", "path"), [(3.0, 5.0, ("image", "d", "c")), (5.5, 5.0, ("image", "a", "b", "c"))]
)
def test_layers_of_one_step_that_read_each_other_take_its_time_once(fused, other, path):
    graph = Graph(
        [
            layer_("image", "input", dims="8x4x3"),
            layer_("a", "convolution", "image"),
            layer_("b", "activation", "a"),
            layer_("d", "convolution", "image"),
            layer_("c", "element_wise", "b,d"),
        ]
    )
    assert critical_path(run(row("a b", fused), row("d", other), row("c", 1.0)), graph) == path


def test_an_empty_network_has_no_critical_path():
    assert critical_path(run(row("a", 1.0)), Graph([])) == ()


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("time", {"t": 0.0085, "u": 0.004}),
        ("flops", {"t": 17.0, "u": 8.0}),
        ("memory", {"t": 85.0, "u": 40.0}),
        ("roof", {"t": 8.0, "u": 4.0}),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_a_row_counts_once_for_the_instance_that_shows_several_of_its_layers(metric, expected, order):
    """The first row is fused of two layers of the instance `t` and one outside; `hidden` is displayed nowhere."""
    rows = (
        row("t/a t/b u", 4.0, flops=8, bytes=40, roof_ms=1.0),
        row("t/c", 4.0, flops=8, bytes=40, roof_ms=0.5),
        row("t/d", 0.5, flops=1, bytes=5, roof_ms=0.5),
        row("hidden/e", 9.0, flops=99, bytes=99, roof_ms=0.1),
    )
    in_sight = {"t/a": "t", "t/b": "t", "t/c": "t", "t/d": "t", "u": "u"}
    found = heat(run(*rows[::order]), METRICS[metric], lambda path: in_sight.get(path, ""))
    assert found.values == pytest.approx(expected)


@pytest.mark.parametrize(
    ("slow", "fast", "path"),
    [(5.0, 2.0, ("slow", "a", "b", "end")), (2.0, 5.0, ("image", "before", "fast", "a", "b", "end"))],
)
def test_a_step_of_several_layers_begins_after_the_last_of_what_any_of_them_reads(slow, fast, path):
    """`slow` is read by its first layer, `fast` by its second, and `end` reads the first only."""
    graph = Graph(
        [
            layer_("image", "input", dims="8x4x3"),
            layer_("slow", "input", dims="8x4x3"),
            layer_("a", "convolution", "slow"),
            layer_("before", "convolution", "image"),
            layer_("fast", "convolution", "before"),
            layer_("b", "element_wise", "a,fast"),
            layer_("end", "convolution", "a"),
        ]
    )
    rows = (row("slow", slow), row("fast", fast), row("a b", 3.0), row("end", 1.0))
    assert critical_path(run(*rows), graph) == path


def chosen_rows(graph: Graph, chance: random.Random) -> list[OperatorProfile]:
    """Rows of one layer or of a layer and one that reads it, and some layers without a row."""
    rows, free = [], graph.order()[0]
    while free:
        names = [free.pop(0)]
        readers = [name for name in sorted(graph.consumers(names[0])) if name in free]
        if readers and chance.random() < 0.5:
            names.append(chance.choice(readers))
            free.remove(names[1])
        if chance.random() < 0.9:
            rows.append(row(" ".join(names), float(chance.randint(1, 9))))
    return rows


def longest_time(graph: Graph, rows: list[OperatorProfile]) -> float | None:
    """By definition: the largest sum of times of rows that read each other, over all ways. None if rows form a loop."""
    of = {layer: place for place, each in enumerate(rows) for layer in each.layers}

    def ending(node, below):
        if node in below:
            raise RecursionError
        layers = rows[node].layers if isinstance(node, int) else (node,)
        reads = {of.get(s.layer, s.layer) for name in layers for s in graph[name].inputs if s is not None} - {node}
        own = rows[node].time_ms if isinstance(node, int) else 0.0
        return own + max((ending(read, (*below, node)) for read in reads), default=0.0)

    try:
        return max(ending(of.get(name, name), ()) for name in graph.layers)
    except RecursionError:
        return None


def test_no_chain_of_rows_takes_longer_than_the_critical_path():
    loops = 0
    for seed in range(150):
        chance = random.Random(seed)
        names = [f"n{number}" for number in range(7)]
        chance.shuffle(names)
        layers = [layer_(names[0], "input", dims="8x4x3")]
        for place in range(1, 7):
            reads = chance.sample(names[:place], min(place, chance.choice((1, 1, 2))))
            layers.append(layer_(names[place], "element_wise", ",".join(reads)))
        graph = Graph(layers)
        rows = chosen_rows(graph, chance)
        path = critical_path(run(*rows), graph)
        assert len(set(path)) == len(path)
        longest = longest_time(graph, rows)
        loops += longest is None
        if longest is not None:
            assert sum(each.time_ms for each in rows if each.layers[0] in path) == longest, seed
            assert all(not set(each.layers) & set(path) or set(each.layers) <= set(path) for each in rows), seed
    assert 0 < loops < 75
