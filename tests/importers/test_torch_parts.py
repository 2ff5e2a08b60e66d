"""Parts of the import of torch modules that otherwise run in a process of their own: loading, and what goes wrong there."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import Tensor, nn

from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.importers.pytorch.importing import import_module, import_saved_program
from designer.importers.pytorch.loading import failed, load_module, load_state, read_state
from designer.importers.pytorch.program import call_text, frames_of, line_of, user_outputs
from designer.importers.pytorch.tracing import _draft, where
from designer.operators.registry import Registry

CALL = "run the same call in Python and correct the error, or give other sizes of the inputs"
CPU = "make the module and its tensors on the CPU: the import runs without a GPU"
MEMORY = "use a smaller input, or a machine with more memory"
FORWARD = "give the shape of each argument of forward, in their order"
FACTORY = "write a function without arguments that makes the module, and name that function"
RULE = (
    "write package.module:callable or file.py:callable; the callable takes no arguments and returns a torch.nn.Module"
)


def finding(error: pytest.ExceptionInfo[DiagnosticError]) -> Diagnostic:
    (found,) = error.value.diagnostics
    return found


@pytest.mark.parametrize(
    ("error", "reason", "remedy"),
    [
        (ValueError("no such mode"), "ValueError: no such mode", CALL),
        (ValueError(), "ValueError", CALL),
        (ValueError("\n\n first \n second"), "ValueError: first ", CALL),
        (RuntimeError("Found no NVIDIA driver"), "RuntimeError: Found no NVIDIA driver", CPU),
        (AssertionError("Torch not compiled with CUDA enabled"), "AssertionError: Torch not compiled with CUDA enabled", CPU),
        (ModuleNotFoundError("No module named 'mine'"), "ModuleNotFoundError: No module named 'mine'",
         "run the command in the folder of the package, or install it in this environment"),
        (ImportError("cannot import name 'a'"), "ImportError: cannot import name 'a'", CALL),
        (MemoryError(), "MemoryError", MEMORY),
        (RuntimeError("you tried to allocate memory"), "RuntimeError: you tried to allocate memory", MEMORY),
        (TypeError("Net.forward() missing 1 required positional argument: 'y'"),
         "TypeError: Net.forward() missing 1 required positional argument: 'y'", FORWARD),
        (TypeError("Net.__init__() missing 1 required positional argument: 'n'"),
         "TypeError: Net.__init__() missing 1 required positional argument: 'n'", FACTORY),
        (TypeError("unsupported operand"), "TypeError: unsupported operand", CALL),
    ],
    ids=lambda item: str(item)[:30],
)  # fmt: skip
def test_what_is_said_of_an_error_in_the_users_code(error: Exception, reason: str, remedy: str) -> None:
    (found,) = failed("net.py:Net", error).diagnostics
    assert (found.code, found.message, found.remedy) == ("torch-module", f"net.py:Net failed: {reason}", remedy)


NET = """
import torch
class Net(torch.nn.Linear):
    def __init__(self, size=3):
        super().__init__(size, 2)
    @staticmethod
    def large():
        return Net(5)
class Needs(torch.nn.Linear):
    pass
made = Net(4)
number = 7
def nothing():
    raise SystemExit(3)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a file and a package; what they add to Python's path and modules is removed."""
    path, modules = list(sys.path), set(sys.modules)
    (tmp_path / "lw_net.py").write_text(NET)
    (tmp_path / "lw_package").mkdir()
    (tmp_path / "lw_package" / "__init__.py").write_text("")
    (tmp_path / "lw_package" / "inner.py").write_text(NET.replace("size=3", "size=6"))
    yield tmp_path
    sys.path[:] = path
    for name in sys.modules.keys() - modules:
        if name.startswith("lw_"):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("spec", "size"),
    [
        ("lw_net.py:Net", 3), ("lw_net:Net", 3), ("lw_net.py:made", 4), ("lw_net.py:Net.large", 5),
        ("lw_package.inner:Net", 6), ("lw_package/inner.py:Net", 6),
    ],
)  # fmt: skip
def test_a_module_is_named_by_its_file_or_package(spec: str, size: int, folder: Path) -> None:
    module = load_module(spec, folder)
    assert isinstance(module, nn.Linear)
    assert module.in_features == size


