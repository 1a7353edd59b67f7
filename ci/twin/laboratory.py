"""The laboratory: real services are learned at a low load and predicted at others; then the others are measured.

    laboratory.py record    runs every system at its load of learning, and records traces
    laboratory.py define    learns a definition of each system, and those of resampled recordings
    laboratory.py predict   simulates every scenario, writes predictions.json
    laboratory.py measure   runs every scenario on the real services, writes measured.json
    laboratory.py report    compares, writes results.csv and results.svg

systems.json has the systems and the scenarios. Predictions are committed before the measurement. TWIN_ONLY selects
systems or scenarios by name, separated by commas; the entries of others stay as they are.
"""

import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Timer

HERE = Path(__file__).parent
DATA = HERE / "data"
WORK = Path(os.environ.get("TWIN_WORK", "/tmp/corsair-twin"))
BINARIES = {
    "go": [str(WORK / "go-service")],
    "rust": [str(WORK / "rust-service")],
    "python": [str(WORK / "venv/bin/python"), str(HERE / "python/service.py")],
}
CORSAIR = os.environ.get("CORSAIR", str(HERE.parents[1] / "target/debug/corsair"))
COLLECTOR = 14318
PARTS = (0.5, 0.95, 0.99)
LEARN_SECONDS = float(os.environ.get("TWIN_LEARN", "180"))
SECONDS = float(os.environ.get("TWIN_SECONDS", "60"))
REPEATS = int(os.environ.get("TWIN_REPEATS", "2"))
WARM_UP = 5.0
RESAMPLED = 8
# The number of systems that run at the same time: eleven at once keep two cores busy, and are slower than alone.
AT_ONCE = 4
# The simulated runs of a prediction, each as long as a measured run, and the time for the last answers.
SIMULATED = 10
DRAIN = 20.0

SYSTEMS = json.loads((HERE / "systems.json").read_text())
ONLY = [name.strip() for name in os.environ.get("TWIN_ONLY", "").split(",") if name.strip()]
# The highest 99th percentile, in seconds, of a load that the system sustains, and the highest share of failures.
OBJECTIVE, MOST_FAILED = 0.5, 0.01
# The search for this load: its bounds as fractions of the configured capacity, and the number of bisections.
LOWEST, HIGHEST, BISECTIONS = 0.6, 1.2, 5
# The number of simulated searches of a prediction.
SEARCHES = 30


@dataclass
class Scenario:
    """A condition of a system. `rates` are pairs of a time and a rate; `kind` says what is measured: the response
    times, the capacity, or the load at which most requests begin to fail."""

    name: str
    system: str
    rates: list
    slow: list | None = None
    fault: dict | None = None
    kind: str = "times"
    seconds: float = WARM_UP + SECONDS


def all_scenarios():
    begin = WARM_UP + SECONDS / 3
    for name, system in SYSTEMS.items():
        capacity = system["capacity"]
        for load in system["loads"]:
            yield Scenario(f"{name} at {load}", name, [[0, load * capacity]])
        if "slow" in system:
            yield Scenario(f"{name} slowed", name, [[0, 0.5 * capacity]], slow=system["slow"])
        if system.get("spike"):
            rates = [[0, 0.4 * capacity], [begin, 0.95 * capacity], [begin + SECONDS / 6, 0.4 * capacity]]
            yield Scenario(f"{name} spike", name, rates)
        for load in system.get("killed_at", []):
            # One instance is killed, and starts again after a third of the time.
            fault = {"kind": "kill", "at": begin, "for": SECONDS / 3, "service": system["killed"]}
            yield Scenario(f"{name} killed at {load}", name, [[0, load * capacity]], fault=fault)
        if "stall" in system:
            service, factor = system["stall"]
            fault = {"kind": "slow", "at": begin, "for": SECONDS / 6, "service": service, "factor": factor}
            yield Scenario(f"{name} stalled", name, [[0, 0.5 * capacity]], fault=fault)
        if system.get("capacity_searched"):
            yield Scenario(f"{name} capacity", name, [[0, capacity]], kind="capacity")
        if "tipping" in system:
            # A ramp in steps of a hundredth of the capacity.
            low, high = system["tipping"]
            lasts, steps = SECONDS / 15, round((high - low) * 100)
            rates = [[WARM_UP + n * lasts if n else 0, (low + n / 100) * capacity] for n in range(steps)]
            yield Scenario(f"{name} tipping", name, rates, kind="tipping", seconds=WARM_UP + steps * lasts)


