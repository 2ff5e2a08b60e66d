"""Available combinations of engine, device and precision on this machine, and why others are unavailable. Imports neither Qt nor an engine."""

from __future__ import annotations

from typing import NamedTuple

from designer.runtime.api import LAYOUTS, PRECISIONS
from designer.runtime.engine_api import EngineDescriptor
from designer.runtime.engine_registry import default_engines
from designer.texts import mark, tr, tr_data


class Choice(NamedTuple):
    """One value of a setting: its displayed title, and the reason why it is unavailable, or ""."""

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
            Choice(
                engine.name, tr_data(engine.title), "" if problem is None else f"{problem.message}: {problem.remedy}"
            )
        )
    return tuple(found)


def engine_problems() -> list[str]:
    """Problems of engine plug-ins, each with name, reason and remedy."""
    return [f"{found.message}: {found.remedy}" for found in default_engines().diagnostics]


def devices(engine: str) -> tuple[Choice, ...]:
    """All kinds of devices that any engine can use; those that `engine` cannot use name the engines that can."""
    registry, chosen = default_engines(), _known(engine)
    found: dict[str, Choice] = {}
    for descriptor in (*([chosen] if chosen is not None else []), *registry):
        for device, count, reason in registry.devices(descriptor):
            why = reason
            if chosen is not None and chosen.device(device.kind) is None:
                why = tr(
                    "not supported by {engine}; choose {others}",
                    engine=tr_data(chosen.title),
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
    return tr("requires {others}", others=others) if others else tr("not supported by any installed engine")


def tiles(present: int) -> tuple[Choice, ...]:
    """Tile sizes, including `present` if the file has another one."""
    sides = sorted({256, 512, 1024, 2048, *([present] if present > 0 else [])})
    return (
        Choice("-1", tr("automatic")),
        Choice("0", tr("never")),
        *(Choice(str(side), tr("{side} x {side} pixels", side=side)) for side in sides),
    )


def layouts(engine: str) -> tuple[Choice, ...]:
    chosen = _known(engine)
    offered = chosen.layouts if chosen is not None else LAYOUTS
    title = tr_data(chosen.title) if chosen is not None else ""
    why = tr("not supported by {engine}", engine=title)
    return tuple(Choice(v, tr_data(LAYOUT_TITLES[v]), "" if v in offered else why) for v in LAYOUTS)


def _known(engine: str) -> EngineDescriptor | None:
    return default_engines().engines.get(engine)


def _device_title(kind: str, number: int) -> str:
    if kind == "cpu":
        return "CPU"
    return tr("CUDA device {number}", number=number) if kind == "cuda" else f"{kind}:{number}"
