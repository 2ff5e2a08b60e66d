"""Edits of a network together with its weights, carried out in the engine process, where the weights are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from app.engine.protocol import SurgeryReply, SurgeryRequest
from designer.files.atomic import make_folder
from designer.files.document import parse_document, write_document
from designer.files.weight_versions import version_path
from designer.files.weights import load_weights, required_weights, save_weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.inference import Inference
from designer.operators.registry import default_registry
from designer.runtime.api import RunOptions
from designer.runtime.edit_effect import edit_effect
from designer.runtime.network import input_layers
from designer.runtime.session import Session
from designer.surgery.operations import (
    Operation,
    Patient,
    fold_batch_normalization,
    insert_identity,
    prune_2_4,
    remove_channels,
    set_features,
    split_layer,
)
from designer.texts import tr

Operate = Callable[[Patient, SurgeryRequest], Operation]
OPERATIONS: Mapping[str, Operate] = {
    "features": lambda patient, request: set_features(patient, request.layer, request.features),
    "remove": lambda patient, request: remove_channels(patient, request.layer, request.channels),
    "identity": lambda patient, request: insert_identity(patient, request.layer, 0),
    "split": lambda patient, request: split_layer(patient, request.layer),
    "fold": lambda patient, request: fold_batch_normalization(patient, request.layer),
    "prune": lambda patient, request: prune_2_4(patient),
}


def operate(request: SurgeryRequest) -> SurgeryReply:
    """The edited document, and a file in `folder` with its weights. The file of the original weights stays as it is."""
    reading = parse_document(request.document.encode())
    if reading.graph is None:
        raise DiagnosticError(reading.diagnostics)
    graph, registry = reading.graph, default_registry()
    needed = required_weights(Inference(graph, registry))
    weights = load_weights(Path(request.weights), needed)
    if not weights.complete:
        raise DiagnosticError(
            Diagnostic(
                "weights-missing",
                tr("the edit needs weights for every layer, and some are missing in {name}", name=request.weights),
                remedy=tr("choose the weights of this network in Network Settings"),
            )
        )
    made = OPERATIONS[request.operation](Patient(graph, registry, weights), request)
    after = graph.copy()
    after.apply(made.edit)
    options = RunOptions(agreed=request.agreed)
    effect = edit_effect(
        _fed(Session(graph, registry, weights, options), request.inputs),
        _fed(Session(after, registry, made.weights, options), request.inputs),
    )
    path = version_path(Path(request.folder), Path(request.weights))
    make_folder(path.parent)
    save_weights(path, made.weights.tensors)
    return SurgeryReply(write_document(after).decode(), made.edit.title, str(path), str(effect), effect.kept)


def _fed(session: Session, files: Mapping[str, str]) -> Session:
    """The session with the files of its inputs, and noise for inputs without a file."""
    for layer in input_layers(session.graph, session.inference):
        state = session.inference.states[layer]
        if layer in files:
            session.set_input_file(layer, Path(files[layer]))
        elif state.outputs is not None:
            values = np.random.default_rng(0).random(state.outputs[0].concrete(), np.float32)
            session.set_input(layer, values, is_image=False)
    return session
