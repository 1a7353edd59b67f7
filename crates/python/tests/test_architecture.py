"""Architectures: reading, changing, checking, writing."""

import json
import pathlib
import pickle
import subprocess
import sys

import corsair
import pytest
from corsair import Architecture, ArchitectureError

HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize("name", Architecture.built_ins())
def test_every_built_in_is_the_same_after_it_was_read_and_written(name):
    arch = Architecture.built_in(name)
    again = Architecture.from_json(arch.to_json())
    assert again == arch
    assert again.to_json() == arch.to_json()


def test_the_classes_are_those_of_the_schema():
    done = subprocess.run([sys.executable, HERE.parent / "generate.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_fields_are_plain_and_can_be_changed(mm1):
    arch = Architecture.from_json(mm1)
    arch["station"].concurrency = 3
    arch["station"].service_time = corsair.lognormal("2ms", 0.5)
    arch.load["www"].rate = [corsair.RatePoint(at="0s", rate=5), corsair.RatePoint(at="1s", rate=50, ramp=True)]
    arch["station"].faults.append(corsair.Fault(kind="slow", at="1s", for_="2s", factor=3))
    written = json.loads(arch.to_json())
    station = written["services"][0]
    assert station["concurrency"] == 3
    assert station["service_time"] == {"lognormal": {"median": "2ms", "sigma": 0.5}}
    assert station["faults"] == [{"kind": "slow", "at": "1s", "for": "2s", "factor": 3.0}]
    assert written["load"]["www"]["rate"][1] == {"at": "1s", "rate": 50.0, "ramp": True}


def test_an_empty_list_of_steps_is_no_missing_one():
    step = corsair.Step(call="db", fallback=[])
    assert step.to_dict() == {"call": "db", "fallback": []}
    assert corsair.Step.from_dict(step.to_dict()) == step


def test_notes_of_other_tools_are_kept(mm1):
    text = mm1.replace('"arch"', '"x-owner": "me", "arch"', 1)
    arch = Architecture.from_json(text)
    assert arch.extra == {"x-owner": "me"}
    arch["station"].extra["x-since"] = 2019
    written = json.loads(arch.to_json())
    assert written["x-owner"] == "me" and written["services"][0]["x-since"] == 2019


def refused(text):
    with pytest.raises(ArchitectureError) as caught:
        Architecture.from_json(text) if isinstance(text, str) else text.check()
    return caught.value


def test_a_name_that_is_wrong_is_reported_with_its_path_and_the_nearest(mm1):
    arch = Architecture.from_json(mm1)
    arch["www"].dependencies = ["staton"]
    error = refused(arch)
    assert error.path == "services.www.dependencies.0"
    assert error.nearest == "station"
    assert "did you mean station?" in str(error)


def test_a_value_of_another_type_is_reported_with_its_path(mm1):
    arch = Architecture.from_json(mm1)
    arch["station"].count = "many"
    error = refused(arch)
    assert error.path == "services.station.count", str(error)
    arch = Architecture.from_json(mm1)
    arch["station"].queue = corsair.Queue(order="lief")  # type: ignore[arg-type]
    error = refused(arch)
    assert error.path == "services.station.queue.order" and error.nearest == "lifo", str(error)


def test_lines_are_those_of_the_text_that_was_read(mm1):
    error = refused(mm1.replace('"package": "store"', '"package": "stor"'))
    assert (error.line, error.nearest, error.path) == (2, "store", "services.station.package")
    error = refused(mm1.replace('"concurrency"', '"concurency"'))
    assert (error.line, error.nearest) == (2, "concurrency")
    assert error.path == "services.station.concurency"


def test_a_field_that_does_not_exist_is_refused_when_it_is_set(mm1):
    arch = Architecture.from_json(mm1)
    with pytest.raises(AttributeError, match="did you mean count?"):
        arch["station"].conut = 3
    with pytest.raises(TypeError):
        corsair.Service(name="a", package="store", conut=3)
    with pytest.raises(KeyError, match="did you mean station?"):
        arch["staton"]


@pytest.mark.parametrize(
    "source, error",
    [
        ("{", ArchitectureError),
        ("", ValueError),
        ("no such", ValueError),
        ("none.json", (ArchitectureError, FileNotFoundError)),
        (b"\xff{", UnicodeDecodeError),
        (7, TypeError),
        (None, TypeError),
        ('{"arch": 3}', ArchitectureError),
        ('{"services": []}', ArchitectureError),
        ('{"arch": "a", "services": {}}', ArchitectureError),
        ("[" * 100_000, ValueError),
        ('{"arch": ' * 100_000, ArchitectureError),
    ],
)
def test_what_is_no_architecture_is_refused(source, error):
    with pytest.raises(error):
        Architecture.from_json(source)


def test_names_that_are_no_built_ins_are_reported_with_the_nearest():
    with pytest.raises(ArchitectureError, match="did you mean netflixoss?") as caught:
        Architecture.built_in("netflixos")
    assert caught.value.nearest == "netflixoss"
    with pytest.raises(ArchitectureError) as caught:
        corsair.run("netflixos", duration=1)
    assert caught.value.nearest == "netflixoss" and "corsair -a" not in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, b"x", 1 << 80, -(1 << 70)])
def test_values_that_no_definition_can_have_are_refused(mm1, value):
    arch = Architecture.from_json(mm1)
    arch["station"].error_rate = value
    with pytest.raises(ArchitectureError):
        arch.check()


def test_architectures_are_pickled_and_copied(mm1):
    arch = Architecture.from_json(mm1)
    arch["station"].count = 2
    again = pickle.loads(pickle.dumps(arch))
    assert again == arch and again is not arch
    other = arch.copy()
    other["station"].count = 5
    assert arch["station"].count == 2


def test_files_are_written_and_read(tmp_path, mm1, command):
    arch = Architecture.from_json(mm1)
    arch.save(tmp_path / "mine.json")
    assert Architecture.from_json(tmp_path / "mine.json") == arch
    assert "queue" in command("-a", str(tmp_path / "mine.json"), "-d", "1")


def test_an_architecture_shows_itself_in_a_notebook(mm1):
    arch = Architecture.from_json(mm1)
    arch.description = "a <b>queue</b>"
    html = arch._repr_html_()
    assert "station" in html and "a <b>queue" not in html
    assert arch._ipython_key_completions_() == ["station", "www"]
