"""What the variants of a network cost and gain: size, quality and time on the same input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from time import perf_counter

from designer.files.variants import Variant
from designer.files.weights import required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.metrics import psnr, result_psnr, ssim
from designer.operators.references import deployed_tensor, restorations
from designer.operators.registry import Registry
from designer.precision.variants import INT8, RunnableVariant, is_emulated, own_weights, runnable_variant
from designer.runtime.api import Array, RunOptions
from designer.runtime.engines.ort_engine import inference_session
from designer.runtime.engines.pytorch import TORCH
from designer.runtime.machine import physical_cores
from designer.runtime.network import evaluate
from designer.runtime.number_formats import FORMATS, OF_PRECISION, format_of
from designer.runtime.plan import AnalysisStep, PartStep
from designer.runtime.session import Session

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


Exporter = Callable[[RunnableVariant, Registry, Variant], bytes]
"""Makes the ONNX model of a calibrated INT8 variant."""


def measure_variants(
    session: Session,
    base: RunOptions,
    variants: Sequence[Variant],
    export: Exporter,
    progress: Callable[[int, str], None],
) -> Iterator[VariantMeasurement]:
    """Measure the network of `session` in FP32 as `base` says, then its variants, all on the inputs of the session.

    Calibrated INT8 runs in ONNX Runtime, as it is deployed, where the network has no analysis layer behind an operator that is INT8.
    """
    base = replace(base, precision="fp32", formats=())
    graph, registry = session.graph, session.registry
    expected: Mapping[str, Array] | None = None
    for number, variant in enumerate((SELF, *variants)):
        progress(number, variant.name)
        try:
            ready = runnable_variant(
                variant, graph, registry, own_weights(variant, graph, registry, session.weights), base
            )
            found, outputs = _measured(session, ready, variant, base, export, expected)
        except DiagnosticError as error:
            found, outputs = VariantMeasurement(variant.name, error=error.diagnostics[0].message), None
        if variant is SELF:
            expected = outputs
        yield found


@dataclass(frozen=True)
class _Run:
    """Outputs by layer, the time, and the restored image with the clean one if the network has one."""

    outputs: Mapping[str, Array]
    milliseconds: float
    restored: Array | None = None
    clean: Array | None = None


def _measured(
    fed: Session,
    ready: RunnableVariant,
    variant: Variant,
    base: RunOptions,
    export: Exporter,
    expected: Mapping[str, Array] | None,
) -> tuple[VariantMeasurement, Mapping[str, Array]]:
    run = None
    if variant.precision == INT8 and variant.calibration is not None:
        run = _run_deployed(
            _fed(fed, ready, replace(base, engine=TORCH.name)), lambda: export(ready, fed.registry, variant)
        )
    emulated = run is None and is_emulated(ready.options)
    run = run or _run(_fed(fed, ready, ready.options))
    found = VariantMeasurement(
        variant.name,
        weight_bytes(variant, Inference(ready.graph, fed.registry)),
        milliseconds=nan if emulated else run.milliseconds,
        emulated=emulated,
    )
    name = next(iter(run.outputs))
    if expected is not None and name in expected and expected[name].shape == run.outputs[name].shape:
        one, other = expected[name], run.outputs[name]
        found = replace(found, psnr=result_psnr(one, other), ssim=ssim(one, other) if one.ndim == 4 else nan)
    if run.clean is not None and run.restored is not None:
        found = replace(found, clean_psnr=psnr(run.clean, run.restored), clean_ssim=ssim(run.clean, run.restored))
    return found, run.outputs


def _fed(fed: Session, ready: RunnableVariant, options: RunOptions) -> Session:
    """A session for a variant with the inputs of another session."""
    session = Session(ready.graph, fed.registry, ready.weights, options)
    for layer in fed.fed_layers():
        data = fed.fed(layer)
        session.set_input(layer, data.array, is_image=data.is_image)
    return session


def _run(session: Session) -> _Run:
    known = restorations(session.inference, session.output_layers())[:1]
    wanted: list[Source] = [source for item in known for source in (item.result, item.clean)]
    session.run(wanted)
    session.invalidate()  # the first run also builds the network
    result = session.run(wanted)
    images = (session.unpadded(source, result.captures[source]) for source in wanted)
    restored, clean = images if wanted else (None, None)
    return _Run(result.outputs, result.milliseconds, restored, clean)


def _run_deployed(session: Session, model: Callable[[], bytes]) -> _Run | None:
    """Run the deployed model in the network of `session`, between its analysis layers; None if other operators come before or after."""
    inference, layers = session.inference, session.output_layers()
    results = [source for layer in layers if (source := deployed_tensor(inference, layer)) is not None]
    plan = session.plan(results)
    parts = [step for step in plan.steps if isinstance(step, PartStep)]
    if len(results) != len(layers) or len(parts) != 1 or len(parts[0].part.feeds) != 1:
        return None
    (feed,) = parts[0].part.feeds
    known = restorations(inference, layers)[:1]
    after = plan.steps[plan.steps.index(parts[0]) + 1 :]
    late = [step for step in after if isinstance(step, AnalysisStep)]
    before = [source for step in late for source in step.feeds]
    values = dict(session.run([feed, *before, *(item.clean for item in known)]).captures)
    runtime = inference_session(model(), physical_cores())
    feeds = {runtime.get_inputs()[0].name: values[feed]}
    runtime.run(None, feeds)  # the first run also prepares memory
    began = perf_counter()
    made = runtime.run(None, feeds)
    milliseconds = (perf_counter() - began) * 1000
    for source, array in zip(results, made, strict=True):
        values[source] = values[plan.origin[session.source(source)]] = array
    whole: set[Source] = set()  # without the padding of inputs
    for step in late:
        given = [
            values[one] if one in whole or not step.late else session.unpadded(one, values[one]) for one in step.feeds
        ]
        values.update(evaluate(inference, step.layer, given))
        whole.update(inference.tensors(step.layer) if step.late else ())
    origins = {layer: plan.origin[Source(layer)] for layer in layers}
    outputs = {n: values[o] if o in whole else session.unpadded(o, values[o]) for n, o in origins.items()}
    if not known:
        return _Run(outputs, milliseconds)
    restored, clean = (session.unpadded(one, values[one]) for one in (known[0].result, known[0].clean))
    return _Run(outputs, milliseconds, restored, clean)


def weight_bytes(variant: Variant, inference: Inference) -> int:
    """The bytes of the weights, each tensor in the format of its layer; with integers those of one dimension have 32 bits."""
    otherwise = FORMATS[INT8] if variant.precision == INT8 else OF_PRECISION[variant.precision]
    needed = required_weights(inference).items()
    bits = (format_of(key.layer, variant.formats, otherwise).weight_bits(weight.shape) for key, weight in needed)
    return (sum(bits) + 7) // 8
