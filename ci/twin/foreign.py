"""Predicts systems that others have measured, from the one trace that they published for each, and compares.

    foreign.py        simulates every measured configuration, writes foreign/results.csv, prints the summary

foreign/traces.json has the traces, foreign/measured.csv the measurements, and foreign/simgrid.csv what the authors'
own simulator predicted. All come from https://github.com/klementc/microservices_simgrid_reproducibility; README.md says
what was measured. The services of a machine share its cores, so a machine is a service with processors, and its
services are steps. The work of a trace is known but for one factor, the speed of the machines. It is fitted to the highest
throughput of one configuration of each system; all other configurations are predicted.
"""

import csv
import json
import statistics
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import laboratory

HERE = Path(__file__).parent
DATA = HERE / "foreign"
WORK = laboratory.WORK / "foreign"
SECONDS = 30
TRACES = json.loads((DATA / "traces.json").read_text())
# The configuration to which the factor is fitted, for each number of cores: with several machines, the one machine of as many
# cores; of TeaStore, the machine with the fewest.
FITTED = {"social-network": lambda cores: ("one", cores), "teastore": lambda cores: ("one", 4)}


def is_fitted(system, placement, cores):
    """True if the factor is fitted to this configuration."""
    return FITTED[system](cores) == (placement, cores)


def rows(name):
    with (DATA / name).open() as file:
        for row in csv.DictReader(file):
            numbers = {key: float(row[key]) for key in ("offered", "answered", "mean_ms") if key in row}
            yield row | numbers | {"cores": int(row["cores"])}


def key(row):
    """The configuration of a row, without its load."""
    return row["system"], row["placement"], row["cores"]


def highest(table, system, placement, cores):
    """The highest throughput of a configuration; 0 if there is none."""
    of = (row["answered"] for row in table if key(row) == (system, placement, cores))
    return max(of, default=0.0)


def work(node):
    """The microseconds of a part of a trace."""
    return node.get("us", 0) + sum(map(work, node.get("then", []))) + sum(work(one) for list_ in node.get("parallel", []) for one in list_)


class Machines:
    """The definition of a trace on machines: each is a service with the cores of the machine."""

    def __init__(self, trace, placement, cores, factor):
        self.elsewhere, self.factor = trace["elsewhere"][placement], factor
        self.endpoints = {"first": [], "second": []}
        entry = self.endpoint("first", trace["request"])
        self.services = []
        for machine, endpoints in self.endpoints.items():
            if endpoints:
                others = [other for other in self.endpoints if other != machine and self.endpoints[other]]
                self.services.append(service(machine, endpoints, processors=cores, dependencies=others))
        self.entry = f"first.{entry}"

    def endpoint(self, machine, node):
        endpoints = self.endpoints[machine]
        # The place is taken before the steps, which may need further endpoints of the same machine.
        made = {"name": f"{node['service']}-{len(endpoints)}"}
        endpoints.append(made)
        made["steps"] = self.steps(machine, node)
        return made["name"]

    def steps(self, machine, node):
        if "parallel" in node:
            return [{"parallel": [[step for one in branch for step in self.steps(machine, one)] for branch in node["parallel"]]}]
        home = "second" if node["service"] in self.elsewhere else "first"
        if home != machine:
            return [{"call": f"{home}.{self.endpoint(home, node)}"}]
        steps = [{"work": f"{node['us'] * self.factor:.3f}us"}]
        return steps + [step for one in node.get("then", []) for step in self.steps(machine, one)]


def service(name, endpoints, **about):
    latency = {"latency": "0s"} if name == "connection" or name == "first" else {}
    return {"name": name, "package": "service", "regions": 1, "count": 1, "endpoints": endpoints} | latency | about


