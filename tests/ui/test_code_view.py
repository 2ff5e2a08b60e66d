"""The Code View shows the generated source of the network or the selection and follows edits."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import Qt
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QApplication, QCheckBox, QLabel, QPlainTextEdit, QToolButton
from window_kit import empty

import samples
from app.ui.design.code_view import CodeViewPanel
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.widgets import theme
from app.ui.widgets.highlighter import PythonHighlighter
from designer.files.document import read_document
from designer.graph.commands import add_layer, remove_layers, set_params
from designer.graph.diagnostics import Diagnostic
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template_commands import make_template
from designer.operators.registry import default_registry
from exporters.pytorch import generate_source


def small_graph() -> Graph:
    return Graph(
        [
            Layer("input_0", "input", params={"dims": "32x32x3"}),
            Layer("conv_0", "convolution", inputs=(Source("input_0"),), params={"features": "8"}),
            Layer("conv_1", "convolution", inputs=(Source("conv_0"),), params={"features": "3"}),
            Layer("output_0", "output", inputs=(Source("conv_1"),)),
        ],
        name="tiny",
    )


@pytest.fixture
def context(qapp):
    context = Context(default_registry())
    context.set_document(Document(small_graph(), context.registry))
    return context


@pytest.fixture
def panel(qtbot, context):
    panel = CodeViewPanel(context)
    qtbot.addWidget(panel)
    panel.resize(700, 400)
    panel.show()
    qtbot.waitExposed(panel)
    qtbot.waitUntil(lambda: "class Tiny" in panel.source(), timeout=20_000)
    return panel


def test_the_source_is_python_and_read_only(panel):
    compile(panel.source(), "model.py", "exec")
    text = panel.findChild(QPlainTextEdit, "code_view.source")
    assert text.isReadOnly()
    assert panel.findChild(QLabel, "code_view.scope").text() == "Whole network"


def test_it_follows_edits_and_the_selection(qtbot, panel, context):
    context.document.do(lambda g: set_params(g, {"conv_0": {"features": "24"}}))
    qtbot.waitUntil(lambda: "24" in panel.source())
    context.select(("conv_1",))
    qtbot.waitUntil(lambda: "conv_1" in panel.source() and "self.conv_0" not in panel.source())
    assert panel.findChild(QLabel, "code_view.scope").text() == "conv_1"
    box = panel.findChild(QCheckBox, "code_view.only_selection")
    qtbot.keyClick(box, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: "self.conv_0" in panel.source())


def test_the_place_in_the_code_stays_while_it_changes(qtbot, panel, context):
    panel.resize(160, 160)
    text = panel.findChild(QPlainTextEdit, "code_view.source")
    bars = text.verticalScrollBar(), text.horizontalScrollBar()
    for bar in bars:
        bar.setValue(5)
    assert [bar.value() for bar in bars] == [5, 5]
    context.document.do(lambda g: set_params(g, {"conv_0": {"features": "24"}}))
    qtbot.waitUntil(lambda: "24" in panel.source())
    assert [bar.value() for bar in bars] == [5, 5]


def test_a_broken_network_keeps_the_old_text_dimmed_with_the_reason(qtbot, panel, context):
    old = panel.source()
    context.document.do(lambda g: set_params(g, {"conv_0": {"features": "no"}}))
    problem = panel.findChild(QLabel, "code_view.problem")
    qtbot.waitUntil(lambda: "conv_0" in problem.text())
    assert panel.source() == old
    assert not panel.findChild(QPlainTextEdit, "code_view.source").isEnabled()
    context.document.undo()
    qtbot.waitUntil(lambda: problem.text() == "")
    assert panel.findChild(QPlainTextEdit, "code_view.source").isEnabled()


def test_the_copy_button_copies_everything(qtbot, panel, context):
    with qtbot.waitSignal(context.message):
        qtbot.mouseClick(panel.findChild(QToolButton, "code_view.copy"), Qt.MouseButton.LeftButton)
    assert QApplication.clipboard().text() == panel.source()


def test_scroll_position_stays(qtbot, panel, context):
    panel.resize(300, 160)
    bar = panel.findChild(QPlainTextEdit, "code_view.source").verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 5)
    bar.setValue(5)
    context.document.do(lambda g: set_params(g, {"conv_0": {"features": "9"}}))
    qtbot.waitUntil(lambda: "9" in panel.source())
    assert bar.value() == 5


def test_empty_states(qtbot, context):
    panel = CodeViewPanel(Context(default_registry()))
    qtbot.addWidget(panel)
    assert empty(panel).text().startswith("Open or create")
    other = Context(default_registry())
    other.set_document(Document(Graph(), other.registry))
    panel = CodeViewPanel(other)
    qtbot.addWidget(panel)
    assert empty(panel).text().startswith("Add layers")


def test_old_code_does_not_come_back_after_the_network_was_empty_or_another_was_opened(qtbot, panel, context):
    """A network whose code cannot be generated shows the reason, not the code of what was there before."""
    old = panel.source()
    mystery = Layer("a", "mystery")
    text, copy = panel.findChild(QPlainTextEdit, "code_view.source"), panel.findChild(QToolButton, "code_view.copy")
    context.document.do(lambda g: remove_layers(g, list(g.layers)))
    assert (panel.source(), text.toPlainText(), copy.isEnabled()) == ("", "", False)
    assert empty(panel).text().startswith("Add layers")
    context.document.do(lambda g: add_layer(g, mystery))
    qtbot.waitUntil(lambda: empty(panel).text().startswith("No code generated."))
    assert panel.source() == ""
    context.document.undo()
    context.document.undo()
    qtbot.waitUntil(lambda: panel.source() == old)
    context.set_document(Document(Graph([mystery]), context.registry, parent=context))
    assert (panel.source(), text.toPlainText(), copy.isEnabled()) == ("", "", False)
    qtbot.waitUntil(lambda: empty(panel).text().startswith("No code generated."))
    assert panel.source() == ""


def test_words_strings_and_comments_are_coloured(qapp):
    document = QTextDocument('"""Two\nlines."""\nclass A:  # why\n    x = 12\n')
    highlighter = PythonHighlighter(document)
    highlighter.rehighlight()

    def role_at(line, column):
        for item in document.findBlockByNumber(line).layout().formats():
            if item.start <= column < item.start + item.length:
                return item.format.foreground().color()
        return None

    assert role_at(1, 0) == theme.color("string")
    assert role_at(2, 0) == theme.color("keyword")
    assert role_at(2, 11) == theme.color("comment")
    assert role_at(3, 8) == theme.color("number")
    assert role_at(3, 4) is None


def test_a_panel_that_goes_while_code_is_written_leaves_quietly(qtbot, context, monkeypatch):
    release = threading.Event()
    monkeypatch.setattr("exporters.pytorch.generate_source", lambda *_: str(release.wait()))
    panel = CodeViewPanel(context)
    qtbot.addWidget(panel)
    panel.show()
    (thread,) = (t for t in threading.enumerate() if t.name == "layerwright-background")
    context.document.do(lambda g: set_params(g, {"conv_0": {"features": "11"}}))
    with qtbot.waitSignal(panel.destroyed):
        panel.deleteLater()
    release.set()
    thread.join()
    QApplication.processEvents()  # its result arrives


def test_edits_while_code_is_written_are_not_lost(qtbot, panel, context):
    for features in range(40, 46):
        context.document.do(lambda g, f=features: set_params(g, {"conv_0": {"features": str(f)}}))
        panel.hide()
        panel.show()  # generates at once
    qtbot.waitUntil(lambda: "45" in panel.source())


def test_inside_of_a_template_its_class_is_shown(qtbot, panel, context):
    graph = read_document(samples.path("residual_blocks.xml")).graph
    context.set_document(Document(graph, context.registry, parent=context))
    qtbot.waitUntil(lambda: "class ResidualBlocks" in panel.source(), timeout=20_000)
    context.enter("residual_block")
    qtbot.waitUntil(lambda: panel.source().startswith("class ResidualBlock(nn.Module):"), timeout=20_000)
    assert panel.findChild(QLabel, "code_view.scope").text() == "Template residual_block"
    context.document.do(lambda g: set_params(g, {"conv_1": {"kernel": "5x5"}}))
    qtbot.waitUntil(lambda: "5" in panel.source() and "padding=2" in panel.source(), timeout=20_000)
    compile(panel.source(), "model.py", "exec")
    name = next(layer.name for layer in context.document.graph if layer.type == "convolution")
    context.document.do(lambda g: make_template(g, [name], "inmost"))
    assert context.enter(
        next(layer.name for layer in context.document.graph if layer.params.get("template") == "inmost")
    )
    qtbot.waitUntil(lambda: panel.source().startswith("class Inmost(nn.Module):"), timeout=20_000)
    assert panel.findChild(QLabel, "code_view.scope").text() == "Template inmost"
    context.set_scope(())
    qtbot.waitUntil(lambda: "class ResidualBlocks" in panel.source(), timeout=20_000)


def test_an_edit_whose_turn_comes_while_code_is_written_is_shown(qtbot, panel, context, monkeypatch):
    """The delayed update of the edit finds the panel busy; it must be made up for."""
    release, asked = threading.Event(), []
    write = generate_source

    def slow(graph, *args):
        asked.append(graph["conv_0"].params["features"])
        if len(asked) == 1:
            release.wait(30)
        return write(graph, *args)

    monkeypatch.setattr("exporters.pytorch.generate_source", slow)
    for features in ("57", "58"):
        context.document.do(lambda g, f=features: set_params(g, {"conv_0": {"features": f}}))
        assert panel._later.isActive()
        qtbot.waitUntil(lambda: not panel._later.isActive())
        qtbot.waitUntil(lambda: asked == ["57"])
    release.set()
    qtbot.waitUntil(lambda: "58" in panel.source())


@pytest.mark.parametrize("before", [True, False])
def test_a_failure_of_the_generator_is_said_and_the_text_before_stays(qtbot, panel, context, before):
    """An error that the generator does not report itself; the next edit writes the code again."""
    source = panel.source() if before else ""
    if not before:
        panel._text.clear()
    panel._busy = True
    memory = Diagnostic("no-memory", "the memory is full", remedy="close other programs")
    panel._on_failed((memory, Diagnostic("no-disk", "the disk is full")))
    message = "No code generated. The memory is full. Close other programs.; The disk is full."
    if before:
        assert (panel.source(), panel._problem.text(), panel._stack.currentWidget()) == (source, message, panel._text)
        assert panel.findChild(QLabel, "code_view.scope").text() == "Whole network"
    else:
        assert (panel._empty.text(), panel._stack.currentWidget()) == (message, panel._empty)
    assert not panel._copy.isEnabled()
    assert not panel._busy
    context.document.do(lambda g: set_params(g, {"conv_0": {"features": "24"}}))
    qtbot.waitUntil(lambda: "24" in panel.source(), timeout=20_000)
    assert (panel._problem.text(), panel._copy.isEnabled(), panel._text.isEnabled()) == ("", True, True)


def test_a_network_without_layers_has_no_code_until_it_has_some_again(qtbot, panel, context):
    """Also while the code of the layers that were there is being written."""
    names = list(context.document.graph.layers)
    for waits in (False, True):
        context.document.do(lambda g: set_params(g, {"conv_0": {"features": "24"}}))
        if waits:
            panel._later.stop()
            panel._generate()
        context.document.do(lambda g: remove_layers(g, names))
        assert panel.source() == ""
        assert not panel.findChild(QToolButton, "code_view.copy").isEnabled()
        qtbot.waitUntil(lambda: not panel._busy and not panel._later.isActive())
        assert panel.source() == ""
        context.document.undo()
        qtbot.waitUntil(lambda: "24" in panel.source())
        context.document.undo()
        qtbot.waitUntil(lambda: "24" not in panel.source())
