"""How commands end: problems of plugins, closed pipes, signals, and what is printed in parts."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_kit import Run, layerwright

import samples
from app.cli import (
    blame,
    check,
    console,
    desktop_entry,
    export,
    import_,
    library,
    main,
    profile,
    run_request,
    sweep,
    trust,
)
from app.cli import compare as compare_command
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.operators.registry import default_registry
from designer.runtime.api import RunOptions
from designer.training.watched_run import RunState

__all__ = ["layerwright"]
PROBLEM = Diagnostic("broken-plugin", "the plugin mine.py cannot be read", Severity.WARNING, remedy="repair it")


@pytest.mark.parametrize("words", [("operators",), ("operators", "--json")])
def test_problems_of_plugins_are_listed_with_the_operators(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    registry = default_registry()
    monkeypatch.setattr("designer.operators.registry.default_registry", lambda: registry)
    monkeypatch.setattr(registry, "diagnostics", [PROBLEM])
    monkeypatch.setattr(console.out, "_width", 400)
    done = layerwright(*words)
    assert (done.code, done.err) == (0, f"{PROBLEM}\n")
    if len(words) > 1:
        found = json.loads(done.out)
        names = [cls.type for cls in (*registry, *sorted(registry.activations.values(), key=lambda cls: cls.type))]
        assert [entry["type"] for entry in found] == names
        assert registry.activations
    else:
        lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.out.splitlines() if "│" in line]
        assert lines == [[cls.type, cls.category.value, ", ".join(p.name for p in cls.parameters)] for cls in registry]
        assert f"attached activations: {', '.join(sorted(registry.activations))}" in done.out


def test_engines_are_listed_with_why_they_are_unavailable(layerwright: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = (
        SimpleNamespace(kind="cpu", precisions=("fp32", "bf16")),
        SimpleNamespace(kind="cuda", precisions=("fp16",)),
    )
    engines = [
        SimpleNamespace(name="a", title="Engine A", devices=devices),
        SimpleNamespace(name="b", title="Engine B", devices=()),
    ]

    class Registry(list):  # type: ignore[type-arg]
        diagnostics = (PROBLEM,)

        def problem(self, engine: Any) -> Diagnostic | None:
            return None if engine.name == "a" else Diagnostic("x", "it is not installed", remedy="install it")

    monkeypatch.setattr("designer.runtime.engine_registry.default_engines", lambda: Registry(engines))
    monkeypatch.setattr(console.out, "_width", 400)
    done = layerwright("engines")
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.out.splitlines() if "│" in line]
    assert cells == [
        ["a", "Engine A", "fp32 bf16 on cpu, fp16 on cuda", "ready"], ["b", "Engine B", "", "it is not installed: install it"]
    ]  # fmt: skip
    assert done.err == f"{PROBLEM}\n"


def test_samples_are_listed_with_starting_points(layerwright: Run) -> None:
    lines = layerwright("samples").out.splitlines()
    expected = [*samples.documents(), *(samples.starting_point(name) for name in samples.STARTING_POINTS)]
    assert lines == [str(path) for path in expected]
    assert library.samples.__doc__


def test_a_reader_that_closes_the_pipe_ends_the_command_quietly() -> None:
    script = (
        "import sys\nsys.argv = ['layerwright', 'samples']\nfrom app.cli.main import main\nsys.stdin.readline()\nmain()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(60), b"Traceback" in said, b"system" in said) == (1, False, False)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "stopped\n"), (BrokenPipeError(32, "Broken pipe"), 1, ""),
        (DiagnosticError([PROBLEM, Diagnostic("x", "y")]), 1, f"{PROBLEM}\nerror [x] y\n"),
        (MemoryError(), 1, f"{console.of_the_system(MemoryError())}\n"),
        (PermissionError(13, "Permission denied", "/a"), 1, f"{console.of_the_system(PermissionError(13, 'Permission denied', '/a'))}\n"),
    ],
)  # fmt: skip
def test_what_is_said_of_an_error(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    def fails() -> None:
        raise error

    monkeypatch.setattr(main, "app", fails)
    done = layerwright("check")
    assert (done.code, done.out, done.err) == (code, "", said)


@pytest.mark.parametrize(
    ("severity", "style"), [(Severity.ERROR, "red"), (Severity.WARNING, "yellow"), (Severity.INFO, "blue")]
)
def test_diagnostics_have_the_color_of_their_severity(
    monkeypatch: pytest.MonkeyPatch, severity: Severity, style: str
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(console.err, "print", lambda *each, **more: seen.append((each, more)))
    finding = Diagnostic("a", "b", severity)
    console.show((finding, PROBLEM))
    assert seen[0] == ((str(finding),), {"style": style, "highlight": False})
    assert len(seen) == 2


def test_json_is_ascii_and_text_keeps_its_control_characters_visible(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"a": "ü\u2028"})
    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out) == {"a": "ü\u2028"}
    console.out.print("a\x1b[31mb\u202e")
    assert "\x1b" not in capsys.readouterr().out


# --- desktop entry -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "quoted"),
    [
        ("/usr/bin/python", "/usr/bin/python"), ("/my files/a", '"/my files/a"'), ("a$b", '"a\\\\$b"'), ("a`b", '"a\\\\`b"'),
        ('a"b', '"a\\\\"b"'), ("a\\b", '"a\\\\\\\\b"'), ("50%", "50%%"), ("a;b", '"a;b"'), ("a(b)", '"a(b)"'), ("a'b", '"a\'b"'),
    ],
)  # fmt: skip
def test_arguments_of_a_desktop_entry_are_quoted(argument: str, quoted: str) -> None:
    assert desktop_entry._quoted(argument) == quoted


def test_an_argument_of_a_desktop_entry_is_read_as_it_was() -> None:
    """Whatever of its characters are reserved: escapes of the value are read first, then quotes, then field codes."""
    for first, second in itertools.product("\\\"'` $%;ab", repeat=2):
        argument = f"/{first}x{second}"
        found = desktop_entry._quoted(argument).replace("\\\\", "\\")
        if found.startswith('"'):
            assert found.endswith('"')
            found = re.sub(r'\\(["`$\\])', r"\1", found[1:-1])
        else:
            assert not set(argument) & set("\\\"'` $;")
        assert found.replace("%%", "%") == argument


def test_what_a_desktop_entry_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = desktop_entry.module_command("app.main")
    for name, installed in (("layerwright", True), ("layerwright-gui", True), ("other", False)):
        monkeypatch.setattr(sys, "argv", [name])
        assert desktop_entry._start_command() == module  # there is no such file
        Path(name).touch()
        assert desktop_entry._start_command() == ([str(tmp_path / name)] if installed else module)


def test_caches_of_the_desktop_are_rebuilt(layerwright: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []
    monkeypatch.setattr("platformdirs.user_data_path", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(desktop_entry.shutil, "which", lambda tool: None if "desktop" in tool else "/usr/bin/x")

    def run(command: list[str], **more: Any) -> Any:
        ran.append(command)
        return SimpleNamespace(returncode=len(ran) - 1, stderr=" it fails \n")

    monkeypatch.setattr(desktop_entry.subprocess, "run", run)
    missing = (
        "update-desktop-database is not installed: the desktop may show the change only after the next login"
        " (Debian: desktop-file-utils)"
    )
    files = [tmp_path / folder / name for name, folder in desktop_entry.FILES.items()]
    assert layerwright("desktop-entry", "--uninstall").out == ""
    assert ran == []
    done = layerwright("desktop-entry", "--install")
    assert done.out.splitlines() == [*(f"wrote {path}" for path in files), missing]
    assert ran == [["update-mime-database", str(tmp_path / "mime")]]
    text = files[0].read_text()
    command = " ".join(map(desktop_entry._quoted, desktop_entry._start_command()))
    assert f"Exec={command} " in text
    assert "Exec=layerwright " not in text
    files[1].unlink()
    done = layerwright("desktop-entry", "--uninstall")
    assert done.out.splitlines() == [
        f"removed {files[0]}", f"removed {files[2]}", "update-mime-database failed: it fails", missing
    ]  # fmt: skip
    assert not any(path.exists() for path in files)
    monkeypatch.setattr(sys, "platform", "darwin")
    done = layerwright("desktop-entry", "--install")
    assert (done.code, "but this system is darwin" in done.err) == (1, True)


# --- parts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "errors"), [(0, 0), (59, 1), (60, 2), (61, 0)])
@pytest.mark.parametrize("layers", [True, False])
def test_a_small_network_is_a_table(capsys: pytest.CaptureFixture[str], rows: int, errors: int, layers: bool) -> None:
    row = [
        SimpleNamespace(layer=f"l{n}", type="conv", shape="N x 1", parameters=n % 2 * 1234, training=n % 3 == 2)
        for n in range(rows)
    ]
    findings = (*[Diagnostic("a", "b")] * errors, PROBLEM)
    network: Any = SimpleNamespace(
        rows=lambda: row, diagnostics=findings, parameters=1234567, graph=SimpleNamespace(name="net")
    )
    check._print(network, layers)
    found = capsys.readouterr()
    lines = found.out.splitlines()
    plural = "" if errors == 1 else "s"
    assert lines[0] == f"net: {rows} layers, {check.count(1234567)} parameters, {errors} error{plural}"
    training = sum(each.training for each in row)
    said = f"{training} of the layers are the training branch, which inference, ONNX and deployment exclude"
    assert (said in lines) is bool(training)
    hint = "The layers and their shapes: layerwright check --layers"
    assert (hint in lines) is (rows >= 60 and not layers)
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    assert cells == [
        [
            each.layer,
            "conv (training)" if each.training else "conv",
            "N x 1",
            check.count(1234) if each.parameters else "",
        ]
        for each in (row if layers or rows < 60 else [])
    ]
    assert found.err.splitlines() == [str(finding) for finding in findings]


def test_an_unreadable_file_is_checked_as_json(layerwright: Run, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<Net")
    done = layerwright("check", tmp_path / "a.xml", "--json")
    found = json.loads(done.out)
    assert (done.code, found["layers"]) == (1, [])
    assert found["diagnostics"][0]["severity"] == "error"
    assert layerwright("check", tmp_path / "a.xml").code == 1


def test_errors_of_a_network_are_its_exit_status_also_as_json(layerwright: Run, tmp_path: Path) -> None:
    from designer.files.document import save_document
    from designer.graph.graph import Graph
    from designer.graph.model import Layer, Source

    for source, code in (("x", 0), ("absent", 1)):
        layers = [Layer("x", "input", params={"dims": "6x4x3"}), Layer("y", "output", inputs=(Source(source),))]
        save_document(Graph(layers, name="n"), tmp_path / "n.xml")
        assert layerwright("check", tmp_path / "n.xml").code == code
        done = layerwright("check", tmp_path / "n.xml", "--json")
        assert (done.code, json.loads(done.out)["name"]) == (code, "n")


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("note", ["", "it was built by another version"])
def test_the_layers_of_an_engine_file(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, as_json: bool, note: str
) -> None:
    from designer.runtime.engines.trt_layers import EngineLayer
    from exporters.tensorrt import EngineFile

    layers = (EngineLayer("1", "convolution", "fp16", ("a", "b"), ("a/Conv", "b/Relu")),)
    found = EngineFile("0", "tensorrt", "10.1", "net", {}, False, 1.5, "trtexec --x", layers, {})
    asked: list[Any] = []
    monkeypatch.setattr("exporters.tensorrt.read_engine_file", lambda path: asked.append(path) or found)
    monkeypatch.setattr("designer.runtime.engines.trt.version_note", lambda *each: asked.append(each) or note)
    done = layerwright("engine-layers", "a.engine", *(["--json"] if as_json else []))
    assert asked == [Path("a.engine"), ("tensorrt", "10.1")]
    assert (done.code, done.err) == (0, f"note: {note}\n" if note else "")
    if as_json:
        assert json.loads(done.out)["layers"][0]["layers"] == ["a", "b"]
    else:
        lines = done.out.splitlines()
        assert lines[0].startswith("tensorrt 10.1: 1 layers, 1 of them fused")
        assert lines[-1] == "trtexec --x"
        assert len(lines) == 3


def test_a_training_step_is_measured_with_the_options_of_the_profile(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reached import ReachedError, reach

    reach(monkeypatch, "app.engine.training_profile.with_training_step")
    monkeypatch.setattr("designer.profiling.measure.profile_session", lambda *_, **__: "a profile")
    words = (
        "profile",
        samples.path("denoiser.xml"),
        "--random-weights",
        1,
        "--training",
        "--threads",
        3,
        "--device",
        "cpu",
    )
    with pytest.raises(ReachedError) as reached:
        layerwright(*words)
    call = reached.value.args[0]
    assert (call.profile, call.options) == ("a profile", RunOptions(threads=3))
    assert call.graph.name == "denoiser"


def test_formats_of_int8_and_of_the_other_layers() -> None:
    from app.cli.precision import _ADVICE, INTEGERS

    assert {target.value: name for target, name in INTEGERS.items()} == {"int8": "float32", "int8+fp16": "float16"}
    assert {target.value: text for target, text in _ADVICE.items()} == {
        "fp16": "use --to mixed, which keeps layers in FP32",
        "bf16": "use --to fp16 or --to mixed, which have more digits",
        "mixed": "use a smaller budget",
        "int8": "use more or other calibration images, or choose fp16",
        "int8+fp16": "use more or other calibration images, or choose fp16",
    }


@pytest.mark.parametrize("to", ["fp16", "bf16", "mixed", "int8", "int8+fp16"])
@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("met", [True, False])
def test_a_budget_that_is_not_met_ends_a_conversion_with_advice(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, to: str, given: bool, met: bool
) -> None:
    """Whether it was given or is the usual one; the file and the report are there all the same."""
    from app.cli.precision import _ADVICE, Target

    budget = 45.5 if given else 40.0
    result = SimpleNamespace(met=met, psnr_db=38.126)
    made = SimpleNamespace(result=result, as_dict=lambda: {"budget_db": budget, "psnr_db": 38.126})
    asked: list[float | None] = []
    for target in ("exporters.int8.export_int8", "exporters.mixed.export_precision"):
        monkeypatch.setattr(target, lambda *_, budget_db, **__: asked.append(budget_db) or made)
    monkeypatch.setattr("app.cli.precision._lines", lambda report: ["a line of the report"])
    images = "--calibration" if to.startswith("int8") else "--validate"
    output, report = tmp_path / "o.onnx", tmp_path / "r.json"
    words = [
        "precision",
        samples.path("denoiser.xml"),
        "--to",
        to,
        "-o",
        output,
        images,
        tmp_path,
        "--random-weights",
        1,
    ]
    more = ["--report", report] if given else []
    done = layerwright(*words, *more, *(["--budget-db", 45.5] if given else []))
    assert done.code == (0 if met else 1)
    assert asked == [45.5 if given else None]
    wrote = f"wrote {output}" + (f" and {report}" if given else "")
    assert done.out.splitlines() == ["a line of the report", wrote]
    why = f"the budget of {budget:g} dB is not met: 38.13 dB is the best that was found; {_ADVICE[Target(to)]}"
    assert done.err.strip() == ("" if met else why)
    assert report.exists() is given
    if given:
        assert json.loads(report.read_text()) == {"budget_db": 45.5, "psnr_db": 38.126}


def test_blame_as_json_has_every_operator_with_the_largest_share_first(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from designer.precision.blame import Blame, Blamed

    operators = (Blamed("first", 0.25, 0.5), Blamed("second", 0.75, 0.125))
    monkeypatch.setattr("app.computations.blame_between", lambda *_: Blame(operators, 0.5, None))
    path = samples.path("denoiser.xml")
    words = (
        "blame",
        path,
        "--a",
        "fp32",
        "--b",
        "int8",
        "--input",
        "a.png",
        "--random-weights",
        1,
        "--json",
        "--rows",
        1,
    )
    assert json.loads(layerwright(*words).out) == {
        "a": "fp32", "b": "int8", "inputs": {"input_image": "a.png"}, "rms": 0.5, "first": None,
        "operators": [{"layer": "second", "share": 0.75, "deviation": 0.125}, {"layer": "first", "share": 0.25, "deviation": 0.5}],
    }  # fmt: skip
    assert layerwright(*words[:-3]).out.splitlines()[-1] == "first operator that deviates: none"
    assert blame.COMPUTATION


def test_a_comparison_has_a_table_for_each_noise_and_the_mean_times(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from test_report_values import ROWS, texts

    from app.cli.compare_request import Compared
    from app.reports.comparison import ImageMetrics, means

    names = ["input", "A one", "B two"]
    emulated = ROWS[2:] and [
        type(row)(row.name, row.noise, (*row.figures[:2], ImageMetrics(1.0, 0.5)), row.worst) for row in ROWS[2:]
    ]
    written: list[Any] = []
    monkeypatch.setattr("app.reports.comparison_page.write_report", lambda *each: written.append(each))
    for rows in ([*ROWS], emulated):
        monkeypatch.setattr(
            "app.cli.compare_request.compare", lambda request, progress, rows=rows: Compared(names, rows, {})
        )
        done = layerwright("compare", "a.xml", "b.xml", "--images", tmp_path, "--report", tmp_path / "r.html")
        lines = done.out.splitlines()
        noises = list(dict.fromkeys(row.noise for row in rows))
        assert [line.strip() for line in lines if line.strip() in ("n1", "n2")] == noises
        cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
        expected = [[row.name, *texts(row.figures)[:6]] for row in rows]
        shown = [line for line in cells if line[0] not in ("mean", "deviation", "")]
        assert [line[0] for line in shown] == [line[0] for line in expected]
        assert len([line for line in cells if line[0] == "mean"]) == len(noises)
        mean = [each.milliseconds for each in means(rows)]
        times = [
            f"{name} {compare_command_ms(time)} ms" for name, time in zip(names, mean, strict=True) if time == time
        ]
        assert f"mean time: {', '.join(times)}" in lines
        assert written.pop() == (tmp_path / "r.html", "A one and B two", names, rows, {})
        assert lines[-1] == f"wrote {tmp_path / 'r.html'}"
    for option, name in (("--report", "r.txt"), ("--json", "r.txt")):
        assert "unknown-format" in layerwright("compare", "a.xml", "--images", tmp_path, option, name).err
    assert compare_command.compare.__doc__


def compare_command_ms(value: float) -> str:
    from designer.units import digits

    return digits(value)


def test_an_image_for_each_input_of_a_deployment(tmp_path: Path) -> None:
    import numpy as np

    from app.opened_network import open_network
    from designer.files.document import save_document
    from designer.files.settings import Settings, save_settings, settings_path
    from designer.files.variants import CalibrationRecipe, Variant
    from designer.graph.graph import Graph
    from designer.graph.model import Layer, Source
    from designer.runtime.images import write_image

    layers = [Layer(name, "input", params={"dims": "4x3x3"}) for name in "ab"]
    both = Layer("sum", "element_wise", inputs=(Source("a"), Source("b")), params={"operation": "add"})
    save_document(Graph([*layers, both, Layer("out", "output", inputs=(Source("sum"),))], name="n"), tmp_path / "n.xml")
    (tmp_path / "calibration").mkdir()
    for name in ("one.png", "calibration/x.png", "calibration/y.png"):
        write_image(tmp_path / name, np.zeros((1, 3, 3, 4), np.float32))
    calibrated = Variant("v", "int8", calibration=CalibrationRecipe(str(tmp_path / "calibration")))
    for chosen, variant, found in (
        ({}, None, {}),
        ({"a": "one.png"}, None, {"a": "one.png"}),
        ({"a": "one.png", "b": "gone.png"}, calibrated, {"a": "one.png", "b": "calibration/x.png"}),
        ({"a": "gone.png"}, Variant("v", "fp16"), {}),
    ):
        files = {layer: str(tmp_path / name) for layer, name in chosen.items()}
        save_settings(Settings(input_files=files), settings_path(tmp_path / "n.xml"))
        opened: Any = SimpleNamespace(network=open_network(tmp_path / "n.xml"), variant=variant)
        assert export._examples(opened) == {layer: tmp_path / name for layer, name in found.items()}


def test_a_variant_and_an_onnx_file_exclude_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("app.opened_network.open_network", lambda path: ("network", path))
    monkeypatch.setattr("app.variant.open_variant", lambda *each: seen.append(each) or "opened")
    for variant, model in (("half", None), ("", Path("m.onnx")), ("", None)):
        assert export._deployed(Path("n.xml"), Path("w"), 7, variant, model) == "opened"  # type: ignore[comparison-overlap]
    assert seen == [(("network", Path("n.xml")), name, Path("w"), 7, RunOptions()) for name in ("half", "", "")]
    with pytest.raises(DiagnosticError, match="--variant and --onnx both choose the model"):
        export._deployed(Path("n.xml"), None, None, "half", Path("m.onnx"))


@pytest.mark.parametrize(
    ("agrees", "weights", "tensors"), [(True, True, True), (False, False, True), (True, False, False)]
)
def test_an_import_says_what_was_written(
    capsys: pytest.CaptureFixture[str], agrees: bool, weights: bool, tensors: bool
) -> None:
    saved: list[Any] = []
    found: Any = SimpleNamespace(
        save=lambda *each: saved.append(each), weights=SimpleNamespace(tensors={"a": 1} if tensors else {}),
        report=SimpleNamespace(summary=lambda: "4 nodes", agrees=agrees),
    )  # fmt: skip
    target = Path("w") if weights else None
    code = 0
    try:
        import_.write_import(found, Path("o.xml"), target, Path("r.json"))
    except import_.typer.Exit as ended:
        code = ended.exit_code
    said = capsys.readouterr()
    assert (code, saved) == (0 if agrees else 1, [(Path("o.xml"), target, Path("r.json"))])
    assert said.out == "wrote o.xml\n4 nodes\n"
    assert said.err == ("the weights were not written: give --weights DIR\n" if tensors and not weights else "")


@pytest.mark.parametrize(("agrees", "weights"), [(True, "w"), (False, "")])
def test_an_import_of_code_says_what_was_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, agrees: bool, weights: str
) -> None:
    report = SimpleNamespace(summary=lambda: "4 nodes", agrees=agrees)
    monkeypatch.setattr("app.import_process.import_in_process", lambda request, timeout: report)
    code = 0
    try:
        targets = (Path("o.xml"), Path(weights) if weights else None, None)
        import_._import_code("a:b", (), None, targets, verify=True, trust=True, timeout=1.0)
    except import_.typer.Exit as ended:
        code = ended.exit_code
    said = capsys.readouterr()
    assert (code, said.out) == (0 if agrees else 1, "wrote o.xml\n4 nodes\n")
    assert said.err == ("" if weights else "the weights were not written: give --output-weights DIR\n")


def test_files_of_an_import_of_code_are_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[Any] = []
    report = SimpleNamespace(summary=str, agrees=True)
    monkeypatch.setattr(
        "app.import_process.import_in_process", lambda request, timeout: asked.append(request) or report
    )
    targets = (Path("o.xml"), Path("w.pt"), Path("r.json"))
    import_._import_code("a:b", (), Path("s.pt"), targets, verify=False, trust=True, timeout=1.0)
    (request,) = asked
    assert (request.folder, request.verify) == (str(tmp_path), False)
    files = (request.output, request.state, request.weights, request.report)
    assert files == tuple(str(tmp_path / name) for name in ("o.xml", "s.pt", "w.pt", "r.json"))


def test_an_exported_model_says_where_its_weights_are_from(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("exporters.onnx.export_onnx", lambda *_: SimpleNamespace(sizes="any size"))
    target = tmp_path / "m.onnx"
    done = layerwright(
        "export", "onnx", samples.starting_point("autoencoder"), "--output", target, "--random-weights", 4
    )
    first, second = done.out.splitlines()
    assert first.startswith(f"wrote {target} with ")
    assert "seed 4" in first
    assert second == "any size"


def test_what_is_imported_and_where_its_weights_go(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[Any] = []

    class Found:
        def verified(self, registry: Any) -> str:
            return "verified"

    def read(path: Path, registry: Any, options: Any) -> Found:
        seen.append((path, options.sizes))
        return Found()

    monkeypatch.setattr(import_.IMPORTS, "reader", lambda path: read)
    monkeypatch.setattr(import_, "write_import", lambda *each: seen.append(each))
    monkeypatch.setattr(import_, "_import_code", lambda *each, **more: seen.append((*each, more)))
    out = tmp_path / "o.xml"
    layerwright("import", "a.onnx", "-o", out, "--weights", "w", "--input", "a=b=1x3x8x8", "--input", "c=2")
    assert seen == [(Path("a.onnx"), {"a=b": (1, 3, 8, 8), "c": (2,)}), ("verified", out, Path("w"), None)]
    seen.clear()
    layerwright(
        "import", "a.onnx", "-o", out, "--weights", "w", "--output-weights", "v", "--no-verify", "--report", "r.json"
    )
    assert seen[1][1:] == (out, Path("v"), Path("r.json"))
    assert isinstance(seen[1][0], Found)
    seen.clear()
    more = {"verify": True, "trust": True, "timeout": 600.0}
    layerwright("import", "pytorch", "-o", out, "a:b", "--weights", "s.pt", "--trust")
    layerwright("import", "p.pt2", "-o", out, "--output-weights", "v", "--trust")
    assert seen == [
        ("a:b", (), Path("s.pt"), (out, None, None), more),
        ("p.pt2", (), None, (out, Path("v"), None), more),
    ]
    done = layerwright("import", "pytorch", "-o", out)
    assert "the module is missing" in done.err
    for option in ("--weights", "--output-weights"):
        assert "unknown-format" in layerwright("import", "a.onnx", "-o", out, option, "w.txt").err
    assert "unknown-format" in layerwright("import", "a.onnx", "-o", tmp_path / "o.txt").err


def test_runs_of_another_profile_that_are_not_compared_are_named(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [SimpleNamespace(configuration=name) for name in ("a", "b", "c")]
    profile._say_what_is_not_compared(SimpleNamespace(runs=runs), {"b"})  # type: ignore[arg-type]
    lines = capsys.readouterr().err.splitlines()
    assert [line[: len("note: a is not compared:")] for line in lines] == [
        "note: a is not compared:",
        "note: c is not compared:",
    ]


@pytest.mark.parametrize(
    ("state", "text", "failed"),
    [
        (RunState.FINISHED, "finished", False), (RunState.STOPPED, "stopped", False), (RunState.FAILED, "failed", True),
        (RunState.ENDED, "interrupted", True),
    ],
)  # fmt: skip
def test_the_end_of_each_trial_is_printed(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: RunState, text: str, failed: bool
) -> None:
    def conduct(made: Any, waiting: Any, place: Any, ended: Any) -> None:
        ended(made.trials[1], state, "why it ended")

    monkeypatch.setattr("app.engine.sweep_process.conduct", conduct)
    monkeypatch.setattr("app.engine.sweep_job.prepare", lambda made, *_: [made.trials[1]])
    printed: list[Any] = []
    monkeypatch.setattr(sweep, "_print", printed.append)
    path = samples.path("denoiser.xml")
    done = layerwright("sweep", path, "--grid", "lr=0.1,0.2", "--grid", "steps=1,2", "--output", tmp_path / "s")
    said = f"trial_002 (lr 0.1, steps 2) {text}" + (": why it ended" if failed else "")
    first = f"4 trials, 3 finished before: {tmp_path / 's'}"
    assert done.out.splitlines() == [first, *([] if failed else [said])]
    assert done.err.splitlines() == ([said] if failed else [])
    assert done.code == (1 if failed else 0)
    assert len(printed) == 1


def test_the_results_of_a_sweep_are_a_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [
        {"trial": "trial_002", "lr": "0.1", "state": "finished", "metric": "psnr", "value": 31.23456, "step": 5, "message": "m", "run": "/x"},
        {"trial": "trial_001", "lr": "0.2", "state": "failed", "metric": "", "value": None, "step": 0, "message": "why", "run": "/y"},
    ]  # fmt: skip
    made: Any = SimpleNamespace(
        write=lambda: [SimpleNamespace(row=lambda row=row: row) for row in rows], folder=tmp_path
    )
    sweep._print(made)
    lines = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    assert cells == [
        ["trial_002", "0.1", "finished", "psnr", "31.23", "5"],
        ["trial_001", "0.2", "failed", "", "", "0"],
    ]
    assert lines[-1] == f"results are in {tmp_path / 'results.csv'}"


# --- agreement to code ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["yes", " YES \n", "y", "no", ""])
@pytest.mark.parametrize("terminal", [True, False])
def test_code_is_agreed_to_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, terminal: bool
) -> None:
    texts = {"a = 1\n\x1b[31mb": "one", "c": "two"}
    agreed: list[Any] = []
    monkeypatch.setattr(trust, "agreed", lambda: {"f" * 64})
    monkeypatch.setattr(trust, "agree", agreed.append)
    monkeypatch.setattr(
        trust,
        "not_agreed",
        lambda graph, registry, known: {t: n for t, n in texts.items() if trust.digest(t) not in known},
    )
    lines = iter([answer, "yes"])
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: terminal, readline=lambda: next(lines)))
    network: Any = SimpleNamespace(graph=None, registry=None)
    digests = [trust.digest(text) for text in texts]
    if terminal and answer.strip().lower() == "yes":
        options = trust.with_trust(network, RunOptions(threads=3), ["ask"])
        assert options == RunOptions(threads=3, agreed=tuple(sorted(("f" * 64, *digests))))
        assert agreed == [[text] for text in texts]
    else:
        with pytest.raises(DiagnosticError) as failed:
            trust.with_trust(network, RunOptions(), ["ask"])
        refused = ["one"] if terminal else ["one", "two"]
        assert [finding.layer for finding in failed.value.diagnostics] == refused
        found = failed.value.diagnostics[0]
        assert (found.code, found.parameter) == ("not-agreed", "source")
        assert digests[0] in found.remedy
    said = capsys.readouterr().out
    assert ("   1 | a = 1\n   2 | " in said) is terminal
    assert "\x1b" not in said
    options = trust.with_trust(network, RunOptions(), [*digests])
    assert options.agreed == tuple(sorted(("f" * 64, *digests)))
    for wrong in ("abc", "g" * 64, ""):
        with pytest.raises(DiagnosticError, match="this is not a SHA-256 digest"):
            trust.with_trust(network, RunOptions(), [wrong])


def test_signals_are_handled_again_after_the_command_to_stop() -> None:
    from app.cli import train

    before = signal.getsignal(signal.SIGINT)
    with train._without_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, ""),
        (("nan", 0.25, ""), "warning: NaN is first in 'log' (25.0 % of its values). Outputs can be wrong, even if they are finite"),
        (("inf", 0.5, "by its input"), "warning: infinity is first in 'log' (50.0 % of its values); by its input. Outputs can be wrong, even if they are finite"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("hidden", [True, False])
def test_the_first_layer_that_is_not_finite_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], found: Any, said: str, hidden: bool
) -> None:
    import numpy as np

    traced: list[Any] = []
    one = SimpleNamespace(kind=found[0], share=found[1]) if found else None
    trace = SimpleNamespace(found=one, layer="log", note=found[2] if found else "")
    monkeypatch.setattr(run_request, "trace_nonfinite", lambda session: traced.append(session) or trace)
    array = np.array([1.0 if hidden else np.nan], np.float32)
    result: Any = SimpleNamespace(
        hidden={"log": 1} if hidden else {}, outputs={"out": np.ones(2, np.float32), "bad": array}
    )
    run_request._warn_of_nonfinite("session", result)  # type: ignore[arg-type]
    assert traced == ["session"]
    assert capsys.readouterr().err == (f"{said}\n" if said else "")
    result.hidden, result.outputs = {}, {"out": np.ones(2, np.float32)}
    run_request._warn_of_nonfinite("session", result)  # type: ignore[arg-type]
    assert traced == ["session"]


@pytest.mark.parametrize(
    ("padding", "said"), [(None, ""), (((3, 4), (8, 16)), "  (of the input padded from 4 x 3 to 16 x 8)")]
)
def test_padding_of_a_captured_layer_is_width_first(padding: Any, said: str) -> None:
    session: Any = SimpleNamespace(padding=lambda source: padding)
    assert run_request._padding_note(session, None) == said  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "before", "skipped", "said"),
    [
        (8, 0, 0, "8 images at 4 images per second, including reading and writing, 0 skipped"),
        (8, 3, 1, "8 images at 4 images per second, including reading and writing, 3 were finished before, 1 skipped"),
        (0, 3, 0, "0 images, including reading and writing, 3 were finished before, 0 skipped"),
    ],
)
@pytest.mark.parametrize("cluster", ["", "here:1"])
def test_what_is_said_of_a_job_on_folders(
    monkeypatch: pytest.MonkeyPatch, written: int, before: int, skipped: int, said: str, cluster: str
) -> None:
    from app.cli.run_request import RunArguments
    from app.engine.folder_job import FolderDone, FolderJob
    from app.engine.video_job import VideoJob

    calls: list[Any] = []
    done = FolderDone(written, before, dict.fromkeys(["a.png"] * skipped, "it is broken"), 2.0, ("a note",))
    monkeypatch.setattr(run_request, "job_key", lambda *each: each)
    monkeypatch.setattr(run_request, "process_folders", lambda *each: calls.append(each) or done)
    monkeypatch.setattr(run_request, "process_on_cluster", lambda *each: calls.append(each) or done)
    session: Any = SimpleNamespace(weights=SimpleNamespace(sha256="digest"))
    request = RunArguments(
        Path("n.xml"), inputs={"x": Path("in")}, outputs=[("y", Path("out"))], video=VideoJob({}, {}, 2, 9, kind=".npy"), cluster=cluster,
        progress=print,
    )  # fmt: skip
    lines: list[str] = []

    def run() -> None:
        lines.extend(run_request._run_folders(session, "a variant", request))  # type: ignore[arg-type]

    if skipped:
        with pytest.raises(DiagnosticError) as failed:
            run()
        assert [(d.file, d.message) for d in failed.value.diagnostics] == [("a.png", "it is broken")]
    else:
        run()
    assert lines == ["note: a note", "y -> out", said]
    job = FolderJob({"x": Path("in")}, {"y": Path("out")}, 2, 9, ".npy")
    key = (session, "digest", "a variant")
    assert calls == [(*([cluster] if cluster else []), session, job, key, print)]


# --- files that cannot be written ------------------------------------------------------------------------------------


def test_pruned_weights_replace_nothing_and_leave_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Weights are written to a temporary folder next to their own, read again and checked; only then they are moved."""
    from app.cli import prune
    from designer.files.weights import WeightKey, Weights, load_weights
    from designer.operators.api import Weight

    network: Any = SimpleNamespace(inference="inference")
    found: Any = ("candidates",)
    counts: dict[str, int] = {}
    checked: list[Any] = []
    monkeypatch.setattr("designer.files.weights.required_weights", lambda inference: needed)
    monkeypatch.setattr(
        "designer.surgery.sparsity.check_sparse", lambda one, weights: checked.append((one, weights)) or counts
    )
    import numpy as np

    key = WeightKey("conv", "kernel")
    weights = Weights({key: np.arange(4, dtype=np.float32)})
    needed = {key: Weight("kernel", (4,), "weight")}

    def said(output: Path) -> tuple[str, str, str, str | None]:
        with pytest.raises(DiagnosticError) as failed:
            prune._save(network, weights, output, found)
        (one,) = failed.value.diagnostics
        return one.code, one.message, one.remedy, one.layer

    for name in ("w", "deep/er/w", "w.safetensors"):
        stored = prune._save(network, weights, tmp_path / name, found)
        assert stored.tensors[key].tolist() == [0, 1, 2, 3]
        assert load_weights(tmp_path / name, needed).tensors[key].tolist() == [0, 1, 2, 3]
        assert checked.pop() == (found, stored)
        assert (tmp_path / name).is_file() is name.endswith(".safetensors")
    assert said(tmp_path / "w") == (
        "folder-not-empty", f"{tmp_path / 'w'} has files; nothing was changed", "choose a new folder", None
    )  # fmt: skip
    (tmp_path / "empty").mkdir()
    prune._save(network, weights, tmp_path / "empty", found)
    counts.update({"first": 0, "second": 3, "third": 1})
    before = sorted(path.name for path in tmp_path.iterdir())
    assert said(tmp_path / "new") == (
        "not-sparse", "'second' is not 2:4 sparse", "report this network as a bug", "second"
    )  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == before

    def full(**given: Any) -> Any:
        assert given == {"prefix": ".lw-prune-", "dir": tmp_path}
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(prune.tempfile, "mkdtemp", full)
    assert said(tmp_path / "new")[:3] == (
        "cannot-save", f"{tmp_path / 'new'} cannot be written: No space left on device",
        "choose a writable folder on a disk with free space",
    )  # fmt: skip