def scenarios():
    """The selected scenarios."""
    return [one for one in all_scenarios() if not ONLY or one.system in ONLY or one.name in ONLY]


def selected():
    """The names of the selected systems."""
    names = {scenario.system for scenario in scenarios()}
    known = {name for scenario in all_scenarios() for name in (scenario.name, scenario.system)}
    for name in ONLY:
        if name not in known:
            print(f"TWIN_ONLY: '{name}' is neither a system nor a scenario of systems.json", file=sys.stderr)
            raise SystemExit(2)
    return [name for name in SYSTEMS if name in names]


class System:
    """The running processes of a system."""

    def __init__(self, name):
        self.name, self.about = name, SYSTEMS[name]
        self.collector = f"http://127.0.0.1:{COLLECTOR}/{name}"
        # By service and instance.
        self.processes = {}
        for service, about in self.about["services"].items():
            for instance in range(about.get("instances", 1)):
                self.start(service, instance)

    def start(self, service, instance):
        about = self.about["services"][service]
        spec = {"name": service, "port": about["port"] + instance, "slots": about.get("slots", 0)}
        spec["endpoints"] = {op: [self.step(step) for step in steps] for op, steps in about["endpoints"].items()}
        command = [*BINARIES[about["language"]], json.dumps(spec), self.collector]
        if "core" in about:
            command = ["taskset", "-c", str(about["core"]), *command]
        log = (WORK / f"{self.name}-{service}{instance or ''}.log").open("a")
        self.processes[service, instance] = subprocess.Popen(command, stdout=log, stderr=log)

    def urls(self, target):
        """The addresses of an endpoint at all instances."""
        service, operation = target.split(".", 1)
        about = self.about["services"][service]
        return [f"http://127.0.0.1:{about['port'] + n}/{operation}" for n in range(about.get("instances", 1))]

    def step(self, step):
        step = dict(step)
        if "call" in step:
            step["call"] = self.urls(step["call"])
        if "parallel" in step:
            step["parallel"] = [self.urls(target) for target in step["parallel"]]
        return step

    def ask(self, service, path):
        for url in self.urls(f"{service}.{path}"):
            self.ask_url(service, url)

    def ask_url(self, service, url):
        for attempt in range(40):
            try:
                return urllib.request.urlopen(url, timeout=20).read()
            except OSError:
                time.sleep(0.25)
        raise SystemExit(f"{self.name}: {service} does not answer; see {WORK}/{self.name}-{service}.log")

    def ready(self):
        for service in self.about["services"]:
            self.ask(service, "slow?factor=1")

    def begin(self, fault):
        if fault["kind"] == "slow":
            return self.ask(fault["service"], f"slow?factor={fault['factor']}")
        process = self.processes[fault["service"], 0]
        process.kill()
        process.wait()

    def end(self, fault):
        if fault["kind"] == "slow":
            return self.ask(fault["service"], "slow?factor=1")
        self.start(fault["service"], 0)

    def run(self, scenario, seed):
        """Runs a scenario, and returns its requests."""
        fault, timers = scenario.fault, []
        if scenario.slow:
            self.ask(scenario.slow[0], f"slow?factor={scenario.slow[1]}")
        if fault:
            timers.append(Timer(fault["at"], self.begin, [fault]))
            timers.append(Timer(fault["at"] + fault["for"], self.end, [fault]))
        for timer in timers:
            timer.start()
        made = self.generate(scenario.rates, scenario.seconds, seed)
        for timer in timers:
            timer.join()
        self.ready()
        time.sleep(2)
        return made

    def generate(self, rates, seconds, seed):
        plan = {"url": self.urls(self.about["entry"])[0], "collector": self.collector, "seconds": seconds}
        plan |= {"rates": rates, "seed": seed}
        made = subprocess.run([WORK / "generator", json.dumps(plan)], stdout=subprocess.PIPE, check=True)
        return json.loads(made.stdout)

    def stop(self):
        for process in self.processes.values():
            process.terminate()
            process.wait()


