"""How operators are found, and what happens to those that cannot be used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from operator_oracles import REGISTRY

from app.checks.operator_reference import reference
from designer.graph.diagnostics import Diagnostic, Severity
from designer.graph.model import ActivationSpec, Layer
from designer.graph.types import Size2D, Size3D
from designer.operators import registry as registry_module
from designer.operators.api import Activation, Fault, Operator, Role, param
from designer.operators.params import ParamError, Parameter, ParamInfo, format_value
from designer.operators.registry import Registry, load

PLUGIN = '''
from collections.abc import Sequence
from designer.operators.api import Category, Example, OnnxNode, Operator, TensorType, TorchCall, image, param


class Doubled(Operator, type="doubled", title="Doubled", category=Category.ELEMENT_WISE):
    """Twice the input."""

    factor: float = param(default=2.0, doc="The factor.")
    examples = (Example((image(),)),)

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]
'''


def test_the_library_is_large_enough_and_sorted_by_category() -> None:
    assert len(REGISTRY.operators) + len(REGISTRY.activations) >= 110
    assert not REGISTRY.diagnostics
    for cls in REGISTRY:
        place = cls.__module__.split(".")
        folder = cls.category.name.lower()
        assert place[0] == "analysis_layers" or place[-2] == folder, cls


def test_the_reference_has_the_declared_defaults_and_limits() -> None:
    page = Path(__file__).parents[2] / "docs/operators.md"
    assert page.read_text("utf-8") == reference(REGISTRY), "if the change of a declaration is intended: make docs"


def test_loading_brings_no_heavy_library() -> None:
    code = (
        "import sys; from designer.operators.registry import load; load(entry_points=False);"
        "heavy = {'torch', 'onnx', 'onnxruntime', 'numpy', 'PySide6', 'matplotlib', 'lxml'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_plugin_folder(tmp_path: Path) -> None:
    (tmp_path / "doubled.py").write_text(PLUGIN, encoding="utf-8")
    (tmp_path / "broken.py").write_text("import nothing_like_this\n", encoding="utf-8")
    (tmp_path / "clash.py").write_text(PLUGIN.replace('"doubled"', '"convolution"'), encoding="utf-8")
    registry = load([tmp_path, tmp_path / "missing"], entry_points=False)
    assert registry.get("doubled") is not None
    read = registry.read(Layer("it", "doubled", params={"factor": "3.0"}))
    assert read.operator is not None
    assert read.operator.values() == {"factor": 3.0}
    messages = [d.message for d in registry.diagnostics]
    assert len(messages) == 2
    assert "broken.py" in messages[0]
    assert "declared twice" in messages[1]
    assert registry.get("convolution") is not None
    assert registry.get("convolution").__module__.startswith("designer.")


def test_two_declarations_of_a_type() -> None:
    registry = Registry()
    registry.register(REGISTRY.operators["identity"])
    with pytest.raises(ValueError, match="declared twice"):
        registry.register(REGISTRY.operators["identity"])


def test_unknown_layers_and_parameters_are_findings() -> None:
    assert [d.code for d in REGISTRY.read(Layer("it", "nonsense")).diagnostics] == ["unknown-operator"]
    read = REGISTRY.read(Layer("it", "identity", params={"colour": "red"}))
    assert read.operator is not None
    assert [d.code for d in read.diagnostics] == ["unknown-parameter"]


def test_a_parameter_that_is_unknown_does_not_hide_faults_of_the_others() -> None:
    params = {"colour": "red", "before": "1,2", "after": "1"}
    for unknown, found in ((False, ["bad-parameter"]), (True, ["bad-parameter", "unknown-parameter"])):
        read = REGISTRY.read(
            Layer("it", "pad_tensor", params={k: v for k, v in params.items() if unknown or k != "colour"})
        )
        assert sorted(finding.code for finding in read.diagnostics) == found, [str(d) for d in read.diagnostics]


def test_lists_of_numbers_as_text() -> None:
    mean = REGISTRY.operators["normalize_image"].parameter("mean")
    assert mean is not None
    assert mean.kind == "floats"
    assert mean.parse("0.5, 1e-05,2") == (0.5, 1e-5, 2.0)
    assert format_value((0.5, 1e-5, 2.0)) == "0.5,1.0e-05,2.0"
    assert mean.parse("") == ()
    with pytest.raises(ParamError, match="not a number"):
        mean.parse("0.5;1")


class Renamed(Operator, type="renamed_thing", title="Renamed thing"):
    """An operator that had another name, and a parameter that had one."""

    replaces: ClassVar[tuple[str, ...]] = ("old_thing", "older_thing")
    renamed: ClassVar[Mapping[str, str]] = {"amount": "factor"}
    factor: float = param(default=2.0, min=0.0)
    label: str = param(default="")

    def faults(self) -> Iterable[Fault]:
        if self.factor == 7:
            raise KeyError("seven")
        if self.factor > 5:
            yield Fault("factor", "the factor is large", "use a smaller one")


class Curve(Activation, type="own_curve", title="Own curve"):
    """An activation."""

    steep: int = param(default=1, min=1)


class Viewed(Operator, type="own_view", title="Own view", role=Role.ANALYSIS):
    """An analysis layer."""


class Needs(Operator, type="own_needs", title="Own needs"):
    """A layer that is only its activation."""

    default_activation: ClassVar[str] = "own_curve"


@pytest.fixture
def own() -> Registry:
    registry = Registry()
    for cls in (Viewed, Renamed, Curve, Needs):
        registry.register(cls)
    return registry


def test_operators_are_found_by_their_older_names_and_listed_by_type(own: Registry) -> None:
    for name in ("renamed_thing", "old_thing", "older_thing"):
        assert own.get(name) is Renamed
        assert own.role(name) is Role.COMPUTE
    assert own.role("own_view") is Role.ANALYSIS
    assert own.get("own_curve") is None, "an activation is not an operator"
    assert own.role("nothing") is None
    assert [cls.type for cls in own] == ["own_needs", "own_view", "renamed_thing"]


@pytest.mark.parametrize(
    ("type", "replaces"), [("old_thing", ()), ("new_thing", ("renamed_thing",)), ("x", ("y", "older_thing"))]
)
def test_older_names_are_taken_too(type: str, replaces: tuple[str, ...], own: Registry) -> None:
    made = __import__("types").new_class(
        "Made", (Operator,), {"type": type}, lambda body: body.update(replaces=replaces)
    )
    taken = next(name for name in (type, *replaces) if own.get(name) is not None)
    with pytest.raises(ValueError, match=f"operator '{taken}' is declared twice"):
        own.register(made)
    with pytest.raises(ValueError, match="activation 'own_curve' is declared twice"):
        own.register(Curve)


def test_only_declarations_of_a_module_itself_are_registered() -> None:
    registry, module = Registry(), ModuleType("own_module")

    class Inside(Operator, type="inside"):
        __module__ = "own_module"

    class Base(Operator):
        __module__ = "own_module"

    vars(module).update(Inside=Inside, Base=Base, Renamed=Renamed, Operator=Operator, number=3)
    registry.take(module)
    assert list(registry.operators) == ["inside"]
    registry.take(Renamed)
    registry.take("a text")
    registry.take(int)
    assert list(registry.operators) == ["inside", "renamed_thing"]


def read(own: Registry, type: str, activation: ActivationSpec | None = None, **params: str) -> list[tuple[Any, ...]]:
    found = own.read(Layer("it", type, params=params, activation=activation)).diagnostics
    assert all(isinstance(item, Diagnostic) and item.layer == "it" for item in found)
    return [(item.code, item.message, item.severity, item.parameter, item.remedy) for item in found]


E, W = Severity.ERROR, Severity.WARNING


@pytest.mark.parametrize(
    ("type", "activation", "params", "expected"),
    [
        ("renamed_thing", None, {"factor": "3.0"}, []),
        ("older_thing", None, {"amount": "3.0", "label": "a"}, []),
        ("own_needs", ActivationSpec("own_curve", {"steep": "2"}), {}, []),
        (
            "gone", None, {},
            [("unknown-operator", "the operator type 'gone' is unknown; the layer is preserved", E, None,
              "install the plugin that provides it, or replace the layer")],
        ),
        (
            "renamed_thing", None, {"colour": "red"},
            [("unknown-parameter", "Renamed thing has no parameter 'colour'; it is preserved but not used", W, "colour",
              "correct its name, or remove it")],
        ),
        (
            "renamed_thing", None, {"amount": "-1"},
            [("bad-parameter", "parameter 'amount': -1 is below the minimum of 0", E, "amount", "the default is 2.0")],
        ),
        (
            "renamed_thing", None, {"factor": "6"},
            [("bad-parameter", "the factor is large", E, "factor", "use a smaller one")],
        ),
        (
            "renamed_thing", None, {"factor": "7"},
            [("broken-operator", "the operator 'renamed_thing' failed while it was checked: KeyError: 'seven'", E, None,
              "fix the plugin that provides it")],
        ),
        (
            "renamed_thing", ActivationSpec("gone"), {},
            [("unknown-activation", "the activation 'gone' is unknown", E, "activation", "choose one of own_curve")],
        ),
        (
            "renamed_thing", ActivationSpec("own_curve", {"steep": "0"}), {},
            [("bad-parameter", "parameter 'steep': 0 is below the minimum of 1", E, "steep", "the default is 1")],
        ),
        (
            "own_view", ActivationSpec("own_curve"), {},
            [("activation-on-analysis", "Own view is an analysis layer and cannot have an attached activation", E, "activation",
              "remove the activation, or add an activation layer after it")],
        ),
        (
            "own_needs", None, {},
            [("no-activation", "Own needs does nothing without an activation", E, "activation",
              "choose an activation, for instance own_curve")],
        ),
    ],
)  # fmt: skip
def test_what_is_found_in_the_text_of_a_layer(
    type: str, activation: ActivationSpec | None, params: dict[str, str], expected: list[tuple[Any, ...]], own: Registry
) -> None:
    found = read(own, type, activation, **params)
    assert [(*item[:3], item[3] or None, item[4]) for item in found] == expected


def test_layers_of_the_same_text_share_what_was_read(own: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    def it(**more: Any) -> Any:
        return own.read(Layer("a", "renamed_thing", **more))

    first = it(params={"factor": "3.0", "label": "x"})
    assert own.read(Layer("b", "renamed_thing", params={"label": "x", "factor": "3.0"})) is first
    others = [
        it(params={"factor": "3.0"}),
        it(params={"factor": "4.0", "label": "x"}),
        it(params={"factor": "3.0", "label": "x"}, activation=ActivationSpec("own_curve")),
        it(params={"factor": "3.0", "label": "x"}, activation=ActivationSpec("own_curve", {"steep": "2"})),
    ]
    assert len({id(item) for item in (first, *others)}) == 5
    assert [item.activation and item.activation.values() for item in others] == [None, None, {"steep": 1}, {"steep": 2}]
    assert own.read(Layer("a", "gone")) is not own.read(Layer("a", "gone")), "findings name the layer"
    own.register(type("Late", (Operator,), {}, type="gone"))
    assert own.read(Layer("a", "gone")).operator is not None
    assert it(params={"factor": "3.0", "label": "x"}) is not first
    monkeypatch.setattr(registry_module, "REMEMBERED", 1)
    it(params={"factor": "1.0"})
    assert len(own._read) == 1


def test_ports_of_a_layer_with_a_wrong_parameter_are_those_of_its_class(own: Registry) -> None:
    wrong = own.read(Layer("a", "renamed_thing", params={"factor": "-1"}))
    assert (wrong.operator, wrong.declared, wrong.input_ports) == (None, Renamed, Renamed.inputs)
    unknown = own.read(Layer("a", "gone"))
    assert (unknown.operator, unknown.declared, unknown.input_ports) == (None, None, ())


# --- texts of parameters --------------------------------------------------------------------------------------------


def parameter(kind: str, name: str = "some_name", **info: Any) -> Parameter:
    return Parameter(name, kind, None, ParamInfo(**info))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("bool", "true", True), ("bool", "false", False), ("int", " 12 ", 12), ("int", "-3", -3), ("int", "+4", 4),
        ("int", "9" * 18, int("9" * 18)), ("float", "2", 2.0), ("float", ".5", 0.5), ("float", "1.", 1.0), ("float", "-1e-3", -0.001),
        ("float", "+2.5E+2", 250.0), ("str", " a b ", " a b "), ("ints", "", ()), ("ints", "1, -2,3", (1, -2, 3)),
        ("floats", " ", ()), ("size2d", "3x5", Size2D(3, 5)), ("size3d", "3x5x7", Size3D(3, 5, 7)), ("size2d?", "", None),
        ("size2d?", "2x4", Size2D(2, 4)),
    ],
)  # fmt: skip
def test_a_text_is_read_as_a_value(kind: str, text: str, value: Any) -> None:
    found = parameter(kind).parse(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("bool", "True", "'True' is not a truth value; write true or false"), ("bool", "1", "'1' is not a truth value"),
        ("int", "1.0", "'1.0' is not a whole number"), ("int", "", "'' is not a whole number"), ("int", "1" * 19, "at most 18 digits"),
        ("int", "x" * 50, f"'{'x' * 40}' is not a whole number"), ("float", "1,5", "'1,5' is not a number; use a decimal point, as in 0.5"),
        ("float", "nan", "not a number"), ("float", ".", "not a number"), ("float", "1e9999", "inf is not a finite number"),
        ("ints", "1,,2", "'' is not a whole number"), ("size2d", "3", "3"), ("size3d", "3x5", "3x5"), ("size2d?", "x", "x"),
    ],
)  # fmt: skip
def test_a_text_without_a_value_is_refused(kind: str, text: str, message: str) -> None:
    with pytest.raises(ParamError) as caught:
        parameter(kind).parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""), (True, "true"), (False, "false"), (3, "3"), (3.0, "3.0"), (0.1, "0.1"), (1e-7, "1.0e-07"), (1.5e30, "1.5e+30"),
        ((1, 2), "1,2"), ((0.5, 1e20), "0.5,1.0e+20"), ((), ""), (Size2D(3, 5), "3x5"), (Size3D(3, 5, 7), "3x5x7"), ("a,b", "a,b"),
    ],
)  # fmt: skip
def test_the_text_of_a_value(value: Any, text: str) -> None:
    assert format_value(value) == text
    assert parameter("float").format(value) == text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2, None), (8, None), (2.5, None), (1, "1 is below the minimum of 2"), (9, "9 is above the maximum of 8"),
        (8.25, "8.25 is above the maximum of 8"), (Size2D(2, 8), None), (Size2D(2, 9), "9 is above"), (Size2D(1, 8), "1 is below"),
        (Size3D(2, 8, 9), "9 is above"), (Size3D(2, 1, 8), "1 is below"), ((2, 8, 1), "1 is below"), ((), None), (None, None),
        (True, None), ("9", None), (float("inf"), "inf is not a finite number"), (float("nan"), "nan is not a finite number"),
    ],
)  # fmt: skip
def test_every_number_of_a_value_is_within_the_bounds(value: Any, message: str | None) -> None:
    limited = parameter("int", min=2, max=8)
    if message is None:
        limited.check(value)
        return
    with pytest.raises(ParamError, match=message):
        limited.check(value)


def test_a_choice_is_one_of_those_that_are_named() -> None:
    choice = parameter("choice", choices=("one", "two"))
    assert choice.parse("two") == "two"
    with pytest.raises(ParamError, match="'three' is not one of one, two"):
        choice.parse("three")


def test_fields_are_shown_while_another_parameter_has_one_of_its_values() -> None:
    assert parameter("int").visible({})
    single = parameter("int", visible_when=("mode", "a"))
    several = parameter("int", visible_when=("mode", ("a", "b")))
    shown = [[item.visible({"mode": mode}) for mode in "abc"] for item in (single, several)]
    assert shown == [[True, False, False], [True, True, False]]
    assert not single.visible({})


def test_the_name_of_a_parameter_for_users() -> None:
    assert [parameter("int", name).title for name in ("padding_tuple", "rgba", "k")] == ["Padding tuple", "RGBA", "K"]
