"""Scripts of deployment folders on their own: how they read images, and what their check accepts."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from PIL import Image

import resources
from designer.runtime.images import read_image
from exporters.generated_folder import GENERATOR, Marker, read_marker

SCRIPTS = Path(resources.__file__).parent / "templates" / "deploy" / "python"


@pytest.fixture
def script(monkeypatch, tmp_path):
    """Imports a script, with a stub instead of the one that imports ONNX Runtime."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.setitem(sys.modules, "run", SimpleNamespace(HERE=tmp_path, Network=None))
    for name in ("check", "processing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module
    for name in ("check", "processing"):
        sys.modules.pop(name, None)


def test_images_are_read_as_the_program_reads_them(script, tmp_path):
    rng = np.random.default_rng(0)
    pictures = {
        "gray": rng.integers(0, 256, (3, 5), np.uint8),
        "color": rng.integers(0, 256, (3, 5, 3), np.uint8),
        "opacity": rng.integers(0, 256, (3, 5, 4), np.uint8),
        "deep": rng.integers(0, 65536, (3, 5), np.uint16),
    }
    for name, pixels in pictures.items():
        path = tmp_path / f"{name}.png"
        Image.fromarray(pixels).save(path)
        for channels in (1, 3, 4):
            found = script("processing").read_image(path, channels)
            assert found.shape == (1, channels, 3, 5)
            np.testing.assert_allclose(found, read_image(path, channels), atol=1e-6, err_msg=f"{name} {channels}")


def test_uncompressed_gray_tiff_files_are_upright(script, tmp_path):
    path, stored = tmp_path / "gray.tif", np.arange(16 * 24).reshape(16, 24) % 251
    for orientation in range(1, 9):
        Image.fromarray(stored.astype(np.uint8)).save(path, tiffinfo={0x0112: orientation})
        found, expected = script("processing").read_image(path, 1), read_image(path, 1)
        np.testing.assert_allclose(found, expected, atol=1e-6, err_msg=str(orientation))


@pytest.mark.parametrize(
    ("results", "status"),
    [
        ([[0.5], [0.25]], 0),
        ([[0.5], [0.35]], 0),
        ([[0.5], [0.36]], 1),
        ([[0.51], [0.25]], 0),
        ([[0.52], [0.25]], 1),
        ([[0.39], [0.25]], 1),
        ([[0.5], [np.nan]], 1),
        ([[np.nan], [0.25]], 1),
        ([[0.5], [np.inf]], 1),
        ([[0.5], [0.25, 0.25]], 1),
    ],
)
def test_the_check_accepts_what_is_within_the_tolerance(script, tmp_path, results, status, capsys):
    expected = {"a": [0.5], "b": [0.25]}
    for name, values in expected.items():
        np.save(tmp_path / f"{name}.npy", np.array(values, np.float32))
    check = {"inputs": [], "outputs": ["a.npy", "b.npy"], "tolerances": [0.0101, 0.1001]}
    information = {"check": check, "outputs": [{"name": name} for name in expected]}
    (tmp_path / "deploy.json").write_text(json.dumps(information), "utf-8")
    files = [str(tmp_path / f"{number}.npy") for number in range(2)]
    for file, values in zip(files, results, strict=True):
        np.save(file, np.array(values, np.float32))
    assert script("check").main(["--results", *files]) == status
    lines = capsys.readouterr().out.splitlines()
    assert any("DIFFERENT within" in line for line in lines) == bool(status)
    assert len(lines) == len(expected)
    assert script("check").main(["--json", "--results", *files]) == status
    found = msgspec.json.decode(capsys.readouterr().out)  # which takes no NaN and no infinity
    assert found["ok"] == (not status)


def test_a_marker_lists_files_of_its_folder_only(tmp_path):
    names = ("a.py", "b/..c.txt", "../x", "b/../../x", "/x", "C:x", "\\x", "..\\x", "", ".")
    text = json.dumps({"generator": GENERATOR, "files": dict.fromkeys(names, "digest")})
    (tmp_path / "deploy.json").write_text(text, "utf-8")
    found = read_marker(tmp_path / "deploy.json", Marker)
    assert found is not None
    assert [*found.files] == ["a.py", "b/..c.txt"]
    (tmp_path / "deploy.json").write_text(text.replace(GENERATOR, "other"), "utf-8")
    assert read_marker(tmp_path / "deploy.json", Marker) is None


def test_padding_and_cropping_of_both_axes(script):
    processing = script("processing")
    entry = {
        "name": "image", "image": True, "channels": 1, "height": None, "width": None, "scale": 2.0, "shift": -1.0, "multiple": 4,
    }  # fmt: skip
    array = np.arange(10, dtype=np.float32).reshape(1, 1, 2, 5)
    made = processing.prepare(array, entry, is_image=True)
    assert made.shape == (1, 1, 4, 8)
    assert made[0, 0, 3].tolist() == [9, 11, 13, 15, 17, 17, 17, 17]
    assert (processing.prepare(array, entry, is_image=False)[0, 0, :2, :5] == array).all()
    for size, axis in (({"height": 4, "width": 4}, "width 4, not 8"), ({"height": 2, "width": 8}, "height 2, not 4")):
        with pytest.raises(processing.InputError, match=axis):
            processing.prepare(array, {**entry, **size}, is_image=True)
    assert processing.crop(made, (2, 5), (4, 8)).shape == (1, 1, 2, 5)
    assert processing.crop(np.zeros((1, 1, 8, 24)), (2, 5), (4, 8)).shape == (1, 1, 4, 15)  # of another scale
    assert processing.crop(np.zeros((1, 1, 1, 1)), (2, 5), (4, 8)).shape == (1, 1, 1, 1)
    assert processing.crop(np.zeros((1, 3)), (2, 5), (4, 8)).shape == (1, 3)
