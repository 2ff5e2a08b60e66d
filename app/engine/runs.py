"""Runs of the engine process: shared results, coarse previews, and interruption."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from app.engine.protocol import NonfiniteShare, ProgressEvent, RunReply, RunRequest, RunStep
from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Source
from designer.precision.variants import is_emulated
from designer.runtime.api import Array, RunResult
from designer.runtime.finite import NonFinite, nonfinite
from designer.runtime.interrupt import Interrupt
from designer.runtime.preview import Preview, factor_for
from designer.runtime.session import Session
from designer.runtime.shared import Handle, SharedFolder

PROGRESS_AFTER = 0.1  # seconds that a request may take before its progress is reported


class Progress:
    """Reports the progress of one request, once it takes long enough for a user to wonder."""

    def __init__(self, send: Callable[[ProgressEvent], None], number: int) -> None:
        self._send = send
        self._number = number
        self._next = time.monotonic() + PROGRESS_AFTER

    def __call__(self, done: int, total: int, text: str) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + PROGRESS_AFTER
            self._send(ProgressEvent(self._number, done, total, text))


class Runs:
    """The runs of one opened network after the other, and what the window holds of them."""

    def __init__(self, shared: SharedFolder) -> None:
        self._shared = shared
        self._interrupt = Interrupt()  # of the run that goes on, or else of the next one
        self.forget()

    def forget(self) -> None:
        """Another network was opened."""
        self._captured: dict[str, Array] = {}  # as handed over last
        self._checked: dict[int, tuple[Array, NonFinite | None]] = {}  # by id; the array is kept so that its id stays
        self._preview: Preview | None = None
        self._fails_reduced = -1  # the state of the network of which a coarse run failed

    def interrupt(self) -> None:
        """End the run that goes on or is about to begin, from another thread."""
        self._interrupt.ask()

    def interrupted(self) -> None:
        """The interrupt is answered in its turn: runs after it are not meant."""
        self._interrupt = Interrupt()

    def run(self, session_of: Callable[[], Session], request: RunRequest, progress: Progress) -> RunReply:
        """Outputs and captures as handles. `session_of` may take long. Raises InterruptedRunError."""
        sources = [Source.parse(name) for name in request.capture]
        try:
            session = session_of()
            coarse = self._coarse(session, sources, request.budget, progress) if request.budget else None
            result = coarse or session.run(sources, progress, self._interrupt)
        finally:
            self._interrupt = Interrupt()
        captured = {n: result.captures[source] for n, source in zip(request.capture, sources, strict=True)}
        return self._reply(result, captured, request.have, session)

    def _coarse(self, session: Session, sources: Sequence[Source], budget: int, progress: Progress) -> RunResult | None:
        """The result at a reduced size, where the run takes longer than `budget` ms and the network allows it."""
        if session.structure == self._fails_reduced:
            return None
        expected = session.expected(sources)
        if expected is None or expected <= budget:
            return None
        factor = factor_for(expected)
        if self._preview is None or self._preview.full is not session or self._preview.factor != factor:
            self._preview = Preview(session, factor)
        try:
            return self._preview.run(sources, progress)
        except DiagnosticError:  # a size that the network needs, for instance; the full run says what else is wrong
            self._fails_reduced, self._preview = session.structure, None
            return None

    def _reply(
        self, result: RunResult, captured: Mapping[str, Array], held: Sequence[str], session: Session
    ) -> RunReply:
        same = tuple(name for name in captured if name in held and self._captured.get(name) is captured[name])
        outputs, captures = self.handed_over(
            result.outputs, {name: array for name, array in captured.items() if name not in same}
        )
        hidden = {name: NonfiniteShare(found.nan, found.inf, found.share) for name, found in result.hidden.items()}
        nonfinite = {**hidden, **self._nonfinite({**captured, **result.outputs})}
        self._captured = dict(captured)
        coarse = f"preview at 1/{result.coarse} of the size" if result.coarse else ""
        return RunReply(
            outputs,
            captures,
            same,
            tuple(RunStep(s.layers, s.engine, s.milliseconds, s.cached, s.dropped) for s in result.steps),
            result.milliseconds,
            nonfinite,
            result.coarse,
            "; ".join((*((coarse,) if coarse else ()), *result.notes())),
            session.weights.title,
            session.weights.sha256,
            is_emulated(session.options),
        )

    def _nonfinite(self, arrays: Mapping[str, Array]) -> dict[str, NonfiniteShare]:
        """The tensors that hold values that are NaN or infinite; each array is checked once."""
        known = self._checked
        self._checked = {
            number: known[number] if number in known else (array, nonfinite(array))
            for number, array in {id(array): array for array in arrays.values()}.items()
        }
        found = {name: self._checked[id(array)][1] for name, array in arrays.items()}
        return {name: NonfiniteShare(f.nan, f.inf, f.share) for name, f in found.items() if f is not None}

    def handed_over(self, *groups: Mapping[str, Array]) -> list[dict[str, Handle]]:
        """Handles of all arrays; when one cannot be written the others are taken back."""
        made: list[dict[str, Handle]] = []
        try:
            for group in groups:
                made.append({})
                for name, array in group.items():
                    made[-1][name] = self._shared.put(array)
        except DiagnosticError:
            for handles in made:
                for handle in handles.values():
                    self._shared.free(handle)
            raise
        return made
