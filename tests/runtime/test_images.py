"""Pictures: every kind that can be dragged in, and other files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from recorded import check_recorded

from designer.graph.diagnostics import DiagnosticError
from designer.graph.types import Size2D
from designer.runtime import deep_images
from designer.runtime.images import read_image, read_npy, to_uint8, write_image
from designer.runtime.input_data import padded_extent

Image = pytest.importorskip("PIL.Image")


def bytes_of(height=5, width=7, channels=3, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


def as_floats(pixels):
    return pixels.astype(np.float32).transpose(2, 0, 1)[None] / np.float32(255)


def code_of(call, *args, **kw) -> str:
    with pytest.raises(DiagnosticError) as caught:
        call(*args, **kw)
    (found,) = caught.value.diagnostics
    assert found.remedy
    assert found.file
    return found.code


@pytest.mark.parametrize("suffix", ["png", "bmp", "tiff", "webp"])
def test_colours_are_read_as_they_are(tmp_path, suffix):
    pixels = bytes_of()
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(pixels).save(path, **({"lossless": True} if suffix == "webp" else {}))
    made = read_image(path)
    assert made.dtype == np.float32
    assert made.flags.c_contiguous
    np.testing.assert_array_equal(made, as_floats(pixels))


def test_jpeg(tmp_path):
    pixels = np.full((16, 24, 3), (200, 100, 50), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.jpg", quality=95)
    np.testing.assert_allclose(read_image(tmp_path / "a.jpg"), as_floats(pixels), atol=3 / 255)


def test_gray_becomes_colour_and_back(tmp_path):
    gray = bytes_of(channels=1)
    Image.fromarray(gray[:, :, 0]).save(tmp_path / "gray.png")
    np.testing.assert_array_equal(read_image(tmp_path / "gray.png", 1), as_floats(gray))
    np.testing.assert_array_equal(read_image(tmp_path / "gray.png", 3), np.repeat(as_floats(gray), 3, axis=1))
    color = bytes_of()
    Image.fromarray(color).save(tmp_path / "color.png")
    expected = (as_floats(color) * np.array([0.299, 0.587, 0.114], np.float32).reshape(1, 3, 1, 1)).sum(
        1, keepdims=True
    )
    np.testing.assert_allclose(read_image(tmp_path / "color.png", 1), expected, atol=1e-6)


def test_opacity_is_dropped_or_kept_never_blended(tmp_path):
    pixels = bytes_of(channels=4)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    np.testing.assert_array_equal(read_image(tmp_path / "a.png", 3), as_floats(pixels[:, :, :3]))
    np.testing.assert_array_equal(read_image(tmp_path / "a.png", 4), as_floats(pixels))
    Image.fromarray(pixels[:, :, :3]).save(tmp_path / "b.png")
    assert (read_image(tmp_path / "b.png", 4)[:, 3] == 1).all()
    Image.fromarray(pixels[:, :, :2]).save(tmp_path / "la.png")
    np.testing.assert_array_equal(read_image(tmp_path / "la.png", 1), as_floats(pixels[:, :, :1]))
    np.testing.assert_array_equal(read_image(tmp_path / "la.png", 4)[:, 3:], as_floats(pixels[:, :, 1:2]))


def test_palettes_and_their_transparency(tmp_path):
    picture = Image.new("P", (3, 2))
    picture.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    picture.putdata([0, 1, 2, 2, 1, 0])
    picture.save(tmp_path / "p.png")
    made = read_image(tmp_path / "p.png")
    assert made[0, :, 0, 0].tolist() == [1, 0, 0]
    assert made[0, :, 1, 0].tolist() == [0, 0, 1]
    picture.save(tmp_path / "t.png", transparency=1)
    assert read_image(tmp_path / "t.png", 4)[0, 3].tolist() == [[1, 0, 1], [1, 0, 1]]


BYTES = np.array([[[200, 100, 50, 180], [30, 60, 90, 120], [250, 5, 128, 0]]], np.uint8)  # three pixels


def every_kind(folder):
    """Three pixels in every mode that a file can have, by name; palettes and opacity in each way that formats know."""
    rgb, rgba = Image.fromarray(BYTES[:, :, :3]), Image.fromarray(BYTES)
    gray = Image.fromarray(BYTES[:, :, 0])
    deep = Image.fromarray(BYTES[:, :, 0].astype(np.uint16) * 257)
    palette = Image.fromarray(np.array([[0, 1, 2]], np.uint8), "P")
    palette.putpalette(BYTES[:, :, :3].tobytes())
    clear = palette.convert("PA")
    clear.putalpha(Image.fromarray(BYTES[:, :, 3]))
    whole = Image.fromarray(np.array([[70000, 32768, -1]], np.int32))
    kinds = {
        "1.png": (gray.convert("1"), {}),
        "1 one is transparent.png": (gray.convert("1"), {"transparency": 1}),
        "L.png": (gray, {}),
        "L 30 is transparent.png": (gray, {"transparency": 30}),
        "LA.png": (rgba.convert("LA"), {}),
        "LA.tiff": (rgba.convert("LA"), {}),
        "P.png": (palette, {}),
        "P the second is transparent.png": (palette, {"transparency": 1}),
        "P each has an opacity.png": (palette, {"transparency": bytes([255, 128, 0])}),
        "PA.tiff": (palette.convert("PA"), {}),
        "PA each has an opacity.tiff": (clear, {}),
        "RGB.png": (rgb, {}),
        "RGB one is transparent.png": (rgb, {"transparency": (30, 60, 90)}),
        "RGBA.png": (rgba, {}),
        "RGBA.webp": (rgba, {"lossless": True, "exact": True}),
        "CMYK.tiff": (Image.merge("CMYK", rgba.split()), {}),
        "YCbCr.tiff": (rgb.convert("YCbCr"), {}),
        "LAB.tiff": (Image.merge("LAB", rgb.split()), {}),
        "I;16.png": (deep, {}),
        "I;16.tiff": (deep, {}),
        "I.tiff": (whole, {}),
        "I.pgm": (deep, {}),
        "F.tiff": (Image.fromarray(np.array([[1.5, -0.25, 0.125]], np.float32)), {}),
    }
    for name, (image, options) in kinds.items():
        image.save(folder / name, **options)
    return list(kinds)


def test_every_kind_of_pixels_as_gray_color_and_with_opacity(tmp_path):
    lines = []
    for name in every_kind(tmp_path):
        for channels in (1, 3, 4):
            made = read_image(tmp_path / name, channels)[0, :, 0].T
            text = "   ".join(" ".join(f"{value:.2f}" for value in pixel) for pixel in made)
            lines.append(f"{name} as {channels}: {text}")
    check_recorded("images/kinds.txt", "\n".join([*lines, ""]))


def test_one_bit(tmp_path):
    Image.fromarray(np.array([[True, False]])).save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png", 1)[0, 0].tolist() == [[1, 0]]


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_sixteen_bits(tmp_path, channels):
    array = np.random.default_rng(1).random((1, channels, 5, 7), np.float32)
    write_image(tmp_path / "a.png", array, bits=16)
    with Image.open(tmp_path / "a.png") as picture:
        picture.load()
        assert picture.size == (7, 5)
    np.testing.assert_allclose(read_image(tmp_path / "a.png", channels), array, atol=0.51 / 65535)


def test_sixteen_bits_gray_with_opacity(tmp_path):
    array = np.random.default_rng(1).random((1, 2, 5, 7), np.float32)
    write_image(tmp_path / "a.png", array, bits=16)
    np.testing.assert_allclose(read_image(tmp_path / "a.png", 4)[:, [0, 3]], array, atol=1.01 / 255)


def test_sixteen_bits_by_another_program(tmp_path):
    values = np.random.default_rng(2).integers(0, 65536, (5, 7), dtype=np.uint16)
    Image.fromarray(values).save(tmp_path / "a.png")
    Image.fromarray(values).save(tmp_path / "a.tiff")
    for name in ("a.png", "a.tiff"):
        np.testing.assert_allclose(read_image(tmp_path / name, 1)[0, 0], values / 65535, atol=1e-7)


def test_orientation_of_uncompressed_tiff_files(tmp_path):
    pixels = np.arange(8, dtype=np.uint8).reshape(2, 4)
    Image.fromarray(pixels).save(tmp_path / "a.tif", tiffinfo={0x0112: 6})  # to be turned by 90 degrees clockwise
    found = read_image(tmp_path / "a.tif", 1)[0, 0]
    np.testing.assert_array_equal(np.rint(found * 255), np.rot90(pixels, -1))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation(tmp_path, orientation):
    from PIL import ImageOps

    picture = Image.fromarray(np.kron(bytes_of(3, 4), np.ones((8, 8, 1), np.uint8)))
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture.save(tmp_path / "a.jpg", exif=exif, quality=95)
    with Image.open(tmp_path / "a.jpg") as again:
        expected = np.asarray(ImageOps.exif_transpose(again))
    made = read_image(tmp_path / "a.jpg")
    assert made.shape[2:] == ((24, 32) if orientation < 5 else (32, 24))
    np.testing.assert_array_equal(made, as_floats(expected))


def test_what_is_no_picture(tmp_path):
    text = tmp_path / "text.png"
    text.write_text("hello")
    assert code_of(read_image, text) == "not-a-picture"
    assert code_of(read_image, tmp_path / "missing.png") == "cannot-read"
    (tmp_path / "folder.png").mkdir()
    assert code_of(read_image, tmp_path / "folder.png") == "cannot-read"
    text.rename(tmp_path / "text.heic")
    assert code_of(read_image, tmp_path / "text.heic") == "unknown-format"
    empty = tmp_path / "empty.jpg"
    empty.touch()
    assert code_of(read_image, empty) == "not-a-picture"
    whole = tmp_path / "whole.png"
    Image.fromarray(bytes_of(64, 64)).save(whole)
    for share in (0.2, 0.5, 0.9):
        cut = tmp_path / "cut.png"
        cut.write_bytes(whole.read_bytes()[: int(whole.stat().st_size * share)])
        assert code_of(read_image, cut) in ("cannot-read", "not-a-picture")
    Image.fromarray(bytes_of()).save(tmp_path / "a.png")
    assert code_of(read_image, tmp_path / "a.png", 2) == "picture-channels"


def test_a_picture_of_too_many_pixels_is_refused_by_its_header(tmp_path, monkeypatch):
    import struct
    import zlib

    body = struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", len(body)) + b"IHDR" + body + struct.pack(">I", zlib.crc32(b"IHDR" + body))
    data = b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
    (tmp_path / "bomb.png").write_bytes(data)
    assert code_of(read_image, tmp_path / "bomb.png") == "picture-too-large"
    Image.fromarray(bytes_of()).save(tmp_path / "a.png")
    monkeypatch.setattr(deep_images, "MAX_PIXELS", 34)
    assert code_of(read_image, tmp_path / "a.png") == "picture-too-large"


def test_tensors(tmp_path):
    array = np.random.default_rng(0).normal(0, 9, (1, 3, 4, 5))
    np.save(tmp_path / "a.npy", array)
    made = read_npy(tmp_path / "a.npy")
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, array, rtol=1e-6)
    np.save(tmp_path / "object.npy", np.array([{}], dtype=object))
    assert code_of(read_npy, tmp_path / "object.npy") == "not-a-tensor"
    np.save(tmp_path / "text.npy", np.array(["a"]))
    assert code_of(read_npy, tmp_path / "text.npy") == "not-a-tensor"
    (tmp_path / "cut.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-8])
    assert code_of(read_npy, tmp_path / "cut.npy") == "not-a-tensor"
    (tmp_path / "none.npy").write_bytes(b"")
    assert code_of(read_npy, tmp_path / "none.npy") == "not-a-tensor"
    assert code_of(read_npy, tmp_path / "missing.npy") == "cannot-read"


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "float64"])
def test_tensors_of_any_numbers(tmp_path, dtype):
    array = np.arange(6).reshape(1, 1, 2, 3).astype(dtype)
    np.save(tmp_path / "a.npy", array)
    made = read_npy(tmp_path / "a.npy")
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, array.astype(np.float32))


def test_to_uint8_clips_and_rounds():
    array = np.array([-1, 0, 0.5, 1, 2, np.nan, np.inf, 1 / 255], np.float32).reshape(1, 1, 2, 4)
    assert to_uint8(array)[:, :, 0].ravel().tolist() == [0, 0, 128, 255, 255, 0, 255, 1]
    assert to_uint8(np.zeros((2, 3, 4, 5))).shape == (4, 5, 3)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_writing_and_reading_back(tmp_path, channels):
    array = as_floats(bytes_of(channels=channels))
    write_image(tmp_path / "a.png", array)
    made = read_image(tmp_path / "a.png", {1: 1, 2: 4}.get(channels, channels))
    np.testing.assert_array_equal(made if channels != 2 else made[:, [0, 3]], array)


def test_what_cannot_be_written(tmp_path):
    array = np.zeros((1, 3, 4, 5), np.float32)
    write_image(tmp_path / "a.jpg", array)
    before = (tmp_path / "a.jpg").read_bytes()
    assert code_of(write_image, tmp_path / "a.jpg", np.zeros((1, 4, 4, 5))) == "cannot-write-picture"
    assert code_of(write_image, tmp_path / "a.jpg", array, bits=16) == "cannot-write-picture"
    assert code_of(write_image, tmp_path / "a.tiff", array) == "unknown-format"
    assert code_of(write_image, tmp_path / "a.png", np.zeros((1, 5, 4, 5))) == "cannot-write-picture"
    for shape in ((1, 10), (5,), (), (1, 3, 2, 4, 4), (0, 3, 4, 4), (1, 3, 0, 4)):
        for name in ("a.png", "a.jpg"):
            assert code_of(write_image, tmp_path / name, np.zeros(shape)) == "cannot-write-picture"
    assert code_of(write_image, tmp_path / "none" / "a.png", array) == "cannot-save"
    assert (tmp_path / "a.jpg").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.jpg"]


@pytest.mark.parametrize("name", ["big", "neg", "tok", "zip"])
def test_damaged_headers_of_tensors_are_findings(name):
    assert code_of(read_npy, Path(__file__).parents[1] / "data" / "arrays" / f"{name}.npy") in (
        "not-a-tensor",
        "cannot-read",
    )


@pytest.mark.parametrize(
    ("tile", "expected"), [(Size2D(8, 4), (12, 16)), (Size2D(4, 8), (16, 12)), (5, (10, 10)), (0, (9, 10))]
)
def test_height_and_width_are_padded_to_their_own_multiple(tile, expected):
    assert padded_extent(SimpleNamespace(tiling=tile), (9, 10)) == expected
