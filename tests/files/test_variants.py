"""Variants of a network as settings, and their recipes of calibration."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from designer.files.variants import BY_HAND, CalibrationRecipe, Variant, VariantReader, variant_texts

pytestmark = pytest.mark.skipif(os.name == "nt", reason="paths are written as on Linux")


def read_variants(texts: dict[str, str]) -> tuple[Variant, ...]:
    reader = VariantReader(lambda path: f"/abs/{path}")
    taken = {name: reader.take(f"Variants/{name}", text) for name, text in texts.items()}
    assert all(taken.values()), taken
    return reader.variants()


RECIPE = {
    "folder": "photos",
    "count": "5",
    "size": "8x4",
    "method": "entropy",
    "percentile": "98.5",
    "form": "qdq",
}


def test_a_variant_is_made_of_all_its_settings() -> None:
    texts = {
        "3/weights": "w.pt",
        "3/formats/b": "fp32",
        "3/formats/a.b": "bf16",
        "3/reasons/b": "first",
        "3/passes": "one,two",
        "3/new/thing": "kept",
        "3/engine": "torch",
        "3/sparsity": "2:4",
        "3/precision": "int8",
        "3/name": "small",
        **{f"3/calibration/{key}": text for key, text in RECIPE.items()},
    }
    expected = Variant(
        "small",
        "int8",
        {"b": "fp32", "a.b": "bf16"},
        "2:4",
        "torch",
        ("one", "two"),
        "/abs/w.pt",
        {"b": "first"},
        CalibrationRecipe("/abs/photos", 5, "8x4", "entropy", 98.5, "qdq"),
        {"new/thing": "kept"},
    )
    assert read_variants(texts) == (expected,)
    written = dict(variant_texts((Variant("other"), expected), lambda path: path.removeprefix("/abs/")))
    assert {name.replace("Variants/1/", "3/"): text for name, text in written.items() if "/1/" in name} == texts
    assert {name: text for name, text in written.items() if "/0/" in name} == {
        "Variants/0/name": "other",
        "Variants/0/precision": "fp32",
        "Variants/0/sparsity": "dense",
        "Variants/0/engine": "",
        "Variants/0/weights": "",
        "Variants/0/passes": "",
    }


@pytest.mark.parametrize("missing", RECIPE)
def test_a_recipe_that_lacks_a_part_is_kept_as_text(missing: str) -> None:
    texts = {f"0/calibration/{key}": text for key, text in RECIPE.items() if key != missing}
    [variant] = read_variants(texts)
    assert variant.calibration is None
    assert variant.extra == {name.removeprefix("0/"): text for name, text in texts.items()}


@pytest.mark.parametrize(("key", "text"), [("count", "many"), ("count", "1.5"), ("percentile", "high"), ("count", "")])
def test_a_recipe_with_a_value_that_is_not_a_number_is_kept_as_text(key: str, text: str) -> None:
    assert CalibrationRecipe.of({**RECIPE, key: text}) is None
    [variant] = read_variants({f"0/calibration/{k}": t for k, t in {**RECIPE, key: text}.items()})
    assert variant.extra[f"calibration/{key}"] == text


def test_the_defaults_of_a_recipe() -> None:
    recipe = CalibrationRecipe()
    assert recipe.texts() == {
        "folder": "",
        "count": "32",
        "size": "",
        "method": "minmax",
        "percentile": "99.99",
        "form": "",
    }
    assert CalibrationRecipe.of(recipe.texts()) == recipe


def test_settings_without_a_number_do_not_belong_to_a_variant() -> None:
    reader = VariantReader(str)
    for name in ("Variants/name", "Variants//name", "Variants/x/name", "Variants/1234567/name", "Variants/1", "1/name"):
        assert not reader.take(name, "x"), name
    assert reader.variants() == ()


def test_variants_are_in_the_order_of_their_numbers() -> None:
    found = read_variants({"10/name": "c", "9/name": "b", "123456/name": "d", "001/name": "a", "1/precision": "fp16"})
    assert [(variant.name, variant.precision) for variant in found] == [
        ("a", "fp16"),
        ("b", "fp32"),
        ("c", "fp32"),
        ("d", "fp32"),
    ]


def test_layers_of_a_variant_get_new_names_and_lose_those_that_are_gone() -> None:
    variant = Variant("v", "fp16", {"a": "fp32", "b": "bf16"}, reasons={"a": "first", "c": "last"}, extra={"x": "1"})
    names = {"a": "A", "c": ""}
    found = variant.renamed(names.get)
    assert found == replace(variant, formats={"A": "fp32"}, reasons={"A": "first", "": "last"})
    assert variant.renamed(lambda name: name) == variant


def test_a_format_by_hand_is_one_whose_reason_says_so() -> None:
    assert not Variant("v", formats={"a": "fp32"}, reasons={"a": "first layer"}).by_hand
    assert not Variant("v", reasons={BY_HAND: "first layer"}).by_hand
    assert Variant("v", reasons={"a": "first layer", "b": BY_HAND}).by_hand
    assert not Variant("v").by_hand
