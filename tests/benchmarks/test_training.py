"""The exported training project against a loop and a data set written by hand: same network, images, patches, noise and optimizer."""

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
import sys, numpy as np, torch, model, monitor
from pathlib import Path
from PIL import Image
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler

options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
BATCH, PATCH, NOISE = int(options["--batch"]), int(options["--patch"]), 25 / 255

class Patches(Dataset):
    def __init__(self, folder):
        self.images = [np.asarray(Image.open(path).convert("RGB")) for path in sorted(Path(folder).glob("*.jpg"))]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, number):
        image = self.images[number]
        side = round(PATCH / np.random.choice((1.0, 1.0, 0.75, 0.5)))
        top, left = (np.random.randint(length - side + 1) for length in image.shape[:2])
        patch = image[top : top + side, left : left + side]
        if side != PATCH:
            patch = np.asarray(Image.fromarray(patch).resize((PATCH, PATCH), Image.Resampling.BOX))
        patch = np.rot90(patch, np.random.randint(4))
        if np.random.random() < 0.5:
            patch = patch[:, ::-1]
        clean = torch.from_numpy(patch.transpose(2, 0, 1).astype(np.float32, order="C")) / 255
        return clean + NOISE * torch.randn(clean.shape), clean

torch.set_num_threads(int(options["--threads"]))
dataset = Patches(options["--data"])
sampler = RandomSampler(dataset, replacement=True, num_samples=BATCH * int(options["--steps"]))
network = model.Denoiser().to(memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(network.parameters(), 1e-3, weight_decay=1e-4)
gate = monitor.Monitor()
for step, (noisy, clean) in enumerate(DataLoader(dataset, BATCH, sampler=sampler), 1):
    loss = F.l1_loss(network(noisy.to(memory_format=torch.channels_last)), clean)
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

    def __init__(self, project: Path, *command: str, batch: int, patch: int) -> None:
        given = ["--data", str(samples.PHOTOGRAPHS), "--synthetic", "0", "--steps", "100000", "--workers", "0"]
        given += ["--batch", str(batch), "--patch", str(patch)]
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


@pytest.mark.bench
def test_the_exported_loop_costs_no_more_than_one_by_hand(benchmark, tmp_path):
    """In turns, so that a busy machine disturbs both; the first block, which also imports and decodes, is not counted."""
    graph = read_document(samples.starting_point("denoiser")).graph
    project = tmp_path / "project"
    export_project(graph, load(entry_points=False), project, "Denoiser")
    (project / "monitor.py").write_text(GATE, "utf-8")
    size = {"batch": 1, "patch": 16} if benchmark.disabled else {"batch": 16, "patch": 64}
    ours, by_hand = Trainer(project, "train.py", **size), Trainer(project, "-c", MINIMAL, **size)
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
