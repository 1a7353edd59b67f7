"""Independent runs of a model on all cores, with confidence intervals."""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from .. import _corsair
from .._corsair import Table
from .._html import html_table
from .._processes import in_processes

__all__ = ["Replications", "replicate"]

Outcome = Mapping[str, float]


class Replications:
    """The results of independent runs of a model."""

    def __init__(self, seeds: Iterable[int], outcomes: Iterable[Outcome]) -> None:
        self.seeds = list(seeds)
        """The seed of each run: `model(seed)` repeats it."""
        found = list(outcomes)
        self.names = list(found[0])
        """The names of the results."""
        if any(list(outcome) != self.names for outcome in found):
            raise ValueError("the runs of a model return results of the same names in the same order")
        self._values = {name: [float(outcome[name]) for outcome in found] for name in self.names}

    def values(self, name: str = "value") -> list[float]:
        """Returns the results with this name, one for each run."""
        if name not in self._values:
            near = _corsair.nearest_name(name, self.names)
            meant = f"did you mean {near}?" if near else f"expected one of {', '.join(self.names)}"
            raise KeyError(f"the model returns no '{name}'; {meant}")
        return self._values[name]

    def mean(self, name: str = "value") -> float:
        """Returns the mean over the runs."""
        return _corsair.estimate(self.values(name), 0.95)[0]

    def interval(self, name: str = "value", confidence: float = 0.95) -> tuple[float, float]:
        """Returns the confidence interval of the true mean (Student's t)."""
        mean, half = _corsair.estimate(self.values(name), confidence)
        return mean - half, mean + half

    @property
    def table(self) -> Table:
        """A table with a row for each run: its seed and its results."""
        return Table({"seed": self.seeds, **self._values})

    def __len__(self) -> int:
        return len(self.seeds)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def _rows(self) -> list[list[str]]:
        estimates = ((name, *_corsair.estimate(self._values[name], 0.95)) for name in self.names)
        return [[name, f"{mean:.5g}", f"± {half:.3g}"] for name, mean, half in estimates]

    def __repr__(self) -> str:
        rows = "; ".join(" ".join(row) for row in self._rows())
        return f"Replications({len(self)} runs: {rows}, 95 %)"

    def _repr_html_(self) -> str:
        return html_table(["result", "mean", f"95 % of {len(self)} runs"], self._rows())


def outcome(returned: Any) -> dict[str, float]:
    """Converts the result of a model to numbers by name."""
    if isinstance(returned, Mapping):
        return dict(returned)
    if returned is None:
        raise TypeError("the model returns None; return a number, or a dict of numbers by name")
    return {"value": float(returned)}


def _measure(model: Callable[..., Any], seed: int) -> dict[str, float]:
    """Makes one run of the model."""
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
    return outcome(model(seed) if inspect.signature(model).parameters else model())


def replicate(
    model: Callable[..., Any], runs: int, *, seed: int = 0, workers: int | None = None
) -> Replications:
    """Runs a model several times independently, and returns its results with confidence intervals.

    >>> from corsair import sim
    >>> import random
    >>> def model(seed):
    ...     env = sim.Environment()
    ...     env.run(until=1 + random.random())
    ...     return {"end": env.now}
    >>> found = sim.replicate(model, 20, workers=1)
    >>> low, high = found.interval("end")
    >>> low < 1.5 < high
    True

    model    a function of the run's seed, or without parameters, that returns a number or a dict of numbers by name
    runs     the number of runs
    seed     the seed of the first run; the seed of run `i` is `seed + i`. It also seeds `random` and `numpy.random`
    workers  the number of processes; by default one for each core. The results do not depend on it
    """
    if runs < 1:
        raise ValueError(f"{runs} runs give no result; give 1 or more")
    seeds = range(seed, seed + runs)
    state = random.getstate()
    try:
        return Replications(seeds, in_processes(partial(_measure, model), seeds, workers))
    finally:
        random.setstate(state)
