"""Asks for agreement before Python code of a document runs for the first time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtWidgets import QWidget

from app.ui.engine.context import Context
from app.ui.widgets.code_consent import CodeConsent
from designer.files.agreements import agree, not_agreed
from designer.texts import tr


class AgreeDialog(CodeConsent):
    """Shows the sources of custom layers, one tab each. Agreements are stored on this machine for exactly these texts.

    `texts` maps each source to its layer. `then` is called after the user agreed.
    """

    def __init__(self, texts: Mapping[str, str], then: Callable[[], None], parent: QWidget | None) -> None:
        first = (
            tr("This network contains custom layers written in Python.")
            if len(texts) > 1
            else tr("This network contains a custom layer written in Python.")
        )
        rest = tr(
            "Running the network executes this code on your machine with your permissions. Read it first, and agree only "
            "if you trust it. If the code changes, you are asked again."
        )
        sources = [(layer, text) for text, layer in texts.items()]
        super().__init__(
            "agree_custom",
            f"{first} {rest}",
            sources,
            lambda: agree(texts),
            parent,
            action=tr("&Agree and Run"),
        )
        self.accepted.connect(then)


def ask_agreement(context: Context, then: Callable[[], None], parent: QWidget) -> AgreeDialog | None:
    """Show the code of the open document that needs agreement, without blocking. None if there is none."""
    if not context.has_document:
        return None
    document = context.root
    texts = not_agreed(document.graph, document.registry)
    if not texts:
        return None
    open_one = parent.findChild(AgreeDialog)
    if open_one is not None:
        open_one.raise_()
        return open_one
    dialog = AgreeDialog(texts, then, parent)
    dialog.open()
    return dialog
