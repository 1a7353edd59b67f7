"""Runs, sweeps, comparisons and searches: the commands of corsair as functions, with the same names and results."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, overload

from . import _corsair
from ._corsair import Table
from ._progress import Progress, shown
from .architecture import Architecture, Source
from .result import Capacity, Comparison, Graph, Instances, Learned, Result
from .saving import RunDescription, Saving, Time, Times

Values = Union[str, Iterable[Any]]
"""The values of a field: a list, or text in the syntax of the command line, such as "1,2,4", "1..8" or "10..100..10"."""

FlowFormat = Literal["otlp", "zipkin1", "zipkin2"]


def run(
    arch: Source,
    duration: Time = 10.0,
    load: str | None = None,
    seed: int = 0,
    workers: int | None = None,
    *,
    population: int = 100,
    regions: int = 1,
    warm_up: Time = 0.0,
    interval: Time | None = None,
    latency: Time | None = None,
    chat: Time | None = None,
    poll: Time | None = None,
    graph: bool = False,
    flows: bool = False,
    out: str | os.PathLike[str] | None = None,
    flow_format: FlowFormat = "otlp",
    checkpoint_every: Time | None = None,
    checkpoint_at: Times | None = None,
    checkpoint_dir: str | os.PathLike[str] = "checkpoints",
    progress: Progress = None,
) -> Result:
    """Simulates an architecture in virtual time.

    The result is the same for any number of `workers`, which are threads. Other threads of Python run during the
    simulation, and Ctrl-C ends it.

    duration    the duration of the load in virtual seconds
    workers     the number of threads; by default one for each core, and fewer for few instances
    load        the load of entry points, which replaces the load of the definition: "poisson 300/s", as for --load
    seed        the seed of all random numbers
    population  the percentage of the definition's instances
    regions     the number of regions
    warm_up     the first part of the load, which is not counted
    interval    the length of the slices of the timeline; by default a hundredth of the duration; 0: no timeline
    latency     the latency of all messages, which replaces the latencies of the definition
    chat        the time between requests of entry points without a load in the definition
    poll        the interval at which instances poll their registry
    graph       True to record the graph of calls
    flows       True to record all requests and answers between two instances
    out         a directory for the graph and the flows, as files in the formats of the command
    flow_format the format of the file of flows
    checkpoint_every  the interval of checkpoints on the wall clock; `resume` continues from a checkpoint
    checkpoint_at     the points of virtual time at which the run is saved
    checkpoint_dir    the directory of the checkpoints
    progress    True to show a bar, or a function that is called with the progress from 0 to 1; by default a bar is shown on
                terminals and in notebooks
    """
    source = Architecture.of(arch)
    arguments = run_arguments(
        duration, load, seed, workers, population, regions, warm_up, interval, latency, chat, poll
    )
    arguments |= recorded_arguments(graph, flows, out, flow_format)
    saving = Saving.of(checkpoint_every, checkpoint_at, checkpoint_dir)
    if saving:
        return run_saved(RunDescription(*source._text(), arguments, saving), None, None, None, progress)
    with shown(progress, source.arch) as call:
        return result_of(_corsair.simulate(*source._text(), arguments | {"progress": call}))


def resume(
    directory: str | os.PathLike[str] = "checkpoints",
    workers: int | None = None,
    until: Time | None = None,
    seed_from_here: int | None = None,
    *,
    set: Mapping[str, Any] | None = None,
    checkpoint_every: Time | None = None,
    checkpoint_at: Times | None = None,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> Result:
    """Resumes a saved run. The result equals the result of an uninterrupted run.

    directory       the directory given as `checkpoint_dir`, or one of the checkpoints in it
    until           the virtual time at which the run stops; the result is then partial
    seed_from_here  the seed of later random numbers. This makes a branch, whose checkpoints and files are in a separate
                    directory beside the checkpoint
    set             new values of fields of the definition, as for `sweep`, and "load" as a percentage of the load, for
                    example "150%". This makes a branch, which saves no checkpoints
    checkpoint_…    the times and the directory of later checkpoints; by default as in the saved run
    """
    saved = _corsair.SavedCheckpoint(Path(directory))
    about = RunDescription.of(saved, workers)
    before = about.saving or Saving(None, [], Path(saved.below))
    fields = [(str(path), field_json(str(path), value)) for path, value in (set or {}).items()]
    if fields:
        if checkpoint_every is not None or checkpoint_at is not None:
            raise ValueError("set: a branch with other fields saves no checkpoints; leave out checkpoint_every and checkpoint_at")
        about.move_to(saved.branch_directory(seed_from_here, fields))
        about.saving = None
        return run_saved(about, saved, seed_from_here, until, progress, fields)
    if seed_from_here is not None:
        own = saved.branch_directory(seed_from_here, [])
        before = Saving(before.every, before.at, own)
        about.move_to(own)
    given = Saving.of(checkpoint_every, checkpoint_at, before.directory if checkpoint_dir is None else checkpoint_dir)
    about.saving = Saving(
        before.every if checkpoint_every is None else given.every,
        before.at if checkpoint_at is None else given.at,
        given.directory,
    )
    return run_saved(about, saved, seed_from_here, until, progress)


def run_saved(
    about: RunDescription,
    saved: _corsair.SavedCheckpoint | None,
    seed_from_here: int | None,
    until: Time | None,
    progress: Progress,
    fields: Sequence[tuple[str, str]] = (),
) -> Result:
    """Runs from the beginning or from a checkpoint, and saves checkpoints."""
    stop = math.inf if until is None else _corsair.seconds(until)
    if saved is not None and stop < saved.time:
        raise ValueError(f"until: the run was saved at {saved.time} s and does not go back; give a later time")
    live = _corsair.Live(about.text, about.file, about.arguments, saved, seed_from_here, list(fields))
    with shown(progress, "run") as call:
        if about.saving is not None:
            about.saving.drive(live, about.to_json(), stop, call)
        return result_of(live.finish(until is not None))


def run_arguments(
    duration: Time,
    load: str | None,
    seed: int,
    workers: int | None,
    population: int,
    regions: int,
    warm_up: Time,
    interval: Time | None,
    latency: Time | None,
    chat: Time | None,
    poll: Time | None,
) -> dict[str, Any]:
    """Returns the arguments of the native module, by name, for a new or a resumed run."""
    return {
        "duration": duration,
        "load": load,
        "seed": seed,
        "workers": workers,
        "population": population,
        "regions": regions,
        "warm_up": warm_up,
        "interval": interval,
        "latency": latency,
        "chat": chat,
        "poll": poll,
    }


def recorded_arguments(
    graph: bool, flows: bool, out: str | os.PathLike[str] | None, flow_format: FlowFormat
) -> dict[str, Any]:
    """Returns the arguments of the native module, by name, for recordings in addition to the totals."""
    return {
        "graph": graph,
        "flows": flows,
        "out": None if out is None else os.path.abspath(out),
        "flow_format": flow_format,
    }


def result_of(ran: _corsair.RunResults) -> Result:
    """Converts the result of a native run."""
    graph = Graph(ran.graph) if ran.graph is not None else None
    return Result(
        json.loads(ran.summary), ran.entries, ran.timeline, ran.flows, graph, ran.files, ran.remarks, ran.svg()
    )


class Sweep:
    """The runs over a grid of field values of a definition, by number.

    A sweep can be pickled, so that other processes and machines can make its runs: `sweep.measure(number)` returns a row.
    """

    def __init__(
        self,
        arch: Source,
        set: Mapping[str, Values],
        *,
        seeds: int = 1,
        duration: Time = 10.0,
        warm_up: Time | None = None,
        load: str | None = None,
        seed: int = 0,
        population: int = 100,
        regions: int = 1,
    ) -> None:
        text, file = Architecture.of(arch)._text()
        axes = [(str(path), *_values(str(path), values)) for path, values in set.items()]
        arguments: dict[str, Any] = {
            "seeds": seeds,
            "duration": duration,
            "warm_up": warm_up,
            "load": load,
            "seed": seed,
            "population": population,
            "regions": regions,
        }
        self._made_of = (text, file, axes, arguments)
        self._native = _corsair.Sweep(text, file, axes, arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return _sweep_again, self._made_of

    def __len__(self) -> int:
        """Returns the number of runs."""
        return len(self._native)

    @property
    def fields(self) -> list[str]:
        """The paths of the fields that are set."""
        return self._native.fields

    def run(self, number: int) -> tuple[dict[str, Any], int]:
        """Returns the fields and the seed of a run."""
        values, seed = self._native.run(number)
        return dict(zip(self.fields, map(json.loads, values))), seed

    def measure(self, number: int) -> dict[str, Any]:
        """Makes one run on this thread, and returns its row."""
        return self._row(number, self._native.measure(number))

    def measure_all(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        workers: int | None = None,
        progress: Progress = None,
    ) -> Table:
        """Makes all runs that are not in the file `out`, on `workers` threads. Returns a row for each run."""
        with shown(progress, "sweep") as call:
            arguments = {"seed": 0, "workers": workers, "progress": call}
            made = self._native.measure_all(None if out is None else Path(out), arguments)
        return self.table(self._row(number, measured) for number, measured in enumerate(made))

    def table(self, rows: Iterable[Mapping[str, Any]]) -> Table:
        """Combines rows, which may come from other processes, into a table, in their order."""
        names = ["definition", *self.fields, "seed", *_corsair.Sweep.names()]
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for row in rows:
            for name in names:
                value = row[name]
                columns[name].append(json.dumps(value) if isinstance(value, (dict, list)) else value)
        for values in columns.values():
            _one_kind(values)
        return Table(columns)

    def _row(self, number: int, measured: Sequence[float]) -> dict[str, Any]:
        fields, seed = self.run(number)
        row: dict[str, Any] = {"definition": self._native.mark, **fields, "seed": seed}
        row.update(zip(_corsair.Sweep.names(), measured))
        row["requests"] = int(row["requests"])
        return row

    def __iter__(self) -> Iterator[tuple[dict[str, Any], int]]:
        return (self.run(number) for number in range(len(self)))


def _sweep_again(text: str, file: str, axes: list[Any], arguments: dict[str, Any]) -> Sweep:
    again = Sweep.__new__(Sweep)
    again._made_of = (text, file, axes, arguments)
    again._native = _corsair.Sweep(text, file, axes, arguments)
    return again


def _values(path: str, values: Values) -> tuple[list[str] | None, str | None]:
    if isinstance(values, str):
        return None, values
    if isinstance(values, Mapping) or not isinstance(values, Iterable):
        raise TypeError(f"{path}: the values of a field are a list, or text as '1..8', not {type(values).__name__}")
    return [field_json(path, value) for value in values], None


def field_json(path: str, value: Any) -> str:
    """Converts the value of a field to JSON. The error names the field."""
    try:
        return json.dumps(value.to_dict() if hasattr(value, "to_dict") else value, allow_nan=False, default=_number)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{path}: {value!r} cannot be the value of a field: {error}") from None


def _number(value: Any) -> Any:
    """Converts a number of another library."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is neither number nor text")


