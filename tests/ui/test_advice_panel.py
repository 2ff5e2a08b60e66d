"""Advice that is applied: to which document it belongs, which run measures it, and when it is offered again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import ref

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from profile_kit import NAMES, RUN, context, profile_of, profiling
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtWidgets import QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot
from window_kit import shown

from app.engine.protocol import OpenRequest
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import ProfilingController
from app.ui.profile.advice_panel import AdvicePanel
from designer.graph import commands
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.profiling.machine import Machine
from designer.profiling.quantities import ValueSource, measured
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun
from designer.units import quantity

__all__ = ["context", "profiling"]
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def panel(qtbot: QtBot, context: Context) -> AdvicePanel:
    """Of a network whose first convolutions have 5x5 kernels."""
    context.document.do(lambda g: commands.set_params(g, {name: {"kernel": "5x5"} for name in NAMES[:2]}))
    return shown(qtbot, AdvicePanel(context), 400, 700)


def slow(stem: float = 10.0, body: float = 40.0, **more: Any) -> ProfileRun:
    rows = tuple(
        OperatorProfile(
            (name,),
            "convolution",
            time,
            0.01,
            flops=10**9,
            bytes=1000,
            bound="compute",
            inputs=("N x 16 x 64 x 64",),
            outputs=("N x 16 x 64 x 64",),
        )
        for name, time in (("stem", stem), ("body", body))
    )
    made = replace(
        RUN, precision="fp32", operators=rows, time_ms=stem + body, spread_ms=0.01, flops=2 * 10**9, turns="x"
    )
    return replace(made, **more)


def add(profiling: ProfilingController, run: ProfileRun, network: str = "net", **more: Any) -> None:
    profiling.add(profile_of(run, network=network), **more)


def opened(document: Document, text: str) -> dict[str, Any]:
    """What a run of this session has: how its network is opened, and its document."""
    return {"openings": (OpenRequest(text, "w"),), "documents": (ref(document),)}


def rest() -> None:
    QCoreApplication.processEvents()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def cards(panel: AdvicePanel) -> list[tuple[str, list[str]]]:
    """The cards that are shown, with their texts."""
    rest()
    page = panel.findChild(QWidget, "advice.page")
    assert page is not None
    found = []
    for number in range(panel._cards.count()):
        item = panel._cards.itemAt(number)
        card = item.widget() if item is not None else None
        assert card is not None
        assert card.parent() is page
        labels = [card] if isinstance(card, QLabel) else card.findChildren(QLabel)
        found.append((card.objectName(), [label.text() for label in labels]))
    assert len(page.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)) == len(found)
    return found


def applied(panel: AdvicePanel) -> list[str]:
    """What the cards of applied advice say that it saved."""
    return [texts[-1] for name, texts in cards(panel) if name == "advice.applied"]


def apply(qtbot: QtBot, panel: AdvicePanel, number: int = 0) -> None:
    rest()
    button = panel.findChild(QPushButton, f"advice.{number}.apply")
    assert button is not None
    qtbot.mouseClick(button, LEFT)


def test_only_the_first_run_of_the_changed_network_measures_it(
    qtbot: QtBot, panel: AdvicePanel, context: Context, profiling: ProfilingController
) -> None:
    first, second = context.root, Document(Graph(), context.registry, parent=context)
    add(profiling, slow(), **opened(first, "before"))
    add(profiling, slow(9.0), **opened(first, "before"))
    before = profiling.entries[0]
    profiling.show(before)
    apply(qtbot, panel)
    waits = ["not measured yet"]
    assert applied(panel) == waits
    add(profiling, slow(1.0, 1.0), **opened(first, "before"))  # the network as it was
    assert applied(panel) == waits
    add(profiling, slow(1.0, 2.0), **opened(second, "after"))  # of another document
    add(profiling, slow(1.0, 3.0), path=Path("/folder/a.json"))  # of another session
    profiling.show(before)
    assert applied(panel) == waits
    for change in (
        {"batch": 9},
        {"size": "9x9"},
        {"source": ValueSource.MODELLED},
        {"time_ms": None},
        {"time_ms": 0.0},
    ):
        add(profiling, slow(1.0, 4.0, **change), **opened(first, "after"))
    add(profiling, slow(1.0, 5.0), network="other", **opened(first, "after"))
    profiling.show(before)
    assert applied(panel) == waits
    add(profiling, slow(10.0, 25.0), **opened(first, "after"))
    add(profiling, slow(1.0, 6.0), **opened(first, "later"))
    assert applied(panel) == ["measured 15.0 ms"]
    profiling.show(before)
    assert applied(panel) == ["measured 15.0 ms"]
    profiling.remove(profiling.entries[-2])
    qtbot.waitUntil(lambda: applied(panel) == ["measured 43.0 ms"])
    profiling.remove(profiling.entries[-1])
    qtbot.waitUntil(lambda: applied(panel) == waits)


@pytest.mark.parametrize(
    ("after", "text"),
    [
        ({"stem": 20.0}, "measured -10.0 ms"),  # it became slower
        ({"stem": 10.01}, "measured: no difference beyond the noise of 500 µs"),
        (
            {"body": 20.0, "load": measured(40.0)},
            "measured 20.0 ms\nnote: other programs used 40 % of the cores during one of the runs; measure both again",
        ),
        (
            {"stem": 10.01, "load": measured(40.0)},
            "measured: no difference beyond the noise of 500 µs\n"
            "note: other programs used 40 % of the cores during one of the runs; measure both again",
        ),
    ],
)
def test_what_was_measured_is_said_with_its_doubt(
    qtbot: QtBot, panel: AdvicePanel, profiling: ProfilingController, after: dict[str, Any], text: str
) -> None:
    add(profiling, slow())
    saving = panel.advice[0].saving_ms
    apply(qtbot, panel)
    _, texts = cards(panel)[0]
    assert texts[1] == f"Applied. Predicted saving {quantity(saving / 1e3, 's')}."
    add(profiling, slow(**after))
    assert applied(panel) == [text]


def test_applied_advice_is_not_offered_again_for_its_run_only(
    qtbot: QtBot, panel: AdvicePanel, context: Context, profiling: ProfilingController
) -> None:
    add(profiling, slow())
    add(profiling, slow())
    first, second = profiling.entries
    offered = [advice.message for advice in panel.advice]
    context.root.change_settings(precision="bf16")
    profiling.show(first)
    setting = next(
        (number for number, each in enumerate(panel.advice) if each.edit is not None and each.edit.settings), None
    )
    apply(qtbot, panel, 0 if setting is None else setting)
    message = panel.advice and offered[0]
    titles = [texts[0] for name, texts in cards(panel) if name != "advice.applied"]
    assert len(applied(panel)) == 1
    profiling.show(second)
    assert len(applied(panel)) == 1
    assert message
    assert len([texts for name, texts in cards(panel) if name != "advice.applied"]) >= len(titles)
    context.root.undo()
    assert panel._rest.isActive()
    qtbot.waitUntil(lambda: not panel._rest.isActive())
    assert applied(panel) == []


def test_a_part_of_an_edit_that_was_undone_by_hand_still_counts_as_applied(
    qtbot: QtBot, panel: AdvicePanel, context: Context, profiling: ProfilingController
) -> None:
    add(profiling, slow())
    number = next(n for n, each in enumerate(panel.advice) if each.edit is not None and len(each.edit.layers) > 1)
    edit = panel.advice[number].edit
    assert edit is not None
    kept = {name: before for name, (before, _) in edit.layers.items() if before is not None}
    apply(qtbot, panel, number)
    assert len(applied(panel)) == 1
    mine = panel._applied[0]
    assert not mine.undone
    context.root.do(lambda g: commands.set_params(g, {name: {"features": "5"} for name in kept if name in g}))
    assert not mine.undone
    context.root.undo()
    context.root.undo()
    assert mine.undone


def test_a_run_whose_advice_is_all_applied_has_nothing_to_change(
    qtbot: QtBot, panel: AdvicePanel, profiling: ProfilingController
) -> None:
    add(profiling, slow(10.0, 0.001))
    while panel.advice and any(name != "advice.applied" for name, _ in cards(panel)):
        names = [name for name, _ in cards(panel)]
        if "advice.nothing" in names:
            break
        apply(qtbot, panel)
    found = cards(panel)
    assert [name for name, _ in found][-1] == "advice.nothing"
    assert found[-1][1] == ["Nothing to change: no rule predicts a saving of 1 % of the run or more."]
    assert {name for name, _ in found[:-1]} == {"advice.applied"}


@pytest.fixture
def normalized(qtbot: QtBot, context: Context, monkeypatch: pytest.MonkeyPatch) -> tuple[AdvicePanel, list[Any]]:
    """A network with a batch normalization to fold, and what is asked of the edits of weights."""
    layers = [
        Layer("image", "input", params={"dims": "16x8x3"}),
        Layer("conv", "convolution", inputs=(Source("image"),), params={"features": "3"}),
        Layer("norm", "batch_normalization", inputs=(Source("conv"),)),
        Layer("result", "output", inputs=(Source("norm"),)),
    ]
    context.set_document(Document(Graph(layers), context.registry, parent=context))
    made = shown(qtbot, AdvicePanel(context), 400, 700)
    asked: list[Any] = []
    monkeypatch.setattr(made._surgery, "operate", lambda *words, done: asked.append((words, done)))
    return made, asked


def test_folding_is_applied_once_the_weights_are_folded_to_the_document_it_was_asked_for(
    qtbot: QtBot, context: Context, profiling: ProfilingController, normalized: tuple[AdvicePanel, list[Any]]
) -> None:
    panel, asked = normalized
    document = context.root
    run = replace(RUN, operators=(OperatorProfile(("norm",), "batch_normalization", 9.0, 0.1),), time_ms=10.0)
    add(profiling, run)
    (number,) = (n for n, each in enumerate(panel.advice) if each.fold)
    offered = [texts[0] for _, texts in cards(panel)]
    apply(qtbot, panel, number)
    ((words, done),) = asked
    assert words == ("fold", "norm")
    assert applied(panel) == []  # not yet
    said: list[tuple[str, str]] = []
    context.message.connect(lambda role, text: said.append((role, text)))
    other = Document(Graph(), context.registry, parent=context)
    context.set_document(other)
    document.do(lambda g: commands.remove_layers(g, ["norm"]))
    done("Fold norm into conv")
    assert said == [("info", "Fold norm into conv. Launch inference to measure the saving.")]
    assert applied(panel) == []  # another document is shown
    context.set_document(document)
    assert applied(panel) == ["not measured yet"]
    document.undo()
    qtbot.waitUntil(lambda: not panel._rest.isActive())
    assert [texts[0] for _, texts in cards(panel)] == offered


def test_the_steps_that_contain_a_layer_of_the_advice_are_chosen(
    panel: AdvicePanel, context: Context, profiling: ProfilingController
) -> None:
    rows = (
        OperatorProfile(("stem", "body"), "x", 1.0),
        OperatorProfile(("head",), "x", 1.0),
        OperatorProfile(("body", "tail"), "x", 1.0),
    )
    add(profiling, replace(RUN, operators=rows))
    add(profiling, slow())
    advice = panel.advice[0]
    profiling.show(profiling.entries[0])
    revealed: list[str] = []
    context.reveal_requested.connect(revealed.append)
    panel._reveal(replace(advice, layers=("body", "stem")))
    assert profiling.chosen_rows == (rows[0], rows[2])
    panel._reveal(replace(advice, layers=("head",)))
    assert profiling.chosen_rows == (rows[1],)
    assert revealed == ["body", "head"]


def test_runs_of_other_machines_documents_and_settings_give_no_advice(
    panel: AdvicePanel, context: Context, profiling: ProfilingController
) -> None:
    document = context.root
    other = Document(Graph(), context.registry, parent=context)
    fast = slow(5.0, 5.0, engine="onnxruntime")
    add(profiling, slow(engine="torch"), **opened(document, "a"))
    mine = profiling.entries[0]

    def rules() -> set[str]:
        profiling.show(mine)
        return {each.rule for each in panel.advice}

    plain = rules()
    assert "better-engine" not in plain
    profiling.add(Profile(Machine("faster", 64), "net", (fast,)))
    assert rules() == plain
    add(profiling, fast, **opened(other, "a"))
    assert rules() == plain
    add(profiling, fast, **opened(document, "a"))
    for engine, layout, precision in (
        ("torch", "nchw", "fp32"),
        ("torch", "nhwc", "fp16"),
        ("onnxruntime", "nchw", "fp32"),
    ):
        document.change_settings(engine=engine, layout=layout, precision=precision)
        profiling.show(None)
        assert "better-engine" in rules()
        (found,) = (each for each in panel.advice if each.rule == "better-engine")
        wanted = {"engine": (engine, "onnxruntime"), "layout": (layout, "nhwc")}
        changes = {name: values for name, values in wanted.items() if values[0] != values[1]}
        assert found.edit is not None
        assert dict(found.edit.settings) == changes
    context.set_document(other)
    profiling.show(None)
    profiling.show(mine)
    assert [texts for _, texts in cards(panel)] == [
        ["Run #1 is of another document. Launch or select a run of this one."]
    ]


def test_a_run_of_emulated_formats_has_no_advice_and_says_why(
    panel: AdvicePanel, profiling: ProfilingController
) -> None:
    add(profiling, slow(engine="emulated", device="cpu", precision="fp16"))
    text = "The run emulates its number formats. Its times say nothing about what to change."
    assert cards(panel) == [("advice.nothing", [text])]
