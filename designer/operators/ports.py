"""Inputs and outputs of operators, and whether what arrives fits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from designer.graph.types import DataType, ShapeError, TensorType


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output. `rank` and `dtypes` restrict what may be connected; a variadic port takes any number."""

    name: str
    rank: int | tuple[int, ...] | None = None
    dtypes: tuple[DataType, ...] = ()
    variadic: bool = False
    optional: bool = False
    doc: str = ""

    def refusal(self, tensor: TensorType) -> str:
        """Why the port does not take a tensor of this rank or element type; empty when it does."""
        ranks = (self.rank,) if isinstance(self.rank, int) else self.rank
        if ranks is not None and tensor.rank not in ranks:
            return f"'{self.name}' needs rank {' or '.join(map(str, ranks))}, not {tensor} (rank {tensor.rank})"
        if self.dtypes and tensor.dtype not in self.dtypes:
            return f"'{self.name}' needs {' or '.join(d.value for d in self.dtypes)}, not {tensor.dtype.value}"
        return ""


def check_ports(title: str, ports: Sequence[Port], inputs: Sequence[TensorType]) -> None:
    """Raise ShapeError unless `inputs` fit `ports` in number, rank and element type."""
    needed = sum(1 for p in ports if not p.optional)
    if len(inputs) < needed:
        missing = ports[len(inputs)]
        raise ShapeError(
            f"{title} needs its input '{missing.name}'",
            port=missing.name,
            remedy=f"connect '{missing.name}'",
            code="missing-input",
        )
    if len(inputs) > len(ports) and not (ports and ports[-1].variadic):
        raise ShapeError(
            f"{title} takes {len(ports)} input{'s' if len(ports) != 1 else ''}, not {len(inputs)}",
            remedy="remove the surplus connection",
        )
    for index, tensor in enumerate(inputs):
        port = ports[min(index, len(ports) - 1)]
        if any(isinstance(dim, int) and dim < 1 for dim in tensor.shape):
            raise ShapeError(
                f"{title} gets an empty tensor of {tensor} at '{port.name}'",
                port=port.name,
                remedy="make what comes before it at least 1 in every dimension",
            )
        ranks = (port.rank,) if isinstance(port.rank, int) else port.rank
        if ranks is not None and tensor.rank not in ranks:
            wanted = " or ".join(str(r) for r in ranks)
            raise ShapeError(
                f"{title} needs rank {wanted} at '{port.name}', not {tensor} (rank {tensor.rank})",
                port=port.name,
                remedy="put a Reshape, Flatten, Squeeze or Unsqueeze before it, or connect another layer",
            )
        if port.dtypes and tensor.dtype not in port.dtypes:
            wanted = " or ".join(d.value for d in port.dtypes)
            raise ShapeError(
                f"{title} needs {wanted} at '{port.name}', not {tensor.dtype.value}",
                port=port.name,
                remedy="put a Convert type layer before it, or connect another layer",
            )
