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
    most: The maximum number of instances in each region.
    target: The target utilisation of slots or processors, above 0 and up to 1.
    calm: The time for which there must be too many instances before some are removed. Default: 5 min.
    delay: The start-up time of an added instance. Default: 30 s.
    every: The interval between two decisions. Default: 15 s.
    least: The minimum number of instances in each region. Default: 1.
    """

    most: int
    """The maximum number of instances in each region."""
    target: float
    """The target utilisation of slots or processors, above 0 and up to 1."""
    calm: TimeSpan | None = None
    """The time for which there must be too many instances before some are removed. Default: 5 min."""
    delay: TimeSpan | None = None
    """The start-up time of an added instance. Default: 30 s."""
    every: TimeSpan | None = None
    """The interval between two decisions. Default: 15 s."""
    least: int | None = None
    """The minimum number of instances in each region. Default: 1."""

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
    failures: The fraction of failed attempts that opens the breaker, above 0 and up to 1.
    open: The time that the breaker stays open.
    probes: The number of attempts that the breaker lets through after that time; if all succeed, it closes.
        Default: 1.
    window: The number of most recent attempts that count, up to 1024; the breaker stays closed until that
        number is reached. Default: 20.
    """

    failures: float
    """The fraction of failed attempts that opens the breaker, above 0 and up to 1."""
    open: TimeSpan
    """The time that the breaker stays open."""
    probes: int | None = None
    """The number of attempts that the breaker lets through after that time; if all succeed, it closes. Default: 1."""
    window: int | None = None
    """The number of most recent attempts that count, up to 1024; the breaker stays closed until that number is
    reached. Default: 20.
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
    hit_rate: The fraction of look-ups that hit, from 0 to 1.
    keys: The number of equally likely keys. Default: look-ups use the request's key.
    size: The maximum number of values; the least recently used value is evicted. Default: no limit.
    ttl: The time to live of a value. Default: no expiry.
    """

    hit_rate: float | None = None
    """The fraction of look-ups that hit, from 0 to 1."""
    keys: int | None = None
    """The number of equally likely keys. Default: look-ups use the request's key."""
    size: int | None = None
    """The maximum number of values; the least recently used value is evicted. Default: no limit."""
    ttl: TimeSpan | None = None
    """The time to live of a value. Default: no expiry."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "hit_rate": ("hit_rate", None),
        "keys": ("keys", None),
        "size": ("size", None),
        "ttl": ("ttl", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset([])


@dataclass(slots=True)
class CallPolicy(Part):
    """The policy for calls to a service: choice of instance, connections and handling of failures.

    Fields:
    balance: The choice of the instance. Default: random.
    breaker: Stops calls temporarily when too many attempts fail.
    bulkhead: The maximum number of concurrent calls of an instance; further calls fail at once.
    connections: The connections of an instance to the service. Default: no limit, always open.
    deadline: The time limit of the call with all its attempts. The deadline travels with the request: an
        instance that receives the request too late refuses it, and no caller waits past the deadline.
    ejection: Excludes instances that fail repeatedly.
    hash_bound: With hash: the maximum load of an instance, as a multiple of its even share of the requests in
        flight. Default: 1.25.
    hedge: Asks a second instance when the first is slow, and takes the first answer.
    rate_limit: The maximum rate of calls of an instance; further calls fail at once.
    retries: Retries after failed attempts.
    timeout: The time-out of an attempt.
    zone_spill: With zone: other zones are used when each instance of the caller's zone has this many requests
        of the caller in flight. Default: only when the zone has no instance.
    """

    balance: Balance | None = None
    """The choice of the instance. Default: random."""
    breaker: Breaker | None = None
    """Stops calls temporarily when too many attempts fail."""
    bulkhead: int | None = None
    """The maximum number of concurrent calls of an instance; further calls fail at once."""
    connections: Connections | None = None
    """The connections of an instance to the service. Default: no limit, always open."""
    deadline: TimeSpan | None = None
    """The time limit of the call with all its attempts. The deadline travels with the request: an instance that
    receives the request too late refuses it, and no caller waits past the deadline.
    """
    ejection: Ejection | None = None
    """Excludes instances that fail repeatedly."""
    hash_bound: float | None = None
    """With hash: the maximum load of an instance, as a multiple of its even share of the requests in flight.
    Default: 1.25.
    """
    hedge: Hedge | None = None
    """Asks a second instance when the first is slow, and takes the first answer."""
    rate_limit: RateLimit | None = None
    """The maximum rate of calls of an instance; further calls fail at once."""
    retries: Retries | None = None
    """Retries after failed attempts."""
    timeout: TimeSpan | None = None
    """The time-out of an attempt."""
    zone_spill: int | None = None
    """With zone: other zones are used when each instance of the caller's zone has this many requests of the caller
    in flight. Default: only when the zone has no instance.
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
    interval: The time for which waits must exceed the target before the first request is refused.
    target: The acceptable waiting time.
    """

    interval: TimeSpan
    """The time for which waits must exceed the target before the first request is refused."""
    target: TimeSpan
    """The acceptable waiting time."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "interval": ("interval", None),
        "target": ("target", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["interval", "target"])


