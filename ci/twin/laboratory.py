"""The laboratory: real services are learned at a low load and predicted at others; then the others are measured.

    laboratory.py record    runs every system at its load of learning, and records traces
    laboratory.py define    learns a definition of each system, and those of resampled recordings
    laboratory.py predict   simulates every scenario, writes predictions.json
    laboratory.py measure   runs every scenario on the real services, writes measured.json
    laboratory.py report    compares, writes results.csv and results.svg

systems.json has the systems and the scenarios. Predictions are committed before the measurement.
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
from pathlib import Path

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
# The simulated runs of a prediction, each as long as a measured run.
SIMULATED = 10

SYSTEMS = json.loads((HERE / "systems.json").read_text())


def scenarios():
    """Name, system, rates over time as [from, rate], and the service that is slowed by a factor, if one is."""
    for name, system in SYSTEMS.items():
        capacity = system["capacity"]
        for load in system["loads"]:
            yield f"{name} at {load}", name, [[0, load * capacity]], None
        if "slow" in system:
            yield f"{name} slowed", name, [[0, 0.5 * capacity]], system["slow"]
        if system.get("spike"):
            begin = WARM_UP + SECONDS / 3
            rates = [[0, 0.4 * capacity], [begin, 0.95 * capacity], [begin + SECONDS / 6, 0.4 * capacity]]
            yield f"{name} spike", name, rates, None


class System:
    """The running processes of a system."""

    def __init__(self, name):
        self.name, self.about = name, SYSTEMS[name]
        collector = f"http://127.0.0.1:{COLLECTOR}/{name}"
        self.processes = []
        for service, about in self.about["services"].items():
            spec = {"name": service, "port": about["port"], "slots": about.get("slots", 0)}
            spec["endpoints"] = {op: [self.step(step) for step in steps] for op, steps in about["endpoints"].items()}
            command = [*BINARIES[about["language"]], json.dumps(spec), collector]
            log = (WORK / f"{name}-{service}.log").open("w")
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))
        self.collector = collector

    def url(self, target):
        service, operation = target.split(".")
        return f"http://127.0.0.1:{self.about['services'][service]['port']}/{operation}"

    def step(self, step):
        step = dict(step)
        if "call" in step:
            step["call"] = self.url(step["call"])
        if "parallel" in step:
            step["parallel"] = [self.url(target) for target in step["parallel"]]
        return step

    def ask(self, service, path):
        url = f"http://127.0.0.1:{self.about['services'][service]['port']}/{path}"
        for attempt in range(40):
            try:
                return urllib.request.urlopen(url, timeout=20).read()
            except OSError:
                time.sleep(0.25)
        raise SystemExit(f"{self.name}: {service} does not answer; see {WORK}/{self.name}-{service}.log")

    def ready(self):
        for service in self.about["services"]:
            self.ask(service, "slow?factor=1")

    def generate(self, rates, seconds, seed):
        plan = {"url": self.url(self.about["entry"]), "collector": self.collector, "seconds": seconds}
        plan |= {"rates": rates, "seed": seed}
        made = subprocess.run([WORK / "generator", json.dumps(plan)], stdout=subprocess.PIPE, check=True)
        return json.loads(made.stdout)

    def stop(self):
        for process in self.processes:
            process.terminate()
            process.wait()


def for_all(work):
    """Does `work` for all systems at once: services wait, so that two cores are enough for all of them."""
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "traces").mkdir(exist_ok=True)
    python = str(WORK / "venv/bin/python")
    collector = subprocess.Popen([python, HERE / "collector.py", WORK / "traces", str(COLLECTOR)])
    time.sleep(1)
    systems = [System(name) for name in SYSTEMS]
    try:
        for system in systems:
            system.ready()
        with ThreadPoolExecutor(len(systems)) as pool:
            return dict(zip(SYSTEMS, pool.map(work, systems)))
    finally:
        for system in systems:
            system.stop()
        collector.terminate()


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
        list(pool.map(define, sys.argv[2:] or SYSTEMS))


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
    """The definition of a scenario: a slowed service, and policies that come from configuration.

    Where nothing waited in the recording, `configured` takes the number of slots from configuration, too.
    """
    _, name, rates, slow = scenario
    for service in definition["services"]:
        known = SYSTEMS[name]["services"].get(service["name"])
        if configured and known and "concurrency" not in service:
            service["concurrency"] = known["slots"]
        if slow and service["name"] == slow[0]:
            for endpoint in service["endpoints"]:
                for step in endpoint["steps"]:
                    if "work" in step:
                        step["work"] = scaled(step["work"], slow[1])
        for caller, policies in SYSTEMS[name].get("policies", {}).items():
            if service["name"] == caller:
                service["calls"] = policies
    profile = [{"at": f"{at}s", "rate": rate} for at, rate in rates]
    for load in definition["load"].values():
        load |= {"rate": profile if len(profile) > 1 else rates[0][1], "arrivals": "poisson"}
    return definition


def simulate(file, scenario, seconds, seed, configured=True):
    """The response times of a scenario as it is simulated, sorted, and the share that fails."""
    name = scenario[1]
    definition = changed(json.loads(file.read_text()), scenario, configured)
    directory = WORK / "simulated" / f"{scenario[0].replace(' ', '-')}-{file.stem}-{seed}-{configured}"
    (directory / "json_arch").mkdir(parents=True, exist_ok=True)
    (directory / "json_arch/x_arch.json").write_text(json.dumps(definition))
    command = [CORSAIR, "-a", "x", "-d", str(seconds), "--seed", str(seed), "--flow-format", "otlp", "--workers", "1"]
    said = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if said.returncode:
        raise SystemExit(f"{scenario[0]}: {said.stderr}")
    times, failed, first = [], 0, None
    flow = next((directory / "json_metrics").glob("*otlp*"))
    for line in flow.open():
        for resource in json.loads(line)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    if span.get("parentSpanId") or span["kind"] not in (3, "SPAN_KIND_CLIENT"):
                        continue
                    begin, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
                    first = begin if first is None else min(first, begin)
                    times.append(((begin - 0) / 1e9, (end - begin) / 1e9))
                    failed += span.get("status", {}).get("code") in (2, "STATUS_CODE_ERROR")
    flow.unlink()
    counted = [took for at, took in times if at - first / 1e9 >= WARM_UP]
    return sorted(counted), failed / max(len(times), 1)


def quantile(times, part):
    return times[min(max(math.ceil(part * len(times)), 1), len(times)) - 1]


def percentiles(runs):
    """The means of the runs' percentiles."""
    return {f"p{part * 100:g}": statistics.mean(quantile(times, part) for times, _ in runs) for part in PARTS}


