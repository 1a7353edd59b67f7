"""The results of runs and searches."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from ._corsair import Entry, Table
from ._html import html_table
from .architecture import Architecture

T = TypeVar("T")

Summary = dict[str, Any]
"""A result, with the field names of the command's JSON."""


def duration_text(seconds: float) -> str:
    """Formats a time with three digits: 8.96ms."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= size:
            return f"{seconds / size:.3g}{unit}"
    return "0s"


class Graph:
    """The graph of calls in a run: the nodes and edges of its GraphJSON."""

    def __init__(self, text: str) -> None:
        self.json = text
        """The text of the graph file, as the command writes it."""
        events = json.loads(text)["graph"]
        self.nodes: list[dict[str, Any]] = [event for event in events if "node" in event]
        """The nodes: name, package, and the time at which each appeared."""
        self.edges: list[tuple[str, str]] = [(event["source"], event["target"]) for event in events if "edge" in event]
        """The edges as pairs of names: caller and called instance."""

    def to_dict(self) -> dict[str, list[str]]:
        """Returns the names of the nodes that each node calls."""
        targets: dict[str, list[str]] = {node["node"]: [] for node in self.nodes}
        for source, target in self.edges:
            targets.setdefault(source, []).append(target)
        return targets

    def __repr__(self) -> str:
        return f"Graph({len(self.nodes)} nodes, {len(self.edges)} edges)"


class Result:
    """The results of a run, which a notebook displays as a picture."""

    def __init__(
        self,
        summary: Summary,
        entries: dict[str, Entry],
        timeline: Table | None,
        flows: Table | None,
        graph: Graph | None,
        files: list[str],
        remarks: list[str],
        svg: str | None,
    ) -> None:
        self.summary = summary
        """All results as numbers, with the names of the command's `--format json`."""
        self.entries: Mapping[str, Entry] = entries
        """The requests of each entry point: counts, percentiles, response times."""
        self._timeline, self._flows, self._graph = timeline, flows, graph
        self.files = files
        """The files that were written, if a directory was given."""
        self.remarks = remarks
        """Remarks on the run that are not errors."""
        self._svg = svg

    @property
    def timeline(self) -> Table:
        """The results for each interval, by service and zone: requests, errors, percentiles, queues, utilisation."""
        return _kept(self._timeline, "what happened over time", "leave interval=0 out")

    @property
    def flows(self) -> Table:
        """All requests and answers between two instances, as spans with both ends."""
        return _kept(self._flows, "its flows", "give flows=True")

    @property
    def graph(self) -> Graph:
        """The graph of calls."""
        return _kept(self._graph, "its graph", "give graph=True")

    @property
    def digest(self) -> str:
        """A digest of all events. Two runs with the same digest had the same events."""
        return str(self.summary["digest"])

    @property
    def entry(self) -> Entry:
        """The only entry point."""
        if len(self.entries) == 1:
            return next(iter(self.entries.values()))
        raise LookupError(f"there are {len(self.entries)} entry points ({', '.join(self.entries)}); take one of entries")

    def percentile(self, part: float) -> float:
        """Returns the response time in seconds that a fraction of the requests, from 0 to 1, does not exceed."""
        return self.entry.percentile(part)

    def percentiles(self, parts: tuple[float, ...] = (0.5, 0.9, 0.99, 0.999)) -> Table:
        """Percentiles of response times at each entry point, and for each kind of request if there are several."""
        rows: dict[str, list[Any]] = {"entry": [], "kind": [], "requests": []}
        rows |= {_column(part): [] for part in parts}
        for name, entry in self.entries.items():
            kinds = entry.kinds
            for kind, one in [("", entry), *(kinds.items() if len(kinds) > 1 else ())]:
                rows["entry"].append(name)
                rows["kind"].append(kind)
                rows["requests"].append(one.requests)
                for part in parts:
                    rows[_column(part)].append(one.percentile(part))
        return Table(rows)

    @property
    def services(self) -> Table:
        """The totals of each service, and the time that requests spend in it: a row for each service."""
        services: dict[str, dict[str, Any]] = self.summary["services_by_name"]
        keys: list[str] = []
        for service in services.values():
            keys += [key for key in service if key not in keys]
        rows: dict[str, list[Any]] = {"service": list(services)}
        for key in keys:
            # The summary leaves out counters of policies that are zero.
            missing = None if key == "utilisation" else 0
            rows[key] = [service.get(key, missing) for service in services.values()]
        return Table(rows)

    def svg(self) -> str:
        """The picture of the timeline, as the command draws it."""
        return _kept(self._svg, "what happened over time", "leave interval=0 out")

    def __repr__(self) -> str:
        summary = self.summary
        lines = [f"Result({summary['arch']}: {summary['requests']} requests, {summary['errors']} failed"]
        for name, entry in self.entries.items():
            times = ", ".join(f"{label} {duration_text(entry.percentile(part))}" for label, part in PARTS)
            lines.append(f"  {name}: {times}")
        return "\n".join(lines) + ")"

    def _repr_html_(self) -> str:
        summary = self.summary
        title = f"{summary['arch']}: {summary['requests']} requests, of which {summary['errors']} failed"
        rows = []
        for name, entry in self.entries.items():
            times = [_at_least(entry, part) for _, part in PARTS]
            rows.append([name, str(entry.requests), str(entry.errors), *times])
        head = ["entry point", "requests", "failed", *(label for label, _ in PARTS)]
        picture = self._svg or ""
        return f"<p><b>{html.escape(title)}</b></p>{html_table(head, rows)}{picture}"


