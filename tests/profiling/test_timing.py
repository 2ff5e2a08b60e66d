"""Profiling a small network on both engines: what was fused is told as it is, and the record survives its file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import Registry
from designer.profiling.figures import Origin, measured
from designer.profiling.peaks import Peaks
from designer.profiling.report import UTILISATION, from_json, load_records, save_records, to_csv, to_json
from designer.profiling.timing import profile
from designer.runtime.api import RunOptions
from designer.runtime.session import Session

PEAKS = Peaks(
    measured(100e9, "FLOP/s"),
    measured(80e9, "B/s"),
    measured(20e9, "B/s"),
    1 << 20,
    measured(0.5, "%"),
    "2026-01-01T00:00:00+00:00",
    "onnxruntime",
    "fp32",
    1,
)


@pytest.fixture
def profiled(small_graph, profiling_registry: Registry, small_weights):
    def run(engine: str, layout: str = "nchw", iterations: int = 3, **more):
        options = RunOptions(engine=engine, layout=layout, threads=1)
        session = Session(more.pop("graph", small_graph), profiling_registry, small_weights, options)
        return profile(session, iterations, warmup=1, peaks=PEAKS, **more)

    return run


def test_torch_times_every_layer_by_itself(profiled):
    record = profiled("torch")
    assert all(len(g.layers) == 1 for g in record.groups)
    assert {g.name for g in record.groups} == {"conv a", "pool", "conv_b", "up", "cat", "conv_c", "sum"}
    assert record.total["time"].value > 0
    assert record.total["time"].source is Origin.MEASURED
    assert sum(g.figures["flops"].value for g in record.groups) == record.total["flops"].value
    assert sum(g.figures["share"].value for g in record.groups) == pytest.approx(100.0)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_onnxruntime_shows_fused_groups_and_loses_no_layer(profiled, layout):
    record = profiled("onnxruntime", layout)
    by_layer = {n: g for g in record.groups for n in g.layers}
    assert set(by_layer) == {"conv a", "pool", "conv_b", "up", "cat", "conv_c", "sum"}
    assert sum(len(g.layers) for g in record.groups) == len(by_layer)  # every layer is in one group
    assert sum(g.figures["flops"].value for g in record.groups) == record.total["flops"].value
    assert all(g.what for g in record.groups)


def test_groups_are_sorted_by_what_would_be_saved(profiled):
    savings = [g.figures["saving"].value for g in profiled("torch").groups]
    assert savings == sorted(savings, reverse=True)


def test_utilisation_without_a_gpu(profiled):
    record = profiled("torch")
    assert set(record.utilisation) == set(UTILISATION)
    assert record.utilisation["tensor_cores"].source is Origin.UNAVAILABLE
    assert "NVIDIA" in record.utilisation["tensor_cores"].reason
    assert record.utilisation["occupancy"].source is Origin.UNAVAILABLE
    assert record.utilisation["memory"].source is Origin.MODELLED
    assert record.utilisation["compute"].source is Origin.MODELLED
    assert record.groups[0].utilisation["memory"].value > 0


def test_inputs_without_data_get_noise_and_the_record_says_so(profiled):
    assert any("noise" in note and "image" in note for note in profiled("torch").notes)


def test_the_size_of_what_was_fed_counts(small_graph, profiling_registry, small_weights):
    session = Session(small_graph, profiling_registry, small_weights, RunOptions(engine="torch", threads=1))
    session.set_input("image", np.zeros((1, 3, 48, 64), np.float32), is_image=True)
    record = profile(session, 1, warmup=0, peaks=PEAKS)
    assert record.inputs == {"image": "1 x 3 x 48 x 64"}
    assert record.total["flops"].value == 4 * (2 * 24 * 32 * 8 * 27 + 2 * 12 * 16 * 8 * 72 + 2 * 24 * 32 * 3 * 400)
    assert not any("noise" in note for note in record.notes)


def test_analysis_layers_are_left_out_and_named(small_graph, profiling_registry, small_weights, profiled):
    if profiling_registry.get("noise") is None:
        pytest.skip("no noise layer")
    noisy = Layer("noise_0", "noise", inputs=(Source("image"),))
    layers = [layer.with_input(0, Source("noise_0")) if layer.name == "conv a" else layer for layer in small_graph]
    record = profiled("torch", graph=Graph([*layers, noisy], name="noisy"))
    assert any("noise_0" in note for note in record.notes)
    assert "noise_0" not in {n for g in record.groups for n in g.layers}


def test_progress_counts_to_the_end(profiled):
    seen = []
    profiled("onnxruntime", iterations=2, progress=lambda *step: seen.append(step))
    assert [s[0] for s in seen] == list(range(len(seen)))
    assert seen[-1][0] == seen[-1][1]


def test_weights_note_is_kept(profiled):
    assert profiled("torch").weights == "random weights (seed 0)"


def test_no_iterations_is_refused(profiled):
    with pytest.raises(DiagnosticError, match="bad-iterations"):
        profiled("torch", iterations=0)


def test_nothing_to_profile_is_refused(profiling_registry, small_weights):
    graph = Graph([Layer("a", "input", params={"dims": "8x8x3"}), Layer("b", "output", inputs=(Source("a"),))])
    with pytest.raises(DiagnosticError, match="nothing-to-profile"):
        profile(Session(graph, profiling_registry, small_weights, RunOptions(threads=1)), 1, peaks=PEAKS)


def test_a_record_survives_its_file(profiled, tmp_path):
    record = profiled("onnxruntime")
    path = tmp_path / "run.json"
    save_records(path, [record])
    assert load_records(path) == (record,)
    text = json.loads(path.read_text())
    assert text["schema"] == "layerwright-profile"
    figure = text["records"][0]["groups"][0]["figures"]["time"]
    assert set(figure) == {"value", "unit", "source", "reason"}


def test_the_table_as_csv(profiled):
    record = profiled("torch")
    lines = to_csv(record).splitlines()
    assert len(lines) == 1 + len(record.groups)
    assert lines[0].startswith("layers,types,summary,inputs,outputs,bound,time [s],time source")
    assert "unavailable" in lines[1]


def damaged(record, change):
    data = json.loads(to_json([record]))
    change(data)
    return data


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda d: d.update(schema="other"), "schema"),
        (lambda d: d.update(version=99), "version"),
        (lambda d: d.update(records=[]), "no records"),
        (lambda d: d["records"][0].pop("machine"), "records[0]: object missing required field machine"),
        (lambda d: d["records"][0]["groups"][0].update(layers=[]), "groups[0]: layers is empty"),
        (
            lambda d: d["records"][0]["groups"][0]["figures"]["time"].update(value="fast"),
            "groups[0].figures[...].value",
        ),
        (lambda d: d["records"][0]["groups"][0]["figures"]["time"].update(unit="parsec"), "unit"),
        (
            lambda d: d["records"][0]["groups"][0]["figures"]["time"].update(value=None),
            "groups[0].figures[...]: a figure has a value unless",
        ),
        (lambda d: d["records"][0]["total"]["time"].update(value=1e400), "total[...]: a figure must be finite"),
        (
            lambda d: d["records"][0]["total"]["time"].update(source="guessed"),
            "total[...].source: invalid enum value 'guessed'",
        ),
        (lambda d: d["records"][0].update(iterations=-1), "iterations"),
        (lambda d: d["records"][0].update(peaks={"compute": 3}), "peaks"),
        (lambda d: d["records"][0]["peaks"].update(others=7), "peaks"),
    ],
)
def test_damaged_records_are_refused_with_the_place(profiled, change, where):
    data = damaged(profiled("torch", iterations=1), change)
    with pytest.raises(DiagnosticError) as caught:
        from_json(data, "x.json")
    finding = caught.value.diagnostics[0]
    assert finding.code == "bad-record"
    assert where in finding.message
    assert finding.remedy


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"[" * 100_000, b"[1, 2]", b'{"a": NaN}'])
def test_files_that_are_no_records_are_refused(tmp_path, content):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(DiagnosticError, match="bad-record"):
        load_records(path)
    with pytest.raises(DiagnosticError, match="bad-record"):
        load_records(tmp_path / "absent.json")
