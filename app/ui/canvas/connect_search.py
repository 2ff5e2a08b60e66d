"""The search that connects layers by keyboard: it lists the ports that an output can feed, or that an input can read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QWidget

from app.ui.canvas.node_look import PortLook, input_ports, output_ports
from app.ui.document.document import Document
from app.ui.widgets.search_popup import SearchMatch, SearchPopup
from designer.graph.model import Source
from designer.operators import links
from designer.operators.registry import Read
from designer.texts import tr

SHOWN = 60  # ports checked for one query


class Offer(NamedTuple):
    """A possible link. `replaces` is the current source of the input; `extra`: it adds an operand to those that have names."""

    source: Source
    consumer: str
    at: int
    text: str
    replaces: Source | None
    extra: bool = False


class ConnectSearch(SearchPopup):
    """Open inputs and nearby layers come first, extra inputs last. `chosen` emits the index of an offer."""

    def __init__(self, parent: QWidget) -> None:
        self._document: Document | None = None
        self._offers: list[Offer] = []
        super().__init__(
            "connect",
            tr("Connect"),
            tr("Connect to a layer or port..."),
            tr("No port matches."),
            self._found,
            parent,
        )

    def open_for(self, document: Document, layer: str, place: QPoint, *, outgoing: bool) -> None:
        """List the ports that the outputs of `layer` can feed, or that its inputs can read."""
        self._document = document
        offers = _leaving(document, layer) if outgoing else _arriving(document, layer)
        x, y = document.graph[layer].position

        def order(offer: Offer) -> tuple[bool, bool, int, str]:
            other = document.graph[offer.consumer if outgoing else offer.source.layer].position
            added = offer.extra and offer.replaces is None
            return added, offer.replaces is not None, abs(other[0] - x) + abs(other[1] - y), offer.text

        self._offers = sorted(offers, key=order)
        self.open_at(place)

    def offer(self, key: str) -> Offer:
        """The offer that was chosen."""
        return self._offers[int(key)]

    def _found(self, text: str) -> Iterator[SearchMatch]:
        words = text.casefold().split()
        matching = [(n, o) for n, o in enumerate(self._offers) if all(w in o.text.casefold() for w in words)]
        rows = [self._row(number, offer) for number, offer in matching[:SHOWN]]
        yield from sorted(rows, key=lambda row: not row.enabled or bool(row.tip))  # stable: matching types come first

    def _row(self, number: int, offer: Offer) -> SearchMatch:
        assert self._document is not None
        inference = self._document.inference
        link = (offer.source, offer.consumer, offer.at)
        refusal = links.refusal(inference, *link)
        misfit = "" if refusal else links.misfit(inference, *link)
        tip = tr("Cannot connect here: {reason}", reason=refusal) if refusal else misfit
        detail = tr("replaces {source}", source=str(offer.replaces)) if offer.replaces is not None else ""
        return SearchMatch(str(number), offer.text, tr("does not fit") if misfit else detail, tip, None, not refusal)


def _leaving(document: Document, layer: str) -> Iterator[Offer]:
    graph = document.graph
    sources = _sources(document, layer)
    for consumer in graph.layers.keys() - graph.upstream([layer]):
        for index, port, present in _inputs(document, consumer):
            for source, output in sources:
                start = f"{output} > " if len(sources) > 1 else ""
                if present != source:
                    yield Offer(source, consumer, index, f"{start}{consumer} · {port.name}", present, port.extra)


def _arriving(document: Document, layer: str) -> Iterator[Offer]:
    graph = document.graph
    inputs = list(_inputs(document, layer))
    for producer in graph.layers.keys() - graph.downstream([layer]):
        for source, port in _sources(document, producer):
            for index, into, present in inputs:
                if present != source:
                    yield Offer(source, layer, index, f"{producer} · {port} > {into.name}", present, into.extra)


def _sources(document: Document, layer: str) -> list[tuple[Source, str]]:
    """The outputs of a layer with their names. The first output has no port name in a link."""
    read = cast(Read, document.inference.read(layer))
    ports = output_ports(read.operator, document.registry.get(document.graph[layer].type))
    return [(Source(layer, port.name if number else ""), port.name) for number, port in enumerate(ports)]


def _inputs(document: Document, layer: str) -> Iterable[tuple[int, PortLook, Source | None]]:
    """The inputs of a layer: index, port and current source."""
    read, item = cast(Read, document.inference.read(layer)), document.graph[layer]
    for index, port in enumerate(input_ports(item, read.operator, document.registry.get(item.type))):
        yield index, port, item.inputs[index] if index < len(item.inputs) else None
