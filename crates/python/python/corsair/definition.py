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
"""How the times between two requests are distributed. constant: All the same. poisson: Exponentially: requests
come in independently of each other. uniform: Anything from none to twice the mean, all alike.
"""

Balance = Literal["random", "round_robin", "least_requests", "two_choices", "hash", "zone"]
"""Which instance is called. random: Any of them, all alike. round_robin: One after the other. least_requests: The
one with the fewest requests of this caller under way. two_choices: Of two that are drawn, the one with fewer
requests of this caller under way. hash: The one that the request's key is hashed to; the next one, if that has
too much to do. zone: Any in the caller's zone; if there is none, or each has much to do, any other.
"""

FaultKind = Literal["kill", "pause", "slow", "partition", "restart"]
"""What goes wrong. kill: The instance is gone: requests to it fail, and it leaves the registry. pause: The
instance does nothing; what arrives waits. slow: The instance takes longer. partition: The instance is cut off
from other zones: what it sends there, and gets from there, is lost. restart: One instance after the other
leaves its registries, goes down, and comes back.
"""

Order = Literal["fifo", "lifo", "priority"]
"""Who is next in a queue. fifo: Who came first. lifo: Who came last. priority: Who has the highest priority, and
of those who came first.
"""

Rate = Union[float, "list[RatePoint]", dict[str, str]]
"""Requests per second: a number, points of a profile, or a curve from a file, {'csv': 'curve.csv'}."""


