"""The parts of a definition, as plain objects.

Made by generate.py from the JSON schema of definitions; change the types of crates/arch/src/definition.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Union

from ._part import Part

__all__ = [
    "Arrivals",
    "Autoscaler",
    "Balance",
    "Breaker",
    "Cache",
    "CallPolicy",
    "Codel",
    "Connections",
    "Definition",
    "Distribution",
    "Ejection",
    "Endpoint",
    "EntryLoad",
    "Fault",
    "FaultKind",
    "HealthCheck",
    "Hedge",
    "LinkFault",
    "Machine",
    "Network",
    "Order",
    "PlaceFault",
    "Places",
    "Queue",
    "Rate",
    "RateLimit",
    "RatePoint",
    "Retries",
    "RetryBudget",
    "Service",
    "Side",
    "Step",
    "Targets",
    "TimeSpan",
]

TimeSpan = str
"""A time with its unit: 250us, 1.5ms, 2s, 1m30s."""

Distribution = Union[str, dict[str, Any]]
"""How long something takes: a time, or a distribution of times, which the functions of
these names make."""

Targets = Union[str, dict[str, float]]
"""What is called: an endpoint, or one of several by weight."""

Arrivals = Literal["constant", "poisson", "uniform"]
"""The distribution of the times between requests. constant: Equal times. poisson: Exponentially distributed times,
so requests are independent of each other. uniform: Uniformly distributed times between zero and twice the mean.
"""

Balance = Literal["random", "round_robin", "least_requests", "two_choices", "hash", "zone"]
"""The choice of the instance for a call. random: Any instance, with equal probability. round_robin: The instances
in turn. least_requests: The instance with the fewest requests of this caller in flight. two_choices: Of two
random instances, the one with fewer requests of this caller in flight. hash: The instance that the request's
key hashes to, or the next one if that instance is overloaded. zone: Any instance in the caller's zone; an
instance of another zone if the caller's zone has none or all are busy.
"""

FaultKind = Literal["kill", "pause", "slow", "partition", "restart"]
"""The kind of fault. kill: The instance is gone: requests to it fail, and it leaves the registry. pause: The
instance does nothing; requests to it wait. slow: The instance works more slowly. partition: The instance is cut
off from other zones: messages between it and other zones are lost. restart: One instance after the other leaves
its registries, goes down, and comes back.
"""

Order = Literal["fifo", "lifo", "priority"]
"""The order in which requests leave a queue. fifo: The request that arrived first. lifo: The request that arrived
last. priority: The request with the highest priority; among equal priorities the one that arrived first.
"""

Rate = Union[float, "list[RatePoint]", dict[str, str]]
"""Requests per second: a number, points of a profile, or a curve from a file, {'csv': 'curve.csv'}."""


@dataclass(slots=True)
class Autoscaler(Part):
    """Adds and removes instances in each region separately to keep their utilisation near a target.

    Fields:
    most: The maximum number of instances in each region. Example: 10.
    target: The target utilisation of slots or processors, above 0 and up to 1. Example: 0.6.
    calm: The time for which there must be too many instances before some are removed. Default: "5m". Example:
        "10m".
    delay: The start-up time of an added instance. Default: "30s". Example: "1m".
    every: The interval between two decisions. Default: "15s". Example: "30s".
    least: The minimum number of instances in each region. Default: 1. Example: 2.
    """

    most: int
    """The maximum number of instances in each region. Example: 10."""
    target: float
    """The target utilisation of slots or processors, above 0 and up to 1. Example: 0.6."""
    calm: TimeSpan | None = None
    """The time for which there must be too many instances before some are removed. Default: "5m". Example: "10m"."""
    delay: TimeSpan | None = None
    """The start-up time of an added instance. Default: "30s". Example: "1m"."""
    every: TimeSpan | None = None
    """The interval between two decisions. Default: "15s". Example: "30s"."""
    least: int | None = None
    """The minimum number of instances in each region. Default: 1. Example: 2."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "most": ("most", None),
        "target": ("target", None),
        "calm": ("calm", None),
        "delay": ("delay", None),
        "every": ("every", None),
        "least": ("least", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["most", "target"])


@dataclass(slots=True)
class Breaker(Part):
    """Stops calls temporarily when too many attempts fail.

    Fields:
    failures: The fraction of failed attempts that opens the breaker, above 0 and up to 1. Example: 0.5.
    open: The time that the breaker stays open. Example: "5s".
    probes: The number of attempts that the breaker lets through after the open time; if all succeed, it closes.
        Default: 1. Example: 3.
    window: The number of most recent attempts that count, up to 1024; the breaker stays closed until that
        number is reached. Default: 20. Example: 100.
    """

    failures: float
    """The fraction of failed attempts that opens the breaker, above 0 and up to 1. Example: 0.5."""
    open: TimeSpan
    """The time that the breaker stays open. Example: "5s"."""
    probes: int | None = None
    """The number of attempts that the breaker lets through after the open time; if all succeed, it closes.
    Default: 1. Example: 3.
    """
    window: int | None = None
    """The number of most recent attempts that count, up to 1024; the breaker stays closed until that number is
    reached. Default: 20. Example: 100.
    """

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "failures": ("failures", None),
        "open": ("open", None),
        "probes": ("probes", None),
        "window": ("window", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["failures", "open"])