def for_all(work):
    """Calls `work` with groups of the selected systems: first with systems that only wait, a few at a time, then
    with each system whose services use a core of their own."""
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "traces").mkdir(exist_ok=True)
    cores = {name: [about["core"] for about in SYSTEMS[name]["services"].values() if "core" in about] for name in selected()}
    waiting = [name for name in cores if not cores[name]]
    groups = [waiting[first : first + AT_ONCE] for first in range(0, len(waiting), AT_ONCE)]
    groups += [[name] for name in cores if cores[name]]
    everywhere, made = os.sched_getaffinity(0), {}
    for group in groups:
        os.sched_setaffinity(0, everywhere.difference(cores[group[0]]) or everywhere)
        made |= for_group(work, group)
    os.sched_setaffinity(0, everywhere)
    return made


def for_group(work, names):
    python = str(WORK / "venv/bin/python")
    collector = subprocess.Popen([python, HERE / "collector.py", WORK / "traces", str(COLLECTOR)])
    time.sleep(1)
    systems = [System(name) for name in names]
    try:
        for system in systems:
            system.ready()
        with ThreadPoolExecutor(len(systems)) as pool:
            return dict(zip(names, pool.map(work, systems)))
    finally:
        for system in systems:
            system.stop()
        collector.terminate()
        collector.wait()


def record_all():
    def record(system):
        system.generate([[0, 0.3 * system.about["capacity"]]], WARM_UP, 1)
        (WORK / f"traces/{system.name}.jsonl").write_text("")
        rate = 0.3 * system.about["capacity"]
        made = system.generate([[0, rate]], LEARN_SECONDS, 2)
        for service in system.about["services"]:
            system.ask(service, "flush")
        time.sleep(2)
        (WORK / f"traces/{system.name}.jsonl").rename(WORK / f"traces/{system.name}.learned.jsonl")
        return len(made)

    print(for_all(record))


def define_all():
    with ProcessPoolExecutor(4) as pool:
        list(pool.map(define, selected()))


def define(name):
    """Learns the definition of a system, and those of resampled recordings, which say how sure it is."""
    traces = whole(WORK / f"traces/{name}.learned.jsonl")
    out = DATA / "definitions" / f"{name}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    said = subprocess.run([CORSAIR, "learn", traces, "--name", name, "--out", out], capture_output=True, text=True)
    (DATA / "definitions" / f"{name}.txt").write_text(said.stdout + said.stderr)
    for number, text in enumerate(resampled(traces)):
        file = WORK / "traces" / f"{name}.resampled{number}.jsonl"
        file.write_text(text)
        out = WORK / "traces" / f"{name}.{number}.json"
        subprocess.run([CORSAIR, "learn", file, "--name", name, "--out", out], capture_output=True)
        file.unlink()


