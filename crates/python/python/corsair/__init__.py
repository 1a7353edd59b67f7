"""corsair: architectures of services and actors, simulated in deterministic virtual time.

>>> import corsair
>>> shop = corsair.Architecture.built_in("lamp")
>>> result = corsair.run(shop, duration=2, seed=7)
>>> result.summary["errors"]
0
>>> result.percentile(0.99) < 0.1
True
"""

from . import _interpreter as _interpreter  # first: the native part comes next
from ._corsair import ArchitectureError, Context, Entry, SimulationError, Table
from .architecture import Architecture, Source, exponential, lognormal, percentiles, uniform
from .definition import (
    Arrivals,
    Autoscaler,
    Balance,
    Breaker,
    Cache,
    CallPolicy,
    Codel,
    Connections,
    Definition,
    Distribution,
    Ejection,
    Endpoint,
    EntryLoad,
    Fault,
    FaultKind,
    HealthCheck,
    Hedge,
    LinkFault,
    Network,
    Order,
    PlaceFault,
    Queue,
    Rate,
    RateLimit,
    RatePoint,
    Retries,
    RetryBudget,
    Service,
    Side,
    Step,
    Targets,
    TimeSpan,
)
from .experiments import Sweep, capacity, compare, learn, resume, run, sweep
from .result import Capacity, Comparison, Graph, Instances, Learned, Result
from .saving import Time
from .simulation import Actor, Address, ServiceSimulation, Simulation

__all__ = [
    "Actor",
    "Address",
    "Architecture",
    "ArchitectureError",
    "Arrivals",
    "Autoscaler",
    "Balance",
    "Breaker",
    "Cache",
    "CallPolicy",
    "Capacity",
    "Codel",
    "Comparison",
    "Connections",
    "Context",
    "Definition",
    "Distribution",
    "Ejection",
    "Endpoint",
    "Entry",
    "EntryLoad",
    "Fault",
    "FaultKind",
    "Graph",
    "HealthCheck",
    "Hedge",
    "Instances",
    "Learned",
    "LinkFault",
    "Network",
    "Order",
    "PlaceFault",
    "Queue",
    "Rate",
    "RateLimit",
    "RatePoint",
    "Result",
    "Retries",
    "RetryBudget",
    "Service",
    "ServiceSimulation",
    "Side",
    "Simulation",
    "SimulationError",
    "Source",
    "Step",
    "Sweep",
    "Table",
    "Targets",
    "Time",
    "TimeSpan",
    "capacity",
    "compare",
    "exponential",
    "learn",
    "lognormal",
    "percentiles",
    "resume",
    "run",
    "sweep",
    "uniform",
]
