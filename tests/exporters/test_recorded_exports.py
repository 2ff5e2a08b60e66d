"""What is exported, compared with recorded texts: a change of a name, an attribute or a setting shows as a difference of lines."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loss_networks import restorer, segmenter, speller
from operator_oracles import COMPUTE, REGISTRY
from pytorch_networks import node, seeded, small
from recorded import changes, check_files, check_recorded, graph_lines, number, onnx_text, rounded
from template_networks import nested

import samples
from designer.files.document import read_document
from designer.files.settings import stored_settings
from designer.files.weights import Weights
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec
from designer.graph.types import Symbol
from designer.operators.registry import Registry
from exporters.deploy import sources
from exporters.deploy.deployment import export_deployment
from exporters.interface import interface_of, precision_of
from exporters.mixed import formatted
from exporters.onnx import export_onnx
from exporters.pytorch import Training, generate_source, project_files
from exporters.pytorch.tasks import TASKS
from exporters.tensorrt import EngineOptions, _shapes, trtexec_command

onnx = pytest.importorskip("onnx")

DOCUMENTS = {
    **{path.stem: path for path in samples.documents()},
    **{f"start_{name}": samples.starting_point(name) for name in samples.STARTING_POINTS},
}
SIMILAR = {"denoiser_analyze": "denoiser"}  # networks of which only the difference to another one is recorded
FULL = ("README.md", "config.py", "data.py", "losses.py", "train.py")  # files that depend on the task


def several() -> Graph:
    """Two images of different sizes and a vector, three outputs, and scaling, padding and frozen layers."""
    return Graph(
        [
            node("photo", "input", dims="24x16x3", scale=2.0, shift=-0.5, tiling=4),
            node("guide", "input", dims="12x8x1", scale=0.25),
            node("factors", "tensor_input", shape=8),
            node("half", "convolution", "photo", features=8, kernel="3x3", stride="2x2"),
            node("both", "concatenation", "half", "guide"),
            node("mixed", "convolution", "both", features=8, kernel="1x1"),
            node("row", "reshape", "factors", shape="8,1,1"),
            node("weighted", "element_wise", "mixed", "row", operation="multiply"),
            node("larger", "upsample", "weighted", factor="2x2", method="bilinear"),
            node("means", "reduce", "weighted", operation="mean", axes="2,3", keep="false"),
            node("1st result!", "output", "larger"),
            node("class", "output", "means", analysis_view="tensor"),
            node("guided", "output", "weighted", analysis_view="tensor"),
        ],
        name="several & more",
    )


def losing() -> Graph:
    return restorer(
        node("plain", "l1_loss", "tail", "clean", weight="0.75"),
        node("similar", "ssim_loss", "result", "clean", window=5),
        node("edges", "gradient_loss", "tail", "clean"),
    )


def many() -> Graph:
    """The first example of every operator that can be exported, each with inputs of its own and an output."""
    layers = []
    for case in {case.subject.type: case for case in reversed(COMPUTE) if not case.subject.exceptions}.values():
        name = case.subject.type
        reads = [f"{name}_in_{number}" for number in range(len(case.types))]
        for read, kind in zip(reads, case.types, strict=True):
            batch = isinstance((*kind.shape, 0)[0], Symbol)
            shape = ",".join(map(str, kind.shape[1:] if batch else kind.shape))
            layers.append(node(read, "tensor_input", shape=shape, batch=str(batch).lower(), dtype=kind.dtype.value))
        spec = case.activation or REGISTRY.activations.get(case.operator.default_activation)
        attached = ActivationSpec(spec.type, spec.texts() if case.activation else {}) if spec else None
        layers.append(
            replace(node(name, case.operator.type, *reads, activation=attached), params=case.operator.texts())
        )
        layers.append(node(f"{name}_out", "output", name, analysis_view="tensor"))
    return Graph(layers, name="many")


NETWORKS = {
    "losses": losing,
    "nested": nested,
    "segmenter": segmenter,
    "several": several,
    "small": small,
    "speller": speller,
}


def described(name: str) -> tuple[Graph, Training]:
    if name in NETWORKS:
        return NETWORKS[name](), Training()
    graph = read_document(DOCUMENTS[name]).graph
    assert graph is not None
    return graph, Training.of(stored_settings(DOCUMENTS[name]).settings)


def project_text(name: str, registry: Registry) -> str:
    """model.py, the settings of project.json, and how files differ from those of another project with the task."""
    graph, training = described(name)
    files = project(graph, registry, name, training)
    information = json.loads(files["project.json"])
    task = information["task"]
    full = project(small(), registry, "Small", Training(task))
    del information["provenance"], information["format"]
    information["files"] = sorted(files)
    parts = [files["model.py"], *(f"{key} = {json.dumps(value)}" for key, value in information.items()), ""]
    for file in FULL:
        if difference := changes(full[file], files[file]):
            parts += [f"--- {file} instead of that of {task}", difference]
    return rounded("\n".join(parts))


def project(graph: Graph, registry: Registry, name: str, training: Training) -> dict[str, str]:
    return {file: data.decode("utf-8") for file, data in project_files(graph, registry, name, training).items()}


@pytest.mark.parametrize("name", [*DOCUMENTS, *NETWORKS])
def test_the_project_of_a_network(name: str, registry: Registry) -> None:
    text = project_text(name, registry)
    known = SIMILAR.get(name)
    check_recorded(f"projects/{name}.txt", changes(project_text(known, registry), text) if known else text)


@pytest.mark.parametrize("task", TASKS)
def test_the_files_of_a_task(task: str, registry: Registry) -> None:
    first = project(small(), registry, "Small", Training("denoising"))
    files = project(small(), registry, "Small", Training(task))
    parts = []
    for name in sorted(files.keys() - {"project.json"}):
        if task == "denoising":
            parts += [f"--- {name}", files[name]] if name in FULL else []
        elif name in first and (difference := changes(first[name], files[name])):
            parts += [f"--- {name} instead of that of denoising", difference]
    check_recorded(f"tasks/{task}.txt", "\n".join([*sorted(files), *parts]))


@pytest.mark.parametrize("name", [*DOCUMENTS, *NETWORKS])
def test_the_onnx_model_and_the_sources_of_the_deployment_of_a_network(
    name: str, registry: Registry, tmp_path: Path
) -> None:
    text = deployed_text(name, registry, tmp_path / "model.onnx")
    known = SIMILAR.get(name)
    check_recorded(
        f"onnx/{name}.txt", changes(deployed_text(known, registry, tmp_path / "known.onnx"), text) if known else text
    )


def deployed_text(name: str, registry: Registry, path: Path) -> str:
    graph, _ = described(name)
    report = export_onnx(graph, registry, constant(graph, registry), path)
    interface = interface_of(report, graph, registry)
    model = sources.triton_name(graph.name)
    parts = [
        onnx_text(onnx.load(report.path)),
        f"{report.inputs} -> {report.outputs}, opset {report.opset}, {report.nodes} nodes; {report.sizes}",
        f"left out: {', '.join(report.left_out)}",
        sources.network_header(interface).partition("namespace")[2],
        sources.triton_config(model, interface),
        sources.input_list(interface),
        sources.triton_text(interface),
    ]
    return "\n".join(parts)


def constant(graph: Graph, registry: Registry) -> Weights:
    """Weights of equal values, so that small ones are recorded without digits of random numbers."""
    return Weights({key: np.full_like(array, 0.5) for key, array in seeded(graph, registry).tensors.items()})


def test_the_source_and_the_onnx_nodes_of_many_operators(registry: Registry, tmp_path: Path) -> None:
    graph = many()
    source = generate_source(graph, registry, "Many")
    lines = [*source.partition("    def __init__")[2].partition("        return {")[0].splitlines()]
    report = export_onnx(graph, registry, constant(graph, registry), tmp_path / "model.onnx")
    nodes = [
        line
        for line in graph_lines(onnx.load(report.path).graph)
        if not line.startswith(("input", "output", "constant")) and "_out = Identity" not in line
    ]
    assert len(nodes) > 200
    parts = [*(line for line in lines if "def forward" not in line), "", *nodes, ""]
    check_recorded("many.txt", rounded("\n".join(parts)))


FORMATS: dict[str, tuple[str, dict[str, str], bool]] = {
    "fp16": ("fp16", {}, False),
    "fp16_but_two": ("fp16", {"mixed": "float32", "means": "float32"}, False),
    "half_in_fp16": ("fp32", {"half": "float16", "weighted": "float16"}, False),
    "bf16": ("bf16", {}, False),
    "bf16_computed": ("bf16", {"half": "float16"}, True),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_onnx_model_in_other_number_formats(name: str, registry: Registry, tmp_path: Path) -> None:
    precision, formats, native = FORMATS[name]
    graph = several()
    made = []

    def convert(model: Any) -> Any:
        made.append(formatted(model, precision, formats, native=native))
        return made[0].model

    report = export_onnx(graph, registry, constant(graph, registry), tmp_path / "model.onnx", convert)
    lines = [f"{made[0].casts} casts, in float32: {made[0].in_float32}", precision_of(report.path)]
    check_recorded(f"formats/{name}.txt", onnx_text(onnx.load(report.path)) + "\n".join([*lines, ""]))


def test_the_shapes_and_the_command_of_an_engine(registry: Registry, tmp_path: Path) -> None:
    graph = several()
    interface = interface_of(
        export_onnx(graph, registry, constant(graph, registry), tmp_path / "m.onnx"), graph, registry
    )
    lines = []
    for package, options in (
        ("tensorrt", EngineOptions()),
        ("tensorrt_rtx", EngineOptions((4, 12), (32, 48), 4, True)),
        ("tensorrt", EngineOptions(None, (64, 72), 2, timing_cache=Path("kept here/cache"))),
    ):
        shapes = _shapes(interface, options)
        lines += [f"{entry}: {shape}" for entry, shape in shapes.items()]
        lines.append(trtexec_command(package, Path("a model.onnx"), Path("a.engine"), shapes, options))
    check_recorded("engines.txt", "\n".join([*lines, ""]))


def test_the_folder_of_a_deployment(registry: Registry, tmp_path: Path) -> None:
    """The sources that depend on the network are recorded with its ONNX model; the others are templates."""
    graph, folder = several(), tmp_path / "out"
    export_deployment(graph, registry, constant(graph, registry), folder)
    information = json.loads((folder / "deploy.json").read_text("utf-8"))
    information["files"] = list(information["files"])
    information["measured"] = {output: [*entry] for output, entry in information["measured"]["outputs"].items()}
    information["check"]["tolerances"] = [number(float(f"{value:.1g}")) for value in information["check"]["tolerances"]]
    del information["provenance"]
    lines = [f"{key} = {json.dumps(value)}" for key, value in information.items()]
    readme = (folder / "README.md").read_text("utf-8")
    text = re.sub(r"(?m)^(\| `[^`]*` \|) [-\d.e]+ \|.*dB \|$|Median time.*", r"\1 ...", readme)
    check_recorded("deployment.txt", "\n".join([*lines, "", text]))


def test_nothing_else_is_recorded() -> None:
    check_files("formats", [f"{name}.txt" for name in FORMATS])
    check_files("projects", [f"{name}.txt" for name in (*DOCUMENTS, *NETWORKS)])
    check_files("onnx", [f"{name}.txt" for name in (*DOCUMENTS, *NETWORKS)])
    check_files("tasks", [f"{name}.txt" for name in TASKS])
