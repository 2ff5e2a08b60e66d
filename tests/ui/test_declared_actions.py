"""The declarations of all actions of the window: texts, places, keys, and the states in which each of them is enabled."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from dataclasses import fields, replace

from recorded import check_recorded

from app.ui.shell.menus import CONTEXT_MENU, TOOLBAR, full_title, menu_paths
from app.ui.shell.window import GROUPS
from app.ui.widgets.action import Action, ActionState

ALL = ActionState(
    document=True, layers=3, selected=1, selected_links=1, selected_frames=1, undo="Move", redo="Add", can_paste=True,
    instances=1, ports=1, inside=True, template=True, moving=True, ends=True, input_selected=True, tabs=3, closed=1,
)  # fmt: skip
SIZES = (0, 1, 2, 3)


def reasons(action: Action, state: ActionState) -> list[str]:
    return [need.reason for need in action.needs if not need.holds(state)]


def states() -> list[tuple[str, ActionState]]:
    """Everything there is, and one thing changed at a time. Selections are tried together with those that can replace them."""
    found = [("everything", ALL), ("nothing", ActionState())]
    for field in fields(ActionState):
        value = getattr(ALL, field.name)
        others = [not value] if isinstance(value, bool) else SIZES if isinstance(value, int) else [None]
        found += [(f"{field.name} {other}", replace(ALL, **{field.name: other})) for other in others if other != value]
    for selected in SIZES:
        for links in (0, 1, 2):
            for framed in (0, 1, 2):
                changed = replace(ALL, selected=selected, selected_links=links, selected_frames=framed)
                found.append((f"selected {selected} {links} {framed}", changed))
    found += [(f"both {n} of {m}", replace(ALL, selected=m, instances=n, ports=n)) for m in (1, 2) for n in (0, 1, 2)]
    return found


def test_every_action_is_declared_as_it_was_recorded() -> None:
    """The states in which an action is disabled have its reason; states that differ in nothing from "everything" are left out."""
    lines = []
    for group in GROUPS:
        for action in group.actions:
            where = "on the canvas" if action.on_canvas else "anywhere"
            lines.append(f"{action.id}: {action.title!r} of {group.owner.__name__}, {where}")
            lines += [f"    {action.tip}", f"    in {', '.join(action.menus)}", f"    keys {', '.join(action.keys)}"]
            lines.append(f"    icon {action.icon}, {'checkable' if action.checked is not None else 'not checkable'}")
            refused: dict[str, list[str]] = {}
            for name, state in states():
                if why := reasons(action, state):
                    refused.setdefault("; ".join(why), []).append(name)
            lines += [f"    {why}: {', '.join(names)}" for why, names in refused.items()]
            if action.hint is not None:
                hints = {action.hint(state): name for name, state in reversed(states())}
                lines += [f"    hint {hint!r} for {name}" for hint, name in sorted(hints.items())]
    check_recorded("window/declared_actions.txt", "".join(f"{line.rstrip()}\n" for line in lines))


def test_every_action_is_in_a_menu_that_exists() -> None:
    paths = menu_paths()
    known = {*paths, *TOOLBAR, *CONTEXT_MENU}
    actions = [action for group in GROUPS for action in group.actions]
    assert not [(action.id, section) for action in actions for section in action.menus if section not in known]
    assert not [action.id for action in actions if not any(section in paths for section in action.menus)]
    titles = [full_title(action, paths) for action in actions]
    assert len(set(titles)) == len(titles), sorted(title for title in titles if titles.count(title) > 1)
