"""Edits and change sets. An edit holds the values before and after, so that reversing it swaps the two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from designer.graph.model import ROUTES, Frame, Layer
from designer.graph.template import Template

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Edit:
    """One undoable step.

    `layers`, `properties`, `frames` and `templates` map a key to (before, after); None means absent. `renamed` maps old to
    new names of layers, `renamed_templates` of templates, and `renamed_inside` of layers inside a template, keyed by the
    template's name before the edit. `settings` are fields of the document's settings, which share the history but belong to
    `app.ui.document.document` instead of the graph.
    Consecutive edits with the same non-empty `merge_key` become one undo step, for instance while a slider is dragged.
    """

    title: str
    layers: Mapping[str, tuple[Layer | None, Layer | None]] = field(default_factory=dict)
    properties: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    frames: Mapping[str, tuple[Frame | None, Frame | None]] = field(default_factory=dict)
    merge_key: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)
    templates: Mapping[str, tuple[Template | None, Template | None]] = field(default_factory=dict)
    settings: Mapping[str, tuple[object, object]] = field(default_factory=dict)
    renamed_templates: Mapping[str, str] = field(default_factory=dict)
    renamed_inside: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether the edit changes anything."""
        groups: tuple[Mapping[str, tuple[object, object]], ...] = (
            self.layers,
            self.properties,
            self.frames,
            self.templates,
            self.settings,
        )
        return any(before != after for group in groups for before, after in group.values())

    def reversed(self) -> Edit:
        return Edit(
            self.title,
            {name: (after, before) for name, (before, after) in self.layers.items()},
            {key: (after, before) for key, (before, after) in self.properties.items()},
            {key: (after, before) for key, (before, after) in self.frames.items()},
            self.merge_key,
            _reversed_names(self.renamed),
            {key: (after, before) for key, (before, after) in self.templates.items()},
            {key: (after, before) for key, (before, after) in self.settings.items()},
            _reversed_names(self.renamed_templates),
            {self.renamed_templates.get(t, t): _reversed_names(names) for t, names in self.renamed_inside.items()},
        )

    def then(self, later: Edit, title: str | None = None) -> Edit:
        """This edit followed by `later`, as one edit without the values that end up unchanged."""
        return Edit(
            title if title is not None else self.title,
            _chain(self.layers, later.layers),
            _chain(self.properties, later.properties),
            _chain(self.frames, later.frames),
            self.merge_key,
            _chain_names(self.renamed, later.renamed),
            _chain(self.templates, later.templates),
            _chain(self.settings, later.settings),
            _chain_names(self.renamed_templates, later.renamed_templates),
            self._chain_inside(later),
        )

    def _chain_inside(self, later: Edit) -> dict[str, dict[str, str]]:
        """The renames inside templates of this edit followed by `later`."""
        before = _reversed_names(self.renamed_templates)
        found = {template: dict(names) for template, names in self.renamed_inside.items()}
        for template, names in later.renamed_inside.items():
            key = before.get(template, template)
            found[key] = _chain_names(found.get(key, {}), names)
        return {template: names for template, names in found.items() if names}


def _chain(
    first: Mapping[str, tuple[T | None, T | None]], second: Mapping[str, tuple[T | None, T | None]]
) -> dict[str, tuple[T | None, T | None]]:
    result = dict(first)
    for key, (before, after) in second.items():
        result[key] = (result[key][0] if key in result else before, after)
    return {key: (before, after) for key, (before, after) in result.items() if before != after}


def _chain_names(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, str]:
    result = {old: second.get(new, new) for old, new in first.items()}
    middle = set(first.values())
    result.update({old: new for old, new in second.items() if old not in middle})
    return {old: new for old, new in result.items() if old != new}


def _reversed_names(names: Mapping[str, str]) -> dict[str, str]:
    return {new: old for old, new in names.items()}


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """What an applied edit changed, for listeners: names of layers by kind of change.

    A renamed layer is in `removed` and `added`; `renamed` maps old to new names so that views can keep their state.
    `rewired`, `reconfigured` (parameters, type, activation), `moved` and `redrawn` (canvas appearance, such as collapsed)
    can overlap. `templates` names the templates that were added, removed or changed; `renamed_templates` and
    `renamed_inside` are those of the edit. `settings` holds the changed fields of the document's settings with their new
    values.
    """

    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    rewired: frozenset[str] = frozenset()
    reconfigured: frozenset[str] = frozenset()
    moved: frozenset[str] = frozenset()
    frames: frozenset[str] = frozenset()
    properties: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)
    templates: frozenset[str] = frozenset()
    redrawn: frozenset[str] = frozenset()
    settings: Mapping[str, object] = field(default_factory=dict)
    renamed_templates: Mapping[str, str] = field(default_factory=dict)
    renamed_inside: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def computed(self) -> frozenset[str]:
        """Existing layers whose result may have changed; a move does not count."""
        return self.added | self.rewired | self.reconfigured

    def __bool__(self) -> bool:
        return bool(
            self.added
            or self.removed
            or self.rewired
            or self.reconfigured
            or self.moved
            or self.frames
            or self.properties
            or self.templates
            or self.redrawn
            or self.settings
        )

    @classmethod
    def of(cls, edit: Edit) -> ChangeSet:
        added, removed, rewired, reconfigured, moved, redrawn = set(), set(), set(), set(), set(), set()
        for name, (before, after) in edit.layers.items():
            if before is None and after is not None:
                added.add(name)
            elif after is None and before is not None:
                removed.add(name)
            elif before is not None and after is not None:
                if before.inputs != after.inputs:
                    rewired.add(name)
                if _meaning(before) != _meaning(after):
                    reconfigured.add(name)
                if _place(before) != _place(after):
                    moved.add(name)
                if (before.attributes, before.children) != (after.attributes, after.children):
                    redrawn.add(name)
        return cls(
            frozenset(added),
            frozenset(removed),
            frozenset(rewired),
            frozenset(reconfigured),
            frozenset(moved),
            frozenset(k for k, (b, a) in edit.frames.items() if b != a),
            frozenset(k for k, (b, a) in edit.properties.items() if b != a),
            {old: new for old, new in edit.renamed.items() if old in removed and new in added},
            frozenset(k for k, (b, a) in edit.templates.items() if b != a),
            frozenset(redrawn),
            {k: a for k, (b, a) in edit.settings.items() if b != a},
            edit.renamed_templates,
            edit.renamed_inside,
        )


def _place(layer: Layer) -> tuple[object, ...]:
    """The position of a layer and the routes of its links."""
    return layer.position, layer.attributes.get(ROUTES)


def _meaning(layer: Layer) -> tuple[object, ...]:
    return layer.type, layer.params, layer.activation, layer.weights_of, layer.bypassed
