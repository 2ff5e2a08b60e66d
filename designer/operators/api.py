"""The declaration of operators. Files of operators import this module as `op`."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, dataclass_transform

from designer.graph.types import BATCH, DataType, Dim, ShapeError, Size2D, Size3D, Symbol, TensorType
from designer.operators.onnx_data import (
    OnnxConstant,
    OnnxGraph,
    OnnxInput,
    OnnxItem,
    OnnxNode,
    OnnxValue,
    OnnxWeight,
    int64,
    scalar,
)
from designer.operators.params import Parameter, ParamInfo, Value, is_kind, kind_of, param
from designer.operators.ports import Port, check_ports
from designer.operators.torch_data import (
    TorchCall,
    TorchExpr,
    TorchInput,
    TorchItem,
    TorchMethod,
    TorchModule,
    TorchName,
    TorchParameter,
    TorchSource,
)
from designer.texts import tr
from designer.units import dims_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ARRAY_TYPES",
    "BATCH",
    "FLOATS",
    "INTEGERS",
    "Activation",
    "Category",
    "Cost",
    "DataType",
    "Dim",
    "Example",
    "Fault",
    "OnnxConstant",
    "OnnxGraph",
    "OnnxInput",
    "OnnxItem",
    "OnnxNode",
    "OnnxValue",
    "OnnxWeight",
    "Operator",
    "Option",
    "Port",
    "Role",
    "ShapeError",
    "Size2D",
    "Size3D",
    "Symbol",
    "TensorType",
    "TorchCall",
    "TorchExpr",
    "TorchInput",
    "TorchItem",
    "TorchMethod",
    "TorchModule",
    "TorchName",
    "TorchParameter",
    "TorchSource",
    "Weight",
    "image",
    "int64",
    "param",
    "scalar",
]

# Networks are declared in FP32; half precision is an option of a run and applies to the whole network.
FLOATS = (DataType.FLOAT32,)
INTEGERS = (DataType.INT64, DataType.INT32)
ARRAY_TYPES = tuple(kind.value for kind in DataType if kind is not DataType.BFLOAT16)  # those that NumPy supports
MAX_ELEMENTS = 2**38  # larger tensors (1 TiB in FP32) are mistakes


class Category(StrEnum):
    """The category of an operator in the Layer Palette; the values are its headings."""

    INPUT_OUTPUT = "Input/Output"
    CONVOLUTION = "Convolution"
    LINEAR = "Linear"
    POOLING = "Pooling"
    NORMALIZATION = "Normalization"
    ACTIVATION = "Activation"
    RECURRENT = "Recurrent"
    ATTENTION = "Attention"
    SHAPE = "Shape"
    UPSAMPLING = "Upsampling"
    ELEMENT_WISE = "Element-wise"
    DATA = "Data / image"
    TRAINING = "Training"
    ANALYSIS = "Analysis"
    DEVELOPMENT = "Development aids"


class Role(StrEnum):
    """The role of a layer in the runtime and the exporters."""

    COMPUTE = "compute"  # torch and onnx data describe it
    INPUT = "input"  # its data comes from the user
    OUTPUT = "output"  # a result of the network; passes its input through
    ANALYSIS = "analysis"  # `evaluate` in numpy between engine runs; exporters pass the first input through
    LOSS = "loss"  # ends a training branch; not part of inference
    TEMPLATE = "template"  # an instance of a template, or a port of one; replaced by layers before a run


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor that weights files contain. `torch` is its name in the layer's torch module.

    `init` is "kaiming" (uniform, bound sqrt(1 / fan_in), torch's default for convolutions), "xavier" (uniform,
    bound sqrt(6 / (rows + columns)), for matrices), "zeros", "ones", "normal",
    "normal_but:<index>" (normal, with zeros at that index of the first axis), or "constant:<number>". `fan_in` is the number
    of inputs of one output element.
    """

    name: str
    shape: tuple[int, ...]
    torch: str
    init: str = "kaiming"
    fan_in: int = 1
    trainable: bool = True


