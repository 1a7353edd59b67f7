"""Simulations of architectures that a program advances step by step."""

import corsair
import pytest
from corsair import ServiceSimulation


def test_a_run_in_steps_is_the_run_itself():
    whole = corsair.run("lamp", duration=3, seed=5)
    held = ServiceSimulation("lamp", duration=3, seed=5, workers=2)
    held.run_until(1)
    assert held.now == 1 and not held.is_over
    for _ in range(50):
        held.step()
    held.run_for(0.25)
    result = held.finish()
    assert result.digest == whole.digest
    assert result.summary["entries"] == whole.summary["entries"]
    assert result.timeline.to_dict() == whole.timeline.to_dict()
    with pytest.raises(RuntimeError, match="finished"):
        held.run_until(4)


def test_instances_are_inspected_and_receive_commands():
    with ServiceSimulation("lamp", duration=20) as held:
        name = next(name for name in held.instances if name.startswith("webserver"))
        held.run_until(2)
        assert held.state(name)["is_down"] is False
        held.kill(name, at=3)
        held.run_until("3500ms")
        assert held.state(name)["is_down"] is True
        held.revive(name)
        held.slow(name, 500)
        held.run_for(0.5)
        state = held.state(name)
        assert state["is_down"] is False and state["slow_percent"] == 500
        assert held.details(name)["service"] == "webserver"
        entry = held.instances[-1]
        before = held.messages
        held.request(entry)
        held.put(name, 7)
        held.run_for(1)
        assert held.messages > before


def test_the_time_of_a_command_decides_the_result():
    def told(workers):
        held = ServiceSimulation("lamp", duration=3, workers=workers)
        held.pause("webserver00", at=1)
        held.resume("webserver00", at=1.5)
        held.scale_load(held.instances[-1], 300, at=2)
        return held.finish().digest

    assert told(1) == told(3) != corsair.run("lamp", duration=3).digest


def test_what_makes_no_sense_is_reported():
    held = ServiceSimulation("lamp", duration=5)
    held.run_until(2)
    with pytest.raises(ValueError, match="did you mean webserver00"):
        held.kill("webserver0")
    with pytest.raises(ValueError, match="choose a later time"):
        held.kill("webserver00", at=1)
    with pytest.raises(ValueError):
        held.request("webserver00", endpoint="cart/add")
    with pytest.raises(ValueError):
        held.slow("webserver00", -1)
    held.close()
    with pytest.raises(RuntimeError, match="closed"):
        held.step()


def test_requests_to_a_simulation_that_is_over_are_refused():
    closed, finished = ServiceSimulation("lamp", duration=1), ServiceSimulation("lamp", duration=1)
    closed.close()
    finished.finish()
    for over in (closed, finished):
        for ask in (
            over.step,
            over.finish,
            lambda: over.run_until(1),
            lambda: over.state("nowhere"),
            lambda: over.details("webserver00"),
            lambda: over.kill("nowhere"),
            lambda: over.request("nowhere"),
            lambda: over.checkpoint("nowhere"),
        ):
            with pytest.raises(corsair.SimulationError, match="finished or closed"):
                ask()
        over.close()
    with pytest.raises(ValueError, match="ServiceSimulation.instances"):
        ServiceSimulation("lamp").kill("something else")
