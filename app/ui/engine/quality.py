"""PSNR and SSIM of what is shown, measured in a thread: only the latest result waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.reports.quality import Quality
from app.ui.engine.analysis import AnalysisController
from app.ui.engine.result import AnalysisResult
from app.ui.widgets.background import Background


def qualities(analysis: AnalysisController) -> dict[str, Quality]:
    """By output layer, what of the present result can be measured against its clean image."""
    result = analysis.result
    if result is None or result.coarse:
        return {}
    found = {}
    for item in analysis.restorations():
        made, clean = (result.captures.get(str(source)) for source in (item.result, item.clean))
        size = result.outputs.get(item.output)
        if made is not None and clean is not None and size is not None and made.shape == clean.shape and made.ndim == 4:
            height, width = size.shape[-2:]
            images = (made[..., :height, :width], clean[..., :height, :width])  # captures have the padding of `tiling`
            found[item.output] = Quality(str(item.result), str(item.clean), images)
    return found


class LiveQuality(QObject):
    """`texts` are by output layer; while not `current` they are about an earlier result, and will follow."""

    changed = Signal()

    def __init__(self, analysis: AnalysisController, parent: QObject) -> None:
        super().__init__(parent)
        self._analysis = analysis
        self._measured: AnalysisResult | None = None  # the result that was measured last, or is now
        self._told: AnalysisResult | None = None  # the one that `texts` are about
        self.texts: Mapping[str, str] = {}
        self._job = Background(self)
        self._job.done.connect(self._on_done)
        self._job.failed.connect(lambda _: self._on_done({}))
        analysis.result_changed.connect(self._start)

    def _start(self) -> None:
        if self._job.running:
            self.changed.emit()
            return  # `_on_done` goes on with the latest
        found = qualities(self._analysis)
        self._measured = self._analysis.result
        if found:
            self._job.start(lambda: {output: quality.text() for output, quality in found.items()})
            self.changed.emit()
        else:
            self._show({})

    def _on_done(self, texts: Any) -> None:
        self._show(texts)
        if not self.current:
            self._start()

    def _show(self, texts: Mapping[str, str]) -> None:
        self.texts, self._told = texts, self._measured
        self.changed.emit()

    @property
    def current(self) -> bool:
        return self._told is self._analysis.result
