"""Where weights come from: names in files and state dicts, folders, checkpoints, and all that is reported about each tensor."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded import check_recorded

from designer.files import limits, weight_versions
from designer.files.array_files import npy_bytes
from designer.files.safetensors_file import write_safetensors
from designer.files.weight_files import file_stems
from designer.files.weight_random import random_tensor
from designer.files.weight_report import shape_text
from designer.files.weights import (
    WeightKey,
    WeightReport,
    Weights,
    WeightStatus,
    fill_missing,
    load_weights,
    required_weights,
    save_weights,
    torch_keys,
    weight_diagnostics,
)
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import ActivationSpec, Layer, Source
from designer.graph.template import Template
from designer.operators.api import Weight
from designer.operators.registry import default_registry

BAD = Path(__file__).parents[1] / "data" / "bad" / "weights"


TORCH_NAMES = {"kernel": "weight", "bias": "bias", "activation_slope": "weight"}


def needs(*names: str, shape: tuple[int, ...] = (2,)) -> dict[WeightKey, Weight]:
    """Weights of tensors such as `layer/kernel`."""
    keys = [WeightKey(*name.rsplit("/", 1)) for name in names]
    return {key: Weight(key.tensor, shape, TORCH_NAMES.get(key.tensor, key.tensor)) for key in keys}


def told(found: Iterable[Diagnostic], folder: Path | None = None) -> Iterator[str]:
    for each in found:
        named = ("layer", "parameter", "file")
        where = ", ".join(f"{name} {getattr(each, name)}" for name in named if getattr(each, name) is not None)
        text = f"{each.severity.value} {each.code} ({where}): {each.message} - {each.remedy}"
        yield text.replace(str(folder), "...").replace(str(BAD), "bad") if folder else text


def reports(weights: Weights, folder: Path | None = None) -> list[str]:
    """Each report as one line."""
    return [
        f"{r.key.layer}/{r.key.tensor} {r.status.value} {r.needed} {r.found} {r.source}".replace(str(folder), "...")
        for r in weights.reports
    ]


NAMES = [
    ("conv 1/kernel", "conv 1/bias", "conv 1/activation_slope"),
    ("a/kernel", "a_weight/kernel", "a/bias", "b/kernel", "b_activation/kernel", "b/activation_slope"),
    ("use.conv/kernel", "use.conv/activation_slope", "a b.c d/bias"),
    ("use.a b/kernel", "use.a_b/kernel", "use/kernel", "other.a b/kernel"),
    ("use.inner.conv/kernel", "use.inner.conv/activation_slope"),
    ("a.b.c/kernel", "a_b.c/kernel", "a.b_c/kernel"),
    ("a.b.c.d/bias",),
    ("a.b.c.d/kernel", "a.b_c.d/kernel", "a.b.c_d/activation_slope", "a_b.c.d/activation_slope"),
    ("forward.training/kernel", "1.2/kernel", "ä.ö/kernel"),
    (".".join("abcdefgh") + "/bias",),
    (".".join("abcdefghi") + "/bias",),
    (".".join(["x"] * 64) + "/bias", ".".join(["y"] * 65) + "/bias"),
]


def test_keys_of_state_dicts_are_as_recorded() -> None:
    found = []
    for names in NAMES:
        keys = torch_keys(needs(*names))
        if names[0].count(".") == 7:  # 2^7 splits
            assert {key.replace(".", "_") for key in keys} == {"a_b_c_d_e_f_g_h_bias"}
            assert len(keys) == 256
            continue
        found += [", ".join(names), *(f"  {text}: {key.layer}/{key.tensor}" for text, key in keys.items())]
    check_recorded("documents/state_dict_keys.txt", "\n".join(found) + "\n")


@pytest.mark.parametrize(
    ("keys", "stems"),
    [
        (["a/kernel", "b 1/bias", "1/x", "ä/x"], ["a_kernel", "b_1_bias", "1_x", "layer__x"]),
        (["a/b_c", "a_b/c"], ["a__b_c", "a_b__c"]),
        (["a/b_c", "a_b/c", "a_/b_c", "a/_b_c"], ["a____b_c", "a_b__c", "a_____b_c", "a___b_c"]),
        (["a b/x", "a_b/x", "a-b/x"], ["a_b_2_x", "a_b_x", "a_b_3_x"]),
        (["for/x", "a.b/x"], ["for_x", "a_b_x"]),
    ],
)  # fmt: skip
def test_names_of_files_are_as_expected(keys: list[str], stems: list[str]) -> None:
    wanted = [WeightKey(*key.split("/")) for key in keys]
    found = file_stems(reversed(wanted))
    assert [found[key] for key in wanted] == stems


@pytest.mark.parametrize(
    ("keys", "files"),
    [
        (["a/b_c", "a_b/c"], {"a_b_c": "a_b/c", "a__b_c": "a/b_c", "a_b__c": "a_b/c"}),
        (["a_b/c_d", "a/b_c_d"], {"a_b_c_d": None, "a_b__c_d": "a_b/c_d", "a__b_c_d": "a/b_c_d"}),
        (["a b/x", "a_b/x"], {"a b_x": "a b/x", "a_b_x": "a_b/x", "a_b_2_x": "a b/x"}),
        (["a b/x", "a_b_2/x"], {"a b_x": "a b/x", "a_b_x": "a b/x", "a_b_2_x": "a_b_2/x"}),
        (["a b/x", "a_b/x", "a_b_2/x"], {"a b_x": "a b/x", "a_b_2_x": "a_b_2/x", "a_b_3_x": "a b/x"}),
        (["a/b_c", "a_b/c", "a_/b_c"], {"a_b_c": "a_b/c", "a__b_c": "a_/b_c"}),
    ],
)
def test_a_file_belongs_to_the_tensor_of_its_name_unless_two_have_it(
    tmp_path: Path, keys: list[str], files: dict[str, str | None]
) -> None:
    """Each file alone in its folder. What two have in common is read as a tensor's name without `_`."""
    for number, stem in enumerate([*files, *files]):
        key, needed = files[stem], needs(*(keys if number < len(files) else reversed(keys)))
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / f"{stem}.npy").write_bytes(npy_bytes(np.ones(2, np.float32)))
        found = load_weights(folder, needed)
        assert [f"{each.layer}/{each.tensor}" for each in found.tensors] == ([key] if key else []), stem
        unexpected = [report for report in found.reports if report.status is WeightStatus.UNEXPECTED]
        assert len(unexpected) == (0 if key else 1)


