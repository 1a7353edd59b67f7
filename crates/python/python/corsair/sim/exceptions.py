"""Exceptions of processes."""

from __future__ import annotations

from typing import Any

__all__ = ["Interrupt", "SimPyException"]


class SimPyException(Exception):
    """The base of the exceptions of this package, with SimPy's name."""


class Interrupt(SimPyException):
    """Raised in a process that another process has interrupted, with the given cause."""

    def __init__(self, cause: Any = None) -> None:
        super().__init__(cause)

    def __str__(self) -> str:
        return f"{self.__class__.__name__}({self.cause!r})"

    @property
    def cause(self) -> Any:
        """The cause; None if none was given."""
        return self.args[0]
