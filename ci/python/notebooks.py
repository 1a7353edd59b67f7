#!/usr/bin/env python3
"""Executes notebooks, and fails with the first cell that fails. What they print is not written back."""

import os
import pathlib
import sys
import time

import nbformat
from nbclient import NotebookClient

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ["CORSAIR_EXAMPLES"] = str(ROOT / "examples")
for name in sys.argv[1:]:
    began = time.monotonic()
    book = nbformat.read(name, as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells), f"{name}: clear the outputs before it is committed"
    NotebookClient(book, timeout=120, kernel_name="python3").execute()
    pictures = sum("<svg" in str(cell.get("outputs")) for cell in book.cells)
    assert pictures, f"{name} draws nothing"
    print(f"{name}: {len(book.cells)} cells, {pictures} of them with pictures, {time.monotonic() - began:.0f} s")
