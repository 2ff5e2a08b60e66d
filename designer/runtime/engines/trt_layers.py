"""The layers of a TensorRT engine, from the text of its inspector, which the builder logs too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from designer.runtime.engines.fusion import layer_of

_LAYER = re.compile(
    r"Name: (?P<name>.*?), LayerType: (?P<kind>\w+), Inputs: \[(?P<inputs>.*)\], Outputs: \[(?P<outputs>.*), "
    r"Metadata: (?P<metadata>.*)"
)
_NODE = re.compile(r"\[ONNX Layer: (.*?)\](?:\x1f|$)")
_QUANTIZATION = re.compile(
    r"_((?:Deq|Q)uantizeLinear)(?:_\d+)?$"
)  # behind the name of a tensor, by onnxruntime.quantization
_TYPES = {"Float": "fp32", "Half": "fp16", "BFloat16": "bf16", "FP8": "fp8", "Int8": "int8", "Int32": "int32"}


@dataclass(frozen=True, slots=True)
class EngineLayer:
    """One layer of an engine: its precision, the layers of the network that it computes, and their ONNX nodes."""

    name: str
    kind: str
    precision: str
    layers: tuple[str, ...]  # none for conversions of formats
    nodes: tuple[str, ...]

    @property
    def operations(self) -> str:
        """The operators of the nodes: `Conv + Relu`."""
        found = (_QUANTIZATION.search(node) for node in self.nodes)
        names = (m[1] if m is not None else node.rpartition("/")[2] for m, node in zip(found, self.nodes, strict=True))
        return " + ".join(names)


Owner = Callable[[str], str]


def owner_of(node: str) -> str:
    """The layer of an ONNX node by its name; a node of quantization belongs to the layer of its tensor."""
    return layer_of(_QUANTIZATION.sub("", node))


def read_layers(messages: Iterable[str], owner: Owner = owner_of) -> tuple[EngineLayer, ...]:
    """The layers in the first message that lists them; none if there is no such message. `owner` has the layer of a node or ""."""
    for message in messages:
        if message.startswith("Layers:\n"):
            return tuple(_layers(message.partition("\n\n")[0], owner))
    return ()


def _layers(text: str, owner: Owner) -> Iterator[EngineLayer]:
    for line in text.splitlines()[1:]:
        found = _LAYER.match(line)
        types = dict.fromkeys(re.findall(r"Datatype: (\w+)", found["outputs"])) if found is not None else {}
        if found is None or not types:
            continue  # signals between streams compute nothing
        nodes = tuple(_NODE.findall(found["metadata"]))
        yield EngineLayer(
            found["name"],
            found["kind"],
            ", ".join(_TYPES.get(name, name.lower()) for name in types),
            tuple(dict.fromkeys(name for node in nodes if (name := owner(node)))),
            nodes,
        )
