"""Other libraries can use tables by Arrow's C data interface, without a copy."""

import gc

import corsair
import pytest

pyarrow = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def result():
    return corsair.run("lamp", duration=2, flows=True)


def address(table, column="queue"):
    """Returns the address of the values of a column in memory."""
    return pyarrow.table(table).column(column).chunk(0).buffers()[1].address


def test_pyarrow_takes_a_table_without_a_copy(result):
    table = result.timeline
    first = pyarrow.table(table)
    assert first.column_names == table.columns and first.num_rows == len(table)
    assert first.to_pydict()["p99_seconds"] == table["p99_seconds"]
    # Both refer to the memory of the table.
    assert address(first) == address(table)


def test_what_was_taken_outlives_the_result():
    table = pyarrow.table(corsair.run("lamp", duration=1).timeline)
    gc.collect()
    corsair.run("lamp", duration=1)
    assert sum(table.column("requests").to_pylist()) > 0


def test_a_table_is_an_array_of_structs_as_well(result):
    array = pyarrow.array(result.timeline)
    assert len(array) == len(result.timeline)
    assert pyarrow.schema(result.timeline).names == result.timeline.columns


def test_flows_are_the_same_everywhere(result):
    flows = result.flows
    assert pyarrow.table(flows).to_pydict() == flows.to_dict()


def test_polars_takes_a_table(result):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(result.timeline)
    assert frame["requests"].to_list() == result.timeline["requests"]
    assert frame["service"].cast(polars.String).to_list() == result.timeline["service"]
    # No copy: the frame uses the memory of the table, also after it is passed on.
    assert address(frame) == address(result.timeline)
    assert address(frame, "requests") == address(result.timeline, "requests")


def test_pandas_takes_a_table(result):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame.from_arrow(result.timeline)
    assert frame["service"].tolist() == result.timeline["service"]
    # Columns of Arrow types are used as they are; numpy columns are copied.
    taken = pyarrow.table(result.timeline).to_pandas(types_mapper=pandas.ArrowDtype)
    assert address(taken) == address(result.timeline)


def test_duckdb_takes_a_table(result):
    duckdb = pytest.importorskip("duckdb")
    timeline = result.timeline
    total = duckdb.sql("select sum(requests) from timeline").fetchall()[0][0]
    assert total == sum(timeline["requests"])
    # DuckDB reads the stream itself, so columns that the query does not use are not read.
    rows = duckdb.sql("select service, max(queue) from timeline group by service").fetchall()
    assert {service for service, _ in rows} == set(timeline["service"])


def test_a_stream_that_is_asked_for_and_not_read_is_let_go(result):
    for _ in range(1000):
        result.timeline.__arrow_c_stream__()
        result.timeline.__arrow_c_array__()
        result.timeline.__arrow_c_schema__()
