"""Runs that are saved, and resumed from their checkpoints."""

import datetime
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import corsair
import pytest
from corsair import ServiceSimulation
from test_run import same

LOAD = "poisson 400/s"


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_run_that_is_saved_and_goes_on_is_the_run_that_was_never_saved(tmp_path, workers):
    whole = corsair.run("netflixoss", duration=4, load=LOAD, seed=3, regions=2)
    saved = corsair.run(
        "netflixoss", duration=4, load=LOAD, seed=3, regions=2, checkpoint_at=["1s", 2.5], checkpoint_dir=tmp_path
    )
    same(saved.summary, whole.summary)
    assert saved.timeline == whole.timeline
    checkpoints = sorted(tmp_path.iterdir())
    assert [one.name for one in checkpoints] == ["000001-asked", "000002-asked"]
    for directory in [*checkpoints, tmp_path]:
        again = corsair.resume(directory, workers=workers)
        same(again.summary, whole.summary)
        assert again.timeline == whole.timeline and again.svg() == whole.svg()
        assert again.percentile(0.99) == whole.percentile(0.99)


def test_what_is_everything_that_a_definition_can_have_goes_on(tmp_path):
    arch = corsair.Architecture.from_json(
        os.path.join(os.path.dirname(__file__), "../../arch/tests/behaviour/everything_arch.json")
    )
    whole = corsair.run(arch, duration=1, regions=2, population=200)
    corsair.run(arch, duration=1, regions=2, population=200, checkpoint_at=0.5, checkpoint_dir=tmp_path)
    for workers in (1, 2, 4):
        same(corsair.resume(tmp_path, workers=workers).summary, whole.summary)


def test_a_run_that_is_killed_goes_on_in_another_process(tmp_path):
    code = """
        import corsair, sys
        corsair.run("netflixoss", duration=3000, seed=9, interval=0, checkpoint_every="200ms", checkpoint_dir=sys.argv[1])
    """
    program = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), str(tmp_path)])
    deadline = time.monotonic() + 60
    while not any(one.name.startswith("0") for one in tmp_path.iterdir()):
        assert program.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    program.send_signal(signal.SIGKILL)
    program.wait()
    whole = corsair.ServiceSimulation("netflixoss", duration=3000, seed=9, interval=0)
    again = ServiceSimulation.restore(tmp_path)
    assert again.now > 0
    whole.run_until(again.now + 5)
    again.run_until(whole.now)
    assert again.digest == whole.digest and again.messages == whole.messages


def test_a_simulation_is_saved_with_the_commands_it_received(tmp_path):
    simulation = ServiceSimulation("lamp", duration=3, seed=2)
    simulation.run_until(1)
    simulation.kill(simulation.instances[0], at=1.5)
    directory = simulation.checkpoint(tmp_path / "mine")
    assert directory.parent == tmp_path / "mine"
    again = ServiceSimulation.restore(directory, workers=2)
    assert (again.now, again.digest) == (simulation.now, simulation.digest)
    for one in (simulation, again):
        one.run_until(2)
    assert again.state(simulation.instances[0]) == simulation.state(simulation.instances[0])
    same(again.finish().summary, simulation.finish().summary)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_graph_and_the_flows_of_a_saved_run_are_those_of_a_run_that_was_never_saved(tmp_path, workers):
    run = {"duration": 3, "load": LOAD, "seed": 3, "graph": True, "flows": True}
    whole = corsair.run("lamp", **run)
    saved = corsair.run("lamp", **run, checkpoint_at=[1, "1.7s"], checkpoint_dir=tmp_path)
    assert len(whole.flows["span"]) > 100 and saved.flows == whole.flows and saved.graph.json == whole.graph.json
    for checkpoint in sorted(tmp_path.iterdir()):
        again = corsair.resume(checkpoint, workers=workers)
        assert again.flows == whole.flows and again.graph.json == whole.graph.json
        same(again.summary, whole.summary)


def test_a_simulation_that_was_saved_goes_on_with_its_graph_and_flows(tmp_path):
    made = {"duration": 3, "seed": 5, "graph": True, "flows": True}
    simulation = ServiceSimulation("lamp", **made)
    simulation.run_until(1.5)
    saved = simulation.checkpoint(tmp_path)
    simulation.run_until(2)
    # A checkpoint does not change the running simulation, and can be resumed twice.
    results = [simulation.finish(), ServiceSimulation.restore(saved).finish(), ServiceSimulation.restore(saved).finish()]
    whole = corsair.run("lamp", **made)
    for result in results:
        assert result.flows == whole.flows and result.graph.json == whole.graph.json


