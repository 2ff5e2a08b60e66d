"""Lines of the metrics of a run that no trainer writes."""

from __future__ import annotations

from designer.training.metrics import MetricsFile


def test_steps_that_no_run_reaches_are_skipped(tmp_path) -> None:
    path = tmp_path / "metrics.jsonl"
    far = "9" * 308
    path.write_text(f'{{"step": 1, "loss": 2}}\n{{"step": {far}, "loss": 1}}\n{{"step": 3, "loss": {far}}}\n')
    metrics = MetricsFile(path)
    assert metrics.read()
    assert (metrics.curves.steps.tolist(), metrics.curves.skipped) == ([1, 3], 1)
