"""The sweep that both clusters make, and what is said of its rows."""

from collections.abc import Mapping

from corsair import Sweep

SWEEP = Sweep(
    "lamp",
    {"services.webserver.count": [3, 6, 9, 12], "services.webserver.concurrency": [1, 2, 4]},
    seeds=4,
    duration=5,
    load="poisson 300/s",
)


def report(rows: Mapping[int, dict]) -> None:
    """Rows by the number of their run: all there, and those that this machine would have made alone."""
    table = SWEEP.table(rows[number] for number in range(len(SWEEP)))
    assert table == SWEEP.measure_all(), "the cluster's rows are not those of one machine"
    print(f"{len(table)} runs, all there and the same as on one machine")
    best = min(table, key=lambda row: row["p99_seconds"])
    print(f"the shortest p99 is {best['p99_seconds'] * 1e3:.1f} ms: {best}")
