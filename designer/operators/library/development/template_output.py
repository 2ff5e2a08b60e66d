"""Template outputs."""

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
    """An output port of a template: its input is the output of an instance at the port of this name."""

    examples = (op.Example((op.image(),)),)

    index: int = op.param(
        default=0, min=0, max=999, doc="Index among the ports; ports with the same index are sorted by name."
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        return inputs[0]

    def torch(self, inputs: Sequence[op.TensorType]) -> op.TorchExpr:
        return op.TorchInput(0)
