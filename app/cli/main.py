"""The command line. Each command is a thin layer over the parts that the window uses, independent of Qt."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from app.cli.console import err, of_the_system, show
from designer.graph.diagnostics import DiagnosticError

# The module of each command, its name there, and its summary. A module is imported when its command is used.
COMMANDS = {
    "check": (
        "app.cli.check",
        "check",
        "Check a network: print problems, totals and shapes. Exit status 1 if there are errors.",
    ),
    "sizes": (
        "app.cli.sizes",
        "sizes",
        "Print the valid heights and widths of each input, and the layers that cause the rules. Exit status 1 if no size works.",
    ),
    "run": (
        "app.cli.run",
        "run",
        "Run a network on images or .npy tensors, or on every image of folders and videos. Folders are resumed.",
    ),
    "video": (
        "app.cli.run",
        "video",
        "Run a network on a video or a folder of images, frame by frame. Sound is dropped.",
    ),
    "profile": (
        "app.cli.profile",
        "profile",
        "Time every operator and compare it with the machine's peak performance.",
    ),
    "compare": (
        "app.cli.compare",
        "compare",
        "Compare networks on the same images with the same noise: PSNR and SSIM relative to the clean images.",
    ),
    "precision": (
        "app.cli.precision",
        "precision",
        "Convert a network to a smaller number format, judged on your own images, and write an ONNX file.",
    ),
    "blame": (
        "app.cli.blame",
        "blame",
        "Find the operators that cause the difference between two computations of a network, and the first that deviates.",
    ),
    "train": (
        "app.cli.train",
        "train",
        "Export a network as a PyTorch project and train it in a process of its own.",
    ),
    "follow": (
        "app.cli.train",
        "follow",
        "Follow a run on another machine again: copy its files until it ends, and pass on pause and stop.",
    ),
    "sweep": (
        "app.cli.sweep",
        "sweep",
        "Train a network with every combination of settings, noise levels or widths of layers.",
    ),
    "passes": (
        "app.cli.passes",
        "passes",
        "Apply graph passes to a network, such as folding batch normalizations, and print what each saves.",
    ),
    "tour": (
        "app.cli.tour",
        "tour",
        "Run the whole workflow without a window: design, export, train, reload, run, inspect. Writes an HTML page.",
    ),
    "convert": (
        "app.cli.documents",
        "convert",
        "Open a model file and save it under another name or format, like Save As.",
    ),
    "operators": ("app.cli.library", "operators", "List the operators with their parameters."),
    "engines": (
        "app.cli.library",
        "engines",
        "List the engines that can run a network, and why any of them is unavailable.",
    ),
    "diff": (
        "app.cli.documents",
        "diff",
        "Print what was added, removed, renamed and changed between two networks. Exit status 1 if they differ.",
    ),
    "samples": (
        "app.cli.library",
        "samples",
        "List the included samples, and the starting points, which have no weights.",
    ),
    "desktop-entry": (
        "app.cli.desktop_entry",
        "desktop_entry",
        "Add Layerwright to the menu of a Linux desktop, with its icon and the file type of networks.",
    ),
    "import": (
        "app.cli.import_",
        "import_model",
        "Import a model as a document with its weights. Exit status 1 if it computes something else than the original.",
    ),
    "prune": (
        "app.cli.prune",
        "prune",
        "Prune weights to 2:4 sparsity. Without --output only check them: exit status 1 if they are not sparse.",
    ),
    "engine-layers": (
        "app.cli.export",
        "engine_layers",
        "List the layers of a TensorRT engine that this program built: precisions, and the layers of the network in each.",
    ),
    "export": ("app.cli.export", "export", "Export a network to another format."),
}


class CommandGroup(TyperGroup):
    """The commands in COMMANDS. Only the help of the program shows them without importing them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=summary) for name, (*_, summary) in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, load_command(str(name)), rest


def load_command(name: str) -> Any:
    """The command of a name in COMMANDS, with its arguments and options."""
    module, attribute, _ = COMMANDS[name]
    found = getattr(import_module(module), attribute)
    if not isinstance(found, typer.Typer):
        single = typer.Typer(add_completion=False)
        single.command(name)(found)
        found = single
    command = typer.main.get_command(found)
    command.name = name
    return command


app = typer.Typer(
    cls=CommandGroup, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__
)
app.callback()(lambda: None)


def main() -> None:
    """Run the command line. Exit status 1 for diagnostics, 2 for invalid arguments."""
    try:
        app()
    except DiagnosticError as error:
        show(error.diagnostics)
        raise SystemExit(1) from None
    except BrokenPipeError:
        raise SystemExit(1) from None  # the reader of our output has closed the pipe
    except (OSError, MemoryError) as error:
        show((of_the_system(error),))
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        err.print("stopped")
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
