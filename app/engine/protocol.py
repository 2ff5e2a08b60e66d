"""The messages between the window and the engine process, declared once for both: one JSON object per line.

The window sends `Asked`: a number and a request. Every request is answered by one `DoneEvent`, `FailedEvent` or
`SupersededEvent` with that number, in the order of the requests; other events come in between. Tensors are handed over as
handles of files in a shared folder. Both sides say at the start which `VERSION` they speak.

A field with a default may be added at any time, and unknown fields are ignored. Any other change raises `VERSION`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Generic, Literal, TypeVar, cast, get_args

import msgspec
from msgspec import Meta, Raw, Struct

from designer.files.json_text import decode, encode, problem_of
from designer.files.settings import DEFAULT_ENGINE
from designer.files.variants import CalibrationRecipe, Variant
from designer.files.weights import WeightStatus
from designer.graph.diagnostics import Diagnostic
from designer.profiling.schema import Profile
from designer.runtime.api import AUTO
from designer.runtime.shared import Handle
from designer.runtime.sources import SourceInfo
from designer.texts import tr

VERSION = 3
MAX_LINE = 256 << 20  # bytes of one line, with its end: a document is at most as large

Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Seed = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
ReplyT = TypeVar("ReplyT", bound=Struct)
ReplyT_co = TypeVar("ReplyT_co", bound=Struct, covariant=True)


def _method(name: str) -> str:
    """`SetInputRequest` is sent as `set_input`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Request")).lower()


class Request(Struct, Generic[ReplyT_co], frozen=True, tag_field="method", tag=_method, omit_defaults=True):
    """A request to the engine; `ReplyT_co` is the type of its reply."""

    @property
    def method(self) -> str:
        return str(self.__struct_config__.tag)

    @classmethod
    def reply_type(cls) -> type[ReplyT_co]:
        found: type[ReplyT_co] = get_args(cls.__orig_bases__[0])[0]  # type: ignore[attr-defined]
        return found


# --- replies -----------------------------------------------------------------------------------------------------


class EmptyReply(Struct, frozen=True):
    """A reply without values."""


class PingReply(Struct, frozen=True):
    pid: int


class TensorStatus(Struct, frozen=True):
    """The status of a weight tensor that the network needs."""

    layer: str
    tensor: str
    status: WeightStatus
    needed: tuple[int, ...] | None
    found: tuple[int, ...] | None = None
    source: str = ""


class OpenReply(Struct, frozen=True):
    """`note` describes the origin of weights that are not from a file."""

    report: tuple[TensorStatus, ...] = ()
    note: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()


class SetInputReply(Struct, frozen=True):
    """`shape` is that of the tensor the network reads. Sources with frames report the `frame` that was read, and cameras their rate.

    `preview` is a thumbnail of H x W x 3 bytes; `range` the finite values of a file that may go beyond 0..1.
    """

    shape: tuple[Count, ...] = ()
    frame: int | None = None
    fps: float = 0.0
    preview: Handle | None = None
    range: tuple[float, float] | None = None


class RunStep(Struct, frozen=True):
    """A group of layers that ran together, or one analysis layer."""

    layers: tuple[str, ...]
    engine: str
    milliseconds: float
    cached: bool = False
    dropped: bool = False  # its results are above the memory for kept ones: the next run computes it again


class NonfiniteShare(Struct, frozen=True):
    """Numbers of NaN and infinite values of a tensor, and their share of all values."""

    nan: Count
    inf: Count
    share: float


class RunReply(Struct, frozen=True):
    """Tensors by output layer and by captured source. `same` are captures that the window still has.

    `coarse` is not 0 where the run was computed at 1 / `coarse` of the width and height. An `emulated` run takes other times than its
    number formats do. `weights` and `weights_sha256` are as
    in `designer.files.weights.Weights`.
    """

    outputs: dict[str, Handle] = {}
    captures: dict[str, Handle] = {}
    same: tuple[str, ...] = ()
    steps: tuple[RunStep, ...] = ()
    milliseconds: float = 0.0
    nonfinite: dict[str, NonfiniteShare] = {}
    coarse: Count = 0
    note: str = ""
    weights: str = ""
    weights_sha256: str = ""
    emulated: bool = False


class SurgeryReply(Struct, frozen=True):
    """The edited document, the title of the edit, and a new file with its weights. `effect` is a sentence about the results."""

    document: str
    title: str
    weights: str
    effect: str
    kept: bool


