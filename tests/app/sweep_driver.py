"""Runs a sweep on a local Ray cluster of two nodes, of which one is lost in the middle: `sweep_driver.py SWEEP`. The trainer is a stand-in."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from ray.cluster_utils import Cluster

from app.engine.sweep_cluster import run_on_cluster
from designer.training.sweep import Axis, Sweep, Trial, trials
from designer.training.watched_run import RunState

MEMORY = 80 * 2**20  # the smallest object store
STEPS = 300
TRAINER = Path(__file__).parents[1] / "training" / "fake_trainer.py"


def sweep_in(folder: Path) -> Sweep:
    return Sweep(folder, tuple(trials([Axis.parse("lr=0.1,0.2")])), {"steps": str(STEPS), "delay": "0.03"})


def main(folder: str) -> None:
    sweep = sweep_in(Path(folder))
    sweep.open("a network")
    project = sweep.project(sweep.trials[0])
    project.mkdir()
    shutil.copy(TRAINER, project / "train.py")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": MEMORY})
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(2)]
    lost: list[str] = []
    states: dict[str, str] = {}

    def lose() -> None:
        while not all(sweep.run(trial).checkpoint for trial in sweep.trials) and not states:
            time.sleep(0.05)
        if not states:
            cluster.remove_node(nodes[0])
            lost.append("a node")

    def ended(trial: Trial, state: RunState, message: str) -> None:
        states[trial.name] = state.value

    watcher = threading.Thread(target=lose)
    watcher.start()
    run_on_cluster(cluster.address, sweep, sweep.trials, ended)
    watcher.join()
    print(json.dumps({"states": states, "lost": lost}), flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
