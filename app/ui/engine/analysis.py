"""Keeps the engine's result in step with the document: at most one run in flight, only the latest wish waits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any
from weakref import WeakSet

from PySide6.QtCore import QObject, QTimer, Signal

from app.ui.document.document import Document
from app.ui.engine.client import EngineClient
from app.ui.engine.coarse_to_fine import Haste
from app.ui.engine.context import Context
from app.ui.engine.feeding import Findings, InputFeeding
from app.ui.engine.pending_edits import Changes
from app.ui.engine.playback import Playback
from app.ui.engine.requests import OF_WEIGHT_FILES, blocked, difference, open_params, runnable
from app.ui.engine.result import AnalysisResult, Phase, result_of
from app.ui.engine.weights import weights_wanted
from app.ui.widgets.sentences import placed_text
from app.ui.widgets.texts import tr
from designer.files.settings import Settings
from designer.graph.diagnostics import Severity
from designer.graph.edits import ChangeSet
from designer.graph.model import Source

DIM_AFTER = 100  # ms without a fresh result after which the old one is shown dimmed
EDIT_REST = 60  # ms of rest after which an edit of the network is sent


class AnalysisController(InputFeeding):
    """Launches the analysis and follows edits, parameters, pictures and the inspected layer.

    Wishes are gathered in fields (`_changes`, `_dirty_inputs`, `_wanted`) and sent as one batch ending with `run`
    when no batch is in flight. So nothing queues up, and results arrive in the order of the wishes.
    """

    phase_changed = Signal(str)
    result_changed = Signal()  # `result` is another one; None when another document is shown
    stale_changed = Signal(bool)  # whether the result shown is older than what is set

    def __init__(self, context: Context, parent: QObject | None = None) -> None:
        super().__init__(parent if parent is not None else context)
        self.context = context
        self.phase = Phase.IDLE
        self.message = ""  # one sentence to the phase, with its remedy
        self.result: AnalysisResult | None = None
        self.stale = False
        self._settings: Settings | None = None  # those that the engine was opened with
        self._active = False
        self._in_flight = False
        self._opening = False  # what is in flight is `open`
        self._fresh = False  # `result` is of the network that the engine has open
        self._analysed: WeakSet[Document] = WeakSet()  # documents that were left while they were analysed
        self._epoch = 0  # another document, another epoch: late replies are dropped
        self._session = -1  # the engine's session that holds our network
        self._changes = Changes()
        self._inputs: frozenset[str] = frozenset()  # the input layers; one that only losses read comes and goes
        self._wanted = False
        self._since = 0.0
        self.capture = ""
        self.also: tuple[str, ...] = ()  # tensors brought beside it, for values at the same place
        self._connected: EngineClient | None = None
        self._dim = QTimer(self, singleShot=True, interval=DIM_AFTER, timeout=lambda: self._set_stale(True))
        self._haste = Haste(self, self._refine)
        self._rest = QTimer(self, singleShot=True, interval=EDIT_REST, timeout=self._pump)
        self.playback = Playback(self)
        context.root_changed.connect(self._on_document)
        context.analysis_requested.connect(self.launch)
        if context.has_document:
            self._on_document(context.root)

    # --- what a person asks for --------------------------------------------------------------------------------

    @property
    def engine(self) -> EngineClient:
        """The window's engine; made when nobody else has."""
        if self.context.engine is None:
            self.context.engine = EngineClient(self.context)
        engine = self.context.engine
        if self._connected is not engine:
            self._connected = engine
            engine.crashed.connect(self._on_crash)
            engine.progress.connect(self._on_progress)
        return engine

    def launch(self) -> None:
        """Run from the start: weights, pictures and the network as they are now."""
        if not self.context.has_document:
            return
        self._active = True
        self._session = -1
        self.again()

    def again(self) -> None:
        """Run with what the engine has been told meanwhile, once launched."""
        if self._active:
            self._wish()
            self._pump()

    def launch_random(self, seed: int = 0) -> None:
        """Run with seeded random weights where there are none; the result says so, and so do the settings."""
        self._set_weights(random_seed=seed)

    def choose_weights(self, path: Path) -> None:
        """Use another folder or file of weights, and launch."""
        self._set_weights(weights=str(path), random_seed=None)

    def _set_weights(self, **changes: Any) -> None:
        if self._document is not None:
            self._document.change_settings(**changes)
            if not self._in_flight:
                self.launch()

    def stop(self) -> None:
        """Give up the run in flight; the engine starts afresh with the next launch."""
        if self._in_flight:
            self.engine.cancel()  # its refusals come back before it returns
        self._stopped()

    def end(self) -> None:
        """The window goes, and its engine: nothing is asked any more, also not by panels when they are hidden."""
        self._epoch += 1
        self.result = None
        self._halt(Phase.IDLE, "")

    def _stopped(self) -> None:
        self._halt(Phase.STOPPED, tr("Stopped. Launch Analysis runs it again."))

    def _halt(self, phase: Phase, message: str) -> None:
        """Follow nothing until the next launch; what is shown stays, dimmed."""
        self._active = self._in_flight = False
        self._haste.drop()
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
        self._inputs = frozenset(self.input_layers())
        document.changed.connect(self._on_change)
        document.settings_changed.connect(self._on_settings)
        self._settings = document.settings
        self._epoch += 1
        self._active = self._wanted = self._in_flight = False
        self._haste.drop()
        self._dim.stop()
        self._session = -1
        self.capture, self.also = "", ()
        self.result = None
        self.input_errors.clear()
        self.input_shapes.clear()
        self._set_stale(False)
        self._set_phase(Phase.IDLE, "")
        self.inputs_changed.emit()
        self.result_changed.emit()
        if document in self._analysed:  # it runs again when one comes back to it, after all have heard of the change
            self._analysed.discard(document)
            epoch = self._epoch
            QTimer.singleShot(0, self, lambda: self.launch() if epoch == self._epoch else None)

    def _on_settings(self) -> None:
        """Other pictures are fed; anything else that matters opens the network anew."""
        assert self._document is not None
        before, after = self._settings, self._document.settings
        self._settings = after
        assert before is not None
        reopen, changed = difference(before, after)
        for name in changed:
            self.input_errors.pop(name, None)
        if reopen:
            self._session = -1
            if self.phase is Phase.WEIGHTS:
                self.launch()
            self._feed(set())
        elif changed:
            self._feed(changed)

    def _on_change(self, change: ChangeSet) -> None:
        assert self._document is not None
        computed = bool(change.computed or change.removed)
        only_values = computed and self._changes.note(change, self._document)  # first: what follows may already send
        for old, new in change.renamed.items():
            if Source.parse(self.capture).layer == old:
                self.capture = str(Source(new, Source.parse(self.capture).port))
        known, self._inputs = self._inputs, frozenset(self.input_layers())
        touched = (change.added | change.reconfigured | (self._inputs - known)) & self._inputs
        if change.removed or touched or self._inputs != known:
            self._dirty_inputs |= touched
            self.inputs_changed.emit()
        if not self._active or not computed:
            return
        refining = self._in_flight and self._haste.refining
        self._wish(moving=only_values)
        if refining:  # what it computes is old already; its answer comes at once
            self.engine.request("interrupt")
        (self._pump if only_values else self._rest.start)()

    # --- the batch ---------------------------------------------------------------------------------------------

    def _wish(self, moving: bool = False) -> None:
        """Something is to be computed: from now the shown result counts as old. `moving`: by a slider, say."""
        self._haste.asked(moving, self._wanted)
        if not self._wanted:
            self._since = perf_counter()
        self._wanted = True
        if not self._dim.isActive() and not self.stale and not self.playback.playing:
            self._dim.start()

    def _refine(self) -> None:
        """The values rest: the full picture for the coarse one that is shown."""
        if self._active and not self._in_flight and not self._wanted:
            self._haste.refine()
            self._wanted = True
            self._pump()

    def _pump(self) -> None:
        if not self._active or self._in_flight or not self._wanted or self._document is None:
            return
        reason = blocked(self._document, self.input_path)
        if reason is not None:
            self._dim.stop()
            self._set_stale(self.result is not None)
            self._set_phase(Phase.BLOCKED, placed_text(reason))
            return
        if self._session != self.engine.session:
            self._open(self._document)
        else:
            self._run(self._document)

    def _open(self, document: Document) -> None:
        params = open_params(document.settings, self._changes.opened(document))
        self._dirty_inputs = set(self.input_layers())
        self._send_start(tr("Starting the engine …") if not self.engine.running else tr("Preparing the network …"))
        self._opening, self._fresh = True, False
        epoch = self._epoch
        self.engine.request("open", params, lambda r: self._opened(epoch, r), lambda e: self._failed(epoch, e))
        self._session = self.engine.session

    def _send_start(self, message: str) -> None:
        self._in_flight = True
        self._batch_errors = []
        self._set_phase(Phase.RUNNING, message)

    def _opened(self, epoch: int, reply: Mapping[str, Any]) -> None:
        if epoch != self._epoch:
            return
        self._in_flight = False
        wanted = weights_wanted(reply)
        if wanted:
            self._halt(Phase.WEIGHTS, wanted)
        else:
            self._pump()

    def _run(self, document: Document) -> None:
        self._send_start(tr("Running …"))
        self._opening = False
        engine, epoch = self.engine, self._epoch
        for method, params in self._changes.requests(document):
            engine.request(method, params, None, self._batch_errors.extend)
        for layer in sorted(self._dirty_inputs & set(self.input_layers())):
            path = self.input_path(layer)
            if path is not None:
                self._send_input(layer, path)
        self._dirty_inputs.clear()
        self._wanted = False
        since = self._since
        number, budget = self._haste.sent()
        capture = runnable(document, (self.capture, *self.also) if self.capture else ())
        have = [name for name in capture if self.result is not None and name in self.result.captures and self._fresh]
        engine.request(
            "run",
            {"capture": capture, "have": have, "budget": budget},
            lambda r: self._done(epoch, number, since, r),
            lambda e: self._failed(epoch, e),
        )

    def _done(self, epoch: int, number: int, since: float, reply: Mapping[str, Any]) -> None:
        if reply.get("superseded"):
            if epoch == self._epoch:
                self._in_flight, self._wanted = False, True
                self._pump()
            return
        result = result_of(reply, self.engine.take, self.result, (perf_counter() - since) * 1000)
        if epoch != self._epoch:
            return
        if self._batch_errors:
            self._failed(epoch, tuple(self._batch_errors))
            return
        self._in_flight, self._fresh = False, True
        if self._haste.arrived(number, bool(result.coarse), self._wanted):
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

    def _failed(self, epoch: int, found: Findings) -> None:
        codes = {d.code for d in found}
        if epoch != self._epoch or "engine-crashed" in codes:  # a crash is told by `crashed`
            return
        if "cancelled" in codes:  # by us, or by the window's Stop
            self._stopped()
            return
        found = (*self._batch_errors, *found) if tuple(self._batch_errors) != found else found
        self._in_flight = False
        self._dim.stop()
        self._set_stale(self.result is not None)
        first = next((d for d in found if d.severity is Severity.ERROR), found[0])
        self._session = -1  # what the worker holds is unsure: the next run opens anew
        if "weight" in first.code or (self._opening and first.code in OF_WEIGHT_FILES):
            self._halt(Phase.WEIGHTS, placed_text(first))
            return
        if first.code == "not-agreed":
            self._active = False
            self._set_phase(
                Phase.BLOCKED, tr("{problem} Launch Analysis shows it and asks.", problem=placed_text(first))
            )
            if self._opening:  # not while somebody types the source
                self.context.agreement_wanted.emit(self.launch)
            return
        self._set_phase(Phase.BLOCKED if self.input_errors else Phase.FAILED, placed_text(first))

    def _on_crash(self, message: str) -> None:
        if not self._in_flight and not self._active:
            return
        self._halt(Phase.FAILED, message)
        self.context.message.emit("error", message)

    def _on_progress(self, event: Any) -> None:
        if self._in_flight and event.get("text"):
            done, total = event.get("done", 0), event.get("total", 0)
            self._set_phase(
                Phase.RUNNING, tr("Running {text} ({done} of {total}) …", text=event["text"], done=done, total=total)
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
    if context.analysis is None:
        context.analysis = AnalysisController(context)
    return context.analysis
