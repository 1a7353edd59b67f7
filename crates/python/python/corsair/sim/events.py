"""Events, processes and conditions."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from .._corsair import AllOf, AnyOf, Condition, ConditionValue, Event, Initialize, Interruption, Process, Timeout
from ._native import PENDING
from .exceptions import Interrupt

__all__ = [
    "NORMAL",
    "PENDING",
    "URGENT",
    "AllOf",
    "AnyOf",
    "Condition",
    "ConditionValue",
    "Event",
    "EventPriority",
    "Initialize",
    "Interrupt",
    "Interruption",
    "Process",
    "ProcessGenerator",
    "Timeout",
]

EventPriority = int
URGENT: EventPriority = 0
"""Priority of interrupts and of the start of processes."""
NORMAL: EventPriority = 1
"""Priority of all other events."""

ProcessGenerator = Generator[Event, Any, Any]
