"""The query that reads the rows of a table.

Ranges of ROWIDs: every ROWID of a segment is in one, and in one only.
"""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.dictionary.model import Column, Table
from olr_pg.oracle.table_query import (
    BLOCKS_PER_RANGE,
    Extent,
    RowidRange,
    query_fields,
    query_schema,
    quoted,
    ranges_by_extents,
    ranges_by_sample,
    rows_statement,
    segments_of,
)
from olr_pg.scalars import format_rowid, parse_rowid

ID = Column("ID", 1, 1, 1, 2, 22, precision=9, scale=0)
FREE = Column("FREE", 2, 2, 2, 2, 22)
WHEN = Column("WHEN", 3, 3, 3, 12, 7)
BODY = Column("BODY", 4, 4, 4, 112, 4000, charset_id=873, charset_form=1)
GONE = Column("GONE", 5, 5, 5, 2, 22, hidden=True)
PLAIN = Table("S", "T", 1, 1, (ID, FREE, WHEN, GONE))


def test_a_type_without_an_exact_form_comes_as_text() -> None:
    kinds = {field.name: field.kind for field in query_fields(PLAIN)}
    assert kinds == {"ID": pa.decimal128(9, 0), "FREE": pa.string(), "WHEN": pa.string()}


def test_rows_that_are_read_one_by_one_have_their_numbers_as_text() -> None:
    fields = query_fields(Table("S", "T", 1, 1, (ID, BODY)))
    assert [(field.kind, field.is_lob) for field in fields] == [
        (pa.string(), False),
        (pa.large_string(), True),
    ]


def test_rowids_come_first_unless_there_are_none() -> None:
    assert query_schema(PLAIN).names == ["ROWID", "ID", "FREE", "WHEN"]
    by_index = Table("S", "T", 1, 1, (ID,), index_organised=True)
    assert query_schema(by_index).names == ["ID"]


def test_the_statement_reads_one_part_as_of_the_scn() -> None:
    part = RowidRange("AAA", "BBB")
    statement, binds = rows_statement(PLAIN, 55, part, "19.0.0")
    assert 'FROM "S"."T" AS OF SCN :scn WHERE ROWID BETWEEN' in statement
    assert statement.count(" AS C") == 4
    assert binds == {"scn": 55, "first": "AAA", "last": "BBB"}
    whole, binds = rows_statement(PLAIN, 55, None, "19.0.0")
    assert "WHERE" not in whole
    assert binds == {"scn": 55}


def test_names_keep_their_case() -> None:
    assert quoted("Mixed $") == '"Mixed $"'


TABLE = Table("S", "T", 10, 10, ())
PARTED = Table("S", "P", 20, None, (), partitions=(21, 22, 23), segments=(21, 0, 33))


def check_cover(table: Table, ranges: list[RowidRange]) -> None:
    for segment in segments_of(table):
        own = [one for one in ranges if parse_rowid(one.first)[0] == segment]
        assert own[0].first == format_rowid(segment, 0, 0)
        assert own[-1].last == format_rowid(segment, (1 << 32) - 1, (1 << 16) - 1)
        for one, following in pairwise(own):
            assert parse_rowid(following.first)[1:] == (parse_rowid(one.last)[1] + 1, 0)
    assert {parse_rowid(one.first)[0] for one in ranges} == set(segments_of(table))


def test_partitions_without_a_segment_have_no_rows() -> None:
    assert segments_of(TABLE) == (10,)
    assert segments_of(PARTED) == (21, 33)


sizes = st.integers(1, 3 * BLOCKS_PER_RANGE)


@given(st.lists(st.tuples(st.integers(0, 1 << 20), sizes), max_size=9))
def test_extents_are_cut_into_ranges_of_their_size(extents: list[tuple[int, int]]) -> None:
    found, at = list[Extent](), 0
    for gap, blocks in extents:
        at += gap
        found.append(Extent(10, at, blocks))
        at += blocks
    (ranges,) = ranges_by_extents([TABLE], found)
    check_cover(TABLE, ranges)
    total = sum(blocks for _, blocks in extents)
    assert len(ranges) == total // BLOCKS_PER_RANGE + 1


@given(st.lists(st.tuples(st.sampled_from((21, 33)), st.integers(0, 1 << 30)), max_size=30))
def test_a_sample_divides_every_segment(rows: list[tuple[int, int]]) -> None:
    rowids = [format_rowid(segment, dba, 0) for segment, dba in rows]
    check_cover(PARTED, ranges_by_sample(PARTED, rowids))


def test_many_rows_of_a_sample_make_many_ranges() -> None:
    rowids = [format_rowid(10, dba, 0) for dba in range(3_500)]
    ranges = ranges_by_sample(TABLE, rowids)
    assert [parse_rowid(one.first)[1] for one in ranges] == [0, 1_000, 2_000, 3_000]
