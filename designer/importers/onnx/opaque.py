"""Nodes without a layer type: they are kept whole in opaque layers, together with what no layer can hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from designer.graph.types import DataType, Dim, Symbol, TensorType
from designer.importers.onnx.conversion import Conversion, OnnxOp, UnsupportedError
from designer.importers.onnx.folding import is_numeric
from designer.importers.onnx.versions import runnable_opset, upgraded
from designer.importers.report import Outcome
from designer.operators.library.development.opaque import Side, attributes_of, packed
from designer.operators.onnx_data import OPSET
from designer.operators.params import Value
from designer.runtime.engines.ort_engine import inference_session

BATCH = "N"
MAX_INPUTS = MAX_OPSET = 1000
FURTHER = ((1, 2), (2, 3), (3, 1))  # pixels that are added to find sizes that follow those of images
CONTROL_FLOW = frozenset({"If", "Loop", "Scan"})
RUNS = ((2, 0), (2, 1), (3, 0))  # batches and seeds with which the shapes of control flow are found
MAX_EMBEDDED = 1024  # elements of integer constants that are kept inside of the layer
SHAPING = {"Resize": (1, 2), "Upsample": (1,)}  # places of real numbers by which outputs have their shapes
OLDEST_IR = 4  # version of the format in which constants need not be inputs too


def add_opaque(c: Conversion, op: OnnxOp, reason: str) -> None:
    """Add an opaque layer for a node, or keep the node for its consumers if no layer can have its outputs.

    Raises UnsupportedError if the layer cannot be made either.
    """
    c.current, c.made = op, []
    nodes = _with_embedded(c, op)
    inputs, constants = _inputs(c, nodes)
    if len(inputs) > MAX_INPUTS:
        raise UnsupportedError(f"it has {len(inputs)} inputs, an opaque layer at most {MAX_INPUTS}")
    original = _model(c, nodes, inputs, constants, op.outputs)
    model, types = _typed(original, op, c.declared)
    if types is None:
        for output in op.outputs:
            c.embedded[output] = op
        c.record(op, Outcome.OPAQUE, f"{reason}; kept inside of the layers that read it")
        return
    used = [output for output in op.outputs if output]
    params: dict[str, Value] = {
        "op_type": op.op_type,
        "domain": op.domain,
        "input_count": len(inputs),
        "output_count": len(used),
        "shapes": "\n".join(_open_texts(model, op, types)),
    }
    simple = _attributes_text(op) if not constants and len(nodes) == 1 and all(op.inputs) and all(op.outputs) else None
    same = list(model.graph.node) == list(original.graph.node)  # also in the opset of opaque layers
    if simple is not None and same and tuple(inputs) == op.inputs and model.opset_import[0].version <= OPSET:
        params["attributes"] = simple
        if op.domain not in ("", "ai.onnx") and 1 < op.opset <= MAX_OPSET:
            params["opset"] = op.opset
    else:
        params["model"] = packed(model.SerializeToString())
    made = c.add("opaque", inputs, params)
    for output, source in zip(used, made, strict=True):
        c.put(output, source)
    for item in nodes[:-1]:
        c.kept_inside(item)
    c.record(op, Outcome.OPAQUE, reason)


def _with_embedded(c: Conversion, op: OnnxOp) -> list[OnnxOp]:
    """The node and those that make values that no layer can hold, in running order."""
    found: dict[int, OnnxOp] = {}

    def visit(item: OnnxOp) -> None:
        for name in (*item.inputs, *captured(item)):
            if name in c.sources:
                continue
            if name in c.embedded:
                visit(c.embedded[name])
            elif c.is_symbolic(name) and name in c.deferred:
                visit(c.deferred[name])
        found.setdefault(id(item), item)

    visit(op)
    return list(found.values())


def captured(op: OnnxOp) -> tuple[str, ...]:
    """Values of the graph around that the graphs in a node's attributes read."""
    names: dict[str, None] = {}
    for node in op.nodes:
        _collect(_proto(node), names, set(), top=True)
    return tuple(names)


def _collect(node: Any, names: dict[str, None], local: set[str], *, top: bool = False) -> None:
    if not top:
        names.update(dict.fromkeys(name for name in node.input if name and name not in local))
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
            inner = local | {entry.name for entry in graph.input} | {entry.name for entry in graph.initializer}
            for item in graph.node:
                _collect(item, names, inner)
                inner |= set(item.output)
            names.update(dict.fromkeys(entry.name for entry in graph.output if entry.name not in inner))


def _inputs(c: Conversion, nodes: Sequence[OnnxOp]) -> tuple[list[str], dict[str, Any]]:
    """The values that layers provide, and the constants that the opaque layer keeps, as tensors of ONNX."""
    made = {output for op in nodes for output in op.outputs}
    inputs: dict[str, None] = {}
    constants: dict[str, Any] = {}
    for op in nodes:
        for name in (*op.inputs, *captured(op)):
            if not name or name in made or name in inputs or name in constants:
                continue
            shaping = any(op.inputs[place : place + 1] == (name,) for place in SHAPING.get(op.op_type, ()))
            kept = _kept(c, name, shaping) if shaping or name not in c.sources else None
            if kept is not None:
                constants[name] = kept
            else:
                c.source(name)
                inputs[name] = None
    return list(inputs), constants


