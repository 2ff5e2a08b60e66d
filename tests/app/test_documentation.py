"""Commands and options that the documentation shows exist. A new page is tested too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from app.cli.main import COMMANDS, load_command

ROOT = Path(__file__).parents[2]
PAGES = [path for folder in ("", "docs", "samples", "samples/plugin") for path in sorted((ROOT / folder).glob("*.md"))]
SHOWN = re.compile(r"layerwright +([a-z][a-z-]*)([^`\n]*)")
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


def command_of(name: str, words: list[str]) -> Any:
    """The command, or the one below it that the words begin with."""
    command = load_command(name)
    return command.commands.get(words[0], command) if words and hasattr(command, "commands") else command


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_commands_and_options_of_the_page_exist(page: Path) -> None:
    wrong = []
    for name, rest in SHOWN.findall(page.read_text(encoding="utf-8")):
        if name not in COMMANDS:
            continue  # a sentence about the program
        command = command_of(name, rest.split())
        if command.context_settings.get("ignore_unknown_options"):
            continue  # passes settings on to the project
        known = {option for item in command.params for option in (*item.opts, *item.secondary_opts)}
        wrong += [f"{name} {option}" for option in OPTION.findall(rest) if option not in known]
    assert wrong == []


def test_lines_of_commands_name_a_command() -> None:
    lines = [line for page in PAGES for line in page.read_text(encoding="utf-8").splitlines()]
    named = [line.split()[1] for line in lines if re.match(r" {0,4}layerwright [a-z-]+", line)]
    assert len(named) > 20
    assert set(named) <= COMMANDS.keys()
