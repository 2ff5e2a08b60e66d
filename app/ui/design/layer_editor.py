"""The Layer Editor: name, parameters and activation of the selected layers, made from the operators' declarations."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.ui.design import fixes as fixing
from app.ui.design.fix_bar import FixBar
from app.ui.design.layer_facts import LayerFacts
from app.ui.design.name_field import NameField
from app.ui.design.raw_params import RawParams
from app.ui.design.shared_params import (
    activation_type,
    defaults,
    shared_parameters,
    text_of,
    text_to_write,
    with_templates,
    without_default,
)
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.weight_surgery import weight_surgery_of
from app.ui.widgets import theme
from app.ui.widgets.empty_state import EmptyStack, EmptyState
from app.ui.widgets.message import Message
from app.ui.widgets.param_editor import MIXED
from app.ui.widgets.param_section import ParamSection, tool_button
from app.ui.widgets.sentences import sentence
from designer.graph import commands
from designer.graph.commands import name_rule, rename_layer, set_activation
from designer.graph.diagnostics import Diagnostic
from designer.graph.edits import ChangeSet, Edit
from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer
from designer.graph.template import INSTANCE
from designer.operators.params import Parameter
from designer.texts import mark, tr, tr_data, trn

FEATURES = "features"  # the parameter with the number of channels that a layer computes
_NO_SELECTION = mark("Select a layer on the canvas to edit its parameters here.")
_NO_DOCUMENT = mark("Open or create a network to edit the parameters of its layers here.")


class ParametersPanel(QWidget):
    panel_id = "parameters"
    title = "Layer Editor"

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("parameters")
        self._context = context
        self._document: Document | None = None
        self._names: tuple[str, ...] = ()
        self._built: object = None  # the types and activations that the rows were built for
        self._operator_rows: ParamSection | None = None
        self._activation_rows: ParamSection | None = None
        self._empty = EmptyState("parameters", "tune-variant", tr_data(_NO_DOCUMENT))
        self._stack = EmptyStack(self, self._empty, self._make_form(), margin=0)
        context.document_changed.connect(self._watch)
        context.selection_changed.connect(self._select)
        theme.changes().changed.connect(self._refresh)
        if context.has_document:
            self._watch(context.document)
            self._select(context.selection)

    # --- the form ----------------------------------------------------------------------------------------------

    def _make_form(self) -> QWidget:
        head = self._make_head()
        self._make_fields()
        return self._lay_out(head)

    def _make_head(self) -> QHBoxLayout:
        self._mark = QLabel()
        self._heading = QLabel()
        self._heading.setObjectName("parameters.heading")
        font = self._heading.font()
        font.setBold(True)
        self._heading.setFont(font)
        self._heading.setWordWrap(True)
        self._heading.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._help = tool_button(
            "parameters.help",
            "help-circle-outline",
            tr("Help on this operator"),
            tr("Show the documentation of this operator"),
            checkable=True,
        )
        self._doc = QLabel()
        self._doc.setObjectName("parameters.doc")
        self._doc.setWordWrap(True)
        self._doc.setVisible(False)
        self._help.toggled.connect(self._doc.setVisible)
        self._reset = tool_button(
            "parameters.reset_all",
            "restore",
            tr("Reset all parameters"),
            tr("Set all parameters to their defaults, including those of the activation"),
        )
        self._reset.clicked.connect(self._reset_all)
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._mark)
        head.addWidget(self._heading, 1)
        head.addWidget(self._reset)
        head.addWidget(self._help)

        return head

    def _make_fields(self) -> None:
        self._name_label = QLabel(tr("Name"))
        self._name = NameField("parameters.name", tr("Layer name"), self._name_rule)
        self._name_label.setBuddy(self._name.line)
        self._name.renamed.connect(self._rename)
        self._note = Message("parameters.note")
        self._raw = RawParams("parameters.raw")
        self._operator_box = QVBoxLayout()
        self._activation_label = QLabel(tr("Activation"))
        self._activation = QComboBox()
        self._activation.setObjectName("parameters.activation")
        self._activation.setAccessibleName(tr("Attached activation"))
        self._activation.setToolTip(tr("Activation function applied to the layer's first output"))
        self._activation.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._activation.addItem("none", "")
        for cls in sorted(self._context.registry.activations.values(), key=lambda c: c.title.casefold()):
            self._activation.addItem(tr_data(cls.title), cls.type)
            self._activation.setItemData(self._activation.count() - 1, tr_data(cls.help()), Qt.ItemDataRole.ToolTipRole)
        self._activation.activated.connect(lambda _index: self._choose_activation())
        self._activation_box = QVBoxLayout()
        self._facts = LayerFacts("parameters.facts")
        self._facts.link_activated.connect(self._context.reveal_requested)
        self._fixes = FixBar("parameters.fixes")
        self._fixes.chosen.connect(lambda fix: fixing.apply(self._context, fix))
        self._search = fixing.FixSearch(self)
        self._search.found.connect(lambda found: self._fixes.show_fixes(found or None))

    def _lay_out(self, head: QHBoxLayout) -> QWidget:
        form = QWidget()
        layout = QVBoxLayout(form)
        layout.setContentsMargins(12, 8, 12, 12)
        layout.setSpacing(8)
        layout.addLayout(head)
        layout.addWidget(self._doc)
        layout.addWidget(self._name_label)
        layout.addWidget(self._name)
        layout.addWidget(self._note)
        layout.addWidget(_line())
        layout.addWidget(self._raw)
        layout.addLayout(self._operator_box)
        layout.addWidget(self._activation_label)
        layout.addWidget(self._activation)
        layout.addLayout(self._activation_box)
        layout.addWidget(_line())
        layout.addWidget(self._facts)
        layout.addWidget(self._fixes)
        layout.addStretch(1)
        scroll = QScrollArea()
        scroll.setObjectName("parameters.scroll")
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidget(form)
        return scroll

    # --- following the document --------------------------------------------------------------------------------

    def _watch(self, document: object) -> None:
        if self._document is not None:
            self._document.changed.disconnect(self._on_change)
            self._document.states_changed.disconnect(self._on_states)
        if isinstance(document, Document):
            self._document = document
            document.changed.connect(self._on_change)
            document.states_changed.connect(self._on_states)
        self._select(())

    def _select(self, names: object) -> None:
        if isinstance(names, tuple):
            if self._document is not None and names != self._names:
                self._document.history.seal()
            self._names = names
            self._refresh(other_layers=True)

    def _on_change(self, change: object) -> None:
        if not isinstance(change, ChangeSet):
            return
        if change.renamed:
            self._names = tuple(change.renamed.get(n, n) for n in self._names)
        if change.templates or any(n in change.computed or n in change.removed for n in self._names):
            self._refresh()

    def _on_states(self, states: object) -> None:
        if isinstance(states, frozenset) and self._document is not None:
            names = [n for n in self._names if n in self._document.graph]
            if names and not states.isdisjoint(names):
                self._show_facts(self._document, names)

    def _layers(self) -> list[Layer]:
        graph = self._document.graph if self._document is not None else Graph()
        return [graph[n] for n in self._names if n in graph]

    def _refresh(self, *, other_layers: bool = False) -> None:
        layers = self._layers()
        if self._document is None or not layers:
            self._empty.show_text(tr_data(_NO_SELECTION) if self._document is not None else tr_data(_NO_DOCUMENT))
            self._stack.show_content(False)
            return
        signature: tuple[object, ...] = tuple(sorted({(layer.type, activation_type(layer)) for layer in layers}))
        if any(layer.type == INSTANCE for layer in layers):
            signature += tuple(sorted(self._document.graph.templates))
        if signature != self._built:
            self._build(layers)
            self._built = signature
            self._order_tabs()
        self._show_head(layers, other_layers)
        self._show_values(layers)
        if other_layers:
            for rows in (self._operator_rows, self._activation_rows):
                if rows is not None:
                    rows.discard_drafts()
        self._show_facts(self._document, [layer.name for layer in layers])
        self._stack.show_content(True)

    def _show_facts(self, document: Document, names: list[str]) -> None:
        """Show the facts of these layers, and the fixes of the problems of a single one."""
        self._facts.show_layers(document, names, self._shown_params())
        state = document.inference.states.get(names[0]) if len(names) == 1 else None
        self._search.stop()
        if state is not None and state.diagnostics:
            self._search.start(document, state.diagnostics)
        else:
            self._fixes.show_fixes(None)

    def _shown_params(self) -> set[str]:
        """Parameters with a field, next to which their findings are already shown."""
        sections = (self._operator_rows, self._activation_rows)
        return {name for rows in sections if rows is not None for name in rows.rows}

    def _build(self, layers: list[Layer]) -> None:
        """Rebuild the rows for other layer types or another activation."""
        registry = self._context.registry
        types = sorted({layer.type for layer in layers})
        classes = [registry.get(t) for t in types]
        parameters = shared_parameters(classes)
        if types == [INSTANCE] and self._document is not None:
            parameters = with_templates(parameters, self._document.graph.templates)
        self._operator_rows = self._replace(
            self._operator_rows,
            self._operator_box,
            "parameters",
            parameters,
            self._set_param,
            without_default(parameters, classes),
        )
        kinds = {activation_type(layer) for layer in layers}
        attached = registry.activations.get(next(iter(kinds))) if len(kinds) == 1 else None
        shared = list(attached.parameters) if attached is not None else []
        self._activation_rows = self._replace(
            self._activation_rows, self._activation_box, "parameters.activation", shared, self._set_activation_param
        )
        if len(kinds) > 1:
            self._activation.setPlaceholderText(tr_data(MIXED))
            self._activation.setCurrentIndex(-1)
        else:
            kind = next(iter(kinds))
            index = self._activation.findData(kind)
            self._activation.setPlaceholderText(tr("{kind} (unknown)", kind=kind) if index < 0 else "")
            self._activation.setCurrentIndex(index)

    def _order_tabs(self) -> None:
        """Set the tab order from top to bottom: rows are created after the fields around them."""
        stops: list[QWidget] = [self._reset, self._help, self._name.line]
        for rows, after in ((self._operator_rows, self._activation), (self._activation_rows, None)):
            for row in rows.rows.values() if rows is not None else ():
                stops += row.tab_stops()
            stops += [after] if after is not None else []
        for first, second in pairwise(stops):
            QWidget.setTabOrder(first, second)

    def _replace(
        self,
        old: ParamSection | None,
        box: QVBoxLayout,
        prefix: str,
        shared: list[Parameter],
        slot: Callable[[str, str], None],
        varied: Collection[str] = (),
    ) -> ParamSection | None:
        before = [(r.parameter, not r.has_default) for r in old.rows.values()] if old is not None else None
        if before == [(p, p.name in varied) for p in shared]:
            return old
        if old is not None:
            box.removeWidget(old)
            old.hide()
            old.deleteLater()
        if not shared:
            return None
        rows = ParamSection(prefix, shared, varied)
        rows.changed.connect(slot)
        rows.finished.connect(self._end_merge)
        box.addWidget(rows)
        return rows

    def _show_head(self, layers: list[Layer], other_layers: bool) -> None:
        one = len(layers) == 1
        types = {layer.type for layer in layers}
        cls = self._context.registry.get(layers[0].type) if len(types) == 1 else None
        title = tr_data(cls.title) if cls is not None else layers[0].type if len(types) == 1 else ""
        self._heading.setText(
            title if one else f"{trn('{count} layer', '{count} layers', len(layers))}{f': {title}' if title else ''}"
        )
        pixmap = theme.category_icon(cls.category) if cls is not None else theme.icon("layers-outline", "muted")
        self._mark.setPixmap(pixmap.pixmap(16, 16))
        self._help.setVisible(cls is not None)
        self._doc.setText(tr_data(cls.help()) if cls is not None else "")
        self._doc.setVisible(cls is not None and self._help.isChecked())
        self._name_label.setVisible(one)
        self._name.setVisible(one)
        if one and (other_layers or layers[0].name != self._name.model):
            self._name.show_name(layers[0].name)
        unknown = [layer for layer in layers if self._context.registry.get(layer.type) is None]
        self._raw.setVisible(one and bool(unknown))
        self._note.show_message("")
        if unknown and one:
            self._raw.show_layer(layers[0])
            self._note.show_message(
                tr(
                    "The type “{type}” is unknown, so its parameters are shown as text. Install the plugin that "
                    "provides it, or replace the layer.",
                    type=unknown[0].type,
                ),
                "warning",
            )
        elif unknown:
            self._note.show_message(
                trn(
                    "{count} of these layers has an unknown type.",
                    "{count} of these layers have an unknown type.",
                    len(unknown),
                ),
                "info",
            )
        elif self._operator_rows is None and {layer.type for layer in layers} != {"activation"}:
            text = tr("This operator has no parameters.") if one else tr("These layers have no parameters in common.")
            self._note.show_message(text, "info")

    def _show_values(self, layers: list[Layer]) -> None:
        if self._document is not None:
            graph = self._document.graph
            self._reset.setEnabled(any(self._reset_edit(graph, [layer]) for layer in layers))
        if self._operator_rows is not None:
            self._operator_rows.show_texts(
                {
                    name: [
                        text_of(self._context.registry.get(layer.type), layer.params, row.parameter) for layer in layers
                    ]
                    for name, row in self._operator_rows.rows.items()
                }
            )
        if self._activation_rows is not None:
            specs = [layer.activation for layer in layers if layer.activation is not None]
            self._activation_rows.show_texts(
                {
                    name: [s.params.get(name, row.parameter.format(row.parameter.default)) for s in specs]
                    for name, row in self._activation_rows.rows.items()
                }
            )

    # --- edits ------------------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Return and Escape that a field did not handle move the focus to the canvas."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape):
            self._context.canvas_requested.emit()
        else:
            super().keyPressEvent(event)

    def _name_rule(self, text: str) -> str | None:
        return name_rule(self._document.graph, text) if self._document is not None else None

    def _rename(self, new: str) -> None:
        if self._document is not None and len(self._names) == 1:
            old = self._names[0]
            if self._document.do(lambda graph: rename_layer(graph, old, new)):
                self._context.select((new,))

    def _set_param(self, name: str, text: str) -> None:
        if self._document is None:
            return
        if name != FEATURES or not self._is_trained():  # weights follow once, at the end of the gesture
            self._write_param(self._names, name, text)

    def _is_trained(self) -> bool:
        return len(self._names) == 1 and bool(self._context.root.settings.weights)

    def _write_param(self, selected: tuple[str, ...], name: str, text: str) -> None:
        assert self._document is not None
        graph, registry = self._document.graph, self._context.registry
        layers = [graph[n] for n in selected if n in graph]
        texts = {layer.name: {name: text_to_write(registry.get(layer.type), name, text)} for layer in layers}
        key = f"parameter {name} of {', '.join(texts)}"
        self._document.do(lambda graph: commands.set_params(graph, texts, merge_key=key))

    def _reset_all(self) -> None:
        if self._document is not None:
            layers = self._layers()
            self._document.do(lambda graph: self._reset_edit(graph, layers))

    def _reset_edit(self, graph: Graph, layers: list[Layer]) -> Edit:
        return commands.reset_params(graph, *defaults(layers, self._context.registry))

    def _choose_activation(self) -> None:
        if self._document is None:
            return
        cls = self._context.registry.activations.get(self._activation.currentData())
        spec = ActivationSpec(cls.type, cls().texts(all=False)) if cls is not None else None
        names = [layer.name for layer in self._layers() if activation_type(layer) != (cls.type if cls else "")]
        if names:
            self._document.do(lambda graph: set_activation(graph, names, spec))

    def _set_activation_param(self, name: str, text: str) -> None:
        if self._document is not None:
            self._document.do(lambda graph: commands.set_activation_param(graph, self._names, name, text))

    def _end_merge(self) -> None:
        if self._document is None:
            return
        row = self._operator_rows.rows.get(FEATURES) if self._operator_rows is not None else None
        draft = row.draft() if row is not None and self._is_trained() else None
        if draft is not None:
            self._resize(draft)
        self._document.history.seal()

    def _resize(self, text: str) -> None:
        """Change the number of channels of the layer together with the trained weights, or alone if they cannot follow."""
        document, names = self._document, self._names

        def write_only(reason: Diagnostic) -> None:
            if self._document is document:  # the selection may be another one by now
                self._write_param(names, FEATURES, text)
            if reason.code != "weights-missing":
                why = tr("the weights do not follow: {reason}", reason=reason.message)
                self._context.message.emit("warning", sentence(why))

        layer = self._context.path_of(names[0])
        weight_surgery_of(self._context).operate("features", layer, features=int(text), failed=write_only)


def _line() -> QFrame:
    line = QFrame()
    line.setFrameShape(QFrame.Shape.HLine)
    line.setForegroundRole(line.foregroundRole().Mid)
    return line
