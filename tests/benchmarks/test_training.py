"""The loop of the exported project against one written by hand: same network, data, loader and optimizer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench_kit import Report, medians_in_turns

import samples
from designer.files.document import read_document
from designer.operators.registry import load
from exporters.pytorch import export_project

pytest.importorskip("pytest_benchmark")
pytest.importorskip("torch")

BLOCK = 10  # steps

MINIMAL = """
import sys, torch, config, data, model, monitor
from images import Steps, loader
settings = config.parse(sys.argv[1:], "").config()
samples, _, _ = data.open_data(settings, config.HERE / "cache")
torch.set_num_threads(1)
torch.manual_seed(0)
network = model.Denoiser().to(memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(network.parameters(), 1e-3, weight_decay=1e-4)
gate = monitor.Monitor()
for step, (clean, noise) in enumerate(loader(samples, Steps(0, settings.steps, settings.batch), settings.workers, False), 1):
    noisy = (clean + noise).contiguous(memory_format=torch.channels_last)
    loss = torch.nn.functional.l1_loss(network(noisy), clean)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()
    gate.after_step(step)
"""

# Instead of the monitor, whose cost has a row of its own: waits for a line of the standard input after every block.
GATE = f"""
class Monitor:
    def __init__(self, *given, **named):
        input()

    def after_backward(self, *given):
        pass

    def after_step(self, step, *given):
        if step % {BLOCK} == 0:
            print("block", flush=True)
            input()
"""


class Trainer:
    """A training process that trains one block of steps at each call."""

    def __init__(self, project: Path, *command: str) -> None:
        given = ["--data", str(samples.PHOTOGRAPHS), "--synthetic", "0", "--steps", "100000", "--workers", "0"]
        given += ["--threads", "1", "--validate-every", "100000", "--validation", str(samples.HELD_OUT.parent)]
        self.process = subprocess.Popen(
            [sys.executable, *command, *given],
            cwd=project,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __call__(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert any(line == "block\n" for line in self.process.stdout), "the training ended"

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_the_exported_loop_costs_no_more_than_one_by_hand(benchmark, tmp_path):
    """In turns, so that a busy machine disturbs both; the first block, which also imports and decodes, is not counted."""
    graph = read_document(samples.starting_point("denoiser")).graph
    project = tmp_path / "project"
    export_project(graph, load(entry_points=False), project, "Denoiser")
    (project / "monitor.py").write_text(GATE, "utf-8")
    ours, by_hand = Trainer(project, "train.py"), Trainer(project, "-c", MINIMAL)
    try:
        times = medians_in_turns(ours, by_hand, 1 if benchmark.disabled else 20)
    finally:
        ours.end()
        by_hand.end()
    benchmark.pedantic(lambda: None)
    Report(benchmark).ratio(
        f"{BLOCK} training steps, data loading included", times[0], "ms", peer=times[1], peer_name="minimal loop",
        target=1.05,
    )  # fmt: skip