def whole(traces):
    """The traces that have a beginning: the recording may begin in the middle of some."""
    lines = [json.loads(line) for line in traces.read_text().splitlines()]
    spans = lambda: (span for line in lines for r in line["resourceSpans"] for s in r["scopeSpans"] for span in s["spans"])
    begun = {span["traceId"] for span in spans() if not span.get("parentSpanId")}
    for line in lines:
        for resource in line["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                scope["spans"] = [span for span in scope["spans"] if span["traceId"] in begun]
    out = traces.with_suffix(".whole.jsonl")
    out.write_text("\n".join(json.dumps(line, separators=(",", ":")) for line in lines) + "\n")
    return out


def resampled(traces):
    """A block bootstrap: the recording is cut into twenty spans of time, of which as many are drawn again."""
    spans, roots = [], {}
    for line in traces.read_text().splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    spans.append((resource["resource"], span))
                    if not span.get("parentSpanId"):
                        roots[span["traceId"]] = int(span["startTimeUnixNano"])
    first, last = min(roots.values()), max(roots.values())
    blocks = 20
    width = (last - first) // blocks + 1
    by_block = [[] for _ in range(blocks)]
    for resource, span in spans:
        if span["traceId"] in roots:
            by_block[(roots[span["traceId"]] - first) // width].append((resource, span))
    draw = random.Random(7)
    for _ in range(RESAMPLED):
        lines = []
        for place in range(blocks):
            block = draw.randrange(blocks)
            shift = (place - block) * width
            for resource, span in by_block[block]:
                span = span | {"traceId": f"{place:02x}{span['traceId'][2:]}"}
                for key in ("startTimeUnixNano", "endTimeUnixNano"):
                    span[key] = str(int(span[key]) + shift)
                made = {"resource": resource, "scopeSpans": [{"spans": [span]}]}
                lines.append(json.dumps({"resourceSpans": [made]}, separators=(",", ":")))
        yield "\n".join(lines) + "\n"


def scaled(value, factor):
    """Times of a distribution, times a factor."""
    units = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    if isinstance(value, str):
        number = value.rstrip("nums")
        return f"{round(float(number) * units[value[len(number):]] * factor)}ns"
    if isinstance(value, list):
        return [scaled(one, factor) for one in value]
    if isinstance(value, dict):
        return {key: one if key in ("sigma", "shape") else scaled(one, factor) for key, one in value.items()}
    return value


def changed(definition, scenario, configured):
    """The definition of a scenario: a slowed service, a fault, and policies that come from configuration.

    Where nothing waited in the recording, `configured` takes the number of slots from configuration, too.
    """
    about = SYSTEMS[scenario.system]
    for service in definition["services"]:
        known = about["services"].get(service["name"])
        if configured and known and known.get("slots") and "concurrency" not in service:
            service["concurrency"] = known["slots"]
        if configured and known and known.get("processors"):
            service.setdefault("processors", known["processors"])
            if "time_slice" in known:
                service["time_slice"] = f"{known['time_slice']}ms"
        if scenario.slow and service["name"] == scenario.slow[0]:
            for endpoint in service["endpoints"]:
                for step in endpoint["steps"]:
                    if "work" in step:
                        step["work"] = scaled(step["work"], scenario.slow[1])
        if scenario.fault and service["name"] == scenario.fault["service"]:
            fault = {key: scenario.fault[key] for key in scenario.fault if key != "service"}
            fault |= {key: f"{fault[key] * 1e3:.0f}ms" for key in ("at", "for")}
            # The smallest share is one instance.
            service["faults"] = [fault | ({"share": 0.001} if fault["kind"] == "kill" else {})]
        for called, policies in about.get("policies", {}).get(service["name"], {}).items():
            learned = service.setdefault("calls", {})
            learned[called] = learned.get(called, {}) | policies
    for load in definition["load"].values():
        load |= {"rate": scenario.rates[0][1], "arrivals": "poisson"}
    return definition


def prepared(file, scenario, seed, configured, profile=None):
    """A directory with the definition of a scenario."""
    definition = changed(json.loads(file.read_text()), scenario, configured)
    for load in definition["load"].values():
        load["rate"] = profile or load["rate"]
    directory = WORK / "simulated" / f"{scenario.name.replace(' ', '-')}-{file.stem}-{seed}-{configured}"
    (directory / "json_arch").mkdir(parents=True, exist_ok=True)
    (directory / "json_arch/x_arch.json").write_text(json.dumps(definition))
    return directory


def corsair(directory, *arguments):
    said = subprocess.run([CORSAIR, *arguments], cwd=directory, capture_output=True, text=True)
    if said.returncode:
        raise SystemExit(f"{directory.name}: {said.stderr}")
    return said.stdout


def simulate(file, scenario, seed, configured=True):
    """The requests of a scenario as it is simulated: at, took, failed."""
    # After the load, the requests in flight are answered, as in a measurement.
    rates = [*scenario.rates, [scenario.seconds, 0.001]]
    profile = [{"at": f"{at * 1e3:.0f}ms", "rate": rate} for at, rate in rates]
    directory = prepared(file, scenario, seed, configured, profile)
    seconds = ["-d", str(scenario.seconds + DRAIN), "--seed", str(seed)]
    corsair(directory, "-a", "x", *seconds, "--flow-format", "otlp", "--workers", "1")
    requests, first = [], None
    flow = next((directory / "json_metrics").glob("*otlp*"))
    for line in flow.open():
        for resource in json.loads(line)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    if span.get("parentSpanId") or span["kind"] not in (3, "SPAN_KIND_CLIENT"):
                        continue
                    begin, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
                    first = begin if first is None else min(first, begin)
                    failed = span.get("status", {}).get("code") in (2, "STATUS_CODE_ERROR")
                    requests.append((begin, end, failed))
    flow.unlink()
    # A request without an answer has no duration; it has waited until the end.
    last = first + (scenario.seconds + DRAIN) * 1e9
    return [
        {"at": (begin - first) / 1e9, "took": ((end if end > begin else last) - begin) / 1e9, "failed": failed or end <= begin}
        for begin, end, failed in requests
        if begin - first < scenario.seconds * 1e9
    ]


def counted(requests):
    """The sorted response times after the warm-up, and the share that fails."""
    times = sorted(one["took"] for one in requests if one["at"] >= WARM_UP)
    return times, sum(one["failed"] for one in requests) / max(len(requests), 1)


def tipping(requests, scenario):
    """The rate from which on most requests fail in all intervals of five seconds; the last rate if they never do."""
    width = 5.0
    windows = [[] for _ in range(math.ceil(scenario.seconds / width))]
    for one in requests:
        windows[min(int(one["at"] / width), len(windows) - 1)].append(one["failed"])
    good = [place for place, failed in enumerate(windows) if sum(failed) <= len(failed) / 2]
    begins = (good[-1] + 1 if good else 0) * width
    return [rate for at, rate in scenario.rates if at <= begins][-1]


def searched_capacity(scenario, seed, requests):
    """The highest rate that a system sustains, by bisection. `requests` makes the requests of a run at a rate."""
    low, high = LOWEST * scenario.rates[0][1], HIGHEST * scenario.rates[0][1]
    for step in range(BISECTIONS):
        rate = (low + high) / 2
        times, failed = counted(requests([[0, rate]], seed + step))
        met = quantile(times, 0.99) <= OBJECTIVE and failed <= MOST_FAILED
        low, high = (rate, high) if met else (low, rate)
    return (low + high) / 2


def measured_capacity(system, scenario, seed):
    def requests(rates, seed):
        made = system.generate(rates, scenario.seconds, seed)
        time.sleep(2)
        return made

    return searched_capacity(scenario, seed, requests)


def simulated_capacity(file, scenario, seed):
    """The same with simulated requests."""
    return searched_capacity(scenario, seed, lambda rates, seed: simulate(file, replace(scenario, rates=rates), seed))


def capacity_by_command(file, scenario):
    """The same with `corsair capacity`, which simulates several runs at each rate."""
    directory = prepared(file, scenario, 0, configured=True)
    objectives = ["--slo", f"p99 < {OBJECTIVE}s", "--slo", f"errors < {MOST_FAILED:.0%}"]
    return json.loads(corsair(directory, "capacity", "-a", "x", *objectives, "-d", str(SECONDS), "--format", "json"))["load"]


def quantile(times, part):
    return times[min(max(math.ceil(part * len(times)), 1), len(times)) - 1]


def percentiles(runs):
    """The means of the runs' percentiles."""
    return {f"p{part * 100:g}": statistics.mean(quantile(times, part) for times, _ in runs) for part in PARTS}


def predict():
    selected()
    with ProcessPoolExecutor(4) as pool:
        predictions = dict(pool.map(prediction, scenarios()))
    write("predictions.json", predictions)


def interval(values):
    """An interval of 95 % from the logarithms of eight values."""
    middle, deviation = statistics.mean(map(math.log, values)), statistics.stdev(map(math.log, values))
    wide = 2.36 * deviation  # Student's factor for eight
    return [math.exp(middle - wide), math.exp(middle + wide)]


def prediction(scenario):
    """The name of a scenario, and what is predicted for it."""
    learned = DATA / f"definitions/{scenario.system}.json"
    # How far a prediction may be off: other resampled recordings, each as long as a measurement. Without resampled
    # recordings the interval is that of chance alone.
    others = [WORK / "traces" / f"{scenario.system}.{number}.json" for number in range(RESAMPLED)]
    resampled = all(file.exists() for file in others)
    others = others if resampled else [learned] * RESAMPLED
    row = {"resampled": resampled} | PREDICT[scenario.kind](scenario, learned, others)
    print(scenario.name, {key: value for key, value in row.items() if key != "curve"}, flush=True)
    return scenario.name, row


def predict_times(scenario, learned, others):
    # What is predicted is what is measured: the mean of runs of that length, which differs from a percentile of all
    # requests together, as soon as runs differ.
    made = [counted(simulate(learned, scenario, seed)) for seed in range(SIMULATED)]
    row = {"failed": statistics.mean(failed for _, failed in made)}
    row["rate"] = statistics.mean(len(times) for times, _ in made) / SECONDS
    row |= percentiles(made)
    row["curve"] = [statistics.mean(quantile(times, n / 100) for times, _ in made) for n in range(1, 100)]
    runs = [counted(simulate(file, scenario, 100 + number))[0] for number, file in enumerate(others)]
    for part in PARTS:
        row[f"p{part * 100:g}_interval"] = interval([quantile(run, part) for run in runs])
    # The same from the traces alone.
    text = learned.read_text()
    if changed(json.loads(text), scenario, True) != changed(json.loads(text), scenario, False):
        made = [counted(simulate(learned, scenario, seed, configured=False)) for seed in range(SIMULATED)]
    row["from_traces_alone"] = percentiles(made)
    return row


def predict_tipping(scenario, learned, others):
    made = [tipping(simulate(learned, scenario, seed), scenario) for seed in range(SIMULATED)]
    runs = [tipping(simulate(file, scenario, 100 + number), scenario) for number, file in enumerate(others)]
    return {"tipping": statistics.mean(made), "tipping_interval": interval(runs)}


def predict_capacity(scenario, learned, others):
    # A search is short and random: what is predicted is the mean of searches like the measured one.
    made = [simulated_capacity(learned, scenario, 100 * number) for number in range(SEARCHES)]
    runs = [simulated_capacity(file, scenario, 10_000 + 100 * number) for number, file in enumerate(others)]
    by_command = capacity_by_command(learned, scenario)
    return {"capacity": statistics.mean(made), "capacity_interval": interval(runs), "by_command": by_command}


PREDICT = {"times": predict_times, "tipping": predict_tipping, "capacity": predict_capacity}


def measure():
    def run(system):
        made = {}
        for scenario in scenarios():
            if scenario.system != system.name:
                continue
            for repeat in range(REPEATS):
                row = measurement(system, scenario, 1000 + repeat * (1 if scenario.kind == "times" else 100))
                made.setdefault(scenario.name, []).append(row)
                print(time.strftime("%H:%M:%S"), scenario.name, repeat, flush=True)
                (WORK / f"measured-{system.name}.json").write_text(json.dumps(made))
        return made

    measured = {}
    for made in for_all(run).values():
        measured |= made
    write("measured.json", measured)


def measurement(system, scenario, seed):
    """A row of measured.json."""
    if scenario.kind == "capacity":
        return {"capacity": measured_capacity(system, scenario, seed)}
    requests = system.run(scenario, seed)
    if scenario.kind == "tipping":
        return {"tipping": tipping(requests, scenario)}
    late = [one for one in requests if one["at"] >= WARM_UP]
    times = sorted(one["took"] for one in late)
    row = {f"p{part * 100:g}": quantile(times, part) for part in PARTS}
    row |= {"requests": len(times), "failed": sum(one["failed"] for one in late) / len(late)}
    row["rate"] = len(times) / SECONDS
    return row | {"curve": [quantile(times, n / 100) for n in range(1, 100)]}


def write(name, rows):
    """Writes a table by scenario, a line each, with times to the microsecond. Rows of scenarios that are not selected
    stay as they are."""
    if ONLY and (DATA / name).exists():
        rows = json.loads((DATA / name).read_text()) | rows
    rounded = lambda value: round(value, 6) if isinstance(value, float) else value
    text = lambda row: json.dumps(json.loads(json.dumps(row), parse_float=lambda digits: rounded(float(digits))))
    lines = ",\n".join(f"{json.dumps(scenario)}: {text(row)}" for scenario, row in rows.items())
    (DATA / name).write_text("{" + lines + "}\n")


def distance(a, b):
    """How far two curves of a hundred quantiles are apart at most, as distribution functions."""
    most = 0.0
    for one, other in ((a, b), (b, a)):
        for place, value in enumerate(one):
            below = sum(x <= value for x in other) / (len(other) + 1)
            most = max(most, abs(below - (place + 1) / (len(one) + 1)))
    return most


def report():
    predictions = json.loads((DATA / "predictions.json").read_text())
    measured = json.loads((DATA / "measured.json").read_text())
    lines = ["scenario,quantity,predicted,from,to,measured,run_to_run,off,inside"]
    offs, inside, within = {}, [], []
    distances, points = [], []
    for name, prediction in predictions.items():
        runs = measured.get(name)
        if not runs:
            continue
        for quantity in ("rate", *(f"p{part * 100:g}" for part in PARTS), "capacity", "tipping"):
            if quantity not in prediction:
                continue
            values = [run[quantity] for run in runs]
            middle = statistics.mean(values)
            spread = (max(values) - min(values)) / middle
            off = prediction[quantity] / middle - 1
            offs.setdefault(quantity, []).append(abs(off))
            low, high = prediction.get(f"{quantity}_interval", ["", ""])
            is_inside = low <= middle <= high if low else ""
            if low:
                inside.append(is_inside)
                if quantity.startswith("p"):
                    points.append((name, quantity, prediction[quantity], low, high, middle))
                within.append(abs(off) <= max(0.15, spread))
            row = [name, quantity, prediction[quantity], low, high, middle, spread, off, is_inside]
            lines.append(",".join(f"{cell:.5g}" if isinstance(cell, float) else str(cell) for cell in row))
        if "curve" not in prediction:
            continue
        curve = [statistics.mean(column) for column in zip(*(run["curve"] for run in runs))]
        apart = distance(prediction["curve"], curve)
        distances.append(apart)
        lines.append(f"{name},distance,,,,{apart:.4g},,,")
    (DATA / "results.csv").write_text("\n".join(lines) + "\n")
    for quantity, values in offs.items():
        print(f"{quantity}: median off {statistics.median(values):.1%}, most {max(values):.1%}, of {len(values)}")
    print(f"distance: median {statistics.median(distances):.3f}, most {max(distances):.3f}")
    print(f"inside the interval: {sum(inside)} of {len(inside)}")
    print(f"within 15 % or the run-to-run spread: {sum(within)} of {len(within)}")
    (DATA / "results.svg").write_text(picture(points))


def style():
    """The colours of all pictures by name, and the rules of dark schemes, from the module that defines them."""
    source = (HERE.parents[1] / "crates/core/src/picture.rs").read_text()
    light = dict(re.findall(r'pub const (\w+): &str = "(#\w+)"', source))
    dark = re.findall(r'^    \((\w+|"#\w+"), "(#\w+)"\)', source, re.MULTILINE)
    rules = (f'.corsair [{what}="{light.get(name, name)}"]{{{what}:{to}}}' for name, to in dark for what in ("fill", "stroke"))
    rules = "".join(rules).replace('""', '"')
    return light, f"<style>@media(prefers-color-scheme:dark){{.corsair text:not([fill]){{fill:{dict(dark)['INK']}}}{rules}}}</style>"


def picture(points):
    """Predicted over measured, on logarithmic axes, with the interval of the prediction."""
    times = [value for point in points for value in point[2:]]
    low, high = math.log(min(times) * 1e3 / 1.2), math.log(max(times) * 1e3 * 1.2)
    size, edge = 640, 60
    at = lambda seconds: edge + (math.log(seconds * 1e3) - low) / (high - low) * (size - 2 * edge)
    y = lambda seconds: size - at(seconds)
    light, dark = style()
    ink, rule, faint = light["INK"], light["RULE"], light["FAINT"]
    colours = {"p50": light["NORMAL"], "p95": light["LIMIT"], "p99": light["NOTABLE"]}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" font-family="sans-serif" font-size="12" class="corsair" role="img">',
        "<title>Predicted and measured response times</title>",
        f"<desc>{len(points)} percentiles of real services with the intervals of their predictions; the diagonal is a perfect prediction.</desc>",
        dark,
        f'<rect width="{size}" height="{size}" fill="{light["PAPER"]}"/>',
        f'<line x1="{edge}" y1="{size - edge}" x2="{size - edge}" y2="{edge}" stroke="{faint}"/>',
        f'<text x="{size / 2}" y="{size - 15}" text-anchor="middle" fill="{ink}">measured, milliseconds</text>',
        f'<text x="15" y="{size / 2}" transform="rotate(-90 15 {size / 2})" text-anchor="middle" fill="{ink}">predicted, milliseconds</text>',
    ]
    for millis in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000):
        if low <= math.log(millis) <= high:
            here = at(millis / 1e3)
            parts.append(f'<text x="{here:.1f}" y="{size - edge + 16}" text-anchor="middle" fill="{ink}">{millis}</text>')
            parts.append(f'<text x="{edge - 6}" y="{size - here + 4:.1f}" text-anchor="end" fill="{ink}">{millis}</text>')
            parts.append(f'<path d="M{here:.1f} {edge}V{size - edge}M{edge} {size - here:.1f}H{size - edge}" stroke="{rule}"/>')
    for name, quantity, predicted, least, most, real in points:
        x, colour = at(real), colours[quantity]
        parts.append(f'<path d="M{x:.1f} {y(least):.1f}V{y(most):.1f}" stroke="{colour}" stroke-opacity="0.5"/>')
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y(predicted):.1f}" r="3" fill="{colour}"><title>{name}, {quantity}</title></circle>'
        )
    for place, (quantity, colour) in enumerate(colours.items()):
        # The paper around a name hides the lines behind it.
        halo = f'stroke="{light["PAPER"]}" stroke-width="5" stroke-linejoin="round" paint-order="stroke"'
        parts.append(f'<text x="{edge + 12}" y="{edge + 20 + 16 * place}" fill="{colour}" {halo}>{quantity}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    {"record": record_all, "define": define_all, "predict": predict, "measure": measure, "report": report}[sys.argv[1]]()