def test_a_key_is_a_layer_and_a_tensor_before_it_is_a_name_of_torch(tmp_path: Path) -> None:
    """First the names of the document, then the given keys, then the usual ones."""
    needed = needs("a/weight", "b/kernel", "a/kernel", "net.c/bias")
    path = tmp_path / "w.safetensors"
    values = {"a.weight": 1, "b.weight": 2, "x.y": 3, "net.c.bias": 4, "other.part.z": 5, "bare": 6}
    write_safetensors(path, {name: np.full(2, value, np.float32) for name, value in values.items()})
    keys = {"x.y": WeightKey("a", "kernel"), "a.weight": WeightKey("a", "kernel"), "b.weight": WeightKey("b", "kernel")}
    weights = load_weights(path, needed, keys)
    assert {f"{k.layer}/{k.tensor}": v.tolist() for k, v in weights.tensors.items()} == {
        "a/weight": [1, 1],
        "b/kernel": [2, 2],
        "a/kernel": [3, 3],
        "net.c/bias": [4, 4],
    }
    assert reports(weights, tmp_path)[-2:] == [
        "/bare unexpected None (2,) .../w.safetensors",
        "other.part/z unexpected None (2,) .../w.safetensors",
    ]
    moved = load_weights(path, needed, {"b.weight": WeightKey("a", "kernel")})
    assert moved.tensors[WeightKey("a", "kernel")].tolist() == [2, 2]
    assert WeightKey("b", "kernel") not in moved.tensors
    assert reports(moved, tmp_path)[1] == f"b/kernel missing (2,) None {path}".replace(str(tmp_path), "...")


