"""Which engine, precision and device go together on this machine, and why the others do not. Imports neither Qt nor an engine."""

from __future__ import annotations

from typing import NamedTuple

from designer.runtime.api import LAYOUTS, PRECISIONS
from designer.runtime.engine_api import EngineDescriptor
from designer.runtime.engine_registry import default_engines
from designer.texts import mark, tr, tr_data


class Choice(NamedTuple):
    """One value of a setting: its text for people, and the reason why it cannot be chosen now (empty: it can)."""

    value: str
    title: str
    reason: str = ""


PRECISION_TITLES = {"fp32": mark("FP32 (single)"), "fp16": mark("FP16 (half)"), "bf16": mark("BF16 (brain float)")}
LAYOUT_TITLES = {"nchw": mark("NCHW (planes)"), "nhwc": mark("NHWC (channels last)")}


def engines() -> tuple[Choice, ...]:
    registry = default_engines()
    found = []
    for engine in registry:
        problem = registry.problem(engine)
        found.append(
            Choice(engine.name, engine.title, "" if problem is None else f"{problem.message}: {problem.remedy}")
        )
    return tuple(found)


def engine_problems() -> list[str]:
    """What is wrong about plug-ins, for each its name, the reason and what to do."""
    return [f"{found.message}: {found.remedy}" for found in default_engines().diagnostics]


def devices(engine: str) -> tuple[Choice, ...]:
    """All kinds of devices that an engine here runs on; those that `engine` cannot use say which engine can."""
    registry, chosen = default_engines(), _known(engine)
    found: dict[str, Choice] = {}
    for descriptor in (*([chosen] if chosen is not None else []), *registry):
        for device, count, reason in registry.devices(descriptor):
            why = reason
            if chosen is not None and chosen.device(device.kind) is None:
                why = tr(
                    "{engine} cannot use it; choose {others}",
                    engine=chosen.title,
                    others=registry.offering(device=device.kind),
                )
            for number in range(max(count, 1)):
                value = device.kind if device.kind == "cpu" else f"{device.kind}:{number}"
                found.setdefault(value, Choice(value, _device_title(device.kind, number), why))
    return tuple(found.values())


def precisions(engine: str, device: str) -> tuple[Choice, ...]:
    chosen = _known(engine)
    used = chosen.device(device) if chosen is not None else None
    offered = used.precisions if used is not None else PRECISIONS[:1]
    return tuple(Choice(v, tr_data(PRECISION_TITLES[v]), "" if v in offered else _elsewhere(v)) for v in PRECISIONS)


def _elsewhere(precision: str) -> str:
    others = default_engines().offering(precision=precision)
    return tr("needs {others}", others=others) if others else tr("no engine here computes in it")


def tiles(present: int) -> tuple[Choice, ...]:
    """Sides of tiles, `present` among them where the file has another."""
    sides = sorted({256, 512, 1024, 2048, *([present] if present > 0 else [])})
    return (
        Choice("-1", tr("where memory asks for it")),
        Choice("0", tr("never")),
        *(Choice(str(side), tr("{side} x {side} pixels", side=side)) for side in sides),
    )


def layouts(engine: str) -> tuple[Choice, ...]:
    chosen = _known(engine)
    offered = chosen.layouts if chosen is not None else LAYOUTS
    title = chosen.title if chosen is not None else ""
    why = tr("{engine} does not take it", engine=title)
    return tuple(Choice(v, tr_data(LAYOUT_TITLES[v]), "" if v in offered else why) for v in LAYOUTS)


def _known(engine: str) -> EngineDescriptor | None:
    return default_engines().engines.get(engine)


def _device_title(kind: str, number: int) -> str:
    if kind == "cpu":
        return "CPU"
    return tr("CUDA device {number}", number=number) if kind == "cuda" else f"{kind}:{number}"
