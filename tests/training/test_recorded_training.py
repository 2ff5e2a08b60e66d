"""Options, axes and trials of sweeps, states of runs, health and metrics: what is made of many inputs, as recorded."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any

import pytest
from recorded import check_lines, check_recorded

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.training.health import METRICS, Health, HealthFile, HealthHeat, Problem, health_at, health_heat
from designer.training.metrics import MetricsFile, settings_differences
from designer.training.progress import parse_line
from designer.training.run_folder import RunFolder
from designer.training.sweep import Axis, Sweep, Trial, trials
from designer.training.trainer import arguments, options_of, parse_options, with_absolute_paths
from designer.training.watched_run import RunState, WatchedRun

LINES = (
    "", "--ema 0.999 --compile", "--no-amp", "--batch-size=8 --lr 1e-4", "--no-amp 3", "--no-amp=1", "word", "--", "--a b c",
    "--stop-on=", "--a=--b", "--no-a --a", "--a --no-a", "--a-b-c d --a_b_c e", "--data 'x'", "-x 1", "--noise 15,25",
)  # fmt: skip
SETTINGS: dict[str, Any] = {
    "batch": 8, "lr": 1e-4, "amp": False, "compile": True, "data": "", "validation": "here", "ema": -1, "stop_on": "",
    "steps": 0, "epochs": 10, "list": [1], "nothing": None, "seed": 0,
}  # fmt: skip
AXES = (
    "noise=15,25", "lr=1e-4..1e-2", " early-stopping = 3 , 5 ", "width.conv_1=16,32", "width.a=b=16", "width.conv_1=8..64", "batch=2..32",
    "noise=", "=3", "noise", "noise=15,15", "noise=1,,2", "lr=a..b", "lr=0..1", "lr=2..1", "lr=1..1", "lr=-1..1", "lr=1..inf", "lr=1..nan",
    "x" * 100 + "=", "steps=10..1000", "width.=1,2", "lr=1e-3...1e-2",
)  # fmt: skip


def answer(call: Callable[[], object]) -> str:
    try:
        return str(call())
    except DiagnosticError as error:
        return str(error)


def test_options_of_training() -> None:
    lines = [f"{line!r}: {answer(lambda line=line: parse_options(line.split()))}" for line in LINES]  # type: ignore[misc]
    lines += [f"{line!r}: {answer(lambda line=line: arguments(parse_options(line.split())))}" for line in LINES]  # type: ignore[misc]
    for changed in ({}, {"steps": 200}, {"steps": "0"}, {"stop_on": "nan"}, {"epochs": 0}):
        lines.append(f"{changed}: {dict(options_of({**SETTINGS, **changed}))}")
    there = with_absolute_paths(
        {"data": "a/b", "inputs": "", "targets": "/c", "validation": True, "lr": "a/b", "from_weights": "w"}
    )
    lines.append(str({key: str(value).replace(str(Path.cwd()), "HERE") for key, value in there.items()}))
    configs = [{"a": 1, "b": 2}, {"a": 1, "c": None}, {"b": 3, "a": 1, "c": 0}]
    lines += [str(settings_differences(configs)), str(settings_differences(configs[:1])), str(settings_differences([]))]
    check_recorded("training/options.txt", "\n".join([*lines, ""]))


def test_axes_and_trials_of_sweeps() -> None:
    lines = [f"{text[:60]}: {answer(lambda text=text: Axis.parse(text))}" for text in AXES]  # type: ignore[misc]
    draw = Random(1)
    drawn_from = ("noise=15,25", "lr=1e-4..1e-2", "width.conv_1=8..64", "batch=2..32", "early-stopping=1..9")
    lines += [f"{text}: {[Axis.parse(text).draw(draw) for _ in range(6)]}" for text in drawn_from]
    for texts, drawn, seed in (
        (("noise=15,25", "width.c=16,32"), 0, 0), (("noise=15,25", "width.c=16,32"), 3, 0), (("noise=15,25", "width.c=16,32"), 3, 1),
        (("noise=15,25",), 9, 0), (("lr=1e-4..1e-2",), 0, 0), (("lr=1e-4..1e-2", "noise=1,2"), 4, 5), ((), 0, 0), (("a=1", "a=2"), 0, 0),
        (("width.c=8..9",), 5, 0), ((f"a={','.join(map(str, range(101)))}", f"b={','.join(map(str, range(100)))}"), 0, 0),
        ((f"a={','.join(map(str, range(101)))}", f"b={','.join(map(str, range(100)))}"), 3, 0), (("a=1,2",), 10_001, 0),
    ):  # fmt: skip
        axes = [Axis.parse(text) for text in texts]
        found = answer(lambda axes=axes, drawn=drawn, seed=seed: [trial.title for trial in trials(axes, drawn, seed)])  # type: ignore[misc]
        lines.append(f"{[text[:20] for text in texts]} {drawn} {seed}: {found}")
    graph = Graph([
        Layer("in", "input", params={"dims": "8x8x3"}),
        Layer("c", "convolution", inputs=(Source("in"),), params={"features": "4", "kernel": "3x3"}),
        Layer("d=1", "convolution", inputs=(Source("c"),), params={"features": "5"}),
        Layer("u", "unary", inputs=(Source("c"),)),
    ])  # fmt: skip
    for number, values in enumerate(({"noise": "15"}, {"width.c": "16", "lr": "0.1"}, {"width.d=1": "7", "width.c": "2"}, {"width.x": "3"},
                                     {"width.u": "3"}, {"width.c": "1.5"}, {"width.c": "²"}), 1):  # fmt: skip
        trial = Trial(number, values)
        made = answer(lambda trial=trial: [(layer.name, dict(layer.params)) for layer in trial.graph(graph)])  # type: ignore[misc]
        lines.append(f"{trial.name} {trial.title} {trial.widths} {trial.options} {trial.network}: {made}")
    assert graph["c"].params["features"] == "4"
    check_recorded("training/sweeps.txt", "\n".join([*lines, ""]))


def status(state: str, **more: Any) -> str:
    return json.dumps({"state": state, "pid": 5, "step": 30, "total_steps": 100, "message": "said", **more})


def snapshot_text(watched: WatchedRun, folder: Path) -> str:
    shot = watched.snapshot
    parts = {
        item.name: getattr(shot, item.name) for item in fields(shot) if item.name not in ("folder", "curves", "health")
    }
    parts |= {
        "title": shot.title,
        "stopped_by": str(shot.stopped_by or ""),
        "left": shot.seconds_left,
        "compared": dict(shot.compared),
    }
    parts |= {"can": (shot.can_follow, shot.can_resume, shot.state.trains), "text": shot.state.text}
    return ", ".join(
        f"{name} {value}" for name, value in parts.items() if value not in ("", (), {}, None, False)
    ).replace(str(folder), "")


def states(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """Every state that the trainer reports, with and without a process, here and on another machine."""
    said = [
        None,
        *(status(state) for state in ("running", "paused", "stopped", "finished", "failed")),
        status("running", pid=9, message=""),
        status("failed", message=""),
        "{broken",
    ]
    for number, (text, pid, remote, more) in enumerate(
        itertools.product(said, (0, 5), (False, True), ("", "metrics", "stopped", "lost"))
    ):
        run = folder / "runs" / f"run_{number}"
        (run / "checkpoints").mkdir(parents=True)
        monkeypatch.setattr(RunFolder, "process", lambda self, pid=pid: pid)
        if text is not None:
            (run / "status.json").write_text(text)
        if remote:
            (run / "remote.json").write_text(
                json.dumps({"host": "far", "python": "py", "run": "/f", "paths": {"data": "d"}})
            )
        if more == "lost":
            (run / "connection.txt").write_text("no route")
            (run / "notes.json").write_text('{"title": "My run", "text": "t"}')
        if more in ("metrics", "stopped"):
            (run / "metrics.jsonl").write_text(
                '{"schema": 1, "total_steps": 80, "task": "denoising"}\n'
                + "".join(f'{{"step": {step}, "elapsed": {step * 0.5}, "loss": {1 / step}}}\n' for step in (10, 20, 40))
            )
            (run / "config.json").write_text('{"settings": {"lr": 0.1, "data": "here"}, "task": "denoising"}')
            (run / "validation" / "step_000020").mkdir(parents=True)
            (run / "validation" / "step_000060").mkdir()
            (run / "checkpoints" / "last.pt").write_bytes(b"")
        if more == "stopped":
            problem = '{"layer": "c", "kind": "exploding", "since": 35}'
            (run / "health.jsonl").write_text(f'{{"step": 40, "problems": [{problem}], "stopped_by": {problem}}}\n')
        if more == "":
            (run / "output.log").write_text("first\nlast line\n")
        watched = WatchedRun(RunFolder(run), {"width.c": "8"} if more else None, {"validation": "v"})
        changed = watched.read()
        again = watched.read()
        name = f"{text if text is None else text[:60]} process {pid} {'far' if remote else 'here'} {more}"
        yield name, f"{changed} {again} {snapshot_text(watched, run)}".replace(str(folder), "")


def test_the_states_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{name}: {text}" for name, text in states(tmp_path, monkeypatch)]
    lines += [f"{state}: {state.text} {state.trains}" for state in RunState]
    check_lines("training/states.txt", lines)


def test_results_of_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunFolder, "process", lambda self: 0)
    found = trials([Axis.parse("noise=15,25"), Axis.parse("width.c=4,8,16")])
    sweep = Sweep(tmp_path, tuple(found), {"steps": "50", "amp": True})
    lines = [
        answer(lambda: sweep.open("digest")),
        answer(lambda: sweep.open("digest")),
        answer(lambda: sweep.open("other")),
    ]
    scores = (("psnr", [20.0, 30.0, 25.0]), ("psnr", [31.0]), ("loss", [0.5, 0.25]), ("iou", [float("nan"), 0.5]), None)
    for trial, score in zip(found, scores, strict=False):
        run = sweep.run(trial)
        run.path.mkdir(parents=True)
        (run.path / "status.json").write_text(status("finished", message="=1+1"))
        if score is not None:
            name, values = score
            text = "".join(
                f'{{"step": {n}, "validation": {{"{name}": {json.dumps(value)}, "loss": 9}}}}\n'
                for n, value in enumerate(values, 1)
            )
            (run.path / "metrics.jsonl").write_text(text)
        lines.append(f"{trial.name} in {sweep.project(trial).name}: {sweep.arguments(trial)}")
    rows = sweep.write()
    lines += [
        f"{row.trial.name} {row.state} {row.step} {row.metric} {row.value} {row.message} {row.order}" for row in rows
    ]
    for name in ("results.csv", "results.json", "sweep.json"):
        lines += (tmp_path / name).read_text().splitlines()
    again = Sweep.read(tmp_path)
    assert (again.trials, again.options) == (sweep.trials, sweep.options)
    lines += [answer(lambda: Sweep.read(tmp_path / "none")), again.job.path.name]
    check_recorded("training/results.txt", "\n".join(lines).replace(str(tmp_path), "") + "\n")


def test_health_of_layers(tmp_path: Path) -> None:
    draw = Random(2)
    lines = []
    path = tmp_path / "health.jsonl"
    file = HealthFile(path)
    lines.append(f"{file.read()} {file.measured}")
    written = b""
    for step in (10, 20, 30, 20, 25, 40):
        layers = {
            name: {metric: draw.choice([0.0, None, 10 ** draw.uniform(-9, 2), draw.random()]) for metric in METRICS}
            for name in ("a", "b.c", "b.d", "e")
        }
        problems = [
            {"layer": draw.choice("ae"), "kind": draw.choice(["dead", "exploding", "new kind"]), "since": step - 5}
        ]
        written += (
            json.dumps({"step": step, "layers": layers, "problems": problems}).encode()
            + b"\n"
            + draw.choice([b"", b"broken\n"])
        )
        path.write_bytes(written)
        lines.append(f"{file.read()} {file.read()} {[health.step for health in file.measured]}")
    for step in (None, 5, 10, 24, 99):
        found = health_at(file.measured, step)
        lines.append(f"at {step}: {found.step if found else None}")
        for metric in (*METRICS, "problems") if found else ():
            assert found is not None
            for in_sight in (str, lambda layer: layer.partition(".")[0] if layer != "e" else ""):
                heat = health_heat(found, metric, in_sight)
                values = {layer: (heat.text(value), f"{heat.share(layer):.4f}") for layer, value in heat.values.items()}
                lines.append(f"  {heat.title} {heat.logarithmic} {heat.ends} {values} {dict(heat.problems)}")
    for values in ({}, {"a": 0.0}, {"a": 0.0, "b": 0.0}, {"a": 1e-12, "b": 1.0}, {"a": 2.0}):
        for logarithmic in (False, True):
            heat = HealthHeat("t", values, {}, logarithmic)
            lines.append(f"{values} {heat.ends} {[f'{heat.share(layer):.4f}' for layer in values]}")
    lines += [str(Problem("a", kind, 3)) for kind in ("dead", "other")]
    lines.append(str(Health(3).stopped_by))
    path.unlink()
    lines.append(f"{file.read()} {file.read()} {file.measured}")
    check_lines("training/health.txt", lines)


METRIC_LINES = (
    '{"schema": 1, "total_steps": 50, "task": "denoising", "on_training": true}',
    '{"step": 1, "loss": 0.5, "elapsed": 1.0, "losses": {"l1": 0.25}}',
    '{"step": 2, "loss": NaN, "elapsed": 2.5, "validation": {"psnr": 30, "loss": 0.1}}',
    '{"step": 3, "loss": Infinity, "losses": {"l1": -Infinity, "ssim": 0.5}}', "broken", '{"step": "4"}', "",
    '{"step": 5, "elapsed": 8.0, "learning_rate": 0.001, "throughput": 12.5, "memory": 3}',
    '{"step": 3, "loss": 0.125, "elapsed": 5.0}', '{"schema": 2, "total_steps": 99, "task": "denoising"}', '{"step": 4, "epoch": 2.5, "unknown": 1}',
    '{"schema": "x"}', '{"step": 1, "validation": {"iou": 0.5}}', '{"step": 9223372036854775808}', '{"step": 2, "elapsed": 6.0, "time": 1e9}',
)  # fmt: skip


@pytest.mark.parametrize("together", [1, 3, 99])
def test_metrics_of_a_file_that_grows(together: int, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    file = MetricsFile(path)
    lines = []
    for place in range(0, len(METRIC_LINES), together):
        path.write_text("".join(f"{line}\n" for line in METRIC_LINES[: place + together]) + '{"step": 7')
        changed = file.read()
        curves = file.curves
        values = {name: [round(float(value), 4) for value in found] for name, found in curves.values.items()}
        about = (curves.total_steps, curves.task, curves.on_training, curves.skipped, curves.validated)
        lines.append(f"{changed} {file.read()} {curves.steps.tolist()} {values} {about}")
        points = [round(float(value), 4) for value in curves.points("loss")[1]]
        lines.append(
            f"  {points} {curves.last('loss')} {curves.last('none')} {curves.seconds_per_step()} {curves.seconds_per_step(2)}"
        )
    check_recorded(f"training/metrics_{together}.txt", "\n".join([*lines, ""]))


EVENTS = (
    "", "text", "{", '{"event": "start", "step": 0, "steps": 9, "parameters": 3, "pictures": 2, "made_up": 1, "device": "cpu", "held_out": ["a"], "x": 1}',
    ' {"event": "step", "step": 1, "steps": 9, "loss": 0.5, "lr": 0.1, "seconds": 2, "steps_per_second": 4, "losses": {"a": 1}} ',
    '{"event": "step", "step": 1, "steps": 9, "loss": 0.5, "lr": 0.1, "seconds": 2, "steps_per_second": 0}',
    '{"event": "step", "step": -1, "steps": 9, "loss": 0.5, "lr": 0.1, "seconds": 2, "steps_per_second": 0}',
    '{"event": "validation", "step": 3, "psnr": 30.5, "noisy_psnr": 20, "on_training": true, "losses": {"l1": 0.1}}',
    '{"event": "validation", "step": 3}', '{"event": "checkpoint", "step": 3, "path": "p"}', '{"event": "stopped", "step": 3, "steps": 9, "message": "m"}',
    '{"event": "done", "step": 9, "steps": 9, "weights": "w"}', '{"event": "error", "message": "m"}', '{"event": "other"}', '{"step": 1}',
    '{"event": "error", "message": "' + "m" * (1 << 20) + '"}',
)  # fmt: skip


def test_events_of_training() -> None:
    found = [parse_line(line) for line in EVENTS]
    lines = [
        f"{line[:100]}: {event} {getattr(event, 'seconds_left', '')}" for line, event in zip(EVENTS, found, strict=True)
    ]
    check_recorded("training/events.txt", "\n".join([*lines, ""]))