@pytest.mark.parametrize(
    ("spec", "message", "remedy"),
    [
        ("lw_net.py", "'lw_net.py' does not name a module", RULE),
        (":Net", "':Net' does not name a module", RULE),
        ("lw_net.py:", "'lw_net.py:' does not name a module", RULE),
        ("lw_net.py:Net()", "'lw_net.py:Net()' does not name a module", RULE),
        ("lw_gone.py:Net", "lw_gone.py does not exist", RULE),
        ("lw_net.py:number", "lw_net.py:number failed: TypeError: 'int' object is not callable", CALL),
        ("lw_net.py:nothing", "lw_net.py:nothing failed: SystemExit: 3", CALL),
        ("lw_net.py:Gone", "lw_net.py:Gone failed: AttributeError: module 'lw_net' has no attribute 'Gone'", CALL),
        ("lw_net.py:Needs", "missing 2 required positional arguments", FACTORY),
        ("lw_gone:Net", "lw_gone:Net failed: ModuleNotFoundError: No module named 'lw_gone'", "run the command in"),
        ("lw_net.py:torch.Tensor", "lw_net.py:torch.Tensor is of type Tensor, not torch.nn.Module", RULE),
    ],
)  # fmt: skip
def test_what_is_not_a_module_is_refused(spec: str, message: str, remedy: str, folder: Path) -> None:
    with pytest.raises(DiagnosticError) as caught:
        load_module(spec, folder)
    assert message in finding(caught).message
    assert finding(caught).remedy.startswith(remedy)


def test_the_folder_comes_before_what_is_installed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("installed")
    (other / "lw_twin.py").write_text(NET.replace("size=3", "size=9"))
    sys.path.insert(0, str(other))
    (folder / "lw_twin.py").write_text(NET.replace("size=3", "size=8"))
    module = load_module("lw_twin:Net", folder)
    assert isinstance(module, nn.Linear)
    assert module.in_features == 8


def test_a_file_imports_its_neighbors(folder: Path) -> None:
    (folder / "lw_package" / "lw_neighbor.py").write_text(NET.replace("size=3", "size=7"))
    (folder / "lw_package" / "lw_user.py").write_text("from lw_neighbor import Net\n")
    module = load_module("lw_package/lw_user.py:Net", folder)
    assert isinstance(module, nn.Linear)
    assert module.in_features == 7
    assert sys.modules["lw_user"].__file__ == str(folder / "lw_package" / "lw_user.py")


