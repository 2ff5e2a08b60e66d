"""2:4 sparsity: every group of four, the permutation that changes nothing, and what is said before anyone retrains."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import combinations, permutations, product
from math import inf
from pathlib import Path

import numpy as np
import pytest
from surgery_networks import REGISTRY, network, patient, result, trained
from warm_python import run_python

from app.cli.prune import _report
from designer.files.document import save_document
from designer.files.weights import Weights, load_weights, random_weights, required_weights, save_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.runtime.images import write_image
from designer.surgery import sparsity
from designer.surgery.operations import prune_2_4
from designer.surgery.sparsity import (
    Pruned,
    best_order,
    candidates,
    check_sparse,
    expected_gain,
    mask_of,
    prune,
    violations,
)
from exporters.pytorch import export_project

ROOT = Path(__file__).parents[2]


def residual(features: int = 16, size: str = "8x8x4") -> Graph:
    """A residual network with a concatenation, a normalization and a fully connected layer at the end."""
    f = {"features": str(features), "kernel": "3x3"}
    relu = ActivationSpec("relu", {"alpha": "0.0"})
    return Graph(
        [
            Layer("in", "input", params={"dims": size}),
            Layer("first", "convolution", inputs=(Source("in"),), params=f, activation=relu),
            Layer("second", "convolution", inputs=(Source("first"),), params=f),
            Layer("norm", "batch_normalization", inputs=(Source("second"),)),
            Layer("plus", "element_wise", inputs=(Source("norm"), Source("first")), params={"operation": "add"}),
            Layer("third", "convolution", inputs=(Source("plus"),), params=f, activation=relu),
            Layer("join", "concatenation", inputs=(Source("third"), Source("plus")), params={"axis": "1"}),
            Layer("fourth", "convolution", inputs=(Source("join"),), params=f),
            Layer("last", "convolution", inputs=(Source("fourth"),), params={"features": "3", "kernel": "1x1"}),
            Layer("out", "output", inputs=(Source("last"),)),
        ],
        name="residual",
    )


def weights_of(graph: Graph, seed: int = 0) -> Weights:
    return trained(graph) if seed == 0 else random_weights(required_weights(Inference(graph, REGISTRY)), seed)


def test_a_mask_keeps_the_two_largest_of_four() -> None:
    kernel = np.array([[1, -4, 3, 2, 0, 0, 0, 5]], np.float32)
    np.testing.assert_array_equal(mask_of(kernel)[0, :4], [False, True, True, False])
    assert mask_of(kernel).sum() == 4
    image = np.arange(2 * 8 * 3 * 3, dtype=np.float32).reshape(2, 8, 3, 3)
    assert mask_of(image)[1, :, 2, 2].tolist() == [False, False, True, True] * 2
    assert violations(image) == 2 * 2 * 9
    assert violations(image * mask_of(image)) == 0


@pytest.mark.parametrize("seed", range(12))
def test_the_permutation_keeps_the_function(seed: int, monkeypatch) -> None:
    """Without masks only the permutation remains."""
    graph = network(seed) if seed else residual(size="8x8x3")
    weights = trained(graph)
    monkeypatch.setattr(sparsity, "mask_of", lambda kernel: np.ones(kernel.shape, bool))
    pruned = prune(graph, REGISTRY, weights, candidates(graph, REGISTRY))
    before = result(graph, weights)
    np.testing.assert_allclose(result(graph, pruned.weights), before, atol=1e-5 * max(1.0, np.abs(before).max()))


def test_residual_networks_are_permuted_and_keep_more() -> None:
    graph = residual(32)
    weights = weights_of(graph, 1)
    found = candidates(graph, REGISTRY)
    pruned = prune(graph, REGISTRY, weights, found)
    kept = {kernel.layer: kernel for kernel in pruned.kernels}
    for layer in ("second", "third", "fourth", "last"):
        assert kept[layer].kept > kept[layer].kept_unpermuted
    assert kept["first"].kept == pytest.approx(kept["first"].kept_unpermuted)  # the channels of the image have an order
    assert set(check_sparse(found, pruned.weights).values()) == {0}
    for key, tensor in weights.tensors.items():
        assert sorted(pruned.weights.tensors[key].shape) == sorted(tensor.shape)


def test_the_order_is_never_worse_and_often_the_best() -> None:
    def kept(rows: np.ndarray) -> float:
        groups = np.sort(rows.reshape(len(rows), -1, 4), axis=2)
        return float(groups[:, :, 2:].sum())

    best = 0
    for seed in range(20):
        rows = np.random.default_rng(seed).random((6, 8)).astype(np.float32)
        order = best_order(rows)
        found = kept(rows if order is None else rows[:, order])
        assert found >= kept(rows)
        every = max(kept(rows[:, (0, *rest)]) for rest in permutations(range(1, 8)) if rest[0] < rest[1] < rest[2])
        assert found <= every * (1 + 1e-6)
        best += found >= every * (1 - 1e-6)
    assert best >= 14


def test_a_template_is_pruned_once_for_all_instances() -> None:
    from template_networks import nested

    graph = nested()
    weights = random_weights(required_weights(Inference(graph, REGISTRY)), 3)
    found = candidates(graph, REGISTRY)
    pruned = prune(graph, REGISTRY, weights, found)
    assert set(pruned.weights.tensors) == set(weights.tensors)
    assert not any(check_sparse(found, pruned.weights).values())


def test_what_is_said_first() -> None:
    small = candidates(residual(), REGISTRY)
    assert expected_gain(small).startswith("2:4 sparsity gains no speed here: no layer has 256 or more")
    large = candidates(residual(256), REGISTRY)
    text = expected_gain(large)
    assert "saves at most 15 % of the time" in text or "saves at most 15.0 %" in text
    assert "3 layers" in text  # the first reads 4 channels, the last computes 3
    odd = candidates(residual(6), REGISTRY)
    assert {one.layer: one.reason for one in odd}["second"] == "6 input channels are not a multiple of 4"
    assert [one.layer for one in odd if not one.reason] == ["first", "fourth"]


def test_the_operation_of_the_window() -> None:
    graph = residual()
    made = prune_2_4(patient(graph, weights_of(graph)))
    assert made.edit.title == "Prune to 2:4 sparsity"
    assert not made.edit.layers
    assert not any(check_sparse(candidates(graph, REGISTRY), made.weights).values())
    odd = Graph([layer for layer in residual(size="8x8x3") if layer.name in ("in", "first")], name="odd")
    with pytest.raises(DiagnosticError) as failed:
        prune_2_4(patient(odd, weights_of(odd)))
    assert failed.value.diagnostics[0].code == "nothing-to-prune"


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "app.cli.main", "prune", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    graph = residual()
    save_document(graph, tmp_path / "net.xml")
    save_weights(tmp_path / "weights", weights_of(graph, 1).tensors)
    return str(tmp_path / "net.xml"), "--weights", str(tmp_path / "weights")


def test_equal_images_have_no_number_in_the_report() -> None:
    found = candidates(residual(), REGISTRY)
    report = _report(found, Pruned(Weights(), ()), {"a.png": inf, "b.png": 30.0}, [], "no GPU")
    assert (report["psnr_db"], report["images"]) == (None, {"a.png": None, "b.png": 30.0})
    json.dumps(report, allow_nan=False)


@pytest.mark.slow
def test_the_command(files: tuple[str, str, str], tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    for number in range(2):
        pixels = np.random.default_rng(number).random((1, 4, 8, 8), np.float32)
        write_image(images / f"{number}.png", pixels)
    (images / "broken.png").write_bytes(b"not an image")
    output, report = tmp_path / "sparse", tmp_path / "report.json"
    done = command(
        *files, "--pattern", "2:4", "--output", str(output), "--report", str(report), "--validate", str(images)
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("2:4 sparsity gains no speed here")
    assert "skipped broken.png" in done.stderr
    found = json.loads(report.read_text())
    assert found["violations"] == 0
    assert "need a GPU" in found["batch_sweep"]["unavailable"]
    assert set(found["images"]) == {"0.png", "1.png"}
    assert [layer["layer"] for layer in found["layers"] if layer["pruned"]] == [
        "first",
        "second",
        "third",
        "fourth",
        "last",
    ]
    graph = residual()
    stored = load_weights(output, required_weights(Inference(graph, REGISTRY)))
    assert not any(check_sparse(candidates(graph, REGISTRY), stored).values())
    assert command(files[0], "--weights", str(output)).returncode == 0
    done = command(*files)
    assert done.returncode == 1
    assert "first: 144 groups of four are not 2:4 sparse" in done.stdout
    done = command(*files, "--output", str(output))
    assert "has files; nothing was changed" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["images", "net.xml", "report.json", "sparse", "weights"]


@pytest.mark.slow
def test_retraining_in_the_exported_project_keeps_the_zeros(tmp_path: Path) -> None:
    graph = residual(8, size="16x16x3")
    found = candidates(graph, REGISTRY)
    pruned = prune(graph, REGISTRY, weights_of(graph, 1), found)
    save_weights(tmp_path / "sparse", pruned.weights.tensors)
    export_project(graph, REGISTRY, tmp_path / "project", "Residual")
    options = "--synthetic 4 --patch 16 --batch 2 --steps 4 --validate-every 4 --workers 0 --threads 1 --run runs/one"
    given = ["train.py", *options.split(), "--from-weights", str(tmp_path / "sparse"), "--sparse-2-4"]
    done = run_python(tmp_path / "project", *given)
    assert done.returncode == 0, done.stderr
    trained_weights = load_weights(
        tmp_path / "project" / "runs" / "one" / "weights", required_weights(Inference(graph, REGISTRY))
    )
    assert set(check_sparse(found, trained_weights).values()) == {0}
    for one in found:
        if not one.reason:
            before, after = pruned.weights.tensors[one.key], trained_weights.tensors[one.key]
            assert not np.array_equal(before, after)
            assert not after[before == 0].any()


def test_an_order_that_only_the_sampled_rows_prefer_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large kernels are searched on 64 of their rows, but all of them count."""
    monkeypatch.setattr(sparsity, "SWAP_VALUES", 1.0)
    pairs = [np.isin(range(4), pair) * np.float32(9) for pair in combinations(range(4), 2)]
    nothing_lost = [np.concatenate([one, other]) for one, other in product(pairs, pairs)]
    rows = np.resize(np.array(nothing_lost), (631, 8))
    rows[np.linspace(0, 630, 64).astype(int)] = [9, 9, 9, 9, 0, 0, 0, 0]
    assert best_order(rows) is None
    order = best_order(rows[::10])  # only the sampled ones
    assert order is not None
    assert sorted(map(int, order)) == list(range(8))


