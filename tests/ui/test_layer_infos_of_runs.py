"""What is known of the layers that ran: shapes and bytes at the size that was fed, modelled work, and times of a profile."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtWidgets import QApplication

from app.ui.analysis import layer_infos as module
from app.ui.analysis.layer_infos import LayerInfo, LayerInfos, layer_infos
from app.ui.document.document import Document
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.template import INSTANCE, Template
from designer.operators.api import Category
from designer.operators.registry import default_registry
from designer.profiling.cost import cost_table
from designer.profiling.quantities import ValueSource
from designer.profiling.schema import OperatorProfile, ProfileRun

CONV = {"features": "8", "kernel": "3x3", "padding": "same"}


def network(width: int = 16, height: int = 8) -> Graph:
    inner = (
        Layer("x", "template_input", params={"index": "0"}),
        Layer("conv", "convolution", (160, 0), (Source("x"),), CONV),
        Layer("y", "template_output", (320, 0), (Source("conv"),)),
    )
    layers = [
        Layer("image", "input", params={"dims": f"{width}x{height}x3"}),
        Layer("mask", "input", (0, 160), params={"dims": "4x2x1"}),
        Layer("one", "convolution", (160, 0), (Source("image"),), CONV),
        Layer("two", "convolution", (320, 0), (Source("one"),), {**CONV, "features": "2"}),
        Layer("same", "identity", (320, 160), (Source("mask"),)),
        Layer("block", INSTANCE, (320, 320), (Source("image"),), {"template": "t"}),
        Layer("strange", "of_a_plugin", (480, 0), (Source("two"),)),
        Layer("lost", "convolution", (480, 160)),
        Layer("out", "output", (640, 0), (Source("two"),)),
    ]
    return Graph(layers, templates=[Template("t", inner)])


def infos(
    fed: dict[str, tuple[int, ...]], precision: str = "fp32", run: ProfileRun | None = None
) -> dict[str, LayerInfo]:
    return layer_infos(network(), default_registry(), fed, precision, run)


def profile(*operators: OperatorProfile) -> ProfileRun:
    return ProfileRun("numpy", "fp32", "nchw", "", 1, "16x8", 3.0, None, operators)


def test_layers_have_the_shapes_of_what_was_fed_and_those_of_templates_their_names_in_the_engine() -> None:
    found = infos({"image": (1, 3, 24, 40)})
    shapes = {
        "image": "N x 3 x 24 x 40", "mask": "N x 1 x 2 x 4", "one": "N x 8 x 24 x 40", "two": "N x 2 x 24 x 40",
        "same": "N x 1 x 2 x 4", "block.conv": "N x 8 x 24 x 40", "strange": "unknown", "lost": "unknown",
        "out": "N x 2 x 24 x 40",
    }  # fmt: skip
    assert {name: found[name].shape.removesuffix(" float32") for name in shapes} == shapes
    titles = {name: (found[name].type, found[name].title, found[name].category) for name in ("one", "strange", "out")}
    assert titles["one"] == ("convolution", "Convolution", Category.CONVOLUTION)
    assert titles["strange"] == ("of_a_plugin", "of_a_plugin", None)
    assert titles["out"] == ("output", "Output", Category.INPUT_OUTPUT)
    assert all(info.measured is None for info in found.values())
    assert [(found[name].memory, found[name].weight) for name in ("strange", "lost")] == [(None, 0.0)] * 2


@pytest.mark.parametrize(
    "fed", [{}, {"image": ()}, {"image": (2, 3)}, {"gone": (5, 3, 24, 40)}, {"one": (1, 8, 99, 99)}]
)
def test_what_says_no_size_leaves_that_of_the_network(fed: dict[str, tuple[int, ...]]) -> None:
    assert infos(fed)["one"].shape == infos({})["one"].shape
    assert "8 x 8 x 16" in infos(fed)["one"].shape


def test_bytes_are_those_of_the_largest_batch_in_the_chosen_number_format() -> None:
    """Four bytes a number, or two; the batch can be that of any input."""
    for fed, batch in (
        ({}, 1),
        ({"image": (3, 3, 8, 16)}, 3),
        ({"image": (1, 3, 8, 16), "mask": (5, 1, 2, 4)}, 5),
        ({"image": (5, 3, 8, 16), "mask": (2, 1, 2, 4)}, 5),
        ({"image": (4, 3, 8, 16), "mask": ()}, 4),
    ):
        for precision, size in (("fp32", 4), ("fp16", 2)):
            found = infos(fed, precision)
            assert found["one"].memory == 8 * 8 * 16 * batch * size
            assert found["two"].memory == 2 * 8 * 16 * batch * size
            assert found["same"].memory == 4 * 2 * batch * size
            costs = cost_table(Inference(network(), default_registry()), precision=precision, batch=batch)
            for name in ("one", "two", "same"):
                cost = costs.group([name])
                wanted = cost.flops / 5e10 + (cost.bytes_read + cost.bytes_written) / 1e10
                assert found[name].weight == pytest.approx(wanted), (name, fed, precision)


def test_a_layer_has_its_time_in_the_profile_and_fused_ones_share_theirs_by_their_work() -> None:
    plain = infos({})
    one, two = (OperatorProfile((name,), "convolution", ms, inputs=("N x 3 x 8 x 16",) if name == "one" else ("N x 8 x 8 x 16",), outputs=("N x 8 x 8 x 16",) if name == "one" else ("N x 2 x 8 x 16",)) for name, ms in (("one", 5.0), ("two", 3.0)))  # fmt: skip
    found = infos({}, run=profile(one, two))
    times = {name: info.measured for name, info in found.items() if info.measured is not None}
    assert times == pytest.approx({"one": 5.0, "two": 3.0})
    fused = OperatorProfile(("one", "two"), "convolution + convolution", 6.0, inputs=("N x 3 x 8 x 16",), outputs=("N x 2 x 8 x 16",))  # fmt: skip
    found = infos({}, run=profile(fused))
    total = plain["one"].weight + plain["two"].weight
    assert plain["one"].weight != plain["two"].weight
    for name in ("one", "two"):
        assert found[name].measured == pytest.approx(6.0 * plain[name].weight / total)
    modelled = replace(profile(one, two), source=ValueSource.MODELLED)
    assert all(info.measured is None for info in infos({}, run=modelled).values())


def test_fused_layers_without_modelled_work_share_equally(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_figures", lambda costs, name: (None, 0.0))
    row = OperatorProfile(("a", "b", "c", "d"), "x", 8.0)
    costs = cost_table(Inference(network(), default_registry()))
    assert module._measured(costs, dict.fromkeys("abcd", row), "b") == 2.0
    assert module._measured(costs, {}, "b") is None


def test_figures_add_up_all_outputs() -> None:
    costs = SimpleNamespace(
        rows={"a": SimpleNamespace(outputs=(1, 2))},
        bytes_of=lambda kind: 10 * kind,
        group=lambda names: SimpleNamespace(flops=5e10, bytes_read=1e10, bytes_written=2e10),
    )
    assert module._figures(costs, "a") == (30, 4.0)
    assert module._figures(costs, "b") == (None, 0.0)


def test_each_of_what_infos_depend_on_is_looked_at_anew(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    document = Document(network(), default_registry(), parent=qapp)
    other = Document(network(), default_registry(), parent=qapp)
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(module, "layer_infos", lambda *what: asked.append(what) or {"number": len(asked)})
    infos = LayerInfos(document)
    run, another = profile(), profile()
    fed = {"image": (1, 3, 8, 16)}
    steps = [
        (document, fed, 0, None),
        (document, {"image": (2, 3, 8, 16)}, 0, None),
        (document, {"mask": (2, 3, 8, 16)}, 0, None),
        (document, fed, 1, None),
        (document, fed, 1, run),
        (document, fed, 1, another),
        (other, fed, 1, another),
    ]
    for number, (shown, sizes, revision, profiled) in enumerate(steps, 1):
        for _ in range(2):  # nothing is done when they are known
            infos.ask(shown, sizes, revision, profiled)
            assert len(asked) == infos.infos["number"] == number
        assert asked[-1][2:] == (sizes, "fp32", profiled)
    other.change_settings(precision="fp16")
    infos.ask(other, fed, 1, another)
    assert asked[-1][2:] == (fed, "fp16", another)
    for made in (document, other):
        made.deleteLater()
