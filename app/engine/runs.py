"""Runs of the engine process: results handed over, coarse ones first where that helps, and given up when asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.engine.protocol import BadRequestError, Params, whole_of
from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Source
from designer.runtime.api import Array, RunResult
from designer.runtime.interrupt import Interrupt, InterruptedRunError
from designer.runtime.nonfinite import NonFinite, nonfinite
from designer.runtime.preview import Preview, factor_for
from designer.runtime.session import Session
from designer.runtime.shared import Handle, SharedFolder

PROGRESS_AFTER = 0.1  # seconds that a request may take before its progress is told


class Progress:
    """Tells the progress of one request, once it takes long enough for a person to wonder."""

    def __init__(self, tell: Callable[[dict[str, Any]], None], number: Any) -> None:
        self._tell = tell
        self._number = number
        self._next = time.monotonic() + PROGRESS_AFTER

    def __call__(self, done: int, total: int, text: str) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + PROGRESS_AFTER
            self._tell({"event": "progress", "id": self._number, "done": done, "total": total, "text": text})


class Runs:
    """The runs of one opened network after the other, and what the window holds of them."""

    def __init__(self, shared: SharedFolder) -> None:
        self._shared = shared
        self._interrupt: Interrupt | None = None
        self.forget()

    def forget(self) -> None:
        """Another network was opened."""
        self._captured: dict[str, Array] = {}  # as handed over last
        self._looked_at: dict[int, tuple[Array, NonFinite | None]] = {}  # by id; the array is kept so that its id stays
        self._preview: Preview | None = None
        self._fails_reduced = -1  # the state of the network of which a coarse run failed

    def interrupt(self) -> None:
        running = self._interrupt
        if running is not None:
            running.ask()

    def run(self, session: Session, params: Params, progress: Progress) -> dict[str, Any]:
        """`{capture: [tensor], have: [tensor], budget: ms}` -> outputs and captures as handles, steps, notes.

        With a `budget`, a run that would take longer is done at a reduced size: `coarse` then says by how much. A run that is
        interrupted answers `superseded`.
        """
        names = params.get("capture") or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise BadRequestError("'capture' must be a list of texts")
        held = params.get("have") or []  # captures of the last run that the window still has
        if not isinstance(held, list):
            raise BadRequestError("'have' must be a list of texts")
        budget = whole_of(params, "budget", 0)
        sources = [Source.parse(name) for name in names]
        self._interrupt = Interrupt()
        try:
            coarse = self._coarse(session, sources, budget, progress) if budget else None
            result = coarse or session.run(sources, progress, self._interrupt)
        except InterruptedRunError:
            return {"superseded": True}
        finally:
            self._interrupt = None
        return self._told(result, {n: result.captures[source] for n, source in zip(names, sources, strict=True)}, held)

    def _coarse(self, session: Session, sources: Sequence[Source], budget: int, progress: Progress) -> RunResult | None:
        """The result at a reduced size, where the run takes longer than `budget` ms and the network allows it."""
        if session.structure == self._fails_reduced:
            return None
        expected = session.expected(sources)
        if expected is None or expected <= budget:
            return None
        factor = factor_for(expected)
        if self._preview is None or self._preview.factor != factor:
            self._preview = Preview(session, factor)
        try:
            return self._preview.run(sources, progress)
        except DiagnosticError:  # a size that the network needs, for instance; the full run says what else is wrong
            self._fails_reduced, self._preview = session.structure, None
            return None

    def _told(self, result: RunResult, captured: Mapping[str, Array], held: Sequence[Any]) -> dict[str, Any]:
        same = [name for name in captured if name in held and self._captured.get(name) is captured[name]]
        outputs, captures = self.handed_over(
            result.outputs, {name: array for name, array in captured.items() if name not in same}
        )
        nonfinite = self._nonfinite({**captured, **result.outputs})
        self._captured = dict(captured)
        coarse = f"preview at 1/{result.coarse} of the size" if result.coarse else ""
        return {
            "outputs": outputs,
            "captures": captures,
            "same": same,
            "steps": [
                {
                    "layers": list(s.layers),
                    "engine": s.engine,
                    "milliseconds": s.milliseconds,
                    "cached": s.cached,
                    "dropped": s.dropped,
                }
                for s in result.steps
            ],
            "milliseconds": result.milliseconds,
            "nonfinite": nonfinite,
            "coarse": result.coarse,
            "note": "; ".join(note for note in (coarse, result.weights_note, result.note) if note),
        }

    def _nonfinite(self, arrays: Mapping[str, Array]) -> dict[str, dict[str, Any]]:
        """Of the tensors that hold values which are no numbers, how many; each array is looked at once."""
        known = self._looked_at
        self._looked_at = {
            id(array): known[id(array)] if id(array) in known else (array, nonfinite(array))
            for array in arrays.values()
        }
        found = {name: self._looked_at[id(array)][1] for name, array in arrays.items()}
        return {name: {"nan": f.nan, "inf": f.inf, "share": f.share} for name, f in found.items() if f is not None}

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
