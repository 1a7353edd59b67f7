#!/usr/bin/env python3
"""Runs the test programs of another project as hosts of a simulation, one test at a time, and compares with the real kernel.

    ci/host/suites.py CORSAIR_HOST EXCEPTIONS NAME PROGRAM...

NAME is the project's name. A test that passes here must pass there, unless EXCEPTIONS has a line `NAME PROGRAM::TEST: reason`.
Exit code 1 if another test fails, or if a listed test passes.
"""

import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

host, exceptions_file, project, *programs = sys.argv[1:]
LIMIT = 60  # seconds of the wall clock for a test

exceptions = {}
for line in Path(exceptions_file).read_text().splitlines():
    name, _, reason = line.partition(": ")
    if line.strip() and not line.startswith("#") and name.split(" ")[0] == project:
        exceptions[name.split(" ")[1]] = reason


def passes(command):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return False, f"no end after {LIMIT} s"
    return done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def judge(test):
    """Returns the test, and whether it passes on the real kernel and in a simulation, with the output of the latter."""
    program, name = test
    arguments = [program, "--exact", name, "--test-threads", "1"]
    real, _ = passes(arguments)
    if not real:
        return test, False, False, ""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "simulation.json"
        spec = {"until": "1h", "host": [{"name": "tests", "run": arguments, "env": {"RUST_BACKTRACE": "0"}}]}
        file.write_text(json.dumps(spec))
        simulated, text = passes([host, "run", str(file)])
        return test, True, simulated, text


tests = []
for program in programs:
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    tests += [(program, name) for name in re.findall(r"^(.+): test$", listed, re.M)]
passed, wrong, skipped, known = 0, [], 0, []
with ThreadPoolExecutor(2) as pool:
    for (program, name), real, simulated, text in pool.map(judge, tests):
        label = f"{re.sub('-[0-9a-f]+$', '', Path(program).name)}::{name}"
        if not real:
            skipped += 1
        elif simulated and label in exceptions:
            wrong.append(f"{label} passes; remove it from {exceptions_file}")
        elif simulated:
            passed += 1
        elif label in exceptions:
            known.append(label)
        else:
            wrong.append(f"{label} fails in a simulation:\n{text[-1500:]}")
for line in wrong:
    print(line)
total = passed + len(known) + len(wrong)
print(f"{project}: {passed} of {total} tests pass in a simulation; {len(known)} known exceptions; {skipped} are ignored or fail here as well")
sys.exit(1 if wrong or not passed else 0)
