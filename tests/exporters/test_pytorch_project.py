"""The exported project: written whole or not at all, and its scripts do what its README says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from pytorch_networks import imported, lint, node, small
from warm_python import run_python

import designer.training.progress as events
from designer.files.weights import load_weights, required_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.runtime.api import RunOptions
from designer.runtime.session import Session
from exporters.pytorch import EditedFilesError, Training, export_project, outdated_files

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

SCRIPTS = {
    *(
        "checkpoints.py",
        "config.py",
        "data.py",
        "dead_leaves.py",
        "images.py",
        "infer.py",
        "losses.py",
        "metrics.py",
        "model.py",
    ),
    *("mixture.py", "monitor.py", "samples.py"),
    *("objective.py", "optimization.py", "plots.py", "processes.py", "records.py", "storage.py", "synthetic.py"),
    *("test_project.py", "train.py", "validation.py"),
}
FILES = SCRIPTS | {"README.md", "project.json", "pyproject.toml", "requirements.txt"}
TRAIN = [
    sys.executable,
    "train.py",
    "--synthetic",
    "2",
    "--batch",
    "2",
    "--patch",
    "16",
    "--threads",
    "1",
    "--json-progress",
]


def run(folder, *arguments):
    environment = {**os.environ, "PYTHONWARNINGS": "error", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        arguments, check=False, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def metrics(run_folder):
    """The header of a run's metrics, and the entries."""
    header, *entries = map(json.loads, (run_folder / "metrics.jsonl").read_text("utf-8").splitlines())
    return header, entries


def curve(run_folder):
    return [(entry["step"], entry["loss"]) for entry in metrics(run_folder)[1]]


