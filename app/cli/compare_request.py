"""Runs variants of a network on the same images with the same noise, for `layerwright compare`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from app.cli.run_request import layers_with
from app.cli.trust import with_trust
from app.opened_network import OpenedNetwork, open_network
from app.reports.comparison import (
    LETTERS,
    ImageArray,
    Reference,
    Row,
    as_dict,
    check_comparable,
    check_same_size,
    clean_version,
    disturbed,
    images_in,
    measured,
    read_clean,
    read_noise,
)
from app.variant import open_variant
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.inference import Inference
from designer.graph.types import Size3D
from designer.operators.api import Role
from designer.operators.deploy import deploy
from designer.precision.variants import is_emulated
from designer.runtime.api import RunOptions
from designer.runtime.provenance import Provenance, provenance, texts_of

if TYPE_CHECKING:
    from analysis_layers.noise import Noise
    from designer.runtime.session import Session

T = TypeVar("T")
Each = Callable[[Row, ImageArray, ImageArray, Sequence[ImageArray]], None]


@dataclass(frozen=True)
class CompareArguments:
    """The arguments of a comparison. Weights, engines and what follows them have one entry for all variants, or one for each."""

    documents: Sequence[Path]
    images: Path
    clean: Path | None = None  # clean versions of noisy images: a folder, or one file
    noises: Sequence[str] = ()  # one comparison for each; empty: images without added noise
    seed: int = 0
    weights: Sequence[Path] = ()
    random_weights: int | None = None
    engines: Sequence[str] = ()
    options: RunOptions = field(default_factory=RunOptions)
    report: Path | None = None
    trust: Sequence[str] = ()
    precisions: Sequence[str] = ()
    layouts: Sequence[str] = ()
    devices: Sequence[str] = ()
    variants: Sequence[str] = ()  # names, empty: the network itself


@dataclass(frozen=True)
class NetworkVariant:
    """A network ready to run: its name in tables, and its input and output layer."""

    name: str
    session: Session
    input: str
    output: str
    channels: int
    note: str
    origin: Provenance
    emulated: bool

    def run(self, picture: ImageArray) -> ImageArray:
        self.session.set_input(self.input, picture, is_image=True)
        return self.session.run().outputs[self.output]


class Compared(NamedTuple):
    """Column names (the input, then the variants), one row per image and noise, and the variants' provenance."""

    columns: list[str]
    rows: list[Row]
    origin: dict[str, Provenance]


def compare(request: CompareArguments, progress: Callable[[str], None], each: Each | None = None) -> Compared:
    """Run all variants on all images.

    `each` is called with every row and its images: the original, the noisy one, and the result of each variant.
    """
    if request.clean is not None and request.noises:
        raise DiagnosticError(
            Diagnostic(
                "bad-option",
                "--clean expects noisy images, but --noise adds noise to clean ones",
                remedy="use only one of them",
            )
        )
    noises = [(text, read_noise(text, request.seed)) for text in request.noises or ("",)]
    pictures = images_in(request.images)
    variants = [_variant(request, index) for index in range(len(request.documents))]
    for variant in variants:
        if variant.note:
            progress(f"note: {variant.name}: {variant.note}")
    columns = [noises[0][0] if len(noises) == 1 and noises[0][0] else "input", *(variant.name for variant in variants)]
    rows: list[Row] = []
    compiled: set[tuple[int, ...]] = set()  # shapes of images that all variants have run
    for text, noise in noises:
        for path in pictures:
            progress(f"{path.name} {text} …".replace("  ", " "))
            image, noisy, results, times = _results(path, noise, variants, compiled)
            clean = image if noise is not None else None
            if request.clean is not None:
                clean = read_clean(path, request.clean, image)
                check_same_size(clean, results[0], clean_version(path, request.clean).name)
            reference = Reference.of(clean, results, columns[1:])
            titles = [text or "input", *columns[1:]] if request.report is not None else ()
            rows.append(measured(path.name, text, reference, noisy, results, times, titles))
            if each is not None:
                each(rows[-1], image, noisy, results)
    return Compared(columns, rows, {variant.name: variant.origin for variant in variants})


