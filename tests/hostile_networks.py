"""A network whose every string is an attack on whoever prints it, and the same network with harmless strings."""

from __future__ import annotations

from collections.abc import Callable

from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Frame, Layer, Source
from designer.graph.template import Template

# What a name may hold; a value may hold what XML can.
NAME = "; __import__(chr(111)+chr(115)) #<img src=canary><b>[red]{0}%s`$(x)|\u202e"
VALUE = f'"""\n\'\'\'\n=1+1\n\t"><script>alert(1)</script><img src="file://canary"/>]]>-->\\x1b[31m \x9b31m [/x] {NAME}'


def harmless(text: str) -> str:
    return text


def hostile(text: str) -> str:
    """A legal name that begins with `text`."""
    return text + NAME


def hostile_graph(name: Callable[[str], str] = hostile, value: str = VALUE) -> Graph:
    """A network that runs, trains and can be exported: templates with two outputs, shared weights, losses, a frame."""

    def source(layer: str, port: str = "") -> Source:
        return Source(name(layer), name(port) if port else "")

    def layer(text: str, kind: str, *inputs: Source, activation: str = "", **params: str) -> Layer:
        spec = ActivationSpec(activation, {"remark": value}) if activation else None
        return Layer(name(text), kind, (0, 0), inputs, {**params, "remark": value}, spec, {"remark": value})

    block = Template(
        name("block"),
        (
            layer("x", "template_input", index="0"),
            layer("part", "convolution", source("x"), features="4", kernel="3x3"),
            layer("main", "template_output", source("part"), index="0"),
            layer("side", "template_output", source("x"), index="1"),
        ),
        attributes={"remark": value},
        frames=(Frame(name("inner frame"), value, value, value),),
    )
    return Graph(
        [
            layer("image", "input", dims="8x8x3", label=value, label_path=value),
            layer("clean", "input", dims="8x8x3"),
            layer("conv", "convolution", source("image"), activation="prelu", features="4", kernel="3x3"),
            layer("one", "template", source("conv"), template=name("block")),
            layer("two", "template", source("one", "side"), template=name("block"), shared_weights="true"),
            layer("three", "template", source("two"), template=name("block"), shared_weights="true"),
            layer("last", "convolution", source("three", "side"), features="3", kernel="1x1"),
            layer("result", "output", source("last"), label_path=value),
            layer("other", "output", source("one", "side"), label_path=value),
            layer("loss", "l1_loss", source("last"), source("clean")),
            layer("loss two", "mse_loss", source("last"), source("clean")),
        ],
        name=value,
        user_version_tag=value,
        attributes={"remark": value},
        frames=[Frame(name("frame"), value, value, value, (-50, -50, 900, 500))],
        templates=[block],
    )
