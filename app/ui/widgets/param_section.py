"""Rows of parameters: label, editor, reset and help buttons, and a message for invalid values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QToolButton, QWidget

from app.ui.widgets import theme
from app.ui.widgets.expression import NUMBERS, ExpressionError, is_expression, worked_out
from app.ui.widgets.message import Message
from app.ui.widgets.param_editor import ParamEditor
from app.ui.widgets.size_field import SizeField
from app.ui.widgets.tooltips import plain_tip
from designer.operators.params import ParamError, Parameter, Value
from designer.texts import tr, tr_data


def tool_button(name: str, icon: str, label: str, tip: str, *, checkable: bool = False) -> QToolButton:
    """A flat square button with an icon, an accessible name and a tooltip."""
    button = QToolButton()
    button.setObjectName(name)
    button.setAccessibleName(label)
    button.setToolTip(tip)
    button.setAutoRaise(True)
    button.setCheckable(checkable)
    theme.set_icon(button, icon, "muted")
    return button


ROWS = 4  # grid rows per parameter


class ParamRow(QObject):
    """One parameter. `changed` carries valid canonical text; invalid text remains in the field only."""

    changed = Signal(str, str)  # parameter, canonical text
    finished = Signal()

    def __init__(
        self,
        prefix: str,
        parameter: Parameter,
        grid: QGridLayout,
        row: int,
        parent: QObject,
        *,
        has_default: bool = True,
    ) -> None:
        """Without `has_default`, the row edits layers of several types that differ in their defaults."""
        super().__init__(parent)
        self.parameter = parameter
        self.has_default = has_default
        self._model: str | None = parameter.format(parameter.default)
        self._begin: str | None = None  # the model's text before the current gesture
        self._pending = ""  # the value of an expression, until Enter
        self._drafting = False  # keep the text of the field when the model changes
        name = f"{prefix}.{parameter.name}"
        unit = f" ({tr_data(parameter.info.unit)})" if parameter.info.unit else ""
        self._label = QLabel(f"{parameter.title}{unit}")
        self._label.setWordWrap(True)
        explained = _explain(parameter, has_default)
        self._label.setToolTip(plain_tip(explained))
        self._label.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self.editor = ParamEditor(name, parameter)
        self.editor.inner.setToolTip(plain_tip(explained))
        inner = self.editor.inner
        # No focus proxy: Tab would also stop at the container of the fields, wherever it is in the tab order.
        self._label.setBuddy(inner.fields[0] if isinstance(inner, SizeField) else inner)
        default = parameter.format(parameter.default) or tr("empty")
        reset = tr("Reset to {default}", default=default)
        self._reset = tool_button(
            f"{name}.reset",
            "restore",
            tr("Reset {title}", title=parameter.title),
            reset if has_default else tr("The types of the selected layers have different defaults"),
        )
        self._help = tool_button(
            f"{name}.help",
            "help-circle-outline",
            tr("Help on {title}", title=parameter.title),
            tr("Show help"),
            checkable=True,
        )
        self._message = Message(f"{name}.message")
        self._doc = QLabel(explained)
        self._doc.setObjectName(f"{name}.doc")
        self._doc.setWordWrap(True)
        self._doc.setEnabled(True)
        self._doc.setVisible(False)
        top = Qt.AlignmentFlag.AlignVCenter
        grid.addWidget(self._label, row, 0, top)
        if parameter.info.multiline:  # multiline text needs the full width
            grid.addWidget(self.editor, row + 1, 0, 1, 4)
        else:
            grid.addWidget(self.editor, row, 1, top)
        grid.addWidget(self._reset, row, 2, top)
        grid.addWidget(self._help, row, 3, top)
        grid.addWidget(self._message, row + 2, 0, 1, 4)
        grid.addWidget(self._doc, row + 3, 0, 1, 4)
        self.editor.edited.connect(self._edited)
        self.editor.finished.connect(self._finish)
        self.editor.reverted.connect(self._revert)
        self._reset.clicked.connect(self._to_default)
        self._help.toggled.connect(self._doc.setVisible)

    def value(self) -> Value:
        """The value in the model; None if it is mixed or invalid."""
        try:
            return None if self._model is None else self.parameter.parse(self._model)
        except ParamError:
            return None

    def draft(self) -> str | None:
        """The canonical text of the field, if it is valid and another one than the model's."""
        try:
            value = self.parameter.parse(self.editor.text())
        except ParamError:
            return None
        return None if value == self.value() else self.parameter.format(value)

    def show_text(self, text: str | None, several: Collection[str] = ()) -> None:
        """Show the model's text (None: the values `several`). A draft that is equivalent or being corrected is kept."""
        same = text == self._model
        self._model = text
        mending = same and bool(self._message.text())  # an invalid text stays in the field while another one is edited
        if self._drafting or mending or (self.editor.has_focus() and (self._pending or self._is_equivalent(text))):
            self._update_reset()
            return
        self.editor.set_several(several)
        self.editor.set_text(text)
        self._begin = text
        self._check_model()

    def discard_draft(self) -> None:
        """Discard uncommitted text, when another layer is shown."""
        self._pending, self._begin = "", self._model
        self.editor.set_text(self._model)
        self._check_model()

    def tab_stops(self) -> list[QWidget]:
        """The widgets that Tab visits, in order."""
        inner = self.editor.inner
        fields: list[QWidget] = list(inner.fields) if isinstance(inner, SizeField) else [inner]
        return [*fields, self._reset, self._help]

    def set_visible(self, on: bool) -> None:
        for widget in (self._label, self.editor, self._reset, self._help):
            widget.setVisible(on)
        self._message.setVisible(on and bool(self._message.text()))
        self._doc.setVisible(on and self._help.isChecked())

    def _edited(self, text: str) -> None:
        self._pending = ""
        try:
            value = self.parameter.parse(text)
        except ParamError as error:
            self._restore()
            if self.parameter.kind in NUMBERS and is_expression(text):
                self._show_expression(text)
            else:
                self._message.show_message(f"{error}.")
            return
        self._message.show_message("")
        self.changed.emit(self.parameter.name, self.parameter.format(value))

    def _restore(self) -> None:
        """Undo values committed while an expression or invalid text was being typed."""
        if self._begin is not None and self._begin != self._model:
            self._model, self._drafting = self._begin, True
            self.changed.emit(self.parameter.name, self._begin)
            self._drafting = False

    def _show_expression(self, text: str) -> None:
        """Show the value of an expression, or the rule that it violates. Enter or focus out applies it."""
        try:
            result = worked_out(self.parameter.kind, text)
            value = self.parameter.parse(result)
        except (ExpressionError, ParamError) as error:
            self._message.show_message(f"{error}.")
            return
        self._pending = self.parameter.format(value)
        self._message.show_message(tr("= {result}, press Enter to apply", result=self._pending), "info")

    def _finish(self) -> None:
        if self._pending:
            text, self._pending = self._pending, ""
            self._message.show_message("")
            self.editor.set_text(text)
            self.changed.emit(self.parameter.name, text)
        if not self._message.text() and self._is_equivalent(self._model):
            self.editor.set_text(self._model)
        self._begin = self._model
        self.finished.emit()

    def _revert(self) -> None:
        """Escape: restore the text from before the field was entered."""
        self._pending = ""
        self._restore()
        self.editor.set_text(self._model)
        self._check_model()

    def _to_default(self) -> None:
        self._pending = ""
        self._message.show_message("")
        text = self.parameter.format(self.parameter.default)
        self.editor.set_text(text)
        self.changed.emit(self.parameter.name, text)
        self.finished.emit()

    def _check_model(self) -> None:
        try:
            if self._model is not None:
                self.parameter.parse(self._model)
            self._message.show_message("")
        except ParamError as error:
            self._message.show_message(f"{error}.")
        self._update_reset()

    def _update_reset(self) -> None:
        self._reset.setEnabled(self.has_default and (self._model is None or self.value() != self.parameter.default))

    def _is_equivalent(self, text: str | None) -> bool:
        try:
            return text is not None and self.parameter.parse(self.editor.text()) == self.parameter.parse(text)
        except ParamError:
            return False


