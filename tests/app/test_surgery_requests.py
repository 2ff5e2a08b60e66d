"""Edits of weights as the engine process answers them: the edited document, a new file of weights, and what it says of the results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from recorded import changes, check_lines
from runtime_networks import layer, pixels

from app.engine.protocol import SurgeryRequest
from app.engine.surgery import OPERATIONS, operate
from designer.files.agreements import not_agreed
from designer.files.document import parse_document, write_document
from designer.files.weights import load_weights, random_weights, required_weights, save_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.code_text import digest
from designer.operators.registry import default_registry
from designer.runtime.images import write_image

pytest.importorskip("onnxruntime")
pytest.importorskip("torch")

SMALL = re.compile(r"difference \S+(?=\))")  # which differs from processor to processor
CODE = """class Doubled(nn.Module):
    def forward(self, x):
        return x * 2
"""


def network() -> Graph:
    """A noisy image through convolutions and a layer of custom code."""
    return Graph(
        [
            layer("image", "input", dims="24x16x3", tiling="8"),
            layer("noise", "noise", "image", scale="0.1", seed="3"),
            layer("double", "custom", "noise", source=CODE, class_name="Doubled"),
            layer("wide", "convolution", "double", features=8, kernel="3x3"),
            layer("norm", "batch_normalization", "wide"),
            layer("narrow", "convolution", "norm", features=3, kernel="3x3"),
            layer("result", "output", "narrow"),
        ]
    )


AGREED = tuple(map(digest, not_agreed(network(), default_registry(), ())))


@pytest.fixture
def request_(tmp_path: Path) -> SurgeryRequest:
    graph = network()
    needed = required_weights(Inference(graph, default_registry()))
    save_weights(tmp_path / "trained.safetensors", random_weights(needed, 3).tensors)
    write_image(tmp_path / "photo.png", pixels(12, 20))
    return SurgeryRequest(
        write_document(graph).decode(), "features", "wide", str(tmp_path / "trained.safetensors"), str(tmp_path / "edited"),
        {"image": str(tmp_path / "photo.png")}, agreed=AGREED,
    )  # fmt: skip


def asked(request: SurgeryRequest, **changed: object) -> SurgeryRequest:
    import msgspec

    return msgspec.structs.replace(request, **changed)


CASES: dict[str, dict[str, object]] = {
    "more features": {"features": 10},
    "less features": {"features": 5},
    "remove channels": {"operation": "remove", "channels": (1, 6)},
    "identity before": {"operation": "identity", "layer": "narrow"},
    "split": {"operation": "split", "layer": "narrow"},
    "fold": {"operation": "fold", "layer": "norm"},
    "prune": {"operation": "prune", "layer": ""},
    "without a file of the input": {"features": 5, "inputs": {}},
    "a layer that cannot": {"layer": "noise", "features": 5},
    "the code is not agreed to": {"features": 10, "agreed": ()},
}


def test_every_edit_of_weights_with_its_effect(request_: SurgeryRequest, tmp_path: Path) -> None:
    original = Path(request_.weights).read_bytes()
    lines: list[str] = []
    files: set[str] = set()
    for name, changed in CASES.items():
        request = asked(request_, **changed)
        try:
            reply = operate(request)
        except DiagnosticError as error:
            lines += ["", f"# {name}", str(error.diagnostics[0])]
            continue
        graph = parse_document(reply.document.encode()).graph
        needed = required_weights(Inference(graph, default_registry()))
        weights = load_weights(Path(reply.weights), needed)
        assert weights.complete
        assert (
            Path(reply.weights).parent.parent == tmp_path / "edited"
            or Path(reply.weights).parent == tmp_path / "edited"
        )
        assert reply.weights not in files
        files.add(reply.weights)
        lines += [
            "",
            f"# {name}",
            f"{reply.title}: {SMALL.sub('difference <small>', reply.effect)}",
            f"kept {reply.kept}",
        ]
        lines += changes(request.document, reply.document).splitlines()
    assert Path(request_.weights).read_bytes() == original
    assert {case.get("operation", "features") for case in CASES.values()} == set(OPERATIONS)
    check_lines("surgery/requests.txt", lines[1:])


def test_an_edit_needs_all_weights_and_a_network(request_: SurgeryRequest, tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError):
        operate(asked(request_, document="<Network"))
    weights = load_weights(Path(request_.weights), required_weights(Inference(network(), default_registry())))
    some = {key: array for key, array in weights.tensors.items() if key.layer != "narrow"}
    save_weights(tmp_path / "some.safetensors", some)
    with pytest.raises(DiagnosticError) as caught:
        operate(asked(request_, weights=str(tmp_path / "some.safetensors")))
    (found,) = caught.value.diagnostics
    assert found.code == "weights-missing"
    assert found.message.endswith("some are missing in " + str(tmp_path / "some.safetensors"))
    assert not (tmp_path / "edited").exists()


def test_what_is_not_fed_by_a_file_is_equal_before_and_after(request_: SurgeryRequest) -> None:
    reply = operate(asked(request_, operation="split", layer="narrow", inputs={}))
    assert reply.kept
