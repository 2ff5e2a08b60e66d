"""Runs parts of a network in tiles, for images whose tensors do not fit into memory.

Each tile is cut out with the surrounding pixels that its result depends on (reach.py), at multiples of all strides inside.
Each cut is verified before it is used: every required pixel of every layer must exist in the cut and read the same pixels
as in the whole image. Cuts grow until this holds. Analysis layers always get whole tensors, so noise is drawn only once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, lcm, prod
from typing import Protocol

import numpy as np

from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.graph.types import Size3D
from designer.operators.api import Role
from designer.runtime.api import AUTO, ONE_TILE, Array, RunResult, Tensor
from designer.runtime.finite import NonFinite
from designer.runtime.layer_reach import layer_reach, piecewise
from designer.runtime.machine import free_memory
from designer.runtime.network import inputs_of, role_of, type_of
from designer.runtime.plan import PartStep
from designer.runtime.reach import Positions, Reach, UnknownReachError
from designer.texts import tr
from designer.units import binary

# Memory of an engine relative to its tensors (measured): packed weights, copies in other layouts, what an arena keeps.
SPARE = 2.6
SHARE = 0.6  # part of the free memory that a run can use
WHOLE = 2 << 30  # bytes above which a part runs in tiles although it fits: new memory costs more than overlaps
ALWAYS_WHOLE = 128 << 20  # bytes of a part for which the free memory is not even queried
USUAL = 1 << 30  # bytes of a tile if nothing else limits it
WIDE = 8  # minimum ratio of a tile's side to the surrounding pixels: overlaps then cost at most a quarter
PARTS = 4  # parts whose tilings are cached
SMALLEST = 64  # smallest side of a tile, in pixels

Window = tuple[int, int]  # start, end (exclusive)


@dataclass(frozen=True, slots=True)
class ImageTile:
    """A tile along one axis, in pixels of the part's first image: the cut, and its core, whose results are used."""

    cut: Window
    core: Window


@dataclass(frozen=True, slots=True)
class Walk:
    """Along one axis: the required pixels of each tensor, and what each output of a layer (by index) reads for them."""

    needs: dict[Source, Positions]
    reads: dict[tuple[str, int], tuple[Source, Reach]]


class TileRunner(Protocol):
    """Runs the network of one tile, as a `Session` does."""

    def set_input(self, layer: str, array: Array, *, is_image: bool) -> None: ...
    def run(self, capture: Sequence[Source]) -> RunResult: ...
    def invalidate(self) -> None: ...


