"""The canvas: the only folder that imports NodeGraphQt.

The graph owns the truth. `projection.py` turns ChangeSets into items, `viewer.py` turns gestures into requests, and
`canvas.py` hands the requests to the document. NodeGraphQt's own undo, clipboard, sessions and property windows are
never used; its private mouse and key handlers are overridden, and each overridden gesture has a test with real events.
"""

import os
import sys
from types import ModuleType


class _LooseVersion:
    """As much of distutils' class as NodeGraphQt uses: comparing versions of Qt."""

    def __init__(self, text: str) -> None:
        self._numbers = tuple(int(part) for part in text.split(".") if part.isdigit())

    def __ge__(self, other: "_LooseVersion") -> bool:
        return self._numbers >= other._numbers


def _import_library() -> None:
    """Import NodeGraphQt with a stand-in for `distutils.version`, of which it wants one class.

    The real one is gone from Python 3.12, and elsewhere setuptools puts itself in its place: a tenth of the start's time.
    """
    # Qt.py, the shim that NodeGraphQt imports Qt through, chooses its binding when it is imported first.
    os.environ.setdefault("QT_PREFERRED_BINDING", "PySide6")
    names = ("distutils", "distutils.version")
    before = {name: sys.modules[name] for name in names if name in sys.modules}
    package, version = ModuleType(names[0]), ModuleType(names[1])
    version.LooseVersion = _LooseVersion  # type: ignore[attr-defined]
    package.version = version  # type: ignore[attr-defined]
    sys.modules.update({names[0]: package, names[1]: version})
    try:
        import NodeGraphQt  # noqa: F401
    finally:
        for name in names:
            del sys.modules[name]
        sys.modules.update(before)


_import_library()
