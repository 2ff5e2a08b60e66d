"""Advice from a measured run: what to change, the value behind it, the saving that is predicted, and the edit that does it.

Each rule is one function. Rules only speak about layers that matter, and a saving below 1 % of the network is left out. After
an edit, `measured_saving` compares the prediction with a new run. An emulated run takes other times than its formats do, so it has no
advice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

from designer.files.settings import DEFAULT_ENGINE
from designer.graph.commands import replace_layers, set_params, set_settings
from designer.graph.edits import Edit
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.graph.types import Size2D
from designer.profiling.difference import RowDifference, difference
from designer.profiling.quantities import ValueSource
from designer.profiling.schema import OperatorProfile, ProfileRun
from designer.profiling.sweep import Sweep, images_per_second
from designer.runtime.engine_registry import default_engines
from designer.texts import tr
from designer.units import duration, percent, quantity

LEAST = 0.01  # share of the network that advice must save
HALF = ("fp16", "bf16")
BLOCK = 8  # channels that Tensor Cores process together
ELEMENT_WISE = ("element_wise", "activation", "batch_normalization", "scale_shift", "linear_blend", "unary", "clip")
LAUNCH_SHARE = 0.3
GAIN = 1.15  # of the throughput at a larger batch


@dataclass(frozen=True)
class Advice:
    """One finding. `saving_ms` is predicted by the rule in `reason`, or that of another run that was measured. `edit` applies it as one
    undo step; `fold` names a batch normalization that is applied to the weights of the layer before it, which changes the weights too."""

    rule: str
    layers: tuple[str, ...]
    message: str
    remedy: str
    saving_ms: float
    reason: str
    edit: Edit | None = None
    fold: str = ""
    source: ValueSource = ValueSource.MODELLED


@dataclass(frozen=True)
class Advisable:
    """A run and the document it is of. Of `others`, only measured runs of the same network count; `settings` are those of the document."""

    graph: Graph
    run: ProfileRun
    others: Sequence[ProfileRun] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def half_possible(self) -> bool:
        return self.run.device != "cpu"

    @property
    def emulated(self) -> bool:
        """Whether results were rounded to their formats instead of computed in them."""
        engine = default_engines().engines.get(self.run.engine)
        return engine is not None and bool(engine.formats)

    def rows(self, *types: str) -> Iterator[tuple[OperatorProfile, Layer]]:
        """Rows of a single layer of the document with one of the types."""
        for row in self.run.operators:
            layer = self.graph.get(row.layers[0]) if len(row.layers) == 1 else None
            if layer is not None and layer.type in types:
                yield row, layer

    def measured(self, *varied: str) -> list[ProfileRun]:
        """Other runs of the same work whose configurations differ in some of `varied` and in nothing else, all measured."""
        fixed = {"engine", "precision", "layout", "device", "threads", "batch", "size", "source"} - set(varied)
        return [
            other
            for other in self.others
            if self.run.source is ValueSource.MEASURED
            and other.time_ms
            and other.flops * self.run.batch == self.run.flops * other.batch
            and all(getattr(other, key) == getattr(self.run, key) for key in fixed)
            and any(getattr(other, key) != getattr(self.run, key) for key in varied)
        ]

    def setting(self, **values: object) -> Edit | None:
        """The edit of settings, if the document has other ones."""
        known = {key: value for key, value in values.items() if key in self.settings}
        return set_settings(self.settings, known) if len(known) == len(values) else None


Rule = Callable[[Advisable], Iterator[Advice]]


def advise(subject: Advisable) -> list[Advice]:
    """All advice for a run, largest predicted saving first."""
    if subject.emulated:
        return []
    least = LEAST * (subject.run.time_ms or 0.0)
    found = [advice for rule in RULES for advice in rule(subject) if advice.saving_ms > least]
    return sorted(found, key=lambda advice: -advice.saving_ms)


def measured_saving(advice: Advice, before: ProfileRun, after: ProfileRun) -> RowDifference:
    """What was measured after the change: of the layers of the advice, or of the whole network."""
    found = difference(before, after)
    rows = [row for row in found.rows if advice.layers and set(advice.layers) & set(row.layers)]
    return rows[0] if len(rows) == 1 else found.total


# --- rules -------------------------------------------------------------------------------------------------------


def odd_channels(subject: Advisable) -> Iterator[Advice]:
    """Channels that are not multiples of eight, where Tensor Cores pad them."""
    if subject.run.precision not in HALF:
        return
    ends = set(subject.graph.layers) - {s.layer for layer in subject.graph for s in layer.inputs if s is not None}
    results = {s.layer for name in ends for s in subject.graph[name].inputs if s is not None}
    for row, layer in subject.rows("convolution", "fully_connected", "transposed_convolution"):
        features = _number(layer.params.get("features"))
        if not features or features % BLOCK == 0 or features < BLOCK or layer.name in results:
            continue
        if layer.params.get("groups", "1") != "1":  # the channels of each group are padded, and must stay divisible
            continue
        down, up = features // BLOCK * BLOCK, (features // BLOCK + 1) * BLOCK
        yield Advice(
            "odd-channels",
            row.layers,
            tr(
                "{layer} has {features} channels, which Tensor Cores compute as {up}",
                layer=layer.name,
                features=features,
                up=up,
            ),
            tr("use {down} or {up} channels", down=down, up=up),
            row.time_ms * (up - down) / up,
            tr("the time is that of {up} channels", up=up),
            set_params(subject.graph, {layer.name: {"features": str(down)}}),
        )


def full_precision(subject: Advisable) -> Iterator[Advice]:
    """FP32 on a GPU on which FP16 is faster."""
    run = subject.run
    peaks = run.peaks
    if run.precision != "fp32" or not subject.half_possible or peaks is None or "fp16" not in peaks.others:
        return
    half, full = peaks.others["fp16"].value, peaks.flops_per_s.value
    if not half or not full or half <= full:
        return
    saving = sum(
        row.time_ms * (1 - (full / half if row.bound == "compute" else 0.5)) for row in run.operators if row.bound
    )
    yield Advice(
        "full-precision",
        (),
        tr(
            "FP32 reaches {full} at most on this GPU, FP16 {half}",
            full=quantity(full, "FLOP/s"),
            half=quantity(half, "FLOP/s"),
        ),
        tr("run in FP16, and compare the results"),
        saving,
        tr("compute-bound operators at the FP16 peak, the others move half the bytes"),
        subject.setting(precision="fp16"),
    )


def channels_first(subject: Advisable) -> Iterator[Advice]:
    """NCHW in half precision: Tensor Cores need NHWC, and every convolution converts."""
    run = subject.run
    bandwidth = run.peaks.memory_bytes_per_s.value if run.peaks is not None else None
    if run.layout != "nchw" or run.precision not in HALF or run.device == "cpu" or not bandwidth:
        return
    rows = [row for row in run.operators if "convolution" in row.type]
    moved = sum(row.bytes for row in rows)
    yield Advice(
        "channels-first",
        tuple(name for row in rows for name in row.layers),
        tr("{count} convolutions run in NCHW, but Tensor Cores compute in NHWC", count=len(rows)),
        tr("choose the layout NHWC"),
        min(2e3 * moved / bandwidth, sum(row.time_ms for row in rows)),
        tr("inputs and outputs ({size}) are no longer converted", size=quantity(moved, "B")),
        subject.setting(layout="nhwc"),
    )


def unfolded_normalization(subject: Advisable) -> Iterator[Advice]:
    """A batch normalization after a convolution, which inference can fold into the weights."""
    for row, layer in subject.rows("batch_normalization"):
        producer = subject.graph.get(layer.inputs[0].layer) if layer.inputs and layer.inputs[0] is not None else None
        if producer is None or "convolution" not in producer.type or producer.activation is not None:
            continue
        computed = producer.type == "dynamic_convolution"  # its filters are a tensor of the network
        if computed or layer.params.get("track_running_stats", "true") != "true":
            continue
        if len(subject.graph.consumers(producer.name)) > 1:
            continue
        yield Advice(
            "unfolded-normalization",
            (layer.name,),
            tr(
                "{layer} takes {time} after {producer}",
                layer=layer.name,
                time=duration(row.time_ms),
                producer=producer.name,
            ),
            tr("fold it into the weights of the convolution, or use an engine that does"),
            row.time_ms,
            tr("the whole time of the layer"),
            fold=layer.name if _can_fold(producer) else "",
        )


def _can_fold(before: Layer) -> bool:
    """Whether an edit of the weights can fold a normalization into a convolution; engines fold into others too."""
    one_group = before.type == "transposed_convolution" and before.params.get("groups", "1") == "1"
    return before.type == "convolution" or one_group


def unfused_chain(subject: Advisable) -> Iterator[Advice]:
    """Element-wise layers in a row that each move their tensors through memory."""
    rows = {row.layers[0]: row for row, _ in subject.rows(*ELEMENT_WISE) if row.bound in ("memory", "cache")}
    for chain in _chains(subject.graph, rows):
        times = [rows[name].time_ms for name in chain]
        moved = sum(rows[name].bytes for name in chain)
        between = sum(min(rows[a].bytes, rows[b].bytes) for a, b in pairwise(chain))
        kept = max(moved - between, moved // (2 * len(chain)))
        engine = DEFAULT_ENGINE if subject.run.engine != DEFAULT_ENGINE and subject.run.device == "cpu" else None
        yield Advice(
            "unfused-chain",
            chain,
            tr("{count} memory-bound layers in a row move {size}", count=len(chain), size=quantity(moved, "B")),
            tr("use an engine that fuses them, such as ONNX Runtime or OpenVINO"),
            sum(times) * (1 - kept / moved),
            tr("fused, they move {size}", size=quantity(kept, "B")),
            subject.setting(engine=engine) if engine else None,
        )


def large_kernel(subject: Advisable) -> Iterator[Advice]:
    """A 5x5 convolution, which two of 3x3 with the same receptive field replace."""
    for row, layer in subject.rows("convolution"):
        plain = all(layer.params.get(key, value) == value for key, value in PLAIN.items())
        features = _number(layer.params.get("features", "32"))
        if layer.params.get("kernel") != "5x5" or not plain or not features or not row.inputs:
            continue
        depth = _channels(row.inputs[0])
        ratio = 9 * (depth + features) / (25 * depth) if depth else 1.0
        if ratio >= 1.0:
            continue
        yield Advice(
            "large-kernel",
            (layer.name,),
            tr(
                "{layer} is a 5x5 convolution of {depth} to {features} channels",
                layer=layer.name,
                depth=depth,
                features=features,
            ),
            tr("use two 3x3 convolutions with the same receptive field, and train again"),
            row.time_ms * (1 - ratio),
            tr("{part} of the operations", part=percent(ratio)),
            split_kernel(subject.graph, layer.name),
        )


PLAIN = {"stride": "1x1", "padding": "same", "dilation": "1x1", "groups": "1"}


def split_kernel(graph: Graph, name: str) -> Edit:
    """Replace a 5x5 convolution by two of 3x3; readers of the layer read the second one."""
    layer = graph[name]
    second = name + "_b"
    while second in graph:
        second += "b"
    params = {**layer.params, "kernel": str(Size2D(3, 3))}
    x, y = layer.position
    changed: dict[str, Layer | None] = {
        name: replace(layer, params=params),
        second: replace(layer, name=second, params=params, inputs=(Source(name),), position=(x, y + 40)),
    }
    for reader in graph.consumers(name):
        inputs = tuple(Source(second) if s is not None and s.layer == name else s for s in graph[reader].inputs)
        changed[reader] = replace(graph[reader], inputs=inputs)
    return replace_layers(graph, changed, tr("Replace {name} by two 3x3 convolutions", name=name), {})


def slow_depthwise(subject: Advisable) -> Iterator[Advice]:
    """A depthwise convolution that takes longer here than a full convolution would."""
    rates = [row.flops_per_s for row, _ in subject.rows("convolution") if row.flops_per_s]
    if not rates:
        return
    rate = median(rates)
    for row, layer in subject.rows("depthwise_convolution"):
        depth = _channels(row.inputs[0]) if row.inputs else 0
        if not depth or not row.flops_per_s or layer.params.get("multiplier", "1") != "1":
            continue
        full_ms = row.flops * depth / rate * 1e3
        if full_ms >= row.time_ms:
            continue
        params = {key: value for key, value in layer.params.items() if key != "multiplier"}
        full = replace(layer, type="convolution", params={**params, "features": str(depth)})
        yield Advice(
            "slow-depthwise",
            (layer.name,),
            tr(
                "{layer} reaches {slow}, full convolutions {fast}",
                layer=layer.name,
                slow=quantity(row.flops_per_s, "FLOP/s"),
                fast=quantity(rate, "FLOP/s"),
            ),
            tr("use a full convolution, and train again"),
            row.time_ms - full_ms,
            tr("a full convolution at the median rate of the others"),
            replace_layers(
                subject.graph, {layer.name: full}, tr("Make {name} a full convolution", name=layer.name), {}
            ),
        )


def small_batch(subject: Advisable) -> Iterator[Advice]:
    """A batch at which launches dominate, or above which the measured throughput still grows."""
    run = subject.run
    if not run.time_ms:
        return
    larger = sorted((other for other in subject.measured("batch") if other.batch > run.batch), key=lambda r: r.batch)
    if larger:
        best = Sweep("batch", "", (run, *larger)).knee
        gain = images_per_second(best) / images_per_second(run)
        if best is not run and gain >= GAIN:
            yield Advice(
                "small-batch",
                (),
                tr(
                    "batch {batch} reaches {part} of the throughput of batch {best}",
                    batch=run.batch,
                    part=percent(1 / gain),
                    best=best.batch,
                ),
                tr("run {best} images at once", best=best.batch),
                run.time_ms * (1 - 1 / gain),
                tr("at batch {best}, for the same number of images", best=best.batch),
                source=ValueSource.MEASURED,
            )
        return
    launched = sum(row.time_ms - (row.roof_ms or 0.0) / 2 for row in run.operators if row.bound == "launch")
    if launched > LAUNCH_SHARE * run.time_ms:
        yield Advice(
            "small-batch",
            (),
            tr(
                "launching operators takes {part} of the time at batch {batch}",
                part=percent(launched / run.time_ms),
                batch=run.batch,
            ),
            tr("run more images at once, or use CUDA graphs"),
            launched / 2,
            tr("half of the launches, at twice the batch"),
        )


def better_engine(subject: Advisable) -> Iterator[Advice]:
    """Another engine or layout that was measured to be faster."""
    run = subject.run
    for other in subject.measured("engine", "layout"):
        found = difference(run, other)
        if found.total.verdict != "faster":
            continue
        far = [row for row in found.rows if row.verdict == "faster" and row.layers][:3]
        names = ", ".join(f"{' + '.join(row.layers)} ({duration(-row.difference_ms)})" for row in far)
        yield Advice(
            "better-engine",
            tuple(name for row in far for name in row.layers),
            tr(
                "faster with {engine} in {layout}, most at {names}",
                engine=other.engine,
                layout=other.layout.upper(),
                names=names,
            ),
            tr("run with {engine} in {layout}", engine=other.engine, layout=other.layout.upper()),
            -found.total.difference_ms,
            tr("noise {noise}", noise=duration(found.total.noise_ms)),
            subject.setting(engine=other.engine, layout=other.layout),
            source=ValueSource.MEASURED,
        )


RULES: tuple[Rule, ...] = (
    odd_channels,
    full_precision,
    channels_first,
    unfolded_normalization,
    unfused_chain,
    large_kernel,
    slow_depthwise,
    small_batch,
    better_engine,
)


def _chains(graph: Graph, rows: Mapping[str, OperatorProfile]) -> Iterator[tuple[str, ...]]:
    """Runs of two or more layers of `rows` in which each is the only reader of the one before."""

    def following(name: str) -> str | None:
        readers = list(graph.consumers(name))
        return readers[0] if len(readers) == 1 and readers[0] in rows else None

    followed = {following(name) for name in rows}
    for name in rows:
        if name in followed:
            continue
        chain = [name]
        while (after := following(chain[-1])) is not None:
            chain.append(after)
        if len(chain) > 1:
            yield tuple(chain)


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0


def _channels(shape: str) -> int:
    axes = shape.split(" x ")
    return _number(axes[1]) if len(axes) > 1 else 0
