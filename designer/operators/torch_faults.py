"""Errors of layers that cannot become part of a torch program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.operators.torch_data import TorchModule
from designer.texts import tr


def check_shared(layer: str, owner: str, made: Mapping[str, Any], present: Mapping[str, Any]) -> None:
    """Raise DiagnosticError unless a layer needs the same modules as the one whose weights it shares.

    `made` is the content of the layer's attributes, `present` that of the program's.
    """
    for name, content in made.items():
        if name not in present or _construction(present[name]) != _construction(content):
            raise DiagnosticError.of(
                "shared-shape",
                tr(
                    "'{layer}' cannot share the weights of '{owner}': it needs tensors of other names or shapes",
                    layer=layer,
                    owner=owner,
                ),
                layer=layer,
                remedy=tr("give both the same number of input channels, or do not share the weights"),
            )


def _construction(content: Any) -> Any:
    """How an attribute is constructed, without the arguments that it is called with."""
    if isinstance(content, TorchModule):
        return (content.path, content.kwargs)
    if isinstance(content, Mapping):
        return {name: _construction(module) for name, module in content.items()}
    return content


def unknown_shape(layer: str) -> Diagnostic:
    return Diagnostic(
        "not-runnable",
        tr("the shape of '{layer}' is unknown, so it cannot be converted to torch", layer=layer),
        layer=layer,
        remedy=tr("fix the problems that Type Checking lists"),
    )


def bad_data(layer: str, reason: str) -> Diagnostic:
    return Diagnostic(
        "bad-torch-data",
        tr("the torch declaration of '{layer}' is wrong: {reason}", layer=layer, reason=reason),
        layer=layer,
        remedy=tr("correct the operator's torch()"),
    )
