"""Layers of imported documents as text, and the recorded text of single calls of torch."""

from __future__ import annotations

import os
import re

from recorded import FOLDER, recorded_lines, rounded

from designer.graph.model import Layer
from designer.importers.imported import Imported
from designer.operators.registry import Registry

CALLS = "imports/torch_calls.txt"
PLACE = re.compile(r" ?\(\S+\.py:\d+: [^\n]*\)")  # in the user's code


def layer_text(layer: Layer, registry: Registry) -> str:
    """A layer with the parameters that are not its defaults."""
    cls = registry.get(layer.type)
    usual = cls().texts() if cls is not None else {}
    params = "".join(f" {key}={text!r}" for key, text in layer.params.items() if usual.get(key) != text)
    function = layer.activation
    attached = f" -> {function.type} {dict(function.params)}" if function is not None else ""
    shared = f" weights of {layer.weights_of}" if layer.weights_of else ""
    return f"{layer.name}: {layer.type}({', '.join(map(str, layer.inputs))}){params}{attached}{shared}"


def check_call(name: str, found: Imported, registry: Registry) -> None:
    """Compare the layers of a module, its outcomes, weights and warnings with the recorded line of this name.

    With `RECORD=1` the line is recorded instead.
    """
    report = found.report
    parts = [layer_text(layer, registry) for layer in found.graph]
    parts += [f"{item.type} {item.outcome.value} {' '.join(item.layers)} {item.reason}" for item in report.outcomes]
    parts += [f"{key} is {place}" for key, place in report.weights.items()]
    parts += report.warnings
    text = rounded(" | ".join(PLACE.sub("", part).strip().replace("\n", "\\n") for part in parts))
    lines = dict(line.split(" # ", 1) for line in recorded_lines(CALLS))
    if os.environ.get("RECORD") == "1":
        lines[name] = text
        (FOLDER / CALLS).write_text("".join(f"{key} # {lines[key]}\n" for key in sorted(lines)), "utf-8")
        return
    before, now = lines.get(name, "").split(" | "), text.split(" | ")
    assert now == before, "If the new layers are right, record them with RECORD=1 in the environment of pytest."
