"""Where emulated number formats convert tensors, and how they round the weights of a module."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.registry import load
from designer.operators.torch_data import TorchMethod
from designer.operators.torch_program import Local, Program, TorchStep, build_program, locals_of
from designer.runtime.engines.rounded_torch import _round_weights, with_casts
from designer.runtime.number_formats import FORMATS

torch = pytest.importorskip("torch")


def layer(name: str, kind: str, *inputs: str, activation: ActivationSpec | None = None, **params: object) -> Layer:
    sources = tuple(map(Source.parse, inputs))
    return Layer(name, kind, inputs=sources, activation=activation, params={k: str(v) for k, v in params.items()})


LAYERS = [
    layer("image", "input", dims="4x4x3"),
    layer("a", "convolution", "image", activation=ActivationSpec("relu", {}), features=3),
    layer("b", "convolution", "a", activation=ActivationSpec("relu", {}), features=3),
    layer("c", "unary", "b", function="square"),
    layer("d", "element_wise", "a", "c", operation="add"),
    layer("e", "element_wise", "d", "b", operation="multiply"),
    layer("f", "unary", "e", function="square"),
]


def program(*wanted: str, feeds: tuple[str, ...] = ("image",)) -> Program:
    names = [each.name for each in LAYERS if each.name not in feeds]
    inference = Inference(Graph(LAYERS), load(entry_points=False))
    return build_program(inference, names, [Source(name) for name in feeds], [Source(name) for name in wanted])


def lines(made: Program) -> list[str]:
    """Each step with what it reads and releases; conversions have an arrow."""
    found = []
    for step in made.steps:
        arrow = "<-" if isinstance(step.value, TorchMethod) and step.value.method == "clone" else "="
        gone = f" (not {' '.join(sorted(step.release))})" if step.release else ""
        found.append(f"{step.layer}: {step.target} {arrow} {' '.join(dict.fromkeys(locals_of(step.value)))}{gone}")
    return [*found, " ".join(f"{source}={local}" for source, local in made.outputs.items())]


PLAIN = ["a: a = image (not image)", "b: b = a", "c: c = b", "d: d = a c", "e: e = d b (not b d)", "f: f = e (not e)"]


@pytest.mark.parametrize(
    ("formats", "expected"),
    [
        ("", [*PLAIN, "a=a c=c f=f"]),
        ("a:float32 f:float32", [*PLAIN, "a=a c=c f=f"]),
        ("b:float16", [
            PLAIN[0], "b: a_float16 <- a", "b: b = a_float16 (not a_float16)", *PLAIN[2:], "a=a c=c f=f",
        ]),
        ("b:float16 d:int8 e:bfloat16", [
            PLAIN[0], "b: a_float16 <- a", "b: b = a_float16 (not a_float16)", PLAIN[2], "d: a_int8 <- a", "d: c_int8 <- c",
            "d: d = a_int8 c_int8 (not a_int8 c_int8)", "d: d_int8 <- d (not d)", "e: d_bfloat16 <- d_int8 (not d_int8)",
            "e: b_bfloat16 <- b (not b)", "e: e = d_bfloat16 b_bfloat16 (not b_bfloat16 d_bfloat16)", PLAIN[5],
            "a=a c=c f=f",
        ]),
        ("a:int8", [
            "a: image_int8 <- image (not image)", "a: a = image_int8 (not image_int8)", "a: a_int8 <- a (not a)",
            "b: b = a_int8", "c: c = b", "d: d = a_int8 c", *PLAIN[4:], "a=a_int8 c=c f=f",
        ]),
        ("b:int8 c:int8", [
            PLAIN[0], "b: a_int8 <- a", "b: b = a_int8 (not a_int8)", "b: b_int8 <- b (not b)", "c: c = b_int8",
            "c: c_int8 <- c (not c)", "d: d = a c_int8", "e: e = d b_int8 (not b_int8 d)", PLAIN[5],
            "a=a c=c_int8 f=f",
        ]),
        ("a:int8 b:int4", [
            "a: image_int8 <- image (not image)", "a: a = image_int8 (not image_int8)", "a: a_int8 <- a (not a)",
            "b: a_int4 <- a_int8", "b: b = a_int4 (not a_int4)", "b: b_int4 <- b (not b)", "c: c = b_int4",
            "d: d = a_int8 c", "e: e = d b_int4 (not b_int4 d)", PLAIN[5], "a=a_int8 c=c f=f",
        ]),
        ("c:int8 e:int8", [
            *PLAIN[:2], "c: b_int8 <- b (not b)", "c: c = b_int8", "c: c_int8 <- c (not c)", "d: d = a c_int8",
            "e: d_int8 <- d (not d)", "e: e = d_int8 b_int8 (not b_int8 d_int8)", "e: e_int8 <- e (not e)",
            "f: f = e_int8 (not e_int8)", "a=a c=c_int8 f=f",
        ]),
        ("a:float16 b:float16 c:bfloat16", [
            "a: image_float16 <- image (not image)", "a: a = image_float16 (not image_float16)", "b: b = a",
            "c: b_bfloat16 <- b", "c: c = b_bfloat16 (not b_bfloat16)", *PLAIN[3:], "a=a c=c f=f",
        ]),
        ("a:float16 b:int8 d:bfloat16 e:float16 f:int8", [
            "a: image_float16 <- image (not image)", "a: a = image_float16 (not image_float16)", "b: a_int8 <- a",
            "b: b = a_int8 (not a_int8)", "b: b_int8 <- b (not b)", "c: c = b_int8", "d: a_bfloat16 <- a",
            "d: c_bfloat16 <- c", "d: d = a_bfloat16 c_bfloat16 (not a_bfloat16 c_bfloat16)", "e: d_float16 <- d (not d)",
            "e: b_float16 <- b_int8 (not b_int8)", "e: e = d_float16 b_float16 (not b_float16 d_float16)",
            "f: e_int8 <- e (not e)", "f: f = e_int8 (not e_int8)", "f: f_int8 <- f (not f)", "a=a c=c f=f_int8",
        ]),
    ],
)  # fmt: skip
def test_tensors_are_converted_where_layers_of_another_format_read_them(formats, expected):
    """Once for each format; and results of layers with integers where they leave the layer."""
    chosen = dict(each.split(":") for each in formats.split())
    made = with_casts(program("a", "c", "f"), lambda name: FORMATS[chosen.get(name, "float32")])
    assert lines(made) == expected


def test_values_inside_of_a_layer_stay_as_they_are():
    """Only what other layers or the user read is rounded to integers; names that are taken get a number."""

    def step(layer: str, target: str, *reads: str) -> TorchStep:
        first, *others = map(Local, reads)
        return TorchStep(layer, target, TorchMethod("add", first, tuple(others)))

    steps = [step("m", "m_0", "x"), step("m", "m", "m_0", "x"), step("n", "m_int8", "m", "x"), step("n", "n", "m_int8")]
    plain = replace(
        program("f"), inputs={Source("x"): "x"}, steps=tuple(steps), outputs={Source("n"): "n", Source("m"): "m"}
    )
    assert lines(with_casts(plain, lambda name: FORMATS["int8" if name == "m" else "float32"])) == [
        "m: x_int8 <- x", "m: m_0 = x_int8", "m: m = m_0 x_int8 (not m_0 x_int8)", "m: m_int8_2 <- m (not m)",
        "n: m_int8 = m_int8_2 x (not x)", "n: n = m_int8 (not m_int8)", "n=n m=m_int8_2",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "int8", "int3"])
def test_weights_are_rounded_for_each_output_channel(name):
    """Integers: not those of one dimension; nothing of another type than FP32. Another layer keeps its format."""
    from designer.runtime.rounding import rounded

    torch.manual_seed(3)
    module = torch.nn.Module()
    for key, child in {
        "conv": torch.nn.Conv2d(3, 4, 2), "up": torch.nn.ConvTranspose2d(3, 4, 2), "line": torch.nn.ConvTranspose1d(3, 4, 2),
        "cube": torch.nn.ConvTranspose3d(3, 4, 2), "dense": torch.nn.Linear(3, 5), "norm": torch.nn.BatchNorm2d(3),
        "two": torch.nn.ModuleDict({"inner": torch.nn.ConvTranspose2d(2, 3, 2)}), "other": torch.nn.Linear(3, 5),
    }.items():  # fmt: skip
        module.add_module(key, child)
    module.register_parameter("own", torch.nn.Parameter(torch.randn(3, 4)))
    module.register_buffer("table", torch.randn(3, 4))
    module.register_buffer("large", torch.randn(3, 4, dtype=torch.float64))
    before = {key: tensor.clone() for key, tensor in module.state_dict().items()}
    made: Any = SimpleNamespace(
        attributes=[SimpleNamespace(name=key.partition(".")[0], layer=key.split(".")[0]) for key in before]
    )
    own = FORMATS[name]
    _round_weights(module, made, lambda layer: FORMATS["float32"] if layer == "other" else own)
    after = module.state_dict()
    assert after.keys() == before.keys()
    for key, tensor in before.items():
        axis = 1 if key.split(".")[0] in ("up", "line", "cube", "two") else 0
        stays = key.startswith("other") or tensor.dtype != torch.float32 or (own.is_integer and tensor.dim() < 2)
        expected = tensor if stays else rounded(tensor, own, axis=axis) if own.is_integer else rounded(tensor, own)
        assert torch.equal(after[key], expected), key
        assert torch.equal(expected, tensor) == (stays or name == "float32" or tensor.abs().max() in (0, 1)), key
