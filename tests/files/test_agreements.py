"""Which custom code of a network the user has not agreed to, and the list of what they have agreed to."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from designer.files.agreements import agree, agreed, agreements_path, not_agreed
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.operators.code_text import digest
from designer.operators.library.development.custom import SOURCE, Custom
from designer.operators.registry import load

REGISTRY = load(entry_points=False)
OTHER = SOURCE.replace("gain=1.0", "gain=2.0")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def custom(name: str, source: str = SOURCE, **params: str) -> Layer:
    return Layer(name, "custom", (0, 0), (Source("in"),), {"source": source, **params})


def text(source: str = SOURCE, **params: str) -> str:
    return Custom(source=source, **params).agreement


def network() -> Graph:
    inside = Template("block", (Layer("in", "template_input"), custom("inner", OTHER), custom("same", SOURCE)))
    return Graph(
        [
            Layer("in", "input", params={"dims": "8x8x3"}),
            custom("b"),
            custom("c"),
            custom("call", SOURCE, arguments="gain=3.0"),
            custom("broken", "class Custom(nn.Module): pass", input_count="many"),
            Layer("plain", "identity", (0, 0), (Source("in"),)),
        ],
        templates=(inside,),
    )


def test_each_text_is_asked_for_once_with_the_first_of_its_layers() -> None:
    expected = {text(): "b", text(arguments="gain=3.0"): "call", text(OTHER): "inner"}
    assert agreed() == frozenset()
    assert not_agreed(network(), REGISTRY) == expected
    assert not_agreed(network(), REGISTRY, []) == expected
    assert not_agreed(network(), REGISTRY, {digest(text())}) == {key: expected[key] for key in list(expected)[1:]}


def test_what_was_agreed_to_is_kept_as_digests_of_exactly_these_texts(tmp_path: Path) -> None:
    agree([text(), text(OTHER)])
    assert agreements_path().parent.parent == tmp_path
    assert agreed() == {digest(text()), digest(text(OTHER))}
    assert digest("a\n") == sha256(b"a\n").hexdigest() != digest("a")
    assert not_agreed(network(), REGISTRY) == {text(arguments="gain=3.0"): "call"}
    assert not_agreed(network(), REGISTRY, []).keys() > {text()}, "an empty set allows nothing"
    changed = Graph([Layer("in", "input", params={"dims": "8x8x3"}), custom("b", f"{SOURCE}\n")])
    assert list(not_agreed(changed, REGISTRY).values()) == ["b"]
    agreements_path().unlink()
    assert agreed() == frozenset()


def test_white_space_around_a_text_belongs_to_it() -> None:
    agree([" a\n"])
    assert agreed() == {digest(" a\n")}
