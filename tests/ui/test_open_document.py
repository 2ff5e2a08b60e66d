"""An open document through edits, undo, saves, renames, projects and changes on disk: what it is and reports after every step."""

from __future__ import annotations

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

import os
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

from PySide6.QtCore import QCoreApplication, QEvent

from app.ui.document.document import Document
from app.ui.document.import_record import ImportRecord
from app.ui.document.labels import LARGEST, labels_of, read_labels
from app.ui.document.locations import is_sample, sample_files, start_folder
from app.ui.document.open_document import OpenDocument, _JournalNotifier
from app.ui.document.template_view import ScopeStep, TemplateView, find_layer
from app.ui.document.weights_dialog import weights_folder
from designer.files.disk_watch import digest_of
from designer.files.document import read_document, save_document, write_document
from designer.files.recovery import unfinished
from designer.files.settings import Settings, read_settings, save_settings, settings_path
from designer.files.variants import Variant
from designer.files.weight_versions import weight_versions
from designer.graph import commands, template_commands
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.edits import ChangeSet, Edit
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.template import Template
from designer.importers.report import ImportReport
from designer.operators.registry import default_registry
from designer.operators.training_branch import missing_output


def layer(layer_name: str, kind: str, *inputs: str, **params: str) -> Layer:
    return Layer(layer_name, kind, inputs=tuple(Source.parse(text) for text in inputs), params=params)


def network(name: str = "network") -> Graph:
    inside = (
        layer("x", "template_input", index="0"),
        layer("c", "convolution", "x", features="3", kernel="1x1"),
        layer("y", "template_output", "c", index="0"),
    )
    return Graph(
        [
            layer("in", "input", dims="8x8x3"),
            layer("conv", "convolution", "in", features="3", kernel="3x3"),
            layer("use", "template", "conv", template="block"),
            layer("out", "output", "use"),
        ],
        name=name,
        templates=[Template("block", inside)],
    )


class Heard:
    """What a document reported since it was asked last."""

    def __init__(self, document: Document) -> None:
        self._names: list[str] = []
        self.states: set[str] = set()
        document.changed.connect(lambda change: self._names.append("changed"))
        document.states_changed.connect(self._on_states)
        document.clean_changed.connect(lambda clean: self._names.append("clean" if clean else "unsaved"))
        document.path_changed.connect(lambda: self._names.append("path"))
        document.settings_changed.connect(lambda: self._names.append("settings"))
        document.project_changed.connect(lambda: self._names.append("project"))
        document.refused.connect(lambda findings: self._names.append("refused"))
        document.inserted.connect(lambda name: self._names.append(f"inserted {name}"))

    def _on_states(self, names: frozenset[str]) -> None:
        self.states |= names

    def __call__(self) -> list[str]:
        names, self._names = self._names, []
        self.states = set()
        return names


@pytest.fixture
def document(qapp) -> Document:
    return Document(network(), default_registry())


@pytest.fixture
def heard(document: Document) -> Heard:
    return Heard(document)


def features(graph: Graph, value: str, name: str = "conv") -> Edit:
    return commands.set_params(graph, {name: {"features": value}})


def test_every_step_reports_once_what_it_changed(document: Document, heard: Heard, tmp_path: Path) -> None:
    graph = document.graph
    assert document.do(lambda g: features(g, "4"))
    assert heard() == ["changed", "unsaved"]
    assert document.do(lambda g: features(g, "5"))
    assert heard() == ["changed"]
    assert document.undo()
    assert heard() == ["changed"]
    assert document.undo()
    assert heard() == ["changed", "clean"]
    assert document.undo() is None
    assert heard() == []
    assert document.redo()
    assert heard() == ["changed", "unsaved"]
    document.mark_saved(tmp_path / "net.xml")
    assert heard() == ["path", "clean"]
    assert document.redo()
    assert heard() == ["changed", "unsaved"]
    assert document.undo()
    assert heard() == ["changed", "clean"]
    document.keep("view_1", "0,0,1")
    assert heard() == ["changed", "unsaved"]
    document.mark_saved(tmp_path / "net.xml")
    assert heard() == ["path", "clean"]
    document.mark_unsaved()
    assert heard() == ["unsaved"]
    document.change_settings(threads=3)
    assert heard() == ["changed", "settings"]
    document.change_settings(threads=3)
    assert heard() == []
    document.restore_settings(threads=5)
    assert heard() == ["settings"]
    assert document.settings.threads == 5
    assert not document.do(lambda g: commands.add_layer(g, layer("conv", "relu")))
    assert heard() == ["refused"]
    with document.group("Both"):
        document.do(lambda g: features(g, "6"))
        document.do(lambda g: features(g, "7"))
    assert heard() == ["changed", "changed"]
    assert document.history.undo_title == "Both"
    for clean in (True, False):
        if clean:
            document.mark_saved(tmp_path / "net.xml")
        else:
            document.do(lambda g: features(g, "8"))
        document.name_after_file(f"name {clean}")
        assert graph.name == f"name {clean}"
        assert document.history.is_clean == clean


def as_opened(document: Document) -> None:
    """Instances, the training branch and findings of an edited document are those of one that is opened with the same network."""
    opened = Document(document.graph.copy(), document.registry, reading=document.reading)
    for found in (lambda d: d.instances, lambda d: d.training, Document.diagnostics):
        assert found(document) == found(opened)


