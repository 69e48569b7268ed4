from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from olr_pg.applier.statements import images
from olr_pg.applier.statements.images import (
    bytea_array,
    column_array,
    composite_array,
    copy_buffer,
    row_masks,
    values_size_kernel,
)
from olr_pg.applier.statements.net_change import Cells
from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.connection import Binary, connect
from olr_pg.kernels.compile import interpreted

rows_of = st.lists(
    st.tuples(st.integers(-(2**31), 2**31 - 1), st.none() | st.text(max_size=40)), max_size=6
).map(lambda rows: [(a, None if b is None else b.replace("\0", "")) for a, b in rows])


def _cells(rows: list[tuple[int, str | None]]) -> Cells:
    data, offset, length = b"", [], []
    for number, text in rows:
        encoded = None if text is None else text.encode("utf-8", "replace")
        parts = [number.to_bytes(4, "big", signed=True), encoded]
        offset.append([len(data), len(data) + 4])
        length.append([4, -1 if encoded is None else len(encoded)])
        data += b"".join(part for part in parts if part is not None)
    shape = (len(rows), 2)
    return Cells(
        np.frombuffer(data + b"\0", np.uint8),
        np.array(offset, np.int64).reshape(shape),
        np.array(length, np.int64).reshape(shape),
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(rows_of)
def test_postgresql_reads_what_was_written(
    postgres_database: str, rows: list[tuple[int, str | None]]
) -> None:
    with connect(postgres_database) as connection:
        connection.execute("DROP TABLE IF EXISTS i; CREATE TABLE i (a int, b text)")
        table = read_table(connection, "public", "i")
        assert table is not None
        types = np.array([column.type_oid for column in table.columns])
        cells, everything = _cells(rows), np.arange(len(rows))
        expected = [(a, b if b is None else b.encode("utf-8", "replace").decode()) for a, b in rows]
        composites = Binary(composite_array(cells, everything, table.row_type_oid, types))
        query = "SELECT a, b FROM unnest(%b::i[])"
        assert connection.execute(query, (composites,)).fetchall() == expected
        array = Binary(column_array(cells, everything, 0, 23))
        result = connection.execute("SELECT %b::int[]", (array,)).fetchone()
        assert result == ([a for a, _ in rows],)
        with connection.cursor().copy("COPY i FROM STDIN (FORMAT BINARY)") as copy:
            copy.write(copy_buffer(cells, everything, np.array([0, 1])))
        assert connection.execute("SELECT a, b FROM i").fetchall() == expected


def test_interpreted_kernels_give_the_same(monkeypatch: Any) -> None:
    cells = _cells([(1, "x" * 50), (-7, None), (0, "")])
    chosen, types = np.array([2, 0]), np.array([23, 25])

    def made() -> tuple[bytes, ...]:
        return (
            bytes(composite_array(cells, chosen, 99, types)),
            bytes(column_array(cells, chosen, 1, 25)),
            bytes(copy_buffer(cells, chosen, np.array([1]))),
        )

    compiled = made()
    monkeypatch.setattr(images, "rows_kernel", interpreted(images.rows_kernel))
    assert made() == compiled


def test_connection_refuses_what_is_no_server() -> None:
    try:
        connect("host=127.0.0.1 port=1")
    except psycopg.OperationalError as error:
        reason = str(error)
    assert "refused" in reason


def test_the_bytes_of_arrays_and_of_a_copy() -> None:
    """As PostgreSQL's `array_recv`, `record_recv` and COPY read them; big-endian throughout."""
    absent = -2
    length = np.array([[2, absent, 0], [-1, 3, 300]])
    offset = np.array([[0, 0, 0], [0, 2, 5]])
    cells = Cells(np.frombuffer(b"abcde" + b"x" * 300, np.uint8), offset, length)
    rows, null, size = np.array([1, 0]), b"\xff" * 4, (300).to_bytes(4)
    long = size + b"x" * 300
    oids = [0x81000017, 0x19, 0x11]
    fields = [oid.to_bytes(4) for oid in oids]
    first = fields[0] + null + fields[1] + b"\0\0\0\3cde" + fields[2] + long
    second = fields[0] + b"\0\0\0\2ab" + fields[1] + null + fields[2] + bytes(4)
    parts = [len(part) + 4 for part in (first, second)]
    header = b"\0\0\0\1" * 2 + (0x81000063).to_bytes(4) + b"\0\0\0\2\0\0\0\1"
    expected = b"".join(
        part_size.to_bytes(4) + b"\0\0\0\3" + part
        for part_size, part in zip(parts, (first, second), strict=True)
    )
    assert bytes(composite_array(cells, rows, 0x81000063, np.array(oids))) == header + expected
    assert bytes(column_array(cells, rows, 1, 0x81000063)) == header + b"\0\0\0\3cde" + null
    tuples = b"\0\2" + long + null + b"\0\2" + bytes(4) + b"\0\0\0\2ab"
    copied = bytes(copy_buffer(cells, rows, np.array([2, 0])))
    assert copied == b"PGCOPY\n\xff\r\n\0" + bytes(8) + tuples + b"\xff\xff"
    assert values_size_kernel(length, rows, np.array([0, 2])) == 302


def test_the_columns_that_a_row_has(postgres_database: str) -> None:
    """NULL is had, and what is not there at all (−2) is not; the bits are as `get_bit` has them."""
    length = np.full((3, 70), -2)
    length[1, [5, 9]] = -1, 0
    length[2, :] = 7
    cells = Cells(np.zeros(1, np.uint8), np.zeros_like(length), length)
    masks, counts, nulls = row_masks(cells, np.array([2, 1, 0]), np.array([9, 6, 5]))
    assert np.flatnonzero(counts).tolist() == [5, 6, 9]
    assert np.flatnonzero(nulls).tolist() == [5]
    assert counts[[5, 6, 9]].tolist() == [2, 1, 2]
    query = (
        "SELECT array_agg(n ORDER BY n) FILTER (WHERE get_bit(m, n) = 1)"
        " FROM unnest(%b::bytea[]) WITH ORDINALITY AS s (m, row), generate_series(0, 69) AS n"
        " GROUP BY row ORDER BY row"
    )
    with connect(postgres_database) as connection:
        found = connection.execute(query, (Binary(bytea_array(masks)),)).fetchall()
        assert found == [([5, 6, 9],), ([5, 9],), (None,)]
        masks, *_ = row_masks(cells, np.array([2]), np.arange(70))
        found = connection.execute(query, (Binary(bytea_array(masks)),)).fetchall()
    assert found == [(list(range(70)),)]
