"""Runs and their results."""

import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types

import corsair
import pytest
from corsair import Architecture, Table
from corsair import _progress as progress

VARYING = {"wall_seconds", "messages_per_second", "peak_memory_bytes", "files", "workers"}


def same(a, b):
    assert {key: value for key, value in a.items() if key not in VARYING} == {
        key: value for key, value in b.items() if key not in VARYING
    }


@pytest.mark.parametrize("name", ["netflixoss", "lamp", "riak"])
def test_the_summary_is_that_of_the_command(name, command):
    ours = corsair.run(name, duration=3, seed=7, workers=2).summary
    theirs = json.loads(command("-a", name, "-d", "3", "--seed", "7", "--format", "json"))
    missing = set(theirs) - set(ours) - VARYING
    assert missing <= {"waiting", "panics"}, missing
    same(ours, {key: value for key, value in theirs.items() if key in ours or key in VARYING})


def test_load_scale_and_kinds_are_those_of_the_command(command, tmp_path, mm1):
    (tmp_path / "queue.json").write_text(mm1)
    ours = corsair.run(tmp_path / "queue.json", duration="3s", load="poisson 50/s", population=200, regions=2, seed=1)
    flags = ["-d", "3", "--load", "poisson 50/s", "-p", "200", "-w", "2", "--seed", "1", "--format", "json"]
    theirs = json.loads(command("-a", str(tmp_path / "queue.json"), *flags))
    assert ours.summary["digest"] == theirs["digest"]
    assert ours.summary["entries"] == theirs["entries"]


def test_the_result_does_not_depend_on_workers(mm1):
    digests = {corsair.run("netflixoss", duration=1, workers=workers).digest for workers in (1, 2, 5)}
    assert len(digests) == 1


def test_few_instances_have_one_worker_unless_more_are_asked_for(command):
    flags = ["-a", "netflixoss", "-p", "500", "-d", "0.1", "--format", "json"]
    for given, workers in ((None, 1), (2, 2)):
        ours = corsair.run("netflixoss", duration=0.1, population=500, workers=given).summary
        theirs = json.loads(command(*flags, *([] if given is None else ["--workers", str(given)])))
        assert ours["workers"] == theirs["workers"] == workers
        assert ours["digest"] == theirs["digest"]


def test_a_queue_waits_as_the_theory_says(mm1):
    result = corsair.run(mm1_of(mm1), duration=600, seed=3, interval=0)
    # The mean time in an M/M/1 queue is 1 / (100 - 70) s; the two trips are additional.
    station = result.summary["services_by_name"]["station"]
    mean = (station["queue_seconds"] + station["work_seconds"]) / station["requests"]
    assert abs(mean * 30 - 1) < 0.1
    assert result.entry.requests == station["requests"]


def mm1_of(text):
    return Architecture.from_json(text)


def test_percentiles_are_those_of_the_summary(mm1):
    result = corsair.run(mm1_of(mm1), duration=20)
    entry = result.summary["entries"]["www"]
    assert result.percentile(0.99) == entry["p99_seconds"]
    assert result.percentiles()["p50_seconds"][0] == entry["p50_seconds"]
    histogram = result.entry.histogram()
    assert sum(histogram["count"]) == entry["requests"] - entry["unanswered"] - entry["unrouted"]
    for part in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="is not a share"):
            result.percentile(part)


def test_the_timeline_is_that_of_the_command(command, tmp_path):
    command("-a", "lamp", "-d", "2", "--timeline", str(tmp_path / "time.csv"), "--interval", "500ms")
    lines = (tmp_path / "time.csv").read_text().splitlines()
    table = corsair.run("lamp", duration=2, interval="500ms").timeline
    assert lines[0].split(",") == table.columns
    assert len(lines) == 1 + len(table)
    for line, row in zip(lines[1:], table):
        cells = line.split(",")
        assert cells[1:6] == [row["service"], row["region"], row["zone"], str(row["requests"]), str(row["errors"])]
        assert float(cells[0]) == row["seconds"]


def test_flows_have_both_ends_of_every_exchange():
    result = corsair.run("lamp", duration=1, flows=True, interval=0)
    flows = result.flows
    assert len(flows) == result.summary["spans"] > 100
    spans = set(flows["span"])
    assert len(spans) == len(flows)
    for row in flows:
        assert row["parent"] is None or row["parent"] in spans
        if row["server_receive_seconds"] is not None:
            assert row["client_send_seconds"] < row["server_receive_seconds"]
    with pytest.raises(LookupError, match="interval"):
        result.timeline  # noqa: B018