def test_of_two_keys_for_a_tensor_the_first_is_used(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    write_safetensors(path, {"a.kernel": np.ones(2, np.float32), "a.weight": np.zeros(2, np.float32)})
    weights = load_weights(path, needs("a/kernel"))
    assert weights.tensors[WeightKey("a", "kernel")].tolist() == [1, 1]
    assert reports(weights) == [f"a/kernel bound (2,) (2,) {path}"]


def network() -> Graph:
    inner = Template(
        "block",
        (
            Layer("in", "template_input"),
            Layer("conv", "convolution", inputs=(Source("in"),), params={"features": "3"}),
            Layer("out", "template_output", inputs=(Source("conv"),)),
        ),
    )
    prelu = ActivationSpec("prelu")
    return Graph(
        [
            Layer("in", "input", params={"dims": "8x8x3"}),
            Layer("target", "input", params={"dims": "8x8x3"}),
            Layer("out", "output", inputs=(Source("last"),)),
            Layer("use", "template", inputs=(Source("in"),), params={"template": "block"}),
            Layer("again", "template", inputs=(Source("use"),), params={"template": "block"}),
            Layer("pool", "convolution", inputs=(Source("again"),), params={"features": "5"}, activation=prelu),
            Layer("last", "convolution", inputs=(Source("pool"),), params={"features": "3"}),
            Layer("only_training", "convolution", inputs=(Source("last"),), params={"features": "3"}),
            Layer("loss", "l1_loss", inputs=(Source("only_training"), Source("target"))),
            Layer("broken", "convolution", inputs=(Source("nobody"),)),
        ],
        templates=(inner,),
    )


def test_weights_are_needed_in_the_order_of_the_layers_without_the_training_branch() -> None:
    needed = required_weights(Inference(network(), default_registry()))
    assert [f"{k.layer}/{k.tensor} {w.shape} {w.name} {w.torch}" for k, w in needed.items()] == [
        "use.conv/kernel (3, 3, 3, 3) kernel weight",
        "use.conv/bias (3,) bias bias",
        "again.conv/kernel (3, 3, 3, 3) kernel weight",
        "again.conv/bias (3,) bias bias",
        "pool/kernel (5, 3, 3, 3) kernel weight",
        "pool/bias (5,) bias bias",
        "pool/activation_slope (5,) activation_slope weight",
        "last/kernel (3, 5, 3, 3) kernel weight",
        "last/bias (3,) bias bias",
    ]


def test_shared_weights_are_counted_once_against_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = {"template": "block", "shared_weights": "true"}
    graph = network()
    layers = [
        each if each.type != "template" else Layer(each.name, each.type, (0, 0), each.inputs, shared) for each in graph
    ]
    graph = Graph(layers, templates=graph.templates.values())
    needed = required_weights(Inference(graph, default_registry()))
    names = list(dict.fromkeys(key.layer for key in needed))
    assert names == ["block.conv", "pool", "last"]
    total = sum(4 * int(np.prod(weight.shape)) for weight in needed.values())
    assert total == 4 * (81 + 3 + 135 + 5 + 5 + 135 + 3)
    monkeypatch.setattr(limits, "MAX_WEIGHT_BYTES", total)
    assert required_weights(Inference(graph, default_registry())) == needed
    monkeypatch.setattr(limits, "MAX_WEIGHT_BYTES", total - 1)
    with pytest.raises(DiagnosticError) as caught:
        required_weights(Inference(graph, default_registry()))
    assert list(told(caught.value.diagnostics)) == [
        "error too-large (layer last): with the tensor 'bias' (3) the weights would take more than 0 GiB - check the number "
        "of features and the size of the layer's input"
    ]


def test_the_limit_of_all_weights_is_named_in_gibibytes() -> None:
    graph = Graph(
        [
            Layer("in", "input", params={"dims": "8x8x3"}),
            Layer("a", "convolution", inputs=(Source("in"),), params={"features": "50000"}),
            Layer("b", "convolution", inputs=(Source("a"),), params={"features": "50000"}),
        ]
    )
    with pytest.raises(DiagnosticError, match=r"the weights would take more than 64 GiB"):
        required_weights(Inference(graph, default_registry()))


def npy(path: Path, *values: float) -> bytes:
    data = npy_bytes(np.array(values, np.float32))
    path.write_bytes(data)
    return data


def sha_of_listing(folder: Path, names: Iterable[str]) -> str:
    """What `sha256sum *.npy | sha256sum` prints."""
    listing = "".join(f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in sorted(names))
    return hashlib.sha256(listing.encode()).hexdigest()


def test_every_file_of_a_folder_is_bound_left_or_reported(tmp_path: Path) -> None:
    npy(tmp_path / "z_kernel.npy", 1, 2)
    (tmp_path / "z_kernel.bin").write_bytes(np.array([3, 4], "<f4").tobytes())
    (tmp_path / "b 1_bias.bin").write_bytes(np.array([5, 6], "<f4").tobytes())
    npy(tmp_path / "b_1_bias.npy", 7, 8)
    npy(tmp_path / "old layer_kernel_2.npy", 9)
    npy(tmp_path / "short_kernel.npy", 1)
    npy(tmp_path / "nothing.npy", 1)
    npy(tmp_path / "upper_kernel.NPY", 1, 2)
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "folder_kernel.npy").mkdir()
    needed = needs("z/kernel", "b 1/bias", "short/kernel", "folder/kernel", "upper/kernel")
    weights = load_weights(tmp_path, needed)
    assert {f"{k.layer}/{k.tensor}": v.tolist() for k, v in weights.tensors.items()} == {
        "z/kernel": [1, 2],
        "b 1/bias": [5, 6],
    }
    assert reports(weights, tmp_path) == [
        "z/kernel bound (2,) (2,) .../z_kernel.npy",
        "b 1/bias bound (2,) (2,) .../b 1_bias.bin",
        "short/kernel wrong shape (2,) (1,) .../short_kernel.npy",
        "folder/kernel missing (2,) None ...",
        "upper/kernel missing (2,) None ...",
        "/nothing unexpected None (1,) .../nothing.npy",
        "old layer_kernel/2 unexpected None (1,) .../old layer_kernel_2.npy",
    ]
    assert (weights.source, weights.note, weights.complete) == (str(tmp_path), "", False)
    assert weights.sha256 == sha_of_listing(tmp_path, ["z_kernel.npy", "b 1_bias.bin"])


