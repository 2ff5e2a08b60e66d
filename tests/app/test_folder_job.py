"""Folders through a network: broken files are skipped, an interrupted run continues, and two variants are timed in one run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from app.engine import folder_job
from app.engine.folder_job import JOURNAL, FolderJob, job_key, process_folders, throughput
from designer.files.document import save_document
from designer.files.weights import random_weights, required_weights, save_weights
from designer.graph.diagnostics import DiagnosticError
from designer.graph.graph import Graph
from designer.graph.inference import Inference
from designer.graph.model import Layer, Source
from designer.operators.registry import load
from designer.runtime.api import RunOptions
from designer.runtime.images import read_image, write_image
from designer.runtime.session import Session

REGISTRY = load(entry_points=False)
ROOT = Path(__file__).parents[2]
IMAGES = 12


def network(noise: str = "false") -> Graph:
    """Noise on an image, and a convolution."""
    return Graph(
        [
            Layer("in", "input", params={"dims": "16x12x3"}),
            Layer("noise", "noise", inputs=(Source("in"),), params={"scale": "0.1", "animate": noise, "seed": "1"}),
            Layer("conv", "convolution", inputs=(Source("noise"),), params={"features": "3"}),
            Layer("out", "output", inputs=(Source("conv"),)),
        ],
        name="folder network",
    )


def weights(graph: Graph):
    return random_weights(required_weights(Inference(graph, REGISTRY)), 1)


def session(graph: Graph | None = None, engine: str = "onnxruntime") -> Session:
    graph = graph or network()
    return Session(graph, REGISTRY, weights(graph), RunOptions(engine=engine, threads=1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve images of two sizes, a broken one among them, and a file that is not an image."""
    made = tmp_path / "images"
    made.mkdir()
    for number in range(IMAGES):
        height = 12 + number % 2 * 4
        pixels = np.random.default_rng(number).random((1, 3, height, 16), np.float32)
        write_image(made / f"{number}.png", pixels)
    (made / "5.png").write_bytes(b"not an image")
    (made / "notes.txt").write_text("no image")
    return made


def job(folder: Path, **options) -> FolderJob:
    return FolderJob({"in": folder}, {"out": folder.parent / "made"}, **options)