def test_the_graph_is_that_of_the_command(command, tmp_path):
    command("-a", "lamp", "-d", "1", "-j", "--out", str(tmp_path))
    theirs = json.loads((tmp_path / "json" / "lamp.json").read_text())
    graph = corsair.run("lamp", duration=1, graph=True).graph
    assert json.loads(graph.json)["graph"] == theirs["graph"]
    assert len(graph.edges) > 3 and set(graph.to_dict()) >= {node["node"] for node in graph.nodes}


def test_files_are_written_where_they_are_wanted(tmp_path):
    result = corsair.run("lamp", duration=1, out=tmp_path)
    assert len(result.files) == 2
    assert all(str(tmp_path) in file for file in result.files)
    assert (tmp_path / "json_metrics" / "lamp_flow.otlp.jsonl").stat().st_size > 1000


def test_what_was_not_recorded_is_reported_with_how_to_keep_it():
    result = corsair.run("lamp", duration=0.2)
    for name in ("graph", "flows"):
        with pytest.raises(LookupError, match=f"{name}=True"):
            getattr(result, name)


def test_results_are_pickled(mm1):
    result = corsair.run(mm1_of(mm1), duration=2, flows=True, graph=True)
    again = pickle.loads(pickle.dumps(result))
    assert again.summary == result.summary
    assert again.timeline.to_dict() == result.timeline.to_dict()
    assert again.flows.to_dict() == result.flows.to_dict()
    for part in (0.0, 0.5, 0.99, 1.0):
        assert again.percentile(part) == result.percentile(part)
    assert again.entry.kinds["common"].requests == result.entry.kinds["common"].requests
    assert again.svg() == result.svg()


def test_results_draw_themselves():
    result = corsair.run("lamp", duration=1)
    html = result._repr_html_()
    assert "<svg" in html and "p99" in html and "<table>" in html
    assert repr(result).startswith("Result(lamp: ")
    services = result.services
    assert set(services["service"]) == set(result.summary["services_by_name"])


class Endless:
    """A sequence whose length is itself."""

    def total_seconds(self):
        return self


@pytest.mark.parametrize(
    "arguments, error, said",
    [
        ({"duration": -1}, ValueError, "duration"),
        ({"duration": float("nan")}, ValueError, "duration"),
        ({"duration": 1e300}, ValueError, "584 years"),
        ({"duration": 10**400}, ValueError, "584 years"),
        ({"duration": "soon"}, ValueError, "duration: 'soon' is not a duration"),
        ({"duration": "5"}, ValueError, "has no unit"),
        ({"duration": None}, TypeError, "duration"),
        ({"duration": True}, TypeError, "duration"),
        ({"duration": []}, TypeError, "duration"),
        ({"duration": Endless()}, TypeError, "duration: a time is a number"),
        ({"seed": -1}, ValueError, "seed"),
        ({"seed": 1 << 64}, ValueError, "seed"),
        ({"seed": 1.5}, TypeError, "seed"),
        ({"seed": "1"}, TypeError, "seed"),
        ({"workers": 0}, ValueError, "workers"),
        ({"workers": 10**9}, ValueError, "workers"),
        ({"population": -1}, ValueError, "population"),
        ({"population": 4_000_000_000}, ValueError, "instances"),
        ({"population": 1 << 40}, ValueError, "population"),
        ({"regions": 1000}, ValueError, "regions"),
        ({"load": "poison 300/s"}, ValueError, "load"),
        ({"load": 5}, TypeError, "load"),
        ({"latency": "1ns"}, ValueError, "latency"),
        ({"latency": 1 << 31}, ValueError, "a latency of"),
        ({"chat": 0}, ValueError, "too often"),
        ({"poll": 0}, ValueError, "registries"),
        ({"interval": "1us"}, ValueError, "intervals"),
        ({"warm_up": 20}, ValueError, "warm_up"),
        ({"flow_format": "avro"}, ValueError, "flow_format"),
        ({"progress": 5}, TypeError, "progress"),
        ({"out": "/proc/nowhere"}, OSError, "/proc/nowhere"),
    ],
)
def test_arguments_that_make_no_sense_are_reported(arguments, error, said):
    with pytest.raises(error, match=said):
        corsair.run("lamp", **{"duration": 1, **arguments})


def test_progress_is_reported_and_its_exceptions_are_raised():
    told = []
    corsair.run("netflixoss", duration=60, population=300, progress=told.append)
    assert told == sorted(told) and all(0 <= done <= 1 for done in told)

    def fails(done):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        corsair.run("netflixoss", duration=100_000, progress=fails)


