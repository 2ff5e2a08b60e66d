"""Runs a network on files and writes its outputs and captured layers, for `layerwright run`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from app.cli.console import err
from app.cli.options import one_each
from app.cli.trust import with_trust
from app.engine.cluster_job import process_on_cluster
from app.engine.folder_job import (
    MEASURED,
    FolderJob,
    is_folder_job,
    job_key,
    process_folders,
    skipped_files,
    throughput,
)
from app.engine.video_job import VideoJob, moves, process
from app.opened_network import OpenedNetwork, open_network
from app.variant import OpenedVariant, open_variant
from designer.files.settings import MAX_TILE
from designer.files.variants import Variant
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.model import Source
from designer.operators.api import Operator, Role
from designer.operators.inlining import inline
from designer.operators.training_branch import training_only
from designer.precision.variants import is_emulated
from designer.runtime.api import AUTO, RunOptions, RunResult
from designer.runtime.engine_registry import default_engines
from designer.runtime.finite import nonfinite
from designer.runtime.images import ARRAYS, write_array
from designer.runtime.nonfinite import trace_nonfinite
from designer.runtime.provenance import noise_layers, provenance
from designer.runtime.session import Session
from designer.runtime.sources import INPUTS, kind_of
from designer.runtime.video_formats import VIDEOS
from designer.units import digits, dims_text, duration


@dataclass(frozen=True)
class RunArguments:
    """The arguments of a run: layers and the files that they are read from or written to."""

    document: Path
    weights: Path | None = None
    seed: int | None = None
    inputs: Mapping[str, Path] = field(default_factory=dict)
    outputs: Sequence[tuple[str, Path]] = ()  # a layer can be written to several files
    captures: Sequence[tuple[str, Path]] = ()
    options: RunOptions = field(default_factory=RunOptions)
    iterations: int = 1
    trust: Sequence[str] = ()  # digests of approved sources, or "ask"
    variant: str = ""  # its name
    video: VideoJob = field(
        default_factory=lambda: VideoJob({}, {})
    )  # frame range and encoding, if an input is a video or a folder
    progress: Callable[[int, int, str], None] | None = None  # of frames
    throughput: bool = False  # measure images per second instead of writing
    cluster: str = ""  # the address of a Ray cluster that runs folders
    against: str = ""  # an engine or a variant that is measured too


def layers_with(network: OpenedNetwork, role: Role) -> list[str]:
    """Names of the layers with `role` in inference, sorted."""
    found = []
    training = network.training
    for name in sorted(network.graph.layers):
        if name in training:
            continue
        operator = network.inference.read(name).operator
        if isinstance(operator, Operator) and operator.role is role:
            found.append(name)
    return found


def run_network(request: RunArguments) -> Iterator[str]:
    """Run the network and write files. Yields one line of text per result."""
    network = open_network(request.document)
    _check_request(network, request)
    opened = open_variant(
        network, request.variant, request.weights, request.seed, request.options, passes=not request.captures
    )
    options = with_trust(network, opened.options, request.trust)
    if request.cluster or request.captures:  # nodes of a cluster get options, and hidden layers of INT8 are emulated
        session = Session(opened.network.graph, network.registry, opened.weights, options)
    else:
        session = opened.session(options)
    if opened.note and is_emulated(session.options):
        yield f"note: {opened.note}"
    if request.cluster and not is_folder_job(request.inputs.values(), (path for _, path in request.outputs)):
        raise DiagnosticError.of(
            "no-frames", "--cluster runs folders of images", remedy="give --input NAME=FOLDER and --output NAME=FOLDER"
        )
    if request.throughput:
        yield from _measure(network, session, request)
    elif request.outputs and is_folder_job(request.inputs.values(), (path for _, path in request.outputs)):
        yield from _run_folders(session, opened.variant, request)
    elif any(moves(path) for path in request.inputs.values()):
        yield from _run_frames(session, request)
    else:
        yield from _run_once(session, request)


def _check_request(network: OpenedNetwork, request: RunArguments) -> None:
    """Raise DiagnosticError for missing layers, inputs without a file, and unsupported file formats."""
    if request.against and not request.throughput:
        raise DiagnosticError.of(
            "bad-option", "--against needs --throughput", remedy="give --throughput too, or use layerwright compare"
        )
    training = network.training
    written = [name for name, _ in request.outputs]
    absent = [name for name in (*request.inputs, *written) if name in training]
    if absent:
        raise DiagnosticError(training_only(name) for name in absent)
    inputs = layers_with(network, Role.INPUT)
    _check_names("--input", "input", request.inputs, inputs)
    _check_names("--output", "output", written, layers_with(network, Role.OUTPUT))
    known = {**network.graph.layers, **inline(network.graph, network.registry).layers}
    _check_names("--capture", "layer", [name.partition(":")[0] for name, _ in request.captures], known)
    missing = [name for name in inputs if name not in request.inputs]
    if missing:
        raise DiagnosticError(
            Diagnostic(
                "input-missing",
                f"the input '{missing[0]}' has no file",
                layer=missing[0],
                remedy=f"give --input {missing[0]}=picture.png",
            )
        )
    _check_files(request)


def _run_once(session: Session, request: RunArguments) -> Iterator[str]:
    for name, path in request.inputs.items():
        session.set_input_file(name, path)
    sources = [(Source.parse(name), path) for name, path in request.captures]
    capture = tuple(dict.fromkeys(source for source, _ in sources))
    result = session.run(capture=capture)
    times = [result.milliseconds] if request.iterations == 1 else []  # the first run also builds the network
    while len(times) < request.iterations:
        session.invalidate()
        times.append(session.run(capture=capture).milliseconds)
    for note in (result.weights_note, result.note):
        if note:
            yield f"note: {note}"
    _warn_of_nonfinite(session, result)
    origin = provenance(
        request.document.name, session.graph, session.weights, session.options, **noise_layers(session.inference)
    )
    for name, path in request.outputs:
        write_array(path, result.outputs[name], origin.comment())
        yield f"{name} -> {path}  {_shape(result.outputs[name])}"
    for source, path in sources:
        write_array(path, result.captures[source], origin.comment())
        yield f"{source} -> {path}  {_shape(result.captures[source])}{_padding_note(session, source)}"
    if not request.outputs and not sources:
        yield "nothing was written: give --output NAME=PATH or --capture LAYER=PATH"
    took = f"median {duration(median(times))} of {len(times)}"
    if request.iterations == 1:
        took = f"{duration(times[0])}, including the time to build the network"
    yield f"{session.options.engine} {request.variant or session.options.precision}: {took}"


def _warn_of_nonfinite(session: Session, result: RunResult) -> None:
    """Name the first layer with values that are NaN or infinite, which another run locates, on the error stream."""
    if not result.hidden and all(nonfinite(array) is None for array in result.outputs.values()):
        return
    trace = trace_nonfinite(session)
    if trace.found is None:
        return
    kind = "NaN" if trace.found.kind == "nan" else "infinity"
    cause = f"; {trace.note}" if trace.note else ""
    err.print(
        f"warning: {kind} is first in '{trace.layer}' ({digits(100 * trace.found.share)} % of its values){cause}. "
        "Outputs can be wrong, even if they are finite"
    )


def _run_frames(session: Session, request: RunArguments) -> Iterator[str]:
    """Run every frame of the input videos and folders and write videos or folders."""
    if not request.outputs:
        raise DiagnosticError.of(
            "no-output", "a video or a folder needs --output", remedy="give --output NAME=result.mkv, or NAME=folder"
        )
    outputs = one_each("--output", request.outputs)
    job = replace(request.video, inputs=request.inputs, outputs=outputs)
    done = process(session, job, request.progress)
    yield from (f"note: {note}" for note in done.notes)
    yield from (f"{name} -> {path}" for name, path in outputs.items())
    each = done.seconds * 1000 / done.frames
    yield f"{done.frames} frames at {done.fps:.4g} frames per second; {duration(each)} per frame, including reading and writing"


def _run_folders(session: Session, variant: Variant | None, request: RunArguments) -> Iterator[str]:
    """Run every image of folders. Raises DiagnosticError at the end for the images that were skipped."""
    outputs = one_each("--output", request.outputs)
    job = FolderJob(request.inputs, outputs, request.video.start, request.video.stop, request.video.kind)
    key = job_key(session, session.weights.sha256, variant)
    if request.cluster:
        done = process_on_cluster(request.cluster, session, job, key, request.progress)
    else:
        done = process_folders(session, job, key, request.progress)
    yield from (f"note: {note}" for note in done.notes)
    yield from (f"{name} -> {path}" for name, path in outputs.items())
    before = f", {done.before} were finished before" if done.before else ""
    rate = f" at {done.written / done.seconds:.4g} images per second" if done.written else ""
    yield f"{done.written} images{rate}, including reading and writing{before}, {len(done.skipped)} skipped"
    if done.skipped:
        raise DiagnosticError(skipped_files(done.skipped))


def _measure(network: OpenedNetwork, session: Session, request: RunArguments) -> Iterator[str]:
    """Images per second of the session, and of another engine or variant on the same images in the same run."""
    if not any(kind_of(path) == "folder" for path in request.inputs.values()):
        raise DiagnosticError.of(
            "no-frames", "--throughput needs a folder of images", remedy="give --input NAME=FOLDER"
        )
    sessions = {_title(session.options): session}
    if request.against:
        other = _against(request, network)
        compared = other.session(other.options)
        sessions[f"{request.against}: {_title(compared.options)}"] = compared
    measured = throughput(sessions, FolderJob(request.inputs, {}), request.progress)
    first = measured[0]
    for one in measured:
        factor = f" ({one.rate / first.rate:.3g} times)" if one is not first else ""
        yield (
            f"{one.title}: {one.rate:.4g} images per second{factor}; {MEASURED} images take "
            f"{duration(one.seconds_of_many * 1000)}"
        )
    yield f"measured on {first.images} images in turn, without reading and writing"


def _title(options: RunOptions) -> str:
    return f"{options.engine} {options.precision}" + (
        " (emulated: no statement about speed)" if is_emulated(options) else ""
    )


def _against(request: RunArguments, network: OpenedNetwork) -> OpenedVariant:
    """The network of `--against`: as it is with another engine, or a variant in the settings of the document."""
    engine = request.against in default_engines().engines
    name, options = (
        ("", replace(request.options, engine=request.against)) if engine else (request.against, request.options)
    )
    found = open_variant(network, name, request.weights, request.seed, options)
    return found._replace(options=with_trust(found.network, found.options, request.trust))


def tile_of(text: str) -> int:
    """Parse `--tile`: the side of a tile in pixels, 0 for off, or AUTO. Raises DiagnosticError for other text."""
    words = {"auto": AUTO, "off": 0}
    if text in words:
        return words[text]
    if text.isascii() and text.isdigit() and 0 < int(text) <= MAX_TILE:
        return int(text)
    raise DiagnosticError(
        Diagnostic(
            "bad-tile",
            f"--tile: '{text[:40]}' is not a tile size",
            remedy=f"give auto, off, or pixels from 1 to {MAX_TILE}",
        )
    )


def _check_files(request: RunArguments) -> None:
    """Raise DiagnosticError for files of unknown formats before anything runs."""
    for path in request.inputs.values():
        if kind_of(path) == "image":
            INPUTS.reader(path)
    moving = any(moves(path) for path in request.inputs.values())
    if moving and request.captures:
        raise DiagnosticError.of(
            "no-output", "--capture works only for single images", remedy="use --output, or give --input one image"
        )
    for _, path in (*request.outputs, *request.captures):
        if not moving:
            ARRAYS.writer(path)
        elif path.suffix:  # a path without a suffix is a folder
            VIDEOS.writer(path)


def _shape(array: NDArray[np.float32]) -> str:
    return dims_text(array.shape)


def _padding_note(session: Session, source: Source) -> str:
    """A note on padding: captured layers have the padded size, while outputs are cropped."""
    found = session.padding(source)
    if found is None:
        return ""
    (height, width), (padded_height, padded_width) = found
    return f"  (of the input padded from {width} x {height} to {padded_width} x {padded_height})"


def _check_names(option: str, kind: str, given: Iterable[str], known: Mapping[str, object] | list[str]) -> None:
    for name in given:
        if name not in known:
            choices = ", ".join(sorted(known)[:8]) or "none"
            raise DiagnosticError(
                Diagnostic(
                    "no-such-layer", f"{option}: there is no {kind} '{name}'", layer=name, remedy=f"choose: {choices}"
                )
            )
