"""Settings of a document on this machine: precision, weights, input and output files, ...

The settings of `x.xml` are saved in `x.settings.xml`, in the format of the 2022 tool's `.nv-editor-cfg`, which can be read
too: `QSettings` with `Setting name="A/B"` elements. Paths are relative to the document's folder in the file and absolute in memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

from designer.files import limits
from designer.files.atomic import write_atomic
from designer.files.document import read_bounded
from designer.files.variants import Variant, VariantReader, variant_texts
from designer.files.xml_text import attribute, content
from designer.files.xml_tree import Element, XmlError, parse_xml
from designer.graph.diagnostics import Diagnostic, DiagnosticError, Severity
from designer.graph.model import unwritable
from designer.graph.template import enclosing
from designer.texts import tr

ENDING = ".settings.xml"
OLD_ENDING = ".nv-editor-cfg"
PRECISIONS = ("fp32", "fp16", "bf16")
LAYOUTS = ("nchw", "nhwc")
DEFAULT_ENGINE = "onnxruntime"
ADAPTED = "settings-adapted"  # code of the diagnostic that a network runs differently from another program's settings
ENGINE_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")  # the runtime checks whether the engine exists
MAX_ITERATIONS = 1_000_000
MAX_THREADS = 1024
MAX_TILE = 65536
MAX_SEED = 2**31 - 1

_GENERAL = "GeneralNetworkSettings/"
_INFERENCE = "InferenceSettings/"
_INPUTS = f"{_INFERENCE}inputFiles/"
_OUTPUTS = f"{_INFERENCE}outputFiles/"
_TRAINING = "TrainingSettings/"
_RECIPE = f"{_TRAINING}recipe/"
_SECTIONS = f"{_INFERENCE}profilingSections/"


@dataclass(frozen=True)
class Settings:
    """How a document runs on this machine. Paths are absolute; paths of another operating system are kept unchanged.

    `threads` 0 means all cores. `tile` is the side in pixels of the tiles in which images are run: 0 runs them whole, -1 tiles
    them if memory requires it. `random_seed` is set if the user chose random values for missing weights. `input_files` and
    `output_files` are by layer, `profiling_sections` by section name. `variant` is the name of the one of `variants` that runs,
    empty for the network as the other settings say. `project` is the folder of the PyTorch project that was exported last, `task`
    what it trains (empty: what the network suggests), and `recipe` the defaults of its training that differ. `extra` are settings of newer versions, preserved when saving.
    """

    precision: str = "fp32"
    layout: str = "nchw"
    engine: str = DEFAULT_ENGINE
    device: str = "cpu"
    threads: int = 0
    tile: int = -1
    weights: str = ""
    random_seed: int | None = None
    input_files: Mapping[str, str] = field(default_factory=dict)
    output_files: Mapping[str, str] = field(default_factory=dict)
    iterations: int = 10
    profiling: bool = False
    profiling_sections: Mapping[str, bool] = field(default_factory=dict)
    variants: tuple[Variant, ...] = ()
    variant: str = ""
    project: str = ""
    task: str = ""
    recipe: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def current_variant(self) -> Variant | None:
        return next((each for each in self.variants if each.name == self.variant), None)

    def pruned(self, layers: Collection[str]) -> Settings:
        """The settings without files and number formats of layers that no longer exist."""
        return replace(
            self,
            variants=tuple(
                v.without([name for name in (*v.formats, *v.reasons) if not set(enclosing(name)) & set(layers)])
                for v in self.variants
            ),
            input_files={k: v for k, v in self.input_files.items() if k in layers},
            output_files={k: v for k, v in self.output_files.items() if k in layers},
        )


class SettingsReading(NamedTuple):
    """The settings of a file, with defaults for invalid values, and diagnostics."""

    settings: Settings
    diagnostics: tuple[Diagnostic, ...] = ()


def settings_path(document: str | os.PathLike[str]) -> Path:
    """The settings file of a document: `x.settings.xml` next to `x.xml`."""
    return Path(document).with_suffix(ENDING)


def find_settings(document: str | os.PathLike[str]) -> Path | None:
    """The existing settings file of a document: ours, else that of the 2022 tool, else None."""
    for path in (settings_path(document), Path(document).with_suffix(OLD_ENDING)):
        if os.path.isfile(path):  # also False for a name that is too long
            return path
    return None


def read_settings(path: str | os.PathLike[str]) -> SettingsReading:
    """Read a settings file. Never raises: a file that cannot be read gives the defaults and a diagnostic."""
    path = Path(path)
    try:
        root, _ = parse_xml(read_bounded(path, limits.MAX_SETTINGS_BYTES), limits.MAX_SETTINGS_BYTES)
    except XmlError as error:
        return _unread(path, error.code, error.message, error.line, error.remedy)
    if not root.is_plain("QSettings") or root.attributes.get("version") != "1":
        message = tr("{name} is not a settings file of version 1 (QSettings)", name=path.name)
        return _unread(path, "wrong-version", message, root.line, tr("choose another file; saving replaces it"))
    reader = _SettingsReader(path)
    for child in root.children:
        if isinstance(child, Element) and child.is_plain("Setting"):
            reader.take(child.attributes.get("name", ""), child.text(), child.line)
    reader.finish()
    return SettingsReading(Settings(**reader.values), tuple(reader.found))  # type: ignore[arg-type]


def stored_settings(document: str | os.PathLike[str]) -> SettingsReading:
    """The settings of a document; the defaults if it has no settings file. Never raises."""
    stored = find_settings(document)
    return read_settings(stored) if stored is not None else SettingsReading(Settings())


def save_settings(settings: Settings, path: str | os.PathLike[str], layers: Collection[str] | None = None) -> None:
    """Write the settings atomically. With `layers`, files of other layers are left out.

    Raises DiagnosticError ("cannot-save").
    """
    kept = settings if layers is None else settings.pruned(layers)
    write_atomic(path, write_settings(kept, Path(path).parent))


def write_settings(settings: Settings, folder: Path) -> bytes:
    """The content of the file. Paths become relative to `folder`, the document's folder."""
    texts: dict[str, str] = dict(settings.extra)
    texts[f"{_GENERAL}dataType"] = settings.precision
    texts[f"{_GENERAL}format"] = settings.layout
    texts[f"{_GENERAL}backend"] = settings.engine
    texts[f"{_GENERAL}device"] = settings.device
    texts[f"{_GENERAL}weights"] = _relative(settings.weights, folder)
    if settings.threads:
        texts[f"{_GENERAL}threads"] = str(settings.threads)
    if settings.tile >= 0:
        texts[f"{_GENERAL}tile"] = str(settings.tile)
    if settings.random_seed is not None:
        texts[f"{_GENERAL}randomWeightsSeed"] = str(settings.random_seed)
    texts[f"{_INFERENCE}iterations"] = str(settings.iterations)
    texts[f"{_INFERENCE}enableProfiling"] = "true" if settings.profiling else "false"
    for layer, file in settings.input_files.items():
        texts[_INPUTS + layer] = _relative(file, folder)
    for layer, file in settings.output_files.items():
        texts[_OUTPUTS + layer] = _relative(file, folder)
    if settings.variant:
        texts[f"{_GENERAL}variant"] = settings.variant
    if settings.project:
        texts[f"{_TRAINING}project"] = _relative(settings.project, folder)
    if settings.task:
        texts[f"{_TRAINING}task"] = settings.task
    texts.update({_RECIPE + name: value for name, value in settings.recipe.items()})
    texts.update(variant_texts(settings.variants, lambda path: _relative(path, folder)))
    for section, on in settings.profiling_sections.items():
        texts[_SECTIONS + section] = "true" if on else "false"
    lines = [_line(name, text) for name, text in sorted(texts.items())]
    return "".join(['<?xml version="1.0"?>\n<QSettings version="1">\n', *lines, "</QSettings>\n"]).encode()


