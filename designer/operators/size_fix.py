"""Padding and cropping that make a network accept every size, derived from its size contract."""

from __future__ import annotations

from fractions import Fraction

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.size_padding import Cropping, Padding, pad_and_crop
from designer.graph.types import Size2D
from designer.operators.registry import Registry
from designer.operators.size_contract import InputSizes, SizeContract, SizeRule, joint_run, size_contract
from designer.operators.symbolic_size import SymbolicSize
from designer.texts import tr


def accept_every_size(graph: Graph, registry: Registry, contract: SizeContract) -> Edit:
    """The edit after which every height and width is valid; empty if they are already.

    Raises DiagnosticError if padding cannot achieve that: for instance if only one size is valid.
    """
    if is_free(contract):
        return Edit(tr("Accept Every Size"))
    reason = obstacle(contract)
    if reason:
        raise _impossible(reason)
    pads = {
        item.layer: _padding(contract, item) for item in contract.inputs if not _is_free(item) or contract.exceptions
    }
    edit = pad_and_crop(graph, pads, _crops(contract, pads))
    made = graph.copy()
    made.apply(edit)
    after = size_contract(made, registry)
    if not is_free(after):
        item = next((item for item in after.inputs if not _is_free(item)), None)
        rule = f"{item.height} x {item.width}" if item is not None else "no size"
        raise _impossible(tr("after padding, the valid sizes would still be {rule}", rule=rule))
    return edit


def is_free(contract: SizeContract) -> bool:
    """Whether every height and width is valid."""
    free = all(map(_is_free, contract.inputs))
    return free and not contract.coupled and not contract.exceptions and contract.problem is None


def _is_free(item: InputSizes) -> bool:
    return item.height.is_free and item.width.is_free


def obstacle(contract: SizeContract) -> str:
    """Why padding cannot make every size valid, as a sentence; empty if it may."""
    if contract.problem is not None:
        return contract.problem.message
    if contract.coupled:
        return contract.coupled[0][1]
    for item in contract.inputs:
        for rule in (item.height, item.width):
            if not rule.remainders:
                layers = ", ".join(rule.because)
                return tr(
                    "'{layer}' accepts {rule} because of {layers}; padding cannot make images smaller",
                    layer=item.layer,
                    rule=rule,
                    layers=layers,
                )
            if not rule.proven:
                return tr("the sizes that '{layer}' accepts are only known up to 512", layer=item.layer)
    return ""


def _impossible(reason: str) -> DiagnosticError:
    return DiagnosticError(
        Diagnostic("no-size-fix", reason, remedy=tr("resize the images, or change the layers that cause the rule"))
    )


def _padding(contract: SizeContract, item: InputSizes) -> Padding:
    least = 1 + max((height for height, _ in contract.exceptions), default=0)
    rows, columns = _progression(item.height, least), _progression(item.width, 1)
    return Padding(*(Size2D(column, row) for row, column in zip(rows, columns, strict=True)))


def _progression(rule: SizeRule, least: int) -> tuple[int, int, int]:
    """(multiple, remainder, minimum) of valid sizes only, of at least `least`."""
    first = min(n for n in range(rule.minimum, rule.minimum + rule.multiple_of) if n in rule)
    minimum, remainder = max(first, least), first % rule.multiple_of
    return rule.multiple_of, remainder, minimum if minimum > (remainder or rule.multiple_of) else 1


def _crops(contract: SizeContract, pads: dict[str, Padding]) -> dict[str, Cropping]:
    """How the outputs must be cropped: by how much they grow with the input that they depend on."""
    groups = list(dict.fromkeys(tuple(sorted((i.layer, *i.with_inputs))) for i in contract.inputs))
    joint = joint_run(contract.probe, contract.reference, groups, _base(contract))
    found: dict[str, Cropping] = {}
    for name in contract.probe.outputs:
        outputs = joint.inference.states[name].outputs
        if outputs is None or outputs[0].rank != 4:
            continue
        for number, group in enumerate(groups):
            source = next((layer for layer in group if layer in pads), None)
            scales = [
                _growth(outputs[0].shape[2 + axis], 2 * number + axis, joint.periods[2 * number + axis])
                for axis in (0, 1)
            ]
            if source is not None and any(scales):
                rows, columns = scales
                multiply = Size2D(columns.numerator, rows.numerator)
                found[name] = Cropping(source, multiply, Size2D(columns.denominator, rows.denominator))
                break
    return found


def _base(contract: SizeContract) -> int:
    """A size from which on height and width are independent."""
    return 1 + max((max(pair) for pair in contract.exceptions), default=0)


def _growth(size: object, variable: int, period: int) -> Fraction:
    """Pixels of an output per pixel of an input along one axis."""
    if type(size) is not SymbolicSize:
        return Fraction(0)
    return Fraction(size.slope(variable), period)
