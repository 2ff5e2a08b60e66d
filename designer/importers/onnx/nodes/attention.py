"""The attention operator of ONNX: heads as an axis or not, shared keys, a cache, masks."""

from __future__ import annotations

from designer.graph.model import Source
from designer.graph.types import DataType, TensorType
from designer.importers.onnx.conversion import Conversion, OnnxOp, UnsupportedError
from designer.importers.onnx.nodes.activations import rounded
from designer.importers.onnx.nodes.reshaping import reshaped
from designer.importers.onnx.nodes.table import converts
from designer.operators.params import Value

_FAR = -1e30  # a score that is not attended to


@converts("Attention")
def attention(c: Conversion, op: OnnxOp) -> None:
    if op.attribute("softcap", 0.0) or op.attribute("qk_matmul_output_mode", 0) or len(op.outputs) > 3 or op.input(6):
        raise UnsupportedError("it has a soft cap, more outputs, or a cache of fixed size")
    op.attribute("softmax_precision")
    flat = c.type_of(op.inputs[0]).rank == 3
    heads, shared = op.attribute("q_num_heads"), op.attribute("kv_num_heads")
    query, key, value = (
        _with_heads(c, name, count) if flat else c.source(name)
        for name, count in zip(op.inputs[:3], (heads, shared, shared), strict=True)
    )
    if op.input(4):
        key = c.add("concatenation", [op.inputs[4], key], {"axis": 2})[0]
        value = c.add("concatenation", [op.inputs[5], value], {"axis": 2})[0]
    for name, source in zip(op.outputs[1:], (key, value), strict=False):
        c.put(name, source)
    query_heads, key_heads = _type(c, query).dim(1), _type(c, key).dim(1)
    if query_heads != key_heads:
        key, value = (_repeated(c, source, query_heads // key_heads) for source in (key, value))
    inputs: list[str | Source] = [query, key, value]
    causal = bool(op.attribute("is_causal", 0))
    if op.input(3):
        inputs.append(_mask(c, op.inputs[3]))
        if causal:
            raise UnsupportedError("it has a causal and another mask")
    if causal and op.input(4):
        raise UnsupportedError("it is causal and has a cache")
    params: dict[str, Value] = {"scale": rounded(op.attribute("scale", 0.0)), "causal": causal}
    (made,) = c.add("scaled_dot_product_attention", inputs, params)
    if flat:
        (made,) = c.add("permute", [made], {"axes": (0, 2, 1, 3)})
        shape = _type(c, made).shape
        made = reshaped(c, made, [*shape[:2], _type(c, made).dim(2) * _type(c, made).dim(3)])
    c.finish(made)


def _type(c: Conversion, source: Source) -> TensorType:
    return c.builder.types[source]


def _with_heads(c: Conversion, name: str, heads: int) -> Source:
    """Batch x length x (heads * size) as batch x heads x length x size."""
    kind = c.type_of(name)
    split = reshaped(c, name, [*kind.shape[:2], heads, kind.dim(2) // heads])
    return c.add("permute", [split], {"axes": (0, 2, 1, 3)})[0]


def _repeated(c: Conversion, source: Source, times: int) -> Source:
    """Each head several times in a row."""
    batch, heads, length, size = _type(c, source).shape
    (made,) = c.add("unsqueeze", [source], {"axis": 2})
    (made,) = c.add("expand", [made], {"shape": (-1, -1, times, -1, -1)})
    assert isinstance(heads, int)
    return reshaped(c, made, [batch, heads * times, length, size])


def _mask(c: Conversion, name: str) -> Source:
    """A mask as numbers that are added to the scores."""
    kind = c.type_of(name)
    if kind.dtype is not DataType.BOOL:
        return c.source(name)
    numbers: list[dict[str, Value]] = [{"shape": (1,), "numbers": text} for text in ("0", repr(_FAR))]
    (zero,), (far,) = (c.add("tensor_constant", [], params) for params in numbers)
    return c.add("where", [name, zero, far])[0]
