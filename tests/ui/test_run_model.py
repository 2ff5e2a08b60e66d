"""The models of the profiling tables without their panels: every cell is compared with a second way to compute it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from profile_kit import RUN, context, profile_of, profiling, steps
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, Qt
from PySide6.QtGui import QColor, QFont, QImage, QPainter, QStandardItem, QStandardItemModel
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QApplication, QFileDialog, QStyleOptionViewItem, QWidget
from pytestqt.qtbot import QtBot

from app.engine.protocol import OpenRequest
from app.ui.engine.profiling import Entry, ProfilingController
from app.ui.profile import run_model
from app.ui.profile.columns import COLUMNS, explained, shown
from app.ui.profile.dialogs import file_stem, open_profile, save_profile_as
from app.ui.profile.heat_bar import MARGIN, DifferenceBarDelegate, HeatBarDelegate
from app.ui.profile.run_model import RUN_COLUMNS, RunModel
from app.ui.profile.table_model import BY_PRIORITY, HEAT, SORT, OperatorModel, OperatorProxy
from app.ui.widgets import theme
from designer.profiling.grouping import group_rows
from designer.profiling.machine import Machine
from designer.profiling.profile_files import load_profile
from designer.profiling.quantities import ValueSource, measured, modelled
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun, ranked
from designer.units import digits

__all__ = ["context", "profiling"]
ROLE = Qt.ItemDataRole
ASCENDING, DESCENDING = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder


# --- the list of runs --------------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Sets the time zone and the present moment of the list of runs."""
    if not hasattr(time, "tzset"):
        pytest.skip("the time zone of a process can be set on POSIX systems only")

    def set_clock(zone: str, now: str) -> None:
        class Clock(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return datetime.fromisoformat(now)

        monkeypatch.setenv("TZ", zone)
        time.tzset()
        monkeypatch.setattr(run_model, "datetime", Clock)

    yield set_clock
    monkeypatch.undo()
    time.tzset()


NOW = "2026-03-05T10:00:00+09:00"
DATES = [
    ("2026-03-05T00:59:58+00:00", "09:59:58"),
    ("2026-03-04T15:00:01+00:00", "00:00:01"),  # the fourth in Greenwich, the fifth here
    ("2026-03-04T14:59:59+00:00", "2026-03-04"),
    ("2026-03-04T23:30:00+09:00", "2026-03-04"),
    ("2026-03-05T16:00:00+00:00", "2026-03-06"),  # of a clock that is ahead
    ("2026-02-05T01:00:00+00:00", "2026-02-05"),
    ("2025-03-05T01:00:00+00:00", "2025-03-05"),
    ("2026-03-04T20:00:00-07:00", "12:00:00"),
    ("yesterday", "yesterday"),
    ("", ""),
]


@pytest.mark.parametrize(("date", "text"), DATES)
def test_runs_of_today_show_the_local_time_and_others_the_local_date(
    clock: Callable[[str, str], None], date: str, text: str
) -> None:
    clock("Etc/GMT-9", NOW)
    assert run_model._when(replace(RUN, date=date)) == text


def entry(number: int = 1, path: Path | None = None, network: str = "net", **change: Any) -> Entry:
    run = replace(RUN, **change)
    return Entry(number, profile_of(RUN, run, network=network), run, path)


def cell(model: Any, row: int, title: str, role: int = ROLE.DisplayRole) -> Any:
    return model.index(row, [each for each, *_ in RUN_COLUMNS].index(title)).data(role)


@pytest.mark.parametrize(
    ("change", "title", "text"),
    [
        ({"time_ms": 0.0}, "Median\nms", "0"),
        ({"time_ms": None}, "Median\nms", "-"),
        ({"time_ms": 0.01234}, "Median\nms", "0.0123"),
        ({"time_ms": 123456.0}, "Median\nms", "123456"),
        ({"partial": "stopped"}, "Source", "partial"),
        ({"partial": "stopped", "time_ms": None}, "Source", "partial"),
        ({"partial": "stopped", "source": ValueSource.MODELLED}, "Source", "partial"),
        ({"source": ValueSource.MODELLED}, "Source", "modelled"),
        ({"source": ValueSource.UNAVAILABLE}, "Source", "unavailable"),
        ({"device": "cuda"}, "Chip", "Test GPU"),
        ({"device": "H100", "source": ValueSource.MODELLED}, "Chip", "H100"),
        ({"weights": ""}, "Weights", "from file"),
        ({"weights": "random"}, "Weights", "random"),
        ({"iterations": 0}, "Runs", "0"),
        ({"batch": 12}, "Batch", "12"),
    ],
)
def test_a_column_of_the_list_shows_a_field_of_its_run(
    qapp: QApplication, change: dict[str, Any], title: str, text: str
) -> None:
    model = RunModel()
    model.show([entry(**change)])
    assert cell(model, 0, title) == text
    opened = replace(entry(**change), opening=OpenRequest("text", "folder"))  # measured in this session
    model.show([opened])
    assert cell(model, 0, title) == text


@pytest.mark.parametrize("source", list(ValueSource))
def test_only_measured_runs_are_upright(qapp: QApplication, source: ValueSource) -> None:
    theme.apply(qapp, "dark")
    model = RunModel()
    model.show([entry(source=source), entry(source=source, partial="stopped", time_ms=None)])
    usual = QFont(QApplication.font())
    for row in range(2):
        for title, _, number in RUN_COLUMNS:
            font = cell(model, row, title, ROLE.FontRole)
            if source is ValueSource.MEASURED:
                assert font == (theme.mono_font() if number else None)
                continue
            expected = QFont(theme.mono_font() if number else usual)
            expected.setItalic(True)
            assert font == expected
    assert not theme.mono_font().italic()
    assert QApplication.font() == usual


def test_a_column_is_common_if_it_is_a_setting_and_all_of_several_runs_agree(qapp: QApplication) -> None:
    settings = {"Batch", "Size", "Engine", "Precision", "Layout", "Chip", "Source", "Network"}
    chance = random.Random(1)
    values: dict[str, list[Any]] = {
        "batch": [1, 2],
        "size": ["8x8", "16x16"],
        "engine": ["torch", "onnxruntime"],
        "precision": ["fp32", "fp16"],
        "layout": ["nchw", "nhwc"],
        "device": ["cpu", "cuda"],
        "source": [ValueSource.MEASURED, ValueSource.MODELLED],
        "weights": ["", "random"],
        "time_ms": [1.0, 2.0],
    }
    model = RunModel()
    found: set[tuple[str, bool]] = set()
    for _ in range(60):
        rare = chance.choice(list(values))
        model.show(
            [
                entry(
                    number,
                    network=chance.choice("ab") if rare == "device" else "a",
                    **{name: chance.choice(some) if name == rare else some[0] for name, some in values.items()},
                )
                for number in range(chance.randrange(5))
            ]
        )
        count = model.rowCount()
        for column, (title, *_) in enumerate(RUN_COLUMNS):
            texts = [model.index(row, column).data() for row in range(count)]
            expected = title in settings and count > 1 and all(text == texts[0] for text in texts)
            assert (title, texts, model.is_common(column)) == (title, texts, expected)
            found.add((title, expected))
    assert {title for title, common in found if common} == settings
    assert settings <= {title for title, common in found if not common}


def test_the_list_keeps_its_runs_until_others_are_shown(qapp: QApplication) -> None:
    model = RunModel()
    entries = [entry(1), entry(2, Path("/folder/<b>.json"))]
    model.show(entries)
    entries.clear()
    assert [cell(model, row, "#") for row in range(model.rowCount())] == ["1", "2"]
    assert cell(model, 1, "From") == "<b>.json"
    assert cell(model, 1, "From", ROLE.ToolTipRole) == "<p>/folder/&lt;b&gt;.json</p>"
    assert cell(model, 0, "From", ROLE.ToolTipRole) == "net, torch fp16 nhwc batch 3 16x8 on Test CPU"
    assert model.rowCount(model.index(0, 0)) == model.columnCount(model.index(0, 0)) == 0
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Warning)
    model.show([])
    assert model.rowCount() == 0


