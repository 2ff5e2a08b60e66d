"""Values by hand of what runs rely on: sizes, counts, names, colors, patterns, estimates, limits and tiles."""

from __future__ import annotations

import io
import subprocess
import sys
import threading

import numpy as np
import pytest
from runtime_networks import layer, pixels

from designer.files.weights import WeightKey, Weights, fill_missing, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.types import DataType
from designer.runtime import machine, tiles
from designer.runtime.api import RunOptions, RunResult, Step
from designer.runtime.checked_engine import reason_of
from designer.runtime.edit_effect import EditEffect, edit_effect
from designer.runtime.engine_api import requires
from designer.runtime.finite import NonFinite, nonfinite
from designer.runtime.images import (
    encode_image,
    read_image,
    read_npy,
    to_uint8,
    with_channels,
    write_array,
    write_image,
)
from designer.runtime.input_data import InputData, as_batch, crop, cropped, frozen, padded_extent, prepare, tiling
from designer.runtime.interrupt import Interrupt, InterruptedRunError, current, interruptible
from designer.runtime.network import operator_of
from designer.runtime.number_formats import BFLOAT16, FLOAT16, FLOAT32, FORMATS, format_of
from designer.runtime.patterns import make_pattern
from designer.runtime.plan import AnalysisStep, make_plan
from designer.runtime.preview import Preview, enlarged, resized
from designer.runtime.provenance import run_provenance
from designer.runtime.results import Result, Results, WeightPrints
from designer.runtime.run_estimate import RunEstimate
from designer.runtime.session import Session
from designer.runtime.sources import is_deep, kind_of, playlist, small
from designer.runtime.tiles import ImageTile, Tiling, peak_bytes

# --- inputs ------------------------------------------------------------------------------------------------------


def input_operator(registry, **params):
    graph = Graph([layer("image", "input", **{"dims": "5x3x2", **params})])
    return operator_of(Inference(graph, registry), "image")


@pytest.mark.parametrize(
    ("value", "tile", "extent"), [("0", 1, (9, 10)), ("1", 1, (9, 10)), ("4", 4, (12, 12)), ("5", 5, (10, 10))]
)
def test_sizes_are_rounded_up_to_multiples(runtime_registry, value, tile, extent):
    operator = input_operator(runtime_registry, tiling=value)
    assert tiling(operator) == (tile, tile)
    assert padded_extent(operator, (9, 10)) == extent


def test_images_are_scaled_before_the_edge_is_repeated(runtime_registry):
    array = np.arange(30, dtype=np.float32).reshape(1, 2, 3, 5)
    operator = input_operator(runtime_registry, tiling="4", scale="2", shift="-1")
    made = prepare(operator, InputData(array, True, 0))
    assert made.shape == (1, 2, 4, 8)
    np.testing.assert_array_equal(made[:, :, :3, :5], array * 2 - 1)
    np.testing.assert_array_equal(made[0, 1, 3, 5:], [57.0] * 3)
    np.testing.assert_array_equal(made[0, 0, :3, 7], [7.0, 17.0, 27.0])
    tensor = prepare(operator, InputData(array, False, 0))
    np.testing.assert_array_equal(tensor[:, :, :3, :5], array)


def test_single_images_become_batches():
    array = np.arange(30, dtype=np.float32)
    assert as_batch(array.reshape(5, 6), 1).shape == (1, 1, 5, 6)
    assert as_batch(array.reshape(5, 6), 3).shape == (5, 6)
    assert as_batch(array.reshape(2, 3, 5), 2).shape == (1, 2, 3, 5)
    last = as_batch(array.reshape(3, 5, 2), 2)
    assert last.shape == (1, 2, 3, 5)
    np.testing.assert_array_equal(last[0, 1, 2], [21, 23, 25, 27, 29])
    assert as_batch(array.reshape(2, 5, 3), 4).shape == (2, 5, 3)
    assert InputData(array.reshape(1, 2, 3, 5), True, 0).extent == (3, 5)
    assert InputData(array, True, 0).extent == (1, 1)


def test_the_padding_is_cut_off_in_proportion():
    assert cropped((16, 24), (9, 10), (16, 12)) == (9, 20)
    assert cropped((2, 2), (1, 1), (16, 16)) == (1, 1)
    assert cropped((3, 9), (9, 7), (10, 9)) == (3, 7)
    array = pixels(16, 24)
    np.testing.assert_array_equal(crop(array, (9, 10), (16, 12)), array[:, :, :9, :20])
    assert crop(array, (9, 10), (9, 10)) is array
    vector = np.zeros((1, 5))
    assert crop(vector, (9, 10), (16, 12)) is vector
    with pytest.raises(ValueError, match="read-only"):
        frozen(vector)[0, 0] = 1
    vector[0, 0] = 1


