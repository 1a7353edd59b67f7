"""Stores of distinct items, which are taken in order, by priority, or by a filter."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import _corsair
from ..._corsair import FilterStoreGet, StoreGet, StorePut
from .base import BaseResource

__all__ = ["FilterStore", "FilterStoreGet", "PriorityItem", "PriorityStore", "Store", "StoreGet", "StorePut"]


class PriorityItem(NamedTuple):
    """An item with a priority. Items are ordered only by priority."""

    priority: Any
    item: Any

    def __lt__(self, other: PriorityItem) -> bool:  # type: ignore[override]
        return bool(self.priority < other.priority)


class Store(_corsair.Store, BaseResource):
    """A store of items, which leave in the order of their arrival."""


class PriorityStore(_corsair.PriorityStore, Store):
    """A store of ordered items. The smallest item leaves first. `PriorityItem` gives any object a priority."""


class FilterStore(_corsair.FilterStore, Store):
    """A store of items. `get(filter)` takes the first item that the filter accepts."""
