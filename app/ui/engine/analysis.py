"""Keeps the engine's result in step with the document: at most one run in flight, and only the latest change waits."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any
from weakref import WeakSet

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from app.engine.protocol import (
    InterruptRequest,
    OpenReply,
    OpenRequest,
    ProgressEvent,
    RunReply,
    RunRequest,
    SetInputReply,
    SetWeightsRequest,
)
from app.ui.document.document import Document
from app.ui.engine.call import EngineCall, Findings
from app.ui.engine.client import EngineClient
from app.ui.engine.coarse_to_fine import CoarseToFine
from app.ui.engine.context import Context
from app.ui.engine.inputs import layers_of
from app.ui.engine.network_inputs import NetworkInputs
from app.ui.engine.pending_edits import PendingEdits
from app.ui.engine.playback import Playback
from app.ui.engine.requests import OF_WEIGHT_FILES, blocked, difference, open_variant, runnable, variant_options
from app.ui.engine.result import AnalysisResult, Phase, result_of
from app.ui.engine.weights import weights_wanted
from app.ui.widgets.sentences import placed_text
from designer.files.settings import Settings
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.graph.edits import ChangeSet
from designer.graph.model import Source
from designer.operators.api import Role
from designer.operators.references import Restoration, restorations
from designer.texts import tr

DIM_AFTER = 100  # ms without a fresh result after which the old one is shown dimmed
DIRECT = Qt.FindChildOption.FindDirectChildrenOnly
EDIT_REST = 60  # ms of rest after which an edit of the network is sent


class AnalysisController(QObject):
    """Launches the analysis and follows edits, parameters, inputs and the inspected layer.

    What changes is gathered (`_edits`, `inputs`, `_wanted`) and sent as one batch ending with a run when no batch is in
    flight. So nothing queues up, and results arrive in the order of the changes.
    """

    phase_changed = Signal(str)
    result_changed = Signal()  # `result` is another one; None when another document is shown
    stale_changed = Signal(bool)  # whether the result shown is older than what is set

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.context = context
        self.phase = Phase.IDLE
        self.message = ""  # one sentence to the phase, with its remedy
        self.result: AnalysisResult | None = None
        self.stale = False
        self._document: Document | None = None
        self._settings: Settings | None = None  # those that the engine was opened with
        self._active = False
        self._batch: list[EngineCall[Any]] = []  # in flight; it is over when the last one is answered
        self._refusals: list[Diagnostic] = []  # of the others in the batch
        self._opening: EngineCall[OpenReply] | None = None  # how our network was opened
        self._fresh = False  # `result` is of the network that the engine has open
        self._analysed: WeakSet[Document] = WeakSet()  # documents that were left while they were analysed
        self._edits = PendingEdits()
        self._weights: Path | None = None  # shown in place of the document's
        self._weights_sent = True
        self._wanted = False
        self._since = 0.0
        self.capture = ""
        self.also: tuple[str, ...] = ()  # tensors brought next to it, for values at the same place
        self._connected: EngineClient | None = None
        self._dim = QTimer(self, singleShot=True, interval=DIM_AFTER, timeout=lambda: self._set_stale(True))
        self._coarse_to_fine = CoarseToFine(self, self._refine)
        self._rest = QTimer(self, singleShot=True, interval=EDIT_REST, timeout=self._pump)
        self.inputs = NetworkInputs(self)
        self.inputs.run_wanted.connect(self.again)
        self.playback = Playback(self.inputs, lambda: self.engine, self)
        self.playback.launch_wanted.connect(self.launch)
        self.result_changed.connect(lambda: self.playback.show(self.result))
        self.phase_changed.connect(lambda: self.playback.follow_phase(self.phase))
        context.root_changed.connect(self._on_document)
        context.analysis_requested.connect(self.launch)
        if context.has_document:
            self._on_document(context.root)

    # --- what a user asks for --------------------------------------------------------------------------------

    @property
    def engine(self) -> EngineClient:
        """The window's engine; made when nobody else has."""
        if self.context.engine is None:
            self.context.engine = EngineClient(self.context)
        engine = self.context.engine
        if self._connected is not engine:
            self._connected = engine
            engine.crashed.connect(self._on_crash)
        return engine

    def launch(self) -> None:
        """Run from the start: weights, images and the network as they are now."""
        if not self.context.has_document:
            return
        self._active = True
        self._opening = None
        self.again()

    def again(self, *, animated: bool = False) -> None:
        """Run again with the values sent to the engine since, if launched. `animated`: a next frame; the previous one is not dimmed."""
        if self._active:
            self._want(dim=not animated)
            self._pump()

    def output_layers(self) -> tuple[str, ...]:
        """The output layers that inference computes, by name."""
        document = self._document
        return layers_of(document.graph, document.registry, Role.OUTPUT) if document is not None else ()

    def restorations(self) -> tuple[Restoration, ...]:
        """The outputs that can be measured against a clean image."""
        return restorations(self._document.inference, self.output_layers()) if self._document is not None else ()

    def launch_random(self, seed: int = 0) -> None:
        """Run with seeded random weights where there are none; the result says so, and so do the settings."""
        self._set_weights(random_seed=seed)

    def choose_weights(self, path: Path) -> None:
        """Use another folder or file of weights, and launch."""
        self._set_weights(weights=str(path), random_seed=None)

    def _set_weights(self, **changes: Any) -> None:
        if self._document is not None:
            self._document.change_settings(**changes)
            if not self._batch:
                self.launch()

    def show_weights(self, path: Path | None) -> None:
        """Run with the weights in a file in place of the document's, without an edit; None: with the document's again."""
        if path is None and self._weights is not None:
            self._opening = None
        self._weights, self._weights_sent = path, path is None
        if not self._active and path is not None:
            self.launch()
        elif self._active:
            self._changed(only_values=True)

    def stop(self) -> None:
        """Give up the run in flight; the engine starts afresh with the next launch."""
        if self._batch:
            self.engine.cancel()  # its refusals come back before it returns
        self._stopped()

    def end(self) -> None:
        """The window goes, and its engine: nothing is asked any more, also not by panels when they are hidden."""
        self.result = None
        self._halt(Phase.IDLE, "")

    def _stopped(self) -> None:
        self._halt(Phase.STOPPED, tr("Stopped. Launch Analysis runs it again."))

    def _halt(self, phase: Phase, message: str) -> None:
        """Follow nothing until the next launch; what is shown stays, dimmed."""
        self._active = False
        self._end_batch()
        self._coarse_to_fine.drop()
        self._dim.stop()
        self._set_stale(self.result is not None)
        self._set_phase(phase, message)

    def set_capture(self, source: str, also: tuple[str, ...] = ()) -> None:
        """Bring this tensor (`layer` or `layer:port`) with every run, and `also` those; empty: none."""
        if (source, also) == (self.capture, self.also):
            return
        self.capture, self.also = source, also
        if source:
            self.again()

    # --- following the document --------------------------------------------------------------------------------

    def _on_document(self, document: Document) -> None:
        if self._document is not None:
            if self._active:
                self._analysed.add(self._document)
            self._document.changed.disconnect(self._on_change)
            self._document.settings_changed.disconnect(self._on_settings)
        self._document = document
        self.inputs.set_document(document)
        document.changed.connect(self._on_change)
        document.settings_changed.connect(self._on_settings)
        self._settings = document.settings
        self._active = self._wanted = False
        self._end_batch()
        self._coarse_to_fine.drop()
        self._dim.stop()
        self._opening = None
        self._weights, self._weights_sent = None, True
        self.capture, self.also = "", ()
        self.result = None
        self._set_stale(False)
        self._set_phase(Phase.IDLE, "")
        self.inputs.changed.emit()
        self.result_changed.emit()
        if document in self._analysed:  # it runs again when one comes back to it, after all have heard of the change
            self._analysed.discard(document)
            QTimer.singleShot(0, self, lambda: self.launch() if self._document is document else None)

    def _on_settings(self) -> None:
        """Other images are fed; anything else that matters opens the network anew."""
        assert self._document is not None
        before, after = self._settings, self._document.settings
        self._settings = after
        assert before is not None
        reopen, changed = difference(before, after)
        for name in changed:
            self.inputs.errors.pop(name, None)
        if reopen:
            self._opening = None
            if self.phase is Phase.WEIGHTS:
                self.launch()
            self.inputs.feed(set())
            return
        if changed:
            self.inputs.feed(changed)
        if before.current_variant != after.current_variant:
            self._on_formats()

    def _on_formats(self) -> None:
        """Layers compute in other number formats: only what depends on them runs again."""
        assert self._document is not None
        if not self._active:
            return
        try:
            self._edits.note_formats(dict(variant_options(self._document).formats))
        except DiagnosticError as error:
            self._failed(error.diagnostics)
            return
        self._changed(only_values=True)

    def _on_change(self, change: ChangeSet) -> None:
        assert self._document is not None
        computed = bool(change.computed or change.removed)
        only_values = computed and self._edits.note(change, self._document)  # first: what follows may already send
        layer, port = Source.parse(self.capture)
        self.capture = str(Source(self.context.path_after(layer, change) or layer, port)) if layer else ""
        self.inputs.follow(change)
        if computed and self.phase is Phase.WEIGHTS and self.result is not None:  # it ran before, and may again now
            self._active, self._opening = True, None
        if self._active and computed:
            self._changed(only_values=only_values)

    def _changed(self, *, only_values: bool) -> None:
        refining = bool(self._batch) and self._coarse_to_fine.refining
        self._want(moving=only_values)
        if refining:  # what it computes is old already; its answer comes at once
            self.engine.ask(InterruptRequest(), self)
        (self._pump if only_values else self._rest.start)()

    # --- the batch ---------------------------------------------------------------------------------------------

    def _want(self, moving: bool = False, dim: bool = True) -> None:
        """Something is to be computed: from now the shown result counts as old. `moving`: by a slider, say."""
        self._coarse_to_fine.request(moving, self._wanted)
        if not self._wanted:
            self._since = perf_counter()
        self._wanted = True
        if dim and not self._dim.isActive() and not self.stale and not self.playback.playing:
            self._dim.start()

    def _refine(self) -> None:
        """The values rest: the full image for the coarse one that is shown."""
        if self._active and not self._batch and not self._wanted:
            self._coarse_to_fine.refine()
            self._wanted = True
            self._pump()

    def _pump(self) -> None:
        if not self._active or self._batch or not self._wanted or self._document is None:
            return
        reason = blocked(self._document, self.inputs.path)
        if reason is not None:
            self._dim.stop()
            self._set_stale(self.result is not None)
            self._set_phase(Phase.BLOCKED, placed_text(reason))
            return
        if self._opening is None or self._opening is not self.engine.opened:
            self._open(self._document)
        else:
            self._run(self._document)

    def _open(self, document: Document) -> None:
        engine = self.engine
        self._edits.opened(document)
        self.inputs.feed_all()
        message = tr("Preparing the network …") if engine.running else tr("Starting the engine …")
        self._fresh = False
        self._weights_sent = True
        try:
            request = open_variant(document, self._weights)
        except DiagnosticError as error:
            self._failed(error.diagnostics)
            return
        self._opening = engine.ask(request, self, self._opened, self._failed, progress=self._on_progress)
        self._begin_batch([self._opening], message)

    def _begin_batch(self, calls: list[EngineCall[Any]], message: str) -> None:
        self._batch, self._refusals = calls, []
        self._set_phase(Phase.RUNNING, message)

    def _end_batch(self) -> None:
        """What is still in flight is of no use."""
        for call in self._batch:
            call.cancel()
        self._batch = []

    def _opened(self, reply: OpenReply) -> None:
        self._batch = []
        wanted = weights_wanted(reply)
        if wanted and self._opening is not None:  # else it is opened again: with other weights, perhaps
            self._halt(Phase.WEIGHTS, wanted)
        else:
            self._pump()

    def _run(self, document: Document) -> None:
        engine, since = self.engine, self._since
        calls: list[EngineCall[Any]] = [
            engine.ask(request, self, None, self._refused) for request in self._edits.requests(document)
        ]
        calls += [self._feed(layer, path) for layer, path in self.inputs.take()]
        if not self._weights_sent:
            self._weights_sent = True
            calls.append(engine.ask(SetWeightsRequest(str(self._weights)), self, None, self._refused))
        self._wanted = False
        wanted = dict.fromkeys((self.capture, *self.also) if self.capture else ())
        wanted |= dict.fromkeys(str(s) for item in self.restorations() for s in (item.result, item.clean))
        capture = runnable(document, wanted)
        have = [name for name in capture if self.result is not None and name in self.result.captures and self._fresh]
        run = engine.ask(
            RunRequest(tuple(capture), tuple(have), self._coarse_to_fine.send()),
            self,
            lambda reply: self._done(since, reply),
            self._failed,
            superseded=lambda: self._superseded(run),
            progress=self._on_progress,
        )
        self._begin_batch([*calls, run], tr("Running …"))

    def _feed(self, layer: str, path: Path) -> EngineCall[SetInputReply]:
        def fed(reply: SetInputReply) -> None:
            self.playback.fed(layer, reply)
            self.inputs.was_fed(layer, reply.shape)

        def refused(found: Findings) -> None:
            self._refused(found)
            self.inputs.was_refused(layer, found)

        return self.engine.ask(self.playback.request(layer, path), self, fed, refused)

    def _refused(self, found: Findings) -> None:
        self._refusals.extend(found)

    def _superseded(self, run: EngineCall[RunReply]) -> None:
        if not run.cancelled:
            self._batch, self._wanted = [], True
            self._pump()

    def _done(self, since: float, reply: RunReply) -> None:
        result = result_of(reply, self.engine.take, self.result, (perf_counter() - since) * 1000)
        if self._refusals:
            self._failed(())
            return
        self._batch, self._fresh = [], True
        self._coarse_to_fine.arrive(bool(result.coarse), self._wanted)
        self.result = result
        self._dim.stop()
        if self._wanted:
            self._dim.start()
        self._set_stale(False)
        self.result_changed.emit()
        if self._wanted and self._active:
            if not self._rest.isActive():
                self._pump()
        elif result.coarse:
            self._set_phase(Phase.RUNNING, result.summary())
        else:
            self._set_phase(Phase.READY, result.summary())

    # --- what goes wrong ---------------------------------------------------------------------------------------

    def _failed(self, found: Findings) -> None:
        """The batch came to nothing: its last call failed with what was `found`, or others did."""
        codes = {d.code for d in found}
        if "engine-crashed" in codes:  # `crashed` has said it
            return
        if "cancelled" in codes:  # by us, or by the window's Stop
            self._stopped()
            return
        if self._opening is None and any(isinstance(call.request, OpenRequest) for call in self._batch):
            self._batch = []  # it was opened with settings that are others now
            self._pump()
            return
        opening = self._opening is not None and self._batch == [self._opening]
        found = (*self._refusals, *found)
        self._batch = []
        self._dim.stop()
        self._set_stale(self.result is not None)
        first = next((d for d in found if d.severity is Severity.ERROR), found[0])
        self._opening = None  # what the worker holds is unsure: the next run opens anew
        if "weight" in first.code or (opening and first.code in OF_WEIGHT_FILES):
            self._halt(Phase.WEIGHTS, placed_text(first))
            return
        if first.code == "not-agreed":
            self._active = False
            self._set_phase(
                Phase.BLOCKED, tr("{problem} Launch Analysis shows it and asks.", problem=placed_text(first))
            )
            if opening:  # not while somebody types the source
                self.context.agreement_wanted.emit(self.launch)
            return
        self._set_phase(Phase.BLOCKED if self.inputs.errors else Phase.FAILED, placed_text(first))

    def _on_crash(self, message: str) -> None:
        if not self._batch and not self._active:
            return
        self._halt(Phase.FAILED, message)
        self.context.message.emit("error", message)

    def _on_progress(self, event: ProgressEvent) -> None:
        if event.text:
            self._set_phase(
                Phase.RUNNING,
                tr("Running {text} ({done} of {total}) …", text=event.text, done=event.done, total=event.total),
            )

    def _set_phase(self, phase: Phase, message: str) -> None:
        if (phase, message) != (self.phase, self.message):
            self.phase, self.message = phase, message
            self.phase_changed.emit(phase.value)

    def _set_stale(self, stale: bool) -> None:
        if stale != self.stale:
            self.stale = stale
            self.stale_changed.emit(stale)


def analysis_of(context: Context) -> AnalysisController:
    """The one controller of a window."""
    found: AnalysisController | None = context.findChild(AnalysisController, options=DIRECT)
    return found or AnalysisController(context)
