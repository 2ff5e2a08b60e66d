"""Incremental execution of a network: only layers that depend on a change run again.

Every result is cached under a fingerprint of everything that it depends on: layer parameters, weights, sizes, options and
the fingerprints of its inputs. A cached result is therefore bit-identical to that of a full run, also after an undo.
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
from designer.graph.types import BATCH, Size3D
from designer.operators.api import Operator, Role
from designer.operators.inlining import inline, inlined_source, is_flat
from designer.operators.registry import Registry
from designer.operators.training_branch import no_output, training_branch, training_only
from designer.runtime.api import (
    ONE_TILE,
    Array,
    Compiled,
    CompiledForWeights,
    Progress,
    RunOptions,
    RunResult,
    Step,
    Tensor,
)
from designer.runtime.checked_engine import CheckedEngine
from designer.runtime.engine_registry import default_engines
from designer.runtime.finite import NonFinite, nonfinite
from designer.runtime.images import TENSORS, read_image, read_npy
from designer.runtime.input_data import (
    Extent,
    InputData,
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
from designer.runtime.interrupt import Interrupt, current, interruptible
from designer.runtime.neighbors import agree, folded, with_neighbors
from designer.runtime.network import evaluate, operator_of, output_layers, type_of
from designer.runtime.nonfinite_probes import NonfiniteProbes
from designer.runtime.patterns import make_pattern, pattern_name
from designer.runtime.plan import AnalysisStep, PartStep, Plan, make_plan
from designer.runtime.results import KEEP_BYTES, PartPrint, Result, Results, WeightPrints, fingerprint, layer_text
from designer.runtime.run_estimate import RunEstimate
from designer.runtime.skipped_nan import SkippedNan
from designer.runtime.tiles import Tiling, Tilings
from designer.texts import tr
from designer.units import binary

NEAR = 4  # neighbors that are computed with an inspected layer take at most 1 / NEAR of the memory for results
COMPILED = 4  # compiled parts kept besides those of the current run; each has packed weights and working memory


class Session:
    """Runs `graph` with `weights`. The graph is copied; report changes with `set_param` and `set_graph`.

    `memory` is the number of bytes above which a part runs in tiles, 0: depending on the free memory. `inference` has the
    shapes for the current inputs, with templates replaced by their layers. Not thread-safe.
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
        self.estimate = RunEstimate()
        self.revision = 0  # counts changes of any kind
        self.structure = 0  # counts changes of more than parameters of analysis layers
        self.inference = Inference(self._graph, registry)
        self._fed: dict[str, InputData] = {}
        self._serial = 0
        self._ready: dict[str, tuple[str, Array]] = {}  # input layer -> version, prepared values
        self._plans: dict[tuple[Source, ...], tuple[Plan, dict[PartStep, PartPrint]]] = {}
        self._compiled: OrderedDict[str, Compiled] = OrderedDict()
        self.results = Results(keep_bytes)
        self.tilings = Tilings(self.inference, self.options.tile, memory)
        self.differs: set[str] = set()  # keys of parts whose bits change if neighbors are computed with them
        self.skipped_nan = SkippedNan(self.inference, default_engines().get(self.options.engine))
        self._probes = NonfiniteProbes(self.inference)
        self.by_stand_in: dict[str, str] = {}  # reason by key of each part that the engine's stand-in had to run
        self.set_weights(weights)

    # --- changes --------------------------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """The network of the document. Read-only."""
        return self._document

    def set_weights(self, weights: Weights, prints: WeightPrints | None = None) -> None:
        """Use other weights; results of layers with equal tensors stay valid. `prints`: those of another session with the same weights."""
        self.weights = weights
        self.weight_prints = prints or WeightPrints(weights)
        for key, ready in self._compiled.items():
            if isinstance(ready, CompiledForWeights):
                self._compiled[key] = ready.with_weights(weights)
        self.engine = self.make_engine()
        self._stand_in: CheckedEngine | None = None
        self.skipped_nan.set_weights(weights)
        for _, parts in self._plans.values():
            parts.update({step: self.part_print(step) for step in parts})
        self._changed(self._graph.layers)

    def make_engine(self) -> CheckedEngine:
        """The engine for the present weights. Raises DiagnosticError if it does not support the options."""
        return default_engines().make(self.inference, self.weights, self.options)

    def set_formats(self, formats: Mapping[str, str]) -> None:
        """Compute layers in other number formats, see `RunOptions.formats`; results that do not depend on a change stay valid.

        Raises DiagnosticError, without a change, if the engine cannot compute single layers in these formats.
        """
        options = replace(self.options, formats=tuple(formats.items()))
        self.engine = default_engines().make(self.inference, self.weights, options)
        before, self.options = dict(self.options.formats), options
        changed = {name for name in {*before, *formats} if before.get(name) != formats.get(name)}
        if bool(before) == bool(formats):  # else other parts run
            for _, prints in self._plans.values():
                for step in list(prints):
                    if any(not changed.isdisjoint(enclosing(name)) for name in step.part.layers):
                        prints[step] = self.part_print(step)
        else:
            self._plans.clear()
        self._changed(changed)

    def set_input(self, layer: str, array: Tensor, *, is_image: bool) -> None:
        """Feed an input layer with values of its shape. Scale and shift apply only to images (N x C x H x W, 0..1)."""
        operator = self.input_operator(layer)
        check_fed(layer, operator, array)
        self._serial += 1
        copy = np.array(array, dtype=input_dtype(operator), order="C")
        self._fed[layer] = InputData(copy, is_image, self._serial)
        self._changed([layer])
        self._take(Edit(tr("Size"), {layer: (self._graph[layer], self._sized(self._document[layer]))}))

    def set_input_file(self, layer: str, path: Path) -> None:
        """Feed an input layer with an image file, `pattern:NAME` at the size of its dims, or an `.npy` file."""
        operator = self.input_operator(layer)
        dims = getattr(operator, "dims", None)
        if not isinstance(dims, Size3D):
            TENSORS.reader(path)  # rejects other formats by name
            self.set_input(layer, read_npy(path, input_dtype(operator)), is_image=False)
            return
        size = dims
        name = pattern_name(path)
        if name is not None:
            self.set_input(layer, make_pattern(name, size.channels, size.height, size.width), is_image=True)
        elif TENSORS.reads(path):
            self.set_input(layer, as_batch(read_npy(path), size.channels), is_image=False)
        else:
            self.set_input(layer, read_image(path, size.channels), is_image=True)

    def invalidate(self) -> None:
        """Drop all results, so that the next run computes everything; compiled parts are kept."""
        self.results.clear()

    def set_param(self, layer: str, param: str, text: str) -> None:
        """Change a parameter. Raises DiagnosticError, without a change, if the text is not valid."""
        edit = set_params(self._document, {layer: {param: text}})
        changed = edit.layers[layer][1]
        assert changed is not None
        if self.registry.get(changed.type) is not None:
            wrong = [d for d in errors(self.registry.read(changed).diagnostics) if d.parameter == param]
            if wrong:
                raise DiagnosticError(wrong)
        if not is_flat(self._document):  # tensors of the layer may have other names after inlining
            document = self._document.copy()
            document.apply(edit)
            self.set_graph(document)
        else:
            self._document.apply(edit)
            self._take(Edit(edit.title, {layer: (self._graph[layer], self._sized(changed))}))

    def set_graph(self, graph: Graph) -> None:
        """Use another state of the network. Results that do not depend on the difference are kept."""
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
        self.estimate.changed.update(layers)

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
        """The operator of an input layer of the document. Raises DiagnosticError if there is no such input."""
        known = self._document.get(layer)
        operator = self.registry.read(known).operator if known is not None else None
        if operator is None or operator.role is not Role.INPUT:
            names = [item.name for item in self._document if self._role(item) is Role.INPUT]
            raise DiagnosticError.of(
                "no-such-input",
                tr("there is no input layer '{layer}'", layer=layer),
                layer=layer,
                remedy=tr("choose one of {names}", names=", ".join(names)) if names else tr("add an input layer"),
            )
        return operator

    def fed(self, layer: str) -> InputData:
        """The data of an input layer. Raises DiagnosticError if it has none."""
        fed = self._fed.get(layer)
        if fed is None:
            raise DiagnosticError.of(
                "no-input",
                tr("the input '{layer}' has no data", layer=layer),
                layer=layer,
                remedy=tr("choose an image or a tensor"),
            )
        return fed

    def fed_layers(self) -> tuple[str, ...]:
        return tuple(self._fed)

    def expected(self, capture: Sequence[Source] = ()) -> float | None:
        """Estimated ms of the next run, from earlier runs; None if a step has never run."""
        return self.estimate.of(self._graph, self.plan(capture))

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
        """Compute all outputs and the tensors in `capture`. Raises DiagnosticError with the reason if the network cannot run.

        `progress(done, total, text)` is called before every step and at the end. Raises InterruptedRunError after a request
        through `interrupt`; completed steps stay cached.
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
        self.estimate.learn(result[2])
        gone = {source.layer for source in lost}
        steps = tuple(replace(step, dropped=not gone.isdisjoint(step.layers)) for step in result[2])
        milliseconds = (perf_counter() - started) * 1000
        note = "; ".join(notes)
        return RunResult(result[0], result[1], steps, milliseconds, self.weights.note, note, hidden=run.not_shown())

    def empty_copy(self, keep_bytes: int) -> Session:
        """A session for the same network, weights and options, without inputs and results."""
        return Session(self.graph, self.registry, self.weights, self.options, keep_bytes=keep_bytes)

    def tile_session(self, graph: Graph) -> Session:
        """A session for a tile of a part of this network."""
        return Session(graph, self.registry, self.weights, replace(self.options, tile=ONE_TILE), keep_bytes=0)

    def source(self, source: Source) -> Source:
        """The tensor of the inlined network that corresponds to a tensor of the document."""
        return self.inference.tensor(inlined_source(self._document, source))

    def _on_instance(self, finding: Diagnostic) -> Diagnostic:
        """A finding about a layer inside an instance, as one about the instance, which the document contains."""
        names = enclosing(finding.layer) if finding.layer is not None else ()
        return next((replace(finding, layer=name) for name in names if name in self._document), finding)

    def output_layers(self) -> tuple[str, ...]:
        """The output layers that inference computes, by name."""
        training = training_branch(self._graph, self.registry)
        return tuple(name for name in output_layers(self.inference) if name not in training)

    def plan(self, capture: Sequence[Source] = ()) -> Plan:
        """The plan of a run for the outputs and `capture`."""
        return self.planned(capture)[0]

    def planned(self, capture: Sequence[Source]) -> tuple[Plan, dict[PartStep, PartPrint]]:
        """The plan, and a fingerprint of each part that covers everything compiled into it."""
        training = training_branch(self._graph, self.registry)
        outputs = [Source(name) for name in self.output_layers()]
        targets = tuple(dict.fromkeys([*outputs, *(self.source(source) for source in capture)]))
        absent = [training_only(target.layer) for target in targets if target.layer in training]
        if absent or not targets:
            raise DiagnosticError(absent or no_output(self._graph, self.registry))
        known = self._plans.get(targets)
        if known is None:
            plan = make_plan(self.inference, targets, single=bool(self.options.formats))
            prints = {step: self.part_print(step) for step in plan.steps if isinstance(step, PartStep)}
            known = self._plans[targets] = (plan, prints)
        return known

    def part_print(self, step: PartStep) -> PartPrint:
        """The digests of a part with the current options and weights."""
        formats = dict(self.options.formats)
        texts = [
            (
                layer_text(self._graph[name]),
                next((formats[around] for around in enclosing(name) if around in formats), ""),
            )
            for name in step.part.layers
        ]
        feeds = [(str(feed), str(type_of(self.inference, feed))) for feed in step.part.feeds]
        layers = fingerprint(replace(self.options, formats=()), texts, feeds)
        weights = [self.weight_prints.of(self._graph[name].weights_name) for name in step.part.layers]
        group, wanted = fingerprint(layers, weights), [str(source) for source in step.wanted]
        return PartPrint(group, fingerprint(group, wanted), fingerprint(layers, wanted))

    def with_neighbors(
        self, step: PartStep, inspected: Collection[Source], batch: int
    ) -> Iterator[tuple[PartStep, PartPrint]]:
        """Steps that also compute the neighbors of the inspected tensors, and their fingerprints; the best first."""
        for careful in (False, True):
            if careful and any(folded(self.inference, source) for source in inspected):
                return
            wide = with_neighbors(
                self.inference, step, inspected, self.results.keep_bytes // NEAR, batch, careful=careful
            )
            prints = self.part_print(wide)
            if len(wide.wanted) > len(step.wanted) and prints.key not in self.differs:
                yield wide, prints

    def compile(self, step: PartStep, prints: PartPrint) -> Compiled:
        """The compiled part of a step, cached. The engine's stand-in compiles parts that ONNX cannot express."""
        key = prints.form if self.options.weights_as_inputs and prints.form in self._compiled else prints.key
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
                self.by_stand_in[prints.key] = f"{name} ran the layers around {names}, which ONNX cannot express"
            key = prints.form if isinstance(ready, CompiledForWeights) else prints.key
            self._compiled[key] = ready
        self._compiled.move_to_end(key)
        return ready

    def probes(self, step: PartStep, prints: PartPrint) -> tuple[Source, ...]:
        """Tensors to check for NaN and infinity. None on a GPU, where they would have to be copied."""
        return self._probes.of(step.part, prints.form) if self.options.device == "cpu" else ()

    def forget(self, parts: int) -> None:
        """Drop the least recently used compiled parts; `parts` is the number of parts of the current run."""
        while len(self._compiled) > COMPILED + parts:
            self._compiled.popitem(last=False)

    def fed_input(self, layer: str) -> tuple[str, Array]:
        """Version and values of an input layer as the network reads them, scaled and padded."""
        operator = operator_of(self.inference, layer)
        fed = self.fed(layer)
        check_fed(layer, operator, fed.array)
        version = fingerprint(fed.serial, fed.is_image and factors(operator), tiling(operator))
        ready = self._ready.get(layer)
        if ready is None or ready[0] != version:
            ready = self._ready[layer] = (version, frozen(prepare(operator, fed)))
        return ready

    def padding(self, source: Source) -> tuple[Extent, Extent] | None:
        """(original, padded) extent of the first padded input upstream of a tensor; None if none is padded."""
        extents = {
            name: (fed.extent, padded_extent(operator_of(self.inference, name), fed.extent))
            for name, fed in self._fed.items()
        }
        padded = {name: pair for name, pair in extents.items() if pair[0] != pair[1]}
        if not padded:
            return None
        above = self._graph.upstream([source.layer])
        return next((pair for name, pair in padded.items() if name in above), None)

    def unpadded(self, source: Source, array: Array) -> Array:
        """The values of a tensor of a padded run without the padding of its inputs."""
        padding = self.padding(source)
        return array if padding is None else crop(array, *padding)


