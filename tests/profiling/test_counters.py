"""Reading ncu's table, and the reasons when there is none. A script plays ncu: no machine of the tests has a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from designer.profiling.counters import TIME, metrics, parse, read_counters
from designer.profiling.figures import Origin

HOPPER = (9, 0)
NAMES = metrics(HOPPER)


def table(rows: list[tuple[str, str, str, str, str]]) -> str:
    header = ["ID", "Kernel Name", TIME, *NAMES.values()]
    lines = ["==PROF== Connected to process 7", ",".join(f'"{h}"' for h in header), '"","","ns","%","%","%"']
    lines += [",".join(f'"{v}"' for v in (str(i), *row)) for i, row in enumerate(rows)]
    return "\n".join(lines)


def test_kernels_of_a_layer_are_weighted_by_their_time():
    text = table(
        [
            ("lw:conv", "3,000", "60.0", "10.0", "50"),
            ("lw:conv", "1,000", "20.0", "30.0", "n/a"),
            ("lw:pool", "500", "n/a", "80.0", "40"),
            ("elementwise_kernel", "900", "1", "2", "3"),
        ]
    )
    found = parse(text, NAMES)
    assert not found.reason
    assert set(found.layers) == {"conv", "pool"}
    assert found.layers["conv"]["tensor_cores"].value == pytest.approx(50.0)
    assert found.layers["conv"]["memory"].value == pytest.approx(15.0)
    assert found.layers["conv"]["tensor_cores"].source is Origin.MEASURED
    missing = found.layers["pool"]["tensor_cores"]
    assert missing.source is Origin.UNAVAILABLE
    assert "sm__pipe_tensor" in missing.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "no table"), (table([]), "no kernel"), (table([("volta_sgemm", "1", "1", "1", "1")]), "no kernel")],
)
def test_tables_without_layers(text, reason):
    assert reason in parse(text, NAMES).reason


def fake_ncu(tmp_path: Path, output: str, status: int) -> str:
    script = tmp_path / "ncu"
    script.write_text(f"#!{sys.executable}\nimport sys\nsys.stdout.write({output!r})\nsys.exit({status})\n")
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(
    ("output", "status", "reason"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - no permission", 1, "rights"),
        ("==ERROR== something else\n", 3, "status 3: ==ERROR== something else"),
        ("nothing to see", 0, "no table"),
    ],
)
def test_why_there_are_no_counters(tmp_path, output, status, reason):
    assert reason in read_counters(["true"], HOPPER, fake_ncu(tmp_path, output, status)).reason


def test_a_run_under_ncu(tmp_path):
    found = read_counters(["true"], HOPPER, fake_ncu(tmp_path, table([("lw:a", "1", "2", "3", "4")]), 0))
    assert found.layers["a"]["occupancy"].value == pytest.approx(4.0)


def test_without_ncu(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "not installed" in read_counters(["true"], HOPPER).reason
    assert "could not be started" in read_counters(["true"], HOPPER, str(tmp_path / "absent")).reason


def test_metric_names_by_chip():
    assert "_v2" in metrics((8, 9))["tensor_cores"]
    assert "_v2" not in metrics((10, 0))["tensor_cores"]
