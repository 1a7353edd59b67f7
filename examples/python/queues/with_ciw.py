"""The queue in Ciw."""

import ciw
from model import ARRIVALS, JOBS, SERVERS, SERVICE


def mean_wait(seed: int) -> float:
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate=ARRIVALS)],
        service_distributions=[ciw.dists.Exponential(rate=SERVICE)],
        number_of_servers=[SERVERS],
    )
    ciw.seed(seed)
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(JOBS)
    records = simulation.get_all_records()
    return sum(record.waiting_time for record in records) / len(records)
