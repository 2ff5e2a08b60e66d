"""The valid sizes of a network, and the edit after which all are valid, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from designer.graph.edits import Edit
from designer.operators.size_contract import SizeContract
from designer.operators.size_fix import is_free, obstacle


def contract_lines(contract: SizeContract) -> Iterator[str]:
    """All that a contract says."""
    values: Any = contract.as_dict()
    for item in values.pop("inputs"):
        yield f"  {item['layer']} with {item['with_inputs']}"
        for axis in ("height", "width"):
            rule = item[axis]
            causes = rule.pop("rules")
            yield f"    {axis}: {rule}"
            yield from (f"      {cause}" for cause in causes)
    yield from (f"  {name}: {value}" for name, value in values.items() if value)
    yield f"  free: {is_free(contract)}, obstacle: {obstacle(contract)}"


def edit_lines(edit: Edit) -> Iterator[str]:
    """The layers after an edit."""
    for name, (_, after) in sorted(edit.layers.items()):
        if after is not None:
            yield f"  {name} = {after.type}({', '.join(map(str, after.inputs))}) {dict(after.params)}"