def test_the_changes_of_edited_files_are_printed_before_they_are_refused(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from exporters.pytorch import EditedFilesError

    class Edited(EditedFilesError):
        def __init__(self) -> None:
            DiagnosticError.__init__(self, [trust.Diagnostic("edited-files", "model.py has changes of yours")])
            self.diffs = {"model.py": "-a\n+b [bold]", "train.py": "-c"}

    def refused(*_: Any, **__: Any) -> Any:
        raise Edited

    monkeypatch.setattr("exporters.pytorch.export_project", refused)
    done = layerwright("export", "pytorch", samples.path("denoiser.xml"), "--output", tmp_path / "p")
    assert (done.code, done.out) == (1, "-a\n+b [bold]\n-c\n")
    assert "model.py has changes of yours" in done.err


@pytest.mark.parametrize(("model", "note"), [("denoiser.xml", ""), ("autoencoder", " with random weights (seed 3)")])
def test_an_engine_is_listed_with_the_command_that_builds_it(
    layerwright: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: str, note: str
) -> None:
    from exporters.tensorrt import EngineFile

    made = EngineFile(
        "0", "tensorrt", "10.1", "net", {"image": ((1, 3), (2, 3), (4, 3))}, False, 1.5, "trtexec --x", (), {}
    )
    monkeypatch.setattr("exporters.tensorrt.export_tensorrt", lambda *_, **__: made)
    output = tmp_path / "a.engine"
    network = samples.path(model) if model.endswith(".xml") else samples.starting_point(model)
    done = layerwright("export", "tensorrt", network, "-o", output, "--random-weights", 3)
    assert done.code == 0, done.err
    assert [line.strip() for line in done.out.splitlines()] == [
        "tensorrt 10.1: 0 layers, 0 of them fused; built in 1.50 s", "image: 1 x 3 to 4 x 3, optimized for 2 x 3",
        f"wrote {output}{note}", "trtexec --x",
    ]  # fmt: skip


def test_the_tour_says_which_page_to_open(layerwright: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []
    page = tmp_path / "tour.html"
    monkeypatch.setattr("app.reports.tour.run_tour", lambda folder, out, steps: asked.append((folder, steps)) or page)
    for more, steps in (((), 150), (("--steps", 7), 7)):
        assert layerwright("tour", tmp_path, *more) == (0, f"open {page}\n", "")
        assert asked.pop() == (tmp_path, steps)
