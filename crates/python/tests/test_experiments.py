"""Sweeps, comparisons, searches and learning have the names and numbers of the command."""

import csv
import json
import multiprocessing
import pickle

import corsair
import pytest
from corsair import Architecture, Sweep


@pytest.fixture
def queue(tmp_path, mm1):
    path = tmp_path / "queue.json"
    path.write_text(mm1)
    return path


SET = {"services.station.concurrency": [1, 2], "load.www.rate": "40..60..20"}


def test_a_sweep_is_that_of_the_command(queue, tmp_path, command):
    out = tmp_path / "grid.csv"
    flags = ["--set", "services.station.concurrency=1,2", "--set", "load.www.rate=40..60..20", "--seeds", "2", "-d", "5"]
    command("sweep", "-a", str(queue), *flags, "--seed", "3", "--out", str(out))
    theirs = list(csv.DictReader(out.open()))
    table = corsair.sweep(queue, SET, seeds=2, duration=5, seed=3)
    assert table.columns == list(theirs[0]) and len(table) == len(theirs) == 8
    for ours, line in zip(table, theirs):
        for name, value in line.items():
            assert ours[name] == (value if name == "definition" else type(ours[name])(float(value)))


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_file_that_the_command_began_is_gone_on_with(queue, tmp_path, command, ending):
    whole, begun = tmp_path / f"whole.{ending}", tmp_path / f"begun.{ending}"
    corsair.sweep(queue, SET, duration=2, out=whole)
    flags = ["--set", "services.station.concurrency=1,2", "--set", "load.www.rate=40..60..20", "-d", "2"]
    command("sweep", "-a", str(queue), *flags, "--out", str(begun))
    assert begun.read_text() == whole.read_text()
    lines = whole.read_text().splitlines(keepends=True)
    begun.write_text("".join(lines[:-2]) + lines[-2][:10])
    seen = []
    table = corsair.sweep(queue, SET, duration=2, out=begun, progress=seen.append)
    assert begun.read_text() == whole.read_text()
    assert table == corsair.sweep(queue, SET, duration=2)
    with pytest.raises(ValueError, match="belongs to another sweep"):
        corsair.sweep(queue, SET, duration=3, out=begun)


def test_a_sweep_does_not_depend_on_workers_and_can_be_made_run_by_run(queue):
    sweep = Sweep(queue, SET, seeds=2, duration=2)
    table = sweep.measure_all(workers=3)
    assert table == sweep.measure_all(workers=1)
    again = pickle.loads(pickle.dumps(sweep))
    assert sweep.table(again.measure(number) for number in range(len(again))) == table
    assert sweep.run(7) == ({"services.station.concurrency": 2, "load.www.rate": 60}, 1)
    for wrong in (-1, 8, 1 << 70):
        with pytest.raises((IndexError, OverflowError)):
            sweep.measure(wrong)


def measure(sweep, number):
    return sweep.measure(number)


def test_other_processes_make_runs(queue):
    sweep = Sweep(queue, SET, duration=1)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        rows = pool.starmap(measure, [(sweep, number) for number in range(len(sweep))])
    assert sweep.table(rows) == sweep.measure_all()


@pytest.mark.parametrize(
    "set, error, said",
    [
        ({"services.staton.count": [1]}, corsair.ArchitectureError, "did you mean station"),
        ({"services.station.count": [-1]}, corsair.ArchitectureError, "count of -1"),
        ({"services.station.count": []}, ValueError, "0 runs"),
        ({"services.station.count": "1.."}, corsair.ArchitectureError, "count"),
        ({"services.station.count": "3..1"}, ValueError, "not a range"),
        ({"services.station.count": 5}, TypeError, "a list"),
        ({"services.station.count": [object()]}, TypeError, "cannot be the value of a field"),
        ({"services.station.count": [float("nan")]}, TypeError, "cannot be the value of a field"),
        ({"services.station.count": "1..2000000"}, ValueError, "not a range"),
    ],
)
def test_grids_that_make_no_sense_are_refused(queue, set, error, said):
    with pytest.raises(error, match=said):
        corsair.sweep(queue, set, duration=1)


def test_a_comparison_is_that_of_the_command(queue, command):
    flags = ["--set", "services.station.concurrency=2", "--seeds", "4", "-d", "5", "--seed", "9", "--format", "json"]
    theirs = json.loads(command("compare", str(queue), *flags))
    ours = corsair.compare(queue, set={"services.station.concurrency": 2}, seeds=4, duration=5, seed=9)
    assert ours.rows == theirs
    assert ours["p99_seconds"]["difference"] < 0 and ours["p99_seconds"]["is_clear"]
    assert ours.table["name"] == [row["name"] for row in theirs]
    assert "<svg" in ours._repr_html_() and "p99_seconds" in repr(ours)
    with pytest.raises(KeyError, match="mean_seconds"):
        ours["p98"]


def test_comparisons_that_compare_nothing_are_refused(queue):
    with pytest.raises(ValueError, match="both are the same"):
        corsair.compare(queue)
    with pytest.raises(ValueError, match="out of range; give 2"):
        corsair.compare(queue, "lamp", seeds=1)
    with pytest.raises(ValueError, match="warm-up"):
        corsair.compare(queue, "lamp", duration=1, warm_up=1)