@dataclass(slots=True)
class Autoscaler(Part):
    """Adds and removes instances, in each region by itself, so that they are as busy as they should be.

    Fields:
    most: How many there are at most in each region.
    target: How busy, above 0 and up to 1: the part of slots, or of processors, that is in use.
    calm: For how long there must have been too many before some are removed. Left out: 5 min.
    delay: How long it takes until an instance that is added is there. Left out: 30 s.
    every: How often it looks. Left out: every 15 s.
    least: How many instances there are at least in each region. Left out: 1.
    """

    most: int
    """How many there are at most in each region."""
    target: float
    """How busy, above 0 and up to 1: the part of slots, or of processors, that is in use."""
    calm: TimeSpan | None = None
    """For how long there must have been too many before some are removed. Left out: 5 min."""
    delay: TimeSpan | None = None
    """How long it takes until an instance that is added is there. Left out: 30 s."""
    every: TimeSpan | None = None
    """How often it looks. Left out: every 15 s."""
    least: int | None = None
    """How many instances there are at least in each region. Left out: 1."""

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
    """Stops calling for a while when too many attempts fail.

    Fields:
    failures: It opens when this part of the last attempts has failed, above 0 and up to 1.
    open: How long it stays open.
    probes: How many attempts it lets through after that, all of which must succeed to close it. Left out: 1.
    window: How many of the last attempts count, up to 1024; it stays closed before there are that many. Left
        out: 20.
    """

    failures: float
    """It opens when this part of the last attempts has failed, above 0 and up to 1."""
    open: TimeSpan
    """How long it stays open."""
    probes: int | None = None
    """How many attempts it lets through after that, all of which must succeed to close it. Left out: 1."""
    window: int | None = None
    """How many of the last attempts count, up to 1024; it stays closed before there are that many. Left out: 20."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "failures": ("failures", None),
        "open": ("open", None),
        "probes": ("probes", None),
        "window": ("window", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["failures", "open"])


@dataclass(slots=True)
class Cache(Part):
    """A cache: of a given hit rate, or with a time to live and a size, filled by what is missed.

    Fields:
    hit_rate: The part of look-ups that find their value, from 0 to 1.
    keys: Among how many keys, all alike, look-ups choose. Left out: they look up the request's key.
    size: How many values it keeps; the one that was not used for longest leaves. Left out: all.
    ttl: How long it keeps a value. Left out: for good.
    """

    hit_rate: float | None = None
    """The part of look-ups that find their value, from 0 to 1."""
    keys: int | None = None
    """Among how many keys, all alike, look-ups choose. Left out: they look up the request's key."""
    size: int | None = None
    """How many values it keeps; the one that was not used for longest leaves. Left out: all."""
    ttl: TimeSpan | None = None
    """How long it keeps a value. Left out: for good."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "hit_rate": ("hit_rate", None),
        "keys": ("keys", None),
        "size": ("size", None),
        "ttl": ("ttl", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset([])


@dataclass(slots=True)
class CallPolicy(Part):
    """How a service calls another: which instance, over how many connections, and what it does when that fails.

    Fields:
    balance: Which instance is called. Left out: random.
    breaker: Stops calling for a while when too many attempts fail.
    bulkhead: How many calls of an instance may be under way at once; more fail at once.
    connections: The connections of an instance to this service. Left out: any number, always open.
    deadline: How long the call may take with all attempts. The deadline travels with the request: who gets it
        too late refuses it, and no caller waits longer.
    ejection: Leaves out instances that fail again and again.
    hash_bound: With hash: an instance gets at most this multiple of its even share of the requests under way.
        Left out: 1.25.
    hedge: Asks a second instance when the first takes long, and takes the answer that comes first.
    rate_limit: How many calls an instance may make; more fail at once.
    retries: Tries again what has failed.
    timeout: How long an attempt may take.
    zone_spill: With zone: other zones are called when each instance of the own zone has this many requests of
        this caller under way. Left out: only when it has no instance.
    """

    balance: Balance | None = None
    """Which instance is called. Left out: random."""
    breaker: Breaker | None = None
    """Stops calling for a while when too many attempts fail."""
    bulkhead: int | None = None
    """How many calls of an instance may be under way at once; more fail at once."""
    connections: Connections | None = None
    """The connections of an instance to this service. Left out: any number, always open."""
    deadline: TimeSpan | None = None
    """How long the call may take with all attempts. The deadline travels with the request: who gets it too late
    refuses it, and no caller waits longer.
    """
    ejection: Ejection | None = None
    """Leaves out instances that fail again and again."""
    hash_bound: float | None = None
    """With hash: an instance gets at most this multiple of its even share of the requests under way. Left out:
    1.25.
    """
    hedge: Hedge | None = None
    """Asks a second instance when the first takes long, and takes the answer that comes first."""
    rate_limit: RateLimit | None = None
    """How many calls an instance may make; more fail at once."""
    retries: Retries | None = None
    """Tries again what has failed."""
    timeout: TimeSpan | None = None
    """How long an attempt may take."""
    zone_spill: int | None = None
    """With zone: other zones are called when each instance of the own zone has this many requests of this caller
    under way. Left out: only when it has no instance.
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
    interval: For how long they may wait longer before the first is refused.
    target: How long requests may wait.
    """

    interval: TimeSpan
    """For how long they may wait longer before the first is refused."""
    target: TimeSpan
    """How long requests may wait."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "interval": ("interval", None),
        "target": ("target", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["interval", "target"])


@dataclass(slots=True)
class Connections(Part):
    """The connections of an instance to a service that it calls.

    Fields:
    most: How many there are at most. Each carries one request at a time.
    connect: How long it takes to open one. Left out: no time.
    waiting: How many calls may wait for one; more fail at once. Left out: any number.
    """

    most: int
    """How many there are at most. Each carries one request at a time."""
    connect: TimeSpan | None = None
    """How long it takes to open one. Left out: no time."""
    waiting: int | None = None
    """How many calls may wait for one; more fail at once. Left out: any number."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "most": ("most", None),
        "connect": ("connect", None),
        "waiting": ("waiting", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["most"])


@dataclass(slots=True)
class Ejection(Part):
    """Leaves out instances that fail again and again.

    Fields:
    failures: How many attempts in a row must fail.
    for_: For how long the instance is left out.
    most: Which part of the instances is left out at most. Left out: 0.5.
    """

    failures: int
    """How many attempts in a row must fail."""
    for_: TimeSpan
    """For how long the instance is left out."""
    most: float | None = None
    """Which part of the instances is left out at most. Left out: 0.5."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "failures": ("failures", None),
        "for_": ("for", None),
        "most": ("most", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["failures", "for"])


