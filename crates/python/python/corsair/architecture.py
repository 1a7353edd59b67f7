"""Architectures: what is simulated, as plain objects."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Union

from . import _corsair
from ._html import html_table
from ._part import Part
from .definition import Definition, Distribution, Service

Source = Union["Architecture", str, "os.PathLike[str]"]
"""An architecture, or the name of one: a built-in's, a file's that ends in .json, or NAME of json_arch/NAME_arch.json."""


@dataclass(slots=True)
class Architecture(Definition):
    """An architecture: its services, and what each depends on.

    >>> shop = Architecture.built_in("lamp")
    >>> shop["webserver"].count = 12
    >>> shop.check()

    Fields are those of the JSON; `corsair.Service` and its like are the parts. A field that does not exist is refused
    when it is set, and what makes no sense when it is run, or by `check`: `corsair.ArchitectureError` says where.
    """

    _source: tuple[str, str, dict[str, Any]] | None = field(default=None, repr=False, compare=False, kw_only=True)

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = Definition._parts

    @classmethod
    def from_json(cls, source: str | bytes | os.PathLike[str]) -> Architecture:
        """An architecture from a text of JSON, or from a file that has it.

        Raises ArchitectureError for what makes no sense, with line, path and the nearest right name.
        """
        if isinstance(source, bytes):
            source = source.decode()
        if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("{"):
            return cls._of(source, "the text")
        return cls._of(*_corsair.find(_json_path(source), Path(".")))

    @classmethod
    def built_in(cls, name: str) -> Architecture:
        """A built-in architecture; `Architecture.built_ins()` lists them."""
        return cls._of(*_corsair.built_in_text(name))

    @staticmethod
    def built_ins() -> list[str]:
        """The names of the built-in architectures."""
        return _corsair.built_ins()

    @classmethod
    def find(cls, name: str, directory: str | os.PathLike[str] = "json_arch") -> Architecture:
        """The architecture of this name, as the command finds it: DIRECTORY/NAME_arch.json, or a built-in."""
        return cls._of(*_corsair.find(name, Path(directory)))

    @classmethod
    def of(cls, source: Source) -> Architecture:
        """The architecture itself, or the one of this name or file."""
        if isinstance(source, Architecture):
            return source
        if isinstance(source, Definition):
            return cls.from_dict(source.to_dict())
        if isinstance(source, str) and not source.endswith(".json"):
            return cls.find(source)
        return cls.from_json(source)

    @classmethod
    def _of(cls, text: str, file: str) -> Architecture:
        _corsair.check(text, file)
        read = json.loads(text.removeprefix("\ufeff"))
        made = cls.from_dict(read)
        made._source = (text, file, made.to_dict())
        return made

    def __getitem__(self, name: str) -> Service:
        """The service of this name."""
        for service in self.services:
            if service.name == name:
                return service
        names = [service.name for service in self.services]
        near = _corsair.nearest_name(name, names)
        meant = f"did you mean {near}?" if near else f"there are {', '.join(names)}"
        raise KeyError(f"there is no service '{name}'; {meant}")

    def _ipython_key_completions_(self) -> list[str]:
        return [service.name for service in self.services]

    def check(self) -> None:
        """Raises ArchitectureError if it makes no sense: what, where, and the nearest right name."""
        _corsair.check(*self._text())

    def to_json(self) -> str:
        """The definition as a file has it, a line for each service. It is checked."""
        self.check()
        written = self.to_dict()
        services = [json.dumps(service, ensure_ascii=False) for service in written["services"]]
        head = json.dumps({**written, "services": []}, indent=2, ensure_ascii=False)
        lines = ",\n".join(f"    {service}" for service in services)
        return head.replace('"services": []', f'"services": [\n{lines}\n  ]') + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file, which the command takes as well. It is checked."""
        text = self.to_json()
        Path(path).write_text(text, encoding="utf-8")

    def _text(self) -> tuple[str, str]:
        """The text of the definition, and what errors call it: as it was read, unless it was changed since."""
        written = self.to_dict()
        if self._source is not None and self._source[2] == written:
            return self._source[0], self._source[1]
        try:
            text = json.dumps(written, indent=1, ensure_ascii=False, allow_nan=False)
        except ValueError as error:
            raise _corsair.ArchitectureError(f"the architecture has a number that is none: {error}") from None
        # Paths to files are relative to where the definition was read.
        directory = os.path.dirname(self._source[1]) if self._source is not None else ""
        return text, os.path.join(directory, "the architecture")

    def _repr_html_(self) -> str:
        rows = []
        for service in self.services:
            rows.append([service.name, service.package, str(service.count), ", ".join(service.dependencies or [])])
        title = html.escape(f"{self.arch}: {self.description}" if self.description else self.arch)
        return f"<p><b>{title}</b></p>{html_table(['service', 'package', 'count', 'calls'], rows)}"


def _json_path(source: Any) -> str:
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"an architecture is read from a text or a path, not from {type(source).__name__}")
    path = os.fspath(source)
    if not isinstance(path, str) or not path.endswith(".json"):
        raise ValueError(f"'{path}' is neither JSON nor a path that ends in .json; Architecture.built_in takes names")
    return path


def exponential(mean: str) -> Distribution:
    """Memoryless times with this mean, such as "2ms"."""
    return {"exponential": mean}


def uniform(low: str, high: str) -> Distribution:
    """Anything from one time to another, all alike."""
    return {"uniform": [low, high]}


def lognormal(median: str, sigma: float) -> Distribution:
    """Times whose logarithm is normally distributed, with this standard deviation."""
    return {"lognormal": {"median": median, "sigma": sigma}}


def normal(mean: str, deviation: str) -> Distribution:
    """Normally distributed times; what would be below zero is zero."""
    return {"normal": {"mean": mean, "deviation": deviation}}


def pareto(least: str, shape: float) -> Distribution:
    """Times from the least one on, with a tail that falls as a power."""
    return {"pareto": {"least": least, "shape": shape}}


def weibull(scale: str, shape: float) -> Distribution:
    """Weibull's distribution: a shape above 1 for what wears out, below 1 for what settles in."""
    return {"weibull": {"scale": scale, "shape": shape}}


def gamma(scale: str, shape: float) -> Distribution:
    """The gamma distribution, whose mean is scale times shape; with a whole shape, Erlang's."""
    return {"gamma": {"scale": scale, "shape": shape}}


def empirical(times: Iterable[str]) -> Distribution:
    """Each of these times as often as any other."""
    return {"empirical": list(times)}


def percentiles(points: Mapping[float | str, str]) -> Distribution:
    """A curve through measured percentiles, such as {50: "2ms", 99: "20ms"}."""
    return {"percentiles": {f"{part:g}" if not isinstance(part, str) else part: time for part, time in points.items()}}


__all__ = [
    "Architecture",
    "Source",
    "Part",
    "empirical",
    "exponential",
    "gamma",
    "lognormal",
    "normal",
    "pareto",
    "percentiles",
    "uniform",
    "weibull",
]
