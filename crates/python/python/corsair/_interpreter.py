"""Refuses sub-interpreters, as the native part does by itself from Python 3.12 on."""

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