@dataclass(slots=True)
class Endpoint(Part):
    """An endpoint of a service, and what it does for each request.

    Fields:
    name: Its name, unique in the service.
    latency: How long requests to it and their answers travel, if not as those of its service.
    priority: Its priority, from 0 to 7, where a queue orders by it. Left out: that of the request that asks for
        it, or 0.
    steps: What it does, in this order.
    """

    name: str
    """Its name, unique in the service."""
    latency: Distribution | None = None
    """How long requests to it and their answers travel, if not as those of its service."""
    priority: int | None = None
    """Its priority, from 0 to 7, where a queue orders by it. Left out: that of the request that asks for it, or 0."""
    steps: list[Step] = field(default_factory=list)
    """What it does, in this order."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "name": ("name", None),
        "latency": ("latency", None),
        "priority": ("priority", None),
        "steps": ("steps", "list part Step"),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["name"])


@dataclass(slots=True)
class EntryLoad(Part):
    """The load of an entry point: either a rate, or users, or recorded arrivals.

    Fields:
    arrivals: With a rate: how the times between two requests are distributed. Left out: constant.
    keys: Among how many values, all alike, requests to endpoints choose the one that they are about. Left out:
        a million.
    rate: Open loop: requests per second that come in, however long they take.
    replay: A CSV file of recorded arrivals, with a column time and perhaps one kind; its path is relative to
        the definition.
    requests: The kinds of requests, each with its weight: common, read, write, and endpoints of services. Left
        out: common, read and write, one third each.
    think: With users: how long each thinks. Left out: no time.
    users: Closed loop: the number of users, each of whom waits for an answer, thinks, and asks again.
    """

    arrivals: Arrivals | None = None
    """With a rate: how the times between two requests are distributed. Left out: constant."""
    keys: int | None = None
    """Among how many values, all alike, requests to endpoints choose the one that they are about. Left out: a
    million.
    """
    rate: Rate | None = None
    """Open loop: requests per second that come in, however long they take."""
    replay: str | None = None
    """A CSV file of recorded arrivals, with a column time and perhaps one kind; its path is relative to the
    definition.
    """
    requests: dict[str, float] = field(default_factory=dict)
    """The kinds of requests, each with its weight: common, read, write, and endpoints of services. Left out:
    common, read and write, one third each.
    """
    think: Distribution | None = None
    """With users: how long each thinks. Left out: no time."""
    users: int | None = None
    """Closed loop: the number of users, each of whom waits for an answer, thinks, and asks again."""

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
    """Something that goes wrong with a service for a while.

    Fields:
    at: When, after the load has begun.
    kind: What goes wrong.
    drain: For restart: how long before it goes down an instance leaves its registries. Left out: no time.
    every: Again after so long, until the load ends. Left out: once.
    factor: For slow: by how much times are multiplied. Left out: 10.
    for_: For how long; left out: until the end. For restart: for how long each instance is down.
    gap: For restart: how long after one instance the next has its turn. Left out: at once.
    probability: How likely it is each time, from 0 to 1. Left out: always.
    share: Which part of the instances, above 0 and up to 1; at least one instance. Left out: all.
    """

    at: TimeSpan
    """When, after the load has begun."""
    kind: FaultKind
    """What goes wrong."""
    drain: TimeSpan | None = None
    """For restart: how long before it goes down an instance leaves its registries. Left out: no time."""
    every: TimeSpan | None = None
    """Again after so long, until the load ends. Left out: once."""
    factor: float | None = None
    """For slow: by how much times are multiplied. Left out: 10."""
    for_: TimeSpan | None = None
    """For how long; left out: until the end. For restart: for how long each instance is down."""
    gap: TimeSpan | None = None
    """For restart: how long after one instance the next has its turn. Left out: at once."""
    probability: float | None = None
    """How likely it is each time, from 0 to 1. Left out: always."""
    share: float | None = None
    """Which part of the instances, above 0 and up to 1; at least one instance. Left out: all."""

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
    """Asks instances whether they are well, and takes those that do not answer out of the registries until they
    do.

    Fields:
    every: How often it asks; an answer must come before it asks again.
    failures: How many questions in a row must have no answer. Left out: 3.
    successes: How many in a row must have one until the instance is taken back. Left out: 1.
    """

    every: TimeSpan
    """How often it asks; an answer must come before it asks again."""
    failures: int | None = None
    """How many questions in a row must have no answer. Left out: 3."""
    successes: int | None = None
    """How many in a row must have one until the instance is taken back. Left out: 1."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "every": ("every", None),
        "failures": ("failures", None),
        "successes": ("successes", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["every"])


