"""What the Layer Editor says of thousands of layers at once."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
from PySide6.QtWidgets import QLabel

from app.ui.design.layer_facts import AT_ONCE, FINDINGS, LayerFacts
from app.ui.document.document import Document
from app.ui.widgets import theme
from app.ui.widgets.message import Message
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui


def test_of_many_problems_the_first_are_shown_and_the_rest_counted(qtbot):
    names = [f"conv_{i}" for i in range(300)]
    document = Document(Graph([Layer(name, "convolution") for name in names]), default_registry())
    count = sum(len(document.inference.states[name].diagnostics) for name in names)
    assert count >= 300
    facts = LayerFacts("facts")
    qtbot.addWidget(facts)
    facts.show_layers(document, names)
    assert len([m for m in facts.findChildren(Message) if m.text()]) == FINDINGS
    more = facts.findChild(QLabel, "facts.more")
    assert more.text() == f"{count - FINDINGS} more problems: see Type Checking."
    facts.show_layers(document, names[:1])
    assert more.text() == ""
    assert more.isHidden()


def test_the_cost_of_many_layers_is_counted_between_events(qtbot):
    names = [f"conv_{i}" for i in range(2 * AT_ONCE + 1)]
    conv = {"features": "3", "kernel": "1x1"}
    layers = [Layer(name, "convolution", (0, 0), (Source("in"),), conv) for name in names]
    document = Document(Graph([Layer("in", "input", params={"dims": "8x8x3"}), *layers]), default_registry())
    facts = LayerFacts("facts")
    qtbot.addWidget(facts)
    facts.show_layers(document, names)
    assert facts.facts()["Parameters"] == "…"
    qtbot.waitUntil(lambda: facts.facts()["Parameters"] != "…")
    assert facts.facts()["Parameters"] == f"{12 * len(names):,}"


def test_the_cost_of_a_layer_names_weights_and_outputs(qtbot):
    conv = Layer("conv", "convolution", (0, 0), (Source("in"),), {"features": "3", "kernel": "1x1"})
    document = Document(Graph([Layer("in", "input", params={"dims": "8x8x3"}), conv]), default_registry())
    facts = LayerFacts("facts")
    qtbot.addWidget(facts)
    facts.show_layers(document, ["conv"])
    qtbot.waitUntil(lambda: facts.facts().get("Parameters", "…") != "…")
    weights, outputs = facts.facts()["Memory, FP32"].split(", ")
    assert weights.endswith("48.0 B weights")
    assert outputs.endswith("768 B outputs")


@pytest.mark.parametrize("mode", ["dark", "light"])
def test_a_link_to_the_cause_stays_when_the_theme_changes(qtbot, qapp, mode):
    layers = [Layer("a & b", "convolution"), Layer("after", "identity", (0, 0), (Source("a & b"),))]
    facts = LayerFacts("facts")
    qtbot.addWidget(facts)
    facts.show_layers(Document(Graph(layers), default_registry()), ["after"])
    because = facts.findChild(QLabel, "facts.because")
    said = because.text()
    assert said == 'Unknown because of <a href="a &amp; b">a &amp; b</a>, which has a problem.'
    theme.apply(qapp, mode)
    assert because.text() == said
    assert not because.isHidden()
