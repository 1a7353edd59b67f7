"""An M/M/3 queue: jobs that come in at random, three servers, one line. What all four programs simulate."""

ARRIVALS = 2_400.0
"""Jobs a second."""
SERVICE = 1_000.0
"""Jobs that a server does a second."""
SERVERS = 3
JOBS = 100_000


def theory() -> float:
    """The mean wait in seconds, by Erlang's formula."""
    load = ARRIVALS / SERVICE
    term, terms = 1.0, 0.0
    for number in range(SERVERS):
        terms += term
        term *= load / (number + 1)
    busy = term * SERVERS / (SERVERS - load)
    return busy / (terms + busy) / (SERVERS * SERVICE - ARRIVALS)