# --- columns of the operators --------------------------------------------------------------------------------------


def random_row(chance: random.Random, name: str) -> OperatorProfile:
    pick = chance.choice
    return OperatorProfile(
        pick(((name,), (name, f"{name}_2"), ())),
        pick(("convolution", "Custom", "convolution + relu", "")),
        pick((0.0, 1.0, 4.0, 0.004, 2500.0)),
        pick((None, 0.0, 0.25)),
        pick(("", "3x3")),
        inputs=pick(((), ("N x 3",), ("N x 3", "N x 4"))),
        outputs=pick(((), ("N x 5",), ("N x 5", "N x 6"))),
        flops=pick((0, 3, 12_000_000)),
        bytes=pick((0, 5, 3 << 20)),
        learned=pick((0, 999, 12_345_678)),
        memory_bytes=pick((None, 0, 5 << 20)),
        kernels=pick(("", "Fused")),
        bound=pick(("compute", "memory", "cache", "launch", "")),
        roof_ms=pick((None, 0.0, 0.5)),
        saving_ms=pick((None, 0.0, 0.25)),
        tensor_core=pick((measured(0.0, "counted"), measured(12.0), modelled(3.0, "why"))),
        occupancy=pick((measured(0.0, "counted"), measured(99.0))),
        alone=pick((False, True)),
    )


