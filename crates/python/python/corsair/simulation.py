"""Simulations that are paused between calls: actors written in Python, and architectures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NewType, Protocol, TypeVar

from . import _corsair
from ._corsair import Context, Table
from ._paused import Paused
from .architecture import Architecture, Source
from .experiments import FlowFormat, recorded_arguments, result_of, run_arguments
from .result import Result
from .saving import RunDescription, Time

Address = NewType("Address", int)
"""The address of an actor: a number that no other actor of the simulation ever has."""


class Actor(Protocol):
    """A class is an actor if it has `on`; a method `start(self, ctx)`, if there is one, is called at its beginning."""

    def on(self, message: Any, ctx: Context, /) -> None:
        """Handles a message. Whatever it sends leaves at the time of the message."""


class Simulation(Paused[_corsair.Simulation]):
    """Actors written in Python, in virtual time: deterministic, on the thread that calls.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Ping:
    ...     number: int
    >>> class Counter:
    ...     seen = 0
    ...     def on(self, message, ctx):
    ...         self.seen += 1
    ...         if message.number:
    ...             ctx.after(1.0, Ping(message.number - 1))
    >>> simulation = Simulation(seed=7)
    >>> counter = simulation.spawn(Counter())
    >>> simulation.send(counter, Ping(9), at=0.5)
    >>> simulation.run_until(5.0)
    >>> simulation.actor(counter).seen
    5
    >>> simulation.run()
    >>> simulation.actor(counter).seen, simulation.now
    (10, 9.5)

    seed         where all random numbers come from
    latency      how long messages travel, at least "1ns"
    most_actors  the largest number of actors

    An exception of an actor ends the simulation; the call that advances it raises the exception.
    """

    def __init__(self, *, seed: int = 0, latency: Time = "1us", most_actors: int = 65_536) -> None:
        self._begin({"seed": seed, "latency": latency, "most_actors": most_actors}, None, None)

    def _begin(self, arguments: dict[str, Any], saved: _corsair.SavedCheckpoint | None, seed_from_here: int | None) -> None:
        if saved is None:
            native = _corsair.Simulation(arguments)
        else:
            native = _corsair.Simulation.restore(arguments, saved, seed_from_here)
        super().__init__(native)
        self._arguments = arguments | {"latency": _corsair.seconds(arguments["latency"])}
        self._directory = Path("checkpoints")

    @classmethod
    def restore(
        cls, directory: str | os.PathLike[str] = "checkpoints", seed_from_here: int | None = None
    ) -> Simulation:
        """Restores a saved simulation, in this process or another; with `seed_from_here`, as a branch of it.

        The restored simulation does what the saved one would have done. Its classes must be where they were when it was
        saved. Reading a checkpoint runs code that its pickle names: restore only files that you trust.
        """
        saved = _corsair.SavedCheckpoint(Path(directory))
        arguments = json.loads(saved.about).get("actors")
        if arguments is None:
            raise ValueError(f"{directory} has a run of an architecture; continue it by resume or ServiceSimulation.restore")
        made = cls.__new__(cls)
        made._begin(arguments, saved, seed_from_here)
        made._directory = Path(saved.below) if seed_from_here is None else saved.branch_directory(seed_from_here, [])
        return made

    def checkpoint(self, directory: str | os.PathLike[str] | None = None) -> Path:
        """Saves the simulation below a directory and returns the checkpoint, where `restore` continues.

        Actors and messages are saved by pickle. Raises PicklingError with the actor, the class and the field that pickle
        refuses. Global variables, class attributes and the state of the module `random` are not saved, and sets may be
        restored in another order. The directory is `checkpoints` if left out; of a restored simulation it is where it was
        saved, and a branch has its own. One that has checkpoints of another run is refused.
        """
        below = self._directory if directory is None else Path(directory)
        return self._native.checkpoint(below, json.dumps({"actors": self._arguments}))

    def spawn(self, actor: Actor, name: str | None = None) -> Address:
        """Spawns an actor and returns its address."""
        return Address(self._native.spawn(actor, name))

    def send(self, to: int, message: object, at: Time | None = None) -> None:
        """Sends a message from outside, to arrive at a later time; without a time, immediately after now."""
        self._native.send(to, message, at)

    def run_until(self, time: Time) -> None:
        """Runs until a time, inclusive."""
        self._native.run_until(time)

    def run_for(self, time: float) -> None:
        """Runs for this number of seconds."""
        self._native.run_until(self.now + time)

    def run(self) -> None:
        """Runs until no events are left. Never returns if an actor sets a timer again and again."""
        self._native.run()

    @property
    def next(self) -> float | None:
        """Time of the next event in seconds; None if no events are left."""
        return self._native.next

    def actor(self, which: int | str) -> Any:
        """Returns the object of an actor, by address or name."""
        return self._native.actor(which)

    def find(self, name: str) -> Address | None:
        """The address of the actor of this name."""
        found = self._native.find(name)
        return None if found is None else Address(found)

    def name(self, address: int) -> str:
        """The name of an actor."""
        return self._native.name(address)

    @property
    def actors(self) -> list[Address]:
        """The addresses of the actors that have not ended."""
        return [Address(address) for address in self._native.actors]

    @property
    def counters(self) -> dict[str, int]:
        """What actors have counted."""
        return self._native.counters

    def observations(self, name: str) -> Table:
        """What actors have observed under a name: columns seconds and value."""
        return self._native.observations(name)

    def report(self) -> dict[str, Any]:
        """What has happened so far, in numbers."""
        return self._native.report()


class ServiceSimulation(Paused[_corsair.Live]):
    """An architecture in virtual time that is advanced step by step, inspected, and given commands.

    The result depends only on the architecture and on the commands with their times, not on the number of workers.
    """

    def __init__(
        self,
        arch: Source,
        duration: Time = 10.0,
        load: str | None = None,
        seed: int = 0,
        workers: int = 1,
        *,
        population: int = 100,
        regions: int = 1,
        warm_up: Time = 0.0,
        interval: Time | None = None,
        latency: Time | None = None,
        chat: Time | None = None,
        poll: Time | None = None,
        graph: bool = False,
        flows: bool = False,
        out: str | os.PathLike[str] | None = None,
        flow_format: FlowFormat = "otlp",
    ) -> None:
        arguments = run_arguments(
            duration, load, seed, workers, population, regions, warm_up, interval, latency, chat, poll
        )
        arguments |= recorded_arguments(graph, flows, out, flow_format)
        self._begin(RunDescription(*Architecture.of(arch)._text(), arguments), None, None)

    def _begin(self, about: RunDescription, saved: _corsair.SavedCheckpoint | None, seed_from_here: int | None) -> None:
        super().__init__(_corsair.Live(about.text, about.file, about.arguments, saved, seed_from_here))
        self._about = about
        self._directory = Path("checkpoints")

    @classmethod
    def restore(
        cls,
        directory: str | os.PathLike[str] = "checkpoints",
        workers: int = 1,
        seed_from_here: int | None = None,
    ) -> ServiceSimulation:
        """Restores a saved simulation, in this process or another; with `seed_from_here`, as a branch of it.

        A branch has a directory of its own beside the checkpoint for its own checkpoints and files.
        """
        saved = _corsair.SavedCheckpoint(Path(directory))
        made = cls.__new__(cls)
        about = RunDescription.of(saved, workers)
        own = None if seed_from_here is None else saved.branch_directory(seed_from_here, [])
        if own is not None:
            about.move_to(own)
        made._begin(about, saved, seed_from_here)
        if own is not None:
            made._directory = own
        return made

    def checkpoint(self, directory: str | os.PathLike[str] | None = None) -> Path:
        """Saves the simulation below a directory and returns the checkpoint: `restore` and `resume` continue there.

        The directory is `checkpoints` if left out, or that of the branch. One that has checkpoints of another run is
        refused.
        """
        below = self._directory if directory is None else Path(directory)
        return self._native.checkpoint(below, self._about.to_json(), True)

    @property
    def instances(self) -> list[str]:
        """The names of the instances; a service that has only one may be called by its own."""
        return self._native.instances

    @property
    def load(self) -> tuple[float, float]:
        """When the load begins, a little after zero, and when it ends."""
        return self._native.load

    @property
    def is_over(self) -> bool:
        """True if the run has ended."""
        return self._native.is_over

    @property
    def messages(self) -> int:
        """Number of messages delivered so far."""
        return self._native.messages

    def run_until(self, time: Time) -> bool:
        """Runs until a time, inclusive. Returns False if the run has ended."""
        return self._native.run_until(time)

    def run_for(self, time: float) -> bool:
        """Runs for this number of seconds. Returns False if the run has ended."""
        return self._native.run_until(self.now + time)

    def state(self, instance: str) -> dict[str, Any] | None:
        """The state of an instance in numbers; None before it has begun and after it has ended."""
        state = self._native.state(instance)
        return None if state is None else json.loads(state)

    def details(self, instance: str) -> dict[str, Any] | None:
        """Everything about an instance: state, totals, whom it knows, requests under way."""
        details = self._native.details(instance)
        return None if details is None else json.loads(details)

    def request(self, instance: str, endpoint: str | None = None, at: Time | None = None) -> int:
        """Sends a request from outside: for an endpoint such as "cart/add", or for the value that all know."""
        return self._native.send(instance, endpoint, None, at)

    def put(self, instance: str, number: int, at: Time | None = None) -> int:
        """Sends a value that is to be kept."""
        return self._native.send(instance, None, number, at)

    def kill(self, instance: str, at: Time | None = None) -> None:
        """It is gone: requests to it fail, and it leaves the registries."""
        self._native.command(instance, "kill", None, at)

    def revive(self, instance: str, at: Time | None = None) -> None:
        """It is back, whatever killed it."""
        self._native.command(instance, "revive", None, at)

    def pause(self, instance: str, at: Time | None = None) -> None:
        """It does nothing; what arrives waits."""
        self._native.command(instance, "pause", None, at)

    def resume(self, instance: str, at: Time | None = None) -> None:
        """Resumes a paused instance, whatever has paused it."""
        self._native.command(instance, "resume", None, at)

    def slow(self, instance: str, percent: int, at: Time | None = None) -> None:
        """Sets the times of the instance to this percentage of the defined ones; 100 restores them."""
        self._native.command(instance, "slow", percent, at)

    def partition(self, instance: str, at: Time | None = None) -> None:
        """It is cut off from other zones."""
        self._native.command(instance, "partition", None, at)

    def rejoin(self, instance: str, at: Time | None = None) -> None:
        """It is cut off no more."""
        self._native.command(instance, "rejoin", None, at)

    def scale_load(self, entry: str, percent: int, at: Time | None = None) -> None:
        """Sets the load of an entry point to this percentage of the defined load; 0 stops it."""
        self._native.command(entry, "load", percent, at)

    def finish(self) -> Result:
        """Runs to the end and returns the results."""
        return result_of(self._native.finish(False))
