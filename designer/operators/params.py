"""Typed parameters of operators and their canonical text.

The annotation of a field gives its type, `param(...)` everything else. Supported types: bool,
int, float, str, Size2D, Size3D, tuple[int, ...] (written `1,2,3`), tuple[float, ...] (written `0.5,1.0`) and
`Size2D | None` (empty text is None).
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from designer.graph.types import Size2D, Size3D
from designer.texts import tr

Value = bool | int | float | str | Size2D | Size3D | tuple[int, ...] | tuple[float, ...] | None
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """What a field declares in addition to its type. Bounds of sizes and lists apply to each component.

    `extension` marks a parameter that the 2022 tool does not have: it is written only if it differs from the default.
    `visible_when` is (other parameter, value or values): the editor shows the field only then; it never affects files.
    """

    doc: str = ""
    min: float | None = None
    max: float | None = None
    choices: tuple[str, ...] = ()
    unit: str = ""
    step: float | None = None
    visible_when: tuple[str, Any] | None = None
    extension: bool = False
    multiline: bool = False


def param(
    *,
    default: T,
    doc: str = "",
    min: float | None = None,
    max: float | None = None,
    choices: tuple[str, ...] = (),
    unit: str = "",
    step: float | None = None,
    visible_when: tuple[str, Any] | None = None,
    extension: bool = False,
    multiline: bool = False,
) -> T:
    """Declare a parameter of an operator. See `ParamInfo` for the meaning of the keywords."""
    info = ParamInfo(doc, min, max, choices, unit, step, visible_when, extension, multiline)
    field: T = dataclasses.field(default=default, kw_only=True, metadata={"param": info})
    return field


class ParamError(ValueError):
    """A text or value that violates the declaration of a parameter; the message names the rule."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One declared parameter, for the Layer Editor, the reference page and the reader."""

    name: str
    kind: str  # "bool", "int", "float", "str", "choice", "size2d", "size3d", "ints", "floats", "size2d?"
    default: Value
    info: ParamInfo

    @property
    def title(self) -> str:
        """The name for users: `padding_tuple` -> "Padding tuple"."""
        return "RGBA" if self.name == "rgba" else self.name.replace("_", " ").capitalize()

    def parse(self, text: str) -> Value:
        """The value that `text` represents, checked against type, choices and bounds; raises ParamError."""
        value = _PARSERS[self.kind](text)
        self.check(value)
        return value

    def format(self, value: Value) -> str:
        """Canonical text of `value`."""
        return format_value(value)

    def check(self, value: Value) -> None:
        """Raise ParamError unless `value` is within choices and bounds."""
        if self.info.choices and value not in self.info.choices:
            raise ParamError(tr("'{value}' is not one of {choices}", value=value, choices=", ".join(self.info.choices)))
        for number in _numbers(value):
            if isinstance(number, float) and not math.isfinite(number):
                raise ParamError(tr("{number} is not a finite number", number=number))
            if self.info.min is not None and number < self.info.min:
                raise ParamError(
                    tr("{value} is below the minimum of {limit}", value=_plain(number), limit=_plain(self.info.min))
                )
            if self.info.max is not None and number > self.info.max:
                raise ParamError(
                    tr("{value} is above the maximum of {limit}", value=_plain(number), limit=_plain(self.info.max))
                )

    def visible(self, values: Mapping[str, Value]) -> bool:
        """Whether the editor shows this parameter while the others have `values`."""
        if self.info.visible_when is None:
            return True
        other, wanted = self.info.visible_when
        allowed = wanted if isinstance(wanted, tuple) else (wanted,)
        return values.get(other) in allowed


def format_value(value: Value) -> str:
    """Canonical text: `true`, `32`, `0.5`, `3x3`, `1,2`; floats are the shortest text that reads back equal."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, tuple):
        return ",".join(format_value(v) for v in value)
    return str(value)


def format_float(value: float) -> str:
    """Shortest text that reads back equal, always with a decimal point."""
    text = repr(value)
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"
    return text


def kind_of(annotation: Any, info: ParamInfo, owner: str, name: str) -> str:
    """The parameter kind of a field's annotation. Raises TypeError for an unsupported annotation."""
    if annotation in (str, "str") and info.choices:
        return "choice"
    kind = _KINDS.get(annotation)
    if kind is None:
        raise TypeError(f"{owner}.{name}: a parameter cannot have the type {annotation!r}")
    return kind


def is_kind(text: str) -> bool:
    """Whether `text` is an annotation that needs no evaluation: `int`, `Size2D`, ..."""
    return text in _KINDS


_KINDS: dict[Any, str] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    Size2D: "size2d",
    Size3D: "size3d",
    tuple[int, ...]: "ints",
    tuple[float, ...]: "floats",
    Size2D | None: "size2d?",
}
# Modules that postpone the evaluation of annotations have them as text; evaluating those takes a third of the start.
_KINDS.update(
    {getattr(kind, "__name__", str(kind)): text for kind, text in list(_KINDS.items()) if isinstance(kind, type)}
)
_KINDS.update({"tuple[int, ...]": "ints", "tuple[float, ...]": "floats", "Size2D | None": "size2d?"})
MAX_DIGITS = 18
_INT = re.compile(r"[+-]?\d+\Z", re.ASCII)
_FLOAT = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,4})?\Z")


def _bool(text: str) -> bool:
    if text in ("true", "false"):
        return text == "true"
    raise ParamError(tr("'{value}' is not a truth value; write true or false", value=text))


def _int(text: str) -> int:
    if not _INT.match(text.strip()):
        raise ParamError(tr("'{value}' is not a whole number", value=text[:40]))
    if len(text.strip()) > MAX_DIGITS:
        raise ParamError(
            tr(
                "'{value}' is too large: a whole number has at most {MAX_DIGITS} digits",
                value=text[:40],
                MAX_DIGITS=MAX_DIGITS,
            )
        )
    return int(text)


def _float(text: str) -> float:
    if not _FLOAT.match(text.strip()):
        raise ParamError(tr("'{value}' is not a number; use a decimal point, as in 0.5", value=text))
    return float(text)


def _ints(text: str) -> tuple[int, ...]:
    if not text.strip():
        return ()
    return tuple(_int(part) for part in text.split(","))


def _floats(text: str) -> tuple[float, ...]:
    if not text.strip():
        return ()
    return tuple(_float(part) for part in text.split(","))


def _size(parse: Callable[[str], T]) -> Callable[[str], T]:
    def read(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise ParamError(str(error)) from None

    return read


_PARSERS: dict[str, Callable[[str], Value]] = {
    "bool": _bool,
    "int": _int,
    "float": _float,
    "str": str,
    "choice": str,
    "size2d": _size(Size2D.parse),
    "size3d": _size(Size3D.parse),
    "ints": _ints,
    "floats": _floats,
    "size2d?": lambda text: _size(Size2D.parse)(text) if text.strip() else None,
}


def _numbers(value: Value) -> tuple[float, ...]:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return ()
    if isinstance(value, Size2D):
        return (value.width, value.height)
    if isinstance(value, Size3D):
        return (value.width, value.height, value.channels)
    if isinstance(value, tuple):
        return value
    return (value,)


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else format_float(float(number))
