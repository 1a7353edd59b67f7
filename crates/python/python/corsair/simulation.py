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
"""The address of an actor: a number that is unique within the simulation and never reused."""


class Actor(Protocol):
    """An actor has a method `on`, and optionally `start(self, ctx)`, which is called at the beginning."""

    def on(self, message: Any, ctx: Context, /) -> None:
        """Handles a message. Messages that it sends leave at the time of this message."""


class Simulation(Paused[_corsair.Simulation]):
    """Actors written in Python, in virtual time. The simulation is deterministic, and runs on the calling thread.

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

    seed         the seed of all random numbers
    latency      the latency of messages, at least "1ns"
    most_actors  the maximum number of actors

    An exception of an actor ends the simulation. The call that advances the simulation raises the exception.
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
        """Restores a saved simulation, in this process or another. With `seed_from_here`, restores it as a branch.

        The restored simulation has the same future as the saved one. Its classes must have the same module and name as when
        it was saved. Reading a checkpoint runs code that its pickle names, so restore only files that you trust.
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
        """Saves the simulation below a directory, and returns the path of the checkpoint for `restore`.

        Actors and messages are saved by pickle. Raises PicklingError with the actor, the class and the field that cannot be
        pickled. Global variables, class attributes and the state of the module `random` are not saved, and sets may be restored
        in another order. The default directory is `checkpoints`; for a restored simulation, the directory of its checkpoint;
        for a branch, a separate directory. A directory with checkpoints of another run is refused.
        """
        below = self._directory if directory is None else Path(directory)
        return self._native.checkpoint(below, json.dumps({"actors": self._arguments}))

    def spawn(self, actor: Actor, name: str | None = None) -> Address:
        """Spawns an actor and returns its address."""
        return Address(self._native.spawn(actor, name))

    def send(self, to: int, message: object, at: Time | None = None) -> None:
        """Sends a message from outside, which arrives at a later time, or without a time as the next event."""
        self._native.send(to, message, at)

    def run_until(self, time: Time) -> None:
        """Runs until a time, inclusive."""
        self._native.run_until(time)

    def run_for(self, time: float) -> None:
        """Runs for this number of seconds."""
        self._native.run_until(self.now + time)

    def run(self) -> None:
        """Runs until no events are left. Never returns if an actor sets timers forever."""
        self._native.run()

    @property
    def next(self) -> float | None:
        """The time of the next event in seconds; None if no events are left."""
        return self._native.next

    def actor(self, which: int | str) -> Any:
        """Returns the object of an actor, by address or name."""
        return self._native.actor(which)

    def find(self, name: str) -> Address | None:
        """Returns the address of the actor with this name."""
        found = self._native.find(name)
        return None if found is None else Address(found)

    def name(self, address: int) -> str:
        """Returns the name of an actor."""
        return self._native.name(address)

    @property
    def actors(self) -> list[Address]:
        """The addresses of the actors that have not ended."""
        return [Address(address) for address in self._native.actors]

    @property
    def counters(self) -> dict[str, int]:
        """The counters of all actors, by name."""
        return self._native.counters

    def observations(self, name: str) -> Table:
        """Returns the observations of actors under a name, as a table with the columns seconds and value."""
        return self._native.observations(name)

    def report(self) -> dict[str, Any]:
        """Returns statistics about the simulation so far."""
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
        """Restores a saved simulation, in this process or another. With `seed_from_here`, restores it as a branch.

        The checkpoints and files of a branch are in a separate directory beside the checkpoint.
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
        """Saves the simulation below a directory, and returns the path of the checkpoint for `restore` and `resume`.

        The default directory is `checkpoints`, or the directory of the branch. A directory with checkpoints of another run is
        refused.
        """
        below = self._directory if directory is None else Path(directory)
        return self._native.checkpoint(below, self._about.to_json(), True)

    @property
    def instances(self) -> list[str]:
        """The names of the instances. A service with one instance can also be called by the name of the service."""
        return self._native.instances

    @property
    def load(self) -> tuple[float, float]:
        """The times at which the load begins, slightly after zero, and ends."""
        return self._native.load

    @property
    def is_over(self) -> bool:
        """True if the run has ended."""
        return self._native.is_over

    @property
    def messages(self) -> int:
        """The number of messages delivered so far."""
        return self._native.messages

    def run_until(self, time: Time) -> bool:
        """Runs until a time, inclusive. Returns False if the run has ended."""
        return self._native.run_until(time)

    def run_for(self, time: float) -> bool:
        """Runs for this number of seconds. Returns False if the run has ended."""
        return self._native.run_until(self.now + time)

    def state(self, instance: str) -> dict[str, Any] | None:
        """Returns the state of an instance as numbers; None before the instance has begun and after it has ended."""
        state = self._native.state(instance)
        return None if state is None else json.loads(state)

    def details(self, instance: str) -> dict[str, Any] | None:
        """Returns all details of an instance: state, totals, the instances that it can call, pending requests."""
        details = self._native.details(instance)
        return None if details is None else json.loads(details)

    def request(self, instance: str, endpoint: str | None = None, at: Time | None = None) -> int:
        """Sends a request from outside, for an endpoint such as "cart/add", or for the value that all storage has."""
        return self._native.send(instance, endpoint, None, at)

    def put(self, instance: str, number: int, at: Time | None = None) -> int:
        """Sends a value to be stored."""
        return self._native.send(instance, None, number, at)

    def kill(self, instance: str, at: Time | None = None) -> None:
        """Kills an instance: requests to it fail, and it leaves the registries."""
        self._native.command(instance, "kill", None, at)

    def revive(self, instance: str, at: Time | None = None) -> None:
        """Revives a killed instance, whatever killed it."""
        self._native.command(instance, "revive", None, at)

    def pause(self, instance: str, at: Time | None = None) -> None:
        """Pauses an instance: messages to it wait."""
        self._native.command(instance, "pause", None, at)

    def resume(self, instance: str, at: Time | None = None) -> None:
        """Resumes a paused instance, whatever paused it."""
        self._native.command(instance, "resume", None, at)

    def slow(self, instance: str, percent: int, at: Time | None = None) -> None:
        """Sets the times of the instance to this percentage of the defined ones; 100 restores them."""
        self._native.command(instance, "slow", percent, at)

    def partition(self, instance: str, at: Time | None = None) -> None:
        """Cuts an instance off from other zones."""
        self._native.command(instance, "partition", None, at)

    def rejoin(self, instance: str, at: Time | None = None) -> None:
        """Ends the partition of an instance."""
        self._native.command(instance, "rejoin", None, at)

    def scale_load(self, entry: str, percent: int, at: Time | None = None) -> None:
        """Sets the load of an entry point to this percentage of the defined load; 0 stops it."""
        self._native.command(entry, "load", percent, at)

    def finish(self) -> Result:
        """Runs to the end and returns the results."""
        return result_of(self._native.finish(False))
