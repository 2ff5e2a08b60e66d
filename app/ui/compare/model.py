"""The comparison that a window shows: what was chosen, the images, the results and their figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite, isnan, nan
from pathlib import Path

import numpy as np
from PySide6.QtCore import QObject, Signal

from analysis_layers.noise import LEVELS, RANDOM, Noise, scale_text
from app.reports.comparison import (
    CROP,
    LETTERS,
    ImageArray,
    ImageMetrics,
    check_same_size,
    disturbed,
    enlarged,
    figures,
    read_clean,
    scale_of,
    squared_error,
)
from app.ui.compare.runner import Made, SideRunner
from app.ui.compare.variants import Variant, VariantChoice, make_variant
from app.ui.widgets.background import Background
from app.ui.widgets.render import Pixels, picture_pixels
from app.ui.widgets.sentences import placed_text
from designer.graph.diagnostics import DiagnosticError
from designer.operators.registry import Registry
from designer.runtime.provenance import Provenance, run_provenance
from designer.texts import tr
from designer.units import digits

MOST = len(LETTERS)
REGIONS = 5  # worst regions that one can step through
PLAIN = "gaussian"  # the kind of noise whose scale is kept while none is added
INPUT, CLEAN = "input", "clean"  # keys of images next to those of the variants, which are "A", "B", ...


@dataclass(frozen=True, slots=True)
class NoiseChoice:
    """What the comparison adds to the image: `kind` and `scale` as in a Noise layer."""

    kind: str = PLAIN  # empty: nothing is added
    scale: float = 25 / LEVELS
    seed: int = 0

    @property
    def text(self) -> str:
        return f"{self.kind}:{scale_text(self.kind, self.scale)}" if self.kind else ""

    def operator(self) -> Noise | None:
        return Noise(kind=self.kind, scale=self.scale, seed=self.seed) if self.kind else None

    def of_kind(self, kind: str) -> NoiseChoice:
        """Another kind of noise, with a scale that means something for it. Without noise it is one of Gaussian noise."""
        before = replace(self, kind=self.kind or PLAIN).operator()
        also = before.also_set("kind", kind or PLAIN) if before is not None else {}
        return replace(self, kind=kind, scale=float(str(also.get("scale", self.scale))))


@dataclass(frozen=True)
class Measured:
    """Metrics by key of the image, the worst regions (left, top) by variant, and "" for all variants together."""

    reference: str = ""  # the key of the image that the others are measured against
    figures: dict[str, ImageMetrics] = field(default_factory=dict)
    regions: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    def best(self, name: str) -> frozenset[str]:
        """The variants with the best PSNR or SSIM as it is written; none where they are all equal."""
        digits = {"psnr": 2, "ssim": 4}[name]
        found = {k: f for k, f in self.figures.items() if k in LETTERS and k != self.reference}
        values = {k: round(v, digits) for k, f in found.items() if not isnan(v := getattr(f, name))}
        if len(set(values.values())) < 2:
            return frozenset()
        return frozenset(k for k, v in values.items() if v == max(values.values()))


def provenance_of(variant: Variant, made: Made, noise: NoiseChoice) -> Provenance:
    """What a variant made of an image with this noise."""
    return run_provenance(
        variant.document,
        variant.document_sha256,
        made.weights,
        made.weights_sha256,
        variant.opening,
        noise=noise.text,
        noise_seed=str(noise.seed) if noise.kind in RANDOM else "",
    )


class SideModel(QObject):
    """Holds the choices; `compare` runs them. Changes are reported by signals; nothing here paints."""

    started = Signal()
    pictures_changed = Signal()  # `images` has others
    measured_changed = Signal()
    status_changed = Signal(int)  # the state of one variant
    finished = Signal()

    def __init__(self, registry: Registry, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.registry = registry
        self.choices: list[VariantChoice] = []
        self.picture: Path | None = None
        self.clean_file: Path | None = None  # of an image that is noisy already
        self.noise = NoiseChoice()
        self.variants: list[Variant | None] = []  # those that were made last, for a comparison or a folder
        self.compared: list[Variant | None] = []  # those of the images that are shown
        self.status: list[str] = []
        self.errors: list[str] = []
        self.problem = ""  # of the image
        self.made: dict[str, Made] = {}
        self.colours: dict[str, Pixels] = {}  # the images as they are shown, by key
        self.clean: ImageArray | None = None
        self.noisy: ImageArray | None = None  # what the networks get
        self.enlarged: ImageArray | None = None  # the same in the size of the results, if they are larger
        self.measured = Measured()
        self.busy = False
        self.runner = SideRunner(self)
        self.runner.progress.connect(self._on_told)
        self.runner.made.connect(self._on_made)
        self.runner.failed.connect(self._on_failed)
        self.runner.finished.connect(self._on_finished)
        self._preparing: Background | None = None
        self._drawing: dict[str, Background] = {}  # who puts the last result of a variant into colors
        self._ran = False  # every variant had its turn

    # --- what a user asks for --------------------------------------------------------------------------------

    def compare(self) -> None:
        """Run all variants on the image from the start."""
        self.stop()
        self.busy = True
        self.made, self.colours, self.measured, self.problem = {}, {}, Measured(), ""
        self.clean = self.noisy = self.enlarged = None
        self._drawing, self._ran = {}, False
        self.compared = self.make_variants()
        self.started.emit()
        self.pictures_changed.emit()
        path = self.picture
        known = [v for v in self.variants if v is not None]
        if path is None or not known:
            self.problem = "" if known else tr("No network can be run.")
            self.problem = self.problem or tr("Choose an image.")
            self._end()
            return
        clean_file = self.clean_file if not self.noise.kind else None
        self._work(partial(_drawn, path, known[0].channels, self.noise.operator(), clean_file), self._on_prepared)

    def _refuse_other_channels(self) -> None:
        first = next((variant for variant in self.variants if variant is not None), None)
        for index, variant in enumerate(self.variants):
            if variant is not None and first is not None and variant.channels != first.channels:
                self.variants[index] = None
                why = tr(
                    "It takes {mine} channels and {other} takes {theirs}. Compare networks with equal inputs.",
                    mine=variant.channels,
                    other=first.name,
                    theirs=first.channels,
                )
                self._set_error(index, why)

    def make_variants(self, *, shown: bool = False) -> list[Variant | None]:
        """The networks as they are now; one that cannot be made has its reason in `errors`.

        With `shown`, they are not for the image that is shown: what is said about its results stays.
        """
        count = len(self.choices)
        before = list(zip(self.status, self.errors, strict=True)) if shown else []
        self.variants, self.status, self.errors = [], [""] * count, [""] * count
        for index, choice in enumerate(self.choices):
            try:
                self.variants.append(make_variant(choice, LETTERS[index], self.registry))
            except DiagnosticError as error:
                self.variants.append(None)
                self._set_error(index, placed_text(error.diagnostics[0]))
            self.status_changed.emit(index)
        self._refuse_other_channels()
        for index, (status, why) in enumerate(before[:count]):
            if not self.errors[index]:
                there = LETTERS[index] in self.made
                self.status[index], self.errors[index] = (status, "") if there else ("", why)
                self.status_changed.emit(index)
        return self.variants

    def stop(self) -> None:
        """Give up what runs; the results that are there stay."""
        self._preparing = None
        self._drawing = {}
        self.runner.cancel()
        if self.busy:
            self._end()

    def close(self) -> None:
        """End all engines."""
        self._preparing = None
        self._drawing = {}
        self.runner.close()
        self.busy = False

    # --- what is known -----------------------------------------------------------------------------------------

    @property
    def keys(self) -> list[str]:
        """The variants' letters, in order."""
        return list(LETTERS[: len(self.choices)])

    @property
    def knows_clean(self) -> bool:
        """Whether there is a clean image: its file was chosen, or the noise is added here and the results are as large."""
        return self.clean_file is not None if not self.noise.kind else self.enlarged is None

    @property
    def reference(self) -> str:
        """What is measured against: the clean image where there is one, else the first variant."""
        return CLEAN if self.knows_clean else next((k for k in self.keys if k in self.made), "")

    def pixels(self, key: str) -> ImageArray | None:
        """The image behind a key, 1 x C x H x W."""
        if key == INPUT:
            return self.noisy if self.enlarged is None else self.enlarged
        if key == CLEAN:
            return self.clean
        return self.made[key].picture if key in self.made else None

    def title(self, key: str) -> str:
        """Title over the image: `A denoiser`."""
        if key == INPUT:
            notes = [self.noise.text] if self.noise.kind else []
            if self.enlarged is not None and self.noisy is not None:
                notes.append(tr("bicubic x {scale}", scale=scale_of(self.enlarged, self.noisy)))
            return tr("Input ({notes})", notes=", ".join(notes)) if notes else tr("Input")
        if key == CLEAN:
            return tr("Clean")
        index = LETTERS.index(key)
        return f"{key} {self.choices[index].full_title}" if index < len(self.choices) else key

    def waits(self, key: str) -> str:
        """Why there is no image of this key, in a sentence."""
        index = LETTERS.index(key) if key in LETTERS else -1
        if 0 <= index < len(self.errors) and self.errors[index]:
            return f"{self.title(key)}: {self.errors[index]}"
        if self.problem:
            return self.problem
        if self.busy:
            return tr("{title}: waits for its turn", title=self.title(key))
        return tr("Press Compare to run the variants.")

    def provenance(self) -> dict[str, Provenance]:
        """Where the results come from, by the name of their variant."""
        pairs = ((self.compared[LETTERS.index(key)], made) for key, made in self.made.items())
        return {v.name: provenance_of(v, made, self.noise) for v, made in pairs if v is not None}

    def columns(self) -> list[str]:
        """Titles of the table's columns: what went in, then the variants that can run."""
        return [self.noise.text or tr("input"), *(v.name for v in self.variants if v is not None)]

    # --- the steps ---------------------------------------------------------------------------------------------

    def _work(self, work: Callable[[], object], done: Callable[[object], None]) -> None:
        job = Background(self)
        self._preparing = job

        def arrived(answer: object) -> None:
            if self._preparing is job:
                self._preparing = None
                done(answer)

        def failed(found: object) -> None:
            if self._preparing is job:
                self._preparing = None
                self._on_work_failed(found)

        job.done.connect(arrived)
        job.failed.connect(failed)
        job.start(work)

    def _on_prepared(self, answer: object) -> None:
        assert isinstance(answer, tuple)
        self.clean, self.noisy, self.colours[CLEAN], self.colours[INPUT] = answer
        self.pictures_changed.emit()
        assert self.noisy is not None
        self.runner.run(self.compared, self.noisy)

    def _on_work_failed(self, found: object) -> None:
        assert isinstance(found, tuple)
        self.problem = placed_text(found[0])
        self._end()

    def _on_told(self, index: int, text: str) -> None:
        if self.busy:
            self.status[index] = text
            self.status_changed.emit(index)

    def _on_made(self, index: int, made: object) -> None:
        """Put the result into colors in a thread: of a large image that takes longer than a frame of the window."""
        if not self.busy or not isinstance(made, Made):
            return
        key = LETTERS[index]
        job = self._drawing[key] = Background(self)

        def arrived(answer: object) -> None:
            job.deleteLater()
            if self._drawing.get(key) is job:
                del self._drawing[key]
                if not self.errors[index]:
                    self._show(index, made, answer)
                self._measure_when_ready()

        def failed(found: object) -> None:
            job.deleteLater()
            if self._drawing.get(key) is job and isinstance(found, tuple):
                del self._drawing[key]
                self._on_failed(index, placed_text(found[0]))
                self._measure_when_ready()

        job.done.connect(arrived)
        job.failed.connect(failed)
        assert self.noisy is not None
        clean = self.clean if self.clean_file is not None and not self.noise.kind else None
        job.start(partial(_coloured, made.picture, self.noisy, clean, self.clean_file))

    def _show(self, index: int, made: Made, answer: object) -> None:
        assert isinstance(answer, tuple)
        key = LETTERS[index]
        self.colours[key], broken, grown, its_colours = answer
        if grown is not None and self.enlarged is None:
            self.enlarged, self.colours[INPUT] = grown, its_colours
        self.made = dict(sorted({**self.made, key: made}.items()))  # threads end in any order
        if isfinite(made.milliseconds) or made.emulated:
            wrong = tr("{share} % of its values are NaN or infinite", share=digits(100 * broken)) if broken else ""
            self.status[index] = "; ".join(text for text in (made.note, wrong) if text)
        self.status_changed.emit(index)
        self.pictures_changed.emit()

    def _on_failed(self, index: int, why: str) -> None:
        if self.busy:
            self.made.pop(LETTERS[index], None)
            self._set_error(index, why)

    def _set_error(self, index: int, why: str) -> None:
        self.errors[index], self.status[index] = why, ""
        self.status_changed.emit(index)

    def _on_finished(self) -> None:
        if self.busy:
            self._ran = True
            self._measure_when_ready()

    def _measure_when_ready(self) -> None:
        if not self._ran or self._drawing:
            return
        self._ran = False
        if not self.made:
            self._end()
            return
        reference = self.pixels(self.reference)
        given = self.pixels(INPUT)
        assert reference is not None
        assert given is not None
        self._work(
            partial(measure_all, self.reference, reference, given, dict(self.made)),
            self._on_measured,
        )

    def _on_measured(self, answer: object) -> None:
        assert isinstance(answer, Measured)
        self.measured = answer
        self.measured_changed.emit()
        self._end()

    def _end(self) -> None:
        self.busy = False
        self.finished.emit()


