"""What a session does around an engine, with an engine in plain NumPy: what is compiled and run again, and what is reported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from plain_engine import PlainForWeights, Record, plain_engines
from runtime_networks import RELU, layer, pixels

from designer.files.weights import WeightKey, Weights
from designer.graph.commands import move_layers, set_params
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.template import Template
from designer.runtime import session as module
from designer.runtime.api import ONE_TILE, RunOptions
from designer.runtime.images import write_image, write_npy
from designer.runtime.interrupt import Interrupt, InterruptedRunError
from designer.runtime.patterns import make_pattern
from designer.runtime.plan import PartStep
from designer.runtime.results import WeightPrints
from designer.runtime.session import Session

PLAIN = RunOptions("plain", threads=1)


@pytest.fixture
def record(monkeypatch) -> Record:
    made = Record()
    engines = plain_engines(made)
    monkeypatch.setattr(module, "default_engines", lambda: engines)
    return made


def conv(name, before, **params):
    return layer(name, "convolution", before, RELU, features=3, kernel="1x1", **params)


def branches(**image) -> Graph:
    """Two convolutions, noise and a convolution behind it, and a mix of both that only the output reads."""
    return Graph(
        [
            layer("image", "input", dims="6x4x3", **image),
            conv("first", "image"),
            conv("second", "first"),
            layer("noise", "noise", "second", scale="0.1", seed="3"),
            conv("third", "noise"),
            layer("mix", "mix", "third,second", amount="0.5"),
            layer("result", "output", "mix"),
        ]
    )


def weights_for(*names, seed=0, note="") -> Weights:
    rng = np.random.default_rng(seed)
    tensors = {}
    for name in names:
        tensors[WeightKey(name, "kernel")] = rng.normal(size=(3, 3, 1, 1)).astype(np.float32)
        tensors[WeightKey(name, "bias")] = rng.normal(size=3).astype(np.float32)
    return Weights(tensors, note=note)


ALL = ("first", "second", "third")


def changed(weights: Weights, name: str) -> Weights:
    tensors = dict(weights.tensors)
    tensors[WeightKey(name, "bias")] = tensors[WeightKey(name, "bias")] + np.float32(0.5)
    return replace(weights, tensors=tensors)


def opened(graph, registry, weights=None, options=PLAIN, array=None, **kw) -> Session:
    made = Session(graph, registry, weights_for(*ALL) if weights is None else weights, options, **kw)
    if array is not False:
        made.set_input("image", pixels(4, 6) if array is None else array, is_image=True)
    return made


def ran(result) -> list[str]:
    return [step.layers[0] for step in result.steps if not step.cached]


def convolutions(result) -> list[str]:
    return [name for name in ran(result) if name == "first" or name.endswith("inner")]


def same_as_new(session, registry, capture=()) -> None:
    """The session's results are those of a new session in its state."""
    new = Session(session.graph, registry, session.weights, session.options)
    for name in session.fed_layers():
        fed = session.fed(name)
        new.set_input(name, fed.array, is_image=fed.is_image)
    found, expected = session.run(capture), new.run(capture)
    assert found.outputs.keys() == expected.outputs.keys()
    for name, array in expected.outputs.items():
        np.testing.assert_array_equal(found.outputs[name], array)
    for source in capture:
        np.testing.assert_array_equal(found.captures[source], expected.captures[source])


def said(act) -> tuple:
    with pytest.raises(DiagnosticError) as caught:
        act()
    return tuple((d.code, d.layer, d.message, d.remedy) for d in caught.value.diagnostics)


# --- weights -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_inputs", [False, True])
@pytest.mark.parametrize(
    ("name", "again"), [("first", ["first", "noise", "third", "mix"]), ("third", ["third", "mix"])]
)
def test_only_layers_below_changed_weights_run_again(runtime_registry, record, as_inputs, name, again):
    weights = weights_for(*ALL)
    made = opened(branches(), runtime_registry, weights, replace(PLAIN, weights_as_inputs=as_inputs))
    made.run()
    record.clear()
    for seed in range(3):
        weights = changed(weights, name)
        made.set_weights(weights)
        assert ran(made.run()) == again, seed
        same_as_new(made, runtime_registry)
    own = [entry for entry in record.compiled if entry[1][0] == again[0]]
    assert len(own) == (3 + 3 if not as_inputs else 3)  # the new sessions compile theirs
    made.set_weights(Weights(dict(weights.tensors), note="the same"))
    result = made.run()
    assert (ran(result), result.weights_note) == ([], "the same")


def test_weights_that_were_used_before_run_nothing(runtime_registry, record):
    one, other = weights_for(*ALL), weights_for(*ALL, seed=1)
    made = opened(branches(), runtime_registry, one)
    before = made.run().outputs["result"]
    made.set_weights(other)
    assert ran(made.run()) == ["first", "noise", "third", "mix"]
    made.set_weights(one)
    result = made.run()
    assert ran(result) == []
    assert result.outputs["result"] is before


def test_new_weights_have_the_digests_of_another_session(runtime_registry, record):
    made = opened(branches(), runtime_registry)
    weights = weights_for(*ALL, seed=1)
    prints = WeightPrints(weights)
    revision = made.revision
    made.set_weights(weights, prints)
    assert made.weight_prints is prints
    assert (made.revision, made.engine.engine.weights) == (revision + 1, weights)
    made.set_weights(weights)
    assert made.weight_prints is not prints


def test_new_weights_reach_the_stand_in(runtime_registry, record):
    record.refused = {"third"}
    weights = weights_for(*ALL)
    made = opened(branches(), runtime_registry, weights)
    for _ in range(3):
        result = made.run()
        assert [step.engine for step in result.steps] == ["plain", "numpy", "standby", "numpy"]
        assert result.note == "standby ran the layers around 'third', which ONNX cannot express"
        same_as_new(made, runtime_registry)
        assert made.run().note == result.note  # from the cache too
        weights = changed(weights, "third")
        made.set_weights(weights)


