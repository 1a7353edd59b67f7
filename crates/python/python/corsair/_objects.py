"""Pickles the objects of actors in a checkpoint: in one pickle, so that shared objects stay shared after a restore."""

from __future__ import annotations

import io
import pickle
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

from ._corsair import Context

_CONTEXT = "context"
"""The placeholder in the pickle for the context of the simulation."""

_TRIES = 2_000
"""The maximum number of objects that are pickled separately to find the one that cannot be pickled."""

ActorRecord = tuple[int, str, tuple[Any, Any, list[Any]]]
"""An actor: its address, its name, its object, its method `on`, and the messages of its timers."""


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, context: Context) -> None:
        super().__init__(file, protocol=5)
        self._context = context

    def persistent_id(self, obj: Any) -> str | None:
        """Replaces the context of the simulation by a placeholder, because it is not saved."""
        return _CONTEXT if obj is self._context else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, context: Context) -> None:
        super().__init__(file)
        self._context = context

    def persistent_load(self, pid: Any) -> Context:
        """Returns the context of the restored simulation for the placeholder."""
        return self._context


def dump(context: Context, actors: list[ActorRecord], mail: list[Any]) -> bytes:
    """Pickles the objects of actors and their messages.

    Raises PicklingError with the actor, the class and the field that cannot be saved.
    """
    for _, name, (actor, on, _) in actors:
        _check(name, actor, on)
    objects = [(actor, timers) for _, _, (actor, _, timers) in actors]
    try:
        return _pickled((objects, mail), context)
    except Exception as error:
        for _, name, (actor, _, timers) in actors:
            _refuse(f"{_called(name)} cannot be saved", actor, context)
            for message in timers:
                _refuse(f"a timer of {_called(name)} cannot be saved", message, context)
        for message in mail:
            _refuse("a message on its way cannot be saved", message, context)
        raise pickle.PicklingError(f"the actors cannot be saved together: {error}") from error


def load(context: Context, pickled: bytes) -> tuple[list[tuple[Any, list[Any]]], list[Any]]:
    """Restores the result of `dump`. Runs code that the pickle names."""
    try:
        objects, mail = _Unpickler(io.BytesIO(pickled), context).load()
    except (AttributeError, ImportError) as error:
        raise pickle.UnpicklingError(
            f"a class of the saved actors is not where it was: {error}; "
            "restore in a program that has the classes in the same modules"
        ) from error
    except Exception as error:
        raise pickle.UnpicklingError(f"the saved actors cannot be restored: {type(error).__name__}: {error}") from error
    return objects, mail


def _called(name: str) -> str:
    """Names an actor in a sentence: 'actor 7' if it has no name."""
    return name if name.startswith("actor ") else f"actor '{name}'"


def _pickled(value: Any, context: Context) -> bytes:
    file = io.BytesIO()
    _Pickler(file, context).dump(value)
    return file.getvalue()


def _check(name: str, actor: Any, on: Any) -> None:
    """Returns an error for an actor whose state a pickle would silently omit."""
    if isinstance(actor, (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)):
        raise pickle.PicklingError(
            f"{_called(name)} cannot be saved: it is the {type(actor).__name__} {actor.__name__} itself, of which pickle "
            "keeps the name alone; spawn an instance of a class"
        )
    if getattr(actor, "on", None) != on:
        raise pickle.PicklingError(
            f"{_called(name)} cannot be saved: {type(actor).__qualname__}.on is not the method with which it was spawned; "
            "decide within `on` what a message does"
        )


def _failure(value: Any, context: Context) -> Exception | None:
    try:
        _pickled(value, context)
    except Exception as error:
        return error
    return None


def _refuse(what: str, value: Any, context: Context) -> None:
    """Raises an error that names the object within a value that cannot be pickled, if there is one."""
    failure = _failure(value, context)
    if failure is None:
        return
    path, culprit, failure = _culprit(value, failure, context)
    kind, advice = _advice(culprit)
    raise pickle.PicklingError(f"{what}: {type(value).__qualname__}{path} is {kind}; {advice}") from failure


def _culprit(value: Any, failure: Exception, context: Context) -> tuple[str, Any, Exception]:
    """Returns the innermost object that fails although all of its parts can be pickled, its path, and its error."""
    seen = {id(value)}
    # The objects are kept alive, so that no other object gets the identity of one that was visited.
    kept: list[Any] = []
    waiting: deque[tuple[str, Any, Exception]] = deque([("", value, failure)])
    while waiting:
        path, found, failed = waiting.popleft()
        is_whole = True
        for step, part in _parts(found):
            if part is found or len(kept) >= _TRIES:
                continue
            error = _failure(part, context)
            is_whole &= error is None
            if error is not None and id(part) not in seen:
                seen.add(id(part))
                waiting.append((path + step, part, error))
            kept.append(part)
        if is_whole:
            return path, found, failed
    return "", value, failure


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Returns the objects to which a pickle of the value refers, each with the step that leads to it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"[{key!r}]", item
        for key in value:
            yield f" key {key!r}", key
    elif isinstance(value, (list, tuple)):
        for place, item in enumerate(value):
            yield f"[{place}]", item
    elif isinstance(value, (set, frozenset)):
        for item in value:
            yield " element", item
    elif not isinstance(value, (type, types.FunctionType)):
        yield from _reduced(value)


def _reduced(value: Any) -> Iterator[tuple[str, Any]]:
    try:
        reduced = value.__reduce_ex__(5)
    except Exception:
        return
    if not isinstance(reduced, tuple):
        return
    _, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    for argument in arguments or ():
        yield "", argument
    for part in state if isinstance(state, tuple) else (state,):
        if isinstance(part, dict):
            for name, field in part.items():
                yield f".{name}", field
        elif part is not None:
            yield "", part
    for place, item in enumerate(items or ()):
        yield f"[{place}]", item
    for key, item in pairs or ():
        yield f"[{key!r}]", item


def _advice(culprit: Any) -> tuple[str, str]:
    """Describes an object that cannot be pickled, and what to do instead."""
    if isinstance(culprit, (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)):
        return f"an open {type(culprit).__name__}", "keep in fields what it has to remember"
    if isinstance(culprit, types.FunctionType):
        name = culprit.__name__
        return ("a lambda" if name == "<lambda>" else f"the local function {name}"), "use a function of a module, or a method"
    if isinstance(culprit, type):
        return f"of the local class {culprit.__name__}", "define the class at the top of a module"
    if isinstance(culprit, io.IOBase):
        return "an open file", "leave it out in __getstate__, and open it again in __setstate__"
    return (
        f"a {type(culprit).__qualname__}, which pickle refuses",
        "leave it out in __getstate__, and make it again in __setstate__",
    )
