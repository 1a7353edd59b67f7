#!/usr/bin/env python3
"""How many messages a second actors in Python handle: dataclasses that go to and fro between two of them."""

import time
from dataclasses import dataclass

import corsair

BALLS, TIMES = 100, 2_000


@dataclass
class Ball:
    left: int


class Player:
    other: corsair.Address

    def on(self, ball, ctx):
        if ball.left:
            ctx.send(self.other, Ball(ball.left - 1))


def main() -> None:
    simulation = corsair.Simulation()
    players = Player(), Player()
    one, two = (simulation.spawn(player) for player in players)
    players[0].other, players[1].other = two, one
    for _ in range(BALLS):
        simulation.send(one, Ball(TIMES))
    began = time.perf_counter()
    simulation.run()
    took = time.perf_counter() - began
    handled = simulation.report()["messages_total"]
    assert handled == BALLS * (TIMES + 1)
    print(f"{handled} messages in {took:.3f} s: {handled / took:,.0f} messages/s")


if __name__ == "__main__":
    main()
