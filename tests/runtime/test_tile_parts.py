"""Tiles without an engine: memory, decisions, and cuts that are checked pixel by pixel."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest
from runtime_networks import RELU, layer, pixels

from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.runtime import tiles
from designer.runtime.api import AUTO, ONE_TILE, RunOptions, RunResult
from designer.runtime.finite import NonFinite
from designer.runtime.network import inputs_of, type_of
from designer.runtime.plan import make_plan
from designer.runtime.session import Session
from designer.runtime.tiles import Tiling, Tilings, peak_bytes


def part_of(registry, graph, *targets):
    inference = Inference(graph, registry)
    (step,) = make_plan(inference, [Source(name) for name in targets]).steps
    return inference, step


def random_part(seed: int) -> tuple[Graph, list[str]]:
    source = random.Random(seed)
    layers = [layer("image", "input", dims="12x10x3")]
    for number in range(source.randint(2, 10)):
        one, other = (source.choice(layers).name for _ in range(2))
        kind = source.choice(["convolution", "activation", "concatenation"])
        reads = f"{one},{other}" if kind == "concatenation" else one
        params = {"features": source.randint(1, 9)} if kind == "convolution" else {}
        layers.append(layer(f"n{number}", kind, reads, RELU if kind == "activation" else None, **params))
    names = [x.name for x in layers[1:]]
    return Graph(layers), source.sample(names, min(2, len(names)))


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("seed", range(10))
def test_the_memory_of_a_part_is_that_of_the_tensors_in_use(runtime_registry, seed, batch):
    graph, targets = random_part(seed)
    inference, step = part_of(runtime_registry, graph, *targets)
    layers, wanted = step.part.layers, {source.layer for source in step.wanted}
    sizes = {name: 4 * prod(type_of(inference, Source(name)).concrete(batch)) for name in layers}
    last = {name: layers.index(name) for name in layers}
    for number, name in enumerate(layers):
        for read in inputs_of(inference, inference.graph[name]):
            if read.layer in last:
                last[read.layer] = number
    used = [
        sum(sizes[name] for name in layers[: now + 1] if name in wanted or last[name] >= now)
        for now in range(len(layers))
    ]
    assert peak_bytes(inference, step, batch) == pytest.approx(max(used) * 2.6)


def chain(*kinds, size="60x44x3") -> Graph:
    layers = [layer("image", "input", dims=size)]
    for number, (kind, params) in enumerate(kinds):
        layers.append(layer(f"{number}", kind, layers[-1].name, **params))
    return Graph([*layers, layer("result", "output", layers[-1].name)])


CONV = [("convolution", {"features": 2, "kernel": kernel, "stride": stride}) for kernel, stride in (
    ("3x3", "1x1"), ("5x3", "1x1"), ("3x3", "2x2"), ("1x1", "1x1"), ("3x5", "2x1"), ("7x7", "1x1"),
)]  # fmt: skip
OTHERS = [
    ("pooling", {"size": "2x2", "stride": "2x2"}), ("pooling", {"size": "3x3", "stride": "3x3"}),
    ("upsample", {"factor": "2x2", "method": "nearest"}), ("transposed_convolution", {"features": 2, "kernel": "4x4", "stride": "2x2"}),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(14))
def test_every_tile_reads_what_its_pixels_need(runtime_registry, seed):
    source = random.Random(seed)
    size = f"{source.choice([60, 61, 75, 96])}x{source.choice([44, 50, 63])}x3"
    graph = chain(*(source.choice(CONV + OTHERS) for _ in range(source.randint(1, 4))), size=size)
    inference, step = part_of(runtime_registry, graph, "result")
    made = Tiling(inference, step)
    for axis in (0, 1):
        unit, length = made.unit(axis), made.base[axis]
        for side in (8, 16, 24, 40):
            found = made.tiles(axis, side)
            assert found[0].core[0] == 0
            assert [tile.core[0] for tile in found[1:]] == [tile.core[1] for tile in found[:-1]]
            covered = np.zeros(type_of(inference, Source("result")).concrete(1)[2 + axis], int)
            for tile in found:
                low, high = tile.cut
                assert 0 <= low <= tile.core[0]
                assert tile.core[1] <= high <= length
                assert low % unit == 0
                assert tile.core[1] - tile.core[0] <= max(side, unit)
                walk = made._walk(axis, made._wanted(axis, tile.core))
                assert made._seam(axis, tile.cut, walk) == ""
                for wanted in step.wanted:
                    start, end = made.region(wanted, axis, tile.core)
                    covered[start:end] += 1
            assert (covered == 1).all()


def test_tiles_of_small_images_are_not_refused(runtime_registry):
    inference, step = part_of(runtime_registry, chain(CONV[0], size="30x20x3"), "result")
    made = Tiling(inference, step)
    per_pixel = peak_bytes(inference, step, 1) / (30 * 20)
    assert made.side_for(per_pixel * 22.5**2, 1) == 20  # with a pixel on each side; smaller than 64
    with pytest.raises(DiagnosticError) as caught:
        made.side_for(per_pixel * 21.5**2, 1)
    (found,) = caught.value.diagnostics
    assert (found.code, found.remedy) == ("out-of-memory", "use a smaller image, or close other programs")
    assert found.message == (
        "the network needs about 12.2 KiB for this image, and even a tile of it with the 2 surrounding pixels that it depends "
        "on needs more than the available 9.39 KiB"
    )
    batch = made.side_for(4 * per_pixel * 22.5**2, 4)
    assert batch == 20


def test_wide_surroundings_make_large_tiles(runtime_registry, monkeypatch):
    kinds = [("convolution", {"features": 2, "kernel": "21x5"}), ("pooling", {"size": "2x2", "stride": "2x2"})]
    inference, step = part_of(runtime_registry, chain(*kinds, size="4000x3000x3"), "result")
    made = Tiling(inference, step)
    around = max(sum(made.around(axis)) for axis in (0, 1))
    assert around == 20
    monkeypatch.setattr(tiles, "USUAL", 1)
    assert made.side_for(1e12, 1) == 8 * around
    monkeypatch.setattr(tiles, "WIDE", 1)
    assert made.side_for(1e12, 1) == 64
    per_pixel = peak_bytes(inference, step, 1) / (4000 * 3000)
    monkeypatch.setattr(tiles, "USUAL", per_pixel * 321.5**2)
    assert made.side_for(1e12, 1) == 302  # 301 rounded up to the stride
    assert made.side_for(per_pixel * 121.5**2, 1) == 100


def test_who_decides_about_tiles(runtime_registry, monkeypatch):
    inference, step = part_of(runtime_registry, chain(CONV[0], size="400x300x3"), "result")
    needed = peak_bytes(inference, step, 1)
    free = [1 << 40]
    monkeypatch.setattr(tiles, "free_memory", lambda: free[0])

    def side(tile, memory=0, batch=1):
        found = Tilings(inference, tile, memory).of(step, "key", batch)
        return None if found is None else found[1]

    assert [side(tile) for tile in (0, ONE_TILE, AUTO)] == [None, None, None]
    assert [side(tile) for tile in (100, 399, 400, 500)] == [100, 399, None, None]
    assert side(AUTO, memory=int(needed) + 1) is None
    assert side(AUTO, memory=int(needed) - 1) is not None
    assert side(AUTO, memory=int(needed) + 1, batch=2) is not None
    assert side(0, memory=1) is None
    free[0] = 1  # small parts do not even ask
    assert side(AUTO) is None
    monkeypatch.setattr(tiles, "ALWAYS_WHOLE", 0)
    free[0] = int(needed / 0.6) + 2
    assert side(AUTO) is None
    free[0] = int(needed / 0.6) - 2
    assert side(AUTO) is not None
    free[0] = 1 << 50
    assert tiles.USUAL == 1 << 30
    monkeypatch.setattr(tiles, "USUAL", 1)
    monkeypatch.setattr(tiles, "WHOLE", needed - 1)
    assert side(AUTO) == 64
    monkeypatch.setattr(tiles, "WHOLE", needed)
    assert side(AUTO) is None
    assert (tiles.SPARE, tiles.SHARE, tiles.PARTS, tiles.SMALLEST, tiles.WIDE) == (2.6, 0.6, 4, 64, 8)


def test_parts_that_have_no_tiles(runtime_registry, monkeypatch):
    kinds = [CONV[0], ("instance_normalization", {})]
    inference, step = part_of(runtime_registry, chain(*kinds, size="400x300x3"), "result")
    needed = peak_bytes(inference, step, 1)
    found = Tilings(inference, 100, 0)
    for _ in range(2):
        with pytest.raises(DiagnosticError) as caught:
            found.of(step, "key", 1)
        (d,) = caught.value.diagnostics
        assert (d.code, d.layer) == ("not-tileable", "1")
        assert d.message == "the image cannot be run in tiles because of '1': it reads the whole image at once"
    assert Tilings(inference, AUTO, int(needed / 2.6) + 1).of(step, "key", 1) is None  # it fits as it is
    with pytest.raises(DiagnosticError) as caught:
        Tilings(inference, AUTO, int(needed / 2.6) - 1).of(step, "key", 1)
    (d,) = caught.value.diagnostics
    assert (d.code, d.layer) == ("out-of-memory", "1")
    assert d.message.endswith("it reads the whole image at once; it needs about 1.83 MiB, 1.83 MiB are free")
    with pytest.raises(DiagnosticError, match=r"it needs about 1\.83 MiB, 977 KiB are free"):
        Tilings(inference, AUTO, 1_000_000).of(step, "key", 1)


def test_the_tilings_of_the_last_parts_are_kept(runtime_registry, monkeypatch):
    inference, step = part_of(runtime_registry, chain(CONV[0], size="400x300x3"), "result")
    made = []
    real = Tilings._make
    monkeypatch.setattr(Tilings, "_make", lambda self, step: made.append(1) or real(self, step))
    found = Tilings(inference, 100, 0)

    def new(key) -> bool:
        before = len(made)
        found.of(step, key, 1)
        return len(made) > before

    assert [new(key) for key in "abcdabcd"] == [True] * 4 + [False] * 4
    assert [new(key) for key in "ebcdea"] == [True, False, False, False, False, True]


class Runner:
    """Runs tiles of a network of pointwise layers, and remembers what it was asked."""

    def __init__(self, graph):
        self.graph, self.calls, self.fed = graph, [], {}
        self.hidden = iter([{}, {"0": NonFinite(1, 0, 2)}, {"0": NonFinite(2, 0, 2), "1": NonFinite(0, 1, 2)}, {}])

    def set_input(self, name, array, *, is_image):
        self.calls.append(("set_input", name, array.shape, is_image))
        self.fed[name] = array.copy()

    def run(self, capture):
        self.calls.append(("run", tuple(map(str, capture))))
        (array,) = self.fed.values()
        return RunResult(
            {}, captures={source: np.maximum(array, 0) * 2 for source in capture}, hidden=next(self.hidden)
        )

    def invalidate(self):
        self.calls.append(("invalidate",))


def test_a_run_in_tiles_cuts_runs_and_joins(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="30x20x3"),
            layer("0", "activation", "image", RELU),
            layer("result", "output", "0"),
        ]
    )
    inference, step = part_of(runtime_registry, graph, "result")
    made, runners, reported, hidden = Tiling(inference, step), [], [], {"1": NonFinite(5, 0, 9)}
    array = pixels(20, 30, batch=2) - np.float32(0.5)
    found = made.run(
        {Source("image"): array},
        15,
        lambda g: runners.append(Runner(g)) or runners[-1],
        lambda *args: reported.append(args),
        hidden,
    )
    np.testing.assert_array_equal(found[Source("0")], np.maximum(array, 0) * 2)
    (runner,) = runners
    assert reported == [(0, 4), (1, 4), (2, 4), (3, 4)]
    assert runner.calls == [("set_input", "image", (2, 3, 10, 15), False), ("run", ("tile of 0",)), ("invalidate",)] * 4
    assert hidden == {"0": NonFinite(1, 0, 2), "1": NonFinite(5, 0, 9)}  # what was known first
    assert runner.graph["image"].params == {"dims": "15x10x3", "tiling": "0", "batch": "0"}
    assert [x.name for x in runner.graph] == ["image", "0", "tile of 0"]

    class Failing(Runner):
        def run(self, capture):
            raise DiagnosticError.of("engine-failed", "no luck", layer="0")

    with pytest.raises(DiagnosticError) as caught:
        made.run({Source("image"): array}, 15, Failing, lambda *args: None, {})
    (d,) = caught.value.diagnostics
    assert (d.code, d.layer, d.message) == ("engine-failed", "0", "in tiles: no luck")


def test_what_no_tile_can_read(runtime_registry):
    cases = {
        "flat": ([("reshape", {"shape": "3,20,30"})], "its receptive field is unknown"),
        "whole": ([("instance_normalization", {})], "it reads the whole image at once"),
        "vector": ([("global_pooling", {})], None),
    }
    for name, (kinds, reason) in cases.items():
        graph = chain(*kinds, size="30x20x3")
        inference = Inference(graph, runtime_registry)
        if inference.states["0"].outputs is None:
            continue
        (step,) = make_plan(inference, [Source("result")]).steps
        with pytest.raises(DiagnosticError) as caught:
            Tiling(inference, step)
        (d,) = caught.value.diagnostics
        assert (d.code, d.layer) == ("not-tileable", "0"), name
        assert d.remedy == "use a smaller image, or a machine with more memory"
        if reason:
            assert d.message == f"the image cannot be run in tiles because of '0': {reason}"
    graph = Graph(
        [
            layer("x", "tensor_input", shape="3,4"),
            layer("0", "unary", "x", function="abs"),
            layer("result", "output", "0"),
        ]
    )
    inference, step = part_of(runtime_registry, graph, "result")
    with pytest.raises(DiagnosticError, match="because of '0': it reads a tensor that is not an image"):
        Tiling(inference, step)


def branches(*layers, size="60x44x3") -> Graph:
    """Layers that read the input, each with an output."""
    made = [layer("image", "input", dims=size)]
    for number, (kind, params) in enumerate(layers):
        made += [layer(f"{number}", kind, "image", **params), layer(f"o{number}", "output", f"{number}")]
    return Graph(made)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_tiles_fit_every_output(runtime_registry, order):
    pools = [("pooling", {"size": "2x3", "stride": "2x3"}), ("pooling", {"size": "3x2", "stride": "3x2"})]
    inference, step = part_of(runtime_registry, branches(*(pools[i] for i in order)), "o0", "o1")
    made = Tiling(inference, step)
    assert (made.unit(0), made.unit(1)) == (6, 6)
    convolutions = [("convolution", {"features": 1, "kernel": kernel}) for kernel in ("9x3", "3x7")]
    inference, step = part_of(runtime_registry, branches(*(convolutions[i] for i in order)), "o0", "o1")
    made = Tiling(inference, step)
    assert [made.around(axis) for axis in (0, 1)] == [(3, 3), (4, 4)]
    inference, step = part_of(
        runtime_registry, chain(("pooling", {"size": "2x3", "stride": "2x3"}), size="3000x2000x3"), "result"
    )
    made = Tiling(inference, step)
    assert sorted((made.unit(0), made.unit(1))) == [2, 3]
    per_pixel = peak_bytes(inference, step, 1) / (3000 * 2000)
    assert made.side_for(per_pixel * 107.5**2, 1) == 102


@pytest.mark.parametrize("order", [("image", "one"), ("one", "image")])
def test_the_size_of_tiles_is_that_of_the_largest_input(runtime_registry, order):
    graph = Graph(
        [
            layer("image", "input", dims="30x20x3"),
            layer("one", "input", dims="1x1x3"),
            layer("0", "element_wise", ",".join(order), operation="add"),
            layer("result", "output", "0"),
        ]
    )
    inference, step = part_of(runtime_registry, graph, "result")
    made = Tiling(inference, step)
    assert made.base == (20, 30)
    assert made.single == ({Source("one")}, {Source("one")})
    assert [tile.core for tile in made.tiles(1, 15)] == [(0, 15), (15, 30)]


def test_a_part_that_also_reads_a_vector_has_no_tiles(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="30x20x3"),
            layer("0", "unary", "image", function="abs"),
            layer("result", "output", "0"),
            layer("vector", "tensor_input", shape="5"),
            layer("1", "unary", "vector", function="abs"),
            layer("second", "output", "1"),
        ]
    )
    inference, step = part_of(runtime_registry, graph, "result", "second")
    with pytest.raises(DiagnosticError, match="it reads a tensor that is not an image"):
        Tiling(inference, step)


def test_limits_of_runs_without_tiles():
    assert (tiles.WHOLE, tiles.ALWAYS_WHOLE, tiles.USUAL) == (2 << 30, 128 << 20, 1 << 30)


NUMBERS = [
    *CONV, *OTHERS, ("convolution", {"features": 2, "kernel": "5x4", "padding": "valid"}),
    ("convolution", {"features": 2, "kernel": "5x5", "padding_mode": "reflect"}),
    ("convolution", {"features": 2, "kernel": "3x7", "padding_mode": "replicate", "dilation": "2x1"}),
    ("upsample", {"factor": "2x3", "method": "bilinear"}), ("upsample", {"factor": "3x2", "method": "bicubic"}),
    ("pooling", {"operation": "average", "size": "3x2", "stride": "1x1"}), ("gaussian_blur", {"sigma": "1.0"}),
    ("crop", {"left": 9, "top": 2, "right": 5, "bottom": 11}), ("padding", {"left": 3, "top": 1, "right": 0, "bottom": 2, "mode": "reflect"}),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(18))
def test_tiles_give_the_numbers_of_the_whole_image(runtime_registry, seed):
    pytest.importorskip("torch")
    source = random.Random(100 + seed)
    height, width = source.choice([40, 47, 58, 63]), source.choice([40, 45, 60, 71])
    graph = chain(*(source.choice(NUMBERS) for _ in range(source.randint(2, 4))), size=f"{width}x{height}x2")
    if Inference(graph, runtime_registry).states["result"].outputs is None:
        pytest.skip("too small for these layers")
    needed = required_weights(Inference(graph, runtime_registry))
    weights = fill_missing(Weights(), needed, 0) if needed else Weights()
    results = []
    for tile in (0, source.choice([8, 12, 16]), source.choice([20, 24, 32])):
        session = Session(graph, runtime_registry, weights, RunOptions("torch", threads=1, tile=tile))
        session.set_input("image", pixels(height, width, channels=2), is_image=False)
        try:
            results.append(session.run().outputs["result"])
        except DiagnosticError as error:
            assert tile
            if error.diagnostics[0].code != "not-tileable":
                raise
    for found in results[1:]:
        np.testing.assert_allclose(found, results[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", ["learned,0", "0,learned"])
def test_a_learned_pixel_does_not_make_tiles_larger(runtime_registry, order):
    """It is the same in every tile, as the pixel of an input is."""
    pytest.importorskip("torch")
    graph = Graph(
        [
            layer("image", "input", dims="60x44x3"),
            layer("learned", "parameter", shape="1,2,1,1"),
            layer("0", "convolution", "image", features=2, kernel="3x5"),
            layer("1", "element_wise", order, operation="multiply"),
            layer("result", "output", "1"),
        ]
    )
    inference, step = part_of(runtime_registry, graph, "result")
    made = Tiling(inference, step)
    assert made.single == ({Source("learned")}, {Source("learned")})
    plain = Tiling(*part_of(runtime_registry, chain(("convolution", {"features": 2, "kernel": "3x5"})), "result"))
    for axis in (0, 1):
        assert made.tiles(axis, 16) == plain.tiles(axis, 16)
    weights = fill_missing(Weights(), required_weights(inference), 0)
    learned = next(key for key in weights.tensors if key.layer == "learned")
    weights = Weights(weights.tensors | {learned: np.array([2.5, -0.5], np.float32).reshape(1, 2, 1, 1)})
    results = []
    for tile in (0, 16):
        session = Session(graph, runtime_registry, weights, RunOptions("torch", threads=1, tile=tile))
        session.set_input("image", pixels(44, 60, batch=2), is_image=False)
        results.append(session.run().outputs["result"])
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-6)
