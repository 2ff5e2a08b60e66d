"""What holds after every gesture: the graph is whole, and what the canvas knows and shows is the graph's."""

from __future__ import annotations

from app.ui.canvas.frames import FrameItem
from app.ui.canvas.links import LinkItem
from app.ui.canvas.node import LayerItem
from app.ui.shell.window import MainWindow
from designer.graph.graph import Graph


def check_graph(graph: Graph) -> None:
    """Consumers are those that read, no loop is there, names are keys."""
    consumers: dict[str, set[str]] = {}
    for name, layer in graph.layers.items():
        assert layer.name == name
        for producer in layer.producers():
            consumers.setdefault(producer, set()).add(name)
    for name in {*graph.layers, *consumers}:
        assert set(graph.consumers(name)) == consumers.get(name, set())
    assert graph.order()[1] == []


def check_canvas(window: MainWindow) -> None:
    """Records and items are those of the shown graph."""
    context, projection, viewer = window.context, window.canvas.projection, window.canvas.viewer
    graph = context.document.graph
    assert projection.document is context.document
    assert set(projection.layers) == set(graph.layers)
    wires = {(w.source.layer, w.source.port, *w.key): w for w in projection.links}
    assert wires.keys() == {link for link in graph.links() if link[0] in graph}
    items = [item for item in viewer.scene().items() if isinstance(item, LayerItem)]
    assert len({item.layer for item in items}) == len(items)
    for item in items:
        name = item.layer
        assert (item.pos().x(), item.pos().y()) == graph[name].position
        look, layout = projection.entry(name).seen
        assert item.look == look
        assert item.layout == layout
    links = {item for item in viewer.scene().items() if isinstance(item, LinkItem)}
    assert links == {w.item for w in wires.values() if w.item is not None}
    for (producer, port, consumer, index), wire in wires.items():
        link = wire.item
        if link is None:
            assert not {producer, consumer} & projection.whole or projection.ends(wire) is None
            continue
        assert link.key == (consumer, index)
        outputs = projection[producer].outputs
        assert link.source is (next(d for d in outputs if d.look.name == port) if port else outputs[0])
        assert link.target is projection[consumer].inputs[index]
        assert link in link.source.connected_pipes
        assert link in link.target.connected_pipes
        assert link.path().pointAtPercent(0) == link.source.center()
    assert set(viewer.selected_names()) == set(context.selection)
    assert set(context.selection) <= set(graph.layers)
    shown = [item.frame for item in viewer.scene().items() if isinstance(item, FrameItem)]
    assert len(shown) == len(graph.frames)
    assert set(shown) == set(graph.frames.values())
    assert not viewer.busy
