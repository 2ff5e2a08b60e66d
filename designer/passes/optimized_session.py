"""A session for the network of another session after graph passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from designer.operators.inlining import inline
from designer.passes.passes import optimize

if TYPE_CHECKING:
    from designer.files.weights import Weights
    from designer.graph.model import Layer
    from designer.runtime.session import Session


class OptimizedSession:
    """Follows all changes of `full`. Its hidden layers are those after the passes `names`; only outputs are comparable."""

    def __init__(self, full: Session, names: Sequence[str]) -> None:
        self._full = full
        self._names = tuple(names)
        self._session: Session | None = None
        self._revision = self._structure = -1
        self._weights: Weights | None = None
        self._layers: Mapping[str, Layer] = {}
        self._serials: dict[str, int] = {}

    def current(self) -> Session:
        """The session after all changes so far. Raises DiagnosticError for an unknown pass."""
        full = self._full
        if self._session is None or full.revision != self._revision:
            if self._session is None or not self._take_values(self._session):
                self._session = self._optimized()
            for layer in full.fed_layers():
                fed = full.fed(layer)
                if self._serials.get(layer) != fed.serial:
                    self._session.set_input(layer, fed.array, is_image=fed.is_image)
                    self._serials[layer] = fed.serial
            self._revision, self._structure, self._weights = full.revision, full.structure, full.weights
            self._layers = dict(full.graph.layers)
        return self._session

    def _take_values(self, session: Session) -> bool:
        """Follow changes of inputs and of parameters of analysis layers, such as a slider's; False if the passes must run again."""
        full = self._full
        if full.structure != self._structure or full.weights is not self._weights or full.graph.templates:
            return False
        changed = [
            (self._layers[name], layer) for name, layer in full.graph.layers.items() if layer != self._layers[name]
        ]
        if any(before.params.keys() != after.params.keys() for before, after in changed):
            return False
        for before, after in changed:
            for param, text in after.params.items():
                if before.params[param] != text:
                    session.set_param(after.name, param, text)
        self._take_formats(session)
        return True

    def _optimized(self) -> Session:
        """The session with the network after the passes."""
        full = self._full
        made = optimize(inline(full.graph, full.registry), full.registry, full.weights, self._names)
        if self._session is None:
            return type(full)(made.graph, full.registry, made.weights, full.options)
        self._session.set_graph(made.graph)
        self._session.set_weights(made.weights)
        self._take_formats(self._session)
        return self._session

    def _take_formats(self, session: Session) -> None:
        if session.options.formats != self._full.options.formats:
            session.set_formats(dict(self._full.options.formats))
