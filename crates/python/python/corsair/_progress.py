"""A bar that shows how far a run has come, in terminals and notebooks."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Union

Progress = Union[bool, Callable[[float], object], None]
"""Whether to show a bar (None: where there is somebody to see it), or what is called with how much is done, 0 to 1."""

# Runs shorter than this show no bar.
PATIENCE = 1.0
WIDTH = 40


class Bar:
    """Shows itself after a second, and goes when it is over."""

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
        # It is there, or this were no notebook.
        shown = importlib.import_module("IPython.display")
        if self._handle is None:
            self._handle = shown.display(shown.HTML(text), display_id=True)
        else:
            self._handle.update(shown.HTML(text))


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    if ipython is None:
        return False
    shell = ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


@contextlib.contextmanager
def shown(progress: Progress, what: str) -> Iterator[Callable[[float], object] | None]:
    """What is called with how much is done, if anything is; a bar goes at the end."""
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
