"""Constants, default values and tables of the runtime and of the analysis layers, as recorded."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from recorded import check_lines

from designer.files.formats import FormatTable
from designer.graph.diagnostics import DiagnosticError
from designer.runtime.engine_api import EngineDescriptor
from designer.runtime.engine_registry import load_engines
from designer.runtime.images import ARRAYS, IMAGES, TENSORS, read_npy
from designer.runtime.sources import INPUTS, is_deep
from designer.runtime.video_formats import VIDEOS

PLAIN = (bool, int, float, str, bytes, type(None))


def shown(value: Any, nested: bool = False) -> str | None:
    """A value that is the same on every machine; None for others, such as functions."""
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, np.ndarray):
        flat = value.reshape(-1)
        ends = [f"{number:.6g}" for number in (*flat[:8], *flat[-1:])]
        return f"{value.dtype} {value.shape} {' '.join(ends)}"
    if isinstance(value, re.Pattern):
        return f"pattern {value.pattern!r}"
    if isinstance(value, type) or (nested and callable(value) and hasattr(value, "__name__")):
        return str(value.__name__) if nested else None
    if isinstance(value, frozenset | set):
        parts = sorted(str(shown(item, True)) for item in value)
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{shown(key, True)}: {shown(item, True)}' for key, item in value.items())}}}"
    if isinstance(value, tuple | list):
        return f"({', '.join(str(shown(item, True)) for item in value)})"
    if isinstance(value, EngineDescriptor):  # its package is what is installed
        return None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (f"{f.name}={shown(getattr(value, f.name), True)}" for f in dataclasses.fields(value))
        return f"{type(value).__name__}({', '.join(fields)})"
    return str(value) if hasattr(type(value), "__members__") else None


def modules() -> Iterator[ModuleType]:
    """The modules of the runtime and of the analysis layers that load without a graphics card."""
    for package in ("designer.runtime", "designer.runtime.engines", "analysis_layers"):
        for entry in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            if not entry.ispkg:
                yield importlib.import_module(entry.name)


def defaults(name: str, made: Any) -> Iterator[str]:
    """The default values of a function, or of what makes a class and of its own methods."""
    if inspect.isclass(made):
        for key, member in vars(made).items():
            inner = getattr(member, "__func__", member)
            if (inspect.isfunction(inner) and inner.__module__ == made.__module__) or key == "__init__":
                yield from defaults(f"{name}.{key}", inner)
        return
    try:
        parameters = inspect.signature(made).parameters.values()
    except (TypeError, ValueError):
        return
    for each in parameters:
        if each.default is not each.empty and (text := shown(each.default)) is not None:
            yield f"  {name}({each.name}={text})"


def test_constants_and_default_values() -> None:
    pytest.importorskip("torch")
    lines = []
    for module in modules():
        lines.append(module.__name__)
        own = set(re.findall(r"(?m)^(\w+)(?::[^=\n]+)? = ", inspect.getsource(module)))
        for name, value in vars(module).items():
            if name in own and not name.startswith("__") and (text := shown(value)) is not None:
                lines.append(f"  {name} = {text}")
            elif getattr(value, "__module__", None) == module.__name__ and (
                inspect.isfunction(value) or inspect.isclass(value)
            ):
                lines += defaults(name, value)
    check_lines("tables/runtime.txt", lines)


@pytest.mark.parametrize("table", [IMAGES, TENSORS, ARRAYS, VIDEOS, INPUTS], ids=lambda table: table.subject)
def test_formats_of_files(table: FormatTable[Any, Any]) -> None:
    def named(function: Any) -> str:
        return getattr(function, "__name__", "-")

    lines = [
        f"{each.title}: {' '.join(each.suffixes)}, read by {named(each.read)}, written by {named(each.write)}, "
        f"deep {getattr(each, 'deep', False)}, package {each.package or '-'}"
        for each in table
    ]
    lines += [f"read: {table.read_choices}", f"written: {' '.join(table.write_suffixes)}"]
    for name in ("absent.png", "absent.mkv", "absent.xyz"):
        for act in (table.reader, table.writer):
            try:
                act(Path(name))
            except DiagnosticError as error:
                lines += [f"{act.__name__} of {name}: {found}" for found in error.diagnostics]
    check_lines(f"tables/formats_{table.subject.replace(' ', '_').replace(',', '')}.txt", lines)


def test_files_with_values_outside_of_the_usual_range() -> None:
    names = [f"a{suffix}" for suffix in (*INPUTS.read_suffixes, ".TIFF", ".Exr", ".txt", "")]
    assert [name for name in names if is_deep(Path(name))] == ["a.tif", "a.tiff", "a.exr", "a.npy", "a.TIFF", "a.Exr"]
    assert read_npy.__defaults__ == ("float32",)


def test_what_the_engines_offer() -> None:
    lines = []
    for each in load_engines(installed=False):
        lines.append(f"{each.name}: {each.title}, layouts {' '.join(each.layouts)}, stand-in {each.stand_in or '-'}")
        lines.append(f"  formats {' '.join(each.formats) or '-'}, kernels {', '.join(each.kernels) or '-'}")
        lines.append(f"  engine {each.engine.__name__}, timer {each.step_timer.__name__}")
        lines += [f"  device {device.kind}: {' '.join(device.precisions)}" for device in each.devices]
        lines.append(f"  skips NaN {' '.join(sorted(each.skips_nan)) or '-'}")
    check_lines("tables/engines.txt", lines)
