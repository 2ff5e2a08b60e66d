"""Code in a document: shown, asked for, run only after a yes to this very text."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPlainTextEdit, QPushButton, QTabWidget, QWidget

from app.ui.design.custom_agreement import AgreeDialog, ask_agreement
from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.profiling import State, profiling_of
from app.ui.engine.result import Phase
from designer.files.agreements import agreed, agreements_path
from designer.files.document import write_document
from designer.graph.commands import set_params
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.code_text import agreement_text, digest
from designer.operators.registry import default_registry
from designer.runtime.images import write_image

WAIT = 60_000
SOURCE = "class Custom(nn.Module):\n    def forward(self, x):\n        return x * 0.25\n"


def agreement(source: str) -> str:
    return agreement_text(source, "Custom", (), {})


@pytest.fixture
def window(empty_window, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    made = empty_window
    made.start_engine_client()
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "24x16x3"}),
            Layer("mine", "custom", inputs=(Source("image"),), params={"source": SOURCE}),
            Layer("result", "output", inputs=(Source("mine"),)),
        ]
    )
    document = Document(graph, made.context.registry)
    write_image(tmp_path / "a.png", np.random.default_rng(0).random((1, 3, 16, 24), np.float32))
    document.change_settings(input_files={"image": str(tmp_path / "a.png")}, threads=1)
    made.context.set_document(document)
    yield made
    made.context.engine.close()


def dialog_of(qtbot, window) -> AgreeDialog:
    qtbot.waitUntil(lambda: window.findChild(AgreeDialog) is not None, timeout=WAIT)
    dialog = window.findChild(AgreeDialog)
    qtbot.waitExposed(dialog)
    return dialog


def press(qtbot, dialog, name: str) -> None:
    button = dialog.findChild(QPushButton, f"agree_custom.{name}")
    with qtbot.waitSignal(dialog.destroyed, timeout=WAIT):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def test_asked_before_it_runs_and_again_for_another_text(qtbot, window) -> None:
    context, analysis = window.context, analysis_of(window.context)
    before = write_document(context.document.graph)
    context.analysis_requested.emit()
    dialog = dialog_of(qtbot, window)
    assert dialog.findChild(QPlainTextEdit, "agree_custom.source_0").toPlainText() == agreement(SOURCE)
    assert dialog.findChild(QTabWidget, "agree_custom.layers").tabText(0) == "mine"
    assert dialog.findChild(QPushButton, "agree_custom.later").isDefault()
    press(qtbot, dialog, "later")
    assert analysis.phase is Phase.BLOCKED
    assert "agree" in analysis.message
    assert analysis.result is None
    assert not agreements_path().exists()

    context.analysis_requested.emit()
    press(qtbot, dialog_of(qtbot, window), "agree")
    qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)
    assert agreed() == {digest(agreement(SOURCE))}
    assert analysis.result.outputs["result"].shape == (1, 3, 16, 24)
    assert 0.2 < float(np.max(analysis.result.outputs["result"])) <= 0.25
    assert write_document(context.document.graph) == before

    other = SOURCE.replace("0.25", "0.5")
    context.document.do(lambda graph: set_params(graph, {"mine": {"source": other}}))
    qtbot.waitUntil(lambda: analysis.phase is Phase.BLOCKED, timeout=WAIT)
    assert window.findChild(AgreeDialog) is None, "nobody is asked while typing"
    context.analysis_requested.emit()
    dialog = dialog_of(qtbot, window)
    assert dialog.findChild(QPlainTextEdit, "agree_custom.source_0").toPlainText() == agreement(other)
    press(qtbot, dialog, "agree")
    qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)
    assert 0.4 < float(np.max(analysis.result.outputs["result"])) <= 0.5


def test_only_code_that_needs_agreement_is_asked_for_and_only_once(qtbot, window) -> None:
    context = window.context
    assert ask_agreement(Context(context.registry), lambda: None, window) is None
    first = ask_agreement(context, lambda: None, window)
    assert first is not None
    assert ask_agreement(context, lambda: None, window) is first
    assert len(window.findChildren(AgreeDialog)) == 1
    qtbot.mouseClick(first.findChild(QPushButton, "agree_custom.agree"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.findChild(AgreeDialog) is None, timeout=WAIT)
    assert ask_agreement(context, lambda: None, window) is None
    assert window.findChild(AgreeDialog) is None


def test_all_code_of_the_network_is_asked_for_whatever_part_of_it_is_shown(qtbot) -> None:
    """The network itself, a template with code of its own, and one without any."""
    codes = {"mine": SOURCE, "inner": SOURCE.replace("0.25", "0.5")}

    def template(name: str, layer: Layer) -> Template:
        ends = (Layer("x", "template_input"), Layer("y", "template_output", inputs=(Source(layer.name),)))
        return Template(name, (ends[0], layer, ends[1]))

    graph = Graph(
        [
            Layer("image", "input", params={"dims": "24x16x3"}),
            Layer("mine", "custom", inputs=(Source("image"),), params={"source": codes["mine"]}),
            Layer("a", "template", inputs=(Source("mine"),), params={"template": "code"}),
            Layer("b", "template", inputs=(Source("a"),), params={"template": "plain"}),
            Layer("result", "output", inputs=(Source("b"),)),
        ],
        templates=[
            template("code", Layer("inner", "custom", inputs=(Source("x"),), params={"source": codes["inner"]})),
            template("plain", Layer("bent", "activation", inputs=(Source("x"),))),
        ],
    )
    context, parent = Context(default_registry()), QWidget()
    qtbot.addWidget(parent)
    context.set_document(Document(graph, context.registry))
    parent.show()
    scopes = ("", "a", "b", "code", "plain")
    for answer in ("later", "agree"):
        for scope in scopes if answer == "later" else ("b",):
            assert context.set_scope(())
            assert not scope or context.enter(scope)
            dialog = ask_agreement(context, lambda: None, parent)
            assert dialog is not None, scope
            tabs = dialog.findChild(QTabWidget, "agree_custom.layers")
            shown = {
                tabs.tabText(n): dialog.findChild(QPlainTextEdit, f"agree_custom.source_{n}").toPlainText()
                for n in range(tabs.count())
            }
            assert shown == {layer: agreement(code) for layer, code in codes.items()}, scope
            qtbot.mouseClick(dialog.findChild(QPushButton, f"agree_custom.{answer}"), Qt.MouseButton.LeftButton)
            qtbot.waitUntil(lambda: parent.findChild(AgreeDialog) is None, timeout=WAIT)
    assert agreed() == {digest(agreement(code)) for code in codes.values()}
    for scope in scopes:
        assert context.set_scope(())
        assert not scope or context.enter(scope)
        assert ask_agreement(context, lambda: None, parent) is None, scope


def test_timing_asks_too(qtbot, window) -> None:
    profiling = profiling_of(window.context)
    window.context.document.change_settings(engine="torch", iterations=1)
    window.context.inference_requested.emit()
    dialog = dialog_of(qtbot, window)
    assert profiling.state is State.FAILED
    press(qtbot, dialog, "agree")
    qtbot.waitUntil(lambda: profiling.current is not None, timeout=WAIT)


def test_endless_loop_is_ended_by_stop(qtbot, window) -> None:
    """Also while the class is made: the engine's process is killed and the window stays alive."""
    from designer.files.agreements import agree

    loop = "while True:\n    pass\nclass Custom(nn.Module):\n    pass\n"
    agree([agreement(loop)])
    window.context.document.do(lambda graph: set_params(graph, {"mine": {"source": loop}}))
    analysis = analysis_of(window.context)
    window.context.analysis_requested.emit()
    qtbot.waitUntil(lambda: "Running" in analysis.message, timeout=WAIT)
    first = analysis.engine.pid
    analysis.stop()
    assert analysis.phase is Phase.STOPPED
    assert analysis.engine.pid != first
    window.context.document.do(lambda graph: set_params(graph, {"mine": {"source": SOURCE}}))
    agree([agreement(SOURCE)])
    window.context.analysis_requested.emit()
    qtbot.waitUntil(lambda: analysis.phase is Phase.READY, timeout=WAIT)
