"""The network as a picture: PNG, SVG and PDF, of everything or a part, and what cannot be drawn."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

import samples
from app.ui.canvas.canvas import Canvas
from app.ui.canvas.network_image import ImageOptions, drawn, save
from app.ui.document.document import Document
from app.ui.engine.context import Context
from app.ui.shell.export.picture import PictureDialog
from app.ui.widgets import theme
from designer.files.document import read_document
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import FOLDED, Frame, Layer
from designer.operators.registry import default_registry

pytestmark = pytest.mark.gui

GRAY = QImage.Format.Format_Grayscale8


@pytest.fixture
def document(qapp) -> Document:
    graph = read_document(samples.path("residual_blocks.xml")).graph
    assert graph is not None
    return Document(graph, default_registry())


def colours(image: QImage) -> set[str]:
    step = max(1, image.width() // 400)
    return {image.pixelColor(x, y).name() for x in range(0, image.width(), step) for y in range(0, image.height(), 2)}


def test_a_png_has_the_scale_and_the_colours_that_were_asked_for(document, tmp_path):
    theme_before = theme.is_dark()
    for dark, ground in ((False, "#fafbfc"), (True, "#161719")):
        save(document, tmp_path / "a.png", ImageOptions(dark=dark, scale=1.0))
        small = QImage(str(tmp_path / "a.png"))
        assert small.pixelColor(1, 1).name() == ground
        assert len(colours(small)) > 5
    save(document, tmp_path / "b.png", ImageOptions(scale=3.0, transparent=True))
    large = QImage(str(tmp_path / "b.png"))
    assert abs(large.width() - 3 * small.width()) <= 3
    assert large.pixelColor(1, 1).alpha() == 0
    assert theme.is_dark() == theme_before


def test_a_png_has_the_whole_network_at_every_scale(document, tmp_path):
    """Reduced to the same size, the images are the same but for the edges of lines."""
    images = []
    for scale in (1.0, 2.0, 3.0):
        save(document, tmp_path / "a.png", ImageOptions(scale=scale))
        image = QImage(str(tmp_path / "a.png"))
        size = images[0].size() if images else image.size()
        images.append(image.scaled(size, mode=Qt.TransformationMode.SmoothTransformation).convertToFormat(GRAY))
    values = [
        np.array(image.constBits()).reshape(image.height(), image.bytesPerLine()).astype(float) for image in images
    ]
    assert values[0].std() > 10
    for larger in values[1:]:
        assert np.abs(larger - values[0]).mean() < 3


def test_an_svg_has_every_name_as_text(document, tmp_path):
    save(document, tmp_path / "a.svg", ImageOptions())
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    texts = {"".join(element.itertext()).strip() for element in root.iter() if element.tag.endswith("text")}
    assert set(document.graph.layers) <= texts
    assert not [e for e in root.iter() if e.tag.endswith("image")]


@pytest.mark.parametrize("page", ["A4", "drawing"])
def test_a_pdf_is_one_page_without_pixels(document, tmp_path, page):
    save(document, tmp_path / "a.pdf", ImageOptions(page=page))
    data = (tmp_path / "a.pdf").read_bytes()
    assert data.startswith(b"%PDF")
    assert data.count(b"/Type /Page\n") == 1
    assert b"/Subtype /Image" not in data


def test_only_a_part(document):
    names = list(document.graph.layers)[:2]
    with drawn(document, ImageOptions()) as whole, drawn(document, ImageOptions(names=names)) as part:
        assert part.area.width() < whole.area.width()
    far = Frame("far", rect=(9000, 9000, 400, 300))
    document.do(lambda g: Edit("", frames={"far": (None, far)}))
    with drawn(document, ImageOptions()) as framed, drawn(document, ImageOptions(names=names)) as same:
        assert framed.area.right() > 9000 > whole.area.right()
        assert same.area == part.area  # frames belong to the whole network


@pytest.mark.parametrize(
    ("name", "look", "code"),
    [
        ("a.png", ImageOptions(scale=2000.0), "picture-too-large"),
        ("a.bmp", ImageOptions(), "unknown-format"),
        ("no/a.png", ImageOptions(), "cannot-save"),
    ],
)
def test_what_cannot_be_written_says_why_and_leaves_nothing(document, tmp_path, name, look, code):
    with pytest.raises(DiagnosticError) as caught:
        save(document, tmp_path / name, look)
    assert caught.value.diagnostics[0].code == code
    assert caught.value.diagnostics[0].remedy
    assert list(tmp_path.iterdir()) == []


def test_an_empty_network_has_no_picture(qapp, tmp_path):
    with pytest.raises(DiagnosticError, match="no layers"):
        save(Document(Graph(), default_registry()), tmp_path / "a.png", ImageOptions())


@pytest.fixture
def shown(qtbot, document):
    """A canvas that shows a network with a collapsed frame, an open one far outside, and an inspected layer."""
    context = Context(document.registry)
    names = list(document.graph.layers)
    frames = [Frame("shut", "Shut", collapsed=True), Frame("far", "Far", rect=(3000, 1200, 300, 200))]
    first = document.graph[names[0]]
    inside = {first.name: (first, replace(first, attributes={FOLDED: "shut"}))}
    document.do(lambda g: Edit("Frames", inside, frames={f.id: (None, f) for f in frames}))
    context.set_document(document)
    canvas = Canvas(context)
    qtbot.addWidget(canvas)
    canvas.resize(900, 600)
    canvas.show()
    canvas.projection.inspect(names[-1])
    context.select(names[2:5])
    return context, canvas


def test_a_part_has_a_collapsed_frame_in_place_of_its_layers(shown, tmp_path):
    document = shown[0].document
    folded, *_, other, _ = document.graph.layers
    save(document, tmp_path / "a.svg", ImageOptions(names=(folded, other)))
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    texts = {"".join(element.itertext()).strip() for element in root.iter() if element.tag.endswith("text")}
    assert {"Shut", other} <= texts
    assert texts.isdisjoint(document.graph.layers.keys() - {other})


@pytest.mark.parametrize("part", ["all", "selection", "seen"])
@pytest.mark.parametrize("large", [False, True])
def test_the_size_that_is_told_is_that_of_the_file(qtbot, request, monkeypatch, tmp_path, part, large):
    if large:  # items are made only where the canvas shows something
        monkeypatch.setattr("app.ui.canvas.projection.EAGER", 3)
    context, canvas = request.getfixturevalue("shown")
    assert any(canvas.projection.entry(n).folded is not None for n in canvas.projection.layers)
    dialog = PictureDialog(context, canvas)
    qtbot.addWidget(dialog)
    dialog.part.setCurrentIndex(dialog.part.findData(part))
    dialog.scale.setValue(1.7)
    dialog.target.setText(str(tmp_path / "a.png"))
    qtbot.waitUntil(lambda: "pixels" in dialog.pixels.text())
    reported = [int(n.replace(",", "")) for n in dialog.pixels.text().split() if n[0].isdigit()]
    dialog.export.click()
    image = QImage(str(tmp_path / "a.png"))
    assert reported == pytest.approx([image.width(), image.height()], abs=3)


def test_the_size_makes_no_items_and_waits_until_the_canvas_has_measured(qtbot, qapp, monkeypatch):
    layers = [Layer(f"c{n}", "convolution", (n * 320, 0)) for n in range(400)]
    document = Document(Graph(layers), default_registry())
    context = Context(document.registry)
    context.set_document(document)
    canvas = Canvas(context)
    qtbot.addWidget(canvas)
    before = len(canvas.viewer.scene().items())
    monkeypatch.setattr("app.ui.canvas.network_image.LayerViewer", None)  # another canvas would be needed to draw
    assert not canvas.projection.measured
    dialog = PictureDialog(context, canvas)
    qtbot.addWidget(dialog)
    assert dialog.pixels.text() == "Measuring the network..."
    qtbot.waitUntil(lambda: "pixels" in dialog.pixels.text())
    assert canvas.projection.measured
    assert len(canvas.viewer.scene().items()) == before


def test_from_the_menu_with_keys(qtbot, empty_window, tmp_path):
    window = empty_window
    with qtbot.waitActive(window):
        window.activateWindow()
    assert window.files.open(samples.path("denoiser.xml"))
    window.canvas.select_all()
    qtbot.waitUntil(window.actions_["export.picture"].isEnabled)
    QTest.keySequence(window, "Ctrl+Shift+E")
    dialog = next(w for w in QApplication.topLevelWidgets() if isinstance(w, PictureDialog))
    assert "pixels" in dialog.pixels.text()
    dialog.target.setText(str(tmp_path / "net.txt"))
    assert not dialog.export.isEnabled()
    dialog.target.setText("~nobody-of-that-name/net.svg")  # a name like another, while it is typed
    assert dialog.export.isEnabled()
    (tmp_path / "net.svg").write_text("of yesterday")
    dialog.target.setText(str(tmp_path / "net.svg"))
    assert "will be overwritten" in dialog.message.text()
    dialog.part.setCurrentIndex(dialog.part.findData("selection"))
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    assert "written to" in dialog.message.text()
    assert (tmp_path / "net.svg").stat().st_size > 1000
    dialog.close()


def test_only_the_options_of_the_format_are_shown(qtbot, empty_window, tmp_path):
    window = empty_window
    assert window.files.open(samples.path("denoiser.xml"))
    dialog = PictureDialog(window.context, window.canvas, parent=window)
    qtbot.addWidget(dialog)
    dialog.show()
    rows = (dialog.scale, dialog.page, dialog.transparent)
    for suffix, shown in (("png", (True, False, True)), ("svg", (False, False, True)), ("pdf", (False, True, False))):
        dialog.target.setText(str(tmp_path / f"net.{suffix}"))
        assert tuple(row.isVisible() for row in rows) == shown
        assert ("pixels" in dialog.pixels.text()) == (suffix == "png")
