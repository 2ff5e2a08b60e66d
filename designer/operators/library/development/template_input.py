"""Template inputs."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from designer.operators import api as op
from designer.texts import tr


class TemplateInput(
    op.Operator,
    type="template_input",
    title="Template input",
    category=op.Category.DEVELOPMENT,
    role=op.Role.TEMPLATE,
    synonyms=("port", "subnetwork input", "argument"),
):
    """An input port of a template: receives the input of an instance at the port of this name."""

    inputs = ()
    examples = (op.Example(()),)

    index: int = op.param(
        default=0, min=0, max=999, doc="Index among the ports; ports with the same index are sorted by name."
    )

    def carrying(self, kind: op.TensorType | None) -> TemplateInput:
        """This port with an input of that type; None for an instance that does not connect it."""
        made = copy.copy(self)
        object.__setattr__(made, "_kind", kind)  # not a parameter, so not a field
        return made

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        kind: op.TensorType | None = self.__dict__.get("_kind")
        if kind is None:
            raise op.ShapeError(
                tr("the type of this template input is not known"), remedy=tr("connect the port of its instances")
            )
        return kind
