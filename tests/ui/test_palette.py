"""The palette: search, recent operators, adding by key and mouse, and what a drag carries."""

from __future__ import annotations

from itertools import product

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu, QTreeWidget
from window_kit import empty, shown

from app.ui.design.palette import MIME_TYPE, PalettePanel
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.widgets.operator_search import search
from designer.graph import commands
from designer.graph.commands import add_layer
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.graph.template_commands import remove_template, rename_template
from designer.operators.registry import default_registry


@pytest.fixture
def context(qapp):
    return Context(default_registry())


@pytest.fixture
def palette(qtbot, context):
    return shown(qtbot, PalettePanel(context), 280, 500)


def tree_of(panel) -> QTreeWidget:
    return panel.findChild(QTreeWidget, "palette.operators")


def top_texts(panel) -> list[str]:
    tree = tree_of(panel)
    return [tree.topLevelItem(i).text(0) for i in range(tree.topLevelItemCount())]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("conv2d", "convolution"),
        ("maxpool", "pooling"),
        ("relu", "activation"),
        ("conv", "convolution"),
        ("target", "input"),
        ("label", "tensor_input"),
    ],
)
def test_what_people_type_finds_the_operator(query, expected):
    assert expected in [cls.type for cls in search(default_registry(), query)][:2]


def test_recent_operators_come_first_among_equals():
    found = [cls.type for cls in search(default_registry(), "", ("pooling", "convolution"))]
    assert found[:2] == ["pooling", "convolution"]


def test_all_operators_stand_under_their_category(palette):
    tree = tree_of(palette)
    shown = [
        tree.topLevelItem(i).child(k).data(0, Qt.ItemDataRole.UserRole)
        for i in range(tree.topLevelItemCount())
        for k in range(tree.topLevelItem(i).childCount())
    ]
    assert sorted(shown) == [cls.type for cls in default_registry()]
    assert "Convolution" in top_texts(palette)


def test_typing_and_enter_asks_for_the_best_match(qtbot, palette, context):
    field = palette.findChild(QLineEdit, "palette.search")
    qtbot.keyClicks(field, "conv2d")
    with qtbot.waitSignal(context.add_requested) as asked:
        qtbot.keyClick(field, Qt.Key.Key_Return)
    assert asked.args == ["convolution"]


def test_arrow_keys_lead_from_the_search_into_the_list(qtbot, palette, context):
    field = palette.findChild(QLineEdit, "palette.search")
    field.setFocus()
    qtbot.keyClicks(field, "conv")
    second = tree_of(palette).topLevelItem(1).data(0, Qt.ItemDataRole.UserRole)
    qtbot.keyClick(field, Qt.Key.Key_Down)
    with qtbot.waitSignal(context.add_requested) as asked:
        qtbot.keyClick(tree_of(palette), Qt.Key.Key_Return)
    assert asked.args == [second]