class _Run:
    """One run of a session; each step is taken from the cache or computed.

    `keys` are the keys of the results that it used, `notes` are for the user.
    """

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
        self.hidden: dict[str, NonFinite] = {}  # values that are NaN or infinite, by layer, also of shown tensors
        self._found: dict[str, NonFinite] = {}  # those of the step that was computed last
        self.progress: Progress | None = None

    def go(self, progress: Progress | None) -> tuple[dict[str, Array], dict[Source, Array], tuple[Step, ...]]:
        session, total = self.session, len(self.plan.steps)
        self.progress = progress
        for name in self.plan.inputs:
            version, array = session.fed_input(name)
            self.versions[Source(name)], self.values[Source(name)] = version, array
        self._check_batches()
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

    def not_shown(self) -> dict[str, NonFinite]:
        """The layers whose values are NaN or infinite and neither an output nor captured."""
        inference = self.session.inference
        shown = set(self.plan.origin.values())
        return {name: found for name, found in self.hidden.items() if shown.isdisjoint(inference.tensors(name)[:1])}

    def _check_batches(self) -> None:
        """Raise DiagnosticError unless all inputs with an open batch have data of the same batch."""
        inference = self.session.inference
        types = {name: type_of(inference, Source(name)) for name in self.plan.inputs}
        found = [(name, len(self.values[Source(name)])) for name, kind in types.items() if BATCH in kind.shape[:1]]
        first, count = found[0] if found else ("", 0)
        for name, other in found:
            if other != count:
                raise DiagnosticError.of(
                    "input-shape",
                    tr(
                        "the inputs '{first}' and '{name}' have batches of {count} and {other}, which must be equal",
                        first=first,
                        name=name,
                        count=count,
                        other=other,
                    ),
                    layer=name,
                    remedy=tr(
                        "choose the same number of images for both, or set the batch of an input with one image to 1"
                    ),
                )

    def _part(self, step: PartStep) -> Step:
        session, part, prints = self.session, step.part, self.prints[step]
        versions = [self.versions[feed] for feed in part.feeds]
        key, group = fingerprint(prints.key, versions), fingerprint(prints.group, versions)
        kept, tiled = session.results.get(key) is not None, None
        found = None if kept else self._of_more(step, group)
        if not kept and found is None:
            tiled = session.tilings.of(step, prints.key, self._batch(step))
            found = self._near(step, group, versions) if tiled is None else None
        compute = partial(self._in_tiles, step, *tiled) if tiled is not None else partial(self._compute, step, prints)
        done = found or self._do(key, part.layers, session.engine.name, compute, group)
        note = session.by_stand_in.get(prints.key)
        if note is None:
            skipped = session.skipped_nan.note(part, prints.form, {feed: self.values[feed] for feed in part.feeds})
            if skipped:
                self.notes[skipped] = None
            return done
        self.notes[note] = None
        return replace(done, engine=session.engine.descriptor.stand_in)

    def _compute(self, step: PartStep, prints: PartPrint) -> Mapping[Source, Array]:
        probes = self.session.probes(step, prints)
        whole = PartStep(step.part, (*step.wanted, *(source for source in probes if source not in step.wanted)))
        made = self.session.compile(whole, prints).run({feed: self.values[feed] for feed in step.part.feeds})
        self._found = {source.layer: found for source in probes if (found := nonfinite(made[source])) is not None}
        return {source: cast(Array, made[source]) for source in step.wanted}

    def _in_tiles(self, step: PartStep, tiling: Tiling, side: int) -> Mapping[Source, Array]:
        counts = [len(tiling.tiles(axis, side)) for axis in (0, 1)]
        total = counts[0] * counts[1]
        self.notes[f"run in {total} tiles of up to {side} x {side} pixels"] = None

        def report(done: int, total: int) -> None:
            current().check()
            if self.progress is not None:
                self.progress(done, total, f"{_title(step)}, tile {done + 1} of {total}")

        feeds = {feed: self.values[feed] for feed in step.part.feeds}
        self._found = {}
        made = tiling.run(feeds, side, self.session.tile_session, report, self._found)
        return cast(Mapping[Source, Array], made)

    def _batch(self, step: PartStep) -> int:
        return max((len(self.values[feed]) for feed in step.part.feeds if self.values[feed].ndim), default=1)

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
        """Take the step's tensors from a run that also computes their neighbors; None if the step should run alone.

        It runs alone while values change (nothing is cached for these), and if bits would differ.
        """
        session, started = self.session, perf_counter()
        before = next(session.results.like(group), None)
        inspected = {self.plan.origin[session.source(source)] for source in self.capture} & set(step.wanted)
        if before is None or not inspected:
            return None
        batch = self._batch(step)
        for wide, prints in session.with_neighbors(step, inspected, batch):
            key = fingerprint(prints.key, versions)
            result = session.results.get(key)
            cached = result is not None
            if result is None:
                made = {source: frozen(array) for source, array in self._compute(wide, prints).items()}
                known = before[1]
                if not agree(known.tensors, made):
                    session.differs.add(prints.key)
                    continue
                # Known tensors stay the same objects with the same versions, so nothing that depends on them runs again.
                held = {source: known.tensors.get(source, array) for source, array in made.items()}
                marks = {source: known.versions.get(source) or fingerprint(key, str(source)) for source in made}
                result = Result(held, marks, group, self._found)
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
            self._found = {}
            made = {source: frozen(array) for source, array in compute().items()}
            result = Result(made, {source: fingerprint(key, str(source)) for source in made}, group, self._found)
            results.put(key, result)
        self._use(key, result)
        return Step(layers, engine, 0.0 if cached else (perf_counter() - started) * 1000, cached)

    def _use(self, key: str, result: Result) -> None:
        self.keys.add(key)
        self.values.update(result.tensors)
        self.versions.update(result.versions)
        self.hidden.update(result.hidden)

    def _value(self, source: Source) -> Array:
        return self.values[self.plan.origin[source]]

    def _output(self, source: Source) -> Array:
        return self._cropped(self.plan.origin[source])

    def _cropped(self, source: Source) -> Array:
        array = self.values[source]
        if source in self.cropped:
            return array
        return self.session.unpadded(source, array)


def _title(step: PartStep | AnalysisStep) -> str:
    if isinstance(step, AnalysisStep):
        return step.layer
    layers = step.part.layers
    return layers[0] if len(layers) == 1 else f"{layers[0]} ... {layers[-1]}"
