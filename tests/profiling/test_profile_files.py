"""Profile files: round trip, version 1, and files that are damaged, hostile or of another network."""

from __future__ import annotations

import copy
import csv
import json
from dataclasses import replace

import pytest

from designer.graph.commands import set_params
from designer.graph.diagnostics import DiagnosticError
from designer.graph.inference import Inference
from designer.profiling.machine import Machine
from designer.profiling.matching import match_rows
from designer.profiling.profile_files import from_json, load_profile, save_profile, to_csv, to_json
from designer.profiling.quantities import measured, modelled, unavailable
from designer.profiling.schema import UTILIZATION, OperatorProfile, Profile, ProfileRun, mean_utilization


def row(name, time_ms=1.0, **more):
    more = {"type": "convolution", "outputs": ("N x 8 x 24 x 32",), **more}
    return OperatorProfile((name,), time_ms=time_ms, **more)


@pytest.fixture
def profile() -> Profile:
    rows = (row("conv a", 3.0, saving_ms=1.0), row("conv_b", 1.0, saving_ms=2.0, tensor_core=measured(40.0)))
    run = ProfileRun("torch", "fp32", "nchw", "cpu", 1, "32x24", 4.1, 0.1, rows, iterations=5)
    return Profile(Machine("a processor", 4), "small", (run,))


def test_a_file_gives_the_same_profile(profile, tmp_path):
    save_profile(tmp_path / "p.json", profile)
    assert load_profile(tmp_path / "p.json") == profile
    written = json.loads((tmp_path / "p.json").read_text())
    assert list(written) == ["schema", "version", "machine", "network", "runs"]
    operator = written["runs"][0]["operators"][1]
    assert operator["tensor_core"] == {"value": 40.0, "source": "measured", "reason": ""}
    assert operator["occupancy"] == {"value": None, "source": "unavailable", "reason": "not part of this profile"}


def test_rows_are_in_the_order_of_optimization_priority(profile):
    table = list(csv.DictReader(to_csv(profile.runs[0]).splitlines()))
    assert [cells["layers"] for cells in table] == ["conv_b", "conv a"]
    assert [float(cells["share_percent"]) for cells in table] == [25.0, 75.0]


def test_several_runs_are_one_table(profile, tmp_path):
    runs = (profile.runs[0], replace(profile.runs[0], batch=4, engine="onnxruntime"))
    save_profile(tmp_path / "p.csv", replace(profile, runs=runs))
    with (tmp_path / "p.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [(cells["layers"], cells["engine"], cells["batch"], cells["size"]) for cells in table] == [
        (layers, engine, batch, "32x24")
        for engine, batch in (("torch", "1"), ("onnxruntime", "4"))
        for layers in ("conv_b", "conv a")
    ]


def test_a_truncated_file_is_not_a_profile(profile, tmp_path):
    path = tmp_path / "p.json"
    path.write_text(to_json(profile)[:-20])
    with pytest.raises(DiagnosticError, match="not complete JSON") as caught:
        load_profile(path)
    assert caught.value.diagnostics[0].remedy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema="other"), "schema"),
        (lambda d: d.update(version=3), "version is 3"),
        (lambda d: d.update(runs=[]), "no runs"),
        (lambda d: d["runs"][0].update(time_ms=-1), r"runs\[0\]: time_ms must be 0 or from"),
        (lambda d: d["runs"][0].update(batch=0), "batch must be 1 or more"),
        (lambda d: d["runs"][0]["operators"][0].update(flops=10**30), r"operators\[0\]"),
        (lambda d: d["runs"][0]["operators"][0].update(time_ms=1e300), r"operators\[0\]: time_ms"),
        (lambda d: d["runs"][0]["operators"][0].update(time_ms=1e-300), r"operators\[0\]: time_ms"),
        (lambda d: d["runs"][0]["load"].update(value=-1.0, source="measured"), r"runs\[0\]: load must be 0 or from"),
        (
            lambda d: d["runs"][0]["operators"][0]["compute_throughput"].update(value=1e300, source="measured"),
            "value must be from",
        ),
        (lambda d: d["runs"][0]["operators"][0].update(time_ms="fast"), r"operators\[0\].time_ms: expected"),
        (lambda d: d["runs"][0]["operators"][0].update(bound="luck"), "bound"),
        (
            lambda d: d["runs"][0]["operators"][0].update(occupancy={"value": None, "source": "measured"}),
            "value must be null",
        ),
        (lambda d: d["runs"][0].update(peak_memory={"bytes": 1, "operator": 7}), "index of an operator"),
    ],
)
def test_a_wrong_field_is_named(profile, change, message):
    data = json.loads(to_json(profile))
    change(data)
    with pytest.raises(DiagnosticError, match=message):
        from_json(data)


