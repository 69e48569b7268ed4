"""Values at the edges of their types: the same in the target whichever way they take into it.

The ways are a load, a replicated insert by COPY, in a set, by itself, out of a stopped table's
hold, a replicated update in a set and by itself, and a repair. A verification calls all of them
equal to the table data. Types that are not the mapping's are choices, and the tables are made with
them; what a choice cannot hold stops the table, and the load, with an error that names the column.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.settings import ApplierSettings, ConflictPolicy
from olr_pg.applier.statements.target_plan import TablePlan, plan_table
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.datatypes.binary_float import encode_binary_float
from olr_pg.datatypes.choices import Choices, ColumnChoice
from olr_pg.datatypes.interval import DaySecond, YearMonth, encode_day_second, encode_year_month
from olr_pg.datatypes.mapping import LOB_TYPES
from olr_pg.datatypes.number import encode_number
from olr_pg.datatypes.temporal import DateTime, Zone, ZonedDateTime, encode_date, encode_timestamp
from olr_pg.datatypes.vector import VectorFormat, VectorValue, encode_vector
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import OlrPgError
from olr_pg.load.copy_task import LoadJob, LoadTable, PartTask, copy_task
from olr_pg.load.load_progress import LoadState, TableLoadProgress
from olr_pg.load.parquet import find_table_data
from olr_pg.load.verification.differences import TableDifferences
from olr_pg.load.verification.repair import repair
from olr_pg.load.verification.target_state import read_state
from olr_pg.load.verification.verification import (
    MISSING,
    Blocks,
    RowDifference,
    VerifyJob,
    VerifyTable,
    VerifyTask,
    compared_by,
    verify_task,
)
from olr_pg.wire.elements import Chunk, ChunkFlags, ColumnValue
from tests.applier.conftest import insert, update
from tests.datatypes.urowids import encode_rowid, encode_urowid
from tests.datatypes.zoned_timestamps import encode_timestamp_tz

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from olr_pg.datatypes.policies import BooleanPairs
    from olr_pg.load.table_data import SourcePartition
    from tests.applier.conftest import Change, Replication

Value = tuple[bytes | None, Any]
"""Oracle's bytes, and the same in the table data."""

CHUNK_BYTES: Final = 7
"""Of a LOB: characters of UTF-16 and surrogate pairs are cut."""

EVERYWHERE: Final = 999
"""The key of a row that conflicts, or stops the table."""


class Case(NamedTuple):
    """A column.

    Attributes:
        target: its type in PostgreSQL; empty for the one of the mapping.
        pairs: what stands for true and false; empty for the default's.
        altered: the type that the target's column is given by hand; empty: it stays.
    """

    column: Column
    kind: Any
    values: Sequence[Value]
    target: str = ""
    pairs: BooleanPairs = ()
    altered: str = ""


def number(text: str) -> Value:
    return encode_number(Decimal(text)), text


def floats(width: int, *values: float) -> list[Value]:
    return [(encode_binary_float(value, width), value) for value in values]


def text(*values: str, code: str = "utf-8") -> list[Value]:
    return [(value.encode(code), value) for value in values]