@dataclass(slots=True)
class Connections(Part):
    """The connections of an instance to a service that it calls.

    Fields:
    most: The maximum number of connections. Each carries one request at a time.
    connect: The time to open a connection. Default: 0.
    waiting: The maximum number of calls that wait for a connection; further calls fail at once. Default: no
        limit.
    """

    most: int
    """The maximum number of connections. Each carries one request at a time."""
    connect: TimeSpan | None = None
    """The time to open a connection. Default: 0."""
    waiting: int | None = None
    """The maximum number of calls that wait for a connection; further calls fail at once. Default: no limit."""

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
    failures: The number of consecutive failed attempts that excludes an instance.
    for_: The time for which the instance is excluded.
    most: The maximum fraction of excluded instances. Default: 0.5.
    """

    failures: int
    """The number of consecutive failed attempts that excludes an instance."""
    for_: TimeSpan
    """The time for which the instance is excluded."""
    most: float | None = None
    """The maximum fraction of excluded instances. Default: 0.5."""

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
    name: The name, unique in the service.
    latency: The network latency of requests to the endpoint and of its answers. Default: the latency of its
        service.
    priority: The priority, from 0 to 7, for queues that order by priority. Default: the priority of the calling
        request, or 0.
    steps: The steps, in this order.
    """

    name: str
    """The name, unique in the service."""
    latency: Distribution | None = None
    """The network latency of requests to the endpoint and of its answers. Default: the latency of its service."""
    priority: int | None = None
    """The priority, from 0 to 7, for queues that order by priority. Default: the priority of the calling request,
    or 0.
    """
    steps: list[Step] = field(default_factory=list)
    """The steps, in this order."""

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
    arrivals: With a rate: the distribution of the times between requests. Default: constant.
    keys: The number of equally likely keys of requests to endpoints. Default: one million.
    rate: Open loop: requests per second, independent of the response time.
    replay: A CSV file of recorded arrivals with a column time and optionally kind; the path is relative to the
        definition.
    requests: The weights of the kinds of requests: common, read, write, and endpoints of services. Default:
        common, read and write, one third each.
    think: With users: the think time. Default: 0.
    users: Closed loop: the number of users, each of whom waits for an answer, thinks, and sends the next
        request.
    """

    arrivals: Arrivals | None = None
    """With a rate: the distribution of the times between requests. Default: constant."""
    keys: int | None = None
    """The number of equally likely keys of requests to endpoints. Default: one million."""
    rate: Rate | None = None
    """Open loop: requests per second, independent of the response time."""
    replay: str | None = None
    """A CSV file of recorded arrivals with a column time and optionally kind; the path is relative to the
    definition.
    """
    requests: dict[str, float] = field(default_factory=dict)
    """The weights of the kinds of requests: common, read, write, and endpoints of services. Default: common, read
    and write, one third each.
    """
    think: Distribution | None = None
    """With users: the think time. Default: 0."""
    users: int | None = None
    """Closed loop: the number of users, each of whom waits for an answer, thinks, and sends the next request."""

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
    at: The time of the fault, from the start of the load.
    kind: The kind of fault.
    drain: For restart: the time between leaving the registries and going down. Default: 0.
    every: The interval at which the fault repeats, until the load ends. Default: once.
    factor: For slow: the factor by which times are multiplied. Default: 10.
    for_: The duration. Default: until the end. For restart: the downtime of each instance.
    gap: For restart: the pause between two instances. Default: 0.
    probability: The probability of each occurrence, from 0 to 1. Default: 1.
    share: The fraction of the instances, above 0 and up to 1; at least one instance. Default: all.
    """

    at: TimeSpan
    """The time of the fault, from the start of the load."""
    kind: FaultKind
    """The kind of fault."""
    drain: TimeSpan | None = None
    """For restart: the time between leaving the registries and going down. Default: 0."""
    every: TimeSpan | None = None
    """The interval at which the fault repeats, until the load ends. Default: once."""
    factor: float | None = None
    """For slow: the factor by which times are multiplied. Default: 10."""
    for_: TimeSpan | None = None
    """The duration. Default: until the end. For restart: the downtime of each instance."""
    gap: TimeSpan | None = None
    """For restart: the pause between two instances. Default: 0."""
    probability: float | None = None
    """The probability of each occurrence, from 0 to 1. Default: 1."""
    share: float | None = None
    """The fraction of the instances, above 0 and up to 1; at least one instance. Default: all."""

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
    every: The interval between two checks; an answer must arrive before the next check.
    failures: The number of consecutive checks without an answer that removes an instance. Default: 3.
    successes: The number of consecutive checks with an answer that restores the instance. Default: 1.
    """

    every: TimeSpan
    """The interval between two checks; an answer must arrive before the next check."""
    failures: int | None = None
    """The number of consecutive checks without an answer that removes an instance. Default: 3."""
    successes: int | None = None
    """The number of consecutive checks with an answer that restores the instance. Default: 1."""

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
    after: The wait before each further request.
    most: The maximum number of further requests, one after the other. Default: 1.
    """

    after: TimeSpan
    """The wait before each further request."""
    most: int | None = None
    """The maximum number of further requests, one after the other. Default: 1."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "after": ("after", None),
        "most": ("most", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["after"])


@dataclass(slots=True)
class LinkFault(Part):
    """A fault of the link from one place to another, which affects requests, answers and values in this direction.

    Fields:
    at: The time of the fault, from the start of the load.
    delay: The additional latency.
    duplicate: The fraction of messages that arrive twice, from 0 to 1.
    every: The interval at which the fault repeats, until the load ends. Default: once.
    for_: The duration. Default: until the end.
    from_: The sending side. Default: any.
    loss: The fraction of messages that are lost, from 0 to 1; 1 is a partition.
    probability: The probability of each occurrence, from 0 to 1. Default: 1.
    to: The receiving side. Default: any.
    """

    at: TimeSpan
    """The time of the fault, from the start of the load."""
    delay: Distribution | None = None
    """The additional latency."""
    duplicate: float | None = None
    """The fraction of messages that arrive twice, from 0 to 1."""
    every: TimeSpan | None = None
    """The interval at which the fault repeats, until the load ends. Default: once."""
    for_: TimeSpan | None = None
    """The duration. Default: until the end."""
    from_: Side | None = None
    """The sending side. Default: any."""
    loss: float | None = None
    """The fraction of messages that are lost, from 0 to 1; 1 is a partition."""
    probability: float | None = None
    """The probability of each occurrence, from 0 to 1. Default: 1."""
    to: Side | None = None
    """The receiving side. Default: any."""

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
class Network(Part):
    """Network latencies by distance. An omitted latency has a default.

    Fields:
    other_region: The latency between two regions whose pair is not in regions.
    regions: The latencies of pairs of regions, in both directions; a key is, for example, us-east-1..us-west-2.
    same_region: The latency between zones of one region.
    same_zone: The latency between instances of one zone.
    """

    other_region: Distribution | None = None
    """The latency between two regions whose pair is not in regions."""
    regions: dict[str, Distribution] = field(default_factory=dict)
    """The latencies of pairs of regions, in both directions; a key is, for example, us-east-1..us-west-2."""
    same_region: Distribution | None = None
    """The latency between zones of one region."""
    same_zone: Distribution | None = None
    """The latency between instances of one zone."""

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
    at: The time of the fault, from the start of the load.
    kind: The kind of fault.
    drain: For restart: the time between leaving the registries and going down. Default: 0.
    every: The interval at which the fault repeats, until the load ends. Default: once.
    factor: For slow: the factor by which times are multiplied. Default: 10.
    for_: The duration. Default: until the end. For restart: the downtime of each instance.
    gap: For restart: the pause between two instances. Default: 0.
    probability: The probability of each occurrence, from 0 to 1. Default: 1.
    region: The region, such as us-east-1. Default: all.
    services: The services. Default: all services that accept requests.
    share: The fraction of the instances in the region or zone, above 0 and up to 1; at least one instance.
        Default: all.
    zone: The zone of the region, such as zoneA. Default: all.
    """

    at: TimeSpan
    """The time of the fault, from the start of the load."""
    kind: FaultKind
    """The kind of fault."""
    drain: TimeSpan | None = None
    """For restart: the time between leaving the registries and going down. Default: 0."""
    every: TimeSpan | None = None
    """The interval at which the fault repeats, until the load ends. Default: once."""
    factor: float | None = None
    """For slow: the factor by which times are multiplied. Default: 10."""
    for_: TimeSpan | None = None
    """The duration. Default: until the end. For restart: the downtime of each instance."""
    gap: TimeSpan | None = None
    """For restart: the pause between two instances. Default: 0."""
    probability: float | None = None
    """The probability of each occurrence, from 0 to 1. Default: 1."""
    region: str | None = None
    """The region, such as us-east-1. Default: all."""
    services: list[str] = field(default_factory=list)
    """The services. Default: all services that accept requests."""
    share: float | None = None
    """The fraction of the instances in the region or zone, above 0 and up to 1; at least one instance. Default:
    all.
    """
    zone: str | None = None
    """The zone of the region, such as zoneA. Default: all."""

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
    addresses: The first two numbers of addresses, for each zone of each region, for example 10.1.
    regions: The names of regions, in the order in which runs use them.
    zones: The names of the zones of each region.
    """

    addresses: list[list[str]] = field(default_factory=list)
    """The first two numbers of addresses, for each zone of each region, for example 10.1."""
    regions: list[str] = field(default_factory=list)
    """The names of regions, in the order in which runs use them."""
    zones: list[str] = field(default_factory=list)
    """The names of the zones of each region."""

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
        a growing rate.
    order: The order in which requests leave the queue. Default: fifo.
    patience: The longest wait; a request that has waited this long is refused.
    size: The maximum number of waiting requests. Further requests are refused; if priorities order the queue,
        the lowest priority is refused first. Default: no limit.
    """

    codel: Codel | None = None
    """Controlled delay (RFC 8289): while all requests wait longer than the target, requests are refused at a
    growing rate.
    """
    order: Order | None = None
    """The order in which requests leave the queue. Default: fifo."""
    patience: TimeSpan | None = None
    """The longest wait; a request that has waited this long is refused."""
    size: int | None = None
    """The maximum number of waiting requests. Further requests are refused; if priorities order the queue, the
    lowest priority is refused first. Default: no limit.
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
    rate: Calls per second.
    burst: The maximum number of calls at once after a time without calls. Default: 1.
    """

    rate: float
    """Calls per second."""
    burst: float | None = None
    """The maximum number of calls at once after a time without calls. Default: 1."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "rate": ("rate", None),
        "burst": ("burst", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["rate"])


@dataclass(slots=True)
class RatePoint(Part):
    """A point of a profile.

    Fields:
    at: The time of the point, from the start of the load.
    rate: Requests per second from this time on.
    ramp: True: the rate changes linearly from the previous point to this one. False: it changes at once.
    """

    at: TimeSpan
    """The time of the point, from the start of the load."""
    rate: float
    """Requests per second from this time on."""
    ramp: bool = False
    """True: the rate changes linearly from the previous point to this one. False: it changes at once."""

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
    most: The maximum number of retries.
    backoff: The wait before the first retry. Default: 0.
    budget: The limit of retries as a fraction of calls. Default: no limit.
    factor: The factor by which the wait grows with each retry. Default: 2.
    jitter: The random fraction of each wait, from 0 to 1. Default: 0.
    limit: The longest wait. Default: 10 s.
    """

    most: int
    """The maximum number of retries."""
    backoff: TimeSpan | None = None
    """The wait before the first retry. Default: 0."""
    budget: RetryBudget | None = None
    """The limit of retries as a fraction of calls. Default: no limit."""
    factor: float | None = None
    """The factor by which the wait grows with each retry. Default: 2."""
    jitter: float | None = None
    """The random fraction of each wait, from 0 to 1. Default: 0."""
    limit: TimeSpan | None = None
    """The longest wait. Default: 10 s."""

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
    share: Retries allowed for each call, as a fraction of the calls.
    burst: The maximum number of saved retries; the budget starts with this number. Default: 10.
    """

    share: float
    """Retries allowed for each call, as a fraction of the calls."""
    burst: float | None = None
    """The maximum number of saved retries; the budget starts with this number. Default: 10."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "share": ("share", None),
        "burst": ("burst", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["share"])


