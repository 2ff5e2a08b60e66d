"""The search that adds an operator: type a few letters and press Enter. Recent operators come first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QWidget

from app.ui.widgets import theme
from app.ui.widgets.operator_search import search
from app.ui.widgets.search_popup import SearchMatch, SearchPopup
from designer.operators.api import Operator
from designer.operators.default_layers import INSTANCE_OF
from designer.operators.registry import Registry
from designer.texts import tr, tr_data

RECENT = 8


class QuickAdd(SearchPopup):
    """`chosen` emits the operator type."""

    def __init__(self, registry: Registry, parent: QWidget) -> None:
        self._registry = registry
        self._templates: Callable[[], Iterable[tuple[str, str]]] = lambda: ()
        self._recent: list[str] = []
        self._accepts: Callable[[type[Operator]], bool] = lambda cls: True
        super().__init__(
            "quick_add",
            tr("Add an operator"),
            tr("Add an operator by name or torch name..."),
            tr("No operator matches."),
            self._operators,
            parent,
        )
        self.chosen.connect(self._remember)

    def offer_templates(self, templates: Callable[[], Iterable[tuple[str, str]]]) -> None:
        """Offer templates too: names, each with the reason why it cannot be added here, or an empty string."""
        self._templates = templates

    def open_for(self, place: QPoint, accepts: Callable[[type[Operator]], bool] | None = None) -> None:
        """Show the search at a global position, limited to the operators that `accepts` allows."""
        self._accepts = accepts if accepts is not None else lambda cls: True
        self.open_at(place)

    def _operators(self, text: str) -> Iterator[SearchMatch]:
        words = text.casefold().split()
        for name, why in self._templates():
            if all(word in f"{name.casefold()} template instance" for word in words):
                tip = tr("Cannot be added here: {why}", why=why) if why else tr("Another instance of this template")
                icon = theme.icon("group", "muted")
                yield SearchMatch(f"{INSTANCE_OF}{name}", name, tr("template"), tip, icon, not why)
        activations = sorted(self._registry.activations.values(), key=lambda cls: cls.type)
        for cls in search([*self._registry, *activations], text, self._recent):
            if self._accepts(cls):
                tip = tr_data(cls.help()).partition("\n")[0]
                yield SearchMatch(cls.type, tr_data(cls.title), "", tip, theme.category_icon(cls.category))

    def _remember(self, name: str) -> None:
        self._recent = [name, *(r for r in self._recent if r != name)][:RECENT]
