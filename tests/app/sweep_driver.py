"""Runs a sweep on a local Ray cluster of two nodes, of which one is lost in the middle: `sweep_driver.py DOCUMENT PHOTOS SWEEP`."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from ray.cluster_utils import Cluster

from app.engine.sweep_cluster import run_on_cluster
from app.engine.sweep_job import prepare
from app.opened_network import open_network
from designer.training.sweep import Axis, Sweep, Trial, trials
from designer.training.watched_run import RunState
from exporters.pytorch import Training

MEMORY = 80 * 2**20  # the smallest object store
OPTIONS = {
    "steps": "2000",
    "batch": "4",
    "patch": "24",
    "workers": "0",
    "synthetic": "0",
    "validate_every": "400",
    "threads": "1",
    "tensorboard": False,
    "monitor": False,
}


def sweep_in(folder: Path, photos: Path) -> Sweep:
    return Sweep(folder, tuple(trials([Axis.parse("noise=5,25")])), {"data": str(photos), **OPTIONS})


def main(document: str, photos: str, folder: str) -> None:
    network = open_network(Path(document))
    sweep = sweep_in(Path(folder), Path(photos))
    waiting = prepare(sweep, network.graph, network.registry, Training(), Path(document))
    head = {"num_cpus": 0, "object_store_memory": MEMORY}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(2)]
    lost: list[str] = []
    states: dict[str, str] = {}

    def lose() -> None:
        while not all(sweep.run(trial).checkpoint for trial in waiting) and not states:
            time.sleep(0.05)
        if not states:
            cluster.remove_node(nodes[0])
            lost.append("a node")

    def ended(trial: Trial, state: RunState, message: str) -> None:
        states[trial.name] = state.value

    watcher = threading.Thread(target=lose)
    watcher.start()
    run_on_cluster(cluster.address, sweep, waiting, ended)
    watcher.join()
    print(json.dumps({"states": states, "lost": lost}), flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
