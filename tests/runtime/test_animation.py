"""Noise that is another in every frame of a video, and the document's own afterwards."""

from __future__ import annotations

import numpy as np
import pytest
from runtime_networks import layer, pixels

from app.engine.video_job import VideoJob, process
from designer.files.weights import Weights
from designer.graph.graph import Graph
from designer.runtime.animation import Animation
from designer.runtime.api import RunOptions
from designer.runtime.images import read_image, write_image
from designer.runtime.session import Session

pytest.importorskip("onnxruntime")


def noisy(registry, **params) -> Session:
    graph = Graph(
        [
            layer("image", "input", dims="16x12x3"),
            layer("noise", "noise", "image", scale="0.3", seed="5", **params),
            layer("result", "output", "noise"),
        ]
    )
    session = Session(graph, registry, Weights(), RunOptions(threads=1))
    session.set_input("image", pixels(12, 16), is_image=True)
    return session


def test_seeds_count_up_and_go_back(runtime_registry):
    session = noisy(runtime_registry, animate="true")
    still = session.run().outputs["result"]
    animation = Animation(session)
    assert animation.seeds == {"noise": 5}
    animation.show(3)
    other = noisy(runtime_registry, animate="true")
    other.set_param("noise", "seed", "8")
    np.testing.assert_array_equal(session.run().outputs["result"], other.run().outputs["result"])
    assert not np.array_equal(session.run().outputs["result"], still)
    animation.show(0)
    np.testing.assert_array_equal(session.run().outputs["result"], still)


@pytest.mark.parametrize("params", [{}, {"animate": "false"}, {"animate": "true", "kind": "blur"}])
def test_what_stands_still_stays(runtime_registry, params):
    assert Animation(noisy(runtime_registry, **params)).seeds == {}


@pytest.mark.parametrize("animate", ["true", "false"])
def test_frames_of_a_folder(runtime_registry, tmp_path, animate):
    for number in range(3):
        write_image(tmp_path / f"in_{number}.png", np.full((1, 3, 12, 16), 0.5, np.float32))
    session = noisy(runtime_registry, animate=animate)
    made = tmp_path / "made"
    process(session, VideoJob({"image": tmp_path}, {"result": made}))
    frames = [read_image(path, 3) for path in sorted(made.iterdir())]
    assert len(frames) == 3
    assert np.array_equal(frames[0], frames[1]) == (animate == "false")
    assert np.array_equal(frames[1], frames[2]) == (animate == "false")
    assert session.graph["noise"].params["seed"] == "5"


def test_a_range_of_a_folder_has_the_noise_of_its_frames(runtime_registry, tmp_path):
    for number in range(4):
        write_image(tmp_path / f"in_{number}.png", np.full((1, 3, 12, 16), 0.5, np.float32))
    whole, part = tmp_path / "whole", tmp_path / "part"
    for folder, start in ((whole, 0), (part, 2)):
        session = noisy(runtime_registry, animate="true")
        process(session, VideoJob({"image": tmp_path}, {"result": folder}, start, 4))
    frames = sorted(part.iterdir())
    assert len(frames) == 2
    for path, expected in zip(frames, sorted(whole.iterdir())[2:], strict=True):
        np.testing.assert_array_equal(read_image(path), read_image(expected))


@pytest.mark.parametrize(
    ("seed", "frames"),
    [
        (0, {0: "0", 1: "1", 7: "7"}),
        (2**31 - 1, {0: "2147483647", 1: "0", 2: "1"}),
        (2**31 - 3, {1: "2147483646", 2: "2147483647", 3: "0", 2**31 + 4: "1"}),
    ],
)
def test_seeds_start_again_after_the_largest(runtime_registry, seed, frames):
    session = noisy(runtime_registry, animate="true")
    session.set_param("noise", "seed", str(seed))
    animation = Animation(session)
    for frame in (*frames, *reversed(frames)):
        animation.show(frame)
        assert session.graph["noise"].params["seed"] == frames[frame]
    assert animation.seeds == {"noise": seed}


def test_each_animated_layer_has_its_own_seed(runtime_registry):
    graph = Graph(
        [
            layer("image", "input", dims="16x12x3"),
            layer("a", "noise", "image", seed="5", animate="true"),
            layer("b", "noise", "a", seed="40", animate="true"),
            layer("c", "noise", "b", seed="9"),
            layer("d", "noise", "c", seed="9", animate="true", kind="jpeg"),
            layer("result", "output", "d"),
        ]
    )
    session = Session(graph, runtime_registry, Weights(), RunOptions(threads=1))
    animation = Animation(session)
    assert animation.seeds == {"a": 5, "b": 40}
    for frame in (3, 1, 0):
        animation.show(frame)
        seeds = {name: session.graph[name].params["seed"] for name in "abcd"}
        assert seeds == {"a": str(5 + frame), "b": str(40 + frame), "c": "9", "d": "9"}
