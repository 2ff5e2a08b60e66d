"""The parts of a network: layers, links (stored at the consumer), attached activations and comment frames.

All of them are immutable. Parameters are kept as the text of the file, which `designer.operators` parses into typed
operators, so that unknown layers and parameters are preserved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from designer.texts import tr

GRID = 16
ROUTES = "lw:route"  # attribute of a layer: the waypoints of its links (routes.py)
FOLDED = "lw:folded"  # attribute of a layer: the id of the collapsed comment frame that hides it
BYPASSED = "lw:bypassed"  # attribute of a layer: "true" if it passes an input through instead of computing
FROZEN = "lw:frozen"  # attribute of a layer: "true" if training keeps its weights
COLLAPSED = "lw:collapsed"  # attribute of a layer: "true" if the canvas shows only its title


class Source(NamedTuple):
    """A producer: a layer and the name of its output port; an empty port means the first output."""

    layer: str
    port: str = ""

    @classmethod
    def parse(cls, text: str) -> Source:
        layer, _, port = text.partition(":")
        return cls(layer, port)

    def __str__(self) -> str:
        return f"{self.layer}:{self.port}" if self.port else self.layer


class Foreign(NamedTuple):
    """An unknown element of a file, which is written back unchanged."""

    xml: str


@dataclass(frozen=True, slots=True)
class ActivationSpec:
    """The activation attached to a layer's first output: its type and its parameters as text."""

    type: str
    params: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    children: tuple[Foreign, ...] = ()


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer. `inputs` is ordered by input port; None is an open port.

    `attributes` and `children` are unknown attributes and elements of the file, which are written back unchanged.
    `weights_of` is never stored in a file: after inlining templates it names the layer whose weights this layer uses; empty
    means its own.
    """

    name: str
    type: str
    position: tuple[int, int] = (0, 0)
    inputs: tuple[Source | None, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    activation: ActivationSpec | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    children: tuple[Foreign, ...] = ()
    weights_of: str = ""

    @property
    def collapsed(self) -> bool:
        """Whether the canvas shows only the title."""
        return self.attributes.get(COLLAPSED) == "true"

    @property
    def bypassed(self) -> bool:
        """Whether the layer passes through the first input that fits its output instead of computing."""
        return self.attributes.get(BYPASSED) == "true"

    @property
    def frozen(self) -> bool:
        """Whether training keeps the weights of the layer."""
        return self.attributes.get(FROZEN) == "true"

    @property
    def folded(self) -> str:
        """The id of the collapsed frame that hides the layer; empty for none."""
        return self.attributes.get(FOLDED, "")

    def folded_into(self, frame: str) -> Layer:
        """The layer, hidden by the collapsed frame with this id; empty for none."""
        if self.folded == frame:
            return self
        kept = {k: v for k, v in self.attributes.items() if k != FOLDED}
        return replace(self, attributes={**kept, FOLDED: frame} if frame else kept)

    @property
    def weights_name(self) -> str:
        """The prefix of this layer's tensors in weights files."""
        return self.weights_of or self.name

    def with_param(self, name: str, text: str) -> Layer:
        return replace(self, params={**self.params, name: text})

    def with_input(self, index: int, source: Source | None) -> Layer:
        """A copy whose input `index` reads `source`; trailing open ports are dropped."""
        inputs = list(self.inputs) + [None] * (index + 1 - len(self.inputs))
        inputs[index] = source
        while inputs and inputs[-1] is None:
            inputs.pop()
        return replace(self, inputs=tuple(inputs))

    def producers(self) -> set[str]:
        """Names of the layers that this one reads from."""
        return {source.layer for source in self.inputs if source is not None}


@dataclass(frozen=True, slots=True)
class Frame:
    """A comment frame on the canvas; `rect` is x, y, width, height in canvas units.

    A `collapsed` frame is shown as its title bar, and the layers and frames `folded` into it are hidden. They store the
    frame's id, because layers put on the free area later do not belong to the frame.
    """

    id: str
    title: str = ""
    text: str = ""
    color: str = ""
    rect: tuple[int, int, int, int] = (0, 0, 320, 160)
    collapsed: bool = False
    folded: str = ""

    @property
    def content(self) -> str:
        """The title and, on further lines, the text."""
        return f"{self.title}\n{self.text}" if self.text else self.title


_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def unwritable(text: str) -> str | None:
    """The first character of `text` that XML cannot store, as `U+0000`; None if there is none."""
    found = _UNWRITABLE.search(text)
    return f"U+{ord(found[0]):04X}" if found is not None else None


def check_layer_name(name: str) -> str | None:
    """The rule that `name` breaks, as a sentence, or None if it is a legal layer name."""
    return broken_rule(name, tr("a layer name"))


def broken_rule(name: str, what: str) -> str | None:
    """The rule for names of layers that `name` breaks, as a sentence about `what`, or None."""
    if not name or not name.strip():
        return tr("{what} must not be blank", what=what)
    if len(name) > MAX_NAME:
        return tr(
            "{what} must have at most {MAX_NAME} characters, this one has {count}",
            what=what,
            MAX_NAME=MAX_NAME,
            count=len(name),
        )
    if name != name.strip():
        return tr("{what} must not begin or end with a space", what=what)
    bad = sorted({c for c in name if c in ",:/\\\"'" or ord(c) < 32 or 127 <= ord(c) < 160 or unwritable(c)})
    if bad:
        shown = " ".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in bad)
        return tr(
            "{what} must not contain a comma, colon, slash, backslash, quote or control character (found {shown})",
            what=what,
            shown=shown,
        )
    if name in (".", ".."):
        return tr("{what} must not be '.' or '..'", what=what)
    return None


MAX_NAME = 128
