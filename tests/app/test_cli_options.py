"""Every option of the commands that compute or train reaches what it configures, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_kit import Run, layerwright
from onnx import helper
from reached import ReachedError, reach
from runtime_networks import chain

from app.cli import main
from app.cli.compare_request import CompareArguments
from app.cli.run_request import RunArguments
from app.engine.counted_run import count
from app.engine.sweep_process import Place
from app.engine.video_job import VideoJob
from app.import_process import ImportRequest, InputShape
from app.opened_network import load_weights_for, open_network
from designer.files.document import save_document
from designer.files.settings import Settings, save_settings, settings_path
from designer.files.variants import CalibrationRecipe, Variant
from designer.files.weights import Weights
from designer.graph.graph import Graph
from designer.graph.types import Size2D
from designer.passes.passes import PASSES
from designer.profiling.configurations import Grid
from designer.runtime.api import AUTO, RunOptions
from designer.training.sweep import Axis, trials
from exporters.pytorch import Training
from exporters.tensorrt import EngineOptions
from exporters.variants import variant_conversion

__all__ = ["layerwright"]
DIGEST = "a" * 64
ELSEWHERE = {  # what they do is tested where the command is
    "check": {"--layers", "--json"},
    "sizes": {"--fix", "--output", "--json"},
    "profile": {"--json", "--html", "--against", "--training"},
    "compare": {"--json"},
    "precision": {"--report"},
    "blame": {"--rows", "--json"},
    "train": {"--detach"},
    "passes": {"--json", "--output"},
    "tour": {"--steps"},
    "operators": {"--json"},
    "diff": {"--moves", "--json"},
    "desktop-entry": {"--install"},
    "prune": {"--weights", "--pattern", "--output", "--report", "--validate"},
    "engine-layers": {"--json"},
}


@dataclass(frozen=True)
class Case:
    """A command: its arguments, all of its options, what it calls then, and what that gets without and with the options."""

    words: tuple[object, ...]
    options: tuple[object, ...]
    target: str
    found: Callable[[Any], Any]
    usual: Any
    expected: Any


def tensors(weights: Weights) -> dict[str, object]:
    return {str(key): array.tolist() for key, array in weights.tensors.items()}


def stored(folder: Path) -> dict[str, object]:
    """The weights in `all`."""
    return tensors(load_weights_for(open_network(folder / "plain.xml"), folder / "all", None))


def drawn(folder: Path) -> dict[str, object]:
    """The weights in `w`, which lacks the bias, completed with those of a seed."""
    return tensors(load_weights_for(open_network(folder / "plain.xml"), folder / "w", 7))


def all_weights(folder: Path) -> tuple[object, ...]:
    return ("--weights", folder / "all")


PATHS = (
    "--data",
    "photos",
    "--validation",
    "more/held out",
    "--from-weights",
    "",
    "--optimizer",
    "data",
    "--no-compile",
)


def at(folder: Path) -> dict[str, str | bool]:
    """Options of train.py, with files and folders where the command was given: the trainer has another working folder."""
    data, validation = str(folder / "photos"), str(folder / "more" / "held out")
    return {"data": data, "validation": validation, "from_weights": "", "optimizer": "data", "compile": False}


SHARED = ("--threads", 3, "--trust-custom", DIGEST)
ENGINE = ("--engine", "torch", "--precision", "fp16", "--layout", "nhwc", "--device", "cuda")
IN_ENGINE = RunOptions("torch", "fp16", "nhwc", "cuda", 3)
AGREED = RunOptions(threads=3, agreed=(DIGEST,))


def weights_of(folder: Path) -> tuple[object, ...]:
    return ("--weights", folder / "w", "--random-weights", 7)


def run(folder: Path) -> Case:
    file, a, b = folder / "n.xml", Path("a.png"), Path("b.npy")
    options = (
        *weights_of(folder), "--input", "image=a.png", "--output", "result=b.npy", "--output", "result=a.png", "--capture",
        "conv:1=b.npy", *ENGINE, *SHARED, "--variant", "half", "--iterations", 4, "--tile", 64, "--throughput",
        "--against", "openvino", "--cluster", "here:1",
    )  # fmt: skip
    expected = RunArguments(
        file, folder / "w", 7, {"image": a}, [("result", b), ("result", a)], [("conv:1", b)], replace(IN_ENGINE, tile=64), 4,
        [DIGEST], throughput=True, against="openvino", cluster="here:1", variant="half",
    )  # fmt: skip
    usual = RunArguments(file, None, None, {}, [], [], RunOptions(tile=AUTO))
    return Case(("run", file), options, "app.cli.run_request.run_network", request_of, usual, expected)


def request_of(called: Any) -> Any:
    """The request of a run, without what shows its progress."""
    return replace(called.request, progress=None)


def video(folder: Path) -> Case:
    file, needed = folder / "n.xml", ("--input", "image=a.mp4", "--output", "result=b.mkv")
    options = (
        *weights_of(folder), "--from", 2, "--to", 9, "--fps", 12.5, "--codec", "mjpeg", "--quality", 80, "--npy",
        *ENGINE, *SHARED, "--variant", "half",
    )  # fmt: skip
    named = ({"image": Path("a.mp4")}, [("result", Path("b.mkv"))], ())
    job = VideoJob({}, {}, 2, 9, 12.5, "mjpeg", 80, ".npy")
    expected = RunArguments(file, folder / "w", 7, *named, IN_ENGINE, trust=[DIGEST], variant="half", video=job)
    usual = RunArguments(file, None, None, *named, RunOptions(), video=VideoJob({}, {}))
    return Case(("video", file, *needed), options, "app.cli.run_request.run_network", request_of, usual, expected)


def profile(folder: Path) -> Case:
    def found(called: Any) -> Any:
        session, more = called.session, called.more
        counters = (more["counters"] is count, more["require_counters"])
        return (tensors(session.weights), session.options, called.iterations, called.grid, counters)

    options = (
        *weights_of(folder), "--engine", "torch,onnxruntime", "--precision", "fp32,fp16", "--layout", "nhwc,nchw", "--batch", "2,5", "--size", "32x16", "--counters", "require", "--iterations", 4, *SHARED,
    )  # fmt: skip
    others = Grid(("onnxruntime",), ("fp16",), ("nchw",), (2, 5), (Size2D(32, 16),))
    expected = (
        drawn(folder),
        RunOptions("torch", "fp32", "nhwc", threads=3, agreed=(DIGEST,)),
        4,
        others,
        (True, True),
    )
    usual = (stored(folder), RunOptions(), 10, Grid(), (True, False))
    return Case(
        ("profile", folder / "plain.xml", *all_weights(folder)),
        options,
        "designer.profiling.measure.profile_session",
        found,
        usual,
        expected,
    )


def profile_of_a_variant(folder: Path) -> Case:
    def found(called: Any) -> Any:
        return (called.session.options.precision, called.more["counters"], called.more["require_counters"])

    options = ("--variant", "half", "--counters", "off")
    words = ("profile", folder / "n.xml", "--weights", folder / "all")
    target = "designer.profiling.measure.profile_session"
    return Case(words, options, target, found, ("fp32", count, False), ("fp16", None, False))


def profile_on_a_gpu(folder: Path) -> Case:
    words = ("profile", folder / "plain.xml", *all_weights(folder))
    target = "designer.runtime.session.Session"
    return Case(words, ("--device", "cuda"), target, lambda called: called.options.device, "cpu", "cuda")


def compare(folder: Path) -> Case:
    files = [folder / "n.xml", folder / "plain.xml"]
    options = (
        "--noise", "gaussian:0.1", "--noise", "poisson:2", "--clean", folder / "c", "--seed", 5, "--weights", folder / "w", "--weights",
        folder / "v", "--random-weights", 7, *ENGINE, "--engine", "onnxruntime", "--variant", "half", "--variant", "",
        "--report", "r.html", *SHARED,
    )  # fmt: skip
    expected = CompareArguments(
        files, folder, folder / "c", ["gaussian:0.1", "poisson:2"], 5, [folder / "w", folder / "v"], 7, ["torch", "onnxruntime"],
        RunOptions(threads=3), Path("r.html"), [DIGEST], ["fp16"], ["nhwc"], ["cuda"], ["half", ""],
    )  # fmt: skip
    words = ("compare", *files, "--images", folder)
    usual = CompareArguments(files, folder)
    return Case(words, options, "app.cli.compare_request.compare", lambda called: called.request, usual, expected)


def precision(folder: Path) -> Case:
    def found(called: Any) -> Any:
        more = (called.target, called.images, called.budget_db, list(called.keep), called.native, called.options)
        return (tensors(called.weights), called.path, *more)

    output = folder / "o.onnx"
    words = (
        "precision",
        folder / "plain.xml",
        "--to",
        "bf16",
        "--output",
        output,
        "--validate",
        folder / "images",
        *all_weights(folder),
    )
    options = (
        *weights_of(folder), "--keep", "conv", "--keep", "image", "--budget-db", 33.5, "--form", "tensorrt", *SHARED
    )  # fmt: skip
    usual = (stored(folder), output, "bf16", folder / "images", None, [], False, RunOptions())
    expected = (drawn(folder), output, "bf16", folder / "images", 33.5, ["conv", "image"], True, AGREED)
    return Case(words, options, "exporters.mixed.export_precision", found, usual, expected)


def integers(folder: Path) -> Case:
    def found(called: Any) -> Any:
        return (tensors(called.weights), called.path, called.recipe, called.budget_db, called.format)

    output, images = folder / "o.onnx", str(folder / "images")
    words = (
        "precision",
        folder / "plain.xml",
        "--to",
        "int8+fp16",
        "-o",
        output,
        "--calibration",
        images,
        *all_weights(folder),
    )
    options = (
        *weights_of(folder), "--budget-db", 33.5, "--method", "percentile", "--percentile", 99.5, "--images", 9, "--size", "48x32",
        "--form", "tensorrt",
    )  # fmt: skip
    recipe = CalibrationRecipe(images, 9, "48x32", "percentile", 99.5, "tensorrt")
    usual = (stored(folder), output, CalibrationRecipe(images, form="onnxruntime"), None, "float16")
    return Case(
        words, options, "exporters.int8.export_int8", found, usual, (drawn(folder), output, recipe, 33.5, "float16")
    )


def blame(folder: Path) -> Case:
    def found(called: Any) -> Any:
        compared = called.compared
        names = [variant.name for variant in compared.variants]
        return (called.a, called.b, tensors(compared.weights), compared.options, names, compared.other_weights)

    words = ("blame", folder / "n.xml", "--a", "fp32", "--b", "half", "--input", "a.png", *all_weights(folder))
    options = (*weights_of(folder), "--other-weights", folder / "v", *SHARED)
    usual = ("fp32", "half", stored(folder), RunOptions(), ["half"], None)
    expected = ("fp32", "half", drawn(folder), AGREED, ["half"], folder / "v")
    return Case(words, options, "app.computations.blame_between", found, usual, expected)


def train(folder: Path) -> Case:
    def found(called: Any) -> Any:
        host = getattr(called, "host", None)
        return (called.run.project, called.options, host and (host.name, host.python))

    options = (
        "--output",
        folder / "p",
        "--host",
        "gpu",
        "--host-python",
        "~/python",
        "--ema",
        "0.5",
        *PATHS,
        "--trust-custom",
        DIGEST,
    )
    usual = (folder / "plain_pytorch", {}, None)
    expected = (folder / "p", {"ema": "0.5", **at(Path.cwd())}, ("gpu", "~/python"))
    return Case(("train", folder / "plain.xml"), options, "designer.training.ssh_host.start", found, usual, expected)


def sweep(folder: Path) -> Case:
    def found(called: Any) -> Any:
        made = called.sweep
        return (made.folder, [trial.title for trial in made.trials], made.options, called.place)

    words = ("sweep", folder / "plain.xml", "--grid", "lr=0.1,0.2", "--grid", "seed=1,2")
    options = (
        "--output", folder / "s", "--random", 3, "--parallel", 2, "--cluster", "here:1", "--steps", "5", *PATHS, "--trust-custom", DIGEST
    )  # fmt: skip
    every = trials([Axis.parse("lr=0.1,0.2"), Axis.parse("seed=1,2")], 0)
    drawn = trials([Axis.parse("lr=0.1,0.2"), Axis.parse("seed=1,2")], 3)
    usual = (folder / "plain_sweep", [trial.title for trial in every], {}, Place())
    expected = (folder / "s", [trial.title for trial in drawn], {"steps": "5", **at(Path.cwd())}, Place(2, "here:1"))
    return Case(words, options, "app.engine.sweep_process.conduct", found, usual, expected)


def passes(folder: Path) -> Case:
    def found(called: Any) -> Any:
        names = [result.name for result in called.optimized.results]
        return (names, tensors(called.weights), called.options, dict(called.files))

    words = ("passes", folder / "plain.xml", *all_weights(folder))
    options = (
        *weights_of(folder), "--pass", "fold_constants", "--pass", "fuse_activations", "--without", "fuse_activations", "--input", "image=a.png", *SHARED
    )  # fmt: skip
    usual = ([*PASSES], stored(folder), RunOptions(), {})
    expected = (["fold_constants"], drawn(folder), AGREED, {"image": Path("a.png")})
    return Case(words, options, "designer.passes.effect.pass_effect", found, usual, expected)


def exported_project(folder: Path) -> Case:
    def found(called: Any) -> Any:
        return (called.folder, called.name, called.training, called.edited)

    words = ("export", "pytorch", folder / "n.xml", "--output", folder / "p")
    options = ("--name", "Mine", "--task", "restoration", "--edited", "keep", "--weights", folder / "all")
    usual = (folder / "p", "Network", Training("denoising", {"batch": "3"}), "refuse")
    expected = (folder / "p", "Mine", Training("restoration"), "keep")
    return Case(words, options, "exporters.pytorch.export_project", found, usual, expected)


def exported_model(folder: Path) -> Case:
    def found(called: Any) -> Any:
        return (tensors(called.weights), called.path, called.convert is not None)

    words = (
        "export",
        "onnx",
        folder / "n.xml",
        "--output",
        folder / "o.onnx",
        *all_weights(folder),
    )
    usual, expected = (stored(folder), folder / "o.onnx", False), (drawn(folder), folder / "o.onnx", True)
    return Case(words, (*weights_of(folder), "--variant", "half"), "exporters.onnx.export_onnx", found, usual, expected)


def deployment(folder: Path) -> Case:
    def found(called: Any) -> Any:
        return (tensors(called.weights), called.folder, called.inputs, called.convert is not None)

    words = ("export", "deploy", folder / "n.xml", "-o", folder / "d", *all_weights(folder))
    options = (*weights_of(folder), "--input", "image=a.png", "--variant", "half")
    usual = (stored(folder), folder / "d", {}, False)
    expected = (drawn(folder), folder / "d", {"image": Path("a.png")}, True)
    return Case(words, options, "exporters.deploy.export_deployment", found, usual, expected)


def deployed_file(folder: Path) -> Case:
    words = ("export", "deploy", folder / "n.xml", "-o", folder / "d", "--weights", folder / "all")
    options = ("--onnx", folder / "m.onnx")
    target = "exporters.deploy.export_deployment"
    return Case(words, options, target, lambda called: called.onnx_file, None, folder / "m.onnx")


def engine(folder: Path) -> Case:
    def found(called: Any) -> Any:
        return (tensors(called.weights), called.path, called.options, called.convert is not None)

    words = (
        "export",
        "tensorrt",
        folder / "n.xml",
        "-o",
        folder / "e.engine",
        *all_weights(folder),
    )
    options = (
        *weights_of(folder), "--min-size", "16x8", "--max-size", "64x32", "--max-batch", 6, "--sparse", "--timing-cache", folder / "t", "--variant", "half"
    )  # fmt: skip
    usual = (stored(folder), folder / "e.engine", EngineOptions(), False)
    expected = (drawn(folder), folder / "e.engine", EngineOptions((8, 16), (32, 64), 6, True, folder / "t"), True)
    return Case(words, options, "exporters.tensorrt.export_tensorrt", found, usual, expected)


def engine_of_a_file(folder: Path) -> Case:
    words = ("export", "tensorrt", folder / "n.xml", "-o", folder / "e.engine", "--weights", folder / "all")
    options, target = ("--onnx", folder / "m.onnx"), "exporters.tensorrt.export_tensorrt"
    return Case(words, options, target, lambda called: called.onnx_file, None, folder / "m.onnx")


def module(folder: Path) -> Case:
    output = folder / "o.xml"
    words = ("import", "pytorch", "net:make", "--output", output, "--trust")
    options = (
        "--weights", folder / "s.pt", "--output-weights", folder / "new", "--report", folder / "r.json", "--input", "1x3x8x8",
        "--input", "1x16:int64", "--timeout", 9, "--no-verify",
    )  # fmt: skip
    here, shapes = str(Path.cwd()), (InputShape((1, 3, 8, 8)), InputShape((1, 16), "int64"))
    usual = (ImportRequest("net:make", here, str(output)), 600.0)
    state, new, report = (str(folder / name) for name in ("s.pt", "new", "r.json"))
    expected = (ImportRequest("net:make", here, str(output), shapes, state, new, report, False), 9.0)
    target = "app.import_process.import_in_process"
    return Case(words, options, target, lambda called: (called.request, called.timeout), usual, expected)


CASES: tuple[Callable[[Path], Case], ...] = (
    run, video, profile, profile_of_a_variant, profile_on_a_gpu, compare, precision, integers, blame, train, sweep, passes,
    exported_project, exported_model, deployment, deployed_file, engine, engine_of_a_file, module,
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A network with and one without settings, and weights: of the kernel only, and all."""
    network = Graph(chain(("conv", "convolution", {"features": 3, "kernel": "1x1"}), size="16x8x3"), name="network")
    for name in ("n.xml", "plain.xml"):
        save_document(network, tmp_path / name)
    settings = Settings(task="denoising", recipe={"batch": "3"}, variants=(Variant("half", "fp16"),))
    save_settings(settings, settings_path(tmp_path / "n.xml"))
    for name in ("w", "all", "images"):
        (tmp_path / name).mkdir()
    for name, value in (("w", 2), ("all", 1)):
        np.save(tmp_path / name / "conv_kernel.npy", np.full((3, 3, 1, 1), value, np.float32))
    np.save(tmp_path / "all" / "conv_bias.npy", np.ones(3, np.float32))
    return tmp_path


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_options_reach_what_they_configure(
    layerwright: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], Case]
) -> None:
    case = make(folder)
    for target in (case.target, "designer.training.trainer.start"):
        reach(monkeypatch, target)
    for options, expected in ((), case.usual), (case.options, case.expected):
        with pytest.raises(ReachedError) as reached:
            pytest.fail(f"nothing was called: {layerwright(*case.words, *options)}")
        assert case.found(reached.value.args[0]) == expected


