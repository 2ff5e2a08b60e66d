"""Declarations of the window's actions. Each action is declared once, next to the code that it calls.

Menus, tool bar, command palette and shortcuts dialog are built from these declarations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Owner = TypeVar("Owner")


@dataclass(frozen=True, slots=True)
class ActionState:
    """The state of the window that determines which actions are enabled."""

    document: bool = False
    layers: int = 0
    selected: int = 0
    selected_links: int = 0
    selected_frames: int = 0
    undo: str | None = None  # title of the next edit to undo
    redo: str | None = None
    can_paste: bool = False
    errors: int = 0
    busy: bool = False
    instances: int = 0  # selected instances of templates
    ports: int = 0  # selected ports of the template that is shown
    inside: bool = False  # a template is shown
    template: bool = False  # a template is selected or shown
    moving: bool = False  # an input is a folder, a video or a camera
    ends: bool = False  # an input is a folder or a video
    input_selected: bool = False  # one input layer is selected alone
    tabs: int = 0  # open documents
    closed: int = 0  # documents that were closed and can be opened again


@dataclass(frozen=True, slots=True)
class Need:
    """A condition of an action, and the reason to show if it does not hold."""

    holds: Callable[[ActionState], bool]
    reason: str


@dataclass(frozen=True, slots=True)
class Action(Generic[Owner]):
    """One action: `do` is called with its owner. The user's shortcuts are stored by `id`.

    `menus` names sections of menus, of the tool bar ("Tools/...") and of the canvas's context menu ("Canvas/..."), which
    `app.ui.shell.menus` lists. Shortcuts of `on_canvas` actions work while the canvas has the focus, others anywhere.
    A non-empty `hint` replaces the tip. An action with `checked` is checkable.
    """

    id: str
    title: str
    tip: str
    do: Callable[[Owner], object]
    menus: tuple[str, ...]
    keys: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    icon: str = ""
    on_canvas: bool = False
    checked: Callable[[Owner], bool] | None = None
    hint: Callable[[ActionState], str] | None = None


@dataclass(frozen=True, slots=True)
class ActionGroup(Generic[Owner]):
    """The actions of one class of owner."""

    owner: type[Owner]
    actions: tuple[Action[Owner], ...]


DOCUMENT = Need(lambda s: s.document, "no network is open")
LAYERS = Need(lambda s: s.layers > 0, "the network has no layers yet")
VALID = Need(lambda s: s.errors == 0, "the network has errors, see Type Checking")
SELECTION = Need(lambda s: s.selected > 0, "no layer is selected")
