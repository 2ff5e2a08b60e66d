"""What the recovery journal costs the window's thread: a gesture on 1,000, 3,000 and 10,000 layers, and moving them all."""

from __future__ import annotations

from itertools import count

import pytest

pytest.importorskip("pytest_benchmark")

from designer.files.journal import Journal
from designer.files.journal_format import GraphSnapshot
from designer.files.recovery import unfinished
from designer.graph import commands
from designer.graph.edits import ChangeSet
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source

SIZES = (1000, 3000, 10_000)
SMALL = 60


def network(size: int) -> Graph:
    layers = [Layer("in", "input", params={"dims": "64x64x3"})]
    for number in range(1, size):
        params = {"features": "32", "kernel": "3x3", "padding": "same", "stride": "1x1"}
        place = (256 * (number % 100), 160 * (number // 100))
        source = (Source(layers[-1].name),)
        layers.append(Layer(f"n{number:05d}", "convolution", place, source, params, ActivationSpec("relu")))
    return Graph(layers)


def sized(benchmark, size: int) -> int:
    return SMALL if benchmark.disabled else size


@pytest.fixture(params=SIZES)
def desk(request, benchmark, tmp_path):
    graph = network(sized(benchmark, request.param))
    journal = Journal(graph, None, folder=tmp_path)
    yield graph, journal
    journal.wait()
    journal.close()


def test_a_parameter_is_recorded(benchmark, report, desk) -> None:
    graph, journal = desk
    sizes = count(33)

    def change() -> tuple[tuple[ChangeSet], dict[str, object]]:
        return (graph.apply(commands.set_params(graph, {"n00050": {"features": str(next(sizes))}})),), {}

    journal.record(*change()[0])
    journal.wait()
    benchmark.pedantic(journal.record, setup=change, rounds=1 if benchmark.disabled else 300)
    if len(graph) == 3000:
        report.median("one parameter recorded, 3,000 layers", target=5)


def test_the_first_record_begins_the_file(benchmark, desk) -> None:
    graph, journal = desk
    sizes = count(33)

    def change() -> tuple[tuple[ChangeSet], dict[str, object]]:
        journal.wait()
        journal.close()
        journal.saved(None, "")
        return (graph.apply(commands.set_params(graph, {"n00050": {"features": str(next(sizes))}})),), {}

    benchmark.pedantic(journal.record, setup=change, rounds=1 if benchmark.disabled else 40)


def test_moving_every_layer_is_recorded(benchmark, report, desk) -> None:
    graph, journal = desk
    steps = count(1)

    def change() -> tuple[tuple[ChangeSet], dict[str, object]]:
        journal.wait()
        step = next(steps)
        return (graph.apply(commands.move_layers(graph, dict.fromkeys(graph.layers, (16 * step, 0)))),), {}

    journal.record(*change()[0])
    journal.wait()
    benchmark.pedantic(journal.record, setup=change, rounds=1 if benchmark.disabled else 30)
    if len(graph) == 3000:
        report.median("move of all 3,000 layers recorded", target=5)


def test_a_parameter_of_every_layer_is_recorded(benchmark, desk) -> None:
    """A thread writes it; the next gesture may come at once or later."""
    graph, journal = desk
    sizes = count(33)

    def change() -> tuple[tuple[ChangeSet], dict[str, object]]:
        journal.wait()
        edit = {n: {"features": str(next(sizes))} for n in graph.layers if n != "in"}
        return (graph.apply(commands.set_params(graph, edit)),), {}

    benchmark.pedantic(journal.record, setup=change, rounds=1 if benchmark.disabled else 10)


def test_opening_takes_a_snapshot(benchmark, desk) -> None:
    graph, _ = desk
    assert len(benchmark(GraphSnapshot.of, graph).layers) == len(graph)


def test_recovering(benchmark, desk, tmp_path) -> None:
    graph, _ = desk
    left = Journal(graph, None, folder=tmp_path / "left")
    left.record(graph.apply(commands.set_params(graph, {"n00050": {"features": "7"}})))
    left.wait()
    folder = tmp_path / "crashed"
    folder.mkdir()
    (folder / "a.journal").write_bytes(left.file.read_bytes())

    def recover():
        (found,) = unfinished(folder)
        found.release()
        return found.graph

    assert benchmark.pedantic(recover, rounds=1 if benchmark.disabled else 3) == graph
    left.close()
