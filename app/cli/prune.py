"""`layerwright prune`: set two of every four weights to zero, and say what that gains and costs."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.console import err, out
from app.cli.options import FileArgument, WeightsOption
from designer.files.atomic import make_folder, write_atomic
from designer.files.tables import JSON
from designer.files.weights import WEIGHTS
from designer.graph.diagnostics import DiagnosticError
from designer.units import percent

if TYPE_CHECKING:
    from app.opened_network import OpenedNetwork
    from designer.files.weights import Weights
    from designer.runtime.api import Array
    from designer.surgery.sparsity import Candidate, Pruned
    from exporters.sparse_sweep import SweepRow


class Pattern(StrEnum):
    """Patterns of zeros that hardware has."""

    TWO_OF_FOUR = "2:4"


def prune(
    file: FileArgument,
    weights: WeightsOption = None,
    pattern: Annotated[Pattern, typer.Option(help="Zeros along the input channels.")] = Pattern.TWO_OF_FOUR,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"Where to write the weights: {WEIGHTS.write_choices}."),
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="OUT", help="Write a report as .json.")] = None,
    validate: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A folder of images on which dense and sparse results are compared."),
    ] = None,
) -> None:
    """Prune weights to 2:4 sparsity. Without --output only check them: exit status 1 if they are not sparse."""
    from app.opened_network import load_weights_for, open_network
    from designer.surgery import sparsity
    from exporters.sparse_sweep import no_sweep, sparse_sweep

    _check_options(output, report, validate)
    network = open_network(file)
    found = sparsity.candidates(network.graph, network.registry)
    dense = load_weights_for(network, weights, None)
    err.print(sparsity.expected_gain(found), style="yellow", highlight=False)
    if not any(not one.reason for one in found):
        raise sparsity.nothing_to_prune(found)
    if output is None:
        _check(found, dense)
        return
    pruned = sparsity.prune(network.graph, network.registry, dense, found)
    stored = _save(network, pruned.weights, output, found)
    images = _compare(network, dense, stored, validate) if validate is not None else {}
    reason = no_sweep()
    sweep = [] if reason else sparse_sweep(network.graph, network.registry, dense, stored)
    if report is not None:
        write_atomic(
            report,
            (json.dumps(_report(found, pruned, images, sweep, reason), indent=2, allow_nan=False) + "\n").encode(),
        )
    for kernel in pruned.kernels:
        out.print(
            f"{kernel.layer}: {percent(kernel.kept)} of the magnitude is kept"
            f" ({percent(kernel.kept_unpermuted)} without the permutation)",
            highlight=False,
        )
    for line in _skipped(found):
        out.print(line, highlight=False)
    if images:
        mean = sum(images.values()) / len(images)
        out.print(
            f"{mean:.2f} dB against the dense weights on {len(images)} images, before retraining", highlight=False
        )
    for row in sweep:
        out.print(
            f"batch {row.batch}: {row.dense:.3g} ms dense, {row.sparse:.3g} ms sparse ({row.dense / row.sparse:.2f} times as fast)",
            highlight=False,
        )
    if reason:
        out.print(f"times of dense and sparse weights: unavailable, {reason}", highlight=False)
    out.print(f"wrote {output}; retrain with: python train.py --from-weights {output} --sparse-2-4", highlight=False)


def _check_options(output: Path | None, report: Path | None, validate: Path | None) -> None:
    """Raise DiagnosticError for a report or a comparison of weights that are not pruned, and for an unknown format."""
    without = next((name for name, given in (("--report", report), ("--validate", validate)) if given is not None), "")
    if output is None and without:
        raise DiagnosticError.of(
            "bad-option", f"{without} needs --output", remedy="give --output with the weights to write"
        )
    if report is not None:
        JSON.writer(report)  # rejects unknown formats before anything is read


def _skipped(found: tuple[Candidate, ...]) -> list[str]:
    return [f"{one.layer} is not pruned: {one.reason}" for one in found if one.reason]


def _check(found: tuple[Candidate, ...], weights: Weights) -> None:
    """Print the groups of four with more than two values; exit status 1 if there are any."""
    from designer.surgery.sparsity import check_sparse

    counts = check_sparse(found, weights)
    for layer, count in counts.items():
        out.print(f"{layer}: {f'{count} groups of four are not 2:4 sparse' if count else 'sparse'}", highlight=False)
    for line in _skipped(found):
        out.print(line, highlight=False)
    if any(counts.values()):
        raise typer.Exit(1)


def _save(network: OpenedNetwork, weights: Weights, output: Path, found: tuple[Candidate, ...]) -> Weights:
    """Write the weights completely or not at all, read them again, and check every group of four."""
    from designer.files.weights import load_weights, required_weights, save_weights
    from designer.surgery.sparsity import check_sparse

    if output.is_dir() and any(output.iterdir()):
        raise DiagnosticError.of(
            "folder-not-empty", f"{output} has files; nothing was changed", remedy="choose a new folder"
        )
    make_folder(output.absolute().parent)
    try:
        stage = Path(tempfile.mkdtemp(prefix=".lw-prune-", dir=output.absolute().parent))
    except OSError as error:
        raise DiagnosticError.of(
            "cannot-save",
            f"{output} cannot be written: {error.strerror}",
            file=str(output),
            remedy="choose a writable folder on a disk with free space",
        ) from error
    try:
        made = stage / (output.name if output.suffix else "weights")
        save_weights(made, weights.tensors)
        stored = load_weights(made, required_weights(network.inference))
        wrong = [layer for layer, count in check_sparse(found, stored).items() if count]
        if wrong:
            raise DiagnosticError.of(
                "not-sparse", f"'{wrong[0]}' is not 2:4 sparse", layer=wrong[0], remedy="report this network as a bug"
            )
        os.replace(made, output)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return stored


def _compare(network: OpenedNetwork, dense: Weights, sparse: Weights, folder: Path) -> dict[str, float]:
    """PSNR in dB of the results with sparse weights against those with dense ones, by image."""
    from designer.metrics import psnr
    from designer.precision.image_set import read_image_set
    from designer.runtime.session import Session

    images = read_image_set(network.inference, folder, count=32)
    for name, reason in images.skipped.items():
        err.print(f"skipped {name}: {reason}", highlight=False)
    sessions = [Session(network.graph, network.registry, weights) for weights in (dense, sparse)]
    found = {}
    for name, feeds in zip(images.names, images.feeds, strict=True):
        results: list[Array] = []
        for session in sessions:
            for layer, array in feeds.items():
                session.set_input(layer, array, is_image=False)
            results.append(next(iter(session.run().outputs.values())))
        found[name] = psnr(results[0], results[1])
    return found


def _report(
    found: tuple[Candidate, ...], pruned: Pruned, images: Mapping[str, float], sweep: Sequence[SweepRow], reason: str
) -> dict[str, Any]:
    from designer.surgery.sparsity import expected_gain

    kernels = {kernel.layer: kernel for kernel in pruned.kernels}
    layers = []
    for one in found:
        kernel = kernels.get(one.layer)
        layers.append(
            {
                "layer": one.layer,
                "inputs": one.inputs,
                "outputs": one.outputs,
                "share_of_operations": one.work,
                "can_be_faster": one.gains,
                "pruned": kernel is not None,
                "reason": one.reason,
                **({"kept": kernel.kept, "kept_unpermuted": kernel.kept_unpermuted} if kernel is not None else {}),
            }
        )
    return {
        "pattern": Pattern.TWO_OF_FOUR.value,
        "gain": expected_gain(found),
        "layers": layers,
        "violations": 0,
        "psnr_db": _number(sum(images.values()) / len(images)) if images else None,
        "images": {name: _number(db) for name, db in images.items()},
        "batch_sweep": {"unavailable": reason} if reason else [asdict(row) for row in sweep],
    }


def _number(db: float) -> float | None:
    """A PSNR for JSON, which has no infinity; None if the images are equal."""
    return db if isfinite(db) else None
