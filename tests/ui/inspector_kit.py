"""A Channel Inspector on a small network that runs, for the tests of its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import analysis_kit as kit
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QToolButton
from pytestqt.qtbot import QtBot

from app.ui.engine.client import EngineClient
from app.ui.inspector.channel_inspector import ChannelInspectorPanel


class Inspecting(kit.Launched):
    SIZE = (1000, 600)

    def __init__(self, qtbot: QtBot, engine: EngineClient) -> None:
        super().__init__(qtbot, engine)
        self.panel = ChannelInspectorPanel(self.context)
        qtbot.addWidget(self.panel)
        self.panel.resize(*self.SIZE)
        self.panel.show()

    @classmethod
    def launched(cls, qtbot: QtBot, engine: EngineClient, folder: Path) -> Self:
        """With a hidden convolution of 8 channels, an image, and random weights."""
        made = cls(qtbot, engine)
        made.open(kit.small_network(8))
        made.analysis.inputs.set_file("input_0", kit.picture(folder))
        made.launch_random()
        return made

    def inspect(self, layer: str) -> None:
        self.context.inspect_requested.emit(layer)
        self.qtbot.waitUntil(lambda: self.panel.page is not None, timeout=kit.WAIT)

    def click(self, name: str) -> None:
        self.qtbot.mouseClick(self.panel.findChild(QToolButton, f"channel_inspector.{name}"), Qt.MouseButton.LeftButton)

    def choose(self, name: str, row: int) -> None:
        """With the keyboard, as a user does."""
        box = self.panel.findChild(QComboBox, f"channel_inspector.{name}")
        box.setFocus()
        self.qtbot.keyClick(box, Qt.Key.Key_Home)
        for _ in range(row):
            self.qtbot.keyClick(box, Qt.Key.Key_Down)
