"""Reports from the window: what they hold, that they are one file, and what is said when they cannot be written."""

from __future__ import annotations

import tracemalloc

import pytest

pytest.importorskip("PySide6")
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.gui

import base64
import hashlib
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import analysis_kit as kit
import numpy as np
from engine_here import EngineHere
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot
from side_kit import WAIT, Side

from app.reports.analysis_report import Seen, statistics, write_analysis
from app.reports.comparison import ImageMetrics
from app.ui.analysis.layer_infos import layer_infos
from app.ui.analysis.report import save_report, seen_in
from app.ui.compare import runner
from app.ui.compare.model import CLEAN, Measured
from app.ui.compare.report import Comparison, copy_of, write_comparison
from app.ui.engine.client import EngineClient
from app.ui.engine.result import Phase
from app.ui.widgets.file_output import write_in_thread
from designer.files.document import write_document
from designer.runtime.images import read_image
from designer.runtime.provenance import Provenance


class Reader(HTMLParser):
    """Words, cells and pictures of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.words = ""
        self.pictures: dict[str, str] = {}
        self.tags: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        values = dict(attrs)
        if tag == "img":
            self.pictures[values["alt"] or ""] = values["src"] or ""

    def handle_data(self, data: str) -> None:
        self.words += f"{data}\n"


def alone(page: Path) -> bool:
    """Whether the page needs no other file and runs nothing."""
    text = page.read_text()
    return not re.search(r'(src|href)="(?!data:image/(?:png|webp);base64,)', text) and "<script" not in text


@pytest.fixture
def launched(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> kit.Launched:
    made = kit.Launched(qtbot, engine)
    made.open(kit.small_network())
    made.analysis.inputs.set_file("input_0", kit.picture(tmp_path))
    return made


def test_the_page_of_an_analysis(launched: kit.Launched, qtbot: QtBot, tmp_path: Path) -> None:
    launched.analysis.set_capture("conv_0")
    launched.launch_random()
    result = launched.analysis.result
    assert result is not None
    document = launched.context.root
    page = tmp_path / "report.html"
    window = launched_window(qtbot)
    with qtbot.waitSignal(launched.context.message, timeout=WAIT) as said_by:
        save_report(window, launched.context, page)
    assert said_by.args == ["info", "Wrote report.html"]
    assert alone(page)
    found = Reader(page)
    digest = hashlib.sha256(write_document(document.graph)).hexdigest()
    said = ("onnxruntime", "fp32", "picture.png", "noise_0", "gaussian 0.1", "Inspected: conv_0", "random", "processor")
    for word in (digest, *said):
        assert word in found.words, word
    shapes = layer_infos(document.graph, document.registry, launched.analysis.inputs.shapes)
    for step in result.steps:
        assert ", ".join(step.layers) in found.words
        assert found.words.count(shapes[step.layers[-1]].shape) >= 1
    assert [alt.split(":")[0] for alt in found.pictures][:2] == ["input_0", "output_0"]
    copy = tmp_path / "copy.png"
    source = next(s for alt, s in found.pictures.items() if alt.startswith("output_0"))
    copy.write_bytes(base64.b64decode(source.partition(",")[2]))
    shown = read_image(copy)
    assert np.abs(shown - np.clip(result.outputs["output_0"], 0, 1)).max() <= 0.5 / 255 + 1e-6
    assert f"{float(result.captures['conv_0'].mean()):.4g}" in found.words
    assert "The window at the time of the report" in found.pictures


def launched_window(qtbot: QtBot) -> QWidget:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(200, 100)
    return window


def test_a_network_that_was_not_run_has_a_page_too(launched: kit.Launched, tmp_path: Path) -> None:
    assert launched.analysis.phase is Phase.IDLE
    page = tmp_path / "report.html"
    write_analysis(page, seen_in(launched.context))
    assert "has not run yet" in Reader(page).words
    assert alone(page)


def test_names_are_escaped_and_other_ranks_have_figures(tmp_path: Path) -> None:
    seen = Seen(Provenance("<script>x</script>", ""), outputs={"y": (np.arange(6, dtype=np.float32).reshape(2, 3), "image")},
                inspected=("a<b", np.full((1, 2, 3), np.nan, np.float32)))  # fmt: skip
    page = tmp_path / "page.html"
    write_analysis(page, seen)
    assert alone(page)
    words = Reader(page).words
    assert "2.5" in words
    assert "a<b" in words


def test_the_channels_of_a_very_narrow_tensor_are_visible(tmp_path: Path) -> None:
    tensor = np.ones((1, 2, 4, 2000), np.float32)
    page = tmp_path / "page.html"
    write_analysis(page, Seen(Provenance("n.xml", ""), inspected=("narrow", tensor)))
    (found,) = (data for text, data in Reader(page).pictures.items() if "2 channels" in text)
    (tmp_path / "sheet.png").write_bytes(base64.b64decode(found.partition(",")[2]))
    sheet = read_image(tmp_path / "sheet.png")
    assert sheet.shape == (1, 3, 3, 2 * 127)  # one row of blocks of 4 x 16, and a gap of two
    np.testing.assert_array_equal(sheet[0, 1, 0, :125], 1.0)


def test_statistics_are_those_of_the_values() -> None:
    tensor = np.zeros((1, 2, 4, 4), np.float32)
    tensor[0, 1] = np.arange(16).reshape(4, 4)
    tensor[0, 1, 0, 1] = np.inf
    whole, first, second = statistics(tensor)
    assert first == ("0", "0", "0", "0", "0", "100.0", "0")
    rest = np.delete(np.arange(16.0), 1)
    assert second[1:5] == tuple(f"{v:.4g}" for v in (rest.mean(), rest.std(), 0.0, 15.0))
    assert second[6] == "6.25"
    assert whole[0] == "all"


def test_statistics_of_a_large_tensor_need_no_copy_of_it() -> None:
    rng = np.random.default_rng(3)
    tensor = rng.normal(2, 3, (2, 32, 128, 128)).astype(np.float32)
    tensor[1, 5] = np.nan
    tensor[0, 3] = 0
    tracemalloc.start()
    rows = statistics(tensor)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < tensor.nbytes / 4
    wide = tensor[np.isfinite(tensor)].astype(np.float64)
    assert rows[0][1:5] == tuple(f"{v:.4g}" for v in (wide.mean(), wide.std(), wide.min(), wide.max()))
    assert rows[0][5:] == ("1.6", "1.56")
    assert len(rows) == 33
    assert rows[4][5] == "100.0"
    assert statistics(tensor[1:, 5:6])[0] == ("all", "-", "-", "-", "-", "-", "100")


def test_a_page_that_cannot_be_written_says_why(qtbot: QtBot, tmp_path: Path) -> None:
    reported: list[tuple[bool, str]] = []
    path = tmp_path / "no" / "folder" / "page.html"
    seen = Seen(Provenance("n", ""))
    window = launched_window(qtbot)
    write_in_thread(window, lambda: write_analysis(path, seen), lambda *a: reported.append(a), "Wrote it")
    qtbot.waitUntil(lambda: len(reported) == 1, timeout=WAIT)
    assert not reported[0][0]
    assert reported[0][1]


def test_a_page_that_is_not_written_is_said_as_an_error(launched: kit.Launched, qtbot: QtBot, tmp_path: Path) -> None:
    window = launched_window(qtbot)
    with qtbot.waitSignal(launched.context.message, timeout=WAIT) as said_by:
        save_report(window, launched.context, tmp_path / "no" / "folder" / "page.html")
    assert said_by.args[0] == "error"
    assert not list(tmp_path.glob("no*"))


@pytest.fixture
def side(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Side]:
    monkeypatch.setattr(runner, "EngineClient", EngineHere)
    made = Side(qtbot, tmp_path)
    yield made
    made.window.close()
    made.window.deleteLater()


def test_the_page_of_a_comparison(side: Side, qtbot: QtBot) -> None:
    side.begin()
    page = side.folder / "side.html"
    side.window.save_report(page)
    qtbot.waitUntil(lambda: "Wrote" in side.window.status.text(), timeout=WAIT)
    assert alone(page)
    found = Reader(page)
    for key in ("A", "B"):
        figures = side.model.measured.figures[key]
        assert f"{figures.psnr:.2f}" in found.words
        assert f"{figures.ssim:.4f}" in found.words
    for variant in side.model.variants:
        assert variant is not None
        assert variant.document_sha256 in found.words
    assert "with gaussian:25/255 noise (seed 0), identical for all variants" in found.words
    assert {"Clean", "Input (gaussian:25/255)", "A same", "B smooth", "The window at the time of the report"} <= set(
        found.pictures
    )


def test_a_failed_variant_is_told_in_the_report(side: Side) -> None:
    from app.ui.compare.variants import VariantChoice

    side.model.choices.append(VariantChoice(side.folder / "gone.xml"))
    side.begin()
    seen = copy_of(side.model, None, 8.0, (), (), b"")
    assert any(note.startswith("C failed") for note in seen.notes)


def test_the_stars_of_a_comparison_are_those_of_each_metric(tmp_path: Path) -> None:
    figures = {"A": ImageMetrics(31.0, 0.8125, 5.0), "B": ImageMetrics(29.5, 0.9375, 7.0)}
    picture = np.zeros((4, 4, 3), np.float32)
    titles = {"A": "first", "B": "second", CLEAN: "clean"}
    pictures = dict.fromkeys(titles, picture)
    write_comparison(
        tmp_path / "page.html", Comparison({}, "cat.png", "", 0, titles, pictures, Measured(CLEAN, figures))
    )
    words = [word for word in Reader(tmp_path / "page.html").words.split("\n") if word.strip()]
    rows = {name: words[words.index(name) + 1 : words.index(name) + 3] for name in ("first", "second")}
    assert rows == {"first": ["* 31.00", "0.8125"], "second": ["29.50", "* 0.9375"]}