def test_names_that_two_tensors_share_are_not_guessed(tmp_path: Path) -> None:
    needed = needs("a/b_c", "a_b/c")
    npy(tmp_path / "a_b_c.npy", 1, 2)
    weights = load_weights(tmp_path, needed)
    assert [r.status for r in weights.reports][:1] == [WeightStatus.MISSING]
    save_weights(
        tmp_path, {WeightKey("a", "b_c"): np.ones(2, np.float32), WeightKey("a_b", "c"): np.zeros(2, np.float32)}
    )
    assert {k.layer: v.tolist() for k, v in load_weights(tmp_path, needed).tensors.items()} == {
        "a": [1, 1],
        "a_b": [0, 0],
    }


def test_raw_numbers_get_the_shape_of_the_weight_and_arrays_must_have_it(tmp_path: Path) -> None:
    needed = needs("a/kernel", shape=(2, 3))
    (tmp_path / "a_kernel.bin").write_bytes(np.arange(6, dtype="<f4").tobytes())
    assert load_weights(tmp_path, needed).tensors[WeightKey("a", "kernel")].tolist() == [[0, 1, 2], [3, 4, 5]]
    npy(tmp_path / "a_kernel.npy", *range(6))
    assert reports(load_weights(tmp_path, needed), tmp_path) == ["a/kernel wrong shape (2, 3) (6,) .../a_kernel.npy"]
    (tmp_path / "a_kernel.npy").unlink()
    (tmp_path / "a_kernel.bin").write_bytes(bytes(20))
    assert reports(load_weights(tmp_path, needed), tmp_path) == ["a/kernel wrong shape (2, 3) (5,) .../a_kernel.bin"]


