"""The open document: a graph with its history, inference, settings and path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.ui.document.import_record import ImportRecord
from designer.files.reader import MENDED_BY_SAVING
from designer.files.settings import Settings, stored_settings
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.edits import ChangeSet, Edit
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.inference import Inference
from designer.graph.template import INSTANCE, PARAMETER, enclosing
from designer.operators.inlining import renamed_path
from designer.operators.registry import Registry
from designer.operators.training_branch import missing_output, training_branch
from designer.texts import tr


class Document(QObject):
    """One open network. Panels connect to its signals and request changes with `do`."""

    changed = Signal(ChangeSet)  # after the graph and the inference are up to date
    states_changed = Signal(
        object
    )  # frozenset of layer names whose inferred state or membership in the training branch changed
    clean_changed = Signal(bool)
    path_changed = Signal()
    settings_changed = Signal()
    project_changed = Signal()  # the folder of the PyTorch project of a document without a file
    refused = Signal(object)  # tuple of Diagnostic: why an edit was refused
    inserted = Signal(
        str
    )  # a layer that `insert` added; what a canvas does about its place belongs to the same undo step

    def __init__(
        self,
        graph: Graph,
        registry: Registry,
        path: Path | None = None,
        reading: tuple[Diagnostic, ...] = (),
        parent: QObject | None = None,
        inference: Inference | None = None,
    ) -> None:
        """`inference` is that of the graph, if it was inferred before."""
        super().__init__(parent)
        self.graph = graph
        self.registry = registry
        self.history = History(graph)
        self.inference = inference if inference is not None else Inference(graph, registry)
        self._instances = graph.instance_counts()
        self.training = training_branch(graph, registry)  # layers that inference omits
        self.path = path
        self.project: Path | None = None  # the folder of the PyTorch project generated last
        self.reading = reading  # findings of the reader, shown with those of inference
        self.imported: ImportRecord | None = None
        self.settings = Settings()
        if path is not None:
            self.settings, found = stored_settings(path)
            self.project = Path(self.settings.project) if self.settings.project else None
            self.reading = (*reading, *found)
        self._was_clean = True
        self.history.subscribe(self._on_change)

    @property
    def file(self) -> Path | None:
        """The file that opens the document again: its own, or the model that it was imported from."""
        return self.path if self.path is not None or self.imported is None else self.imported.source

    def do(self, request: Edit | Callable[[Graph], Edit]) -> bool:
        """Commit an edit, or the edit that a command returns. If it is refused, emit `refused` and return False."""
        try:
            edit = request if isinstance(request, Edit) else request(self.graph)
            self.history.commit(self._with_settings(edit))
        except DiagnosticError as error:
            self.refused.emit(error.diagnostics)
            return False
        self._check_clean()
        return True

    def insert(self, request: Edit | Callable[[Graph], Edit]) -> bool:
        """Like `do`; layers that the edit adds get a free place on the canvas that shows the document, in the same undo step."""
        try:
            edit = request if isinstance(request, Edit) else request(self.graph)
        except DiagnosticError as error:
            self.refused.emit(error.diagnostics)
            return False
        added = [
            name for name, (before, _) in edit.layers.items() if before is None and name not in edit.renamed.values()
        ]
        if not added:
            return self.do(edit)
        with self.group(edit.title):
            done = self.do(edit)
            for name in added if done else ():
                self.inserted.emit(name)
        return done

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        """Merge all edits inside the context into one undo step."""
        with self.history.group(title):
            yield
        self._check_clean()

    def undo(self) -> ChangeSet | None:
        """Undo the last step. Returns the change, or None if there is nothing to undo."""
        change = self.history.undo()
        self._check_clean()
        return change

    def redo(self) -> ChangeSet | None:
        change = self.history.redo()
        self._check_clean()
        return change

    def mark_saved(self, path: Path) -> None:
        """Mark the document as saved to `path`: findings that saving mends are gone."""
        left = tuple(finding for finding in self.reading if finding.code not in MENDED_BY_SAVING)
        if left != self.reading:
            self.show_findings(left)
        self.mark_as_file(path)

    def mark_as_file(self, path: Path) -> None:
        """Mark the document as equal to the file at `path`."""
        self.path = path
        self.history.mark_clean()
        self.path_changed.emit()
        self._check_clean()

    def name_after_file(self, name: str) -> None:
        """Set the name without an undo step. The document counts as modified only if it was."""
        clean = self.history.is_clean
        self.history.put(commands.set_property(self.graph, "name", name))
        if clean:
            self.history.mark_clean()

    def mark_unsaved(self) -> None:
        """Mark the document as unsaved without an edit: it was recovered, or its file changed."""
        self.history.mark_unsaved()
        self._check_clean()

    def restore_settings(self, **values: Any) -> None:
        """Set recovered settings, without an undo step."""
        self.settings = replace(self.settings, **values)
        if "project" in values:
            self.project = Path(self.settings.project) if self.settings.project else None
        self.settings_changed.emit()

    def use_project(self, folder: Path, task: str = "") -> None:
        """Set the folder of the PyTorch project, in which the runs are. A document without a file has it in its settings too.

        `task` is what the project trains, if it is known. This is not an undo step.
        """
        self.project = folder
        known = (str(folder), task or self.settings.task)
        if self.path is None and known != (self.settings.project, self.settings.task):
            self.restore_settings(project=known[0], task=known[1])
            self.project_changed.emit()

    def add_finding(self, finding: Diagnostic) -> None:
        """Show a finding that is not about the current state of a layer."""
        self.show_findings((*self.reading, finding))

    def show_findings(self, findings: tuple[Diagnostic, ...]) -> None:
        """Show these findings in place of those of the last reading."""
        self.reading = findings
        self.states_changed.emit(frozenset())

    def change_settings(self, **changes: Any) -> None:
        """Change settings by field name as an undoable edit; consecutive edits of numbers merge."""
        before = {key: getattr(self.settings, key) for key in changes}
        self.history.commit(commands.set_settings(before, changes))
        self._check_clean()

    def keep(self, key: str, text: str | None) -> None:
        """Set a property without an undo step, such as a view of the canvas. The document counts as modified."""
        self.history.put(commands.set_property(self.graph, key, text))
        self._check_clean()

    def _with_settings(self, edit: Edit) -> Edit:
        """Add to an edit that renames layers the renaming of their files and number formats in the settings."""
        if not edit.renamed and not edit.renamed_inside:
            return edit
        gone = edit.renamed.values() - edit.renamed.keys()  # layers that had these names before were deleted

        def name_of(path: str) -> str | None:
            return None if gone.intersection(enclosing(path)) else renamed_path(self.graph, edit, path)

        settings = self.settings
        renamed: dict[str, object] = {"variants": tuple(variant.renamed(name_of) for variant in settings.variants)}
        for key in ("input_files", "output_files"):
            files: Mapping[str, str] = getattr(settings, key)
            renamed[key] = {edit.renamed.get(name, name): file for name, file in files.items() if name not in gone}
        moved = {key: (old, value) for key, value in renamed.items() if (old := getattr(settings, key)) != value}
        return replace(edit, settings={**moved, **edit.settings})

    @property
    def root(self) -> Document:
        """The document of the file: itself, or the enclosing document of a template view."""
        return self

    @property
    def title(self) -> str:
        return self.path.name if self.path is not None else tr("{name} (unsaved)", name=self.graph.name)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Findings of the reader, of inference and of plugins that failed to load."""
        silent = missing_output(self.graph, self.registry)
        notes = (silent,) if silent is not None else ()
        return (*self.registry.diagnostics, *self.reading, *self.inference.diagnostics(), *notes)

    @property
    def instances(self) -> Counter[str]:
        """The number of instances of each template in the file."""
        return self._instances

    def _count(self, change: ChangeSet) -> set[str]:
        """Update the instance counts. Returns the instances of templates whose count changed."""
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
        if change.templates:  # instances of changed templates compute something else
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
