"""Energy counters: RAPL as files, NVML as a module, and why there is none."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from designer.profiling.energy import energy_counter, energy_of


@pytest.fixture
def rapl(tmp_path):
    (tmp_path / "energy_uj").write_text("900000")
    (tmp_path / "max_energy_range_uj").write_text("999999")
    return tmp_path


def test_the_counter_of_the_processor_wraps_around(rapl):
    read = energy_counter("cpu", rapl)
    assert read() == 0.0
    (rapl / "energy_uj").write_text("950000")
    assert read() == pytest.approx(0.05)
    (rapl / "energy_uj").write_text("50000")
    assert read() == pytest.approx(0.15)


def test_why_the_processor_has_no_counter(rapl, monkeypatch):
    assert "no RAPL" in energy_counter("cpu", rapl / "absent")
    (rapl / "energy_uj").write_text("not a number")
    assert "cannot be read" in energy_counter("cpu", rapl)

    def refused(path):
        raise PermissionError

    monkeypatch.setattr("pathlib.Path.read_text", refused)
    assert "sudo chmod a+r" in energy_counter("cpu", rapl)


def fake_nvml(monkeypatch, supported=True):
    module = ModuleType("pynvml")
    module.NVMLError = type("NVMLError", (Exception,), {})
    millijoules = iter((1000, 3500, 6000))

    def energy(handle):
        if not supported:
            raise module.NVMLError("Not Supported")
        return next(millijoules)

    module.nvmlInit = lambda: None
    module.nvmlDeviceGetHandleByIndex = lambda number: number
    module.nvmlDeviceGetTotalEnergyConsumption = energy
    monkeypatch.setitem(sys.modules, "pynvml", module)
    monkeypatch.setattr("designer.profiling.energy.util.find_spec", lambda name: module)


def test_the_counter_of_a_gpu(monkeypatch):
    fake_nvml(monkeypatch)
    read = energy_counter("cuda:0")
    assert [read(), read()] == [3.5, 6.0]


def test_why_a_gpu_has_no_counter(monkeypatch):
    fake_nvml(monkeypatch, supported=False)
    assert "Not Supported" in energy_counter("cuda")
    monkeypatch.setattr("designer.profiling.energy.util.find_spec", lambda name: None)
    assert "layerwright[nvidia]" in energy_counter("cuda")


def test_energy_per_run_and_work_per_joule():
    found = energy_of(20.0, 4.0, 10, 10**9)
    assert (found.joules.value, found.watts.value, found.flops_per_joule.value) == (2.0, 5.0, 5e8)
    assert "too short" in energy_of(0.1, 0.01, 1, 1).joules.reason