def definition(system, placement, cores, offered, factor):
    trace = TRACES[system]
    machines = Machines(trace, placement, cores, factor)
    connections = trace["connections"]
    # The load generator sends over connections, each of which has one request at a time.
    slots = {"count": max(1, round(offered / connections["for_each"])), "concurrency": 1} if connections["own"] else {"concurrency": connections["count"]}
    connection = service("connection", [{"name": "send", "steps": [{"call": machines.entry}]}], dependencies=["first"], **slots)
    entry = {"name": "generator", "package": "denominator", "regions": 0, "count": 0, "dependencies": ["connection"]}
    load = {"generator": {"rate": offered, "arrivals": "poisson", "requests": {"connection.send": 1}}}
    about = {"arch": "x", "version": "arch-0.1", "description": "", "args": "", "date": "", "victim": ""}
    return about | {"load": load, "services": [*machines.services, connection, entry]}


def simulate(configuration):
    """The throughput per second and the mean response time in milliseconds of a configuration."""
    system, placement, cores, offered, factor = configuration
    directory = WORK / f"{system}-{placement}-{cores}-{offered:g}"
    (directory / "json_arch").mkdir(parents=True, exist_ok=True)
    (directory / "json_arch/x_arch.json").write_text(json.dumps(definition(system, placement, cores, offered, factor)))
    said = laboratory.corsair(directory, "-a", "x", "-d", f"{SECONDS}s", "-c", "--format", "json", "--workers", "1")
    report = json.loads(said)
    entry = report["entries"]["generator"]
    answered = entry["requests"] - entry["unanswered"]
    # After the load, an overloaded system answers requests until the end of the run.
    lasted = report["time_seconds"] if entry["unanswered"] else SECONDS
    # One generator counts from the time at which a request was due, the other from the time at which it was sent.
    timed = "generator" if TRACES[system]["connections"]["own"] else "first"
    histogram = list(csv.DictReader((directory / f"csv_metrics/x_{timed}_resp.csv").open()))
    total = sum((int(row["from_ns"]) + int(row["to_ns"])) / 2 * int(row["count"]) for row in histogram)
    count = sum(int(row["count"]) for row in histogram)
    return answered / lasted, total / max(count, 1) / 1e6


def main():
    measured, simgrid = list(rows("measured.csv")), list(rows("simgrid.csv"))
    configurations = []
    for row in measured:
        system, placement, cores = key(row)
        fitted = FITTED[system](cores)
        # At its highest throughput, a machine works all the time.
        factor = fitted[1] / highest(measured, system, *fitted) * 1e6 / work(TRACES[system]["request"])
        configurations.append((system, placement, cores, row["offered"], factor))
    with ProcessPoolExecutor(2) as pool:
        predicted = list(pool.map(simulate, configurations))
    lines = ["system,placement,cores,offered,answered,predicted,mean_ms,predicted_ms,fitted"]
    table = []
    for row, (answered, mean) in zip(measured, predicted):
        table.append(row | {"answered": answered})
        cells = [*key(row), f"{row['offered']:g}", f"{row['answered']:g}", f"{answered:.5g}", f"{row['mean_ms']:g}", f"{mean:.4g}", is_fitted(*key(row))]
        lines.append(",".join(map(str, cells)))
    (DATA / "results.csv").write_text("\n".join(lines) + "\n")
    print("| system | machines | cores | highest throughput | predicted | SimGrid | mean response time, median error below 0.8 of it |")
    print("|---|---|---|---|---|---|---|")
    for configuration in dict.fromkeys(map(key, measured)):
        real, ours, theirs = (highest(one, *configuration) for one in (measured, table, simgrid))
        off = lambda value: f"{value:.0f} ({value / real - 1:+.1%})" if value else ""
        times = [
            abs(mean / row["mean_ms"] - 1)
            for row, (_, mean) in zip(measured, predicted)
            if key(row) == configuration and row["offered"] < 0.8 * real
        ]
        ours = f"{off(ours)}{' fitted' if is_fitted(*configuration) else ''}"
        print(f"| {' | '.join(map(str, configuration))} | {real:.0f} | {ours} | {off(theirs)} | {statistics.median(times):.0%} |")


if __name__ == "__main__":
    main()
