"""`layerwright compare` with real networks, pictures and engines."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.cli import main as cli
from app.cli.compare_request import CompareArguments, NetworkVariant, compare
from app.reports.comparison import (
    ImageArray,
    Row,
    check_same_size,
    encoded,
    read_noise,
    reference_text,
    region,
    scale_of,
    summary,
    thumbnail,
)
from designer.graph.diagnostics import DiagnosticError
from designer.metrics import psnr, ssim
from designer.runtime.api import RunOptions
from designer.runtime.images import read_image, write_image

pytest.importorskip("onnxruntime")

NETWORK = """<?xml version="1.0"?>
<NetworkModel name="{name}" version="2" user_version_tag="1">
	<Layer name="image" type="input" edit_pos="0,0">
		<Parameters dims="32x24x3" rgba="false" scale="1.0" shift="0" tiling="1" />
	</Layer>
	<Layer name="mean" type="pooling" edit_pos="160,0" input="image">
		<Parameters operation="average" size="{size}x{size}" stride="{stride}x{stride}" padding="{padding}x{padding}" />
	</Layer>
	<Layer name="result" type="output" edit_pos="320,0" input="mean" />
</NetworkModel>
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two documents that blur, one that makes the picture smaller, and pictures with an empty folder."""
    for name, size, stride in (("same", 1, 1), ("smooth", 3, 1), ("small", 2, 2)):
        (tmp_path / f"{name}.xml").write_text(
            NETWORK.format(name=name, size=size, stride=stride, padding=int(size == 3))
        )
    (tmp_path / "pictures").mkdir()
    (tmp_path / "empty").mkdir()
    ys, xs = np.mgrid[:80, :100] / 100
    for index in range(2):
        picture = np.stack([xs, ys, (xs + ys) / 2]) * (1 - 0.3 * index)
        write_image(tmp_path / "pictures" / f"{index}.png", picture[None].astype(np.float32))
    return tmp_path


def request(folder: Path, *names: str, **changes: object) -> CompareArguments:
    documents = [folder / f"{name}.xml" for name in names]
    return CompareArguments(
        documents, folder / "pictures", noises=("gaussian:25/255",), options=RunOptions(threads=1), **changes
    )


def test_the_first_run_of_each_size_is_not_timed_and_hidden_files_are_no_images(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_image(folder / "pictures" / "2.png", np.zeros((1, 3, 20, 30), np.float32))
    (folder / "pictures" / "._0.png").write_bytes(b"of another system")
    runs: list[int] = []
    run = NetworkVariant.run
    monkeypatch.setattr(NetworkVariant, "run", lambda self, image: (runs.append(image.shape[3]), run(self, image))[1])
    found = compare(request(folder, "same"), lambda text: None)
    assert [row.name for row in found.rows] == ["0.png", "1.png", "2.png"]
    assert runs == [100, 100, 100, 30, 30]


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_are_read_with_the_channels_of_the_first_network(folder: Path, channels: int) -> None:
    """Pictures in color as gray ones and pictures without an alpha channel, and the clean images like them."""
    text = NETWORK.format(name="net", size=1, stride=1, padding=0).replace("32x24x3", f"32x24x{channels}")
    (folder / "net.xml").write_text(text)
    (folder / "clean").mkdir()
    for path in (folder / "pictures").iterdir():
        write_image(folder / "clean" / path.name, read_image(path) * np.float32(0.5))
    made: list[tuple[ImageArray, ImageArray, Sequence[ImageArray]]] = []
    asked = replace(request(folder, "net"), noises=(), clean=folder / "clean")
    found = compare(asked, lambda text: None, lambda row, *images: made.append(images))
    for name, row, (image, noisy, (result,)) in zip(("0.png", "1.png"), found.rows, made, strict=True):
        expected = read_image(folder / "pictures" / name, channels)
        assert expected.shape[1] == channels
        for array in (image, noisy, result):
            np.testing.assert_array_equal(array, expected)
        clean = read_image(folder / "clean" / name, channels)
        assert [f.psnr for f in row.figures] == pytest.approx([psnr(clean, expected)] * 2)


def test_figures_are_those_of_each_network_against_the_clean_picture(folder: Path) -> None:
    reported: list[str] = []
    made: list[tuple[ImageArray, ImageArray, Sequence[ImageArray]]] = []

    def keep(row: Row, clean: ImageArray, noisy: ImageArray, results: Sequence[ImageArray]) -> None:
        made.append((clean, noisy, results))

    columns, found, _ = compare(request(folder, "same", "smooth"), reported.append, keep)
    assert columns == ["gaussian:25/255", "A same", "B smooth"]
    assert [item.name for item in found] == ["0.png", "1.png"]
    for item, (clean, noisy, results) in zip(found, made, strict=True):
        assert np.array_equal(clean, read_image(folder / "pictures" / item.name))
        assert np.std(noisy - clean) == pytest.approx(25 / 255, rel=0.05)  # not clipped, as in training
        assert item.figures[1].psnr == item.figures[0].psnr  # the first network changes nothing
        assert item.figures[2].psnr > item.figures[0].psnr + 5
        assert item.figures[2].psnr == pytest.approx(psnr(results[1], clean))
        assert item.figures[2].ssim == pytest.approx(ssim(results[1], clean))
        assert item.figures[2].milliseconds > 0
    rows = list(summary(columns, found))
    mean, deviation = rows[-2:]
    psnrs = [item.figures[2].psnr for item in found]
    assert float(mean[5]) == pytest.approx(np.mean(psnrs), abs=0.006)
    assert float(deviation[5]) == pytest.approx(np.std(psnrs), abs=0.006)


def test_the_seed_is_that_of_the_noise(folder: Path) -> None:
    def noisy(seed: int) -> list[ImageArray]:
        made: list[ImageArray] = []
        compare(request(folder, "same", seed=seed), lambda text: None, lambda row, clean, noisy, _: made.append(noisy))
        return made

    first, other, again = noisy(3), noisy(4), noisy(3)
    for number, (one, two, three) in enumerate(zip(first, other, again, strict=True)):
        assert np.array_equal(one, three), number
        assert not np.array_equal(one, two), number


def test_without_a_reference_nothing_is_measured(folder: Path) -> None:
    plain = CompareArguments([folder / "same.xml"], folder / "pictures", options=RunOptions(threads=1))
    columns, found, _ = compare(plain, lambda text: None)
    assert list(summary(columns, found))[-2][:5] == ["mean", "-", "-", "-", "-"]
    assert not any(row.reference for row in found)
    assert reference_text(found).startswith("PSNR and SSIM need a reference")


def test_without_noise_and_clean_images_the_first_network_is_the_reference(folder: Path) -> None:
    documents = [folder / "same.xml", folder / "smooth.xml"]
    results: list[Sequence[ImageArray]] = []
    request = CompareArguments(documents, folder / "pictures", options=RunOptions(threads=1))
    _, found, _ = compare(request, lambda text: None, lambda row, image, noisy, made: results.append(made))
    for row, made in zip(found, results, strict=True):
        assert row.reference == "A same"
        assert np.isnan([row.figures[0].psnr, row.figures[1].psnr]).all()
        assert row.figures[2].psnr == pytest.approx(psnr(made[0], made[1]))
        assert row.figures[1].milliseconds > 0
    assert "against A same" in reference_text(found)


def test_noisy_images_are_measured_against_clean_ones_of_the_same_name(folder: Path) -> None:
    noisy = folder / "noisy"
    noisy.mkdir()
    rng = np.random.default_rng(0)
    for path in (folder / "pictures").iterdir():
        clean = read_image(path)
        write_image(noisy / path.name, np.clip(clean + rng.normal(0, 0.1, clean.shape), 0, 1).astype(np.float32))
    made = CompareArguments([folder / "same.xml"], noisy, folder / "pictures", options=RunOptions(threads=1))
    _, found, _ = compare(made, lambda text: None)
    for row in found:
        expected = psnr(read_image(folder / "pictures" / row.name), read_image(noisy / row.name))
        assert row.figures[0].psnr == row.figures[1].psnr == pytest.approx(expected)
        assert row.reference == "the clean image"
    (folder / "pictures" / "1.png").unlink()
    with pytest.raises(DiagnosticError, match=r"no clean version of 1\.png"):
        compare(made, lambda text: None)
    with pytest.raises(DiagnosticError, match="--clean"):
        compare(replace(made, noises=("gaussian:25/255",)), lambda text: None)


class Pictures(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.sources.append(dict(attrs)["src"] or "")

    def handle_data(self, data: str) -> None:
        self.cells.append(data)


def test_the_page_holds_everything(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = folder / "report.html"
    command = ["layerwright", "compare", folder / "same.xml", folder / "smooth.xml", "--images", folder / "pictures",
               "--noise", "gaussian:25/255", "--report", page, "--threads", "1"]  # fmt: skip
    monkeypatch.setattr("sys.argv", [str(part) for part in command])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    assert "deviation" in capsys.readouterr().out
    reader = Pictures()
    reader.feed(page.read_text())
    assert (
        len(reader.sources) == 2 * 2 * 4 + 1
    )  # two pictures: clean, noisy, A, B, whole and their worst region; the plot
    assert all(source.startswith(("data:image/png;base64,", "data:image/webp;base64,")) for source in reader.sources)
    assert not re.search(r'(src|href)="(?!data:)', page.read_text())
    assert "B smooth PSNR (dB)" in reader.cells


@pytest.mark.parametrize("noises", [(), ("gaussian:25/255",), ("gaussian:25/255", "salt_and_pepper:0.1")], ids=len)
@pytest.mark.parametrize("images", [("0.png",), ("0.png", "1.png")], ids=len)
def test_each_of_several_noises_is_above_its_table(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], images, noises
) -> None:
    """Each noise has a table with each image; a single one is the name of its column."""
    (folder / "chosen").mkdir()
    for name in images:
        (folder / "chosen" / name).write_bytes((folder / "pictures" / name).read_bytes())
    command = ["compare", folder / "same.xml", folder / "smooth.xml", "--images", folder / "chosen", "--threads", "1"]
    monkeypatch.setattr("sys.argv", ["layerwright", *map(str, command), *(t for n in noises for t in ("--noise", n))])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line in noises] == (list(noises) if len(noises) > 1 else [])
    assert sum(line.startswith("┏") for line in lines) == max(1, len(noises))
    for name in images:
        assert sum(line.startswith(f"│ {name}") for line in lines) == max(1, len(noises))
    heads = [at for at, line in enumerate(lines) if line in noises]
    assert [lines[at + 1][:1] for at in heads] == ["┏"] * len(heads), "the noise is above its table"


@pytest.mark.parametrize(
    ("names", "changes", "code"),
    [
        (("small",), {}, "not-comparable"),
        (("same",), {"noises": ("fog:3",)}, "bad-option"),
        (("same",), {"noises": ("gaussian",)}, "bad-option"),
        (("same",), {"noises": ("gaussian:-1",)}, "bad-option"),
        (("same",), {"images": "empty"}, "no-pictures"),
        (("same",), {"images": "nowhere"}, "no-pictures"),
        (("same", "smooth", "same"), {"engines": ["torch", "torch"]}, "bad-option"),
    ],
)
def test_what_cannot_be_compared_is_told(
    folder: Path, names: tuple[str, ...], changes: dict[str, object], code: str
) -> None:
    made = request(folder, *names)
    values = {**made.__dict__, **changes}
    if "images" in changes:
        values["images"] = folder / str(changes["images"])
    with pytest.raises(DiagnosticError) as caught:
        compare(CompareArguments(**values), lambda text: None)
    assert caught.value.diagnostics[0].code == code
    assert caught.value.diagnostics[0].remedy


def test_several_noises_and_json(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = folder / "figures.json"
    command = ["layerwright", "compare", folder / "same.xml", folder / "smooth.xml", "--images", folder / "pictures",
               "--noise", "gaussian:25/255", "--noise", "salt_and_pepper:0.1", "--json", target, "--threads", "1"]  # fmt: skip
    monkeypatch.setattr("sys.argv", [str(part) for part in command])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    found = json.loads(target.read_text())
    assert target.read_text().endswith("\n}\n")
    assert {item["noise"] for item in found["provenance"].values()} == {"gaussian:25/255; salt_and_pepper:0.1"}
    assert [(p["name"], p["noise"]) for p in found["images"]] == [
        ("0.png", "gaussian:25/255"), ("1.png", "gaussian:25/255"), ("0.png", "salt_and_pepper:0.1"), ("1.png", "salt_and_pepper:0.1")
    ]  # fmt: skip
    assert found["columns"] == ["input", "A same", "B smooth"]
    for noise in ("gaussian:25/255", "salt_and_pepper:0.1"):
        values = [p["metrics"][2]["psnr"] for p in found["images"] if p["noise"] == noise]
        assert found["mean"][noise][2]["psnr"] == pytest.approx(np.mean(values))
        assert found["deviation"][noise][2]["psnr"] == pytest.approx(np.std(values))
    assert {"x", "y"} == set(found["images"][0]["worst"])


def test_a_noise_layer_of_the_document_does_not_disturb_it_twice(folder: Path) -> None:
    noise = '<Layer name="own" type="noise" edit_pos="80,0" input="image"><Parameters scale="0.5" /></Layer>'
    text = (folder / "same.xml").read_text().replace('input="image"', 'input="own"')
    (folder / "noisy.xml").write_text(text.replace('<Layer name="mean"', f'{noise}\n\t<Layer name="mean"'))
    rows = compare(request(folder, "same", "noisy"), lambda text: None).rows
    assert rows[0].figures[1].psnr == rows[0].figures[2].psnr


def test_noise_by_name() -> None:
    assert read_noise("", 0) is None
    gaussian, blur = read_noise("gaussian:51/255", 3), read_noise("blur:2", 0)
    assert gaussian is not None
    assert (gaussian.scale, gaussian.seed) == (0.2, 3)
    assert blur is not None
    assert blur.scale == 2.0
    decimal = read_noise("uniform:0.1", 0)
    assert decimal is not None
    assert decimal.scale == 0.1
    for wrong in ("gaussian:25", "gaussian:25/0", "gaussian:/", "fog:0.1"):  # 25 would be 25 times the range of values
        with pytest.raises(DiagnosticError):
            read_noise(wrong, 0)


def test_images_of_a_page_are_reduced_and_lossless() -> None:
    """A page of twelve images of 6 megapixels with three variants was 25 MB."""
    rng = np.random.default_rng(0)
    large = rng.random((1, 3, 401, 600), np.float32)
    small = thumbnail(large)
    assert small.shape == (1, 3, 200, 300)
    np.testing.assert_allclose(small[0, :, 3, 5], large[0, :, 6:8, 10:12].mean((1, 2)), rtol=1e-6)
    assert thumbnail(small) is small
    assert thumbnail(large[:, :, :4]).shape == (1, 3, 2, 300)
    narrow = rng.random((1, 3, 4, 2000), np.float32)  # less high than a block is wide
    np.testing.assert_allclose(thumbnail(narrow)[0, :, 0, 1], narrow[0, :, :, 7:14].mean((1, 2)), rtol=1e-6)
    image = pytest.importorskip("PIL.Image")
    with image.open(io.BytesIO(encoded(region(large, (20, 30))))) as file:
        shown = np.asarray(file.convert("RGB")).transpose(2, 0, 1)
    assert shown.shape == (3, 64, 64)
    np.testing.assert_array_equal(shown, np.floor(large[0, :, 20:84, 30:94] * 255 + np.float32(0.5)).astype(np.uint8))
    gray = encoded(large[:, :1])
    assert len(gray) < len(encoded(large))


ENLARGING = """<?xml version="1.0"?>
<NetworkModel name="{name}" version="2" user_version_tag="1">
	<Layer name="image" type="input" edit_pos="0,0">
		<Parameters dims="32x24x3" rgba="false" scale="1.0" shift="0" tiling="1" />
	</Layer>
	<Layer name="larger" type="upsample" edit_pos="160,0" input="image">
		<Parameters factor="{factor}x{factor}" method="nearest" />
	</Layer>
	<Layer name="result" type="output" edit_pos="320,0" input="larger" />