def conv(name: str, source: str, features: int, kernel: str = "3x3") -> Layer:
    return Layer(name, "convolution", inputs=(Source(source),), params={"features": str(features), "kernel": kernel})


def joined(*sizes: int) -> list[Layer]:
    """Convolutions of some numbers of channels, concatenated."""
    made = [conv(f"c{number}", "in", size) for number, size in enumerate(sizes)]
    join = Layer("join", "concatenation", inputs=tuple(Source(each.name) for each in made), params={"axis": "1"})
    return [*made, join, conv("reader", "join", 4)]


NETWORKS = {  # the layers, and the kernel whose groups of four can be chosen, or not
    "channels between others fill no groups": (joined(2, 8, 6), False),
    "the first of two fills its groups": (joined(8, 6, 2), True),
    "the second begins with a group": (joined(4, 8), True),
    "four channels have no other order": (joined(4, 4), False),
    "six channels fill no groups": (joined(6, 10), False),
    "values of a flattened channel are many": (
        [
            conv("c0", "in", 8),
            Layer("flat", "flatten", inputs=(Source("c0"),)),
            Layer("reader", "fully_connected", inputs=(Source("flat"),), params={"features": "5"}),
        ],
        False,
    ),
    "pooled channels": (
        [
            conv("c0", "in", 16),
            Layer("mean", "global_pooling", inputs=(Source("c0"),)),
            Layer("flat", "flatten", inputs=(Source("mean"),)),
            Layer("reader", "fully_connected", inputs=(Source("flat"),), params={"features": "5"}),
        ],
        True,
    ),
    "channels in parts of another order": (
        [
            conv("c0", "in", 16),
            Layer("parts", "split", inputs=(Source("c0"),), params={"sizes": "6,10"}),
            Layer("join", "concatenation", inputs=(Source("parts", "y1"), Source("parts", "y0")), params={"axis": "1"}),
            conv("reader", "join", 4),
        ],
        False,
    ),
    "an output fixes the order": ([conv("c0", "in", 8), conv("reader", "c0", 4)], True),
    "a result that is read too": (
        [conv("c0", "in", 8), conv("reader", "c0", 4), Layer("out_2", "output", inputs=(Source("c0"),))],
        False,
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("biases", [True, False], ids=["all weights", "kernels only"])
def test_groups_are_chosen_where_they_have_no_other_channels(name: str, biases: bool) -> None:
    layers, chosen = NETWORKS[name]
    graph = Graph(
        [
            Layer("in", "input", params={"dims": "5x5x4"}),
            *layers,
            Layer("out", "output", inputs=(Source("reader"),)),
        ],
        name="net",
    )
    weights = weights_of(graph, 5)
    if not biases:
        weights = Weights({key: value for key, value in weights.tensors.items() if key.tensor == "kernel"})
    pruned = prune(graph, REGISTRY, weights, candidates(graph, REGISTRY))
    kept = {kernel.layer: kernel for kernel in pruned.kernels}["reader"]
    assert (kept.kept > kept.kept_unpermuted) == chosen
    assert chosen or kept.kept == kept.kept_unpermuted
    assert pruned.weights.tensors.keys() == weights.tensors.keys()
    assert set(check_sparse(candidates(graph, REGISTRY), pruned.weights).values()) == {0}
    unchanged = [np.array_equal(pruned.weights.tensors[key], value) for key, value in weights.tensors.items()]
    assert not all(unchanged)