def test_which_layers_have_another_state(document: Document, heard: Heard) -> None:
    assert document.instances == {"block": 1}
    document.do(lambda g: features(g, "4"))
    assert heard.states == {"conv", "use"}  # the template has the same output as before
    heard()
    document.do(lambda g: template_commands.edit_template(g, "block", features(g.inside("block"), "5", "c")))
    assert heard.states == {"use", "out"}
    heard()
    changes = []
    document.changed.connect(changes.append)
    edit = features(document.graph.inside("block"), "6", "c")
    document.do(lambda g: template_commands.edit_template(g, "block", edit))
    assert changes[-1].reconfigured == {"use"}
    heard()
    # instances show how many there are: a second one, and its end, concern the first
    document.do(lambda g: commands.add_layer(g, layer("again", "template", "conv", template="block")))
    assert "use" in heard.states
    assert document.instances == {"block": 2}
    as_opened(document)
    heard()
    document.do(lambda g: commands.remove_layers(g, ["again"]))
    assert "use" in heard.states
    assert document.instances == {"block": 1}
    # layers that only a loss needs belong to the training branch
    heard()
    document.do(lambda g: commands.add_layer(g, layer("side", "relu", "conv")))
    before = document.training
    document.do(lambda g: commands.add_layer(g, layer("loss", "mse_loss", "side", "conv")))
    assert document.training > before
    as_opened(document)
    assert heard.states >= document.training - before
    heard()
    document.undo()
    assert document.training == before
    assert "side" in heard.states


def test_files_and_formats_of_layers_follow_their_names(document: Document) -> None:
    variant = Variant("half", formats={"conv": "fp16", "use.c": "fp16", "gone": "fp16"}, reasons={"use.c": "r"})
    document.restore_settings(
        input_files={"in": "/a", "gone": "/old"},
        output_files={"out": "/b", "gone": "/old"},
        variants=(variant,),
        variant="half",
    )
    start = document.settings
    document.do(lambda g: commands.rename_layer(g, "out", "result"))
    assert document.settings.output_files == {"result": "/b", "gone": "/old"}
    document.do(lambda g: commands.rename_layer(g, "in", "gone"))  # a name that a deleted layer had
    assert document.settings.input_files == {"gone": "/a"}
    assert document.settings.output_files == {"result": "/b"}
    (found,) = document.settings.variants
    assert found.formats == {"conv": "fp16", "use.c": "fp16"}
    document.do(lambda g: commands.rename_layer(g, "use", "again"))
    document.do(
        lambda g: template_commands.edit_template(g, "block", commands.rename_layer(g.inside("block"), "c", "d"))
    )
    (found,) = document.settings.variants
    assert (found.formats, found.reasons) == ({"conv": "fp16", "again.d": "fp16"}, {"again.d": "r"})
    edit = commands.rename_layer(document.graph, "conv", "first")
    document.do(Edit("", edit.layers, renamed=edit.renamed, settings={"threads": (0, 7)}))
    assert document.settings.threads == 7
    assert document.settings.variants[0].formats == {"first": "fp16", "again.d": "fp16"}
    while document.undo():
        pass
    assert document.settings == start
    assert document.graph == network()


def test_only_new_layers_are_given_a_place(document: Document, heard: Heard) -> None:
    assert document.insert(lambda g: commands.rename_layer(g, "conv", "first"))
    assert heard() == ["changed", "unsaved"]
    edit = commands.add_layer(document.graph, layer("new", "relu"))
    assert document.insert(edit)
    assert heard() == ["changed", "inserted new"]
    assert document.history.undo_title == edit.title
    assert not document.insert(lambda g: commands.add_layer(g, layer("new", "relu")))
    assert heard() == ["refused"]
    assert document.insert(lambda g: commands.paste(g, [g["new"], g["first"]]))
    assert heard()[1:] == ["inserted new_0", "inserted first_0"]


def test_all_findings_of_a_refused_edit_are_said(document: Document) -> None:
    findings = (Diagnostic("one", "the first"), Diagnostic("two", "the second"))
    said: list[object] = []
    before = document.history.undo_title

    def refuses(_graph: Graph) -> Edit:
        raise DiagnosticError(findings)

    view = TemplateView(document, ScopeStep("use", "block"), document)
    for each in (document, view):
        each.refused.connect(said.append)
        for way in (each.do, each.insert):
            assert not way(refuses)
            assert said.pop() == findings
    assert (said, document.history.undo_title, document.history.is_clean) == ([], before, True)


def test_the_project_of_a_document(document: Document, heard: Heard, tmp_path: Path) -> None:
    document.use_project(tmp_path / "one", "denoise")
    assert heard() == ["settings", "project"]
    assert (document.settings.project, document.settings.task) == (str(tmp_path / "one"), "denoise")
    document.use_project(tmp_path / "one")
    assert heard() == []
    for task in ("segmentation", "denoise"):  # the same folder is used for another task
        document.use_project(tmp_path / "one", task)
        assert heard() == ["settings", "project"]
        assert (document.settings.project, document.settings.task) == (str(tmp_path / "one"), task)
    document.use_project(tmp_path / "two")
    assert heard() == ["settings", "project"]
    assert (document.project, document.settings.task) == (tmp_path / "two", "denoise")
    document.restore_settings(project="")
    assert document.project is None
    document.mark_saved(tmp_path / "net.xml")
    heard()
    document.use_project(tmp_path / "three")
    assert heard() == []
    assert (document.project, document.settings.project) == (tmp_path / "three", "")
    path = tmp_path / "net.xml"
    save_document(network(), path)
    save_settings(Settings(project=str(tmp_path / "four"), threads=3), settings_path(path))
    opened = Document(network(), default_registry(), path)
    assert (opened.project, opened.settings.threads, opened.reading) == (tmp_path / "four", 3, ())
    settings_path(path).write_text("no settings")
    read = Diagnostic("read", "the reader")
    first, finding = Document(network(), default_registry(), path, (read,)).reading
    assert (first, finding.file) == (read, str(settings_path(path)))


