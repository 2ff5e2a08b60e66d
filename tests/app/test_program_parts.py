"""Parts that commands and the window share: opened networks, variants, names of computations, imports, and how the program starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

import samples
from app import computations, import_process, main, opened_network, process, show_program, training_folders, variant
from app.computations import Compared, computation_titles, variant_name
from app.import_process import (
    DocumentWritten,
    Failed,
    Finished,
    ImportRequest,
    InputShape,
    Progress,
    Ready,
    WeightsWritten,
    import_in_process,
    parse_input,
    perform,
    read_event,
    require_consent,
    stopped,
    too_slow,
)
from app.opened_network import LayerRow, load_weights_for, open_network, weights_location
from app.variant import OpenedVariant, open_variant
from designer.files.document import save_document
from designer.files.json_text import encode
from designer.files.settings import Settings, save_settings, settings_path
from designer.files.variants import Variant
from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.importers.report import ImportReport
from designer.operators.registry import default_registry
from designer.precision.variants import RunnableVariant
from designer.runtime.api import RunOptions


def refusal(call: Callable[..., object], *arguments: Any, **more: Any) -> Diagnostic:
    with pytest.raises(DiagnosticError) as failed:
        call(*arguments, **more)
    return failed.value.diagnostics[0]


# --- opened networks -----------------------------------------------------------------------------------------------


def written(path: Path, *layers: Layer) -> Path:
    save_document(Graph(layers, name="net"), path)
    return path


IMAGE = Layer("image", "input", params={"dims": "8x4x3"})


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Two convolutions of three images, of which one is compared with a target."""
    one = Layer("one", "convolution", inputs=(Source("image"),), params={"features": "2", "kernel": "1x1"})
    two = Layer("two", "convolution", inputs=(Source("one"),), params={"features": "3", "kernel": "1x1"})
    target = Layer("target", "input", params={"dims": "8x4x3"})
    loss = Layer("loss", "l1_loss", inputs=(Source("two"), Source("target")))
    return written(
        tmp_path / "net.xml", IMAGE, one, two, Layer("result", "output", inputs=(Source("two"),)), target, loss
    )


def test_rows_of_an_opened_network(net: Path) -> None:
    found = open_network(net)
    assert {row.layer: (row.type, row.parameters, row.training) for row in found.rows()} == {
        "image": ("input", 0, False), "one": ("convolution", 8, False), "two": ("convolution", 9, False),
        "result": ("output", 0, False), "target": ("input", 0, True), "loss": ("l1_loss", 0, True),
    }  # fmt: skip
    shapes = {row.layer: row.shape for row in found.rows()}
    assert (shapes["one"], shapes["two"]) == ("N x 2 x 4 x 8", "N x 3 x 4 x 8")
    assert (found.parameters, found.has_errors, found.path) == (17, False, net)
    said = found.as_dict()
    assert (said["name"], said["parameters"], said["diagnostics"]) == (
        "net",
        17,
        [d.as_dict() for d in found.diagnostics],
    )
    assert said["layers"][0] == {
        "layer": "image",
        "type": "input",
        "shape": shapes["image"],
        "parameters": 0,
        "training": False,
    }  # type: ignore[index]
    order = [row.layer for row in found.rows()]
    assert order.index("image") < order.index("one") < order.index("two") < order.index("result")


def test_layers_without_a_shape_name_the_reason(tmp_path: Path) -> None:
    layers = (
        IMAGE,
        Layer("wrong", "convolution", inputs=(Source("image"),), params={"features": "none"}),
        Layer("after", "unary", inputs=(Source("wrong"),)),
        Layer("a", "unary", inputs=(Source("b"),)),
        Layer("b", "unary", inputs=(Source("a"),)),
        Layer("result", "output", inputs=(Source("after"),)),
    )
    path = written(tmp_path / "n.xml", *layers)
    found = open_network(path, strict=False)
    assert found.has_errors
    rows = {row.layer: row for row in found.rows()}
    assert set(rows) == {layer.name for layer in layers}  # those of a cycle too
    assert rows["wrong"] == LayerRow("wrong", "convolution", "unknown", 0)
    assert rows["after"].shape == "unknown because of wrong"
    with pytest.raises(DiagnosticError) as failed:
        open_network(path)
    assert all(finding.severity is Severity.ERROR for finding in failed.value.diagnostics)
    assert {finding.layer for finding in failed.value.diagnostics} >= {"wrong"}
    assert all(
        finding.line for finding in failed.value.diagnostics if finding.layer == "wrong"
    )  # its place in the file


