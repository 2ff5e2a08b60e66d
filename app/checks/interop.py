"""Imports the backend tests of the onnx package and writes what became of them: `python -m app.checks.interop FILE [PART]`.

Each case is imported, run on every engine that can (torch only if all nodes are known), and exported again; all results are
compared with the expected ones of the case. Cases with texts, sequences, optional values or element types that layers cannot
have, and those of opsets before 7, are left out.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from designer.files.settings import DEFAULT_ENGINE
from designer.graph.diagnostics import DiagnosticError
from designer.importers.formats import ImportOptions
from designer.importers.imported import Imported
from designer.importers.onnx.importing import import_onnx
from designer.importers.onnx.model_file import OLDEST_OPSET
from designer.importers.onnx.opaque import data_type
from designer.importers.onnx.original import FileRunner, OnnxOriginal
from designer.importers.verification import run_document
from designer.operators.registry import Registry, default_registry
from designer.runtime.api import RunOptions
from designer.runtime.engines.ort import runtime
from exporters.onnx import export_onnx

KINDS = ("simple", "pytorch-operator", "pytorch-converted")
RTOL, ATOL = 1e-3, 1e-5
TORCH = "torch"


@dataclass(frozen=True)
class BackendCase:
    """One backend test: a model with inputs and expected outputs."""

    name: str
    model: Any
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    rtol: float = RTOL
    atol: float = ATOL


@dataclass(frozen=True)
class CaseOutcome:
    """What became of a case: "known" (all nodes are layers of the library), "opaque", or "refused" with a reason."""

    name: str
    outcome: str
    reason: str = ""


def stored_cases() -> Iterator[BackendCase]:
    """The cases whose files are part of the onnx package."""
    import onnx
    from onnx import numpy_helper
    from onnx.backend.test.loader import load_model_tests

    for kind in KINDS:
        for case in load_model_tests(kind=kind):
            if case.model_dir is None:
                continue
            folder = Path(case.model_dir)
            model = onnx.load(folder / "model.onnx")
            if not supported(model):
                continue
            data = sorted(folder.glob("test_data_set_*"))[0]
            inputs, outputs = (
                [numpy_helper.to_array(onnx.load_tensor(data / f"{what}_{index}.pb")) for index in range(count)]
                for what, count in (("input", len(list(data.glob("input_*")))), ("output", len(model.graph.output)))
            )
            yield BackendCase(f"{kind}: {case.name}", model, inputs, outputs)


def node_cases() -> Iterator[BackendCase]:
    """The cases that the onnx package generates, one for every use of every operator."""
    from onnx.backend.test.case.node import collect_testcases

    for case in collect_testcases(None):
        if supported(case.model):
            inputs, outputs = case.data_sets[0]
            yield BackendCase(f"node: {case.name}", case.model, inputs, outputs, case.rtol, max(ATOL, case.atol))


def supported(model: Any) -> bool:
    """Whether the opset can be imported, and all inputs and outputs are tensors whose element types layers can have."""
    if any(entry.version < OLDEST_OPSET for entry in model.opset_import if not entry.domain):
        return False
    for entry in (*model.graph.input, *model.graph.output):
        if entry.type.WhichOneof("value") != "tensor_type" or data_type(entry.type.tensor_type.elem_type) is None:
            return False
    return True


def outcome_of(case: BackendCase, registry: Registry) -> CaseOutcome:
    """Import, run and export one case."""
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(case.model, path)
        try:
            found = import_onnx(path, registry, ImportOptions())
            _check(case, found, registry, Path(folder))
        except DiagnosticError as error:
            return CaseOutcome(case.name, "refused", error.diagnostics[0].message)
        except Exception as error:  # a defect of the program is an outcome too
            return CaseOutcome(case.name, "refused", f"{type(error).__name__}: {error}")
    known = found.report.opaque == 0
    reason = next((item.reason for item in found.report.outcomes if item.reason), "")
    return CaseOutcome(case.name, "known" if known else "opaque", reason)


def _array(value: Any) -> Any:
    """An input or output of a case as an array; some are tensors of ONNX."""
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


class _DifferentError(Exception):
    """A result is not the expected one."""


def _check(case: BackendCase, found: Imported, registry: Registry, folder: Path) -> None:
    """Run the document on its engines and the exported file, and compare. Raises _DifferentError."""
    assert isinstance(found.original, OnnxOriginal)
    original = found.original
    stored = {tensor.name for tensor in case.model.graph.initializer}
    given = [entry.name for entry in case.model.graph.input if entry.name not in stored]
    arrays = dict(zip(given, map(_array, case.inputs), strict=False))
    feeds = {layer: arrays[name] for name, layer in original.inputs.items()}
    ends = list(original.outputs.values())
    engines = [DEFAULT_ENGINE, TORCH] if found.report.opaque == 0 else [DEFAULT_ENGINE]
    for engine in engines:
        made = run_document(found.graph, registry, found.weights, feeds, RunOptions(engine=engine))
        compare(f"engine {engine}", [made[name] for name in ends], case)
    target = folder / "again.onnx"
    export_onnx(found.graph, registry, found.weights, target)
    compare("exported file", _run(target, arrays), case)


def _run(path: Path, feeds: Mapping[str, Any]) -> list[Any]:
    try:
        return FileRunner(path).run(None, feeds)
    except Exception as error:  # the classes of the binding have no common base
        raise _DifferentError(f"exported file: {str(error).splitlines()[0][:200]}") from None


def compare(what: str, found: Iterable[Any], case: BackendCase) -> None:
    """Raise _DifferentError unless arrays are equal up to rounding."""
    for ours, theirs in zip(found, map(_array, case.outputs), strict=True):
        one, other = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
        if one.shape != other.shape:
            raise _DifferentError(f"{what}: the shape is {one.shape}, not {other.shape}")
        if not np.allclose(one, other, rtol=case.rtol, atol=case.atol, equal_nan=True):
            raise _DifferentError(f"{what}: the result differs by {float(np.nanmax(np.abs(one - other))):.3g}")


def page(outcomes: Sequence[CaseOutcome]) -> str:
    """The record as Markdown."""
    import onnx

    counts = Counter(item.outcome for item in outcomes)
    lines = [
        "# ONNX backend tests",
        "",
        "Written by `make interop`. The cases of `onnx.backend.test` (node, simple, pytorch-operator and pytorch-converted; float,",
        "integer and boolean tensors) are imported, run on ONNX Runtime and, if all nodes are known, on torch, and exported again.",
        f"All results must equal the expected ones. onnx {onnx.__version__}, ONNX Runtime {runtime().__version__}.",
        "",
        "| outcome | cases | share |",
        "|---|---|---|",
    ]
    names = {"known": "layers of the library", "opaque": "with opaque layers", "refused": "refused"}
    lines += [f"| {text} | {counts[key]} | {counts[key] / len(outcomes):.1%} |" for key, text in names.items()]
    lines += [f"| all | {len(outcomes)} | |", ""]
    for outcome, title in (("refused", "Refused"), ("opaque", "Opaque")):
        lines += [f"## {title}", "", "| reason | cases | for instance |", "|---|---|---|"]
        reasons: dict[str, list[str]] = {}
        for item in outcomes:
            if item.outcome == outcome:
                reasons.setdefault(_general(item.reason), []).append(item.name.removeprefix("node: "))
        for reason, cases in sorted(reasons.items(), key=lambda entry: -len(entry[1])):
            lines.append(f"| {reason} | {len(cases)} | {', '.join(cases[:3])} |")
        lines.append("")
    return "\n".join(lines)


def _general(reason: str) -> str:
    """A reason without the names and numbers of one case."""
    import re

    text = re.sub(r"'[^']*'", "'...'", reason.removeprefix("model.onnx: "))
    return re.sub(r"[-+]?\d[\d.e+x-]*", "n", text).replace("|", "/")[:160]


def main() -> None:
    warnings.simplefilter("ignore")
    part = sys.argv[2] if len(sys.argv) > 2 else ""
    registry = default_registry()
    cases = (case for case in (*stored_cases(), *node_cases()) if part in case.name)
    outcomes = [outcome_of(case, registry) for case in cases]
    text = page(outcomes)
    Path(sys.argv[1]).write_text(text, "utf-8")
    print("\n".join(text.splitlines()[6:12]))


if __name__ == "__main__":
    main()
