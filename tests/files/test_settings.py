"""Settings next to a document: our file, the 2022 tool's file, relative paths, pruning."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from designer.files.settings import (
    ADAPTED,
    Settings,
    find_settings,
    read_settings,
    save_settings,
    settings_path,
)
from designer.files.variants import BY_HAND, CalibrationRecipe, Variant
from designer.graph.diagnostics import DiagnosticError

OLD = Path(__file__).parent.parent / "data" / "good" / "unet_2022.nv-editor-cfg"


def test_settings_lie_beside_the_document() -> None:
    assert settings_path(Path("a/b/x.xml")) == Path("a/b/x.settings.xml")
    assert settings_path("x.y.nv-neural-model") == Path("x.y.settings.xml")


def test_settings_come_back_as_they_were(tmp_path: Path) -> None:
    settings = Settings(
        precision="fp16",
        layout="nhwc",
        engine="torch",
        device="cuda:1",
        threads=3,
        tile=512,
        random_seed=0,
        weights=str(tmp_path / "weights"),
        input_files={"picture": str(tmp_path.parent / 'a "b" <c> & d.png')},
        output_files={"result 1": str(tmp_path / "out" / "x.png")},
        iterations=3,
        profiling=True,
        profiling_sections={"Memory": True, "Tensor": False},
        variants=(
            Variant("half", "fp16", {"middle": "float32", "group.inner": "bfloat16"}, weights=str(tmp_path / "w 2")),
            Variant(
                "int8",
                "int8",
                {"a": "float32"},
                reasons={"a": "first layer", "b": BY_HAND},
                calibration=CalibrationRecipe(str(tmp_path / "photos"), 8, "64x48", "percentile", 99.9),
            ),
            Variant("later", "fp8", passes=("fold", "unknown"), extra={"of a newer version": "kept", "more/x": ""}),
        ),
        variant="later",
        extra={"Later/Thing": "kept"},
    )
    path = tmp_path / "x.settings.xml"
    save_settings(settings, path)
    assert read_settings(path) == (settings, ())
    text = path.read_text("utf-8")
    assert str(tmp_path) not in text
    assert ">weights<" in text
    assert ">../a " in text


def test_an_empty_setting_of_a_recipe_is_not_its_default(tmp_path: Path) -> None:
    save_settings(Settings(recipe={"stop_on": "", "lr": "0.1"}), tmp_path / "net.settings.xml")
    assert read_settings(tmp_path / "net.settings.xml").settings.recipe == {"stop_on": "", "lr": "0.1"}


def test_paths_follow_a_folder_that_was_moved(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    save_settings(Settings(weights=str(first / "w")), first / "x.settings.xml")
    shutil.move(first, second)
    assert read_settings(second / "x.settings.xml").settings.weights == str(second / "w")


def test_files_of_layers_that_are_gone_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.settings.xml"
    half = Variant("half", "fp16", {"a": "float32", "a.inner": "float32", "b": "float32"})
    settings = Settings(input_files={"a": "/x", "b": "/y"}, output_files={"c": "/z"}, variants=(half,))
    save_settings(settings, path, layers={"a"})
    read = read_settings(path).settings
    assert set(read.variants[0].formats) == {"a", "a.inner"}
    assert set(read.input_files) == {"a"}
    assert not read.output_files


@pytest.mark.skipif(os.name == "nt", reason="a drive letter is a path of this system there")
def test_the_settings_of_the_2022_tool_are_read(tmp_path: Path) -> None:
    document = tmp_path / "net" / "unet_2022.nv-neural-model"
    document.parent.mkdir()
    copied = document.with_suffix(".nv-editor-cfg")
    copied.write_bytes(OLD.read_bytes())
    assert find_settings(document) == copied
    settings, found = read_settings(copied)
    (finding,) = found
    assert finding.code == ADAPTED
    assert "fp16 cuda 0" in finding.message
    assert "fp32 with onnxruntime on the CPU" in finding.message
    assert (settings.precision, settings.layout, settings.iterations) == ("fp32", "nhwc", 25)
    assert (settings.engine, settings.device) == ("onnxruntime", "cpu")
    assert settings.weights == str(tmp_path / "weights" / "small")
    assert settings.input_files == {"picture": "E:\\photos\\cat.png", "gone": str(document.parent / "old.png")}
    assert settings.output_files == {"result": str(document.parent / "out.png")}
    assert settings.profiling
    assert settings.profiling_sections == {"CommonGPUUtilization": False, "Memory": True}
    assert settings.extra == {}
    save_settings(settings, settings_path(document), layers={"picture", "result"})
    assert find_settings(document) == settings_path(document)
    again = read_settings(settings_path(document)).settings
    assert again == settings.pruned({"picture", "result"})


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty-file"),
        (b"<QSettings", "truncated"),
        (b'<!DOCTYPE a><QSettings version="1"/>', "dtd"),
        (b'<QSettings version="2"/>', "wrong-version"),
        (b"<Settings/>", "wrong-version"),
    ],
)
def test_bad_settings_give_defaults_and_a_warning(tmp_path: Path, data: bytes, code: str) -> None:
    path = tmp_path / "x.settings.xml"
    path.write_bytes(data)
    settings, found = read_settings(path)
    assert settings == Settings()
    assert [d.code for d in found] == [code]
    assert "default settings" in found[0].message


def test_bad_values_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.settings.xml"
    path.write_text(
        '<QSettings version="1">\n'
        '<Setting name="GeneralNetworkSettings/dataType">fp7</Setting>\n'
        '<Setting name="InferenceSettings/iterations">-4</Setting>\n'
        '<Setting name="GeneralNetworkSettings/threads">many</Setting>\n'
        '<Setting name="GeneralNetworkSettings/format">nhwc</Setting>\n'
        "</QSettings>\n"
    )
    settings, found = read_settings(path)
    assert settings == Settings(layout="nhwc")
    assert [(d.code, d.line) for d in found] == [("bad-setting", 2), ("bad-setting", 3), ("bad-setting", 4)]


def test_a_missing_file_gives_defaults(tmp_path: Path) -> None:
    assert read_settings(tmp_path / "none.settings.xml").settings == Settings()
    assert find_settings(tmp_path / "none.xml") is None


def test_names_and_paths_too_long_for_the_disk_have_no_settings(tmp_path: Path) -> None:
    document = tmp_path / f"{'n' * 247}.xml"  # x.settings.xml would have 260 letters
    assert find_settings(document) is None
    with pytest.raises(DiagnosticError) as caught:
        save_settings(Settings(), settings_path(document))
    assert caught.value.diagnostics[0].remedy == "choose a shorter name"
    path = tmp_path / "a.settings.xml"
    path.write_text(f"""<QSettings version="1">