def test_damaged_weights_are_reported_while_they_are_used(runtime_registry, record):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            conv("first", "image"),
            layer("pool", "pooling", "first", operation="max", size="2x2", stride="2x2"),
            layer("result", "output", "pool"),
        ]
    )
    good, bad = weights_for("first"), weights_for("first")
    bad.tensors[WeightKey("first", "kernel")][0, 0, 0, 0] = np.nan
    made = opened(graph, runtime_registry, good, array=pixels(8, 8))
    text = "Plain may drop the NaN of 'first' in 'pool': finite results can be wrong"
    for weights, note in ((good, ""), (bad, text), (bad, text), (good, ""), (bad, text)):
        made.set_weights(weights)
        assert made.run().note == note
        assert made.run().note == note  # from the cache


def test_missing_weights_and_broken_layers_say_so_and_the_next_run_works(runtime_registry, record):
    made = opened(branches(), runtime_registry)
    made.set_param("noise", "scale", "0.2")
    assert said(lambda: made.set_param("noise", "scale", "-1"))[0][0] == "bad-parameter"
    assert made.graph["noise"].params["scale"] == "0.2"
    made.run()


# --- formats of layers -------------------------------------------------------------------------------------------


def test_formats_of_layers_run_what_depends_on_them(runtime_registry, record):
    made = opened(branches(), runtime_registry)
    made.run()
    steps = [
        ({"first": "int8"}, ["first", "second", "noise", "third", "mix"]),  # parts of one layer from now on
        ({"first": "int8", "third": "int4"}, ["third", "mix"]),
        ({"third": "int4"}, ["first", "second", "noise", "third", "mix"]),
        ({"third": "int4", "first": "int8"}, []),
        ({"third": "int8", "first": "int8"}, ["third", "mix"]),
    ]
    for formats, again in steps:
        revision = made.revision
        made.estimate.changed.clear()
        before = dict(made.options.formats)
        made.set_formats(formats)
        assert made.revision == revision + 1
        names = {name for name in {*formats, *before} if formats.get(name) != before.get(name)}
        assert made.estimate.changed == names
        assert made.options.formats == tuple(formats.items())
        assert ran(made.run()) == again, formats
        same_as_new(made, runtime_registry)
    made.set_formats({})
    assert [step.layers for step in made.run().steps] == [("first", "second"), ("noise",), ("third",), ("mix",)]
    same_as_new(made, runtime_registry)


def test_a_format_that_the_engine_lacks_changes_nothing(runtime_registry, record):
    made = opened(branches(), runtime_registry)
    made.set_formats({"first": "int8"})
    result, revision, engine = made.run(), made.revision, made.engine
    assert said(lambda: made.set_formats({"first": "float16"}))[0][0] == "format-unavailable"
    assert (made.options.formats, made.revision, made.engine) == ((("first", "int8"),), revision, engine)
    again = made.run()
    assert ran(again) == []
    np.testing.assert_array_equal(again.outputs["result"], result.outputs["result"])


def block() -> Graph:
    """A template with a convolution, used twice, and one outside."""
    body = (layer("x", "template_input"), conv("inner", "x"), layer("y", "template_output", "inner"))
    return Graph(
        [
            layer("image", "input", dims="6x4x3"),
            layer("one", "template", "image", template="block"),
            conv("first", "one"),
            layer("two", "template", "first", template="block"),
            layer("result", "output", "two"),
        ],
        templates=[Template("block", body)],
    )


def test_the_format_of_an_instance_is_that_of_its_layers(runtime_registry, record):
    weights = weights_for("one.inner", "two.inner", "first")
    made = opened(block(), runtime_registry, weights)
    made.set_formats({"first": "int4"})
    made.run()
    made.set_formats({"first": "int4", "one": "int8"})
    assert convolutions(made.run()) == ["one.inner", "first", "two.inner"]
    same_as_new(made, runtime_registry)
    made.set_formats({"first": "int4", "one": "int8", "two": "int8"})
    assert convolutions(made.run()) == ["two.inner"]
    made.set_formats({"first": "int4", "one": "int8", "two": "int8", "two.inner": "int4"})
    assert convolutions(made.run()) == ["two.inner"]
    same_as_new(made, runtime_registry)


# --- inputs ------------------------------------------------------------------------------------------------------


def test_each_array_that_is_fed_runs_the_network_and_is_copied(runtime_registry, record):
    made = opened(branches(), runtime_registry)
    array = pixels(4, 6, seed=1).astype(np.float64)
    for _ in range(2):  # equal values are another array too
        revision = made.revision
        made.estimate.changed.clear()
        made.set_input("image", array, is_image=True)
        assert made.revision > revision
        assert "image" in made.estimate.changed
        assert ran(made.run()) == ["first", "noise", "third", "mix"]
    kept = made.fed("image").array.copy()
    array[...] = 9
    np.testing.assert_array_equal(made.fed("image").array, kept)
    assert made.fed("image").array.dtype == np.float32
    other = pixels(4, 6, seed=2)
    made.set_input("image", other, is_image=False)
    other[...] = 9
    np.testing.assert_array_equal(made.fed("image").array, pixels(4, 6, seed=2))
    assert not made.fed("image").is_image


def test_a_refused_array_changes_nothing(runtime_registry, record):
    made = opened(branches(), runtime_registry)
    before, revision = made.run(), made.revision
    for array in (pixels(4, 6, channels=4), pixels(4, 6)[0], pixels(4, 6)[:0]):
        with pytest.raises(DiagnosticError):
            made.set_input("image", array, is_image=True)
    assert made.revision == revision
    assert made.run().outputs["result"] is before.outputs["result"]


