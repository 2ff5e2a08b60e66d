"""Runs of the exported project: every task, several processes, other weights, and what goes wrong in between."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from loss_networks import restorer, segmenter
from PIL import Image
from pytorch_networks import RELU, node, small
from warm_python import run_python

from designer.graph.freezing import freeze
from designer.graph.graph import Graph
from exporters.pytorch import Training, export_project

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "error", "OMP_NUM_THREADS": "1"}
SHORT = ("--batch", "2", "--threads", "1", "--workers", "0", "--no-tensorboard")


def run_module(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def entries(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf-8").splitlines()[1:]]


def losses(folder: Path) -> list[float]:
    return [entry["loss"] for entry in entries(folder)]


def pictures(folder: Path, count: int, classes: int = 0, size: tuple[int, int] = (24, 20)) -> Path:
    """Random images; with `classes` masks."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(count)
    for number in range(count):
        shape = size if classes else (*size, 3)
        Image.fromarray(rng.integers(0, classes or 256, shape, np.uint8)).save(folder / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def denoiser(registry, tmp_path_factory) -> Path:
    """An exported project; tests put their runs into folders of their own."""
    folder = tmp_path_factory.mktemp("denoiser") / "project"
    export_project(small(), registry, folder, "Small")
    return folder


@pytest.fixture
def photos(tmp_path) -> Path:
    return pictures(tmp_path / "photos", 3)


def options(photos: Path, tmp_path: Path, *more: str) -> list[str]:
    return [
        "train.py",
        "--data",
        str(photos),
        "--synthetic",
        "0",
        "--patch",
        "16",
        *SHORT,
        "--run",
        str(tmp_path / "run"),
        *more,
    ]


# --- tasks --------------------------------------------------------------------------------------------------------


def classifier() -> Graph:
    return Graph(
        [
            node("image", "input", dims="8x8x3"),
            node("conv", "convolution", "image", activation=RELU, features=4, kernel="3x3"),
            node("classes", "fully_connected", "conv", features=3, flatten="true"),
            node("scores", "output", "classes"),
        ],
        name="classifier",
    )


def upscaler() -> Graph:
    return Graph(
        [
            node("image", "input", dims="8x8x3"),
            node("conv", "convolution", "image", features=12, kernel="3x3"),
            node("shuffle", "depth_to_space", "conv", block_size=2),
            node("large", "output", "shuffle"),
        ],
        name="upscaler",
    )


@pytest.mark.parametrize(
    ("task", "graph", "metric"),
    [
        ("restoration", small(), "psnr"),
        ("segmentation", segmenter(), "iou"),
        ("classification", classifier(), "accuracy"),
        ("super-resolution", upscaler(), "psnr_y"),
        ("denoising", small(), "ssim"),
    ],
)
def test_every_task_trains_from_plain_folders(registry, tmp_path, task, graph, metric):
    chosen = Training(task) if task == "restoration" else Training()  # the others are suggested
    export_project(graph, registry, tmp_path / "project", "Net", chosen)
    info = json.loads((tmp_path / "project" / "project.json").read_text("utf-8"))
    assert info["task"] == task
    assert len((tmp_path / "project" / "train.py").read_text("utf-8").splitlines()) < 250
    data = ["--data", str(tmp_path / "data")]
    if task == "classification":
        for name in "abc":
            pictures(tmp_path / "data" / name, 4)
    elif task in ("restoration", "segmentation"):
        inputs = pictures(tmp_path / "inputs", 11)
        targets = pictures(tmp_path / "targets", 11, classes=4 if task == "segmentation" else 0)
        data = ["--inputs", str(inputs), "--targets", str(targets)]
    else:
        pictures(tmp_path / "data", 2)
        data += ["--synthetic", "0"]
    sized = [] if task == "classification" else ["--patch", "16"]
    done = run_python(tmp_path / "project", "train.py", *data, *sized, *SHORT, "--steps", "3", "--run", "r")
    assert done.returncode == 0, done.stderr
    found = entries(tmp_path / "project" / "r")
    assert [entry["step"] for entry in found] == [1, 2, 3]
    assert metric in found[-1]["validation"]
    state = json.loads((tmp_path / "project" / "r" / "status.json").read_text("utf-8"))
    assert (state["state"], state["step"], state["total_steps"]) == ("finished", 3, 3)


def test_the_project_has_a_test_of_its_own(registry, tmp_path):
    export_project(segmenter(), registry, tmp_path / "project", "Segmenter")
    # A folder of its own: at its end pytest removes those of earlier sessions, which can take minutes.
    own = ("--basetemp", str(tmp_path / "temporary"))
    done = run_module(tmp_path / "project", "pytest", "-q", "-p", "no:cacheprovider", *own)
    assert done.returncode == 0, done.stdout


def test_downscaling_is_that_of_matlab(registry, tmp_path):
    """The values of imresize([0 .. 7], 1/2) and of an edge, computed with its published kernel by hand."""
    export_project(upscaler(), registry, tmp_path / "project", "Up")
    code = (
        "import torch; from resizing import resize_bicubic as r;"
        "ramp = torch.arange(8.0).reshape(1, 1, 1, 8).expand(1, 1, 8, 8);"
        "print(r(ramp, 4, 4)[0, 0, 0].tolist())"
    )
    done = run_python(tmp_path / "project", "-c", code)
    wanted = [sum(w * v for w, v in zip(*row, strict=True)) for row in by_hand()]
    assert json.loads(done.stdout) == pytest.approx(wanted, abs=1e-5)


def by_hand():
    """Weights and values of the four pixels of a ramp of eight: kernel of Keys, twice as wide, mirrored at the borders."""

    def keys(x):
        x = abs(x)
        return 1.5 * x**3 - 2.5 * x**2 + 1 if x <= 1 else -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0

    for pixel in range(4):
        center = 2 * pixel + 0.5
        places = range(2 * pixel - 4, 2 * pixel + 6)
        weights = [keys((place - center) / 2) / 2 for place in places]
        total = sum(weights)
        mirrored = [-place - 1 if place < 0 else 15 - place if place > 7 else place for place in places]
        yield [weight / total for weight in weights], mirrored


NOISE = """
import json, numpy, torch
from config import parse
from data import noise_like
clean = torch.tensor([0.1, 0.9])[:, None, None].expand(2, 200, 200)
for words in ("--noise-model poisson-gaussian --noise 10 --shot 0.04", "--noise 10"):
    config = parse(words.split(), "").config()
    print(json.dumps(noise_like(clean, numpy.random.default_rng(0), config).var((1, 2)).tolist()))
"""


def test_shot_noise_grows_with_the_brightness(denoiser):
    done = run_python(denoiser, "-c", NOISE)
    assert done.returncode == 0, done.stderr
    shot, gaussian = map(json.loads, done.stdout.splitlines())
    assert shot == pytest.approx([(10 / 255) ** 2 + 0.04 * 0.1, (10 / 255) ** 2 + 0.04 * 0.9], rel=0.03)
    assert gaussian == pytest.approx([(10 / 255) ** 2] * 2, rel=0.03)


REFRESH = """
import json, sys, pathlib, synthetic
synthetic.SIDE = 32
images = synthetic.SyntheticImages(2, 3, 16, 7, 3, pathlib.Path(sys.argv[1]), [])
print(json.dumps([[hash(images.load(slot, sample).tobytes()) for sample in range(10)] for slot in range(2)]))
"""


def test_synthetic_images_are_replaced_one_after_the_other(denoiser, tmp_path):
    done = run_python(denoiser, "-c", REFRESH, str(tmp_path))
    first, second = json.loads(done.stdout)
    changes = [[k for k in range(1, 10) if images[k] != images[k - 1]] for images in (first, second)]
    assert changes == [[3, 9], [6]]  # every three samples, the older one
    assert len({*first, *second}) == 5


AHEAD = """
import pathlib, sys, synthetic
synthetic.SIDE = 32
images = synthetic.SyntheticImages(2, 3, 16, 7, 1, pathlib.Path(sys.argv[1]), [], 6)
images.prepare(0)
images.load(1, 6)  # read by a process long before it is used
print((images.folder / "7.png").exists())
images.prepare(4)
print([number for number in range(6) if (images.folder / f"{number}.png").exists()])
images.close()
"""


def test_synthetic_images_are_made_before_they_are_read_ahead(denoiser, tmp_path):
    done = run_python(denoiser, "-c", AHEAD, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True", "[2, 3, 4, 5]"]


def test_a_project_with_fresh_synthetic_images_repeats_and_writes_tensorboard_events(denoiser, photos, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    shutil.copytree(denoiser, tmp_path / "project")
    given = options(photos, tmp_path, "--steps", "4", "--validate-every", "2", "--tensorboard", "--refresh", "2")
    given[given.index("--synthetic") + 1] = "2"
    done = run_python(tmp_path / "project", *given, on_warning="ignore")
    assert done.returncode == 0, done.stderr
    events = EventAccumulator(str(tmp_path / "run")).Reload()
    found = entries(tmp_path / "run")
    for tag, wanted in (
        ("loss", {entry["step"]: entry["loss"] for entry in found}),
        ("validation/psnr", {entry["step"]: entry["validation"]["psnr"] for entry in found if "validation" in entry}),
    ):
        assert {event.step: event.value for event in events.Scalars(tag)} == pytest.approx(wanted)
    assert len(list((tmp_path / "project" / "cache").rglob("*.png"))) > 2


INFER = """
import json, sys, torch, infer, model
torch.manual_seed(0)
network = model.Net().eval()
torch.save(network.state_dict(), "weights.pt")
status = infer.main([*sys.argv[1:], "--output", "result.png"])
image = infer.load_inputs([infer.Path(sys.argv[1])])[0]
with torch.inference_mode():
    print(json.dumps(network(infer.prepare(image, infer.PROJECT["inputs"][0]))[0].tolist()))
sys.exit(status)
"""


@pytest.mark.parametrize("graph", [classifier(), segmenter()], ids=["classes", "masks"])
def test_infer_prints_classes_and_writes_masks(registry, tmp_path, graph):
    export_project(graph, registry, tmp_path / "project", "Net")
    image = pictures(tmp_path / "images", 1, size=(16, 16)) / "0.png"
    done = run_python(tmp_path / "project", "-c", INFER, str(image))
    assert done.returncode == 0, done.stderr
    printed, scores = done.stdout.splitlines()
    scores = np.array(json.loads(scores))
    if graph.name == "classifier":
        best = np.argsort(-scores)
        assert printed == "scores: " + ", ".join(f"class {number} ({scores[number]:.3f})" for number in best)
        assert not (tmp_path / "project" / "result.png").exists()
    else:
        assert printed.endswith("result.png")
        np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "project" / "result.png")), scores.argmax(0))


