"""Branches of saved runs, in which other fields apply after the checkpoint."""

import corsair
import pytest


@pytest.fixture
def saved(tmp_path):
    directory = tmp_path / "checkpoints"
    whole = corsair.run("lamp", duration=4, load="poisson 200/s", seed=3, checkpoint_at=2, checkpoint_dir=directory)
    return directory, whole


def test_a_branch_with_more_load_has_more_requests_and_leaves_its_run_alone(saved):
    directory, whole = saved
    before = sorted(path.name for path in directory.rglob("*"))
    more = corsair.resume(directory, set={"load": "300%"})
    assert more.summary["requests"] > 1.5 * whole.summary["requests"]
    assert corsair.resume(directory).summary["requests"] == whole.summary["requests"]
    assert sorted(path.name for path in directory.rglob("*")) == before


def test_a_branch_sets_fields_of_the_definition(saved):
    directory, whole = saved
    slow = corsair.resume(directory, set={"services.rds-mysql.service_time": "40ms"})
    assert slow.percentile(0.99) > 2 * whole.percentile(0.99)


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"load": "200000%"}, "0% to 100000%"),
        ({"services.webserwer.count": 3}, "webserwer"),
        ({"services.webserver.conut": 3}, "conut"),
    ],
)
def test_a_field_that_cannot_be_set_is_named(saved, fields, said):
    with pytest.raises(ValueError, match=said):
        corsair.resume(saved[0], set=fields)


def test_a_branch_with_other_fields_is_not_saved(saved):
    with pytest.raises(ValueError, match="saves no checkpoints"):
        corsair.resume(saved[0], set={"load": "300%"}, checkpoint_at=3)


def test_fork_runs_every_branch_with_every_seed(saved):
    directory, whole = saved
    table = corsair.fork(directory, {"double": {"load": "200%"}}, seeds=3, workers=2)
    assert table["branch"] == ["as saved"] * 3 + ["double"] * 3
    assert table["seed"] == [3, 4, 5, 3, 4, 5]
    assert table["requests"][0] == whole.summary["requests"]
    assert min(table["requests"][3:]) > max(table["requests"][:3])
    assert table == corsair.fork(directory, {"double": {"load": "200%"}}, seeds=3, workers=1)
    with pytest.raises(ValueError, match="0 seeds"):
        corsair.fork(directory, {}, seeds=0)
