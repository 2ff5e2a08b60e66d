"""What is recovered from journals of known records: the network, its file, times, settings and what is reported."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from designer.files import recovery
from designer.files.document import write_document
from designer.files.journal import ENDING
from designer.files.journal_format import checked
from designer.files.recovery import Unfinished, unfinished
from designer.files.settings import Settings, save_settings, settings_path
from designer.graph.graph import Graph
from designer.graph.model import Frame, Layer

MODIFIED = 5000.0  # seconds since 1970, of each journal
IN_FILE = Graph([Layer("in_file", "identity")], name="n")
DATA = write_document(IN_FILE)
DIGEST = sha256(DATA).hexdigest()
DAMAGED = "damaged records in the journal: {}; some changes may be missing"
CURRENT = "the journal does not contain the network that was opened; its changes are applied to the current file"
CHANGED_ONLY = "the journal does not contain the network that was opened; only changed layers were recovered"
COMPARE, REVIEW = "compare it with the file before you save it", "review the network before you save it"


def head(**changed: Any) -> dict[str, Any]:
    return {
        "layerwright-journal": 1,
        "path": "{folder}/net.xml",
        "name": "n",
        "digest": DIGEST,
        "opened": 1000.0,
        **changed,
    }


def layers(*names: str) -> dict[str, Any]:
    return {"layers": {name: {"type": "identity", "at": [0, 0]} for name in names}}


def change(number: int, *names: str, time: float = 0.0, **rest: Any) -> dict[str, Any]:
    return {"n": number, "time": time, **layers(*names), **rest}


def base(number: int, *names: str, **rest: Any) -> dict[str, Any]:
    return {"base": number, "properties": {"name": "b"}, **layers(*names), **rest}


@dataclass
class Case:
    """Records, and what is recovered from them."""

    records: list[dict[str, Any] | bytes]
    names: list[str] | None
    findings: list[tuple[str, str, str]] = field(default_factory=list)
    document: bytes | None = DATA
    disk: str = "same"
    title: str = "net.xml"
    times: tuple[float, float] = (1000.0, MODIFIED)
    settings: Mapping[str, Any] = field(default_factory=dict)
    saved: Settings | None = None


def torn(text: str) -> tuple[str, str, str]:
    return "journal-damaged", DAMAGED.format(text), COMPARE


NO_BASE, ONLY_CHANGED = ("journal-without-base", CURRENT, REVIEW), ("journal-without-base", CHANGED_ONLY, REVIEW)
CASES = {
    "a change of the file": Case([head(), change(1, "a", time=2000.0)], ["a", "in_file"], times=(1000.0, 2000.0)),
    "changes in order": Case(
        [head(), change(1, "a", time=3000.0), change(2, "b", time=2000.0), change(3, layers={"a": None})],
        ["b", "in_file"],
        times=(1000.0, 2000.0),
    ),
    "times out of range": Case(
        [head(opened=float(1 << 41)), change(1, "a", time=2000.0), change(2, "b", time=float(1 << 41))],
        ["a", "b", "in_file"],
        times=(MODIFIED, 2000.0),
    ),
    "the last time in range": Case(
        [head(opened=float(1 << 40)), change(1, "a", time=float(1 << 40))],
        ["a", "in_file"],
        times=(float(1 << 40), float(1 << 40)),
    ),
    "times before 1970": Case([head(opened=-1.0), change(1, "a", time=-2.0)], ["a", "in_file"], times=(MODIFIED, MODIFIED)),
    "no times": Case([head(opened=0.0), change(1, "a")], ["a", "in_file"], times=(MODIFIED, MODIFIED)),
    "a base and later changes": Case(
        [head(), change(1, "lost"), change(2, "lost too"), base(2, "of_base"), change(3, "a")], ["a", "of_base"]
    ),
    "the newest base of three": Case(
        [head(), base(2, "second"), base(4, "fourth"), base(1, "first"), change(3, "old"), change(5, "new")],
        ["fourth", "new"],
    ),
    "a later base of the same number": Case([head(), base(2, "first"), base(2, "second")], ["second"]),
    "a base alone": Case([head(), base(7, "of_base")], ["of_base"]),
    "an invalid base": Case(
        [head(), base(2, "of/base"), change(1, "a"), change(3, "b")],
        ["a", "b", "in_file"],
        [torn("1 of 3")],
    ),
    "missing changes": Case([head(), change(1, "a"), change(4, "b")], ["a", "b", "in_file"], [torn("2 of 4")]),
    "missing changes after a base": Case(
        [head(), base(5, "of_base"), change(5, "old"), change(8, "b")], ["b", "of_base"], [torn("2 of 3")]
    ),
    "damaged lines": Case(
        [head(), change(1, "a"), b"damaged\n", b"00000000 {}\n", change(2, "b")],
        ["a", "b", "in_file"],
        [torn("2 of 2")],
    ),
    "fewer damaged lines than missing changes": Case(
        [head(), b"damaged\n", change(4, "b")], ["b", "in_file"], [torn("3 of 4")]
    ),
    "a change that cannot be applied": Case(
        [head(), change(1, "a/b"), change(2, "b")], ["b", "in_file"], [torn("1 of 2")]
    ),
    "a change that was interrupted": Case([head(), change(1, "a"), b'12345678 {"n": 2'], ["a", "in_file"]),
    "the same change twice": Case([head(), change(1, "a"), change(1, "b")], ["a", "b", "in_file"]),
    "an unknown record": Case([head(), {"other": 1}, change(1, "a")], ["a", "in_file"], [torn("1 of 1")]),
    "a second header": Case(
        [head(), head(path="/other", name="o", digest="", opened=3.0), change(1, "a")], ["a", "in_file"], [torn("1 of 1")]
    ),
    "a header of another version": Case(
        [head() | {"layerwright-journal": 2}, change(1, "a")],
        ["a"],
        [torn("1 of 1"), ONLY_CHANGED],
        None,
        "none",
        "network (never saved)",
        (MODIFIED, MODIFIED),
    ),
    "no header": Case(
        [change(1, "a", time=2000.0)],
        ["a"],
        [ONLY_CHANGED],
        None,
        "none",
        "network (never saved)",
        (MODIFIED, 2000.0),
    ),
    "a document that was never saved": Case(
        [head(path=None, name="My net", digest="", empty=True), change(1, "a")],
        ["a"],
        document=None,
        disk="none",
        title="My net (never saved)",
    ),
    "an import that was never saved": Case(
        [head(path=None, digest=""), change(1, "a")], ["a"], [ONLY_CHANGED], None, "none", "n (never saved)"
    ),
    "a document without a name": Case(
        [head(path=None, name="", digest="", empty=True), change(1, "a")],
        ["a"],
        document=None,
        disk="none",
        title="network (never saved)",
    ),
    "a changed file": Case([head(digest="0" * 64), change(1, "a")], ["a", "in_file"], [NO_BASE], disk="changed"),
    "a changed file and a base": Case([head(digest="0" * 64), base(0, "of_base")], ["of_base"], disk="changed"),
    "an empty file that another program made": Case(
        [head(), change(1, "a")], ["a"], [ONLY_CHANGED], b"", "changed"
    ),
    "a deleted file": Case([head(), change(1, "a")], ["a"], [ONLY_CHANGED], None, "gone"),
    "a deleted file and a base": Case([head(), base(0, "of_base"), change(1, "a")], ["a", "of_base"], [], None, "gone"),
    "frames alone": Case(
        [head(), change(1, frames={"f": ["t", "", "", [0, 0, 1, 1]]})], [], [ONLY_CHANGED], None, "gone"
    ),
    "frames of a base alone": Case(
        [head(), base(0, frames={"f": ["t", "", "", [0, 0, 1, 1]]})], [], [], None, "gone"
    ),
    "templates of a base alone": Case([head(), base(0, templates={"t": {}})], [], [], None, "gone"),
    "an empty base": Case([head(), base(0)], None, [], None, "gone"),
    "nothing but damage": Case(
        [head(), b"damaged\n"], None, [torn("1 of 1"), ONLY_CHANGED], None, "gone"
    ),
    "a layer that was removed": Case([head(), change(1, layers={"a": None})], [], [ONLY_CHANGED], None, "gone"),
    "settings alone": Case(
        [head(), change(1, settings={"threads": 3, "precision": "fp32"})], ["in_file"], settings={"threads": 3}
    ),
    "settings that differ from the saved ones": Case(
        [head(), change(1, settings={"threads": 3, "precision": "fp32", "device": "cuda"})],
        ["in_file"],
        settings={"precision": "fp32", "device": "cuda"},
        saved=Settings(threads=3, precision="bf16"),
    ),
    "settings of a document that was never saved": Case(
        [head(path=None, digest="", empty=True), change(1, settings={"tile": 0, "weights": ""})],
        [],
        document=None,
        disk="none",
        title="n (never saved)",
        settings={"tile": 0},
    ),
    "settings in a base": Case([head(), base(3, "of_base", settings={"threads": 4})], ["of_base"], settings={"threads": 4}),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "journal").mkdir()
    return tmp_path / "journal"


def journal(folder: Path, records: list[dict[str, Any] | bytes], name: str = "j") -> Path:
    file = folder / f"{name}{ENDING}"
    made: list[bytes] = []
    for record in records:
        if isinstance(record, dict) and record.get("path"):
            record = record | {"path": record["path"].format(folder=folder.parent)}
        made.append(record if isinstance(record, bytes) else checked(json.dumps(record).encode()))
    file.write_bytes(b"".join(made))
    os.utime(file, (MODIFIED, MODIFIED))
    return file


@pytest.fixture
def found(folder: Path) -> Iterator[list[Unfinished]]:
    opened: list[Unfinished] = []
    yield opened
    for item in opened:
        item.release()


@pytest.mark.parametrize("name", CASES)
def test_all_of_a_journal_is_recovered(name: str, folder: Path, found: list[Unfinished]) -> None:
    case = CASES[name]
    document = folder.parent / "net.xml"
    if case.document is not None:
        document.write_bytes(case.document)
    if case.saved is not None:
        save_settings(case.saved, settings_path(document))
    file = journal(folder, case.records)
    found += unfinished(folder)
    [item] = found
    assert item.journal == file
    assert item.path == (None if case.disk == "none" else document)
    assert item.title == case.title
    assert (sorted(item.graph.layers) if item.graph is not None else None) == (
        None if case.names is None else sorted(case.names)
    )
    assert (item.disk, item.on_disk) == (case.disk, IN_FILE if case.document == DATA else None)
    assert (item.opened, item.changed) == case.times
    assert item.settings == case.settings
    reported = [(each.code, each.message, each.remedy) for each in item.findings]
    assert sorted(reported) == sorted(case.findings)
    assert all(each.severity.value == "warning" for each in item.findings)
    header = case.records[0]
    version = header.get("layerwright-journal") if isinstance(header, dict) else None
    assert item.digest == (header["digest"] if version == 1 and isinstance(header, dict) else "")


@pytest.mark.parametrize(
    ("records", "document"),
    [
        ([head()], DATA),
        ([head(), change(1, settings={"threads": 0})], DATA),
        ([head(), change(1, "in_file")], DATA),
        ([head(path=None, digest="", empty=True)], None),
        ([head(path=None, digest="", empty=True), change(1, properties={"name": "other"})], None),
        ([head(path=None, digest="", empty=True), change(1, "a"), change(2, layers={"a": None})], None),
    ],
)
def test_a_journal_without_changes_is_removed(records: list[Any], document: bytes | None, folder: Path) -> None:
    if document is not None:
        (folder.parent / "net.xml").write_bytes(document)
    file = journal(folder, records)
    assert unfinished(folder) == []
    assert not file.exists()


@pytest.mark.parametrize(
    ("records", "document"),
    [
        ([head(), b"damaged\n"], DATA),
        ([head(digest="0" * 64)], DATA),
        ([head(), change(1, "in_file", settings={"threads": 1})], DATA),
        ([head(), change(1, "in_file")], None),
    ],
)
def test_a_journal_with_findings_settings_or_a_lost_file_is_offered(
    records: list[Any], document: bytes | None, folder: Path, found: list[Unfinished]
) -> None:
    if document is not None:
        (folder.parent / "net.xml").write_bytes(document)
    file = journal(folder, records)
    found += unfinished(folder)
    assert len(found) == 1
    assert file.exists()


def test_too_large_a_journal_is_offered_without_its_changes(
    folder: Path, found: list[Unfinished], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = journal(folder, [head(path=None, name="big", digest="", empty=True), change(1, "a")])
    size = file.stat().st_size
    assert recovery.MAX_BYTES == 2**29
    monkeypatch.setattr(recovery, "MAX_BYTES", size)
    found += unfinished(folder)
    assert [list(item.graph.layers) for item in found if item.graph is not None] == [["a"]]
    found.pop().release()
    monkeypatch.setattr(recovery, "MAX_BYTES", size - 1)
    found += unfinished(folder)
    [item] = found
    assert item.graph is None
    assert [(each.code, each.message, each.remedy) for each in item.findings][-1] == (
        "journal-too-large",
        f"j{ENDING} has {size} bytes",
        "discard it",
    )
    item.discard()
    assert not file.exists()


def test_a_journal_in_use_is_offered_once_until_it_is_released(folder: Path) -> None:
    journal(folder, [head(path=None, digest="", empty=True), change(1, "a")])
    [item] = unfinished(folder)
    assert unfinished(folder) == []
    item.release()
    item.release()  # again does nothing
    [again] = unfinished(folder)
    again.discard()
    assert list(folder.iterdir()) == []
    journal(folder, [head(path=None, digest="", empty=True), b"damaged\n", change(1, "a")])
    for _ in range(3):
        [damaged] = unfinished(folder)
        damaged.release()


def test_what_an_interrupted_save_left_next_to_the_document_is_removed(folder: Path, found: list[Unfinished]) -> None:
    left = [place / ".lw-0123456789abcdef.tmp" for place in (folder, folder.parent)]
    for file in left:
        file.write_text("half")
        os.utime(file, (1, 1))
    journal(folder, [head(), change(1, "a")])
    found += unfinished(folder)
    assert [file.exists() for file in left] == [True, False]


def test_the_newest_change_comes_first_whatever_the_name(folder: Path, found: list[Unfinished]) -> None:
    for name, opened, time in (("a", 5.0, 30.0), ("b", 9.0, 10.0), ("c", 1.0, 20.0)):
        journal(
            folder, [head(path=None, name=name, digest="", empty=True, opened=opened), change(1, name, time=time)], name
        )
    found += unfinished(folder)
    assert [item.name for item in found] == ["a", "c", "b"]


def test_an_incomplete_journal_is_kept_for_an_hour(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from designer.files.journal import MAKING

    monkeypatch.setattr("time.time", lambda: 10_000.0)
    names = [f"{age}{ending}" for age in (3599, 3600, 3601) for ending in (MAKING, ENDING)]
    for name in names:
        file = folder / name
        file.touch()
        age = int(name[:4])
        os.utime(file, (10_000 - age, 10_000 - age))
    assert unfinished(folder) == []
    assert sorted(file.name for file in folder.iterdir()) == sorted(n for n in names if not n.startswith("3601"))


def test_no_folder_has_no_journals(folder: Path) -> None:
    assert unfinished(folder / "none") == []
    assert unfinished(folder) == []


def test_all_parts_of_a_base_are_recovered(folder: Path, found: list[Unfinished]) -> None:
    journal(
        folder,
        [
            head(path=None, digest="", empty=True),
            base(
                3,
                "a",
                attributes={"vendor": "1"},
                foreign=["<other />"],
                frames={"f": ["t", "x", "#fff", [1, 2, 3, 4], True, "g"]},
            ),
            change(4, moved={"a": [5, 6]}, properties={"tag": "1"}),
        ],
    )
    found += unfinished(folder)
    graph = found[0].graph
    assert graph is not None
    assert graph["a"].position == (5, 6)
    assert dict(graph.attributes) == {"vendor": "1"}
    assert [each.xml for each in graph.foreign] == ["<other />"]
    assert dict(graph.frames) == {"f": Frame("f", "t", "x", "#fff", (1, 2, 3, 4), True, "g")}
    assert graph.properties == {"name": "b", "tag": "1"}
