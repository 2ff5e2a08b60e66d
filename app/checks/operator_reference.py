"""Writes docs/operators.md from the declarations: `python -m app.checks.operator_reference FILE [--check]`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from designer.graph.types import ShapeError
from designer.operators.api import Activation, Category, Example, OnnxItem, OnnxNode, Operator, Role
from designer.operators.onnx_data import OnnxValue
from designer.operators.params import Parameter, format_value
from designer.operators.registry import Registry, load
from designer.operators.torch_data import TorchCall, TorchMethod, TorchModule, TorchSource, walk

HEAD = """# Operators

Generated from the declarations by `make docs`; do not edit. Images are N x C x H x W; sizes are written width x height. Any
operator that yields a tensor can carry an attached activation. Parameters marked * are written to a file only where
they differ from their default.
"""


def reference(registry: Registry) -> str:
    """The whole page as Markdown."""
    parts = [HEAD]
    operators = list(registry)
    parts.append(f"{len(operators)} operators and {len(registry.activations)} activations.\n")
    for category in Category:
        members = [cls for cls in operators if cls.category is category]
        if category is Category.ACTIVATION:
            activations = sorted(registry.activations.values(), key=lambda cls: cls.type)
            parts.extend(_section(category.value, [*members, *activations]))
        elif members:
            parts.extend(_section(category.value, members))
    return "\n".join(parts).rstrip() + "\n"


def _section(title: str, members: Iterable[type[Operator]]) -> Iterator[str]:
    yield f"## {title}\n"
    for cls in members:
        yield from _operator(cls)


def _operator(cls: type[Operator]) -> Iterator[str]:
    yield f"### `{cls.type}` - {cls.title}\n"
    yield cls.help() + "\n"
    if cls.role is not Role.COMPUTE:
        yield f"Role: {cls.role.value}.\n"
    ports = ", ".join(
        f"`{p.name}`{' (any number)' if p.variadic else ' (optional)' if p.optional else ''}" for p in cls.inputs
    )
    yield f"Inputs: {ports or 'none'}. Outputs: {', '.join(f'`{p.name}`' for p in cls.outputs) or 'none'}.\n"
    if cls.parameters:
        yield "| parameter | default | rule | meaning |"
        yield "|---|---|---|---|"
        for parameter in cls.parameters:
            yield _parameter(parameter)
        yield ""
    yield from _example(cls)


def _parameter(parameter: Parameter) -> str:
    info = parameter.info
    rules = [", ".join(info.choices)] if info.choices else [parameter.kind]
    if info.min is not None:
        rules.append(f">= {format_value(info.min)}")
    if info.max is not None:
        rules.append(f"<= {format_value(info.max)}")
    star = " *" if info.extension else ""
    default = format_value(parameter.default).replace("|", "\\|")
    shown = f"`{default}`" if default else "empty"
    if "\n" in default:
        shown = f"a text of {len(default.splitlines())} lines"
    return f"| `{parameter.name}`{star} | {shown} | {' '.join(rules)} | {info.doc.replace('|', chr(92) + '|')} |"


def _example(cls: type[Operator]) -> Iterator[str]:
    for example in cls.examples:
        operator = cls(**example.params)
        try:
            outputs = operator.infer_checked(example.inputs)
        except ShapeError:
            continue
        inputs = ", ".join(map(str, example.inputs)) or "nothing"
        settings = ", ".join(f"{k}={format_value(v)}".replace("\n", "; ") for k, v in example.params.items())
        yield f"Example{f' ({settings})' if settings else ''}: {inputs} -> {', '.join(map(str, outputs)) or 'nothing'}.\n"
        counterparts = list(_counterparts(operator, example))
        if counterparts:
            yield " ".join(counterparts) + "\n"
        return


def _counterparts(operator: Operator, example: Example) -> Iterator[str]:
    if operator.role is Role.ANALYSIS:
        yield "Runs in numpy between engine runs; left out of exports."
        return
    try:
        tree = operator.torch(example.inputs)
    except NotImplementedError:
        tree = None
    names: dict[str, None] = {}
    for node in walk(tree):
        if isinstance(node, TorchModule | TorchCall) and not isinstance(node, TorchSource):
            names[node.path] = None
        elif isinstance(node, TorchMethod):
            names[f"torch.Tensor.{node.method}"] = None
    if names:
        yield f"torch: {', '.join(f'`{n}`' for n in names)}."
    try:
        value = operator.onnx(example.inputs)
    except NotImplementedError:
        return
    ops: dict[str, None] = {}
    for item in value if isinstance(value, tuple) else (value,):
        _collect(item, ops)
    if ops:
        yield f"ONNX: {', '.join(f'`{n}`' for n in ops)}."


def _collect(value: OnnxValue | None, ops: dict[str, None]) -> None:
    if isinstance(value, OnnxItem):
        value = value.node
    if isinstance(value, OnnxNode):
        for source in value.inputs:
            _collect(source, ops)
        ops[value.op] = None


def operator_dict(cls: type[Operator]) -> dict[str, object]:
    """An operator for programs: what `layerwright operators --json` prints."""
    return {
        "type": cls.type,
        "title": cls.title,
        "category": cls.category.value,
        "attached": issubclass(cls, Activation),
        "help": cls.help(),
        "parameters": [
            {
                "name": p.name,
                "kind": p.kind,
                "default": format_value(p.default),
                "doc": p.info.doc,
                "choices": list(p.info.choices),
                "min": p.info.min,
                "max": p.info.max,
            }
            for p in cls.parameters
        ],
    }


def main() -> int:
    """Write the page, or with --check report whether it agrees with the declarations."""
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    path = Path(arguments[0])
    text = reference(load(entry_points=False))
    if "--check" in sys.argv:
        if path.is_file() and path.read_text("utf-8") == text:
            return 0
        sys.stderr.write(f"{path} is not what the declarations say; run `make docs`\n")
        return 1
    path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
