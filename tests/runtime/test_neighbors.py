"""Looking at one layer after another: no run again for a neighbour, and the same bits as a run for it alone."""

from __future__ import annotations

import numpy as np
import pytest
from runtime_networks import analysed, pixels, unet, unet_weights

from designer.graph.model import Source
from designer.runtime.api import RunOptions
from designer.runtime.session import Session

pytest.importorskip("torch").set_num_threads(1)
pytest.importorskip("onnxruntime")

HIDDEN = [Source(name) for name in ("enc 1", "pool", "down", "up_2", "plus", "dec", "cat")]


def opened(registry, engine="onnxruntime", **kw) -> Session:
    made = Session(analysed(), registry, unet_weights(), RunOptions(engine=engine, threads=1), **kw)
    made.set_input("image", pixels(), is_image=True)
    return made


def ran(result) -> list[str]:
    return [step.layers[0] for step in result.steps if not step.cached]


@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
def test_the_second_look_runs_the_part_once_and_the_others_nothing(runtime_registry, engine):
    made = opened(runtime_registry, engine)
    before = made.run()
    first = made.run([Source("dec")])
    assert ran(first) == ["enc 1"]
    assert first.outputs["result"] is before.outputs["result"]  # what depends on the part is not computed again
    for source in HIDDEN:
        result = made.run([source])
        assert ran(result) == []
        assert result.outputs["result"] is before.outputs["result"]
        alone = opened(runtime_registry, engine).run([source])
        np.testing.assert_array_equal(result.captures[source], alone.captures[source])
        np.testing.assert_array_equal(result.outputs["result"], alone.outputs["result"])


def test_while_values_change_only_the_looked_at_layer_is_brought(runtime_registry):
    made = opened(runtime_registry)
    made.run([Source("dec")])
    made.set_param("noise", "scale", "0.3")
    assert ran(made.run([Source("dec")])) == ["noise", "enc 1", "mix"]
    assert ran(made.run([Source("dec")])) == []
    moved = made.run([Source("pool")])  # now the user looks around again
    assert ran(moved) == ["enc 1"]
    assert ran(made.run([Source("down")])) == []
    made.set_param("noise", "scale", "0.1")
    assert made.run([Source("dec")]).captures[Source("dec")].shape == (1, 8, 24, 32)


def test_a_run_without_the_capture_takes_what_the_run_with_it_made(runtime_registry):
    made = opened(runtime_registry)
    made.run([Source("dec")])
    made.set_param("noise", "scale", "0.3")
    seen = made.run([Source("dec")])  # the engine has seen these values only together with the capture
    alone = made.run()
    assert ran(alone) == []
    assert alone.outputs["result"] is seen.outputs["result"]
    fresh = opened(runtime_registry)
    fresh.set_param("noise", "scale", "0.3")
    np.testing.assert_array_equal(fresh.run().outputs["result"], alone.outputs["result"])


def test_what_was_taken_from_a_run_with_more_captures_was_used_last(runtime_registry):
    array = 4 * 24 * 32  # bytes of a channel
    made = Session(
        unet(), runtime_registry, unet_weights(), RunOptions("torch", threads=1), keep_bytes=(11 + 3) * array
    )
    made.set_input("image", pixels(), is_image=True)

    def ran_for(epsilon, *capture) -> list[str]:
        made.set_param("norm", "epsilon", epsilon)
        return ran(made.run(capture))

    assert ran_for("0.1", Source("dec"))  # 8 channels and the result
    assert ran_for("0.2")
    assert not ran_for("0.1")
    assert ran_for("0.3")  # drops the result of 0.2, the oldest
    assert not ran_for("0.1")
    assert ran_for("0.2")


def test_a_run_whose_capture_prevented_a_fusion_is_not_used_without_it(runtime_registry):
    made = opened(runtime_registry)
    made.run([Source("enc_2")])  # engines fold the normalization that reads it
    assert ran(made.run()) == ["enc 1", "mix"]


@pytest.mark.parametrize("names", [("enc_2", "dec"), ("dec", "enc_2"), ("enc_2", "dec", "up_2")])
def test_one_capture_of_several_that_prevented_a_fusion_is_enough(runtime_registry, names):
    made = opened(runtime_registry)
    made.run([Source(name) for name in names])
    assert ran(made.run()) == ["enc 1", "mix"]
    fresh = opened(runtime_registry)
    fresh.run([Source("dec"), Source("up_2")])  # none of these can be folded
    assert ran(fresh.run()) == []


def test_neighbours_take_no_more_memory_than_they_may(runtime_registry):
    """A cap so small that each tensor is kept alone: every capture runs, nothing fails."""
    made = opened(runtime_registry, keep_bytes=4 * 8 * 24 * 32 * 4)
    made.run()
    for name in ("dec", "enc 1"):
        assert ran(made.run([Source(name)])) != []
    assert made.results.nbytes <= made.results.keep_bytes


def test_bits_that_would_differ_are_not_believed(runtime_registry, monkeypatch):
    """An engine that computes another way when more is wanted: the part runs for the tensor alone, as before."""
    made = opened(runtime_registry)
    made.run()
    inner, together = type(made.engine).compile, []

    def other(self, part, wanted):
        ready = inner(self, part, wanted)
        if len(wanted) > 2:
            run = ready.run

            def differing(feeds):
                together.append(wanted)
                return {source: array + np.float32(1e-6) for source, array in run(feeds).items()}

            ready.run = differing
        return ready

    monkeypatch.setattr(type(made.engine), "compile", other)
    expected = opened(runtime_registry).run([Source("dec")])
    for _ in range(2):
        result = made.run([Source("dec")])
        np.testing.assert_array_equal(result.captures[Source("dec")], expected.captures[Source("dec")])
        np.testing.assert_array_equal(result.outputs["result"], expected.outputs["result"])
    assert len(made.differs) in (1, 2)
    count = len(together)
    made.set_param("noise", "scale", "0.3")
    made.run()
    made.run([Source("dec")])
    assert len(together) == count  # it is not tried again with other values
