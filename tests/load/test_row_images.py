"""Rows as bytes, judged by PostgreSQL: COPY takes them, `record_send` and the hash are its own."""

from __future__ import annotations

import numpy as np
import psycopg
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes.columns import column_of
from olr_pg.load.canonical import fields_of
from olr_pg.load.row_images import RowImages, composites, hashes

INT4, TEXT = 23, 25
NUMBERS = [(5).to_bytes(4, "big"), None, (-1).to_bytes(4, "big", signed=True)]
TEXTS = [b"", "ż".encode(), None]


def test_images_and_hashes_are_those_of_postgres(postgres: str) -> None:
    columns = [column_of(NUMBERS), column_of(TEXTS)]
    images = composites(columns, 3, (INT4, TEXT))
    query = """
        SELECT record_send(r), hashtextextended(encode(record_send(r), 'hex') COLLATE "C", 0)
        FROM (VALUES (1, 5, ''), (2, NULL, 'ż'), (3, -1, NULL)) v (n, a, b),
            LATERAL (SELECT ROW(v.a::int4, v.b::text) AS r) x ORDER BY n
    """
    with psycopg.connect(postgres) as connection:
        found = connection.execute(query).fetchall()
    assert [images.image(row) for row in range(3)] == [bytes(row[0]) for row in found]
    assert hashes(images).tolist() == [row[1] for row in found]


@given(st.lists(st.tuples(st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=9))))
def test_what_is_put_in_comes_out(rows: list[tuple[bytes | None, bytes | None]]) -> None:
    columns = [column_of(row[place] for row in rows) for place in range(2)]
    images = composites(columns, len(rows), (INT4, TEXT))
    read = [fields_of(images.image(row), (None, None)) for row in range(len(rows))]  # type: ignore[arg-type]
    assert [tuple(field.value for field in fields) for fields in read] == rows


def test_every_length_of_an_image_has_its_hash(postgres: str) -> None:
    values = [bytes(range(7, 7 + size)) for size in range(40)]
    start = np.cumsum([0, *map(len, values)])
    images = RowImages(np.frombuffer(bytearray(b"".join(values)), np.uint8), start)
    with psycopg.connect(postgres) as connection:
        expected = [
            connection.execute(
                'SELECT hashtextextended(%s COLLATE "C", 0)', (images.image(row).hex(),)
            ).fetchone()
            for row in range(len(values))
        ]
    assert [(int(one),) for one in hashes(images)] == expected
