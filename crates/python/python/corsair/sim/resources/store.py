"""Distinct things, taken out in order, by priority, or by a filter."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import _corsair
from ..._corsair import FilterStoreGet, StoreGet, StorePut
from .base import BaseResource

__all__ = ["FilterStore", "FilterStoreGet", "PriorityItem", "PriorityStore", "Store", "StoreGet", "StorePut"]


class PriorityItem(NamedTuple):
    """An item with a priority, by which alone it is ordered."""

    priority: Any
    item: Any

    def __lt__(self, other: PriorityItem) -> bool:  # type: ignore[override]
        return bool(self.priority < other.priority)


class Store(_corsair.Store, BaseResource):
    """Holds items, which leave in the order in which they came."""


class PriorityStore(_corsair.PriorityStore, Store):
    """Holds items that can be ordered; the smallest leaves first. `PriorityItem` orders anything."""


class FilterStore(_corsair.FilterStore, Store):
    """Holds items, of which `get(filter)` takes the first that the filter accepts."""
