"""Architectures as plain objects."""

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
"""An architecture, or its name: a built-in name, a path that ends in .json, or NAME for json_arch/NAME_arch.json."""


@dataclass(slots=True)
class Architecture(Definition):
    """An architecture: its services, and their dependencies.

    >>> shop = Architecture.built_in("lamp")
    >>> shop["webserver"].count = 12
    >>> shop.check()

    The fields are those of the JSON; the parts are classes such as `corsair.Service`. An unknown field is refused when it
    is set. An invalid value is refused by `check` and when the architecture is run, with a `corsair.ArchitectureError`
    that names its position.
    """

    _source: tuple[str, str, dict[str, Any]] | None = field(default=None, repr=False, compare=False, kw_only=True)

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = Definition._parts

    @classmethod
    def from_json(cls, source: str | bytes | os.PathLike[str]) -> Architecture:
        """Reads an architecture from JSON text, or from a JSON file.

        Raises ArchitectureError if it is invalid. The error has the line, the path and the nearest valid name.
        """
        if isinstance(source, bytes):
            source = source.decode()
        if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("{"):
            return cls._of(source, "the text")
        return cls._of(*_corsair.find(_json_path(source), Path(".")))

    @classmethod
    def built_in(cls, name: str) -> Architecture:
        """Returns a built-in architecture. `Architecture.built_ins()` lists their names."""
        return cls._of(*_corsair.built_in_text(name))

    @staticmethod
    def built_ins() -> list[str]:
        """Returns the names of the built-in architectures."""
        return _corsair.built_ins()

    @classmethod
    def find(cls, name: str, directory: str | os.PathLike[str] = "json_arch") -> Architecture:
        """Finds an architecture by name, like the command: DIRECTORY/NAME_arch.json, or a built-in architecture."""
        return cls._of(*_corsair.find(name, Path(directory)))

    @classmethod
    def of(cls, source: Source) -> Architecture:
        """Returns the given architecture, or the architecture with this name or in this file."""
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
        """Returns the service with this name."""
        for service in self.services:
            if service.name == name:
                return service
        names = [service.name for service in self.services]
        near = _corsair.nearest_name(name, names)
        meant = f"did you mean {near}?" if near else f"expected one of {', '.join(names)}"
        raise KeyError(f"there is no service '{name}'; {meant}")

    def _ipython_key_completions_(self) -> list[str]:
        return [service.name for service in self.services]

    def check(self) -> None:
        """Raises ArchitectureError if the architecture is invalid, with the position and the nearest valid name."""
        _corsair.check(*self._text())

    def to_json(self) -> str:
        """Returns the definition as in a file, with one line for each service. The definition is checked."""
        self.check()
        written = self.to_dict()
        services = [json.dumps(service, ensure_ascii=False) for service in written["services"]]
        head = json.dumps({**written, "services": []}, indent=2, ensure_ascii=False)
        lines = ",\n".join(f"    {service}" for service in services)
        return head.replace('"services": []', f'"services": [\n{lines}\n  ]') + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the definition to a file, which the command line can read. The definition is checked."""
        text = self.to_json()
        Path(path).write_text(text, encoding="utf-8")

    def _text(self) -> tuple[str, str]:
        """Returns the text of the definition (the original text if it is unchanged), and its name in errors."""
        written = self.to_dict()
        if self._source is not None and self._source[2] == written:
            return self._source[0], self._source[1]
        try:
            text = json.dumps(written, indent=1, ensure_ascii=False, allow_nan=False)
        except ValueError as error:
            raise _corsair.ArchitectureError(f"the architecture has a number that is none: {error}") from None
        # Paths in a definition are relative to the directory of its file.
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
    """Exponentially distributed (memoryless) times with this mean, for example "2ms"."""
    return {"exponential": mean}


def uniform(low: str, high: str) -> Distribution:
    """Times between two limits, uniformly distributed."""
    return {"uniform": [low, high]}


def lognormal(median: str, sigma: float) -> Distribution:
    """Times whose logarithm is normally distributed, with this standard deviation."""
    return {"lognormal": {"median": median, "sigma": sigma}}


def normal(mean: str, deviation: str) -> Distribution:
    """Normally distributed times; negative values become zero."""
    return {"normal": {"mean": mean, "deviation": deviation}}


def pareto(least: str, shape: float) -> Distribution:
    """Pareto distributed times: at least `least`, with a tail that falls as a power."""
    return {"pareto": {"least": least, "shape": shape}}


def weibull(scale: str, shape: float) -> Distribution:
    """Weibull distributed times: a shape above 1 for wear-out, below 1 for early failures."""
    return {"weibull": {"scale": scale, "shape": shape}}


def gamma(scale: str, shape: float) -> Distribution:
    """Gamma distributed times with the mean scale times shape. If the shape is a whole number, Erlang's distribution."""
    return {"gamma": {"scale": scale, "shape": shape}}


def empirical(times: Iterable[str]) -> Distribution:
    """A random choice among these times, with equal probability."""
    return {"empirical": list(times)}


def percentiles(points: Mapping[float | str, str]) -> Distribution:
    """A distribution through measured percentiles, for example {50: "2ms", 99: "20ms"}."""
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
