"""Nothing leaves the machine: no name is looked up, and nobody's id is written into the user's folders."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import recording_resolver

pytest.importorskip("onnxruntime")

ROOT = Path(__file__).parents[2]
RESOLVER = Path(recording_resolver.__file__)
NAMESPACE = ["unshare", "--map-root-user", "--net", "--mount"]
WAIT = 15  # seconds; ONNX Runtime 1.31 sends for the first time after about ten
SESSION = """
import json, sys, time
import numpy as np
import app.engine.worker
import samples
from designer.files.document import read_document
from designer.files.weights import random_weights, required_weights
from designer.graph.inference import Inference
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.session import Session

graph, registry = read_document(samples.path("oidn_like.xml")).graph, load()
weights = random_weights(required_weights(Inference(graph, registry)), 0)
ran = []
for engine in sys.argv[2:]:
    session = Session(graph, registry, weights, RunOptions(engine=engine, threads=1))
    for layer in graph:
        if layer.type == "input":
            session.set_input(layer.name, np.zeros((1, 3, 64, 64), np.float32), is_image=True)
    ran.append(len(session.run().outputs))
time.sleep(float(sys.argv[1]))
print(json.dumps(ran), file=sys.stderr)
"""

# The first start opens the sample and runs it in the engine process.
WINDOW = """
import sys, threading
from PySide6.QtCore import QMetaObject, Qt
from PySide6.QtWidgets import QApplication
from app.main import run_window

def stop():
    from app.ui.engine.analysis import analysis_of
    from app.ui.shell.window import shown_windows
    (window,) = shown_windows()
    result = analysis_of(window.context).result
    print("outputs:", *(result.outputs if result is not None else ()), file=sys.stderr)
    QMetaObject.invokeMethod(QApplication.instance(), "quit", Qt.ConnectionType.QueuedConnection)

threading.Timer(float(sys.argv[1]), stop).start()
raise SystemExit(run_window([]))
"""


def resolved(tmp_path: Path, *command: str, **variables: str) -> tuple[list[str], str]:
    """The names that a command looked up in a home folder of its own, and what it said."""
    home = tmp_path / "home"
    home.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    env |= variables
    done = subprocess.run(
        [*NAMESPACE, sys.executable, str(RESOLVER), *command],
        check=False,
        capture_output=True,
        text=True,
        env=env,
        cwd=ROOT,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


@pytest.fixture
def namespace() -> None:
    """Skips where the machine gives no network of one's own."""
    if not sys.platform.startswith("linux") or shutil.which("unshare") is None:
        pytest.skip("needs unshare of Linux")
    if not recording_resolver.RESOLVER.exists():
        pytest.skip("there is no /etc/resolv.conf to replace")
    if subprocess.run([*NAMESPACE, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let a test have a network namespace")


@pytest.mark.usefixtures("namespace")
def test_a_session_of_every_engine_looks_up_no_name(tmp_path) -> None:
    names, said = resolved(tmp_path, sys.executable, "-c", SESSION, str(WAIT), "onnxruntime", "torch")
    assert json.loads(said.splitlines()[-1]) == [1, 1]
    assert names == [recording_resolver.OWN]
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert {path for path in left if not path.endswith(".conf")} == set()


@pytest.mark.gui
@pytest.mark.usefixtures("namespace")
def test_the_window_and_its_engine_look_up_no_name(tmp_path) -> None:
    pytest.importorskip("PySide6")
    names, said = resolved(tmp_path, sys.executable, "-c", WINDOW, "30", QT_QPA_PLATFORM="offscreen")
    assert "outputs: output_image" in said
    assert names == [recording_resolver.OWN]


@pytest.mark.usefixtures("namespace")
def test_importing_openvino_looks_up_no_name(tmp_path) -> None:
    pytest.importorskip("openvino")
    names, _ = resolved(tmp_path, sys.executable, "-c", "import designer, openvino, time; time.sleep(3)")
    assert names == [recording_resolver.OWN]


def test_a_run_from_the_command_line_leaves_no_id_of_the_device(tmp_path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    env = {**os.environ, "HOME": str(home), "TMPDIR": str(tmp_path)}
    env = {key: text for key, text in env.items() if not key.startswith(("XDG_", "ORT_"))}
    command = [sys.executable, "-m", "app.cli.main", "run", "samples/oidn_like.xml", "--random-weights", "1"]
    result = f"--output=output_image={tmp_path / 'out.npy'}"
    picture = tmp_path / "in.png"
    subprocess.run(
        [sys.executable, "-c", f"from PIL import Image; Image.new('RGB', (64, 64)).save({str(picture)!r})"], check=True
    )
    done = subprocess.run(
        [*command, f"--input=input_image={picture}", result],
        check=False,
        capture_output=True,
        text=True,
        env=env,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"in.png", "out.npy"}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found


def test_one_module_imports_onnx_runtime() -> None:
    files = [p for top in ("app", "designer", "exporters", "analysis_layers") for p in (ROOT / top).rglob("*.py")]
    assert [p.relative_to(ROOT).as_posix() for p in files if "onnxruntime" in imports(p)] == [
        "designer/runtime/engines/ort.py"
    ]


def test_scripts_that_are_exported_switch_it_off_themselves() -> None:
    for path in (ROOT / "resources").rglob("*.py"):
        text = path.read_text("utf-8")
        if "onnxruntime" in imports(path):
            assert 0 <= text.find("ORT_DISABLE_TELEMETRY") < text.find("import onnxruntime"), path
