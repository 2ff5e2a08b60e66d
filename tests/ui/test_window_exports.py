"""Exports from the window."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui


from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox
from window_kit import action

from app.ui.document.document import Document
from designer.files.variants import Variant
from designer.files.weights import Weights, fill_missing, load_weights, required_weights
from designer.graph.commands import set_params
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source


def network() -> Graph:
    params = {"features": "3", "kernel": "3x3", "padding": "same"}
    return Graph(
        [
            Layer("input", "input", params={"dims": "16x16x3"}),
            Layer("conv", "convolution", (320, 0), (Source("input"),), params),
            Layer("output", "output", (640, 0), (Source("conv"),)),
        ],
        name="tiny",
    )


def test_pytorch_export(window, qtbot, tmp_path):
    from app.ui.shell.export.pytorch import PyTorchExportDialog

    window.context.set_document(Document(network(), window.context.registry, parent=window.context))
    QApplication.processEvents()
    action(window, "export.pytorch").trigger()
    dialog = window.findChild(PyTorchExportDialog, "export_pytorch")
    dialog.name.setText("not a name")
    assert not dialog.export.isEnabled()
    assert "Python identifier" in dialog.message.text()
    dialog.name.setText("Tiny")
    dialog.target.setText(str(tmp_path / "project"))
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "written" in dialog.message.text(), timeout=10_000)
    assert "class Tiny" in (tmp_path / "project" / "model.py").read_text()
    assert (tmp_path / "project" / "train.py").is_file()
    assert window.context.root.settings.project == str(tmp_path / "project")

    # The document knows its project: when it is saved with another network, that is said.
    said = []
    window.context.message.connect(lambda kind, text: said.append(text))
    assert window.files.save_to(tmp_path / "tiny.xml")
    window.context.document.do(lambda graph: set_params(graph, {"conv": {"features": "3", "kernel": "5x5"}}))
    assert window.files.save_to(tmp_path / "tiny.xml")
    qtbot.waitUntil(lambda: any("differs from the network: model.py" in text for text in said), timeout=10_000)

    # The user edits model.py and changes the network: the differences are shown, and the edit can be kept.
    model = tmp_path / "project" / "model.py"
    model.write_text(model.read_text("utf-8") + "# mine\n", "utf-8")
    window.context.document.do(lambda graph: set_params(graph, {"conv": {"features": "4"}}))
    for button, kept in (("Keep", True), ("Replace", False)):
        QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: dialog.findChild(QMessageBox, "export_pytorch.edited") is not None, timeout=10_000)
        box = dialog.findChild(QMessageBox, "export_pytorch.edited")
        assert "-# mine" in box.detailedText()
        QTest.mouseClick(next(b for b in box.buttons() if button in b.text()), Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: "written" in dialog.message.text(), timeout=10_000)
        assert ("# mine" in model.read_text("utf-8")) is kept
        window.context.document.do(lambda graph: set_params(graph, {"conv": {"features": "5"}}))
    dialog.close()


def test_pytorch_export_has_the_weights_of_the_network(window, qtbot, tmp_path):
    from app.ui.shell.export.pytorch import PyTorchExportDialog
    from designer.files.weight_files import save_weights

    document = Document(network(), window.context.registry, parent=window.context)
    window.context.set_document(document)
    QApplication.processEvents()
    made = fill_missing(Weights(), required_weights(document.inference), 0)
    save_weights(tmp_path / "weights", made.tensors)
    action(window, "export.pytorch").trigger()
    dialog = window.findChild(PyTorchExportDialog, "export_pytorch")
    for place, said in ((tmp_path / "weights", "Its weights to begin with"), (tmp_path / "nowhere", "Without initial")):
        document.change_settings(weights=str(place))
        project = tmp_path / f"project_of_{place.name}"
        dialog.target.setText(str(project))
        QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda said=said: said in dialog.message.text(), timeout=60_000)
        assert (project / "model.py").is_file()
        assert (project / "initial_weights.pt").is_file() is place.is_dir()
    assert "nowhere" in dialog.message.text()
    stored = load_weights(tmp_path / "project_of_weights" / "initial_weights.pt", required_weights(document.inference))
    assert stored.complete
    for key, tensor in made.tensors.items():
        np.testing.assert_array_equal(stored.tensors[key], tensor)
    dialog.close()


def test_pytorch_export_that_fails_says_why(window, qtbot, tmp_path):
    from app.ui.shell.export.pytorch import PyTorchExportDialog

    window.context.set_document(Document(network(), window.context.registry, parent=window.context))
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    dialog = PyTorchExportDialog(window.context, window)
    dialog.open()
    dialog.target.setText(str(blocked / "project"))
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "What to do" in dialog.message.text(), timeout=10_000)
    dialog.close()


@pytest.mark.slow
def test_onnx_export(window, qtbot, tmp_path):
    from app.ui.shell.export.onnx import OnnxExportDialog

    window.context.set_document(Document(network(), window.context.registry, parent=window.context))
    dialog = OnnxExportDialog(window.context, window)
    dialog.open()
    dialog.target.setText(str(tmp_path / "tiny.onnx"))
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(dialog.export.isEnabled, timeout=60_000)
    assert "weights" in dialog.message.text()  # missing: they are never filled silently
    assert not (tmp_path / "tiny.onnx").exists()
    dialog.random.setChecked(True)
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    dialog.target.setText(str(tmp_path / "next.onnx"))  # typed while the first one is written
    qtbot.waitUntil(dialog.export.isEnabled, timeout=60_000)
    assert (tmp_path / "tiny.onnx").stat().st_size > 100, dialog.message.text()
    written, sizes = dialog.message.text().split("\n")
    assert written == f"ONNX model written to {tmp_path / 'tiny.onnx'}"
    assert sizes == "Accepts any height and width"
    dialog.close()


@pytest.mark.slow
def test_deployment_folder(window, qtbot, tmp_path):
    from app.ui.shell.export.deploy import DeployExportDialog

    window.context.set_document(Document(network(), window.context.registry, parent=window.context))
    QApplication.processEvents()
    action(window, "export.deploy").trigger()
    dialog = window.findChild(DeployExportDialog, "export_deploy")
    dialog.target.setText(str(tmp_path / "deployed"))
    dialog.random.setChecked(True)
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    qtbot.waitUntil((tmp_path / ".deployed.part").is_dir, timeout=60_000)
    QTest.mouseClick(dialog.cancel, Qt.MouseButton.LeftButton)
    assert not list(tmp_path.glob("*deployed*"))
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(dialog.export.isEnabled, timeout=60_000)
    assert (tmp_path / "deployed" / "python" / "run.py").is_file(), dialog.message.text()
    assert dialog.message.text().startswith(f"Deployment folder written to {tmp_path / 'deployed'}\n")
    dialog.check()
    assert "will be replaced" in dialog.message.text()
    dialog.close()


@pytest.mark.slow
def test_tensorrt_engine(window, qtbot, tmp_path, monkeypatch):
    from app.ui.shell.export.tensorrt import TensorRtExportDialog
    from designer.runtime.engines import trt

    if trt.unavailable() is not None:
        pytest.skip("TensorRT is not installed")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    window.context.set_document(Document(network(), window.context.registry, parent=window.context))
    QApplication.processEvents()
    action(window, "export.tensorrt").trigger()
    dialog = window.findChild(TensorRtExportDialog, "export_tensorrt")
    dialog.largest.setText("64 pixels")
    assert not dialog.export.isEnabled()
    dialog.largest.setText("64x32")
    dialog.target.setText(str(tmp_path / "tiny.plan"))
    assert dialog.message.text() == "The file name must end with .engine."
    dialog.target.setText(str(tmp_path / "tiny.engine"))
    dialog.random.setChecked(True)
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(dialog.export.isEnabled, timeout=60_000)
    assert (tmp_path / "tiny.engine").is_file(), dialog.message.text()
    rows = [dialog.table.topLevelItem(row) for row in range(dialog.table.topLevelItemCount())]
    (conv,) = [row for row in rows if row.text(0) == "conv"]
    dialog.table.setCurrentItem(conv)
    assert window.context.selection == ("conv",)
    window.context.select(())
    dialog.working = True
    dialog.failed("error [not-in-tensorrt] layer 'conv': TensorRT cannot run 'conv' (Conv: false) - replace the layer")
    assert window.context.selection == ("conv",)
    dialog.close()


def test_the_current_variant_is_proposed_for_exports(window, qtbot, tmp_path):
    from app.ui.shell.export.deploy import DeployExportDialog

    window.context.set_document(Document(network(), window.context.registry, parent=window.context))
    half = Variant("half", "fp16", weights=str(tmp_path / "w"))
    window.context.root.change_settings(variants=(half,), variant="half", weights="other")
    dialog = DeployExportDialog(window.context, window)
    dialog.open()
    assert dialog.variant.currentText() == "half"
    assert dialog.weights.text() == str(tmp_path / "w")
    dialog.model.setText("x.onnx")
    assert "both choose the model" in dialog.message.text()
    assert not dialog.export.isEnabled()
    dialog.variant.setCurrentIndex(0)
    assert dialog.weights.text().endswith("other")
    assert dialog.export.isEnabled()
    dialog.close()


@pytest.mark.slow
def test_an_onnx_file_of_a_variant(window, qtbot, tmp_path):
    import onnx

    from app.ui.shell.export.onnx import OnnxExportDialog

    window.context.set_document(Document(network(), window.context.registry, parent=window.context))
    window.context.root.change_settings(variants=(Variant("half", "fp16"),), variant="half")
    dialog = OnnxExportDialog(window.context, window)
    dialog.open()
    dialog.target.setText(str(tmp_path / "half.onnx"))
    dialog.random.setChecked(True)
    dialog.export.click()
    qtbot.waitUntil(lambda: not dialog.working, timeout=100_000)
    assert (tmp_path / "half.onnx").exists(), dialog.message.text()
    model = onnx.load(tmp_path / "half.onnx")
    assert {tensor.data_type for tensor in model.graph.initializer} == {onnx.TensorProto.FLOAT16}
    dialog.close()
