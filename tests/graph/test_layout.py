"""Automatic layout: columns to the right, nothing overlaps, main paths are straight, the same network looks the same."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from recorded import check_recorded

from designer.graph.graph import Graph
from designer.graph.layout import LayerBox, arrange, columns, order
from designer.graph.layout.columns import components
from designer.graph.layout.columns import network as layered
from designer.graph.layout.order import crossings, order_columns
from designer.graph.model import GRID, Layer, Source

BOX = LayerBox(160, 72, (32, 50, 68), {"": 32})


def net(links: dict[str, str], **positions: tuple[int, int]) -> Graph:
    """`links`: the inputs of each layer, separated by spaces."""
    return Graph(
        Layer(name, "x", positions.get(name, (0, 0)), tuple(Source.parse(t) for t in inputs.split()))
        for name, inputs in links.items()
    )


def laid(graph: Graph, names=None, **boxes: LayerBox) -> dict[str, tuple[int, int]]:
    return arrange(graph, {layer.name: boxes.get(layer.name, BOX) for layer in graph}, names)


def random_net(count: int, seed: int) -> Graph:
    dice = random.Random(seed)
    layers = [Layer("n0", "x")]
    for i in range(1, count):
        sources = {dice.randrange(max(0, i - 6), i), *([dice.randrange(i)] if i % 5 == 0 else [])}
        layers.append(Layer(f"n{i}", "x", (0, 0), tuple(Source(f"n{s}") for s in sorted(sources))))
    return Graph(layers)


def overlaps(places: dict[str, tuple[int, int]], box: LayerBox = BOX) -> list[tuple[str, str]]:
    found = []
    names = sorted(places)
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            (ax, ay), (bx, by) = places[a], places[b]
            if abs(ax - bx) < box.width and abs(ay - by) < box.height:
                found.append((a, b))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_links_run_right_and_nothing_overlaps(seed):
    graph = random_net(120, seed)
    places = laid(graph)
    assert places.keys() == graph.layers.keys()
    assert all(x % GRID == 0 and y % GRID == 0 for x, y in places.values())
    assert all(places[a][0] + BOX.width < places[b][0] for a, _, b, _ in graph.links())
    assert overlaps(places) == []


def test_a_chain_is_straight_and_a_skip_does_not_bend_it():
    graph = net({"a": "", "b": "a", "c": "b", "d": "c", "e": "d a"})
    places = laid(graph)
    assert len({y for _, y in places.values()}) == 1
    assert [places[n][0] for n in "abcde"] == [0, 224, 448, 672, 896]


def test_links_into_one_layer_do_not_cross():
    places = laid(net({"i": "", "a": "i", "b": "i", "c": "i", "sum": "c a b"}))
    assert places["c"][1] < places["a"][1] < places["b"][1]


def test_deeper_levels_stand_lower():
    down, up = LayerBox(160, 72, (32, 50), {"": 32}, 1), BOX
    places = laid(net({"a": "", "pool": "a", "mid": "pool", "up": "mid", "cat": "up a"}), pool=down, mid=down, up=up)
    assert places["pool"][1] == places["mid"][1] > places["a"][1]
    assert places["up"][1] == places["cat"][1] < places["mid"][1]


def test_the_corner_stays_and_others_are_left_alone():
    graph = net({"a": "", "b": "a", "c": "b"}, a=(320, 96), b=(160, 64), c=(0, 0))
    places = laid(graph, ["a", "b"])
    assert places == {"a": (160, 64), "b": (384, 64)}


def test_parts_without_links_stand_apart():
    places = laid(net({"a": "", "b": "a", "c": "", "d": "c", "alone": "", "alone_2": ""}))
    assert overlaps(places) == []
    assert places["a"][1] < places["c"][1] < places["alone"][1] == places["alone_2"][1]


def test_loops_and_missing_producers_do_no_harm():
    places = laid(net({"a": "c", "b": "a gone", "c": "b", "d": "d"}))
    assert len(set(places.values())) == 4


def test_the_order_of_the_file_does_not_matter():
    graph = random_net(60, 9)
    other = Graph(sorted(graph, key=lambda layer: layer.type + layer.name, reverse=True))
    assert laid(graph) == laid(other)


def test_nothing_to_do():
    assert laid(Graph()) == {}
    assert laid(net({"a": ""}, a=(48, 16))) == {"a": (48, 16)}
    assert laid(net({"a": ""}), ["gone"]) == {}


def test_a_u_net_in_grid_units():
    graph = net({"in": "", "e1": "in", "e2": "e1", "e3": "e2", "d2": "e3 e2", "d1": "d2 e1", "out": "d1"})
    levels = {"e2": 1, "e3": 2, "d2": 1}
    boxes = {name: LayerBox(160, 72, (32, 50, 68), {"": 32}, levels.get(name, 0)) for name in graph.layers}
    found = {name: (x / GRID, y / GRID) for name, (x, y) in arrange(graph, boxes).items()}
    assert found == {
        "in": (0, 0), "e1": (14, 0), "e2": (28, 8), "e3": (42, 16), "d2": (56, 8), "d1": (70, 0), "out": (84, 0)
    }  # fmt: skip


def test_columns_are_as_wide_as_their_widest_layer_and_rows_as_high_as_each():
    graph = net({"in": "", "a": "in", "b": "in", "c": "in", "j": "a b c"})
    wide, high = LayerBox(320, 72, (32,), {"": 32}), LayerBox(160, 200, (100,), {"": 100})
    found = laid(graph, a=wide, b=high)
    column, row = 160 + 4 * GRID, 2 * GRID
    assert {name: x for name, (x, _) in found.items()} == {
        "in": 0, "a": column, "b": column, "c": column, "j": column + 320 + 4 * GRID
    }  # fmt: skip
    (a, b, c) = (found[name][1] for name in "abc")
    assert abs(b - (a + 72 + row)) < GRID
    assert abs(c - (b + 200 + row)) < GRID


def test_layers_that_only_feed_far_columns_are_next_to_them():
    graph = net({"in": "", "a": "in", "b": "a", "c": "b far", "far": ""})
    found = laid(graph)
    assert found["far"][0] == found["b"][0]


@pytest.mark.parametrize(("seed", "most"), [(0, 10), (1, 20), (2, 17), (3, 12), (4, 15), (5, 10)])
def test_sweeps_leave_few_crossings(seed: int, most: int) -> None:
    graph = random_net(60, seed)
    found = layered(graph, graph.layers, {})
    order_columns(found)
    position = {point: place for column in found.columns for place, point in enumerate(column)}
    assert crossings(found, [position[point] for point in range(len(found.column))]) <= most


def test_the_order_with_the_fewest_crossings_of_all_sweeps_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further sweeps can make it worse."""
    counts: list[int] = []
    worse = 0

    def counted(made, position) -> int:
        counts.append(crossings(made, position))
        return counts[-1]

    monkeypatch.setattr(order, "crossings", counted)
    for seed in range(12):
        graph = random_net(40, seed)
        made = layered(graph, graph.layers, {})
        counts.clear()
        order_columns(made)
        position = [0] * len(made.column)
        for column in made.columns:
            for place, point in enumerate(column):
                position[point] = place
        assert sorted(point for column in made.columns for point in column) == list(range(len(made.column)))
        assert crossings(made, position) == min(counts)
        worse += counts[-1] > min(counts)
    assert worse > 3


