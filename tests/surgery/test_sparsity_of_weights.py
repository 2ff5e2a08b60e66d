"""2:4 sparsity: candidates, expected gains, pruned weights and refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from recorded import check_recorded
from recorded_edits_of_weights import done, values, with_source
from surgery_networks import REGISTRY, layer

from designer.files.weights import WeightKey
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.surgery import sparsity
from designer.surgery.operations import (
    Operation,
    Patient,
    prune_2_4,
)
from designer.surgery.sparsity import (
    best_order,
    candidates,
    check_sparse,
    expected_gain,
    mask_of,
    nothing_to_prune,
    prune,
    sparse_weights,
    violations,
)

Edit = Callable[[Patient], Operation]


def sparse_network(features: int = 8) -> Graph:
    return Graph(
        [
            layer("in", "input", dims="8x8x3"),
            layer("head", "convolution", "in", features=features),
            layer("m", "convolution", "head", features=features, kernel="1x1"),
            layer("g", "convolution", "m", features=features, groups=4),
            layer("p", "pooling", "g"),
            layer("dense", "fully_connected", "p", features=6),
            layer("last", "fully_connected", "dense", features=256),
            layer("out", "output", "last", analysis_view="tensor"),
        ]
    )


def test_candidates_of_pruning_are_as_expected() -> None:
    found = candidates(sparse_network(), REGISTRY)
    shares = [one.work for one in found]
    flops = {"head": 64 * 8 * 27, "m": 64 * 8 * 8, "g": 64 * 8 * 18, "dense": 128 * 6, "last": 6 * 256}
    assert [(one.layer, one.key, one.inputs, one.outputs, one.reason) for one in found] == [
        ("head", ("head", "kernel"), 3, 8, "3 input channels are not a multiple of 4"),
        ("m", ("m", "kernel"), 8, 8, ""),
        ("g", ("g", "kernel"), 2, 8, "a grouped convolution reads few channels at a time"),
        ("dense", ("dense", "kernel"), 128, 6, ""),
        ("last", ("last", "kernel"), 6, 256, "6 input channels are not a multiple of 4"),
    ]
    total = sum(flops.values())
    for one, share in zip(found, shares, strict=True):
        assert share == pytest.approx(flops[one.layer] / total, rel=0.1)
    assert not any(one.gains for one in found)
    wide = replace(found[1], inputs=256, outputs=256)
    assert wide.gains
    assert not replace(wide, inputs=255).gains
    assert not replace(wide, outputs=255).gains
    assert not replace(wide, reason="x").gains
    gains = [expected_gain([replace(wide, work=work)] * count) for work, count in ((0.1, 1), (0.1, 2), (0.4, 2))]
    assert gains == [
        "2:4 sparsity saves at most 5.00 % of the time on sparse Tensor Cores: 1 layer with 10.0 % of the operations has 256 or more "
        "input and output channels.",
        "2:4 sparsity saves at most 10.0 % of the time on sparse Tensor Cores: 2 layers with 20.0 % of the operations have 256 or more "
        "input and output channels.",
        "2:4 sparsity saves at most 15.0 % of the time on sparse Tensor Cores: 2 layers with 80.0 % of the operations have 256 or more "
        "input and output channels.",
    ]
    assert (
        expected_gain(found)
        == expected_gain([])
        == (
            "2:4 sparsity gains no speed here: no layer has 256 or more input and output channels, so libraries choose dense kernels. "
            "It costs accuracy."
        )
    )


def test_what_pruning_makes_is_as_recorded() -> None:
    graph = sparse_network()
    ill = with_source(graph)
    found = candidates(graph, REGISTRY)
    pruned = prune(graph, REGISTRY, ill.weights, found)
    lines = [
        f"{one.layer}: {one.kept:.4f} kept, {one.kept_unpermuted:.4f} without permutation" for one in pruned.kernels
    ]
    assert all(one.kept >= one.kept_unpermuted for one in pruned.kernels)
    assert (pruned.weights.note, pruned.weights.sha256, pruned.weights.source) == ("a note; 2:4 sparse", "", "net.pt")
    lines += [
        f"{k.layer}/{k.tensor} {v.shape} {values(v)} {int((v == 0).sum())} zeros"
        for k, v in pruned.weights.tensors.items()
    ]
    operation = prune_2_4(ill)
    assert operation.edit.title == "Prune to 2:4 sparsity"
    for key, tensor in operation.weights.tensors.items():
        np.testing.assert_array_equal(tensor, pruned.weights.tensors[key])
    check_recorded("surgery/pruned.txt", "\n".join(lines) + "\n")


def test_networks_that_cannot_be_pruned_say_why() -> None:
    narrow_ = Graph(
        [one for one in sparse_network(6) if one.name in ("in", "head", "m")] + [layer("out", "output", "m")]
    )
    lines = list(done(with_source(narrow_), prune_2_4))
    assert lines == [
        "nothing-to-prune (None): no layer reads a number of channels that is a multiple of 4 - change the numbers of channels"
    ]
    empty = Graph([layer("in", "input", dims="8x8x3"), layer("out", "output", "in")])
    assert list(done(with_source(empty), prune_2_4)) == lines


def test_weights_that_are_sparse_stay_and_others_are_pruned_under_their_hash() -> None:
    graph = sparse_network()
    ill = with_source(graph)
    made = sparse_weights(graph, REGISTRY, ill.weights)
    found = candidates(graph, REGISTRY)
    assert (made.sha256, made.note, made.source) == ("0" * 64, "a note; 2:4 sparse", "net.pt")
    pruned = prune(graph, REGISTRY, ill.weights, found).weights
    assert all(np.array_equal(made.tensors[key], tensor) for key, tensor in pruned.tensors.items())
    assert sparse_weights(graph, REGISTRY, made) is made
    assert check_sparse(found, made) == {"m": 0, "dense": 0}
    assert check_sparse(found, ill.weights) == {"m": 16, "dense": 192}
    kernel = made.tensors[WeightKey("m", "kernel")].copy()
    kernel[0, :3] = 1.0
    broken = replace(made, tensors={**made.tensors, WeightKey("m", "kernel"): kernel})
    assert check_sparse(found, broken) == {"m": 1, "dense": 0}
    assert violations(np.array([[1, 1, 0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 1, 1, 1, 1]], np.float32)) == 2


def test_weights_that_cannot_be_pruned_are_refused_with_the_reasons() -> None:
    graph = sparse_network()
    ill = with_source(graph)
    tensors = {key: tensor for key, tensor in ill.weights.tensors.items() if key != WeightKey("dense", "kernel")}
    with pytest.raises(DiagnosticError) as caught:
        sparse_weights(graph, REGISTRY, replace(ill.weights, tensors=tensors))
    [found] = caught.value.diagnostics
    assert (found.code, found.message, found.layer, found.remedy) == (
        "weights-missing",
        "'dense' has no weights to prune",
        "dense",
        "choose weights of this network",
    )
    one = candidates(graph, REGISTRY)[0]
    messages = [nothing_to_prune([replace(one, layer=name) for name in names]) for names in ("", "ab", "abcdefg")]
    reasons = [error.diagnostics[0].message.removeprefix("no layer can be pruned: ") for error in messages]
    why = "3 input channels are not a multiple of 4"
    assert reasons == [
        "no layer has a kernel",
        f"'a': {why}; 'b': {why}",
        "; ".join(f"'{name}': {why}" for name in "abcde"),
    ]
    [found] = messages[0].diagnostics
    assert (found.code, found.remedy) == ("nothing-to-prune", "use numbers of channels that are multiples of 4")
    narrow_ = Graph([each for each in sparse_network(6) if each.name in ("in", "head", "m")])
    with pytest.raises(DiagnosticError, match=r"'head': 3 input channels .*; 'm': 6 input channels"):
        sparse_weights(narrow_, REGISTRY, with_source(narrow_).weights)


def test_masks_keep_the_two_largest_magnitudes_and_of_equal_ones_the_later() -> None:
    kernel = np.array([[1, -3, 2, 0.5, 1, 1, 1, 1]], np.float32)
    assert mask_of(kernel).tolist() == [[False, True, True, False, False, False, True, True]]
    images = np.zeros((1, 4, 2, 1), np.float32)
    images[0, :, 0, 0] = [4, 1, 3, 2]
    images[0, :, 1, 0] = [1, 2, 3, 4]
    mask = mask_of(images)
    assert mask[0, :, 0, 0].tolist() == [True, False, True, False]
    assert mask[0, :, 1, 0].tolist() == [False, False, True, True]


def test_an_order_is_the_best_of_all_for_two_groups() -> None:
    """Every division of eight columns into two groups is tried here."""
    from itertools import combinations

    generator = np.random.default_rng(5)
    for _ in range(5):
        rows = np.abs(generator.standard_normal((6, 8))).astype(np.float32)

        def kept(groups: list[list[int]], rows: np.ndarray = rows) -> float:
            return float(sum(np.sort(rows[:, group], axis=1)[:, 2:].sum() for group in groups))

        best = max(kept([list(c), [n for n in range(8) if n not in c]]) for c in combinations(range(8), 4))
        order = best_order(rows)
        found = kept([list(order[:4]), list(order[4:])]) if order is not None else kept([[0, 1, 2, 3], [4, 5, 6, 7]])
        assert found >= kept([[0, 1, 2, 3], [4, 5, 6, 7]])
        assert found == pytest.approx(best, rel=0.02)


def test_the_best_of_all_exchanges_of_two_groups_is_made() -> None:
    """Of the sixteen, by hand; none if no exchange keeps more."""
    generator = np.random.default_rng(7)

    def kept(rows: np.ndarray, order: list[int]) -> float:
        return sum(float(np.sort(rows[:, order[n : n + 4]], axis=1)[:, 2:].sum()) for n in (0, 4))

    for _ in range(6):
        rows = np.abs(generator.standard_normal((5, 8))).astype(np.float32)
        options = []
        for p in range(4):
            for q in range(4, 8):
                order = list(range(8))
                order[p], order[q] = q, p
                options.append(kept(rows, order))
        made = np.arange(8)
        helps = sparsity._exchange(rows, made, 0, 1)
        assert helps == (max(options) > kept(rows, list(range(8))) * (1 + 1e-6))
        assert kept(rows, made.tolist()) == pytest.approx(max(*options, kept(rows, list(range(8)))), rel=1e-6)
        assert sorted(made.tolist()) == list(range(8))
