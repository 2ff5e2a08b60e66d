"""Actions on files, tabs, exports, workspaces and display options."""

from __future__ import annotations

from functools import partial
from typing import Any

from app.ui.canvas.link_paths import ANGLED, CURVED
from app.ui.canvas.node_metrics import FLOPS, MEMORY, PARAMETERS, SHAPES
from app.ui.shell.docks import Docks
from app.ui.shell.export.exports import Exports
from app.ui.shell.files import Files
from app.ui.shell.layouts import Layouts
from app.ui.shell.panels import ANALYSIS, DESIGN, PROFILE, TRAIN
from app.ui.shell.tabs import Tabs
from app.ui.shell.view_options import ViewOptions
from app.ui.widgets.action import DOCUMENT, LAYERS, VALID, Action, ActionGroup, Need

TABS = Need(lambda s: s.tabs > 1, "no other network is open")
CLOSED = Need(lambda s: s.closed > 0, "no document has been closed")
FRAMES = Need(lambda s: s.ends, "no input is a folder or a video. Choose one in Analysis")

_STARTING_POINTS = {
    "denoiser": ("&Denoiser", "A small U-Net that removes noise from images"),
    "residual_unet": ("&Residual U-Net", "A U-Net of residual blocks that predicts a correction of the image"),
    "dncnn": ("Dn&CNN", "A denoiser at full resolution that predicts the noise"),
    "upscaler_x2": ("&Upscaler x2", "A network that doubles width and height of images"),
    "segmenter": ("&Segmenter", "An encoder and decoder that classifies every pixel"),
    "digit_classifier": ("Digit C&lassifier", "Convolutions and fully connected layers for images of digits"),
    "vision_transformer": ("&Vision Transformer", "A small transformer that classifies images by their patches"),
    "autoencoder": ("&Autoencoder", "A network that compresses images and reconstructs them"),
}

_FILES: tuple[Action[Files], ...] = (
    *(
        Action(f"file.new_{name}", title, tip, partial(Files.new_from, name=name), ("File/new from",))
        for name, (title, tip) in _STARTING_POINTS.items()
    ),
    Action(
        "file.new",
        "&New",
        "Create an empty network",
        Files.new,
        ("File/new", "Tools/file"),
        ("Ctrl+N",),
        icon="file-plus-outline",
    ),
    Action(
        "file.open",
        "&Open...",
        "Open networks, ONNX models, checkpoints and exported programs",
        Files.ask_open,
        ("File/open", "Tools/file"),
        ("Ctrl+O",),
        icon="folder-open-outline",
    ),
    Action(
        "file.import_module",
        "&PyTorch Module...",
        "Import a torch.nn.Module from a Python file or package, after reviewing its code",
        Files.import_module,
        ("File/import",),
    ),
    Action(
        "file.reopen",
        "Reopen &Closed Document",
        "Reopen the document closed last",
        Files.reopen,
        ("File/reopen",),
        ("Ctrl+Shift+T",),
        (CLOSED,),
    ),
    Action(
        "file.save",
        "&Save",
        "Save the network",
        Files.save,
        ("File/save", "Tools/file"),
        ("Ctrl+S",),
        (DOCUMENT,),
        "content-save-outline",
    ),
    Action(
        "file.save_as",
        "Save &As...",
        "Save the network under another name",
        Files.save_as,
        ("File/save",),
        ("Ctrl+Shift+S",),
        (DOCUMENT,),
    ),
    Action(
        "file.close",
        "&Close",
        "Close the current document",
        Files.close,
        ("File/close",),
        ("Ctrl+W",),
        (DOCUMENT,),
    ),
)

_TABS: tuple[Action[Tabs], ...] = (
    Action(
        "tab.next",
        "&Next Document",
        "Show the next tab",
        partial(Tabs.step, by=1),
        ("View/documents",),
        ("Ctrl+Tab",),
        (TABS,),
    ),
    Action(
        "tab.previous",
        "&Previous Document",
        "Show the previous tab",
        partial(Tabs.step, by=-1),
        ("View/documents",),
        ("Ctrl+Shift+Tab",),
        (TABS,),
    ),
)

_EXPORTS: tuple[Action[Exports], ...] = (
    Action(
        "export.pytorch",
        "Generate PyTorch &Files...",
        "Generate a PyTorch project with model, training and inference code",
        Exports.pytorch,
        ("File/export",),
        ("Ctrl+E",),
        (DOCUMENT, LAYERS, VALID),
        "export-variant",
    ),
    Action(
        "export.onnx",
        "Export &ONNX...",
        "Export the network and its weights as an ONNX model",
        Exports.onnx,
        ("File/export",),
        (),
        (DOCUMENT, LAYERS, VALID),
    ),
    Action(
        "export.deploy",
        "Export &Deployment Folder...",
        "Export the network with code that runs it in Python, C++ and Triton",
        Exports.deploy,
        ("File/export",),
        (),
        (DOCUMENT, LAYERS, VALID),
    ),
    Action(
        "export.tensorrt",
        "Export &TensorRT Engine...",
        "Build a TensorRT engine of the network and list its layers",
        Exports.tensorrt,
        ("File/export",),
        (),
        (DOCUMENT, LAYERS, VALID),
    ),
    Action(
        "export.picture",
        "Export &Image...",
        "Export a drawing of the network as PNG, SVG or PDF",
        Exports.picture,
        ("File/export",),
        ("Ctrl+Shift+E",),
        (DOCUMENT, LAYERS),
        "image-outline",
    ),
    Action(
        "file.print",
        "P&rint to PDF...",
        "Print a drawing of the network to a PDF page",
        partial(Exports.picture, suffix=".pdf"),
        ("File/print",),
        (),
        (DOCUMENT, LAYERS),
    ),
    Action(
        "analysis.export_video",
        "Export &Video...",
        "Run the network on every frame of the input and write a video or a folder of images",
        Exports.video,
        ("Analysis/export",),
        (),
        (DOCUMENT, LAYERS, VALID, FRAMES),
        "export-variant",
    ),
)

