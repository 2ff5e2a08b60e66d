"""Damaged and hostile ONNX files: a reason with thing, rule and remedy, bounded memory, and no half document."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable, Sequence
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
from designer.importers.onnx import model_file
from designer.importers.onnx.importing import import_onnx
from designer.importers.onnx.model_file import read_proto
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


def claims(count: int) -> onnx.TensorProto:
    """A tensor that claims `count` x 2^20 elements and has four."""
    tensor = numpy_helper.from_array(random(4), "claimed")
    tensor.dims[:] = [count, 2**20]
    return tensor


def constant_with(attribute: onnx.AttributeProto) -> Make:
    """A constant with this attribute."""

    def make(folder: Path) -> Path:
        constant = helper.make_node("Constant", [], ["c"])
        constant.attribute.append(attribute)
        nodes = [constant, helper.make_node("Add", ["x", "c"], ["y"])]
        return saved(model(nodes, {"x": [4]}, {"y": [4]}), folder)

    return make


def sparse(part: str) -> Make:
    """A sparse constant whose values or positions are not what they claim."""
    places = numpy_helper.from_array(np.array([1, 3, 0, 2]), "places")
    tensor = helper.make_sparse_tensor(numpy_helper.from_array(random(4), "values"), places, [4])
    (tensor.values if part == "values" else tensor.indices).dims[:] = [2**20]
    return constant_with(helper.make_attribute("sparse_value", tensor))


def branches(*graphs: onnx.GraphProto, name: str = "then_branch") -> Make:
    """A node with these graphs as its attribute."""

    def make(folder: Path) -> Path:
        node = helper.make_node("If", ["x"], ["y"])
        node.attribute.append(helper.make_attribute(name, graphs[0] if len(graphs) == 1 else list(graphs)))
        return saved(model([node], {"x": [1]}, {"y": [4]}), folder)

    return make


def inner(*stored: onnx.TensorProto, nodes: Sequence[onnx.NodeProto] = ()) -> onnx.GraphProto:
    return helper.make_graph(list(nodes), "inner", [], [], list(stored))


def nested(depth: int) -> onnx.GraphProto:
    """Graphs in graphs."""
    graph = inner()
    for _ in range(depth - 1):
        node = helper.make_node("If", ["x"], ["y"])
        node.attribute.append(helper.make_attribute("then_branch", graph))
        graph = inner(nodes=[node])
    return graph


def no_text(field: str) -> Make:
    """A name that is not UTF-8."""

    def make(folder: Path) -> Path:
        names = {"name": "n", "op": "Relu", "domain": "", "input": "x", "output": "z", field: "QQQQ"}
        node = helper.make_node(names["op"], [names["input"]], [names["output"]], names["name"], domain=names["domain"])
        path = saved(model([node], {"x": [2]}, {"y": [2]}), folder)
        path.write_bytes(path.read_bytes().replace(b"QQQQ", b"\xff\xfe\xff\xff"))
        return path

    return make


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
    (sparse("values"), "onnx-data", "the tensor 'values' of 1048576 elements"),
    (sparse("indices"), "onnx-data", "the tensor 'places' of 1048576 elements"),
    (constant_with(helper.make_attribute("value", claims(1))), "onnx-data", "'claimed' of 1048576 elements"),
    (constant_with(helper.make_attribute("all", [claims(4), claims(3)])), "onnx-data", "'claimed' of 4194304 elements"),
    (branches(inner(claims(5))), "onnx-data", "'claimed' of 5242880 elements"),
    (branches(inner(), inner(claims(6)), name="bodies"), "onnx-data", "'claimed' of 6291456 elements"),
    (branches(nested(33)), "too-large", "graphs nested too deeply"),
    *(
        (no_text(field), "bad-onnx", "a name that is not UTF-8")
        for field in ("name", "op", "domain", "input", "output")
    ),
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
        lines.append(f"{make.__qualname__.partition('.')[0]}: {found.code}: {message}; {found.remedy}")
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


def test_graphs_may_be_nested_as_deep_as_the_limit(tmp_path: Path) -> None:
    assert read_proto(branches(nested(32))(tmp_path)).graph.node[0].op_type == "If"


def test_a_name_may_be_used_again_in_the_graph_of_another_node(tmp_path: Path) -> None:
    same = [inner(nodes=[helper.make_node("Relu", ["x"], ["z"])]) for _ in range(2)]
    assert len(read_proto(branches(*same, name="bodies")(tmp_path)).graph.node) == 1


def test_a_result_with_the_name_of_a_stored_tensor_is_refused(tmp_path: Path, registry: Registry) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["w"]), helper.make_node("Relu", ["w"], ["y"])]
    found = refusal(saved(model(nodes, {"x": [2]}, {"y": [2]}, {"w": random(2)}), tmp_path), registry)
    assert (found.code, found.message) == ("bad-onnx", "model.onnx has two values with the name 'w'")


def test_a_file_of_more_than_2_gigabytes_is_not_read(
    tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert model_file.MAX_FILE == 2**31 - 1
    path = saved(small_network(), tmp_path)
    monkeypatch.setattr(model_file, "MAX_FILE", path.stat().st_size)
    assert read_proto(path).graph.node
    monkeypatch.setattr(model_file, "MAX_FILE", path.stat().st_size - 1)
    found = refusal(path, registry)
    assert (found.code, found.message) == ("file-too-large", "model.onnx is larger than 2 GB")
    assert found.remedy == "save the model with its tensors as external data"


def test_a_file_that_cannot_be_read_says_why(
    tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(small_network(), tmp_path)

    def load(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(onnx, "load_model", load)
    found = refusal(path, registry)
    assert (found.code, found.file) == ("cannot-read", str(path))
    assert found.message == "model.onnx cannot be read: Permission denied"
    assert found.remedy == "check the path and your permissions"


@pytest.mark.parametrize(("nodes", "outputs", "fits"), [(1, 1, True), (1, 0, True), (0, 1, True), (0, 0, False)])
def test_a_graph_has_nodes_or_outputs(nodes: int, outputs: int, fits: bool, tmp_path: Path) -> None:
    made = [helper.make_node("Relu", ["x"], ["y"])][:nodes]
    path = saved(model(made, {"x": [2]}, {"x": [2]} if outputs else {}), tmp_path)
    if fits:
        read_proto(path)
    else:
        with pytest.raises(DiagnosticError, match="contains no graph"):
            read_proto(path)


@pytest.mark.parametrize(
    ("versions", "wrong"),
    [
        ([("", 20), ("ai.onnx", 3)], 3), ([("ai.onnx", 6)], 6), ([("ai.onnx", 18), ("", 999)], 999), ([("", 8)], None),
        ([("ai.onnx", 8), ("com.example", 1)], None), ([("com.example", 999)], None),
    ],
)  # fmt: skip
def test_the_first_version_that_does_not_fit_is_named(versions: list[tuple[str, int]], wrong: int | None) -> None:
    proto = onnx.ModelProto(opset_import=[helper.make_opsetid(*entry) for entry in versions])
    if wrong is None:
        model_file.check_opsets(proto, Path("a.onnx"))
        return
    with pytest.raises(DiagnosticError) as caught:
        model_file.check_opsets(proto, Path("a.onnx"))
    newest = onnx.defs.onnx_opset_version()
    message = f"a.onnx uses opset {wrong}, but opsets 7 to {newest} can be imported"
    assert caught.value.diagnostics[0].message == message


@pytest.mark.parametrize(
    ("kind", "elements", "offset", "length", "found"),
    [
        ("FLOAT", 5, None, None, None), ("FLOAT", 5, 0, 20, None), ("FLOAT", 3, 8, None, None), ("FLOAT", 3, 8, 12, None),
        ("FLOAT", 3, 4, 12, None), ("FLOAT", 3, None, 12, None), ("FLOAT", 3, None, None, 20), ("FLOAT", 3, 8, 8, 8),
        ("FLOAT", 3, 12, None, 8), ("FLOAT", 3, 12, 12, 8), ("FLOAT", 3, 8, 0, 0),
        ("FLOAT", 3, 40, None, 0), ("UINT8", 20, None, None, None), ("DOUBLE", 2, 4, None, None), ("INT4", 39, None, None, None),
        ("INT4", 40, None, None, None), ("INT4", 41, None, None, 20), ("INT4", 3, 18, None, None), ("FLOAT16", 10, None, None, None),
    ],
)  # fmt: skip
def test_external_data_has_the_bytes_of_the_tensor(
    kind: str, elements: int, offset: int | None, length: int | None, found: int | None, tmp_path: Path
) -> None:
    """The file has 20 bytes; `found` are those that are there for the tensor, None if they are its bytes."""
    (tmp_path / "data.bin").write_bytes(bytes(20))
    tensor = onnx.TensorProto(name="w", data_type=getattr(TensorProto, kind), dims=[elements])
    tensor.data_location = TensorProto.EXTERNAL
    for key, number in (("location", "data.bin"), ("offset", offset), ("length", length)):
        if number is not None:
            tensor.external_data.add(key=key, value=str(number))
    path = tmp_path / "a.onnx"
    if found is None:
        model_file.check_tensor(tensor, path, tmp_path)
        return
    with pytest.raises(
        DiagnosticError, match=f"of {elements} elements, which needs .* bytes, but its data has {found} "
    ):
        model_file.check_tensor(tensor, path, tmp_path)


@pytest.mark.parametrize(("offset", "length"), [("-8", "12"), ("8", "-12"), ("-8", ""), ("8", "x"), ("", "12")])
def test_an_offset_or_length_that_is_not_one_is_refused(offset: str, length: str, tmp_path: Path) -> None:
    """A negative offset would read from the end, or the bytes in front of the data."""
    (tmp_path / "data.bin").write_bytes(bytes(20))
    tensor = onnx.TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    for key, text in (("location", "data.bin"), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=text)
    with pytest.raises(DiagnosticError, match="has the tensor 'w' with an invalid offset or length"):
        model_file.check_tensor(tensor, tmp_path / "a.onnx", tmp_path)


@pytest.mark.parametrize(
    ("kind", "field", "values", "elements"),
    [
        ("INT4", "int32_data", 2, 3), ("UINT4", "int32_data", 2, 4), ("INT4", "int32_data", 3, 5), ("COMPLEX128", "double_data", 6, 3),
        ("COMPLEX64", "float_data", 6, 3), ("STRING", "string_data", 3, 3), ("UINT32", "uint64_data", 3, 3), ("BFLOAT16", "int32_data", 3, 3),
    ],
)  # fmt: skip
def test_values_of_a_tensor_are_counted_by_its_type(kind: str, field: str, values: int, elements: int) -> None:
    for extra in (-1, 0, 1):
        tensor = onnx.TensorProto(name="w", data_type=getattr(TensorProto, kind), dims=[elements])
        getattr(tensor, field).extend([b"a" if kind == "STRING" else 1] * (values + extra))
        if extra and kind != "STRING":  # the size of a text is not known
            with pytest.raises(DiagnosticError, match=f"'w' of {elements} elements"):
                model_file.check_tensor(tensor, Path("a.onnx"), Path())
        else:
            model_file.check_tensor(tensor, Path("a.onnx"), Path())
    odd = onnx.TensorProto(name="w", data_type=TensorProto.INT4, dims=[3], raw_data=bytes(2))
    model_file.check_tensor(odd, Path("a.onnx"), Path())


def test_external_data_is_read_from_the_folder_of_the_model(tmp_path: Path, registry: Registry) -> None:
    (tmp_path / "inner" / "data").mkdir(parents=True)
    weight = random(3, 4)
    (tmp_path / "inner" / "data" / "w.bin").write_bytes(bytes(8) + weight.tobytes())
    proto = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ["n", 3]}, {"y": ["n", 4]})
    tensor = proto.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[3, 4])
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in (("location", "data/w.bin"), ("offset", "8"), ("length", "48")):
        tensor.external_data.add(key=key, value=text)
    found = import_onnx(saved(proto, tmp_path / "inner"), registry, ImportOptions())
    (array,) = found.weights.tensors.values()
    np.testing.assert_array_equal(array, weight.T)


def test_the_reason_of_a_library_is_its_first_line() -> None:
    assert model_file._first(ValueError("  \n first \nsecond")) == "first "
    assert model_file._first(ValueError("x" * 400)) == "x" * 300
    assert model_file._first(KeyError()) == "KeyError"


def test_a_text_instead_of_a_number_is_refused(tmp_path: Path, registry: Registry) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv")
    node.attribute.append(onnx.helper.make_attribute("strides", "wide"))
    proto = model([node], {"x": [1, 3, 8, 8]}, {"y": [1, 2, 6, 6]}, {"w": random(2, 3, 3, 3)})
    assert refusal(saved(proto, tmp_path), registry).code == "onnx-node"