def test_a_link_has_a_bend_in_every_column_that_it_passes():
    graph = net({"a": "", "b": "a", "c": "b", "d": "c a"})
    found = layered(graph, graph.layers, {})
    assert dict(zip(found.names, found.column, strict=False)) == {"a": 0, "b": 1, "c": 2, "d": 3}
    assert sorted(found.column[len(found.names) :]) == [1, 2]
    assert all(found.column[edge.end] == found.column[edge.start] + 1 for edge in found.edges)


def various_net(seed: int) -> tuple[Graph, dict[str, LayerBox]]:
    """Several parts, some with loops, dangling links, named outputs and layers of different sizes and levels."""
    dice = random.Random(seed)
    layers, boxes, start = [], {}, 0
    for _ in range(dice.randrange(1, 4)):
        count = dice.randrange(1, 9)
        names = [f"n{start + i}" for i in range(count)]
        for i, name in enumerate(names):
            before = names[max(0, i - dice.choice([1, 2, 6])) : i]
            inputs = [dice.choice(before) for _ in range(dice.randrange(0 if i == 0 else 1, 4))] if before else []
            if dice.random() < 0.15:
                inputs.append(dice.choice([*names, "gone"]))
            sources = tuple(Source(each, dice.choice(["", "", "y1"])) for each in inputs)
            place = (dice.randrange(-300, 300), dice.randrange(-200, 200))
            layers.append(Layer(name, "x", place, sources))
            height = dice.choice([40, 72, 130])
            boxes[name] = LayerBox(
                dice.choice([100, 160, 230]), height, (20, 30, 38), {"": 20, "y1": 34}, i * dice.choice([0, 0, 1]) // 3
            )
        start += count
    dice.shuffle(layers)
    return Graph(layers), boxes


