"""INT8 versions of an ONNX model: calibration, sensitivity of each layer, and the layers that stay in float for a budget.

Quantization is that of `onnxruntime.quantization`: static, in the QDQ form (pairs of QuantizeLinear and DequantizeLinear),
weights per channel. Tensors are calibrated once; every choice of layers is then quantized with the same ranges. What a
choice costs is measured on the restored images, with ONNX Runtime.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from designer.files.variants import CalibrationRecipe, Variant
from designer.graph.diagnostics import DiagnosticError
from designer.graph.inference import Inference
from designer.graph.naming import unique_name
from designer.graph.types import Size2D
from designer.metrics import result_psnr
from designer.precision.image_set import ImageSet, read_image_set
from designer.precision.variants import INT8
from designer.runtime.api import Progress
from designer.runtime.engines.forms import ONNX_RUNTIME, TENSORRT
from designer.runtime.engines.fusion import layer_of
from designer.runtime.engines.ort import quantization
from designer.runtime.engines.ort_engine import inference_session
from designer.runtime.interrupt import current
from designer.runtime.number_formats import FORMATS, format_of
from designer.texts import tr

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

Feeds = Mapping[str, NDArray[Any]]

METHODS = ("minmax", "percentile")  # all values, or the per cent of them that are not extreme
MEASURED_IMAGES = 4  # images on which every layer is measured; the result is measured on all images

WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
COMPUTING = WEIGHTED | {"Add", "Mul"}
PASSING = frozenset(  # they hand values on, so they are INT8 where their readers are
    {"AveragePool", "Clip", "Concat", "DepthToSpace", "Flatten", "GlobalAveragePool", "LeakyRelu", "MaxPool", "Pad", "Relu"}
    | {"Reshape", "Resize", "Slice", "SpaceToDepth", "Split", "Squeeze", "Transpose", "Unsqueeze"}
)  # fmt: skip
QUANTIZABLE = sorted(COMPUTING | PASSING)


@dataclass(frozen=True, slots=True)
class Form:
    """What a runtime expects of a model in the QDQ form. `signed`: activations are INT8 without zero points, else UINT8."""

    title: str
    signed: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


FORMS = {
    ONNX_RUNTIME: Form("ONNX Runtime, OpenVINO"),
    TENSORRT: Form(  # its parser refuses zero points and the INT32 biases of ONNX Runtime
        "TensorRT",
        signed=True,
        options={"ActivationSymmetric": True, "WeightSymmetric": True, "QuantizeBias": False},
    ),
}


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """PSNR in dB of the result against FP32 if only this layer is INT8, and if all but this layer are."""

    layer: str
    alone_db: float
    without_db: float

    @property
    def error(self) -> float:
        """A measure of what the layer adds to the squared error, for ranking: alone, and saved where all others are INT8."""
        return _squared(self.alone_db) - _squared(self.without_db)


@dataclass(frozen=True, slots=True)
class Int8Result:
    """A quantized model. `kept` maps layers that stay in float to the reason; `met` is False if it misses the budget."""

    model: ModelProto
    psnr_db: float
    met: bool
    kept: Mapping[str, str]
    quantized: tuple[str, ...]
    sensitivity: tuple[Sensitivity, ...]


class Quantizer:
    """Quantizes choices of layers of one FP32 model, with ranges from one calibration.

    `feeds` are like those that the model will get; `recipe` says how ranges follow from them. `ranges` are those of another quantizer,
    whose model has the same tensors; nodes with tensors that are not there stay in float. `layers` are the layers that compute and can be INT8.
    Raises DiagnosticError if there are none.
    """

    def __init__(
        self,
        model: ModelProto,
        feeds: Sequence[Feeds],
        recipe: CalibrationRecipe | None = None,
        *,
        ranges: Any = None,
        progress: Progress | None = None,
    ) -> None:
        recipe = recipe or CalibrationRecipe()
        self.form = FORMS[recipe.form or ONNX_RUNTIME]
        self.model = _simplified(model)
        self._nodes = [node for node in self.model.graph.node if node.op_type in COMPUTING | PASSING]
        self.layers = tuple(dict.fromkeys(_layer(node) for node in self._nodes if node.op_type in COMPUTING))
        if not is_quantizable(self.model):
            raise nothing_to_quantize(model.graph.name)
        if ranges is None:
            self.ranges = self._calibrated(feeds, recipe, progress)
            return
        self.ranges = ranges
        constants = {tensor.name for tensor in self.model.graph.initializer} | {""}
        self._nodes = [n for n in self._nodes if all(t in ranges for t in {*n.input, *n.output} - constants)]

    def kept_by_default(self) -> dict[str, str]:
        """The layers that restore fine detail and therefore stay in float, with the reason: both ends, and residual additions."""
        nodes = list(self.model.graph.node)
        constants = {tensor.name for tensor in self.model.graph.initializer}
        kept: dict[str, str] = {}
        for node in _ends(nodes, lambda node: node.input, lambda node: node.output):
            kept.setdefault(_layer(node), tr("first layer"))
        for node in _ends(nodes[::-1], lambda node: node.output, lambda node: node.input):
            kept.setdefault(_layer(node), tr("last layer"))
        for node in nodes:
            if node.op_type == "Add" and constants.isdisjoint(node.input):
                kept.setdefault(_layer(node), tr("residual addition"))
        return kept

    def quantized(self, layers: Collection[str]) -> ModelProto:
        """The model with these layers, and what hands their values on, in INT8."""
        from onnx import ModelProto

        copy = ModelProto()  # the quantizer changes the model
        copy.CopyFrom(self.model)
        chosen = self._chosen(layers)
        if not chosen:  # an empty list means all nodes to the library
            return copy
        library = quantization()
        quantizer = library.QDQQuantizer(
            copy,
            True,  # weights per channel
            False,  # the full range of 8 bits
            library.QuantType.QInt8,
            library.QuantType.QInt8 if self.form.signed else library.QuantType.QUInt8,
            self.ranges,
            chosen,
            [],
            QUANTIZABLE,
            dict(self.form.options),
        )
        quantizer.quantize_model()
        quantizer.model.topological_sort()
        result: ModelProto = quantizer.model.model
        return result

    def _chosen(self, layers: Collection[str]) -> list[str]:
        """The names of the nodes that are INT8."""
        chosen: list[str] = []
        read: set[str] = set()  # tensors that an INT8 node reads
        for node in reversed(self._nodes):
            passes = node.op_type in PASSING and not read.isdisjoint(node.output)
            if passes or _layer(node) in layers:
                chosen.append(node.name)
                read.update(node.input)
        return chosen

    def _calibrated(self, feeds: Sequence[Feeds], recipe: CalibrationRecipe, progress: Progress | None) -> Any:
        library = quantization()
        methods = {"minmax": library.CalibrationMethod.MinMax, "percentile": library.CalibrationMethod.Percentile}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(self.model.SerializeToString())
            calibrator = library.create_calibrator(
                path,
                QUANTIZABLE,
                str(path.with_name("calibrated.onnx")),
                methods[recipe.method],
                extra_options={"percentile": recipe.percentile, "symmetric": self.form.signed},
            )
            for number, one in enumerate(feeds):  # one at a time: it holds all tensors of what it reads at once
                current().check()
                if progress is not None:
                    progress(number, len(feeds), tr("Calibrating"))
                calibrator.collect_data(_reader(one))
            return calibrator.compute_data()


class Fidelity:
    """Measures models by the PSNR in dB of their first output against that of the FP32 model, for the same feeds."""

    def __init__(self, model: ModelProto, feeds: Sequence[Feeds]) -> None:
        self._feeds = feeds
        self._wanted = list(self._results(model, feeds))

    def psnr(self, model: ModelProto, count: int | None = None) -> float:
        """The PSNR of the mean squared error over the first `count` feeds, or all."""
        made = self._results(model, self._feeds[:count])
        errors = [_squared(result_psnr(wanted, found)) for wanted, found in zip(self._wanted, made, strict=False)]
        mean = sum(errors) / len(errors)
        return -10 * log10(mean) if mean else inf

    @staticmethod
    def _results(model: ModelProto, feeds: Iterable[Feeds]) -> Iterable[NDArray[np.float32]]:
        session = inference_session(model.SerializeToString())
        for one in feeds:
            current().check()
            yield session.run(None, dict(one))[0]


@dataclass(frozen=True)
class Calibrated:
    """A model with the images on which it was calibrated, ready to be quantized."""

    quantizer: Quantizer
    images: ImageSet
    feeds: tuple[Feeds, ...]


def calibrate(
    model: ModelProto, inference: Inference, recipe: CalibrationRecipe, progress: Progress | None = None
) -> Calibrated:
    """Calibrate the model of a network without analysis layers as `recipe` says.

    Raises DiagnosticError if there is no image to calibrate with, or nothing to quantize.
    """
    images = calibration_images(inference, recipe)
    stored = {tensor.name for tensor in model.graph.initializer}
    (name,) = (
        entry.name for entry in model.graph.input if entry.name not in stored
    )  # imported models keep their names
    feeds = tuple({name: array} for one in images.feeds for array in one.values())
    return Calibrated(Quantizer(model, feeds, recipe, progress=progress), images, feeds)


def calibration_images(inference: Inference, recipe: CalibrationRecipe) -> ImageSet:
    """The images of `recipe` as the network reads them. Raises DiagnosticError if there are none, or the recipe is not valid."""
    _check(recipe)
    size = Size2D.parse(recipe.size).hw if recipe.size else None
    return read_image_set(inference, Path(recipe.folder), count=recipe.count, size=size)


def quantized_variant(model: ModelProto, inference: Inference, variant: Variant) -> ModelProto:
    """The model of a network with the layers of a calibrated variant in INT8. Raises DiagnosticError as `calibrate`."""
    if variant.calibration is None:
        raise DiagnosticError.of(
            "not-calibrated",
            tr("the ranges of the variant '{name}' were not calibrated on images", name=variant.name),
            remedy=tr(
                "choose Calibrate INT8 in the Variants panel, or use layerwright precision --to int8 --calibration DIR"
            ),
        )
    others = sorted({name for name in variant.formats.values() if FORMATS[name].is_integer and name != INT8})
    if others:
        raise DiagnosticError.of(
            "not-in-onnx",
            tr(
                "the variant '{name}' has layers in {format}, but ONNX Runtime computes only INT8",
                name=variant.name,
                format=others[0],
            ),
            remedy=tr("choose INT8 or a float format for these layers"),
        )
    quantizer = calibrate(model, inference, variant.calibration).quantizer
    return quantizer.quantized(chosen_layers(quantizer, variant))


def chosen_layers(quantizer: Quantizer, variant: Variant) -> list[str]:
    """The layers of a model that are INT8 in a variant."""
    return [name for name in quantizer.layers if format_of(name, variant.formats, FORMATS[INT8]).name == INT8]


def nothing_to_quantize(network: str) -> DiagnosticError:
    return DiagnosticError.of(
        "nothing-to-quantize",
        tr("'{name}' has no convolution and no matrix product", name=network),
        remedy=tr("choose another precision: INT8 makes only these faster"),
    )


def is_quantizable(model: ModelProto) -> bool:
    """Whether a model has a convolution or a matrix product: INT8 makes only these faster."""
    return any(node.op_type in WEIGHTED for node in model.graph.node)


def _check(recipe: CalibrationRecipe) -> None:
    """Raise DiagnosticError for a method, form or size that is not known, as in files of newer versions."""
    for found, known in ((recipe.method, METHODS), (recipe.form or ONNX_RUNTIME, tuple(FORMS))):
        if found not in known:
            raise DiagnosticError.of(
                "bad-calibration",
                tr("'{name}' is not known for calibration", name=found),
                remedy=tr("choose one of {names}", names=", ".join(known)),
            )
    try:
        Size2D.parse(recipe.size or "1x1")
    except ValueError as error:
        raise DiagnosticError.of(
            "bad-calibration", str(error), remedy=tr("for instance {example}", example="256x256")
        ) from None


def quantize(
    quantizer: Quantizer, fidelity: Fidelity, budget_db: float | None = None, progress: Progress | None = None
) -> Int8Result:
    """Quantize all layers but those kept by default, and take the most sensitive ones out until the budget is met.

    If the budget is missed as long as one layer is INT8, the result is the best choice that was found.
    """
    kept = quantizer.kept_by_default()
    candidates = [name for name in quantizer.layers if name not in kept]
    if not candidates:
        raise DiagnosticError.of(
            "nothing-to-quantize",
            tr("all layers that could be INT8 are first or last ones or residual additions, which stay in float"),
            remedy=tr("choose another precision, or a deeper network"),
        )
    sensitivity = []
    for number, name in enumerate(candidates):
        if progress is not None:
            progress(number, len(candidates), tr("Measuring {layer}", layer=name))
        others = [other for other in candidates if other != name]
        alone = fidelity.psnr(quantizer.quantized([name]), MEASURED_IMAGES)
        without = fidelity.psnr(quantizer.quantized(others), MEASURED_IMAGES)
        sensitivity.append(Sensitivity(name, alone, without))

    worst = [item.layer for item in sorted(sensitivity, key=lambda item: item.error, reverse=True)]
    best: Int8Result | None = None
    for count in range(len(worst)):
        if progress is not None:
            progress(count, len(worst), tr("{count} sensitive layers in float", count=count))
        taken = dict.fromkeys(worst[:count], tr("sensitive"))
        chosen = tuple(name for name in candidates if name not in taken)
        model = quantizer.quantized(chosen)
        db = fidelity.psnr(model)
        met = budget_db is None or db >= budget_db
        if best is None or db > best.psnr_db:
            best = Int8Result(model, db, met, kept | taken, chosen, tuple(sensitivity))
        if met:
            break
    assert best is not None
    return best


def _layer(node: NodeProto) -> str:
    """The layer of a node; a model that was imported has nodes with names of their own."""
    return layer_of(node.name)


def _simplified(model: ModelProto) -> ModelProto:
    """The model with constants folded and normalizations merged into convolutions, with the shapes of all tensors.

    Nodes without a name get that of their first output, because layers are chosen by the names of nodes.
    """
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "simplified.onnx"
        inference_session(model.SerializeToString(), simplified=path)
        simple = onnx.load(path)
    simple.producer_name, simple.producer_version = model.producer_name, model.producer_version
    for node in simple.graph.node:
        node.name = node.name or node.output[0]
    _unshare(simple)
    result: ModelProto = onnx.shape_inference.infer_shapes(simple)
    return result


def _unshare(model: ModelProto) -> None:
    """Give each node that computes weights of its own: ONNX Runtime cannot prepare two that share quantized ones."""
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    taken = {*stored, *(name for node in model.graph.node for name in (*node.input, *node.output))}
    used: set[str] = set()
    for node in model.graph.node:
        if node.op_type not in WEIGHTED:
            continue
        for index, name in enumerate(node.input):
            if name in used:
                copy = model.graph.initializer.add()
                copy.CopyFrom(stored[name])
                copy.name = node.input[index] = unique_name(name, taken)
                taken.add(copy.name)
            elif name in stored:
                used.add(name)


def _ends(
    nodes: Sequence[NodeProto],
    before: Callable[[NodeProto], Iterable[str]],
    after: Callable[[NodeProto], Iterable[str]],
) -> list[NodeProto]:
    """The weighted nodes that no other weighted node precedes, in the direction of `nodes`."""
    reached: set[str] = set()
    found = []
    for node in nodes:
        preceded = not reached.isdisjoint(before(node))
        if node.op_type in WEIGHTED and not preceded:
            found.append(node)
        if preceded or node.op_type in WEIGHTED:
            reached.update(after(node))
    return found


def _reader(feeds: Feeds) -> Any:
    """One set of feeds, as the calibrator reads it."""

    class Reader(quantization().CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = [dict(feeds)]

        def get_next(self) -> dict[str, NDArray[Any]] | None:
            return self.left.pop() if self.left else None

    return Reader()


def _squared(db: float) -> float:
    """The mean squared error of a PSNR."""
    return float(10 ** (-db / 10))
