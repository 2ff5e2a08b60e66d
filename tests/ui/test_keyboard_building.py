"""A network is built and wired by the keyboard alone; the canvas has the focus whenever it should."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtGui import QCursor, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QLineEdit, QTreeWidget
from recorded_state import compare
from window_kit import open_window, show

import samples
from app.ui.canvas.connect_search import SHOWN, ConnectSearch
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template


@pytest.fixture
def window(qtbot, tmp_path):
    QCursor.setPos(0, 0)
    window = open_window(qtbot, tmp_path)
    window.activateWindow()
    return window


def keys(*names: str) -> None:
    """Shortcuts, pressed wherever the focus is."""
    for name in names:
        QApplication.processEvents()
        QTest.keySequence(QApplication.focusWidget(), name)
    QApplication.processEvents()


def type_and_choose(window, popup: str, text: str) -> None:
    line = window.findChild(QLineEdit, f"{popup}.text")
    assert line.isVisible()
    QTest.keyClicks(line, text)
    QTest.keyClick(line, Qt.Key.Key_Return)
    QApplication.processEvents()


def add(window, text: str) -> None:
    keys("Space")
    type_and_choose(window, "quick_add", text)


def test_space_works_at_once_on_a_new_document(window):
    QTest.keySequence(window, "Ctrl+N")
    QApplication.processEvents()
    assert window.canvas.viewer.hasFocus()
    add(window, "identity")
    assert "identity_0" in window.context.document.graph
    window.findChild(QLineEdit, "parameters.name").setFocus()
    keys("Ctrl+N")
    assert window.canvas.viewer.hasFocus()
    add(window, "identity")
    assert list(window.context.document.graph.layers) == ["identity_0"]


def test_every_layer_that_is_added_is_in_view(window):
    QTest.keySequence(window, "Ctrl+N")
    for operator in ("input", "conv", "relu", "conv", "output"):
        add(window, operator)
        (name,) = window.context.selection
        assert window.canvas.viewer.seen().contains(window.canvas.projection.entry(name).area()), name


def test_a_residual_block_is_built_and_wired_by_keys_alone(window):
    show(window, Graph())
    for name in ("input", "convolution", "add", "output"):
        add(window, name)
    graph = window.context.document.graph
    assert list(graph.layers) == ["input_0", "convolution_0", "add_0", "output_0"]
    keys("Left", "Left", "Left")
    assert window.context.selection == ("input_0",)
    keys("W")
    type_and_choose(window, "connect", "add b")
    assert graph["add_0"].inputs == (Source("convolution_0"), Source("input_0"))
    assert window.canvas.viewer.hasFocus()
    keys("Ctrl+Z")
    keys("Right", "Right")
    assert window.context.selection == ("add_0",)
    keys("Shift+W")
    type_and_choose(window, "connect", "input > b")
    assert graph["add_0"].inputs == (Source("convolution_0"), Source("input_0"))
    assert graph["output_0"].inputs == (Source("add_0"),)


def test_a_layer_is_connected_in_place_of_an_operand_not_as_another_one(window):
    assert window.files.open(samples.path("dncnn.xml"))
    noise = Layer("noise", "noise", (160, -160), (Source("input_image"),))
    window.context.document.do(lambda g: commands.add_layer(g, noise))
    window.context.select(("noise",))
    keys("W")
    type_and_choose(window, "connect", "subtract_noise")
    subtract = window.context.document.graph["subtract_noise"]
    assert subtract.inputs == (Source("noise"), Source("conv_noise"))
    window.context.select(("noise",))
    keys("W")
    type_and_choose(window, "connect", "subtract_noise b 2")
    subtract = window.context.document.graph["subtract_noise"]
    assert subtract.inputs == (Source("noise"), Source("conv_noise"), Source("noise"))


@pytest.mark.parametrize(
    ("kind", "inputs", "names"),
    [
        ("element_wise", "", ["a", "b"]),
        ("element_wise", "i", ["a", "b"]),
        ("element_wise", "ii", ["a", "b", "b 2"]),
        ("element_wise", "iii", ["a", "b", "b 2", "b 3"]),
        ("concatenation", "ii", ["x", "x", "x"]),
    ],
)
def test_inputs_beyond_those_with_names_are_numbered(window, kind, inputs, names):
    show(window, Graph([Layer("i", "input"), Layer("all", kind, (320, 0), tuple(map(Source, inputs)))]))
    ports = window.canvas.projection["all"].look.inputs
    assert [port.name for port in ports] == names
    assert [port.extra for port in ports] == [name[-1].isdigit() for name in names]


def test_ports_that_take_nothing_of_it_cannot_be_chosen(window):
    layers = [
        Layer("in", "input", params={"dims": "16x16x3"}),
        Layer("flat", "flatten", (240, 0), (Source("in"),)),
        Layer("conv", "convolution", (480, 0)),
        Layer("cat", "concatenation", (480, 160), (Source("in"),)),
    ]
    show(window, Graph(layers))
    window.context.select(("flat",))
    keys("W")
    found = window.findChild(QTreeWidget, "connect.list")
    rows = {found.topLevelItem(i).text(0): found.topLevelItem(i) for i in range(found.topLevelItemCount())}
    assert rows["conv · x"].isDisabled()
    assert "rank 4" in rows["conv · x"].toolTip(0)
    assert not any(text.startswith("in ") for text in rows)  # that would create a loop
    assert found.topLevelItem(0).text(0).startswith("cat")
    line = window.findChild(QLineEdit, "connect.text")
    QTest.keyClick(line, Qt.Key.Key_Escape)


def test_what_the_search_for_links_offers_and_makes(window):
    """Layers with several outputs and inputs, free and taken ones: every row of both searches, and the link that it makes."""
    ports = (
        Layer("p", "template_input"),
        Layer("q", "template_output", (320, 0), (Source("p"),)),
        Layer("r", "template_output", (320, 160), (Source("p"),), {"index": "1"}),
    )
    layers = [
        Layer("in", "input", params={"dims": "16x16x3"}),
        Layer("slope", "image_gradient", (320, 0), (Source("in"),)),
        Layer("two", "template", (320, 320), (Source("in"),), {"template": "pair"}),
        Layer("sum", "element_wise", (640, 0), (Source("slope"), Source("two", "r"))),
        Layer("cat", "concatenation", (640, 320), (Source("slope", "dy"),)),
        Layer("flat", "flatten", (960, 0), (Source("sum"),)),
    ]
    show(window, Graph(layers, templates=[Template("pair", ports)]))
    document, canvas = window.context.document, window.canvas
    search = window.findChild(ConnectSearch)
    found = []
    for name in document.graph.layers:
        for action in ("edit.connect_to", "edit.connect_from"):
            window.context.select((name,))
            window.actions_[action].trigger()
            QApplication.processEvents()
            rows = window.findChild(QTreeWidget, "connect.list")
            for number in range(rows.topLevelItemCount()):
                row = rows.topLevelItem(number)
                key = row.data(0, Qt.ItemDataRole.UserRole)
                offer = search.offer(key)
                before = document.graph[offer.consumer].inputs
                refused = row.isDisabled()
                line = [f"{action} {name}: {row.text(0)}", row.text(1), row.toolTip(0)]
                if not refused:
                    search.chosen.emit(key)
                    now = document.graph[offer.consumer].inputs
                    line.append(f"{offer.consumer}({', '.join(map(str, before))}) -> ({', '.join(map(str, now))})")
                    canvas.projection.get(offer.consumer)
                    assert document.undo()
                found.append(" | ".join(line))
            search.hide()
    compare("connect_search", found)


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Escape])
def test_return_and_escape_in_a_field_give_the_keyboard_back(window, key):
    show(window, kit.small_graph())
    window.context.select(("conv",))
    QApplication.processEvents()
    dock = next(d for d in window.findChildren(QLineEdit) if d.objectName().startswith("parameters.name"))
    fields = [dock, *(f for f in window.findChildren(QAbstractSpinBox) if f.isVisible())]
    for field in fields[:3]:
        field.setFocus()
        QApplication.processEvents()
        QTest.keyClick(QApplication.focusWidget(), key)
        QApplication.processEvents()
        assert window.canvas.viewer.hasFocus(), field.objectName()


def test_the_search_for_links_finds_every_layer_of_a_large_network_and_lists_the_nearest_first(window):
    layers = [Layer("in", "input", params={"dims": "16x16x3"})]
    layers += [Layer(f"l{n}", "identity", (320 * (n + 1), 0)) for n in range(90)]
    show(window, Graph(layers))
    window.context.select(("in",))
    keys("W")
    rows = window.findChild(QTreeWidget, "connect.list")

    def found() -> list[str]:
        return [rows.topLevelItem(number).text(0) for number in range(rows.topLevelItemCount())]

    assert found() == [f"l{n} · x" for n in range(SHOWN)]
    line = window.findChild(QLineEdit, "connect.text")
    for text, wanted in (("l8", [8, *range(80, 90)]), ("L75 x", [75])):
        line.setText(text)
        assert found() == [f"l{n} · x" for n in wanted], text
    line.setText("l89")
    QTest.keyClick(line, Qt.Key.Key_Return)
    graph = window.context.document.graph
    assert [name for name in graph.layers if graph[name].inputs] == ["l89"]
    assert graph["l89"].inputs == (Source("in"),)
