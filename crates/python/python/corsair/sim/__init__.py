"""Simulations of processes, with the interface of SimPy: `from corsair import sim as simpy`.

>>> from corsair import sim
>>> def car(env):
...     print("parks at", env.now)
...     yield env.timeout(5)
...     print("drives at", env.now)
>>> env = sim.Environment()
>>> process = env.process(car(env))
>>> env.run()
parks at 0
drives at 5

A process can be an `async def` as well:

>>> async def truck(env):
...     await env.sleep(2)
...     return env.now
>>> env.run(env.process(truck(env)))
7
"""

from __future__ import annotations

from .core import Environment
from .events import AllOf, AnyOf, Event, Process, Timeout
from .exceptions import Interrupt, SimPyException
from .monitor import Level, Tally, Watch, watch
from .replication import Replications, replicate
from .resources.container import Container
from .resources.resource import PreemptiveResource, PriorityResource, Resource
from .resources.store import FilterStore, PriorityItem, PriorityStore, Store
from .rt import RealtimeEnvironment

__all__ = [
    "AllOf",
    "AnyOf",
    "Container",
    "Environment",
    "Event",
    "FilterStore",
    "Interrupt",
    "Level",
    "PreemptiveResource",
    "PriorityItem",
    "PriorityResource",
    "PriorityStore",
    "Process",
    "RealtimeEnvironment",
    "Replications",
    "Resource",
    "SimPyException",
    "Store",
    "Tally",
    "Timeout",
    "Watch",
    "replicate",
    "watch",
]
