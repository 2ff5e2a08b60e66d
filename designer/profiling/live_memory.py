"""Memory of a run by the shapes of its tensors: which exist during each step, if each is freed after its last use."""

from __future__ import annotations

from collections.abc import Sequence

from designer.profiling.cost import CostTable

WEIGHTS = "(weights)"


def live_tensors(table: CostTable, steps: Sequence[tuple[str, ...]]) -> list[dict[str, int]]:
    """Bytes by layer of the outputs that exist during each step, and of all weights as `(weights)`.

    Layers that no step ran pass their input on without memory, except the inputs of the network. Tensors inside a fused step do
    not exist. Results of the network exist until the end.
    """
    when = {name: number for number, step in enumerate(steps) for name in step}
    last = len(steps) - 1
    held: list[dict[str, int]] = [{} for _ in steps]
    for name, row in table.rows.items():
        readers = _readers(table, name, when, len(steps))
        begin = when.get(name, 0)
        if name not in when and row.sources:
            continue
        if name in when and readers and all(reader == begin for reader in readers):
            continue  # inside a fused step
        end = min(max(readers, default=last), last)
        bytes_ = sum(table.bytes_of(kind) for kind in row.outputs)
        for number in range(begin, end + 1):
            held[number][name] = bytes_
    weights = sum({table.graph[name].weights_name: row.weight_bytes for name, row in table.rows.items()}.values())
    for tensors in held:
        if weights:
            tensors[WEIGHTS] = weights
    return held


def _readers(table: CostTable, name: str, when: dict[str, int], after: int) -> list[int]:
    """The steps that read the outputs of `name`, through layers that no step ran; `after` if it is a result of the network."""
    found: list[int] = []
    seen = {name}
    queue = list(table.graph.consumers(name))
    while queue:
        reader = queue.pop()
        if reader in seen:
            continue
        seen.add(reader)
        if reader in when:
            found.append(when[reader])
        elif table.graph[reader].type == "output":
            found.append(after)
        else:
            queue += table.graph.consumers(reader)
    return found