</NetworkModel>
"""


@pytest.fixture
def small(folder: Path) -> Path:
    """Networks that enlarge two and three times, and each image reduced to means of 2 x 2 pixels."""
    for name, factor in (("twice", 2), ("thrice", 3)):
        (folder / f"{name}.xml").write_text(ENLARGING.format(name=name, factor=factor))
    (folder / "small").mkdir()
    for path in (folder / "pictures").iterdir():
        image = read_image(path)
        write_image(folder / "small" / path.name, image.reshape(1, 3, 40, 2, 50, 2).mean((3, 5)))
    return folder


def bicubic(picture: ImageArray) -> ImageArray:
    """Twice as large, by Pillow."""
    channels = [
        Image.fromarray(c).resize((2 * c.shape[1], 2 * c.shape[0]), Image.Resampling.BICUBIC) for c in picture[0]
    ]
    return np.stack([np.asarray(c) for c in channels])[None]


def test_networks_that_enlarge_are_measured_next_to_bicubic_interpolation(small: Path) -> None:
    made = CompareArguments([small / "twice.xml"], small / "small", small / "pictures", options=RunOptions(threads=1))
    _, rows, _ = compare(made, lambda text: None)
    for row in rows:
        reduced, clean = read_image(small / "small" / row.name), read_image(small / "pictures" / row.name)
        nearest = reduced.repeat(2, 2).repeat(2, 3)
        assert row.figures[0].psnr == pytest.approx(psnr(clean, bicubic(reduced)), abs=1e-4)
        assert row.figures[1].psnr == pytest.approx(psnr(clean, nearest), abs=1e-4)
        assert row.figures[0].psnr > row.figures[1].psnr
        assert (row.scale, row.reference) == (2, "the clean image")
    assert reference_text(rows) == (
        "PSNR and SSIM are measured against the clean image, values clipped to 0..1. "
        "The input is enlarged 2 times by bicubic interpolation."
    )


def test_noise_on_small_images_leaves_the_first_network_as_the_reference(small: Path) -> None:
    made = CompareArguments(
        [small / "twice.xml"] * 2, small / "small", noises=("gaussian:25/255",), options=RunOptions(threads=1)
    )
    _, rows, _ = compare(made, lambda text: None)
    for row in rows:
        assert row.reference == "A twice"
        assert np.isnan([figure.psnr for figure in row.figures[:2]]).all()
        assert row.figures[2].psnr == np.inf
    _, rows, _ = compare(replace(made, documents=[small / "twice.xml"]), lambda text: None)
    assert reference_text(rows).startswith("PSNR and SSIM need a reference: choose the clean images in the size of")


@pytest.mark.parametrize(
    ("names", "clean", "told"),
    [
        (("twice", "thrice"), "pictures", "'result' of B thrice is 150 x 120 pixels, that of others 100 x 80"),
        (("twice", "same"), "pictures", "'result' of B same is 50 x 40 pixels, that of others 100 x 80"),
        (("twice",), "small", "the clean image is 50 x 40 pixels, the results are 100 x 80"),
        (("same",), "pictures", "the clean image is 100 x 80 pixels, the results are 50 x 40"),
    ],
)
def test_results_of_several_sizes_are_refused(small: Path, names: tuple[str, ...], clean: str, told: str) -> None:
    documents = [small / f"{name}.xml" for name in names]
    made = CompareArguments(documents, small / "small", small / clean, options=RunOptions(threads=1))
    with pytest.raises(DiagnosticError) as caught:
        compare(made, lambda text: None)
    assert told in str(caught.value)
    assert caught.value.diagnostics[0].remedy


@pytest.mark.parametrize(
    ("made", "picture", "scale"),
    [
        ((1, 3, 8, 12), (1, 3, 8, 12), 1),
        ((1, 3, 16, 24), (1, 3, 8, 12), 2),
        ((1, 3, 24, 36), (1, 3, 8, 12), 3),
        ((1, 3, 16, 12), (1, 3, 8, 12), 0),
        ((1, 3, 8, 24), (1, 3, 8, 12), 0),
        ((1, 3, 12, 18), (1, 3, 8, 12), 0),
        ((1, 3, 4, 6), (1, 3, 8, 12), 0),
        ((1, 1, 16, 24), (1, 3, 8, 12), 0),
        ((2, 3, 8, 12), (1, 3, 8, 12), 0),
        ((1, 10), (1, 3, 8, 12), 0),
    ],
)
def test_results_are_images_of_a_whole_multiple_of_the_size(
    made: tuple[int, ...], picture: tuple[int, ...], scale: int
) -> None:
    assert scale_of(np.zeros(made, np.float32), np.zeros(picture, np.float32)) == scale


def test_sizes_that_differ_are_told_width_first() -> None:
    with pytest.raises(DiagnosticError) as caught:
        check_same_size(np.zeros((1, 3, 20, 30), np.float32), np.zeros((1, 3, 40, 50), np.float32), "clean.png")
    (found,) = caught.value.diagnostics
    assert found.message == "the clean image is 30 x 20 pixels, the results are 50 x 40"
    assert found.file == "clean.png"
