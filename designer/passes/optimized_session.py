"""A session for the network of another session after graph passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from designer.operators.inlining import inline
from designer.passes.passes import optimize

if TYPE_CHECKING:
    from designer.runtime.session import Session


class OptimizedSession:
    """Follows all changes of `full`. Its hidden layers are those after the passes `names`; only outputs are comparable."""

    def __init__(self, full: Session, names: Sequence[str]) -> None:
        self._full = full
        self._names = tuple(names)
        self._session: Session | None = None
        self._revision = -1
        self._serials: dict[str, int] = {}

    def current(self) -> Session:
        """The session after all changes so far. Raises DiagnosticError for an unknown pass."""
        full = self._full
        if self._session is not None and full.revision == self._revision:
            return self._session
        made = optimize(inline(full.graph, full.registry), full.registry, full.weights, self._names)
        if self._session is None:
            self._session = type(full)(made.graph, full.registry, made.weights, full.options)
        else:
            self._session.set_graph(made.graph)
            self._session.set_weights(made.weights)
            if self._session.options.formats != full.options.formats:
                self._session.set_formats(dict(full.options.formats))
        for layer in full.fed_layers():
            fed = full.fed(layer)
            if self._serials.get(layer) != fed.serial:
                self._session.set_input(layer, fed.array, is_image=fed.is_image)
                self._serials[layer] = fed.serial
        self._revision = full.revision
        return self._session