def prepared(path: Path, channels: int, noise: Noise | None) -> tuple[ImageArray, ImageArray]:
    """The clean and the noisy image (work for a thread)."""
    from designer.files.settings import PATTERN
    from designer.runtime.images import read_image
    from designer.runtime.patterns import make_pattern

    text = str(path)
    if text.startswith(PATTERN):
        clean = make_pattern(text.removeprefix(PATTERN), channels, 512, 512)
    else:
        clean = read_image(path, channels)
    return clean, disturbed(clean, noise)


def _drawn(
    path: Path, channels: int, noise: Noise | None, clean_file: Path | None
) -> tuple[ImageArray, ImageArray, Pixels, Pixels]:
    clean, noisy = prepared(path, channels, noise)
    if clean_file is not None:
        clean = read_clean(path, clean_file, noisy)
    return clean, noisy, picture_pixels(clean[0]), picture_pixels(noisy[0])


def coloured(picture: ImageArray) -> tuple[Pixels, float]:
    """An image as it is shown, and the share of values that are NaN or infinite (work for a thread)."""
    return picture_pixels(picture[0]), 1 - float(np.mean(np.isfinite(picture)))


def _coloured(
    picture: ImageArray, noisy: ImageArray, clean: ImageArray | None, clean_file: Path | None
) -> tuple[Pixels, float, ImageArray | None, Pixels | None]:
    """As `coloured`, and the input in the size of a result that is larger, and its colors.

    Raises DiagnosticError where the clean image has another size than the result.
    """
    if clean is not None and clean_file is not None:
        check_same_size(clean, picture, clean_file.name)
    grown = enlarged(noisy, picture) if picture.shape != noisy.shape else None
    return (*coloured(picture), grown, picture_pixels(grown[0]) if grown is not None else None)


def measure_all(key: str, reference: ImageArray, noisy: ImageArray, made: dict[str, Made]) -> Measured:
    """Metrics and worst regions (work for a thread)."""
    from designer.metrics import worst_regions

    found = {INPUT: figures(reference, noisy)} if key == CLEAN else {}
    for name, item in made.items():
        itself = ImageMetrics(nan, nan, item.milliseconds)  # nothing is measured against itself
        found[name] = itself if name == key else figures(reference, item.picture, item.milliseconds)
    errors: dict[str, np.ndarray] = {k: squared_error(reference, [m.picture]) for k, m in made.items() if k != key}
    regions = {k: tuple((x, y) for y, x in worst_regions(e, CROP, REGIONS)) for k, e in errors.items()}
    if errors:
        total = np.sum(list(errors.values()), axis=0)
        regions[""] = tuple((x, y) for y, x in worst_regions(total, CROP, REGIONS))
    return Measured(key, found, regions)


def region_psnr(reference: ImageArray, made: ImageArray, corner: tuple[int, int]) -> float:
    """PSNR in the square that begins at (left, top)."""
    from designer.metrics import psnr

    x, y = corner
    cut = (..., slice(y, y + CROP), slice(x, x + CROP))
    return psnr(reference[cut], made[cut])
