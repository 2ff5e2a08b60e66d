"""What several layers have in common: texts, also under older names, defaults and parameters."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from app.ui.design import shared_params
from designer.graph.model import ActivationSpec, Layer
from designer.graph.template import INSTANCE
from designer.operators.params import Parameter
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


OPERATORS = list(REGISTRY.operators.values())
ALL = [(cls, parameter) for cls in OPERATORS for parameter in cls.parameters]


def test_extension_parameters_are_written_and_reset_only_if_they_differ_from_their_defaults() -> None:
    """For every parameter of every operator."""
    assert {parameter.info.extension for _, parameter in ALL} == {False, True}
    for cls, parameter in ALL:
        default, name = parameter.format(parameter.default), parameter.name
        gone = parameter.info.extension
        assert shared_params.text_to_write(cls, name, default) == (None if gone else default), (cls, name)
        assert shared_params.text_to_write(cls, name, "not a value !") == "not a value !"
        assert shared_params.text_to_write(None, name, default) == default
        assert shared_params.text_to_write(cls, "strange", default) == default
        found = shared_params._defaults(cls, {name: "not a value !"}, set())
        if parameter.kind != "str":
            assert found == ({} if gone else {name: default}), (cls, name)
        assert shared_params._defaults(cls, {name: default}, set()) == {name: default}
        assert shared_params._defaults(cls, {name: "not a value !"}, {name}) == {name: "not a value !"}


def test_an_instance_keeps_its_template() -> None:
    params, _ = shared_params.defaults([Layer("t", INSTANCE, params={"template": "block"})], REGISTRY)
    assert params == {"t": {"template": "block"}}


def test_shared_are_the_parameters_that_every_class_declares_alike() -> None:
    def alike(a: Parameter, b: Parameter) -> bool:
        return (a.name, a.kind, a.info.choices, a.info.min, a.info.max) == (
            b.name,
            b.kind,
            b.info.choices,
            b.info.min,
            b.info.max,
        )

    differing = 0
    for one in OPERATORS:
        assert shared_params.shared_parameters([one]) == list(one.parameters)
        assert shared_params.shared_parameters([one, None]) == []
        for two in OPERATORS:
            wanted = [p for p in one.parameters if any(alike(p, other) for other in two.parameters)]
            differing += len([p for p in one.parameters if two.parameter(p.name) is not None]) - len(wanted)
            assert shared_params.shared_parameters([one, two]) == wanted
            other = {p.name for p in wanted if two.parameter(p.name).default != p.default}
            assert shared_params.without_default(wanted, [one, two, None]) == other
            for p in wanted:  # each layer has the default of its own type
                own = two.parameter(p.name)
                assert shared_params.text_of(two, {}, p) == own.format(own.default)
    assert differing, "some have the same name and other bounds or choices"
    assert shared_params.shared_parameters([]) == []
    bounded = replace(FEATURES, info=replace(FEATURES.info, min=3))
    assert shared_params._key(bounded) != shared_params._key(FEATURES)
    assert shared_params._key(replace(FEATURES, info=replace(FEATURES.info, max=3))) != shared_params._key(FEATURES)


def test_instances_choose_among_the_templates_of_the_document() -> None:
    template = REGISTRY.get(INSTANCE).parameter("template")
    (found, features) = shared_params.with_templates([template, FEATURES], ["b", "a"])
    assert (found.kind, found.info.choices, features) == ("choice", ("", "a", "b"), FEATURES)
    assert shared_params.with_templates([template, FEATURES], []) == [template, FEATURES]
