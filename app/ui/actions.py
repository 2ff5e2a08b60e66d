"""Everything a person can ask the window for, as data: one table for menus, shortcuts, tooltips and reasons.

An action names the requirements it has; one that does not hold disables it, and its reason stands in the tooltip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.ui import theme


@dataclass(frozen=True, slots=True)
class State:
    """What actions depend on."""

    document: bool = False
    layers: int = 0
    selected: int = 0
    selected_links: int = 0
    selected_frames: int = 0
    undo: str | None = None
    redo: str | None = None
    modified: bool = False
    can_paste: bool = False
    errors: int = 0
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Requirement:
    """When an action can be done, and the sentence that says why not."""

    holds: Callable[[State], bool]
    reason: str


NEEDS: Mapping[str, Requirement] = {
    "document": Requirement(lambda s: s.document, "no network is open"),
    "layers": Requirement(lambda s: s.layers > 0, "the network has no layers yet"),
    "selection": Requirement(lambda s: s.selected > 0, "no layer is selected"),
    "one": Requirement(
        lambda s: s.selected == 1 or (s.selected == 0 and s.selected_frames == 1), "select exactly one layer or frame"
    ),
    "any": Requirement(lambda s: s.selected + s.selected_links + s.selected_frames > 0, "nothing is selected"),
    "paste": Requirement(lambda s: s.can_paste, "the clipboard holds no layers"),
    "undo": Requirement(lambda s: s.undo is not None, "nothing was changed yet"),
    "redo": Requirement(lambda s: s.redo is not None, "nothing was undone"),
    "valid": Requirement(lambda s: s.errors == 0, "the network has errors: see Type Checking"),
    "idle": Requirement(lambda s: not s.busy, "another run is going on"),
    "busy": Requirement(lambda s: s.busy, "nothing is running"),
}


@dataclass(frozen=True, slots=True)
class Spec:
    """One action. `on_canvas` shortcuts work while the canvas has the focus, the others in the whole window."""

    id: str
    title: str
    tip: str
    shortcuts: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    icon: str = ""
    on_canvas: bool = False


WAYS = {
    "left": "to what it reads",
    "right": "to what reads it",
    "up": "to the layer above",
    "down": "to the layer below",
}
VIEWS = range(1, 10)


def _walking() -> Iterator[Spec]:
    """The arrow keys."""
    for way, where in WAYS.items():
        key = way.title()
        yield Spec(f"select.{way}", f"Go {key}", f"Go {where}", (key,), ("layers",), on_canvas=True)
        yield Spec(
            f"select.extend_{way}",
            f"Extend {key}",
            f"Add to the selection: {where}",
            (f"Shift+{key}",),
            ("layers",),
            on_canvas=True,
        )
        yield Spec(
            f"edit.nudge_{way}",
            f"Nudge {key}",
            "Move the selected layers by one step of the grid",
            (f"Alt+{key}",),
            ("selection",),
            on_canvas=True,
        )


def _views() -> Iterator[Spec]:
    for number in VIEWS:
        yield Spec(
            f"view.recall_{number}",
            f"View {number}",
            f"Bring back the view that was stored under {number}",
            (str(number),),
            ("document",),
            on_canvas=True,
        )
        yield Spec(
            f"view.store_{number}",
            f"Store View {number}",
            f"Keep what is seen now under {number}",
            (f"Ctrl+{number}",),
            ("document",),
            on_canvas=True,
        )


ACTIONS = (
    Spec("file.new", "&New", "Start an empty network", ("Ctrl+N",), icon="file-plus-outline"),
    Spec("file.open", "&Open...", "Open a model file", ("Ctrl+O",), icon="folder-open-outline"),
    Spec("file.save", "&Save", "Save the network", ("Ctrl+S",), ("document",), "content-save-outline"),
    Spec("file.save_as", "Save &As...", "Save under another name", ("Ctrl+Shift+S",), ("document",)),
    Spec(
        "export.pytorch",
        "Generate PyTorch &Files...",
        "Write a PyTorch project with model, training and inference",
        ("Ctrl+E",),
        ("document", "layers", "valid"),
        "export-variant",
    ),
    Spec("export.onnx", "&ONNX Model...", "Write the network with its weights", (), ("document", "layers", "valid")),
    Spec("file.quit", "&Quit", "Close the program", ("Ctrl+Q",), icon="power"),
    Spec("edit.undo", "&Undo", "Take back the last change", ("Ctrl+Z",), ("document", "undo"), "undo"),
    Spec("edit.redo", "&Redo", "Do the undone change again", ("Ctrl+Shift+Z", "Ctrl+Y"), ("document", "redo"), "redo"),
    Spec("edit.cut", "Cu&t", "Cut the selected layers", ("Ctrl+X",), ("selection",), "content-cut", True),
    Spec("edit.copy", "&Copy", "Copy the selected layers as text", ("Ctrl+C",), ("selection",), "content-copy", True),
    Spec("edit.paste", "&Paste", "Add the copied layers", ("Ctrl+V",), ("document", "paste"), "content-paste", True),
    Spec(
        "edit.paste_linked",
        "Paste &Keeping Links",
        "Add the copied layers and keep the links that come into them",
        ("Ctrl+Shift+V",),
        ("document", "paste"),
        on_canvas=True,
    ),
    Spec(
        "edit.duplicate",
        "&Duplicate",
        "Copy the selected layers beside themselves",
        ("Ctrl+D",),
        ("selection",),
        "content-duplicate",
        True,
    ),
    Spec(
        "edit.duplicate_linked",
        "Duplicate Keeping &Links",
        "Copy the selected layers with the links that come into them",
        ("Ctrl+Shift+D",),
        ("selection",),
        on_canvas=True,
    ),
    Spec("edit.delete", "D&elete", "Delete what is selected", ("Del",), ("any",), "delete-outline", True),
    Spec(
        "edit.delete_heal",
        "Delete and &Heal Links",
        "Delete the selected layers and join what they connected",
        ("Ctrl+Del",),
        ("selection",),
        on_canvas=True,
    ),
    Spec(
        "edit.rename", "Re&name...", "Give the selected layer or frame another name", ("F2",), ("one",), on_canvas=True
    ),
    Spec(
        "edit.bypass",
        "&Bypass",
        "Let the selected layers pass on what they get",
        ("M",),
        ("selection",),
        on_canvas=True,
    ),
    Spec(
        "edit.frame",
        "Add Comment &Frame",
        "Put a titled frame around the selection",
        ("C",),
        ("document",),
        on_canvas=True,
    ),
    *_walking(),
    Spec("select.all", "&All", "Select every layer", ("Ctrl+A",), ("layers",), on_canvas=True),
    Spec(
        "select.upstream",
        "&Upstream",
        "Select what the selection depends on too",
        ("[",),
        ("selection",),
        on_canvas=True,
    ),
    Spec("select.downstream", "&Downstream", "Select what depends on it too", ("]",), ("selection",), on_canvas=True),
    Spec(
        "select.find", "&Find...", "Find layers by name, type, parameter or shape", ("Ctrl+F",), ("layers",), "magnify"
    ),
    Spec("select.next", "Find &Next", "Go to the next layer that was found", ("F3",), ("layers",)),
    Spec("select.previous", "Find &Previous", "Go to the layer found before", ("Shift+F3",), ("layers",)),
    Spec("select.problem", "Next Pro&blem", "Go to the next layer with an error or warning", ("F8",), ("layers",)),
    Spec("select.problem_back", "Previous Prob&lem", "Go to the problem before", ("Shift+F8",), ("layers",)),
    Spec(
        "edit.add",
        "Add &Operator...",
        "Search an operator and add it at the pointer (Space, Tab or double-click the canvas)",
        (),
        ("document",),
        "plus-box-outline",
    ),
    Spec(
        "edit.lay_out",
        "&Lay Out Selection",
        "Arrange the selected layers from left to right",
        ("L",),
        ("selection",),
        "",
        True,
    ),
    Spec(
        "edit.lay_out_all",
        "Lay O&ut Everything",
        "Arrange the whole network from left to right",
        ("Shift+L",),
        ("layers",),
        "sitemap-outline",
        True,
    ),
    Spec(
        "view.frame_all", "Frame &All", "Show the whole network", ("Home",), ("layers",), "fit-to-screen-outline", True
    ),
    Spec(
        "view.frame_selection",
        "&Frame Selection",
        "Show the selected layers as large as they fit",
        ("F",),
        (),
        "",
        True,
    ),
    Spec("view.zoom_in", "Zoom &In", "Larger", ("Ctrl++", "Ctrl+="), icon="magnify-plus-outline"),
    Spec("view.zoom_out", "Zoom &Out", "Smaller", ("Ctrl+-",), icon="magnify-minus-outline"),
    Spec("view.zoom_100", "Natural &Size", "One canvas unit a pixel", ("Ctrl+0",)),
    *_views(),
    Spec("view.theme_system", "As the &System", "Follow the desktop's light or dark colours"),
    Spec("view.theme_dark", "&Dark", "Dark colours"),
    Spec("view.theme_light", "&Light", "Light colours"),
    Spec("view.reset_layout", "&Reset This Workspace", "Put the windows back where they were at first"),
    Spec(
        "run.inference",
        "Launch &Inference",
        "Time the network in the engine and record the run",
        ("Ctrl+Return", "Ctrl+Enter"),
        ("document", "layers", "valid"),
        "play",
    ),
    Spec(
        "run.analysis",
        "Launch &Analysis",
        "Run the network on a picture and look at every layer",
        ("F5",),
        ("document", "layers", "valid"),
        "flask-outline",
    ),
    Spec("run.stop", "&Stop", "Stop what is running", ("Shift+F5",), ("busy",), "stop"),
    Spec("workspace.design", "&Design", "Palette, parameters, problems and code", ("Alt+1",)),
    Spec("workspace.analysis", "&Analysis", "Pictures: input, output and every channel", ("Alt+2",)),
    Spec("workspace.profile", "&Profile", "Runs, operators and utilisation", ("Alt+3",)),
    Spec("workspace.train", "&Train", "Settings and code for training", ("Alt+4",)),
    Spec("help.commands", "&Commands...", "Find any action by its name", ("Ctrl+P",), icon="format-list-bulleted"),
    Spec("help.shortcuts", "&Shortcuts", "All shortcuts and gestures", ("F1",), icon="keyboard-outline"),
    Spec("help.about", "&About Layerwright", "Version and licence", icon="information-outline"),
)

# Menus: titles with the ids of their actions; None is a separator, "<name>" is filled by the window.
Entry = str | None | tuple[str, "tuple[Entry, ...]"]
MENUS: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    (
        "&File",
        (
            "file.new",
            "file.open",
            ("Open &Sample", ("<samples>",)),
            ("Open &Recent", ("<recent>",)),
            None,
            "file.save",
            "file.save_as",
            None,
            ("&Export", ("export.pytorch", "export.onnx")),
            None,
            "file.quit",
        ),
    ),
    (
        "&Edit",
        (
            "edit.undo",
            "edit.redo",
            None,
            "edit.cut",
            "edit.copy",
            "edit.paste",
            "edit.paste_linked",
            "edit.duplicate",
            "edit.duplicate_linked",
            None,
            "edit.delete",
            "edit.delete_heal",
            "edit.rename",
            "edit.bypass",
            None,
            "edit.add",
            "edit.frame",
            None,
            "edit.lay_out",
            "edit.lay_out_all",
            ("Nu&dge", tuple(f"edit.nudge_{way}" for way in WAYS)),
        ),
    ),
    (
        "&Select",
        (
            "select.all",
            "select.upstream",
            "select.downstream",
            ("&Walk", tuple(f"select.{way}" for way in WAYS) + tuple(f"select.extend_{way}" for way in WAYS)),
            None,
            "select.find",
            "select.next",
            "select.previous",
            None,
            "select.problem",
            "select.problem_back",
        ),
    ),
    (
        "&View",
        (
            "view.frame_all",
            "view.frame_selection",
            "view.zoom_in",
            "view.zoom_out",
            "view.zoom_100",
            None,
            ("Saved &Views", tuple(f"view.{what}_{n}" for what in ("recall", "store") for n in VIEWS)),
            ("&Windows", ("<windows>",)),
            ("&Colours", ("view.theme_system", "view.theme_dark", "view.theme_light")),
            "view.reset_layout",
        ),
    ),
    ("&Run", ("run.inference", "run.analysis", "run.stop")),
    ("&Workspaces", ("workspace.design", "workspace.analysis", "workspace.profile", "workspace.train")),
    ("&Help", ("help.commands", "help.shortcuts", "help.about")),
)
TOOLBAR: tuple[str | None, ...] = (
    "file.new",
    "file.open",
    "file.save",
    None,
    "edit.undo",
    "edit.redo",
    None,
    "edit.add",
    "view.frame_all",
    None,
    "run.analysis",
    "run.inference",
    "run.stop",
)
CONTEXT_MENU: tuple[str | None, ...] = (
    "edit.add",
    "edit.frame",
    None,
    "edit.cut",
    "edit.copy",
    "edit.paste",
    "edit.duplicate",
    None,
    "edit.rename",
    "edit.bypass",
    "edit.delete",
    "edit.delete_heal",
    None,
    "edit.lay_out",
    "view.frame_selection",
)


class Actions(QObject):
    """The QActions of one window, made from the table."""

    def __init__(self, window: QWidget, canvas: QWidget) -> None:
        super().__init__(window)
        self.specs = {spec.id: spec for spec in ACTIONS}
        self._actions: dict[str, QAction] = {}
        for spec in ACTIONS:
            action = QAction(spec.title, self)
            action.setObjectName(spec.id)
            action.setShortcuts([QKeySequence(text) for text in spec.shortcuts])
            if spec.icon:
                action.setIcon(theme.icon(spec.icon))
            if spec.on_canvas:
                action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            (canvas if spec.on_canvas else window).addAction(action)
            self._actions[spec.id] = action
        self._shown: State | None = None
        self.refresh(State())

    def __getitem__(self, name: str) -> QAction:
        return self._actions[name]

    def connect_all(self, handlers: Mapping[str, Callable[[], object]]) -> None:
        """Give every action its handler. Raises KeyError for one that has none, ValueError for a handler without action."""
        unknown = handlers.keys() - self._actions.keys()
        if unknown:
            raise ValueError(f"no such actions: {', '.join(sorted(unknown))}")
        for name, action in self._actions.items():
            handler = handlers[name]
            action.triggered.connect(lambda _checked=False, handler=handler: handler())

    def refresh(self, state: State) -> None:
        """Enable what can be done, and say of the others why they cannot."""
        if state == self._shown:
            return
        self._shown = state
        for name, action in self._actions.items():
            spec = self.specs[name]
            reason = next((NEEDS[n].reason for n in spec.needs if not NEEDS[n].holds(state)), "")
            tip = spec.tip
            if name == "edit.undo" and state.undo:
                tip = f"Undo: {state.undo}"
            elif name == "edit.redo" and state.redo:
                tip = f"Redo: {state.redo}"
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            text = f"{tip} ({keys})" if keys else tip
            action.setEnabled(not reason)
            action.setToolTip(f"{text}\nNot now: {reason}" if reason else text)
            action.setStatusTip(f"{tip} - not now: {reason}" if reason else tip)
