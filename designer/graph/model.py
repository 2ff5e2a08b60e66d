"""What a network is made of: layers, edges (kept on the consumer), attached activations and comment frames.

Everything here is immutable. Parameters stay as the text that a file holds; `designer.operators` reads that text
into typed operators. That is why unknown layers and unknown parameters survive unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

GRID = 16
ROUTES = "lw:route"  # the attribute of a layer that says through which points its links run (routes.py)
FOLDED = "lw:folded"  # an attribute of a layer: the id of the comment frame that hides it while the frame is collapsed
BYPASSED = "lw:bypassed"  # an attribute of a layer, "true" where it hands on an input in place of what it computes
COLLAPSED = "lw:collapsed"  # an attribute of a layer in a file, "true" where the canvas shows its title alone


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
    """Something in a file that we do not know and write back unchanged."""

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
    """One layer. `inputs` is ordered by input port; None stands for a port that nothing is connected to.

    `attributes` and `children` hold foreign attributes and elements of the file, which are written back unchanged.
    `weights_of` is never in a file: where templates were inlined it names whose weights the layer uses, its own if empty.
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
        """Whether the canvas shows the title alone."""
        return self.attributes.get(COLLAPSED) == "true"

    @property
    def bypassed(self) -> bool:
        """Whether the layer hands on the first input that fits its output, in place of what it computes."""
        return self.attributes.get(BYPASSED) == "true"

    @property
    def folded(self) -> str:
        """The frame that hides the layer while it is collapsed; empty for none."""
        return self.attributes.get(FOLDED, "")

    @property
    def weights_name(self) -> str:
        """The name under which weights files hold this layer's tensors."""
        return self.weights_of or self.name

    def with_param(self, name: str, text: str) -> Layer:
        return replace(self, params={**self.params, name: text})

    def with_input(self, index: int, source: Source | None) -> Layer:
        """A copy whose input `index` comes from `source`; trailing gaps are dropped."""
        inputs = list(self.inputs) + [None] * (index + 1 - len(self.inputs))
        inputs[index] = source
        while inputs and inputs[-1] is None:
            inputs.pop()
        return replace(self, inputs=tuple(inputs))

    def producers(self) -> set[str]:
        """Names of the layers this one reads from."""
        return {source.layer for source in self.inputs if source is not None}


@dataclass(frozen=True, slots=True)
class Frame:
    """A comment frame on the canvas; `rect` is x, y, width, height in canvas units.

    One that is `collapsed` is shown as its title bar, and the layers and frames that are `folded` into it are not shown:
    they say so themselves, because what is put on the free place meanwhile does not belong to it.
    """

    id: str
    title: str = ""
    text: str = ""
    color: str = ""
    rect: tuple[int, int, int, int] = (0, 0, 320, 160)
    collapsed: bool = False
    folded: str = ""


_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def unwritable(text: str) -> str | None:
    """The first character of `text` that no XML document can hold, as `U+0000`; None when there is none."""
    found = _UNWRITABLE.search(text)
    return f"U+{ord(found[0]):04X}" if found is not None else None


def check_layer_name(name: str) -> str | None:
    """The rule that `name` breaks as a sentence, or None when it is a legal layer name."""
    if not name or not name.strip():
        return "a layer name must not be blank"
    if len(name) > MAX_NAME:
        return f"a layer name has at most {MAX_NAME} characters, this one has {len(name)}"
    if name != name.strip():
        return "a layer name must not begin or end with a space"
    bad = sorted({c for c in name if c in ",:/\\\"'" or ord(c) < 32 or 127 <= ord(c) < 160 or unwritable(c)})
    if bad:
        shown = " ".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in bad)
        return f"a layer name must not hold comma, colon, slash, backslash, quote or control character (found {shown})"
    if name in (".", ".."):
        return "a layer name must not be '.' or '..'"
    return None


MAX_NAME = 128
