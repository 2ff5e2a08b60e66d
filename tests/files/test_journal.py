"""The recovery journal: what was done is there after the process is gone, damage is reported, and the folder may be missing."""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections.abc import Iterator
from dataclasses import fields, replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
from msgspec.structs import replace as replace_record

from designer.files import atomic, limits
from designer.files import journal as journal_module
from designer.files.document import parse_document, read_document, write_document
from designer.files.journal import ENDING, Journal, journal_folder
from designer.files.journal_format import (
    BaseRecord,
    ChangeRecord,
    GraphReplay,
    LayerRecord,
    StateRecord,
    TemplateRecord,
    checked,
    lines,
    read_line,
)
from designer.files.recovery import unfinished
from designer.files.safekeeping import Safekeeping
from designer.files.settings import Settings, save_settings, settings_path
from designer.files.variants import BY_HAND, Variant
from designer.graph import commands, frames
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.history import History
from designer.graph.model import ActivationSpec, Foreign, Frame, Layer, Source
from designer.graph.template import Template

CONV = {"features": "8", "kernel": "3x3"}


def chain(count: int = 5) -> Graph:
    layers = [Layer("in", "input", params={"dims": "64x64x3"})]
    for number in range(1, count):
        layers.append(
            Layer(
                f"n{number}", "convolution", (320 * number, 0), (Source(layers[-1].name),), CONV, ActivationSpec("relu")
            )
        )
    return Graph(layers)


class Desk:
    """A document with its history and journal, and a way to lose the process."""

    def __init__(self, folder: Path, graph: Graph, path: Path | None = None) -> None:
        self.graph, self.path, self.folder = graph, path, folder
        self.history = History(graph)
        self.failures: list[Diagnostic] = []
        digest = ""
        if path is not None:
            data = write_document(graph)
            path.write_bytes(data)
            digest = sha256(data).hexdigest()
        self.journal = Journal(graph, path, digest, folder=folder, on_failure=self.failures.append)
        self.history.subscribe(self.journal.record)

    def do(self, edit) -> None:
        self.history.commit(edit(self.graph))

    def crash(self) -> None:
        """What the end of the process does: locks go, nothing else."""
        self.journal.abandon()


class HeldThread:
    """A thread of the journal that does its work when the test says so."""

    made: ClassVar[list[HeldThread]] = []

    def __init__(self, target, name: str, daemon: bool) -> None:
        self.work = target
        self.made.append(self)

    def start(self) -> None:
        pass

    def join(self) -> None:
        pass


@pytest.fixture
def held(monkeypatch) -> list[HeldThread]:
    """The journal's threads, none of which has begun."""
    monkeypatch.setattr(HeldThread, "made", [])
    monkeypatch.setattr(journal_module, "threading", SimpleNamespace(Thread=HeldThread, RLock=threading.RLock))
    return HeldThread.made


@pytest.fixture(autouse=True)
def no_descriptor_stays() -> Iterator[None]:
    """Every journal is closed, so that other tests can count descriptors."""
    folder = Path("/proc/self/fd")
    before = sorted(folder.iterdir()) if folder.exists() else []
    yield
    assert (sorted(folder.iterdir()) if folder.exists() else []) == before


@pytest.fixture
def desk(tmp_path) -> Desk:
    return Desk(tmp_path / "journal", chain(), tmp_path / "net.xml")


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def test_nothing_is_written_before_the_first_change_or_beside_the_document(desk, tmp_path):
    assert files(desk.folder) == []
    desk.do(lambda g: commands.move_layers(g, {"n1": (16, 32)}))
    assert [f.suffix for f in files(desk.folder)] == [ENDING]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["journal", "net.xml"]
    desk.crash()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_file_name_that_is_not_text_comes_back(tmp_path):
    desk = Desk(tmp_path / "journal", chain(), tmp_path / os.fsdecode(b"b\xfcro.xml"))
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.crash()
    (found,) = unfinished(desk.folder)
    assert (found.path, found.disk, found.graph) == (desk.path, "same", desk.graph)
    found.release()


def test_every_kind_of_change_comes_back(desk, tmp_path):
    frame = Frame("f1", "Encoder", "é <b> & \u201c", "accent", (0, 0, 640, 320))
    foreign = Layer(
        "odd",
        "unheard_of",
        (1, 2),
        (None, Source("n1", "b")),
        {"x": "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")},
    )
    activation = ActivationSpec("relu", attributes={"lw:own": "2"}, children=(Foreign("<!-- of the activation -->"),))
    foreign = replace(foreign, attributes={"lw:mark": "1"}, children=(Foreign("<!-- kept -->"),), activation=activation)
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.do(lambda g: commands.rename_layer(g, "n2", "middle"))
    desk.do(lambda g: commands.remove_layers(g, ["n3"], heal=True))
    desk.do(lambda g: commands.move_layers(g, {"n1": (160, 16), "in": (-16, -32)}))
    desk.do(
        lambda g: commands.move_layers(g, {"in": (-32, -48)}).then(commands.set_params(g, {"n4": {"features": "4"}}))
    )
    desk.do(lambda g: Edit("Odd", {"odd": (None, foreign)}))
    moved = {"in": (-48, 0), "n1": (176, 0), "middle": (640, 64), "n4": (96, 32), "odd": (2, 1)}
    desk.do(
        lambda g: commands.move_layers(g, moved).then(commands.add_layer(g, Layer("made beside", "relu", (16, 16))))
    )
    desk.do(lambda g: commands.remove_layers(g, ["made beside"]).then(commands.move_layers(g, {"n1": (160, 32)})))
    desk.do(lambda g: frames.set_frame(g, "f1", frame))
    desk.do(lambda g: commands.set_property(g, "author_notes", "by hand"))
    desk.do(lambda g: Edit("Mark", {"n4": (g["n4"], replace(g["n4"], attributes={"lw:collapsed": "true"}))}))
    desk.history.put(Edit("View", properties={"view_1": (None, "0,0,1")}))
    template = Template(
        "block", (Layer("a", "template_input"), Layer("b", "template_output", (320, 0), (Source("a"),)))
    )
    desk.do(lambda g: Edit("Template", templates={"block": (None, template)}))
    desk.crash()
    (found,) = unfinished(desk.folder)
    assert found.graph == desk.graph
    assert (found.path, found.disk, found.findings) == (desk.path, "same", ())
    assert found.on_disk == read_document(desk.path).graph
    assert parse_document(write_document(found.graph)).graph == desk.graph
    found.release()