def test_a_document_is_named_saved_and_watched(qapp, tmp_path: Path) -> None:
    opened = OpenDocument(Document(network("network"), default_registry()))
    document, disk = opened.document, []
    opened.disk_changed.connect(lambda: disk.append(opened.disk))
    one, two, three = (tmp_path / f"{name}.xml" for name in ("one", "two", "three"))
    document.do(lambda g: features(g, "4"))
    assert opened.journal.file is not None
    assert opened.save(one) == ()
    assert (document.graph.name, document.title, opened.is_clean) == ("one", "one.xml", True)
    assert opened.journal.file is None
    assert read_document(one).graph == document.graph
    assert not settings_path(one).exists()
    opened.save(two)  # it follows the name of its file
    assert document.graph.name == "two"
    document.do(lambda g: commands.set_property(g, "name", "mine"))
    opened.save(three)  # but keeps a name of its own
    assert document.graph.name == "mine"
    # settings are written if they differ, and again if they do not differ any more
    document.change_settings(threads=3)
    opened.save(three)
    assert read_settings(settings_path(three)).settings.threads == 3
    document.change_settings(threads=0)
    opened.save(three)
    assert read_settings(settings_path(three)).settings.threads == 0
    # a save that fails changes nothing
    document.do(lambda g: commands.set_property(g, "name", "three"))
    with pytest.raises(DiagnosticError):
        opened.save(tmp_path / "missing" / "x.xml")
    assert (document.graph.name, document.path, opened.is_clean) == ("three", three, False)
    opened.save(three)
    # changes on disk
    assert (opened.check_disk(), disk) == ("same", [])
    data = three.read_bytes()
    save_document(network("theirs"), three)
    assert (opened.check_disk(), disk) == ("changed", ["changed"])
    assert (opened.check_disk(), disk) == ("changed", ["changed"])
    opened.accept_disk()
    assert (opened.check_disk(), disk) == ("same", ["changed", "same"])
    three.unlink()
    assert (opened.check_disk(), disk[2:]) == ("gone", ["gone"])
    opened.save(three)
    assert (opened.check_disk(), disk[3:]) == ("same", ["same"])
    assert three.read_bytes() == data
    save_document(network("theirs"), three)
    opened.check_disk()
    document.mark_unsaved()
    opened.took_over(digest_of(three.read_bytes()))
    assert (opened.disk, opened.is_clean, disk[4:]) == ("same", True, ["changed", "same"])
    opened.close()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.mark.parametrize("fails", [False, True])
def test_weights_of_a_new_document_get_a_file_next_to_it(qapp, tmp_path: Path, fails: bool) -> None:
    weight_versions().mkdir(parents=True, exist_ok=True)
    version = weight_versions() / f"net imported {os.urandom(4).hex()}.safetensors"
    version.write_bytes(b"weights")
    document = Document(network(), default_registry())
    document.imported = ImportRecord(tmp_path / "model.onnx", ImportReport("model"), document)
    document.imported.weights = version
    opened = OpenDocument(document)
    document.restore_settings(weights=str(version))
    path = tmp_path / "net.xml"
    if fails:
        path.mkdir()
        with pytest.raises(DiagnosticError):
            opened.save(path)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["net.xml"]
        assert (document.settings.weights, document.graph.name) == (str(version), "network")
        opened.end()
        assert not version.exists()
        return
    opened.save(path)
    kept = tmp_path / "net.safetensors"
    assert kept.read_bytes() == b"weights"
    assert document.settings.weights == str(kept)
    assert read_settings(settings_path(path)).settings.weights == str(kept)
    # an edit of the weights of a saved document stays a version until the user saves it elsewhere
    document.restore_settings(weights=str(version))
    opened.save(path)
    assert document.settings.weights == str(version)
    assert not (tmp_path / "net-2.safetensors").exists()
    opened.end()
    assert version.exists()  # the saved document names it


def test_an_import_knows_whether_its_source_is_still_the_same(qapp, document: Document, tmp_path: Path) -> None:
    source, weights = tmp_path / "model.onnx", tmp_path / "w.safetensors"
    source.write_bytes(b"one")
    weights.write_bytes(b"w")
    os.utime(source, (5, 5))
    record = ImportRecord(source, ImportReport("model"), document)
    assert record.current
    for data, time in ((b"two", 6), (b"longer", 5), (b"two", 5.25)):
        source.write_bytes(data)
        os.utime(source, (time, time))
        assert not record.current
        source.write_bytes(b"one")
        os.utime(source, (5, 5))
        assert record.current
    source.unlink()
    assert not record.current
    assert not ImportRecord(None, ImportReport("model"), document).current
    record.weights = weights
    changes = []
    record.changed.connect(lambda: changes.append(record.comparing))
    record.not_compared("it was stopped")
    assert changes == [False]
    assert record.report.not_compared_because == "it was stopped"
    record.end(keep_weights=True)
    assert weights.exists()
    record.end(keep_weights=False)
    assert not weights.exists()
    record.end(keep_weights=False)  # already removed