@dataclass(slots=True)
class Cache(Part):
    """A cache: either with a given hit rate, or with a time to live and a size, filled by misses.

    Fields:
    hit_rate: The fraction of look-ups that hit, from 0 to 1. Default: a look-up hits if the cache has the
        value. Example: 0.9.
    keys: The number of keys. Default: look-ups use the request's key. Example: 10000.
    size: The maximum number of values; the least recently used value is evicted. Default: no limit. Example:
        1000.
    skew: The exponent of the keys' popularity (Zipf's law), up to 3. Default: all keys are equally likely.
        Example: 0.9.
    ttl: The time to live of a value. Default: no expiry. Example: "10s".
    """

    hit_rate: float | None = None
    """The fraction of look-ups that hit, from 0 to 1. Default: a look-up hits if the cache has the value. Example:
    0.9.
    """
    keys: int | None = None
    """The number of keys. Default: look-ups use the request's key. Example: 10000."""
    size: int | None = None
    """The maximum number of values; the least recently used value is evicted. Default: no limit. Example: 1000."""
    skew: float | None = None
    """The exponent of the keys' popularity (Zipf's law), up to 3. Default: all keys are equally likely. Example:
    0.9.
    """
    ttl: TimeSpan | None = None
    """The time to live of a value. Default: no expiry. Example: "10s"."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "hit_rate": ("hit_rate", None),
        "keys": ("keys", None),
        "size": ("size", None),
        "skew": ("skew", None),
        "ttl": ("ttl", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset([])


@dataclass(slots=True)
class CallPolicy(Part):
    """The policy for calls to a service: choice of instance, connections and handling of failures.

    Fields:
    balance: The choice of the instance. Default: "random". Example: "two_choices".
    breaker: Stops calls temporarily when too many attempts fail. Default: none. Example: {"failures": 0.5,
        "open": "5s"}.
    bulkhead: The maximum number of concurrent calls of an instance; further calls fail at once. Default: no
        limit. Example: 40.
    connections: The connections of an instance to the service. Default: no limit, always open. Example:
        {"most": 20, "waiting": 100}.
    deadline: The time limit of the call with all its attempts. The deadline travels with the request: an
        instance that receives the request too late refuses it, and no caller waits past the deadline. Default:
        no limit. Example: "1s".
    ejection: Excludes instances that fail repeatedly. Default: none. Example: {"failures": 5, "for": "30s"}.
    hash_bound: With hash: the maximum load of an instance, as a multiple of its even share of the requests in
        flight. Default: 1.25. Example: 1.5.
    hedge: Asks a second instance when the first is slow, and takes the first answer. Default: none. Example:
        {"after": "20ms"}.
    rate_limit: The maximum rate of calls of an instance; further calls fail at once. Default: no limit.
        Example: {"rate": 400, "burst": 20}.
    retries: Retries after failed attempts. Default: none. Example: {"most": 2, "backoff": "50ms"}.
    timeout: The time-out of an attempt. Default: no limit. Example: "200ms".
    zone_spill: With zone: other zones are used when each instance of the caller's zone has this number of
        requests of the caller in flight. Default: only when the zone has no instance. Example: 2.
    """

    balance: Balance | None = None
    """The choice of the instance. Default: "random". Example: "two_choices"."""
    breaker: Breaker | None = None
    """Stops calls temporarily when too many attempts fail. Default: none. Example: {"failures": 0.5, "open":
    "5s"}.
    """
    bulkhead: int | None = None
    """The maximum number of concurrent calls of an instance; further calls fail at once. Default: no limit.
    Example: 40.
    """
    connections: Connections | None = None
    """The connections of an instance to the service. Default: no limit, always open. Example: {"most": 20,
    "waiting": 100}.
    """
    deadline: TimeSpan | None = None
    """The time limit of the call with all its attempts. The deadline travels with the request: an instance that
    receives the request too late refuses it, and no caller waits past the deadline. Default: no limit. Example:
    "1s".
    """
    ejection: Ejection | None = None
    """Excludes instances that fail repeatedly. Default: none. Example: {"failures": 5, "for": "30s"}."""
    hash_bound: float | None = None
    """With hash: the maximum load of an instance, as a multiple of its even share of the requests in flight.
    Default: 1.25. Example: 1.5.
    """
    hedge: Hedge | None = None
    """Asks a second instance when the first is slow, and takes the first answer. Default: none. Example: {"after":
    "20ms"}.
    """
    rate_limit: RateLimit | None = None
    """The maximum rate of calls of an instance; further calls fail at once. Default: no limit. Example: {"rate":
    400, "burst": 20}.
    """
    retries: Retries | None = None
    """Retries after failed attempts. Default: none. Example: {"most": 2, "backoff": "50ms"}."""
    timeout: TimeSpan | None = None
    """The time-out of an attempt. Default: no limit. Example: "200ms"."""
    zone_spill: int | None = None
    """With zone: other zones are used when each instance of the caller's zone has this number of requests of the
    caller in flight. Default: only when the zone has no instance. Example: 2.
    """

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "balance": ("balance", None),
        "breaker": ("breaker", "part Breaker"),
        "bulkhead": ("bulkhead", None),
        "connections": ("connections", "part Connections"),
        "deadline": ("deadline", None),
        "ejection": ("ejection", "part Ejection"),
        "hash_bound": ("hash_bound", None),
        "hedge": ("hedge", "part Hedge"),
        "rate_limit": ("rate_limit", "part RateLimit"),
        "retries": ("retries", "part Retries"),
        "timeout": ("timeout", None),
        "zone_spill": ("zone_spill", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset([])


@dataclass(slots=True)
class Codel(Part):
    """Controlled delay (RFC 8289).

    Fields:
    interval: The time for which waits must exceed the target before the first request is refused. Example:
        "100ms".
    target: The acceptable waiting time. Example: "5ms".
    """

    interval: TimeSpan
    """The time for which waits must exceed the target before the first request is refused. Example: "100ms"."""
    target: TimeSpan
    """The acceptable waiting time. Example: "5ms"."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "interval": ("interval", None),
        "target": ("target", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["interval", "target"])


@dataclass(slots=True)
class Connections(Part):
    """The connections of an instance to a service that it calls.

    Fields:
    most: The maximum number of connections. Each carries one request at a time. Example: 20.
    connect: The time to open a connection. Default: "0s". Example: "2ms".
    waiting: The maximum number of calls that wait for a connection; further calls fail at once. Default: no
        limit. Example: 100.
    """

    most: int
    """The maximum number of connections. Each carries one request at a time. Example: 20."""
    connect: TimeSpan | None = None
    """The time to open a connection. Default: "0s". Example: "2ms"."""
    waiting: int | None = None
    """The maximum number of calls that wait for a connection; further calls fail at once. Default: no limit.
    Example: 100.
    """

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "most": ("most", None),
        "connect": ("connect", None),
        "waiting": ("waiting", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["most"])


