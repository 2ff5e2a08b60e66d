"""The images with which `layerwright export deploy` checks a model by default, for each input layer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from runtime_networks import layer

from app.cli.export import _deployed, _examples
from designer.files.document import save_document
from designer.files.settings import Settings, save_settings, settings_path
from designer.files.variants import CalibrationRecipe, Variant
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.runtime.images import write_image


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """A network with two images, and one that nothing reads."""
    graph = Graph(
        [
            layer("left", "input", dims="8x8x3"),
            layer("right", "input", dims="8x8x3"),
            layer("sum", "element_wise", "left,right"),
            layer("result", "output", "sum"),
        ],
        name="two",
    )
    save_document(graph, tmp_path / "two.xml")
    for name in ("chosen", "calibration/first", "calibration/second"):
        path = tmp_path / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        write_image(path, np.zeros((1, 3, 8, 8), np.float32))
    return tmp_path / "two.xml"


def test_the_image_of_the_settings_comes_before_one_of_the_calibration(document: Path) -> None:
    folder = document.parent

    def examples(variant: str = "") -> dict[str, str]:
        found = _examples(_deployed(document, None, 0, variant, None))
        return {name: path.relative_to(folder).as_posix() for name, path in found.items()}

    assert examples() == {}
    variants = (
        Variant("plain", "fp16"),
        Variant("calibrated", "int8", calibration=CalibrationRecipe(str(folder / "calibration"))),
    )
    settings = Settings(input_files={"right": str(folder / "chosen.png")}, variants=variants)
    save_settings(settings, settings_path(document))
    assert examples() == {"right": "chosen.png"}
    assert examples("plain") == {"right": "chosen.png"}
    assert examples("calibrated") == {"left": "calibration/first.png", "right": "chosen.png"}
    (folder / "chosen.png").unlink()
    assert examples() == {}
    assert examples("calibrated") == {"left": "calibration/first.png", "right": "calibration/first.png"}
    save_settings(replace(settings, input_files={}), settings_path(document))
    assert examples("calibrated") == {"left": "calibration/first.png", "right": "calibration/first.png"}
    with pytest.raises(DiagnosticError, match="both choose the model"):
        _deployed(document, None, 0, "plain", folder / "x.onnx")
