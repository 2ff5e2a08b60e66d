"""Any sequence of edits, undone and redone, leaves the graph, its shapes and its file as they should be."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from designer.files.document import parse_document, write_document
from designer.graph import commands, frames, template_commands
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Frame, Layer, Source
from designer.graph.template import Template
from designer.operators.registry import Registry

NAMES = st.sampled_from(["a", "b", "c", "d", "e 1", "ü", "bad/name", "", "x" * 128])
TYPES = st.sampled_from(["input", "convolution", "join", "add", "split", "flatten", "unknown"]).map("tiny_{}".format)
TEXTS = st.sampled_from(["", "1", "2", "7", "x", "true", "8x8x4", "2x2x1", ' <&>"\n\t', "\x00"]) | st.text(max_size=8)
PARAMS = st.dictionaries(st.sampled_from(["features", "kernel", "dims", "valid", "odd"]), TEXTS, max_size=3)
SOURCES = st.builds(Source, NAMES, st.sampled_from(["", "", "", "y0", "y1", "y"]))
INPUTS = st.lists(st.none() | SOURCES, max_size=3).map(tuple)
POSITIONS = st.tuples(st.integers(-999, 999), st.integers(-999, 999))
ACTIVATIONS = st.none() | st.builds(ActivationSpec, st.sampled_from(["tiny_relu", "tiny_half", "swoosh"]), PARAMS)
TEMPLATES = st.sampled_from(["t", "u", "v", "bad.name"])


@st.composite
def template(draw: st.DrawFn) -> Template:
    """A chain from a port to a port, of which parts may be missing or wrong."""
    chain = [Layer("x", "template_input")]
    for number in range(draw(st.integers(0, 2))):
        used = draw(st.none() | TEMPLATES)
        kind = "template" if used is not None else "tiny_convolution"
        params = {"template": used} if used is not None else {"features": draw(st.sampled_from(["2", "5", "odd"]))}
        chain.append(Layer(f"s{number}", kind, inputs=(Source(chain[-1].name),), params=params))
    ends = draw(st.integers(0, 2))
    outputs = [Layer(f"y{n}", "template_output", inputs=(Source(chain[-1].name),)) for n in range(ends)]
    return Template(draw(TEMPLATES), tuple(chain[draw(st.integers(0, 1)) :] + outputs))


class Editing(RuleBasedStateMachine):
    """A person at work. `registry` is set by the test."""

    registry: Registry

    @initialize(with_chain=st.booleans())
    def begin(self, with_chain: bool) -> None:
        layers = [Layer("a", "tiny_input")] if with_chain else []
        layers += [Layer("b", "tiny_convolution", inputs=(Source("a"),))] if with_chain else []
        self.history = History(Graph(layers))
        self.graph = self.history.graph
        self.inference = Inference(self.graph, self.registry)
        self.history.subscribe(lambda change: self.inference.update(change) and None)
        self.states = {self.steps(): self.graph.copy()}

    def steps(self) -> int:
        return self.history.steps

    def do(self, command: Any, *args: Any, **options: Any) -> None:
        """Commit what a command makes of the graph; a refusal must change nothing."""
        before = self.graph.copy()
        try:
            edit = command(self.graph, *args, **options)
        except DiagnosticError:
            assert self.graph == before
            return
        steps = self.steps()
        self.history.commit(edit)
        if self.steps() == steps and edit:  # merged into the step before
            self.states.pop(steps, None)
        self.states[self.steps()] = self.graph.copy()

    @rule(name=NAMES, kind=TYPES, position=POSITIONS, inputs=INPUTS, params=PARAMS, activation=ACTIVATIONS)
    def add(self, name: str, kind: str, position: Any, inputs: Any, params: Any, activation: Any) -> None:
        texts = {k: v for k, v in params.items() if "\x00" not in v and v.isprintable()}
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        known = tuple(s if s is None or (s.layer.strip() and "/" not in s.layer) else None for s in inputs)
        while known and known[-1] is None:
            known = known[:-1]
        spec = None if activation is None else ActivationSpec(activation.type)
        self.do(commands.add_layer, Layer(name, kind, position, known, texts, spec))

    @rule(names=st.lists(NAMES, max_size=3), heal=st.booleans())
    def remove(self, names: list[str], heal: bool) -> None:
        self.do(commands.remove_layers, names, heal=heal)

    @rule(source=SOURCES, consumer=NAMES, index=st.integers(-1, 4))
    def connect(self, source: Source, consumer: str, index: int) -> None:
        self.do(commands.connect, source, consumer, index)

    @rule(consumer=NAMES, index=st.integers(-1, 4), close=st.booleans())
    def disconnect(self, consumer: str, index: int, close: bool) -> None:
        self.do(commands.disconnect, consumer, index, close_gap=close)

    @rule(name=NAMES, consumer=NAMES, index=st.integers(0, 2))
    def insert(self, name: str, consumer: str, index: int) -> None:
        self.do(commands.insert_on_link, Layer(name, "tiny_convolution"), consumer, index)

    @rule(old=NAMES, new=NAMES)
    def rename(self, old: str, new: str) -> None:
        self.do(commands.rename_layer, old, new)

    @rule(positions=st.dictionaries(NAMES, POSITIONS, max_size=3))
    def move(self, positions: Any) -> None:
        self.do(commands.move_layers, {n: p for n, p in positions.items() if n in self.graph})

    @rule(names=st.lists(NAMES, min_size=1, max_size=2), params=PARAMS, merge=st.sampled_from(["", "k"]))
    def configure(self, names: list[str], params: Any, merge: str) -> None:
        self.do(commands.set_params, dict.fromkeys(names, params), merge_key=merge)

    @rule(names=st.lists(NAMES, min_size=1, max_size=2), spec=ACTIVATIONS)
    def activate(self, names: list[str], spec: Any) -> None:
        self.do(commands.set_activation, names, spec)

    @rule(key=st.sampled_from(["name", "notes", "user_version_tag"]), text=TEXTS)
    def describe(self, key: str, text: str) -> None:
        self.do(commands.set_property, key, text)

    @rule(key=st.sampled_from(["f0", "f1"]), title=TEXTS, text=TEXTS, there=st.booleans(), position=POSITIONS)
    def frame(self, key: str, title: str, text: str, there: bool, position: Any) -> None:
        self.do(frames.set_frame, key, Frame(key, title, text, "#123", (*position, 64, 48)) if there else None)

    @rule(names=st.lists(NAMES, min_size=1, max_size=3), keep=st.booleans())
    def paste(self, names: list[str], keep: bool) -> None:
        self.do(commands.paste, [self.graph[n] for n in dict.fromkeys(names) if n in self.graph], keep_links=keep)

    @rule(name=NAMES, template=TEMPLATES, source=SOURCES, shared=st.booleans())
    def use(self, name: str, template: str, source: Source, shared: bool) -> None:
        params = {"template": template, "shared_weights": "true"} if shared else {"template": template}
        inputs = (source,) if source.layer.strip() and "/" not in source.layer else ()
        self.do(commands.add_layer, Layer(name, "template", inputs=inputs, params=params))

    @rule(template=template())
    def define(self, template: Template) -> None:
        self.do(template_commands.set_template, template)

    @rule(name=TEMPLATES, layer=st.sampled_from(["x", "s0", "y0"]), features=TEXTS, remove=st.booleans())
    def edit_inside(self, name: str, layer: str, features: str, remove: bool) -> None:
        if name not in self.graph.templates or layer not in self.graph.inside(name):
            return
        inside = self.graph.inside(name)
        with contextlib.suppress(DiagnosticError):
            edit = commands.remove_layers(inside, [layer], heal=True)
            if not remove:
                edit = commands.set_params(inside, {layer: {"features": features}}, merge_key="k")
            self.do(template_commands.edit_template, name, edit)

    @rule(name=TEMPLATES, port=st.sampled_from(["x", "y0", "y1"]), new=st.sampled_from(["p", "y0", "x"]))
    def rename_inside(self, name: str, port: str, new: str) -> None:
        if name in self.graph.templates:
            with contextlib.suppress(DiagnosticError):
                edit = commands.rename_layer(self.graph.inside(name), port, new)
                self.do(template_commands.edit_template, name, edit)

    @rule(name=TEMPLATES, new=TEMPLATES, gone=st.booleans())
    def rename_or_remove_template(self, name: str, new: str, gone: bool) -> None:
        if gone:
            self.do(template_commands.remove_template, name)
        else:
            self.do(template_commands.rename_template, name, new)

    @rule(names=st.lists(NAMES, min_size=1, max_size=3), name=TEMPLATES)
    def make_template(self, names: list[str], name: str) -> None:
        self.do(template_commands.make_template, names, name)

    @precondition(lambda self: any(layer.type == "template" for layer in self.graph))
    @rule(data=st.data())
    def dissolve(self, data: st.DataObject) -> None:
        instances = sorted(layer.name for layer in self.graph if layer.type == "template")
        self.do(template_commands.dissolve, data.draw(st.sampled_from(instances)))

    @precondition(lambda self: len(self.graph) > 1)
    @rule(data=st.data())
    def group(self, data: st.DataObject) -> None:
        """A gesture of two edits; it may fail between them and then leaves nothing behind."""
        names = sorted(self.graph.layers)
        first, second = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(names))
        before, steps = self.graph.copy(), self.steps()
        with contextlib.suppress(DiagnosticError):
            with self.history.group("Two at once"):
                self.history.commit(commands.rename_layer(self.graph, first, "moved"))
                self.history.commit(commands.remove_layers(self.graph, ["moved" if second == first else second]))
                if data.draw(st.booleans()):
                    self.history.commit(commands.rename_layer(self.graph, "nobody", "x"))
            self.states[self.steps()] = self.graph.copy()
            return
        assert self.graph == before
        assert self.steps() == steps

    @rule()
    def loop(self) -> None:
        """Close a loop as a file may: the commands refuse to."""
        if "a" in self.graph and "b" in self.graph:
            a, b = self.graph["a"], self.graph["b"]
            edit = Edit("loop", {"a": (a, a.with_input(0, Source("b"))), "b": (b, b.with_input(1, Source("a")))})
            self.do(lambda _: edit)

    @rule()
    def seal(self) -> None:
        self.history.seal()

    @rule()
    def undo(self) -> None:
        if self.history.undo() is not None and self.steps() in self.states:
            assert self.graph == self.states[self.steps()]

    @rule()
    def redo(self) -> None:
        if self.history.redo() is not None and self.steps() in self.states:
            assert self.graph == self.states[self.steps()]

    @rule()
    def undo_everything_and_redo_it(self) -> None:
        after = self.graph.copy()
        count = 0
        while self.history.undo() is not None:
            count += 1
            if self.steps() in self.states:
                assert self.graph == self.states[self.steps()]
        for _ in range(count):
            assert self.history.redo() is not None
        assert self.graph == after

    @invariant()
    def text_comes_back(self) -> None:
        data = write_document(self.graph)
        reading = parse_document(data, validate=False)
        assert reading.graph == self.graph, reading.diagnostics
        assert write_document(reading.graph) == data

    @invariant()
    def incremental_inference_is_right(self) -> None:
        scratch = Inference(self.graph, self.registry)
        assert scratch.states == self.inference.states
        assert scratch.diagnostics() == self.inference.diagnostics()

    @invariant()
    def the_index_of_consumers_is_right(self) -> None:
        fresh = Graph(self.graph)
        for name in {*self.graph.layers, *(p for layer in self.graph for p in layer.producers())}:
            assert set(fresh.consumers(name)) == set(self.graph.consumers(name))
        assert self.graph.types == Counter(layer.type for layer in self.graph)
        assert fresh.order() == self.graph.order()


@pytest.mark.parametrize("steps", [15, 40])
def test_any_sequence_of_edits(tiny: Registry, steps: int) -> None:
    Editing.registry = tiny
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Editing,
        settings=settings(
            max_examples=60,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
