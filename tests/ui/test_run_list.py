"""The Inference Run Logger and Run Differences after random sequences of clicks and runs, compared with a model of a few lines."""

from __future__ import annotations

import random
from dataclasses import replace
from math import hypot, sqrt
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from profile_kit import NAMES, RUN, context, profile_of, profiling
from PySide6.QtCore import QItemSelectionModel, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QPushButton, QToolButton
from pytestqt.qtbot import QtBot
from window_kit import shown

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import Entry, ProfilingController, State, profiling_of
from app.ui.profile import run_logger
from app.ui.profile.run_differences import DIFFERENCE, HEADERS, RunDifferencesPanel
from app.ui.profile.run_logger import RunLoggerPanel, comparison, described
from app.ui.profile.run_model import RUN_COLUMNS
from app.ui.profile.table_model import HEAT
from app.ui.widgets import theme
from designer.graph.graph import Graph
from designer.graph.template_commands import make_template
from designer.operators.registry import default_registry
from designer.profiling.quantities import ValueSource, measured, unavailable
from designer.profiling.schema import Energy, OperatorProfile, ProfileRun
from designer.units import digits, quantity

__all__ = ["context", "profiling"]
ROLE = Qt.ItemDataRole
LEFT, CTRL = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier
ASCENDING, DESCENDING = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder
SETTINGS = ("Batch", "Size", "Engine", "Precision", "Layout", "Chip", "Source", "Network")


def random_run(chance: random.Random) -> ProfileRun:
    pick = chance.choice
    rows = tuple(
        OperatorProfile((name,), "x", pick((0.5, 1.0, 2.0, 2.01, 4.0)), spread_ms=pick((None, 0.0, 0.05, 9.0)))
        for name in chance.sample(NAMES, 3)
    )
    joined = (replace(rows[0], layers=(*rows[0].layers, *rows[1].layers)), rows[2], OperatorProfile((), "", 1.0))
    return replace(
        RUN,
        engine=pick(("torch", "onnxruntime")),
        batch=pick((1, 2)),
        time_ms=pick((20.0, 25.0, 20.01, None, 0.0)),
        spread_ms=pick((None, 0.0, 0.4)),
        operators=pick((rows, rows, joined, ())),
        source=pick((ValueSource.MEASURED, ValueSource.MODELLED)),
        iterations=pick((0, 1, 7)),
        turns=pick(("", "x")),
        load=pick((measured(1.0), measured(80.0))),
        energy=pick((None, Energy(measured(2.5), measured(125.0), measured(5e9)))),
    )


