"""Actions on the network that the canvas shows: editing, selecting, templates, the view."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from app.ui.canvas.canvas import Canvas
from app.ui.canvas.finder import Finder
from app.ui.canvas.heat_overlay import HeatOverlay
from app.ui.canvas.saved_views import SavedViews
from app.ui.canvas.structure import Structure
from app.ui.canvas.walker import Direction, Walker
from app.ui.widgets.action import DOCUMENT, LAYERS, SELECTION, Action, ActionGroup, Need
from designer.graph.arrangement import Side

ZOOM_STEP = 1.25
VIEWS = range(1, 10)
NEIGHBORS = {
    Direction.LEFT: "to the layer that feeds it",
    Direction.RIGHT: "to the layer that it feeds",
    Direction.UP: "to the layer above",
    Direction.DOWN: "to the layer below",
}

ANYTHING = Need(lambda s: s.selected + s.selected_links + s.selected_frames > 0, "nothing is selected")
SEVERAL = Need(lambda s: s.selected > 1, "select two layers or more")
MANY = Need(lambda s: s.selected > 2, "select three layers or more")
ONE_LAYER = Need(lambda s: s.selected == 1, "select exactly one layer")
ONE = Need(
    lambda s: s.selected == 1 or (s.selected == 0 and s.selected_frames == 1), "select exactly one layer or frame"
)
FOLDABLE = Need(lambda s: s.selected + s.selected_frames > 0, "no layer and no frame is selected")
PASTE = Need(lambda s: s.can_paste, "the clipboard holds no layers")
LINK = Need(lambda s: s.selected_links == 1, "select exactly one link")
INSTANCE = Need(
    lambda s: s.selected == s.instances == 1, "select one instance of a template: other layers cannot be entered"
)
INSTANCES = Need(lambda s: s.instances > 0, "no instance of a template is selected")
INSIDE = Need(lambda s: s.inside, "no template is open")
TEMPLATE = Need(lambda s: s.template, "no template is selected or open")
PORT = Need(
    lambda s: s.selected == s.ports == 1, "select one port of the open template (template_input or template_output)"
)


def _walk_actions() -> Iterator[Action[Walker]]:
    """The arrow keys."""
    for direction, where in NEIGHBORS.items():
        name, key = direction.name.lower(), direction.name.title()
        yield Action(
            f"select.{name}",
            f"Go {key}",
            f"Go {where}",
            partial(Walker.step, direction=direction),
            ("Select/step",),
            (key,),
            (LAYERS,),
            on_canvas=True,
        )
        yield Action(
            f"select.extend_{name}",
            f"Extend {key}",
            f"Extend the selection {where}",
            partial(Walker.step, direction=direction, extend=True),
            ("Select/extend",),
            (f"Shift+{key}",),
            (LAYERS,),
            on_canvas=True,
        )
        yield Action(
            f"edit.nudge_{name}",
            f"Nudge {key}",
            "Move the selected layers by one grid step",
            partial(Walker.nudge, direction=direction),
            ("Edit/nudge",),
            (f"Alt+{key}",),
            (SELECTION,),
            on_canvas=True,
        )


def _view_actions() -> Iterator[Action[SavedViews]]:
    for number in VIEWS:
        yield Action(
            f"view.recall_{number}",
            f"View {number}",
            f"Go to the view stored under {number}",
            partial(SavedViews.recall, number=number),
            ("View/recall",),
            (str(number),),
            (DOCUMENT,),
            on_canvas=True,
        )
        yield Action(
            f"view.store_{number}",
            f"Store View {number}",
            f"Store the current view under {number}",
            partial(SavedViews.store, number=number),
            ("View/store",),
            (f"Ctrl+{number}",),
            (DOCUMENT,),
            on_canvas=True,
        )


SIDES = {
    Side.LEFT: "Align &Left",
    Side.CENTER: "Align &Centers",
    Side.RIGHT: "Align &Right",
    Side.TOP: "Align &Top",
    Side.MIDDLE: "Align &Middles",
    Side.BOTTOM: "Align &Bottom",
}


def _align_actions() -> Iterator[Action[Canvas]]:
    for side, title in SIDES.items():
        yield Action(
            f"edit.align_{side.name.lower()}",
            title,
            "Move the selected layers onto one line",
            partial(Canvas.align, side=side),
            ("Edit/align",),
            (),
            (SEVERAL,),
            on_canvas=True,
        )
    for vertical, title in ((False, "Distribute &Horizontally"), (True, "Distribute &Vertically")):
        yield Action(
            f"edit.distribute_{'vertical' if vertical else 'horizontal'}",
            title,
            "Space the selected layers equally",
            partial(Canvas.distribute, vertical=vertical),
            ("Edit/distribute",),
            (),
            (MANY,),
            on_canvas=True,
        )


CANVAS: tuple[Action[Canvas], ...] = (
    *_align_actions(),
    Action(
        "edit.add",
        "Add &Operator...",
        "Search for an operator and add it at the pointer",
        Canvas.quick_add,
        ("Edit/add", "Canvas/add", "Tools/canvas"),
        ("Space", "Tab", "Shift+A"),
        (DOCUMENT,),
        "plus-box-outline",
        True,
    ),
    Action(
        "edit.frame",
        "Add Comment &Frame",
        "Put a titled frame around the selection",
        Canvas.add_frame,
        ("Edit/add", "Canvas/add"),
        ("C",),
        (DOCUMENT,),
        on_canvas=True,
    ),
    Action(
        "edit.note",
        "Add &Note",
        "Write a note on the canvas",
        Canvas.add_note,
        ("Edit/add", "Canvas/add"),
        ("N",),
        (DOCUMENT,),
        on_canvas=True,
    ),
    Action(
        "edit.cut",
        "Cu&t",
        "Cut the selected layers",
        Canvas.cut_selection,
        ("Edit/clipboard", "Canvas/clipboard"),
        ("Ctrl+X",),
        (SELECTION,),
        "content-cut",
        True,
    ),
    Action(
        "edit.copy",
        "&Copy",
        "Copy the selected layers as text",
        Canvas.copy_selection,
        ("Edit/clipboard", "Canvas/clipboard"),
        ("Ctrl+C",),
        (SELECTION,),
        "content-copy",
        True,
    ),
    Action(
        "edit.paste",
        "&Paste",
        "Paste the copied layers",
        Canvas.paste,
        ("Edit/clipboard", "Canvas/clipboard"),
        ("Ctrl+V",),
        (DOCUMENT, PASTE),
        "content-paste",
        True,
    ),
    Action(
        "edit.paste_linked",
        "Paste &Keeping Links",
        "Paste the copied layers and connect them to the same inputs",
        partial(Canvas.paste, keep_links=True),
        ("Edit/clipboard",),
        ("Ctrl+Shift+V",),
        (DOCUMENT, PASTE),
        on_canvas=True,
    ),
    Action(
        "edit.duplicate",
        "&Duplicate",
        "Duplicate the selected layers",
        Canvas.duplicate_selection,
        ("Edit/clipboard", "Canvas/clipboard"),
        ("Ctrl+D",),
        (SELECTION,),
        "content-duplicate",
        True,
    ),
    Action(
        "edit.duplicate_linked",
        "Duplicate Keeping &Links",
        "Duplicate the selected layers and connect them to the same inputs",
        partial(Canvas.duplicate_selection, keep_links=True),
        ("Edit/clipboard",),
        ("Ctrl+Shift+D",),
        (SELECTION,),
        on_canvas=True,
    ),
    Action(
        "edit.delete",
        "D&elete",
        "Delete the selection",
        Canvas.delete_selection,
        ("Edit/layers", "Canvas/layers"),
        ("Del",),
        (ANYTHING,),
        "delete-outline",
        True,
    ),
    Action(
        "edit.delete_heal",
        "Delete and &Heal Links",
        "Delete the selected layers and connect their inputs to their consumers",
        partial(Canvas.delete_selection, heal=True),
        ("Edit/layers", "Canvas/layers"),
        ("Ctrl+Del",),
        (SELECTION,),
        on_canvas=True,
    ),
    Action(
        "edit.rename",
        "Re&name",
        "Rename the selected layer, or edit the text of the selected frame",
        Canvas.rename_selection,
        ("Edit/layers", "Canvas/layers"),
        ("F2",),
        (ONE,),
        on_canvas=True,
    ),
    Action(
        "edit.bypass",
        "&Bypass",
        "Bypass the selected layers, or stop bypassing them",
        Canvas.bypass_selection,
        ("Edit/layers", "Canvas/layers"),
        ("M",),
        (SELECTION,),
        on_canvas=True,
    ),
    Action(
        "edit.freeze",
        "Free&ze Weights",
        "Keep the weights of the selected layers in training, or train them again",
        Canvas.freeze_selection,
        ("Edit/layers", "Canvas/layers"),
        (),
        (SELECTION,),
        on_canvas=True,
    ),
    Action(
        "edit.connect_to",
        "Connect &To...",
        "Search for an input to connect the selected layer to",
        lambda canvas: canvas.links.connect_to(),
        ("Edit/links", "Canvas/links"),
        ("W",),
        (ONE_LAYER,),
        on_canvas=True,
    ),
    Action(
        "edit.connect_from",
        "Connect &From...",
        "Search for an output that the selected layer reads",
        lambda canvas: canvas.links.connect_from(),
        ("Edit/links", "Canvas/links"),
        ("Shift+W",),
        (ONE_LAYER,),
        on_canvas=True,
    ),
    Action(
        "edit.add_reroute",
        "Add &Reroute Point",
        "Add a reroute point to the selected link (Alt+double-click on a link)",
        lambda canvas: canvas.routes.add(),
        ("Edit/links", "Canvas/links"),
        (),
        (LINK,),
        on_canvas=True,
    ),
    Action(
        "edit.remove_reroute",
        "Remove Reroute P&oint",
        "Remove the reroute point nearest to the pointer (Alt+double-click on a point)",
        lambda canvas: canvas.routes.remove(),
        ("Edit/links", "Canvas/links"),
        (),
        (LINK,),
        on_canvas=True,
    ),
    Action(
        "edit.straighten",
        "&Straighten Link",
        "Remove all reroute points of the link",
        lambda canvas: canvas.routes.straighten(),
        ("Edit/links",),
        (),
        (LINK,),
        on_canvas=True,
    ),
    Action(
        "edit.lay_out",
        "&Lay Out Selection",
        "Arrange the selected layers from left to right",
        Canvas.arrange,
        ("Edit/lay out", "Canvas/arrange"),
        ("L",),
        (SELECTION,),
        on_canvas=True,
    ),
    Action(
        "edit.lay_out_all",
        "Lay O&ut Everything",
        "Arrange the whole network from left to right",
        partial(Canvas.arrange, everything=True),
        ("Edit/lay out",),
        ("Shift+L",),
        (LAYERS,),
        "sitemap-outline",
        True,
    ),
    Action(
        "select.all",
        "&All",
        "Select all layers and collapsed frames",
        Canvas.select_all,
        ("Select/reach",),
        ("Ctrl+A",),
        (LAYERS,),
        on_canvas=True,
    ),
    Action(
        "view.frame_all",
        "Zoom to &Fit",
        "Show the whole network",
        Canvas.frame_all,
        ("View/zoom", "Tools/canvas"),
        ("Home",),
        (LAYERS,),
        "fit-to-screen-outline",
        True,
    ),
    Action(
        "view.frame_selection",
        "Zoom to &Selection",
        "Zoom to the selected layers",
        Canvas.frame_selection,
        ("View/zoom", "Canvas/arrange"),
        ("F",),
        on_canvas=True,
    ),
    Action(
        "view.zoom_in",
        "Zoom &In",
        "Zoom in",
        lambda canvas: canvas.viewer.zoom_by(ZOOM_STEP),
        ("View/zoom",),
        ("Ctrl++", "Ctrl+="),
        icon="magnify-plus-outline",
    ),
    Action(
        "view.zoom_out",
        "Zoom &Out",
        "Zoom out",
        lambda canvas: canvas.viewer.zoom_by(1 / ZOOM_STEP),
        ("View/zoom",),
        ("Ctrl+-",),
        icon="magnify-minus-outline",
    ),
    Action(
        "view.zoom_100",
        "&Actual Size",
        "Show the canvas at 100%",
        lambda canvas: canvas.viewer.zoom_by(1 / canvas.viewer.zoom),
        ("View/zoom",),
        ("Ctrl+0",),
    ),
)

STRUCTURE: tuple[Action[Structure], ...] = (
    Action(
        "edit.collapse",
        "Colla&pse or Expand",
        "Collapse the selected layers and frames to their titles, or expand them",
        Structure.collapse,
        ("Edit/add", "Canvas/layers"),
        ("H",),
        (FOLDABLE,),
        "arrow-collapse",
        True,
    ),
    Action(
        "template.make",
        "&Make Template...",
        "Move the selected layers into a template and replace them with an instance",
        Structure.ask_template,
        ("Templates/make", "Canvas/templates"),
        ("Ctrl+G",),
        (SELECTION,),
        "group",
        True,
    ),
    Action(
        "template.dissolve",
        "&Dissolve Instance",
        "Put copies of the template's layers in the place of the selected instances",
        Structure.dissolve,
        ("Templates/make", "Canvas/templates"),
        ("Ctrl+Shift+G",),
        (INSTANCES,),
        "ungroup",
        True,
    ),
    Action(
        "template.enter",
        "&Enter Template",
        "Open the template of the selected instance (or double-click the instance)",
        Structure.enter,
        ("Templates/enter", "Canvas/templates"),
        ("Return", "Enter"),
        (INSTANCE,),
        "login-variant",
        True,
    ),
    Action(
        "template.leave",
        "&Leave Template",
        "Go back to the level above",
        Structure.leave,
        ("Templates/enter", "Canvas/templates"),
        ("Backspace",),
        (INSIDE,),
        "logout-variant",
        True,
    ),
    Action(
        "template.rename",
        "&Rename Template...",
        "Rename the template",
        Structure.ask_name,
        ("Templates/change",),
        (),
        (TEMPLATE,),
    ),
    Action(
        "template.port_up",
        "Move Port &Up",
        "Move the selected port up in the order of ports; its links follow it",
        lambda structure: structure.move_port(-1),
        ("Templates/change",),
        ("Ctrl+Up",),
        (INSIDE, PORT),
        on_canvas=True,
    ),
    Action(
        "template.port_down",
        "Move Port Dow&n",
        "Move the selected port down in the order of ports; its links follow it",
        lambda structure: structure.move_port(1),
        ("Templates/change",),
        ("Ctrl+Down",),
        (INSIDE, PORT),
        on_canvas=True,
    ),
)

WALKER: tuple[Action[Walker], ...] = (
    Action(
        "select.upstream",
        "&Upstream",
        "Extend the selection to all layers that it depends on",
        Walker.upstream,
        ("Select/reach",),
        ("[",),
        (SELECTION,),
        on_canvas=True,
    ),
    Action(
        "select.downstream",
        "&Downstream",
        "Extend the selection to all layers that depend on it",
        Walker.downstream,
        ("Select/reach",),
        ("]",),
        (SELECTION,),
        on_canvas=True,
    ),
    *_walk_actions(),
)

FINDER: tuple[Action[Finder], ...] = (
    Action(
        "select.find",
        "&Find...",
        "Find layers by name, type, parameter or shape",
        Finder.open,
        ("Select/find",),
        ("Ctrl+F",),
        (LAYERS,),
        "magnify",
    ),
    Action(
        "select.next",
        "Find &Next",
        "Go to the next match",
        Finder.next,
        ("Select/find",),
        ("F3",),
        (LAYERS,),
    ),
    Action(
        "select.previous",
        "Find &Previous",
        "Go to the previous match",
        lambda finder: finder.next(-1),
        ("Select/find",),
        ("Shift+F3",),
        (LAYERS,),
    ),
    Action(
        "select.problem",
        "Next Pro&blem",
        "Go to the next layer with an error or warning",
        Finder.next_problem,
        ("Select/problem",),
        ("F8",),
        (LAYERS,),
    ),
    Action(
        "select.problem_back",
        "Previous Prob&lem",
        "Go to the previous layer with an error or warning",
        lambda finder: finder.next_problem(-1),
        ("Select/problem",),
        ("Shift+F8",),
        (LAYERS,),
    ),
)


def _heat(metric: str, title: str, tip: str) -> Action[HeatOverlay]:
    return Action(
        f"view.heat_{metric or 'none'}",
        title,
        tip,
        partial(HeatOverlay.show_metric, metric=metric),
        ("View/heat",),
        (),
        (DOCUMENT,),
        checked=lambda overlay: overlay.metric == metric,
    )


HEAT: tuple[Action[HeatOverlay], ...] = (
    _heat("", "&None", "Do not color the layers"),
    _heat("time", "&Time", "Color the layers by their time in the run that the Profile workspace shows"),
    _heat("flops", "&FLOPs", "Color the layers by their operations"),
    _heat("memory", "&Memory Traffic", "Color the layers by the bytes that they move"),
    _heat("roof", "&Distance from the Roof", "Color the layers by their time relative to the time at the roofline"),
    _heat("difference", "D&ifference of Runs", "Color the layers by the difference of the two runs that are compared"),
    Action(
        "view.critical_path",
        "&Critical Path",
        "Draw a line through the chain of dependent layers that takes the longest",
        HeatOverlay.toggle_critical_path,
        ("View/critical path",),
        (),
        (DOCUMENT,),
        checked=lambda overlay: overlay.critical,
    ),
)

ACTIONS: tuple[ActionGroup[Any], ...] = (
    ActionGroup(Canvas, CANVAS),
    ActionGroup(Structure, STRUCTURE),
    ActionGroup(Walker, WALKER),
    ActionGroup(Finder, FINDER),
    ActionGroup(SavedViews, tuple(_view_actions())),
    ActionGroup(HeatOverlay, HEAT),
)
