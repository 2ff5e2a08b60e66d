"""The Advice panel after any steps: its cards are those of the run, the network and the settings as they are then."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import ref

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from profile_kit import NAMES, RUN, check_launch, context, profile_of, profiling
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtWidgets import QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot
from random_steps import play
from window_kit import shown

from app.engine.protocol import OpenRequest
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import Entry, ProfilingController
from app.ui.profile.advice_panel import AdvicePanel
from designer.graph import commands
from designer.profiling.advice import Advice, Advisable, advise
from designer.profiling.difference import difference
from designer.profiling.quantities import ValueSource, measured
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun
from designer.units import quantity

__all__ = ["context", "profiling"]
NOTHING = "Nothing to change: no rule predicts a saving of 1 % of the run or more."
TIP = "Change it in one step that Undo reverts"


def run_of(chance: random.Random) -> ProfileRun:
    rows = tuple(
        OperatorProfile(
            (name,), "convolution", chance.choice((0.01, 10.0, 40.0)), 0.01, flops=10**9, bytes=1000, bound="compute",
            inputs=("N x 16 x 64 x 64",), outputs=("N x 16 x 64 x 64",),
        )
        for name in NAMES
    )  # fmt: skip
    return replace(
        RUN,
        precision="fp32",
        engine=chance.choice(("torch", "onnxruntime")),
        layout=chance.choice(("nchw", "nhwc")),
        operators=rows,
        time_ms=chance.choice((None, *[sum(row.time_ms for row in rows)] * 9)),
        spread_ms=0.01,
        flops=4 * 10**9,
        turns="x",
        batch=chance.choice((3, 3, 3, 9)),
        source=chance.choice((ValueSource.MODELLED, *[ValueSource.MEASURED] * 5)),
        load=chance.choice((RUN.load, RUN.load, measured(40.0))),
    )


class Panel:
    def __init__(self, qtbot: QtBot, context: Context, profiling: ProfilingController, seed: int) -> None:
        self.random = random.Random(seed)
        self.context, self.profiling = context, profiling
        other = Document(context.root.graph.copy(), context.registry, parent=context)
        self.documents = [context.root, other]
        for document in self.documents:
            document.do(lambda g: commands.set_params(g, {name: {"kernel": "5x5"} for name in NAMES[:3]}))
        self.applied: list[tuple[Advice, Entry, Document, int]] = []
        self.said: list[tuple[str, str]] = []
        context.message.connect(lambda level, text: self.said.append((level, text)))
        self.revealed: list[str] = []
        context.reveal_requested.connect(self.revealed.append)
        self.panel = shown(qtbot, AdvicePanel(context), 400, 700)
        assert self.panel._stack.currentIndex() == 0
        check_launch(self.panel, context)
        self.panel._rest.setInterval(0)

    # --- steps -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        more: dict[str, Any] = {}
        kind = self.random.randrange(6)
        if kind < 4:  # of this session
            document = self.context.root if kind < 3 else self.random.choice(self.documents)
            more = {
                "openings": (OpenRequest(self.random.choice(("a", "b", "c", "d")), "w"),),
                "documents": (ref(document),),
            }
        elif kind == 4:
            more = {"path": Path("/folder/a.json")}
        profile = profile_of(run_of(self.random), network=self.random.choice(("net", "net", "net", "other")))
        if self.random.random() < 0.1:
            profile = Profile(replace(profile.machine, cpu="Another CPU"), profile.network, profile.runs)
        self.profiling.add(profile, **more)

    def show(self) -> None:
        if self.profiling.entries:
            self.profiling.show(self.random.choice((None, *self.profiling.entries, *self.profiling.entries)))

    def remove(self) -> None:
        """Delete a run from the list, while none is shown."""
        if len(self.profiling.entries) > 4:
            self.profiling.show(None)
            self.profiling.remove(self.random.choice(self.profiling.entries))

    def go(self) -> None:
        self.context.set_document(self.random.choice(self.documents))

    def edit(self) -> None:
        name, kernel = self.random.choice(NAMES), self.random.choice(("3x3", "5x5", "7x7"))
        self.context.root.do(lambda g: commands.set_params(g, {name: {"kernel": kernel}}))

    def edit_another_document(self) -> None:
        """Nobody watches it."""
        (other,) = (each for each in self.documents if each is not self.context.root)
        assert not self.panel._rest.isActive()
        other.do(lambda g: commands.set_params(g, {"tail": {"features": str(self.random.randrange(3, 99))}}))
        other.change_settings(threads=self.random.randrange(1, 9))
        assert not self.panel._rest.isActive()

    def settings(self) -> None:
        self.context.root.change_settings(
            engine=self.random.choice(("torch", "onnxruntime")), layout=self.random.choice(("nchw", "nhwc"))
        )

    def undo(self) -> None:
        self.context.root.undo()

    def redo(self) -> None:
        self.context.root.redo()

    def hide(self) -> None:
        self.panel.setVisible(not self.panel.isVisible())

    def apply(self) -> None:
        buttons = [b for b in self.panel.findChildren(QPushButton) if b.objectName().endswith(".apply")]
        entry = self.profiling.current
        if not buttons or entry is None or not self.panel.isVisible():
            return
        button = self.random.choice(buttons)
        advice = self.offered()[int(button.objectName().split(".")[1])]
        assert advice.edit is not None
        root, latest = self.context.root, max(each.number for each in self.profiling.entries)
        wanted = {name: after for name, (_, after) in advice.edit.layers.items()}
        settings = {name: after for name, (_, after) in advice.edit.settings.items()}
        button.click()
        assert {name: root.graph.get(name) for name in wanted} == wanted
        assert {name: getattr(root.settings, name) for name in settings} == settings
        assert self.said == [("info", f"{advice.edit.title}. Launch inference to measure the saving.")]
        self.said.clear()
        self.applied.append((advice, entry, root, latest))

    def reveal(self) -> None:
        buttons = [b for b in self.panel.findChildren(QPushButton) if b.objectName().endswith(".reveal")]
        entry = self.profiling.current
        if not buttons or entry is None or not self.panel.isVisible():
            return
        button = self.random.choice(buttons)
        advice = self.offered()[int(button.objectName().split(".")[1])]
        button.click()
        assert self.profiling.chosen_rows == tuple(
            row for row in entry.run.operators if any(name in advice.layers for name in row.layers)
        )
        assert self.revealed == [advice.layers[0]]
        self.revealed.clear()

    # --- what is shown -------------------------------------------------------------------------------------------------

    def mine(self, entry: Entry, document: Document | None = None) -> bool:
        return entry.opening is None or (
            entry.document is not None and entry.document() is (document or self.context.root)
        )

    def kept(self) -> list[tuple[Advice, Entry, Document, int]]:
        """What was applied and has not been undone since."""

        def undone(advice: Advice, document: Document) -> bool:
            assert advice.edit is not None
            for name, (before, _) in advice.edit.layers.items():
                if document.graph.get(name) != before:
                    return False
            return all(getattr(document.settings, name) == before for name, (before, _) in advice.edit.settings.items())

        return [each for each in self.applied if not undone(each[0], each[2])]

    def offered(self) -> list[Advice]:
        entry, root = self.profiling.current, self.context.root
        if entry is None or not self.mine(entry):
            return []
        others = [
            each.run
            for each in self.profiling.entries
            if each.profile.machine == entry.profile.machine and self.mine(each)
        ]
        settings = {name: getattr(root.settings, name) for name in ("engine", "precision", "layout")}
        waiting = {advice.message for advice, before, _, _ in self.kept() if before is entry}
        found = advise(Advisable(root.graph, entry.run, others, settings))
        return [advice for advice in found if advice.message not in waiting]

    def saved(self, before: Entry, document: Document, latest: int) -> str:
        run = before.run
        for entry in self.profiling.entries:
            new = entry.number > latest and entry.path is None and self.mine(entry, document)
            again = entry.opening is not None and entry.opening == before.opening
            same = (entry.profile.network, entry.run.batch, entry.run.size) == (
                before.profile.network, run.batch, run.size
            )  # fmt: skip
            if new and not again and same and entry.run.source is ValueSource.MEASURED and entry.run.time_ms:
                found = difference(run, entry.run)
                if found.total.verdict == "none":
                    noise = quantity(found.total.noise_ms / 1e3, "s")
                    text = f"measured: no difference beyond the noise of {noise}"
                else:
                    text = f"measured {quantity(-found.total.difference_ms / 1e3, 's')}"
                return f"{text}\nnote: {found.doubt}" if found.doubt else text
        return "not measured yet"

    def expected(self) -> list[tuple[str, list[str], list[str]]]:
        entry = self.profiling.current
        if entry is None:
            return []
        cards = []
        for advice, before, document, latest in self.kept():
            if document is self.context.root:
                predicted = f"Applied. Predicted saving {quantity(advice.saving_ms / 1e3, 's')}."
                title = advice.message[:1].upper() + advice.message[1:] + "."
                cards.append(("advice.applied", [title, predicted, self.saved(before, document, latest)], list[str]()))
        offered = self.offered()
        for number, advice in enumerate(offered):
            title, remedy = (text[:1].upper() + text[1:] + "." for text in (advice.message, advice.remedy))
            source = {ValueSource.MEASURED: "measured"}.get(advice.source, "modelled")
            saves = f"saves about {quantity(advice.saving_ms / 1e3, 's')} ({source}: {advice.reason})"
            buttons = ["Show on Canvas"] if advice.layers else []
            buttons += ["Apply"] if advice.edit is not None else []
            cards.append((f"advice.{number}", [title, remedy, saves], buttons))
        if not offered:
            text = NOTHING
            if not self.mine(entry):
                text = f"Run #{entry.number} is of another document. Launch or select a run of this one."
            cards.append(("advice.nothing", [text], []))
        return cards

    def check(self) -> None:
        for _ in range(2):
            QCoreApplication.processEvents()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        if not self.panel.isVisible():
            return
        page = self.panel.findChild(QWidget, "advice.page")
        assert page is not None
        found = []
        for number in range(self.panel._cards.count()):
            item = self.panel._cards.itemAt(number)
            card = item.widget() if item is not None else None
            assert card is not None
            labels = [card] if isinstance(card, QLabel) else card.findChildren(QLabel)
            buttons = card.findChildren(QPushButton)
            found.append((card.objectName(), [label.text() for label in labels], [b.text() for b in buttons]))
            assert all(b.toolTip() == TIP for b in buttons if b.text() == "Apply")
            if len(labels) > 1:
                assert card.accessibleName() == labels[0].text()
                assert labels[0].font().bold()
                assert all(label.textFormat() is Qt.TextFormat.PlainText for label in labels)
        assert found == self.expected()
        assert len(page.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)) == len(found)
        assert self.panel._stack.currentIndex() == int(self.profiling.current is not None)


@pytest.mark.parametrize("seed", range(4))
def test_the_cards_are_those_of_the_run_and_the_network_as_they_are(
    qtbot: QtBot, context: Context, profiling: ProfilingController, seed: int
) -> None:
    made = Panel(qtbot, context, profiling, seed)
    steps: list[Callable[[], None]] = [
        made.run, made.run, made.show, made.show, made.go, made.edit, made.edit_another_document, made.settings, made.undo, made.redo, made.hide,
        made.apply, made.apply, made.apply, made.reveal, made.reveal, made.remove,
    ]  # fmt: skip
    play(made, steps, 70)
