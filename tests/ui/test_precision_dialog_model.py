"""Find Precision in random sequences of choices, answers and check marks: requests, texts and the variant are those of a model."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot
from runtime_networks import chain
from window_kit import shown

from app.engine.protocol import ChoosePrecisionReply, ChoosePrecisionRequest, LayerSensitivity, ProgressEvent
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.question import EngineQuestion
from app.ui.precision.precision_dialog import PrecisionDialog
from app.ui.widgets import theme
from designer.files.variants import BY_HAND, CalibrationRecipe, Variant
from designer.operators.registry import default_registry
from designer.precision.mixed import BUDGET_DB
from designer.units import binary

INTEGER = {"int8": "float32", "int8+fp16": "float16"}


class Dialog:
    def __init__(self, qtbot: QtBot, patch: pytest.MonkeyPatch, tmp_path: Path, seed: int) -> None:
        theme.apply(QApplication.instance(), "dark")  # type: ignore[arg-type]
        self.random, self.folder = random.Random(seed), tmp_path
        context = Context(default_registry())
        network = chain(
            ("conv", "convolution", {"features": 3}), ("last", "convolution", {"features": 3}), size="16x8x3"
        )
        context.set_document(Document(network, context.registry, parent=context))
        self.waiting: tuple[Callable[..., None], ...] | None = None
        self.asked: list[ChoosePrecisionRequest] = []
        patch.setattr(EngineQuestion, "busy", property(lambda _: self.waiting is not None))
        patch.setattr(EngineQuestion, "ask", lambda _self, request, *answers: self.ask(request, answers))
        patch.setattr(EngineQuestion, "stop", lambda _self: self.end())
        self.dialog = shown(qtbot, PrecisionDialog(context, self.random.choice(("mixed", "int8", "unknown"))), 700, 600)
        context.setParent(self.dialog)
        self.variants: list[Variant] = []
        self.dialog.accepted_variant.connect(self.variants.append)
        self.revealed: list[str] = []
        context.reveal_requested.connect(self.revealed.append)
        self.patch = patch
        self.reply: ChoosePrecisionReply | None = None
        self.recipe: CalibrationRecipe | None = None
        self.marks: dict[str, bool] = {}
        self.status = ""

    def ask(self, request: ChoosePrecisionRequest, answers: tuple[Any, ...]) -> None:
        self.asked.append(request)
        self.waiting = answers
        self.dialog._question.busy_changed.emit(True)

    def end(self) -> tuple[Callable[..., None], ...]:
        assert self.waiting is not None
        answers, self.waiting = self.waiting, None
        self.dialog._question.busy_changed.emit(False)
        return answers

    @property
    def target(self) -> str:
        return str(self.dialog.target.currentData())

    # --- steps -----------------------------------------------------------------------------------------------------

    def chose(self, act: Callable[[], object], changes: bool) -> None:
        """A choice changes: what runs is stopped, and what was found is of other choices."""
        busy = self.waiting is not None
        act()
        if changes:
            self.reply, self.marks = None, {}
            self.status = "note: Stopped. Nothing was changed." if busy else ""

    def choose(self) -> None:
        dialog, pick = self.dialog, self.random.choice
        number = self.random.randrange(8)
        if number == 0:
            row = self.random.randrange(5)
            changes = row != dialog.target.currentIndex()
            self.chose(lambda: dialog.target.setCurrentIndex(row), changes)
            if changes:
                assert dialog.budget.value() == (40.0 if self.target in INTEGER else BUDGET_DB)
            return
        field, values = (
            (dialog.folder, ("", "  ", "/photos", " ~/photos ", "~nobody-of-that-name/photos")),
            (dialog.pixels, ("", " 64x48 ")),
            (dialog.count, (7, 100)),
            (dialog.percentile, (99.5, 99.99)),
            (dialog.budget, (0.0, 33.5, 40.0)),
            (dialog.method, (0, 1)),
            (dialog.runtime, (0, 1)),
        )[number - 1]
        value = pick(values)
        if hasattr(field, "setText"):
            self.chose(lambda: field.setText(value), field.text() != value)
        elif hasattr(field, "setValue"):
            self.chose(lambda: field.setValue(value), abs(field.value() - value) > 1e-9)
        else:
            self.chose(lambda: field.setCurrentIndex(value), field.currentIndex() != value)

    def find(self) -> None:
        dialog = self.dialog
        enabled, busy, count = dialog.search.isEnabled(), self.waiting is not None, len(self.asked)
        dialog.search.click()
        if busy:
            assert self.waiting is None
            self.status = "note: Stopped. Nothing was changed."
        elif enabled:
            folder = os.path.abspath(os.path.expanduser(dialog.folder.text().strip()))
            method = str(dialog.method.currentData())
            self.recipe = None
            if self.target in INTEGER:
                self.recipe = CalibrationRecipe(
                    folder,
                    dialog.count.value(),
                    dialog.pixels.text().strip(),
                    method,
                    dialog.percentile.value(),
                    str(dialog.runtime.currentData()),
                )
            kept_in = INTEGER.get(self.target, "float32")
            expected = ChoosePrecisionRequest(self.target, folder, dialog.budget.value() or None, self.recipe, kept_in)
            assert self.asked[count:] == [expected]
            self.reply, self.marks, self.status = None, {}, "note: Running the network ..."
            assert dialog.bar.maximum() == 0
        else:
            assert len(self.asked) == count

    def progress(self) -> None:
        if self.waiting is not None:
            self.waiting[2](ProgressEvent(0, 3, 7, "Checking conv"))
            assert (self.dialog.bar.value(), self.dialog.bar.maximum()) == (3, 7)
            self.status = "note: Checking conv"

    def refuse(self) -> None:
        if self.waiting is not None:
            self.end()[1]("It failed.")
            self.status = "error: It failed."

    def answer(self) -> None:
        if self.waiting is None:
            return
        pick = self.random.choice
        kept = pick(({}, {"conv": "it overflows"}, {"last": "<b> by hand", "conv": "it overflows"}))
        sensitivity = pick(((), (LayerSensitivity("last", 31.04, 47.0), LayerSensitivity("other", 21.0, 57.0))))
        files = dict.fromkeys("abcd"[: pick((0, 1, 4))], "it is not an image")
        size = pick((0, 1500))
        self.reply = ChoosePrecisionReply(
            self.target.partition("+")[0], pick((None, 41.254)), pick((True, False)), kept, pick((1, 7)), files,
            INTEGER.get(self.target, "float32"), pick(({}, {"conv": 70000.0, "a": 1e6, "b": 2.0, "c": 3.0})),
            pick((None, 38.5)), sensitivity, bytes=size, bytes_fp32=4 * size, report=pick(("", "{}")),
        )  # fmt: skip
        self.end()[0](self.reply)
        names = dict.fromkeys((*kept, *(each.layer for each in sensitivity)))
        self.marks = {name: name in kept for name in names}
        self.status = f"{'note' if self.reply.met else 'warning'}: {' '.join(self.verdict(self.reply))}"

    def check_row(self) -> None:
        tree = self.dialog.layers
        if self.marks:
            item = tree.topLevelItem(self.random.randrange(tree.topLevelItemCount()))
            assert item is not None
            self.marks[item.text(0)] ^= True
            on = self.marks[item.text(0)]
            item.setCheckState(0, Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)
            tree.itemClicked.emit(item, 0)
            assert self.revealed == ([item.text(0)] if item.text(0) in ("conv", "last") else [])
            self.revealed.clear()

    def save(self) -> None:
        if self.reply is None or not self.reply.report:
            return
        path = self.random.choice((self.folder / "report.json", self.folder / "none" / "report.json", None))
        self.patch.setattr(QFileDialog, "getSaveFileName", lambda *words: (str(path) if path is not None else "", ""))
        self.dialog.save.click()
        if path is None:
            return
        if path.parent.exists():
            assert path.read_text() == self.reply.report
            self.status = "note: Saved report.json"
        else:
            self.status = self.message()
            assert self.status.startswith("error: ")

    # --- the model -------------------------------------------------------------------------------------------------

    def message(self) -> str:
        return str(self.dialog.status._text.accessibleName())

    def verdict(self, reply: ChoosePrecisionReply) -> list[str]:
        found = [f"Equal to FP32 on {reply.images} images."]
        if reply.psnr_db is not None:
            found = [f"{reply.psnr_db:.2f} dB against FP32 on {reply.images} images."]
        found += [] if reply.met else ["The budget is not met: this is the best that was found."]
        found += [f"{binary(reply.bytes)} instead of {binary(reply.bytes_fp32)}."] if reply.bytes else []
        first = list(reply.overflow)[:3]
        found += [
            f"'{layer}' overflows: values up to {reply.overflow[layer]:.4g}."
            for layer in first
            if layer not in reply.kept
        ]
        if reply.bf16_db is not None:
            found.append(f"BF16 has the range of FP32 and reaches {reply.bf16_db:.2f} dB.")
        if reply.skipped:
            many = f"{len(reply.skipped)} files were" if len(reply.skipped) > 1 else "1 file was"
            named = "; ".join(f"{name}: it is not an image" for name in list(reply.skipped)[:3])
            found.append(f"{many} skipped ({named}).")
        return found

    def check(self) -> None:
        dialog, reply = self.dialog, self.reply
        busy, integer = self.waiting is not None, self.target in INTEGER
        assert self.message() == self.status
        assert dialog.search.text() == ("Stop" if busy else "Find")
        assert dialog.search.isEnabled() is (busy or bool(dialog.folder.text().strip()))
        assert dialog.bar.isVisible() is busy
        assert {field.isVisible() for field in (dialog.count, dialog.pixels, dialog.method, dialog.runtime)} == {
            integer
        }
        assert dialog.percentile.isEnabled() is (dialog.method.currentData() == "percentile")
        assert (dialog.add.isEnabled(), dialog.save.isVisible()) == (reply is not None, bool(reply and reply.report))
        items = [dialog.layers.topLevelItem(row) for row in range(dialog.layers.topLevelItemCount())]
        rows = {item.text(0): item for item in items if item is not None}
        assert list(rows) == list(self.marks)
        if reply is None:
            return
        format = "FP16" if self.target == "int8+fp16" else "FP32"
        titles = [f"Layer in {format}", "Reason"]
        titles += ["PSNR alone\nin INT8, dB", "PSNR of all\nothers, dB"] if reply.sensitivity else []
        header = dialog.layers.headerItem()
        assert [header.text(column) for column in range(dialog.layers.columnCount())] == titles
        measured = {each.layer: [f"{each.alone_db:.1f}", f"{each.without_db:.1f}"] for each in reply.sensitivity}
        for name, item in rows.items():
            texts = [item.text(column) for column in range(1, dialog.layers.columnCount())]
            numbers = measured.get(name, [""] * (len(titles) - 2))
            assert texts == [reply.kept.get(name, ""), *numbers]
            assert (item.checkState(0) is Qt.CheckState.Checked) is self.marks[name]
        self.check_variant(reply)

    def check_variant(self, reply: ChoosePrecisionReply) -> None:
        on = [name for name, mark in self.marks.items() if mark]
        changed = sorted(name for name, mark in self.marks.items() if mark is not (name in reply.kept))
        reasons = {name: reply.kept[name] for name in on if name in reply.kept} | dict.fromkeys(changed, BY_HAND)
        title = {"int8": "INT8", "int8+fp16": "INT8 + FP16"}.get(self.target)
        title = title or ("Mixed" if on else self.target.upper())
        assert self.dialog._variant(reply) == Variant(
            title, reply.precision, dict.fromkeys(on, reply.format), reasons=reasons, calibration=self.recipe
        )


@pytest.mark.parametrize("seed", range(8))
def test_the_dialog_asks_for_what_is_chosen_and_shows_what_was_found(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seed: int
) -> None:
    made = Dialog(qtbot, monkeypatch, tmp_path, seed)
    steps = [made.choose] * 3 + [made.find] * 3 + [made.answer] * 3 + [made.check_row] * 3
    steps += [made.progress, made.refuse, made.save]
    made.dialog.folder.setText("/photos")
    made.check()
    for _ in range(120):
        made.random.choice(steps)()
        made.check()
    made.chose(lambda: made.dialog.folder.setText("/others"), changes=True)
    made.find()
    made.answer()
    assert made.reply is not None
    expected = made.dialog._variant(made.reply)
    made.dialog.add.click()
    assert made.variants == [expected]
    assert not made.dialog.isVisible()
