"""Edge cases of what runs share: equal results, digests of layers, shared tensors, batches, threads, and frames of videos."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from video_files import make_video

from designer.graph.diagnostics import DiagnosticError
from designer.graph.model import ActivationSpec, Layer, Source
from designer.runtime.api import RunOptions
from designer.runtime.input_data import as_batch
from designer.runtime.machine import physical_cores, threads
from designer.runtime.neighbors import agree
from designer.runtime.results import layer_text
from designer.runtime.shared import SharedFolder
from designer.runtime.video import VideoReader


def test_results_agree_if_what_both_have_is_equal_to_the_bit() -> None:
    a, b, c = (Source(name) for name in "abc")
    one, nan = np.ones(3, np.float32), np.array([1, np.nan, np.inf], np.float32)
    assert agree({a: one, b: nan}, {b: nan.copy(), c: one})
    assert agree({a: one}, {b: nan})
    assert not agree({a: one, b: nan}, {a: one.copy(), b: np.nextafter(nan, 0)})
    assert not agree({a: one}, {a: one[:2]})


def test_everything_that_a_result_depends_on_is_in_the_text_of_a_layer() -> None:
    layer = Layer(
        "a", "relu", inputs=(Source("x"),), params={"p": "1"}, activation=ActivationSpec("elu", {"alpha": "1"})
    )
    others = [
        replace(layer, name="b"),
        replace(layer, type="elu"),
        replace(layer, inputs=(Source("x", "y1"),)),
        replace(layer, params={"p": "2"}),
        replace(layer, activation=None),
        replace(layer, activation=ActivationSpec("relu", {"alpha": "1"})),
        replace(layer, activation=ActivationSpec("elu", {"alpha": "2"})),
        replace(layer, weights_of="other"),
    ]
    texts = {repr(layer_text(each)) for each in (layer, *others)}
    assert len(texts) == 1 + len(others)
    assert layer_text(replace(layer, position=(5, 5))) == layer_text(layer)
    turned = [
        replace(layer, params=dict(pairs), activation=ActivationSpec("elu", dict(pairs)))
        for pairs in ((("a", "1"), ("b", "2")), (("b", "2"), ("a", "1")))
    ]
    assert layer_text(turned[0]) == layer_text(turned[1])


@pytest.mark.parametrize("change", [b"", b"12345678"])
def test_a_shared_tensor_whose_file_has_another_size_is_refused(tmp_path, change: bytes) -> None:
    folder = SharedFolder(tmp_path)
    handle = folder.put(np.arange(6, dtype=np.float32).reshape(2, 3))
    np.testing.assert_array_equal(folder.get(handle), [[0, 1, 2], [3, 4, 5]])
    file = tmp_path / handle.file
    file.write_bytes(file.read_bytes() + change if change else file.read_bytes()[:-1])
    with pytest.raises(DiagnosticError, match="another size"):
        folder.get(handle)


def test_channels_come_first_where_both_axes_could_be_channels() -> None:
    both = np.arange(3 * 4 * 3, dtype=np.float32).reshape(3, 4, 3)
    np.testing.assert_array_equal(as_batch(both, 3), both[None])
    last = np.arange(5 * 4 * 3, dtype=np.float32).reshape(5, 4, 3)
    np.testing.assert_array_equal(as_batch(last, 3), last.transpose(2, 0, 1)[None])


def test_the_number_of_threads_is_the_option_or_all_cores() -> None:
    assert [threads(RunOptions(threads=number)) for number in (1, 2, 99)] == [1, 2, 99]
    assert threads(RunOptions(threads=0)) == physical_cores()


def test_ranges_of_a_video_end_with_it(tmp_path) -> None:
    pytest.importorskip("cv2")
    with VideoReader(make_video(tmp_path / "a.mkv", 10)) as video:
        assert [len(list(video.frames(*ends))) for ends in ((), (4,), (4, 6), (8, 99), (10, 99), (6, 4))] == [
            10,
            6,
            2,
            2,
            0,
            0,
        ]
        assert video.info.seconds == pytest.approx(0.4)
        assert video.time(9) == pytest.approx(0.36)
