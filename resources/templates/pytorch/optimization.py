"""Optimizer, learning rate, and the moving average of the weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from config import Config


def make_optimizer(config: Config, parameters: Sequence[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """AdamW or SGD with Nesterov momentum."""
    if config.optimizer == "sgd":
        nesterov = config.momentum > 0
        return torch.optim.SGD(
            parameters, config.lr, config.momentum, weight_decay=config.weight_decay, nesterov=nesterov
        )
    return torch.optim.AdamW(parameters, config.lr, weight_decay=config.weight_decay)


def learning_rate(config: Config, step: int, steps: int) -> float:
    """Linear warm-up, then cosine decay to 0."""
    warmup = min(100, steps // 10) if config.warmup < 0 else config.warmup
    if step < warmup:
        return config.lr * (step + 1) / warmup
    return config.lr * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def moving_average(config: Config, network: torch.nn.Module) -> AveragedModel | None:
    """The exponential moving average of the weights; None without one."""
    if not config.ema:
        return None
    average = get_ema_multi_avg_fn(config.ema)  # type: ignore[no-untyped-call, unused-ignore]
    return AveragedModel(network, multi_avg_fn=average, use_buffers=True)
