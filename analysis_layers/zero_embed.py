"""Ablation of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from designer.operators import api as op
from designer.operators.shapes import known
from designer.texts import tr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


class ZeroEmbed(
    op.Operator,
    type="zero_embed",
    title="Zero embed",
    category=op.Category.ANALYSIS,
    role=op.Role.ANALYSIS,
    synonyms=("ablation", "mute channels", "zero channels", "solo"),
):
    """Set channels to zero to see the effect of removing them, or keep only these."""

    inputs = (op.Port("x", rank=(2, 3, 4, 5), dtypes=op.FLOATS),)

    channels: tuple[int, ...] = op.param(default=(0,), min=0, max=1_000_000, doc="Channel indices, starting at 0.")
    keep_only: bool = op.param(default=False, doc="Keep these channels and set all others to zero.")
    examples = (
        op.Example((op.image(4),), {"channels": (1, 3)}),
        op.Example((op.image(4),), {"keep_only": True}, "one alone"),
    )

    def infer(self, inputs: Sequence[op.TensorType]) -> op.TensorType:
        count = known(inputs[0], 1)
        for channel in self.channels:
            if channel >= count:
                raise op.ShapeError(
                    tr("channel {channel} is out of range for {count} channels", channel=channel, count=count),
                    port="x",
                    remedy=tr("choose a smaller index"),
                )
        return inputs[0]

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        import numpy as np

        chosen = list(self.channels)
        if self.keep_only:
            result = np.zeros_like(inputs[0])
            result[:, chosen] = inputs[0][:, chosen]
        else:
            result = inputs[0].copy()
            result[:, chosen] = 0
        return (result,)

    def options(self) -> tuple[op.Option, ...]:
        return (op.Option("channels", "text", "Channels"), op.Option("keep_only", "bool", "Keep only these"))

    def summary(self) -> str:
        shown = ",".join(str(channel) for channel in self.channels[:8])
        return f"{'only ' if self.keep_only else 'without '}{shown}"