class ParamSection(QWidget):
    """The rows of one operator declaration, or of the parameters that several share."""

    changed = Signal(str, str)
    finished = Signal()

    def __init__(
        self,
        prefix: str,
        parameters: Iterable[Parameter],
        varied: Collection[str] = (),
        parent: QWidget | None = None,
    ) -> None:
        """`varied` are the names of parameters that have no single default."""
        super().__init__(parent)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(4)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(0, 2)
        grid.setColumnStretch(1, 3)
        self.rows: dict[str, ParamRow] = {}
        for index, parameter in enumerate(parameters):
            single = parameter.name not in varied
            row = ParamRow(prefix, parameter, grid, ROWS * index, self, has_default=single)
            row.changed.connect(self.changed)
            row.finished.connect(self.finished)
            self.rows[parameter.name] = row

    def show_texts(self, texts: dict[str, Sequence[str]]) -> None:
        """Show the texts of the selected layers by parameter, and hide rows that do not apply."""
        for name, row in self.rows.items():
            different = set(texts.get(name, ()))
            row.show_text(next(iter(different)) if len(different) == 1 else None, different)
        values = {name: row.value() for name, row in self.rows.items()}
        for row in self.rows.values():
            row.set_visible(row.parameter.visible(values))

    def discard_drafts(self) -> None:
        for row in self.rows.values():
            row.discard_draft()


def _explain(parameter: Parameter, has_default: bool) -> str:
    info = parameter.info
    parts = [tr_data(info.doc)] if info.doc else []
    if info.min is not None or info.max is not None:
        parts.append(_range(info.min, info.max))
    if info.choices:
        parts.append(tr("One of {choices}.", choices=", ".join(filter(None, info.choices))))
    if parameter.kind in NUMBERS:
        parts.append(tr("Expressions such as 3*16 or (64-32)/2 are evaluated."))
    if has_default and not info.multiline:
        parts.append(tr("Default: {default}.", default=parameter.format(parameter.default) or tr("empty")))
    return " ".join(parts)


def _range(low: float | None, high: float | None) -> str:
    if high is None:
        return tr("At least {low:g}.", low=low)
    return tr("At most {high:g}.", high=high) if low is None else tr("From {low:g} to {high:g}.", low=low, high=high)
