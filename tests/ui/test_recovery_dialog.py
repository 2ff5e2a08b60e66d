"""The list of unsaved work: rows and marks of every document, what is asked for, and how the dialog ends."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import time
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path

from PySide6.QtCore import QEvent, QLocale, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPlainTextEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.ui.document.recovery_dialog import NAME_WIDTH, DifferencesDialog, RecoveryDialog
from app.ui.widgets import theme
from designer.files.recovery import Unfinished
from designer.graph.compare import NetworkComparison
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source

FOUND = tuple(
    Diagnostic("journal-damaged", f"record {number} is damaged", Severity.WARNING, remedy="compare it")
    for number in (1, 2)
)
MOMENT = 1_000_000_000.75  # 9 September 2001, 01:46 in London, 10:46 in Tokyo


def network(features: str = "4") -> Graph:
    return Graph(
        [
            Layer("in", "input", params={"dims": "16x16x3"}),
            Layer("conv", "convolution", (160, 0), (Source("in"),), {"features": features}),
        ]
    )


def left(name: str, path: Path | None, **changes: object) -> Unfinished:
    values: dict[str, object] = {
        "journal": Path(f"/journals/{name}.journal"), "path": path, "name": name, "opened": 0.0, "changed": MOMENT,
        "digest": "", "graph": network("8"), "disk": "same" if path is not None else "none",
        "on_disk": network() if path is not None else None, "settings": {}, "findings": (), "lock": -1,
    }  # fmt: skip
    return Unfinished(*(values | changes).values())  # type: ignore[arg-type]


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times of this test are those of Tokyo, in the notation of a 24 hour clock."""
    before = QLocale()
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    QLocale.setDefault(QLocale(QLocale.Language.German, QLocale.Country.Germany))
    yield
    QLocale.setDefault(before)
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def show(qtbot: QtBot) -> Callable[..., RecoveryDialog]:
    parent = QWidget()
    qtbot.addWidget(parent)
    parent.show()

    def make(*entries: Unfinished) -> RecoveryDialog:
        dialog = RecoveryDialog(entries, parent)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)
        dialog.show()
        qtbot.waitExposed(dialog)
        return dialog

    return make


def icon_of(item) -> bytes:
    return bytes(item.icon(0).pixmap(16, 16).toImage().constBits())


def drawn(name: str, role: theme.RoleName) -> bytes:
    return bytes(theme.icon(name, role).pixmap(16, 16).toImage().constBits())


@pytest.mark.usefixtures("tokyo")
def test_every_column_and_mark_of_a_row_is_of_its_document(show, tmp_path: Path) -> None:
    entries = (
        left("network & one", tmp_path / "one" / "a & <b>.xml", disk="changed"),
        left("fresh", None, changed=MOMENT + 86_400),
        left("net", tmp_path / "two" / "damaged.xml", disk="gone", findings=FOUND),
        left("", tmp_path / "three" / "lost.xml", graph=None, findings=FOUND[:1]),
    )
    dialog = show(*entries)
    rows = [dialog.list.topLevelItem(row) for row in range(dialog.list.topLevelItemCount())]
    assert [[row.text(column) for column in range(4)] for row in rows] == [
        ["a & <b>.xml", "09.09.01 10:46", "changed since", str(tmp_path / "one")],
        ["fresh", "10.09.01 10:46", "not saved", ""],
        ["damaged.xml", "09.09.01 10:46", "deleted", str(tmp_path / "two")],
        ["lost.xml", "09.09.01 10:46", "unchanged", str(tmp_path / "three")],
    ]
    plain, warning = drawn("file-outline", "muted"), drawn("alert", "warning")
    assert plain != warning
    assert [icon_of(row) for row in rows] == [plain, plain, warning, warning]
    assert ["&lt;b&gt;" in row.toolTip(0) for row in rows] == [True, False, False, False]
    assert [row.toolTip(0) for row in rows[1:]] == [entry.title for entry in entries[1:]]
    assert [row.toolTip(3) for row in rows] == [row.text(3) for row in rows]
    assert dialog.list.textElideMode() is Qt.TextElideMode.ElideMiddle
    assert dialog.list.currentItem() is rows[0]
    assert dialog.recover.isDefault()
    assert not dialog.later.isDefault()
    assert dialog.later.toolTip() == "Ask again on the next start"
    assert not dialog.isModal()


def test_a_short_name_takes_only_the_width_that_it_needs(show, tmp_path: Path) -> None:
    short = show(left("a", tmp_path / "a.xml"))
    assert short.list.columnWidth(0) == short.list.sizeHintForColumn(0) < NAME_WIDTH
    long = show(left("a", tmp_path / f"{'long_' * 30}.xml"))
    assert long.list.columnWidth(0) == NAME_WIDTH < long.list.sizeHintForColumn(0)
    short.close()
    long.close()


def test_recover_all_asks_for_all_that_can_be_recovered_wherever_they_are_in_the_list(show) -> None:
    entries = (left("one", None), left("lost", None, graph=None, findings=FOUND), left("two", None))
    for order in permutations(entries):
        dialog = show(*order)
        asked: list[str] = []
        dialog.recover_asked.connect(lambda each, asked=asked: asked.append(each.name))
        dialog.all.click()
        assert asked == [entry.name for entry in order if entry.graph is not None]
        dialog.close()


