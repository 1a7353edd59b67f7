"""Slots: first come first served, by priority, and with preemption."""

from __future__ import annotations

from typing import Any, ClassVar

from ... import _corsair
from ..._corsair import PriorityRequest, Release, Request
from .._native import Preempted, SortedQueue
from .base import BaseResource

__all__ = [
    "PreemptiveResource",
    "Preempted",
    "PriorityRequest",
    "PriorityResource",
    "Release",
    "Request",
    "Resource",
    "SortedQueue",
]


class Resource(_corsair.Resource, BaseResource):
    """A resource with slots, which processes request and release.

    >>> from corsair import sim
    >>> def customer(env, counter):
    ...     with counter.request() as turn:
    ...         yield turn
    ...         yield env.timeout(3)
    ...     print(env.now)
    >>> env = sim.Environment()
    >>> counter = sim.Resource(env, capacity=1)
    >>> customers = [env.process(customer(env, counter)) for _ in range(2)]
    >>> env.run()
    3
    6
    """


class PriorityResource(_corsair.PriorityResource, Resource):
    """A resource whose requests have a priority; smaller numbers are served first."""

    PutQueue: ClassVar[type[Any]] = SortedQueue


class PreemptiveResource(_corsair.PreemptiveResource, PriorityResource):
    """A resource whose requests can preempt a user with a lower priority.

    The user is interrupted with a `Preempted` as the cause.
    """
