"""Stand-ins for sessions and sources that list every call, so that tests can compare whole jobs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from designer.graph.diagnostics import DiagnosticError
from designer.runtime.sources import SourceData, SourceInfo, kind_of

Log = list[tuple[Any, ...]]


class ListedSession:
    """A session whose outputs are its inputs plus 1. A value above 100 is refused; the notes are the sum of the values."""

    graph: Any = SimpleNamespace(name="net", get=lambda layer: None)
    registry: Any = None
    inference: Any = None
    weights: Any = None
    options: Any = None

    def __init__(self, log: Log, name: str = "") -> None:
        self.log, self.name = log, name
        self.inputs: dict[str, Any] = {}

    def invalidate(self) -> None:
        self.log.append(("invalidate", self.name))

    def set_input(self, layer: str, array: Any, *, is_image: bool) -> None:
        self.inputs[layer] = array
        self.log.append(("input", layer, float(array.flat[0]), is_image))

    def run(self) -> Any:
        found = {layer: float(array.flat[0]) for layer, array in self.inputs.items()}
        self.log.append(("run", self.name, found))
        if max(found.values()) > 100:
            raise DiagnosticError.of("bad-size", "first", remedy="none")
        outputs = {f"{layer}_out": array + 1 for layer, array in self.inputs.items()}
        return SimpleNamespace(outputs=outputs, notes=lambda: (f"sum {sum(found.values()):g}",))


def tensor(value: float, height: int = 2, width: int = 3) -> np.ndarray:
    return np.full((1, 3, height, width), value, np.float32)


def listed_sources(log: Log, infos: dict[str, SourceInfo] | None = None) -> Any:
    """`Sources` whose arrays hold the number of the frame, of files the number in their name."""

    class Listed:
        def take(self, path: Path, operator: Any, frame: int | None = None) -> SourceData:
            log.append(("take", str(path), operator, frame))
            value = frame if frame is not None else int(path.stem) if path.stem.isdecimal() else 7
            if path.name == "broken.png":
                raise DiagnosticError.of("cannot-read", "it is broken", remedy="none")
            taken = value + 50 if kind_of(path) == "camera" else frame
            return SourceData(tensor(value), path.suffix != ".npy", taken)

        def info(self, path: Path) -> SourceInfo:
            log.append(("info", str(path)))
            return (infos or {}).get(str(path), SourceInfo(kind_of(path)))

        def camera_fps(self, path: Path) -> float:
            return 12.5

        def release(self, keep: frozenset[str] = frozenset()) -> None:
            log.append(("release", sorted(keep)))

    return Listed


def listed_animation(log: Log) -> Any:
    class Listed:
        def __init__(self, session: Any) -> None:
            self.session = session

        def show(self, frame: int) -> None:
            log.append(("show", frame))

    return Listed