@dataclass(slots=True)
class Hedge(Part):
    """Asks further instances when the first takes long.

    Fields:
    after: After how long.
    most: How many further ones at most, one after the other. Left out: 1.
    """

    after: TimeSpan
    """After how long."""
    most: int | None = None
    """How many further ones at most, one after the other. Left out: 1."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "after": ("after", None),
        "most": ("most", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["after"])


@dataclass(slots=True)
class LinkFault(Part):
    """Something that goes wrong on the way from one place to another: with requests, answers and values, in this
    direction.

    Fields:
    at: When, after the load has begun.
    delay: How much longer it takes.
    duplicate: Which part arrives twice, from 0 to 1.
    every: Again after so long, until the load ends. Left out: once.
    for_: For how long; left out: until the end.
    from_: Where what is sent comes from. Left out: anywhere.
    loss: Which part is lost, from 0 to 1; 1 is a partition.
    probability: How likely it is each time, from 0 to 1. Left out: always.
    to: Where it goes. Left out: anywhere.
    """

    at: TimeSpan
    """When, after the load has begun."""
    delay: Distribution | None = None
    """How much longer it takes."""
    duplicate: float | None = None
    """Which part arrives twice, from 0 to 1."""
    every: TimeSpan | None = None
    """Again after so long, until the load ends. Left out: once."""
    for_: TimeSpan | None = None
    """For how long; left out: until the end."""
    from_: Side | None = None
    """Where what is sent comes from. Left out: anywhere."""
    loss: float | None = None
    """Which part is lost, from 0 to 1; 1 is a partition."""
    probability: float | None = None
    """How likely it is each time, from 0 to 1. Left out: always."""
    to: Side | None = None
    """Where it goes. Left out: anywhere."""

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
    """How long messages travel, by place. What is left out has a default.

    Fields:
    other_region: Between regions that regions does not mention.
    regions: Between two regions, in both directions; keys are as us-east-1..us-west-2.
    same_region: Between zones of one region.
    same_zone: Between instances of one zone.
    """

    other_region: Distribution | None = None
    """Between regions that regions does not mention."""
    regions: dict[str, Distribution] = field(default_factory=dict)
    """Between two regions, in both directions; keys are as us-east-1..us-west-2."""
    same_region: Distribution | None = None
    """Between zones of one region."""
    same_zone: Distribution | None = None
    """Between instances of one zone."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "other_region": ("other_region", None),
        "regions": ("regions", None),
        "same_region": ("same_region", None),
        "same_zone": ("same_zone", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset([])


@dataclass(slots=True)
class PlaceFault(Part):
    """Something that goes wrong in a place: with all services there, or some.

    Fields:
    at: When, after the load has begun.
    kind: What goes wrong.
    drain: For restart: how long before it goes down an instance leaves its registries. Left out: no time.
    every: Again after so long, until the load ends. Left out: once.
    factor: For slow: by how much times are multiplied. Left out: 10.
    for_: For how long; left out: until the end. For restart: for how long each instance is down.
    gap: For restart: how long after one instance the next has its turn. Left out: at once.
    probability: How likely it is each time, from 0 to 1. Left out: always.
    region: The region, such as us-east-1. Left out: all.
    services: The services. Left out: all that take requests.
    share: Which part of the instances there, above 0 and up to 1; at least one. Left out: all.
    zone: The zone of the region, such as zoneA. Left out: all.
    """

    at: TimeSpan
    """When, after the load has begun."""
    kind: FaultKind
    """What goes wrong."""
    drain: TimeSpan | None = None
    """For restart: how long before it goes down an instance leaves its registries. Left out: no time."""
    every: TimeSpan | None = None
    """Again after so long, until the load ends. Left out: once."""
    factor: float | None = None
    """For slow: by how much times are multiplied. Left out: 10."""
    for_: TimeSpan | None = None
    """For how long; left out: until the end. For restart: for how long each instance is down."""
    gap: TimeSpan | None = None
    """For restart: how long after one instance the next has its turn. Left out: at once."""
    probability: float | None = None
    """How likely it is each time, from 0 to 1. Left out: always."""
    region: str | None = None
    """The region, such as us-east-1. Left out: all."""
    services: list[str] = field(default_factory=list)
    """The services. Left out: all that take requests."""
    share: float | None = None
    """Which part of the instances there, above 0 and up to 1; at least one. Left out: all."""
    zone: str | None = None
    """The zone of the region, such as zoneA. Left out: all."""

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
    """What regions and zones are called, and their addresses. What is left out is spigo's.

    Fields:
    addresses: For each region and each of its zones, the first two numbers of its addresses, as 10.1.
    regions: The names of regions, in the order in which the architecture spreads into them.
    zones: The names of the zones of each region.
    """

    addresses: list[list[str]] = field(default_factory=list)
    """For each region and each of its zones, the first two numbers of its addresses, as 10.1."""
    regions: list[str] = field(default_factory=list)
    """The names of regions, in the order in which the architecture spreads into them."""
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
    """How requests wait for one of the instance's slots.

    Fields:
    codel: Controlled delay (RFC 8289): requests are refused, ever more often, while all wait too long.
    order: Who is next. Left out: fifo.
    patience: Requests that have waited this long are refused, at that time.
    size: How many requests wait at most; more are refused, and where priorities order the queue, the lowest
        first. Left out: any number.
    """

    codel: Codel | None = None
    """Controlled delay (RFC 8289): requests are refused, ever more often, while all wait too long."""
    order: Order | None = None
    """Who is next. Left out: fifo."""
    patience: TimeSpan | None = None
    """Requests that have waited this long are refused, at that time."""
    size: int | None = None
    """How many requests wait at most; more are refused, and where priorities order the queue, the lowest first.
    Left out: any number.
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
    """Calls per second, evenly spaced.

    Fields:
    rate: How many a second.
    burst: How many at once after a rest. Left out: 1.
    """

    rate: float
    """How many a second."""
    burst: float | None = None
    """How many at once after a rest. Left out: 1."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "rate": ("rate", None),
        "burst": ("burst", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["rate"])


@dataclass(slots=True)
class RatePoint(Part):
    """A point of a profile.

    Fields:
    at: When, after the load has begun.
    rate: Requests per second from then on.
    ramp: Whether the rate goes there in a straight line from the point before, instead of at once.
    """

    at: TimeSpan
    """When, after the load has begun."""
    rate: float
    """Requests per second from then on."""
    ramp: bool = False
    """Whether the rate goes there in a straight line from the point before, instead of at once."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "at": ("at", None),
        "rate": ("rate", None),
        "ramp": ("ramp", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["at", "rate"])


@dataclass(slots=True)
class Retries(Part):
    """Tries again what has failed.

    Fields:
    most: How many times at most.
    backoff: How long it waits before the first. Left out: no time.
    budget: How many of all calls of an instance may be retries. Left out: any number.
    factor: How many times as long it waits before each further one. Left out: 2.
    jitter: Which part of each wait is random, from 0 to 1. Left out: 0.
    limit: The longest wait. Left out: 10 s.
    """

    most: int
    """How many times at most."""
    backoff: TimeSpan | None = None
    """How long it waits before the first. Left out: no time."""
    budget: RetryBudget | None = None
    """How many of all calls of an instance may be retries. Left out: any number."""
    factor: float | None = None
    """How many times as long it waits before each further one. Left out: 2."""
    jitter: float | None = None
    """Which part of each wait is random, from 0 to 1. Left out: 0."""
    limit: TimeSpan | None = None
    """The longest wait. Left out: 10 s."""

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
    """How many of all calls of an instance may be retries.

    Fields:
    share: Retries allowed for each call, as a share of the calls.
    burst: How many are saved up at most, and there from the beginning. Left out: 10.
    """

    share: float
    """Retries allowed for each call, as a share of the calls."""
    burst: float | None = None
    """How many are saved up at most, and there from the beginning. Left out: 10."""

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {
        "share": ("share", None),
        "burst": ("burst", None),
    }
    _required: ClassVar[frozenset[str]] = frozenset(["share"])


@dataclass(slots=True)
class Service(Part):
    """A service of an architecture.

    Fields:
    name: Its name, unique in the architecture.
    package: What implements it.
    autoscaler: Adds and removes instances; count is how many there are in the beginning.
    calls: For the package service: how it calls others, by their names; * is for those left out.
    concurrency: How many requests an instance handles at once; the others queue. Left out: any number.
    container: The container image of its instances.
    count: How many instances there are in each region; 0: one that is in no zone.
    dependencies: The services that it calls. A ring that also names eureka knows its other regions.
    endpoints: For the package service: what it does for each kind of request. The first is the default.
    error_rate: The part of requests that fail, from 0 to 1.
    faults: What goes wrong, and when.
    guesstimateType: Guesstimate's word for what the value is, such as POINT, NORMAL or FUNCTION.
    guesstimateValue: The value or formula, as one types it into a cell of Guesstimate's.
    health_check: Takes instances that do not answer out of the registries.
    instance: What kind of instance it runs on; not part of any name.
    latency: How long requests to it travel, whatever the place.
    machine: What it runs on.
    process: The process in the container.
    processors: How many processors all work of an instance shares evenly. Left out: each request has its own.
    queue: How requests wait, where concurrency is limited. Left out: any number, first come first served.
    rate_limit: How many requests an instance takes; more are refused.
    regions: Into how many regions it goes for each region of the run; 0: one instance that is in no region.
    service_time: How long it works on a request before it answers or asks on.
    useCustomGuesstimate: In Guesstimate's models, guesstimateValue stands for the measured times of this
        service.
    """

    name: str
    """Its name, unique in the architecture."""
    package: str
    """What implements it."""
    autoscaler: Autoscaler | None = None
    """Adds and removes instances; count is how many there are in the beginning."""
    calls: dict[str, CallPolicy] = field(default_factory=dict)
    """For the package service: how it calls others, by their names; * is for those left out."""
    concurrency: int | None = None
    """How many requests an instance handles at once; the others queue. Left out: any number."""
    container: str = ""
    """The container image of its instances."""
    count: int = 0
    """How many instances there are in each region; 0: one that is in no zone."""
    dependencies: list[str] | None = None
    """The services that it calls. A ring that also names eureka knows its other regions."""
    endpoints: list[Endpoint] = field(default_factory=list)
    """For the package service: what it does for each kind of request. The first is the default."""
    error_rate: float | None = None
    """The part of requests that fail, from 0 to 1."""
    faults: list[Fault] = field(default_factory=list)
    """What goes wrong, and when."""
    guesstimateType: str = ""
    """Guesstimate's word for what the value is, such as POINT, NORMAL or FUNCTION."""
    guesstimateValue: str = ""
    """The value or formula, as one types it into a cell of Guesstimate's."""
    health_check: HealthCheck | None = None
    """Takes instances that do not answer out of the registries."""
    instance: str = ""
    """What kind of instance it runs on; not part of any name."""
    latency: Distribution | None = None
    """How long requests to it travel, whatever the place."""
    machine: str = ""
    """What it runs on."""
    process: str = ""
    """The process in the container."""
    processors: float | None = None
    """How many processors all work of an instance shares evenly. Left out: each request has its own."""
    queue: Queue | None = None
    """How requests wait, where concurrency is limited. Left out: any number, first come first served."""
    rate_limit: RateLimit | None = None
    """How many requests an instance takes; more are refused."""
    regions: int = 0
    """Into how many regions it goes for each region of the run; 0: one instance that is in no region."""
    service_time: Distribution | None = None
    """How long it works on a request before it answers or asks on."""
    useCustomGuesstimate: bool = False
    """In Guesstimate's models, guesstimateValue stands for the measured times of this service."""
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
    """One side of a link: all that is left out may be any.

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
    """A step: one of work, call, send, parallel and cache.

    Fields:
    cache: Looks into a cache of the instance.
    call: Calls an endpoint of a service (cart.list), or its first (cart), and waits for the answer.
    fallback: With call and parallel: the steps to do if the call or a needed list fails, before the next step;
        an empty list ignores the failure. Left out: the request fails.
    miss: With cache: what it does if the value is not there.
    parallel: Does several lists of steps at once.
    probability: How likely the step is done at all, from 0 to 1. Left out: always.
    send: Sends something to an endpoint, and does not wait.
    times: How many times: call and send one after the other, the lists of parallel at once. Left out: once.
    wait: With parallel: how many of the lists must succeed before the next step begins; the other lists keep
        running. Left out: all.
    work: Works for so long.
    """

    cache: Cache | None = None
    """Looks into a cache of the instance."""
    call: Targets | None = None
    """Calls an endpoint of a service (cart.list), or its first (cart), and waits for the answer."""
    fallback: list[Step] | None = None
    """With call and parallel: the steps to do if the call or a needed list fails, before the next step; an empty
    list ignores the failure. Left out: the request fails.
    """
    miss: list[Step] = field(default_factory=list)
    """With cache: what it does if the value is not there."""
    parallel: list[list[Step]] | None = None
    """Does several lists of steps at once."""
    probability: float | None = None
    """How likely the step is done at all, from 0 to 1. Left out: always."""
    send: Targets | None = None
    """Sends something to an endpoint, and does not wait."""
    times: int | None = None
    """How many times: call and send one after the other, the lists of parallel at once. Left out: once."""
    wait: int | None = None
    """With parallel: how many of the lists must succeed before the next step begins; the other lists keep running.
    Left out: all.
    """
    work: Distribution | None = None
    """Works for so long."""

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
    """An architecture: its services, and what each depends on.

    Fields:
    arch: The first part of every name of the run.
    services: The services, in the order in which they are created.
    args: The command that made it.
    date: When it was made.
    description: What it is, for people.
    faults: What goes wrong in places, with several services at once.
    links: What goes wrong between places.
    load: What comes in, by entry point. Those left out make a request every 10 ms, or as -kv says.
    network: How long messages travel from place to place.
    places: What regions and zones are called, and their addresses, if not as spigo's.
    version: The version of this format: arch-0.0 or arch-0.1.
    victim: The service of which half-way one instance is killed; empty: none.
    """

    arch: str
    """The first part of every name of the run."""
    services: list[Service]
    """The services, in the order in which they are created."""
    args: str = ""
    """The command that made it."""
    date: str = ""
    """When it was made."""
    description: str = ""
    """What it is, for people."""
    faults: list[PlaceFault] = field(default_factory=list)
    """What goes wrong in places, with several services at once."""
    links: list[LinkFault] = field(default_factory=list)
    """What goes wrong between places."""
    load: dict[str, EntryLoad] = field(default_factory=dict)
    """What comes in, by entry point. Those left out make a request every 10 ms, or as -kv says."""
    network: Network | None = None
    """How long messages travel from place to place."""
    places: Places = field(default_factory=lambda: Places())
    """What regions and zones are called, and their addresses, if not as spigo's."""
    version: str = ''
    """The version of this format: arch-0.0 or arch-0.1."""
    victim: str = ""
    """The service of which half-way one instance is killed; empty: none."""
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
