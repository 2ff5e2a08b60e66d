"""Images of a folder as feeds of a network: which are used, which part of them, and why others are not."""

from __future__ import annotations

import numpy as np
import pytest
from runtime_networks import layer

from designer.files.variants import CalibrationRecipe
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.precision.image_set import read_image_set
from designer.precision.int8 import calibration_images
from designer.runtime.images import write_image

IMAGES = {
    name: np.random.default_rng(number).integers(0, 256, (1, 3, *size)).astype(np.float32) / 255
    for number, (name, size) in enumerate(
        {"a.png": (6, 8), "b.png": (10, 13), "c.png": (5, 8), "d.png": (6, 7), "e.png": (7, 9)}.items()
    )
}


def network(registry, *inputs, **params) -> Inference:
    layers = [layer(name, "input", dims="8x6x3", **params) for name in inputs]
    return Inference(Graph([*layers, layer("result", "output", inputs[0])]), registry)


@pytest.fixture
def folder(tmp_path):
    for name, image in IMAGES.items():
        write_image(tmp_path / name, image)
    (tmp_path / "notes.txt").write_text("no image")
    return tmp_path


def test_the_middle_of_each_image_that_is_large_enough(registry, folder):
    found = read_image_set(network(registry, "image"), folder, count=10)
    assert found.names == ("a.png", "b.png", "e.png")
    expected = [IMAGES["a.png"], IMAGES["b.png"][:, :, 2:8, 2:10], IMAGES["e.png"][:, :, :6, :8]]
    for feeds, image in zip(found.feeds, expected, strict=True):
        assert set(feeds) == {"image"}
        np.testing.assert_allclose(feeds["image"], image, atol=1e-6)
    assert found.skipped == {
        "c.png": "8 x 5 pixels are fewer than 8 x 6",
        "d.png": "7 x 6 pixels are fewer than 8 x 6",
    }


def test_images_are_scaled_and_padded_as_the_network_reads_them(registry, folder):
    (feeds,) = read_image_set(network(registry, "image", scale=2, shift=-1, tiling=4), folder, count=1).feeds
    assert feeds["image"].shape == (1, 3, 8, 8)
    np.testing.assert_allclose(feeds["image"][:, :, :6], IMAGES["a.png"] * 2 - 1, atol=1e-6)


def test_a_size_is_height_and_width(registry, folder):
    found = read_image_set(network(registry, "image"), folder, count=10, size=(5, 8))
    assert found.names == ("a.png", "b.png", "c.png", "e.png")
    np.testing.assert_allclose(found.feeds[2]["image"], IMAGES["c.png"], atol=1e-6)


@pytest.mark.parametrize(("size", "extent"), [("", None), ("8x5", (5, 8)), ("7x6", (6, 7)), ("5x5", (5, 5))])
def test_the_images_of_a_recipe_have_its_width_and_height(registry, folder, size, extent):
    inference, count = network(registry, "image"), 2
    found = calibration_images(inference, CalibrationRecipe(str(folder), count, size))
    expected = read_image_set(inference, folder, count=count, size=extent)
    assert (found.names, found.skipped) == (expected.names, expected.skipped)
    for feeds, wanted in zip(found.feeds, expected.feeds, strict=True):
        assert feeds["image"].shape[2:] == (extent or (6, 8))
        np.testing.assert_array_equal(feeds["image"], wanted["image"])


def test_hidden_files_are_not_used_and_skipped_ones_do_not_count(registry, folder):
    write_image(folder / ".hidden.png", IMAGES["b.png"])
    (folder / "0.png").write_bytes(b"damaged")
    (folder / "1.png").mkdir()
    found = read_image_set(network(registry, "image"), folder, count=3)
    assert found.names == ("a.png", "b.png", "e.png")
    assert list(found.skipped) == ["0.png", "c.png", "d.png"]


@pytest.mark.parametrize(
    ("count", "names"), [(1, ("a.png",)), (2, ("a.png", "b.png")), (3, ("a.png", "b.png", "e.png"))]
)
def test_no_image_is_read_after_the_last_that_is_needed(registry, folder, count, names):
    found = read_image_set(network(registry, "image"), folder, count=count)
    assert found.names == names
    assert bool(found.skipped) == (count > 2)


def test_why_there_are_no_images(registry, folder):
    def refused(path, **size) -> str:
        with pytest.raises(DiagnosticError) as caught:
            read_image_set(network(registry, "image"), path, count=10, **size)
        (found,) = caught.value.diagnostics
        assert (found.code, found.file) == ("no-images", str(path))
        assert found.remedy
        return found.message

    assert refused(folder / "absent") == "the folder does not exist"
    (folder / "empty").mkdir()
    assert refused(folder / "empty") == "the folder has no images"
    message = refused(folder, size=(100, 100))
    assert message.startswith("none of the 5 images can be used: a.png: 8 x 6 pixels are fewer than 100 x 100; b.png: ")
    assert "c.png" in message
    assert "d.png" not in message  # three examples


def test_a_network_with_two_inputs_is_refused(registry, folder):
    with pytest.raises(DiagnosticError, match="the network has the inputs image, mask") as caught:
        read_image_set(network(registry, "image", "mask"), folder, count=1)
    assert caught.value.diagnostics[0].code == "not-one-image"
