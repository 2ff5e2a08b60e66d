"""Hardware counters from ncu's report to the rows of a profile. Reports are written by hand and a script replaces ncu."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from designer.profiling import counters
from designer.profiling.counters import (
    DRAM,
    DURATION,
    METRICS,
    TENSOR,
    WARPS,
    KernelCounters,
    kernels_of,
    layer_utilization,
    metric_names,
    read_counters,
)
from designer.profiling.quantities import ValueSource

RECORDED = sorted((Path(__file__).parents[1] / "data" / "counters").glob("*.json"))
LAYERS = ("conv", "pool", "dense")
HOPPER = (9, 0)


class Metric:
    """A metric as `ncu_report.IMetric`."""

    def __init__(self, value: float) -> None:
        self._value = value

    def has_value(self) -> bool:
        return True

    def as_double(self) -> float:
        return self._value


class Action:
    """An action as `ncu_report.IAction`, with its NVTX state and domain."""

    def __init__(self, recorded) -> None:
        self._recorded = recorded

    def metric_by_name(self, name):
        value = self._recorded["metrics"].get(name)
        return None if value is None else Metric(value)

    def nvtx_state(self):
        return self if self._recorded["range"] else None

    def domains(self):
        return (0,)

    def domain_by_id(self, number):
        return self

    def push_pop_ranges(self):
        return ("outer", self._recorded["range"])


class Report:
    """A report as `ncu_report.IContext`, with one range."""

    def __init__(self, actions) -> None:
        self._actions = actions

    @staticmethod
    def num_ranges():
        return 1

    def range_by_idx(self, number):
        return self

    def num_actions(self):
        return len(self._actions)

    def action_by_idx(self, index):
        return Action(self._actions[index])


class FakeModule:
    """`ncu_report` for the reports of the script below."""

    @staticmethod
    def load_report(path):
        return Report(json.loads(Path(path).read_text())["actions"])


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_from_the_raw_metrics_of_a_chip_to_utilization(path):
    recorded = json.loads(path.read_text())
    assert "by hand" in recorded["note"]
    names = metric_names(tuple(recorded["capability"]))
    kernels = kernels_of(Report(recorded["actions"]), [DURATION, *names.values()])
    assert [kernel.range for kernel in kernels] == ["lw0", "lw0", "lw1", "lw2"]
    found = layer_utilization(kernels, LAYERS, names).layers
    first, second = (a["metrics"] for a in recorded["actions"][:2])
    metric = names["tensor_core"]
    mean = (first[metric] * first[DURATION] + second[metric] * second[DURATION]) / (first[DURATION] + second[DURATION])
    assert found["conv"]["tensor_core"].value == pytest.approx(mean)
    assert found["conv"]["tensor_core"].source is ValueSource.MEASURED
    assert "mean by duration" in found["conv"]["tensor_core"].reason
    assert found["pool"]["tensor_core"].value == 0.0  # measured: a pooling uses no Tensor Core
    assert found["pool"]["occupancy"].value == 66.0
    if path.stem == "orin":
        assert "no such counter" in found["pool"]["memory_throughput"].reason
    else:
        assert found["pool"]["memory_throughput"].value == recorded["actions"][2]["metrics"][DRAM]
    if path.stem == "b200":  # a metric that is missing is not zero
        assert found["dense"]["tensor_core"].source is ValueSource.UNAVAILABLE
        assert TENSOR in found["dense"]["tensor_core"].reason


def test_five_generations_are_recorded():
    assert {tuple(json.loads(p.read_text())["capability"]) for p in RECORDED} >= {
        (7, 5),
        (8, 0),
        (8, 9),
        (9, 0),
        (10, 0),
    }


def test_a_range_measured_as_a_whole_replaces_its_kernels():
    kernels = [
        KernelCounters("lw0", {DURATION: 1.0, TENSOR: 10.0}),
        KernelCounters("lw0", {DURATION: 1.0, TENSOR: 20.0}),
        KernelCounters("lw0", {DURATION: 1.5, TENSOR: 18.0}, whole_range=True),
        KernelCounters("lw9", {DURATION: 1.0}),
    ]
    found = layer_utilization(kernels, LAYERS, METRICS[HOPPER]).layers
    assert set(found) == {"conv"}
    assert found["conv"]["tensor_core"].value == 18.0
    assert "range replay" in found["conv"]["tensor_core"].reason


FAKE = """#!{python}
import json, pathlib, sys

arguments = sys.argv[1:]
log = pathlib.Path({log!r})
log.write_text(log.read_text() + json.dumps(arguments) + "\\n" if log.exists() else json.dumps(arguments) + "\\n")
print({output!r})
recorded = json.loads(pathlib.Path({recorded!r}).read_text())
options = dict(a.lstrip("-").partition("=")[::2] for a in arguments if a.startswith("--"))
if "import" in options:
    names = sorted({{name for a in recorded["actions"] for name in a["metrics"]}})
    print(",".join(f'"{{n}}"' for n in ["ID", "Kernel Name", *names]))
    for number, action in enumerate(recorded["actions"]):
        values = [f"{{action['metrics'].get(name, 'n/a'):,}}" if name in action["metrics"] else "n/a" for name in names]
        print(",".join(f'"{{v}}"' for v in [number, action["range"] or action["kernel"], *values]))
