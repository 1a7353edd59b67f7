"""Functions that start a process later, and that interrupt a process when an event happens."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from .._corsair import Event, Process
from .core import Environment, SimTime
from .events import ProcessGenerator

__all__ = ["start_delayed", "subscribe_at"]


def start_delayed(env: Environment, generator: ProcessGenerator, delay: SimTime) -> Process:
    """Starts a process for a generator after a delay. Returns a process whose value is the started process."""
    if delay <= 0:
        raise ValueError(f"delay(={delay}) must be > 0.")

    def starter() -> Generator[Event, Any, Process]:
        yield env.timeout(delay)
        return env.process(generator)

    return env.process(starter())


def subscribe_at(event: Event) -> None:
    """Interrupts the active process when an event happens, with the event and its value as the cause.

    Raises RuntimeError if the event has happened.
    """
    env = event.env
    subscriber = env.active_process
    if subscriber is None:
        raise RuntimeError("no process is active; subscribe_at is called in the process that is to be interrupted")
    if event.callbacks is None:
        raise RuntimeError(f"{event} has already terminated.")

    def signaller() -> ProcessGenerator:
        result = yield event
        if subscriber.is_alive:
            subscriber.interrupt((event, result))

    env.process(signaller())
