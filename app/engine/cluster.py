"""A connection to a Ray cluster."""

from __future__ import annotations

import os
from importlib import util

from designer.graph.diagnostics import DiagnosticError
from designer.texts import tr


class Cluster:
    """Connected to the cluster at `address` inside a `with` block. Raises DiagnosticError without Ray or cluster."""

    def __init__(self, address: str) -> None:
        if util.find_spec("ray") is None:
            raise DiagnosticError.of("no-ray", tr("Ray is not installed"), remedy='pip install "layerwright[cluster]"')
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # nothing leaves the computers
        self._address = address

    def __enter__(self) -> Cluster:
        import ray

        try:
            ray.init(address=self._address, logging_level="ERROR", log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise DiagnosticError.of(
                "no-cluster",
                tr("there is no Ray cluster at {address}: {reason}", address=self._address, reason=str(error)[:200]),
                remedy=tr("start one with ray start --head, and give its address"),
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        import ray

        ray.shutdown()
