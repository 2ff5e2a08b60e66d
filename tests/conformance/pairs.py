"""Two operators in a row, run in every way there is: engines, layouts, the exported ONNX file and the exported source.

Single operators can be right where pairs are not: engines merge neighbours and move transpositions through them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from operator_oracles import COMPUTE, REGISTRY, Case, Feeds, Runner, random_inputs, randomise, weights_of

from designer.files.weights import Weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.types import ShapeError, TensorType
from designer.operators.torch_program import build_program
from designer.runtime.api import Part, RunOptions
from designer.runtime.engine_registry import load_engines
from designer.runtime.engines.onnx_model import build_model
from exporters.pytorch.source import Module, module_source

TOLERANCE = 1e-4  # of the largest value
WOBBLE = 1e-6  # how far inputs are moved to see how sensitive a result is
Arrays = list[np.ndarray[Any, Any]]
ENGINES = load_engines(installed=False)
RUNS = [(engine.name, layout) for engine in ENGINES if not ENGINES.problem(engine) for layout in engine.layouts]

# Operators that one of the engines lacks; a worked example of each is in tests/operators.
CASES = [
    case
    for case in COMPUTE
    if not {"onnx", "source"} & case.subject.exceptions.keys() and all(t.rank for t in case.types)
]


@dataclass(frozen=True)
class Pair:
    """`first` feeds the first input of `second`; `feeds` are the types of what both read besides."""

    first: Case
    second: Case
    inference: Inference
    part: Part
    types: tuple[TensorType, ...]

    def __str__(self) -> str:
        return f"{self.first.name} -> {self.second.name}"


def names() -> list[str]:
    """The operators and activations that are paired."""
    return list(dict.fromkeys(case.subject.type for case in CASES))


def pairs_from(first: str) -> Iterator[Pair]:
    """Every pair that begins with an operator: each example of it with the first fitting example of every other one."""
    by_second: dict[str, list[Case]] = {}
    for case in CASES:
        by_second.setdefault(case.subject.type, []).append(case)
    for one in (case for case in CASES if case.subject.type == first):
        for others in by_second.values():
            found = next((pair for other in others if (pair := fitted(one, other)) is not None), None)
            if found is not None:
                yield found


def fitted(one: Case, other: Case) -> Pair | None:
    """The pair, where the second operator accepts what the first one gives."""
    (made, *_) = one.operator.infer_checked(one.types)
    if one.activation is not None:
        made = one.activation.infer_checked((made,))[0]
    rest = other.types[1:]
    if len(other.types) > 1 and other.types[1] == other.types[0]:  # what is added, joined, ... has the same shape
        rest = tuple(made if kind == other.types[0] else kind for kind in rest)
    try:
        before = other.operator.infer_checked((made, *rest))
        if other.activation is not None:
            other.activation.infer_checked(before[:1])
    except (ShapeError, ValueError):
        return None
    types = (*one.types, *rest)
    lookup = Feeds(REGISTRY, {f"in_{i}": kind for i, kind in enumerate(types)})
    sources = [Source(name) for name in lookup.types]
    layers = [Layer(source.layer, "test_feed") for source in sources]
    layers.append(_layer("first", one, sources[: len(one.types)]))
    layers.append(_layer("second", other, [Source("first"), *sources[len(one.types) :]]))
    inference = Inference(Graph(layers), lookup)
    if inference.diagnostics():
        return None
    return Pair(one, other, inference, Part(("first", "second"), tuple(sources)), types)


def _layer(name: str, case: Case, inputs: Sequence[Source]) -> Layer:
    spec = ActivationSpec(case.activation.type, case.activation.texts()) if case.activation else None
    if spec is None and case.operator.default_activation:
        spec = ActivationSpec(case.operator.default_activation)
    return Layer(name, case.operator.type, inputs=tuple(inputs), params=case.operator.texts(), activation=spec)


def disagreements(pair: Pair, batch: int = 2, seed: int = 0) -> list[str]:
    """The ways to run a pair that do not give what torch gives in double precision, with how far they are off."""
    wanted = _wanted(pair)
    program = build_program(pair.inference, pair.part.layers, pair.part.feeds, wanted)
    module = Runner(program).eval()
    randomise(module, seed)
    weights = weights_of(module)
    inputs = random_inputs(pair.types, batch, seed)
    judge = _Judge(pair, wanted, module)
    try:
        if not judge.finite(inputs):  # engines treat NaN differently
            inputs = [value.abs() + 0.1 if value.is_floating_point() else value for value in inputs]
        exact, room = judge.exact(inputs), judge.room(inputs)
    except (IndexError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "out of DATA bounds" not in str(error):
            raise
        return []  # the first one's values are no indices for the second one
    found = []
    for way, run in _ways(pair, wanted, weights, module).items():
        try:
            results = run([value.numpy() for value in inputs])
        except DiagnosticError as error:
            if not all(refused(finding) for finding in error.diagnostics):
                found.append(f"{pair}: {way} fails: {error}")
            continue
        except Exception as error:  # whatever an engine raises is a finding
            found.append(f"{pair}: {way} fails: {str(error).splitlines()[0][:200]}")
            continue
        for made, right, allowed in zip(results, exact, room, strict=True):
            if why := _difference(made, right, allowed):
                found.append(f"{pair}: {way}: {why}")
    return found


def refused(finding: Diagnostic) -> bool:
    """Whether an engine says by itself that it does not run a layer, and which."""
    return finding.code in ("not-in-engine", "not-in-onnx") and bool(finding.layer)


def _wanted(pair: Pair) -> list[Source]:
    ports = pair.second.operator.output_ports()
    return [Source("second", port.name if index else "") for index, port in enumerate(ports)]


class _Judge:
    """Both operators in torch, one after the other, in double precision."""

    def __init__(self, pair: Pair, wanted: Sequence[Source], module: Runner) -> None:
        between, count = Source("first"), len(pair.first.types)
        feeds = pair.part.feeds
        self._first, self._second = (
            Runner(build_program(pair.inference, [layer], reads, gives)).eval()
            for layer, reads, gives in (
                ("first", feeds[:count], [between]),
                ("second", (between, *feeds[count:]), wanted),
            )
        )
        self._count = count
        state = module.inner.state_dict()
        for part in (self._first, self._second):
            part.inner.load_state_dict({key: state[key] for key in part.inner.state_dict()})

    def exact(self, inputs: Sequence[torch.Tensor], make: torch.Generator | None = None) -> Arrays:
        """The results; `make` moves what the first and the second operator read by about the precision of fp32."""
        own, others = inputs[: self._count], inputs[self._count :]
        (between,) = _doubled(self._first, [_moved(value, make) for value in own])
        results = _doubled(self._second, [_moved(value, make) for value in (between, *others)])
        return [result.detach().numpy().copy() for result in results]

    def finite(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Whether what passes between the operators and comes out are numbers."""
        between = _doubled(self._first, inputs[: self._count])
        return all(np.isfinite(value).all() for value in (*(b.detach().numpy() for b in between), *self.exact(inputs)))

    def room(self, inputs: Sequence[torch.Tensor]) -> Arrays:
        """How far results may be off: steps, ties and differences of equals depend on the last bit of the inputs."""
        exact, make = self.exact(inputs), torch.Generator().manual_seed(1)
        room = [np.zeros(result.shape) for result in exact]
        for _ in range(3):
            for number, other in enumerate(self.exact(inputs, make)):
                right = exact[number]
                with np.errstate(all="ignore"):
                    change = np.abs(other.astype(float) - right.astype(float))
                change = np.where(np.isfinite(change), change, np.where(_same(other, right), 0, np.inf))
                room[number] = np.maximum(room[number], change)
        return room