def _one_kind(values: list[Any]) -> None:
    """Converts all values to text if some of them are not numbers."""
    kinds = {bool if isinstance(value, bool) else str if isinstance(value, str) else float for value in values if value is not None}
    if len(kinds) > 1:
        values[:] = [value if isinstance(value, str) else json.dumps(value) for value in values]


def sweep(
    arch: Source,
    set: Mapping[str, Values],
    *,
    out: str | os.PathLike[str] | None = None,
    seeds: int = 1,
    duration: Time = 10.0,
    warm_up: Time | None = None,
    load: str | None = None,
    seed: int = 0,
    workers: int | None = None,
    population: int = 100,
    regions: int = 1,
    progress: Progress = None,
) -> Table:
    """Runs a definition over a grid of field values. Returns a row for each run, as `corsair sweep` writes them.

    >>> sweep("lamp", {"services.webserver.count": [3, 6, 9]}, duration=2)["p99_seconds"]  # doctest: +SKIP

    The path of a field consists of keys and, for lists, of the name of an entry or its index from 0. With `out`, a file
    that ends in .csv or .jsonl, runs that are already in the file are not repeated. The command can continue the same file.
    """
    grid = Sweep(
        arch,
        set,
        seeds=seeds,
        duration=duration,
        warm_up=warm_up,
        load=load,
        seed=seed,
        population=population,
        regions=regions,
    )
    return grid.measure_all(out, workers=workers, progress=progress)


