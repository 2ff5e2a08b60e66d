"""Templates on the canvas by mouse and keys: made, entered, edited, left, dissolved, added again; the way above the canvas."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import canvas_kit as kit
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMenu, QToolButton, QTreeWidget
from window_kit import press, show

import samples
from app.ui.document.template_view import ScopeStep
from designer.files.document import parse_document, read_document, write_document
from designer.graph import commands, template_commands
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import Template


@pytest.fixture
def window(shared_window):
    return show(shared_window, read_document(samples.path("residual_blocks.xml")).graph)


def graph_of(window) -> Graph:
    return window.context.document.graph


def name_it(window, name: str) -> None:
    line = window.findChild(QLineEdit, "template_name.name")
    line.selectAll()
    QTest.keyClicks(line, name)
    QTest.keyClick(line, Qt.Key.Key_Return)
    QApplication.processEvents()


def crumbs(window) -> list[str]:
    QApplication.processEvents()
    bar = window.structure.breadcrumb
    return [b.text() for b in bar.findChildren(QToolButton) if not b.isHidden()]


def search(window, text: str) -> QTreeWidget:
    edit = window.findChild(QLineEdit, "quick_add.text")
    QTest.keyClicks(edit, text)
    return window.findChild(QTreeWidget, "quick_add.list")


def test_of_instances_of_two_templates_neither_is_meant(window):
    window.context.document.do(lambda g: template_commands.make_template(g, ["conv_head"], "other"))
    for names, meant in ((("group_1", "group_2"), "residual_group"), (("group_1", "other_0"), "")):
        window.context.select(names)
        assert [layer.name for layer in window.structure.instances()] == list(names)
        assert window.structure.template() == meant


def test_enter_goes_in_and_backspace_out(window):
    window.context.select(("group_2",))
    press(window, "Return")
    assert window.context.scope == (ScopeStep("group_2", "residual_group"),)
    assert crumbs(window) == [window.context.root.graph.name, "group_2 (residual_group)"]
    assert set(window.canvas.projection.layers) == set(graph_of(window).layers)
    press(window, "Backspace")
    assert window.context.scope == ()
    assert window.context.selection == ("group_2",)
    press(window, "Backspace")
    assert "group_2" in graph_of(window)  # nothing destructive


def test_double_click_enters_an_instance_and_inspects_another_layer(qtbot, window):
    view = window.canvas.viewer.viewport()
    window.canvas.reveal("group_1")
    QTest.mouseDClick(view, kit.LEFT, pos=kit.node(window.canvas, "group_1"))
    assert window.context.scope == (ScopeStep("group_1", "residual_group"),)
    window.context.enter("block_1")
    window.canvas.reveal("conv_1")
    with qtbot.waitSignal(window.context.inspect_requested) as asked:
        QTest.mouseDClick(view, kit.LEFT, pos=kit.node(window.canvas, "conv_1"))
    assert asked.args == ["group_1.block_1.conv_1"]
    assert window.canvas.projection["conv_1"].look.inspected
    press(window, "Backspace", "Backspace")
    assert window.context.scope == ()
    window.context.enter("group_1")
    window.context.enter("block_1")
    assert window.canvas.projection["conv_1"].look.inspected  # still the one that the inspector shows


def test_the_way_above_the_canvas_leads_back_by_mouse_and_keys(window):
    bar = window.structure.breadcrumb
    assert not bar.isVisible()
    window.context.enter("group_1")
    window.context.enter("block_2")
    assert bar.isVisible()
    assert crumbs(window)[1:] == ["group_1 (residual_group)", "block_2 (residual_block)"]
    assert bar.findChild(QToolButton, "breadcrumb.2").accessibleName() == (
        "block_2 (residual_block), an instance of residual_block, current level"
    )
    middle = bar.findChild(QToolButton, "breadcrumb.1")
    middle.setFocus()
    QTest.keyClick(middle, Qt.Key.Key_Space)
    QApplication.processEvents()
    assert window.context.scope == (ScopeStep("group_1", "residual_group"),)
    QTest.mouseClick(bar.findChild(QToolButton, "breadcrumb.0"), kit.LEFT)
    assert window.context.scope == ()


def test_ctrl_g_makes_a_template_and_ctrl_shift_g_dissolves_it(window):
    show(window, kit.small_graph())
    before = graph_of(window).copy()
    window.context.select(("conv",))
    press(window, "Ctrl+G")
    line = window.findChild(QLineEdit, "template_name.name")
    line.selectAll()
    QTest.keyClicks(line, "a,b")
    dialog = line.window()
    assert "comma" in dialog.message.text()
    assert not dialog.ok.isEnabled()
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert dialog.isVisible()
    name_it(window, "stem")
    graph = graph_of(window)
    assert list(graph.templates) == ["stem"]
    assert window.context.selection == ("stem_0",)
    assert graph["stem_0"].params == {"template": "stem"}
    assert [d.layer for d in window.context.root.diagnostics() if d.severity == "error"] == ["free"]
    assert write_document(parse_document(write_document(graph)).graph) == write_document(graph)
    press(window, "Ctrl+Shift+G")
    assert window.context.selection == ("stem_0.conv",)
    press(window, "Ctrl+Z", "Ctrl+Z")
    assert graph_of(window) == before


def test_all_that_dissolving_leaves_is_selected(window):
    """Also the layer that keeps the activation of the instance."""
    show(window, kit.small_graph())
    window.context.select(("conv",))
    press(window, "Ctrl+G")
    name_it(window, "stem")
    window.context.document.do(lambda g: commands.set_activation(g, ["stem_0"], ActivationSpec("tanh")))
    press(window, "Ctrl+Shift+G")
    graph = graph_of(window)
    assert graph["stem_0"].activation == ActivationSpec("tanh")
    assert sorted(window.context.selection) == ["stem_0", "stem_0.conv"]
    assert sorted(window.canvas.viewer.selected_names()) == ["stem_0", "stem_0.conv"]


def test_what_belongs_to_the_whole_network_is_refused(qtbot, window):
    show(window, kit.small_graph())
    inputs = [layer.name for layer in graph_of(window) if layer.type == "input"]
    window.context.select((inputs[0],))
    with qtbot.waitSignal(window.context.document.refused):
        press(window, "Ctrl+G")
    assert window.findChild(QLineEdit, "template_name.name") is None


def test_an_edit_inside_changes_all_instances(window):
    window.context.select(("group_1",))
    press(window, "Return")
    window.context.enter("block_1")
    window.context.select(("conv_1",))
    press(window, "Ctrl+D")
    copy = window.context.selection[0]
    assert copy in window.context.root.graph.inside("residual_block")
    press(window, "Del")
    assert copy not in window.context.root.graph.inside("residual_block")
    press(window, "Ctrl+Z", "Ctrl+Z")
    assert window.context.root.history.is_clean


def test_undo_goes_where_the_change_is_seen(window):
    context = window.context
    context.select(("group_1",))
    press(window, "Alt+Right")
    context.enter("group_1")
    press(window, "Ctrl+Z")
    assert context.scope == ()
    context.enter("residual_block")
    context.select(("conv_1",))
    press(window, "Alt+Right", "Ctrl+Z")
    assert context.scope == (ScopeStep("", "residual_block"),)


def test_undoing_the_template_itself_leaves_it(window):
    show(window, kit.small_graph())
    window.context.select(("conv",))
    press(window, "Ctrl+G")
    name_it(window, "stem")
    press(window, "Return")
    assert window.context.scope
    press(window, "Ctrl+Z")
    assert window.context.scope == ()
    assert "conv" in graph_of(window)


def test_search_offers_the_templates_and_says_why_one_cannot_stand_here(window):
    press(window, "Tab")
    tree = search(window, "residual_b")
    assert next(tree.topLevelItem(i).text(0) for i in range(tree.topLevelItemCount())) == "residual_block"
    QTest.keyClick(window.findChild(QLineEdit, "quick_add.text"), Qt.Key.Key_Return)
    made = graph_of(window)[window.context.selection[0]]
    assert made.params["template"] == "residual_block"
    window.context.enter("residual_block")
    press(window, "Tab")
    tree = search(window, "residual_b")
    assert tree.topLevelItem(0).isDisabled()
    assert "would use itself" in tree.topLevelItem(0).toolTip(0)
    QTest.keyClick(window.findChild(QLineEdit, "quick_add.text"), Qt.Key.Key_Escape)


def test_ports_are_added_renamed_and_reordered_inside(window):
    window.context.enter("group_1")
    press(window, "Tab")
    search(window, "template input")
    QTest.keyClick(window.findChild(QLineEdit, "quick_add.text"), Qt.Key.Key_Return)
    port = window.context.selection[0]
    assert graph_of(window)[port].params["index"] == "1"

    def names():
        return [p.name for p in window.canvas.projection["group_1"].look.inputs]

    def outside():
        scope = window.context.scope
        window.context.set_scope(())
        found = names()
        window.context.set_scope(scope)
        window.context.select((port,))
        return found

    assert outside() == ["features", port]
    press(window, "Ctrl+Up")
    assert outside() == [port, "features"]
    source = window.context.root.graph["group_1"].inputs
    assert source[0] is None
    assert source[1] is not None
    press(window, "Ctrl+Down", "F2")
    kit.write(window, "second")
    port = "second"
    assert outside() == ["features", "second"]
    assert window.context.selection == ("second",)


def test_links_follow_the_outputs_of_an_instance_whose_order_changes(window):
    ports = [Layer("x", "template_input")]
    ports += [
        Layer(name, "template_output", (320, 160 * n), (Source("x"),), {"index": str(n)})
        for n, name in enumerate("abc")
    ]
    layers = [Layer("in", "input"), Layer("one", "template", (320, 0), (Source("in"),), {"template": "three"})]
    layers += [
        Layer(f"reads_{port or 'a'}", "identity", (640, 160 * n), (Source("one", port),))
        for n, port in enumerate(("", "b", "c"))
    ]
    show(window, Graph(layers, templates=[Template("three", tuple(ports))]))
    window.canvas.context = window.context
    document = window.context.root
    for name, step in (("b", 1), ("a", 1), ("c", -1), ("b", -1)):
        document.do(lambda g, name=name, step=step: template_commands.edit_template(
            g, "three", template_commands.move_port(g.inside("three"), name, step)
        ))  # fmt: skip
        kit.check(window.canvas, document)
        for port in "abc":
            link = window.canvas.projection.link(f"reads_{port}", 0)
            assert link.source.look.name == port
    while document.undo():
        kit.check(window.canvas, document)


def test_copies_go_from_scope_to_scope(window):
    window.context.enter("residual_block")
    window.context.select(("conv_1",))
    press(window, "Ctrl+C", "Backspace", "Ctrl+V")
    assert window.context.scope == ()
    assert graph_of(window)[window.context.selection[0]].type == "convolution"
    window.context.select(("group_1",))
    press(window, "Ctrl+C")
    window.context.enter("residual_block")
    before = window.context.root.graph.templates["residual_block"]
    press(window, "Ctrl+V")  # would use itself: refused, nothing changes
    assert window.context.root.graph.templates["residual_block"] == before


def test_bypass_and_frames_work_inside(window):
    window.context.enter("group_1")
    window.context.enter("block_1")
    window.context.select(("conv_1",))
    press(window, "M")
    assert graph_of(window)["conv_1"].bypassed
    press(window, "Ctrl+Z")
    window.context.select(("conv_1", "conv_2"))
    press(window, "C")
    kit.write(window, "pair")
    template = window.context.root.graph.templates["residual_block"]
    assert [frame.title for frame in template.frames] == ["pair"]
    found = parse_document(write_document(window.context.root.graph)).graph
    assert found.templates["residual_block"].frames == template.frames


def test_the_view_comes_back_where_it_was(window):
    viewer = window.canvas.viewer
    viewer.zoom_by(0.5 / viewer.zoom)
    viewer.go(QPointF(200, 100))
    window.context.enter("group_1")
    viewer.zoom_by(1.7)
    window.context.leave()
    assert viewer.zoom == pytest.approx(0.5)
    assert (viewer.visible_center() - QPointF(200, 100)).manhattanLength() < 8


def test_disabled_actions_say_why(window):
    window.context.select(())
    QApplication.processEvents()
    for name, reason in (
        ("template.enter", "select one instance of a template"),
        ("template.leave", "no template is open"),
        ("template.dissolve", "no instance of a template is selected"),
        ("template.port_up", "no template is open"),
    ):
        action = window.actions_[name]
        assert not action.isEnabled()
        assert reason in action.toolTip()


def test_f8_goes_into_the_template_where_the_fault_is_and_on_from_there(window):
    root = window.context.root
    window.context.enter("residual_block")
    window.context.document.do(
        lambda g: commands.set_params(g, {"conv_2": {"features": "8"}})  # add cannot add that
    )
    window.context.set_scope(())
    press(window, "F8")
    assert window.context.path_of(window.context.selection[0]) == "group_1.block_1.add"
    assert {d.layer for d in root.diagnostics() if d.layer is not None} == {"group_1"}
    press(window, "F8")  # round and round
    assert window.context.path_of(window.context.selection[0]) == "group_1.block_1.add"


def test_type_checking_goes_into_the_template(window):
    window.context.enter("residual_block")
    window.context.document.do(lambda g: commands.set_params(g, {"conv_2": {"features": "8"}}))
    window.context.set_scope(())
    finding = next(d for d in window.context.root.diagnostics() if d.inner)
    assert window.context.show_finding(finding)
    assert window.context.path_of(window.context.selection[0]) == "group_1.block_1.add"
    window.context.root.do(lambda g: commands.remove_layers(g, ["group_1", "group_2"]))
    assert window.context.scope == ()
    edit = commands.set_params(window.context.root.graph.inside("residual_block"), {"conv_1": {"kernel": "wide"}})
    window.context.root.do(lambda g: template_commands.edit_template(g, "residual_block", edit))
    finding = next(d for d in window.context.root.diagnostics() if d.template == "residual_block" and not d.layer)
    assert window.context.show_finding(finding)
    assert window.context.scope == (ScopeStep("", "residual_block"),)
    assert window.context.selection == ("conv_1",)


def test_instances_tell_how_many_share_their_template(window):
    def summary(name):
        return window.canvas.projection[name].look.summary

    assert summary("group_1") == "residual_group ×2"
    window.context.select(("group_1",))
    press(window, "Ctrl+D")
    copy = window.context.selection[0]
    assert summary("group_2") == "residual_group ×3"
    window.context.select(("group_1", "group_2"))
    press(window, "Del")
    assert summary(copy) == "residual_group"
    press(window, "Ctrl+Z")
    assert summary("group_1") == "residual_group ×3"


def test_h_collapses_a_node_to_its_title_and_opens_it_again(window):
    item = window.canvas.projection["conv_head"]
    tall = item.box().height()
    window.context.select(("conv_head",))
    press(window, "H")
    item = window.canvas.projection["conv_head"]
    assert item.look.collapsed
    assert item.box().height() < tall / 1.5
    assert item.outputs[0].center().y() == pytest.approx(item.box().center().y())
    link = window.canvas.projection.link("group_1", 0)
    assert link.path().pointAtPercent(0) == item.outputs[0].center()
    assert link.label == "32 x 256 x 256"
    found = parse_document(write_document(window.context.root.graph)).graph
    assert found["conv_head"].collapsed
    press(window, "Ctrl+Z")
    assert window.canvas.projection["conv_head"].box().height() == tall
    window.context.enter("residual_block")
    window.context.select(("conv_1", "conv_2"))
    press(window, "H")
    assert graph_of(window)["conv_1"].collapsed
    press(window, "H")
    assert not graph_of(window)["conv_1"].collapsed


def test_an_instance_of_another_document_brings_its_templates_into_a_template(window):
    window.context.select(("group_1",))
    press(window, "Ctrl+C")
    show(window, kit.small_graph())
    window.context.select(("conv",))
    press(window, "Ctrl+G")
    name_it(window, "stem")
    press(window, "Return", "Ctrl+V")
    assert window.context.scope == (ScopeStep("stem_0", "stem"),)
    root = window.context.root
    assert set(root.graph.templates) == {"stem", "residual_group", "residual_block"}
    assert "group_1" in root.graph.inside("stem")
    assert root.history.undo_title == "Paste layer in stem"
    press(window, "Ctrl+Z")
    assert set(root.graph.templates) == {"stem"}


def test_the_palette_adds_an_instance_beside_what_is_selected(window):
    window.context.select(("group_2",))
    window.context.add_requested.emit("template:residual_block")
    made = graph_of(window)[window.context.selection[0]]
    assert made.params == {"template": "residual_block"}
    assert made.inputs[0].layer == "group_2"


def test_find_looks_into_the_templates(window):
    press(window, "Ctrl+F")
    edit = window.findChild(QLineEdit, "find.text")
    QTest.keyClicks(edit, "conv_2")
    tree = window.findChild(QTreeWidget, "find.list")
    assert [(tree.topLevelItem(0).text(0), tree.topLevelItem(0).text(1))] == [("conv_2", "in residual_block")]
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert window.context.scope == (ScopeStep("group_1", "residual_group"), ScopeStep("block_1", "residual_block"))
    assert window.context.selection == ("conv_2",)
    assert window.context.way_to("nowhere") == (ScopeStep("", "nowhere"),)


def test_find_in_a_template_begins_with_its_layers(window):
    window.context.enter("group_1")
    window.context.enter("block_1")
    press(window, "Ctrl+F")
    edit = window.findChild(QLineEdit, "find.text")
    QTest.keyClicks(edit, "convolution")
    tree = window.findChild(QTreeWidget, "find.list")
    rows = [(tree.topLevelItem(i).text(0), tree.topLevelItem(i).text(1)) for i in range(tree.topLevelItemCount())]
    assert [name for name, where in rows if not where.startswith("in ")] == ["conv_1", "conv_2"]
    assert rows[:2] == [row for row in rows if not row[1].startswith("in ")]
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert window.context.scope[-1].template == "residual_block"
    assert window.context.selection == ("conv_1",)
    press(window, "F3")
    assert window.context.selection == ("conv_2",)
    press(window, "F3")
    assert window.context.selection == ("conv_1",)
    press(window, "Shift+F3")
    assert window.context.selection == ("conv_2",)


def test_a_template_is_renamed_where_it_is_shown(window):
    window.context.enter("group_1")
    QApplication.processEvents()
    window.actions_["template.rename"].trigger()
    line = window.findChild(QLineEdit, "template_name.name")
    assert line.text() == "residual_group"
    line.selectAll()
    QTest.keyClicks(line, "residual_block")
    assert "'residual_block' already exists" in line.window().message.text()
    name_it(window, "group")
    assert window.context.scope == (ScopeStep("group_1", "group"),)
    assert {layer.params["template"] for layer in window.context.root.graph if layer.type == "template"} == {"group"}
    press(window, "Ctrl+Z")
    assert window.context.scope == (ScopeStep("group_1", "residual_group"),)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 instances are updated. Shared weights are stored under this name."),
        (1, "Its instance is updated. Shared weights are stored under this name."),
        (3, "3 instances are updated. Shared weights are stored under this name."),
    ],
)
def test_the_question_for_a_name_counts_the_instances(window, count, text):
    part = (Layer("x", "template_input"), Layer("y", "template_output", (320, 0), (Source("x"),)))
    layers = [Layer(f"p{n}", "template", (320 * n, 0), (), {"template": "part"}) for n in range(count)]
    show(window, Graph([Layer("in", "input"), *layers], templates=[Template("part", part)]))
    window.context.enter("p0") if count else window.context.set_scope((ScopeStep("", "part"),))
    window.structure.ask_name()
    line = window.findChild(QLineEdit, "template_name.name")
    dialog = line.window()
    assert (line.text(), line.selectedText(), dialog.ok.text()) == ("part", "part", "Rename")
    assert dialog.windowTitle() == "Rename Template"
    assert text in [label.text() for label in dialog.findChildren(QLabel)]
    name_it(window, "other")
    assert list(window.context.root.graph.templates) == ["other"]
    assert window.context.scope[-1].template == "other"


def test_the_canvas_menu_has_what_can_be_done_with_templates(window):
    window.context.select(("group_1",))
    window.canvas.menu_requested.emit(window.canvas.mapToGlobal(window.canvas.rect().center()))
    menu = window.findChild(QMenu, "canvas.menu")
    entries = {action.objectName(): action.isEnabled() for action in menu.actions() if action.objectName()}
    assert entries["template.enter"]
    assert entries["template.dissolve"]
    assert not entries["template.leave"]
    menu.close()
