"""Blame: shares sum to the whole error, the operator that differs has it, and computations are found by name."""

from __future__ import annotations

import json

import numpy as np
import pytest
from restoration_networks import restoring_unet, restoring_weights

from app.cli import main as cli
from app.computations import Compared, blame_between, computation_titles, tensors_of
from designer.files.document import save_document
from designer.files.variants import CalibrationRecipe, Variant
from designer.files.weight_files import save_weights
from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Source
from designer.precision.blame import Operator, blame
from designer.precision.computations import EngineComputation
from designer.runtime.api import RunOptions
from designer.runtime.images import write_image
from designer.runtime.session import Session
from exporters.int8 import export_int8
from exporters.onnx import export_onnx

pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")

SIDE = 32
IMAGE = np.random.default_rng(4).random((1, 3, SIDE, SIDE), np.float32)


@pytest.fixture(scope="module")
def network(registry):
    graph = restoring_unet(4, SIDE)
    return graph, registry, restoring_weights(graph, registry)


@pytest.fixture
def files(network, tmp_path):
    graph, _, weights = network
    save_document(graph, tmp_path / "unet.xml")
    save_weights(tmp_path / "weights", weights.tensors)
    write_image(tmp_path / "noise.png", IMAGE)
    return tmp_path


@pytest.fixture
def run(files, monkeypatch, capsys):
    """`layerwright blame` on the document with JSON output; the text of the error if it fails."""

    def call(a: object, b: object, *options: object) -> dict | str:
        arguments = ["blame", files / "unet.xml", "--weights", files / "weights", "--a", a, "--b", b, "--json"]
        arguments += options or ["--input", files / "noise.png"]
        monkeypatch.setattr("sys.argv", ["layerwright", *map(str, arguments)])
        try:
            cli.main()
        except SystemExit as stop:
            if stop.code:
                return capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    return call


def computation(network, weights: Weights | None = None, **options) -> EngineComputation:
    graph, registry, own = network
    session = Session(graph, registry, weights or own, RunOptions(engine="torch", threads=1, **options))
    session.set_input("image", IMAGE, is_image=True)
    return EngineComputation(session)


def test_shares_sum_to_the_error_that_both_computations_have(network):
    ours = computation(network)
    graph, registry, weights = network
    coarse = {key: np.round(array * 16) / np.float32(16) for key, array in weights.tensors.items()}
    theirs = computation(network, Weights(coarse))
    found = blame(ours.operators([theirs]), ours, theirs, ours.inputs(), ours.outputs)
    assert sum(item.share for item in found.operators) == pytest.approx(1, abs=1e-6)
    assert sum(item.share > 0.01 for item in found.operators) > 3
    one, other = (
        Session(graph, registry, each, RunOptions(engine="torch", threads=1)) for each in (weights, Weights(coarse))
    )
    results = []
    for session in (one, other):
        session.set_input("image", IMAGE, is_image=True)
        results.append(session.run().outputs["result"])
    assert found.rms == pytest.approx(float(np.sqrt(np.mean((results[0] - results[1]) ** 2))), rel=1e-4)
    assert found.first == "enc_0_a"


def test_one_wrong_layer_has_the_whole_error(network):
    key = WeightKey("enc_2_a", "kernel")
    tensors = dict(network[2].tensors)
    tensors[key] = tensors[key].swapaxes(2, 3).copy()
    ours, theirs = computation(network), computation(network, Weights(tensors))
    found = blame(ours.operators([theirs]), ours, theirs, ours.inputs(), ours.outputs)
    assert {item.layer: round(item.share, 6) for item in found.operators if item.share} == {"enc_2_a": 1.0}
    assert found.first == "enc_2_a"
    assert [item.layer for item in found.operators if item.deviation] == ["enc_2_a"]


def test_results_that_are_not_finite_name_the_layer(network):
    key = WeightKey("enc_1_b", "bias")
    broken = Weights({**network[2].tensors, key: np.full_like(network[2].tensors[key], np.inf)})
    ours, theirs = computation(network), computation(network, broken)
    with pytest.raises(DiagnosticError, match="'enc_1_b' are NaN or infinite"):
        blame(ours.operators([theirs]), ours, theirs, ours.inputs(), ours.outputs)


def test_equal_computations_have_no_error(network):
    ours = computation(network)
    found = blame([Operator("enc_0_a", (Source("enc_0_a"),))], ours, ours, ours.inputs(), [Source("enc_0_a")])
    assert (found.rms, found.first, found.operators[0].share) == (0, None, 0)


def test_precisions_and_engines_by_name(run):
    formats = run("fp32", "int8")
    assert sum(item["share"] for item in formats["operators"]) == pytest.approx(1, abs=1e-6)
    assert formats["first"] == "enc_0_a"
    assert formats["rms"] > 1e-3
    engines = run("torch", "onnxruntime")
    assert engines["rms"] < 1e-6
    assert engines["first"] is None
    assert "choose one of fp32, fp16" in run("fp32", "fp12")


def test_a_variant_called_fp32_does_not_replace_the_network_itself(files, network):
    compared = Compared(
        *network,
        RunOptions(threads=1),
        lambda session: session.set_input("image", IMAGE, is_image=True),
        [Variant("fp32", precision="bf16")],
        files / "weights",
    )
    assert blame_between(compared, "torch", str(files / "unet.xml")).rms < 1e-6
    assert blame_between(compared, "torch", "fp32").rms < 1e-6
    assert blame_between(compared, "torch", "variant:fp32").rms > 1e-4