UTF8: Final = {"charset_id": 873, "charset_form": 1}
NATIONAL: Final = {"charset_id": 2000, "charset_form": 2}
STRING, LARGE = pa.string(), pa.large_string()
UTF16 = "utf-16-be"
FIRST = DateTime(-4712, 1, 1)
LAST = DateTime(9999, 12, 31, 23, 59, 59, 999_999_999)
JULIAN = DateTime(1500, 2, 29)
WARSAW = Zone(None, 398)
DAYS = 999_999_999 * 86_400 + 86_399
NAN, INFINITY = float("nan"), float("inf")
INFINITIES = [(b"\xff\x65", "~"), (b"\0", "-~")]
NUMBERS = [
    *INFINITIES, number("0"), number("1E-130"), number("-1E-130"), number("9.99E125"),
    number("9" * 40), number("-" + "9" * 38), number("0.001"), number("100000"), number("-0.5"),
]  # fmt: skip
DATES = [
    (encode_date(FIRST), "-4712-01-01T00:00:00"),
    (encode_date(DateTime(-1, 12, 31, 23, 59, 59)), "-0001-12-31T23:59:59"),
    (encode_date(DateTime(1, 1, 1)), "0001-01-01T00:00:00"),
    (encode_date(JULIAN), "1500-02-29T00:00:00"),
    (encode_date(LAST._replace(nanosecond=0)), "9999-12-31T23:59:59"),
]
TEXT_OF_FIRST = "-4712-01-01T00:00:00"
DAYS_ONLY = [
    (encode_date(FIRST), TEXT_OF_FIRST),
    (encode_date(DateTime(-1, 12, 31)), "-0001-12-31T00:00:00"),
    (encode_date(JULIAN), "1500-02-29T00:00:00"),
    (encode_date(DateTime(9999, 12, 31)), "9999-12-31T00:00:00"),
]
SMALLEST = ("32767", "-32768", "0")
TIMES = [
    (encode_timestamp(LAST), "9999-12-31T23:59:59.999999999"),
    (encode_timestamp(FIRST._replace(nanosecond=1)), "-4712-01-01T00:00:00.000000001"),
    (encode_timestamp(JULIAN), "1500-02-29T00:00:00"),
]
ZONED = [
    (encode_timestamp_tz(ZonedDateTime(when, zone)), f"{when.isoformat()}Z{shown}")
    for when, zone, shown in (
        (LAST, Zone(840), "+14:00"),
        (LAST, WARSAW, "Europe/Warsaw"),
        (DateTime(2026, 3, 29, 1, 30), WARSAW, "Europe/Warsaw"),
        (DateTime(-1, 12, 31, 23), Zone(-210), "-03:30"),
        (FIRST, Zone(-720), "-12:00"),
        (JULIAN, Zone(60), "+01:00"),
    )
]
INTERVALS = [
    (encode_day_second(DaySecond(-DAYS * 10**9 - 999_999_999)), "-999999999 23:59:59.999999999"),
    (encode_day_second(DaySecond(DAYS * 10**9 + 999_999_999)), "+999999999 23:59:59.999999999"),
    (encode_day_second(DaySecond(-1)), "-00 00:00:00.000000001"),
    (encode_day_second(DaySecond(0)), "+00 00:00:00"),
]
MONTHS = [
    (encode_year_month(YearMonth(-(178_956_970 * 12 + 8))), "-178956970-08"),
    (encode_year_month(YearMonth(178_956_970 * 12 + 7)), "+178956970-07"),
    (encode_year_month(YearMonth(-5)), "-00-05"),
]
CHARACTERS = text("\U0001f600", "\0", "a\0b", "   ", "\ufeffx\ufffe", "\\N\t\n\r")
PADDED = text("     ", "a\0b  ", "\0    ", "żółć ", "\n    ", "a  \0 ")
LOBS = [*text("", "\0", "x", code=UTF16), *text("x😀y😀" * 50, code=UTF16)]
JSON = text('{"b":1.0,"a":"\\u0000\\\\u0000"}', '{"b":1e400,"b":-0}', code=UTF16)
JSON_BYTES = [(one, one) for one in ('{"ż":[1.0,null]}'.encode(), b' "\\u0000\xf0\x9f\x98\x80" ')]
VECTORS = [
    (encode_vector(VectorValue(VectorFormat.FLOAT32, 3, np.array(one, "f4"))), one)
    for one in ([1.5, 0.0, -2.0], [0.0, 0.0, 0.0])
]
XML = text('<?xml version="1.0" encoding="ISO-8859-2"?><a>ż</a>', "<a> <b/></a>\n", code=UTF16)
BYTES = [(one, one) for one in (b"", b"\0", bytes(range(256)))]


def column(code: int, length: int = 22, **facts: Any) -> Column:
    return Column("C", 0, 0, 0, code, length, **facts)


