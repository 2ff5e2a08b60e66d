"""The inside of a template, shown and edited like a document. What it commits is a step of the open file's history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from PySide6.QtCore import QObject

from app.ui.document.document import Document
from designer.files.settings import Settings
from designer.graph.compare import edit_between
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.edits import ChangeSet, Edit
from designer.graph.graph import Graph
from designer.graph.template import INSTANCE, PARAMETER
from designer.graph.template_commands import edit_template
from designer.graph.types import TensorType
from designer.operators.inside import InsideInference, feeds_of
from designer.operators.training_branch import training_branch


class Step(NamedTuple):
    """One step inwards: the instance that was entered, empty when the template was opened by its name, and the template."""

    instance: str
    template: str


class TemplateView(Document):
    """A template of the open file. Undo, path, settings and clean state are the file's.

    The graph follows the file's ChangeSets by `follow`, which `Context` calls from the root inwards. Types are those of the
    instance through which one came; they are unknown where the template was opened by its name.
    """

    def __init__(self, outer: Document, step: Step, parent: QObject | None = None) -> None:
        QObject.__init__(self, parent)
        self.outer = outer
        self.instance, self.template = step
        self._file = outer.root
        self.registry = outer.registry
        self.history = self._file.history
        self.graph = self._file.graph.inside(self.template)
        self.renamed: Mapping[str, str] = {}  # layers, by the last change
        self._inside = InsideInference(self.graph, self.registry, self._feeds())
        self.inference = self._inside
        self.training = self._training()
        self._counted = self._file.instances
        self.reading = ()
        self._file.clean_changed.connect(self.clean_changed)
        self._file.path_changed.connect(self.path_changed)
        self._file.settings_changed.connect(self.settings_changed)

    @staticmethod
    def leads(outer: Document, step: Step) -> bool:
        """Whether one can go this way from a document."""
        layer = outer.graph.get(step.instance)
        is_of = layer is not None and layer.type == INSTANCE and layer.params.get(PARAMETER) == step.template
        return step.template in outer.root.graph.templates and (is_of or not step.instance)

    # --- what belongs to the file ----------------------------------------------------------------------------

    @property
    def root(self) -> Document:
        return self._file

    @property
    def path(self) -> Path | None:
        return self._file.path

    @path.setter
    def path(self, path: Path | None) -> None:
        raise AttributeError("the path belongs to the open file")

    @property
    def settings(self) -> Settings:
        return self._file.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        raise AttributeError("the settings belong to the open file")

    @property
    def instances(self) -> Counter[str]:
        return self._file.instances

    def do(self, wish: Edit | Callable[[Graph], Edit]) -> bool:
        """As in a document; the wish is about the layers of the template."""
        try:
            edit = wish if isinstance(wish, Edit) else wish(self.graph)
            step = edit_template(self._file.graph, self.template, edit) if edit else edit
        except DiagnosticError as error:
            self.refused.emit(error.diagnostics)
            return False
        return self._file.do(step)

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        with self._file.group(f"{title} in {self.template}"):
            yield

    def mark_saved(self, path: Path) -> None:
        self._file.mark_saved(path)

    def undo(self) -> ChangeSet | None:
        return self._file.undo()

    def redo(self) -> ChangeSet | None:
        return self._file.redo()

    def keep(self, key: str, text: str | None) -> None:
        self._file.keep(key, text)

    def change_settings(self, **changes: Any) -> None:
        self._file.change_settings(**changes)

    @property
    def title(self) -> str:
        return self._file.title

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Findings about the layers of the template."""
        return self.inference.diagnostics()

    # --- following the file ----------------------------------------------------------------------------------

    def follow(self, change: ChangeSet) -> bool:
        """Take over what the file's change means here, once what is around is true; False when the way in is gone."""
        outer = self.outer.renamed if isinstance(self.outer, TemplateView) else change.renamed
        self.instance = outer.get(self.instance, self.instance)
        self.renamed = change.renamed_inside.get(self.template, {})
        self.template = change.renamed_templates.get(self.template, self.template)
        if not TemplateView.leads(self.outer, Step(self.instance, self.template)):
            return False
        mine = ChangeSet()
        if change.templates:
            edit = edit_between(self.graph, self._file.graph.inside(self.template), "Follow", self.renamed)
            mine = self.graph.apply(edit) if edit is not None else mine
        self._inside.inside.feed(self._feeds())
        states = self.inference.update(mine)
        if mine.templates:
            mine = replace(
                mine, reconfigured=mine.reconfigured | self.graph.instances_using(mine.templates) - mine.added
            )
        before, self.training = self.training, self._training()
        states |= (before ^ self.training) & self.graph.layers.keys()
        before_count, self._counted = self._counted, self._file.instances
        if self._counted is not before_count:
            states |= {layer.name for layer in self.graph if layer.type == INSTANCE}
        if mine:
            self.changed.emit(mine)
        if states or mine.removed:
            self.states_changed.emit(states)
        return True

    def _feeds(self) -> dict[str, TensorType]:
        if not self.instance:
            return {}
        return feeds_of(self.outer.inference, self.instance, self._file.graph.templates[self.template].inputs)

    def _training(self) -> frozenset[str]:
        """All layers where the instance belongs to the training branch, else what does inside."""
        if self.instance in self.outer.training:
            return frozenset(self.graph.layers)
        return training_branch(self.graph, self.registry)
