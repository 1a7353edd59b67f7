"""The environment, in which processes run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any, Generic, TypeVar

from .. import _corsair
from ._native import EmptySchedule, StopSimulation

__all__ = ["BoundClass", "EmptySchedule", "Environment", "Infinity", "SimTime", "StopSimulation"]

Infinity = float("inf")
SimTime = int | float

T = TypeVar("T")


class BoundClass(Generic[T]):
    """A class that can be called like a method. The object on which it is looked up becomes the first argument."""

    def __init__(self, cls: type[T]) -> None:
        self.cls = cls

    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        return self.cls if instance is None else MethodType(self.cls, instance)

    @staticmethod
    def bind_early(instance: object) -> None:
        """Binds the classes of an instance's class once, so that later look-ups are fast."""
        for name, found in instance.__class__.__dict__.items():
            if type(found) is BoundClass:
                setattr(instance, name, getattr(instance, name))


class Environment(_corsair.Environment):
    """Runs processes and other events in the order of their times.

    >>> from corsair import sim
    >>> def clock(env, name, tick):
    ...     while True:
    ...         print(name, env.now)
    ...         yield env.timeout(tick)
    >>> env = sim.Environment()
    >>> fast, slow = env.process(clock(env, "fast", 0.5)), env.process(clock(env, "slow", 1))
    >>> env.run(until=1)
    fast 0
    slow 0
    fast 0.5

    initial_time  the time at the beginning
    seed          the seed of the random numbers of `draw`
    warm_up       the time from which levels and tallies record
    """

    # The slots are not in the instance's dict. An empty dict shows that no methods have been replaced.
    __slots__ = ("__dict__", "__weakref__", "_draws", "seed", "warm_up")

    def __init__(self, initial_time: SimTime = 0, *, seed: int = 0, warm_up: SimTime = 0) -> None:
        super().__init__(initial_time)
        self.seed = seed
        self.warm_up = warm_up
        self._draws: dict[str, _corsair.Draws] = {}

    def draw(self, distribution: Mapping[str, Any] | str) -> float:
        """Draws a number of seconds from a distribution of corsair, such as `exponential("3s")`.

        Each distribution has a separate stream of random numbers, which the environment's seed determines.
        """
        text = json.dumps(distribution)
        draws = self._draws.get(text)
        if draws is None:
            draws = self._draws[text] = _corsair.Draws(text, self.seed)
        return draws.draw()


def sample(env: Environment, given: float | Callable[[], float] | Mapping[str, Any] | str) -> float:
    """Returns the given number, the result of the given function, or a number drawn from the given distribution."""
    if callable(given):
        return given()
    if isinstance(given, (Mapping, str)):
        return env.draw(given)
    return given
