"""The network as a picture: PNG, SVG and PDF, of everything or a part, and what cannot be drawn."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")

import re
import zlib
from dataclasses import replace
from itertools import product
from xml.etree import ElementTree

import numpy as np
from painted import of_svg, role
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

import samples
from app.ui.canvas import network_image
from app.ui.canvas.canvas import Canvas
from app.ui.canvas.network_image import ImageOptions, drawn, drawn_area, save
from app.ui.document.document import Document
from app.ui.document.template_view import ScopeStep, TemplateView
from app.ui.engine.context import Context
from app.ui.shell.export import picture as picture_module
from app.ui.shell.export.picture import PictureDialog
from app.ui.widgets import theme
from designer.files.document import read_document
from designer.graph.diagnostics import DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import FOLDED, Frame, Layer, Source
from designer.graph.template import Template
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


@pytest.mark.parametrize("scale", [0.25, 0.5, 1.0, 2.0, 3.0])
def test_lines_grow_with_a_png_but_do_not_get_thinner_below_100_percent(qapp, tmp_path, scale):
    """What a link covers of a column of pixels is as much as its width."""
    layers = [Layer("a", "identity"), Layer("b", "identity", (1200, 0), (Source("a"),))]
    save(Document(Graph(layers), default_registry()), tmp_path / "a.png", ImageOptions(scale=scale, transparent=True))
    image = QImage(str(tmp_path / "a.png"))
    columns = [round(image.width() * share) for share in (0.4, 0.45, 0.55, 0.6)]
    covered = [sum(image.pixelColor(x, y).alphaF() for y in range(image.height())) for x in columns]
    assert covered == pytest.approx([1.6 * max(1.0, scale)] * len(columns), abs=0.15)


def test_an_svg_has_every_name_as_text(document, tmp_path):
    save(document, tmp_path / "a.svg", ImageOptions())
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    texts = {"".join(element.itertext()).strip() for element in root.iter() if element.tag.endswith("text")}
    assert set(document.graph.layers) <= texts
    assert not [e for e in root.iter() if e.tag.endswith("image")]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("transparent", [False, True])
def test_an_svg_shows_what_a_png_shows(qapp, tmp_path, dark, transparent):
    """Its ground, where nothing is drawn, included; also for a part of the canvas."""
    made = pages(2, down=False)
    for area in (None, QRectF(100, -40, 300, 180)):
        options = ImageOptions(dark=dark, transparent=transparent, scale=1.0, area=area)
        save(made, tmp_path / "a.png", options)
        save(made, tmp_path / "a.svg", options)
        png = QImage(str(tmp_path / "a.png")).convertToFormat(QImage.Format.Format_ARGB32)
        svg = QImage(png.size(), QImage.Format.Format_ARGB32)
        svg.fill(Qt.GlobalColor.transparent)
        painter = QPainter(svg)
        QSvgRenderer(str(tmp_path / "a.svg")).render(painter)
        painter.end()
        for x, y in product((2, png.width() - 3), (2, png.height() - 3)):
            assert svg.pixelColor(x, y) == png.pixelColor(x, y)
        assert svg.pixelColor(2, 2).alpha() == (0 if transparent else 255)
        pairs = [np.array(each.constBits()).astype(float) for each in (png, svg)]
        assert np.abs(pairs[0] - pairs[1]).mean() < 4
        assert pairs[1].std() > 5


@pytest.mark.parametrize("dark", [False, True])
def test_the_ground_of_an_svg_is_all_of_its_area_unless_it_is_transparent(qapp, dark):
    """All else is the same in both."""
    others = {}
    for transparent in (False, True):
        with drawn(pages(2, down=False), ImageOptions(dark=dark, transparent=transparent)) as image:
            data, whole = image.svg(), QRectF(0, 0, *image.area.size().toSize().toTuple())
        with theme.as_if(dark=dark):
            found, ground = of_svg(data), role(theme.color("sunken"))
        covering = [(number, stroke.fill) for number, stroke in enumerate(found) if stroke.area.contains(whole)]
        assert covering == ([] if transparent else [(0, ground)]), "it is behind everything else"
        others[transparent] = [str(stroke) for stroke in found[len(covering) :]]
        assert len(found) > 10
    assert others[True] == others[False]


@pytest.mark.parametrize("page", ["A4", "drawing"])
def test_a_pdf_is_one_page_without_pixels(document, tmp_path, page):
    save(document, tmp_path / "a.pdf", ImageOptions(page=page))
    data = (tmp_path / "a.pdf").read_bytes()
    assert data.startswith(b"%PDF")
    assert data.count(b"/Type /Page\n") == 1
    assert b"/Subtype /Image" not in data


PAPERS = {"A4": (595, 842), "A3": (842, 1191), "Letter": (612, 792)}  # points
MARGIN = 12 / 25.4 * 72


def pages(count: int, *, down: bool) -> Document:
    layers = [
        Layer(f"l{n}", "input", (0, 400 * n) if down else (400 * n, 0), params={"dims": "8x8x3"}) for n in range(count)
    ]
    return Document(Graph(layers, name="net & \u00e9"), default_registry())


@pytest.mark.parametrize(
    ("page", "dark", "transparent"),
    [("drawing", True, False), ("A4", True, False), ("A3", True, True), ("Letter", False, False)],
)
@pytest.mark.parametrize(("count", "down"), [(1, False), (12, False), (12, True)])
def test_where_the_drawing_is_on_the_page(qapp, tmp_path, page, count, down, dark, transparent):
    """Paper lies if the drawing is wider than high. The drawing is in its middle, 96 units an inch or as large as fits."""
    options = ImageOptions(page=page, dark=dark, transparent=transparent)
    made = pages(count, down=down)
    with drawn(made, options) as image:
        width, height = image.area.size().toTuple()
    save(made, tmp_path / "a.pdf", options)
    data = (tmp_path / "a.pdf").read_bytes()
    assert "net & \u00e9".encode("utf-16-be") in data
    assert "Layerwright".encode("utf-16-be") in data
    (box,) = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", data)
    across, up = (float(each) for each in box)
    if page == "drawing":
        assert (across, up) == (pytest.approx(width * 0.75, abs=1), pytest.approx(height * 0.75, abs=1))
    else:
        short, long = PAPERS[page]
        assert (round(across), round(up)) == ((long, short) if width > height else (short, long))
    (text,) = [
        found
        for stream in re.findall(rb"stream\r?\n(.*?)endstream", data, re.DOTALL)
        if b" cm\n" in (found := _inflated(stream)) and b"W* n" in found
    ]
    number = rb"(-?[\d.]+)"
    (matrix,) = re.findall(number + rb" 0 0 " + number + rb" " + number + rb" " + number + rb" cm", text[:200])
    dot, _, left, top = (float(each) for each in matrix)
    around = 0 if page == "drawing" else MARGIN
    dots = max(96, 72 * width / (across - 2 * around), 72 * height / (up - 2 * around))
    assert 72 / dot == pytest.approx(dots, rel=0.02), (
        "lines are as thick as on the canvas, and no thinner than at 96 dots an inch"
    )
    ground = re.findall(
        number + rb" " + number + rb" " + number + rb" scn\s/GSa gs\s0 0 " + number + rb" " + number + rb" re",
        text[:300],
    )
    with theme.as_if(dark=dark):
        sunken = theme.color("sunken").getRgbF()[:3]
    assert len(ground) == (dark and not transparent)
    margin = 0 if page == "drawing" else MARGIN
    for red, green, blue, wide, high in ground:
        assert [float(red), float(green), float(blue)] == pytest.approx(list(sunken), abs=0.01)
        assert float(wide) * dot == pytest.approx(across - 2 * margin, abs=1.5)
        assert float(high) * dot == pytest.approx(up - 2 * margin, abs=1.5)
    corners = re.findall(number + rb" " + number + rb" [ml]\n", text[text.index(b" cm\n") : text.index(b"W* n")])
    xs, ys = sorted(left + dot * float(x) for x, _ in corners), sorted(top - dot * float(y) for _, y in corners)
    scale = min(0.75, (across - 2 * margin) / width, (up - 2 * margin) / height)
    assert xs[-1] - xs[0] == pytest.approx(width * scale, rel=0.01, abs=1)
    assert ys[-1] - ys[0] == pytest.approx(height * scale, rel=0.01, abs=1)
    assert (xs[-1] + xs[0]) / 2 == pytest.approx(across / 2, abs=1.5)
    assert (ys[-1] + ys[0]) / 2 == pytest.approx(up / 2, abs=1.5)


@pytest.mark.parametrize(
    ("side", "total", "refused"), [(900, 10**9, True), (10**6, 10**4, True), (10**6, 10**9, False)]
)
def test_an_image_has_at_most_so_many_pixels_a_side_and_in_total(qapp, monkeypatch, side, total, refused):
    monkeypatch.setattr(network_image, "MAX_SIDE", side)
    monkeypatch.setattr(network_image, "MAX_PIXELS", total)
    with drawn(pages(3, down=False), ImageOptions(scale=1.0)) as image:
        width, height = image.pixels().toTuple()
        assert width > 900
        assert height < 900
        if refused:
            with pytest.raises(
                DiagnosticError,
                match=f"an image of {width:,} x {height:,} pixels is too large: at most {side:,} a side",
            ):
                image.png()
        else:
            assert QImage.fromData(image.png()).size().toTuple() == (width, height)
        root = ElementTree.fromstring(image.svg())
        assert root.findtext("{http://www.w3.org/2000/svg}title") == "net & \u00e9"
        assert [float(each) for each in root.get("viewBox").split()] == [0, 0, *image.area.size().toSize().toTuple()]


def _inflated(stream: bytes) -> bytes:
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""


def test_only_a_part(document):
    names = list(document.graph.layers)[:2]
    with drawn(document, ImageOptions()) as whole, drawn(document, ImageOptions(names=names)) as part:
        assert part.area.width() < whole.area.width()
    far = Frame("far", rect=(9000, 9000, 400, 300))
    document.do(lambda g: Edit("", frames={"far": (None, far)}))
    with drawn(document, ImageOptions()) as framed, drawn(document, ImageOptions(names=names)) as same:
        assert framed.area.right() > 9000 > whole.area.right()
        assert same.area == part.area  # frames belong to the whole network


def test_the_inside_of_a_template_is_a_picture_of_its_own(qapp, tmp_path):
    inner = [Layer("x", "template_input"), Layer("y", "template_output", (900, 700), inputs=(Source("x"),))]
    template = Template("block", inner)
    far = Layer("b", "template", (5000, 0), inputs=(Source("in"),), params={"template": "block"})
    document = Document(Graph([Layer("in", "input"), far], templates=[template]), default_registry())
    view = TemplateView(document, ScopeStep("b", "block"))
    names = {}
    for which, shown in (("file", document), ("template", view)):
        save(shown, tmp_path / "a.svg", ImageOptions())
        names[which] = {text for text in ("in", "b", "x", "y") if f">{text}<" in (tmp_path / "a.svg").read_text()}
        save(shown, tmp_path / "a.png", ImageOptions(scale=1.0))
        assert (QImage(str(tmp_path / "a.png")).width() > 5000) is (which == "file")
    assert names == {"file": {"in", "b"}, "template": {"x", "y"}}


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


@pytest.mark.parametrize("frames", [(), (Frame("note", "A note", rect=(0, 0, 320, 160)),)])
def test_an_empty_network_has_no_picture(qapp, tmp_path, frames):
    with pytest.raises(DiagnosticError, match="no layers"):
        save(Document(Graph(frames=frames), default_registry()), tmp_path / "a.png", ImageOptions())
    assert list(tmp_path.iterdir()) == []


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
    around = Frame("around", "Around", rect=(-400, -400, 6000, 2000))
    document.do(lambda g: Edit("", frames={"around": (None, around)}))
    save(document, tmp_path / "a.svg", ImageOptions(names=(folded, other)))
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    texts = {"".join(element.itertext()).strip() for element in root.iter() if element.tag.endswith("text")}
    assert {"Shut", other} <= texts
    assert "Around" not in texts
    assert texts.isdisjoint(document.graph.layers.keys() - {other})


def test_the_area_is_the_same_whichever_layer_is_inspected(shown):
    """The mark of the inspected layer takes room on the canvas, but is not in the image."""
    projection = shown[1].projection
    document = shown[0].document
    assert any(projection.entry(name).folded is not None for name in projection.layers)
    for inspected in document.graph.layers:
        projection.inspect(inspected)
        for names in ((), (inspected,)):
            options = ImageOptions(names=names)
            with drawn(document, options) as image:
                assert drawn_area(projection, options) == image.area, inspected


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


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_every_choice_of_the_dialog_is_in_the_options(qtbot, shown, suffix, dark):
    """Paper is light whatever the window is. The visible part is that of the moment at which the dialog was opened."""
    context, canvas = shown
    seen = canvas.viewer.seen()
    with theme.as_if(dark=dark):
        dialog = PictureDialog(context, canvas, suffix)
    qtbot.addWidget(dialog)
    canvas.viewer.go(canvas.viewer.visible_center() * 2)
    assert dialog.windowTitle() == ("Print to PDF" if suffix == ".pdf" else "Export Image")
    assert dialog.path.name == f"{context.document.graph.name}{suffix}"
    expected = ImageOptions(dark=dark and suffix != ".pdf")
    assert dialog.look() == expected
    parts = [dialog.part.itemData(n) for n in range(dialog.part.count())]
    assert parts == ["all", "selection", "seen"]
    steps = [
        (lambda: dialog.part.setCurrentIndex(1), {"names": context.selection}),
        (lambda: dialog.part.setCurrentIndex(2), {"names": (), "area": seen}),
        (lambda: dialog.part.setCurrentIndex(0), {"area": None}),
        (lambda: dialog.theme.setCurrentIndex(1), {"dark": True}),
        (lambda: dialog.theme.setCurrentIndex(0), {"dark": False}),
        (lambda: dialog.scale.setValue(16.5), {"scale": 16.0}),
        (lambda: dialog.scale.setValue(0.0), {"scale": 0.1}),
        (dialog.scale.stepUp, {"scale": 0.6}),
        (lambda: dialog.transparent.setChecked(True), {"transparent": True}),
        *[
            (lambda n=n: dialog.page.setCurrentIndex(n), {"page": page})
            for n, page in enumerate(("A4", "A3", "Letter", "drawing"))
        ],
    ]
    for step, changed in steps:
        step()
        expected = replace(expected, **changed)
        assert dialog.look() == expected, changed
    context.select(())
    bare = PictureDialog(context, canvas, suffix)
    qtbot.addWidget(bare)
    assert [bare.part.itemData(n) for n in range(bare.part.count())] == ["all", "seen"]


@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_browse_asks_from_the_target_and_takes_the_whole_path(qtbot, shown, monkeypatch, tmp_path, suffix):
    context, canvas = shown
    dialog = PictureDialog(context, canvas, suffix)
    qtbot.addWidget(dialog)
    asked: list[tuple] = []
    chosen = [tmp_path / "other folder" / "drawing.svg", None]
    monkeypatch.setattr(picture_module, "ask_save_path", lambda *given: (asked.append(given), chosen.pop(0))[1])
    before = dialog.target.text()
    button = dialog.findChild(QPushButton, "picture.target.browse")
    button.click()
    assert dialog.path == tmp_path / "other folder" / "drawing.svg"
    assert dialog.pixels.text() == "Vector graphics: sharp at any size."
    button.click()
    assert dialog.path == tmp_path / "other folder" / "drawing.svg", "cancelled"
    title = "Print to PDF" if suffix == ".pdf" else "Export Image"
    formats = picture_module.IMAGE_FORMATS
    assert asked == [(dialog, title, before, formats), (dialog, title, dialog.target.text(), formats)]
