"""corsair.sim: its additions to SimPy's interface, and its special cases."""

from __future__ import annotations

import gc
import math
import pickle
import random
import sys
import weakref

import pytest

import corsair
from corsair import sim
from corsair.sim import core, events, util
from corsair.sim.resources import base


@pytest.fixture
def env():
    return sim.Environment()


def test_generators_and_coroutines_wait_alike(env):
    log = []

    def generator(env):
        got = yield env.timeout(2, "tick")
        log.append(("generator", env.now, got))
        return "done"

    async def coroutine(env, other):
        got = await other
        log.append(("coroutine", env.now, got))
        await env.sleep(1)
        both = await (env.timeout(1, "a") & env.timeout(2, "b"))
        log.append(("coroutine", env.now, list(both.values())))
        return 7

    process = env.process(coroutine(env, env.process(generator(env))))
    assert env.run(process) == 7
    assert log == [("generator", 2, "tick"), ("coroutine", 2, "done"), ("coroutine", 5, ["a", "b"])]


def test_a_coroutine_gets_interrupts_and_failures(env):
    async def worker(env):
        try:
            await env.timeout(10)
        except sim.Interrupt as interrupt:
            return interrupt.cause, env.now

    async def failing(env, event):
        with pytest.raises(ValueError, match="broken"):
            await event
        return "survived"

    process = env.process(worker(env))
    event = env.event()
    other = env.process(failing(env, event))

    def boss(env):
        yield env.timeout(3)
        process.interrupt("fire")
        event.fail(ValueError("broken"))

    env.process(boss(env))
    assert env.run(process & other).todict() == {process: ("fire", 3), other: "survived"}


@pytest.mark.parametrize("module_time", [5, 5.0, 10**30, True])
def test_times_keep_their_type(module_time):
    simpy = pytest.importorskip("simpy")
    for module in (simpy, sim):
        env = module.Environment(1)
        env.timeout(module_time)
        env.run()
        seen = (type(env.now), env.now)
        if module is simpy:
            expected = seen
    assert seen == expected


def test_a_fraction_is_a_time(env):
    from fractions import Fraction

    env.timeout(Fraction(1, 3))
    env.timeout(0.5)
    env.run(until=env.timeout(Fraction(1, 3)))
    assert env.now == Fraction(1, 3)


def test_integers_beyond_the_precision_of_floats_are_ordered_exactly(env):
    order = []
    for delay in (2**53 + 1, 2.0**53, 2**53 + 2):
        env.timeout(delay).callbacks.append(lambda event, delay=delay: order.append(delay))
    env.run()
    assert order == [2.0**53, 2**53 + 1, 2**53 + 2]


def test_a_time_that_is_no_number_is_refused(env):
    with pytest.raises(ValueError, match="not a number"):
        env.timeout(math.nan)
    with pytest.raises(ValueError, match="Negative delay -1"):
        env.timeout(-1)


def test_what_is_no_event_is_named_with_its_line(env):
    def process(env):
        yield 5

    env.process(process(env))
    with pytest.raises(RuntimeError, match=r'(?s)in process\n    yield 5\nInvalid yield value "5"'):
        env.run()


def test_a_step_that_was_replaced_is_called(env):
    seen = []
    step = env.step

    def traced():
        if env._queue:
            seen.append(env._queue[0][0])
        step()

    env.step = traced
    env.timeout(3)
    env.run()
    assert seen == [3]


def test_a_schedule_that_a_subclass_replaces_is_called():
    class Logged(sim.Environment):
        def __init__(self):
            super().__init__()
            self.log = []

        def schedule(self, event, priority=events.NORMAL, delay=0):
            self.log.append((type(event).__name__, priority, delay))
            super().schedule(event, priority, delay)

    env = Logged()

    def process(env):
        yield env.timeout(2)

    env.run(env.process(process(env)))
    assert env.log == [("Initialize", 0, 0), ("Timeout", 1, 2), ("Process", 1, 0), ("Process", -1, 0)]


def test_an_event_of_a_subclass_has_arguments_and_attributes_of_its_own(env):
    class Named(sim.Event):
        def __init__(self, env, name):
            super().__init__(env)
            self.name = name

    event = Named(env, "door")
    event.succeed(3)
    assert env.run(event) == 3 and event.name == "door"
    plain = env.event()
    plain.note = "kept"
    assert plain.note == "kept"


def test_an_event_takes_attributes(env):
    event = env.event()
    event.note = "first"
    event.note = "second"
    assert event.note == "second" and vars(event) == {"note": "second"}
    del event.note
    with pytest.raises(AttributeError, match="Event' object has no attribute 'note'"):
        event.note
    with pytest.raises(AttributeError, match="note"):
        del event.note
    with pytest.raises(AttributeError, match="'succeed' is read-only; override it in a subclass"):
        event.succeed = print
    with pytest.raises(AttributeError, match="env"):
        event.env = None
    event.defused = True
    assert event.defused and vars(event) == {}
    # Cycles through attributes are collected.
    event.myself = event
    gone = weakref.ref(event)
    del event
    gc.collect()
    assert gone() is None


