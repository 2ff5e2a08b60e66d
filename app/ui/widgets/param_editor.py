"""Editors for each kind of parameter with one interface: they take canonical text and emit the text typed by the user."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from math import inf

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QSizePolicy,
    QWidget,
)

from app.ui.widgets import theme
from app.ui.widgets.number_field import NumberField
from app.ui.widgets.size_field import SizeField
from designer.graph.template import PARAMETER
from designer.operators.params import Parameter
from designer.texts import mark, tr, tr_data

MIXED = mark("multiple values")
ROOM = 14  # characters that fit in a field


class ParamEditor(QWidget):
    """`edited` carries each text that the user enters, valid or not; `finished` ends the gesture.

    `set_text(None)` shows that the layers have different values. Escape restores the text that was set last.
    """

    edited = Signal(str)
    finished = Signal()
    reverted = Signal()

    def __init__(self, name: str, parameter: Parameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parameter = parameter
        self._shown: str | None = None
        self._several = tr_data(MIXED)
        self._get: Callable[[], str]
        self._put: Callable[[str | None], None]
        unit = tr(", in {unit}", unit=tr_data(parameter.info.unit)) if parameter.info.unit else ""
        self._name, self._label = name, f"{parameter.title}{unit}"
        self.inner = self._make(parameter)
        self.inner.setObjectName(name)
        self.inner.setAccessibleName(self._label)
        self.inner.setAccessibleDescription(tr_data(parameter.info.doc))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.inner, 1)
        for child in (self.inner, *self.inner.findChildren(QWidget)):
            child.installEventFilter(self)

    def text(self) -> str:
        return self._get()

    def set_text(self, text: str | None) -> None:
        self._shown = text
        blocker = QSignalBlocker(self.inner)
        self._put(text)
        blocker.unblock()

    def set_several(self, texts: Collection[str]) -> None:
        """Show a placeholder for several layers with different values: the values themselves if they are short."""
        values = sorted(texts, key=_in_order)
        shown = ", ".join(values)
        if len(shown) > ROOM and isinstance(self.inner, NumberField | SizeField):
            shown = f"{values[0]} … {values[-1]}"
        self._several = shown if len(values) > 1 and len(shown) <= ROOM else tr_data(MIXED)
        if isinstance(self.inner, NumberField | QLineEdit | QComboBox):
            self.inner.setStatusTip(
                tr("Values of the selected layers: {values}", values=", ".join(values)) if values[1:] else ""
            )

    def has_focus(self) -> bool:
        return self.inner.hasFocus() or any(w.hasFocus() for w in self.inner.findChildren(QWidget))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind == QEvent.Type.KeyPress and event.key() == Qt.Key.Key_Escape:  # type: ignore[attr-defined]
            self.set_text(self._shown)
            self.reverted.emit()
            event.ignore()  # the enclosing widget can move the focus
            return True
        if kind == QEvent.Type.Wheel and isinstance(self.inner, QComboBox) and not self.inner.hasFocus():
            event.ignore()
            return True
        if kind == QEvent.Type.FocusOut and isinstance(self.inner, QPlainTextEdit):
            self.finished.emit()
        return super().eventFilter(watched, event)

    # --- the kinds ---------------------------------------------------------------------------------------------

    def _make(self, parameter: Parameter) -> QWidget:
        if parameter.kind == "bool":
            return self._check_box()
        if parameter.kind == "choice" or parameter.info.choices:
            names = parameter.name == PARAMETER  # names in the document, shown unchanged
            return self._combo(
                {choice: choice if names else choice.replace("_", " ") for choice in parameter.info.choices}
            )
        if parameter.kind in ("int", "float"):
            return self._number(parameter)
        if parameter.kind in ("size2d", "size3d", "size2d?"):
            return self._size(parameter)
        if parameter.info.multiline:
            return self._long_text(parameter)
        return self._line(parameter)

    def _check_box(self) -> QWidget:
        box = QCheckBox()

        def put(text: str | None) -> None:
            known = text in ("true", "false")
            box.setTristate(not known)
            box.setCheckState(Qt.CheckState.PartiallyChecked if not known else Qt.CheckState.Unchecked)
            if known:
                box.setChecked(text == "true")

        def clicked(on: bool) -> None:
            box.setTristate(False)
            box.setChecked(on)
            self._done("true" if on else "false")

        self._get = lambda: "true" if box.isChecked() else "false"
        self._put = put
        box.clicked.connect(lambda: clicked(box.isChecked()))
        return box

    def _combo(self, choices: Mapping[str, str]) -> QWidget:
        box = QComboBox()
        box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        box.setMinimumContentsLength(6)
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        for choice, shown in choices.items():
            box.addItem(shown, choice)

        def put(text: str | None) -> None:
            box.setPlaceholderText(self._several if text is None else text)
            box.setCurrentIndex(-1 if text is None else box.findData(text))

        self._get = lambda: str(box.currentData() or "")
        self._put = put
        box.activated.connect(lambda _index: self._done(self._get()))
        return box

    def _number(self, parameter: Parameter) -> QWidget:
        info = parameter.info
        field = NumberField(
            self._name, self._label, whole=parameter.kind == "int", low=info.min, high=info.max, step=info.step
        )
        if info.unit:
            field.setToolTip(info.unit)
        self._get = field.text
        self._put = lambda text: self._put_field(field, text)
        field.edited.connect(self.edited)
        field.finished.connect(self.finished)
        return field

    def _size(self, parameter: Parameter) -> QWidget:
        optional = parameter.kind == "size2d?"
        count = 3 if parameter.kind == "size3d" else 2
        field = SizeField(
            self._name, self._label, count, low=parameter.info.min, high=parameter.info.max, optional=optional
        )
        self._get = field.text
        self._put = lambda text: self._put_field(field, text)
        field.edited.connect(self.edited)
        field.finished.connect(self.finished)
        return field

    def _put_field(self, field: NumberField | SizeField, text: str | None) -> None:
        different = "…" if self._several == tr_data(MIXED) or isinstance(field, SizeField) else self._several
        field.set_placeholder(different if text is None else "")
        field.set_text("" if text is None else text)

    def _line(self, parameter: Parameter) -> QWidget:
        line = QLineEdit()
        if parameter.kind == "ints":
            line.setFont(theme.mono_font())
        hint = tr("integers separated by commas: 1,2,3") if parameter.kind == "ints" else ""

        def put(text: str | None) -> None:
            line.setPlaceholderText(self._several if text is None else hint)
            if line.text() != (text or ""):
                line.setText(text or "")

        self._get = line.text
        self._put = put
        line.textEdited.connect(self.edited)
        line.editingFinished.connect(self.finished)
        return line

    def _long_text(self, parameter: Parameter) -> QWidget:
        area = QPlainTextEdit()
        area.setFont(theme.mono_font())
        area.setTabChangesFocus(True)
        area.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        lines = min(16, max(4, str(parameter.default).count("\n") + 2))
        area.setFixedHeight(area.fontMetrics().lineSpacing() * lines + 16)

        def put(text: str | None) -> None:
            area.setPlaceholderText(tr_data(MIXED) if text is None else "")
            if area.toPlainText() != (text or ""):
                area.setPlainText(text or "")

        self._get = area.toPlainText
        self._put = put
        area.textChanged.connect(lambda: self.edited.emit(area.toPlainText()))
        return area

    def _done(self, text: str) -> None:
        self.edited.emit(text)
        self.finished.emit()


def _in_order(text: str) -> tuple[float, str]:
    """A sort key: numbers by value, before other texts."""
    try:
        return float(text), text
    except ValueError:
        return inf, text
