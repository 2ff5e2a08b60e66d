"""The comparison of a document with its original: inputs, differences, cases, and what is said where it fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from designer.files.document import read_document
from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.importers import imported
from designer.importers.builder import GraphBuilder
from designer.importers.imported import Imported
from designer.importers.report import UNBOUNDED, ComparedCase, ImportReport
from designer.importers.verification import compare, difference, run_document, seeded_feeds
from designer.operators.registry import Registry
from designer.runtime.api import RunOptions

Case = Mapping[str, tuple[tuple[int, ...], str]]
nan, inf = np.nan, np.inf


def image(height: int = 4, width: int = 6, batch: int = 1) -> Case:
    return {"x": ((batch, 3, height, width), "float32")}


def test_feeds_are_seeded_and_of_the_type_of_the_input() -> None:
    case = {
        "image": ((2, 3, 4, 5), "float32"),
        "half": ((500,), "float16"),
        "tokens": ((50, 20), "int64"),
        "flag": ((30,), "bool"),
    }
    feeds = seeded_feeds(case)
    assert {name: (array.shape, str(array.dtype)) for name, array in feeds.items()} == case
    assert 0 <= feeds["image"].min() < 0.2 < 0.8 < feeds["image"].max() <= 1
    assert np.unique(feeds["tokens"]).tolist() == [0, 1]
    assert np.unique(feeds["flag"]).tolist() == [False, True]
    np.testing.assert_array_equal(feeds["image"], np.random.default_rng(1).random((2, 3, 4, 5)).astype(np.float32))
    for name, array in seeded_feeds(case).items():
        np.testing.assert_array_equal(array, feeds[name])
    assert not np.array_equal(seeded_feeds(case, 2)["image"], feeds["image"])


@pytest.mark.parametrize(
    ("found", "expected", "absolute", "relative"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0, 0.0),
        ([1.0, 2.5], [1.0, 2.0], 0.5, 0.25),
        ([1.0, -4.5], [1.0, -4.0], 0.5, 0.125),
        ([9.0, 0.0], [1.0, 0.0], 8.0, 8.0),
        ([0.5, 0.0], [0.0, 0.0], 0.5, 0.5),
        ([nan, 2.5], [nan, 2.0], 0.5, 0.25),
        ([inf, -inf, 2.5], [inf, -inf, 2.0], 0.5, 0.25),
        ([nan, 2.0], [1.0, 2.0], UNBOUNDED, UNBOUNDED),
        ([1.0, 2.0], [nan, 2.0], UNBOUNDED, UNBOUNDED),
        ([inf, 2.0], [1.0, 2.0], UNBOUNDED, UNBOUNDED),
        ([1.0, 2.0], [inf, 2.0], UNBOUNDED, UNBOUNDED),
        ([inf, 2.0], [-inf, 2.0], UNBOUNDED, UNBOUNDED),
        ([inf, 2.0], [nan, 2.0], UNBOUNDED, UNBOUNDED),
        ([[1.0, 2.0]], [1.0, 2.0], UNBOUNDED, UNBOUNDED),
        ([], [], 0.0, 0.0),
        ([1.0], [5e-324], 1.0, UNBOUNDED),
    ],
)  # fmt: skip
def test_the_difference_is_absolute_and_relative_to_the_largest_expected_value(
    found: list[float], expected: list[float], absolute: float, relative: float
) -> None:
    assert difference(np.array(found), np.array(expected)) == (absolute, relative)


def test_differences_of_integers_do_not_overflow() -> None:
    assert difference(np.array([250], np.uint8), np.array([255], np.uint8)) == (5.0, 5 / 255)
    assert difference(np.array([True, False]), np.array([True, True])) == (1.0, 1.0)


def doubled(registry: Registry) -> Graph:
    """A network that doubles an image, and an output with its absolute values."""
    from designer.graph.types import Size3D

    builder = GraphBuilder(registry, "doubled")
    (x,) = builder.add("input", (), {"dims": Size3D(6, 4, 3)}, name="x", exact=True)
    (twice,) = builder.add("scale_shift", [x], {"scale": 2.0}, name="twice")
    builder.add("output", [twice], {"analysis_view": "tensor"}, name="y", exact=True)
    (size,) = builder.add("unary", [x], {"function": "abs"}, name="size")
    builder.add("output", [size], {"analysis_view": "tensor"}, name="z", exact=True)
    return builder.finish()[0]


Run = Callable[[Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]


def same(feeds: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    return {"y": feeds["x"] * 2, "z": feeds["x"]}


@dataclass
class StubOriginal:
    """An original with these cases that computes with `run`; `bound` are the layers whose values depend on the size."""

    sizes: Sequence[Case]
    run: Run = same
    bound: Sequence[str] = ()
    asked: list[Case] = field(default_factory=list)

    def cases(self) -> Sequence[Case]:
        return self.sizes

    def size_bound(self, case: Case, weights: Weights) -> Sequence[str]:
        self.asked.append(case)
        return self.bound


def off_by(amounts: Mapping[int, float], output: str = "y") -> Run:
    """The right values, but for the first value of `output`, by height."""

    def run(feeds: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        made = {name: array.copy() for name, array in same(feeds).items()}
        made[output].flat[0] += amounts.get(feeds["x"].shape[2], 0.0)
        return made

    return run


def compared(registry: Registry, original: StubOriginal) -> dict[str, Any]:
    return compare(doubled(registry), registry, Weights({}), original)


def test_every_case_is_compared_and_the_largest_differences_are_reported(registry: Registry) -> None:
    original = StubOriginal([image(4), image(batch=2), image(8)], off_by({4: 3.0, 8: 1.0}))
    found = compared(registry, original)
    assert set(found) == {"cases", "size_note", "max_abs_difference", "max_rel_difference"}
    first, second, third = found["cases"]
    assert [case.inputs for case in (first, second, third)] == [
        {"x": (1, 3, 4, 6)}, {"x": (2, 3, 4, 6)}, {"x": (1, 3, 8, 6)},
    ]  # fmt: skip
    assert first.max_abs_difference == pytest.approx(3.0, abs=1e-6)
    assert third.max_abs_difference == pytest.approx(1.0, abs=1e-6)
    assert (first.output, third.output) == ("y", "y")
    assert found["max_abs_difference"] == max(first.max_abs_difference, second.max_abs_difference)
    assert found["max_rel_difference"] == max(case.max_rel_difference for case in found["cases"])
    assert found["size_note"] == ""
    assert original.asked == [], "a document that differs at its own size is not excused by others"


def test_the_largest_differences_can_be_those_of_two_cases(registry: Registry) -> None:
    def run(feeds: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        made = {name: array.copy() for name, array in same(feeds).items()}
        if feeds["x"].shape[2] == 4:
            made["y"].flat[0] += 100.0  # less than the value, relatively
        else:
            made["y"] *= np.float32(1e-6)
        return made

    found = compared(registry, StubOriginal([image(4), image(8)], run))
    one, other = found["cases"]
    assert one.max_abs_difference > other.max_abs_difference
    assert one.max_rel_difference < other.max_rel_difference
    assert found["max_abs_difference"] == one.max_abs_difference
    assert found["max_rel_difference"] == other.max_rel_difference


@pytest.mark.parametrize("output", ["y", "z"])
def test_the_output_that_differs_most_is_named(output: str, registry: Registry) -> None:
    (case,) = compared(registry, StubOriginal([image()], off_by({4: 0.5}, output)))["cases"]
    assert case.output == output
    assert case.max_abs_difference == pytest.approx(0.5, abs=1e-6)


def test_a_document_that_is_right_at_its_own_size_only_has_a_note(registry: Registry) -> None:
    original = StubOriginal([image(4), image(8), image(16)], off_by({8: 1.0}), ("scale", "pad"))
    found = compared(registry, original)
    assert [case.inputs["x"][2] for case in found["cases"]] == [4, 16]
    assert found["max_abs_difference"] == 0
    assert found["size_note"] == (
        "the document is right only for inputs of 1 x 3 x 4 x 6: the original computes values of 'scale', 'pad' from the size; "
        "import it again for another size"
    )
    assert original.asked == [image(8)]


@pytest.mark.parametrize("bound", [(), ("scale",)])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_size_that_only_the_original_accepts_bounds_the_document(
    place: int, bound: Sequence[str], registry: Registry
) -> None:
    """If values follow from the size, it is a note; otherwise, and before the document agreed once, it is left out."""
    cases = [image(4), image(8)]
    cases.insert(place, {"x": ((1, 5, 4, 6), "float32")})  # the document reads three channels
    original = StubOriginal(cases, same, bound)
    found = compared(registry, original)
    assert original.asked == ([cases[place]] if place else [])
    if not place:
        assert found == {"not_compared_because": found["not_compared_because"]}
        assert "needs 3 channels" in found["not_compared_because"]
        return
    assert [case.inputs["x"] for case in found["cases"]] == [(1, 3, 4, 6), (1, 3, 8, 6)]
    assert (found["max_abs_difference"], bool(found["size_note"])) == (0, bool(bound))
    assert ("values of 'scale' from the size" in found["size_note"]) == bool(bound)


@pytest.mark.parametrize(("count", "words"), [(5, "'e' from"), (6, "'e' and more layers from")])
def test_the_note_names_at_most_five_layers(count: int, words: str, registry: Registry) -> None:
    found = compared(registry, StubOriginal([image(4), image(8)], off_by({8: 1.0}), "abcdef"[:count]))
    assert f"values of 'a', 'b', 'c', 'd', {words} the size" in found["size_note"]


def test_a_document_that_differs_at_another_size_by_itself_is_reported(registry: Registry) -> None:
    found = compared(registry, StubOriginal([image(4), image(8)], off_by({8: 1.0})))
    assert found["size_note"] == ""
    assert found["max_abs_difference"] == pytest.approx(1.0, abs=1e-6)


def raising(*errors: Exception | None) -> Run:
    """Raises these one after the other; None is a run without an error."""
    left = list(errors)

    def run(feeds: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        error = left.pop(0)
        if error is not None:
            raise error
        return same(feeds)

    return run


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("  \n first line\nsecond"), "ValueError: first line"),
        (ValueError(), "ValueError"),
        (RuntimeError("x" * 400), f"RuntimeError: {'x' * 300}"),
        (DiagnosticError.of("original-failed", "the file needs a GPU", remedy="no"), "the file needs a GPU"),
        (KeyError("y"), "KeyError: 'y'"),
    ],
    ids=["lines", "nothing", "long", "diagnostic", "key"],
)
def test_an_original_that_fails_is_the_reason_why_it_is_not_compared(
    error: Exception, reason: str, registry: Registry
) -> None:
    original = StubOriginal([image(4), image(8)], raising(error))
    assert compared(registry, original) == {"not_compared_because": reason}, "other sizes are not tried"


def test_an_error_at_another_size_leaves_out_that_case_only(registry: Registry) -> None:
    found = compared(registry, StubOriginal([image(4), image(8), image(12)], raising(None, ValueError("no"), None)))
    assert [case.inputs["x"][2] for case in found["cases"]] == [4, 12]
    assert "not_compared_because" not in found


def test_an_original_without_a_size_is_not_compared(registry: Registry) -> None:
    assert compared(registry, StubOriginal([])) == {"not_compared_because": "the original has no size to run at"}


def test_an_output_of_another_shape_is_not_comparable(registry: Registry) -> None:
    found = compared(registry, StubOriginal([image()], lambda feeds: {"y": feeds["x"][:, :2], "z": feeds["x"]}))
    assert (found["max_abs_difference"], found["max_rel_difference"]) == (UNBOUNDED, UNBOUNDED)
    assert found["cases"][0].output == "y"


def test_a_document_is_run_with_tensors_as_they_are(registry: Registry) -> None:
    x = np.linspace(-300, 300, 72, dtype=np.float32).reshape(1, 3, 4, 6)
    made = run_document(doubled(registry), registry, Weights({}), {"x": x})
    np.testing.assert_array_equal(made["y"], x * 2)
    np.testing.assert_array_equal(made["z"], np.abs(x))


def test_a_document_is_run_as_its_import_asks(registry: Registry) -> None:
    options = RunOptions(engine="no-such-engine")
    fields = compare(doubled(registry), registry, Weights({}), StubOriginal([image()]), options)
    assert "no-such-engine" in fields["not_compared_because"]


def test_an_import_without_an_original_is_not_compared(registry: Registry) -> None:
    found = Imported(doubled(registry), Weights({}), ImportReport("a", not_compared_because="no links"))
    assert found.verified(registry) is found


def test_a_verified_import_has_the_comparison_and_all_else(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    options, original = RunOptions(engine="torch"), StubOriginal([image()])
    found = Imported(doubled(registry), Weights({}), ImportReport("a", nodes=3, warnings=("w",)), original, options)
    given = []

    def fields(*arguments: Any) -> dict[str, Any]:
        given.append(arguments)
        return {"max_abs_difference": 0.5, "max_rel_difference": 0.25}

    monkeypatch.setattr(imported, "compare", fields)
    made = found.verified(registry)
    assert given == [(found.graph, registry, found.weights, original, options)]
    assert made.report == ImportReport("a", nodes=3, warnings=("w",), max_abs_difference=0.5, max_rel_difference=0.25)
    assert (made.graph, made.original, made.options) == (found.graph, original, options)


@pytest.mark.parametrize(("weights", "report"), [(True, True), (False, True), (True, False), (False, False)])
def test_an_import_is_saved_as_the_files_that_are_asked_for(
    weights: bool, report: bool, registry: Registry, tmp_path: Path
) -> None:
    found = Imported(doubled(registry), Weights({}), ImportReport("a"))
    found.save(
        tmp_path / "a.xml", tmp_path / "a.safetensors" if weights else None, tmp_path / "a.json" if report else None
    )
    expected = {"a.xml", *(["a.safetensors"] if weights else []), *(["a.json"] if report else [])}
    assert {path.name for path in tmp_path.iterdir()} == expected
    assert read_document(tmp_path / "a.xml").graph == found.graph
    if report:
        assert b'"source": "a"' in (tmp_path / "a.json").read_bytes()


def test_a_compared_case_has_no_output_by_default() -> None:
    assert ComparedCase({}, 0.0, 0.0).output == ""
