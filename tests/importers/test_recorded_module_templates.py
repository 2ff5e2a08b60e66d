"""The templates of networks whose modules are equal, share weights, or only look alike, as recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from recorded import check_recorded

from designer.files.weights import WeightKey
from designer.graph.model import ActivationSpec, Layer, Source
from designer.importers import templates
from designer.importers.report import NodeOutcome, Outcome
from designer.importers.templates import (
    ModuleClass,
    Scope,
    Templated,
    Tensors,
    moved_key,
    moved_outcome,
    with_templates,
)


@dataclass
class Net:
    """A network that is built line by line: `name = kind(inputs)` of a module."""

    layers: dict[str, Layer] = field(default_factory=dict)
    scopes: dict[str, Scope] = field(default_factory=dict)
    tensors: dict[str, Tensors] = field(default_factory=dict)
    classes: dict[Scope, ModuleClass] = field(default_factory=dict)

    def add(
        self,
        scope: str,
        name: str,
        kind: str,
        *inputs: str,
        weights: str = "",
        size: int = 3,
        activation: str = "",
        **params: str,
    ) -> Net:
        spec = ActivationSpec(activation, {}) if activation else None
        sources = tuple(Source.parse(text) if text else None for text in inputs)
        self.layers[name] = Layer(name, kind, inputs=sources, params=params, activation=spec)
        self.scopes[name] = tuple(scope.split("/")) if scope else ()
        if weights:
            self.tensors[name] = Tensors((("kernel", (size, size)),), (f"{weights}.weight",))
        return self

    def block(
        self, scope: str, start: str, read: str, weights: str = "", size: int = 3, activation: str = "relu"
    ) -> Net:
        """Three layers in a row, the last one added to what is read."""
        weights = weights or scope.replace("/", ".")
        self.add(scope, f"{start}_conv1", "convolution", read, weights=f"{weights}.conv1", size=size)
        self.add(
            scope, f"{start}_conv2", "convolution", f"{start}_conv1", weights=f"{weights}.conv2", activation=activation
        )
        return self.add(scope, f"{start}_add", "element_wise", f"{start}_conv2", read)

    def made(self) -> Templated:
        return with_templates(self.layers, self.scopes, self.tensors, self.classes)


def begun() -> Net:
    return Net().add("", "x", "input")


def equal_blocks() -> Net:
    net = begun().block("body.0", "body_0", "x").block("body.1", "body_1", "body_0_add")
    return net.block("tail", "tail", "body_1_add").add("", "y", "output", "tail_add")


def other_shapes() -> Net:
    net = begun().block("a", "a", "x").block("b", "b", "a_add", size=5)
    return net.block("c", "c", "b_add", activation="silu").add("", "y", "output", "c_add")


def nested() -> Net:
    net, read = begun(), "x"
    for stage in ("stage.0", "stage.1"):
        for block in ("blocks.0", "blocks.1"):
            start = f"{stage}_{block}".replace(".", "_")
            net.block(f"{stage}/{block}", start, read)
            read = f"{start}_add"
        net.add(stage, f"{stage}_down".replace(".", "_"), "pooling", read)
        read = f"{stage}_down".replace(".", "_")
    return net.add("", "y", "output", read)


def called_twice() -> Net:
    net = begun().block("shared", "shared", "x", "shared").block("shared@1", "shared_1", "shared_add", "shared")
    return net.block("own", "own", "shared_1_add").add("", "y", "output", "own_add")


def called_twice_inside() -> Net:
    net, read = begun(), "x"
    for stage in ("one", "two"):
        for call in ("part", "part@1"):
            start = f"{stage}_{call}".replace("@", "_")
            net.block(f"{stage}/{call}", start, read, f"{stage}.part")
            read = f"{start}_add"
    return net.add("", "y", "output", read)


def single_layers() -> Net:
    net = (
        begun()
        .add("", "conv", "convolution", "x", weights="conv")
        .add("", "again", "convolution", "conv", weights="conv")
    )
    net.add("head", "head_conv", "convolution", "again", weights="conv").add(
        "", "other", "convolution", "head_conv", weights="z"
    )
    return net.add("", "y", "output", "other")


def classes(arguments: Sequence[str], output: str = "result") -> Net:
    net = begun().add("", "left", "unary", "x").add("", "right", "unary", "x")
    net.add("join", "join_a", "unary", "right").add("join", "join_b", "element_wise", "join_a", "left")
    net.classes[("join",)] = ModuleClass("Joined", ("first", "second"), output, tuple(arguments))
    return net.add("", "y", "output", "join_b")


def small_class() -> Net:
    """A class in a network with fewer layers than two templates have."""
    net = begun().add("part", "part_a", "unary", "x").add("part", "part_b", "unary", "part_a")
    net.add("part", "part_c", "element_wise", "part_b", "x").add("", "y", "output", "part_c")
    net.classes[("part",)] = ModuleClass("Part", ("x",), "y")
    return net


def two_results() -> Net:
    net = begun()
    for name, read in (("a", "x"), ("b", "a_2")):
        net.add(name, f"{name}_1", "split", read).add(name, f"{name}_2", "unary", f"{name}_1:y1")
        net.add(name, f"{name}_3", "unary", f"{name}_1").add(
            "", f"{name}_sum", "element_wise", f"{name}_1:y1", f"{name}_3"
        )
    return net.add("", "y", "output", "a_sum").add("", "z", "output", "b_sum").add("", "w", "output", "b_2")


def outside_between() -> Net:
    net = begun()
    for name, read in (("a", "x"), ("b", "a_3")):
        net.add(name, f"{name}_1", "unary", read).add("", f"{name}_o", "unary", f"{name}_1")
        net.add(name, f"{name}_2", "unary", f"{name}_o").add(name, f"{name}_3", "unary", f"{name}_2")
    return net.add("", "y", "output", "b_3")


def later_read() -> Net:
    """What the second block reads is made after its first layer, without depending on it."""
    net = begun().block("a", "a", "x").add("b", "b_conv1", "convolution", "a_add", weights="b.conv1")
    net.add("", "late", "unary", "x").add(
        "b", "b_conv2", "convolution", "b_conv1", weights="b.conv2", activation="relu"
    )
    return net.add("b", "b_add", "element_wise", "b_conv2", "late").add("", "y", "output", "b_add")


def small_and_unread() -> Net:
    net = begun()
    for name in ("a", "b"):
        net.add(name, f"{name}_1", "unary", "x").add(name, f"{name}_2", "unary", f"{name}_1")
        net.add("", f"{name}_y", "output", f"{name}_2")
    for name in ("c", "d"):
        for number in range(3):
            net.add(name, f"{name}_{number}", "unary", "x")
    for name in ("e", "f"):
        net.add(name, f"{name}_in", "input").add(name, f"{name}_1", "unary", f"{name}_in")
        net.add(name, f"{name}_2", "unary", f"{name}_1").add("", f"{name}_y", "output", f"{name}_2")
    return net


def taken_names() -> Net:
    net = begun().add("", "part", "unary", "x").add("", "m_0.inner", "unary", "part")
    for number, read in ((0, "m_0.inner"), (1, "m.0_add")):
        net.block(f"m.{number}", f"m.{number}", read, "m")
    net.block("part/1", "k", "m.1_add").block("part/2", "l", "k_add")
    return net.add("", "y", "output", "l_add")


def other_order() -> Net:
    net = begun().add("", "side", "unary", "x")
    for name, one, other in (("a", "x", "side"), ("b", "side", "a_3"), ("c", "b_3", "b_3")):
        net.add(name, f"{name}_1", "unary", one).add(name, f"{name}_2", "unary", other)
        net.add(name, f"{name}_3", "element_wise", f"{name}_1", f"{name}_2", "")
    return net.add("", "y", "output", "c_3")


def layers_with_other_names() -> Net:
    net, read = begun(), "x"
    for number in range(2):
        for part in range(3):
            name = f"node_{number}{part}"
            net.add(f"seq.{number}", name, "unary", read, function="abs")
            read = name
    return net.add("", "y", "output", read)


def alike() -> Net:
    """Pairs of modules that differ in one respect only, and one pair that differs in the number of a call only."""
    net = begun()
    for name, functions in (("p1", "abs"), ("p2", "neg")):
        net.add(name, f"{name}_a", "unary", "x", function=functions).add(name, f"{name}_b", "unary", f"{name}_a")
        net.add(name, f"{name}_c", "unary", f"{name}_b").add("", f"{name}_y", "output", f"{name}_c")
    for name, slope in (("s1", "0.1"), ("s2", "0.2")):
        net.add(name, f"{name}_a", "unary", "x").add(name, f"{name}_b", "unary", f"{name}_a", "")
        net.layers[f"{name}_a"] = replace(
            net.layers[f"{name}_a"], activation=ActivationSpec("leaky_relu", {"slope": slope})
        )
        net.add(name, f"{name}_c", "unary", f"{name}_b").add("", f"{name}_y", "output", f"{name}_c")
    for name, inner in (("i1", "left"), ("i2", "right")):
        net.add(name, f"{name}_a", "exp", "x").add(f"{name}/{inner}", f"{name}_b", "unary", f"{name}_a")
        net.add(name, f"{name}_c", "unary", f"{name}_b").add("", f"{name}_y", "output", f"{name}_c")
    for name, inner in (("n1", "act"), ("n2", "act@1")):
        net.add(name, f"{name}_a", "log", "x").add(f"{name}/{inner}", f"{name}_b", "unary", f"{name}_a")
        net.add(name, f"{name}_c", "unary", f"{name}_b").add("", f"{name}_y", "output", f"{name}_c")
    return net


def titles() -> Net:
    """Names of templates: without numbers, and without the number of a call."""
    net, read = begun(), "x"
    for scope, kind in (
        ("layer12", "abs"),
        ("layer13", "abs"),
        ("up@1@2", "neg"),
        ("up@1@3", "neg"),
        ("0", "exp"),
        ("1", "exp"),
    ):
        start = "m_" + "".join(letter if letter.isalnum() else "_" for letter in scope)
        for number in range(3):
            net.add(scope, f"{start}_{number}", "unary", read, function=kind)
            read = f"{start}_{number}"
    for scope in ("a/inner_conv", "b/inner_conv"):
        for number in range(3):
            name = f"{scope[0]}_inner_conv_{number}"
            net.add(scope, name, "sqrt", read)
            read = name
        net.add(scope[0], f"{scope[0]}_tail", scope[0], read)
        read = f"{scope[0]}_tail"
    return net.add("", "y", "output", read)


def tensor_inputs() -> Net:
    net = begun()
    for kind in ("tensor_input", "output"):
        for number in range(2):
            name = f"{kind}_{number}"
            net.add(name, f"{name}_a", "unary", "x").add(name, f"{name}_b", kind, *(["x"] if kind == "output" else []))
            net.add(name, f"{name}_c", "unary", f"{name}_a").add(name, f"{name}_d", "unary", f"{name}_c")
            net.add("", f"{name}_y", "output", f"{name}_d").add("", f"{name}_z", "output", f"{name}_b")
    return net


def class_with_results() -> Net:
    """The name of the output of a class is that of a single result only; a class with one input has it by any variable."""
    net = two_results()
    net.classes[("a",)] = ModuleClass("Pair", ("image",), "result", ("other",))
    net.classes[("b",)] = ModuleClass("Pair", ("image",), "result", ("other",))
    net.add("lone", "lone_a", "abs", "b_2").add("", "end", "output", "lone_a")
    net.classes[("lone",)] = ModuleClass("Lone", ("image",), "result", ("other",))
    return net


def class_of_parts(side: str = "side.0") -> Net:
    """The variables of a call are named after layers with several outputs, modules, and modules inside of the one around."""
    net = begun().add("net", "net_parts", "split", "x")
    for number in range(3):
        net.add(f"net/{side}", f"net_side_0_{number}", "unary", "x" if number == 0 else f"net_side_0_{number - 1}")
    net.add("net/join", "net_join_a", "unary", "net_parts:y1").add(
        "net/join", "net_join_b", "cat", "net_join_a", "net_side_0_2"
    )
    net.classes[("net", "join")] = ModuleClass("Joined", ("first", "second"), "", (side.partition("/")[0], "parts_y1"))
    return net.add("", "y", "output", "net_join_b")


NETWORKS = {
    "a class that is called with parts": class_of_parts,
    "a class that is called with the result of a module in a module": lambda: class_of_parts("side.0/deep"),
    "modules that are alike": alike,
    "names of templates": titles,
    "a class in a small network": small_class,
    "modules with an input or an output inside": tensor_inputs,
    "classes with several results": class_with_results,
    "equal blocks": equal_blocks,
    "blocks with other shapes and activations": other_shapes,
    "blocks in stages": nested,
    "a block that is called twice": called_twice,
    "blocks that are called twice in equal stages": called_twice_inside,
    "single layers that share weights": single_layers,
    "a class with its inputs in the order of the call": lambda: classes(("left", "right")),
    "a class with its inputs in the other order": lambda: classes(("right", "left")),
    "a class whose call has other variables": lambda: classes(("left", "x"), ""),
    "several results": two_results,
    "something outside lies between": outside_between,
    "something is read that is made later": later_read,
    "small ones, unread ones, and those with an input": small_and_unread,
    "names that are taken": taken_names,
    "inputs in another order": other_order,
    "layers that are not named after their module": layers_with_other_names,
}


def layer_text(layer: Layer) -> str:
    params = f" {dict(sorted(layer.params.items()))}" if layer.params else ""
    spec = f" + {layer.activation.type}" if layer.activation is not None else ""
    return f"{layer.name} = {layer.type}({', '.join(str(s) if s is not None else '-' for s in layer.inputs)}){spec}{params}"


def lines_of(found: Templated) -> Iterator[str]:
    for layer in found.layers.values():
        yield f"  {layer_text(layer)}  # {'/'.join(found.scopes.get(layer.name, ()))}"
    for template in found.templates:
        yield f"  template {template.name}, {found.counts[template.name]} instances"
        yield from (f"    {layer_text(layer)}" for layer in template.layers)
    for old, name in found.moved.items():
        yield f"  {old} -> {name}, weights of {found.owners[old]}"
    yield from (f"  {old} -> {new}" for old, new in found.renamed.items())


def test_templates_of_networks() -> None:
    lines: list[str] = []
    for name, build in NETWORKS.items():
        lines += [name, *lines_of(build().made())]
    check_recorded("module_templates.txt", "\n".join([*lines, ""]))


def test_weights_and_outcomes_follow_their_layers() -> None:
    owners: Mapping[str, str] = {"a": "block.conv"}
    assert moved_key(WeightKey("a", "kernel"), owners) == WeightKey("block.conv", "kernel")
    assert moved_key(WeightKey("b", "kernel"), owners) == WeightKey("b", "kernel")
    outcome = NodeOutcome("n", "Conv", Outcome.KNOWN, ("a", "b"))
    assert moved_outcome(outcome, {"a": "one.conv"}).layers == ("one.conv", "b")
    assert moved_outcome(outcome, {"a": "one.conv"}).node == "n"
    assert moved_outcome(outcome, {"c": "one.conv"}) is outcome


@pytest.mark.parametrize(
    ("name", "scope", "short"),
    [
        ("net_body_conv", ("net", "body"), "conv"),
        ("body_conv", ("net", "body"), "conv"),
        ("net_conv", ("net", "body"), "net_conv"),
        ("body_body_conv", ("net", "body"), "body_conv"),
        ("body_", ("net", "body"), "body_"),
        ("bodyconv", ("net", "body"), "bodyconv"),
        ("conv", (), "conv"),
    ],
)
def test_names_in_a_template_are_without_the_path_of_the_module(name, scope, short):
    """Of the path, any part up to its end can be before the name: exporters leave out outer modules."""
    assert templates._short(name, scope) == short
