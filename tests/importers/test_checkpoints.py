from __future__ import annotations

import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import torch_models

from designer.graph.diagnostics import DiagnosticError
from designer.importers.checkpoints.architectures import Recognized
from designer.importers.checkpoints.importing import import_checkpoint
from designer.importers.checkpoints.skeleton import skeleton
from designer.importers.formats import IMPORTS, ImportOptions
from designer.operators.registry import Registry


def read(path: Path, registry: Registry):
    return IMPORTS.reader(path)(path, registry, ImportOptions())


def test_a_checkpoint_of_a_known_architecture_is_a_network_with_its_weights(tmp_path: Path, registry: Registry) -> None:
    if find_spec("spandrel") is None:
        pytest.skip("spandrel is not installed")
    from app.checks.torch_interop import made

    torch.save({"params_ema": made("Compact").state_dict()}, tmp_path / "x4.pth")
    found = read(tmp_path / "x4.pth", registry).verified(registry)
    assert "Compact" in found.report.facts
    assert "scale 4" in found.report.facts
    assert "3 to 3 channels" in found.report.facts
    assert "license of the architecture: BSD-3-Clause" in found.report.facts
    assert found.report.opaque == 0
    assert found.report.max_rel_difference is not None
    assert found.report.max_rel_difference <= 1e-5


def test_convolutions_that_are_merged_at_every_call_are_one_layer(tmp_path: Path, registry: Registry) -> None:
    if find_spec("spandrel") is None:
        pytest.skip("spandrel is not installed")
    from app.checks.torch_interop import made

    torch.save(made("SPAN").state_dict(), tmp_path / "span.pth")
    found = read(tmp_path / "span.pth", registry).verified(registry)
    assert found.report.opaque == 0
    assert found.report.max_rel_difference is not None
    assert found.report.max_rel_difference <= 1e-5
    assert "conv_1.eval_conv.weight" in found.report.weights


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_an_unknown_checkpoint_is_a_skeleton_whose_links_are_missing(
    suffix: str, tmp_path: Path, registry: Registry
) -> None:
    module, _ = torch_models.build("vit")
    path = tmp_path / f"vit{suffix}"
    if suffix == ".pt":
        torch.save(module.state_dict(), path)
    else:
        from safetensors.torch import save_file

        save_file(module.state_dict(), path)
    found = read(path, registry)
    assert "no links" in found.report.facts
    assert found.report.not_compared_because
    assert set(found.report.weights) == set(module.state_dict())
    assert {frame.title for frame in found.graph.frames.values()} >= {"blocks", "head", "patches"}
    assert all(not layer.inputs for layer in found.graph)
    assert {layer.type for layer in found.graph} == {
        "convolution", "fully_connected", "layer_normalization", "parameter"
    }  # fmt: skip


def test_a_skeleton_has_no_layers_for_tensors_that_no_parameter_can_hold(registry: Registry) -> None:
    state = {
        "gain": torch.ones(3),
        "position_ids": torch.arange(4),
        "mask": torch.ones(2, 2, dtype=torch.bool),
        "empty": torch.ones(0, 3),
        "step": torch.tensor(5.0),
        "norm.running_mean": torch.zeros(3),
        "norm.running_var": torch.ones(3),
        "norm.num_batches_tracked": torch.tensor(7),
    }
    found = skeleton(state, registry, "tensors")
    assert {layer.name: layer.type for layer in found.graph} == {"gain": "parameter", "norm": "batch_normalization"}
    assert set(found.report.weights) == {"gain", "norm.running_mean", "norm.running_var"}


@pytest.mark.parametrize(("multiple", "rule"), [(1, "any size"), (4, "multiples of 4")])
def test_the_facts_of_a_checkpoint_name_input_and_output(multiple: int, rule: str) -> None:
    found = Recognized(torch.nn.Identity(), "SRVGG", 2, (1, 3), multiple, 16, "MIT")
    assert found.facts() == f"SRVGG, scale 2, 1 to 3 channels, {rule}; license of the architecture: MIT"


def test_every_architecture_of_the_package_has_a_known_license() -> None:
    if find_spec("spandrel") is None:
        pytest.skip("spandrel is not installed")
    from designer.importers.checkpoints.architectures import license_of, spandrel

    unknown = [
        found.architecture.name
        for found in spandrel().MAIN_REGISTRY.architectures()
        if license_of(found.architecture) == "unknown"
    ]
    assert unknown == []


class Code:
    def __reduce__(self):
        return (open, ("ran", "w"))


def test_code_in_a_checkpoint_never_runs(tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"weight": torch.ones(1), "hook": Code()}, tmp_path / "bad.pth")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Code()))
    for name in ("bad.pth", "plain.pt"):
        with pytest.raises(DiagnosticError):
            import_checkpoint(tmp_path / name, registry, ImportOptions())
    assert not (tmp_path / "ran").exists()


SHOW = """
import sys, torch, layerwright
module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4).eval())
window = layerwright.show(module, torch.rand(1, 3, 8, 8))
assert not any(name.startswith("PySide6") for name in sys.modules)
assert module.training and not module[1].training
assert window.poll() is None
window.terminate(); window.wait()
class Raises(torch.nn.Module):
    def forward(self, x):
        raise ValueError("the table is missing")
broken = Raises()
try:
    layerwright.show(broken, torch.rand(1, 3))
except ValueError as error:
    assert "the table is missing" in str(error)
else:
    raise AssertionError("no error")
assert broken.training
"""


def test_show_leaves_the_calling_process_without_qt() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SHOW], cwd=root / "app" / "launcher", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
