"""Settings files as text: what is written, and what is made of each setting when it is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest
from recorded import check_recorded

from designer.files.settings import (
    Settings,
    find_settings,
    read_settings,
    save_settings,
    settings_path,
    stored_settings,
    write_settings,
)
from designer.files.variants import BY_HAND, CalibrationRecipe, Variant
from designer.graph.diagnostics import Diagnostic, DiagnosticError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="paths are written as on Linux")


FULL = Settings(
    precision="bf16",
    layout="nhwc",
    engine="torch",
    device="cuda:1",
    threads=3,
    tile=0,
    weights="/a/b/weights.pt",
    random_seed=0,
    input_files={"in 2": "pattern:noise", "in/1": "/a/b/photo.png", "in_3": "camera:0"},
    output_files={'o"<&>': "/a/c/o.npy"},
    iterations=1,
    profiling=True,
    profiling_sections={"Memory": False, "Caches": True},
    variants=(
        Variant("first", "fp16", {"z": "fp32", "a.b": "bf16"}, "2:4", "tensorrt", ("fold", "fuse"), "/a/b/pruned.pt"),
        Variant(
            "second",
            "int8",
            reasons={"z": BY_HAND, "y": "first layer"},
            calibration=CalibrationRecipe("/a/photos", 7, "64x48", "percentile", 99.5, "qdq"),
            extra={"later": "1"},
        ),
        Variant("third", "int8", calibration=CalibrationRecipe()),
    ),
    variant="second",
    project="/a/b/project",
    task="denoising",
    recipe={"lr": "0.1", "stop_on": ""},
    extra={"Later/Thing": " kept\n", "GeneralNetworkSettings/dataType": "old"},
)


GENERAL, INFERENCE = "GeneralNetworkSettings/", "InferenceSettings/"
READ = [
    *((GENERAL + "dataType", text) for text in ("fp32", "fp16", "bf16", "int8", "FP16", "", "x" * 60)),
    *((GENERAL + "format", text) for text in ("nchw", "nhwc", "NHWC", "")),
    *((GENERAL + "backend", text) for text in ("torch", "my_2", "a" * 64, "a" * 65, "Torch", "2a", "a-b", "")),
    *((GENERAL + "device", text) for text in ("cuda:0", "")),
    *((GENERAL + "variant", text) for text in ("half", "")),
    *((GENERAL + "threads", text) for text in ("0", "1024", "1025", "-1")),
    *((GENERAL + "tile", text) for text in ("0", "65536", "65537")),
    *((GENERAL + "randomWeightsSeed", text) for text in ("0", "2147483647", "2147483648")),
    *((INFERENCE + "iterations", text) for text in ("1", "1000000", "0", "y" * 60)),
    *((INFERENCE + "enableProfiling", text) for text in ("true", " True ", "1", "false", "0", "")),
    *(
        (GENERAL + "weights", text)
        for text in (
            "",
            "w.pt",
            "../w",
            "./a//b/../w.pt",
            "/abs/./w.pt",
            r"C:\w.pt",
            "C:/w.pt",
            r"sub\w.pt",
            r"..\w.pt",
            r"there\is.pt",
            r"\\host\share\w.pt",
            "pattern:noise",
            "camera:/dev/video2",
            "patterns:x",
        )
    ),
    ("TrainingSettings/project", "../project"),
    ("TrainingSettings/project", ""),
    ("TrainingSettings/task", "denoising"),
    ("TrainingSettings/recipe/lr", "0.1"),
    ("TrainingSettings/recipe/lr", ""),
    ("TrainingSettings/other", "1"),
    (INFERENCE + "inputFiles/a/b", "x.png"),
    (INFERENCE + "inputFiles/a", ""),
    (INFERENCE + "inputFiles/a", "camera:0"),
    (INFERENCE + "inputFiles/a", "pattern:bars"),
    (INFERENCE + "outputFiles/a", r"out\x.png"),
    (INFERENCE + "outputFiles/a", ""),
    (INFERENCE + "profilingSections/Memory", "true"),
    (INFERENCE + "profilingSections/Memory", ""),
    ("Later/Thing", ""),
    ("", "nameless"),
    ("Variants/0/name", "half"),
    ("Variants/0/weights", "../w.pt"),
    ("Variants/0/weights", ""),
    ("Variants/0/passes", ""),
    ("Variants/0/passes", "a,,b,"),
    ("Variants/0/passes", "a"),
    ("Variants/0/sparsity", "2:4"),
    ("Variants/0/engine", "torch"),
    ("Variants/0/formats/a/b", "fp32"),
    ("Variants/0/reasons/a", ""),
    ("Variants/0/later", "1"),
    ("Variants/0/calibration/count", "3"),
    ("Variants/999999/name", "last"),
    ("Variants/1000000/name", "too far"),
    ("Variants/0", "no part"),
    ("Variants/-1/name", "negative"),
    ("Variants/²/name", "not a digit"),
    ("Other/0/name", "x"),
]


def told(found: Diagnostic) -> str:
    where = ", ".join(f"{name} {getattr(found, name)!r}" for name in ("line", "file") if getattr(found, name))
    return f"{found.severity.value} {found.code} ({where}): {found.message} - {found.remedy}"


def changed(settings: Settings) -> Iterator[str]:
    """The fields that differ from the defaults."""
    default = Settings()
    for field in fields(settings):
        value = getattr(settings, field.name)
        if value != getattr(default, field.name):
            yield f"  {field.name} = {value!r}"


def test_the_text_of_a_settings_file_is_as_recorded() -> None:
    texts = [write_settings(settings, Path("/a/b")).decode() for settings in (Settings(), FULL)]
    check_recorded("documents/settings_written.txt", "\n".join(texts))


def test_each_setting_is_read_as_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    (folder / r"there\is.pt").parent.mkdir()
    (folder / r"there\is.pt").write_text("")
    found = []
    for name, text in READ:
        for ending in (".settings.xml", ".nv-editor-cfg"):
            path = folder / f"x{ending}"
            path.write_text(f'<QSettings version="1">\n\n<Setting name="{name}">{text}</Setting></QSettings>')
            read = read_settings(path)
            lines = [*changed(read.settings), *(f"  {told(each)}" for each in read.diagnostics)]
            if ending.startswith(".s"):
                ours = lines
                found += [f"{name} = {text!r}", *lines]
            elif lines != [line.replace(".settings.xml", ending) for line in ours]:
                found += ["  -- of the 2022 tool:", *lines]
    text = "\n".join([*found, ""]).replace(str(tmp_path), "...")
    check_recorded("documents/settings_read.txt", text)


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        ({"dataType": "fp16"}, "fp16"),
        ({"backend": "cuda", "device": "1"}, "fp32 cuda 1"),
        ({"dataType": "fp16", "backend": "cpu", "device": ""}, "fp16 cpu"),
        ({"dataType": "", "backend": "", "device": "0"}, None),
        ({"dataType": "", "backend": "cuda", "device": "d" * 50}, f"fp32 cuda {'d' * 40}"),
        ({"dataType": "fp32", "backend": "", "device": "0"}, None),
        ({"backend": "cpu", "device": "0"}, None),
    ],
)
def test_what_the_2022_tool_requested_is_named(tmp_path: Path, texts: dict[str, str], wanted: str | None) -> None:
    path = tmp_path / "x.nv-editor-cfg"
    settings = "".join(f'<Setting name="{GENERAL}{name}">{text}</Setting>' for name, text in texts.items())
    path.write_text(f'<QSettings version="1">{settings}</QSettings>')
    read = read_settings(path)
    message = f"the settings of the 2022 tool request {wanted}; the network runs in fp32 with onnxruntime on the CPU"
    remedy = "choose engine, device and precision in Network Settings; saving keeps them"
    expected = [f"warning settings-adapted (file {str(path)!r}): {message} - {remedy}"] if wanted is not None else []
    assert [told(found) for found in read.diagnostics] == expected
    assert read.settings == Settings()


def test_other_elements_and_versions_are_not_settings(tmp_path: Path) -> None:
    path = tmp_path / "x.settings.xml"
    path.write_text(
        f'<QSettings version="1"><Other name="{GENERAL}device">a</Other><q:Setting name="{GENERAL}device">b</q:Setting>'
        f'text<Setting name="{GENERAL}variant">a<b>c</b>d</Setting><Setting>e</Setting></QSettings>'
    )
    assert read_settings(path) == (Settings(variant="ad"), ())
    for text in ('<QSettings version="2"/>', "<QSettings/>", '<QSettings version=""/>', '<Q version="1"/>'):
        path.write_text(f"\n{text}")
        read = read_settings(path)
        message = "x.settings.xml is not a settings file of version 1 (QSettings); the default settings are used"
        assert read.settings == Settings()
        assert [told(found) for found in read.diagnostics] == [
            f"warning wrong-version (line 2, file {str(path)!r}): {message} - choose another file; saving replaces it"
        ]


def test_a_file_that_is_not_xml_or_is_missing_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.settings.xml"
    path.write_text("<QSettings>\n<")
    [found] = read_settings(path).diagnostics
    assert told(found) == (
        f"warning truncated (line 2, file {str(path)!r}): the file ends too early (unclosed token); the default settings "
        "are used - restore it from a copy or save it again"
    )
    [missing] = read_settings(tmp_path / "none.settings.xml").diagnostics
    assert (missing.code, missing.line) == ("cannot-read", None)
    path.write_bytes(b"x" * (4 * 1024 * 1024 + 1))
    [large] = read_settings(path).diagnostics
    assert large.code == "file-too-large"


def test_our_settings_file_is_found_before_that_of_the_2022_tool(tmp_path: Path) -> None:
    document = tmp_path / "net.xml"
    assert stored_settings(document) == (Settings(), ())
    old, ours = tmp_path / "net.nv-editor-cfg", tmp_path / "net.settings.xml"
    old.write_text(f'<QSettings version="1"><Setting name="{GENERAL}variant">old</Setting></QSettings>')
    assert find_settings(document) == old
    assert stored_settings(document).settings.variant == "old"
    ours.mkdir()
    assert find_settings(document) == old
    ours.rmdir()
    save_settings(Settings(variant="ours"), settings_path(document))
    assert find_settings(document) == ours
    assert stored_settings(document).settings.variant == "ours"
    ours.write_text("<QSettings")
    assert [found.code for found in stored_settings(document).diagnostics] == ["truncated"]


def test_only_layers_of_the_network_keep_files_formats_and_reasons(tmp_path: Path) -> None:
    formats = {"a": "fp32", "b": "fp16", "use.inner": "bf16", "gone.inner": "fp32"}
    variant = Variant("v", formats=formats, reasons={"a": "1", "b": "2", "use.inner": "3", "only": "4"})
    settings = replace(
        FULL, input_files={"a": "/x", "b": "/y"}, output_files={"b": "/x", "a": "/z"}, variants=(variant,)
    )
    kept = replace(variant, formats={"a": "fp32", "use.inner": "bf16"}, reasons={"a": "1", "use.inner": "3"})
    expected = replace(settings, input_files={"a": "/x"}, output_files={"a": "/z"}, variants=(kept,))
    assert settings.pruned({"a", "use"}) == expected
    path = tmp_path / "x.settings.xml"
    save_settings(settings, path, {"a", "use"})
    read = read_settings(path).settings
    assert read == replace(expected, extra={"Later/Thing": " kept\n"})
    save_settings(settings, path)
    assert read_settings(path).settings == replace(settings, extra={"Later/Thing": " kept\n"})


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (Settings(extra={"a\x01": "b"}), "a\x01"),
        (Settings(extra={"a": "b\x01"}), "a"),
        (Settings(input_files={"x": "/a\x01"}), "InferenceSettings/inputFiles/x"),
    ],
)
def test_control_characters_are_refused_with_the_name_of_the_setting(settings: Settings, name: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        write_settings(settings, Path("/"))
    [found] = caught.value.diagnostics
    assert (found.code, found.message, found.remedy) == (
        "cannot-save",
        f"the setting '{name}' contains a control character",
        "remove the character",
    )


def test_the_variant_that_runs_is_the_one_of_its_name() -> None:
    settings = Settings(variants=(Variant("half 2"), Variant("half"), Variant("")), variant="half")
    assert settings.current_variant is settings.variants[1]
    assert replace(settings, variant="other").current_variant is None
    assert replace(settings, variant="").current_variant is settings.variants[2]
    assert replace(settings, variants=(), variant="").current_variant is None


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_each_setting_alone_comes_back(name: str, tmp_path: Path) -> None:
    value = getattr(FULL, name) if name != "extra" else {"Later/Thing": "kept"}
    settings = replace(Settings(), **{name: value})
    assert settings != Settings()
    save_settings(settings, tmp_path / "x.settings.xml")
    assert read_settings(tmp_path / "x.settings.xml") == (settings, ())


def test_paths_are_relative_to_the_folder_of_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    path = Path("link") / "x.settings.xml"
    save_settings(Settings(weights=str(tmp_path / "link" / "w"), project="relative/path"), path)
    assert f'{GENERAL}weights" type="variant">w<' in path.read_text()
    read = read_settings(path).settings
    assert read.weights == str(tmp_path / "link" / "w")
    assert read.project == str(tmp_path / "link" / "relative" / "path")