class ProfileReply(Struct, frozen=True):
    profile: Profile


class TrainingMemoryRow(Struct, frozen=True):
    """Modelled bytes that a layer needs for a training step."""

    layer: str
    weights: Count
    gradients: Count
    optimizer: Count
    activations: Count


class PredictReply(Struct, frozen=True):
    """The modelled run, and the memory of a training step with the same inputs."""

    profile: Profile
    training: tuple[TrainingMemoryRow, ...]


class WeightsReply(Struct, frozen=True):
    """Tensors by name, axes in torch's order."""

    tensors: dict[str, Handle] = {}


class GradientReply(Struct, frozen=True):
    gradient: Handle
    note: str = ""


class ReceptiveFieldReply(Struct, frozen=True):
    """`box` is left, top, right, bottom in pixels of the input; right and bottom are exclusive."""

    box: tuple[int, int, int, int]
    source: Literal["computed", "measured"]
    note: str = ""


class TraceReply(Struct, frozen=True):
    """The first layer whose output has NaN or infinite values for finite inputs; None if all outputs are finite."""

    layer: str | None
    kind: Literal["nan", "inf", ""]
    share: float
    checked: tuple[str, ...]
    note: str = ""


class BlamedOperator(Struct, frozen=True):
    """The share of an operator in an error, and the relative difference of its own results for equal inputs."""

    layer: str
    share: float
    deviation: float


class BlameReply(Struct, frozen=True):
    """The operators in their order of execution, see `designer.precision.blame`."""

    operators: tuple[BlamedOperator, ...]
    rms: float
    first: str | None


class CompareTensorReply(Struct, frozen=True):
    """One tensor in two computations."""

    a: Handle
    b: Handle


class LayerBits(Struct, frozen=True):
    """A layer with weights: the number of its weights, and PSNR in dB by number format if only this layer has the format.

    `vectors` of the weights are in tensors of one dimension.
    """

    layer: str
    weights: Count
    psnr: dict[str, float]
    vectors: Count = 0


class SizePoint(Struct, frozen=True):
    """A choice of formats: the bytes of the weights, and PSNR of the result in dB. Layers that are absent are FP32."""

    bytes: Count
    psnr: float
    formats: dict[str, str]


class BitsReply(Struct, frozen=True):
    """Layers in the order of execution, and the choices of formats from the largest to the smallest."""

    layers: tuple[LayerBits, ...]
    points: tuple[SizePoint, ...]


class VariantRow(Struct, frozen=True):
    """One measured variant, see `designer.precision.measure`; unknown numbers are None, an infinite PSNR is 999."""

    name: str
    bytes: Count = 0
    psnr: float | None = None
    ssim: float | None = None
    clean_psnr: float | None = None
    clean_ssim: float | None = None
    milliseconds: float | None = None
    emulated: bool = False
    error: str = ""


class MeasureVariantsReply(Struct, frozen=True):
    """The network in FP32, whose name is empty, then its variants."""

    rows: tuple[VariantRow, ...]


class LayerSensitivity(Struct, frozen=True):
    """PSNR in dB if only this layer is INT8, and if all but this layer are; at most EQUAL_DB."""

    layer: str
    alone_db: float
    without_db: float


class ChoosePrecisionReply(Struct, frozen=True):
    """The formats of a network, see `designer.precision.mixed.PrecisionResult`. A PSNR of None means equal results.

    `kept` are layers that have `format`, with the reason; `skipped` maps files to the reason. `sensitivity`, the sizes and `report`
    (JSON) are those of INT8.
    """

    precision: str
    psnr_db: float | None
    met: bool
    kept: dict[str, str]
    images: Count
    skipped: dict[str, str] = {}
    format: str = "float32"
    overflow: dict[str, float] = {}
    bf16_db: float | None = None
    sensitivity: tuple[LayerSensitivity, ...] = ()
    bytes: Count = 0
    bytes_fp32: Count = 0
    report: str = ""


class PassRow(Struct, frozen=True):
    """What a graph pass does, see `designer.passes.effect`. `accesses` and `bytes` are before and after; `difference` is that of outputs."""

    name: str
    on: bool
    count: Count
    accesses: tuple[Count, Count]
    bytes: tuple[Count, Count]
    difference: float | None = None
    equal: bool = True


class PassesReply(Struct, frozen=True):
    rows: tuple[PassRow, ...]


class DescribeInputReply(Struct, frozen=True):
    """`preview` is a thumbnail of a frame, H x W x 3 bytes."""

    info: SourceInfo
    preview: Handle | None = None


