"""Safe XML parsing into a small tree with line numbers. No DTD, no entities, no network access, all sizes limited.

The tree preserves what is needed to write a document back: attribute order, comments, processing instructions and text.
Prefixes are part of the names; `Element.scope` maps them to namespaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from xml.parsers import expat

from designer.files import limits
from designer.texts import tr

_ENCODINGS = ("utf-8", "utf-16", "us-ascii", "iso-8859-1", "windows-1252")
SPACE = " \t\r\n"


class XmlError(Exception):
    """The bytes are not supported XML. `code` is that of the diagnostic, `line` is 1-based."""

    def __init__(self, code: str, message: str, remedy: str, line: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.line = line


@dataclass(slots=True)
class Text:
    """Character data; `cdata` if it was in a CDATA section."""

    text: str
    cdata: bool = False
    line: int = 0


@dataclass(slots=True)
class Markup:
    """A comment or a processing instruction, verbatim."""

    xml: str
    line: int = 0


@dataclass(slots=True)
class Element:
    name: str
    attributes: dict[str, str]
    scope: Mapping[str, str]  # prefix -> namespace, "" for the default one
    line: int
    children: list[Element | Text | Markup] = field(default_factory=list)

    @property
    def namespace(self) -> str:
        """The element's namespace; "" for none and for an undeclared prefix."""
        prefix, colon, _ = self.name.partition(":")
        return self.scope.get(prefix if colon else "", "")

    @property
    def local(self) -> str:
        return self.name.rpartition(":")[2]

    def is_plain(self, name: str) -> bool:
        """Whether this is the element `name` without prefix and namespace."""
        return self.name == name and not self.scope.get("", "")

    def text(self) -> str:
        """The character data directly inside, joined."""
        return "".join(child.text for child in self.children if isinstance(child, Text))


class _TreeBuilder:
    """Expat's handlers; the finished tree is `root`."""

    def __init__(self, parser: expat.XMLParserType, prefixes: Mapping[str, str]) -> None:
        self.root: Element | None = None
        self.outside: list[Markup] = []  # comments before and after the root element
        self._parser = parser
        self._prefixes = {"xml": "http://www.w3.org/XML/1998/namespace", **prefixes}
        self._stack: list[Element] = []
        self._count = 0
        self._namespaces = 0
        self._cdata = False

    def stop(self, code: str, message: str, remedy: str) -> XmlError:
        return XmlError(code, message, remedy, self._parser.CurrentLineNumber)

    def declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in _ENCODINGS:
            shown = encoding[:40]
            raise self.stop(
                "bad-encoding", tr("the encoding '{shown}' is not supported", shown=shown), tr("save the file as UTF-8")
            )

    def doctype(self, name: str, *rest: object) -> None:
        raise self.stop(
            "dtd", tr("a document type declaration is not allowed in a model file"), tr("remove the <!DOCTYPE ...>")
        )

    def entity(self, name: str, *rest: object) -> None:
        raise self.stop("dtd", tr("an entity declaration is not allowed in a model file"), tr("remove the declaration"))

    def start(self, name: str, pairs: list[str]) -> None:
        self._one_more()
        if len(self._stack) >= limits.MAX_DEPTH:
            raise self.stop(
                "too-deep",
                tr("elements are nested more than {limit} levels deep", limit=limits.MAX_DEPTH),
                tr("this is not a model file; choose another"),
            )
        if len(pairs) > 2 * limits.MAX_ATTRIBUTES:
            raise self.stop(
                "too-large",
                tr("an element has more than {limit} attributes", limit=limits.MAX_ATTRIBUTES),
                tr("shorten the element"),
            )
        attributes = dict(zip(pairs[::2], pairs[1::2], strict=True))
        scope = self._stack[-1].scope if self._stack else self._prefixes
        for key, value in attributes.items():
            if len(value) > limits.MAX_TEXT:
                raise self.stop(
                    "too-large",
                    tr(
                        "the attribute '{key}' has {count} characters, the limit is {limit}",
                        key=key[:80],
                        count=len(value),
                        limit=limits.MAX_TEXT,
                    ),
                    tr("shorten the text"),
                )
        declared = {k.partition(":")[2]: v for k, v in attributes.items() if k == "xmlns" or k.startswith("xmlns:")}
        if declared:
            self._namespaces += len(declared)
            if self._namespaces > limits.MAX_NAMESPACES:
                message = tr("the file declares more than {limit} namespaces", limit=limits.MAX_NAMESPACES)
                raise self.stop("too-large", message, tr("declare each prefix once, on the root element"))
            scope = {**scope, **declared}
        element = Element(name, attributes, scope, self._parser.CurrentLineNumber)
        if self._stack:
            self._stack[-1].children.append(element)
        else:
            self.root = element
        self._stack.append(element)

    def end(self, name: str) -> None:
        self._stack.pop()

    def characters(self, text: str) -> None:
        if self._stack:
            siblings = self._stack[-1].children
            last = siblings[-1] if siblings else None
            if isinstance(last, Text) and last.cdata == self._cdata:
                last.text += text
            else:
                self._one_more()
                siblings.append(Text(text, self._cdata, self._parser.CurrentLineNumber))

    def start_cdata(self) -> None:
        self._cdata = True

    def end_cdata(self) -> None:
        self._cdata = False

    def comment(self, text: str) -> None:
        self._markup(f"<!--{text}-->")

    def instruction(self, target: str, text: str) -> None:
        self._markup(f"<?{target} {text}?>" if text else f"<?{target}?>")

    def _markup(self, xml: str) -> None:
        self._one_more()
        markup = Markup(xml, self._parser.CurrentLineNumber)
        if self._stack:
            self._stack[-1].children.append(markup)
        else:
            self.outside.append(markup)

    def _one_more(self) -> None:
        self._count += 1
        if self._count > limits.MAX_ELEMENTS:
            raise self.stop(
                "too-large",
                tr("the file has more than {limit} elements", limit=limits.MAX_ELEMENTS),
                tr("this is not a model file; choose another"),
            )


