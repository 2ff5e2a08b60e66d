"""A pool of dead leaves images in files, made ahead by another process and kept for later runs.

Image k depends only on the seed, its size, and the photos, so files and runs can be repeated.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from dead_leaves import dead_leaves

SIDE = 256  # pixels; larger for larger patches
PHOTOS = 32  # most photos that give colors and textures
PHOTO_SIDE = 768
AHEAD = 4  # images that are made before they are needed
PATIENCE = 30.0  # seconds to wait for the other process


class SyntheticImages:
    """`count` images by number. After every `refresh` samples the oldest one is replaced by a new one (0: never).

    `reading` is the number of samples that are read before the first of them is used.
    """

    def __init__(
        self,
        count: int,
        channels: int,
        side: int,
        seed: int,
        refresh: int,
        cache: Path,
        photos: Sequence[Path],
        reading: int = 0,
    ) -> None:
        self.count = count
        self.channels = channels
        self.side = max(SIDE, side)
        self.seed = seed
        self.refresh = refresh
        self.reading = reading
        self.photos = [str(path) for path in photos[:PHOTOS]]
        recipe = repr((self.side, channels, seed, self.photos))
        self.folder = cache / hashlib.sha256(recipe.encode()).hexdigest()[:16]
        self._maker: subprocess.Popen[bytes] | None = None
        self._made_elsewhere = False
        self._asked = self._removed = 0
        self._kept: dict[int, tuple[int, np.ndarray]] = {}

    def __len__(self) -> int:
        return self.count

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_maker": None}

    def area(self) -> int:
        """Pixels of all images."""
        return self.count * self.side**2

    def load(self, slot: int, sample: int) -> np.ndarray:
        """The image that is number `slot` of the pool at sample number `sample`, as H x W x C bytes."""
        replaced = sample // self.refresh if self.refresh else 0
        number = (replaced + self.count - 1 - slot) // self.count * self.count + slot
        known = self._kept.get(slot)
        if known is None or known[0] != number:
            known = self._kept[slot] = (number, self._read(number))
        return known[1]

    def prepare(self, sample: int) -> None:
        """Let the other process make the images that samples from `sample` on need, and remove older ones."""
        if not self.count:
            return
        if self._maker is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            given = [str(self.folder), str(self.side), str(self.channels), str(self.seed), *self.photos]
            command = [sys.executable, str(Path(__file__).resolve()), *given]
            self._maker = subprocess.Popen(command, stdin=subprocess.PIPE)
            self._made_elsewhere = True
        replaced = sample // self.refresh if self.refresh else 0
        needed = self.count + ((sample + self.reading) // self.refresh + AHEAD if self.refresh else 0)
        self._asked = max(self._asked, replaced)
        self._removed = max(self._removed, replaced - 2 * self.count)
        assert self._maker.stdin is not None
        try:
            for number in range(self._asked, needed):
                self._maker.stdin.write(f"{number}\n".encode())
            self._maker.stdin.flush()
            for number in range(self._removed, replaced - self.count):
                (self.folder / f"{number}.png").unlink(missing_ok=True)
        except OSError:  # it ended; `load` makes the images
            pass
        self._asked = max(self._asked, needed)
        self._removed = max(self._removed, replaced - self.count)

    def close(self) -> None:
        """End the other process."""
        if self._maker is not None:
            self._maker.kill()
            self._maker.communicate()
            self._maker = None

    def _read(self, number: int) -> np.ndarray:
        file = self.folder / f"{number}.png"
        given_up = time.monotonic() + (PATIENCE if self._made_elsewhere else 0)
        while not file.exists() and time.monotonic() < given_up:
            time.sleep(0.02)
        if not file.exists():
            return make(number, self.side, self.channels, self.seed, load_photos(self.photos))
        with Image.open(file) as opened:
            array = np.asarray(opened)
        return array.reshape(self.side, self.side, self.channels)


def make(number: int, side: int, channels: int, seed: int, photos: Sequence[np.ndarray]) -> np.ndarray:
    """Image `number` as side x side x channels bytes."""
    rng = np.random.default_rng((seed, 0xD1, number))
    image = dead_leaves(side, rng, photos)
    if channels == 1:
        return np.asarray(Image.fromarray(image).convert("L"))[:, :, None]
    more = [dead_leaves(side, rng, photos) for _ in range(-(-channels // 3) - 1)]
    return np.concatenate([image, *more], axis=2)[:, :, :channels]


def load_photos(paths: Sequence[str]) -> list[np.ndarray]:
    """Photos as H x W x 3 bytes, downscaled; files that cannot be read are left out."""
    photos = []
    for path in paths:
        try:
            # From a stream, as in images.py, which takes a second to import.
            with open(path, "rb") as stream, Image.open(stream) as opened:
                image: Image.Image = opened
                if opened.mode.startswith("I"):  # 16 bits
                    deep = np.asarray(ImageOps.exif_transpose(opened))
                    image = Image.fromarray((deep.clip(0, 65535) / 257 + 0.5).astype(np.uint8))
                image.thumbnail((PHOTO_SIDE, PHOTO_SIDE))
                photos.append(np.asarray(ImageOps.exif_transpose(image).convert("RGB")))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            continue
    return [photo for photo in photos if min(photo.shape[:2]) >= 16]


def main() -> None:
    """Make the images whose numbers are read from the standard input, until it ends."""
    folder, side, channels, seed = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    photos: list[np.ndarray] | None = None
    for line in sys.stdin:
        file = folder / f"{int(line)}.png"
        if file.exists():
            continue
        photos = load_photos(sys.argv[5:]) if photos is None else photos
        array = make(int(line), side, channels, seed, photos)
        part = file.with_name(f"{file.name}.{os.getpid()}.part")
        plane = array if channels in (3, 4) else array.reshape(side, -1)  # other channels side by side in a gray image
        Image.fromarray(plane).save(part, "PNG", compress_level=1)
        os.replace(part, file)


if __name__ == "__main__":
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end of the standard input ends it
    main()
