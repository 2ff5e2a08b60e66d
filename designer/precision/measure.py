"""What the variants of a network cost and gain: size, quality and time on the same input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan, prod
from pathlib import Path

from designer.files.variants import Variant
from designer.files.weights import Weights, load_weights, required_weights, weight_diagnostics
from designer.graph.diagnostics import DiagnosticError, errors
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.metrics import psnr, ssim
from designer.operators.references import restorations
from designer.precision.mixed import result_psnr
from designer.precision.variants import INT8, is_emulated, runnable_variant
from designer.runtime.api import Array, RunOptions
from designer.runtime.number_formats import FORMATS, OF_PRECISION, format_of
from designer.runtime.session import Session
from designer.texts import tr

SELF = Variant("")  # the network as it is, in FP32


@dataclass(frozen=True)
class VariantMeasurement:
    """`psnr` in dB and `ssim` against FP32, and against the clean image if the network has one; nan if unknown.

    `milliseconds` is nan for an emulated variant. `bytes` are those of the weights. `error` says why the variant does not run.
    """

    name: str
    bytes: int = 0
    psnr: float = nan
    ssim: float = nan
    clean_psnr: float = nan
    clean_ssim: float = nan
    milliseconds: float = nan
    emulated: bool = False
    error: str = ""


def measure_variants(
    session: Session, base: RunOptions, variants: Sequence[Variant], progress: Callable[[int, str], None]
) -> Iterator[VariantMeasurement]:
    """Measure the network of `session` in FP32 as `base` says, then its variants, all on the inputs of the session."""
    base = replace(base, precision="fp32", formats=())
    expected: Mapping[str, Array] | None = None
    for number, variant in enumerate((SELF, *variants)):
        progress(number, variant.name)
        try:
            ready = runnable_variant(variant, session.graph, session.registry, _weights(session, variant), base)
            made = Session(ready.graph, session.registry, ready.weights, ready.options)
            found, outputs = _measure(made, session, variant, expected)
        except DiagnosticError as error:
            found, outputs = VariantMeasurement(variant.name, error=error.diagnostics[0].message), None
        if variant is SELF:
            expected = outputs
        yield found


def _measure(
    session: Session, fed: Session, variant: Variant, expected: Mapping[str, Array] | None
) -> tuple[VariantMeasurement, Mapping[str, Array]]:
    for layer in fed.fed_layers():
        data = fed.fed(layer)
        session.set_input(layer, data.array, is_image=data.is_image)
    known = restorations(session.inference, session.output_layers())[:1]
    wanted: list[Source] = [source for item in known for source in (item.result, item.clean)]
    session.run(wanted)
    session.invalidate()  # the first run also builds the network
    result = session.run(wanted)
    emulated = is_emulated(session.options)
    found = VariantMeasurement(
        variant.name,
        weight_bytes(variant, session.inference),
        milliseconds=nan if emulated else result.milliseconds,
        emulated=emulated,
    )
    name = next(iter(result.outputs))
    if expected is not None and name in expected and expected[name].shape == result.outputs[name].shape:
        one, other = expected[name], result.outputs[name]
        found = replace(found, psnr=result_psnr(one, other), ssim=ssim(one, other) if one.ndim == 4 else nan)
    for item in known:
        clean, restored = result.captures[item.clean], result.captures[item.result]
        found = replace(found, clean_psnr=psnr(clean, restored), clean_ssim=ssim(clean, restored))
    return found, result.outputs


def weight_bytes(variant: Variant, inference: Inference) -> int:
    """The bytes of the weights, each tensor in the format of its layer."""
    otherwise = FORMATS[INT8] if variant.precision == INT8 else OF_PRECISION[variant.precision]
    needed = required_weights(inference)
    bits = sum(prod(w.shape) * format_of(key.layer, variant.formats, otherwise).bits for key, w in needed.items())
    return (bits + 7) // 8


def _weights(session: Session, variant: Variant) -> Weights:
    if not variant.weights:
        return session.weights
    needed = required_weights(Inference(session.graph, session.registry))
    found = load_weights(Path(variant.weights), needed)
    if not found.complete:
        wrong = errors(weight_diagnostics(found))
        raise (
            DiagnosticError(wrong)
            if wrong
            else DiagnosticError.of(
                "weights-missing",
                tr("weights are missing in {file}", file=variant.weights),
                remedy=tr("choose other weights for the variant"),
            )
        )
    return found