def figure(value, unit="s"):
    return {"value": value, "unit": unit, "source": "modelled", "reason": ""}


VERSION_1 = {
    "schema": "layerwright-profile",
    "version": 1,
    "records": [
        {
            "network": "small",
            "date": "2025-01-01T00:00:00+00:00",
            "machine": {"cpu": "c", "cores": 2, "gpu": "NVIDIA A100", "system": "", "versions": {}},
            "options": {"engine": "torch", "precision": "fp16", "layout": "nhwc", "device": "cuda", "threads": "2"},
            "iterations": 50,
            "warmup": 5,
            "inputs": {"image": "4 x 3 x 24 x 32"},
            "total": {"time": figure(0.002), "flops": figure(2e9, "FLOP")},
            "utilisation": {},
            "groups": [
                {
                    "layers": ["conv a"],
                    "types": ["convolution"],
                    "summary": "",
                    "parameters": {},
                    "inputs": [],
                    "outputs": [],
                    "figures": {"time": figure(0.002), "saving": figure(-0.001), "flops": figure(2e9, "FLOP")},
                    "utilisation": {"tensor_cores": figure(61.0, "%")},
                    "bound": "compute",
                    "what": "",
                }
            ],
        }
    ],
}


def test_version_1_is_read():
    profile = from_json(VERSION_1)
    run = profile.runs[0]
    assert (run.batch, run.size, run.time_ms, run.threads) == (4, "32x24", 2.0, 2)
    assert profile.chip(run) == "NVIDIA A100"
    assert run.operators[0].tensor_core.value == 61.0
    assert run.operators[0].saving_ms == 0.0
    assert run.operators[0].at_roof


def test_version_1_of_two_machines_is_refused():
    data = copy.deepcopy(VERSION_1)
    data["records"].append({**data["records"][0], "network": "another"})
    with pytest.raises(DiagnosticError, match="several networks"):
        from_json(data)


def test_rows_of_another_network_are_listed(profile, small_graph, profiling_registry):
    run = profile.runs[0]
    stranger = row("stranger")
    wider = row("conv_c", outputs=("N x 99 x 24 x 32",))
    inference = Inference(small_graph, profiling_registry)
    found = match_rows(replace(run, operators=(*run.operators, stranger, wider)), inference)
    assert set(found.rows) == {"conv a", "conv_b"}
    assert found.others == (stranger, wider)
    small_graph.apply(set_params(small_graph, {"image": {"dims": "64x64x3"}}))
    assert set(match_rows(run, Inference(small_graph, profiling_registry)).rows) == {"conv a", "conv_b"}


def test_mean_utilization_is_weighted_by_time_and_keeps_the_reason():
    rows = [row("a", 1.0, tensor_core=measured(10.0)), row("b", 3.0, tensor_core=measured(50.0))]
    found = mean_utilization(rows)
    assert found["tensor_core"].value == 40.0
    assert found["occupancy"].value is None
    assert (
        mean_utilization([*rows, row("c", tensor_core=unavailable("no rights"))])["tensor_core"].reason == "no rights"
    )


