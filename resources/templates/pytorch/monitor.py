"""Health of the network while it trains, and a trail of its weights. The window of Layerwright shows both.

health.jsonl has one JSON object per measured step: statistics by layer, and the problems that exist at that step with the
step at which each began. trail/ has the weights of many steps: key frames with all values, at the steps of the checkpoints,
and frames between them as differences rounded to 8 bits.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

EVERY = 10  # steps between measurements
IMAGES = 4  # samples of a batch whose activations are measured
FRAMES = 200  # in the trail of a whole run
SPACING = 5  # steps between frames at least
PATIENCE = 3  # measurements after which a gradual problem is reported
MOST_PARAMETERS = 50_000_000  # larger networks have no trail

# A layer has the problem if ...
EXPLODING_GRADIENT = 100.0  # its gradient is larger than its median so far by this factor
EXPLODING_UPDATE = 0.3  # or one step changes its weights by this share of their norm
VANISHING = 1e-6  # its gradient per weight is smaller than the largest of all layers by this factor
DEAD = 0.5  # this share of its units is zero for all pixels of the measured samples
FROZEN = 1e-8  # a step changes its weights by less than this share of their norm
SATURATED = 0.9  # this share of its sigmoids or tanhs is at its limits
SUDDEN = ("not_finite", "exploding")  # reported at the first measurement

_ACTIVATIONS = {"relu": "relu", "relu_": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "relu6": "relu"}
_MODULES = {"ReLU": "relu", "ReLU6": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh"}


@dataclass
class Layer:
    """What is remembered of a layer between measurements."""

    gradients: list[float] = field(default_factory=list)
    since: dict[str, int] = field(default_factory=dict)  # the step at which each present problem was first seen
    seen: dict[str, int] = field(default_factory=dict)  # in how many measurements in a row


class _Activations(TorchFunctionMode):
    """Notes the result of functions such as F.relu on the output of a layer as the activation of that layer."""

    def __init__(self, note: Callable[[Tensor, str, Tensor], None]) -> None:
        super().__init__()
        self._note = note

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        kind = _ACTIVATIONS.get(getattr(func, "__name__", ""))
        if kind is not None and args and isinstance(args[0], Tensor) and isinstance(result, Tensor):
            self._note(args[0], kind, result)
        return result


class Monitor:
    """Measures every EVERY steps. `first` is the number of steps done: not 0 for a resumed run.

    A run stops by itself when a layer has a problem of `stop_on`. Key frames are at multiples of `key_every`. Activations of
    a compiled network cannot be measured: it would be compiled again for each measurement.
    """

    def __init__(
        self,
        folder: Path,
        model: nn.Module,
        *,
        total_steps: int,
        key_every: int,
        first: int = 0,
        stop_on: Iterable[str] = ("not_finite",),
        activations: bool = True,
    ) -> None:
        self._folder = folder
        self._total = total_steps
        self._stop_on = frozenset(stop_on)
        self._model = model
        self._has_activations = activations
        self._on_gpu = any(p.is_cuda for p in self._model.parameters())
        self._layers: dict[str, Layer] = {}
        self._values: dict[str, tuple[str, Tensor]] = {}  # by layer: kind of activation, output
        self._owners: dict[int, tuple[str, Tensor]] = {}  # layers by the identity of their output
        self._hooks: list[Any] = []
        self._mode: _Activations | None = None
        self._before: dict[str, Tensor] = {}
        self._measured: dict[str, dict[str, float]] = {}
        self._stopped = False
        small = sum(p.numel() for p in self._model.parameters()) <= MOST_PARAMETERS
        self._trail = Trail(folder / "trail", total_steps, key_every) if small else None
        if self._trail is not None:
            self._trail.begin(first, self._model)
        if not first or (first + 1) % EVERY == 0:
            self._arm()

    # --- called by train.py ---------------------------------------------------------------------------------

    def after_backward(self, step: int, model: nn.Module) -> None:
        """Measure activations and gradients; call it before the optimizer's step. `step` counts from 1.

        On a CPU, a gradient that is NaN or infinite is measured at once. On a GPU, asking for it would wait for every step.
        """
        if step % EVERY and step != 1 and (self._on_gpu or _finite_gradients(self._model)):
            return
        self._disarm()
        self._measured = self._activations()
        for name, (gradient, _) in _norms(self._model, lambda p: p.grad).items():
            self._measured.setdefault(name, {})["gradient"] = gradient
        for name, (norm, count) in _norms(self._model, lambda p: p.detach()).items():
            self._measured.setdefault(name, {}).update(weight=norm, parameters=count)
        self._before = {n: p.detach().clone() for n, p in self._model.named_parameters() if p.requires_grad}

    def after_step(self, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Measure the update, write both, and stop the run if a rule says so."""
        if self._before:
            before = self._before
            changes = _norms(self._model, lambda p: p.detach(), before)
            for name, (change, _) in changes.items():
                values = self._measured.setdefault(name, {})
                values["update"] = change / values["weight"] if values.get("weight") else 0.0
            self._before = {}
            self._report(step, max(group["lr"] for group in optimizer.param_groups))
        if (step + 1) % EVERY == 0:
            self._arm()
        if self._trail is not None:
            self._trail.add(step, self._model)

    # --- measuring --------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Note the outputs of the layers in the next step."""
        if not self._has_activations or self._mode is not None:
            return
        for name, module in self._model.named_modules():
            if name and not any(True for _ in module.children()):
                self._hooks.append(
                    module.register_forward_hook(self._hook(name, _MODULES.get(type(module).__name__, "")))
                )
        self._mode = _Activations(self._note)
        self._mode.__enter__()

    def _disarm(self) -> None:
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
            self._mode = None
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _hook(self, name: str, kind: str) -> Callable[[nn.Module, Any, Any], None]:
        def note(_module: nn.Module, _inputs: Any, output: Any) -> None:
            if isinstance(output, Tensor) and torch.is_grad_enabled():
                self._owners[id(output)] = (name, output)
                self._values[name] = (kind, output)

        return note

    def _note(self, source: Tensor, kind: str, result: Tensor) -> None:
        owner = self._owners.get(id(source))
        if owner is not None and torch.is_grad_enabled():
            self._values[owner[0]] = (kind, result)

    @torch.no_grad()
    def _activations(self) -> dict[str, dict[str, float]]:
        found: list[Tensor] = []
        names = list(self._values)
        for kind, output in self._values.values():
            x = output.detach()[:IMAGES].float()
            units = x.transpose(1, -1) if x.dim() == 3 else x
            highest = units.flatten(2).amax(2).amax(0) if x.dim() > 2 else units.amax(0)
            dead = (highest <= 0).float().mean() if kind == "relu" else x.new_zeros(())
            limits = {"sigmoid": (0.02, 0.98), "tanh": (-0.98, 0.98)}.get(kind)
            at_limits = ((x < limits[0]) | (x > limits[1])).float().mean() if limits else x.new_zeros(())
            found.append(torch.stack((x.abs().mean(), x.std(correction=0), (x == 0).float().mean(), dead, at_limits)))
        self._values.clear()
        self._owners.clear()
        keys = ("activation", "spread", "zeros", "dead", "saturated")
        rows = torch.stack(found).tolist() if found else []
        return {name: dict(zip(keys, row, strict=True)) for name, row in zip(names, rows, strict=True)}

    # --- problems ---------------------------------------------------------------------------------------------

    def _report(self, step: int, rate: float) -> None:
        densities = {
            n: v["gradient"] / math.sqrt(v["parameters"]) for n, v in self._measured.items() if "gradient" in v
        }
        largest = max((d for d in densities.values() if math.isfinite(d)), default=0.0)
        problems = []
        for name, values in self._measured.items():
            layer = self._layers.setdefault(name, Layer())
            present = _problems(values, layer, densities.get(name), largest, rate)
            for kind in {*layer.since} - present:
                del layer.since[kind], layer.seen[kind]
            for kind in present:
                layer.since.setdefault(kind, step)
                layer.seen[kind] = layer.seen.get(kind, 0) + 1
                if kind in SUDDEN or layer.seen[kind] >= PATIENCE:
                    problems.append({"layer": name, "kind": kind, "since": layer.since[kind]})
            if math.isfinite(values.get("gradient", math.nan)):
                layer.gradients = [*layer.gradients[-50:], values["gradient"]]
        bad = next((p for p in problems if p["kind"] in self._stop_on), None)
        line: dict[str, Any] = {"step": step, "layers": _rounded(self._measured), "problems": problems}
        if bad is not None and not self._stopped:
            self._stopped = True
            line["stopped_by"] = bad
            replace_text(self._folder / "control", "stop")
        with (self._folder / "health.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _problems(
    values: Mapping[str, float], layer: Layer, density: float | None, largest: float, rate: float
) -> set[str]:
    """The kinds of problems in the measured values of a layer.

    Mixed precision skips steps whose gradient is infinite, so that a gradient alone is not a problem.
    """
    if not all(math.isfinite(value) for name, value in values.items() if name != "gradient"):
        return {"not_finite"}
    found = set()
    gradient, update = values.get("gradient"), values.get("update")
    usual = median(layer.gradients) if len(layer.gradients) >= PATIENCE else 0.0
    if (gradient and usual and gradient > EXPLODING_GRADIENT * usual) or (update and update > EXPLODING_UPDATE):
        found.add("exploding")
    if density is not None and density < VANISHING * largest:
        found.add("vanishing")
    if values.get("dead", 0.0) >= DEAD:
        found.add("dead")
    if values.get("saturated", 0.0) >= SATURATED:
        found.add("saturated")
    if update is not None and rate > 0 and values.get("weight") and update < FROZEN:
        found.add("frozen")
    return found


