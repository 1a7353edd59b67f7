"""Code that type checkers must accept, and code that they must reject. `mypy --strict` reads this file; it is not run."""

from dataclasses import dataclass

import corsair
from corsair import Architecture, Context, Queue, Service, Simulation


@dataclass
class Ping:
    number: int


class Echo:
    def on(self, message: Ping, ctx: Context) -> None:
        if ctx.sender is not None:
            ctx.send(ctx.sender, Ping(message.number + 1), delay=0.5)


class Deaf:
    pass


arch = Architecture.built_in("lamp")
service: Service = arch["webserver"]
service.queue = Queue(order="fifo", size=10)
service.queue = Queue(order="filo")  # type: ignore[arg-type]
service.conut = 3  # type: ignore[attr-defined]
result = corsair.run(arch, duration="2s", workers=2)
p99: float = result.percentile(0.99)
rows: list[float] = result.timeline["p99_seconds"]
load: float | None = corsair.capacity(arch).load
count: int | None = corsair.capacity(arch, find="instances:web").instances
simulation = Simulation(seed=1)
address: int = simulation.spawn(Echo())
simulation.spawn(Deaf())  # type: ignore[arg-type]
corsair.run(arch, workers="many")  # type: ignore[arg-type]
