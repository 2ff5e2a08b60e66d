"""A made-up language, and a reader of windows that finds what is not in it."""

from __future__ import annotations

import gettext
import html
import math
import re
import string
from collections.abc import Iterable, Iterator

from PySide6.QtCore import QAbstractListModel, QObject, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QComboBox,
    QDialogButtonBox,
    QGraphicsView,
    QGroupBox,
    QLabel,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QSpinBox,
    QTabBar,
    QTextEdit,
    QWidget,
)
from window_kit import in_plot_menu, with_parents

import samples
from app.ui.engine.profiling import profiling_of
from app.ui.shell.window import MainWindow
from designer.operators.api import Operator
from designer.operators.registry import default_registry
from designer.profiling.devices import DEVICES
from designer.profiling.quantities import ValueSource
from designer.profiling.schema import UTILIZATION, mean_utilization
from designer.profiling.what_if import OPTIMIZER_STATES
from designer.runtime.patterns import PATTERNS

OPEN, CLOSE = "⟦", "⟧"


class Pseudo(gettext.NullTranslations):
    """A language that is 30 % longer than English, and easy to distinguish from it."""

    def gettext(self, message: str) -> str:
        plain = "".join(text for text, *_ in string.Formatter().parse(message)) if "{" in message else message
        return f"{OPEN}{message}{'~' * math.ceil(len(plain) * 0.3)}{CLOSE}"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)


def english(text: str) -> list[str]:
    """The pieces outside of the brackets. A bracket that is not closed was elided: the rest belongs to it."""
    depth, outside = 0, []
    for sign in html.unescape(re.sub(r"<[^<>]*>", "\n", text)):
        if sign == OPEN:
            depth += 1
        elif sign == CLOSE:
            depth -= 1
            outside.append("\n")
        elif depth == 0:
            outside.append(sign)
    return pieces("".join(outside))


def pieces(text: str) -> list[str]:
    """Apart where a list, a line or a sign parts them."""
    return [piece.strip(" .,;:()[]*~×&") for piece in re.split(r"\n|\s{2,}|\s[·…-]\s|[,:([]\s?|\s\+\s", text)]


# --- what stays as it is -------------------------------------------------------------------------------------------

LAYERS = ("input", "noise", "conv", "mix", "strange", "output")
DATA = (
    r"\w+\.(bias|kernel)",  # tensors
    r"[\w./~-]*\.(xml|npy|png|jpe?g|onnx|html|csv|json)",  # files
    r"(/[\w.-]+)+/?|test_every_dialog\d",  # folders
    rf"({'|'.join(LAYERS)}|named)(:\w+)?",  # layers, the network
    r"N x|float\d+|u?int\d+|fp\d+|bf16|FP\d+|BF16|INT\d+|n[ch][hw][cw]|[xy]\b|[NCHW]\b",  # shapes, number formats, coordinates
    r"(ms|µs|ns|s|[KMGT]iB|[kMGT]?B|[kMGT]?FLOP(/s)?|GB/s|px|x)\b",  # units
    r"(Ctrl|Shift|Alt|F\d+|Esc|Del|Space|Enter|Return|Home|End|Tab|Up|Down|Left|Right|Backspace|Ins|PgUp|PgDown)\b\+?",  # keys
    r"Layerwright|PyTorch|python3|torch|TensorRT|ONNX Runtime|onnxruntime|OpenVINO|ONNX|numpy|npy|CPU|cpu|ComfyUI|Blender|of_a_plugin|secret|dncnn|denoiser\w*",  # names
    r"SSIM|PSNR|Letter|dB|NumPy|GIF|PNG|CSV|JSON|HTML",
    r"Press shortcut",  # Qt's own, with Qt's translator
    r"NodeGraph|Nodes\b",  # the library's menus, which are never shown
)