@dataclass(slots=True)
class Ejection(Part):
    """Excludes instances that fail repeatedly.

    Fields:
    failures: The number of consecutive failed attempts that excludes an instance. Example: 5.
    for_: The time for which the instance is excluded. Example: "30s".
    most: The maximum fraction of excluded instances. Default: 0.5. Example: 0.25.
    """

    failures: int
    """The number of consecutive failed attempts that excludes an instance. Example: 5."""
    for_: TimeSpan
    """The time for which the instance is excluded. Example: "30s"."""
    most: float | None = None
    """The maximum fraction of excluded instances. Default: 0.5. Example: 0.25."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "failures": ("failures", None),
        "for_": ("for", None),
        "most": ("most", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["failures", "for"])


@dataclass(slots=True)
class Endpoint(Part):
    """An endpoint of a service and the steps of each request.

    Fields:
    name: The name, unique in the service. Example: "list".
    latency: The network latency of requests to the endpoint and of its answers. Default: the latency of its
        service. Example: {"exponential": "300us"}.
    priority: The priority, from 0 to 7, for queues that order by priority. Default: the priority of the calling
        request, or 0. Example: 5.
    steps: The steps, in this order. Default: []. Example: [{"work": "2ms"}, {"call": "db"}].
    """

    name: str
    """The name, unique in the service. Example: "list"."""
    latency: Distribution | None = None
    """The network latency of requests to the endpoint and of its answers. Default: the latency of its service.
    Example: {"exponential": "300us"}.
    """
    priority: int | None = None
    """The priority, from 0 to 7, for queues that order by priority. Default: the priority of the calling request,
    or 0. Example: 5.
    """
    steps: list[Step] = field(default_factory=list)
    """The steps, in this order. Default: []. Example: [{"work": "2ms"}, {"call": "db"}]."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "name": ("name", None),
        "latency": ("latency", None),
        "priority": ("priority", None),
        "steps": ("steps", "list part Step"),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["name"])


@dataclass(slots=True)
class EntryLoad(Part):
    """The load of an entry point: exactly one of a rate, users and recorded arrivals.

    Fields:
    arrivals: With a rate: the distribution of the times between requests. Default: "constant". Example:
        "poisson".
    keys: The number of equally likely keys of requests to endpoints. Default: 1000000. Example: 1000.
    rate: Open loop: requests per second, independent of the response time. Default: none. Example: 200.
    replay: A CSV file of recorded arrivals with a column time and optionally kind; the path is relative to the
        definition. Default: none. Example: "arrivals.csv".
    requests: The weights of the kinds of requests: common, read, write, and endpoints of services. Default:
        common, read and write, one third each. Example: {"cart.list": 9, "cart.buy": 1}.
    think: With users: the think time. Default: "0s". Example: {"exponential": "5s"}.
    users: Closed loop: the number of users, each of whom waits for an answer, thinks, and sends the next
        request. Default: none. Example: 40.
    """

    arrivals: Arrivals | None = None
    """With a rate: the distribution of the times between requests. Default: "constant". Example: "poisson"."""
    keys: int | None = None
    """The number of equally likely keys of requests to endpoints. Default: 1000000. Example: 1000."""
    rate: Rate | None = None
    """Open loop: requests per second, independent of the response time. Default: none. Example: 200."""
    replay: str | None = None
    """A CSV file of recorded arrivals with a column time and optionally kind; the path is relative to the
    definition. Default: none. Example: "arrivals.csv".
    """
    requests: dict[str, float] = field(default_factory=dict)
    """The weights of the kinds of requests: common, read, write, and endpoints of services. Default: common, read
    and write, one third each. Example: {"cart.list": 9, "cart.buy": 1}.
    """
    think: Distribution | None = None
    """With users: the think time. Default: "0s". Example: {"exponential": "5s"}."""
    users: int | None = None
    """Closed loop: the number of users, each of whom waits for an answer, thinks, and sends the next request.
    Default: none. Example: 40.
    """

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "arrivals": ("arrivals", None),
        "keys": ("keys", None),
        "rate": ("rate", "rate"),
        "replay": ("replay", None),
        "requests": ("requests", None),
        "think": ("think", None),
        "users": ("users", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset([])


@dataclass(slots=True)
class Fault(Part):
    """A fault of a service's instances.

    Fields:
    at: The time of the fault, from the start of the load. Example: "10s".
    kind: The kind of fault. Example: "slow".
    drain: For restart: the time between leaving the registries and going down. Default: "0s". Example: "5s".
    every: The interval at which the fault repeats, until the load ends. Default: once. Example: "1m".
    factor: For slow: the factor by which times are multiplied. Default: 10. Example: 3.
    for_: The duration. Default: until the end. For restart: the downtime of each instance. Example: "5s".
    gap: For restart: the pause between two instances. Default: "0s". Example: "10s".
    probability: The probability of each occurrence, from 0 to 1. Default: 1. Example: 0.5.
    share: The fraction of the instances, above 0 and up to 1; at least one instance. Default: 1. Example: 0.25.
    """

    at: TimeSpan
    """The time of the fault, from the start of the load. Example: "10s"."""
    kind: FaultKind
    """The kind of fault. Example: "slow"."""
    drain: TimeSpan | None = None
    """For restart: the time between leaving the registries and going down. Default: "0s". Example: "5s"."""
    every: TimeSpan | None = None
    """The interval at which the fault repeats, until the load ends. Default: once. Example: "1m"."""
    factor: float | None = None
    """For slow: the factor by which times are multiplied. Default: 10. Example: 3."""
    for_: TimeSpan | None = None
    """The duration. Default: until the end. For restart: the downtime of each instance. Example: "5s"."""
    gap: TimeSpan | None = None
    """For restart: the pause between two instances. Default: "0s". Example: "10s"."""
    probability: float | None = None
    """The probability of each occurrence, from 0 to 1. Default: 1. Example: 0.5."""
    share: float | None = None
    """The fraction of the instances, above 0 and up to 1; at least one instance. Default: 1. Example: 0.25."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "at": ("at", None),
        "kind": ("kind", None),
        "drain": ("drain", None),
        "every": ("every", None),
        "factor": ("factor", None),
        "for_": ("for", None),
        "gap": ("gap", None),
        "probability": ("probability", None),
        "share": ("share", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["at", "kind"])


@dataclass(slots=True)
class HealthCheck(Part):
    """Checks instances periodically. An instance that does not answer is removed from the registries until it
    answers again.

    Fields:
    every: The interval between two checks; an answer must arrive before the next check. Example: "5s".
    failures: The number of consecutive checks without an answer that removes an instance. Default: 3. Example:
        2.
    successes: The number of consecutive checks with an answer that restores the instance. Default: 1. Example:
        2.
    """

    every: TimeSpan
    """The interval between two checks; an answer must arrive before the next check. Example: "5s"."""
    failures: int | None = None
    """The number of consecutive checks without an answer that removes an instance. Default: 3. Example: 2."""
    successes: int | None = None
    """The number of consecutive checks with an answer that restores the instance. Default: 1. Example: 2."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "every": ("every", None),
        "failures": ("failures", None),
        "successes": ("successes", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["every"])


@dataclass(slots=True)
class Hedge(Part):
    """Asks further instances when the first is slow.

    Fields:
    after: The wait before each further request. Example: "20ms".
    most: The maximum number of further requests, one after the other. Default: 1. Example: 2.
    """

    after: TimeSpan
    """The wait before each further request. Example: "20ms"."""
    most: int | None = None
    """The maximum number of further requests, one after the other. Default: 1. Example: 2."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "after": ("after", None),
        "most": ("most", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["after"])


@dataclass(slots=True)
class LinkFault(Part):
    """A fault of the link from one place to another, which affects requests, answers and values in this direction.

    Fields:
    at: The time of the fault, from the start of the load. Example: "10s".
    delay: The additional latency. Default: "0s". Example: {"exponential": "2ms"}.
    duplicate: The fraction of messages that arrive twice, from 0 to 1. Default: 0. Example: 0.05.
    every: The interval at which the fault repeats, until the load ends. Default: once. Example: "1m".
    for_: The duration. Default: until the end. Example: "5s".
    from_: The sending side. Default: any. Example: {"zone": "zoneA"}.
    loss: The fraction of messages that are lost, from 0 to 1; 1 is a partition. Default: 0. Example: 0.1.
    probability: The probability of each occurrence, from 0 to 1. Default: 1. Example: 0.5.
    to: The receiving side. Default: any. Example: {"service": "db"}.
    """

    at: TimeSpan
    """The time of the fault, from the start of the load. Example: "10s"."""
    delay: Distribution | None = None
    """The additional latency. Default: "0s". Example: {"exponential": "2ms"}."""
    duplicate: float | None = None
    """The fraction of messages that arrive twice, from 0 to 1. Default: 0. Example: 0.05."""
    every: TimeSpan | None = None
    """The interval at which the fault repeats, until the load ends. Default: once. Example: "1m"."""
    for_: TimeSpan | None = None
    """The duration. Default: until the end. Example: "5s"."""
    from_: Side | None = None
    """The sending side. Default: any. Example: {"zone": "zoneA"}."""
    loss: float | None = None
    """The fraction of messages that are lost, from 0 to 1; 1 is a partition. Default: 0. Example: 0.1."""
    probability: float | None = None
    """The probability of each occurrence, from 0 to 1. Default: 1. Example: 0.5."""
    to: Side | None = None
    """The receiving side. Default: any. Example: {"service": "db"}."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "at": ("at", None),
        "delay": ("delay", None),
        "duplicate": ("duplicate", None),
        "every": ("every", None),
        "for_": ("for", None),
        "from_": ("from", "part Side"),
        "loss": ("loss", None),
        "probability": ("probability", None),
        "to": ("to", "part Side"),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["at"])


