"""Ideas for shapes that do not match: inserted layers, other features, other windows."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from designer.graph.model import Layer
from designer.graph.types import DataType, TensorType
from designer.operators.fix_case import Case, ConnectedInput, Idea, InsertedLayer
from designer.operators.fix_links import drops
from designer.operators.fix_texts import resets
from designer.texts import tr

CODES = ("shape-mismatch", "empty-tensor")
MOST_FACTOR = 64  # of an upsampling or pooling that is suggested
UPSTREAM = 12  # layers that are searched for one that sets the number of channels
_MULTIPLES = ("block_size", "multiple", "patch_size")


def ideas(case: Case) -> Iterator[Idea]:
    """Ideas for a layer whose inputs do not match each other, its parameters, or its ports."""
    layer = case.layer
    if layer is None or case.finding.code not in CODES:
        return
    connected = [a for a in case.connected(layer) if a.type is not None]
    if len(connected) > 1:
        yield from _match_sizes(case, layer, connected)
        yield from _match_channels(case, layer, connected)
        yield from _match_types(case, layer, connected)
    yield from _ports(case, layer, connected)
    yield from _windows(case, layer, connected)
    yield from _numbers(case, layer, connected)
    yield from _multiples(case, layer, connected)
    yield from resets(case, layer)
    yield from drops(case, layer)


def _spatial(tensor: TensorType | None) -> tuple[int, int] | None:
    """(height, width) of an image if its size is known."""
    if tensor is None or tensor.rank != 4:
        return None
    height, width = tensor.shape[2:]
    return (height, width) if isinstance(height, int) and isinstance(width, int) else None


# --- inputs of different sizes -----------------------------------------------------------------------------------


def _match_sizes(case: Case, layer: Layer, connected: list[ConnectedInput]) -> Iterator[Idea]:
    """Bring images of different height and width to one size."""
    sizes = {a.at: size for a in connected if (size := _spatial(a.type)) is not None}
    if len(set(sizes.values())) < 2:
        return
    images = [a for a in connected if a.at in sizes]
    names = {a.at: f"'{a.source}'" for a in images}
    least = min(images, key=lambda a: prod(sizes[a.at]))
    most = max(images, key=lambda a: prod(sizes[a.at]))
    yield from _scale(case, layer, images, sizes, names)
    larger = [a for a in images if sizes[a.at] != sizes[least.at]]
    if all(_covers(sizes[a.at], sizes[least.at]) for a in larger):
        crops = [InsertedLayer(a.at, "crop", {}, (least.source,)) for a in larger]
        what = ", ".join(names[a.at] for a in larger)
        yield Idea(
            tr("Crop {what} to the size of {names}", what=what, names=names[least.at]), case.insert(layer, *crops)
        )
    smaller = [a for a in images if sizes[a.at] != sizes[most.at]]
    if all(_covers(sizes[most.at], sizes[a.at]) for a in smaller):
        pads = [InsertedLayer(a.at, "padding", _border(sizes[a.at], sizes[most.at])) for a in smaller]
        what = ", ".join(names[a.at] for a in smaller)
        yield Idea(tr("Pad {what} to the size of {names}", what=what, names=names[most.at]), case.insert(layer, *pads))
    for target in (most, least):
        height, width = sizes[target.at]
        others = [a for a in images if sizes[a.at] != sizes[target.at]]
        resized = [InsertedLayer(a.at, "resize", {"size": f"{width}x{height}"}) for a in others]
        what = ", ".join(names[a.at] for a in others)
        yield Idea(
            tr("Resize {what} to {width}x{height}", what=what, width=width, height=height), case.insert(layer, *resized)
        )


def _scale(
    case: Case, layer: Layer, images: list[ConnectedInput], sizes: dict[int, tuple[int, int]], names: dict[int, str]
) -> Iterator[Idea]:
    """If one size is a multiple of the other: upsample the small image, or pool the large one."""
    first, *rest = images
    for one in rest:
        (h1, w1), (h2, w2) = sizes[first.at], sizes[one.at]
        if (h1, w1) == (h2, w2):
            continue
        large, small = (first, one) if h1 * w1 > h2 * w2 else (one, first)
        (high, wide), (low, narrow) = sizes[large.at], sizes[small.at]
        if high % low or wide % narrow or max(high // low, wide // narrow) > MOST_FACTOR:
            continue
        factor = f"{wide // narrow}x{high // low}"
        cls = case.cls(layer)
        if cls is not None and cls.parameter("factor") is not None:
            yield Idea(tr("Set factor to {factor}", factor=factor), case.set_param(layer, "factor", factor))
        upsampled = case.insert(layer, InsertedLayer(small.at, "upsample", {"factor": factor}))
        yield Idea(tr("Upsample {names} by {factor}", names=names[small.at], factor=factor), upsampled)
        pooled = case.insert(layer, InsertedLayer(large.at, "pooling", {"size": factor, "stride": factor}))
        yield Idea(tr("Pool {names} by {factor}", names=names[large.at], factor=factor), pooled)


def _covers(large: tuple[int, int], small: tuple[int, int]) -> bool:
    return large[0] >= small[0] and large[1] >= small[1]


def _border(size: tuple[int, int], wanted: tuple[int, int]) -> dict[str, str]:
    """The padding that extends a size to another, the smaller half at the top and left."""
    rows, columns = wanted[0] - size[0], wanted[1] - size[1]
    return {
        "mode": "constant",
        "top": str(rows // 2),
        "bottom": str(rows - rows // 2),
        "left": str(columns // 2),
        "right": str(columns - columns // 2),
    }


# --- inputs of different channels or types -----------------------------------------------------------------------


def _match_channels(case: Case, layer: Layer, connected: list[ConnectedInput]) -> Iterator[Idea]:
    """Give one input as many channels as another: through the features of its producer, or an inserted convolution."""
    pairs = list(_other_channels(connected))
    for target, link, wanted in pairs:
        maker = _maker(case, link.source.layer)
        if maker is not None:
            title = tr(
                "Set the features of '{name}' to {wanted}, as '{source}' has",
                name=maker.name,
                wanted=wanted,
                source=target.source,
            )
            yield Idea(title, case.set_param(maker, "features", str(wanted)))
    for _, link, wanted in pairs:
        rank = link.type.rank if link.type is not None else 0
        if rank == 4:
            params = {"features": str(wanted), "kernel": "1x1"}
            title = tr(
                "Insert a 1x1 convolution that gives '{source}' {wanted} channels", source=link.source, wanted=wanted
            )
            yield Idea(title, case.insert(layer, InsertedLayer(link.at, "convolution", params)))
        elif rank == 2:
            title = tr(
                "Insert a fully connected layer that gives '{source}' {wanted} values",
                source=link.source,
                wanted=wanted,
            )
            yield Idea(title, case.insert(layer, InsertedLayer(link.at, "fully_connected", {"features": str(wanted)})))


def _other_channels(connected: list[ConnectedInput]) -> Iterator[tuple[ConnectedInput, ConnectedInput, int]]:
    """Pairs of inputs with different numbers of channels, and the number of the first one."""
    known = [(a, c) for a in connected if (c := _channels(a.type)) is not None]
    for target, wanted in known:
        yield from ((target, link, wanted) for link, present in known if present != wanted)


def _channels(tensor: TensorType | None) -> int | None:
    if tensor is None or tensor.rank < 2:
        return None
    count = tensor.shape[1]
    return count if isinstance(count, int) else None


def _maker(case: Case, name: str) -> Layer | None:
    """The layer upstream that sets the number of output channels of `name`."""
    for _ in range(UPSTREAM):
        layer = case.graph.get(name)
        cls = case.cls(layer) if layer is not None else None
        if layer is None or cls is None:
            return None
        if cls.parameter("features") is not None:
            return layer
        source = layer.inputs[0] if layer.inputs else None
        if source is None:
            return None
        name = source.layer
    return None


def _match_types(case: Case, layer: Layer, connected: list[ConnectedInput]) -> Iterator[Idea]:
    for target in connected:
        for a in connected:
            if a.type is not None and target.type is not None and a.type.dtype is not target.type.dtype:
                yield _cast(case, layer, a, target.type.dtype)


def _cast(case: Case, layer: Layer, link: ConnectedInput, wanted: DataType) -> Idea:
    title = tr("Convert '{source}' to {value}", source=link.source, value=wanted.value)
    return Idea(title, case.insert(layer, InsertedLayer(link.at, "cast", {"target": wanted.value})))


# --- one input that does not fit its port ------------------------------------------------------------------------


def _ports(case: Case, layer: Layer, connected: list[ConnectedInput]) -> Iterator[Idea]:
    """Another rank or element type for an input that a port rejects."""
    ports = case.ports(layer)
    for link in connected:
        if not ports or link.type is None:
            continue
        port = ports[min(link.at, len(ports) - 1)]
        if port.dtypes and link.type.dtype not in port.dtypes:
            for wanted in port.dtypes:
                yield _cast(case, layer, link, wanted)
        for rank in port.ranks:
            if link.type.rank not in port.ranks:
                yield from _other_rank(case, layer, link, link.type, rank)


def _other_rank(case: Case, layer: Layer, link: ConnectedInput, present: TensorType, rank: int) -> Iterator[Idea]:
    """Layers that give an input another rank."""

    def insert(title: str, kind: str, **params: str) -> Idea:
        return Idea(title, case.insert(layer, InsertedLayer(link.at, kind, params)))

    source = f"'{link.source}'"
    more = rank - present.rank
    if more < 0:
        axes = [i for i, d in enumerate(present.shape) if d == 1 and i][:-more]
        if len(axes) == -more:
            yield insert(
                tr("Squeeze {source} to rank {rank}", source=source, rank=rank),
                "squeeze",
                axes=",".join(map(str, axes)),
            )
        yield insert(
            tr("Flatten {source} to rank {rank}", source=source, rank=rank),
            "flatten",
            start_axis=str(rank - 1),
            end_axis="-1",
        )
    elif more == 1:
        yield insert(tr("Give {source} a new axis 1", source=source), "unsqueeze", axis="1")
    elif present.rank >= 2 and all(isinstance(d, int) for d in present.shape[1:]):
        shape = ",".join([*map(str, present.shape[1:]), *["1"] * more])
        yield insert(tr("Reshape {source} to rank {rank}", source=source, rank=rank), "reshape", shape=shape)


# --- windows, numbers, multiples ---------------------------------------------------------------------------------


def _windows(case: Case, layer: Layer, connected: list[ConnectedInput]) -> Iterator[Idea]:
    """A smaller window, or "same" padding, for an image that is smaller than the window."""
    size = _spatial(connected[0].type) if connected else None
    cls = case.cls(layer)
    if size is None or cls is None:
        return
    operator = case.operator(layer.name)
    values = operator.values() if operator is not None else {}
    if "padding" in values and "same" in (p.info.choices if (p := cls.parameter("padding")) is not None else ()):
        yield Idea(tr("Set padding to same"), case.set_param(layer, "padding", "same"))
    height, width = size
    for name in ("kernel", "size"):
        window = str(values.get(name, ""))
        parts = window.split("x")
        if len(parts) == 2 and all(p.isdigit() for p in parts):
            fitting = f"{min(int(parts[0]), width)}x{min(int(parts[1]), height)}"
            if fitting != window:
                yield Idea(
                    tr("Set {name} to {fitting}", name=name, fitting=fitting), case.set_param(layer, name, fitting)
                )


def _numbers(case: Case, layer: Layer, connected: list[ConnectedInput]) -> Iterator[Idea]:
    """The nearest valid number: groups that divide the channels, an axis that exists."""
    operator, tensor = case.operator(layer.name), connected[0].type if connected else None
    if operator is None or tensor is None:
        return
    channels = _channels(tensor)
    for name, value in operator.values().items():
        if isinstance(value, bool) or not isinstance(value, int):
            continue
        near: list[int] = []
        if name.startswith("axis") or name.endswith("axis"):
            near = sorted(range(-tensor.rank, tensor.rank), key=lambda n, v=value: abs(n - v))[:2]  # type: ignore[misc]
        elif channels is not None and value > 0 and ("group" in name or "head" in name or "part" in name):
            divisors = [n for n in range(1, min(channels, 4096) + 1) if channels % n == 0]
            near = sorted(divisors, key=lambda n, v=value: abs(n - v))[:2]  # type: ignore[misc]
        elif f"the {name.replace('_', ' ')} " in case.finding.message:
            near = [value + 1, value - 1]  # odd where even breaks the rule
        for number in near:
            yield Idea(
                tr("Set {replace} to {number}", replace=name.replace("_", " "), number=number),
                case.set_param(layer, name, str(number)),
            )
        if name == "features" and "groups" in operator.values():
            groups = operator.values()["groups"]
            if isinstance(groups, int) and groups > 1 and value % groups:
                number = -(-value // groups) * groups
                yield Idea(tr("Set features to {number}", number=number), case.set_param(layer, name, str(number)))


def _multiples(case: Case, layer: Layer, connected: list[ConnectedInput]) -> Iterator[Idea]:
    """Pad an image to a multiple of the blocks that it is divided into."""
    operator = case.operator(layer.name)
    for link in connected:
        if operator is None or _spatial(link.type) is None:
            continue
        for name in _MULTIPLES:
            value = operator.values().get(name)
            if isinstance(value, int) and value > 1:
                padded = case.insert(
                    layer, InsertedLayer(link.at, "pad_to_multiple", {"multiple": str(value), "mode": "zeros"})
                )
                yield Idea(tr("Pad '{source}' to a multiple of {value}", source=link.source, value=value), padded)
