"""Edits of the network together with its trained weights. Each is one undo step that says what it did to the result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import shiboken6
from PySide6.QtCore import QObject, Qt, QTimer, Signal

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
        self._asked: tuple[object, ...] = ()
        self._next: Callable[[], None] | None = None  # the latest number of channels, asked for during another edit

    def operate(
        self,
        operation: Operation,
        layer: str,
        *,
        features: int = 0,
        channels: tuple[int, ...] = (),
        done: Callable[[str], None] | None = None,
        failed: Callable[[Diagnostic], None] | None = None,
    ) -> None:
        """Carry out one operation on a layer of the open document, called as the engine knows it.

        `done` gets the title of the undo step. `failed` gets the reason why nothing was done, instead of the user. An operation that
        is being carried out is not repeated; a number of channels that is set during it follows.
        """
        context = self._context
        document, analysis = context.root, analysis_of(context)
        refuse = failed or self._show
        if not document.settings.weights:
            remedy = tr("choose them in Network Settings")
            refuse(Diagnostic("no-surgery", tr("the network has no trained weights"), remedy=remedy))
        elif not layer and operation != "prune":
            remedy = tr("open the template through one of its instances")
            refuse(Diagnostic("no-surgery", tr("no instance of this template is open"), remedy=remedy))
        elif self._call is not None and self._asked == (operation, layer, features, channels):
            return
        elif self._call is not None and operation == "features":
            self._next = lambda: self._follow(document, layer, features, done, failed)
        elif self._call is not None:
            remedy = tr("repeat it when the other one is done")
            refuse(Diagnostic("no-surgery", tr("another edit of the weights is being carried out"), remedy=remedy))
        else:
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
            self._asked = (operation, layer, features, channels)
            self._call = analysis.engine.ask(
                request,
                self,
                lambda reply: self._arrived(document, request, reply, done),
                lambda found: self._failed(found, failed),
                superseded=self._end,
            )

    def _arrived(
        self, document: Document, request: SurgeryRequest, reply: SurgeryReply, done: Callable[[str], None] | None
    ) -> None:
        self._end()
        if not shiboken6.isValid(document):  # type: ignore[no-untyped-call]  # closed in the meantime
            Path(reply.weights).unlink(missing_ok=True)
            return
        if write_document(document.graph).decode() != request.document or document.settings.weights != request.weights:
            Path(reply.weights).unlink(missing_ok=True)
            remedy = tr("repeat the edit")
            self._show(Diagnostic("no-surgery", tr("the network was changed in the meantime"), remedy=remedy))
            return
        before, after = (parse_document(text.encode()).graph for text in (request.document, reply.document))
        assert before is not None
        assert after is not None
        names = dict.fromkeys((*before.layers, *after.layers))
        changed = {name: after.get(name) for name in names if before.get(name) != after.get(name)}
        templates = {name: item for name, item in after.templates.items() if before.templates.get(name) != item}
        title = f"{reply.title}: {reply.effect}"
        settings = {"weights": (request.weights, reply.weights)}
        if document.insert(lambda graph: replace_layers(graph, changed, title, settings, templates)):
            self._context.message.emit("info", title)
            self.done.emit(title)
            if done is not None:
                done(title)

    def _failed(self, found: Findings, failed: Callable[[Diagnostic], None] | None) -> None:
        self._end()
        if failed is not None:
            failed(found[0])
        elif found[0].code not in ("engine-crashed", "cancelled"):  # the user knows of these
            self._show(found[0])

    def _show(self, found: Diagnostic) -> None:
        self._context.message.emit("error", placed_text(found))

    def _end(self) -> None:
        self._call = None
        if self._next is not None:
            QTimer.singleShot(0, self, self._next)
            self._next = None

    def _follow(
        self,
        document: Document,
        layer: str,
        features: int,
        done: Callable[[str], None] | None,
        failed: Callable[[Diagnostic], None] | None,
    ) -> None:
        """Set a number of channels after another edit, if its document is still shown."""
        if self._context.root is document:
            self.operate("features", layer, features=features, done=done, failed=failed)

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


def weight_surgery_of(context: Context) -> WeightSurgery:
    """The one object of a window."""
    found: WeightSurgery | None = context.findChild(WeightSurgery, options=Qt.FindChildOption.FindDirectChildrenOnly)
    return found or WeightSurgery(context)