def _kept(c: Conversion, name: str, shaping: bool) -> Any | None:
    """A constant that stays inside of the layer: small integers and what is `shaping`, empty tensors, and types that layers cannot have."""
    from onnx import numpy_helper

    array = c.known(name)
    if array is None and name in c.tensors:
        import onnx_ir as ir

        return ir.to_proto(c.tensors[name])
    if array is None or not is_numeric(array):
        return None
    plain = array.dtype.kind == "f" and array.size > 0 and not shaping
    return None if plain or array.size > MAX_EMBEDDED else numpy_helper.from_array(array, name)


def _model(
    c: Conversion, nodes: Sequence[OnnxOp], inputs: Iterable[str], constants: Mapping[str, Any], outputs: Iterable[str]
) -> Any:
    """The nodes as an ONNX model whose inputs have the types of the document."""
    from onnx import helper

    entries = []
    for name in inputs:
        kind = c.type_of(name)
        dims = [dim.name if isinstance(dim, Symbol) else dim for dim in kind.shape]
        entries.append(helper.make_tensor_value_info(name, _code(kind.dtype), dims))
    protos = [_proto(node) for op in nodes for node in op.nodes]
    for name, tensor in constants.items():
        tensor.name = name
    ends = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
    graph = helper.make_graph(protos, "opaque", entries, ends, list(constants.values()))
    domains = {op.domain: op.opset for op in nodes if op.domain not in ("", "ai.onnx")}
    opsets = [
        helper.make_opsetid("", c.opset),
        *(helper.make_opsetid(name, number) for name, number in domains.items()),
    ]
    ir_version = max(OLDEST_IR, helper.find_min_ir_version_for(opsets, ignore_unknown=True))
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)


def node_model(c: Conversion, op: OnnxOp) -> Any:
    """One node as an ONNX model; all its inputs are inputs of the model, with the types of the document."""
    return _model(c, [op], [name for name in dict.fromkeys(op.inputs) if name], {}, op.outputs)


def _typed(original: Any, op: OnnxOp, declared: Mapping[str, TensorType]) -> tuple[Any, list[TensorType] | None]:
    """The model in an opset that ONNX Runtime has, and the types of its outputs.

    Newer element types exist in the original opset only: the reference implementation runs that.
    """
    version = original.opset_import[0].version
    copy = type(original)()
    copy.CopyFrom(original)
    model = upgraded(copy, runnable_opset())
    try:
        return model, _types(model, op, declared)
    except UnsupportedError:
        if model.opset_import[0].version >= version:
            raise
        return original, _types(original, op, declared)


def _types(model: Any, op: OnnxOp, declared: Mapping[str, TensorType]) -> list[TensorType] | None:
    """The types of a node's outputs; None if one is not a tensor that a layer can have, or its shape depends on values."""
    from onnx import shape_inference

    try:
        found = shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except shape_inference.InferenceError as error:
        raise UnsupportedError(f"{op.op_type} is not valid: {str(error).strip().splitlines()[-1][:200]}") from None
    types: list[TensorType] = []
    ran: Mapping[str, tuple[Dim, ...]] | None = None  # by running the node
    for entry in found.graph.output:
        known = declared.get(entry.name)
        if not entry.type.HasField("tensor_type") or not entry.type.tensor_type.elem_type:
            if entry.type.WhichOneof("value") not in (None, "tensor_type") or known is None:
                return None
            types.append(known)
            continue
        dtype = data_type(entry.type.tensor_type.elem_type)
        shape = _shape(entry.type.tensor_type)
        if shape is None and known is not None:
            shape = known.shape
        run = op.op_type in CONTROL_FLOW if shape is None else _sized_by_runtime(op)
        if run:
            ran = _shapes_of_runs(model) if ran is None else ran
            shape = ran.get(entry.name, shape)
        if dtype is None or shape is None:
            return None
        types.append(TensorType(shape, dtype))
    return types


def _sized_by_runtime(op: OnnxOp) -> bool:
    """Whether ONNX Runtime decides the sizes, since the shape inference of ONNX may have others.

    It pools without windows that begin in the padding at the end, and multiplies sizes and factors in float32.
    """
    if op.op_type in ("MaxPool", "AveragePool", "LpPool"):
        return bool(op.attributes.get("ceil_mode"))
    return op.op_type in SHAPING and not op.input(3)


def _shapes_of_runs(model: Any) -> dict[str, tuple[Dim, ...]]:
    """The shapes of the outputs from runs with several batches and values: of control flow, whose graphs need not declare them, and of pooling.

    Outputs whose shape depends on values are left out, and all if the model does not run on random values.
    """
    names = [entry.name for entry in model.graph.output]
    try:
        session = inference_session(model.SerializeToString(), 1)
        runs = {
            (batch, seed): [np.shape(made) for made in session.run(None, _random_feeds(model, batch, seed))]
            for batch, seed in RUNS
        }
    except Exception:  # of ONNX Runtime, which has classes of its own
        return {}
    found: dict[str, tuple[Dim, ...]] = {}
    for place, name in enumerate(names):
        one, again, more = (runs[key][place] for key in RUNS)
        dims = [
            a if a == c else Symbol(BATCH) if (a, c) == (RUNS[0][0], RUNS[2][0]) else None
            for a, c in zip(one, more, strict=False)
        ]
        if one == again and len(one) == len(more) and None not in dims:
            found[name] = tuple(dim for dim in dims if dim is not None)
    return found


