"""Rules about the repository itself: what is executed, what is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from designer.runtime.engine_registry import load_engines

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
                    continue  # a user's own layer, after agreement to its text
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
        "import designer.runtime.session, designer.files.document, designer.profiling.profile_files",
        "from designer.runtime.engine_registry import default_engines as e; [e().problem(one) for one in e()]",
        "import app.cli.main",
        "import app.engine.worker",
    ],
)
def test_imports_stay_light(statement: str) -> None:
    libraries = {
        "torch",
        "onnx",
        "onnxruntime",
        "openvino",
        "matplotlib",
        "PySide6",
        "NodeGraphQt",
        "cv2",
        "OpenEXR",
        "tensorrt_rtx",
    }
    assert not libraries & loaded_by(statement)


def test_engines_are_named_in_their_own_files_only() -> None:
    """Everything else reads the registry. `torch` is the name of a module too; the default is a setting; texts are for users."""
    names = [f'"{engine.name}"' for engine in load_engines(installed=False) if engine.name != "torch"]
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules()
        for name in names
        if name in path.read_text("utf-8").replace(f"tr({name}", "") and path.parent.name != "engines"
    ]
    assert found == ['designer/files/settings.py: "onnxruntime"']


def test_every_test_of_the_window_is_run() -> None:
    """`make test` runs those that are marked with a display, and skips this folder where Qt is blocked."""
    unmarked = [
        path.name for path in (ROOT / "tests" / "ui").glob("test_*.py") if "pytestmark" not in path.read_text("utf-8")
    ]
    assert not unmarked, "pytestmark = pytest.mark.gui is missing"
