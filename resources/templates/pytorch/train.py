"""Train the network to remove noise from images.

    python train.py --data photographs --noise 25 --epochs 100
    python train.py --data photographs --noise 0-55 --steps 20000 --device cuda --amp
    python train.py --resume

Writes weights/ (one .npy file per tensor, for the designer), weights.pt (a state dict), checkpoints/, log.jsonl,
curves.png and before_after.png.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import data
import model
import numpy as np
import torch
from tqdm import tqdm

HERE = Path(__file__).resolve().parent
INPUTS = data.PROJECT["inputs"]
LOSSES = data.PROJECT["losses"]  # names of the losses in losses.py; if empty, the L1 difference of output and target
TARGETS = data.PROJECT["targets"]  # targets of the losses
SHARED = data.PROJECT["shared"]  # modules of the network whose weights the losses share
# Settings of a run. They are saved in checkpoints and restored by --resume.
RECIPE = ("data", "validation", "noise", "patch", "batch", "steps", "lr", "seed", "synthetic", "validate_every", "amp")


class TrainingError(Exception):
    """Training cannot continue; the message says why and what to do."""


class Progress:
    """Reports progress: a progress bar, or one JSON object per line for programs. All events are also logged."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.bar: tqdm | None = None
        self.log: Path | None = None

    def event(self, event: str, **values: Any) -> None:
        line = json.dumps({"event": event, **values})
        if self.log is not None:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        if self.as_json:
            print(line, flush=True)
        elif event == "start":
            self.bar = tqdm(total=values["steps"], initial=values["step"], unit="step", dynamic_ncols=True)
        elif event == "step" and self.bar is not None:
            self.bar.update(values["step"] - self.bar.n)
            parts = {name: f"{value:.4f}" for name, value in values["losses"].items()} if len(LOSSES) > 1 else {}
            self.bar.set_postfix(loss=f"{values['loss']:.4f}", **parts, lr=f"{values['lr']:.1e}")
        elif event == "validation":
            results = [f"{name} {value:.4f}" for name, value in values["losses"].items()]
            if "psnr" in values:
                results.insert(0, f"PSNR {values['psnr']:.2f} dB (noisy {values['noisy_psnr']:.2f} dB)")
            tqdm.write(f"step {values['step']}: {', '.join(results)}")
        elif event in ("done", "stopped"):
            if self.bar is not None:
                self.bar.close()
            tqdm.write(values["message"])

    def error(self, message: str) -> None:
        if self.as_json:
            print(json.dumps({"event": "error", "message": message}), flush=True)
        print(f"error: {message}", file=sys.stderr)


def noise_range(text: str) -> tuple[float, float]:
    """Noise level(s), of 255: "25", or a range "0-55" for blind denoising."""
    try:
        numbers = [float(part) for part in text.split("-")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2) or not all(0 <= n <= 255 for n in numbers) or numbers[0] > numbers[-1]:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a noise level; use a level such as 25 or a range such as 0-55, within 0..255"
        )
    return (numbers[0], numbers[-1])


def number(text: str, least: int = 1) -> int:
    """Parse an integer of at least `least`."""
    if not text.strip().isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"'{text}' is not an integer of at least {least}")
    return int(text)


def from_zero(text: str) -> int:
    """Parse an integer of at least 0."""
    return number(text, 0)


