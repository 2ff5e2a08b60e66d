"""How plugins are found and loaded: modules, entry points and files, in order; a broken one never stops the others."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from designer import plugins
from designer.graph.diagnostics import Severity


def test_modules_of_a_package_and_its_packages_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "walked_package"
    for name in ("zebra.py", "apple.py", "inner/__init__.py", "inner/deep.py", "__init__.py"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"NAME = {name!r}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = [module.__name__ for module in plugins.walk("walked_package")]
    assert found == [
        "walked_package", "walked_package.apple", "walked_package.inner", "walked_package.inner.deep", "walked_package.zebra"
    ]  # fmt: skip
    for name in found:
        sys.modules.pop(name)


def test_entry_points_in_the_order_of_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [SimpleNamespace(name=n, value=f"package.{n}:it", load=lambda n=n: n.upper()) for n in "cab"]
    asked = []
    monkeypatch.setattr(plugins.metadata, "entry_points", lambda group: asked.append(group) or points)
    found = list(plugins.entry_points("some.group"))
    assert [(where, load()) for where, load in found] == [
        ("package.a:it", "A"), ("package.b:it", "B"), ("package.c:it", "C")
    ]  # fmt: skip
    assert asked == ["some.group"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "plugins"
    (made / "inside").mkdir(parents=True)
    for name in ("b", "a", "c"):
        (made / f"{name}_plugin_file.py").write_text(f"NAME = {name!r}\nCOUNT = []\n")
    (made / "inside" / "deep_plugin_file.py").write_text("NAME = 'deep'\n")
    (made / "notes.txt").write_text("no plugin")
    yield made
    for name in [name for name in sys.modules if name.startswith("layerwright_plugin_")]:
        if name.endswith("_plugin_file"):
            del sys.modules[name]


def test_files_of_folders_in_order_and_imported_once(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a_plugin_file.py").write_text("NAME = 'another'\n")
    found = list(plugins.plugin_files([folder, tmp_path / "missing", other]))
    expected = [folder / f"{name}_plugin_file.py" for name in "abc"] + [other / "a_plugin_file.py"]
    assert [where for where, _ in found] == [str(path) for path in expected]
    modules = [load() for _, load in found]
    assert [module.NAME for module in modules] == ["a", "b", "c", "another"]
    assert modules[1] is found[1][1]()  # for operators and engines
    assert modules[1].__name__ == "layerwright_plugin_b_plugin_file"
    assert next(iter(plugins.plugin_files([folder])))[1]().NAME == "a"  # that of its own folder again


def test_a_file_that_fails_is_run_again_the_next_time(folder: Path) -> None:
    path = folder / "a_plugin_file.py"
    for error in ("ValueError('broken')", "SystemExit(3)", "KeyboardInterrupt()"):
        path.write_text(f"raise {error}\n")
        _, load = next(iter(plugins.plugin_files([folder])))
        with pytest.raises(BaseException, match=r"broken|3|^$"):
            load()
        assert "layerwright_plugin_a_plugin_file" not in sys.modules
    path.write_text("NAME = 'mended and longer'\n")
    assert load().NAME == "mended and longer"


def test_every_plugin_is_loaded_whatever_the_others_do() -> None:
    def raises(error: BaseException):
        def load() -> object:
            raise error

        return load

    def refuses(loaded: object) -> None:
        if loaded == "refused":
            raise TypeError("not an operator")
        taken.append(loaded)

    taken: list[object] = []
    found = plugins.load_each(
        [
            ("one", lambda: 1), ("bad", raises(ValueError("broken"))), ("exits", raises(SystemExit(2))),
            ("two", lambda: 2), ("refused", lambda: "refused"), ("three", lambda: 3),
        ],
        refuses,
    )  # fmt: skip
    assert taken == [1, 2, 3]
    assert [(d.code, d.severity, d.message, d.remedy) for d in found] == [
        ("broken-plugin", Severity.WARNING, f"the plugin {where} could not be loaded: {what}", "fix or remove it, then restart")
        for where, what in (("bad", "ValueError: broken"), ("exits", "SystemExit: 2"), ("refused", "TypeError: not an operator"))
    ]  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        plugins.load_each([("asked", raises(KeyboardInterrupt()))], refuses)


def test_the_folder_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    platformdirs = pytest.importorskip("platformdirs")
    assert plugins.plugin_folder() == platformdirs.user_data_path("layerwright") / "plugins"
    monkeypatch.setitem(sys.modules, "platformdirs", None)  # it is not installed
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert plugins.plugin_folder() == tmp_path / "layerwright" / "plugins"
    monkeypatch.setenv("XDG_DATA_HOME", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert plugins.plugin_folder() == tmp_path / "home" / ".local" / "share" / "layerwright" / "plugins"


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_who_may_change_a_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modes of the file, its folder and the folder around it, and whether it is run."""
    around, folder = tmp_path / "around", tmp_path / "around" / "plugins"
    folder.mkdir(parents=True)
    path = folder / "mode_plugin_file.py"
    path.write_text("NAME = 'mode'\n")

    def reasons() -> list[str]:
        return list(plugins._exposed(path))

    modes = {path: 0o644, folder: 0o755, around: 0o755}
    cases = [
        ({}, None),
        ({path: 0o666}, path),
        ({path: 0o664, folder: 0o775, around: 0o775}, None),  # of the group
        ({folder: 0o777}, folder),
        ({folder: 0o1777}, folder),  # anybody could add the file
        ({around: 0o777}, around),
        ({around: 0o1777}, None),  # as /tmp: only its owner replaces the folder
    ]
    for changes, place in cases:
        for each, mode in (modes | changes).items():
            each.chmod(mode)
        expected = [] if place is None else [f"every user can write to {place}; remove that permission: chmod o-w"]
        assert reasons() == expected, changes
        ((_, load),) = plugins.plugin_files([folder])
        if place is None:
            assert load().NAME == "mode"
        else:
            with pytest.raises(PermissionError, match="every user can write"):
                load()
    sys.modules.pop("layerwright_plugin_mode_plugin_file", None)
