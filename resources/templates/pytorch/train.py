"""Train the network to remove noise from pictures.

    python train.py --data photographs --noise 25 --epochs 100
    python train.py --data photographs --noise 0-55 --steps 20000 --device cuda --amp
    python train.py --resume

Writes weights/ (one .npy file a tensor, for the designer), weights.pt (a state dict), checkpoints/, log.jsonl, and the
pictures curves.png and before_after.png.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import data
import model
import numpy as np
import torch
from tqdm import tqdm

HERE = Path(__file__).resolve().parent
PROJECT = json.loads((HERE / "project.json").read_text("utf-8"))


class Stop(Exception):
    """Training cannot go on; the message says why and what to do."""


class Progress:
    """A bar for people, or one JSON object a line for a program."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.bar: tqdm | None = None

    def event(self, event: str, **values: Any) -> None:
        if self.as_json:
            print(json.dumps({"event": event, **values}), flush=True)
        elif event == "start":
            self.bar = tqdm(total=values["steps"], initial=values["step"], unit="step", dynamic_ncols=True)
        elif event == "step" and self.bar is not None:
            self.bar.update(values["step"] - self.bar.n)
            self.bar.set_postfix(loss=f"{values['loss']:.4f}", lr=f"{values['lr']:.1e}")
        elif event == "validation":
            tqdm.write(f"step {values['step']}: PSNR {values['psnr']:.2f} dB (noisy {values['noisy_psnr']:.2f} dB)")
        elif event in ("done", "stopped"):
            if self.bar is not None:
                self.bar.close()
            tqdm.write(values["message"])

    def error(self, message: str) -> None:
        if self.as_json:
            print(json.dumps({"event": "error", "message": message}), flush=True)
        print(f"error: {message}", file=sys.stderr)


def noise_range(text: str) -> tuple[float, float]:
    """Noise level(s) in steps of 255: "25", or a range "0-55" for a network that does not know the level."""
    try:
        numbers = [float(part) for part in text.split("-")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2) or not all(0 <= n <= 255 for n in numbers) or numbers[0] > numbers[-1]:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a noise level; write 25, or a range as in 0-55, within 0..255"
        )
    return (numbers[0], numbers[-1])


def positive(text: str) -> int:
    """A whole number of at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")
    return number


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the pictures to train with")
    parser.add_argument("--validation", type=Path, help="folder with pictures for validation (default: some of --data)")
    parser.add_argument("--noise", type=noise_range, default=(25.0, 25.0), help="noise level 0..255, or a range 0-55")
    parser.add_argument("--patch", type=positive, default=64, help="side of the training patches in pixels")
    parser.add_argument("--batch", type=positive, default=16, help="patches a step")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=positive, default=100, help="passes over the pictures")
    length.add_argument("--steps", type=positive, help="number of steps, instead of --epochs")
    parser.add_argument(
        "--lr", type=float, default=1e-3, help="learning rate at the start; it falls to 0 along a cosine"
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same run on the same machine")
    parser.add_argument("--synthetic", type=int, help="number of made-up pictures (default: fill up to 16 pictures)")
    parser.add_argument(
        "--validate-every", type=positive, default=250, help="steps between validations and checkpoints"
    )
    parser.add_argument("--output", type=Path, default=HERE, help="folder for weights, checkpoints, log and pictures")
    parser.add_argument("--amp", action="store_true", help="mixed precision (float16 on cuda, bfloat16 on cpu)")
    parser.add_argument("--resume", action="store_true", help="go on exactly where the last checkpoint was written")
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cpu, cuda, cuda:1, ..."
    )
    parser.add_argument("--threads", type=int, default=0, help="threads on the CPU (default: all)")
    parser.add_argument("--json-progress", action="store_true", help="print one JSON object a line instead of a bar")
    args = parser.parse_args(argv)
    if args.data is None and not args.resume and not args.synthetic:
        parser.error("--data is needed (or --resume, or --synthetic N to train with made-up pictures alone)")
    return args


RECIPE = ("data", "validation", "noise", "patch", "batch", "steps", "lr", "seed", "synthetic", "validate_every", "amp")


def first_output(result: Any) -> torch.Tensor:
    """The output that is compared with the target: the only one, or the first of the dict."""
    return next(iter(result.values())) if isinstance(result, dict) else result


def psnr(a: torch.Tensor, b: torch.Tensor) -> float:
    """Peak signal-to-noise ratio in dB of pictures in 0..1, clipped to that range."""
    error = torch.mean((a.clamp(0, 1) - b.clamp(0, 1)) ** 2).item()
    return 10 * math.log10(1 / max(error, 1e-12))


def prepare(picture: torch.Tensor) -> torch.Tensor:
    """A picture's values, 0..1, as the network's input wants them."""
    entry = PROJECT["inputs"][0]
    return picture * entry["scale"] + entry["shift"]


def validation_set(paths: list[Path], channels: int, sigma: float) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """(clean, noise) of up to 8 pictures, at most 512 x 512 of each, the same noise every time."""
    multiple = PROJECT["inputs"][0]["multiple"]
    pairs = []
    for number, path in enumerate(paths[:8]):
        array = data.load_picture(path, channels)[:512, :512]
        height, width = (side - side % multiple for side in array.shape[:2])
        if not height or not width:
            raise Stop(f"{path} is smaller than {multiple} x {multiple} pixels; remove it from the validation pictures")
        clean = data.to_tensor(array[:height, :width])[None]
        noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(number)) * sigma
        pairs.append((clean, noise))
    return pairs


def validate(
    network: torch.nn.Module, pairs: list[tuple[torch.Tensor, torch.Tensor]], device: torch.device
) -> tuple[float, float]:
    """Mean PSNR of the network's output and of the noisy pictures, in dB."""
    network.eval()
    after, before = [], []
    with torch.inference_mode():
        for clean, noise in pairs:
            inputs, target = data.sample(clean.to(device), noise.to(device))
            after.append(psnr(first_output(network(*map(prepare, inputs))), target))
            before.append(psnr(inputs[0], target))
    network.train()
    return sum(after) / len(after), sum(before) / len(before)