class Listed:
    """The panels, and what they show according to a model: which runs exist and are selected, shown and compared."""

    def __init__(self, qtbot: QtBot, context: Context, profiling: ProfilingController, seed: int) -> None:
        self.random = random.Random(seed)
        self.context, self.profiling = context, profiling
        self.logger = shown(qtbot, RunLoggerPanel(context), 700, 600)
        self.panel = shown(qtbot, RunDifferencesPanel(context), 700, 400)
        self.entries: list[Entry] = []
        self.chosen: set[Entry] = set()
        self.current: Entry | None = None

    def click(self, row: int, *, also: bool = False) -> None:
        entry = self.entries[row]
        place = self.logger.table.visualRect(self.logger.model.index(row, 0)).center()
        modifier = CTRL if also else Qt.KeyboardModifier.NoModifier
        QTest.mouseClick(self.logger.table.viewport(), LEFT, modifier, place)
        self.chosen = (self.chosen ^ {entry}) if also else {entry}
        if len(self.chosen) == 1:
            (self.current,) = self.chosen

    def add(self) -> None:
        path = self.random.choice((None, Path("/folder/run.json")))
        count = self.random.choice((1, 1, 2))
        self.profiling.add(profile_of(*(random_run(self.random) for _ in range(count))), path)
        self.entries += self.profiling.entries[-count:]
        self.current = self.entries[-1]
        self.chosen = {self.current}

    def remove(self) -> None:
        button = self.logger.findChild(QToolButton, "run_logger.remove")
        assert button is not None
        QTest.mouseClick(button, LEFT)
        if self.chosen:
            self.entries = [entry for entry in self.entries if entry not in self.chosen]
            if self.current not in self.entries:
                self.current = self.entries[-1] if self.entries else None
            self.chosen = {self.current} if self.current is not None else set()

    def show(self) -> None:
        """Another part of the window shows a run."""
        entry = self.random.choice(self.entries)
        self.profiling.show(entry)
        if entry is not self.current:
            self.current = entry
            if entry not in self.chosen:
                self.chosen = {entry}

    def compare(self) -> None:
        one, other = self.random.sample(self.entries, 2)
        if self.entries.index(one) > self.entries.index(other):
            one, other = other, one
        self.profiling.compare((one, other))
        self.chosen = {one, other}

    def step(self) -> None:
        steps: list[Any] = [self.add]
        if self.entries:
            row = self.random.randrange(len(self.entries))
            steps += [lambda: self.click(row), *[lambda: self.click(row, also=True)] * 3, self.show, self.remove]
        if len(self.entries) > 1:
            steps.append(self.compare)
        if len(self.entries) > 7:
            steps = steps[1:]
        self.random.choice(steps)()

    # --- what is shown ---------------------------------------------------------------------------------------------

    def check(self) -> None:
        listed = [entry for entry in self.entries if entry in self.chosen]
        pair = (listed[0], listed[1]) if len(listed) == 2 else None
        logger, table = self.logger, self.logger.table
        assert self.profiling.entries == self.entries
        assert logger.chosen() == listed
        assert self.profiling.current is self.current
        assert self.profiling.compared == pair
        details = described(listed[0]) if len(listed) == 1 else comparison(*pair) if pair else ""
        assert logger.details.text() == details
        enabled = {name: logger.findChild(QToolButton, f"run_logger.{name}").isEnabled() for name in ("save", "remove")}
        assert enabled == {"save": len(listed) == 1, "remove": bool(listed)}
        assert table.isVisible() is logger.details.isVisible() is bool(self.entries)
        assert logger._empty.isVisible() is not bool(self.entries)
        assert [logger.model.index(row, 0).data() for row in range(logger.model.rowCount())] == [
            str(entry.number) for entry in self.entries
        ]
        for column, (title, text, _) in enumerate(RUN_COLUMNS):
            texts = {text(entry) for entry in self.entries}
            common = title in SETTINGS and len(self.entries) > 1 and len(texts) == 1
            assert (title, table.isColumnHidden(column)) == (title, common)
        if self.current is not None and len(listed) == 1:
            assert (
                table.viewport()
                .rect()
                .intersects(table.visualRect(logger.model.index(self.entries.index(self.current), 0)))
            )
        self.check_differences(pair)

    def check_differences(self, pair: tuple[Entry, Entry] | None) -> None:
        panel = self.panel
        assert panel.tree.isVisible() is (pair is not None)
        assert panel.again.isEnabled() is False  # the runs are from nowhere
        if pair is None:
            assert panel.proxy.rowCount() == 0
            return
        shown_rows = sorted(
            [panel.proxy.index(row, column).data() for column in range(len(HEADERS))]
            for row in range(panel.proxy.rowCount())
        )
        expected = compared(pair[0].run, pair[1].run)
        assert shown_rows == sorted([name, *texts, verdict] for name, _, texts, verdict in expected)
        most = max((abs(value) for _, value, _, verdict in expected if verdict != "none"), default=0.0)
        bars = {name: value / most if verdict != "none" and most else None for name, value, _, verdict in expected}
        for row in range(panel.proxy.rowCount()):
            index = panel.proxy.index(row, DIFFERENCE)
            bar = bars[index.siblingAtColumn(0).data()]
            assert index.data(HEAT) == (pytest.approx(bar) if bar is not None else None)
        assert panel.summary.text() == summary(*pair)


def error(run: ProfileRun, *spreads: float | None) -> float:
    """Three standard errors of sums of medians."""
    return 3 * hypot(*(2.506 * (spread or 0.0) / 1.349 / sqrt(max(1, run.iterations)) for spread in spreads))