elif {status} == 0 and {writes}:
    if options["replay-mode"] == "range":
        if not {replays_ranges}:
            sys.exit("==ERROR== the range has a call that cannot be replayed")
        recorded["actions"] = [dict(a, metrics=dict(a["metrics"], **{{{tensor!r}: 77.0}})) for a in recorded["actions"][:1]]
    pathlib.Path(options["export"]).write_text(json.dumps(recorded))
sys.exit({status})
"""


@pytest.fixture
def fake_ncu(tmp_path):
    """A script in place of ncu that writes recorded metrics, and a list of the arguments it got."""

    def make(output="", status=0, writes=True, replays_ranges=True):
        script, log = tmp_path / "ncu", tmp_path / "log"
        recorded = next(path for path in RECORDED if path.stem == "h100")
        text = FAKE.format(
            python=sys.executable, log=str(log), output=output, recorded=str(recorded), status=status, writes=writes,
            tensor=TENSOR, replays_ranges=replays_ranges,
        )  # fmt: skip
        script.write_text(text)
        script.chmod(0o755)
        return str(script), lambda: [json.loads(line) for line in log.read_text().splitlines()]

    return make


def test_a_run_under_ncu(fake_ncu, monkeypatch):
    monkeypatch.setattr(counters, "report_module", lambda tool: FakeModule)
    ncu, calls = fake_ncu()
    found = read_counters(["program", "argument"], LAYERS, HOPPER, ncu)
    assert not found.reason
    assert found.layers["conv"]["tensor_core"].value == 77.0  # two kernels: measured as a range
    assert found.layers["dense"]["tensor_core"].value == 57.5
    first, second = calls()
    assert first[-2:] == second[-2:] == ["program", "argument"]
    assert {"--clock-control=none", "--cache-control=none", "--nvtx", "--replay-mode=kernel"} <= set(first)
    assert f"--metrics={DURATION},{TENSOR},{DRAM},{WARPS}" in first
    assert {"--replay-mode=range", "--nvtx-include=lw0/"} <= set(second)


def test_kernels_are_averaged_where_their_range_cannot_be_replayed(fake_ncu, monkeypatch):
    monkeypatch.setattr(counters, "report_module", lambda tool: FakeModule)
    found = read_counters(["program"], LAYERS, HOPPER, fake_ncu(replays_ranges=False)[0])
    assert not found.reason
    assert "mean by duration" in found.layers["conv"]["tensor_core"].reason
    assert found.layers["dense"]["tensor_core"].value == 57.5


def test_without_the_package_the_report_is_read_by_ncu_itself(fake_ncu, monkeypatch):
    monkeypatch.setattr(counters, "report_module", lambda tool: None)
    found = read_counters(["program"], LAYERS, HOPPER, fake_ncu()[0])
    assert found.layers["pool"]["memory_throughput"].value == 76.6
    assert found.layers["pool"]["occupancy"].value == 66.0


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"output": "==ERROR== ERR_NVGPUCTRPERM - no permission", "status": 1}, "run as administrator"),
        ({"output": "==ERROR== something else", "status": 3}, "status 3: ==ERROR== something else"),
        ({"writes": False, "output": "==WARNING== No kernels were profiled."}, "no report: ==WARNING== No kernels"),
    ],
)
def test_why_there_are_no_counters(fake_ncu, more, reason):
    assert reason in read_counters(["true"], LAYERS, HOPPER, fake_ncu(**more)[0]).reason


def test_without_ncu_or_for_an_unknown_chip(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install NVIDIA Nsight Compute" in read_counters(["true"], LAYERS, HOPPER).reason
    assert "could not be started" in read_counters(["true"], LAYERS, HOPPER, str(tmp_path / "absent")).reason
    assert "compute capability 99.0 are not known" in read_counters(["true"], LAYERS, (99, 0), "ncu").reason


def test_a_report_of_other_kernels_only():
    assert "no kernel in the range" in layer_utilization([], LAYERS, METRICS[HOPPER]).reason


def test_a_counter_of_zero_is_a_value_and_one_that_was_not_read_is_left_out():
    table = """==PROF== Connected
"ID","Kernel Name","a","b","c","d","e"
"","","%","%","","",""
"0","layerwright_range_1","0","0.0","n/a","","1,234.5"
"1","another","1","1","1","1","1"
"""
    table = table.replace("layerwright_range_1", f"{counters.RANGE}1")
    (kernel,) = counters.kernels_of_table(table, "abcdef")
    assert kernel.metrics == {"a": 0.0, "b": 0.0, "e": 1234.5}
