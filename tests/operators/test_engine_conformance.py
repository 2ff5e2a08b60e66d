"""Every engine of the library runs every example of every operator as torch does, or refuses it by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from operator_oracles import COMPUTE, LAYER, Case, network, random_inputs, randomise, runner, weights_of

from designer.graph.diagnostics import DiagnosticError
from designer.operators.code_text import digest
from designer.runtime.api import Part, RunOptions
from designer.runtime.engine_registry import load_engines

ENGINES = load_engines(installed=False)
NOT_IN_ONNX = {"custom-0", "custom-1-with_weights"}
REFUSED = {
    "onnxruntime": NOT_IN_ONNX,
    "openvino": NOT_IN_ONNX | {
        "bitwise-4",
        "bitwise-5",
        "convolution-6-wrapped_border",
        "depthwise_convolution-2-wrapped_border",
        "local_response_normalization-1-strong",
        "modulo-0-fractions",
        "padding-3-wrapped",
        "resize-2-smoothed",
        "resize-3-smoothed,_bicubic",
        "resize-4-smoothed,_one_pixel_wide",
        "unpooling-0",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """One example on one engine."""

    engine: str
    case: Case


CASES = [case for case in COMPUTE if case.operator.type != "opaque"]  # torch, the judge, does not know it
TRIALS = [Trial(engine.name, case) for engine in ENGINES for case in CASES]


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: f"{trial.engine}-{trial.case.name}")
def test_engine_agrees_with_torch_or_refuses_by_name(trial: Trial) -> None:
    problem = ENGINES.problem(ENGINES.get(trial.engine))
    if problem is not None:
        pytest.skip(f"{problem.message}: {problem.remedy}")
    case, net = trial.case, network(trial.case)
    agreed = (digest(str(getattr(case.operator, "agreement", ""))),)
    options = RunOptions(trial.engine, threads=1, agreed=agreed)
    part = Part((LAYER,), net.feeds)
    module = runner(case, net=net)
    randomise(module)
    engine = ENGINES.make(net.inference, weights_of(module), options)
    if case.name in REFUSED.get(trial.engine, ()):
        with pytest.raises(DiagnosticError) as caught:
            engine.compile(part, net.outputs)
        assert all(d.layer == LAYER and d.remedy for d in caught.value.diagnostics)
        return
    compiled = engine.compile(part, net.outputs)
    for batch in (1, 3):
        inputs = random_inputs(case.types, batch, seed=batch)
        with torch.no_grad():
            expected = [result.numpy() for result in module(*inputs)]
        feeds = {feed: value.numpy() for feed, value in zip(net.feeds, inputs, strict=True)}
        for array in feeds.values():
            array.flags.writeable = False
        made = compiled.run(feeds)
        for source, right in zip(net.outputs, expected, strict=True):
            assert made[source].dtype == right.dtype
            np.testing.assert_allclose(made[source], right, rtol=2e-5, atol=2e-5)
