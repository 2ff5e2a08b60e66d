"""Torch data as Python text. Names are valid identifiers already; strings are printed only with repr."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from designer.operators.torch_data import (
    TorchCall,
    TorchItem,
    TorchMethod,
    TorchModule,
    TorchName,
    TorchParameter,
    TorchSource,
)
from designer.operators.torch_program import Local, Submodule, TensorAttribute
from exporters.pytorch.subnetworks import ModuleReference

# The number of first arguments of a class that are usually written without names.
_POSITIONAL = {
    "torch.nn.BatchNorm1d": 1,
    "torch.nn.BatchNorm2d": 1,
    "torch.nn.BatchNorm3d": 1,
    "torch.nn.Conv1d": 2,
    "torch.nn.Conv2d": 2,
    "torch.nn.Conv3d": 2,
    "torch.nn.ConvTranspose2d": 2,
    "torch.nn.Embedding": 2,
    "torch.nn.GroupNorm": 2,
    "torch.nn.GRU": 2,
    "torch.nn.LayerNorm": 1,
    "torch.nn.LSTM": 2,
    "torch.nn.MultiheadAttention": 2,
    "torch.nn.RNN": 2,
    "torch.nn.Dropout": 1,
    "torch.nn.Linear": 2,
    "torch.nn.PixelShuffle": 1,
    "torch.nn.PixelUnshuffle": 1,
}
# Defaults of torch, which are omitted.
_CONVOLUTION = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1, "bias": True}
_POOLING = {"padding": (0, 0), "ceil_mode": False, "count_include_pad": True}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "torch.nn.AvgPool2d": _POOLING,
    "torch.nn.BatchNorm1d": {"eps": 1e-5, "momentum": 0.1, "affine": True},
    "torch.nn.BatchNorm2d": {"eps": 1e-5, "momentum": 0.1, "affine": True},
    "torch.nn.BatchNorm3d": {"eps": 1e-5, "momentum": 0.1, "affine": True},
    "torch.nn.Bilinear": {"bias": True},
    "torch.nn.Conv1d": {**_CONVOLUTION, "stride": (1,), "padding": (0,)},
    "torch.nn.Conv2d": _CONVOLUTION,
    "torch.nn.Conv3d": {**_CONVOLUTION, "stride": (1, 1, 1), "padding": (0, 0, 0)},
    "torch.nn.GroupNorm": {"eps": 1e-5},
    "torch.nn.LayerNorm": {"eps": 1e-5},
    "torch.nn.Linear": {"bias": True},
    "torch.nn.ConvTranspose2d": {**_CONVOLUTION, "output_padding": (0, 0)},
    "torch.nn.MaxPool2d": {**_POOLING, "dilation": (1, 1)},
    "torch.nn.Upsample": {"mode": "nearest"},
}
# Arguments in which equal sizes are written as one number.
_SIZES = frozenset({"dilation", "kernel_size", "output_padding", "padding", "scale_factor", "stride"})
_SQUARE = frozenset(
    f"torch.nn.{name}"
    for name in (
        "AvgPool2d",
        "Conv1d",
        "Conv2d",
        "Conv3d",
        "ConvTranspose2d",
        "LPPool2d",
        "MaxPool2d",
        "Upsample",
        "ZeroPad2d",
    )
)
# Arithmetic is written with operators; the number is the precedence.
_SIGNS = {"torch.add": ("+", 1), "torch.sub": ("-", 1), "torch.mul": ("*", 2), "torch.div": ("/", 2)}
_TIGHT = 9  # precedence of method calls and indices


def path_text(path: str) -> str:
    """A path in torch, shortened by the imports of the generated file."""
    for prefix, short in (("torch.nn.functional.", "F."), ("torch.nn.", "nn.")):
        if path.startswith(prefix):
            return short + path[len(prefix) :]
    return path


def literal(value: Any) -> str:
    """A constant: number, string, bool, None, a name in torch, or tuples and lists of these."""
    if isinstance(value, TorchName):
        return path_text(value.path)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if value is None or isinstance(value, bool | int | float | str):
        return quoted(value) if isinstance(value, str) else repr(value)
    raise TypeError(f"{value!r} cannot be written as torch source")


def quoted(text: str) -> str:
    """A string literal, in double quotes if that requires no additional escapes."""
    plain = repr(text)
    return f'"{plain[1:-1]}"' if plain[0] == "'" and '"' not in plain else plain


def module_text(data: TorchModule) -> str:
    """The construction of a module: `nn.Conv2d(3, 32, kernel_size=3, padding=1)`."""
    if isinstance(data, TorchSource):
        values = [*map(literal, data.positional), *(f"{key}={literal(value)}" for key, value in data.kwargs.items())]
        return f"{data.path}({', '.join(values)})"
    defaults = _DEFAULTS.get(data.path, {})
    positional = _POSITIONAL.get(data.path, 0)
    parts = []
    for number, (key, value) in enumerate(data.kwargs.items()):
        if number < positional:
            parts.append(literal(value))
            continue
        if key in defaults and defaults[key] == value:
            continue
        if key == "stride" and data.path.endswith("Pool2d") and value == data.kwargs.get("kernel_size"):
            continue
        if data.path in _SQUARE and key in _SIZES and isinstance(value, tuple) and len(set(value)) == 1:
            value = value[0]
        parts.append(f"{key}={literal(value)}")
    return f"{path_text(data.path)}({', '.join(parts)})"


def tensor_text(data: TorchParameter) -> str:
    """The initial values of a tensor of the module."""
    shape = literal(data.shape)
    if data.uniform:
        return f"torch.empty({shape}).uniform_({literal(-data.uniform)}, {literal(data.uniform)})"
    if data.values is None:
        return f"torch.zeros({shape})"
    if isinstance(data.values, int | float) and data.dtype == "float32":
        return f"torch.full({shape}, {literal(float(data.values))})"
    dtype = f"dtype=torch.{data.dtype}"
    if isinstance(data.values, int | float):
        return f"torch.full({shape}, {literal(data.values)}, {dtype})"
    return f"torch.tensor({literal(data.values)}, {dtype}).reshape({shape})"


def expression(value: Any, binding: int = 0) -> str:
    """A resolved expression as written in `forward`, in parentheses if its precedence is lower than `binding`."""
    if isinstance(value, Local):
        return value.name
    if isinstance(value, TensorAttribute):
        return f"self.{value.attribute}"
    if isinstance(value, Submodule):
        key = f"[{quoted(value.key)}]" if value.key else ""
        return f"self.{value.attribute}{key}({_arguments(value.args, {})})"
    if isinstance(value, ModuleReference):
        return value.text if value.args is None else f"{value.text}({_arguments(value.args, {})})"
    if isinstance(value, TorchCall):
        return _call(value, binding)
    if isinstance(value, TorchMethod):
        target = expression(value.target, _TIGHT)
        return f"{target}.{value.method}({_arguments(value.args, value.kwargs)})"
    if isinstance(value, TorchItem):
        return f"{expression(value.value, _TIGHT)}[{_index(value.index)}]"
    if isinstance(value, tuple):
        return f"({', '.join(expression(item) for item in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(expression(item) for item in value)}]"
    text = literal(value)
    return f"({text})" if binding and text.startswith("-") else text


def _call(value: TorchCall, binding: int) -> str:
    sign, level = _SIGNS.get(value.path, ("", 0))
    if not sign or len(value.args) != 2 or value.kwargs:
        return f"{path_text(value.path)}({_arguments(value.args, value.kwargs)})"
    # The right side gets parentheses at the same precedence: (a - b) - c is not a - (b - c), also in rounding.
    text = f"{expression(value.args[0], level)} {sign} {expression(value.args[1], level + 1)}"
    return f"({text})" if level < binding else text


def _arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    return ", ".join(
        [*(expression(arg) for arg in args), *(f"{key}={expression(value)}" for key, value in kwargs.items())]
    )


def _index(index: Any) -> str:
    if isinstance(index, tuple):
        return ", ".join(map(_index, index)) + ("," if len(index) == 1 else "")
    if isinstance(index, slice):
        ends = ["" if end is None else literal(end) for end in (index.start, index.stop)]
        return ":".join(ends) + (f":{literal(index.step)}" if index.step is not None else "")
    return "..." if index is Ellipsis else literal(index)
