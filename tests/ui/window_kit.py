"""What tests of the whole window do again and again."""

from __future__ import annotations

from PySide6.QtTest import QTest

from designer.graph.graph import Graph
from designer.graph.model import ActivationSpec, Layer, Source


def action(window, name: str):
    return window.actions_[name]


def press(window, text: str) -> None:
    """A shortcut, pressed while the canvas has the focus."""
    window.canvas.viewer.setFocus()
    QTest.keySequence(window.canvas.viewer, text)


def network() -> Graph:
    """A network with something for every panel, and a layer of a type that nobody knows."""
    return Graph(
        [
            Layer("input", "input", params={"dims": "16x16x3", "tiling": "1"}),
            Layer("noise", "noise", (160, 0), (Source("input"),)),
            Layer("conv", "convolution", (320, 0), (Source("noise"),), {"features": "3"}, ActivationSpec("relu")),
            Layer("mix", "mix", (480, 0), (Source("conv"), Source("noise"))),
            Layer("strange", "of_a_plugin", (320, 160), (), {"secret": "1"}),
            Layer("output", "output", (640, 0), (Source("mix"),)),
        ],
        name="named",
    )