def test_all_damaged_files_that_a_network_needs_are_reported_and_others_are_not(tmp_path: Path) -> None:
    for name in ("a_kernel", "b_kernel", "other_kernel"):
        (tmp_path / f"{name}.bin").write_bytes(bytes(7))
    with pytest.raises(DiagnosticError) as caught:
        load_weights(tmp_path, needs("a/kernel", "b/kernel"))
    assert list(told(caught.value.diagnostics, tmp_path)) == [
        f"error weight-size (file .../{name}.bin): .../{name}.bin has 7 bytes, which is not a multiple of 4 (float32) - "
        "write it again"
        for name in ("a_kernel", "b_kernel")
    ]


def test_all_tensors_of_a_type_that_weights_cannot_have_are_reported(tmp_path: Path) -> None:
    head = {
        f"{name}.kernel": {"dtype": "I64", "shape": [2], "data_offsets": [16 * n, 16 * n + 16]}
        for n, name in enumerate("abc")
    }
    text = json.dumps(head).encode()
    path = tmp_path / "w.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(48))
    with pytest.raises(DiagnosticError) as caught:
        load_weights(path, needs("a/kernel", "b/kernel"))
    assert [found.message for found in caught.value.diagnostics] == [
        f"'{name}.kernel' in w.safetensors has the type I64; weights are read as F32, F16, F64, BF16" for name in "ab"
    ]


def test_a_folder_of_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").touch()
    monkeypatch.setattr(limits, "MAX_WEIGHT_FILES", 3)
    assert load_weights(tmp_path, {}).reports == ()
    (tmp_path / "4.txt").touch()
    with pytest.raises(DiagnosticError) as caught:
        load_weights(tmp_path, {})
    assert list(told(caught.value.diagnostics, tmp_path)) == [
        "error cannot-read (file ...): ... cannot be read: it contains more than 3 files - check your permissions"
    ]


def test_a_file_or_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DiagnosticError) as caught:
        load_weights(tmp_path / "none.pt", {})
    assert list(told(caught.value.diagnostics, tmp_path)) == [
        "error cannot-read (file .../none.pt): .../none.pt does not exist - choose the folder or file of the weights"
    ]

    def refused(*_: object) -> Any:
        raise PermissionError(13, "Permission denied")

    npy(tmp_path / "a_kernel.npy", 1, 2)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refused)
        with pytest.raises(DiagnosticError) as caught:
            load_weights(tmp_path, {})
    assert list(told(caught.value.diagnostics, tmp_path)) == [
        "error cannot-read (file ...): ... cannot be read: Permission denied - check your permissions"
    ]
    with monkeypatch.context() as patch:
        patch.setattr(hashlib, "file_digest", refused)
        with pytest.raises(DiagnosticError) as caught:
            load_weights(tmp_path, needs("a/kernel"))
    assert list(told(caught.value.diagnostics, tmp_path)) == [
        "error cannot-read (file .../a_kernel.npy): .../a_kernel.npy cannot be read: Permission denied - check your permissions"
    ]


def test_the_hash_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    save_weights(path, {WeightKey("a", "kernel"): np.ones(2, np.float32)})
    weights = load_weights(path, needs("a/kernel"))
    assert weights.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (weights.source, weights.note, weights.title) == (str(path), "", "w.safetensors")