def test_only_the_first_failure_of_a_journal_is_reported(qapp) -> None:
    notifier, found = _JournalNotifier(), []
    notifier.failed.connect(found.append)
    first, second = (Diagnostic("no-journal", text) for text in ("one", "two"))
    notifier.report(first)
    notifier.report(second)
    assert found == [first]


def test_labels_come_from_the_file_next_to_the_document(qapp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "names.txt").write_bytes("\ufeffcat \n\n dog\n".encode())
    (tmp_path / "names.txt").write_text("wrong")
    document = Document(network(), default_registry(), folder / "net.xml")
    document.do(lambda g: Edit("", {"out": (g["out"], layer("out", "output", "use", label_path="names.txt"))}))
    assert labels_of(document, "out") == labels_of(document, "use") == ("cat", "", "dog")
    assert labels_of(document, "conv") == labels_of(document, "nothing") == ()
    (folder / "names.txt").write_text("cow")
    os.utime(folder / "names.txt", (5, 5))
    assert labels_of(document, "out") == ("cow",)
    (folder / "deeper").mkdir()
    for path, label in ((folder / "deeper" / "names.txt", "ewe"), (tmp_path / "names.txt", "wrong")):
        path.write_text(label)
        for written in (path.relative_to(tmp_path), path):  # a relative one begins at the document, not at the process
            text = str(written).removeprefix("folder/")
            document.do(
                lambda g, text=text: Edit("", {"out": (g["out"], layer("out", "output", "use", label_path=text))})
            )
            known = path.is_relative_to(folder) or written is path
            assert labels_of(document, "out") == ((label,) if known else ("cow",))
    assert read_labels(folder) == read_labels(folder / "gone.txt") == ()


def test_a_file_of_labels_has_one_in_each_line(tmp_path: Path) -> None:
    """Whatever ends a line and whatever its bytes are; what is no file, or not all of a very large one, is not read."""
    path = tmp_path / "names.txt"
    for number, (data, labels) in enumerate((
        (b"", ()), (b"\n", ("",)), (b"cat", ("cat",)), (b"cat\n", ("cat",)), (b"a\r\nb\r\n\r\nc", ("a", "b", "", "c")),
        (b"\xef\xbb\xbfcat\ndog", ("cat", "dog")), (b" two words \t\n\n", ("two words", "")), ("größe\n".encode(), ("größe",)),
        (b"b\xffd\nok", ("b\ufffdd", "ok")), (b"<b>, 1;2\n0 cat", ("<b>, 1;2", "0 cat")),
        (b"x" * (LARGEST + 5) + b"\nlast", ("x" * LARGEST,)),
    )):  # fmt: skip
        path.write_bytes(data)
        os.utime(path, (number, number))
        assert read_labels(path) == labels
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert read_labels(pipe) == read_labels(Path("/dev/zero")) == read_labels(Path("a\0b")) == ()


def test_a_layer_that_names_its_values_needs_no_file(tmp_path: Path) -> None:
    """The output that reads them may have a file, which names those of a layer that does not."""
    path = tmp_path / "names.txt"
    path.write_text("cat\ndog")
    names = {"statistics": ("", "figures"), "histogram": ("", "shares"), "identity": ("",)}
    layers = [layer("in", "input", dims="8x8x3"), *(layer(kind, kind, "in") for kind in names)]
    registry = default_registry()
    for kind, ports in names.items():
        for port in ports:
            source = Source(kind, port)
            for file, known in ((str(path), ("cat", "dog")), ("", ())):
                graph = Graph([*layers, layer("out", "output", str(source), label_path=file)])
                own = registry.get(kind)().labels(port)
                assert labels_of(Document(graph, registry), str(source)) == (tuple(own) or known), source
                assert bool(own) is bool(port)


def test_where_a_file_of_labels_is_looked_for(tmp_path: Path, monkeypatch) -> None:
    """Next to the document, also in a folder there or above; a document without a file looks in the working folder."""
    folder, inner, home = tmp_path / "net", tmp_path / "net" / "labels", tmp_path / "home"
    for place in (inner, home):
        place.mkdir(parents=True)
    texts = {
        folder / "names.txt": "near",
        inner / "names.txt": "inside",
        tmp_path / "names.txt": "above",
        home / "names.txt": "of the user",
    }
    for path, text in texts.items():
        path.write_text(text)
    monkeypatch.setenv("HOME", str(home))
    document = Document(network(), default_registry(), folder / "net.xml")
    unsaved = Document(network(), default_registry())
    for at, label_path, found, without_file in (
        (folder, "names.txt", "near", "near"),
        (inner, "names.txt", "near", "inside"),
        (tmp_path, "labels/names.txt", "inside", ""),
        (folder, "./labels/names.txt", "inside", "inside"),
        (folder, "../names.txt", "above", "above"),
        (folder, " names.txt ", "near", "near"),
        (tmp_path, str(inner / "names.txt"), "inside", "inside"),
        (tmp_path, "~/names.txt", "of the user", "of the user"),
        (folder, "gone.txt", "", ""),
        (folder, " ", "", ""),
    ):
        monkeypatch.chdir(at)
        for each, text in ((document, found), (unsaved, without_file)):
            each.do(lambda g, p=label_path: Edit("", {"out": (g["out"], layer("out", "output", "use", label_path=p))}))
            assert labels_of(each, "out") == ((text,) if text else ()), (at, label_path)


