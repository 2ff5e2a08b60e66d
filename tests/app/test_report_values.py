"""Every value of the reports and tables that the program writes, compared with the data that it comes from."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from math import inf, nan
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np
import pytest
from rich.table import Table

from app.reports import profile_table
from app.reports.analysis_report import Seen, statistics, write_analysis
from app.reports.comparison import ImageMetrics, Row, Shown, headings, summary
from app.reports.comparison_page import COMPARISONS
from app.reports.engine_table import engine_lines
from app.reports.page import Page
from app.reports.profile_page import write_page
from app.reports.provenance_table import add_provenance
from app.reports.votes import EQUAL, LEFT, RIGHT, VOTES, Vote, VoteTrial, results
from designer.profiling.difference import difference
from designer.profiling.machine import Machine
from designer.profiling.schema import OperatorProfile, PeakMemory, Profile, ProfileRun
from designer.runtime.engines.trt_layers import EngineLayer
from designer.runtime.provenance import Provenance, texts_of
from designer.units import duration
from exporters.tensorrt import EngineFile


def tables(page: Path) -> list[list[list[str]]]:
    """The cells of the tables of a page."""
    found = re.findall(r"<table>(.*?)</table>", page.read_text("utf-8"))
    return [
        [[unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in re.findall(r"<tr>(.*?)</tr>", table)]
        for table in found
    ]  # fmt: skip


def captions(page: Path) -> list[str]:
    return [unescape(text) for text in re.findall(r"<figcaption>(.*?)</figcaption>", page.read_text("utf-8"))]


def paragraphs(page: Path) -> list[str]:
    return [unescape(text) for text in re.findall(r"<p>(.*?)</p>", page.read_text("utf-8"))]


# --- comparisons ---------------------------------------------------------------------------------------------------

NAMES = ["input", "A one", "B two"]
PIXEL = b"\x89PNG"


def compared(name: str, noise: str, base: float) -> Row:
    """An image with other values in every field of every column."""
    found = [ImageMetrics(base + column, base / 100 + column / 1000, 10 * base + column) for column in range(3)]
    found[0] = replace(found[0], milliseconds=nan)
    shown = tuple(Shown(title, PIXEL, PIXEL) for title in ("clean", *NAMES))
    return Row(name, noise, tuple(found), (int(base), int(base) + 1), shown, "the clean image")


ROWS = [
    compared("a.png", "n1", 20),
    compared("b.png", "n1", 31),
    compared("a.png", "n2", 43),
    compared("b.png", "n2", 50),
]
FAILED = replace(ROWS[0], figures=(*ROWS[0].figures[:2], ImageMetrics(nan, nan, nan, "it has no output")), shown=())
EXACT = replace(ROWS[1], figures=(*ROWS[1].figures[:2], ImageMetrics(inf, 1.0, 3.0)), shown=())


def texts(found: Sequence[ImageMetrics]) -> list[str]:
    """The cells of a row: PSNR and SSIM of each column, then the times of the variants."""
    pairs = [text for each in found for text in (f"{each.psnr:.2f}", f"{each.ssim:.4f}")]
    return [*pairs, *(f"{each.milliseconds:.0f}" for each in found[1:])]


def combined(measure: Any, rows: Sequence[Row]) -> list[ImageMetrics]:
    return [
        ImageMetrics(*(measure([getattr(row.figures[column], name) for row in rows]) for name in ("psnr", "ssim", "milliseconds")))
        for column in range(3)
    ]  # fmt: skip


def write(path: Path, rows: Sequence[Row]) -> Path:
    COMPARISONS.writer(path)(path, "one and two", NAMES, rows, {"A one": Provenance("a.xml", "0" * 64)})
    return path


def test_the_table_of_a_comparison_has_every_value_and_the_means_of_each_noise(tmp_path: Path) -> None:
    titles = [
        "image",
        "noise",
        *(text for name in NAMES for text in (f"{name} PSNR (dB)", "SSIM")),
        "A one (ms)",
        "B two (ms)",
    ]
    expected = []
    for rows in (ROWS[:2], ROWS[2:]):
        noise = rows[0].noise
        expected += [[row.name, noise, *texts(row.figures)] for row in rows]
        means = texts(combined(fmean, rows))
        expected.append(["mean", noise, *means])
        lines = [line for line in summary(NAMES, ROWS) if line[:2] == ["deviation", noise]]
        for column in range(3):
            for place, name in ((2 + 2 * column, "psnr"), (3 + 2 * column, "ssim")):
                spread = pstdev(getattr(row.figures[column], name) for row in rows)
                assert float(lines[0][place]) == pytest.approx(spread, rel=0.01)
        expected.append(lines[0])
    assert headings(NAMES, ROWS) == titles
    assert list(summary(NAMES, ROWS)) == expected
    assert [line[:-2] for line in expected] == list(summary(NAMES, ROWS, times=False))
    assert headings(NAMES, ROWS, times=False) == titles[:-2]
    assert headings(NAMES, ROWS[:2]) == [titles[0], *titles[2:]]
    assert tables(write(tmp_path / "a.html", ROWS))[0] == [titles, *expected]


def test_the_images_of_a_comparison_have_their_own_values(tmp_path: Path) -> None:
    path = write(tmp_path / "a.html", ROWS[:2])
    found = [text for text in captions(path) if not text.startswith("Each line is an image")]
    expected = []
    for row in ROWS[:2]:
        values = (
            f"{name}: {each.psnr:.2f} dB, SSIM {each.ssim:.4f}" for name, each in zip(NAMES, row.figures, strict=True)
        )
        expected += ["clean", *values, "clean", *NAMES]
    assert found == expected
    places = [text for text in paragraphs(path) if text.startswith("The region")]
    assert [text[-11:] for text in places] == ["x 21, y 20:", "x 32, y 31:"]


def test_comparisons_as_csv_and_json_have_every_value(tmp_path: Path) -> None:
    rows = [*ROWS, FAILED, EXACT]
    lines = [line for line in write(tmp_path / "a.csv", rows).read_text().splitlines() if not line.startswith("#")]
    read = list(csv.DictReader(lines))
    values = json.loads(write(tmp_path / "a.json", rows).read_text())
    assert values["columns"] == NAMES
    for number, row in enumerate(rows):
        entry = values["images"][number]
        head = (entry["name"], entry["noise"], entry["reference"], entry["worst"])
        assert head == (row.name, row.noise, row.reference, {"x": row.worst[1], "y": row.worst[0]})
        for column, (name, each) in enumerate(zip(NAMES, row.figures, strict=True)):
            line, found = read[3 * number + column], entry["metrics"][column]
            numbers = {"psnr_db": each.psnr, "ssim": each.ssim, "time_ms": each.milliseconds}
            said = {
                "image": row.name,
                "noise": row.noise,
                "variant": name,
                "reference": row.reference,
                "failure": each.failure,
            }
            assert {key: line[key] for key in said} == said
            for key, value in numbers.items():
                if value == value:
                    assert float(line[key]) == pytest.approx(value, rel=1e-3)
                else:
                    assert line[key] == "-"
            plain = {"psnr": each.psnr, "ssim": each.ssim, "ms": each.milliseconds}
            known = {key: value if np.isfinite(value) else None for key, value in plain.items()}
            assert found == known | ({"failure": each.failure} if each.failure else {})
    for noise, part in (("n1", [*ROWS[:2], FAILED, EXACT]), ("n2", ROWS[2:])):
        for key, measure in (("mean", fmean), ("deviation", pstdev)):
            of_input = [row.figures[0].psnr for row in part]
            assert values[key][noise][0]["psnr"] == pytest.approx(measure(of_input))
            assert values[key][noise][0]["ms"] is None
    assert values["mean"]["n1"][2]["psnr"] == pytest.approx(
        fmean(row.figures[2].psnr for row in ROWS[:2])
    )  # finite ones


def test_votes_have_every_value_in_every_format(tmp_path: Path) -> None:
    votes = [
        Vote(VoteTrial(0, "A", "B"), LEFT, 1.25), Vote(VoteTrial(1, "B", "A", (3, 4, 5)), LEFT, 2.5),
        Vote(VoteTrial(1, "A", "B"), EQUAL, 3.0), Vote(VoteTrial(0, "B", "A"), RIGHT, 4.0), Vote(VoteTrial(2, "C", "A"), RIGHT, 5.0),
    ]  # fmt: skip
    images, names = ["a.png", "b.png", "c.png"], {"A": "A one", "B": "B two", "C": "C three"}
    preferred = ["A one", "B two", None, "A one", "A one"]
    for suffix in (".csv", ".json"):
        path = tmp_path / f"v{suffix}"
        VOTES.writer(path)(path, votes, images, names, 7, {"A one": Provenance("a.xml", "0" * 64)})
    lines = [line for line in (tmp_path / "v.csv").read_text().splitlines() if not line.startswith("#")]
    read = list(csv.DictReader(lines))
    values = json.loads((tmp_path / "v.json").read_text())
    for number, (vote, line, entry) in enumerate(zip(votes, read, values["votes"], strict=True)):
        trial = vote.trial
        square = trial.square or ("", "", "")
        expected = {
            "trial": number + 1, "image": images[trial.picture], "x": square[0], "y": square[1], "side": square[2],
            "left": names[trial.left], "right": names[trial.right], "answer": vote.answer, "preferred": preferred[number] or "",
            "seconds": f"{vote.seconds:.2f}",
        }  # fmt: skip
        assert line == {key: str(value) for key, value in expected.items()}
        assert entry == {
            "image": expected["image"], "square": list(trial.square) if trial.square else None, "left": expected["left"],
            "right": expected["right"], "answer": vote.answer, "preferred": preferred[number], "seconds": vote.seconds,
        }  # fmt: skip
    assert values["pairs"] == [
        {"a": names[r.a], "b": names[r.b], "a_preferred": r.wins_a, "b_preferred": r.wins_b, "ties": r.ties, "a_views": r.views_a,
         "b_views": r.views_b, "p": r.p}
        for r in results(votes)
    ]  # fmt: skip
    first, _ = results(votes)
    assert (first.wins_a, first.wins_b, first.ties, first.views_a, first.views_b) == (2, 1, 1, 1, 1)


# --- profiles ------------------------------------------------------------------------------------------------------

OPERATOR = OperatorProfile(
    ("a", "b"), "convolution + relu", 4.0, 0.25, "kernel 3x3", {}, ("N x 3 x 4 x 6",), ("N x 8 x 4 x 6",), 8_000_000, 2_000_000,
    memory_bytes=3_000_000, bound="memory", roof_ms=1.6, saving_ms=2.4,
)  # fmt: skip
AT_ROOF = replace(
    OPERATOR,
    layers=("c",),
    type="add",
    time_ms=1.0,
    spread_ms=None,
    summary="",
    saving_ms=0.0,
    roof_ms=1.0,
    bound="compute",
)
UNKNOWN = OperatorProfile((), "", 0.5)
RUN = ProfileRun(
    "torch", "fp32", "nchw", "cpu", 1, "6x4", 6.0, 0.125, (UNKNOWN, AT_ROOF, OPERATOR), iterations=25, flops=16_000_000,
    peak_memory=PeakMemory(3_500_000, 1, {"a": 3_000_000}),
)  # fmt: skip
CELLS = {
    "a + b": {
        "hyperparameters": "kernel 3x3", "type": "convolution + relu", "output": "N x 8 x 4 x 6", "time": "4.00 ms", "±": "250 µs",
        "share": "72.7 %", "FLOP": "8.00 MFLOP", "rate": "2.00 GFLOP/s", "moved": "1.91 MiB", "bandwidth": "500 MB/s", "held": "2.86 MiB",
        "bound by": "memory", "x roof": "2.50", "saving": "2.40 ms",
    },
    "c": {
        "hyperparameters": "", "type": "add", "output": "N x 8 x 4 x 6", "time": "1.00 ms", "±": "-", "share": "18.2 %",
        "FLOP": "8.00 MFLOP", "rate": "8.00 GFLOP/s", "moved": "1.91 MiB", "bandwidth": "2.00 GB/s", "held": "2.86 MiB",
        "bound by": "compute", "x roof": "1.00", "saving": "at roof",
    },
    "(not in any operator)": {
        "hyperparameters": "", "type": "", "output": "", "time": "500 µs", "±": "-", "share": "9.09 %", "FLOP": "-", "rate": "-",
        "moved": "-", "bandwidth": "-", "held": "-", "bound by": "-", "x roof": "-", "saving": "-",
    },
}  # fmt: skip


def printed(found: Table) -> list[list[str]]:
    """The cells of a table for a terminal, with its titles."""
    return [
        list(map(str, row)) for row in zip(*([column.header, *column.cells] for column in found.columns), strict=True)
    ]


def profile_of(*runs: ProfileRun) -> Profile:
    return Profile(Machine("Test CPU", 2), "net", runs)


def test_every_column_of_a_profile_has_the_value_of_its_operator(tmp_path: Path) -> None:
    titles = [title for title, _ in profile_table.COLUMNS]
    assert all([*cells] == titles for cells in CELLS.values())
    write_page(tmp_path / "p.html", profile_of(RUN))
    pages = tables(tmp_path / "p.html")[0]
    wide = printed(profile_table.operators_table(RUN))
    expected = [[name, *cells.values()] for name, cells in CELLS.items()]
    assert pages == [["layers", *titles], *expected]
    assert wide == [["layers (fused ones together)", *titles], *expected]
    narrow = printed(profile_table.operators_table(RUN, 150))
    assert narrow[1:] == [[name, *(cells[each] for each in profile_table.ESSENTIAL)] for name, cells in CELLS.items()]


def test_a_profile_says_what_the_whole_network_takes(tmp_path: Path) -> None:
    run = replace(RUN, partial="the time is over", notes=("a note",))
    write_page(tmp_path / "p.html", profile_of(RUN, run))
    said = "whole network 6.00 ms ± 125 µs; sum of the rows 5.50 ms; 16.0 MFLOP, 2.67 GFLOP/s; at the roof 2.60 ms; peak memory 3.34 MiB"
    texts = paragraphs(tmp_path / "p.html")
    assert texts.count(said) == 2
    assert [texts.count(text) for text in ("Partial: the time is over.", "a note")] == [1, 1]
    assert "Memory over time; at the peak: a 2.86 MiB." in captions(tmp_path / "p.html")
    lines = [line for line in profile_table.lines(profile_of(run)) if isinstance(line, str)]
    assert [line for line in lines if line in (said, "partial: the time is over", "a note")] == [
        "partial: the time is over", said, "a note"
    ]  # fmt: skip


def test_a_difference_of_profiles_has_every_value_of_its_rows(tmp_path: Path) -> None:
    slower = replace(OPERATOR, time_ms=6.0, spread_ms=0.5)
    new = replace(OPERATOR, layers=("new",), time_ms=2.0, spread_ms=0.0)
    after = replace(RUN, time_ms=8.5, operators=(UNKNOWN, new, slower), precision="fp16")
    found = difference(RUN, after)
    write_page(tmp_path / "p.html", profile_of(RUN), [found])
    (shown,) = (table for table in tables(tmp_path / "p.html") if "verdict" in table[0])
    assert shown[0] == ["layers", "before", "after", "difference", "noise", "verdict"]
    rows = {row[0]: row[1:] for row in shown[1:]}
    assert [row[0] for row in shown[1:2]] == ["whole network"]
    for each in (found.total, *found.rows):
        name = " + ".join(each.layers) or ("whole network" if each is found.total else "(not in any operator)")
        times = ["-" if time is None else duration(time) for time in (each.before_ms, each.after_ms)]
        change = "none" if each.verdict == "none" else duration(each.difference_ms)
        assert rows[name] == [*times, change, duration(each.noise_ms), str(each.verdict)]
    assert (rows["a + b"][:2], rows["c"][:2], rows["new"][:2]) == (
        ["4.00 ms", "6.00 ms"],
        ["1.00 ms", "-"],
        ["-", "2.00 ms"],
    )
    text = (tmp_path / "p.html").read_text("utf-8")
    assert f"<h2>{after.configuration} against {RUN.configuration}</h2>" in text


# --- engines and analyses ------------------------------------------------------------------------------------------


def test_every_layer_of_an_engine_is_a_line() -> None:
    layers = (
        EngineLayer("1", "convolution", "fp16", ("a", "b"), ("a/Conv", "b/Relu")),
        EngineLayer("2", "reformat", "fp32", (), ()),
        EngineLayer("3", "pool", "int8", ("c",), ("c/MaxPool",)),
    )
    shapes = {"image": ((1, 3, 8, 16), (1, 3, 16, 32), (4, 3, 32, 64))}
    found = EngineFile("0", "tensorrt", "10.1", "net", shapes, False, 1.5, "trtexec", layers, {})
    first, image, *lines = engine_lines(found)
    assert first == "tensorrt 10.1: 3 layers, 1 of them fused; built in 1.50 s"
    assert image == "image: 1 x 3 x 8 x 16 to 4 x 3 x 32 x 64, optimized for 1 x 3 x 16 x 32"
    assert lines == [
        f"  fp16  convolution  a, b  [{layers[0].operations}]", "  fp32  reformat     (conversion)", "  int8  pool         c"
    ]  # fmt: skip


def test_the_statistics_of_a_report_are_those_of_every_channel(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    tensor = random.normal(size=(2, 3, 6, 8)).astype(np.float32)
    tensor[:, 1, :3] = 0
    tensor[0, 2, :2], tensor[0, 2, 2:4] = np.nan, 0
    seen = Seen(Provenance("n.xml", "0" * 64), inspected=("conv", tensor), milliseconds=12.5,
                options=(("noise", "Noise", "gaussian 0.1"),), overview=(("conv", "torch", "3.5", "1 x 3"),))  # fmt: skip
    write_analysis(tmp_path / "a.html", seen)
    _, options, found, overview, *_ = tables(tmp_path / "a.html")
    titles = ["channel", "mean", "deviation", "smallest", "largest", "zeros (%)", "NaN or infinite (%)"]
    assert found[0] == titles
    assert found[1:] == [list(row) for row in statistics(tensor)]
    parts = {"all": tensor, **{str(number): tensor[0, number] for number in range(3)}}
    assert [row[0] for row in found[1:]] == [*parts]
    for row in found[1:]:
        values = parts[row[0]]
        finite = values[np.isfinite(values)]
        shares = (100 * np.mean(values == 0), 100 * (1 - finite.size / values.size))
        expected = (finite.mean(), finite.std(), finite.min(), finite.max(), *shares)
        assert [float(text) for text in row[1:]] == pytest.approx(expected, rel=1e-3, abs=0.06)
    assert options == [["layer", "kind", "set to"], ["noise", "Noise", "gaussian 0.1"]]
    assert overview == [["layers", "engine", "time (ms)", "output"], ["conv", "torch", "3.5", "1 x 3"]]
    assert "The run took 12.5 ms; layers in one row ran together." in paragraphs(tmp_path / "a.html")


def test_provenance_has_a_column_for_each_network(tmp_path: Path) -> None:
    origin = {"A one": Provenance("a.xml", "1" * 64), "B two": Provenance("b.xml", "2" * 64)}
    page = Page("title")
    add_provenance(page, origin)
    page.write(tmp_path / "p.html")
    (found,) = tables(tmp_path / "p.html")
    assert found[0] == ["", "A one", "B two"]
    values = {row[0]: row[1:] for row in found[1:]}
    known = texts_of(origin)
    for title, key in (("document", "document"), ("SHA-256 of the document", "document_sha256")):
        assert values[title] == [known[name][key] for name in origin]
    assert not any(row.startswith("version") for row in values)


@pytest.mark.parametrize(
    ("channels", "rows"),
    [
        ([[nan, inf], [-inf, nan]], [("all", "-", "-", "-", "-", "-", "100")] + [(str(n), "-", "-", "-", "-", "-", "100") for n in (0, 1)]),
        (
            [[nan, inf], [1.0, 3.0]],
            [("all", "2", "1", "1", "3", "0.0", "50"), ("0", "-", "-", "-", "-", "-", "100"), ("1", "2", "1", "1", "3", "0.0", "0")],
        ),
        (
            [[0.0, nan], [4.0, 2.0]],
            [("all", "2", "1.633", "0", "4", "25.0", "25"), ("0", "0", "0", "0", "0", "50.0", "50"), ("1", "3", "1", "2", "4", "0.0", "0")],
        ),
    ],
)  # fmt: skip
def test_statistics_are_those_of_finite_values(channels: list[list[float]], rows: list[tuple[str, ...]]) -> None:
    tensor = np.array(channels, np.float32).reshape(1, 2, 1, 2)
    assert statistics(tensor) == rows
    assert statistics(tensor.reshape(1, -1))[0] == rows[0]
    assert len(statistics(tensor.reshape(1, -1))) == 1


@pytest.mark.parametrize(
    ("milliseconds", "text"), [(12.3456, "12.3"), (0.0123456, "0.0123"), (1234.56, "1235"), (3.0, "3.00")]
)
def test_the_time_of_a_run_has_three_digits(tmp_path: Path, milliseconds: float, text: str) -> None:
    seen = Seen(Provenance("n.xml", "0" * 64), milliseconds=milliseconds, overview=(("conv", "torch", "3.5", "1 x 3"),))
    write_analysis(tmp_path / "a.html", seen)
    assert f"The run took {text} ms; layers in one row ran together." in paragraphs(tmp_path / "a.html")