class ExportVideoReply(Struct, frozen=True):
    frames: Count
    fps: float
    seconds: float
    notes: tuple[str, ...] = ()


# --- requests ----------------------------------------------------------------------------------------------------


class HelloRequest(Request[EmptyReply], frozen=True):
    """The first request. An engine with another protocol version rejects it."""

    protocol: int


class PingRequest(Request[PingReply], frozen=True):
    pass


class OpenRequest(Request[OpenReply], frozen=True):
    """Prepare the network of a document's text. `tile` is as in `RunOptions`.

    `deployed` is a calibrated variant that runs as it is exported; `precision` is that of the variant then.
    """

    document: str
    weights: str | None = None
    seed: Seed | None = None
    engine: str = DEFAULT_ENGINE
    precision: str = "fp32"
    layout: str = "nchw"
    device: str = "cpu"
    threads: Annotated[int, Meta(ge=0, le=1024)] = 0
    tile: Annotated[int, Meta(ge=AUTO, le=1 << 20)] = AUTO
    agreed: tuple[Digest, ...] = ()  # of sources that the user agreed to run
    formats: dict[str, str] = {}  # number formats by layer
    passes: tuple[str, ...] = ()  # graph passes, which apply to runs without captures and to profiles
    sparsity: str = "dense"
    deployed: Variant | None = None


class UpdateRequest(Request[OpenReply], frozen=True):
    """Replace the open network with another state of the document."""

    document: str


class SetInputRequest(Request[SetInputReply], frozen=True):
    """Feed an input layer with a file, a frame of a video or folder, or an image of a camera."""

    layer: str
    path: str
    frame: Count | None = None
    preview: bool = False


class SetInputTensorRequest(Request[SetInputReply], frozen=True):
    """Feed an input layer with a tensor; `is_image`: its values 0..1 get the layer's scale and shift."""

    layer: str
    handle: Handle
    is_image: bool = True


class SetParamRequest(Request[EmptyReply], frozen=True):
    layer: str
    param: str
    text: str


class SetWeightsRequest(Request[EmptyReply], frozen=True):
    """Use the weights of another file for the opened network, which must have all of them."""

    path: str


class RunRequest(Request[RunReply], frozen=True):
    """Run the network. `capture` lists tensors requested besides the outputs, `have` those of the last run that the window still has.

    With a `budget` in ms, a run that would take longer is done at a reduced size.
    """

    capture: tuple[str, ...] = ()
    have: tuple[str, ...] = ()
    budget: Count = 0


class InterruptRequest(Request[EmptyReply], frozen=True):
    """Interrupt the current run and drop the queued ones: they are superseded."""


class ProfileRequest(Request[ProfileReply], frozen=True):
    """Measure the open network: with its inputs, or with noise at every combination of batches and sizes (width, height).

    Other `engines`, `precisions` and `layouts` are added to those that were opened; all combinations are measured in turns. What was measured so
    far is written to the file `partial`, so that it survives a canceled or killed engine. `training` also measures a training step of the
    exported project.
    """

    iterations: Annotated[int, Meta(ge=1, le=1 << 53)] = 10
    batches: tuple[Annotated[int, Meta(ge=1)], ...] = ()
    sizes: tuple[tuple[Annotated[int, Meta(ge=1)], Annotated[int, Meta(ge=1)]], ...] = ()
    engines: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()
    counters: bool = True
    partial: str = ""
    training: bool = False


class ProfiledNetwork(Struct, frozen=True):
    """A network to measure: how it is opened, its batch, and its size (width, height) or None for that of the document."""

    opening: OpenRequest
    batch: Annotated[int, Meta(ge=1)] = 1
    size: tuple[Annotated[int, Meta(ge=1)], Annotated[int, Meta(ge=1)]] | None = None


class RemeasureRequest(Request[ProfileReply], frozen=True):
    """Measure several networks in turns, with noise as inputs. The open network stays open. `partial` is as in `ProfileRequest`."""

    networks: Annotated[tuple[ProfiledNetwork, ...], Meta(min_length=1)]
    iterations: Annotated[int, Meta(ge=1, le=1 << 53)] = 10
    partial: str = ""


