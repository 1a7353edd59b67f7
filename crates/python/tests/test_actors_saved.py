"""Checkpoints of actors written in Python: saved data, refusals, and equality with uninterrupted runs."""

from __future__ import annotations

import enum
import functools
import os
import pathlib
import pickle
import random
import subprocess
import sys
from dataclasses import dataclass, field

import corsair
import pytest
from corsair import Simulation


@dataclass
class Job:
    size: float
    route: list[int] = field(default_factory=list)


class Phase(enum.Enum):
    UP = 1
    DOWN = 2


class Source:
    """Sends jobs at random times to servers that it shares with them by address and by a list."""

    def __init__(self, servers, log):
        self.servers = servers
        self.log = log

    def start(self, ctx):
        ctx.every("250ms", "tick")
        ctx.after(ctx.exponential(0.1), Job(0.0))

    def on(self, message, ctx):
        match message:
            case "tick":
                ctx.count("ticks")
            case Job():
                job = Job(ctx.exponential(0.05), [ctx.me])
                self.log.append(job)
                ctx.send(ctx.choice(self.servers), job, delay=ctx.uniform(0, 0.2))
                ctx.after(ctx.exponential(0.02), Job(0.0))


class Server:
    """Has a queue, fails sometimes, spawns a helper for long jobs, and cancels its own timer."""

    def __init__(self, log):
        self.queue = []
        self.log = log
        self.phase = Phase.UP
        self.timer = None
        self.rng = random.Random(5)

    def on(self, message, ctx):
        match message:
            case Job() as job:
                # The job is the object that the source has logged.
                assert any(job is known for known in self.log)
                self.queue.append(job)
                ctx.observe("length", len(self.queue))
                if len(self.queue) == 1 and self.phase is Phase.UP:
                    ctx.after(job.size, "done")
                if self.timer is not None:
                    ctx.cancel(self.timer)
                self.timer = ctx.after(0.5, "idle")
            case "done":
                job = self.queue.pop(0)
                if job.size > 0.1:
                    helper = ctx.spawn(Helper(), name=f"helper {ctx.now_ns}")
                    ctx.send(helper, job)
                if self.rng.random() < 0.1:
                    self.phase = Phase.DOWN
                    ctx.after(0.3, "repaired")
                elif self.queue:
                    ctx.after(self.queue[0].size, "done")
            case "repaired":
                self.phase = Phase.UP
                if self.queue:
                    ctx.after(self.queue[0].size, "done")
            case "idle":
                ctx.count("idle")


class Helper:
    def start(self, ctx):
        self.ctx = ctx

    def on(self, message, ctx):
        assert self.ctx is ctx
        if isinstance(message, Job):
            self.ctx.after(0.1, "bye")
        else:
            ctx.stop()


class Ring:
    """Passes one object around."""

    def __init__(self, place):
        self.place = place
        self.next = None
        self.seen = 0

    def on(self, message, ctx):
        self.seen += 1
        message["hops"] += 1
        ctx.send(self.next, message, delay=ctx.random())


class Lazy:
    """Begins only when its first message arrives."""

    def start(self, ctx):
        self.began = ctx.now

    def on(self, message, ctx):
        ctx.observe("began", self.began)


def queues(seed=3):
    simulation = Simulation(seed=seed, latency="1ms")
    log = []
    servers = [simulation.spawn(Server(log), name=f"server {number}") for number in range(3)]
    simulation.spawn(Source(servers, log), name="source")
    return simulation


def ring(seed=3):
    simulation = Simulation(seed=seed, latency="1us", most_actors=200)
    members = [simulation.spawn(Ring(place)) for place in range(100)]
    for place, member in enumerate(members):
        simulation.actor(member).next = members[(place + 7) % 100]
    for number in range(10):
        simulation.send(members[number], {"hops": 0}, at=number / 10)
    return simulation


def lazy(seed=3):
    simulation = Simulation(seed=seed, latency="1s")
    actors = [simulation.spawn(Lazy()) for _ in range(5)]
    for number, actor in enumerate(actors):
        simulation.send(actor, "go", at=float(number))
    return simulation


MODELS = {"queues": queues, "ring": ring, "lazy": lazy}


def facts(simulation):
    """Returns everything that can be observed of a simulation."""
    simulation.run_until(8.0)
    report = simulation.report()
    states = [pickle.dumps(vars(simulation.actor(who)).get("seen")) for who in simulation.actors]
    observed = {}
    for name in ("length", "began"):
        try:
            observed[name] = simulation.observations(name).to_dict()
        except KeyError:
            pass
    return report, states, observed, [simulation.name(who) for who in simulation.actors]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("at", [0.0, 0.35, 2.0, 2.0000005, 5.1])
def test_a_restored_simulation_ends_as_one_that_was_not_interrupted(model, at, tmp_path):
    whole = facts(MODELS[model]())
    saved = MODELS[model]()
    saved.run_until(at)
    before = saved.digest
    place = saved.checkpoint(tmp_path)
    assert saved.digest == before
    restored = Simulation.restore(place)
    assert (restored.digest, restored.now, restored.next) == (before, saved.now, saved.next)
    # Saving changes nothing, and a restored simulation can be saved again.
    again = Simulation.restore(restored.checkpoint())
    for simulation in (saved, restored, again):
        assert facts(simulation) == whole


