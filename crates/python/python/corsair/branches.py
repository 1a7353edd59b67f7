"""Branches of saved runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from . import _corsair
from ._corsair import Table
from ._processes import in_processes
from .experiments import field_json, run_saved
from .saving import RunDescription, Time
from .sim.replication import outcome
from .simulation import Simulation


def fork(
    directory: str | os.PathLike[str],
    branches: Mapping[str, Mapping[str, Any] | Callable[[Any], Any]],
    *,
    seeds: int = 10,
    until: Time | None = None,
    workers: int | None = None,
) -> Table:
    """Runs branches of one saved run, each with several seeds. Returns a table with a row for each run.

    directory  the directory given as `checkpoint_dir`, or one of the checkpoints in it
    branches   by name, the fields that each branch sets, as for `set` of `resume`. For a `Simulation` of actors, a function
               that takes the restored simulation, runs it, and returns a number or a dict of numbers by name
    seeds      the number of runs of each branch; the first run continues the random numbers of the saved run
    until      the virtual time at which the runs stop
    workers    the number of parallel runs; by default one for each core

    The first branch of an architecture is "as saved". Each row has the branch, the seed, and the counts and percentiles of
    the complete run, or the numbers that the function has returned.
    """
    if seeds < 1:
        raise ValueError(f"{seeds} seeds give no runs; give 1 or more")
    about = json.loads(_corsair.SavedCheckpoint(Path(directory)).about)
    if "actors" in about:
        if until is not None:
            raise ValueError("until: the function of a branch runs the simulation; call run_until in it")
        rows = _fork_actors(directory, branches, about["actors"]["seed"], seeds, workers)
    else:
        rows = _fork_services(directory, branches, seeds, until, workers)
    return Table({name: [row[name] for row in rows] for name in rows[0]})


def _fork_actors(
    directory: str | os.PathLike[str], branches: Mapping[str, Any], first: int, seeds: int, workers: int | None
) -> list[dict[str, Any]]:
    if not branches:
        raise ValueError("branches: there are none; give a function that takes the simulation and runs it")
    for name, branch in branches.items():
        if not callable(branch):
            raise TypeError(f"branches: '{name}' is a {type(branch).__name__}; give a function that takes the simulation and runs it")

    def measure(job: tuple[str, int]) -> dict[str, Any]:
        name, seed = job
        with Simulation.restore(directory, None if seed == first else seed) as simulation:
            return {"branch": name, "seed": seed, **outcome(branches[name](simulation))}

    return in_processes(measure, [(name, first + repeat) for name in branches for repeat in range(seeds)], workers)


def _fork_services(
    directory: str | os.PathLike[str], branches: Mapping[str, Any], seeds: int, until: Time | None, workers: int | None
) -> list[dict[str, Any]]:
    named: list[tuple[str, Mapping[str, Any]]] = [("as saved", {}), *branches.items()]
    first = RunDescription.of(_corsair.SavedCheckpoint(Path(directory)), 1).arguments["seed"]
    jobs = [(name, fields, repeat) for name, fields in named for repeat in range(seeds)]

    def measure(job: tuple[str, Mapping[str, Any], int]) -> dict[str, Any]:
        name, fields, repeat = job
        # Branches use the same random numbers, so that random variation does not affect their comparison.
        seed = None if repeat == 0 else first + repeat
        saved = _corsair.SavedCheckpoint(Path(directory))
        about = RunDescription.of(saved, 1)
        about.arguments |= {"graph": False, "flows": False, "out": None}
        about.saving = None
        set = [(str(path), field_json(str(path), value)) for path, value in fields.items()]
        summary = run_saved(about, saved, seed, until, False, set).summary
        row = {"branch": name, "seed": first + repeat, "requests": summary["requests"], "errors": summary["errors"]}
        entries = summary["entries"]
        for entry, found in entries.items():
            prefix = "" if len(entries) == 1 else f"{entry}_"
            row |= {f"{prefix}{key}": value for key, value in found.items() if key.endswith("_seconds")}
        return row

    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        return list(pool.map(measure, jobs))
