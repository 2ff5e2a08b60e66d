"""`layerwright compare`: variants of a network on the same pictures with the same noise, as figures and as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.opening import load_weights_for, open_network, weights_location
from app.running import layers_with
from app.trusting import with_trust
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.types import Size3D
from designer.operators.api import Role
from designer.runtime.api import RunOptions

if TYPE_CHECKING:
    from analysis_layers.noise import Noise
    from designer.runtime.session import Session

T = TypeVar("T")
Picture = NDArray[np.float32]  # 1 x C x H x W

IN_LEVELS = ("gaussian", "uniform")  # kinds whose strength is told in levels of 255
CROP = 64  # pixels of the worst region's side
ENLARGED = 3


@dataclass(frozen=True)
class CompareRequest:
    """What the command line asked for. `weights` and `engines` are for all variants (one), or one for each."""

    documents: Sequence[Path]
    images: Path
    noise: str = ""
    seed: int = 0
    weights: Sequence[Path] = ()
    random_weights: int | None = None
    engines: Sequence[str] = ()
    options: RunOptions = field(default_factory=RunOptions)
    report: Path | None = None
    trust: Sequence[str] = ()


@dataclass(frozen=True)
class Variant:
    """A network ready to run: its name in tables, and the layers that pictures go in and out of."""

    name: str
    session: Session
    input: str
    output: str
    channels: int
    note: str

    def run(self, picture: Picture) -> Picture:
        self.session.set_input(self.input, picture, picture=True)
        return self.session.run().outputs[self.output]


@dataclass(frozen=True)
class Figures:
    """PSNR in dB and SSIM of one picture against the clean one."""

    psnr: float
    ssim: float


@dataclass(frozen=True)
class Compared:
    """One photograph: what went in, what each variant made of it, and where they were worst (row, column)."""

    name: str
    clean: Picture
    noisy: Picture
    results: tuple[Picture, ...]
    figures: tuple[Figures, ...]  # of the noisy picture, then of each variant
    worst: tuple[int, int]


def compare(request: CompareRequest, progress: Callable[[str], None]) -> tuple[list[str], list[Compared]]:
    """Run everything; names of the columns (what went in, then the variants), and one `Compared` a picture."""
    noise = read_noise(request.noise, request.seed)
    pictures = _pictures(request.images)
    variants = [_variant(request, index) for index in range(len(request.documents))]
    for variant in variants:
        if variant.note:
            progress(f"note: {variant.name}: {variant.note}")
    found = []
    for path in pictures:
        progress(f"{path.name} …")
        found.append(_compared(path, noise, variants))
    return [request.noise or "input", *(variant.name for variant in variants)], found


def read_noise(text: str, seed: int) -> Noise | None:
    """`gaussian:25` as a noise layer's operator; gaussian and uniform count in levels of 255, the others like `scale`."""
    from analysis_layers.noise import KINDS, Noise

    if not text:
        return None
    kind, _, strength = text.partition(":")
    try:
        scale = float(strength) / (255 if kind in IN_LEVELS else 1)
        if kind not in KINDS or not 0 <= scale <= 100:
            raise ValueError
    except ValueError:
        raise DiagnosticError(
            Diagnostic(
                "bad-option",
                f"--noise {text}: write KIND:STRENGTH",
                remedy=f"for instance gaussian:25; kinds are {', '.join(KINDS)}",
            )
        ) from None
    return Noise(kind=kind, scale=scale, seed=seed)


def summary(columns: Sequence[str], found: Sequence[Compared]) -> Iterator[list[str]]:
    """Rows of the table: one a picture, then mean and deviation. Each column has PSNR and SSIM."""
    for item in found:
        yield [item.name, *(text for f in item.figures for text in (f"{f.psnr:.2f}", f"{f.ssim:.4f}"))]
    for title, measure in (("mean", fmean), ("deviation", pstdev)):
        row = [title]
        for index in range(len(columns)):
            psnrs = [item.figures[index].psnr for item in found]
            finite = [value for value in psnrs if np.isfinite(value)]
            row.append(f"{measure(finite):.2f}" if finite else "inf")
            row.append(f"{measure([item.figures[index].ssim for item in found]):.4f}")
        yield row


def headings(columns: Sequence[str]) -> list[str]:
    return ["picture", *(text for name in columns for text in (f"{name} PSNR (dB)", "SSIM"))]


