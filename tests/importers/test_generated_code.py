"""What the code of an exported project says about its statements and classes, also after somebody edited it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from designer.graph.model import ActivationSpec
from designer.importers.pytorch.composites import Composite, is_positional
from designer.importers.pytorch.conversion import UnsupportedError
from designer.importers.pytorch.generated import Role, Statement, _arguments, _Class, _class, _roles
from designer.importers.pytorch.importing import import_module
from designer.importers.pytorch.loading import load_module
from designer.importers.pytorch.program import Frame, module_calls
from designer.operators.generated_code import NETWORK, template_title
from designer.operators.registry import Registry

LINE = Statement(("block",), 7)


class FakeNode:
    """As much of a node of torch.fx as is asked for."""

    def __init__(self, name: str, operator: str, reads: list[FakeNode]) -> None:
        self.name, self.op, self.all_input_nodes = name, "call_function", reads
        self.target = SimpleNamespace(_schema=SimpleNamespace(name=f"aten::{operator}"))
        self.users: dict[FakeNode, None] = {}
        self.meta: dict[str, Any] = {}


def trace_of(*calls: tuple[str, Sequence[int]]) -> list[Any]:
    """Nodes of a trace: the operator of each, and the places of the nodes that it reads."""
    nodes: list[Any] = []
    for number, (operator, reads) in enumerate(calls):
        nodes.append(FakeNode(f"n{number}", operator, [nodes[place] for place in reads]))
        for item in nodes[-1].all_input_nodes:
            item.users[nodes[-1]] = None
    return nodes


@pytest.mark.parametrize(
    ("calls", "labels"),
    [
        ([("conv2d", [])], {"n0": "c"}),
        ([("conv2d", []), ("relu", [0])], {"n0": "c", "n1": "c attached"}),
        ([("conv2d", []), ("relu", [0]), ("tanh", [1])], {"n0": "c", "n1": "c attached", "n2": "c attached"}),
        ([("flatten", []), ("linear", [0]), ("gelu", [1])], {"n0": "c_flatten", "n1": "c", "n2": "c attached"}),
        ([("conv2d", []), ("relu", [0]), ("add", [0, 1])], {"n0": "c_conv2d", "n1": "c_relu", "n2": "c"}),
        ([("conv2d", []), ("add", [0]), ("relu", [0])], {"n0": "c_conv2d", "n1": "c_add", "n2": "c"}),
        ([("conv2d", []), ("cos", [0]), ("relu", [1])], {"n0": "c_conv2d", "n1": "c", "n2": "c attached"}),
        ([("relu", [])], {"n0": "c"}),
        ([("relu", []), ("relu", [0])], {"n0": "c", "n1": "c attached"}),
    ],
)
def test_activations_at_the_end_of_a_statement_are_attached(
    calls: list[tuple[str, list[int]]], labels: dict[str, str]
) -> None:
    """Unless their input is read elsewhere too, or they do not read the node before them."""
    assert _roles(LINE, "c", trace_of(*calls)) == {
        name: Role(LINE, text.partition(" ")[0], attached=" " in text) for name, text in labels.items()
    }


def test_an_activation_whose_input_is_read_by_another_statement_is_a_layer_of_its_own() -> None:
    conv, relu, _ = trace_of(("conv2d", []), ("relu", [0]), ("neg", [0]))
    assert _roles(LINE, "c", [conv, relu]) == {"n0": Role(LINE, "c_conv2d"), "n1": Role(LINE, "c")}


@pytest.mark.parametrize(
    ("code", "name", "arguments"),
    [
        ("y = self.part(a, b)", "part", ("a", "b")),
        ("y = F.relu(self.part(a, b)) + self.other(c)", "part", ("a", "b")),
        ("y = F.relu(self.part(a, b)) + self.other(c)", "other", ("c",)),
        ("y = self.part(a * 2, b)", "part", ("b",)),
        ("y = self.part()", "part", ()),
        ("y = self.part2(a)", "part", ()),
        ("y = part(a)", "part", ()),
        ("y = self.part(a,", "part", ()),
        ("", "part", ()),
    ],
)
def test_variables_with_which_a_module_is_called(code: str, name: str, arguments: tuple[str, ...]) -> None:
    assert _arguments(Frame("net.py", 3, code), name) == arguments


@pytest.mark.parametrize(
    ("stack", "calls"),
    [
        ({"net": ("", "m.Net")}, [("m.Net", "", ())]),
        (
            {"net": ("", "m.Net"), "net_block": ("L['self'].block", "m.Block"), "net_block_c": ("block.0.c", torch.nn.Conv2d)},
            [
                ("m.Net", "", ()),
                ("m.Block", "block", ("block",)),
                ("torch.nn.modules.conv.Conv2d", "block.0.c", ("block", "0", "c")),
            ],
        ),
        (
            {"net": ("", "m.Net"), "net_block@1": ("block@1", "m.Block"), "net_block_c@3": ("block.0.c@3", "m.C")},
            [
                ("m.Net", "", ()),
                ("m.Block", "block", ("block@1",)),
                ("m.C", "block.0.c", ("block@1", "0", "c@3")),
            ],
        ),
        (
            {"a@2": ("a@2", "m.A"), "a_b": ("a.b", "m.B"), "a_b_c@1": ("a.b.c@1", "m.C")},
            [("m.A", "a", ("a@2",)), ("m.B", "a.b", ("a@2", "b")), ("m.C", "a.b.c", ("a@2", "b", "c@1"))],
        ),
        (None, []),
    ],
)  # fmt: skip
def test_calls_of_modules_around_a_node_have_the_numbers_of_all_calls(stack: Any, calls: list[Any]) -> None:
    node: Any = SimpleNamespace(meta={"nn_module_stack": stack} if stack is not None else {})
    assert list(module_calls(node)) == calls


WAVES = ["cos", "sin", "stack", "flatten", "add"]


@pytest.mark.parametrize(
    ("operators", "before", "positional"),
    [
        (WAVES, ["ones_like", "cumsum", "sub", "mul"], True),
        (WAVES, ["ones_like"], False),
        (WAVES, ["cumsum"], False),
        (WAVES, [], False),
        ([*WAVES, "mul"], ["ones_like", "cumsum"], False),
        (WAVES[:-1], ["ones_like", "cumsum"], False),
        (["narrow", "add"], [], True),
        (["sym_size", "narrow", "add"], ["relu"], True),
        (["narrow"], [], False),
        (["narrow", "add", "mul"], [], False),
    ],
)
def test_statements_that_are_a_positional_encoding(operators: list[str], before: list[str], positional: bool) -> None:
    assert is_positional(operators, before) is positional


def test_a_group_of_nodes_has_one_that_is_read_outside() -> None:
    first, second, third, outside = trace_of(("conv2d", []), ("relu", [0]), ("tanh", [1]), ("neg", [2]))

    def group(*nodes: Any) -> Composite:
        return Composite(nodes, lambda *_: None, "g")  # type: ignore[arg-type,return-value]

    assert group(first, second, third).end is third
    assert group(first, second).end is second
    for nodes in ((first, third), (outside,), ()):
        with pytest.raises(UnsupportedError, match="several of its tensors are read"):
            _ = group(*nodes).end
    assert [node.name for node in group(first, second, third).named("tanh", "conv2d")] == ["n0", "n2"]
    group(first, second).check(["conv2d", "relu"])
    with pytest.raises(UnsupportedError, match="it also has relu, tanh"):
        group(third, second, first).check(["conv2d"])


CLASSES = f'''
import torch
from torch import nn
class Plain(nn.Module):
    def forward(self, x):
        return x
class Net(nn.Module):
    """{NETWORK}

    More of it.
    """
    def forward(self, x, y):
        return x
class Named(nn.Module):
    """{NETWORK}"""
    def forward(self, x):
        return x  # 'the result'
class Several(nn.Module):
    """{NETWORK}"""
    def forward(self, x):
        return {{"a": x, "b": x}}
class Part(nn.Module):
    """{template_title("my part")}"""
    def forward(self, image: torch.Tensor, shared: nn.Module, other: torch.Tensor) -> torch.Tensor:
        return image
class Trained(nn.Module):
    """{NETWORK}"""
    def forward(self, x):
        result, _ = self.forward_training(x)
        return result
    def forward_training(self, x):
        made = x
        return made, (x, x)
class Other(nn.Module):
    """The layers of another program."""
    def forward(self, x):
        return x
'''
KNOWN = {
    "Plain": None,
    "Net": _Class("", ("x", "y"), "x"),
    "Named": _Class("", ("x",), "the result"),
    "Several": _Class("", ("x",), ""),
    "Part": _Class("my part", ("image", "other"), "image"),
    "Trained": _Class("", ("x",), "made"),
    "Other": None,
}


def test_what_the_source_of_a_class_says(tmp_path: Path) -> None:
    (tmp_path / "generated_classes.py").write_text(CLASSES)
    assert {name: _class(type(load_module(f"generated_classes.py:{name}", tmp_path))) for name in KNOWN} == KNOWN
    made: dict[str, Any] = {}
    exec(CLASSES, made)
    assert _class(made["Net"]) is None, "a class without a file"


EDITED = f'''
import torch
import torch.nn.functional as F
from torch import nn
class Net(nn.Module):
    """{NETWORK}"""
    def __init__(self):
        super().__init__()
        self.c = nn.Linear(8, 8)
        self.register_buffer("waves_speeds", torch.tensor([1.0, 0.3, 0.2, 0.01]))
        self.register_buffer("right_speeds", torch.tensor([1.0, 0.1, 0.01, 0.001]))
        self.learned_table = nn.Parameter(torch.linspace(0, 1, 9 * 8).reshape(1, 9, 8))
    def forward(self, x):
        both = F.relu(h := self.c(x)) + h
        twice = torch.tanh(F.relu(self.c(both)))
        waves_part = (torch.ones_like(twice[:, :, :1]).cumsum(1) - 1) * self.waves_speeds
        waves = twice + torch.stack((waves_part.sin(), waves_part.cos()), dim=-1).flatten(2)
        right_part = (torch.ones_like(waves[:, :, :1]).cumsum(1) - 1) * self.right_speeds
        right = waves + torch.stack((right_part.sin(), right_part.cos()), dim=-1).flatten(2)
        learned = right + torch.narrow(self.learned_table, 1, 0, right.size(1))
        split_part = torch.chunk(learned, 2, dim=2)
        first = split_part[0]
        return torch.cat((first, split_part[1]), 2)
'''


def test_an_edited_project_has_the_layers_that_its_statements_are(tmp_path: Path, registry: Registry) -> None:
    (tmp_path / "edited_net.py").write_text(EDITED)
    torch.manual_seed(1)
    found = import_module(load_module("edited_net.py:Net", tmp_path), [torch.rand(2, 5, 8)], registry)
    layers = {
        layer.name: layer.type if layer.activation is None else f"{layer.type} {layer.activation.type}"
        for layer in found.graph
    }
    assert layers == {
        "x": "tensor_input",
        "both_linear": "fully_connected",
        "both_relu": "activation relu",
        "both": "element_wise",
        "twice": "fully_connected relu",
        "twice_2": "activation tanh",
        "waves_part_slice": "slice",
        "waves_part_ones_like": "custom",
        "waves_part_cumsum": "cumulative",
        "waves_part_sub": "scale_shift",
        "waves_speeds": "tensor_constant",
        "waves_part": "element_wise",
        "waves_sin": "unary",
        "waves_cos": "unary",
        "waves_stack": "stack",
        "waves_flatten": "flatten",
        "waves": "element_wise",
        "right": "positional_encoding",
        "learned": "positional_encoding",
        "split": "split",
        "cat": "concatenation",
        "y": "output",
    }
    assert {name: dict(found.graph[name].params) for name in ("right", "learned")} == {
        "right": {"base": "10000.0", "kind": "sinusoidal", "max_length": "512"}, "learned": {"base": "10000.0", "kind": "learned", "max_length": "9"},
    }  # fmt: skip


TRAINED = f'''
import torch
import torch.nn.functional as F
from torch import nn
class Part(nn.Module):
    """{template_title("part")}"""
    def forward(self, p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        s = q - p
        t = s * 2.0
        return t  # 'r'
class Net(nn.Module):
    """{NETWORK}"""
    def __init__(self):
        super().__init__()
        self.c = nn.Linear(4, 4)
        self.d = nn.Linear(4, 4)
        self.u = Part()
    def forward(self, x):
        return self.forward_training(x)[0]
    def forward_training(self, x):
        c = F.relu(self.c(x))
        d = self.d(x)
        u = self.u(d, c)
        return u, (c, d)  # 'result'
'''


def test_a_project_with_losses_has_the_layers_of_its_training_code(tmp_path: Path, registry: Registry) -> None:
    """The line that calls the training code is none of the lines of the layers."""
    (tmp_path / "trained_net.py").write_text(TRAINED)
    found = import_module(load_module("trained_net.py:Net", tmp_path), [torch.rand(2, 4)], registry)
    (template,) = found.graph.templates.values()
    assert (template.name, template.inputs, template.outputs) == ("part", ("p", "q"), ("r",))
    assert {layer.name: [str(source) for source in layer.inputs] for layer in found.graph} == {
        "x": [], "c": ["x"], "d": ["x"], "u": ["d", "c"], "result": ["u"],
    }  # fmt: skip
    assert found.graph["c"].activation == ActivationSpec("relu", {"alpha": "0.0"})
