"""A progress bar in terminals and notebooks."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Union

Progress = Union[bool, Callable[[float], object], None]
"""True to show a bar, or a function of the progress from 0 to 1. None: a bar on terminals and in notebooks."""

# Runs shorter than this show no bar.
PATIENCE = 1.0
WIDTH = 40


class Bar:
    """A progress bar that appears after a second and disappears at the end."""

    def __init__(self, what: str, forced: bool) -> None:
        self._what = what
        self._began = time.monotonic()
        self._wait = 0.0 if forced else PATIENCE
        self._handle: Any = None
        self._shown = False
        self._notebook = in_notebook()

    def __call__(self, done: float) -> None:
        if time.monotonic() - self._began < self._wait:
            return
        self._shown = True
        if self._notebook:
            self._show(self._html(done))
        else:
            full = round(done * WIDTH)
            sys.stderr.write(f"\r{self._what} {'#' * full}{'.' * (WIDTH - full)} {done:4.0%}")
            sys.stderr.flush()

    def end(self) -> None:
        if not self._shown:
            return
        if self._notebook:
            self._show("")
        else:
            sys.stderr.write("\r" + " " * (len(self._what) + WIDTH + 7) + "\r")
            sys.stderr.flush()

    def _html(self, done: float) -> str:
        return f'{self._what} <progress value="{done:.3f}" max="1" style="width: 30em"></progress> {done:.0%}'

    def _show(self, text: str) -> None:
        # A notebook always has IPython.
        shown = importlib.import_module("IPython.display")
        if self._handle is None:
            self._handle = shown.display(shown.HTML(text), display_id=True)
        else:
            self._handle.update(shown.HTML(text))


def in_notebook() -> bool:
    """Returns True in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    if ipython is None:
        return False
    shell = ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


@contextlib.contextmanager
def shown(progress: Progress, what: str) -> Iterator[Callable[[float], object] | None]:
    """Returns the function that is called with the progress, if there is one. A bar disappears at the end."""
    if callable(progress):
        yield progress
        return
    if progress not in (True, False, None):
        raise TypeError(f"progress is True, False, None or a function, not {type(progress).__name__}")
    is_seen = in_notebook() or (sys.stderr is not None and sys.stderr.isatty())
    if progress is False or (progress is None and not is_seen):
        yield None
        return
    bar = Bar(what, forced=progress is True)
    try:
        yield bar
    finally:
        bar.end()