# --- images and sources ------------------------------------------------------------------------------------------


def test_colors_become_gray_by_their_brightness():
    color = np.zeros((2, 3, 4), np.float32)
    color[0, 0] = (1.0, 0.0, 0.0, 0.25)
    color[0, 1] = (0.0, 1.0, 0.0, 0.5)
    color[1, 2] = (0.0, 0.0, 1.0, 0.75)
    gray = with_channels(color, 1, "x")
    np.testing.assert_allclose(gray[0, 0], [[0.299, 0.587, 0.0], [0.0, 0.0, 0.114]], atol=1e-6)
    assert with_channels(color, 3, "x").shape == (1, 3, 2, 3)
    np.testing.assert_array_equal(with_channels(color, 4, "x")[0, 3], color[:, :, 3])
    opaque = with_channels(color[:, :, :3], 4, "x")
    np.testing.assert_array_equal(opaque[0, 3], np.ones((2, 3)))
    both = np.dstack([color[:, :, 0], color[:, :, 3]])  # gray and opacity
    np.testing.assert_array_equal(with_channels(both, 4, "x")[0], np.stack([color[:, :, 0]] * 3 + [color[:, :, 3]]))
    with pytest.raises(DiagnosticError, match="but the input has 2"):
        with_channels(color, 2, "x")


def test_bytes_are_rounded_and_the_first_image_is_taken():
    values = np.array([0.0, 0.498, 0.0019, 0.00197, 1.5, -1.0, np.nan, np.inf, -np.inf], np.float32)
    batch = np.stack([values.reshape(1, 3, 3), np.ones((1, 3, 3), np.float32)])
    assert to_uint8(batch).ravel().tolist() == [0, 127, 0, 1, 255, 0, 0, 255, 0]
    assert to_uint8(batch[0]).shape == (3, 3, 1)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_sixteen_bits_keep_their_values(tmp_path, channels):
    levels = np.random.default_rng(channels).integers(0, 65536, (1, channels, 3, 5))
    write_image(tmp_path / "deep.png", levels / 65535, bits=16, comment="made here")
    expected = levels if channels != 2 else levels[:, [0, 0, 0, 1]]
    found = read_image(tmp_path / "deep.png", {1: 1, 2: 4, 3: 3, 4: 4}[channels])
    if channels == 2:
        np.testing.assert_allclose(found, expected / 65535, atol=1 / 255)
    else:
        np.testing.assert_array_equal(np.round(found * 65535), expected)


def test_thumbnails_take_every_nth_pixel():
    image = np.broadcast_to(np.arange(10, dtype=np.float32)[None, None, None] / 255, (2, 4, 7, 10))
    found = small(image, 4, 7)
    assert found.shape == (3, 4, 3)
    assert found[0, :, 0].tolist() == [0, 3, 6, 9]
    assert small(image, 10, 3).shape == (3, 4, 3)
    assert small(image, 100, 100).shape == (7, 10, 3)
    assert small(image[:, :2], 10, 7).shape == (7, 10, 3)


