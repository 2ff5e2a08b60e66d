"""Everything a person can ask the window for, as data: titles, shortcuts, tooltips and reasons.

An action names the requirements it has; one that does not hold disables it, and its reason stands in the tooltip.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


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
    Spec("file.new_window", "New &Window", "Open another window", ("Ctrl+Shift+N",)),
    Spec("file.open", "&Open...", "Open model files", ("Ctrl+O",), icon="folder-open-outline"),
    Spec("file.close", "&Close", "Close the document that is shown", ("Ctrl+W",), ("document",)),
    Spec("file.reopen", "Reopen Close&d", "Open again what was closed last", ("Ctrl+Shift+T",), ("closed",)),
    Spec("tab.next", "&Next Document", "Show the next tab", ("Ctrl+Tab",), ("tabs",)),
    Spec("tab.previous", "&Previous Document", "Show the tab before", ("Ctrl+Shift+Tab",), ("tabs",)),
    Spec("file.save", "&Save", "Save the network", ("Ctrl+S",), ("document",), "content-save-outline"),
    Spec("file.save_as", "Save &As...", "Save under another name", ("Ctrl+Shift+S",), ("document",)),
    Spec(
        "file.compare",
        "&Compare With...",
        "See what was added, removed and changed since the saved version, or against another document",
        (),
        ("document",),
        "compare",
    ),
    Spec(
        "export.pytorch",
        "Generate PyTorch &Files...",
        "Write a PyTorch project with model, training and inference",
        ("Ctrl+E",),
        ("document", "layers", "valid"),
        "export-variant",
    ),
    Spec("export.onnx", "&ONNX Model...", "Write the network with its weights", (), ("document", "layers", "valid")),
    Spec(
        "export.picture",
        "&Picture...",
        "The network as PNG at any size, as SVG or as PDF",
        ("Ctrl+Shift+E",),
        ("document", "layers"),
        "image-outline",
    ),
    Spec("file.print", "P&rint to PDF...", "The network on a page of paper", (), ("document", "layers")),
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
    Spec(
        "edit.collapse",
        "Colla&pse or Expand",
        "Show of the selected layers and frames the titles alone, or everything again",
        ("H",),
        ("folds",),
        "arrow-collapse",
        True,
    ),
    Spec(
        "template.make",
        "&Make Template...",
        "Move the selected layers into a template and put an instance in their place",
        ("Ctrl+G",),
        ("selection",),
        "group",
        True,
    ),
    Spec(
        "template.dissolve",
        "&Dissolve Instance",
        "Put copies of the template's layers in the place of the selected instances",
        ("Ctrl+Shift+G",),
        ("instances",),
        "ungroup",
        True,
    ),
    Spec(
        "template.enter",
        "&Enter Template",
        "Show the inside of the selected instance (double-click does it too)",
        ("Return", "Enter"),
        ("instance",),
        "login-variant",
        True,
    ),
    Spec(
        "template.leave",
        "&Leave Template",
        "Show what is around the template",
        ("Backspace",),
        ("inside",),
        "logout-variant",
        True,
    ),
    Spec("template.rename", "&Rename Template...", "Give the template another name", (), ("template",)),
    Spec(
        "template.port_up",
        "Move Port &Up",
        "Give the selected port an earlier place among the ports; links stay with their ports",
        ("Ctrl+Up",),
        ("inside", "port"),
        on_canvas=True,
    ),
    Spec(
        "template.port_down",
        "Move Port Dow&n",
        "Give the selected port a later place among the ports; links stay with their ports",
        ("Ctrl+Down",),
        ("inside", "port"),
        on_canvas=True,
    ),
    *_walking(),
    Spec(
        "edit.add_reroute",
        "Add &Reroute Point",
        "Let the selected link run through a point (Alt and double click on a link)",
        (),
        ("link",),
        on_canvas=True,
    ),
    Spec(
        "edit.remove_reroute",
        "Remove Reroute P&oint",
        "Remove the point that is nearest to the pointer (Alt and double click on a point)",
        (),
        ("link",),
        on_canvas=True,
    ),
    Spec("edit.straighten", "&Straighten Link", "Remove all points of the link", (), ("link",), on_canvas=True),
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
        "Search an operator and add it at the pointer",
        ("Space", "Tab", "Shift+A"),
        ("document",),
        "plus-box-outline",
        True,
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
    Spec("view.links_curved", "&Curved", "Draw links as curves"),
    Spec("view.links_angled", "&Right Angles", "Draw links with horizontal and vertical pieces"),
    Spec("view.figure_shapes", "&Shapes", "Write the output's shape under each node"),
    Spec("view.figure_parameters", "&Parameters", "Write the number of learned values under each node"),
    Spec("view.figure_flops", "&Work", "Write the work for a batch of one under each node"),
    Spec("view.figure_memory", "&Memory", "Write the bytes of weights and outputs under each node"),
    Spec("view.minimap", "&Minimap", "Show or hide the map in the corner of the canvas", icon="map-outline"),
    Spec("view.theme_system", "As the &System", "Follow the desktop's light or dark colours"),
    Spec("view.theme_dark", "&Dark", "Dark colours"),
    Spec("view.theme_light", "&Light", "Light colours"),
    Spec("view.reset_layout", "&Reset This Workspace", "Put the windows back where they were at first"),
    Spec("view.save_layout", "&Save Layout...", "Keep how the windows stand under a name"),
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
    Spec(
        "analysis.side_by_side",
        "&Compare Side by Side...",
        "Networks, weights and engines on the same picture with the same noise",
        ("Ctrl+Shift+B",),
        ("document", "layers"),
        "compare-horizontal",
    ),
    Spec(
        "analysis.report",
        "&Report...",
        "Write what the analysis shows as a page with its pictures inside",
        ("Ctrl+Shift+R",),
        ("document", "layers"),
        "text-box-outline",
    ),
    Spec(
        "analysis.play", "&Play or Pause", "Play the folders, videos and cameras", ("Ctrl+Space",), ("moving",), "play"
    ),
    Spec(
        "analysis.next",
        "&Next Picture",
        "The next picture or frame of the inputs",
        ("Alt+PgDown",),
        ("moving",),
        "step-forward",
    ),
    Spec(
        "analysis.previous",
        "Pre&vious Picture",
        "The picture or frame before",
        ("Alt+PgUp",),
        ("moving",),
        "step-backward",
    ),
    Spec(
        "analysis.export_video",
        "Export &Video...",
        "Put every frame of the input through the network, into a video or a folder",
        (),
        ("document", "layers", "valid", "ends"),
        "export-variant",
    ),
    Spec("workspace.design", "&Design", "Palette, parameters, problems and code", ("Alt+1",)),
    Spec("workspace.analysis", "&Analysis", "Pictures: input, output and every channel", ("Alt+2",)),
    Spec("workspace.profile", "&Profile", "Runs, operators and utilisation", ("Alt+3",)),
    Spec("workspace.train", "&Train", "Settings and code for training", ("Alt+4",)),
    Spec("help.commands", "&Commands...", "Find any action by its name", ("Ctrl+P",), icon="format-list-bulleted"),
    Spec("help.shortcuts", "&Shortcuts", "All shortcuts and gestures", ("F1",), icon="keyboard-outline"),
    Spec("help.about", "&About Layerwright", "Version and licence", icon="information-outline"),
)
