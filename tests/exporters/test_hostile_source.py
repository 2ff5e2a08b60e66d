"""Names and texts of a document never become code in generated source."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from hostile_networks import VALUE, harmless, hostile, hostile_graph
from pytorch_networks import load_source

from designer.files.document import parse_document, read_document, write_document
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.model import Layer, Source
from designer.operators.registry import Registry
from designer.operators.torch_data import TorchCall, TorchMethod, TorchModule, TorchName, TorchParameter, TorchSource
from designer.operators.torch_program import Attribute, Local, Program, Submodule, TorchStep
from exporters.pytorch import export_project, generate_losses, generate_source, generate_template
from exporters.pytorch.checked import Vocabulary, check_compiles, check_source, vocabulary
from exporters.pytorch.project import project_files
from exporters.pytorch.subnetworks import ModuleReference

torch = pytest.importorskip("torch")

DATA = Path(__file__).parent.parent / "data" / "hostile"


def document(name: str) -> Graph:
    graph = read_document(DATA / f"{name}.xml").graph
    assert graph is not None
    return graph


def shape(text: str) -> list[str]:
    """The kinds of all nodes, which names and texts must not change."""
    return sorted(type(node).__name__ for node in ast.walk(ast.parse(text)))


def every_source(graph: Graph, registry: Registry, template: str) -> dict[str, str]:
    files = project_files(graph, registry, graph.name)
    sources = {name: data.decode() for name, data in files.items() if name.endswith(".py")}
    return {
        **sources,
        "code view": generate_source(graph, registry, graph.name),
        "a selection": generate_source(
            graph, registry, graph.name, {name for name in graph.layers if name.startswith(("one", "two"))}
        ),
        "losses": generate_losses(graph, registry),
        "template": generate_template(graph, registry, template),
    }


def test_a_port_called_like_two_words_is_exported_as_code_that_runs(registry, tmp_path):
    export_project(document("port_with_space"), registry, tmp_path / "project", "Net")
    model = load_source((tmp_path / "project" / "model.py").read_text()).Net()
    assert model(torch.zeros(1, 3, 8, 8)).shape == (1, 3, 8, 8)


def test_the_name_of_a_port_is_not_run(registry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = load_source(generate_source(document("port_is_code"), registry, "Net")).Net()
    assert model(torch.zeros(1, 3, 8, 8)).shape == (1, 3, 8, 8)
    assert list(tmp_path.iterdir()) == []


def test_hostile_text_everywhere_gives_the_same_program_as_harmless_text(registry, tmp_path, monkeypatch):
    reading = parse_document(write_document(hostile_graph()))
    assert reading.graph == hostile_graph()  # every text is one that a file can hold
    made = every_source(reading.graph, registry, hostile("block"))
    plain = every_source(hostile_graph(harmless, "plain"), registry, "block")
    assert {name: shape(text) for name, text in made.items()} == {name: shape(text) for name, text in plain.items()}
    for text in made.values():
        assert "\u202e" not in text
        assert not {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)} & {"__import__", "chr"}

    monkeypatch.chdir(tmp_path)
    cls = next(node.name for node in ast.parse(made["model.py"]).body[::-1] if isinstance(node, ast.ClassDef))
    found = getattr(load_source(made["model.py"]), cls)()(torch.zeros(1, 3, 8, 8))
    assert set(found) == {hostile("other"), hostile("result")}
    assert list(tmp_path.iterdir()) == []


def test_a_readme_shows_names_as_code(registry):
    readme = project_files(hostile_graph(), registry, "Net")["README.md"].decode()
    lines = [line for line in readme.splitlines() if "canary" in line]
    assert lines
    for line in lines:
        before, code, _ = line.split("`")
        assert "canary" in code
        assert "canary" not in before


def test_a_custom_layer_is_the_only_text_that_becomes_code(registry):
    source = f"class Custom(nn.Module):\n    def forward(self, x):\n        return x  # {VALUE.splitlines()[-1]}\n"
    graph = Graph(
        [
            Layer("image", "input", params={"dims": "8x8x3"}),
            Layer(hostile("own"), "custom", inputs=(Source("image"),), params={"source": source}),
            Layer("result", "output", inputs=(Source(hostile("own")),)),
        ]
    )
    text = generate_source(graph, registry, "Net")
    assert text.count(source.rstrip("\n")) == 1
    assert not any(isinstance(node, ast.Name) and node.id == "__import__" for node in ast.walk(ast.parse(text)))


WORDS = Vocabulary(frozenset({"nn.Conv2d", "torch.nn"}), frozenset({"conv", "flip"}), frozenset({"Net"}))


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "from torch import serialization",
        "__import__('os')",
        "exec('1')",
        "x = torch.serialization.os.system('true')",
        "x = 1\nx.__class__",
        "x = [y for y in (1, 2)]",
        "x = lambda: 1",
        "x = f'{1}'",
        "x = nn.Linear",
        "x = (",
        "x = 1\0",
        f"x = {'(' * 400}1{')' * 400}",
        f"x = {'-' * 3000}1",
        f"x = {'-' * 100000}1",
        "x = conv",
        "x = 1\nx.flop",
        "x = torch.nn.Linear",
        "x = nn.Conv",
        "x = nn.Conv2",
        "import torch.nn as F",
        "import torch as F",
        "from torch import nn as n",
        "from torch.nn import functional",
        "y.conv",
        "x = 1\nx().real",
        "global nn",
        "x = 1 if True else 2",
        "x = 1 // 2",
        "x = not 1",
        "x += 1",
        "x = {1, 2}",
        "x = *nn",
        "while 1: pass",
        "def f():\n    yield 1",
        "async def f(): return 1",
        "assert True",
        "del torch",
        "x: int = __builtins__",
        "@nn.Conv2d\nclass Other: x = 1\nprint",
    ],
)
def test_source_that_the_exporter_never_writes_is_refused(text):
    with pytest.raises(DiagnosticError) as caught:
        check_source(text, WORDS)
    assert caught.value.diagnostics[0].code == "bad-source"


def test_source_of_known_words_is_accepted():
    check_source("import torch\nfrom torch import nn\nx = Net(nn.Conv2d)\ny = x.conv.flip(-1)\n", WORDS)
    check_source(
        "import torch.nn.functional as F\nclass A(Net):\n    def __init__(self, given: dict[str, str]) -> None:\n"
        "        super().__init__()\n        made = given[1:, ...].flip((1, [2.5 * -1 / 2 - 3]), k={'a': float('inf')})\n"
        "        return A(made, F, torch, torch.nn)\n",
        replace(WORDS, members=WORDS.members | {"__init__"}),
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"x = {'-' * 3000}1", "cannot be compiled: maximum recursion depth exceeded during compilation"),
        (f"x = {'-' * 100000}1", "cannot be compiled: MemoryError"),
        ("x = (", "cannot be compiled: '(' was never closed (generated, line 1)"),
        ("x = 1\0", "cannot be compiled: source code string cannot contain null bytes"),
        ("x = lambda: 1", "contains `lambda: 1`, which the exporter never writes"),
        (f"x = nn.{'a' * 90}", f"contains `nn.{'a' * 57}`, which the exporter never writes"),
    ],
)
def test_a_refused_source_says_what_is_wrong_with_it(text, reason):
    with pytest.raises(DiagnosticError) as caught:
        check_source(text, WORDS)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("bad-source", f"the generated source {reason}; it was not written")
    assert found.remedy == "rename layers and ports with unusual names, and report this as a bug"


def test_an_escape_of_a_custom_layer_that_python_warns_about_is_accepted():
    check_compiles("text = '\\d'\n")


EVERY = Program(
    attributes=(
        Attribute("conv", "a", TorchModule("torch.nn.Conv2d", {"dtype": TorchName("torch.float16")})),
        Attribute("parts", "b", {"act": TorchModule("torch.nn.PReLU", {"init": TorchName("torch.pi")})}),
        Attribute("own", "c", TorchSource("Gain", {"key": TorchName("torch.e")}, text="class Gain: ...", positional=(TorchName("torch.inf"),))),
        Attribute("table", "d", TorchParameter("table", (2,), (1, 2), dtype="int64")),
    ),
    steps=(
        TorchStep("a", "a", Submodule("parts", "act", (TorchCall("torch.nn.functional.relu", (TorchMethod("flip", Local("x"), (0,)),)),))),
        TorchStep("b", "b", ModuleReference("shared", (TorchMethod("clone", Local("a")), ModuleReference("plain")))),
    ),
    inputs={},
    outputs={},
    weights=(),
)  # fmt: skip


def test_the_words_of_a_source_are_those_of_its_data_at_every_depth():
    words = vocabulary([EVERY], ["Net"])
    none = vocabulary([], ["Net"])
    assert words.classes == {"Net", "Gain"}
    assert words.members - none.members == {"conv", "parts", "own", "table", "flip", "clone"}
    assert words.paths - none.paths == {
        "nn.Conv2d", "torch.float16", "nn.PReLU", "torch.pi", "torch.e", "torch.inf", "torch.int64", "F.relu"
    }  # fmt: skip
    assert none.classes == {"Net"}
    assert none.members == {"__init__", "forward_training", "register_buffer", "reshape", "uniform_"}
