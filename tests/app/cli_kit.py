"""The command line in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from app.cli import main


class Done(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def layerwright(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: object) -> Done:
        monkeypatch.setattr("sys.argv", ["layerwright", *(str(a) for a in arguments)])
        code: Any = 0
        try:
            main.main()
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run