def test_double_click_asks_for_the_operator(qtbot, palette, context):
    qtbot.keyClicks(palette.findChild(QLineEdit, "palette.search"), "pooling")
    tree = tree_of(palette)
    spot = tree.visualItemRect(tree.topLevelItem(0)).center()
    qtbot.mouseClick(tree.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    with qtbot.waitSignal(context.add_requested) as asked:
        qtbot.mouseDClick(tree.viewport(), Qt.MouseButton.LeftButton, pos=spot)
    assert asked.args == ["pooling"]


def test_a_drag_carries_the_type_name(qtbot, palette, context):
    qtbot.keyClicks(palette.findChild(QLineEdit, "palette.search"), "upsample")
    tree = tree_of(palette)
    data = tree.mimeData([tree.topLevelItem(0)])
    assert bytes(data.data(MIME_TYPE).data()).decode() == "upsample"
    assert tree.mimeTypes() == [MIME_TYPE]
    inner = (Layer("x", "template_input"), Layer("y", "template_output", inputs=(Source("x"),)))
    names = ["Block 2", "Größe-γ", "层"]
    document = Document(Graph(templates=[Template(name, inner) for name in names]), context.registry, parent=context)
    context.set_document(document)
    palette.findChild(QLineEdit, "palette.search").clear()
    head = tree.topLevelItem(0)
    carried = [
        bytes(tree.mimeData([head.child(row)]).data(MIME_TYPE).data()).decode() for row in range(head.childCount())
    ]
    assert carried == [f"template:{name}" for name in names]
    assert tree.mimeData([head]).formats() == tree.mimeData([]).formats() == []


def test_no_match_is_said_and_escape_brings_the_list_back(qtbot, palette):
    field = palette.findChild(QLineEdit, "palette.search")
    qtbot.keyClicks(field, "zzzz")
    assert empty(palette).isVisible()
    assert "zzzz" in empty(palette).text()
    escape = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(field, escape)
    assert tree_of(palette).isVisible()
    assert escape.isAccepted()
    QApplication.sendEvent(field, again := escape.clone())
    assert not again.isAccepted(), "the window stops a run with it"


def test_what_was_added_last_is_preferred_by_the_search_and_moves_no_target(qtbot, palette, context):
    document = Document(Graph(), context.registry)
    context.set_document(document)
    tree, before = tree_of(palette), top_texts(palette)
    place = tree.visualItemRect(tree.topLevelItem(1).child(0))
    assert document.do(lambda g: add_layer(g, Layer("loss_0", "mse_loss")))
    assert palette.recent() == ("mse_loss",)
    assert top_texts(palette) == before
    assert tree.visualItemRect(tree.topLevelItem(1).child(0)) == place
    qtbot.keyClicks(palette.findChild(QLineEdit, "palette.search"), "loss")
    assert top_texts(palette)[0] == "MSE loss"


def test_the_tooltip_is_the_description(palette):
    tree = tree_of(palette)
    conv = next(t for t in [tree.topLevelItem(i) for i in range(9)] if t.text(0) == "Convolution").child(0)
    assert "Apply learned filters" in conv.toolTip(0)


def test_templates_of_the_document_stand_first_with_their_number_of_instances(qtbot, palette, context):
    block = Template("block", (Layer("x", "template_input"), Layer("y", "template_output", inputs=(Source("x"),))))
    graph = Graph((Layer("a", "template", params={"template": "block"}),), templates=(block,))
    context.set_document(Document(graph, context.registry, parent=context))
    tree = tree_of(palette)
    head = tree.topLevelItem(0)
    assert head.text(0) == "Templates of This Document"
    assert head.child(0).data(0, Qt.ItemDataRole.AccessibleTextRole) == "block, a template, 1 instance"
    with qtbot.waitSignal(context.add_requested) as asked:
        tree.itemActivated.emit(head.child(0), 0)
    assert asked.args == ["template:block"]
    context.document.do(lambda g: commands.paste(g, [g["a"]]))
    assert "2 instances" in tree.topLevelItem(0).child(0).toolTip(0)
    context.enter("block")
    inside = tree.topLevelItem(0).child(0)
    assert inside.isDisabled()
    assert "would use itself" in inside.toolTip(0)


def test_inside_of_a_template_the_instances_of_the_whole_file_are_counted(palette, context):
    """Undo and redo change them there too, and the name of a template."""
    inner = (Layer("x", "template_input"), Layer("y", "template_output", inputs=(Source("x"),)))
    graph = Graph(
        (Layer("a", "template", params={"template": "used"}),),
        templates=(Template("used", inner), Template("b", inner)),
    )
    document = Document(graph, context.registry, parent=context)
    other = Document(Graph(), context.registry, parent=context)
    context.set_document(document)
    assert document.do(lambda g: add_layer(g, Layer("more", "template", params={"template": "b"})))
    assert document.do(lambda g: rename_template(g, "b", "c"))
    assert document.do(lambda g: commands.remove_layers(g, ["more"]))
    assert document.do(lambda g: remove_template(g, "c"))
    expected = [{"b": 0, "used": 1}, {"b": 1, "used": 1}, {"c": 1, "used": 1}, {"c": 0, "used": 1}, {"used": 1}]
    assert context.enter("a")
    tree, role = tree_of(palette), Qt.ItemDataRole.AccessibleTextRole

    def shown_now() -> dict[str, int]:
        head = tree.topLevelItem(0)
        texts = [head.child(row).data(0, role).split(", ") for row in range(head.childCount())]
        return {name: int(count.split()[0]) for name, _, count in texts}

    for act, steps in ((document.undo, (3, 2, 1, 0)), (document.redo, (1, 2, 3, 4))):
        for step in steps:
            act()
            assert shown_now() == expected[step]
            assert [each.template for each in context.scope] == ["used"]
    context.set_document(other)
    document.undo()
    assert tree.topLevelItem(0).text(0) != "Templates of This Document"


def test_the_list_is_the_same_whatever_document_was_shown_before(qtbot, palette, context):
    """Documents without templates and with one, a search, and the inside of one of two, each after each."""
    inner = (Layer("x", "template_input"), Layer("y", "template_output", inputs=(Source("x"),)))
    a, b = Template("a block", inner), Template("b", inner)
    layers = (Layer("first", "template", params={"template": "a block"}),)
    graphs = {"none": Graph(), "one": Graph(layers, templates=(a,)), "two": Graph(layers, templates=(a, b))}
    documents = {name: Document(graph, context.registry, parent=context) for name, graph in graphs.items()}
    field = palette.findChild(QLineEdit, "palette.search")

    def listed(panel) -> list[tuple[str, str, bool]]:
        return [
            (item.text(0), item.data(0, Qt.ItemDataRole.AccessibleTextRole), item.isDisabled())
            for item in tree_of(panel).findItems("", Qt.MatchFlag.MatchContains | Qt.MatchFlag.MatchRecursive)
        ]

    def show(name: str) -> None:
        document, _, more = name.partition(" ")
        field.setText("block" if more == "search" else "")
        context.set_document(documents[document])
        context.set_scope(())
        if more == "inside":
            assert context.enter("first")

    names = ("none", "one", "one search", "two inside")
    seen: dict[str, list] = {}
    for name in [each for pair in product(names, names) for each in pair]:
        show(name)
        found = listed(palette)
        assert found == seen.setdefault(name, found), name
    assert len(seen["none"]) > len(list(context.registry))
    blocks = {name: [text for text, *_ in found if text in ("a block", "b")] for name, found in seen.items()}
    assert blocks == {
        "none": [],
        "one": ["a block"],
        "one search": ["a block"],
        "two inside": ["a block", "b"],
    }
    fresh = shown(qtbot, PalettePanel(context), 280, 500)
    assert listed(fresh) == seen["two inside"]


def test_an_unused_template_is_deleted_from_the_menu_of_the_palette(palette, context):
    layers = (Layer("x", "template_input"), Layer("y", "template_output", inputs=(Source("x"),)))
    used, unused = Template("used", layers), Template("unused", layers)
    graph = Graph((Layer("a", "template", params={"template": "used"}),), templates=(used, unused))
    context.set_document(Document(graph, context.registry, parent=context))
    tree = tree_of(palette)

    def entries(row: int) -> dict[str, QAction]:
        tree.customContextMenuRequested.emit(tree.visualItemRect(tree.topLevelItem(0).child(row)).center())
        menu = palette.findChildren(QMenu, "palette.menu")[-1]
        return {action.text(): action for action in menu.actions()}

    assert [tree.topLevelItem(0).child(i).text(0) for i in range(2)] == ["unused", "used"]
    opened = []
    for row in range(2):
        entries(row)["Open Template"].trigger()
        opened += [step.template for step in context.scope]
        context.set_scope(())
    assert opened == ["unused", "used"]
    for menu in palette.findChildren(QMenu, "palette.menu"):
        menu.close()
    assert not entries(1)["Delete Template"].isEnabled()
    palette.findChildren(QMenu, "palette.menu")[-1].close()
    entries(0)["Delete Template"].trigger()
    assert set(context.document.graph.templates) == {"used"}
    for menu in palette.findChildren(QMenu, "palette.menu"):
        menu.close()
    assert tree.topLevelItem(0).childCount() == 1


def test_every_operator_can_be_dragged_and_no_heading(palette):
    tree = tree_of(palette)
    for number in range(tree.topLevelItemCount()):
        head = tree.topLevelItem(number)
        assert not head.flags() & Qt.ItemFlag.ItemIsDragEnabled
        for row in range(head.childCount()):
            assert head.child(row).flags() & Qt.ItemFlag.ItemIsDragEnabled, head.child(row).text(0)


def test_a_heading_adds_nothing(palette, context):
    asked = []
    context.add_requested.connect(asked.append)
    tree = tree_of(palette)
    heading = next(tree.topLevelItem(i) for i in range(tree.topLevelItemCount()) if tree.topLevelItem(i).childCount())
    tree.setCurrentItem(heading)
    tree.itemActivated.emit(heading, 0)
    tree.itemDoubleClicked.emit(heading, 0)
    assert asked == []
    tree.itemActivated.emit(heading.child(0), 0)
    assert asked


def test_a_group_that_was_closed_stays_closed_until_it_is_opened_again(palette):
    tree = tree_of(palette)

    def is_open(row: int) -> bool:
        item = tree.topLevelItem(row)
        assert item is not None
        return item.isExpanded()

    assert all(is_open(row) for row in range(3))
    tree.collapseItem(tree.topLevelItem(1))
    for expected in (False, True):
        for text in ("conv", ""):
            palette._search.setText(text)
        assert [is_open(row) for row in range(3)] == [True, expected, True]
        tree.expandItem(tree.topLevelItem(1))


def test_layers_of_several_types_that_come_together_are_not_recent(palette, context):
    """Pasted and imported layers were not chosen; of one type they are taken for one that was."""
    document = Document(Graph(), context.registry, parent=context)
    context.set_document(document)
    before = list(palette._recent)
    both = {"a": (None, Layer("a", "identity")), "b": (None, Layer("b", "pooling"))}
    document.do(Edit("Paste", both))
    assert palette._recent == before
    document.do(Edit("Add", {"c": (None, Layer("c", "pooling"))}))
    assert palette._recent == ["pooling", *before]
    document.do(commands.rename_layer(document.graph, "a", "z"))
    assert palette._recent == ["pooling", *before]
    kinds = ["identity", "convolution", "activation", "split", "mix", "element_wise", "output"]
    for number, kind in enumerate([*kinds, "mix"]):
        document.do(Edit("Add", {f"n{number}": (None, Layer(f"n{number}", kind))}))
        assert len(palette.recent()) == min(number + 2, 6)
    assert palette.recent() == ("mix", "output", "element_wise", "split", "activation", "convolution"), "six, each once"


def test_only_templates_have_a_context_menu(qtbot, context):
    """Operators, categories and the empty room below them have none, and the keys of an empty search list stay in the field."""
    inner = (Layer("x", "template_input"), Layer("y", "template_output", inputs=(Source("x"),)))
    document = Document(Graph([Layer("image", "input")], templates=[Template("pair", inner)]), context.registry)
    context.set_document(document)
    panel = shown(qtbot, PalettePanel(context), 280, 500)
    tree = tree_of(panel)
    items = [tree.topLevelItem(i) for i in range(tree.topLevelItemCount())]
    menus = []
    for item in (*items[:3], items[-1].child(0), *[child for top in items for child in [top.child(0)] if child]):
        tree.scrollToItem(item)
        panel._show_menu(tree.visualItemRect(item).center())
        for menu in panel.findChildren(QMenu, "palette.menu"):
            menus.append((item.text(0), [action.text() for action in menu.actions()]))
            menu.close()
            menu.setObjectName("")
    panel._show_menu(tree.viewport().rect().bottomRight() + tree.viewport().rect().bottomRight())
    assert {name for name, _ in menus} == {"pair"}
    assert all(texts[0] == "Open Template" for _, texts in menus)
    assert panel.findChildren(QMenu, "palette.menu") == []
    field = panel.findChild(QLineEdit, "palette.search")
    for text, seen in (("conv", True), ("no such operator", False)):
        field.setFocus()
        field.setText(text)
        for key in (Qt.Key.Key_Down, Qt.Key.Key_Up):
            field.setFocus()
            qtbot.keyClick(field, key)
            assert (panel.focusWidget() is tree) is seen
            assert (panel.focusWidget() is field) is not seen


@pytest.mark.parametrize(
    ("query", "names", "operators"),
    [
        ("", ["Templates of This Document"], True),
        ("zqx", ["zqx block"], False),
        ("block zqx", ["zqx block"], False),
        ("ZQX Instance", ["zqx block"], False),
        ("template", ["other", "zqx block"], True),
        ("relu", [], True),
        ("zqx nothing", None, False),
    ],
)
def test_a_search_finds_templates_and_operators_or_says_that_there_is_neither(
    palette, context, query, names, operators
):
    part = (Layer("x", "template_input"), Layer("y", "template_output", inputs=(Source("x"),)))
    graph = Graph(templates=(Template("zqx block", part), Template("other", part)))
    context.set_document(Document(graph, context.registry, parent=context))
    palette.findChild(QLineEdit, "palette.search").setText(query)
    found = top_texts(palette)
    assert found[: len(names or ())] == (names or [])
    assert (len(found) > len(names or ())) is operators
    assert (tree_of(palette).isVisible(), empty(palette).isVisible()) == (names is not None, names is None)