def expected_cell(key: str, run: ProfileRun, row: OperatorProfile) -> tuple[str, str]:
    """The text and the tooltip of a column, written down once more from the fields."""

    def known(value: float | None, reason: str, missing: str, source: str = "modelled") -> tuple[str, str]:
        return ("-", f"unavailable: {missing}") if value is None else (digits(value), f"{source}: {reason}")

    total = sum(each.time_ms for each in run.operators)
    per_second = None if row.time_ms == 0 else 1e3 / row.time_ms
    peaks, short, counted = (
        "the peaks of the machine are unknown",
        "the time was too short to measure",
        "counted from the operator declarations",
    )
    if key == "time":
        if row.alone:
            return digits(row.time_ms), "modelled: measured by itself, not in the network"
        if run.source is ValueSource.MODELLED:
            return digits(row.time_ms), "modelled: predicted, not run"
        median = f"median of {run.iterations} runs" if run.iterations else "median"
        return digits(row.time_ms), f"measured: {median}"
    if key in ("tensor_core", "occupancy", "memory_throughput", "compute_throughput"):
        found = getattr(row, key)
        why = f": {found.reason}" if found.reason else ""
        return ("-" if found.value is None else digits(found.value)), f"{found.source.value}{why}"
    bound = row.bound and f"{row.bound}{', at roof' if row.saving_ms == 0 else ''}"
    texts = {
        "layers": " + ".join(row.layers) or "outside of operators",
        "summary": row.summary,
        "bound": bound or "-",
        "types": row.type,
        "inputs": ", ".join(row.inputs),
        "outputs": ", ".join(row.outputs),
        "kernels": row.kernels,
    }
    if key in texts:
        return texts[key], texts[key]
    return {
        "share": known(100 * row.time_ms / total if total else 0.0, "of the sum of all rows", ""),
        "saving": known(row.saving_ms, "time minus the time at the roof", peaks),
        "distance": known(row.time_ms / row.roof_ms if row.roof_ms else None, "time over the time at the roof", peaks),
        "flops": known(row.flops / 1_000_000, counted, ""),
        "bytes": known(row.bytes / 1_048_576, "inputs, weights and outputs, each moved once", ""),
        "flops_per_s": known(per_second and row.flops * per_second / 1_000_000_000, "over the measured time", short),
        "bytes_per_s": known(per_second and row.bytes * per_second / 1_000_000_000, "over the measured time", short),
        "memory": known(
            None if row.memory_bytes is None else row.memory_bytes / 1_048_576,
            "from the running order",
            "not part of this profile",
        ),
        "learned": (f"{row.learned:,}", f"modelled: {counted}"),
        "spread": known(row.spread_ms, "of the timed runs", "one run has no spread", "measured"),
    }[key]