def compared(before: ProfileRun, after: ProfileRun) -> list[tuple[str, float, list[str], str]]:
    """Name, difference, texts of the numbers and verdict of each group of steps that share layers."""
    groups: list[tuple[list[OperatorProfile], list[OperatorProfile]]] = []
    for side, rows in enumerate((before.operators, after.operators)):
        for row in rows:
            names = set(row.layers) or {""}
            near = [each for each in groups if names & {n for some in each for r in some for n in (r.layers or ("",))}]
            for each in near:
                groups.remove(each)
            joined: tuple[list[OperatorProfile], list[OperatorProfile]] = (
                [row for each in near for row in each[0]],
                [row for each in near for row in each[1]],
            )
            joined[side].append(row)
            groups.append(joined)
    found = []
    for first, second in groups:
        layers = dict.fromkeys(name for row in (*first, *second) for name in row.layers)
        one, other = (sum(row.time_ms for row in rows) if rows else None for rows in (first, second))
        value = (other or 0.0) - (one or 0.0)
        noise = max(
            hypot(error(before, *(row.spread_ms for row in first)), error(after, *(row.spread_ms for row in second))),
            0.01 * max(one or 0.0, other or 0.0),
        )
        verdict = "slower" if value > 0 else "faster"
        verdict = "only after" if one is None else "only before" if other is None else verdict
        if one is not None and other is not None and abs(value) <= noise:
            verdict = "none"
        texts = [
            "-" if one is None else digits(one),
            "-" if other is None else digits(other),
            f"{'+' if value > 0 else ''}{digits(value)}",
            digits(noise),
        ]
        found.append((" + ".join(layers) or "outside of operators", value, texts, verdict))
    return found


def summary(one: Entry, other: Entry) -> str:
    before, after = one.run, other.run
    if not before.time_ms or not after.time_ms:
        return "One of the two runs has no time."
    value = after.time_ms - before.time_ms
    noise = max(
        hypot(error(before, before.spread_ms), error(after, after.spread_ms)), 0.01 * max(before.time_ms, after.time_ms)
    )
    verdict = "none" if abs(value) <= noise else "slower" if value > 0 else "faster"
    load = max(before.load.value or 0.0, after.load.value or 0.0)
    doubt = ""
    if load == 80:
        doubt = "\nnote: other programs used 80 % of the cores during one of the runs; measure both again"
    elif not before.turns or before.turns != after.turns:
        doubt = (
            "\nnote: the runs were not measured in turns, so a change of clock rate or load between them "
            "counts as a difference"
        )
    sign = "+" if value > 0 else ""
    return (
        f"#{one.number} {one.title}: {quantity(before.time_ms / 1e3, 's')}\n"
        f"#{other.number} {other.title}: {quantity(after.time_ms / 1e3, 's')}\n"
        f"Difference {sign}{quantity(value / 1e3, 's')} ({digits(after.time_ms / before.time_ms)} x), "
        f"noise ±{quantity(noise / 1e3, 's')}: {verdict}{doubt}"
    )


@pytest.mark.parametrize("seed", range(3))
def test_clicks_and_runs_in_any_order_select_show_and_compare(
    qtbot: QtBot, context: Context, profiling: ProfilingController, seed: int
) -> None:
    listed = Listed(qtbot, context, profiling, seed)
    listed.check()
    for _ in range(40):
        listed.step()
        listed.check()
    while listed.entries:
        if not listed.chosen:
            listed.click(len(listed.entries) - 1)
        listed.remove()
        listed.check()


# --- the texts of runs -----------------------------------------------------------------------------------------------


def details(entry: Entry) -> list[str]:
    """The lines about a run, written down once more from its fields."""
    run = entry.run
    lines = [f"{entry.title}, {run.threads} threads" if run.threads else entry.title]
    if run.time_ms is None:
        lines.append("no time measured")
    elif run.source is ValueSource.MODELLED:
        lines.append(f"predicted {quantity(run.time_ms / 1e3, 's')}")
    else:
        spread = quantity((run.spread_ms or 0) / 1e3, "s")
        lines.append(f"median {quantity(run.time_ms / 1e3, 's')} ± {spread} of {run.iterations} runs")
    if run.inputs:
        lines.append("input " + ", ".join(f"{name} {shape}" for name, shape in run.inputs.items()))
    roofs = [row.roof_ms for row in run.operators if row.layers]
    if roofs and all(roof is not None for roof in roofs):
        lines.append(f"roofline of the machine {quantity(sum(roof or 0.0 for roof in roofs) / 1e3, 's')}")
    if run.partial:
        lines.append(f"partial: {run.partial}")
    if run.weights:
        lines.append(f"weights: {run.weights}")
    if run.energy is not None:
        joules, watts, rate = run.energy.joules, run.energy.watts, run.energy.flops_per_joule
        if joules.value is None or watts.value is None:
            lines.append(f"energy: unavailable ({joules.reason or watts.reason})")
        else:
            per_watt = quantity(rate.value or 0.0, "FLOP/s")
            lines.append(
                f"energy: {quantity(joules.value, 'J')} per run, {quantity(watts.value, 'W')}, {per_watt} per watt"
            )
    lines += [
        f"{name}: {each.value:.2e} ({each.reason})" for name, each in run.checks.items() if each.value is not None
    ]
    return [*lines, *(f"note: {note}" for note in run.notes)]


