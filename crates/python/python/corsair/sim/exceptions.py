"""Exceptions of processes."""

from __future__ import annotations

from typing import Any

__all__ = ["Interrupt", "SimPyException"]


class SimPyException(Exception):
    """Base of the exceptions of this package; the name is SimPy's."""


class Interrupt(SimPyException):
    """Raised in a process that another has interrupted, with the cause that was given."""

    def __init__(self, cause: Any = None) -> None:
        super().__init__(cause)

    def __str__(self) -> str:
        return f"{self.__class__.__name__}({self.cause!r})"

    @property
    def cause(self) -> Any:
        """The cause; None if none was given."""
        return self.args[0]
