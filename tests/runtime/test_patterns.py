"""Test pictures: what is in them, and that a network can be fed with them by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from runtime_networks import unet, unet_weights

from designer.files.settings import Settings, read_settings, save_settings
from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import Source
from designer.runtime.api import RunOptions
from designer.runtime.input_data import as_batch
from designer.runtime.patterns import PATTERNS, make_pattern, pattern_name
from designer.runtime.session import Session


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 48, 64), (4, 33, 17)])
def test_shape_and_range(name: str, shape: tuple[int, int, int]) -> None:
    made = make_pattern(name, *shape)
    assert made.shape == (1, *shape)
    assert made.dtype == np.float32
    assert made.min() >= 0
    assert made.max() <= 1
    assert np.array_equal(made, make_pattern(name, *shape))
    if shape[1] > 1:
        assert made.std() > 0.1


def test_known_values() -> None:
    plate = make_pattern("zone_plate", 3, 65, 65)[0]
    assert plate[0, 32, 32] == 1
    assert plate[0, 32, 40] == pytest.approx(0.5 + 0.5 * np.cos(np.pi * 64 / 65), abs=1e-6)
    assert np.array_equal(plate[0], plate[2])
    gradient = make_pattern("gradient", 3, 5, 9)[0]
    np.testing.assert_allclose(gradient[0, 2], np.linspace(0, 1, 9), atol=1e-6)
    np.testing.assert_allclose(gradient[1, :, 4], np.linspace(0, 1, 5), atol=1e-6)
    assert set(np.unique(make_pattern("edges", 1, 64, 64))) == {0.0, 1.0}
    assert abs(make_pattern("noise", 1, 100, 100).mean() - 0.5) < 0.02


def test_names() -> None:
    assert pattern_name(Path("pattern:edges")) == "edges"
    assert pattern_name(Path("edges.png")) is None
    with pytest.raises(DiagnosticError, match="no test pattern 'fog'"):
        pattern_name("pattern:fog")


def test_a_network_is_fed_by_name(runtime_registry) -> None:
    pytest.importorskip("onnxruntime")
    session = Session(unet(), runtime_registry, unet_weights(), RunOptions(threads=1))
    session.set_input_file("image", Path("pattern:gradient"))
    result = session.run([Source("image")])
    np.testing.assert_array_equal(result.captures[Source("image")], make_pattern("gradient", 3, 24, 32))


@pytest.mark.parametrize("axes", [(0, 1, 2), (1, 2, 0)])
def test_a_single_picture_of_floats_is_fed_as_it_is(runtime_registry, tmp_path: Path, axes: tuple[int, ...]) -> None:
    pytest.importorskip("onnxruntime")
    picture = np.random.default_rng(0).normal(0, 3, (3, 24, 32)).astype(np.float32)
    np.save(tmp_path / "a.npy", picture.transpose(axes))
    session = Session(unet(), runtime_registry, unet_weights(), RunOptions(threads=1))
    session.set_input_file("image", tmp_path / "a.npy")
    np.testing.assert_array_equal(session.run([Source("image")]).captures[Source("image")], picture[None])


def test_which_axis_is_the_channels() -> None:
    assert as_batch(np.zeros((5, 6), np.float32), 1).shape == (1, 1, 5, 6)
    assert as_batch(np.zeros((5, 6), np.float32), 3).shape == (5, 6)  # refused later, by name
    assert as_batch(np.zeros((1, 3, 5, 6), np.float32), 3).shape == (1, 3, 5, 6)


def test_settings_keep_the_name(tmp_path: Path) -> None:
    path = tmp_path / "net.settings.xml"
    save_settings(Settings(input_files={"image": "pattern:edges"}), path)
    assert read_settings(path).settings.input_files == {"image": "pattern:edges"}
