"""A port at which a subnetwork gives a result."""

from __future__ import annotations

from collections.abc import Sequence

from designer.operators import api as op


class TemplateOutput(
    op.Operator,
    type="template_output",
    title="Template output",
    category=op.Category.DEVELOPMENT,
    role=op.Role.TEMPLATE,
    synonyms=("port", "subnetwork output", "result", "return"),
):
    """An output of a template: what it reads is what an instance of the template gives at the port of this name."""

    examples = (op.Example((op.image(),)),)

    index: int = op.param(default=0, min=0, max=999, doc="Place among the ports; ports of one place are in name order.")

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchInput(0)