def declared() -> set[str]:
    """Names of operators and parameters: as in files and in code, the same in every language."""
    registry = default_registry()
    found: set[str] = set()
    classes: list[type[Operator]] = [*registry, *registry.activations.values()]
    for cls in classes:
        found |= {cls.type}
        for parameter in cls.parameters:
            info = parameter.info
            found |= {parameter.name, parameter.title, *info.choices}
            found |= {choice.replace("_", " ") for choice in info.choices}
            found |= set(parameter.title.split(":"))
    found |= {path.stem.replace("_", " ") for path in samples.path("photographs").iterdir()} | {
        name.replace("_", " ") for name in PATTERNS
    }
    found |= {text for device in DEVICES for text in (device.name, device.source)} | set(OPTIMIZER_STATES)
    return {text for text in found if text}


def domain_texts(window: MainWindow) -> Iterator[str]:
    """What the domain and the engine say: findings, where a figure comes from, the machine. It stays English for now."""
    for finding in window.context.document.diagnostics():
        yield from (finding.code, finding.severity.value)
    for name in window.context.document.graph.layers:
        operator = window.context.document.inference.read(name).operator
        for option in operator.options() if operator is not None else ():
            yield from (choice.replace("_", " ") for choice in option.choices)
    yield from (source.value for source in ValueSource)
    for entry in profiling_of(window.context).entries:
        run = entry.run
        yield from (entry.title, run.weights, *run.notes, run.engine, run.precision, run.layout, run.device, run.size)
        yield entry.profile.chip(run)
        yield from (check.reason for check in run.checks.values())
        for row in run.operators:
            yield from (row.kernels, row.summary)
            yield from (f"{name} {value}" for values in row.parameters.values() for name, value in values.items())
            yield from (getattr(row, key).reason for key in UTILIZATION)
        yield from (used.reason for used in mean_utilization(run.operators).values())


# --- reading the window --------------------------------------------------------------------------------------------


def texts_of(root: QWidget) -> Iterator[tuple[str, str]]:
    """What can be read in and under `root`: the place and the text."""
    for widget in (root, *root.findChildren(QWidget)):
        name = f"{type(widget).__name__} '{widget.objectName()}' in '{_place(widget)}'"
        if _foreign(widget):
            continue
        yield f"{name} accessible name", widget.accessibleName()
        yield f"{name} description", widget.accessibleDescription()
        yield f"{name} tip", widget.toolTip()
        yield f"{name} status tip", widget.statusTip()
        yield f"{name} window title", widget.windowTitle()
        if isinstance(widget, QLabel | QAbstractButton) and not _qts_own(widget):
            yield f"{name} text", widget.text()
        elif isinstance(widget, QGroupBox):
            yield f"{name} title", widget.title()
        elif isinstance(widget, QLineEdit | QPlainTextEdit | QTextEdit):
            yield f"{name} placeholder", widget.placeholderText()
        elif isinstance(widget, QComboBox):
            for index in range(widget.count()):
                yield f"{name} item", widget.itemText(index)
                yield f"{name} item's tip", widget.itemData(index, Qt.ItemDataRole.ToolTipRole) or ""
        elif isinstance(widget, QSpinBox):
            yield f"{name} around", f"{widget.prefix()} {widget.suffix()} {widget.specialValueText()}"
        elif isinstance(widget, QTabBar):
            for index in range(widget.count()):
                yield f"{name} tab", widget.tabText(index)
                yield f"{name} tab's tip", widget.tabToolTip(index)
        elif isinstance(widget, QMenu):
            yield f"{name} title", widget.title()
        elif isinstance(widget, QAbstractItemView):
            yield from _cells(widget, name)
        elif isinstance(widget, QGraphicsView) and widget.scene() is not None:
            for item in widget.scene().items():
                yield f"{type(item).__name__} in {name} tip", item.toolTip()
        for action in widget.actions():
            yield from _action(action, name)
    for action in root.findChildren(QAction):
        if not _foreign(action):
            yield from _action(action, type(root).__name__)


