"""Custom layers in generated code: word for word, once, never over a name that something else has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.code_text import agreement_text, digest
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.session import Session
from exporters.onnx import export_onnx
from exporters.pytorch import export_project, generate_source

REGISTRY = load(entry_points=False)
GAIN = '''class Gain(nn.Module):
    """Keeps its words: "quotes", \\\\ and   spaces."""

    def __init__(self, gain, label=""):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(float(gain)))

    def forward(self, x):
        return F.relu(x) * self.gain


'''


def network(*layers: dict[str, str], name: str = "own") -> Graph:
    made = [Layer("image", "input", params={"dims": "8x8x3", "tiling": "0"})]
    for number, params in enumerate(layers):
        before = Source(made[-1].name)
        shown = {"class_name": "Gain", "tensors": "gain", **params}
        made.append(Layer(f"own {number}", "custom", inputs=(before,), params=shown, activation=ActivationSpec("relu")))
    return Graph([*made, Layer("result", "output", inputs=(Source(made[-1].name),))], name=name)


def made(source: str, name: str = "Net") -> Any:
    space: dict[str, Any] = {}
    exec(compile(source, "model.py", "exec"), space)
    return space[name]().eval()


def test_source_is_there_word_for_word_and_once() -> None:
    text = generate_source(
        network({"source": GAIN, "arguments": '2, label="a\'b"'}, {"source": GAIN, "arguments": "3"}), REGISTRY, "Net"
    )
    assert text.count(GAIN.rstrip("\n")) == 1
    assert "import torch.nn.functional as F" in text
    model = made(text)
    assert sorted(model.state_dict()) == ["own_0.gain", "own_1.gain"]
    value = torch.rand(1, 3, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(model(value), value * 6)


def test_exported_project_equals_the_engine(tmp_path: Path) -> None:
    graph = network({"source": GAIN, "arguments": "1"})
    export_project(graph, REGISTRY, tmp_path / "project", "Net")
    model = made((tmp_path / "project" / "model.py").read_text())
    value = np.random.default_rng(0).random((1, 3, 8, 8), np.float32)
    weights = Weights({WeightKey("own 0", "gain"): np.array(0.3, np.float32)})
    session = Session(
        graph,
        REGISTRY,
        weights,
        RunOptions("torch", threads=1, agreed=(digest(agreement_text(GAIN, "Gain", (1,), {})),)),
    )
    session.set_input("image", value, is_image=False)
    model.load_state_dict({"own_0.gain": torch.tensor(0.3)})
    with torch.no_grad():
        np.testing.assert_array_equal(model(torch.from_numpy(value)).numpy(), session.run().outputs["result"])


@pytest.mark.parametrize(
    ("second", "name"),
    [(GAIN.replace("2", "3") + "\n# other\n", "Net"), (GAIN + "def torch(): pass\n", "Net"), (GAIN, "Gain")],
)
def test_a_name_that_is_taken_is_refused(second: str, name: str) -> None:
    layers = [{"source": GAIN, "arguments": "1"}] if name == "Net" else []
    graph = network(*layers, {"source": second, "arguments": "1"})
    with pytest.raises(DiagnosticError) as caught:
        generate_source(graph, REGISTRY, name)
    (finding,) = caught.value.diagnostics
    assert finding.code == "name-clash"
    assert finding.layer == f"own {len(layers)}"
    assert finding.remedy


@pytest.mark.parametrize("name", ["torch", "nn", "F"])
def test_a_name_that_every_source_can_use_is_refused(name: str) -> None:
    graph = network({"source": GAIN + f"def {name}(): pass\n", "arguments": "1"})
    with pytest.raises(DiagnosticError) as caught:
        generate_source(graph, REGISTRY, "Net")
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.layer) == ("name-clash", "own 0")
    assert f"defines '{name}', but so does the generated code" in finding.message


def test_onnx_refuses_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError) as caught:
        export_onnx(network({"source": GAIN, "arguments": "1"}), REGISTRY, Weights(), tmp_path / "net.onnx")
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.layer) == ("not-in-onnx", "own 0")
    assert "PyTorch project" in finding.remedy
    assert not (tmp_path / "net.onnx").exists()