def test_every_column_of_a_table():
    used = {"tensor_core": measured(12.5), "memory_throughput": modelled(80.0), "occupancy": unavailable("no ncu")}
    first = OperatorProfile(
        ("a", "b"), "convolution + relu", 4.0, 0.25, "5x5", {}, ("N x 3 x 24 x 32", "N x 1"), ("N x 8 x 24 x 32",),
        6000, 2000, 224, 4096, bound="memory", roof_ms=2.5, saving_ms=1.5, **used,
    )  # fmt: skip
    run = ProfileRun("torch", "fp32", "nchw", "cpu", 1, "", 5.0, None, (first, OperatorProfile((), "", 1.0)))
    table = list(csv.DictReader(to_csv(run).splitlines()))
    assert table[0] == {
        "layers": "a + b",
        "type": "convolution + relu",
        "hyperparameters": "5x5",
        "inputs": "N x 3 x 24 x 32; N x 1",
        "outputs": "N x 8 x 24 x 32",
        "time_ms": "4",
        "spread_ms": "0.25",
        "share_percent": "80",
        "flops": "6000",
        "bytes": "2000",
        "flops_per_s": "1500000",
        "bytes_per_s": "500000",
        "memory_bytes": "4096",
        "bound": "memory",
        "roof_ms": "2.5",
        "times_roof": "1.6",
        "engine": "torch",
        "precision": "fp32",
        "layout": "nchw",
        "device": "cpu",
        "batch": "1",
        "size": "",
        "saving_ms": "1.5",
        "tensor_core": "12.5",
        "tensor_core_source": "measured",
        "memory_throughput": "80",
        "memory_throughput_source": "modelled",
        "occupancy": "",
        "occupancy_source": "unavailable",
        "compute_throughput": "",
        "compute_throughput_source": "unavailable",
    }
    assert (table[1]["memory_bytes"], table[1]["roof_ms"], table[1]["times_roof"]) == ("", "", "")


def v1_group(number):
    keys = ("time", "spread", "flops", "bytes", "parameters", "roof", "saving")
    return {
        "layers": [f"layer {number}", "other"],
        "types": ["convolution", "relu"],
        "summary": "3x3",
        "parameters": {"other": {"kernel": "3x3"}},
        "inputs": ["N x 1"],
        "outputs": ["N x 2"],
        "figures": {key: figure(number + place) for place, key in enumerate(keys)},
        "utilisation": {
            key: figure(value, "%")
            for key, value in (("tensor_cores", 11.0), ("memory", 12.0), ("occupancy", 13.0), ("compute", 14.0))
        },
        "bound": "memory",
        "what": "kernel",
    }


def test_every_value_of_version_1():
    data = copy.deepcopy(VERSION_1)
    record = data["records"][0]
    record["groups"] = [v1_group(1), v1_group(2)]
    record["total"] = {key: figure(n) for n, key in enumerate(("time", "spread", "flops", "parameters"), 3)}
    record["peaks"] = {key: figure(n) for n, key in enumerate(("compute", "cache", "memory", "foreign"), 21)}
    record["peaks"] |= {"cache_bytes": 99, "date": "some day", "others": {"tf32": figure(31)}}
    record |= {"weights": "seeded", "notes": ["a note"], "checks": {"image": figure(0.5)}, "provenance": {"by": "x"}}
    run = from_json(data).runs[0]
    assert (run.time_ms, run.spread_ms, run.flops, run.learned) == (3000.0, 4000.0, 5, 6)
    assert (run.iterations, run.warmup, run.date) == (50, 5, "2025-01-01T00:00:00+00:00")
    assert (run.engine, run.precision, run.layout, run.device) == ("torch", "fp16", "nhwc", "cuda")
    assert run.inputs == {"image": "4 x 3 x 24 x 32"}
    peaks = run.peaks
    assert (peaks.flops_per_s.value, peaks.memory_bytes_per_s.value, peaks.cache_bytes_per_s.value) == (21, 23, 22)
    assert (peaks.cache_bytes, peaks.date, peaks.others["tf32"].value, run.load.value) == (99, "some day", 31, 24)
    assert (run.weights, run.notes, run.checks["image"].value, run.provenance) == (
        "seeded",
        ("a note",),
        0.5,
        {"by": "x"},
    )
    row = run.operators[1]
    assert (row.time_ms, row.spread_ms, row.flops, row.bytes, row.learned) == (2000.0, 3000.0, 4, 5, 6)
    assert (row.roof_ms, row.saving_ms) == (7000.0, 8000.0)
    assert [getattr(row, key).value for key in UTILIZATION] == [11.0, 12.0, 13.0, 14.0]
    assert (row.layers, row.type, row.summary, row.bound, row.kernels) == (
        ("layer 2", "other"), "convolution + relu", "3x3", "memory", "kernel"
    )  # fmt: skip
    assert (row.inputs, row.outputs, row.parameters) == (("N x 1",), ("N x 2",), {"other": {"kernel": "3x3"}})


