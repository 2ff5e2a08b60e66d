"""Diagnostics of a network or a file: what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Self


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem or hint.

    `code` is a stable kebab-case identifier ("shape-mismatch"), `message` one sentence that names the thing and the rule,
    and `remedy` what to do. `layer`, `port` and `parameter` locate it in the network, `file` and `line` on disk.
    For an error inside a template `layer` is the instance, and `template` and `inner` are the template and its layer.
    """

    code: str
    message: str
    severity: Severity = Severity.ERROR
    layer: str | None = None
    port: str | None = None
    parameter: str | None = None
    line: int | None = None
    file: str | None = None
    remedy: str = ""
    template: str | None = None
    inner: str | None = None

    def as_dict(self) -> dict[str, str | int | None]:
        """The fields as JSON values; `severity` as text."""
        return asdict(self) | {"severity": self.severity.value}

    def __str__(self) -> str:
        where = ""
        if self.file is not None:
            where = self.file
        if self.line is not None:
            where = f"{where or 'line '}{':' if where else ''}{self.line}"
        if self.layer is not None:
            where = f"{where}: layer '{self.layer}'" if where else f"layer '{self.layer}'"
        if self.port is not None:
            where += f", port '{self.port}'"
        text = f"{self.severity.value} [{self.code}] {where + ': ' if where else ''}{self.message}"
        return f"{text} - {self.remedy}" if self.remedy else text


class DiagnosticError(Exception):
    """Raised when an operation cannot continue; carries the diagnostics to show."""

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        found = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        super().__init__("; ".join(str(d) for d in found) or "failed without a diagnostic")
        self.diagnostics: tuple[Diagnostic, ...] = found

    @classmethod
    def of(
        cls,
        code: str,
        message: str,
        *,
        layer: str | None = None,
        port: str | None = None,
        parameter: str | None = None,
        line: int | None = None,
        file: str | None = None,
        template: str | None = None,
        remedy: str = "",
    ) -> Self:
        """The error with one `Diagnostic`."""
        return cls(
            Diagnostic(
                code,
                message,
                layer=layer,
                port=port,
                parameter=parameter,
                line=line,
                file=file,
                remedy=remedy,
                template=template,
            )
        )


def errors(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics that prevent a network from running."""
    return tuple(d for d in diagnostics if d.severity is Severity.ERROR)
