"""What is said about a module before its code may run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from designer.importers.pytorch.source_text import MAX_SOURCE, callables, read_source, source_file

SOURCE = """
raise SystemExit("this runs only after consent")
class Net(nn.Module):
    def __init__(self, features=4, *, bias=True): ...
class Sized(nn.Module):
    def __init__(self, features): ...
class Named(nn.Module):
    def __init__(self, *, name): ...
class Last(Net): ...
class Plain: ...
def make(): ...
def sized(features): ...
def _hidden(): ...
"""


def test_only_what_needs_no_arguments_is_offered() -> None:
    assert callables(SOURCE) == ["Last", "Net", "make"]


@pytest.mark.parametrize(
    ("arguments", "offered"),
    [
        ("", True), ("a", False), ("a=1", True), ("a, b=1", False), ("*a", True), ("**a", True), ("*, a", False), ("*, a=1", True),
        ("a, /", False), ("a=1, /, b=2", True), ("a, /, b=2", False), ("*a, b", False), ("a=1, *, b=2, c", False),
    ],
)  # fmt: skip
def test_arguments_without_a_default_are_needed(arguments: str, offered: bool) -> None:
    own = f"self, {arguments}" if not arguments.startswith("/") else arguments
    source = f"def make({arguments}): ...\nclass Net(Module):\n    def __init__({own}): ...\n"
    assert callables(source) == (["Net", "make"] if offered else [])


def test_names_are_offered_in_an_order_that_has_the_whole_network_first() -> None:
    source = (
        "def one(): ...\nclass A(M): ...\nclass B(M): ...\ndef two(): ...\nclass _C(M): ...\nx = 1\nclass D(M): ...\n"
    )
    assert callables(source) == ["D", "B", "A", "one", "two"]
    assert callables("class A(M):\n    class Inner(M): ...\n    def make(): ...\n") == ["A"]


@pytest.mark.parametrize("text", ["class (", "\0", "(" * 10_000, "-" * 100_000 + "1"])
def test_text_that_python_cannot_parse_offers_nothing(text: str) -> None:
    assert callables(text) == []


def test_a_module_is_found_without_importing_its_packages(tmp_path: Path) -> None:
    package = tmp_path / "mypackage" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "models.py").write_text(SOURCE)
    assert source_file("mypackage.inner.models", tmp_path) == package / "models.py"
    assert source_file("mypackage.inner", tmp_path) == package / "__init__.py"
    assert source_file("mypackage/inner/models.py", tmp_path) == package / "models.py"
    assert not any(name.startswith("mypackage") for name in sys.modules)


@pytest.mark.parametrize("place", ["missing", "mypackage.missing", "missing.py", "math"])
def test_what_has_no_source_is_not_found(place: str, tmp_path: Path) -> None:
    assert source_file(place, tmp_path) is None


def test_the_folder_comes_before_what_is_installed(tmp_path: Path) -> None:
    (tmp_path / "pytest.py").write_text("")
    assert source_file("pytest", tmp_path) == tmp_path / "pytest.py"
    assert source_file("json", tmp_path) == Path(__import__("json").__file__)


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long.py"
    path.write_bytes(b"#" * MAX_SOURCE)
    assert len(read_source(path)) == MAX_SOURCE == 4 * 2**20
    path.write_bytes("# \u00e9".encode("latin-1"))
    assert read_source(path) == "# \ufffd"


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "long.py"
    path.write_bytes(b"#" * (MAX_SOURCE + 1))
    assert read_source(path) == ""
    assert read_source(tmp_path / "absent.py") == ""
