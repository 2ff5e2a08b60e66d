"""Ideas for links: what can be connected, what is surplus, where a loop can be cut."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from designer.graph import commands
from designer.graph.model import GRID, Layer, Source
from designer.graph.naming import unique_name
from designer.operators.api import Role
from designer.operators.fix_case import Case, Idea
from designer.operators.fix_texts import nearest
from designer.texts import tr

CODES = ("missing-input", "unknown-source", "unknown-port", "cycle", "shape-mismatch", "empty-tensor")
OFFERED = 3  # outputs that are suggested for an open port


def ideas(case: Case) -> Iterator[Idea]:
    """Ideas by the code of the finding."""
    layer, code = case.layer, case.finding.code
    if code in ("no-output", "only-training"):
        yield from _add_output(case)
    if layer is None or code not in CODES:
        return
    if code == "missing-input":
        yield from _close_gaps(case, layer)
        yield from _connect(case, layer)
    elif code == "unknown-source":
        yield from _meant_source(case, layer)
        yield from _connect(case, layer)
    elif code == "unknown-port":
        yield from _meant_port(case, layer)
    if code == "cycle":
        yield from _cut(case, layer)
    elif code == "unknown-source":
        yield from drops(case, layer, lambda s: s.layer not in case.graph)
    elif code == "unknown-port":
        yield from drops(case, layer, lambda s: case.inference.type_of(s) is None)


def _add_output(case: Case) -> Iterator[Idea]:
    """An output layer after a layer that nothing reads, the rightmost first."""
    cls = case.registry.get("output")
    ends = [layer for layer in case.graph if not case.graph.consumers(layer.name)]
    ends = [x for x in ends if (c := case.cls(x)) is None or c.role is not Role.LOSS]
    for layer in sorted(ends, key=lambda x: (-x.position[0], x.name)) if cls is not None else ():
        if cls is not None and next(case.outputs(layer.name), None) is not None:
            place = (layer.position[0] + 18 * GRID, layer.position[1])
            name = unique_name("output", case.graph.layers)
            made = Layer(name, "output", place, (Source(layer.name),), cls().texts(all=False))
            yield Idea(tr("Add an output after '{name}'", name=layer.name), commands.add_layer(case.graph, made))


def drops(case: Case, layer: Layer, wrong: Callable[[Source], bool] | None = None) -> Iterator[Idea]:
    """Each link into a layer removed: those that `wrong` selects, or all, the last one first."""
    for link in reversed(case.connected(layer)):
        if wrong is None or wrong(link.source):
            edit = commands.disconnect(case.graph, layer.name, link.at, close_gap=True)  # a gap would be a finding
            yield Idea(tr("Remove the connection from '{source}'", source=link.source), edit)


def _close_gaps(case: Case, layer: Layer) -> Iterator[Idea]:
    """Inputs after an open port move up."""
    if None in layer.inputs:
        inputs = tuple(s for s in layer.inputs if s is not None)
        yield Idea(tr("Move the connections up to the open port"), case.change(layer, inputs=inputs))


def _open_index(case: Case, layer: Layer) -> int | None:
    """The input that the finding is about."""
    ports, wanted = case.ports(layer), case.finding.port
    for index in range(max(len(ports), len(layer.inputs))):
        source = layer.inputs[index] if index < len(layer.inputs) else None
        name = ports[min(index, len(ports) - 1)].name if ports else ""
        lost = source is not None and source.layer not in case.graph
        if name == wanted and (source is None or lost):
            return index
    return None


def _connect(case: Case, layer: Layer) -> Iterator[Idea]:
    """Outputs that fit an open port: those that nothing reads, the nearest on the canvas first. Output layers end a network."""
    index = _open_index(case, layer)
    if index is None:
        return
    behind = case.graph.downstream([layer.name])
    read = {s.layer if not s.port else f"{s.layer}:{s.port}" for other in case.graph for s in other.inputs if s}
    free: list[tuple[float, Source]] = []
    taken: list[Source] = []
    for other in case.graph:
        cls = case.cls(other)
        if other.name in behind or (cls is not None and cls.role is Role.OUTPUT):
            continue
        for number, (port, _) in enumerate(case.outputs(other.name)):
            source = Source(other.name, port if number else "")
            if source in layer.inputs:
                continue
            if str(source) in read:
                taken.append(source)
            else:
                free.append((_distance(other, layer), source))
    chosen = _fitting(case, layer, index, (source for _, source in sorted(free)), OFFERED)
    if not chosen:
        only = _fitting(case, layer, index, taken, 2)
        chosen = only if len(only) == 1 else []
    for source in chosen:
        edit = case.change(layer, inputs=layer.with_input(index, source).inputs)
        yield Idea(tr("Connect '{source}' to '{port}'", source=source, port=case.finding.port), edit)


def _fitting(case: Case, layer: Layer, index: int, sources: Iterable[Source], most: int) -> list[Source]:
    """The first outputs that fit, at most `most`."""
    return list(islice((source for source in sources if _fits(case, layer, index, source)), most))


def _fits(case: Case, layer: Layer, index: int, source: Source) -> bool:
    """Whether a port accepts an output by rank and element type; the trial checks everything else."""
    ports, tensor = case.ports(layer), case.inference.type_of(source)
    if tensor is None or not ports:
        return False
    return not ports[min(index, len(ports) - 1)].refusal(tensor)


def _distance(a: Layer, b: Layer) -> float:
    """The distance of two layers on the canvas; a link from right to left counts as longer."""
    dx, dy = b.position[0] - a.position[0], b.position[1] - a.position[1]
    return abs(dx) + abs(dy) + (10_000 if dx < 0 else 0)


def _meant_source(case: Case, layer: Layer) -> Iterator[Idea]:
    """The layer whose name is most similar to the missing one."""
    behind = case.graph.downstream([layer.name])
    names = [n for n in case.graph.layers if n not in behind]
    for link in case.connected(layer):
        if link.source.layer not in case.graph:
            for name in nearest(link.source.layer, names):
                source = Source(
                    name, link.source.port if case.inference.type_of(Source(name, link.source.port)) else ""
                )
                edit = case.change(layer, inputs=layer.with_input(link.at, source).inputs)
                yield Idea(tr("Read '{source}' instead of '{missing}'", source=source, missing=link.source), edit)


def _meant_port(case: Case, layer: Layer) -> Iterator[Idea]:
    """Another output of the same layer: one with a similar name, otherwise each."""
    for link in case.connected(layer):
        if link.type is not None or link.source.layer not in case.graph:
            continue
        ports = [port for port, _ in case.outputs(link.source.layer)]
        for port in nearest(link.source.port, ports) or ports[:OFFERED]:
            source = replace_port(link.source, port, ports)
            edit = case.change(layer, inputs=layer.with_input(link.at, source).inputs)
            yield Idea(tr("Read the output '{port}' of '{layer}'", port=port, layer=source.layer), edit)


def replace_port(source: Source, port: str, ports: list[str]) -> Source:
    """Another output of the same layer; the first one has no name."""
    return Source(source.layer, "" if ports and port == ports[0] else port)


def _cut(case: Case, layer: Layer) -> Iterator[Idea]:
    """Each link of the loop that ends at the layer, removed; a required port then stays open."""
    loop = case.graph.downstream([layer.name])
    for link in case.connected(layer):
        if link.source.layer not in loop:
            continue
        for close in (True, False):
            edit = commands.disconnect(case.graph, layer.name, link.at, close_gap=close)
            yield Idea(
                tr("Remove the connection from '{source}'", source=link.source),
                replace(edit, title="Fix"),
                layer.name,
            )
