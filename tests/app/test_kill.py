"""Nothing is lost: kill -9 at random moments of editing and saving, of the parts without Qt and of the window itself.

After each kill the document's file is what it was before or after the save that was going on, byte for byte, and what the
journal brings back lacks the gesture that was going on, at most.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

import kill_driver
import pytest

from designer.files import atomic
from designer.files.document import parse_document, write_document
from designer.files.recovery import unfinished
from designer.graph.graph import Graph
from designer.graph.history import History

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that has kill -9 and fork")

KILLS, WINDOW_KILLS = 190, 10
LONGEST = 0.005  # s into a gesture at which it is killed; a save takes about that long
SEED = int(os.environ.get("LAYERWRIGHT_KILL_SEED", "5"))


class Server:
    """A process that starts workers, and what they print."""

    def __init__(self, folder: Path, *how: str) -> None:
        path = os.pathsep.join(
            [str(Path(kill_driver.__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        self.process = subprocess.Popen(
            [sys.executable, kill_driver.__file__, str(folder), *how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path, "QT_QPA_PLATFORM": "offscreen"},
        )
        assert self._line() == b"ready\n"

    def _line(self) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def run_and_kill(self, seed: int, gestures: int, document: Path, journal: Path, moment: float) -> int:
        """Let a worker do `gestures` gestures, kill it `moment` seconds into the next one; how many it finished."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seed}\t{gestures + 1}\t{document}\t{journal}\n".encode())
        self.process.stdin.flush()
        pid, done, killed = 0, 0, False
        while True:
            text = self._line()
            if text == b"gone\n":
                return done
            assert text, "the worker ended by itself"
            if text.startswith(b"pid "):
                pid = int(text[4:])
            else:
                done = int(text)
            if pid and done >= gestures and not killed:
                sleep(moment)
                os.kill(pid, signal.SIGKILL)
                killed = True

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


class Replay:
    """The same gestures in this process: the network and the file's bytes after each, and which of them save."""

    def __init__(self, seed: int, data: bytes) -> None:
        graph = parse_document(data).graph
        assert graph is not None
        self.history = History(graph)
        self.work = kill_driver.gestures(self.history, seed)
        self.states: list[tuple[Graph, bytes]] = [(graph.copy(), data)]
        self._saves: list[bool] = []

    def after(self, count: int) -> tuple[Graph, bytes]:
        while len(self.states) <= count:
            self._saves.append(next(self.work))
            data = write_document(self.history.graph) if self._saves[-1] else self.states[-1][1]
            self.states.append((self.history.graph.copy(), data))
        return self.states[count]

    def saves_after(self, count: int) -> bool:
        """Whether the gesture after `count` gestures is a save."""
        self.after(count + 1)
        return self._saves[count]

    def unsaved_at(self, count: int) -> bool:
        """Whether the network differs from its file."""
        graph, data = self.after(count)
        return graph != parse_document(data).graph


def check(replay: Replay, done: int, document: Path, journal: Path) -> bool:
    """Judge what a kill left behind; whether there was something to recover."""
    before, after = replay.after(done), replay.after(done + 1)
    on_disk = document.read_bytes()
    assert on_disk in (before[1], after[1]), "the file is neither the old nor the new one"
    found = unfinished(journal)
    assert len(found) <= 1
    if found:
        assert not found[0].findings, found[0].findings
        recovered = found[0].graph
        found[0].discard()
    else:
        recovered = parse_document(on_disk).graph
    assert recovered in (before[0], after[0]), f"work is lost after {done} gestures"
    return bool(found)


def kill_and_check(server: Server, folder: Path, kills: int) -> None:
    """Kill that many times while there are unsaved changes, every other time during a save, and judge each."""
    chance = random.Random(SEED)
    start = (folder / "start.xml").read_bytes()
    document, journal = folder / "net.xml", folder / "journal"
    for kill in range(kills):
        document.write_bytes(start)
        seed = SEED * 1000 + kill
        replay, count = Replay(seed, start), chance.randrange(1, 40)
        saves = kill % 2 == 1
        while (
            not replay.unsaved_at(count) or replay.saves_after(count) != saves or replay.unsaved_at(count + 1) == saves
        ):
            count += 1
        done = server.run_and_kill(seed, count, document, journal, chance.uniform(0, LONGEST))
        found = check(replay, done, document, journal)
        assert found or saves
        for left in folder.glob(".lw-*.tmp"):  # of a save that was killed
            assert not found, "what was left next to the document goes with the look at the journal"
            left.unlink()
        assert {p.name for p in folder.iterdir()} <= {
            "start.xml",
            "net.xml",
            "journal",
            "window.ini",
            "window.ini.lock",
        }
        for left in journal.iterdir() if journal.exists() else ():
            assert left.suffix == ".making", left  # nothing else outlives its document
            left.unlink()


@pytest.fixture(autouse=True)
def remove_at_once(monkeypatch):
    """What a save that was not finished left is removed however young it is."""
    monkeypatch.setattr(atomic, "ABANDONED_SECONDS", -1.0)


def test_kill_at_random_moments(tmp_path):
    server = Server(tmp_path)
    try:
        kill_and_check(server, tmp_path, KILLS)
    finally:
        server.close()


@pytest.mark.gui
def test_kill_the_window_at_random_moments(tmp_path):
    pytest.importorskip("PySide6")
    server = Server(tmp_path, "window")
    try:
        kill_and_check(server, tmp_path, WINDOW_KILLS)
    finally:
        server.close()