class PredictRequest(Request[PredictReply], frozen=True):
    """Predict the time of the open network without running it: on `machine` of the data sheets, or on this one if empty.

    `size` is (width, height), or None for that of the document. On this machine, operators that were not measured before run one by one.
    """

    machine: str = ""
    precision: str = "fp32"
    batch: Annotated[int, Meta(ge=1, le=65536)] = 1
    size: tuple[Annotated[int, Meta(ge=1, le=65536)], Annotated[int, Meta(ge=1, le=65536)]] | None = None
    optimizer: str = "adam"


class WeightsRequest(Request[WeightsReply], frozen=True):
    layer: str


class SurgeryRequest(Request[SurgeryReply], frozen=True):
    """Edit a network together with the weights in the file `weights`, and write the new ones into `folder`.

    `features` of `layer` are set, `channels` of it removed, an `identity` inserted before its first input, or it is split or
    folded; `prune` sets weights of all layers to zero (2:4 sparsity). `inputs` are files by input layer, on which the effect is measured. The opened network is not affected.
    """

    document: str
    operation: Literal["features", "remove", "identity", "split", "fold", "prune"]
    layer: str
    weights: str
    folder: str
    inputs: dict[str, str] = {}
    features: Count = 0
    channels: tuple[Count, ...] = ()
    agreed: tuple[Digest, ...] = ()


class GradientRequest(Request[GradientReply], frozen=True):
    """Compute the gradient of the sum of a tensor, or of its values at (channel or None for all, y, x), with respect to an input layer."""

    of: str
    input: str
    at: tuple[Count | None, Count, Count] | None = None


class ReceptiveFieldRequest(Request[ReceptiveFieldReply], frozen=True):
    """The part of an input that the pixel (x, y) of a tensor depends on."""

    of: str
    y: Count
    x: Count
    input: str


class TraceNonfiniteRequest(Request[TraceReply], frozen=True):
    pass


class SetFormatsRequest(Request[EmptyReply], frozen=True):
    """Compute single layers in other number formats, by layer."""

    formats: dict[str, str]


class BlameRequest(Request[BlameReply], frozen=True):
    """Compare two computations of the open network with its inputs; see `app.computations` for their names."""

    a: str
    b: str
    variants: tuple[Variant, ...] = ()


class CompareTensorRequest(Request[CompareTensorReply], frozen=True):
    """A tensor of the open network in two computations, by their names as in `BlameRequest`."""

    tensor: str
    a: str
    b: str
    variants: tuple[Variant, ...] = ()


class BitsRequest(Request[BitsReply], frozen=True):
    """Measure how many bits the layers of the open network need."""


class MeasureVariantsRequest(Request[MeasureVariantsReply], frozen=True):
    """Measure variants of the open network on its inputs. The other fields are the options of the document."""

    variants: tuple[Variant, ...]
    engine: str = DEFAULT_ENGINE
    layout: str = "nchw"
    device: str = "cpu"
    threads: Annotated[int, Meta(ge=0, le=1024)] = 0


class ChoosePrecisionRequest(Request[ChoosePrecisionReply], frozen=True):
    """Find the layers of the open network that stay in FP32, on the images of a folder; see `designer.precision.mixed`.

    With `calibration` all others are INT8, and these layers get `format`.
    """

    target: str
    folder: str
    budget_db: float | None = None
    calibration: CalibrationRecipe | None = None
    format: str = "float32"


class PassesRequest(Request[PassesReply], frozen=True):
    """Try the graph passes on the open network with its inputs; `names` are those that are on."""

    names: tuple[str, ...]


class DescribeInputRequest(Request[DescribeInputReply], frozen=True):
    """Describe a file, folder or camera, with a thumbnail of a frame."""

    path: str
    frame: Count = 0
    preview: bool = True


class ReleaseInputRequest(Request[EmptyReply], frozen=True):
    """Close the source of an input, so that a camera is switched off. The last image remains."""

    layer: str


class ExportVideoRequest(Request[ExportVideoReply], frozen=True):
    """Paths by layer; frames are `start` to before `stop`. The other fields are as in `VideoJob`."""

    inputs: dict[str, str]
    outputs: dict[str, str]
    start: Count = 0
    stop: Count | None = None
    fps: Annotated[float, Meta(ge=0, le=1e6)] = 0.0
    codec: str = ""
    quality: Annotated[int, Meta(ge=0, le=100)] = 0
    kind: str = ".png"
    token: Annotated[str, Meta(pattern=r"^[0-9a-f]{0,32}\Z")] = ""


class QuitRequest(Request[EmptyReply], frozen=True):
    pass


