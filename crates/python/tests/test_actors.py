"""Actors written in Python."""

import enum
import gc
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import weakref
from dataclasses import dataclass

import corsair
import pytest
from corsair import Simulation, SimulationError


@dataclass(frozen=True)
class Ping:
    number: int


class Echo:
    """Answers every ping with the next number, up to `most`."""

    def __init__(self, most=10):
        self.most = most
        self.seen = []

    def on(self, message, ctx):
        self.seen.append((ctx.now, message))
        if message.number < self.most and ctx.sender is not None:
            ctx.send(ctx.sender, Ping(message.number + 1))


class Once:
    """Calls a function once."""

    def __init__(self, act):
        self.act = act

    def on(self, message, ctx):
        self.act(message, ctx)


def run_once(act, message=None, **arguments):
    simulation = Simulation(**arguments)
    simulation.send(simulation.spawn(Once(act)), message)
    simulation.run()
    return simulation


def test_messages_take_the_latency_and_delays_come_on_top():
    simulation = Simulation(latency="2ms")
    echo = simulation.spawn(Echo(), name="echo")
    times = []

    def begin(message, ctx):
        if message == "go":
            ctx.send(echo, Ping(0))
            ctx.send(echo, Ping(9), delay=0.5)
        else:
            times.append(ctx.now)

    simulation.send(simulation.spawn(Once(begin)), "go", at=1)
    simulation.run()
    assert [time for time, _ in simulation.actor("echo").seen] == [1.002, 1.502]
    assert times == [1.004, 1.504]
    assert simulation.find("echo") == echo and simulation.name(echo) == "echo"
    assert simulation.find("none") is None


def test_timers_come_to_the_nanosecond_and_can_be_cancelled():
    seen = []

    class Timers:
        def start(self, ctx):
            self.first = ctx.after(1.0, "first")
            self.second = ctx.after("2s", "second")
            self.tick = ctx.every(0.25, "tick")

        def on(self, message, ctx):
            seen.append((ctx.now, message))
            if message == "first":
                assert ctx.cancel(self.second) and not ctx.cancel(self.second) and not ctx.cancel(self.first)
                assert ctx.cancel(self.tick)
                third = ctx.after(1.5, "third")
                assert ctx.cancel(ctx.after(9.0, "never"))
                assert third != self.first
            assert ctx.sender == ctx.me

    simulation = Simulation()
    simulation.spawn(Timers())
    simulation.run()
    began = seen[0][0] - 0.25
    assert seen[0][1] == "tick"
    assert [(round(time - began, 9), what) for time, what in seen if what != "tick"] == [(1.0, "first"), (2.5, "third")]
    assert sum(what == "tick" for _, what in seen) in (3, 4)
    assert simulation.next is None


def test_actors_spawn_others_and_end():
    class Parent:
        def on(self, message, ctx):
            if message == "begin":
                self.children = [ctx.spawn(Child(), name=f"child {number}") for number in range(3)]
                for child in self.children:
                    ctx.send(child, "end" if child == self.children[0] else "live")
                ctx.stop(self.children[1])

    class Child:
        def start(self, ctx):
            ctx.count("born")

        def on(self, message, ctx):
            ctx.count(message)
            if message == "end":
                ctx.stop()

    simulation = Simulation()
    parent = simulation.spawn(Parent())
    simulation.send(parent, "begin", at=0)
    simulation.run()
    assert simulation.counters == {"born": 3, "end": 1, "live": 2}
    assert len(simulation.actors) == 2
    with pytest.raises(KeyError, match="has ended"):
        simulation.actor("child 0") if simulation.find("child 0") is not None else simulation.actor(1)
    before = simulation.report()["dead_letters"]
    simulation.send(1, "too late")
    simulation.run()
    assert simulation.report()["dead_letters"] == before + 1
    simulation.spawn(Child(), name="child 0")


def test_the_same_seed_does_the_same_and_another_does_not():
    def once(seed):
        simulation = Simulation(seed=seed, latency="1ms")

        class Walker:
            def on(self, message, ctx):
                if message.number:
                    to = ctx.choice(walkers)
                    ctx.send(to, Ping(message.number - 1), delay=ctx.exponential(0.1))
                    ctx.observe("drawn", ctx.uniform(0, 1) + ctx.normal(0, 1) + ctx.lognormal(1, 1) + ctx.below(6))

        walkers = [simulation.spawn(Walker()) for _ in range(20)]
        for walker in walkers:
            simulation.send(walker, Ping(50), at=0)
        simulation.run()
        return simulation.digest, simulation.now, simulation.observations("drawn").to_dict()

    assert once(1) == once(1)
    assert once(1)[0] != once(2)[0]


