"""The queue in SimPy."""

import random

import simpy
from model import ARRIVALS, JOBS, SERVERS, SERVICE


class Queue:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.env = simpy.Environment()
        self.servers = simpy.Resource(self.env, capacity=SERVERS)
        self.waited = 0.0

    def source(self):
        for _ in range(JOBS):
            yield self.env.timeout(self.random.expovariate(ARRIVALS))
            self.env.process(self.job())

    def job(self):
        arrived = self.env.now
        with self.servers.request() as request:
            yield request
            self.waited += self.env.now - arrived
            yield self.env.timeout(self.random.expovariate(SERVICE))


def mean_wait(seed: int) -> float:
    queue = Queue(seed)
    queue.env.process(queue.source())
    queue.env.run()
    return queue.waited / JOBS
