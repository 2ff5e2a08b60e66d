"""The report of an import: what became of every node, and how the document compares with the original."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from designer.files.formats import Format, FormatTable
from designer.files.json_text import encode
from designer.texts import tr, trn

UNBOUNDED = sys.float_info.max  # the difference of outputs that cannot be subtracted; JSON has no infinity
COPIES = 5  # copied tensors that a report names
TOLERANCE = 1e-4  # relative difference above which an import is reported as different


class Outcome(StrEnum):
    """What became of a node of the original."""

    KNOWN = "known"  # layers of the library
    OPAQUE = "opaque"  # kept whole in an opaque layer
    FOLDED = "folded"  # computed once: its value is a parameter or a constant


class NodeOutcome(msgspec.Struct, frozen=True):
    """One node: its name and type in the original, and the layers that represent it. `reason` says why it is opaque."""

    node: str
    type: str
    outcome: Outcome
    layers: tuple[str, ...] = ()
    reason: str = ""


class ComparedCase(msgspec.Struct, frozen=True):
    """One comparison with the original: the shapes of the inputs, and the largest differences over all outputs."""

    inputs: dict[str, tuple[int, ...]]
    max_abs_difference: float
    max_rel_difference: float
    output: str = ""  # the output that differs most


class ImportReport(msgspec.Struct, frozen=True):
    """The report of one import. `known`, `opaque` and `folded` count the nodes of the original.

    The relative difference is the largest absolute difference divided by the largest magnitude in the output. Without a
    comparison the differences are None and `not_compared_because` says why. `weights` maps the names of tensors in the
    original to `<layer>.<tensor>`. `size_note` says why the document is right at one size only, if it is.
    """

    source: str
    producer: str = ""
    opset: int = 0
    facts: str = ""  # what is known about the original as a whole, for instance its architecture and license
    nodes: int = 0
    known: int = 0
    opaque: int = 0
    folded: int = 0
    templates: dict[str, int] = msgspec.field(default_factory=dict)  # name -> number of instances
    max_abs_difference: float | None = None
    max_rel_difference: float | None = None
    not_compared_because: str = ""
    size_note: str = ""
    cases: tuple[ComparedCase, ...] = ()
    warnings: tuple[str, ...] = ()
    outcomes: tuple[NodeOutcome, ...] = ()
    weights: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def agrees(self) -> bool:
        """Whether the document computed what the original did, as far as both were compared."""
        return self.max_rel_difference is None or self.max_rel_difference <= TOLERANCE

    def summary(self) -> str:
        """The report in a few lines of text."""
        lines = [self.facts] if self.facts else []
        lines.append(self.counts())
        lines += [f"template {name}: {count} instances" for name, count in self.templates.items()]
        lines.append(self.comparison())
        return "\n".join([*lines, *(f"warning: {text}" for text in self.notes())])

    def notes(self) -> tuple[str, ...]:
        """What the user should know before relying on the document."""
        return (*self.warnings, self.size_note) if self.size_note else self.warnings

    def counts(self) -> str:
        """The number of nodes by outcome."""
        return tr(
            "{nodes}: {known} known, {opaque} opaque, {folded} folded",
            nodes=trn("{count} node", "{count} nodes", self.nodes),
            known=self.known,
            opaque=self.opaque,
            folded=self.folded,
        )

    def comparison(self) -> str:
        """The result of the comparison in one sentence."""
        if self.max_rel_difference is None or self.max_abs_difference is None:
            return tr("not compared with the original: {reason}", reason=self.not_compared_because)
        if self.max_abs_difference == 0:
            return tr("equal to the original, bit for bit")
        if self.max_abs_difference == UNBOUNDED:
            return tr("differs from the original in the shape of an output, or in values that are NaN or infinite")
        return tr(
            "largest difference to the original: {absolute:.3g} ({relative:.3g} relative)",
            absolute=self.max_abs_difference,
            relative=self.max_rel_difference,
        )


def report_json(report: ImportReport) -> bytes:
    """The report as JSON text."""
    return msgspec.json.format(encode(report), indent=2) + b"\n"


REPORTS: FormatTable[None, Callable[[ImportReport], bytes]] = FormatTable(
    "import reports", (Format("Import report", (".json",), None, report_json),)
)


def named_tensors(tensors: Mapping[str, tuple[str, ...]], warnings: Iterable[str]) -> dict[str, Any]:
    """The fields `weights` and `warnings` of a report; tensors that the original has once and the document several times are named."""
    copied = {name: places for name, places in tensors.items() if len(places) > 1}
    found = [
        tr(
            "the original has one tensor '{name}' for {places}; the document has copies",
            name=name,
            places=", ".join(places),
        )
        for name, places in list(copied.items())[:COPIES]
    ]
    if len(copied) > COPIES:
        found.append(tr("{count} more tensors of the original have copies", count=len(copied) - COPIES))
    return {"weights": {name: places[0] for name, places in tensors.items()}, "warnings": (*warnings, *found)}


def counted(outcomes: tuple[NodeOutcome, ...]) -> dict[str, Any]:
    """The fields `nodes`, `known`, `opaque`, `folded` and `outcomes` of a report."""
    found: dict[str, Any] = {"nodes": len(outcomes), "outcomes": outcomes}
    return found | {kind.value: sum(1 for item in outcomes if item.outcome is kind) for kind in Outcome}
