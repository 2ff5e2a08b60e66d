"""A port at which a subnetwork gives a result."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators.api import (
    Category,
    Example,
    Operator,
    Role,
    TensorType,
    TorchExpr,
    TorchInput,
    image,
    param,
)


class TemplateOutput(
    Operator,
    type="template_output",
    title="Template output",
    category=Category.DEVELOPMENT,
    role=Role.TEMPLATE,
    synonyms=("port", "subnetwork output", "result", "return"),
):
    """An output of a template: what it reads is what an instance of the template gives at the port of this name."""

    examples = (Example((image(),)),)

    index: int = param(default=0, min=0, max=999, doc="Place among the ports; ports of one place are in name order.")

    def infer(self, inputs: Sequence[TensorType]) -> TensorType:
        return inputs[0]

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr:
        return TorchInput(0)
