"""Undo and redo. The program changes a graph only through `History`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from designer.graph.edits import ChangeSet, Edit
from designer.graph.graph import Graph

Listener = Callable[[ChangeSet], None]


@dataclass(slots=True)
class _Step:
    """An edit with the unique numbers of the states before and after it."""

    edit: Edit
    before: int
    after: int


class History:
    """Applies edits to a graph, records them, and notifies listeners of each change.

    Each `commit` is one undo step, but consecutive edits with the same `merge_key` merge, and everything inside `group` is
    one step. Listeners are called after each applied edit, also inside a group.
    """

    def __init__(self, graph: Graph, *, limit: int = 1000) -> None:
        self.graph = graph
        self._done: list[_Step] = []
        self._undone: list[_Step] = []
        self._state = 0
        self._states = 0  # states numbered so far
        self._clean = 0  # the state that was saved
        self._aside = False  # whether something was put aside of the steps since
        self._limit = limit
        self._group: list[Edit] | None = None
        self._group_title = ""
        self._sealed = False
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every ChangeSet. Returns a function that unsubscribes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def commit(self, edit: Edit) -> ChangeSet:
        """Apply `edit` and record it, unless it changes nothing."""
        if not edit:
            return ChangeSet()
        change = self.graph.apply(edit)
        if self._group is not None:
            self._group.append(edit)
        else:
            self._remember(edit)
        self._notify(change)
        return change

    def put(self, edit: Edit) -> ChangeSet:
        """Apply an edit outside the undo steps. The document counts as unsaved afterwards.

        Only for values that no undo step changes, such as saved views.
        """
        if not edit:
            return ChangeSet()
        change = self.graph.apply(edit)
        self._aside = True
        self._notify(change)
        return change

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        """Make everything committed inside one undo step. An exception undoes it and propagates."""
        if self._group is not None:
            yield
            return
        self._group, self._group_title = [], title
        try:
            yield
        except BaseException:
            done, self._group = self._group, None
            for edit in reversed(done):
                self._notify(self.graph.apply(edit.reversed()))
            raise
        done, self._group = self._group, None
        if done:
            total = done[0]
            for edit in done[1:]:
                total = total.then(edit)
            if total:
                self._remember(replace(total, title=title, merge_key=""))

    def seal(self) -> None:
        """End merging: the next edit starts a new undo step. Called for instance when a slider is released."""
        self._sealed = True

    def undo(self) -> ChangeSet | None:
        """Undo the last step; None if there is none."""
        if not self._done or self._group is not None:
            return None
        step = self._done.pop()
        change = self.graph.apply(step.edit.reversed())
        self._undone.append(step)
        self._state = step.before
        self._sealed = True
        self._notify(change)
        return change

    def redo(self) -> ChangeSet | None:
        """Redo the step undone last; None if there is none."""
        if not self._undone or self._group is not None:
            return None
        step = self._undone.pop()
        change = self.graph.apply(step.edit)
        self._done.append(step)
        self._state = step.after
        self._sealed = True
        self._notify(change)
        return change

    @property
    def steps(self) -> int:
        """Number of steps that can be undone."""
        return len(self._done)

    @property
    def undo_title(self) -> str | None:
        return self._done[-1].edit.title if self._done else None

    @property
    def redo_title(self) -> str | None:
        return self._undone[-1].edit.title if self._undone else None

    @property
    def is_clean(self) -> bool:
        """Whether the graph is in the state of the last `mark_clean`, or initially the first state."""
        return self._state == self._clean and not self._aside

    def mark_clean(self) -> None:
        """Mark the current state as the saved one."""
        self._clean = self._state
        self._aside = False
        self._sealed = True

    def mark_unsaved(self) -> None:
        """Mark the current state as unsaved without an edit, because it was recovered or the file has changed."""
        self._aside = True

    def _remember(self, edit: Edit) -> None:
        last = self._done[-1] if self._done else None
        self._states += 1
        back = False
        if edit.merge_key and not self._sealed and last is not None and last.edit.merge_key == edit.merge_key:
            merged = last.edit.then(edit)
            if merged:
                last.edit, last.after = merged, self._states
                self._state = last.after
            else:  # dragged back to where it began
                self._done.pop()
                self._state = last.before
                back = True
        else:
            self._done.append(_Step(edit, self._state, self._states))
            self._state = self._states
        self._sealed = back  # dragging on must not merge with the step before
        self._undone.clear()
        if len(self._done) > self._limit:
            self._done.pop(0)

    def _notify(self, change: ChangeSet) -> None:
        for listener in list(self._listeners):
            listener(change)
