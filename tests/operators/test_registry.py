"""How operators are found, and what happens to those that cannot be used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from operator_oracles import REGISTRY

from app.checks.operator_reference import reference
from designer.graph.model import Layer
from designer.operators.params import ParamError, format_value
from designer.operators.registry import Registry, load

PLUGIN = '''
from collections.abc import Sequence
from designer.operators.api import Category, Example, OnnxNode, Operator, TensorType, TorchCall, image, param


class Doubled(Operator, type="doubled", title="Doubled", category=Category.ELEMENT_WISE):
    """Twice the input."""

    factor: float = param(default=2.0, doc="The factor.")
    examples = (Example((image(),)),)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]
'''


def test_the_library_is_large_enough_and_sorted_by_category() -> None:
    assert len(REGISTRY.operators) + len(REGISTRY.activations) >= 110
    assert not REGISTRY.diagnostics
    for cls in REGISTRY:
        place = cls.__module__.split(".")
        folder = cls.category.name.lower()
        assert place[0] == "analysis_layers" or place[-2] == folder, cls


def test_the_reference_has_the_declared_defaults_and_limits() -> None:
    page = Path(__file__).parents[2] / "docs/operators.md"
    assert page.read_text("utf-8") == reference(REGISTRY), "if the change of a declaration is intended: make docs"


def test_loading_brings_no_heavy_library() -> None:
    code = (
        "import sys; from designer.operators.registry import load; load(entry_points=False);"
        "heavy = {'torch', 'onnx', 'onnxruntime', 'numpy', 'PySide6', 'matplotlib', 'lxml'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_plugin_folder(tmp_path: Path) -> None:
    (tmp_path / "doubled.py").write_text(PLUGIN, encoding="utf-8")
    (tmp_path / "broken.py").write_text("import nothing_like_this\n", encoding="utf-8")
    (tmp_path / "clash.py").write_text(PLUGIN.replace('"doubled"', '"convolution"'), encoding="utf-8")
    registry = load([tmp_path, tmp_path / "missing"], entry_points=False)
    assert registry.get("doubled") is not None
    read = registry.read(Layer("it", "doubled", params={"factor": "3.0"}))
    assert read.operator is not None
    assert read.operator.values() == {"factor": 3.0}
    messages = [d.message for d in registry.diagnostics]
    assert len(messages) == 2
    assert "broken.py" in messages[0]
    assert "declared twice" in messages[1]
    assert registry.get("convolution") is not None
    assert registry.get("convolution").__module__.startswith("designer.")


def test_two_declarations_of_a_type() -> None:
    registry = Registry()
    registry.register(REGISTRY.operators["identity"])
    with pytest.raises(ValueError, match="declared twice"):
        registry.register(REGISTRY.operators["identity"])


def test_unknown_layers_and_parameters_are_findings() -> None:
    assert [d.code for d in REGISTRY.read(Layer("it", "nonsense")).diagnostics] == ["unknown-operator"]
    read = REGISTRY.read(Layer("it", "identity", params={"colour": "red"}))
    assert read.operator is not None
    assert [d.code for d in read.diagnostics] == ["unknown-parameter"]


def test_lists_of_numbers_as_text() -> None:
    mean = REGISTRY.operators["normalize_image"].parameter("mean")
    assert mean is not None
    assert mean.kind == "floats"
    assert mean.parse("0.5, 1e-05,2") == (0.5, 1e-5, 2.0)
    assert format_value((0.5, 1e-5, 2.0)) == "0.5,1.0e-05,2.0"
    assert mean.parse("") == ()
    with pytest.raises(ParamError, match="not a number"):
        mean.parse("0.5;1")