def rate(text: str) -> float:
    """Parse a learning rate."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a learning rate between 0 and 1")
    return value


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", type=Path, help="folder with training images")
    add("--validation", type=Path, help="folder with validation images (default: part of --data)")
    add(
        "--noise",
        type=noise_range,
        default=(25.0, 25.0),
        help="noise level 0..255, or a range such as 0-55 (default 25)",
    )
    add("--patch", type=number, default=64, help="size of the training patches in pixels (default 64)")
    add("--batch", type=number, default=16, help="patches per step (default 16)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=number, default=100, help="passes over the images (default 100)")
    length.add_argument("--steps", type=number, help="number of steps, instead of --epochs")
    add("--lr", type=rate, default=1e-3, help="peak learning rate (default 0.001), with cosine decay to 0")
    add("--seed", type=from_zero, default=0, help="the same seed gives the same run on the same machine")
    add("--synthetic", type=from_zero, help="number of synthetic images (default: fill up to 16 images)")
    add("--validate-every", type=number, default=250, help="steps between validations and checkpoints (default 250)")
    add("--output", type=Path, default=HERE, help="folder for weights, checkpoints, log and plots")
    add("--amp", action="store_true", help="mixed precision (float16 on cuda, bfloat16 on cpu)")
    add("--resume", action="store_true", help="resume exactly from the last checkpoint, with its settings")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cpu, cuda, cuda:1, ...")
    add("--threads", type=from_zero, default=0, help="threads on the CPU (default: all)")
    add("--json-progress", action="store_true", help="print one JSON object per line instead of a progress bar")
    args = parser.parse_args(argv)
    if args.data is None and not args.resume and not args.synthetic:
        parser.error("--data is required (or --resume, or --synthetic N to train with synthetic images only)")
    return args


def first_output(result: Any) -> torch.Tensor:
    """The output that is compared with the target: the only or first one."""
    return next(iter(result.values())) if isinstance(result, dict) else result


def learning_rate(highest: float, step: int, steps: int) -> float:
    """Linear warmup, then cosine decay to 0."""
    warmup = min(100, steps // 10)
    if step < warmup:
        return highest * (step + 1) / warmup
    return highest * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def save_atomically(path: Path, write: Any) -> None:
    """Call `write` with a temporary file next to `path`, then rename it to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def save_weights(network: torch.nn.Module, folder: Path) -> None:
    """Write weights/<layer>_<tensor>.npy, float32, and weights.pt with the state dict."""
    state = {key: tensor.detach().cpu() for key, tensor in network.state_dict().items()}
    for key, stem in data.PROJECT["weights"].items():
        array = np.ascontiguousarray(state[key].float().numpy())
        save_atomically(folder / "weights" / f"{stem}.npy", lambda file, array=array: np.save(file, array))
    save_atomically(folder / "weights.pt", lambda file: torch.save(state, file))


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read the state that `Run.save` wrote."""
    if not path.is_file():
        raise TrainingError(f"there is no checkpoint {path}; start without --resume")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise TrainingError(f"{path} cannot be read ({error}); start without --resume") from error


def check_fit(inputs: tuple[torch.Tensor, ...], targets: tuple[torch.Tensor, ...]) -> None:
    """Raise TrainingError if data.py does not match the network and its losses."""
    names = [entry["name"] for entry in INPUTS]
    if len(inputs) != len(names):
        raise TrainingError(
            f"the network has {len(names)} inputs ({', '.join(names)}), but sample() in data.py returns {len(inputs)}; "
            "change it to return one tensor for each input"
        )
    if not TARGETS:
        return
    names = [entry["name"] for entry in TARGETS]
    if len(targets) != len(names):
        raise TrainingError(
            f"the losses have {len(names)} targets ({', '.join(names)}), but sample() in data.py returns {len(targets)}; "
            "change it to return a tuple with one tensor for each target"
        )
    for entry, target in zip(TARGETS, targets, strict=True):
        if target.dim() != len(entry["shape"]) + 1 or target.shape[1] != entry["shape"][0]:
            raise TrainingError(
                f"the target '{entry['name']}' is N x {' x '.join(map(str, entry['shape']))} in the network, but "
                f"sample() in data.py returns {tuple(target.shape)}; change it to return a target of this shape"
            )


def check_output(output: torch.Tensor, target: torch.Tensor) -> None:
    """Raise TrainingError if the target does not have the shape of the output."""
    if output.shape != target.shape:
        raise TrainingError(
            f"the network's output is {tuple(output.shape)}, but the target that sample() in data.py returns is "
            f"{tuple(target.shape)}; change it to return a target of the output's shape"
        )


@dataclass
class ForwardPass:
    """Results of one forward pass."""

    first_input: torch.Tensor
    output: torch.Tensor
    targets: tuple[torch.Tensor, ...]
    losses: dict[str, torch.Tensor]

    @property
    def target_image(self) -> torch.Tensor | None:
        """The target image, for the PSNR; None if the target is not an image."""
        fits = bool(self.targets) and self.targets[0].shape == self.output.shape == self.first_input.shape
        return self.targets[0] if fits else None


class Run:
    """A training run: images, network, optimizer and current step."""

    def __init__(self, args: argparse.Namespace, progress: Progress) -> None:
        self.args, self.progress = args, progress
        self.device = self._device()
        self.checkpoint = args.output / "checkpoints" / "last.pt"
        saved = read_checkpoint(self.checkpoint) if args.resume else None
        if saved is not None:
            self._take_recipe(saved["recipe"])
        entry = INPUTS[0]
        if args.patch % entry["multiple"]:
            raise TrainingError(f"--patch must be a multiple of {entry['multiple']} for this network, not {args.patch}")
        self._open_images(entry["shape"][0])

        torch.manual_seed(args.seed)
        self.network = model.NetworkClass()
        self.network.to(device=self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        if not any(p.requires_grad for p in self.network.parameters()):
            raise TrainingError("the network has no trainable weights; add a layer with weights")
        self.losses = self._losses()
        self.optimizer = torch.optim.AdamW(self.parameters(), lr=args.lr, weight_decay=1e-4)
        self.half = torch.float16 if self.device.type == "cuda" else torch.bfloat16
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=args.amp and self.device.type == "cuda")
        self.first = self.step = 0
        if saved is not None:
            self._restore(saved)

    def _device(self) -> torch.device:
        if self.args.threads:
            torch.set_num_threads(self.args.threads)
        try:
            device = torch.device(self.args.device)
        except RuntimeError as error:
            raise TrainingError(f"'{self.args.device}' is not a device; use cpu or cuda") from error
        if device.type == "cuda" and not torch.cuda.is_available():
            raise TrainingError("no CUDA device is available; use --device cpu")
        return device

    def _losses(self) -> torch.nn.Module | None:
        """The losses of the document; None: the L1 difference."""
        if not LOSSES:
            return None
        import losses

        return losses.Losses().to(self.device)

    def parameters(self) -> list[torch.nn.Parameter]:
        """Trainable parameters of the network, and of layers that only its losses use."""
        return [*self.network.parameters(), *(self.losses.parameters() if self.losses is not None else ())]

    def _take_recipe(self, recipe: dict[str, Any]) -> None:
        for name in RECIPE:
            setattr(self.args, name, recipe[name])
        self.args.noise = tuple(self.args.noise)
        for name in ("data", "validation"):
            setattr(self.args, name, Path(recipe[name]) if recipe[name] is not None else None)

    def _open_images(self, channels: int) -> None:
        args = self.args
        images = data.find_images(args.data) if args.data is not None else []
        if args.validation is not None:
            self.held_out = data.find_images(args.validation)
        else:
            self.held_out = images[::10][: len(images) // 10]
            images = [path for path in images if path not in self.held_out]
        low, high = (level / 255 for level in args.noise)
        self.batches = data.Batches(
            images,
            channels=channels,
            patch=args.patch,
            batch=args.batch,
            noise=(low, high),
            seed=args.seed,
            synthetic=args.synthetic,
        )
        args.steps = args.steps or args.epochs * self.batches.epoch_steps()
        # Without held-out images, training images show progress, but not generalization.
        shown = self.held_out or images
        level = 25 / 255 if low <= 25 / 255 <= high else high
        self.pairs = [self._pair(path, index, channels, level) for index, path in enumerate(shown[:8])]

    def _pair(self, path: Path, seed: int, channels: int, level: float) -> tuple[torch.Tensor, torch.Tensor]:
        """A validation image, cropped to at most 512 x 512, and its fixed noise."""
        multiple = INPUTS[0]["multiple"]
        array = data.load_image(path, channels)[:512, :512]
        height, width = (side - side % multiple for side in array.shape[:2])
        if not height or not width:
            raise TrainingError(f"{path} is smaller than {multiple} x {multiple} pixels; remove it")
        clean = data.to_tensor(array[:height, :width])[None]
        return clean, torch.randn(clean.shape, generator=torch.Generator().manual_seed(seed)) * level

    def _restore(self, saved: dict[str, Any]) -> None:
        try:
            self.network.load_state_dict(saved["network"])
            if self.losses is not None:
                self.losses.load_state_dict(saved["losses"])
            self.optimizer.load_state_dict(saved["optimizer"])
        except (KeyError, RuntimeError, ValueError) as error:
            raise TrainingError(f"{self.checkpoint} belongs to another network; start without --resume") from error
        self.scaler.load_state_dict(saved["scaler"])
        self.first = self.step = saved["step"]
        torch.set_rng_state(saved["random"]["cpu"])
        if "cuda" in saved["random"] and self.device.type == "cuda":
            torch.cuda.set_rng_state(saved["random"]["cuda"], self.device)

    def recipe(self) -> dict[str, Any]:
        """The settings of the run, as plain data."""
        values = {name: getattr(self.args, name) for name in RECIPE}
        return {name: str(value.resolve()) if isinstance(value, Path) else value for name, value in values.items()}

    def save(self) -> None:
        """Write the weights and a checkpoint for --resume, including the states of the random number generators."""
        random = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            random["cuda"] = torch.cuda.get_rng_state(self.device)
        state = {
            "network": self.network.state_dict(),
            "losses": self.losses.state_dict() if self.losses is not None else {},
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "random": random,
            "recipe": self.recipe(),
            "step": self.step,
        }
        save_atomically(self.checkpoint, lambda file: torch.save(state, file))
        save_weights(self.network, self.args.output)
        self.progress.event("checkpoint", step=self.step, path=str(self.checkpoint))

    def forward(self, clean: torch.Tensor, noise: torch.Tensor) -> ForwardPass:
        """Forward pass: output and losses."""
        inputs, target = data.sample(clean.to(self.device), noise.to(self.device))
        targets = target if isinstance(target, tuple) else (target,)
        check_fit(inputs, targets)
        prepared = [data.prepare(t, i).contiguous(memory_format=torch.channels_last) for i, t in enumerate(inputs)]
        read: list[torch.Tensor] = []
        with torch.autocast(self.device.type, dtype=self.half, enabled=self.args.amp):
            if self.losses is None:
                output = first_output(self.network(*prepared))
            else:
                training: Any = self.network.forward_training
                result, taps = training(*prepared)
                read = [*taps]
                output = first_output(result)
        output = output.float()
        if self.losses is None:
            check_output(output, targets[0])
            return ForwardPass(inputs[0], output, targets, {"l1": torch.nn.functional.l1_loss(output, targets[0])})
        # Losses are always computed in full precision.
        read = [tensor.float() if tensor.is_floating_point() else tensor for tensor in read]
        wanted = [data.prepare_target(target, index) for index, target in enumerate(targets[: len(TARGETS)])]
        values = self.losses(*read, *wanted, *(getattr(self.network, name) for name in SHARED))
        named = values if isinstance(values, dict) else {LOSSES[0]: values}
        return ForwardPass(inputs[0], output, targets, {name: value.mean() for name, value in named.items()})

    def train_step(self) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """Run one optimizer step; returns the loss and its terms."""
        lr = learning_rate(self.args.lr, self.step, self.args.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        batch = self.batches.batch(self.step)
        try:
            losses = self.forward(*batch).losses
        except IndexError as error:
            raise TrainingError(f"a target is not valid for its loss: {error}; change sample() in data.py") from error
        except RuntimeError as error:
            if "memory" in str(error):
                raise TrainingError(f"{error}; use a smaller --batch or --patch") from error
            side = self.args.patch
            raise TrainingError(f"the network cannot take patches of {side} x {side} pixels: {error}") from error
        loss = torch.stack([*losses.values()]).sum()
        if not loss.requires_grad:
            compared = "the losses" if LOSSES else f"the first output, '{data.PROJECT['outputs'][0]['name']}',"
            raise TrainingError(f"{compared} do not depend on any weights; add a loss that reads a layer with weights")
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.step += 1
        return loss.detach(), {name: value.detach() for name, value in losses.items()}

    def evaluate(self, pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> list[ForwardPass]:
        """Evaluate the current network on images."""
        parts = [self.network, *([self.losses] if self.losses is not None else [])]
        for part in parts:
            part.eval()
        with torch.inference_mode():
            made = [self.forward(clean, noise) for clean, noise in pairs]
        for part in parts:
            part.train()
        return made

    def validate(self) -> None:
        """Report mean losses, and the mean PSNR of the output and of the noisy images."""
        shown = self.evaluate(self.pairs)
        if not shown:
            return
        losses = {name: round(sum(m.losses[name].item() for m in shown) / len(shown), 6) for name in shown[0].losses}
        psnrs = {}
        images = [(made, made.target_image) for made in shown if made.target_image is not None]
        if len(images) == len(shown):
            after = sum(data.psnr(made.output, image) for made, image in images) / len(shown)
            before = sum(data.psnr(made.first_input, image) for made, image in images) / len(shown)
            psnrs = {"psnr": round(after, 3), "noisy_psnr": round(before, 3)}
        on_training = not self.held_out
        self.progress.event("validation", step=self.step, **psnrs, losses=losses, on_training=on_training)

    def train(self, stop_signals: list[int]) -> bool:
        """Train to the end or until a stop is requested; returns whether the end was reached."""
        steps = self.args.steps
        parameters = sum(p.numel() for p in self.parameters())
        counts = {"pictures": len(self.batches.images), "made_up": len(self.batches.made)}
        names = [path.name for path in self.held_out]
        self.progress.event("start", step=self.step, steps=steps, parameters=parameters, **counts, held_out=names,
                            device=str(self.device), recipe=self.recipe())  # fmt: skip
        self.network.train()
        started = time.monotonic()
        shown = -math.inf
        while self.step < steps and not stop_signals:
            loss, losses = self.train_step()
            # Reading the loss synchronizes with the device, so it is read a few times per second only.
            now = time.monotonic()
            if now - shown > 0.25 or self.step == steps:
                shown = now
                self._report(loss.item(), {name: value.item() for name, value in losses.items()}, now - started)
            if self.step % self.args.validate_every == 0 or self.step == steps:
                self.validate()
                self.save()
        self.batches.close()
        if self.step % self.args.validate_every and self.step < steps:
            self.save()
        return self.step >= steps

    def _report(self, loss: float, losses: dict[str, float], seconds: float) -> None:
        if not math.isfinite(loss):
            wrong = ", ".join(name for name, value in losses.items() if not math.isfinite(value))
            raise TrainingError(f"the loss ({wrong}) is NaN or infinite at step {self.step}; use a smaller --lr")
        speed = (self.step - self.first) / max(seconds, 1e-9)
        lr = self.optimizer.param_groups[0]["lr"]
        self.progress.event("step", step=self.step, steps=self.args.steps, loss=loss, losses=losses, lr=lr,
                            seconds=round(seconds, 2), steps_per_second=round(speed, 3))  # fmt: skip

    def write_plots(self) -> None:
        """Write curves.png and before_after.png."""
        import plots

        plots.curves(self.args.output / "log.jsonl", self.args.output / "curves.png")
        for made in self.evaluate(self.pairs[:1]):
            if made.target_image is not None and made.output.shape[1] in (1, 3):
                target = self.args.output / "before_after.png"
                plots.before_after(made.first_input[0], made.output[0], made.target_image[0], target)


def main(argv: list[str] | None = None) -> int:
    args = arguments(argv)
    progress = Progress(args.json_progress)
    stop_signals: list[int] = []
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, lambda received, frame: stop_signals.append(received))
    try:
        run = Run(args, progress)
        args.output.mkdir(parents=True, exist_ok=True)
        progress.log = args.output / "log.jsonl"
        if not args.resume:
            progress.log.unlink(missing_ok=True)
        if not run.train(stop_signals):
            where = "" if args.output == HERE else f' --output "{args.output}"'
            where = f"stopped at step {run.step} of {args.steps}; continue with: python train.py --resume{where}"
            progress.event("stopped", step=run.step, steps=args.steps, message=where)
            return 130
        folder = args.output / "weights"
        run.write_plots()
        progress.event("done", step=run.step, steps=args.steps, weights=str(folder), message=f"weights are in {folder}")
    except (TrainingError, data.DataError) as error:
        progress.error(str(error))
        return 1
    except OSError as error:
        progress.error(f"{error}; check the folder and the free space")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
