#!/usr/bin/env python3
"""A sweep on a Ray cluster: every run is a task, and a task whose worker dies is done again elsewhere.

    python on_ray.py                    on a cluster of three nodes on this machine
    python on_ray.py --kill             and kills a worker and a node in the middle
    python on_ray.py --address auto     on the cluster that this machine belongs to
"""

import argparse
import os
import signal

import ray
from corsair import Sweep
from grid import SWEEP, report


@ray.remote(num_cpus=1, max_retries=-1)
def measure(sweep: Sweep, number: int) -> dict:
    return sweep.measure(number)


@ray.remote(num_cpus=1)
def who() -> tuple[int, str]:
    return os.getpid(), ray.get_runtime_context().get_node_id()


def local_cluster():
    """Three nodes with one slot each, as processes of this machine."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    return cluster, nodes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", help="the cluster; without one, nodes of this machine")
    parser.add_argument("--kill", action="store_true", help="kill a worker and a node in the middle")
    arguments = parser.parse_args()
    cluster, nodes = (None, []) if arguments.address else local_cluster()
    ray.init(address=arguments.address or cluster.address, log_to_driver=False)
    victim, _ = ray.get(who.remote())
    sweep = ray.put(SWEEP)
    runs = [measure.remote(sweep, number) for number in range(len(SWEEP))]
    rows, left = {}, {run: number for number, run in enumerate(runs)}
    killed = False
    while left:
        (done, *_), _ = ray.wait(list(left))
        rows[left.pop(done)] = ray.get(done)
        if arguments.kill and nodes and not killed and len(rows) >= 3:
            killed = True
            os.kill(victim, signal.SIGKILL)
            cluster.remove_node(nodes[0], allow_graceful=False)
            print(f"killed a worker and a node after {len(rows)} runs")
    ray.shutdown()
    if cluster is not None:
        cluster.shutdown()
    report(rows)


if __name__ == "__main__":
    main()