def test_the_details_of_every_run_are_of_its_fields() -> None:
    chance = random.Random(1)
    pick = chance.choice
    known, none = measured(2.5, "why"), unavailable("no sensor")
    for number in range(120):
        run = replace(
            random_run(chance),
            operators=tuple(
                OperatorProfile(pick(((name,), ())), "x", 1.0, roof_ms=pick((0.0, 0.5, 0.5, 0.5, None)))
                for name in chance.sample(NAMES, pick((0, 1, 2)))
            ),
            device=pick(("cpu", "cuda")),
            threads=pick((0, 4)),
            inputs=pick(({}, {"a": "1 x 3"}, {"a": "1 x 3", "b": "2 x 4"})),
            partial=pick(("", "it was stopped")),
            weights=pick(("", "random weights (seed 0)")),
            energy=pick((None, Energy(known, known, known), Energy(known, known, none), Energy(none, known, known),
                         Energy(known, unavailable("no watts"), known), Energy(none, unavailable("no watts"), none))),
            checks=pick(({}, {"first": measured(0.0, "of fp32"), "second": none, "third": measured(123.0, "of fp16")})),
            notes=pick(((), ("one",), ("one", "two"))),
        )  # fmt: skip
        entry = Entry(number, profile_of(run), run)
        assert described(entry).split("\n") == details(entry)


def test_a_comparison_names_the_largest_differences_beyond_the_noise() -> None:
    times = {"a": (1.0, 9.0), "b": (1.0, 8.0), "noisy": (1.0, 7.0), "c": (6.0, 1.0), "d": (1.0, 5.0), "e": (1.0, 4.0)}
    before, after = (
        replace(
            RUN,
            time_ms=20.0 + 5 * side,
            operators=tuple(
                OperatorProfile((name, f"{name}2"), "x", both[side], spread_ms=9.0 if name == "noisy" else None)
                for name, both in times.items()
            ),
        )
        for side in (0, 1)
    )
    entries = [Entry(number, profile_of(run), run) for number, run in ((3, before), (8, after))]
    assert comparison(*entries).split("\n") == [
        "#3 20.0 ms, #8 25.0 ms: #8 takes 1.25 x of #3",
        "a + a2: +8.00 ms",
        "b + b2: +7.00 ms",
        "c + c2: -5.00 ms",
    ]
    assert comparison(*entries[::-1]).split("\n")[0] == "#8 25.0 ms, #3 20.0 ms: #3 takes 0.80 x of #8"
    close = replace(after, time_ms=20.01)
    assert comparison(entries[0], Entry(9, profile_of(close), close)).split("\n")[-1] == (
        "The difference of the whole run is within the noise."
    )
    for time_ms in (0.0, None):
        nothing = replace(after, time_ms=time_ms)
        entry = Entry(9, profile_of(nothing), nothing)
        assert comparison(entries[0], entry) == comparison(entry, entries[0]) == "one of the two runs has no time"


# --- the controls of the list --------------------------------------------------------------------------------------


def test_the_list_without_a_document_opens_runs_but_launches_none(qtbot: QtBot) -> None:
    context = Context(default_registry())
    panel = shown(qtbot, RunLoggerPanel(context), 420, 600)
    context.setParent(panel)
    assert not panel.launch.isEnabled()
    assert panel.launch.toolTip() == "Open a document first"
    assert panel.iterations.value() == 10
    context.set_document(Document(Graph(), context.registry, parent=context))
    assert panel.launch.isEnabled()
    assert panel.launch.toolTip() == "Run the network, time every operator, and list the run"


def test_a_list_that_is_opened_later_shows_the_state_and_the_runs(
    qtbot: QtBot, context: Context, profiling: ProfilingController
) -> None:
    profiling.add(profile_of(RUN, replace(RUN, batch=5)))
    profiling.show(profiling.entries[0])
    profiling._set_state(State.WEIGHTS, "'stem' has no weights.")
    context.root.change_settings(iterations=33)
    panel = shown(qtbot, RunLoggerPanel(context), 420, 600)
    assert panel.chosen() == [profiling.entries[0]]
    assert panel.details.text() == described(profiling.entries[0])
    assert panel._notice.isVisible()
    assert panel.iterations.value() == 33
    assert profiling.state is State.WEIGHTS