def _moved(value: torch.Tensor, make: torch.Generator | None) -> torch.Tensor:
    if make is None or not value.is_floating_point() or not value.numel():
        return value
    size = value.abs() + 0.1 * value.abs().max()
    return value + WOBBLE * size * torch.randn(value.shape, generator=make)


def _doubled(module: Runner, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an operator that is fast only where all numbers have one precision says so
        try:
            double = [value.double() if value.is_floating_point() else value for value in inputs]
            return [*module.double()(*double)]
        except RuntimeError:  # some operators make numbers in single precision
            single = [value.float() if value.is_floating_point() else value for value in inputs]
            return [*module.float()(*single)]


def _same(one: Any, other: Any) -> Any:
    return (one == other) | (np.isnan(one) & np.isnan(other)) if one.dtype.kind == "f" else one == other


def _difference(made: Any, right: Any, room: Any) -> str:
    if made.shape != right.shape:
        return f"the shape {made.shape} instead of {right.shape}"
    with np.errstate(all="ignore"):
        right = right.astype(made.dtype)
        apart = np.abs(made.astype(float) - right.astype(float))
        finite = right[np.isfinite(right)].astype(float)
        scale = max(float(np.abs(finite).max(initial=0)), 1e-3)
        wrong = ~_same(made, right) & ~(apart <= TOLERANCE * scale + 20 * room)
    if not wrong.any():
        return ""
    place = tuple(int(n) for n in np.argwhere(wrong)[0])
    return f"{wrong.sum()} of {wrong.size} values, {made[place]} instead of {right[place]} at {place}"


def _ways(
    pair: Pair, wanted: Sequence[Source], weights: Weights, module: Runner
) -> dict[str, Callable[[Arrays], Arrays]]:
    def engine(name: str, layout: str) -> Callable[[Arrays], Arrays]:
        def run(arrays: Arrays) -> Arrays:
            options = RunOptions(engine=name, layout=layout, threads=1)
            compiled = ENGINES.make(pair.inference, weights, options).compile(pair.part, wanted)
            made = compiled.run(dict(zip(pair.part.feeds, arrays, strict=True)))
            return [made[source] for source in wanted]

        return run

    found = {f"{name} {layout}": engine(name, layout) for name, layout in RUNS}
    found["exported ONNX"] = lambda arrays: run_onnx(
        build_model(pair.inference, pair.part, wanted, weights).SerializeToString(), arrays
    )
    found["exported torch"] = lambda arrays: _run_source(pair, wanted, module, arrays)
    return found


def run_onnx(model: bytes, arrays: Arrays) -> Arrays:
    """A model as its users run it: by ONNX Runtime with everything at its default but the number of threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = {entry.name: array for entry, array in zip(session.get_inputs(), arrays, strict=True)}
    found: Arrays = session.run(None, feeds)
    return found


def _run_source(pair: Pair, wanted: Sequence[Source], module: Runner, arrays: Arrays) -> Arrays:
    text = module_source(Module(pair.inference, module.program, pair.part.feeds, tuple(wanted)), "Printed")
    space: dict[str, Any] = {}
    exec(compile(text, "printed.py", "exec"), space)
    printed = space["Printed"]().eval()
    printed.load_state_dict(module.inner.state_dict())
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        made = printed(*map(torch.from_numpy, arrays))
    results = list(made.values()) if isinstance(made, dict) else [made]
    return [result.detach().numpy() for result in results]