def test_a_variant_computes_with_its_own_weights(files, network):
    """A number format comes on top."""
    weights = network[2]
    key = WeightKey("dec_0_a", "kernel")
    save_weights(files / "own.safetensors", {**weights.tensors, key: weights.tensors[key] * np.float32(1.1)})
    save_weights(files / "part.safetensors", {k: t for k, t in weights.tensors.items() if k != key})
    variants = [
        Variant("own", weights=str(files / "own.safetensors")),
        Variant("rounded", formats={"enc_0_a": "int4"}, weights=str(files / "own.safetensors")),
        Variant("part", weights=str(files / "part.safetensors")),
    ]
    compared = Compared(
        *network, RunOptions(threads=1), lambda session: session.set_input("image", IMAGE, is_image=True), variants
    )
    found = blame_between(compared, "fp32", "own")
    assert [item.layer for item in found.operators if abs(item.share) > 1e-6] == [found.first] == ["dec_0_a"]
    assert blame_between(compared, "own", "rounded").first == "enc_0_a"
    assert blame_between(compared, "rounded", "own").ranked()[0].layer == "enc_0_a"
    with pytest.raises(DiagnosticError, match="dec_0_a"):
        blame_between(compared, "fp32", "part")


@pytest.mark.parametrize("name", ["fp32", "int4", "float16", "torch", "half.onnx", "half.xml", "variant:half", "half"])
def test_every_computation_has_its_name_whatever_variants_are_called(files, network, name):
    variants = [Variant(name, precision="bf16")]
    titles, plain = computation_titles(variants), computation_titles(())
    assert titles.items() >= plain.items()
    (called,) = titles.keys() - plain.keys()
    assert titles[called] == f"{name} (variant)"
    assert (called == name) is (name == "half")
    compared = Compared(
        *network, RunOptions(threads=1), lambda session: session.set_input("image", IMAGE, is_image=True), variants
    )
    variant, bf16 = tensors_of(compared, (called, "bf16"), Source("enc_0_a"))
    np.testing.assert_array_equal(variant, bf16)


def test_an_int8_file_is_compared_operator_by_operator(run, files, network):
    graph, registry, weights = network
    (files / "images").mkdir()
    write_image(files / "images" / "noise.png", IMAGE)
    export_int8(graph, registry, weights, files / "int8.onnx", CalibrationRecipe(str(files / "images")))
    found = run("fp32", files / "int8.onnx")
    shares = {item["layer"]: item["share"] for item in found["operators"]}
    assert {"enc_0_b", "dec_0_b", "sum"} <= shares.keys()
    assert sum(shares.values()) == pytest.approx(1, abs=1e-6)
    assert found["rms"] > 1e-4


def test_the_file_that_a_document_was_imported_from(files, run, network, monkeypatch, capsys):
    """The file has names of its own, and every second operator in it has none."""
    graph, registry, weights = network
    export_onnx(graph, registry, weights, files / "ours.onnx")
    model = onnx.load(files / "ours.onnx")
    names = {name: f"t{number}" for number, name in enumerate(n for node in model.graph.node for n in node.output)}
    kept = {entry.name for entry in (*model.graph.input, *model.graph.output)}
    for number, node in enumerate(model.graph.node):
        node.name = "" if number % 2 else node.name
        for values in (node.input, node.output):
            values[:] = [name if name in kept else names.get(name, name) for name in values]
    del model.graph.value_info[:]
    onnx.save(model, files / "foreign.onnx")
    monkeypatch.setattr(
        "sys.argv",
        [
            "layerwright",
            "import",
            str(files / "foreign.onnx"),
            "-o",
            str(files / "unet.xml"),
            "--weights",
            str(files / "imported.safetensors"),
            "--no-verify",
        ],
    )
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    capsys.readouterr()
    right = run(
        "torch", files / "foreign.onnx", "--weights", files / "imported.safetensors", "--input", files / "noise.png"
    )
    assert right["rms"] < 1e-6
    assert len(right["operators"]) > 10
    types = {tensor.name: (tensor.data_type, tensor.dims) for tensor in model.graph.initializer}
    model.graph.input.extend(onnx.helper.make_tensor_value_info(name, *each) for name, each in types.items())
    onnx.save(model, files / "old.onnx")  # as exporters did that list the weights among the inputs
    old = run("torch", files / "old.onnx", "--weights", files / "imported.safetensors", "--input", files / "noise.png")
    assert old["rms"] == pytest.approx(right["rms"])


def test_another_document_with_its_weights(files, run, network):
    graph, _, weights = network
    key = WeightKey("dec_0_a", "kernel")
    save_weights(files / "other.safetensors", {**weights.tensors, key: weights.tensors[key] * np.float32(1.1)})
    save_document(graph, files / "other.xml")
    found = run(
        "fp32", files / "other.xml", "--other-weights", files / "other.safetensors", "--input", f"image={files / 'noise.png'}"
    )  # fmt: skip
    assert found["operators"][0]["layer"] == found["first"] == "dec_0_a"
    assert found["operators"][0]["share"] == pytest.approx(1, abs=1e-6)


def test_inputs_without_a_file_are_named(run, files):
    assert "the network has the inputs image" in run("fp32", "fp16", "--input", f"picture={files / 'noise.png'}")