def test_recover_all_may_take_rows_from_the_list(show) -> None:
    entries = [left(f"n{number}", None) for number in range(4)]
    dialog = show(*entries)
    asked: list[str] = []

    def recover(each: Unfinished) -> None:
        asked.append(each.name)
        dialog.take(each)

    dialog.recover_asked.connect(recover)
    dialog.all.click()
    assert asked == ["n0", "n1", "n2", "n3"]
    assert dialog.list.topLevelItemCount() == 0
    assert not dialog.isVisible()


@pytest.mark.parametrize("way", ["later", "close", "escape"])
def test_however_the_dialog_is_closed_it_says_once_that_it_ended(show, way: str) -> None:
    dialog = show(left("one", None), left("two", None))
    ended: list[int] = []
    dialog.finished.connect(ended.append)
    if way == "later":
        dialog.later.click()
    elif way == "close":
        dialog.close()
    else:
        QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert ended == [0]
    assert not dialog.isVisible()


def test_buttons_follow_the_row(show, tmp_path: Path) -> None:
    entries = (
        left("one", tmp_path / "one.xml", disk="changed", findings=FOUND[:1]),
        left("lost", tmp_path / "lost.xml", graph=None, findings=FOUND),
        left("gone", tmp_path / "gone.xml", disk="gone"),
        left("new", None),
    )
    dialog = show(*entries)
    why = "Nothing of this document could be recovered"
    changed = "The file was changed after it was opened. Compare before you overwrite it."
    damaged = [f"Record {number} is damaged. Compare it." for number in (1, 2)]
    expected = (
        (True, "", f"{damaged[0]}\n{changed}"),
        (False, why, "\n".join(damaged)),
        (True, "", ""),
        (True, "", ""),
    )
    for step in (0, 1, 2, 3, 1, 0):
        dialog.list.setCurrentItem(dialog.list.topLevelItem(step))
        usable, tip, note = expected[step]
        assert [button.isEnabled() for button in (dialog.recover, dialog.compare, dialog.discard)] == [
            usable, usable, True,
        ]  # fmt: skip
        assert (dialog.recover.toolTip(), dialog.compare.toolTip()) == (tip, tip)
        assert (dialog.note.text(), dialog.note.isVisible()) == (note, bool(note))
        assert dialog.current() is entries[step]
        assert dialog.all.isVisible()
    for number in (0, 2, 3):
        dialog.take(entries[number])
    assert dialog.current() is entries[1]
    assert not dialog.all.isVisible()
    assert not dialog.recover.isEnabled()
    dialog.close()


def test_a_double_click_and_return_recover_the_row_once(show, qtbot: QtBot) -> None:
    entries = [left("one", None), left("two", None)]
    dialog = show(*entries)
    asked: list[str] = []
    dialog.recover_asked.connect(lambda each: asked.append(each.name))
    place = dialog.list.visualItemRect(dialog.list.topLevelItem(1)).center()
    QTest.mouseClick(dialog.list.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert asked == []
    QTest.mouseDClick(dialog.list.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert asked == ["two"]
    dialog.activateWindow()
    dialog.list.setFocus()
    QTest.keyClick(dialog.list, Qt.Key.Key_Up)
    QTest.keyClick(dialog.list, Qt.Key.Key_Return)
    assert asked == ["two", "one"]
    dialog.close()


SETTINGS = {"threads": 3, "engine": "onnxruntime"}


@pytest.mark.parametrize(
    ("changes", "sentence", "lines"),
    [
        ({}, "Unsaved changes relative to the file on disk: layers: 1 changed.", ["features: 4 → 8"]),
        (
            {"settings": SETTINGS},
            "Unsaved changes relative to the file on disk: layers: 1 changed; 2 settings.",
            ["features: 4 → 8", "Settings: engine → onnxruntime", "Settings: threads → 3"],
        ),
        (
            {"settings": {"threads": 3}, "graph": network()},
            "Unsaved changes relative to the file on disk: 1 setting.",
            ["Settings: threads → 3"],
        ),
        ({"graph": network()}, "Unsaved changes relative to the file on disk: {none}.", ["No differences."]),
        (
            {"on_disk": None, "disk": "gone"},
            "There is no file to compare with. In the unsaved network: layers: 2 added.",
            ["conv", "in"],
        ),
    ],
)
def test_what_is_compared_with_the_file(
    show, tmp_path: Path, changes: dict[str, object], sentence: str, lines: list[str]
) -> None:
    entry = left("net", tmp_path / "net.xml", **changes)
    dialog = show(entry)
    dialog.compare.click()
    (found,) = dialog.findChildren(DifferencesDialog)
    view = found.findChild(QPlainTextEdit)
    assert found.windowTitle() == f"Differences of {entry.title}"
    summary = found.findChild(QLabel, "recover_differences.summary").text()
    assert summary == sentence.replace("{none}", NetworkComparison().summary())
    text = view.toPlainText()
    places = [text.index(line) for line in lines]
    assert places == sorted(places)
    assert text.count("Settings:") == len([line for line in lines if line.startswith("Settings:")])
    assert view.isReadOnly()
    QApplication.clipboard().setText("before")
    found.findChild(QPushButton, "recover_differences.copy").click()
    assert QApplication.clipboard().text() == text
    found.close()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    dialog.close()