def test_the_number_of_runs_is_that_of_the_open_document(
    qtbot: QtBot, context: Context, profiling: ProfilingController
) -> None:
    panel = shown(qtbot, RunLoggerPanel(context), 420, 600)
    first, second = context.root, Document(Graph(), context.registry, parent=context)
    second.change_settings(iterations=21)
    assert panel.iterations.minimum() == 1
    panel.iterations.setValue(5)
    assert (first.settings.iterations, second.settings.iterations) == (5, 21)
    context.set_document(second)
    assert panel.iterations.value() == 21
    assert second.settings.iterations == 21
    first.change_settings(iterations=8)
    assert panel.iterations.value() == 21
    panel.iterations.setValue(22)
    assert (first.settings.iterations, second.settings.iterations) == (8, 22)
    context.set_document(first)
    assert (panel.iterations.value(), first.settings.iterations) == (8, 8)


@pytest.mark.parametrize(("button", "kind"), [("weights", "folder"), ("file", "file")])
def test_weights_are_asked_for_the_open_document(
    qtbot: QtBot,
    context: Context,
    profiling: ProfilingController,
    monkeypatch: pytest.MonkeyPatch,
    button: str,
    kind: str,
) -> None:
    asked: list[tuple[Any, ...]] = []
    for name in ("folder", "file"):
        monkeypatch.setattr(run_logger, f"ask_weights_{name}", lambda *args, name=name: asked.append((name, *args)))
    panel = shown(qtbot, RunLoggerPanel(context), 420, 600)
    second = Document(Graph(), context.registry, parent=context)
    context.set_document(second)
    profiling._set_state(State.WEIGHTS, "why")
    qtbot.mouseClick(panel.findChild(QPushButton, f"run_logger.notice.{button}"), LEFT)
    assert asked == [(kind, panel, second, profiling.choose_weights)]