def write_report(path: Path, title: str, columns: Sequence[str], found: Sequence[Compared]) -> None:
    """A page with the table, all pictures inside, and the worst region of each enlarged."""
    from app.page import Page

    page = Page(title)
    page.table(headings(columns), list(summary(columns, found)), numbers=range(1, 2 * len(columns) + 1))
    page.text(
        "PSNR and SSIM are against the clean picture, values clipped to 0..1. The deviation is that of the whole population."
    )
    for item in found:
        page.heading(item.name)
        shown = [("clean", item.clean, ""), *_captions(columns, item)]
        for name, picture, caption in shown:
            page.picture_inside(_encoded(picture), f"{name}{caption}")
        row, column = item.worst
        page.text(f"The region where the variants are farthest from the clean picture begins at x {column}, y {row}:")
        for name, picture, _ in shown:
            part = picture[..., row : row + CROP, column : column + CROP]
            page.picture_inside(_encoded(part.repeat(ENLARGED, -1).repeat(ENLARGED, -2)), name)
    page.write(path)


def _captions(columns: Sequence[str], item: Compared) -> list[tuple[str, Picture, str]]:
    pictures = (item.noisy, *item.results)
    return [
        (name, picture, f": {f.psnr:.2f} dB, SSIM {f.ssim:.4f}")
        for name, picture, f in zip(columns, pictures, item.figures, strict=True)
    ]


def _encoded(picture: Picture) -> bytes:
    from designer.runtime.images import encode_image

    count = picture.shape[1]
    return encode_image(picture if count in (1, 3) else picture[:, : 3 if count > 3 else 1])


def _compared(path: Path, noise: Noise | None, variants: Sequence[Variant]) -> Compared:
    from designer.runtime.images import read_image
    from designer.runtime.metrics import psnr, ssim, worst_region

    clean = read_image(path, variants[0].channels)
    noisy = np.clip(noise.evaluate([clean])[0], 0, 1) if noise is not None else clean
    results = []
    for variant in variants:
        made = variant.run(noisy)
        if made.shape != clean.shape:
            shape = " x ".join(map(str, made.shape))
            raise DiagnosticError(
                Diagnostic(
                    "not-comparable",
                    f"the output '{variant.output}' of {variant.name} is {shape}, not a picture like its input",
                    layer=variant.output,
                    remedy="compare networks whose output has the size and channels of their input",
                )
            )
        results.append(made)
    figures = tuple(Figures(psnr(clean, item), ssim(clean, item)) for item in (noisy, *results))
    error = sum(np.square(np.clip(item, 0, 1) - clean, dtype=np.float64)[0].sum(0) for item in results)
    return Compared(path.name, clean, noisy, tuple(results), figures, worst_region(np.asarray(error), CROP))


def _variant(request: CompareRequest, index: int) -> Variant:
    from designer.runtime.session import Session

    path = request.documents[index]
    network = open_network(path)
    inputs, outputs = layers_with(network, Role.INPUT), layers_with(network, Role.OUTPUT)
    if len(inputs) != 1 or not outputs:
        raise DiagnosticError(
            Diagnostic(
                "not-comparable",
                f"{path.name} has {len(inputs)} inputs and {len(outputs)} outputs",
                file=str(path),
                remedy="compare networks with one input and an output",
            )
        )
    given = _one_of("--weights", request.weights, index, len(request.documents))
    engine = _one_of("--engine", request.engines, index, len(request.documents))
    weights = load_weights_for(network, weights_location(path, given), request.random_weights)
    options = replace(request.options, engine=engine) if engine else request.options
    session = Session(network.graph, network.registry, weights, with_trust(network, options, request.trust))
    dims = getattr(network.inference.read(inputs[0]).operator, "dims", None)
    letter = chr(ord("A") + index)
    return Variant(
        f"{letter} {path.stem}",
        session,
        inputs[0],
        outputs[0],
        dims.channels if isinstance(dims, Size3D) else 3,
        weights.note,
    )


def _one_of(option: str, given: Sequence[T], index: int, count: int) -> T | None:
    if len(given) not in (0, 1, count):
        raise DiagnosticError(
            Diagnostic(
                "bad-option",
                f"{option} is given {len(given)} times for {count} variants",
                remedy="give it once for all, or once for each, in their order",
            )
        )
    return given[index if len(given) > 1 else 0] if given else None


def _pictures(folder: Path) -> list[Path]:
    """The pictures of a folder by name, or the one file."""
    from designer.runtime.images import SUFFIXES

    found = [folder] if folder.is_file() else sorted(p for p in folder.glob("*") if p.suffix.lower() in SUFFIXES)
    if not found:
        raise DiagnosticError(
            Diagnostic(
                "no-pictures",
                "there are no pictures in the folder" if folder.is_dir() else "there is no such folder",
                file=str(folder),
                remedy=f"choose a folder with {', '.join(SUFFIXES[:4])} files",
            )
        )
    return found