def _action(action: QAction, name: str) -> Iterator[tuple[str, str]]:
    if not action.objectName().startswith(("qt_", "_q_", "edit-")):
        yield f"action '{action.objectName()}' in {name}", action.text()
        yield f"action '{action.objectName()}' in {name} tip", action.toolTip()
        yield f"action '{action.objectName()}' in {name} status tip", action.statusTip()


READ = (
    Qt.ItemDataRole.DisplayRole,
    Qt.ItemDataRole.ToolTipRole,
    Qt.ItemDataRole.AccessibleTextRole,
    Qt.ItemDataRole.AccessibleDescriptionRole,
)  # what is seen or heard of a cell
SEPARATOR = "separator"  # Qt's description of a line between the entries of a combo box


def _cells(view: QAbstractItemView, name: str) -> Iterator[tuple[str, str]]:
    model = view.model()
    if model is None:
        return
    lone = isinstance(model, QAbstractListModel)
    for column in range(1 if lone else model.columnCount()):
        for role in READ:
            head = model.headerData(column, Qt.Orientation.Horizontal, role)
            yield f"{name} header {column}", head if isinstance(head, str) else ""
    parents = [view.rootIndex()]
    while parents:
        parent = parents.pop()
        for row in range(model.rowCount(parent)):
            parents.append(model.index(row, 0, parent))
            for column in range(1 if lone else model.columnCount(parent)):
                for role in READ:
                    cell = model.index(row, column, parent).data(role)
                    if isinstance(cell, str) and cell != SEPARATOR:
                        yield f"{name} row {row} column {column}", cell


def _place(widget: QWidget) -> str:
    parent = widget.parentWidget()
    while parent is not None and not parent.objectName():
        parent = parent.parentWidget()
    return parent.objectName() if parent is not None else ""


def _foreign(part: QObject) -> bool:
    """Parts that Qt, NodeGraphQt or pyqtgraph make, and that have no text of ours."""
    if part.objectName().startswith(("qt_", "ScrollLeft", "ScrollRight")) and not isinstance(part, QLabel):
        return True
    return in_plot_menu(part) or any(
        type(each).__module__.startswith(("NodeGraphQt", "pyqtgraph")) for each in with_parents(part)
    )


def _qts_own(widget: QWidget) -> bool:
    """Standard buttons: Qt's translator is there for them."""
    box = widget.parentWidget()
    if not isinstance(box, QDialogButtonBox) or not isinstance(widget, QAbstractButton):
        return False
    return box.standardButton(widget) is not QDialogButtonBox.StandardButton.NoButton


class Reader:
    """Collects what is English, and what is cut."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._data = re.compile("|".join(rf"(?<!\w)({d})" for d in DATA))
        self.learn(declared())
        self.found: dict[str, str] = {}
        self.seen = 0

    def learn(self, known: Iterable[str]) -> None:
        """Words and sentences that stay as they are."""
        self._known |= {piece for text in known if text for piece in pieces(html.unescape(text))}

    def english(self, text: str) -> bool:
        rest = (self._data.sub(" ", piece) for piece in english(text) if piece not in self._known)
        return any(re.search(r"[^\W\d_]{2}", piece) for piece in rest)

    def read(self, root: QWidget) -> None:
        for place, text in texts_of(root):
            self.seen += OPEN in text
            if text and self.english(text):
                self.found.setdefault(text, place)
        for button in root.findChildren(QAbstractButton):
            if not button.isVisible() or not button.text() or _foreign(button):
                continue
            hint, size = button.sizeHint(), button.size()
            seen = button.visibleRegion().boundingRect()
            if seen.isEmpty():  # behind another tab: not laid out yet
                continue
            if hint.width() > size.width() or hint.height() > size.height() or seen.width() < size.width():
                self.found.setdefault(f"cut: {button.text()}", f"{button.objectName()} {hint} {size} {seen}")

    def say(self) -> str:
        return "\n".join(f"{text!r}: {place}" for text, place in sorted(self.found.items()))
