"""Videos: every frame by its number, in any order; files that are none; what is written is whole."""

from __future__ import annotations

import os
import threading
from time import monotonic
from types import SimpleNamespace

import numpy as np
import pytest
from video_files import make_uneven_video, make_video, picture_of

from designer.graph.diagnostics import DiagnosticError
from designer.runtime import camera as camera_module
from designer.runtime.camera import Camera, camera_name
from designer.runtime.sources import Sources
from designer.runtime.video import VideoReader
from designer.runtime.video_formats import VIDEOS
from designer.runtime.video_writer import FolderWriter, VideoWriter, codec_for

pytest.importorskip("cv2")


def refusal(call, *args, **kw):
    with pytest.raises(DiagnosticError) as caught:
        call(*args, **kw)
    (found,) = caught.value.diagnostics
    assert found.remedy
    return found


def as_batch(pixels):
    return pixels.astype(np.float32).transpose(2, 0, 1)[None] / np.float32(255)


def test_every_frame_by_its_number(tmp_path):
    path = make_video(tmp_path / "a.mkv", 40)
    with VideoReader(path) as video:
        info = video.info
        assert (info.frames, info.fps, info.width, info.height, info.variable) == (40, 25.0, 64, 48, False)
        assert info.seconds == pytest.approx(1.6, abs=0.002)
        assert info.codec.lower() == "ffv1"
        order = [*np.random.default_rng(0).permutation(40), *range(40), *reversed(range(40))]
        for index in order:
            np.testing.assert_array_equal(video.read(int(index)), picture_of(int(index)))
        assert not video.read(3).flags.writeable
        assert video.time(10) == pytest.approx(0.4, abs=0.002)


@pytest.mark.parametrize(
    ("name", "code"), [("a.mp4", "mp4v"), ("a.webm", "VP80"), ("a.avi", "MJPG"), ("b.avi", "FFV1")]
)
def test_frames_in_any_order_are_those_in_order(tmp_path, name, code):
    """The lossy kinds have frames that need others before them: what a seek finds must be the same picture."""
    path = make_video(tmp_path / name, 30, code)
    with VideoReader(path) as video:
        assert video.info.frames == 30
        straight = list(video.frames())
    with VideoReader(path) as video:
        for index in [29, 0, 13, 12, 11, 25, 1, *reversed(range(30))]:
            np.testing.assert_array_equal(video.read(index), straight[index])
        np.testing.assert_array_equal(straight[5:8], list(video.frames(5, 8)))


def test_frames_that_last_differently_long(tmp_path):
    times = [0, 1, 2, 5, 9, 10, 20, 21, 22, 40, 41, 60]
    path = make_uneven_video(tmp_path / "uneven.mkv", times)
    with VideoReader(path) as video:
        assert video.info.frames == len(times)  # the file itself says 61 by its duration
        assert video.info.variable
        assert video.info.fps == pytest.approx(11 / 2.4, rel=0.01)
        assert [round(video.time(i) * 25) for i in range(len(times))] == times
        straight = [frame.copy() for frame in video.frames()]
        blue = [int(frame[:, :, 2].mean()) for frame in straight]
        np.testing.assert_allclose(blue, range(len(times)), atol=3)
    with VideoReader(path) as video:
        for index in [11, 3, 9, 8, 4, 0, 10]:
            np.testing.assert_array_equal(video.read(index), straight[index])


def test_files_that_are_no_video(tmp_path):
    text = tmp_path / "a.mp4"
    text.write_text("hello")
    assert refusal(VideoReader, text).code == "not-a-video"
    missing = refusal(VideoReader, tmp_path / "none.mp4")
    assert missing.code == "cannot-read"
    assert "none.mp4" in str(missing)
    assert refusal(VideoReader, tmp_path).code == "cannot-read"
    (tmp_path / "empty.mkv").touch()
    assert refusal(VideoReader, tmp_path / "empty.mkv").code == "not-a-video"
    whole = make_video(tmp_path / "whole.mp4", 20, "mp4v")
    (tmp_path / "cut.mp4").write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    assert refusal(VideoReader, tmp_path / "cut.mp4").code == "not-a-video"  # its table of contents was at the end


