"""What is asked of Ray, with a module in its place that lists it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from app.engine import cluster_job, sweep_cluster
from app.engine.cluster import Cluster
from app.engine.folder_job import FolderJob, Frame, Journal
from designer.files.weights import WeightKey, Weights
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.images import write_image
from designer.runtime.patterns import make_pattern
from designer.runtime.provenance import noise_layers, provenance
from designer.runtime.session import Session

Log = list[tuple[Any, ...]]


class RayError(Exception):
    pass


class LostError(RayError):
    pass


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """The calls of a module `ray`."""
    found: Log = []
    ray: Any = ModuleType("ray")
    ray.init = lambda **more: found.append(("init", more))
    ray.shutdown = lambda: found.append(("shutdown",))
    ray.exceptions = SimpleNamespace(RayError=RayError)
    ray.cluster_resources = lambda: {"CPU": 3.0}
    data: Any = ModuleType("ray.data")
    context = SimpleNamespace(enable_progress_bars=True)
    data.DataContext = SimpleNamespace(get_current=lambda: context)
    data.ActorPoolStrategy = lambda **more: more
    data.from_items = lambda items, **more: Items(found, items, more)
    ray.data = data
    for name, module in (("ray", ray), ("ray.data", data)):
        monkeypatch.setitem(sys.modules, name, module)
    return found


class Items:
    """A dataset whose rows come back in reverse, as results of several nodes can."""

    error: Exception | None = None

    def __init__(self, log: Log, items: list[Any], more: Any) -> None:
        self.log, self.items = log, items
        log.append(("items", len(items), more))

    def map(self, worker: Any, **more: Any) -> Items:
        self.log.append(("map", worker.__name__, more))
        return self

    def iter_rows(self) -> Iterator[Any]:
        yield from reversed(self.items)
        if self.error is not None:
            raise self.error


def refusal(call: Callable[[], object]) -> Diagnostic:
    with pytest.raises(DiagnosticError) as failed:
        call()
    return failed.value.diagnostics[0]


# --- the connection ------------------------------------------------------------------------------------------------


def test_a_connection_is_closed_and_reports_nothing(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.engine.cluster.util.find_spec", lambda name: object())
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "1")
    with Cluster("10.0.0.1:6379"):
        assert log == [("init", {"address": "10.0.0.1:6379", "logging_level": "ERROR", "log_to_driver": False})]
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert log[1:] == [("shutdown",)]


@pytest.mark.parametrize("error", [ConnectionError, RuntimeError, ValueError])
def test_an_address_without_a_cluster_is_named(
    log: Log, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fails(**more: Any) -> None:
        raise error("x" * 300)

    monkeypatch.setattr("app.engine.cluster.util.find_spec", lambda name: object())
    sys.modules["ray"].init = fails  # type: ignore[attr-defined]
    found = refusal(lambda: Cluster("nowhere:1").__enter__())
    assert (found.code, found.message) == ("no-cluster", f"there is no Ray cluster at nowhere:1: {'x' * 200}")
    assert found.remedy == "start one with ray start --head, and give its address"


# --- images --------------------------------------------------------------------------------------------------------


def frames_in(folder: Path, count: int) -> list[Frame]:
    (folder / "0.png").write_bytes(b"an image")
    return [
        Frame(number + 10, str(number), {"x": folder / "0.png", "noise": Path("pattern:noise")})
        for number in range(count)
    ]


def test_images_are_sent_in_groups_of_which_each_row_has_a_number_of_its_own(log: Log, tmp_path: Path) -> None:
    network: Any = SimpleNamespace()
    count = cluster_job.AT_ONCE + 3
    rows = list(cluster_job._rows(network, frames_in(tmp_path, count)))
    assert [row["index"] for row in rows] == [*range(cluster_job.AT_ONCE - 1, -1, -1), count - 1, count - 2, count - 3]
    assert rows[-1] == {
        "index": count - 3, "number": count + 7, "names": [str(tmp_path / "0.png"), "pattern:noise"], "files": [b"an image", b""]
    }  # fmt: skip
    pool = {"fn_constructor_args": (network,), "compute": {"min_size": 1, "max_size": 3}, "num_cpus": 1}
    assert log == [
        each
        for size in (cluster_job.AT_ONCE, 3)
        for each in (("items", size, {"override_num_blocks": size}), ("map", "Runner", pool))
    ]
    assert sys.modules["ray.data"].DataContext.get_current().enable_progress_bars is False
    sys.modules["ray"].cluster_resources = lambda: {"CPU": 0.5}  # type: ignore[attr-defined]
    log.clear()
    list(cluster_job._rows(network, frames_in(tmp_path, 1)))
    assert log[1][2]["compute"]["max_size"] == 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [(LostError("first\nlast \n"), "last"), (LostError(""), "LostError"), (LostError("y" * 400), "y" * 300)],
)
def test_a_cluster_that_fails_is_named_with_its_last_line(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    monkeypatch.setattr(Items, "error", error)
    found = refusal(lambda: list(cluster_job._rows(SimpleNamespace(), frames_in(tmp_path, 2))))  # type: ignore[arg-type]
    assert (found.code, found.message) == ("cluster-failed", f"the cluster failed: {reason}")
    assert found.remedy == "install the same version of Layerwright on every node, and repeat the command"


REGISTRY = load(entry_points=False)


def network() -> Session:
    """An image with animated noise, a table, and both as outputs."""
    layers = [
        Layer("image", "input", params={"dims": "4x3x3", "scale": "2"}),
        Layer("table", "input", params={"dims": "2x2x1", "scale": "2"}),
        Layer("noise", "noise", inputs=(Source("image"),), params={"scale": "0.1", "animate": "true", "seed": "1"}),
        Layer("noisy", "output", inputs=(Source("noise"),)),
        Layer("rows", "output", inputs=(Source("table"),)),
    ]
    return Session(Graph(layers, name="net"), REGISTRY, Weights(), RunOptions("torch", threads=0))


def test_a_node_runs_an_image_as_this_machine_does(tmp_path: Path) -> None:
    session = network()
    job = FolderJob(
        {"table": tmp_path / "t.npy", "image": tmp_path}, {"noisy": tmp_path / "a", "rows": tmp_path / "b"}, kind=".npy"
    )
    remote = cluster_job._remote(session, job)
    assert (remote.inputs, remote.outputs, remote.kind) == (("table", "image"), ("noisy", "rows"), ".npy")
    assert remote.options == RunOptions("torch", threads=1)
    session.options = RunOptions("torch", threads=3)
    assert cluster_job._remote(session, job).options.threads == 3
    session.options = RunOptions("torch", threads=0)
    values = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2) * 5
    np.save(tmp_path / "t.npy", values)
    write_image(tmp_path / "0.png", np.full((1, 3, 3, 4), 0.4, np.float32))
    runner = cluster_job.Runner(remote)
    frame = Frame(4, "0", {"table": tmp_path / "t.npy", "image": tmp_path / "0.png"})
    row = cluster_job._row(9, frame)
    assert all(row["files"])
    for path in frame.files.values():
        path.unlink()  # a node has only the bytes
    made = runner(row)
    assert (made["index"], made["skipped"]) == (9, "")
    arrays = []
    for number, data in enumerate(made["results"]):
        (tmp_path / f"{number}.npy").write_bytes(data)
        arrays.append(np.load(tmp_path / f"{number}.npy"))
    session.set_input("image", np.full((1, 3, 3, 4), np.float32(102) / np.float32(255), np.float32), is_image=True)
    session.set_input("table", values, is_image=False)
    session.set_param("noise", "seed", "5")
    expected = session.run().outputs
    np.testing.assert_allclose(arrays[0], expected["noisy"], atol=1e-6)
    np.testing.assert_array_equal(arrays[1], values)  # a tensor has no scale
    row["files"][1] = b"no image"
    refused = runner({**row, "index": 3})
    assert (refused["index"], refused["results"]) == (3, [])
    assert "not a supported image" in refused["skipped"]
    picture = cluster_job.Runner(cluster_job._remote(session, FolderJob(job.inputs, {"noisy": tmp_path / "a"})))
    write_image(tmp_path / "0.png", np.full((1, 3, 3, 4), 0.4, np.float32))
    np.save(tmp_path / "t.npy", values)
    (data,) = picture(cluster_job._row(0, frame))["results"]
    (tmp_path / "made.png").write_bytes(data)
    origin = provenance("net", session.graph, session.weights, session.options, **noise_layers(session.inference))
    with Image.open(tmp_path / "made.png") as image:
        found = json.loads(image.text["Comment"])["provenance"]  # type: ignore[attr-defined]
    assert {**found, "date": ""} == {**origin.texts(), "date": ""}
    drawn = cluster_job._row(0, Frame(0, "0", {"table": tmp_path / "t.npy", "image": Path("pattern:gradient")}))
    assert (drawn["names"][1], drawn["files"][1]) == ("pattern:gradient", b"")
    (data,) = cluster_job.Runner(cluster_job._remote(session, FolderJob(job.inputs, {"noisy": tmp_path}, kind=".npy")))(
        drawn
    )["results"]
    (tmp_path / "drawn.npy").write_bytes(data)
    session.set_input("image", make_pattern("gradient", 3, 3, 4), is_image=True)
    session.set_param("noise", "seed", "5")
    np.testing.assert_allclose(np.load(tmp_path / "drawn.npy"), session.run().outputs["noisy"], atol=1e-6)


def test_an_image_that_is_refused_has_the_first_reason_and_stays_unfinished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = cluster_job.Runner.__new__(cluster_job.Runner)
    findings = [Diagnostic("a", "the first"), Diagnostic("b", "the second")]

    def fails(row: object) -> list[bytes]:
        raise DiagnosticError(findings)

    monkeypatch.setattr(runner, "_run", fails)
    assert runner({"index": 4, "number": 9}) == {"index": 4, "skipped": "the first", "results": [], "notes": []}
    for name in ("0.png", "1.png"):
        (tmp_path / name).touch()
    made = [
        {"index": 1, "skipped": "", "results": [b"made"], "notes": []},
        {"index": 0, "skipped": "broken", "results": [], "notes": []},
    ]
    monkeypatch.setattr(cluster_job, "_rows", lambda network, frames: made)
    monkeypatch.setattr(cluster_job, "_remote", lambda session, job: None)
    monkeypatch.setattr(cluster_job, "Cluster", lambda address: nullcontext())
    job = FolderJob({"x": tmp_path}, {"out": tmp_path / "out"})
    done = cluster_job.process_on_cluster("here", network(), job, "key")
    assert (done.written, done.skipped) == (1, {str(tmp_path / "0.png"): "broken"})
    assert [*Journal(tmp_path / "out", "key").finished] == ["1"]
    assert (tmp_path / "out" / "1.png").read_bytes() == b"made"


# --- trials --------------------------------------------------------------------------------------------------------


class Tuner:
    made: dict[str, Any]
    error: Exception | None = None

    def __init__(self, trainable: Any, **more: Any) -> None:
        Tuner.made = {"trainable": trainable, **more}

    def fit(self) -> None:
        if Tuner.error is not None:
            raise Tuner.error


def test_trials_are_tuned_one_processor_each(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tune: Any = ModuleType("ray.tune")
    tune.Callback = object
    tune.Tuner = Tuner
    tune.with_resources = lambda trainable, resources: (trainable, resources)
    tune.grid_search = lambda values: ("grid", values)
    tune.RunConfig = lambda **more: more
    tune.FailureConfig = lambda **more: more
    sys.modules["ray"].tune = tune  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray.tune", tune)
    trained: list[Any] = []
    monkeypatch.setattr(sweep_cluster, "train_on_node", lambda *each: trained.append(each))
    said: list[Any] = []
    report: Any = SimpleNamespace(
        ended=lambda number: said.append(("ended", number)), failed=lambda *each: said.append(("failed", *each))
    )
    work: Any = {4: "work of 4", 7: "work of 7"}
    sweep_cluster._tune(work, "collector", tmp_path, report)
    trainable, resources = Tuner.made["trainable"]
    config = Tuner.made["run_config"]
    assert resources == {"cpu": 1}
    assert Tuner.made["param_space"] == {"trial": ("grid", [4, 7])}
    assert (config["storage_path"], config["verbose"]) == (str(tmp_path), 0)
    assert config["failure_config"] == {"max_failures": 5}
    trainable({"trial": 7})
    assert trained == [(7, "work of 7", "collector")]
    (callback,) = config["callbacks"]
    error = RuntimeError("lost")
    trial = SimpleNamespace(config={"trial": 4}, get_error=lambda: error)
    callback.on_trial_complete(1, [], trial)
    callback.on_trial_error(1, [], trial)
    assert said == [("ended", 4), ("failed", 4, error)]
    assert os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] == os.environ["TUNE_DISABLE_SIGINT_HANDLER"] == "1"
    monkeypatch.setattr(Tuner, "error", LostError("first\nlast"))
    found = refusal(lambda: sweep_cluster._tune(work, "collector", tmp_path, report))
    assert (found.code, found.message) == ("cluster-failed", "the cluster failed: last")


def test_layers_that_share_weights_get_them_under_their_own_names_too() -> None:
    """A document does not say who shares; layers with weights of their own keep them."""
    layers = [Layer("a", "convolution"), Layer("b", "convolution", weights_of="a"), Layer("c", "convolution")]
    keys = {name: [WeightKey(name, tensor) for tensor in ("kernel", "bias")] for name in "abc"}
    tensors = {key: np.full(2, number, np.float32) for number, key in enumerate((*keys["a"], *keys["c"]))}
    found = cluster_job._weights_by_layer(Graph(layers), Weights(tensors, note="n"))
    assert found.note == "n"
    assert found.tensors.keys() == {key for each in keys.values() for key in each}
    for ours, theirs in zip(keys["b"], keys["a"], strict=True):
        assert found.tensors[ours] is tensors[theirs]
    assert all(found.tensors[key] is array for key, array in tensors.items())
