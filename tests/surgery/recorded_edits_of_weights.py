"""What an edit of a network with its weights makes, as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from recorded import changes
from surgery_networks import layer, patient, trained

from designer.files.document import write_document
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.graph.template import Template
from designer.surgery.operations import (
    Operation,
    Patient,
)

Edit = Callable[[Patient], Operation]


def done(ill: Patient, edit: Edit, exact: bool = True) -> Iterator[str]:
    """What an edit makes: its title, the changed lines of the document, and the weights that have changed."""
    try:
        made = edit(ill)
    except DiagnosticError as error:
        yield from (f"{d.code} ({d.layer}): {d.message} - {d.remedy}" for d in error.diagnostics)
        return
    before = ill.graph.copy()
    after = ill.graph.copy()
    after.apply(made.edit)
    yield made.edit.title
    lines = changes(write_document(before).decode(), write_document(after).decode()).splitlines()
    yield from (line.replace("\t", "  ") for line in lines if line.strip())
    assert (made.weights.source, made.weights.note, made.weights.sha256) == ("net.pt", "a note", "")
    assert made.weights.reports == ()
    old, new = ill.weights.tensors, made.weights.tensors
    for key in dict.fromkeys([*old, *new]):
        name = f"{key.layer}/{key.tensor}"
        if key not in new:
            yield f"{name} is gone"
        elif key not in old or not np.array_equal(old[key], new[key]):
            assert new[key].dtype == np.float32
            assert new[key].flags.c_contiguous
            yield f"{name} {new[key].shape}{f' {values(new[key])}' if exact else ''}"


def values(tensor: np.ndarray) -> str:
    """A few numbers that depend on every value and its place."""
    flat = tensor.astype(np.float64).reshape(-1)
    mean = flat.mean() if flat.size else 0.0
    weighted = (flat * np.arange(1, flat.size + 1)).mean() if flat.size else 0.0
    return " ".join(f"{round(float(value), 5) + 0.0:.5f}" for value in (mean, weighted / max(flat.size, 1)))


def with_source(graph: Graph) -> Patient:
    return patient(graph, replace(trained(graph), source="net.pt", note="a note", sha256="0" * 64))


def block(*inside: Layer) -> Template:
    return Template(
        "block",
        (layer("x", "template_input"), *inside, layer("y", "template_output", inside[-1].name)),
    )
