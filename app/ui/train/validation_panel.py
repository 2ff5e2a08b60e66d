"""Validation Images: what the network makes of the validation images at each step, against input, target and another run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.ui.engine.context import Context
from app.ui.engine.training import training_of
from app.ui.train.run_progress import metric_title
from app.ui.widgets.empty_state import EmptyStack, EmptyState
from app.ui.widgets.image_view import ImageView, SplitMode
from app.ui.widgets.narrow_combo import NarrowComboBox
from app.ui.widgets.slider import NumberSlider
from designer.texts import tr
from designer.training.watched_run import RunSnapshot, WatchedRun
from designer.units import digits

_Written = tuple[Path, int] | None
INPUT, TARGET, OUTPUT, OTHER = "input", "target", "output", "other"


class ValidationPanel(QWidget):
    """Two images on both sides of a line that can be dragged. The slider follows the latest step until it is moved back."""

    panel_id = "validation"
    title = "Validation Images"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("validation")
        self.setAccessibleName(tr("Validation Images"))
        self._training = training_of(context)
        self._run: WatchedRun | None = None
        self._following = True
        self._amount = 0.5
        self._shown: tuple[_Written, _Written] = (None, None)
        self._images: tuple[QImage | None, QImage | None] = (None, None)
        self._name = ""  # of the image that the user chose, which may not be written yet at the latest step
        self.image_box = self._box("image", tr("Validation image"))
        self.image_box.activated.connect(lambda _index: self._remember_name())
        self.left = self._box("left", tr("Left of the line"))
        self.right = self._box("right", tr("Right of the line"))
        self.view = ImageView("validation.view", tr("Validation image"), tr("This image is not there at this step"))
        self.view.split_moved.connect(self._split)
        self.step = NumberSlider("validation.step", tr("Validation"), 0, 1, whole=True)
        self.step.box.hide()
        self.step.changed.connect(lambda _value: self._on_slider())
        self.caption = QLabel()
        self.caption.setObjectName("validation.caption")
        self.caption.setTextFormat(Qt.TextFormat.PlainText)  # it may contain the name of a run
        self.caption.setWordWrap(True)
        self._lay_out()
        self._training.updated.connect(self._update)
        self._training.chosen_changed.connect(self._update)
        self._update()

    def _box(self, name: str, title: str) -> QComboBox:
        box = NarrowComboBox(f"validation.{name}", title, title, characters=6)
        box.activated.connect(lambda _index: self._show())
        return box

    def _lay_out(self) -> None:
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        sides = QHBoxLayout()
        for box in (self.left, self.right):
            sides.addWidget(box, 1)
        column.addWidget(self.image_box)
        column.addLayout(sides)
        column.addWidget(self.view, 1)
        column.addWidget(self.step)
        column.addWidget(self.caption)
        empty = EmptyState(
            "validation", "image-multiple-outline", tr("The images of each validation of a run appear here.")
        )
        self._stack = EmptyStack(self, empty, page)

    # --- following the run -----------------------------------------------------------------------------------

    @property
    def other(self) -> WatchedRun | None:
        """The run that the current one is compared with."""
        return self._training.chosen[1] if len(self._training.chosen) > 1 else None

    def _steps(self) -> tuple[int, ...]:
        return self._run.snapshot.validations if self._run is not None else ()

    def _update(self) -> None:
        run = self._training.current
        if run is not self._run:
            self._run, self._following = run, True
        steps = self._steps()
        self._stack.show_content(bool(steps))
        if run is None or not steps:
            return
        last = len(steps) - 1
        self.step.set_range(0, max(last, 1), 1)
        if self._following:
            self.step.set_value(last)
        self._fill_names(run)
        self._fill_sides(run)
        self._show()

    def _fill_names(self, run: WatchedRun) -> None:
        """The images that were written at the step of the slider."""
        steps = self._steps()
        names = run.folder.validation_images(steps[min(round(self.step.value), len(steps) - 1)])
        if names != [self.image_box.itemText(number) for number in range(self.image_box.count())]:
            self.image_box.clear()
            self.image_box.addItems(names)
            self.image_box.setCurrentIndex(max(self.image_box.findText(self._name), 0))

    def _fill_sides(self, run: WatchedRun) -> None:
        entries = [(tr("Input"), INPUT), (tr("Output"), OUTPUT), (tr("Target"), TARGET)]
        if self.other is not None:
            entries[1] = (tr("Output of {run}", run=run.snapshot.title), OUTPUT)
            entries.append((tr("Output of {run}", run=self.other.snapshot.title), OTHER))
        for box, first in ((self.left, INPUT), (self.right, OUTPUT)):
            if [text for text, _ in entries] == [box.itemText(number) for number in range(box.count())]:
                continue
            compared = self.other is not None
            default = (OUTPUT if box is self.left else OTHER) if compared else first
            box.clear()
            for text, side in entries:
                box.addItem(text, side)
            box.setCurrentIndex(box.findData(default))

    def _on_slider(self) -> None:
        self._following = round(self.step.value) >= len(self._steps()) - 1
        if self._run is not None and self._steps():
            self._fill_names(self._run)
        self._show()

    def _remember_name(self) -> None:
        self._name = self.image_box.currentText()

    # --- the image -------------------------------------------------------------------------------------------

    def _show(self) -> None:
        """Load the two images if other ones are wanted, and show them."""
        run, steps = self._run, self._steps()
        if run is None or not steps:
            return
        step = steps[min(round(self.step.value), len(steps) - 1)]
        paths = (self._path(run, self.left.currentData(), step), self._path(run, self.right.currentData(), step))
        shown = (_written(paths[0]), _written(paths[1]))
        if shown != self._shown or None in self._images:  # an image may not have been written yet
            self._shown = shown
            self._images = (_load(paths[0]), _load(paths[1]))
        self.caption.setText("\n".join(filter(None, (self._caption(run.snapshot, step), self._other_caption(step)))))
        self._compose()

    def _path(self, run: WatchedRun, side: str, step: int) -> Path | None:
        name = self.image_box.currentText()
        if side in (INPUT, TARGET):
            pair = run.folder.validation_pair(name)
            return pair[0] if side == INPUT else pair[1]
        if side == OUTPUT:
            return run.folder.validation_image(step, name)
        at = self._other_step(step)
        return self.other.folder.validation_image(at, name) if self.other is not None and at is not None else None

    def _other_step(self, step: int) -> int | None:
        """The step of the other run whose output is compared with that of `step`: its last validation that is not after it."""
        validated = self.other.snapshot.validations if self.other is not None else ()
        return max((each for each in validated if each <= step), default=None)

    def _caption(self, shot: RunSnapshot, step: int) -> str:
        """The step, and its metrics, which are those of all images together."""
        texts = []
        for name in shot.curves.validated:
            at, values = shot.curves.points(name)
            found = values[at == step]
            if len(found):
                texts.append(f"{metric_title(name)} {digits(float(found[-1]))}")
        if not texts:
            return tr("step {step}", step=step)
        metrics = ", ".join(texts)
        if shot.curves.on_training:
            return tr("step {step}, all images, which are training images: {metrics}", step=step, metrics=metrics)
        return tr("step {step}, all images: {metrics}", step=step, metrics=metrics)

    def _other_caption(self, step: int) -> str:
        """Where the output of the other run is of another step, or missing."""
        if self.other is None or OTHER not in (self.left.currentData(), self.right.currentData()):
            return ""
        at, title = self._other_step(step), self.other.snapshot.title
        if at is None:
            return tr("{run} has no output up to this step.", run=title)
        return tr("The output of {run} is of step {step}.", run=title, step=at) if at != step else ""

    def _split(self, amount: float) -> None:
        self._amount = amount
        self._compose()

    def _compose(self) -> None:
        left, right = self._images
        if left is None or right is None:
            self.view.set_split(SplitMode.NONE, self._amount)
            self.view.show_image(left or right)
            return
        size = max(left.size(), right.size(), key=lambda each: each.width() * each.height())
        whole, part = (_enlarged(image, size) for image in (left, right))
        cut = round(self._amount * size.width())
        painter = QPainter(whole)
        painter.drawImage(QRect(cut, 0, size.width() - cut, size.height()), part, part.rect().adjusted(cut, 0, 0, 0))
        painter.end()
        self.view.set_split(SplitMode.VERTICAL, self._amount)
        self.view.show_image(whole)


def _written(path: Path | None) -> _Written:
    """What identifies the content of a file: a resumed run writes images of the same steps again."""
    with suppress(OSError):
        return (path, path.stat().st_mtime_ns) if path is not None else None
    return None


def _enlarged(image: QImage, size: QSize) -> QImage:
    """The image at the size of the larger one of a pair, with square pixels; input and target of super-resolution differ."""
    scaled = image.scaled(size, Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.FastTransformation)
    return scaled.convertToFormat(QImage.Format.Format_RGB32)


def _load(path: Path | None) -> QImage | None:
    if path is None:
        return None
    image = QImage(str(path))
    return None if image.isNull() else image
