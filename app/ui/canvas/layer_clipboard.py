"""Layers on the clipboard as the text of a model file, to copy them between documents, windows and messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from designer.files.snippets import holds_layers, model_text
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.graph.template import INSTANCE, PARAMETER, Template, closure
from designer.texts import tr


def copy(graph: Graph, names: Iterable[str]) -> None:
    """Put layers on the clipboard, with the templates that they use. Links from outside are included; pasting keeps or drops them."""
    from designer.files.document import write_document

    layers = [_declared(graph[n], graph.attributes) for n in names]
    used = {
        t: None for x in layers if x.type == INSTANCE for t in closure(graph.templates, x.params.get(PARAMETER, ""))
    }
    templates = (_declaring(graph.templates[t], graph.attributes) for t in used if t in graph.templates)
    part = Graph(layers, name=graph.name, templates=templates)
    # Text alone: a mime object made in Python would outlive Python in Qt's clipboard and end the process with a crash.
    QGuiApplication.clipboard().setText(write_document(part).decode("utf-8"))


def _declared(layer: Layer, attributes: Mapping[str, str]) -> Layer:
    """The layer with the declarations of its foreign XML prefixes, taken from the document's root. Pasting removes redundant ones."""
    used = _used(attributes, *_foreign_parts(layer))
    return replace(layer, attributes={**used, **layer.attributes}) if used else layer


def _declaring(template: Template, attributes: Mapping[str, str]) -> Template:
    """The template with the declarations of the foreign XML prefixes in it. Pasting removes redundant ones."""
    names, inside = list(template.attributes), "".join(item.xml for item in template.foreign)
    for layer in template.layers:
        more, text = _foreign_parts(layer)
        names += more
        inside += text
    used = _used(attributes, names, inside)
    return replace(template, attributes={**used, **template.attributes}) if used else template


def _foreign_parts(layer: Layer) -> tuple[list[str], str]:
    """The names of all attributes of a layer, and the text of its unknown elements."""
    spec = layer.activation
    names = [*layer.attributes, *layer.params, *((*spec.attributes, *spec.params) if spec is not None else ())]
    return names, "".join(item.xml for item in (*layer.children, *(spec.children if spec is not None else ())))


def _used(attributes: Mapping[str, str], names: Iterable[str], inside: str) -> dict[str, str]:
    """The declarations among these attributes whose prefix is used in names or in a text."""
    used, known = {}, list(names)
    for key, value in attributes.items():
        prefix = f"{key.removeprefix('xmlns:')}:"
        if key.startswith("xmlns:") and (prefix in inside or any(name.startswith(prefix) for name in known)):
            used[key] = value
    return used


def can_paste() -> bool:
    """Whether the clipboard seems to contain layers. A quick check, because other programs may put long texts there."""
    return holds_layers(QGuiApplication.clipboard().text())


class ClipboardWatch(QObject):
    """Caches whether the clipboard contains layers until it changes, because the window asks after every selection."""

    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._layers: bool | None = None
        QGuiApplication.clipboard().dataChanged.connect(self._forget)

    def layers(self) -> bool:
        if self._layers is None:
            self._layers = can_paste()
        return self._layers

    def _forget(self) -> None:
        self._layers = None
        self.changed.emit()


def pasted() -> Graph:
    """The layers on the clipboard with their templates. Text around the model file is ignored.

    Raises DiagnosticError if there are no layers or the text cannot be parsed.
    """
    from designer.files.document import parse_document

    text = model_text(QGuiApplication.clipboard().text())
    if text is None:
        raise DiagnosticError(
            Diagnostic(
                "nothing-to-paste", tr("the clipboard holds no layers"), remedy=tr("copy layers with Ctrl+C first")
            )
        )
    reading = parse_document(text.encode("utf-8", "replace"), "clipboard", validate=False)
    if reading.graph is None:
        raise DiagnosticError(reading.diagnostics)
    return reading.graph
