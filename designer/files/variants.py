"""Named variants of a network: other ways to run the same document, such as in half precision. Part of the settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

SECTION = "Variants/"
_PLAIN = ("name", "precision", "sparsity", "engine", "weights")  # settings of a variant that are one text
_FORMATS = "formats/"


@dataclass(frozen=True, slots=True)
class Variant:
    """How a variant differs from the network of the document; empty texts are as in the settings of the document.

    `formats` are number formats by layer, for layers that do not compute in `precision`. `passes` are names of graph passes.
    Texts are stored unchecked, because they may come from newer versions; `extra` are such settings, preserved when saving.
    """

    name: str
    precision: str = "fp32"
    formats: Mapping[str, str] = field(default_factory=dict)
    sparsity: str = "dense"  # or 2:4, with weights that are pruned unless they are sparse
    engine: str = ""
    passes: tuple[str, ...] = ()
    weights: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)

    def without(self, layers: Collection[str]) -> Variant:
        """The variant without the formats of some layers."""
        return replace(self, formats={k: v for k, v in self.formats.items() if k not in layers})


def variant_texts(variants: tuple[Variant, ...], relative: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Names and texts of the settings of variants; `relative` makes paths relative."""
    for number, variant in enumerate(variants):
        section = f"{SECTION}{number}/"
        for key in _PLAIN:
            text = getattr(variant, key)
            yield section + key, relative(text) if key == "weights" else text
        yield section + "passes", ",".join(variant.passes)
        for layer, name in variant.formats.items():
            yield f"{section}{_FORMATS}{layer}", name
        for key, text in variant.extra.items():
            yield section + key, text


class VariantReader:
    """Collects the settings of variants, which may come in any order."""

    def __init__(self, absolute: Callable[[str], str]) -> None:
        self._absolute = absolute
        self._found: dict[int, dict[str, str]] = {}

    def take(self, name: str, text: str) -> bool:
        """Take one setting. Returns False if it does not belong to a variant."""
        number, slash, key = name.removeprefix(SECTION).partition("/")
        if not name.startswith(SECTION) or not slash or not (number.isascii() and number.isdigit()) or len(number) > 6:
            return False
        self._found.setdefault(int(number), {})[key] = text
        return True

    def variants(self) -> tuple[Variant, ...]:
        """The variants in the order of their numbers; one without a name, or with that of an earlier one, gets a number."""
        made: dict[str, Variant] = {}
        for _, texts in sorted(self._found.items()):
            base = name = texts.pop("name", "") or "variant"
            number = 2
            while name in made:
                name, number = f"{base} {number}", number + 1
            plain = {key: texts.pop(key) for key in _PLAIN if key in texts}
            formats = {key.removeprefix(_FORMATS): texts.pop(key) for key in list(texts) if key.startswith(_FORMATS)}
            passes = tuple(filter(None, texts.pop("passes", "").split(",")))
            if "weights" in plain:
                plain["weights"] = self._absolute(plain["weights"])
            made[name] = Variant(name, formats=formats, passes=passes, extra=texts, **plain)
        return tuple(made.values())
