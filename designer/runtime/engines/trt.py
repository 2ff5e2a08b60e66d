"""The one place that imports TensorRT: the package `tensorrt`, or else `tensorrt_rtx`, which builds engines without a GPU.

TensorRT returns None and logs instead of raising, so every call gets a `collector` of its messages.
"""

from __future__ import annotations

from importlib import import_module, util
from typing import Any

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.texts import tr

NAME = "tensorrt"  # of the engine, and of the command that exports one
PACKAGES = (NAME, "tensorrt_rtx")
RTX = PACKAGES[1]
REMEDY = 'pip install "layerwright[tensorrt]", or "layerwright[tensorrt-rtx]" to build engines for RTX GPUs'


def package() -> str:
    """The package that is used, installed or not; without importing it."""
    return next((name for name in PACKAGES if util.find_spec(name) is not None), PACKAGES[0])


def unavailable() -> Diagnostic | None:
    """Why engines cannot be built; None if they can."""
    if util.find_spec(package()) is not None:
        return None
    return Diagnostic("engine-unavailable", tr("TensorRT is not installed"), remedy=REMEDY)


def library() -> Any:
    """The module of TensorRT. Raises DiagnosticError if it is not installed or cannot be loaded."""
    missing = unavailable()
    if missing is not None:
        raise DiagnosticError(missing)
    try:
        return import_module(package())
    except (ImportError, OSError, RuntimeError) as error:  # its libraries are missing or do not fit the driver
        message = tr("{package} cannot be loaded: {reason}", package=package(), reason=str(error)[:300])
        raise DiagnosticError.of("engine-unavailable", message, remedy=REMEDY) from error


def version_note(built_by: str, version: str) -> str:
    """A note if an engine was built by another version than the one that is installed here; else empty."""
    if unavailable() is not None:
        return ""
    installed = str(library().__version__)
    if (built_by, version) == (package(), installed):
        return ""
    return tr(
        "the engine was built with {built_by} {version}, but {package} {installed} is installed, which refuses it: build it again",
        built_by=built_by,
        version=version,
        package=package(),
        installed=installed,
    )


def collector(trt: Any) -> Any:
    """A logger that collects messages: `errors` and `details`."""

    class Collector(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.errors: list[str] = []
            self.details: list[str] = []

        def log(self, severity: Any, message: str) -> None:
            bad = severity in (trt.ILogger.Severity.INTERNAL_ERROR, trt.ILogger.Severity.ERROR)
            (self.errors if bad else self.details).append(message)

    return Collector()


def reason_of(log: Any) -> str:
    """The first error that was logged."""
    return log.errors[0].strip()[:300] if log.errors else tr("it gives no reason")
