"""The first lines of the docstrings of generated classes, by which an import recognizes them."""

from __future__ import annotations

import re

from designer.texts import visible

NETWORK = "The layers of the network in execution order."
_TEMPLATE = re.compile(r"The template '(.+)'\.")


def template_title(name: str) -> str:
    """The first line of the docstring of a template's class."""
    return f"The template '{visible(name)}'."


def template_of(title: str) -> str:
    """The template that a title names; empty if it is another title."""
    found = _TEMPLATE.fullmatch(title)
    return found[1] if found is not None else ""