@dataclass(slots=True)
class Machine(Part):
    """A machine. In each region there is one, and the work of all services on it shares its processors evenly.

    Fields:
    processors: The number of processors. Example: 4.
    faults: Faults of the machine, which affect the work of all its services. Default: []. Example: [{"kind":
        "pause", "at": "1s", "for": "50ms", "every": "1s"}].
    time_slice: The requests take turns of at most this time instead of sharing the processors evenly. Default:
        none. Example: "3ms".
    """

    processors: float
    """The number of processors. Example: 4."""
    faults: list[Fault] = field(default_factory=list)
    """Faults of the machine, which affect the work of all its services. Default: []. Example: [{"kind": "pause",
    "at": "1s", "for": "50ms", "every": "1s"}].
    """
    time_slice: TimeSpan | None = None
    """The requests take turns of at most this time instead of sharing the processors evenly. Default: none.
    Example: "3ms".
    """

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "processors": ("processors", None),
        "faults": ("faults", "list part Fault"),
        "time_slice": ("time_slice", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["processors"])


@dataclass(slots=True)
class Network(Part):
    """Network latencies by distance. An omitted latency has a default.

    Fields:
    other_region: The latency between two regions whose pair is not in regions. Default: measured times, ±10 %.
        Example: "60ms".
    regions: The latencies of pairs of regions, in both directions; a key is, for example, us-east-1..us-west-2.
        Default: measured times, ±10 %. Example: {"us-east-1..us-west-2": "60ms"}.
    same_region: The latency between zones of one region. Default: {"uniform": ["400us", "600us"]}. Example:
        {"exponential": "500us"}.
    same_zone: The latency between instances of one zone. Default: {"uniform": ["200us", "300us"]}. Example:
        "250us".
    """

    other_region: Distribution | None = None
    """The latency between two regions whose pair is not in regions. Default: measured times, ±10 %. Example:
    "60ms".
    """
    regions: dict[str, Distribution] = field(default_factory=dict)
    """The latencies of pairs of regions, in both directions; a key is, for example, us-east-1..us-west-2. Default:
    measured times, ±10 %. Example: {"us-east-1..us-west-2": "60ms"}.
    """
    same_region: Distribution | None = None
    """The latency between zones of one region. Default: {"uniform": ["400us", "600us"]}. Example: {"exponential":
    "500us"}.
    """
    same_zone: Distribution | None = None
    """The latency between instances of one zone. Default: {"uniform": ["200us", "300us"]}. Example: "250us"."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "other_region": ("other_region", None),
        "regions": ("regions", None),
        "same_region": ("same_region", None),
        "same_zone": ("same_zone", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset([])


@dataclass(slots=True)
class PlaceFault(Part):
    """A fault of all or some services in a region or zone.

    Fields:
    at: The time of the fault, from the start of the load. Example: "10s".
    kind: The kind of fault. Example: "kill".
    drain: For restart: the time between leaving the registries and going down. Default: "0s". Example: "5s".
    every: The interval at which the fault repeats, until the load ends. Default: once. Example: "1m".
    factor: For slow: the factor by which times are multiplied. Default: 10. Example: 3.
    for_: The duration. Default: until the end. For restart: the downtime of each instance. Example: "5s".
    gap: For restart: the pause between two instances. Default: "0s". Example: "10s".
    probability: The probability of each occurrence, from 0 to 1. Default: 1. Example: 0.5.
    region: The region, such as us-east-1. Default: all. Example: "us-east-1".
    services: The services. Default: all services that accept requests. Example: ["cart", "search"].
    share: The fraction of the instances in the region or zone, above 0 and up to 1; at least one instance.
        Default: 1. Example: 0.25.
    zone: The zone of the region, such as zoneA. Default: all. Example: "zoneA".
    """

    at: TimeSpan
    """The time of the fault, from the start of the load. Example: "10s"."""
    kind: FaultKind
    """The kind of fault. Example: "kill"."""
    drain: TimeSpan | None = None
    """For restart: the time between leaving the registries and going down. Default: "0s". Example: "5s"."""
    every: TimeSpan | None = None
    """The interval at which the fault repeats, until the load ends. Default: once. Example: "1m"."""
    factor: float | None = None
    """For slow: the factor by which times are multiplied. Default: 10. Example: 3."""
    for_: TimeSpan | None = None
    """The duration. Default: until the end. For restart: the downtime of each instance. Example: "5s"."""
    gap: TimeSpan | None = None
    """For restart: the pause between two instances. Default: "0s". Example: "10s"."""
    probability: float | None = None
    """The probability of each occurrence, from 0 to 1. Default: 1. Example: 0.5."""
    region: str | None = None
    """The region, such as us-east-1. Default: all. Example: "us-east-1"."""
    services: list[str] = field(default_factory=list)
    """The services. Default: all services that accept requests. Example: ["cart", "search"]."""
    share: float | None = None
    """The fraction of the instances in the region or zone, above 0 and up to 1; at least one instance. Default: 1.
    Example: 0.25.
    """
    zone: str | None = None
    """The zone of the region, such as zoneA. Default: all. Example: "zoneA"."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "at": ("at", None),
        "kind": ("kind", None),
        "drain": ("drain", None),
        "every": ("every", None),
        "factor": ("factor", None),
        "for_": ("for", None),
        "gap": ("gap", None),
        "probability": ("probability", None),
        "region": ("region", None),
        "services": ("services", None),
        "share": ("share", None),
        "zone": ("zone", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["at", "kind"])


