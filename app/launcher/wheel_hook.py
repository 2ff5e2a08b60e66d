"""Puts the launcher package next to the rooms in a wheel."""

from __future__ import annotations

from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LauncherHook(BuildHookInterface[BuilderConfig]):
    """Adds the launcher, because the rule for `app` in `sources` precedes a rule for a folder in `app`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the launcher to a wheel; an editable installation imports it where it is, by `dev-mode-dirs`."""
        if version == "standard":
            build_data["force_include"]["app/launcher/layerwright"] = "layerwright"