def _finite_gradients(model: nn.Module) -> bool:
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return not gradients or math.isfinite(float(torch.stack([n.float() for n in torch._foreach_norm(gradients)]).sum()))


def _norms(
    model: nn.Module, tensor: Callable[[nn.Parameter], Tensor | None], minus: Mapping[str, Tensor] | None = None
) -> dict[str, tuple[float, int]]:
    """By layer, the norm of what `tensor` gives for its trainable weights, and their number. Biases are omitted."""
    names: list[str] = []
    tensors: list[Tensor] = []
    for name, parameter in model.named_parameters():
        found = tensor(parameter) if parameter.requires_grad and parameter.dim() > 1 else None
        if found is not None:
            names.append(name)
            tensors.append(found - minus[name] if minus is not None else found)
    if not tensors:
        return {}
    norms = torch.stack([n.float() for n in torch._foreach_norm(tensors)]).tolist()
    made: dict[str, tuple[float, int]] = {}
    for name, norm, each in zip(names, norms, tensors, strict=True):
        layer = name.rpartition(".")[0]
        before, count = made.get(layer, (0.0, 0))
        made[layer] = (math.hypot(before, norm), count + each.numel())
    return made


def _rounded(measured: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float | None]]:
    """Six digits; None for NaN and infinite values, which JSON lacks."""
    return {
        name: {k: float(f"{v:.6g}") if math.isfinite(v) else None for k, v in values.items()}
        for name, values in measured.items()
    }