@dataclass(slots=True)
class Service(Part):
    """A service of an architecture.

    Fields:
    name: The name, unique in the architecture.
    package: The package that implements the service.
    autoscaler: Adds and removes instances; count is the initial number.
    calls: For the package service: the policy for calls to each service; * applies to services without an
        entry.
    concurrency: The maximum number of requests that an instance handles at once; further requests queue.
        Default: no limit.
    container: The container image of the instances.
    count: The number of instances in each region; 0: one instance outside all zones.
    dependencies: The services that this service calls. A ring of stores that also lists eureka connects to the
        same ring in other regions.
    endpoints: For the package service: the endpoints. The first endpoint is the default.
    error_rate: The fraction of requests that fail, from 0 to 1.
    faults: Faults of the service's instances, with their times.
    guesstimateType: Guesstimate's type of the value, such as POINT, NORMAL or FUNCTION.
    guesstimateValue: The value or formula, as typed into a cell of Guesstimate.
    health_check: Removes unresponsive instances from the registries.
    instance: The type of cloud instance; names of instances do not contain it.
    latency: The network latency of requests to the service, instead of the latency by distance.
    machine: The machine that the service runs on.
    process: The process in the container.
    processors: The number of processors of an instance, which its requests share evenly. Default: one for each
        request.
    queue: The queue in front of the instance's slots, if concurrency is limited. Default: fifo without a limit.
    rate_limit: The rate of requests that an instance accepts; further requests are refused.
    regions: The number of regions, which is multiplied by the run's number of regions; 0: one instance outside
        all regions.
    service_time: The time that the service works on a request before it answers or calls further services.
    useCustomGuesstimate: In Guesstimate's models, guesstimateValue replaces the measured times of this service.
    """

    name: str
    """The name, unique in the architecture."""
    package: str
    """The package that implements the service."""
    autoscaler: Autoscaler | None = None
    """Adds and removes instances; count is the initial number."""
    calls: dict[str, CallPolicy] = field(default_factory=dict)
    """For the package service: the policy for calls to each service; * applies to services without an entry."""
    concurrency: int | None = None
    """The maximum number of requests that an instance handles at once; further requests queue. Default: no limit."""
    container: str = ""
    """The container image of the instances."""
    count: int = 0
    """The number of instances in each region; 0: one instance outside all zones."""
    dependencies: list[str] | None = None
    """The services that this service calls. A ring of stores that also lists eureka connects to the same ring in
    other regions.
    """
    endpoints: list[Endpoint] = field(default_factory=list)
    """For the package service: the endpoints. The first endpoint is the default."""
    error_rate: float | None = None
    """The fraction of requests that fail, from 0 to 1."""
    faults: list[Fault] = field(default_factory=list)
    """Faults of the service's instances, with their times."""
    guesstimateType: str = ""
    """Guesstimate's type of the value, such as POINT, NORMAL or FUNCTION."""
    guesstimateValue: str = ""
    """The value or formula, as typed into a cell of Guesstimate."""
    health_check: HealthCheck | None = None
    """Removes unresponsive instances from the registries."""
    instance: str = ""
    """The type of cloud instance; names of instances do not contain it."""
    latency: Distribution | None = None
    """The network latency of requests to the service, instead of the latency by distance."""
    machine: str = ""
    """The machine that the service runs on."""
    process: str = ""
    """The process in the container."""
    processors: float | None = None
    """The number of processors of an instance, which its requests share evenly. Default: one for each request."""
    queue: Queue | None = None
    """The queue in front of the instance's slots, if concurrency is limited. Default: fifo without a limit."""
    rate_limit: RateLimit | None = None
    """The rate of requests that an instance accepts; further requests are refused."""
    regions: int = 0
    """The number of regions, which is multiplied by the run's number of regions; 0: one instance outside all
    regions.
    """
    service_time: Distribution | None = None
    """The time that the service works on a request before it answers or calls further services."""
    useCustomGuesstimate: bool = False
    """In Guesstimate's models, guesstimateValue replaces the measured times of this service."""
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
        "useCustomGuesstimate": ("useCustomGuesstimate", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["name", "package"])


