"""Incremental execution of a network: only layers that depend on a change run again.

Every result is cached under a fingerprint of everything that it depends on: layer parameters, weights, sizes, options and
the fingerprints of its inputs. A cached result therefore equals that of a full run bit for bit, also after undoing a change.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import cast

import numpy as np

from designer.files.weights import Weights
from designer.graph.commands import set_params
from designer.graph.diagnostics import Diagnostic, DiagnosticError, errors
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.template import enclosing
from designer.graph.types import Size3D
from designer.operators.api import Operator, Role
from designer.operators.inlining import inline, inlined_source, is_flat
from designer.operators.registry import Registry
from designer.operators.training_branch import no_output, training_branch, training_only
from designer.runtime.api import ONE_TILE, Array, Compiled, Progress, RunOptions, RunResult, Step, Tensor
from designer.runtime.checked_engine import CheckedEngine
from designer.runtime.engine_registry import default_engines
from designer.runtime.expectation import Expectation
from designer.runtime.feeding import (
    Extent,
    Fed,
    as_batch,
    check_fed,
    crop,
    factors,
    frozen,
    input_dtype,
    padded_extent,
    prepare,
    sized,
    tiling,
)
from designer.runtime.images import TENSORS, read_image, read_npy
from designer.runtime.interrupt import Interrupt, current, interruptible
from designer.runtime.neighbors import agree, folded, widened
from designer.runtime.network import evaluate, operator_of, output_layers, type_of
from designer.runtime.patterns import make_pattern, pattern_name
from designer.runtime.plan import AnalysisStep, PartStep, Plan, make_plan
from designer.runtime.results import KEEP_BYTES, PartPrint, Result, Results, WeightPrints, fingerprint, layer_text
from designer.runtime.tiles import Tiling, Tilings
from designer.texts import tr
from designer.units import binary

NEAR = 4  # neighbors that a look at a layer brings along take at most this part of the memory for results
COMPILED = 4  # parts kept ready next to those of the present run; each holds packed weights and working memory


class Session:
    """Runs `graph` with `weights`. The graph is copied; report changes with `set_param` and `set_graph`. `memory` is how many bytes
    a part may take before it is run in tiles, 0: by what is free.

    `inference` holds the shapes at the sizes of what was fed last, templates replaced by their layers. Not for use by two
    threads at once.
    """

    def __init__(
        self,
        graph: Graph,
        registry: Registry,
        weights: Weights,
        options: RunOptions | None = None,
        *,
        keep_bytes: int = KEEP_BYTES,
        memory: int = 0,
    ) -> None:
        self.registry = registry
        self.options = options if options is not None else RunOptions()
        self._document = graph.copy()
        self._graph = inline(graph, registry)
        self.expectation = Expectation()
        self.revision = 0  # counts changes of any kind
        self.structure = 0  # counts those of more than values of analysis layers
        self.inference = Inference(self._graph, registry)
        self._fed: dict[str, Fed] = {}
        self._serial = 0
        self._ready: dict[str, tuple[str, Array]] = {}  # input layer -> version, what the network reads
        self._plans: dict[tuple[Source, ...], tuple[Plan, dict[PartStep, PartPrint]]] = {}
        self._compiled: OrderedDict[str, Compiled] = OrderedDict()
        self.results = Results(keep_bytes)
        self.tilings = Tilings(self.inference, self.options.tile, memory)
        self.differs: set[str] = set()  # keys of parts whose bits change when neighbors are brought along
        self.by_stand_in: dict[str, str] = {}  # parts that the stand-in of the engine had to run, by key: why
        self.set_weights(weights)

    # --- what may change ------------------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """The network of the document. Read-only."""
        return self._document

    def set_weights(self, weights: Weights) -> None:
        """Use other weights; results of layers whose tensors are equal stay valid."""
        self.weights = weights
        self._prints = WeightPrints(weights)
        self.engine = default_engines().make(self.inference, weights, self.options)
        self._stand_in: CheckedEngine | None = None
        self._plans.clear()
        self._changed(self._graph.layers)

    def set_input(self, layer: str, array: Tensor, *, picture: bool) -> None:
        """Feed an input layer with values of its shape. An image's (N x C x H x W) are 0..1 and get the layer's scale and shift."""
        operator = self.input_operator(layer)
        check_fed(layer, operator, array)
        self._serial += 1
        copy = np.array(array, dtype=input_dtype(operator), order="C")
        self._fed[layer] = Fed(copy, picture, self._serial)
        self._changed([layer])
        self._take(Edit(tr("Size"), {layer: (self._graph[layer], self._sized(self._document[layer]))}))

    def set_input_file(self, layer: str, path: Path) -> None:
        """Feed an input layer with an image, `pattern:NAME` at the size of its dims, or an `.npy` file as it is."""
        operator = self.input_operator(layer)
        dims = getattr(operator, "dims", None)
        if not isinstance(dims, Size3D):
            TENSORS.reader(path)  # refuses other formats by name
            self.set_input(layer, read_npy(path, input_dtype(operator)), picture=False)
            return
        size = dims
        name = pattern_name(path)
        if name is not None:
            self.set_input(layer, make_pattern(name, size.channels, size.height, size.width), picture=True)
        elif TENSORS.reads(path):
            self.set_input(layer, as_batch(read_npy(path), size.channels), picture=False)
        else:
            self.set_input(layer, read_image(path, size.channels), picture=True)

    def invalidate(self) -> None:
        """Forget all results, so that the next run computes everything; what is compiled stays ready."""
        self.results.clear()

    def set_param(self, layer: str, param: str, text: str) -> None:
        """Change a parameter; DiagnosticError, and nothing changed, when the text breaks its rule."""
        edit = set_params(self._document, {layer: {param: text}})
        changed = edit.layers[layer][1]
        assert changed is not None
        if self.registry.get(changed.type) is not None:
            wrong = [d for d in errors(self.registry.read(changed).diagnostics) if d.parameter == param]
            if wrong:
                raise DiagnosticError(wrong)
        if not is_flat(self._document):  # what others read from the layer may be named otherwise there
            document = self._document.copy()
            document.apply(edit)
            self.set_graph(document)
        else:
            self._document.apply(edit)
            self._take(Edit(edit.title, {layer: (self._graph[layer], self._sized(changed))}))

    def set_graph(self, graph: Graph) -> None:
        """Run another state of the network from now on. What does not depend on the difference stays kept."""
        flat = inline(graph, self.registry)
        self._document = graph.copy()
        kept = {name for name in self._fed if name in graph and self._role(graph[name]) is Role.INPUT}
        self._fed = {name: fed for name, fed in self._fed.items() if name in kept}
        before, after = self._graph.layers, {layer.name: self._sized(layer) for layer in flat}
        names = [*after, *(name for name in before if name not in after)]
        templates = {**self._graph.templates, **flat.templates}
        self._take(
            Edit(
                tr("Update"),
                {n: (before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)},
                templates={n: (self._graph.templates.get(n), flat.templates.get(n)) for n in templates},
            )
        )

    def _changed(self, layers: Iterable[str]) -> None:
        self.revision += 1
        self.expectation.changed.update(layers)

    def _take(self, edit: Edit) -> None:
        change = self._graph.apply(edit)
        self._changed(edit.layers)
        states = self.inference.update(change)
        harmless = not (states or change.added or change.removed or change.rewired) and all(
            layer is not None and self._role(layer) is Role.ANALYSIS
            for name in change.computed
            for layer in edit.layers[name]  # before and after: one that was bypassed was an identity
        )
        if not harmless:
            self._plans.clear()
            self.structure += 1

    def input_operator(self, layer: str) -> Operator:
        """The operator of an input layer of the document; DiagnosticError when there is none of that name."""
        known = self._document.get(layer)
        operator = self.registry.read(known).operator if known is not None else None
        if operator is None or operator.role is not Role.INPUT:
            names = [item.name for item in self._document if self._role(item) is Role.INPUT]
            raise DiagnosticError(
                Diagnostic(
                    "no-such-input",
                    tr("there is no input layer '{layer}'", layer=layer),
                    layer=layer,
                    remedy=tr("choose one of {names}", names=", ".join(names)) if names else tr("add an input layer"),
                )
            )
        return operator

    def fed(self, layer: str) -> Fed:
        """What was given to an input layer; DiagnosticError where nothing was."""
        fed = self._fed.get(layer)
        if fed is None:
            raise DiagnosticError(
                Diagnostic(
                    "no-input",
                    tr("the input '{layer}' has no data", layer=layer),
                    layer=layer,
                    remedy=tr("choose an image or a tensor"),
                )
            )
        return fed

    def fed_layers(self) -> tuple[str, ...]:
        return tuple(self._fed)

    def expected(self, capture: Sequence[Source] = ()) -> float | None:
        """About how many ms the next run takes, by earlier ones; None where there is no saying."""
        return self.expectation.of(self._graph, self.plan(capture))

    def _role(self, layer: Layer) -> Role | None:
        cls = self.registry.get(layer.type)
        return cls.role if cls is not None else None

    def _sized(self, layer: Layer) -> Layer:
        fed = self._fed.get(layer.name)
        return layer if fed is None else sized(layer, self.registry.read(layer).operator, fed)

    # --- running --------------------------------------------------------------------------------------------------

    def run(
        self,
        capture: Sequence[Source] = (),
        progress: Progress | None = None,
        interrupt: Interrupt | None = None,
    ) -> RunResult:
        """Compute all outputs and the tensors in `capture`; DiagnosticError says why the network cannot run.

        `progress(done, total, text)` is called before every step and at the end. InterruptedRunError when `interrupt` was
        asked to end it; steps that were done stay kept.
        """
        started = perf_counter()
        try:
            run = _Run(self, capture)
            with interruptible(interrupt):
                result = run.go(progress)
        except DiagnosticError as error:
            raise DiagnosticError(self._on_instance(d) for d in error.diagnostics) from error
        notes = list(run.notes)
        lost = self.results.trim(run.keys)
        if lost:
            names = ", ".join(dict.fromkeys(source.layer for source in lost))
            notes.append(
                f"results above {binary(self.results.keep_bytes)} are not kept: the next run computes {names} again"
            )
        self.expectation.learn(result[2])
        gone = {source.layer for source in lost}
        steps = tuple(replace(step, dropped=not gone.isdisjoint(step.layers)) for step in result[2])
        milliseconds = (perf_counter() - started) * 1000
        return RunResult(result[0], result[1], steps, milliseconds, self.weights.note, "; ".join(notes))

    def tile_session(self, graph: Graph) -> Session:
        """What runs a network that is a tile of a part of this one."""
        return Session(graph, self.registry, self.weights, replace(self.options, tile=ONE_TILE), keep_bytes=0)

    def source(self, source: Source) -> Source:
        """The tensor that a name of the document represents, in the network that runs."""
        return self.inference.tensor(inlined_source(self._document, source))

    def _on_instance(self, finding: Diagnostic) -> Diagnostic:
        """A finding about a layer inside of an instance, as one about the instance: the document knows no other."""
        names = enclosing(finding.layer) if finding.layer is not None else ()
        return next((replace(finding, layer=name) for name in names if name in self._document), finding)

    def output_layers(self) -> tuple[str, ...]:
        """The output layers that inference computes, in the document's order."""
        training = training_branch(self._graph, self.registry)
        return tuple(name for name in output_layers(self.inference) if name not in training)

    def plan(self, capture: Sequence[Source] = ()) -> Plan:
        """What a run for the outputs and `capture` consists of."""
        return self.planned(capture)[0]

    def planned(self, capture: Sequence[Source]) -> tuple[Plan, dict[PartStep, PartPrint]]:
        """The plan, and for every part what tells apart all that is compiled into it."""
        training = training_branch(self._graph, self.registry)
        outputs = [Source(name) for name in self.output_layers()]
        targets = tuple(dict.fromkeys([*outputs, *(self.source(source) for source in capture)]))
        absent = [training_only(target.layer) for target in targets if target.layer in training]
        if absent or not targets:
            raise DiagnosticError(absent or no_output(self._graph, self.registry))
        known = self._plans.get(targets)
        if known is None:
            plan = make_plan(self.inference, targets)
            prints = {step: self._part_print(step) for step in plan.steps if isinstance(step, PartStep)}
            known = self._plans[targets] = (plan, prints)
        return known

    def _part_print(self, step: PartStep) -> PartPrint:
        texts = [
            (layer_text(self._graph[name]), self._prints.of(self._graph[name].weights_name))
            for name in step.part.layers
        ]
        feeds = [(str(feed), str(type_of(self.inference, feed))) for feed in step.part.feeds]
        group = fingerprint(self.options, texts, feeds)
        return PartPrint(group, fingerprint(group, [str(source) for source in step.wanted]))

    def widened(
        self, step: PartStep, looked_at: Collection[Source], batch: int
    ) -> Iterator[tuple[PartStep, PartPrint]]:
        """Steps that also compute the neighbors of the displayed tensors, and their fingerprints; the best first."""
        for careful in (False, True):
            if careful and any(folded(self.inference, source) for source in looked_at):
                return
            wide = widened(self.inference, step, looked_at, self.results.keep_bytes // NEAR, batch, careful=careful)
            prints = self._part_print(wide)
            if len(wide.wanted) > len(step.wanted) and prints.key not in self.differs:
                yield wide, prints

    def compile(self, step: PartStep, key: str) -> Compiled:
        """The step's part, made ready; kept for the next time. The engine's stand-in runs what ONNX cannot express."""
        ready = self._compiled.get(key)
        if ready is None:
            try:
                ready = self.engine.compile(step.part, step.wanted)
            except DiagnosticError as error:
                name = self.engine.descriptor.stand_in
                if not name or {d.code for d in error.diagnostics} != {"not-in-onnx"}:
                    raise
                if self._stand_in is None:
                    options = replace(self.options, engine=name)
                    self._stand_in = default_engines().make(self.inference, self.weights, options)
                ready = self._stand_in.compile(step.part, step.wanted)
                names = ", ".join(f"'{d.layer}'" for d in error.diagnostics)
                self.by_stand_in[key] = f"{name} ran the layers around {names}, which ONNX cannot express"
            self._compiled[key] = ready
        self._compiled.move_to_end(key)
        return ready

    def forget(self, parts: int) -> None:
        """Let go of compiled parts that were not used lately; `parts` is how many the present run has."""
        while len(self._compiled) > COMPILED + parts:
            self._compiled.popitem(last=False)

    def fed_input(self, layer: str) -> tuple[str, Array]:
        """Version and values of an input layer as the network reads them: scaled and padded."""
        operator = operator_of(self.inference, layer)
        fed = self.fed(layer)
        check_fed(layer, operator, fed.array)
        version = fingerprint(fed.serial, fed.picture and factors(operator), tiling(operator))
        ready = self._ready.get(layer)
        if ready is None or ready[0] != version:
            ready = self._ready[layer] = (version, frozen(prepare(operator, fed)))
        return ready

    def padding(self, source: Source) -> tuple[Extent, Extent] | None:
        """(original, padded) extent of the first padded input above a tensor; None when none was padded."""
        extents = {
            name: (fed.extent, padded_extent(operator_of(self.inference, name), fed.extent))
            for name, fed in self._fed.items()
        }
        padded = {name: pair for name, pair in extents.items() if pair[0] != pair[1]}
        if not padded:
            return None
        above = self._graph.upstream([source.layer])
        return next((pair for name, pair in padded.items() if name in above), None)


class _Run:
    """One run of a session, step by step: each is either taken from earlier results or computed. `keys` are those of the results it used, `notes` are for the user."""

    def __init__(self, session: Session, capture: Sequence[Source]) -> None:
        self.session = session
        self.capture = capture
        self.plan, self.prints = session.planned(capture)
        self.values: dict[Source, Array] = {}
        self.versions: dict[Source, str] = {}
        self.cropped: set[Source] = set()
        self.keys: set[str] = set()
        self.steps: list[Step] = []
        self.notes: dict[str, None] = {}
        self.progress: Progress | None = None

    def go(self, progress: Progress | None) -> tuple[dict[str, Array], dict[Source, Array], tuple[Step, ...]]:
        session, total = self.session, len(self.plan.steps)
        self.progress = progress
        for name in self.plan.inputs:
            version, array = session.fed_input(name)
            self.versions[Source(name)], self.values[Source(name)] = version, array
        for number, step in enumerate(self.plan.steps):
            current().check()
            if progress is not None:
                progress(number, total, _title(step))
            self.steps.append(self._part(step) if isinstance(step, PartStep) else self._analysis(step))
        if progress is not None:
            progress(total, total, "")
        session.forget(len(self.prints))
        outputs = {name: self._output(Source(name)) for name in session.output_layers()}
        captures = {source: self._value(session.source(source)) for source in self.capture}
        return outputs, captures, tuple(self.steps)

    def _part(self, step: PartStep) -> Step:
        session, part, prints = self.session, step.part, self.prints[step]
        versions = [self.versions[feed] for feed in part.feeds]
        key, group = fingerprint(prints.key, versions), fingerprint(prints.group, versions)
        kept, tiled = session.results.get(key) is not None, None
        found = None if kept else self._of_more(step, group)
        if not kept and found is None:
            tiled = session.tilings.of(step, prints.key, self._batch(step))
            found = self._near(step, group, versions) if tiled is None else None
        compute = (
            partial(self._in_tiles, step, *tiled) if tiled is not None else partial(self._compute, step, prints.key)
        )
        done = found or self._do(key, part.layers, session.engine.name, compute, group)
        note = session.by_stand_in.get(prints.key)
        if note is None:
            return done
        self.notes[note] = None
        return replace(done, engine=session.engine.descriptor.stand_in)

    def _compute(self, step: PartStep, print_: str) -> Mapping[Source, Array]:
        made = self.session.compile(step, print_).run({feed: self.values[feed] for feed in step.part.feeds})
        return cast(Mapping[Source, Array], made)

    def _in_tiles(self, step: PartStep, tiling: Tiling, side: int) -> Mapping[Source, Array]:
        counts = [len(tiling.tiles(axis, side)) for axis in (0, 1)]
        total = counts[0] * counts[1]
        self.notes[f"run in {total} tiles of up to {side} x {side} pixels"] = None

        def tell(done: int, total: int) -> None:
            current().check()
            if self.progress is not None:
                self.progress(done, total, f"{_title(step)}, tile {done + 1} of {total}")

        feeds = {feed: self.values[feed] for feed in step.part.feeds}
        made = tiling.run(feeds, side, self.session.tile_session, tell)
        return cast(Mapping[Source, Array], made)

    def _batch(self, step: PartStep) -> int:
        return max((len(self.values[feed]) for feed in step.part.feeds), default=1)

    def _of_more(self, step: PartStep, group: str) -> Step | None:
        """Take the step's tensors from a run of the same values that captured more; None if there is none.

        A run whose captures an engine would otherwise have folded into other layers does not count: its bits may differ.
        """
        session, wanted = self.session, set(step.wanted)
        for key, result in session.results.like(group):
            more = result.tensors.keys() - wanted
            if wanted <= result.tensors.keys() and not any(folded(session.inference, source) for source in more):
                session.results.get(key)  # it was used last
                self._use(key, result)
                return Step(step.part.layers, session.engine.name, 0.0, True)
        return None

    def _near(self, step: PartStep, group: str, versions: list[str]) -> Step | None:
        """Take the step's tensors from a run that brings their neighbors; None where the step should run as it is.

        That is so while values still change (nothing was kept for these), and where bits would differ.
        """
        session, started = self.session, perf_counter()
        before = next(session.results.like(group), None)
        looked_at = {self.plan.origin[session.source(source)] for source in self.capture} & set(step.wanted)
        if before is None or not looked_at:
            return None
        batch = self._batch(step)
        for wide, prints in session.widened(step, looked_at, batch):
            key = fingerprint(prints.key, versions)
            result = session.results.get(key)
            cached = result is not None
            if result is None:
                made = {source: frozen(array) for source, array in self._compute(wide, prints.key).items()}
                known = before[1]
                if not agree(known.tensors, made):
                    session.differs.add(prints.key)
                    continue
                # What was known stays the same object with the same version: nothing that depends on it runs again.
                held = {source: known.tensors.get(source, array) for source, array in made.items()}
                marks = {source: known.versions.get(source) or fingerprint(key, str(source)) for source in made}
                result = Result(held, marks, group)
                session.results.put(key, result)
            self.keys.add(before[0])
            self._use(key, result)
            spent = 0.0 if cached else (perf_counter() - started) * 1000
            return Step(step.part.layers, session.engine.name, spent, cached)
        return None

    def _analysis(self, step: AnalysisStep) -> Step:
        session = self.session
        feeds = {feed: self.values[feed] for feed in step.feeds}
        if step.late:
            feeds = {feed: self._cropped(feed) for feed in feeds}
            self.cropped.update(session.inference.tensors(step.layer))
        versions = [(self.versions[feed], feeds[feed].shape) for feed in step.feeds]
        key = fingerprint(layer_text(session.inference.graph[step.layer]), versions)

        def compute() -> Mapping[Source, Array]:
            return evaluate(session.inference, step.layer, [feeds[feed] for feed in step.feeds])

        return self._do(key, (step.layer,), "numpy", compute)

    def _do(
        self,
        key: str,
        layers: tuple[str, ...],
        engine: str,
        compute: Callable[[], Mapping[Source, Array]],
        group: str = "",
    ) -> Step:
        results = self.session.results
        started = perf_counter()
        result = results.get(key)
        cached = result is not None
        if result is None:
            made = {source: frozen(array) for source, array in compute().items()}
            result = Result(made, {source: fingerprint(key, str(source)) for source in made}, group)
            results.put(key, result)
        self._use(key, result)
        return Step(layers, engine, 0.0 if cached else (perf_counter() - started) * 1000, cached)

    def _use(self, key: str, result: Result) -> None:
        self.keys.add(key)
        self.values.update(result.tensors)
        self.versions.update(result.versions)

    def _value(self, source: Source) -> Array:
        return self.values[self.plan.origin[source]]

    def _output(self, source: Source) -> Array:
        return self._cropped(self.plan.origin[source])

    def _cropped(self, source: Source) -> Array:
        array = self.values[source]
        if source in self.cropped:
            return array
        padding = self.session.padding(source)
        return array if padding is None else crop(array, *padding)


def _title(step: PartStep | AnalysisStep) -> str:
    if isinstance(step, AnalysisStep):
        return step.layer
    layers = step.part.layers
    return layers[0] if len(layers) == 1 else f"{layers[0]} ... {layers[-1]}"
