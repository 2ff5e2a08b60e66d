"""Collects what a user reads in the window for translators: `python -m app.checks.texts_catalogue FILE.pot [--check]`.

It reads the sources of ROOMS without running them, and imports the tables of actions, menus, panels, columns and operators. A text that it could not
find in a translation is an error: `tr` of something that is not a literal, or values that the text does not contain.
"""

from __future__ import annotations

import ast
import re
import string
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAD = """# Texts of Layerwright's window. Written by `make texts`; do not edit. CONTRIBUTING.md describes how to add a language.
msgid ""
msgstr ""
"Project-Id-Version: layerwright\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"
"""
FORMATS = (  # modules with tables of formats, whose titles dialogs show
    "app.reports.comparison_page",
    "app.reports.page",
    "app.reports.votes",
    "app.ui.canvas.network_image",
    "app.ui.inspector.animation",
    "app.ui.widgets.file_output",
    "designer.files.document",
    "designer.files.tables",
    "designer.files.weight_files",
    "designer.profiling.profile_files",
    "designer.runtime.images",
    "designer.runtime.sources",
    "designer.runtime.video_formats",
    "exporters.onnx",
)
COUNTED = {"tr": 1, "mark": 1, "trn": 2}  # texts at the start of a call
SHOWING = frozenset(  # what Qt shows: words that are written right here have missed the catalogue
    "setText setToolTip setStatusTip setAccessibleName setAccessibleDescription setWindowTitle setPlaceholderText setTitle "
    "setPrefix setSuffix setSpecialValueText setInformativeText addTab addRow addAction addMenu addButton QLabel QAction "
    "QPushButton QCheckBox QRadioButton QGroupBox QToolBar QDockWidget Edit".split()
)
RAISING = frozenset(  # messages of findings and errors, and titles of undo steps
    "Diagnostic ShapeError ParamError CodeError XmlError RecipeError UnknownReachError Edit".split()
)
NAMES = frozenset({"Layerwright"})
ROOMS = ("app/ui", "app/engine", "app/reports", "designer", "exporters", "analysis_layers")


@dataclass
class CatalogueText:
    """One text and the files it occurs in; `plural` if it depends on a count."""

    plural: str = ""
    files: set[str] = field(default_factory=set)


@dataclass
class Catalogue:
    """Texts by their English singular, and what is wrong with the sources."""

    texts: dict[str, CatalogueText] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def add(self, text: str, file: str, plural: str = "") -> None:
        if not text:
            return
        entry = self.texts.setdefault(text, CatalogueText())
        if plural and entry.plural not in ("", plural):
            self.faults.append(f"{file}: {text!r} has two plurals: {entry.plural!r} and {plural!r}")
        entry.plural = entry.plural or plural
        entry.files.add(file)

    def read(self, source: str, file: str) -> None:
        """The texts in one module."""
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Name) and node.func.id in COUNTED:
                self._call(node, node.func.id, file)
            elif name_of(node.func) in SHOWING:
                self._check(node.args, file)
            elif name_of(node.func) in RAISING:
                named = [k.value for k in node.keywords if k.arg in ("message", "remedy")]
                self._check([a for a in (*node.args, *named) if " " in words_in(a)], file)

    def _check(self, arguments: Iterable[ast.expr], file: str) -> None:
        for argument in arguments:
            if (text := words_in(argument)) and text.strip(" -") not in NAMES:
                self.faults.append(f"{file}:{argument.lineno}: {text!r} is shown without tr()")

    def _call(self, node: ast.Call, name: str, file: str) -> None:
        place = f"{file}:{node.lineno}"
        found = [
            a.value for a in node.args[: COUNTED[name]] if isinstance(a, ast.Constant) and isinstance(a.value, str)
        ]
        if len(found) < COUNTED[name]:
            self.faults.append(
                f"{place}: the text in {name}() is not a literal; mark() it in a table and use tr_data()"
            )
            return
        if name != "mark":
            self._compare(found, {k.arg for k in node.keywords if k.arg}, place, counted=name == "trn")
        self.add(found[0], file, found[1] if len(found) > 1 else "")

    def _compare(self, texts: list[str], given: set[str], place: str, *, counted: bool) -> None:
        """Whether every value has its place in a text: a call without values is not filled in."""
        if not given and not counted:
            return
        places = {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name is not None}
        if counted:
            places.discard("count")
        if places != given:
            self.faults.append(f"{place}: places {sorted(places)} in the text, but values for {sorted(given)}")

    def page(self) -> str:
        """A gettext template. It names files without lines, so that it changes with the texts only."""
        parts = [HEAD]
        for text, entry in sorted(self.texts.items()):
            lines = [f"#: {file}" for file in sorted(entry.files)]
            if "{" in text or "{" in entry.plural:
                lines.append("#, python-brace-format")
            lines.append(f"msgid {quoted(text)}")
            if entry.plural:
                lines += [f"msgid_plural {quoted(entry.plural)}", 'msgstr[0] ""', 'msgstr[1] ""']
            else:
                lines.append('msgstr ""')
            parts.append("\n".join(lines) + "\n")
        return "\n".join(parts)


