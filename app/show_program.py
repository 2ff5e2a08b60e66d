"""Opens the window on an exported program: `layerwright.show` runs this in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

from designer.graph.diagnostics import DiagnosticError


def document_of(program: Path) -> Path:
    """Import the program; its document, with settings that name its weights, is written next to it.

    Raises DiagnosticError if it cannot be imported.
    """
    from app.module_import import ModuleRequest, import_in_process
    from designer.files.settings import Settings, save_settings, settings_path

    output, weights = program.with_suffix(".xml"), program.with_suffix(".safetensors")
    request = ModuleRequest(program.name, str(program.parent), str(output), weights=str(weights))
    print(import_in_process(request).summary, file=sys.stderr)
    if weights.is_file():
        save_settings(Settings(weights=str(weights)), settings_path(output))
    return output


def main(name: str) -> int:
    """Import, and run the window until it is closed; the exit status."""
    from app.main import run_window

    try:
        document = document_of(Path(name))
    except DiagnosticError as error:
        print("\n".join(map(str, error.diagnostics)), file=sys.stderr)
        return 1
    return run_window([document])


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