CASES: Final = [
    Case(column(2), STRING, NUMBERS),
    Case(column(2), STRING, NUMBERS, "text"),
    Case(column(2), STRING, NUMBERS[:4], "double precision"),
    Case(column(2, precision=5, scale=-2), STRING, [number("9999900"), number("-100")]),
    Case(column(2, precision=3, scale=5), STRING, [number("0.00999")]),
    Case(column(100, 4), pa.float32(), floats(4, NAN, INFINITY, -INFINITY, 2.0**-149, 0.0)),
    Case(column(101, 8), pa.float64(), floats(8, NAN, INFINITY, -INFINITY, 5e-324, 0.1)),
    Case(column(101, 8), pa.float64(), floats(8, NAN, INFINITY, -INFINITY, 5e-324, 0.1), "text"),
    Case(column(12, 7), STRING, DATES),
    Case(column(12, 7), STRING, DATES, "text"),
    Case(column(180, 11, scale=9), STRING, TIMES),
    Case(column(180, 11, scale=9), STRING, TIMES, "text"),
    Case(column(181, 13, scale=9), STRING, ZONED),
    Case(column(181, 13, scale=9), STRING, ZONED, "text"),
    Case(column(182, 5, precision=9), STRING, MONTHS),
    Case(column(183, 11, precision=9, scale=9), STRING, INTERVALS),
    Case(column(183, 11, precision=9, scale=9), STRING, INTERVALS, "text"),
    Case(column(1, 40, **UTF8), STRING, CHARACTERS),
    Case(column(1, 40, **UTF8), STRING, CHARACTERS, "bytea"),
    Case(column(96, 20, char_length=5, **UTF8), STRING, PADDED),
    Case(column(96, 20, char_length=5, **UTF8), STRING, PADDED, "text"),
    Case(column(96, 10, char_length=5, **NATIONAL), STRING, text("😀😀 ", "ab   ", code=UTF16)),
    Case(column(8, 0, **UTF8), LARGE, text("żą\0")),
    Case(column(112, 4000, **UTF8), LARGE, LOBS),
    Case(column(112, 4000, **UTF8), LARGE, LOBS, "bytea"),
    Case(column(112, 4000, **UTF8), LARGE, JSON, "jsonb"),
    Case(column(112, 4000, **UTF8), LARGE, JSON, "json"),
    Case(column(112, 4000, **UTF8), LARGE, XML, "xml"),
    Case(column(112, 8000, **NATIONAL), LARGE, [*LOBS, *text("€" * 3000, code=UTF16)]),
    Case(column(112, 4000, xml=True, **UTF8), LARGE, XML, "text"),
    Case(column(113, 4000), pa.large_binary(), BYTES),
    Case(column(113, 4000), pa.large_binary(), BYTES, "text"),
    Case(column(113, 4000), pa.large_binary(), JSON_BYTES, "jsonb"),
    Case(column(113, 4000), pa.large_binary(), JSON_BYTES, "json"),
    Case(column(23, 16), pa.binary(), [(bytes(16), bytes(16))], "uuid"),
    Case(column(69, 10), STRING, [(encode_rowid("AAASnuAAMAAAAKtAAA"), "AAASnuAAMAAAAKtAAA")]),
    Case(column(208, 4000), STRING, [(encode_urowid("*BAEAAAACwQL+"), "*BAEAAAACwQL+")]),
    Case(column(252, 1), pa.bool_(), [(b"\1", True), (b"\0", False)]),
    # Choices.
    Case(column(2, precision=1, scale=0), STRING, [number("1"), number("0")], "boolean"),
    Case(
        column(2, precision=2, scale=0),
        STRING,
        [number("-1"), number("7")],
        "boolean",
        (("-1", "7"),),
    ),
    Case(column(96, 4, char_length=1, **UTF8), STRING, text(*"YNTF10"), "boolean"),
    Case(column(96, 4, char_length=1, **UTF8), STRING, text("X", " "), "boolean", (("X", " "),)),
    Case(
        column(96, 6, char_length=3, **NATIONAL),
        STRING,
        text("oui", "no ", code=UTF16),
        "boolean",
        (("oui", "no"),),
    ),
    Case(column(1, 8, **UTF8), STRING, text("tak", "nie"), "boolean", (("tak", "nie"),)),
    Case(column(2, precision=9, scale=0), STRING, list(map(number, SMALLEST)), "smallint"),
    Case(column(2), STRING, [number(str(2**63 - 1)), number(str(-(2**63)))], "bigint"),
    Case(column(2, precision=4, scale=0), STRING, [number("-9999")], "numeric(4,0)"),
    Case(column(2), STRING, [number("9999999999.99"), number("-0.01")], "numeric(12,2)"),
    Case(column(12, 7), STRING, DAYS_ONLY, "date"),
    Case(column(180, 11, scale=6), STRING, [(encode_timestamp(FIRST), TEXT_OF_FIRST)], "date"),
    Case(column(1, 40, **UTF8), STRING, text("żółć ", "a    "), "varchar(5)"),
    Case(column(1, 40, **UTF8), STRING, text('{"a": 1.10}'), "json"),
    Case(column(113, 4000), pa.large_binary(), [(bytes(16), bytes(16))], "uuid"),
    Case(column(127, 8200), pa.list_(pa.float32()), VECTORS, "real[]"),
    # Types of the target's own.
    Case(column(1, 40, **UTF8), STRING, text("new", "żółty"), altered="own.mood"),
    Case(column(96, 20, char_length=5, **UTF8), STRING, text("new  "), altered="own.some_mood"),
    Case(column(112, 4000, **UTF8), LARGE, text("żółty", code=UTF16), altered="own.mood"),
    Case(column(2, precision=9, scale=2), STRING, [number("1.25")], altered="own.price"),
    Case(column(1, 40, **UTF8), STRING, text("Aa", "aA", "x  "), altered="own.email"),
    Case(column(1, 40, **UTF8), STRING, CHARACTERS, altered="own.citext"),
    Case(column(112, 4000, **UTF8), LARGE, LOBS, altered="own.citext"),
    Case(column(127, 8200), pa.list_(pa.float32()), VECTORS, altered="own.vector(3)"),
    Case(column(127, 8200), pa.list_(pa.float32()), VECTORS, altered="own.halfvec"),
    Case(column(127, 8200), pa.list_(pa.float32()), VECTORS, altered="own.sparsevec(3)"),
]
CITEXT: Final = """
DO $$ BEGIN
    CREATE TYPE own.citext;
    CREATE FUNCTION own.citextin(cstring) RETURNS own.citext AS 'textin'
        LANGUAGE internal IMMUTABLE STRICT;
    CREATE FUNCTION own.citextout(own.citext) RETURNS cstring AS 'textout'
        LANGUAGE internal IMMUTABLE STRICT;
    CREATE FUNCTION own.citextrecv(internal) RETURNS own.citext AS 'textrecv'
        LANGUAGE internal STABLE STRICT;
    CREATE FUNCTION own.citextsend(own.citext) RETURNS bytea AS 'textsend'
        LANGUAGE internal STABLE STRICT;
    CREATE TYPE own.citext (INPUT = own.citextin, OUTPUT = own.citextout,
        RECEIVE = own.citextrecv, SEND = own.citextsend, INTERNALLENGTH = VARIABLE,
        STORAGE = extended, CATEGORY = 'S');
    CREATE CAST (own.citext AS text) WITHOUT FUNCTION AS IMPLICIT;
EXCEPTION WHEN duplicate_object OR duplicate_function THEN NULL;
END $$;
"""
"""The extension's type as its own script makes it, for servers that come without the extension."""

