"""Syntax highlighting of Python source."""

from __future__ import annotations

import keyword
import re

from PySide6.QtGui import QSyntaxHighlighter, QTextCharFormat, QTextDocument

from app.ui.widgets import theme
from app.ui.widgets.theme import RoleName

_TOKEN = re.compile(
    r"(?P<comment>#.*)"
    r"|(?P<string>[rfb]{0,2}(?:\"\"\".*?(?:\"\"\"|$)|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'))"
    r"|(?P<number>\b\d[\d_]*\.?\d*(?:e[+-]?\d+)?\b)"
    r"|(?P<keyword>\b(?:" + "|".join((*keyword.kwlist, "self")) + r")\b)"
)
_OPEN = 1  # block state: inside a triple-quoted string


class PythonHighlighter(QSyntaxHighlighter):
    """Keywords, strings, numbers and comments in the theme's colors."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        theme.changes().changed.connect(self.rehighlight)

    def highlightBlock(self, text: str) -> None:
        start = 0
        if self.previousBlockState() == _OPEN:
            end = text.find('"""')
            if end < 0:
                self._paint(0, len(text), "string")
                self.setCurrentBlockState(_OPEN)
                return
            start = end + 3
            self._paint(0, start, "string")
        self.setCurrentBlockState(0)
        for match in _TOKEN.finditer(text, start):
            kind = match.lastgroup
            if kind == "comment":
                self._paint(match.start(), len(match[0]), "comment")
            elif kind == "string":
                self._paint(match.start(), len(match[0]), "string")
                body = match[0].lstrip("rfb")
                if body.startswith('"""') and (len(body) < 6 or not body.endswith('"""')):
                    self.setCurrentBlockState(_OPEN)
            elif kind == "number":
                self._paint(match.start(), len(match[0]), "number")
            else:
                self._paint(match.start(), len(match[0]), "keyword")

    def _paint(self, start: int, length: int, role: RoleName) -> None:
        shape = QTextCharFormat()
        shape.setForeground(theme.color(role))
        self.setFormat(start, length, shape)
