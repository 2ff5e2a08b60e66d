"""A module with all that an import records: layers, places, names, weights, the report, progress, and programs in files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from document_texts import PLACE, layer_text
from recorded import check_recorded, rounded
from torch import Tensor, nn
from torch.nn import functional as F

from designer.graph.diagnostics import DiagnosticError
from designer.importers.imported import Imported
from designer.importers.pytorch.importing import import_module, import_saved_program
from designer.importers.pytorch.original import TorchOriginal
from designer.operators.registry import Registry


class Block(nn.Module):
    """A residual block with a gain of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.PReLU(4))
        self.gain = nn.Parameter(torch.ones(4, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) * self.gain


class Whole(nn.Module):
    """Blocks that are equal or shared, constants of all kinds, a part without gradients, calls that are kept, four results."""

    ramp: Tensor
    table: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.y1 = nn.Conv2d(3, 4, 1, bias=False)
        self.mix = nn.Conv2d(4, 4, 1)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.drop = nn.Dropout(0.25)
        self.words = nn.Embedding(9, 4)
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("ramp", torch.arange(6.0))
        self.register_buffer("table", torch.linspace(-1, 1, 4 * 5 * 6).reshape(4, 5, 6))

    def forward(self, image: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor, int, Tensor]:
        with torch.no_grad():
            x = self.y1(image)
        for block in self.blocks:
            x = block(x)
        x = self.mix(torch.relu(self.mix(x))) + self.ramp
        x = self.drop(x * self.scale + self.table)
        x = torch.special.bessel_j0(x) - torch.tensor([0.5, -0.0, 0.25, 1.5, 2.5, 3.5])
        found = self.words(tokens).mean(1)
        return x, found, 3, found.reshape(-1) * 2


def lines(found: Imported, registry: Registry) -> Iterator[str]:
    """The document and its report, without what depends on the installed packages."""
    graph, report, original = found.graph, found.report, found.original
    yield f"{graph.name} of {report.source}: {report.counts()}"
    yield from (f"  {layer_text(layer, registry)} at {layer.position}" for layer in graph)
    yield from (f"  frame {frame.title!r} {frame.rect}" for frame in graph.frames.values())
    for template in graph.templates.values():
        yield f"template {template.name} {report.templates[template.name]} times"
        yield from (f"  {layer_text(layer, registry)}" for layer in template.layers)
    yield from (
        f"weight {key.layer}.{key.tensor}: {array.shape}" for key, array in sorted(found.weights.tensors.items())
    )
    yield from (f"{name} is {place}" for name, place in report.weights.items())
    yield from (f"warning: {warning}" for warning in report.warnings)
    yield from (
        f"{item.node} {item.type}: {item.outcome.value} {item.layers} {item.reason}" for item in report.outcomes
    )
    if isinstance(original, TorchOriginal):
        yield f"inputs {dict(original.inputs)}, outputs {list(original.outputs)}"
        yield from (f"compared at {dict(case)}" for case in original.cases())
    yield f"options: {found.options and (found.options.engine, len(found.options.agreed))}"
    yield f"not compared: {report.not_compared_because}"


def example() -> list[Tensor]:
    return [torch.rand(2, 3, 5, 6), torch.zeros(2, 7, dtype=torch.int64)]


def test_the_document_of_a_module_with_all_that_is_recorded(registry: Registry) -> None:
    seen: list[tuple[int, int, str]] = []
    module = Whole().train()
    found = import_module(
        module, example(), registry, name="my net", progress=lambda done, total, text: seen.append((done, total, text))
    )
    assert not module.training, "the import runs the module as it is used"
    assert found.report.producer == f"torch {torch.__version__}"
    starts = [step for step in seen if step[0] == 0]
    assert {total for _, total, _ in seen} == {total for _, total, _ in starts}
    assert all(done % 64 == 0 and done < total and text for done, total, text in seen)
    text = PLACE.sub(" (place)", "\n".join([*lines(found, registry), ""]))
    check_recorded("imports/torch_whole.txt", rounded(text))


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.linear(x))