def test_settings_that_were_changed_come_back(desk):
    changes = {"precision": ("fp32", "fp16"), "input_files": ({}, {"in": "/a.png"}), "random_seed": (None, 7)}
    desk.do(lambda g: Edit("Settings", settings=changes))
    desk.crash()
    (found,) = unfinished(desk.folder)
    assert found.graph == found.on_disk
    assert found.settings == {"precision": "fp16", "input_files": {"in": "/a.png"}, "random_seed": 7}
    found.release()
    save_settings(Settings("fp16", input_files={"in": "/a.png"}, random_seed=7), settings_path(desk.path))
    assert unfinished(desk.folder) == []  # they were saved


def test_undo_and_redo_are_recorded(desk):
    for number in range(4):
        desk.do(lambda g, n=number: commands.set_params(g, {"n1": {"features": str(20 + n)}}))
    desk.history.undo()
    desk.history.undo()
    desk.history.redo()
    desk.crash()
    (found,) = unfinished(desk.folder)
    assert found.graph["n1"].params["features"] == "22"
    assert found.graph == desk.graph
    found.release()


def test_random_work_comes_back(tmp_path, monkeypatch):
    """Adding, removing, moving, renaming, undo and redo in any order; also across a new beginning of the journal."""
    chance = random.Random(4)
    monkeypatch.setattr(journal_module, "COMPACT_BYTES", 2000)
    desk = Desk(tmp_path / "journal", chain(30), tmp_path / "net.xml")
    for number in range(300):
        names = [n for n in desk.graph.layers if n != "in"]
        name = chance.choice(names)
        match chance.randrange(6):
            case 0:
                desk.do(lambda g, n=name, i=number: commands.rename_layer(g, n, f"r{i}"))
            case 1:
                desk.do(lambda g, n=name, i=number: commands.set_params(g, {n: {"features": str(i + 1)}}))
            case 2:
                desk.do(lambda g, n=name, i=number: commands.move_layers(g, {n: (16 * i, 32)}))
            case 3:
                desk.do(lambda g, i=number: commands.add_layer(g, Layer(f"a{i}", "identity", (i, i), (Source("in"),))))
            case 4 if len(names) > 5:
                desk.do(lambda g, n=name: commands.remove_layers(g, [n], heal=True))
            case _:
                (desk.history.undo if chance.random() < 0.6 else desk.history.redo)()
        if number % 50 == 49:
            desk.journal.wait()
    desk.crash()
    assert len(files(desk.folder)) == 1
    (found,) = unfinished(desk.folder)
    assert found.graph == desk.graph
    assert not found.findings
    found.release()


def test_a_large_record_is_written_by_a_thread_before_the_next_one(tmp_path, monkeypatch):
    desk = Desk(tmp_path / "journal", chain(1000), tmp_path / "net.xml")
    names = [n for n in desk.graph.layers if n != "in"]
    began = []
    real = os.write

    def write(stream: int, data: bytes) -> int:
        began.append(threading.current_thread().name)
        return real(stream, data)

    monkeypatch.setattr(journal_module.os, "write", write)
    for number in range(4):
        desk.do(lambda g, n=number: commands.set_params(g, {m: {"features": str(n + 9)} for m in names}))
        desk.do(lambda g, n=number: commands.set_params(g, {"n5": {"features": str(n + 50)}}))
    desk.history.undo()
    desk.history.undo()
    desk.crash()
    assert began.count("layerwright-journal") == 6  # four, the one that was undone, and the base
    assert began.count(threading.main_thread().name) == 6  # the header and what is small
    (file,) = files(desk.folder)
    numbers = [r.n for part in lines(file.read_bytes()) if isinstance(r := read_line(part), ChangeRecord)]
    assert numbers == list(range(1, 11))
    (found,) = unfinished(desk.folder)
    assert found.graph == desk.graph
    assert not found.findings
    found.release()


def test_a_large_record_of_what_was_saved_meanwhile_is_dropped(tmp_path):
    desk = Desk(tmp_path / "journal", chain(1000), tmp_path / "net.xml")
    desk.do(lambda g: commands.set_params(g, {m: {"features": "9"} for m in g.layers if m != "in"}))
    data = write_document(desk.graph)
    desk.path.write_bytes(data)
    desk.journal.saved(desk.path, sha256(data).hexdigest())
    desk.do(lambda g: commands.set_params(g, {"n5": {"features": "50"}}))
    desk.crash()
    (found,) = unfinished(desk.folder)
    assert found.graph == desk.graph
    assert not found.findings
    found.release()


