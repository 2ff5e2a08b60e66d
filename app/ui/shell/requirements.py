"""What actions need before they can be done, and the sentence that says why they cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


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
    instances: int = 0  # selected instances of templates
    ports: int = 0  # selected ports of the template that is shown
    inside: bool = False  # a template is shown
    template: bool = False  # a template is at hand: selected, or shown
    moving: bool = False  # an input is a folder, a video or a camera
    ends: bool = False  # an input is a folder or a video
    tabs: int = 0  # open documents
    closed: int = 0  # documents that were closed and can be opened again


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
    "link": Requirement(lambda s: s.selected_links == 1, "select exactly one link"),
    "paste": Requirement(lambda s: s.can_paste, "the clipboard holds no layers"),
    "undo": Requirement(lambda s: s.undo is not None, "nothing was changed yet"),
    "redo": Requirement(lambda s: s.redo is not None, "nothing was undone"),
    "tabs": Requirement(lambda s: s.tabs > 1, "no other network is open"),
    "closed": Requirement(lambda s: s.closed > 0, "no document was closed yet"),
    "valid": Requirement(lambda s: s.errors == 0, "the network has errors: see Type Checking"),
    "idle": Requirement(lambda s: not s.busy, "another run is going on"),
    "busy": Requirement(lambda s: s.busy, "nothing is running"),
    "instance": Requirement(
        lambda s: s.selected == s.instances == 1, "select one instance of a template: no other layer has an inside"
    ),
    "instances": Requirement(lambda s: s.instances > 0, "no instance of a template is selected"),
    "inside": Requirement(lambda s: s.inside, "the whole network is shown, not the inside of a template"),
    "template": Requirement(lambda s: s.template, "no instance of a template is selected, and none is shown"),
    "port": Requirement(
        lambda s: s.selected == s.ports == 1,
        "select one port of the template that is shown (template_input or _output)",
    ),
    "folds": Requirement(lambda s: s.selected + s.selected_frames > 0, "no layer and no frame is selected"),
    "moving": Requirement(lambda s: s.moving, "no input is a folder, a video or a camera: choose one in Analysis"),
    "ends": Requirement(lambda s: s.ends, "no input is a folder or a video: choose one in Analysis"),
}
