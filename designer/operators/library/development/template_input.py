"""A port at which a subnetwork is fed."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from designer.operators.api import Category, Example, Operator, Role, ShapeError, TensorType, param
from designer.texts import tr


class TemplateInput(
    Operator,
    type="template_input",
    title="Template input",
    category=Category.DEVELOPMENT,
    role=Role.TEMPLATE,
    synonyms=("port", "subnetwork input", "argument"),
):
    """An input of a template: stands for what an instance of the template reads at the port of this name."""

    inputs = ()
    examples = (Example(()),)

    index: int = param(default=0, min=0, max=999, doc="Place among the ports; ports of one place are in name order.")

    def carrying(self, kind: TensorType | None) -> TemplateInput:
        """This port fed with a tensor of that type; None for an instance that does not connect it."""
        made = copy.copy(self)
        object.__setattr__(made, "_kind", kind)  # no parameter, so no field
        return made

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        kind: TensorType | None = self.__dict__.get("_kind")
        if kind is None:
            raise ShapeError(
                tr("what the template reads here is not known"), remedy=tr("connect the port of its instances")
            )
        return kind