@pytest.mark.parametrize(
    "change",
    [{}, {"source": ValueSource.MODELLED}, {"iterations": 0}, {"iterations": 1}, {"time_ms": None}],
    ids=lambda change: " ".join(change) or "plain",
)
def test_every_column_shows_and_explains_its_value(qapp: QApplication, change: dict[str, Any]) -> None:
    chance = random.Random(2)
    rows = tuple(random_row(chance, f"layer{number}") for number in range(30))
    run = replace(RUN, operators=rows, **change)
    for row in rows:
        for column in COLUMNS:
            if column.value is not None:
                found = column.value(run, row)
                cell = shown(column, found), explained(found)
            else:
                assert column.text is not None
                cell = column.text(row), column.text(row)
            assert (column.key, row, cell) == (column.key, row, expected_cell(column.key, run, row))


def test_equal_times_of_nothing_have_no_share(qapp: QApplication) -> None:
    run = replace(RUN, operators=(OperatorProfile(("a",), "x", 0.0), OperatorProfile(("b",), "x", 0.0)))
    model = OperatorModel()
    model.show(run)
    (share,) = (number for number, column in enumerate(COLUMNS) if column.heat)
    assert [(model.index(row, share).data(), model.index(row, share).data(HEAT)) for row in range(2)] == [
        ("0", 0.0)
    ] * 2


# --- the model of the operators ------------------------------------------------------------------------------------


def by_type(row: OperatorProfile) -> str:
    return row.type or "none"


def mixed_run(seed: int = 3, count: int = 24) -> ProfileRun:
    """Rows whose names and types differ in case too."""
    chance = random.Random(seed)
    rows = []
    for number in range(count):
        row = random_row(chance, f"{chance.choice('aBcD')}{number}")
        rows.append(replace(row, kernels=chance.choice(("Zeta", "alpha", "")), summary=chance.choice(("B", "a", "C"))))
    return replace(RUN, operators=tuple(rows))


def lists(model: OperatorModel) -> list[list[QModelIndex]]:
    """The first cells of the rows at the top, and of the members of each group."""
    tops = [model.index(row, 0) for row in range(model.rowCount())]
    return [tops, *([model.index(row, 0, top) for row in range(model.rowCount(top))] for top in tops)]


def key_of(run: ProfileRun, number: int, index: QModelIndex) -> float | str:
    """What a cell is sorted by, from what it shows."""
    column = COLUMNS[number]
    model = index.model()
    assert isinstance(model, OperatorModel)
    if column.value is None:
        return str(index.siblingAtColumn(number).data()).lower()
    value = column.value(run, model.row_of(index)).value
    return -1e300 if value is None else value