def test_a_checkpoint_within_a_step_is_exact(tmp_path):
    simulation = queues()
    for _ in range(137):
        simulation.step()
    restored = Simulation.restore(simulation.checkpoint(tmp_path))
    assert facts(restored) == facts(simulation)


def test_what_actors_and_messages_share_is_shared_again(tmp_path):
    simulation = queues()
    simulation.run_until(1.0)
    restored = Simulation.restore(simulation.checkpoint(tmp_path))
    source = restored.actor("source")
    assert restored.actor("server 0").log is source.log
    # The servers assert that jobs in flight are the objects in the log.
    restored.run_until(3.0)
    assert len(source.log) > 50


def test_another_process_restores(tmp_path):
    simulation = ring()
    simulation.run_until(2.0)
    place = simulation.checkpoint(tmp_path)
    code = (
        "import corsair, sys; import test_actors_saved; "
        f"restored = corsair.Simulation.restore({str(place)!r}); restored.run_until(8.0); print(restored.digest)"
    )
    for hashes in ("0", "1"):
        path = os.pathsep.join([*sys.path, str(pathlib.Path(__file__).parent)])
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": hashes}
        ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        simulation.run_until(8.0)
        assert ran.stdout.strip() == simulation.digest, ran.stderr


def test_a_branch_has_random_numbers_and_a_directory_of_its_own(tmp_path):
    simulation = queues()
    simulation.run_until(2.0)
    place = simulation.checkpoint(tmp_path)
    whole = facts(simulation)[0]["digest"]
    branches = [Simulation.restore(place, seed_from_here=seed) for seed in (7, 7, 8)]
    kept = branches[0].checkpoint()
    assert kept.parent != place.parent and kept.parent.parent == place.parent
    digests = [facts(branch)[0]["digest"] for branch in branches]
    assert digests[0] == digests[1] and len({whole, *digests}) == 3
    assert facts(Simulation.restore(kept))[0]["digest"] == digests[0]
    assert facts(Simulation.restore(tmp_path))[0]["digest"] == whole


def test_another_run_is_refused_in_the_directory(tmp_path):
    queues(seed=3).checkpoint(tmp_path)
    with pytest.raises(ValueError, match="another run"):
        queues(seed=4).checkpoint(tmp_path)
    with pytest.raises(ValueError, match="another run"):
        ring(seed=3).checkpoint(tmp_path)


def test_branches_are_forked(tmp_path):
    simulation = ring()
    simulation.run_until(2.0)
    place = simulation.checkpoint(tmp_path)

    def faster(branch):
        for who in branch.actors:
            branch.actor(who).place = 0
        branch.run_until(4.0)
        return {"messages": branch.report()["messages_total"]}

    table = corsair.fork(place, {"faster": faster, "again": faster}, seeds=3, workers=2)
    assert table.columns == ["branch", "seed", "messages"] and table["seed"] == [3, 4, 5] * 2
    assert table["messages"][:3] == table["messages"][3:]
    assert table == corsair.fork(place, {"faster": faster, "again": faster}, seeds=3, workers=1)
    with pytest.raises(TypeError, match="'x' is a dict; give a function"):
        corsair.fork(place, {"x": {"load": "100%"}})
    with pytest.raises(ValueError, match="run_until"):
        corsair.fork(place, {"x": faster}, until=3)
    with pytest.raises(ValueError, match="give a function"):
        corsair.fork(place, {})


class Holder:
    def __init__(self, **fields):
        vars(self).update(fields)

    def on(self, message, ctx):
        self.got = message


class Slotted:
    __slots__ = ("log",)

    def on(self, message, ctx):
        pass


class Stubborn:
    def on(self, message, ctx):
        pass

    def __getstate__(self):
        raise RuntimeError("not today")


def counter():
    yield 1


def local_function():
    def inner():
        pass

    return inner


def local_class():
    class Inner:
        def on(self, message, ctx):
            pass

    return Inner


def slotted(log):
    actor = Slotted()
    actor.log = log
    return actor


def cyclic():
    inner, outer = Holder(), Holder()
    outer.inner, inner.outer = inner, outer
    outer.gate = counter()
    return outer


