"""Random trees of modules, equal ones and shared ones among them: the document that the builder makes, as recorded.

Inlined, the document has the layers of the original under the names that the builder maps them to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import numpy as np
from document_texts import layer_text
from recorded import check_recorded

from designer.files.weights import required_weights
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.graph.types import Size2D, Size3D
from designer.importers.builder import GraphBuilder
from designer.importers.templates import ModuleClass, Scope, moved_key
from designer.operators.inlining import inline
from designer.operators.registry import Registry


@dataclass
class Modules:
    """Adds layers of modules: the parts of a module of a kind are the same each time, its weights are those of `owner`."""

    builder: GraphBuilder
    draw: Random
    calls: dict[str, int] = field(default_factory=dict)

    def conv(self, x: Source, scope: Scope, name: str, owner: str, features: int = 4, kernel: int = 3) -> Source:
        channels = self.builder.types[x].dim(1)
        values = np.full((features, channels, kernel, kernel), len(self.builder.layers) / 8, np.float32)
        (made,) = self.builder.add(
            "convolution", [x], {"features": features, "kernel": Size2D(kernel, kernel), "apply_bias": False}, name=name,
            weights={"kernel": values}, origins=[f"{owner}.{name}.weight"] if owner else [""], scope=scope,
        )  # fmt: skip
        if self.draw.random() < 0.2:
            self.builder.attach(made, ("relu", {}), {})
        return made

    def plain(self, kind: str, scope: Scope, name: str, *inputs: Source) -> Source:
        params = {"function": "abs"} if kind == "unary" else {}
        return self.builder.add(kind, inputs, params, name=name, scope=scope)[0]

    def block(self, x: Source, scope: Scope, owner: str) -> Source:
        seed = self.draw.getstate()
        self.draw.seed(1)  # blocks are equal
        one = self.conv(x, scope, "conv1", owner)
        two = self.plain("unary", scope, "act", one)
        made = self.plain("element_wise", scope, "add", self.conv(two, scope, "conv2", owner), one)
        self.draw.setstate(seed)
        return made

    def chain(self, x: Source, scope: Scope, owner: str) -> Source:
        for number in range(2):
            x = self.block(x, (*scope, f"b{number}"), f"{owner}.b{number}")
        return self.plain("unary", scope, "end", x)

    def two_inputs(self, x: Source, other: Source, scope: Scope, owner: str) -> Source:
        joined = self.plain("concatenation", scope, "cat", x, other)
        return self.plain("unary", scope, "act", self.conv(joined, scope, "fuse", owner))

    def odd(self, x: Source, scope: Scope, owner: str) -> Source:
        made = x
        for number in range(self.draw.randint(1, 3)):
            made = self.conv(made, scope, f"c{number}", owner, kernel=self.draw.choice([1, 3]))
        return made


def built(seed: int, registry: Registry) -> GraphBuilder:
    draw = Random(seed)
    builder = GraphBuilder(registry, f"net{seed}")
    builder.reserve(["image", "result"])
    (image,) = builder.add("input", (), {"dims": Size3D(16, 12, 3)}, name="image", exact=True)
    modules = Modules(builder, draw)
    x = modules.conv(image, ("stem",), "conv", "stem")
    known = [x]
    for number in range(draw.randint(2, 6)):
        place = draw.choice(
            [
                (f"m{number}",),
                ("stage", f"m{number}"),
                ("stage", "deep", f"m{number}"),
                (f"m{draw.randint(0, number)}@{number}",),
            ]
        )
        owner = draw.choice([".".join(place), ".".join(place), "shared", ""])
        other = draw.choice(known)
        kinds: tuple[Callable[[], Source], ...] = (
            lambda x=x, place=place, owner=owner: modules.block(x, place, owner),
            lambda x=x, place=place, owner=owner: modules.chain(x, place, owner or "c"),
            lambda x=x, place=place, owner=owner, other=other: modules.two_inputs(x, other, place, owner),
            lambda x=x, place=place, owner=owner: modules.odd(x, place, owner),
            lambda x=x, place=place, owner=owner: modules.conv(x, place, "one", "same"),
        )  # type: ignore[assignment]
        if draw.random() < 0.3:
            builder.classes[place] = ModuleClass(
                draw.choice(["Block", "Chain"]),
                draw.choice([(), ("inp",), ("p", "q")]),
                draw.choice(["", "res"]),
                draw.choice([(), ("a", "b")]),
            )
        x = draw.choice(kinds)()
        known.append(x)
        if draw.random() < 0.3:
            x = builder.add(
                "pooling", [x], {"size": Size2D(2, 2), "stride": Size2D(1, 1), "padding": Size2D(0, 0)}, name="pool"
            )[0]
            known = [x]
    builder.add("output", [x], {"analysis_view": "image"}, name="result", exact=True)
    return builder


def lines_of(seed: int, registry: Registry) -> list[str]:
    builder = built(seed, registry)
    original = dict(builder.layers)
    keys = list(builder.weights)
    graph, weights = builder.finish()
    lines = [f"=== {graph.name}"]
    lines += [f"  {layer_text(layer, registry)} at {layer.position}" for layer in graph]
    for template in graph.templates.values():
        lines.append(f"  template {template.name}")
        lines += [f"    {layer_text(layer, registry)} at {layer.position}" for layer in template.layers]
    lines += [f"  frame {frame.title} {frame.rect}" for frame in graph.frames.values()]
    lines.append(f"  {builder.repeats}")
    lines += [f"  {name} is {places}" for name, places in builder.tensors.items()]
    lines += [
        f"  {old} -> {new} with the weights of {builder.owners.get(old, '')}" for old, new in builder.moved.items()
    ]
    lines += [
        f"  weight {key.layer}.{key.tensor} {float(array.reshape(-1)[0]):.3f} {array.shape}"
        for key, array in sorted(weights.tensors.items())
    ]
    inference = Inference(graph, registry)
    assert not inference.diagnostics()
    needed = required_weights(inference)
    assert {key: weight.shape for key, weight in needed.items()} == {
        key: array.shape for key, array in weights.tensors.items()
    }
    flat = inline(graph, registry)
    for name, layer in original.items():
        found = flat[builder.moved.get(name, name)]
        assert (found.type, found.params, found.activation) == (layer.type, layer.params, layer.activation)
    assert {moved_key(key, builder.owners) for key in keys} == set(weights.tensors)
    return lines


def test_documents_of_random_modules(registry: Registry) -> None:
    lines = [line for seed in range(26) for line in lines_of(seed, registry)]
    check_recorded("imports/random_modules.txt", "\n".join([*lines, ""]))