def test_version_1_without_options_and_images():
    data = copy.deepcopy(VERSION_1)
    data["records"][0] |= {"options": {"threads": "many"}, "inputs": {"vector": "0 x 7"}, "total": {}, "groups": []}
    run = from_json(data).runs[0]
    assert (run.engine, run.precision, run.layout, run.device, run.threads) == ("?", "?", "?", "cpu", 0)
    assert (run.batch, run.size, run.time_ms, run.flops, run.peaks) == (1, "", None, 0, None)
    data["records"][0]["inputs"] = {"vector": "6 x 7", "image": "6 x 3 x 9 x 5"}
    run = from_json(data).runs[0]
    assert (run.batch, run.size) == (6, "5x9")
    data["records"][0]["inputs"] = {"vector": "2 x 7", "image": "6 x 3 x 9 x 5", "other": "4 x 1 x 8 x 8"}
    run = from_json(data).runs[0]
    assert (run.batch, run.size) == (2, "5x9")  # of the first input, and of the first image
    data["records"][0]["total"] = {"time": figure(-1.0)}
    with pytest.raises(DiagnosticError, match="must not be negative"):
        from_json(data)


def test_version_1_without_records_or_of_another_network():
    with pytest.raises(DiagnosticError, match="no runs"):
        from_json({**VERSION_1, "records": []})
    for change in ({"layers": []}, {"figures": {}}):
        data = copy.deepcopy(VERSION_1)
        data["records"][0]["groups"][0] |= change
        with pytest.raises(DiagnosticError, match=r"layers is empty|figures has no time"):
            from_json(data)
    data = copy.deepcopy(VERSION_1)
    machine = {**data["records"][0]["machine"], "cpu": "another"}
    data["records"].append({**data["records"][0], "machine": machine})
    with pytest.raises(DiagnosticError, match="machines"):
        from_json(data)


@pytest.mark.parametrize(
    ("type_", "outputs", "matches"),
    [
        ("convolution", ("N x 8 x 5 x 6",), True),
        ("convolution + relu", ("N x 8 x 5 x 6",), True),
        ("", ("N x 8 x 5 x 6",), True),
        ("convolution", (), True),
        ("pooling", ("N x 8 x 5 x 6",), False),
        ("convolution", ("N x 9 x 5 x 6",), False),
        ("convolution", ("N x 8 x 5",), False),
        ("convolution", ("N",), False),
    ],
)
def test_a_row_matches_by_type_channels_and_number_of_axes(
    profile, small_graph, profiling_registry, type_, outputs, matches
):
    found = OperatorProfile(("conv a",), type_, 1.0, outputs=outputs)
    outside = OperatorProfile((), "", 1.0)
    run = replace(profile.runs[0], operators=(outside, found))
    matching = match_rows(run, Inference(small_graph, profiling_registry))
    assert matching.rows == ({"conv a": found} if matches else {})
    assert matching.others == (() if matches else (found,))


@pytest.mark.parametrize(
    ("layers", "type_", "inputs", "matches"),
    [
        (("conv a",), "convolution", ("N x 3 x 9 x 9",), True),
        (("conv a",), "convolution", ("N x 4 x 9 x 9",), False),  # it reads more channels now
        (("conv a",), "convolution", ("N x 3",), False),
        (("conv_c", "sum"), "convolution + element_wise", (), True),
        (("sum", "conv_c"), "convolution + element_wise", ("N x 99 x 9 x 9",), True),  # `sum` reads inside of the row
        (("conv_c", "sum"), "convolution + pooling", (), False),  # one of its layers was replaced
    ],
)
def test_a_row_whose_layers_compute_something_else_now_does_not_match(
    profile, small_graph, profiling_registry, layers, type_, inputs, matches
):
    found = OperatorProfile(layers, type_, 1.0, inputs=inputs)
    matching = match_rows(replace(profile.runs[0], operators=(found,)), Inference(small_graph, profiling_registry))
    assert set(matching.rows) == (set(layers) if matches else set())


def test_a_fused_row_is_that_of_each_of_its_layers(profile, small_graph, profiling_registry):
    fused = OperatorProfile(("conv_c", "sum"), "convolution + element_wise", 1.0, outputs=("N x 3 x 9 x 9",))
    unknown = replace(fused, layers=("conv_c", "gone"))
    run = replace(profile.runs[0], operators=(unknown, fused))
    matching = match_rows(run, Inference(small_graph, profiling_registry))
    assert matching.rows == {"conv_c": fused, "sum": fused}
    assert matching.others == (unknown,)
