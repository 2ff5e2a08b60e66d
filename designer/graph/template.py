"""Templates: named subgraphs. Layers of the type `template` are their instances.

The layers of the types `template_input` and `template_output` are the ports of a template. A port is named after its
layer; ports are sorted by their parameter `index`, then by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from designer.graph.model import Foreign, Frame, Layer, broken_rule
from designer.texts import tr

INSTANCE = "template"
INPUT = "template_input"
OUTPUT = "template_output"
PARAMETER = "template"  # of an instance: the name of its template


@dataclass(frozen=True)
class Template:
    """One template; its layers are sorted by name. `foreign` and `attributes` are unknown parts of the file, preserved.

    `frames` are its comment frames, sorted by id.
    """

    name: str
    layers: tuple[Layer, ...] = ()
    foreign: tuple[Foreign, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    frames: tuple[Frame, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(sorted(self.layers, key=lambda layer: layer.name)))
        object.__setattr__(self, "frames", tuple(sorted(self.frames, key=lambda frame: frame.id)))

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the input ports, in order."""
        return _ports(self.layers, INPUT)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the output ports, in order."""
        return _ports(self.layers, OUTPUT)

    def uses(self) -> tuple[str, ...]:
        """The template name of each instance among its layers."""
        return tuple(layer.params.get(PARAMETER, "") for layer in self.layers if layer.type == INSTANCE)


def _ports(layers: tuple[Layer, ...], kind: str) -> tuple[str, ...]:
    found = [(port_index(layer), layer.name) for layer in layers if layer.type == kind]
    return tuple(name for _, name in sorted(found))


def port_index(layer: Layer) -> int:
    """The `index` parameter of a port: its position among the ports of its kind."""
    text = layer.params.get("index", "0").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def would_recur(templates: Mapping[str, Template], around: Iterable[str], wanted: str) -> str:
    """The template of `around` that would use itself if it contained an instance of `wanted`; empty for none."""
    used = closure(templates, wanted)
    return next((name for name in around if name in used), "")


def closure(templates: Mapping[str, Template], name: str) -> list[str]:
    """`name` and all templates that it uses, directly or indirectly, including names of missing templates."""
    found: dict[str, None] = {name: None}
    waiting = [name]
    while waiting:
        template = templates.get(waiting.pop())
        for used in template.uses() if template is not None else ():
            if used not in found:
                found[used] = None
                waiting.append(used)
    return list(found)


def recursion(templates: Mapping[str, Template], name: str) -> tuple[str, ...]:
    """The cycle by which a template uses itself, as (name, ..., name); empty if it does not."""
    came_from: dict[str, str] = {}
    waiting = [name]
    while waiting:
        present = waiting.pop()
        template = templates.get(present)
        for used in template.uses() if template is not None else ():
            if used == name:
                path = [name, present]
                while path[-1] != name:
                    path.append(came_from[path[-1]])
                return tuple(reversed(path))
            if used not in came_from:
                came_from[used] = present
                waiting.append(used)
    return ()


def enclosing(name: str) -> tuple[str, ...]:
    """The name of an inlined layer, then the names of the instances that may enclose it, innermost first."""
    return (name, *(name[:place] for place in range(len(name) - 1, 0, -1) if name[place] == "."))


def check_template_name(name: str) -> str | None:
    """The rule that `name` breaks, as a sentence, or None if it is a legal template name."""
    rule = broken_rule(name, tr("a template name"))
    if rule is not None:
        return rule
    if "." in name:
        return tr("a template name must not contain a period")
    return None
