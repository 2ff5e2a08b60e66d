"""Every kind of file that is written says which document and weights it was made from, how, when, and with which versions."""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

import samples
from app.cli import main as cli
from app.cli.compare_request import CompareArguments, Compared, compare
from app.opened_network import load_weights_for, open_network
from app.reports.analysis_report import Seen, write_analysis
from app.reports.comparison_page import COMPARISONS
from app.reports.page import PAGES
from app.reports.votes import LEFT, VOTES, Vote, VoteTrial
from designer.files.document import DOCUMENTS
from designer.files.formats import FormatTable
from designer.files.tables import CSV, JSON
from designer.files.weight_files import WEIGHT_ARRAYS, WEIGHTS
from designer.files.weights import save_weights
from designer.importers.formats import NETWORKS
from designer.importers.report import REPORTS
from designer.profiling.profile_files import PROFILES
from designer.runtime.api import RunOptions
from designer.runtime.images import ARRAYS, IMAGES, TENSORS, write_image
from designer.runtime.provenance import Provenance, provenance, texts_of
from designer.runtime.sources import INPUTS
from designer.runtime.video_formats import VIDEOS
from exporters.onnx import ONNX_MODELS

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
DOCUMENT = samples.path("denoiser.xml")
RUN = {"engine": "onnxruntime", "precision": "fp32", "layout": "nchw", "device": "cpu", "threads": "1"}
NOISE = {"noise": "gaussian:25/255", "noise_seed": "7"}

