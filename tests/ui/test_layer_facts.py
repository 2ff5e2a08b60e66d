"""What the Layer Editor says of thousands of layers at once."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
import re
from dataclasses import replace

from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QLabel
from recorded import check_lines

from app.ui.design.layer_facts import AT_ONCE, FINDINGS, PORTS, LayerFacts
from app.ui.document.document import Document
from app.ui.widgets import theme
from app.ui.widgets.message import Message
from app.ui.widgets.sentences import finding_text
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui
COLOR = re.compile(r"#[0-9a-f]{6}")


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


def test_the_problems_are_counted_to_the_last_one(qtbot):
    """No more than are shown, one more, and two more; those of the layers before are gone."""
    names = [f"pool_{i}" for i in range(FINDINGS + 2)]  # each has one: it has no input
    document = Document(Graph([Layer(name, "pooling") for name in names]), default_registry())
    assert all(len(document.inference.states[name].diagnostics) == 1 for name in names)
    facts = LayerFacts("facts")
    qtbot.addWidget(facts)
    more = facts.findChild(QLabel, "facts.more")
    for count in (FINDINGS + 2, FINDINGS + 1, FINDINGS, 2, FINDINGS + 1, 1):
        facts.show_layers(document, names[:count])
        shown = [message for message in facts.findChildren(Message) if message.text()]
        assert len(shown) == len([m for m in facts.findChildren(Message) if not m.isHidden()]) == min(count, FINDINGS)
        texts = {
            FINDINGS + 1: "1 more problem: see Type Checking.",
            FINDINGS + 2: "2 more problems: see Type Checking.",
        }
        assert (more.text(), more.isHidden()) == (texts.get(count, ""), count not in texts)


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
    assert facts._cost is None, "it would keep the network of a document that is closed"
    assert not facts._timer.isActive()


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


def every_fact() -> Graph:
    """Layers with one input and many, with and without links to them, with several outputs, wrong, unknown, and in training only."""
    conv = {"features": "4", "kernel": "3x3", "padding": "same"}
    many = tuple(Source("plain") for _ in range(40))
    return Graph(
        [
            Layer("image", "input", params={"dims": "16x8x4"}),
            Layer("plain", "convolution", (0, 0), (Source("image"),), conv),
            Layer("alone", "convolution", (0, 0), (), conv),
            Layer("cut", "split", (0, 0), (Source("plain"),), {"sizes": "1,3"}),
            Layer("slices", "split", (0, 0), (Source("plain"),), {"sizes": "1,1,1,1"}),
            Layer("both", "element_wise", (0, 0), (Source("plain"), Source("image")), {"operation": "add"}),
            Layer("half", "element_wise", (0, 0), (None, Source("plain")), {"operation": "add"}),
            Layer("joined", "concatenation", (0, 0), many),
            Layer('a "b" <c> & d', "convolution", (0, 0), (Source("plain"),), {**conv, "kernel": "0x0"}),
            Layer("after", "identity", (0, 0), (Source('a "b" <c> & d'),)),
            Layer("wrong", "convolution", (0, 0), (Source("plain"),), {**conv, "features": "none", "kernel": "0x0"}),
            Layer("strange", "of_a_plugin", (0, 0), (Source("plain"), Source("image"))),
            Layer("aim", "input", params={"dims": "16x8x4"}),
            Layer("loss", "l1_loss", (0, 0), (Source("plain"), Source("aim"))),
            Layer("out", "output", (0, 0), (Source("both"),)),
        ]
    )


def test_facts_of_every_kind_of_layer_are_as_recorded(qtbot):
    document = Document(every_fact(), default_registry())
    facts = LayerFacts("facts")
    qtbot.addWidget(facts)
    asked = []
    facts.link_activated.connect(asked.append)
    lines = []
    names = list(document.graph.layers)
    several = (("plain", "joined"), ("aim", "plain"), ("aim", "loss"), ("after", "wrong", "alone"), tuple(names))
    for chosen in (*((name,) for name in names), *several):
        for params in ((), ("kernel",)) if "wrong" in chosen else ((),):
            facts.show_layers(document, chosen, params)
            qtbot.waitUntil(lambda: "…" not in facts.facts().values())
            lines.append(f"# {' '.join(chosen) if len(chosen) < 9 else 'all'}{' without kernel' if params else ''}")
            lines += [f"{name}: {text}".replace("\n", " / ") for name, text in facts.facts().items()]
            read = [value.accessibleName() for label, value in facts._rows if not value.isHidden()]
            assert read == [f"{label.text()}: {value.text()}" for label, value in facts._rows if not label.isHidden()]
            because, more = facts.findChild(QLabel, "facts.because"), facts.findChild(QLabel, "facts.more")
            if not because.isHidden():
                lines.append(f"because: {COLOR.sub('color', because.text())}")
            if not more.isHidden():
                lines.append(f"more: {more.text()}")
            lines += [f"finding: {m.text()}" for m in facts.findChildren(Message) if not m.isHidden() and m.text()]
    check_lines("window/layer_facts.txt", lines)
    facts.show_layers(document, ("after",))
    text = QTextDocument()
    text.setHtml(facts.findChild(QLabel, "facts.because").text())
    links = {
        fragment.fragment().charFormat().anchorHref()
        for fragment in text.firstBlock()
        if fragment.fragment().charFormat().isAnchor()
    }
    assert links == {'a "b" <c> & d'}
    assert 'a "b" <c> & d' in text.toPlainText()


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


def test_the_inputs_and_outputs_beyond_the_first_are_counted(qtbot):
    """Exactly so many as are shown, and more."""
    for count in (1, PORTS, PORTS + 1, PORTS + 5):
        parts = Layer("parts", "split", (0, 0), (Source("in"),), {"axis": "1", "sizes": ",".join("1" * count)})
        sources = tuple(Source("parts", f"y{port}") for port in range(count))
        both = Layer("both", "concatenation", (0, 0), sources, {"axis": "1"})
        layers = [Layer("in", "input", params={"dims": f"8x8x{count}"}), parts, both]
        document = Document(Graph(layers), default_registry())
        facts = LayerFacts("facts")
        qtbot.addWidget(facts)
        shown = {}
        for name in ("parts", "both"):
            facts.show_layers(document, [name])
            shown[name] = list(facts.facts().items())
        outputs = [value for label, value in shown["parts"] if label.startswith("Output")]
        inputs = [value for label, value in shown["both"] if label.startswith("Input")]
        more = [f"{count - PORTS} more"] if count > PORTS else []
        assert outputs == ["N x 1 x 8 x 8"] * min(count, PORTS) + more
        froms = [f"N x 1 x 8 x 8\nfrom {source}" for source in sources[:PORTS]]
        assert inputs == froms + more


def test_only_the_text_of_a_parameter_is_judged_at_its_field(qtbot):
    """What else is wrong with its value is below the facts, and so is what is wrong with a parameter without a field."""
    document = Document(Graph([Layer("conv", "convolution")]), default_registry())
    facts = LayerFacts("facts")
    qtbot.addWidget(facts)
    found = [
        Diagnostic(code, f"{code} {parameter}", severity, layer="conv", parameter=parameter)
        for code in ("bad-parameter", "too-large", "unknown-operator")
        for parameter in ("kernel", "stride", None)
        for severity in (Severity.ERROR, Severity.WARNING)
    ]
    state = document.inference.states["conv"]
    document.inference.states["conv"] = replace(state, diagnostics=tuple(found))
    for fields in ((), ("kernel",), ("stride", "kernel"), ("features",)):
        facts.show_layers(document, ["conv"], fields)
        shown = [(m.text(), m._role) for m in facts.findChildren(Message) if not m.isHidden()]
        assert shown == [
            (finding_text(d), d.severity.value)
            for d in found
            if d.code != "unknown-operator" and not (d.code == "bad-parameter" and d.parameter in fields)
        ]
