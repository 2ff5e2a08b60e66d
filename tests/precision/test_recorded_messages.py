"""What the user reads when a precision cannot be measured, compared or exported, and while it is; compared with recorded texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from recorded import check_recorded
from runtime_networks import layer

from designer.files.variants import CalibrationRecipe, Variant
from designer.files.weight_files import save_weights
from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.operators.registry import Registry
from designer.precision.bits import BitsMeasurement
from designer.precision.blame import Computation, Operator, Step, blame
from designer.precision.computations import EngineComputation
from designer.precision.emulation import Emulation
from designer.precision.image_set import image_input, read_image_set
from designer.precision.int8 import calibration_images, nothing_to_quantize, quantize, quantized_variant
from designer.precision.mixed import choose_precision, validate
from designer.precision.variants import changed, find_variant, own_weights, run_options
from designer.runtime.api import RunOptions
from designer.runtime.images import write_image
from designer.runtime.session import Session

torch = pytest.importorskip("torch")

X, Y, Z = Source("x"), Source("y"), Source("z")


class Made(Computation):
    """y and z are given functions of x and y."""

    def __init__(self, first: Callable[[Any], Any], second: Callable[[Any], Any]) -> None:
        self._made = {Y: (X, first), Z: (Y, second)}

    @property
    def tensors(self) -> Any:
        return self._made.keys()

    def step(self, makes: tuple[Source, ...], known: Any) -> Step:
        source, function = self._made[makes[0]]
        return Step((source,), lambda values: {makes[0]: function(values[source])})


def network(side: int = 8) -> Graph:
    return Graph(
        [
            layer("image", "input", dims=f"{side}x{side}x3"),
            layer("a", "convolution", "image", None, features="4", kernel="3x3"),
            layer("b", "convolution", "a", None, features="3", kernel="3x3"),
            layer("result", "output", "b"),
        ],
        name="net",
    )


def filled(graph: Graph, registry: Registry) -> Weights:
    return fill_missing(Weights(), required_weights(Inference(graph, registry)), 0)


def session(registry: Registry, graph: Graph | None = None) -> Session:
    graph = graph or network()
    made = Session(graph, registry, filled(graph, registry), RunOptions("torch", threads=1))
    made.set_input("image", np.random.default_rng(0).random((1, 3, 8, 8), np.float32), is_image=True)
    return made


def cases(registry: Registry, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    operators = [Operator("first", (Y,)), Operator("second", (Z,))]
    feeds = {X: np.array([1.0, 2.0], np.float32)}
    same = lambda x: x  # noqa: E731

    def blamed(one: Computation, other: Computation) -> Callable[[], object]:
        return lambda: blame(operators, one, other, feeds, [Z])

    yield "NaN of the second operator", blamed(Made(same, same), Made(same, lambda x: x * np.float32("nan")))
    yield "infinite values of the first operator", blamed(Made(lambda x: x / np.float32(0), same), Made(same, same))
    yield "results of another shape", blamed(Made(same, same), Made(same, lambda x: x[:1]))
    run = EngineComputation(session(registry))
    yield "a computation without the result", lambda: run.operators([SimpleNamespace(tensors={Source("a")})])  # type: ignore[list-item]
    yield "a step that reads an unknown input", lambda: run.step((Source("a"),), {Source("b")})

    inference = Inference(network(), registry)
    for name, size in (("small", (4, 5)), ("tiny", (2, 2))):
        (folder / name).mkdir()
        write_image(folder / name / "a.png", np.zeros((1, 3, *size), np.float32))
        (folder / name / "b.png").write_bytes(b"no image")
    (folder / "empty").mkdir()
    yield "no folder", lambda: read_image_set(inference, folder / "gone", count=3)
    yield "no images", lambda: read_image_set(inference, folder / "empty", count=3)
    yield "images that are too small", lambda: read_image_set(inference, folder / "small", count=3)
    yield (
        "images that are smaller than a size",
        lambda: read_image_set(inference, folder / "small", count=3, size=(5, 6)),
    )
    two = Graph([layer("image", "input", dims="8x8x3"), layer("mask", "input", dims="8x8x3"),
                 layer("s", "element_wise", "image,mask"), layer("o", "output", "s")])  # fmt: skip
    yield "two inputs", lambda: image_input(Inference(two, registry))
    vector = Graph(
        [layer("v", "tensor_input", shape="4"), layer("f", "fully_connected", "v"), layer("o", "output", "f")]
    )
    yield "an input that is not an image", lambda: image_input(Inference(vector, registry))
    for recipe in (CalibrationRecipe(method="mean"), CalibrationRecipe(form="x"), CalibrationRecipe(size="8")):
        yield (
            f"a recipe of {recipe.method} {recipe.form} {recipe.size}",
            lambda r=recipe: calibration_images(inference, r),
        )  # type: ignore[misc]

    def refuse(text: str) -> None:
        raise nothing_to_quantize(text)

    yield "no product", lambda: refuse("net")
    yield "no calibration", lambda: quantized_variant(None, inference, Variant("v", "int8"))  # type: ignore[arg-type]
    odd = Variant("v", "int8", {"a": "int4"}, calibration=CalibrationRecipe("x"))
    yield "other integers", lambda: quantized_variant(None, inference, odd)  # type: ignore[arg-type]

    class Ends:
        layers = ("a", "b")

        def kept_by_default(self) -> dict[str, str]:
            return {"a": "first layer", "b": "last layer"}

    yield "only ends", lambda: quantize(Ends(), None)  # type: ignore[arg-type]

    opened = session(registry)
    save_weights(folder / "some", {k: v for k, v in opened.weights.tensors.items() if k.layer == "a"})
    save_weights(folder / "other", {k: np.zeros((7, *v.shape), np.float32) for k, v in opened.weights.tensors.items()})
    for name in ("some", "other", "nowhere"):
        variant = Variant("v", weights=str(folder / name))
        act = partial(own_weights, variant, opened.graph, registry, opened.weights)
        yield f"weights of a variant: {name}", act
    validation = validate(Emulation(network(), registry, opened.weights, RunOptions(threads=1)), folder / "small")
    yield "a layer to keep that does not exist", lambda: choose_precision(validation, "fp16", keep=["b", "c"])
    yield (
        "images of which none can be used",
        lambda: validate(Emulation(network(), registry, opened.weights, RunOptions(threads=1)), folder / "empty"),
    )
    some = (Variant("a"), Variant("b"))
    yield "a variant that does not exist", lambda: find_variant(some, "c")
    yield "a variant of none", lambda: find_variant((), "c")
    yield "a variant without a name", lambda: changed(some, "a", Variant(" "))
    yield "a variant of a taken name", lambda: changed(some, "a", Variant("b"))
    for variant in (Variant("v", "fp4"), Variant("v", "int8", {"a": "int8", "b": "fp9"}), Variant("v", sparsity="1:2")):
        yield (
            f"an unknown variant {variant.precision} {variant.sparsity}",
            lambda v=variant: run_options(v, RunOptions(), network()),
        )  # type: ignore[misc]


def test_why_a_precision_is_refused(registry: Registry, tmp_path: Path) -> None:
    lines = []
    for name, make in cases(registry, tmp_path):
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                make()
        except DiagnosticError as error:
            found = error.diagnostics
        else:
            found = ()
        lines.append(name)
        for d in found:
            place = ", ".join(map(str, filter(None, (d.file, d.layer))))
            lines.append(f"  {d.code} ({place}): {d.message}; {d.remedy}".replace(str(tmp_path), "FOLDER"))
    check_recorded("refused_precisions.txt", "\n".join([*lines, ""]))


def test_progress_of_what_takes_long_is_said(registry: Registry) -> None:
    steps: list[tuple[int, int, str]] = []
    made = BitsMeasurement(session(registry))
    layers = made.layer_bits(lambda *step: steps.append(step))
    assert steps == [(0, 2, "Measuring a"), (1, 2, "Measuring b")]
    assert [(each.layer, each.weights, each.vectors) for each in layers] == [("a", 4 * 27 + 4, 4), ("b", 3 * 36 + 3, 3)]
    steps.clear()
    points = made.points(layers, lambda *step: steps.append(step))
    count = len(points)
    assert steps == [(n, count, f"Measuring choice {n + 1} of {count}") for n in range(count)]

    class Choices:
        layers = ("a", "b", "c")

        def kept_by_default(self) -> dict[str, str]:
            return {}

        def quantized(self, layers: Any) -> Any:
            return set(layers)

    steps.clear()
    fidelity = SimpleNamespace(psnr=lambda model, count=None: 10.0 / max(len(model), 1))
    quantize(Choices(), fidelity, 9.0, lambda *step: steps.append(step))  # type: ignore[arg-type]
    assert [text for _, _, text in steps] == [
        "Measuring a", "Measuring b", "Measuring c",
        "0 sensitive layers in float", "1 sensitive layers in float", "2 sensitive layers in float",
    ]  # fmt: skip