def test_where_dialogs_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = tmp_path / "net.xml"
    assert start_folder(document) == tmp_path
    assert start_folder(None) == start_folder(sample_files()[0]) == Path.home()
    project = tmp_path / "net_pytorch"
    assert weights_folder("", document, "net") == str(tmp_path)
    project.mkdir()
    assert weights_folder("", document, "net") == str(project)
    (project / "weights").mkdir()
    assert weights_folder("", document, "net") == str(project / "weights")
    assert weights_folder("", document, "net", tmp_path / "other") == str(tmp_path)
    assert weights_folder("/folder/w.pt", document, "net", project) == "/folder"
    # links lead to where the document is, and a link to a sample is a sample
    links, (sample, *_) = tmp_path / "links", sample_files()
    links.mkdir()
    for name, target in (("net.xml", document), ("sample.xml", sample), ("cycle.xml", links / "cycle.xml")):
        (links / name).symlink_to(target)
    assert start_folder(links / "net.xml") == tmp_path
    assert start_folder(links / "sample.xml") == Path.home()
    assert is_sample(links / "sample.xml")
    assert not is_sample(links / "net.xml")
    assert start_folder(links / "cycle.xml") == links
    monkeypatch.chdir(links)
    for path, folder in (
        ("new.xml", links),
        ("../net.xml", tmp_path),
        ("sub/../new.xml", links),
        ("net.xml", tmp_path),
    ):
        assert start_folder(Path(path)) == folder
    assert weights_folder("", Path("../net.xml"), "net") == str(project / "weights")


def test_a_template_view_follows_names_types_and_counts(qapp) -> None:
    graph = network()
    outer = Template(
        "outer",
        (
            layer("x", "template_input", index="0"),
            layer("use", "template", "x", template="block"),
            layer("y", "template_output", "use", index="0"),
        ),
    )
    graph.apply(Edit("", {"big": (None, layer("big", "template", "conv", template="outer"))}))
    graph.apply(Edit("", templates={"outer": (None, outer)}))
    document = Document(graph, default_registry())
    view = TemplateView(document, ScopeStep("big", "outer"), document)
    deep = TemplateView(view, ScopeStep("use", "block"), document)
    document.changed.connect(lambda change: view.follow(change) and deep.follow(change))
    heard = Heard(view)
    assert str(deep.inference.states["c"].inputs[0]) == "N x 3 x 8 x 8"
    document.do(lambda g: features(g, "5"))
    assert str(view.inference.states["use"].inputs[0]) == "N x 5 x 8 x 8"
    assert str(deep.inference.states["c"].inputs[0]) == "N x 5 x 8 x 8"
    assert heard.states >= {"x", "use"}
    heard()
    document.do(lambda g: commands.rename_layer(g, "use", "first"))  # not the instance inside
    assert (view.instance, deep.instance) == ("big", "use")
    document.do(lambda g: commands.rename_layer(g, "big", "large"))
    assert (view.instance, deep.instance) == ("large", "use")
    assert view.do(lambda g: commands.rename_layer(g, "use", "inner"))
    assert (deep.instance, view.renamed) == ("inner", {"use": "inner"})
    document.do(lambda g: template_commands.rename_template(g, "block", "piece"))
    assert deep.template == "piece"
    edit = commands.rename_layer(document.graph.inside("piece"), "c", "conv")
    document.do(lambda g: template_commands.edit_template(g, "piece", edit))
    assert deep.renamed == {"c": "conv"}
    both = template_commands.rename_template(document.graph, "piece", "part")
    after = document.graph.copy()
    after.apply(both)
    inner = template_commands.edit_template(after, "part", commands.rename_layer(after.inside("part"), "conv", "d"))
    document.do(both.then(inner))
    assert (deep.template, deep.renamed, "d" in deep.graph) == ("part", {"conv": "d"}, True)
    heard()
    document.do(lambda g: commands.add_layer(g, layer("more", "template", "conv", template="part")))
    assert "inner" in heard.states  # an instance shows how many there are
    document.do(lambda g: commands.remove_layers(g, ["large"]))
    assert not view.follow(document.graph.apply(Edit("")))
    names = Graph(
        [layer("a", "template", template="t"), layer("a.b", "template", template="t"), layer("a.b.c.d", "relu")],
        templates=[Template("t", (layer("c", "relu"), layer("b.c", "elu")))],
    )
    assert find_layer(names, "a.b.c") == ((ScopeStep("a.b", "t"),), "c")
    assert find_layer(names, "a.b.c.d") == ((), "a.b.c.d")
    assert find_layer(names, "a.c") == ((ScopeStep("a", "t"),), "c")
    assert find_layer(names, "b.c") is None
    assert write_document(names)


