"""A port at which a subnetwork is fed."""

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
    """An input of a template: stands for what an instance of the template reads at the port of this name."""

    inputs = ()
    examples = (op.Example(()),)

    index: int = op.param(default=0, min=0, max=999, doc="Place among the ports; ports of one place are in name order.")

    def carrying(self, kind: op.TensorType | None) -> TemplateInput:
        """This port fed with a tensor of that type; None for an instance that does not connect it."""
        made = copy.copy(self)
        object.__setattr__(made, "_kind", kind)  # no parameter, so no field
        return made

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        kind: op.TensorType | None = self.__dict__.get("_kind")
        if kind is None:
            raise op.ShapeError(
                tr("what the template reads here is not known"), remedy=tr("connect the port of its instances")
            )
        return kind