def _column(part: float) -> str:
    """The column name of a percentile, as in all tables: p50_seconds, p999_seconds."""
    return f"p{part * 100:g}_seconds".replace(".", "")


PARTS = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)]


def _at_least(entry: Entry, part: float) -> str:
    mark = "at least " if entry.is_at_least(part) else ""
    return mark + duration_text(entry.percentile(part))


def _kept(what: T | None, name: str, how: str) -> T:
    if what is None:
        raise LookupError(f"this run did not record {name}; {how}")
    return what


class Capacity:
    """The highest load that an architecture sustains, found by simulation. A notebook displays it as a picture."""

    def __init__(self, found: Summary, svg: str) -> None:
        self.found = found
        """All results, with the names of the command's `--format json`."""
        self._svg = svg

    @property
    def load(self) -> float | None:
        """The highest sustained load, in requests per second at each entry point; None if no load is sustained."""
        load: float | None = self.found["load"]
        return load

    @property
    def between(self) -> tuple[float | None, float | None]:
        """The highest load that is certainly sustained, and the lowest load that certainly is not."""
        return self.found["load_least"], self.found["load_most"]

    @property
    def points(self) -> Table:
        """The loads that were tried, one per row."""
        return _points(self.found["points"], self.found["slos"])

    @property
    def bottleneck(self) -> str | None:
        """The service with the highest utilisation at the highest load that is sustained."""
        tried = [point for point in self.found["points"] if point["load"] == self.load]
        used: dict[str, float] = tried[0]["utilisations"] if tried else {}
        return max(used, key=lambda name: used[name]) if used else None

    def svg(self) -> str:
        """The picture of response times by load, as the command draws it."""
        return self._svg

    def __repr__(self) -> str:
        limit = duration_text(self.found["limit_seconds"])
        if self.load is None:
            return f"Capacity({self.found['arch']}: does not bear the first load with a p99 of at most {limit})"
        more = "at least " if self.found["beyond"] else ""
        return f"Capacity({self.found['arch']}: {more}{self.load:.1f} requests/s with a p99 of at most {limit})"

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(repr(self)[9:-1])}</b></p>{self._svg}"


class Instances:
    """The number of instances of a service that a load needs."""

    def __init__(self, found: Summary) -> None:
        self.found = found
        """All results, with the names of the command's `--format json`."""

    @property
    def instances(self) -> int | None:
        """The smallest sufficient number; None if no number that was tried is sufficient."""
        count: int | None = self.found["instances"]
        return count

    @property
    def points(self) -> Table:
        """The numbers that were tried, one per row."""
        return _points(self.found["points"], self.found["slos"])

    def __repr__(self) -> str:
        limit = duration_text(self.found["limit_seconds"])
        return f"Instances({self.instances} of {self.found['service']} for a p99 of at most {limit})"