IOU = """
import json, torch
from metrics import Ratio, iou
from validation import mean
masks = torch.tensor([[[0, 0, 1, 1]], [[0, 0, 0, 255]]])
guess = torch.tensor([[[0, 0, 1, 0]], [[0, 0, 1, 2]]])
scores = torch.nn.functional.one_hot(guess, 4).movedim(-1, 1).float()
rows = [(1, {"iou": iou(scores[k : k + 1], masks[k : k + 1]), "other": float(k)}) for k in range(2)]
print(json.dumps(mean(rows)))
"""


def test_mean_iou_counts_all_validation_images_together(registry, tmp_path):
    """Class 0: 4 pixels of both, 6 of either; class 1: 1 of 3. Classes that occur nowhere and ignored pixels do not count."""
    export_project(segmenter(), registry, tmp_path / "project", "Net")
    done = run_python(tmp_path / "project", "-c", IOU)
    assert json.loads(done.stdout) == pytest.approx({"iou": (4 / 6 + 1 / 3) / 2, "other": 0.5}), done.stderr


# --- several processes, other weights -------------------------------------------------------------------------------


def test_two_processes_give_the_curve_of_one(denoiser, photos, tmp_path):
    given = options(photos, tmp_path, "--steps", "12", "--batch", "4", "--noise", "0-55")
    given[given.index("--run")] = "--output"  # torchrun takes --run for its own
    assert run_python(denoiser, *given).returncode == 0
    alone = losses(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    torchrun = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = run_module(denoiser, *torchrun, *given, PYTHONWARNINGS="ignore")
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(losses(tmp_path / "run"), alone, atol=1e-4)
    assert len(alone) == 12


def test_workers_and_repetition_do_not_change_the_curve(denoiser, photos, tmp_path):
    curves = []
    for workers in ("0", "2", "0"):
        given = options(photos, tmp_path, "--steps", "6", "--workers", workers)
        assert run_python(denoiser, *given).returncode == 0
        curves.append(losses(tmp_path / "run"))
        shutil.rmtree(tmp_path / "run")
    assert curves[0] == curves[1] == curves[2]


@pytest.mark.parametrize(
    ("given", "warmup"), [(("--warmup", "5"), 5), ((), 2), (("--warmup", "0"), 0)], ids=["given", "default", "none"]
)
def test_the_learning_rate_warms_up_and_decays_as_a_cosine(denoiser, photos, tmp_path, given, warmup):
    done = run_python(denoiser, *options(photos, tmp_path, "--steps", "20", "--lr", "0.01", *given))
    assert done.returncode == 0, done.stderr
    found = [entry["learning_rate"] for entry in entries(tmp_path / "run")]
    rising = [0.01 * step / warmup for step in range(1, warmup + 1)]
    falling = [0.005 * (1 + np.cos(np.pi * step / (20 - warmup))) for step in range(20 - warmup)]
    np.testing.assert_allclose(found, rising + falling, rtol=1e-6)


# The backend is that of a user, and runs the traced graphs as they are: a C++ compiler is not needed.
COMPILED = """
import sys, torch
from functools import partial

graphs = []

def backend(module, inputs):
    graphs.append(len(inputs))
    return module.forward

torch.compile = partial(torch.compile, backend=backend)
import train
status = train.main(sys.argv[1:])
print("graphs", len(graphs))
sys.exit(status)
"""


def test_a_compiled_network_has_the_same_curve(denoiser, photos, tmp_path):
    given = options(photos, tmp_path, "--steps", "4")
    assert run_python(denoiser, *given).returncode == 0
    plain = losses(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    done = run_python(denoiser, "-c", COMPILED, *given[1:], "--compile", on_warning="ignore")  # torch's own are many
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "graphs 1"
    np.testing.assert_allclose(losses(tmp_path / "run"), plain, rtol=1e-5)
    health = [json.loads(line) for line in (tmp_path / "run" / "health.jsonl").read_text("utf-8").splitlines()]
    assert all(
        "gradient" in layer and "activation" not in layer for line in health for layer in line["layers"].values()
    )


MEMORY = """
import json, sys, torch, train
from config import parse
from processes import Processes

class Records:
    quiet = False

seen = {}
real = train.loader

def loader(samples, steps, workers, pinned):
    seen.setdefault("workers", []).append(workers)
    seen.setdefault("pinned", []).append(real(samples, steps, 0, pinned).pin_memory)
    return real(samples, steps, 0, False)

train.loader = loader
config = parse(sys.argv[1:], "").config()
run = train.Run(config, Records(), Processes(torch.device("cpu")))
layout = torch.channels_last
seen["weights"] = all(p.is_contiguous(memory_format=layout) for p in run.parameters if p.dim() == 4)
network = run.network
network.register_forward_pre_hook(lambda module, read: seen.update(input=read[0].is_contiguous(memory_format=layout)))
run.train_step()
torch.nn.Module.to = lambda module, *given, **named: module  # as if there were a GPU
train.Run(config, Records(), Processes(torch.device("cuda")))
print(json.dumps(seen))
"""


def test_memory_is_channels_last_and_pinned_for_a_gpu(denoiser, photos):
    given = ("--data", str(photos), "--synthetic", "0", "--patch", "16", "--batch", "2", "--threads", "1")
    done = run_python(denoiser, "-c", MEMORY, *given)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == {"workers": [1, 4], "pinned": [False, True], "weights": True, "input": True}


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is the C library of Linux")
def test_freed_memory_is_kept_for_the_next_step(denoiser):
    code = """
import resource, torch
from pathlib import Path
from processes import keep_freed_memory

def kept():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20
    before = resident()
    torch.ones(1 << 24)  # 64 MiB
    return resident() - before

by_default = kept()
keep_freed_memory()
print(by_default, kept())
"""
    done = run_python(denoiser, "-c", code)
    by_default, kept = map(int, done.stdout.split())
    assert by_default < 32 < kept, done.stderr


def test_a_finished_run_is_extended(denoiser, photos, tmp_path):
    assert (
        run_python(
            denoiser, *options(photos, tmp_path, "--steps", "3", "--ema", "0.9", "--optimizer", "sgd")
        ).returncode
        == 0
    )
    done = run_python(denoiser, "train.py", "--resume", "--run", str(tmp_path / "run"), "--epochs", "2")
    assert done.returncode == 0, done.stderr
    found = entries(tmp_path / "run")
    assert found[-1]["step"] == len(found) > 3
    assert found[-1]["epoch"] == 2
    kept = {path: path.read_bytes() for path in (tmp_path / "run").glob("*.json*")}
    done = run_python(denoiser, "train.py", "--resume", "--run", str(tmp_path / "run"), "--steps", "3")
    assert done.returncode == 1
    steps = found[-1]["step"]
    assert f"error: the run has trained {steps} steps already; give more than 3 --steps" in done.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "run").glob("*.json*")} == kept, "it is still finished"


