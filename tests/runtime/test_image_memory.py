"""How much memory reading an image needs, and what is said where there is too little; measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from designer.runtime import images
from designer.runtime.images import read_image, with_channels, write_image

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SIDE = 2048
SCRIPT = """
import json, resource, sys
from pathlib import Path
from designer.graph.diagnostics import DiagnosticError
from designer.runtime.images import read_image

path, first, channels, limit = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
read_image(first)  # loads the libraries
pages = Path("/proc/self/statm").read_text().split()
if limit:
    top = int(pages[0]) * resource.getpagesize() + (limit << 20)
    resource.setrlimit(resource.RLIMIT_AS, (top, top))
try:
    made = read_image(path, channels).nbytes
except DiagnosticError as error:
    print(json.dumps([error.diagnostics[0].code, str(error.diagnostics[0])]))
else:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peak = int(status["VmHWM"].split()[0]) * 1024 - int(pages[1]) * resource.getpagesize()
    print(json.dumps([peak, made]))
"""


def read_in_a_process(path: Path, first: Path, channels: int, limit: int = 0):
    command = [sys.executable, "-c", SCRIPT, str(path), str(first), str(channels), str(limit)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(printed.splitlines()[-1])  # OpenEXR prints warnings


# Bytes per pixel at the peak: the result has 4 per channel, the decoder 4, the stored values 1 to 8.
PEAKS = {("L", 3): 14, ("RGB", 1): 11, ("RGB", 3): 17, ("RGBA", 3): 18, ("P", 3): 18, ("deep", 3): 21}


@pytest.mark.parametrize(("kind", "channels"), PEAKS)
def test_little_more_than_the_result_is_needed(tmp_path, kind, channels):
    path, small = tmp_path / "large.png", tmp_path / "small.png"
    Image.new("RGB", (8, 8)).save(small)
    if kind == "deep":
        write_image(path, np.zeros((1, 3, SIDE, SIDE), np.float32), bits=16)
    else:
        Image.new(kind, (SIDE, SIDE)).save(path)
    peak, made = read_in_a_process(path, small, channels)
    assert made == 4 * channels * SIDE * SIDE
    assert peak / SIDE**2 < PEAKS[kind, channels]


@pytest.mark.parametrize("limit", [1, 30, 80])
@pytest.mark.parametrize("suffix", [".png", ".exr"])
def test_an_image_that_does_not_fit_is_not_called_damaged(tmp_path, suffix, limit):
    path, small = tmp_path / f"large{suffix}", tmp_path / f"small{suffix}"
    if suffix == ".exr":
        OpenEXR = pytest.importorskip("OpenEXR")
        for file, side in ((small, 4), (path, SIDE)):
            channels = {"RGBA": np.zeros((side, side, 4), np.float16)}
            OpenEXR.File({"type": OpenEXR.scanlineimage}, channels).write(str(file))
    else:
        Image.new("RGB", (4, 4)).save(small)
        Image.new("RGB", (2 * SIDE, SIDE)).save(path)
    code, text = read_in_a_process(path, small, 4, limit)
    assert code == "out-of-memory"
    assert path.name in text


@pytest.mark.parametrize("strip", [1, 7, 14, 20, 1000])
@pytest.mark.parametrize("stored", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_strips_of_any_height_make_the_same_image(monkeypatch, dtype, stored, strip):
    rng = np.random.default_rng(stored)
    values = rng.random((5, 7, stored) if stored else (5, 7)).astype(np.float32)
    top = np.float32(1 if dtype is np.float32 else np.iinfo(dtype).max)
    pixels = (values * top).astype(dtype)
    exact = (pixels.astype(np.float32) / top).reshape(5, 7, max(stored, 1)).transpose(2, 0, 1)
    color = exact[:3] if stored >= 3 else exact[[0, 0, 0]]
    opacity = exact[-1] if stored in (2, 4) else np.ones((5, 7), np.float32)
    gray = np.tensordot([0.299, 0.587, 0.114], color, 1) if stored >= 3 else exact[0]
    monkeypatch.setattr(images, "STRIP", strip)
    np.testing.assert_allclose(with_channels(pixels, 1, "x"), gray[None, None], atol=1e-6)
    np.testing.assert_array_equal(with_channels(pixels, 3, "x"), color[None])
    np.testing.assert_array_equal(with_channels(pixels, 4, "x"), np.concatenate([color, opacity[None]])[None])


@pytest.mark.parametrize("orientation", range(1, 9))
def test_deep_images_are_turned_with_their_low_bytes(tmp_path, orientation):
    levels = np.random.default_rng(7).integers(0, 65536, (1, 3, 3, 5))
    write_image(tmp_path / "a.png", levels / 65535, bits=16)
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = (tmp_path / "a.png").read_bytes()
    body = b"eXIf" + exif.tobytes().removeprefix(b"Exif\0\0")
    from struct import pack
    from zlib import crc32

    chunk = pack(">I", len(body) - 4) + body + pack(">I", crc32(body))
    (tmp_path / "a.png").write_bytes(data[:33] + chunk + data[33:])  # behind the header
    turned = {
        1: lambda a: a,
        2: lambda a: a[:, :, :, ::-1],
        3: lambda a: a[:, :, ::-1, ::-1],
        4: lambda a: a[:, :, ::-1],
        5: lambda a: a.swapaxes(2, 3),
        6: lambda a: np.rot90(a, -1, (2, 3)),
        7: lambda a: a[:, :, ::-1, ::-1].swapaxes(2, 3),
        8: lambda a: np.rot90(a, 1, (2, 3)),
    }[orientation](levels)
    np.testing.assert_array_equal(np.rint(read_image(tmp_path / "a.png") * 65535), turned)