def test_problems_of_plugins_and_documents_are_said_without_ending(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = default_registry()
    warning = Diagnostic("plugin", "a plugin is broken", Severity.WARNING)
    monkeypatch.setattr(opened_network, "default_registry", lambda: registry)
    monkeypatch.setattr(registry, "diagnostics", [warning])
    assert warning in open_network(net).diagnostics
    error = replace(warning, severity=Severity.ERROR)
    monkeypatch.setattr(registry, "diagnostics", [error])
    assert refusal(open_network, net) == error


def save_weights(folder: Path, **arrays: Any) -> Path:
    folder.mkdir(exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.asarray(array, np.float32))
    return folder


FULL = {
    "one_kernel": np.full((2, 3, 1, 1), 1.0), "one_bias": np.zeros(2), "two_kernel": np.full((3, 2, 1, 1), 2.0), "two_bias": np.ones(3)
}  # fmt: skip


def test_weights_are_those_that_are_given_or_of_the_settings(net: Path, tmp_path: Path) -> None:
    found = open_network(net)
    full = save_weights(tmp_path / "full", **FULL, other=np.zeros(5))
    part = save_weights(
        tmp_path / "part",
        one_kernel=FULL["one_kernel"],
        two_kernel=np.zeros((9, 9, 1, 1)),
        a=np.zeros(1),
        b=np.zeros(2),
    )
    assert weights_location(net, None) is None
    assert weights_location(net, part) == part
    message = refusal(load_weights_for, found, None, None).message
    assert message == "4 of 4 weights are missing or have the wrong shape"
    with pytest.raises(DiagnosticError) as failed:
        load_weights_for(found, part, None)
    *each, summary = failed.value.diagnostics
    assert (
        summary.message == "3 of 4 weights are missing or have the wrong shape; 2 others are not used by this network"
    )
    assert (summary.code, summary.file) == ("weights-missing", str(part))
    assert summary.remedy == "give --weights with a folder that contains them, or --random-weights SEED to fill them"
    assert len(each) == 3
    drawn = load_weights_for(found, part, 0)
    assert "seed 0" in drawn.note
    assert drawn.tensors[WeightKey("one", "kernel")].tolist() == FULL["one_kernel"].tolist()
    assert load_weights_for(found, full, 7).note == ""
    save_settings(Settings(weights=str(full)), settings_path(net))
    assert weights_location(net, None) == full
    assert weights_location(net, part) == part
    assert load_weights_for(found, None, None).tensors[WeightKey("two", "bias")].tolist() == [1, 1, 1]
    save_settings(Settings(weights=str(tmp_path / "gone")), settings_path(net))
    assert weights_location(net, None) is None
    assert weights_location(net, tmp_path / "gone") == tmp_path / "gone"  # what is given must exist
    assert weights_location(tmp_path / "other.xml", None) is None


def test_findings_on_many_weights_are_cut(tmp_path: Path) -> None:
    layers = [IMAGE]
    for number in range(30):
        layers.append(
            Layer(
                f"c{number}",
                "convolution",
                inputs=(Source(layers[-1].name),),
                params={"features": "3", "apply_bias": "false"},
            )
        )
    found = open_network(written(tmp_path / "n.xml", *layers, Layer("out", "output", inputs=(Source("c29"),))))
    with pytest.raises(DiagnosticError) as failed:
        load_weights_for(found, save_weights(tmp_path / "w", c0_kernel=np.zeros((1, 1, 1, 1))), None)
    assert len(failed.value.diagnostics) == opened_network.MAX_SHOWN + 1
    assert failed.value.diagnostics[-1].message.startswith("30 of 30 weights")


# --- variants ------------------------------------------------------------------------------------------------------


@pytest.fixture
def ready(net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Variants in the settings of a network, and what they are run with."""
    small = Variant("small", "fp16", passes=("fold_constants",), weights=str(save_weights(tmp_path / "small", **FULL)))
    plain = Variant("plain", "fp16")
    save_settings(
        Settings(variants=(small, plain), weights=str(save_weights(tmp_path / "own", **FULL))), settings_path(net)
    )
    calls: list[Any] = []
    made = Graph([], name="after passes")

    def runnable(*each: Any) -> RunnableVariant:
        calls.append(each)
        return RunnableVariant(made, Weights(note="pruned"), RunOptions("emulated"), frozenset("x"))

    monkeypatch.setattr(variant, "runnable_variant", runnable)
    return calls


def test_a_variant_is_opened_with_its_weights(ready: list[Any], net: Path, tmp_path: Path) -> None:
    found, base = open_network(net), RunOptions("onnxruntime", threads=3)
    opened = open_variant(found, "small", None, None, base)
    ((chosen, graph, registry, weights, options),) = ready
    assert (chosen.name, chosen.passes, graph, registry, options) == (
        "small",
        ("fold_constants",),
        found.graph,
        found.registry,
        base,
    )
    assert weights.title == load_weights_for(found, tmp_path / "small", None).title
    assert (opened.network.graph.name, opened.network.path, opened.weights.note) == ("after passes", net, "pruned")
    assert opened.network.inference.graph is opened.network.graph
    assert (opened.options, opened.variant) == (RunOptions("emulated"), chosen)
    ready.clear()
    opened = open_variant(found, "small", tmp_path / "own", None, base, passes=False)
    assert (ready[0][0].passes, ready[0][3].title) == ((), load_weights_for(found, tmp_path / "own", None).title)
    assert opened.variant == chosen  # with its passes, which identify its results
    ready.clear()
    open_variant(found, "plain", None, None, base)
    assert ready[0][3].title == load_weights_for(found, None, None).title
    (tmp_path / "small" / "one_bias.npy").unlink()
    ready.clear()
    open_variant(found, "small", None, 5, base)
    assert "seed 5" in ready[0][3].note
    ready.clear()
    opened = open_variant(found, "", tmp_path / "small", 6, replace(base, precision="fp16"))
    assert (ready, opened.network, opened.options, opened.variant) == ([], found, replace(base, precision="fp16"), None)
    assert "seed 6" in opened.weights.note
    for precision in ("fp16", "bf16"):
        wrong = refusal(open_variant, found, "small", None, None, RunOptions(precision=precision))
        assert wrong.message == f"--variant small has a precision of its own, but --precision {precision} is given too"
    assert refusal(open_variant, found, "absent", None, None, base).code
    settings_path(net).unlink()
    assert refusal(open_variant, found, "small", None, None, base).code


def test_a_session_of_a_variant_has_what_was_added_to_its_options(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, calls = open_network(net), []
    monkeypatch.setattr(variant, "variant_session", lambda *each: calls.append(each) or "a session")
    chosen, weights = Variant("v", "int8"), Weights(note="w")
    opened = OpenedVariant(found, weights, RunOptions("torch"), chosen)
    added = RunOptions("torch", agreed=("a" * 64,))
    assert opened.session(added) == "a session"  # type: ignore[comparison-overlap]
    assert calls == [(RunnableVariant(found.graph, weights, added), found.registry, chosen, added)]


@pytest.mark.parametrize("emulated", [True, False])
@pytest.mark.parametrize("chosen", [Variant("half", "fp16"), None])
def test_the_note_of_a_variant(
    net: Path, monkeypatch: pytest.MonkeyPatch, emulated: bool, chosen: Variant | None
) -> None:
    monkeypatch.setattr(variant, "is_emulated", lambda options: emulated)
    note = OpenedVariant(open_network(net), Weights(), RunOptions(), chosen).note
    said = "half is emulated in FP32: its results are those of its precision, its times are not"
    assert note == (said if emulated and chosen is not None else "")


# --- computations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("mine", False), ("fp16", True), ("int8", True), ("float16", True), ("torch", True), ("onnxruntime", True), ("a.onnx", True),
        ("A.ONNX", True), ("net.xml", True), ("net.txt", False), ("variant:a", True), ("variant", False), ("FP16", False),
    ],
)  # fmt: skip
def test_a_variant_is_called_by_its_name_unless_that_means_something_else(name: str, taken: bool) -> None:
    assert variant_name(name) == (f"variant:{name}" if taken else name)
    titles = computation_titles([Variant(name)])
    assert titles[variant_name(name)] == f"{name} (variant)"


def test_titles_of_computations(monkeypatch: pytest.MonkeyPatch) -> None:
    engines = [
        SimpleNamespace(name="a", title="Engine A", formats=(), available=lambda: None),
        SimpleNamespace(name="b", title="Engine B", formats=("int8",), available=lambda: None),
        SimpleNamespace(name="c", title="Engine C", formats=(), available=lambda: "not installed"),
    ]
    monkeypatch.setattr(computations, "default_engines", lambda: _Engines(engines))
    found = computation_titles([Variant("mine"), Variant("a")])
    others = {name: title for name, title in found.items() if name not in computations.VARIANT_PRECISIONS}
    integers = {
        name: name.upper()
        for name, each in computations.FORMATS.items()
        if each.is_integer and name not in computations.VARIANT_PRECISIONS
    }
    assert others == {**integers, "a": "Engine A", "mine": "mine (variant)", "variant:a": "a (variant)"}
    assert [*found][: len(computations.VARIANT_PRECISIONS)] == [*computations.VARIANT_PRECISIONS]
    assert all(found[name] == name.upper() for name in computations.VARIANT_PRECISIONS)


class _Engines(list):  # type: ignore[type-arg]
    @property
    def engines(self) -> dict[str, Any]:
        return {each.name: each for each in self}


@pytest.fixture
def compared(net: Path, tmp_path: Path) -> Compared:
    found = open_network(net)
    weights = load_weights_for(found, save_weights(tmp_path / "w", **FULL), None)
    fed: list[Any] = []
    variants = (Variant("mine", "fp16"), Variant("torch", "bf16"), Variant("net.xml", "int8"))
    made = Compared(
        found.graph,
        found.registry,
        weights,
        RunOptions("onnxruntime", threads=3),
        fed.append,
        variants,
        tmp_path / "w2",
    )
    object.__setattr__(made, "fed", fed)
    return made


def test_what_a_name_of_a_computation_means(
    compared: Compared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def made(where: Compared, chosen: Variant) -> Any:
        seen.append((where, chosen))
        return "a computation"

    monkeypatch.setattr(computations, "_computation", made)
    monkeypatch.setattr(computations, "_file", lambda *each: seen.append(each) or "a file")
    base: Any = object()

    def meaning(name: str) -> Any:
        seen.clear()
        assert computations._named(compared, base, name) in ("a computation", "a file")
        return seen[0]

    for name, chosen in (
        ("mine", compared.variants[0]), ("variant:torch", compared.variants[1]), ("variant:net.xml", compared.variants[2]),
        ("torch", Variant("torch", engine="torch")), ("fp16", Variant("fp16", precision="fp16")),
        ("int4", Variant("int4", formats=dict.fromkeys(("image", "one", "two", "result"), "int4"))),
    ):  # fmt: skip
        where, found = meaning(name)
        assert where is compared
        assert found == chosen
    assert meaning("x.ONNX") == (compared, base, Path("x.ONNX"))
    other = Graph([IMAGE, Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "3", "kernel": "1x1"}),
                   Layer("result", "output", inputs=(Source("conv"),))], name="other")  # fmt: skip
    save_document(other, tmp_path / "other.xml")
    save_weights(tmp_path / "w2", conv_kernel=np.zeros((3, 3, 1, 1)), conv_bias=np.zeros(3))
    where, found = meaning(str(tmp_path / "other.xml"))
    assert (where.graph.name, set(where.weights.tensors)) == (
        "other",
        {WeightKey("conv", "kernel"), WeightKey("conv", "bias")},
    )
    assert (where.options, where.feed, found) == (compared.options, compared.feed, Variant("fp32", precision="fp32"))
    wrong = refusal(computations._named, compared, base, "FP99")
    assert wrong.message == "'FP99' is not a precision, an engine or a variant"
    assert wrong.remedy.startswith("choose one of fp32, ")
    assert "mine, variant:torch, variant:net.xml, an .onnx file or a document" in wrong.remedy


def test_a_computation_is_of_the_deployed_network(compared: Compared, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def runnable(chosen: Variant, graph: Graph, registry: Any, weights: Weights, base: RunOptions) -> RunnableVariant:
        seen.append((chosen, set(graph.layers), weights, base))
        return RunnableVariant(graph, weights, replace(base, threads=2), frozenset({"one"}))

    monkeypatch.setattr(computations, "runnable_variant", runnable)
    monkeypatch.setattr(computations, "EngineComputation", lambda *each: each)
    session, rewritten = computations._computation(compared, computations.PLAIN)  # type: ignore[misc]
    layers = {"image", "one", "two", "result"}
    assert seen == [(computations.PLAIN, layers, compared.weights, RunOptions("torch", threads=3))]
    assert (session.options, set(session.graph.layers), session.weights) == (
        RunOptions("torch", threads=2),
        layers,
        compared.weights,
    )
    assert rewritten == {"one"}
    assert compared.fed == [session]  # type: ignore[attr-defined]


def test_blame_and_tensors_are_of_the_computations_that_were_named(
    compared: Compared, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = SimpleNamespace(operators=lambda both: ("operators of", *both), inputs=lambda: "inputs", outputs="outputs")
    monkeypatch.setattr(
        computations, "_computation", lambda where, chosen: base if chosen is computations.PLAIN else None
    )
    steps: list[Any] = []

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        def step(self, sources: Any, inputs: Any) -> Any:
            steps.append((self.name, sources, inputs))
            return SimpleNamespace(run=lambda given: {Source("conv"): f"{self.name} of {given}"})

    made = {name: Named(name) for name in ("a", "b")}
    monkeypatch.setattr(computations, "_named", lambda where, given, name: made[name] if given is base else None)
    monkeypatch.setattr(computations, "blame", lambda *each: each)
    found: Any = computations.blame_between(compared, "b", "a", print)  # type: ignore[arg-type]
    assert found == (("operators of", made["b"], made["a"]), made["b"], made["a"], "inputs", "outputs", print)
    assert computations.tensors_of(compared, ("b", "a"), Source("conv")) == ["b of inputs", "a of inputs"]
    assert steps == [(name, (Source("conv"),), "inputs") for name in "ba"]


# --- imports -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("1x3x64x64", (1, 3, 64, 64), "float32"),
        (" 7 ", (7,), "float32"),
        ("1x16:int64", (1, 16), "int64"),
        ("2147483647", (2147483647,), "float32"),
    ],
)
def test_an_input_as_text(text: str, shape: tuple[int, ...], dtype: str) -> None:
    assert parse_input(text) == InputShape(shape, dtype)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1x0", "'1x0' is not a shape"), ("", "'' is not a shape"), ("1x", "'1x' is not a shape"), ("1x-2", "'1x-2' is not a shape"),
        ("²", "'²' is not a shape"), ("2147483648", "'2147483648' is not a shape"), ("1x2:half", "'half' is not an element type"),
    ],
)  # fmt: skip
def test_other_inputs_are_refused(text: str, message: str) -> None:
    found = refusal(parse_input, text)
    assert (found.code, found.message) == ("bad-option", message)
    if ":" in text:
        assert found.remedy.startswith("use one of float32, ")


def test_code_of_a_module_needs_consent() -> None:
    require_consent("net:make", True)
    for source in ("net:make", "program.pt2"):
        found = refusal(require_consent, source, False)
        assert (found.code, found.remedy) == ("not-agreed", "review the code, then give --trust")
        assert found.message == f"importing {source} runs its Python code on your machine, with your permissions"


REPORT = ImportReport("net.onnx", nodes=4)
REQUEST = ImportRequest("net:make", "/here", "/here/out.xml")


class Child:
    """A process that prints lines."""

    pid, returncode = 123, -9

    def __init__(self, output: bytes, slow: bool = False) -> None:
        self.output, self.slow, self.given = output, slow, []  # type: ignore[var-annotated]

    def __call__(self, command: list[str], **more: Any) -> Child:
        self.given.append((command, more))
        return self

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def communicate(self, data: bytes, timeout: float) -> tuple[bytes, None]:
        self.given.append((data, timeout))
        if self.slow:
            raise subprocess.TimeoutExpired("x", timeout)
        return self.output, None

    def poll(self) -> int | None:
        return None if self.slow else 0


def events(*each: Any) -> bytes:
    return b"".join(encode(event) + b"\n" for event in each)


def test_an_import_ends_with_its_report(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(import_process, "end_process", ended.append)

    def outcome(child: Child) -> Any:
        monkeypatch.setattr(import_process.subprocess, "Popen", child)
        return import_in_process(REQUEST, 2.5)

    child = Child(
        events(Ready(), Progress(1, 2, "x"), DocumentWritten(REPORT, "torch"), Finished(REPORT))
        + b"words of the code\n"
    )
    assert outcome(child) == REPORT
    (command, more), (data, timeout) = child.given
    assert command == process.module_command("app.import_process")
    assert (more["start_new_session"], timeout, data) == (True, 2.5, encode(REQUEST) + b"\n")
    finding = Diagnostic("x", "it fails")
    assert refusal(lambda: outcome(Child(events(Ready(), Failed((finding,)))))) == finding
    for output in (b"", events(Ready()), events(Ready(), DocumentWritten(REPORT))):
        found = refusal(lambda output=output: outcome(Child(output)))  # type: ignore[misc]
        assert (found.code, found.message) == (
            "import-stopped",
            "the import of net:make was stopped: its process ended with status -9",
        )
    assert ended == []
    found = refusal(lambda: outcome(Child(b"", slow=True)))
    assert found.message == "the import of net:make was stopped: it took longer than 2.5 s"
    assert ended == [123]
    assert (too_slow(600.0), stopped("a", "b").diagnostics[0].message) == (
        "it took longer than 600 s",
        "the import of a was stopped: b",
    )


def test_events_of_an_import_are_read_among_other_lines() -> None:
    for event in (
        Ready(),
        Progress(1, 0, "x"),
        WeightsWritten(True),
        Finished(REPORT),
        Failed((Diagnostic("a", "b"),)),
    ):
        assert read_event(encode(event)) == event
    for line in (b"", b"text", b"{}", b'{"event": "fly"}', b"[" * 5000):
        assert read_event(line) is None


def test_the_process_is_ended_with_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[Any] = []
    monkeypatch.setattr(os, "killpg", lambda *each: killed.append(each))
    import_process.end_process(12)
    assert killed == [(12, signal.SIGKILL)]
    for error in (ProcessLookupError, PermissionError):
        monkeypatch.setattr(os, "killpg", lambda *each, error=error: (_ for _ in ()).throw(error()))
        import_process.end_process(12)


class Imported:
    """An import that lists what is done with it."""

    def __init__(self, log: list[Any], weights: Any, engine: str | None) -> None:
        self.log, self.report = log, REPORT
        self.weights = Weights(weights)
        self.options = SimpleNamespace(engine=engine) if engine is not None else None

    def save(self, *targets: Any) -> None:
        self.log.append(("save", *targets))

    def verified(self, registry: Any) -> Any:
        self.log.append("verified")
        found = Imported(self.log, self.weights.tensors, None)
        found.report = msgspec.structs.replace(REPORT, nodes=5)
        return found


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What an import does, in its order."""
    found: list[Any] = []
    monkeypatch.setattr(
        "designer.files.weights.save_weights", lambda path, tensors: found.append(("weights", path, tensors))
    )
    monkeypatch.setattr(os, "nice", lambda by: found.append(("nice", by)))
    return found


TENSORS: Any = {WeightKey("a", "b"): np.zeros(2)}


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("tensors", [TENSORS, {}])
def test_what_is_written_when(
    log: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verify: bool, tensors: Any
) -> None:
    monkeypatch.setattr(import_process, "_imported", lambda *each: Imported(log, tensors, "torch"))
    final = msgspec.structs.replace(REPORT, nodes=5) if verify else REPORT
    output, weights, report = tmp_path / "a.xml", tmp_path / "new" / "w.pt", tmp_path / "r.json"
    request = ImportRequest("net.onnx", "/", str(output), weights=str(weights), report=str(report), verify=verify)
    perform(request, log.append)
    assert log == [*(["verified"] if verify else []), ("save", output, weights, report), Finished(final)]
    log.clear()
    perform(msgspec.structs.replace(request, weights="", report=""), log.append)
    assert log[-2:] == [("save", output, None, None), Finished(final)]
    log.clear()
    perform(msgspec.structs.replace(request, early=True), log.append)
    assert log == [
        ("save", output, None, None), DocumentWritten(REPORT, "torch"), *([("weights", weights, tensors)] if tensors else []),
        WeightsWritten(bool(tensors)), ("nice", 10), *(["verified"] if verify else []), Finished(final),
    ]  # fmt: skip
    assert weights.parent.is_dir() is bool(tensors)
    monkeypatch.setattr(import_process, "_imported", lambda *each: Imported(log, tensors, None))
    log.clear()
    perform(msgspec.structs.replace(request, early=True, weights=""), log.append)
    assert log[1:3] == [DocumentWritten(REPORT, ""), WeightsWritten(bool(tensors))]


def test_progress_is_not_sent_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([10.0, 10.0, 10.04, 10.06, 10.06, 10.1, 10.2, 10.2])
    monkeypatch.setattr(import_process.time, "monotonic", lambda: next(moments))
    sent: list[Any] = []
    report = import_process._progress(sent.append)
    for done in range(5):
        report(done, 9, f"step {done}")
    assert sent == [Progress(0, 9, "step 0"), Progress(2, 9, "step 2"), Progress(4, 9, "step 4")]


@pytest.mark.parametrize(
    ("source", "error", "reason", "remedy"),
    [
        ("a.onnx", FileNotFoundError("x"), "the file does not exist", "check the name and the folder"),
        ("a.onnx", MemoryError(), "it needs more memory than there is", "close other programs, or use another machine"),
        (
            "a.onnx",
            ValueError("y" * 400),
            f"ValueError: {'y' * 288}",
            "check the file; if it is valid, report this text",
        ),
    ],
)
def test_why_a_file_is_not_imported(source: str, error: Exception, reason: str, remedy: str) -> None:
    found = import_process._failure(ImportRequest(source, "/here", "o.xml"), error).diagnostics[0]
    assert (found.code, found.message, found.file, found.remedy) == (
        "import-failed", f"{source} cannot be imported: {reason}", f"/here/{source}", remedy
    )  # fmt: skip


@pytest.mark.parametrize(
    ("source", "of_code"),
    [
        ("a.onnx", False), ("a.pth", False), ("a.PT", False), ("a.safetensors", False),
        ("a.pt2", True), ("A.PT2", True), ("net:make", True), ("net.py:make", True),
    ],
)  # fmt: skip
def test_errors_of_code_are_those_of_the_user(source: str, of_code: bool) -> None:
    """A saved program is code too: reading it may run what is in it."""
    pytest.importorskip("torch")
    for error in (ValueError("by the code"), MemoryError(), FileNotFoundError("x")):
        found = import_process._failure(ImportRequest(source, "/here", "o.xml"), error).diagnostics[0]
        assert (found.code, found.file) == (("torch-module", None) if of_code else ("import-failed", f"/here/{source}"))
        assert found.message.startswith(f"{source} failed: " if of_code else f"{source} cannot be imported: ")
        assert "by the code" in found.message or not isinstance(error, ValueError)


def test_a_module_is_loaded_from_its_folder_with_its_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    log: list[Any] = []
    loading, importing = "designer.importers.pytorch.loading", "designer.importers.pytorch.importing"
    monkeypatch.setattr(f"{loading}.load_module", lambda *each: log.append(("load", *each)) or "module")
    monkeypatch.setattr(f"{loading}.load_state", lambda *each: log.append(("state", *each)))
    monkeypatch.setattr(f"{importing}.import_module", lambda *each, **more: log.append(("import", *each, more)))
    monkeypatch.setattr(import_process, "_quiet_torch", lambda: log.append("quiet"))
    progress: Any = lambda *each: log.append(each)  # noqa: E731
    inputs = (InputShape((2, 3)), InputShape((4,), "int64"), InputShape((5,), "float16"))
    request = ImportRequest("net:make", str(tmp_path), "o.xml", inputs, state="s.pt")
    import_process._imported(request, "registry", progress)  # type: ignore[arg-type]
    kind, module, examples, registry, more = log.pop()
    assert log == [
        "quiet",
        (0, 0, "running its code"),
        ("load", "net:make", tmp_path),
        ("state", "module", Path("s.pt")),
        (0, 0, "tracing the module"),
    ]
    assert (kind, module, registry, more) == ("import", "module", "registry", {"progress": progress})
    assert [(tuple(each.shape), each.dtype) for each in examples] == [
        ((2, 3), torch.float32),
        ((4,), torch.int64),
        ((5,), torch.float16),
    ]
    assert not examples[1].any()
    assert 0 < float(examples[0].mean()) < 1
    log.clear()
    import_process._imported(msgspec.structs.replace(request, state=""), "registry", progress)  # type: ignore[arg-type]
    assert not [each for each in log if each[0] == "state"]
    log.clear()
    monkeypatch.setattr(import_process.MODELS, "reader", lambda path: lambda *each: log.append(each))
    for name, quiet in (("a.onnx", False), ("a.PT", True)):
        log.clear()
        import_process._imported(ImportRequest(name, str(tmp_path), "o.xml"), "registry", progress)  # type: ignore[arg-type]
        path, registry, options = log[-1]
        assert (path, registry, options.progress, options.sizes) == (tmp_path / name, "registry", progress, {})
        assert (log[0] == "quiet") is quiet


CHILD = """
import os, sys
from app import import_process
def perform(request, send):
    print("words of the code")
    print("error words", file=sys.stderr)
    assert os.read(0, 9) == b"", "it reads nothing of ours"
    if request.source.startswith("exit"):
        sys.exit("its code ends the process")
    if request.source.startswith("refused"):
        raise import_process.DiagnosticError.of("x", "it is refused", remedy="y")
    send(import_process.Finished(import_process.ImportReport(request.source)))
import_process.perform = perform
import_process._limit_memory = lambda: None
import_process.main()
"""


@pytest.mark.parametrize(
    ("source", "last"),
    [
        ("a:b", Finished(ImportReport("a:b"))),
        ("refused.onnx", Failed((Diagnostic("x", "it is refused", remedy="y"),))),
        ("exit.onnx", None),
    ],
)
def test_the_process_of_an_import_reports_whatever_its_code_does(source: str, last: Any) -> None:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", CHILD], bufsize=0, **pipes) as child:
        assert child.stdin is not None
        assert child.stderr is not None
        child.stdin.write(encode(ImportRequest(source, "/", "o.xml")) + b"\n")
        assert child.stderr.readline() == b"words of the code\n"
        with suppress(BrokenPipeError):  # the window keeps the pipe open, and may write to it
            child.stdin.write(b"more\n")
        output, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors
    assert errors.startswith(b"error words\n")
    assert b"words" not in output
    found = [read_event(line) for line in output.splitlines()]
    assert found[0] == Ready()
    if last is not None:
        assert found[1:] == [last]
        return
    (failed,) = found[1:]
    assert isinstance(failed, Failed)
    assert "its code ends the process" in failed.diagnostics[0].message


@pytest.mark.parametrize("pages", [1000, None])
def test_the_memory_of_an_import_is_a_part_of_that_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, pages: int | None
) -> None:
    limits: list[Any] = []
    resource: Any = SimpleNamespace(RLIMIT_DATA="data", setrlimit=lambda *each: limits.append(each))
    monkeypatch.setitem(sys.modules, "resource", resource)

    def sysconf(name: str) -> int:
        if pages is None:
            raise ValueError(name)
        return {"SC_PHYS_PAGES": pages, "SC_PAGE_SIZE": 4096}[name]

    monkeypatch.setattr(os, "sysconf", sysconf)
    import_process._limit_memory()
    assert limits == ([("data", (3276800, 3276800))] if pages else [])


# --- processes and starts ------------------------------------------------------------------------------------------


def test_our_modules_come_first_in_a_process(tmp_path: Path) -> None:
    for name in ("app", "designer"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the other one')")
    command = process.module_command("this", "a b", "c")
    assert command[:2] == [sys.executable, "-P"]
    assert command[2:] == [str(Path(process.__file__).resolve()), "this", "a b", "c"]
    done = subprocess.run(
        process.module_command("app.process"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )  # `app.process` without a module: it begins, and misses its argument
    assert "the other one" not in done.stderr
    assert "IndexError" in done.stderr


@pytest.mark.parametrize(
    "start",
    [
        "sys.argv = ['layerwright', '--help']; from app.main import main; main()",
        "sys.argv = ['process.py', 'app.cli.main', '--help']; runpy.run_path('app/process.py', run_name='__main__')",
    ],
)
def test_a_process_without_a_window_deletes_nothing_at_its_end(start: str) -> None:
    """What was imported is exempt from the last search for garbage, which comes after all that is registered for the exit."""
    first = "import atexit, gc, runpy, sys; atexit.register(lambda: print(gc.get_freeze_count() > 10_000)); "
    command = [sys.executable, "-c", first + start]
    done = subprocess.run(command, cwd=Path(process.__file__).parents[1], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"


@pytest.mark.parametrize(
    ("words", "window"),
    [
        ([], True), (["a.xml"], True), (["a.xml", "b.onnx", "c.pt2"], True), (["a.xml", "check"], False), (["check", "a.xml"], False),
        (["-h"], False), (["--help"], False), (["a.xml", "-x"], False), (["a.txt"], False),
    ],
)  # fmt: skip
def test_which_words_open_the_window(words: list[str], window: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main.opens_window(words) is window
    opened: list[Any] = []
    monkeypatch.setattr(sys, "argv", ["layerwright", *words])
    monkeypatch.setattr(main, "run_window", lambda paths: opened.append(paths) or 7)
    monkeypatch.setattr("app.cli.main.main", lambda: opened.append("commands"))
    if window:
        with pytest.raises(SystemExit) as ended:
            main.main()
        assert ended.value.code == 7
    else:
        main.main()
    assert opened == [[Path(word) for word in words] if window else "commands"]


def test_a_window_needs_a_display(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setitem(sys.modules, "PySide6.QtCore", None)
    for name in names:
        monkeypatch.delenv(name, raising=False)
    assert main.run_window([]) == 1
    assert capsys.readouterr().err.startswith("layerwright: there is no display for a window.")
    for name in names:
        monkeypatch.setenv(name, "x")
        with pytest.raises(ImportError):  # it goes on
            main.run_window([])
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(ImportError):
        main.run_window([])


@pytest.mark.parametrize("fails", [True, False])
def test_an_exported_program_is_shown_and_its_folder_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    folder = tmp_path / "shown"
    folder.mkdir()
    (folder / "a.pt2").touch()
    calls: list[Any] = []

    def run(paths: Any, *, trusted: bool) -> int:
        calls.append((paths, trusted, folder.exists()))
        if fails:
            raise ZeroDivisionError
        return 3

    monkeypatch.setattr(main, "run_window", run)
    if fails:
        with pytest.raises(ZeroDivisionError):
            show_program.main(str(folder / "a.pt2"))
    else:
        assert show_program.main(str(folder / "a.pt2")) == 3
    assert calls == [([folder / "a.pt2"], True, True)]
    assert not folder.exists()
    assert tmp_path.exists()


def test_folders_of_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_data_path", lambda name: tmp_path / name)
    sample, projects = samples.path("denoiser.xml"), tmp_path / "layerwright" / "projects"
    mine = tmp_path / "my net.v2.xml"
    assert training_folders.default_project(sample, "x") == projects / "denoiser_sample"
    assert training_folders.default_sweep(sample) == projects / "denoiser_sample_sweep"
    assert training_folders.default_project(mine, "x") == tmp_path / "my net.v2_pytorch"
    assert training_folders.default_sweep(mine) == tmp_path / "my net.v2_sweep"
    assert training_folders.default_project(None, "untitled") == projects / "untitled"