def test_files_of_a_folder_in_natural_order(tmp_path):
    names = ["a10.png", "a2.png", "A1.PNG", "b.npy", "a2b1.png", "a02.png", "10.png", "9.jpg"]
    for name in (*names, ".hidden.png", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.png").mkdir()
    assert playlist(tmp_path) == (
        "9.jpg", "10.png", "A1.PNG", "a02.png", "a2.png", "a2b1.png", "a10.png", "b.npy"
    )  # fmt: skip
    kinds = {"x.png": "image", "x.npy": "tensor", "x.mp4": "video", "pattern:noise": "pattern", "camera:0": "camera"}
    assert {name: kind_of(name) if ":" in name else kind_of(tmp_path / name) for name in kinds} == kinds
    assert kind_of(tmp_path) == "folder"
    assert [is_deep(tmp_path / name) for name in ("x.exr", "x.tif", "x.npy", "x.png", "x.mp4")] == [
        True, True, True, False, False
    ]  # fmt: skip


def test_patterns_by_their_formulas():
    gradient = make_pattern("gradient", 4, 3, 5)[0]
    np.testing.assert_allclose(gradient[0], np.tile([0, 0.25, 0.5, 0.75, 1], (3, 1)))
    np.testing.assert_allclose(gradient[1], np.tile([[0], [0.5], [1]], (1, 5)))
    np.testing.assert_allclose(gradient[2], (gradient[0] + gradient[1]) / 2)
    np.testing.assert_allclose(gradient[3], gradient[0])
    zones = make_pattern("zone_plate", 2, 4, 7)[0]
    # at the corner the distance is sqrt(3^2 + 1.5^2), and the shorter side is 4
    assert zones[0, 0, 0] == pytest.approx(0.5 + 0.5 * np.cos(np.pi * 11.25 / 4), abs=1e-6)
    assert zones[1, 1, 5] == pytest.approx(0.5 + 0.5 * np.cos(np.pi * 4.25 / 4), abs=1e-6)
    edges = make_pattern("edges", 1, 48, 64)[0, 0]
    assert [edges[y, x] for y, x in ((0, 0), (0, 8), (8, 0), (8, 8), (7, 7), (15, 16))] == [0, 1, 1, 0, 0, 1]
    assert [edges[12, x] for x in (32, 47, 48, 49)] == [0, 0, 0, 1]  # the edge at three quarters of the width
    assert [edges[0, x] for x in (46, 47)] == [0, 1]  # slanted
    assert edges[24, :11].tolist() == [1, 1, 0, 1, 1, 0, 1, 1, 0, 0, 1]
    assert edges[24:35, 40].tolist() == [1, 1, 0, 1, 1, 0, 1, 1, 0, 0, 1]
    noise = make_pattern("noise", 2, 3, 4)[0]
    assert noise.shape == (2, 3, 4)
    assert noise[0, 0, 0] != noise[1, 0, 0]
    np.testing.assert_array_equal(noise.ravel()[:12], make_pattern("noise", 1, 3, 4).ravel())


def test_reduced_and_enlarged_images():
    array = np.arange(24, dtype=np.float32).reshape(1, 1, 4, 6)
    np.testing.assert_array_equal(resized(array, 2, 2)[0, 0], [[4, 7], [16, 19]])
    np.testing.assert_array_equal(enlarged(array[:, :, :1, :2], 2, 6)[0, 0], [[0, 0, 0, 1, 1, 1]] * 2)
    np.testing.assert_array_equal(enlarged(array[:, :, :1, :2], 1, 5)[0, 0], [[0, 0, 0, 1, 1]])
    np.testing.assert_array_equal(enlarged(array[:, :, :2, :1], 3, 1)[0, 0], [[0], [0], [6]])
    assert enlarged(array, 4, 6) is array


# --- counts, formats, limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1.0, 2.0], None),
        ([1.0, np.nan, np.inf, -np.inf, np.nan, np.nan], NonFinite(3, 2, 6)),
        ([np.inf, 1.0, 2.0], NonFinite(0, 1, 3)),
        ([3e38, 3e38], None),  # the sum of squares overflows
        ([], None),
    ],
)
def test_values_that_are_not_finite_are_counted(values, found):
    assert nonfinite(np.array(values, np.float32)) == found
    assert nonfinite(np.repeat(np.array(values, np.float32), 2)[::2]) == found
    assert nonfinite(np.array([1, 2])) is None


def test_the_kind_and_share_of_values_that_are_not_finite():
    assert (NonFinite(3, 2, 10).kind, NonFinite(3, 2, 10).share) == ("nan", 0.5)
    assert (NonFinite(0, 1, 4).kind, NonFinite(0, 1, 4).share) == ("inf", 0.25)


def test_number_formats_are_those_of_torch():
    torch = pytest.importorskip("torch")
    for each in (FLOAT32, FLOAT16, BFLOAT16):
        info = torch.finfo(getattr(torch, each.name))
        assert (each.largest, each.bits, each.is_integer) == (info.max, info.bits, False)
        assert each.smallest == info.tiny * info.eps  # subnormal
    assert [(name, each.bits) for name, each in FORMATS.items() if each.is_integer] == [
        (f"int{bits}", bits) for bits in (16, 8, 7, 6, 5, 4, 3, 2)
    ]


def test_the_format_of_a_layer_is_that_of_the_innermost_instance_that_has_one():
    formats = {"block": "int8", "block.inner.conv": "int4", "other": "float16"}
    found = {
        name: format_of(name, formats, FLOAT32).name
        for name in ("block.a", "block.inner.conv", "block.inner.b", "other", "outside")
    }
    assert found == {
        "block.a": "int8", "block.inner.conv": "int4", "block.inner.b": "int8", "other": "float16", "outside": "float32"
    }  # fmt: skip


