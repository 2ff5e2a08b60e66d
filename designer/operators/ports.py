"""Inputs and outputs of operators, and the tensors that they accept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from designer.graph.types import DataType, ShapeError, TensorType
from designer.texts import tr


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output. `rank` and `dtypes` restrict what can be connected; a variadic port accepts any number of links."""

    name: str
    rank: int | tuple[int, ...] | None = None
    dtypes: tuple[DataType, ...] = ()
    variadic: bool = False
    optional: bool = False
    doc: str = ""

    def refusal(self, tensor: TensorType) -> str:
        """Why the port rejects a tensor, as a clause that follows the operator ("needs rank 4 ..."); empty if it accepts it.

        Only rank and element type are checked here; the operator checks the sizes.
        """
        if not self._takes_rank(tensor):
            ranks = tr(" or ").join(map(str, self.ranks))
            return tr(
                "needs rank {ranks} at '{name}', not {tensor} (rank {rank})",
                ranks=ranks,
                name=self.name,
                tensor=tensor,
                rank=tensor.rank,
            )
        if self.dtypes and tensor.dtype not in self.dtypes:
            return tr(
                "needs {dtypes} at '{name}', not {value}",
                dtypes=" or ".join(d.value for d in self.dtypes),
                name=self.name,
                value=tensor.dtype.value,
            )
        return ""

    def check(self, title: str, tensor: TensorType) -> None:
        """Raise ShapeError, on behalf of the operator `title`, unless the port accepts the tensor."""
        refusal = self.refusal(tensor)
        if refusal:
            between = "Convert type layer" if self._takes_rank(tensor) else "Reshape, Flatten, Squeeze or Unsqueeze"
            raise ShapeError(
                f"{title} {refusal}",
                port=self.name,
                remedy=tr("put a {between} before it, or connect another layer", between=between),
            )

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that the port accepts; empty if it accepts any."""
        return (self.rank,) if isinstance(self.rank, int) else self.rank or ()

    def _takes_rank(self, tensor: TensorType) -> bool:
        return not self.ranks or tensor.rank in self.ranks


def check_ports(title: str, ports: Sequence[Port], inputs: Sequence[TensorType]) -> None:
    """Raise ShapeError unless `inputs` fit `ports` in number, rank and element type."""
    needed = sum(1 for p in ports if not p.optional)
    if len(inputs) < needed:
        missing = ports[len(inputs)]
        raise ShapeError(
            tr("{title} needs its input '{name}'", title=title, name=missing.name),
            port=missing.name,
            remedy=tr("connect '{name}'", name=missing.name),
            code="missing-input",
        )
    if len(inputs) > len(ports) and not (ports and ports[-1].variadic):
        raise ShapeError(
            tr(
                "{title} takes {count} input{part}, not {given}",
                title=title,
                count=len(ports),
                part="s" if len(ports) != 1 else "",
                given=len(inputs),
            ),
            remedy=tr("remove the extra connection"),
        )
    for index, tensor in enumerate(inputs):
        port = ports[min(index, len(ports) - 1)]
        if any(isinstance(dim, int) and dim < 1 for dim in tensor.shape):
            raise ShapeError(
                tr("{title} gets an empty tensor of {tensor} at '{name}'", title=title, tensor=tensor, name=port.name),
                port=port.name,
                remedy=tr("change the layers before it so that every dimension is at least 1"),
            )
        port.check(title, tensor)
