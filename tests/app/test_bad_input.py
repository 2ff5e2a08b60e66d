"""Bad input on the command line: each case ends with status 1 and a finding (thing, rule, remedy), never with a traceback."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from app.cli import main as cli
from designer.files.document import read_document
from designer.graph.diagnostics import errors
from designer.graph.inference import Inference
from designer.operators.registry import default_registry

BAD = Path(__file__).parent.parent / "data" / "bad"
DOCUMENTS = sorted(BAD.glob("*.xml"))
WEIGHTS = sorted((BAD / "weights").iterdir())
ROOT = os.geteuid() == 0 if hasattr(os, "geteuid") else False

NETWORK = """<?xml version="1.0"?>
<NetworkModel name="tiny" version="2" user_version_tag="1">
	<Layer name="picture" type="input" edit_pos="0,0">
		<Parameters dims="16x12x3" rgba="false" scale="1.0" shift="0" tiling="1" />
	</Layer>
	<Layer name="conv 1" type="convolution" edit_pos="160,0" input="picture">
		<Parameters apply_bias="true" features="4" kernel="3x3" padding="same" padding_tuple="0x0" stride="1x1" />
	</Layer>
	<Layer name="result" type="output" edit_pos="320,0" input="conv 1">
		<Parameters analysis_view="tensor" channels="0" height="0" label_path="" offset="0x0x0" width="0" />
	</Layer>
