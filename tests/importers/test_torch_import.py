from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
import torch_models
from torch import nn

from app.process import module_command
from designer.files.document import read_document
from designer.graph.diagnostics import DiagnosticError
from designer.importers.pytorch.importing import import_module, import_saved_program
from designer.importers.pytorch.tracing import _refused
from designer.importers.report import Outcome
from designer.operators.registry import Registry


def imported(name: str, registry: Registry):
    module, inputs = torch_models.build(name)
    return import_module(module, inputs, registry).verified(registry)


@pytest.mark.parametrize("name", torch_models.MODELS)
def test_models_compute_the_same_as_a_document(name: str, registry: Registry) -> None:
    report = imported(name, registry).report
    assert report.opaque == 0, [item for item in report.outcomes if item.outcome is Outcome.OPAQUE]
    assert report.max_rel_difference is not None
    assert report.max_rel_difference <= 1e-5
    assert len(report.cases) >= 2, "compared at one size and batch only"


def test_the_batch_stays_open_where_it_is_merged_with_windows(registry: Registry) -> None:
    class Windows(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.linear = torch.nn.LayerNorm(4), torch.nn.Linear(4, 4)
            self.bias = torch.nn.Parameter(torch.rand(1, 16, 4))

        def forward(self, x):
            b, c, h, w = x.shape
            y = x.view(b, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, c)
            y = self.linear(self.norm(y)).softmax(-1) + self.bias
            y = y @ y.transpose(1, 2) @ y
            y = torch.roll(y, 1, 1)
            return y.view(b, h // 4, w // 4, 4, 4, c).permute(0, 5, 1, 3, 2, 4).reshape(b, c, h, w)

    report = import_module(Windows(), [torch.rand(1, 4, 8, 8)], registry).verified(registry).report
    assert report.opaque == 0
    assert report.agrees
    assert {case.inputs["x"][0] for case in report.cases} == {1, 2}


def test_flattening_the_batch_or_a_single_axis_is_a_reshape(registry: Registry) -> None:
    class Rows(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(6, 6)
            self.scale = torch.nn.Parameter(torch.rand(2, 3))

        def forward(self, x):
            y = self.linear(x.flatten(0, 1)).view(x.shape)
            return y.flatten(2, 2) * self.scale.flatten()

    report = import_module(Rows(), [torch.rand(2, 4, 6)], registry).verified(registry).report
    assert report.opaque == 0
    assert report.agrees


def test_equal_blocks_become_templates(registry: Registry) -> None:
    found = imported("vit", registry)
    assert 3 in found.report.templates.values()
    assert len(found.graph.templates) == len(found.report.templates)


class Residual(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = torch.nn.Conv2d(4, 4, 3, padding=1)
        self.two = torch.nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.two(torch.relu(self.one(x)))


class Groups(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        groups = ([Residual(), Residual(), torch.nn.Conv2d(4, 4, 1)] for _ in range(2))
        self.groups = torch.nn.ModuleList(torch.nn.Sequential(*group) for group in groups)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for group in self.groups:
            x = group(x)
        return x


def test_templates_contain_instances_of_others(registry: Registry) -> None:
    found = import_module(Groups(), [torch.rand(1, 4, 8, 8)], registry).verified(registry)
    assert found.report.templates == {"groups": 2, "groups_2": 2}
    assert [layer.type for layer in found.graph if layer.type != "template"] == ["input", "output"]
    inside = {layer.name: layer.type for layer in found.graph.templates["groups"].layers}
    assert sorted(inside.values()) == ["convolution", "template", "template", "template_input", "template_output"]
    assert found.report.weights["groups.1.0.two.weight"] == "groups_1.layer_0.two.kernel"
    assert len(found.weights.tensors) == 20
    assert found.report.agrees
    assert len(found.report.cases) == 3


class Shared(torch.nn.Module):
    """Calls a block and a convolution twice."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Residual()
        self.mix = torch.nn.Conv2d(4, 4, 1)
        self.other = Residual()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.other(self.mix(self.block(self.mix(self.block(x)))))


def test_calls_of_one_module_share_its_weights(registry: Registry) -> None:
    module = Shared()
    found = import_module(module, [torch.rand(1, 4, 8, 8)], registry).verified(registry)
    shared = [layer.params["template"] for layer in found.graph if layer.params.get("shared_weights") == "true"]
    assert sorted(shared) == ["block", "block", "mix", "mix"]
    assert found.graph["other"].params == {"template": "block"}
    assert sum(tensor.size for tensor in found.weights.tensors.values()) == sum(p.numel() for p in module.parameters())
    assert found.report.weights["block.one.weight"] == "block.one.kernel"
    assert found.report.weights["other.one.weight"] == "other.one.kernel"
    assert found.report.agrees


class Pair(nn.Module):
    """Two convolutions, the first of which can be that of another pair."""

    def __init__(self, first: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, nn.Conv2d(4, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


class Around(nn.Module):
    def __init__(self, pair: nn.Module) -> None:
        super().__init__()
        self.pair = pair

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.pair(x)) + x


class SharesItsFirstPart(nn.Module):
    """Two modules with a common part, each called twice."""

    def __init__(self) -> None:
        super().__init__()
        common = nn.Conv2d(4, 4, 1)
        self.one, self.other = Around(Pair(common)), Around(Pair(common))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.other(self.one(self.other(self.one(x))))


def test_modules_that_share_a_part_keep_the_weights_of_their_other_parts(registry: Registry) -> None:
    torch.manual_seed(0)
    found = import_module(SharesItsFirstPart(), [torch.rand(2, 4, 5, 6)], registry).verified(registry)
    assert found.report.agrees, found.report.max_rel_difference
    assert len(found.graph.templates) >= 1


def test_writes_in_place_reach_the_tensors_that_share_memory(registry: Registry) -> None:
    class Writes(torch.nn.Module):
        def forward(self, x):
            y = x * 2
            y[:, :2, 1] = y[:, 1:3, 2] + 1
            z = torch.zeros(x.shape[0], 4, 8, 8)
            z[:, :, 2:4] = x[:, :, :2]
            y.clamp_(-1, 1.5)
            return y + z

    report = import_module(Writes(), [torch.rand(1, 4, 8, 8)], registry).verified(registry).report
    assert report.opaque == 0
    assert report.max_abs_difference == 0


def test_keys_of_the_state_dict_are_mapped_to_layers(registry: Registry) -> None:
    found = imported("resnet", registry)
    places = {f"{key.layer}.{key.tensor}" for key in found.weights.tensors}
    assert set(found.report.weights.values()) <= places
    assert found.report.weights["layers.1.0.downsample.0.weight"].endswith("downsample_0.kernel")
    module, _ = torch_models.build("resnet")
    learned = {name for name, _ in module.named_parameters()}
    assert learned <= set(found.report.weights)


def test_an_operator_that_the_library_does_not_have_becomes_a_custom_layer_with_its_line(registry: Registry) -> None:
    class Rare(torch.nn.Module):
        def forward(self, x):
            return torch.special.bessel_j0(x) + 1

    report = import_module(Rare(), [torch.rand(1, 3, 8, 8)], registry).verified(registry).report
    (outcome,) = [item for item in report.outcomes if item.outcome is Outcome.OPAQUE]
    assert "test_torch_import.py" in outcome.reason
    assert "bessel_j0(x)" in outcome.reason
    assert report.agrees
    assert report.cases


RANDOM: dict[str, Callable[[], torch.Tensor]] = {
    "rand": lambda: torch.rand(8),
    "randn": lambda: torch.randn(8),
    "randint": lambda: torch.randint(0, 9, (8,)),
    "randperm": lambda: torch.randperm(8),
    "bernoulli": lambda: torch.bernoulli(torch.full((8,), 0.5)),
    "normal": lambda: torch.normal(torch.zeros(8), torch.ones(8)),
    "multinomial": lambda: torch.multinomial(torch.ones(9), 8),
    "rand_like": lambda: torch.rand_like(torch.zeros(8)),
    "randn_like": lambda: torch.randn_like(torch.zeros(8)),
}


class Draws(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.draw = RANDOM[name]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.draw()


@pytest.mark.parametrize("name", RANDOM)
def test_numbers_that_forward_draws_are_never_a_constant(name: str, registry: Registry) -> None:
    """The draw is a custom layer, which the report names with its line, and the sum reads it."""
    found = import_module(Draws(name), [torch.rand(1, 3, 8, 8)], registry)
    (outcome,) = [item for item in found.report.outcomes if item.outcome is Outcome.OPAQUE]
    assert name in outcome.reason
    assert "constant" not in {layer.type for layer in found.graph}


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(12, 6), nn.Linear(6, 12, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(tokens))


def test_a_tensor_that_layers_of_different_types_share_is_copied_and_named(registry: Registry) -> None:
    report = import_module(Tied(), [torch.zeros(1, 5, dtype=torch.int64)], registry).verified(registry).report
    assert report.agrees
    (warning,) = report.warnings
    assert "for embed.table, head.kernel; the document has copies" in warning
    assert "head.kernel" in warning


class WithoutState(nn.Module):
    """Adds a ramp and multiplies by weights; the state dict has the weights only."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.rand(4, 1, 1))
        self.register_buffer("ramp", torch.arange(6.0).reshape(1, 6), persistent=False)

    def forward(self, x):
        return (x + self.ramp) * self.gain


def test_buffers_that_the_state_dict_lacks_are_imported(registry: Registry) -> None:
    report = import_module(WithoutState(), [torch.rand(1, 4, 5, 6)], registry).verified(registry).report
    assert report.opaque == 0
    assert report.agrees


class WritesToItsInput(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x *= 255
        return x + 1


def test_a_module_that_writes_to_its_input_is_compared_with_what_it_was_given(registry: Registry) -> None:
    report = import_module(WritesToItsInput(), [torch.rand(1, 3, 8, 8)], registry).verified(registry).report
    assert report.warnings == ()
    assert report.max_rel_difference is not None
    assert report.max_rel_difference <= 1e-5


class CallsItsPartTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix, self.out = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.out(self.mix(self.mix(x).relu()))


def test_equal_modules_with_weights_of_their_own_do_not_share_those_of_their_parts(registry: Registry) -> None:
    module = nn.Sequential(CallsItsPartTwice(), CallsItsPartTwice())
    found = import_module(module, [torch.rand(1, 4, 6, 6)], registry).verified(registry)
    assert found.report.max_rel_difference is not None
    assert found.report.max_rel_difference <= 1e-5
    assert len(found.report.warnings) == 4, "the kernels and biases of two parts are copied"


class WritesThroughViews(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        y.transpose(1, 2).mul_(2)
        y.permute(2, 0, 1)[0].add_(3)
        return y


def test_writes_through_transposed_views_change_the_tensor(registry: Registry) -> None:
    found = import_module(WritesThroughViews(), [torch.rand(1, 4, 5)], registry).verified(registry)
    assert found.report.opaque == 0
    assert found.report.max_abs_difference == 0


class Returns(nn.Module):
    def __init__(self, keys: tuple[str, ...] | None) -> None:
        super().__init__()
        self.keys = keys

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...] | dict[str, torch.Tensor]:
        results = (x + 1, x * 2)
        return results if self.keys is None else dict(zip(self.keys, results, strict=False))


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        (None, ["y1", "y2"]),
        (("mask", "depth"), ["mask", "depth"]),
        (("mask", "a,b"), ["y1", "y2"]),  # a comma separates inputs in a document
        (("mask",), ["y"]),
    ],
)
def test_outputs_have_the_keys_of_a_dictionary_if_layers_can(
    keys: tuple[str, ...] | None, names: list[str], registry: Registry
) -> None:
    found = import_module(Returns(keys), [torch.rand(1, 4)], registry).verified(registry)
    assert [layer.name for layer in found.graph if layer.type == "output"] == names
    assert found.report.agrees


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8, torch.bool, torch.float16])
def test_inputs_keep_their_element_type(dtype: torch.dtype, registry: Registry) -> None:
    class Converts(nn.Module):
        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return image.float() * 2

    found = import_module(Converts(), [torch.ones(1, 3, 6, 8).to(dtype)], registry).verified(registry)
    layer = found.graph["image"]
    if dtype is torch.float32:
        assert (layer.type, layer.params["dims"]) == ("input", "8x6x3")
    else:
        assert (layer.type, layer.params["dtype"]) == ("tensor_input", str(dtype).removeprefix("torch."))
    assert found.report.agrees


class Attends(nn.Module):
    def __init__(self, *, first: bool) -> None:
        super().__init__()
        function = "gelu" if first else "relu"
        self.block = nn.TransformerEncoderLayer(8, 2, 12, 0.2, function, batch_first=True, norm_first=first)
        self.own = nn.MultiheadAttention(8, 4, batch_first=True)
        self.cross = nn.MultiheadAttention(8, 2, bias=False, batch_first=True)

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        x = self.block(x)
        x = x + self.own(x, x, x)[0]
        return self.cross(x, memory, memory, need_weights=False)[0]


@pytest.mark.parametrize("first", [False, True])
def test_attention_modules_of_torch_are_one_layer(first: bool, registry: Registry) -> None:
    module = Attends(first=first)
    found = import_module(module, [torch.rand(1, 5, 8), torch.rand(1, 7, 8)], registry).verified(registry)
    kinds = {layer.name: layer.type for layer in found.graph if "attention" in layer.type or "encoder" in layer.type}
    assert kinds == {
        "block": "transformer_encoder_layer",
        "own": "multi_head_attention",
        "cross": "multi_head_attention",
    }
    params = found.graph["block"].params
    assert (params["heads"], params["hidden"], params["dropout"]) == ("2", "12", "0.2")
    assert (params["norm_first"], params["activation_function"]) == (("true", "gelu") if first else ("false", "relu"))
    assert [str(source) for source in found.graph["cross"].inputs][1:] == ["memory"]
    assert found.report.max_rel_difference is not None
    assert found.report.max_rel_difference <= 1e-5
    assert found.report.weights["block.self_attn.in_proj_weight"] == "block.in_proj_weight"


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
        self.register_buffer("mask", torch.triu(torch.full((5, 5), -torch.inf), 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(x, self.mask)


def test_a_masked_attention_module_is_imported_by_its_parts(registry: Registry) -> None:
    found = import_module(Masked(), [torch.rand(1, 5, 8)], registry).verified(registry)
    assert found.report.max_rel_difference is not None, found.report.not_compared_because
    assert found.report.max_rel_difference <= 1e-5
    assert not any(layer.type == "transformer_encoder_layer" for layer in found.graph)


def _unequal(layer: nn.TransformerEncoderLayer) -> nn.Module:
    layer.dropout1.p = 0.3
    return layer


def _other_epsilon(layer: nn.TransformerEncoderLayer) -> nn.Module:
    layer.norm2.eps = 0.1
    return layer


BLOCK = {"d_model": 8, "nhead": 2, "dim_feedforward": 6}
USUAL = {"heads": "2", "hidden": "6", "activation_function": "relu", "norm_first": "false"}
BLOCKS: dict[str, tuple[Any, dict[str, str] | None]] = {
    "the whole module": (lambda: nn.TransformerEncoderLayer(**BLOCK, batch_first=True), USUAL | {"dropout": "0.1"}),
    "without dropout, of another epsilon": (
        lambda: nn.TransformerEncoderLayer(**BLOCK, dropout=0.0, batch_first=True, layer_norm_eps=0.01),
        USUAL | {"dropout": "0.0", "epsilon": "0.01"},
    ),
    "several kinds of dropout": (
        lambda: _unequal(nn.TransformerEncoderLayer(**BLOCK, batch_first=True)), USUAL | {"dropout": "0.0"}),
    "two kinds of normalization": (
        lambda: _other_epsilon(nn.TransformerEncoderLayer(**BLOCK, batch_first=True)), None),
    "the sequence first": (lambda: nn.TransformerEncoderLayer(**BLOCK), None),
    "without biases": (lambda: nn.TransformerEncoderLayer(**BLOCK, batch_first=True, bias=False), None),
}  # fmt: skip


@pytest.mark.parametrize("name", BLOCKS)
def test_only_blocks_that_compute_what_the_layer_does_become_one(name: str, registry: Registry) -> None:
    torch.manual_seed(0)
    make, expected = BLOCKS[name]
    module = make() if name == "the whole module" else nn.Sequential(make())
    found = import_module(module, [torch.rand(3, 5, 8)], registry).verified(registry)
    blocks = [layer for layer in found.graph if layer.type == "transformer_encoder_layer"]
    if expected is None:
        assert not blocks
    else:
        (block,) = blocks
        operator = registry.read(block).operator
        assert operator is not None
        assert operator.texts() | expected == operator.texts()
    assert found.report.max_rel_difference is not None, found.report.not_compared_because
    assert found.report.max_rel_difference <= 1e-5


def cli(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*module_command("app.cli.main", "import", *arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


BAD = """
import sys, time, torch
from torch import nn
class Raises(nn.Module):
    def forward(self, x):
        return x.reshape(7, -1)
class Endless(nn.Module):
    def forward(self, x):
        while True:
            time.sleep(0.1)
class Prints(nn.Module):
    def forward(self, x):
        print("hello from forward")
        return x + 1
class Gpu(nn.Module):
    def forward(self, x):
        return x.to("cuda")
class Trains(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))
    def forward(self, x):
        with torch.no_grad():
            self.gain += 1
        return x * self.gain
class Depends(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1
class Exits(nn.Module):
    def forward(self, x):
        import os
        os._exit(3)
class Large(nn.Module):
    def forward(self, x):
        return torch.ones(2**42).sum() + x
class TakesTwo(nn.Module):
    def forward(self, x, noise):
        return x + noise
def number():
    return 3
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Raises", ["bad.py:6: return x.reshape(7, -1)", "shape '[7, -1]' is invalid"]),
        ("Endless", ["longer than 5 s", "--timeout"]),
        ("TakesTwo", ["missing 1 required positional argument: 'noise'", "each argument of forward"]),
        ("number", ["is of type int, not torch.nn.Module"]),
        ("missing", ["has no attribute 'missing'"]),
    ],
)
def test_modules_that_cannot_be_imported_are_refused_with_a_reason_and_nothing_is_written(
    name: str, said: list[str], tmp_path: Path
) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    limit = "5" if name == "Endless" else "60"
    done = cli(
        tmp_path, "pytorch", f"bad.py:{name}", "--input", "1x3x8x8", "-o", "y.xml", "--trust", "--timeout", limit
    )
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    text = " ".join(done.stderr.split())
    for words in said:
        assert words in text
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".xml"] == []


def test_what_depends_on_values_is_imported_in_part_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    done = cli(tmp_path, "pytorch", "bad.py:Depends", "--input", "1x3x8x8", "-o", "y.xml", "--trust")
    assert "bad.py:28: if x.sum() > 0" in " ".join(done.stdout.split())
    assert "not proven for other inputs" in done.stdout
    assert (tmp_path / "y.xml").is_file()


class Untraceable(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("no trace")


def test_a_module_that_cannot_be_traced_is_named_with_its_line() -> None:
    module = Untraceable()
    with pytest.raises(ValueError, match="no trace") as caught:
        module(torch.zeros(1))
    (finding,) = _refused(caught.value, module).diagnostics
    assert finding.code == "torch-trace"
    assert finding.message.startswith("Untraceable cannot be traced: ValueError: no trace (")
    assert 'raise ValueError("no trace")' in finding.message


class Mismatched(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scaled(x)

    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.zeros(5)


@pytest.mark.parametrize(
    ("module", "inputs", "place"),
    [
        (Mismatched(), 1, r" \(test_torch_import.py:\d+: return x \* torch.zeros\(5\)\)"),
        (Mismatched(), 2, "^$"),  # torch refuses the call: no line of the user is involved
    ],
    ids=["in the code", "before it"],
)
def test_a_refused_trace_names_the_last_line_of_the_users_code_if_there_is_one(
    module: nn.Module, inputs: int, place: str, registry: Registry
) -> None:
    with pytest.raises(DiagnosticError) as caught:
        import_module(module, [torch.rand(1, 3, 4, 4)] * inputs, registry)
    (finding,) = caught.value.diagnostics
    assert re.findall(r" \(\w+\.py:.*", finding.message) == re.findall(place, finding.message)[:1]
    assert (inputs == 1) == ("test_torch_import.py" in finding.message)


def test_no_code_runs_without_consent(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("open('ran', 'w').close()")
    done = cli(tmp_path, "pytorch", "bad.py:Raises", "--input", "1x3x8x8", "-o", "y.xml")
    assert done.returncode == 1
    assert "--trust" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_the_command_line_imports_a_module_with_its_state_dict(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "models.py").write_text(Path(torch_models.__file__).read_text())
    module, _ = torch_models.build("unet", seed=7)
    torch.save(module.state_dict(), tmp_path / "state.pth")
    options = ["--input", "1x3x32x32", "--weights", "state.pth", "-o", "y.xml", "--output-weights", "w"]
    done = cli(tmp_path, "pytorch", "models:UNet", *options, "--report", "r.json", "--trust")
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["opaque"] == 0
    assert report["max_rel_difference"] <= 1e-5
    graph = read_document(tmp_path / "y.xml").graph
    assert graph is not None
    assert {layer.name for layer in graph if layer.type in ("input", "output")} == {"image", "y"}
    assert list((tmp_path / "w").iterdir())
    printed = cli(tmp_path, "pytorch", "bad.py:Prints", "--input", "1x3x8x8", "-o", "p.xml", "--trust")
    assert printed.returncode == 0
    assert "hello from forward" not in printed.stdout


def test_an_exported_program_is_imported(tmp_path: Path) -> None:
    module, inputs = torch_models.build("mobilenet")
    torch.export.save(torch.export.export(module, inputs, strict=False), tmp_path / "m.pt2")
    done = cli(tmp_path, "m.pt2", "-o", "y.xml", "--output-weights", "w", "--report", "r.json", "--trust")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "r.json").read_text())["max_rel_difference"] <= 1e-5


def test_importing_the_program_does_not_import_torch() -> None:
    code = "import sys, designer.importers.pytorch.importing, app.import_process; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[2]).returncode == 0


def test_a_saved_program_names_its_document_and_its_file(registry: Registry, tmp_path: Path) -> None:
    program = torch.export.export(torch.nn.Sequential(torch.nn.ReLU()), (torch.rand(1, 3, 4, 4),), strict=False)
    torch.export.save(program, tmp_path / "net.v2.pt2")
    found = import_saved_program(tmp_path / "net.v2.pt2", registry)
    assert (found.graph.name, found.report.source) == ("net.v2", "net.v2.pt2")
