"""Layers are found in mails, chats and parts of files; what is not a model is refused."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import samples
from designer.files.document import parse_document, read_document, write_document
from designer.files.snippets import holds_layers, model_text
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source

GRAPH = Graph(
    [
        Layer("input_0", "input", params={"dims": "8x8x3"}),
        Layer("conv > pool", "convolution", inputs=(Source("input_0"),), params={"features": "4"}),
    ],
    name="part",
)
TEXT = write_document(GRAPH).decode()


def layers(text: str) -> dict:
    found = model_text(text)
    assert found is not None
    reading = parse_document(found.encode(), validate=False)
    assert reading.graph is not None, reading.diagnostics
    return dict(reading.graph.layers)


def quoted(text: str, mark: str = "> ") -> str:
    return "".join(f"{mark}{line}\n" for line in text.splitlines())


LAYERS_ALONE = "".join(f"{line}\n" for line in TEXT.splitlines() if "NetworkModel" not in line and "?xml" not in line)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("\n", "\r\n"),
        f"Hi,\n\nhere is the block that I mean:\n\n{TEXT}\nRegards\nA > B, and <b>bold</b> too\n",
        f"On Monday you wrote:\n{quoted(TEXT)}\nI see.\n",
        quoted(quoted(TEXT)),
        quoted(TEXT, ">"),
        quoted(TEXT.replace("\t", "    "), ">> "),
        html.escape(TEXT),
        f"```xml\n{TEXT}```\n",
        TEXT.replace("\t", "\u00a0\u00a0"),
        TEXT.replace('="', "=“").replace('"', "”"),
        LAYERS_ALONE,
        f"these two:\n{LAYERS_ALONE}thanks",
        quoted(LAYERS_ALONE),
    ],
)
def test_layers_are_found(text):
    assert holds_layers(text)
    assert layers(text) == dict(GRAPH.layers)


def test_the_samples_as_quoted_mails():
    for path in samples.documents():
        text = path.read_text()
        assert layers(f"Look:\n{quoted(text)}\n--\nme") == dict(read_document(path).graph.layers)


def test_a_tag_may_end_on_a_line_of_its_own():
    text = TEXT.replace('">', '"\n>')
    assert layers(f"See:\n{text}") == dict(GRAPH.layers)


def test_a_tag_that_ends_before_a_layer_is_not_a_quote_mark():
    text = TEXT[TEXT.index("<NetworkModel") :]
    text = re.sub(r">\s*<Layer", "\n><Layer", text, count=1)
    assert text.startswith("<NetworkModel")
    assert "\n><Layer" in text
    assert layers(text) == dict(GRAPH.layers)


@pytest.mark.parametrize("text", ["", "hello", "a < b > c", "<html><body>Layer</body></html>", "Layer conv_1"])
def test_what_holds_none(text):
    assert not holds_layers(text)
    assert model_text(text) is None


def test_a_text_that_is_cut_off_is_told_by_the_reader():
    found = model_text(TEXT[:-30])
    assert found is not None
    assert parse_document(found.encode(), validate=False).graph is None


@given(st.text("<NetworkModel Layer/>&lt;\n> \"'=x", max_size=200))
def test_any_text_is_looked_at_without_a_fault(text):
    found = model_text(text)
    if found is not None:
        parse_document(found.encode(), validate=False)


def test_nothing_of_this_is_a_path():
    assert Path(samples.path("denoiser.xml")).is_file()
    assert model_text(str(samples.path("denoiser.xml"))) is None