def name_of(function: ast.expr) -> str:
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def words_in(node: ast.expr) -> str:
    """The literal or f-string if it has words; those inside of the values of an f-string do not count, nor HTML."""
    pieces = node.values if isinstance(node, ast.JoinedStr) else [node]
    text = "".join(p.value for p in pieces if isinstance(p, ast.Constant) and isinstance(p.value, str))
    return text if re.search(r"[A-Za-z]{3}", re.sub(r"<[^<>]*>", " ", text)) else ""


def quoted(text: str) -> str:
    """As gettext writes it: one line of the file for every line of the text."""
    lines = [f'"{_escaped(line)}"' for line in text.splitlines(keepends=True)]
    return lines[0] if len(lines) == 1 else "\n".join(['""', *lines])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")


def tables() -> Iterator[tuple[str, str]]:
    """Texts of the tables that stay plain data, with the module; `tr_data` translates them where they are shown."""
    from app.ui.profile.columns import COLUMNS
    from app.ui.shell.menus import MENUS, Entry
    from app.ui.shell.panels import PANELS
    from app.ui.shell.window import GROUPS
    from designer.files.formats import FormatTable
    from designer.profiling.rows import OUTSIDE
    from designer.profiling.schema import UTILIZATION
    from designer.runtime.video_writer import CODECS

    def titles(menus: tuple[Entry, ...]) -> Iterator[str]:
        for entry in menus:
            if isinstance(entry, tuple):
                yield entry[0]
                yield from titles(entry[1])

    for group in GROUPS:
        file = f"{group.owner.__module__.replace('.', '/')}.py"
        for action in group.actions:
            yield from ((file, text) for text in (action.title, action.tip, *(need.reason for need in action.needs)))
    yield from operators()
    yield from (("app/ui/shell/menus.py", title) for title in titles(MENUS))
    yield from (("app/ui/shell/panels.py", panel.title) for panel in PANELS)
    for column in COLUMNS:
        yield from (("app/ui/profile/columns.py", text) for text in (column.header, column.tip))
    for module in map(import_module, FORMATS):
        for table in vars(module).values():
            if isinstance(table, FormatTable):
                yield from (
                    (f"{module.__name__.replace('.', '/')}.py", text)
                    for text in (table.title, *(format.title for format in table.formats))
                )
    yield from (("designer/runtime/video_writer.py", codec.title) for codec in CODECS.values())
    yield from (("designer/profiling/schema.py", text) for text in UTILIZATION.values())
    yield "designer/profiling/rows.py", OUTSIDE


def operators() -> Iterator[tuple[str, str]]:
    """Texts of the library's operators, with their modules."""
    from designer.operators.registry import load

    registry = load((), entry_points=False)
    for operator in (*registry, *registry.activations.values()):
        file = f"{operator.__module__.replace('.', '/')}.py"
        parameters = [text for p in operator.parameters for text in (p.info.doc, p.info.unit)]
        ports = [port.doc for port in (*operator.inputs, *operator.outputs)]
        for text in (operator.title, operator.help(), operator.category.value, *parameters, *ports):
            yield file, text
        yield from ((file, text) for option in operator().options() for text in (option.label, option.doc))


def collect() -> Catalogue:
    catalogue = Catalogue()
    for path in sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        catalogue.read(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    for file, text in tables():
        catalogue.add(text, file)
    return catalogue


def main(arguments: list[str]) -> int:
    names = [a for a in arguments if not a.startswith("-")]
    if len(names) != 1:
        print("usage: python -m app.checks.texts_catalogue FILE.pot [--check]", file=sys.stderr)
        return 2
    catalogue, path = collect(), Path(names[0])
    for fault in catalogue.faults:
        print(fault, file=sys.stderr)
    if catalogue.faults:
        return 1
    page = catalogue.page()
    if "--check" not in arguments:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
        print(f"{len(catalogue.texts)} texts in {path}")
    elif not path.is_file() or path.read_text(encoding="utf-8") != page:
        print(f"{path} does not hold the window's texts as they are now: run `make texts`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
