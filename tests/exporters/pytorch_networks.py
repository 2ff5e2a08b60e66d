"""Small networks for the tests of the PyTorch exporter, and ways to run what was generated."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from designer.files.weights import Weights, random_weights, required_weights
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.registry import Registry

RELU = ActivationSpec("relu", {"alpha": "0.0"})


def node(name: str, type_: str, *inputs: str, activation: ActivationSpec | None = None, **params: Any) -> Layer:
    sources = tuple(Source.parse(text) if text else None for text in inputs)
    return Layer(name, type_, inputs=sources, params={k: str(v) for k, v in params.items()}, activation=activation)


def small(image: str = "image", tiling: int = 2) -> Graph:
    """A convolution down, one up, and the picture added: enough to train."""
    return Graph(
        [
            node(image, "input", dims="16x12x3", tiling=tiling),
            node("down", "convolution", image, activation=RELU, features=8, kernel="3x3", stride="2x2"),
            node("up", "transposed_convolution", "down", features=3, kernel="4x4", stride="2x2"),
            node("sum", "element_wise", "up", image, operation="add"),
            node("result", "output", "sum"),
        ],
        name="small",
    )


def seeded(graph: Graph, registry: Registry, seed: int = 0) -> Weights:
    return random_weights(required_weights(Inference(graph, registry)), seed)


def load_source(text: str) -> ModuleType:
    """The generated file as a module, as Python would import it."""
    module = ModuleType("generated")
    exec(compile(text, "model.py", "exec"), module.__dict__)
    return module


def imported(text: str) -> set[str]:
    """The packages that a file imports."""
    found = set()
    for statement in ast.walk(ast.parse(text)):
        if isinstance(statement, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            found.add((statement.module or "").partition(".")[0])
    return found


def lint(*paths: Path) -> str:
    """What ruff finds in generated files, by the rules of their project; empty when all is well."""
    rules = [] if paths[0].is_dir() else ["--isolated"]
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", *rules, "--output-format=concise", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def set_weights(module: Any, program: Any, weights: Weights) -> None:
    """Load `weights` through the state dict, by the keys that the program promises."""
    import torch

    state = module.state_dict()
    for bound in program.weights:
        state[bound.key] = torch.from_numpy(np.array(weights.tensors[(bound.layer, bound.tensor)]))
    module.load_state_dict(state)