@pytest.mark.parametrize(
    ("name", "is_image", "expected"),
    [
        ("pattern:gradient", True, lambda folder: make_pattern("gradient", 3, 4, 6)),
        ("x.png", True, lambda folder: np.full((1, 3, 5, 7), 51 / 255, np.float32)),
        ("flat.npy", False, lambda folder: pixels(5, 7)),
        ("batch.npy", False, lambda folder: pixels(5, 7, batch=2)),
        ("last.npy", False, lambda folder: pixels(5, 7)),
    ],
)
def test_files_are_images_or_tensors(runtime_registry, record, tmp_path, name, is_image, expected):
    write_image(tmp_path / "x.png", np.full((1, 3, 5, 7), 51 / 255, np.float32))
    write_npy(tmp_path / "flat.npy", pixels(5, 7)[0])
    write_npy(tmp_path / "batch.npy", pixels(5, 7, batch=2))
    write_npy(tmp_path / "last.npy", pixels(5, 7)[0].transpose(1, 2, 0))
    made = opened(branches(scale="2.0", shift="-1.0"), runtime_registry, array=False)
    from pathlib import Path

    made.set_input_file("image", Path(name) if ":" in name else tmp_path / name)
    array = expected(tmp_path)
    np.testing.assert_array_equal(made.fed("image").array, array)
    assert made.fed("image").is_image is is_image
    found = made.run([Source("image")]).captures[Source("image")]
    np.testing.assert_allclose(found, array * 2 - 1 if is_image else array, rtol=1e-6)


@pytest.mark.parametrize("is_image", [True, False])
def test_scale_shift_and_tiling_prepare_the_data_again(runtime_registry, record, is_image):
    made = opened(branches(), runtime_registry, array=False)
    array = pixels(4, 6)
    made.set_input("image", array, is_image=is_image)
    again = ["first", "noise", "third", "mix"]
    assert ran(made.run()) == again
    version, first = made.fed_input("image")
    assert made.fed_input("image") == (version, first)
    assert made.fed_input("image")[1] is first
    assert not first.flags.writeable
    for param, text in (("scale", "3.0"), ("shift", "0.5"), ("tiling", "4"), ("tiling", "8")):
        made.set_param("image", param, text)
        moved = is_image or param == "tiling"
        assert ran(made.run()) == (again if moved else []), param
        same_as_new(made, runtime_registry)
        assert (made.fed_input("image")[0] != version) is moved
        version = made.fed_input("image")[0]
    assert made.graph["image"].params["dims"] == "6x4x3"
    assert made.inference.states["first"].outputs[0].shape[2:] == (8, 8)


def test_inputs_are_named_where_one_is_missing(runtime_registry, record):
    graph = Graph(
        [
            layer("image", "input", dims="6x4x3"),
            layer("other", "input", dims="6x4x3"),
            layer("sum", "element_wise", "image,other", operation="add"),
            layer("result", "output", "sum"),
        ]
    )
    made = opened(graph, runtime_registry, Weights())
    wrong = ("no-such-input", "sum", "there is no input layer 'sum'", "choose one of image, other")
    assert said(lambda: made.set_input("sum", pixels(4, 6), is_image=True)) == (wrong,)
    assert said(lambda: made.input_operator("none")) == (
        ("no-such-input", "none", "there is no input layer 'none'", "choose one of image, other"),
    )
    missing = ("no-input", "other", "the input 'other' has no data", "choose an image or a tensor")
    assert said(made.run) == (missing,)
    assert said(lambda: made.fed("other")) == (missing,)
    assert made.fed_layers() == ("image",)
    empty = Session(Graph([conv("first", "")]), runtime_registry, Weights(), PLAIN)
    assert said(lambda: empty.input_operator("first"))[0][3] == "add an input layer"


@pytest.mark.parametrize("wrong", [1, 2])
def test_every_batch_is_compared_with_the_first(runtime_registry, record, wrong):
    names = ["a", "b", "c"]
    graph = Graph(
        [
            *(layer(name, "input", dims="6x4x3", batch="0") for name in names),
            layer("fixed", "input", dims="6x4x3", batch="1"),
            layer("ab", "element_wise", "a,b", operation="add"),
            layer("abc", "element_wise", "ab,c", operation="add"),
            layer("all", "element_wise", "abc,fixed", operation="add"),
            layer("result", "output", "all"),
        ]
    )
    made = Session(graph, runtime_registry, Weights(), PLAIN)
    for name in (*names, "fixed"):
        made.set_input(name, pixels(4, 6, batch=1 if name == "fixed" else 2), is_image=True)
    assert made.run().outputs["result"].shape == (2, 3, 4, 6)
    made.set_input(names[wrong], pixels(4, 6, batch=3), is_image=True)
    ((code, at, message, remedy),) = said(made.run)
    assert (code, at) == ("input-shape", names[wrong])
    assert message == f"the inputs 'a' and '{names[wrong]}' have batches of 2 and 3, which must be equal"
    assert remedy == "choose the same number of images for both, or set the batch of an input with one image to 1"


# --- changes of the network --------------------------------------------------------------------------------------


def renamed(graph, **params) -> Graph:
    made = graph.copy()
    for name, values in params.items():
        made.apply(set_params(made, {name: values}))
    return made


@pytest.mark.parametrize(
    ("change", "structure", "again"),
    [
        (lambda s: s.set_param("mix", "amount", "0.25"), 0, ["mix"]),
        (lambda s: s.set_param("noise", "scale", "0.3"), 0, ["noise", "third", "mix"]),
        (lambda s: s.set_param("first", "padding", "valid"), 1, None),
        (lambda s: s.set_graph(renamed(s.graph, mix={"amount": "0.1"})), 0, ["mix"]),
        (lambda s: s.set_graph(renamed(s.graph, mix={"amount": "0.1"}, noise={"seed": "8"})), 0, None),
        (lambda s: s.set_graph(Graph([x for x in s.graph if x.name != "mix" and x.name != "result"] + [layer("result", "output", "third")])), 1, []),
        (lambda s: s.set_graph(Graph([*s.graph, layer("more", "output", "third")])), 1, []),
        (lambda s: s.set_graph(Graph([x if x.name != "mix" else layer("mix", "mix", "second,third", amount="0.5") for x in s.graph])), 1, ["mix"]),
        (lambda s: s.set_graph(Graph([x if x.name != "mix" else replace(x, attributes={"lw:bypassed": "true"}) for x in s.graph])), 1, []),
    ],
)  # fmt: skip
def test_a_change_is_counted_and_runs_what_depends_on_it(runtime_registry, record, change, structure, again):
    made = opened(branches(), runtime_registry)
    made.run()
    counts = made.revision, made.structure
    change(made)
    assert made.revision > counts[0]
    assert made.structure - counts[1] == structure
    result = made.run()
    if again is not None:
        assert ran(result) == again
    same_as_new(made, runtime_registry)
    unchanged = made.structure
    made.set_param("noise", "seed", "11")
    assert made.structure == unchanged
    same_as_new(made, runtime_registry)


