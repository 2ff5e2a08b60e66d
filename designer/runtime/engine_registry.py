"""Discovers engines like operators, creates them, and checks their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from designer.files.weights import Weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.plugins import entry_points, load_each, plugin_files, plugin_folder, walk
from designer.runtime.api import Part, RunOptions, Tensor
from designer.runtime.checked_engine import CheckedEngine, CheckedTimer, broken, guarded, reason_of
from designer.runtime.engine_api import Device, EngineDescriptor
from designer.runtime.machine import check_options
from designer.texts import tr, tr_data

ENTRY_POINT_GROUP = "layerwright.engines"
PACKAGE = "designer.runtime.engines"


@dataclass
class EngineRegistry:
    """Engines by name. `diagnostics` lists the plugins that could not be used, with reasons."""

    engines: dict[str, EngineDescriptor] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def __iter__(self) -> Iterator[EngineDescriptor]:
        return iter(self.engines.values())

    def register(self, descriptor: EngineDescriptor) -> None:
        """Add one engine. Raises ValueError if the name is taken."""
        if self.engines.get(descriptor.name, descriptor) is not descriptor:
            raise ValueError(f"the engine '{descriptor.name}' is declared twice")
        self.engines[descriptor.name] = descriptor

    def register_module(self, module: ModuleType) -> bool:
        """Add every descriptor in `module`; returns whether there was one."""
        found = [value for value in vars(module).values() if isinstance(value, EngineDescriptor)]
        for descriptor in found:
            self.register(descriptor)
        return bool(found)

    def take(self, loaded: object) -> None:
        """Add the object of an entry point: a descriptor, or a module with descriptors."""
        if isinstance(loaded, EngineDescriptor):
            self.register(loaded)
        elif not isinstance(loaded, ModuleType) or not self.register_module(loaded):
            raise TypeError(f"{loaded!r} is not an EngineDescriptor and has none")

    def title(self, name: str) -> str:
        """The title of an engine; the name itself if it is unknown."""
        known = self.engines.get(name)
        return tr_data(known.title) if known is not None else name

    def get(self, name: str) -> EngineDescriptor:
        """The engine called `name`. Raises DiagnosticError if there is none."""
        known = self.engines.get(name)
        if known is None:
            raise DiagnosticError.of(
                "unknown-engine",
                tr("there is no engine '{name}'", name=name),
                remedy=tr(
                    "choose one of {engines}, or install the plugin that provides it",
                    engines=", ".join(self.engines),
                ),
            )
        return known

    def problem(self, descriptor: EngineDescriptor) -> Diagnostic | None:
        """Why an engine cannot be used on this machine, and what to do; None if it can."""
        try:
            found = descriptor.available()
        except Exception as error:  # a plugin may raise anything
            return broken(descriptor, tr("available() raised {reason_of}", reason_of=reason_of(error)))
        if found is None or isinstance(found, Diagnostic):
            return found
        return broken(descriptor, tr("available() returned {found!r}, not None or a Diagnostic", found=found))

    def devices(self, descriptor: EngineDescriptor) -> list[tuple[Device, int, str]]:
        """The device kinds of an engine, each with its number in this machine and the reason if that is 0."""
        found = []
        for device in descriptor.devices:
            try:
                count, reason = device.count()
            except Exception as error:
                count, reason = 0, f"count() of the device '{device.kind}' raised {reason_of(error)}"
            found.append((device, count, reason))
        return found

    def make(self, inference: Inference, weights: Weights, options: RunOptions) -> CheckedEngine:
        """Create the engine for `options`. Raises DiagnosticError if it does not exist or does not support the options."""
        descriptor = self.get(options.engine)
        self._check(descriptor, options)
        made = guarded(descriptor, "start", (), lambda: descriptor.engine(inference, weights, options))
        return CheckedEngine(descriptor, made, inference)

    def step_timer(
        self,
        inference: Inference,
        weights: Weights,
        options: RunOptions,
        part: Part,
        wanted: Sequence[Source],
        feeds: Mapping[Source, Tensor],
    ) -> CheckedTimer:
        """Create the step timer of the engine for `part`. Raises DiagnosticError as `make` does."""
        made = self.make(inference, weights, options)
        descriptor = made.descriptor
        layers = part.layers
        timer = guarded(descriptor, "profile", layers, lambda: descriptor.step_timer(made.engine, part, wanted, feeds))
        return CheckedTimer(descriptor, timer, part)

    def offering(self, *, device: str = "", precision: str = "") -> str:
        """The engines that support a device kind or a precision, for a message: "PyTorch on CUDA"; "" if there are none."""
        found = []
        for descriptor in self:
            kinds = [
                offered.kind
                for offered in descriptor.devices
                if device in ("", offered.kind) and (not precision or precision in offered.precisions)
            ]
            if kinds:
                found.append(f"{tr_data(descriptor.title)} on {' or '.join(kind.upper() for kind in kinds)}")
        return ", ".join(found)

    def _check(self, descriptor: EngineDescriptor, options: RunOptions) -> None:
        check_options(options)
        problem = self.problem(descriptor)
        if problem is not None:
            message = tr(
                "the engine {title} cannot be used: {message}", title=tr_data(descriptor.title), message=problem.message
            )
            raise DiagnosticError.of(problem.code, message, remedy=problem.remedy)
        kind, title = options.device.partition(":")[0], tr_data(descriptor.title)
        device = descriptor.device(options.device)
        if device is None:
            kinds = ", ".join(device.kind for device in descriptor.devices)
            message = tr("{title} runs on {kinds}, not on '{device}'", title=title, kinds=kinds, device=options.device)
            raise _refused("device", message, kinds, self.offering(device=kind))
        if options.precision not in device.precisions:
            message = tr(
                "{title} on {kind} computes in {precisions} and not in {precision}",
                title=title,
                kind=kind,
                precisions=", ".join(device.precisions),
                precision=options.precision,
            )
            raise _refused("precision", message, device.precisions[0], self.offering(precision=options.precision))
        if options.layout not in descriptor.layouts:
            message = tr(
                "{title} supports the layout {layouts} and not {layout}",
                title=title,
                layouts=", ".join(descriptor.layouts),
                layout=options.layout,
            )
            raise _refused("layout", message, descriptor.layouts[0], "")
        unknown = [name for _, name in options.formats if name not in descriptor.formats]
        if unknown:
            message = tr("{title} cannot compute single layers in {format}", title=title, format=unknown[0])
            others = [other.title for other in self if unknown[0] in other.formats]
            raise _refused("format", message, ", ".join(descriptor.formats) or ", ".join(others), "")


def _refused(what: str, message: str, choice: str, others: str) -> DiagnosticError:
    remedy = f"choose {choice}" + (f", or {others}" if others else "")
    return DiagnosticError.of(f"{what}-unavailable", message, remedy=remedy)


def load_engines(plugin_folders: Iterable[Path] = (), *, installed: bool = True) -> EngineRegistry:
    """A new registry: the library, installed plugins, then every `.py` file in `plugin_folders`."""
    registry = EngineRegistry()
    for module in walk(PACKAGE):
        registry.register_module(module)
    if installed:
        registry.diagnostics += load_each(entry_points(ENTRY_POINT_GROUP), registry.take)
    registry.diagnostics += load_each(plugin_files(plugin_folders), registry.register_module)
    return registry


@lru_cache(maxsize=1)
def default_engines() -> EngineRegistry:
    """The engines of this process, loaded once: library, entry points and the user's plugin folder."""
    return load_engines([plugin_folder()])
