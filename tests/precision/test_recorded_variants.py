"""How every combination of precision, formats, engine and calibration runs and is refused, as recorded."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from recorded import check_recorded
from runtime_networks import layer

from designer.files.variants import CalibrationRecipe, Variant
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.precision import int8
from designer.precision.variants import base_format, is_deployed, is_emulated, run_options, with_formats
from designer.runtime.api import RunOptions

GRAPH = Graph([layer("in", "input", dims="5x4x3"), layer("c", "convolution", "in", None), layer("out", "output", "c")])
PRECISIONS = ("fp32", "fp16", "bf16", "int8", "fp8")
FORMATS: tuple[dict[str, str], ...] = (
    {},
    {"c": "float32"},
    {"c": "int8"},
    {"c": "int4"},
    {"c": "float16", "in": "int4"},
    {"c": "text"},
)
RECIPES = (
    CalibrationRecipe("f"), CalibrationRecipe("f", form="tensorrt"), CalibrationRecipe("f", form="other"), CalibrationRecipe("f", method="mean"),
    CalibrationRecipe("f", size="big"), CalibrationRecipe("f", 3, "32x16", "percentile", 99.0),
)  # fmt: skip


def answer(call: Callable[[], object]) -> str:
    try:
        return str(call())
    except DiagnosticError as error:
        return str(error)


def options_text(variant: Variant, base: RunOptions) -> str:
    found = run_options(variant, base, GRAPH)
    return f"{found.engine} {found.precision} {found.layout} {found.device} {found.threads} {dict(found.formats)} {is_emulated(found)}"


def test_how_variants_run() -> None:
    lines = []
    bases = (RunOptions("onnxruntime", "fp16", "nhwc", "cpu", 2), RunOptions("torch", "fp32", "nchw", "cuda:0", 1))
    for precision, formats, engine in itertools.product(PRECISIONS, FORMATS, ("", "torch", "emulated")):
        variant = Variant("v", precision, formats, engine=engine)
        found = [answer(lambda base=base, variant=variant: options_text(variant, base)) for base in bases]  # type: ignore[misc]
        lines.append(f"{precision} {formats} {engine!r}: {found[0]}{f' | {found[1]}' if found[1] != found[0] else ''}")
    for precision, formats in itertools.product(PRECISIONS, FORMATS):
        calibrated = [
            is_deployed(Variant("v", precision, formats, calibration=recipe)) for recipe in (None, *RECIPES[:3])
        ]
        others = [
            is_deployed(Variant("v", precision, formats, engine=engine, calibration=RECIPES[0]))
            for engine in ("onnxruntime", "torch")
        ]
        before = Variant("v", precision, formats, reasons={"c": "found"})
        after = [
            dict(with_formats(before, other).reasons)
            for other in ({}, {"c": "float16"}, {"c": "int8", "in": "float32"})
        ]
        lines.append(f"{precision} {formats}: {base_format(before)} {calibrated} {others} {after}")
        lines.append(f"  {dict(with_formats(Variant('v', precision, formats), {'in': 'float16'}).reasons)}")
    check_recorded("precision/variants.txt", "\n".join([*lines, ""]))


def test_which_variants_are_quantized(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is handed to the quantizer: the layers that are INT8, and the recipe."""
    quantizer = SimpleNamespace(layers=("c", "d", "e"), quantized=lambda layers: ("INT8", *layers))
    asked: list[Any] = []

    def calibrate(model: Any, inference: Any, recipe: Any) -> Any:
        asked.append((model, inference, recipe))
        return SimpleNamespace(quantizer=quantizer)

    monkeypatch.setattr(int8, "calibrate", calibrate)
    lines = []
    for precision, formats, recipe in itertools.product(PRECISIONS[2:4], FORMATS[:-1], (None, RECIPES[0])):
        variant = Variant("v", precision, formats, calibration=recipe)
        found = answer(lambda variant=variant: int8.quantized_variant("model", "network", variant))  # type: ignore
        lines.append(f"{precision} {formats} {'calibrated' if recipe else ''}: {found} {asked}")
        asked.clear()
    lines += [f"{recipe}: {answer(lambda recipe=recipe: int8._check(recipe))}" for recipe in RECIPES]  # type: ignore[misc]
    check_recorded("precision/quantized.txt", "\n".join([*lines, ""]))