def test_a_bypassed_analysis_layer_can_come_back(runtime_registry, record):
    graph = branches()
    without = Graph([x if x.name != "noise" else replace(x, attributes={"lw:bypassed": "true"}) for x in graph])
    made = opened(without, runtime_registry)
    for each in (graph, without, graph):
        made.run()
        made.set_graph(each)
        same_as_new(made, runtime_registry)


def test_the_documents_of_a_session_are_its_own(runtime_registry, record):
    graph = branches()
    made = opened(graph, runtime_registry)
    graph.apply(set_params(graph, {"mix": {"amount": "0.1"}}))
    assert made.graph["mix"].params["amount"] == "0.5"
    made.set_graph(graph)
    graph.apply(set_params(graph, {"mix": {"amount": "0.2"}}))
    assert made.graph["mix"].params["amount"] == "0.1"
    made.run()
    moved = made.graph.copy()
    moved.apply(move_layers(moved, {"mix": (50, 60)}))
    made.set_graph(moved)
    assert made.graph["mix"].position == (50, 60)
    assert ran(made.run()) == []


def test_data_of_inputs_stays_while_they_exist(runtime_registry, record):
    made = opened(branches(), runtime_registry)
    made.set_input("image", pixels(8, 10), is_image=True)
    made.set_graph(renamed(branches(), image={"dims": "20x20x3"}))
    assert made.fed_layers() == ("image",)
    assert made.inference.states["first"].outputs[0].shape[2:] == (8, 10)
    assert made.run().outputs["result"].shape == (1, 3, 8, 10)
    without = Graph([layer("photo" if x.name == "image" else x.name, x.type, "", x.activation, **x.params) if x.name == "image" else replace(x, inputs=tuple(Source("photo") if s == Source("image") else s for s in x.inputs)) for x in branches()])  # fmt: skip
    made.set_graph(without)
    assert made.fed_layers() == ()
    made.set_graph(branches())
    assert made.fed_layers() == ()
    assert said(made.run)[0][0] == "no-input"


def test_other_templates_are_taken(runtime_registry, record):
    weights = weights_for("one.inner", "two.inner", "one.more", "two.more", "first")
    made = opened(block(), runtime_registry, weights)
    made.run()
    body = (
        layer("x", "template_input"),
        conv("inner", "x"),
        conv("more", "inner"),
        layer("y", "template_output", "more"),
    )
    made.set_graph(Graph(list(block()), templates=[Template("block", body)]))
    same_as_new(made, runtime_registry)
    made.set_graph(block())
    assert ran(made.run()) == []
    made.set_param("first", "padding", "valid")
    same_as_new(made, runtime_registry)


def test_a_problem_inside_an_instance_is_that_of_the_instance(runtime_registry, record):
    made = opened(block(), runtime_registry, weights_for("one.inner", "first"))
    with pytest.raises(DiagnosticError) as caught:
        made.run()
    (found,) = caught.value.diagnostics
    assert found.layer in made.graph
    record.refused, record.code = {"two.inner"}, "some-code"
    made = opened(block(), runtime_registry, weights_for("one.inner", "two.inner", "first"))
    assert said(made.run) == (("some-code", "two", "cannot be expressed", ""),)
    record.refused = {"first"}
    assert said(opened(block(), runtime_registry, weights_for("one.inner", "two.inner", "first")).run)[0][1] == "first"


# --- runs --------------------------------------------------------------------------------------------------------


def test_times_progress_and_names_of_steps(runtime_registry, record, monkeypatch):
    clock = iter(np.arange(0, 1000, 0.25))
    made = opened(branches(), runtime_registry)
    monkeypatch.setattr(module, "perf_counter", lambda: float(next(clock)))
    reported = []
    result = made.run(progress=lambda *args: reported.append(args))
    assert reported == [
        (0, 4, "first ... second"), (1, 4, "noise"), (2, 4, "third"), (3, 4, "mix"), (4, 4, "")
    ]  # fmt: skip
    assert [(step.layers, step.engine, step.cached, step.dropped) for step in result.steps] == [
        (("first", "second"), "plain", False, False),
        (("noise",), "numpy", False, False),
        (("third",), "plain", False, False),
        (("mix",), "numpy", False, False),
    ]
    assert [step.milliseconds for step in result.steps] == [250.0] * 4
    assert result.milliseconds >= 1000
    assert (result.note, result.weights_note, dict(result.hidden), result.captures) == ("", "", {}, {})
    again = made.run()
    assert [(step.milliseconds, step.cached) for step in again.steps] == [(0.0, True)] * 4
    assert made.expected() == 0.0
    made.set_param("noise", "scale", "0.4")
    assert made.expected() == 750.0
    assert made.expected([Source("first")]) == 750.0
    made.set_weights(weights_for(*ALL, seed=5))
    assert made.expected() == 1000.0
    made.run()
    made.set_input("image", pixels(4, 6, seed=9), is_image=True)
    assert made.expected() == 1000.0
    made.set_graph(Graph([*branches(), conv("fourth", "third"), layer("more", "output", "fourth")]))
    assert made.expected() is None


def test_an_interrupt_ends_a_run_and_keeps_what_is_done(runtime_registry, record):
    made, interrupt = opened(branches(), runtime_registry), Interrupt()

    def progress(done, total, text):
        if done == 2:
            interrupt.ask()

    with pytest.raises(InterruptedRunError):
        made.run(progress=progress, interrupt=interrupt)
    with pytest.raises(InterruptedRunError):
        made.run(interrupt=interrupt)
    assert ran(made.run()) == ["mix"] or ran(made.run()) == []
    assert [entry[1] for entry in record.ran].count(("first", "second")) == 1


def test_results_above_the_memory_are_named_once(runtime_registry, record):
    size = 4 * 3 * 4 * 6
    made = opened(branches(), runtime_registry, keep_bytes=2 * size)
    result = made.run([Source("first")])
    assert result.note == "results above 576 B are not kept: the next run computes second, first, noise again"
    assert [step.dropped for step in result.steps] == [True, True, False, False]
    assert made.results.nbytes <= 2 * size
    made = opened(branches(), runtime_registry, keep_bytes=4 * size)
    assert made.run().note == ""
    made.set_input("image", pixels(4, 6, seed=1), is_image=True)
    assert made.run().note == ""  # old results are dropped without a note
    assert ran(made.run()) == []


