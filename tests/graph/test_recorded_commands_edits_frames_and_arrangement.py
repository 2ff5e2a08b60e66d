"""Every command on one rich network as recorded: its title, the changed lines of the document, what listeners get, and each refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace

import pytest
from recorded import changes, check_recorded

from designer.files.document import write_document
from designer.graph import arrangement, commands, compare, frames, routes, size_padding, template_commands
from designer.graph.bypass import bypass
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import ChangeSet, Edit
from designer.graph.freezing import freeze
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.layout.coordinates import LayerBox
from designer.graph.model import ActivationSpec, Foreign, Frame, Layer, Source
from designer.graph.template import Template
from designer.graph.types import Size2D
from designer.operators.registry import load

Command = Callable[[Graph], Edit]
Inputs = Sequence[str | None]
BAD = "x\x01y"
LONG = "n" * 129


def layer(
    name: str, kind: str, place: tuple[int, int], *inputs: str | None, act: str = "", marks: str = "", **params: str
) -> Layer:
    """`marks` are attributes such as `lw:frozen=true`, separated by spaces."""
    sources = tuple(None if text is None else Source.parse(text) for text in inputs)
    spec = ActivationSpec(act, {"a": "1"}, {"note:x": "1"}) if act else None
    attributes = dict(mark.split("=", 1) for mark in marks.split())
    return Layer(name, kind, place, sources, params, spec, attributes)


def network() -> Graph:
    """Routes, collapsed frames in frames, a template used twice and inside another, and marks of every kind."""
    block = Template(
        "block",
        (
            layer("in", "template_input", (0, 0), index="0"),
            layer("side", "template_input", (0, 160), index="1", act="relu"),
            layer("conv", "convolution", (160, 32), "in", marks="lw:route=0/in/80,16 lw:folded=f", features="4"),
            layer("sum", "element_wise", (320, 0), "conv", "side"),
            layer("out", "template_output", (480, 0), "sum", index="0"),
            layer("rest", "template_output", (480, 160), "conv", index="1"),
        ),
        (Foreign("<!-- note -->"),),
        {"note:y": "1"},
        (Frame("f", "Inner", "why", "#123", (150, 0, 100, 100), True),),
    )
    outer = Template(
        "outer",
        (
            layer("in", "template_input", (0, 0), index="0"),
            layer("use", "template", (160, 0), "in", None, template="block"),
            layer("out", "template_output", (320, 0), "use:rest", index="0"),
        ),
    )
    made = Graph(
        [
            layer("image", "input", (0, 0), dims="8x8x3"),
            layer("extra", "input", (0, 320), dims="8x8x3"),
            layer("conv_1", "convolution", (160, 0), "image", act="relu", marks="note:z=1", features="3", kernel="3x3"),
            layer("pool", "pooling", (320, 0), "conv_1", marks="lw:route=0/conv_1/240,32/256,48 lw:frozen=true", size="1x1"),
            layer("hidden", "identity", (400, 200), "pool", marks="lw:folded=inner"),
            layer("deep", "identity", (420, 210), "hidden", marks="lw:folded=inner lw:collapsed=true"),
            layer("use", "template", (480, 0), "deep", "extra", act="tanh", marks="lw:frozen=true", template="block"),
            layer("again", "template", (640, 0), "use:rest", "use", template="block"),
            layer("nested", "template", (640, 160), "again", template="outer"),
            layer("cat", "concatenation", (800, 0), "use", "again:rest", None, "nested", "conv_1",
                  marks="lw:route=1/again:rest/700,100//3/nested/700,200/720,220"),
            layer("skip", "identity", (960, 0), "cat", marks="lw:bypassed=true"),
            layer("result", "output", (1120, 0), "skip"),
            layer("view", "output", (1120, 160), "cat"),
            layer("loose", "identity", (0, 640)),
        ],
        name="net",
        attributes={"xmlns:note": "urn:note"},
        foreign=(Foreign("<!-- kept -->"),),
        frames=(
            Frame("big", "Big", "all of it", "#fff", (140, -32, 600, 400)),
            Frame("inner", "Inner", "", "", (380, 180, 100, 80), True, ""),
            Frame("empty", "Empty", "", "", (0, 600, 200, 200)),
            Frame("within", "Within", "", "", (390, 190, 20, 20), True, "inner"),
        ),
        templates=(block, outer),
    )  # fmt: skip
    made.properties["author"] = "me"
    return made


SIZES = {"conv_1": (96, 48), "pool": (96, 64), "cat": (128, 200), "result": (64, 32), "loose": (10, 10)}


BOXES = {
    one.name: LayerBox(96.0 + 16 * (n % 3), 48.0 + 32 * (n % 2), (16.0, 40.0), {"": 16.0, "rest": 32.0})
    for n, one in enumerate(network())
}


def members(frame: str) -> tuple[list[str], list[str]]:
    return {"big": (["conv_1", "pool"], ["inner"]), "inner": (["hidden", "deep"], ["within"])}.get(frame, ([], []))


def never(name: str, index: int) -> bool:
    return False


def spec(**fields: object) -> ActivationSpec:
    return replace(ActivationSpec("relu", {"a": "1"}, {"note:x": "1"}), **fields)  # type: ignore[arg-type]


def changed(graph: Graph, name: str, **fields: object) -> Edit:
    return Edit(f"Change {name}", {name: (graph[name], replace(graph[name], **fields))})  # type: ignore[arg-type]


def inside(edit: Command) -> Command:
    return lambda g: template_commands.edit_template(g, "block", edit(g.inside("block")))


COPIES = [
    layer("conv_1", "convolution", (0, 0), "image", "gone", act="relu", marks="xmlns:note=urn:note lw:folded=big"),
    layer("conv_1_2", "convolution", (16, 0), "conv_1:y", None, marks="lw:route=0:8,8 note:q=1 xmlns:other=urn:o"),
    layer("7", "pooling", (32, 0), "conv_1_2", "image:z"),
    layer("use", "template", (48, 0), "7", template="block"),
    layer("o", "template", (64, 0), "use", template="outer"),
]
OTHER_BLOCK = Template(
    "block", (layer("x", "template_input", (0, 0)),), attributes={"xmlns:note": "urn:note", "k": "1"}
)
C = commands
T = template_commands
COMMANDS: dict[str, dict[str, Command]] = {
    "layers": {
        "add": lambda g: C.add_layer(g, layer("new", "identity", (3, 4), "image", act="relu", k="1")),
        "add a taken name": lambda g: C.add_layer(g, layer("pool", "identity", (0, 0))),
        "add a long name": lambda g: C.add_layer(g, layer(LONG, "identity", (0, 0))),
        "add a text that cannot be stored": lambda g: C.add_layer(g, layer("new", "identity", (0, 0), k=BAD)),
        "add connected": lambda g: C.add_connected(g, layer("new", "identity", (0, 0)), Source("cat", "y"), None),
        "add before": lambda g: C.add_connected(g, layer("new", "identity", (0, 0)), None, ("cat", 2)),
        "add behind the last input": lambda g: C.add_connected(g, layer("new", "identity", (0, 0)), None, ("cat", 7)),
        "add alone": lambda g: C.add_connected(g, layer("new", "identity", (0, 0)), None, None),
        "remove": lambda g: C.remove_layers(g, ["pool", "use"]),
        "remove and heal": lambda g: C.remove_layers(g, ["pool", "use", "skip"], heal=True),
        "remove one and heal": lambda g: C.remove_layers(g, ["cat"], heal=True),
        "remove what is missing": lambda g: C.remove_layers(g, ["gone"]),
        "rename": lambda g: C.rename_layer(g, "cat", "joined"),
        "rename an instance": lambda g: C.rename_layer(g, "use", "first"),
        "rename to itself": lambda g: C.rename_layer(g, "cat", "cat"),
        "rename to a taken name": lambda g: C.rename_layer(g, "cat", "pool"),
        "rename to a path": lambda g: C.rename_layer(g, "cat", "a/b"),
        "rename what is missing": lambda g: C.rename_layer(g, "gone", "x"),
        "move": lambda g: C.move_layers(g, {"conv_1": (176, 16), "pool": (336, 16), "cat": (800, 0)}),
        "move one": lambda g: C.move_layers(g, {"cat": (816, -16)}),
        "move nothing": lambda g: C.move_layers(g, {}),
        "move what is missing": lambda g: C.move_layers(g, {"gone": (0, 0)}),
        "replace": lambda g: C.replace_layers(
            g, {"pool": layer("pool", "identity", (0, 0)), "cat": None, "new": layer("new", "t", (1, 1))}, "Do it",
            {"threads": (0, 3)}, {"block": None},
        ),
        "replace by a bad name": lambda g: C.replace_layers(g, {"a/b": layer("a/b", "t", (0, 0))}, "Do it", {}),
        "foreign parts": lambda g: changed(g, "conv_1", children=(Foreign("<a />"),), activation=spec(children=(Foreign("<b />"),))),
        "foreign parts of a new activation": lambda g: changed(g, "pool", activation=spec(children=(Foreign("<b />"),), attributes={"k": "1"})),
        "attributes of an activation": lambda g: changed(g, "conv_1", activation=spec(attributes={"note:x": "2", "k": ""})),
        "another activation": lambda g: changed(g, "conv_1", activation=spec(type="elu", params={"a": "2", "b": "3"})),
        "no activation": lambda g: changed(g, "conv_1", activation=None, attributes={}),
        "several at once": lambda g: changed(g, "cat", type="stack", params={"axis": "2"}, position=(1, 2), inputs=(Source("use"),)),
        "collapse": lambda g: C.collapse_layers(g, ["conv_1", "deep"], True),
        "expand one": lambda g: C.collapse_layers(g, ["deep"], False),
        "freeze": lambda g: freeze(g, ["conv_1", "pool"]),
        "unfreeze": lambda g: freeze(g, ["pool"]),
        "paste": lambda g: C.paste(g, COPIES),
        "paste with links": lambda g: C.paste(g, COPIES, (-5, 7), keep_links=True),
        "paste one": lambda g: C.paste(g, [layer("zz", "t", (1, 2))]),
        "paste a text that cannot be stored": lambda g: C.paste(g, [layer("zz", "t", (1, 2), k=BAD)]),
    },
    "links": {
        "connect": lambda g: C.connect(g, Source("image"), "loose", 0),
        "connect a port over a link": lambda g: C.connect(g, Source("use", "rest"), "cat", 1),
        "connect the same again": lambda g: C.connect(g, Source("again", "rest"), "cat", 1),
        "connect far behind": lambda g: C.connect(g, Source("image"), "cat", 9),
        "connect below zero": lambda g: C.connect(g, Source("image"), "cat", -1),
        "connect beyond the last": lambda g: C.connect(g, Source("image"), "cat", 100_000),
        "connect a loop": lambda g: C.connect(g, Source("cat"), "conv_1", 0),
        "connect to itself": lambda g: C.connect(g, Source("loose"), "loose", 0),
        "connect from nothing": lambda g: C.connect(g, Source("gone"), "cat", 0),
        "connect to nothing": lambda g: C.connect(g, Source("image"), "gone", 0),
        "disconnect": lambda g: C.disconnect(g, "cat", 1),
        "disconnect and close": lambda g: C.disconnect(g, "cat", 1, close_gap=True),
        "disconnect the last": lambda g: C.disconnect(g, "cat", 4),
        "disconnect nothing": lambda g: C.disconnect(g, "cat", 9),
        "move link away": lambda g: C.move_link(g, ("cat", 1), Source("again", "rest"), "loose", 0),
        "move link away and close": lambda g: C.move_link(g, ("cat", 0), Source("use"), "loose", 1, close_gap=True),
        "move link inside": lambda g: C.move_link(g, ("cat", 3), Source("nested"), "cat", 0),
        "move link inside and close": lambda g: C.move_link(g, ("cat", 0), Source("use"), "cat", 3, close_gap=True),
        "move link behind all": lambda g: C.move_link(g, ("cat", 1), Source("again", "rest"), "cat", 6),
        "move link to its place": lambda g: C.move_link(g, ("cat", 1), Source("use"), "cat", 1),
        "insert": lambda g: C.insert_on_link(g, layer("new", "identity", (0, 0)), "cat", 1),
        "insert a layer of the graph": lambda g: C.insert_on_link(g, g["loose"], "pool", 0),
        "insert into nothing": lambda g: C.insert_on_link(g, layer("new", "identity", (0, 0)), "cat", 2),
        "insert a taken name": lambda g: C.insert_on_link(g, layer("a/b", "identity", (0, 0)), "cat", 1),
        "route": lambda g: routes.set_route(g, "cat", 4, [(1, 2), (3, 4)]),
        "route again": lambda g: routes.set_route(g, "cat", 1, [(5, 6)], "Bend"),
        "straighten": lambda g: routes.set_route(g, "pool", 0, []),
        "delete a layer and links": lambda g: C.delete(g, ["pool"], [("cat", 1), ("cat", 3)], variadic=never),
        "delete a link": lambda g: C.delete(g, [], [("cat", 1)], variadic=never),
        "delete links of variadic ports": lambda g: C.delete(g, [], [("cat", 1), ("cat", 3)], variadic=lambda name, _: name == "cat"),
        "delete layers and heal": lambda g: C.delete(g, ["pool", "hidden"], [("skip", 0), ("hidden", 0)], variadic=never, heal=True),
    },
    "parameters": {
        "set one": lambda g: C.set_params(g, {"conv_1": {"features": "8"}}),
        "set several": lambda g: C.set_params(g, {"conv_1": {"features": "8", "kernel": None}, "pool": {"size": "2x2"}}),
        "set with a key": lambda g: C.set_params(g, {"conv_1": {"features": "8"}}, merge_key="drag"),
        "set nothing": lambda g: C.set_params(g, {}),
        "set what cannot be stored": lambda g: C.set_params(g, {"conv_1": {"features": BAD}}),
        "set of nothing": lambda g: C.set_params(g, {"gone": {"features": "8"}}),
        "activation": lambda g: C.set_activation(g, ["conv_1", "pool"], ActivationSpec("elu", {"alpha": "2"})),
        "no activation": lambda g: C.set_activation(g, ["conv_1"], None, merge_key="k"),
        "activation that cannot be stored": lambda g: C.set_activation(g, ["pool"], ActivationSpec("elu", {"a": BAD})),
        "parameter of activations": lambda g: C.set_activation_param(g, ["conv_1", "pool", "use"], "a", "2"),
        "parameter of an activation": lambda g: C.set_activation_param(g, ["conv_1"], "b", "2"),
        "reset": lambda g: C.reset_params(g, {"conv_1": {"x": "1"}, "pool": {"size": "1x1"}}, {"conv_1": {}, "pool": {}}),
        "reset one": lambda g: C.reset_params(g, {"pool": {}}, {}),
        "property": lambda g: C.set_property(g, "author", "you"),
        "new property": lambda g: C.set_property(g, "title", ""),
        "remove property": lambda g: C.set_property(g, "author", None),
        "property that cannot be stored": lambda g: C.set_property(g, "author", BAD),
        "number of settings": lambda g: C.set_settings({"threads": 0, "tile": 1}, {"threads": 2, "tile": 1}),
        "settings": lambda g: C.set_settings({"random_seed": None, "threads": 1}, {"random_seed": 2, "threads": 2}),
        "bypass": lambda g: bypass(g, Inference(g, REGISTRY), ["hidden", "deep"]),
        "end bypass": lambda g: bypass(g, Inference(g, REGISTRY), ["skip"]),
        "bypass an end": lambda g: bypass(g, Inference(g, REGISTRY), ["hidden"], ends=["hidden"]),
        "bypass two outputs": lambda g: bypass(g, Inference(g, REGISTRY), ["use"]),
        "bypass another shape": lambda g: bypass(g, Inference(g, REGISTRY), ["cat"]),
        "bypass an unknown shape": lambda g: bypass(g, Inference(g, REGISTRY), ["loose"]),
    },
    "frames": {
        "add": lambda g: frames.add_frame(g, (1, 2, 3, 4)),
        "add with a title": lambda g: frames.add_frame(g, (1, 2, 3, 4), "Mine"),
        "set": lambda g: frames.set_frame(g, "big", replace(g.frames["big"], color="#000")),
        "remove": lambda g: frames.set_frame(g, "big", None),
        "set what cannot be stored": lambda g: frames.set_frame(g, "big", Frame("big", "", BAD)),
        "write": lambda g: frames.write_frame(g, "big", " Title \n one\n two \n", 500),
        "write a title": lambda g: frames.write_frame(g, "big", "Title", 5),
        "move": lambda g: frames.move_frame(g, "big", (150, -16, 600, 400), {"conv_1": (170, 16)}),
        "move with frames inside": lambda g: frames.move_frame(
            g, "big", (150, -16, 600, 400), {"conv_1": (170, 16), "hidden": (410, 216)}, ["inner"]
        ),
        "move a collapsed one": lambda g: frames.move_frame(g, "inner", (390, 190, 100, 80), {"hidden": (410, 210)}),
        "resize": lambda g: frames.move_frame(g, "big", (140, -32, 700, 500), {}),
        "delete": lambda g: frames.remove_frames(g, ["inner"]),
        "delete two": lambda g: frames.remove_frames(g, ["inner", "within"]),
        "collapse": lambda g: frames.collapse(g, [], ["big"], members),
        "collapse with layers": lambda g: frames.collapse(g, ["conv_1"], ["big", "inner"], members),
        "expand": lambda g: frames.collapse(g, ["deep"], ["inner"], members),
        "expand frames": lambda g: frames.collapse(g, [], ["inner", "within"], members),
        "collapse in a template": inside(lambda g: frames.collapse(g, ["sum"], [], members)),
    },
    "arrangement": {
        **{
            f"align {side.name.lower()}": (lambda g, side=side: arrangement.align(g, SIZES, ["conv_1", "pool", "cat", "result"], side))
            for side in arrangement.Side
        },
        "lay out": lambda g: arrangement.lay_out(
            g, BOXES, list(g.layers), {"big": ["conv_1", "pool"], "inner": ["hidden", "deep"], "within": ["deep"], "empty": ["loose"]}
        ),
        "lay out some": lambda g: arrangement.lay_out(g, BOXES, ["pool", "cat", "conv_1"], {"big": ["conv_1", "pool"], "empty": ["loose"]}),
        "lay out levels": lambda g: arrangement.lay_out(
            g, BOXES | {name: replace(BOXES[name], level=1) for name in ("pool", "hidden", "deep")}, list(g.layers), {}
        ),
        "distribute": lambda g: arrangement.distribute(g, SIZES, ["result", "conv_1", "cat", "pool"], vertical=False),
        "distribute vertically": lambda g: arrangement.distribute(g, SIZES, ["loose", "conv_1", "cat"], vertical=True),
        "distribute two": lambda g: arrangement.distribute(g, SIZES, ["pool", "conv_1"], vertical=False),
        "make room": lambda g: arrangement.make_room(
            g, ["cat", "skip", "pool"], 33, {"big": ["conv_1", "pool"], "inner": [], "empty": ["cat"]}
        ),
        "accept every size": lambda g: size_padding.pad_and_crop(
            g,
            {"image": size_padding.Padding(Size2D(8, 4), Size2D(1, 2), Size2D(16, 8))},
            {"result": size_padding.Cropping("image", Size2D(2, 1), Size2D(1, 3)), "view": size_padding.Cropping("image", Size2D(1, 1), Size2D(1, 1))},
        ),
        "accept every size of two": lambda g: size_padding.pad_and_crop(
            g,
            {name: size_padding.Padding(Size2D(2, 2), Size2D(0, 0), Size2D(2, 2)) for name in ("image", "extra")},
            {"result": size_padding.Cropping("extra", Size2D(1, 1), Size2D(1, 1))},
        ),
    },
    "templates": {
        "change": lambda g: T.set_template(g, replace(g.templates["block"], attributes={})),
        "add": lambda g: T.set_template(g, Template("fresh", (layer("x", "template_input", (0, 0)),))),
        "add a bad name": lambda g: T.set_template(g, Template("a.b")),
        "add one that uses itself": lambda g: T.set_template(g, Template("fresh", (layer("u", "template", (0, 0), template="fresh"),))),
        "change to one that uses itself": lambda g: T.set_template(
            g, Template("block", (layer("u", "template", (0, 0), template="outer"),))
        ),
        "rename": lambda g: T.rename_template(g, "block", "unit"),
        "rename to a taken name": lambda g: T.rename_template(g, "block", "outer"),
        "rename to itself": lambda g: T.rename_template(g, "block", "block"),
        "rename what is missing": lambda g: T.rename_template(g, "gone", "x"),
        "remove": lambda g: T.remove_template(g, "block"),
        "remove one that a layer uses": lambda g: T.remove_template(g, "outer"),
        "make": lambda g: T.make_template(g, ["conv_1", "pool", "hidden", "deep"], "start"),
        "make of the frame": lambda g: T.make_template(g, ["hidden", "deep"], "part"),
        "make of an instance": lambda g: T.make_template(g, ["cat", "again", "nested"], "end"),
        "make with places": lambda g: T.make_template(g, ["cat"], "part", placed=lambda inner: dict.fromkeys(list(inner.layers)[:2], (7, 8))),
        "make with a hole": lambda g: T.make_template(g, ["conv_1", "hidden"], "part"),
        "make of an input": lambda g: T.make_template(g, ["image", "conv_1"], "part", whole=["image"]),
        "make of nothing": lambda g: T.make_template(g, ["gone"], "part"),
        "make with a taken name": lambda g: T.make_template(g, ["cat"], "block"),
        "make of a port": inside(lambda g: T.make_template(g, ["in", "conv"], "part")),
        "make inside": inside(lambda g: T.make_template(g, ["conv", "sum"], "part")),
        "dissolve": lambda g: T.dissolve(g, "use"),
        "dissolve the second": lambda g: T.dissolve(g, "again"),
        "dissolve the nested": lambda g: T.dissolve(g, "nested"),
        "dissolve all": lambda g: T.dissolve_all(g, ["use", "again", "nested"]),
        "dissolve a list of one": lambda g: T.dissolve_all(g, ["again"]),
        "dissolve a layer": lambda g: T.dissolve(g, "conv_1"),
        "dissolve nothing": lambda g: T.dissolve(g, "gone"),
        "rename a port": inside(lambda g: C.rename_layer(g, "side", "second")),
        "rename an output": inside(lambda g: C.rename_layer(g, "rest", "other")),
        "remove a port": inside(lambda g: C.remove_layers(g, ["in"])),
        "remove an output": inside(lambda g: C.remove_layers(g, ["out"])),
        "move a port down": inside(lambda g: T.move_port(g, "in", 1)),
        "move a port up": inside(lambda g: T.move_port(g, "rest", -1)),
        "move a port too far": inside(lambda g: T.move_port(g, "in", -1)),
        "add a port": inside(lambda g: C.add_layer(g, T.new_port(g, "template_input", (5, 6), {"k": "1"}))),
        "add an output": inside(lambda g: C.add_layer(g, T.new_port(g, "template_output", (5, 6), {}))),
        "add an instance": lambda g: C.add_layer(g, T.new_instance(g, "block", (5, 6))),
        "edit inside with a key": inside(lambda g: C.set_params(g, {"conv": {"features": "9"}}, merge_key="drag")),
        "edit a missing template": lambda g: T.edit_template(g, "gone", Edit("x")),
        "paste with templates": lambda g: T.paste_with_templates(g, COPIES, g.templates.values()),
        "paste with another template": lambda g: T.paste_with_templates(g, COPIES, [OTHER_BLOCK, g.templates["outer"]], keep_links=True),
        "paste with a new template": lambda g: T.paste_with_templates(g, [], [replace(OTHER_BLOCK, name="fresh")]),
    },
}  # fmt: skip
REGISTRY = load(entry_points=False)


def told(change: ChangeSet) -> Iterator[str]:
    """Every field of a change that is not empty."""
    for field in fields(change):
        value = getattr(change, field.name)
        if value:
            yield f"{field.name}: {sorted(value) if isinstance(value, frozenset) else dict(value)}"


def done(command: Command) -> Iterator[str]:
    graph = network()
    try:
        edit = command(graph)
    except DiagnosticError as error:
        for d in error.diagnostics:
            named = ("layer", "port", "parameter", "template", "inner")
            where = ", ".join(f"{name} {getattr(d, name)!r}" for name in named if getattr(d, name) is not None)
            yield f"{d.severity.value} {d.code} ({where}): {d.message} - {d.remedy}".replace(LONG, "<long>")
        assert graph == network()
        return
    yield edit.title + (f" [{edit.merge_key}]" if edit.merge_key else "")
    before = graph.copy()
    change = graph.apply(edit)
    after = graph.copy()
    lines = changes(write_document(before).decode(), write_document(after).decode()).splitlines()
    yield from (line.replace("\t", " ") for line in lines if line.strip())
    yield from told(change)
    difference = compare.compare(before, after)
    yield from (f"= {line}" for line in difference.lines())
    assert bool(edit) == (before != after or bool(edit.settings))
    back = graph.apply(edit.reversed())
    assert graph == before
    assert (back.added, back.removed) == (change.removed, change.added)
    again = compare.edit_between(before, after, "x")
    assert again is not None
    graph.apply(again)
    assert graph == after
    assert (graph.properties, graph.frames) == (after.properties, after.frames)


@pytest.mark.parametrize("subject", COMMANDS)
def test_commands_are_as_recorded(subject: str) -> None:
    found = []
    for title, command in COMMANDS[subject].items():
        found += [f"{title}:", *(f"  {line}" for line in done(command)), ""]
    check_recorded(f"edits/{subject}.txt", "\n".join(found))


CHAINS: dict[str, list[Command]] = {
    "renames": [
        lambda g: C.rename_layer(g, "cat", "joined"),
        lambda g: C.rename_layer(g, "joined", "all"),
        lambda g: C.rename_layer(g, "pool", "cat"),
    ],
    "renamed and back": [lambda g: C.rename_layer(g, "cat", "joined"), lambda g: C.rename_layer(g, "joined", "cat")],
    "renames inside": [
        inside(lambda g: C.rename_layer(g, "conv", "a")),
        inside(lambda g: C.rename_layer(g, "a", "b")),
        inside(lambda g: C.rename_layer(g, "sum", "conv")),
    ],
    "renames of a template and inside": [
        inside(lambda g: C.rename_layer(g, "conv", "a")),
        lambda g: T.rename_template(g, "block", "unit"),
        lambda g: T.edit_template(g, "unit", C.rename_layer(g.inside("unit"), "a", "b")),
        lambda g: T.rename_template(g, "unit", "other"),
    ],
    "renamed inside and back": [
        inside(lambda g: C.rename_layer(g, "conv", "a")),
        inside(lambda g: C.rename_layer(g, "a", "conv")),
    ],
    "added and removed": [
        lambda g: C.add_layer(g, layer("new", "identity", (0, 0))),
        lambda g: C.set_property(g, "author", "you"),
        lambda g: C.remove_layers(g, ["new"]),
        lambda g: C.set_property(g, "author", "me"),
    ],
    "parameters, frames and settings": [
        lambda g: C.set_params(g, {"conv_1": {"features": "8"}}, merge_key="drag"),
        lambda g: C.set_settings({"threads": 0}, {"threads": 1}),
        lambda g: frames.add_frame(g, (0, 0, 9, 9)),
        lambda g: C.set_params(g, {"conv_1": {"features": "9"}, "pool": {"size": "3x3"}}, merge_key="drag"),
        lambda g: C.set_settings({"threads": 1}, {"threads": 2}),
        lambda g: frames.set_frame(g, "frame_0", None),
    ],
}


@pytest.mark.parametrize("name", CHAINS)
def test_edits_one_after_the_other_are_one_edit(name: str) -> None:
    """With the names of before and after, in both directions."""
    steps, graph = CHAINS[name], network()
    total = steps[0](graph)
    title, key = total.title, total.merge_key
    graph.apply(total)
    for step in steps[1:]:
        edit = step(graph)
        graph.apply(edit)
        total = total.then(edit)
    assert (total.title, total.merge_key) == (title, key)
    assert total.then(Edit("x"), "Both").title == "Both"
    once = network()
    change = once.apply(total)
    assert once == graph
    lines = [*told(change), "back:", *told(once.apply(total.reversed()))]
    lines.append(f"names: {dict(total.renamed)}, back: {dict(total.reversed().renamed)}")
    assert once == network()
    check_recorded(f"edits/chain_{name.replace(' ', '_').replace(',', '')}.txt", "\n".join(lines) + "\n")
