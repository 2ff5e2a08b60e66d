"""What the inputs of the open network are fed with: told to the engine, and what it says about it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from app.ui.document.document import Document
from app.ui.engine.client import EngineClient
from app.ui.engine.inputs import default_picture, layers_of
from app.ui.widgets.sentences import placed_text
from designer.graph.diagnostics import Diagnostic
from designer.operators.api import Role

if TYPE_CHECKING:
    from app.ui.engine.playback import Playback

Findings = tuple[Diagnostic, ...]


class InputFeeding(QObject):
    """The part of the analysis that knows its inputs. `again` and `engine` are its user's."""

    inputs_changed = Signal()
    playback: Playback

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.input_errors: dict[str, str] = {}
        self.input_shapes: dict[str, tuple[int, ...]] = {}  # of what was fed
        self._dirty_inputs: set[str] = set()  # to be fed before the next run
        self._batch_errors: list[Diagnostic] = []
        self._document: Document | None = None

    @property
    def engine(self) -> EngineClient:
        raise NotImplementedError

    def again(self) -> None:
        raise NotImplementedError

    def set_input(self, layer: str, path: Path) -> None:
        """Feed a picture or an `.npy` file to an input layer."""
        if self._document is None:
            return
        self.input_errors.pop(layer, None)
        files = self._document.settings.input_files
        if files.get(layer) == str(path):  # perhaps the file itself is another now
            self._feed({layer})
        else:
            self._document.change_settings(input_files={**files, layer: str(path)})

    def feed_frames(self, layers: list[str]) -> None:
        """The wishes of `playback` for these inputs are others: run with them."""
        self._dirty_inputs.update(layers)
        self.again()

    def _feed(self, layers: set[str]) -> None:
        self._dirty_inputs |= layers
        self.inputs_changed.emit()
        self.again()

    def input_layers(self) -> tuple[str, ...]:
        document = self._document
        return layers_of(document.graph, document.registry, Role.INPUT) if document is not None else ()

    def output_layers(self) -> tuple[str, ...]:
        document = self._document
        return layers_of(document.graph, document.registry, Role.OUTPUT) if document is not None else ()

    def input_path(self, layer: str) -> Path | None:
        """The chosen file, else the sample photograph that stands in."""
        if self._document is None or layer not in self._document.graph:
            return None
        chosen = self._document.settings.input_files.get(layer)
        return Path(chosen) if chosen else default_picture(self._document.graph, layer)

    def _send_input(self, layer: str, path: Path) -> None:
        def fed(reply: Mapping[str, Any]) -> None:
            self.input_shapes[layer] = tuple(reply.get("shape", ()))
            self.playback.fed(layer, reply)
            if self.input_errors.pop(layer, None) is not None:
                self.inputs_changed.emit()

        def refused(found: Findings) -> None:
            self._batch_errors.extend(found)
            self._dirty_inputs.add(layer)
            if found[0].code in ("engine-crashed", "cancelled"):
                return
            self.input_errors[layer] = placed_text(found[0])
            self.inputs_changed.emit()

        self.engine.request("set_input", {"layer": layer, "path": str(path), **self.playback.wish(layer)}, fed, refused)
