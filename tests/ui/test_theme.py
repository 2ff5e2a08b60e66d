"""Colours keep their contrast, categories have a colour and an icon, and switching reaches the application."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QAction, QColor, QFontDatabase, QIcon, QPalette
from PySide6.QtWidgets import QApplication, QLabel, QListWidget, QPushButton, QToolTip

import app.ui
from app.ui.widgets import theme
from designer.operators.api import Category


@pytest.fixture(params=["dark", "light"])
def themed(request, qapp):
    theme.apply(qapp, request.param)
    yield request.param
    theme.apply(qapp, "system")


def test_text_and_marks_are_readable(themed):
    low = []
    for ground in theme.GROUNDS:
        for role in theme.TEXTS:
            low += [(role, ground, r) for r in [theme.contrast(theme.color(role), theme.color(ground))] if r < 4.5]
        for role in theme.MARKS:
            low += [(role, ground, r) for r in [theme.contrast(theme.color(role), theme.color(ground))] if r < 3.0]
    assert not low
    assert theme.contrast(theme.color("selection_text"), theme.color("selection")) >= 4.5


@pytest.mark.parametrize("category", list(Category))
def test_category_colours_carry_text_and_stand_out(themed, category):
    colour = theme.category(category)
    assert theme.contrast(theme.color("on_category"), colour) >= 4.5
    for ground in theme.GROUNDS:
        assert theme.contrast(colour, theme.color(ground)) >= 3.0
    assert not theme.category_icon(category).isNull()


def test_contrast_follows_the_definition():
    from PySide6.QtGui import QColor

    assert theme.contrast(QColor(255, 255, 255), QColor(0, 0, 0)) == pytest.approx(21.0)
    assert theme.contrast(QColor(119, 119, 119), QColor(255, 255, 255)) == pytest.approx(4.48, abs=0.01)


def test_switching_changes_the_palette_and_tells(qtbot, qapp):
    theme.apply(qapp, "dark")
    dark = qapp.palette().color(QPalette.ColorRole.Window)
    with qtbot.waitSignal(theme.changes().changed):
        theme.apply(qapp, "light")
    assert qapp.palette().color(QPalette.ColorRole.Window) != dark
    assert not theme.is_dark()
    theme.apply(qapp, "system")


def test_the_theme_follows_the_system(qapp):
    theme.apply(qapp, "system")
    assert theme.is_dark()  # no desktop says anything here
    hints = qapp.styleHints()
    hints.setColorScheme(Qt.ColorScheme.Light)
    followed = hints.colorScheme() is Qt.ColorScheme.Light
    assert theme.is_dark() is not followed
    hints.unsetColorScheme()
    assert theme.is_dark()


def test_only_the_mode_of_the_system_follows_the_desktop(qapp):
    for mode, dark in (("light", False), ("dark", True), ("system", True), ("light", False)):
        theme.apply(qapp, mode)
        for scheme in (Qt.ColorScheme.Dark, Qt.ColorScheme.Light, Qt.ColorScheme.Unknown):
            qapp.styleHints().colorSchemeChanged.emit(scheme)  # the user chose before it
            assert theme.is_dark() is dark, mode
    theme.apply(qapp, "system")


def test_an_icon_follows_the_theme(qtbot, qapp):
    theme.apply(qapp, "dark")
    button = QPushButton()
    qtbot.addWidget(button)
    theme.set_icon(button, "redo")
    theme.set_icon(button, "undo")
    dark = button.icon().pixmap(QSize(24, 24), 1.0).toImage()
    theme.apply(qapp, "light")
    light = button.icon().pixmap(QSize(24, 24), 1.0).toImage()
    assert dark != light
    assert light == theme.icon("undo").pixmap(QSize(24, 24), 1.0).toImage()
    assert theme.icon("undo").pixmap(QSize(24, 24), 2.0).size() == QSize(48, 48)
    theme.apply(qapp, "system")


ROLES = {  # of the palette of the application
    "Window": "surface",
    "WindowText": "text",
    "Base": "sunken",
    "AlternateBase": "surface",
    "Text": "text",
    "PlaceholderText": "muted",
    "Button": "raised",
    "ButtonText": "text",
    "BrightText": "error",
    "Highlight": "selection",
    "HighlightedText": "selection_text",
    "Accent": "accent",
    "Link": "accent",
    "LinkVisited": "accent",
    "ToolTipBase": "raised",
    "ToolTipText": "text",
    "Light": "border",
    "Midlight": "border",
    "Mid": "border",
    "Dark": "sunken",
    "Shadow": "sunken",
}
UNAVAILABLE = dict.fromkeys(("WindowText", "Text", "ButtonText", "HighlightedText"), "disabled") | {
    "Highlight": "border"
}
CONTROLS = ("QCheckBox", "QRadioButton", "QLineEdit", "QAbstractSpinBox", "QComboBox", "QPushButton", "QSlider")


def colors(palette: QPalette, group: str) -> dict[str, str]:
    """The colors of all roles of the palette that we set."""
    return {
        role: palette.color(QPalette.ColorGroup[group], QPalette.ColorRole[role]).name(QColor.NameFormat.HexArgb)
        for role in ROLES
    }


def expected(roles: dict[str, str]) -> dict[str, str]:
    return {slot: theme.color(role).name(QColor.NameFormat.HexArgb) for slot, role in roles.items()}


def test_each_part_of_the_window_has_the_color_of_its_role(themed, qapp):
    assert theme.is_dark() is (themed == "dark")
    for group, roles in (("Active", ROLES), ("Inactive", ROLES), ("Disabled", ROLES | UNAVAILABLE)):
        assert colors(qapp.palette(), group) == expected(roles)
        assert colors(QToolTip.palette(), group) == expected(roles)
    frame = theme.color("outline").lighter(140)
    for control in CONTROLS:
        palette = QApplication.palette(control)
        found, wanted = (
            colors(palette, "Active"),
            expected(ROLES | {"Highlight": "accent", "HighlightedText": "sunken"}),
        )
        assert found == wanted | {"Window": frame.name(QColor.NameFormat.HexArgb)}, control
        found, wanted = colors(palette, "Disabled"), expected(ROLES | UNAVAILABLE)
        assert found == wanted | {"Window": frame.name(QColor.NameFormat.HexArgb)}, control


def test_frames_of_check_boxes_in_lists_follow_the_theme(qtbot, qapp):
    view = QListWidget()
    qtbot.addWidget(view)
    theme.apply(qapp, "light")
    theme.frame_check_boxes(view)
    for mode in ("light", "dark", "light"):
        theme.apply(qapp, mode)
        assert view.palette().color(QPalette.ColorRole.Window) == theme.color("outline").lighter(140)
        assert view.palette().color(QPalette.ColorRole.Text) == theme.color("text")
    theme.apply(qapp, "system")


def test_a_switch_is_said_once_and_the_same_theme_again_is_none(qapp):
    theme.apply(qapp, "dark")
    said = []
    count = lambda: said.append(theme.is_dark())  # noqa: E731
    theme.changes().changed.connect(count)
    for mode, dark in (("dark", []), ("light", [False]), ("light", []), ("system", [True]), ("dark", [])):
        said.clear()
        theme.apply(qapp, mode)
        assert said == dark, mode
    said.clear()
    text = {dark: theme._DARK["text"] if dark else theme._LIGHT["text"] for dark in (True, False)}
    with theme.as_if(dark=False):
        assert (theme.is_dark(), theme.color("text").name()) == (False, text[False])
        with theme.as_if(dark=True):
            assert theme.color("text").name() == text[True]
        assert theme.color("text").name() == text[False]
    with pytest.raises(ZeroDivisionError), theme.as_if(dark=False):
        _ = 1 // 0
    assert theme.is_dark()
    assert not said
    theme.changes().changed.disconnect(count)
    theme.apply(qapp, "system")


def ink(icon: QIcon, mode: QIcon.Mode = QIcon.Mode.Normal) -> str:
    """The color in which an icon is drawn."""
    image = icon.pixmap(QSize(24, 24), 1.0, mode).toImage()
    pixels = [image.pixelColor(x, y) for x in range(24) for y in range(24)]
    return max(pixels, key=lambda color: color.alpha()).name()


def outline(icon: QIcon) -> list[int]:
    image = icon.pixmap(QSize(24, 24), 1.0).toImage()
    return [image.pixelColor(x, y).alpha() for x in range(24) for y in range(24)]


def test_icons_have_the_color_of_their_role_and_are_faded_where_they_cannot_be_used(themed):
    faded = theme.color("disabled").name()
    for role in ("text", "muted", "warning", "error"):
        made = theme.icon("undo", role)
        assert ink(made) == ink(made, QIcon.Mode.Selected) == theme.color(role).name()
        assert ink(made, QIcon.Mode.Disabled) == faded
    assert ink(theme.icon("undo")) == theme.color("text").name()
    shapes = {}
    for category in Category:
        made = theme.category_icon(category)
        assert ink(made) == theme.category(category).name()
        assert ink(made, QIcon.Mode.Disabled) == faded
        shapes[category] = outline(made)
    assert len({tuple(shape) for shape in shapes.values()}) == len(Category)
    assert len({theme.category(category).name() for category in Category}) == len(Category)
    for category, name in ((Category.CONVOLUTION, "grid"), (Category.TRAINING, "school-outline")):
        assert shapes[category] == outline(theme.icon(name))


def test_an_icon_of_an_action_has_its_role_and_only_the_last_one_follows(qapp):
    theme.apply(qapp, "dark")
    action = QAction()
    theme.set_icon(action, "redo", "error")
    theme.set_icon(action, "undo", "warning")
    for mode in ("light", "dark"):
        theme.apply(qapp, mode)
        qapp.processEvents()
        assert ink(action.icon()) == theme.color("warning").name()
        assert outline(action.icon()) == outline(theme.icon("undo"))
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert len(action.children()) == 1, "the first icon is followed no more"
    theme.apply(qapp, "system")


@pytest.mark.parametrize(
    "ground", ["#000000", "#404040", "#707070", "#7a7a7a", "#ff0000", "#0000ff", "#00ff00", "#ffffff"]
)
def test_the_ink_on_a_color_of_data_is_readable(ground):
    black, white = QColor("#000000"), QColor("#ffffff")
    found = theme.ink_on(QColor(ground))
    assert found in (black, white)
    assert theme.contrast(found, QColor(ground)) >= 4.58
    assert theme.contrast(QColor(ground), found) == theme.contrast(found, QColor(ground))


def test_labels_show_what_looks_like_markup_as_it_is_unless_they_ask_for_markup(qtbot, qapp):
    theme.apply(qapp, "system")
    plain, rich = QLabel("<b>name</b>"), QLabel("<b>name</b>")
    rich.setTextFormat(Qt.TextFormat.RichText)
    for label in (plain, rich):
        qtbot.addWidget(label)
        label.ensurePolished()
    assert (plain.textFormat(), rich.textFormat()) == (Qt.TextFormat.PlainText, Qt.TextFormat.RichText)


def test_numbers_have_the_size_of_the_other_text(qapp):
    before = qapp.font()
    larger = qapp.font()
    larger.setPointSizeF(before.pointSizeF() + 5)
    for size in (before.pointSizeF() - 3, before.pointSizeF() + 5, 7.5):
        larger.setPointSizeF(size)
        qapp.setFont(larger)
        assert theme.mono_font().pointSizeF() == size
    larger.setPixelSize(31)  # then the system's size is as good as any
    qapp.setFont(larger)
    assert theme.mono_font() == QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    qapp.setFont(before)
    assert theme.mono_font().pointSizeF() == before.pointSizeF()


def test_every_icon_draws_something_inside_its_box(qapp):
    for path in sorted(theme._ICONS.glob("*.svg")):
        image = theme.icon(path.stem).pixmap(QSize(32, 32), 1.0).toImage()
        drawn = [(x, y) for x in range(32) for y in range(32) if image.pixelColor(x, y).alpha() > 128]
        assert len(drawn) > 20, path.name


def test_an_unknown_icon_is_named():
    with pytest.raises(KeyError, match="no-such-icon"):
        theme.icon("no-such-icon")


def test_numbers_have_one_width(qapp: QApplication):
    from PySide6.QtGui import QFontMetricsF

    metrics = QFontMetricsF(theme.mono_font())
    assert metrics.horizontalAdvance("iiii") == metrics.horizontalAdvance("WWWW")


def test_no_colour_stands_outside_the_theme():
    root = Path(app.ui.__file__).parent
    literal = re.compile(r"""["']#[0-9a-fA-F]{3,8}["']|QColor\(\s*\d|QColor\(\s*["']|GlobalColor\.(?!transparent)""")
    found = [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path in sorted(root.rglob("*.py"))
        if path.name != "theme.py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if literal.search(line)
    ]
    assert not found
