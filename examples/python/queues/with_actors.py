"""The queue as actors in Python."""

from collections import deque

import corsair
from model import ARRIVALS, JOBS, SERVERS, SERVICE

ARRIVED, DONE = "arrived", "done"


class Station:
    def __init__(self):
        self.waiting, self.busy, self.begun, self.waited, self.left = deque(), 0, 0, 0.0, JOBS

    def start(self, ctx):
        ctx.after(ctx.exponential(1 / ARRIVALS), ARRIVED)

    def on(self, message, ctx):
        now = ctx.now
        if message is DONE:
            self.busy -= 1
        else:
            self.waiting.append(now)
            self.left -= 1
            if self.left:
                ctx.after(ctx.exponential(1 / ARRIVALS), ARRIVED)
        while self.waiting and self.busy < SERVERS:
            self.waited += now - self.waiting.popleft()
            self.busy, self.begun = self.busy + 1, self.begun + 1
            ctx.after(ctx.exponential(1 / SERVICE), DONE)


def mean_wait(seed: int) -> float:
    simulation = corsair.Simulation(seed=seed)
    station = Station()
    simulation.spawn(station)
    simulation.run()
    return station.waited / station.begun
