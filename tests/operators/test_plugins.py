"""Operators from outside: the example package, the walk-through of CONTRIBUTING.md, and plugins that are broken."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from designer.operators.registry import load
from designer.plugins import plugin_folder
from designer.profiling.profile_files import load_profile

ROOT = Path(__file__).parents[2]
DOCUMENT = """<?xml version="1.0"?>
<NetworkModel name="little" version="2" user_version_tag="1">
	<Layer name="image" type="input" edit_pos="0,0">
		<Parameters dims="8x6x3" rgba="false" scale="1.0" shift="0.0" tiling="0" />
	</Layer>
{layers}	<Layer name="result" type="output" edit_pos="640,0" input="{last}" />
</NetworkModel>
"""


def walk_through() -> str:
    """The operator of CONTRIBUTING.md, word for word."""
    section = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Add an operator")[2]
    match = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert match is not None
    return match[1]


def command(*arguments: object, path: Path | None = None, status: int = 0) -> subprocess.CompletedProcess[str]:
    """`layerwright ...` in a process of its own, with `path` among its packages."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **({"PYTHONPATH": str(path)} if path else {})}
    done = subprocess.run(
        [sys.executable, "-m", "app.cli.main", *map(str, arguments)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def module_of(folder: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"exported_{folder.name}", folder / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)().eval()


def onnx_result(path: Path, value: np.ndarray) -> np.ndarray:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"image": value})[0])


@pytest.fixture
def value(tmp_path: Path) -> np.ndarray:
    made = np.random.default_rng(0).standard_normal((1, 3, 6, 8)).astype(np.float32)
    np.save(tmp_path / "in.npy", made)
    return made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example package."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(ROOT / "samples" / "plugin", folder / "plugin")
    site = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps"]
    install = [*pip, "--no-build-isolation", "--target", str(site), str(folder / "plugin")]
    subprocess.run(install, check=True, capture_output=True, env={**os.environ, "HOME": str(folder)})
    shutil.rmtree(folder / "plugin")
    return site


