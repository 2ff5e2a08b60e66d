"""An open network, and a run of it of which every field is different, for the tests of the profiling panels."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget

from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.engine.profiling import ProfilingController, profiling_of
from app.ui.widgets import theme
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import default_registry
from designer.profiling.machine import Machine
from designer.profiling.quantities import measured, modelled
from designer.profiling.schema import OperatorProfile, Profile, ProfileRun

NAMES = ("stem", "body", "head", "tail")


@pytest.fixture
def context(qapp: QApplication) -> Context:
    theme.apply(qapp, "dark")
    layers = [Layer("image", "input", params={"dims": "16x8x3"})]
    for number, name in enumerate(NAMES):
        before = Source(layers[-1].name)
        layers.append(Layer(name, "convolution", (320 * (number + 1), 0), (before,), {"features": "3"}))
    layers.append(Layer("result", "output", (1600, 0), (Source("tail"),)))
    made = Context(default_registry())
    made.set_document(Document(Graph(layers), made.registry, parent=made))
    return made


@pytest.fixture
def profiling(context: Context) -> ProfilingController:
    return profiling_of(context)


def steps() -> tuple[OperatorProfile, ...]:
    """A fused step, one that was measured by itself, one of which nothing else is known, and time outside of operators."""
    return (
        OperatorProfile(
            ("stem", "body"),
            "convolution + relu",
            4.0,
            0.25,
            "3x3, 8 features",
            {"stem": {"kernel": "3x3", "features": "8"}, "body": {}},
            ("N x 3 x 8 x 16", "N x 1 x 8 x 16"),
            ("N x 8 x 8 x 16",),
            flops=12_000_000,
            bytes=3 << 20,
            learned=1234,
            memory_bytes=5 << 20,
            kernels="Fused_Kernel",
            bound="compute",
            roof_ms=1.0,
            saving_ms=3.0,
            tensor_core=measured(11.0, "counted"),
            memory_throughput=measured(22.0, "counted"),
            occupancy=measured(33.0, "counted"),
            compute_throughput=modelled(44.0, "achieved over peak"),
        ),
        OperatorProfile(
            ("head",),
            "upsample",
            2.0,
            0.5,
            "2x",
            {"head": {"mode": "nearest"}},
            ("N x 8 x 8 x 16",),
            ("N x 8 x 16 x 32",),
            flops=600_000,
            bytes=7 << 20,
            learned=0,
            memory_bytes=9 << 20,
            kernels="copy",
            bound="memory",
            roof_ms=2.0,
            saving_ms=0.0,
            tensor_core=measured(1.0, "counted"),
            memory_throughput=measured(2.0, "counted"),
            occupancy=measured(3.0, "counted"),
            compute_throughput=modelled(4.0, "achieved over peak"),
            alone=True,
        ),
        OperatorProfile(("tail",), "Custom", 0.0, bound="launch"),
        OperatorProfile((), "", 10.0),
    )


RUN = ProfileRun(
    "torch",
    "fp16",
    "nhwc",
    "cpu",
    3,
    "16x8",
    20.0,
    0.5,
    steps(),
    threads=2,
    iterations=7,
    inputs={"image": "3 x 3 x 8 x 16"},
    flops=12_600_000,
)


def profile_of(*runs: ProfileRun, network: str = "net") -> Profile:
    return Profile(Machine("Test CPU", 4, "Test GPU"), network, runs or (RUN,))


def check_launch(panel: QWidget, context: Context) -> None:
    """Check that the only button of an empty panel asks for a profiled run. Nothing runs then, nor later."""
    asked: list[None] = []
    context.inference_requested.disconnect()
    context.inference_requested.connect(lambda: asked.append(None))
    (launch,) = (button for button in panel.findChildren(QPushButton) if button.isVisible())
    assert launch.text() == "Launch Inference"
    launch.click()
    assert len(asked) == 1
