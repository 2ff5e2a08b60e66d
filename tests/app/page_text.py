"""The texts of a report page, for records."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path


def page_lines(path: Path) -> list[str]:
    """Headings, paragraphs, captions, descriptions of images and rows of tables (`|#` before numbers), without the machine."""
    lines = [line for line in Page(path.read_text("utf-8")).lines if line.strip()]
    return lines[: lines.index("Machine and versions")]


class Page(HTMLParser):
    """The texts of a page: headings, paragraphs and the rows of its tables; images by their description."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._skip = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skip += tag in ("style", "script")
        if tag == "img":
            self.lines.append(f"image: {dict(attrs).get('alt')}")
        elif tag in ("tr", "p", "h1", "h2", "h3", "figcaption", "title", "li"):
            self.lines.append("")
        elif tag in ("td", "th"):
            self.lines[-1] += " |# " if "number" in (dict(attrs).get("class") or "") else " | "

    def handle_endtag(self, tag: str) -> None:
        self._skip -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self._skip and data.strip():
            self.lines[-1:] = [(self.lines or [""])[-1] + " ".join(data.split())]
