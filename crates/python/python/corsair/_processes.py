"""Work on several processes, one for each core."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

Job = TypeVar("Job")
Made = TypeVar("Made")

_work: Callable[[Any], Any] | None = None


def _set_work(work: Callable[[Any], Any] | None) -> None:
    global _work
    _work = work


def _do(job: Any) -> Any:
    assert _work is not None
    return _work(job)


def _cores() -> int:
    """The number of cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_processes(work: Callable[[Job], Made], jobs: Sequence[Job], workers: int | None = None) -> list[Made]:
    """Runs all jobs on this number of processes, by default one for each core. Returns the results in order."""
    processes = min(workers or _cores(), len(jobs))
    if processes == 1:
        return [work(job) for job in jobs]
    # A forked process inherits the function, which can be any function. A spawned process imports it by name.
    forks = "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"
    context = multiprocessing.get_context("fork" if forks else "spawn")
    begin: dict[str, Any] = {} if forks else {"initializer": _set_work, "initargs": (work,)}
    _set_work(work)
    try:
        with ProcessPoolExecutor(processes, context, **begin) as pool:
            return list(pool.map(_do, jobs, chunksize=max(1, len(jobs) // (4 * processes))))
    finally:
        _set_work(None)