@dataclass(slots=True)
class Side(Part):
    """One side of a link; a field that is left out matches everything.

    Fields:
    region: The region, such as us-east-1.
    service: The service.
    zone: The zone of the region, such as zoneA.
    """

    region: str | None = None
    """The region, such as us-east-1."""
    service: str | None = None
    """The service."""
    zone: str | None = None
    """The zone of the region, such as zoneA."""

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
    cache: Looks up a value in a cache of the instance.
    call: Calls an endpoint of a service (cart.list), or the first endpoint (cart), and waits for the answer.
    fallback: With call and parallel: the steps to run if the call or a required list fails; an empty list
        ignores the failure. Default: the request fails.
    miss: With cache: the steps after a miss.
    parallel: Runs several lists of steps concurrently.
    probability: The probability that the step runs, from 0 to 1. Default: 1.
    send: Sends a message to an endpoint without waiting for an answer.
    times: The number of repetitions: call and send in sequence, the lists of parallel concurrently. Default: 1.
    wait: With parallel: the number of lists that must succeed before the next step begins; the other lists keep
        running. Default: all.
    work: Works for this time.
    """

    cache: Cache | None = None
    """Looks up a value in a cache of the instance."""
    call: Targets | None = None
    """Calls an endpoint of a service (cart.list), or the first endpoint (cart), and waits for the answer."""
    fallback: list[Step] | None = None
    """With call and parallel: the steps to run if the call or a required list fails; an empty list ignores the
    failure. Default: the request fails.
    """
    miss: list[Step] = field(default_factory=list)
    """With cache: the steps after a miss."""
    parallel: list[list[Step]] | None = None
    """Runs several lists of steps concurrently."""
    probability: float | None = None
    """The probability that the step runs, from 0 to 1. Default: 1."""
    send: Targets | None = None
    """Sends a message to an endpoint without waiting for an answer."""
    times: int | None = None
    """The number of repetitions: call and send in sequence, the lists of parallel concurrently. Default: 1."""
    wait: int | None = None
    """With parallel: the number of lists that must succeed before the next step begins; the other lists keep
    running. Default: all.
    """
    work: Distribution | None = None
    """Works for this time."""

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
    arch: The name of the architecture; the first part of every name in the run.
    services: The services, in the order of their creation.
    args: The command that generated the file.
    date: The date when the file was generated.
    description: A description for readers.
    faults: Faults of regions and zones, which affect several services at once.
    links: Faults of links between services, zones and regions.
    load: The load of each entry point. Default: a request every 10 ms, or as set by -kv.
    network: Network latencies between zones and regions.
    places: Names and addresses of regions and zones. Default: spigo's.
    version: The version of this format: arch-0.0 or arch-0.1.
    victim: The service that loses one instance halfway through the run; empty: none.
    """

    arch: str
    """The name of the architecture; the first part of every name in the run."""
    services: list[Service]
    """The services, in the order of their creation."""
    args: str = ""
    """The command that generated the file."""
    date: str = ""
    """The date when the file was generated."""
    description: str = ""
    """A description for readers."""
    faults: list[PlaceFault] = field(default_factory=list)
    """Faults of regions and zones, which affect several services at once."""
    links: list[LinkFault] = field(default_factory=list)
    """Faults of links between services, zones and regions."""
    load: dict[str, EntryLoad] = field(default_factory=dict)
    """The load of each entry point. Default: a request every 10 ms, or as set by -kv."""
    network: Network | None = None
    """Network latencies between zones and regions."""
    places: Places = field(default_factory=lambda: Places())
    """Names and addresses of regions and zones. Default: spigo's."""
    version: str = ''
    """The version of this format: arch-0.0 or arch-0.1."""
    victim: str = ""
    """The service that loses one instance halfway through the run; empty: none."""
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
        "network": ("network", "part Network"),
        "places": ("places", "part Places"),
        "version": ("version", None),
        "victim": ("victim", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["arch", "services"])
