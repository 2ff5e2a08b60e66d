"""Weights: every source, every report, and every file that must be refused."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from recorded import check_recorded

from designer.files import limits
from designer.files.array_files import as_float32, npy_bytes, read_array, read_header, read_raw
from designer.files.document import read_document
from designer.files.safetensors_file import read_entries
from designer.files.weight_files import file_stems
from designer.files.weight_types import WeightReport
from designer.files.weights import (
    WeightKey,
    Weights,
    WeightStatus,
    fill_missing,
    load_weights,
    random_weights,
    required_weights,
    save_weights,
    weight_diagnostics,
)
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.operators.api import Weight
from designer.operators.registry import Registry, default_registry, load

BAD = Path(__file__).parent.parent / "data" / "bad" / "weights"
KERNEL, BIAS = WeightKey("conv 1", "kernel"), WeightKey("conv 1", "bias")
DATA = Path(__file__).parents[1] / "data"
NEEDED = {
    KERNEL: Weight("kernel", (4, 3, 3, 3), "weight", fan_in=27),
    BIAS: Weight("bias", (4,), "bias", init="zeros"),
}
Array = np.ndarray


@pytest.fixture(scope="module")
def library() -> Registry:
    return load(entry_points=False)


@pytest.fixture
def tensors() -> dict[WeightKey, Array]:
    generator = np.random.default_rng(1)
    return {key: generator.standard_normal(w.shape, np.float32) for key, w in NEEDED.items()}


def same(weights: Weights, tensors: dict[WeightKey, Array], tolerance: float = 0.0) -> bool:
    for key, array in weights.tensors.items():
        assert array.dtype == np.float32
        assert array.flags.c_contiguous
        np.testing.assert_allclose(array, tensors[key], atol=tolerance, rtol=0)
    return set(weights.tensors) == set(tensors)


def codes(error: DiagnosticError) -> set[str]:
    return {d.code for d in error.diagnostics}


# --- what a network needs ---------------------------------------------------------------------------------------


def test_a_network_says_what_it_needs(library: Registry) -> None:
    graph = Graph(
        [
            Layer("in", "input", params={"dims": "16x16x3"}),
            Layer("a", "convolution", inputs=(Source("in"),), params={"features": "5"}),
            Layer("b", "convolution", inputs=(Source("a"),), activation=ActivationSpec("prelu")),
            Layer("off", "convolution", inputs=(Source("nobody"),)),
        ]
    )
    needed = required_weights(Inference(graph, library))
    assert {f"{k.layer}.{k.tensor}": w.shape for k, w in needed.items()} == {
        "a.kernel": (5, 3, 3, 3),
        "a.bias": (5,),
        "b.kernel": (32, 5, 3, 3),
        "b.bias": (32,),
        "b.activation_slope": (32,),
    }


def test_a_network_that_needs_more_than_any_machine_has_is_refused(
    library: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Graph(
        [
            Layer("in", "input", params={"dims": "16x16x3"}),
            Layer("a", "convolution", inputs=(Source("in"),), params={"features": "500"}),
            Layer("b", "convolution", inputs=(Source("a"),), params={"features": "500"}),
        ]
    )
    monkeypatch.setattr(limits, "MAX_WEIGHT_BYTES", 2**20)
    with pytest.raises(DiagnosticError) as caught:
        required_weights(Inference(graph, library))
    assert [(d.code, d.layer) for d in caught.value.diagnostics] == [("too-large", "b")]


# --- sources ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["folder", "one.safetensors"])
def test_saved_weights_come_back(tmp_path: Path, tensors: dict[WeightKey, Array], target: str) -> None:
    save_weights(tmp_path / target, tensors)
    weights = load_weights(tmp_path / target, NEEDED)
    assert same(weights, tensors)
    assert weights.complete
    assert weights.note == ""
    assert weight_diagnostics(weights) == ()


def test_file_names_derive_from_identifiers(tmp_path: Path, tensors: dict[WeightKey, Array]) -> None:
    save_weights(tmp_path, tensors)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["conv_1_bias.npy", "conv_1_kernel.npy"]


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f2", "<f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_any_floating_type_and_order(
    tmp_path: Path, tensors: dict[WeightKey, Array], dtype: str, order: str
) -> None:
    for key, array in tensors.items():
        np.save(tmp_path / f"{key.layer}_{key.tensor}.npy", np.asarray(array, dtype, order=order))
    assert same(load_weights(tmp_path, NEEDED), tensors, 2e-3 if dtype == "<f2" else 0)


def test_raw_little_endian_files(tmp_path: Path, tensors: dict[WeightKey, Array]) -> None:
    for key, array in tensors.items():
        (tmp_path / f"{key.layer}_{key.tensor}.bin").write_bytes(array.astype("<f4").tobytes())
    assert same(load_weights(tmp_path, NEEDED), tensors)


def test_safetensors_agree_with_the_library(tmp_path: Path, tensors: dict[WeightKey, Array]) -> None:
    numpy_files = pytest.importorskip("safetensors.numpy")
    theirs = tmp_path / "theirs.safetensors"
    numpy_files.save_file({f"{k.layer}.{k.tensor}": a for k, a in tensors.items()}, theirs, {"made": "by hand"})
    assert same(load_weights(theirs, NEEDED), tensors)
    save_weights(tmp_path / "ours.safetensors", tensors)
    read = numpy_files.load_file(tmp_path / "ours.safetensors")
    assert same(Weights({WeightKey(*k.split(".")): a for k, a in read.items()}), tensors)


def test_safetensors_in_half_precisions(tmp_path: Path, tensors: dict[WeightKey, Array]) -> None:
    torch = pytest.importorskip("torch")
    torch_files = pytest.importorskip("safetensors.torch")
    for dtype, tolerance in ((torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
        state = {f"{k.layer}.{k.tensor}": torch.from_numpy(a).to(dtype) for k, a in tensors.items()}
        torch_files.save_file(state, tmp_path / "half.safetensors")
        assert same(load_weights(tmp_path / "half.safetensors", NEEDED), tensors, tolerance)


@pytest.mark.parametrize("form", ["plain", "wrapped", "nested", "legacy", "ours", "half", "project"])
def test_state_dicts(tmp_path: Path, tensors: dict[WeightKey, Array], form: str) -> None:
    torch = pytest.importorskip("torch")
    state = {
        "conv_1.weight": torch.from_numpy(tensors[KERNEL]).to(memory_format=torch.channels_last),
        "conv_1.bias": torch.nn.Parameter(torch.from_numpy(tensors[BIAS])),
    }
    if form == "wrapped":
        state = {f"module._orig_mod.{k}": v for k, v in state.items()}
    if form == "ours":
        state = {f"{k.layer}.{k.tensor}": torch.from_numpy(a) for k, a in tensors.items()}
    if form == "half":
        state = {k: v.detach().to(torch.bfloat16) for k, v in state.items()}
    content = {"epoch": 3, "model": state, "optimizer": {"lr": 0.1}} if form == "nested" else state
    if form == "project":  # as the exported project saves checkpoints
        state["norm.num_batches_tracked"] = torch.tensor(3)
        content = {"network": state, "random": {"cpu": torch.get_rng_state()}, "step": 1}
    path = tmp_path / ("x.pt" if form != "wrapped" else "x.pth")
    torch.save(content, path, _use_new_zipfile_serialization=form != "legacy")
    weights = load_weights(path, NEEDED)
    assert same(weights, tensors, 2e-2 if form == "half" else 0)
    assert {r.status for r in weights.reports} == {WeightStatus.BOUND}


def test_values_of_each_type_are_read_or_refused_as_recorded(tmp_path: Path) -> None:
    """Every number format, and layouts that are not dense, in each kind of file: the values, or the message."""
    torch = pytest.importorskip("torch")
    torch_files = pytest.importorskip("safetensors.torch")
    values = torch.tensor([0.0, 1.0, 2.0, 100.0])
    kinds = (
        "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 int64 int32 int16 int8 uint8 bool complex64".split()
    )
    made = {kind: values.to(getattr(torch, kind)) for kind in kinds}
    made |= {"every second": torch.arange(8.0)[::2], "with gradient": torch.nn.Parameter(values)}
    lines = []
    for kind, tensor in {**made, "sparse": values.to_sparse()}.items():
        state = {"conv_1.bias": tensor, "conv_1.weight": torch.zeros(4, 3, 3, 3)}
        torch.save(state, tmp_path / "net.pt")
        paths = [tmp_path / "net.pt"]
        if kind in made:
            torch_files.save_file({k: v.detach().contiguous() for k, v in state.items()}, tmp_path / "net.safetensors")
            paths.append(tmp_path / "net.safetensors")
        if kind in made and "float8" not in kind and kind != "bfloat16":
            folder = tmp_path / kind
            folder.mkdir()
            np.save(folder / "conv 1_bias.npy", tensor.detach().numpy())
            np.save(folder / "conv 1_kernel.npy", np.zeros((4, 3, 3, 3), np.float32))
            paths.append(folder)
        for path in paths:
            try:
                found = load_weights(path, NEEDED)
                text = str(found.tensors[BIAS].tolist()) if BIAS in found.tensors else ""
                text += "".join(f"{d.code}: {d.message} - {d.remedy}" for d in weight_diagnostics(found))
            except DiagnosticError as error:
                text = "".join(f"refused, {d.code}: {d.message} - {d.remedy}" for d in error.diagnostics)
            what = "folder" if path.is_dir() else path.suffix[1:]
            lines.append(f"{kind} in {what}: {text.replace(str(tmp_path), '...')}")
    check_recorded("weight_types.txt", "\n".join([*lines, ""]))


@pytest.mark.parametrize(("kind", "bits"), [("C64", 64), ("F8_E8M0", 8), ("F6_E2M3", 6), ("F4", 4), ("U32", 32)])
def test_a_tensor_of_any_type_that_no_layer_needs_does_not_matter(
    tmp_path: Path, tensors: dict[WeightKey, Array], kind: str, bits: int
) -> None:
    path = tmp_path / "net.safetensors"
    head: dict[str, object] = {"other": {"dtype": kind, "shape": [2, 4], "data_offsets": [0, bits]}}
    data = bytes(bits)
    for key, values in tensors.items():
        offsets = [len(data), len(data) + values.nbytes]
        head[f"{key.layer}.{key.tensor}"] = {"dtype": "F32", "shape": values.shape, "data_offsets": offsets}
        data += values.tobytes()
    text = json.dumps(head).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    assert same(load_weights(path, NEEDED), tensors)
    unknown = json.dumps(head).replace(f'"{kind}"', '"X9"').encode()
    path.write_bytes(len(unknown).to_bytes(8, "little") + unknown + data)
    with pytest.raises(DiagnosticError) as caught:
        load_weights(path, NEEDED)
    assert codes(caught.value) == {"weight-type"}
    assert "'other' in net.safetensors has the unknown type X9" in str(caught.value)


@pytest.mark.parametrize("order", [("params", "params_ema"), ("params_ema", "params")])
def test_averaged_weights_of_a_checkpoint_come_first(
    tmp_path: Path, tensors: dict[WeightKey, Array], order: tuple[str, str]
) -> None:
    torch = pytest.importorskip("torch")
    state = {f"{k.layer}.{k.tensor}": torch.from_numpy(a) for k, a in tensors.items()}
    content = {"params": {k: v + 1 for k, v in state.items()}, "params_ema": state}
    torch.save({key: content[key] for key in order}, tmp_path / "net.pth")
    weights = load_weights(tmp_path / "net.pth", NEEDED)
    assert same(weights, tensors, 0)
    assert weights.note == "weights of 'params_ema' in net.pth, which also has 'params'"


# --- reports ----------------------------------------------------------------------------------------------------


def test_every_tensor_is_reported(tmp_path: Path) -> None:
    np.save(tmp_path / "conv 1_kernel.npy", np.zeros((4, 3, 5, 5), np.float32))
    np.save(tmp_path / "old layer_bias.npy", np.zeros(7, np.float32))
    (tmp_path / "LICENSE.txt").write_text("text")
    weights = load_weights(tmp_path, NEEDED)
    assert not weights.complete
    assert not weights.tensors
    assert {(r.key, r.status, r.needed, r.found) for r in weights.reports} == {
        (KERNEL, WeightStatus.WRONG_SHAPE, (4, 3, 3, 3), (4, 3, 5, 5)),
        (BIAS, WeightStatus.MISSING, (4,), None),
        (WeightKey("old layer", "bias"), WeightStatus.UNEXPECTED, None, (7,)),
    }
    found = {d.code: d for d in weight_diagnostics(weights)}
    assert set(found) == {"wrong-shape", "missing-weight", "unexpected-weight"}
    assert "4 x 3 x 3 x 3" in found["wrong-shape"].message
    assert "4 x 3 x 5 x 5" in found["wrong-shape"].message


def test_a_damaged_file_that_no_layer_needs_does_not_matter(tmp_path: Path, tensors: dict[WeightKey, Array]) -> None:
    save_weights(tmp_path, tensors)
    (tmp_path / "other_bias.npy").write_bytes(b"nothing")
    assert same(load_weights(tmp_path, NEEDED), tensors)


# --- random -----------------------------------------------------------------------------------------------------


def test_random_weights_are_the_same_for_a_seed_and_say_so() -> None:
    first, again, other = random_weights(NEEDED, 0), random_weights(NEEDED, 0), random_weights(NEEDED, 1)
    assert same(first, dict(again.tensors))
    assert not np.array_equal(first.tensors[KERNEL], other.tensors[KERNEL])
    assert first.note == "random weights (seed 0)"
    assert first.complete
    assert np.abs(first.tensors[KERNEL]).max() <= (1 / 27) ** 0.5
    assert not first.tensors[BIAS].any()


def test_what_is_missing_is_filled_and_counted(tmp_path: Path, tensors: dict[WeightKey, Array]) -> None:
    save_weights(tmp_path, {BIAS: tensors[BIAS]})
    filled = fill_missing(load_weights(tmp_path, NEEDED), NEEDED, 7)
    assert filled.note == "1 of 2 tensors random (seed 7)"
    assert filled.complete
    np.testing.assert_array_equal(filled.tensors[BIAS], tensors[BIAS])
    np.testing.assert_array_equal(filled.tensors[KERNEL], random_weights(NEEDED, 7).tensors[KERNEL])


def test_nothing_missing_changes_nothing(tmp_path: Path, tensors: dict[WeightKey, Array]) -> None:
    save_weights(tmp_path, tensors)
    weights = load_weights(tmp_path, NEEDED)
    assert fill_missing(weights, NEEDED, 0) is weights


@pytest.mark.parametrize("init", ["ones", "normal", "constant:0.25", "zeros", "kaiming"])
def test_every_initialisation(init: str) -> None:
    array = random_weights({BIAS: Weight("bias", (1000,), "bias", init=init, fan_in=4)}, 0).tensors[BIAS]
    assert (array.dtype, array.shape) == (np.float32, (1000,))
    expected = {"ones": 1.0, "constant:0.25": 0.25}.get(init, 0.0)
    assert abs(float(array.mean()) - expected) < 0.1


# --- refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(BAD.iterdir()), ids=lambda p: p.name)
def test_a_bad_file_ends_in_its_finding(path: Path, tmp_path: Path) -> None:
    code = path.name.partition("__")[0]
    source = path
    if path.suffix in (".npy", ".bin"):
        source = tmp_path
        for key in NEEDED:
            (tmp_path / f"{key.layer}_{key.tensor}{path.suffix}").write_bytes(path.read_bytes())
    try:
        found = weight_diagnostics(load_weights(source, NEEDED))
    except DiagnosticError as error:
        found = error.diagnostics
    assert code in {d.code for d in found}, [str(d) for d in found]
    for finding in found:
        assert finding.remedy
        assert finding.file
        assert len(finding.message) < 500


@pytest.mark.parametrize("name", ["calls_system.pt", "old_format.pth"])
def test_a_refusal_names_what_a_file_wanted_to_call(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DiagnosticError) as caught:
        load_weights(BAD / f"pickled-weights__{name}", NEEDED)
    assert "never run" not in capfd.readouterr().out
    text = str(caught.value)
    assert "posix.system" in text
    assert "weights_only" not in text
    assert "torch.save(model.state_dict()" in text


def test_a_huge_claim_takes_no_memory(tmp_path: Path) -> None:
    """1.5 kB of state dict that claims 2^40 numbers: the shape is compared before anything is copied."""
    torch = pytest.importorskip("torch")
    path = tmp_path / "huge.pt"
    torch.save({"conv_1.weight": torch.zeros(1).expand(2**20, 2**20)}, path)
    assert path.stat().st_size < 4096
    weights = load_weights(path, NEEDED)
    report = next(r for r in weights.reports if r.key == KERNEL)
    assert (report.status, report.found) == (WeightStatus.WRONG_SHAPE, (2**20, 2**20))


def test_a_sparse_file_with_a_true_but_huge_header_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "conv 1_kernel.npy"
    head = str({"descr": "<f4", "fortran_order": False, "shape": (2**16, 2**16)}).encode()
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    with path.open("wb") as stream:
        stream.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
        stream.truncate(10 + len(head) + 4 * 2**32)
    weights = load_weights(tmp_path, NEEDED)
    assert next(r for r in weights.reports if r.key == KERNEL).status is WeightStatus.WRONG_SHAPE
    assert weights.sha256 == hashlib.sha256().hexdigest()


def test_paths_that_are_no_weights(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    for path, code in ((tmp_path / "none", "cannot-read"), (tmp_path / "notes.txt", "unknown-format")):
        with pytest.raises(DiagnosticError) as caught:
            load_weights(path, NEEDED)
        assert codes(caught.value) == {code}


def test_a_full_disk_while_saving_weights(
    tmp_path: Path, tensors: dict[WeightKey, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    from designer.files import atomic

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    save_weights(tmp_path / "a.safetensors", tensors)
    before = (tmp_path / "a.safetensors").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "fsync", full)
        for target in ("a.safetensors", "folder"):
            with pytest.raises(DiagnosticError) as caught:
                save_weights(tmp_path / target, tensors)
            assert codes(caught.value) == {"cannot-save"}
    assert (tmp_path / "a.safetensors").read_bytes() == before
    assert list((tmp_path / "folder").iterdir()) == []


def test_file_names_of_two_tensors_never_collide(tmp_path: Path) -> None:
    """A separable convolution `block` and a depthwise one `block_depthwise` both would have block_depthwise_kernel.npy."""
    graph = read_document(DATA / "weight_file_collision.xml").graph
    assert graph is not None
    needed = required_weights(Inference(graph, default_registry()))
    tensors = {key: np.full(weight.shape, number, np.float32) for number, (key, weight) in enumerate(needed.items())}
    save_weights(tmp_path, tensors)
    assert len(list(tmp_path.iterdir())) == len(tensors)
    assert same(load_weights(tmp_path, needed), tensors)


def test_npy_files_of_version_3_are_read(tmp_path: Path, tensors: dict[WeightKey, Array]) -> None:
    for key, array in tensors.items():
        with (tmp_path / f"{key.layer}_{key.tensor}.npy").open("wb") as stream:
            np.lib.format.write_array(stream, array, version=(3, 0))
    assert same(load_weights(tmp_path, NEEDED), tensors)


@pytest.mark.parametrize("name", ["big", "neg", "tok", "zip"])
def test_damaged_npy_headers_are_findings(tmp_path: Path, name: str) -> None:
    (tmp_path / "conv 1_kernel.npy").write_bytes((DATA / "arrays" / f"{name}.npy").read_bytes())
    with pytest.raises(DiagnosticError) as caught:
        load_weights(tmp_path, NEEDED)
    assert codes(caught.value) <= {"bad-weights", "weight-size"}


@pytest.mark.parametrize("offsets", [((0, 8), (4, 12)), ((0, 8), (12, 20)), ((4, 12), (12, 20)), ((0, 8), (8, 16))])
def test_safetensors_with_gaps_or_overlaps_are_refused(tmp_path: Path, offsets: tuple[tuple[int, int], ...]) -> None:
    head = {f"t{n}": {"dtype": "F32", "shape": [2], "data_offsets": list(o)} for n, o in enumerate(offsets)}
    text = json.dumps(head).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(20))
    with pytest.raises(DiagnosticError, match=r"overlap or leave gaps|extra bytes after the last tensor"):
        load_weights(path, NEEDED)


# --- sources, notes and names --------------------------------------------------------------------------------------


def test_the_reports_of_filled_weights_name_the_source_of_every_tensor() -> None:
    key, other, lost, old = (WeightKey("a", name) for name in ("kernel", "bias", "wrong", "old"))
    needed = {
        key: Weight("kernel", (2, 3), "weight"),
        other: Weight("bias", (2,), "bias", init="ones"),
        lost: Weight("wrong", (4,), "wrong", init="constant:0.5"),
    }
    reports = (
        WeightReport(key, WeightStatus.BOUND, (2, 3), (2, 3), "file.npy"),
        WeightReport(lost, WeightStatus.WRONG_SHAPE, (4,), (5,), "other.npy"),
        WeightReport(old, WeightStatus.UNEXPECTED, None, (7,), "old.npy"),
    )
    tensors = {key: np.ones((2, 3), np.float32), lost: np.zeros(5, np.float32), old: np.zeros(7, np.float32)}
    filled = fill_missing(Weights(tensors, reports, "folder", "first note", "abc"), needed, 3)
    assert [(r.key, r.status, r.needed, r.found, r.source) for r in filled.reports] == [
        (key, WeightStatus.BOUND, (2, 3), (2, 3), "file.npy"),
        (other, WeightStatus.BOUND, (2,), (2,), "random (seed 3)"),
        (lost, WeightStatus.BOUND, (4,), (4,), "random (seed 3)"),
        (old, WeightStatus.UNEXPECTED, None, (7,), "old.npy"),
    ]
    assert (filled.source, filled.sha256) == ("folder", "abc")
    assert filled.note == "first note; 2 of 3 tensors random (seed 3)"
    assert set(filled.tensors) == {key, other, lost}
    assert filled.tensors[lost].tolist() == [0.5] * 4
    assert filled.tensors[other].tolist() == [1.0, 1.0]


def test_bounds_of_random_values() -> None:
    def values(init: str, shape: tuple[int, ...] = (60, 40), fan_in: int = 25) -> Array:
        return random_weights({KERNEL: Weight("kernel", shape, "weight", init, fan_in)}, 5).tensors[KERNEL]

    for init, bound in (("kaiming", 1 / 5), ("xavier", (6 / 100) ** 0.5)):
        found = values(init)
        assert bound * 0.99 < found.max() <= bound
        assert -bound <= found.min() < -bound * 0.99
    assert np.abs(values("kaiming", fan_in=0)).max() <= 1
    rows = values("normal_but:2", (4, 1000))
    assert [bool(row.any()) for row in rows] == [True, True, False, True]
    assert rows[0].std() == pytest.approx(1, abs=0.1)
    with pytest.raises(ValueError, match="unknown initialization 'magic'"):
        values("magic")


def test_random_values_depend_on_layer_tensor_and_seed() -> None:
    keys = [WeightKey("a", "kernel"), WeightKey("b", "kernel"), WeightKey("a", "other")]
    needed = {key: Weight(key.tensor, (50,), "weight", "normal") for key in keys}
    found = [random_weights(needed, seed).tensors[key] for seed in (0, -1) for key in keys]
    assert len({array.tobytes() for array in found}) == 6


def test_the_title_of_weights_is_their_file_and_their_note() -> None:
    assert Weights(source="/folder/net.safetensors", note="note").title == "net.safetensors; note"
    assert Weights(note="note").title == "note"
    assert Weights(source="/folder/net").title == "net"


@pytest.mark.parametrize(
    ("status", "complete"),
    [
        (WeightStatus.BOUND, True),
        (WeightStatus.UNEXPECTED, True),
        (WeightStatus.MISSING, False),
        (WeightStatus.WRONG_SHAPE, False),
    ],
)
def test_weights_are_complete_without_missing_and_wrong_tensors(status: WeightStatus, complete: bool) -> None:
    bound = WeightReport(KERNEL, WeightStatus.BOUND)
    assert Weights(reports=(bound, WeightReport(BIAS, status))).complete is complete


def test_the_findings_of_weights_name_layer_tensor_and_both_shapes() -> None:
    reports = (
        WeightReport(KERNEL, WeightStatus.BOUND, (1,), (1,), "a"),
        WeightReport(KERNEL, WeightStatus.MISSING, (4, 3, 2, 1), None, ""),
        WeightReport(BIAS, WeightStatus.WRONG_SHAPE, (4,), (), "b.npy"),
        WeightReport(WeightKey("old", "bias"), WeightStatus.UNEXPECTED, None, (7,), "c.npy"),
        WeightReport(WeightKey("", "step"), WeightStatus.UNEXPECTED, None, None, ""),
    )
    found = weight_diagnostics(Weights(reports=reports))
    assert [(d.code, d.layer, d.parameter, d.file, d.severity.name) for d in found] == [
        ("missing-weight", "conv 1", "kernel", None, "ERROR"),
        ("wrong-shape", "conv 1", "bias", "b.npy", "ERROR"),
        ("unexpected-weight", None, None, "c.npy", "WARNING"),
        ("unexpected-weight", None, None, None, "WARNING"),
    ]
    assert [d.message for d in found] == [
        "the weights have no 'kernel' for 'conv 1' (4 x 3 x 2 x 1)",
        "'bias' of 'conv 1' must be 4, but the file has a scalar",
        "the weights contain 'old.bias' (7), which no layer uses; it is ignored",
        "the weights contain 'step' (no shape), which no layer uses; it is ignored",
    ]


def test_every_tensor_has_its_own_file_name() -> None:
    plain = [WeightKey("conv 1", "kernel"), WeightKey("b", "bias"), WeightKey("ä", "x")]
    found = file_stems(plain)
    assert (found[plain[0]], found[plain[1]]) == ("conv_1_kernel", "b_bias")
    assert found[plain[2]].isascii()
    clashes = [("a", "b_c"), ("a_b", "c"), ("a_", "b_c"), ("a", "_b_c"), ("a__b", "c")]
    stems = file_stems(WeightKey(*key) for key in clashes)
    assert len(set(stems.values())) == len(clashes)
    assert stems[WeightKey("a", "b_c")] != "a_b_c" != stems[WeightKey("a_b", "c")]
    for key in clashes:
        assert stems[WeightKey(*key)].replace("_", "") == "".join(key).replace("_", "")


def header(path: Path, entry: object, data: bytes = b"\0" * 16) -> Path:
    text = json.dumps({"t": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@pytest.mark.parametrize("rank", [0, 1, 16, 17])
def test_ranks_of_safetensors(tmp_path: Path, rank: int) -> None:
    entry = {"dtype": "F32", "shape": [1] * rank, "data_offsets": [0, 4]}
    path = header(tmp_path / "a.safetensors", entry, b"\0" * 4)
    if rank > 16:
        with pytest.raises(DiagnosticError, match="rank"):
            read_entries(path)
    else:
        found = read_entries(path)["t"]
        assert (found.shape, found.end - found.begin) == ((1,) * rank, 4)
        assert found.begin == path.stat().st_size - 4


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2], "data_offsets": [-4, 4]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [2], "data_offsets": [12, 20]},
        {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [2]},
        {"dtype": "F33", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": 32, "shape": [2], "data_offsets": [0, 8]},
    ],
)
def test_entries_that_do_not_match_the_file_are_refused(tmp_path: Path, entry: object) -> None:
    with pytest.raises(DiagnosticError, match="'t'"):
        read_entries(header(tmp_path / "a.safetensors", entry))


def test_a_header_longer_than_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    for data in (b"", b"\2\0\0\0\0\0\0", struct.pack("<Q", 3) + b"{}"):
        path.write_bytes(data)
        with pytest.raises(DiagnosticError, match="declares a header"):
            read_entries(path)
    path.write_bytes(struct.pack("<Q", 2) + b"{}")
    assert read_entries(path) == {}


def test_a_single_number_stays_one_and_a_file_that_shrank_is_refused(tmp_path: Path) -> None:
    number = as_float32(np.float64(1e300))
    assert (number.shape, number.dtype, float(number)) == ((), np.float32, float("inf"))
    path = tmp_path / "a_kernel.npy"
    path.write_bytes(npy_bytes(np.array(3, np.float32)))
    header = read_header(path)
    assert (header.shape, read_array(path, header).shape) == ((), ())
    raw = tmp_path / "a_kernel.bin"
    np.arange(3, dtype="<f4").tofile(raw)
    assert read_raw(raw, (3, 1)).tolist() == [[0], [1], [2]]
    path.write_bytes(npy_bytes(np.arange(6, dtype=np.float32).reshape(2, 3)))
    header = read_header(path)
    path.write_bytes(path.read_bytes()[:-4])
    for read in (lambda: read_raw(raw, (4,)), lambda: read_array(path, header)):
        with pytest.raises(DiagnosticError, match="was truncated while it was read") as caught:
            read()
        assert caught.value.diagnostics[0].code == "weight-size"
