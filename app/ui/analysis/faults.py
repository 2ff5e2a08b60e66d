"""Values that are NaN or infinite: asks the engine, once values rest, which layer made them first."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from app.engine.protocol import TraceNonfiniteRequest, TraceReply
from app.ui.engine.analysis import AnalysisController
from app.ui.engine.call import Findings
from app.ui.engine.latest_call import LatestCall
from designer.texts import tr
from designer.units import digits

REST = 200  # ms


class Faults(QObject):
    """`culprit` made them first, empty: not known. `text` is one sentence about it, `layers` all that are known to hold some."""

    changed = Signal()

    def __init__(self, analysis: AnalysisController, parent: QObject) -> None:
        super().__init__(parent)
        self._analysis = analysis
        self.culprit = ""
        self.text = ""
        self.layers: dict[str, str] = {}
        self._call = LatestCall[TraceReply](self)
        self._rest = QTimer(self, singleShot=True, interval=REST, timeout=self._ask)
        analysis.result_changed.connect(self._on_result)

    def _on_result(self) -> None:
        result = self._analysis.result
        if result is None or not result.nonfinite:
            self._rest.stop()
            self._call.cancel()
            self._set("", "", {})
            return
        if result.coarse:
            return
        known = {name.partition(":")[0]: _share(share) for name, share in result.nonfinite.items()}
        if self.culprit:
            known[self.culprit] = self.layers.get(self.culprit, "")
        text = self.text or tr(
            "Values that are NaN or infinite were computed. The layer that made them is being looked for."
        )
        self._set(self.culprit, text, known)
        self._rest.start()

    def _ask(self) -> None:
        result = self._analysis.result
        if result is not None and result.nonfinite:
            self._call.ask(self._analysis.engine, TraceNonfiniteRequest(), self._done, self._failed)

    def _done(self, reply: TraceReply) -> None:
        result = self._analysis.result
        if result is None or not result.nonfinite:
            return
        if not reply.layer:
            self._set(
                "", tr("Values that are NaN or infinite were computed; the layer that made them was not found."), {}
            )
            return
        kind = tr("NaN") if reply.kind == "nan" else tr("infinity")
        share = _share(reply.share)
        text = tr("{kind} is first made by '{layer}': {share}.", kind=kind, layer=reply.layer, share=share)
        note = reply.note
        known = {name.partition(":")[0]: _share(part) for name, part in result.nonfinite.items()}
        self._set(reply.layer, f"{text} {note[:1].upper()}{note[1:]}".strip(), {**known, reply.layer: share})

    def _failed(self, found: Findings) -> None:
        if found[0].code not in ("engine-crashed", "cancelled"):
            self._set("", f"{found[0].message}. {found[0].remedy}".strip(), self.layers)

    def _set(self, culprit: str, text: str, layers: dict[str, str]) -> None:
        if (culprit, text, layers) != (self.culprit, self.text, self.layers):
            self.culprit, self.text, self.layers = culprit, text, layers
            self.changed.emit()


def _share(share: float) -> str:
    return tr("{percent} % of its values are NaN or infinite", percent=digits(share * 100))
