"""Operators: which rows are grouped, selected, shown, copied and revealed, also in groups, in scopes and without a document."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from profile_kit import RUN, context, profile_of, profiling, steps
from PySide6.QtCore import QItemSelectionModel, QModelIndex, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QMenu, QToolButton
from pytestqt.qtbot import QtBot
from window_kit import empty, shown

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import ProfilingController, profiling_of
from app.ui.profile.operator_table import OperatorTablePanel, column_of
from designer.graph import commands, frames
from designer.graph.graph import Graph
from designer.graph.model import Frame
from designer.graph.template_commands import make_template
from designer.operators.registry import default_registry
from designer.profiling.profile_files import load_profile
from designer.profiling.schema import OperatorProfile

__all__ = ["context", "profiling"]
LEFT = Qt.MouseButton.LeftButton
DESCENDING = Qt.SortOrder.DescendingOrder


@pytest.fixture
def table(qtbot: QtBot, context: Context) -> OperatorTablePanel:
    return shown(qtbot, OperatorTablePanel(context), 1100, 320)


def rows(*names: str, kind: str = "") -> tuple[OperatorProfile, ...]:
    """Rows of these layers, several with a plus; the later ones take longer."""
    return tuple(
        OperatorProfile(tuple(name.split("+")) if name else (), kind or f"t{len(name)}", 1.0 + number, flops=10**6)
        for number, name in enumerate(names)
    )


def show(profiling: ProfilingController, *operators: OperatorProfile) -> None:
    profiling.add(profile_of(replace(RUN, operators=operators)))


def by_title(table: OperatorTablePanel) -> dict[str, QModelIndex]:
    return {index.data(): index for index in table.rows()}


def select(table: OperatorTablePanel, *titles: str) -> None:
    """Select rows in this order."""
    found, selection = by_title(table), table.tree.selection()
    selection.clear()
    for title in titles:
        flags = QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
        selection.select(found[title], flags)


def group(table: OperatorTablePanel, kind: str) -> dict[str, list[str]]:
    """The groups of a kind with their members from top to bottom."""
    table.grouping.setCurrentIndex(table.grouping.findData(kind))
    found: dict[str, list[str]] = {}
    for index in table.rows():
        if index.parent().isValid():
            found[index.parent().data()].append(index.data())
        else:
            found[index.data()] = []
    return found


def copied(table: OperatorTablePanel) -> list[str]:
    table.copy_rows()
    return [line.split("\t")[0] for line in QGuiApplication.clipboard().text().split("\n")[1:]]


def test_steps_without_a_type_are_a_group(table: OperatorTablePanel, profiling: ProfilingController) -> None:
    show(profiling, *steps())
    assert group(table, "type") == {
        "convolution + relu (1 step)": ["stem + body"],
        "outside of operators (1 step)": ["outside of operators"],
        "upsample (1 step)": ["head"],
        "Custom (1 step)": ["tail"],
    }


def test_a_fused_step_is_in_the_group_of_its_first_layer(
    table: OperatorTablePanel, context: Context, profiling: ProfilingController
) -> None:
    document = context.document
    document.do(frames.set_frame(document.graph, "f", Frame("f", "Start", rect=(310, -50, 500, 300))))
    show(profiling, *rows("stem+head", "head+stem", "gone+stem"))
    frames_of = group(table, "frame")
    assert sorted(frames_of["Start (1 step)"]) == ["stem + head"]
    assert sorted(frames_of["in no frame (2 steps)"]) == ["gone + stem", "head + stem"]
    document.do(lambda g: make_template(g, ["stem", "body"], "Pair"))
    (instance,) = (name for name, layer in document.graph.layers.items() if layer.type == "template")
    show(profiling, *rows(f"{instance}.stem+head", f"head+{instance}.stem", f"{instance}.body+{instance}.stem", ""))
    pairs = group(table, "template")
    assert sorted(pairs["Pair (2 steps)"]) == [f"{instance}.body + {instance}.stem", f"{instance}.stem + head"]
    assert sorted(pairs["in no template (2 steps)"]) == [f"head + {instance}.stem", "outside of operators"]


def test_frames_without_a_title_and_with_the_same_one_are_groups_of_their_own(
    table: OperatorTablePanel, context: Context, profiling: ProfilingController
) -> None:
    document = context.document
    places = {"stem": 320, "body": 640, "head": 960, "tail": 1280}
    for layer, (number, title) in zip(places, enumerate(("Same", "Same", "", "Own")), strict=True):
        rect = (places[layer] - 10, -50, 200, 300)
        document.do(frames.set_frame(document.graph, f"f{number}", Frame(f"f{number}", title, rect=rect)))
    show(profiling, *rows(*places, "image"))
    assert group(table, "frame") == {
        "in no frame (1 step)": ["image"],
        "Own (1 step)": ["tail"],
        "f2 (1 step)": ["head"],
        "Same (f1) (1 step)": ["body"],
        "Same (f0) (1 step)": ["stem"],
    }  # the longest first


@pytest.mark.parametrize("kind", ["template", "frame"])
def test_groups_are_those_of_the_whole_document_inside_a_template_too(
    table: OperatorTablePanel, context: Context, profiling: ProfilingController, kind: str
) -> None:
    document = context.document
    document.do(lambda g: make_template(g, ["stem", "body"], "Pair"))
    (instance,) = (name for name, layer in document.graph.layers.items() if layer.type == "template")
    x, y = document.graph[instance].position
    document.do(frames.set_frame(document.graph, "f", Frame("f", "Start", rect=(x - 20, y - 50, 300, 300))))
    show(profiling, *rows(f"{instance}.stem", "head"))
    outside = group(table, kind)
    assert len(outside) == 2
    context.enter(instance)
    assert context.document is not context.root
    show(profiling, *rows(f"{instance}.stem", "head"))
    assert group(table, kind) == outside


@pytest.mark.parametrize("kind", ["template", "frame"])
def test_groups_follow_edits_and_the_document_and_stay_folded_otherwise(
    qtbot: QtBot, table: OperatorTablePanel, context: Context, profiling: ProfilingController, kind: str
) -> None:
    document = context.document
    table._rest.setInterval(0)
    show(profiling, *rows("stem", "body", "head"))
    before = group(table, kind)
    assert len(before) == 1
    table.tree.frozen.expand(table.rows()[0])
    with qtbot.waitSignal(table._rest.timeout):
        document.do(lambda g: commands.set_params(g, {"tail": {"features": "5"}}))
    assert table.tree.frozen.isExpanded(table.rows()[0])
    if kind == "frame":
        document.do(frames.set_frame(document.graph, "f", Frame("f", "Start", rect=(310, -50, 500, 300))))
    else:
        document.do(lambda g: make_template(g, ["stem", "body"], "Pair"))
        (instance,) = (name for name, layer in document.graph.layers.items() if layer.type == "template")
        show(profiling, *rows(f"{instance}.stem", "head"))
    qtbot.waitUntil(lambda: not table._rest.isActive())
    assert len(group(table, kind)) == 2
    other = Document(Graph(), context.registry, parent=context)
    context.set_document(other)
    assert len({index.data() for index in table.rows() if not index.parent().isValid()}) == 1
    document.do(lambda g: commands.set_params(g, {"tail": {"features": "6"}}))
    assert not table._rest.isActive()  # nobody watches that document any more
    context.set_document(document)
    assert len({index.data() for index in table.rows() if not index.parent().isValid()}) == 2


def test_a_selected_group_means_its_steps_that_the_filter_leaves(
    table: OperatorTablePanel, context: Context, profiling: ProfilingController
) -> None:
    show(profiling, *rows("stem", "body", "head", kind="conv"), *rows("tail", kind="pole"))
    group(table, "type")
    select(table, "conv (3 steps)")
    assert sorted(row.name for row in table.selected()) == ["body", "head", "stem"]
    assert sorted(context.selection) == ["body", "head", "stem"]
    table.filter.setText("e")  # not in "body"
    select(table, "conv (3 steps)")
    assert sorted(row.name for row in table.selected()) == ["head", "stem"]
    assert sorted(context.selection) == ["head", "stem"]
    select(table, "pole (1 step)", "stem", "conv (3 steps)")
    assert table.summary.text().startswith("3 selected")
    table.tree.selection().clear()
    assert table.summary.text().startswith("3 of 4 shown")
    table.filter.setText("nothing of this")
    assert table.summary.text() == "0 of 4 shown"


def test_selected_rows_are_in_the_order_of_the_table(table: OperatorTablePanel, profiling: ProfilingController) -> None:
    show(profiling, *rows("stem", "body", kind="conv"), *rows("head", "tail", kind="pool"))
    groups = group(table, "type")
    order = [title for top, members in groups.items() for title in (top, *members)]
    assert copied(table) == order
    select(table, *reversed(order))
    assert copied(table) == order
    members = [title for members in groups.values() for title in members]
    assert [row.name for row in table.selected()] == members
    (first, inside), (second, others) = groups.items()
    select(table, others[1], second, inside[0])
    assert copied(table) == [inside[0], second, others[1]]
    assert [row.name for row in table.selected()] == [inside[0], *others]
    select(table, others[0], first)
    assert copied(table) == [first, others[0]]
    assert [row.name for row in table.selected()] == [*inside, others[0]]


def test_another_run_and_another_grouping_keep_the_selected_layers(
    table: OperatorTablePanel, context: Context, profiling: ProfilingController
) -> None:
    show(profiling, *rows("stem", "body", "head"))
    select(table, "head")
    chosen: list[tuple[str, ...]] = []
    context.selection_changed.connect(chosen.append)
    for kind in ("type", "frame", "template", ""):
        group(table, kind)
        assert [row.name for row in table.selected()] == ["head"]
    show(profiling, *rows("head", "stem"))
    assert [row.name for row in table.selected()] == ["head"]
    assert table.summary.text().startswith("1 selected  ·  1.00 ms (33.3 %)")
    assert (context.selection, chosen) == (("head",), [])


def test_a_column_that_was_made_wide_stays_so(table: OperatorTablePanel, profiling: ProfilingController) -> None:
    show(profiling, *rows("stem"))
    column = column_of("time")
    table.tree.table.setColumnWidth(column, 333)
    show(profiling, *rows("stem", "a_layer_with_a_long_name"))
    group(table, "type")
    assert table.tree.table.columnWidth(column) == 333


def test_the_first_of_the_chosen_rows_is_scrolled_into_view(
    table: OperatorTablePanel, context: Context, profiling: ProfilingController
) -> None:
    many = rows(*(f"l{number}" for number in range(200)))
    for kind in ("", "type"):
        show(profiling, *many, *rows("stem"), *rows(*(f"m{number}" for number in range(100)), "head"))
        group(table, kind)
        context.select(())
        table.tree.sort_by(column_of("time"), DESCENDING)
        context.select(("stem", "head"))
        first = next(index for index in table.rows() if index in table.tree.selected_rows())
        view = table.tree.frozen
        assert first.data() == "head"
        assert view.viewport().rect().contains(view.visualRect(first).center())
        last = by_title(table)["stem"]
        assert not view.viewport().rect().contains(view.visualRect(last).center()), "both would be seen anyway"


def test_the_menu_reveals_the_first_layer_of_the_first_selected_row(
    table: OperatorTablePanel, context: Context, profiling: ProfilingController
) -> None:
    show(profiling, *rows("stem+body", "", "head"))
    table.tree.sort_by(column_of("time"), DESCENDING)
    revealed: list[str] = []
    context.reveal_requested.connect(revealed.append)

    def menu() -> dict[str, Any]:
        place = table.tree.table.visualRect(table.rows()[0].siblingAtColumn(2)).center()
        table.tree.table.customContextMenuRequested.emit(place)
        (made,) = (each for each in table.findChildren(QMenu) if each.isVisible())
        made.close()
        return {action.text(): action for action in made.actions()}

    select(table, "stem + body", "outside of operators")
    menu()["Show on Canvas"].trigger()
    select(table, "stem + body", "head")
    menu()["Show on Canvas"].trigger()
    select(table, "outside of operators")
    assert not menu()["Show on Canvas"].isEnabled()
    assert revealed == ["stem", "head"]  # the one above is the first


def test_the_run_that_is_shown_is_saved(
    qtbot: QtBot, table: OperatorTablePanel, profiling: ProfilingController, tmp_path: Path
) -> None:
    table.save()
    assert table.findChildren(QFileDialog) == []  # nothing is shown
    runs = [replace(RUN, engine=engine) for engine in ("torch", "onnxruntime", "openvino")]
    profiling.add(profile_of(*runs))
    profiling.show(profiling.entries[1])
    button = table.findChild(QToolButton, "operator_table.save")
    assert button is not None
    qtbot.mouseClick(button, LEFT)
    (dialog,) = table.findChildren(QFileDialog)
    assert [Path(path).stem for path in dialog.selectedFiles()] == ["net-onnxruntime-fp16"]
    dialog.fileSelected.emit(str(tmp_path / "a.json"))
    dialog.reject()
    assert load_profile(tmp_path / "a.json").runs == (runs[1],)
    qtbot.waitUntil(lambda: not table.findChildren(QFileDialog))


def test_a_run_is_shown_without_a_document_and_in_a_panel_that_is_opened_later(qtbot: QtBot) -> None:
    context = Context(default_registry())
    controller = profiling_of(context)
    show(controller, *steps())
    panel = shown(qtbot, OperatorTablePanel(context), 900, 300)
    context.setParent(panel)
    assert sorted(by_title(panel)) == ["head", "outside of operators", "stem + body", "tail"]
    assert len(group(panel, "template")) == len(group(panel, "frame")) == 1
    group(panel, "")
    revealed: list[str] = []
    context.reveal_requested.connect(revealed.append)
    select(panel, "head")
    panel._reveal(RUN.operators[1])
    assert revealed == []
    assert panel.summary.text().startswith("1 selected")
    for entry in list(controller.entries):
        controller.remove(entry)
    with qtbot.waitSignal(context.inference_requested):
        empty(panel).triggered.emit()


def test_the_third_click_on_a_header_restores_the_priority_in_both_views(
    qtbot: QtBot, table: OperatorTablePanel, profiling: ProfilingController
) -> None:
    show(profiling, *(replace(row, saving_ms=float(10 * number)) for number, row in enumerate(rows("c", "a", "b"))))
    priority = [index.data() for index in table.rows()]
    assert priority == ["b", "a", "c"]
    for view, column in ((table.tree.frozen, 0), (table.tree.table, column_of("flops"))):
        header = view.header()
        place = header.viewport().rect().center()
        place.setX(header.sectionViewportPosition(column) + 10)
        for _ in range(3):
            qtbot.mouseClick(header.viewport(), LEFT, pos=place)
        assert header.sortIndicatorSection() == -1
        assert [index.data() for index in table.rows()] == priority