@dataclass(slots=True)
class Places(Part):
    """Names and addresses of regions and zones. Default: spigo's.

    Fields:
    addresses: The first two numbers of addresses, for each zone of each region, for example 10.1. Default:
        spigo's. Example: [["10.1", "10.2"], ["10.3", "10.4"]].
    regions: The names of regions, in the order in which runs use them. Default: spigo's six. Example: ["paris",
        "rome"].
    zones: The names of the zones of each region. Default: zoneA, zoneB and zoneC. Example: ["east", "west"].
    """

    addresses: list[list[str]] = field(default_factory=list)
    """The first two numbers of addresses, for each zone of each region, for example 10.1. Default: spigo's.
    Example: [["10.1", "10.2"], ["10.3", "10.4"]].
    """
    regions: list[str] = field(default_factory=list)
    """The names of regions, in the order in which runs use them. Default: spigo's six. Example: ["paris", "rome"]."""
    zones: list[str] = field(default_factory=list)
    """The names of the zones of each region. Default: zoneA, zoneB and zoneC. Example: ["east", "west"]."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "addresses": ("addresses", None),
        "regions": ("regions", None),
        "zones": ("zones", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset([])


@dataclass(slots=True)
class Queue(Part):
    """The queue for an instance's slots.

    Fields:
    codel: Controlled delay (RFC 8289): while all requests wait longer than the target, requests are refused at
        a growing rate. Default: none. Example: {"target": "5ms", "interval": "100ms"}.
    order: The order in which requests leave the queue. Default: "fifo". Example: "lifo".
    patience: The longest wait; a request that has waited this long is refused. Default: no limit. Example:
        "1s".
    size: The maximum number of waiting requests. Further requests are refused; if priorities order the queue,
        the lowest priority is refused first. Default: no limit. Example: 100.
    """

    codel: Codel | None = None
    """Controlled delay (RFC 8289): while all requests wait longer than the target, requests are refused at a
    growing rate. Default: none. Example: {"target": "5ms", "interval": "100ms"}.
    """
    order: Order | None = None
    """The order in which requests leave the queue. Default: "fifo". Example: "lifo"."""
    patience: TimeSpan | None = None
    """The longest wait; a request that has waited this long is refused. Default: no limit. Example: "1s"."""
    size: int | None = None
    """The maximum number of waiting requests. Further requests are refused; if priorities order the queue, the
    lowest priority is refused first. Default: no limit. Example: 100.
    """

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "codel": ("codel", "part Codel"),
        "order": ("order", None),
        "patience": ("patience", None),
        "size": ("size", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset([])


@dataclass(slots=True)
class RateLimit(Part):
    """A rate limit with evenly spaced calls.

    Fields:
    rate: Calls per second. Example: 300.
    burst: The maximum number of calls at once after a time without calls. Default: 1. Example: 50.
    """

    rate: float
    """Calls per second. Example: 300."""
    burst: float | None = None
    """The maximum number of calls at once after a time without calls. Default: 1. Example: 50."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "rate": ("rate", None),
        "burst": ("burst", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["rate"])


