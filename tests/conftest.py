"""What all tests share: packages that may be blocked, and a home folder of their own."""

from __future__ import annotations

import atexit
import functools
import gc
import itertools
import json
import os
import re
import signal
import sys
import traceback
from collections.abc import Generator, Sequence
from dataclasses import asdict
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

import designer  # noqa: F401 - switches off what packages would send, before a test imports them

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication


class Blocker(MetaPathFinder):
    """Makes packages look as if they were not installed (LAYERWRIGHT_BLOCK=PySide6,...)."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named '{fullname}' (blocked for this run)", name=fullname)
        return None


# A gate must give the same answer twice; at a desk every run looks at new cases.
settings.register_profile("ci", derandomize=True, database=None)
if os.environ.get("CI"):
    settings.load_profile("ci")

PATIENCE = 30_000  # ms
BLOCKED = [name for name in os.environ.get("LAYERWRIGHT_BLOCK", "").split(",") if name]
if BLOCKED:
    sys.meta_path.insert(0, Blocker(BLOCKED))


# At the end Python would spend seconds on deleting what was imported, one object after the other.
atexit.register(gc.freeze)

# A shell starts jobs in the background with SIGINT ignored, which all processes inherit, also those that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Our own options, and pytest-qt's settings in pyproject.toml where the plugin is not loaded."""
    parser.addoption("--all-pairs", action="store_true", help="try every pair and triple rather than a sample")
    parser.addoption("--networks", type=int, default=50, help="how many random networks are compared on all engines")
    parser.addoption("--tiled-runs", type=int, default=100, help="how many random chains of layers run in tiles")
    parser.addoption("--first-seed", type=int, default=0, help="the seed of the first random network and chain")
    if not pluginmanager.has_plugin("pytest-qt"):
        parser.addini("qt_api", "unused without pytest-qt")
        parser.addini("qt_log_level_fail", "unused without pytest-qt")
        parser.addini("qt_log_ignore", "unused without pytest-qt")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules of which no test can be selected are not even imported: without Qt, or with `-m gui` or `-m story`."""
    if "PySide6" in BLOCKED and collection_path.name == "ui":
        return True
    selected = re.fullmatch(r"(gui|story)( and .*)?", config.getoption("markexpr"))
    if selected and collection_path.match("test_*.py"):
        return f"mark.{selected[1]}" not in collection_path.read_text("utf-8") or None
    return None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """More than cores (`-n auto`): tests wait for processes and timers. With twice as many those of the window took 6 % longer."""
    return 3 * (os.cpu_count() or 1) // 2


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer() -> Generator[None, object, object]:
    """A test that reaches its time limit while a dialog or menu waits for an answer leaves it and fails."""
    answer = yield
    fail = signal.getsignal(signal.SIGALRM)
    if not callable(fail):  # another method was requested
        return answer

    def leave(number: int, frame: FrameType | None) -> None:
        traceback.print_stack(frame)
        if "PySide6.QtWidgets" in sys.modules:
            leave_dialogs()
            leave_waits(frame)
        fail(number, frame)

    signal.signal(signal.SIGALRM, leave)
    return answer


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays: the collector of garbage does not look at it, neither now nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def leave_dialogs() -> None:
    """Hide what blocks other windows, which ends its event loop and asks nothing."""
    from PySide6.QtWidgets import QApplication, QMenu

    for widget in QApplication.topLevelWidgets():
        if widget.isModal() or isinstance(widget, QMenu):
            widget.hide()


def leave_waits(frame: FrameType | None) -> None:
    """End the event loops of pytest-qt that wait: the failure is lost in them if it is raised in a slot, such as their own."""
    from PySide6.QtCore import QEventLoop

    while frame is not None:
        loop = getattr(frame.f_locals.get("self"), "_loop", None)
        if isinstance(loop, QEventLoop):
            loop.quit()
        frame = frame.f_back


@pytest.fixture(scope="session")
def qapp(qapp: QApplication) -> QApplication:
    """The application collects garbage as the program does, so that no window is deleted while it handles an event.

    Its timer also lets Python see signals, such as that of a time limit, in event loops without other Python code.
    """
    from app.ui.widgets import garbage

    garbage.install(qapp)
    return qapp


@pytest.fixture(scope="session", autouse=True)
def patience() -> None:
    """Tests that wait for the window wait longer than pytest-qt's 5 s, because neighbors may keep the machine busy."""
    if "pytestqt.qtbot" in sys.modules:
        qtbot = sys.modules["pytestqt.qtbot"].QtBot
        for wait in (qtbot.waitCallback, qtbot.waitExposed, qtbot.waitSignal, qtbot.waitSignals, qtbot.waitUntil):
            wait.__kwdefaults__["timeout"] = PATIENCE


class Homes:
    """Home folders with what the program knows of the machine.

    Without Qt one is used again in which a test left nothing: to make and delete one takes a millisecond. Threads and processes of a
    window may write into it when their test has ended.
    """

    def __init__(self, folder: Path) -> None:
        self._paths = (folder / str(number) for number in itertools.count())
        self._home: Path | None = None
        self._made: list[int] = []  # the state of a new one

    def next(self) -> Path:
        if self._home is None or "PySide6" in sys.modules or self._content(self._home) != self._made:
            self._home = next(self._paths)
            store = self._home / "cache" / "layerwright" / "peaks.json"
            store.parent.mkdir(parents=True)
            store.write_text(known_peaks(), "utf-8")
            self._made = self._content(self._home)
        return self._home

    def _content(self, home: Path) -> list[int]:
        """What changes when a file is written or deleted in one of the folders."""
        folders = (home, home / "cache", home / "cache" / "layerwright")
        return [os.stat(path).st_mtime_ns for path in (*folders, folders[-1] / "peaks.json")]


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Homes:
    """They share a parent folder, because `tmp_path` reads every name in its own for each test."""
    return Homes(tmp_path_factory.mktemp("homes"))


@pytest.fixture(autouse=True)
def own_home(homes: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's settings, caches or plugins, or what another test wrote."""
    home = homes.next()
    monkeypatch.setenv("HOME", str(home))
    for kind in ("config", "data", "cache", "state"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(home / kind))


@functools.cache
def known_peaks() -> str:
    """Made-up peaks of this machine as the program keeps them: to measure them takes up to half a minute on busy cores."""
    from designer.files.settings import LAYOUTS
    from designer.profiling import measure
    from designer.profiling.peaks import Peaks
    from designer.profiling.quantities import measured
    from designer.runtime.api import RunOptions
    from designer.runtime.engine_registry import default_engines

    found = {}
    for engine, layout, threads in itertools.product(default_engines(), LAYOUTS, (0, 1, 2)):
        options = RunOptions(engine=engine.name, layout=layout, threads=threads)
        rates = (measured(rate, "made up") for rate in (1e12, 1e12, 1e11))
        found[measure.peaks_key(options)] = asdict(
            Peaks(
                *rates, 2**25, measured(0.0), "2026-01-01T00:00:00+00:00", engine.name, "fp32", measure.threads(options)
            )
        )
    return json.dumps(found)
