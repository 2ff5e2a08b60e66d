"""Memory of a run by the shapes of its tensors: which exist during each step, if each is freed after its last use."""

from __future__ import annotations

from collections.abc import Sequence

from designer.profiling.cost import CostTable

WEIGHTS = "(weights)"


def live_tensors(table: CostTable, steps: Sequence[tuple[str, ...]]) -> list[dict[str, int]]:
    """Bytes by layer of the outputs that exist during each step, and of all weights as `(weights)`.

    Layers that no step ran pass their input on without memory, except the inputs of the network. Tensors inside a fused step do
    not exist.
    """
    when = {name: number for number, step in enumerate(steps) for name in step}
    last = len(steps) - 1
    held: list[dict[str, int]] = [{} for _ in steps]
    for name, row in table.rows.items():
        readers = [when[r] for r in _readers(table, name, when)]
        begin = when.get(name, 0)
        if name not in when and row.sources:
            continue
        if name in when and readers and all(reader == begin for reader in readers):
            continue  # inside a fused step
        end = max(readers, default=last)
        bytes_ = sum(table.bytes_of(kind) for kind in row.outputs)
        for number in range(begin, end + 1):
            held[number][name] = bytes_
    weights = sum({table.graph[name].weights_name: row.weight_bytes for name, row in table.rows.items()}.values())
    for tensors in held:
        if weights:
            tensors[WEIGHTS] = weights
    return held


def _readers(table: CostTable, name: str, when: dict[str, int]) -> list[str]:
    """The layers that read the outputs of `name` in some step, through layers that no step ran."""
    found: list[str] = []
    seen = {name}
    queue = list(table.graph.consumers(name))
    while queue:
        reader = queue.pop()
        if reader in seen:
            continue
        seen.add(reader)
        if reader in when:
            found.append(reader)
        else:
            queue += table.graph.consumers(reader)
    return found
