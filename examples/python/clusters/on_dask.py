#!/usr/bin/env python3
"""A sweep on a Dask cluster: every run is a task, and a task whose worker dies is done again elsewhere.

    python on_dask.py                          on three processes of this machine
    python on_dask.py --kill                   and kills one of them in the middle
    python on_dask.py --address tcp://HOST:8786
"""

import argparse
import os
import signal

from corsair import Sweep
from dask.distributed import Client, LocalCluster, as_completed
from grid import SWEEP, report


def measure(sweep: Sweep, number: int) -> dict:
    return sweep.measure(number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", help="the scheduler; without one, processes of this machine")
    parser.add_argument("--kill", action="store_true", help="kill a worker in the middle")
    arguments = parser.parse_args()
    cluster = None
    if arguments.address is None:
        cluster = LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None)
    client = Client(arguments.address or cluster)
    sweep = client.scatter(SWEEP, broadcast=True)
    runs = {client.submit(measure, sweep, number, retries=3): number for number in range(len(SWEEP))}
    rows, killed = {}, False
    for done in as_completed(runs):
        rows[runs[done]] = done.result()
        if arguments.kill and not killed and len(rows) >= 3:
            killed = True
            victim = next(iter(client.run(os.getpid).values()))
            os.kill(victim, signal.SIGKILL)
            print(f"killed a worker after {len(rows)} runs")
    client.close()
    if cluster is not None:
        cluster.close()
    report(rows)


if __name__ == "__main__":
    main()
