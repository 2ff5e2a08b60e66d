"""Why a deployment folder is refused, and why an ONNX file has fixed sizes, compared with recorded texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pytorch_networks import node, seeded
from recorded import check_recorded

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.operators.registry import Registry
from exporters import onnx as onnx_exporter
from exporters.deploy import deployment, sources
from exporters.generated_folder import GeneratedFolder
from exporters.interface import Interface, ModelInput, ModelOutput
from exporters.onnx import check_model, export_onnx

PHOTO = ModelInput(
    "photo", "the photo", "float32", (None, 3, None, None), (1, 3, 24, 36), True, 3, None, None, 2.0, -0.5, 4
)
INDICES = ModelInput("indices", "the indices", "int64", (None, 5), (1, 5), image=False)
SCORES = ModelOutput("scores", "the scores", "float32", (None, 10))
CLASSES = ModelOutput("classes", "the classes", "uint8", (2, 10))


def printed(ok: bool, **outputs: tuple[float, bool]) -> str:
    found = {name: {"difference": d, "psnr_db": 40.0, "ok": good} for name, (d, good) in outputs.items()}
    return json.dumps({"outputs": found, "milliseconds": 1.5, "ok": ok})


def measured(monkeypatch: pytest.MonkeyPatch, out: str, err: str = "") -> Callable[[], object]:
    def make() -> object:
        asked: list[Any] = []

        def run(command: list[str], **more: Any) -> Any:
            asked.append((command, more))
            return SimpleNamespace(stdout=out, stderr=err)

        monkeypatch.setattr(deployment.subprocess, "run", run)
        found = deployment._measure(Path("folder"))
        ((command, more),) = asked
        assert command[1:] == ["folder/python/check.py", "--json"]
        assert more["cwd"] == Path("folder")
        assert more["env"]["PYTHONDONTWRITEBYTECODE"] == "1"
        return found

    return make


def cases(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Callable[[], object]]]:
    yield "integers as input", lambda: deployment._check_elements(Interface((PHOTO, INDICES), (SCORES,)))
    yield "integers as output", lambda: deployment._check_elements(Interface((PHOTO,), (SCORES, CLASSES)))
    yield "the check fails", measured(monkeypatch, "", "Traceback\n  a line\nImportError: no module\n\n")
    yield "the check says nothing", measured(monkeypatch, "")
    yield "the check prints something else", measured(monkeypatch, "{}", "x" * 400)
    yield "two outputs differ", measured(monkeypatch, printed(False, a=(0.001, False), b=(0.25, False), c=(9.0, True)))
    yield "all outputs agree", measured(monkeypatch, printed(True, a=(0.001, True)))
    (folder / "file").write_text("mine")
    yield "a folder that is a file", lambda: GeneratedFolder(folder / "file").__enter__()
    (folder / "full").mkdir()
    (folder / "full" / "x").write_text("mine")
    yield "a folder with files", lambda: GeneratedFolder(folder / "full").__enter__()
    unknown = SimpleNamespace(given={"photo": folder, "mask": folder}, examples={})
    yield (
        "a file of no input",
        lambda: deployment._write_check(None, Graph([]), None, None, Interface((PHOTO, INDICES), ()), unknown),
    )  # type: ignore[arg-type]


def test_why_a_deployment_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = []
    for name, make in cases(tmp_path, monkeypatch):
        lines.append(name)
        try:
            made = make()
        except DiagnosticError as error:
            for d in error.diagnostics:
                place = ", ".join(map(str, filter(None, (d.file, d.layer))))
                lines.append(f"  {d.code} ({place}): {d.message}; {d.remedy}".replace(str(tmp_path), "FOLDER"))
        else:
            lines.append(f"  {made}")
    lines += ["", sources.network_header(Interface((PHOTO, INDICES), (SCORES, CLASSES)))]
    lines.append(sources.triton_config("a net", Interface((PHOTO,), (CLASSES,))))
    lines += [sources.triton_text(Interface((PHOTO,), (one,))) for one in (SCORES, CLASSES)]
    check_recorded("refused_deployments.txt", "\n".join([*lines, ""]))


def chain(*layers: tuple[str, dict[str, Any]], dims: str = "16x12x3", **image: Any) -> Graph:
    made = [node("image", "input", dims=dims, **image)]
    for number, (kind, params) in enumerate(layers):
        made.append(node(f"l{number}", kind, made[-1].name, **params))
    return Graph([*made, node("out", "output", made[-1].name, analysis_view="tensor")], name="chain")


HALF = ("pooling", {"size": "2x2", "stride": "2x2"})
NETWORKS = {
    "any size": chain(("convolution", {"features": 2})),
    "a tiling": chain(("convolution", {"features": 2}), tiling=4),
    "a tiling that the size does not have": chain(("convolution", {"features": 2}), tiling=5),
    "a tiling above the largest step": chain(("convolution", {"features": 2}), dims="512x512x1", tiling=512),
    "halves": chain(HALF, HALF, ("upsample", {"factor": "4x4"})),
    "blocks of 4": chain(("space_to_depth", {"block_size": 4})),
    "a width of 3 blocks only": chain(("space_to_depth", {"block_size": 2}), dims="6x8x3"),
    "a flat layer": chain(("flatten", {}), ("fully_connected", {"features": 2})),
    "a number for the size": chain(("reshape", {"shape": "3,192"})),
    "a size that is a constant": Graph(
        [
            node("image", "input", dims="16x12x3"),
            node("table", "input_cst", dims="16x12x3", value="0.5"),
            node("sum", "element_wise", "image", "table"),
            node("out", "output", "sum"),
        ]
    ),
    "no image": Graph([node("v", "tensor_input", shape=4), node("f", "fully_connected", "v"), node("o", "output", "f")]),
    "an image of another proportion": Graph(
        [
            node("first", "input", dims="257x257x1"),
            node("second", "input", dims="7x5x1"),
            node("mean", "global_pooling", "second"),
            node("sum", "element_wise", "first", "mean"),
            node("out", "output", "sum"),
        ]
    ),
    "two tilings": Graph(
        [
            node("first", "input", dims="24x24x1", tiling=4),
            node("second", "input", dims="12x12x1", tiling=6),
            node("up", "upsample", "second", factor="2x2"),
            node("sum", "element_wise", "first", "up"),
            node("out", "output", "sum"),
            node("more", "output", "second"),
        ]
    ),
    "volumes": chain(("unsqueeze", {"axes": "2"})),
}  # fmt: skip


def test_the_sizes_that_a_file_accepts_and_why_others_are_not(registry: Registry, tmp_path: Path) -> None:
    lines = []
    for name, graph in NETWORKS.items():
        report = export_onnx(graph, registry, seeded(graph, registry), tmp_path / "m.onnx")
        lines += [f"{name}: {report.sizes}", f"  multiple {report.sizes.multiple}, {report.inputs} -> {report.outputs}"]
    check_recorded("open_sizes.txt", "\n".join([*lines, ""]))


@pytest.mark.parametrize(
    ("text", "reason"), [("", "no reason given"), ("\nfirst\nsecond", "first"), ("x" * 400, "x" * 300)]
)
def test_a_model_that_the_checker_rejects_is_said_with_its_first_line(monkeypatch, text, reason) -> None:
    onnx = pytest.importorskip("onnx")

    def reject(*_arguments: Any, **_more: Any) -> None:
        raise onnx.checker.ValidationError(text)

    monkeypatch.setattr(onnx.checker, "check_model", reject)
    with pytest.raises(DiagnosticError) as caught:
        check_model(None, "net")
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("onnx-invalid", f"'net' does not pass the ONNX checker: {reason}")
    assert found.remedy == "export the PyTorch project instead, and report this layer as a bug"
    assert onnx_exporter.check_model is check_model
