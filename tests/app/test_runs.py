"""What a run reports to the window besides its images."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from app.engine.protocol import RunRequest
from app.engine.runs import Progress, Runs
from designer.files.document import parse_document
from designer.files.weights import Weights
from designer.graph.commands import set_params
from designer.graph.diagnostics import DiagnosticError
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.interrupt import InterruptedRunError
from designer.runtime.session import Session
from designer.runtime.shared import SharedFolder

DOCUMENT = """<NetworkModel name="little" version="2">
<Layer name="image" type="input"><Parameters dims="16x16x3" /></Layer>
<Layer name="noise" type="noise" input="image"><Parameters kind="gaussian" scale="0.1" /></Layer>
<Layer name="result" type="output" input="noise" />
</NetworkModel>"""


def opened(**more) -> Session:
    graph = parse_document(DOCUMENT.encode()).graph
    assert graph is not None
    session = Session(graph, load(entry_points=False), Weights(), RunOptions(threads=1), **more)
    session.set_input("image", np.zeros((1, 3, 16, 16), np.float32), is_image=True)
    return session


def test_a_run_that_is_interrupted_while_its_network_is_made_ends(tmp_path):
    session, runs = opened(), Runs(SharedFolder(tmp_path))

    def made() -> Session:
        runs.interrupt()  # by the thread that reads requests
        return session

    quiet = Progress(lambda message: None, 1)
    with pytest.raises(InterruptedRunError):
        runs.run(made, RunRequest(), quiet)
    assert runs.run(lambda: session, RunRequest(), quiet).outputs
    runs.interrupt()  # nothing runs
    runs.interrupted()
    assert runs.run(lambda: session, RunRequest(), quiet).outputs


def test_results_above_the_cap_are_named_in_the_note(tmp_path):
    session = opened(keep_bytes=100)
    reply = Runs(SharedFolder(tmp_path)).run(lambda: session, RunRequest(), Progress(lambda message: None, 1))
    assert "not kept" in reply.note
    assert "noise" in reply.note


def test_a_capture_is_handed_over_unless_the_window_holds_it(tmp_path):
    session, shared = opened(), SharedFolder(tmp_path)
    runs, quiet = Runs(shared), Progress(lambda message: None, 1)
    for capture in ((), ("noise",), ("noise", "result")):
        for have in ((), ("noise",), ("result",), ("noise", "result")):
            runs.forget()
            runs.run(lambda: session, RunRequest(capture=("noise",)), quiet)  # is what the window was given last
            reply = runs.run(lambda: session, RunRequest(capture=capture, have=have), quiet)
            assert set(reply.same) == {"noise"} & set(capture) & set(have)
            assert set(reply.captures) == set(capture) - set(reply.same)
    session.set_input("image", np.ones((1, 3, 16, 16), np.float32), is_image=True)
    reply = runs.run(lambda: session, RunRequest(capture=("noise",), have=("noise",)), quiet)
    assert (set(reply.captures), reply.same) == ({"noise"}, ())


def coarse_runs(tmp_path, session, monkeypatch, *expected, budget=40):
    """The reduction of each run whose full one is expected to take so many ms."""
    runs, times = Runs(SharedFolder(tmp_path)), iter(expected)
    monkeypatch.setattr(session, "expected", lambda sources: next(times))
    quiet = Progress(lambda message: None, 1)
    return runs, lambda: runs.run(lambda: session, RunRequest(("noise",), (), budget), quiet).coarse


def test_a_run_is_as_coarse_as_its_expected_time_needs(tmp_path, monkeypatch):
    session = opened()
    session.set_input("image", np.zeros((1, 3, 256, 256), np.float32), is_image=True)
    _, run = coarse_runs(tmp_path, session, monkeypatch, None, 40, 41, 400, 400, 5000, 41)
    assert [run() for _ in range(7)] == [0, 0, 2, 4, 4, 8, 2]
    _, run = coarse_runs(tmp_path, session, monkeypatch, budget=0)
    assert run() == 0


def test_a_network_that_fails_at_a_reduced_size_runs_full_until_it_is_edited(tmp_path, monkeypatch):
    tried = []

    class Failing:
        def __init__(self, session, factor):
            self.full, self.factor = session, factor

        def run(self, sources, progress):
            tried.append(self.factor)
            raise DiagnosticError.of("wrong-size", "the size is wrong", remedy="choose another")

    monkeypatch.setattr("app.engine.runs.Preview", Failing)
    session = opened()
    runs, run = coarse_runs(tmp_path, session, monkeypatch, *[100] * 9)
    assert (run(), run(), tried) == (0, 0, [2])
    session.set_param("noise", "scale", "0.2")  # values do not change what fails
    assert (run(), tried) == (0, [2])
    graph = session.graph.copy()
    graph.apply(set_params(graph, {"image": {"tiling": "2"}}))
    session.set_graph(graph)
    assert (run(), run(), tried) == (0, 0, [2, 2])
    runs.forget()
    assert (run(), run(), tried) == (0, 0, [2, 2, 2])