@pytest.mark.parametrize(("allowed", "physical", "cores"), [(8, 4, 4), (2, 4, 2), (3, None, 3), (0, 4, 1)])
def test_cores_that_the_process_can_use(monkeypatch, allowed, physical, cores):
    psutil = pytest.importorskip("psutil")
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: set(range(allowed)), raising=False)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: None if logical else physical)
    assert machine.physical_cores() == cores
    assert machine.threads(RunOptions(threads=0)) == cores
    assert machine.threads(RunOptions(threads=7)) == 7


@pytest.mark.parametrize(("limit", "free"), [(None, 1000), (1500, 800), (1800, 1000), (600, 0)])
def test_free_memory_within_the_limit_of_the_process(monkeypatch, limit, free):
    psutil, resource = pytest.importorskip("psutil"), pytest.importorskip("resource")

    class Process:
        def memory_info(self):
            return type("Info", (), {"vms": 700})

    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 1000, "free": 1}))
    monkeypatch.setattr(psutil, "Process", Process)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY if limit is None else limit, 9))
    assert machine.free_memory() == free


@pytest.mark.parametrize(
    ("options", "code"),
    [({"precision": "fp31"}, "unknown-precision"), ({"layout": "chwn"}, "unknown-layout"), ({"threads": -1}, "bad-threads")],
)  # fmt: skip
def test_options_that_do_not_exist(options, code):
    machine.check_options(RunOptions())
    with pytest.raises(DiagnosticError, match=code):
        machine.check_options(RunOptions(**options))


def test_an_interrupt_calls_hooks_once_and_ends_runs_of_its_thread_only():
    asked, calls = Interrupt(), []
    with interruptible(asked), asked.hook(lambda: calls.append("inside")):
        current().check()
        asked.ask()
        with pytest.raises(InterruptedRunError):
            current().check()
        with asked.hook(lambda: calls.append("at once")):
            pass
        thread = threading.Thread(target=lambda: calls.append(current().asked))
        thread.start()
        thread.join()
    asked.ask()
    assert calls == ["inside", "at once", False]
    assert asked.asked
    current().check()


def test_an_error_is_its_class_and_first_line():
    assert reason_of(ValueError(" one\ntwo")) == "ValueError: one"
    assert reason_of(KeyError()) == "KeyError"
    assert reason_of(RuntimeError("x" * 400)) == f"RuntimeError: {'x' * 300}"


def test_the_provenance_of_a_run_has_its_configuration():
    found = run_provenance(
        "net", "d1", "w", "d2", RunOptions("torch", "fp16", "nhwc", "cuda", 3), noise="n", noise_seed="7"
    )
    texts = found.texts()
    assert [texts[key] for key in ("document", "document_sha256", "weights", "weights_sha256")] == [
        "net",
        "d1",
        "w",
        "d2",
    ]
    assert [texts[key] for key in ("engine", "precision", "layout", "device", "threads")] == [
        "torch", "fp16", "nhwc", "cuda", "3"
    ]  # fmt: skip
    assert (texts["noise"], texts["noise_seed"]) == ("n", "7")
    assert run_provenance("net", "", "", "", RunOptions()).threads == "all cores"
    plain = run_provenance("net", "d1", "", "", None).texts()
    assert {key for key in plain if not key.startswith("version.")} == {"document", "document_sha256", "date"}


# --- results and estimates ---------------------------------------------------------------------------------------


def result(name, count, group="") -> Result:
    return Result({Source(name): np.zeros(count, np.uint8)}, {}, group)


def test_results_used_longest_ago_are_dropped_first():
    kept = Results(10)
    for name in "abc":
        kept.put(name, result(name, 4, "g" if name != "b" else "h"))
    assert kept.nbytes == 12
    kept.get("a")
    assert [key for key, _ in kept.like("g")] == ["a", "c"]
    assert kept.trim({"c"}) == []
    assert [key for key in "abc" if kept.get(key)] == ["a", "c"]
    kept.keep_bytes = 3
    assert kept.trim({"c"}) == [Source("c")]
    assert kept.nbytes == 0


def plan_of(registry):
    graph = Graph(
        [
            layer("image", "input", dims="8x4x3"),
            layer("a", "convolution", "image", features=2, kernel="1x1"),
            layer("noise", "noise", "a", kind="gaussian"),
            layer("b", "convolution", "noise", features=2, kernel="1x1"),
            layer("result", "output", "b"),
        ]
    )
    inference = Inference(graph, registry)
    return graph, make_plan(inference, [Source("result")])