</NetworkModel>
"""


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Layerwright:
    """Plays the command in this process, as `main` would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._captured = monkeypatch, capsys

    def __call__(self, *arguments: object) -> Done:
        self._patch.setattr("sys.argv", ["layerwright", *(str(a) for a in arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        return Done(code, *self._captured.readouterr())

    def refused(self, code: str, *arguments: object) -> str:
        """What the command said when it ended with the finding `code`."""
        done = self(*arguments)
        assert done.code == 1, done.out + done.err
        assert code in done.err, done.err
        assert "Traceback" not in done.err
        return done.err


@pytest.fixture
def layerwright(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Layerwright:
    return Layerwright(monkeypatch, capsys)


@pytest.fixture
def network(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.xml"
    path.write_text(NETWORK)
    return path


@pytest.fixture
def tensor(tmp_path: Path) -> Path:
    np.save(tmp_path / "in.npy", np.zeros((1, 3, 12, 16), np.float32))
    return tmp_path / "in.npy"


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "weights"
    folder.mkdir()
    np.save(folder / "conv 1_kernel.npy", np.ones((4, 3, 3, 3), np.float32))
    np.save(folder / "conv 1_bias.npy", np.ones(4, np.float32))
    return folder


def is_error(path: Path) -> bool:
    """Whether a file of the corpus cannot run; some findings are warnings."""
    reading = read_document(path)
    found = Inference(reading.graph, default_registry()).diagnostics() if reading.graph is not None else ()
    return bool(errors((*reading.diagnostics, *found)))


# --- documents -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.stem)
def test_check_ends_with_the_finding_of_a_bad_document(path: Path, layerwright: Layerwright) -> None:
    code = path.name.partition("__")[0]
    done = layerwright("check", path)
    assert done.code == (1 if is_error(path) else 0), done.out + done.err
    line = next(text for text in done.err.splitlines() if f"[{code}]" in text)
    assert path.name in line
    assert "Traceback" not in done.err


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.stem)
def test_run_refuses_a_bad_document_before_it_asks_for_anything(path: Path, layerwright: Layerwright) -> None:
    code = path.name.partition("__")[0]
    done = layerwright("run", path)
    assert "Traceback" not in done.err
    if is_error(path):
        assert done.code == 1
        assert code in done.err


def test_two_hundred_megabytes_of_nesting(layerwright: Layerwright, tmp_path: Path) -> None:
    path = tmp_path / "nested.xml"
    chunk = b"<Layer>" * 150_000
    with path.open("wb") as stream:
        for _ in range(200):
            stream.write(chunk)
    said = layerwright.refused("file-too-large", "check", path)
    assert str(path) in said


def test_nesting_as_large_as_a_document_may_be(layerwright: Layerwright, tmp_path: Path) -> None:
    from designer.files.limits import MAX_DOCUMENT_BYTES

    path = tmp_path / "nested.xml"
    path.write_bytes(b'<NetworkModel name="n" version="2">' + b"<a>" * ((MAX_DOCUMENT_BYTES - 100) // 3))
    layerwright.refused("too-deep", "check", path)


def test_a_layer_cannot_name_a_place_on_the_disk(layerwright: Layerwright, tmp_path: Path) -> None:
    path = tmp_path / "climbing.xml"
    path.write_text(NETWORK.replace("conv 1", "../../conv"))
    for command in (("check", path), ("export", "pytorch", path, "--output", tmp_path / "out", "--name", "Net")):
        layerwright.refused("bad-name", *command)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("make", "word"),
    [(lambda p: None, "No such file"), (lambda p: p.mkdir(), "folder"), (os.mkfifo, "regular file")],
    ids=["nothing", "folder", "pipe"],
)
def test_what_is_no_file_is_not_opened(layerwright: Layerwright, tmp_path: Path, make, word: str) -> None:
    path = tmp_path / "thing.xml"
    make(path)
    for command in (("check", path), ("run", path), ("convert", path, tmp_path / "copy.xml"), ("profile", path)):
        assert word in layerwright.refused("cannot-read", *command)


# --- weights -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", WEIGHTS, ids=lambda p: p.name)
def test_bad_weights_are_refused(
    path: Path, layerwright: Layerwright, network: Path, tensor: Path, tmp_path: Path
) -> None:
    code = path.name.partition("__")[0]
    source = path
    if path.suffix in (".npy", ".bin"):
        source = tmp_path / "bad"
        source.mkdir()
        for name in ("kernel", "bias"):
            (source / f"conv 1_{name}{path.suffix}").write_bytes(path.read_bytes())
    said = layerwright.refused(
        code, "run", network, "--weights", source, "--input", f"picture={tensor}", "--threads", 1
    )
    assert source.name in said
    assert "never run" not in said


@pytest.mark.parametrize("name", ["gone", "tiny.xml", "empty.pt"])
def test_weights_that_are_none(name: str, layerwright: Layerwright, network: Path, tensor: Path) -> None:
    (network.parent / "empty.pt").write_bytes(b"")
    code = {"gone": "cannot-read", "tiny.xml": "unknown-format", "empty.pt": "bad-weights"}[name]
    layerwright.refused(code, "run", network, "--weights", network.parent / name, "--input", f"picture={tensor}")


# --- pictures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("text.png", b"no picture at all", "not-a-picture"),
        ("empty.jpg", b"", "not-a-picture"),
        ("cut.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "cannot-read"),
        ("cut.npy", b"\x93NUMPY\x01\x00v\0{'descr': '<f4', 'fortran_order': False, 'shape': (", "not-a-tensor"),
        ("pickled.npy", (BAD / "weights" / "pickled-weights__objects.npy").read_bytes(), "not-a-tensor"),
        ("huge.npy", (BAD / "weights" / "weight-size__huge_header.npy").read_bytes(), "not-a-tensor"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_picture_that_is_none(
    name: str, data: bytes, code: str, layerwright: Layerwright, network: Path, weights: Path, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    said = layerwright.refused(code, "run", network, "--weights", weights, "--input", f"picture={path}")
    assert name in said


def test_tensors_of_the_wrong_shape(layerwright: Layerwright, network: Path, weights: Path, tmp_path: Path) -> None:
    for number, shape in enumerate([(3,), (1, 5, 12, 16), (0, 3, 12, 16), (1, 1, 1, 3, 12, 16)]):
        path = tmp_path / f"t{number}.npy"
        np.save(path, np.zeros(shape, np.float32))
        done = layerwright("run", network, "--weights", weights, "--input", f"picture={path}")
        assert done.code == 1, f"{shape}: {done.out}"
        assert "picture" in done.err
        assert "Traceback" not in done.err


# --- options -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    [
        ("--engine", "tensorflow"),
        ("--device", "tpu"),
        ("--precision", "fp8"),
        ("--layout", "nwhc"),
        ("--threads", "-3"),
    ],
    ids=lambda o: o[0],
)
def test_an_option_that_names_nothing(
    option: tuple[str, str], layerwright: Layerwright, network: Path, weights: Path, tensor: Path
) -> None:
    done = layerwright("run", network, "--weights", weights, "--input", f"picture={tensor}", *option)
    assert done.code in (1, 2), done.out + done.err
    assert option[1] in done.err
    assert "Traceback" not in done.err


# --- places that cannot be written to ------------------------------------------------------------------------------


def places(tmp_path: Path) -> list[Path]:
    """A folder that is a file, a folder that is not there, a name that is too long, and one that is read-only."""
    (tmp_path / "file").write_text("in the way")
    found = [tmp_path / "file" / "x", tmp_path / ("n" * 300)]
    if not ROOT:
        locked = tmp_path / "locked"
        locked.mkdir()
        locked.chmod(0o500)
        found.append(locked / "x")
    elif Path("/proc/1").exists():
        found.append(Path("/proc/x"))  # nobody makes files there
    return found


def test_places_that_cannot_be_written_to(
    layerwright: Layerwright, network: Path, weights: Path, tensor: Path, tmp_path: Path
) -> None:
    pytest.importorskip("onnx")
    feed = ("--weights", weights, "--input", f"picture={tensor}", "--threads", 1)
    for place in places(tmp_path):
        commands = [
            ("convert", network, f"{place}.xml"),
            ("run", network, *feed, "--output", f"result={place}.npy"),
            ("run", network, *feed, "--capture", f"conv 1={place}.npy"),
            ("export", "onnx", network, "--weights", weights, "--output", f"{place}.onnx"),
            ("export", "pytorch", network, "--output", place / "project", "--name", "Net"),
            ("tour", place),
            ("profile", network, "--weights", weights, "--iterations", 1, "--json", f"{place}.json", "--threads", 1),
        ]
        for command in commands:
            done = layerwright(*command)
            assert done.code == 1, f"{command}: {done.out}"
            assert re.search(r"cannot-(save|export)", done.err), f"{command}: {done.err}"
            assert "Traceback" not in done.err


def test_a_saved_document_stays_whole_when_its_folder_is_full(network: Path, tmp_path: Path) -> None:
    """A process that may write 100 bytes a file: the real error of a real write."""
    target = tmp_path / "target.xml"
    target.write_text("the old one")
    done = limited("convert", network, target, size=100)
    assert done.returncode == 1, done.stdout
    assert "cannot-save" in done.stderr
    assert "Traceback" not in done.stderr
    assert target.read_text() == "the old one"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["target.xml", "tiny.xml"]


def test_a_full_disk_while_a_project_is_exported(network: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    done = limited("export", "pytorch", network, "--output", project, "--name", "Net", size=2000)
    assert done.returncode == 1, done.stdout
    assert "cannot-export" in done.stderr
    assert "Traceback" not in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["tiny.xml"]


def limited(*arguments: object, size: int) -> subprocess.CompletedProcess[str]:
    """The command in a process that can write files of `size` bytes at most."""
    return subprocess.run(
        [sys.executable, "-B", "-m", "app.cli.main", *(str(a) for a in arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )


def test_a_reader_that_goes_away_is_no_mistake() -> None:
    """`layerwright operators | head -1`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli.main", "operators", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    process.wait(60)
    assert "Traceback" not in said, said


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (MemoryError(), "out-of-memory", "smaller image"),
        (OSError(28, "No space left on device", "/tmp/x"), "system", "/tmp/x: No space left"),
    ],
    ids=["memory", "system"],
)
def test_a_refusal_of_the_system_is_told(
    error: Exception, code: str, words: str, layerwright: Layerwright, network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("app.opened_network.open_network", refuse)
    assert words in layerwright.refused(code, "check", network)
