"""How the named variants of a document run, and edits of their list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from designer.files.variants import BY_HAND, Variant
from designer.files.weights import Weights, load_weights, required_weights, weight_diagnostics
from designer.graph.diagnostics import DiagnosticError, errors
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.operators.inlining import inline
from designer.operators.registry import Registry
from designer.passes.passes import PASSES, optimize, rewritten_layers
from designer.runtime.api import PRECISIONS, RunOptions
from designer.runtime.engine_registry import EngineRegistry, default_engines
from designer.runtime.engines.forms import ONNX_RUNTIME
from designer.runtime.number_formats import FLOAT32, FORMATS, OF_PRECISION
from designer.surgery.sparsity import PATTERN, sparse_weights
from designer.texts import tr

INT8 = "int8"
VARIANT_PRECISIONS = (*PRECISIONS, INT8)
DENSE = "dense"
SPARSITIES = (DENSE, PATTERN)


def find_variant(variants: Sequence[Variant], name: str) -> Variant:
    """The variant called `name`. Raises DiagnosticError if there is none."""
    found = next((variant for variant in variants if variant.name == name), None)
    if found is None:
        names = ", ".join(f"'{variant.name}'" for variant in variants)
        raise DiagnosticError.of(
            "no-such-variant",
            tr("the network has no variant '{name}'", name=name),
            remedy=tr("choose one of {names}", names=names) if names else tr("add it in the Variants panel"),
        )
    return found


def run_options(variant: Variant, base: RunOptions, graph: Graph) -> RunOptions:
    """The options that run `variant` of `graph`, from those of the document.

    Where the engine and device do not compute in the precision of the variant, it is emulated. Raises DiagnosticError for a
    precision or number format that is not known here.
    """
    _check(variant)
    registry = default_engines()
    precision = "fp32" if variant.precision == INT8 else variant.precision
    options = replace(base, engine=variant.engine or base.engine, precision=precision)
    if variant.precision != INT8 and not variant.formats and _computes(registry, options):
        return options
    others = {layer.name: INT8 for layer in graph} if variant.precision == INT8 else {}
    emulating = next(engine for engine in registry if engine.formats)
    formats = tuple({**others, **variant.formats}.items())
    return replace(options, engine=emulating.name, device="cpu", layout="nchw", formats=formats)


def base_format(variant: Variant) -> str:
    """The number format of the layers that have none of their own."""
    return INT8 if variant.precision == INT8 else OF_PRECISION.get(variant.precision, FLOAT32).name


def with_formats(variant: Variant, formats: Mapping[str, str]) -> Variant:
    """The variant with other formats of single layers. Layers whose format was found and is now another are marked as changed by hand."""
    usual = base_format(variant)
    reasons = dict(variant.reasons)
    for layer in reasons.keys() | (formats.keys() if reasons else set()):
        if formats.get(layer, usual) != variant.formats.get(layer, usual):
            reasons[layer] = BY_HAND
    return replace(variant, formats=dict(formats), reasons=reasons)


def with_pass(variant: Variant, name: str, on: bool) -> Variant:
    """The variant with or without a graph pass; its passes are in the order in which they run."""
    return replace(variant, passes=tuple(each for each in PASSES if (on if each == name else each in variant.passes)))


class RunnableVariant(NamedTuple):
    """What a session needs to run a variant. `rewritten` are layers whose results changed, because passes merged others into them."""

    graph: Graph
    weights: Weights
    options: RunOptions
    rewritten: frozenset[str] = frozenset()


def runnable_variant(
    variant: Variant, graph: Graph, registry: Registry, weights: Weights, base: RunOptions
) -> RunnableVariant:
    """The network of a variant after its graph passes, with its options, and pruned weights if it is sparse.

    Raises DiagnosticError as `run_options`, `optimize` and `sparse_weights`.
    """
    options = run_options(variant, base, graph)
    if variant.sparsity == PATTERN:
        weights = sparse_weights(graph, registry, weights)
    if not variant.passes:
        return RunnableVariant(graph, weights, options)
    flat = inline(graph, registry)
    made = optimize(flat, registry, weights, variant.passes)
    return RunnableVariant(made.graph, made.weights, options, rewritten_layers(flat, weights, made))


def own_weights(variant: Variant, graph: Graph, registry: Registry, weights: Weights) -> Weights:
    """The weights in the file of a variant; `weights` if it has none. Raises DiagnosticError if the file lacks some."""
    if not variant.weights:
        return weights
    found = load_weights(Path(variant.weights), required_weights(Inference(graph, registry)))
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


def is_deployed(variant: Variant) -> bool:
    """Whether ONNX Runtime computes a variant as it is exported: calibrated INT8, with other layers in FP32."""
    return (
        variant.precision == INT8
        and variant.calibration is not None
        and variant.calibration.form in ("", ONNX_RUNTIME)
        and variant.engine in ("", ONNX_RUNTIME)
        and set(variant.formats.values()) <= {INT8, FLOAT32.name}
    )


def is_emulated(options: RunOptions) -> bool:
    """Whether results are rounded instead of computed in their format, so that times say nothing about the format."""
    known = default_engines().engines.get(options.engine)
    return known is not None and bool(known.formats)


def _computes(registry: EngineRegistry, options: RunOptions) -> bool:
    if options.precision == "fp32":
        return True
    device = registry.get(options.engine).device(options.device)
    return device is not None and options.precision in device.precisions


def _check(variant: Variant) -> None:
    wrong = [name for name in variant.formats.values() if name not in FORMATS]
    if variant.precision not in VARIANT_PRECISIONS or wrong:
        known = FORMATS if wrong else VARIANT_PRECISIONS
        raise DiagnosticError.of(
            "unknown-precision",
            tr(
                "the variant '{name}' uses the number format '{format}', which is not known",
                name=variant.name,
                format=wrong[0] if wrong else variant.precision,
            ),
            remedy=tr("choose one of {known}", known=", ".join(known)),
        )
    if variant.sparsity not in SPARSITIES:
        raise DiagnosticError.of(
            "unknown-sparsity",
            tr(
                "the variant '{name}' has the sparsity '{sparsity}', which is not known",
                name=variant.name,
                sparsity=variant.sparsity,
            ),
            remedy=tr("choose one of {known}", known=", ".join(SPARSITIES)),
        )


# --- edits of the list ----------------------------------------------------------------------------------------------


def added(variants: Sequence[Variant], variant: Variant) -> tuple[Variant, ...]:
    """The list with `variant` at the end, under a free name."""
    return (*variants, replace(variant, name=free_name(variants, variant.name)))


def changed(variants: Sequence[Variant], name: str, variant: Variant) -> tuple[Variant, ...]:
    """The list with `variant` instead of the one called `name`. Raises DiagnosticError for an empty or taken name."""
    if not variant.name.strip():
        raise DiagnosticError.of(
            "bad-variant-name", tr("a variant needs a name"), remedy=tr("write at least one letter")
        )
    if any(other.name == variant.name for other in variants if other.name != name):
        raise DiagnosticError.of(
            "bad-variant-name",
            tr("there is already a variant '{name}'", name=variant.name),
            remedy=tr("choose another name"),
        )
    return tuple(variant if other.name == name else other for other in variants)


def removed(variants: Sequence[Variant], name: str) -> tuple[Variant, ...]:
    return tuple(variant for variant in variants if variant.name != name)


def free_name(variants: Sequence[Variant], base: str) -> str:
    """`base`, with a number behind it if the name is taken."""
    taken, name, number = {variant.name for variant in variants}, base, 2
    while name in taken:
        name, number = f"{base} {number}", number + 1
    return name
