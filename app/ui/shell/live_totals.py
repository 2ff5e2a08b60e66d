"""Cost totals of the network in the status bar, updated while it is edited."""

from __future__ import annotations

from PySide6.QtCore import QElapsedTimer, QObject, QTimer, Signal

from app.ui.document.document import Document
from app.ui.engine.context import Context
from designer.graph.edits import ChangeSet
from designer.operators.live_cost import LiveCost, Total
from designer.texts import tr, trn
from designer.units import MODELLED_SIGN, binary, count, modelled, short_count, si

SLICE_MS = 8  # time budget for counting layers per event loop turn
AT_ONCE = 32


class LiveTotals(QObject):
    """Follows the open document. `changed` carries a text and its explanation, both empty for an empty network.

    Layers are counted in slices between events, so that opening and typing stay responsive.
    """

    changed = Signal(str, str)

    def __init__(self, context: Context, parent: QObject | None = None) -> None:
        super().__init__(parent or context)
        self._document: Document | None = None
        self._live: LiveCost | None = None
        self._timer = QTimer(self, interval=0, timeout=self._count)
        context.root_changed.connect(self._watch)
        if context.has_document:
            self._watch(context.root)

    @property
    def total(self) -> Total | None:
        """The current totals; None while layers are still being counted."""
        if self._live is None or self._document is None or self._live.waiting:
            return None
        return self._live.total(self._document.training)

    def _watch(self, document: Document) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._on_change)
            self._document.states_changed.disconnect(self._on_states)
        self._document, self._live = document, LiveCost(document.inference)
        document.changed.connect(self._on_change)
        document.states_changed.connect(self._on_states)
        self._timer.start()

    def _on_change(self, change: object) -> None:
        if self._live is not None and isinstance(change, ChangeSet):
            self._live.note(change.computed | change.removed)
            self._timer.start()

    def _on_states(self, names: object) -> None:
        if self._live is not None and isinstance(names, frozenset):
            self._live.note(names)
            self._timer.start()

    def _count(self) -> None:
        if self._live is None or self._document is None:
            return
        clock = QElapsedTimer()
        clock.start()
        while self._live.count(AT_ONCE):
            if clock.elapsed() >= SLICE_MS:
                return  # continued in the next event loop turn
        self._timer.stop()
        total = self._live.total(self._document.training)
        self.changed.emit(short_text(total), explanation(total, len(self._document.training)))


def short_text(total: Total) -> str:
    """`~12.7 GFLOP · 260,163 parameters · ~41.3 MiB`; empty for a network without layers."""
    if total.layers == 0:
        return ""
    return tr(
        "{flops} · {learned} parameters · {memory}",
        flops=modelled(total.flops, si(total.flops, "FLOP")),
        learned=short_count(total.learned),
        memory=modelled(total.memory, binary(total.memory)),
    )


def explanation(total: Total, training: int) -> str:
    """The tooltip: what the totals include and how they are computed."""
    lines = [
        tr(
            "{flops}: operations for batch size 1 at the sizes of the input layers. Two per multiply-add of "
            "convolutions and matrix products, none for element-wise operations, as torch's FLOP counter does.",
            flops=modelled(total.flops, si(total.flops, "FLOP")),
        ),
        tr(
            "{learned} learned parameters. Weights shared by the instances of a template count once.",
            learned=count(total.learned),
        ),
        tr(
            "{memory}: {weights} of weights and {outputs} of layer outputs in FP32. An engine that frees "
            "tensors early needs less.",
            memory=modelled(total.memory, binary(total.memory)),
            weights=binary(total.weights),
            outputs=binary(total.outputs),
        ),
        tr(
            "{sign} marks values computed from the operator declarations. The Profile workspace shows measured values.",
            sign=MODELLED_SIGN,
        ),
    ]
    if training:
        lines.append(tr("The training branch ({count} layers) is not included.", count=training))
    if total.unknown:
        lines.append(
            trn(
                "{count} layer with unknown shapes is not included.",
                "{count} layers with unknown shapes are not included.",
                total.unknown,
            )
        )
    return "\n".join(lines)