@dataclass(slots=True)
class RatePoint(Part):
    """A point of a profile.

    Fields:
    at: The time of the point, from the start of the load. Example: "10s".
    rate: Requests per second from this time on. Example: 500.
    ramp: True: the rate changes linearly from the previous point to this one. False: it changes at once.
        Default: false. Example: true.
    """

    at: TimeSpan
    """The time of the point, from the start of the load. Example: "10s"."""
    rate: float
    """Requests per second from this time on. Example: 500."""
    ramp: bool = False
    """True: the rate changes linearly from the previous point to this one. False: it changes at once. Default:
    false. Example: true.
    """

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "at": ("at", None),
        "rate": ("rate", None),
        "ramp": ("ramp", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["at", "rate"])


@dataclass(slots=True)
class Retries(Part):
    """Retries after failed attempts.

    Fields:
    most: The maximum number of retries. Example: 2.
    backoff: The wait before the first retry. Default: "0s". Example: "50ms".
    budget: The limit of retries as a fraction of calls. Default: no limit. Example: {"share": 0.2}.
    factor: The factor by which the wait grows with each retry. Default: 2. Example: 3.
    jitter: The random fraction of each wait, from 0 to 1. Default: 0. Example: 0.5.
    limit: The longest wait. Default: "10s". Example: "1s".
    """

    most: int
    """The maximum number of retries. Example: 2."""
    backoff: TimeSpan | None = None
    """The wait before the first retry. Default: "0s". Example: "50ms"."""
    budget: RetryBudget | None = None
    """The limit of retries as a fraction of calls. Default: no limit. Example: {"share": 0.2}."""
    factor: float | None = None
    """The factor by which the wait grows with each retry. Default: 2. Example: 3."""
    jitter: float | None = None
    """The random fraction of each wait, from 0 to 1. Default: 0. Example: 0.5."""
    limit: TimeSpan | None = None
    """The longest wait. Default: "10s". Example: "1s"."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "most": ("most", None),
        "backoff": ("backoff", None),
        "budget": ("budget", "part RetryBudget"),
        "factor": ("factor", None),
        "jitter": ("jitter", None),
        "limit": ("limit", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["most"])


@dataclass(slots=True)
class RetryBudget(Part):
    """Limits the retries of each instance to a fraction of its calls.

    Fields:
    share: Retries allowed for each call, as a fraction of the calls. Example: 0.2.
    burst: The maximum number of saved retries; the budget starts with this number. Default: 10. Example: 20.
    """

    share: float
    """Retries allowed for each call, as a fraction of the calls. Example: 0.2."""
    burst: float | None = None
    """The maximum number of saved retries; the budget starts with this number. Default: 10. Example: 20."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "share": ("share", None),
        "burst": ("burst", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["share"])