class Tiling:
    """Runs one part in tiles. Raises DiagnosticError ("not-tileable") that names the layer that prevents it."""

    def __init__(self, inference: Inference, step: PartStep) -> None:
        self.inference, self.step = inference, step
        feeds = [feed for feed in step.part.feeds if self._is_image(feed)]
        if len(feeds) < len(step.part.feeds) or not feeds:
            raise _refused(step.part.layers[0], tr("it reads a tensor that is not an image"))
        images = [feed for feed in feeds if 1 not in self._extent(feed)]
        self.base = self._extent((images or feeds)[0])
        self.single: tuple[set[Source], set[Source]] = (
            set(),
            set(),
        )  # by axis: one pixel for the whole image, in every tile
        self.scales = [self._scales(axis) for axis in (0, 1)]  # base pixels per pixel of every tensor
        self._small: dict[tuple[int, ...], Inference] = {}  # the part at the sizes of a cut

    # --- sizes ---------------------------------------------------------------------------------------------------

    def side_for(self, limit: float, batch: int) -> int:
        """The side of a tile, in pixels, for which the part needs at most `limit` bytes.

        It needs not much more than USUAL unless overlaps would take most of the time. Raises DiagnosticError
        ("out-of-memory") if there is no such side.
        """
        whole = peak_bytes(self.inference, self.step, batch)
        per_pixel = whole / prod(self.base)
        unit = lcm(*(self.unit(axis) for axis in (0, 1)))
        around = max(sum(self.around(axis)) for axis in (0, 1))
        side = int((limit / per_pixel) ** 0.5) - around
        side -= side % unit
        if side < min(SMALLEST, *self.base):
            raise DiagnosticError.of(
                "out-of-memory",
                tr(
                    "the network needs about {needed} for this image, and even a tile of it with the {around} "
                    "surrounding pixels that it depends on needs more than the available {limit}",
                    needed=binary(whole),
                    around=around,
                    limit=binary(limit),
                ),
                remedy=tr("use a smaller image, or close other programs"),
            )
        usual = max(int((USUAL / per_pixel) ** 0.5) - around, WIDE * around, SMALLEST)
        return min(side, ceil(usual / unit) * unit)

    def unit(self, axis: int) -> int:
        """Cuts must be at multiples of this: of all strides of the part."""
        return lcm(*(scale.numerator for scale in self.scales[axis].values()))

    def around(self, axis: int) -> tuple[int, int]:
        """Pixels before and after a tile that its results depend on, in the middle of the image."""
        before = behind = 0
        for source in self.step.wanted:
            if source in self.single[axis]:
                continue
            scale, size = self.scales[axis][source], self._extent(source)[axis]
            place = size // 2
            walk = self._walk(axis, {source: np.array([place])})
            for feed in self._images(axis):
                if (places := walk.needs.get(feed)) is not None:
                    here, step = place * scale, self.scales[axis][feed]
                    before = max(before, ceil(here - int(places[0]) * step))
                    behind = max(behind, ceil((int(places[-1]) + 1) * step - here - scale))
        return before, behind

    def tiles(self, axis: int, side: int) -> list[ImageTile]:
        """The tiles along an axis; cuts have the same size if the border permits, so that they share what is compiled."""
        size, unit = self.base[axis], self.unit(axis)
        count = ceil(size / max(unit, side - side % unit))
        side = ceil(size / count / unit) * unit  # no narrow rest, whose cut would be as large as the others
        cores = [(start, min(start + side, size)) for start in range(0, size, side)]
        cores = [core for core in cores if self._wanted(axis, core)]  # a crop can leave nothing of a tile
        walks = [self._walk(axis, self._wanted(axis, core)) for core in cores]
        cuts = [self._cut(axis, core, walk) for core, walk in zip(cores, walks, strict=True)]
        usual = max(end - start for start, end in cuts)
        found = []
        for core, walk, (start, end) in zip(cores, walks, cuts, strict=True):
            last = start + usual >= size
            alike = (max(0, size - usual - (size - usual) % unit), size) if last else (start, start + usual)
            found.append(ImageTile((start, end) if self._seam(axis, alike, walk) else alike, core))
        return found

    def _wanted(self, axis: int, core: Window) -> dict[Source, Positions]:
        regions = {source: self.region(source, axis, core) for source in self.step.wanted}
        return {source: np.arange(start, end) for source, (start, end) in regions.items() if start < end}

    def _cut(self, axis: int, core: Window, walk: Walk) -> Window:
        """The smallest cut found that gives the correct results in `core`."""
        size, unit = self.base[axis], self.unit(axis)
        low, high = core
        for feed in self._images(axis):
            if (places := walk.needs.get(feed)) is not None:
                step = self.scales[axis][feed]
                low = min(low, int(places[0] * step))
                high = max(high, ceil((int(places[-1]) + 1) * step))
        low, high = max(0, low - low % unit), min(size, high + -high % unit)
        more, longest = unit, max(4 * (high - low), SMALLEST)
        while (low, high) != (0, size) and (layer := self._seam(axis, (low, high), walk)):
            if high - low > longest:
                raise _refused(layer, tr("its tiles would not match"))
            low, high = max(0, (low - 1) // more * more), min(size, (high // more + 1) * more)
            more *= 2  # larger multiples, which some layers need
        return low, high

    def _seam(self, axis: int, cut: Window, walk: Walk) -> str:
        """A layer that would compute a required pixel differently if `cut` ran separately; "" if there is none."""
        small = self._inference_of(axis, cut)
        for name in self.step.part.layers:
            if small.states[name].outputs is None:
                return name
        for source, places in walk.needs.items():
            here = Source(_name(source)) if source in self.step.part.feeds else source
            offset, size = self._offset(source, axis, cut), self._extent(source)[axis]
            length = type_of(small, here).concrete(1)[2 + axis]
            if offset + length > size or places[0] < offset or places[-1] >= offset + length:
                return source.layer
        for (name, index), (source, whole) in walk.reads.items():
            places = walk.needs[source] - self._offset(source, axis, cut)
            found = layer_reach(small, name, index, axis, places)
            reads = inputs_of(self.inference, self.inference.graph[name])
            if not _same_reads(whole, found, [self._offset(read, axis, cut) for read in reads]):
                return name
        return ""

    def _offset(self, source: Source, axis: int, cut: Window) -> int:
        """The position in the whole tensor at which the tensor of a cut begins."""
        return 0 if source in self.single[axis] else int(cut[0] / self.scales[axis][source])

    def _images(self, axis: int) -> list[Source]:
        """The feeds of which a tile gets a part."""
        return [feed for feed in self.step.part.feeds if feed not in self.single[axis]]

    def _inference_of(self, axis: int, cut: Window) -> Inference:
        """The part with the sizes of a cut along one axis."""
        cuts = (cut, (0, self.base[1])) if axis == 0 else ((0, self.base[0]), cut)
        windows = [self._within(feed, a, cuts[a]) for feed in self.step.part.feeds for a in (0, 1)]
        lengths = tuple(end - start for start, end in windows)
        if lengths not in self._small:
            self._small[lengths] = Inference(self._tile_graph(cuts), self.inference.lookup)
        return self._small[lengths]

    def region(self, source: Source, axis: int, core: Window) -> Window:
        """The window of a wanted tensor that a tile computes."""
        size, scale = self._extent(source)[axis], self.scales[axis][source]
        if source in self.single[axis]:
            return 0, size
        start = min(size, int(core[0] / scale))
        return start, size if core[1] == self.base[axis] else min(size, int(core[1] / scale))

    # --- running -------------------------------------------------------------------------------------------------

    def run(
        self,
        feeds: Mapping[Source, Tensor],
        side: int,
        runner: Callable[[Graph], TileRunner],
        report: Callable[[int, int], None],
        hidden: MutableMapping[str, NonFinite],
    ) -> dict[Source, Tensor]:
        """The wanted tensors, assembled from tiles of that side. Calls `report(done, total)` before each tile.

        Adds to `hidden` what the first tile with NaN or infinite values in a layer reports.
        """
        batch = max(len(array) for array in feeds.values())
        whole = {
            source: np.empty(type_of(self.inference, source).concrete(batch), np.float32) for source in self.step.wanted
        }
        rows, columns = (self.tiles(axis, side) for axis in (0, 1))
        small: TileRunner | None = None
        total = len(rows) * len(columns)
        for number, (row, column) in enumerate((r, c) for r in rows for c in columns):
            report(number, total)
            cuts = (row.cut, column.cut)
            small = small or runner(self._tile_graph(cuts))
            for feed, array in feeds.items():
                places = tuple(self._within(feed, axis, cuts[axis]) for axis in (0, 1))
                small.set_input(_name(feed), array[:, :, slice(*places[0]), slice(*places[1])], is_image=False)
            try:
                result = small.run([_kept(source) for source in self.step.wanted])
            except DiagnosticError as error:
                raise DiagnosticError(
                    replace(d, message=f"in tiles: {d.message}") for d in error.diagnostics
                ) from error
            small.invalidate()
            for source in self.step.wanted:
                self._paste(whole[source], result.captures[_kept(source)], source, (row, column))
            for layer, found in result.hidden.items():
                hidden.setdefault(layer, found)
        return whole

    def _paste(self, whole: Tensor, piece: Tensor, source: Source, tiles: tuple[ImageTile, ImageTile]) -> None:
        to, of = [], []
        for axis, tile in enumerate(tiles):
            start, end = self.region(source, axis, tile.core)
            offset = self._offset(source, axis, tile.cut)
            if end - offset > piece.shape[2 + axis]:
                raise _refused(source.layer, tr("its size does not follow from that of the image"))
            to.append(slice(start, end))
            of.append(slice(start - offset, end - offset))
        whole[:, :, to[0], to[1]] = piece[:, :, of[0], of[1]]

    def _within(self, source: Source, axis: int, cut: Window) -> Window:
        scale, size = self.scales[axis][source], self._extent(source)[axis]
        if source in self.single[axis]:
            return 0, size
        return int(cut[0] / scale), size if cut[1] == self.base[axis] else int(cut[1] / scale)

    def _tile_graph(self, cuts: tuple[Window, Window]) -> Graph:
        """The part as a separate network whose inputs have the size of a tile."""
        graph = self.inference.graph
        layers = []
        for feed in self.step.part.feeds:
            (top, bottom), (left, right) = (self._within(feed, axis, cuts[axis]) for axis in (0, 1))
            kind = type_of(self.inference, feed)
            images, channels = kind.shape[0], kind.concrete(1)[1]
            dims = str(Size3D(right - left, bottom - top, channels))
            batch = str(images) if isinstance(images, int) else "0"
            layers.append(Layer(_name(feed), "input", params={"dims": dims, "tiling": "0", "batch": batch}))
        names = {feed: Source(_name(feed)) for feed in self.step.part.feeds}
        for name in self.step.part.layers:
            layer = graph[name]
            reads = iter(inputs_of(self.inference, layer))
            sources = [None if s is None else next(reads) for s in layer.inputs]
            layers.append(replace(layer, inputs=tuple(names.get(s, s) if s is not None else None for s in sources)))
        layers += [Layer(f"tile of {s}", "output", inputs=(names.get(s, s),)) for s in self.step.wanted]
        return Graph(layers)

    # --- the part's geometry -------------------------------------------------------------------------------------

    def _is_image(self, source: Source) -> bool:
        return type_of(self.inference, source).rank == 4

    def _extent(self, source: Source) -> tuple[int, int]:
        """Height and width. Raises DiagnosticError for a tensor that is not an image."""
        if not self._is_image(source):
            raise _refused(source.layer, tr("its output is not an image"))
        shape = type_of(self.inference, source).concrete(1)
        return shape[2], shape[3]

    def _walk(self, axis: int, wanted: Mapping[Source, Positions]) -> Walk:
        """The pixels of every tensor of the part that `wanted` depends on."""
        walk = Walk(dict(wanted), {})
        for name in reversed(self.step.part.layers):
            for index, source in enumerate(self.inference.tensors(name)):
                if source not in walk.needs:
                    continue
                if source in self.single[axis]:  # every tile computes it
                    reads = inputs_of(self.inference, self.inference.graph[name])
                    walk.needs.update(dict.fromkeys(reads, np.zeros(1, np.int64)))
                    continue
                found = layer_reach(self.inference, name, index, axis, walk.needs[source])
                walk.reads[name, index] = (source, found)
                reads = inputs_of(self.inference, self.inference.graph[name])
                for port, places in found.places.items():
                    read, edges = reads[port], found.edges.get(port)
                    places = places if edges is None else np.union1d(places, edges)
                    walk.needs[read] = np.union1d(walk.needs[read], places) if read in walk.needs else places
        return walk

    def _scales(self, axis: int) -> dict[Source, Fraction]:
        """The scale of every tensor: base pixels per pixel, computed layer by layer from the steps of reach.py."""
        single = self.single[axis]
        single.update(f for f in self.step.part.feeds if self._extent(f)[axis] == 1 < self.base[axis])
        scales = {
            feed: Fraction(1) if feed in single else Fraction(self.base[axis], self._extent(feed)[axis])
            for feed in self.step.part.feeds
        }
        for name in self.step.part.layers:
            reads = inputs_of(self.inference, self.inference.graph[name])
            for index, source in enumerate(self.inference.tensors(name)):
                if single.issuperset(reads) and self._extent(source)[axis] == 1:
                    single.add(source)
                    scales[source] = Fraction(1)
                elif role_of(self.inference, name) is Role.OUTPUT:
                    scales[source] = scales[reads[0]]
                else:
                    scales[source] = self._scale(name, index, axis, [scales[read] for read in reads])
        return scales

    def _scale(self, name: str, index: int, axis: int, scales: Sequence[Fraction]) -> Fraction:
        """The scale of an output of a layer whose inputs have `scales`."""
        extent = self._extent(self.inference.tensors(name)[index])
        try:
            found = layer_reach(self.inference, name, index, axis, np.arange(extent[axis]))
        except UnknownReachError:
            raise _refused(name, tr("its receptive field is unknown")) from None
        if found.whole:
            raise _refused(name, tr("it reads the whole image at once"))
        if reason := piecewise(self.inference, name):
            raise _refused(name, reason)
        steps = {scales[port] * step for port, step in found.steps.items()}
        if len(steps) > 1:
            raise _refused(name, tr("it combines images whose sizes are not multiples of each other"))
        if not steps and extent != (1, 1):
            raise _refused(name, tr("its output size does not depend on its input"))
        return next(iter(steps), Fraction(1))


def peak_bytes(inference: Inference, step: PartStep, batch: int) -> float:
    """An estimate of the bytes that a run of the part needs: the tensors that exist at the same time, times `SPARE`."""
    last: dict[str, int] = {}
    for number, name in enumerate(step.part.layers):
        for source in inputs_of(inference, inference.graph[name]):
            last[source.layer] = number
    kept = {source.layer for source in step.wanted}
    held: dict[str, int] = {}
    most = present = 0
    for number, name in enumerate(step.part.layers):
        held[name] = sum(4 * prod(type_of(inference, s).concrete(batch)) for s in inference.tensors(name))
        present += held[name]
        most = max(most, present)
        read = {source.layer for source in inputs_of(inference, inference.graph[name])}
        for gone in (read | {name}) & held.keys() - kept:  # only these can have had their last reader just now
            if last.get(gone, -1) <= number:
                present -= held.pop(gone)
    return most * SPARE


class Tilings:
    """Decides which parts of a session run in tiles. `tile` is as in `RunOptions`; `memory` 0 means the free memory."""

    def __init__(self, inference: Inference, tile: int, memory: int) -> None:
        self._inference, self._tile, self._memory = inference, tile, memory
        self._known: dict[str, Tiling | DiagnosticError] = {}

    def of(self, step: PartStep, key: str, batch: int) -> tuple[Tiling, int] | None:
        """The tiling of a part and the side of its tiles; None if it runs whole. `key` identifies the part and its sizes."""
        automatic = self._tile == AUTO
        needed = peak_bytes(self._inference, step, batch) if automatic else 0
        if self._tile in (0, ONE_TILE) or (automatic and not self._memory and needed <= ALWAYS_WHOLE):
            return None
        limit = self._memory or free_memory() * SHARE
        if automatic and needed <= min(limit, WHOLE):
            return None
        if key not in self._known:
            while len(self._known) >= PARTS:
                self._known.pop(next(iter(self._known)))
            self._known[key] = self._make(step)
        known = self._known[key]
        if isinstance(known, DiagnosticError):
            if not automatic:
                raise known
            self._check_whole(step, batch, known)
            return None
        side = known.side_for(limit, batch) if automatic else self._tile
        return (known, side) if side < max(known.base) else None

    def _make(self, step: PartStep) -> Tiling | DiagnosticError:
        try:
            return Tiling(self._inference, step)
        except DiagnosticError as error:
            return error

    def _check_whole(self, step: PartStep, batch: int, refusal: DiagnosticError) -> None:
        """Raise DiagnosticError if a part that cannot run in tiles does not fit into memory as a whole either."""
        needed, free = peak_bytes(self._inference, step, batch) / SPARE, self._memory or free_memory()
        if needed > free:
            (found,) = refusal.diagnostics
            sizes = f"it needs about {binary(needed)}, {binary(free)} are free"
            raise DiagnosticError(replace(found, code="out-of-memory", message=f"{found.message}; {sizes}"))


def _same_reads(whole: Reach, cut: Reach, offsets: Sequence[int]) -> bool:
    """Whether a cut reads the same pixels as the whole image; the inputs of the cut begin at `offsets`."""
    return all(
        mine.keys() == theirs.keys()
        and all(np.array_equal(places, theirs[port] + offsets[port]) for port, places in mine.items())
        for mine, theirs in ((whole.places, cut.places), (whole.edges, cut.edges))
    )


def _name(feed: Source) -> str:
    return f"{feed.layer} {feed.port}" if feed.port else feed.layer


def _kept(source: Source) -> Source:
    return Source(f"tile of {source}")


def _refused(layer: str, why: str) -> DiagnosticError:
    return DiagnosticError.of(
        "not-tileable",
        tr("the image cannot be run in tiles because of '{layer}': {why}", layer=layer, why=why),
        layer=layer,
        remedy=tr("use a smaller image, or a machine with more memory"),
    )