def test_the_next_run_takes_the_steps_below_what_changed(runtime_registry):
    graph, plan = plan_of(runtime_registry)
    estimate = RunEstimate()
    assert estimate.of(graph, plan) == 0.0
    estimate.changed.add("a")
    assert estimate.of(graph, plan) is None
    names = [step.part.layers if hasattr(step, "part") else (step.layer,) for step in plan.steps]
    steps = [Step(layers, "torch", ms, cached=False) for layers, ms in zip(names, (1.0, 20.0, 300.0), strict=True)]
    estimate.learn(steps)
    assert estimate.changed == set()
    for changed, milliseconds in (("a", 321.0), ("noise", 320.0), ("b", 300.0), ("gone", 0.0)):
        estimate.changed = {changed}
        assert estimate.of(graph, plan) == milliseconds
    estimate.learn([Step(names[0], "torch", 9.0, cached=True)])  # a cached step says nothing
    estimate.changed = {"a"}
    assert estimate.of(graph, plan) == 321.0


# --- tiles -------------------------------------------------------------------------------------------------------


def tiling_of(registry, *layers, size="60x40x3") -> Tiling:
    graph = Graph([layer("image", "input", dims=size), *layers, layer("result", "output", layers[-1].name)])
    inference = Inference(graph, registry)
    (step,) = make_plan(inference, [Source("result")]).steps
    return Tiling(inference, step)


def test_tiles_along_both_axes(runtime_registry):
    made = tiling_of(
        runtime_registry,
        layer("conv", "convolution", "image", features=2, kernel="7x3"),
        layer("pool", "pooling", "conv", size="2x4", stride="2x4"),
    )
    rows, columns = made.unit(0), made.unit(1)
    assert (rows, columns) == (4, 2)
    assert [made.around(axis) for axis in (0, 1)] == [(1, 1), (3, 3)]
    assert made.tiles(1, 20) == [
        ImageTile((0, 28), (0, 20)), ImageTile((16, 44), (20, 40)), ImageTile((32, 60), (40, 60))
    ]  # fmt: skip
    for axis, (size, around) in enumerate(((40, 1), (60, 3))):
        for side in (8, 12, 20):
            found = made.tiles(axis, side)
            assert [tile.core[0] for tile in found[1:]] == [tile.core[1] for tile in found[:-1]]
            assert (found[0].core[0], found[-1].core[1]) == (0, size)
            for tile in found:
                assert tile.cut[0] % made.unit(axis) == 0
                assert tile.cut[0] <= max(0, tile.core[0] - around)
                assert tile.cut[1] >= min(size, tile.core[1] + around)
                assert tile.cut[1] - tile.cut[0] <= side + 2 * (around + made.unit(axis))


def test_the_side_of_a_tile_follows_from_the_memory(runtime_registry, monkeypatch):
    made = tiling_of(
        runtime_registry,
        layer("conv", "convolution", "image", features=6, kernel="3x3"),
        layer("last", "convolution", "conv", features=2, kernel="1x1"),
        size="1000x500x3",
    )
    whole = peak_bytes(made.inference, made.step, 1)
    assert whole == 4 * (6 + 2) * 1000 * 500 * tiles.SPARE
    per_pixel = whole / 500_000
    assert peak_bytes(made.inference, made.step, 3) == 3 * whole
    assert made.side_for(per_pixel * 102.5**2, 1) == 100  # with a pixel on each side
    with pytest.raises(DiagnosticError, match="out-of-memory"):
        made.side_for(per_pixel * 65.5**2, 1)
    assert made.side_for(per_pixel * 66.5**2, 1) == 64
    monkeypatch.setattr(tiles, "USUAL", per_pixel * 82.5**2)
    assert made.side_for(per_pixel * 300 * 300, 1) == 80
    monkeypatch.setattr(tiles, "USUAL", per_pixel)
    assert made.side_for(per_pixel * 300 * 300, 1) == 64


def test_tensors_that_nobody_reads_any_more_take_no_memory(runtime_registry):
    made = tiling_of(
        runtime_registry,
        layer("wide", "convolution", "image", features=10, kernel="1x1"),
        layer("narrow", "convolution", "wide", features=1, kernel="1x1"),
        layer("middle", "convolution", "narrow", features=7, kernel="1x1"),
        layer("both", "concatenation", "narrow,middle"),
        layer("last", "convolution", "both", features=4, kernel="1x1"),
    )
    # narrow + middle + both: 1 + 7 + 8; both + last: 12
    assert peak_bytes(made.inference, made.step, 1) == 4 * 16 * 60 * 40 * tiles.SPARE


# --- edits -------------------------------------------------------------------------------------------------------


