"""A few layers, run in every way there is: engines, layouts, the exported ONNX file and the exported source.

Single operators can be right where combinations are not: engines merge neighbours and move transpositions through them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
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
from exporters.pytorch.source import Module, module_source

TOLERANCE = 1e-4  # of the largest value
CANCELED = 0.1  # smaller results may be what single precision leaves of differences of larger values
WOBBLE = 1e-6  # how far inputs are moved to see how sensitive a result is
MOVES = 3  # how often, and how often where a difference would be reported
MOVES_OF_DOUBT = 60
# Engines that are not compared where the right result is NaN or infinite, and the operators that are the reason (None: any).
MAXIMA = frozenset({"pooling", "global_pooling", "adaptive_pooling", "unpooling", "reduce", "top_k"})
LOSE_NAN = {"openvino": None, "onnxruntime": MAXIMA, "exported ONNX": MAXIMA}
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


UNDEFINED = ("out of DATA bounds", "ZeroDivisionError")  # what torch says where no engine has a result


def disagreements(trial: Trial, batch: int = 2, seed: int = 0) -> list[str]:
    """The ways to run a trial that do not give what torch gives in double precision, with how far they are off."""
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
        try:
            results = run([value.numpy() for value in inputs])
        except DiagnosticError as error:
            if not all(refused(finding) for finding in error.diagnostics):
                found.append(f"{trial}: {way} fails: {error}")
            continue
        except Exception as error:  # whatever an engine raises is a finding
            found.append(f"{trial}: {way} fails: {str(error).splitlines()[0][:200]}")
            continue
        strict = not _loses_nan(way, trial)
        if _differences(results, exact, room, strict):
            room = judge.room(inputs, MOVES_OF_DOUBT)
            found += [f"{trial}: {way}: {why}" for why in _differences(results, exact, room, strict)]
    return found


def _loses_nan(way: str, trial: Trial) -> bool:
    kinds = {trial.inference.graph[name].type for name in trial.part.layers}
    return any(way.startswith(engine) and (made is None or made & kinds) for engine, made in LOSE_NAN.items())


def refused(finding: Diagnostic) -> bool:
    """Whether an engine says by itself that it does not run a layer, and which."""
    return finding.code in ("not-in-engine", "not-in-onnx") and bool(finding.layer)


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

    def exact(self, inputs: Sequence[torch.Tensor], make: torch.Generator | None = None) -> Arrays:
        """The results; `make` moves what every layer reads by about the precision of fp32."""
        values = self._values(inputs, make)
        return [values[source].detach().numpy().copy() for source in self._trial.wanted]

    def finite(self, inputs: Sequence[torch.Tensor]) -> bool:
        """Whether no layer gives NaN or infinity."""
        return all(np.isfinite(value.detach().numpy()).all() for value in self._values(inputs).values())

    def _values(
        self, inputs: Sequence[torch.Tensor], make: torch.Generator | None = None
    ) -> dict[Source, torch.Tensor]:
        values = dict(zip(self._trial.part.feeds, inputs, strict=True))
        for runner, reads, gives in self._steps:
            made = _doubled(runner, [_moved(values[source], make) for source in reads])
            values |= dict(zip(gives, made, strict=True))
        return values

    def room(self, inputs: Sequence[torch.Tensor], moves: int = MOVES) -> Arrays:
        """How far results may be off: steps, ties and differences of equals depend on the last bit of the inputs."""
        exact, make = self.exact(inputs), torch.Generator().manual_seed(1)
        room = [np.zeros(result.shape) for result in exact]
        for _ in range(moves):
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


def _differences(results: Arrays, exact: Arrays, room: Arrays, strict: bool) -> list[str]:
    return [why for values in zip(results, exact, room, strict=True) if (why := _difference(*values, strict))]


def _difference(made: Any, right: Any, room: Any, strict: bool) -> str:
    if made.shape != right.shape:
        return f"the shape {made.shape} instead of {right.shape}"
    with np.errstate(all="ignore"):
        right = right.astype(made.dtype)
        apart = np.abs(made.astype(float) - right.astype(float))
        finite = right[np.isfinite(right)].astype(float)
        scale = max(float(np.abs(finite).max(initial=0)), CANCELED)
        wrong = np.isfinite(room) & ~_same(made, right) & ~(apart <= TOLERANCE * scale + 20 * room)
    if not strict:
        wrong &= np.isfinite(right)
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