def test_every_image_is_run_and_a_broken_one_is_skipped(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    done = process_folders(
        session(network("true")), job(folder), "key", lambda count, total, name: seen.append((count, total))
    )
    assert (done.written, done.before, list(done.skipped)) == (11, 0, [str(folder / "5.png")])
    assert seen == [(number, IMAGES) for number in range(IMAGES)]
    for number in (0, 7, 11):
        graph = network("true").copy()
        noise = graph["noise"].with_param("seed", str(1 + number))  # frames have noise of their own
        one = session(Graph([noise if layer.name == "noise" else layer for layer in graph], name=graph.name))
        one.set_input_file("in", folder / f"{number}.png")
        expected = one.run().outputs["out"]
        write_image(folder / "expected.png", expected)
        made = read_image(folder.parent / "made" / f"{number}.png")
        np.testing.assert_array_equal(made, read_image(folder / "expected.png"))


def test_a_second_run_continues_and_changed_images_run_again(folder: Path) -> None:
    process_folders(session(), job(folder), "key")
    made = folder.parent / "made"
    times = {path.name: path.stat().st_mtime_ns for path in made.glob("*.png")}
    write_image(folder / "5.png", np.zeros((1, 3, 12, 16), np.float32))
    write_image(folder / "7.png", np.ones((1, 3, 20, 16), np.float32))
    done = process_folders(session(), job(folder), "key")
    assert (done.written, done.before, done.skipped) == (2, 10, {})
    assert read_image(made / "7.png").shape == (1, 3, 20, 16)
    assert {n for n, t in times.items() if (made / n).stat().st_mtime_ns != t} == {"7.png"}


def test_a_journal_that_was_cut_off_loses_only_its_last_line(folder: Path) -> None:
    process_folders(session(), job(folder), "key")
    journal = folder.parent / "made" / JOURNAL
    journal.write_bytes(journal.read_bytes()[:-5])
    done = process_folders(session(), job(folder), "key")
    assert (done.written, done.before) == (1, 10)
    assert all(json.loads(line) for line in journal.read_text().splitlines())


def test_results_of_another_network_are_not_mixed_in(folder: Path) -> None:
    one = session()
    process_folders(one, job(folder), job_key(one, "a"))
    assert job_key(one, "a") == job_key(session(), "a")
    other = session(network("true"))
    for key in (job_key(other, "a"), job_key(one, "b"), job_key(session(engine="torch"), "a")):
        with pytest.raises(DiagnosticError) as failed:
            process_folders(one, job(folder), key)
        assert failed.value.diagnostics[0].code == "folder-not-empty"
    (folder.parent / "thesis").mkdir()
    (folder.parent / "thesis" / "text.tex").write_text("x")
    with pytest.raises(DiagnosticError):
        process_folders(one, FolderJob({"in": folder}, {"out": folder.parent / "thesis"}), "key")
    assert [path.name for path in (folder.parent / "thesis").iterdir()] == ["text.tex"]


def test_names_stay_apart_and_ranges_count_files(folder: Path) -> None:
    write_image(folder / "3.jpg", np.zeros((1, 3, 12, 16), np.float32))
    done = process_folders(session(), job(folder, start=2, stop=5, kind=".npy"), "key")
    assert done.written == 3
    assert {path.name for path in (folder.parent / "made").glob("*.npy")} == {"2.npy", "3_00003.npy", "3_00004.npy"}
    write_image(folder / "3_00004.png", np.zeros((1, 3, 12, 16), np.float32))  # the name that the second 3 would have
    names = [frame.name for frame in folder_job.frames_of(job(folder))]
    assert len(set(names)) == len(names) == IMAGES + 2
    assert {"3_00003", "3_00004", "3_00004_"} <= {*names}
    with pytest.raises(DiagnosticError) as failed:
        process_folders(session(), FolderJob({"in": folder}, {"out": folder.parent / "x"}, start=99), "key")
    assert failed.value.diagnostics[0].code == "no-frames"


def test_folders_without_a_usable_image_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(b"x")
    with pytest.raises(DiagnosticError) as failed:
        process_folders(session(), job(tmp_path / "images"), "key")
    assert failed.value.diagnostics[0].code == "no-images"


def test_images_that_share_a_file_are_skipped_one_by_one(folder: Path) -> None:
    for number in range(2, IMAGES):
        (folder / f"{number}.png").unlink(missing_ok=True)
    write_image(folder.parent / "mask.png", np.zeros((1, 3, 12, 16), np.float32))
    graph = Graph([*network(), Layer("mask", "input", params={"dims": "16x12x3"})], name="folder network")
    both = FolderJob({"mask": folder.parent / "mask.png", "in": folder}, {"out": folder.parent / "made"})
    (folder / "1.png").write_bytes(b"x")
    assert list(process_folders(session(graph), both, "key").skipped) == [str(folder / "1.png")]
    (folder / "0.png").write_bytes(b"x")
    with pytest.raises(DiagnosticError) as failed:
        process_folders(session(graph), both, "key")
    assert failed.value.diagnostics[0].code == "no-images"


def test_results_that_are_missing_are_made_again(folder: Path) -> None:
    for number in range(2, IMAGES):
        (folder / f"{number}.png").unlink(missing_ok=True)
    process_folders(session(), job(folder), "key")
    made = folder.parent / "made"
    assert process_folders(session(), job(folder), "key").before == 2
    assert process_folders(session(), job(folder, kind=".npy"), "key").written == 2
    (made / "0.npy").unlink()
    assert process_folders(session(), job(folder, kind=".npy"), "key").written == 1
    assert {path.name for path in made.glob("*.*")} == {"0.npy", "0.png", "1.npy", "1.png", JOURNAL}


def test_results_replace_neither_images_nor_each_other(folder: Path) -> None:
    graph = Graph([*network(), Layer("raw", "output", inputs=(Source("noise"),))], name="folder network")
    before = (folder / "0.png").read_bytes()
    for other in (folder, folder.parent / "made"):
        outputs = {"out": folder.parent / "images" / ".." / "made", "raw": other}
        with pytest.raises(DiagnosticError, match="folder-in-use"):
            process_folders(session(graph), FolderJob({"in": folder}, outputs), "key")
    assert (folder / "0.png").read_bytes() == before
    assert not (folder.parent / "made").exists()


def test_a_file_in_place_of_the_output_folder_is_refused(folder: Path) -> None:
    (folder.parent / "made").write_text("a file")
    with pytest.raises(DiagnosticError) as failed:
        process_folders(session(), job(folder), "key")
    assert failed.value.diagnostics[0].code == "cannot-save"


def test_a_full_disk_ends_the_run_and_keeps_what_is_finished(folder: Path, monkeypatch) -> None:
    count = 0
    write = folder_job.write_array

    def full(path: Path, array: np.ndarray, comment: str) -> None:
        nonlocal count
        count += 1
        if count > 6:
            path = Path("/dev/full/image.png")
        write(path, array, comment)

    monkeypatch.setattr(folder_job, "write_array", full)
    monkeypatch.setattr(folder_job, "physical_cores", lambda: 1)
    with pytest.raises(DiagnosticError) as failed:
        process_folders(session(), job(folder), "key")
    assert failed.value.diagnostics[0].code == "cannot-save"
    monkeypatch.setattr(folder_job, "write_array", write)
    done = process_folders(session(), job(folder), "key")
    assert done.before == 6
    assert done.written == 5


def test_throughput_times_both_on_the_same_images(folder: Path) -> None:
    found = throughput({"a": session(), "b": session(engine="torch")}, job(folder))
    assert [(one.title, one.images) for one in found] == [("a", 11), ("b", 11)]
    assert all(one.seconds > 0 for one in found)
    assert found[0].seconds_of_many == pytest.approx(500 * found[0].seconds / 11)
    assert not (folder.parent / "made").exists()


def test_throughput_leaves_out_images_that_the_network_cannot_run(folder: Path) -> None:
    np.save(folder / "9.npy", np.zeros((1, 2, 12, 16), np.float32))  # a tensor of too few channels
    (found,) = throughput({"a": session()}, job(folder))
    assert found.images == 11


def command(folder: Path, *arguments: str) -> list[str]:
    graph = network()
    save_document(graph, folder.parent / "net.xml")
    save_weights(folder.parent / "weights", weights(graph).tensors)
    base = ["run", str(folder.parent / "net.xml"), "--weights", str(folder.parent / "weights")]
    return [sys.executable, "-m", "app.cli.main", *base, "--input", f"in={folder}", *arguments]


@pytest.mark.slow
def test_the_command_reports_every_file(folder: Path) -> None:
    line = command(folder, "--output", f"out={folder.parent / 'made'}")
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)
    assert done.returncode == 1
    assert "11 images at" in done.stdout
    assert "1 skipped" in done.stdout
    assert "5.png: the file is not a supported image" in done.stderr
    (folder / "5.png").unlink()
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "0 images, including reading and writing, 11 were finished before, 0 skipped" in done.stdout
    line = command(folder, "--throughput", "--against", "torch")
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"images per second.*; 500 images take ", done.stdout)) == 2


@pytest.mark.slow
def test_a_killed_run_continues_where_it_was(folder: Path) -> None:
    for number in range(IMAGES, 400):
        os.link(folder / "0.png", folder / f"{number}.png")
    journal = folder.parent / "made" / JOURNAL
    line = command(folder, "--output", f"out={folder.parent / 'made'}")
    process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (journal.exists() and journal.read_bytes().count(b"\n") > 20):
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = journal.read_bytes().count(b"\n") - 1
    done = process_folders(session(), job(folder), json.loads(journal.read_text().splitlines()[0])["key"])
    assert done.before >= finished - 1
    assert done.before + done.written == 399
