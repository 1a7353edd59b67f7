"""Classes that the native part instantiates and raises."""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .exceptions import Interrupt as Interrupt

if TYPE_CHECKING:
    from .._corsair import Event, Process

PENDING = object()
"""The value of an event that has not been triggered."""


class EmptySchedule(Exception):
    """Raised by `Environment.step` if no event is left."""


class StopSimulation(Exception):
    """Ends `Environment.run`, which returns the exception's argument."""

    @classmethod
    def callback(cls, event: Event) -> None:
        """Ends the run with the value of an event, or raises its exception."""
        if event.ok:
            raise cls(event.value)
        raise event.value


@dataclass(eq=False)
class Preempted:
    """The cause of the `Interrupt` in a process that has lost its slot."""

    by: Process | None
    """The process that took the slot."""
    usage_since: float | None
    """The time at which the process had got the slot."""
    resource: Any
    """The resource."""


class SortedQueue(list[Any]):
    """A queue of requests in the order of their keys."""

    def __init__(self, maxlen: int | None = None) -> None:
        super().__init__()
        self.maxlen = maxlen

    def append(self, item: Any) -> None:
        """Adds a request after the requests with the same key. Raises RuntimeError if `maxlen` requests wait."""
        if self.maxlen is not None and len(self) >= self.maxlen:
            raise RuntimeError("Cannot append event. Queue is full.")
        super().append(item)
        super().sort(key=lambda request: request.key)


def invalid_yield(generator: Any, value: object) -> str:
    """Returns the message for a process that yields something other than an event, with the line of the yield."""
    frame = getattr(generator, "gi_frame", None) or getattr(generator, "cr_frame", None)
    if frame is None:
        return f'Invalid yield value "{value}"'
    code = frame.f_code
    line = linecache.getline(code.co_filename, frame.f_lineno).strip()
    place = f'  File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}\n'
    source = f"    {line}\n" if line else ""
    return f'\n{place}{source}Invalid yield value "{value}"'