def test_a_torn_last_record_is_left_out_in_silence(desk):
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.journal.wait()
    before = desk.graph.copy()
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "17"}}))
    desk.crash()
    (file,) = files(desk.folder)
    whole = file.read_bytes()
    last = len(whole) - len(list(lines(whole))[-1])
    for end in range(last, len(whole)):
        file.write_bytes(whole[:end])
        (found,) = unfinished(desk.folder)
        assert found.graph == before, end
        assert not found.findings
        found.release()


def test_before_the_base_is_written_the_file_is_used(desk, held):
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.crash()
    (found,) = unfinished(desk.folder)
    assert found.graph == desk.graph
    assert not found.findings
    found.release()
    desk.path.write_bytes(write_document(chain(3)))
    (found,) = unfinished(desk.folder)
    assert found.disk == "changed"
    assert found.graph["n1"].params["features"] == "16"
    assert [f.code for f in found.findings] == ["journal-without-base"]
    found.release()
    desk.path.unlink()
    (found,) = unfinished(desk.folder)
    assert (found.disk, set(found.graph.layers)) == ("gone", {"n1"})
    assert "only changed layers were recovered" in found.findings[0].message
    found.release()


def test_without_a_base_all_parts_of_the_file_are_kept_and_its_state_is_reported(tmp_path, held):
    graph = Graph(
        chain(),
        name="whole",
        attributes={"vendor": "1"},
        foreign=[Foreign("<other />")],
        frames=[Frame("f", "title", "text")],
        templates=[Template("block", (Layer("x", "template_input"),), attributes={"vendor": "2"})],
    )
    graph.properties["notes"] = "of the document"
    desk = Desk(tmp_path / "journal", graph, tmp_path / "net.xml")
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.crash()
    changed = b"\n"  # by another program
    files = [
        (desk.path.read_bytes(), "same", True),
        (desk.path.read_bytes() + changed, "changed", True),
        (b"no network" + changed, "changed", False),
        (b"", "changed", False),
        (None, "gone", False),
    ]
    for data, disk, whole in files:
        if data is None:
            desk.path.unlink()
        else:
            desk.path.write_bytes(data)
        (found,) = unfinished(desk.folder)
        assert (found.disk, found.on_disk is not None) == (disk, whole)
        assert (found.graph == desk.graph) == whole
        assert found.graph["n1"].params["features"] == "16"
        assert len(found.graph) == (len(desk.graph) if whole else 1)
        assert [f.code for f in found.findings] == ["journal-without-base"] * (disk != "same")
        found.release()


def test_a_new_document_needs_no_base(tmp_path):
    desk = Desk(tmp_path / "journal", Graph())
    desk.do(lambda g: commands.add_layer(g, Layer("in", "input", params={"dims": "8x8x3"})))
    desk.crash()
    (found,) = unfinished(desk.folder)
    assert found.graph == desk.graph
    assert (found.path, found.disk, found.title) == (None, "none", "network (never saved)")
    found.release()


def test_a_damaged_record_takes_only_its_own_values(desk):
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.journal.wait()
    desk.do(lambda g: commands.set_params(g, {"n2": {"features": "17"}}))
    desk.do(lambda g: commands.set_params(g, {"n3": {"features": "18"}}))
    desk.crash()
    (file,) = files(desk.folder)
    parts = list(lines(file.read_bytes()))
    file.write_bytes(b"".join([*parts[:-2], parts[-2].replace(b'"17"', b'"71"'), parts[-1]]))
    (found,) = unfinished(desk.folder)
    assert found.graph["n1"].params["features"] == "16"
    assert found.graph["n2"].params["features"] == "8"
    assert found.graph["n3"].params["features"] == "18"
    assert [f.code for f in found.findings] == ["journal-damaged"]
    assert found.findings[0].remedy
    found.release()


def test_no_garbage_raises(desk):
    """Cut, flipped and foreign bytes: always a list, and nothing of the document is touched."""
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.do(lambda g: frames.set_frame(g, "f", Frame("f")))
    desk.crash()
    (file,) = files(desk.folder)
    whole, document = file.read_bytes(), desk.path.read_bytes()
    chance = random.Random(1)
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        file.write_bytes(bytes(data[: chance.randrange(len(data) + 1)]))
        for found in unfinished(desk.folder):
            found.release()
        if not file.exists():
            assert not bytes(data).startswith(whole)
    for data in (b"", b"\n\n\n", b"00000000 \n", os.urandom(2000)):
        file.write_bytes(data)
        for found in unfinished(desk.folder):
            assert found.graph is None or len(found.graph) >= 0
            found.release()
    assert desk.path.read_bytes() == document


def test_records_are_checked_though_their_checksum_is_right(desk):
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.crash()
    (file,) = files(desk.folder)
    before = file.read_bytes()
    bad = [
        {"n": 9, "layers": {"a/b": {"type": "input", "at": [0, 0]}}},
        {"n": 9, "layers": {"a": {"type": "input", "at": [0, "0"]}}},
        {"n": 9, "layers": {"a": {"type": 7, "at": [0, 0]}}},
        {"n": 9, "layers": ["a"]},
        {"n": 9, "moved": {"n1": [0]}},
        {"n": 9, "frames": {"f": ["a", "b", "c", [0, 0, 1, 10**20]]}},
        {"n": 9, "settings": {"precision": "fp8"}},
        {"n": 9, "settings": {"no_such": 1}},
        {"n": 9, "settings": {"input_files": {"in": 1}}},
        {"n": "9"},
        {"n": 10**400},
        {"base": 1.5},
        {"n": 9, "time": 10**400},
    ]
    for record in bad:
        file.write_bytes(before + checked(json.dumps(record).encode()))
        (found,) = unfinished(desk.folder)
        assert found.graph == desk.graph, record
        assert [f.code for f in found.findings] == ["journal-damaged"]
        found.release()


