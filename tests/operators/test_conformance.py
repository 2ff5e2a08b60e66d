"""Every operator and activation, in every example, against judges that are not ours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from operator_oracles import (
    ALL,
    COMPUTE,
    LAYER,
    REGISTRY,
    TORCH,
    Case,
    assert_onnx_agrees,
    dtype_of,
    meta,
    network,
    random_inputs,
    randomise,
    runner,
)

from designer.graph.model import ActivationSpec, Layer
from designer.graph.types import Symbol
from designer.operators.api import OnnxNode, Operator, Role

ORACLES = ("meta", "state_dict", "flops", "onnx", "source", "random", "onnx_random")
DECLARATIONS = [*REGISTRY, *REGISTRY.activations.values()]


def by_name(case: Case) -> str:
    return case.name


def excused(case: Case, oracle: str) -> None:
    reason = case.subject.exceptions.get(oracle)
    if reason is not None:
        pytest.skip(f"{case.subject.type}: {reason}")


@pytest.mark.parametrize("cls", DECLARATIONS, ids=lambda cls: cls.type)
def test_declaration_is_complete(cls: type[Operator]) -> None:
    assert cls.__doc__
    assert len(cls.help()) > 15
    assert cls.title
    assert cls.examples, "no example"
    assert set(cls.exceptions) <= set(ORACLES)
    for parameter in cls.parameters:
        assert parameter.info.doc, parameter.name
        assert parameter.info.doc.endswith("."), parameter.name
        parameter.check(parameter.default)
        if parameter.info.visible_when is not None:
            other, wanted = parameter.info.visible_when
            source = cls.parameter(other)
            assert source is not None, f"{parameter.name} depends on an unknown parameter"
            for value in wanted if isinstance(wanted, tuple) else (wanted,):
                source.check(value)
        if parameter.kind in ("int", "size2d", "size3d", "ints", "size2d?"):
            assert parameter.info.min is not None, f"{parameter.name} has no bounds"
            assert parameter.info.max is not None, f"{parameter.name} has no bounds"
    for port in (*cls.inputs, *cls.outputs):
        assert port.name.isidentifier(), port


@pytest.mark.parametrize("case", ALL, ids=by_name)
def test_text_round_trip(case: Case) -> None:
    spec = ActivationSpec(case.activation.type, case.activation.texts()) if case.activation else None
    for everything in (True, False):
        layer = Layer(LAYER, case.operator.type, params=case.operator.texts(all=everything), activation=spec)
        read = REGISTRY.read(layer)
        assert not [d for d in read.diagnostics if d.code != "no-activation"]
        assert read.operator == case.operator
        assert read.activation == case.activation
        assert read.operator.texts() == case.operator.texts()


@pytest.mark.parametrize("case", ALL, ids=by_name)
def test_summary_is_short_text(case: Case) -> None:
    text = case.subject.summary()
    assert "\n" not in text
    assert len(text) <= 60


@pytest.mark.parametrize("case", TORCH, ids=by_name)
@pytest.mark.parametrize("batch", [1, 2])
def test_types_equal_torch_on_meta(case: Case, batch: int) -> None:
    excused(case, "meta")
    net = network(case)
    results = runner(case, "meta", net=net)(*meta(case.types, batch))
    assert len(results) == len(net.types) == len(case.operator.output_ports())
    for ours, theirs in zip(net.types, results, strict=True):
        assert ours.concrete(batch) == tuple(theirs.shape)
        assert ours.dtype == dtype_of(theirs)


@pytest.mark.parametrize("case", TORCH, ids=by_name)
def test_weights_equal_state_dict(case: Case) -> None:
    excused(case, "state_dict")
    module = runner(case)
    ours = {bound.key: tuple(bound.weight.shape) for bound in module.program.weights}
    state = module.inner.state_dict()
    theirs = {key: tuple(value.shape) for key, value in state.items() if not key.endswith("num_batches_tracked")}
    assert ours == theirs
    learned = {name for name, _ in module.inner.named_parameters()}
    assert {bound.key for bound in module.program.weights if bound.weight.trainable} == learned
    parameters = sum(value.numel() for value in module.inner.parameters())
    cost = case.subject.cost(case.types, network(case).types)
    assert cost.parameters == parameters


@pytest.mark.parametrize("case", TORCH, ids=by_name)
def test_flops_equal_torch_counter(case: Case) -> None:
    """With an open batch, which counts as 1, and with a fixed one."""
    excused(case, "flops")
    from torch.utils.flop_counter import FlopCounterMode

    for each in (case, replace(case, types=tuple(kind.bind(N=3) for kind in case.types))):
        net = network(each)
        module = runner(each, "meta", net=net)
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            module(*meta(each.types, 1))
        assert each.subject.flops(each.types, net.types) == counter.get_total_flops()


@pytest.mark.parametrize("case", TORCH, ids=by_name)
def test_emitted_source_equals_module(case: Case) -> None:
    """The class that the exporter prints has the same state dict, and gives the same numbers."""
    excused(case, "source")
    from exporters.pytorch.source import Module, module_source

    net = network(case)
    program = net.program()
    source = module_source(Module(net.inference, program, net.feeds, net.outputs), "Printed")
    space: dict[str, Any] = {}
    exec(compile(source, "printed.py", "exec"), space)
    printed = space["Printed"]().eval()
    module = runner(case, net=net)
    randomise(module)
    assert list(printed.state_dict()) == list(module.inner.state_dict())
    printed.load_state_dict(module.inner.state_dict())
    inputs = random_inputs(case.types, 2)
    with torch.no_grad():
        expected = module(*inputs)
        got = printed(*inputs)
    results = list(got.values()) if isinstance(got, dict) else [got]
    for ours, theirs in zip(results, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("case", COMPUTE, ids=by_name)
def test_onnx_agrees_with_torch(case: Case) -> None:
    excused(case, "onnx")
    assert_onnx_agrees(case)


def attachable() -> list[Case]:
    """One activation on every operator that yields floating-point numbers."""
    from dataclasses import replace

    found = []
    for case in COMPUTE:
        if case.activation is None and case.name.startswith(f"{case.operator.type}-0"):
            kind = network(case).types[0]
            if kind.dtype.is_float and "source" not in case.operator.exceptions:
                name = "prelu" if kind.rank > 1 and not isinstance(kind.shape[1], Symbol) else "relu"
                found.append(
                    replace(case, activation=REGISTRY.activations[name](), name=f"{case.operator.type}+{name}")
                )
    return found


@pytest.mark.parametrize("case", attachable(), ids=by_name)
def test_activation_on_every_operator(case: Case) -> None:
    net = network(case)
    results = runner(case, "meta", net=net)(*meta(case.types, 2))
    assert [t.concrete(2) for t in net.types] == [tuple(r.shape) for r in results]
    if "onnx" not in case.operator.exceptions:
        assert_onnx_agrees(case)


@pytest.mark.parametrize("cls", [c for c in REGISTRY if c.role is Role.ANALYSIS], ids=lambda cls: cls.type)
def test_analysis_layer_keeps_its_promise(cls: type[Operator]) -> None:
    for case in (c for c in ALL if type(c.operator) is cls):
        for batch in (1, 2):
            arrays = [value.numpy() for value in random_inputs(case.types, batch)]
            before = [array.copy() for array in arrays]
            for array in arrays:
                array.flags.writeable = False
            first = case.operator.evaluate(arrays)
            again = case.operator.evaluate(arrays)
            types = case.operator.infer_checked(case.types)
            assert [r.shape for r in first] == [t.concrete(batch) for t in types]
            assert all(r.dtype == np.float32 for r in first)
            for one, other in zip(first, again, strict=True):
                np.testing.assert_array_equal(one, other)
            for one, other in zip(arrays, before, strict=True):
                np.testing.assert_array_equal(one, other)
        for option in case.operator.options():
            assert option.kind == "label" or cls.parameter(option.param) is not None


def _wrong_shape(cls: Any) -> dict[str, Any]:
    right = cls.infer
    return {"infer": lambda self, inputs: right(self, inputs).with_dim(2, 99)}


def _wrong_flops(cls: Any) -> dict[str, Any]:
    right = cls.flops
    return {"flops": lambda self, inputs, outputs: right(self, inputs, outputs) + 1}


def _missing_weight(cls: Any) -> dict[str, Any]:
    right = cls.weights
    return {"weights": lambda self, inputs: right(self, inputs)[:1]}


def _wrong_onnx(cls: Any) -> dict[str, Any]:
    right = cls.onnx
    return {"onnx": lambda self, inputs: OnnxNode("Neg", (right(self, inputs),))}


@pytest.mark.parametrize(
    ("mistake", "judge"),
    [
        (_wrong_shape, lambda case: test_types_equal_torch_on_meta(case, 1)),
        (_wrong_flops, test_flops_equal_torch_counter),
        (_missing_weight, test_weights_equal_state_dict),
        (_wrong_onnx, assert_onnx_agrees),
    ],
)
def test_judges_see_a_wrong_operator(mistake: Any, judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that passes a broken operator proves nothing about the others."""
    cls = REGISTRY.operators["convolution"]
    right = next(case for case in ALL if type(case.operator) is cls)
    judge(right)
    for name, method in mistake(cls).items():
        monkeypatch.setattr(cls, name, method)
    with pytest.raises(AssertionError):
        judge(right)
