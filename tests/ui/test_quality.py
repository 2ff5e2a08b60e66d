"""PSNR and SSIM under the picture and in the report: of what an export gives, against the image before noise."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.gui

from pathlib import Path

import analysis_kit as kit
import numpy as np
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

import samples
from app.reports.analysis_report import write_analysis
from app.ui.analysis.analysis_panel import AnalysisPanel
from app.ui.analysis.report import seen_in
from app.ui.document.document import Document
from app.ui.engine.client import EngineClient
from app.ui.engine.result import Phase
from designer.files.document import read_document
from designer.graph.commands import add_layer, set_params
from designer.graph.model import Layer
from designer.metrics import psnr, ssim
from designer.runtime.images import read_image


@pytest.fixture
def sample(qtbot: QtBot, engine: EngineClient) -> kit.Launched:
    """The sample with its trained weights, on a photograph whose size is not a multiple of what tiling asks for."""
    made = kit.Launched(qtbot, engine)
    path = samples.path("denoiser_analyze.xml")
    graph = read_document(path).graph
    assert graph is not None
    made.context.set_document(Document(graph, made.context.registry, path))
    made.analysis.inputs.set_file("input_image", samples.HELD_OUT)
    return made


def shown(panel: AnalysisPanel) -> QLabel:
    label = panel.findChild(QLabel, "analysis.output.output_image.quality")
    assert label is not None
    return label


def test_the_denoiser_is_measured_whatever_mix_shows(sample: kit.Launched, qtbot: QtBot, tmp_path: Path) -> None:
    panel = AnalysisPanel(sample.context)
    qtbot.addWidget(panel)
    panel.show()
    sample.analysis.launch()
    sample.wait(Phase.READY)
    label = shown(panel)
    qtbot.waitUntil(lambda: label.isEnabled() and "PSNR" in label.text(), timeout=kit.WAIT)
    assert label.isVisible()
    result = sample.analysis.result
    assert result is not None
    clean = read_image(samples.HELD_OUT)
    height, width = clean.shape[-2:]
    made = result.captures["conv_out_0"][..., :height, :width]
    before = f"PSNR {psnr(clean, made):.2f} dB, SSIM {ssim(clean, made):.4f}: conv_out_0 against input_image"
    assert label.text() == before
    assert psnr(clean, made) > 30
    assert abs(psnr(clean, result.outputs["output_image"]) - psnr(clean, made)) > 1  # the picture is that of a Mix
    page = tmp_path / "report.html"
    write_analysis(page, seen_in(sample.context))
    words = page.read_text()
    assert before in words
    assert words.count("PSNR") == 1
    sample.context.root.do(lambda graph: set_params(graph, {"noise_0": {"scale": "0.02"}}))
    qtbot.waitUntil(lambda: label.isEnabled() and label.text() not in ("", before), timeout=kit.WAIT)
    result = sample.analysis.result
    assert result is not None
    again = result.captures["conv_out_0"][..., :height, :width]
    assert label.text().startswith(f"PSNR {psnr(clean, again):.2f} dB, ")
    assert not np.array_equal(again, made)
    after = label.text()
    sample.context.root.do(lambda graph: add_layer(graph, Layer("other", "output")))
    qtbot.waitUntil(lambda: panel.findChild(QLabel, "analysis.output.other.quality") is not None)
    assert shown(panel).text() == after


def test_without_a_clean_image_there_is_no_figure(qtbot: QtBot, engine: EngineClient, tmp_path: Path) -> None:
    made = kit.Launched(qtbot, engine)
    graph = kit.small_network()
    graph.apply(set_params(graph, {"input_0": {"scale": "2.0"}}))
    made.open(graph)
    made.analysis.inputs.set_file("input_0", kit.picture(tmp_path))
    panel = AnalysisPanel(made.context)
    qtbot.addWidget(panel)
    panel.show()
    made.launch_random()
    label = panel.findChild(QLabel, "analysis.output.output_0.quality")
    assert label is not None
    assert label.isHidden()
    page = tmp_path / "report.html"
    write_analysis(page, seen_in(made.context))
    assert "PSNR" not in page.read_text()
