"""Small networks without weights, and a window that compares them, for the tests of Side by Side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pytestqt.qtbot import QtBot

from app.ui.compare.variants import VariantChoice
from app.ui.compare.window import SideWindow
from app.ui.document.document import Document
from app.ui.engine.context import Context
from designer.files.document import read_document
from designer.operators.registry import default_registry
from designer.runtime.images import write_image

WAIT = 100_000
NETWORK = """<?xml version="1.0"?>
<NetworkModel name="{name}" version="2" user_version_tag="1">
	<Layer name="image" type="input" edit_pos="0,0">
		<Parameters dims="32x24x{channels}" rgba="false" scale="1.0" shift="0" tiling="1" />
	</Layer>
	<Layer name="mean" type="pooling" edit_pos="160,0" input="image">
		<Parameters operation="average" size="{size}x{size}" stride="{stride}x{stride}" padding="{padding}x{padding}" />
	</Layer>
	<Layer name="result" type="output" edit_pos="320,0" input="mean" />
</NetworkModel>
"""


def network(folder: Path, name: str, size: int = 3, stride: int = 1, channels: int = 3) -> Path:
    """A network that gives each pixel the mean of size x size."""
    path = folder / f"{name}.xml"
    text = NETWORK.format(name=name, size=size, stride=stride, padding=(size - 1) // 2, channels=channels)
    path.write_text(text)
    return path


def photograph(path: Path, seed: int = 0, size: tuple[int, int] = (96, 80)) -> Path:
    """Smooth gradients with a busy square; width x height."""
    ys, xs = np.mgrid[: size[1], : size[0]] / max(size)
    picture = np.stack([xs, ys, (xs + ys) / 2]) * 0.8 + 0.1
    picture[:, 8:16, 40:60] = np.random.default_rng(seed).random((3, 8, 20))
    write_image(path, picture[None].astype(np.float32))
    return path


class Side:
    """A context with one open document, and its window."""

    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        self.qtbot = qtbot
        self.folder = folder
        self.registry = default_registry()
        self.context = Context(self.registry)
        same = network(folder, "same", 1)
        graph = read_document(same).graph
        assert graph is not None
        self.document = Document(graph, self.registry, same, parent=self.context)
        self.context.set_document(self.document)
        self.window = SideWindow(self.context)
        qtbot.addWidget(self.window)
        self.window.resize(1200, 800)
        self.model = self.window.model
        self.model.picture = photograph(folder / "picture.png")
        self.model.choices = [VariantChoice(self.document), VariantChoice(network(folder, "smooth"))]

    def begin(self) -> None:
        self.window.show()
        self.qtbot.waitExposed(self.window)
        self.window.begin()
        self.wait()

    def wait(self) -> None:
        self.qtbot.waitUntil(lambda: not self.model.busy, timeout=WAIT)

    def cell(self, row: int, column: int) -> str:
        item = self.window.figures.table.item(row, column)
        assert item is not None
        return item.text()
