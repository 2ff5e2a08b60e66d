"""Analysis: images in, options of the analysis layers, the network's output, kept in step while one changes things."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from types import MappingProxyType

from PySide6.QtCore import Qt
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QHideEvent, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QGroupBox,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSplitter,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from app.ui.analysis.flicker import Flicker
from app.ui.analysis.input_row import InputRow, dropped_file
from app.ui.analysis.options import OptionsArea
from app.ui.analysis.output_view import OutputView
from app.ui.document.document import Document
from app.ui.document.labels import labels_of
from app.ui.document.weights_dialog import ask_weights_file, ask_weights_folder
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.pinned_pixel import pinned_pixel_of
from app.ui.engine.provenance import provenance_of
from app.ui.engine.quality import LiveQuality
from app.ui.engine.result import Phase
from app.ui.engine.size_rules import size_rules_of
from app.ui.widgets import run_choices, theme
from app.ui.widgets.elided import ElidedLabel
from app.ui.widgets.image_view import SplitMode
from app.ui.widgets.notice import Notice
from designer.graph.commands import set_params
from designer.graph.edits import ChangeSet
from designer.graph.graph import Graph
from designer.runtime.provenance import Provenance
from designer.texts import tr

WIDE = 760  # from this width on the controls are next to the image, not under it, unless the panel is higher than wide


class AnalysisPanel(QWidget):
    """A view on `AnalysisController`; it holds no state of the analysis itself."""

    panel_id = "analysis"
    title = "Analysis"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("analysis")
        self.setAccessibleName(tr("Analysis"))
        self.setAcceptDrops(True)
        self._context = context
        self._analysis = analysis_of(context)
        self._document: Document | None = None
        self._arranged = False  # image and controls have got their first shares of the room
        self._inputs: dict[str, InputRow] = {}
        self._outputs: dict[str, OutputView] = {}
        self._marked = pinned_pixel_of(self._analysis)
        self._marked.changed.connect(self._show_mark)
        self.flicker = Flicker(self._analysis, self)
        self._sizes = size_rules_of(context)
        self._sizes.changed.connect(self._show_phase)
        self._quality = LiveQuality(self._analysis, self)
        self._quality.changed.connect(self._show_quality)
        self._build()
        context.root_changed.connect(self._on_document)
        self._analysis.phase_changed.connect(self._show_phase)
        self._analysis.stale_changed.connect(self._show_stale)
        self._analysis.result_changed.connect(self._show_result)
        self._analysis.inputs.changed.connect(self._show_inputs)
        if context.has_document:
            self._on_document(context.root)
        self._show_phase()

    # --- building ----------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self._launch = QPushButton(tr("Launch Analysis"))
        theme.set_icon(self._launch, "play")
        self._launch.setObjectName("analysis.launch")
        self._launch.setAccessibleName(tr("Launch Analysis"))
        self._launch.setToolTip(tr("Run the network on the images, and again after every change"))
        self._launch.clicked.connect(self._analysis.launch)
        self._stop = QPushButton(tr("Stop"))
        theme.set_icon(self._stop, "stop")
        self._stop.setObjectName("analysis.stop")
        self._stop.setAccessibleName(tr("Stop the analysis"))
        self._stop.setToolTip(tr("Stop the run. The engine restarts with the next launch"))
        self._stop.clicked.connect(self._analysis.stop)
        self._status = ElidedLabel()
        self._status.setObjectName("analysis.status")
        self._status.setAccessibleName(tr("Status of the analysis"))
        bar = QHBoxLayout()
        bar.addWidget(self._launch)
        bar.addWidget(self._stop)
        bar.addWidget(self._status, 1)
        self._notice = Notice("analysis.notice", tr("Problem of the analysis"))
        self._notice.add_button("restart", tr("Restart"), tr("Start a new engine and run again"), self._analysis.launch)
        self._notice.add_button(
            "weights", tr("Weights Folder..."), tr("Run with the .npy or .bin files of a folder"), self._ask_folder
        )
        self._notice.add_button(
            "file", tr("Weights File..."), tr("Run with the weights in a file, such as a checkpoint"), self._ask_file
        )
        self._notice.add_button(
            "random",
            tr("Run with random weights"),
            tr("Seeded random weights where there are none; the image is marked"),
            self._analysis.launch_random,
        )
        self._notice.add_button(
            "sizes",
            tr("Accept Every Size"),
            tr("Add layers that pad the inputs by reflection and crop the outputs, and run again"),
            self._accept_every_size,
        )
        self._notice.add_button(
            "precision",
            tr("Run in FP32"),
            tr("Change the precision in the settings of the network, and run again; undo goes back"),
            self._use_fp32,
        )
        self._lay_out(bar)

    def _lay_out(self, bar: QHBoxLayout) -> None:
        self._tabs = QTabWidget()
        self._tabs.setObjectName("analysis.outputs")
        self._tabs.setAccessibleName(tr("Outputs"))
        self._tabs.setDocumentMode(True)
        self._tabs.setTabBarAutoHide(True)
        self._inputs_box = QGroupBox(tr("Inputs"))
        self._inputs_column = QVBoxLayout(self._inputs_box)
        self._inputs_column.setContentsMargins(8, 4, 8, 4)
        self._options = OptionsArea()
        controls = QWidget()
        column = QVBoxLayout(controls)
        column.setContentsMargins(0, 0, 4, 0)
        column.setSpacing(4)
        column.addWidget(self._inputs_box)
        column.addWidget(self._options)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setObjectName("analysis.controls")
        scroll.setAccessibleName(tr("Inputs and options"))
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(controls)
        self._split = QSplitter(Qt.Orientation.Vertical)
        self._split.setObjectName("analysis.split")
        self._split.setChildrenCollapsible(False)
        self._split.addWidget(self._tabs)
        self._split.addWidget(scroll)
        self._split.setStretchFactor(0, 3)
        self._split.setStretchFactor(1, 2)
        main = QVBoxLayout(self)
        main.setContentsMargins(6, 8, 6, 8)
        main.addLayout(bar)
        main.addWidget(self._notice)
        main.addWidget(self._split, 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        wide = event.size().width() >= max(WIDE, event.size().height())
        orientation = Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical
        if self._split.orientation() is not orientation or not self._arranged:
            self._arranged = True
            self._split.setOrientation(orientation)
            total = event.size().width() if wide else event.size().height()
            self._split.setSizes([total - 340, 340] if wide else [total * 11 // 20, total * 9 // 20])

    # --- document ----------------------------------------------------------------------------------------------

    def _on_document(self, document: Document) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._on_change)
        self._document = document
        document.changed.connect(self._on_change)
        self._options.show_document(document)
        self._drop_outputs()
        self._show_inputs()
        self._show_outputs()
        self._show_split()

    def _on_change(self, change: ChangeSet) -> None:
        self._options.follow(change)
        self._show_phase()  # the analysis may have heard of a problem before the options that display it
        if change.added or change.removed or change.reconfigured:
            self._show_outputs(change.renamed)
        if change.computed or change.removed:
            self._show_split()

    def _show_inputs(self) -> None:
        layers = self._analysis.inputs.layers()
        if tuple(self._inputs) != layers:
            for row in self._inputs.values():
                _drop(self._inputs_column, row)
            self._inputs = {layer: InputRow(layer, self._analysis.playback) for layer in layers}
            for row in self._inputs.values():
                row.chosen.connect(self._analysis.inputs.set_file)
                self._inputs_column.addWidget(row)
        self._inputs_box.setVisible(bool(layers))
        errors = self._analysis.inputs.errors
        for layer, row in self._inputs.items():
            row.show_file(self._analysis.inputs.path(layer), errors.get(layer, ""))

    def _take_tabs(self) -> list[QWidget]:
        """Remove all tabs; their pages belong to the caller."""
        pages = (self._tabs.widget(index) for index in range(self._tabs.count()))
        found = [page for page in pages if page is not None]
        self._tabs.clear()
        return found

    def _drop_outputs(self) -> None:
        """Views of another document have its exposure, zoom and messages."""
        for page in self._take_tabs():
            page.deleteLater()
        self._outputs = {}

    def _show_outputs(self, renamed: Mapping[str, str] = MappingProxyType({})) -> None:
        """A view for each output layer. One that was there before keeps its tab and display, and its zoom unless it is renamed."""
        layers = self._analysis.output_layers()
        if tuple(self._outputs) == layers and self._tabs.count():
            return
        current = self._tabs.currentWidget()
        before = {renamed.get(layer, layer): view for layer, view in self._outputs.items()}
        self._outputs = {layer: self._view_of(layer, before.get(layer)) for layer in layers}
        for old in self._take_tabs():
            if old not in self._outputs.values():
                old.deleteLater()
        for layer, view in self._outputs.items():
            self._tabs.addTab(view, layer)
            if current is not None and before.get(layer) is current:
                self._tabs.setCurrentWidget(view)
        self._show_quality()
        if not layers:
            empty = OutputView("none", self._origin)
            empty.set_empty_text(tr("The network has no output layer. Add one from the Layer Palette and connect it."))
            self._tabs.addTab(empty, tr("none"))
        self._show_result()

    def _view_of(self, layer: str, before: OutputView | None) -> OutputView:
        """The view of a layer that is called so now; `before` is the one that it had."""
        if before is not None and before.layer == layer:
            return before
        view = OutputView(layer, self._origin)
        if before is not None:
            view.display_like(before)
        view.split_moved.connect(partial(self._drag_split, layer))
        view.split_released.connect(self._release_split)
        return view

    def _origin(self) -> Provenance:
        return provenance_of(self._context, self._analysis)

    # --- results -----------------------------------------------------------------------------------------------

    def _show_result(self) -> None:
        result = self._analysis.result
        for layer, shape in self._analysis.inputs.shapes.items():
            if layer in self._inputs:
                self._inputs[layer].show_fed(shape)
        for layer, view in self._outputs.items():
            array = result.outputs.get(layer) if result is not None else None
            document = self._document
            known = document is not None and layer in document.graph
            operator = document.inference.read(layer).operator if document is not None and known else None
            view.features.set_labels(labels_of(document, layer) if document is not None else ())
            note = result.note_of(layer) if result is not None else ""
            view.show_array(
                array, operator, note, of_recipe=document is not None and _shows_recipe(document.graph, layer)
            )
            view.mark(self._marked.spot)
        self._show_stale(self._analysis.stale)

    def _show_quality(self) -> None:
        for layer, view in self._outputs.items():
            view.show_quality(self._quality.texts.get(layer, ""), self._quality.current)

    def _show_mark(self) -> None:
        for view in self._outputs.values():
            view.mark(self._marked.spot)

    def _show_stale(self, stale: bool) -> None:
        for view in self._outputs.values():
            view.set_dimmed(stale)
        self._show_phase()

    def _show_phase(self) -> None:
        phase, message = self._analysis.phase, self._analysis.message
        layer = self._options.layer_with(message) if phase is Phase.BLOCKED else ""
        if layer:  # the problem is displayed there, where it is typed
            message = tr("Not run: {layer} has a problem", layer=layer)
        problem = phase in (Phase.FAILED, Phase.WEIGHTS, Phase.BLOCKED) and not layer
        if phase is Phase.FAILED:
            self._show_failure(message)
        elif phase is Phase.WEIGHTS:
            self._notice.say(
                tr("{message} Choose weights, or look at it with random ones.", message=message),
                "warning",
                ("weights", "file", "random"),
            )
        else:
            self._notice.say(message if problem else "", "warning")
        # A run that only lasts a moment keeps the line of the one before: nothing flickers under a moving slider.
        result = self._analysis.result
        if phase is Phase.RUNNING and result is not None and not self._analysis.stale:
            message = result.summary()
        elif phase is Phase.IDLE:
            message = tr("Not launched")
        self._status.setText("" if problem else message)
        unfinished = result is None or self._analysis.stale or bool(result.coarse)
        self._stop.setEnabled(phase is Phase.RUNNING and unfinished)
        self._launch.setEnabled(self._context.has_document)

    def _show_failure(self, message: str) -> None:
        """What went wrong; images of an invalid size are offered the edit that makes every size work."""
        self._sizes.request()
        refusal = self._sizes.refusal(self._fed_sizes())
        if refusal and self._sizes.fixable:
            self._notice.say(
                tr("{refusal}. Pad and crop the image in the network, or choose another.", refusal=refusal),
                "warning",
                ("sizes",),
            )
        else:
            self._notice.say(message, "error", ("precision",) if self._precision_refused() else ("restart",))

    def _precision_refused(self) -> bool:
        """Whether the engine cannot compute in the precision of the settings, so that a restart is of no use."""
        if self._document is None or self._document.settings.current_variant is not None:
            return False
        settings = self._document.settings
        runs = any(each.value == settings.device and not each.reason for each in run_choices.devices(settings.engine))
        refused = {each.value for each in run_choices.precisions(settings.engine, settings.device) if each.reason}
        return runs and settings.precision in refused

    def _use_fp32(self) -> None:
        if self._document is not None:
            self._document.change_settings(precision="fp32")
            self._analysis.launch()

    def _fed_sizes(self) -> dict[str, tuple[int, int]]:
        shapes = self._analysis.inputs.shapes
        return {layer: (shape[2], shape[3]) for layer, shape in shapes.items() if len(shape) == 4}

    def _accept_every_size(self) -> None:
        if self._sizes.fix():
            self._analysis.launch()

    # --- actions of the user ------------------------------------------------------------------------------------

    def _ask_folder(self) -> None:
        ask_weights_folder(self, self._document, self._analysis.choose_weights)

    def _ask_file(self) -> None:
        ask_weights_file(self, self._document, self._analysis.choose_weights)

    def _mixes(self) -> dict[str, tuple[SplitMode, float]]:
        """The layers whose split line can be drawn on an image: where it is."""
        if self._document is None:
            return {}
        found = {}
        for layer in self._document.graph:
            if layer.type == "mix" and not layer.bypassed:
                operator = self._document.inference.read(layer.name).operator
                selection = getattr(operator, "selection", "")
                if selection in (SplitMode.VERTICAL, SplitMode.HORIZONTAL):
                    found[layer.name] = (SplitMode(selection), float(getattr(operator, "amount", 0.5)))
        return found

    def _mix_of(self, output: str, mixes: Collection[str]) -> str | None:
        """The first of the mixes that an output depends on."""
        above = self._document.graph.upstream([output]) if mixes and self._document is not None else ()
        return next((name for name in mixes if name in above), None)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.flicker.follow(self._document, True)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.flicker.follow(self._document, False)
        self._analysis.playback.pause()

    def _show_split(self) -> None:
        self.flicker.follow(self._document, self.isVisible())
        mixes = self._mixes()
        for output, view in self._outputs.items():
            mix = self._mix_of(output, mixes)
            view.set_split(*(mixes[mix] if mix is not None else (SplitMode.NONE, 0.5)))

    def _drag_split(self, output: str, amount: float) -> None:
        layer = self._mix_of(output, self._mixes())
        if layer is not None and self._document is not None:
            text = repr(round(amount, 3))
            key = f"analysis.{layer}.amount"
            self._document.do(lambda graph: set_params(graph, {layer: {"amount": text}}, merge_key=key))

    def _release_split(self) -> None:
        if self._document is not None:
            self._document.history.seal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """PgUp and PgDn, or comma and full stop, go through playlists and frames."""
        steps = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_Comma: -1, Qt.Key.Key_PageDown: 1, Qt.Key.Key_Period: 1}
        by = steps.get(Qt.Key(event.key())) if self._analysis.playback.tracks else None
        if by is None:
            super().keyPressEvent(event)
        else:
            self._analysis.playback.step_all(by)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if self._inputs and dropped_file(event.mimeData()) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """A file dropped anywhere goes to the first input; each input's row takes its own."""
        path = dropped_file(event.mimeData())
        if path is not None and self._inputs:
            event.acceptProposedAction()
            self._analysis.inputs.set_file(next(iter(self._inputs)), path)


def _drop(column: QVBoxLayout, widget: QWidget) -> None:
    column.removeWidget(widget)
    widget.hide()
    widget.deleteLater()


def _shows_recipe(graph: Graph, layer: str) -> bool:
    """Whether an output layer reads a Mix layer with a recipe."""
    layers = [
        graph.get(source.layer) for source in (graph[layer].inputs if layer in graph else ()) if source is not None
    ]
    mixes = (each for each in layers if each is not None and each.type == "mix" and not each.bypassed)
    return any(mix.params.get("selection") == "custom" for mix in mixes)
