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
from designer.profiling.quantities import measured, unavailable
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun, mean_utilization


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
