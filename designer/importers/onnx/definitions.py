"""Operators that the standard defines by others: their definition as a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from designer.importers.onnx.conversion import Conversion, OnnxOp
from designer.importers.onnx.opaque import node_model
from designer.importers.onnx.versions import has_definition
from designer.runtime.engines.onnx_model import rename_values

if TYPE_CHECKING:
    import onnx_ir as ir

MAX_NODES = 200  # of a definition


def definition(c: Conversion, op: OnnxOp) -> ir.Model | None:
    """The nodes that define an operator, which read and make the same values; None if the standard has no definition.

    The other values get names of their own.
    """
    import onnx_ir as ir
    from onnx import inliner

    if not op.outputs or not has_definition(op):
        return None
    try:
        model = node_model(c, op)
        inlined = inliner.inline_selected_functions(
            model, [(op.domain, op.op_type)], exclude=False, inline_schema_functions=True
        )
    except Exception:  # an input of unknown type, or a class of the inliner's own
        return None
    if len(inlined.graph.node) > MAX_NODES or any(node.op_type == op.op_type for node in inlined.graph.node):
        return None
    outside = {entry.name: entry.name for entry in (*inlined.graph.input, *inlined.graph.output)}
    rename_values(inlined.graph, outside, f"{op.outputs[0]}/{op.op_type}")
    return ir.from_proto(inlined)
