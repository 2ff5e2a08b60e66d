"""Advice, sweeps, differences and training steps of a profile as lines, and its figures as drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.reports.profile_figures import draw, save_figure
from app.reports.profile_table import advice_lines, difference_table, summary, sweep_lines, training_line
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.profiling.advice import Advisable, advise
from designer.profiling.difference import difference
from designer.profiling.quantities import measured
from designer.profiling.schema import OperatorProfile, PeakMemory, ProfileRun, RunPeaks, TrainingStep
from designer.profiling.sweep import sweeps

GRAPH = Graph(
    [
        Layer("image", "input", params={"dims": "32x24x3"}),
        Layer("a", "convolution", inputs=(Source("image"),), params={"features": "8"}),
        Layer("b", "convolution", inputs=(Source("a"),), params={"features": "8"}),
        Layer("result", "output", inputs=(Source("b"),)),
    ]
)
STEP = TrainingStep(4, 15.0, 5.0, 4.0, 3.0, 2.0, 1.0, "compute", "the device is never idle")


def made(times=(2.0, 6.0), **fields) -> ProfileRun:
    rows = tuple(
        OperatorProfile((name,), "convolution", ms, 0.01, flops=8_000_000, bytes=1000, memory_bytes=size)
        for name, ms, size in zip("ab", times, (3 << 20, 1 << 20), strict=True)
    )
    run = ProfileRun("torch", "fp32", "nchw", "cpu", 1, "32x24", sum(times), 0.01, rows, iterations=25)
    return replace(run, **fields)


def test_advice_compares_a_run_with_the_others() -> None:
    slow, fast = made(), made((1.0, 3.0), engine="onnxruntime")
    (faster,) = [a for a in advise(Advisable(GRAPH, slow, [fast])) if "onnxruntime" in a.remedy]
    (line,) = [line for line in advice_lines(GRAPH, slow, [slow, fast]) if "run with" in line]
    assert (
        line == f"Advice for {slow.configuration}, saves 4.00 ms: {faster.message}; {faster.remedy} ({faster.reason})"
    )
    assert not [line for line in advice_lines(GRAPH, fast, [slow, fast]) if "run with" in line]


def test_a_sweep_in_lines() -> None:
    runs = [made((0.5 * ms, 0.5 * ms), batch=batch) for batch, ms in ((1, 10.0), (2, 12.0), (4, 23.0))]
    (sweep,) = sweeps(runs, "batch")
    title, *lines, knee = sweep_lines(sweep)
    assert title.endswith(" by batch")
    assert [line.split(":")[0] for line in lines] == ["  1", "  2", "  4"]
    assert lines[1] == "  2: 167 images/s, latency 12.0 ms"
    assert knee.startswith("  knee at batch 2 with 167 images/s")
    below, beyond = (
        "; above it, throughput grows by less than 10 %",
        " or above, which was not measured: throughput still grows",
    )
    for times, place, rate in (
        ((10.0, 19.0, 38.0), 1, "100"),
        ((10.0, 12.0, 23.0), 2, "167"),
        ((10.0, 12.0, 14.0), 4, "286"),
    ):
        runs = [made((0.5 * ms, 0.5 * ms), batch=batch) for batch, ms in zip((1, 2, 4), times, strict=True)]
        *_, knee = sweep_lines(*sweeps(runs, "batch"))
        assert knee == f"  knee at batch {place} with {rate} images/s{beyond if place == 4 else below}"


def test_a_difference_has_the_whole_network_first() -> None:
    headings, rows = difference_table(difference(made(), made((2.0, 3.0))))
    assert headings == ("layers", "before", "after", "difference", "noise", "verdict")
    total, *others = rows
    assert total[:4] == ("whole network", "8.00 ms", "5.00 ms", "-3.00 ms")
    by_layer = {row[0]: row for row in others}
    assert by_layer["b"][1:4] == ("6.00 ms", "3.00 ms", "-3.00 ms")
    assert by_layer["a"][3] == "none"


def test_the_phases_of_a_training_step() -> None:
    assert training_line(STEP) == (
        "Training step of batch 4: 15.0 ms (data 2.00 ms, forward 5.00 ms, backward 4.00 ms, optimizer 3.00 ms, "
        "waiting 1.00 ms); compute-bound: the device is never idle"
    )


def test_the_whole_network_in_one_line() -> None:
    assert summary(made()).startswith("whole network 8.00 ms ± 10.0 µs; sum of the rows 8.00 ms; ")
    assert summary(made(time_ms=None)) == "the run ended before the network was timed"


# --- figures ------------------------------------------------------------------------------------------------------


def figure(name, run, sweep=None):
    pytest.importorskip("matplotlib")
    return draw(name, run, "title", sweep).axes


@pytest.mark.parametrize("top", [1e9, 1e15])
def test_no_roof_of_memory_rises_above_that_of_the_operations(top) -> None:
    """Also where all points are on one side of the place at which the roofs meet."""
    peaks = RunPeaks(measured(top), measured(1e9), measured(4e9), 1 << 20)
    (axes,) = figure("roofline", made(peaks=peaks))
    memory, cache, compute = ([*zip(*line.get_data(), strict=True)] for line in axes.lines)
    assert (memory[1], cache[1]) == ((top / 1e9, top), (top / 4e9, top))
    assert memory[0][1] < top
    assert cache[0][1] < top
    assert compute == [(top / 4e9, top), (max(8000.0, top / 1e9) * 2, top)]


def test_the_figure_of_a_training_step_has_its_phases_from_top_to_bottom() -> None:
    (axes,) = figure("training", made(training=STEP))
    assert [bar.get_width() for bar in axes.patches] == [2.0, 5.0, 4.0, 3.0, 1.0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "data",
        "forward",
        "backward",
        "optimizer",
        "waiting",
    ]
    assert axes.yaxis_inverted()
    assert [text.get_text() for text in axes.texts][:2] == ["2.00 ms", "5.00 ms"]


@pytest.mark.parametrize(
    "precisions", [("fp32",), ("int8", "fp32"), ("int8", "fp32", "fp16"), ("a", "b", "c", "d", "e")]
)
def test_the_bars_of_precisions_are_on_top_of_each_other(precisions: tuple[str, ...]) -> None:
    run = made()
    first = run.operators[0]
    rows = (replace(first, precision=each, time_ms=number) for number, each in enumerate(precisions, 1))
    run = replace(run, operators=tuple(rows))
    (axes,) = figure("precision", run)
    bars = [list(each) for each in axes.containers]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(precisions)
    for place in (0, 1):  # time, and operations
        parts = [each[place].get_height() for each in bars]
        assert sum(parts) == pytest.approx(100.0)
        assert [each[place].get_y() for each in bars] == pytest.approx([sum(parts[:n]) for n in range(len(parts))])
    whole = sum(range(1, 1 + len(precisions)))
    assert [each[0].get_height() for each in bars] == pytest.approx(
        [100 * number / whole for number in range(1, 1 + len(precisions))]
    )


def test_the_figure_of_the_running_order_has_one_bar_per_step() -> None:
    (axes,) = figure("timeline", made())
    assert [(bar.get_x(), bar.get_width()) for bar in axes.patches] == [(0.0, 2.0), (2.0, 6.0)]
    assert [(text.get_text(), text.get_position()) for text in axes.texts] == [("a", (1.0, 0)), ("b", (5.0, 0))]
    (axes,) = figure("timeline", made((0.1, 6.0)))
    assert [text.get_text() for text in axes.texts] == ["b"]  # a bar of less than a twenty-fifth has no name


def test_the_figure_of_memory_names_the_peak() -> None:
    (axes,) = figure("memory", made(peak_memory=PeakMemory(4 << 20, 1)))
    heights, edges, _ = axes.patches[0].get_data()
    assert (list(heights), list(edges)) == ([3.0, 1.0], [0.0, 2.0, 8.0])
    (peak,) = axes.texts
    assert peak.get_text() == "4.00 MiB, b"
    assert peak.xy == (5.0, 4.0)


def test_the_figure_of_a_sweep_marks_the_knee() -> None:
    runs = [made((0.5 * ms, 0.5 * ms), batch=batch) for batch, ms in ((1, 10.0), (2, 12.0), (4, 23.0))]
    (sweep,) = sweeps(runs, "batch")
    throughput, latency = figure("batch", runs[0], sweep)
    curve, knee = throughput.lines
    assert list(curve.get_xdata()) == [1.0, 2.0, 4.0]
    assert list(curve.get_ydata()) == pytest.approx([100.0, 2000 / 12, 4000 / 23])
    assert list(knee.get_xdata()) == [2.0, 2.0]
    assert list(latency.lines[0].get_ydata()) == [10.0, 12.0, 23.0]
    assert [axes.get_ylim()[0] for axes in (throughput, latency)] == [0.0, 0.0]


@pytest.mark.parametrize(("suffix", "begins"), [("png", b"\x89PNG"), ("SVG", b"<?xml"), ("pdf", b"%PDF")])
def test_a_figure_is_written_in_the_format_of_its_suffix(tmp_path: Path, suffix: str, begins: bytes) -> None:
    path = tmp_path / f"memory.{suffix}"
    save_figure(path, "memory", made(peak_memory=PeakMemory(3 << 20, 0)), "the title")
    assert path.read_bytes().startswith(begins)
    if suffix == "SVG":
        assert "<!-- the title -->" in path.read_text("utf-8")


def test_a_figure_of_another_suffix_keeps_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"before")
    with pytest.raises(DiagnosticError) as caught:
        save_figure(tmp_path / "a.jpg", "memory", made(), "")
    assert (
        str(caught.value.diagnostics[0])
        == "error [bad-suffix] 'a.jpg' is not a .png, .svg or .pdf file - use one of these suffixes"
    )
    assert (tmp_path / "a.jpg").read_bytes() == b"before"