@pytest.mark.parametrize("grouped", [False, True])
def test_every_list_is_sorted_by_every_column_and_follows_its_rows(qapp: QApplication, grouped: bool) -> None:
    run, model = mixed_run(), OperatorModel()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Warning)
    model.show(run, by_type if grouped else None)
    kept = [
        (QPersistentModelIndex(index.siblingAtColumn(column)), model.row_of(index), column, index.parent().data())
        for some in lists(model)
        for index in some
        for column in (0, 3, len(COLUMNS) - 1)
    ]
    signals: list[str] = []
    model.layoutAboutToBeChanged.connect(lambda *_: signals.append("before"))
    model.layoutChanged.connect(lambda *_: signals.append("after"))
    for number in range(len(COLUMNS)):
        for order in (ASCENDING, DESCENDING):
            model.sort(number, order)
            for some in lists(model):
                keys = [key_of(run, number, index) for index in some]
                assert (COLUMNS[number].key, keys) == (
                    COLUMNS[number].key,
                    sorted(keys, reverse=order is DESCENDING),
                )
                ours = [index.siblingAtColumn(number).data(SORT) for index in some]
                assert ours == [key if key != -1e300 else float("-inf") for key in keys]
    assert signals == ["before", "after"] * (2 * len(COLUMNS))
    for index, row, column, group in kept:
        assert (model.row_of(index), index.column(), index.parent().data()) == (row, column, group)
    model.sort(BY_PRIORITY, DESCENDING)
    tops, *members = lists(model)
    groups = group_rows(run.operators, by_type) if grouped else ()
    assert [model.row_of(index) for index in tops] == ranked([g.total for g in groups] or run.operators)
    for some in members if grouped else ():
        group = [row for row in run.operators if by_type(row) == by_type(model.row_of(some[0]))]
        assert [model.row_of(index) for index in some] == ranked(group)


def test_a_view_is_informed_of_a_new_order_also_without_kept_indexes(qapp: QApplication) -> None:
    model = OperatorModel()
    model.show(mixed_run())
    signals: list[str] = []
    model.layoutAboutToBeChanged.connect(lambda *_: signals.append("before"))
    model.layoutChanged.connect(lambda *_: signals.append("after"))
    model.sort(0, DESCENDING)
    assert signals == ["before", "after"]


@pytest.mark.parametrize("grouped", [False, True])
def test_another_run_is_sorted_like_the_one_before(qapp: QApplication, grouped: bool) -> None:
    model = OperatorModel()
    (time_,) = (number for number, column in enumerate(COLUMNS) if column.key == "time")
    for order in (ASCENDING, DESCENDING):
        model.sort(time_, order)  # also while there is no run
        for seed in (4, 5):
            run = mixed_run(seed)
            model.show(run, by_type if grouped else None)
            assert sum(map(len, lists(model))) == len(run.operators) + (len(lists(model)[0]) if grouped else 0)
            for some in lists(model):
                keys = [model.row_of(index).time_ms for index in some]
                assert keys == sorted(keys, reverse=order is DESCENDING)
    model.show(None)
    assert model.rowCount() == 0
    assert model.index(0, 0).data() is None


@pytest.mark.parametrize("grouped", [False, True])
def test_the_bar_of_a_share_is_relative_to_the_longest_row_at_the_top(qapp: QApplication, grouped: bool) -> None:
    model = OperatorModel()
    for seed in (6, 7, 8):
        model.show(mixed_run(seed), by_type if grouped else None)
        tops, *members = lists(model)
        longest = max(model.row_of(top).time_ms for top in tops)
        for index in (*tops, *(each for some in members for each in some)):
            for number, column in enumerate(COLUMNS):
                heat = index.siblingAtColumn(number).data(HEAT)
                expected = pytest.approx(model.row_of(index).time_ms / longest) if column.key == "share" else None
                assert heat == expected