def scaled(registry, scale, side=4, name="result") -> Session:
    graph = Graph(
        [
            Layer("image", "input", params={"dims": f"{side}x{side}x3"}),
            Layer("scaled", "scale_shift", inputs=(Source("image"),), params={"scale": f"{scale!r}"}),
            Layer(name, "output", inputs=(Source("scaled"),)),
        ]
    )
    weights = fill_missing(Weights(), required_weights(Inference(graph, registry)), 0)
    session = Session(graph, registry, weights, RunOptions("torch", threads=1))
    session.set_input("image", np.linspace(0, 1, 48, dtype=np.float32).reshape(1, 3, 4, 4), is_image=False)
    return session


def test_what_an_edit_changes(runtime_registry):
    pytest.importorskip("torch")
    before = scaled(runtime_registry, 1.0)
    kept = edit_effect(before, scaled(runtime_registry, 1.00005))
    assert (kept.kept, kept.difference) == (True, pytest.approx(5e-5, rel=0.01))
    assert str(kept) == "function kept (difference 5e-05)"
    assert not edit_effect(before, scaled(runtime_registry, 1.0002)).kept
    assert edit_effect(scaled(runtime_registry, 1000.0), scaled(runtime_registry, 1000.05)).kept  # relative to 1000
    changed = edit_effect(before, scaled(runtime_registry, 0.9))
    values = np.linspace(0, 1, 48)
    psnr = -10 * np.log10(np.mean((0.1 * values) ** 2))
    assert (changed.kept, changed.before) == (False, None)
    assert changed.after == pytest.approx(psnr, abs=1e-3)
    assert str(changed) == f"changed: {psnr:.2f} dB to the result before, on this image"
    renamed = edit_effect(before, scaled(runtime_registry, 1.0, name="other"))
    assert renamed == EditEffect(np.inf, False)
    assert str(renamed) == "changed: the outputs have other shapes"
    assert str(EditEffect(1.0, False, 30.126, 28.5)) == "changed: 30.13 -> 28.50 dB on this image"


def outputs(registry, large, small, function="identity") -> Session:
    """A network whose outputs are factors of its five numbers, the second after a function."""
    layers = [Layer("numbers", "tensor_input", params={"shape": "5"})]
    for name, factor in (("large", large), ("small", small)):
        layers.append(
            Layer(
                f"{name}_factor",
                "tensor_constant",
                params={"shape": "1", "numbers": f"{factor!r}"},
            )
        )
        sources = (Source("numbers"), Source(f"{name}_factor"))
        layers.append(Layer(f"{name}_product", "element_wise", inputs=sources, params={"operation": "multiply"}))
    layers.append(Layer("end", "unary", inputs=(Source("small_product"),), params={"function": function}))
    layers.append(Layer("one", "output", inputs=(Source("large_product"),)))
    layers.append(Layer("other", "output", inputs=(Source("end" if function != "identity" else "small_product"),)))
    session = Session(Graph(layers), registry, Weights(), RunOptions("torch", threads=1))
    session.set_input("numbers", np.array([[0, 1, 2, 3, 4]], np.float32), is_image=False)
    return session


def test_each_output_of_an_edited_network_has_its_own_scale(runtime_registry):
    pytest.importorskip("torch")
    before = outputs(runtime_registry, 1e4, 2.0)
    assert edit_effect(before, outputs(runtime_registry, 1e4 + 0.5, 2.0)).kept
    changed = edit_effect(before, outputs(runtime_registry, 1e4, 2.5))
    assert (changed.kept, changed.difference) == (False, 2.0)
    error = np.mean((0.5 * np.arange(5)) ** 2)
    assert changed.after == pytest.approx(10 * np.log10(8.0**2 / error))  # not clipped to 0..1


@pytest.mark.parametrize(
    ("factor", "other", "kept"),
    [
        (1e-3, 1e-3 + 2e-5, False),
        (1e-3, 1e-3 + 5e-8, True),
        (1e-6, 2e-6, False),
        (0.0, 2e-8, True),
        (0.0, 1e-5, False),
    ],
)
def test_an_output_of_small_values_is_not_measured_against_one(runtime_registry, factor, other, kept):
    pytest.importorskip("torch")
    before, after = (outputs(runtime_registry, 1.0, each) for each in (factor, other))
    assert edit_effect(before, after).kept is kept


def test_equal_values_that_are_not_finite_are_kept(runtime_registry):
    pytest.importorskip("torch")
    before = outputs(runtime_registry, 1.0, 2.0, "log")  # minus infinity, and the logarithms
    assert edit_effect(before, outputs(runtime_registry, 1.0, 2.0, "log")) == EditEffect(0.0, True)
    assert not edit_effect(before, outputs(runtime_registry, 1.0, 2.5, "log")).kept
    assert not edit_effect(before, outputs(runtime_registry, 1.0, -2.0, "log")).kept


