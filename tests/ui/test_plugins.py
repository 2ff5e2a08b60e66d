"""Plugins in the window: a new operator is in the palette and the editor, a broken one among the problems."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import re
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractItemView, QAbstractSpinBox, QLineEdit, QTreeWidget
from window_kit import open_window

from designer.operators.registry import load

ROOT = Path(__file__).parents[2]


def walk_through() -> str:
    """The operator of CONTRIBUTING.md, word for word."""
    section = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Add an operator")[2]
    match = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert match is not None
    return match[1]


@pytest.fixture
def window(qtbot, tmp_path):
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "leaky_scale.py").write_text(walk_through())
    (folder / "broken.py").write_text("import no_such_package_at_all")
    window = open_window(qtbot, tmp_path, load([folder], entry_points=False))
    window.files.new()
    return window


def test_walk_through_is_found_in_the_palette(qtbot, window) -> None:
    search = window.findChild(QLineEdit, "palette.search")
    qtbot.mouseClick(search, Qt.MouseButton.LeftButton)
    qtbot.keyClicks(search, "leaky scale")
    tree = window.findChild(QTreeWidget, "palette.operators")
    assert tree.topLevelItem(0).text(0) == "Leaky scale"
    qtbot.keyClick(search, Qt.Key.Key_Return)
    graph = window.context.document.graph
    (added,) = [layer for layer in graph if layer.type == "leaky_scale"]
    window.context.select((added.name,))
    field = window.findChild(QAbstractSpinBox, "parameters.factor").lineEdit()
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, "0.25")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert graph[added.name].params["factor"] == "0.25"


def test_broken_plugin_is_among_the_problems(window) -> None:
    assert window.context.document.diagnostics()[0].code == "broken-plugin"
    window.docks.show("type_checking")
    shown = [
        view.model().index(row, column, view.rootIndex()).data() or ""
        for view in window.findChildren(QAbstractItemView)
        if view.objectName().startswith("type_checking") and view.model() is not None
        for row in range(view.model().rowCount(view.rootIndex()))
        for column in range(view.model().columnCount(view.rootIndex()))
    ]
    assert any("broken.py" in str(text) for text in shown)
