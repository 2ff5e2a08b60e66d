"""The builder of documents: names, types, weights, layout, frames."""

from __future__ import annotations

import numpy as np
import pytest

from designer.files.weights import WeightKey
from designer.graph.model import Source
from designer.graph.types import ShapeError, Size2D, Size3D
from designer.importers.builder import GraphBuilder
from designer.operators.params import ParamError
from designer.operators.registry import Registry


def builder_with_image(registry: Registry) -> tuple[GraphBuilder, Source]:
    builder = GraphBuilder(registry)
    builder.reserve(["image", "result:1"])
    (image,) = builder.add("input", (), {"dims": Size3D(8, 8, 3)}, name="image", exact=True)
    return builder, image


def test_layers_get_unique_legal_names_and_types(registry: Registry) -> None:
    builder, image = builder_with_image(registry)
    (one,) = builder.add("pooling", [image], {"size": Size2D(2, 2)}, name="/block.0/pool:1")
    (two,) = builder.add("pooling", [image], name="/block.0/pool:1")
    assert image.layer == "image"
    assert one.layer.isidentifier()
    assert two.layer == f"{one.layer}_2"
    assert str(builder.types[one]) == "N x 3 x 4 x 4"


def test_a_layer_that_does_not_fit_is_not_added(registry: Registry) -> None:
    builder, image = builder_with_image(registry)
    with pytest.raises(ShapeError, match="'kernel' needs the shape 4 x 3 x 3 x 3"):
        builder.add("convolution", [image], {"features": 4, "apply_bias": False})
    with pytest.raises(ParamError, match="no parameter 'feature'"):
        builder.add("convolution", [image], {"feature": 4})
    with pytest.raises(ParamError, match="below the minimum"):
        builder.add("convolution", [image], {"features": 0})
    assert list(builder.layers) == ["image"]
    assert not builder.weights


def test_rollback_removes_layers_with_names_types_and_weights(registry: Registry) -> None:
    builder, image = builder_with_image(registry)
    mark = builder.mark()
    kernel = np.ones((4, 3, 3, 3), np.float32)
    params = {"features": 4, "apply_bias": False}
    first = builder.add("convolution", [image], params, name="c", weights={"kernel": kernel})
    builder.rollback(mark)
    assert (list(builder.layers), list(builder.weights), first[0] in builder.types) == (["image"], [], False)
    again = builder.add("convolution", [image], params, name="c", weights={"kernel": kernel})
    assert again == first
    assert list(builder.weights) == [WeightKey("c", "kernel")]


def test_layers_are_laid_out_and_scopes_become_frames(registry: Registry) -> None:
    builder, image = builder_with_image(registry)
    source = image
    for number in range(4):
        scope = ("body", f"block{number // 2}")
        (source,) = builder.add("activation", [source], activation=("relu", {}), scope=scope)
    builder.add("output", [source], name="y", exact=True)
    graph, _ = builder.finish()
    columns = [graph[name].position[0] for name in graph.layers]
    assert columns == sorted(set(columns))
    assert [frame.title for frame in graph.frames.values()] == ["body", "body.block0", "body.block1"]


def test_weights_with_their_axes_exchanged_are_not_added(registry: Registry) -> None:
    builder, image = builder_with_image(registry)
    params = {"features": 4, "kernel": Size2D(2, 1), "apply_bias": False}
    for shape in ((3, 4, 1, 2), (4, 3, 2, 1), (4, 3, 2), (24,)):
        with pytest.raises(ShapeError, match="'kernel' needs the shape 4 x 3 x 1 x 2"):
            builder.add("convolution", [image], params, weights={"kernel": np.ones(shape, np.float32)})
    builder.add("convolution", [image], params, weights={"kernel": np.ones((4, 3, 1, 2), np.float32)})
