"""The imported file, kept in the document, so that an export of the unedited document is the file again.

It is a property of the document: the model without the values of learned tensors, which are among the weights. Such a
tensor is marked as external data whose location is LOCATION, with the key of the weight.
"""

from __future__ import annotations

import base64
import zlib
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from designer.files.weights import WeightKey, Weights
from designer.graph.graph import Graph
from designer.importers.imported import Imported

ORIGIN = "onnx"  # name of the property
LOCATION = "weights of the document"
MAX_ORIGIN = 8 * 2**20  # bytes of a model without its weights


def packed_origin(proto: Any, found: Imported, folder: Path) -> str:
    """The text of the property; empty if the model is too large without its weights. `folder` has its external data."""
    from onnx import ModelProto, TensorProto
    from onnx.external_data_helper import load_external_data_for_tensor

    skeleton = ModelProto()
    skeleton.CopyFrom(proto)
    total = 0
    for tensor in skeleton.graph.initializer:
        key = _key(found.report.weights.get(tensor.name, ""))
        array = found.weights.tensors.get(key) if key is not None else None
        way = _way(tensor, array, folder) if array is not None else None
        if key is not None and way is not None:
            for name in ("raw_data", "float_data", "external_data"):
                tensor.ClearField(name)
            tensor.data_location = TensorProto.EXTERNAL
            for name, text in (("location", LOCATION), ("layer", key.layer), ("tensor", key.tensor), ("way", way)):
                tensor.external_data.add(key=name, value=text)
        elif tensor.data_location == TensorProto.EXTERNAL:
            if total + 4 * prod(tensor.dims) > MAX_ORIGIN:
                return ""
            load_external_data_for_tensor(tensor, str(folder))
            tensor.ClearField("external_data")
            tensor.data_location = TensorProto.DEFAULT
        total += tensor.ByteSize()
        if total > MAX_ORIGIN:
            return ""
    return base64.b64encode(zlib.compress(skeleton.SerializeToString(), 6)).decode("ascii")


def restored(graph: Graph, weights: Weights) -> Any | None:
    """The imported model with the present weights; None if the document has none, or it is damaged."""
    from google.protobuf.message import DecodeError
    from onnx import load_model_from_string

    text = graph.properties.get(ORIGIN, "")
    if not text:
        return None
    try:
        reader = zlib.decompressobj()
        data = reader.decompress(base64.b64decode(text, validate=True), 2 * MAX_ORIGIN)
        model = load_model_from_string(data)
    except (ValueError, zlib.error, DecodeError):
        return None
    for tensor in model.graph.initializer:
        if tensor.data_location == tensor.EXTERNAL and not _fill(tensor, weights):
            return None
    return model


def _fill(tensor: Any, weights: Weights) -> bool:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    array = weights.tensors.get(WeightKey(entries.get("layer", ""), entries.get("tensor", "")))
    if entries.get("location") != LOCATION or array is None or array.size != np.prod(tensor.dims):
        return False
    if entries.get("way") == "transposed":
        array = array.T
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    tensor.raw_data = np.ascontiguousarray(array, "<f4").tobytes()
    return True


def _way(tensor: Any, array: Any, folder: Path) -> str | None:
    """How the values of a weight become those of its initializer: "same" or "transposed"; None if they differ.

    The values of tensors in other files, in `folder`, were read from there: they are compared only if their shape does not decide.
    """
    from onnx import TensorProto, numpy_helper

    if tensor.data_type != TensorProto.FLOAT or array.size != np.prod(tensor.dims):
        return None
    if tensor.data_location == TensorProto.EXTERNAL:
        copied = array.flags.owndata  # otherwise it is the content of the file as it is
        if copied and array.ndim == 2 and array.shape[0] == array.shape[1]:
            return _way_of_square(tensor, array, folder)
        return "transposed" if array.ndim == 2 and array.shape != tuple(tensor.dims) else "same"
    original = numpy_helper.to_array(tensor).reshape(-1)
    for way, values in (("same", array), ("transposed", array.T)):
        if np.array_equal(values.reshape(-1).view(np.uint32), original.view(np.uint32)):
            return way
    return None


def _way_of_square(tensor: Any, array: Any, folder: Path) -> str | None:
    """As `_way`, from the first row in the file that is not the same row and column of the weight: the file can be large."""
    import onnx_ir as ir

    stored = ir.from_proto(tensor)
    assert isinstance(stored, ir.ExternalTensor)
    stored.base_dir = folder
    try:
        for place in range(len(array)):
            row, same, column = (
                np.array(values, np.float32).view(np.uint32)
                for values in (stored.numpy()[place], array[place], array[:, place])
            )
            if not np.array_equal(same, column):
                return "same" if np.array_equal(row, same) else "transposed" if np.array_equal(row, column) else None
            if not np.array_equal(row, same):
                return None
    finally:
        stored.release()
    return "same"


def _key(text: str) -> WeightKey | None:
    layer, dot, tensor = text.rpartition(".")
    return WeightKey(layer, tensor) if dot else None
