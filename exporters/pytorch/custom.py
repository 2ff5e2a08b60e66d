"""Sources of custom layers in generated code: unchanged, each once, without name conflicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.operators.code_text import PROVIDED, CodeError, parse_code
from designer.operators.torch_data import TorchModule, TorchSource
from designer.operators.torch_program import Attribute
from designer.texts import tr


def custom_sources(attributes: Iterable[Attribute], taken: Collection[str]) -> list[str]:
    """The texts of all custom layers. `taken` are names that the generated file uses.

    Raises DiagnosticError if two texts define the same name, because a file can contain only one of them.
    """
    owner = dict.fromkeys((*taken, *PROVIDED), "the generated code")
    texts: dict[str, None] = {}
    for attribute in attributes:
        for data in _modules(attribute):
            if data.text in texts:
                continue
            texts[data.text] = None
            try:
                names = parse_code(data.text).names
            except CodeError as error:
                finding = Diagnostic("bad-parameter", str(error), layer=attribute.layer, remedy=error.remedy)
                raise DiagnosticError(finding) from None
            for name in sorted(names):
                if name in owner:
                    raise DiagnosticError(_clash(attribute.layer, name, owner[name]))
                owner[name] = f"another text, of '{attribute.layer}'"
    return list(texts)


def _modules(attribute: Attribute) -> list[TorchSource]:
    content = attribute.content
    found = content.values() if isinstance(content, Mapping) else [content]
    return [data for data in found if isinstance(data, TorchModule) and isinstance(data, TorchSource)]


def _clash(layer: str, name: str, owner: str) -> Diagnostic:
    return Diagnostic(
        "name-clash",
        tr("the source of '{layer}' defines '{name}', but so does {owner}", layer=layer, name=name, owner=owner),
        layer=layer,
        parameter="source",
        remedy=tr("rename it in one of them"),
    )
