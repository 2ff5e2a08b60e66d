"""Ideas for texts that break their rule: nearest valid values, similar names, defaults."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping

from designer.graph.model import ActivationSpec, Layer
from designer.graph.template import INPUT, INSTANCE, OUTPUT, PARAMETER
from designer.operators.api import Operator
from designer.operators.fix_case import Case, Idea
from designer.operators.params import ParamError, Parameter
from designer.texts import tr, tr_data

NEAR = 0.6  # similarity from which a name is suggested for another
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")


def ideas(case: Case) -> Iterator[Idea]:
    """Ideas by the code of the finding."""
    layer, code = case.layer, case.finding.code
    if layer is None:
        return
    if code in ("bad-parameter", "unknown-parameter"):
        yield from _parameter(case, layer)
    elif code in ("unknown-activation", "no-activation", "activation-on-analysis"):
        yield from _activation(case, layer)
    elif code == "unknown-operator":
        yield from _type(case, layer)
    elif code == "unknown-template":
        names = sorted(case.graph.templates)
        for name in nearest(layer.params.get(PARAMETER, ""), names) or names:
            yield Idea(tr("Use the template '{name}'", name=name), case.set_param(layer, PARAMETER, name))
    elif code == "shared-shape":
        yield Idea(tr("Give this instance separate weights"), case.set_param(layer, "shared_weights", "false"))
    elif code == "outside-template" and layer.type in (INPUT, OUTPUT):
        name, title = (
            ("input", tr("Make it an input of the network"))
            if layer.type == INPUT
            else ("output", tr("Make it an output of the network"))
        )
        plain = case.registry.get(name)
        if plain is not None:
            yield Idea(title, case.change(layer, type=plain.type, params=plain().texts(all=False)))


def resets(case: Case, layer: Layer) -> Iterator[Idea]:
    """Each parameter that differs from its default, reset."""
    cls = case.cls(layer)
    for parameter in cls.parameters if cls is not None and layer.type != INSTANCE else ():
        text = layer.params.get(parameter.name)
        if text is not None and text != parameter.format(parameter.default):
            yield _reset(case, layer, parameter)


def _reset(case: Case, layer: Layer, parameter: Parameter) -> Idea:
    default = parameter.format(parameter.default)
    return Idea(
        tr("Reset {title} to {default}", title=_title(parameter), default=default or tr("empty")),
        case.set_param(layer, parameter.name, default),
    )


def _title(parameter: Parameter) -> str:
    """Names of parameters are those of the files, in every language."""
    return parameter.title.lower()


def _parameter(case: Case, layer: Layer) -> Iterator[Idea]:
    """The parameter may belong to the layer's type or to its attached activation."""
    name, cls, spec = case.finding.parameter or "", case.cls(layer), layer.activation
    attached = case.registry.activations.get(spec.type) if spec is not None else None
    if cls is not None and (name in layer.params or cls.parameter(cls.renamed.get(name, name)) is not None):
        for title, params in _texts(cls, layer.params, name):
            yield Idea(title, case.change(layer, params=params))
    if spec is not None and attached is not None and name in spec.params:
        for title, params in _texts(attached, spec.params, name):
            changed = ActivationSpec(spec.type, params, spec.attributes, spec.children)
            yield Idea(tr("{title} of the activation", title=title), case.with_activation(layer, changed))
    if case.finding.code == "bad-parameter":
        yield from resets(case, layer)


