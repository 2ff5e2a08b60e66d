"""What a result was made from: the hashes can be checked with other tools, and exports can be reproduced."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import datetime
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import samples
from app.opened_network import load_weights_for, open_network
from designer.files.tables import write_table
from designer.files.weights import Weights, save_weights
from designer.graph.graph import Graph
from designer.graph.model import Layer
from designer.runtime import provenance as provenance_module
from designer.runtime.api import RunOptions
from designer.runtime.provenance import Provenance, digest_of, noise_layers, provenance, versions, written_at


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A file with the weights of the sample."""
    network = open_network(samples.path("denoiser.xml"))
    file = tmp_path / "trained.safetensors"
    save_weights(file, load_weights_for(network, samples.weights("denoiser"), None).tensors)
    return file


def test_the_hashes_are_those_of_the_files(weights: Path) -> None:
    """What `sha256sum` prints for the document and for a file of weights."""
    document = samples.path("denoiser.xml")
    network = open_network(document)
    assert digest_of(network.graph) == sha256(document)
    loaded = load_weights_for(network, weights, None)
    assert loaded.sha256 == sha256(weights)
    found = provenance(
        "denoiser.xml", network.graph, loaded, RunOptions(threads=2), noise="gaussian:25/255", noise_seed="3"
    )
    texts = found.texts()
    assert texts["document_sha256"] == sha256(document)
    assert texts["weights_sha256"] == sha256(weights)
    assert texts["weights"] == weights.name
    settings = [texts[name] for name in ("engine", "precision", "layout", "device", "threads", "noise", "noise_seed")]
    assert settings == ["onnxruntime", "fp32", "nchw", "cpu", "2", "gaussian:25/255", "3"]
    assert datetime.fromisoformat(texts["date"]).tzinfo is not None
    assert {"version.python", "version.numpy", "version.onnxruntime"} <= texts.keys()


def test_versions_of_packages_that_are_not_installed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    installed, whole = metadata.version, versions()

    def version(name: str) -> str:
        if name == "numpy":
            raise metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(metadata, "version", version)
    assert versions() == whole  # read once: in a process they stay the same
    monkeypatch.setattr(provenance_module, "_version", provenance_module._version.__wrapped__)
    assert versions() == {name: text for name, text in whole.items() if name != "numpy"}
    assert {"numpy", "onnxruntime"} <= whole.keys()
    monkeypatch.setattr(metadata, "version", lambda name: f"2.5.1rc1+{name}.of-someone")
    assert versions() == {  # whole versions: builds for other devices differ in the last part only
        name: text if name == "python" else f"2.5.1rc1+{name}.of-someone" for name, text in whole.items()
    }


def test_the_hash_of_an_inlined_network_depends_on_which_layers_share_weights() -> None:
    alone = [Layer("a", "convolution"), Layer("b", "convolution")]
    shared = [alone[0], replace(alone[1], weights_of="a")]
    assert digest_of(Graph(shared)) == digest_of(Graph(shared))
    assert digest_of(Graph(shared)) != digest_of(Graph(alone))
    three = [*alone, Layer("c", "convolution")]
    with_a, with_b = ([*three[:2], replace(three[2], weights_of=name)] for name in "ab")
    assert digest_of(Graph(with_a)) != digest_of(Graph(with_b))


def test_the_hash_of_a_folder_is_that_of_its_list(tmp_path: Path) -> None:
    """`sha256sum *.npy | sha256sum`, without files that no layer uses."""
    network = open_network(samples.path("denoiser.xml"))
    loaded = load_weights_for(network, samples.weights("denoiser"), None)
    folder = tmp_path / "weights"
    save_weights(folder, loaded.tensors)
    (folder / "notes.txt").write_text("not a tensor")
    listing = "".join(f"{sha256(file)}  {file.name}\n" for file in sorted(folder.glob("*.npy")))
    np.save(folder / "removed_kernel.npy", np.zeros(3, np.float32))
    assert load_weights_for(network, folder, None).sha256 == hashlib.sha256(listing.encode()).hexdigest()


