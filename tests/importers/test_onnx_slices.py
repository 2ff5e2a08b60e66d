"""Every slice of a short axis selects what ONNX Runtime selects, and a slice of everything is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import helper
from onnx_models import model, random, saved

from designer.importers.formats import ImportOptions
from designer.importers.onnx.importing import import_onnx
from designer.operators.registry import Registry
from designer.runtime.api import RunOptions
from designer.runtime.session import Session

LENGTH = 5
FAR = 2**31 - 1


def numbers(value: int) -> np.ndarray:
    return np.array([value], np.int64)


@pytest.mark.parametrize("step", [1, 2, 3, 7, -1, -2, -4, -7])
def test_every_slice_of_a_short_axis(step: int, tmp_path: Path, registry: Registry) -> None:
    nodes, outputs, weights = [], {}, {"axis": numbers(-1), "step": numbers(step)}
    places = (-FAR, -6, -5, -3, -1, 0, 1, 4, 5, 6, FAR)
    for start in places:
        for end in places:
            kept = range(*slice(start, end, step).indices(LENGTH))
            if step < 0 and end < -LENGTH:
                kept = range(min(start, LENGTH - 1) if start >= 0 else max(start + LENGTH, -1), -1, step)
            if not kept:
                continue
            name = f"y{len(nodes)}"
            weights[f"{name}_start"], weights[f"{name}_end"] = numbers(start), numbers(end)
            nodes.append(
                helper.make_node("Slice", ["x", f"{name}_start", f"{name}_end", "axis", "step"], [name], name=name)
            )
            outputs[name] = None
    assert len(nodes) > 10
    proto = model(nodes, {"x": [1, 3, LENGTH]}, outputs, weights)
    path = saved(proto, tmp_path)
    array = random(1, 3, LENGTH)
    expected = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, {"x": array})
    found = import_onnx(path, registry, ImportOptions())
    session = Session(found.graph, registry, found.weights, RunOptions("torch", threads=1))
    session.set_input("x", array, is_image=False)
    made = session.run().outputs
    for name, values in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(made[name], values, err_msg=name)


@pytest.mark.parametrize("end", [FAR, FAR + 1, 2**63 - 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_slice_of_everything_is_left_out(end: int, axis: int, tmp_path: Path, registry: Registry) -> None:
    """Of a batch of any size only such a slice is known to be everything."""
    weights = {"start": numbers(0), "end": numbers(end), "axis": numbers(axis)}
    nodes = [
        helper.make_node("Slice", ["x", "start", "end", "axis"], ["all"], name="slice"),
        helper.make_node("Relu", ["all"], ["y"], name="relu"),
    ]
    path = saved(model(nodes, {"x": ["N", 3, LENGTH]}, {"y": None}, weights), tmp_path)
    found = import_onnx(path, registry, ImportOptions())
    assert not [layer.name for layer in found.graph if layer.type == "slice"]
