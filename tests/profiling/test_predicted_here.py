"""Predictions on this machine: the operators one by one, what is kept of them, and recorded times of whole networks."""

from __future__ import annotations

import json

import pytest
from record_predictions import GENERATED, NAMES, networks, recorded_file

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.profiling import operator_times as module
from designer.profiling import predicted_here
from designer.profiling.cost import cost_table
from designer.profiling.measure import NO_PEAKS
from designer.profiling.model import CalibratedModel, CalibrationPoint
from designer.profiling.operator_times import operator_times
from designer.profiling.predicted_here import predict_here, step_timer
from designer.profiling.quantities import ValueSource, measured
from designer.profiling.schema import ProfileRun
from designer.runtime.api import RunOptions
from designer.runtime.engine_api import PreparedStep, SingleStep
from designer.runtime.engines.torch_steps import random_like

pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

ENGINES = ("torch", "onnxruntime")
MODEL = CalibratedModel(
    "here",
    "test calibration",
    {
        "convolution": (CalibrationPoint((3.0, 3.0, 6.0, 9.0, 0.0, 0.0), 10.0),),
        "element_wise": (CalibrationPoint((14.0,), 0.5),),
    },
    0.001,
    NO_PEAKS,
)


def base(options: RunOptions) -> ProfileRun:
    return ProfileRun(options.engine, "fp32", "nchw", "cpu", 1, "32x24", None, None, ())


class Timer:
    """Steps whose time in s is given. `ran` has the name of each that was timed."""

    def __init__(self, *steps: tuple[str, str, float, int]) -> None:
        self.ran: list[str] = []
        self._steps = [
            SingleStep((layer,), "kernel", key, size, lambda layer=layer, seconds=seconds: self._run(layer, seconds))
            for layer, key, seconds, size in steps
        ]

    def _run(self, layer, seconds):
        self.ran.append(layer)
        return PreparedStep(lambda: seconds, lambda: None)

    def single_steps(self):
        return self._steps


@pytest.fixture
def quiet(monkeypatch):
    monkeypatch.setattr(module, "foreign_load", lambda _: measured(0.0))


@pytest.fixture
def without_peaks(monkeypatch):
    monkeypatch.setattr(predicted_here, "machine_peaks", lambda *_: None)
    monkeypatch.setattr(predicted_here, "run_peaks", lambda _: NO_PEAKS)
    monkeypatch.setattr(predicted_here, "calibrated", lambda *_: MODEL)


@pytest.mark.usefixtures("quiet")
def test_equal_operators_are_timed_once_and_kept(tmp_path):
    store = tmp_path / "peaks.json"
    timer = Timer(("a", "conv", 0.5, 8), ("b", "relu", 0.25, 8), ("c", "conv", 0.5, 8))
    found = operator_times(timer, "here", store)
    assert len(timer.ran) == 2
    assert [(sample.layers, sample.seconds) for sample in found.samples] == [
        (("a",), [0.5]),
        (("b",), [0.25]),
        (("c",), [0.5]),
    ]
    assert (found.different, found.fresh, found.missing) == (2, 2, frozenset())
    again = Timer(("x", "relu", 9.0, 8), ("y", "new", 0.125, 8))
    found = operator_times(again, "here", store)
    assert again.ran == ["y"]
    assert [sample.seconds for sample in found.samples] == [[0.25], [0.125]]
    other = Timer(("x", "relu", 2.0, 8))
    assert operator_times(other, "another machine", store).samples[0].seconds == [2.0]


def test_times_of_a_busy_machine_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "foreign_load", lambda _: measured(60.0))
    for _ in range(2):
        timer = Timer(("a", "conv", 0.5, 8))
        assert operator_times(timer, "here", tmp_path / "peaks.json").load == 60.0
        assert timer.ran == ["a"]
    assert not (tmp_path / "operators.json").exists()


@pytest.mark.usefixtures("quiet")
def test_the_latest_times_are_kept_where_there_are_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 2)
    store = tmp_path / "peaks.json"
    operator_times(Timer(("a", "conv", 0.5, 8), ("b", "relu", 0.25, 8)), "here", store)
    operator_times(Timer(("c", "add", 0.125, 8)), "here", store)
    again = Timer(("a", "conv", 0.5, 8), ("b", "relu", 9.0, 8), ("c", "add", 9.0, 8))
    found = operator_times(again, "here", store)
    assert again.ran == ["a"]
    assert [sample.seconds for sample in found.samples] == [[0.5], [0.25], [0.125]]
    assert (found.different, found.fresh) == (3, 1)


@pytest.mark.parametrize(("share", "kept"), [(0.0, True), (1.0, True), (1.01, False)])
def test_times_are_kept_up_to_the_load_that_counts_as_busy(tmp_path, monkeypatch, share, kept):
    monkeypatch.setattr(module, "foreign_load", lambda _: measured(share * module.BUSY_PERCENT))
    found = operator_times(Timer(("a", "conv", 0.5, 8)), "here", tmp_path / "peaks.json")
    assert (tmp_path / "operators.json").exists() == kept
    note = predicted_here._measured_note(found)
    assert note.startswith("modelled: the network did not run; 1 different operators were measured one by one (0 of ")
    assert ("other programs used" in note) is not kept