def test_every_note_of_a_run_is_reported(runtime_registry, record):
    record.refused = {"first"}
    made = opened(branches(), runtime_registry, replace(weights_for(*ALL), note="trained"), keep_bytes=1)
    result = made.run()
    assert result.note.split("; ") == [
        "standby ran the layers around 'first', which ONNX cannot express",
        "results above 1.00 B are not kept: the next run computes second, noise, third, mix again",
    ]
    assert result.weights_note == "trained"


@pytest.mark.parametrize("code", ["not-in-onnx", "other"])
def test_the_stand_in_runs_what_onnx_lacks_only(runtime_registry, record, code):
    record.refused, record.code = {"first", "second"}, code
    made = opened(branches(), runtime_registry, options=replace(PLAIN, layout="nhwc", precision="fp16", threads=3))
    if code == "other":
        assert [entry[:2] for entry in said(made.run)] == [("other", "first"), ("other", "second")]
        return
    result = made.run()
    assert result.note == "standby ran the layers around 'first', 'second', which ONNX cannot express"
    assert [step.engine for step in result.steps] == ["standby", "numpy", "plain", "numpy"]
    assert record.made[-1] == ("standby", replace(made.options, engine="standby"))
    made.set_input("image", pixels(8, 8), is_image=True)
    made.run()
    assert [name for name, _ in record.made].count("standby") == 1
    on_its_own = opened(branches(), runtime_registry, options=replace(PLAIN, engine="standby"))
    assert on_its_own.run().note == ""


def test_copies_of_a_session_have_its_weights_and_options(runtime_registry, record):
    options = replace(PLAIN, layout="nhwc", tile=16, formats=(("first", "int8"),))
    made = opened(branches(), runtime_registry, options=options, keep_bytes=1000)
    copy = made.empty_copy(77)
    assert (copy.options, copy.weights, copy.results.keep_bytes) == (options, made.weights, 77)
    assert (copy.registry, list(copy.graph), copy.fed_layers()) == (made.registry, list(made.graph), ())
    tile = made.tile_session(branches())
    assert (tile.options, tile.weights, tile.results.keep_bytes) == (replace(options, tile=ONE_TILE), made.weights, 0)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_hidden_tensors_are_checked_on_the_processor_only(runtime_registry, record, device):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("log", "unary", "image", function="log"),
            layer("pool", "pooling", "log", operation="max", size="2x2", stride="2x2"),
            layer("result", "output", "pool"),
        ]
    )
    array = pixels(8, 8) + 0.1
    array[0, 0, 0, 0] = -1
    made = opened(
        graph, runtime_registry, Weights(), replace(PLAIN, engine="gpu" if device == "cuda" else "plain", device=device),
        array=array,
    )  # fmt: skip
    for _ in range(2):
        assert list(made.run().hidden) == ([] if device == "cuda" else ["log"])
    made.set_input("image", pixels(8, 8) + 0.1, is_image=True)
    assert not made.run().hidden
    made.set_input("image", array, is_image=True)
    assert not made.run([Source("log")]).hidden  # it is not hidden


def test_parts_and_their_digests(runtime_registry, record):
    """What is compiled again, and what is run again, if one thing changes."""
    made = opened(branches(), runtime_registry)

    def prints(session, *capture):
        return {step.part.layers: found for step, found in session.planned([Source(c) for c in capture])[1].items()}

    first = ("first", "second")
    base = prints(made)[first]
    assert made.planned(())[0] is made.plan()
    captured = prints(made, "first")[first]
    assert (captured.group == base.group, captured.key == base.key, captured.form == base.form) == (True, False, False)
    made.set_weights(weights_for(*ALL, seed=3))
    other = prints(made)[first]
    assert (other.group == base.group, other.key == base.key, other.form == base.form) == (False, False, True)
    for options in (
        replace(PLAIN, threads=2), replace(PLAIN, layout="nhwc"), replace(PLAIN, precision="fp16"),
    ):  # fmt: skip
        found = prints(opened(branches(), runtime_registry, options=options))[first]
        assert not {*base} & {*found}
    larger = prints(opened(branches(), runtime_registry, array=pixels(8, 6)))[first]
    assert not {*base} & {*larger}
    shared = Graph([x if x.name != "second" else replace(x, weights_of="first") for x in branches()])
    assert not {*base} & {*prints(opened(shared, runtime_registry))[first]}
    with_format = opened(branches(), runtime_registry, options=replace(PLAIN, formats=(("third", "int8"),)))
    separate = prints(with_format)
    assert list(separate) == [("first",), ("second",), ("third",)]
    with_format.set_formats({"third": "int4"})
    found = prints(with_format)
    assert [found[key] == separate[key] for key in separate] == [True, True, False]


def test_the_training_branch_does_not_run(runtime_registry, record):
    made = opened(branches(), runtime_registry)
    assert made.output_layers() == ("result",)
    assert (
        said(lambda: opened(Graph([layer("image", "input", dims="6x4x3")]), runtime_registry, Weights()).run())[0][0]
        == "no-output"
    )
    assert [type(step) is PartStep for step in made.plan().steps] == [True, False, True, False]
    assert isinstance(made.inference, Inference)


def test_compiled_parts_are_kept_for_a_while(runtime_registry, record):
    made = opened(branches(), runtime_registry)
    sizes = [(4, 6), (6, 6), (8, 6), (10, 6)]
    for size in (*sizes, *sizes[2:]):
        made.set_input("image", pixels(*size), is_image=True)
        made.run()
    assert len(record.compiled) == 2 * len(sizes)  # two parts, once for each size
    made.set_input("image", pixels(*sizes[0]), is_image=True)
    made.run()
    assert len(record.compiled) == 2 * len(sizes) + 2  # the first ones were dropped
    made.invalidate()
    assert ran(made.run()) == ["first", "noise", "third", "mix"]
    assert len(record.compiled) == 2 * len(sizes) + 2


