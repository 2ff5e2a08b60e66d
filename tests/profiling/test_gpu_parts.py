"""The GPU by fake drivers: its name and versions, the key of its peaks, and the rates that follow from times."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from designer.profiling import counters, gpu
from designer.profiling.difference import RowDifference, RunDifference
from designer.profiling.energy import energy_counter, energy_of, no_energy
from designer.profiling.heat import difference_heat
from designer.profiling.quantities import measured, modelled, unavailable
from designer.profiling.schema import ProfileRun

torch = pytest.importorskip("torch")


@pytest.fixture
def card(monkeypatch):
    """A GPU with 64 MiB of cache and the driver 550."""
    properties = SimpleNamespace(uuid="12ab", L2_cache_size=64 << 20)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"card of {device}")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 9))
    second = SimpleNamespace(uuid="34cd", L2_cache_size=1)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: second if device == torch.device("cuda:5") else properties
    )
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (3 << 30, 8 << 30))
    monkeypatch.setattr(torch.version, "cuda", "12.4")
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 90100)
    asked = []
    monkeypatch.setattr(
        gpu,
        "nvidia_smi",
        lambda field, number="0": asked.append((field, number)) or {"driver_version": "550"}.get(field, "12"),
    )
    return SimpleNamespace(properties=properties, asked=asked)


def test_the_name_and_the_versions_of_a_gpu(card, monkeypatch):
    found = {"cuda": "12.4", "compute capability": "8.9", "cudnn": "90100", "driver": "550"}
    assert gpu.gpu_versions("cuda:1") == ("card of cuda:1", found)
    assert card.asked == [("driver_version", "GPU-12ab")]
    assert gpu.gpu_key("cuda:1", "fp16") == f"card of cuda:1 | fp16 | driver 550 | torch {torch.__version__}"
    assert gpu.free_gpu_memory("cuda:1") == 3 << 30
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: None)
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(gpu, "nvidia_smi", lambda *_: "")
    assert gpu.gpu_versions("cuda:1")[1] == {"cuda": "", "compute capability": "8.9"}
    assert "driver ? |" in gpu.gpu_key("cuda", "fp32")


@pytest.mark.parametrize(
    ("code", "text", "found"),
    [
        (0, " 550.54 \n551\n", "550.54"),
        (0, "\n", ""),
        (9, "NVIDIA-SMI has failed because it cannot reach the driver.\n", ""),
        (6, "No devices were found\n", ""),
    ],
)
def test_a_field_of_a_gpu_is_empty_if_the_tool_of_the_driver_fails(monkeypatch, code, text, found):
    """The tool writes its errors where its answers are."""

    def run(command, *, check=False, **_more):
        assert command == ["smi", "--query-gpu=driver_version", "--format=csv,noheader,nounits", "--id=GPU-12ab"]
        done = subprocess.CompletedProcess(command, code, text, "")
        if check:
            done.check_returncode()
        return done

    monkeypatch.setattr(gpu.shutil, "which", lambda name: "smi" if name == "nvidia-smi" else None)
    monkeypatch.setattr(gpu.subprocess, "run", run)
    assert gpu.nvidia_smi("driver_version", "GPU-12ab") == found


@pytest.mark.parametrize(("device", "number"), [("cuda", "0"), ("cuda:0", "0"), ("cuda:3", "3")])
def test_a_gpu_is_named_by_its_uuid_or_else_by_its_number(card, monkeypatch, device, number):
    assert gpu.gpu_id(device) == "GPU-12ab"
    assert gpu.gpu_id("cuda:5") == "GPU-34cd"
    del card.properties.uuid
    assert gpu.gpu_id(device) == number

    def without(_device):
        raise RuntimeError("no CUDA here")

    monkeypatch.setattr(torch.cuda, "get_device_properties", without)
    assert gpu.gpu_id(device) == number


@pytest.fixture
def tf32():
    """Restores whether products may be rounded to TF32, which cannot be patched."""
    before = torch.backends.cuda.matmul.allow_tf32
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.usefixtures("tf32")
@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_the_peaks_of_a_gpu_follow_from_the_times_of_products_and_copies(card, monkeypatch, precision, allowed):
    """Measured with tensors of the processor and given times."""
    times = {
        "float32 False": 0.5,
        "float32 True": 0.25,
        "float16 False": 0.125,
        "bfloat16 False": 0.1,
        "copy 3": 2.0,
        "copy 50": 0.5,
    }
    flags = []
    monkeypatch.setattr(
        torch, "mm", lambda a, b, *, out: flags.append(f"{str(a.dtype)[6:]} {torch.backends.cuda.matmul.allow_tf32}")
    )
    torch.backends.cuda.matmul.allow_tf32 = allowed

    def seconds(work, runs, repeat=1):
        flags.clear()
        work()
        assert runs == (5 if flags else 10)
        return times[flags[0] if flags else f"copy {repeat}"]

    monkeypatch.setattr(gpu, "best_seconds", seconds)
    found = gpu.measure_gpu("cpu", precision, size=64, copy_bytes=1 << 22)
    assert torch.backends.cuda.matmul.allow_tf32 is allowed
    kinds = {"fp32": ("float32", 0.5), "tf32": ("TF32", 0.25), "fp16": ("float16", 0.125), "bf16": ("bfloat16", 0.1)}
    peaks = {name: measured(2 * 64**3 / s, f"64 x 64 matrix product, {kind}") for name, (kind, s) in kinds.items()}
    assert found.compute == peaks.pop(precision)
    assert found.others == peaks
    assert found.memory == measured((1 << 22) / 2.0, "copy of 4 MiB, read and written")
    assert found.cache == measured((16 << 20) / 0.5, "copy of 16 MiB, read and written")
    assert (found.cache_bytes, found.engine, found.precision, found.threads) == (64 << 20, "torch", precision, 0)
    assert found.foreign == measured(12.0, "use of the GPU before the calibration")
    del card.properties.L2_cache_size
    again = gpu.measure_gpu("cpu", precision, size=64, copy_bytes=1 << 22)
    assert (again.cache, again.cache_bytes) == (unavailable("the size of the L2 cache is not known"), 0)


@pytest.mark.usefixtures("tf32")
def test_a_product_that_fails_is_named_and_leaves_the_setting(card, monkeypatch):
    def fails(*_arguments, **_more):
        raise RuntimeError("not enough memory\nwith details")

    monkeypatch.setattr(torch, "mm", fails)
    monkeypatch.setattr(gpu, "best_seconds", lambda work, runs, repeat=1: work())
    before = torch.backends.cuda.matmul.allow_tf32
    found = gpu._matmul_peak(torch.device("cpu"), torch.float32, not before, 8)
    assert found == unavailable("the matrix product failed: not enough memory")
    assert torch.backends.cuda.matmul.allow_tf32 == before


@pytest.mark.parametrize(
    ("text", "found"), [("7", measured(7.0, "use of the GPU before the calibration")), ("[N/A]", None), ("", None)]
)
def test_how_busy_a_gpu_was(monkeypatch, text, found):
    monkeypatch.setattr(
        gpu, "nvidia_smi", lambda field, number: text if (field, number) == ("utilization.gpu", "3") else "?"
    )
    assert gpu._foreign("3") == (found or unavailable("nvidia-smi did not report how busy the GPU was"))


# --- energy and counters -----------------------------------------------------------------------------------------------


def test_energy_is_that_of_one_run():
    reason = "5 runs in 2 s, with the idle power of the device"
    found = energy_of(30.0, 2.0, 5, 1200)
    assert (found.joules, found.watts) == (measured(6.0, reason), measured(15.0, reason))
    assert found.flops_per_joule == modelled(200.0, "FLOP per joule")
    assert energy_of(30.0, 0.123, 5, 1200) == no_energy("the runs took 0.12 s, too short for the energy counter")
    assert no_energy("none").watts == unavailable("none")


def test_why_the_counter_of_a_processor_cannot_be_read(tmp_path):
    assert energy_counter("cpu", tmp_path) == "this processor or system has no RAPL energy counter"
    (tmp_path / "energy_uj").write_text("many")
    (tmp_path / "max_energy_range_uj").write_text("9")
    assert energy_counter("cpu", tmp_path).startswith("the RAPL energy counter cannot be read: invalid literal")


def test_the_report_module_is_the_installed_one_or_that_of_the_tool(monkeypatch, tmp_path):
    tool = tmp_path / "bin" / "ncu"
    monkeypatch.setattr(counters.importlib.util, "find_spec", lambda name: None)
    assert counters.report_module(tool) is None
    folder = tmp_path / "bin" / "extras" / "python"
    folder.mkdir(parents=True)
    (folder / "ncu_report.py").write_text("made = 'by the tool'")
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "ncu_report", raising=False)
    assert counters.report_module(tool).made == "by the tool"
    monkeypatch.setitem(sys.modules, "ncu_report", installed := SimpleNamespace())
    monkeypatch.setattr(counters.importlib.util, "find_spec", lambda name: installed)
    assert counters.report_module(tool) is installed


def test_a_step_of_several_layers_that_appear_as_one_counts_once():
    rows = (RowDifference(("t/x", "t/y", "b"), 5.0, 1.0, 0.1), RowDifference(("t/z",), 1.0, 2.0, 0.1))
    run = ProfileRun("torch", "fp32", "nchw", "cpu", 1, "8x4", None, None, ())
    found = difference_heat(RunDifference(run, run, rows[0], rows), lambda path: path.partition("/")[0])
    assert found.values == pytest.approx({"t": -0.003, "b": -0.004})
