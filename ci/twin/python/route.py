"""The instances of a called service, and the policies for calls to it. They mean what they mean in definitions."""

import time
from collections import deque

from aiohttp import ClientSession, TCPConnector


class Route:
    def __init__(self, urls: list[str], policy: dict) -> None:
        self.urls, self.policy = urls, policy
        self.session = ClientSession(connector=TCPConnector(limit=policy.get("connections", 0)))
        self.next, self.busy = 0, [0] * len(urls)
        # The times until which instances are left out, and until which the breaker is open.
        self.down, self.open_until = [0.0] * len(urls), 0.0
        self.budget, self.breaker = policy.get("budget"), policy.get("breaker")
        self.saved = self.budget["burst"] if self.budget else 0.0
        self.is_probing = False
        # The last attempts; true for failures.
        self.last: deque[bool] = deque(maxlen=self.breaker["window"] if self.breaker else 0)

    def pick(self) -> int:
        """Chooses an instance: the next one, or the next one of those with the fewest requests."""
        counts = self.policy.get("balance") == "least_requests"
        places = [(self.next + offset) % len(self.urls) for offset in range(len(self.urls))]
        now = time.monotonic()
        chosen = min(places, key=lambda place: (now < self.down[place], self.busy[place] if counts else 0))
        self.next = chosen + 1
        self.busy[chosen] += 1
        return chosen

    def earn(self) -> None:
        """Adds the share of a call to the budget of retries."""
        if self.budget:
            self.saved = min(self.saved + self.budget["share"], self.budget["burst"])

    def spend(self) -> bool:
        """Takes a retry from the budget."""
        if self.budget and self.saved < 1 - 1e-9:
            return False
        self.saved -= 1
        return True

    def allows(self) -> bool:
        if not self.open_until:
            return True
        allows = not self.is_probing and time.monotonic() >= self.open_until
        self.is_probing = self.is_probing or allows
        return allows

    def record(self, failed: bool) -> None:
        """Opens the breaker when enough of a full window has failed. One probe closes it."""
        rules = self.breaker
        if not rules or (self.open_until and not self.is_probing):
            return  # Without a breaker, or the attempt was made before the breaker opened.
        self.last.append(failed)
        is_full = len(self.last) == rules["window"] and sum(self.last) >= rules["failures"] * rules["window"] - 1e-6
        if self.is_probing and not failed:
            self.open_until = 0.0
            self.last.clear()
        elif self.is_probing or is_full:
            self.open_until = time.monotonic() + rules["open"] / 1e3
            self.last.clear()
        self.is_probing = False
