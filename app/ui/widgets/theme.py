"""The theme: colors by role for dark and light, category colors, fonts and icons. All colors are defined here.

Every role has sufficient contrast on its backgrounds (4.5:1 for text, 3:1 for marks); a test measures it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from PySide6.QtCore import QByteArray, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QAction, QColor, QFont, QFontDatabase, QGuiApplication, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QProxyStyle, QToolTip, QWidget

import resources
from designer.operators.api import Category

Mode = Literal["system", "dark", "light"]
RoleName = Literal[
    "surface",  # background of windows and docks
    "raised",  # buttons, headers, bodies of nodes
    "sunken",  # fields, lists, the canvas
    "border",  # lines between areas; decoration only
    "outline",  # the frame of a control; a mark
    "text",
    "muted",  # secondary text
    "disabled",
    "accent",  # active elements; links in text
    "selection",  # background of selected rows
    "selection_text",
    "positive",  # values above zero, success
    "negative",  # values below zero
    "positive_alt",  # the same pair for red-green color blindness
    "negative_alt",
    "zero",  # the value zero in the inspector
    "warning",
    "error",
    "info",
    "link",  # connections on the canvas
    "link_active",  # connections of the selected layer
    "link_path",  # connections on the paths through the selected layer
    "grid",
    "on_category",  # text on a category color
    "keyword",  # code: keywords
    "string",
    "number",
    "comment",
]

GROUNDS: tuple[RoleName, ...] = ("surface", "raised", "sunken")
TEXTS: tuple[RoleName, ...] = (
    "text",
    "muted",
    "accent",
    "warning",
    "error",
    "info",
    "positive",
    "negative",
    "positive_alt",
    "negative_alt",
    "keyword",
    "string",
    "number",
    "comment",
)
MARKS: tuple[RoleName, ...] = ("outline", "link", "link_active", "link_path")

_DARK: dict[RoleName, str] = {
    "surface": "#1d1f22",
    "raised": "#27292d",
    "sunken": "#161719",
    "border": "#34373c",
    "outline": "#767b83",
    "text": "#e3e5e8",
    "muted": "#a2a8b1",
    "disabled": "#6d727a",
    "accent": "#719ed9",
    "selection": "#2c4a72",
    "selection_text": "#ffffff",
    "positive": "#4ec370",
    "negative": "#f57567",
    "positive_alt": "#f0a04b",
    "negative_alt": "#6fa8e8",
    "zero": "#000000",
    "warning": "#f0ae42",
    "error": "#f5796c",
    "info": "#6db3e2",
    "link": "#8a9099",
    "link_active": "#8db9f2",
    "link_path": "#6c93c4",
    "grid": "#212327",
    "on_category": "#ffffff",
    "keyword": "#8fb4ec",
    "string": "#8fc98f",
    "number": "#dfb06c",
    "comment": "#949ba4",
}
_LIGHT: dict[RoleName, str] = {
    "surface": "#f1f2f4",
    "raised": "#ffffff",
    "sunken": "#fafbfc",
    "border": "#cfd3d8",
    "outline": "#7d838c",
    "text": "#1b1d20",
    "muted": "#555b63",
    "disabled": "#9298a0",
    "accent": "#1568c3",
    "selection": "#c5dcf7",
    "selection_text": "#10141a",
    "positive": "#087937",
    "negative": "#c62d27",
    "positive_alt": "#9a5200",
    "negative_alt": "#1568c3",
    "zero": "#000000",
    "warning": "#845600",
    "error": "#c62d27",
    "info": "#006a9c",
    "link": "#6b727b",
    "link_active": "#1568c3",
    "link_path": "#4f82ba",
    "grid": "#eceef0",
    "on_category": "#ffffff",
    "keyword": "#1c5bb0",
    "string": "#23702f",
    "number": "#8a4b00",
    "comment": "#5f666e",
}

# Equal luminance: white text is readable on each color, and each color is visible on the backgrounds of both themes.
_CATEGORIES: dict[Category, str] = {
    Category.INPUT_OUTPUT: "#328449",
    Category.CONVOLUTION: "#3476c5",
    Category.LINEAR: "#7167cc",
    Category.POOLING: "#0a8282",
    Category.NORMALIZATION: "#9b6b19",
    Category.ACTIVATION: "#cb473d",
    Category.RECURRENT: "#a552b8",
    Category.ATTENTION: "#bd4892",
    Category.SHAPE: "#657784",
    Category.UPSAMPLING: "#118094",
    Category.ELEMENT_WISE: "#78781d",
    Category.DATA: "#18836a",
    Category.TRAINING: "#b35d26",
    Category.ANALYSIS: "#8d5dc6",
    Category.DEVELOPMENT: "#747474",
}
_CATEGORY_ICONS: dict[Category, str] = {
    Category.INPUT_OUTPUT: "swap-horizontal",
    Category.CONVOLUTION: "grid",
    Category.LINEAR: "matrix",
    Category.POOLING: "arrow-collapse-all",
    Category.NORMALIZATION: "chart-bell-curve",
    Category.ACTIVATION: "function-variant",
    Category.RECURRENT: "repeat",
    Category.ATTENTION: "eye-outline",
    Category.SHAPE: "shape-outline",
    Category.UPSAMPLING: "arrow-expand-all",
    Category.ELEMENT_WISE: "plus-minus-variant",
    Category.DATA: "image-outline",
    Category.TRAINING: "school-outline",
    Category.ANALYSIS: "flask-outline",
    Category.DEVELOPMENT: "wrench-outline",
}

_FRAMED = ("QCheckBox", "QRadioButton", "QLineEdit", "QAbstractSpinBox", "QComboBox", "QPushButton", "QSlider")
_ICONS = Path(resources.__file__).parent / "icons"
_ICON_SIZES = (16, 24, 32, 48, 64)


class ThemeNotifier(QObject):
    """Notifies that the colors changed. Widgets that only paint need not connect: they are repainted anyway."""

    changed = Signal()


class _State:
    def __init__(self) -> None:
        self.mode: Mode = "system"
        self.dark = True
        self.changes: ThemeNotifier | None = None
        self.following: QGuiApplication | None = None


_state = _State()


def changes() -> ThemeNotifier:
    """The object whose `changed` signal is emitted after a theme switch."""
    if _state.changes is None:
        _state.changes = ThemeNotifier()
    return _state.changes


def is_dark() -> bool:
    return _state.dark


@contextmanager
def as_if(*, dark: bool) -> Iterator[None]:
    """Paint in the colors of the given theme, for exported images. No signal is emitted."""
    before, _state.dark = _state.dark, dark
    try:
        yield
    finally:
        _state.dark = before


def color(role: RoleName) -> QColor:
    """The color of a role in the current theme."""
    return QColor((_DARK if _state.dark else _LIGHT)[role])


def category(which: Category) -> QColor:
    """The color of a category, the same in both themes."""
    return QColor(_CATEGORIES[which])


def category_icon(which: Category) -> QIcon:
    """The icon of a category in its color."""
    return _icon(_CATEGORY_ICONS[which], _CATEGORIES[which], _hex("disabled"))


def mono_font() -> QFont:
    """The fixed-width font in the size of the application's font, for numbers in tables, shapes and code."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    size = QGuiApplication.font().pointSizeF()
    if size > 0:
        font.setPointSizeF(size)
    return font


