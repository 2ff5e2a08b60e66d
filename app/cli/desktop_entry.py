"""`layerwright desktop-entry`: menu entry, icon and file type on Linux desktops."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from app.cli.console import out
from app.process import module_command
from designer.graph.diagnostics import Diagnostic, DiagnosticError

# The files in resources/desktop, and where the desktop looks for them in the user's data folder.
FILES = {
    "layerwright.desktop": "applications",
    "layerwright.svg": "icons/hicolor/scalable/apps",
    "layerwright.xml": "mime/packages",
}
# Tools that rebuild the desktop's caches: the folder that each reads, and its Debian package.
TOOLS = {
    "update-mime-database": ("mime", "shared-mime-info"),
    "update-desktop-database": ("applications", "desktop-file-utils"),
}


def desktop_entry(
    install: Annotated[bool, typer.Option("--install/--uninstall", help="Add it for this user, or remove it.")],
) -> None:
    """Add Layerwright to the menu of a Linux desktop, with its icon and the file type of networks."""
    from platformdirs import user_data_path

    if not sys.platform.startswith("linux"):
        raise DiagnosticError(
            Diagnostic(
                "no-desktop-entry",
                f"desktop entries exist only on Linux, but this system is {sys.platform}",
                remedy="start the program with the command layerwright",
            )
        )
    share = user_data_path()
    for name, folder in FILES.items():
        path = share / folder / name
        if install:
            _write(path)
            out.print(f"wrote {path}", highlight=False)
        elif path.exists():
            path.unlink()
            out.print(f"removed {path}", highlight=False)
    for tool, (folder, package) in TOOLS.items():
        out.print(_refreshed(tool, share / folder, package), highlight=False, end="")


def _write(path: Path) -> None:
    import resources
    from designer.files.atomic import write_atomic

    text = (Path(resources.__file__).parent / "desktop" / path.name).read_text("utf-8")
    if path.suffix == ".desktop":
        command = " ".join(_quoted(argument) for argument in _start_command())
        text = text.replace("Exec=layerwright ", f"Exec={command} ")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.encode())


def _start_command() -> list[str]:
    """The command line of the running installed script, or of this Python with our module."""
    script = Path(sys.argv[0])
    if script.name in ("layerwright", "layerwright-gui") and script.is_file():
        return [str(script.absolute())]
    return module_command("app.main")


def _quoted(argument: str) -> str:
    """Quote an argument for the key Exec.

    Follows https://specifications.freedesktop.org/desktop-entry-spec/latest/exec-variables.html: reserved characters are
    quoted, then backslashes are doubled as in every value, and percent signs because they start field codes.
    """
    if re.search(r"""[\s"'\\><~|&;$*?#()`]""", argument):
        argument = '"' + re.sub(r'(["`$\\])', r"\\\1", argument) + '"'
    return argument.replace("\\", "\\\\").replace("%", "%%")


def _refreshed(tool: str, folder: Path, package: str) -> str:
    """Rebuild a cache of the desktop. Returns a line of text about a failure, else an empty one."""
    if not folder.is_dir():
        return ""
    if shutil.which(tool) is None:
        return (
            f"{tool} is not installed: the desktop may show the change only after the next login (Debian: {package})\n"
        )
    done = subprocess.run([tool, str(folder)], capture_output=True, text=True, check=False)
    return f"{tool} failed: {done.stderr.strip()}\n" if done.returncode else ""
