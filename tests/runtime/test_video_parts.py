"""Frames of videos with a library that only counts: seeking, kept frames, time stamps, and the properties of a file."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from designer.graph.diagnostics import DiagnosticError
from designer.runtime import video as module
from designer.runtime.camera import camera_name
from designer.runtime.video import VideoReader


class File:
    """A video: packets (time stamp, milliseconds) in the order of the file, and what its decoder does."""

    def __init__(
        self, packets, *, fps=25.0, fourcc="mp4v", width=6, height=4, late=0, damaged=(), skipped=(), broken=(), shift=0
    ):
        self.packets, self.fps, self.fourcc, self.width, self.height = list(packets), fps, fourcc, width, height
        self.late, self.damaged, self.skipped, self.broken, self.shift = (
            late,
            set(damaged),
            set(skipped),
            set(broken),
            shift,
        )
        self.shown = sorted(p for p in self.packets if p[0] >= 0) or sorted(self.packets)
        self.grabbed: list[int] = []
        self.sought: list[int] = []
        self.opened = self.released = 0
        self.good = True


class Capture:
    def __init__(self, file: File) -> None:
        self.file, self.raw, self.next, self.now = file, False, 0, -1
        file.opened += 1

    def isOpened(self) -> bool:
        return self.file.good

    def release(self) -> None:
        self.file.released += 1

    def set(self, prop: str, value: float) -> bool:
        if prop == "FORMAT":
            self.raw = True
        else:
            self.file.sought.append(int(value))
            self.next = min(int(value) + self.file.late if value else 0, len(self.file.shown))
        return True

    def grab(self) -> bool:
        if self.raw:
            self.now, self.next = self.next, self.next + 1
            return self.now < len(self.file.packets)
        while self.next in self.file.skipped:
            self.next += 1
        if self.next >= len(self.file.shown) or self.next in self.file.damaged:
            return False
        self.now, self.next = self.next, self.next + 1
        self.file.grabbed.append(self.now)
        return True

    def retrieve(self):
        frame = np.zeros((self.file.height, self.file.width, 3), np.uint8)
        frame[:] = (self.now % 256, 2 * self.now % 256, 3 * self.now % 256)  # blue, green, red
        return self.now not in self.file.broken, frame

    def get(self, prop: str) -> float:
        file = self.file
        if prop in ("PTS", "POS_MSEC"):
            entry = (file.packets if self.raw else file.shown)[self.now]
            return entry[0] + (0 if self.raw else file.shift) if prop == "PTS" else entry[1]
        code = sum(ord(c) << 8 * i for i, c in enumerate(file.fourcc))
        return {"FRAME_WIDTH": file.width, "FRAME_HEIGHT": file.height, "FPS": file.fps, "FOURCC": code}[prop]


@pytest.fixture
def reader(monkeypatch, tmp_path):
    """Opens a reader of a `File`."""
    path = tmp_path / "a.mkv"
    path.write_bytes(b"video")

    def opened(file: File) -> VideoReader:
        names = ("FRAME_WIDTH", "FRAME_HEIGHT", "FORMAT", "PTS", "POS_MSEC", "FPS", "FOURCC", "POS_FRAMES")
        library = SimpleNamespace(
            **{f"CAP_PROP_{name}": name for name in names}, CAP_FFMPEG="ffmpeg", COLOR_BGR2RGB="rgb",
            VideoCapture=lambda name, backend: Capture(file) if (name, backend) == (str(path), "ffmpeg") else None,
            cvtColor=lambda pixels, code: pixels[:, :, ::-1].copy() if code == "rgb" else None,
        )  # fmt: skip
        monkeypatch.setattr(module, "opencv", lambda: library)
        return VideoReader(path)

    return opened


def even(count: int, fps: float = 25.0) -> list[tuple[float, float]]:
    return [(512.0 * i, 1000 * i / fps) for i in range(count)]


def number_of(frame: np.ndarray) -> int:
    assert (frame.shape, frame.dtype, frame.flags.writeable) == ((4, 6, 3), np.uint8, False)
    red, green, blue = (int(value) for value in frame[1, 2])
    assert (green, red) == (2 * blue % 256, 3 * blue % 256)
    return blue


def said(act) -> tuple[str, str, str]:
    with pytest.raises(DiagnosticError) as caught:
        act()
    (found,) = caught.value.diagnostics
    assert found.file.endswith("a.mkv")
    return found.code, found.message, found.remedy


@pytest.mark.parametrize("late", [0, 1, 2, 5, 13, 30, 400])
@pytest.mark.parametrize("seed", range(3))
def test_frames_in_any_order(reader, seed, late):
    source = random.Random(seed)
    file = File(even(250), late=late)
    with reader(file) as video:
        place = 0
        for _ in range(150):
            step = source.choice([1, 1, 1, -1, -1, 2, -3, 20, -40, None])
            place = source.randrange(250) if step is None else min(max(place + step, 0), 249)
            assert number_of(video.read(place)) == place
    assert file.opened == file.released


def test_playing_decodes_each_frame_once(reader):
    file = File(even(120))
    video = reader(file)
    file.grabbed.clear()
    assert [number_of(frame) for frame in video.frames(1)] == list(range(1, 120))
    assert (file.grabbed, file.sought) == (list(range(1, 120)), [])
    assert [number_of(frame) for frame in video.frames(110, 113)] == [110, 111, 112]
    assert file.grabbed == list(range(1, 120))  # those of late are kept
    assert [number_of(frame) for frame in video.frames(118, 300)] == [118, 119]
    assert list(video.frames(120)) == []
    for start, stop in ((0, 0), (5, 0), (5, 5), (6, 5), (119, 119)):
        assert list(video.frames(start, stop)) == []
    assert [number_of(frame) for frame in video.frames(0, 1)] == [0]


def test_stepping_back_decodes_a_few_frames_at_once(reader):
    file = File(even(200))
    video = reader(file)
    video.read(150)
    file.grabbed.clear()
    file.sought.clear()
    for place in range(149, 99, -1):
        assert number_of(video.read(place)) == place
    assert len(file.grabbed) <= 50 + 15
    assert len(file.sought) <= 5
    assert all(place <= 149 for place in file.sought)


def test_a_jump_begins_at_the_frame_itself(reader):
    file = File(even(200))
    video = reader(file)
    file.grabbed.clear()
    assert number_of(video.read(120)) == 120
    assert (file.sought, file.grabbed) == ([120], [120])
    assert number_of(video.read(132)) == 132  # near enough to go on
    assert (file.sought, file.grabbed) == ([120], list(range(120, 133)))
    assert number_of(video.read(146)) == 146
    assert file.sought == [120, 146]


@pytest.mark.parametrize("fps", [23.976, 29.97, 59.94, 7.0])
def test_the_library_is_asked_for_the_number_of_a_frame(reader, fps):
    file = File(even(250, fps), fps=fps)
    video = reader(file)
    for place in range(249, 20, -17):
        file.sought.clear()
        assert number_of(video.read(place)) == place
        assert file.sought == [place]


def test_a_kept_frame_counts_as_the_last_one(reader):
    """Stepping back from it decodes earlier frames too."""
    file = File(even(200))
    video = reader(file)
    video.read(100)
    video.read(180)
    file.sought.clear()
    video.read(100)  # kept
    assert file.sought == []
    video.read(99)
    assert file.sought == [87]


def test_the_frames_used_last_are_kept(reader, monkeypatch):
    monkeypatch.setattr(module, "KEEP", 3)
    video = reader(File(even(400)))
    first, second = video.read(100), video.read(200)
    assert video.read(100) is first
    third, fourth = video.read(300), video.read(350)
    assert video.read(100) is first
    assert (video.read(300) is third, video.read(350) is fourth) == (True, True)
    assert video.read(200) is not second
    monkeypatch.setattr(module, "KEEP", 48)
    monkeypatch.setattr(module, "KEEP_BYTES", 5 * 4 * 6 * 3)
    for place in range(210, 260):
        video.read(place)
    assert sorted(video._kept) == list(range(255, 260))
    monkeypatch.setattr(module, "KEEP_BYTES", 1)
    video.read(300)
    assert len(video._kept) == 2  # two frames are kept whatever their size
    video.close()
    assert not video._kept


@pytest.mark.parametrize(
    ("packets", "fps", "expected"),
    [
        (even(10), 25.0, (10, 25.0, 0.4, False)),
        (even(10, 50.0), 50.0, (10, 50.0, 0.2, False)),
        (even(1), 25.0, (1, 25.0, 0.04, False)),
        (even(1), 0.0, (1, 25.0, 0.04, False)),
        (even(10), 0.0, (10, 25.0, 0.4, False)),
        (even(10), 90000.0, (10, 25.0, 0.4, False)),  # the rate of the clock
        ([(0.0, 0.0), (1.0, 40.0), (2.0, 81.9), (3.0, 120.0)], 25.0, (4, 25.0, 0.16, False)),
        ([(0.0, 0.0), (1.0, 40.0), (2.0, 140.0), (3.0, 180.0)], 25.0, (4, 3000 / 180, 0.22, True)),
        ([(0.0, 0.0), (1.0, 500.0), (2.0, 1040.0), (3.0, 1500.0)], 2.0, (4, 2.0, 2.0, False)),
        ([(0.0, 0.0), (1.0, 10.0), (2.0, 22.5), (3.0, 32.5)], 100.0, (4, 3000 / 32.5, 0.0425, True)),
        ([(0.0, 0.0), (1.0, 100.0), (2.0, 140.0), (3.0, 180.0), (4.0, 220.0)], 25.0, (5, 4000 / 220, 0.26, True)),
        ([(0.0, 0.0), (1.0, 10.0), (2.0, 21.5), (3.0, 31.5)], 100.0, (4, 100.0, 0.0415, False)),
        ([(5.0, 200.0), (6.0, 240.0), (7.0, 280.0)], 25.0, (3, 25.0, 0.12, False)),  # from the first frame
        ([(i, 0.0) for i in (0.0, 1.0, 2.0, 3.0)], 8.0, (4, 8.0, 0.5, False)),
    ],
)
def test_the_properties_of_a_video(reader, packets, fps, expected):
    video = reader(File(packets, fps=fps, width=6, height=4))
    info = video.info
    assert (info.frames, info.fps, info.seconds, info.variable) == (
        expected[0], pytest.approx(expected[1]), pytest.approx(expected[2], rel=1e-3), expected[3]
    )  # fmt: skip
    assert (info.width, info.height, info.codec) == (6, 4, "mp4v")
    assert [video.time(i) for i in range(info.frames)] == [
        pytest.approx((at - packets[0][1]) / 1000) for _, at in packets
    ]


@pytest.mark.parametrize(
    ("fourcc", "codec"), [("avc1", "avc1"), ("VP90", "VP90"), ("\x01\x00\x00\x10", ""), ("gif ", "gif")]
)
def test_the_code_of_a_codec(reader, fourcc, codec):
    assert reader(File(even(3), fourcc=fourcc)).info.codec == codec


def test_packets_in_another_order_and_before_the_start(reader):
    packets = [(0.0, 0.0), (3.0, 120.0), (1.0, 40.0), (2.0, 80.0), (-2.0, -80.0), (-1.0, -40.0), (4.0, 160.0)]
    video = reader(File(packets))
    assert video.info.frames == 5
    assert [number_of(video.read(place)) for place in (4, 0, 2, 1, 3)] == [4, 0, 2, 1, 3]
    assert [video.time(place) for place in range(5)] == [pytest.approx(0.04 * place) for place in range(5)]
    only_before = reader(File([(-3.0, 0.0), (-2.0, 40.0), (-1.0, 80.0)]))
    assert only_before.info.frames == 3
    assert number_of(only_before.read(2)) == 2


@pytest.mark.parametrize("shift", [0, 7])
def test_frames_without_usable_time_stamps_are_counted(reader, shift):
    """Equal stamps, or stamps of decoder and packets that differ."""
    packets = even(60) if shift else [(0.0, 40.0 * i) for i in range(60)]
    file = File(packets, shift=shift)
    video = reader(file)
    assert [number_of(video.read(place)) for place in (40, 3, 59, 58, 0, 20)] == [40, 3, 59, 58, 0, 20]
    assert video.info.frames == 60


def test_frames_that_the_decoder_skips_are_damaged_and_the_others_keep_their_numbers(reader):
    file = File(even(40), skipped={7, 8})
    video = reader(file)
    assert number_of(video.read(6)) == 6
    assert said(lambda: video.read(7))[:2] == (
        "damaged-video", "frame 7 cannot be decoded: the file is truncated or damaged there"
    )  # fmt: skip
    assert [number_of(video.read(place)) for place in (9, 20, 6)] == [9, 20, 6]
    cut = reader(File(even(40), damaged={25}))
    assert number_of(cut.read(24)) == 24
    assert said(lambda: cut.read(25))[1].startswith("frame 25 cannot be decoded")
    blurred = reader(File(even(40), broken={30}))
    assert number_of(blurred.read(15)) == 15
    assert said(lambda: blurred.read(30))[1].startswith("frame 30 cannot be decoded")


def test_files_and_frames_that_are_not_there(reader, monkeypatch, tmp_path):
    video = reader(File(even(5)))
    for index in (-1, 5, 99):
        assert said(lambda i=index: video.read(i)) == (
            "no-such-frame", f"the video has the frames 0 to 4, not {index}", "choose another frame"
        )  # fmt: skip
    assert said(lambda: reader(File([]))) == ("not-a-video", "the file has no frames", "choose another video")
    closed = File(even(3))
    closed.good = False
    assert said(lambda: reader(closed))[:2] == ("not-a-video", "the file is not a supported video")
    large = File(even(3), width=10_000, height=10_001)
    assert said(lambda: reader(large)) == (
        "picture-too-large", "its frames have 10000 x 10001 pixels, the limit is 100 million", "make the video smaller"
    )  # fmt: skip
    assert large.opened == large.released
    monkeypatch.setattr(module, "MAX_PIXELS", 24)
    assert number_of(reader(File(even(3))).read(2)) == 2  # exactly the limit


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("camera:0", "0"),
        ("camera:/dev/video1", "/dev/video1"),
        ("camera:a:b", "a:b"),
        ("camera:", ""),
        ("a.png", None),
        ("my camera:0", None),
    ],
)
def test_the_name_of_a_camera(text, name):
    assert camera_name(text) == name
    assert camera_name(Path(text)) == name


@pytest.mark.parametrize("late", [1, 12, 13, 48, 49, 249, 250, 251])
def test_a_seek_that_arrives_too_late_is_repeated_from_further_before(reader, late):
    """At 0, 12, 48 and 250 frames before the one that is wanted; then all frames are decoded from the start."""
    file = File(even(600), late=late)
    video = reader(file)
    opened = file.opened
    assert number_of(video.read(255)) == 255
    tries = [255 - back for back in (0, 12, 48, 250)]
    enough = next((i for i, back in enumerate((0, 12, 48, 250)) if back >= late), None)
    assert file.sought == tries[: len(tries) if enough is None else enough + 1]
    assert file.opened - opened == (1 if enough is None else 0)


def test_time_stamps_that_stop_fitting_are_not_used_again(reader):
    """The decoder reports other stamps after a while: frames are counted from the start from then on."""
    file = File(even(100))
    video = reader(file)
    assert number_of(video.read(0)) == 0
    file.shift = 7
    opened = file.opened
    assert number_of(video.read(60)) == 60
    assert (len(file.sought), file.opened - opened) == (1, 1)
    for place in (20, 80, 3):
        assert number_of(video.read(place)) == place
    assert len(file.sought) == 1
    video.close()
    assert file.opened == file.released


def test_a_seek_behind_the_last_frame_decodes_from_the_start(reader, monkeypatch):
    file = File(even(100))
    video = reader(file)
    assert number_of(video.read(2)) == 2
    monkeypatch.setattr(Capture, "set", lambda self, prop, value: setattr(self, "next", 1000) or True)
    opened = file.opened
    assert number_of(video.read(60)) == 60
    assert file.opened - opened == 1
    assert number_of(video.read(61)) == 61
