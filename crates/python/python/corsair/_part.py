"""The base class of the parts of a definition."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import sys
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ._corsair import ArchitectureError, nearest_name

T = TypeVar("T", bound="Part")


class Part:
    """A part of a definition: a plain object with the fields of the JSON."""

    __slots__ = ()

    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {}
    _required: ClassVar[frozenset[str]] = frozenset()

    # Type checkers know the fields from the class, and reject other fields.
    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            if not name.startswith("_") and name not in self._parts and name != "extra":
                near = nearest_name(name, [*self._parts])
                meant = f"did you mean {near}?" if near else f"expected one of {', '.join(self._parts)}"
                raise AttributeError(f"{type(self).__name__} has no field '{name}'; {meant}")
            object.__setattr__(self, name, value)

    def copy(self: T) -> T:
        """Returns an independent copy."""
        return copy.deepcopy(self)

    def to_dict(self) -> dict[str, Any]:
        """Returns the part as JSON values. Fields without a value are left out."""
        return self._to_dict("")

    def _to_dict(self, path: str) -> dict[str, Any]:
        written: dict[str, Any] = {}
        optional = {field.name for field in dataclasses.fields(self) if field.default is None}  # type: ignore[arg-type]
        for attribute, (key, _) in self._parts.items():
            value = getattr(self, attribute)
            if value is None or (key not in self._required and attribute not in optional and _is_empty(value)):
                continue
            written[key] = _written(value, f"{path}.{key}" if path else key)
        written.update(getattr(self, "extra", {}))
        return written

    @classmethod
    def from_dict(cls: type[T], read: dict[str, Any]) -> T:
        """Creates the part from JSON values."""
        keys = {key: (attribute, how) for attribute, (key, how) in cls._parts.items()}
        fields: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for key, value in read.items():
            if key in keys:
                attribute, how = keys[key]
                fields[attribute] = _read(how, value)
            else:
                extra[key] = value
        if extra:
            if not any(field.name == "extra" for field in dataclasses.fields(cls)):  # type: ignore[arg-type]
                raise ArchitectureError(f"{cls.__name__} has no {', '.join(extra)}")
            fields["extra"] = extra
        return cls(**fields)


def _is_empty(value: Any) -> bool:
    """Returns True if a value is the default of its field."""
    if isinstance(value, Part):
        return not value.to_dict()
    return value is False or (isinstance(value, (str, list, dict)) and not value)


def _written(value: Any, path: str) -> Any:
    if isinstance(value, Part):
        return value._to_dict(path)
    if isinstance(value, (list, tuple)):
        return [_written(item, f"{path}.{number}") for number, item in enumerate(value)]
    if isinstance(value, dict):
        return {str(key): _written(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, datetime.timedelta):
        nanos = (value.days * 86_400 + value.seconds) * 1_000_000_000 + value.microseconds * 1_000
        return f"{nanos}ns"
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    # Numbers of other libraries are converted.
    for convert in ("item", "__index__", "__float__"):
        if hasattr(value, convert) and not isinstance(value, type):
            return _written(getattr(value, convert)(), path)
    error = ArchitectureError(f"{path}: {type(value).__name__} is nothing that a definition can have")
    error.path = path
    raise error


def _read(how: str | None, value: Any) -> Any:
    if how is None or value is None:
        return copy.deepcopy(value)
    if how == "rate":
        return _read("list part RatePoint", value) if isinstance(value, list) else copy.deepcopy(value)
    what, _, rest = how.partition(" ")
    if what == "list":
        return [_read(rest, item) for item in value]
    if what == "map":
        return {key: _read(rest, item) for key, item in value.items()}
    part: type[Part] = getattr(sys.modules["corsair.definition"], rest)
    return part.from_dict(value)
