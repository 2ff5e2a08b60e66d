"""Export of a project folder that trains a network in PyTorch, written completely or not at all."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from importlib.resources.abc import Traversable
from math import lcm
from pathlib import Path
from typing import Any, Literal, cast

from designer.files.settings import Settings
from designer.files.weight_files import file_stems
from designer.files.weight_types import WeightKey
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Source
from designer.graph.template import enclosing
from designer.operators.inlining import inlined
from designer.operators.registry import Read, Registry
from designer.runtime.provenance import provenance
from designer.texts import tr
from designer.units import dims_text
from exporters.generated_folder import GENERATOR, Marker, read_marker, swap
from exporters.markdown import code
from exporters.pytorch.checked import check_compiles
from exporters.pytorch.losses import CLASS, Losses, losses_of
from exporters.pytorch.source import Module, class_name, module_source, network_module
from exporters.pytorch.tasks import (
    TASKS,
    Task,
    check_output,
    ends_in_softmax,
    for_task,
    scale_of,
    suggested_task,
    task_named,
    with_recipe,
)

Edited = Literal["refuse", "keep", "replace"]  # what happens to edited files
MARKER = "project.json"
SCRIPTS = tuple(
    f"{name}.py"
    for name in (
        "checkpoints config images infer metrics monitor objective optimization plots processes records samples storage test_project "
        "train validation"
    ).split()
)


@dataclass(frozen=True)
class Training:
    """What the project trains: the name of a task ("" for the one that the network suggests), and other defaults in config.py."""

    task: str = ""
    recipe: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Settings, task: str = "") -> Training:
        """The training in the settings of a document. Another `task` does not have their recipe."""
        same = task in ("", settings.task)
        return cls(task or settings.task, settings.recipe if same else {})


class EditedFilesError(DiagnosticError):
    """Files that the user edited have other content in this export. `diffs` has the unified diff of each, by name."""

    def __init__(self, target: Path, diffs: Mapping[str, str]) -> None:
        self.diffs = dict(diffs)
        names = ", ".join(diffs)
        super().__init__(
            Diagnostic(
                "edited-files",
                tr(
                    "{names} in {target} were edited and would be overwritten; nothing was changed",
                    names=names,
                    target=target,
                ),
                file=str(target / next(iter(diffs))),
                remedy=tr("keep or replace the edited files, or choose another folder"),
            )
        )


def export_project(
    graph: Graph,
    registry: Registry,
    folder: str | os.PathLike[str],
    name: str,
    training: Training = Training(),
    *,
    edited: Edited = "refuse",
) -> tuple[Path, ...]:
    """Write the project of the deployed network to `folder`, with a class called `name` (converted to an identifier).

    Files of an earlier export are replaced if they were not edited. An edited file is kept where the export did not change;
    otherwise it is kept or replaced as `edited` says, or EditedFilesError is raised. Nothing else is changed, and after an error
    the folder is restored. Raises DiagnosticError for an invalid network, for files of others, and if the folder cannot be
    written. Returns the files.
    """
    target = Path(folder)
    files = project_files(graph, registry, name, training)
    try:
        conflicts = _check_target(target, files)
        changed = {file: diff for file, diff in conflicts.items() if diff}
        if changed and edited == "refuse":
            raise EditedFilesError(target, changed)
        kept = [file for file in conflicts if file not in changed or edited == "keep"]
        written = {file: data for file, data in files.items() if file not in kept}
        _write(target, written, _obsolete(target, files))
    except OSError as error:
        raise DiagnosticError.of(
            "cannot-export",
            tr(
                "{target} cannot be written: {strerror}; nothing was changed there",
                target=target,
                strerror=error.strerror or error,
            ),
            file=str(target),
            remedy=tr("choose a writable folder on a disk with free space"),
        ) from error
    return tuple(target / file for file in sorted(files))


def outdated_files(graph: Graph, registry: Registry, folder: Path, training: Training = Training()) -> tuple[str, ...]:
    """The files of the project in `folder` that an export of the network would change; empty if it is not a project.

    Raises DiagnosticError for a network that cannot be exported.
    """
    marker = read_marker(folder / MARKER, _Marker)
    if marker is None:
        return ()
    files = project_files(graph, registry, marker.model, replace(training, task=training.task or marker.task))
    return tuple(sorted(f for f, data in files.items() if f != MARKER and marker.files.get(f) != _digest(data)))


def project_files(graph: Graph, registry: Registry, name: str, training: Training = Training()) -> dict[str, bytes]:
    """The project's files by name. Raises DiagnosticError for an invalid network, task or recipe, and a task that the output does not fit."""
    if not name.strip():
        raise DiagnosticError.of("bad-name", tr("the model has no name"), remedy=tr("enter a name for the model"))
    cls = class_name(name)
    losses = losses_of(graph, registry)
    module = network_module(graph, registry, taps=losses.taps if losses is not None else (), name=cls)
    task = task_named(training.task) if training.task else suggested_task(module, losses)
    check_output(module, task)
    info = _information(module, losses, cls, graph.name, task)
    info["provenance"] = provenance(graph.name, graph).texts()
    replacements = {
        "NetworkClass": cls,
        "INPUT_LIST": _input_list(info),
        "LOSS_LIST": _loss_list(info),
        "DATA_OPTIONS": task.data,
    }
    texts = {"model.py": module_source(module, cls)}
    for file, template in _templates(task, losses is None).items():
        text = for_task(template.read_text("utf-8"), task)
        texts[file] = re.sub("|".join(replacements), lambda found: replacements[found[0]], text)
    texts["config.py"] = with_recipe(texts["config.py"], training.recipe)
    if losses is not None:
        texts["losses.py"] = module_source(losses.module, CLASS)
    for file, text in texts.items():
        if file.endswith(".py"):
            check_compiles(text)
    files = {file: text.encode("utf-8") for file, text in texts.items()}
    info["files"] = {file: _digest(data) for file, data in sorted(files.items())}
    files[MARKER] = (json.dumps(info, indent=2) + "\n").encode("utf-8")
    return files


