"""Actions and their palette over declarations of this test: what is enabled, said, checked, found and done."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from dataclasses import replace

from PySide6.QtCore import QSettings, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.ui.shell import menus as menus_module
from app.ui.shell.action_set import Actions
from app.ui.shell.actions import ACTIONS
from app.ui.shell.command_palette import CommandPalette
from app.ui.shell.docks import Docks
from app.ui.shell.export.exports import Exports
from app.ui.shell.files import Files
from app.ui.shell.menus import full_title
from app.ui.shell.panels import ANALYSIS, DESIGN, PROFILE, TRAIN
from app.ui.shell.shortcuts import Shortcuts
from app.ui.shell.tabs import Tabs
from app.ui.shell.view_options import ViewOptions
from app.ui.widgets.action import DOCUMENT, LAYERS, VALID, Action, ActionGroup, ActionState, Need


class Owner:
    """Does what the actions of this test say."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.on = False

    def one(self) -> None:
        self.done.append("one")

    def two(self) -> None:
        self.done.append("two")

    def toggle(self) -> None:
        self.on = not self.on
        self.done.append("toggle")

    def stay(self) -> None:
        self.done.append("stay")


class Other(Owner):
    pass


BUSY = Need(lambda s: not s.busy, "something runs")
DECLARED = (
    Action("t.one", "&Open Thing...", "Open a thing", Owner.one, ("File/new",), ("Ctrl+O", "F9"), (DOCUMENT, LAYERS, BUSY)),
    Action("t.two", "&Dark", "Use the dark look", Owner.two, ("View/theme",), ("D",), on_canvas=True, icon="undo"),
    Action("t.toggle", "&Grid", "Show the grid", Owner.toggle, ("View/minimap",), checked=lambda owner: owner.on),
    Action("t.hint", "&Undo It", "Undo the last edit", Owner.stay, ("Edit/undo",), ("Ctrl+Z",), hint=lambda s: f"Undo: {s.undo}" if s.undo else ""),
    Action("help.commands", "&Command Palette...", "Search", Owner.stay, ("Help/help",)),
)  # fmt: skip
MORE = (
    Action(
        "u.away",
        "Co&nceal",
        "Put the grid away, darkly, whatever the theme",
        Other.two,
        ("Tools/none",),
        checked=lambda owner: True,
    ),
)


class Set:
    def __init__(self, qtbot: QtBot, settings: QSettings) -> None:
        self.window, self.canvas = QWidget(), QWidget()
        self.canvas.setParent(self.window)
        qtbot.addWidget(self.window)
        self.owner, self.other = Owner(), Other()
        self.shortcuts = Shortcuts(settings, (*DECLARED, *MORE))
        groups = (ActionGroup(Owner, DECLARED), ActionGroup(Other, MORE))
        self.actions = Actions(self.window, self.canvas, groups, {Owner: self.owner, Other: self.other}, self.shortcuts)


@pytest.fixture
def made(qtbot: QtBot, settings: QSettings) -> Set:
    return Set(qtbot, settings)


OPEN = ActionState(document=True, layers=2)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (ActionState(), "no network is open"),
        (ActionState(layers=3, busy=True), "no network is open"),
        (ActionState(document=True, busy=True), "the network has no layers yet"),
        (replace(OPEN, busy=True), "something runs"),
        (OPEN, ""),
    ],
)
def test_an_action_is_enabled_if_all_its_needs_hold_and_says_the_first_that_does_not(made, state, reason) -> None:
    made.actions.refresh(state)
    action = made.actions["t.one"]
    assert action.isEnabled() is not bool(reason)
    keys = QKeySequence("Ctrl+O").toString(QKeySequence.SequenceFormat.NativeText)
    assert action.toolTip() == f"Open a thing ({keys})" + (f"\nUnavailable: {reason}" if reason else "")
    assert action.statusTip() == "Open a thing" + (f" - unavailable: {reason}" if reason else "")
    assert made.actions["t.two"].isEnabled()
    assert (made.actions["t.toggle"].toolTip(), made.actions["t.toggle"].statusTip()) == ("Show the grid",) * 2
    action.trigger()
    assert made.owner.done == ([] if reason else ["one"])