def _random_feeds(model: Any, batch: int, seed: int) -> dict[str, Any]:
    from onnx import helper

    rng = np.random.default_rng(seed)
    feeds = {}
    for entry in model.graph.input:
        kind = entry.type.tensor_type
        shape = [dim.dim_value or batch for dim in kind.shape.dim]
        feeds[entry.name] = rng.random(shape).astype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return feeds


def _open_texts(model: Any, op: OnnxOp, types: Sequence[TensorType]) -> list[str]:
    """Types as text. Sizes that follow those of the images that the node reads are H and W, tried at further sizes."""
    fixed = [_text(kind) for kind in types]
    tried = type(model)()
    tried.CopyFrom(model)
    images = [entry.type.tensor_type.shape.dim for entry in tried.graph.input]
    images = [dims for dims in images if len(dims) == 4 and dims[2].dim_value and dims[3].dim_value]
    sides = {(dims[2].dim_value, dims[3].dim_value) for dims in images}
    if len(sides) != 1:
        return fixed
    ((height, width),) = sides
    sizes = [(height, width), *((height + i, width + j) for i, j in FURTHER), (2 * height, 3 * width)]
    found = [list(types)]
    for size in sizes[1:]:
        for dims in images:
            dims[2].dim_value, dims[3].dim_value = size
        try:
            other = _types(tried, op, {})
        except UnsupportedError:
            return fixed
        if other is None or [kind.rank for kind in other] != [kind.rank for kind in types]:
            return fixed
        found.append(other)
    texts = []
    for place, kind in enumerate(types):
        text = [_open_size([item[place].shape[axis] for item in found], sizes) for axis in range(kind.rank)]
        if None in text:
            return fixed
        texts.append(_text(kind, [part or "" for part in text]))
    return texts


def _open_size(found: Sequence[Dim], sizes: Sequence[tuple[int, int]]) -> str | None:
    """A size as text, from what it is at several sizes of an image; None if it does not follow them simply."""
    first = found[0]
    if all(dim == first for dim in found):
        return str(first)
    for axis in (2, 3):
        side = sizes[0][axis - 2]
        if isinstance(first, int) and first:
            tried = Side(axis, max(1, first // side), max(1, side // first))
            if [size[axis - 2] * tried.times // tried.over for size in sizes] == list(found):
                return str(tried)
    return None


def _shape(kind: Any) -> tuple[Dim, ...] | None:
    """The shape of an ONNX tensor; None if it is not known."""
    if not kind.HasField("shape"):
        return None
    dims: list[Dim] = []
    for dim in kind.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value > 0:
            dims.append(dim.dim_value)
        elif dim.dim_param == BATCH:
            dims.append(Symbol(BATCH))
        else:
            return None
    return tuple(dims)


def data_type(code: int) -> DataType | None:
    """The element type of a layer for that of an ONNX tensor; None if layers cannot have it."""
    from onnx import TensorProto

    names = {TensorProto.FLOAT: "float32", TensorProto.DOUBLE: "float64"}
    try:
        return DataType(names.get(code) or TensorProto.DataType.Name(code).lower())
    except ValueError:
        return None


def _code(dtype: DataType) -> int:
    from onnx import TensorProto

    names = {DataType.FLOAT32: "FLOAT", DataType.FLOAT64: "DOUBLE"}
    code: int = TensorProto.DataType.Value(names.get(dtype, dtype.value.upper()))
    return code


def _attributes_text(op: OnnxOp) -> str | None:
    """The attributes as lines of text; None if some are tensors, graphs or types."""
    lines = []
    for name, value in op.attributes.items():
        items = value if isinstance(value, list | tuple) else [value]
        if not items or not all(isinstance(item, int | float | str) for item in items):
            return None
        lines.append(f"{name}={list(value) if isinstance(value, tuple) else value!r}")
    text = "\n".join(lines)
    try:
        same = dict(attributes_of(text)) == {
            k: tuple(v) if isinstance(v, list) else v for k, v in op.attributes.items()
        }
    except Exception:  # an unusual text or number: the attributes are kept as bytes
        return None
    return text if same else None


def _text(kind: TensorType, sizes: Sequence[str] | None = None) -> str:
    if not kind.shape:
        return f"scalar {kind.dtype.value}" if kind.dtype is not DataType.FLOAT32 else "scalar"
    if sizes is None:
        return str(kind)
    dtype = "" if kind.dtype is DataType.FLOAT32 else f" {kind.dtype.value}"
    return f"{' x '.join(sizes)}{dtype}"


def _proto(node: Any) -> Any:
    """A node as protobuf."""
    import onnx_ir as ir

    return ir.to_proto(node)
