"""`layerwright tour`: the whole loop without a window - design, export, train, reload, run, look, profile, export ONNX."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress

import samples
from analysis_layers.noise import Noise
from app.opened_network import OpenedNetwork, load_weights_for, open_network, weights_location
from app.reports.page import Page
from app.reports.profile_table import COLUMNS, WORDS, name_of, summary, utilization_lines
from app.reports.provenance_table import add_machine, add_provenance
from designer.files.atomic import make_folder
from designer.files.document import save_document
from designer.files.weights import Weights, fill_missing, required_weights
from designer.graph import commands
from designer.graph.diagnostics import Diagnostic, DiagnosticError
from designer.graph.edits import ChangeSet
from designer.graph.history import History
from designer.graph.inference import Inference
from designer.graph.model import Source
from designer.metrics import psnr
from designer.runtime.api import RunOptions
from designer.runtime.provenance import Provenance, provenance
from designer.texts import tr
from designer.training.progress import Failed, Stepped, Validated, parse_line
from designer.units import binary, count, duration

Array = NDArray[np.float32]
NOISE = 25 / 255
OPTIONS = RunOptions(threads=2)


class Tour:
    """Plays the chapters in order; each leaves images and a section of the page."""

    def __init__(self, folder: Path, console: Console, steps: int) -> None:
        self.folder = folder
        self.console = console
        self.steps = steps
        self.page = Page("Layerwright: a tour")
        self.project = folder / "project"
        self.trained: Path | None = None
        self.origin: dict[str, Provenance] = {}

    @contextmanager
    def chapter(self, title: str) -> Iterator[None]:
        """A section of the page, with its time on the console."""
        self.page.heading(title)
        began = perf_counter()
        yield
        self.console.print(f"{title}: {perf_counter() - began:.1f} s", highlight=False)

    def picture(self, name: str, image: Array, caption: str) -> None:
        """Write a 1 x C x H x W image and show it on the page."""
        from designer.runtime.images import write_image

        path = self.folder / f"{name}.png"
        write_image(path, np.clip(image, 0.0, 1.0))
        self.page.picture(path, caption)

    def design(self) -> None:
        """Open the sample, change it, see shapes and a problem, undo."""
        network = open_network(samples.path("denoiser.xml"))
        history = History(network.graph)
        inference = Inference(network.graph, network.registry)

        def follow(change: ChangeSet) -> None:
            inference.update(change)

        history.subscribe(follow)
        layer = network.graph["conv_enc_2"]
        before = inference.states["conv_enc_2"].outputs
        history.commit(commands.set_params(network.graph, {layer.name: {"features": "64"}}))
        after = inference.states["conv_enc_2"].outputs
        self.page.text(
            f"{network.graph.name} has {len(network.graph)} layers. Setting features of conv_enc_2 to 64 changes its output "
            f"from {_types(before)} to {_types(after)}; {inference.last_inferred} layers were inferred again."
        )
        history.commit(commands.set_params(network.graph, {layer.name: {"stride": "3x3"}}))
        for finding in inference.diagnostics()[:3]:
            self.page.text(f"With a stride of 3x3: {finding}")
        while history.undo():
            pass
        save_document(network.graph, self.folder / "denoiser.xml")
        same = (self.folder / "denoiser.xml").read_bytes() == samples.path("denoiser.xml").read_bytes()
        self.page.text(f"Everything undone and saved: the file is {'byte for byte' if same else 'NOT'} the sample.")
        rows = [(r.layer, r.type, r.shape, count(r.parameters) if r.parameters else "") for r in network.rows()]
        self.page.table(("layer", "type", "output", "parameters"), rows, numbers=(3,))

    def export(self) -> None:
        """Write the PyTorch project."""
        from exporters.pytorch import export_project

        network = open_network(samples.path("denoiser.xml"))
        files = export_project(network.graph, network.registry, self.project, "Denoiser")
        self.page.text("Written: " + ", ".join(p.name for p in files))
        self.page.code("\n".join((self.project / "model.py").read_text().splitlines()[:60]))

    def train(self) -> None:
        """Train the exported project briefly, as a user would from a shell."""
        command = [sys.executable, "train.py", "--data", str(samples.PHOTOGRAPHS), "--noise", "25", "--steps"]
        command += [str(self.steps), "--batch", "8", "--validate-every", "30", "--threads", "2", "--json-progress"]
        self.page.code(" ".join(["python", *command[1:]]).replace(str(samples.PHOTOGRAPHS), "photographs"))
        validation: list[tuple[str, str, str]] = []
        with (
            Progress(console=self.console) as bar,
            subprocess.Popen(command, cwd=self.project, stdout=subprocess.PIPE, text=True) as process,
        ):
            task = bar.add_task("training", total=self.steps)
            assert process.stdout is not None
            for line in process.stdout:
                match parse_line(line):
                    case Stepped() as done:
                        bar.update(task, completed=done.step, description=f"training, loss {done.loss:.4f}")
                    case Validated(step, float() as denoised, float() as noisy):
                        validation.append((str(step), f"{noisy:.2f}", f"{denoised:.2f}"))
                    case Failed(message):
                        raise DiagnosticError(
                            Diagnostic("training-failed", message, remedy=tr("see the project's log"))
                        )
        if process.returncode != 0:
            raise DiagnosticError(
                Diagnostic(
                    "training-failed",
                    tr("train.py ended with status {returncode}", returncode=process.returncode),
                    file=str(self.project / "train.py"),
                    remedy=tr("run it in that folder and read its output"),
                )
            )
        self.page.table(("step", "noisy PSNR (dB)", "PSNR (dB)"), validation, numbers=(0, 1, 2))
        for name, caption in (("curves", "loss and PSNR"), ("before_after", "noisy, denoised, original")):
            path = self.folder / f"training_{name}.png"
            path.write_bytes((self.project / f"{name}.png").read_bytes())
            self.page.picture(path, f"Training: {caption}")
        self.trained = self.project / "weights"

    def look(self) -> Weights:
        """Run the analysis sample on a photo outside of the training set, mix, and inspect a hidden layer."""
        from designer.runtime.images import read_image
        from designer.runtime.session import Session

        document = samples.path("denoiser_analyze.xml")
        network = open_network(document)
        clean = read_image(samples.HELD_OUT)
        weights = self._sample_weights(network)
        hidden = Source("conv_2s")
        noisy = Source("noise_0")
        self.page.text(f"{samples.HELD_OUT.name} with Gaussian noise of 25/255; this photo is not in the training set.")
        trained = [("trained in this tour", load_weights_for(network, self.trained, None))] if self.trained else []
        noise = Noise(kind="gaussian", scale=NOISE).summary()
        for title, tensors in (*trained, ("sample weights", weights)):
            self.origin[title] = provenance(document.name, network.graph, tensors, OPTIONS, noise=noise, noise_seed="0")
            session = Session(network.graph, network.registry, tensors, OPTIONS)
            session.set_input("input_image", clean, is_image=True)
            session.set_param("noise_0", "scale", str(NOISE))
            session.set_param("mix_0", "amount", "1.0")  # the network's result alone
            result = session.run(capture=(noisy, hidden))
            height, width = clean.shape[2:]
            disturbed = result.captures[noisy][:, :, :height, :width]  # a capture has the padding that tiling asks for
            before, after = psnr(disturbed, clean), psnr(result.outputs["output_image"], clean)
            note = f" - {result.weights_note}" if result.weights_note else ""
            self.page.text(f"{title}: {before:.2f} dB before, {after:.2f} dB after: {after - before:+.2f} dB{note}")
        session.set_param("mix_0", "amount", "0.5")
        split = session.run()
        ran = [", ".join(s.layers) for s in split.steps if not s.cached]
        full = result.milliseconds
        self.picture("noisy", disturbed, "The noisy image")
        self.picture("denoised", result.outputs["output_image"], "Denoised")
        self.picture("split", split.outputs["output_image"], "Mix: denoised left, noisy right")
        self.page.text(
            f"Moving Mix ran {'; '.join(ran)} again: {duration(split.milliseconds)}, a full run takes {duration(full)}."
        )
        self.picture(
            "channels", channel_grid(result.captures[hidden]), "Channels of conv_2s: green positive, red negative"
        )
        return weights

    def profile(self, weights: Weights) -> None:
        """Time the operators on this machine."""
        from designer.profiling.measure import profile_session
        from designer.runtime.session import Session

        network = open_network(samples.path("denoiser.xml"))
        profile = profile_session(Session(network.graph, network.registry, weights, OPTIONS), 5)
        run = profile.runs[0]
        rows = [(name_of(row), *(make(run, row) for _, make in COLUMNS)) for row in run.by_saving()[:12]]
        self.page.text(profile.title(run))
        self.page.table(("layers", *(title for title, _ in COLUMNS)), rows, numbers=range(1 + WORDS, 1 + len(COLUMNS)))
        for line in (summary(run), *utilization_lines(run), *run.notes):
            self.page.text(line)

    def onnx(self, weights: Weights) -> None:
        """Write the ONNX model."""
        from exporters.onnx import export_onnx

        network = open_network(samples.path("denoiser.xml"))
        target = self.folder / "denoiser.onnx"
        export_onnx(network.graph, network.registry, weights, target)
        self.page.text(f"Wrote {target.name}, {binary(target.stat().st_size)}, accepted by onnx.checker.")

    def _sample_weights(self, network: OpenedNetwork) -> Weights:
        location = weights_location(network.path, samples.weights(network.path.stem))
        if location is not None:
            return load_weights_for(network, location, None)
        return fill_missing(Weights(), required_weights(network.inference), seed=0)


def run_tour(folder: Path, console: Console, *, steps: int) -> Path:
    """Play the tour into `folder`; returns the page."""
    tour = Tour(make_folder(folder), console, steps)
    with tour.chapter("Design"):
        tour.design()
    with tour.chapter("Export a PyTorch project"):
        tour.export()
    with tour.chapter("Train it"):
        tour.train()
    with tour.chapter("Reload, run, look inside"):
        weights = tour.look()
    with tour.chapter("Profile"):
        tour.profile(weights)
    with tour.chapter("Export ONNX"):
        tour.onnx(weights)
    tour.page.heading("Networks")
    add_provenance(tour.page, tour.origin)
    add_machine(tour.page)
    page = folder / "index.html"
    tour.page.write(page)
    return page


def channel_grid(tensor: Array, columns: int = 8, gap: int = 2) -> Array:
    """Channels of a 1 x C x H x W tensor as one 1 x 3 x H' x W' image: green positive, red negative, zero black."""
    channels = tensor[0]
    count, height, width = channels.shape
    rows = -(-count // columns)
    top = float(np.quantile(np.abs(channels), 0.995)) or 1.0
    grid = np.full((3, rows * (height + gap) - gap, columns * (width + gap) - gap), 0.2, np.float32)
    for index, channel in enumerate(channels):
        y, x = (index // columns) * (height + gap), (index % columns) * (width + gap)
        tile = grid[:, y : y + height, x : x + width]
        tile[0], tile[1], tile[2] = np.maximum(-channel, 0) / top, np.maximum(channel, 0) / top, 0.0
    return grid[None]


def _types(types: tuple[object, ...] | None) -> str:
    return ", ".join(map(str, types)) if types is not None else "unknown"
