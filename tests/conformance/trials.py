"""A few layers, run in every way there is: engines, layouts, the exported ONNX file and the exported source.

Single operators can be right where combinations are not: engines merge neighbours and move transpositions through them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from operator_oracles import COMPUTE, Case, Runner, random_inputs, randomise, weights_of

from designer.files.weights import Weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.types import TensorType
from designer.operators.api import Operator
from designer.operators.torch_program import build_program
from designer.runtime.api import Part, RunOptions
from designer.runtime.engine_registry import load_engines
from designer.runtime.engines.onnx_model import build_model
from designer.runtime.skipped_nan import drops_nan
from exporters.pytorch.source import Module, module_source

TOLERANCE = 1e-4  # of the largest value
CANCELED = 0.1  # smaller results may be what single precision leaves of differences of larger values
WOBBLE = 1e-6  # how far inputs are moved to see how sensitive a result is
MOVES = 3  # how often, and how often where a difference would be reported
MOVES_OF_DOUBT = 60
FILLS = 20  # how often NaN that an engine may drop is replaced
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
class Trial:
    """Layers in running order, the types of what they read, and the results that are compared."""

    name: str
    inference: Inference
    part: Part
    types: tuple[TensorType, ...]
    wanted: tuple[Source, ...]

    def __str__(self) -> str:
        return self.name


def layer_of(name: str, case: Case, inputs: Sequence[Source]) -> Layer:
    spec = ActivationSpec(case.activation.type, case.activation.texts()) if case.activation else None
    if spec is None and case.operator.default_activation:
        spec = ActivationSpec(case.operator.default_activation)
    return Layer(name, case.operator.type, inputs=tuple(inputs), params=case.operator.texts(), activation=spec)


def outputs_of(inference: Inference, name: str) -> tuple[Source, ...]:
    """Every tensor that a layer computes."""
    operator = inference.read(name).operator
    assert isinstance(operator, Operator)
    return tuple(Source(name, port.name if i else "") for i, port in enumerate(operator.output_ports()))


UNDEFINED = (
    "out of DATA bounds",
    "is out of bounds",
    "ZeroDivisionError",
)  # what torch says where no engine has a result


def disagreements(trial: Trial, batch: int = 2, seed: int = 0, *, without: str = "") -> list[str]:
    """The ways to run a trial that do not give what torch gives in double precision, with how far they are off.

    The engine `without` is left out.
    """
    program = build_program(trial.inference, trial.part.layers, trial.part.feeds, trial.wanted)
    module = Runner(program).eval()
    randomise(module, seed)
    weights = weights_of(module)
    inputs = random_inputs(trial.types, batch, seed)
    judge = _Judge(trial, module)
    try:
        if not judge.finite(inputs):  # engines treat NaN differently
            inputs = [value.abs() + 0.1 if value.is_floating_point() else value for value in inputs]
        exact, room = judge.exact(inputs), judge.room(inputs)
    except (IndexError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not any(reason in str(error) for reason in UNDEFINED):
            raise
        return []  # computed values are not valid indices or divisors
    found = []
    for way, run in _ways(trial, weights, module).items():
        if without and way.startswith(without):
            continue
        try:
            results = run([value.numpy() for value in inputs])
        except DiagnosticError as error:
            if not all(refused(finding) for finding in error.diagnostics):
                found.append(f"{trial}: {way} fails: {error}")
            continue
        except Exception as error:  # whatever an engine raises is a finding
            found.append(f"{trial}: {way} fails: {str(error).splitlines()[0][:200]}")
            continue
        if _differences(results, exact, room):
            rooms = judge.room(inputs, MOVES_OF_DOUBT), judge.nan_room(inputs, results, _dropping(way, trial))
            doubt = [np.maximum(*pair) for pair in zip(*rooms, strict=True)]
            found += [f"{trial}: {way}: {why}" for why in _differences(results, exact, doubt)]
    return found


def _dropping(way: str, trial: Trial) -> frozenset[str]:
    """The layers in which NaN may be dropped, of which a run says so."""
    exported = {"exported torch": "torch", "exported ONNX": "onnxruntime"}
    engine = ENGINES.get(exported.get(way, way.split()[0]))
    return frozenset(name for name in trial.part.layers if drops_nan(trial.inference, name, engine))


def refused(finding: Diagnostic) -> bool:
    """Whether an engine says by itself that it does not run a layer, and which."""
    return finding.code in ("not-in-engine", "not-in-onnx") and bool(finding.layer)


Change = Callable[[Source, str, torch.Tensor], torch.Tensor]  # a tensor, the layer that reads it, its values


def _unchanged(source: Source, reader: str, value: torch.Tensor) -> torch.Tensor:
    return value


class _Judge:
    """The layers in torch, one after the other, in double precision."""

    def __init__(self, trial: Trial, module: Runner) -> None:
        self._trial = trial
        self._steps = []
        state = module.inner.state_dict()
        for name in trial.part.layers:
            reads = tuple(dict.fromkeys(source for source in trial.inference.graph[name].inputs if source))
            gives = outputs_of(trial.inference, name)
            runner = Runner(build_program(trial.inference, [name], reads, gives)).eval()
            runner.inner.load_state_dict({key: state[key] for key in runner.inner.state_dict()})
            self._steps.append((runner, reads, gives))

    def exact(self, inputs: Sequence[torch.Tensor], change: Change = _unchanged) -> Arrays:
        """The results; `change` is applied to every tensor that a layer reads."""
        values = self._values(inputs, change)
        return [values[source].detach().numpy().copy() for source in self._trial.wanted]

    def finite(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Whether no layer gives NaN or infinity."""
        return all(np.isfinite(value.detach().numpy()).all() for value in self._values(inputs).values())

    def _values(self, inputs: Sequence[torch.Tensor], change: Change = _unchanged) -> dict[Source, torch.Tensor]:
        values = dict(zip(self._trial.part.feeds, inputs, strict=True))
        for name, (runner, reads, gives) in zip(self._trial.part.layers, self._steps, strict=True):
            made = _doubled(runner, [change(source, name, values[source].detach()) for source in reads])
            values |= dict(zip(gives, made, strict=True))
        return values

    def room(self, inputs: Sequence[torch.Tensor], moves: int = MOVES) -> Arrays:
        """How far results may be off: steps, ties and differences of equals depend on the last bit of the inputs."""
        make = torch.Generator().manual_seed(1)
        return self._spread(inputs, lambda source, reader, value: _moved(value, make), moves)

    def nan_room(self, inputs: Sequence[torch.Tensor], results: Arrays, dropping: frozenset[str]) -> Arrays:
        """Infinite where an engine may differ because layers give NaN or infinity, of which a run says so; 0 elsewhere.

        These are results that depend on NaN in `dropping` layers, NaN and infinity in more places (windows and blocks carry
        them to the neighbors), and NaN that is multiplied by 0 in one precision only.
        """
        if self.finite(inputs):
            return [np.zeros(result.shape) for result in results]
        make = torch.Generator().manual_seed(1)

        def filling(droppers: Collection[str]) -> Change:
            def fill(source: Source, reader: str, value: torch.Tensor) -> torch.Tensor:
                return value if {source.layer, reader}.isdisjoint(droppers) else _filled(_holed(value, make), make)

            return fill

        # Layers may drop NaN or keep them, which others drop then: all of them, and each one alone.
        which: list[Collection[str]] = [dropping, *([name] for name in sorted(dropping))]
        spreads = [self._spread(inputs, filling(droppers), FILLS) for droppers in which]
        dependent = [np.maximum.reduce(changes) > 0 for changes in zip(*spreads, strict=True)]
        filled = [self.exact(inputs, lambda source, reader, value: _filled(value, make)) for _ in range(FILLS)]
        found = []
        for number, source in enumerate(self._trial.wanted):
            values = np.stack([draw[number] for draw in filled]).astype(float)
            with np.errstate(all="ignore"):
                steady = values.max(0) - values.min(0) <= TOLERANCE * np.abs(values).max(0)
            missing = np.isnan(self.exact(inputs)[number].astype(float))
            more = ~np.isfinite(results[number].astype(float))
            lost = source.layer in dropping and self._chooses(source.layer)
            allowed = dependent[number] | more | missing & (steady | (source.layer in dropping)) | lost
            found.append(np.where(allowed, np.inf, 0))
        return found

    def _chooses(self, layer: str) -> bool:
        """Whether a layer marks the largest value, which may be a NaN that an engine drops: then it marks none."""
        return self._trial.inference.graph[layer].type == "hardmax"

    def _spread(self, inputs: Sequence[torch.Tensor], change: Change, times: int) -> Arrays:
        """The largest differences that a random change makes."""
        exact = self.exact(inputs)
        found = [np.zeros(result.shape) for result in exact]
        for _ in range(times):
            for number, other in enumerate(self.exact(inputs, change)):
                right = exact[number]
                with np.errstate(all="ignore"):
                    apart = np.abs(other.astype(float) - right.astype(float))
                apart = np.where(np.isfinite(apart), apart, np.where(_same(other, right), 0, np.inf))
                found[number] = np.maximum(found[number], apart)
        return found


