"""Rules about the repository itself: what is executed, what is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("app", "designer", "exporters", "analysis_layers")


def modules() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def test_nothing_foreign_is_executed() -> None:
    banned = ("eval(", "exec(", "pickle.load", "weights_only=False", "allow_pickle=True", "shell=True", "os.system")
    found = []
    for path in modules():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = line.split("#")[0]
            for word in banned:
                position = code.find(word)
                if word == "exec(" and path.name == "custom_module.py":
                    continue  # a person's own layer, after they agreed to its text
                if position >= 0 and not code[:position].endswith((".", "_", "model", '"', "'", "`")):
                    found.append(f"{path.relative_to(ROOT)}:{number}: {word}")
    assert not found


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.parametrize(
    "statement",
    [
        "from designer.operators.registry import default_registry; default_registry()",
        "import designer.runtime.session, designer.files.document, designer.profiling.report",
        "import app.cli.main",
        "import app.engine.worker",
    ],
)
def test_imports_stay_light(statement: str) -> None:
    heavy = {"torch", "onnx", "onnxruntime", "matplotlib", "PySide6", "NodeGraphQt", "cv2", "OpenEXR"} & loaded_by(
        statement
    )
    assert not heavy
