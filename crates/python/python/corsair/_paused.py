"""The common base of simulations that are paused between calls."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Generic, TypeVar, Union

from . import _corsair

Native = TypeVar("Native", bound=Union[_corsair.Simulation, _corsair.Live])
Self = TypeVar("Self", bound="Paused[Any]")


class Paused(Generic[Native]):
    """A simulation that is paused between two calls, so that its state can be inspected."""

    def __init__(self, native: Native) -> None:
        self._native = native

    def step(self) -> bool:
        """Runs until the next event has happened. Returns False if no events are left."""
        return self._native.step()

    @property
    def now(self) -> float:
        """The virtual time in seconds. All events up to this time have happened."""
        return self._native.now

    @property
    def digest(self) -> str:
        """A digest of all events so far. Two simulations with the same digest had the same events."""
        return self._native.digest

    def close(self) -> None:
        """Ends the simulation without a result, and releases its actors."""
        self._native.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a simulation cannot be pickled; pickle what made it, and make it again")
