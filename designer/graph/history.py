"""Undo and redo: the only way by which the program changes a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from designer.graph.edits import ChangeSet, Edit
from designer.graph.graph import Graph

Listener = Callable[[ChangeSet], None]


@dataclass(slots=True)
class _Step:
    """An edit and the states of the graph that it lies between, as numbers that are never used twice."""

    edit: Edit
    before: int
    after: int


class History:
    """Applies edits to a graph, remembers them, and tells listeners about each change.

    One `commit` is one undo step, except that edits with the same `merge_key` in a row merge, and that everything inside
    `group` is one step. Listeners are called after each applied edit, also inside a group.
    """

    def __init__(self, graph: Graph, *, limit: int = 1000) -> None:
        self.graph = graph
        self._done: list[_Step] = []
        self._undone: list[_Step] = []
        self._state = 0
        self._states = 0  # how many there have been
        self._clean = 0  # the state that was saved
        self._aside = False  # whether something was put aside of the steps since
        self._limit = limit
        self._group: list[Edit] | None = None
        self._group_title = ""
        self._sealed = False
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every ChangeSet; returns the function that ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def commit(self, edit: Edit) -> ChangeSet:
        """Apply `edit` and remember it. An edit that changes nothing is not remembered."""
        if not edit:
            return ChangeSet()
        change = self.graph.apply(edit)
        if self._group is not None:
            self._group.append(edit)
        else:
            self._remember(edit)
        self._tell(change)
        return change

    def put(self, edit: Edit) -> ChangeSet:
        """Apply an edit that is no step: undo passes it by, but the graph differs from the saved one until it is saved.

        Only for what no step touches, such as the views that a person keeps.
        """
        if not edit:
            return ChangeSet()
        change = self.graph.apply(edit)
        self._aside = True
        self._tell(change)
        return change

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        """Everything committed inside is one undo step. An exception undoes what was done inside, then goes on."""
        if self._group is not None:
            yield
            return
        self._group, self._group_title = [], title
        try:
            yield
        except BaseException:
            done, self._group = self._group, None
            for edit in reversed(done):
                self._tell(self.graph.apply(edit.reversed()))
            raise
        done, self._group = self._group, None
        if done:
            total = done[0]
            for edit in done[1:]:
                total = total.then(edit)
            if total:
                self._remember(replace(total, title=title, merge_key=""))

    def seal(self) -> None:
        """End merging: the next edit is a step of its own (the slider was released)."""
        self._sealed = True

    def undo(self) -> ChangeSet | None:
        """Take back the last step; None when there is none."""
        if not self._done or self._group is not None:
            return None
        step = self._done.pop()
        change = self.graph.apply(step.edit.reversed())
        self._undone.append(step)
        self._state = step.before
        self._sealed = True
        self._tell(change)
        return change

    def redo(self) -> ChangeSet | None:
        """Do the last undone step again; None when there is none."""
        if not self._undone or self._group is not None:
            return None
        step = self._undone.pop()
        change = self.graph.apply(step.edit)
        self._done.append(step)
        self._state = step.after
        self._sealed = True
        self._tell(change)
        return change

    @property
    def undo_title(self) -> str | None:
        return self._done[-1].edit.title if self._done else None

    @property
    def redo_title(self) -> str | None:
        return self._undone[-1].edit.title if self._undone else None

    @property
    def is_clean(self) -> bool:
        """Whether the graph is as it was when `mark_clean` was called last (or at the start)."""
        return self._state == self._clean and not self._aside

    def mark_clean(self) -> None:
        """Remember that the present state is the saved one."""
        self._clean = self._state
        self._aside = False
        self._sealed = True

    def mark_unsaved(self) -> None:
        """What is saved is not the present state, though no step says so: it was recovered, or the file is another now."""
        self._aside = True

    def _remember(self, edit: Edit) -> None:
        last = self._done[-1] if self._done else None
        self._states += 1
        if edit.merge_key and not self._sealed and last is not None and last.edit.merge_key == edit.merge_key:
            merged = last.edit.then(edit)
            if merged:
                last.edit, last.after = merged, self._states
                self._state = last.after
            else:  # dragged back to where it began
                self._done.pop()
                self._state = last.before
        else:
            self._done.append(_Step(edit, self._state, self._states))
            self._state = self._states
        self._sealed = False
        self._undone.clear()
        if len(self._done) > self._limit:
            self._done.pop(0)

    def _tell(self, change: ChangeSet) -> None:
        for listener in list(self._listeners):
            listener(change)
