"""Reading and writing images as 1 x C x H x W float32 arrays with values 0..1 as stored (sRGB is not converted)."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from designer.files.atomic import write_atomic
from designer.files.formats import Format, FormatTable
from designer.files.regular import check_regular
from designer.graph.diagnostics import DiagnosticError
from designer.runtime import deep_images
from designer.runtime.api import Array
from designer.texts import tr
from designer.units import dims_text

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.PngImagePlugin import PngInfo

_PILLOW = ("PNG", "JPEG", "TIFF", "BMP", "WEBP", "PPM")  # other formats of Pillow are not tested
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
STRIP = 1 << 18  # pixels that are converted at once


def read_image(path: Path | str, channels: int = 3) -> Array:
    """The image as 1 x `channels` x H x W: 1 gray, 3 RGB, 4 RGB and opacity (1 if the image has none).

    Values of EXR and float TIFF files are as stored, also outside 0..1; all others are 0..1. Opacity is dropped for 1 and 3
    channels, not blended. The EXIF orientation is applied. Raises DiagnosticError if the file is not an image, too large or
    damaged.
    """
    reader = IMAGES.reader(path)
    try:
        return with_channels(reader(Path(path)), channels, str(path))
    except MemoryError:
        raise deep_images.out_of_memory(Path(path)) from None


def with_channels(pixels: NDArray[Any], channels: int, file: str) -> Array:
    """H x W or H x W x (1..4) as 1 x `channels` x H x W float32, see `read_image`; `file` is for the error.

    Integers are divided by the maximum of their type. Strip by strip, so that only the result is as large as a tensor.
    """
    if channels not in (1, 3, 4):
        raise DiagnosticError.of(
            "picture-channels",
            tr("an image has 1, 3 or 4 channels, but the input has {channels}", channels=channels),
            file=file,
            remedy=tr("use an .npy file for this input"),
        )
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.dtype == np.float32 and pixels.shape[2] == channels:
        return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])
    top = np.float32(np.iinfo(pixels.dtype).max) if pixels.dtype.kind == "u" else None
    height, width, stored = pixels.shape
    opaque, colors = stored not in (2, 4), stored - (stored in (2, 4))
    made = np.empty((1, channels, height, width), np.float32)
    rows = max(STRIP // max(width, 1), 1)
    for begin in range(0, height, rows):
        part = slice(begin, begin + rows)
        strip, target = pixels[part].astype(np.float32), made[0, :, part]
        if top is not None:
            strip /= top
        if channels == 1 and colors == 3:
            target[0] = strip[:, :, :3] @ _LUMA
        else:
            for index in range(min(channels, 3)):
                target[index] = strip[:, :, index if colors == 3 else 0]
        if channels == 4:
            target[3] = 1 if opaque else strip[:, :, -1]
    return made


def read_npy(path: Path | str, dtype: str = "float32") -> NDArray[Any]:
    """The numeric array of an `.npy` file as `dtype`, without unpickling. Raises DiagnosticError for any other file."""
    check_regular(Path(path))
    try:
        mapped = np.lib.format.open_memmap(path, mode="r")  # mapping checks the header against the file's length
        if mapped.dtype.kind not in "fiub":
            raise ValueError("it does not contain a numeric array")
        return np.array(mapped, dtype=dtype, order="C")
    except MemoryError:
        raise deep_images.out_of_memory(Path(path)) from None
    except Exception as error:  # numpy raises almost anything for a damaged header
        reason = tr("its header is damaged")
        if isinstance(error, OSError) and error.strerror:
            reason = error.strerror
        elif isinstance(error, ValueError) and str(error).strip():
            reason = str(error).strip().splitlines()[0][:160]
        raise DiagnosticError.of(
            "cannot-read" if isinstance(error, OSError) else "not-a-tensor",
            tr("the tensor cannot be read: {reason}", reason=reason),
            file=str(path),
            remedy=tr("write it with numpy.save as float32, N x C x H x W"),
        ) from None


def write_npy(path: Path, array: NDArray[Any]) -> None:
    """Write an `.npy` file, atomically. Raises DiagnosticError ("cannot-save")."""
    import io

    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    write_atomic(path, stream.getvalue())


def _pixels(path: Path) -> NDArray[Any]:
    """H x W or H x W x (1..4) as stored: unsigned integers up to the maximum of their type, or float32."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    check_regular(path)
    try:
        with path.open("rb") as stream:
            begin = stream.read(4)
        if begin == deep_images.EXR:
            return deep_images.read_exr(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about large images and odd metadata; we have our own limit
            # From a stream: Pillow 13 maps uncompressed TIFF files of a path with their upright size, before it turns them.
            with path.open("rb") as file, Image.open(file, formats=_PILLOW) as image:
                width, height = image.size
                deep_images.check_pixels(path, width, height)
                deep = _is_deep(image)
                ImageOps.exif_transpose(image, in_place=True)
                values = _values(image)
            if not deep:
                return values
            with Image.open(path, formats=_PILLOW) as again:
                ImageOps.exif_transpose(_low_bytes(again), in_place=True)
                low = np.asarray(again)
            both = values.astype(np.uint16)
            both <<= 8
            both |= low
            return both
    except UnidentifiedImageError:
        if begin in deep_images.TIFF:  # float colors, or an unusual layout
            return deep_images.read_tiff(path)
        raise DiagnosticError.of(
            "not-a-picture", tr("the file is not a supported image"), file=str(path), remedy=_REMEDY
        ) from None
    except DiagnosticError:
        raise
    except MemoryError:
        raise deep_images.out_of_memory(path) from None
    except Exception as error:  # decoders raise almost anything when a file is damaged
        if isinstance(error, OSError) and error.errno is not None:
            reason = error.strerror or str(error)
            raise DiagnosticError.of(
                "cannot-read",
                tr("the image cannot be opened: {reason}", reason=reason),
                file=str(path),
                remedy=tr("check the path and your permissions"),
            ) from error
        if isinstance(error, Image.DecompressionBombError):
            raise DiagnosticError.of(
                "picture-too-large", str(error), file=str(path), remedy=tr("resize the image")
            ) from error
        raise DiagnosticError.of(
            "cannot-read",
            tr("the image is damaged or not supported: {error}", error=error or type(error).__name__),
            file=str(path),
            remedy=_REMEDY,
        ) from error


_REMEDY = "choose an image that other programs open"


_SWAPPED = {"16B": "16L", "16L": "16B", "16N": "16B" if sys.byteorder == "little" else "16L"}


def _is_deep(image: Image) -> bool:
    """Whether the file has 16 bits per channel, of which Pillow decodes only the upper 8."""
    return (
        image.mode in ("RGB", "RGBA")
        and bool(_tiles(image))
        and all(_mode_of(t.args).startswith(("RGB;16", "RGBA;16")) for t in _tiles(image))
    )


def _tiles(image: Image) -> list[Any]:
    return list(getattr(image, "tile", None) or ())


def _mode_of(args: Any) -> str:
    return str(args[0] if isinstance(args, tuple) and args else args)


def _low_bytes(image: Image) -> Image:
    """The lower 8 bits of a 16-bit image that was just opened, decoded with swapped byte order."""
    swapped = []
    for tile in _tiles(image):
        mode = _mode_of(tile.args)
        mode = mode[:-3] + _SWAPPED[mode[-3:]]
        swapped.append(tile._replace(args=(mode, *tile.args[1:]) if isinstance(tile.args, tuple) else mode))
    image.tile = swapped  # type: ignore[attr-defined]
    image.load()
    return image


def _values(image: Image) -> NDArray[Any]:
    mode = image.mode
    transparent = "transparency" in image.info
    if mode.startswith("I;16"):
        return np.asarray(image)
    if mode == "I":  # Pillow's mode for 16 bit gray in some containers
        return np.asarray(image).clip(0, 65535).astype(np.uint16)
    if mode == "F":
        return np.asarray(image, np.float32)
    if mode == "P" or (transparent and mode in ("L", "RGB", "1")):
        image = image.convert("RGBA" if transparent else "RGB")
    elif mode in ("1", "CMYK", "YCbCr", "LAB", "HSV", "PA", "La", "RGBa"):
        image = image.convert({"1": "L", "PA": "RGBA", "La": "LA", "RGBa": "RGBA"}.get(mode, "RGB"))
    if image.mode not in ("L", "LA", "RGB", "RGBA"):
        image = image.convert("RGB")
    return np.asarray(image)


def to_uint8(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The first image of N x C x H x W (or C x H x W) as H x W x C, values clipped to 0..1; NaN is black."""
    return _levels(array, 255, np.uint8)


def _levels(array: NDArray[Any], top: int, dtype: Any) -> NDArray[Any]:
    image = np.asarray(array, np.float32)
    image = image[0] if image.ndim == 4 else image
    values = np.nan_to_num(image, nan=0.0, posinf=1.0, neginf=0.0).clip(0.0, 1.0)
    values *= np.float32(top)
    values += np.float32(0.5)
    return np.ascontiguousarray(values.transpose(1, 2, 0).astype(dtype))


def write_image(path: Path | str, array: NDArray[Any], *, bits: int = 8, comment: str = "") -> None:
    """Write N x C x H x W (the first image; C is 1, 2, 3 or 4) in the format of the path's suffix; atomic.

    `bits` 16 is for PNG only. `comment` (ASCII) is the text "Comment" of a PNG file, and the comment of a JPEG file.
    Raises DiagnosticError if the format cannot store the image or it cannot be written.
    """
    IMAGES.writer(path)(Path(path), array, bits, comment)


def write_array(path: Path, array: NDArray[Any], comment: str = "") -> None:
    """Write an image as `write_image` does, or a tensor in a format of `TENSORS`, which have no comments."""
    if IMAGES.writes(path):
        write_image(path, array, comment=comment)
    else:
        ARRAYS.writer(path)(path, array)


def _write_png(path: Path, array: NDArray[Any], bits: int = 8, comment: str = "") -> None:
    _check_writable(path, "PNG", array.shape, (1, 2, 3, 4), bits, (8, 16))
    deep = bits == 16
    write_atomic(
        path, _png16(_levels(array, 65535, np.uint16), comment) if deep else encode_image(array, "PNG", comment)
    )


def _write_jpeg(path: Path, array: NDArray[Any], bits: int = 8, comment: str = "") -> None:
    _check_writable(path, "JPEG", array.shape, (1, 3), bits, (8,))
    write_atomic(path, encode_image(array, "JPEG", comment))


def _check_writable(
    path: Path, kind: str, shape: tuple[int, ...], possible: tuple[int, ...], bits: int, depths: tuple[int, ...]
) -> None:
    if len(shape) not in (3, 4) or 0 in shape:
        raise _cannot_write(
            path,
            tr("a {kind} file cannot store a tensor of {shape}", kind=kind, shape=dims_text(shape)),
            tr("write the tensor as an .npy file"),
        )
    if shape[-3] not in possible:
        raise _cannot_write(
            path,
            tr("a {kind} file cannot store {channels} channels", kind=kind, channels=shape[-3]),
            tr("write the tensor as an .npy file"),
        )
    if bits not in depths:
        raise _cannot_write(
            path, tr("a {kind} file cannot store {bits} bits per channel", kind=kind, bits=bits), tr("use 8 bits")
        )


def encode_image(array: NDArray[Any], kind: str = "PNG", comment: str = "") -> bytes:
    """The first image of N x C x H x W (C is 1, 2, 3 or 4) as the bytes of a PNG, JPEG or lossless WebP file."""
    import io

    from PIL import Image

    out, pixels = io.BytesIO(), to_uint8(array)
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    if kind == "JPEG":
        image.save(out, kind, quality=95, subsampling=0, comment=comment)
    elif kind == "WEBP":
        image.save(out, kind, lossless=True, quality=20)  # its effort: half the time of 80 for 1 % more
    else:
        image.save(out, kind, compress_level=3, pnginfo=png_texts(comment))
    return out.getvalue()


def png_texts(comment: str) -> PngInfo | None:
    """Pillow's argument `pnginfo` for a PNG file with a comment."""
    from PIL.PngImagePlugin import PngInfo

    if not comment:
        return None
    texts = PngInfo()
    texts.add_text("Comment", comment)
    return texts


def _png16(pixels: NDArray[np.uint16], comment: str) -> bytes:
    """A 16-bit PNG (PNG specification, 3rd ed.), because Pillow writes only gray ones."""
    import struct
    import zlib

    height, width, channels = pixels.shape
    color_type = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = np.zeros((height, 1 + width * channels * 2), np.uint8)  # each row begins with its filter type: 0, none
    rows[:, 1:] = pixels.astype(">u2").reshape(height, -1).view(np.uint8)

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 16, color_type, 0, 0, 0)
    image = zlib.compress(rows.tobytes(), 3)
    text = chunk(b"tEXt", b"Comment\0" + comment.encode("latin-1")) if comment else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + text + chunk(b"IDAT", image) + chunk(b"IEND", b"")


def _cannot_write(path: Path, reason: str, remedy: str) -> DiagnosticError:
    return DiagnosticError.of("cannot-write-picture", reason, file=str(path), remedy=remedy)


class WriteImage(Protocol):
    """Writes the first image of N x C x H x W (or C x H x W), values clipped to 0..1. Raises DiagnosticError."""

    def __call__(self, path: Path, array: NDArray[Any], bits: int = 8, comment: str = "") -> None: ...


WriteArray = Callable[[Path, NDArray[Any]], None]


@dataclass(frozen=True, slots=True)
class ArrayFormat(Format[Callable[[Path], NDArray[Any]], Any]):
    """A format of images or tensors. `deep`: values are as stored and can be outside 0..1."""

    deep: bool = False


IMAGES: FormatTable[Callable[[Path], NDArray[Any]], WriteImage] = FormatTable(
    "images",
    (
        ArrayFormat("PNG image", (".png",), _pixels, _write_png),
        ArrayFormat("JPEG image", (".jpg", ".jpeg"), _pixels, _write_jpeg),
        ArrayFormat("TIFF image", (".tif", ".tiff"), _pixels, deep=True),
        ArrayFormat("BMP image", (".bmp",), _pixels),
        ArrayFormat("WebP image", (".webp",), _pixels),
        ArrayFormat("OpenEXR image", (".exr",), _pixels, deep=True),
        ArrayFormat("Portable pixmap", (".ppm", ".pgm"), _pixels),
    ),
)
TENSORS: FormatTable[Callable[[Path], NDArray[Any]], WriteArray] = FormatTable(
    "tensors", (ArrayFormat("NumPy array", (".npy",), read_npy, write_npy, deep=True),)
)
ARRAYS: FormatTable[Callable[[Path], NDArray[Any]], WriteArray] = FormatTable(
    "images and tensors", tables=(IMAGES, TENSORS)
)
