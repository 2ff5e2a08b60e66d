"""What a network is trained for: the task that its graph suggests, and the templates of the project that trains it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Source
from designer.operators.registry import Registry
from designer.texts import mark, tr
from exporters.pytorch.losses import Losses, losses_of
from exporters.pytorch.source import Module, network_module


@dataclass(frozen=True)
class Task:
    """A kind of training.

    `loss` is the template of losses.py for a document without losses, `data` are options of train.py, and `scripts` are files
    that only some tasks need.
    """

    name: str
    title: str
    loss: str
    data: str
    scripts: tuple[str, ...]

    @property
    def template(self) -> str:
        """The template of data.py."""
        return f"{self.name.replace('-', '_')}.py"


_MIXTURE = ("dead_leaves.py", "mixture.py", "synthetic.py")
_PAIRS = ("pairs.py",)
_MASKS = "--inputs FOLDER --targets FOLDER_WITH_MASKS"
TASKS = {
    task.name: task
    for task in (
        Task("denoising", mark("Denoising"), "image.py", "--data FOLDER_WITH_IMAGES --noise 25", _MIXTURE),
        Task("restoration", mark("Restoration of Image Pairs"), "image.py", "--inputs FOLDER --targets FOLDER", _PAIRS),
        Task("super-resolution", mark("Super-Resolution"), "image.py", "--data FOLDER", (*_MIXTURE, "resizing.py")),
        Task("segmentation", mark("Segmentation"), "classes.py", _MASKS, _PAIRS),
        Task("classification", mark("Classification"), "classes.py", "--data FOLDER_WITH_A_FOLDER_PER_CLASS", ()),
    )
}
SETTING = re.compile(
    r"^    (?P<name>\w+): (?P<type>\w+) = setting\(\s*(?P<default>\"[^\"]*\"|[^,\s]+)(?=,)", re.MULTILINE
)
ONLY = re.compile(r"^ *(?:#|<!--) only (?P<tasks>[\w -]+?)(?: -->)?$")


def task_named(name: str) -> Task:
    """The task called `name`. Raises DiagnosticError."""
    if name not in TASKS:
        raise DiagnosticError.of(
            "unknown-task",
            tr("'{name}' is not a task of training", name=name),
            remedy=tr("use one of: {names}", names=", ".join(TASKS)),
        )
    return TASKS[name]


def suggested_task(module: Module, losses: Losses | None) -> Task:
    """The task that the losses and shapes of a network suggest; denoising if nothing else fits."""
    output = module.inference.type_of(module.outputs[0])
    image = module.inference.type_of(module.inputs[0])
    assert output is not None
    assert image is not None
    if image.rank < 2 or output.rank < 2:  # a number for each sample
        return TASKS["denoising"]
    (channels, *size), (features, *result) = image.concrete()[1:], output.concrete()[1:]
    classes = losses is not None and _has(losses.module, losses.module.program.inputs, "cross_entropy_loss")
    spatial = len(result) == 2 and len(size) == 2
    if not result or (classes and not spatial):
        return TASKS["classification"]
    if classes or (spatial and ends_in_softmax(module)):
        return TASKS["segmentation"]
    if spatial and scale_of(module) > 1 and features == channels:
        return TASKS["super-resolution"]
    if (
        len(module.inputs) == 1
        and tuple(result) == tuple(size)
        and features != channels
        and {features, channels} <= {1, 3, 4}
    ):
        return TASKS["restoration"]
    return TASKS["denoising"]


def check_output(module: Module, task: Task) -> None:
    """Raise DiagnosticError if the first output has no axis of classes, and the task is one of classes."""
    output = module.inference.type_of(module.outputs[0])
    if task.loss == "classes.py" and output is not None and output.rank < 2:
        shape = "N x K x H x W" if task.name == "segmentation" else "N x K"
        raise DiagnosticError.of(
            "wrong-output",
            tr(
                "the output '{output}' has one number per sample, but the task '{task}' needs a score for each class",
                output=module.outputs[0],
                task=task.name,
            ),
            layer=module.outputs[0].layer,
            remedy=tr("choose another task, or make an output of the shape {shape} for K classes", shape=shape),
        )


def task_of_network(graph: Graph, registry: Registry) -> Task:
    """The task that a network suggests. Raises DiagnosticError for an invalid network."""
    losses = losses_of(graph, registry)
    return suggested_task(network_module(graph, registry, taps=losses.taps if losses is not None else ()), losses)


def scale_of(module: Module) -> int:
    """How many times larger the output is than the input, along both axes; 1 if it is not larger or not an image."""
    output, image = module.inference.type_of(module.outputs[0]), module.inference.type_of(module.inputs[0])
    if output is None or image is None or output.rank != 4 or image.rank != 4:
        return 1
    (height, width), (tall, wide) = image.concrete()[2:], output.concrete()[2:]
    scale = tall // height
    return scale if scale > 1 and (tall, wide) == (scale * height, scale * width) else 1


def ends_in_softmax(module: Module) -> bool:
    """Whether the first output has probabilities, not scores."""
    return _activation(module, module.outputs[0]) == "softmax"


def _activation(module: Module, source: Source) -> str:
    """The activation behind which an output is."""
    graph = module.inference.graph
    (read,) = graph[source.layer].inputs[:1] or (None,)
    producer = graph[read.layer] if read is not None else graph[source.layer]
    return producer.activation.type if producer.activation is not None else ""


def _has(module: Module, inputs: object, kind: str) -> bool:
    graph = module.inference.graph
    return any(graph[name].type == kind for name in graph.upstream([source.layer for source in module.outputs]))


def for_task(text: str, task: Task) -> str:
    """A template without the lines that are only for other tasks: those between `only TASK ...` and `only all`."""
    kept, wanted = [], True
    for line in text.splitlines(keepends=True):
        found = ONLY.match(line.rstrip("\n"))
        if found is not None:
            wanted = bool({"all", task.name} & set(found["tasks"].split()))
        elif wanted:
            kept.append(line)
    return "".join(kept)


def with_recipe(text: str, recipe: Mapping[str, str]) -> str:
    """config.py with the defaults of a recipe. Raises DiagnosticError for names and values that do not fit."""
    left = dict(recipe)

    def replaced(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in left:
            return found[0]
        return found[0][: found.start("default") - found.start()] + _literal(name, found["type"], left.pop(name))

    made = SETTING.sub(replaced, text)
    if left:
        raise DiagnosticError.of(
            "unknown-setting",
            tr("the training has no setting '{name}' for this task", name=min(left)),
            remedy=tr("use one of: {names}", names=", ".join(found["name"] for found in SETTING.finditer(text))),
        )
    return made


def _literal(name: str, kind: str, value: str) -> str:
    try:
        if kind == "bool":
            return {"true": "True", "false": "False"}[value.lower()]
        if kind == "str" and value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
            return f'"{value}"'
        number = {"int": int, "float": float}[kind](value)
        if not isfinite(number):
            raise ValueError
        return repr(number)
    except (KeyError, ValueError, OverflowError):
        raise DiagnosticError.of(
            "bad-setting",
            tr("'{value}' is not valid for the training setting '{name}'", value=value, name=name),
            remedy=tr("enter a value of the type {kind}", kind=kind),
        ) from None
