"""Edits of the network together with its trained weights. Each is one undo step that says what it did to the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QObject, Qt, Signal

from app.engine.protocol import SurgeryReply, SurgeryRequest
from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.call import EngineCall, Findings
from app.ui.engine.context import Context
from app.ui.widgets.sentences import placed_text
from designer.files.agreements import agreed
from designer.files.document import parse_document, write_document
from designer.files.weight_versions import is_version, weight_versions
from designer.files.weights import load_weights, required_weights, save_weights
from designer.graph.commands import replace_layers
from designer.graph.diagnostics import Diagnostic
from designer.graph.model import Layer
from designer.texts import tr

Operation = Literal["features", "remove", "identity", "split", "fold", "prune"]


class WeightSurgery(QObject):
    """Asks the engine, which has the weights, and commits its answer. The edited weights are a new file; the setting
    `weights` names it, so undo restores the original ones."""

    done = Signal(str)  # a sentence about the effect

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._context = context
        self._call: EngineCall[SurgeryReply] | None = None

    def operate(
        self,
        operation: Operation,
        layer: str,
        *,
        features: int = 0,
        channels: tuple[int, ...] = (),
        done: Callable[[str], None] | None = None,
    ) -> None:
        """Carry out one operation on a layer of the open document; `done` gets the title of the undo step."""
        context = self._context
        document, analysis = context.root, analysis_of(context)
        if context.scope:
            self._refuse(document, tr("layers inside templates share their weights"), tr("dissolve the template first"))
        elif not document.settings.weights:
            self._refuse(document, tr("the network has no trained weights"), tr("choose them in Network Settings"))
        elif self._call is None:
            paths = {name: analysis.inputs.path(name) for name in analysis.inputs.layers()}
            request = SurgeryRequest(
                write_document(document.graph).decode(),
                operation,
                layer,
                document.settings.weights,
                str(weight_versions()),
                {name: str(path) for name, path in paths.items() if path is not None},
                features,
                channels,
                tuple(sorted(agreed())),
            )
            what = tr("Editing the weights of {layer} ...", layer=layer) if layer else tr("Editing the weights ...")
            context.message.emit("info", what)
            self._call = analysis.engine.ask(
                request,
                self,
                lambda reply: self._arrived(document, request, reply, done),
                self._failed,
                superseded=self._end,
            )

    def _arrived(
        self, document: Document, request: SurgeryRequest, reply: SurgeryReply, done: Callable[[str], None] | None
    ) -> None:
        self._end()
        if write_document(document.graph).decode() != request.document or document.settings.weights != request.weights:
            self._refuse(document, tr("the network was changed in the meantime"), tr("repeat the edit"))
            return
        before, after = (_layers(text) for text in (request.document, reply.document))
        names = dict.fromkeys((*before, *after))
        changed = {name: after.get(name) for name in names if before.get(name) != after.get(name)}
        title = f"{reply.title}: {reply.effect}"
        settings = {"weights": (request.weights, reply.weights)}
        if document.do(lambda graph: replace_layers(graph, changed, title, settings)):
            self._context.message.emit("info", title)
            self.done.emit(title)
            if done is not None:
                done(title)

    def _failed(self, found: Findings) -> None:
        self._end()
        if found[0].code not in ("engine-crashed", "cancelled"):
            self._context.message.emit("error", placed_text(found[0]))

    def _refuse(self, document: Document, message: str, remedy: str) -> None:
        document.refused.emit((Diagnostic("no-surgery", message, remedy=remedy),))

    def _end(self) -> None:
        self._call = None

    # --- versions of the weights -----------------------------------------------------------------------------------

    def unsaved(self) -> Path | None:
        """The file of edited weights that the document uses; None if it uses a file of the user."""
        weights = self._context.root.settings.weights if self._context.has_document else ""
        return Path(weights) if weights and is_version(Path(weights)) else None

    def save(self, target: Path) -> None:
        """Write the weights of the document to a file or folder of the user, and use it. Raises DiagnosticError."""
        document = self._context.root
        weights = load_weights(Path(document.settings.weights), required_weights(document.inference))
        save_weights(target, weights.tensors)
        document.change_settings(weights=str(target))


def _layers(text: str) -> Mapping[str, Layer]:
    graph = parse_document(text.encode()).graph
    return graph.layers if graph is not None else {}


def weight_surgery_of(context: Context) -> WeightSurgery:
    """The one object of a window."""
    found: WeightSurgery | None = context.findChild(WeightSurgery, options=Qt.FindChildOption.FindDirectChildrenOnly)
    return found or WeightSurgery(context)