OWN: Final = """
CREATE SCHEMA IF NOT EXISTS own;
DO $$ BEGIN
    CREATE TYPE own.mood AS ENUM ('new', 'żółty');
    CREATE DOMAIN own.some_mood AS own.mood CHECK (VALUE <> 'żółty');
    CREATE DOMAIN own.price AS numeric(9,2) CHECK (VALUE > 0);
    CREATE DOMAIN own.email AS own.citext;
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;
"""
ROWS: Final = max(len(case.values) for case in CASES) + 1
"""The last one has NULLs only."""

CHOICES: Final = Choices(
    columns={
        f"S.*.C{n}": ColumnChoice(case.target, f"x{n}" if n % 2 else "", case.pairs)
        for n, case in enumerate(CASES, 2)
        if case.target
    }
)
ID: Final = Column("ID", 1, 1, 1, 2, 22, precision=9, scale=0, nullable=False)
COLUMNS: Final = [
    replace(case.column, name=f"C{n}", segcol=n, intcol=n, col=n) for n, case in enumerate(CASES, 2)
]
TABLE: Final = Table("S", "EDGES", 90, 90, (ID, *COLUMNS), key_kind=KeyKind.PRIMARY, key=(1,))


def cells(row: int) -> list[Value]:
    """The values of a row, without its key's."""
    return [case.values[row] if row < len(case.values) else (None, None) for case in CASES]


