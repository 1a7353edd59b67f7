"""An environment that follows the wall clock."""

from __future__ import annotations

from time import monotonic, sleep

from .core import EmptySchedule, Environment, SimTime

__all__ = ["RealtimeEnvironment"]


class RealtimeEnvironment(Environment):
    """Processes events at their times on the wall clock, where a unit of time takes `factor` seconds.

    If `strict` is true, an event that is more than a unit of time late raises RuntimeError.
    """

    def __init__(self, initial_time: SimTime = 0, factor: float = 1.0, strict: bool = True) -> None:
        super().__init__(initial_time)
        self.env_start = initial_time
        self.real_start = monotonic()
        self._factor = factor
        self._strict = strict

    @property
    def factor(self) -> float:
        """The number of seconds in a unit of time."""
        return self._factor

    @property
    def strict(self) -> bool:
        """True if an event that is too late raises an error."""
        return self._strict

    def sync(self) -> None:
        """Restarts the clock now, for example after a long preparation."""
        self.real_start = monotonic()

    def step(self) -> None:
        """Waits for the time of the next event, and processes it."""
        time = self.peek()
        if time == float("inf"):
            raise EmptySchedule
        due = self.real_start + (time - self.env_start) * self.factor
        late = monotonic() - due
        if self.strict and late > self.factor:
            raise RuntimeError(f"Simulation too slow for real time ({late:.3f}s).")
        while (early := due - monotonic()) > 0:
            sleep(early)
        super().step()