def test_times_that_no_calendar_knows_are_left_out(desk):
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.crash()
    (file,) = files(desk.folder)
    before = file.read_bytes()
    for time in (1e300, 1 << 50, -5):
        file.write_bytes(before + checked(json.dumps({"n": 2, "time": time, "properties": {"author": "me"}}).encode()))
        (found,) = unfinished(desk.folder)
        assert 0 <= found.changed < 1 << 40
        assert found.graph is not None
        assert found.graph.properties["author"] == "me"
        found.release()


def test_saving_ends_the_journal_and_the_next_change_begins_another(desk):
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    data = write_document(desk.graph)
    desk.path.write_bytes(data)
    desk.journal.saved(desk.path, sha256(data).hexdigest())
    assert files(desk.folder) == []
    desk.history.undo()
    desk.crash()
    (found,) = unfinished(desk.folder)
    assert found.graph == desk.graph
    assert found.graph["n1"].params["features"] == "8"
    found.release()


def test_a_document_whose_settings_cannot_be_written_is_saved_though(tmp_path, monkeypatch):
    path, history = tmp_path / "net.xml", History(chain())
    keeping = Safekeeping(history, folder=tmp_path / "journal")
    history.commit(commands.set_params(history.graph, {"n1": {"features": "16"}}))
    refused = DiagnosticError.of("cannot-save", "the disk is full", remedy="free some space")
    monkeypatch.setattr("designer.files.safekeeping.save_settings", raising(refused))
    assert keeping.save(path, Settings()) == refused.diagnostics
    assert read_document(path).graph == history.graph
    assert (keeping.on_disk.path, keeping.disk_state()) == (path, "same")
    keeping.journal.wait()
    assert not files(tmp_path / "journal")
    other = tmp_path / "other.xml"
    assert keeping.save(other) == ()
    assert (keeping.on_disk.path, keeping.disk_state()) == (other, "same")
    keeping.close()


def raising(error: Exception):
    def call(*arguments: object) -> None:
        raise error

    return call


def test_what_the_thread_still_does_for_a_saved_state_stays_out_of_the_next_journal(desk, held):
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    data = write_document(desk.graph)
    desk.path.write_bytes(data)
    desk.journal.saved(desk.path, sha256(data).hexdigest())
    desk.do(lambda g: commands.set_params(g, {"n2": {"features": "17"}}))
    held[0].work()  # the base of what was open before the save comes only now
    desk.crash()
    (found,) = unfinished(desk.folder)
    assert found.graph == desk.graph
    found.release()


def test_a_thread_begins_its_work_after_the_one_before(desk, held, monkeypatch):
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.journal.sync()
    _, sync = held
    with monkeypatch.context() as patch:
        patch.setattr(HeldThread, "join", lambda thread: thread.work())
        sync.work()
    desk.crash()
    (file,) = files(desk.folder)
    assert any(isinstance(read_line(part), BaseRecord) for part in lines(file.read_bytes()))


def test_work_on_a_file_with_the_longest_name_comes_back(tmp_path):
    desk = Desk(tmp_path / "journal", chain(), tmp_path / f"{'n' * 251}.xml")
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.crash()
    (found,) = unfinished(desk.folder)
    assert found.path == desk.path
    assert found.graph == desk.graph
    found.release()


def test_what_was_saved_or_undone_is_not_offered(desk):
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.path.write_bytes(write_document(desk.graph))  # the crash comes between saving and the end of the journal
    desk.crash()
    assert unfinished(desk.folder) == []
    assert files(desk.folder) == []


def test_the_journal_of_a_living_document_is_not_offered(desk):
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    assert unfinished(desk.folder) == []
    desk.crash()
    (found,) = unfinished(desk.folder)
    assert unfinished(desk.folder) == []  # one start offers it, another one at the same time does not
    found.release()
    (found,) = unfinished(desk.folder)
    found.discard()
    assert files(desk.folder) == []


def test_a_journal_taken_over_is_kept_at_once(desk):
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.crash()
    (found,) = unfinished(desk.folder)
    taken = Journal(found.graph, found.path, found.digest, folder=desk.folder)
    assert taken.keep()
    found.discard()
    assert len(files(desk.folder)) == 1
    history = History(found.graph)
    history.subscribe(taken.record)
    history.commit(commands.move_layers(found.graph, {"n2": (0, 480)}))
    taken.abandon()
    (again,) = unfinished(desk.folder)
    assert again.graph == found.graph
    assert again.disk == "same"
    again.release()


def test_a_folder_that_cannot_be_used_is_told_once(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    desk = Desk(blocked / "journal", chain(), tmp_path / "net.xml")
    for number in range(3):
        desk.do(lambda g, n=number: commands.set_params(g, {"n1": {"features": str(20 + n)}}))
    assert desk.graph["n1"].params["features"] == "22"
    assert [f.code for f in desk.failures] == ["no-journal"]
    assert desk.failures[0].remedy
    assert unfinished(blocked / "journal") == []


def test_a_full_disk_is_told_once_and_saving_starts_again(desk, monkeypatch):
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.journal.wait()
    real = os.write

    def full(stream, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal_module.os, "write", full)
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "17"}}))
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "18"}}))
    monkeypatch.setattr(journal_module.os, "write", real)
    assert len(desk.failures) == 1
    assert "No space left" in desk.failures[0].message
    desk.journal.saved(desk.path, "")
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "19"}}))
    assert len(files(desk.folder)) == 1
    desk.crash()


