"""Values that the training scripts compute: metrics of colors, shapes of targets, synthetic images that are made twice."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from PIL import Image
from project_scripts import scripts

torch = pytest.importorskip("torch")

RGB = {"red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1), "yellow": (1, 1, 0), "white": (1, 1, 1)}
LUMA = {"red": 81.481, "green": 144.553, "blue": 40.966, "yellow": 210.034, "white": 235.0}  # rgb2ycbcr of MATLAB


@pytest.mark.parametrize("color", RGB)
def test_the_luma_of_each_color_is_that_of_matlab(tmp_path, color):
    with scripts(tmp_path) as get:
        psnr_y = get("metrics").psnr_y
    image = torch.tensor(RGB[color], dtype=torch.float32)[:, None, None].expand(2, 3, 4, 5)
    black = torch.zeros(2, 3, 4, 5)  # 16
    assert psnr_y(image, black, 0) == pytest.approx(-20 * np.log10((LUMA[color] - 16) / 255), abs=1e-4)


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_images_without_three_channels_are_their_own_luma(tmp_path, channels):
    with scripts(tmp_path) as get:
        psnr_y = get("metrics").psnr_y
    image = torch.zeros(1, channels, 2, 2)
    image[:, 0] = 0.5
    assert psnr_y(image, torch.zeros(1, channels, 2, 2), 0) == pytest.approx(10 * np.log10(4 * channels), abs=1e-4)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
def test_labels_have_the_shape_of_the_input_that_losses_read(tmp_path, shape):
    label = torch.tensor([2, 0])
    with scripts(tmp_path, "classification", targets=(shape,)) as get:
        (image,), target = get("data").sample(torch.zeros(2, 3, 8, 8), label)
    assert image.shape == (2, 3, 8, 8)
    assert (target.shape, target.dtype) == ((2, *shape), torch.float32)
    assert target.flatten().tolist() == [2.0, 0.0]


def test_labels_without_losses_of_the_document_are_class_numbers(tmp_path):
    with scripts(tmp_path, "classification") as get:
        _, target = get("data").sample(torch.zeros(2, 3, 8, 8), torch.tensor([2, 0]))
    assert (target.tolist(), target.dtype) == ([2, 0], torch.int64)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_synthetic_image_without_its_file_is_the_same_again(tmp_path, monkeypatch, channels):
    """Another process makes the files; whoever misses one makes it from the same seed, size and photos."""
    photo = tmp_path / "photo.png"
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (900, 800, 3), np.uint8)).save(photo)
    with scripts(tmp_path) as get:
        synthetic = get("synthetic")
        pool = [synthetic.SyntheticImages(3, channels, 64, 5, 0, tmp_path / "cache", [str(photo)]) for _ in range(2)]
        for images in pool:
            images.side = 48
        folder = pool[0].folder
        folder.mkdir(parents=True)
        monkeypatch.setattr(sys, "argv", ["synthetic.py", str(folder), "48", str(channels), "5", str(photo)])
        monkeypatch.setattr(sys, "stdin", ["0\n", "2\n"])
        synthetic.main()
        assert sorted(path.name for path in folder.iterdir()) == ["0.png", "2.png"]
        kept = [pool[0].load(number, 0) for number in range(3)]
        for path in folder.iterdir():
            path.unlink()
        for number in range(3):
            np.testing.assert_array_equal(pool[1].load(number, 0), kept[number])
        gray = synthetic.SyntheticImages(3, channels, 64, 5, 0, tmp_path / "cache", [])
        other = synthetic.SyntheticImages(3, channels, 64, 6, 0, tmp_path / "cache", [str(photo)])
        for images in (gray, other):
            images.side = 48
            assert not np.array_equal(images.load(0, 0), kept[0])
