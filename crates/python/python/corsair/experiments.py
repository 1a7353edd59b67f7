"""Runs, sweeps, comparisons and searches: the commands of corsair as functions, with the same names and numbers."""

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
"""The values of a field: a list, or text as the command takes it, such as "1,2,4", "1..8" or "10..100..10"."""

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

    duration    how long the load lasts, in virtual seconds
    workers     one for each core if left out, and fewer where there are few instances
    load        what comes in, instead of what the definition says: "poisson 300/s", as for --load
    seed        where all random numbers come from
    population  how many per cent of the definition's instances there are
    regions     into how many regions it goes
    warm_up     the first part of the load that is not counted
    interval    how long the slices of the timeline are; a hundredth of the duration if left out, 0: no timeline
    latency     how long messages travel, wherever they go
    chat        entry points without a load of their own make a request once in so long
    poll        how often instances ask their registry
    graph       keep who called whom
    flows       keep every request and answer between two instances
    out         a directory for the graph and the flows as files, as the command writes them
    flow_format what the file of flows is
    checkpoint_every  period of checkpoints on the wall clock; `resume` continues from one
    checkpoint_at     points of virtual time at which the run is saved
    checkpoint_dir    directory of the checkpoints
    progress    show a bar: by default where there is somebody to see it; or a function of how much is done, 0 to 1
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
    until           stop at this point of virtual time, and return what has happened so far
    seed_from_here  draw the random numbers of another seed from here on: a branch, which has a directory of its own
                    beside the checkpoint for its own checkpoints and files
    set             values of fields of the definition from here on, as for `sweep`, and "load" as a percentage of the
                    load, "150%": a branch, which saves no checkpoints
    checkpoint_…    when and where the run is saved from here on; as before if left out
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
    """Runs from the beginning or from a checkpoint, and saves the run on the way."""
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
    """What the native module takes by name, for a run of either kind."""
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
    """The same of what is recorded beside the totals."""
    return {
        "graph": graph,
        "flows": flows,
        "out": None if out is None else os.path.abspath(out),
        "flow_format": flow_format,
    }


def result_of(ran: _corsair.RunResults) -> Result:
    """What a native run has left, as a result."""
    graph = Graph(ran.graph) if ran.graph is not None else None
    return Result(
        json.loads(ran.summary), ran.entries, ran.timeline, ran.flows, graph, ran.files, ran.remarks, ran.svg()
    )


class Sweep:
    """The runs over a grid of fields of a definition, by number.

    It can be pickled, so that other processes and machines make its runs: `sweep.measure(number)` is a row.
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
        """How many runs there are."""
        return len(self._native)

    @property
    def fields(self) -> list[str]:
        """The fields that are set."""
        return self._native.fields

    def run(self, number: int) -> tuple[dict[str, Any], int]:
        """The fields and the seed of a run."""
        values, seed = self._native.run(number)
        return dict(zip(self.fields, map(json.loads, values))), seed

    def measure(self, number: int) -> dict[str, Any]:
        """Makes one run, on this thread, and returns its row."""
        return self._row(number, self._native.measure(number))

    def measure_all(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        workers: int | None = None,
        progress: Progress = None,
    ) -> Table:
        """Makes all runs that the file `out` does not have, on `workers` threads, and returns a row for each."""
        with shown(progress, "sweep") as call:
            arguments = {"seed": 0, "workers": workers, "progress": call}
            made = self._native.measure_all(None if out is None else Path(out), arguments)
        return self.table(self._row(number, measured) for number, measured in enumerate(made))

    def table(self, rows: Iterable[Mapping[str, Any]]) -> Table:
        """The table of rows that were made anywhere, in their order."""
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
    """The value of a field as JSON; the error names the field."""
    try:
        return json.dumps(value.to_dict() if hasattr(value, "to_dict") else value, allow_nan=False, default=_number)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{path}: {value!r} is nothing that a field can have: {error}") from None


def _number(value: Any) -> Any:
    """A number of another library."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is neither number nor text")


def _one_kind(values: list[Any]) -> None:
    """Makes text of values of which some are no numbers."""
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
    """Runs a grid of fields of a definition; a row for each run, as `corsair sweep` writes them.

    >>> sweep("lamp", {"services.webserver.count": [3, 6, 9]}, duration=2)["p99_seconds"]  # doctest: +SKIP

    A field's path goes through keys and, in lists, through the name of an entry or its number from 0. With `out`, a
    file that ends in .csv or .jsonl, the runs that it contains already are not repeated; the command can continue the same file.
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
    """Runs two architectures from the same seeds, in which the same requests come in at the same times.

    The second is the first again if left out, with the fields of `set` and the load `load_b`.
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
    """Finds the highest load that keeps the 99th percentile within `limit` and failures within the share `errors`.

    With `find="instances:web"`, how many instances of a service are needed for a load, at most `most`.

    Loads from `from_load` to `to_load` requests a second at each entry point are tried, for at least `duration` virtual
    seconds each, until the answer is as narrow as the share `precision`.
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
        raise ValueError(f"find: '{find}' cannot be looked for; write it as instances:web")
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
    seed: int = 0,
    progress: Progress = None,
) -> Learned:
    """Learns an architecture from files of traces: OTLP/JSON, Zipkin's JSON of both versions, or Jaeger's JSON.

    Then it runs what it has learned for as long, and compares its response times with the recorded ones.
    """
    files = [traces] if isinstance(traces, (str, os.PathLike)) else list(traces)
    if not files:
        raise ValueError("there are no files of traces; give at least one")
    with shown(progress, "learn") as call:
        arguments = {"seed": seed, "workers": None, "progress": call}
        text, found = _corsair.learn([Path(file) for file in files], name, arguments)
    return Learned(Architecture.from_json(text), json.loads(found))
