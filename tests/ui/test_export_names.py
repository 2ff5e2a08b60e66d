"""The proposed target of an export is a file in the folder that is shown, whatever the network is called."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("PySide6")
from hostile_networks import VALUE

from designer.files.file_names import file_name

pytestmark = pytest.mark.gui


@pytest.mark.parametrize("network", ["/etc/passwd", "../../above", "a/b\\c", "..", "", " .hidden ", "鯨" * 200, VALUE])
@pytest.mark.parametrize("ending", [".onnx", ".svg", "_pytorch"])
def test_a_network_s_name_proposes_one_file(network: str, ending: str) -> None:
    name = file_name(f"{network}{ending}")
    folder = Path("/home/somebody")
    assert (folder / name).parent == folder
    assert name not in ("", ".", "..")
    assert not name.startswith(".")
    assert name.isprintable()
    assert len(name.encode()) < 255


def test_usual_names_stay_as_they_are() -> None:
    assert file_name("my denoiser.onnx") == "my denoiser.onnx"
    assert file_name("denoiser_pytorch") == "denoiser_pytorch"
    assert file_name("denoiser v1.5_pytorch") == "denoiser v1.5_pytorch"
    assert file_name("1.5 (small).onnx") == "1.5 (small).onnx"


def test_a_long_text_behind_a_dot_is_not_a_suffix() -> None:
    assert len(file_name("v1." + "x" * 300)) == 60
    assert file_name("x" * 300 + ".onnx") == "x" * 60 + ".onnx"


def test_a_new_network_is_proposed_in_the_folder_that_is_shown(empty_window, monkeypatch) -> None:
    from app.ui.shell import files
    from designer.graph import commands

    asked: list[Path] = []
    monkeypatch.setattr(files, "ask_save_path", lambda parent, title, proposed, table: asked.append(proposed))
    window = empty_window
    for name in ("/etc/passwd", "../../above"):
        window.files.new()
        window.context.root.do(lambda graph, name=name: commands.set_property(graph, "name", name))
        window.context.root.history.mark_clean()
        window.files.save_as()
    assert {path.parent for path in asked} == {window.files._folder()}
