"""Channel Inspector: any tensor of a layer, channel by channel, in colors for its values, while sliders move."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from app.ui.document.document import Document
from app.ui.document.labels import labels_of
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.provenance import provenance_of
from app.ui.engine.result import Phase
from app.ui.engine.weight_surgery import weight_surgery_of
from app.ui.inspector.channel_grid import ChannelGrid
from app.ui.inspector.channel_statistics import TensorStatistics
from app.ui.inspector.color_bar import ColorBar, tool_button
from app.ui.inspector.enlarged import EnlargedPage
from app.ui.inspector.export import Exporter
from app.ui.inspector.histogram_strip import HistogramStrip
from app.ui.inspector.inspection import Inspection, Views
from app.ui.inspector.legend import Legend
from app.ui.inspector.look import Look
from app.ui.inspector.matrix_view import MatrixView
from app.ui.inspector.order import Sorter
from app.ui.inspector.pages import Form, TensorPage, by_filter, page_of
from app.ui.inspector.probe import InspectorProbe
from app.ui.inspector.subject import Kind, Subject
from app.ui.inspector.subject_bar import SubjectBar
from app.ui.inspector.value_range import Ranges
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyState
from app.ui.widgets.feature_view import FeatureView
from app.ui.widgets.render import Floats
from designer.graph.edits import ChangeSet
from designer.graph.model import Source
from designer.runtime.provenance import Provenance
from designer.texts import tr
from designer.units import dims_text, number

LARGE = 2000  # layers of a network whose tensors are listed after it has been shown
TEXT = 120  # characters of the probe's text about a pixel


class ChannelInspectorPanel(QWidget):
    """Asks the analysis to bring one tensor with every run, as long as it can be seen."""

    panel_id = "channel_inspector"
    title = "Channel Inspector"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("channel_inspector")
        self.setAccessibleName(tr("Channel Inspector"))
        self._context = context
        self._analysis = analysis_of(context)
        self._document: Document | None = None
        self._left: WeakKeyDictionary[Document, str] = WeakKeyDictionary()  # what was inspected in other documents
        self.subject = Subject(self._analysis, self)
        self._tensor: Any = None  # that the page is made of
        self._title, self._item = "", 0  # of the tensor that the page is made of
        self._look = Look()
        self._later = QTimer(self, singleShot=True, interval=0, timeout=self._list_later)
        self._build()
        context.root_changed.connect(self._on_document)
        context.inspect_requested.connect(self.inspect)
        context.selection_changed.connect(self._follow)
        self.subject.changed.connect(self._show_subject)
        self._analysis.inputs.changed.connect(self.ranges.other_picture)
        self._analysis.stale_changed.connect(self._show_stale)
        self._analysis.phase_changed.connect(self._show_page)
        if context.has_document:
            self._on_document(context.root)
        self._show_page()

    def _origin(self) -> Provenance:
        return provenance_of(self._context, self._analysis)

    def _build(self) -> None:
        self.subjects = SubjectBar()
        self.subjects.source_chosen.connect(self.inspect)
        self.subjects.kind_chosen.connect(self.look_at)
        self.subjects.tensor_chosen.connect(self.subject.choose_tensor)
        self.subjects.item_chosen.connect(self._choose_item)
        self.subjects.order_chosen.connect(self._sort)
        self.subjects.follow.toggled.connect(lambda: self._follow(self._context.selection))
        self.bar = ColorBar()
        self.bar.look_changed.connect(self._set_look)
        self.ranges = Ranges(self.bar, lambda: self.subject.title, self._values, self)
        self.statistics = TensorStatistics(self)
        self.statistics.changed.connect(self._show_statistics)
        self.grid = ChannelGrid("channel_inspector.grid", tr("Channels"))
        self.grid.activated.connect(self.enlarge)
        self.grid.set_captions(self.statistics.flag, self.statistics.range)
        self.grid.side_changed.connect(self.bar.set_side)
        self.bar.side_changed.connect(self.grid.set_side)
        self.sorter = Sorter(self)
        self.sorter.sorted.connect(self._set_order)
        self.enlarged = EnlargedPage()
        self.enlarged.left.connect(self.shrink)
        self.enlarged.walked.connect(self._walk)
        self.view = self.enlarged.view
        self.features = FeatureView("channel_inspector.features", tr("Values of the layer"))
        self.matrix = MatrixView("channel_inspector.matrix", tr("Map of the values"))
        self._empty = EmptyState("channel_inspector", "layers-triple-outline", "", tr("Launch Analysis"))
        self._empty.triggered.connect(self._analysis.launch)
        self._stack = QStackedWidget()
        for page in (self._empty, self.grid, self.enlarged, self.features, self.matrix):
            self._stack.addWidget(page)
        self.shown = Inspection(self.subject, Views(self.grid, self.view, self.features, self.matrix))
        self.probe = InspectorProbe(self._analysis, self.shown, self.statistics, self)
        self.probe.changed.connect(self._show_statistics)
        self._remove = tool_button(
            "remove_channel",
            tr("Remove Channel"),
            tr("Remove this channel from the network, with its weights in all layers"),
            action=self.remove_channel,
        )
        self._remove.hide()
        self.enlarged.add_button(self._remove)  # in the bar above, the panel would get wider with it
        self.subjects.add_buttons(self.probe.unpin_button, self.probe.show_input)
        self._histogram = HistogramStrip()
        self.legend = Legend()
        self.exporter = Exporter(self.shown, lambda: self._look, self.subjects.export, self._origin, self)
        self.exporter.message.connect(self.probe.show_message)
        self.subjects.export_requested.connect(self.exporter.export)
        self._lay_out()

    def _lay_out(self) -> None:
        middle = QSplitter(Qt.Orientation.Horizontal)
        middle.setObjectName("channel_inspector.split")
        middle.setChildrenCollapsible(False)
        middle.addWidget(self._stack)
        middle.addWidget(self.probe.pane)
        middle.setSizes([700, 300])  # shares, until the user moves the line between them
        self._lines = QWidget()
        self._lines.setLayout(self.probe.lines(theme.mono_font()))
        self._foot = QGridLayout()
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        column.setSpacing(4)
        for widget in (self.subjects, self.bar, middle):
            column.addWidget(widget, int(widget is middle))
        column.addLayout(self._foot)  # empty: PySide would keep its items, also that of a widget which is moved later
        self._foot.addWidget(self._histogram, 0, 0)
        self._foot.addWidget(self._lines, 0, 1)
        self._foot.addWidget(self.legend, 0, 2)
        self._foot.setColumnStretch(1, 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where the probe's text would be cut between the histogram and the legend, it is under them, and there on two lines."""
        super().resizeEvent(event)
        text = TEXT * self._lines.findChild(QLabel).fontMetrics().averageCharWidth()
        narrow = event.size().width() < self._histogram.width() + text + self.legend.sizeHint().width()
        self.probe.set_stacked(event.size().width() < text)
        self._foot.addWidget(self._lines, int(narrow), int(not narrow), 1, 3 if narrow else 1)

    # --- what is inspected -------------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        return self.subject.source

    @property
    def status_text(self) -> str:
        return "   ".join(filter(None, (self.probe.status.text(), self.probe.details.text())))

    @property
    def page(self) -> TensorPage | None:
        """What is shown of the tensor."""
        return self.shown.page

    def inspect(self, source: str) -> None:
        """Show another layer's tensor (`layer` or `layer:port`)."""
        if source == self.source:
            return
        self._drop()
        self.probe.unpin()
        self.subjects.show_source(source)
        self.subject.choose(source)
        self._ask()
        self._context.inspected.emit(self.subject.layer)

    def look_at(self, kind: Any) -> None:
        """The layer's output, its weights or a gradient."""
        if kind is self.subject.kind:
            return
        self._drop()
        self.subjects.show_kind(kind)
        self.subject.choose(self.source, kind)
        self.subject.choose_at(self.probe.pinned_at() if kind is Kind.GRADIENT else None)
        self._ask()

    def _drop(self) -> None:
        self._tensor = None
        self.shown.clear()
        self._show_statistics()

    def _choose_item(self, item: int) -> None:
        self.shown.item = item
        self._tensor = None
        self._show_subject()

    def _follow(self, names: Any) -> None:
        if self.subjects.follow.isChecked() and len(names) == 1:
            path = self._context.path_of(names[0])
            if path:
                self.inspect(path)

    def _ask(self) -> None:
        """The tensor is brought only while it can be seen: a capture costs time and memory."""
        seen = self.isVisible() and bool(self.source)
        self.subject.set_active(seen)
        if not seen:
            return
        inputs = self._analysis.inputs.layers()
        if self.subject.kind is Kind.OUTPUT:
            self._analysis.set_capture(self.source, inputs)
        else:
            self._analysis.set_capture(inputs[0] if inputs else "", inputs[1:])

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._ask()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.subject.set_active(False)
        self._analysis.set_capture("")

    def _on_document(self, document: Document) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._on_change)
            self._left[self._document] = self.source
        self._document = document
        document.changed.connect(self._on_change)
        self._drop()
        self.probe.unpin()
        self.ranges.forget()
        self._list()
        self._choose_nothing()
        self.subjects.show_source("")  # the other document may have a layer of that name, too
        before = self._left.get(document, "")
        if before and self._context.find(Source.parse(before).layer) is not None:
            self.inspect(before)

    def _choose_nothing(self) -> None:
        """The inspected layer, if there was one, is gone."""
        if self.source:
            self.subject.choose("")
            self._context.inspected.emit("")

    def _list(self) -> None:
        """List the tensors of the document; of a large one after it has been shown."""
        assert self._document is not None
        if len(self._document.graph) > LARGE:
            self._later.start()
        else:
            self.subjects.show_document(self._document)

    def _list_later(self) -> None:
        if self._document is not None:
            self.subjects.show_document(self._document)
            self.subjects.show_source(self.source)

    def _on_change(self, change: ChangeSet) -> None:
        assert self._document is not None
        if not (change.added or change.removed or change.reconfigured or change.templates):
            return
        layer, port = Source.parse(self.source)
        after = self._context.path_after(layer, change) if layer else ""
        self._list()
        if layer and not after:
            self._drop()
            self.probe.unpin()
            self._choose_nothing()
        elif after != layer:
            before = self.subject.title
            self.subject.rename(str(Source(after, port)))
            self.ranges.rename(before, self.subject.title)
            self._context.inspected.emit(after)
        if change.renamed or after != layer:
            self._ask()
        self.subjects.show_source(self.source)

    def _values(self) -> Floats | None:
        return self.page.values if self.page is not None else None

    # --- showing -----------------------------------------------------------------------------------------------

    def _show_subject(self) -> None:
        """What the subject brought; unless it is what is shown, or nobody looks: showing the panel asks again."""
        value = self.subject.value
        for view in (self.grid, self.view, self.features, self.matrix):
            view.set_note(self.subject.note)
        self.probe.show_result()
        if value is None and self.subject.message:
            self._drop()
        if value is None or value is self._tensor or (self._tensor is not None and not self.isVisible()):
            if value is None and not self._waits():
                self._drop()
            self._show_page()
            return
        first, self._title = self.page is None or self._title != self.subject.title, self.subject.title
        self._tensor = value
        pixel = self.subject.kind is Kind.GRADIENT and self.subject.at is not None
        self.shown.page = page = page_of(self._by_filter(value), self.subject.kind, self.shown.item, cut=pixel)
        self.shown.item = min(self.shown.item, page.items - 1)
        same_item, self._item = self._item == self.shown.item, self.shown.item
        grid = page.data if page.form is Form.CHANNELS else None
        self.statistics.show_data(None if page.form is Form.VALUES else page.values)
        if self.shown.channel is not None and (grid is None or self.shown.channel >= len(grid)):
            self.shown.channel = None
        self.ranges.values_came(first)
        self._show_legend()  # a locked range stays as it is
        self.grid.set_names(self._channel_name if page.filters is not None else str)
        before = self.grid.channels
        self.grid.show_data(grid, page.gaps)
        if grid is not None and (first or not same_item or len(grid) != before):
            self._sort(self.subjects.chosen_order)
        self.matrix.show_values(page.data[0] if page.form is Form.MATRIX else None, page.axes)
        if page.form is Form.VALUES:
            document = self._document
            self.features.set_labels(labels_of(document, self.subject.source) if document is not None else ())
            self.features.show_values(page.values.reshape(1, -1))
        self._show_channel()
        self._show_page()
        self.probe.show_page()
        self._show_statistics()
        self.exporter.record()

    def _by_filter(self, tensor: Any) -> Any:
        """The tensor to lay out: kernels of transposed convolutions are stored by input channel, all others by filter."""
        if self.subject.kind is not Kind.WEIGHTS or tensor.ndim != 4:
            return tensor
        weight = f"{self.subject.layer}.{self.subject.tensor}"  # the name of a tensor of an instance is a path, too
        found = self._context.find(weight.rpartition(".")[0])
        if found is None:
            return tensor
        (scope, name), graph = found, self._context.root.graph
        layer = (graph.inside(scope[-1].template) if scope else graph)[name]
        if layer.type != "transposed_convolution":
            return tensor
        groups = getattr(self._context.registry.read(layer).operator, "groups", 0)
        fits = groups and len(tensor) % groups == 0  # the text may be wrong, or newer than the tensor
        return by_filter(tensor, groups) if fits else tensor

    def _waits(self) -> bool:
        """Whether the tensor that is shown stays until another one comes."""
        return self._analysis.result is not None and bool(self.source)

    def _show_page(self) -> None:
        page = self.page
        self.subjects.export.setEnabled(page is not None)
        self._histogram.setVisible(page is not None and page.form is not Form.VALUES)
        self.legend.setVisible(page is not None and page.form is not Form.VALUES)
        self.bar.setEnabled(page is None or page.form is not Form.VALUES)
        self.subjects.order.setVisible(page is None or page.form is Form.CHANNELS)
        self._remove.setVisible(self.shown.channel is not None and self.subject.kind is Kind.OUTPUT)
        self.subjects.show_items(page.items if page is not None else 1, self.shown.item)
        self.subjects.show_tensors(self.subject.choices(), self.subject.tensor)
        if page is None:
            self._empty.show_text(self.subject.reason())
            ready = self._analysis.phase in (Phase.READY, Phase.RUNNING)
            self._empty.findChild(QWidget, "channel_inspector.empty.action").setVisible(not ready)
            self._stack.setCurrentWidget(self._empty)
        elif page.form is Form.VALUES:
            self._stack.setCurrentWidget(self.features)
        elif page.form is Form.MATRIX:
            self._stack.setCurrentWidget(self.matrix)
        else:
            self._stack.setCurrentWidget(self.grid if self.shown.channel is None else self.enlarged)
        self.probe.show_channel()

    def remove_channel(self) -> None:
        """Remove the selected channel of the inspected tensor."""
        if self.source and self.subject.kind is Kind.OUTPUT:
            weight_surgery_of(self._context).operate("remove", self.source, channels=(self.shown.current_channel,))

    def _show_stale(self, stale: bool) -> None:
        for view in (self.grid, self.view, self.matrix):
            view.set_dimmed(stale)

    def _set_order(self, order: Any) -> None:
        self.grid.set_order(order)

    def _sort(self, order: Any) -> None:
        if self.page is not None and self.page.form is Form.CHANNELS:
            self.sorter.sort(self.page.values, order)

    def _channel_name(self, channel: int) -> str:
        filters = self.page is not None and self.page.filters is not None
        return tr("filter {number}", number=channel) if filters else str(channel)

    # --- colors -----------------------------------------------------------------------------------------------

    def _set_look(self, look: Look) -> None:
        self._look = look
        self.grid.set_look(look)
        self.matrix.set_look(look)
        self._show_legend()
        self._show_channel()

    def _show_legend(self) -> None:
        units = {Kind.WEIGHTS: tr("weight"), Kind.GRADIENT: tr("gradient")}
        self.legend.show_look(self._look, units.get(self.subject.kind, tr("value")))

    # --- one channel alone -------------------------------------------------------------------------------------

    def enlarge(self, channel: int) -> None:
        """Show one channel alone."""
        if self.page is None or self.page.form is not Form.CHANNELS or not 0 <= channel < len(self.page.data):
            return
        self.shown.channel = channel
        self._show_channel()
        self._show_page()
        self.view.setFocus()

    def shrink(self) -> None:
        """Back to the grid, at the channel that was enlarged."""
        if self.shown.channel is not None:
            channel, self.shown.channel = self.shown.channel, None
            self._show_page()
            self.grid.set_current(channel)
            self._show_statistics()
            self.grid.setFocus()

    def _walk(self, step: int) -> None:
        if self.shown.channel is not None:
            self.shown.channel = self.grid.neighbour(self.shown.channel, step)
            self.probe.show_channel()
            self._show_channel()

    def _show_channel(self) -> None:
        if self.shown.channel is None or self.page is None:
            return
        own = self.grid.fit_of(self.shown.channel) if self._look.each else None
        result = self._analysis.result
        coarse = self.subject.kind is Kind.OUTPUT and result is not None and bool(result.coarse)
        self.enlarged.show_plane(self.page.data[self.shown.channel], self._look, own, coarse)
        number, last, tensor = self.shown.channel, len(self.page.data) - 1, self.subject.title
        if self.page.filters is not None:
            title = tr("filter {number} (0 to {last})  ·  {tensor}", number=number, last=last, tensor=tensor)
        else:
            title = tr("channel {number} (0 to {last})  ·  {tensor}", number=number, last=last, tensor=tensor)
        self.enlarged.title.setText(title)
        self._show_statistics()

    # --- figures and probe -------------------------------------------------------------------------------------

    def _show_statistics(self) -> None:
        """The histogram is of the channel under the cursor, the one shown alone, or the grid's current one."""
        page = self.page
        if page is None or page.form is Form.VALUES:
            self._histogram.show_statistics(None)
            self.probe.show_summary(self._summary())
            return
        if self.shown.channel is None:
            self.grid.viewport().update()
        place = self.probe.hover
        channel = place[0] if place is not None else self.shown.channel
        channel = self.grid.current if channel is None else channel
        if channel < len(page.values) and (
            self.statistics.complete or place is not None or self.shown.channel is not None
        ):
            self._histogram.show_statistics(self.statistics.of(channel))
        self.probe.show_summary(self._summary())

    def _summary(self) -> str:
        """Shown while the cursor is on no pixel."""
        if self.page is None or self._tensor is None:
            return ""
        if self.shown.channel is not None:
            figures = self.statistics.of(self.shown.channel)
            channel, text = self.shown.channel, figures.text()
            if self.page.filters is not None:
                return tr("filter {channel}   {figures}", channel=channel, figures=text)
            return tr("channel {channel}   {figures}", channel=channel, figures=text)
        flags = "".join(f"   {text}" for text in self.statistics.flagged_texts())
        shape = dims_text(self._tensor.shape, "") or number(float(self._tensor))
        return f"{self.subject.title}   {shape}{flags}"

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.probe.leave()
