"""The whole state of a run in a file, so that it continues exactly."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from storage import StorageError, save_arrays, save_atomically, save_weights

if TYPE_CHECKING:
    from train import Run


def save_checkpoint(run: Run, best: bool) -> None:
    """Write checkpoints/last.pt and the weights; `best`: also checkpoints/best.pt, a state dict."""
    random = {"cpu": torch.get_rng_state()}
    if run.device.type == "cuda":
        random["cuda"] = torch.cuda.get_rng_state(run.device)
    content = {
        "network": run.network.state_dict(),
        "losses": run.objective.loss.state_dict(),
        "average": run.average.state_dict() if run.average is not None else {},
        "optimizer": run.optimizer.state_dict(),
        "scaler": run.scaler.state_dict(),
        "validation": run.validation.state(),
        "masks": run.masks,
        "random": random,
        "config": asdict(run.config),
        "step": run.step,
        "elapsed": run.elapsed,
    }
    result = run.network if run.average is None else run.average.module
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in result.state_dict().items()}
    folder = run.records.folder / "checkpoints"
    save_atomically(folder / "last.pt", lambda file: torch.save(content, file))
    if best:
        save_atomically(folder / "best.pt", lambda file: torch.save(state, file))
        save_arrays(state, folder / "best")
    for target in run.records.results:
        save_weights(state, target)


def restore(run: Run, saved: dict[str, Any]) -> None:
    """Continue with the state of checkpoints/last.pt. Raises StorageError if it does not fit."""
    settings = [{k: v for k, v in group.items() if k != "params"} for group in run.optimizer.param_groups]
    try:
        run.network.load_state_dict(saved["network"])
        run.objective.loss.load_state_dict(saved["losses"])
        if saved["config"].get("optimizer") != run.config.optimizer:
            raise ValueError("the state of another optimizer")
        run.optimizer.load_state_dict(saved["optimizer"])
        for group, wanted in zip(run.optimizer.param_groups, settings, strict=True):
            group.update(wanted)
        if run.average is not None:
            run.average.load_state_dict(saved["average"])
        run.scaler.load_state_dict(saved["scaler"])
        run.validation.restore(saved["validation"])
        run.masks = {name: mask.to(run.device) for name, mask in saved["masks"].items()}
        run.step, run.elapsed = saved["step"], saved["elapsed"]
    except (KeyError, RuntimeError, ValueError) as error:
        raise StorageError(
            "the checkpoint belongs to another network or other settings; start without --resume"
        ) from error
    torch.set_rng_state(saved["random"]["cpu"])
    if "cuda" in saved["random"] and run.device.type == "cuda":
        torch.cuda.set_rng_state(saved["random"]["cuda"], run.device)
