"""Report pages of an analysis: inputs, results, settings and machine. Images are embedded, no script is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.reports.comparison import ms_text
from app.reports.page import Page
from app.reports.provenance_table import add_machine, add_provenance
from app.reports.quality import Quality
from designer.files.settings import PATTERN
from designer.runtime.provenance import Provenance
from designer.units import dims_text

Array = NDArray[np.float32]

CHANNELS = 64  # of the inspected tensor that are shown and counted
THUMBNAIL = 128  # pixels of a channel's longer side


@dataclass(frozen=True)
class Seen:
    """The present view of an analysis. Arrays are N x C x H x W, or of another rank."""

    origin: Provenance
    inputs: Mapping[str, str] = field(default_factory=dict)  # layer: file, or PATTERN and a name
    options: Sequence[tuple[str, str, str]] = ()  # analysis layers: name, kind, summary
    outputs: Mapping[str, tuple[Array, str]] = field(default_factory=dict)  # with `analysis_view`
    inspected: tuple[str, Array] | None = None
    qualities: Mapping[str, Quality] = field(default_factory=dict)  # by output
    overview: Sequence[tuple[str, str, str, str]] = ()  # layers of a step, engine, ms, shape of the last one
    milliseconds: float = 0.0
    note: str = ""
    window: bytes = b""  # a PNG of the window


def write_analysis(path: Path, seen: Seen) -> None:
    """Write the page of an analysis (work for a thread)."""
    page = Page(f"{seen.origin.document}: analysis")
    if seen.note:
        page.text(f"Note: {seen.note}")
    page.heading("Network")
    add_provenance(page, {seen.origin.document: seen.origin})
    _add_inputs(page, seen)
    if seen.options:
        page.heading("Analysis layers")
        page.table(("layer", "kind", "set to"), seen.options)
    _add_outputs(page, seen)
    if seen.inspected is not None:
        _add_tensor(page, *seen.inspected)
    if seen.overview:
        page.heading("Network overview")
        page.table(("layers", "engine", "time (ms)", "output"), seen.overview, numbers=(2,))
        page.text(f"The run took {ms_text(seen.milliseconds)} ms; layers in one row ran together.")
    if seen.window:
        page.heading("The window")
        page.picture_inside(seen.window, "The window at the time of the report")
    add_machine(page)
    page.write(path)


@dataclass(frozen=True, slots=True)
class _Statistics:
    """Statistics of values. Mean, spread (sum of squares around the mean), low and high count only finite ones."""

    size: int
    finite: int
    zeros: int
    mean: float = 0.0
    spread: float = 0.0
    low: float = np.inf
    high: float = -np.inf

    @classmethod
    def of(cls, values: Array) -> _Statistics:
        wide = np.asarray(values, np.float64)
        zeros = int(np.count_nonzero(wide == 0))
        finite = wide[np.isfinite(wide)]
        if not finite.size:
            return cls(wide.size, 0, zeros)
        mean, spread = float(finite.mean()), float(finite.var()) * finite.size
        return cls(wide.size, finite.size, zeros, mean, spread, float(finite.min()), float(finite.max()))

    @classmethod
    def of_all(cls, parts: Sequence[_Statistics]) -> _Statistics:
        """Those of the parts together."""
        size, zeros, count = sum(p.size for p in parts), sum(p.zeros for p in parts), sum(p.finite for p in parts)
        if not count:
            return cls(size, 0, zeros)
        mean = sum(p.mean * p.finite for p in parts) / count
        spread = sum(p.spread + p.finite * (p.mean - mean) ** 2 for p in parts)
        return cls(size, count, zeros, mean, spread, min(p.low for p in parts), max(p.high for p in parts))

    def row(self, name: str) -> tuple[str, ...]:
        if not self.finite:
            return (name, "-", "-", "-", "-", "-", "100")
        figures = (self.mean, (self.spread / self.finite) ** 0.5, self.low, self.high)
        broken = 100 * (1 - self.finite / self.size)
        return (name, *(f"{v:.4g}" for v in figures), f"{100 * self.zeros / self.size:.1f}", f"{broken:.3g}")


def statistics(tensor: Array) -> list[tuple[str, ...]]:
    """Rows of mean, deviation, smallest, largest and share of zeros: the whole tensor, then each channel.

    One channel at a time is widened to 64 bits: a 64-bit copy of a large tensor would not fit into memory.
    """
    if tensor.ndim < 3:
        return [_Statistics.of(tensor).row("all")]
    parts = [_Statistics.of(channel) for item in tensor for channel in item]
    shown = parts[: min(tensor.shape[1], CHANNELS)]
    return [_Statistics.of_all(parts).row("all"), *(part.row(str(index)) for index, part in enumerate(shown))]


def _add_inputs(page: Page, seen: Seen) -> None:
    from app.reports.comparison import encoded
    from designer.graph.diagnostics import DiagnosticError
    from designer.runtime.images import TENSORS, read_image, read_npy

    if seen.inputs:
        page.heading("Inputs")
    for layer, file in seen.inputs.items():
        name = file.removeprefix(PATTERN) if file.startswith(PATTERN) else Path(file).name
        if file.startswith(PATTERN):
            page.text(f"{layer}: the pattern {name.replace('_', ' ')}")
            continue
        try:
            array = read_npy(file) if TENSORS.reads(file) else read_image(Path(file))
        except DiagnosticError as error:
            page.text(f"{layer}: {name}. It is not shown: {error.diagnostics[0].message}.")
            continue
        size = dims_text(array.shape[::-1][:2])
        if array.ndim == 4 and array.shape[1] in (1, 3):
            page.picture_inside(encoded(array), f"{layer}: {name}, {size}")
        else:
            page.text(f"{layer}: {name}, {dims_text(array.shape)}")


def _add_outputs(page: Page, seen: Seen) -> None:
    page.heading("Outputs")
    if not seen.outputs:
        page.text("The network has not run yet: there is no output.")
    for layer, (array, kind) in seen.outputs.items():
        shape = dims_text(array.shape)
        if array.ndim == 4:
            page.picture_inside(_picture(array, kind), f"{layer}: {shape}")
        else:
            page.text(f"{layer}: {shape}")
            page.table(("", "mean", "deviation", "smallest", "largest", "zeros (%)", "NaN or infinite (%)"),
                       statistics(array), numbers=range(1, 7))  # fmt: skip
        if layer in seen.qualities:
            page.text(f"Measured without analysis layers: {seen.qualities[layer].text()}.")


def _add_tensor(page: Page, source: str, tensor: Array) -> None:
    page.heading(f"Inspected: {source}")
    page.text(dims_text(tensor.shape))
    if tensor.ndim == 4:
        count = min(tensor.shape[1], CHANNELS)
        of = f"the first {count} of {tensor.shape[1]} channels" if count < tensor.shape[1] else f"{count} channels"
        if len(tensor) > 1:
            of += f" of the first of {len(tensor)} images"
        page.picture_inside(_sheet(tensor), f"{of}; green above zero, red below, brightest at the largest magnitude")
    headings = ("channel", "mean", "deviation", "smallest", "largest", "zeros (%)", "NaN or infinite (%)")
    page.table(headings, statistics(tensor), numbers=range(1, 7))


def _sheet(tensor: Array) -> bytes:
    """The channels next to each other, downscaled by block means."""
    channels = tensor[0, :CHANNELS]
    block = max(1, -(-max(channels.shape[1:]) // THUMBNAIL))
    down, across = (min(block, size) for size in channels.shape[1:])  # a tensor can be less high than a block
    height, width = channels.shape[1] // down, channels.shape[2] // across
    small = channels[:, : height * down, : width * across].reshape(len(channels), height, down, width, across)
    small = small.mean((2, 4))
    columns = min(8, len(small))
    rows = -(-len(small) // columns)
    sheet = np.zeros((rows * (height + 2), columns * (width + 2)), np.float32)
    for index, channel in enumerate(small):
        row, column = divmod(index, columns)
        sheet[row * (height + 2) :][:height, column * (width + 2) :][:, :width] = channel
    return _signed(sheet)


def _picture(array: Array, kind: str) -> bytes:
    from app.reports.comparison import encoded

    return _signed(array[0, 0]) if kind == "tensor" else encoded(array)


def _signed(values: Array) -> bytes:
    from designer.runtime.images import encode_image

    values = np.nan_to_num(values)
    scaled = values / max(float(np.abs(values).max(initial=0.0)), 1e-12)
    colours = np.stack([np.clip(-scaled, 0, 1), np.clip(scaled, 0, 1), np.zeros_like(scaled)])
    return encode_image(colours[None].astype(np.float32))