def test_parts_for_any_weights_are_compiled_once(runtime_registry, record):
    made = opened(branches(), runtime_registry, options=replace(PLAIN, weights_as_inputs=True))
    made.run()
    assert all(isinstance(ready._compiled, PlainForWeights) for ready in made._compiled.values())
    for seed in range(4):
        made.set_weights(weights_for(*ALL, seed=seed))
        made.run()
        same_as_new(made, runtime_registry)
    mine = made.engine.engine.record.compiled
    assert len(mine) == 2 + 2 * 4  # the new sessions compile theirs


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("fixed", ["first", "third"])
def test_parts_with_their_weights_inside_are_compiled_for_each_of_them(runtime_registry, record, fixed, replaced):
    """An engine can have some parts for all weights and others for one: these are used again with equal weights only."""
    record.fixed = {fixed}
    record.refused = {fixed} if replaced else set()
    made = opened(branches(), runtime_registry, options=replace(PLAIN, weights_as_inputs=True))
    sets = [weights_for(*ALL, seed=seed) for seed in range(3)]
    compiled = 0
    for turn, number in enumerate((0, 1, 2, 1, 0, 0)):
        made.set_weights(sets[number])
        made.invalidate()
        record.clear()
        made.run()
        compiled += len(record.compiled)
        assert [layers[0] for _, layers, _ in record.compiled] == (["first", "third"] if not turn else [fixed])[
            : len(record.compiled)
        ]
        assert bool(record.compiled) == (turn < 3), turn
        same_as_new(made, runtime_registry)
    assert compiled == 2 + 2


# --- captures ----------------------------------------------------------------------------------------------------


def deep(count=8) -> Graph:
    return Graph(
        [
            layer("image", "input", dims="6x4x3"),
            *(conv(f"c{i}", f"c{i - 1}" if i else "image") for i in range(count)),
            layer("result", "output", f"c{count - 1}"),
        ]
    )


NAMES = tuple(f"c{i}" for i in range(8))
SIZE = 4 * 3 * 4 * 6  # bytes of a tensor


@pytest.mark.parametrize(
    ("kept", "groups"), [(1 << 20, [NAMES]), (8 * SIZE, [NAMES[i : i + 2] for i in range(0, 8, 2)])]
)
def test_the_neighbors_of_a_captured_tensor_are_computed_with_it(runtime_registry, record, kept, groups):
    made = opened(
        deep(),
        runtime_registry,
        weights_for(*NAMES),
        keep_bytes=kept * (8 if kept < 1 << 20 else 1) // (8 if kept < 1 << 20 else 1),
    )
    before = made.run().outputs["result"]
    record.clear()
    group = next(g for g in groups if "c2" in g)
    first = made.run([Source("c2")])
    ((_, _, wanted),) = record.ran
    assert set(wanted) == {*group, "c7"}
    assert wanted[0] == "c7" or "c7" in group
    assert first.outputs["result"] is before
    for name in group:
        result = made.run([Source(name)])
        assert ran(result) == []
        assert result.outputs["result"] is before
    assert len(record.ran) == 1
    same_as_new(made, runtime_registry, [Source(group[0])])


def test_a_batch_counts_in_the_memory_of_neighbors(runtime_registry, record):
    made = opened(deep(), runtime_registry, weights_for(*NAMES), array=pixels(4, 6, batch=3), keep_bytes=24 * SIZE)
    made.run()
    record.clear()
    made.run([Source("c2")])
    assert set(record.ran[0][2]) == {"c2", "c3", "c7"}


def test_neighbors_that_change_bits_are_left_out(runtime_registry, record):
    record.disturb = 3
    made = opened(deep(), runtime_registry, weights_for(*NAMES))
    before = made.run().outputs["result"]
    record.clear()
    result = made.run([Source("c2")])
    assert [set(wanted) for _, _, wanted in record.ran] == [set(NAMES), {"c2", "c7"}] or len(record.ran) <= 3
    np.testing.assert_array_equal(result.outputs["result"], before)
    count = len(record.ran)
    assert len(made.differs) == count - 1
    made.run([Source("c3")])
    made.set_input("image", pixels(4, 6, seed=4), is_image=True)
    made.run()
    record.clear()
    made.run([Source("c2")])
    assert [set(wanted) for _, _, wanted in record.ran] == [{"c2", "c7"}]  # it is not tried again


def test_captures_while_values_change_run_once_with_the_outputs(runtime_registry, record):
    made = opened(deep(), runtime_registry, weights_for(*NAMES))
    for seed in range(3):
        made.set_input("image", pixels(4, 6, seed=seed), is_image=True)
        record.clear()
        made.run([Source("c2")])
        assert [set(wanted) for _, _, wanted in record.ran] == [{"c2", "c7"}]
    result = made.run()
    assert ran(result) == []
    assert len(record.ran) == 1


@pytest.mark.parametrize("tile", [8, 16])
def test_a_run_in_tiles_reports_each_tile(runtime_registry, record, tile):
    array = pixels(20, 24)
    made = opened(branches(), runtime_registry, array=array, options=replace(PLAIN, tile=tile))
    reported = []
    result = made.run(progress=lambda *args: reported.append(args))
    whole = opened(branches(), runtime_registry, array=array).run()
    np.testing.assert_allclose(result.outputs["result"], whole.outputs["result"], rtol=1e-5, atol=1e-6)
    rows, columns = {8: (3, 3), 16: (2, 2)}[tile]
    total = rows * columns
    for name in ("first ... second", "third"):
        mine = [entry for entry in reported if entry[2].startswith(f"{name}, tile")]
        assert mine == [(i, total, f"{name}, tile {i + 1} of {total}") for i in range(total)]
    assert result.note == f"run in {total} tiles of up to {tile} x {tile} pixels"
    assert ran(made.run()) == []
    interrupt = Interrupt()
    made.invalidate()
    with pytest.raises(InterruptedRunError):
        made.run(progress=lambda done, total, text: interrupt.ask() if "tile 2" in text else None, interrupt=interrupt)


