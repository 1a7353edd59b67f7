"""Levels, which are weighted by time, and tallies of observations."""

from __future__ import annotations

from math import ceil, nan, sqrt
from typing import Any

from .. import _corsair
from .core import Environment

__all__ = ["Level", "Tally", "Watch", "watch"]


class Level:
    """A number that changes over time, such as the length of a queue.

    >>> from corsair import sim
    >>> env = sim.Environment()
    >>> level = sim.Level(env)
    >>> def model():
    ...     yield env.timeout(3)
    ...     level.set(4)
    ...     yield env.timeout(1)
    >>> env.run(env.process(model()))
    >>> level.mean, level.maximum
    (1.0, 4)

    Time before the environment's `warm_up` does not count.
    """

    def __init__(self, env: Environment, value: float = 0) -> None:
        self._env = env
        self._value = self._low = self._high = value
        self._since: float = max(env.now, env.warm_up)
        self._began: float = self._since
        self._area = self._square = 0.0

    def set(self, value: float) -> None:
        """Sets the value from now on."""
        now = self._env.now
        if now > self._began and value != self._value:
            self._settle(now)
            self._low, self._high = min(self._low, value), max(self._high, value)
        elif now <= self._began:
            self._low = self._high = value
        self._value = value

    def add(self, more: float = 1) -> None:
        """Adds to the value, or subtracts from it."""
        self.set(self._value + more)

    def _settle(self, now: float) -> None:
        elapsed: float = now - self._since
        self._area += elapsed * self._value
        self._square += elapsed * self._value * self._value
        self._since = now

    @property
    def value(self) -> float:
        """The current value."""
        return self._value

    @property
    def mean(self) -> float:
        """The mean over time; NaN if no time has passed."""
        elapsed = self._elapsed()
        return self._area / elapsed if elapsed > 0 else nan

    @property
    def deviation(self) -> float:
        """The standard deviation over time."""
        elapsed = self._elapsed()
        return sqrt(max(0.0, self._square / elapsed - self.mean**2)) if elapsed > 0 else nan

    @property
    def minimum(self) -> float:
        """The smallest value."""
        return self._low

    @property
    def maximum(self) -> float:
        """The largest value."""
        return self._high

    def _elapsed(self) -> float:
        now: float = self._env.now
        if now > self._since:
            self._settle(now)
        return now - self._began

    def __repr__(self) -> str:
        return f"Level({self._value}, mean={self.mean:.4g})"


class Tally:
    """Observations, such as waiting times. Observations before the environment's `warm_up` do not count."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self.values: list[float] = []

    def record(self, value: float) -> None:
        """Records an observation."""
        if self._env.now >= self._env.warm_up:
            self.values.append(value)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        """The mean; NaN if there are no observations."""
        return sum(self.values) / len(self.values) if self.values else nan

    @property
    def deviation(self) -> float:
        """The standard deviation of the sample."""
        count, mean = len(self.values), self.mean
        return sqrt(sum((value - mean) ** 2 for value in self.values) / (count - 1)) if count > 1 else nan

    @property
    def minimum(self) -> float:
        """The smallest observation."""
        return min(self.values, default=nan)

    @property
    def maximum(self) -> float:
        """The largest observation."""
        return max(self.values, default=nan)

    def percentile(self, part: float) -> float:
        """Returns the observation that this fraction of the observations does not exceed: `percentile(0.99)`."""
        if not 0 <= part <= 1:
            raise ValueError(f"{part} is not a fraction; give a number from 0 to 1, such as 0.99")
        if not self.values:
            return nan
        return sorted(self.values)[max(0, ceil(part * len(self.values)) - 1)]

    def __repr__(self) -> str:
        return f"Tally({len(self.values)} values, mean={self.mean:.4g})"


class Watch:
    """The levels of a resource: the number of waiting requests, and the amount in use or in stock."""

    def __init__(self, env: Environment, resource: Any) -> None:
        self._resource = resource
        self.queue = Level(env)
        """The number of requests that wait for a slot, an amount or an item."""
        self.used = Level(env)
        """The number of slots in use, the amount in a container, or the number of items in a store."""
        self._update()
        resource._observe(self._update)

    def _update(self) -> None:
        resource = self._resource
        self.queue.set(len(resource.put_queue) + len(resource.get_queue))
        if isinstance(resource, _corsair.Resource):
            self.used.set(resource.count)
        elif isinstance(resource, _corsair.Container):
            self.used.set(resource.level)
        elif isinstance(resource, _corsair.Store):
            self.used.set(len(resource.items))


def watch(resource: Any) -> Watch:
    """Watches a resource from now on.

    >>> from corsair import sim
    >>> env = sim.Environment()
    >>> counter = sim.Resource(env)
    >>> levels = sim.watch(counter)
    >>> def customer(env):
    ...     with counter.request() as turn:
    ...         yield turn
    ...         yield env.timeout(3)
    >>> customers = [env.process(customer(env)) for _ in range(2)]
    >>> env.run(until=12)
    >>> levels.used.mean, levels.queue.mean
    (0.5, 0.25)
    """
    return Watch(resource._env, resource)
