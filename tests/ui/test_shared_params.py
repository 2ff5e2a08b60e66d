"""What several layers have in common: texts, also under older names, defaults and parameters."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from app.ui.design import shared_params
from designer.graph.model import ActivationSpec, Layer
from designer.operators.registry import default_registry

REGISTRY = default_registry()
CONV = REGISTRY.get("convolution")
assert CONV is not None


class Renamed(CONV):  # type: ignore[misc,valid-type]
    """A convolution whose features had other names."""

    renamed = {"depth": "features", "maps": "features"}  # noqa: RUF012


FEATURES = CONV.parameter("features")
assert FEATURES is not None
DEFAULT = FEATURES.format(FEATURES.default)


def test_defaults_keep_spellings_and_what_nobody_declares() -> None:
    registry = SimpleNamespace(get={"new": Renamed, "convolution": CONV}.get, activations=REGISTRY.activations)
    texts = {"features": "77", "depth": "55", "maps": f" {DEFAULT} ", "strange": "1"}
    activation = ActivationSpec("leaky_relu", {"no_such": "3"})
    layers = [
        Layer("a", "new", params=texts),
        Layer("b", "convolution", params=texts, activation=activation),
        Layer("c", "unknown", params=texts),
        Layer("d", "convolution", params={"features": "wrong"}),
    ]
    params, activations = shared_params.defaults(layers, registry)
    assert params == {
        "a": {"features": DEFAULT, "depth": DEFAULT, "maps": f" {DEFAULT} ", "strange": "1"},
        "b": {"features": DEFAULT, "depth": "55", "maps": f" {DEFAULT} ", "strange": "1"},
        "d": {"features": DEFAULT},
    }
    assert activations == {"b": {"no_such": "3"}}


def test_the_text_of_a_parameter_is_that_of_its_present_name_or_an_older_one() -> None:
    for texts, wanted in (
        ({}, DEFAULT),
        ({"features": "1"}, "1"),
        ({"depth": "2"}, "2"),
        ({"maps": "3"}, "3"),
        ({"maps": "3", "features": "1"}, "1"),
        ({"maps": "3", "depth": "2"}, "2"),
        ({"kernel": "9"}, DEFAULT),
    ):
        assert shared_params.text_of(Renamed, texts, FEATURES) == wanted, texts
    assert shared_params.text_of(CONV, {"depth": "2"}, FEATURES) == DEFAULT
    assert shared_params.text_of(None, {"depth": "2"}, FEATURES) == DEFAULT
    assert shared_params.text_of(None, {"features": "2"}, FEATURES) == "2"
