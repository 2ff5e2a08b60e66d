"""Launches profiled inference in the engine process and keeps the profiles of this session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from weakref import ref

import msgspec
from PySide6.QtCore import QObject, QTemporaryDir, Signal

from app.engine.protocol import (
    OpenReply,
    OpenRequest,
    PredictReply,
    PredictRequest,
    ProfiledNetwork,
    ProfileReply,
    ProfileRequest,
    RemeasureRequest,
    SetInputRequest,
)
from app.ui.document.document import Document
from app.ui.engine.analysis import DIRECT, analysis_of
from app.ui.engine.call import EngineCall, Findings
from app.ui.engine.client import EngineClient
from app.ui.engine.context import Context
from app.ui.engine.requests import open_request, open_variant
from app.ui.engine.weights import weights_wanted
from app.ui.widgets.sentences import placed_text
from designer.files.document import write_document
from designer.graph.diagnostics import DiagnosticError, Severity, errors
from designer.graph.template import enclosing
from designer.operators.inlining import inlined
from designer.profiling.configurations import grid_of, parse_size
from designer.profiling.difference import RunDifference, difference
from designer.profiling.matching import match_rows
from designer.profiling.profile_files import load_profile, save_profile
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun
from designer.texts import tr, trn

DEFAULT_ITERATIONS = 10


class State(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    WEIGHTS = "weights"  # the user must choose weights, or agree to random ones
    FAILED = "failed"


@dataclass(frozen=True, eq=False)
class Entry:
    """One run in the logger, the profile that it belongs to and the file that it was opened from.

    `opening` opens the network of `document` as it was measured in this session, None for other runs.
    """

    number: int
    profile: Profile
    run: ProfileRun
    path: Path | None = None
    opening: OpenRequest | None = None
    document: ref[Document] | None = None

    def may_be_of(self, document: Document) -> bool:
        """Whether `document` was measured. What a run of another session was measured of is not known."""
        return self.opening is None or (self.document is not None and self.document() is document)

    @property
    def title(self) -> str:
        return self.profile.title(self.run)


class ProfilingController(QObject):
    """Holds the runs of this session, which of them is shown, and the one in flight."""

    entries_changed = Signal()
    current_changed = Signal(object)  # Entry or None
    rows_changed = Signal()  # other rows of the current run are chosen
    compared_changed = Signal()  # two other runs are compared, or none
    state_changed = Signal(str, str)  # State, and a sentence where there is something to say

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.context = context
        self.entries: list[Entry] = []
        self.compared: tuple[Entry, Entry] | None = None
        self.grid: dict[str, str] = {}  # what a launch measures besides the document: texts by argument of `grid_of`
        self.training = False  # a launch also measures a training step
        self.chosen_rows: tuple[OperatorProfile, ...] = ()
        self._choosing = False
        self.current: Entry | None = None
        self._folder = QTemporaryDir()
        self.state = State.IDLE
        self.message = ""
        self._count = 0
        self._calls: list[EngineCall[Any]] = []  # of the launch in flight
        self._prediction: list[EngineCall[Any]] = []
        self._openings: tuple[OpenRequest, ...] = ()
        self._documents: tuple[ref[Document] | None, ...] = ()  # of `_openings`
        self._document: Document | None = None  # the one that is measured; None for runs that are measured again
        context.inference_requested.connect(self.launch)
        context.root_changed.connect(self._on_document)
        context.selection_changed.connect(self._on_selection)

    # --- running -----------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return self.state is State.RUNNING

    def iterations(self) -> int:
        """How often the network runs: the document's setting."""
        return self.context.root.settings.iterations if self.context.has_document else DEFAULT_ITERATIONS

    def set_iterations(self, count: int) -> None:
        """Remember in the document's settings how often the network runs."""
        if self.context.has_document:
            self.context.root.change_settings(iterations=count)

    def launch(self) -> None:
        """Time the open network as it is now. Where weights are missing and no seed is set, the user is asked first."""
        if not self.context.has_document or self.running:
            return
        try:
            grid = grid_of(**self.grid)
            opening = open_variant(self.context.root)
        except DiagnosticError as error:
            self._set_state(State.FAILED, placed_text(error.diagnostics[0]))
            return
        engine, analysis = self._engine(), analysis_of(self.context)
        self._document = self.context.root
        self._begin(tr("Timing the network …"), (opening,), (ref(self._document),))
        request = ProfileRequest(
            self.iterations(),
            tuple(grid.batches),
            tuple((size.width, size.height) for size in grid.sizes),
            tuple(grid.engines),
            tuple(grid.precisions),
            tuple(grid.layouts),
            partial=str(self.partial_file),
            training=self.training,
        )
        # One after the other in the engine's queue: nothing of another panel comes between.
        self._calls = [engine.ask(opening, self, self._opened, self._failed)]
        for layer in analysis.inputs.layers():
            path = analysis.inputs.path(layer)
            if path is not None and path.is_file():
                self._calls.append(engine.ask(SetInputRequest(layer, str(path)), self, None, self._failed))
        self._calls.append(engine.ask(request, self, self._finished, self._failed))

    def remeasure(self, pair: tuple[Entry, Entry]) -> None:
        """Measure two runs of this session again, in turns, and compare them."""
        if self.running or self.why_not_in_turns(pair):
            return
        networks = []
        for entry in pair:
            assert entry.opening is not None
            size = parse_size(entry.run.size) if entry.run.size else None
            networks.append(
                ProfiledNetwork(entry.opening, entry.run.batch, (size.width, size.height) if size is not None else None)
            )
        numbers = {"one": pair[0].number, "other": pair[1].number}
        self._document = None
        self._begin(
            tr("Timing the networks of #{one} and #{other} in turns …", **numbers),
            [n.opening for n in networks],
            [entry.document for entry in pair],
        )
        request = RemeasureRequest(tuple(networks), self.iterations(), str(self.partial_file))
        self._calls = [self._engine().ask(request, self, self._remeasured, self._failed)]

    def _remeasured(self, reply: ProfileReply) -> None:
        self._finished(reply)
        before, after = self.entries[-2:]
        self.compare((before, after))

    def why_not_in_turns(self, pair: tuple[Entry, Entry]) -> str:
        """Why two runs cannot be measured again; empty if they can be."""
        other = next((entry for entry in pair if entry.opening is None), None)
        return tr("#{number} was not measured in this session.", number=other.number) if other is not None else ""

    def _begin(self, text: str, openings: Sequence[OpenRequest], documents: Sequence[ref[Document] | None]) -> None:
        """A launch of networks begins."""
        self._openings, self._documents = tuple(openings), tuple(documents)
        self.partial_file.unlink(missing_ok=True)
        self._set_state(State.RUNNING, text)

    def predict(
        self, request: PredictRequest, done: Callable[[PredictReply], None], failed: Callable[[str], None]
    ) -> None:
        """Ask for the predicted run of the open network as it is now. Nothing is called once another document is open."""
        engine, document = self._engine(), self.context.root

        def refused(found: Findings) -> None:
            for call in self._prediction:  # the other request is refused too
                call.cancel()
            failed(placed_text(next((d for d in found if d.severity is Severity.ERROR), found[0])))

        opening = open_request(document.settings, write_document(document.graph).decode())
        self._prediction = [engine.ask(opening, self, None, refused), engine.ask(request, self, done, refused)]

    def stop_prediction(self) -> None:
        """Give up the predictions in flight; they fail."""
        self._engine().cancel()

    def launch_random(self, seed: int = 0) -> None:
        """Launch with seeded random weights where there are none; the record says so, and so do the settings."""
        self.context.root.change_settings(random_seed=seed)
        self.launch()

    def choose_weights(self, path: Path) -> None:
        """Launch with another folder or file of weights."""
        self.context.root.change_settings(weights=str(path), random_seed=None)
        self.launch()

    def stop(self) -> None:
        """Give up the run in flight."""
        if self.running:
            self._end_launch()
            self._engine().cancel()
            self._set_state(State.IDLE, tr("Stopped."))
            self._add_partial()

    @property
    def partial_file(self) -> Path:
        """The file that the engine writes while it measures."""
        return Path(self._folder.filePath("partial.json"))

    def _add_partial(self) -> None:
        """Keep what was measured before the run ended; it is marked partial."""
        path = self.partial_file
        if not path.exists():
            return
        try:
            profile = load_profile(path)
        except DiagnosticError as error:
            self.context.message.emit("warning", placed_text(error.diagnostics[0]))
        else:
            self.add(profile, openings=self._openings, documents=self._documents)
        path.unlink(missing_ok=True)

    def _engine(self) -> EngineClient:
        return analysis_of(self.context).engine

    def _opened(self, reply: OpenReply) -> None:
        wanted = weights_wanted(reply)
        if wanted and not errors(reply.diagnostics):  # else the run will say what is wrong first
            self._ask_weights(wanted)

    def _finished(self, reply: ProfileReply) -> None:
        self._set_state(State.IDLE, "")
        self.add(reply.profile, openings=self._openings, documents=self._documents)

    def _end_launch(self) -> None:
        """What else this launch asked for comes to nothing."""
        for call in self._calls:
            call.cancel()

    def _failed(self, found: Findings) -> None:
        self._end_launch()
        first = next((d for d in found if d.severity is Severity.ERROR), found[0])
        self._add_partial()
        if first.code == "cancelled":
            self._set_state(State.IDLE, tr("Stopped."))
            return
        if "weight" in first.code:
            self._ask_weights(placed_text(first))
            return
        self._fail(placed_text(first))
        if first.code == "not-agreed" and self._document is self.context.root:
            self.context.agreement_wanted.emit(self.launch)

    def _fail(self, why: str) -> None:
        """Say why a launch failed, and of which document if another one is shown."""
        document = self._document
        if document is not None and document is not self.context.root:
            why = tr("{document}: {problem}", document=document.title, problem=why)
        self._set_state(State.FAILED, why)
        self.context.message.emit("error", why)

    def _ask_weights(self, why: str) -> None:
        self._end_launch()
        if self._document is self.context.root:
            self._set_state(State.WEIGHTS, why)
        else:  # weights that are chosen now would be those of the document that is shown
            self._fail(why)

    def _on_document(self) -> None:
        """What was asked and said about another document is over; a run goes on, since the list is that of the session."""
        for call in self._prediction:
            call.cancel()
        if not self.running:
            self._set_state(State.IDLE, "")

    def _set_state(self, state: State, message: str) -> None:
        self.state, self.message = state, message
        self.state_changed.emit(str(state), message)

    # --- rows ------------------------------------------------------------------------------------------------

    def choose_rows(self, rows: Iterable[OperatorProfile]) -> None:
        """Choose rows of the current run; their layers are selected."""
        self.chosen_rows = tuple(rows)
        if self.context.has_document:
            shown = self.context.in_sight
            names = dict.fromkeys(name for row in self.chosen_rows for layer in row.layers if (name := shown(layer)))
            self._choosing = True
            self.context.select(tuple(names))
            self._choosing = False
        self.rows_changed.emit()

    def _on_selection(self, _: object = None) -> None:
        """Choose the rows of the selected layers, and of all layers inside a selected instance."""
        if not self._choosing:
            self.chosen_rows = self._rows_of(self.context.paths(self.context.selection))
            self.rows_changed.emit()

    def _rows_of(self, layers: Iterable[str]) -> tuple[OperatorProfile, ...]:
        wanted = set(layers)
        if self.current is None or not wanted:
            return ()
        return tuple(
            row
            for row in self.current.run.operators
            if any(wanted.intersection(enclosing(layer)) for layer in row.layers)
        )

    # --- runs --------------------------------------------------------------------------------------------------

    def add(
        self,
        profile: Profile,
        path: Path | None = None,
        openings: Sequence[OpenRequest] = (),
        documents: Sequence[ref[Document] | None] = (),
    ) -> None:
        """Put the runs of a profile into the logger and show the last one.

        `openings` and `documents` have one for each run, or one for all.
        """
        for number, run in enumerate(profile.runs):
            self._count += 1
            opening = openings[min(number, len(openings) - 1)] if openings else None
            document = documents[min(number, len(documents) - 1)] if documents else None
            if opening is not None and opening.deployed is None:
                opening = msgspec.structs.replace(
                    opening, engine=run.engine, precision=run.precision, layout=run.layout
                )
            self.entries.append(Entry(self._count, profile, run, path, opening, document))
        self.entries_changed.emit()
        self.show(self.entries[-1])

    def show(self, entry: Entry | None) -> None:
        """Show a run in the table, the bars and the plots, and on the canvas."""
        if entry is not self.current:
            self.current = entry
            self.chosen_rows = self._rows_of(self.context.paths(self.context.selection) if entry is not None else ())
            self.current_changed.emit(entry)

    def compare(self, pair: tuple[Entry, Entry] | None) -> None:
        """Compare two runs, the first as the one before."""
        if pair != self.compared:
            self.compared = pair
            self.compared_changed.emit()

    def difference(self) -> RunDifference | None:
        """The difference of the compared runs; None if no two runs are compared."""
        return difference(self.compared[0].run, self.compared[1].run) if self.compared is not None else None

    def remove(self, entry: Entry) -> None:
        """Drop a run from the logger; its file stays."""
        self.entries.remove(entry)
        if self.compared is not None and entry in self.compared:
            self.compare(None)
        self.entries_changed.emit()
        if entry is self.current:
            self.show(self.entries[-1] if self.entries else None)

    def open_file(self, path: Path) -> bool:
        """Add the runs of a profile file; False, and a message, if it is not a profile."""
        try:
            profile = load_profile(path)
        except DiagnosticError as error:
            self._show_error(error)
            return False
        self.add(profile, path)
        self._report_foreign_rows(profile)
        return True

    def _report_foreign_rows(self, profile: Profile) -> None:
        """Report rows of layers that the open network does not have."""
        if not self.context.has_document:
            return
        others = match_rows(profile.runs[-1], inlined(self.context.root.inference)).others
        if others:
            names = ", ".join(row.name for row in others[:3]) + (" ..." if len(others) > 3 else "")
            text = trn(
                "{count} step of this profile is not in the open network: {names}",
                "{count} steps of this profile are not in the open network: {names}",
                len(others),
                names=names,
            )
            self.context.message.emit("warning", text)

    def save_file(self, path: Path, entry: Entry) -> bool:
        """Write one run in the format of the suffix."""
        try:
            save_profile(path, replace(entry.profile, runs=(entry.run,)))
        except DiagnosticError as error:
            self._show_error(error)
            return False
        self.context.message.emit("info", tr("Saved {name}", name=path.name))
        return True

    def _show_error(self, error: DiagnosticError) -> None:
        text = placed_text(error.diagnostics[0])
        if not self.running:
            self._set_state(State.FAILED, text)
        self.context.message.emit("error", text)


def profiling_of(context: Context) -> ProfilingController:
    """The one controller of a window."""
    found: ProfilingController | None = context.findChild(ProfilingController, options=DIRECT)
    return found or ProfilingController(context)
