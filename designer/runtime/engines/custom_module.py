"""Creates modules from a user's source. Only this module executes such text, after the user agreed to it."""

from __future__ import annotations

import traceback
import zlib
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.inference import Inference
from designer.graph.types import TensorType
from designer.operators.code_text import agreement_text, digest
from designer.operators.library.development.custom import Custom
from designer.operators.torch_data import TorchSource
from designer.operators.torch_program import Attribute, Program
from designer.texts import tr, trn

if TYPE_CHECKING:
    import torch


def check_agreed(inference: Inference, layers: Iterable[str], agreed: Collection[str]) -> None:
    """Raise DiagnosticError ("not-agreed") for every layer among `layers` that the user did not agree to."""
    refused = []
    for name in layers:
        operator = inference.read(name).operator
        if isinstance(operator, Custom) and digest(operator.agreement) not in agreed:
            refused.append(_not_agreed(name))
    if refused:
        raise DiagnosticError(refused)


def make_custom(attribute: Attribute, data: TorchSource, program: Program, agreed: Collection[str]) -> torch.nn.Module:
    """The module that `data` describes. Raises DiagnosticError ("not-agreed") before any of the text runs.

    Any exception of the text, here or in `forward`, becomes a DiagnosticError that names the line. Learned tensors must be
    declared by the layer, so that no weights are initialized silently.
    """
    import torch

    layer = attribute.layer
    if digest(agreement_text(data.text, data.path, data.positional, data.kwargs)) not in agreed:
        raise DiagnosticError(_not_agreed(layer))
    file = f"<source of {layer}>"
    # The class draws the same random numbers every time and leaves the global generator untouched.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(zlib.crc32(f"{layer}\0{data.text}".encode("utf-8", "surrogatepass")))
        made = _guarded(layer, file, "could not be constructed", lambda: _made(data, file))
    if not isinstance(made, torch.nn.Module):
        raise _failed(
            layer, tr("'{path}' is not a torch.nn.Module", path=data.path), tr("derive the class from nn.Module")
        )
    _check_tensors(attribute, made, program)
    forward, types = made.forward, data.outputs

    def checked(*inputs: torch.Tensor) -> Any:
        result = _guarded(layer, file, "failed", lambda: forward(*inputs))
        _check_result(layer, result, types[0], inputs)
        return result

    made.forward = checked
    return made


def _made(data: TorchSource, file: str) -> Any:
    import torch

    space: dict[str, Any] = {
        "__name__": "layerwright_custom",
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
    }
    exec(compile(data.text, file, "exec", dont_inherit=True), space)
    return space[data.path](*data.positional, **data.kwargs)


def _guarded(layer: str, file: str, what: str, action: Callable[[], Any]) -> Any:
    try:
        return action()
    except DiagnosticError:
        raise
    except (Exception, SystemExit) as error:  # the user's code may raise anything but must not end the engine
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        line = frames[-1].lineno if frames else None
        if isinstance(error, SyntaxError) and error.filename == file:
            line = error.lineno
        where = f"line {line} of its source: " if line else ""
        first = _first_line(error)
        reason = f"{type(error).__name__}{': ' if first else ''}{first}"
        raise _failed(layer, f"{what}: {where}{reason}", tr("correct the source or the arguments")) from error


def _first_line(error: BaseException) -> str:
    try:
        return (str(error).strip().splitlines() or [""])[0][:300]
    except Exception:  # its class can be the user's code too
        return ""


def _check_tensors(attribute: Attribute, module: torch.nn.Module, program: Program) -> None:
    """Raise DiagnosticError unless the declared tensors exist with their shapes and all learned tensors are declared."""
    layer, weights = attribute.layer, {bound.key: bound.weight for bound in program.weights}
    declared = {w.torch: w for key, w in weights.items() if key == f"{attribute.name}.{w.torch}"}
    state = module.state_dict()
    for name, weight in declared.items():
        if name not in state:
            known = ", ".join(sorted(state)[:8]) or "none"
            raise _failed(
                layer,
                tr("the module has no tensor '{name}'", name=name),
                tr("declare tensors that it has: {known}", known=known),
                "tensors",
            )
        if tuple(state[name].shape) != weight.shape:
            shown = _shape(state[name].shape)
            raise _failed(
                layer,
                tr("its tensor '{name}' has the shape {shown}", name=name, shown=shown),
                tr("declare that shape"),
                "tensors",
            )
    missing = [(name, p) for name, p in module.named_parameters() if name not in declared]
    if missing:
        lines = "; ".join(f"{name} {_shape(parameter.shape)}".strip() for name, parameter in missing[:8])
        raise _failed(
            layer,
            trn(
                "the module has {count} learned tensor that the layer does not declare",
                "the module has {count} learned tensors that the layer does not declare",
                len(missing),
            ),
            tr("add to the tensors, one per line: {lines}{more}", lines=lines, more=" ..." if len(missing) > 8 else ""),
            "tensors",
        )


def _check_result(layer: str, result: Any, kind: TensorType, inputs: tuple[torch.Tensor, ...]) -> None:
    import torch

    if not isinstance(result, torch.Tensor):
        raise _failed(
            layer, tr("forward returned {name}, not a tensor", name=type(result).__name__), tr("return one tensor")
        )
    batch = inputs[0].shape[0] if inputs and inputs[0].dim() else 1
    if tuple(result.shape) != kind.concrete(batch):
        raise _failed(
            layer,
            tr(
                "forward returned a tensor of {shape}, but {shape2} is declared",
                shape=_shape(result.shape),
                shape2=_shape(kind.concrete(batch)),
            ),
            tr("correct the source or the declared result"),
            "result",
        )
    if result.is_floating_point() != kind.dtype.is_float:
        message = tr("forward returned {dtype}, but {value} is declared", dtype=result.dtype, value=kind.dtype.value)
        raise _failed(layer, message, tr("convert it: .float()"))


def _shape(shape: Iterable[int]) -> str:
    return "x".join(str(d) for d in shape)


def _failed(layer: str, reason: str, remedy: str, parameter: str = "source") -> DiagnosticError:
    message = tr("the custom layer '{layer}': {reason}", layer=layer, reason=reason)
    return DiagnosticError.of("custom-failed", message, layer=layer, parameter=parameter, remedy=remedy)


def _not_agreed(layer: str) -> Diagnostic:
    return Diagnostic(
        "not-agreed",
        tr("'{layer}' contains Python code, which runs only after you agree to it", layer=layer),
        layer=layer,
        parameter="source",
        remedy=tr("read it and agree to it"),
    )
