"""The engine processes of Side by Side, played by the test: what is asked of them, and what comes of every answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import isnan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PySide6")
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.engine.protocol import OpenReply, OpenRequest, ProgressEvent, RunRequest, SetInputTensorRequest, TensorStatus
from app.reports.comparison import ImageArray
from app.ui.compare import runner as module
from app.ui.compare.runner import Made, SideRunner
from app.ui.compare.variants import Variant
from app.ui.engine.call import EngineCall
from designer.files.weights import WeightStatus
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity

pytestmark = pytest.mark.gui


class Client(QObject):
    """In place of an engine process: the test answers what was asked."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.opened: EngineCall[Any] | None = None
        self.calls: list[EngineCall[Any]] = []
        self.busy = self.closed = False
        self.killed = 0
        self.taken: list[Any] = []
        self.gone: DiagnosticError | None = None  # what happens to what is taken back

    def ask(
        self, request: Any, owner: QObject, done: Any, failed: Any, superseded: Any = None, progress: Any = None
    ) -> Any:
        call = EngineCall(request, owner, done, failed, superseded, progress)
        self.calls.append(call)
        self.busy = True
        if isinstance(request, OpenRequest):
            self.opened = call
        return call

    def cancel(self) -> None:
        self.killed += 1
        self.crash()

    def crash(self) -> None:
        self.opened, self.busy = None, False

    def take(self, handle: Any) -> Any:
        self.taken.append(handle)
        if self.gone is not None:
            raise self.gone
        return handle

    def putting(self) -> Callable[[Any], Any]:
        return lambda array: array

    def close(self) -> None:
        self.closed = True

    def asked(self) -> list[str]:
        """What was asked since the last time."""
        calls, self.new = self.calls, list(self.calls)
        self.calls = []
        return [type(call.request).__name__ for call in calls]


class Lending:
    """In place of `Background`: the image is lent when the test says so."""

    held: list[Lending]

    def __init__(self, parent: object) -> None:
        self._done: Any = None
        self._failed: Any = None
        self.done = SimpleNamespace(connect=lambda f: setattr(self, "_done", f))
        self.failed = SimpleNamespace(connect=lambda f: setattr(self, "_failed", f))

    def start(self, work: Callable[[], Any]) -> None:
        self._work = work
        self.held.append(self)

    def end(self) -> None:
        self.held.remove(self)
        self._done(self._work())

    def fail(self, text: str) -> None:
        self.held.remove(self)
        self._failed((Diagnostic("disk-full", text),))

    def deleteLater(self) -> None:
        """Nothing is to be deleted."""


