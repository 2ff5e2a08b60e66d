"""The path of modules that a node belongs to: exporter metadata, else its name."""

from __future__ import annotations

from ast import literal_eval
from typing import Any

from designer.importers.templates import Scope

NAME_SCOPES = "pkg.torch.onnx.name_scopes"


def scope_of(node: Any) -> Scope:
    """The modules around a node, outermost first, without the node itself."""
    listed = node.metadata_props.get(NAME_SCOPES)
    if listed:
        return _from_metadata(listed)
    parts = [part for part in (node.name or "").split("/") if part]
    return tuple(parts[:-1])


def _from_metadata(text: str) -> Scope:
    """`['', 'layer1', 'layer1.0', 'layer1.0.conv1', 'conv2d']`: each entry is the full path of a module, the last the node."""
    try:
        names = literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return ()
    scope: list[str] = []
    before = ""
    for name in names[:-1]:
        own = name.removeprefix(f"{before}.") if before else name
        if own:
            scope.append(own)
        before = name
    return tuple(scope)