WALKED = [PAGES, COMPARISONS, VOTES, PROFILES, CSV, JSON, ONNX_MODELS]
PLAIN = {  # formats of other programs, whose readers expect nothing but the content
    "networks": DOCUMENTS,
    "networks of any format": NETWORKS,
    "reports of imports": REPORTS,  # about a file that is not a document yet
    "weights": WEIGHTS,
    "weight arrays": WEIGHT_ARRAYS,
    "images": IMAGES,  # with a comment: test_images
    "tensors": TENSORS,
    "both": ARRAYS,
    "videos": VIDEOS,
    "what can be read": INPUTS,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with weights, and an image."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("provenance")
    network = open_network(DOCUMENT)
    trained = load_weights_for(network, samples.weights("denoiser"), None)
    save_weights(folder / "trained.safetensors", trained.tensors)
    Image.new("RGB", (32, 32), (90, 120, 60)).save(folder / "image.png")
    return folder


@pytest.fixture(scope="module")
def compared(folder: Path) -> Compared:
    weights = [folder / "trained.safetensors"]
    request = CompareArguments([DOCUMENT, DOCUMENT], folder / "image.png", noises=["gaussian:25/255"], seed=7, weights=weights,
                               options=RunOptions(threads=1))  # fmt: skip
    return compare(request, lambda text: None)


def check(found: Mapping[str, str], folder: Path, expected: Mapping[str, str], *, weights: bool = True) -> None:
    """`found` has the document and the weights with their hashes, what is `expected`, a date and versions."""
    assert Path(found["document"]).stem == "denoiser"
    assert found["document_sha256"] == sha256(DOCUMENT)
    if weights:
        assert found["weights"].startswith("trained.safetensors")
        assert found["weights_sha256"] == sha256(folder / "trained.safetensors")
    assert {key: found.get(key) for key in expected} == expected
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", found["date"])
    assert {"version.python", "version.numpy", "version.onnxruntime"} <= found.keys()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def written(path: Path) -> list[dict[str, str]]:
    """The provenance of every network in a file, wherever its format has room for it."""
    match path.suffix:
        case ".json":
            text = json.loads(path.read_text())
            if "runs" in text:
                return [run["provenance"] for run in text["runs"]]
            found = text["provenance"]
            return [found] if "document" in found else [*found.values()]
        case ".csv":
            about = json.loads(path.with_name(f"{path.name}.provenance.json").read_text())
            assert (about["file"], about["sha256"]) == (path.name, sha256(path))
            return [*about["provenance"].values()]
        case ".png" | ".jpg" | ".jpeg":
            from PIL import Image

            with Image.open(path) as image:
                return [json.loads(image.info["Comment" if path.suffix == ".png" else "comment"])["provenance"]]
        case ".onnx":
            import onnx

            return [{entry.key: entry.value for entry in onnx.load(path).metadata_props}]
    return []


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr("sys.argv", ["layerwright", *map(str, arguments)])
    cli.app(standalone_mode=False)


@pytest.mark.parametrize("suffix", COMPARISONS.write_suffixes)
def test_comparisons(folder: Path, compared: Compared, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"compared{suffix}"
    COMPARISONS.writer(path)(path, "title", compared.columns, compared.rows, compared.origin)
    if suffix == ".html":
        check_page(path, folder, RUN | NOISE)
        return
    assert len(written(path)) == 2
    for found in written(path):
        check(found, folder, RUN | NOISE)


@pytest.mark.parametrize("suffix", VOTES.write_suffixes)
def test_votes(folder: Path, compared: Compared, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"votes{suffix}"
    names = dict(zip("AB", compared.origin, strict=True))
    VOTES.writer(path)(path, [Vote(VoteTrial(0, "A", "B"), LEFT, 1.0)], ["image.png"], names, 1, compared.origin)
    assert len(written(path)) == 2
    for found in written(path):
        check(found, folder, RUN | NOISE)


def test_the_commands_compare_profile_and_export(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = ("--weights", folder / "trained.safetensors")
    run(
        monkeypatch, "compare", DOCUMENT, DOCUMENT, "--images", folder / "image.png", "--noise", "gaussian:25/255", "--seed", "7",
        *weights, "--threads", "1", "--json", tmp_path / "compared.json", "--report", tmp_path / "compared.html",
    )  # fmt: skip
    for suffix in PROFILES.write_suffixes:
        run(
            monkeypatch,
            "profile",
            DOCUMENT,
            *weights,
            "--threads",
            "1",
            "--iterations",
            "1",
            "--json",
            tmp_path / f"profile{suffix}",
            "--html",
            tmp_path / "profile.html",
        )
    check_page(tmp_path / "profile.html", folder, RUN)
    run(monkeypatch, "export", "onnx", DOCUMENT, *weights, "--output", tmp_path / "model.onnx")
    run(monkeypatch, "export", "pytorch", DOCUMENT, "--output", tmp_path / "project", "--name", "Net")
    for found in written(tmp_path / "compared.json"):
        check(found, folder, RUN | NOISE)
    check_page(tmp_path / "compared.html", folder, RUN | NOISE)
    for suffix in PROFILES.write_suffixes:
        for found in written(tmp_path / f"profile{suffix}"):
            check(found, folder, RUN)
    (found,) = written(tmp_path / "model.onnx")
    check(found, folder, {})
    check(json.loads((tmp_path / "project" / "project.json").read_text())["provenance"], folder, {}, weights=False)


@pytest.mark.parametrize("suffix", IMAGES.write_suffixes)
def test_images(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    weights = ("--weights", folder / "trained.safetensors", "--threads", "1")
    image, captured = tmp_path / f"image{suffix}", tmp_path / f"captured{suffix}"
    run(
        monkeypatch, "run", DOCUMENT, *weights, "--input", f"input_image={folder / 'image.png'}",
        "--output", f"output_image={image}", "--capture", f"conv_out_0={captured}",
    )  # fmt: skip
    for path in (image, captured):
        (found,) = written(path)
        check(found, folder, RUN)


def test_frames_of_a_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = ("--weights", folder / "trained.safetensors", "--threads", "1")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "image.png").write_bytes((folder / "image.png").read_bytes())
    run(
        monkeypatch, "run", DOCUMENT, *weights, "--input", f"input_image={tmp_path / 'images'}",
        "--output", f"output_image={tmp_path / 'results'}",
    )  # fmt: skip
    (found,) = written(tmp_path / "results" / "image.png")
    assert found["weights_sha256"] == sha256(folder / "trained.safetensors")


def test_an_image_with_sixteen_bits_has_its_comment(tmp_path: Path) -> None:
    write_image(tmp_path / "deep.png", np.zeros((1, 3, 2, 2)), bits=16, comment=Provenance("a.xml", "0" * 64).comment())
    (found,) = written(tmp_path / "deep.png")
    assert found["document"] == "a.xml"


def test_reports_and_tables_of_an_analysis(folder: Path, tmp_path: Path) -> None:
    network = open_network(DOCUMENT)
    loaded = load_weights_for(network, folder / "trained.safetensors", None)
    origin = provenance(
        "denoiser.xml", network.graph, loaded, RunOptions(threads=1), noise="gaussian:25/255", noise_seed="7"
    )
    write_analysis(tmp_path / "report.html", Seen(origin, inspected=("conv", np.zeros((1, 2, 4, 4), np.float32))))
    check_page(tmp_path / "report.html", folder, RUN | NOISE)
    CSV.writer("x.csv")(tmp_path / "statistics.csv", "channel,mean\n0,1\n", texts_of({"conv": origin}))
    (found,) = written(tmp_path / "statistics.csv")
    check(found, folder, RUN | NOISE)


def check_page(path: Path, folder: Path, expected: Mapping[str, str]) -> None:
    """Pages are for readers: the values are in a table."""
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", path.read_text())
    for text in (sha256(DOCUMENT), sha256(folder / "trained.safetensors"), *expected.values()):
        assert text in cells, text
    assert any(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", cell) for cell in cells)
    assert importlib.metadata.version("numpy") in path.read_text()


def test_no_kind_of_file_is_forgotten() -> None:
    known = [*WALKED, *PLAIN.values()]
    missing = {name for name, table in tables() if table.writable and not any(table is other for other in known)}
    assert not missing


def tables() -> Iterator[tuple[str, FormatTable[object, object]]]:
    """The tables of formats in all modules without Qt. The window's other ones are drawings and views of the screen."""
    for top in ("designer", "exporters", "app.reports", "app.cli", "app.engine"):
        package = importlib.import_module(top)
        for info in pkgutil.walk_packages(package.__path__, f"{top}."):
            module = importlib.import_module(info.name)
            yield from ((f"{info.name}.{n}", v) for n, v in vars(module).items() if isinstance(v, FormatTable))
