"""Edits of the document that the engine does not know yet, as few requests as they need."""

from __future__ import annotations

from app.engine.protocol import SetFormatsRequest, SetParamRequest, UpdateRequest
from app.ui.document.document import Document
from designer.files.document import write_document
from designer.graph.edits import ChangeSet
from designer.operators.api import Role


class PendingEdits:
    """New values of analysis layers go as `SetParamRequest`, number formats as `SetFormatsRequest`, all else as the whole document."""

    def __init__(self) -> None:
        self._update = False
        self._params: dict[tuple[str, str], str] = {}
        self._sent: dict[str, dict[str, str]] = {}  # parameters as the engine knows them
        self._bypassed: set[str] = set()  # layers that the engine knows as bypassed
        self._formats: dict[str, str] | None = None

    def opened(self, document: Document) -> None:
        """The engine is given the whole document: nothing waits any more."""
        self._sent = {layer.name: dict(layer.params) for layer in document.graph}
        self._bypassed = {layer.name for layer in document.graph if layer.bypassed}
        self._update = False
        self._params.clear()
        self._formats = None

    def note_formats(self, formats: dict[str, str]) -> None:
        """Remember other number formats."""
        self._formats = formats

    def note(self, change: ChangeSet, document: Document) -> bool:
        """Remember a change that was made; True when it and all that waits are values of analysis layers."""
        structural = change.added or change.removed or change.rewired
        if structural or self._update or not all(self._values(document, name) for name in change.reconfigured):
            self._update = True
        return not self._update

    def requests(self, document: Document) -> list[UpdateRequest | SetParamRequest | SetFormatsRequest]:
        """What waits, in order; it counts as sent."""
        found: list[UpdateRequest | SetParamRequest | SetFormatsRequest] = []
        if self._formats is not None:
            found.append(SetFormatsRequest(self._formats))
            self._formats = None
        if self._update:
            self.opened(document)
            return [UpdateRequest(write_document(document.graph).decode()), *found]
        for (layer, name), text in self._params.items():
            self._sent[layer][name] = text
            found.append(SetParamRequest(layer, name, text))
        self._params.clear()
        return found

    def _values(self, document: Document, name: str) -> bool:
        """Remember the new values of an analysis layer; False if the change includes more than values."""
        layer, sent = document.graph[name], self._sent.get(name)
        cls = document.registry.get(layer.type)
        if cls is None or cls.role is not Role.ANALYSIS or layer.activation is not None:
            return False
        if sent is None or sent.keys() != layer.params.keys() or layer.bypassed or name in self._bypassed:
            return False
        for param, text in layer.params.items():
            if sent[param] != text:
                self._params[name, param] = text
            else:
                self._params.pop((name, param), None)
        return True