def test_other_threads_of_python_go_on_meanwhile():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        corsair.run("netflixoss", duration=20, workers=1)
    finally:
        stop.set()
        thread.join()
    assert len(ticks) > 5


def test_several_threads_run_at_once_with_the_same_results():
    digests = []
    threads = [
        threading.Thread(target=lambda: digests.append(corsair.run("lamp", duration=2, seed=5).digest)) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(digests) == 6 and len(set(digests)) == 1


# A process that was started in the background, as these tests may be, ignores Ctrl-C, and so do its children.
HEARS_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def interrupted(code):
    """Runs a program that is interrupted a moment after it has printed that it is ready."""
    program = subprocess.Popen(
        [sys.executable, "-c", HEARS_CTRL_C + textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert program.stdout.readline() == "ready\n"
    time.sleep(0.3)
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=60)
    return program.returncode, out, err


@pytest.mark.parametrize(
    "call",
    [
        "corsair.run('netflixoss', duration=1e6)",
        "corsair.sweep('lamp', {'services.webserver.count': range(1, 500)}, duration=1000)",
        "corsair.compare('lamp', load_b='poisson 300/s', duration=1e6)",
        "corsair.capacity('netflixoss', duration=1e5)",
        "corsair.ServiceSimulation('lamp', duration=1e7).run_until(1e7)",
    ],
)
def test_ctrl_c_ends_it_as_a_keyboard_interrupt(call):
    code = f"""
        import corsair
        try:
            print("ready", flush=True)
            {call}
        except KeyboardInterrupt:
            print("interrupted")
            print(corsair.run("lamp", duration=1).summary["outcome"])
    """
    returned, out, err = interrupted(code)
    assert (returned, out.split()) == (0, ["interrupted", "completed"]), err


def test_a_terminal_shows_a_bar_until_ctrl_c_is_typed():
    pty = pytest.importorskip("pty")
    code = """
        import corsair
        try:
            corsair.run("netflixoss", duration=1e6)
        except KeyboardInterrupt:
            print("interrupted")
    """
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-c", HEARS_CTRL_C + textwrap.dedent(code)])
    shown = b""
    while b"interrupted" not in shown:
        shown += os.read(terminal, 4096)
        if b"netflixoss ..." in shown and b"^C" not in shown:
            os.write(terminal, b"\x03")
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert status == 0
    # The bar disappears before anything else is written.
    assert shown.rstrip().endswith(b" \rinterrupted")


def test_a_notebook_shows_a_bar_that_goes(monkeypatch):
    shown = []

    class Handle:
        def update(self, html):
            shown.append(html)

    def display(html, display_id):
        assert display_id
        shown.append(html)
        return Handle()

    ipython, cells = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    cells.HTML, cells.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", cells)
    with progress.shown(True, "web") as bar:
        bar(0.25)
        bar(0.5)
    assert [html[:26] for html in shown] == ['web <progress value="0.250', 'web <progress value="0.500', ""]


def test_a_forked_child_runs_by_itself():
    code = """
        import os, corsair
        before = corsair.run("lamp", duration=1, seed=3).digest
        held = corsair.ServiceSimulation("lamp", workers=2)
        held.run_until(1)
        child = os.fork()
        if child == 0:
            assert corsair.run("lamp", duration=1, seed=3).digest == before
            try:
                held.run_until(2)
            except RuntimeError as error:
                assert "fork" in str(error)
            else:
                os._exit(1)
            del held
            os._exit(0)
        _, status = os.waitpid(child, 0)
        held.run_until(2)
        print(status)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "0", done.stderr


def test_tables_have_rows_columns_and_clear_errors():
    table = Table({"a": [1, 2, None], "b": ["x", None, "z"], "c": [1.5, 2, None], "d": [True, None, False]})
    assert len(table) == 3 and table.columns == ["a", "b", "c", "d"] and "a" in table and "e" not in table
    assert table["b"] == ["x", None, "z"]
    assert table[-1] == {"a": None, "b": "z", "c": None, "d": False}
    assert [row["a"] for row in table] == [1, 2, None]
    assert pickle.loads(pickle.dumps(table)) == table
    for wrong, error in [("e", KeyError), (3, IndexError), (-4, IndexError), (None, TypeError), (1 << 70, TypeError)]:
        with pytest.raises(error):
            table[wrong]
    for columns in [{}, {"a": [1], "b": []}, {"a": [object()]}, {"a": [1, "x"]}]:
        with pytest.raises((TypeError, ValueError)):
            Table(columns)
