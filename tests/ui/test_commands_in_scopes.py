"""Commands about a file mean the file also where the inside of one of its templates is shown."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QDialog, QFileDialog
from window_kit import settle

import samples
from app.ui.document.locations import sample_files
from app.ui.shell.export.dialog import ExportDialog
from app.ui.shell.window import MainWindow
from designer.files.document import read_document, save_document

FILE_DIALOGS = ("getSaveFileName", "getOpenFileName", "getOpenFileNames", "getExistingDirectory")
WRITING = (
    "file.save_as",
    "weights.save",
    "export.pytorch",
    "export.onnx",
    "export.deploy",
    "export.tensorrt",
    "analysis.report",
)
COMMANDS = ("file.open", *WRITING)


@pytest.fixture
def proposals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The arguments of the file dialogs that are opened; the user cancels them."""
    seen: list[str] = []
    for name in FILE_DIALOGS:
        answer: Any = ([], "") if name == "getOpenFileNames" else "" if name == "getExistingDirectory" else ("", "")

        def ask(_parent: object, *texts: object, name: str = name, answer: Any = answer) -> Any:
            seen.append(f"{name} {texts}")
            return answer

        monkeypatch.setattr(QFileDialog, name, ask)
    return seen


def opened(window: MainWindow) -> list[str]:
    """The targets and titles of the dialogs of the window, which are closed."""
    found = []
    for dialog in window.findChildren(QDialog):
        if dialog.isVisible():
            target = dialog.target.text() if isinstance(dialog, ExportDialog) else ""
            found.append(f"{dialog.windowTitle()} {target}")
            dialog.close()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    return found


def proposed(window: MainWindow, proposals: list[str]) -> dict[str, list[str]]:
    """What each command asks for."""
    found = {}
    for name in COMMANDS:
        assert window.actions_[name].isEnabled(), name
        window.actions_[name].trigger()
        settle(window)
        found[name] = [*proposals, *opened(window)]
        proposals.clear()
    window.docks.panel("differences").ask_file()
    found["compare"] = [*proposals]
    proposals.clear()
    return found


@pytest.mark.parametrize("saved", [True, False])
def test_a_command_proposes_the_same_inside_a_template(saved, window, tmp_path, proposals):
    graph = read_document(samples.path("residual_blocks.xml")).graph
    path = tmp_path / "saved.xml"
    save_document(graph, path)
    assert window.files.open(path)
    window.context.root.restore_settings(weights=str(tmp_path / "weights.safetensors"))
    if not saved:
        window.context.root.path = None
    outside = proposed(window, proposals)
    assert all(outside.values()), outside
    assert window.context.enter("residual_block")
    settle(window)
    assert proposed(window, proposals) == outside


def test_nothing_is_proposed_in_the_folder_of_the_samples(window, proposals):
    path = sample_files()[0]
    assert window.files.open(path)
    found = proposed(window, proposals)
    assert all(found.values()), found
    for name in WRITING:
        assert path.parent.as_posix() not in "".join(found[name]), name
