"""Number formats that change while a network is open: equal to opening it with them, and only what depends on a change runs."""

from __future__ import annotations

import numpy as np
import pytest
from restoration_networks import restoring_unet, restoring_weights

from designer.graph.diagnostics import DiagnosticError
from designer.precision.bits import EQUAL, LADDER, BitsMeasurement
from designer.runtime.api import RunOptions
from designer.runtime.engine_registry import default_engines
from designer.runtime.preview import Preview
from designer.runtime.session import Session

pytest.importorskip("torch")

SIDE = 32
IMAGE = np.random.default_rng(2).random((1, 3, SIDE, SIDE), np.float32)
EMULATED = next(engine.name for engine in default_engines() if engine.formats)


@pytest.fixture
def network(registry):
    graph = restoring_unet(4, SIDE)
    return graph, registry, restoring_weights(graph, registry)


def session(network, formats: dict[str, str] | None = None) -> Session:
    options = RunOptions(EMULATED, threads=1, formats=tuple((formats or {}).items()))
    made = Session(*network, options)
    made.set_input("image", IMAGE, is_image=True)
    return made


def test_a_change_gives_what_opening_with_it_gives(network):
    live = session(network, {"enc_0_b": "int8"})
    live.run()
    for formats in ({"enc_0_b": "int8", "dec_0_a": "int4"}, {"dec_0_a": "int2"}, {}):
        live.set_formats(formats)
        np.testing.assert_array_equal(live.run().outputs["result"], session(network, formats).run().outputs["result"])


def test_only_layers_behind_the_change_run_again(network):
    live = session(network, {"dec_0_a": "int8"})
    live.run()
    live.set_formats({"dec_0_a": "int4"})
    ran = [layer for step in live.run().steps if not step.cached for layer in step.layers]
    assert ran == ["dec_0_a", "dec_0_b", "last", "sum"]
    live.set_formats({"dec_0_a": "int8"})
    assert all(step.cached for step in live.run().steps)


def test_the_coarse_preview_follows_formats(network):
    live = session(network, {"last": "int8"})
    live.run()
    preview = Preview(live, 2)
    before = preview.run().outputs["result"]
    live.set_formats({"last": "int2"})
    assert np.abs(preview.run().outputs["result"] - before).max() > 0.01


def test_engines_without_formats_refuse_them_and_stay_as_they_are(network):
    live = Session(*network, RunOptions("torch", threads=1))
    live.set_input("image", IMAGE, is_image=True)
    before = live.run().outputs["result"]
    with pytest.raises(DiagnosticError, match="int8"):
        live.set_formats({"last": "int8"})
    np.testing.assert_array_equal(live.run().outputs["result"], before)


def test_fewer_bits_cost_more_and_choices_get_smaller(network):
    measurement = BitsMeasurement(session(network))
    layers = measurement.layer_bits()
    assert layers[0].layer == "enc_0_a"
    for item in layers:
        values = [item.psnr[name] for name in LADDER[1:]]
        assert values == sorted(values, reverse=True)
    points = measurement.points(layers)
    assert points[0].formats == {}
    assert points[0].psnr == EQUAL
    sizes = [point.bytes for point in points]
    assert sizes == sorted(sizes, reverse=True)
    assert set(points[-1].formats.values()) == {"int2"}
    assert points[-1].bytes < points[0].bytes / 13  # of 16: biases stay in 32 bits
    assert points[2].psnr > points[-1].psnr + 10
