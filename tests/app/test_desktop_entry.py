"""`layerwright desktop-entry`: files that a Linux desktop reads, written to and removed from the user's data folder."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from app.cli import main as cli
from designer.files.document import DOCUMENTS
from designer.files.reader import ROOT

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="desktop entries are for Linux")
MIME = "{http://www.freedesktop.org/standards/shared-mime-info}"
DesktopEntry = Callable[..., tuple[int, str]]


@pytest.fixture
def share() -> Path:
    return Path(os.environ["XDG_DATA_HOME"])


@pytest.fixture
def desktop_entry(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> DesktopEntry:
    def run(*options: str, script: Path | str = "layerwright") -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", [str(script), "desktop-entry", *options])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out + captured.err

    return run


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("layerwright*")}


def entry_of(share: Path) -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(share / "applications" / "layerwright.desktop", "utf-8")
    return dict(parser["Desktop Entry"])


def arguments(value: str) -> list[str]:
    """The value of Exec taken apart, as a desktop does before it starts a program."""
    value = value.replace("\\\\", "\\")
    found = []
    for match in re.finditer(r'"((?:[^"\\]|\\.)*)"|(\S+)', value):
        quoted, plain = match.groups()
        text = plain if quoted is None else re.sub(r'\\(["`$\\])', r"\1", quoted)
        found.append(text if text == "%F" else re.sub("%(.)", lambda code: {"%": "%"}[code[1]], text))
    return found


def test_installing_writes_an_entry_an_icon_and_a_file_type(desktop_entry: DesktopEntry, share: Path) -> None:
    code, said = desktop_entry("--install")
    assert code == 0
    written = {
        "applications/layerwright.desktop",
        "icons/hicolor/scalable/apps/layerwright.svg",
        "mime/packages/layerwright.xml",
    }
    assert written <= files(share)
    assert all(f"wrote {share / name}" in said for name in written)

    entry = entry_of(share)
    assert {"Type", "Name", "Exec", "Icon", "Terminal", "Categories", "MimeType"} <= entry.keys()
    program, *_, last = arguments(entry["Exec"])
    assert (program, last) == (sys.executable, "%F")
    assert ElementTree.parse(share / "icons/hicolor/scalable/apps/layerwright.svg").getroot().tag.endswith("svg")

    (kind,) = ElementTree.parse(share / "mime/packages/layerwright.xml").getroot()
    assert entry["MimeType"] == f"{kind.attrib['type']};"
    suffixes = {suffix for known in DOCUMENTS for suffix in known.suffixes}
    assert {glob.attrib["pattern"] for glob in kind.iter(f"{MIME}glob")} == {f"*{s}" for s in suffixes - {".xml"}}
    assert [root.attrib["localName"] for root in kind.iter(f"{MIME}root-XML")] == [ROOT]
    if shutil.which("update-mime-database"):
        assert f"{kind.attrib['type']}\n" in (share / "mime" / "types").read_text()


@pytest.mark.parametrize("folder", ["bin", "my tools", "50% of $HOME", 'a "quoted" \\ one'])
def test_the_entry_starts_the_script_that_wrote_it(
    desktop_entry: DesktopEntry, share: Path, tmp_path: Path, folder: str
) -> None:
    script = tmp_path / folder / "layerwright"
    script.parent.mkdir()
    script.touch()
    assert desktop_entry("--install", script=script)[0] == 0
    assert arguments(entry_of(share)["Exec"]) == [str(script), "%F"]


def test_uninstalling_removes_what_was_installed(desktop_entry: DesktopEntry, share: Path) -> None:
    desktop_entry("--install")
    code, said = desktop_entry("--uninstall")
    assert code == 0
    assert said.count("removed ") == 3
    assert not files(share)
    assert "removed" not in desktop_entry("--uninstall")[1]


def test_missing_tools_are_named(desktop_entry: DesktopEntry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, said = desktop_entry("--install")
    assert code == 0
    assert "update-mime-database is not installed" in said
    assert "update-desktop-database is not installed" in said


def test_other_systems_are_refused(desktop_entry: DesktopEntry, monkeypatch: pytest.MonkeyPatch, share: Path) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    code, said = desktop_entry("--install")
    assert code == 1
    assert "no-desktop-entry" in said
    assert not share.exists()


def test_one_of_the_two_must_be_said(desktop_entry: DesktopEntry) -> None:
    code, said = desktop_entry()
    assert code == 2
    assert "--install" in said