def test_the_journal_is_written_anew_when_it_grows(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "COMPACT_BYTES", 20_000)
    desk = Desk(tmp_path / "journal", chain(), tmp_path / "net.xml")
    changes = {"precision": ("fp32", "fp16"), "random_seed": (None, 0)}
    desk.do(lambda g: Edit("Settings", settings=changes))
    sizes = []
    for number in range(400):
        desk.do(lambda g, n=number: commands.set_params(g, {"n1": {"features": str(n + 1)}}))
        desk.journal.wait()
        (file,) = files(desk.folder)
        sizes.append(file.stat().st_size)
    assert sum(after < before / 2 for before, after in pairwise(sizes)) >= 2
    assert max(sizes) < 30_000
    desk.crash()
    assert len(files(desk.folder)) == 1
    (found,) = unfinished(desk.folder)
    assert found.graph == desk.graph
    assert found.settings == {"precision": "fp16", "random_seed": 0}
    found.release()


def test_the_base_of_the_opening_may_come_after_a_newer_one(tmp_path, held, monkeypatch):
    """Where gestures are faster than the threads, the new file takes the old base over among the records since."""
    monkeypatch.setattr(journal_module, "COMPACT_BYTES", 2000)
    desk = Desk(tmp_path / "journal", chain(), tmp_path / "net.xml")
    number = 0
    while len(held) < 2:
        number += 1
        desk.do(lambda g, n=number: commands.set_params(g, {f"n{n % 4 + 1}": {"features": str(n)}}))
    desk.do(lambda g: commands.set_params(g, {"in": {"dims": "8x8x3"}}))
    for thread in held[:2]:
        thread.work()
    desk.do(lambda g: commands.set_params(g, {"in": {"dims": "9x9x3"}}))
    desk.crash()
    (file,) = files(desk.folder)
    bases = [r.base for part in lines(file.read_bytes()) if isinstance(r := read_line(part), BaseRecord)]
    assert bases == [number, 0]
    (found,) = unfinished(desk.folder)
    assert found.graph == desk.graph
    assert not found.findings
    found.release()


def test_records_that_are_missing_are_said(desk):
    for number in range(5):
        desk.do(lambda g, n=number: commands.set_params(g, {"n1": {"features": str(20 + n)}}))
    desk.crash()
    (file,) = files(desk.folder)
    parts = list(lines(file.read_bytes()))
    second = next(i for i, part in enumerate(parts) if getattr(read_line(part), "n", 0) == 2)
    file.write_bytes(b"".join(parts[:second] + parts[second + 2 :]))
    (found,) = unfinished(desk.folder)
    assert "2 of 5" in found.findings[0].message
    found.release()


def test_what_an_unfinished_save_left_is_removed(desk, tmp_path, monkeypatch):
    left, other = tmp_path / ".lw-0123456789abcdef.tmp", tmp_path / ".lw-mine.tmp"
    for file in (left, other):
        file.write_text("half")
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.crash()
    unfinished(desk.folder)[0].release()
    assert left.exists()  # too young: its process may live
    os.utime(left, (1, 1))
    with atomic.atomic_file(tmp_path / "new.xml") as stream:
        stream.write(b"whole")
        stream.flush()
        (living,) = [p for p in tmp_path.glob(".lw-*.tmp") if p not in (left, other)]
        os.utime(living, (1, 1))
        unfinished(desk.folder)[0].release()
        assert living.exists()  # it is locked
    assert not left.exists()
    assert other.exists()  # none of ours
    assert (tmp_path / "new.xml").read_bytes() == b"whole"


def test_lines_carry_checksums(desk):
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    desk.journal.wait()
    (file,) = files(desk.folder)
    parts = list(lines(file.read_bytes()))
    assert all(read_line(part) is not None for part in parts)
    assert len(parts) == 3  # header, change, and what was opened
    desk.crash()


def test_the_folder_can_be_chosen(monkeypatch, tmp_path):
    assert "layerwright" in str(journal_folder())
    monkeypatch.setenv("LAYERWRIGHT_JOURNAL", str(tmp_path))
    assert journal_folder() == tmp_path


def test_a_journal_holds_at_most_twice_the_layers_of_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_LAYERS", 2)
    replay = GraphReplay()
    for name in "abcd":
        replay.apply(StateRecord(layers={name: LayerRecord(type="identity", at=(0, 0))}))
    with pytest.raises(ValueError, match="too many layers"):
        replay.apply(StateRecord(layers={"e": LayerRecord(type="identity", at=(0, 0))}))
    assert list(replay.layers) == list("abcd")