def test_padding_is_that_of_an_input_above(runtime_registry, record):
    graph = Graph(
        [
            layer("image", "input", dims="6x4x3", tiling="4"),
            layer("other", "input", dims="8x8x3", tiling="16"),
            layer("whole", "input", dims="8x8x3"),
            *(conv(f"c {name}", name) for name in ("image", "other", "whole")),
            *(layer(f"r {name}", "output", f"c {name}") for name in ("image", "other", "whole")),
        ]
    )
    made = Session(graph, runtime_registry, weights_for("c image", "c other", "c whole"), PLAIN)
    sizes = {"image": (5, 6), "other": (7, 9), "whole": (8, 8)}
    for name, size in sizes.items():
        made.set_input(name, pixels(*size), is_image=True)
    assert made.padding(Source("c image")) == ((5, 6), (8, 8))
    assert made.padding(Source("image")) == ((5, 6), (8, 8))
    assert made.padding(Source("r other")) == ((7, 9), (16, 16))
    assert made.padding(Source("c whole")) is None
    array = np.zeros((1, 3, 16, 16), np.float32)
    assert made.unpadded(Source("c other"), array).shape == (1, 3, 7, 9)
    assert made.unpadded(Source("c whole"), array) is array
    result = made.run([Source(f"c {name}") for name in sizes])
    for name, size in sizes.items():
        assert result.outputs[f"r {name}"].shape[2:] == size
        padded = result.captures[Source(f"c {name}")].shape[2:]
        assert padded == {"image": (8, 8), "other": (16, 16), "whole": (8, 8)}[name]


def test_analysis_layers_before_outputs_see_images_without_padding(runtime_registry, record):
    made = opened(branches(tiling="4"), runtime_registry, array=pixels(5, 6))
    result = made.run([Source("mix"), Source("third"), Source("noise")])
    assert result.captures[Source("mix")].shape[2:] == result.outputs["result"].shape[2:] == (5, 6)
    assert result.captures[Source("third")].shape[2:] == result.captures[Source("noise")].shape[2:] == (8, 8)
    made.set_input("image", pixels(6, 7), is_image=True)  # padded to the same size
    assert made.run().outputs["result"].shape[2:] == (6, 7)
    same_as_new(made, runtime_registry, [Source("mix")])


def test_other_wrong_parameters_of_a_layer_do_not_refuse_one(runtime_registry, record):
    graph = Graph([x if x.name != "noise" else replace(x, params={**x.params, "seed": "-3"}) for x in branches()])
    made = opened(graph, runtime_registry)
    made.set_param("noise", "scale", "0.3")
    assert made.graph["noise"].params["scale"] == "0.3"
    with pytest.raises(DiagnosticError, match="scale"):
        made.set_param("noise", "scale", "much")
    made.set_param("noise", "seed", "3")
    same_as_new(made, runtime_registry)


def test_an_instance_can_become_one_of_another_template(runtime_registry, record):
    bodies = {
        name: (layer("x", "template_input"), conv(inner, "x"), layer("y", "template_output", inner))
        for name, inner in (("block", "inner"), ("other", "more"))
    }
    graph = Graph(list(block()), templates=[Template(name, body) for name, body in bodies.items()])
    weights = weights_for("one.inner", "two.inner", "one.more", "two.more", "first")
    made = opened(graph, runtime_registry, weights)
    made.run()
    made.set_param("one", "template", "other")
    assert {"one.more", "two.inner"} <= set(made.inference.graph.layers)
    assert "one.inner" not in made.inference.graph
    same_as_new(made, runtime_registry)


def test_the_size_of_fed_data_stays_that_of_the_input(runtime_registry, record):
    made = opened(branches(), runtime_registry, array=pixels(8, 10))
    made.set_param("image", "scale", "2.0")
    assert made.inference.states["first"].outputs[0].shape[2:] == (8, 10)
    made.set_param("image", "dims", "9x9x3")
    assert made.inference.states["first"].outputs[0].shape[2:] == (8, 10)
    assert made.graph["image"].params["dims"] == "9x9x3"
    same_as_new(made, runtime_registry)
    made.set_param("image", "dims", "9x9x1")
    assert said(made.run)[0][0] in ("input-channels", "shape-mismatch", "weight-shape")
    assert said(lambda: made.fed_input("image"))[0][0] == "input-channels"


def test_layers_that_are_gone_are_not_computed(runtime_registry, record):
    made = opened(Graph([*branches(), layer("more", "output", "third")]), runtime_registry)
    assert list(made.run().outputs) == ["more", "result"]
    made.set_graph(branches())
    assert list(made.run().outputs) == ["result"]
    assert "more" not in made.inference.graph


def test_a_parameter_of_an_analysis_layer_that_changes_its_shape_is_a_change_of_structure(runtime_registry, record):
    graph = Graph(
        [*branches(), layer("shares", "histogram", "first", ranges="8"), layer("all", "output", "shares:shares")]
    )
    made = opened(graph, runtime_registry)
    made.run()
    structure = made.structure
    made.set_param("shares", "high", "2.0")
    assert made.structure == structure
    made.set_param("shares", "ranges", "9")
    assert made.structure == structure + 1


def test_the_estimate_counts_captured_branches(runtime_registry, record):
    made = opened(Graph([*branches(), conv("aside", "third")]), runtime_registry, weights_for(*ALL, "aside"))
    made.run()
    assert made.expected() == 0.0
    made.set_param("noise", "seed", "4")
    assert made.expected([Source("aside")]) is None
    made.run([Source("aside")])
    made.set_param("noise", "seed", "5")
    assert made.expected([Source("aside")]) > 0


def test_a_layer_of_several_dropped_tensors_is_named_once(runtime_registry, record):
    graph = Graph([*branches(), layer("values", "statistics", "first"), layer("all", "output", "values")])
    made = opened(graph, runtime_registry, keep_bytes=1)
    names = made.run([Source("values")]).note.partition("computes ")[2].removesuffix(" again").split(", ")
    assert sorted(names) == sorted({"first", "second", "values", "noise", "third", "mix"})


