"""What the input layers of the open network are fed with, and what the engine says about it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.ui.document.document import Document
from app.ui.engine.call import Findings
from app.ui.engine.inputs import default_picture, layers_of
from app.ui.widgets.sentences import placed_text
from designer.graph.edits import ChangeSet
from designer.operators.api import Role


class NetworkInputs(QObject):
    """The files of the document's settings, by input layer. Those that the engine has not been given yet wait in `take`."""

    changed = Signal()  # other layers, other files, or another error
    run_wanted = Signal()  # something else is fed

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.errors: dict[str, str] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}  # of what was fed
        self._document: Document | None = None
        self._known: frozenset[str] = frozenset()  # input layers; one that only losses read comes and goes
        self._waiting: set[str] = set()

    def set_document(self, document: Document) -> None:
        """Another network; `changed` is left to whoever knows when all is consistent."""
        self._document = document
        self._known = frozenset(self.layers())
        self.errors.clear()
        self.shapes.clear()

    def layers(self) -> tuple[str, ...]:
        """The input layers that inference reads, by name."""
        document = self._document
        return layers_of(document.graph, document.registry, Role.INPUT) if document is not None else ()

    def path(self, layer: str) -> Path | None:
        """The chosen file, or else the sample photo."""
        document = self._document
        if document is None or layer not in document.graph:
            return None
        chosen = document.settings.input_files.get(layer)
        return Path(chosen) if chosen else default_picture(document.graph, document.registry, layer)

    def set_file(self, layer: str, path: Path) -> None:
        """Feed an image, a video, a folder or an `.npy` file to an input layer."""
        if self._document is None:
            return
        self.errors.pop(layer, None)
        files = self._document.settings.input_files
        if files.get(layer) == str(path):  # perhaps the file itself is another now
            self.feed({layer})
        else:
            self._document.change_settings(input_files={**files, layer: str(path)})

    def feed(self, layers: set[str]) -> None:
        """The files of these layers are others."""
        self._waiting |= layers
        self.changed.emit()
        self.run_wanted.emit()

    def feed_frames(self, layers: list[str]) -> None:
        """Other frames of the same files are due."""
        self._waiting.update(layers)
        self.run_wanted.emit()

    def feed_all(self) -> None:
        """The engine has nothing yet."""
        self._waiting = set(self.layers())

    def take(self) -> list[tuple[str, Path]]:
        """What waits for the engine; it counts as given."""
        layers = sorted(self._waiting.intersection(self.layers()))
        self._waiting.clear()
        return [(layer, path) for layer in layers if (path := self.path(layer)) is not None]

    def follow(self, change: ChangeSet) -> None:
        """The network was edited."""
        known, self._known = self._known, frozenset(self.layers())
        for layer in known - self._known:
            self.errors.pop(layer, None)
            self.shapes.pop(layer, None)
        touched = (change.added | change.reconfigured | (self._known - known)) & self._known
        if touched or self._known != known:
            self._waiting |= touched
            self.changed.emit()

    def was_fed(self, layer: str, shape: tuple[int, ...]) -> None:
        self.shapes[layer] = shape
        if self.errors.pop(layer, None) is not None:
            self.changed.emit()

    def was_refused(self, layer: str, found: Findings) -> None:
        """It has to be fed again before the next run."""
        self._waiting.add(layer)
        if found[0].code not in ("engine-crashed", "cancelled"):
            self.errors[layer] = placed_text(found[0])
            self.changed.emit()
