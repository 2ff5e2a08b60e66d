"""The controls that analysis layers publish, drawn from `Operator.options()` and bound to the document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QFormLayout,
    QGroupBox,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.analysis.recipe_edit import RecipeEdit
from app.ui.document.document import Document
from app.ui.widgets import theme
from app.ui.widgets.sentences import placed_text
from app.ui.widgets.slider import NumberSlider
from app.ui.widgets.tooltips import plain_tip
from designer.graph.commands import set_params
from designer.graph.diagnostics import errors
from designer.graph.edits import ChangeSet
from designer.operators.api import Operator, Option
from designer.operators.params import ParamError, Value
from designer.texts import tr, tr_data

DIGITS = 4  # significant ones of a displayed number
WITHOUT_BOUND = 100.0  # where a slider ends whose parameter has no bound, above and below zero
Show = Callable[[Value], None]
Shape = tuple[str, str, tuple[Option, ...]]
W = TypeVar("W", bound=QWidget)


@dataclass(slots=True)
class _OptionRow:
    option: Option
    widget: QWidget
    show: Show


class LayerOptions(QGroupBox):
    """The options of one layer. Values are written to the document; its changes (also undo) come back by `refresh`."""

    def __init__(self, document: Document, layer: str, operator: Operator, parent: QWidget | None = None) -> None:
        super().__init__(f"{layer}  ·  {tr_data(operator.title)}", parent)
        self.setObjectName(f"analysis.options.{layer}")
        self.setAccessibleName(tr("Options of {layer}", layer=layer))
        self._document = document
        self._layer = layer
        self._operator = operator
        self.shape: Shape = (layer, operator.type, operator.options())  # other controls need another widget
        self._rows: list[_OptionRow] = []
        self._form = QFormLayout(self)
        self._form.setContentsMargins(8, 4, 8, 4)
        self._form.setVerticalSpacing(4)
        self._form.setLabelAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._problem = QLabel()
        self._problem.setObjectName(f"analysis.{layer}.problem")
        self._problem.setAccessibleName(tr("Problem of {layer}", layer=layer))
        self._problem.setWordWrap(True)
        self._problem.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._problem.setForegroundRole(QPalette.ColorRole.BrightText)  # the theme's color of errors
        self._problem.setFixedHeight(2 * self._problem.fontMetrics().lineSpacing())  # a problem moves nothing
        for option in self.shape[2]:
            self._add(option)
        self._form.addRow(self._problem)
        self.refresh()

    @property
    def problem(self) -> str:
        """What is displayed as wrong; empty: nothing is."""
        return self._problem.text()

    def refresh(self) -> None:
        """Display the document's values, hide what does not apply, and say what is wrong with a text that is typed here."""
        read = self._document.inference.read(self._layer)
        if isinstance(read.operator, Operator):
            self._operator = read.operator
            values = self._operator.values()
            for row in self._rows:
                row.show(values.get(row.option.param))
                parameter = self._operator.parameter(row.option.param)
                self._form.setRowVisible(row.widget, parameter is None or parameter.visible(values))
        typed = any(row.option.kind == "text" and self._form.isRowVisible(row.widget) for row in self._rows)
        state = self._document.inference.states.get(self._layer)
        found = errors(state.diagnostics) if state is not None and typed else ()
        self._form.setRowVisible(self._problem, typed)
        self._say(placed_text(found[0]) if found else "")

    def _say(self, text: str) -> None:
        self._problem.setText(text)
        self._problem.setToolTip(plain_tip(text))

    # --- one control -------------------------------------------------------------------------------------------

    def _add(self, option: Option) -> None:
        make = {
            "bool": self._bool,
            "float": self._number,
            "int": self._number,
            "choice": self._choice,
            "text": self._text,
            "label": self._label,
            "button": self._button,
        }.get(option.kind, self._label)
        widget, show = make(option)
        parameter = self._operator.parameter(option.param)
        if parameter is not None:
            widget.setToolTip(tr_data(option.doc or parameter.info.doc))
        self._rows.append(_OptionRow(option, widget, show))
        if option.kind in ("bool", "button"):
            self._form.addRow("", widget)
        elif option.kind == "label" and parameter is None:
            self._form.addRow(widget)
        else:
            label = QLabel(tr_data(option.label))
            label.setBuddy(widget)
            self._form.addRow(label, widget)

    def _named(self, widget: W, option: Option) -> W:
        widget.setObjectName(f"analysis.{self._layer}.{option.param}")
        widget.setAccessibleName(tr("{label} of {layer}", label=tr_data(option.label), layer=self._layer))
        return widget

    def _bool(self, option: Option) -> tuple[QWidget, Show]:
        box = self._named(QCheckBox(tr_data(option.label)), option)
        box.toggled.connect(lambda on: self._write(option, on, last=True))

        def show(value: Value) -> None:
            with QSignalBlocker(box):
                box.setChecked(bool(value))

        return box, show

    def _number(self, option: Option) -> tuple[QWidget, Show]:
        parameter = self._operator.parameter(option.param)
        info = parameter.info if parameter is not None else None
        low, high = self._bounds(option)
        if high is None:
            high = WITHOUT_BOUND if low is None else max(low + 1.0, WITHOUT_BOUND)
        low = min(high - 1.0, -WITHOUT_BOUND) if low is None else low
        whole = parameter is not None and parameter.kind == "int"
        step = option.step or (info.step if info is not None else None)
        name = f"analysis.{self._layer}.{option.param}"
        slider = NumberSlider(
            name,
            tr("{label} of {layer}", label=tr_data(option.label), layer=self._layer),
            low,
            high,
            step,
            whole=whole,
            significant=None if whole else DIGITS,
        )
        slider.changed.connect(lambda value: self._write(option, round(value) if whole else value))
        slider.released.connect(self._document.history.seal)

        def show(value: Value) -> None:
            if isinstance(value, int | float):
                slider.set_value(float(value))

        return slider, show

    def _bounds(self, option: Option) -> tuple[float | None, float | None]:
        """The option's, else the parameter's."""
        parameter = self._operator.parameter(option.param)
        info = parameter.info if parameter is not None else None
        low = option.min if option.min is not None or info is None else info.min
        high = option.max if option.max is not None or info is None else info.max
        return low, high

    def _choice(self, option: Option) -> tuple[QWidget, Show]:
        box = self._named(QComboBox(), option)
        box.setMinimumContentsLength(8)  # not the longest choice: the panel may be narrow
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        parameter = self._operator.parameter(option.param)
        for choice in option.choices or (parameter.info.choices if parameter is not None else ()):
            box.addItem(choice.replace("_", " "), choice)
        box.currentIndexChanged.connect(lambda index: self._write(option, box.itemData(index), last=True))

        def show(value: Value) -> None:
            with QSignalBlocker(box):
                box.setCurrentIndex(box.findData(value))

        return box, show

    def _text(self, option: Option) -> tuple[QWidget, Show]:
        edit = self._named(RecipeEdit() if option.param == "recipe" else QLineEdit(), option)
        edit.setFont(theme.mono_font())
        edit.textEdited.connect(lambda text: self._write(option, text))
        edit.editingFinished.connect(self._document.history.seal)

        def show(value: Value) -> None:
            if edit.text() != str(value):
                edit.setText(str(value))

        return edit, show

    def _label(self, option: Option) -> tuple[QWidget, Show]:
        """The value of a parameter, or a sentence where the option names none."""
        label = self._named(QLabel(tr_data(option.label)), option)
        label.setWordWrap(True)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        parameter = self._operator.parameter(option.param)

        def show(value: Value) -> None:
            if parameter is not None:
                label.setText(parameter.format(value))

        return label, show

    def _button(self, option: Option) -> tuple[QWidget, Show]:
        """A button turns a truth value over and counts a number up (another seed)."""
        button = self._named(QPushButton(tr_data(option.label)), option)

        def press() -> None:
            value = self._operator.values().get(option.param)
            if isinstance(value, bool):
                self._write(option, not value, last=True)
            elif isinstance(value, int | float):
                after = value + type(value)(option.step or 1)
                low, high = self._bounds(option)
                beyond = high is not None and after > high
                self._write(option, type(value)(low or 0) if beyond else after, last=True)

        button.clicked.connect(press)
        return button, lambda value: None

    def _write(self, option: Option, value: Value, *, last: bool = False) -> None:
        parameter = self._operator.parameter(option.param)
        if parameter is None or self._layer not in self._document.graph:
            return
        if parameter.kind == "float" and isinstance(value, int | float):
            value = round(float(value), 9)  # a slider's sum of steps, not 0.30000000000000004
        try:
            parameter.check(value)
        except ParamError as error:
            self._say(f"{tr_data(option.label)}: {error}")
            return
        text = parameter.format(value)
        if self._document.graph[self._layer].params.get(option.param) == text:
            return
        texts = {option.param: text}
        for name, also in self._operator.also_set(option.param, value).items():
            other = self._operator.parameter(name)
            assert other is not None, name
            texts[name] = other.format(also)
        key = f"analysis.{self._layer}.{option.param}"
        self._document.do(lambda graph: set_params(graph, {self._layer: texts}, merge_key=key))
        if last:
            self._document.history.seal()