def test_a_name_that_is_taken_again_inside_of_a_template_is_that_of_another_layer(qapp) -> None:
    """What the last edit renamed is not renamed again by the next one."""
    document = Document(network(), default_registry())
    view = TemplateView(document, ScopeStep("use", "block"), document)
    document.changed.connect(view.follow)
    changes: list[ChangeSet] = []
    view.changed.connect(changes.append)
    begin = view.graph.copy()
    for edit, renamed, added, removed in (
        (lambda g: commands.rename_layer(g, "c", "d"), {"c": "d"}, None, None),
        (lambda g: commands.add_layer(g, layer("c", "identity")), {}, {"c"}, set()),
        (lambda g: features(g, "9", "d"), {}, set(), set()),
        (lambda g: commands.remove_layers(g, ["c"]), {}, set(), {"c"}),
        (lambda g: commands.add_layer(g, layer("c", "relu", "x")), {}, {"c"}, set()),
        (lambda g: commands.remove_layers(g, ["d"]), {}, set(), {"d"}),
        (lambda g: commands.rename_layer(g, "c", "d"), {"c": "d"}, None, None),
        (lambda g: commands.move_layers(g, {"d": (64, 0)}), {}, set(), set()),
    ):
        changes.clear()
        assert view.do(edit)
        (change,) = changes
        assert (view.renamed, change.renamed) == (renamed, renamed)
        assert added is None or (change.added, change.removed) == (added, removed)
        assert view.graph == document.graph.inside("block")
    while document.undo():
        assert view.graph == document.graph.inside("block")
    assert view.graph == begin
    document.do(lambda g: features(g, "7"))  # of a layer outside
    assert view.renamed == {}


# --- more rules of an open document ----------------------------------------------------------------------------------


def test_findings_are_those_of_plugins_the_reader_the_network_and_a_missing_output(qapp) -> None:
    registry = default_registry()
    plugin, read = Diagnostic("plugin", "a plugin"), Diagnostic("read", "the reader")
    registry = replace(registry, diagnostics=[plugin])
    graph = network()
    document = Document(graph, registry, reading=(read,))
    assert document.diagnostics() == (plugin, read, *document.inference.diagnostics())
    document.do(lambda g: commands.set_params(g, {"conv": {"features": "x"}}))
    wrong = document.inference.diagnostics()
    assert wrong
    assert document.diagnostics() == (plugin, read, *wrong)
    document.do(lambda g: commands.remove_layers(g, ["out"]))
    note = missing_output(document.graph, registry)
    assert note is not None
    assert document.diagnostics() == (plugin, read, *document.inference.diagnostics(), note)
    more = Diagnostic("more", "found later")
    heard: list[frozenset[str]] = []
    document.states_changed.connect(heard.append)
    document.add_finding(more)
    assert (document.reading, heard) == ((read, more), [frozenset()])
    assert document.diagnostics()[:3] == (plugin, read, more)


def test_the_file_of_a_document_is_its_own_or_that_of_its_import(qapp, tmp_path: Path) -> None:
    document = Document(network(), default_registry())
    assert (document.file, document.title, document.root) == (None, "network (unsaved)", document)
    document.imported = ImportRecord(tmp_path / "model.onnx", ImportReport("model"), document)
    assert document.file == tmp_path / "model.onnx"
    document.mark_saved(tmp_path / "net.xml")
    assert (document.file, document.title) == (tmp_path / "net.xml", "net.xml")
    other = Document(network(), default_registry())
    other.imported = ImportRecord(None, ImportReport("module"), other)
    assert other.file is None


@pytest.mark.parametrize(
    ("path", "layers", "edited", "blank"),
    [
        (None, False, False, True),
        (None, True, False, False),
        (None, False, True, False),
        ("a.xml", False, False, False),
    ],
)
def test_a_blank_document_is_new_empty_and_unchanged(qapp, tmp_path: Path, path, layers, edited, blank) -> None:
    graph = network() if layers else Graph()
    opened = OpenDocument(Document(graph, default_registry(), tmp_path / path if path else None), "")
    if edited:
        opened.document.do(lambda g: commands.set_property(g, "author_notes", "x"))
    assert opened.is_blank is blank
    opened.end()


def kept_settings() -> list[dict[str, object]]:
    """The settings that another start would recover after a crash now."""
    found = []
    for left in unfinished():
        found.append(dict(left.settings))
        left.discard()
    return found


def test_settings_of_a_document_without_a_file_are_in_its_journal(qapp, tmp_path: Path) -> None:
    opened = OpenDocument(Document(network(), default_registry()), "")
    document = opened.document
    document.restore_settings(threads=3, project="")
    opened.keep_settings()
    assert opened.journal.file is None, "nothing was changed that would be lost"
    document.do(lambda g: features(g, "4"))
    assert opened.journal.file is not None
    document.use_project(tmp_path / "project", "denoise")
    document.change_settings(iterations=12)
    opened.keep_settings()
    opened.journal.abandon()
    assert kept_settings() == [
        {"threads": 3, "project": str(tmp_path / "project"), "task": "denoise", "iterations": 12}
    ]
    second = OpenDocument(Document(network(), default_registry()), "")
    second.keep_unsaved({"engine": "torch"})
    assert not second.is_clean
    second.journal.abandon()
    assert kept_settings() == [{"engine": "torch"}]
    path = tmp_path / "net.xml"
    save_document(network(), path)
    third = OpenDocument(Document(network(), default_registry(), path))
    third.document.restore_settings(threads=5)
    third.document.do(lambda g: features(g, "4"))
    third.keep_settings()
    third.journal.abandon()
    assert kept_settings() == [{}], "they are in the settings file"