REFUSED = {
    "generator": (lambda: Holder(jobs=counter()), r"actor 'x' cannot be saved: Holder\.jobs is an open generator; keep in fields"),
    "file": (lambda: Holder(log=open(os.devnull)), r"Holder\.log is an open file; leave it out in __getstate__"),
    "lambda": (lambda: Holder(rule=lambda: 1), r"Holder\.rule is a lambda; use a function of a module"),
    "local function": (lambda: Holder(rule=local_function()), r"Holder\.rule is the local function inner; use a function"),
    "local class": (lambda: local_class()(), r"is of the local class Inner; define the class at the top of a module"),
    "nested": (lambda: Holder(a={"b": [1, (2, Holder(c=counter()))]}), r"Holder\.a\['b'\]\[1\]\[1\]\.c is an open generator"),
    "slots": (lambda: slotted(counter()), r"Slotted\.log is an open generator"),
    "cycle": (cyclic, r"Holder\.gate is an open generator"),
    "partial": (lambda: Holder(rule=functools.partial(print, end=counter())), r"Holder\.rule.* is an open generator"),
    "getstate": (Stubborn, r"actor 'x' cannot be saved: Stubborn is a Stubborn, which pickle refuses"),
    "class": (lambda: type("Plain", (), {"on": staticmethod(lambda message, ctx: None)}), r"the type Plain itself.* spawn an instance"),
    "simulation": (lambda: Holder(simulation=Simulation()), r"Holder\.simulation is a Simulation, which pickle refuses"),
    "environment": (lambda: Holder(env=corsair.sim.Environment()), r"Holder\.env is a Environment, which pickle refuses"),
    "event": (lambda: Holder(event=corsair.sim.Environment().event()), r"Holder\.event.* which pickle refuses"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_cannot_be_pickled_is_named(which, tmp_path):
    make, said = REFUSED[which]
    simulation = Simulation()
    simulation.spawn(Holder(), name="fine")
    simulation.spawn(make(), name="x")
    with pytest.raises(pickle.PicklingError, match=said):
        simulation.checkpoint(tmp_path)
    # Nothing was written, and the simulation continues.
    assert not list(tmp_path.rglob("MANIFEST*")) and not list(tmp_path.glob("0*"))
    simulation.send(simulation.find("fine"), "go", at=1.0)
    simulation.run()
    assert simulation.actor("fine").got == "go"


def test_messages_that_cannot_be_pickled_are_named(tmp_path):
    class_of = Holder(rule=lambda: 1)
    simulation = Simulation()
    who = simulation.spawn(Holder(), name="x")
    simulation.send(who, class_of, at=5.0)
    with pytest.raises(pickle.PicklingError, match=r"a message on its way cannot be saved: Holder\.rule is a lambda"):
        simulation.checkpoint(tmp_path / "mail")

    class Setter:
        def on(self, message, ctx):
            ctx.after(1.0, lambda: 1)

    simulation = Simulation()
    simulation.send(simulation.spawn(Setter(), name="x"), "go")
    simulation.run_until(0.5)
    with pytest.raises(pickle.PicklingError, match="local class Setter|a timer of actor 'x'"):
        simulation.checkpoint(tmp_path / "timer")


def test_an_actor_with_another_method_than_it_was_spawned_with_is_refused(tmp_path):
    actor = Holder()
    simulation = Simulation()
    simulation.spawn(actor, name="x")
    actor.on = actor.__init__
    with pytest.raises(pickle.PicklingError, match="not the method with which it was spawned"):
        simulation.checkpoint(tmp_path)


def test_there_is_something_to_save(tmp_path):
    with pytest.raises(ValueError, match="spawn an actor"):
        Simulation().checkpoint(tmp_path)
    simulation = queues()
    simulation.close()
    with pytest.raises(corsair.SimulationError, match="was closed"):
        simulation.checkpoint(tmp_path)


def test_checkpoints_of_actors_and_of_architectures_are_distinguished(tmp_path):
    queues().checkpoint(tmp_path / "actors")
    corsair.run("lamp", duration=1, load="50/s", checkpoint_at=0.5, checkpoint_dir=tmp_path / "services")
    with pytest.raises(ValueError, match=r"continue it by Simulation\.restore"):
        corsair.resume(tmp_path / "actors")
    with pytest.raises(ValueError, match=r"ServiceSimulation\.restore"):
        Simulation.restore(tmp_path / "services")
    with pytest.raises(FileNotFoundError):
        Simulation.restore(tmp_path / "nothing")


def test_damaged_checkpoints_are_refused(tmp_path):
    place = queues().checkpoint(tmp_path)
    rng = random.Random(1)
    for file in sorted(place.iterdir()):
        whole = file.read_bytes()
        for damaged in (whole[:-2], whole + b"x", b"", bytes([whole[0] ^ 1]) + whole[1:], rng.randbytes(len(whole))):
            file.write_bytes(damaged)
            with pytest.raises((ValueError, OSError, pickle.UnpicklingError)):
                # The parts of the run are checked when they are read.
                Simulation.restore(place).run_until(1.0)
        file.write_bytes(whole)
    Simulation.restore(place).run_until(1.0)


def test_a_class_that_is_gone_is_named(tmp_path):
    module = tmp_path / "gone_models.py"
    module.write_text("class Gone:\n    def on(self, message, ctx):\n        pass\n")
    sys.path.insert(0, str(tmp_path))
    try:
        gone = __import__("gone_models")
        simulation = Simulation()
        simulation.spawn(gone.Gone())
        place = simulation.checkpoint(tmp_path / "saved")
        del gone.Gone
        with pytest.raises(pickle.UnpicklingError, match="a class of the saved actors is not where it was.*Gone"):
            Simulation.restore(place)
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("gone_models", None)