def test_weights_of_another_network_are_adopted_by_name_and_shape(denoiser, photos, tmp_path, registry):
    assert run_python(denoiser, *options(photos, tmp_path, "--steps", "2")).returncode == 0
    wider = replace(small()["up"], params={"features": "3", "kernel": "2x2", "stride": "2x2"})
    other = Graph([wider if layer.name == "up" else layer for layer in small()], name="small")
    other.apply(freeze(other, ["down"]))
    export_project(other, registry, tmp_path / "other", "Small")
    given = options(photos, tmp_path / "b", "--steps", "3", "--from-weights", str(tmp_path / "run"))
    done = run_python(tmp_path / "other", *given, "--json-progress")
    assert done.returncode == 0, done.stderr
    adopted = json.loads((tmp_path / "b" / "run" / "config.json").read_text("utf-8"))["adopted"]
    assert adopted.startswith("3 of 4 tensors of ")
    assert "of another shape: up.weight (8, 3, 4, 4), not (8, 3, 2, 2)" in adopted
    before, after = (torch.load(tmp_path / part / "weights.pt", weights_only=True) for part in ("run", "b/run"))
    assert torch.equal(before["down.weight"], after["down.weight"])  # frozen on the canvas
    assert not torch.equal(before["up.bias"], after["up.bias"])
    nothing = run_python(tmp_path / "other", *options(photos, tmp_path / "c", "--from-weights", str(photos)))
    assert "contains neither a run nor .npy files" in nothing.stderr


