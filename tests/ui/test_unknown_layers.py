"""Layers of types that nobody here knows: opened, copied, deleted, undone and saved without losing a word."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui


from app.ui.engine.analysis import analysis_of
from app.ui.engine.result import Phase
from designer.files.document import parse_document, write_document
from designer.graph import commands
from designer.graph.template import INSTANCE
from designer.graph.template_commands import make_template

MYSTERY = """	<Layer name="mystery" type="warp_of_another_program" edit_pos="320,0" input="conv,image:second" x:mood="&lt;calm&gt;">
		<Parameters Zeta="1.50" a_size="3 x 3" code="def f():&#10;&#09;return &quot;1&quot;&#13;&#10;" />
		<Activation type="swoosh" x:how="much">
			<Parameters beta="01" />
			<x:inner>kept</x:inner>
		</Activation>
		<x:note kind="a">two  words <b /></x:note>
		<!-- and this -->
	</Layer>
"""
TEXT = f"""<?xml version="1.0"?>
<NetworkModel name="tiny" version="2" user_version_tag="1" xmlns:x="urn:somebody:else">
	<Layer name="conv" type="convolution" edit_pos="160,0" input="image">
		<Parameters apply_bias="true" features="8" kernel="3x3" padding="same" padding_tuple="0x0" stride="1x1" />
	</Layer>
	<Layer name="image" type="input" edit_pos="0,0">
		<Parameters dims="64x48x3" rgba="false" scale="1.0" shift="0" tiling="1" />
	</Layer>
{MYSTERY}	<Layer name="result" type="output" edit_pos="480,0" input="mystery:third">
		<Parameters analysis_view="image" channels="0" height="0" label_path="" offset="0x0x0" width="0" />
	</Layer>
</NetworkModel>
"""


@pytest.fixture
def window(qtbot, empty_window, tmp_path):
    window, path = empty_window, tmp_path / "net.xml"
    path.write_text(TEXT)
    window.files.open(path)
    qtbot.waitUntil(lambda: window.context.has_document and "mystery" in window.context.document.graph)
    return window


def saved(window) -> str:
    window.files.save()
    return window.context.document.path.read_text()


def test_says_why_the_network_cannot_run(qtbot, window) -> None:
    document = window.context.document
    found = {d.code: d for d in document.diagnostics() if d.layer == "mystery"}
    assert "warp_of_another_program" in found["unknown-operator"].message
    assert "plugin" in found["unknown-operator"].remedy
    assert "unknown-activation" in found
    assert document.inference.states["result"].because_of == "mystery"
    analysis = analysis_of(window.context)
    window.context.analysis_requested.emit()
    assert analysis.phase is Phase.BLOCKED
    assert "warp_of_another_program" in analysis.message


def test_saved_word_for_word_after_editing_its_neighbours(window) -> None:
    document = window.context.document
    document.do(lambda graph: commands.set_params(graph, {"conv": {"features": "16"}}))
    assert saved(window) == TEXT.replace('features="8"', 'features="16"')
    document.do(lambda graph: commands.rename_layer(graph, "image", "picture"))
    assert 'input="conv,picture:second"' in saved(window)
    document.undo()
    document.undo()
    assert saved(window) == TEXT


def test_deleted_and_brought_back(window) -> None:
    document = window.context.document
    window.context.select(("mystery",))
    window.canvas.delete_selection()
    assert "mystery" not in document.graph
    assert "warp_of_another_program" not in saved(window)
    document.undo()
    assert saved(window) == TEXT


@pytest.mark.parametrize("how", ["paste", "duplicate"])
def test_a_copy_keeps_its_text(window, how: str) -> None:
    document = window.context.document
    window.context.select(("mystery",))
    if how == "paste":
        window.canvas.copy_selection()
        window.canvas.paste(keep_links=True)
    else:
        window.canvas.duplicate_selection(keep_links=True)
    (copy,) = [n for n in document.graph.layers if n.startswith("mystery_")]
    position = ",".join(map(str, document.graph[copy].position))
    expected = MYSTERY.replace('name="mystery"', f'name="{copy}"').replace('edit_pos="320,0"', f'edit_pos="{position}"')
    text = saved(window)
    assert expected in text
    assert MYSTERY in text


def paste_into_another_document(window) -> None:
    """Paste into a new document, which can be read again: without one declaration of the prefix it would not be XML with namespaces."""
    window.files.new()
    window.canvas.paste()
    data = write_document(window.context.document.graph)
    reading = parse_document(data)
    assert reading.graph is not None, reading.diagnostics
    assert write_document(reading.graph) == data
    assert b'x:mood="&lt;calm&gt;"' in data
    assert data.count(b'xmlns:x="urn:somebody:else"') == 1


def test_a_copy_in_another_document_can_be_read_again(window) -> None:
    window.context.select(("mystery",))
    window.canvas.copy_selection()
    paste_into_another_document(window)


@pytest.mark.parametrize("inside", [True, False], ids=["a layer of a template", "an instance"])
def test_copies_from_a_template_can_be_read_again(window, inside) -> None:
    document = window.context.document
    document.do(lambda g: make_template(g, ["mystery"], "block"))
    (use,) = (n for n, layer in document.graph.layers.items() if layer.type == INSTANCE)
    before = window.context.root.graph.templates["block"]
    if inside:
        window.context.enter(use)
    window.context.select(("mystery" if inside else use,))
    window.canvas.copy_selection()
    window.canvas.paste()
    root = window.context.root.graph
    assert list(root.templates) == ["block"]
    if inside:
        assert len(root.templates["block"].layers) == len(before.layers) + 1
    else:
        assert root.templates["block"] == before
    assert write_document(root).count(b"xmlns:x=") == 1
    paste_into_another_document(window)
