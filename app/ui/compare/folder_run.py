"""A comparison over the images of a folder: one after another, each measured while nothing else waits for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.reports.comparison import (
    LETTERS,
    ImageArray,
    Reference,
    Row,
    check_same_size,
    images_in,
    measured,
    read_clean,
)
from app.ui.compare.model import SideModel, prepared, provenance_of
from app.ui.compare.runner import Made
from app.ui.compare.variants import Variant
from app.ui.widgets.background import Background
from app.ui.widgets.render import Pixels, picture_pixels
from app.ui.widgets.sentences import placed_text
from designer.graph.diagnostics import DiagnosticError
from designer.runtime.provenance import Provenance

if TYPE_CHECKING:
    from analysis_layers.noise import Noise

SHOWN = 12  # images that a page holds with their results; figures are there for all
KEPT = 256 << 20  # bytes of results that are kept for a vote


@dataclass(frozen=True)
class Kept:
    """What the variants made of an image, as colors by key."""

    name: str
    pixels: dict[str, Pixels]


@dataclass(frozen=True)
class Conditions:
    """What the results of a comparison depend on, apart from the images."""

    noise: str
    seed: int
    clean: Path | None
    variants: tuple[Variant | None, ...]


def conditions_of(model: SideModel, variants: Sequence[Variant | None]) -> Conditions:
    """Those of a comparison of these variants now."""
    return Conditions(model.noise.text, model.noise.seed, model.clean_file, tuple(variants))


class FolderRun(QObject):
    """Uses the engines of the model while that rests. `rows` grow; `skipped` says which images could not be used and why."""

    started = Signal()
    row_added = Signal(Row)
    finished = Signal()

    def __init__(self, model: SideModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self.rows: list[Row] = []
        self.kept: list[Kept] = []
        self.paths: list[Path] = []  # of the rows
        self.columns: list[str] = []
        self.names: dict[str, str] = {}  # of the variants, by key
        self.conditions: Conditions | None = None  # of the rows
        self.provenance: dict[str, Provenance] = {}  # of the columns
        self.skipped: list[str] = []
        self.failures: dict[str, tuple[int, str]] = {}  # of variants by name: on how many images, and why the last time
        self.problem = ""
        self.done = 0
        self.total = 0
        self.running = False
        self._left: list[Path] = []
        self._variants: list[Variant | None] = []
        self._path = Path()
        self._clean: ImageArray | None = None
        self._noisy: ImageArray | None = None
        self._made: dict[int, Made] = {}
        self._failed: dict[int, str] = {}  # why variants have no result of the present image
        self._job: Background | None = None
        model.runner.made.connect(self._on_made)
        model.runner.failed.connect(self._on_failed)
        model.runner.finished.connect(self._on_ran)
        model.started.connect(self.cancel)  # the engines are wanted elsewhere

    def start(self, folder: Path) -> None:
        """Compare on every image of the folder, from the first."""
        self.cancel()
        self._model.stop()
        self.rows, self.paths, self.skipped, self.kept, self.problem, self.done = [], [], [], [], "", 0
        self.failures, self.provenance = {}, {}
        self._variants = self._model.make_variants(shown=True)
        self.columns = self._model.columns()
        self.names = {LETTERS[i]: variant.name for i, variant in enumerate(self._variants) if variant is not None}
        self.conditions = conditions_of(self._model, self._variants)
        try:
            self._left = images_in(folder)
        except DiagnosticError as error:
            self.problem, self._left = placed_text(error.diagnostics[0]), []
        if not any(self._variants):
            self.problem = next((e for e in self._model.errors if e), "")
            self._left = []
        self.total = len(self._left)
        self.running = True
        self.started.emit()
        self._next()

    def cancel(self) -> None:
        """Stop; the rows that are there stay."""
        if self.running:
            self._job = None
            self._model.runner.cancel()
            self._end()

    def _end(self) -> None:
        self.running = False
        self._left = []
        self.finished.emit()

    def _next(self) -> None:
        if not self._left:
            self._end()
            return
        self._path = self._left.pop(0)
        first = next(v for v in self._variants if v is not None)
        clean = self._model.clean_file if not self._model.noise.kind else None
        folder = clean.parent if clean is not None else None
        self._work(
            partial(_prepared, self._path, first.channels, self._model.noise.operator(), folder), self._on_prepared
        )

    def _work(self, work: Callable[[], object], done: Callable[[object], None]) -> None:
        job = Background(self)
        self._job = job

        def arrived(answer: object) -> None:
            if self._job is job:
                done(answer)
            job.deleteLater()

        def failed(found: object) -> None:
            if self._job is job and isinstance(found, tuple):
                self.skipped.append(placed_text(found[0]))
                self.done += 1
                self._next()
            job.deleteLater()

        job.done.connect(arrived)
        job.failed.connect(failed)
        job.start(work)

    def _on_prepared(self, answer: object) -> None:
        assert isinstance(answer, tuple)
        self._clean, self._noisy = answer
        self._made, self._failed = {}, {}
        assert self._noisy is not None
        self._model.runner.run(self._variants, self._noisy)

    def _on_made(self, index: int, made: object) -> None:
        variant = self._variants[index] if self.running else None
        if variant is not None and isinstance(made, Made):
            self._made[index] = made
            self.provenance.setdefault(variant.name, provenance_of(variant, made, self._model.noise))

    def _on_failed(self, index: int, why: str) -> None:
        variant = self._variants[index] if self.running else None
        if variant is not None:
            self._made.pop(index, None)
            self._failed[index] = why
            count = self.failures.get(variant.name, (0, ""))[0]
            self.failures[variant.name] = (count + 1, why)

    def _on_ran(self) -> None:
        if not self.running:
            return
        there = [i for i, v in enumerate(self._variants) if v is not None]
        if not self._made:
            self.skipped.append(self._path.name)
            self.done += 1
            self._next()
            return
        results = [self._made[i].picture if i in self._made else None for i in there]
        times = [self._made[i].milliseconds if i in self._made else nan for i in there]
        failures = [self._failed.get(i, "") for i in there]
        reference = Reference.of(self._clean, results, self.columns[1:])
        assert self._noisy is not None
        titles = self.columns if len(self.rows) < SHOWN else []
        chosen = self._clean if not self._model.noise.kind else None
        measure = partial(
            measured, self._path.name, self._model.noise.text, reference, self._noisy, results, times, titles, failures
        )
        room = sum(p.nbytes for item in self.kept for p in item.pixels.values()) < KEPT
        kept = {LETTERS[i]: made.picture for i, made in self._made.items()} if room else {}
        name, made = self._path.name, next(iter(self._made.values())).picture

        def work() -> tuple[Row, dict[str, Pixels]]:
            if chosen is not None:
                check_same_size(chosen, made, name)
            return measure(), {k: picture_pixels(p[0]) for k, p in kept.items()}

        self._work(work, self._on_measured)

    def _on_measured(self, answer: object) -> None:
        assert isinstance(answer, tuple)
        row, pixels = answer
        self.rows.append(row)
        if pixels:
            self.kept.append(Kept(self._path.name, pixels))
        self.paths.append(self._path)
        self.done += 1
        self.row_added.emit(row)
        if self.running:
            self._next()


def _prepared(
    path: Path, channels: int, noise: Noise | None, clean: Path | None
) -> tuple[ImageArray | None, ImageArray]:
    """The clean image where it is known, and the input of the networks. `clean` is a folder (work for a thread)."""
    image, noisy = prepared(path, channels, noise)
    if noise is not None:
        return image, noisy
    return (read_clean(path, clean, noisy) if clean is not None else None), noisy


def best(row: Row) -> int:
    """The column of the best PSNR among the variants as it is written; -1 where there is none or several are equal."""
    values = [round(f.psnr, 2) for f in row.figures[1:]]
    known = [v for v in values if not isnan(v)]
    if len(known) < 2 or known.count(max(known)) > 1:
        return -1
    return 1 + values.index(max(known))
