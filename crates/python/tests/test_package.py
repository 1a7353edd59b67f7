"""The package itself: version, help, and building from source."""

import dataclasses
import importlib.metadata
import os
import pathlib
import pydoc
import subprocess
import sys

import corsair
import pytest
from corsair import Table

ROOT = pathlib.Path(__file__).parent.parent


def test_the_package_knows_its_version():
    assert corsair.__version__ == importlib.metadata.version("corsair-sim")


@pytest.mark.parametrize("name", ["Service", "Endpoint", "CallPolicy", "Fault"])
def test_help_describes_each_field(name):
    part = getattr(corsair, name)
    text = pydoc.plain(pydoc.render_doc(part))
    for field in dataclasses.fields(part):
        if field.name != "extra":
            assert f"{field.name}: " in text.split("Fields:")[1], field.name


def test_a_table_draws_its_first_rows():
    html = Table({"name": ["<a>"] + ["b"] * 29, "time": [0.1234567] * 30})._repr_html_()
    assert "&lt;a&gt;" in html and "0.123457" in html and "and 10 more rows" in html
    assert html.count("<tr>") == 21


def test_percentiles_have_one_name_each():
    result = corsair.run("lamp", duration=1, load="50/s")
    names = [name for name in result.percentiles().columns if name.startswith("p")]
    assert names == ["p50_seconds", "p90_seconds", "p99_seconds", "p999_seconds"]
    entry = next(iter(result.summary["entries"].values()))
    assert set(names) <= {*entry, *next(iter(entry.get("kinds", {"": entry}).values()))} or "p999_seconds" in str(entry)


def test_without_rust_a_build_says_what_to_do():
    code = "import build_backend; build_backend.get_requires_for_build_wheel()"
    pytest.importorskip("maturin")
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PATH": "/nowhere"}, capture_output=True, text=True
    )
    assert ran.returncode != 0
    assert ran.stderr.strip() == (
        "There is no wheel of corsair-sim for this platform, and no Rust to build one: "
        "install Rust from https://rustup.rs, and repeat the command."
    )


def test_scalars_of_numpy_are_times():
    numpy = pytest.importorskip("numpy")

    class Clock:
        def __init__(self):
            self.times = []

        def on(self, message, ctx):
            self.times.append(ctx.now)
            if len(self.times) < 4:
                ctx.after([numpy.float32(0.5), numpy.int64(2), numpy.float64(1)][len(self.times) - 1], message)

    simulation = corsair.Simulation(latency="1ns")
    clock = simulation.spawn(Clock())
    simulation.send(clock, "tick", at=numpy.int32(1))
    simulation.run_until(numpy.float32(10))
    assert simulation.actor(clock).times == [1.0, 1.5, 3.5, 4.5]
    for wrong in (numpy.bool_(True), numpy.array([1.0]), numpy.timedelta64(1, "s")):
        with pytest.raises(TypeError, match="a time is"):
            simulation.run_until(wrong)