def test_a_video_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path):
    whole = make_video(tmp_path / "whole.mkv", 20)
    data = whole.read_bytes()
    (tmp_path / "cut.mkv").write_bytes(data[: len(data) // 2])
    with VideoReader(tmp_path / "cut.mkv") as video:
        assert 2 < video.info.frames < 20
        np.testing.assert_array_equal(video.read(2), picture_of(2))
        for index in (video.info.frames, -1):
            found = refusal(video.read, index)
            assert found.code == "no-such-frame"
            assert str(index) in found.message


def test_frames_of_too_many_pixels_are_refused(tmp_path, monkeypatch):
    path = make_video(tmp_path / "a.mkv", 3)
    monkeypatch.setattr("designer.runtime.video.MAX_PIXELS", 64 * 48 - 1)
    assert refusal(VideoReader, path).code == "picture-too-large"


def test_names():
    assert VIDEOS.reads("a/b.MP4")
    assert not VIDEOS.reads("a.png")
    assert camera_name("camera:0") == "0"
    assert camera_name("a.mp4") is None


@pytest.mark.parametrize("name", ["a.mkv", "b.avi", "c.mp4"])
def test_a_lossless_video_holds_the_very_bytes(tmp_path, name):
    with VideoWriter(tmp_path / name, 30, "ffv1") as writer:
        for index in range(15):
            writer.write(as_batch(picture_of(index)))
        assert not (tmp_path / name).exists()  # not before it is whole
    assert [p.name for p in tmp_path.iterdir()] == [name]
    with VideoReader(tmp_path / name) as video:
        assert (video.info.frames, video.info.fps) == (15, 30.0)
        for index, frame in enumerate(video.frames()):
            np.testing.assert_array_equal(frame, picture_of(index))


@pytest.mark.parametrize("name", ["a.mp4", "a.mov", "a.webm", "a.avi"])
def test_lossy_videos_come_near(tmp_path, name):
    y, x = np.mgrid[:48, :64]
    smooth = np.stack([x / 63, y / 47, (x + y) / 110]).astype(np.float32)[None]
    with VideoWriter(tmp_path / name, 10) as writer:
        for _ in range(4):
            writer.write(smooth)
    with VideoReader(tmp_path / name) as video:
        assert video.info.frames == 4
        assert np.abs(video.read(2).astype(float) - smooth[0].transpose(1, 2, 0) * 255).mean() < 5


@pytest.mark.parametrize("name", ["A.MKV", "OUT.AVI", "a.Mp4", "a.MOV", "a.WebM"])
def test_a_suffix_in_capitals_is_written_as_the_same_kind_of_file(tmp_path, name):
    """Its codec, number and size of frames are those of a file whose suffix is in small letters, and the images are near."""
    read = []
    for each in (name, f"other{(tmp_path / name).suffix.lower()}"):
        with VideoWriter(tmp_path / each, 10) as writer:
            for index in range(3):
                writer.write(as_batch(picture_of(index)))
        with VideoReader(tmp_path / each) as video:
            read.append((writer.codec, video.info.codec, video.info.frames, np.stack([*video.frames()]).astype(float)))
    (*kind, frames), (*other, expected) = read
    assert kind == other
    assert frames.shape == expected.shape == (3, 48, 64, 3)
    assert np.abs(frames - expected).mean() < 5
    assert len([*tmp_path.iterdir()]) == 2


def test_quality_is_for_motion_jpeg(tmp_path):
    noise = np.random.default_rng(0).random((1, 3, 48, 64), np.float32)
    sizes = []
    for quality in (10, 95):
        with VideoWriter(tmp_path / "a.avi", 10, quality=quality) as writer:
            for _ in range(3):
                writer.write(noise)
        sizes.append((tmp_path / "a.avi").stat().st_size)
    assert sizes[0] < sizes[1] * 0.8
    assert "quality" in refusal(codec_for, tmp_path / "a.mkv", "ffv1", 50).message


def test_odd_sizes_are_told(tmp_path):
    pixels = picture_of(7, 47, 63)
    with VideoWriter(tmp_path / "a.mkv", 10) as writer:
        writer.write(as_batch(pixels))
    assert "63 x 47" in writer.note
    with VideoReader(tmp_path / "a.mkv") as video:
        frame = video.read(0)
        assert frame.shape == (48, 64, 3)
        np.testing.assert_array_equal(frame[:47, :63], pixels)
        np.testing.assert_array_equal(frame[47, :63], pixels[46])


def test_what_cannot_be_written(tmp_path):
    assert "ends" not in refusal(VideoWriter, tmp_path / "a.gif", 25).message
    assert refusal(VideoWriter, tmp_path / "a.mp4", 25, "vp9").code == "cannot-write-video"
    assert refusal(VideoWriter, tmp_path / "a.mp4", 25, "x265").code == "cannot-write-video"
    assert refusal(VideoWriter, tmp_path / "none" / "a.mp4", 25).code == "cannot-write-video"
    assert list(tmp_path.iterdir()) == []
    with VideoWriter(tmp_path / "a.mkv", 25) as writer:
        writer.write(np.zeros((1, 3, 8, 8), np.float32))
        assert "8 x 8" in refusal(writer.write, np.zeros((1, 3, 10, 8), np.float32)).message
        assert "1 x 4 x 8 x 8" in refusal(writer.write, np.zeros((1, 4, 8, 8), np.float32)).message
    assert refusal(VideoWriter(tmp_path / "b.mkv", 25).close).code == "cannot-write-video"
    assert [p.name for p in tmp_path.iterdir()] == ["a.mkv"]


def test_an_error_leaves_the_old_file(tmp_path):
    (tmp_path / "a.mkv").write_bytes(b"old")

    def fail_halfway():
        with VideoWriter(tmp_path / "a.mkv", 25) as writer:
            writer.write(np.zeros((1, 3, 8, 8), np.float32))
            raise KeyError

    with pytest.raises(KeyError):
        fail_halfway()
    assert [p.name for p in tmp_path.iterdir()] == ["a.mkv"]
    assert (tmp_path / "a.mkv").read_bytes() == b"old"


def test_a_file_with_too_few_frames_is_not_kept(tmp_path):
    writer = VideoWriter(tmp_path / "a.mkv", 25)
    writer.write(np.zeros((1, 3, 8, 8), np.float32))
    writer.count = 2  # as if the disk had taken only one of them
    assert "1 of 2" in refusal(writer.close).message
    assert list(tmp_path.iterdir()) == []


def test_folders_of_pictures(tmp_path):
    from designer.runtime.images import read_image

    with FolderWriter(tmp_path / "out") as writer:
        for index in range(3):
            writer.write(as_batch(picture_of(index, 5, 7)))
        writer.write(as_batch(picture_of(3)), "named")
        assert not (tmp_path / "out").exists()
    assert sorted(os.listdir(tmp_path / "out")) == [
        "frame_00000.png",
        "frame_00001.png",
        "frame_00002.png",
        "named.png",
    ]
    np.testing.assert_array_equal(read_image(tmp_path / "out" / "frame_00002.png"), as_batch(picture_of(2, 5, 7)))
    assert refusal(FolderWriter, tmp_path / "out").code == "cannot-write-video"
    values = np.random.default_rng(0).normal(0, 9, (1, 5, 2, 2)).astype(np.float32)
    with FolderWriter(tmp_path / "tensors", ".npy") as writer:
        writer.write(values)
    np.testing.assert_array_equal(np.load(tmp_path / "tensors" / "frame_00000.npy"), values)
    assert sorted(os.listdir(tmp_path)) == ["out", "tensors"]


class FakeDevice:
    """A camera that sends `picture_of(0)`, `picture_of(1)`, ... whenever it is let."""

    def __init__(self, pictures: int) -> None:
        import threading

        self.left = list(range(pictures))
        self.allowed = threading.Semaphore(0)
        self.released = False

    def isOpened(self):
        return True

    def read(self):
        if not self.left:
            return False, None
        self.allowed.acquire()
        return True, np.ascontiguousarray(picture_of(self.left.pop(0))[:, :, ::-1])

    def get(self, prop):
        return 30.0

    def release(self):
        self.released = True


def test_a_camera_gives_its_newest_picture():
    device = FakeDevice(5)
    camera = Camera("0", device)
    device.allowed.release()
    number, pixels = camera.latest()
    assert number == 1
    np.testing.assert_array_equal(pixels, picture_of(0))
    device.allowed.release(3)
    while camera.latest(number)[0] < 4:
        pass
    number, pixels = camera.latest(number)
    assert number == 4  # two were never looked at
    np.testing.assert_array_equal(pixels, picture_of(3))
    assert camera.fps > 0
    device.allowed.release()
    assert camera.latest(4)[0] == 5
    found = refusal(camera.latest, 5)  # it has no more
    assert found.code == "camera-silent"
    camera.close()
    assert device.released


@pytest.mark.parametrize("name", ["97", "/dev/video97", "http://127.0.0.1/a.mjpg", "nonsense"])
def test_a_camera_that_is_not_there(name):
    found = refusal(Camera, name)
    assert found.code == "no-camera"
    assert name in found.message
    assert "camera" in found.remedy or "/dev/video" in found.remedy


def test_a_video_may_stand_for_a_camera(tmp_path):
    path = make_video(tmp_path / "a.mkv", 4, fps=100)
    camera = Camera(str(path))
    seen = 0
    for _ in range(6):  # more than the file has: it plays again
        seen, pixels = camera.latest(seen)
        assert any(np.array_equal(pixels, picture_of(i)) for i in range(4))
    assert seen >= 6
    camera.close()


def test_a_damaged_frame_is_named_and_the_others_keep_their_numbers(tmp_path):
    from designer.runtime.opencv import opencv

    cv = opencv()
    path = make_video(tmp_path / "a.avi", 12, "MJPG")
    with VideoReader(path) as video:
        straight = list(video.frames())
    packets = cv.VideoCapture(str(path), cv.CAP_FFMPEG)
    packets.set(cv.CAP_PROP_FORMAT, -1)
    for _ in range(6):
        whole, packet = packets.read()
        assert whole
    packets.release()
    data, found = path.read_bytes(), packet.tobytes()
    assert data.count(found) == 1
    path.write_bytes(data.replace(found, bytes(len(found))))
    with VideoReader(path) as video:
        assert video.info.frames == 12
        np.testing.assert_array_equal(video.read(4), straight[4])
        found = refusal(video.read, 5)
        assert found.code == "damaged-video"
        assert "frame 5" in found.message
        for index in (6, 11, 3, 7):
            np.testing.assert_array_equal(video.read(index), straight[index])


def test_the_frames_of_a_gif_are_those_of_pillow(tmp_path):
    """Frames of different durations; all but the first hold only what changes."""
    image = pytest.importorskip("PIL.Image")
    frames = []
    for number in range(4):
        pixels = np.full((40, 60, 3), 40, np.uint8)
        pixels[5 * number : 5 * number + 10, 10:30] = (200, 20 * number, 90)
        frames.append(image.fromarray(pixels).convert("P"))
    path = tmp_path / "moving.gif"
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=[100, 200, 300, 100], loop=0)
    sources = Sources()
    info = sources.info(path)
    assert (info.kind, info.frames, info.width, info.height) == ("video", 4, 60, 40)
    assert info.times == pytest.approx((0.0, 0.1, 0.3, 0.6))
    with image.open(path) as expected:
        for number in (3, 0, 2, 1):
            expected.seek(number)
            np.testing.assert_array_equal(sources.video(path).read(number), np.asarray(expected.convert("RGB")))
    sources.release()


@pytest.mark.parametrize(("width", "height"), [(9, 12), (10, 7), (9, 7)])
def test_the_last_row_or_column_of_an_odd_size_is_repeated(tmp_path, width, height):
    image = picture_of(3, height, width)
    with VideoWriter(tmp_path / "a.mkv", 10) as writer:
        writer.write(as_batch(image))
        writer.write(as_batch(image[::-1]))
    assert f"{width} x {height} is odd" in writer.note
    expected = np.pad(image, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    with VideoReader(tmp_path / "a.mkv") as video:
        np.testing.assert_array_equal(video.read(0), expected)
        np.testing.assert_array_equal(video.read(1)[:height, :width], image[::-1])


def test_gray_and_single_images_are_written_in_color(tmp_path):
    gray = np.linspace(0, 1, 80, dtype=np.float32).reshape(1, 1, 8, 10)
    with VideoWriter(tmp_path / "a.mkv", 10) as writer:
        writer.write(gray)
        writer.write(np.concatenate([gray[0]] * 3))
        assert (writer.note, writer.count) == ("", 2)
    with VideoReader(tmp_path / "a.mkv") as video:
        for frame in video.frames():
            np.testing.assert_array_equal(frame, np.round(gray[0].transpose(1, 2, 0) * 255).repeat(3, axis=2))


@pytest.mark.parametrize(
    ("name", "codec", "quality", "message"),
    [
        ("a.mp4", "h265", 0, "there is no codec 'h265'"),
        ("a.mp4", "vp9", 0, "a .mp4 file cannot contain VP9"),
        ("a.mkv", "", 80, "FFV1, lossless has no quality setting"),
        ("a.txt", "", 0, "'.txt' is not a file type of videos"),
    ],
)
def test_refusals_name_the_file_with_its_folder(tmp_path, name, codec, quality, message):
    found = refusal(VideoWriter, tmp_path / name, 10, codec, quality)
    assert found.message.startswith(f"{name} cannot be written: {message}")
    assert (found.code, found.file) == ("cannot-write-video", str(tmp_path / name))


def test_refused_images_are_named_with_their_sizes(tmp_path):
    with VideoWriter(tmp_path / "a.mkv", 10) as writer:
        writer.write(np.zeros((1, 3, 4, 6)))
        found = refusal(writer.write, np.zeros((1, 3, 8, 6)))
        assert "image 1 has 6 x 8 pixels, but the previous ones have 6 x 4" in found.message
        assert "2 x 4 x 6" in refusal(writer.write, np.zeros((2, 4, 6))).message
        writer.write(np.zeros((1, 3, 4, 6)))
    assert writer.count == 2


def test_refused_videos_are_named_with_the_size_of_their_frames(tmp_path, monkeypatch):
    path = make_video(tmp_path / "a.mkv", 2)
    monkeypatch.setattr("designer.runtime.video.MAX_PIXELS", 3000)
    found = refusal(VideoReader, path)
    assert "its frames have 64 x 48 pixels" in found.message
    assert found.file == str(path)


@pytest.mark.parametrize(
    ("suffix", "codec"), [(".mkv", "ffv1"), (".mp4", "mpeg4"), (".mov", "mpeg4"), (".webm", "vp9"), (".AVI", "mjpeg")]
)
def test_the_usual_codec_of_each_kind_of_file(tmp_path, suffix, codec):
    assert codec_for(tmp_path / f"a{suffix}") == codec
    assert codec_for(tmp_path / "a.avi", "ffv1") == "ffv1"
    assert codec_for(tmp_path / "a.avi", "", 50) == "mjpeg"


def test_files_of_a_folder_have_numbers_or_names(tmp_path):
    with FolderWriter(tmp_path / "out", ".npy") as writer:
        for number, name in enumerate(("a", "", "a", "b.c")):
            writer.write(np.full((1, 1, 2, 2), number, np.float32), name)
    names = ["a.npy", "a_00002.npy", "b.c.npy", "frame_00001.npy"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    assert [np.load(tmp_path / "out" / name)[0, 0, 0, 0] for name in names] == [0, 2, 3, 1]
    found = refusal(FolderWriter, tmp_path / "out")
    assert found.message == "out cannot be written: it already exists and is not empty"


class ScriptedDevice:
    """A camera that sends an image for every 1 of its script and none for every 0, then none."""

    def __init__(self, script: str) -> None:
        self.left = [*script]
        self.released = 0

    def isOpened(self):
        return True

    def read(self):
        sent = self.left.pop(0) == "1" if self.left else False
        return sent, np.zeros((4, 4, 3), np.uint8) if sent else None

    def get(self, prop):
        return 30.0

    def release(self):
        self.released += 1


@pytest.mark.parametrize(
    ("script", "images"), [("1001001", 3), ("11000111", 2), ("0010", 1), ("000111", 0), ("100" * 8, 8), ("", 0)]
)
def test_a_camera_ends_at_the_third_image_in_a_row_that_is_missing(script, images):
    device = ScriptedDevice(script)
    camera = Camera("0", device)
    camera._thread.join(5)
    began = monotonic()
    if images:
        assert camera.latest(images - 1)[0] == images
    found = refusal(camera.latest, images)
    assert found.code == "camera-silent"
    assert monotonic() - began < 2  # its end is known: nothing is waited for
    camera.close()
    assert device.released == 1


def test_a_camera_is_released_after_its_last_read():
    class Slow(ScriptedDevice):
        """Its read ends a moment after the camera stops."""

        reading, begun, asked, seen = False, threading.Event(), threading.Event(), ()

        def read(self):
            self.reading = True
            self.begun.set()
            self.asked.wait(5)
            threading.Event().wait(0.03)
            self.reading = False
            return False, None

        def release(self):
            self.seen = (*self.seen, self.reading)

    device = Slow("")
    camera = Camera("0", device)
    assert device.begun.wait(5)
    stop = camera._stopped.set
    camera._stopped.set = lambda: (stop(), device.asked.set())
    camera.close()
    assert device.seen == (False,)
    assert not camera._thread.is_alive()


def test_a_device_that_does_not_open_is_not_a_camera():
    class Closed(ScriptedDevice):
        def isOpened(self):
            return False

    device = Closed("111")
    assert refusal(Camera, "0", device).code == "no-camera"
    assert device.left == ["1", "1", "1"]


def test_images_per_second_are_those_between_the_first_and_the_last(monkeypatch):
    times = iter([10.0, 10.1, 10.3, 10.4])
    monkeypatch.setattr(camera_module, "monotonic", lambda: next(times))
    for script, rate in (("", 0.0), ("1", 0.0), ("111", 10.0)):
        times = iter([10.0, 10.05, 10.2])
        camera = Camera("0", ScriptedDevice(script))
        camera._thread.join(5)
        assert camera.fps == pytest.approx(rate)
        camera.close()


def test_an_address_is_not_a_camera_although_a_folder_has_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "http:").mkdir()
    make_video(tmp_path / "a.mkv", 4).rename(tmp_path / "http:" / "a.mkv")
    assert os.path.exists("http://a.mkv")
    calls = SimpleNamespace(VideoCapture=lambda name: pytest.fail(f"{name} was opened"))
    monkeypatch.setattr(camera_module, "opencv", lambda: calls)
    assert refusal(Camera, "http://a.mkv").code == "no-camera"