@pytest.mark.usefixtures("quiet")
def test_operators_count_once_and_the_steps_of_a_layer_are_one_sample(tmp_path):
    large = module.LARGEST + 1
    timer = Timer(("a", "conv", 0.5, 8), ("a", "relu", 0.25, 8), ("b", "conv", 0.5, 8), ("c", "large", 1.0, large))
    found = operator_times(timer, "here", tmp_path / "peaks.json")
    assert (found.different, found.fresh, found.missing) == (2, 2, {"c"})
    assert [(s.layers, s.seconds, s.what) for s in found.samples] == [
        (("a",), [0.75], "kernel"),
        (("b",), [0.5], "kernel"),
    ]
    assert operator_times(timer, "here", tmp_path / "peaks.json").fresh == 0


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    "content",
    [
        '{"here": {"sec',
        "[1, 2]",
        "null",
        '{"here": {"seconds": {"a": -1}}}',
        '{"here": {"seconds": {"a": 1e400}}}',
        '{"here": {"seconds": "no"}}',
        '{"here": 7}',
        b"\x00\xff\xfe",
    ],
)
def test_a_broken_store_is_measured_again_and_replaced(tmp_path, content):
    kept = tmp_path / "operators.json"
    kept.write_bytes(content if isinstance(content, bytes) else content.encode())
    for timed in (["a"], []):
        timer = Timer(("a", "conv", 0.5, 8))
        assert operator_times(timer, "here", tmp_path / "peaks.json").samples[0].seconds == [0.5]
        assert timer.ran == timed


@pytest.mark.usefixtures("quiet")
def test_large_operators_are_missing_and_never_prepared(tmp_path):
    timer = Timer(("small", "conv", 0.5, 8), ("large", "conv on a large image", 9.0, module.LARGEST + 1))
    found = operator_times(timer, "here", tmp_path / "peaks.json")
    assert found.missing == {"large"}
    assert timer.ran == ["small"]
    assert [sample.layers for sample in found.samples] == [("small",)]


def forbid_runs(monkeypatch) -> None:
    """Let every run of a network fail; programs may run without data."""
    from designer.runtime.engines.ort_engine import OrtCompiled
    from designer.runtime.engines.torch_engine import Interpreter

    def fail(*_):
        raise AssertionError("the network ran")

    monkeypatch.setattr(OrtCompiled, "run", fail)
    monkeypatch.setattr(Interpreter, "__call__", fail)