class Bench:
    """A runner, its clients and what it reported."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Lending.held = []
        monkeypatch.setattr(module, "EngineClient", Client)
        monkeypatch.setattr(module, "Background", Lending)
        self.owner = QObject()
        self.runner = SideRunner(self.owner)
        self.said: list[Any] = []
        self.runner.progress.connect(lambda index, text: self.said.append((index, text)))
        self.runner.made.connect(lambda index, made: self.said.append((index, made)))
        self.runner.failed.connect(lambda index, why: self.said.append((index, why)))
        self.runner.finished.connect(lambda: self.said.append("finished"))
        self.image: ImageArray = np.linspace(0, 1, 3 * 8 * 10, dtype=np.float32).reshape(1, 3, 8, 10)

    def client(self, index: int = 0) -> Client:
        found = self.runner.clients[index]
        assert isinstance(found, Client)
        return found

    def heard(self) -> list[Any]:
        """What was reported since the last time; results by their factor to the image and their time."""
        found, self.said = self.said, []
        return [self._short(each) for each in found]

    def _short(self, each: Any) -> Any:
        if isinstance(each, tuple) and isinstance(each[1], Made):
            factor = round(float(each[1].picture.sum() / self.image.sum()), 2)
            return each[0], factor, None if isnan(each[1].milliseconds) else each[1].milliseconds, each[1].note
        return each

    def open(self, index: int = 0, **reply: Any) -> None:
        (call,) = [c for c in self.client(index).calls if isinstance(c.request, OpenRequest)][-1:]
        call.finish(OpenReply(**reply))

    def result(self, factor: float, index: int = 0, output: str = "out", **fields: Any) -> None:
        """The network gives the image times a factor, in 7 ms."""
        usual = {"note": "", "weights": "w.npz", "weights_sha256": "ab", "emulated": False, "milliseconds": 7.0}
        outputs = {output: (self.image * factor).astype(np.float32), "another": self.image * 0}
        call = self.client(index).calls[-1]
        assert isinstance(call.request, RunRequest)
        self.client(index).busy = False
        call.finish(SimpleNamespace(outputs=outputs, **{**usual, **fields}))


@pytest.fixture
def bench(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def variant(name: str, weights: str = "", **fields: Any) -> Variant:
    return Variant(name, OpenRequest(f"text {name}", weights or None, **fields), "in", "out", 3, f"{name}.xml", "")


def test_a_network_is_opened_once_until_it_or_its_weights_change(bench: Bench, tmp_path: Path) -> None:
    weights = tmp_path / "a.npz"
    weights.write_bytes(b"first")
    same = variant("A", str(weights))
    runner = bench.runner

    def run(chosen: Variant, opens: bool) -> None:
        runner.run([chosen], bench.image)
        if opens:
            assert bench.client().asked() == ["OpenRequest"]
            bench.client().new[-1].finish(OpenReply())
        assert bench.client().asked() == []
        Lending.held[0].end()
        assert [type(c.request).__name__ for c in bench.client().calls] == ["SetInputTensorRequest", "RunRequest"]
        feed = bench.client().calls[0].request
        assert isinstance(feed, SetInputTensorRequest)
        assert feed.layer == "in"
        np.testing.assert_array_equal(feed.handle, bench.image)  # type: ignore[arg-type]
        bench.result(0.5)
        if opens:  # the first run builds the network: it is followed by one that does not
            assert bench.heard() == [(0, "Running …"), (0, 0.5, None, ""), (0, "Timing …")]
            bench.client().asked()
            Lending.held[0].end()
            bench.result(0.5)
            assert bench.heard() == [(0, 0.5, 7.0, ""), "finished"]
        else:
            assert bench.heard() == [(0, "Running …"), (0, 0.5, 7.0, ""), "finished"]
        assert not runner.running
        bench.client().asked()

    run(same, opens=True)
    run(same, opens=False)
    weights.write_bytes(b"other")  # as large as before
    os.utime(weights, (1, 1))
    run(same, opens=True)
    run(same, opens=False)
    run(variant("A", str(weights), engine="torch"), opens=True)
    run(same, opens=True)
    run(same, opens=False)
    bench.client().crash()
    run(same, opens=True)


@pytest.mark.parametrize(
    "how",
    [
        "refused",
        "without-weights",
        "crashed",
        "restarted",
        "folder-gone",
        "not-lent",
        "not-fed",
        "fed-in-vain",
        "not-run",
    ],
)
def test_a_variant_that_cannot_run_says_why_and_is_opened_again(bench: Bench, how: str) -> None:
    runner, chosen = bench.runner, [variant("A"), variant("B")]
    runner.run(chosen, bench.image)
    bench.heard()
    client = bench.client()
    opening = client.calls[-1]
    if how == "refused":
        opening.fail((Diagnostic("w", "a warning", severity=Severity.WARNING), Diagnostic("e", "the file is broken")))
        why = "The file is broken."
    elif how == "without-weights":
        opening.finish(OpenReply((TensorStatus("conv", "weight", WeightStatus.MISSING, (3,)),)))
        why = "1 weight is missing or of the wrong shape: of conv. Choose weights for it, or random ones."
    else:
        opening.finish(OpenReply())
        client.asked()
        if how in ("crashed", "restarted", "folder-gone"):
            client.crash()
            if how == "restarted":  # meanwhile, for another network
                client.opened = EngineCall(OpenRequest("another"), client, None, None, None, None)
            if how == "folder-gone":
                client.gone = DiagnosticError((Diagnostic("gone", "the folder is gone"),))
            Lending.held[0].end()
            client.gone = None
            why = "The engine has ended. Run it again: a fresh engine starts."
            assert len(client.taken) == 1  # the image that was lent is freed
        elif how == "not-lent":
            Lending.held[0].fail("the disk is full")
            why = "The disk is full."
        else:
            Lending.held[0].end()
            feed, run = client.calls
            wrong = (Diagnostic("shape", "the image is too small"),)
            if how == "not-fed":
                feed.fail(wrong)
                run.fail((*wrong, Diagnostic("other", "no input")))
            elif how == "fed-in-vain":  # it runs on the input of before
                feed.fail(wrong)
                run.finish(SimpleNamespace(outputs={"out": bench.image}, emulated=False))
            else:
                run.fail(wrong)
            why = "The image is too small."
    assert bench.heard() == [(0, why), (1, "Running …")]  # the next one goes on
    bench.client(1).calls[-1].fail((Diagnostic("e", "broken too"),))
    assert bench.heard() == [(1, "Broken too."), "finished"]
    client.asked()
    runner.run(chosen[:1], bench.image)
    again = how in ("refused", "without-weights", "crashed", "restarted", "folder-gone")
    assert client.asked() == (["OpenRequest"] if again else [])
    assert len(Lending.held) == (not again)


def test_nothing_comes_of_a_run_that_was_given_up(bench: Bench) -> None:
    runner, client = bench.runner, None
    for step in ("opening", "lending", "running"):
        runner.run([variant("A"), variant("B")], bench.image)
        client = bench.client()
        if step != "opening":
            client.calls[-1].finish(OpenReply())
        if step == "running":
            Lending.held[-1].end()
        calls, killed, bench.said = list(client.calls), client.killed, []
        taken = len(client.taken)
        runner.cancel()
        assert not runner.running
        assert client.killed == killed + 1
        for job in list(Lending.held):
            job.end()
        assert len(client.taken) == taken + (step == "lending")  # what was lent for nothing is freed
        for call in {"opening": calls, "lending": [], "running": calls[-2:]}[step]:
            call.fail((Diagnostic("late", "too late"),))
        assert bench.heard() == []
        assert all(
            call.cancelled
            for call in calls[-2:]
            if step == "running" or (isinstance(call.request, OpenRequest) and step == "opening")
        )
        client.asked()
    runner.run([variant("A")], bench.image)
    bench.open()
    held = Lending.held[-1]
    runner.run([variant("A")], bench.image * 2)  # another image before the first one was lent
    bench.heard()
    held.fail("the disk is full")
    assert bench.heard() == []


def test_an_image_that_was_replaced_before_it_was_lent_is_freed_and_only_the_other_one_runs(bench: Bench) -> None:
    runner, client = bench.runner, None
    runner.run([variant("A")], bench.image)
    bench.open()
    client = bench.client()
    client.busy = False  # what is lent is not work of the engine
    first = Lending.held[-1]
    runner.run([variant("A")], bench.image * 2)
    client.asked()
    second = Lending.held[-1]
    for job in (first, second):
        job.end()
    np.testing.assert_array_equal(client.taken, [bench.image])
    feed, run = client.calls
    np.testing.assert_array_equal(feed.request.handle, bench.image * 2)
    assert isinstance(run.request, RunRequest)


def test_a_listener_may_end_a_run_that_has_just_made_something(bench: Bench) -> None:
    runner = bench.runner
    runner.run([variant("A"), variant("B")], bench.image)
    bench.open()
    Lending.held[0].end()
    runner.made.connect(lambda *_: runner.cancel())
    bench.result(0.5)
    assert bench.heard() == [(0, "Running …"), (0, 0.5, None, "")]
    assert len(runner.clients) == 1


def test_results_of_other_sizes_outputs_and_formats(bench: Bench) -> None:
    runner = bench.runner
    runner.run([variant("A"), None, variant("C")], bench.image)
    bench.open()
    Lending.held[0].end()
    bench.client().calls[-1].advance(ProgressEvent(1, 0, 2, "conv"))
    bench.client().calls[-1].advance(ProgressEvent(1, 1, 2, ""))
    bench.result(0.25, note="random weights", emulated=True)
    assert bench.heard() == [
        (0, "Running …"),
        (0, "Running conv …"),
        (0, 0.25, None, "random weights; emulated: results are those of the format, times are not"),
        (2, "Running …"),
    ]
    assert len(bench.client().taken) == 2  # the other output is freed too
    bench.open(2)
    Lending.held[0].end()
    larger = np.zeros((1, 3, 16, 20), np.float32)
    call = bench.client(2).calls[-1]
    call.finish(
        SimpleNamespace(
            outputs={"out": larger}, note="", weights="", weights_sha256="", emulated=False, milliseconds=1.0
        )
    )
    (index, why), end = bench.heard()
    assert (index, end) == (2, "finished")
    assert "20 x 16" in why
    assert "10 x 8" in why
    clients = runner.clients
    runner.run([variant("A")], bench.image)
    runner.close()
    assert [client.closed for client in clients] == [True, True, True]  # type: ignore[attr-defined]
    assert (runner.clients, runner.running) == ([], False)
    runner.run([variant("A")], bench.image)
    assert bench.client() not in clients


@pytest.mark.parametrize("again", [False, True])
def test_a_listener_may_end_or_begin_a_run_when_a_variant_has_failed(bench: Bench, again: bool) -> None:
    """The run that was given up does not go on with its next variant."""
    runner, begun = bench.runner, []

    def hear(index: int, why: str) -> None:
        if begun:
            return
        begun.append(why)
        runner.run([variant("A")], bench.image * 2) if again else runner.cancel()

    runner.failed.connect(hear)
    runner.run([variant("A"), variant("B")], bench.image)
    bench.client().calls[-1].fail((Diagnostic("e", "broken"),))
    assert begun == ["Broken."]
    assert bench.heard() == [(0, "Running …"), (0, "Broken."), *([(0, "Running …")] if again else [])]
    assert (runner.running, len(runner.clients)) == (again, 1)


@pytest.mark.parametrize("scales", [(1, 1, 1), (2, 2, 2), (1, 2, 1), (2, 1, 2), (0, 2, 2), (3, 0, 2), (0, 0, 4)])
def test_results_have_the_size_of_the_first_one_that_is_an_image(bench: Bench, scales: tuple[int, ...]) -> None:
    bench.runner.run([variant(name) for name in "ABC"], bench.image)
    first = 0
    for index, scale in enumerate(scales):
        height, width = (8 * scale, 10 * scale) if scale else (9, 10)
        bench.open(index)
        Lending.held[0].end()
        bench.heard()
        picture = np.full((1, 3, height, width), 0.5, np.float32)
        reply = SimpleNamespace(
            outputs={"out": picture}, note="", weights="", weights_sha256="", emulated=True, milliseconds=7.0
        )
        bench.client(index).calls[-1].finish(reply)
        bench.client(index).asked()
        ((place, found), *_) = bench.said
        assert place == index
        if not scale:
            assert "is 1 x 3 x 9 x 10, not an image like its input" in found
        elif first and scale != first:
            assert f"is {width} x {height} pixels, that of others {10 * first} x {8 * first}" in found
        else:
            first = scale
            assert isinstance(found, Made)
            assert found.picture is picture
    assert bench.said[-1] == "finished"
