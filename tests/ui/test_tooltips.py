"""What a document or a file name says is shown as text: Qt takes `<img src=...>` for a picture, and fetches it."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
import canvas_kit as kit
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QMouseEvent, QTextDocument
from PySide6.QtWidgets import QApplication, QLabel
from window_kit import show

from app.ui.canvas.format_marks import Badge
from app.ui.canvas.frames import FrameItem
from app.ui.widgets.message import Message
from app.ui.widgets.notice import Notice
from app.ui.widgets.tooltips import plain_tip
from designer.graph import frames
from designer.graph.model import Frame

pytestmark = pytest.mark.gui

FOREIGN = "'<img src=\"file:////elsewhere/x.png\">' is no number\n& more"


def test_tips_show_foreign_text_as_it_is(qapp):
    assert plain_tip("64 x 48\nfrom a & b") == "64 x 48\nfrom a & b"
    page = QTextDocument()
    page.setHtml(plain_tip(FOREIGN))
    assert page.toPlainText() == FOREIGN


@pytest.mark.parametrize("made", [lambda: Message("m"), lambda: Notice("n", "Notice")])
def test_lines_under_fields_show_foreign_text_as_it_is(qtbot, made):
    line = made()
    qtbot.addWidget(line)
    getattr(line, "show_message" if isinstance(line, Message) else "say")(FOREIGN)
    label = next(x for x in line.findChildren(QLabel) if x.text().endswith(FOREIGN))
    assert label.textFormat() is Qt.TextFormat.PlainText


def test_the_comment_of_a_frame_is_no_markup(empty_window):
    window = show(empty_window, kit.small_graph())
    frame = Frame("f", "a title", FOREIGN, rect=(0, 0, 400, 300))
    assert window.context.document.do(lambda g: frames.set_frame(g, "f", frame))
    tips = [item.toolTip() for item in window.canvas.viewer.scene().items() if isinstance(item, FrameItem)]
    assert tips == [plain_tip(FOREIGN)]


def test_a_badge_of_a_format_says_why_where_the_pointer_is(empty_window):
    window = show(empty_window, kit.small_graph())
    canvas = window.canvas
    item = canvas.formats.item
    canvas.viewer.far_stale.disconnect(canvas.formats.refresh)  # measuring, which goes on, would remove the badges
    area = QRectF(100, 300, 60, 20)
    item.show_badges([Badge(area, "INT8", "first"), Badge(area.translated(0, 100), "FP16", "second")])
    for place, tip in ((area.center(), "first"), (area.center() + QPointF(0, 100), "second")):
        viewport, point, nothing = canvas.viewer.viewport(), kit.at(canvas, place), Qt.MouseButton.NoButton
        over = QPointF(viewport.mapToGlobal(point))
        move = QMouseEvent(
            QEvent.Type.MouseMove, QPointF(point), over, nothing, nothing, Qt.KeyboardModifier.NoModifier
        )
        QApplication.sendEvent(viewport, move)  # a pointer that is moved depends on the windows of other tests
        assert item.toolTip() == tip