def test_weights_are_saved_as_files_of_a_folder_or_as_one_file(tmp_path: Path) -> None:
    tensors = {
        WeightKey("b 1", "kernel"): np.ones((2, 1), np.float32),
        WeightKey("a", "bias"): np.zeros((), np.float32),
    }
    save_weights(tmp_path / "new" / "folder", tensors)
    found = {path.name: np.load(path).tolist() for path in (tmp_path / "new" / "folder").iterdir()}
    assert found == {"b_1_kernel.npy": [[1], [1]], "a_bias.npy": 0}
    (tmp_path / "is.safetensors").mkdir()
    save_weights(tmp_path / "is.safetensors", tensors)
    assert len(list((tmp_path / "is.safetensors").iterdir())) == 2
    save_weights(tmp_path / "w.safetensors", tensors)
    data = (tmp_path / "w.safetensors").read_bytes()
    head = b'{"a.bias":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"b 1.kernel":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]}}'
    size = -(-len(head) // 8) * 8
    assert data == size.to_bytes(8, "little") + head.ljust(size) + np.array([0, 1, 1], "<f4").tobytes()


def test_bad_files_are_refused_as_recorded(tmp_path: Path) -> None:
    """All that is reported about each; the reasons that torch gives are left out."""
    found = []
    needed = {
        WeightKey("conv 1", "kernel"): Weight("kernel", (4, 3, 3, 3), "weight"),
        WeightKey("conv 1", "bias"): Weight("bias", (4,), "bias"),
    }
    for path in sorted(BAD.iterdir()):
        source = path
        if path.suffix in (".npy", ".bin"):
            source = tmp_path / path.name.replace(".", "_")
            source.mkdir()
            shutil.copyfile(path, source / f"conv 1_kernel{path.suffix}")
        try:
            weights = load_weights(source, needed)
            lines = [*reports(weights, tmp_path), *told(weight_diagnostics(weights), tmp_path)]
        except DiagnosticError as error:
            lines = list(told(error.diagnostics, tmp_path))
        kept = "is not a readable PyTorch file: " if path.suffix in (".pt", ".pth") else "is not a readable .npy file: "
        own = ("its entries are compressed", "it is not a state dict")
        for line in lines:
            text = line.replace(str(BAD), "bad")
            before, cut, after = text.partition(kept)
            if cut and not after.startswith(own):
                text = f"{before}{cut}... - {after.rpartition(' - ')[2]}"
            found.append(f"{path.name}: {text}" if line is lines[0] else f"  {text}")
    check_recorded("documents/bad_weights.txt", "\n".join(found) + "\n")


def test_random_values_are_those_of_every_other_version() -> None:
    """Results with random weights can be compared only if the values never change."""

    def values(init: str, key: tuple[str, str] = ("conv 1", "kernel"), seed: int = 7) -> list[float]:
        found = random_tensor(WeightKey(*key), Weight("kernel", (2, 3), "weight", init, fan_in=4), seed)
        assert (found.dtype, found.shape) == (np.float32, (2, 3))
        return [round(float(value), 5) for value in found.reshape(-1)]

    lines = [
        f"{init}: {values(init)}" for init in ("kaiming", "xavier", "normal", "normal_but:1", "ones", "constant:0.25")
    ]
    lines += [f"seed {seed}: {values('normal', seed=seed)}" for seed in (0, 2**31 - 1, -1, 2**40)]
    lines += [f"{key}: {values('normal', key)}" for key in (("a", "b.c"), ("a.b", "c"), ("ab", "c"), ("a", "bc"))]
    check_recorded("documents/random_weights.txt", "\n".join(lines) + "\n")


def test_filled_weights_keep_what_fits_with_its_source_note_and_hash() -> None:
    needed = needs("a/kernel", "b/bias", "c/bias")
    one = np.full(2, 7, np.float32)
    before = (
        WeightReport(WeightKey("a", "kernel"), WeightStatus.BOUND, (2,), (2,), "file"),
        WeightReport(WeightKey("b", "bias"), WeightStatus.WRONG_SHAPE, (2,), (3,), "file"),
    )
    tensors = {WeightKey("a", "kernel"): one, WeightKey("b", "bias"): np.zeros(3, np.float32)}
    weights = Weights(tensors, before, "net.pt", "note", "abc")
    assert not weights.complete
    filled = fill_missing(weights, needed, 2**40)
    assert (filled.source, filled.sha256, filled.complete) == ("net.pt", "abc", True)
    assert filled.note == f"note; 2 of 3 tensors random (seed {2**40})"
    assert filled.title == f"net.pt; {filled.note}"
    assert reports(filled) == [
        "a/kernel bound (2,) (2,) file",
        f"b/bias bound (2,) (2,) random (seed {2**40})",
        f"c/bias bound (2,) (2,) random (seed {2**40})",
    ]
    assert {key.layer: tensor.shape for key, tensor in filled.tensors.items()} == {"a": (2,), "b": (2,), "c": (2,)}
    assert filled.tensors[WeightKey("a", "kernel")] is one
    assert fill_missing(filled, needed, 1) is filled
    assert fill_missing(Weights(), needed, 1).note == "random weights (seed 1)"
    assert not any(
        Weights(reports=(WeightReport(WeightKey("a", "b"), status),)).complete
        for status in (WeightStatus.MISSING, WeightStatus.WRONG_SHAPE)
    )


def test_what_is_reported_about_weights_is_as_expected(tmp_path: Path) -> None:
    assert [shape_text(shape) for shape in (None, (), (3,), (2, 3))] == ["no shape", "a scalar", "3", "2 x 3"]
    save_weights(
        tmp_path / "w.safetensors",
        {WeightKey("wrong", "kernel"): np.ones((3, 1), np.float32), WeightKey("old", "bias"): np.ones((), np.float32)},
    )
    weights = load_weights(tmp_path / "w.safetensors", needs("wrong/kernel", "lost/bias", "lost/activation_slope"))
    assert list(told(weight_diagnostics(weights), tmp_path)) == [
        "error wrong-shape (layer wrong, parameter kernel, file .../w.safetensors): 'kernel' of 'wrong' must be 2, but the file "
        "has 3 x 1 - choose weights that were trained with this network, or restore the layer's parameters",
        "error missing-weight (layer lost, parameter bias, file .../w.safetensors): the weights have no 'bias' for 'lost' (2) - "
        "choose weights of this network, or use random values for missing weights",
        "error missing-weight (layer lost, parameter activation_slope, file .../w.safetensors): the weights have no "
        "'activation_slope' for 'lost' (2) - choose weights of this network, or use random values for missing weights",
        "warning unexpected-weight (file .../w.safetensors): the weights contain 'old.bias' (a scalar), which no layer uses; it "
        "is ignored - ignore this if a layer was removed on purpose",
    ]


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = weight_versions.weight_versions()
    folder.mkdir(parents=True)
    return folder


def test_versions_have_names_that_say_what_they_are(versions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    monkeypatch.setattr(weight_versions, "uuid4", lambda: SimpleNamespace(hex="0123456789abcdef"))
    assert (
        weight_versions.version_path(versions, Path("/x/net 2.v1.pt"))
        == versions / "net 2.v1 edited 01234567.safetensors"
    )
    again = versions / "net edited ffffffff.safetensors"
    assert weight_versions.version_path(versions, again) == versions / "net edited 01234567.safetensors"
    made = weight_versions.import_path("a.b-c_d/é?" + "x" * 60)
    assert made == versions / f"{('a.b-c_d_é_' + 'x' * 60)[:60]} imported 01234567.safetensors"
    for path, is_one in (
        (made, True),
        (again, True),
        (versions / "deeper" / "net edited 1.safetensors", False),
        (versions, False),
        (Path("net edited 1.safetensors"), False),
    ):
        assert weight_versions.is_version(path) is is_one


def test_a_version_is_copied_where_it_cannot_be_linked(
    versions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = versions / "net edited 1.safetensors"
    version.write_bytes(b"weights")
    linked = weight_versions.keep_next_to(tmp_path / "net.v2.xml", version)
    assert (linked, linked.samefile(version)) == (tmp_path / "net.v2.safetensors", True)
    (tmp_path / "net.safetensors").symlink_to("nowhere")

    def other_disk(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", other_disk)
    copied = weight_versions.keep_next_to(tmp_path / "net.xml", version)
    assert copied == tmp_path / "net-2.safetensors"
    assert copied.read_bytes() == b"weights"
    assert not copied.samefile(version)

    def full(source: Path, target: Path) -> None:
        target.write_bytes(b"part")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(DiagnosticError) as caught:
        weight_versions.keep_next_to(tmp_path / "net.xml", version)
    assert list(told(caught.value.diagnostics, tmp_path)) == [
        "error cannot-save (file .../net-3.safetensors): the weights cannot be written to .../net-3.safetensors: No space left on "
        "device - free some space, or choose another folder"
    ]
    assert not (tmp_path / "net-3.safetensors").exists()
    assert version.read_bytes() == b"weights"
