"""The incremental session: only what changed runs again, and the numbers are the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runtime_networks import RELU, analysed, layer, pixels, plain_unet, unet, unet_weights

from designer.files.weights import WeightKey, Weights, random_weights, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.operators.api import Operator, TorchMethod
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.checked_engine import CheckedEngine
from designer.runtime.engine_registry import load_engines
from designer.runtime.results import Result, Results
from designer.runtime.session import Session

torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")
torch.set_num_threads(1)

ONE = RunOptions(threads=1)


def session(graph, registry, weights=None, array=None, is_image=True, options=ONE, **kw) -> Session:
    made = Session(graph, registry, weights if weights is not None else unet_weights(), options, **kw)
    made.set_input("image", array if array is not None else pixels(), is_image=is_image)
    return made


def ran(result) -> list[str]:
    """First layers of the steps that were not kept from before."""
    return [step.layers[0] for step in result.steps if not step.cached]


def code_of(call) -> str:
    with pytest.raises(DiagnosticError) as caught:
        call()
    assert caught.value.diagnostics[0].remedy
    return caught.value.diagnostics[0].code


@pytest.mark.parametrize("engine", [engine.name for engine in load_engines(installed=False) if not engine.available()])
def test_the_result_is_that_of_plain_torch_at_the_size_of_the_data(runtime_registry, engine):
    array = pixels(40, 56, batch=2)
    made = session(unet(), runtime_registry, array=array, options=RunOptions(engine=engine, threads=1))
    result = made.run([Source("enc 1")])
    plain = plain_unet(unet_weights())
    np.testing.assert_allclose(result.outputs["result"], plain(array), atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(result.captures[Source("enc 1")], plain(array, "enc 1"), atol=1e-5, rtol=1e-5)
    assert made.inference.states["dec"].outputs[0].shape[2:] == (40, 56)
    assert made.graph["image"].params["dims"] == "32x24x3"  # the user's network is not changed


def test_changing_mix_runs_only_mix(runtime_registry):
    made = session(analysed(), runtime_registry)
    assert ran(made.run()) == ["noise", "enc 1", "mix"]
    assert ran(made.run()) == []
    made.set_param("mix", "amount", "0.25")
    result = made.run()
    assert ran(result) == ["mix"]
    assert [step.milliseconds for step in result.steps if step.cached] == [0.0, 0.0]
    fresh = session(made.graph, runtime_registry)
    np.testing.assert_array_equal(result.outputs["result"], fresh.run().outputs["result"])


def test_going_back_to_an_old_value_runs_nothing(runtime_registry):
    made = session(analysed(), runtime_registry)
    before = made.run().outputs["result"]
    made.set_param("noise", "scale", "0.3")
    assert ran(made.run()) == ["noise", "enc 1", "mix"]
    made.set_param("noise", "scale", "0.1")
    result = made.run()
    assert ran(result) == []
    assert result.outputs["result"] is before


def test_a_layer_parameter_and_a_new_graph(runtime_registry):
    made = session(analysed(), runtime_registry)
    made.run()
    made.set_param("norm", "epsilon", "0.1")
    assert ran(made.run()) == ["enc 1", "mix"]
    made.set_graph(analysed())
    assert ran(made.run()) == []
    moved = analysed().copy()
    from designer.graph.commands import move_layers

    moved.apply(move_layers(moved, {"dec": (160, 160)}))
    made.set_graph(moved)
    assert ran(made.run()) == []
    made.set_graph(unet())
    result = made.run()
    np.testing.assert_allclose(result.outputs["result"], plain_unet(unet_weights())(pixels()), atol=1e-5)


def test_other_weights(runtime_registry):
    made = session(unet(), runtime_registry)
    made.run()
    made.set_weights(unet_weights(note="random weights (seed 0)"))
    result = made.run()
    assert ran(result) == []  # the same numbers
    assert result.weights_note == "random weights (seed 0)"
    made.set_weights(unet_weights(seed=1))
    result = made.run()
    assert ran(result) == ["enc 1"]
    np.testing.assert_allclose(result.outputs["result"], plain_unet(unet_weights(seed=1))(pixels()), atol=1e-5)


def test_invalidate_runs_everything_again(runtime_registry):
    made = session(analysed(), runtime_registry)
    made.run()
    made.invalidate()
    assert ran(made.run()) == ["noise", "enc 1", "mix"]


def test_results_cannot_be_written_to(runtime_registry):
    result = session(analysed(), runtime_registry).run([Source("enc 1"), Source("noise"), Source("image")])
    for array in (*result.outputs.values(), *result.captures.values()):
        assert array.dtype == np.float32
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_the_given_array_may_change_later(runtime_registry):
    array = pixels()
    made = session(unet(), runtime_registry, array=array)
    array[...] = 0
    np.testing.assert_allclose(made.run().outputs["result"], plain_unet(unet_weights())(pixels()), atol=1e-5)


def test_scale_and_shift_are_for_pictures(runtime_registry):
    graph = unet(scale="2.0", shift="-1.0")
    array, plain = pixels(), plain_unet(unet_weights())
    picture = session(graph, runtime_registry, array=array).run([Source("image")])
    np.testing.assert_allclose(picture.captures[Source("image")], array * 2 - 1, atol=1e-6)
    np.testing.assert_allclose(picture.outputs["result"], plain(array * 2 - 1), atol=1e-5)
    tensor = session(graph, runtime_registry, array=array, is_image=False).run()
    np.testing.assert_allclose(tensor.outputs["result"], plain(array), atol=1e-5)


def test_tiling_pads_by_repeating_the_edge_and_crops_back(runtime_registry):
    array = pixels(21, 30)
    result = session(unet(tiling=8), runtime_registry, array=array).run([Source("image"), Source("pool")])
    padded = np.pad(array, ((0, 0), (0, 0), (0, 3), (0, 2)), mode="edge")
    np.testing.assert_array_equal(result.captures[Source("image")], padded)
    assert result.captures[Source("pool")].shape[2:] == (12, 16)  # captures show what the layers really computed
    assert result.outputs["result"].shape == (1, 3, 21, 30)
    np.testing.assert_allclose(result.outputs["result"], plain_unet(unet_weights())(padded)[:, :, :21, :30], atol=1e-5)


def test_a_mix_before_the_output_sees_the_picture_without_padding(runtime_registry):
    array = pixels(21, 30)
    graph = analysed(tiling=8)
    made = session(graph, runtime_registry, array=array)
    made.set_param("mix", "amount", "0.5")
    result = made.run([Source("noise")])
    noisy = result.captures[Source("noise")]
    assert noisy.shape[2:] == (24, 32)
    assert result.outputs["result"].shape[2:] == (21, 30)
    np.testing.assert_array_equal(result.outputs["result"][..., 15:], noisy[:, :, :21, 15:30])


def test_the_padding_of_an_input_is_cropped_only_from_what_depends_on_it(runtime_registry):
    sizes = {"padded": ((6, 6), 8), "whole": ((8, 8), 4), "other": ((10, 6), 4)}
    graph = Graph(
        [
            made
            for name, (_, tiling) in sizes.items()
            for made in (
                layer(name, "input", dims="8x8x3", tiling=tiling),
                layer(f"{name} act", "activation", name, RELU),
                layer(f"{name} result", "output", f"{name} act"),
            )
        ]
    )
    made = Session(graph, runtime_registry, Weights(), ONE)
    for name, (size, _) in sizes.items():
        made.set_input(name, pixels(*size), is_image=True)
    outputs = made.run().outputs
    for name, (size, _) in sizes.items():
        np.testing.assert_array_equal(outputs[f"{name} result"], pixels(*size))


def test_outputs_of_another_size_are_cropped_in_proportion(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3", tiling="8"),
            layer("up", "upsample", "image", factor="3x3", method="nearest"),
            layer("large", "output", "up"),
            layer("pool", "pooling", "image", operation="average", size="2x2", stride="2x2"),
            layer("small", "output", "pool"),
        ]
    )
    outputs = session(graph, runtime_registry, Weights(), pixels(10, 14)).run().outputs
    assert outputs["large"].shape[2:] == (30, 42)
    assert outputs["small"].shape[2:] == (5, 7)


def test_what_is_too_large_to_keep_is_told(runtime_registry):
    made = session(analysed(), runtime_registry, keep_bytes=4 * 3 * 24 * 32)
    result = made.run()
    assert "not kept" in result.note
    assert "noise" in result.note
    assert "noise" in {name for step in result.steps if step.dropped for name in step.layers}
    assert not all(step.dropped for step in result.steps)
    again = made.run()
    assert ran(again) != []
    np.testing.assert_array_equal(again.outputs["result"], result.outputs["result"])
    assert session(analysed(), runtime_registry).run().note == ""


def test_a_step_of_several_layers_is_dropped_with_the_result_of_one(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="24x32x3"),
            layer("first", "convolution", "image", features="2", kernel="1x1"),
            layer("last", "convolution", "first", features="2", kernel="1x1"),
            layer("result", "output", "last"),
        ]
    )
    weights = random_weights(required_weights(Inference(graph, runtime_registry)), seed=1)
    made = session(graph, runtime_registry, weights, keep_bytes=100)
    (step,) = made.run().steps
    assert step.layers == ("first", "last")
    assert step.dropped
    assert not made.run().steps[0].cached
    (kept,) = session(graph, runtime_registry, weights).run().steps
    assert not kept.dropped


def test_old_results_go_first_and_silently(runtime_registry):
    made = session(analysed(), runtime_registry, keep_bytes=4 * 3 * 24 * 32 * 4)
    for amount in ("0.1", "0.2", "0.3", "0.4"):
        made.set_param("mix", "amount", amount)
        assert made.run().note == ""
    made.set_param("mix", "amount", "0.5")
    assert ran(made.run()) == ["mix"]


def test_results_of_exactly_the_limit_are_kept():
    array = np.zeros(100, np.float32)
    for over in (0, 1):
        results = Results(2 * array.nbytes - over)
        for name in ("old", "fresh"):
            results.put(name, Result({Source(name): array}, {}))
        assert results.trim({"fresh"}) == []
        assert (results.get("old") is None) == bool(over)
        assert results.get("fresh") is not None


def test_few_old_results_are_kept(runtime_registry):
    made = session(analysed(), runtime_registry)
    for number in range(40):
        made.set_param("mix", "amount", f"{number / 100:.2f}")
        made.run()
    made.set_param("mix", "amount", "0.35")
    assert ran(made.run()) == []
    made.set_param("mix", "amount", "0.05")
    assert ran(made.run()) == ["mix"]


def test_progress_is_told_step_by_step(runtime_registry):
    reported = []
    session(analysed(), runtime_registry).run(progress=lambda done, total, text: reported.append((done, total, text)))
    assert reported == [(0, 3, "noise"), (1, 3, "enc 1 ... out"), (2, 3, "mix"), (3, 3, "")]


def test_what_a_person_may_get_wrong(runtime_registry):
    graph = analysed()
    made = Session(graph, runtime_registry, unet_weights(), ONE)
    assert code_of(made.run) == "no-input"
    assert code_of(lambda: made.set_input("mix", pixels(), is_image=True)) == "no-such-input"
    assert code_of(lambda: made.set_input("image", pixels(channels=4), is_image=True)) == "input-channels"
    assert code_of(lambda: made.set_input("image", pixels()[0], is_image=True)) == "input-shape"
    assert code_of(lambda: made.set_input("image", pixels()[:0], is_image=True)) == "input-shape"
    assert code_of(lambda: made.set_param("mix", "amount", "much")) == "bad-parameter"
    assert made.graph["mix"].params["amount"] == "0.5"
    assert code_of(lambda: made.set_param("nobody", "amount", "0.5")) == "no-such-layer"
    made.set_input("image", pixels(), is_image=True)
    assert code_of(lambda: made.run([Source("nobody")])) == "no-such-layer"
    assert code_of(lambda: Session(Graph(), runtime_registry, Weights(), ONE).run()) == "no-output"
    made.set_weights(Weights())
    assert code_of(made.run) == "missing-weight"
    made.set_weights(unet_weights())
    assert made.run().outputs["result"].shape == (1, 3, 24, 32)  # and it works again


def test_an_input_that_is_gone_loses_its_data(runtime_registry):
    made = session(unet(), runtime_registry)
    made.run()
    graph = unet()
    from designer.graph.commands import rename_layer

    graph.apply(rename_layer(graph, "image", "picture"))
    made.set_graph(graph)
    assert code_of(made.run) == "no-input"
    made.set_input("picture", pixels(), is_image=True)
    made.run()


def test_data_of_an_input_is_not_that_of_another_layer_with_its_name(runtime_registry):
    made = session(analysed(), runtime_registry)
    layers = [
        layer("picture", "input", dims="32x24x3"),
        layer("image", "activation", "picture", RELU),
        layer("result", "output", "image"),
    ]
    made.set_graph(Graph(layers))
    assert made.fed_layers() == ()
    made.set_input("picture", pixels(), is_image=True)
    np.testing.assert_array_equal(made.run().outputs["result"], pixels())


def test_a_broken_recipe_names_the_layer(runtime_registry):
    made = session(analysed(), runtime_registry)
    made.set_param("mix", "selection", "custom")
    made.set_param("mix", "recipe", "a +")
    with pytest.raises(DiagnosticError) as caught:
        made.run()
    assert caught.value.diagnostics[0].layer == "mix"


def test_two_inputs(runtime_registry):
    graph = Graph(
        [
            layer("left", "input", dims="8x8x3"),
            layer("right", "input", dims="8x8x3"),
            layer("sum", "element_wise", "left,right", RELU, operation="subtract"),
            layer("result", "output", "sum"),
        ]
    )
    made = Session(graph, runtime_registry, Weights(), ONE)
    made.set_input("left", pixels(6, 6, seed=1), is_image=True)
    made.set_input("right", pixels(6, 6, seed=2), is_image=True)
    expected = np.maximum(pixels(6, 6, seed=1) - pixels(6, 6, seed=2), 0)
    np.testing.assert_allclose(made.run().outputs["result"], expected, atol=1e-6)
    made.set_input("right", pixels(4, 6), is_image=True)  # sizes do not fit any more: a finding, not a crash
    assert code_of(made.run) in ("shape-mismatch", "engine-failed")


class OnlyInTorch(Operator, type="test_only_torch"):
    def infer(self, inputs):
        return inputs[0]

    def torch(self, inputs):
        return TorchMethod("flip", args=(3,))


@pytest.mark.parametrize("engine", [engine.name for engine in load_engines(installed=False) if not engine.available()])
def test_inputs_of_one_shape_have_their_own_values(runtime_registry, engine):
    arrays = {f"image_{number}": pixels(16, 16, seed=number) for number in range(4)}
    graph = Graph(
        [
            *(layer(name, "input", dims="16x16x3") for name in arrays),
            layer("together", "concatenation", ",".join(arrays), axis="1"),
            layer("result", "output", "together"),
        ]
    )
    made = Session(graph, runtime_registry, Weights(), RunOptions(engine=engine, threads=1))
    for name, array in arrays.items():
        made.set_input(name, array, is_image=False)
    np.testing.assert_array_equal(made.run().outputs["result"], np.concatenate(list(arrays.values()), 1))


def test_torch_steps_in_where_onnx_has_no_word(runtime_registry):
    registry = load(entry_points=False)
    registry.register(OnlyInTorch)
    graph = Graph(
        [
            layer("image", "input", dims="8x8x3"),
            layer("odd", "test_only_torch", "image"),
            layer("noise", "noise", "odd", scale="0.0"),
            layer("after", "activation", "noise", RELU),
            layer("result", "output", "after"),
        ]
    )
    made = session(graph, registry, Weights())
    result = made.run()
    assert [step.engine for step in result.steps] == ["torch", "numpy", "onnxruntime"]
    assert "'odd'" in result.note
    np.testing.assert_allclose(result.outputs["result"], pixels()[..., ::-1], atol=1e-6)
    again = made.run()
    assert ran(again) == []
    assert again.note == result.note


@pytest.fixture
def compilations(monkeypatch) -> list[tuple[str, ...]]:
    """The layers of every part that an engine compiles."""
    made: list[tuple[str, ...]] = []
    real = CheckedEngine.compile

    def compile_part(self, part, wanted):
        made.append(part.layers)
        return real(self, part, wanted)

    monkeypatch.setattr(CheckedEngine, "compile", compile_part)
    return made


def test_parts_are_compiled_once(runtime_registry, compilations):
    made = session(analysed(), runtime_registry)
    epsilons = [f"0.0{number}" for number in range(1, 9)]
    for count, epsilon in enumerate(epsilons, 1):
        made.set_param("norm", "epsilon", epsilon)
        made.run()
        made.set_param("mix", "amount", f"0.{count}")
        made.set_input("image", pixels(seed=count), is_image=True)
        made.run()
        made.invalidate()
        made.run()
        assert len(compilations) == count
    for epsilon in epsilons[-2:]:  # those of late are still there
        made.set_param("norm", "epsilon", epsilon)
        made.run()
    assert len(compilations) == len(epsilons)
    made.set_param("norm", "epsilon", epsilons[0])
    made.run()
    assert len(compilations) == len(epsilons) + 1


def two_inputs(*batches: str, size: str = "6x4x3") -> Graph:
    inputs = [layer(name, "input", dims=size, batch=batch) for name, batch in zip("ab", batches, strict=True)]
    return Graph([*inputs, layer("sum", "element_wise", "a,b", operation="add"), layer("result", "output", "sum")])


@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
@pytest.mark.parametrize("counts", [(1, 3), (3, 1), (2, 3)])
def test_inputs_with_batches_that_do_not_match_are_named(runtime_registry, engine, counts):
    made = Session(two_inputs("0", "0"), runtime_registry, Weights(), RunOptions(engine, threads=1))
    for name, count in zip("ab", counts, strict=True):
        made.set_input(name, np.full((count, 3, 4, 6), count, np.float32), is_image=False)
    with pytest.raises(DiagnosticError) as caught:
        made.run()
    (found,) = caught.value.diagnostics
    text = f"the inputs 'a' and 'b' have batches of {counts[0]} and {counts[1]}, which must be equal"
    assert (found.code, found.layer, found.message) == ("input-shape", "b", text)
    made.set_input("b", np.ones((counts[0], 3, 4, 6), np.float32), is_image=False)
    assert made.run().outputs["result"].shape == (counts[0], 3, 4, 6)


@pytest.mark.parametrize(("batches", "counts"), [(("1", "0"), (1, 3)), (("0", "1"), (3, 1)), (("2", "2"), (2, 2))])
def test_a_batch_that_is_set_need_not_be_that_of_the_data(runtime_registry, batches, counts):
    made = Session(two_inputs(*batches), runtime_registry, Weights(), ONE)
    for name, count in zip("ab", counts, strict=True):
        made.set_input(name, np.ones((count, 3, 4, 6), np.float32), is_image=False)
    np.testing.assert_array_equal(made.run().outputs["result"], np.full((max(counts), 3, 4, 6), 2))


def test_an_input_of_any_shape_reads_numpy_files_of_its_own_type_only(runtime_registry, tmp_path):
    graph = Graph(
        [
            layer("ids", "tensor_input", shape="3", batch="true", dtype="int64"),
            layer("same", "identity", "ids"),
            layer("result", "output", "same"),
        ]
    )
    made = Session(graph, runtime_registry, Weights(), ONE)
    values = np.array([[3, 2**40 + 1, -1], [0, 5, 7]])  # FP32 does not have the second number
    np.save(tmp_path / "ids.npy", values)
    made.set_input_file("ids", tmp_path / "ids.npy")
    result = made.run().outputs["result"]
    assert result.dtype == np.int64
    np.testing.assert_array_equal(result, values)
    assert code_of(lambda: made.set_input_file("ids", tmp_path / "a.png")) == "unknown-format"
    np.save(tmp_path / "flat.npy", values[0])
    assert code_of(lambda: made.set_input_file("ids", tmp_path / "flat.npy")) == "input-shape"
    np.testing.assert_array_equal(made.run().outputs["result"], values)  # a refusal changes nothing


def late_and_early() -> tuple[Graph, Graph]:
    """Mix before the output, where it sees the image without padding, and before a layer, where it sees all of it."""
    late = analysed(tiling=8)
    after = layer("after", "convolution", "mix", features=3, kernel="1x1")
    early = Graph([item for item in late if item.name != "result"])
    return late, Graph([*early, after, layer("result", "output", "after")])


@pytest.mark.parametrize("order", [(0, 1, 0), (1, 0, 1)])
def test_an_analysis_layer_becomes_late_or_early_on_padded_inputs(runtime_registry, compilations, order):
    rng = np.random.default_rng(5)
    tensors = dict(unet_weights().tensors)
    tensors[WeightKey("after", "kernel")] = rng.normal(size=(3, 3, 1, 1)).astype(np.float32)
    tensors[WeightKey("after", "bias")] = np.zeros(3, np.float32)
    graphs, weights, array = late_and_early(), Weights(tensors), pixels(21, 30)
    fresh = [session(graph, runtime_registry, weights, array).run([Source("mix")]) for graph in graphs]
    compilations.clear()
    made = session(graphs[order[0]], runtime_registry, weights, array)
    for which in order:
        made.set_graph(graphs[which])
        result = made.run([Source("mix")])
        assert result.captures[Source("mix")].shape[2:] == ((21, 30), (24, 32))[which]
        np.testing.assert_array_equal(result.captures[Source("mix")], fresh[which].captures[Source("mix")])
        np.testing.assert_array_equal(result.outputs["result"], fresh[which].outputs["result"])
    assert sorted(map(len, compilations)) == [1, 12]  # the layer after Mix, and the U-Net, once each


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("mix"), st.just("amount"), st.sampled_from(["0.1", "0.5", "0.9"])),
        st.tuples(st.just("mix"), st.just("selection"), st.sampled_from(["v_split", "blend", "difference"])),
        st.tuples(st.just("noise"), st.just("scale"), st.sampled_from(["0.1", "0.2"])),
        st.tuples(st.just("norm"), st.just("epsilon"), st.sampled_from(["0.00001", "0.1"])),
        st.tuples(st.just("graph"), st.just(""), st.sampled_from(["unet", "analysed", "two outputs", "slim", "early"])),
        st.tuples(st.just("size"), st.just(""), st.sampled_from(["24x32", "19x27"])),
        st.tuples(st.just("capture"), st.just(""), st.sampled_from(["", "enc 1", "enc_2", "plus", "noise"])),
    ),
    min_size=1,
    max_size=6,
)


GRAPHS = {
    "unet": unet(tiling=8),
    "analysed": analysed(tiling=8),
    "two outputs": Graph([*analysed(tiling=8), layer("second", "output", "plus")]),
    "slim": analysed(tiling=4),
    "early": Graph([*analysed(tiling=8), layer("seen", "activation", "mix", RELU), layer("shown", "output", "seen")]),
}


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES)
def test_any_history_gives_the_bits_of_a_full_run(runtime_registry, changes):
    made = session(analysed(tiling=8), runtime_registry)
    array, capture = pixels(), []
    for name, param, text in changes:
        if name == "size":
            height, width = (int(n) for n in text.split("x"))
            array = pixels(height, width)
            made.set_input("image", array, is_image=True)
        elif name == "graph":
            made.set_graph(GRAPHS[text])
            capture = [source for source in capture if source.layer in made.graph]
        elif name == "capture" and (not text or text in made.graph):
            capture = [Source(text)] if text else []
        elif name in made.graph:
            made.set_param(name, param, text)
        made.run(capture)
    result = made.run(capture)
    fresh = session(made.graph, runtime_registry, array=array).run(capture)
    assert result.outputs.keys() == fresh.outputs.keys()
    for name in fresh.outputs:
        np.testing.assert_array_equal(result.outputs[name], fresh.outputs[name])
    for source in capture:
        np.testing.assert_array_equal(result.captures[source], fresh.captures[source])


def test_weights_are_compared_by_content(runtime_registry):
    made = session(unet(), runtime_registry)
    made.run()
    tensors = dict(unet_weights().tensors)
    tensors[WeightKey("out", "bias")] = tensors[WeightKey("out", "bias")] + 1
    made.set_weights(Weights(tensors))
    assert ran(made.run()) == ["enc 1"]