def compare(
    a: Source,
    b: Source | None = None,
    *,
    set: Mapping[str, Any] | None = None,
    load: str | None = None,
    load_b: str | None = None,
    seeds: int = 10,
    duration: Time = 10.0,
    warm_up: Time | None = None,
    seed: int = 0,
    workers: int | None = None,
    population: int = 100,
    regions: int = 1,
    progress: Progress = None,
) -> Comparison:
    """Runs two architectures with the same seeds, so that both receive the same requests at the same times.

    The second architecture is by default the first one with the fields of `set` and the load `load_b`.
    """
    if b is None and not set and load_b is None:
        raise ValueError("both are the same; give a second architecture, set or load_b")
    first = Architecture.of(a)
    second = first if b is None else Architecture.of(b)
    arguments = {
        "seed": seed,
        "workers": workers,
        "population": population,
        "regions": regions,
        "duration": duration,
        "warm_up": warm_up,
        "load": load,
        "seeds": seeds,
    }
    fields = [(str(path), field_json(str(path), value)) for path, value in (set or {}).items()]
    with shown(progress, "compare") as call:
        texts = (first._text(), second._text())
        rows, svg = _corsair.compare(texts, fields, load_b, arguments | {"progress": call})
    return Comparison(json.loads(rows), svg, seeds)


