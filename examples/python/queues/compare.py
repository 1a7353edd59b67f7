#!/usr/bin/env python3
"""The same queue four times: results that agree, and how long each took.

    python compare.py            from three seeds
    python compare.py --seeds 1
"""

import argparse
import importlib
import math
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
    parser.add_argument("--seeds", type=int, default=3, help="from how many seeds each is run")
    seeds = parser.parse_args().seeds
    exact = theory()
    took = {}
    print(f"{JOBS} jobs; the mean wait is {exact * 1e3:.2f} ms in theory")
    for name, module in PROGRAMS.items():
        program = importlib.import_module(module)
        waits, took[name] = [], math.inf
        for seed in range(seeds):
            began = time.perf_counter()
            waits.append(program.mean_wait(seed))
            # The fastest, as of timeit: the others were held up by what else the machine did.
            took[name] = min(took[name], time.perf_counter() - began)
        wait = sum(waits) / seeds
        # The mean of 100,000 waits that depend on each other is good to some per cent.
        assert abs(wait / exact - 1) < 0.15 / seeds**0.5, f"{name}: {wait} is not {exact}"
        print(f"{name:<22} mean wait {wait * 1e3:7.2f} ms   {took[name]:7.3f} s a run   {JOBS / took[name]:10,.0f} jobs/s")
    for name in list(took)[:2]:
        print(f"{name} is {took['SimPy'] / took[name]:.1f} times as fast as SimPy, {took['Ciw'] / took[name]:.1f} times as Ciw")


if __name__ == "__main__":
    main()