def check_step(inputs: tuple[torch.Tensor, ...], output: torch.Tensor | None, target: torch.Tensor) -> None:
    """Stop with a sentence when data.py does not fit the network."""
    names = [entry["name"] for entry in PROJECT["inputs"]]
    if len(inputs) != len(names):
        raise Stop(
            f"the network has {len(names)} inputs ({', '.join(names)}), but sample() in data.py makes {len(inputs)}; "
            "change it to return one tensor for each input"
        )
    if output is not None and output.shape != target.shape:
        raise Stop(
            f"the network's output is {tuple(output.shape)}, but the target that sample() in data.py makes is "
            f"{tuple(target.shape)}; change it to return a target of the output's shape"
        )


def save_atomically(path: Path, write: Any) -> None:
    """Call `write` with a file beside `path`, then put that in its place: never a half-written file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def save_weights(network: torch.nn.Module, folder: Path) -> None:
    """weights/<layer>_<tensor>.npy, float32, and weights.pt with the state dict."""
    state = {key: tensor.detach().cpu() for key, tensor in network.state_dict().items()}
    for key, stem in PROJECT["weights"].items():
        array = np.ascontiguousarray(state[key].float().numpy())
        save_atomically(folder / "weights" / f"{stem}.npy", lambda file, array=array: np.save(file, array))
    save_atomically(folder / "weights.pt", lambda file: torch.save(state, file))


def random_state(device: torch.device) -> dict[str, torch.Tensor]:
    """The states of torch's random numbers, which dropout layers use."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def read_checkpoint(path: Path, device: torch.device) -> dict[str, Any]:
    if not path.is_file():
        raise Stop(f"there is no checkpoint {path}; start without --resume")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise Stop(f"{path} cannot be read ({error}); start without --resume") from error