def parse_xml(
    data: bytes, max_bytes: int = limits.MAX_DOCUMENT_BYTES, prefixes: Mapping[str, str] = MappingProxyType({})
) -> tuple[Element, list[Markup]]:
    """The root element and the comments outside of it. Raises only XmlError.

    `prefixes` are bound to their namespaces even if the file does not declare them.
    """
    if len(data) > max_bytes:
        raise XmlError(
            "file-too-large",
            tr("the file has {count} bytes, the limit is {max_bytes}", count=len(data), max_bytes=max_bytes),
            tr("this is not a model file; choose another"),
        )
    if not data.strip():
        raise XmlError("empty-file", tr("the file is empty"), tr("choose another file, or restore it from a copy"))
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.ordered_attributes = True
    builder = _TreeBuilder(parser, prefixes)
    parser.XmlDeclHandler = builder.declaration
    parser.StartDoctypeDeclHandler = builder.doctype
    parser.EntityDeclHandler = builder.entity
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.characters
    parser.StartCdataSectionHandler = builder.start_cdata
    parser.EndCdataSectionHandler = builder.end_cdata
    parser.CommentHandler = builder.comment
    parser.ProcessingInstructionHandler = builder.instruction
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise _explain(error, data) from None
    except (LookupError, ValueError) as error:  # an encoding that Python does not support
        raise XmlError(
            "bad-encoding", tr("the encoding is not supported: {error}", error=error), tr("save the file as UTF-8")
        ) from None
    if builder.root is None:  # expat reports this itself; kept for the type checker
        raise XmlError("not-xml", tr("the file has no root element"), tr("choose a model file"))
    return builder.root, builder.outside


def _explain(error: expat.ExpatError, data: bytes) -> XmlError:
    name = expat.errors.messages.get(error.code, str(error))
    if error.code in _CUT_SHORT:
        return XmlError(
            "truncated",
            tr("the file ends too early ({name})", name=name),
            tr("restore it from a copy or save it again"),
            error.lineno,
        )
    if name in _ENCODING_ERRORS or (name == "not well-formed (invalid token)" and not _is_text(data)):
        return XmlError(
            "bad-encoding",
            tr("the bytes are not valid in the encoding of the file ({name})", name=name),
            tr("save the file as UTF-8"),
            error.lineno,
        )
    return XmlError(
        "not-xml", tr("the file is not well-formed XML: {name}", name=name), tr("fix the XML there"), error.lineno
    )


def _is_text(data: bytes) -> bool:
    """Whether the bytes are UTF-8 or declare another encoding."""
    if b"encoding=" in data[:200]:
        declared = data[:200].lower()
        if b"utf-8" not in declared:
            return True
    if b"\0" in data[:4096] or not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return True  # not a text file: "not XML" is clearer
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


_CODES = expat.errors.codes
_CUT_SHORT = {
    _CODES[m]
    for m in (
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
}
_ENCODING_ERRORS = {expat.errors.XML_ERROR_UNKNOWN_ENCODING, expat.errors.XML_ERROR_INCORRECT_ENCODING}
