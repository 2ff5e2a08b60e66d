"""Trains the sample denoiser: photographs and dead leaves images, blind noise, bfloat16, and a loss that is the PSNR.

    layerwright export pytorch samples/denoiser.xml --output work --name denoiser
    python samples/train_denoiser.py work weights.pt --minutes 105

The length is a time, not a number of steps, so a busy machine trains fewer steps. Runs on one thread.
"""

from __future__ import annotations

import argparse
import copy
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

BATCH, PATCH = 16, 96
NOISE = (2, 55)  # standard deviation, of 255
POOL = 650  # dead leaves images
PHOTOGRAPHS = Path(__file__).parent / "photographs"


class Patches(torch.utils.data.IterableDataset[tuple[torch.Tensor, torch.Tensor]]):
    """Batches of clean and noisy patches, N x 3 x PATCH x PATCH: half from photographs, half from dead leaves images."""

    def __init__(self, project: Path) -> None:
        self._project = project

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        sys.path.insert(0, str(self._project))
        from dead_leaves import dead_leaves

        torch.set_num_threads(1)
        rng = np.random.default_rng(0)
        photos = [np.asarray(Image.open(path).convert("RGB")) for path in sorted(PHOTOGRAPHS.glob("*.jpg"))]
        areas = np.array(
            [photo.shape[0] * photo.shape[1] * (1 if photo.std(2).mean() > 1 else 0.5) for photo in photos]
        )
        pool: list[np.ndarray] = []
        while True:
            if len(pool) < POOL:
                pool.append(dead_leaves(512, np.random.default_rng((1, len(pool))), photos))
            patches = []
            for _ in range(BATCH):
                if rng.random() < 0.5:
                    image = photos[rng.choice(len(photos), p=areas / areas.sum())]
                    scale = rng.choice([1, 1, 1, 0.8, 0.65, 0.5, 1.2])
                else:
                    image, scale = pool[rng.integers(len(pool))], rng.choice([1, 1, 1, 0.75, 0.5])
                patches.append(changed(cut(image, scale, rng), rng))
            clean = torch.from_numpy(np.stack(patches))
            sigma = torch.from_numpy(rng.uniform(*NOISE, (BATCH, 1, 1, 1)).astype(np.float32)) / 255
            yield clean, clean + sigma * torch.from_numpy(rng.standard_normal(clean.shape, np.float32))


def cut(image: np.ndarray, scale: float, rng: np.random.Generator) -> np.ndarray:
    """A patch of PATCH x PATCH x 3 bytes at another scale, turned and mirrored at random."""
    side = min(round(PATCH / scale), *image.shape[:2])
    top, left = (int(rng.integers(length - side + 1)) for length in image.shape[:2])
    patch = np.ascontiguousarray(image[top : top + side, left : left + side])
    if side != PATCH:
        smaller = Image.Resampling.BOX if rng.random() < 0.5 else Image.Resampling.LANCZOS
        kind = Image.Resampling.BICUBIC if side < PATCH else smaller
        patch = np.asarray(Image.fromarray(patch).resize((PATCH, PATCH), kind))
    patch = np.rot90(patch, int(rng.integers(4)))
    return patch[:, ::-1] if rng.random() < 0.5 else patch


def changed(patch: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """3 x PATCH x PATCH in 0..1 with other colors, brightness and contrast in some patches."""
    values = patch.astype(np.float32) / 255
    if rng.random() < 0.3:
        values = values[:, :, rng.permutation(3)]
    if rng.random() < 0.4:
        values = values ** rng.uniform(0.7, 1.4) * rng.uniform(0.6, 1.0) + rng.uniform(0, 0.1)
    if rng.random() < 0.3:
        gray = values.mean(2, keepdims=True)
        values = gray + (values - gray) * rng.uniform(0, 1.5)
    return values.clip(0, 1).transpose(2, 0, 1).astype(np.float32)


def begin_as_identity(model: nn.Module) -> None:
    """Three channels of the skip connection pass the image through; the other layers start with small results there."""
    for parameter in model.parameters():
        if parameter.ndim == 4:
            nn.init.kaiming_normal_(parameter, nonlinearity="relu")
        else:
            nn.init.zeros_(parameter)
    with torch.no_grad():
        first, last, inner = (getattr(model, name).weight for name in ("conv_enc_b", "conv_out_0", "conv_dec_0"))
        for weight in (first, last, inner):
            weight.mul_(0.1)
        first[:3], last[:, :3] = 0, 0
        for channel in range(3):
            first[channel, channel, 1, 1] = last[channel, channel, 1, 1] = 1


def train(project: Path, output: Path, seconds: float) -> None:
    """Train for a time; writes the moving average of the weights as a state dict."""
    sys.path.insert(0, str(project))
    from model import Denoiser

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Denoiser()
    begin_as_identity(model)
    model = model.to(memory_format=torch.channels_last)
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4, betas=(0.9, 0.99))
    batches = iter(torch.utils.data.DataLoader(Patches(project), batch_size=None, num_workers=1, prefetch_factor=8))
    began, step = time.time(), 0
    while (done := (time.time() - began) / seconds) < 1:
        for group in optimizer.param_groups:
            cosine = 0.5 * (1 + math.cos(math.pi * done))
            group["lr"] = 1e-3 * min(1, (step + 1) / 300) * (0.995 * cosine + 0.005)
        clean, noisy = (t.contiguous(memory_format=torch.channels_last) for t in next(batches))
        with torch.autocast("cpu", torch.bfloat16, enabled=done < 0.9):
            result = model(noisy)
        error = result.float() - clean
        squared = (error * error).mean((1, 2, 3))
        loss = 10 * error.abs().mean() if done < 0.25 else (squared + 1e-6).log().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        decay = min(0.999, step / (step + 20))
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1 - decay)
        if step % 500 == 0:
            print(f"step {step}, {100 * done:.1f} %, {-10 * squared.log10().mean().item():.2f} dB", flush=True)
    torch.save(average.state_dict(), output)
    print(f"{step} steps")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path, help="folder of the exported project")
    parser.add_argument("output", type=Path, help="file for the weights")
    parser.add_argument("--minutes", type=float, default=105)
    given = parser.parse_args()
    train(given.project, given.output, 60 * given.minutes)
