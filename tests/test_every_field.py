"""Every field of what a network is made of, one by one: what depends on it runs again, and files and the journal keep it.

The tables name all fields, so that a new one has to say here what it means.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from designer.files.document import parse_document, write_document
from designer.files.journal import Journal
from designer.files.recovery import unfinished
from designer.files.settings import Settings, read_settings, save_settings
from designer.files.variants import Variant
from designer.files.weights import Weights
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.model import ActivationSpec, Foreign, Frame, Layer, Source
from designer.operators.registry import Registry, load
from designer.runtime.api import RunOptions
from designer.runtime.results import layer_text
from designer.runtime.session import Session

ATTACHED = ActivationSpec("relu", {"alpha": "0.1"})
MIDDLE = Layer("middle", "element_wise", (160, 0), (Source("a"), Source("b")), {"operation": "subtract"}, ATTACHED)
NOTE = Foreign("<!-- kept -->")
FRAME = Frame("f1")

# Field -> another value, and whether it changes the result.
OF_A_LAYER = {
    "name": ("other", True),
    "type": ("concatenation", True),
    "position": ((0, -16), False),
    "inputs": ((Source("b"), Source("a")), True),
    "params": ({"operation": "multiply"}, True),
    "activation": (None, True),
    "attributes": ({"lw:collapsed": "true", "lw:mark": "1"}, False),
    "children": ((NOTE,), False),
    "weights_of": ("another", True),
}
OF_AN_ACTIVATION = {
    "type": ("elu", True),
    "params": ({"alpha": "0.9"}, True),
    "attributes": ({"lw:mark": "1"}, False),
    "children": ((NOTE,), False),
}
OF_A_FRAME = {
    "id": "f2",
    "title": "Encoder <&>",
    "text": "two\nlines",
    "color": "accent",
    "rect": (-16, 0, 0, 16),
    "collapsed": True,
    "folded": "f9",
}
OF_SETTINGS = {
    "precision": ["fp16", "bf16"],
    "layout": ["nhwc"],
    "engine": ["torch", "of_a_plugin"],
    "device": ["cuda:1"],
    "threads": [1, 1024],
    "tile": [0, 1, 65536],
    "weights": ["/weights/a b.safetensors"],
    "random_seed": [0, 2**31 - 1],
    "input_files": [{"a": "/pictures/a.png"}, {"a": "pattern:edges", "b": "camera:0"}],
    "output_files": [{"result": "/out/a.png"}],
    "iterations": [1, 1_000_000],
    "profiling": [True],
    "profiling_sections": [{"Memory": False}, {"Memory": True, "Tensor": False}],
    "variants": [
        (Variant("half", "fp16", {"middle": "float32"}, "2:4", "torch", ("fold", "fuse"), "/w/a", {"x": ""}),)
    ],
    "variant": ["half"],
    "project": ["/projects/a b"],
    "task": ["denoising"],
    "recipe": [{"noise": "0-55"}, {"steps": "1500", "data": "../photos"}],
    "extra": [{"Later/Thing": ""}, {"Later/Thing": "0"}],
}
VALUES = [(name, value) for name, values in OF_SETTINGS.items() for value in values]


def changed_layers() -> list[tuple[str, Layer, bool]]:
    of_layer = [(n, replace(MIDDLE, **{n: value}), counts) for n, (value, counts) in OF_A_LAYER.items()]
    attached = {n: (replace(ATTACHED, **{n: value}), counts) for n, (value, counts) in OF_AN_ACTIVATION.items()}
    return [
        *of_layer,
        *((f"activation.{n}", replace(MIDDLE, activation=spec), counts) for n, (spec, counts) in attached.items()),
    ]


CHANGED = [pytest.param(layer, counts, id=name) for name, layer, counts in changed_layers()]


@pytest.mark.parametrize(
    ("kind", "table"),
    [(Layer, OF_A_LAYER), (ActivationSpec, OF_AN_ACTIVATION), (Frame, OF_A_FRAME), (Settings, OF_SETTINGS)],
)
def test_the_tables_name_every_field(kind: type, table: dict[str, object]) -> None:
    assert list(table) == [field.name for field in fields(kind)]


def network(middle: Layer) -> Graph:
    inputs = [Layer(name, "input", params={"dims": "6x4x3"}) for name in "ab"]
    return Graph([*inputs, middle, Layer("result", "output", inputs=(Source(middle.name),))])


def session(graph: Graph, registry: Registry) -> Session:
    made = Session(graph, registry, Weights(), RunOptions("torch", threads=1))
    for seed, name in enumerate("ab"):
        made.set_input(name, np.random.default_rng(seed).random((1, 3, 4, 6), np.float32), is_image=False)
    return made


@pytest.mark.parametrize(("layer", "counts"), CHANGED)
def test_what_depends_on_a_field_runs_again(layer: Layer, counts: bool) -> None:
    assert (layer_text(layer) != layer_text(MIDDLE)) is counts
    if layer.weights_of:
        return  # only inlined templates have it; nothing here has weights
    pytest.importorskip("torch")
    registry = load(entry_points=False)
    made = session(network(MIDDLE), registry)
    made.run()
    made.set_graph(network(layer))
    result = made.run()
    assert all(step.cached for step in result.steps) is not counts
    np.testing.assert_array_equal(result.outputs["result"], session(network(layer), registry).run().outputs["result"])


def test_a_gap_is_not_a_layer_called_none() -> None:
    gap, layer = (replace(MIDDLE, inputs=(Source("a"), second)) for second in (None, Source("None")))
    assert layer_text(gap) != layer_text(layer)


@pytest.mark.parametrize("layer", [case.values[0] for case in CHANGED if not case.values[0].weights_of])
def test_documents_and_journals_keep_every_field_of_a_layer(layer: Layer, tmp_path) -> None:
    graph = network(layer)
    assert parse_document(write_document(graph)).graph == graph
    graph = network(MIDDLE)
    renamed = layer.name != MIDDLE.name
    layers = {"middle": (MIDDLE, None), layer.name: (None, layer)} if renamed else {"middle": (MIDDLE, layer)}
    assert journalled(graph, Edit("Change", layers), tmp_path)[0] == graph
    assert graph[layer.name] == layer


@pytest.mark.parametrize(("field", "value"), OF_A_FRAME.items())
def test_documents_and_journals_keep_every_field_of_a_frame(field: str, value: object, tmp_path) -> None:
    frame = replace(FRAME, **{field: value})
    graph = network(MIDDLE)
    graph.apply(Edit("Frame", frames={frame.id: (None, frame)}))
    assert parse_document(write_document(graph)).graph == graph
    graph = network(MIDDLE)
    assert journalled(graph, Edit("Frame", frames={frame.id: (None, frame)}), tmp_path)[0] == graph
    assert graph.frames == {frame.id: frame}


@pytest.mark.parametrize(("field", "value"), VALUES)
def test_settings_files_keep_every_value(field: str, value: object, tmp_path) -> None:
    settings = Settings(**{field: value})
    assert settings != Settings()
    save_settings(settings, tmp_path / "x.settings.xml")
    assert read_settings(tmp_path / "x.settings.xml") == (settings, ())


@pytest.mark.parametrize("rewritten", [False, True], ids=["record", "rewritten"])
@pytest.mark.parametrize(("field", "value"), [(name, value) for name, value in VALUES if name != "extra"])
def test_journals_keep_every_setting(field: str, value: object, rewritten: bool, tmp_path) -> None:
    edit = Edit("Settings", settings={field: (getattr(Settings(), field), value)})
    assert journalled(network(MIDDLE), edit, tmp_path, rewritten=rewritten)[1] == {field: value}


def journalled(graph: Graph, edit: Edit, folder, *, rewritten: bool = False) -> tuple[Graph, dict[str, object]]:
    """The network and the settings that are recovered after the edit was made and the process ended."""
    path = folder / "net.xml"
    path.write_bytes(write_document(graph))
    history, journal = History(graph), Journal(graph, path, folder=folder / "journal")
    history.subscribe(journal.record)
    history.commit(edit)
    if rewritten:
        assert journal.keep()
    journal.abandon()
    (found,) = unfinished(folder / "journal")
    found.release()
    assert found.graph is not None
    assert not [finding.message for finding in found.findings if finding.code != "changed-on-disk"]
    return found.graph, dict(found.settings)