def test_an_edit_that_makes_nan_in_a_further_output_does_not_keep_the_function(monkeypatch):
    ones = np.ones((1, 1, 2, 2), np.float32)
    results = iter(({"a": ones, "b": ones}, {"a": ones, "b": ones * np.float32(np.nan)}))
    monkeypatch.setattr("designer.runtime.edit_effect._run", lambda session: (next(results), None))
    assert not edit_effect(None, None).kept


# --- files of images ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "bits"), [("x.png", 8), ("x.png", 16), ("x.jpg", 8)])
@pytest.mark.parametrize("comment", ["made here", ""])
def test_comments_of_images(tmp_path, name, bits, comment):
    image_module = pytest.importorskip("PIL.Image")
    write_image(tmp_path / name, pixels(4, 6), bits=bits, comment=comment)
    with image_module.open(tmp_path / name) as found:
        found.load()
        texts = found.info.get("Comment" if name.endswith("png") else "comment", "")
    assert (texts.decode() if isinstance(texts, bytes) else texts) == comment


def test_the_formats_of_encoded_images():
    image_module = pytest.importorskip("PIL.Image")
    array = pixels(40, 60)
    sizes = {}
    for kind in ("PNG", "JPEG", "WEBP"):
        data = encode_image(array, kind)
        with image_module.open(io.BytesIO(data)) as found:
            assert (found.format, found.size) == (kind, (60, 40))
            decoded = np.asarray(found.convert("RGB"))
            sizes[kind] = np.abs(decoded.astype(int) - to_uint8(array)).max()
            if kind == "JPEG":  # fine colors: no subsampling, little quantization
                assert found.layer[0][1:3] == (1, 1)
                assert max(found.quantization[0]) <= 12
    assert sizes["PNG"] == sizes["WEBP"] == 0


def test_tensors_and_images_by_the_suffix(tmp_path):
    array = pixels(4, 6) * 3
    write_array(tmp_path / "x.npy", array, "no comment in this format")
    np.testing.assert_array_equal(read_npy(tmp_path / "x.npy"), array)
    write_array(tmp_path / "x.png", array, "text")
    np.testing.assert_allclose(read_image(tmp_path / "x.png"), array.clip(0, 1), atol=1 / 255)
    for name, channels, bits in (("x.jpg", 4, 8), ("x.jpg", 3, 16), ("x.png", 5, 8), ("x.png", 3, 12)):
        with pytest.raises(DiagnosticError, match="cannot store"):
            write_image(tmp_path / name, np.zeros((1, channels, 2, 2)), bits=bits)


def test_squares_and_the_slanted_edge_of_a_wide_pattern():
    edges = make_pattern("edges", 1, 40, 100)[0, 0]
    assert [edges[5, x] for x in (7, 8, 20, 41, 49)] == [0, 1, 0, 1, 0]
    # the edge is at three quarters of the width in row 10, and moves a pixel to the right in ten rows
    assert [edges[0, x] for x in (50, 74, 75, 99)] == [0, 0, 1, 1]
    assert [edges[10, x] for x in (74, 75, 76)] == [0, 0, 1]
    assert [edges[19, x] for x in (75, 76)] == [0, 1]


# --- previews and plans ------------------------------------------------------------------------------------------


def test_a_preview_of_a_padded_input_has_its_outputs_cropped_and_its_captures_padded(runtime_registry):
    pytest.importorskip("torch")
    graph = Graph(
        [
            layer("image", "input", dims="100x60x3", tiling="16"),
            layer("half", "pooling", "image", operation="average", size="2x2", stride="2x2"),
            layer("result", "output", "half"),
        ]
    )
    session = Session(graph, runtime_registry, Weights(), RunOptions("torch", threads=1))
    session.set_input("image", pixels(60, 100), is_image=False)
    found = Preview(session, 2).run([Source("half")])
    full = session.run([Source("half")])
    assert found.outputs["result"].shape == full.outputs["result"].shape == (1, 3, 30, 50)
    assert found.captures[Source("half")].shape == full.captures[Source("half")].shape == (1, 3, 32, 56)
    assert (found.coarse, full.coarse) == (2, 0)
    assert np.abs(found.outputs["result"] - full.outputs["result"]).mean() < 0.3


