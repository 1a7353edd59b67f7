#!/usr/bin/env python3
"""The same queue four times: results that agree, and how long each took.

    python compare.py            from five seeds
    python compare.py --seeds 1
"""

import argparse
import importlib
import statistics
import time

from model import JOBS, theory

PROGRAMS = {
    "corsair, architecture": "with_architecture",
    "corsair, actors": "with_actors",
    "SimPy": "with_simpy",
    "Ciw": "with_ciw",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="from how many seeds each is run")
    seeds = parser.parse_args().seeds
    exact = theory()
    programs = {name: importlib.import_module(module) for name, module in PROGRAMS.items()}
    waits = {name: [] for name in programs}
    clock = {name: [] for name in programs}
    processor = {name: [] for name in programs}
    # In turns, so that whatever else the machine does meets all of them.
    for seed in range(seeds):
        for name, program in programs.items():
            began, used = time.perf_counter(), time.process_time()
            waits[name].append(program.mean_wait(seed))
            clock[name].append(time.perf_counter() - began)
            processor[name].append(time.process_time() - used)
    print(f"{JOBS} jobs; the mean wait is {exact * 1e3:.3f} ms in theory; medians of {seeds} runs in turns")
    print(f"{'':<22}{'mean wait':>12}{'by the clock':>14}{'processor':>11}{'jobs/s':>11}{'times SimPy':>13}{'by processor':>14}")
    simpy, simpy_used = statistics.median(clock["SimPy"]), statistics.median(processor["SimPy"])
    for name in programs:
        wait = statistics.fmean(waits[name])
        # The mean of 100,000 waits that depend on each other is good to some per cent.
        assert abs(wait / exact - 1) < 0.15 / seeds**0.5, f"{name}: {wait} is not {exact}"
        took, used = statistics.median(clock[name]), statistics.median(processor[name])
        print(
            f"{name:<22}{wait * 1e3:9.3f} ms{took:12.4f} s{used:9.4f} s{JOBS / took:11,.0f}"
            f"{simpy / took:13.1f}{simpy_used / used:14.1f}"
        )


if __name__ == "__main__":
    main()