def test_documents_are_offered_by_their_last_change(tmp_path, monkeypatch):
    """With the times at which each was opened and changed, under its file's name or the one that it would have had."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("time.time", lambda: clock.now)
    desks = {
        title: Desk(tmp_path / "journal", chain(), tmp_path / title if title.endswith(".xml") else None)
        for title in ("a.xml", "b.xml", "network (never saved)", "c.xml")
    }
    for second, title in enumerate(["c.xml", "a.xml", "b.xml", "a.xml", "network (never saved)", "b.xml", "c.xml"]):
        clock.now = 1000.0 + second
        desks[title].do(lambda g, n=second: commands.set_params(g, {"n1": {"features": str(9 + n)}}))
    for desk in desks.values():
        desk.crash()
    found = unfinished(tmp_path / "journal")
    assert [(item.title, item.opened, item.changed) for item in found] == [
        ("c.xml", 1000.0, 1006.0),
        ("b.xml", 1002.0, 1005.0),
        ("network (never saved)", 1004.0, 1004.0),
        ("a.xml", 1001.0, 1003.0),
    ]
    assert [item.graph for item in found] == [desks[item.title].graph for item in found]
    assert [item.path for item in found] == [desks[item.title].path for item in found]
    for item in found:
        item.discard()
    assert unfinished(tmp_path / "journal") == []


def test_of_journals_without_contents_only_an_old_incomplete_one_is_removed(tmp_path):
    """A process that is creating one has an hour; other files are not ours."""
    folder = tmp_path / "journal"
    folder.mkdir()
    old = (f"old{journal_module.MAKING}", f"old{ENDING}")
    for name in (*old, f"young{journal_module.MAKING}", f"young{ENDING}", "a"):
        (folder / name).touch()
    for file in folder.glob("old*"):
        os.utime(file, (1, 1))
    os.utime(folder / "a", (1, 1))
    assert unfinished(folder) == []
    assert {file.name for file in files(folder)} == {f"young{journal_module.MAKING}", f"young{ENDING}", "a"}


def everything() -> dict[str, Edit]:
    """Edits of a chain, one for each part of a document that a record can lose."""
    graph = chain()
    note = (Foreign("<!-- note -->"), Foreign("<other/>"))
    spec = ActivationSpec("elu", {"alpha": "2"}, {"lw:a": "1"}, note)
    marks = {"lw:frozen": "true", "lw:folded": "g"}
    odd = Layer("odd", "t", (-5, 7), (None, Source("n1", "y")), {"p": ""}, spec, marks, note)
    inside = (replace(odd, name="x"), Layer("i", "template_input", params={"index": "1"}))
    frames_ = (
        Frame("f", "One", "text", "#abc", (1, -2, 30, 40), True, "g"),
        Frame("g", "Two", rect=(0, 0, 9, 9), collapsed=True),
    )
    template = Template("block", inside, note, {"xmlns:o": "urn:o", "kept": "1"}, frames_)
    variants = (Variant("half", "fp16", {"n1": "fp32"}, passes=("fold",), reasons={"n1": BY_HAND}),)
    settings = {
        "precision": ("fp32", "bf16"),
        "layout": ("nchw", "nhwc"),
        "engine": ("onnxruntime", "torch"),
        "device": ("cpu", "cuda"),
        "threads": (0, 3),
        "tile": (-1, 256),
        "weights": ("", "/w.pt"),
        "random_seed": (None, 7),
        "input_files": ({}, {"in": "/a.png"}),
        "output_files": ({}, {"n4": "/b.png"}),
        "iterations": (10, 20),
        "profiling": (False, True),
        "profiling_sections": ({}, {"Layers": True, "Memory": False}),
        "variants": ((), variants),
        "variant": ("", "half"),
        "project": ("", "/project"),
        "task": ("", "denoise"),
        "recipe": ({}, {"steps": "5"}),
        "extra": ({}, {"of a newer version": "1"}),
    }
    assert settings.keys() == {field.name for field in fields(Settings)}
    return {
        "layer": Edit("", {"odd": (None, odd)}),
        "look": Edit("", {"n1": (graph["n1"], replace(graph["n1"], attributes={"lw:collapsed": "true"}))}),
        "activation": Edit("", {"n1": (graph["n1"], replace(graph["n1"], activation=None))}),
        "frames": Edit("", frames={frame.id: (None, frame) for frame in frames_}),
        "template": Edit("", templates={"block": (None, template)}),
        "properties": Edit("", properties={"author": (None, ""), "user_version_tag": ("1", None)}),
        **{f"setting {key}": Edit("", settings={key: pair}) for key, pair in settings.items()},
    }


@pytest.mark.parametrize("kept", [False, True], ids=["records", "whole"])
@pytest.mark.parametrize("name", everything())
def test_every_part_comes_back_and_goes_again(tmp_path, name, kept):
    """As records and from the snapshot of the whole graph; what an undo removes is gone after a crash."""
    edit = everything()[name]
    for undone in (False, True):
        desk = Desk(tmp_path / f"journal {undone}", chain(), tmp_path / "net.xml")
        desk.do(lambda g: commands.set_params(g, {"n2": {"features": "99"}}))
        desk.history.commit(edit)
        if undone:
            desk.history.undo()
        if kept:
            assert desk.journal.keep()
        desk.crash()
        (found,) = unfinished(desk.folder)
        assert found.graph == desk.graph
        assert found.findings == ()
        changed = {key: (before if undone else after) for key, (before, after) in edit.settings.items()}
        usual = Settings()
        assert found.settings == {key: value for key, value in changed.items() if value != getattr(usual, key)}
        found.discard()


def test_a_journal_through_saves_and_compactions(tmp_path, monkeypatch):
    """After each save nothing of before counts: neither settings, nor sizes, nor the graph that was opened."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(journal_module, "COMPACT_BYTES", 3000)
    desk = Desk(tmp_path / "journal", chain(), Path("net.xml"))
    for version in range(3):
        seed = {"random_seed": (None, version), "precision": ("fp32", "fp16")}
        assert desk.journal.synced
        if version < 2:
            desk.do(lambda g, s=seed: Edit("Settings", settings=s))
        for number in range(60):
            desk.do(lambda g, n=number, v=version: commands.set_params(g, {"n1": {"features": str(100 * v + n + 1)}}))
            if number % 20 == 9:
                desk.journal.wait()
        assert not desk.journal.synced
        desk.journal.sync()
        desk.journal.wait()
        assert desk.journal.synced
        (file,) = files(desk.folder)
        assert file == desk.journal.file
        assert file.stat().st_size < 9000
        header = read_line(next(lines(file.read_bytes())))
        assert (header.path, header.name, header.empty) == (str(tmp_path / "net.xml"), "network", False)
        assert header.digest == sha256(desk.path.read_bytes()).hexdigest()
        if version < 2:
            data = write_document(desk.graph)
            desk.path.write_bytes(data)
            desk.journal.saved(desk.path, sha256(data).hexdigest())
            assert (files(desk.folder), desk.journal.file, desk.journal.synced) == ([], None, True)
    assert desk.journal.keep({"threads": 3})
    assert desk.journal.keep({"device": "cuda"})
    desk.crash()
    desk.path.unlink()  # the journal has all of the network
    (found,) = unfinished(desk.folder)
    assert found.graph == desk.graph
    assert (found.path, found.disk, found.findings) == (tmp_path / "net.xml", "gone", ())
    assert found.settings == {"threads": 3, "device": "cuda"}
    found.discard()