@pytest.mark.parametrize(
    ("words", "target", "for_tensorrt"),
    [
        (("export", "onnx", "--output", "o.onnx"), "exporters.onnx.export_onnx", False),
        (("export", "deploy", "-o", "d"), "exporters.deploy.export_deployment", False),
        (("export", "tensorrt", "-o", "e.engine"), "exporters.tensorrt.export_tensorrt", True),
    ],
)
def test_a_variant_is_exported_in_the_form_that_its_runtime_reads(
    layerwright: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, words: Any, target: str, for_tensorrt: bool
) -> None:
    """TensorRT computes in BF16, and ONNX Runtime in FP32 from tensors in BF16."""
    settings = Settings(variants=(Variant("brain", "bf16"), Variant("half", "fp16", {"conv": "float32"})))
    save_settings(settings, settings_path(folder / "n.xml"))
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"], name="relu"), helper.make_node("Sqrt", ["y"], ["z"], name="conv")],
            "net", [helper.make_tensor_value_info("x", 1, [2])], [helper.make_tensor_value_info("z", 1, [2])],
        ),
        opset_imports=[helper.make_opsetid("", 20)],
    )  # fmt: skip
    reach(monkeypatch, target)
    network = open_network(folder / "n.xml")
    for variant in settings.variants:
        with pytest.raises(ReachedError) as reached:
            layerwright(*words[:2], folder / "n.xml", *words[2:], *all_weights(folder), "--variant", variant.name)
        convert = variant_conversion(variant, network.graph, network.registry, tensorrt=for_tensorrt)
        assert convert is not None
        assert reached.value.args[0].convert(model) == convert(model)
    other = variant_conversion(settings.variants[0], network.graph, network.registry, tensorrt=not for_tensorrt)
    assert other is not None
    convert = variant_conversion(settings.variants[0], network.graph, network.registry, tensorrt=for_tensorrt)
    assert convert is not None
    assert other(model) != convert(model)


def parameters(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The options of a command and of its subcommands."""
    for name, found in getattr(command, "commands", {}).items():
        yield from parameters(found, (*path, name))
    yield from ((path, option) for option in command.params if option.param_type_name == "option")


def test_no_option_is_forgotten(folder: Path) -> None:
    tried: dict[tuple[str, ...], set[str]] = {}
    for case in (make(folder) for make in CASES):
        words = [str(word) for word in (*case.words, *case.options)]
        for path in (tuple(words[:1]), tuple(words[:2])):
            tried.setdefault(path, set()).update(words)
    known = {(name,): options for name, options in ELSEWHERE.items()}
    left = [
        f"{' '.join(path)} {option.opts[-1]}"
        for name in main.COMMANDS
        for path, option in parameters(main.load_command(name), (name,))
        if not {*option.opts, *option.secondary_opts} & (tried.get(path, set()) | known.get(path, set()))
    ]
    assert not left