@pytest.mark.parametrize("form", ["otlp", "zipkin1", "zipkin2"])
def test_the_files_of_a_saved_run_are_those_of_a_run_that_was_never_saved(tmp_path, form):
    def files(directory):
        return {str(one.relative_to(directory)): one.read_bytes() for one in directory.rglob("*") if one.is_file()}

    ours, theirs, checkpoints = tmp_path / "ours", tmp_path / "theirs", tmp_path / "checkpoints"
    run = {"duration": 3, "load": LOAD, "seed": 3, "flow_format": form}
    corsair.run("lamp", **run, out=theirs)
    wanted = files(theirs)
    assert len(wanted) == 2
    corsair.run("lamp", **run, out=ours, checkpoint_at=1.2, checkpoint_dir=checkpoints)
    assert files(ours) == wanted
    for one in ours.rglob("*.*"):
        one.unlink()
    again = corsair.resume(checkpoints)
    assert files(ours) == wanted and len(again.files) == 2


def test_a_run_stops_early_and_goes_on(tmp_path):
    whole = corsair.run("lamp", duration=4, checkpoint_at=1, checkpoint_dir=tmp_path)
    early = corsair.resume(tmp_path, until=2, checkpoint_at=1.5)
    # The time of the last event.
    assert early.summary["outcome"] == "cancelled" and 1.9 < early.summary["time_seconds"] <= 2
    assert 0 < early.summary["requests"] < whole.summary["requests"]
    assert [one.name for one in sorted(tmp_path.iterdir())] == ["000001-asked", "000002-asked"]
    same(corsair.resume(tmp_path).summary, whole.summary)
    with pytest.raises(ValueError, match="does not go back"):
        corsair.resume(tmp_path, until="1s")


def test_a_branch_has_other_random_numbers_from_there_on(tmp_path):
    whole = corsair.run("lamp", duration=3, checkpoint_at=1, checkpoint_dir=tmp_path)
    branches = [corsair.resume(tmp_path, seed_from_here=seed).digest for seed in (1, 2, 2)]
    assert branches[0] != whole.digest != branches[1] != branches[0]
    assert branches[1] == branches[2]


def test_a_branch_has_a_directory_of_its_own_and_its_run_stays_as_it_is(tmp_path):
    def files(directory):
        return {str(one.relative_to(directory)): one.read_bytes() for one in directory.rglob("*") if one.is_file()}

    out, saved = tmp_path / "out", tmp_path / "saved"
    whole = corsair.run("lamp", duration=3, graph=True, out=out, checkpoint_at=[1, 2], checkpoint_dir=saved)
    before = files(saved), files(out)
    branch = corsair.resume(saved / "000001-asked", seed_from_here=7)
    assert branch.digest != whole.digest
    (own,) = (one for one in saved.iterdir() if one.name.startswith("branch-"))
    for path in own.rglob("*"):
        assert not path.is_relative_to(out)
    kept = {name: text for name, text in files(saved).items() if not name.startswith("branch-")}
    assert (kept, files(out)) == before
    same(corsair.resume(saved).summary, whole.summary)
    same(corsair.resume(own).summary, branch.summary)
    with pytest.raises(ValueError, match="checkpoints of another run"):
        corsair.resume(saved / "000001-asked", seed_from_here=7, checkpoint_dir=saved)
    simulation = ServiceSimulation.restore(saved, seed_from_here=8)
    with pytest.raises(ValueError, match="checkpoints of another run"):
        simulation.checkpoint(saved)
    assert simulation.checkpoint().parent.name.startswith("branch-000002-asked-")
    with pytest.raises(ValueError, match="checkpoints of another run"):
        corsair.run("lamp", duration=3, seed=9, checkpoint_at=1, checkpoint_dir=saved)


def test_a_time_to_save_at_that_the_run_does_not_reach_is_reported(tmp_path):
    with pytest.warns(UserWarning, match="checkpoint_at 100: nothing was saved then"):
        corsair.run("lamp", duration=1, checkpoint_at=[0.5, 100], checkpoint_dir=tmp_path)