def test_random_weights_are_told_by_their_seed() -> None:
    network = open_network(samples.path("denoiser.xml"))
    texts = provenance("d", network.graph, Weights(note="random weights (seed 4)")).texts()
    assert texts["weights"] == "random weights (seed 4)"
    assert "weights_sha256" not in texts
    assert Weights({}, (), "/a/b.pt", "3 of 4 tensors random (seed 1)").title == "b.pt; 3 of 4 tensors random (seed 1)"


def test_a_table_has_its_provenance_next_to_it(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    write_table(table, "a,b\n1,2\n", {"A": Provenance("a.xml", "0" * 64).texts()})
    assert table.read_text() == "a,b\n1,2\n"
    about = json.loads((tmp_path / "table.csv.provenance.json").read_text())
    assert (about["file"], about["sha256"]) == ("table.csv", sha256(table))
    assert about["provenance"]["A"]["document"] == "a.xml"


def test_the_clock_can_be_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert written_at() == "1970-01-02T00:00:00+00:00"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    assert written_at() > "2020"


def test_exports_say_where_they_come_from_and_can_be_reproduced(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx = pytest.importorskip("onnx")
    from exporters.onnx import export_onnx
    from exporters.pytorch import export_project

    document = samples.path("denoiser.xml")
    network = open_network(document)
    loaded = load_weights_for(network, weights, None)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    for name in ("one", "two"):
        export_onnx(network.graph, network.registry, loaded, tmp_path / f"{name}.onnx")
        export_project(network.graph, network.registry, tmp_path / name, "Net")
    assert sha256(tmp_path / "one.onnx") == sha256(tmp_path / "two.onnx")
    assert sha256(tmp_path / "one" / "project.json") == sha256(tmp_path / "two" / "project.json")
    model = onnx.load(tmp_path / "one.onnx")
    project = json.loads((tmp_path / "one" / "project.json").read_text())["provenance"]
    for found in ({p.key: p.value for p in model.metadata_props}, project):
        assert found["document_sha256"] == sha256(document)
        assert found["date"] == "1970-01-02T00:00:00+00:00"
        assert "version.python" in found
    assert {p.key: p.value for p in model.metadata_props}["weights_sha256"] == sha256(weights)


def test_a_profile_says_where_it_comes_from(weights: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from designer.profiling.measure import profile_session
    from designer.profiling.profile_files import load_profile, save_profile
    from designer.runtime.session import Session

    document = samples.path("denoiser_analyze.xml")
    network = open_network(document)
    loaded = load_weights_for(network, weights, None)
    session = Session(network.graph, network.registry, loaded, RunOptions(threads=1))
    session.set_input("input_image", np.zeros((1, 3, 32, 32), np.float32), is_image=True)
    profile = profile_session(session, 1, warmup=0)
    save_profile(tmp_path / "run.json", profile)
    save_profile(tmp_path / "run.csv", profile)
    (back,) = load_profile(tmp_path / "run.json").runs
    sidecar = json.loads((tmp_path / "run.csv.provenance.json").read_text())["provenance"]
    for found in (back.provenance, next(iter(sidecar.values()))):
        assert found["document_sha256"] == sha256(document)
        assert found["weights_sha256"] == sha256(weights)
        assert found["engine"] == "onnxruntime"


def test_noise_layers_are_named_with_their_seeds() -> None:
    network = open_network(samples.path("denoiser_analyze.xml"))
    noise = network.graph["noise_0"]
    assert noise_layers(network.inference)["noise"].startswith("noise_0: ")
    assert noise_layers(network.inference)["noise_seed"] == f"noise_0: {noise.params['seed']}"
    assert set(noise_layers(open_network(samples.path("denoiser.xml")).inference).values()) == {""}
