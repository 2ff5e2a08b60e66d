"""The canvas: the only folder that imports NodeGraphQt.

The graph owns the truth. `projection.py` turns ChangeSets into items, `viewer.py` turns gestures into requests, and
`canvas.py` hands the requests to the document. NodeGraphQt's own undo, clipboard, sessions and property windows are
never used; its private mouse and key handlers are overridden, and each overridden gesture has a test with real events.
"""

import os

# Qt.py, the shim that NodeGraphQt imports Qt through, chooses its binding when it is imported first.
os.environ.setdefault("QT_PREFERRED_BINDING", "PySide6")