def icon(name: str, role: RoleName = "text") -> QIcon:
    """An icon of `resources/icons` by file name, in the role's current color. Raises KeyError for an unknown icon."""
    return _icon(name, _hex(role), _hex("disabled"))


def set_icon(target: QAbstractButton | QAction, name: str, role: RoleName = "text") -> None:
    """Set an icon that follows theme switches."""
    for old in target.findChildren(_Follower):
        old.deleteLater()
    _Follower(target, name, role)


def frame_check_boxes(view: QWidget) -> None:
    """Frame the check boxes in the items of a view visibly; Fusion draws them in a darker Window color."""
    _CheckBoxFrames(view)


def contrast(one: QColor, other: QColor) -> float:
    """The contrast ratio of two colors according to WCAG, 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def ink_on(ground: QColor) -> QColor:
    """Black or white, whichever has more contrast on a data color."""
    inks = QColor(Qt.GlobalColor.black), QColor(Qt.GlobalColor.white)
    return max(inks, key=lambda ink: contrast(ink, ground))


class _CheckBoxFrames(QObject):
    """The palette of a view, in the current theme."""

    def __init__(self, view: QWidget) -> None:
        super().__init__(view)
        self._view = view
        changes().changed.connect(self._follow)
        self._follow()

    def _follow(self) -> None:
        palette = QPalette()
        palette.setColor(QPalette.ColorRole.Window, color("outline").lighter(140))
        self._view.setPalette(palette)


class PlainTextStyle(QProxyStyle):
    """Fusion with plain-text labels: Qt's format detection would take names of layers and files for markup.

    Labels with markup call `setTextFormat`. Tooltips are still detected: see `plain_tip`.
    """

    def __init__(self) -> None:
        super().__init__("Fusion")

    def polish(self, what: Any) -> Any:
        """Called by Qt for each widget before it is first shown, and for the application and its palette."""
        if isinstance(what, QLabel) and what.textFormat() is Qt.TextFormat.AutoText and not what.inherits("QTipLabel"):
            what.setTextFormat(Qt.TextFormat.PlainText)
        return super().polish(what)


def apply(app: QApplication, mode: Mode = "system") -> None:
    """Apply the Fusion style and our colors. "system" follows the desktop and defaults to dark."""
    _state.mode = mode
    if not isinstance(app.style(), PlainTextStyle):
        app.setStyle(PlainTextStyle())
    if _state.following is not app:
        _state.following = app
        app.styleHints().colorSchemeChanged.connect(lambda _scheme: _refresh(app))
    _refresh(app)


def _refresh(app: QApplication) -> None:
    scheme = app.styleHints().colorScheme()
    _state.dark = scheme is not Qt.ColorScheme.Light if _state.mode == "system" else _state.mode == "dark"
    palette = _palette()
    if app.palette() != palette:
        app.setPalette(palette)
        # Fusion draws frames of controls in a darker Window color, which is invisible on a dark background.
        palette.setColor(QPalette.ColorRole.Window, color("outline").lighter(140))
        # It draws focus frames and check marks in a darker Highlight color.
        palette.setColor(QPalette.ColorGroup.Normal, QPalette.ColorRole.Highlight, color("accent"))
        palette.setColor(QPalette.ColorGroup.Normal, QPalette.ColorRole.HighlightedText, color("sunken"))
        for kind in _FRAMED:
            app.setPalette(palette, kind)  # type: ignore[arg-type]  # the stubs require bytes, the call str
        palette = _palette()
        QToolTip.setPalette(palette)
        changes().changed.emit()


def _palette() -> QPalette:
    roles: dict[QPalette.ColorRole, RoleName] = {
        QPalette.ColorRole.Window: "surface",
        QPalette.ColorRole.WindowText: "text",
        QPalette.ColorRole.Base: "sunken",
        QPalette.ColorRole.AlternateBase: "surface",
        QPalette.ColorRole.Text: "text",
        QPalette.ColorRole.PlaceholderText: "muted",
        QPalette.ColorRole.Button: "raised",
        QPalette.ColorRole.ButtonText: "text",
        QPalette.ColorRole.BrightText: "error",
        QPalette.ColorRole.Highlight: "selection",
        QPalette.ColorRole.HighlightedText: "selection_text",
        QPalette.ColorRole.Accent: "accent",
        QPalette.ColorRole.Link: "accent",
        QPalette.ColorRole.LinkVisited: "accent",
        QPalette.ColorRole.ToolTipBase: "raised",
        QPalette.ColorRole.ToolTipText: "text",
        QPalette.ColorRole.Light: "border",
        QPalette.ColorRole.Midlight: "border",
        QPalette.ColorRole.Mid: "border",
        QPalette.ColorRole.Dark: "sunken",
        QPalette.ColorRole.Shadow: "sunken",
    }
    palette = QPalette()
    for slot, role in roles.items():
        palette.setColor(slot, color(role))
    for slot in (
        QPalette.ColorRole.WindowText,
        QPalette.ColorRole.Text,
        QPalette.ColorRole.ButtonText,
        QPalette.ColorRole.HighlightedText,
    ):
        palette.setColor(QPalette.ColorGroup.Disabled, slot, color("disabled"))
    palette.setColor(QPalette.ColorGroup.Disabled, QPalette.ColorRole.Highlight, color("border"))
    return palette


def _hex(role: RoleName) -> str:
    return color(role).name()


def _luminance(value: QColor) -> float:
    parts = (value.redF(), value.greenF(), value.blueF())
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


# --- icons -----------------------------------------------------------------------------------------------------------


class _Follower(QObject):
    """A child of a button or an action that redraws its icon after a theme switch."""

    def __init__(self, target: QAbstractButton | QAction, name: str, role: RoleName) -> None:
        super().__init__(target)
        self._target, self._name, self._role = target, name, role
        changes().changed.connect(self._draw)
        self._draw()

    def _draw(self) -> None:
        self._target.setIcon(icon(self._name, self._role))


@lru_cache(maxsize=512)
def _icon(name: str, ink: str, faded: str) -> QIcon:
    path = _ICONS / f"{name}.svg"
    if not path.is_file():
        raise KeyError(f"there is no icon '{name}' in resources/icons")
    made = QIcon()
    text = path.read_text(encoding="utf-8")
    for modes, used in (((QIcon.Mode.Normal, QIcon.Mode.Selected), ink), ((QIcon.Mode.Disabled,), faded)):
        renderer = QSvgRenderer(QByteArray(text.replace("currentColor", used).encode()))
        for side in _ICON_SIZES:
            pixmap = QPixmap(side, side)
            pixmap.fill(Qt.GlobalColor.transparent)
            painter = QPainter(pixmap)
            renderer.render(painter, QRectF(0, 0, side, side))
            painter.end()
            for mode in modes:
                made.addPixmap(pixmap, mode)
    return made
