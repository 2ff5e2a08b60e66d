"""Registration and checks of engines against tables: what is refused with which remedy, and what a checked engine reports."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from plain_engine import Record, plain_engines
from runtime_networks import layer, pixels

from designer.files.weights import Weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.runtime import engine_registry as module
from designer.runtime.api import AUTO, Part, RunOptions, RunResult
from designer.runtime.checked_engine import CheckedEngine, CheckedTimer, broken, guarded, reason_of
from designer.runtime.engine_api import (
    Device,
    Engine,
    EngineDescriptor,
    PreparedStep,
    Sample,
    SingleStep,
    StepTimer,
    requires,
)
from designer.runtime.engine_registry import EngineRegistry, load_engines
from designer.runtime.finite import NonFinite
from designer.runtime.interrupt import Interrupt, InterruptedRunError, interruptible
from designer.runtime.number_formats import FORMATS

GRAPH = Graph(
    [
        layer("image", "input", dims="6x4x3"),
        layer("other", "input", dims="6x4x3", batch="1"),
        layer("sum", "element_wise", "image,other", operation="add"),
        layer("same", "identity", "sum"),
        layer("result", "output", "same"),
    ]
)


@pytest.fixture
def inference(runtime_registry) -> Inference:
    return Inference(GRAPH, runtime_registry)


def descriptor(name="made", **more) -> EngineDescriptor:
    return EngineDescriptor(
        **{
            "name": name, "title": name.capitalize(), "package": name, "engine": lambda *_: None, "step_timer": lambda *_: None,
            "kernels": {"one": min}, "available": lambda: None, **more,
        }
    )  # fmt: skip


def registry_of(*descriptors) -> EngineRegistry:
    made = EngineRegistry()
    for each in descriptors:
        made.register(each)
    return made


def said(act) -> tuple[str, str, str]:
    with pytest.raises(DiagnosticError) as caught:
        act()
    (found,) = caught.value.diagnostics
    return found.code, found.message, found.remedy


# --- the registry ------------------------------------------------------------------------------------------------


def test_engines_are_registered_once_and_in_order():
    one, other = descriptor("one"), descriptor("other")
    made = registry_of(other, one)
    made.register(one)  # the same again
    assert list(made) == [other, one]
    with pytest.raises(ValueError, match="the engine 'one' is declared twice"):
        made.register(descriptor("one"))
    assert made.get("one") is one
    assert made.title("one") == "One"
    assert made.title("unknown") == "unknown"
    assert said(lambda: made.get("unknown")) == (
        "unknown-engine", "there is no engine 'unknown'", "choose one of other, one, or install the plugin that provides it"
    )  # fmt: skip


def test_modules_and_descriptors_of_entry_points_are_taken():
    loaded = ModuleType("loaded")
    loaded.A, loaded.B, loaded.rest = descriptor("a"), descriptor("b"), 3
    made = EngineRegistry()
    made.take(loaded)
    made.take(descriptor("c"))
    assert [each.name for each in made] == ["a", "b", "c"]
    assert made.register_module(ModuleType("empty")) is False
    assert made.register_module(loaded) is True
    for wrong in (ModuleType("empty"), 3, EngineDescriptor, None):
        with pytest.raises(TypeError, match="is not an EngineDescriptor and has none"):
            made.take(wrong)


def raises(error):
    def act(*_):
        raise error

    return act


def test_an_engine_that_cannot_be_used_says_why(inference):
    here = Diagnostic("engine-unavailable", "it is not installed", remedy="install it")
    gone = Diagnostic("own-code", "it is gone", remedy="bring it back")
    cases = [
        (lambda: None, None),
        (lambda: here, here),
        (lambda: gone, gone),
        (raises(RuntimeError("no\nluck")), ("broken-plugin", "the engine Made is broken: available() raised RuntimeError: no")),
        (lambda: False, ("broken-plugin", "the engine Made is broken: available() returned False, not None or a Diagnostic")),
        (lambda: "", ("broken-plugin", "the engine Made is broken: available() returned '', not None or a Diagnostic")),
        (lambda: "no", ("broken-plugin", "the engine Made is broken: available() returned 'no', not None or a Diagnostic")),
    ]  # fmt: skip
    for available, expected in cases:
        made = registry_of(descriptor(available=available))
        found = made.problem(made.get("made"))
        if isinstance(expected, tuple):
            assert (found.code, found.message) == expected
            assert found.remedy == "fix or remove the plugin that provides it"
        else:
            assert found is expected
        if found is not None:
            assert said(lambda m=made: m.make(inference, Weights(), RunOptions("made"))) == (
                found.code, f"the engine Made cannot be used: {found.message}", found.remedy
            )  # fmt: skip
    assert broken(descriptor("other"), "why").message == "the engine Other is broken: why"


def test_devices_are_counted_in_their_order():
    devices = (
        Device("cpu"),
        Device("cuda", ("fp16",), lambda: (2, "")),
        Device("rocm", ("fp16",), lambda: (0, "no driver")),
        Device("vulkan", ("fp16",), raises(OSError("lost"))),
    )
    made = descriptor(devices=devices)
    found = registry_of(made).devices(made)
    assert [(device.kind, count, reason) for device, count, reason in found] == [
        ("cpu", 1, ""), ("cuda", 2, ""), ("rocm", 0, "no driver"),
        ("vulkan", 0, "count() of the device 'vulkan' raised OSError: lost"),
    ]  # fmt: skip
    assert [made.device(name) and made.device(name).kind for name in ("cpu", "cuda", "cuda:1", "cud", "", "gpu")] == [
        "cpu", "cuda", "cuda", None, None, None
    ]  # fmt: skip


ENGINES = (
    descriptor("made", devices=(Device("cpu", ("fp32", "bf16")), Device("cuda", ("fp16", "fp32"))), layouts=("nhwc",), formats=("int8",)),
    descriptor("second", devices=(Device("vulkan", ("fp16",)), Device("rocm", ("fp16",)))),
    descriptor("third", devices=(Device("cpu", ("fp32", "fp16")),), formats=("int4", "int8")),
    descriptor("fourth"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"device": "vulkan:1"}, ("device-unavailable", "Made runs on cpu, cuda, not on 'vulkan:1'", "choose cpu, cuda, or Second on VULKAN")),
        ({"device": "tpu"}, ("device-unavailable", "Made runs on cpu, cuda, not on 'tpu'", "choose cpu, cuda")),
        ({"precision": "fp16"}, ("precision-unavailable", "Made on cpu computes in fp32, bf16 and not in fp16",
                                 "choose fp32, or Made on CUDA, Second on VULKAN or ROCM, Third on CPU")),
        ({"device": "cuda:1", "precision": "bf16"}, ("precision-unavailable", "Made on cuda computes in fp16, fp32 and not in bf16",
                                                     "choose fp16, or Made on CPU")),
        ({"layout": "nchw"}, ("layout-unavailable", "Made supports the layout nhwc and not nchw", "choose nhwc")),
        ({"formats": (("a", "int8"), ("b", "int4"), ("c", "int2"))}, ("format-unavailable", "Made cannot compute single layers in int4", "choose int8")),
        ({"engine": "fourth", "layout": "nchw", "formats": (("a", "int8"),)},
         ("format-unavailable", "Fourth cannot compute single layers in int8", "choose Made, Third")),
        ({"precision": "fp31"}, ("unknown-precision", "'fp31' is not a precision", None)),
        ({"threads": -2}, ("bad-threads", "-2 is not a valid number of threads", "use 0 for all cores")),
    ],
)  # fmt: skip
def test_options_that_an_engine_does_not_offer(inference, options, expected):
    made = registry_of(*ENGINES)
    base = RunOptions("made", layout="nhwc")
    code, message, remedy = said(lambda: made.make(inference, Weights(), replace(base, **options)))
    assert (code, message) == expected[:2]
    assert expected[2] is None or remedy == expected[2]
    engine = made.make(inference, Weights(), replace(base, device="cuda:3", precision="fp16", formats=(("a", "int8"),)))
    assert (engine.name, engine.descriptor) == ("made", ENGINES[0])


def test_engines_for_a_device_or_a_precision():
    made = registry_of(*ENGINES)
    assert made.offering(device="cpu") == "Made on CPU, Third on CPU, Fourth on CPU"
    assert made.offering(precision="bf16") == "Made on CPU"
    assert made.offering(device="cuda", precision="fp16") == "Made on CUDA"
    assert made.offering(device="cpu", precision="fp16") == "Third on CPU"
    assert made.offering(device="tpu") == ""
    assert made.offering() == "Made on CPU or CUDA, Second on VULKAN or ROCM, Third on CPU, Fourth on CPU"


def test_an_engine_is_made_with_everything_it_needs(inference):
    calls = []
    kind = descriptor(
        engine=lambda *args: calls.append(args) or "the engine", step_timer=lambda *args: calls.append(args) or "timer"
    )
    made, weights, options = registry_of(kind), Weights(), RunOptions("made", threads=3)
    engine = made.make(inference, weights, options)
    assert (engine.engine, calls) == ("the engine", [(inference, weights, options)])
    part, feeds = Part(("sum",), (Source("image"), Source("other"))), {Source("image"): pixels(4, 6)}
    wanted = [Source("sum"), Source("same")]
    assert isinstance(made.step_timer(inference, weights, options, part, wanted, feeds), CheckedTimer)
    assert calls[1:] == [(inference, weights, options), ("the engine", part, wanted, feeds)]
    failing = registry_of(descriptor(engine=raises(ValueError("no"))))
    assert said(lambda: failing.make(inference, weights, options)) == (
        "engine-failed", "the engine Made could not start: ValueError: no", "choose another engine, or fix this one"
    )  # fmt: skip
    failing = registry_of(descriptor(step_timer=raises(ValueError("no"))))
    assert said(lambda: failing.step_timer(inference, weights, options, part, wanted, feeds))[1] == (
        "the engine Made could not profile 'sum': ValueError: no"
    )


def test_library_entry_points_and_files_are_loaded(tmp_path, monkeypatch):
    library, loaded = ModuleType("library"), ModuleType("loaded")
    library.E, loaded.E = descriptor("library"), descriptor("file")
    asked = []
    monkeypatch.setattr(module, "walk", lambda package: asked.append(package) or [ModuleType("empty"), library])
    monkeypatch.setattr(
        module, "entry_points",
        lambda group: asked.append(group) or [("package:it", lambda: descriptor("point")), ("package:bad", raises(ImportError("gone")))],
    )  # fmt: skip
    monkeypatch.setattr(
        module,
        "plugin_files",
        lambda folders: [(str(f), lambda: loaded) for f in folders] + [("bad.py", raises(OSError("no")))],
    )
    found = load_engines([tmp_path])
    assert [each.name for each in found] == ["library", "point", "file"]
    assert asked == ["designer.runtime.engines", "layerwright.engines"]
    assert [d.message for d in found.diagnostics] == [
        "the plugin package:bad could not be loaded: ImportError: gone", "the plugin bad.py could not be loaded: OSError: no"
    ]  # fmt: skip
    asked.clear()
    assert [each.name for each in load_engines([tmp_path], installed=False)] == ["library", "file"]
    assert asked == ["designer.runtime.engines"]
    monkeypatch.setattr(module, "plugin_folder", lambda: tmp_path / "mine")
    seen = []
    monkeypatch.setattr(module, "load_engines", lambda folders: seen.append(folders) or found)
    assert module.default_engines.__wrapped__() is found
    assert seen == [[tmp_path / "mine"]]


# --- checks of results -------------------------------------------------------------------------------------------


class Made:
    """A compiled part with given results."""

    def __init__(self, results):
        self.results = results

    def run(self, feeds):
        return self.results(feeds) if callable(self.results) else self.results


def checked(inference, results) -> CheckedEngine:
    return CheckedEngine(descriptor(), SimpleNamespace(compile=lambda part, wanted: Made(results)), inference)


PART = Part(("sum", "same"), (Source("image"), Source("other")))
FEEDS = {Source("image"): pixels(4, 6, batch=3), Source("other"): pixels(4, 6)}
GOOD = np.zeros((3, 3, 4, 6), np.float32)
SAME = Source("same")


@pytest.mark.parametrize(
    ("results", "wrong"),
    [
        ({Source("sum"): GOOD, SAME: GOOD}, ""),
        ({Source("sum"): GOOD, SAME: GOOD.astype(np.float64)}, ""),
        ({Source("sum"): GOOD, SAME: GOOD.astype(np.float16)}, ""),
        ({Source("sum"): GOOD}, "nothing"),
        ([GOOD, GOOD], "nothing"),
        (None, "nothing"),
        ({Source("sum"): GOOD, SAME: GOOD.tolist()}, "a list"),
        ({Source("sum"): GOOD, SAME: GOOD.astype(np.int64)}, "3 x 3 x 4 x 6 of int64"),
        ({Source("sum"): GOOD, SAME: GOOD[:1]}, "1 x 3 x 4 x 6 of float32"),
        ({Source("sum"): GOOD, SAME: GOOD[:, :, :2]}, "3 x 3 x 2 x 6 of float32"),
        ({Source("sum"): GOOD, SAME: GOOD[0, 0, 0, 0]}, "a float32"),
        ({Source("sum"): GOOD, SAME: np.array(1, np.float32)}, "a scalar of float32"),
    ],
)
def test_results_have_the_inferred_types(inference, results, wrong):
    compiled = checked(inference, results).compile(PART, [Source("sum"), SAME])
    if not wrong:
        assert compiled.run(FEEDS) is results
        return
    with pytest.raises(DiagnosticError) as caught:
        compiled.run(FEEDS)
    (found,) = caught.value.diagnostics
    name = "same" if isinstance(results, dict) else "sum"
    assert (found.code, found.layer, found.remedy) == ("wrong-result", name, "choose another engine, or fix this one")
    assert found.message == f"the engine Made returned {wrong} for '{name}', which is 3 x 3 x 4 x 6 of float32"


def test_the_batch_is_that_of_the_first_feed_with_an_open_one(inference):
    reordered = Part(("sum", "same"), (Source("other"), Source("image")))
    compiled = checked(inference, {SAME: GOOD}).compile(reordered, [SAME])
    assert compiled.run({Source("other"): pixels(4, 6), Source("image"): pixels(4, 6, batch=3)})[SAME] is GOOD


def test_integers_have_their_exact_type(runtime_registry):
    graph = Graph([layer("image", "input", dims="6x4x3"), layer("it", "arg_extreme", "image", axis="1")])
    inference = Inference(graph, runtime_registry)
    part = Part(("it",), (Source("image"),))
    shape = inference.states["it"].outputs[0].concrete(1)
    right = np.zeros(shape, np.int64)
    assert checked(inference, {Source("it"): right}).compile(part, [Source("it")]).run({Source("image"): pixels(4, 6)})
    for dtype in (np.int32, np.float32, bool):
        compiled = checked(inference, {Source("it"): right.astype(dtype)}).compile(part, [Source("it")])
        with pytest.raises(DiagnosticError, match=f"of {np.dtype(dtype).name} for 'it', which is .* of int64"):
            compiled.run({Source("image"): pixels(4, 6)})


def test_errors_of_engines_name_the_ends_of_the_part(inference):
    refused = DiagnosticError.of("own", "refused")
    cases = [
        ((), "", None), (("a",), " 'a'", "a"), (("a", "b"), " 'a' ... 'b'", "a"), (("a", "b", "c"), " 'a' ... 'c'", "a"),
    ]  # fmt: skip
    for layers, span, name in cases:
        with pytest.raises(DiagnosticError) as caught:
            guarded(descriptor(), "run", layers, raises(RuntimeError("first\nsecond")))
        (found,) = caught.value.diagnostics
        assert (found.code, found.message, found.layer, found.remedy) == (
            "engine-failed", f"the engine Made could not run{span}: RuntimeError: first", name,
            "choose another engine, or fix this one",
        )  # fmt: skip
    with pytest.raises(DiagnosticError) as caught:
        guarded(descriptor(), "run", ("a",), raises(refused))
    assert caught.value is refused
    with pytest.raises(InterruptedRunError):
        guarded(descriptor(), "run", ("a",), raises(InterruptedRunError()))
    asked = Interrupt()
    asked.ask()
    with interruptible(asked), pytest.raises(InterruptedRunError):
        guarded(descriptor(), "run", ("a",), raises(RuntimeError("because of it")))
    assert guarded(descriptor(), "run", ("a",), lambda: 7) == 7
    with pytest.raises(KeyboardInterrupt):
        guarded(descriptor(), "run", ("a",), raises(KeyboardInterrupt()))
    for verb, engine, act in (
        ("prepare", SimpleNamespace(compile=raises(OSError("x"))), lambda c: c.compile(PART, [SAME])),
        ("run", SimpleNamespace(compile=lambda *_: SimpleNamespace(run=raises(OSError("x")))), lambda c: c.compile(PART, [SAME]).run(FEEDS)),
    ):  # fmt: skip
        made = CheckedEngine(descriptor(), engine, inference)
        assert said(lambda a=act, m=made: a(m))[1] == f"the engine Made could not {verb} 'sum' ... 'same': OSError: x"
    assert [reason_of(e) for e in (ValueError(), ValueError("  a\n b"), KeyError("k"))] == [
        "ValueError", "ValueError: a", "KeyError: 'k'"
    ]  # fmt: skip


def test_a_part_for_any_weights_stays_one(inference, monkeypatch):
    record = Record()
    engines = plain_engines(record)
    made = engines.make(inference, Weights(), RunOptions("plain", threads=1, weights_as_inputs=True))
    compiled = made.compile(PART, [SAME])
    other = Weights(note="other")
    again = compiled.with_weights(other)
    assert type(again) is type(compiled)
    assert again._compiled.weights is other
    assert compiled._compiled.weights is not other
    np.testing.assert_allclose(again.run(FEEDS)[SAME], FEEDS[Source("image")] + FEEDS[Source("other")])
    plain = engines.make(inference, Weights(), RunOptions("plain", threads=1)).compile(PART, [SAME])
    assert not hasattr(plain, "with_weights")


# --- timers ------------------------------------------------------------------------------------------------------


class Timer:
    def __init__(self, samples=(), steps=(), error=None):
        self.samples, self.steps, self.error, self.calls = samples, steps, error, []

    def _do(self, *call):
        self.calls.append(call)
        if self.error is not None:
            raise self.error

    def whole(self, runs, warmup, tick):
        self._do("whole", runs, warmup, tick)
        return [0.5]

    def layers(self, runs, warmup, tick):
        self._do("layers", runs, warmup, tick)
        return list(self.samples)

    def single_steps(self):
        self._do("single_steps")
        return list(self.steps)


def test_a_timer_is_asked_and_its_samples_are_checked():
    samples = [Sample(("sum",), [1.0]), Sample((), [2.0]), Sample(("sum", "same"), [3.0])]
    timer = Timer(samples)
    made, tick = CheckedTimer(descriptor(), timer, PART), object()
    assert made.whole(7, 2, tick) == [0.5]
    assert made.layers(5, 3, tick) == samples
    assert timer.calls == [("whole", 7, 2, tick), ("layers", 5, 3, tick)]
    for strange in ([Sample(("sum", "first")), Sample(("second",))], [Sample(("first",))]):
        found = said(lambda s=strange: CheckedTimer(descriptor(), Timer(s), PART).layers(1, 0, tick))
        assert found == (
            "wrong-result", "the engine Made timed the layer 'first', which is not in the part", "choose another engine, or fix this one"
        )  # fmt: skip
    failing = CheckedTimer(descriptor(), Timer(error=ValueError("no")), PART)
    for act, verb in (
        (lambda: failing.whole(1, 0, tick), "time"),
        (lambda: failing.layers(1, 0, tick), "profile"),
        (failing.single_steps, "take apart"),
    ):
        assert said(act)[1] == f"the engine Made could not {verb} 'sum' ... 'same': ValueError: no"


def test_single_steps_are_prepared_and_run_one_by_one():
    def step(name, prepare):
        return SingleStep((name,), f"kernel {name}", f"key {name}", 8, prepare)

    steps = [
        step("sum", lambda: PreparedStep(lambda: 1.5, lambda: "read sum")),
        step("same", lambda: PreparedStep(raises(OSError("lost")), lambda: "read same")),
        step("more", raises(ValueError("no room"))),
    ]
    found = CheckedTimer(descriptor(), Timer(steps=steps), PART).single_steps()
    assert [(s.layers, s.what, s.key, s.bytes) for s in found] == [(s.layers, s.what, s.key, s.bytes) for s in steps]
    ready = found[0].prepare()
    assert (ready.run(), ready.read()) == (1.5, "read sum")
    second = found[1].prepare()
    assert second.read() == "read same"
    assert said(second.run)[1] == "the engine Made could not run 'same': OSError: lost"
    assert said(found[2].prepare)[1] == "the engine Made could not prepare 'more': ValueError: no room"


def test_the_time_of_a_whole_part_is_that_of_each_run(monkeypatch):
    from designer.runtime import engine_api

    class Counted(StepTimer):
        def layers(self, runs, warmup, tick):
            return []

    clock = iter(float(n) for n in (0, 1, 2, 4, 8, 16, 32, 64))
    compiled, ticks, runs = [], [], []
    engine = SimpleNamespace(
        compile=lambda part, wanted: compiled.append((part, wanted)) or SimpleNamespace(run=runs.append)
    )
    made = Counted(engine, PART, [Source("sum"), SAME], FEEDS)
    monkeypatch.setattr(engine_api, "perf_counter", lambda: next(clock))
    assert made.whole(2, 1, lambda: ticks.append(1)) == [1.0, 4.0]
    assert (compiled, len(ticks), runs) == ([(PART, (Source("sum"), SAME))], 3, [FEEDS] * 3)
    assert made.single_steps() == []


# --- declarations and options ------------------------------------------------------------------------------------


NAME = "the name {!r} of an engine must be lower-case letters, digits and underscores"
CUDA = Device("cuda")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        *(({"name": name}, ValueError, NAME.format(name)) for name in ("Made", "made engine", "made!", "")),
        *(({"title": title}, ValueError, "title of the engine 'made' must be a text") for title in ("", None)),
        *(({"package": package}, ValueError, "package of the engine 'made' must be a text") for package in ("", 3)),
        ({"engine": None}, TypeError, "engine of the engine 'made' must be callable"),
        ({"step_timer": 3}, TypeError, "step_timer of the engine 'made' must be callable"),
        ({"available": True}, TypeError, "available of the engine 'made' must be callable"),
        *(
            (changes, TypeError, "kernels of the engine 'made' must map names to functions")
            for changes in (
                {"kernels": {}},
                {"kernels": {}, "devices": (CUDA, Device())},
                {"kernels": {"one": min, "two": 2}},
                {"kernels": {"one": min, "two": 2}, "devices": (CUDA,)},
            )
        ),
        *(
            ({"devices": devices}, TypeError, "devices of the engine 'made' must be Device(...)")
            for devices in ((), (Device(), "cuda"))
        ),
        *(
            ({"layouts": layouts}, ValueError, "layouts of the engine 'made' must be among nchw, nhwc")
            for layouts in ((), ("nchw", "chwn"))
        ),
        ({"formats": ("int8", "int9")}, ValueError, f"formats of the engine 'made' must be among {', '.join(FORMATS)}"),
    ],
)
def test_wrong_declarations_are_refused(changes, error, message):
    with pytest.raises(error) as refused:
        descriptor(**changes)
    assert str(refused.value) == message


def test_right_declarations():
    made = descriptor(
        "a_1", kernels={}, devices=(Device("cuda", ("fp32", "bf16")),), layouts=("nhwc", "nchw"), formats=("int8",)
    )
    assert (made.stand_in, made.skips_nan, made.formats) == ("", frozenset(), ("int8",))
    assert descriptor().devices == (Device("cpu", ("fp32",)),)
    assert Device().count() == (1, "")
    for precisions in ((), ("fp32", "int8"), ("int8",)):
        with pytest.raises(ValueError, match="precisions of the device 'cpu' must be among"):
            Device("cpu", precisions)
    made = requires("os", "no_such_module_1", "sys", "no_such_module_2", remedy="install it")()
    assert (made.code, made.message, made.remedy) == (
        "engine-unavailable", "no_such_module_1 and no_such_module_2 is not installed", "install it"
    )  # fmt: skip
    assert requires("no_such_module_1", remedy="r")().message == "no_such_module_1 is not installed"
    assert requires("os", remedy="r")() is None
    engine = type("Simple", (Engine,), {"compile": lambda *_: None})("i", "w", "o")
    assert (engine.inference, engine.weights, engine.options) == ("i", "w", "o")


def test_options_and_notes_have_their_defaults():
    assert RunOptions("torch") == RunOptions("torch", "fp32", "nchw", "cpu", 0, (), AUTO, (), False)
    assert AUTO == -1
    hidden = {"b": NonFinite(1, 0, 2), "a": NonFinite(1, 0, 2)}
    text = "'b' computes values that are NaN or infinite: finite results can be wrong"
    for weights, note, found, expected in (
        ("", "", {}, ()), ("w", "", {}, ("w",)), ("", "n", {}, ("n",)), ("w", "n", {}, ("w", "n")), ("w", "n", hidden, ("w", "n", text)),
        ("", "", hidden, (text,)),
    ):  # fmt: skip
        assert RunResult({}, weights_note=weights, note=note, hidden=found).notes() == expected