def test_example_package_is_installed_and_used(tmp_path: Path, value: np.ndarray, site: Path) -> None:
    listed = {entry["type"]: entry for entry in json.loads(command("operators", "--json", path=site).stdout)}
    assert listed["soft_clip"]["parameters"][0]["name"] == "gain"
    assert listed["scanlines"]["category"] == "Analysis"

    layers = """	<Layer name="clip" type="soft_clip" edit_pos="160,0" input="lines">
		<Parameters gain="2.0" />
	</Layer>
	<Layer name="lines" type="scanlines" edit_pos="80,0" input="image">
		<Parameters distance="2" strength="1.0" />
	</Layer>
"""
    document = tmp_path / "net.xml"
    document.write_text(DOCUMENT.format(layers=layers, last="clip"))
    assert "0 errors" in command("check", document, path=site).stdout
    assert "unknown-operator" in command("check", document, status=1).stderr

    weights = tmp_path / "weights"
    weights.mkdir()
    limit = np.array([0.5, 1.0, 2.0], np.float32).reshape(3, 1, 1)
    np.save(weights / "clip_limit.npy", limit)
    lined = value.copy()
    lined[:, :, ::2] = 0
    for engine in ("onnxruntime", "torch"):
        out = tmp_path / f"{engine}.npy"
        arguments = ("--weights", weights, "--input", f"image={tmp_path / 'in.npy'}", "--output", f"result={out}")
        command("run", document, *arguments, "--engine", engine, "--threads", 1, path=site)
        np.testing.assert_allclose(np.load(out), np.tanh(2 * lined / limit) * limit, rtol=1e-5, atol=1e-6)

    expected = np.tanh(2 * value / limit) * limit  # deployed, the analysis layer is gone
    command("export", "onnx", document, "--weights", weights, "--output", tmp_path / "net.onnx", path=site)
    np.testing.assert_allclose(onnx_result(tmp_path / "net.onnx", value), expected, rtol=1e-5, atol=1e-6)
    command("export", "pytorch", document, "--output", tmp_path / "project", "--name", "Net", path=site)
    assert "layerwright_example" not in (tmp_path / "project" / "model.py").read_text()
    model = module_of(tmp_path / "project", "Net")
    model.load_state_dict({"clip_limit": torch.from_numpy(limit)})
    with torch.no_grad():
        np.testing.assert_allclose(model(torch.from_numpy(value)).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_engine_of_the_example_package_runs_and_is_profiled(tmp_path: Path, value: np.ndarray, site: Path) -> None:
    assert "numpy_example" in command("engines", path=site).stdout
    assert "numpy_example" not in command("engines").stdout
    layers = """	<Layer name="conv" type="convolution" edit_pos="80,0" input="image">
		<Parameters features="4" kernel="3x3" />
		<Activation type="relu" alpha="0.0" />
	</Layer>
	<Layer name="clip" type="soft_clip" edit_pos="160,0" input="conv">
		<Parameters gain="2.0" />
	</Layer>
"""
    document = tmp_path / "net.xml"
    document.write_text(DOCUMENT.format(layers=layers, last="clip"))
    run = ("run", document, "--random-weights", 1, "--threads", 1, "--input", f"image={tmp_path / 'in.npy'}")
    for engine in ("numpy_example", "torch"):
        files = ("--output", f"result={tmp_path / engine}.npy", "--capture", f"conv={tmp_path / engine}_conv.npy")
        command(*run, *files, "--engine", engine, path=site)
    for name in ("", "_conv"):
        ours, right = (np.load(tmp_path / f"{engine}{name}.npy") for engine in ("numpy_example", "torch"))
        np.testing.assert_allclose(ours, right, rtol=1e-5, atol=1e-6)

    record = tmp_path / "record.json"
    profiled = ("profile", document, "--random-weights", 1, "--engine", "numpy_example", "--json", record)
    command(*profiled, "--iterations", 2, "--threads", 1, path=site)
    found = load_profile(record)
    assert {name for row in found.runs[0].operators for name in row.layers} == {"conv", "clip"}
    assert found.machine.versions["layerwright-example"] == "0.1.0"

    document.write_text(DOCUMENT.format(layers=layers.replace("relu", "sigmoid"), last="clip"))
    refused = command(
        *run, "--output", f"result={tmp_path / 'out.npy'}", "--engine", "numpy_example", path=site, status=1
    )
    assert "cannot run 'conv': it does not support Sigmoid" in refused.stderr
    assert "choose another engine" in refused.stderr


def test_walk_through_is_one_file(tmp_path: Path, value: np.ndarray) -> None:
    folder = plugin_folder()
    folder.mkdir(parents=True)
    shown = command("operators").stdout
    assert f"plugin folder: {folder}" in shown
    assert "leaky_scale" not in shown
    (folder / "leaky_scale.py").write_text(walk_through())

    assert "leaky_scale" in command("operators").stdout
    layers = """	<Layer name="scaled" type="leaky_scale" edit_pos="160,0" input="image">
		<Parameters factor="0.25" />
	</Layer>
"""
    document = tmp_path / "net.xml"
    document.write_text(DOCUMENT.format(layers=layers, last="scaled"))
    checked = json.loads(command("check", document, "--json").stdout)
    assert {row["layer"]: row["shape"] for row in checked["layers"]}["scaled"] == "N x 3 x 6 x 8"
    for engine in ("onnxruntime", "torch"):
        out = tmp_path / f"{engine}.npy"
        files = ("--input", f"image={tmp_path / 'in.npy'}", "--output", f"result={out}")
        command("run", document, *files, "--engine", engine, "--threads", 1)
        np.testing.assert_allclose(np.load(out), value * 0.25, rtol=1e-6)
    command("export", "onnx", document, "--output", tmp_path / "net.onnx")
    np.testing.assert_allclose(onnx_result(tmp_path / "net.onnx", value), value * 0.25, rtol=1e-6)
    command("export", "pytorch", document, "--output", tmp_path / "project", "--name", "Net")
    with torch.no_grad():
        result = module_of(tmp_path / "project", "Net")(torch.from_numpy(value))
    np.testing.assert_allclose(result.numpy(), value * 0.25, rtol=1e-6)


BROKEN = {
    "syntax": "class (",
    "raises": "raise RuntimeError('no such camera')",
    "leaves": "import sys\nsys.exit(3)",
    "missing": "import no_such_package_at_all",
    "taken": walk_through().replace('type="leaky_scale"', 'type="convolution"'),
    "badly_typed": walk_through().replace("factor: float", "factor: list"),
}


def test_broken_plugins_are_reported_and_left_out(tmp_path: Path) -> None:
    folder = plugin_folder()
    folder.mkdir(parents=True)
    for name, text in BROKEN.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "works.py").write_text(walk_through())
    registry = load([folder], entry_points=False)
    assert [d.code for d in registry.diagnostics] == ["broken-plugin"] * len(BROKEN)
    for name, finding in zip(sorted(BROKEN), registry.diagnostics, strict=True):
        assert f"{name}.py" in finding.message
        assert finding.remedy
    assert "leaky_scale" in registry.operators
    assert registry.operators["convolution"].__module__.startswith("designer.")

    document = tmp_path / "net.xml"
    document.write_text(DOCUMENT.format(layers="", last="image"))
    done = command("check", document)
    assert "0 errors" in done.stdout
    assert done.stderr.count("broken-plugin") == len(BROKEN)
    assert command("operators", "--json").stderr.count("broken-plugin") == len(BROKEN)