<Setting name="GeneralNetworkSettings/weights" type="variant">{"a" * 300}{chr(92)}b</Setting></QSettings>""")
    assert read_settings(path).settings.weights == str(tmp_path / ("a" * 300) / "b")


def test_variants_without_a_name_of_their_own_get_one(tmp_path: Path) -> None:
    path = tmp_path / "x.settings.xml"
    lines = [
        '<Setting name="Variants/7/name" type="variant">half</Setting>',
        '<Setting name="Variants/2/precision" type="variant">bf16</Setting>',
        '<Setting name="Variants/3/name" type="variant">half</Setting>',
        '<Setting name="Variants/none/name" type="variant">of a newer version</Setting>',
    ]
    path.write_text(f'<QSettings version="1">{"".join(lines)}</QSettings>')
    settings, found = read_settings(path)
    assert [variant.name for variant in settings.variants] == ["variant", "half", "half 2"]
    assert settings.variants[0].precision == "bf16"
    assert settings.extra == {"Variants/none/name": "of a newer version"}
    assert not found


def setting(tmp_path: Path, name: str, text: str, ending: str = ".settings.xml") -> tuple[Settings, list[str]]:
    path = tmp_path / f"x{ending}"
    path.write_text(f'<QSettings version="1"><Setting name="{name}">{text}</Setting></QSettings>')
    read = read_settings(path)
    return read.settings, [finding.message for finding in read.diagnostics]


@pytest.mark.parametrize(
    ("name", "field", "low", "high"),
    [
        ("InferenceSettings/iterations", "iterations", 1, 1_000_000),
        ("GeneralNetworkSettings/tile", "tile", 0, 65536),
        ("GeneralNetworkSettings/threads", "threads", 0, 1024),
        ("GeneralNetworkSettings/randomWeightsSeed", "random_seed", 0, 2**31 - 1),
    ],
)
def test_numbers_have_limits(tmp_path: Path, name: str, field: str, low: int, high: int) -> None:
    default = getattr(Settings(), field)
    for number in (low, high):
        settings, found = setting(tmp_path, name, str(number))
        assert (getattr(settings, field), found) == (number, [])
    for text in (str(low - 1), str(high + 1), "", "1.5", "x", "²", "0" * 12):
        settings, found = setting(tmp_path, name, text)
        assert getattr(settings, field) == default
        assert found == [f"'{text}' is not a valid number for {field}; the default is used"]


def test_other_values_of_choices_and_engines_are_reported(tmp_path: Path) -> None:
    settings, found = setting(tmp_path, "GeneralNetworkSettings/dataType", "fp64")
    assert (settings.precision, found) == ("fp32", ["'fp64' is not a valid precision; fp32 is used"])
    settings, found = setting(tmp_path, "GeneralNetworkSettings/format", "nhwc")
    assert (settings.layout, found) == ("nhwc", [])
    settings, found = setting(tmp_path, "GeneralNetworkSettings/backend", "my_engine2")
    assert (settings.engine, found) == ("my_engine2", [])
    for text in ("2engine", "Engine", "a" * 65, ""):
        settings, found = setting(tmp_path, "GeneralNetworkSettings/backend", text)
        assert settings.engine == "onnxruntime"
        assert found == [f"'{text[:40]}' is not the name of an engine; onnxruntime is used"]


@pytest.mark.parametrize(("text", "on"), [("true", True), (" TRUE ", True), ("1", True), ("0", False), ("yes", False)])
def test_switches(tmp_path: Path, text: str, on: bool) -> None:
    assert setting(tmp_path, "InferenceSettings/enableProfiling", text)[0].profiling is on
    sections = setting(tmp_path, "InferenceSettings/profilingSections/Memory", text)[0].profiling_sections
    assert sections == {"Memory": on}


def test_unknown_settings_are_kept_of_our_files_only(tmp_path: Path) -> None:
    assert setting(tmp_path, "Later/Thing", "kept")[0].extra == {"Later/Thing": "kept"}
    assert setting(tmp_path, "", "nameless")[0].extra == {}
    assert setting(tmp_path, "Later/Thing", "kept", ".nv-editor-cfg")[0].extra == {}


@pytest.mark.parametrize(
    ("name", "text", "adapted"),
    [
        ("dataType", "fp32", False),
        ("dataType", "fp16", True),
        ("backend", "cpu", False),
        ("backend", "cuda", True),
        ("device", "0", False),
    ],
)
def test_what_of_the_2022_tool_runs_differently(tmp_path: Path, name: str, text: str, adapted: bool) -> None:
    settings, found = setting(tmp_path, f"GeneralNetworkSettings/{name}", text, ".nv-editor-cfg")
    assert bool(found) is adapted
    assert (settings.precision, settings.engine, settings.device) == ("fp32", "onnxruntime", "cpu")


def test_a_format_that_the_user_chose_is_known() -> None:
    found = Variant("a", formats={"x": "float32", "y": "float32"}, reasons={"x": "first", "y": "overflow"})
    assert not found.by_hand
    chosen = Variant("a", formats=found.formats, reasons={"x": "first", "y": BY_HAND})
    assert chosen.by_hand
    rest = chosen.without(["y", "z"])
    assert (rest.formats, rest.reasons, rest.by_hand) == ({"x": "float32"}, {"x": "first"}, False)


def test_variants_without_their_own_names_get_numbers(tmp_path: Path) -> None:
    lines = [
        ("2/name", "a"),
        ("0/precision", "fp16"),
        ("10/name", "a"),
        ("1/name", "a"),
        ("11/name", ""),
        ("x/name", "b"),
    ]
    text = "".join(f'<Setting name="Variants/{name}">{value}</Setting>' for name, value in lines)
    (tmp_path / "x.settings.xml").write_text(f'<QSettings version="1">{text}</QSettings>')
    settings = read_settings(tmp_path / "x.settings.xml").settings
    assert [(v.name, v.precision) for v in settings.variants] == [
        ("variant", "fp16"),
        ("a", "fp32"),
        ("a 2", "fp32"),
        ("a 3", "fp32"),
        ("variant 2", "fp32"),
    ]
    assert settings.extra == {"Variants/x/name": "b"}