class Trail:
    """The weights of many steps. `index.jsonl` lists the frames: step, file, and for a difference the step of its key frame."""

    def __init__(self, folder: Path, total_steps: int, key_every: int) -> None:
        self._folder = folder
        self._every = max(SPACING, math.ceil(total_steps / FRAMES))
        self._key_every = key_every
        self._total = total_steps
        self._key: tuple[int, dict[str, np.ndarray]] | None = None

    def begin(self, step: int, model: nn.Module) -> None:
        """Start with the weights after `step` steps; frames of later steps belong to a part that is trained again."""
        self._folder.mkdir(parents=True, exist_ok=True)
        index = self._folder / "index.jsonl"
        lines = index.read_text("utf-8").splitlines() if step and index.exists() else []
        kept = [line for line in lines if _step_of(line) < step]
        replace_text(index, "".join(f"{line}\n" for line in kept))
        self._write_key(step, model)

    def add(self, step: int, model: nn.Module) -> None:
        """Write a frame if one is due."""
        if step % self._key_every == 0 or step == self._total:
            self._write_key(step, model)
        elif step % self._every == 0:
            self._write_difference(step, model)

    def _write_key(self, step: int, model: nn.Module) -> None:
        state = arrays_of(model)
        self._key = step, state
        self._write(step, "key", state)

    def _write_difference(self, step: int, model: nn.Module) -> None:
        assert self._key is not None
        base, key = self._key
        made: dict[str, np.ndarray] = {}
        for name, array in arrays_of(model).items():
            if array.dtype != np.float32:
                made[name] = array
                continue
            change = array - key[name]
            largest = float(np.max(np.abs(change), initial=0.0))
            scale = largest / 127 if math.isfinite(largest) and largest > 0 else 1.0
            rounded = np.rint(np.nan_to_num(change / scale, nan=0.0, posinf=127, neginf=-127))
            made[name] = rounded.astype(np.int8)
            made[f"{name}//scale"] = np.array(scale, np.float32)
        self._write(step, "difference", made, base)

    def _write(self, step: int, kind: str, arrays: Mapping[str, np.ndarray], key: int | None = None) -> None:
        name = f"{step:08d}.npz"
        part = self._folder / f"{name}.part"
        with part.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        os.replace(part, self._folder / name)
        entry = {"step": step, "file": name, "kind": kind} | ({"key": key} if key is not None else {})
        with (self._folder / "index.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def _step_of(line: str) -> int:
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return 1 << 62


def arrays_of(model: nn.Module) -> dict[str, np.ndarray]:
    """Copies of all weights and buffers by name."""
    return {name: np.array(tensor.detach().cpu().numpy()) for name, tensor in model.state_dict().items()}


def replace_text(path: Path, text: str) -> None:
    """Write a file so that readers see its old or its new text."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, "utf-8")
    os.replace(part, path)