def test_an_event_of_a_subclass_takes_attributes_and_properties(env):
    class Order(sim.Event):
        kind = "order"
        count = 0

        def __init__(self, env, size):
            super().__init__(env)
            self.size = size

        @property
        def double(self):
            return 2 * self.size

        @double.setter
        def double(self, value):
            self.size = value / 2

        @property
        def broken(self):
            return self.nothing

    order = Order(env, 4)
    order.double = 20
    order.count += 1
    order.kind = "large"
    order.succeed = lambda: "mine"
    assert (order.size, order.double, order.count, order.kind, order.succeed()) == (10, 20, 1, "large", "mine")
    assert (Order.count, Order.kind) == (0, "order")
    del order.kind
    assert order.kind == "order" and set(vars(order)) == {"size", "count", "succeed"}
    with pytest.raises(AttributeError, match="nothing"):
        order.broken


def test_a_timeout_that_somebody_can_see_is_not_used_again(env):
    class Own(core.Environment):
        pass

    def model(env):
        kept = env.timeout(1, "kept")
        yield kept
        weak = weakref.ref(kept)
        noted = env.timeout(1)
        noted.note = "noted"
        yield noted
        del noted
        for number in range(5):
            assert (yield env.timeout(1, number)) == number
            assert (yield env.timeout(1)) is None
            assert not hasattr(env.timeout(1), "note")
        assert kept.value == "kept" and kept.processed and weak() is kept
        del kept
        for _ in range(3):
            yield env.timeout(1)
        assert weak() is None
        lost = env.timeout(1)
        weak = weakref.ref(lost)
        yield lost
        del lost
        yield env.timeout(1)
        assert weak() is None
        both = yield env.timeout(1, "a") & env.timeout(1, "b")
        yield env.timeout(1)
        assert list(both.values()) == ["a", "b"]

    for each in (env, Own()):
        each.run(each.process(model(each)))
    # The environment and its spare objects are freed without the collector.
    gc.disable()
    try:
        other = sim.Environment()
        other.process(other.timeout(1) for _ in range(3))
        other.run()
        gone = weakref.ref(other)
        del other
        assert gone() is None
    finally:
        gc.enable()


def test_an_event_without_its_environment_says_what_to_do():
    class Forgetful(sim.Event):
        def __init__(self):
            pass

    with pytest.raises(RuntimeError, match=r"call super\(\).__init__\(env\)"):
        Forgetful().succeed()


def test_a_resource_that_overrides_release_hears_of_the_end_of_with(env):
    class Logged(sim.Resource):
        log = []

        def release(self, request):
            self.log.append(self._env.now)
            return super().release(request)

    resource = Logged(env)

    def process(env):
        with resource.request() as turn:
            yield turn
            yield env.timeout(4)

    env.process(process(env))
    env.run()
    assert Logged.log == [4] and resource.count == 0


def test_a_resource_of_ones_own(env):
    class Latest(base.BaseResource):
        def __init__(self, env):
            super().__init__(env, 1)
            self.item = None

        put = core.BoundClass(type("LatestPut", (base.Put,), {"__init__": lambda self, resource, item: (setattr(self, "item", item), base.Put.__init__(self, resource))[1]}))
        get = core.BoundClass(base.Get)

        def _do_put(self, event):
            self.item = event.item
            event.succeed()
            return True

        def _do_get(self, event):
            if self.item is not None:
                event.succeed(self.item)
                self.item = None

    latest = Latest(env)

    def process(env):
        yield latest.put(1)
        yield latest.put(2)
        got = yield latest.get()
        return got

    assert env.run(env.process(process(env))) == 2


def test_kinds_of_resources_are_related(env):
    preemptive = sim.PreemptiveResource(env)
    assert isinstance(preemptive, sim.PriorityResource) and isinstance(preemptive, sim.Resource)
    assert isinstance(sim.PriorityStore(env), sim.Store)
    assert isinstance(sim.Container(env), base.BaseResource)


def test_a_request_whose_patience_ends_reneges(env):
    counter = sim.Resource(env)
    log = []

    def customer(env, name, patience):
        with counter.request(patience=patience) as turn:
            outcome = yield turn
            log.append((name, env.now, turn.granted, outcome))
            if turn.granted:
                yield env.timeout(5)

    for name, patience in (("a", 1), ("b", 3), ("c", lambda: 20), ("d", corsair.uniform("4s", "4s"))):
        env.process(customer(env, name, patience))
    env.run()
    assert log == [
        ("a", 0, True, None),
        ("b", 3, False, "reneged"),
        ("d", 4.0, False, "reneged"),
        ("c", 5, True, None),
    ]
    assert counter.queue == [] and counter.count == 0


