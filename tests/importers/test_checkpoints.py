from __future__ import annotations

import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
import torch_models

from designer.graph.diagnostics import DiagnosticError
from designer.importers.checkpoints import architectures, importing
from designer.importers.checkpoints.architectures import Recognized
from designer.importers.checkpoints.importing import _example, import_checkpoint
from designer.importers.checkpoints.skeleton import guess, skeleton
from designer.importers.formats import IMPORTS, ImportOptions
from designer.importers.imported import Imported
from designer.operators.registry import Registry


def read(path: Path, registry: Registry):
    return IMPORTS.reader(path)(path, registry, ImportOptions())


def test_a_checkpoint_of_a_known_architecture_is_a_network_with_its_weights(tmp_path: Path, registry: Registry) -> None:
    if find_spec("spandrel") is None:
        pytest.skip("spandrel is not installed")
    from app.checks.torch_interop import made

    torch.save({"params_ema": made("Compact").state_dict()}, tmp_path / "x4.pth")
    found = read(tmp_path / "x4.pth", registry).verified(registry)
    assert (found.graph.name, found.report.source) == ("x4", "x4.pth")
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
    assert (found.graph.name, found.report.source) == ("vit", path.name)
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


@pytest.mark.parametrize(("multiple", "rule"), [(1, "any size"), (2, "multiples of 2"), (4, "multiples of 4")])
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


@pytest.mark.parametrize(
    ("shapes", "type", "params", "tensors"),
    [
        ({"weight": (8, 3, 5)}, "convolution_1d", {"features": 8, "kernel": "5", "apply_bias": False}, {"weight": "kernel"}),
        (
            {"weight": (8, 3, 5, 7), "bias": (8,)}, "convolution", {"features": 8, "kernel": "7x5", "apply_bias": True},
            {"weight": "kernel", "bias": "bias"},
        ),
        ({"weight": (8, 3, 5, 7, 9)}, "convolution_3d", {"features": 8, "kernel": "9x7x5", "apply_bias": False}, {"weight": "kernel"}),
        (
            {"weight": (8, 3), "bias": (8,)}, "fully_connected", {"features": 8, "apply_bias": True, "flatten": False},
            {"weight": "kernel", "bias": "bias"},
        ),
        ({"weight": (8, 3)}, "fully_connected", {"features": 8, "apply_bias": False, "flatten": False}, {"weight": "kernel"}),
        (
            {"weight": (8,), "bias": (8,), "running_mean": (8,), "running_var": (8,)}, "batch_normalization", {"affine": True},
            {"weight": "scale", "bias": "bias", "running_mean": "mean", "running_var": "variance"},
        ),
        (
            {"running_mean": (8,), "running_var": (8,)}, "batch_normalization", {"affine": False},
            {"running_mean": "mean", "running_var": "variance"},
        ),
        ({"weight": (8,), "bias": (8,)}, "layer_normalization", {}, {"weight": "scale", "bias": "bias"}),
    ],
)  # fmt: skip
def test_layers_are_guessed_from_the_shapes_of_their_tensors(
    shapes: dict[str, tuple[int, ...]], type: str, params: dict[str, object], tensors: dict[str, str]
) -> None:
    found = guess(shapes)
    assert found is not None
    made = {name: str(value) if name == "kernel" else value for name, value in found.params.items()}
    assert (found.type, made, dict(found.tensors)) == (type, params, tensors)


@pytest.mark.parametrize(
    "shapes",
    [
        {"weight": (8,)},
        {"bias": (8,)},
        {"weight": (8, 3, 3, 3), "gain": (8,)},
        {"weight": (8, 3), "gain": (8,)},
        {"weight": (1, 2, 3, 4, 5, 6)},
        {"running_mean": (8,)},
        {},
    ],
)
def test_other_tensors_belong_to_no_layer(shapes: dict[str, tuple[int, ...]]) -> None:
    assert guess(shapes) is None


def test_a_skeleton_has_its_groups_in_rows_and_frames_around_them(registry: Registry) -> None:
    state = {f"a.{number}.weight": torch.full((2, 3), float(number)) for number in range(10)}
    state |= {"b.norm.weight": torch.ones(3), "b.norm.bias": torch.zeros(3), "gain": torch.ones(2).double()}
    found = skeleton(state, registry, "rows")
    places = {layer.name: layer.position for layer in found.graph}
    assert places["a_0"] == (0, 0)
    assert places["a_7"] == (7 * 300, 0)
    assert places["a_8"] == (0, 180)
    assert places["a_9"] == (300, 180)
    assert places["b_norm"] == (0, 3 * 180)
    assert places["gain"] == (0, 5 * 180)
    frames = {frame.title: frame.rect for frame in found.graph.frames.values()}
    assert list(frames) == ["a", "b", ""]
    for title, names in (("a", [f"a_{number}" for number in range(10)]), ("b", ["b_norm"]), ("", ["gain"])):
        left, top, width, height = frames[title]
        inside = [
            name for name, (x, y) in places.items() if left < x < left + width - 240 and top < y < top + height - 120
        ]
        assert sorted(inside) == sorted(names)
    assert found.report.weights["a.3.weight"] == "a_3.kernel"
    assert found.report.weights["b.norm.weight"] == "b_norm.scale"
    assert found.report.weights["gain"] == "gain.value"
    for key, array in found.weights.tensors.items():
        assert array.dtype == np.float32, key
    kernel = next(array for key, array in found.weights.tensors.items() if key.layer == "a_7")
    np.testing.assert_array_equal(kernel, np.full((2, 3), 7))


