"""Runs the images of folders on a Ray cluster, for `layerwright run --cluster`. Results are the same as those of a local run.

Images travel as bytes, so the nodes need no common disk, only this program in the same version. Ray repeats what a lost node had
not returned. The journal of the local run lists what was written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

from app.engine.cluster import Cluster
from app.engine.folder_job import (
    FolderDone,
    FolderJob,
    Frame,
    Progress,
    check_usable,
    frames_of,
    opened_journal,
    source_of,
    targets_of,
    unfinished,
)
from app.engine.frames import operator_of
from designer.files.atomic import write_atomic
from designer.files.document import parse_document, write_document
from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.operators.registry import default_registry
from designer.runtime.animation import Animation
from designer.runtime.api import RunOptions
from designer.runtime.images import write_array
from designer.runtime.provenance import noise_layers, provenance
from designer.runtime.session import Session
from designer.runtime.sources import Sources
from designer.texts import tr

AT_ONCE = 256  # images that are sent to the cluster together

Row = dict[str, Any]


@dataclass(frozen=True)
class RemoteNetwork:
    """What a node needs to run the network."""

    document: bytes
    weights: Weights
    options: RunOptions
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kind: str
    comment: str


class Runner:
    """Runs one image after the other in a process of a node."""

    def __init__(self, network: RemoteNetwork) -> None:
        reading = parse_document(network.document)
        if reading.graph is None:
            raise DiagnosticError(reading.diagnostics)
        self._network = network
        self._session = Session(reading.graph, default_registry(), network.weights, network.options)
        self._animation = Animation(self._session)

    def __call__(self, row: Row) -> Row:
        try:
            results, notes = self._run(row)
        except DiagnosticError as error:
            return {"index": row["index"], "skipped": error.diagnostics[0].message, "results": [], "notes": []}
        return {"index": row["index"], "skipped": "", "results": results, "notes": notes}

    def _run(self, row: Row) -> tuple[list[bytes], list[str]]:
        """The files of the outputs, from those of the inputs, and the notes of the run."""
        network, session = self._network, self._session
        with tempfile.TemporaryDirectory(prefix="layerwright-") as folder:
            for layer, name, data in zip(network.inputs, row["names"], row["files"], strict=True):
                path = Path(name)
                if data:
                    path = Path(folder) / f"input{path.suffix}"
                    path.write_bytes(data)
                taken = Sources().take(path, operator_of(session, layer))
                session.set_input(layer, taken.array, is_image=taken.is_image)
            self._animation.show(row["number"])
            result = session.run()
            made = []
            for layer in network.outputs:
                path = Path(folder) / f"output{network.kind}"
                write_array(path, result.outputs[layer], network.comment)
                made.append(path.read_bytes())
        return made, list(result.notes())


def process_on_cluster(
    address: str, session: Session, job: FolderJob, key: str, progress: Progress | None = None
) -> FolderDone:
    """Run all images that are not finished on the Ray cluster at `address`. Raises DiagnosticError as `process_folders` does."""
    frames = frames_of(job)
    journal = opened_journal(job, key)
    rest = unfinished(frames, job, journal)
    before, began = len(frames) - len(rest), perf_counter()
    skipped: dict[str, str] = {}
    notes: dict[str, None] = {}
    written = 0
    with Cluster(address):
        for row in _rows(_remote(session, job), rest):
            frame = rest[row["index"]]
            notes.update(dict.fromkeys(map(str, row["notes"])))
            if row["skipped"]:
                skipped[source_of(frame, job)] = row["skipped"]
            else:
                for path, data in zip(targets_of(frame, job), row["results"], strict=True):
                    write_atomic(path, data)
                journal.add(frame)
                written += 1
            if progress is not None:
                progress(before + written + len(skipped), len(frames), frame.name)
    check_usable(skipped, frames)
    return FolderDone(written, before, skipped, perf_counter() - began, tuple(notes))


def _remote(session: Session, job: FolderJob) -> RemoteNetwork:
    graph = session.graph
    origin = provenance(graph.name, graph, session.weights, session.options, **noise_layers(session.inference))
    options = replace(session.options, threads=max(session.options.threads, 1))  # one processor per process
    return RemoteNetwork(
        write_document(graph),
        _weights_by_layer(graph, session.weights),
        options,
        tuple(job.inputs),
        tuple(job.outputs),
        job.kind,
        origin.comment(),
    )


def _weights_by_layer(graph: Graph, weights: Weights) -> Weights:
    """The weights of each layer under its own name: a document does not say which layers share them after graph passes."""
    owners = {layer.name: layer.weights_of for layer in graph if layer.weights_of}
    tensors = {
        WeightKey(name, key.tensor): tensor
        for name, owner in owners.items()
        for key, tensor in weights.tensors.items()
        if key.layer == owner
    }
    return replace(weights, tensors={**weights.tensors, **tensors})


def _rows(network: RemoteNetwork, frames: Sequence[Frame]) -> Iterator[Mapping[str, Any]]:
    """The results in any order. Raises DiagnosticError if the cluster fails."""
    import ray
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    waiting = enumerate(frames)
    while chunk := list(islice(waiting, AT_ONCE)):
        items = ray.data.from_items([_row(index, frame) for index, frame in chunk], override_num_blocks=len(chunk))
        processes = ray.data.ActorPoolStrategy(min_size=1, max_size=max(int(ray.cluster_resources()["CPU"]), 1))
        made = items.map(Runner, fn_constructor_args=(network,), compute=processes, num_cpus=1)
        try:
            yield from made.iter_rows()
        except ray.exceptions.RayError as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[-1][:300]
            raise DiagnosticError.of(
                "cluster-failed",
                tr("the cluster failed: {reason}", reason=reason),
                remedy=tr("install the same version of Layerwright on every node, and repeat the command"),
            ) from error


def _row(index: int, frame: Frame) -> Row:
    """An image as bytes; patterns travel as their names."""
    paths = list(frame.files.values())
    files = [path.read_bytes() if path.is_file() else b"" for path in paths]
    return {"index": index, "number": frame.number, "names": [str(path) for path in paths], "files": files}
