"""Instances of templates on the real window: ports, summary, the Layer Editor, and a copy into another document."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from html import unescape

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox
from window_kit import show

import samples
from designer.files.document import read_document
from designer.graph import commands, template_commands
from designer.graph.graph import Graph
from designer.graph.model import Layer


@pytest.fixture
def window(empty_window):
    return show(empty_window, read_document(samples.path("residual_blocks.xml")).graph)


def look(window, name):
    return window.canvas.projection[name].look


def test_an_instance_shows_its_template_its_ports_and_its_shape(window):
    shown = look(window, "group_1")
    assert (shown.title, shown.summary, shown.problem) == ("Template", "residual_group ×2", "")
    assert [port.name for port in shown.inputs] == ["features"]
    assert [port.name for port in shown.outputs] == ["result"]
    assert shown.shapes == ("32 x 256 x 256",)


def test_the_canvas_follows_the_ports_of_a_template_and_undo(window):
    document = window.context.document
    inside = document.graph.inside("residual_group")
    port = Layer("second", "template_output", inputs=inside["result"].inputs, params={"index": "1"})
    document.do(lambda g: template_commands.edit_template(g, "residual_group", commands.add_layer(inside, port)))
    for name in ("group_1", "group_2"):
        assert [p.name for p in look(window, name).outputs] == ["result", "second"]
    document.undo()
    assert [p.name for p in look(window, "group_1").outputs] == ["result"]


def test_a_fault_inside_marks_the_instances(window):
    document = window.context.document
    inside = document.graph.inside("residual_block")
    edit = commands.set_params(inside, {"conv_2": {"features": "8"}})
    document.do(lambda g: template_commands.edit_template(g, "residual_block", edit))
    assert look(window, "group_1").problem == "error"
    assert look(window, "group_2").problem == "unknown"
    assert "in the template 'residual_block', layer 'add'" in unescape(look(window, "group_1").tip)


def test_the_layer_editor_offers_the_documents_templates(qtbot, window):
    window.context.select(("group_1",))
    box = window.findChild(QComboBox, "parameters.template")
    assert [box.itemText(i) for i in range(box.count())] == ["", "residual_block", "residual_group"]
    assert box.currentText() == "residual_group"
    box.setFocus()
    QTest.keyClick(box, Qt.Key.Key_Up)
    assert window.context.document.graph["group_1"].params["template"] == "residual_block"
    assert look(window, "group_1").summary == "residual_block ×3"
    window.context.document.undo()
    assert box.currentText() == "residual_group"


def test_templates_that_come_later_are_offered_too(qtbot, window):
    window.context.select(("group_1",))
    document = window.context.document
    document.do(lambda g: template_commands.rename_template(g, "residual_block", "block"))

    def offered():
        box = window.findChild(QComboBox, "parameters.template")
        return [box.itemText(i) for i in range(box.count())]

    qtbot.waitUntil(lambda: offered() == ["", "block", "residual_group"])
    plain = [layer.name for layer in document.graph if layer.type == "convolution"][-1]
    document.do(lambda g: template_commands.make_template(g, [plain], "another"))  # the instance itself stays as it is
    qtbot.waitUntil(lambda: offered() == ["", "another", "block", "residual_group"])
    document.undo()
    qtbot.waitUntil(lambda: offered() == ["", "block", "residual_group"])


def test_a_copied_instance_brings_its_templates_into_another_document(window):
    window.context.select(("group_1",))
    window.canvas.copy_selection()
    show(window, Graph())
    window.canvas.paste()
    graph = window.context.document.graph
    assert set(graph.templates) == {"residual_block", "residual_group"}
    assert [layer.name for layer in graph] == ["group_1"]
