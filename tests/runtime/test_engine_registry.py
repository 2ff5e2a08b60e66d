"""Engines from plug-ins: those that are broken or lie are named with the reason, and the others work."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from runtime_networks import layer, pixels

from designer.files.weights import Weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.runtime.api import Part, RunOptions
from designer.runtime.checked_engine import guarded
from designer.runtime.engine_registry import EngineRegistry, default_engines, load_engines
from designer.runtime.interrupt import Interrupt, InterruptedRunError, interruptible

PLUGIN = """
import numpy as np
from designer.runtime.engine_api import *

class Compiled:
    def __init__(self, feeds, wanted):
        self.feeds, self.wanted = feeds, wanted

    def run(self, feeds):
        array = feeds[self.feeds[0]]
        return {{source: {result} for source in self.wanted}}

class Made(Engine):
    def compile(self, part, wanted):
        {compile}
        return Compiled(part.feeds, wanted)

class Timer(StepTimer):
    def layers(self, runs, warmup, tick):
        return [Sample(("no such layer",), [1.0])]

ENGINE = EngineDescriptor(
    name="made", title="Made", package="made", engine=Made, step_timer=Timer,
    kernels={{"nothing": lambda threads, size: (int, 1.0)}}, available={available}, {more}
)
"""
PARTS = {"result": "array * 2", "compile": "pass", "available": "lambda: None", "more": ""}


def plugin(folder, name: str = "made", **parts: str):
    """The engines of the library and one of a plug-in file."""
    (folder / f"{name}.py").write_text(PLUGIN.format(**PARTS | parts))
    return load_engines([folder], installed=False)


@pytest.fixture
def inference(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="8x6x3"),
            layer("double", "element_wise", "image,image", operation="add"),
            layer("result", "output", "double"),
        ]
    )
    return Inference(graph, runtime_registry)


def run(engines, inference, **options):
    engine = engines.make(inference, Weights(), RunOptions(engine="made", threads=1, **options))
    compiled = engine.compile(Part(("double",), (Source("image"),)), [Source("double")])
    return compiled.run({Source("image"): pixels(6, 8)})[Source("double")]


def test_an_engine_of_a_plugin_file_is_one_among_the_others(tmp_path, inference):
    engines = plugin(tmp_path)
    assert {"onnxruntime", "openvino", "tensorrt", "torch", "emulated", "made"} == set(engines.engines)
    assert not engines.diagnostics
    np.testing.assert_array_equal(run(engines, inference), pixels(6, 8) * 2)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise RuntimeError('no licence')", "RuntimeError: no licence"),
        ("import sys\nsys.exit(3)", "SystemExit"),
        ("import no_such_package_at_all", "no_such_package_at_all"),
        (PLUGIN.format(**PARTS).replace('title="Made",', ""), "title"),
        (PLUGIN.format(**PARTS).replace('name="made"', 'name="Made 2!"'), "lower-case"),
        (PLUGIN.format(**PARTS).replace('name="made"', 'name="torch"'), "declared twice"),
        (PLUGIN.format(**PARTS | {"more": 'layouts=("nhcw",)'}), "layouts"),
        (PLUGIN.format(**PARTS | {"more": 'devices=("cpu",)'}), "devices"),
        (PLUGIN.format(**PARTS | {"available": "True"}), "available"),
    ],
)
def test_a_broken_plugin_is_a_problem_with_its_name_and_reason(tmp_path, text, reason):
    (tmp_path / "broken.py").write_text(text)
    engines = load_engines([tmp_path], installed=False)
    (finding,) = engines.diagnostics
    assert finding.code == "broken-plugin"
    assert "broken.py" in finding.message
    assert reason in finding.message
    assert finding.remedy
    assert set(engines.engines) == {"onnxruntime", "openvino", "tensorrt", "torch", "emulated"}
    assert engines.title("torch") == "PyTorch"


@pytest.mark.parametrize(
    ("available", "reason"),
    [("lambda: 1 / 0", "ZeroDivisionError"), ("lambda: 'no licence'", "not None or a Diagnostic")],
)
def test_an_engine_that_cannot_say_whether_it_is_there_is_not_used(tmp_path, inference, available, reason):
    engines = plugin(tmp_path, available=available)
    problem = engines.problem(engines.engines["made"])
    assert problem is not None
    assert "Made" in problem.message
    assert reason in problem.message
    with pytest.raises(DiagnosticError, match="Made cannot be used"):
        run(engines, inference)


@pytest.mark.parametrize(
    ("parts", "code", "words"),
    [
        ({"result": "array[:, :, ::2]"}, "wrong-result", ("1 x 3 x 3 x 8 of float32", "1 x 3 x 6 x 8 of float32")),
        ({"result": "array.astype(int)"}, "wrong-result", ("int64", "float32")),
        ({"result": "array.tolist()"}, "wrong-result", ("list",)),
        ({"result": "1 / 0"}, "engine-failed", ("run 'double'", "ZeroDivisionError")),
        ({"compile": "raise MemoryError"}, "engine-failed", ("prepare 'double'", "MemoryError")),
        ({"compile": "return None"}, "engine-failed", ("run 'double'", "AttributeError")),
        ({"compile": "wanted = ()"}, "wrong-result", ("nothing",)),
    ],
)
def test_an_engine_that_lies_about_a_layer_is_named_with_it(tmp_path, inference, parts, code, words):
    with pytest.raises(DiagnosticError) as caught:
        run(plugin(tmp_path, **parts), inference)
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.layer) == (code, "double")
    for word in ("Made", *words):
        assert word in finding.message
    assert "another engine" in (finding.remedy or "")


def test_times_of_layers_that_did_not_run_are_refused(tmp_path, inference):
    part, feeds = Part(("double",), (Source("image"),)), {Source("image"): pixels(6, 8)}
    options = RunOptions(engine="made", threads=1)
    timer = plugin(tmp_path).step_timer(inference, Weights(), options, part, [Source("double")], feeds)
    assert len(timer.whole(2, 1, lambda: None)) == 2
    with pytest.raises(DiagnosticError, match="no such layer"):
        timer.layers(2, 1, lambda: None)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({"device": "cuda:1"}, "device-unavailable", "PyTorch on CUDA"),
        ({"precision": "fp16"}, "precision-unavailable", "PyTorch on CUDA"),
        ({"layout": "nhwc"}, "layout-unavailable", "nchw"),
    ],
)
def test_what_an_engine_does_not_offer_is_refused_with_who_does(tmp_path, inference, options, code, words):
    with pytest.raises(DiagnosticError) as caught:
        run(plugin(tmp_path), inference, **options)
    (finding,) = caught.value.diagnostics
    assert finding.code == code
    assert words in (finding.remedy or "")


@pytest.mark.parametrize(
    ("layers", "named"), [((), "run: "), (("a",), "run 'a': "), (("a", "b", "c"), "run 'a' ... 'c': ")]
)
def test_an_engine_that_fails_names_the_ends_of_its_part(layers, named):
    def fail() -> None:
        raise RuntimeError("out of luck")

    with pytest.raises(DiagnosticError) as caught:
        guarded(default_engines().get("onnxruntime"), "run", layers, fail)
    (found,) = caught.value.diagnostics
    assert found.code == "engine-failed"
    assert f"could not {named}" in found.message
    assert "out of luck" in found.message


def test_an_engine_that_fails_because_it_was_interrupted_did_not_fail():
    asked = Interrupt()

    def fail() -> None:
        asked.ask()
        raise RuntimeError("ended in the middle")

    with interruptible(asked), pytest.raises(InterruptedRunError):
        guarded(default_engines().get("onnxruntime"), "run", ("a",), fail)


def test_a_module_without_an_engine_is_refused() -> None:
    registry = EngineRegistry()
    for loaded in (ModuleType("empty"), object()):
        with pytest.raises(TypeError, match="is not an EngineDescriptor and has none"):
            registry.take(loaded)
    assert not list(registry)