def test_broken_package_is_reported_and_left_out(tmp_path: Path) -> None:
    info = tmp_path / "site" / "broken_plugin-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[layerwright.operators]\none = no_such_package_at_all\n")
    done = command("operators", "--json", path=tmp_path / "site")
    assert "broken-plugin" in done.stderr
    assert "no_such_package_at_all" in done.stderr
    assert len(json.loads(done.stdout)) > 50


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
@pytest.mark.parametrize(
    ("open_to_all", "mode", "runs"),
    [
        ("plugins/mine.py", 0o777, False),
        ("plugins", 0o777, False),
        ("plugins", 0o1777, False),  # others can add files
        ("", 0o777, False),  # others can put another folder in the place of ours
        ("", 0o1777, True),  # like /tmp: only owners replace their folders
        ("plugins", 0o775, True),
    ],
)
def test_a_plugin_that_every_user_may_change_or_replace_is_not_run(
    tmp_path: Path, open_to_all: str, mode: int, runs: bool
) -> None:
    around = tmp_path / "around"
    folder = around / "plugins"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    (around / open_to_all).chmod(mode)
    registry = load([folder], entry_points=False)
    assert (tmp_path / "ran").exists() is runs
    if not runs:
        (found,) = registry.diagnostics
        assert f"every user can write to {around / open_to_all}; remove" in found.message


def plugin_in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text("")
    return folder


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_a_plugin_behind_a_link_that_every_user_may_replace_is_not_run(tmp_path: Path) -> None:
    folder = plugin_in(tmp_path / "plugins")
    around = tmp_path / "around"
    around.mkdir()
    (around / "link").symlink_to(folder)
    assert not load([around / "link"], entry_points=False).diagnostics
    around.chmod(0o777)
    (found,) = load([around / "link"], entry_points=False).diagnostics
    assert f"every user can write to {around}; remove" in found.message


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_a_plugin_in_a_folder_of_another_user_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a sticky folder everybody can put a folder of their own where ours is expected."""
    around = tmp_path / "around"
    folder = plugin_in(around / "plugins")
    around.chmod(0o1777)
    assert not load([folder], entry_points=False).diagnostics
    owner = folder.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    if owner:  # what belongs to root is trusted
        (found,) = load([folder], entry_points=False).diagnostics
        assert f"{folder} belongs to another user" in found.message
        return
    os.chown(folder, 12345, -1)
    (found,) = load([folder], entry_points=False).diagnostics
    assert f"{folder} belongs to another user" in found.message
