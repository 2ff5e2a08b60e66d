"""Tabs, files, recovery and the watch of the disk without a window and a canvas, for tests of what they decide."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.ui.document.document import Document
from app.ui.document.open_document import OpenDocument
from app.ui.engine.context import Context
from app.ui.shell.disk_watch import DiskWatch
from app.ui.shell.files import Files
from app.ui.shell.model_import import ModelImport
from app.ui.shell.recovery import Recovery
from app.ui.shell.tabs import Tabs
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry


def network(dims: str = "16x16x3", *, name: str = "network", features: str = "4") -> Graph:
    return Graph(
        [
            Layer("in", "input", params={"dims": dims}),
            Layer("conv", "convolution", (160, 0), (Source("in"),), {"features": features}),
            Layer("out", "output", (320, 0), (Source("conv"),)),
        ],
        name=name,
    )


class Viewer:
    """Takes the place of the canvas: a view is any value."""

    def __init__(self) -> None:
        self.view: object = "fresh"
        self.restored: list[object] = []

    def place(self) -> object:
        return self.view

    def restore(self, view: object) -> None:
        self.view = view
        self.restored.append(view)


class LightShell(QWidget):
    """What a window has around its canvas."""

    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        super().__init__()
        self.said: list[tuple[str, str]] = []
        self.context = Context(default_registry(), self)
        self.context.message.connect(lambda severity, text: self.said.append((severity, text)))
        self.viewer = Viewer()
        self.tabs = Tabs(self.context, self, self)  # type: ignore[arg-type]
        self.settings = QSettings(str(folder / "light.ini"), QSettings.Format.IniFormat)
        self.models = ModelImport(self, self.context, self.tabs)
        self.files = Files(self, self.context, self.settings, self.tabs, self.models)
        self.compared = 0
        self.disk = DiskWatch(self, self.context, self.tabs, self.files, self._compare)
        self.recovery = Recovery(self, self.context, self.tabs)
        self.tabs.bar.setParent(self)
        self.disk.bar.setParent(self)
        qtbot.addWidget(self, before_close_func=lambda _: self.end())
        self.show()
        qtbot.waitExposed(self)

    def _compare(self) -> None:
        self.compared += 1

    def end(self) -> None:
        self.disk.end()
        self.recovery.later()
        self.models.imports.end()
        self.tabs.end()

    def add(self, graph: Graph, path: Path | None = None, *, show: bool = True) -> OpenDocument:
        """A tab of a network, as if it had been read from `path`."""
        opened = OpenDocument(Document(graph, self.context.registry, path))
        self.tabs.add(opened, show=show)
        return opened

    @property
    def names(self) -> list[str]:
        """The texts of the tabs; the current one in brackets."""
        bar = self.tabs.bar
        return [f"[{bar.tabText(i)}]" if i == bar.currentIndex() else bar.tabText(i) for i in range(bar.count())]
