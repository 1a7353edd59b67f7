"""Checkpoints: runs that are saved while they run, and resumed."""

from __future__ import annotations

import datetime
import json
import math
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from . import _corsair

Time = Union[float, str, datetime.timedelta]
"""A span of time: a number of seconds, text with its unit such as "250ms", or a timedelta."""

Times = Union[Time, Iterable[Time]]
"""One time or several."""

@dataclass(frozen=True)
class Saving:
    """The times and the directory of checkpoints."""

    every: float | None
    """The interval of checkpoints on the wall clock, in seconds."""
    at: list[float]
    """The points of virtual time at which the run is saved, in order."""
    directory: Path

    @staticmethod
    def of(every: Time | None, at: Times | None, directory: str | os.PathLike[str]) -> Saving:
        """Reads the arguments `checkpoint_every`, `checkpoint_at` and `checkpoint_dir`."""
        seconds = None if every is None else _seconds("checkpoint_every", every)
        if seconds == 0:
            raise ValueError(
                "checkpoint_every: the period is zero; give 1 second or more"
            )
        times: Iterable[Any] = () if at is None else at  # type: ignore[assignment]
        if isinstance(times, (str, int, float, datetime.timedelta)):
            times = [times]
        return Saving(seconds, sorted(_seconds("checkpoint_at", one) for one in times), Path(directory))

    def __bool__(self) -> bool:
        """Returns True if any checkpoints are saved."""
        return self.every is not None or bool(self.at)

    def drive(
        self, live: _corsair.Live, about: str, until: float, progress: Callable[[float], object] | None
    ) -> None:
        """Runs to the end or to a time, and saves checkpoints."""
        stop = None if math.isinf(until) else until
        missed = live.drive(stop, (self.every, self.at, self.directory), about, progress)
        if missed:
            times = ", ".join(f"{at:g}" for at in missed)
            warnings.warn(
                f"checkpoint_at {times}: nothing was saved then, because the run ended at {live.now:g} s; "
                "give an earlier time, or a longer duration",
                stacklevel=4,
            )


def _seconds(name: str, given: Any) -> float:
    try:
        return _corsair.seconds(given)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


@dataclass
class RunDescription:
    """The description of a run in its checkpoints: its architecture and arguments, without its state."""

    text: str
    file: str
    arguments: dict[str, Any]
    saving: Saving | None = None

    def to_json(self) -> str:
        """The description as JSON."""
        file = self.file if self.file.startswith("built-in ") else os.path.abspath(self.file)
        written: dict[str, Any] = {"arch": self.text, "file": file}
        # The number of workers depends on the machine that resumes the run.
        written["arguments"] = {key: _plain(value) for key, value in self.arguments.items() if key != "workers"}
        if self.saving is not None:
            written |= {"every": self.saving.every, "at": self.saving.at}
        return json.dumps(written)

    @staticmethod
    def of(saved: _corsair.SavedCheckpoint, workers: int | None) -> RunDescription:
        """Reads the description of a checkpoint, to be resumed with this number of workers."""
        read = json.loads(saved.about)
        if "actors" in read:
            raise ValueError(f"{saved.below} has a simulation of actors; continue it by Simulation.restore")
        saving = Saving(read["every"], read["at"], Path(saved.below)) if "every" in read else None
        # Checkpoints of older versions have no recordings.
        recorded = {"graph": False, "flows": False, "out": None, "flow_format": "otlp"}
        return RunDescription(read["arch"], read["file"], {**recorded, **read["arguments"], "workers": workers}, saving)

    def move_to(self, directory: Path) -> None:
        """Moves the output of a branch to a separate directory, so that the files of the saved run are unchanged."""
        if self.arguments["out"] is not None:
            self.arguments["out"] = os.path.abspath(directory)


def _plain(value: Any) -> Any:
    """Converts a value to a JSON value."""
    return _corsair.seconds(value) if isinstance(value, datetime.timedelta) else value
