"""The loop of the exported project against one written by hand: same network, data, loader and optimizer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest
from bench_kit import Report

import samples
from designer.files.document import read_document
from designer.operators.registry import load
from exporters.pytorch import export_project

pytest.importorskip("pytest_benchmark")
pytest.importorskip("torch")

MINIMAL = """
import sys, time, torch, config, data, model
from images import Steps, loader
settings = config.parse(sys.argv[1:], "").config()
samples, _, _ = data.open_data(settings, config.HERE / "cache")
torch.set_num_threads(1)
torch.manual_seed(0)
network = model.Denoiser().to(memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(network.parameters(), 1e-3, weight_decay=1e-4)
batches = iter(loader(samples, Steps(0, settings.steps, settings.batch), settings.workers, False))
began = time.monotonic()
for clean, noise in batches:
    noisy = (clean + noise).contiguous(memory_format=torch.channels_last)
    loss = torch.nn.functional.l1_loss(network(noisy), clean)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()
print(time.monotonic() - began)
"""


def test_the_exported_loop_costs_no_more_than_one_by_hand(benchmark, tmp_path):
    steps, pairs = (150, 3) if not benchmark.disabled else (2, 1)
    graph = read_document(samples.starting_point("denoiser")).graph
    export_project(graph, load(entry_points=False), tmp_path / "project", "Denoiser")
    (tmp_path / "project" / "monitor.py").write_text(NO_MONITOR, "utf-8")  # its cost has a row of its own
    given = ["--data", str(samples.PHOTOGRAPHS), "--synthetic", "0", "--steps", str(steps), "--workers", "0"]
    given += ["--threads", "1", "--validate-every", "100000", "--validation", str(samples.HELD_OUT.parent)]

    def seconds(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command, *given],
            cwd=tmp_path / "project",
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    ours, by_hand = [], []
    for number in range(pairs):
        by_hand.append(float(seconds("-c", MINIMAL)))
        seconds("train.py", "--run", f"run{number}")
        ours.append(elapsed(tmp_path / "project" / f"run{number}"))
    benchmark.pedantic(lambda: None)
    Report(benchmark).ratio(
        "seconds per 150 training steps, data loading included", median(ours), "s", peer=median(by_hand),
        peer_name="minimal loop", target=1.05,
    )  # fmt: skip


NO_MONITOR = """
class Monitor:
    def __init__(self, *given, **named):
        pass

    def after_backward(self, *given):
        pass

    after_step = after_backward
"""


def elapsed(run: Path) -> float:
    return json.loads((run / "metrics.jsonl").read_text("utf-8").splitlines()[-1])["elapsed"]
