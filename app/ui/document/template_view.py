"""The inside of a template, shown and edited like a document. Its edits are committed to the open file's history."""

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


class ScopeStep(NamedTuple):
    """One level of the scope: the template, and the instance through which it was entered ("" if opened by name)."""

    instance: str
    template: str


def find_layer(root: Graph, path: str) -> tuple[tuple[ScopeStep, ...], str] | None:
    """The scope and the name of a layer that the engine calls `path` (`group_1.conv_1`); None when it is nowhere."""
    graph, rest = root, path
    scope: list[ScopeStep] = []
    while True:
        if rest in graph:
            return tuple(scope), rest
        dots = [i for i, letter in enumerate(rest) if letter == "." and rest[:i] in graph]
        layer = graph[rest[: dots[-1]]] if dots else None
        template = layer.params.get(PARAMETER, "") if layer is not None and layer.type == INSTANCE else ""
        if layer is None or template not in root.templates:
            return None
        scope.append(ScopeStep(layer.name, template))
        graph, rest = root.inside(template), rest[len(layer.name) + 1 :]


class TemplateView(Document):
    """A template of the open file, which shares the file's history, path, settings and clean state.

    `Context` passes the file's ChangeSets to `follow`, outer views first. Tensor types are those of the instance through
    which the template was entered, and unknown if it was opened by name.
    """

    def __init__(self, outer: Document, step: ScopeStep, parent: QObject | None = None) -> None:
        QObject.__init__(self, parent)
        self.outer = outer
        self.instance, self.template = step
        self._file = outer.root
        self.registry = outer.registry
        self.history = self._file.history
        self.graph = self._file.graph.inside(self.template)
        self.renamed: Mapping[str, str] = {}  # layers renamed by the last change, old name to new
        self._inside = InsideInference(self.graph, self.registry, self._feeds())
        self.inference = self._inside
        self.training = self._training()
        self._counted = self._file.instances
        self.reading = ()
        self._file.clean_changed.connect(self.clean_changed)
        self._file.path_changed.connect(self.path_changed)
        self._file.settings_changed.connect(self.settings_changed)

    @staticmethod
    def leads(outer: Document, step: ScopeStep) -> bool:
        """Whether the step exists in a document."""
        layer = outer.graph.get(step.instance)
        is_of = layer is not None and layer.type == INSTANCE and layer.params.get(PARAMETER) == step.template
        return step.template in outer.root.graph.templates and (is_of or not step.instance)

    # --- shared with the file ----------------------------------------------------------------------------

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

    def do(self, request: Edit | Callable[[Graph], Edit]) -> bool:
        """Like `Document.do`, for the layers of the template."""
        try:
            edit = request if isinstance(request, Edit) else request(self.graph)
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
        """Apply the part of a file's change that concerns this template, after the outer views. False if its path no longer exists."""
        outer = self.outer.renamed if isinstance(self.outer, TemplateView) else change.renamed
        self.instance = outer.get(self.instance, self.instance)
        self.renamed = change.renamed_inside.get(self.template, {})
        self.template = change.renamed_templates.get(self.template, self.template)
        if not TemplateView.leads(self.outer, ScopeStep(self.instance, self.template)):
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
        """All layers if the instance belongs to the training branch, otherwise the training branch of the template."""
        if self.instance in self.outer.training:
            return frozenset(self.graph.layers)
        return training_branch(self.graph, self.registry)