def test_layers_that_share_weights_run_again_with_them(runtime_registry, record):
    shared = replace(conv("third", "noise"), weights_of="first")
    graph = Graph(
        [
            layer("image", "input", dims="6x4x3"),
            conv("first", "image"),
            layer("noise", "noise", "image", scale="0.1", seed="3"),
            shared,
            layer("one", "output", "first"),
            layer("two", "output", "third"),
        ]
    )
    weights = weights_for("first", "third")
    made = opened(graph, runtime_registry, weights)
    made.run()
    made.set_weights(changed(weights, "first"))
    assert ran(made.run()) == ["first", "third"]
    made.set_weights(changed(made.weights, "third"))
    assert ran(made.run()) == []


def test_the_compiled_parts_used_last_are_kept(runtime_registry, record):
    made = opened(branches(), runtime_registry, array=False)

    def compiled(height) -> bool:
        before = len(record.compiled)
        made.set_input("image", pixels(height, 6), is_image=True)
        made.run()
        return len(record.compiled) > before

    assert [compiled(height) for height in (2, 4, 6, 2, 4, 6)] == [True] * 3 + [False] * 3
    assert [compiled(height) for height in (2, 8, 2, 6, 4)] == [False, True, False, False, True]


def test_captures_in_tiles_run_in_tiles(runtime_registry, record):
    made = opened(deep(), runtime_registry, weights_for(*NAMES), array=pixels(40, 40), options=replace(PLAIN, tile=16))
    made.run()
    record.clear()
    result = made.run([Source("c2")])
    assert "run in 9 tiles" in result.note
    assert len(record.ran) == 9
    assert {wanted for _, _, wanted in record.ran} == {("c2", "c7")}


def test_the_batch_decides_whether_a_run_needs_tiles(runtime_registry, record):
    notes = []
    for batch in (1, 4):
        size = 4 * 3 * 128 * 128
        made = opened(
            deep(2), runtime_registry, weights_for(*NAMES), array=pixels(128, 128, batch=batch), memory=int(2.6 * 2.5 * size)
        )  # fmt: skip
        result = made.run()
        whole = opened(deep(2), runtime_registry, weights_for(*NAMES), array=pixels(128, 128, batch=batch)).run()
        np.testing.assert_allclose(result.outputs["result"], whole.outputs["result"], rtol=1e-5, atol=1e-6)
        notes.append("tiles" in result.note)
    assert notes == [False, True]


def with_logarithm() -> Graph:
    return Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("log", "unary", "image", function="log"),
            layer("pool", "pooling", "log", operation="max", size="2x2", stride="2x2"),
            layer("result", "output", "pool"),
            layer("other", "input", dims="8x8x3"),
            layer("noise", "noise", "other"),
            layer("noisy", "output", "noise"),
        ]
    )


def test_hidden_values_belong_to_the_step_that_computed_them(runtime_registry, record):
    made = opened(with_logarithm(), runtime_registry, Weights(), array=pixels(8, 8) - 0.5)
    made.set_input("other", pixels(8, 8), is_image=True)
    assert list(made.run().hidden) == ["log"]
    assert made.results.nbytes == 4 * 3 * (4 * 4 + 8 * 8)  # checked tensors are not kept
    made.set_input("image", pixels(8, 8) + 0.5, is_image=True)
    result = made.run()
    assert (ran(result), dict(result.hidden)) == (["log"], {})
    made.set_input("image", pixels(8, 8) - 0.5, is_image=True)
    made.set_input("other", pixels(8, 8, seed=1), is_image=True)
    assert list(made.run().hidden) == ["log"]


def test_tiles_end_at_an_interrupt(runtime_registry, record):
    made = opened(deep(), runtime_registry, weights_for(*NAMES), array=pixels(40, 40), options=replace(PLAIN, tile=16))
    interrupt, reported = Interrupt(), []

    def progress(done, total, text):
        reported.append(text)
        if "tile 2" in text:
            interrupt.ask()

    with pytest.raises(InterruptedRunError):
        made.run(progress=progress, interrupt=interrupt)
    assert reported[-1].endswith("tile 2 of 9")


def test_the_time_of_a_run_with_neighbors_is_that_of_its_step(runtime_registry, record, monkeypatch):
    clock = iter(np.arange(0, 1000, 0.25))
    made = opened(deep(), runtime_registry, weights_for(*NAMES))
    made.run()
    monkeypatch.setattr(module, "perf_counter", lambda: float(next(clock)))
    (step,) = made.run([Source("c2")]).steps
    assert (step.milliseconds, step.cached, step.engine) == (250.0, False, "plain")
    (step,) = made.run([Source("c3")]).steps
    assert (step.milliseconds, step.cached) == (0.0, True)


def folding() -> Graph:
    """Convolutions, the second of which an engine may join with the activation behind it."""
    return Graph(
        [
            layer("image", "input", dims="6x4x3"),
            conv("c0", "image"),
            conv("c1", "c0"),
            layer("act", "activation", "c1", RELU),
            conv("c2", "act"),
            layer("result", "output", "c2"),
        ]
    )


def test_a_run_with_folded_neighbors_that_is_kept_takes_no_time(runtime_registry, record, monkeypatch):
    """Its bits may differ from those of the tensor alone, so it is found by its own key."""
    clock = iter(np.arange(0, 1000, 0.25))
    made = opened(folding(), runtime_registry, weights_for("c0", "c1", "c2"))
    made.run()
    monkeypatch.setattr(module, "perf_counter", lambda: float(next(clock)))
    for wanted in ([(250.0, False)], [(0.0, True)], [(0.0, True)]):
        found = made.run([Source("c0")])
        assert [(step.milliseconds, step.cached) for step in found.steps] == wanted
    assert len(record.ran) == 2


@pytest.mark.parametrize(("inspected", "tries"), [("c0", 2), ("c1", 1)])
def test_tensors_that_engines_fold_are_left_out_at_the_second_attempt(runtime_registry, record, inspected, tries):
    made = opened(folding(), runtime_registry, weights_for("c0", "c1", "c2"))
    made.run()
    record.disturb = 4
    record.clear()
    made.run([Source(inspected)])
    wanted = [set(names) for _, _, names in record.ran]
    everything = {"c0", "c1", "act", "c2"}
    assert wanted[0] == everything
    assert wanted[1:] == ([{"c0", "act", "c2"}] if tries == 2 else [{"c1", "c2"}])