def test_a_hint_takes_the_place_of_the_tip_while_there_is_one(made) -> None:
    action = made.actions["t.hint"]
    keys = QKeySequence("Ctrl+Z").toString(QKeySequence.SequenceFormat.NativeText)
    for undo, tip in (
        (None, "Undo the last edit"),
        ("Move", "Undo: Move"),
        ("", "Undo the last edit"),
        ("Add", "Undo: Add"),
    ):
        made.actions.refresh(replace(OPEN, undo=undo))
        assert (action.toolTip(), action.statusTip()) == (f"{tip} ({keys})", tip)


def test_check_marks_are_those_of_the_owners(made) -> None:
    grid, away = made.actions["t.toggle"], made.actions["u.away"]
    assert (grid.isCheckable(), grid.isChecked(), away.isChecked()) == (True, False, True)
    assert not made.actions["t.one"].isCheckable()
    grid.trigger()
    assert (made.owner.on, grid.isChecked()) == (True, True)
    away.trigger()  # the choice does not change
    assert away.isChecked()
    made.owner.on = False
    made.actions.refresh_checks()
    assert not grid.isChecked()
    assert (made.owner.done, made.other.done) == (["toggle"], ["two"])


def test_keys_and_tips_follow_the_shortcuts(made) -> None:
    native = QKeySequence.SequenceFormat.NativeText
    action = made.actions["t.one"]
    made.actions.refresh(OPEN)
    assert [key.toString() for key in action.shortcuts()] == ["Ctrl+O", "F9"]
    made.shortcuts.change("t.one", ("Ctrl+K",))
    assert [key.toString() for key in action.shortcuts()] == ["Ctrl+K"]
    assert action.toolTip() == f"Open a thing ({QKeySequence('Ctrl+K').toString(native)})"
    made.shortcuts.change("t.one", ())
    assert (action.shortcuts(), action.toolTip()) == ([], "Open a thing")
    assert action.isEnabled()
    made.shortcuts.change("t.toggle", ("D",))
    assert (made.actions["t.two"].shortcuts(), made.actions["t.two"].toolTip()) == ([], "Use the dark look")


def test_where_the_keys_of_an_action_work(made) -> None:
    here = Qt.ShortcutContext.WidgetWithChildrenShortcut
    for name in made.actions.declared:
        action = made.actions[name]
        on_canvas = name == "t.two"
        assert (action.shortcutContext() is here) is on_canvas
        assert (action in made.canvas.actions()) is on_canvas
        assert (action in made.window.actions()) is not on_canvas
        assert action.objectName() == name
    assert made.actions["t.two"].icon().isNull() is False
    assert made.actions["t.one"].icon().isNull()
    assert made.actions["t.one"].text() == "&Open Thing..."
    assert made.actions.section("View/theme") == [made.actions["t.two"]]
    assert made.actions.section("nowhere") == []


# --- the palette -----------------------------------------------------------------------------------------------------


def rows(palette: CommandPalette, text: str) -> list[tuple[str, bool]]:
    return [(match.text, match.enabled) for match in palette._commands(text)]


def test_the_palette_lists_what_can_be_done_first_and_what_was_typed_before_descriptions(made) -> None:
    palette = CommandPalette(made.actions, made.window)
    made.actions.refresh(ActionState())
    everything = [("Conceal", True), ("Grid", True), ("Theme: Dark", True), ("Undo It", True), ("Open Thing", False)]
    assert rows(palette, "") == everything, "the palette is not in itself"
    for text, expected in (
        ("dark", ["Theme: Dark", "Conceal"]),  # a name, then a description
        ("grid", ["Grid", "Conceal"]),
        ("rid", ["Grid", "Conceal"]),  # within a word of a name
        ("theme dark", ["Theme: Dark", "Conceal"]),
        ("DARK Theme", ["Theme: Dark", "Conceal"]),  # both words of a name, in any order, before a description
        ("do it", ["Undo It"]),
        ("thing", ["Open Thing"]),
        ("thingopen", []),
        ("openthing", ["Open Thing"]),
        ("view", ["Grid", "Theme: Dark"]),  # the menu
        ("t.toggle", ["Grid"]),  # the id
        ("&Grid", ["Grid"]),  # the title as declared
        ("grid nothing", []),
        ("o", ["Conceal", "Undo It", "Open Thing"]),
    ):
        found = [name for name, _ in rows(palette, text)]
        assert [name for name in found if name in expected] == expected, text
        if text != "o":
            assert found == expected, text
    made.actions.refresh(OPEN)
    assert ("Open Thing", True) in rows(palette, "")
    assert next(name for name, _ in rows(palette, "d")) == "Theme: Dark", "a word that begins so"


