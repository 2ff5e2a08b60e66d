"""The open document: a graph with its history, inference, settings and path. User intent becomes edits here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from designer.files.settings import Settings, find_settings, read_settings
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.edits import ChangeSet, Edit
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.inference import Inference
from designer.graph.template import INSTANCE, PARAMETER
from designer.operators.registry import Registry
from designer.operators.training_branch import missing_output, training_branch
from designer.texts import tr


class Document(QObject):
    """One open network. Panels listen to its signals and ask for changes with `do`."""

    changed = Signal(ChangeSet)  # after the graph and the inference are up to date
    states_changed = Signal(object)  # frozenset of layer names whose inferred state, or place in training, is different
    clean_changed = Signal(bool)
    path_changed = Signal()
    settings_changed = Signal()
    refused = Signal(object)  # tuple of Diagnostic: a wish that broke a rule

    def __init__(
        self,
        graph: Graph,
        registry: Registry,
        path: Path | None = None,
        reading: tuple[Diagnostic, ...] = (),
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.graph = graph
        self.registry = registry
        self.history = History(graph)
        self.inference = Inference(graph, registry)
        self._instances = graph.instance_counts()
        self.training = training_branch(graph, registry)  # the layers that inference leaves out
        self.path = path
        self.reading = reading  # findings of the reader, shown beside those of the inference
        self.settings = Settings()
        beside = find_settings(path) if path is not None else None
        if beside is not None:
            self.settings, found = read_settings(beside)
            self.reading = (*reading, *found)
        self._was_clean = True
        self.history.subscribe(self._on_change)

    def do(self, wish: Edit | Callable[[Graph], Edit]) -> bool:
        """Commit an edit, or what a command makes of the graph. A refusal is told by `refused` and gives False."""
        try:
            edit = wish if isinstance(wish, Edit) else wish(self.graph)
            self.history.commit(self._with_files(edit))
        except DiagnosticError as error:
            self.refused.emit(error.diagnostics)
            return False
        self._check_clean()
        return True

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        """Everything that is done inside is one step."""
        with self.history.group(title):
            yield
        self._check_clean()

    def undo(self) -> ChangeSet | None:
        """Take back the last step; what changed, None when there is none."""
        change = self.history.undo()
        self._check_clean()
        return change

    def redo(self) -> ChangeSet | None:
        change = self.history.redo()
        self._check_clean()
        return change

    def mark_saved(self, path: Path) -> None:
        """The document now stands in `path`."""
        self.path = path
        self.history.mark_clean()
        self.path_changed.emit()
        self._check_clean()

    def mark_unsaved(self) -> None:
        """What is open stands in no file, though nothing was done to it: it was recovered, or the file is another now."""
        self.history.mark_unsaved()
        self._check_clean()

    def restore_settings(self, **values: Any) -> None:
        """Put settings that were recovered: no step, for there is no other state to go back to."""
        self.settings = replace(self.settings, **values)
        self.settings_changed.emit()

    def change_settings(self, **changes: Any) -> None:
        """Put other values into the settings, by field name: a step of the history like any other. Typed numbers merge."""
        before = {key: getattr(self.settings, key) for key in changes}
        self.history.commit(commands.set_settings(before, changes))
        self._check_clean()

    def keep(self, key: str, text: str | None) -> None:
        """Put a property that undo passes by, such as a view of the canvas; the document has to be saved for it."""
        self.history.put(commands.set_property(self.graph, key, text))
        self._check_clean()

    def _with_files(self, edit: Edit) -> Edit:
        """Where layers are renamed, the files that are set for them go with the name."""
        if not edit.renamed:
            return edit
        moved: dict[str, tuple[object, object]] = {}
        for key in ("input_files", "output_files"):
            files: Mapping[str, str] = getattr(self.settings, key)
            if any(name in edit.renamed for name in files):
                moved[key] = (files, {edit.renamed.get(name, name): file for name, file in files.items()})
        return replace(edit, settings={**edit.settings, **moved})

    @property
    def root(self) -> Document:
        """The file that this belongs to: itself, unless it is the inside of a template (`scope.py`)."""
        return self

    @property
    def title(self) -> str:
        return self.path.name if self.path is not None else tr("{name} (not saved)", name=self.graph.name)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Findings of the reader and of the inference, and plugins that could not be used: layers may be missing for it."""
        silent = missing_output(self.graph, self.registry)
        notes = (silent,) if silent is not None else ()
        return (*self.registry.diagnostics, *self.reading, *self.inference.diagnostics(), *notes)

    @property
    def instances(self) -> Counter[str]:
        """How many instances of each template the file has."""
        return self._instances

    def _count(self, change: ChangeSet) -> set[str]:
        """Count again after a change; the instances of templates that have another number of them now."""
        if not (change.templates or change.computed or change.removed):
            return set()
        before, self._instances = self._instances, self.graph.instance_counts() if self.graph.templates else Counter()
        others = {name for name in before | self._instances if before[name] != self._instances[name]}
        return (
            {x.name for x in self.graph if x.type == INSTANCE and x.params.get(PARAMETER) in others}
            if others
            else set()
        )

    def _on_change(self, change: ChangeSet) -> None:
        if change.settings:
            self.settings = replace(self.settings, **dict(change.settings))  # type: ignore[arg-type]
        states = self.inference.update(change)
        if change.templates:  # what an instance computes is another thing now
            change = replace(
                change, reconfigured=change.reconfigured | self.graph.instances_using(change.templates) - change.added
            )
        if change.computed or change.removed:
            before, self.training = self.training, training_branch(self.graph, self.registry)
            states |= (before ^ self.training) & self.graph.layers.keys()
        states |= self._count(change)
        self.changed.emit(change)
        if states or change.removed:
            self.states_changed.emit(states)
        if change.settings:
            self.settings_changed.emit()

    def _check_clean(self) -> None:
        clean = self.history.is_clean
        if clean != self._was_clean:
            self._was_clean = clean
            self.clean_changed.emit(clean)