def test_what_is_written_after_a_save_has_the_network_of_then(desk):
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    data = write_document(desk.graph)
    desk.path.write_bytes(data)
    desk.journal.saved(desk.path, sha256(data).hexdigest())
    desk.do(lambda g: commands.set_params(g, {"n2": {"features": "17"}}))
    desk.crash()
    desk.path.write_bytes(write_document(chain(2)))
    (found,) = unfinished(desk.folder)
    assert (found.graph, found.disk, found.findings) == (desk.graph, "changed", ())
    found.release()


def test_a_compaction_ends_before_the_next_begins(tmp_path, held, monkeypatch):
    monkeypatch.setattr(journal_module, "COMPACT_BYTES", 500)
    desk = Desk(tmp_path / "journal", chain(), tmp_path / "net.xml")
    for number in range(40):
        desk.do(lambda g, n=number: commands.set_params(g, {"n1": {"features": str(n + 1)}}))
    assert len(held) == 2  # the base and one compaction, which have not begun
    for thread in held[:2]:
        thread.work()
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "77"}}))
    desk.crash()
    (found,) = unfinished(desk.folder)
    assert (found.graph, found.findings) == (desk.graph, ())
    found.release()


@pytest.mark.parametrize("part", ["frames", "template", "layer"])
def test_a_new_network_with_anything_in_it_is_offered(tmp_path, part):
    edit = everything()[part]
    if part == "layer":
        edit = commands.add_layer(Graph(), Layer("a", "relu"))
    desk = Desk(tmp_path / "journal", Graph())
    desk.history.commit(edit)
    desk.crash()
    (found,) = unfinished(desk.folder)
    assert (found.graph, found.disk, found.title) == (desk.graph, "none", "network (never saved)")
    found.release()
    (again,) = unfinished(desk.folder)
    again.discard()
    assert unfinished(desk.folder) == []


@pytest.mark.parametrize(
    "record",
    [
        StateRecord(templates={"a.b": TemplateRecord()}),
        StateRecord(templates={"a": TemplateRecord(layers={"x/y": LayerRecord(type="t", at=(0, 0))})}),
        StateRecord(moved={"a/b": (0, 0)}),
        StateRecord(settings={"profiling_sections": {"a": "true"}}),
        StateRecord(settings={"recipe": {"a": True}}),
        StateRecord(settings={"random_seed": "7"}),
        StateRecord(settings={"threads": "7"}),
        StateRecord(settings={"engine": "No Engine"}),
        StateRecord(settings={"layout": "hwc"}),
    ],
)
def test_an_invalid_record_changes_nothing(record):
    replay = GraphReplay()
    replay.start(chain())
    with pytest.raises(ValueError, match=r"must not contain|not a value of the setting"):
        replay.apply(replace_record(record, properties={"author": "me"}, layers={"n1": None}, frames={"f": None}))
    assert replay.graph() == chain()
    assert replay.settings == {}
    # a base record starts anew, without the settings of the records before
    replay.apply(StateRecord(settings={"threads": 3}))
    replay.base(BaseRecord(base=4, settings={"device": "cuda"}))
    assert replay.settings == {"device": "cuda"}
    assert len(replay.graph()) == 0


def test_records_during_a_compaction_after_a_save_are_kept(tmp_path, held, monkeypatch):
    """The sizes of a journal that a save has ended do not count for the next one."""
    monkeypatch.setattr(journal_module, "COMPACT_BYTES", 1500)
    desk = Desk(tmp_path / "journal", chain(), tmp_path / "net.xml")
    for version in range(3):
        began = len(held)
        number = 0
        while len(held) < began + 2:  # the base, then a compaction that has not begun
            number += 1
            desk.do(lambda g, n=number, v=version: commands.set_params(g, {"n1": {"features": str(1000 * v + n)}}))
        assert number > 5
        desk.do(lambda g, v=version: commands.set_params(g, {"n2": {"features": str(500 + v)}}))
        for thread in held[began : began + 2]:
            thread.work()
        desk.do(lambda g, v=version: commands.set_params(g, {"n3": {"features": str(700 + v)}}))
        if version < 2:
            data = write_document(desk.graph)
            desk.path.write_bytes(data)
            desk.journal.saved(desk.path, sha256(data).hexdigest())
    desk.crash()
    (found,) = unfinished(desk.folder)
    assert (found.graph, found.findings) == (desk.graph, ())
    found.release()