def test_a_row_of_the_palette_has_keys_tip_and_icon_and_does_its_action(made) -> None:
    palette = CommandPalette(made.actions, made.window)
    made.actions.refresh(OPEN)
    matches = {match.key: match for match in palette._commands("")}
    native = QKeySequence.SequenceFormat.NativeText
    assert matches["t.one"].detail == QKeySequence("Ctrl+O").toString(native)
    assert matches["t.toggle"].detail == ""
    assert all(match.tip == made.actions[key].toolTip() for key, match in matches.items())
    assert matches["t.two"].icon.cacheKey() == made.actions["t.two"].icon().cacheKey()
    assert {match.icon.isNull() for match in matches.values()} == {False}, "names are aligned"
    palette.chosen.emit("t.one")
    assert made.owner.done == ["one"]
    assert palette.findChild(QLabel).text() == "No matching command."


def test_titles_have_the_name_of_their_submenu_where_they_need_it() -> None:
    paths = {
        "File/new": ("File",), "View/theme": ("View", "Theme"), "Edit/weights": ("Edit", "Weights"), "Workspaces/choose": ("Workspaces",),
    }  # fmt: skip
    for title, menus, expected in (
        ("&New...", ("File/new",), "New"),
        ("&Dark", ("View/theme",), "Theme: Dark"),
        ("Save &Weights As...", ("Edit/weights",), "Save Weights As"),
        ("&Split Layer", ("Edit/weights",), "Weights: Split Layer"),
        ("&Design", ("Workspaces/choose",), "Workspaces: Design"),
        ("&Dark", ("Tools/x", "View/theme"), "Theme: Dark"),
        ("&Nowhere", ("Tools/x",), "Nowhere"),
    ):
        assert full_title(Action("x", title, "", lambda _: None, menus), paths) == expected
    found = menus_module.menu_paths()
    assert found["File/new"] == ("File",)
    assert found["View/theme"] == ("View", "Theme")
    assert found["Templates/change"] == ("Edit", "Templates")
    assert found["<layouts>"] == ("Workspaces", "Layouts")
    assert menus_module.CHOICES in found


# --- the declarations of the shell -----------------------------------------------------------------------------------


EXPECTED = {
    "file.new": (Files, "new", {}), "file.open": (Files, "ask_open", {}), "file.import_module": (Files, "import_module", {}),
    "file.reopen": (Files, "reopen", {}), "file.save": (Files, "save", {}), "file.save_as": (Files, "save_as", {}),
    "file.close": (Files, "close", {}), "tab.next": (Tabs, "step", {"by": 1}), "tab.previous": (Tabs, "step", {"by": -1}),
    "export.pytorch": (Exports, "pytorch", {}), "export.onnx": (Exports, "onnx", {}), "export.deploy": (Exports, "deploy", {}),
    "export.tensorrt": (Exports, "tensorrt", {}), "export.picture": (Exports, "picture", {}),
    "file.print": (Exports, "picture", {"suffix": ".pdf"}), "analysis.export_video": (Exports, "video", {}),
    "tools.network_settings": (Docks, "show", {"name": "network_settings"}), "tools.type_checking": (Docks, "show", {"name": "type_checking"}),
    "tools.run_logger": (Docks, "show", {"name": "run_logger"}), "workspace.design": (Docks, "set_workspace", {"name": DESIGN}),
    "workspace.analysis": (Docks, "set_workspace", {"name": ANALYSIS}), "workspace.profile": (Docks, "set_workspace", {"name": PROFILE}),
    "workspace.train": (Docks, "set_workspace", {"name": TRAIN}), "view.reset_layout": (Docks, "arrange", {}),
    "view.links_curved": (ViewOptions, "show_links", {"style": "curved"}), "view.links_angled": (ViewOptions, "show_links", {"style": "angled"}),
    "view.minimap": (ViewOptions, "toggle_minimap", {}), "view.theme_system": (ViewOptions, "set_theme", {"mode": "system"}),
    "view.theme_dark": (ViewOptions, "set_theme", {"mode": "dark"}), "view.theme_light": (ViewOptions, "set_theme", {"mode": "light"}),
    **{f"view.figure_{name}": (ViewOptions, "show_figure", {"name": name}) for name in ("shapes", "parameters", "flops", "memory")},
}  # fmt: skip


