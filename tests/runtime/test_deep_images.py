"""Pictures of 16 bits and of real numbers: exact values of files that other libraries wrote."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.runtime import deep_images
from designer.runtime.images import read_image

OpenEXR = pytest.importorskip("OpenEXR")
cv2 = pytest.importorskip("cv2")
Image = pytest.importorskip("PIL.Image")

RNG = np.random.default_rng(3)
HDR = (RNG.normal(1, 4, (6, 9, 4))).astype(np.float32)  # below 0 and far above 1


def refusal(path, channels=3):
    with pytest.raises(DiagnosticError) as caught:
        read_image(path, channels)
    (found,) = caught.value.diagnostics
    assert found.remedy
    assert found.file == str(path)
    return found


def planes(pixels):
    return pixels.transpose(2, 0, 1)[None]


def write_exr(path, pixels, names="RGB", **header):
    channels = {names: np.ascontiguousarray(pixels)} if names in ("RGB", "RGBA") else pixels
    OpenEXR.File({"type": OpenEXR.scanlineimage, **header}, channels).write(str(path))
    return path


@pytest.mark.parametrize("compression", ["NO_COMPRESSION", "ZIP_COMPRESSION", "PIZ_COMPRESSION"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_exr_keeps_every_value(tmp_path, dtype, compression):
    pixels = HDR[:, :, :3].astype(dtype)
    path = write_exr(tmp_path / "a.exr", pixels, compression=getattr(OpenEXR, compression))
    made = read_image(path)
    assert made.dtype == np.float32
    assert made.flags.c_contiguous
    assert made.max() > 4
    assert made.min() < 0
    np.testing.assert_array_equal(made, planes(pixels.astype(np.float32)))


def test_exr_with_opacity_gray_and_one_plane(tmp_path):
    path = write_exr(tmp_path / "a.exr", HDR, "RGBA")
    np.testing.assert_array_equal(read_image(path, 4), planes(HDR))
    np.testing.assert_array_equal(read_image(path, 3), planes(HDR[:, :, :3]))
    for name in ("Y", "Z"):
        path = write_exr(tmp_path / f"{name}.exr", {name: HDR[:, :, 0].copy()}, name)
        np.testing.assert_array_equal(read_image(path, 1), planes(HDR[:, :, :1]))
        np.testing.assert_array_equal(read_image(path, 3), planes(HDR[:, :, [0, 0, 0]]))
    path = write_exr(tmp_path / "b.exr", {"X": HDR[:, :, 0].copy(), "Z": HDR[:, :, 1].copy()}, "XZ")
    found = refusal(path)
    assert found.code == "picture-channels"
    assert "X, Z" in found.message


def test_a_window_that_does_not_begin_at_zero(tmp_path):
    window = (np.array([10, 20], np.int32), np.array([18, 25], np.int32))
    path = write_exr(tmp_path / "a.exr", HDR[:, :, :3], dataWindow=window)
    np.testing.assert_array_equal(read_image(path), planes(HDR[:, :, :3]))


def test_damaged_exr_files(tmp_path):
    whole = write_exr(tmp_path / "whole.exr", HDR[:, :, :3]).read_bytes()
    for share in (0.05, 0.5, 0.95):
        (tmp_path / "cut.exr").write_bytes(whole[: int(len(whole) * share)])
        assert refusal(tmp_path / "cut.exr").code == "cannot-read"
    (tmp_path / "odd.exr").write_bytes(deep_images.EXR + b"\xff" * 200)
    assert refusal(tmp_path / "odd.exr").code == "cannot-read"


def test_an_exr_bomb_is_refused_by_its_header(tmp_path):
    path = write_exr(tmp_path / "a.exr", HDR[:, :, :3])
    data = path.read_bytes()
    place = data.index(b"dataWindow\0box2i\0") + len(b"dataWindow\0box2i\0") + 4
    huge = np.array([0, 0, 59999, 59999], "<i4").tobytes()
    (tmp_path / "bomb.exr").write_bytes(data[:place] + huge + data[place + 16 :])
    found = refusal(tmp_path / "bomb.exr")
    assert found.code == "picture-too-large"
    assert "60000 x 60000" in found.message


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_float_tiff_keeps_every_value(tmp_path, channels):
    pixels = np.ascontiguousarray(HDR[:, :, :channels])
    swapped = pixels[:, :, [2, 1, 0, 3][:channels]] if channels > 1 else pixels
    assert cv2.imwrite(str(tmp_path / "a.tiff"), swapped)
    np.testing.assert_array_equal(read_image(tmp_path / "a.tiff", channels), planes(pixels))


def test_float_tiff_that_pillow_wrote(tmp_path):
    Image.fromarray(HDR[:, :, 0]).save(tmp_path / "a.tiff")
    np.testing.assert_array_equal(read_image(tmp_path / "a.tiff", 1), planes(HDR[:, :, :1]))


@pytest.mark.parametrize("suffix", ["png", "tiff"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_sixteen_bits(tmp_path, suffix, channels):
    pixels = RNG.integers(0, 65536, (6, 9, channels), dtype=np.uint16)
    swapped = np.ascontiguousarray(pixels[:, :, [2, 1, 0, 3][:channels]]) if channels > 1 else pixels
    assert cv2.imwrite(str(tmp_path / f"a.{suffix}"), swapped)
    expected = pixels.astype(np.float32) / np.float32(65535)
    np.testing.assert_array_equal(read_image(tmp_path / f"a.{suffix}", channels), planes(expected))


def test_damaged_float_tiff(tmp_path):
    assert cv2.imwrite(str(tmp_path / "a.tiff"), HDR[:, :, :3].copy())
    data = (tmp_path / "a.tiff").read_bytes()
    (tmp_path / "cut.tiff").write_bytes(data[:40])
    assert refusal(tmp_path / "cut.tiff").code in ("not-a-picture", "cannot-read")
    (tmp_path / "odd.tiff").write_bytes(b"II*\0" + b"\xff" * 100)
    assert refusal(tmp_path / "odd.tiff").code in ("not-a-picture", "cannot-read")


def test_what_would_unpack_to_too_much_is_refused_by_its_head(tmp_path, monkeypatch):
    """A file of zeros is small, and the library unpacks all channels of all parts."""
    plane = np.zeros((6, 9), np.float32)
    many = write_exr(tmp_path / "many.exr", {f"c{i}": plane for i in range(9)}, "")
    part = {"type": OpenEXR.scanlineimage}
    parts = [OpenEXR.Part({**part, "name": str(i)}, {"Y": plane}) for i in range(9)]
    OpenEXR.File(parts).write(str(tmp_path / "parts.exr"))
    assert refusal(many, 1).code == "picture-channels"
    assert read_image(tmp_path / "parts.exr", 1).shape == (1, 1, 6, 9)
    monkeypatch.setattr(deep_images, "MAX_VALUES", 8 * plane.size)
    for path in (many, tmp_path / "parts.exr"):
        assert refusal(path, 1).code == "picture-too-large"


def test_an_image_of_as_many_pixels_as_the_limit_is_read(tmp_path):
    deep_images.check_pixels(tmp_path / "image.png", deep_images.MAX_PIXELS, 1)
    with pytest.raises(DiagnosticError) as caught:
        deep_images.check_pixels(tmp_path / "image.png", deep_images.MAX_PIXELS, 2)
    assert caught.value.diagnostics[0].code == "picture-too-large"


def test_why_an_exr_file_is_refused(tmp_path):
    several = {"R": HDR[:, :, 0].copy(), "depth": HDR[:, :, 1].copy()}
    found = refusal(write_exr(tmp_path / "several.exr", several, ""))
    assert (found.code, found.message) == ("picture-channels", "it has the channels R, depth")


@pytest.mark.parametrize("dtype", [np.int16, np.int8])
def test_tiff_files_with_a_sign_are_refused_by_their_type(tmp_path, dtype):
    assert cv2.imwrite(str(tmp_path / "signed.tif"), (HDR[:, :, :3] * 9).astype(dtype))
    found = refusal(tmp_path / "signed.tif")
    assert found.code in ("picture-kind", "not-a-picture")
    if found.code == "picture-kind":
        assert np.dtype(dtype).name in found.message


def test_without_openexr_the_package_is_named(tmp_path, monkeypatch):
    path = write_exr(tmp_path / "a.exr", HDR[:, :, :3])
    monkeypatch.setitem(sys.modules, "OpenEXR", None)
    found = refusal(path)
    assert found.code == "no-openexr"
    assert "pip install OpenEXR" in found.remedy


def test_without_opencv_the_package_is_named(tmp_path, monkeypatch):
    Image.fromarray(HDR[:, :, 0]).save(tmp_path / "a.tif")
    assert cv2.imwrite(str(tmp_path / "b.tif"), HDR[:, :, :3])
    monkeypatch.setitem(sys.modules, "cv2", None)
    assert read_image(tmp_path / "a.tif", 1).shape == (1, 1, 6, 9)  # Pillow reads it
    with pytest.raises(DiagnosticError, match=r"no-opencv.*pip install opencv"):
        read_image(tmp_path / "b.tif")
