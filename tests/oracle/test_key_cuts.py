"""Text that is read as bytes, because the server would convert it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import oracledb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.config.source_section import OracleSource
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.dictionary.true_charsets import RAW_MAX, with_true_charsets
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.key_cuts import WRITTEN_MAX, LargeRow, bound_pieces, joined_texts
from olr_pg.oracle.lob_fetch import LobFetcher, is_readable
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.oracle.table_query import query_fields, read_rows, rows_statement
from olr_pg.scalars import format_rowid
from olr_pg.simulator.oracle_net.row_versions import RowVersions
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import OracleState

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

SCN = 5_000
ASCII: dict[str, Any] = {"charset_id": 1, "charset_form": 1}
ROWID = format_rowid(81_001, 4 << 22 | 128, 0)
SIZES = (0, 1, 1_999, 2_000, 2_001, 4_000, 7_999, 8_000, 8_001, 127_999, 128_001, 300_000)


def table(*columns: Column, **more: Any) -> Table:
    own = (Column("ID", 1, 1, 1, 2, 22, precision=12, scale=0, nullable=False), *columns)
    return Table("APP", "T", 81_001, 81_001, own, key_kind=KeyKind.PRIMARY, key=(1,), **more)


NAME = Column("NAME", 2, 2, 2, 1, 4_000, **ASCII)
NOTE = Column("NOTE", 3, 3, 3, 112, 4_000, **ASCII)


class Stored:
    """A table of a US7ASCII database behind the stand-in, whose true set is configured."""

    def __init__(self, charset: str) -> None:
        declared = Snapshot(SCN, Database("D", charset="US7ASCII"), (table(NAME, NOTE),))
        (self.table,) = with_true_charsets(declared, [("*", charset)]).tables
        self.server = StandIn(OracleState(declared, dbid=1))
        self.rows = RowVersions(self.server.state.catalogue, declared.tables)
        self.source = OracleSource.model_validate(
            {"user": "olr", "password": "olr", "server": self.server.connect_string}
        )

    def put(self, number: int, name: bytes | None, note: bytes | None) -> None:
        rowid = format_rowid(81_001, 4 << 22 | 128, number)
        self.rows.put(self.table, SCN, rowid, (str(number), name, note))

    def read(self) -> list[tuple[Any, Any]]:
        """The bytes of both columns of each row; those of a large CLOB as a list of pieces."""
        with oracledb.connect(
            user="olr", password="olr", dsn=self.server.connect_string
        ) as connection:
            found = list[tuple[Any, Any]]()
            for one in read_rows(connection, self.table, SCN, None, 10):
                batch = one.batch if isinstance(one, LargeRow) else one
                names, notes = (batch.column(n).to_pylist() for n in ("NAME", "NOTE"))
                if isinstance(one, LargeRow):
                    notes = [[piece[0].as_py() for piece in one.large["NOTE"]()]]
                found += zip(names, notes, strict=True)
            return found

    def close(self) -> None:
        self.server.close()
        assert self.server.malformed == []


@pytest.fixture
def stored() -> Iterator[Stored]:
    made = Stored("ZHS16GBK")
    yield made
    made.close()


def test_values_of_every_length_are_read_as_they_are_stored(stored: Stored) -> None:
    values = [bytes(0x80 + at % 0x7F for at in range(size)) for size in SIZES]
    for number, value in enumerate(values):
        stored.put(number, value[:4_000] or None, value)
    stored.put(len(values), None, None)
    read = stored.read()
    whole: list[bytes | None] = [*values, None]
    for (name, note), one in zip(read, whole, strict=True):
        assert name == (one[:4_000] if one else None)
        assert (b"".join(note) if isinstance(note, list) else note) == one
    assert [len(note) > 1 for _, note in read if isinstance(note, list)] == [False] * 4


@pytest.mark.parametrize("codec", ["gbk", "utf-8", "big5", "gb18030", "cp932", "euc_kr"])
def test_a_piece_of_a_large_text_ends_between_two_characters(stored: Stored, codec: str) -> None:
    text = "一丁乙九了二人。,\n" * 30_000
    letters = "".join(one for one in text if one == "," or _has(one, codec))
    stored.put(1, b"x", letters.encode(codec))
    ((_, pieces),) = stored.read()
    assert len(pieces) > 1
    assert "".join(piece.decode(codec) for piece in pieces) == letters


def _has(character: str, codec: str) -> bool:
    try:
        character.encode(codec)
    except UnicodeEncodeError:
        return False
    return True


def test_the_server_spoils_text_that_is_not_read_as_bytes(stored: Stored) -> None:
    stored.put(1, b"caf\xe9", b"na\xefve")
    with oracledb.connect(
        user="olr", password="olr", dsn=stored.server.connect_string
    ) as connection:
        cursor = connection.cursor()
        cursor.execute('SELECT NAME, NOTE, UTL_RAW.CAST_TO_RAW(NAME) AS B FROM "APP"."T"')
        ((name, note, raw),) = cursor.fetchall()
        assert (name, note.read(), raw) == ("caf\ufffd", "na\ufffdve", b"caf\xe9")


def test_lob_values_are_fetched_as_they_are_stored() -> None:
    declared = Snapshot(SCN, Database("D", charset="US7ASCII"), (table(NAME, NOTE),))
    (found,) = with_true_charsets(declared, [("*", "ZHS16GBK")]).tables
    long_name, note = replace(found.columns[1], stored_as_lob=True), found.columns[2]
    large = "漢字" * 70_000
    with StandIn(OracleState(declared, dbid=1)) as server:
        server.state.catalogue.create_table(declared.tables[0])
        values = ("名".encode("gbk"), large.encode("gbk"), ROWID)
        server.state.catalogue.update('INSERT INTO "APP"."T" VALUES (1, ?, ?, ?)', *values)
        source = OracleSource.model_validate(
            {"user": "olr", "password": "olr", "server": server.connect_string}
        )
        oracle = OracleDatabase(source)
        fetcher = LobFetcher(lambda _table: oracle)
        for column, text in ((note, large), (long_name, "名")):
            fetched = fetcher.fetch(found, column, ROWID, 900, room)
            assert fetched is not None
            assert fetched.content is not None
            assert fetched.content.tobytes() == text.encode("gbk")
        assert any("TO_CLOB" in statement for statement, _ in server.heard)
        oracle.close()
        assert server.malformed == []


def room(size: int) -> npt.NDArray[np.uint8]:
    return np.empty(size, np.uint8)


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (Column("C", 2, 2, 2, 8, 0, **ASCII), "LONG"),
        (Column("C", 2, 2, 2, 112, 4_000, xml=True, **ASCII), "XMLTYPE"),
    ],
)
def test_what_cannot_be_read_as_bytes_is_refused_by_name(column: Column, what: str) -> None:
    declared = Snapshot(SCN, Database("D", charset="US7ASCII"), (table(column),))
    assert query_fields(declared.tables[0])
    (found,) = with_true_charsets(declared, [("*", "WE8MSWIN1252")]).tables
    with pytest.raises(OlrPgError) as caught:
        query_fields(found)
    assert caught.value.code == Code.TEXT_BYTES_UNREADABLE
    assert what in caught.value.detail
    assert caught.value.where == {"table": "APP.T", "column": "C"}
    assert is_readable(declared.tables[0].columns[1]) == (what == "XMLTYPE")
    assert not is_readable(found.columns[1])


def test_short_text_is_still_read_into_arrow_columns() -> None:
    declared = Snapshot(
        SCN, Database("D", charset="US7ASCII"), (table(replace(NAME, length=2_000)),)
    )
    (found,) = with_true_charsets(declared, [("*", "WE8MSWIN1252")]).tables
    assert [field.kind for field in query_fields(found)][1] == pa.binary()
    statement, _ = rows_statement(found, SCN, None, "19.0.0")
    assert statement == (
        'SELECT ROWIDTOCHAR(ROWID) AS C0, "ID" AS C1, UTL_RAW.CAST_TO_RAW("NAME") AS C2'
        ' FROM "APP"."T" AS OF SCN :scn'
    )


@given(st.lists(st.none() | st.binary(max_size=20_000), min_size=1, max_size=4))
def test_bound_pieces_are_the_value(values: list[bytes | None]) -> None:
    pieces = bound_pieces(values)
    assert len(pieces) & (len(pieces) - 1) == 0
    assert all(len(one or b"") <= RAW_MAX for piece in pieces for one in piece)
    joined = [b"".join(one or b"" for one in row) for row in zip(*pieces, strict=True)]
    assert joined == [one or b"" for one in values]


def test_pieces_are_concatenated_evenly() -> None:
    assert joined_texts("T({})", 1) == "T({})"
    assert joined_texts("T({})", 4) == "((T({}) || T({})) || (T({}) || T({})))"
    assert len(bound_pieces([b"x" * WRITTEN_MAX])) == WRITTEN_MAX // RAW_MAX
