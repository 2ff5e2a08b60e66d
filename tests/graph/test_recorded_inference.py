"""The types of every tensor of networks, whole and broken, and which layers an edit changes, as recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from recorded import check_recorded

from designer.files.document import parse_document, read_document
from designer.files.locations import located
from designer.graph import commands
from designer.graph.bypass import bypass
from designer.graph.diagnostics import Diagnostic
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.inference import Inference, LayerState
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.registry import load

DATA = Path(__file__).parents[1] / "data"
REGISTRY = load(entry_points=False)
NAMED = ("layer", "port", "parameter", "line", "template", "inner")


def told(found: Diagnostic) -> str:
    where = ", ".join(f"{name} {getattr(found, name)!r}" for name in NAMED if getattr(found, name) is not None)
    return f"{found.severity.value} {found.code} ({where}): {found.message} - {found.remedy}"


def state_text(state: LayerState) -> str:
    inputs = ", ".join(map(str, state.inputs))
    outputs = "unknown" if state.outputs is None else ", ".join(map(str, state.outputs))
    before = f", before its activation {state.before_activation}" if state.before_activation is not None else ""
    cause = f", because of {state.because_of}" if state.because_of is not None else ""
    return f"({inputs}) -> {outputs}{before}{cause}"


def described(inference: Inference) -> Iterator[str]:
    for name in sorted(inference.graph.layers):
        tensors = " ".join(map(str, inference.tensors(name))) if inference.read(name).operator is not None else "?"
        yield f"{name} [{tensors}]: {state_text(inference.states[name])}"


def test_types_and_findings_of_files_are_as_recorded() -> None:
    found = []
    files = [*sorted((DATA / "bad").glob("*.xml")), DATA / "good" / "everything.xml", DATA / "good" / "templates.xml"]
    for path in files:
        reading = parse_document(path.read_bytes(), validate=False)
        graph = reading.graph
        if graph is None or len(graph) > 40:
            continue
        inference = Inference(graph, REGISTRY)
        lines = [*described(inference), *map(told, located(inference.diagnostics(), reading))]
        found += [path.name, *(f"  {line}" for line in lines)]
    check_recorded("edits/inference_of_files.txt", "\n".join(found) + "\n")


def layer(name: str, kind: str, inputs: str = "", act: str = "", **params: str) -> Layer:
    sources = tuple(None if text == "-" else Source.parse(text) for text in inputs.split())
    return Layer(name, kind, (0, 0), sources, params, ActivationSpec(act) if act else None)


def network() -> Graph:
    return Graph(
        [
            layer("image", "input", dims="12x8x4"),
            layer("conv", "convolution", "image", "relu", features="6", kernel="3x3"),
            layer("half", "pooling", "conv", size="2x2"),
            layer("parts", "split", "half", parts="2"),
            layer("left", "identity", "parts:y1"),
            layer("right", "identity", "parts"),
            layer("again", "upsample", "left"),
            layer("joined", "concatenation", "again conv image"),
            layer("gap", "concatenation", "image - conv"),
            layer("sum", "element_wise", "joined joined"),
            layer("glu", "identity", "sum", "glu"),
            layer("open", "element_wise", "sum"),
            layer("behind", "identity", "open"),
            layer("far", "identity", "behind"),
            layer("loop", "identity", "knot"),
            layer("knot", "identity", "loop"),
            layer("of_loop", "identity", "knot"),
            layer("wrong", "identity", "parts:y9"),
            layer("nowhere", "identity", "gone"),
            layer("strange", "no_such_type", "image"),
            layer("after", "identity", "strange"),
            layer("bad", "convolution", "image", features="many"),
            layer("act", "identity", "image", "no_such_activation"),
            layer("many", "identity", "image conv half"),
            layer("out", "output", "glu"),
        ]
    )


EDITS: dict[str, Callable[[Graph, Inference], Edit]] = {
    "other features": lambda g, _: commands.set_params(g, {"conv": {"features": "8"}}),
    "the same features": lambda g, _: commands.set_params(g, {"conv": {"features": "8 "}}),
    "another kernel of the same shape": lambda g, _: commands.set_params(g, {"conv": {"kernel": "5x5"}}),
    "a move": lambda g, _: commands.move_layers(g, {"conv": (16, 16)}),
    "an activation": lambda g, _: commands.set_activation(g, ["half"], ActivationSpec("relu")),
    "an open input": lambda g, _: commands.disconnect(g, "joined", 1),
    "a link": lambda g, _: commands.connect(g, Source("again"), "open", 1),
    "a link that does not fit": lambda g, _: commands.connect(g, Source("conv"), "open", 1),
    "a loop that ends": lambda g, _: commands.disconnect(g, "knot", 0),
    "a rename": lambda g, _: commands.rename_layer(g, "half", "pooled"),
    "a removal": lambda g, _: commands.remove_layers(g, ["pooled"], heal=True),
    "a bypass": lambda g, i: bypass(g, i, ["left"]),
    "the missing layer": lambda g, _: commands.add_layer(g, layer("gone", "identity", "image")),
    "a known type": lambda g, _: Edit("x", {"strange": (g["strange"], replace(g["strange"], type="identity"))}),
    "another image": lambda g, _: commands.set_params(g, {"image": {"dims": "16x16x2"}}),
    "no image": lambda g, _: commands.remove_layers(g, ["image"]),
}


def test_what_an_edit_changes_is_as_recorded_and_equals_a_new_inference() -> None:
    graph = network()
    inference = Inference(graph, REGISTRY)
    found = ["at first", *(f"  {line}" for line in described(inference)), *map(told, inference.diagnostics())]
    for title, command in EDITS.items():
        before = dict(inference.states)
        changed = inference.update(graph.apply(command(graph, inference)))
        fresh = Inference(graph, REGISTRY)
        assert inference.states == fresh.states, title
        assert inference.diagnostics() == fresh.diagnostics(), title
        different = {name for name, state in inference.states.items() if before.get(name) != state}
        assert different <= changed | (before.keys() - inference.states.keys()), title
        found += ["", f"{title}: {', '.join(sorted(changed))}"]
        found += [f"  {name}: {state_text(inference.states[name])}" for name in sorted(different)]
    check_recorded("edits/inference_of_edits.txt", "\n".join(found) + "\n")


def test_types_of_tensors_and_ports_are_found_by_every_name() -> None:
    inference = Inference(network(), REGISTRY)
    cases = {
        "parts": ("parts", "N x 3 x 4 x 6"),
        "parts:y0": ("parts", "N x 3 x 4 x 6"),
        "parts:y1": ("parts:y1", "N x 3 x 4 x 6"),
        "conv": ("conv", "N x 6 x 8 x 12"),
        "conv:y": ("conv", "N x 6 x 8 x 12"),
        "open": ("open", None),
    }
    for text, (tensor, shape) in cases.items():
        source = Source.parse(text)
        kind = inference.type_of(source)
        assert (str(kind) if kind is not None else None) == shape, text
        assert str(inference.tensor(source)) == tensor, text


def test_lines_of_a_file_are_those_of_its_findings() -> None:
    path = DATA / "bad" / "shape-mismatch__in_a_template.xml"
    reading = read_document(path)
    assert reading.graph is not None
    found = located(Inference(reading.graph, REGISTRY).diagnostics(), reading)
    text = path.read_text().splitlines()
    for each in found:
        assert each.line is not None
        assert f'name="{each.inner or each.layer}"' in text[each.line - 1]
