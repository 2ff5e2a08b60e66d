"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from designer.importers.onnx.conversion import Array, Conversion, OnnxOp, Tensor, UnsupportedError
from designer.importers.onnx.nodes.reshaping import reshaped
from designer.importers.onnx.nodes.table import converts
from designer.operators.library.recurrent.gru import Gru
from designer.operators.library.recurrent.lstm import Lstm

_GATES = {"LSTM": Lstm.gates, "GRU": Gru.gates, "RNN": (0,)}


@converts("LSTM", "GRU", "RNN")
def recurrent(c: Conversion, op: OnnxOp) -> None:
    """Input and output of ONNX have the steps first, ours the batch."""
    direction = op.attribute("direction", "forward")
    hidden = op.attribute("hidden_size")
    _check(c, op, direction)
    directions = 2 if direction == "bidirectional" else 1
    weights = _weights(c, op, directions)
    (x,) = c.add("permute", [op.inputs[0]], {"axes": (1, 0, 2)})
    params = {"hidden": hidden, "bidirectional": directions == 2, "apply_bias": bool(op.input(3))}
    y, *states = c.add(op.op_type.lower(), [x], params, weights=weights)
    if op.outputs[0]:
        batch, steps, _ = c.builder.types[y].shape
        split = reshaped(c, y, [batch, steps, directions, hidden])
        c.put(op.outputs[0], c.add("permute", [split], {"axes": (1, 2, 0, 3)})[0])
    for name, state in zip(op.outputs[1:], states, strict=False):
        c.put(name, state)


def _check(c: Conversion, op: OnnxOp, direction: str) -> None:
    if direction == "reverse" or op.attribute("layout", 0) or op.attribute("clip") or op.attribute("input_forget", 0):
        raise UnsupportedError("it runs backwards, has the batch first, or clips")
    usual = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}[op.op_type]
    functions = tuple(op.attribute("activations", usual))
    if functions not in (usual, usual * 2) or op.attribute("activation_alpha") or op.attribute("activation_beta"):
        raise UnsupportedError("it has other activations than torch")
    if op.op_type == "GRU" and not op.attribute("linear_before_reset", 0):
        raise UnsupportedError("it applies the reset gate before the matrix product")
    if op.input(4) or op.input(7):
        raise UnsupportedError("its sequences have different lengths, or it has peepholes")
    for name in op.inputs[5:7]:
        if name and not _is_zero(c, name):
            raise UnsupportedError("it has an initial state")


def _is_zero(c: Conversion, name: str) -> bool:
    """Whether a value is zero, also if its size depends on the batch."""
    found = c.constant(name)
    if found is not None:
        return not np.any(found)
    op = c.deferred.get(name)
    if op is None or op.op_type not in ("Expand", "ConstantOfShape", "Identity"):
        return False
    if op.op_type == "ConstantOfShape":
        return not np.any(np.asarray(op.attribute("value", 0)))
    return _is_zero(c, op.inputs[0])


def _weights(c: Conversion, op: OnnxOp, directions: int) -> dict[str, Tensor]:
    """The tensors of torch: one of each kind for each direction."""
    gates = _GATES[op.op_type]
    given = [c.weight(name) for name in op.inputs[1:4] if name]
    found: dict[str, Tensor] = {}
    for direction in range(directions):
        tail = "l0_reverse" if direction else "l0"
        for kind, tensor in zip(("weight_ih", "weight_hh"), given, strict=False):
            found[f"{kind}_{tail}"] = Tensor(_reordered(tensor.array[direction], gates))
        if len(given) == 3:
            for kind, half in zip(("bias_ih", "bias_hh"), np.split(given[2].array[direction], 2), strict=True):
                found[f"{kind}_{tail}"] = Tensor(_reordered(half, gates))
    return found


def _reordered(array: Array, gates: Sequence[int]) -> Array:
    """The gates along the first axis in torch's order; `gates` are torch's indices in ONNX's order."""
    parts = np.split(array, len(gates))
    return np.concatenate([parts[gates.index(gate)] for gate in range(len(gates))])