def _moved(value: torch.Tensor, make: torch.Generator) -> torch.Tensor:
    """A tensor with its finite values moved by about the precision of fp32."""
    if not value.is_floating_point() or not value.numel():
        return value
    finite = torch.isfinite(value)
    largest = value[finite].abs().max() if finite.any() else 0
    moved = value + WOBBLE * (value.abs() + 0.1 * largest) * torch.randn(value.shape, generator=make)
    return torch.where(finite, moved, value)


def _holed(value: torch.Tensor, make: torch.Generator) -> torch.Tensor:
    """A tensor with more NaN on the lines along its axes that have some: a search along them may end anywhere."""
    missing = value.isnan()
    near = torch.zeros_like(missing)
    for axis in range(value.dim()):
        near |= missing.any(axis, keepdim=True)
    more = near & (torch.rand(value.shape, generator=make) < 0.25)
    return value.masked_fill(more, torch.nan) if value.is_floating_point() else value


def _filled(value: torch.Tensor, make: torch.Generator) -> torch.Tensor:
    """A tensor with random numbers in place of NaN: 0, and some below, between and above its other values."""
    if not value.is_floating_point() or not value.isnan().any():
        return value
    finite = value[torch.isfinite(value)]
    scale = 3 * float(finite.abs().max()) + 1 if finite.numel() else 1.0
    around = 3 * torch.randn((), generator=make)  # all of them are often below or above the others
    numbers = scale * (torch.randn(value.shape, generator=make) + around)
    numbers *= torch.randint(0, 4, value.shape, generator=make).sign()
    return torch.where(value.isnan(), numbers.to(value.dtype), value)


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