def _points(points: list[dict[str, Any]], slos: list[str]) -> Table:
    """Returns a row for each load or number that was tried, with columns for objectives and utilisations."""
    services = sorted({name for point in points for name in point["utilisations"]})
    keys = [key for key in points[0] if key not in ("utilisations", "objectives")] if points else ["load"]
    rows: dict[str, list[Any]] = {key: [point[key] for point in points] for key in keys}
    for place, slo in enumerate(slos):
        rows[slo] = [point["objectives"][place] for point in points]
    for name in services:
        rows[f"utilisation_{name}"] = [point["utilisations"].get(name) for point in points]
    return Table(rows)


class Comparison:
    """The comparison of two architectures with the same seeds. A notebook displays it as a picture."""

    def __init__(self, rows: list[dict[str, Any]], svg: str, seeds: int) -> None:
        self.rows = rows
        """A row for each quantity, with the names of the command's `--format json`."""
        self.seeds = seeds
        """The number of seeds with which both were run."""
        self._svg = svg

    @property
    def table(self) -> Table:
        """The rows as a table."""
        return Table({key: [row[key] for row in self.rows] for key in self.rows[0]})

    def __getitem__(self, name: str) -> dict[str, Any]:
        """Returns the row of a quantity: requests, throughput, errors, mean_seconds, p50_seconds and so on."""
        for row in self.rows:
            if row["name"] == name:
                return row
        raise KeyError(f"there is no quantity '{name}'; expected one of {', '.join(row['name'] for row in self.rows)}")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def svg(self) -> str:
        """The picture of the differences in per cent, as the command draws it."""
        return self._svg

    def __repr__(self) -> str:
        lines = [f"Comparison of {self.seeds} seeds, * where b differs from a"]
        for row in self.rows:
            within = row["difference_within"] or 0.0
            mark = " *" if row["is_clear"] else ""
            lines.append(f"  {row['name']:<12} a {row['a']:.6g}, b {row['b']:.6g}, b - a {row['difference']:.3g} ± {within:.3g}{mark}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = []
        for row in self.rows:
            within = row["difference_within"] or 0.0
            mark = " *" if row["is_clear"] else ""
            rows.append([row["name"], f"{row['a']:.6g}", f"{row['b']:.6g}", f"{row['difference']:.3g} ± {within:.3g}{mark}"])
        return html_table(["", "a", "b", "b - a"], rows) + self._svg


class Learned:
    """The result of learning from traces: an architecture, and its similarity to the recording."""

    def __init__(self, architecture: Architecture, found: Summary) -> None:
        self.architecture = architecture
        """The learned architecture."""
        self.found = found
        """All other results, with the names of the command's `--format json`."""

    @property
    def numbers(self) -> Table:
        """The numbers of the architecture with their 95 % intervals; empty without resampled recordings."""
        keys = ["name", "value", "least", "most"]
        return Table({key: [row[key] for row in self.found["numbers"]] for key in keys})

    @property
    def remarks(self) -> list[str]:
        """Sentences about facts that the traces do not contain."""
        remarks: list[str] = self.found["remarks"]
        return remarks

    @property
    def requests(self) -> Table:
        """The recorded and simulated quantiles of each kind of request."""
        keys = ["entry", "kind", "recorded", "simulated", "distance"]
        values = ["part", "recorded_seconds", "simulated_seconds", "least_seconds", "most_seconds"]
        rows: dict[str, list[Any]] = {key: [] for key in [*keys, *values]}
        for kind in self.found["requests"]:
            for quantile in kind["quantiles"]:
                for key in keys:
                    rows[key].append(kind[key])
                for key in values:
                    rows[key].append(quantile[key])
        return Table(rows)

    def __repr__(self) -> str:
        services = len(self.architecture.services) - len(self.architecture.load)
        return f"Learned({services} services from {self.found['spans']} spans of {self.found['traces']} traces)"

    def _repr_html_(self) -> str:
        rows = []
        for row in self.requests:
            recorded, simulated = row["recorded_seconds"], row["simulated_seconds"]
            name = f"{row['entry']} {row['kind']}"
            rows.append([name, f"p{row['part'] * 100:g}", duration_text(recorded), duration_text(simulated)])
        notes = "".join(f"<li>{html.escape(remark)}</li>" for remark in self.remarks)
        table = html_table(["request", "", "recorded", "simulated"], rows)
        return f"<p><b>{html.escape(repr(self)[8:-1])}</b></p>{table}<ul>{notes}</ul>"