def test_the_zeros_of_pruned_weights_are_kept(denoiser, photos, tmp_path, registry):
    deep = Graph(
        [
            node("image", "input", dims="16x16x3"),
            node("head", "convolution", "image", features=8, kernel="3x3"),
            node("body", "convolution", "head", features=8, kernel="3x3"),
            node("tail", "convolution", "body", features=3, kernel="3x3"),
            node("result", "output", "tail"),
        ]
    )
    export_project(deep, registry, tmp_path / "deep", "Deep")
    assert run_python(tmp_path / "deep", *options(photos, tmp_path, "--steps", "1")).returncode == 0
    state = torch.load(tmp_path / "run" / "weights.pt", weights_only=True)
    kept = torch.tensor([1.0, 0.0, 0.0, 1.0]).repeat(2)[None, :, None, None]
    state["body.weight"] = state["body.weight"] * kept
    torch.save(state, tmp_path / "pruned.pt")
    sparse = options(
        photos, tmp_path / "s", "--steps", "4", "--from-weights", str(tmp_path / "pruned.pt"), "--sparse-2-4"
    )
    done = run_python(tmp_path / "deep", *sparse)
    assert done.returncode == 0, done.stderr
    trained = torch.load(tmp_path / "s" / "run" / "weights.pt", weights_only=True)
    assert torch.equal(trained["body.weight"] != 0, (state["body.weight"] != 0))
    assert not torch.equal(trained["body.weight"], state["body.weight"])
    assert int((trained["tail.weight"] == 0).sum()) == 0
    dense = run_python(
        tmp_path / "deep", *options(photos, tmp_path / "d", "--from-weights", str(tmp_path / "run"), "--sparse-2-4")
    )
    assert dense.returncode == 1
    assert "no weight is 2:4 sparse" in dense.stderr


