"""One question about the open document to its engine: the document is opened with its inputs, progress is reported, it can be stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct
from PySide6.QtCore import QObject, Signal

from app.engine.protocol import ProgressEvent, Request, SetInputRequest, handles
from app.ui.engine.analysis import analysis_of
from app.ui.engine.call import EngineCall, Findings
from app.ui.engine.context import Context
from app.ui.engine.document_watch import DocumentWatch
from app.ui.engine.requests import open_request
from app.ui.widgets.sentences import placed_text
from designer.files.document import write_document
from designer.files.settings import Settings
from designer.texts import tr

ReplyT = TypeVar("ReplyT", bound=Struct)


class EngineQuestion(QObject):
    """Asks one question at a time, and gives it up when it is stopped."""

    busy_changed = Signal(bool)

    def __init__(self, context: Context, parent: QObject) -> None:
        super().__init__(parent)
        self._context = context
        self._calls: list[EngineCall[Any]] = []
        self._outdated = False  # the document was edited since the question was asked
        DocumentWatch(context, self).outdated.connect(self._on_outdated)

    @property
    def busy(self) -> bool:
        return bool(self._calls)

    def ask(
        self,
        request: Request[ReplyT],
        done: Callable[[ReplyT], None],
        failed: Callable[[str], None],
        progress: Callable[[ProgressEvent], None],
        settings: Settings | None = None,
    ) -> None:
        """Open the document with its inputs, by default with its own settings, and ask; nothing happens while another question is open.

        `failed` gets a sentence, which is empty if the engine was stopped. An answer about a network that was edited since, or that
        has other weights or inputs, counts as failed.
        """
        if self._calls or not self._context.has_document:
            return
        document, analysis = self._context.root, analysis_of(self._context)

        def came(reply: ReplyT) -> None:
            self._end()
            if not self._outdated:
                done(reply)
                return
            for handle in handles(reply):
                analysis.engine.take(handle)  # frees it
            failed(tr("The network, its weights or its inputs were changed in the meantime. Repeat the measurement."))

        def refused(found: Findings) -> None:
            if self._calls:  # the other requests of a question are refused too
                self._end()
                failed("" if found[0].code == "cancelled" else placed_text(found[0]))

        self._outdated = False
        opening = open_request(settings or document.settings, write_document(document.graph).decode())
        paths = {layer: analysis.inputs.path(layer) for layer in analysis.inputs.layers()}
        feeding = (SetInputRequest(layer, str(path)) for layer, path in paths.items() if path is not None)
        calls: list[EngineCall[Any]] = [analysis.engine.ask(one, self, None, refused) for one in (opening, *feeding)]

        def superseded() -> None:
            if self._calls is calls:  # not of an earlier question, which was given up
                self._end()

        calls.append(analysis.engine.ask(request, self, came, refused, superseded=superseded, progress=progress))
        self._calls = calls
        self.busy_changed.emit(True)

    def stop(self) -> None:
        """Give up the question; the engine is stopped if it works on it."""
        if self._calls:
            analysis_of(self._context).engine.cancel()
            self._end()

    def _on_outdated(self) -> None:
        self._outdated = True

    def _end(self) -> None:
        calls, self._calls = self._calls, []
        for call in calls:
            call.cancel()
        if calls:
            self.busy_changed.emit(False)
