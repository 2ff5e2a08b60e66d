"""The training scripts of a project for a task, imported without exporting one."""

from __future__ import annotations

import importlib
import json
import sys
from contextlib import contextmanager
from pathlib import Path

import resources
from exporters.pytorch.tasks import TASKS, for_task

TEMPLATES = Path(resources.__file__).parent / "templates"
MODEL = "import torch\n\n\nclass NetworkClass(torch.nn.Module):\n    def forward(self, x):\n        return x\n"


@contextmanager
def scripts(
    folder: Path,
    task: str = "denoising",
    *,
    classes: int = 3,
    targets: tuple = (),
    inputs: tuple = ((3, 8, 8),),
    stubs: dict | None = None,
    weights: dict[str, str] | None = None,
):
    """Imports the scripts of a project for a task, as `get("images")`; they are forgotten afterwards."""
    shape = [classes, 8, 8] if task == "segmentation" else [classes] if task == "classification" else [3, 8, 8]
    information = {
        "task": task,
        "scale": 2,
        "probabilities": False,
        "inputs": [
            {"name": f"image{n or ''}", "shape": list(entry), "scale": 1.0, "shift": 0.0, "multiple": 4}
            for n, entry in enumerate(inputs)
        ],
        "outputs": [{"name": "result", "shape": shape}],
        "losses": ["loss"] if targets else [],
        "targets": [{"name": "label", "shape": list(entry), "scale": 1.0, "shift": 0.0} for entry in targets],
        "shared": [],
        "frozen": [],
        "weights": weights or {"conv.weight": "conv_kernel"},
    }
    files = {path.name: path for path in (TEMPLATES / "pytorch").glob("*.py")}
    files["data.py"] = TEMPLATES / "pytorch" / "tasks" / TASKS[task].template
    files["losses.py"] = TEMPLATES / "pytorch" / "losses" / TASKS[task].loss
    for name, path in files.items():
        (folder / name).write_text(for_task(path.read_text("utf-8"), TASKS[task]), "utf-8")
    (folder / "model.py").write_text(MODEL, "utf-8")
    (folder / "project.json").write_text(json.dumps(information), "utf-8")
    names = {Path(name).stem for name in (*files, "model.py", *(stubs or {}))}
    before = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.modules.update(stubs or {})
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(folder))
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(before)
