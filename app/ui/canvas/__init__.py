"""The canvas: the only package that imports NodeGraphQt.

The graph is the single source of truth. `projection.py` turns ChangeSets into items, `viewer.py` turns gestures into requests,
and `canvas.py` commits the requests to the document. NodeGraphQt's own undo, clipboard, sessions and property windows are
never used; its private mouse and key handlers are overridden, and each overridden gesture has a test with real events.
"""

import sys
from types import ModuleType, SimpleNamespace

from PySide6 import QtCore, QtGui, QtWidgets


class _LooseVersion:
    """The part of distutils' class that NodeGraphQt uses: comparing versions of Qt."""

    def __init__(self, text: str) -> None:
        self._numbers = tuple(int(part) for part in text.split(".") if part.isdigit())

    def __ge__(self, other: "_LooseVersion") -> bool:
        return self._numbers >= other._numbers


class _Widgets(ModuleType):
    """QtWidgets with the classes that Qt 6 moved to QtGui (QAction, QUndoStack ...) at their old location."""

    def __getattr__(self, name: str) -> object:
        found = getattr(QtWidgets, name, None)
        if found is None:
            found = getattr(QtGui, name)
        setattr(self, name, found)
        return found


def _shims() -> dict[str, ModuleType]:
    """Minimal replacements for distutils and Qt.py, with only what NodeGraphQt uses.

    Python 3.12 removed distutils, and setuptools replaces it elsewhere. Qt.py loads all Qt libraries.
    Together, the real modules would take a fifth of the startup time.
    """
    package, version, shim = ModuleType("distutils"), ModuleType("distutils.version"), ModuleType("Qt")
    version.LooseVersion = _LooseVersion  # type: ignore[attr-defined]
    package.version = version  # type: ignore[attr-defined]
    from PySide6 import QtSvg

    header = SimpleNamespace(setSectionResizeMode=QtWidgets.QHeaderView.setSectionResizeMode)
    shim.__dict__.update(
        QtCore=QtCore,
        QtGui=QtGui,
        QtSvg=QtSvg,
        QtWidgets=_Widgets("Qt.QtWidgets"),
        QtCompat=SimpleNamespace(QHeaderView=header),
        IsPySide2=False,
        IsPyQt5=False,
    )
    return {module.__name__: module for module in (package, version, shim)}


def _import_library() -> None:
    """Import NodeGraphQt with the shims in `sys.modules`, then restore the real modules."""
    made = _shims()
    before = {name: sys.modules[name] for name in made if name in sys.modules}
    sys.modules.update(made)
    try:
        import NodeGraphQt  # noqa: F401
    finally:
        for name in made:
            del sys.modules[name]
        sys.modules.update(before)


_import_library()