def test_a_program_in_a_file_is_a_document_with_the_name_of_the_file(registry: Registry, tmp_path: Path) -> None:
    torch.manual_seed(0)
    batch = torch.export.Dim("batch")
    module = Small().eval()
    path = tmp_path / "small.net.pt2"
    torch.export.save(torch.export.export(module, (torch.rand(2, 4),), dynamic_shapes=({0: batch},)), path)
    seen: list[int] = []
    found = import_saved_program(path, registry, progress=lambda done, *_: seen.append(done)).verified(registry)
    assert (found.graph.name, found.report.source) == ("small.net", "small.net.pt2")
    assert seen == [0]
    assert [layer_text(layer, registry) for layer in found.graph] == [
        "x: tensor_input() shape='4'",
        "linear: fully_connected(x) features='3'",
        "relu: activation(linear) -> relu {'alpha': '0.0'}",
        "y: output(relu) analysis_view='tensor'",
    ]
    assert found.report.weights == {"linear.weight": "linear.kernel", "linear.bias": "linear.bias"}
    assert found.report.agrees
    assert [case.inputs for case in found.report.cases] == [{"x": (1, 4)}, {"x": (2, 4)}]


def test_a_document_has_the_name_of_the_class_by_default(registry: Registry) -> None:
    found = import_module(Small(), [torch.rand(2, 4)], registry)
    assert (found.graph.name, found.report.source) == ("Small", "Small")


class Unsteady(nn.Module):
    """Counts its calls, or draws random numbers."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.calls = kind, 0

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.calls += 1
        steady = x * 2
        if self.kind == "random":
            return steady, x + torch.rand_like(x)
        return steady, x + (self.calls if self.kind == "counts" else 1)


@pytest.mark.parametrize(("kind", "changes"), [("random", True), ("counts", True), ("steady", False)])
def test_a_module_whose_second_run_differs_is_warned_about(kind: str, changes: bool, registry: Registry) -> None:
    report = import_module(Unsteady(kind), [torch.rand(2, 4)], registry).report
    note = "two runs with the same input give different results: the module changes itself or draws random numbers"
    assert (note in report.warnings) is changes


class Fails(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x.reshape(7, -1) + y


def test_a_module_that_fails_is_named_with_the_shapes_of_all_its_inputs(registry: Registry) -> None:
    with pytest.raises(DiagnosticError) as caught:
        import_module(Fails(), [torch.rand(2, 4), torch.rand(3)], registry)
    message = caught.value.diagnostics[0].message
    assert message.startswith("Fails with 2 x 4, 3 failed: RuntimeError: shape '[7, -1]' is invalid")
    assert "test_torch_documents.py" in message
    assert "return x.reshape(7, -1) + y" in message
    with pytest.raises(DiagnosticError, match="Fails with no input failed"):
        import_module(Fails(), [], registry)


class Broken(nn.Module):
    """Results that no custom layer can have."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        borders = torch.tensor([0.25, 0.5, 0.75])
        places = torch.bucketize(x, borders)
        return places, torch.searchsorted(borders, x), torch.frexp(x).exponent


def test_layers_that_cannot_run_are_named(registry: Registry) -> None:
    found = import_module(Broken(), [torch.rand(2, 4)], registry)
    assert found.original is None
    assert found.verified(registry) is found
    kinds = {layer.name: (layer.type, layer.params.get("op_type"), layer.params.get("shapes")) for layer in found.graph}
    broken = [name for name, (kind, *_) in kinds.items() if kind == "opaque"]
    assert found.report.not_compared_because == f"the layers {', '.join(broken[:5])} cannot run"
    assert len(broken) > 1
    text = PLACE.sub(" (place)", "\n".join([*lines(found, registry), ""]))
    check_recorded("imports/torch_broken.txt", rounded(text))


class ChangesItself(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        return x + self.steps


def test_a_module_that_writes_to_its_own_tensor_is_refused_with_the_name_and_line(registry: Registry) -> None:
    with pytest.raises(DiagnosticError) as caught:
        import_module(ChangesItself(), [torch.rand(2, 4)], registry)
    (found,) = caught.value.diagnostics
    assert found.message.startswith("the module changes its own tensor 'steps' when it runs (test_torch_documents.py:")
    assert found.message.endswith(": self.steps += 1)")
    assert found.remedy == "import it in a state in which it only reads its tensors"