def test_an_image_that_the_architecture_takes() -> None:
    def image(multiple: int, smallest: int, sizes: dict[str, tuple[int, ...]] | None = None) -> tuple[int, ...]:
        found = Recognized(torch.nn.Identity(), "SRVGG", 2, (4, 3), multiple, smallest, "MIT")
        return tuple(_example(found, ImportOptions(sizes=sizes or {})).shape)

    assert image(1, 0) == (1, 4, 64, 64)
    assert image(24, 0) == (1, 4, 72, 72)
    assert image(1, 80) == (1, 4, 80, 80)
    assert image(48, 100) == (1, 4, 144, 144)
    assert image(48, 100, {"x": (2, 4, 96, 48)}) == (2, 4, 96, 48)


def test_a_skeleton_has_an_outcome_for_every_layer_of_a_large_checkpoint(registry: Registry) -> None:
    state = {f"part.{number}.conv.weight": torch.ones(2, 3, 1, 1) for number in range(300)}
    state["part.0.gains"] = torch.ones(4)
    found = skeleton(state, registry, "large")
    outcomes = {item.node: (item.type, item.layers) for item in found.report.outcomes}
    assert outcomes["part.7.conv"] == ("convolution", ("part_7_conv",))
    assert outcomes["part.0"] == ("parameter", ("part_0_gains",))
    assert len(outcomes) == len(list(found.graph)) == 301
    assert found.report.weights["part.0.gains"] == "part_0_gains.value"


def test_the_import_of_a_recognized_checkpoint_names_its_file_and_its_facts(
    tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module is imported as any other; its report is changed, all else is kept."""
    recognized = Recognized(torch.nn.Identity(), "Small", 1, (3, 4), 1, 1, "MIT")
    made = skeleton({"a.weight": torch.ones(4, 3)}, registry, "made")
    original, options = object(), object()
    made = Imported(made.graph, made.weights, made.report, original, options)  # type: ignore[arg-type]
    calls: list[tuple[object, ...]] = []

    def import_module(module: object, examples: list[torch.Tensor], *rest: object, **more: object) -> Imported:
        calls.append((module, [tuple(example.shape) for example in examples], *rest, more))
        return made

    monkeypatch.setattr(importing, "import_module", import_module)
    monkeypatch.setattr(importing, "find_spec", lambda name: object())
    monkeypatch.setattr(importing, "recognize", lambda state: recognized if set(state) == {"0.weight"} else None)
    path = tmp_path / "small.net.pth"
    torch.save({"0.weight": torch.ones(4, 3, 1, 1)}, path)
    given = ImportOptions(sizes={"x": (2, 3, 5, 6)}, progress=lambda *report: None)
    found = import_checkpoint(path, registry, given)
    more = {"name": "small.net", "progress": given.progress}
    assert calls == [(recognized.module, [(2, 3, 5, 6)], registry, more)]
    assert (found.graph, found.weights, found.original, found.options) == (made.graph, made.weights, original, options)
    assert found.report.source == "small.net.pth"
    assert found.report.facts == "Small, scale 1, 3 to 4 channels, any size; license of the architecture: MIT"
    assert found.report.outcomes == made.report.outcomes


@pytest.mark.parametrize("installed", [True, False])
def test_the_note_about_an_unknown_architecture_offers_the_package_that_is_missing(
    installed: bool, tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "find_spec", lambda name: object() if installed else None)
    monkeypatch.setattr(importing, "recognize", lambda state: None)
    path = tmp_path / "other.pth"
    torch.save({"a.weight": torch.ones(4, 3)}, path)
    report = import_checkpoint(path, registry, ImportOptions()).report
    more = (
        "" if installed else "; pip install 'layerwright[torch-import]' recognizes many architectures of image networks"
    )
    assert report.facts == f"the architecture is unknown: the layers have no links{more}"
    assert (report.source, report.not_compared_because) == ("other.pth", "the links are missing")


@pytest.mark.parametrize(
    ("multiple", "smallest", "given", "shape"),
    [
        (1, 0, {}, (1, 3, 64, 64)), (8, 100, {}, (1, 3, 104, 104)), (48, 16, {}, (1, 3, 96, 96)), (1, 65, {}, (1, 3, 65, 65)),
        (8, 100, {"x": (1, 3, 16, 24)}, (1, 3, 16, 24)), (8, 100, {"": (1, 3, 16, 24)}, (1, 3, 16, 24)),
        (8, 100, {"image": (2, 3, 8, 24)}, (2, 3, 8, 24)),
    ],
)  # fmt: skip
def test_an_architecture_is_traced_at_a_size_that_it_takes(
    multiple: int, smallest: int, given: dict[str, tuple[int, ...]], shape: tuple[int, ...]
) -> None:
    found = Recognized(torch.nn.Identity(), "A", 2, (3, 1), multiple, smallest, "MIT")
    assert tuple(_example(found, ImportOptions(sizes=given)).shape) == shape


def test_checkpoints_are_not_recognized_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(architectures, "find_spec", asked.append)
    with pytest.raises(DiagnosticError) as caught:
        architectures.spandrel.__wrapped__()
    assert asked == ["spandrel"]
    (found,) = caught.value.diagnostics
    assert found.code == "no-package"
    assert found.remedy == "install it with pip install 'layerwright[torch-import]'"


def test_operators_are_not_declared_without_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(architectures, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    before = len(architectures._LIBRARIES)
    architectures._declare_operators()
    assert "torchvision" not in sys.modules
    assert len(architectures._LIBRARIES) == before