def change(key: int, row: int, *, of_update: bool = False) -> list[Change]:
    """The insert of a row, or an update of all its columns, with the chunks of its LOBs."""
    values: dict[str, ColumnValue] = {}
    chunks: list[Change] = []
    for one, (raw, _) in zip(COLUMNS, cells(row), strict=True):
        is_lob = one.type_code in LOB_TYPES
        charset_id = 2000 if one.type_code == 112 else one.charset_id
        chunked = is_lob and raw is not None
        values[one.name] = ColumnValue(
            one.name, one.type_code, charset_id=charset_id, charset_form=one.charset_form,
            chunked=chunked, value=None if chunked else raw,
        )  # fmt: skip
        if chunked and raw is not None:
            chunks += pieces(one, raw)
    if chunks:
        last = chunks[-1]
        assert isinstance(last, Chunk)
        chunks[-1] = replace(last, flags=last.flags | ChunkFlags.LAST_OF_ROW)
    name = {"ID": ColumnValue("ID", 2, precision=9, scale=0, value=encode_number(key))}
    if of_update:
        return [update(name, values, "EDGES"), *chunks]
    return [insert({**name, **values}, "EDGES"), *chunks]


def pieces(one: Column, raw: bytes) -> list[Change]:
    parts = [raw[at : at + CHUNK_BYTES] for at in range(0, len(raw), CHUNK_BYTES)] or [b""]
    flags = [ChunkFlags.NONE] * (len(parts) - 1) + [ChunkFlags.LAST_OF_COLUMN]
    return [
        Chunk(1, 0, 0, 0, one.name, 113 if one.type_code == 127 else one.type_code, flag, part)
        for flag, part in zip(flags, parts, strict=True)
    ]


def make_own(connection: psycopg.Connection[Any]) -> set[str]:
    """Make the types of the target's own, and return their names; pgvector may be old or absent."""
    connection.execute("CREATE SCHEMA IF NOT EXISTS own")
    there = {
        name
        for (name,) in connection.execute(
            "SELECT name::text FROM pg_available_extensions WHERE name IN ('citext', 'vector')"
        )
    }
    for name in there:
        connection.execute(f"CREATE EXTENSION IF NOT EXISTS {name} SCHEMA own".encode())
    if "citext" not in there:
        connection.execute(CITEXT)
    connection.execute(OWN)
    query = "SELECT 'own.' || typname FROM pg_type WHERE typnamespace = 'own'::regnamespace"
    return {name for (name,) in connection.execute(query)}


