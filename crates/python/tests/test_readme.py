"""The examples of the manual run."""

import pathlib
import re

import pytest

MANUAL = pathlib.Path(__file__).parent.parent / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", MANUAL.read_text(), flags=re.M | re.S)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_manual_runs(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "import polars" in example:
        pytest.importorskip("polars")
    exec(compile(example, str(MANUAL), "exec"), {})


def test_there_are_examples():
    assert len(EXAMPLES) >= 2
