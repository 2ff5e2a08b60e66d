"""`make gpu-check` on a Python that has torch and numpy only, dry on the processor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from app.checks.gpu_check import compare, slug
from designer.profiling.profile_files import load_profile

ROOT = Path(__file__).resolve().parents[2]
BLOCKER = """
import sys

BLOCKED = {"PySide6", "shiboken6", "lxml", "onnx", "onnxruntime", "platformdirs", "typer", "rich", "PIL", "click",
           "psutil", "threadpoolctl", "matplotlib", "msgspec", "safetensors", "tqdm", "qtawesome", "Qt", "NodeGraphQt"}


class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


sys.meta_path.insert(0, Blocker())
"""


def gpu_check(tmp_path: Path, *arguments: str, block: str = "") -> subprocess.CompletedProcess[str]:
    """Run the check in a process where everything but torch and numpy cannot be imported."""
    site = tmp_path / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(BLOCKER.replace("BLOCKED = {", f'BLOCKED = {{"{block}", '))
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(site),
        "OMP_NUM_THREADS": "1",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    return subprocess.run(
        [sys.executable, "-m", "app.checks.gpu_check", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_blocker_blocks(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(BLOCKER)
    done = subprocess.run(
        [sys.executable, "-c", "import lxml"],
        env={"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'lxml'" in done.stderr


def test_dry_run_with_torch_and_numpy_alone(tmp_path):
    out = tmp_path / "records"
    done = gpu_check(tmp_path, "--device", "cpu", "--out", str(out), "--size", "32", "--iterations", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    (path,) = out.iterdir()
    assert path.name.startswith("gpu-cpu-")
    profile = load_profile(path)
    assert profile.network == "denoiser"
    assert {"python", "torch", "numpy"} <= set(profile.machine.versions)
    assert [run.layout for run in profile.runs] == ["nchw", "nhwc"]
    for run in profile.runs:
        assert run.time_ms > 0
        assert len(run.operators) > 10
        assert run.rows_ms == pytest.approx(run.time_ms, rel=0.05)
        assert run.checks["difference conv_out_0"].value < 1e-3
        assert run.peaks.flops_per_s.value > 0
    assert "equals the processor's" in done.stdout


def test_without_a_gpu_it_says_what_to_do(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    done = gpu_check(tmp_path)
    assert done.returncode == 2
    assert "finds no CUDA device" in done.stdout
    assert "--device cpu" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("missing", ["torch", "numpy"])
def test_a_python_that_lacks_something_is_told_so(tmp_path, missing):
    done = gpu_check(tmp_path, "--device", "cpu", "--out", str(tmp_path), block=missing)
    assert done.returncode == 2
    assert f"lacks {missing}" in done.stdout
    assert "Traceback" not in done.stderr


def test_an_unreadable_document_is_told(tmp_path):
    done = gpu_check(tmp_path, "--device", "cpu", "--document", str(tmp_path / "none.xml"))
    assert done.returncode == 2
    assert "cannot-read" in done.stdout


def test_a_wrong_result_is_seen():
    right = {"y": np.zeros((1, 1, 2, 2), np.float32)}
    assert compare(right, {"y": np.full((1, 1, 2, 2), 1e-4, np.float32)}, 1e-3)[1]
    assert not compare(right, {"y": np.full((1, 1, 2, 2), 1e-2, np.float32)}, 1e-3)[1]
    figures, ok = compare(right, {"y": np.full((1, 1, 2, 2), np.nan, np.float32)}, 1e-3)
    assert not ok
    assert "not all are finite" in figures["difference y"].reason


def test_names_of_chips():
    assert slug("NVIDIA GeForce RTX 4090") == "geforce-rtx-4090"
    assert slug("NVIDIA H200") == "h200"
    assert slug("") == "unknown"