class Target:
    """A table of its own for one way, in a schema of the way's name.

    Args:
        database: the connection string to work with.
        owner: the connection string to prepare the table and to read it; None for the same one.
    """

    def __init__(self, database: str, way: str, owner: str | None = None) -> None:
        self.way = way
        self.owner = owner or database
        self.options: dict[str, Any] = {
            "subscription": way, "table_names": {"S.EDGES": f"{way}.edges"}, "copy_rows": 10**6,
            "choices": CHOICES, "create_tables": True,
        }  # fmt: skip
        self.settings = ApplierSettings(database, "", 0, "", **self.options)
        with connect(database) as connection:
            ensure_ledger(connection)
            plan_table(connection, self.settings, TABLE, TABLE)
            with psycopg.connect(self.owner, autocommit=True) as owning:
                own = make_own(owning)
                for one, case in zip(COLUMNS, CASES, strict=True):
                    if case.altered.partition("(")[0] in own:
                        owning.execute(
                            f"ALTER TABLE {way}.edges ALTER {one.name} TYPE {case.altered}"
                            f" USING NULL::{case.altered}".encode()
                        )
            self.plan: TablePlan = plan_table(connection, self.settings, TABLE, TABLE)

    def execute(self, query: str) -> None:
        with psycopg.connect(self.owner, autocommit=True) as connection:
            connection.execute(query.encode())

    def rows(self) -> list[Any]:
        """Every value to the byte, and as text for who reads what differs."""
        with psycopg.connect(self.owner) as connection:
            return connection.execute(
                f"SELECT t::text, record_send(ROW(t.*)) FROM {self.way}.edges t"
                f" WHERE id <> {EVERYWHERE} ORDER BY id".encode()
            ).fetchall()

    def load(self, part: SourcePartition) -> None:
        progress = TableLoadProgress(self.way, "S.EDGES", f"{self.way}.edges")
        with connect(self.settings.connect_string) as connection:
            progress.begin(connection, LoadState(1, 0, "edges", 1))
        todo = LoadJob(self.settings, (LoadTable(TABLE, self.way, "edges", progress),))
        done = pickle.loads(copy_task(pickle.dumps(PartTask(0, 0, part, 1)), pickle.dumps(todo)))
        assert done.rows == ROWS

    def replicate(self, replication: Replication) -> None:
        """By the way that has the schema's name."""
        of_update, by_itself = "update" in self.way, "single" in self.way
        self.options["copy_rows"] = 1 if self.way == "by_copy" else 10**6
        script = replication.script
        if self.way == "held":
            script.transaction(*change(EVERYWHERE, ROWS))
            script.transaction(*change(EVERYWHERE, ROWS))
        for key in range(ROWS if of_update else 0):
            script.transaction(*change(key, ROWS))
        extra = change(EVERYWHERE, ROWS) * (2 if by_itself else 0)
        every = [one for key in range(ROWS) for one in change(key, key, of_update=of_update)]
        script.transaction(*every, *extra)
        if self.way == "held":
            with pytest.raises(OlrPgError, match="OLR-05009"):
                replication.apply((TABLE,), **self.options)
            self.execute("DELETE FROM held.edges")
            with connect(self.settings.connect_string) as connection:
                replay(connection, replication.settings(**self.options), "S.EDGES")
            return
        if by_itself:
            self.options["conflict"] = ConflictPolicy.SKIP
        report = replication.apply((TABLE,), **self.options)
        assert report.tables["S.EDGES"].conflicts == by_itself

    def repair(self, images: Sequence[bytes]) -> None:
        """Put rows into an empty table."""
        columns = compared_by(self.plan, TABLE).columns
        with connect(self.settings.connect_string) as connection:
            ensure_ledger(connection)
            ledger = self.settings.subscription, "S.EDGES"
            state = read_state(connection, ledger, self.plan.target.oid)
        file = TableDifferences(
            "S.EDGES", self.way, "edges", tuple(one.name for one in columns),
            tuple(one.base_oid for one in columns), ("id",),
            [RowDifference(MISSING, b"", image, None) for image in images], state,
        )  # fmt: skip
        (done,) = repair(self.settings, [file])
        assert done.inserted == ROWS

    def verify(self, part: SourcePartition) -> list[bytes]:
        """The images of the table data's rows, which are those of the target's."""
        self.execute(f"DELETE FROM {self.way}.edges WHERE id = {EVERYWHERE}")
        with connect(self.settings.connect_string) as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            row = connection.execute("SELECT pg_export_snapshot()").fetchone()
            assert row is not None
            table = VerifyTable(TABLE, self.plan.target, 1, 1)
            job = pickle.dumps(VerifyJob(self.settings, row[0], (table,)))
            source, target = (
                sorted(
                    one._replace(version=0)
                    for one in pickle.loads(verify_task(pickle.dumps(task), job))
                )
                for task in (
                    VerifyTask(0, part, np.array([0])),
                    VerifyTask(0, Blocks(0, None), np.array([0])),
                )
            )
        assert source == target
        return [one.image for one in source]


def write(folder: Path) -> SourcePartition:
    """The table data."""
    arrays: dict[str, Any] = {"ID": pa.array(map(Decimal, range(ROWS)), pa.decimal128(9, 0))}
    for place, (case, one) in enumerate(zip(CASES, COLUMNS, strict=True)):
        arrays[one.name] = pa.array([cells(row)[place][1] for row in range(ROWS)], case.kind)
    pq.write_table(pa.table(arrays), folder / "S.EDGES.parquet")
    return find_table_data(folder, "S.EDGES").partitions[0]


def test_values_are_the_same_whichever_way_they_take(
    tmp_path: Path, postgres_database: str, replicate: Callable[[str], Replication]
) -> None:
    part = write(tmp_path)
    loaded = Target(postgres_database, "loaded")
    loaded.load(part)
    wanted = loaded.rows()
    images = loaded.verify(part)
    assert len(wanted) == len(images) == ROWS
    for way in ("by_copy", "in_set", "single", "held", "update", "single_update"):
        target = Target(postgres_database, way)
        target.replicate(replicate(postgres_database))
        assert target.rows() == wanted, way
        target.verify(part)
    repaired = Target(postgres_database, "repaired")
    repaired.repair(images)
    assert repaired.rows() == wanted
    repaired.verify(part)