def other_settings() -> Iterator[Settings]:
    """Settings of which one is not the default, of which none is, and of which one is zero that is not so by default."""
    others: dict[str, object] = {
        "precision": "fp16",
        "layout": "nhwc",
        "engine": "torch",
        "device": "cuda",
        "threads": 3,
        "tile": 256,
        "weights": "/weights",
        "random_seed": 7,
        "input_files": {"in": "/a"},
        "output_files": {"out": "/b"},
        "iterations": 12,
        "profiling": True,
        "profiling_sections": {"memory": False},
        "variants": (Variant("half", "fp16", formats={"conv": "fp16"}, reasons={"conv": "fast"}),),
        "variant": "half",
        "project": "/project",
        "task": "denoise",
        "recipe": {"epochs": "3"},
        "extra": {"Newer/setting": "1"},
    }
    usual = Settings()
    assert others.keys() == {f.name for f in fields(Settings)}
    for name, value in others.items():
        assert value != getattr(usual, name)
        yield replace(usual, **{name: value})
    yield replace(usual, **others)
    for name in ("tile", "random_seed"):
        yield replace(usual, **{name: 0})


def test_every_setting_that_is_not_the_default_is_in_the_journal_of_a_document_without_a_file(qapp) -> None:
    """Also one that is zero or empty: running images whole is a tile of 0."""
    for settings in other_settings():
        opened = OpenDocument(Document(network(), default_registry()), "")
        opened.document.restore_settings(**{f.name: getattr(settings, f.name) for f in fields(Settings)})
        opened.document.do(lambda g: features(g, "4"))
        opened.journal.abandon()
        (kept,) = kept_settings()
        recovered = Document(network(), default_registry())
        recovered.restore_settings(**kept)
        assert recovered.settings == settings
        usual = Settings()
        assert kept.keys() == {f.name for f in fields(Settings) if getattr(settings, f.name) != getattr(usual, f.name)}


def test_settings_are_in_the_journal_from_the_first_edit_and_whenever_the_project_changes(qapp, tmp_path: Path) -> None:
    """Nothing else asks for it: the journal is read after each step, as after a crash there."""
    steps = (
        (lambda d: d.do(lambda g: features(g, "4")), {"threads": 3}),
        (lambda d: d.use_project(tmp_path / "one", "denoise"), {"threads": 3, "project": "one", "task": "denoise"}),
        (lambda d: d.use_project(tmp_path / "two"), {"threads": 3, "project": "two", "task": "denoise"}),
    )
    for count in range(1, len(steps) + 1):
        opened = OpenDocument(Document(network(), default_registry()), "")
        opened.document.restore_settings(threads=3)
        for step, _ in steps[:count]:
            step(opened.document)
        opened.journal.abandon()
        (kept,) = kept_settings()
        if "project" in kept:
            kept["project"] = Path(kept["project"]).name
        assert kept == steps[count - 1][1]


@pytest.mark.parametrize(
    ("digest", "state"), [(None, "same"), ("", "changed"), ("other", "changed"), ("of the file", "same")]
)
def test_a_file_is_compared_with_the_digest_of_what_was_read(
    qapp, tmp_path: Path, digest: str | None, state: str
) -> None:
    """A network that was recovered can be of a file that was not there then."""
    path = tmp_path / "net.xml"
    save_document(network(), path)
    if digest == "of the file":
        digest = digest_of(path.read_bytes())
    opened = OpenDocument(Document(network(), default_registry(), path), digest)
    assert opened.disk == "same"
    assert opened.check_disk() == state
    assert opened.disk == state
    path.unlink()
    assert opened.check_disk() == "gone"
    opened.accept_disk()
    assert opened.disk == "same"
    opened.close()


