"""Trains the sample denoiser: photographs and dead leaves images, blind noise, and a loss that is the PSNR.

    layerwright export pytorch samples/denoiser.xml --output work --name denoiser
    torchrun --nproc-per-node 2 samples/train_denoiser.py work weights.pt --photographs FOLDER --minutes 80

The length is a time, not a number of steps, so a busy machine trains fewer steps. Each process computes on one thread.
`--weights` continues from a folder of weights, also from those of a smaller network; a last, short training with a low `--rate` and
with `--often 8-20` improves the result at low levels of noise.
"""

from __future__ import annotations

import argparse
import copy
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import distributed, nn

BATCH, PATCH = 4, 96  # of a process
POOL = 200  # dead leaves images
SCALES = (1, 0.75, 0.55, 0.4)
PHOTOGRAPHS = Path(__file__).parent / "photographs"


class Patches(torch.utils.data.IterableDataset[tuple[torch.Tensor, torch.Tensor]]):
    """Batches of clean and noisy patches, N x 3 x PATCH x PATCH.

    45 % are from the further photographs, 25 % from `photographs/` and 30 % from dead leaves images. The level of the noise is 2 to 55
    of 255, in 55 % of the patches within `often`.
    """

    def __init__(self, project: Path, photographs: list[Path], often: tuple[float, float], seed: int) -> None:
        self._project, self._photographs, self._often, self._seed = project, photographs, often, seed

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        sys.path.insert(0, str(self._project))
        from dead_leaves import dead_leaves

        torch.set_num_threads(1)
        rng = np.random.default_rng(self._seed)
        photos = [np.asarray(Image.open(path).convert("RGB")) for path in sorted(PHOTOGRAPHS.glob("*.jpg"))]
        areas = np.array([photo[..., 0].size * (1 if photo.std(2).mean() > 1 else 0.5) for photo in photos])
        leaves = (dead_leaves(512, np.random.default_rng((1, index)), photos) for index in range(POOL))
        samples, pool = scaled(photos), scaled(leaves)
        further = scaled(reduced(path) for path in self._photographs) or samples
        while True:
            patches: list[np.ndarray] = []
            while len(patches) < BATCH:
                kind = rng.random()
                if kind < 0.45:
                    scales = further[rng.integers(len(further))]
                elif kind < 0.7:
                    scales = samples[rng.choice(len(samples), p=areas / areas.sum())]
                else:
                    scales = pool[rng.integers(len(pool))]
                patch = cut(scales[rng.choice(len(scales), p=(0.4, 0.2, 0.2, 0.2))], rng)
                if np.abs(np.diff(patch.astype(np.int16), axis=1)).mean() > 10 * rng.random() - 0.5:
                    patches.append(changed(patch, rng))
            clean = torch.from_numpy(np.stack(patches))
            place = rng.random((BATCH, 1, 1, 1))
            low, high = self._often
            levels = np.where(rng.random(place.shape) < 0.45, 2 + 53 * place, low + (high - low) * place)
            sigma = torch.from_numpy(levels.astype(np.float32) / 255)
            yield clean, clean + sigma * torch.from_numpy(rng.standard_normal(clean.shape, np.float32))


def reduced(path: Path) -> np.ndarray:
    """A photo at half its size, and with at most 1,500 pixels along its longer side, without what JPEG left."""
    photo = Image.open(path).convert("RGB")
    factor = max(2, max(photo.size) / 1500)
    size = (round(photo.width / factor), round(photo.height / factor))
    return np.asarray(photo.resize(size, Image.Resampling.BOX))


def scaled(images: Iterable[np.ndarray]) -> list[list[np.ndarray]]:
    """Each image at all scales."""
    kinds = (Image.Resampling.LANCZOS, Image.Resampling.LANCZOS, Image.Resampling.BOX, Image.Resampling.LANCZOS)
    return [
        [
            np.asarray(image.resize([max(PATCH, round(n * scale)) for n in image.size], kind))
            for scale, kind in zip(SCALES, kinds, strict=True)
        ]
        for image in map(Image.fromarray, images)
    ]