@pytest.mark.parametrize(
    ("layers", "late"),
    [
        ([layer("mix", "noise", "conv", kind="gaussian")], {"mix": True}),
        ([layer("mix", "noise", "conv", kind="gaussian"), layer("more", "convolution", "mix", features="3")], {"mix": False}),
        (
            [layer("mix", "noise", "conv", kind="gaussian"), layer("same", "identity", "mix"),
             layer("again", "noise", "same", kind="gaussian")],
            {"mix": True, "again": True},
        ),
        (
            [layer("mix", "noise", "conv", kind="gaussian"), layer("again", "noise", "mix", kind="gaussian"),
             layer("more", "convolution", "again", features="3")],
            {"mix": False, "again": False},
        ),
    ],
)  # fmt: skip
def test_analysis_layers_are_late_if_no_engine_reads_them(runtime_registry, layers, late):
    graph = Graph(
        [
            layer("image", "input", dims="8x4x3"),
            layer("conv", "convolution", "image", features="3"),
            *layers,
            layer("result", "output", layers[-1].name),
        ]
    )
    plan = make_plan(Inference(graph, runtime_registry), [Source("result")])
    assert {step.layer: step.late for step in plan.steps if isinstance(step, AnalysisStep)} == late


def test_digests_of_weights_depend_on_values_shapes_types_and_names():
    one = np.arange(6, dtype=np.float32)
    arrays = [one, one.reshape(2, 3), one.reshape(3, 2), one + 1, one.astype(np.float64), one[::-1]]
    prints = {WeightPrints(Weights({WeightKey("a", "kernel"): array})).of("a") for array in arrays}
    prints.add(WeightPrints(Weights({WeightKey("a", "bias"): one})).of("a"))
    prints.add(WeightPrints(Weights({WeightKey("a", "kernel"): one, WeightKey("a", "bias"): one})).of("a"))
    assert len(prints) == 8
    both = WeightPrints(Weights({WeightKey("b", "kernel"): one, WeightKey("a", "kernel"): one.copy()}))
    assert both.of("a") == WeightPrints(Weights({WeightKey("a", "kernel"): one})).of("a")
    assert both.of("none") == WeightPrints(Weights()).of("a")
    pair = {WeightKey("a", "kernel"): one, WeightKey("a", "bias"): one}
    turned = dict(reversed(pair.items()))  # as another file has them
    assert WeightPrints(Weights(pair)).of("a") == WeightPrints(Weights(turned)).of("a")
    assert Result({Source("a"): one, Source("b"): one.astype(np.float64)}, {}).nbytes == 72


# --- notes and engines -------------------------------------------------------------------------------------------


def test_every_note_of_a_result_is_kept():
    found = RunResult(
        {}, weights_note="random", note="in tiles", hidden={"a": NonFinite(1, 0, 2), "b": NonFinite(0, 1, 2)}
    )
    assert found.notes() == (
        "random", "in tiles", "'a' computes values that are NaN or infinite: finite results can be wrong"
    )  # fmt: skip
    assert RunResult({}, note="in tiles").notes() == ("in tiles",)


def test_all_modules_that_an_engine_lacks_are_named():
    found = requires("no_such_one", "os", "no_such_other", remedy="install them")()
    assert (found.message, found.remedy) == ("no_such_one and no_such_other is not installed", "install them")
    assert requires("os", "sys", remedy="")() is None


def test_element_types_are_those_of_onnx():
    onnx = pytest.importorskip("onnx")
    from designer.runtime.engines.onnx_model import _element

    for dtype in DataType:
        if dtype.value != "bfloat16":
            assert _element(dtype) == onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype.value)), dtype


def test_opencv_reads_images_up_to_our_limit():
    pytest.importorskip("cv2")
    code = "import os; from designer.runtime.opencv import *; opencv(); print(os.environ['OPENCV_IO_MAX_IMAGE_PIXELS'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["100000000"]


def test_files_of_a_folder_have_comments_and_their_names(tmp_path):
    from PIL import Image

    from designer.runtime.images import write_array, write_image
    from designer.runtime.sources import Sources
    from designer.runtime.video_writer import FolderWriter

    array = np.full((1, 3, 4, 6), 0.5, np.float32)
    (tmp_path / "made").mkdir()  # an empty folder may be there
    with FolderWriter(tmp_path / "made", comment="made here") as writer:
        writer.write(array, "b10")
        writer.write(array, "b9")
    write_array(tmp_path / "a.png", array, "made here")
    write_image(tmp_path / "deep.png", array, bits=16, comment="made here")
    for path in (tmp_path / "made" / "b9.png", tmp_path / "a.png", tmp_path / "deep.png"):
        with Image.open(path) as found:
            assert found.info["Comment"] == "made here"
    found = Sources().info(tmp_path / "made")
    assert (found.kind, found.frames, found.names) == ("folder", 2, ("b9.png", "b10.png"))
