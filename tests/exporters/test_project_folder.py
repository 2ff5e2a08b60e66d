"""What an export of a project does with the files that its folder has already: every state of a file, and every choice."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from loss_networks import restorer
from pytorch_networks import load_source, node, seeded, small

from designer.files.settings import Settings
from designer.files.weights import WeightKey
from designer.graph.diagnostics import DiagnosticError
from designer.graph.freezing import freeze
from designer.graph.graph import Graph
from designer.graph.template import Template
from designer.graph.template_commands import edit_template
from exporters.pytorch import (
    EditedFilesError,
    Training,
    export_initial_weights,
    export_project,
    outdated_files,
    project,
)
from exporters.pytorch.project import MARKER, project_files
from exporters.pytorch.source import generate_source

OLD, NEW, MINE = b"old\n", b"new\n", b"mine\n"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def marker(files: Mapping[str, bytes], **more: object) -> bytes:
    known = {"generator": "layerwright", "files": {name: digest(data) for name, data in files.items()}}
    return json.dumps({**known, "model": "Net", "task": "denoising", **more}).encode()


def exporting(monkeypatch: pytest.MonkeyPatch, files: Mapping[str, bytes]) -> list[tuple[object, ...]]:
    """Let a project have these files. The result gets the arguments of each export."""
    asked: list[tuple[object, ...]] = []

    def made(*arguments: object) -> dict[str, bytes]:
        asked.append(arguments)
        return {**files, MARKER: marker(files)}

    monkeypatch.setattr(project, "project_files", made)
    return asked


def tree(folder: Path) -> dict[str, object]:
    return {
        path.relative_to(folder).as_posix(): os.readlink(path)
        if path.is_symlink()
        else path.is_file() and path.read_bytes()
        for path in folder.rglob("*")
    }


def put(path: Path, state: str) -> None:
    if state == "folder":
        path.mkdir()
    elif state == "link":
        (path.parent.parent / "elsewhere").write_bytes(OLD)
        path.symlink_to(path.parent.parent / "elsewhere")
    elif state == "dangling link":
        path.symlink_to(path.parent.parent / "nowhere")
    elif state != "absent":
        path.write_bytes({"old": OLD, "new": NEW, "mine": MINE}[state])


STATES = ("absent", "old", "new", "mine", "folder", "link", "dangling link")


@pytest.mark.parametrize("edited", ["refuse", "keep", "replace"])
@pytest.mark.parametrize("before", [None, OLD, NEW], ids=["not exported", "exported otherwise", "exported alike"])
@pytest.mark.parametrize("state", STATES)
def test_what_becomes_of_a_file(monkeypatch, tmp_path, state, before, edited):
    folder = tmp_path / "project"
    folder.mkdir()
    put(folder / "a.py", state)
    (folder / "b.py").write_bytes(OLD)
    (folder / "notes.txt").write_bytes(MINE)
    earlier = {"b.py": OLD, **({} if before is None else {"a.py": before})}
    (folder / MARKER).write_bytes(marker(earlier))
    start = tree(folder)
    exporting(monkeypatch, {"a.py": NEW, "b.py": NEW})

    own = {"old": OLD, "new": NEW, "mine": MINE}.get(state)  # of a plain file
    conflict = own is not None and own not in (NEW, before)
    expected: dict[str, object] = {**start, "a.py": NEW, "b.py": NEW, MARKER: marker({"a.py": NEW, "b.py": NEW})}
    refused = ""
    if state in ("folder", "link", "dangling link") or (conflict and before is None):
        refused = "file-in-the-way"
    elif conflict and before == OLD and edited == "refuse":
        refused = "edited-files"
    elif conflict and (before == NEW or edited == "keep"):
        expected["a.py"] = own

    if refused:
        with pytest.raises(DiagnosticError) as caught:
            export_project(Graph([]), None, folder, "Net", edited=edited)
        (found,) = caught.value.diagnostics
        assert (found.code, found.file) == (refused, str(folder / "a.py"))
        assert tree(folder) == start
    else:
        made = export_project(Graph([]), None, folder, "Net", edited=edited)
        assert made == tuple(folder / name for name in ("a.py", "b.py", MARKER))
        assert tree(folder) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["project", *(["elsewhere"] if state == "link" else [])]
    )


@pytest.mark.parametrize("state", STATES)
def test_a_file_that_is_not_part_of_the_project_any_more_is_removed_if_it_was_not_changed(monkeypatch, tmp_path, state):
    folder = tmp_path / "project"
    folder.mkdir()
    put(folder / "gone.py", state)
    (folder / MARKER).write_bytes(marker({"gone.py": OLD, "never.py": OLD}))
    start = tree(folder)
    exporting(monkeypatch, {"a.py": NEW})
    assert export_project(Graph([]), None, folder, "Net") == (folder / "a.py", folder / MARKER)
    if state == "old":
        del start["gone.py"]
    assert tree(folder) == {**start, "a.py": NEW, MARKER: marker({"a.py": NEW})}


def test_all_edited_files_are_named_with_their_differences(monkeypatch, tmp_path):
    for name in ("b.py", "a.py", "c.py", "same.py"):
        (tmp_path / name).write_bytes(OLD if name != "same.py" else MINE)
    earlier = {"a.py": b"other\n", "b.py": b"other\n", "c.py": OLD, "same.py": NEW}
    (tmp_path / MARKER).write_bytes(marker(earlier))
    exporting(monkeypatch, dict.fromkeys(earlier, NEW))
    with pytest.raises(EditedFilesError) as caught:
        export_project(Graph([]), None, tmp_path, "Net")
    (found,) = caught.value.diagnostics
    assert found.message == f"a.py, b.py in {tmp_path} were edited and would be overwritten; nothing was changed"
    assert (found.code, found.file) == ("edited-files", str(tmp_path / "a.py"))
    assert found.remedy == "keep or replace the edited files, or choose another folder"
    assert caught.value.diffs == {
        name: f"--- {name} (edited)\n+++ {name} (new)\n@@ -1 +1 @@\n-old\n+new\n" for name in ("a.py", "b.py")
    }


@pytest.mark.parametrize("content", [b"[1, 2]", b"{", b"", b'{"generator": "another", "files": {}}', b'{"files": 3}'])
def test_a_marker_of_another_program_is_not_replaced(monkeypatch, tmp_path, content):
    (tmp_path / MARKER).write_bytes(content)
    exporting(monkeypatch, {"a.py": NEW})
    with pytest.raises(DiagnosticError) as caught:
        export_project(Graph([]), None, tmp_path, "Net", edited="replace")
    (found,) = caught.value.diagnostics
    assert (
        found.message
        == f"{tmp_path / MARKER} was not written by this program and would be overwritten; nothing was changed"
    )
    assert found.remedy == "choose another folder, or move the file away"
    assert tree(tmp_path) == {MARKER: content}
    assert outdated_files(Graph([]), None, tmp_path) == ()


def test_a_folder_is_made_with_the_folders_above_it_and_a_relative_one_as_well(monkeypatch, tmp_path):
    exporting(monkeypatch, {"a.py": NEW})
    export_project(Graph([]), None, tmp_path / "one" / "two" / "project", "Net")
    assert {path.as_posix() for path in (tmp_path / "one").rglob("*")} == {
        f"{tmp_path}/one/{name}" for name in ("two", "two/project", "two/project/a.py", f"two/project/{MARKER}")
    }
    monkeypatch.chdir(tmp_path)
    assert export_project(Graph([]), None, "near", "Net") == (Path("near/a.py"), Path(f"near/{MARKER}"))
    assert (tmp_path / "near" / "a.py").read_bytes() == NEW


def test_an_error_of_the_system_is_said_with_its_reason(monkeypatch, tmp_path):
    exporting(monkeypatch, {"a.py": NEW})

    def full(*_arguments: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("exporters.pytorch.project.tempfile.mkdtemp", full)
    with pytest.raises(DiagnosticError) as caught:
        export_project(Graph([]), None, tmp_path / "project", "Net")
    (found,) = caught.value.diagnostics
    target = tmp_path / "project"
    assert found.message == f"{target} cannot be written: No space left on device; nothing was changed there"
    assert (found.code, found.file) == ("cannot-export", str(target))


def test_outdated_files_are_those_that_an_export_would_change(monkeypatch, tmp_path, registry):
    exported = {"a.py": OLD, "b.py": NEW, "gone.py": OLD}
    (tmp_path / MARKER).write_bytes(marker(exported, model="MyNet", task="segmentation"))
    (tmp_path / "b.py").write_bytes(MINE)  # edits of the user do not count
    asked = exporting(monkeypatch, {"z.py": NEW, "a.py": NEW, "b.py": NEW})
    assert outdated_files(Graph([], name="graph"), registry, tmp_path) == ("a.py", "z.py")
    recipe = {"steps": "5"}
    outdated_files(Graph([]), registry, tmp_path, Training("denoising", recipe))
    outdated_files(Graph([]), registry, tmp_path, Training("", recipe))
    assert [arguments[2:] for arguments in asked] == [
        ("MyNet", Training("segmentation")),
        ("MyNet", Training("denoising", recipe)),
        ("MyNet", Training("segmentation", recipe)),
    ]
    assert outdated_files(Graph([]), registry, tmp_path / "nowhere") == ()


def test_a_recipe_belongs_to_the_task_of_the_settings():
    settings = Settings(task="denoising", recipe={"steps": "5"})
    assert Training.of(settings) == Training("denoising", {"steps": "5"})
    assert Training.of(settings, "denoising") == Training("denoising", {"steps": "5"})
    assert Training.of(settings, "segmentation") == Training("segmentation", {})
    assert Training.of(Settings(recipe={"steps": "5"})) == Training("", {"steps": "5"})
    assert Training.of(Settings(recipe={"steps": "5"}), "denoising") == Training("denoising", {})
    assert Training.of(Settings()) == Training()


def information(graph: Graph, registry, name: str = "Net", **training) -> dict:
    return json.loads(project.project_files(graph, registry, name, Training(**training))[MARKER])


def test_the_marker_lists_every_other_file_and_where_the_project_comes_from(registry, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    graph = Graph(small(), name="my document")
    files = project.project_files(graph, registry, "my net", Training("", {"steps": "1234"}))
    found = json.loads(files.pop(MARKER))
    assert found["files"] == {name: digest(data) for name, data in files.items()}
    assert list(found["files"]) == sorted(files)
    assert (found["model"], found["document"], found["generator"], found["format"]) == (
        "MyNet",
        "my document",
        "layerwright",
        1,
    )
    assert found["provenance"]["document"] == "my document"
    assert b"class MyNet(nn.Module)" in files["model.py"]
    assert b"steps: int = setting(1234," in files["config.py"]


@pytest.mark.parametrize(
    ("sizes", "multiple"),
    [
        ({"tiling": 1}, 2),
        ({"tiling": 0}, 2),
        ({"tiling": 6}, 6),
    ],
)
def test_a_multiple_of_1_is_not_one_that_the_author_chose(registry, sizes, multiple):
    assert information(small(**sizes), registry)["inputs"][0]["multiple"] == multiple


@pytest.mark.parametrize(
    ("layers", "multiple"),
    [
        ([("a", "pooling", {"size": "2x1", "stride": "2x1"})], 2),
        ([("a", "pooling", {"size": "1x3", "stride": "1x3"})], 3),
        ([("a", "pooling", {"size": "2x3", "stride": "2x3"})], 6),
        ([("a", "pooling", {"size": "3x3", "stride": "3x3"}), ("b", "pooling", {"size": "2x2", "stride": "2x2"})], 6),
        ([("a", "global_pooling", {})], 1),
        (
            [
                ("a", "pooling", {"size": "2x2", "stride": "2x2"}),
                ("b", "flatten", {}),
                ("c", "fully_connected", {"features": 4}),
            ],
            2,
        ),
    ],
)
def test_the_multiple_counts_both_axes(registry, layers, multiple):
    made = [node("x", "input", dims="24x48x3")]
    for name, kind, params in layers:
        made.append(node(name, kind, made[-1].name, **params))
    graph = Graph([*made, node("o", "output", made[-1].name, analysis_view="tensor")], name="net")
    assert information(graph, registry, task="denoising")["inputs"][0]["multiple"] == multiple


@pytest.mark.parametrize("losses", [False, True])
def test_initial_weights_are_the_state_dict_of_the_exported_network(registry, tmp_path, losses):
    torch = pytest.importorskip("torch")
    graph = restorer(*([node("compared", "l1_loss", "head", "clean")] if losses else []))
    graph = Graph([*(x for x in graph if x.name != "clean" or losses)], name="restorer")
    if losses:  # the losses read what the network computes on the way
        extra = [node("side", "convolution", "head", features=3), node("more", "mse_loss", "side", "clean")]
        graph = Graph([*(x for x in graph if x.name != "compared"), *extra], name="restorer")
    export_project(graph, registry, tmp_path, "Net")
    weights = seeded(graph, registry, 4)
    assert export_initial_weights(graph, registry, weights, tmp_path) == tmp_path / "initial_weights.pt"
    state = torch.load(tmp_path / "initial_weights.pt", weights_only=True)
    network = load_source((tmp_path / "model.py").read_text("utf-8")).Net()
    network.load_state_dict(state)
    known = json.loads((tmp_path / MARKER).read_text("utf-8"))["weights"]
    assert set(state) == set(known)
    for key, array in {"head.weight": ("head", "kernel"), "tail.bias": ("tail", "bias")}.items():
        np.testing.assert_array_equal(state[key].numpy(), weights.tensors[WeightKey(*array)])


def named_like_the_network(*losses) -> Graph:
    inside = Template(
        "Net",
        (node("x", "template_input"), node("c", "convolution", "x", features=3), node("y", "template_output", "c")),
    )
    image, clean = node("image", "input", dims="8x6x3"), node("clean", "input", dims="8x6x3")
    layers = [node("a", "template", "image", template="Net"), node("b", "template", "a", template="Net")]
    ends = [node("result", "output", "b")]
    return Graph([image, *([clean] if losses else []), *layers, *ends, *losses], name="Net", templates=[inside])


@pytest.mark.parametrize("losses", [False, True])
def test_a_template_with_the_name_of_the_network_gets_another_class(registry, losses):
    torch = pytest.importorskip("torch")
    graph = named_like_the_network(*([node("more", "mse_loss", "a", "clean")] if losses else []))
    texts = [project_files(graph, registry, "net")["model.py"].decode()]
    if not losses:
        texts += [generate_source(graph, registry, "net"), generate_source(graph, registry, "net", ["a", "b"])]
    for text in texts:
        assert re.findall(r"^class (\w+)\(nn.Module\)", text, re.MULTILINE) == ["Net_2", "Net"]
        network = load_source(text).Net()
        assert {name: type(module).__name__ for name, module in network.named_children()} == {
            "a": "Net_2",
            "b": "Net_2",
        }
        assert network(torch.rand(1, 3, 6, 8)).shape == (1, 3, 6, 8)


@pytest.mark.parametrize(
    ("frozen", "keys"),
    [
        ((), set()),
        (("o",), {"o.first.c", "o.second.c", "o.own"}),
        (("outer", "first"), {"o.first.c", "p.first.c"}),
        (("outer", "own"), {"o.own", "p.own"}),
        (("inner", "c"), {f"{one}.{other}.c" for one in "op" for other in ("first", "second")}),
    ],
)
def test_weights_inside_of_frozen_instances_at_every_depth_are_frozen(registry, frozen, keys):
    inner = Template(
        "inner",
        (node("x", "template_input"), node("c", "convolution", "x", features=3), node("y", "template_output", "c")),
    )
    outer = Template(
        "outer",
        (
            node("x", "template_input"),
            node("first", "template", "x", template="inner"),
            node("second", "template", "first", template="inner"),
            node("own", "convolution", "second", features=3),
            node("y", "template_output", "own"),
        ),
    )
    graph = Graph(
        [
            node("image", "input", dims="8x6x3"),
            node("o", "template", "image", template="outer"),
            node("p", "template", "o", template="outer"),
            node("result", "output", "p"),
        ],
        name="net",
        templates=[inner, outer],
    )
    if len(frozen) == 2:
        graph.apply(edit_template(graph, frozen[0], freeze(graph.inside(frozen[0]), [frozen[1]])))
    elif frozen:
        graph.apply(freeze(graph, frozen))
    found = information(graph, registry, task="denoising")["frozen"]
    assert found == sorted(f"{key}.{tensor}" for key in keys for tensor in ("bias", "weight"))
