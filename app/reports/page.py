"""A small HTML report: headings, paragraphs, tables and images, everything escaped, no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from designer.files.formats import Format, FormatTable
from designer.files.tables import Text, write_text

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.4rem; }
figure { display: inline-block; margin: 0 1rem 1rem 0; vertical-align: top; max-width: 100%; }
figure img { max-width: 100%; height: auto; display: block; }
img.enlarged { image-rendering: pixelated; }
figcaption { font-size: .85rem; opacity: .8; }
table { border-collapse: collapse; font-size: .9rem; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; overflow-wrap: anywhere; }
td.number, th.number { text-align: right; overflow-wrap: normal; font-variant-numeric: tabular-nums; font-family: ui-monospace, monospace; }
pre { overflow: auto; padding: .8rem; border: 1px solid #8884; }
"""


class Page:
    """Collects content; `write` saves the file. Images are linked next to the page or embedded."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._parts: list[str] = []

    def heading(self, text: str) -> None:
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def text(self, text: str) -> None:
        self._parts.append(f"<p>{escape(text)}</p>")

    def code(self, text: str) -> None:
        self._parts.append(f"<pre>{escape(text)}</pre>")

    def picture(self, path: Path, caption: str) -> None:
        name = escape(path.name, quote=True)
        self._parts.append(
            f'<figure><img src="{name}" alt="{escape(caption, quote=True)}"><figcaption>{escape(caption)}</figcaption></figure>'
        )

    def picture_inside(self, image: bytes, caption: str, *, width: int = 0) -> None:
        """Embed a PNG or WebP image, so that the page can be sent as one file. With `width`, it is enlarged to as many
        pixels with hard edges."""
        from base64 import b64encode

        kind = "webp" if image.startswith(b"RIFF") else "png"
        size = f' class=enlarged width="{width}"' if width else ""
        self._parts.append(
            f'<figure><img src="data:image/{kind};base64,{b64encode(image).decode()}" '
            f'alt="{escape(caption, quote=True)}"{size}><figcaption>{escape(caption)}</figcaption></figure>'
        )

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> None:
        """A table; the columns in `numbers` are set right."""

        def cells(tag: str, row: Sequence[str]) -> str:
            return "".join(
                f"<{tag}{' class=number' if i in numbers else ''}>{escape(cell)}</{tag}>" for i, cell in enumerate(row)
            )

        body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
        self._parts.append(f"<table><thead><tr>{cells('th', headings)}</tr></thead><tbody>{body}</tbody></table>")

    def write(self, path: Path) -> None:
        """Write the page atomically. Raises DiagnosticError ("cannot-save", "unknown-format")."""
        title = escape(self.title)
        head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        PAGES.writer(path)(path, f"{head}<h1>{title}</h1>{''.join(self._parts)}</html>\n")


PAGES: Text = FormatTable("pages", (Format("HTML page", (".html",), write=write_text),))