def test_places_are_as_recorded() -> None:
    lines = []
    for seed in range(40):
        graph, boxes = various_net(seed)
        chosen = None if seed % 4 else sorted(graph.layers)[::2]
        found = arrange(graph, boxes, chosen)
        where = ", ".join(f"{name} {x} {y}" for name, (x, y) in sorted(found.items()))
        lines.append(f"{seed}: {'' if chosen is None else 'every second, '}{where}")
    check_recorded("edits/layout.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize("seed", range(20))
def test_parts_are_sorted_by_size_and_name(seed: int) -> None:
    graph, _ = various_net(seed)
    names = [name for name in graph.layers if seed % 3 or name != "n1"]
    linked = {name: {name} for name in names}
    for start, _, end, _ in graph.links():
        if start in linked and end in linked and linked[start] is not linked[end]:
            joined = linked[start] | linked[end]
            linked.update(dict.fromkeys(joined, joined))
    parts = sorted({tuple(sorted(part)) for part in linked.values()}, key=lambda part: (-len(part), part))
    alone = [part[0] for part in parts if len(part) == 1]
    assert components(graph, names) == [*([*part] for part in parts if len(part) > 1), *([alone] if alone else [])]


@pytest.mark.parametrize("seed", range(20))
def test_crossings_are_counted_pair_by_pair(seed: int) -> None:
    graph, _ = various_net(seed)
    found = layered(graph, graph.layers, {})
    order_columns(found)
    position = [0] * len(found.column)
    for column in found.columns:
        for place, point in enumerate(column):
            position[point] = place
    ends = [(e.start, position[e.start], (position[e.end], e.entry)) for e in found.edges]
    pairs = sum(
        found.column[a[0]] == found.column[b[0]] and (a[1] - b[1]) * ((a[2] > b[2]) - (a[2] < b[2])) < 0
        for i, a in enumerate(ends)
        for b in ends[i + 1 :]
    )
    assert crossings(found, position) == pairs


def test_more_bends_than_there_is_room_for_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest links are without bends then; layers keep their columns."""
    graph = net({"a": "", "b": "a", "c": "b a", "d": "c a", "e": "d b"})
    usual = layered(graph, graph.layers, {})
    for room, bends in ((0, 0), (1, 1), (2, 2), (3, 2), (4, 4)):
        monkeypatch.setattr(columns, "MAX_BENDS", room)
        found = layered(graph, graph.layers, {})
        assert found.column[:5] == usual.column[:5] == [0, 1, 2, 3, 4]
        assert len(found.column) - 5 <= room
        assert len(found.column) - 5 == bends, room
        places = laid(graph)
        assert len(set(places.values())) == 5


def longest(start: int, following: dict[int, list[int]]) -> int:
    """How many links the longest path from a point has."""
    return max((1 + longest(each, following) for each in following.get(start, [])), default=0)


@pytest.mark.parametrize("seed", range(30))
def test_links_of_the_longest_paths_weigh_most(seed: int) -> None:
    """Of each layer, the link to the reader before the longest path, unless that continues a longer one."""
    graph = random_net(16, seed)
    found = layered(graph, graph.layers, {})
    number = {name: place for place, name in enumerate(found.names)}
    after: dict[int, list[int]] = {}
    before: dict[int, list[int]] = {}
    for start, _, end, _ in graph.links():
        after.setdefault(number[start], []).append(number[end])
        before.setdefault(number[end], []).append(number[start])
    near = [(e.start, e.end) for e in found.edges if not found.is_bend(e.start) and not found.is_bend(e.end)]
    for edge in found.edges:
        bends = found.is_bend(edge.start) + found.is_bend(edge.end)
        if bends:
            assert edge.weight == (6 if bends == 2 else 2)
            continue
        readers = [end for start, end in near if start == edge.start]
        producers = [start for start, end in near if end == edge.end]
        first = min(readers, key=lambda each: (-longest(each, after), each))
        last = min(producers, key=lambda each: (-longest(each, before), each))
        assert edge.weight == (16 if (first, last) == (edge.end, edge.start) else 1), edge


def test_points_edges_and_places_of_larger_networks() -> None:
    """Compared with a recorded text: columns from top to bottom, edges with their weights, places."""
    lines = []
    for seed in range(12):
        dice = random.Random(seed)
        graph = Graph(
            replace(layer, inputs=tuple(Source(s.layer, dice.choice(["", "", "y1"])) for s in layer.inputs))
            for layer in random_net(10 + 2 * seed, seed)
        )
        boxes = {
            name: LayerBox(160, dice.choice([72, 110]), (32, 50, 68), {"": 32, "y1": 54}, i // 6 % 3 if seed % 2 else 0)
            for i, name in enumerate(graph.layers)
        }
        found = layered(graph, graph.layers, {name: box.level for name, box in boxes.items()})
        order_columns(found)
        lines.append(f"{seed}: {' '.join(found.names)}")
        lines.append("  columns " + " | ".join(" ".join(map(str, column)) for column in found.columns))
        lines.append("  levels " + " ".join(map(str, found.level)))
        lines.append(
            "  edges "
            + ", ".join(f"{e.start}{e.port and ':' + e.port}>{e.end}:{e.entry} {e.weight}" for e in found.edges)
        )
        places = arrange(graph, boxes)
        lines.append("  places " + ", ".join(f"{name} {x} {y}" for name, (x, y) in sorted(places.items())))
    check_recorded("edits/layout_of_larger_networks.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize("seed", range(20))
def test_long_links_of_one_output_share_their_bends(seed: int) -> None:
    """Each output has one bend in each column up to before that of its last reader; links of other outputs have others."""
    dice = random.Random(seed)
    graph = Graph(
        replace(layer, inputs=tuple(Source(s.layer, dice.choice(["", "y1"])) for s in layer.inputs))
        for layer in random_net(24, seed)
    )
    levels = {name: i % 4 for i, name in enumerate(graph.layers)}
    found = layered(graph, graph.layers, levels)
    column = dict(zip(found.names, found.column, strict=False))
    last: dict[tuple[str, str], int] = {}
    for start, port, end, _ in graph.links():
        if column[end] > column[start] + 1:
            last[start, port] = max(last.get((start, port), 0), column[end])
    bends = [(levels[start], each) for (start, _), end in last.items() for each in range(column[start] + 1, end)]
    count = len(found.names)
    assert sorted(zip(found.level[count:], found.column[count:], strict=True)) == sorted(bends)
    before: dict[int, tuple[int, str]] = {}  # the output that each bend comes from
    reached = set()
    for edge in sorted(found.edges, key=lambda edge: found.column[edge.end]):
        origin = before[edge.start] if found.is_bend(edge.start) else (edge.start, edge.port)
        if found.is_bend(edge.end):
            assert before.setdefault(edge.end, origin) == origin
        else:
            reached.add((found.names[origin[0]], origin[1], found.names[edge.end], edge.entry))
    assert reached == {(start, port, end, index) for start, port, end, index in graph.links()}