@pytest.mark.usefixtures("without_peaks")
@pytest.mark.parametrize("engine", ENGINES)
def test_every_operator_is_timed_and_the_network_does_not_run(
    small_inference, profiling_registry, engine, tmp_path, monkeypatch
):
    forbid_runs(monkeypatch)
    options = RunOptions(engine=engine, threads=1)
    run = predict_here(
        small_inference,
        profiling_registry,
        options,
        cost_table(small_inference),
        base(options),
        tmp_path / "peaks.json",
    )
    timed = {name for row in run.operators for name in row.layers}
    assert timed == {"conv a", "pool", "conv_b", "up", "cat", "conv_c", "sum"}
    assert all(row.alone and row.time_ms > 0 for row in run.operators if row.layers)
    assert run.time_ms == pytest.approx(sum(row.time_ms for row in run.operators))
    assert run.source is ValueSource.MODELLED
    assert "did not run" in run.notes[0]
    assert "measured one by one" in run.notes[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_keys_are_those_of_the_work(profiling_registry, engine):
    def steps(size: str, features: int) -> list[SingleStep]:
        layers = [Layer("image", "input", params={"dims": size})]
        for number in range(3):
            params = {"features": str(features), "kernel": "3x3"}
            layers.append(Layer(f"c{number}", "convolution", params=params, inputs=(Source(layers[-1].name),)))
        layers.append(Layer("result", "output", inputs=(Source("c2"),)))
        inference = Inference(Graph(layers), profiling_registry)
        timer = step_timer(inference, RunOptions(engine=engine, threads=1), 1)
        return [step for step in timer.single_steps() if any(name.startswith("c") for name in step.layers)]

    def keys(found):
        return {step.key for step in found}

    found = steps("16x16x16", 16)
    convolutions = [step for step in found if "Reorder" not in step.what]
    assert len(convolutions) == 3
    assert len(keys(convolutions)) == 1
    assert keys(convolutions).isdisjoint(keys(steps("16x32x16", 16)))
    assert keys(found) == keys(steps("16x16x16", 16))


@pytest.mark.parametrize("batch", [1, 3])
def test_single_steps_of_torch_have_the_bytes_that_they_read_and_make(profiling_registry, batch):
    kinds = {
        "image": ("input", "", {"dims": "5x4x3"}),
        "wide": ("convolution", "image", {"features": "8", "kernel": "1x1"}),
        "parts": ("split", "wide", {"sizes": "2,6"}),
        "norm": ("batch_normalization", "parts:y1", {}),
        "both": ("element_wise", "norm parts:y1", {"operation": "add"}),
        "joined": ("concatenation", "parts norm both", {}),
        "flat": ("flatten", "both", {}),
        "scores": ("fully_connected", "flat", {"features": "7"}),
        "result": ("output", "scores", {}),
        "other": ("output", "joined", {}),
    }
    layers = [
        Layer(name, kind, params=params, inputs=tuple(map(Source.parse, inputs.split())))
        for name, (kind, inputs, params) in kinds.items()
    ]
    inference = Inference(Graph(layers), profiling_registry)
    steps = step_timer(inference, RunOptions("torch", threads=1), batch).single_steps()
    pixels = 5 * 4
    assert [(step.layers, step.what, step.bytes / 4 / batch) for step in steps] == [
        (("wide",), "torch", (3 + 8) * pixels),
        (("parts",), "torch", (8 + 8) * pixels),
        (("parts",), "torch", (8 + 2) * pixels),
        (("parts",), "torch", (8 + 6) * pixels),
        (("norm",), "torch", (6 + 6) * pixels),
        (("both",), "torch", (6 + 6 + 6) * pixels),
        (("flat",), "torch", (6 + 6) * pixels),
        (("joined",), "torch", (2 + 6 + 6 + 14) * pixels),
        (("scores",), "torch", 6 * pixels + 7),
    ]
    assert len({step.key for step in steps}) == len(steps)
    for step in steps:
        assert step.prepare().run() > 0


def test_inputs_of_single_steps_have_the_strides_of_the_network():
    import torch

    whole = torch.empty((1, 197, 768), device="meta")
    for tensor in (
        whole.permute(1, 0, 2),  # the stride of an axis of size 1 decides how torch multiplies it with a matrix
        whole[:, 1:, ::2],
        whole[:, :1].expand(1, 5, 768),
        whole[:0],
        torch.empty((2, 8, 4, 4), device="meta").to(memory_format=torch.channels_last),
        torch.empty((3, 1), dtype=torch.int64, device="meta").t(),
    ):
        made = random_like(tensor)
        assert (made.shape, made.stride(), made.dtype) == (tensor.shape, tensor.stride(), tensor.dtype)
        assert made.device.type == "cpu"
    assert float(random_like(whole).std()) > 0.2


@pytest.mark.usefixtures("without_peaks")
def test_operators_that_cannot_run_by_themselves_are_modelled(
    small_inference, profiling_registry, tmp_path, monkeypatch
):
    options = RunOptions(engine="torch", threads=1)
    table = cost_table(small_inference)
    largest = max(step.bytes for step in step_timer(small_inference, options, 1).single_steps())
    monkeypatch.setattr(module, "LARGEST", largest - 1)
    run = predict_here(small_inference, profiling_registry, options, table, base(options), tmp_path / "peaks.json")
    modelled = [row.name for row in run.operators if not row.alone]
    assert modelled
    assert len(modelled) < len(run.operators)
    assert "test calibration" in run.notes[1]
    assert modelled[0] in run.notes[1]
    assert [row.name for row in run.operators] == ["conv a", "pool", "conv_b", "up", "cat", "conv_c", "sum"]


@pytest.mark.usefixtures("without_peaks")
def test_a_batch_that_does_not_fit_is_modelled(small_inference, profiling_registry, tmp_path):
    options = RunOptions(engine="torch", threads=1)
    table = cost_table(small_inference, batch=1_000_000)
    run = predict_here(small_inference, profiling_registry, options, table, base(options), tmp_path / "peaks.json")
    assert not any(row.alone for row in run.operators)
    assert run.notes == (run.notes[0],)
    assert "test calibration" in run.notes[0]


@pytest.mark.usefixtures("without_peaks")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [*NAMES, *(f"generated_{seed}" for seed in GENERATED)])
def test_recorded_times_of_operators_predict_the_recorded_run_within_25_percent(
    profiling_registry, engine, name, tmp_path, monkeypatch
):
    record = json.loads(recorded_file(engine).read_text())[name]
    options = RunOptions(engine=engine, threads=1)
    monkeypatch.setattr(predicted_here, "peaks_key", lambda _: "recorded")
    (tmp_path / "operators.json").write_text(json.dumps({"recorded | fp32": {"seconds": record["seconds"]}}))
    timed = []
    monkeypatch.setattr(module, "_seconds", lambda step, _: timed.append(step) or 1.0)
    inference = networks(profiling_registry)[name]
    run = predict_here(
        inference, profiling_registry, options, cost_table(inference), base(options), tmp_path / "peaks.json"
    )
    if timed and engine == "onnxruntime":
        pytest.skip("ONNX Runtime has other kernels on this processor than on that of the record")
    assert not timed, "record again: the keys of these operators changed"
    assert run.time_ms == pytest.approx(record["run_ms"], rel=0.25)