AnyRequest = (
    HelloRequest
    | PingRequest
    | OpenRequest
    | UpdateRequest
    | SetInputRequest
    | SetInputTensorRequest
    | SetParamRequest
    | SetWeightsRequest
    | RunRequest
    | InterruptRequest
    | ProfileRequest
    | RemeasureRequest
    | PredictRequest
    | WeightsRequest
    | SurgeryRequest
    | GradientRequest
    | ReceptiveFieldRequest
    | TraceNonfiniteRequest
    | SetFormatsRequest
    | BlameRequest
    | CompareTensorRequest
    | BitsRequest
    | MeasureVariantsRequest
    | PassesRequest
    | ChoosePrecisionRequest
    | DescribeInputRequest
    | ReleaseInputRequest
    | ExportVideoRequest
    | QuitRequest
)

# --- events ------------------------------------------------------------------------------------------------------


class Event(Struct, frozen=True, tag_field="event", tag=lambda name: name.removesuffix("Event").lower()):
    """A message of the engine."""


class ReadyEvent(Event, frozen=True):
    """The first event. An engine that does not report a protocol is older than version 1."""

    pid: int
    protocol: int = 0


class ProgressEvent(Event, frozen=True):
    id: int
    done: Count
    total: Count
    text: str = ""


class DoneEvent(Event, frozen=True):
    """`result` is decoded as the reply type of the request."""

    id: int
    result: Raw


class FailedEvent(Event, frozen=True):
    """`id` is None for a line that was not a request."""

    id: int | None
    error: Annotated[tuple[Diagnostic, ...], Meta(min_length=1)]


class SupersededEvent(Event, frozen=True):
    """A later run or an interrupt has replaced the request."""

    id: int


AnyEvent = ReadyEvent | ProgressEvent | DoneEvent | FailedEvent | SupersededEvent

# --- lines -------------------------------------------------------------------------------------------------------


class Asked(Struct, frozen=True):
    """An encoded request."""

    id: Count
    request: AnyRequest


def asked(number: int, request: Request[Any]) -> Asked:
    """A request with its number; every `Request` is one of `AnyRequest`."""
    return Asked(number, cast(AnyRequest, request))


class _Numbered(Struct, frozen=True):
    """The number of a line that cannot be read as a whole."""

    id: Count


class Malformed(Struct, frozen=True):
    """A line that does not follow this protocol: its number, if it has one, and the problem."""

    id: int | None
    problem: str


_ASKED = msgspec.json.Decoder(Asked)
_EVENT = msgspec.json.Decoder(AnyEvent)
_NUMBERED = msgspec.json.Decoder(_Numbered)


def line_of(message: Asked | Event) -> bytes:
    return encode(message) + b"\n"


def done_line(number: int, reply: Struct) -> bytes:
    """The line of a `DoneEvent`."""
    return line_of(DoneEvent(number, Raw(encode(reply))))


def read_request(line: bytes) -> Asked | Malformed:
    return _read(_ASKED, line)


def read_event(line: bytes) -> AnyEvent | Malformed:
    return _read(_EVENT, line)


def read_reply(request: Request[ReplyT], event: DoneEvent) -> ReplyT | Malformed:
    """The reply of the engine to `request`."""
    try:
        return decode(event.result, msgspec.json.Decoder(request.reply_type()))
    except (ValueError, RecursionError) as error:
        return Malformed(event.id, problem_of(error))


LineT = TypeVar("LineT")


def _read(decoder: msgspec.json.Decoder[LineT], line: bytes) -> LineT | Malformed:
    try:
        return decode(line, decoder, raw="result")
    except (ValueError, RecursionError) as error:
        problem = problem_of(error)
    try:
        return Malformed(_NUMBERED.decode(line).id, problem)
    except (ValueError, RecursionError):
        return Malformed(None, problem)


def too_long() -> Malformed:
    return Malformed(None, f"a line of more than {MAX_LINE >> 20} MiB")


def handles(value: Any) -> Iterator[Handle]:
    """The handles of all tensors in a reply."""
    if isinstance(value, Handle):
        yield value
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from handles(getattr(value, name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from handles(item)


def other_protocol(window: int, engine: int) -> Diagnostic:
    """Why a window and an engine cannot work together."""
    return Diagnostic(
        "other-protocol",
        tr(
            "the engine process speaks protocol version {engine} and this program version {window}",
            engine=engine,
            window=window,
        ),
        remedy=tr("install the same version of Layerwright for both"),
    )