def _templates(task: Task, own_losses: bool) -> dict[str, Traversable]:
    """The templates of the project's files, by file name."""
    folder = resources.files("resources") / "templates" / "pytorch"
    names = (*SCRIPTS, *task.scripts, "README.md", "pyproject.toml", "requirements.txt")
    found = {name: folder / name for name in names}
    found["data.py"] = folder / "tasks" / task.template
    if own_losses:
        found["losses.py"] = folder / "losses" / task.loss
    return found


def _information(module: Module, losses: Losses | None, cls: str, document: str, task: Task) -> dict[str, Any]:
    """Data about the network for the scripts, for project.json."""
    program, inference = module.program, module.inference
    stems = file_stems({WeightKey(bound.layer, bound.tensor) for bound in program.weights})
    return {
        "generator": GENERATOR,
        "format": 1,
        "model": cls,
        "document": document,
        "task": task.name,
        "scale": scale_of(module),
        "probabilities": ends_in_softmax(module),
        "inputs": [_input(module, source) for source in module.inputs],
        "outputs": [{"name": str(s), "shape": _shape(inference.states[s.layer].outputs)} for s in module.outputs],
        "losses": [str(source) for source in losses.module.outputs] if losses is not None else [],
        "targets": [_target(losses.module, source) for source in losses.targets] if losses is not None else [],
        "shared": list(losses.shared) if losses is not None else [],
        "frozen": _frozen_keys(module),
        "weights": {bound.key: stems[WeightKey(bound.layer, bound.tensor)] for bound in program.weights},
    }


def _frozen_keys(module: Module) -> list[str]:
    """The keys of the weights of frozen layers, also of layers inside of frozen instances and templates."""
    graph = inlined(module.inference).graph  # an instance is an identity there, also one inside of a template

    def frozen(layer: str) -> bool:
        return any(name in graph and graph[name].frozen for name in enclosing(layer))

    return sorted(bound.key for bound in module.program.weights if frozen(bound.layer))


def _input(module: Module, source: Source) -> dict[str, Any]:
    tiling = _values(module, source).get("tiling", 0)
    return {**_target(module, source), "multiple": tiling if tiling > 1 else _multiple(module, source)}


def _target(module: Module, source: Source) -> dict[str, Any]:
    values = _values(module, source)
    return {
        "name": source.layer,
        "argument": module.program.inputs[source],
        "shape": _shape(module.inference.states[source.layer].outputs),
        "scale": values.get("scale", 1.0),
        "shift": values.get("shift", 0.0),
    }


def _values(module: Module, source: Source) -> Mapping[str, Any]:
    """The parameters of an input layer."""
    operator = cast(Read, module.inference.read(source.layer)).operator
    return operator.values() if operator is not None else {}


def _multiple(module: Module, source: Source) -> int:
    """The multiple for height and width if `tiling` is not set: the total downsampling factor of the layers."""
    inference = inlined(module.inference)
    graph, factors = inference.graph, {source.layer: (1, 1)}
    for name in graph.order(graph.downstream([source.layer]))[0]:
        state = inference.states[name]
        reads = [s for s in graph[name].inputs if s is not None]
        for read, before in zip(reads, state.inputs, strict=False):
            known = factors.get(read.layer)
            for after in state.outputs or ():
                if known is not None and before.rank == after.rank == 4:
                    (rows, columns), old, new = known, before.concrete()[2:], after.concrete()[2:]
                    factors.setdefault(name, (_smaller(rows, old[0], new[0]), _smaller(columns, old[1], new[1])))
    return lcm(*(number for pair in factors.values() for number in pair))