REMEDY = "save often, and make that folder writable or free some space; recording resumes after saving"


def failing(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_journal_that_cannot_be_kept_says_so_and_keeps_nothing_until_the_next_save(desk, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(journal_module.os, "fsync", failing)
        assert not desk.journal.keep({"threads": 3})
    (found,) = desk.failures
    assert (found.code, found.file, found.severity.value, found.remedy) == (
        "no-journal",
        str(desk.folder),
        "warning",
        REMEDY,
    )
    assert found.message == f"changes are not recorded for recovery: {desk.folder}: No space left on device"
    assert not desk.journal.keep()
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    assert len(desk.failures) == 1
    desk.journal.saved(desk.path, "")
    assert desk.journal.keep()
    desk.crash()


def test_a_record_that_a_thread_cannot_write_is_reported(tmp_path, held, monkeypatch):
    desk = Desk(tmp_path / "journal", chain(), tmp_path / "net.xml")
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    (thread,) = held
    with monkeypatch.context() as patch:
        patch.setattr(journal_module.os, "write", failing)
        thread.work()
    assert [found.code for found in desk.failures] == ["no-journal"]
    desk.crash()
    (left,) = unfinished(desk.folder)
    assert left.graph == desk.graph  # from the file and the change
    left.release()


def test_a_disk_that_does_not_flush_leaves_the_journal_unsynced(tmp_path, held, monkeypatch):
    desk = Desk(tmp_path / "journal", chain(), tmp_path / "net.xml")
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    held[0].work()
    assert desk.journal.synced
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "17"}}))
    desk.journal.sync()
    with monkeypatch.context() as patch:
        patch.setattr(journal_module.os, "fsync", failing)
        held[-1].work()
    assert not desk.journal.synced
    assert desk.failures == []
    desk.journal.sync()
    held[-1].work()
    assert desk.journal.synced
    count = len(held)
    desk.journal.sync()
    assert len(held) == count, "nothing is new"
    desk.crash()


@pytest.mark.parametrize("refused", ["replace", "fsync"])
def test_a_journal_that_cannot_be_replaced_goes_on_and_is_tried_again_when_it_has_grown(
    tmp_path, held, monkeypatch, refused
):
    monkeypatch.setattr(journal_module, "COMPACT_BYTES", 1500)
    desk = Desk(tmp_path / "journal", chain(), tmp_path / "net.xml")
    number = 0

    def grow(threads: int) -> None:
        nonlocal number
        while len(held) < threads:
            number += 1
            desk.do(lambda g, n=number: commands.set_params(g, {"n1": {"features": str(n)}}))

    grow(2)
    held[0].work()
    size = desk.journal.file.stat().st_size
    with monkeypatch.context() as patch:
        patch.setattr(journal_module.os, refused, failing)
        held[1].work()
    assert [f.suffix for f in files(desk.folder)] == [ENDING]
    assert desk.journal.file.stat().st_size == size
    grow(3)
    longer = desk.journal.file.stat().st_size
    assert longer > size + 1500
    held[2].work()
    assert desk.journal.file.stat().st_size < longer - 1500
    assert desk.failures == []
    desk.crash()
    (found,) = unfinished(desk.folder)
    assert (found.graph, found.findings) == (desk.graph, ())
    found.release()


def test_a_compaction_of_a_saved_journal_leaves_nothing(tmp_path, held, monkeypatch):
    monkeypatch.setattr(journal_module, "COMPACT_BYTES", 1500)
    desk = Desk(tmp_path / "journal", chain(), tmp_path / "net.xml")
    number = 0
    while len(held) < 2:
        number += 1
        desk.do(lambda g, n=number: commands.set_params(g, {"n1": {"features": str(n)}}))
    desk.journal.saved(desk.path, "")
    for thread in held:
        thread.work()
    assert files(desk.folder) == []


def test_a_file_that_cannot_be_locked_is_reported(desk, monkeypatch):
    monkeypatch.setattr(journal_module, "lock", lambda stream: False)
    desk.do(lambda g: commands.set_params(g, {"n1": {"features": "16"}}))
    (found,) = desk.failures
    assert found.message == f"changes are not recorded for recovery: {desk.folder}: the file cannot be locked"
    desk.crash()


def test_the_header_says_what_was_opened_and_by_whom(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module.time, "time", lambda: 1234.567)
    for graph, path in ((chain(), tmp_path / "net.xml"), (Graph(), None)):
        desk = Desk(tmp_path / "journal", graph, path)
        desk.do(lambda g: commands.add_layer(g, Layer("new", "identity")))
        header = read_line(next(lines(desk.journal.file.read_bytes())))
        digest = sha256(path.read_bytes()).hexdigest() if path is not None else ""
        assert (header.path, header.name, header.digest) == (str(path) if path else None, "network", digest)
        assert (header.empty, header.opened, header.pid, header.format) == (path is None, 1234.57, os.getpid(), 1)
        assert desk.journal.file.stat().st_mode & 0o777 == 0o600
        assert desk.folder.stat().st_mode & 0o777 == 0o700
        desk.crash()