def test_digests_are_the_same_in_every_process():
    code = """
        import corsair, dataclasses, enum
        class Colour(enum.Enum):
            RED = 1
        @dataclasses.dataclass
        class Message:
            text: str
            number: float
            colour: Colour
            more: tuple
        class Actor:
            def on(self, message, ctx):
                pass
        simulation = corsair.Simulation()
        simulation.send(simulation.spawn(Actor()), Message("hash me", 1.5, Colour.RED, (1, None, b"x", [True])))
        simulation.run()
        print(simulation.digest)
    """
    digests = {
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(digests) == 1


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def test_digests_tell_messages_apart():
    def digest(message):
        simulation = Simulation()
        simulation.send(simulation.spawn(Once(lambda message, ctx: None)), message)
        simulation.run()
        return simulation.digest

    messages = [
        None, 0, 1, -1, 2**80, -(2**80), 1.0, 0.5, "", "a", "b", b"a", (), (1,), (1, 2), [1, 2], Ping(1), Ping(2),
        Colour.RED, Colour.BLUE, object(),
    ]
    digests = [digest(message) for message in messages]
    # Nothing and zero have the same encoding in some cases; all other messages differ.
    assert len(set(digests)) >= len(messages) - 2
    recursive: list = []
    recursive.append(recursive)
    assert digest(recursive) == digest(recursive)


def test_what_an_actor_raises_is_raised_and_ends_the_simulation():
    def fails(message, ctx):
        raise LookupError("no such thing")

    simulation = Simulation()
    bystander = Echo()
    simulation.send(simulation.spawn(Once(fails), name="culprit"), "go", at=1.5)
    simulation.send(simulation.spawn(bystander), Ping(1), at=3)
    with pytest.raises(LookupError, match="no such thing") as caught:
        simulation.run()
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__ == ["raised by culprit at 1.5 s"]
    for again in (simulation.run, simulation.step, lambda: simulation.run_until(9), lambda: simulation.send(0, 1)):
        with pytest.raises(SimulationError, match="LookupError"):
            again()
    assert bystander.seen == []
    assert simulation.actor("culprit") is not None


def test_exceptions_of_start_and_of_fingerprints_are_raised_as_well():
    class Fails:
        def start(self, ctx):
            raise ValueError("at the start")

        def on(self, message, ctx):
            pass

    simulation = Simulation()
    simulation.spawn(Fails())
    with pytest.raises(ValueError, match="at the start"):
        simulation.run()

    @dataclass
    class Broken:
        field: int

        def __getattribute__(self, name):
            raise RuntimeError("cannot be read")

    simulation = Simulation()
    with pytest.raises(RuntimeError, match="cannot be read"):
        simulation.send(simulation.spawn(Echo()), Broken(1))


@pytest.mark.parametrize(
    "act, error, said",
    [
        (lambda message, ctx: ctx.send(99, 1), IndexError, "no actor 99"),
        (lambda message, ctx: ctx.send(-1, 1), OverflowError, ""),
        (lambda message, ctx: ctx.send(1 << 40, 1), OverflowError, ""),
        (lambda message, ctx: ctx.send("echo", 1), TypeError, ""),
        (lambda message, ctx: ctx.send(0, 1, delay=-1), ValueError, "is not a duration"),
        (lambda message, ctx: ctx.send(0, 1, delay=float("nan")), ValueError, "is not a duration"),
        (lambda message, ctx: ctx.send(0, 1, delay=float("inf")), ValueError, "584 years"),
        (lambda message, ctx: ctx.after(1e300, 1), ValueError, "584 years"),
        (lambda message, ctx: ctx.after("soon", 1), ValueError, "is not a duration"),
        (lambda message, ctx: ctx.every(0, 1), ValueError, "nanosecond"),
        (lambda message, ctx: ctx.exponential(-1), ValueError, ""),
        (lambda message, ctx: ctx.uniform(2, 1), ValueError, ""),
        (lambda message, ctx: ctx.normal(float("nan"), 1), ValueError, ""),
        (lambda message, ctx: ctx.below(0), ValueError, ""),
        (lambda message, ctx: ctx.choice([]), IndexError, "nothing to choose"),
        (lambda message, ctx: ctx.choice(5), TypeError, ""),
        (lambda message, ctx: ctx.spawn(object()), TypeError, "has a method on"),
        (lambda message, ctx: ctx.stop(7), IndexError, "no actor 7"),
        (lambda message, ctx: ctx.count("a", -1), OverflowError, ""),
        (lambda message, ctx: ctx.nothing(), AttributeError, ""),
        (lambda: None, TypeError, ""),
    ],
)
def test_what_makes_no_sense_in_a_handler_is_reported(act, error, said):
    with pytest.raises(error, match=said):
        run_once(act)


@pytest.mark.parametrize(
    "arguments, error",
    [
        ({"seed": -1}, ValueError),
        ({"latency": 0}, ValueError),
        ({"latency": -1}, ValueError),
        ({"latency": "soon"}, ValueError),
        ({"most_actors": 0}, ValueError),
        ({"most_actors": 1 << 31}, ValueError),
        ({"most_actors": "many"}, TypeError),
        ({"sed": 1}, TypeError),
    ],
)
def test_simulations_that_make_no_sense_are_refused(arguments, error):
    with pytest.raises(error):
        Simulation(**arguments)


def test_there_is_room_for_so_many_actors():
    simulation = Simulation(most_actors=2)
    simulation.spawn(Echo())
    simulation.spawn(Echo())
    with pytest.raises(RuntimeError, match="most_actors"):
        simulation.spawn(Echo())


def test_names_are_those_of_one_actor():
    simulation = Simulation()
    simulation.spawn(Echo(), name="a")
    with pytest.raises(ValueError, match="already an actor 'a'"):
        simulation.spawn(Echo(), name="a")
    simulation.run()


def test_the_past_cannot_be_changed():
    simulation = Simulation()
    echo = simulation.spawn(Echo())
    simulation.run_until(5)
    assert simulation.now == 5
    with pytest.raises(ValueError, match="choose a later time"):
        simulation.send(echo, Ping(1), at=4)
    simulation.send(echo, Ping(1))
    assert simulation.next is not None and simulation.next >= 5
    simulation.run_for(1)
    assert simulation.actor(echo).seen[0][1] == Ping(1) and simulation.now == 6


def test_a_loop_in_which_no_time_passes_is_an_error_and_no_hang():
    def loops(message, ctx):
        ctx.after(0, message)

    with pytest.raises(SimulationError, match="keeps time from advancing"):
        run_once(loops)


def test_a_context_acts_only_in_its_turn():
    kept = []
    simulation = run_once(lambda message, ctx: kept.append(ctx))
    for act in (lambda: kept[0].now, lambda: kept[0].send(0, 1), lambda: kept[0].random(), lambda: kept[0].spawn(Echo())):
        with pytest.raises(RuntimeError, match="while its actor handles a message"):
            act()
    simulation.close()
    with pytest.raises(SimulationError, match="closed"):
        simulation.run()
    with pytest.raises(TypeError):
        corsair.Context()


def test_a_simulation_cannot_be_run_by_its_own_actors_or_another_thread():
    simulation = Simulation()
    errors = []

    def nested(message, ctx):
        for act in (simulation.run, simulation.report, lambda: simulation.send(0, 1), simulation.close):
            try:
                act()
            except RuntimeError as error:
                errors.append(str(error))
        thread = threading.Thread(target=lambda: nested_thread())
        thread.start()
        thread.join()

    def nested_thread():
        try:
            simulation.step()
        except RuntimeError as error:
            errors.append(str(error))

    simulation.send(simulation.spawn(Once(nested)), "go")
    simulation.run()
    assert len(errors) == 5 and all("running" in error for error in errors)


def test_a_simulation_may_be_run_by_one_thread_after_the_other():
    simulation = Simulation()
    echo = simulation.spawn(Echo())
    simulation.send(echo, Ping(1), at=1)
    simulation.send(echo, Ping(2), at=2)
    threads = [threading.Thread(target=simulation.run_until, args=(time,)) for time in (1, 2)]
    for thread in threads:
        thread.start()
        thread.join()
    assert len(simulation.actor(echo).seen) == 2


def test_cycles_through_actors_timers_and_classes_are_collected():
    class Holder:
        def __init__(self, simulation):
            self.simulation = simulation

        def start(self, ctx):
            ctx.after(1e6, self)

        def on(self, message, ctx):
            self.ctx = ctx

    references = []
    for _ in range(3):
        simulation = Simulation()
        holder = Holder(simulation)
        simulation.send(simulation.spawn(holder), "go")
        simulation.run_until(1)
        references.append(weakref.ref(holder))
        del simulation, holder
    gc.collect()
    gc.collect()
    assert [reference() for reference in references] == [None, None, None]


def test_messages_are_let_go():
    class Message:
        pass

    simulation = Simulation()
    echo = simulation.spawn(Once(lambda message, ctx: None))
    references = []
    for number in range(100):
        message = Message()
        references.append(weakref.ref(message))
        simulation.send(echo, message, at=1 + number)
        del message
    simulation.run_until(50.5)
    assert sum(reference() is not None for reference in references) == 50
    simulation.close()
    assert sum(reference() is not None for reference in references) == 0


def test_an_actor_that_ends_is_let_go():
    class Short:
        def on(self, message, ctx):
            ctx.stop()

    simulation = Simulation()
    actor = Short()
    reference = weakref.ref(actor)
    simulation.send(simulation.spawn(actor), "end")
    del actor
    simulation.run()
    assert reference() is None


def test_actors_may_be_classes_of_any_kind():
    class Slots:
        __slots__ = ("seen",)

        def __init__(self):
            self.seen = 0

        def on(self, message, ctx):
            self.seen += 1

    class Derived(Echo):
        def on(self, message, ctx):
            super().on(message, ctx)

    class Static:
        @staticmethod
        def on(message, ctx):
            ctx.count("static")

    simulation = Simulation()
    for actor in (Slots(), Derived(), Static, Static()):
        simulation.send(simulation.spawn(actor), Ping(1))
    simulation.run()
    assert simulation.report()["received"] == {"Ping": 4}


def test_simulations_are_not_pickled():
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(Simulation())


def test_ctrl_c_in_a_handler_ends_the_simulation():
    code = """
        import corsair
        class Ticker:
            def on(self, message, ctx):
                if ctx.now == 0:
                    print("ready", flush=True)
                ctx.after(1.0, message)
        simulation = corsair.Simulation()
        simulation.send(simulation.spawn(Ticker()), "tick", at=0)
        try:
            simulation.run()
        except KeyboardInterrupt:
            print("interrupted")
        try:
            simulation.run()
        except corsair.SimulationError as error:
            print(error)
    """
    from test_run import interrupted

    returned, out, err = interrupted(code)
    assert returned == 0, err
    assert out.split("\n")[0] == "interrupted" and "KeyboardInterrupt" in out


def test_a_forked_child_is_refused_because_the_simulation_is_not_its_own():
    code = """
        import os, corsair
        class Quiet:
            def on(self, message, ctx): pass
        simulation = corsair.Simulation()
        simulation.spawn(Quiet())
        child = os.fork()
        if child == 0:
            try:
                simulation.run()
            except RuntimeError as error:
                os._exit(0 if "fork" in str(error) else 1)
            os._exit(2)
        print(os.waitpid(child, 0)[1])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "0", done.stderr


def test_sub_interpreters_are_refused():
    code = """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        interpreter = interpreters.create()
        try:
            result = interpreters.run_string(interpreter, "import corsair")
        except Exception as error:
            result = error
        print(result)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert "ImportError" in done.stdout, done.stdout + done.stderr


def yields(self, message, ctx):
    yield 1


async def awaits(self, message, ctx):
    return None


async def both(self, message, ctx):
    yield 1


@pytest.mark.parametrize("handler, said", [(yields, "uses yield"), (awaits, "is async"), (both, "is async")])
def test_a_handler_that_yields_or_is_async_is_refused(handler, said):
    with pytest.raises(TypeError, match=rf"Wrong.on {said}; .*corsair.sim"):
        Simulation().spawn(type("Wrong", (), {"on": handler})())


def test_a_start_that_yields_is_refused():
    def start(self, ctx):
        yield

    with pytest.raises(TypeError, match="Wrong.start uses yield"):
        Simulation().spawn(type("Wrong", (), {"on": lambda self, message, ctx: None, "start": start})())


def test_a_handler_that_returns_a_generator_is_an_error():
    simulation = Simulation()
    actor = simulation.spawn(type("Wrong", (), {"on": lambda self, message, ctx: yields(self, message, ctx)})())
    simulation.send(actor, "go")
    with pytest.raises(TypeError, match="returned a generator, of which nothing has run"):
        simulation.run()
