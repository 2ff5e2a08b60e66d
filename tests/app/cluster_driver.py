"""Runs a folder on a local Ray cluster of two nodes, of which one is lost in the middle: `cluster_driver.py DOCUMENT WEIGHTS IN OUT`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from ray.cluster_utils import Cluster

from app.engine.cluster_job import process_on_cluster
from app.engine.folder_job import FolderJob
from app.opened_network import load_weights_for, open_network
from designer.runtime.api import RunOptions
from designer.runtime.session import Session

MEMORY = 80 * 2**20  # the smallest object store


def main(document: str, weights: str, images: str, made: str) -> None:
    network = open_network(Path(document))
    session = Session(
        network.graph,
        network.registry,
        load_weights_for(network, Path(weights), None),
        RunOptions(threads=1),
    )
    head = {"num_cpus": 0, "object_store_memory": MEMORY}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(2)]

    def lose(count: int, total: int, name: str) -> None:
        if count == 4:
            cluster.remove_node(nodes[0])

    job = FolderJob({"in": Path(images)}, {"out": Path(made)}, kind=".npy")
    done = process_on_cluster(cluster.address, session, job, "key", lose)
    print(json.dumps({"written": done.written, "before": done.before, "skipped": list(done.skipped)}), flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
