"""Why a layer cannot become part of a torch program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.operators.torch_data import TorchModule
from designer.texts import tr


def check_shared(layer: str, owner: str, made: Mapping[str, Any], present: Mapping[str, Any]) -> None:
    """Raise DiagnosticError unless a layer needs the same modules as the one whose weights it shares.

    `made` is what the layer's attributes would hold, `present` what the program's attributes hold.
    """
    for name, content in made.items():
        if name not in present or _construction(present[name]) != _construction(content):
            raise DiagnosticError(
                Diagnostic(
                    "shared-shape",
                    tr(
                        "'{layer}' cannot use the weights of '{owner}': its tensors would be others than those there",
                        layer=layer,
                        owner=owner,
                    ),
                    layer=layer,
                    remedy=tr("feed both with the same number of channels, or do not share the weights"),
                )
            )


def _construction(content: Any) -> Any:
    """What an attribute is made from, without what it is called with."""
    if isinstance(content, TorchModule):
        return (content.path, content.kwargs)
    if isinstance(content, Mapping):
        return {name: _construction(module) for name, module in content.items()}
    return content


def unknown_shape(layer: str) -> Diagnostic:
    return Diagnostic(
        "not-runnable",
        tr("the shape of '{layer}' is not known, so it cannot become torch code", layer=layer),
        layer=layer,
        remedy=tr("look at the findings of the type checking"),
    )


def bad_data(layer: str, reason: str) -> Diagnostic:
    return Diagnostic(
        "bad-torch-data",
        tr("the torch declaration of '{layer}' is wrong: {reason}", layer=layer, reason=reason),
        layer=layer,
        remedy=tr("repair the operator's torch()"),
    )