def tree(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def photographs(tmp_path):
    folder = tmp_path / "photographs"
    folder.mkdir()
    for number in range(2):
        ramp = np.linspace(0, 255, 40, dtype=np.uint8)
        picture = np.stack([np.tile(np.roll(ramp, 13 * number + c), (30, 1)) for c in range(3)], axis=2)
        Image.fromarray(picture).save(folder / f"{number}.png")
    return folder


@pytest.fixture
def project(registry, tmp_path):
    export_project(small(), registry, tmp_path / "project", "Small")
    return tmp_path / "project"


# --- the files ----------------------------------------------------------------------------------------------------


def test_files_are_clean_and_need_few_packages(registry, project):
    assert {p.name for p in project.iterdir()} == FILES
    assert lint(project) == ""
    own = {name.removesuffix(".py") for name in SCRIPTS}
    allowed = {"torch", "numpy", "PIL", "matplotlib", "pytest", "tqdm"} | own | sys.stdlib_module_names
    for file in project.glob("*.py"):
        assert imported(file.read_text("utf-8")) <= allowed
    assert imported((project / "model.py").read_text("utf-8")) == {"torch"}
    texts = [file.read_text("utf-8") for file in project.iterdir()]
    assert not any(re.search("NetworkClass|INPUT_LIST|LOSS_LIST|DATA_OPTIONS|only all", text) for text in texts)
    assert "class `Small`" in (project / "README.md").read_text("utf-8")


def test_again_into_the_same_folder(registry, project, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # the date is part of the project
    export_project(small(), registry, project, "Small")
    before = tree(project)
    (project / "weights").mkdir()
    (project / "weights" / "mine.npy").write_bytes(b"kept")
    export_project(small(), registry, project, "Small")
    assert tree(project) == {**before, "weights/mine.npy": b"kept"}
    changed = Graph([*(small()[name] for name in ("image", "down", "up")), node("result", "output", "up")])
    export_project(changed, registry, project, "Other")
    assert "class Other" in (project / "model.py").read_text("utf-8")
    assert {p.name for p in project.iterdir()} == FILES | {"weights"}


@pytest.mark.parametrize("case", ["edited", "foreign", "foreign marker", "folder", "link"])
def test_other_peoples_files_are_not_replaced(registry, tmp_path, case):
    folder = tmp_path / "project"
    folder.mkdir()
    if case == "edited":
        export_project(small(), registry, folder, "Small")
        (folder / "model.py").write_text("# my own network\n", "utf-8")
    elif case == "foreign":
        (folder / "train.py").write_text("print('mine')\n", "utf-8")
    elif case == "foreign marker":
        (folder / "project.json").write_text("[1, 2]", "utf-8")
    elif case == "folder":
        (folder / "model.py").mkdir()
    else:
        (tmp_path / "elsewhere").write_text("mine", "utf-8")
        (folder / "model.py").symlink_to(tmp_path / "elsewhere")
    before = tree(folder)
    with pytest.raises(DiagnosticError) as caught:
        export_project(small(tiling=4), registry, folder, "Other")
    assert caught.value.diagnostics[0].code == ("edited-files" if case == "edited" else "file-in-the-way")
    assert tree(folder) == before


def test_edits_of_the_user_survive_a_change_of_the_network(registry, project):
    mine = (project / "data.py").read_text("utf-8") + "# mine\n"
    (project / "data.py").write_text(mine, "utf-8")
    assert outdated_files(small(), registry, project) == ()
    wider = {"down": replace(small()["down"], params=small()["down"].params | {"features": "16"})}
    deeper = Graph([wider.get(layer.name, layer) for layer in small()], name="small")
    assert outdated_files(deeper, registry, project) == ("model.py",)
    export_project(deeper, registry, project, "Small")  # data.py is generated as before, so the edit is kept
    assert (project / "data.py").read_text("utf-8") == mine
    assert outdated_files(deeper, registry, project) == ()

    model = (project / "model.py").read_text("utf-8")
    (project / "model.py").write_text(model.replace("import torch", "import torch  # mine", 1), "utf-8")
    before = tree(project)
    with pytest.raises(EditedFilesError) as caught:
        export_project(small(), registry, project, "Small")
    assert list(caught.value.diffs) == ["model.py"]
    diff = caught.value.diffs["model.py"]
    assert "-import torch  # mine" in diff
    assert "+        self.down = nn.Conv2d(3, 8," in diff
    assert tree(project) == before
    export_project(small(), registry, project, "Small", edited="keep")
    assert "# mine" in (project / "model.py").read_text("utf-8")
    (project / "model.py").write_text("# mine again", "utf-8")
    export_project(deeper, registry, project, "Small", edited="replace")
    assert (project / "model.py").read_text("utf-8") == model
    assert (project / "data.py").read_text("utf-8") == mine


def test_the_recipe_is_in_config_and_wrong_ones_are_refused(registry, tmp_path):
    recipe = {"noise": "0-55", "steps": "1500", "lr": "0.002", "amp": "true"}
    export_project(small(), registry, tmp_path / "p", "Small", Training("denoising", recipe))
    text = (tmp_path / "p" / "config.py").read_text("utf-8")
    assert all(line in text for line in ("steps: int = setting(1500,", "lr: float = setting(0.002,", "(True,"))
    assert '"0-55",' in text
    assert lint(tmp_path / "p") == ""
    for wrong, code in (
        ({"nois": "5"}, "unknown-setting"),
        ({"steps": "many"}, "bad-setting"),
        ({"noise": '"'}, "bad-setting"),
    ):
        with pytest.raises(DiagnosticError) as caught:
            export_project(small(), registry, tmp_path / "p", "Small", Training("denoising", wrong))
        assert caught.value.diagnostics[0].code == code
    with pytest.raises(DiagnosticError, match="is not a task"):
        export_project(small(), registry, tmp_path / "p", "Small", Training("cooking"))


def test_a_failing_disk_leaves_everything_as_it_was(registry, project, monkeypatch):
    before = tree(project)
    real = os.rename
    calls = []

    def full(source, target):
        calls.append(target)
        if len(calls) == 5:
            raise OSError(28, "No space left on device")
        return real(source, target)

    monkeypatch.setattr("os.rename", full)
    with pytest.raises(DiagnosticError) as caught:
        export_project(small(tiling=4), registry, project, "Else")
    assert caught.value.diagnostics[0].code == "cannot-export"
    assert "No space left" in caught.value.diagnostics[0].message
    assert tree(project) == before


def test_a_full_disk_makes_no_folder(registry, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(DiagnosticError):
        export_project(small(), registry, tmp_path / "project", "Small")
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written(registry, tmp_path):
    (tmp_path / "file").write_text("x", "utf-8")
    with pytest.raises(DiagnosticError) as caught:
        export_project(small(), registry, tmp_path / "file", "Small")
    assert caught.value.diagnostics[0].code == "not-a-folder"
    with pytest.raises(DiagnosticError) as caught:
        export_project(small(), registry, tmp_path / "file" / "below", "Small")
    assert caught.value.diagnostics[0].code == "cannot-export"
    with pytest.raises(DiagnosticError) as caught:
        export_project(small(), registry, tmp_path / "project", "  ")
    assert caught.value.diagnostics[0].code == "bad-name"
    if os.geteuid() != 0:  # the administrator may write everywhere
        (tmp_path / "locked").mkdir(mode=0o500)
        with pytest.raises(DiagnosticError) as caught:
            export_project(small(), registry, tmp_path / "locked" / "project", "Small")
        assert caught.value.diagnostics[0].code == "cannot-export"


def test_an_invalid_network_writes_nothing(registry, tmp_path):
    with pytest.raises(DiagnosticError):
        export_project(Graph([node("image", "input")]), registry, tmp_path / "project", "Small")
    assert not (tmp_path / "project").exists()


def test_size_to_pad_to_is_found_where_the_author_gave_none(registry, tmp_path):
    export_project(small(tiling=0), registry, tmp_path / "project", "Small")
    info = json.loads((tmp_path / "project" / "project.json").read_text("utf-8"))
    assert info["inputs"][0]["multiple"] == 2
    assert info["weights"]["down.weight"] == "down_kernel"


def test_size_to_pad_to_fits_every_stride(registry, tmp_path):
    conv = {"features": 3, "kernel": "3x3"}
    graph = Graph(
        [
            node("picture", "input", dims="24x24x3"),
            node("half", "convolution", "picture", **conv, stride="2x2"),
            node("third", "convolution", "picture", **conv, stride="3x3"),
            node("half_again", "upsample", "half", factor="2x2"),
            node("third_again", "upsample", "third", factor="3x3"),
            node("sum", "element_wise", "half_again", "third_again", operation="add"),
            node("result", "output", "sum"),
        ],
        name="Families",
    )
    export_project(graph, registry, tmp_path / "project", "Families")
    info = json.loads((tmp_path / "project" / "project.json").read_text("utf-8"))
    assert info["inputs"][0]["multiple"] == 6


def test_training_pictures_are_turned_upright(registry, project, tmp_path):
    """Cameras store a portrait as a landscape and say in EXIF how to turn it."""
    upright = np.zeros((6, 4, 3), np.uint8)
    upright[0, 0] = 255
    stored = Image.fromarray(np.rot90(upright, 1).copy())
    exif = stored.getexif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise
    stored.save(tmp_path / "portrait.png", exif=exif)
    code = "import pathlib, sys, images; print(images.load_image(pathlib.Path(sys.argv[1]), 3).tolist())"
    done = run_python(project, "-c", code, str(tmp_path / "portrait.png"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == upright.tolist()


# --- the scripts --------------------------------------------------------------------------------------------------


INFER = """
import pathlib, sys, torch, images, infer, plots
source, target = sys.argv[1:]
network = infer.load_network(pathlib.Path("weights.pt"), torch.device("cpu"))
picture = images.to_tensor(images.load_image(pathlib.Path(source), 3))[None]
torch.save(infer.run(network, [picture]), target + ".pt")
assert plots.main(["--picture", source, "--output", target + "_plot.png"]) == 0
sys.exit(infer.main([source, "--noise", "25", "--output", target + ".png"]))
"""


def test_train_reload_run(registry, project, photographs, tmp_path):
    done = run(project, *TRAIN, "--data", str(photographs), "--steps", "4", "--noise", "0-55")
    assert done.returncode == 0, done.stdout + done.stderr
    reported = [events.parse_line(line) for line in done.stdout.splitlines()]
    assert all(reported)
    assert isinstance(reported[0], events.Started)
    assert isinstance(reported[-1], events.Done)
    assert reported[0].images == 2
    assert reported[0].synthetic == 2
    assert reported[-1].step == reported[-1].steps == 4
    checked = [event for event in reported if isinstance(event, events.Validated)]
    assert checked[-1].on_training
    for picture in ("curves.png", "before_after.png"):
        with Image.open(project / picture) as opened:
            assert opened.width > 500

    # The designer reads the weights, and gives what infer.py gives, at a size that has to be padded.
    graph = small()
    weights = load_weights(project / "weights", required_weights(Inference(graph, registry)))
    assert weights.complete
    assert not weights.note
    state = load_weights(project / "weights.pt", required_weights(Inference(graph, registry)))
    assert state.complete
    assert all(np.array_equal(state.tensors[key], array) for key, array in weights.tensors.items())
    noisy = np.random.default_rng(0).integers(0, 256, (13, 21, 3), np.uint8)
    Image.fromarray(noisy).save(tmp_path / "noisy.png")
    done = run_python(project, "-c", INFER, str(tmp_path / "noisy.png"), str(tmp_path / "out"), plots=True)
    assert done.returncode == 0, done.stderr
    assert "dB after" in done.stdout
    with Image.open(tmp_path / "out.png") as opened:
        assert opened.size == (21, 13)
    theirs = torch.load(tmp_path / "out.pt", weights_only=True)["result"].numpy()
    session = Session(graph, registry, weights, RunOptions(threads=1))
    session.set_input("image", noisy.transpose(2, 0, 1)[None].astype(np.float32) / 255, is_image=True)
    ours = session.run().outputs["result"]
    assert theirs.shape == ours.shape == (1, 3, 13, 21)
    np.testing.assert_allclose(theirs, ours, atol=1e-5)


def test_resume_goes_on_exactly(registry, tmp_path, photographs):
    graph = Graph([*(layer for layer in small() if layer.name != "result"),
                   node("drop", "dropout", "sum", probability="0.5"), node("result", "output", "drop")])  # fmt: skip
    options = ["--data", str(photographs), "--steps", "30", "--validate-every", "5", "--lr", "0.01", "--seed", "7"]
    for name in ("straight", "broken"):
        export_project(graph, registry, tmp_path / name, "Net")
    assert run_python(tmp_path / "straight", *TRAIN[1:], *options).returncode == 0
    with subprocess.Popen([*TRAIN, *options], cwd=tmp_path / "broken", stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if isinstance(events.parse_line(line), events.Saved):
                process.send_signal(signal.SIGKILL)  # the hardest way to be stopped
                break
        process.stdout.read()
    run_folder = tmp_path / "broken" / "runs" / "001"
    saved = torch.load(run_folder / "checkpoints" / "last.pt", weights_only=True)["step"]
    assert 0 < saved < 30
    done = run_python(tmp_path / "broken", "train.py", "--resume", "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert "weights are in" in done.stdout + done.stderr  # the bar, for people
    for file in sorted((tmp_path / "straight" / "weights").iterdir()):
        assert file.read_bytes() == (tmp_path / "broken" / "weights" / file.name).read_bytes()
    assert curve(run_folder) == curve(tmp_path / "straight" / "runs" / "001")
    assert len(curve(run_folder)) == 30


def test_a_polite_stop_saves(registry, project):
    command_line = [*TRAIN, "--steps", "9000", "--output", "another folder"]
    with subprocess.Popen(command_line, cwd=project, stdout=subprocess.PIPE, text=True) as process:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if isinstance(events.parse_line(line), events.Stepped):
                process.send_signal(signal.SIGTERM)
                break
        lines += process.stdout.read().splitlines()
    assert process.returncode == 130
    stopped = events.parse_line(lines[-1])
    folder = project / "another folder"
    assert stopped.message.endswith(f'python train.py --resume --run "{folder}"')
    assert torch.load(folder / "checkpoints" / "last.pt", weights_only=True)["step"] == stopped.step
    assert (folder / "curves.png").is_file()
    assert json.loads((folder / "status.json").read_text("utf-8"))["state"] == "stopped"
    assert len(metrics(folder)[1]) == stopped.step


WRONG = {
    "is not a folder": ["--data", "nowhere"],
    "none of the 1 images can be read": ["--data", "bad"],
    "multiple of 2": ["--patch", "15"],
    "there is no checkpoint": ["--resume"],
    "is not a device": ["--device", "toaster"],
    "is not a noise level": ["--noise", "300"],
    "is not a learning rate": ["--lr", "nan"],
    "is not an integer": ["--batch", "0"],
}
# All in one process, because starting torch takes longer than the rest.
DRIVER = """
import json, sys, train
for case in json.loads(sys.argv[1]):
    try:
        status = train.main([*case, "--steps", "2", "--synthetic", "0" if "bad" in case else "1", "--threads", "1"])
    except SystemExit as left:
        status = left.code
    print("status", status, file=sys.stderr)
"""


def test_wrong_arguments_end_in_a_sentence(project):
    (project / "bad").mkdir()
    (project / "bad" / "no.png").write_text("this is text", "utf-8")
    done = run_python(project, "-c", DRIVER, json.dumps(list(WRONG.values())))
    assert done.returncode == 0, done.stderr
    *said, rest = re.split(r"status [12]\n", done.stderr)
    assert rest == ""
    for words, text in zip(WRONG, said, strict=True):
        assert words in text
        assert "Traceback" not in text


def test_several_inputs_say_what_to_change(registry, tmp_path):
    graph = Graph(
        [
            node("albedo", "input", dims="16x16x3"),
            node("noisy", "input", dims="16x16x3"),
            node("both", "concatenation", "noisy", "albedo"),
            node("conv", "convolution", "both", features=3),
            node("out", "output", "conv"),
        ]
    )
    export_project(graph, registry, tmp_path / "project", "Two")
    done = run_python(tmp_path / "project", *TRAIN[1:], "--steps", "1")
    assert done.returncode == 1
    assert "2 inputs (albedo, noisy)" in done.stderr
    data = tmp_path / "project" / "data.py"
    text = data.read_text("utf-8")
    data.write_text(text.replace("return (clean + noise,), clean", "return (clean, clean + noise), clean"), "utf-8")
    done = run_python(tmp_path / "project", *TRAIN[1:], "--steps", "1", "--amp")
    assert done.returncode == 0, done.stderr


def test_a_target_of_another_size_says_so(registry, tmp_path):
    graph = Graph(
        [
            node("image", "input", dims="16x16x3"),
            node("conv", "convolution", "image", features=3, stride="2x2"),
            node("out", "output", "conv"),
        ]
    )
    export_project(graph, registry, tmp_path / "project", "Half")
    done = run_python(tmp_path / "project", *TRAIN[1:], "--steps", "1")
    assert done.returncode == 1
    assert "output is N x 3 x 8 x 8, but the target of the task 'denoising' is N x 3 x 16 x 16" in done.stderr


def test_infer_without_weights_says_what_to_do(project):
    done = run_python(project, "infer.py", "picture.png", "--weights", "none.pt")
    assert done.returncode == 1
    assert done.stderr.startswith("error: there are no weights at none.pt; run train.py first")
