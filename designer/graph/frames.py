"""Edits of comment frames, and of the layers and frames collapsed into them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from designer.graph.commands import check_text, collapse_layers, move_layers
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer
from designer.graph.naming import unique_name
from designer.texts import tr, trn

Members = Callable[[str], tuple[list[str], list[str]]]  # the layers and the frames inside a frame


def frame_of(graph: Graph, layer: Layer) -> Frame | None:
    """The smallest frame that a layer is folded into or that contains its position."""
    if layer.folded:
        return graph.frames.get(layer.folded)
    x, y = layer.position
    around = [
        frame
        for frame in graph.frames.values()
        if frame.rect[0] <= x < frame.rect[0] + frame.rect[2] and frame.rect[1] <= y < frame.rect[1] + frame.rect[3]
    ]
    return min(around, key=lambda frame: frame.rect[2] * frame.rect[3], default=None)


def hiding(graph: Graph, layer: Layer) -> list[str]:
    """The collapsed frames that hide a layer, innermost first."""
    found: list[str] = []
    frame = graph.frames.get(layer.folded)
    while frame is not None and frame.collapsed and frame.id not in found:
        found.append(frame.id)
        frame = graph.frames.get(frame.folded)
    return found


def set_frame(graph: Graph, frame_id: str, frame: Frame | None) -> Edit:
    """Add, change or remove (None) a comment frame."""
    if frame is not None:
        check_text(f"{frame.title}{frame.text}{frame.color}", "frame", None)
    return Edit(tr("Change frame"), frames={frame_id: (graph.frames.get(frame_id), frame)})


def add_frame(graph: Graph, rect: tuple[int, int, int, int], title: str = "Comment") -> Edit:
    """Add a comment frame under an unused id."""
    frame_id = unique_name("frame", graph.frames)
    return replace(set_frame(graph, frame_id, Frame(frame_id, title, rect=rect)), title=tr("Add frame"))


def write_frame(graph: Graph, frame_id: str, content: str, least: int = 0) -> Edit:
    """Change title and text of a frame: the first line is the title. The frame grows to the height `least`."""
    title, _, text = content.partition("\n")
    frame = graph.frames[frame_id]
    x, y, width, height = frame.rect
    rect = (x, y, width, max(height, least))
    return set_frame(graph, frame_id, replace(frame, title=title.strip(), text=text.strip(), rect=rect))


def move_frame(
    graph: Graph,
    frame_id: str,
    rect: tuple[int, int, int, int],
    places: Mapping[str, tuple[int, int]],
    within: Collection[str] = (),
) -> Edit:
    """Change the rect of a frame and the positions of the layers and frames (`within`) that move with it."""
    edit = set_frame(graph, frame_id, replace(graph.frames[frame_id], rect=rect))
    old = graph.frames[frame_id].rect
    dx, dy = rect[0] - old[0], rect[1] - old[1]
    inside = {key for key in (frame_id, *within) if graph.frames[key].collapsed}
    while more := {key for key, frame in graph.frames.items() if frame.folded in inside} - inside:
        inside |= more
    inner = {
        key: (graph.frames[key], replace(graph.frames[key], rect=(x + dx, y + dy, width, height)))
        for key in (inside | set(within)) - {frame_id}
        for x, y, width, height in (graph.frames[key].rect,)
    }
    return replace(move_layers(graph, places), title=tr("Move frame"), frames={**edit.frames, **inner})


def remove_frames(graph: Graph, ids: Sequence[str]) -> Edit:
    """Remove frames; the layers in them stay."""
    frames: dict[str, tuple[Frame | None, Frame | None]] = {i: (graph.frames[i], None) for i in ids}
    held = {layer.name: layer for layer in graph if layer.folded in frames}
    shown = {name: (layer, layer.folded_into("")) for name, layer in held.items()}
    for key, frame in graph.frames.items():
        if frame.folded in frames and key not in frames:
            frames[key] = (frame, replace(frame, folded=""))
    return Edit(trn("Delete frame", "Delete {count} frames", len(ids)), shown, frames=frames)


def collapse(graph: Graph, names: Sequence[str], frames: Sequence[str], members: Members) -> Edit:
    """Collapse layers and frames to their titles, or expand them if all are collapsed."""
    fold = not (all(graph[n].collapsed for n in names) and all(graph.frames[f].collapsed for f in frames))
    edit = collapse_layers(graph, names, fold)
    changed: dict[str, tuple[Frame | None, Frame | None]] = {}
    layers = dict(edit.layers)
    held: set[tuple[type, str]] = set()
    # the smallest first, so that a frame inside of another one keeps what is in it, in any order of selection
    for key in sorted(frames, key=lambda f: graph.frames[f].rect[2] * graph.frames[f].rect[3]):
        if graph.frames[key].collapsed == fold:
            continue
        changed[key] = (graph.frames[key], replace(graph.frames[key], collapsed=fold))
        inside, others = members(key)
        into = key if fold else ""
        for name in inside:
            if fold and (Layer, name) in held:
                continue
            held.add((Layer, name))
            layer = layers.get(name, (None, graph[name]))[1]
            assert layer is not None
            layers[name] = (graph[name], layer.folded_into(into))
        for other in others:
            if fold and (Frame, other) in held:
                continue
            held.add((Frame, other))
            before = graph.frames[other]
            changed[other] = (before, replace(changed.get(other, (None, before))[1] or before, folded=into))
    title = edit.title
    if not names and fold:
        title = trn("Collapse frame", "Collapse {count} frames", len(frames))
    elif not names:
        title = trn("Expand frame", "Expand {count} frames", len(frames))
    return replace(edit, title=title, layers=layers, frames=changed)
