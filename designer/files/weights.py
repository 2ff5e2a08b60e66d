"""Public names of the modules about weights: import them from here."""

from __future__ import annotations

from designer.files.weight_files import WEIGHTS, load_weights, save_weights
from designer.files.weight_needs import ACTIVATION_PREFIX, required_weights, torch_keys
from designer.files.weight_random import fill_missing, random_weights
from designer.files.weight_report import weight_diagnostics
from designer.files.weight_types import WeightKey, WeightReport, Weights, WeightStatus

__all__ = [
    "ACTIVATION_PREFIX",
    "WEIGHTS",
    "WeightKey",
    "WeightReport",
    "WeightStatus",
    "Weights",
    "fill_missing",
    "load_weights",
    "random_weights",
    "required_weights",
    "save_weights",
    "torch_keys",
    "weight_diagnostics",
]