def _line(name: str, text: str) -> str:
    if unwritable(name + text) is not None:
        raise DiagnosticError.of(
            "cannot-save",
            tr("the setting '{name}' contains a control character", name=name),
            remedy=tr("remove the character"),
        )
    return f'\t<Setting name="{attribute(name)}" type="variant">{content(text)}</Setting>\n'


class _SettingsReader:
    """Collects the settings of one file."""

    def __init__(self, path: Path) -> None:
        self.values: dict[str, object] = {}
        self.found: list[Diagnostic] = []
        self._path = path
        self._old = path.suffix == OLD_ENDING
        self._foreign: dict[str, str] = {}  # options with which the 2022 tool ran the network
        self._variants = VariantReader(self._file)

    def finish(self) -> None:
        """Add what several settings make together."""
        self.values["variants"] = self._variants.variants()
        self._adapt()

    def _adapt(self) -> None:
        """Report that the network runs differently from the 2022 tool, whose engines, devices and half precision do not exist here."""
        precision, engine, device = (self._foreign.get(each, "")[:40] for each in ("precision", "engine", "device"))
        precision = precision or "fp32"
        if precision == "fp32" and engine in ("", "cpu"):
            return
        wanted = " ".join(filter(None, (precision, engine, device)))
        self.found.append(
            Diagnostic(
                ADAPTED,
                tr(
                    "the settings of the 2022 tool request {wanted}; the network runs in fp32 with {engine} on the CPU",
                    wanted=wanted,
                    engine=DEFAULT_ENGINE,
                ),
                Severity.WARNING,
                file=str(self._path),
                remedy=tr("choose engine, device and precision in Network Settings; saving keeps them"),
            )
        )

    def take(self, name: str, text: str, line: int) -> None:
        """Parse one setting, or preserve it if unknown."""
        if self._take_entry(name, text) or self._variants.take(name, text):
            return
        if name in _FILES:
            self.values[_FILES[name]] = self._file(text)
        elif name == f"{_INFERENCE}enableProfiling":
            self.values["profiling"] = _switch(text)
        elif name in _NUMBERS:
            self._number(*_NUMBERS[name], text, line)
        elif self._old and name in _FOREIGN:
            self._foreign[_FOREIGN[name]] = text
        elif name in _TEXTS:
            key, default = _TEXTS[name]
            self.values[key] = text or default
        elif name == f"{_GENERAL}backend":
            self._engine(text, line)
        elif name in _CHOICES:
            self._choice(*_CHOICES[name], text, line)
        elif not self._old and name:
            self._put("extra", name, text)

    def _take_entry(self, name: str, text: str) -> bool:
        """Parse a setting of one input, output or section. Returns False for any other."""
        for prefix, key, convert in (
            (_INPUTS, "input_files", self._file),
            (_OUTPUTS, "output_files", self._file),
            (_SECTIONS, "profiling_sections", _switch),
            (_RECIPE, "recipe", str),
        ):
            if name.startswith(prefix):
                if text or convert in (_switch, str):
                    self._put(key, name[len(prefix) :], convert(text))
                return True
        return False

    def _put(self, key: str, name: str, value: object) -> None:
        table = self.values.setdefault(key, {})
        assert isinstance(table, dict)
        table[name] = value

    def _choice(self, key: str, choices: Sequence[str], text: str, line: int) -> None:
        if text in choices:
            self.values[key] = text
        else:
            self._add(
                "bad-setting",
                tr("'{text}' is not a valid {key}; {choices} is used", text=text[:40], key=key, choices=choices[0]),
                line,
                ", ".join(choices),
            )

    def _engine(self, text: str, line: int) -> None:
        if ENGINE_NAME.fullmatch(text):
            self.values["engine"] = text
        else:
            message = tr(
                "'{text}' is not the name of an engine; {DEFAULT_ENGINE} is used",
                text=text[:40],
                DEFAULT_ENGINE=DEFAULT_ENGINE,
            )
            self._add("bad-setting", message, line, tr("an engine of Network Settings"))

    def _number(self, key: str, low: int, high: int, text: str, line: int) -> None:
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
        if low <= number <= high:
            self.values[key] = number
        else:
            message = tr("'{text}' is not a valid number for {key}; the default is used", text=text[:40], key=key)
            self._add("bad-setting", message, line, tr("a whole number from {low} to {high}", low=low, high=high))

    def _file(self, text: str) -> str:
        return _absolute(text, self._path.parent)

    def _add(self, code: str, message: str, line: int, choices: str) -> None:
        finding = Diagnostic(
            code,
            message,
            Severity.WARNING,
            line=line,
            file=str(self._path),
            remedy=tr("choose one of: {choices}", choices=choices),
        )
        self.found.append(finding)


