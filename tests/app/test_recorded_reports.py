"""What reports say of results that have everything, and of those that lack something, is recorded and compared."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from page_text import page_lines
from recorded import check_lines
from rich.console import Console
from test_report_values import RUN

from app.reports import analysis_report, profile_table
from app.reports.analysis_report import Seen, write_analysis
from app.reports.quality import Quality
from designer.files.settings import PATTERN
from designer.profiling.difference import configuration_differences
from designer.profiling.machine import Machine
from designer.profiling.quantities import measured, unavailable
from designer.profiling.schema import Energy, Profile, RunPeaks, TrainingStep
from designer.runtime.images import write_image
from designer.runtime.provenance import Provenance


def test_pages_of_analyses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis_report, "CHANNELS", 3)
    random = np.random.default_rng(0)
    image = random.random((1, 3, 6, 8)).astype(np.float32)
    write_image(tmp_path / "photo.png", image)
    (tmp_path / "damaged.png").write_bytes(b"no image")
    np.save(tmp_path / "flow.npy", image[:, :2])
    ramp = np.arange(96, dtype=np.float32).reshape(1, 2, 6, 8) - 20
    inputs = {
        "pattern": f"{PATTERN}zone_plate",
        "photo": str(tmp_path / "photo.png"),
        "flow": str(tmp_path / "flow.npy"),
        "damaged": str(tmp_path / "damaged.png"),
        "absent": str(tmp_path / "absent.png"),
    }
    outputs = {"image": (image, "image"), "map": (ramp, "tensor"), "scores": (ramp[0, :, 0], "image")}
    origin = Provenance("net.xml", "0" * 64, noise="gaussian 0.1", noise_seed="3", engine="torch", date="today")
    full = Seen(
        origin, inputs, (("noise", "Noise", "gaussian 0.1"), ("mix", "Mix", "v split 50 %")), outputs,
        ("conv", ramp), {"map": Quality("conv", "photo", (image, image * 0.5))},
        (("a ... b", "torch", "3.5", "1 x 3"), ("noise", "numpy", "0.25", "1 x 3")), 12.5, "the image is large", b"\x89PNG",
    )  # fmt: skip
    seen = {
        "everything": full,
        "an inspected layer of many channels": Seen(origin, inspected=("deep", ramp.reshape(2, 4, 4, 3))),
        "as many channels as are shown": Seen(origin, inspected=("deep", image)),
        "an inspected vector": Seen(origin, inspected=("dense", ramp[0, :, 0])),
        "nothing has run": Seen(Provenance("net.xml", "0" * 64, date="today")),
    }
    lines = []
    for name, each in seen.items():
        write_analysis(tmp_path / "a.html", each)
        lines += ["", f"# {name}", *page_lines(tmp_path / "a.html")]
    check_lines("reports/analyses.txt", [line.replace(str(tmp_path), "<folder>") for line in lines[1:]])


def everything() -> Profile:
    """Two batches and two sizes of a network, with all that can be measured, and a run that was stopped."""
    counted = {
        "tensor_core": measured(40.0),
        "memory_throughput": measured(70.0, "of a counter"),
        "occupancy": measured(55.0),
        "compute_throughput": unavailable("not on this card"),
    }
    step = TrainingStep(4, 15.0, 5.0, 4.0, 3.0, 2.0, 1.0, "input", "it waits for images")
    first = replace(
        RUN,
        operators=tuple(replace(row, **counted) if row.layers else row for row in RUN.operators),
        weights="random weights, seed 3",
        notes=("other programs used 8 % of the cores",),
        training=step,
        energy=Energy(measured(2.5, "of the card"), measured(60.0), measured(4e9)),
        peaks=RunPeaks(measured(1e12), measured(2e10), measured(8e10), 1 << 24),
        provenance={"document": "net.xml", "engine": "torch", "date": "today"},
    )
    lacking = replace(
        first, energy=Energy(unavailable("no counter"), unavailable("no counter"), unavailable("no counter"))
    )
    runs = [
        first,
        replace(lacking, batch=2, time_ms=8.0, training=None, provenance={**first.provenance, "date": "tomorrow"}),
        replace(RUN, size="12x8", time_ms=20.0),
        replace(
            RUN,
            engine="onnxruntime",
            time_ms=None,
            partial="it was stopped",
            provenance={"document": "net.xml", "noise": "none"},
        ),
    ]
    return Profile(Machine("Test CPU", 2), "net", tuple(runs))


@pytest.mark.parametrize("width", [100, profile_table.WIDE])
def test_a_profile_on_a_terminal(width: int) -> None:
    console = Console(width=width, markup=False)
    with console.capture() as capture:
        for part in profile_table.lines(everything(), width):
            console.print(part, width=width)
        for each in configuration_differences(everything()):
            for part in profile_table.difference_lines(each):
                console.print(part, width=width)
    lines = [re.sub(r"[━─]{2,}", "─", line.rstrip()) for line in capture.get().splitlines()]
    check_lines(f"reports/profile_{width}.txt", lines)
