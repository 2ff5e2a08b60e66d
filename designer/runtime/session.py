"""A network being run, again and again: only what depends on a change runs another time.

Every result is kept under a fingerprint of all it depends on: texts of layers, weights, sizes, options and the fingerprints
of what was read. So a kept result is what a full run would give, to the last bit, also after going back to an old value.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
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
from designer.graph.types import Size3D
from designer.operators.api import Operator, Role
from designer.operators.registry import Registry
from designer.runtime.api import Array, Compiled, RunOptions, RunResult, Step
from designer.runtime.engines import make_engine
from designer.runtime.feeding import Extent, Fed, check_fed, crop, factors, padded_extent, prepare, sized, tiling
from designer.runtime.images import read_image, read_npy
from designer.runtime.network import operator_of, output_layers, tensor, tensors, type_of
from designer.runtime.plan import AnalysisStep, PartStep, Plan, make_plan
from designer.runtime.results import KEEP_BYTES, Results, WeightPrints, fingerprint, layer_text

COMPILED = 4  # parts kept ready beside those of the present run; each holds packed weights and working memory
Progress = Callable[[int, int, str], None]


class Session:
    """Runs `graph` with `weights`. The graph is copied; tell changes with `set_param` and `set_graph`.

    `inference` holds the shapes at the sizes of what was fed last. Not for use by two threads at once.
    """

    def __init__(
        self,
        graph: Graph,
        registry: Registry,
        weights: Weights,
        options: RunOptions | None = None,
        *,
        keep_bytes: int = KEEP_BYTES,
    ) -> None:
        self.registry = registry
        self.options = options if options is not None else RunOptions()
        self._document = graph.copy()
        self._graph = graph.copy()
        self.inference = Inference(self._graph, registry)
        self._fed: dict[str, Fed] = {}
        self._serial = 0
        self._ready: dict[str, tuple[str, Array]] = {}  # input layer -> version, what the network reads
        self._plans: dict[tuple[Source, ...], tuple[Plan, dict[PartStep, str]]] = {}
        self._compiled: OrderedDict[str, Compiled] = OrderedDict()
        self._results = Results(keep_bytes)
        self.set_weights(weights)

    # --- what may change ------------------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """The network as the person wrote it. Read only."""
        return self._document

    def set_weights(self, weights: Weights) -> None:
        """Use other weights; results of layers whose tensors are equal stay valid."""
        self.weights = weights
        self._prints = WeightPrints(weights)
        self.engine = make_engine(self.inference, weights, self.options)
        self._plans.clear()

    def set_input(self, layer: str, array: Array, *, picture: bool) -> None:
        """Feed an input layer with N x C x H x W values. A picture's are 0..1 and get the layer's scale and shift."""
        operator = self._input(layer)
        check_fed(layer, operator, array)
        self._serial += 1
        copy = np.array(array, dtype=np.float32, order="C")
        self._fed[layer] = Fed(copy, picture, self._serial)
        self._take(Edit("Size", {layer: (self._graph[layer], self._sized(self._document[layer]))}))

    def set_input_file(self, layer: str, path: Path) -> None:
        """Feed an input layer with a picture, or with an `.npy` file as it is."""
        if path.suffix.lower() == ".npy":
            self.set_input(layer, read_npy(path), picture=False)
            return
        dims = getattr(self._input(layer), "dims", None)
        self.set_input(layer, read_image(path, dims.channels if isinstance(dims, Size3D) else 3), picture=True)

    def invalidate(self) -> None:
        """Forget all results, so that the next run computes everything; what is compiled stays ready."""
        self._results.clear()

    def set_param(self, layer: str, param: str, text: str) -> None:
        """Change a parameter; DiagnosticError, and nothing changed, when the text breaks its rule."""
        edit = set_params(self._document, {layer: {param: text}})
        changed = edit.layers[layer][1]
        assert changed is not None
        if self.registry.get(changed.type) is not None:
            wrong = [d for d in errors(self.registry.read(changed).diagnostics) if d.parameter == param]
            if wrong:
                raise DiagnosticError(wrong)
        self._document.apply(edit)
        self._take(Edit(edit.title, {layer: (self._graph[layer], self._sized(changed))}))

    def set_graph(self, graph: Graph) -> None:
        """Run another state of the network from now on. What does not depend on the difference stays kept."""
        self._document = graph.copy()
        kept = {name for name in self._fed if name in graph and self._role(graph[name]) is Role.INPUT}
        self._fed = {name: fed for name, fed in self._fed.items() if name in kept}
        before, after = self._graph.layers, {layer.name: self._sized(layer) for layer in graph}
        names = [*after, *(name for name in before if name not in after)]
        self._take(
            Edit(
                "Update",
                {n: (before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)},
            )
        )

    def _take(self, edit: Edit) -> None:
        change = self._graph.apply(edit)
        states = self.inference.update(change)
        harmless = not (states or change.added or change.removed or change.rewired) and all(
            self._role(self._graph[name]) is Role.ANALYSIS for name in change.computed
        )
        if not harmless:
            self._plans.clear()

    def _input(self, layer: str) -> Operator:
        known = self._document.get(layer)
        operator = self.registry.read(known).operator if known is not None else None
        if operator is None or operator.role is not Role.INPUT:
            names = [item.name for item in self._document if self._role(item) is Role.INPUT]
            raise DiagnosticError(
                Diagnostic(
                    "no-such-input",
                    f"there is no input layer '{layer}'",
                    layer=layer,
                    remedy=f"choose one of {', '.join(names)}" if names else "add an input layer",
                )
            )
        return operator

    def _role(self, layer: Layer) -> Role | None:
        cls = self.registry.get(layer.type)
        return cls.role if cls is not None else None

    def _sized(self, layer: Layer) -> Layer:
        fed = self._fed.get(layer.name)
        return layer if fed is None else sized(layer, self.registry.read(layer).operator, fed)

    # --- running --------------------------------------------------------------------------------------------------

    def run(self, capture: Sequence[Source] = (), progress: Progress | None = None) -> RunResult:
        """Compute all outputs and the tensors in `capture`; DiagnosticError says why the network cannot run.

        `progress(done, total, text)` is called before every step and at the end.
        """
        started = perf_counter()
        run = _Run(self, capture)
        result = run.go(progress)
        note = ""
        lost = self._results.trim(run.keys)
        if lost:
            names = ", ".join(dict.fromkeys(source.layer for source in lost))
            limit = self._results.keep_bytes / 2**20
            note = f"results above {limit:.0f} MiB are not kept: the next run computes {names} again"
        milliseconds = (perf_counter() - started) * 1000
        return RunResult(*result, milliseconds, self.weights.note, note)

    def plan(self, capture: Sequence[Source] = ()) -> Plan:
        """What a run for the outputs and `capture` consists of."""
        return self._planned(capture)[0]

    def _planned(self, capture: Sequence[Source]) -> tuple[Plan, dict[PartStep, str]]:
        outputs = [Source(name) for name in output_layers(self.inference)]
        targets = tuple(dict.fromkeys([*outputs, *(tensor(self.inference, source) for source in capture)]))
        if not targets:
            raise DiagnosticError(
                Diagnostic("no-output", "the network has no output layer", remedy="add an output and connect it")
            )
        known = self._plans.get(targets)
        if known is None:
            plan = make_plan(self.inference, targets)
            prints = {step: self._part_print(step) for step in plan.steps if isinstance(step, PartStep)}
            known = self._plans[targets] = (plan, prints)
        return known

    def _part_print(self, step: PartStep) -> str:
        texts = [(layer_text(self._graph[name]), self._prints.of(name)) for name in step.part.layers]
        feeds = [(str(feed), str(type_of(self.inference, feed))) for feed in step.part.feeds]
        return fingerprint(self.options, texts, feeds, [str(source) for source in step.wanted])

    def compiled(self, step: PartStep) -> Compiled:
        """The step's part, made ready by the engine; kept for the next time."""
        return self._compile(step, self._part_print(step))

    def _compile(self, step: PartStep, key: str) -> Compiled:
        ready = self._compiled.get(key)
        if ready is None:
            ready = self._compiled[key] = self.engine.compile(step.part, step.wanted)
        self._compiled.move_to_end(key)
        return ready

    def fed_input(self, layer: str) -> tuple[str, Array]:
        """Version and values of an input layer as the network reads them: scaled and padded."""
        operator = operator_of(self.inference, layer)
        fed = self._fed.get(layer)
        if fed is None:
            raise DiagnosticError(
                Diagnostic(
                    "no-input", f"the input '{layer}' has no data", layer=layer, remedy="choose a picture or a tensor"
                )
            )
        check_fed(layer, operator, fed.array)
        version = fingerprint(fed.serial, fed.picture and factors(operator), tiling(operator))
        ready = self._ready.get(layer)
        if ready is None or ready[0] != version:
            ready = self._ready[layer] = (version, _frozen(prepare(operator, fed)))
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
    """One run of a session."""

    def __init__(self, session: Session, capture: Sequence[Source]) -> None:
        self.session = session
        self.capture = capture
        self.plan, self.prints = session._planned(capture)
        self.values: dict[Source, Array] = {}
        self.versions: dict[Source, str] = {}
        self.cropped: set[Source] = set()
        self.keys: set[str] = set()
        self.steps: list[Step] = []

    def go(self, progress: Progress | None) -> tuple[dict[str, Array], dict[Source, Array], tuple[Step, ...]]:
        session, total = self.session, len(self.plan.steps)
        for name in self.plan.inputs:
            version, array = session.fed_input(name)
            self.versions[Source(name)], self.values[Source(name)] = version, array
        for number, step in enumerate(self.plan.steps):
            if progress is not None:
                progress(number, total, _title(step))
            self.steps.append(self._part(step) if isinstance(step, PartStep) else self._analysis(step))
        if progress is not None:
            progress(total, total, "")
        self._forget_compiled()
        outputs = {name: self._output(Source(name)) for name in output_layers(session.inference)}
        captures = {source: self._value(tensor(session.inference, source)) for source in self.capture}
        return outputs, captures, tuple(self.steps)

    def _part(self, step: PartStep) -> Step:
        session, part = self.session, step.part
        key = fingerprint(self.prints[step], [self.versions[feed] for feed in part.feeds])

        def compute() -> Mapping[Source, Array]:
            made = session._compile(step, self.prints[step]).run({feed: self.values[feed] for feed in part.feeds})
            return cast(Mapping[Source, Array], made)

        return self._do(key, part.layers, session.engine.name, compute)

    def _analysis(self, step: AnalysisStep) -> Step:
        session = self.session
        feeds = {feed: self.values[feed] for feed in step.feeds}
        if step.late:
            feeds = {feed: self._cropped(feed) for feed in feeds}
            self.cropped.update(tensors(session.inference, step.layer))
        versions = [(self.versions[feed], feeds[feed].shape) for feed in step.feeds]
        key = fingerprint(layer_text(session._graph[step.layer]), versions)

        def compute() -> Mapping[Source, Array]:
            return evaluate(session.inference, step.layer, [feeds[feed] for feed in step.feeds])

        return self._do(key, (step.layer,), "numpy", compute)

    def _do(
        self, key: str, layers: tuple[str, ...], engine: str, compute: Callable[[], Mapping[Source, Array]]
    ) -> Step:
        results = self.session._results
        started = perf_counter()
        made = results.get(key)
        cached = made is not None
        if made is None:
            made = {source: _frozen(array) for source, array in compute().items()}
            results.put(key, made)
        self.keys.add(key)
        for source, array in made.items():
            self.values[source], self.versions[source] = array, fingerprint(key, str(source))
        return Step(layers, engine, 0.0 if cached else (perf_counter() - started) * 1000, cached)

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

    def _forget_compiled(self) -> None:
        compiled = self.session._compiled
        room = COMPILED + len(self.prints)
        while len(compiled) > room:
            compiled.popitem(last=False)


def evaluate(inference: Inference, layer: str, inputs: Sequence[Array]) -> dict[Source, Array]:
    """The outputs of an analysis layer, float32; whatever its code raises becomes a DiagnosticError that names it."""
    operator = operator_of(inference, layer)
    try:
        made = operator.evaluate(inputs)
    except DiagnosticError:
        raise
    except Exception as error:  # the code of a plugin may raise anything
        raise DiagnosticError(
            Diagnostic(
                "analysis-failed",
                f"the analysis layer '{layer}' failed: {type(error).__name__}: {error}",
                layer=layer,
                remedy="change its parameters, or remove it",
            )
        ) from error
    arrays = (np.ascontiguousarray(array, dtype=np.float32) for array in made)
    return dict(zip(tensors(inference, layer), arrays, strict=True))


def _frozen(array: Array) -> Array:
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def _title(step: PartStep | AnalysisStep) -> str:
    if isinstance(step, AnalysisStep):
        return step.layer
    layers = step.part.layers
    return layers[0] if len(layers) == 1 else f"{layers[0]} ... {layers[-1]}"