@pytest.mark.parametrize("grouped", [False, True])
def test_texts_and_tooltips_of_the_model(qapp: QApplication, grouped: bool) -> None:
    theme.apply(qapp, "dark")
    parameters = {"b": {"y": "2", "x": "<img>"}, "a": {}}
    rows = (
        replace(steps()[0], type="<b>", kernels="<i>", parameters=parameters),
        OperatorProfile(("one",), "single", 1.0),
        OperatorProfile((), "single", 1.0),
        OperatorProfile(("two",), "last", 1.0),
    )
    model = OperatorModel()
    model.show(replace(RUN, operators=rows), by_type if grouped else None)
    for some in lists(model):
        for index in some:
            row, first = model.row_of(index), index.data()
            assert index.data(ROLE.ToolTipRole) == (row.name or "outside of operators")
            if grouped and not index.parent().isValid():
                assert first in ("<b> (1 step)", "single (2 steps)", "last (1 step)")
            else:
                assert first == (row.name or "outside of operators")
            for number, column in enumerate(COLUMNS):
                place = index.siblingAtColumn(number)
                mono = column.value is not None or column.key in ("inputs", "outputs")
                assert place.data(ROLE.FontRole) == (theme.mono_font() if mono else None)
                if column.value is None:
                    assert place.data(ROLE.ForegroundRole) is None
                elif place.data() == "-":
                    assert place.data(ROLE.ForegroundRole) == theme.color("muted")
                else:
                    assert place.data(ROLE.ForegroundRole) is None
    (member,) = (index for some in lists(model) for index in some if index.data() == "stem + body")
    tips = {column.key: member.siblingAtColumn(number).data(ROLE.ToolTipRole) for number, column in enumerate(COLUMNS)}
    assert tips["summary"] == "<p>b: x &lt;img&gt;, y 2<br>a: no parameters</p>"
    assert (tips["types"], tips["kernels"]) == ("<p>&lt;b&gt;</p>", "<p>&lt;i&gt;</p>")
    for some in lists(model):
        for index in some:
            if index.parent().isValid() or not grouped:
                continue
            assert model.rowCount(index.siblingAtColumn(1)) == 0  # only the first cell has members
            inner = model.index(0, 0, index)
            assert model.rowCount(inner) == 0
            assert model.parent(inner) == index
    assert not model.index(model.rowCount(), 0).isValid()
    assert not model.index(0, len(COLUMNS)).isValid()
    assert not model.index(-1, 0).isValid()
    assert model.headerData(0, Qt.Orientation.Vertical) is None


@pytest.mark.parametrize("grouped", [False, True])
def test_the_filter_leaves_the_steps_whose_cells_contain_every_word(qapp: QApplication, grouped: bool) -> None:
    run, model = mixed_run(9), OperatorModel()
    proxy = OperatorProxy()
    proxy.setSourceModel(model)
    model.show(run, by_type if grouped else None)

    def left() -> set[str]:
        tops = [proxy.index(row, 0) for row in range(proxy.rowCount())]
        found = [proxy.index(row, 0, top) for top in tops for row in range(proxy.rowCount(top))] if grouped else tops
        assert not grouped or all(proxy.rowCount(top) for top in tops)  # no empty group
        return {str(id(proxy.row_of(index))) for index in found}

    def cells(row: OperatorProfile) -> str:
        return " ".join(expected_cell(column.key, run, row)[0] for column in COLUMNS).lower()

    everything = {str(id(row)) for row in run.operators}
    for text in ("", "a1", "ZETA", "custom a", "a custom", "compute, roof", "12.0", "fused", "zeta b1", "12,345,678",
                 "steps", "n x 6", "nothing of this", "convolution relu 3x3", " "):  # fmt: skip
        proxy.set_words(text)
        words = text.lower().split()
        expected = {str(id(row)) for row in run.operators if all(word in cells(row) for word in words)}
        assert (text, left()) == (text, expected)
    assert left() == everything