def _smaller(factor: int, before: int, after: int) -> int:
    """The downsampling factor of an image of `after` pixels, computed from one of `before` pixels at `factor`."""
    if after > before:
        return max(factor * before // after, 1)
    return factor * (before // after) if after > 1 and before % after == 0 else factor


def _shape(outputs: Any) -> list[int]:
    """Dimensions without the batch."""
    return list(outputs[0].concrete()[1:])


def _input_list(info: Mapping[str, Any]) -> str:
    def line(kind: str, entry: Mapping[str, Any], name: str) -> str:
        return f"- {kind} {code(name)}: {dims_text(('N', *entry['shape']))}"

    inputs = [line("input", entry, entry["argument"]) for entry in info["inputs"]]
    return "\n".join([*inputs, *(line("output", entry, entry["name"]) for entry in info["outputs"])])


def _loss_list(info: Mapping[str, Any]) -> str:
    """The description of the losses for the README."""
    if not info["losses"]:
        what = {
            "image.py": "the mean absolute difference (L1) of the first output and the\ntarget",
            "classes.py": "the cross-entropy of the first output and the classes",
        }[TASKS[info["task"]].loss]
        return f"The document has no losses, so training minimizes {what}. Losses of a document are exported as `losses.py`."
    lines = [
        "Training minimizes the weighted sum of these losses (`losses.py`):",
        "",
        *(f"- {code(name)}" for name in info["losses"]),
        "",
    ]
    targets = (f"- target {code(e['name'])}: {dims_text(('N', *e['shape']))}" for e in info["targets"])
    return "\n".join([*lines, *targets]).rstrip("\n")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _check_target(target: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """The edited files, each with the diff to what would replace it; "" if the export has not changed there.

    Raises DiagnosticError if a file to replace was not written by this program.
    """
    if target.exists() and not target.is_dir():
        raise DiagnosticError.of(
            "not-a-folder", tr("{target} is a file", target=target), file=str(target), remedy=tr("choose a folder")
        )
    marker = read_marker(target / MARKER, _Marker)
    written = marker.files if marker is not None else None
    edited: dict[str, str] = {}
    for file, data in sorted(files.items()):
        path = target / file
        if not path.exists() and not path.is_symlink():
            continue
        if file == MARKER and written is not None:
            continue
        present = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        if present is not None and (present == data or (written or {}).get(file) == _digest(present)):
            continue
        if present is not None and file in (written or {}):
            edited[file] = "" if (written or {})[file] == _digest(data) else _diff(file, present, data)
            continue
        raise DiagnosticError.of(
            "file-in-the-way",
            tr("{path} was not written by this program and would be overwritten; nothing was changed", path=path),
            file=str(path),
            remedy=tr("choose another folder, or move the file away"),
        )
    return edited


def _diff(name: str, present: bytes, new: bytes) -> str:
    """The unified diff from the present text to the new one."""
    before, after = (data.decode("utf-8", "replace").splitlines(keepends=True) for data in (present, new))
    return "".join(difflib.unified_diff(before, after, f"{name} (edited)", f"{name} (new)"))


def _obsolete(target: Path, files: Mapping[str, bytes]) -> list[str]:
    """Unchanged files of an earlier export that this network does not need."""
    marker = read_marker(target / MARKER, _Marker)
    written = marker.files if marker is not None else {}
    found = []
    for file in written.keys() - files.keys():
        path = target / file
        if path.is_file() and not path.is_symlink() and written[file] == _digest(path.read_bytes()):
            found.append(file)
    return found


class _Marker(Marker):
    """Also the class name and the task of an earlier export, in its `project.json`."""

    model: str = ""
    task: str = ""


def _write(target: Path, files: Mapping[str, bytes], obsolete: list[str]) -> None:
    """Write all files to `target` and remove `obsolete`, or leave it unchanged and raise OSError."""
    fresh = not target.exists()
    target.parent.mkdir(parents=True, exist_ok=True)
    # Staged on the same disk, so that moving cannot fail because of a full disk.
    stage = Path(tempfile.mkdtemp(prefix=".lw-export-", dir=target.parent if fresh else target))
    try:
        new = stage / "new"
        new.mkdir()
        for file, data in files.items():
            with open(new / file, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        if fresh:
            os.rename(new, target)
        else:
            swap(target, new, stage / "old", sorted([*files, *obsolete]))
    finally:
        shutil.rmtree(stage, ignore_errors=True)