@dataclass(slots=True)
class Service(Part):
    """A service of an architecture.

    Fields:
    name: The name, unique in the architecture. Example: "db".
    package: The package that implements the service. Example: "service".
    autoscaler: Adds and removes instances; count is the initial number. Default: none. Example: {"target": 0.6,
        "least": 2, "most": 10}.
    calls: For the package service: the policy for calls to each service; * applies to services without an
        entry. Default: calls without a policy. Example: {"*": {"timeout": "200ms", "retries": {"most": 2}}}.
    concurrency: The maximum number of requests that an instance handles at once; further requests queue.
        Default: no limit. Example: 4.
    container: The container image of the instances. Default: "". Example: "redis:8".
    count: The number of instances in each region; 0: one instance outside all zones. Default: 0. Example: 3.
    dependencies: The services that this service calls. A ring of stores that also lists eureka connects to the
        same ring in other regions. Default: []. Example: ["db", "cache"].
    endpoints: For the package service: the endpoints. The first endpoint is the default. Default: []. Example:
        [{"name": "list", "steps": [{"work": "2ms"}, {"call": "db"}]}].
    error_rate: The fraction of requests that fail, from 0 to 1. Default: 0. Example: 0.01.
    faults: Faults of the service's instances, with their times. Default: []. Example: [{"kind": "slow", "at":
        "10s", "for": "5s", "share": 0.5}].
    guesstimateType: Guesstimate's type of the value, such as POINT, NORMAL or FUNCTION. Default: "". Example:
        "POINT".
    guesstimateValue: The value or formula, as typed into a cell of Guesstimate. Default: "". Example: "2".
    health_check: Removes unresponsive instances from the registries. Default: none. Example: {"every": "5s",
        "failures": 3}.
    instance: The type of cloud instance; names of instances do not contain it. Default: "". Example:
        "m4.large".
    latency: The network latency of requests to the service, instead of the latency by distance. Default: the
        latency by distance. Example: "400us".
    machine: The machine that the service runs on. If machines has this name, the service shares the processors
        of the machine. Default: "". Example: "node-1".
    process: The process in the container. Default: "". Example: "redis-server".
    processors: The number of processors of an instance, which its requests share evenly. Default: one for each
        request. Example: 1.5.
    queue: The queue in front of the instance's slots, if concurrency is limited. Default: fifo without a limit.
        Example: {"size": 100, "patience": "1s"}.
    rate_limit: The rate of requests that an instance accepts; further requests are refused. Default: no limit.
        Example: {"rate": 300, "burst": 50}.
    regions: The number of regions, which is multiplied by the run's number of regions; 0: one instance outside
        all regions. Default: 0. Example: 1.
    service_time: The time that the service works on a request before it answers or calls further services.
        Default: "0s". Example: {"exponential": "20ms"}.
    time_slice: With processors: requests take turns of at most this time instead of sharing the processors
        evenly, as goroutines do. Default: none. Example: "10ms".
    useCustomGuesstimate: In Guesstimate's models, guesstimateValue replaces the measured times of this service.
        Default: false. Example: true.
    """

    name: str
    """The name, unique in the architecture. Example: "db"."""
    package: str
    """The package that implements the service. Example: "service"."""
    autoscaler: Autoscaler | None = None
    """Adds and removes instances; count is the initial number. Default: none. Example: {"target": 0.6, "least": 2,
    "most": 10}.
    """
    calls: dict[str, CallPolicy] = field(default_factory=dict)
    """For the package service: the policy for calls to each service; * applies to services without an entry.
    Default: calls without a policy. Example: {"*": {"timeout": "200ms", "retries": {"most": 2}}}.
    """
    concurrency: int | None = None
    """The maximum number of requests that an instance handles at once; further requests queue. Default: no limit.
    Example: 4.
    """
    container: str = ''
    """The container image of the instances. Default: "". Example: "redis:8"."""
    count: int = 0
    """The number of instances in each region; 0: one instance outside all zones. Default: 0. Example: 3."""
    dependencies: list[str] | None = None
    """The services that this service calls. A ring of stores that also lists eureka connects to the same ring in
    other regions. Default: []. Example: ["db", "cache"].
    """
    endpoints: list[Endpoint] = field(default_factory=list)
    """For the package service: the endpoints. The first endpoint is the default. Default: []. Example: [{"name":
    "list", "steps": [{"work": "2ms"}, {"call": "db"}]}].
    """
    error_rate: float | None = None
    """The fraction of requests that fail, from 0 to 1. Default: 0. Example: 0.01."""
    faults: list[Fault] = field(default_factory=list)
    """Faults of the service's instances, with their times. Default: []. Example: [{"kind": "slow", "at": "10s",
    "for": "5s", "share": 0.5}].
    """
    guesstimateType: str = ''
    """Guesstimate's type of the value, such as POINT, NORMAL or FUNCTION. Default: "". Example: "POINT"."""
    guesstimateValue: str = ''
    """The value or formula, as typed into a cell of Guesstimate. Default: "". Example: "2"."""
    health_check: HealthCheck | None = None
    """Removes unresponsive instances from the registries. Default: none. Example: {"every": "5s", "failures": 3}."""
    instance: str = ''
    """The type of cloud instance; names of instances do not contain it. Default: "". Example: "m4.large"."""
    latency: Distribution | None = None
    """The network latency of requests to the service, instead of the latency by distance. Default: the latency by
    distance. Example: "400us".
    """
    machine: str = ''
    """The machine that the service runs on. If machines has this name, the service shares the processors of the
    machine. Default: "". Example: "node-1".
    """
    process: str = ''
    """The process in the container. Default: "". Example: "redis-server"."""
    processors: float | None = None
    """The number of processors of an instance, which its requests share evenly. Default: one for each request.
    Example: 1.5.
    """
    queue: Queue | None = None
    """The queue in front of the instance's slots, if concurrency is limited. Default: fifo without a limit.
    Example: {"size": 100, "patience": "1s"}.
    """
    rate_limit: RateLimit | None = None
    """The rate of requests that an instance accepts; further requests are refused. Default: no limit. Example:
    {"rate": 300, "burst": 50}.
    """
    regions: int = 0
    """The number of regions, which is multiplied by the run's number of regions; 0: one instance outside all
    regions. Default: 0. Example: 1.
    """
    service_time: Distribution | None = None
    """The time that the service works on a request before it answers or calls further services. Default: "0s".
    Example: {"exponential": "20ms"}.
    """
    time_slice: TimeSpan | None = None
    """With processors: requests take turns of at most this time instead of sharing the processors evenly, as
    goroutines do. Default: none. Example: "10ms".
    """
    useCustomGuesstimate: bool = False
    """In Guesstimate's models, guesstimateValue replaces the measured times of this service. Default: false.
    Example: true.
    """
    extra: dict[str, Any] = field(default_factory=dict)
    """Notes of your own and of other tools, whose keys begin with x-."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "name": ("name", None),
        "package": ("package", None),
        "autoscaler": ("autoscaler", "part Autoscaler"),
        "calls": ("calls", "map part CallPolicy"),
        "concurrency": ("concurrency", None),
        "container": ("container", None),
        "count": ("count", None),
        "dependencies": ("dependencies", None),
        "endpoints": ("endpoints", "list part Endpoint"),
        "error_rate": ("error_rate", None),
        "faults": ("faults", "list part Fault"),
        "guesstimateType": ("guesstimateType", None),
        "guesstimateValue": ("guesstimateValue", None),
        "health_check": ("health_check", "part HealthCheck"),
        "instance": ("instance", None),
        "latency": ("latency", None),
        "machine": ("machine", None),
        "process": ("process", None),
        "processors": ("processors", None),
        "queue": ("queue", "part Queue"),
        "rate_limit": ("rate_limit", "part RateLimit"),
        "regions": ("regions", None),
        "service_time": ("service_time", None),
        "time_slice": ("time_slice", None),
        "useCustomGuesstimate": ("useCustomGuesstimate", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["name", "package"])


@dataclass(slots=True)
class Side(Part):
    """One side of a link; a field that is left out matches everything.

    Fields:
    region: The region, such as us-east-1. Default: any. Example: "us-east-1".
    service: The service. Default: any. Example: "db".
    zone: The zone of the region, such as zoneA. Default: any. Example: "zoneA".
    """

    region: str | None = None
    """The region, such as us-east-1. Default: any. Example: "us-east-1"."""
    service: str | None = None
    """The service. Default: any. Example: "db"."""
    zone: str | None = None
    """The zone of the region, such as zoneA. Default: any. Example: "zoneA"."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "region": ("region", None),
        "service": ("service", None),
        "zone": ("zone", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset([])


@dataclass(slots=True)
class Step(Part):
    """A step: exactly one of work, call, send, parallel and cache.

    Fields:
    cache: Looks up a value in a cache of the instance. Default: none. Example: {"size": 1000, "ttl": "10s"}.
    call: Calls an endpoint of a service (cart.list), or the first endpoint (cart), and waits for the answer.
        Default: none. Example: "cart.list".
    fallback: With call and parallel: the steps to run if the call or a required list fails; an empty list
        ignores the failure. Default: the request fails. Example: [{"work": "500us"}].
    miss: With cache: the steps after a miss. Default: []. Example: [{"call": "db"}].
    parallel: Runs several lists of steps concurrently. Default: none. Example: [[{"call": "cart"}], [{"call":
        "search"}]].
    probability: The probability that the step runs, from 0 to 1. Default: 1. Example: 0.2.
    send: Sends a message to an endpoint without waiting for an answer. Default: none. Example: "mail".
    times: The number of repetitions: call and send in sequence, the lists of parallel concurrently. Default: 1.
        Example: 3.
    wait: With parallel: the number of lists that must succeed before the next step begins; the other lists keep
        running. Default: all. Example: 1.
    work: Works for this time. Default: none. Example: {"exponential": "2ms"}.
    """

    cache: Cache | None = None
    """Looks up a value in a cache of the instance. Default: none. Example: {"size": 1000, "ttl": "10s"}."""
    call: Targets | None = None
    """Calls an endpoint of a service (cart.list), or the first endpoint (cart), and waits for the answer. Default:
    none. Example: "cart.list".
    """
    fallback: list[Step] | None = None
    """With call and parallel: the steps to run if the call or a required list fails; an empty list ignores the
    failure. Default: the request fails. Example: [{"work": "500us"}].
    """
    miss: list[Step] = field(default_factory=list)
    """With cache: the steps after a miss. Default: []. Example: [{"call": "db"}]."""
    parallel: list[list[Step]] | None = None
    """Runs several lists of steps concurrently. Default: none. Example: [[{"call": "cart"}], [{"call":
    "search"}]].
    """
    probability: float | None = None
    """The probability that the step runs, from 0 to 1. Default: 1. Example: 0.2."""
    send: Targets | None = None
    """Sends a message to an endpoint without waiting for an answer. Default: none. Example: "mail"."""
    times: int | None = None
    """The number of repetitions: call and send in sequence, the lists of parallel concurrently. Default: 1.
    Example: 3.
    """
    wait: int | None = None
    """With parallel: the number of lists that must succeed before the next step begins; the other lists keep
    running. Default: all. Example: 1.
    """
    work: Distribution | None = None
    """Works for this time. Default: none. Example: {"exponential": "2ms"}."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "cache": ("cache", "part Cache"),
        "call": ("call", None),
        "fallback": ("fallback", "list part Step"),
        "miss": ("miss", "list part Step"),
        "parallel": ("parallel", "list list part Step"),
        "probability": ("probability", None),
        "send": ("send", None),
        "times": ("times", None),
        "wait": ("wait", None),
        "work": ("work", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset([])


@dataclass(slots=True)
class Definition(Part):
    """An architecture: its services, their dependencies, the load and the faults.

    Fields:
    arch: The name of the architecture; the first part of every name in the run. Example: "shop".
    services: The services, in the order of their creation. Example: [{"name": "db", "package": "store"}].
    args: The command that generated the file. Default: "". Example: "[corsair import shop.yaml]".
    date: The date when the file was generated. Default: "". Example: "2026-11-26".
    description: A description for readers. Default: "". Example: "Web servers in front of a database".
    faults: Faults of regions and zones, which affect several services at once. Default: []. Example: [{"zone":
        "zoneA", "kind": "kill", "at": "10s", "for": "5s"}].
    links: Faults of links between services, zones and regions. Default: []. Example: [{"to": {"service": "db"},
        "at": "10s", "loss": 0.1}].
    load: The load of each entry point. Default: a request every 10 ms, or as set by -kv. Example: {"www":
        {"rate": 200}}.
    machines: Machines whose processors several services share; a service names its machine. Default: {}.
        Example: {"node-1": {"processors": 4}}.
    network: Network latencies between zones and regions. Default: the latencies of its fields. Example:
        {"same_zone": "250us"}.
    places: Names and addresses of regions and zones. Default: spigo's. Example: {"regions": ["paris", "rome"],
        "zones": ["east", "west"]}.
    version: The version of this format: arch-0.0 or arch-0.1. Default: "". Example: "arch-0.1".
    victim: The service that loses one instance halfway through the run; empty: none. Default: "". Example:
        "db".
    """

    arch: str
    """The name of the architecture; the first part of every name in the run. Example: "shop"."""
    services: list[Service]
    """The services, in the order of their creation. Example: [{"name": "db", "package": "store"}]."""
    args: str = ''
    """The command that generated the file. Default: "". Example: "[corsair import shop.yaml]"."""
    date: str = ''
    """The date when the file was generated. Default: "". Example: "2026-11-26"."""
    description: str = ''
    """A description for readers. Default: "". Example: "Web servers in front of a database"."""
    faults: list[PlaceFault] = field(default_factory=list)
    """Faults of regions and zones, which affect several services at once. Default: []. Example: [{"zone": "zoneA",
    "kind": "kill", "at": "10s", "for": "5s"}].
    """
    links: list[LinkFault] = field(default_factory=list)
    """Faults of links between services, zones and regions. Default: []. Example: [{"to": {"service": "db"}, "at":
    "10s", "loss": 0.1}].
    """
    load: dict[str, EntryLoad] = field(default_factory=dict)
    """The load of each entry point. Default: a request every 10 ms, or as set by -kv. Example: {"www": {"rate":
    200}}.
    """
    machines: dict[str, Machine] = field(default_factory=dict)
    """Machines whose processors several services share; a service names its machine. Default: {}. Example:
    {"node-1": {"processors": 4}}.
    """
    network: Network | None = None
    """Network latencies between zones and regions. Default: the latencies of its fields. Example: {"same_zone":
    "250us"}.
    """
    places: Places = field(default_factory=lambda: Places())
    """Names and addresses of regions and zones. Default: spigo's. Example: {"regions": ["paris", "rome"], "zones":
    ["east", "west"]}.
    """
    version: str = ''
    """The version of this format: arch-0.0 or arch-0.1. Default: "". Example: "arch-0.1"."""
    victim: str = ''
    """The service that loses one instance halfway through the run; empty: none. Default: "". Example: "db"."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Notes of your own and of other tools, whose keys begin with x-."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "arch": ("arch", None),
        "services": ("services", "list part Service"),
        "args": ("args", None),
        "date": ("date", None),
        "description": ("description", None),
        "faults": ("faults", "list part PlaceFault"),
        "links": ("links", "list part LinkFault"),
        "load": ("load", "map part EntryLoad"),
        "machines": ("machines", "map part Machine"),
        "network": ("network", "part Network"),
        "places": ("places", "part Places"),
        "version": ("version", None),
        "victim": ("victim", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["arch", "services"])
