"""Named variants of a network: other ways to run the same document, such as in half precision. Part of the settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

SECTION = "Variants/"
_PLAIN = ("name", "precision", "sparsity", "engine", "weights")  # settings of a variant that are one text
_FORMATS, _REASONS, _CALIBRATION = "formats/", "reasons/", "calibration/"
BY_HAND = "by hand"  # the reason of a format that the user chose instead of the one that was found


@dataclass(frozen=True, slots=True)
class CalibrationRecipe:
    """How the ranges of INT8 are found: on the first `count` images of a folder, of each the middle `size` (`WxH`; empty: the input's).

    `method` and `form` are names in `designer.precision.int8`; without a form, that of ONNX Runtime.
    """

    folder: str = ""
    count: int = 32
    size: str = ""
    method: str = "minmax"
    percentile: float = 99.99
    form: str = ""

    def texts(self) -> dict[str, str]:
        return {each.name: str(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> CalibrationRecipe | None:
        """The recipe of texts; None if they are not one."""
        try:
            count, percentile = int(texts["count"]), float(texts["percentile"])
            return cls(texts["folder"], count, texts["size"], texts["method"], percentile, texts["form"])
        except (KeyError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class Variant:
    """How a variant differs from the network of the document; empty texts are as in the settings of the document.

    `formats` are number formats by layer, for layers that do not compute in `precision`, and `reasons` why, if known: BY_HAND for
    those that the user changed. `passes` are names of graph passes. `calibration` belongs to the precision INT8.
    Texts are stored unchecked, because they may come from newer versions; `extra` are such settings, preserved when saving.
    """

    name: str
    precision: str = "fp32"
    formats: Mapping[str, str] = field(default_factory=dict)
    sparsity: str = "dense"  # or 2:4, with weights that are pruned unless they are sparse
    engine: str = ""
    passes: tuple[str, ...] = ()
    weights: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)
    calibration: CalibrationRecipe | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def by_hand(self) -> bool:
        """Whether the user changed a format that was found."""
        return BY_HAND in self.reasons.values()

    def without(self, layers: Collection[str]) -> Variant:
        """The variant without the formats of some layers."""
        formats, reasons = (
            {name: text for name, text in texts.items() if name not in layers} for texts in (self.formats, self.reasons)
        )
        return replace(self, formats=formats, reasons=reasons)

    def renamed(self, name_of: Callable[[str], str | None]) -> Variant:
        """The variant whose layers have the names that `name_of` returns; without those for which it returns None."""
        formats, reasons = (
            {new: text for name, text in texts.items() if (new := name_of(name)) is not None}
            for texts in (self.formats, self.reasons)
        )
        return replace(self, formats=formats, reasons=reasons)


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
        for layer, reason in variant.reasons.items():
            yield f"{section}{_REASONS}{layer}", reason
        if variant.calibration is not None:
            for key, text in variant.calibration.texts().items():
                yield f"{section}{_CALIBRATION}{key}", relative(text) if key == "folder" else text
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
            formats, reasons = _taken(texts, _FORMATS), _taken(texts, _REASONS)
            calibration = self._calibration(texts)
            passes = tuple(filter(None, texts.pop("passes", "").split(",")))
            if "weights" in plain:
                plain["weights"] = self._absolute(plain["weights"])
            made[name] = Variant(
                name, formats=formats, passes=passes, reasons=reasons, calibration=calibration, extra=texts, **plain
            )
        return tuple(made.values())

    def _calibration(self, texts: dict[str, str]) -> CalibrationRecipe | None:
        """Take the recipe out of `texts`; one that cannot be read stays there."""
        found = CalibrationRecipe.of(
            {key.removeprefix(_CALIBRATION): text for key, text in texts.items() if key.startswith(_CALIBRATION)}
        )
        if found is None:
            return None
        _taken(texts, _CALIBRATION)
        return replace(found, folder=self._absolute(found.folder))


def _taken(texts: dict[str, str], prefix: str) -> dict[str, str]:
    """Take the texts with a prefix out of `texts`; without the prefix."""
    return {key.removeprefix(prefix): texts.pop(key) for key in list(texts) if key.startswith(prefix)}