_DOCKS: tuple[Action[Docks], ...] = (
    Action(
        "tools.network_settings",
        "&Network Settings",
        "Show engine, device, precision and weights of the network",
        partial(Docks.show, name="network_settings"),
        ("Panels/open",),
        (),
        (),
        "cog-outline",
    ),
    Action(
        "tools.type_checking",
        "&Type Checking",
        "Show the problems of the network, with fixes",
        partial(Docks.show, name="type_checking"),
        ("Panels/open",),
    ),
    Action(
        "tools.run_logger",
        "&Inference Run Logger",
        "Show the profiled runs",
        partial(Docks.show, name="run_logger"),
        ("Panels/open",),
    ),
    Action(
        "workspace.design",
        "&Design",
        "Layer Palette, parameters, problems and code",
        partial(Docks.set_workspace, name=DESIGN),
        ("Workspaces/choose",),
        ("Alt+1",),
    ),
    Action(
        "workspace.analysis",
        "&Analysis",
        "Input, output and the feature maps of every layer",
        partial(Docks.set_workspace, name=ANALYSIS),
        ("Workspaces/choose",),
        ("Alt+2",),
    ),
    Action(
        "workspace.profile",
        "&Profile",
        "Profiled runs, operators and utilization",
        partial(Docks.set_workspace, name=PROFILE),
        ("Workspaces/choose",),
        ("Alt+3",),
    ),
    Action(
        "workspace.train",
        "&Train",
        "Training settings and code",
        partial(Docks.set_workspace, name=TRAIN),
        ("Workspaces/choose",),
        ("Alt+4",),
    ),
    Action(
        "view.reset_layout",
        "&Reset Workspace",
        "Restore the default panel layout of this workspace",
        Docks.arrange,
        ("Workspaces/layout",),
    ),
)

_LAYOUTS: tuple[Action[Layouts], ...] = (
    Action(
        "view.save_layout",
        "&Save Layout...",
        "Save the current panel layout under a name",
        Layouts.ask_name,
        ("Workspaces/layout",),
    ),
)


def _links(style: str, title: str, tip: str) -> Action[ViewOptions]:
    return Action(
        f"view.links_{style}",
        title,
        tip,
        partial(ViewOptions.show_links, style=style),
        ("View/links",),
        checked=lambda options: options.links == style,
    )


def _figure(name: str, title: str, tip: str) -> Action[ViewOptions]:
    return Action(
        f"view.figure_{name}",
        title,
        tip,
        partial(ViewOptions.show_figure, name=name),
        ("View/on nodes",),
        checked=lambda options: options.figure == name,
    )


_VIEW: tuple[Action[ViewOptions], ...] = (
    _links(CURVED, "&Curved", "Draw links as curves"),
    _links(ANGLED, "&Right Angles", "Draw links with horizontal and vertical segments"),
    _figure(SHAPES, "&Shapes", "Show the output shape under each node"),
    _figure(PARAMETERS, "&Parameters", "Show the number of parameters under each node"),
    _figure(FLOPS, "&FLOPs", "Show the FLOPs for batch size 1 under each node"),
    _figure(MEMORY, "&Memory", "Show the memory of weights and outputs under each node"),
    Action(
        "view.minimap",
        "&Minimap",
        "Show or hide the minimap of the canvas",
        ViewOptions.toggle_minimap,
        ("View/minimap",),
        icon="map-outline",
        checked=lambda options: options.minimap,
    ),
    Action(
        "view.theme_system",
        "&System",
        "Follow the light or dark theme of the desktop",
        partial(ViewOptions.set_theme, mode="system"),
        ("View/theme",),
        checked=lambda options: options.theme_mode == "system",
    ),
    Action(
        "view.theme_dark",
        "&Dark",
        "Use the dark theme",
        partial(ViewOptions.set_theme, mode="dark"),
        ("View/theme",),
        checked=lambda options: options.theme_mode == "dark",
    ),
    Action(
        "view.theme_light",
        "&Light",
        "Use the light theme",
        partial(ViewOptions.set_theme, mode="light"),
        ("View/theme",),
        checked=lambda options: options.theme_mode == "light",
    ),
)

ACTIONS: tuple[ActionGroup[Any], ...] = (
    ActionGroup(Files, _FILES),
    ActionGroup(Tabs, _TABS),
    ActionGroup(Exports, _EXPORTS),
    ActionGroup(Layouts, _LAYOUTS),
    ActionGroup(Docks, _DOCKS),
    ActionGroup(ViewOptions, _VIEW),
)