def test_enter_in_a_field_launches_or_stops(
    qtbot: QtBot, context: Context, profiling: ProfilingController, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(profiling, "launch", lambda: done.append(f"launch {profiling.grid['batches']}"))
    monkeypatch.setattr(profiling, "stop", lambda: done.append("stop"))
    panel = shown(qtbot, RunLoggerPanel(context), 420, 600)
    panel.batches.setText("2")  # also while the field has the focus
    qtbot.mouseClick(panel.launch, LEFT)
    for state in (State.RUNNING, State.FAILED):
        profiling._set_state(state, "")
        qtbot.keyClick(panel.sizes, Qt.Key.Key_Return)
    assert done == ["launch 2", "stop", "launch 2"]


def test_messages_of_the_list_have_the_role_of_the_state(
    qtbot: QtBot, context: Context, profiling: ProfilingController
) -> None:
    panel = shown(qtbot, RunLoggerPanel(context), 420, 600)
    found = {}
    for state in (State.RUNNING, State.FAILED, State.IDLE, State.WEIGHTS):
        profiling._set_state(state, "text")
        buttons = [
            name
            for name in ("weights", "file", "random")
            if panel.findChild(QPushButton, f"run_logger.notice.{name}").isVisible()
        ]
        found[state] = (panel.status.isVisible() and panel.status._text.accessibleName(), buttons)
    assert found == {
        State.RUNNING: ("note: text", []),
        State.FAILED: ("error: text", []),
        State.IDLE: ("note: text", []),
        State.WEIGHTS: (False, ["weights", "file", "random"]),
    }


def test_the_first_of_the_selected_runs_is_saved_and_all_of_them_are_removed(
    qtbot: QtBot, context: Context, profiling: ProfilingController
) -> None:
    panel = shown(qtbot, RunLoggerPanel(context), 420, 600)
    profiling.add(profile_of(*(replace(RUN, engine=name) for name in ("a", "b", "c", "d"))))
    for row in range(1, 4):
        index = panel.model.index(row, 0)
        flags = QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
        panel.table.selectionModel().select(index, flags)
    panel._save_chosen()
    (dialog,) = panel.findChildren(QFileDialog)
    assert [Path(path).stem for path in dialog.selectedFiles()] == ["net-b-fp16"]
    dialog.reject()
    panel._remove_chosen()
    assert [entry.run.engine for entry in profiling.entries] == ["a"]
    assert panel.chosen() == profiling.entries


def test_the_run_that_is_shown_is_scrolled_into_view(
    qtbot: QtBot, context: Context, profiling: ProfilingController
) -> None:
    panel = shown(qtbot, RunLoggerPanel(context), 420, 500)
    profiling.add(profile_of(*(replace(RUN, batch=number) for number in range(1, 80))))
    for number in (78, 0, 40):
        profiling.show(profiling.entries[number])
        assert panel.table.viewport().rect().contains(panel.table.visualRect(panel.model.index(number, 0)).center())


# --- differences -----------------------------------------------------------------------------------------------------


def test_names_of_differences_are_sorted_without_regard_to_case(
    qtbot: QtBot, context: Context, profiling: ProfilingController
) -> None:
    panel = shown(qtbot, RunDifferencesPanel(context), 700, 400)
    rows = tuple(OperatorProfile((name,), "x", 1.0) for name in ("Zeta", "beta", "Alpha", "gamma"))
    profiling.add(profile_of(replace(RUN, operators=rows), replace(RUN, operators=rows)))
    profiling.compare((profiling.entries[0], profiling.entries[1]))
    for order, names in (
        (ASCENDING, ["Alpha", "beta", "gamma", "Zeta"]),
        (DESCENDING, ["Zeta", "gamma", "beta", "Alpha"]),
    ):
        panel.tree.sort_by(0, order)
        assert [panel.proxy.index(row, 0).data() for row in range(4)] == names


def test_the_first_click_on_a_column_of_numbers_sorts_the_largest_first(
    qtbot: QtBot, context: Context, profiling: ProfilingController
) -> None:
    panel = shown(qtbot, RunDifferencesPanel(context), 700, 400)
    orders = [
        panel.proxy.headerData(column, Qt.Orientation.Horizontal, ROLE.InitialSortOrderRole)
        for column in range(len(HEADERS))
    ]
    assert orders == [None, *[DESCENDING.value] * 4, None]
    assert panel.tree.table.header().sortIndicatorSection() == DIFFERENCE
    assert panel.tree.table.header().sortIndicatorOrder() == DESCENDING
    rows = [
        tuple(OperatorProfile((name,), "x", time) for name, time in times.items())
        for times in ({"a": 1.0, "b": 1.0, "gone": 0.5, "same": 2.0}, {"a": 2.0, "b": 0.25, "new": 0.0, "same": 2.0})
    ]
    profiling.add(profile_of(*(replace(RUN, operators=each) for each in rows)))
    profiling.compare((profiling.entries[0], profiling.entries[1]))
    columns = {}
    for column in range(1, 5):
        panel.tree.sort_by(column, DESCENDING)
        columns[column] = [panel.proxy.index(row, column).data() for row in range(5)]
        for row in range(5):
            assert panel.proxy.index(row, column).data(ROLE.FontRole) == theme.mono_font()
    assert columns == {
        1: ["2.00", "1.00", "1.00", "0.500", "-"],
        2: ["2.00", "2.00", "0.250", "0", "-"],
        3: ["+1.00", "-0.750", "-0.500", "0", "0"],
        4: ["0.0200", "0.0200", "0.0100", "0.00500", "0"],
    }


def test_a_difference_of_layers_inside_an_instance_selects_the_instance(
    qtbot: QtBot, context: Context, profiling: ProfilingController
) -> None:
    context.document.do(lambda g: make_template(g, ["stem", "body"], "Pair"))
    (instance,) = (name for name, layer in context.document.graph.layers.items() if layer.type == "template")
    panel = shown(qtbot, RunDifferencesPanel(context), 700, 400)
    rows = (
        OperatorProfile((f"{instance}.stem", f"{instance}.body"), "x", 1.0),
        OperatorProfile(("head", "gone"), "x", 3.0),
        OperatorProfile(("tail", "image"), "x", 2.0),
    )
    profiling.add(profile_of(replace(RUN, operators=rows), replace(RUN, operators=rows)))
    profiling.compare((profiling.entries[0], profiling.entries[1]))
    chosen: list[tuple[str, ...]] = []
    context.selection_changed.connect(chosen.append)
    panel.tree.selection().select(
        panel.proxy.index(0, 0), QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
    )
    panel.tree.frozen.selectAll()
    assert sorted(chosen[-1]) == sorted(("head", instance, "image", "tail"))
    assert all(len(set(each)) == len(each) for each in chosen)


def test_differences_without_a_document_are_shown(qtbot: QtBot) -> None:
    context = Context(default_registry())
    panel = shown(qtbot, RunDifferencesPanel(context), 700, 400)
    context.setParent(panel)
    controller = profiling_of(context)
    controller.add(profile_of(RUN, replace(RUN, time_ms=25.0)))
    controller.compare((controller.entries[0], controller.entries[1]))
    panel.tree.frozen.selectAll()
    assert panel.summary.text() == summary(controller.entries[0], controller.entries[1])