def test_a_request_balks_at_a_long_queue(env):
    counter = sim.PriorityResource(env)
    outcomes = []

    def customer(env):
        with counter.request(priority=1, balk=2) as turn:
            outcomes.append((yield turn))
            if turn.granted:
                yield env.timeout(1)

    for _ in range(5):
        env.process(customer(env))
    env.run()
    assert outcomes == [None, "balked", "balked", None, None]


def test_a_request_that_was_cancelled_does_not_renege(env):
    counter = sim.Resource(env)
    counter.request()
    waiting = counter.request(patience=2)
    waiting.cancel()
    env.run()
    assert not waiting.triggered


def test_levels_are_weighted_by_time_and_begin_after_the_warm_up():
    env = sim.Environment(warm_up=10)
    counter = sim.Resource(env)
    levels = sim.watch(counter)
    waits = sim.Tally(env)

    def customer(env, at):
        yield env.timeout(at)
        with counter.request() as turn:
            came = env.now
            yield turn
            waits.record(env.now - came)
            yield env.timeout(6)

    for at in (0, 1, 12):
        env.process(customer(env, at))
    env.run(until=20)
    # In use from 0 to 18. The second customer waits from 1 to 6, and the third does not wait at 12.
    assert levels.used.mean == pytest.approx(0.8)
    assert levels.queue.mean == 0 and levels.queue.maximum == 1
    assert waits.values == [0]


def test_a_tally_knows_its_percentiles(env):
    tally = sim.Tally(env)
    for value in range(1, 101):
        tally.record(value)
    assert (tally.percentile(0.5), tally.percentile(0.99), tally.percentile(1)) == (50, 99, 100)
    assert tally.mean == 50.5 and tally.deviation == pytest.approx(29.011, abs=1e-3)
    with pytest.raises(ValueError, match="0.99"):
        tally.percentile(99)


def model(seed):
    env = sim.Environment(seed=seed)
    for _ in range(3):
        env.timeout(random.expovariate(1))
    env.run()
    return {"end": env.now, "drawn": env.draw(corsair.exponential("2s"))}


def test_replications_do_not_depend_on_the_number_of_processes():
    one, many = (sim.replicate(model, 12, seed=5, workers=workers) for workers in (1, 3))
    assert one.table == many.table
    assert len(set(one.values("end"))) == 12
    random.seed(8)
    assert model(8)["end"] == one.values("end")[3]
    low, high = one.interval("end")
    assert low < one.mean("end") < high
    with pytest.raises(KeyError, match="did you mean end"):
        one.mean("ende")


def test_a_model_that_is_a_closure_is_replicated_on_several_processes():
    found = sim.replicate(lambda: random.random(), 4, workers=2)
    assert len(set(found.values())) == 4
    with pytest.raises(TypeError, match="returns None"):
        sim.replicate(lambda: None, 2, workers=1)


def test_draws_are_of_their_distribution():
    env = sim.Environment(seed=3)
    drawn = [env.draw(corsair.exponential("2s")) for _ in range(20_000)]
    assert sum(drawn) / len(drawn) == pytest.approx(2, rel=0.03)
    assert drawn[0] == sim.Environment(seed=3).draw(corsair.exponential("2s"))
    assert drawn[0] != sim.Environment(seed=4).draw(corsair.exponential("2s"))


def test_a_chain_of_waiting_processes_is_freed_without_recursion():
    env = sim.Environment()

    def link(env, previous):
        yield previous

    last = env.event()
    for _ in range(100_000):
        last = env.process(link(env, last))
    env.run()
    del env, last
    gc.collect()


def test_nested_conditions_need_no_recursion(env):
    condition = env.event()
    first = condition
    for _ in range(2_000):
        condition = condition | env.event()
    first.succeed()
    assert env.run(condition).todict() == {first: None}
    del condition
    gc.collect()


def test_an_abandoned_environment_is_collected():
    env = sim.Environment()

    def forever(env):
        with sim.Resource(env).request() as turn:
            yield turn
            yield env.event() | env.timeout(5)

    env.note = env
    env.process(forever(env))
    env.run(until=1)
    gone = weakref.ref(env)
    del env
    gc.collect()
    assert gone() is None


def test_a_run_can_be_stopped_within_a_callback_and_continued(env):
    event = env.timeout(1, "first")
    seen = []
    event.callbacks.append(lambda event: seen.append("before"))

    def stop(event):
        raise core.StopSimulation("stopped")

    event.callbacks.append(stop)
    event.callbacks.append(lambda event: seen.append("after"))
    assert env.run() == "stopped" and seen == ["before"]
    env.run()
    assert seen == ["before", "after"]


