"""Number formats of layers: those of the current variant, what they do to the image, and blame for differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from msgspec import Struct
from PySide6.QtCore import QObject, Qt, Signal

from app.engine.protocol import (
    BitsReply,
    BitsRequest,
    BlameReply,
    BlameRequest,
    CompareTensorReply,
    CompareTensorRequest,
    PassesReply,
    PassesRequest,
    ProgressEvent,
    Request,
)
from app.ui.document.document import Document
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.question import EngineQuestion
from app.ui.widgets.theme import RoleName
from designer.files.variants import BY_HAND, Variant
from designer.graph.template import enclosing
from designer.precision.variants import added, base_format, changed, with_formats, with_pass
from designer.runtime.number_formats import FLOAT32, FORMATS
from designer.texts import mark, tr

TITLES = {
    "float32": mark("FP32"),
    "float16": mark("FP16"),
    "bfloat16": mark("BF16"),
    **{name: name.upper() for name, found in FORMATS.items() if found.is_integer},
}
ReplyT = TypeVar("ReplyT", bound=Struct)
Report = Callable[[str, RoleName], None]  # shows a text with its role; an empty one clears it


class NumberFormats(QObject):
    """Edits the number formats of the current variant, and asks the engine what formats do to the result.

    Layers are paths, as the engine calls them.
    """

    formats_changed = Signal()
    busy_changed = Signal(bool)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._context = context
        self._question = EngineQuestion(context, self)
        self._question.busy_changed.connect(self.busy_changed)
        self._document: Document | None = None
        context.format_dropped.connect(self._on_dropped)
        context.root_changed.connect(self._on_document)
        if context.has_document:
            self._on_document()

    # --- formats of layers --------------------------------------------------------------------------------------

    @property
    def variant(self) -> Variant | None:
        """The current variant of the open document."""
        return self._context.root.settings.current_variant if self._context.has_document else None

    @property
    def formats(self) -> Mapping[str, str]:
        """The formats of single layers of the current variant."""
        return self.variant.formats if self.variant is not None else {}

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why layers of the current variant have their formats, as far as that is known."""
        return self.variant.reasons if self.variant is not None else {}

    def format_of(self, path: str) -> str:
        """The format of a layer in the current variant: its own, or that of the innermost instance around it that has one."""
        usual = FLOAT32.name if self.variant is None else base_format(self.variant)
        return next((self.formats[name] for name in enclosing(path) if name in self.formats), usual)

    def set_format(self, name: str, layers: Iterable[str] | None = None) -> None:
        """Give layers, by default the selected ones, a number format; one undo step. FP32 is the format of the network."""
        paths = self._context.paths(self._context.selection) if layers is None else layers
        self.set_formats({**self.formats, **dict.fromkeys(paths, name)})

    def set_formats(self, formats: Mapping[str, str]) -> None:
        """Replace the formats of all layers in one undo step. Without a current variant there is a new one."""
        document = self._context.root
        settings = document.settings
        variant = settings.current_variant
        usual = base_format(variant) if variant is not None else FLOAT32.name
        wanted = {
            layer: name
            for layer, name in formats.items()
            if name != usual or any(outer in formats for outer in enclosing(layer)[1:])
        }
        if variant is not None:
            document.change_settings(variants=changed(settings.variants, variant.name, with_formats(variant, wanted)))
        elif wanted:
            variants = added(settings.variants, Variant(tr("Number formats"), formats=wanted))
            document.change_settings(variants=variants, variant=variants[-1].name)

    def set_pass(self, name: str, on: bool) -> None:
        """Give the current variant a graph pass, or take it away; without a current variant there is a new one."""
        document = self._context.root
        settings, variant = document.settings, self.variant
        if variant is not None:
            variants = changed(settings.variants, variant.name, with_pass(variant, name, on))
            document.change_settings(variants=variants)
        elif on:
            variants = added(settings.variants, Variant(tr("Optimized"), passes=(name,)))
            document.change_settings(variants=variants, variant=variants[-1].name)

    def _on_dropped(self, name: str, layer: str) -> None:
        """A format was dropped on a layer: it and, if it is selected, the other selected ones get it."""
        selection = self._context.selection
        self.set_format(name, self._context.paths(selection if layer in selection else (layer,)))

    def _on_document(self, *_: object) -> None:
        self.stop()
        if self._document is not None:
            self._document.settings_changed.disconnect(self.formats_changed)
        self._document = self._context.root
        self._document.settings_changed.connect(self.formats_changed)
        self.formats_changed.emit()

    # --- questions to the engine ------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return self._question.busy

    def measure_bits(self, done: Callable[[BitsReply], None], report: Report) -> None:
        """Measure how many bits each layer needs, and choices for all."""
        self._ask(BitsRequest(), done, report)

    def blame(self, a: str, b: str, done: Callable[[BlameReply], None], report: Report) -> None:
        """Find the operators that cause the difference between two computations; for their names see `app.computations`."""
        self._ask(BlameRequest(a, b, self._context.root.settings.variants), done, report)

    def compare_tensor(self, tensor: str, a: str, b: str, done: Callable[[Any, Any], None], report: Report) -> None:
        """Get a tensor of two computations."""
        request = CompareTensorRequest(tensor, a, b, self._context.root.settings.variants)

        def take(reply: CompareTensorReply) -> None:
            engine = analysis_of(self._context).engine
            done(engine.take(reply.a), engine.take(reply.b))

        self._ask(request, take, report)

    def measure_passes(self, done: Callable[[PassesReply], None], report: Report) -> None:
        """Find what every graph pass does to the network, with those of the current variant."""
        self._ask(PassesRequest(self.variant.passes if self.variant is not None else ()), done, report)

    def stop(self) -> None:
        """Give up what is asked; the engine is stopped if it works on it."""
        self._question.stop()

    def _ask(self, request: Request[ReplyT], done: Callable[[ReplyT], None], report: Report) -> None:
        """Ask about the open document; only one question at a time."""

        def came(reply: ReplyT) -> None:
            report("", "info")
            done(reply)

        def advance(event: ProgressEvent) -> None:
            if event.text:
                report(tr("{text} ({done} of {total})", text=event.text, done=event.done, total=event.total), "info")

        self._question.ask(request, came, lambda text: report(text, "error"), advance)


def reason_text(reason: str) -> str:
    """A reason in `Variant.reasons` on screen."""
    return tr("changed by hand") if reason == BY_HAND else reason


def number_formats_of(context: Context) -> NumberFormats:
    """The one object of a window."""
    found: NumberFormats | None = context.findChild(NumberFormats, options=Qt.FindChildOption.FindDirectChildrenOnly)
    return found or NumberFormats(context)
