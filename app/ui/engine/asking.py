"""Questions to the engine whose asker may be gone by the time of the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import shiboken6
from PySide6.QtCore import QObject

from app.ui.engine.client import EngineClient
from designer.graph.diagnostics import Diagnostic


def ask(
    owner: QObject,
    engine: EngineClient,
    method: str,
    params: Mapping[str, Any],
    came: Callable[[Mapping[str, Any]], None],
    refused: Callable[[tuple[Diagnostic, ...]], None],
) -> None:
    """As `engine.request`; once Qt has deleted `owner` neither function is called any more, nor once the engine is closed."""
    if engine.closed:
        return

    def alive() -> bool:
        return bool(shiboken6.isValid(owner))  # type: ignore[no-untyped-call]

    def on_result(reply: Mapping[str, Any]) -> None:
        if alive():
            came(reply)

    def on_error(found: tuple[Diagnostic, ...]) -> None:
        if alive():
            refused(found)

    engine.request(method, params, on_result, on_error)
