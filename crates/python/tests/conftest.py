"""Fixtures of several tests."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]

# A queue with one server and a known theory: 70 requests per second, 100 served.
MM1 = """{"arch": "queue", "services": [
  {"name": "station", "package": "store", "count": 1, "regions": 1, "service_time": {"exponential": "10ms"},
   "concurrency": 1},
  {"name": "www", "package": "denominator", "count": 0, "regions": 0, "dependencies": ["station"]}],
 "load": {"www": {"rate": 70, "arrivals": "poisson", "requests": {"common": 1}}}}"""


@pytest.fixture
def mm1() -> str:
    return MM1


@pytest.fixture(scope="session")
def command():
    """Returns the command `corsair`: the program that CORSAIR names, or else the built one."""
    program = os.environ.get("CORSAIR")
    if program is None:
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        program = str(target / "debug" / "corsair")
        if not os.path.exists(program):
            subprocess.run(["cargo", "build", "--quiet", "--bin", "corsair"], cwd=ROOT, check=True)

    def run(*arguments: str, cwd=None) -> str:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, cwd=cwd, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
