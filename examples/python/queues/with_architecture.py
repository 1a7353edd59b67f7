"""The queue as an architecture: a load, and a service with three slots."""

import corsair
from corsair import Architecture, EntryLoad, Service
from model import ARRIVALS, JOBS, SERVERS, SERVICE

ARCH = Architecture(
    arch="queue",
    services=[
        Service(
            name="station",
            package="store",
            count=1,
            regions=1,
            service_time=corsair.exponential(f"{1000 / SERVICE:g}ms"),
            concurrency=SERVERS,
        ),
        Service(name="www", package="denominator", dependencies=["station"]),
    ],
    load={"www": EntryLoad(rate=ARRIVALS, arrivals="poisson", requests={"common": 1.0})},
)


# The latency to the station does not change the waiting times, because arrivals are random. A longer one makes the windows
# longer, so more events are simulated together.
WAY = "1s"


def mean_wait(seed: int) -> float:
    result = corsair.run(ARCH, duration=JOBS / ARRIVALS, seed=seed, workers=1, interval=0, latency=WAY)
    station = result.summary["services_by_name"]["station"]
    return station["queue_seconds"] / station["requests"]
