"""`layerwright import`: make a document from a model of another program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.console import err, out
from designer.files.weights import WEIGHTS
from designer.graph.diagnostics import DiagnosticError
from designer.importers.formats import IMPORTS, PROGRAMS, ImportOptions

if TYPE_CHECKING:
    from app.import_process import InputShape
    from designer.importers.imported import Imported


def import_model(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help=f"The model: {IMPORTS.read_choices}; an exported program: {PROGRAMS.read_choices}; or the word 'pytorch', followed by MODULE.",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The document to write.")],
    module: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODULE]",
            help="After 'pytorch': package.module:callable or file.py:callable; the callable returns a torch.nn.Module.",
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights",
            help=f"Where to write the weights: {WEIGHTS.write_choices}. After 'pytorch': the state dict to read.",
        ),
    ] = None,
    output_weights: Annotated[
        Path | None, typer.Option("--output-weights", help="Where to write the weights, for all models.")
    ] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write the report as JSON to this file.")] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=1x3x64x64",
            help="Shape of an input whose size the file leaves open; of the inputs of a module in their order, "
            "as 1x3x64x64 or 1x16:int64.",
        ),
    ] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Run the Python code of the module.")] = False,
    timeout: Annotated[
        float, typer.Option(min=1.0, help="Seconds after which the code of a module is stopped.")
    ] = 600.0,
    verify: Annotated[bool, typer.Option(help="Compare the document with the original on seeded inputs.")] = True,
) -> None:
    """Import a model as a document with its weights. Exit status 1 if it computes something else than the original."""
    from app.import_process import parse_input
    from designer.files.document import DOCUMENTS
    from designer.operators.registry import default_registry

    DOCUMENTS.writer(output)  # refuses unknown formats before anything is read
    code = file == "pytorch" or PROGRAMS.reads(file)
    target = output_weights if code else output_weights or weights
    if target is not None and target.suffix and not target.is_dir():
        WEIGHTS.writer(target)
    if code:
        name = module if file == "pytorch" else file
        if name is None:
            raise DiagnosticError.of(
                "bad-option", "the module is missing", remedy="write pytorch package.module:callable"
            )
        shapes = tuple(map(parse_input, inputs or ()))
        _import_code(name, shapes, weights, (output, target, report), verify=verify, trust=trust, timeout=timeout)
        return
    registry = default_registry()
    read = IMPORTS.reader(file)
    found = read(Path(file), registry, ImportOptions(sizes=dict(map(_sized, inputs or ()))))
    write_import(found.verified(registry) if verify else found, output, target, report)


def write_import(found: Imported, output: Path, weights: Path | None, report: Path | None) -> None:
    """Write the document, the weights and the report, and print a summary. Raises Exit(1) if the outputs disagree."""
    found.save(output, weights, report)
    out.print(f"wrote {output}", markup=False)
    out.print(found.report.summary(), markup=False, highlight=False)
    if weights is None and found.weights.tensors:
        err.print("the weights were not written: give --weights DIR", markup=False)
    if not found.report.agrees:
        raise typer.Exit(1)


def _import_code(
    module: str,
    inputs: tuple[InputShape, ...],
    state: Path | None,
    targets: tuple[Path, Path | None, Path | None],
    *,
    verify: bool,
    trust: bool,
    timeout: float,
) -> None:
    """Import a module in a process of its own. Raises Exit(1) if the outputs disagree."""
    from app.import_process import ImportRequest, import_in_process, require_consent

    require_consent(module, trust)
    output, weights, report = (str(path.absolute()) if path is not None else "" for path in targets)
    request = ImportRequest(
        module,
        str(Path.cwd()),
        output,
        inputs,
        str(state.absolute()) if state is not None else "",
        weights,
        report,
        verify,
    )
    found = import_in_process(request, timeout)
    out.print(f"wrote {targets[0]}", markup=False)
    out.print(found.summary(), markup=False, highlight=False)
    if not weights:
        err.print("the weights were not written: give --output-weights DIR", markup=False)
    if not found.agrees:
        raise typer.Exit(1)


def _sized(text: str) -> tuple[str, tuple[int, ...]]:
    """The size of an input: image=1x3x64x64."""
    from app.import_process import parse_shape

    name, _, shape = text.rpartition("=")
    return name, parse_shape(shape)