def cut(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A patch of PATCH x PATCH x 3 bytes, turned and mirrored at random."""
    top, left = (int(rng.integers(length - PATCH + 1)) for length in image.shape[:2])
    patch = np.rot90(image[top : top + PATCH, left : left + PATCH], int(rng.integers(4)))
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
    for name, parameter in model.named_parameters():
        if parameter.ndim == 4:
            nn.init.kaiming_normal_(parameter, nonlinearity="relu")
            if name.startswith("conv_res_") and name.endswith("b.weight"):
                parameter.data.mul_(0.1)
        else:
            nn.init.zeros_(parameter)
    with torch.no_grad():
        first, last, inner = (getattr(model, name).weight for name in ("conv_enc_b", "conv_out_0", "conv_dec_0"))
        for weight in (first, last, inner):
            weight.mul_(0.1)
        first[:3], last[:, :3] = 0, 0
        for channel in range(3):
            first[channel, channel, 1, 1] = last[channel, channel, 1, 1] = 1


def adopt(model: nn.Module, folder: Path) -> None:
    """Take the weights of a folder; where the network has more channels, the new ones contribute little at first."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            layer, kind = name.rsplit(".", 1)
            path = folder / f"{layer}_{'kernel' if kind == 'weight' else kind}.npy"
            if path.exists():
                known = torch.from_numpy(np.load(path))
                both = tuple(slice(min(a, b)) for a, b in zip(known.shape, parameter.shape, strict=True))
                parameter[both[0]] *= 0.1
                parameter[both] = known[both]


class Muon(torch.optim.Optimizer):
    """Momentum whose matrices are made nearly orthogonal (Jordan et al. 2024), scaled to the step size of Adam.

    Like `torch.optim.Muon`, but for kernels of convolutions and computed in float32.
    """

    def __init__(self, parameters: list[nn.Parameter], lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for kernel in group["params"]:
                momentum = self.state[kernel].setdefault("momentum", torch.zeros_like(kernel)).lerp_(kernel.grad, 0.05)
                update = kernel.grad.lerp(momentum, 0.95).flatten(1)
                tall = update.shape[0] > update.shape[1]
                update = update.T if tall else update
                update = update / (update.norm() + 1e-12)
                for _ in range(5):  # Newton-Schulz
                    square = update @ update.T
                    update = 3.4445 * update + (2.0315 * square @ square - 4.775 * square) @ update
                update = (update.T if tall else update).reshape(kernel.shape)
                kernel.mul_(1 - 1e-4 * group["lr"])
                kernel.add_(update, alpha=-0.2 * group["lr"] * max(kernel.shape[0], kernel[0].numel()) ** 0.5)


def train(given: argparse.Namespace) -> None:
    """Train for a time; the first process writes the moving average of the weights as a state dict."""
    sys.path.insert(0, str(given.project))
    from model import Denoiser

    if "RANK" in os.environ:
        distributed.init_process_group("gloo")
    rank, processes = (distributed.get_rank(), distributed.get_world_size()) if distributed.is_initialized() else (0, 1)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Denoiser()
    begin_as_identity(model)
    if given.weights:
        adopt(model, given.weights)
    model = model.to(memory_format=torch.channels_last)
    average = copy.deepcopy(model)
    at_the_image = {"conv_enc_1", "conv_enc_b", "conv_pre_shuffle", "conv_out_0"}
    kernels = [p for name, p in model.named_parameters() if p.ndim == 4 and name.split(".")[0] not in at_the_image]
    others = [p for p in model.parameters() if all(p is not kernel for kernel in kernels)]
    optimizers = [
        torch.optim.AdamW(others, lr=given.rate, weight_decay=1e-4, betas=(0.9, 0.99)),
        Muon(kernels, given.rate),
    ]
    photographs = sorted(given.photographs.iterdir()) if given.photographs else []
    data = Patches(given.project, photographs, tuple(map(float, given.often.split("-"))), rank)
    batches = iter(torch.utils.data.DataLoader(data, batch_size=None, num_workers=1, prefetch_factor=8))
    next(batches)
    began, done, step = time.monotonic(), 0.0, 0
    while done < 1:
        for group in (group for optimizer in optimizers for group in optimizer.param_groups):
            cosine = 0.5 * (1 + math.cos(math.pi * done))
            group["lr"] = given.rate * min(1, (step + 1) / 150) * (0.995 * cosine + 0.005)
        clean, noisy = (t.contiguous(memory_format=torch.channels_last) for t in next(batches))
        squared = (model(noisy) - clean).square().mean((1, 2, 3))
        loss = (squared + 1e-6).log().mean()
        model.zero_grad()
        loss.backward()
        elapsed = torch.tensor([(time.monotonic() - began) / (60 * given.minutes)])
        gradients = torch.cat([p.grad.reshape(-1) for p in model.parameters()] + [elapsed])
        if processes > 1:
            distributed.all_reduce(gradients)
            gradients /= processes
        done = gradients[-1].item()  # the same in all processes, so that all take the same steps
        for p, gradient in zip(
            model.parameters(), gradients[:-1].split([p.numel() for p in model.parameters()]), strict=True
        ):
            p.grad.copy_(gradient.view_as(p))
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        step += 1
        with torch.no_grad():
            decay = min(0.999, (step + 1) / (step + 20))
            torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1 - decay)
        if step % 500 == 0 and not rank:
            print(f"step {step}, {100 * done:.1f} %, {-10 * squared.log10().mean().item():.2f} dB", flush=True)
            torch.save(average.state_dict(), given.output)
    if not rank:
        torch.save(average.state_dict(), given.output)
        print(f"{step} steps")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path, help="folder of the exported project")
    parser.add_argument("output", type=Path, help="file for the weights")
    parser.add_argument("--minutes", type=float, default=80)
    parser.add_argument("--photographs", type=Path, help="folder with further photographs")
    parser.add_argument("--weights", type=Path, help="folder of weights to begin with")
    parser.add_argument("--rate", type=float, default=8e-4, help="the learning rate, which decays to almost 0")
    parser.add_argument(
        "--often", default="6-24", help="levels of noise that more than half of the patches have, of 255"
    )
    train(parser.parse_args())
