"""Analysis > Report: a page of what the window shows now."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.reports.analysis_report import Seen, write_analysis
from app.reports.comparison import ms_text
from app.reports.page import PAGES
from app.ui.analysis.layer_infos import layer_infos
from app.ui.analysis.output_view import shown_part
from app.ui.engine.analysis import analysis_of
from app.ui.engine.context import Context
from app.ui.engine.provenance import provenance_of
from app.ui.engine.quality import qualities
from app.ui.widgets.background import Background
from app.ui.widgets.file_output import ask_path, png_of, write_in_thread
from designer.files.document import DOCUMENTS
from designer.operators.api import Operator, Role
from designer.texts import tr, tr_data


def seen_in(context: Context, window: QWidget | None = None) -> Seen:
    """What the analysis of the open document shows; of a network that was not run only what is set."""
    document, analysis = context.root, analysis_of(context)
    result = analysis.result
    options = []
    for layer in document.graph:
        operator = document.inference.read(layer.name).operator
        if isinstance(operator, Operator) and operator.role is Role.ANALYSIS:
            options.append((layer.name, tr_data(operator.title), operator.summary() or _texts(layer.params)))
    files = {
        layer: str(path) for layer in analysis.inputs.layers() if (path := analysis.inputs.path(layer)) is not None
    }
    origin = provenance_of(context, analysis)
    picture = png_of(window) if window is not None else b""
    if result is None:
        return Seen(origin, files, options, window=picture)
    outputs = {}
    for name, array in result.outputs.items():
        operator = document.inference.read(name).operator if name in document.graph else None
        part = shown_part(array, operator)[0]
        if part is not None:
            outputs[name] = (part, str(getattr(operator, "analysis_view", "image")))
    inspected = (analysis.capture, result.captures[analysis.capture]) if analysis.capture in result.captures else None
    infos = layer_infos(document.graph, document.registry, analysis.inputs.shapes)
    overview = [
        (
            ", ".join(step.layers),
            step.engine,
            ms_text(step.milliseconds) if not step.cached else tr("kept"),
            infos[step.layers[-1]].shape if step.layers[-1] in infos else "",
        )
        for step in result.steps
    ]
    return Seen(
        origin,
        files,
        options,
        outputs,
        inspected,
        qualities(analysis),
        overview,
        result.milliseconds,
        result.note,
        picture,
    )


def ask_report(window: QWidget, context: Context) -> None:
    """Ask for a place and write the page there."""
    name = DOCUMENTS.stem(context.root.title)
    path = ask_path(window, tr("Report"), f"{name}_report.html", PAGES)
    if path is not None:
        save_report(window, context, path)


def save_report(window: QWidget, context: Context, path: Path) -> Background:
    """Write the page in a thread; the status bar says how it went."""
    seen = seen_in(context, window)
    return write_in_thread(
        window,
        lambda: write_analysis(path, seen),
        lambda ok, text: context.message.emit("info" if ok else "error", text),
        tr("Wrote {name}", name=path.name),
    )


def _texts(params: object) -> str:
    return ", ".join(f"{k} {v}" for k, v in dict(params).items())  # type: ignore[call-overload]
