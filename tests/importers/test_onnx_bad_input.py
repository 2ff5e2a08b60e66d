"""Damaged and hostile ONNX files: a reason with thing, rule and remedy, bounded memory, and no half document."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import model, random, saved, small_network
from recorded import check_recorded

from app.cli.main import app
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.importers.formats import ImportOptions
from designer.importers.onnx.importing import import_onnx
from designer.operators.registry import Registry

Make = Callable[[Path], Path]


def refusal(path: Path, registry: Registry) -> Diagnostic:
    with pytest.raises(DiagnosticError) as caught:
        import_onnx(path, registry, ImportOptions())
    (found, *_) = caught.value.diagnostics
    return found


def truncated(folder: Path) -> Path:
    path = saved(small_network(), folder)
    path.write_bytes(path.read_bytes()[:-100])
    return path


def not_onnx(folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(1000))
    return path


def empty(folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(b"")
    return path


def cyclic(folder: Path) -> Path:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    return saved(model(nodes, {"x": [2]}, {"b": [2]}), folder)


def huge_shape(folder: Path) -> Path:
    """An initializer that claims 2^40 elements and has four."""
    proto = model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": [4]}, {"y": [4]}, {"w": random(4)})
    proto.graph.initializer[0].dims[:] = [2**20, 2**20]
    return saved(proto, folder)


def huge_fold(folder: Path) -> Path:
    """A constant of 2^40 elements that a node would compute."""
    nodes = [helper.make_node("ConstantOfShape", ["shape"], ["c"]), helper.make_node("Mul", ["x", "c"], ["y"])]
    weights = {"shape": np.array([2**20, 2**20])}
    return saved(model(nodes, {"x": [1]}, {"y": [2**20, 2**20]}, weights), folder)


def huge_input(folder: Path) -> Path:
    return saved(model([helper.make_node("Relu", ["x"], ["y"])], {"x": [2**20, 2**20]}, {"y": [2**20, 2**20]}), folder)


def opset_6(folder: Path) -> Path:
    return saved(model([helper.make_node("Relu", ["x"], ["y"])], {"x": [2]}, {"y": [2]}, opset=6), folder)


def opset_of_the_future(folder: Path) -> Path:
    return saved(model([helper.make_node("Relu", ["x"], ["y"])], {"x": [2]}, {"y": [2]}, opset=999), folder)


def wrong_type(folder: Path) -> Path:
    nodes = [
        helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT64),
        helper.make_node("Conv", ["i", "w"], ["y"], name="conv"),
    ]
    weights = {"w": random(2, 3, 3, 3)}
    return saved(model(nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 2, 6, 6]}, weights), folder)


def missing_value(folder: Path) -> Path:
    return saved(model([helper.make_node("Relu", ["nowhere"], ["y"])], {"x": [2]}, {"y": [2]}), folder)


def two_values_of_one_name(folder: Path) -> Path:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Exp", ["x"], ["y"])]
    return saved(model(nodes, {"x": [2]}, {"y": [2]}), folder)


def external(location: str, length: int = 0) -> Make:
    def make(folder: Path) -> Path:
        proto = small_network()
        tensor = proto.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        if length:
            tensor.external_data.add(key="length", value=str(length))
        (folder / "inner").mkdir()
        (folder / "short.bin").write_bytes(bytes(10))
        (folder / "escape.bin").write_bytes(bytes(4 * 4 * 3 * 9))
        return saved(proto, folder / "inner" if "escape" in location else folder)

    return make


def linked(folder: Path) -> Path:
    """External data behind a symbolic link that leads out of the folder."""
    (folder / "secret.bin").write_bytes(bytes(4 * 4 * 3 * 9))
    path = external("escape.bin")(folder)
    (path.parent / "escape.bin").symlink_to(folder / "secret.bin")
    return path


def given(entry: onnx.ValueInfoProto, output: onnx.ValueInfoProto | None = None) -> Make:
    """A network whose second input is `entry`, or whose output is `output`."""

    def make(folder: Path) -> Path:
        proto = model([helper.make_node("Relu", ["x"], ["y"])], {"x": [2]}, {"y": [2]})
        proto.graph.input.append(entry)
        if output is not None:
            proto.graph.node.append(helper.make_node("Cast", ["x"], [output.name], to=TensorProto.STRING))
            proto.graph.output.append(output)
        return saved(proto, folder)

    return make


ENTRY = helper.make_tensor_value_info("second", TensorProto.FLOAT, [2])
SEQUENCE = helper.make_tensor_sequence_value_info("second", TensorProto.FLOAT, [2])
STRINGS = helper.make_tensor_value_info("second", TensorProto.STRING, [2])
UNKNOWN_RANK = helper.make_tensor_value_info("second", TensorProto.FLOAT, None)
NEGATIVE = helper.make_tensor_value_info("second", TensorProto.FLOAT, [2, -3])
TEXT = helper.make_tensor_value_info("text", TensorProto.STRING, [2])


def an_input_as_a_result(folder: Path) -> Path:
    return saved(model([helper.make_node("Relu", ["x"], ["x"])], {"x": [2]}, {"x": [2]}), folder)


def recursive(folder: Path) -> Path:
    """A function that calls itself."""
    proto = model([helper.make_node("F", ["x"], ["y"], domain="own")], {"x": [2]}, {"y": [2]}, domains={"own": 1})
    inner = [helper.make_node("F", ["a"], ["b"], domain="own")]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    proto.functions.append(helper.make_function("own", "F", ["a"], ["b"], inner, opsets))
    return saved(proto, folder)


def bad_offset(folder: Path) -> Path:
    proto = onnx.load(external("short.bin")(folder), load_external_data=False)
    proto.graph.initializer[0].external_data.add(key="offset", value="behind")
    return saved(proto, folder)


CASES: list[tuple[Make, str, str]] = [
    (truncated, "bad-onnx", "not an ONNX file, or it is truncated"),
    (not_onnx, "bad-onnx", "not an ONNX file"),
    (empty, "bad-onnx", "contains no graph"),
    (cyclic, "cyclic-onnx", "depend on their own output"),
    (huge_shape, "onnx-data", "'w' of 1099511627776 elements"),
    (opset_6, "onnx-opset", "uses opset 6, but opsets 7 to"),
    (opset_of_the_future, "onnx-opset", "uses opset 999"),
    (wrong_type, "onnx-node", "the node 'conv' (Conv) cannot be imported"),
    (missing_value, "onnx-node", "'nowhere'"),
    (two_values_of_one_name, "bad-onnx", "two values with the name 'y'"),
    (external("absent.bin"), "onnx-data", "'absent.bin', which is missing"),
    (external("short.bin"), "onnx-data", "needs 432 bytes, but its data has 10"),
    (external("short.bin", 432), "onnx-data", "needs 432 bytes, but its data has 10"),
    (external("../escape.bin"), "onnx-data", "external data must be inside the folder"),
    (external("/etc/passwd"), "onnx-data", "external data must be inside the folder"),
    (linked, "onnx-data", "external data must be inside the folder"),
    (bad_offset, "onnx-data", "invalid offset or length"),
    (given(SEQUENCE), "onnx-input", "the input 'second' is not a tensor of numbers"),
    (given(STRINGS), "onnx-input", "the input 'second' is not a tensor of numbers"),
    (given(UNKNOWN_RANK), "onnx-input", "with a known rank"),
    (given(NEGATIVE), "onnx-input", "'second' has a negative dimension"),
    (given(ENTRY, TEXT), "onnx-output", "the output 'text' cannot be imported"),
    (an_input_as_a_result, "bad-onnx", "two values with the name 'x'"),
    (recursive, "bad-onnx", "cannot be inlined"),
]
BY_LIBRARIES = ("onnx-node", "onnx-opset")  # their sentences contain those of onnx


@pytest.mark.parametrize(("make", "code", "words"), CASES, ids=[f"{case[0].__name__}-{case[2][:20]}" for case in CASES])
def test_a_bad_file_is_refused_with_reason_and_remedy(
    make: Make, code: str, words: str, tmp_path: Path, registry: Registry
) -> None:
    found = refusal(make(tmp_path), registry)
    assert found.code == code
    assert words in found.message
    assert found.message.startswith("model.onnx")
    assert found.remedy
    assert found.file is not None


def test_the_reasons_and_remedies_of_bad_files(tmp_path: Path, registry: Registry) -> None:
    lines = []
    for number, (make, code, _) in enumerate(CASES):
        (folder := tmp_path / str(number)).mkdir()
        found = refusal(make(folder), registry)
        message = "..." if code in BY_LIBRARIES or make is recursive else found.message
        lines.append(f"{make.__name__}: {found.code}: {message}; {found.remedy}")
    check_recorded("imports/bad_onnx.txt", "\n".join([*lines, ""]))


@pytest.mark.parametrize("make", [huge_fold, huge_input, huge_shape], ids=lambda make: make.__name__)
def test_claimed_sizes_take_no_memory(make: Make, tmp_path: Path, registry: Registry) -> None:
    path = make(tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DiagnosticError):
        import_onnx(path, registry, ImportOptions())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


def test_an_operator_of_an_unknown_domain_is_kept_and_named(tmp_path: Path, registry: Registry) -> None:
    node = helper.make_node("Sparkle", ["x"], ["y"], name="sparkle", domain="com.example", amount=3)
    proto = model([node], {"x": [2, 3]}, {"y": [2, 3]}, domains={"com.example": 1})
    found = import_onnx(saved(proto, tmp_path), registry, ImportOptions()).verified(registry)
    (opaque,) = [layer for layer in found.graph if layer.type == "opaque"]
    assert (opaque.params["op_type"], opaque.params["domain"]) == ("Sparkle", "com.example")
    assert "com.example" in found.report.warnings[0]
    assert found.report.not_compared_because.startswith("ONNX Runtime cannot run model.onnx: ")
    assert found.report.not_compared_because.endswith("com.example:Sparkle(-1) is not a registered function/op")


def test_the_command_writes_nothing_for_a_bad_file(tmp_path: Path) -> None:
    path = truncated(tmp_path)
    with pytest.raises(DiagnosticError):
        app(
            ["import", str(path), "-o", str(tmp_path / "y.xml"), "--weights", str(tmp_path / "w")],
            standalone_mode=False,
        )
    assert sorted(item.name for item in tmp_path.iterdir()) == ["model.onnx"]


def test_every_truncation_is_refused_or_equal(tmp_path: Path, registry: Registry) -> None:
    data = saved(small_network(), tmp_path).read_bytes()
    path = tmp_path / "cut.onnx"
    for length in range(0, len(data), max(1, len(data) // 60)):
        path.write_bytes(data[:length])
        assert refusal(path, registry).message


def test_random_bytes_in_a_file_never_raise_anything_else(tmp_path: Path, registry: Registry) -> None:
    data = bytearray(saved(small_network(), tmp_path).read_bytes())
    random_numbers = np.random.default_rng(5)
    path = tmp_path / "flipped.onnx"
    for _ in range(150):
        changed = bytearray(data)
        for place in random_numbers.integers(0, len(data), 3):
            changed[place] = int(random_numbers.integers(0, 256))
        path.write_bytes(bytes(changed))
        with contextlib.suppress(DiagnosticError):
            assert import_onnx(path, registry, ImportOptions()).graph.layers


def test_a_tensor_in_an_attribute_is_checked_too(tmp_path: Path, registry: Registry) -> None:
    tensor = numpy_helper.from_array(random(4), "value")
    tensor.dims[:] = [2**20, 2**20]
    nodes = [helper.make_node("Constant", [], ["c"], value=tensor), helper.make_node("Add", ["x", "c"], ["y"])]
    found = refusal(saved(model(nodes, {"x": [4]}, {"y": [4]}), tmp_path), registry)
    assert found.code == "onnx-data"


def test_a_text_instead_of_a_number_is_refused(tmp_path: Path, registry: Registry) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv")
    node.attribute.append(onnx.helper.make_attribute("strides", "wide"))
    proto = model([node], {"x": [1, 3, 8, 8]}, {"y": [1, 2, 6, 6]}, {"w": random(2, 3, 3, 3)})
    assert refusal(saved(proto, tmp_path), registry).code == "onnx-node"