def test_a_change_is_synced_once_some_time_after_the_first(qapp, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = OpenDocument(Document(network(), default_registry()), "")
    sync, begun = opened._sync, []
    opened.document.do(lambda g: features(g, "4"))
    assert sync.isActive()
    assert (sync.isSingleShot(), sync.interval()) == (True, 2000)
    monkeypatch.setattr(
        opened, "_sync", SimpleNamespace(isActive=sync.isActive, start=lambda: begun.append(1), stop=sync.stop)
    )
    opened.document.do(lambda g: features(g, "5"))
    assert begun == [], "changes that go on do not put it off"
    sync.stop()
    opened.document.do(lambda g: features(g, "6"))
    assert begun == [1]
    opened.end()
    assert not sync.isActive()
    assert opened.journal.file is None


def test_a_template_view_is_part_of_its_file(qapp, tmp_path: Path) -> None:
    document = Document(network(), default_registry(), tmp_path / "net.xml")
    view = TemplateView(document, ScopeStep("use", "block"), document)
    document.changed.connect(view.follow)
    heard, outer = Heard(view), Heard(document)
    assert (view.root, view.path, view.title, view.settings) == (document, document.path, "net.xml", document.settings)
    assert view.diagnostics() == view.inference.diagnostics()
    for name in ("path", "settings"):
        with pytest.raises(AttributeError, match="belong"):
            setattr(view, name, None)
    assert view.do(lambda g: features(g, "4", "c"))
    assert sorted(heard()) == ["changed", "unsaved"]
    assert document.graph.inside("block")["c"].params["features"] == "4"
    heard(), outer()
    assert view.do(lambda g: features(g, "4", "c")), "nothing changes"
    assert (heard(), outer()) == ([], [])
    assert not view.do(lambda g: commands.add_layer(g, layer("c", "relu")))
    assert (heard(), outer()) == (["refused"], [])
    with view.group("Both"):
        view.do(lambda g: features(g, "5", "c"))
        view.do(lambda g: features(g, "6", "c"))
    assert document.history.undo_title == "Both in block"
    heard()
    document.do(lambda g: commands.set_property(g, "author_notes", "x"))
    assert heard() == [], "nothing of the template"
    view.change_settings(threads=3)
    assert "settings" in heard()
    assert document.settings.threads == 3
    view.keep("view_1", "0,0,1")
    assert document.graph.properties["view_1"] == "0,0,1"
    view.mark_saved(tmp_path / "other.xml")
    assert heard()[-2:] == ["path", "clean"]
    assert view.path == tmp_path / "other.xml"
    while view.undo():
        pass
    assert document.graph.templates["block"] == network().templates["block"]
    assert view.redo()
    for step, leads in (
        (ScopeStep("use", "block"), True), (ScopeStep("", "block"), True), (ScopeStep("conv", "block"), False),
        (ScopeStep("gone", "block"), False), (ScopeStep("use", "other"), False), (ScopeStep("", "other"), False),
    ):  # fmt: skip
        assert TemplateView.leads(document, step) is leads, step
    by_name = TemplateView(document, ScopeStep("", "block"), document)
    assert by_name._feeds() == {}
    assert by_name.follow(document.graph.apply(Edit("")))


def test_a_template_view_reports_each_edit_as_a_document_of_its_layers_does(qapp) -> None:
    document = Document(network(), default_registry())
    view = TemplateView(document, ScopeStep("use", "block"), document)
    document.changed.connect(view.follow)
    alone = Document(network().inside("block"), default_registry())
    heard: dict[object, list[object]] = {view: [], alone: []}
    for each, found in heard.items():
        each.changed.connect(
            lambda change, found=found: found.append((change.added, change.removed, change.rewired, change.renamed))
        )
        each.states_changed.connect(lambda names, found=found: found.append(set(names)))

    def compare() -> None:
        (mine, *states), (its, *others) = heard[view], heard[alone]
        assert mine == its
        _added, removed, *_ = its
        assert bool(others) or not removed, "a layer that is gone is told, also where nothing reads it"
        assert bool(states) or not others, "states of removed layers are announced too"
        assert all(any(names <= found for found in states) for names in others)

    lone = layer("lone", "identity")
    for edit in (
        lambda g: commands.add_layer(g, lone),
        lambda g: features(g, "9", "c"),
        lambda g: commands.rename_layer(g, "lone", "other"),
        lambda g: commands.remove_layers(g, ["other"]),
        lambda g: commands.move_layers(g, {"c": (64, 64)}),
    ):
        for each, found in heard.items():
            found.clear()
            assert each.do(edit)
        compare()
        for each, found in heard.items():
            found.clear()
            assert each.undo()
        compare()
        for each in heard:
            assert each.redo()


def test_all_layers_of_an_instance_that_is_only_trained_belong_to_the_training_branch(qapp) -> None:
    graph = network()
    graph.apply(Edit("", {"aim": (None, layer("aim", "input", dims="8x8x3"))}))
    document = Document(graph, default_registry())
    view = TemplateView(document, ScopeStep("use", "block"), document)
    document.changed.connect(view.follow)
    heard = Heard(view)
    assert view.training == frozenset()
    loss = {"out": (document.graph["out"], None), "loss": (None, layer("loss", "l1_loss", "use", "aim")), "end": (None, layer("end", "output", "conv"))}  # fmt: skip
    document.do(Edit("Train", loss))
    assert "use" in document.training
    assert view.training == {"x", "c", "y"}
    assert heard.states >= {"x", "c", "y"}
    heard()
    document.undo()
    assert view.training == frozenset()
    assert heard.states >= {"x", "c", "y"}


@pytest.mark.parametrize("positions", ["", 'edit_pos="0,0"', 'edit_pos="here"'], ids=["none", "all", "bad"])
def test_what_saving_mends_is_no_longer_found(tmp_path: Path, positions: str) -> None:
    """What is left is what the saved file has when it is read anew."""
    path = tmp_path / "net.xml"
    frame = '<lw:Frame xmlns:lw="urn:layerwright:1" id="f" title="F" rect="0,0" />'
    layers = f'<Layer name="a" type="input" {positions} /><Layer name="b" type="output" {positions} input="a" />'
    path.write_text(f'<NetworkModel version="2">{frame}{layers}</NetworkModel>')
    graph, found = read_document(path).graph, read_document(path).diagnostics
    assert graph is not None
    document = Document(graph, default_registry(), path, found)
    codes = {each.code for each in document.reading}
    assert {"missing-name", "bad-frame"} <= codes
    assert bool(codes & {"missing-position", "bad-position"}) is (positions != 'edit_pos="0,0"')
    told: list[object] = []
    document.states_changed.connect(told.append)
    for _ in range(2):
        save_document(graph, path)
        document.mark_saved(path)
        assert [each.code for each in document.reading] == ["bad-frame"]
        assert [each.code for each in read_document(path).diagnostics] == ["bad-frame"]
    assert told == [frozenset()]
