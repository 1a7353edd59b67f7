"""Containers of a homogeneous quantity, such as water or fuel."""

from __future__ import annotations

from ... import _corsair
from ..._corsair import ContainerGet, ContainerPut
from .base import BaseResource

__all__ = ["Container", "ContainerAmount", "ContainerGet", "ContainerPut"]

ContainerAmount = int | float


class Container(_corsair.Container, BaseResource):
    """A container of an amount. `put(amount)` waits until the amount fits, and `get(amount)` until it is available.

    >>> from corsair import sim
    >>> env = sim.Environment()
    >>> tank = sim.Container(env, capacity=100, init=20)
    >>> request = tank.get(15)
    >>> env.run()
    >>> tank.level
    5
    """
