"""Pictures of 16 bits and of real numbers: exact values of files that other libraries wrote."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.runtime import deep_images
from designer.runtime.images import _values, read_image, read_npy

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


@pytest.mark.parametrize(("name", "channels"), [("a.tiff", 3), ("a.tiff", 4), ("a.png", 3)])
def test_sixteen_bits_in_several_strips(tmp_path, name, channels):
    """The lower bytes of every strip are read."""
    pixels = RNG.integers(0, 65536, (150, 70, channels), dtype=np.uint16)
    swapped = np.ascontiguousarray(pixels[:, :, [2, 1, 0, 3][:channels]])
    assert cv2.imwrite(
        str(tmp_path / name), swapped, [cv2.IMWRITE_TIFF_COMPRESSION, 1, cv2.IMWRITE_TIFF_ROWSPERSTRIP, 16]
    )
    with Image.open(tmp_path / name) as image:
        assert len(image.tile) == (10 if name == "a.tiff" else 1)
    np.testing.assert_array_equal(
        read_image(tmp_path / name, channels), planes(pixels.astype(np.float32) / np.float32(65535))
    )


def float_tiff(pixels: np.ndarray, order: str, *, big: bool) -> bytes:
    """An uncompressed float TIFF in one strip (TIFF 6.0; BigTIFF has 8-byte offsets)."""
    height, width, channels = pixels.shape
    values = pixels.astype(f"{order}f4").tobytes()
    word, header = ("Q", 16) if big else ("I", 8)
    fields = [(256, width), (257, height), (258, *[32] * channels), (259, 1), (262, 2), (273, header), (277, channels),
              (278, height), (279, len(values)), (284, 1), (339, *[3] * channels)]  # fmt: skip
    start = struct.pack(order + ("HHHQ" if big else "HI"), *((43, 8, 0) if big else (42,)), header + len(values))
    behind = header + len(values) + (8 + 20 * len(fields) + 8 if big else 2 + 12 * len(fields) + 4)
    entries, rest = b"", b""
    for tag, *numbers in fields:
        kind = "I" if tag in (273, 279) else "H"
        data = struct.pack(order + kind * len(numbers), *numbers)
        if len(data) > struct.calcsize(word):
            data, rest = struct.pack(order + word, behind + len(rest)), rest + data
        entries += struct.pack(order + "HH" + word, tag, 4 if kind == "I" else 3, len(numbers))
        entries += data.ljust(struct.calcsize(word), b"\0")
    count = struct.pack(order + ("Q" if big else "H"), len(fields))
    return (b"II" if order == "<" else b"MM") + start + values + count + entries + b"\0" * (8 if big else 4) + rest


@pytest.mark.parametrize("big", [False, True], ids=["classic", "big"])
@pytest.mark.parametrize("order", ["<", ">"], ids=["little endian", "big endian"])
def test_float_tiff_of_each_kind_of_header(tmp_path, order, big):
    """Pillow reads none of these, so they are known by their first four bytes."""
    pixels = np.ascontiguousarray(HDR[:, :, :3])
    (tmp_path / "a.tiff").write_bytes(float_tiff(pixels, order, big=big))
    np.testing.assert_array_equal(read_image(tmp_path / "a.tiff", 3), planes(pixels))


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


class FakeFile:
    """A file of OpenEXR: `header_only` reads `parts`, the other call reads `planes` or raises `error`."""

    parts: ClassVar[list] = []
    planes: ClassVar[dict] = {}
    error: BaseException | None = None

    def __init__(self, path, header_only=False, separate_channels=False):
        assert header_only != separate_channels
        self.head = header_only

    def __enter__(self):
        if not self.head and self.error is not None:
            raise self.error
        return self

    def __exit__(self, *_):
        pass

    def channels(self):
        return {name: SimpleNamespace(pixels=pixels) for name, pixels in self.planes.items()}


@pytest.fixture
def fake_exr(monkeypatch):
    def made(planes=(), error=None, **header):
        window = (np.array([0, 0]), np.array([8, 5]))
        part = SimpleNamespace(header={"dataWindow": window, "channels": ["R", "G"], **header})
        kind = type("File", (FakeFile,), {"parts": [part], "planes": dict(planes), "error": error})
        monkeypatch.setitem(sys.modules, "OpenEXR", SimpleNamespace(File=kind))

    return made


def exr_refusal(path):
    with pytest.raises(DiagnosticError) as caught:
        deep_images.read_exr(path)
    (found,) = caught.value.diagnostics
    assert found.file == str(path)
    return found.code, found.message, found.remedy


MEMORY = ("out-of-memory", "there is not enough memory for it", "use a smaller image, or close other programs")


def test_an_exr_file_that_does_not_fit_into_memory_is_not_called_damaged(tmp_path, fake_exr, monkeypatch):
    """The library reports missing memory as an error of the file; whether the values would fit decides."""
    asked: list[int] = []
    room = True
    monkeypatch.setattr(deep_images, "_has_memory", lambda count: asked.append(count) or room)
    fake_exr(error=MemoryError())
    assert exr_refusal(tmp_path / "a.exr") == MEMORY
    assert asked == []
    fake_exr(error=RuntimeError("no luck"))
    damaged = (
        "cannot-read",
        "the EXR file is damaged or not supported: no luck",
        "open and save it with another program",
    )
    assert exr_refusal(tmp_path / "a.exr") == damaged
    room = False
    assert exr_refusal(tmp_path / "a.exr") == MEMORY
    assert asked == [8 * 9 * 6 * 2] * 2  # values and result of both channels


def test_whether_memory_can_be_allocated():
    assert deep_images._has_memory(1 << 10)
    assert not deep_images._has_memory(1 << 60)


FLAT = "save it as a flat image with the channels R, G, B (and A) or Y"


def test_exr_files_without_one_size_are_refused(tmp_path, fake_exr):
    plane, half = HDR[:, :, 0], HDR[:3, :, 0]
    for planes in ({"R": plane, "G": half, "B": plane}, {"R": plane, "G": plane, "B": half}):
        fake_exr(planes)
        assert exr_refusal(tmp_path / "a.exr") == ("picture-kind", "its channels have different sizes", FLAT)
    fake_exr({"Y": HDR})
    assert exr_refusal(tmp_path / "a.exr") == ("picture-kind", "its channels have different sizes", FLAT)
    deep = ("picture-kind", "it is a deep EXR file, with several values per pixel", FLAT)
    for kind in ("deepscanline", "deeptile"):
        fake_exr({"Y": plane}, type=kind)
        assert exr_refusal(tmp_path / "a.exr") == deep
    fake_exr({"Y": plane}, type="tiledimage")
    np.testing.assert_array_equal(deep_images.read_exr(tmp_path / "a.exr"), plane[:, :, None])


@pytest.mark.parametrize(
    ("names", "chosen"),
    [("ABGR", "RGBA"), ("BGR", "RGB"), ("AY", "YA"), ("Y", "Y"), ("ABGRY", "RGBA"), ("BGRY", "RGB"), ("BGYZ", "Y"), ("AGY", "YA")],
)  # fmt: skip
def test_colors_are_preferred_to_brightness(tmp_path, fake_exr, names, chosen):
    planes = {name: np.full((2, 3), number, np.float32) for number, name in enumerate(names)}
    fake_exr(planes)
    made = deep_images.read_exr(tmp_path / "a.exr")
    assert made.shape == (2, 3, len(chosen))
    assert made[0, 0].tolist() == [names.index(name) for name in chosen]


def test_values_of_an_exr_file_within_the_limit(tmp_path):
    """All channels of all parts count, and the first that is too large is refused."""

    def header(width, height, channels):
        low = np.array([-2, 3])
        return {
            "dataWindow": (low, low + np.array([width - 1, height - 1])),
            "channels": dict.fromkeys(range(channels)),
        }

    path = tmp_path / "a.exr"
    assert deep_images._check_parts(path, [header(9, 6, 3), header(4, 5, 1)]) == 9 * 6 * 3 + 20
    side = 10_000
    with pytest.raises(DiagnosticError) as caught:
        deep_images._check_parts(path, [header(side, side, 4), header(side, side, 4)])
    (found,) = caught.value.diagnostics
    million = deep_images.MAX_VALUES // 1_000_000
    assert (found.code, found.message, found.remedy, found.file) == (
        "picture-too-large", f"it has 800,000,000 values in 2 parts, the limit is {million} million", FLAT, str(path)
    )  # fmt: skip


class FakeOpenCv:
    """OpenCV, whose `imread` returns `pixels` or raises an error with `text`."""

    IMREAD_UNCHANGED = -1

    class error(Exception):
        pass

    def __init__(self, pixels=None, text=""):
        self.pixels, self.text = pixels, text

    def imread(self, path, flags):
        assert (path, flags) == ("a.tif", -1)
        if self.text:
            raise self.error(self.text)
        return self.pixels


def read_tiff(monkeypatch, *given):
    monkeypatch.setattr(deep_images, "opencv", lambda: FakeOpenCv(*given))
    try:
        return deep_images.read_tiff(Path("a.tif"))
    except DiagnosticError as error:
        (found,) = error.diagnostics
        assert found.file == "a.tif"
        return found.code, found.message, found.remedy


def test_tiff_files_that_opencv_refuses(monkeypatch):
    large = f"the image has more than {deep_images.MAX_PIXELS:,} pixels"
    too_large = ("picture-too-large", large, "resize or crop it")
    assert read_tiff(monkeypatch, None, "CV_IO_MAX_IMAGE_PIXELS is exceeded") == too_large
    damaged = ("not-a-picture", "the TIFF file is damaged or not supported", FLAT)
    assert read_tiff(monkeypatch, None, "no luck") == damaged
    for shape in (None, (4,), (2, 3, 2), (2, 3, 5), (1, 2, 3, 3)):
        assert read_tiff(monkeypatch, None if shape is None else np.zeros(shape, np.float32)) == damaged


@pytest.mark.parametrize(("dtype", "top"), [(np.uint8, 255), (np.uint16, 65535)])
@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 1), (4, 5, 3), (4, 5, 4)])
def test_integers_of_tiff_files_are_divided_by_their_maximum(monkeypatch, dtype, top, shape):
    pixels = RNG.integers(0, top + 1, shape).astype(dtype)
    pixels.flat[0] = top
    made = read_tiff(monkeypatch, pixels)
    order = [2, 1, 0, 3][: shape[2]] if len(shape) == 3 and shape[2] > 1 else None
    expected = pixels if order is None else pixels[:, :, order]
    assert (made.dtype, made.shape) == (np.float32, shape)
    np.testing.assert_array_equal(made, expected / np.float32(top))
    float_made = read_tiff(monkeypatch, pixels.astype(np.float64))
    assert (float_made.dtype, float_made.flags.c_contiguous) == (np.float32, True)
    np.testing.assert_array_equal(float_made, expected.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_signed_integers_of_tiff_files_are_refused(monkeypatch, dtype):
    refused = ("picture-kind", f"its values are {np.dtype(dtype).name}", "save it with 8 or 16 bits, or as float")
    assert read_tiff(monkeypatch, np.zeros((2, 3), dtype)) == refused


def test_images_and_tensors_that_do_not_fit_into_memory(tmp_path, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    Image.fromarray(np.zeros((2, 3), np.uint8)).save(tmp_path / "a.png")
    np.save(tmp_path / "a.npy", np.zeros((1, 3, 2, 2), np.float32))
    for target, act, name in (
        ("designer.runtime.images.with_channels", read_image, "a.png"),
        ("PIL.Image.open", read_image, "a.png"),
        ("numpy.lib.format.open_memmap", read_npy, "a.npy"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(target, full)
            with pytest.raises(DiagnosticError) as caught:
                act(tmp_path / name)
        (found,) = caught.value.diagnostics
        assert (found.code, found.message, found.remedy, found.file) == (*MEMORY, str(tmp_path / name))


def test_modes_of_images_that_are_converted():
    """Every mode of Pillow becomes gray, gray with opacity, colors, or colors with opacity."""
    gray = Image.fromarray(np.array([[0, 200]], np.uint8))
    expected = {"L": "L", "LA": "LA", "RGB": "RGB", "RGBA": "RGBA", "1": "L", "CMYK": "RGB", "YCbCr": "RGB", "HSV": "RGB", "P": "RGB", "RGBX": "RGB"}  # fmt: skip
    for mode, wanted in expected.items():
        image = (gray if mode in ("L", "1", "P") else gray.convert("RGB")).convert(mode)
        np.testing.assert_array_equal(_values(image), np.asarray(image.convert(wanted)), err_msg=mode)
    colors = Image.fromarray(np.array([[[10, 20, 30], [40, 50, 60]]], np.uint8))
    for mode in ("CMYK", "YCbCr", "HSV"):
        made = _values(colors.convert(mode))
        assert np.abs(made.astype(int) - np.asarray(colors).astype(int)).max() <= 3, mode
    see_through = gray.convert("RGB")
    see_through.info["transparency"] = (0, 0, 0)
    assert _values(see_through).shape == (1, 2, 4)
    assert _values(see_through)[..., 3].tolist() == [[0, 255]]
    palette = gray.convert("P")
    palette.info["transparency"] = 0
    assert _values(palette).shape == (1, 2, 4)
    for mode, pixels in (("I;16", np.array([[3, 60000]], np.uint16)), ("I", np.array([[-5, 70000]], np.int32)), ("F", np.array([[-0.5, 3.5]], np.float32))):  # fmt: skip
        made = _values(Image.fromarray(pixels))
        assert (made.dtype.name, made.tolist()) == {
            "I;16": ("uint16", [[3, 60000]]), "I": ("uint16", [[0, 65535]]), "F": ("float32", [[-0.5, 3.5]])
        }[mode]  # fmt: skip
