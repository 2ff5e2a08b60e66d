"""Templates on the canvas by mouse and keys: made, entered, edited, left, dissolved, added again; the way above the canvas."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from dataclasses import replace

import canvas_kit as kit
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMenu, QToolButton, QTreeWidget
from window_kit import press, settle, show

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
    window.context.enter("group_1")
    window.context.document.do(lambda g: template_commands.make_template(g, ["block_2"], "third"))
    for names, meant in (
        ((), "residual_group"),
        (("block_1",), "residual_block"),
        (("third_0",), "third"),
        (("block_1", "third_0"), ""),
    ):
        window.context.select(names)
        assert window.structure.template() == meant


def test_an_instance_of_a_template_that_does_not_exist_can_neither_be_entered_nor_dissolved_nor_renamed(window):
    """As after a merge by hand; a layer of another type with such a parameter is not an instance either."""
    odd = {
        "lost": Layer("lost", "template", (0, 400), (), {"template": "nowhere"}),
        "nameless": Layer("nameless", "template", (0, 600)),
        "no_instance": Layer("no_instance", "identity", (0, 800), (), {"template": "residual_group"}),
    }
    for layer in odd.values():
        window.context.document.do(lambda g, layer=layer: commands.add_layer(g, layer))
    about = ("template.enter", "template.dissolve", "template.rename")
    cases = [((name,), [], "") for name in odd]
    cases += [(("group_1", name), ["group_1"], "residual_group") for name in odd]
    for names, instances, template in cases:
        window.context.select(names)
        settle(window)
        assert [layer.name for layer in window.structure.instances()] == instances
        assert window.structure.template() == template
        enabled = [window.actions_[action].isEnabled() for action in about]
        assert enabled == [False, bool(instances), bool(template)], names
        before = graph_of(window).copy()
        if not instances:
            window.structure.enter()
            window.structure.dissolve()
            window.structure.ask_name()
        assert graph_of(window) == before
        assert window.context.scope == ()
        assert window.findChild(QLineEdit, "template_name.name") is None


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


def test_ports_can_be_moved_inside_of_a_template_where_exactly_one_is_selected(window):
    ports = [Layer(name, f"template_{kind}", (320 * (kind == "output"), 160 * n), (Source("b"),) if kind == "output" else (), {"index": str(n)})
             for kind, names in (("input", "abc"), ("output", "uvw")) for n, name in enumerate(names)]  # fmt: skip
    ports.append(Layer("middle", "identity", (160, 600), (Source("a"),)))
    layers = [
        Layer("in", "input"),
        Layer("out", "output", (320, 0)),
        Layer("one", "template", (160, 0), (), {"template": "t"}),
    ]
    show(window, Graph(layers, templates=[Template("t", tuple(ports))]))

    def enabled() -> list[bool]:
        settle(window)
        return [window.actions_[f"template.port_{way}"].isEnabled() for way in ("up", "down")]

    for name in ("in", "out", "one"):
        window.context.select((name,))
        assert (window.structure.ports(), enabled()) == ([], [False, False]), name
    window.context.enter("one")
    for names, found in (
        (("b",), ["b"]), (("v",), ["v"]), (("middle",), []), (("b", "middle"), ["b"]), (("a", "v"), ["a", "v"]), ((), []),
    ):  # fmt: skip
        window.context.select(names)
        assert window.structure.ports() == found
        assert enabled() == [len(names) == 1 == len(found)] * 2, names
    for first, after in (("b", ("bac", "uvw")), ("v", ("abc", "vuw"))):
        window.context.select((first,))
        press(window, "Ctrl+Up")
        template = window.context.root.graph.templates["t"]
        assert ("".join(template.inputs), "".join(template.outputs)) == after
        press(window, "Ctrl+Down")
        template = window.context.root.graph.templates["t"]
        assert ("".join(template.inputs), "".join(template.outputs)) == ("abc", "uvw")


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
    root, every = window.context.root.graph, {}
    every[f"in {root.name}"] = [layer.name for layer in root]
    every |= {f"in {name}": [layer.name for layer in part.layers] for name, part in root.templates.items()}
    del every["in residual_block"]  # it is open
    for where, names in every.items():
        assert {name for name, place in rows if place == where} <= set(names), where
    assert {place for _, place in rows[2:]} <= every.keys()
    assert len(rows) == len(set(rows))
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


@pytest.mark.parametrize(
    ("names", "layers", "inputs", "outputs"),
    [
        (("conv",), "1 layer", "1 input", "1 output"),
        (("cat",), "1 layer", "2 inputs", "1 output"),
        (("conv", "free"), "2 layers", "1 input", "2 outputs"),
        (("fork",), "1 layer", "1 input", "2 outputs"),
        (("cat", "fork"), "2 layers", "2 inputs", "3 outputs"),
        (("free",), "1 layer", "0 inputs", "1 output"),
    ],
)
def test_the_question_for_a_template_counts_layers_and_ports(window, names, layers, inputs, outputs):
    graph = kit.small_graph()
    show(window, graph)
    document = window.context.document
    document.do(lambda g: commands.add_layer(g, Layer("fork", "top_k", (320, 400), (Source("input"),))))
    for name, source in (("one", Source("fork")), ("two", Source("fork", "indices"))):
        document.do(lambda g, n=name, s=source: commands.add_layer(g, Layer(n, "identity", (640, 400), (s,))))
    window.context.select(names)
    window.structure.ask_template()
    line = window.findChild(QLineEdit, "template_name.name")
    shown = [label.text() for label in line.window().findChildren(QLabel)]
    text = (
        f"The selection ({layers}) is moved into the template and replaced by an instance with {inputs} and {outputs}. "
        f"Weights are then stored under the name of the instance: {names[0]} becomes <instance>.{names[0]}."
    )
    assert text in shown, shown
    before = set(document.graph.layers)
    name_it(window, "part")
    made = set(document.graph.layers) - before
    assert window.context.selection == tuple(made) == ("part_0",)
    template = document.graph.templates["part"]
    assert [len(template.inputs), len(template.outputs)] == [int(text.split()[0]) for text in (inputs, outputs)]


def test_the_canvas_menu_has_what_can_be_done_with_templates(window):
    window.context.select(("group_1",))
    window.canvas.menu_requested.emit(window.canvas.mapToGlobal(window.canvas.rect().center()))
    menu = window.findChild(QMenu, "canvas.menu")
    entries = {action.objectName(): action.isEnabled() for action in menu.actions() if action.objectName()}
    assert entries["template.enter"]
    assert entries["template.dissolve"]
    assert not entries["template.leave"]
    menu.close()


def test_exactly_the_layer_that_is_inspected_is_marked_in_every_scope(qtbot):
    """The same names occur in the network, in both instances and in the template itself, which runs nowhere."""

    def inside(below: str) -> tuple[Layer, ...]:
        middle = Layer("conv", "template" if below else "identity", (320, 0), (Source("x"),))
        middle = replace(middle, params={"template": below} if below else {})
        return (Layer("x", "template_input"), middle, Layer("y", "template_output", (640, 0), (Source("conv"),)))

    layers = [Layer("x", "input"), Layer("conv", "identity", (320, 0), (Source("x"),))]
    layers += [
        Layer(name, "template", (640, 160 * n), (Source("conv"),), {"template": "outer"})
        for n, name in enumerate(("one", "two"))
    ]
    graph = Graph(layers, templates=[Template("outer", inside("inner")), Template("inner", inside(""))])
    canvas = kit.open_canvas(qtbot, graph)
    context, items = canvas.context, canvas.projection
    ways = [(), ("one",), ("two",), ("one", "conv")]
    scopes = [tuple(ScopeStep(name, ("outer", "inner")[n]) for n, name in enumerate(way)) for way in ways]
    scopes += [
        (ScopeStep("", "outer"),),
        (ScopeStep("", "inner"),),
        (ScopeStep("", "outer"), ScopeStep("conv", "inner")),
    ]
    paths = ["", "conv", "x", "one", "one.conv", "one.x", "two.conv", "one.conv.conv", "two.conv.x", "gone"]
    marks = set()

    def check(path: str) -> None:
        around = "".join(f"{step.instance}." for step in context.scope)
        runs = all(step.instance for step in context.scope)
        wanted = [n for n in items.layers if runs and around + n == path]
        assert [n for n in items.layers if items[n].look.inspected] == wanted, (context.scope, path)
        marks.update((path, name) for name in wanted)

    for path in ("conv", "one.conv"):
        context.inspected.emit(path)
        for scope in scopes:
            context.set_scope(scope)
            check(path)
    for scope in scopes:
        context.set_scope(scope)
        for path in paths:
            context.inspected.emit(path)
            check(path)
    assert len(marks) == 7
