"""The command line. Each command is a thin layer over the parts that the window uses, independent of Qt."""

from __future__ import annotations

import typer

from app.cli.check import check
from app.cli.compare import compare
from app.cli.console import err, of_the_system, show
from app.cli.desktop_entry import desktop_entry
from app.cli.documents import convert, diff
from app.cli.export import export
from app.cli.import_ import import_model
from app.cli.library import engines, operators, samples
from app.cli.profile import profile
from app.cli.run import run, video
from app.cli.sizes import sizes
from app.cli.tour import tour
from designer.graph.diagnostics import DiagnosticError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
for command in (
    check,
    sizes,
    run,
    video,
    profile,
    compare,
    tour,
    convert,
    operators,
    engines,
    diff,
    samples,
    desktop_entry,
):
    app.command()(command)
app.command("import")(import_model)
app.add_typer(export, name="export")


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