PATTERN = "pattern:"  # prefix of a generated test image instead of a file
CAMERA = "camera:"  # prefix of a camera instead of a file: camera:0, or camera:/dev/video2

_FOREIGN = {f"{_GENERAL}dataType": "precision", f"{_GENERAL}backend": "engine", f"{_GENERAL}device": "device"}
_CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    f"{_GENERAL}dataType": ("precision", PRECISIONS),
    f"{_GENERAL}format": ("layout", LAYOUTS),
}
_FILES = {f"{_GENERAL}weights": "weights", f"{_TRAINING}project": "project"}
_TEXTS = {
    f"{_GENERAL}device": ("device", "cpu"),
    f"{_GENERAL}variant": ("variant", ""),
    f"{_TRAINING}task": ("task", ""),
}
_NUMBERS: dict[str, tuple[str, int, int]] = {
    f"{_INFERENCE}iterations": ("iterations", 1, MAX_ITERATIONS),
    f"{_GENERAL}tile": ("tile", 0, MAX_TILE),
    f"{_GENERAL}threads": ("threads", 0, MAX_THREADS),
    f"{_GENERAL}randomWeightsSeed": ("random_seed", 0, MAX_SEED),
}


def _switch(text: str) -> bool:
    return text.strip().lower() in ("true", "1")


def _is_foreign(text: str) -> bool:
    """Whether a path is absolute on another operating system: kept unchanged, so that it works there."""
    return os.name != "nt" and bool(PureWindowsPath(text).drive)


def _absolute(text: str, folder: Path) -> str:
    if not text or _is_foreign(text) or text.startswith((PATTERN, CAMERA)):
        return text
    if os.name != "nt" and "\\" in text and not os.path.exists(folder / text):
        text = text.replace("\\", "/")
    return os.path.normpath(os.path.join(os.path.abspath(folder), text))


def _relative(text: str, folder: Path) -> str:
    if not text or _is_foreign(text) or not os.path.isabs(text):
        return text
    try:
        return Path(os.path.relpath(text, os.path.abspath(folder))).as_posix()
    except ValueError:  # another drive
        return Path(text).as_posix()


def _unread(path: Path, code: str, message: str, line: int | None, remedy: str) -> SettingsReading:
    finding = Diagnostic(
        code,
        tr("{message}; the default settings are used", message=message),
        Severity.WARNING,
        line=line,
        file=str(path),
        remedy=remedy,
    )
    return SettingsReading(Settings(), (finding,))