@pytest.mark.parametrize(
    "arguments, error, said",
    [
        ({"checkpoint_every": 0}, ValueError, "the period is zero"),
        ({"checkpoint_every": -1}, ValueError, "checkpoint_every: -1"),
        ({"checkpoint_every": "soon"}, ValueError, "checkpoint_every: 'soon' is not a duration"),
        ({"checkpoint_at": [1, "x"]}, ValueError, "checkpoint_at: 'x' is not a duration"),
        ({"checkpoint_at": [None]}, TypeError, "checkpoint_at: a time is"),
        ({"checkpoint_at": 1, "out": "/proc/nowhere"}, OSError, "/proc/nowhere"),
        ({"checkpoint_at": 1, "flow_format": "x"}, ValueError, "flow_format: 'x' does not exist"),
        ({"checkpoint_at": 0.5, "checkpoint_dir": "/proc/nowhere"}, OSError, "/proc/nowhere"),
    ],
)
def test_what_cannot_be_saved_is_reported(arguments, error, said):
    with pytest.raises(error, match=said):
        corsair.run("lamp", duration=1, **arguments)


def test_what_is_no_checkpoint_is_reported(tmp_path):
    with pytest.raises(FileNotFoundError, match="checkpoint_dir"):
        corsair.resume(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        corsair.resume(tmp_path / "nowhere")
    corsair.run("lamp", duration=1, checkpoint_at=datetime.timedelta(milliseconds=500), checkpoint_dir=tmp_path)
    (checkpoint,) = tmp_path.iterdir()
    with pytest.raises(TypeError, match="a seed is"):
        corsair.resume(checkpoint, seed_from_here="x")
    part = checkpoint / "part-0001"
    written = bytearray(part.read_bytes())
    written[len(written) // 2] ^= 1
    part.write_bytes(written)
    with pytest.raises(ValueError, match="a checksum or a length differs"):
        corsair.resume(tmp_path)
    part.write_bytes(written[:-1])
    with pytest.raises(ValueError, match="resume from an older checkpoint"):
        corsair.resume(tmp_path)
    part.unlink()
    with pytest.raises(FileNotFoundError, match="part-0001"):
        corsair.resume(tmp_path)


def test_a_checkpoint_of_another_program_is_reported(tmp_path, command):
    command("-a", "fsm", "-p", "100", "-d", "2", "--checkpoint-at", "1s", "--checkpoint-dir", str(tmp_path))
    with pytest.raises(ValueError, match="was written by corsair 0.*resume it with the program"):
        corsair.resume(tmp_path)


def test_command_and_module_go_on_to_the_same_end(tmp_path, command):
    flags = ["-a", "lamp", "-d", "3", "--seed", "5", "--load", LOAD]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    command(*flags, "--checkpoint-at", "1s", "--checkpoint-dir", str(theirs))
    corsair.run("lamp", duration=3, seed=5, load=LOAD, checkpoint_at="1s", checkpoint_dir=ours)
    assert [one.name for one in ours.iterdir()] == [one.name for one in theirs.iterdir()]
    resumed = json.loads(command("resume", str(theirs), "--format", "json"))
    again = corsair.resume(ours).summary
    same(again, {key: value for key, value in resumed.items() if key in again})


def test_command_and_module_go_on_with_the_same_graph_and_flows(tmp_path, command):
    def files(directory):
        return {str(one.relative_to(directory)): one.read_bytes() for one in directory.rglob("*") if one.is_file()}

    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for directory in (ours, theirs):
        (directory / "out").mkdir(parents=True)
    flags = ["-a", "lamp", "-d", "3", "--seed", "5", "--load", LOAD, "-j", "-c", "--flow-format", "zipkin2"]
    command(*flags, "--checkpoint-at", "1s", "--checkpoint-dir", str(theirs / "saved"), cwd=theirs / "out")
    corsair.run(
        "lamp", duration=3, seed=5, load=LOAD, out=ours / "out", flow_format="zipkin2", checkpoint_at=1, checkpoint_dir=ours / "saved"
    )
    command("resume", str(theirs / "saved"), cwd=theirs / "out")
    corsair.resume(ours / "saved")
    ours, theirs = files(ours / "out"), files(theirs / "out")
    (flows,) = (name for name in ours if "flow" in name)
    assert ours[flows] == theirs[flows]
    # The file of the graph quotes the arguments.
    (graph,) = set(ours) - {flows}
    assert json.loads(ours[graph])["graph"] == json.loads(theirs[graph])["graph"]
