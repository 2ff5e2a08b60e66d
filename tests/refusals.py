"""What a call refuses, as a tuple to compare."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from designer.graph.diagnostics import DiagnosticError


def refusal(action: Callable[[], object]) -> tuple[str, str, str | None, str]:
    with pytest.raises(DiagnosticError) as caught:
        action()
    [found] = caught.value.diagnostics
    assert found.severity.value == "error"
    return found.code, found.message, found.file, found.remedy