def test_keyboard_interrupts_reach_the_caller(env):
    def rude(env):
        yield env.timeout(1)
        raise KeyboardInterrupt

    env.process(rude(env))
    with pytest.raises(KeyboardInterrupt):
        env.run()


def test_what_is_started_later_starts_later(env):
    def process(env):
        yield env.timeout(1)
        return env.now

    starter = util.start_delayed(env, process(env), 4)
    assert env.run(env.run(starter)) == 5


def test_random_models_run_as_simpy_runs_them():
    """Random processes, resources, interrupts and conditions give equal traces in both, including ties."""
    simpy = pytest.importorskip("simpy")
    # In the last two, a preempted process inspects the class of the cause.
    for seed in (*range(60), 2777, 2930):
        traces = [trace(module, random.Random(seed)) for module in (simpy, sim)]
        assert traces[0] == traces[1], f"seed {seed}"


def trace(module, rng):
    env = module.Environment(rng.choice([0, 0.0, 3]))
    log = []
    resources = [
        module.Resource(env, rng.randint(1, 2)),
        module.PriorityResource(env, 1),
        module.PreemptiveResource(env, rng.randint(1, 2)),
    ]
    container = module.Container(env, 10, init=rng.randint(0, 5))
    stores = [module.Store(env, 3), module.PriorityStore(env, 2), module.FilterStore(env)]
    processes = []

    def note(*what):
        log.append((env.now, type(env.now).__name__, *what))

    def body(name, depth):
        for _ in range(rng.randint(1, 6)):
            act = rng.randrange(9)
            try:
                if act == 0:
                    yield env.timeout(rng.choice([0, 1, 2, 0.5, 1.0]))
                elif act == 1:
                    which = rng.randrange(3)
                    arguments = () if which == 0 else (rng.randrange(3),)
                    with resources[which].request(*arguments) as turn:
                        got = yield turn | env.timeout(rng.randrange(3))
                        note(name, "turn", turn in got, resources[which].count, len(resources[which].queue))
                        yield env.timeout(1)
                elif act == 2:
                    yield container.put(rng.randint(1, 3)) | env.timeout(2)
                    note(name, "level", container.level)
                elif act == 3:
                    yield container.get(rng.randint(1, 3)) | env.timeout(2)
                    note(name, "level", container.level)
                elif act == 4:
                    yield stores[rng.randrange(3)].put(rng.randrange(5)) | env.timeout(1)
                elif act == 5:
                    which = rng.randrange(3)
                    wanted = rng.randrange(3)
                    get = stores[which].get(lambda item: item >= wanted) if which == 2 else stores[which].get()
                    got = yield get | env.timeout(rng.randrange(3))
                    note(name, "items", list(got.values()), list(stores[which].items))
                elif act == 6 and processes:
                    victim = rng.choice(processes)
                    if victim.is_alive and victim is not env.active_process:
                        victim.interrupt((name, env.now))
                elif act == 7 and depth < 3:
                    child = env.process(body(f"{name}.", depth + 1))
                    processes.append(child)
                    got = yield child & env.timeout(1)
                    note(name, "child", [str(value) for value in got.values()])
                elif act == 8 and depth:
                    raise ValueError(name)
            except module.Interrupt as interrupt:
                cause = interrupt.cause
                note(name, "interrupted", cause if isinstance(cause, tuple) else type(cause).__name__)
            except ValueError as error:
                note(name, "caught", str(error))
        note(name, "ends")
        return name

    for number in range(5):
        processes.append(env.process(body(str(number), 0)))
    try:
        env.run(until=rng.choice([None, 7, 9.5]))
    except ValueError as error:
        note("failed", str(error))
    note(next(env._eid), env.peek())
    return log


def test_preempted_tells_who_and_since_when(env):
    resource = sim.PreemptiveResource(env)

    def user(env):
        with resource.request(priority=2) as turn:
            yield turn
            try:
                yield env.timeout(9)
            except sim.Interrupt as interrupt:
                return interrupt.cause

    def boss(env):
        yield env.timeout(3)
        with resource.request(priority=1) as turn:
            yield turn

    victim, winner = env.process(user(env)), env.process(boss(env))
    cause = env.run(victim)
    assert (cause.by, cause.usage_since, cause.resource) == (winner, 0, resource)


def test_interrupts_pickle():
    assert pickle.loads(pickle.dumps(sim.Interrupt("why"))).cause == "why"


@pytest.mark.skipif(sys.platform == "win32", reason="sleeps are coarse there")
def test_an_environment_by_the_wall_clock_waits():
    import time

    env = sim.RealtimeEnvironment(factor=0.02)
    began = time.monotonic()
    env.timeout(2)
    env.run()
    assert time.monotonic() - began >= 0.04
