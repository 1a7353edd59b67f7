"""The base of all resources."""

from __future__ import annotations

from typing import Any, ClassVar

from ... import _corsair
from ..._corsair import Get, Put

__all__ = ["BaseResource", "Get", "Put"]


class BaseResource(_corsair.BaseResource):
    """The base of user-defined resources: subclasses with `_do_put(event)` and `_do_get(event)`.

    Each of the two methods triggers the event if it can be served, and returns True if the next event may be tried.
    """

    PutQueue: ClassVar[type[Any]] = list
    GetQueue: ClassVar[type[Any]] = list