def test_a_capacity_is_that_of_the_command(queue, command):
    flags = ["--limit", "200ms", "-d", "2", "--precision", "0.1", "--format", "json"]
    theirs = json.loads(command("capacity", "-a", str(queue), *flags))
    ours = corsair.capacity(queue, limit="200ms", duration=2, precision=0.1)
    assert ours.found == {**theirs, "arch": "queue"}
    # M/M/1: p99 = ln(100) / (100 - load).
    assert 65 < ours.load < 85 and ours.between[0] <= ours.between[1]
    assert ours.bottleneck == "station" and ours.points["utilisation_station"][0] < 0.5
    assert ours.points[ours.found["slos"][0]] == [point["objectives"][0] for point in theirs["points"]]
    assert "<svg" in ours._repr_html_() and "requests/s" in repr(ours)


def test_instances_are_those_of_the_command(queue, command):
    load = "poisson 150/s"
    flags = ["--find", "instances:station", "--load", load, "--limit", "200ms", "-d", "2", "--format", "json"]
    theirs = json.loads(command("capacity", "-a", str(queue), *flags))
    ours = corsair.capacity(queue, find="instances:station", load=load, limit="200ms", duration=2)
    assert ours.found == {**theirs, "arch": "queue"}
    assert ours.instances >= 2 and len(ours.points) == len(theirs["points"])


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"from_load": 10, "to_load": 5}, "cannot search"),
        ({"from_load": 0}, "from_load"),
        ({"errors": 2}, "errors"),
        ({"precision": 0}, "precision"),
        ({"duration": 0}, "a run of 0 seconds has no load"),
        ({"find": "count:web"}, "instances:web"),
        ({"find": "instances:staton", "load": "poisson 5/s"}, "did you mean station"),
        ({"find": "instances:station", "most": 0, "load": "poisson 5/s"}, "most"),
        ({"load": "users 5"}, "not a rate"),
    ],
)
def test_searches_that_make_no_sense_are_refused(queue, arguments, said):
    with pytest.raises(ValueError, match=said):
        corsair.capacity(queue, **arguments)


def test_what_is_learned_is_what_the_command_learns(queue, tmp_path, command):
    traced = corsair.run(queue, duration=60, out=tmp_path, interval=0)
    (traces,) = [file for file in traced.files if file.endswith(".otlp.jsonl")]
    theirs = json.loads(command("learn", traces, "--format", "json", "--resamples", "0"))
    ours = corsair.learn(traces, resamples=0)
    assert ours.found == {key: value for key, value in theirs.items() if key != "definition"}
    assert ours.architecture == Architecture.from_json(json.dumps(theirs["definition"]))
    p99 = [row for row in ours.requests if row["part"] == 0.99][0]
    assert abs(p99["simulated_seconds"] / p99["recorded_seconds"] - 1) < 0.25
    assert "recorded" in ours._repr_html_() and "traces" in repr(ours)
    # The learned architecture can be changed like any other.
    ours.architecture["station"].count = 2
    assert corsair.run(ours.architecture, duration=1).summary["requests"] > 10


def test_learned_numbers_have_the_intervals_of_the_command(queue, tmp_path, command):
    traced = corsair.run(queue, duration=20, out=tmp_path, interval=0)
    (traces,) = [file for file in traced.files if file.endswith(".otlp.jsonl")]
    for flags, arguments in [([], {}), (["--resamples", "7", "--seed", "3"], {"resamples": 7, "seed": 3})]:
        theirs = json.loads(command("learn", traces, "--format", "json", *flags))
        ours = corsair.learn(traces, **arguments)
        assert ours.found["numbers"] == theirs["numbers"] and len(ours.numbers) > 0
        assert all(low <= high for low, high in zip(ours.numbers["least"], ours.numbers["most"]))
    assert len(corsair.learn(traces, resamples=0).numbers) == 0
    for resamples, error in [(1001, ValueError), (-1, ValueError), ("7", TypeError), (True, ValueError)]:
        with pytest.raises(error, match="resamples"):
            corsair.learn(traces, resamples=resamples)


def test_traces_that_teach_nothing_are_reported(tmp_path):
    empty = tmp_path / "empty.json"
    empty.write_text("[]")
    for files, error in [([], ValueError), (tmp_path / "none.json", ValueError), (empty, ValueError), ([1], TypeError)]:
        with pytest.raises(error):
            corsair.learn(files)


def test_a_sweep_of_texts_and_numbers_has_columns_of_text(queue):
    table = corsair.sweep(
        queue, {"services.station.service_time": ["1ms", {"exponential": "1ms"}]}, duration=1
    )
    assert table["services.station.service_time"] == ["1ms", '{"exponential": "1ms"}']


def test_an_architecture_that_was_changed_is_another_definition(queue):
    arch = Architecture.from_json(queue)
    first = corsair.sweep(arch, SET, duration=1)
    arch["station"].count = 2
    second = corsair.sweep(arch, SET, duration=1)
    assert first["definition"][0] != second["definition"][0]