def _texts(cls: type[Operator], texts: Mapping[str, str], name: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Alternative texts of a layer's parameters: (title, all texts)."""
    parameter = cls.parameter(cls.renamed.get(name, name))
    if parameter is None:
        rest = {n: t for n, t in texts.items() if n != name}
        free = [p.name for p in cls.parameters if p.name not in texts]
        for meant in nearest(name, free):
            wanted = cls.parameter(meant)
            if wanted is not None and _fits(wanted, texts[name]):
                yield tr("Rename '{name}' to '{meant}'", name=name, meant=meant), {**rest, meant: texts[name]}
        yield tr("Remove '{name}'", name=name), rest
        return
    text = texts.get(name, parameter.format(parameter.default))
    for candidate in _legal(parameter, text):
        if candidate != text:
            yield (
                tr("Set {title} to {candidate}", title=_title(parameter), candidate=candidate or tr("empty")),
                {**texts, name: candidate},
            )
    default = parameter.format(parameter.default)
    if text != default:
        yield (
            tr("Reset {title} to {default}", title=_title(parameter), default=default or tr("empty")),
            {**texts, name: default},
        )


def _legal(parameter: Parameter, text: str) -> Iterator[str]:
    """Valid texts similar to `text`."""
    if parameter.kind == "bool":
        meant = {"1": "true", "yes": "true", "on": "true", "0": "false", "no": "false", "off": "false"}
        folded = text.strip().casefold()
        yield from (t for t in (meant.get(folded, folded),) if _fits(parameter, t))
    elif parameter.info.choices:
        yield from nearest(text.strip().casefold(), parameter.info.choices)
    elif parameter.kind != "str":
        numbers = [float(n) for n in _NUMBER.findall(text.replace("X", "x"))[:64]]
        whole = parameter.kind != "float" and parameter.kind != "floats"
        for step in (1, -1) if _fits(parameter, text) else (0,):  # a neighbor: odd where even breaks a rule
            parts = [_number(parameter, number + step, whole=whole) for number in numbers]
            yield from (t for t in _joined(parameter.kind, parts) if _fits(parameter, t))


def _number(parameter: Parameter, number: float, *, whole: bool) -> str:
    low, high = parameter.info.min, parameter.info.max
    number = max(number, low) if low is not None else number
    number = min(number, high) if high is not None else number
    return str(round(number)) if whole and math.isfinite(number) else parameter.format(number)


def _joined(kind: str, parts: list[str]) -> Iterator[str]:
    count = {"int": 1, "float": 1, "size2d": 2, "size2d?": 2, "size3d": 3}.get(kind, len(parts))
    sign = "x" if kind.startswith("size") else ","
    if len(parts) >= count > 0:
        yield sign.join(parts[:count])
    elif len(parts) == 1 and count == 2:
        yield sign.join(parts * 2)  # one number for a square


def _fits(parameter: Parameter, text: str) -> bool:
    try:
        parameter.parse(text)
    except ParamError:
        return False
    return True


def _activation(case: Case, layer: Layer) -> Iterator[Idea]:
    code, spec, cls = case.finding.code, layer.activation, case.cls(layer)
    known = case.registry.activations
    if code == "no-activation" and cls is not None and cls.default_activation in known:
        made = ActivationSpec(cls.default_activation, known[cls.default_activation]().texts(all=False))
        yield Idea(tr("Attach {title}", title=tr_data(known[made.type].title)), case.with_activation(layer, made))
    if spec is None:
        return
    if code == "unknown-activation":
        for name in nearest(spec.type, known):
            params = {n: t for n, t in spec.params.items() if known[name].parameter(n) is not None}
            changed = ActivationSpec(name, params, spec.attributes, spec.children)
            yield Idea(
                tr("Use {title} instead", title=tr_data(known[name].title)), case.with_activation(layer, changed)
            )
    yield Idea(tr("Remove the activation"), case.with_activation(layer, None))


def _type(case: Case, layer: Layer) -> Iterator[Idea]:
    """The operator whose type, title or synonym is similar to an unknown type."""
    names: dict[str, str] = {}
    for cls in case.registry:
        names.update(dict.fromkeys((cls.type, cls.title.casefold(), *cls.synonyms), cls.type))
    for name in dict.fromkeys(names[found] for found in nearest(layer.type.casefold(), names)):
        known = case.registry.get(name)
        if known is not None:
            kept = {n: t for n, t in layer.params.items() if (p := known.parameter(n)) is not None and _fits(p, t)}
            params = {**known().texts(all=False), **kept}
            yield Idea(tr("Change its type to '{name}'", name=name), case.change(layer, type=name, params=params))


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """The names that `word` most likely means, best match first."""
    names = list(known)
    if word in names:
        return [word]
    begun = [n for n in names if word and (n.startswith(word) or word.startswith(n))]
    close = difflib.get_close_matches(word, names, n=3, cutoff=NEAR)
    return list(dict.fromkeys([*close, *begun]))[:3]