def learning_rate(start: float, step: int, steps: int) -> float:
    """A short linear rise, then half a cosine down to 0."""
    warm = min(100, steps // 10)
    if step < warm:
        return start * (step + 1) / warm
    return start * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def train(args: argparse.Namespace, progress: Progress) -> None:
    if args.threads:
        torch.set_num_threads(args.threads)
    device = torch.device(args.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise Stop("there is no CUDA device here; use --device cpu")
    checkpoint = args.output / "checkpoints" / "last.pt"
    saved = read_checkpoint(checkpoint, device) if args.resume else None
    if saved is not None:  # exactly on: everything that shapes the run comes from the checkpoint
        for name, value in saved["recipe"].items():
            setattr(args, name, value)
        args.noise = tuple(args.noise)
        args.data, args.validation = (Path(p) if p is not None else None for p in (args.data, args.validation))

    entry = PROJECT["inputs"][0]
    channels, multiple = entry["shape"][0], entry["multiple"]
    if args.patch % multiple:
        raise Stop(f"--patch must be a multiple of {multiple} for this network, not {args.patch}")
    pictures = data.find_pictures(args.data) if args.data is not None else []
    held = data.find_pictures(args.validation) if args.validation is not None else pictures[::10][: len(pictures) // 10]
    if args.validation is None:
        pictures = [path for path in pictures if path not in held]
    low, high = args.noise
    batches = data.Batches(
        pictures,
        channels=channels,
        patch=args.patch,
        batch=args.batch,
        noise=(low / 255, high / 255),
        seed=args.seed,
        synthetic=args.synthetic,
    )
    steps = args.steps or args.epochs * batches.epoch_steps()
    args.steps = steps
    # Without pictures set aside, validation uses the training pictures: it tells of progress, not of quality.
    pairs = validation_set(held or pictures, channels, (25 if low <= 25 <= high else high) / 255)

    torch.manual_seed(args.seed)
    network = model.NetworkClass().to(device=device, memory_format=torch.channels_last)
    count = sum(p.numel() for p in network.parameters())
    if not count:
        raise Stop("the network has no weights to train; add a layer that learns")
    optimizer = torch.optim.AdamW(network.parameters(), lr=args.lr, weight_decay=1e-4)
    half = torch.float16 if device.type == "cuda" else torch.bfloat16
    scaler = torch.amp.GradScaler(device.type, enabled=args.amp and device.type == "cuda")
    first, best = 0, -math.inf
    if saved is not None:
        try:
            network.load_state_dict(saved["network"])
            optimizer.load_state_dict(saved["optimizer"])
        except (RuntimeError, ValueError) as error:
            raise Stop(f"{checkpoint} belongs to another network ({error}); start without --resume") from error
        scaler.load_state_dict(saved["scaler"])
        first, best = saved["step"], saved["best"]
        torch.set_rng_state(saved["random"]["cpu"])
        if "cuda" in saved["random"] and device.type == "cuda":
            torch.cuda.set_rng_state(saved["random"]["cuda"], device)

    recipe = {n: str(v) if isinstance(v := getattr(args, n), Path) else v for n in RECIPE}
    args.output.mkdir(parents=True, exist_ok=True)
    log = open(args.output / "log.jsonl", "a" if saved is not None else "w", encoding="utf-8")

    def record(event: str, **values: Any) -> None:
        log.write(json.dumps({"event": event, **values}) + "\n")
        log.flush()
        progress.event(event, **values)

    def save(step: int) -> None:
        state = {
            "network": network.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scaler": scaler.state_dict(),
            "random": random_state(device),
            "recipe": recipe,
            "step": step,
            "best": best,
        }
        save_atomically(checkpoint, lambda file: torch.save(state, file))
        save_weights(network, args.output)

    asked_to_stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked_to_stop.append(number))
    signal.signal(signal.SIGINT, lambda number, frame: asked_to_stop.append(number))
    record("start", step=first, steps=steps, parameters=count, pictures=len(pictures), made_up=len(batches.made),
           held_out=[p.name for p in held], device=str(device), recipe=recipe)  # fmt: skip
    network.train()
    started = time.monotonic()
    shown = last_loss = None
    step = first
    while step < steps and not asked_to_stop:
        clean, noise = (t.to(device, non_blocking=True) for t in batches.batch(step))
        inputs, target = data.sample(clean, noise)
        check_step(inputs, None, target)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(args.lr, step, steps)
        try:
            with torch.autocast(device.type, dtype=half, enabled=args.amp):
                output = first_output(
                    network(*(prepare(t).contiguous(memory_format=torch.channels_last) for t in inputs))
                )
                check_step(inputs, output, target)
                loss = torch.nn.functional.l1_loss(output.float(), target)
        except RuntimeError as error:
            if step > first or "out of memory" in str(error):
                raise Stop(f"{error}; a smaller --batch or --patch needs less memory") from error
            raise Stop(f"the network cannot take patches of {args.patch} x {args.patch} pixels: {error}") from error
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        step += 1
        # Reading the loss waits for the device, so it is read a few times a second only.
        now = time.monotonic()
        if shown is None or now - shown > 0.25 or step == steps:
            last_loss, shown = loss.item(), now
            if not math.isfinite(last_loss):
                raise Stop(f"the loss is not finite at step {step}; use a smaller --lr")
            speed = (step - first) / max(now - started, 1e-9)
            record("step", step=step, steps=steps, loss=last_loss, lr=optimizer.param_groups[0]["lr"],
                   seconds=round(now - started, 2), steps_per_second=round(speed, 3))  # fmt: skip
        if step % args.validate_every == 0 or step == steps:
            if pairs:
                after, before = validate(network, pairs, device)
                best = max(best, after)
                record("validation", step=step, psnr=round(after, 3), noisy_psnr=round(before, 3), on_training=not held)
            save(step)
            record("checkpoint", step=step, path=str(checkpoint))
    batches.close()
    if asked_to_stop:
        save(step)
        record(
            "stopped", step=step, steps=steps, message=f"stopped at step {step}; go on with: python train.py --resume"
        )
        log.close()
        sys.exit(130)
    record("done", step=step, steps=steps, seconds=round(time.monotonic() - started, 1), weights=str(args.output / "weights"),
           message=f"weights are in {args.output / 'weights'}")  # fmt: skip
    log.close()

    import plots

    plots.curves(args.output / "log.jsonl", args.output / "curves.png")
    if pairs:
        clean, noise = pairs[0]
        network.eval()
        with torch.inference_mode():
            inputs, target = data.sample(clean.to(device), noise.to(device))
            output = first_output(network(*map(prepare, inputs)))
        plots.before_after(inputs[0][0], output[0], target[0], args.output / "before_after.png")


def main(argv: list[str] | None = None) -> int:
    args = arguments(argv)
    progress = Progress(args.json_progress)
    try:
        train(args, progress)
    except (Stop, data.DataError) as error:
        progress.error(str(error))
        return 1
    except OSError as error:
        progress.error(f"{error}; check the folder and the free space")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
