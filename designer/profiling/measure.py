"""Measures the profile of a network: what the window, `layerwright profile` and `make gpu-check` call."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from designer.profiling.profile_files import from_json
from designer.profiling.schema import Profile
from designer.profiling.timing import Progress, profile

if TYPE_CHECKING:
    from designer.runtime.session import Session


def profile_session(
    session: Session, iterations: int = 10, *, progress: Progress | None = None, store: Path | None = None
) -> Profile:
    """Profile the network of `session` with its inputs. Raises DiagnosticError like `Session.run`."""
    record = profile(session, iterations, progress=progress, store=store)
    return from_json({"schema": "layerwright-profile", "version": 1, "records": [asdict(record)]})