# --- bars and files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delegate", "part"),
    [
        *((HeatBarDelegate, part) for part in (1.0, 0.5, 3.0)),
        *((DifferenceBarDelegate, part) for part in (1.0, 0.5, 3.0, -0.5, -3.0)),
    ],
)
@pytest.mark.parametrize("rect", [QRect(0, 0, 104, 28), QRect(37, 21, 104, 14), QRect(37, 21, 64, 70)])
def test_a_bar_is_drawn_at_the_lower_edge_of_its_cell(
    qapp: QApplication, delegate: type[HeatBarDelegate], part: float, rect: QRect
) -> None:
    model = QStandardItemModel(1, 1)
    item = QStandardItem("")
    item.setData(part, HEAT)
    model.setItem(0, 0, item)
    image = QImage(200, 120, QImage.Format.Format_RGB32)
    image.fill(QColor("black"))
    painter = QPainter(image)
    option = QStyleOptionViewItem()
    option.rect = rect
    owner = QWidget()
    delegate(owner).paint(painter, option, model.index(0, 0))
    painter.end()
    role: theme.RoleName = "accent" if not delegate.signed else "negative" if part > 0 else "positive"
    color = theme.color(role).rgb()
    places = [(x, y) for x in range(200) for y in range(120) if image.pixel(x, y) == color]
    left, right = min(x for x, _ in places), max(x for x, _ in places)
    top, bottom = min(y for _, y in places), max(y for _, y in places)
    assert len(places) == (right - left + 1) * (bottom - top + 1)
    room = rect.width() - 2 * MARGIN
    if not delegate.signed:
        start, end = rect.left() + MARGIN, rect.left() + MARGIN + room * min(1.0, part)
    else:
        middle = rect.left() + rect.width() / 2
        start, end = sorted((middle, middle + room / 2 * max(-1.0, min(1.0, part))))
    assert (left, right + 1) == pytest.approx((start, end), abs=1.5)
    assert bottom + 1 == rect.bottom()
    assert bottom - top + 1 == max(3, rect.height() // 7)


STEMS = [
    ("net.v2", "torch", "fp16", "2026-01-02T03:04:05+00:00", "net_v2-torch-fp16-2026-01-02"),
    ("", "", "", "", "run"),
    ("", "torch", "", "", "torch"),
    ("Über", "", "", "", "ber"),
    ("---", "", "", "2026-01-02", "----2026-01-02"),
    ("a  b/c", "x.y", "", "", "a_b_c-x_y"),
    ("???", "", "", "", "run"),
    ("net_", "", "", "", "net"),
]


@pytest.mark.parametrize(("network", "engine", "precision", "date", "stem"), STEMS)
def test_the_proposed_name_is_made_of_the_run(network: str, engine: str, precision: str, date: str, stem: str) -> None:
    assert file_stem(entry(network=network, engine=engine, precision=precision, date=date)) == stem


def test_the_dialogs_of_profiles_ask_for_what_can_be_read_and_written(
    qtbot: QtBot, profiling: ProfilingController, tmp_path: Path
) -> None:
    owner = QWidget()
    qtbot.addWidget(owner)
    first, second = (replace(RUN, engine=engine) for engine in ("torch", "onnxruntime"))
    profiling.add(Profile(Machine("Test CPU", 4), "net", (first, second)))
    opened = open_profile(owner, profiling)
    assert opened.windowTitle() == "Open Profile"
    assert opened.acceptMode() is QFileDialog.AcceptMode.AcceptOpen
    assert opened.fileMode() is QFileDialog.FileMode.ExistingFile
    assert opened.nameFilters()[-1] == "All files (*)"
    assert "*.csv" not in opened.nameFilters()[0]
    assert "*.json" in opened.nameFilters()[0]
    saved = save_profile_as(owner, profiling, profiling.entries[0])  # the other one is shown
    assert saved.windowTitle() == "Save Profile"
    assert saved.acceptMode() is QFileDialog.AcceptMode.AcceptSave
    assert saved.defaultSuffix() == "json"
    assert [saved.nameFilters()[0].count(suffix) for suffix in (".json", ".csv")] == [1, 0]
    assert "All files (*)" not in saved.nameFilters()
    for chosen in saved.nameFilters():
        saved.filterSelected.emit(chosen)
        assert f"*.{saved.defaultSuffix()})" in chosen or f"*.{saved.defaultSuffix()} " in chosen
    saved.fileSelected.emit(str(tmp_path / "one.json"))
    assert load_profile(tmp_path / "one.json").runs == (first,)
    for dialog in (opened, saved):
        dialog.reject()
    qtbot.waitUntil(lambda: not owner.findChildren(QFileDialog))
