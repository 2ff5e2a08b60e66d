"""The watch over the files of tabs, alone: which files it watches, and the bar after any change of the shown tab."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("PySide6")
pytestmark = pytest.mark.gui

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QToolButton, QWidget
from pytestqt.qtbot import QtBot

from app.ui.document.locations import sample_files
from app.ui.shell import disk_watch as module
from app.ui.shell.disk_watch import DiskWatch
from designer.files.settings import Settings
from designer.graph.graph import Graph
from designer.graph.model import Layer


class Opened:
    """A document in a tab. `document` is itself."""

    def __init__(self, path: Path | None, disk: str = "same", clean: bool = True) -> None:
        self.document = self
        self.path, self.disk, self.is_clean = path, disk, clean
        self.asked: list[str] = []

    def check_disk(self) -> None:
        self.asked.append("check")

    def accept_disk(self) -> None:
        self.asked.append("accept")
        self.disk = "same"

    def keep_unsaved(self) -> None:
        self.asked.append("unsaved")


class World(QObject):
    """Everything around the watch."""

    changed = Signal()
    root_changed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.all: list[Opened] = []
        self.shown: Opened | None = None
        self.root: object = None
        self.did: list[object] = []

    def show(self, opened: Opened | None, *, current: bool = True) -> None:
        self.all = [opened] if opened is not None else []
        self.shown, self.root = opened, opened if current else object()

    def save_to(self, path: Path) -> None:
        self.did.append(path)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def watch(qtbot: QtBot, world: World) -> DiskWatch:
    window = QWidget()
    qtbot.addWidget(window)
    made = DiskWatch(window, world, world, world, lambda: world.did.append("compare"))  # type: ignore[arg-type]
    made.bar.setParent(window)
    window.keep = made  # as long as the test
    world.window = window
    yield made
    made.end()


KEEP = ("keep", "&Keep Open", "Keep the network open as unsaved")
CHANGED = (
    ("reload", "&Reload", "Load the file. Undo restores your version"),
    ("keep", "&Keep Mine", "Keep the open version. Saving will replace the file"),
    ("compare", "&Compare", "Show the differences"),
)
GONE = (("save", "&Save Again", "Write the file to its previous location"), KEEP)


def wanted(name: str, disk: str, clean: bool, current: bool) -> tuple[str, tuple[tuple[str, str, str], ...]] | None:
    """The text and the buttons of the bar."""
    if disk == "same" or not current:
        return None
    if disk == "gone":
        return f"“{name}” was moved or deleted. The network is still open in this window.", GONE
    return f"“{name}” was changed by another program{'' if clean else ', and you have unsaved changes'}.", CHANGED


def shown(watch: DiskWatch) -> tuple[str, tuple[tuple[str, str, str], ...]] | None:
    if watch.bar.isHidden():
        return None
    buttons = [button for button in watch.bar.findChildren(QToolButton) if not button.isHidden()]
    return watch.bar.text(), tuple((b.objectName().removeprefix("disk."), b.text(), b.toolTip()) for b in buttons)


CASES = [
    (name, disk, clean, current)
    for name, disk, clean, current in (
        ("a.xml", "same", True, True),
        ("a.xml", "changed", True, True),
        ("b.xml", "changed", False, True),
        ("b.xml", "gone", True, True),
        ("c.xml", "gone", False, True),
        ("c.xml", "changed", True, False),
        ("", "same", False, True),
    )
]


@pytest.mark.parametrize("signal", ["changed", "root_changed"])
def test_the_bar_is_that_of_the_shown_tab_after_any_other_one(watch: DiskWatch, world: World, signal: str) -> None:
    tell = world.changed.emit if signal == "changed" else lambda: world.root_changed.emit(None)
    for first, second in permutations(CASES, 2):
        for name, disk, clean, current in (first, second):
            world.show(Opened(Path("/none") / name if name else None, disk, clean), current=current)
            tell()
            assert shown(watch) == wanted(name, disk, clean, current), (first, second)
    world.show(None)
    tell()
    assert shown(watch) is None


def test_the_bar_follows_the_states_of_one_tab(watch: DiskWatch, world: World) -> None:
    opened = Opened(Path("/none/a.xml"))
    world.show(opened)
    for disk in ("same", "changed", "gone", "changed", "same", "gone", "same", "changed"):
        opened.disk = disk
        world.changed.emit()
        assert shown(watch) == wanted("a.xml", disk, True, True), disk
    kept = watch.bar.findChildren(QToolButton)
    world.changed.emit()
    assert watch.bar.findChildren(QToolButton) == kept, "a bar that stays keeps its buttons and the focus in them"


@pytest.mark.parametrize("disk", ["changed", "gone"])
def test_what_the_buttons_do(watch: DiskWatch, world: World, disk: str) -> None:
    opened = Opened(Path("/none/a.xml"), disk)
    world.show(opened)
    world.changed.emit()
    name = "compare" if disk == "changed" else "save"
    watch.bar.findChild(QToolButton, f"disk.{name}").click()
    assert world.did == (["compare"] if disk == "changed" else [opened.path])
    assert opened.asked == []
    watch.bar.findChild(QToolButton, "disk.keep").click()
    assert opened.asked == ["accept", "unsaved"]
    assert shown(watch) is None
    opened.disk = disk  # once more
    world.changed.emit()
    assert shown(watch) == wanted("a.xml", disk, True, True)


def test_nothing_is_done_without_a_tab_or_a_file(watch: DiskWatch, world: World) -> None:
    for opened in (None, Opened(None)):
        world.show(opened)
        watch.save_again()
        assert not watch.reload()
        assert world.did == []
    world.show(None)
    watch.keep_mine()


def test_files_of_tabs_and_their_folders_are_watched_and_no_others(
    watch: DiskWatch, world: World, tmp_path: Path
) -> None:
    """Those that exist and are no samples, after any change of the tabs; a file that comes back is watched again."""
    folders = [tmp_path / name for name in ("one", "two")]
    files = [folder / name for folder in folders for name in ("a.xml", "b.xml")]
    for folder in folders:
        folder.mkdir()
    for file in files:
        file.write_text("x")
    sample = sample_files()[0]

    def check(*paths: Path | None) -> None:
        world.all = [Opened(path) for path in paths]
        world.changed.emit()
        look(*paths)

    def look(*paths: Path | None) -> None:
        own = [path for path in paths if path is not None and path != sample]
        assert sorted(watch._watcher.files()) == sorted({str(path) for path in own if path.exists()})
        assert sorted(watch._watcher.directories()) == sorted({str(p.parent) for p in own if p.parent.exists()})

    check(files[0])
    check(*files)
    check(None, sample)
    check(files[1], files[1], None, sample)
    check(files[2], files[3])
    files[3].unlink()
    check(files[2], files[3])
    files[3].write_text("again")
    watch.check()
    look(files[2], files[3])
    assert [opened.asked for opened in world.all] == [["check"]] * 2
    check(tmp_path / "gone" / "c.xml", files[0])
    check(files[0])
    watch.end()
    assert watch._watcher.files() == watch._watcher.directories() == []
    watch.check()
    assert [opened.asked for opened in world.all] == [[]]


def test_the_files_are_looked_at_once_a_moment_after_the_first_notice(watch: DiskWatch, world: World) -> None:
    watch._watcher.fileChanged.emit("/none/a.xml")
    rest = watch._rest
    assert rest.isActive()
    assert rest.isSingleShot()
    assert rest.interval() == 150
    number = rest.timerId()
    watch._watcher.directoryChanged.emit("/none")
    assert rest.timerId() == number, "a folder that is written all the time does not put it off"
    world.all = [Opened(Path("/none/a.xml"))]
    rest.timeout.emit()
    assert world.all[0].asked == ["check"]
    watch.end()
    assert not rest.isActive()


# --- loading the file ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["edit", "settings alone", "anew", "anew after a question", "stays", "unreadable"])
def test_reloading_takes_the_network_the_settings_and_the_findings_of_the_file(
    watch: DiskWatch, world: World, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """As a step, or in a new document if no step can make it, which is asked about if there are unsaved changes."""
    path, did = Path("/none/a.xml"), []
    layers = [Layer("in", "input", params={"dims": "8x8x3"})]
    before, after = Graph(layers), Graph([*layers, Layer("more", "identity")])
    graph = {"settings alone": before.copy(), "unreadable": None}.get(case, after)
    old = Settings(random_seed=1, input_files={"in": "one.png", "gone": "two.png"})
    new = Settings(random_seed=2, input_files={"in": "one.png", "other": "three.png"})
    opened = Opened(path, "changed", clean=case == "anew")
    opened.graph, opened.settings, opened.reading = before, old, ("of before",)
    opened.do = did.append
    opened.show_findings = lambda findings: setattr(opened, "reading", findings)
    opened.took_over = lambda digest: (did.append(digest), setattr(opened, "disk", "same"))
    found = SimpleNamespace(graph=graph, diagnostics=("of the file",), digest="digest")
    monkeypatch.setattr(module, "read_document", lambda asked: found if asked == path else None)
    monkeypatch.setattr(module, "stored_settings", lambda asked: (new, ("of settings",)))
    monkeypatch.setattr(module, "show_findings", lambda *what: did.append(what))
    monkeypatch.setattr(module, "ask_discard", lambda name, window: (did.append(name), case != "stays")[1])
    if case in ("anew", "anew after a question", "stays"):
        monkeypatch.setattr(module, "edit_between", lambda *what: None)
    world.message = SimpleNamespace(emit=lambda *what: did.append(what))
    world.read = lambda asked: f"read {asked}"
    world.replace = lambda *what: did.append(what)
    world.show(opened)
    world.changed.emit()
    watch.bar.findChild(QToolButton, "disk.reload").click()
    said = ("info", "Reloaded a.xml")
    if case == "unreadable":
        text = "a.xml could not be read. The open network is unchanged."
        assert did == [("Not Reloaded", text, ("of the file",), world.window)]
    elif case in ("edit", "settings alone"):
        edit, *rest = did
        assert rest == ["digest", said]
        assert edit.title == "Reload a.xml"
        assert dict(edit.settings) == {"random_seed": (1, 2)}, (
            "files of layers that are not in the network do not count"
        )
        assert opened.reading == ("of the file", "of settings")
        assert set(edit.layers) == ({"more"} if case == "edit" else set())
        assert shown(watch) is None
    else:
        question = [] if case == "anew" else ["a.xml"]
        assert did == (question if case == "stays" else [*question, (opened, f"read {path}"), said])
    if case in ("unreadable", "stays"):
        assert opened.reading == ("of before",)
        assert shown(watch) is not None
