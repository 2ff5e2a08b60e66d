"""Commands for templates (make, enter, leave, dissolve, rename) and for collapsing nodes and frames."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QBoxLayout

from app.ui.canvas import layout_boxes
from app.ui.canvas.breadcrumb import Breadcrumb
from app.ui.canvas.canvas import Canvas
from app.ui.document.document import Document
from app.ui.engine.context import Context
from designer.graph import frames, template_commands
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.graph.template import INPUT, INSTANCE, OUTPUT, PARAMETER, check_template_name
from designer.operators.links import network_ends
from designer.texts import tr


class Structure:
    """The commands of one window."""

    def __init__(self, context: Context, canvas: Canvas) -> None:
        self._context = context
        self._canvas = canvas
        self.breadcrumb = Breadcrumb(context, canvas)
        box = canvas.layout()
        assert isinstance(box, QBoxLayout)
        box.insertWidget(0, self.breadcrumb)
        canvas.viewer.unfold_requested.connect(self.unfold)

    # --- selection -------------------------------------------------------------------------------------------

    def instances(self) -> list[Layer]:
        """The selected instances of existing templates."""
        if not self._context.has_document:
            return []
        graph = self._context.document.graph
        layers = [graph[n] for n in self._context.selection if n in graph]
        return [x for x in layers if x.type == INSTANCE and x.params.get(PARAMETER) in graph.templates]

    def template(self) -> str:
        """The template of the selected instance, else the open template, else an empty string."""
        found = {layer.params[PARAMETER] for layer in self.instances()}
        if len(found) == 1:
            return found.pop()
        scope = self._context.scope
        return scope[-1].template if scope and not found else ""

    # --- navigation ------------------------------------------------------------------------------------------

    def enter(self) -> None:
        """Open the template of the selected instance."""
        found = self.instances()
        if len(found) == 1:
            self._context.enter(found[0].name)
            self._canvas.setFocus()

    def leave(self) -> None:
        """Go back to the level above."""
        if self._context.leave():
            self._canvas.setFocus()

    # --- templates -------------------------------------------------------------------------------------------

    def ask_template(self) -> None:
        """Ask for a name and make a template from the selection. An invalid selection is refused before the dialog opens."""
        from app.ui.canvas.template_name import TemplateNameDialog

        document, names = self._context.document, self._canvas.selection_to_edit()
        if not names:
            return
        name = _free(document, "block")
        try:
            tried = self._made(document, names, name)
        except DiagnosticError as error:
            document.refused.emit(error.diagnostics)
            return
        made = tried.templates[name][1]
        assert made is not None
        layers = tr("{count} layers", count=len(names)) if len(names) != 1 else tr("1 layer")
        inputs = tr("{count} inputs", count=len(made.inputs)) if len(made.inputs) != 1 else tr("1 input")
        outputs = tr("{count} outputs", count=len(made.outputs)) if len(made.outputs) != 1 else tr("1 output")
        text = tr(
            "The selection ({layers}) is moved into the template and replaced by an instance with {inputs} and {outputs}. "
            "Weights are then stored under the name of the instance: {layer} becomes <instance>.{layer}.",
            layers=layers,
            inputs=inputs,
            outputs=outputs,
            layer=names[0],
        )
        TemplateNameDialog(
            document.graph, tr("Make Template"), text, tr("Make Template"), name, self._make, self._canvas
        ).open()

    def _make(self, name: str) -> None:
        names = self._canvas.selection_to_edit()
        edit = self._canvas.do(lambda d: self._made(d, names, name))
        if edit is not None:
            self._context.select(tuple(n for n, (old, _) in edit.layers.items() if old is None))
        self._canvas.setFocus()

    @staticmethod
    def _made(document: Document, names: Sequence[str], name: str) -> Edit:
        whole = network_ends(document.graph, document.registry, names)

        def placed(inside: Graph) -> dict[str, tuple[int, int]]:
            return layout_boxes.laid_out(Document(inside, document.registry))

        return template_commands.make_template(document.graph, names, name, whole=whole, placed=placed)

    def dissolve(self) -> None:
        """Replace each selected instance with copies of its template's layers."""
        instances = {layer.name for layer in self.instances()}
        names = [n for n in self._canvas.selection_to_edit() if n in instances]
        made: list[str] = []

        def all_of(document: Document) -> Edit:
            edit = template_commands.dissolve_all(document.graph, names)
            made.extend(n for n, (old, new) in edit.layers.items() if new is not None and (old is None or n in names))
            return edit

        if names and self._canvas.do(all_of) is not None:
            self._context.select(tuple(made))

    def ask_name(self) -> None:
        """Ask for a new name of the current template."""
        from app.ui.canvas.template_name import TemplateNameDialog

        template = self.template()
        if not template:
            return
        root = self._context.root
        count = root.graph.instance_counts()[template]
        text = (
            tr("{count} instances are updated. Shared weights are stored under this name.", count=count)
            if count != 1
            else tr("Its instance is updated. Shared weights are stored under this name.")
        )
        TemplateNameDialog(
            root.graph,
            tr("Rename Template"),
            text,
            tr("Rename"),
            template,
            lambda name: root.do(lambda g: template_commands.rename_template(g, template, name)),
            self._canvas,
        ).open()

    def move_port(self, step: int) -> None:
        """Move the selected port of the template in the order of ports."""
        names = self.ports()
        if len(names) == 1 and self._canvas.selection_to_edit():
            self._canvas.do(lambda d: template_commands.move_port(d.graph, names[0], step))

    def ports(self) -> list[str]:
        """The selected ports of the open template."""
        if not self._context.scope:
            return []
        graph = self._context.document.graph
        return [n for n in self._context.selection if n in graph and graph[n].type in (INPUT, OUTPUT)]

    # --- folding ---------------------------------------------------------------------------------------------

    def collapse(self) -> None:
        """Collapse the selected layers and frames to their titles, or expand them if all are collapsed."""
        ids = [item.frame.id for item in self._canvas.viewer.selected_frames()]
        names = self._canvas.selection_to_edit()
        if names or ids:
            members = self._canvas.projection.members
            edit = self._canvas.do(lambda d: frames.collapse(d.graph, names, ids, members))
            if edit is not None and ids:
                self._context.select(tuple(n for n in names if self._canvas.projection.entry(n).folded is None))
                for frame in ids:
                    item = self._canvas.projection.frame(frame)
                    if item is not None:
                        item.setSelected(True)

    def unfold(self, frame: str) -> None:
        """Expand a collapsed frame."""
        members = self._canvas.projection.members
        self._canvas.do(lambda d: frames.collapse(d.graph, [], [frame], members))


def _free(document: Document, base: str) -> str:
    """An unused template name to suggest."""
    name, number = base, 2
    while name in document.graph.templates or check_template_name(name) is not None:
        name, number = f"{base}_{number}", number + 1
    return name