class Fault(NamedTuple):
    """A parameter that violates a rule of its operator."""

    parameter: str
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one layer, for a batch of one where its inputs leave the batch open.

    `flops` counts as `torch.utils.flop_counter.FlopCounterMode` does (2 per multiply-add of convolutions and matrix
    products, nothing for element-wise work). `bytes_read` and `bytes_written` are the tensors in fp32, weights included in
    read; `parameters` is the number of learned values.
    """

    flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    parameters: int = 0


@dataclass(frozen=True)
class Example:
    """An example for the conformance suite and the reference page: parameters and input types."""

    inputs: tuple[TensorType, ...]
    params: Mapping[str, Value] = field(default_factory=dict)
    name: str = ""


def image(c: int = 3, h: int = 8, w: int = 8) -> TensorType:
    """The type of an N x c x h x w image, for examples."""
    return TensorType((Symbol("N"), c, h, w))


@dataclass(frozen=True, slots=True)
class Option:
    """A control of a layer in the analysis view, bound to a parameter.

    `kind` is "bool" (a check box), "float" or "int" (a slider with a number; `min`, `max` and `step`, by default the
    parameter's), "choice" (a list; `choices`, by default the parameter's), "text" (a line), "label" (the parameter's value,
    read-only; only `label` if `param` is not a parameter) or "button" (toggles a boolean, increases a number by `step`). The
    control is hidden according to the parameter's `visible_when`. `doc` is its tooltip, by default that of the parameter.
    """

    param: str
    kind: str
    label: str
    min: float | None = None
    max: float | None = None
    step: float | None = None
    choices: tuple[str, ...] = ()
    doc: str = ""


_TYPE = re.compile(r"[a-z][a-z0-9_]*\Z")


@dataclass_transform(field_specifiers=(param,), kw_only_default=True, frozen_default=True)
class Operator:
    """Base of all operators. A subclass is a frozen dataclass whose fields are its parameters.

        class Convolution(Operator, type="convolution", title="Convolution", category=Category.CONVOLUTION): ...

    Subclasses implement `infer` and, depending on the role, `torch` and `onnx` or `evaluate`. Their `inputs` are the types of
    the connected inputs in port order, already checked against `input_ports`.
    """

    type: ClassVar[str] = ""
    title: ClassVar[str] = ""
    category: ClassVar[Category] = Category.DEVELOPMENT
    role: ClassVar[Role] = Role.COMPUTE
    icon: ClassVar[str] = ""
    synonyms: ClassVar[tuple[str, ...]] = ()
    inputs: ClassVar[tuple[Port, ...]] = (Port("x"),)
    outputs: ClassVar[tuple[Port, ...]] = (Port("y"),)
    examples: ClassVar[tuple[Example, ...]] = ()
    replaces: ClassVar[tuple[str, ...]] = ()  # older type names of this operator
    renamed: ClassVar[Mapping[str, str]] = {}  # older parameter name -> current one
    exceptions: ClassVar[Mapping[str, str]] = {}  # oracle of the conformance suite -> reason why it does not apply
    default_activation: ClassVar[str] = ""  # not empty: layers of this type need an activation; new ones get this one
    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def __init_subclass__(
        cls,
        *,
        type: str = "",
        title: str = "",
        category: Category | None = None,
        role: Role | None = None,
        synonyms: tuple[str, ...] | None = None,
        icon: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        if type and not _TYPE.match(type):
            raise TypeError(f"operator type '{type}' must be lower case letters, digits and underscores")
        cls.type = type
        cls.title = title or type.replace("_", " ").capitalize()
        cls.icon = icon
        cls.synonyms = synonyms if synonyms is not None else ()
        if category is not None:
            cls.category = category
        if role is not None:
            cls.role = role
        documented = cls.__doc__
        dataclasses.dataclass(frozen=True, kw_only=True, repr=True)(cls)
        cls.__doc__ = documented  # dataclass writes a signature where there is none
        cls.parameters = _parameters(cls)

    # --- the declaration, to be overridden --------------------------------------------------------------------

    def input_ports(self) -> tuple[Port, ...]:
        """The input ports; override it if they depend on parameters."""
        return self.inputs

    def output_ports(self) -> tuple[Port, ...]:
        """The output ports; override it if they depend on parameters."""
        return self.outputs

    def faults(self) -> Iterable[Fault]:
        """Violations of rules that bounds cannot express, such as those between parameters; such a layer cannot run."""
        return ()

    def infer(self, inputs: Sequence[TensorType]) -> TensorType | tuple[TensorType, ...]:
        """The types of the outputs from the types of the inputs. Raises ShapeError with the violated rule."""
        raise NotImplementedError(f"{self.type}: infer is not declared")

    def torch(self, inputs: Sequence[TensorType]) -> TorchExpr | tuple[TorchExpr, ...]:
        """The computation in torch as data, one expression per output."""
        raise NotImplementedError(f"{self.type}: torch is not declared")

    def onnx(self, inputs: Sequence[TensorType]) -> OnnxValue | tuple[OnnxValue, ...]:
        """The computation in ONNX (opset `OPSET`) as data, one value per output."""
        raise NotImplementedError(f"{self.type}: onnx is not declared")

    def flops(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> int:
        """Floating-point operations, counted as torch's FlopCounterMode counts; symbols in the types count as 1."""
        return 0

    def weights(self, inputs: Sequence[TensorType]) -> tuple[Weight, ...]:
        """The tensors of this layer in weights files."""
        return ()

    def summary(self) -> str:
        """The most important parameters, for the node on the canvas: `3x3 / 2 · 64`."""
        return ""

    def base_name(self) -> str:
        """The prefix of names of new layers: `convolution` in `convolution_0`."""
        return self.type

    def options(self) -> tuple[Option, ...]:
        """Controls of this layer in the analysis view."""
        return ()

    def labels(self, port: str) -> Sequence[str]:
        """Names of the values of an output that is not an image: `("mean", "deviation", ...)`; empty if they have none."""
        return ()

    def evaluate(self, inputs: Sequence[NDArray[np.float32]]) -> tuple[NDArray[np.float32], ...]:
        """Analysis layers only: compute the outputs, N x C x H x W numpy arrays. Never write to the inputs."""
        raise NotImplementedError(f"{self.type}: evaluate is not declared")

    def reach(self) -> int | None:
        """Analysis layers only: the distance in pixels up to which an output pixel depends on input pixels; None: unknown."""
        return None

    def also_set(self, param: str, value: Value) -> Mapping[str, Value]:
        """Parameters that an `Option` also sets when a user sets `param` to another value with it; by default none."""
        return {}

    def scaled_down(self, factor: int) -> Mapping[str, Value]:
        """Analysis layers only: pixel-based parameters converted to an image of 1 / `factor` of the width and height."""
        return {}

    # --- derived from the declaration -------------------------------------------------------------------------

    def cost(self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]) -> Cost:
        """The cost of this layer; bytes are those of its inputs, weights and outputs in FP32."""
        weights = self.weights(inputs)
        sizes = [prod(w.shape) for w in weights]
        return Cost(
            flops=self.flops(inputs, outputs),
            bytes_read=sum(t.nbytes() for t in inputs) + 4 * sum(sizes),
            bytes_written=sum(t.nbytes() for t in outputs),
            parameters=sum(size for size, w in zip(sizes, weights, strict=True) if w.trainable),
        )

    def infer_checked(self, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        """`infer` after a check of the number, ranks and element types of the inputs; always returns a tuple."""
        check_ports(self.title, self.input_ports(), inputs)
        result = self.infer(inputs)
        outputs = result if isinstance(result, tuple) else (result,)
        for tensor in outputs:
            if tensor.elements() > MAX_ELEMENTS:
                raise ShapeError(
                    tr("the output {tensor} is too large", tensor=tensor),
                    remedy=tr("use a smaller input or smaller parameters"),
                )
        for weight in self.weights(inputs):
            if prod(weight.shape) > MAX_ELEMENTS:
                shape = dims_text(weight.shape)
                raise ShapeError(
                    tr("the weight '{name}' of {shape} is too large", name=weight.name, shape=shape),
                    remedy=tr("use smaller parameters"),
                )
        return outputs

    def texts(self, *, all: bool = True) -> dict[str, str]:
        """Parameters as canonical text, sorted by name; without `all`, extensions at their default are omitted."""
        values = {p.name: (p, getattr(self, p.name)) for p in self.parameters}
        return {
            name: p.format(value)
            for name, (p, value) in sorted(values.items())
            if all or not p.info.extension or value != p.default
        }

    def values(self) -> dict[str, Value]:
        """Parameters by name."""
        return {p.name: getattr(self, p.name) for p in self.parameters}

    @classmethod
    def parameter(cls, name: str) -> Parameter | None:
        return next((p for p in cls.parameters if p.name == name), None)

    @classmethod
    def help(cls) -> str:
        """The docstring of the declaration without indentation."""
        return inspect.cleandoc(cls.__doc__ or "")


def _parameters(cls: type[Operator]) -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    for item in dataclasses.fields(cls):  # type: ignore[arg-type]
        info = item.metadata.get("param")
        if not isinstance(info, ParamInfo):
            raise TypeError(f"{cls.__name__}.{item.name}: declare parameters with param(default=...)")
        annotation: Any = item.type
        if isinstance(annotation, str) and not is_kind(annotation):
            annotation = typing.get_type_hints(cls)[item.name]
        default = typing.cast(Value, item.default)
        found.append(Parameter(item.name, kind_of(annotation, info, cls.__name__, item.name), default, info))
    return tuple(found)


class Activation(Operator):
    """Base of activation functions: one input, one output. They can be attached to the first output of any layer."""

    category: ClassVar[Category] = Category.ACTIVATION
    inputs: ClassVar[tuple[Port, ...]] = (Port("x", dtypes=FLOATS),)
    examples: ClassVar[tuple[Example, ...]] = (Example((image(),)),)
    weight_prefix: ClassVar[str] = "activation_"

    def infer(self, inputs: Sequence[TensorType]) -> TensorType | tuple[TensorType, ...]:
        return inputs[0]
