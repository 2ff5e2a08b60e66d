"""Names of generated code: legal, free, and the same every time."""

from __future__ import annotations

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designer.graph.naming import free_identifier, identifier, identifiers, unique_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("conv_1", "conv_1"),
        ("conv 1", "conv_1"),
        ("é", "layer_"),
        ("1x1", "layer_1x1"),
        ("", "layer_"),
        ("_", "layer_"),
        ("_1", "layer_1_"),
        ("_a", "a_"),
        ("__init__", "init___"),
        ("class", "class_"),
        ("match", "match_"),
        ("print", "print_"),
        ("self", "self_"),
        ("forward", "forward_"),
        ("torch", "torch_"),
    ],
)
def test_names_become_identifiers(name: str, expected: str) -> None:
    assert identifier(name) == expected


@given(st.text(max_size=20))
def test_any_text_becomes_a_free_name(text: str) -> None:
    found = identifier(text)
    assert found.isidentifier()
    assert found.isascii()
    assert not keyword.iskeyword(found)
    assert not found.startswith("_")
    assert identifier(found) == found


def test_names_that_are_taken_are_numbered() -> None:
    taken = {"a", "a_2"}
    assert free_identifier("a", taken) == "a_3"
    assert free_identifier("b", taken, {"b"}) == "b_2"
    assert taken == {"a", "a_2", "a_3", "b_2"}
    assert identifiers(["a-b", "a_b", "a b"]) == {"a_b": "a_b", "a b": "a_b_2", "a-b": "a_b_3"}


def test_new_layers_count_from_0() -> None:
    assert unique_name("conv", []) == "conv_0"
    assert unique_name("conv", ["conv_0", "conv_2"]) == "conv_1"
    assert unique_name("conv", iter(["conv_0"])) == "conv_1"