def _differences(results: Arrays, exact: Arrays, room: Arrays) -> list[str]:
    return [why for values in zip(results, exact, room, strict=True) if (why := _difference(*values))]


def _difference(made: Any, right: Any, room: Any) -> str:
    if made.shape != right.shape:
        return f"the shape {made.shape} instead of {right.shape}"
    with np.errstate(all="ignore"):
        right = right.astype(made.dtype)
        apart = np.abs(made.astype(float) - right.astype(float))
        finite = right[np.isfinite(right)].astype(float)
        scale = max(float(np.abs(finite).max(initial=0)), CANCELED)
        wrong = np.isfinite(room) & ~_same(made, right) & ~(apart <= TOLERANCE * scale + 20 * room)
        wrong &= ~(np.isinf(made) & (2 * room >= np.abs(right)))  # a division by what may be 0
    if not wrong.any():
        return ""
    place = tuple(int(n) for n in np.argwhere(wrong)[0])
    return f"{wrong.sum()} of {wrong.size} values, {made[place]} instead of {right[place]} at {place}"


def _ways(trial: Trial, weights: Weights, module: Runner) -> dict[str, Callable[[Arrays], Arrays]]:
    def engine(name: str, layout: str) -> Callable[[Arrays], Arrays]:
        def run(arrays: Arrays) -> Arrays:
            options = RunOptions(engine=name, layout=layout, threads=1)
            compiled = ENGINES.make(trial.inference, weights, options).compile(trial.part, trial.wanted)
            made = compiled.run(dict(zip(trial.part.feeds, arrays, strict=True)))
            return [made[source] for source in trial.wanted]

        return run

    found = {f"{name} {layout}": engine(name, layout) for name, layout in RUNS}
    found["exported ONNX"] = lambda arrays: run_onnx(
        build_model(trial.inference, trial.part, trial.wanted, weights).SerializeToString(), arrays
    )
    found["exported torch"] = lambda arrays: _run_source(trial, module, arrays)
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


def _run_source(trial: Trial, module: Runner, arrays: Arrays) -> Arrays:
    text = module_source(Module(trial.inference, module.program, trial.part.feeds, trial.wanted), "Printed")
    space: dict[str, Any] = {}
    exec(compile(text, "printed.py", "exec"), space)
    printed = space["Printed"]().eval()
    printed.load_state_dict(module.inner.state_dict())
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        made = printed(*map(torch.from_numpy, arrays))
    results = list(made.values()) if isinstance(made, dict) else [made]
    return [result.detach().numpy() for result in results]