# --- control and faults ---------------------------------------------------------------------------------------------


def test_a_run_pauses_goes_on_and_stops(denoiser, photos, tmp_path):
    command = [sys.executable, *options(photos, tmp_path, "--steps", "9000", "--validate-every", "9000")]
    folder = tmp_path / "run"

    def wait_for(state: str) -> dict:
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            if (folder / "status.json").exists():
                found = json.loads((folder / "status.json").read_text("utf-8"))
                if found["state"] == state:
                    return found
            time.sleep(0.02)
        raise AssertionError(f"the run never was {state}")

    with subprocess.Popen(command, cwd=denoiser, env=ENVIRONMENT, stderr=subprocess.DEVNULL) as process:
        wait_for("running")
        (folder / "control").write_text("pause")
        paused = wait_for("paused")
        assert paused["pid"] == process.pid
        (folder / "control").write_text("resume")
        wait_for("running")
        (folder / "control").write_text("stop")
        assert process.wait(60) == 130
    stopped = wait_for("stopped")
    assert torch.load(folder / "checkpoints" / "last.pt", weights_only=True)["step"] == stopped["step"]
    assert (folder / "curves.png").is_file()


def test_a_broken_image_is_skipped_and_named(denoiser, photos, tmp_path):
    whole = (photos / "0.png").read_bytes()
    (photos / "cut.png").write_bytes(whole[: len(whole) // 2])  # the header is fine
    (photos / "text.png").write_text("this is text")
    done = run_python(denoiser, *options(photos, tmp_path, "--steps", "20", "--json-progress"))
    assert done.returncode == 0, done.stderr
    notes = [json.loads(line) for line in done.stdout.splitlines() if '"note"' in line]
    assert notes[-1]["skipped"] == 2
    assert "cut.png" in notes[-1]["message"]
    assert "text.png" in notes[-1]["message"]


def test_a_broken_pair_is_skipped_and_named(registry, tmp_path):
    export_project(segmenter(), registry, tmp_path / "project", "Segmenter")
    inputs, masks = pictures(tmp_path / "inputs", 4), pictures(tmp_path / "masks", 4, classes=4)
    whole = (masks / "1.png").read_bytes()
    (masks / "1.png").write_bytes(whole[: len(whole) // 2])  # the header is fine
    (inputs / "2.png").write_text("this is text")
    given = ["train.py", "--inputs", str(inputs), "--targets", str(masks), "--patch", "16", *SHORT, "--steps", "12"]
    done = run_python(tmp_path / "project", *given, "--json-progress")
    assert done.returncode == 0, done.stderr
    notes = [json.loads(line) for line in done.stdout.splitlines() if '"note"' in line]
    assert notes[-1]["skipped"] == 2
    assert "1.png" in notes[-1]["message"]
    assert "2.png" in notes[-1]["message"]


def test_images_of_other_sizes_are_mirrored_or_named(denoiser, tmp_path):
    """Smaller than a patch is fine; smaller than the network can take is not."""
    photos = pictures(tmp_path / "photos", 2, size=(9, 30))
    assert run_python(denoiser, *options(photos, tmp_path, "--steps", "2")).returncode == 0
    Image.new("RGB", (20, 1)).save(photos / "flat.png")
    done = run_python(denoiser, *options(photos, tmp_path / "b", "--steps", "2"))
    assert done.returncode == 1
    assert "flat.png is smaller than 2 x 2 pixels; remove it" in done.stderr
    assert "Traceback" not in done.stderr


CLOCK = """
import itertools, sys, time, train
clock = itertools.cycle([2e9, 5.0, 1e9])  # set forward and back at every look
time.time = lambda: next(clock)
sys.exit(train.main(sys.argv[1:]))
"""


def test_a_clock_that_is_set_changes_nothing_but_the_times_of_day(denoiser, photos, tmp_path):
    given = ("--steps", "6", "--validate-every", "2")
    done = run_python(denoiser, "-c", CLOCK, *options(photos, tmp_path / "a", *given)[1:])
    assert done.returncode == 0, done.stderr
    assert run_python(denoiser, *options(photos, tmp_path / "b", *given)).returncode == 0
    assert losses(tmp_path / "a" / "run") == losses(tmp_path / "b" / "run")
    found = entries(tmp_path / "a" / "run")
    assert len({entry["time"] for entry in found}) > 1
    spent = [entry["elapsed"] for entry in found]
    assert spent == sorted(spent)
    assert all(entry["throughput"] > 0 for entry in found)


def test_masks_that_do_not_fit_are_named(registry, tmp_path):
    export_project(segmenter(), registry, tmp_path / "project", "Segmenter")
    inputs = pictures(tmp_path / "inputs", 2)
    given = ["train.py", "--inputs", str(inputs), "--patch", "16", *SHORT, "--steps", "2"]
    for name, masks, words in (
        ("small", pictures(tmp_path / "small", 2, 4, (10, 10)), "inputs and targets must have the same size"),
        ("many", pictures(tmp_path / "many", 2, 9), "but the network has the classes 0 to 3"),
        ("fewer", pictures(tmp_path / "fewer", 1, 4), "without a partner: 1"),
    ):
        done = run_python(tmp_path / "project", *given, "--targets", str(masks), "--run", name)
        assert done.returncode == 1
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_no_data_and_a_folder_with_a_run_are_refused(denoiser, photos, tmp_path):
    (tmp_path / "empty").mkdir()
    done = run_python(denoiser, *options(tmp_path / "empty", tmp_path))
    assert "there are no images in" in done.stderr
    assert "there are no training images" in run_python(denoiser, "train.py").stderr
    assert run_python(denoiser, *options(photos, tmp_path, "--steps", "1")).returncode == 0
    before = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    again = run_python(denoiser, *options(photos, tmp_path, "--steps", "1"))
    assert again.returncode == 1
    assert "contains a run; use --resume to continue it" in again.stderr
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == before


FULL = """
import os, sys, storage, train
real = os.fsync
def full(descriptor):
    if os.path.exists(sys.argv[-1] + "/checkpoints/last.pt") and "last.pt" in os.readlink(f"/proc/self/fd/{descriptor}"):
        raise OSError(28, "No space left on device")
    return real(descriptor)
os.fsync = full
sys.exit(train.main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="finds the file of a descriptor in /proc")
def test_a_full_disk_leaves_the_previous_checkpoint(denoiser, photos, tmp_path):
    given = options(photos, tmp_path, "--steps", "6", "--validate-every", "2")[1:]
    given = [*given[: given.index("--run")], *given[given.index("--run") + 2 :], "--run", str(tmp_path / "run")]
    done = run_python(denoiser, "-c", FULL, *given)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "the previous one is unchanged" in done.stderr
    assert torch.load(tmp_path / "run" / "checkpoints" / "last.pt", weights_only=True)["step"] == 2
    assert not list((tmp_path / "run" / "checkpoints").glob("*.part"))
    assert json.loads((tmp_path / "run" / "status.json").read_text("utf-8"))["state"] == "failed"


def test_a_loss_that_is_not_a_number_ends_the_run(registry, photos, tmp_path):
    graph = restorer(node("compared", "l1_loss", "result", "clean"), node("root", "unary", "compared", function="log"))
    export_project(graph, registry, tmp_path / "project", "Log")
    text = (tmp_path / "project" / "data.py").read_text("utf-8")
    bad = text.replace("return (clean + noise,), clean\n", 'return (clean + noise * float("nan"),), clean\n')
    (tmp_path / "project" / "data.py").write_text(bad, "utf-8")
    done = run_python(tmp_path / "project", *options(photos, tmp_path, "--steps", "3"))
    assert done.returncode == 1
    assert "is NaN or infinite at step 1; use a smaller --lr" in done.stderr
    assert json.loads((tmp_path / "run" / "status.json").read_text("utf-8"))["state"] == "failed"
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_training_stops_early_and_keeps_the_best(denoiser, photos, tmp_path):
    hopeless = options(
        photos,
        tmp_path,
        "--steps",
        "40",
        "--validate-every",
        "2",
        "--early-stopping",
        "3",
        "--lr",
        "0.9",
        "--clip",
        "0",
    )
    done = run_python(denoiser, *hopeless)
    assert done.returncode == 0, done.stderr
    checked = [entry["validation"]["psnr"] for entry in entries(tmp_path / "run") if "validation" in entry]
    assert len(checked) < 20
    assert max(checked) == checked[-4]
    assert (tmp_path / "run" / "checkpoints" / "best.pt").is_file()