def to_json(request: CompareArguments, found: Compared) -> str:
    """The values and their provenance as JSON."""
    made = {
        "documents": [path.name for path in request.documents],
        "noise": list(request.noises),
        "seed": request.seed,
        "engines": list(request.engines) or [request.options.engine],
        "provenance": texts_of(found.origin),
        **as_dict(found.columns, found.rows),
    }
    return json.dumps(made, indent=2, allow_nan=False)


def _results(
    path: Path, noise: Noise | None, variants: Sequence[NetworkVariant], compiled: set[tuple[int, ...]]
) -> tuple[ImageArray, ImageArray, list[ImageArray], list[float]]:
    from designer.runtime.images import read_image

    clean = read_image(path, variants[0].channels)
    noisy = disturbed(clean, noise)
    results: list[ImageArray] = []
    times = []
    for variant in variants:
        if noisy.shape not in compiled:
            variant.run(noisy)  # the first run of a size also compiles the network; the next one is timed
        variant.session.invalidate()
        began = perf_counter()
        made = variant.run(noisy)
        times.append(nan if variant.emulated else (perf_counter() - began) * 1000)
        check_comparable(variant.name, variant.output, made, clean, results[0] if results else None)
        results.append(made)
    compiled.add(noisy.shape)
    return clean, noisy, results, times


def _variant(request: CompareArguments, index: int) -> NetworkVariant:
    path = request.documents[index]
    opened = open_network(path)
    network = without_observers(opened)
    inputs, outputs = layers_with(network, Role.INPUT), layers_with(network, Role.OUTPUT)
    if len(inputs) != 1 or not outputs:
        raise DiagnosticError(
            Diagnostic(
                "not-comparable",
                f"{path.name} has {len(inputs)} inputs and {len(outputs)} outputs",
                file=str(path),
                remedy="compare networks with one input and one output",
            )
        )
    given = _one_of("--weights", request.weights, index, len(request.documents))
    name = _one_of("--variant", request.variants, index, len(request.documents)) or ""
    options = _options(request, index)
    made = open_variant(network, name, given, request.random_weights, options)
    weights, options = made.weights, with_trust(made.network, made.options, request.trust)
    session = made.session(options)
    dims = getattr(network.inference.read(inputs[0]).operator, "dims", None)
    noise = "; ".join(request.noises)
    seed = str(request.seed) if noise else ""
    letter = LETTERS[index] if index < len(LETTERS) else str(index + 1)
    return NetworkVariant(
        f"{letter} {path.stem}" + (f" ({name})" if name else ""),
        session,
        inputs[0],
        outputs[0],
        dims.channels if isinstance(dims, Size3D) else 3,
        "; ".join(filter(None, (weights.note, made.note if is_emulated(session.options) else ""))),
        provenance(path.name, opened.graph, weights, session.options, noise=noise, noise_seed=seed),
        is_emulated(session.options),
    )


def _options(request: CompareArguments, index: int) -> RunOptions:
    """The options of the network number `index`."""
    count, base = len(request.documents), request.options
    return replace(
        base,
        engine=_one_of("--engine", request.engines, index, count) or base.engine,
        precision=_one_of("--precision", request.precisions, index, count) or base.precision,
        layout=_one_of("--layout", request.layouts, index, count) or base.layout,
        device=_one_of("--device", request.devices, index, count) or base.device,
    )


def _one_of(option: str, given: Sequence[T], index: int, count: int) -> T | None:
    if len(given) not in (0, 1, count):
        raise DiagnosticError(
            Diagnostic(
                "bad-option",
                f"{option} is given {len(given)} times for {count} variants",
                remedy="give it once for all variants, or once for each in their order",
            )
        )
    return given[index if len(given) > 1 else 0] if given else None


def without_observers(network: OpenedNetwork) -> OpenedNetwork:
    """The deployed network, without analysis layers: its own Noise layer would disturb one variant more than the others."""
    graph = deploy(network.graph, network.registry)
    return replace(network, graph=graph, inference=Inference(graph, network.registry))