@overload
def capacity(
    arch: Source,
    *,
    find: None = None,
    limit: Time = "100ms",
    errors: float = 0.01,
    from_load: float = 10.0,
    to_load: float = 100_000.0,
    precision: float = 0.02,
    load: str | None = None,
    duration: Time = 5.0,
    most: int = 1000,
    seed: int = 0,
    workers: int | None = None,
    population: int = 100,
    regions: int = 1,
    progress: Progress = None,
) -> Capacity: ...


@overload
def capacity(
    arch: Source,
    *,
    find: str,
    limit: Time = "100ms",
    errors: float = 0.01,
    from_load: float = 10.0,
    to_load: float = 100_000.0,
    precision: float = 0.02,
    load: str | None = None,
    duration: Time = 5.0,
    most: int = 1000,
    seed: int = 0,
    workers: int | None = None,
    population: int = 100,
    regions: int = 1,
    progress: Progress = None,
) -> Instances: ...


def capacity(
    arch: Source,
    *,
    find: str | None = None,
    limit: Time = "100ms",
    errors: float = 0.01,
    from_load: float = 10.0,
    to_load: float = 100_000.0,
    precision: float = 0.02,
    load: str | None = None,
    duration: Time = 5.0,
    most: int = 1000,
    seed: int = 0,
    workers: int | None = None,
    population: int = 100,
    regions: int = 1,
    progress: Progress = None,
) -> Capacity | Instances:
    """Finds the highest load at which the 99th percentile is at most `limit` and the share of failures at most `errors`.

    With `find="instances:web"`, finds the number of instances of a service that a load needs, up to `most`.

    The search tries loads from `from_load` to `to_load` requests per second at each entry point, each for at least
    `duration` virtual seconds, until the relative precision of the answer is `precision`.
    """
    source = Architecture.of(arch)
    arguments: dict[str, Any] = {
        "limit": limit,
        "errors": errors,
        "from_load": from_load,
        "to_load": to_load,
        "precision": precision,
        "load": load,
        "latency": None,
        "duration": duration,
        "most": most,
        "seed": seed,
        "workers": workers,
        "population": population,
        "regions": regions,
    }
    what, _, service = (find or "").partition(":")
    if find is not None and (what != "instances" or not service):
        raise ValueError(f"find: '{find}' is not a search; write for example instances:web")
    with shown(progress, "capacity") as call:
        arguments["progress"] = call
        if find is not None:
            return Instances(json.loads(_corsair.instances(*source._text(), source.arch, service, arguments)))
        found, svg = _corsair.capacity(*source._text(), source.arch, arguments)
        return Capacity(json.loads(found), svg)


def learn(
    traces: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    name: str = "learned",
    *,
    resamples: int | None = None,
    seed: int = 0,
    progress: Progress = None,
) -> Learned:
    """Learns an architecture from files of traces: OTLP/JSON, Zipkin's JSON of both versions, or Jaeger's JSON.

    Then it runs the learned architecture for as long as the recording, and compares the response times.

    The intervals of `numbers` are estimated from `resamples` resampled recordings, up to 1000; with 0 there are none.
    The default is 20, or 0 for more than 200,000 spans.
    """
    files = [traces] if isinstance(traces, (str, os.PathLike)) else list(traces)
    if not files:
        raise ValueError("there are no files of traces; give at least one")
    with shown(progress, "learn") as call:
        arguments = {"resamples": resamples, "seed": seed, "workers": None, "progress": call}
        text, found = _corsair.learn([Path(file) for file in files], name, arguments)
    return Learned(Architecture.from_json(text), json.loads(found))