@pytest.mark.parametrize("before", [None, "some folder"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_draft_logs_into_a_folder_that_is_removed(
    before: str | None, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[Path] = []

    def drafted(*_: object, **__: object) -> str:
        folders.append(Path(os.environ["TORCH_DTRACE"]))
        assert folders[0].is_dir()
        if fails:
            raise ValueError("no")
        return "program"

    monkeypatch.setattr("torch.export.draft_export", drafted)
    if before is None:
        monkeypatch.delenv("TORCH_DTRACE", raising=False)
    else:
        monkeypatch.setenv("TORCH_DTRACE", before)
    assert _draft(nn.ReLU(), (torch.ones(2),)) == (None if fails else "program")
    assert not folders[0].exists()
    assert os.environ.get("TORCH_DTRACE") == before


@pytest.mark.parametrize("suffix", [".pt", ".ckpt", ".bin", ".safetensors"])
def test_a_state_is_read_by_the_suffix_of_its_file(suffix: str, tmp_path: Path) -> None:
    state = {"weight": torch.arange(6.0).reshape(2, 3), "half": torch.ones(2, dtype=torch.float16)}
    path = tmp_path / f"state{suffix}"
    if suffix != ".safetensors":
        torch.save(state, path)
    else:
        from safetensors.torch import save_file

        save_file(state, path)
    found = read_state(path)
    assert sorted(found) == sorted(state)
    for name, tensor in state.items():
        assert found[name].dtype == (torch.float32 if suffix == ".safetensors" else tensor.dtype)
        assert torch.equal(found[name].float(), tensor.float())
        found[name].add_(1)  # it is not a view of the file


def test_a_state_dict_is_read_or_said_not_to_fit(tmp_path: Path) -> None:
    module, other = nn.Linear(3, 2), nn.Linear(3, 2)
    path = tmp_path / "state.pt"
    torch.save(other.state_dict(), path)
    load_state(module, path)
    assert torch.equal(module.weight, other.weight)
    torch.save({"weight": torch.ones(4, 3), "gain": torch.ones(1)}, path)
    with pytest.raises(DiagnosticError) as caught:
        load_state(module, path)
    found = finding(caught)
    assert (found.code, found.file) == ("bad-weights", str(path))
    assert found.message.startswith(
        'state.pt does not fit the module: Missing key(s) in state_dict: "bias". Unexpected key'
    )
    assert '"gain"' in found.message
    assert "size mismatch for weight" in found.message
    assert "torch.save(model.state_dict(), path)" in found.remedy


class Branches(nn.Module):
    """Takes another way for dark images."""

    def forward(self, x: Tensor) -> Tensor:
        if x.mean() > 0.1:
            return x * 2
        return x + 1


def test_a_branch_that_depends_on_values_is_imported_as_it_ran_with_a_warning(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = import_module(Branches(), [torch.ones(1, 3, 4, 4)], registry).verified(registry)
    assert [*tmp_path.rglob("*.log")] == []  # torch's, with the code of the module
    assert "TORCH_DTRACE" not in os.environ
    assert [layer.type for layer in found.graph][-2:] == ["scale_shift", "output"]
    doubts = [text.removeprefix("not proven for other inputs: ") for text in found.report.warnings]
    assert "if x.mean() > 0.1:" in doubts[0]
    assert "test_torch_parts.py" in doubts[0]
    assert doubts[1] == "data_dependent_error"
    assert found.report.not_compared_because == "the layers ne cannot run"


def test_saved_programs_that_cannot_be_a_document(tmp_path: Path, registry: Registry) -> None:
    path = tmp_path / "net.pt2"
    path.write_bytes(b"nothing")
    with pytest.raises(DiagnosticError) as caught:
        import_saved_program(path, registry)
    assert finding(caught).message.startswith("net.pt2 is not a readable exported program: ")
    assert finding(caught).file == str(path)
    shapes = ({2: torch.export.Dim("height", min=2, max=64), 3: torch.export.Dim("width", min=2, max=64)},)
    torch.export.save(torch.export.export(nn.ReLU(), (torch.ones(2, 3, 4, 5),), dynamic_shapes=shapes), path)
    with pytest.raises(DiagnosticError) as caught:
        import_saved_program(path, registry)
    assert finding(caught).message == "the argument 'input' has several sizes that are left open"
    with pytest.raises(DiagnosticError, match="returns no tensor that depends on its inputs"):
        import_module(Nothing(), [torch.ones(1, 3)], registry)


@pytest.mark.parametrize(
    ("arguments", "named", "text"),
    [
        (("a", -math.inf, math.inf), {}, "x1, float('-inf'), float('inf')"),
        (("a", math.nan), {"out": "a"}, "x1, float('nan'), out=x1"),
        (("a", "b", "a"), {"value": "b"}, "x1, x2, x1, value=x2"),
        ((["b", "a"], (1, -2.5)), {}, "[x1, x2], [1, -2.5]"),
        (("b", None, False, 0, 1e-6), {"mode": "'quoted'"}, "x1, None, False, 0, 1e-06, mode=\"'quoted'\""),
        (("a", torch.float16), {}, ""),
        (("a", "size"), {}, ""),
    ],
)
def test_a_call_as_python(arguments: tuple[object, ...], named: dict[str, object], text: str) -> None:
    graph = torch.fx.Graph()
    nodes = {name: graph.placeholder(name) for name in ("a", "b", "size")}
    for name, node in nodes.items():
        node.meta["val"] = 3 if name == "size" else torch.zeros(1)

    def given(value: object) -> object:
        if isinstance(value, list | tuple):
            return type(value)(map(given, value))
        return nodes.get(value, value) if isinstance(value, str) else value

    made = graph.call_function(
        torch.ops.aten.clamp.default, given(arguments), {key: given(v) for key, v in named.items()}
    )
    assert call_text(made) == (f"torch.ops.aten.clamp.default({text})" if text else "")


LINES = """  File "/home/me/train.py", line 7, in <module>
    net(x)
  File "/home/me/my nets/net.py", line 31, in forward
      return self.tail(self.body(x))
  File "/usr/lib/python3/site-packages/torch/nn/modules/module.py", line 9, in _call_impl
    return forward_call(*args, **kwargs)
  File "/home/me/my nets/tail.py", line 12, in forward
    return LONG
"""


@pytest.mark.parametrize(
    ("trace", "line"),
    [
        (LINES.replace("LONG", "x + 1"), "tail.py:12: x + 1"),
        (LINES.replace("return LONG", "y" * 200), f"tail.py:12: {'y' * 120}"),
        (LINES[: LINES.index('  File "/usr')], "net.py:31: return self.tail(self.body(x))"),
        (LINES[: LINES.index("  File", 5)].replace("/home/me/", ""), "train.py:7: net(x)"),
        (LINES[LINES.index('  File "/usr') : LINES.index("  File", LINES.index("_impl"))], ""),
        ("", ""),
        (None, ""),
    ],
)
def test_a_node_has_the_innermost_line_of_the_users_code(trace: str | None, line: str) -> None:
    node: Any = SimpleNamespace(meta={"stack_trace": trace})
    assert line_of(node) == line.replace("x + 1", "return x + 1")
    assert line_of(SimpleNamespace(meta={})) == ""  # type: ignore[arg-type]
    files = [frame.file.rpartition("/")[2] for frame in frames_of(node)]
    assert files == [name for name in ("train.py", "net.py", "tail.py") if name in (trace or "")]


class Nothing(nn.Module):
    def forward(self, x: Tensor) -> int:
        return 3


class Doubled(nn.Module):
    """A parameter of another element type."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.linspace(1, 2, 3, dtype=torch.float64).reshape(3, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gain.float()


def test_a_parameter_whose_element_type_is_converted_stays_a_parameter(registry: Registry) -> None:
    found = import_module(Doubled(), [torch.rand(1, 3, 4, 4)], registry).verified(registry)
    assert [layer.type for layer in found.graph if layer.type == "parameter"] == ["parameter"]
    assert list(found.report.weights) == ["gain"]
    assert found.report.agrees


@pytest.mark.parametrize(
    ("keys", "count", "names"),
    [
        (None, 1, ["y"]), (None, 3, ["y1", "y2", "y3"]), (("a", "b c"), 2, ["a", "b c"]), (("a", ""), 2, ["y1", "y2"]),
        (("a", "b:1"), 2, ["y1", "y2"]), (("a",), 1, ["y"]), (("a", "b"), 3, ["y1", "y2", "y3"]), ((1, 2), 2, ["1", "2"]),
    ],
)  # fmt: skip
def test_names_of_results(keys: tuple[Any, ...] | None, count: int, names: list[str]) -> None:
    """The keys of a dictionary if there is one for each tensor and all can be names of layers; results that are not the user's are left out."""
    nodes = [f"node {number}" for number in range(count)]
    kinds = ["USER_OUTPUT"] * count + ["BUFFER_MUTATION"]
    program: Any = SimpleNamespace(
        graph=SimpleNamespace(nodes=[SimpleNamespace(op="output", args=([*nodes, "other"],))]),
        graph_signature=SimpleNamespace(
            output_specs=[SimpleNamespace(kind=SimpleNamespace(name=kind)) for kind in kinds]
        ),
        call_spec=SimpleNamespace(out_spec=SimpleNamespace(type=dict if keys else tuple, context=keys)),
    )
    assert user_outputs(program) == dict(zip(names, nodes, strict=True))
    assert list(user_outputs(program, "result")) == (["result"] if count == 1 else names)


def test_the_line_of_an_error_is_that_of_its_last_cause() -> None:
    def inner() -> None:
        raise KeyError("deep")

    def outer(cause: bool) -> None:
        try:
            inner()
        except KeyError as error:
            if cause:
                raise ValueError("with a cause") from error
            raise ValueError("with a context")  # noqa: B904

    for cause in (True, False):
        with pytest.raises(ValueError, match="with a") as caught:
            outer(cause)
        assert where(caught.value).endswith(': raise KeyError("deep")')
    with pytest.raises(ValueError, match="Expecting") as caught:
        json.loads("{'a': 1}")
    assert where(caught.value).endswith(""": json.loads("{'a': 1}")""")  # rather than a line of Python's own library
    assert where(ValueError("never raised")) == ""


def test_a_fixed_batch_is_chosen_where_a_result_has_no_output_otherwise(registry: Registry) -> None:
    """With a batch of any size the rows of all samples would be the batch of the second result."""

    class Rows(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x.relu(), x.flatten(0, 1)

    found = import_module(Rows(), [torch.rand(3, 2, 4)], registry).verified(registry)
    assert found.graph["x"].params["shape"] == "3,2,4"
    assert [layer.type for layer in found.graph].count("output") == 2
    assert found.report.warnings == ()
    assert found.report.max_abs_difference == 0


def test_modules_that_return_other_results_of_a_layer_are_not_one_template(registry: Registry) -> None:
    class Part(nn.Module):
        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

        def forward(self, x: Tensor) -> Tensor:
            parts: tuple[Tensor, ...] = x.relu().exp().tanh().split(2, 1)
            return parts[self.index]

    class Parts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList(Part(index) for index in (0, 1, 0))

        def forward(self, x: Tensor) -> Tensor:
            one, two, three = (part(x) for part in self.parts)
            return one * 2 + two * 3 + three.exp()

    found = import_module(Parts(), [torch.rand(3, 4, 5)], registry).verified(registry)
    assert found.report.max_rel_difference is not None
    assert found.report.max_rel_difference < 1e-6
    assert list(found.report.templates.values()) == [2]
