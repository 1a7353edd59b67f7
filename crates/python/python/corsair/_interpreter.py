"""Refuses sub-interpreters. From Python 3.12 on, the native part refuses them by itself."""

import importlib
import sys

if sys.version_info < (3, 12):
    try:
        interpreters = importlib.import_module("_xxsubinterpreters")
    except ImportError:
        pass
    else:
        if interpreters.get_current() != interpreters.get_main():
            raise ImportError("corsair cannot be imported into a sub-interpreter")