def test_every_action_calls_the_method_of_its_name() -> None:
    found = {action.id: (group.owner, action) for group in ACTIONS for action in group.actions}
    for name, (owner, method, arguments) in EXPECTED.items():
        kind, action = found[name]
        assert kind is owner, name
        function = getattr(action.do, "func", action.do)
        assert function is getattr(owner, method), name
        assert getattr(action.do, "keywords", {}) == arguments, name
    starting = {name: action for name, (_, action) in found.items() if name.startswith("file.new_")}
    assert len(starting) == 8
    for name, action in starting.items():
        assert (action.do.func, action.do.keywords) == (Files.new_from, {"name": name.removeprefix("file.new_")})
    rest = found.keys() - EXPECTED.keys() - starting.keys()
    assert rest == {"view.save_layout"}


NEEDS = {
    "file.reopen": {"closed": 1}, "tab.next": {"tabs": 2}, "tab.previous": {"tabs": 2}, "file.save": {"document": True},
    "file.save_as": {"document": True}, "file.close": {"document": True}, "export.picture": {"document": True, "layers": 1},
    "file.print": {"document": True, "layers": 1}, "analysis.export_video": {"document": True, "layers": 1, "ends": True},
    **{f"export.{name}": {"document": True, "layers": 1} for name in ("pytorch", "onnx", "deploy", "tensorrt")},
}  # fmt: skip


def test_every_action_of_the_shell_needs_no_more_than_it_uses() -> None:
    for group in ACTIONS:
        for action in group.actions:
            enough = NEEDS.get(action.id, {})

            def enabled(state: ActionState, action: Action = action) -> bool:
                return all(need.holds(state) for need in action.needs)

            assert enabled(ActionState(**enough)), action.id
            for name in enough:
                assert not enabled(ActionState(**{k: v for k, v in enough.items() if k != name})), (action.id, name)
            if enough.get("tabs"):
                assert not enabled(ActionState(tabs=1))
            valid = VALID in action.needs
            assert enabled(ActionState(**enough, errors=1)) is not valid
            assert valid is (
                action.id
                in ("export.pytorch", "export.onnx", "export.deploy", "export.tensorrt", "analysis.export_video")
            )


class Options:
    """Display options with these values."""

    def __init__(self, **values: object) -> None:
        self.links, self.figure, self.minimap, self.theme_mode = "curved", "shapes", True, "system"
        vars(self).update(values)


def test_exactly_the_chosen_display_option_is_checked() -> None:
    found = {action.id: action for group in ACTIONS for action in group.actions if action.checked is not None}

    def checked(**values: object) -> set[str]:
        return {name for name, action in found.items() if action.checked(Options(**values))}

    usual = {"view.links_curved", "view.figure_shapes", "view.minimap", "view.theme_system"}
    assert checked() == usual
    assert checked(minimap=False) == usual - {"view.minimap"}
    assert checked(links="angled") == usual - {"view.links_curved"} | {"view.links_angled"}
    for mode in ("dark", "light"):
        assert checked(theme_mode=mode) == usual - {"view.theme_system"} | {f"view.theme_{mode}"}
    for name in ("parameters", "flops", "memory"):
        assert checked(figure=name) == usual - {"view.figure_shapes"} | {f"view.figure_{name}"}