class OptionsArea(QWidget):
    """The options of every layer that publishes some, in the document's order."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("analysis.options")
        self.setAccessibleName(tr("Options of the analysis layers"))
        self._document: Document | None = None
        self._groups: dict[str, LayerOptions] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self._empty = QLabel(
            tr("Add a Noise, Mix or other analysis layer from the Layer Palette to see its options here.")
        )
        self._empty.setWordWrap(True)
        self._empty.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self._column.addWidget(self._empty)

    def show_document(self, document: Document | None) -> None:
        self._document = document
        self._rebuild()

    def follow(self, change: ChangeSet) -> None:
        """After an edit of the document."""
        document = self._document
        if document is None:
            return
        if change.added or change.removed:
            self._rebuild()
            return
        for name in change.computed & (self._groups.keys() | change.reconfigured):
            if self._shape(name) != self._built(name):
                self._rebuild()
                return
            if name in self._groups:
                self._groups[name].refresh()

    def layer_with(self, problem: str) -> str:
        """The layer whose options display this problem; empty: none."""
        return next((name for name, group in self._groups.items() if problem and group.problem == problem), "")

    def _shape(self, layer: str) -> Shape | None:
        assert self._document is not None
        operator = self._document.inference.read(layer).operator if layer in self._document.graph else None
        if not isinstance(operator, Operator):
            return self._built(layer)  # a wrong text keeps its controls, so that it can be mended there
        options = operator.options()
        return (layer, operator.type, options) if options else None

    def _built(self, layer: str) -> Shape | None:
        group = self._groups.get(layer)
        return group.shape if group is not None else None

    def _rebuild(self) -> None:
        focus = QApplication.focusWidget()
        focused = focus.objectName() if focus is not None and self.isAncestorOf(focus) else ""
        for group in self._groups.values():
            self._column.removeWidget(group)
            group.hide()
            group.setObjectName("")  # it lives until the event loop comes round, its successor has the name
            for child in group.findChildren(QWidget):
                child.setObjectName("")
            group.deleteLater()
        self._groups.clear()
        if self._document is not None:
            graph, registry = self._document.graph, self._document.registry
            types = {kind: registry.get(kind) for kind in graph.types}
            silent = {kind for kind, cls in types.items() if cls is not None and cls.options is Operator.options}
            for layer in graph:
                if layer.type in silent:  # nearly all layers
                    continue
                operator = self._document.inference.read(layer.name).operator
                if isinstance(operator, Operator) and operator.options():
                    group = LayerOptions(self._document, layer.name, operator)
                    self._groups[layer.name] = group
                    self._column.addWidget(group)
        self._empty.setVisible(not self._groups)
        again = self.findChild(QWidget, focused) if focused else None
        if again is not None:
            again.setFocus()
