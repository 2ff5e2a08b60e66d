"""Finds plugins: modules of a library folder, entry points of packages, files of the plugin folder."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from designer.graph.diagnostics import Diagnostic, Severity
from designer.texts import tr

Plugin = tuple[str, Callable[[], object]]  # its origin, and a function that imports it


def walk(package: str) -> Iterator[ModuleType]:
    """Every module of a package and its sub-packages, imported, in name order."""
    root = importlib.import_module(package)
    yield root
    for info in sorted(pkgutil.walk_packages(root.__path__, f"{package}."), key=lambda i: i.name):
        yield importlib.import_module(info.name)


def entry_points(group: str) -> Iterator[Plugin]:
    """The entry points of installed packages for `group`, in name order."""
    for point in sorted(metadata.entry_points(group=group), key=lambda p: p.name):
        yield point.value, point.load


def plugin_files(folders: Iterable[Path]) -> Iterator[Plugin]:
    """Every `.py` file of `folders`, in name order."""
    for folder in folders:
        for path in sorted(folder.glob("*.py")) if folder.is_dir() else ():
            exposed = next(_exposed(path), None)
            yield str(path), partial(_import_file, path) if exposed is None else partial(_refuse, exposed)


def _exposed(path: Path) -> Iterator[str]:
    """Why other users could change or replace a file: rights of it, of its folder, and of the folders and links on the way to it.

    In a sticky folder such as /tmp only owners replace what is there.
    """
    if os.name != "posix":
        return
    real = path.resolve()
    near = {path, path.parent, real, real.parent}
    for place in dict.fromkeys((path, *path.absolute().parents, real, *real.parents)):
        mode = place.stat().st_mode
        if not mode & stat.S_IWOTH:
            continue
        if place in near or not mode & stat.S_ISVTX:
            yield tr("every user can write to {place}; remove that permission: chmod o-w", place=place)
        for way in (path.absolute(), real):
            inside = next((part for part in way.parents if part.parent == place), None)
            if inside is not None and inside.lstat().st_uid not in (0, os.geteuid()):
                yield tr("{place} belongs to another user; make it yours: chown", place=inside)


def _refuse(why: str) -> object:
    """Raise PermissionError: a file that other users can change is not run with the permissions of this user."""
    raise PermissionError(why)


def load_each(plugins: Iterable[Plugin], take: Callable[[Any], object]) -> list[Diagnostic]:
    """Load plugins and pass each to `take`. Any exception becomes a warning that names the plugin."""
    found = []
    for where, load in plugins:
        try:
            take(load())
        except (Exception, SystemExit) as error:  # a broken plugin must not stop the program
            found.append(_broken(where, error))
    return found


def plugin_folder() -> Path:
    """The folder of the user's plugins. Every `.py` file in it is loaded when the program starts."""
    try:
        from platformdirs import user_data_path
    except ImportError:  # the GPU check requires only torch and numpy
        return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "layerwright" / "plugins"
    return user_data_path("layerwright") / "plugins"


def _import_file(path: Path) -> ModuleType:
    """Import a file, once for its operators and engines."""
    name = f"layerwright_plugin_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(path):
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _broken(where: str, error: BaseException) -> Diagnostic:
    return Diagnostic(
        "broken-plugin",
        tr(
            "the plugin {where} could not be loaded: {name}: {error}",
            where=where,
            name=type(error).__name__,
            error=error,
        ),
        Severity.WARNING,
        remedy=tr("fix or remove it, then restart"),
    )
