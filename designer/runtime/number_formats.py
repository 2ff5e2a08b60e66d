"""Number formats that a run can emulate: results are rounded to the format and computed in float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from designer.graph.template import enclosing


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """A format by its name in torch. `largest` and `smallest` are the extreme magnitudes above 0, with subnormal numbers.

    Integers are scaled to the values of the tensor, weights symmetrically around 0 for each output channel; they have no `largest`.
    """

    name: str
    bits: int
    largest: float = 0.0
    smallest: float = 0.0

    @property
    def is_integer(self) -> bool:
        return not self.largest

    def weight_bits(self, shape: Sequence[int]) -> int:
        """The bits of weights in this format; with integers those of one dimension (biases, normalizations) have 32 bits each."""
        return prod(shape) * (FLOAT32.bits if self.is_integer and len(shape) == 1 else self.bits)


FLOAT32 = NumberFormat("float32", 32, 3.4028234663852886e38, 2.0**-149)
FLOAT16 = NumberFormat("float16", 16, 65504.0, 2.0**-24)
BFLOAT16 = NumberFormat("bfloat16", 16, 3.3895313892515355e38, 2.0**-133)
INTEGERS = tuple(NumberFormat(f"int{bits}", bits) for bits in (16, 8, 7, 6, 5, 4, 3, 2))
FORMATS = {each.name: each for each in (FLOAT32, FLOAT16, BFLOAT16, *INTEGERS)}
OF_PRECISION = {"fp32": FLOAT32, "fp16": FLOAT16, "bf16": BFLOAT16}


def format_of(layer: str, formats: Mapping[str, str], otherwise: NumberFormat) -> NumberFormat:
    """The format of a layer of an inlined network: its own, that of the innermost instance around it that has one, or `otherwise`."""
    found = next((formats[name] for name in enclosing(layer) if name in formats), None)
    return otherwise if found is None else FORMATS[found]
