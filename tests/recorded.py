"""Texts that an earlier run recorded in `tests/data/recorded`; `RECORD=1` in the environment writes them anew."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "data" / "recorded"
MOST = 60  # lines of a difference
SHOWN = 8  # elements of a constant
CHANGING = (
    "date",
    "document_sha256",
    "weights_sha256",
    "settings_sha256",
)  # metadata whose values differ from run to run
NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)")
FRACTION = re.compile(r"-?\d+(\.\d+(e[-+]?\d+)?|e[-+]?\d+)")
TOLERANCE = 0.02  # by which fractions may differ: processors round differently
DIGITS = re.compile(r"\d+\.\d{6,}(?:e[-+]\d+)?")


def check_recorded(name: str, text: str) -> None:
    """Fails with the lines that differ from the recorded text. With `RECORD=1` the text is recorded instead."""
    if os.environ.get("RECORD") == "1":
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return
    before = recorded_lines(name)
    lines = list(difflib.unified_diff(before, text.splitlines(), f"{name} (recorded)", f"{name} (now)", "", "", 2, ""))
    more = [f"... and {len(lines) - MOST} more lines"] if len(lines) > MOST else []
    help_ = "If the new text is right, record it with RECORD=1 in the environment of pytest."
    assert not lines, "\n".join([*lines[:MOST], *more, "", help_])


def check_lines(name: str, found: Sequence[str]) -> None:
    """Fails with the lines that differ from the recorded ones, apart from the last digits of fractions."""
    expected = recorded_lines(name)
    kept = set(expected)
    alike = (line if line in kept else next((e for e in expected if same(e, line)), line) for line in found)
    check_recorded(name, "".join(f"{line}\n" for line in alike))


def same(before: str, now: str) -> bool:
    """Whether two texts are equal but for the last digits of fractions."""
    if before == now:
        return True
    a, b = NUMBER.split(before), NUMBER.split(now)
    return len(a) == len(b) and all(x == y or _close(x, y) for x, y in zip(a, b, strict=True))


def _close(a: str, b: str) -> bool:
    fractions = FRACTION.fullmatch(a) and FRACTION.fullmatch(b)
    return bool(fractions) and math.isclose(float(a), float(b), rel_tol=TOLERANCE, abs_tol=1e-4)


def recorded_lines(name: str) -> list[str]:
    """The lines of a recorded text; none if there is no such text."""
    path = FOLDER / name
    return path.read_text("utf-8").splitlines() if path.exists() else []


def check_files(folder: str, names: Collection[str]) -> None:
    """Fails if a folder of recorded texts has others than these."""
    assert {path.relative_to(FOLDER / folder).as_posix() for path in (FOLDER / folder).rglob("*.*")} == set(names)


def changes(before: str, after: str) -> str:
    """The lines in which two texts differ, without their places; all of `after` if that is shorter."""
    found = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
    text = "".join(f"{'' if line.startswith('@@') else line}\n" for line in found)
    return text if len(text) < len(after) else after


def onnx_text(model: Any) -> str:
    """A model as text: what identifies its content, without versions, dates and the values of weights."""
    lines = [f"ir {model.ir_version}"]
    lines += [f"opset {entry.domain or 'ai.onnx'} {entry.version}" for entry in model.opset_import]
    lines += [f"producer {model.producer_name}", f"doc {model.doc_string}", f"graph {model.graph.name}"]
    for entry in model.metadata_props:
        if not entry.key.startswith("version."):  # of the installed packages
            lines.append(f"metadata {entry.key}{'' if entry.key in CHANGING else f' = {entry.value!r}'}")
    lines += graph_lines(model.graph)
    return "\n".join(lines) + "\n"


def graph_lines(graph: Any) -> Iterator[str]:
    """Inputs, outputs, constants and nodes of an ONNX graph, one a line."""
    for kind, entries in (("input", graph.input), ("output", graph.output)):
        yield from (f"{kind} {entry.name}: {_type(entry.type)}" for entry in entries)
    yield from (f"constant {tensor.name}: {tensor_text(tensor)}" for tensor in graph.initializer)
    for node in graph.node:
        yield from _node_lines(node)


def _node_lines(node: Any) -> Iterator[str]:
    named = sorted(node.attribute, key=lambda entry: entry.name)
    attributes = "".join(f" {entry.name}={_attribute(entry)}" for entry in named if not entry.HasField("g"))
    domain = f"{node.domain}." if node.domain else ""
    usual = node.name == f"{node.output[0].partition('/')[0]}/{node.op_type}"
    name = "" if usual else f"{node.name}: "
    yield f"{name}{', '.join(node.output)} = {domain}{node.op_type}({', '.join(node.input)}){attributes}"
    for entry in named:
        if entry.HasField("g"):
            yield f"  {entry.name}:"
            yield from (f"    {line}" for line in graph_lines(entry.g))


def _attribute(entry: Any) -> str:
    from onnx import helper

    value = helper.get_attribute_value(entry)
    if hasattr(value, "data_type"):
        return tensor_text(value)
    if isinstance(value, bytes):
        return repr(value.decode("utf-8", "replace"))
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(number(item) if isinstance(item, float) else str(item) for item in value)}]"
    return str(value)


def number(value: float) -> str:
    """Digits that do not depend on the machine."""
    return f"{value:.5g}"


def rounded(text: str) -> str:
    """A text whose numbers have no digits that depend on the machine."""
    return DIGITS.sub(lambda found: number(float(found[0])), text)


def tensor_text(tensor: Any) -> str:
    """Element type and shape, and the values of a small constant."""
    from onnx import numpy_helper

    array = numpy_helper.to_array(tensor)
    kind = f"{array.dtype}[{', '.join(map(str, array.shape))}]"
    if array.size > 1 and (array == array.flat[0]).all():
        return f"{kind} of {values_text(array.flat[0])}"
    return f"{kind} {values_text(array)}" if array.size <= SHOWN else kind


def values_text(array: Any) -> str:
    flat = np.asarray(array).reshape(-1)
    return " ".join(number(float(value)) if flat.dtype.kind in "fV" else str(value) for value in flat)


def _type(kind: Any) -> str:
    from onnx import helper

    if not kind.HasField("tensor_type"):
        return re.sub(r"\s+", " ", str(kind)).strip()
    found = kind.tensor_type
    dims = ", ".join(
        dim.dim_param or (str(dim.dim_value) if dim.HasField("dim_value") else "?") for dim in found.shape.dim
    )
    return f"{helper.tensor_dtype_to_np_dtype(found.elem_type)}[{dims}]"
