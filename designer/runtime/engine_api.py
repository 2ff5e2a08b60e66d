"""The interface of an engine. One module in `designer/runtime/engines`, or in a plugin, declares one `EngineDescriptor`.

Importing it must not import the engine's library: `available` reports whether it is installed, the rest imports it when called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import util
from time import perf_counter

from designer.files.settings import ENGINE_NAME
from designer.files.weights import Weights
from designer.graph.diagnostics import Diagnostic
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.runtime.api import LAYOUTS, PRECISIONS, Compiled, Part, RunOptions, Tensor
from designer.runtime.number_formats import FORMATS
from designer.texts import tr

__all__ = [
    "Compiled",
    "Device",
    "Engine",
    "EngineDescriptor",
    "KernelMaker",
    "Part",
    "PreparedStep",
    "RunOptions",
    "Sample",
    "SingleStep",
    "StepTimer",
    "Tensor",
    "requires",
]

KernelMaker = Callable[[int, int], tuple[Callable[[], object], float]]
"""`(threads, size)` to a call that runs the kernel once in fp32, and its number of operations."""


class Engine(ABC):
    """Compiles groups of layers.

    `inference` (with `inference.graph`, `.states`, `.read`) has the sizes of the current run when `compile` is called;
    `weights` never change. `options` were checked against the descriptor.
    """

    def __init__(self, inference: Inference, weights: Weights, options: RunOptions) -> None:
        self.inference = inference
        self.weights = weights
        self.options = options

    @abstractmethod
    def compile(self, part: Part, wanted: Sequence[Source]) -> Compiled:
        """Compile `part` to compute the tensors in `wanted`. Raises DiagnosticError that names layers that cannot run."""


@dataclass
class Sample:
    """Repeated times of layers that ran as one step. `what` names the engine's kernels, if it has names for them."""

    layers: tuple[str, ...]
    seconds: list[float] = field(default_factory=list)
    what: str = ""


@dataclass(frozen=True)
class PreparedStep:
    """`run` runs a step once and returns its time in s; `read` reads its inputs, which brings them into the cache."""

    run: Callable[[], float]
    read: Callable[[], object]


@dataclass(frozen=True)
class SingleStep:
    """A step that can run by itself on random data: `layers` and `what` as in `Sample`.

    Steps with the same `key` do the same work: equal operations, parameters, shapes and element types. `bytes` are read or written.
    `prepare` allocates the data.
    """

    layers: tuple[str, ...]
    what: str
    key: str
    bytes: int
    prepare: Callable[[], PreparedStep]


class StepTimer(ABC):
    """Times a part of a network: as a whole without a profiler, and its steps with the engine's profiler.

    `tick` is called after every run; `warmup` runs are not counted.
    """

    def __init__(self, engine: Engine, part: Part, wanted: Sequence[Source], feeds: Mapping[Source, Tensor]) -> None:
        self.engine = engine
        self.part = part
        self.wanted = tuple(wanted)
        self.feeds = feeds

    def whole(self, runs: int, warmup: int, tick: Callable[[], None]) -> list[float]:
        """Seconds of each run."""
        compiled = self.engine.compile(self.part, self.wanted)
        times = []
        for number in range(warmup + runs):
            began = perf_counter()
            compiled.run(self.feeds)
            if number >= warmup:
                times.append(perf_counter() - began)
            tick()
        return times

    @abstractmethod
    def layers(self, runs: int, warmup: int, tick: Callable[[], None]) -> list[Sample]:
        """Times by step; a sample without layers has the time of kernels that belong to no layer."""

    def single_steps(self) -> list[SingleStep]:
        """The steps of the part in execution order, found without running it; empty if they cannot run by themselves."""
        return []


def _always() -> tuple[int, str]:
    return 1, ""


@dataclass(frozen=True, slots=True)
class Device:
    """A kind of device that an engine supports, with the supported precisions.

    `count` returns the number of such devices in this machine, and the reason if there is none. With several, options name
    one as `kind:number`; the kind alone is the first.
    """

    kind: str = "cpu"
    precisions: tuple[str, ...] = ("fp32",)
    count: Callable[[], tuple[int, str]] = _always

    def __post_init__(self) -> None:
        if not self.precisions or not set(self.precisions) <= set(PRECISIONS):
            raise ValueError(f"precisions of the device '{self.kind}' must be among {', '.join(PRECISIONS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDescriptor:
    """The declaration of an engine. A missing or invalid field raises TypeError or ValueError on import."""

    name: str  # in files and options: lower-case letters, digits and underscores
    title: str  # on screen
    package: str  # the distribution whose version is written to records and reports
    engine: Callable[[Inference, Weights, RunOptions], Engine]
    step_timer: Callable[[Engine, Part, Sequence[Source], Mapping[Source, Tensor]], StepTimer]
    kernels: Mapping[str, KernelMaker]  # by name; the fastest is the compute peak of the processor, if that is a device
    available: Callable[[], Diagnostic | None]  # None, or the reason and what to do
    devices: tuple[Device, ...] = (Device(),)
    layouts: tuple[str, ...] = ("nchw",)
    formats: tuple[str, ...] = ()  # number formats that single layers can have, as in number_formats.py
    skips_nan: frozenset[str] = frozenset()  # ONNX nodes and types of operators that may make a number of NaN
    stand_in: str = ""  # the engine that runs parts which this one rejects with "not-in-onnx"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not ENGINE_NAME.fullmatch(self.name):
            raise ValueError(f"the name {self.name!r} of an engine must be lower-case letters, digits and underscores")
        for key in ("title", "package"):
            if not isinstance(getattr(self, key), str) or not getattr(self, key):
                raise ValueError(f"{key} of the engine '{self.name}' must be a text")
        for key in ("engine", "step_timer", "available"):
            if not callable(getattr(self, key)):
                raise TypeError(f"{key} of the engine '{self.name}' must be callable")
        on_processor = any(getattr(device, "kind", "") == "cpu" for device in self.devices)
        if (on_processor and not self.kernels) or not all(callable(make) for make in self.kernels.values()):
            raise TypeError(f"kernels of the engine '{self.name}' must map names to functions")
        if not self.devices or not all(isinstance(device, Device) for device in self.devices):
            raise TypeError(f"devices of the engine '{self.name}' must be Device(...)")
        if not self.layouts or not set(self.layouts) <= set(LAYOUTS):
            raise ValueError(f"layouts of the engine '{self.name}' must be among {', '.join(LAYOUTS)}")
        if not set(self.formats) <= FORMATS.keys():
            raise ValueError(f"formats of the engine '{self.name}' must be among {', '.join(FORMATS)}")

    def device(self, name: str) -> Device | None:
        """The device kind for the option `name`; None if the engine does not support it."""
        return next((device for device in self.devices if device.kind == name.partition(":")[0]), None)


def requires(*modules: str, remedy: str) -> Callable[[], Diagnostic | None]:
    """An `available` that looks for modules without importing them."""

    def available() -> Diagnostic | None:
        missing = [name for name in modules if util.find_spec(name) is None]
        if not missing:
            return None
        return Diagnostic(
            "engine-unavailable", tr("{missing} is not installed", missing=" and ".join(missing)), remedy=remedy
        )

    return available