def predict():
    with ProcessPoolExecutor(4) as pool:
        predictions = dict(pool.map(prediction, scenarios()))
    write("predictions.json", predictions)


def prediction(scenario):
    """The name of a scenario, and what is predicted for it."""
    name = scenario[1]
    # What is predicted is what is measured: the mean of runs of that length, which differs from a percentile of all
    # requests together, as soon as runs differ.
    learned = DATA / f"definitions/{name}.json"
    made = [simulate(learned, scenario, WARM_UP + SECONDS, seed) for seed in range(SIMULATED)]
    row = {"failed": statistics.mean(failed for _, failed in made)}
    row["rate"] = statistics.mean(len(times) for times, _ in made) / SECONDS
    row |= percentiles(made)
    row["curve"] = [statistics.mean(quantile(times, n / 100) for times, _ in made) for n in range(1, 100)]
    # How far a prediction may be off: other resampled recordings, each as long as a measurement.
    others = []
    for number in range(RESAMPLED):
        file = WORK / "traces" / f"{name}.{number}.json"
        row["resampled"] = file.exists()
        # Without resampled recordings the interval is that of chance alone.
        one, _ = simulate(file if file.exists() else learned, scenario, WARM_UP + SECONDS, 100 + number)
        others.append({part: quantile(one, part) for part in PARTS})
    for part in PARTS:
        of = sorted(other[part] for other in others)
        if len(of) > 2:
            middle, deviation = statistics.mean(map(math.log, of)), statistics.stdev(map(math.log, of))
            wide = 2.36 * deviation  # Student's factor for eight
            row[f"p{part * 100:g}_interval"] = [math.exp(middle - wide), math.exp(middle + wide)]
    # The same from the traces alone.
    text = learned.read_text()
    if changed(json.loads(text), scenario, True) != changed(json.loads(text), scenario, False):
        made = [simulate(learned, scenario, WARM_UP + SECONDS, seed, configured=False) for seed in range(SIMULATED)]
    row["from_traces_alone"] = percentiles(made)
    print(scenario[0], {key: value for key, value in row.items() if key != "curve"}, flush=True)
    return scenario[0], row


def measure():
    measured = {}

    def run(system):
        made = {}
        for scenario in scenarios():
            if scenario[1] != system.name:
                continue
            for repeat in range(REPEATS):
                if scenario[3]:
                    service, factor = scenario[3]
                    system.ask(service, f"slow?factor={factor}")
                made.setdefault(scenario[0], []).append(
                    system.generate(scenario[2], WARM_UP + SECONDS, 1000 + repeat)
                )
                if scenario[3]:
                    system.ask(scenario[3][0], "slow?factor=1")
                time.sleep(2)
                print(time.strftime("%H:%M:%S"), scenario[0], repeat, flush=True)
                (WORK / f"measured-{system.name}.json").write_text(json.dumps(made))
        return made

    for made in for_all(run).values():
        measured |= made
    rows = {}
    for name, runs in measured.items():
        rows[name] = []
        for run_ in runs:
            counted = [one for one in run_ if one["at"] >= WARM_UP]
            times = sorted(one["took"] for one in counted)
            row = {f"p{part * 100:g}": quantile(times, part) for part in PARTS}
            row |= {"requests": len(times), "failed": sum(one["failed"] for one in counted) / len(counted)}
            row["rate"] = len(times) / SECONDS
            row["curve"] = [quantile(times, n / 100) for n in range(1, 100)]
            rows[name].append(row)
    write("measured.json", rows)


def write(name, rows):
    """Writes a table by scenario, a line each, with times to the microsecond."""
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
        for quantity in ("rate", *(f"p{part * 100:g}" for part in PARTS)):
            values = [run[quantity] for run in runs]
            middle = statistics.mean(values)
            spread = (max(values) - min(values)) / middle
            off = prediction[quantity] / middle - 1
            offs.setdefault(quantity, []).append(abs(off))
            low, high = prediction.get(f"{quantity}_interval", ["", ""])
            is_inside = low <= middle <= high if low else ""
            if low:
                inside.append(is_inside)
                points.append((name, quantity, prediction[quantity], low, high, middle))
                within.append(abs(off) <= max(0.15, spread))
            row = [name, quantity, prediction[quantity], low, high, middle, spread, off, is_inside]
            lines.append(",".join(f"{cell:.5g}" if isinstance(cell, float) else str(cell) for cell in row))
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