class Unfit(NamedTuple):
    """A value that the chosen type of its column cannot hold, and the error's code."""

    column: Column
    value: Value
    target: str
    code: int


UNFIT: Final = [
    Unfit(column(2, precision=9, scale=0), number("40000"), "smallint", 2053),
    Unfit(column(2), number("0.5"), "bigint", 2057),
    Unfit(column(2), number("9223372036854775808"), "bigint", 2053),
    Unfit(column(2), number("1.005"), "numeric(12,2)", 2057),
    Unfit(column(2, precision=1, scale=0), number("2"), "boolean", 2053),
    Unfit(column(96, 4, char_length=1, **UTF8), text("y")[0], "boolean", 2053),
    Unfit(
        column(12, 7), (encode_date(DateTime(2026, 3, 7, 1)), "2026-03-07T01:00:00"), "date", 2057
    ),
    Unfit(column(1, 40, **UTF8), text("abc ")[0], "varchar(3)", 2053),
]


def test_what_a_choice_cannot_hold_stops_its_table_and_its_load(
    tmp_path: Path, postgres_database: str, replicate: Callable[[str], Replication]
) -> None:
    replication = replicate(postgres_database)
    tables = [
        Table("S", f"T{n}", n, n, (ID, replace(one.column, name="C", segcol=2, intcol=2, col=2)),
              key_kind=KeyKind.PRIMARY, key=(1,))
        for n, one in enumerate(UNFIT)
    ]  # fmt: skip
    choices = Choices(
        columns={f"S.T{n}.C": ColumnChoice(one.target) for n, one in enumerate(UNFIT)}
    )
    for n, one in enumerate(UNFIT):
        value = ColumnValue(
            "C", one.column.type_code, charset_id=one.column.charset_id,
            charset_form=one.column.charset_form, value=one.value[0],
        )  # fmt: skip
        key = ColumnValue("ID", 2, precision=9, scale=0, value=encode_number(1))
        replication.script.transaction(insert({"ID": key, "C": value}, f"T{n}"))
    options: dict[str, Any] = {"choices": choices, "create_tables": True}
    with pytest.raises(OlrPgError, match="OLR-05010"):
        replication.apply(tuple(tables), **options)
    with connect(postgres_database) as connection:
        stopped = connection.execute(
            "SELECT source_table, code FROM olr_pg.error ORDER BY source_table"
        ).fetchall()
        assert stopped == [(f"S.T{n}", one.code) for n, one in enumerate(UNFIT)]
        for n, (one, table) in enumerate(zip(UNFIT, tables, strict=True)):
            arrays = {"ID": pa.array([Decimal(1)], pa.decimal128(9, 0)), "C": [one.value[1]]}
            pq.write_table(pa.table(arrays), tmp_path / f"S.T{n}.parquet")
            progress = TableLoadProgress("load", table.full_name, f"s.t{n}")
            progress.begin(connection, LoadState(1, 0, "edges", 1))
            part = find_table_data(tmp_path, table.full_name).partitions[0]
            todo = LoadJob(
                replication.settings(**options), (LoadTable(table, "s", f"t{n}", progress),)
            )
            error = pickle.loads(
                copy_task(pickle.dumps(PartTask(0, 0, part, 1)), pickle.dumps(todo))
            )
            assert error.code == one.code
            assert error.where["table"] == table.full_name
            assert error.where["column"] == "C"
            assert "apply.columns" in error.action
            if one.target == "boolean":
                assert f'"columns": {{"S.T{n}.C": {{"type": "' in error.detail


def test_names_that_are_kept_are_those_of_the_dictionary(
    postgres_database: str, replicate: Callable[[str], Replication]
) -> None:
    replication = replicate(postgres_database)
    table = Table("S", "Kept", 1, 1, (ID,), key_kind=KeyKind.PRIMARY, key=(1,))
    key = ColumnValue("ID", 2, precision=9, scale=0, value=encode_number(1))
    replication.script.transaction(insert({"ID": key}, "Kept"))
    replication.apply((table,), choices=Choices(keep_names=True), create_tables=True)
    assert replication.rows('SELECT "ID" FROM "S"."Kept"') == [(1,)]
