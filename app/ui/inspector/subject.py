"""Brings the tensor that the Channel Inspector shows: what a layer makes, what it has learned, or a gradient."""

from __future__ import annotations

from enum import StrEnum
from typing import Any
from weakref import ref

from numpy.typing import NDArray
from PySide6.QtCore import QObject, QTimer, Signal

from app.engine.protocol import GradientReply, GradientRequest, WeightsReply, WeightsRequest
from app.ui.engine.analysis import AnalysisController
from app.ui.engine.call import Findings
from app.ui.engine.latest_call import LatestCall
from app.ui.engine.result import Phase
from app.ui.widgets.sentences import placed_text
from designer.graph.model import Source
from designer.texts import tr
from designer.units import dims_text

REST = 200  # ms without a new result after which a gradient is asked for: it costs more than a run

PROBLEMS = (Phase.FAILED, Phase.BLOCKED, Phase.WEIGHTS, Phase.STOPPED)

At = tuple[int | None, int, int]  # channel (None: all of them), y, x


class Kind(StrEnum):
    OUTPUT = "output"
    WEIGHTS = "weights"
    GRADIENT = "gradient"


class Subject(QObject):
    """`value` is the tensor, None while there is none; `message` then says why. `changed` follows both."""

    changed = Signal()

    def __init__(self, analysis: AnalysisController, parent: QObject) -> None:
        super().__init__(parent)
        self._analysis = analysis
        self.source = ""
        self.kind = Kind.OUTPUT
        self.tensor = ""  # of the weights, or the input layer of the gradient
        self.at: At | None = None  # what the gradient is of; None: the sum of the tensor
        self.value: NDArray[Any] | None = None
        self.message = ""
        self.note = ""
        self.weights: dict[str, NDArray[Any]] = {}
        self._active = False
        self._call = LatestCall[WeightsReply | GradientReply](self)
        self._question: tuple[object, ...] = ()  # what was asked last, and what its answer depends on
        self._crashed = False  # `message` is of an engine that has ended
        self._rest = QTimer(self, singleShot=True, interval=REST, timeout=self._ask)
        analysis.result_changed.connect(self._on_result)

    @property
    def layer(self) -> str:
        return Source.parse(self.source).layer

    @property
    def key(self) -> str:
        """What this tensor is called among others: settings are kept by it, and files named after it."""
        if self.kind is Kind.WEIGHTS:
            return f"{self.layer} {self.tensor}".strip()
        return f"{self.source} gradient {self._to}".strip() if self.kind is Kind.GRADIENT else self.source

    @property
    def title(self) -> str:
        """The same in words."""
        if self.kind is not Kind.GRADIENT:
            return self.key
        if self.at is None:
            return f"{tr('gradient of the sum of {tensor}', tensor=self.source)} {self._to}".strip()
        channel, y, x = self.at
        text = tr("gradient of {tensor}  channel {c}  x {x}  y {y}", tensor=self.source, c=channel, x=x, y=y)
        return f"{text}  {self._to}".strip()

    @property
    def _to(self) -> str:
        """Which input the gradient is of, where there are several."""
        several = self.tensor and len(self._analysis.inputs.layers()) > 1
        return tr("to {input}", input=self.tensor) if several else ""

    def set_active(self, active: bool) -> None:
        """Whether somebody looks: only then anything is asked for."""
        if active != self._active:
            self._active = active
            if active:
                self._on_result()

    def choose(self, source: str, kind: Kind | None = None) -> None:
        """Another layer or kind; the value of the one before is gone."""
        if kind is None:
            kind = self.kind
        if (source, kind) == (self.source, self.kind):
            return
        if source != self.source or kind is not self.kind:
            self.tensor = ""
        self.source, self.kind = source, kind
        self.at = None
        self.forget()
        self._on_result()

    def rename(self, source: str) -> None:
        """The same tensor under another name."""
        self.source = source

    def choose_tensor(self, name: str) -> None:
        self.tensor = name
        if self.kind is Kind.WEIGHTS and name in self.weights:
            self.value = self.weights[name]
            self.changed.emit()
        else:
            self.forget()
            self._on_result()

    def choose_at(self, at: At | None) -> None:
        """The gradient of one element instead of the whole sum."""
        if at != self.at:
            self.at = at
            if self.kind is Kind.GRADIENT:
                self._ask()

    def choices(self) -> list[tuple[str, str]]:
        """(name, title) of the tensors that there are of this kind, where one has to be chosen."""
        if self.kind is Kind.WEIGHTS:
            shapes = {name: dims_text(array.shape) for name, array in self.weights.items()}
            return [(name, f"{name}  {shape}") for name, shape in shapes.items()]
        if self.kind is Kind.GRADIENT:
            return [(name, tr("to {input}", input=name)) for name in self._analysis.inputs.layers()]
        return []

    def reason(self) -> str:
        """Why nothing is shown, and how to change that."""
        phase, context, layer = self._analysis.phase, self._analysis.context, self.layer
        if context.has_document and layer in context.root.training:
            return tr("'{layer}' is part of the training branch: inference leaves it out.", layer=layer)
        if phase in PROBLEMS and self._analysis.message and (self.source or phase is not Phase.BLOCKED):
            return self._analysis.message
        if phase not in (Phase.READY, Phase.RUNNING, Phase.BLOCKED):
            return tr("Launch Analysis to see the channels of a layer.")
        if self.source:
            return self.message or tr("Waiting for '{layer}' …", layer=self.source)
        return tr("Double-click a layer in the Network Overview, or choose one above, to see its channels.")

    def forget(self) -> None:
        self.value, self.message, self.note = None, "", ""
        self.weights = {}
        self._question = ()
        self._call.cancel()

    # --- asking ------------------------------------------------------------------------------------------------

    def _on_result(self) -> None:
        result = self._analysis.result
        if self.kind is Kind.GRADIENT and result is not None and result.coarse:
            return  # the full one follows at once
        if self.kind is Kind.OUTPUT:
            found = result.captures.get(self.source) if result is not None else None
            if found is not None or result is None:
                self.value = found
                self.note = result.note if result is not None else ""
            self.changed.emit()
        elif result is None or not self.source:
            self.forget()
            self.changed.emit()
        elif self.kind is Kind.WEIGHTS or self.value is None:
            self._ask()
        else:
            self._rest.start()

    def _ask(self) -> None:
        """Ask the engine, unless the same was asked already."""
        analysis = self._analysis
        if not (self._active and self.source) or analysis.result is None:
            return
        if analysis.phase not in (Phase.READY, Phase.RUNNING) or self.kind is Kind.OUTPUT:
            return
        request: WeightsRequest | GradientRequest
        depends: tuple[object, ...]
        if self.kind is Kind.WEIGHTS:
            request = WeightsRequest(self.layer)
            depends = (analysis.engine.opened, analysis.result.weights_sha256, self._params())
        else:
            inputs = analysis.inputs.layers()
            self.tensor = self.tensor if self.tensor in inputs else inputs[0] if inputs else ""
            request, depends = GradientRequest(self.source, self.tensor, self.at), (ref(analysis.result),)
        if (request, *depends) == self._question:
            return
        self._question = (request, *depends)
        if self._crashed:
            self.message, self._crashed = "", False
            self.changed.emit()
        self._call.ask(analysis.engine, request, self._done, self._failed)

    def _params(self) -> tuple[tuple[str, str], ...]:
        context = self._analysis.context
        layer = context.root.graph.get(self.layer) if context.has_document else None
        return tuple(layer.params.items()) if layer is not None else ()

    def _done(self, reply: WeightsReply | GradientReply) -> None:
        take = self._analysis.engine.take
        if isinstance(reply, WeightsReply):
            self.weights = {name: take(handle) for name, handle in reply.tensors.items()}
            self.tensor = self.tensor if self.tensor in self.weights else next(iter(self.weights), "")
            self.value = self.weights.get(self.tensor)
            self.message = "" if self.weights else tr("'{layer}' has no weights.", layer=self.layer)
            self.note = self._analysis.result.note if self._analysis.result is not None else ""
        else:
            self.value = take(reply.gradient)
            self.note = reply.note
        self.changed.emit()

    def _failed(self, found: Findings) -> None:
        self.value = None
        self.message = placed_text(found[0])
        self._crashed = found[0].code == "engine-crashed"
        self.changed.emit()
