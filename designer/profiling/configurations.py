"""The configurations that one launch measures: engines, precisions, layouts, batch sizes and image sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeVar

from designer.files.settings import LAYOUTS, PRECISIONS
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.types import Size2D
from designer.runtime.api import RunOptions
from designer.runtime.engine_registry import default_engines
from designer.texts import tr

T = TypeVar("T")


@dataclass(frozen=True)
class Grid:
    """Every combination is a configuration. Empty `batches` and `sizes` are those of the inputs; the others are added to those of the network."""

    engines: Sequence[str] = ()
    precisions: Sequence[str] = ()
    layouts: Sequence[str] = ()
    batches: Sequence[int] = ()
    sizes: Sequence[Size2D] = ()

    def options(self, own: RunOptions) -> list[RunOptions]:
        """The options of all combinations, `own` first."""
        names = (
            dict.fromkeys((value, *others))
            for value, others in (
                (own.engine, self.engines),
                (own.precision, self.precisions),
                (own.layout, self.layouts),
            )
        )
        return [
            replace(own, engine=engine, precision=precision, layout=layout)
            for engine, precision, layout in product(*names)
        ]


AS_OPENED = Grid()  # the network with its inputs


def grid_of(*, engines: str = "", precisions: str = "", layouts: str = "", batches: str = "", sizes: str = "") -> Grid:
    """The grid from texts such as `1,4,16`. Raises DiagnosticError that names the option."""
    return Grid(
        _names("engine", engines, [engine.name for engine in default_engines()]),
        _names("precision", precisions, PRECISIONS),
        _names("layout", layouts, LAYOUTS),
        _listed("batch", batches, _batch, tr("write whole numbers such as 1,4,16")),
        sizes_of(sizes),
    )


def sizes_of(text: str) -> tuple[Size2D, ...]:
    """Sizes from text such as `256x256,512x512`. Raises DiagnosticError for any other text."""
    return _listed("size", text, parse_size, tr("write width x height such as 256x256,512x512"))


def _names(option: str, text: str, known: Sequence[str]) -> tuple[str, ...]:
    def parse(name: str) -> str:
        if name not in known:
            raise ValueError(name)
        return name

    return _listed(option, text, parse, tr("choose {names}", names=", ".join(known)))


def _listed(option: str, text: str, parse: Callable[[str], T], remedy: str) -> tuple[T, ...]:
    try:
        return tuple(dict.fromkeys(parse(part.strip()) for part in text.split(",") if text))
    except ValueError:
        raise DiagnosticError(
            Diagnostic("bad-option", tr("{option} {text!r} cannot be read", option=option, text=text), remedy=remedy)
        ) from None


def _batch(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 65536:
        raise ValueError(text)
    return number


def parse_size(text: str) -> Size2D:
    """A size from text such as `256x256`. Raises ValueError for any other text."""
    size = Size2D.parse(text)
    if not (1 <= size.width <= 65536 and 1 <= size.height <= 65536):
        raise ValueError(text)
    return size
