"""Why an export is refused: code, sentence, remedy and place, as recorded. Nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
from pytorch_networks import node, seeded, small
from recorded import check_recorded

from designer.files.variants import Variant
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.operators.registry import Registry
from exporters.generated_folder import GeneratedFolder
from exporters.interface import Interface, ModelInput, replace_model
from exporters.onnx import export_onnx
from exporters.pytorch.project import Training, export_project
from exporters.pytorch.source import generate_source, generate_template, network_module
from exporters.pytorch.tasks import check_output, task_named, with_recipe
from exporters.tensorrt import EngineOptions, _shapes, _timing_cache, description_of, read_engine_file
from exporters.variants import variant_conversion

SETTINGS = "".join(
    f"    {name}: {kind} = setting({default}, 'help')\n"
    for name, kind, default in (
        ("rate", "float", "0.1"),
        ("steps", "int", "5"),
        ("name", "str", '"a"'),
        ("fast", "bool", "False"),
    )
)


def numbers() -> Graph:
    """One number for each sample."""
    layers = [
        node("image", "input", dims="4x4x1"),
        node("sum", "reduce", "image", operation="sum", axes="1,2,3", keep="false"),
    ]
    return Graph([*layers, node("y", "output", "sum")], name="numbers")


def opened(name: str, shape: tuple[int | None, ...], drawn: tuple[int, ...], multiple: int = 4) -> ModelInput:
    return ModelInput(name, name, "float32", shape, drawn, len(shape) == 4, multiple=multiple)


PHOTO = opened("photo", (None, 3, None, None), (1, 3, 16, 24))
HALF = opened("half", (None, 3, None, None), (1, 3, 8, 12), multiple=2)
FIXED = opened("fixed", (1, 3, 16, 24), (1, 3, 16, 24))


def shapes(*inputs: ModelInput, **options: Any) -> Any:
    return _shapes(Interface(inputs, ()), EngineOptions(**options))


def folder_with(path: Path, **files: str) -> Path:
    path.mkdir()
    for name, text in files.items():
        (path / name.replace("_", ".")).write_text(text, "utf-8")
    return path


def generated(path: Path) -> Path:
    """A folder of an earlier export."""
    with GeneratedFolder(path) as stage:
        stage.write("readme.txt", "made")
        stage.mark({})
        stage.install()
    return path


def staged(path: Path) -> None:
    with GeneratedFolder(path):
        pass


def edited(path: Path) -> Path:
    (generated(path) / "readme.txt").write_text("edited")
    return path


def cases(registry: Registry, folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    def project(target: Path, name: str = "Net", **training: Any) -> Callable[[], Any]:
        return lambda: export_project(small(), registry, target, name, Training(**training))

    (folder / "file").write_text("mine")
    yield "a project without a name", project(folder / "p", " ")
    yield "a project in a file", project(folder / "file")
    yield "a project below a file", project(folder / "file" / "p")
    yield "a project over a file of others", project(folder_with(folder / "mine", train_py="print()"))
    yield "a project of an unknown task", project(folder / "p", task="guessing")
    yield "a setting of no task", project(folder / "p", recipe={"speed": "3"})
    yield "a setting of the wrong type", project(folder / "p", recipe={"steps": "many"})
    yield (
        "classes of a single number",
        lambda: check_output(network_module(numbers(), registry), task_named("classification")),
    )
    yield (
        "pixels of a single number",
        lambda: check_output(network_module(numbers(), registry), task_named("segmentation")),
    )
    for name, value in (
        ("rate", "nan"),
        ("rate", "fast"),
        ("steps", "1.5"),
        ("name", 'a"b'),
        ("fast", "yes"),
        ("slow", "1"),
    ):
        yield f"{name} = {value}", lambda name=name, value=value: with_recipe(SETTINGS, {name: value})  # type: ignore[misc]
    yield "nothing is selected", lambda: generate_source(small(), registry, "net", [])
    yield "a template that does not exist", lambda: generate_template(small(), registry, "block")

    folders = {
        "a folder with other files": folder_with(folder / "other", a_txt="a"),
        "a folder with a foreign marker": folder_with(folder / "foreign", layerwright_json="[]"),
        "a folder with an edited file": edited(folder / "edited"),
        "a folder that is a file": folder / "file",
    }
    for name, target in folders.items():
        yield name, lambda target=target: staged(target)  # type: ignore[misc]

    weights = seeded(small(), registry)
    yield "ONNX with another suffix", lambda: export_onnx(small(), registry, weights, folder / "net.txt")
    yield "ONNX below a file", lambda: export_onnx(small(), registry, weights, folder / "file" / "net.onnx")
    report = export_onnx(small(), registry, weights, folder / "net.onnx")
    other = onnx.load(report.path)
    other.graph.output[0].name = "other"
    other.graph.node[-1].output[0] = "other"
    onnx.save(other, folder / "other.onnx")
    yield "no model in place of the exported one", lambda: replace_model(report, folder / "file")
    yield "a missing model in place of the exported one", lambda: replace_model(report, folder / "gone.onnx")
    yield "another model in place of the exported one", lambda: replace_model(report, folder / "other.onnx")
    whole = Variant("whole", "fp16", formats={"down": "int8"})
    yield "a variant with integers", lambda: variant_conversion(whole, small(), registry)

    yield "sizes of a fixed network", lambda: shapes(FIXED, smallest=(8, 8))
    yield "a largest size of a fixed network", lambda: shapes(FIXED, largest=(8, 8))
    yield "a smallest size above that of the document", lambda: shapes(PHOTO, smallest=(32, 24))
    yield "a largest size below that of the document", lambda: shapes(PHOTO, largest=(16, 20))
    yield "a size that is not a multiple", lambda: shapes(PHOTO, smallest=(8, 10))
    yield (
        "a size that is not a multiple at half",
        lambda: shapes(PHOTO, opened("half", HALF.shape, HALF.drawn), largest=(24, 36)),
    )
    engine = folder / "net.engine"
    engine.write_bytes(b"engine")
    yield "an engine without a description", lambda: read_engine_file(engine)
    yield "no engine", lambda: read_engine_file(folder / "gone.engine")
    description_of(engine).write_text("{}")
    yield "an engine with a foreign description", lambda: read_engine_file(engine)
    yield "a timing cache that is a folder", lambda: _timing_cache(EngineOptions(timing_cache=folder))


def test_why_an_export_is_refused(registry: Registry, tmp_path: Path) -> None:
    lines = []
    for name, make in cases(registry, tmp_path):
        before = {path: path.read_bytes() if path.is_file() else None for path in tmp_path.rglob("*")}
        try:
            make()
        except DiagnosticError as error:
            found = error.diagnostics
        else:
            found = ()
        assert {path: path.read_bytes() if path.is_file() else None for path in tmp_path.rglob("*")} == before, name
        lines.append(name)
        for d in found:
            place = ", ".join(map(str, filter(None, (d.file, d.layer, d.template))))
            lines.append(f"  {d.code} ({place}): {d.message}; {d.remedy}".replace(str(tmp_path), "FOLDER"))
    check_recorded("refused_exports.txt", "\n".join([*lines, ""]))


def test_shapes_of_an_engine() -> None:
    small_, best, large = (8, 12), (16, 24), (32, 48)
    found = shapes(PHOTO, HALF, FIXED, smallest=small_, largest=large, batch=4)
    assert {name: (r.smallest, r.best, r.largest) for name, r in found.items()} == {
        "photo": ((1, 3, *small_), (1, 3, *best), (4, 3, *large)),
        "half": ((1, 3, 4, 6), (1, 3, 8, 12), (4, 3, 16, 24)),
        "fixed": ((1, 3, 16, 24),) * 3,
    }
