"""Digests of chunks: independent of order, and of how the rows are divided.

Tables walked range by range of their keys, against a stand-in that takes SQL.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import oracledb
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo

from olr_pg.applier.target.catalogue import TargetColumn
from olr_pg.config.reading import load_config
from olr_pg.datatypes.mapping import OracleType, PgKind
from olr_pg.dictionary.model import Column
from olr_pg.errors import Code, OlrPgError
from olr_pg.load import live_rows, sources
from olr_pg.load.initial import LoadOptions, initial_load
from olr_pg.load.verification import continuous
from olr_pg.load.verification.continuous import (
    DIFFERENCES,
    WALKS,
    Budget,
    ContinuousVerification,
    Mending,
    WalkFile,
)
from olr_pg.load.verification.differences import read_differences
from olr_pg.load.verification.digests import (
    CHUNKS_MAX,
    ChunkDigests,
    TableKey,
    _is_ordered_alike,
    chunk_count,
    is_byte_order,
)
from olr_pg.load.verification.repair import repair
from olr_pg.oracle.key_cuts import KeyCut, KeyValue, LargeRow, key_cuts
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.oracle_net.serve import SqlServer
from tests.advice import followed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.config.model import Config
    from olr_pg.load.verification.digests import KeyRange
    from olr_pg.monitor.proofs import Proof


CHUNKS = 4
Pairs = list[tuple[int, int]]
rows = st.lists(st.tuples(st.integers(0, CHUNKS - 1), st.integers(-(2**63), 2**63 - 1)), max_size=9)


def digests(pairs: Pairs) -> ChunkDigests:
    made = ChunkDigests.none(CHUNKS)
    chunk, digest = (np.array([one[place] for one in pairs], np.int64) for place in range(2))
    made.add_rows(chunk, digest)
    return made


@pytest.mark.parametrize(
    ("count", "chunks"), [(0, 1), (1_999, 1), (2_000, 2), (3_000, 4), (10**12, CHUNKS_MAX)]
)
def test_there_are_some_thousand_rows_to_a_chunk(count: int, chunks: int) -> None:
    assert chunk_count(count) == chunks


@given(rows, rows)
def test_parts_add_up_in_any_order(first: Pairs, second: Pairs) -> None:
    parts = digests(second)
    parts.add(digests(first))
    assert parts.differing(digests(first + second)) == []


@given(rows)
def test_what_postgres_adds_up_is_the_same(pairs: Pairs) -> None:
    sums = [
        (chunk, len(own), sum(own))
        for chunk in range(CHUNKS)
        if (own := [digest for place, digest in pairs if place == chunk])
    ]
    theirs = ChunkDigests.none(CHUNKS)
    theirs.add_sums(sums)
    assert theirs.differing(digests(pairs)) == []


def test_a_row_that_comes_twice_is_told_and_where() -> None:
    assert digests([(1, 7), (3, 5)]).differing(digests([(1, 7), (3, 5), (3, 5)])) == [3]
    assert digests([(0, 1), (2, 9)]).differing(digests([(0, 1), (2, 8)])) == [2]


_DAY = datetime(2020, 2, 25)  # noqa: DTZ001 - Oracle's have no zone
_WORDS = ("a", "A", "aa", "B", "ab", "\u00e4", "z", "\u20ac", "\U0001f600", "_", "a b", "0")
TABLES: dict[str, tuple[str, Callable[[int], tuple[Any, ...]]]] = {
    "NUMBERS": ("id NUMBER PRIMARY KEY", lambda n: (Decimal(n * n - 300) / 8,)),
    "WORDS": ("id VARCHAR2(20) PRIMARY KEY", lambda n: (f"{_WORDS[n % len(_WORDS)]}{n or ''}",)),
    "PADDED": ("id CHAR(9) PRIMARY KEY", lambda n: ("a" * (n % 3) + "-+ Bz"[n % 5] + str(n),)),
    "BYTES": ("id RAW(8) PRIMARY KEY", lambda n: (bytes((n * 37 % 256, n))[: 1 + n % 2],)),
    "DAYS": ("id DATE PRIMARY KEY", lambda n: (_DAY + timedelta(hours=8 * n),)),
    "MOMENTS": ("id TIMESTAMP(6) PRIMARY KEY", lambda n: (_DAY + timedelta(seconds=n / 8),)),
    "PAIRS": ("a VARCHAR2(9), b NUMBER(5), c DATE, PRIMARY KEY (a, b, c)",
              lambda n: (f"k{n % 3}", n // 6, _DAY + timedelta(n))),
    "KEYLESS": ("a NUMBER", lambda n: (n,)),
    "PARTED": ("a NUMBER", lambda n: (n,)),
}  # fmt: skip
PARTITIONS = {
    "PARTED": "PARTITION BY RANGE (a)"
    " (PARTITION low VALUES LESS THAN (50), PARTITION middle VALUES LESS THAN (60))"
}
ROWS = 15


class Walked:
    """A copy of a database that takes SQL, and continuous verification of it."""

    def __init__(self, served: SqlServer, folder: Path, database: str) -> None:
        self.served, self.folder, self.database = served, folder, database
        self.owner = oracledb.connect(
            user="app", password="olr", dsn=served.server.connect_string
        ).cursor()
        self.source_config = folder / "source" / "olr-pg.json"
        self.pauses: list[float] = []
        self.sets: dict[str, str] = {}

    def config(self, tables: list[str]) -> Config:
        document = json.loads(self.source_config.read_text())
        document["apply"] |= {"connect-string": self.database,
                              "tables": [f"APP.{name}" for name in tables]}  # fmt: skip
        document["context"]["data"] = str(self.folder / "data")
        document["source"]["character-sets"] = self.sets
        path = self.folder / "olr-pg.json"
        path.write_text(json.dumps(document))
        return load_config(path)

    def make(self, names: list[str]) -> None:
        for name in names:
            columns, values = TABLES[name]
            parts = PARTITIONS.get(name, "")
            self.owner.execute(f"CREATE TABLE {name} ({columns}, v NUMBER) {parts}")
            rows = [(*values(n), n) for n in range(ROWS)]
            marks = ", ".join(f":{place + 1}" for place in range(len(rows[0])))
            if name == "MOMENTS":
                self.owner.setinputsizes(oracledb.DB_TYPE_TIMESTAMP)  # else it would be a DATE
            self.owner.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        self.owner.connection.commit()
        self.load(names)

    def load(self, names: list[str]) -> None:
        with sources.open_tables(self.config(names)) as source:
            settings = sources.target_settings(self.config(names), source.snapshot, self.database)
            done = initial_load(
                settings, source.sources(source.choose(())), no_session, LoadOptions()
            )
        assert not done.failures

    def scn(self) -> int:
        dsn = self.served.server.connect_string
        with oracledb.connect(user="olr", password="olr", dsn=dsn) as connection:
            query = "SELECT CURRENT_SCN FROM V$DATABASE"
            ((scn,),) = connection.cursor().execute(query).fetchall()
        return int(scn)

    def in_target(self, *statements: str) -> None:
        with psycopg.connect(self.database, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def of_target(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database) as connection:
            return connection.execute(query.encode()).fetchall()

    def in_source(self, *statements: str) -> None:
        for statement in statements:
            self.owner.execute(statement)
        self.owner.connection.commit()

    def walk(self, names: list[str], steps: int | None = None) -> list[Proof]:
        """Walk through each table once, or so many steps."""
        config = self.config(names)
        with sources.open_tables(config) as source:
            settings = sources.target_settings(config, source.snapshot, self.database)
            one = ContinuousVerification(
                settings, source, self.folder, no_session, pause=self.pauses.append
            )
            found, left = list[Any](), set(names)
            for proof in one.walk(source.choose(()), Budget(share=1.0)):
                found.append(proof)
                if not one.is_walking(proof.table):
                    left.discard(proof.table.removeprefix("APP."))
                if not left or len(found) == steps or proof.failure:
                    return found
        raise AssertionError


def no_session() -> Any:
    raise AssertionError("so few rows are compared in this process")


@pytest.fixture
def walked(
    tmp_path: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Walked]:
    for name in ("ROWS_FIRST", "ROWS_MIN", "ROWS_MAX"):
        monkeypatch.setattr(continuous, name, 7)
    monkeypatch.setattr(live_rows, "RANGE_BYTES", 0)
    with SqlServer(4, tmp_path / "source", demo_shape(), switch_seconds=60) as served:
        yield Walked(served, tmp_path, postgres_database)
    assert served.server.malformed == []


@pytest.mark.parametrize(
    ("charset", "codec", "steps"),
    [("WE8ISO8859P1", "latin-1", 3), ("AL32UTF8", "utf-8", 3), ("WE8MSWIN1252", "cp1252", 1)],
)
@pytest.mark.parametrize("kind", ["VARCHAR2(12)", "CHAR(12)"])
def test_keys_of_a_configured_character_set_are_bound_as_bytes(
    tmp_path: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch,
    kind: str, charset: str, codec: str, steps: int,
) -> None:  # fmt: skip
    for name in ("ROWS_FIRST", "ROWS_MIN", "ROWS_MAX"):
        monkeypatch.setattr(continuous, name, 7)
    monkeypatch.setattr(live_rows, "RANGE_BYTES", 0)
    shape = replace(demo_shape(), charset="US7ASCII")
    with SqlServer(4, tmp_path / "source", shape, switch_seconds=60) as served:
        walked = Walked(served, tmp_path, postgres_database)
        walked.sets = {"*": charset}
        keys = [f"{'azéÿÀ~'[n % 6]}{n}" for n in range(ROWS)]
        walked.in_source(f"CREATE TABLE keyed (id {kind} PRIMARY KEY, v NUMBER)")
        walked.in_source(*(
            f"INSERT INTO keyed VALUES (UTL_RAW.CAST_TO_VARCHAR2(HEXTORAW("
            f"'{key.encode(codec).hex()}')), {number})"
            for number, key in enumerate(keys)
        ))  # fmt: skip
        walked.load(["KEYED"])
        found = walked.walk(["KEYED"])
        assert [one.failure for one in found if one.failure] == []
        assert (len(found), found[-1].is_equal, found[-1].rows) == (steps, True, ROWS)
        walked.in_target("UPDATE app.keyed SET v = -1 WHERE id IN ('é2', 'ÿ3')")
        assert walked.walk(["KEYED"])[-1].differences == 2
    assert served.server.malformed == []


def test_every_kind_of_key_is_walked_in_ranges_on_both_sides_alike(walked: Walked) -> None:
    names = list(TABLES)
    walked.make(names)
    # The embedded PostgreSQL has no order of a language: at least one that is not called "C".
    walked.in_target(
        "ALTER TABLE app.words ALTER id TYPE varchar(20) COLLATE ucs_basic",
        "ALTER TABLE app.padded ALTER id TYPE character(9) COLLATE ucs_basic",
    )
    found = walked.walk(names)
    assert [proof.failure for proof in found if proof.failure] == []
    steps = {name: sum(proof.table == f"APP.{name}" for proof in found) for name in names}
    assert steps == {**dict.fromkeys(names, 3), "KEYLESS": 1, "PARTED": 1}
    last = {proof.table: proof for proof in found}
    assert all(one.is_equal and one.rows == ROWS for one in last.values()), last
    assert not any(proof.at for proof in found[:2])  # nothing is known before a walk has ended


def test_a_restart_goes_on_with_the_walk_and_what_differs_is_recorded(walked: Walked) -> None:
    walked.make(["NUMBERS"])
    (first,) = walked.walk(["NUMBERS"], 1)
    assert not first.is_equal
    assert not first.differences
    walked.in_target(
        "DELETE FROM app.numbers WHERE v = 8",
        "UPDATE app.numbers SET v = -1 WHERE v = 9",
        "INSERT INTO app.numbers VALUES (0.125, 99)",  # in the last range
        "INSERT INTO app.numbers VALUES (-999, 99)",  # in the first one, which has been compared
    )
    second, third = walked.walk(["NUMBERS"])
    assert (second.differences, second.is_equal) == (2, False)
    assert (third.differences, third.rows) == (3, ROWS)
    assert third.scn <= second.scn
    config = walked.config(["NUMBERS"])
    (table,) = read_differences(walked.folder / DIFFERENCES, "olr_pg")
    assert sorted(row.kind for row in table.rows) == ["different", "extra", "missing"]
    with sources.open_tables(config) as source:
        settings = sources.target_settings(config, source.snapshot, walked.database)
        (done,) = repair(settings, [table])
    assert (done.inserted, done.updated, done.deleted, done.left) == (1, 1, 1, 0)
    assert [proof.differences for proof in walked.walk(["NUMBERS"])][-1] == 1  # that of -999
    (table,) = read_differences(walked.folder / DIFFERENCES, "olr_pg")
    assert [row.kind for row in table.rows] == ["extra"]


def test_rows_whose_key_changes_meanwhile_are_no_difference(walked: Walked) -> None:
    walked.make(["PAIRS"])
    walked.walk(["PAIRS"], 1)
    changes = (
        "UPDATE {}pairs SET a = 'k0', b = -1 WHERE v = 14",
        "UPDATE {}pairs SET a = 'z' WHERE v = 0",
        "DELETE FROM {}pairs WHERE v = 5",
    )
    walked.in_source(*(change.format("") for change in changes))
    walked.in_target(*(change.format("app.") for change in changes))
    walked.in_target(f"UPDATE olr_pg.ledger SET commit_scn = {walked.scn()}")
    second, third = walked.walk(["PAIRS"])
    assert (second.failure, third.is_equal) == ("", True)
    assert walked.walk(["PAIRS"])[-1].rows == ROWS - 1


def test_a_table_is_compared_as_of_what_it_has_whatever_others_have_or_hold(
    walked: Walked,
) -> None:
    walked.make(["NUMBERS"])
    walked.in_source("UPDATE numbers SET v = -1 WHERE v = 3")
    walked.in_target(f"INSERT INTO olr_pg.subscription VALUES ('olr_pg', {walked.scn()})")
    # It was added to others: replication has not caught up with its load.
    assert walked.walk(["NUMBERS"])[-1].is_equal
    walked.in_target(
        "UPDATE app.numbers SET v = -1 WHERE v = 3",
        "UPDATE olr_pg.load SET handed_over = true",
        "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn, stopped,"
        " held_source) VALUES ('olr_pg', 'APP.OTHER', 'app.other', 1, true, '{}')",
        "INSERT INTO olr_pg.held (subscription, source_table, commit_scn, xid, kind, changes,"
        " big_endian, data) VALUES ('olr_pg', 'APP.OTHER', 1, '', 'changes', 1, true, '')",
    )
    assert walked.walk(["NUMBERS"])[-1].is_equal


def test_rows_without_a_key_that_lack_listed_values_are_no_difference(
    walked: Walked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(continuous, "_LATER_TRIES", 1)
    walked.make(["KEYLESS"])
    walked.in_target(
        "UPDATE app.keyless SET v = -1 WHERE a IN (3, 5)",  # and one of them is listed
        "INSERT INTO olr_pg.incomplete (subscription, source_table, target_table, row_id,"
        " column_name, target_column, operation, commit_scn, xid, reason)"
        " VALUES ('olr_pg', 'APP.KEYLESS', 'app.keyless', 'A', 'V', 'v', 'update', 1, '', 2120)",
    )
    (found,) = walked.walk(["KEYLESS"])
    assert (found.differences, found.lacking) == (2, 1)


NEW_SEGMENTS = {
    "TRUNCATE TABLE keyless": 0,
    "ALTER TABLE keyless MOVE": ROWS,
    "ALTER TABLE parted TRUNCATE PARTITION low": 0,
    "ALTER TABLE parted MOVE PARTITION low": ROWS,
    "ALTER TABLE parted ADD PARTITION high VALUES LESS THAN (100)": ROWS,
}
"""Statements that give a table other segments, and how many of its rows they leave."""


@pytest.mark.parametrize("statement", NEW_SEGMENTS)
def test_rows_in_new_segments_are_no_difference(walked: Walked, statement: str) -> None:
    name, left = statement.split()[2], NEW_SEGMENTS[statement]
    walked.make([name.upper()])
    config = walked.config([name.upper()])
    with sources.open_tables(config) as source:
        settings = sources.target_settings(config, source.snapshot, walked.database)
        one = ContinuousVerification(
            settings, source, walked.folder, no_session, Mending(100), pause=walked.pauses.append
        )
        (table,) = source.choose(())
        assert one.prove(table).rows == ROWS
        # Its rows, and others, get ROWIDs that those who know the old segment do not look for.
        added = 99 if " ADD " in statement else 9
        walked.in_source(statement, f"INSERT INTO {name} VALUES ({added}, 99)")
        walked.in_target(
            *[f"TRUNCATE app.{name}"] * (left == 0),
            f"INSERT INTO app.{name} VALUES ({added}, 99)",
            f"UPDATE olr_pg.ledger SET commit_scn = {walked.scn()}",
        )
        found = one.prove(table)
        (work,) = source.sources([table])
        later = source.later(work)
    assert (found.failure, found.is_equal, found.mended) == ("", True, 0)
    assert found.rows == left + 1
    # A load that begins again as of a later SCN reads them too.
    assert later is not None
    rows = [batch for part in later.data.partitions for batch in part.batches()]
    assert sum(batch.num_rows for batch in rows if not isinstance(batch, LargeRow)) == left + 1


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE numbers ADD (w NUMBER)"],
        ["ALTER TABLE numbers RENAME COLUMN v TO w"],
        ["ALTER TABLE numbers MODIFY (v NUMBER(30))"],
        ["DROP TABLE numbers"],
        ["DROP TABLE numbers", "CREATE TABLE numbers (id NUMBER PRIMARY KEY, v NUMBER)"],
    ],
)
def test_a_load_does_not_begin_again_by_an_old_definition(
    walked: Walked, statements: list[str]
) -> None:
    walked.make(["NUMBERS"])
    with sources.open_tables(walked.config(["NUMBERS"])) as source:
        (work,) = source.sources(source.choose(()))
        assert source.later(work) is not None
        walked.in_source(*statements)
        with pytest.raises(OlrPgError, match=r"OLR-05118.*APP\.NUMBERS"):
            source.later(work)


@pytest.mark.parametrize("kind", ["character(5)", "text"])
def test_no_range_ends_at_a_key_that_the_two_sides_order_differently(
    walked: Walked, kind: str
) -> None:
    """Oracle pads CHAR, so "ab<tab>" is before "ab"; in PostgreSQL it is after it. If a range ended
    there, "ab" would be extra in that range and missing in the next one.
    """
    words = [f"a{n}" for n in range(5)] + ["ab", "ab\t", "b"]
    walked.owner.execute("CREATE TABLE tabs (id CHAR(5) PRIMARY KEY, v NUMBER)")
    walked.owner.executemany("INSERT INTO tabs VALUES (:1, 1)", [(one,) for one in words])
    walked.owner.connection.commit()
    walked.load(["TABS"])
    walked.in_target(f"ALTER TABLE app.tabs ALTER id TYPE {kind}")
    with sources.open_tables(walked.config(["TABS"])) as source:
        settings = sources.target_settings(
            walked.config(["TABS"]), source.snapshot, walked.database
        )
        one = ContinuousVerification(settings, source, walked.folder, no_session)
        (table,) = source.choose(())
        with psycopg.connect(walked.database) as connection:
            key = one._key(connection, table)
            assert key is not None
            ends = [key.next_range(None, rows).upto for rows in range(1, len(words))]
    assert [str(end, "utf-8")[12:] for end in ends if end] == [*words[:6], "b"]
    assert walked.walk(["TABS"])[-1].is_equal


def test_a_row_that_the_source_has_in_another_range_is_not_deleted(
    walked: Walked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if Oracle ordered the key by a linguistic collation."""
    walked.make(["NUMBERS"])
    exact = TableKey.cuts

    def shifted(self: TableKey, part: KeyRange) -> tuple[KeyCut, ...]:
        return tuple(
            cut._replace(bounds=tuple(one._replace(operator=one.operator[0]) for one in cut.bounds))
            for cut in exact(self, part)
        )  # the source lacks the last row of each range

    monkeypatch.setattr(TableKey, "cuts", shifted)
    with sources.open_tables(walked.config(["NUMBERS"])) as source:
        settings = sources.target_settings(
            walked.config(["NUMBERS"]), source.snapshot, walked.database
        )
        one = ContinuousVerification(
            settings, source, walked.folder, no_session, Mending(100), pause=walked.pauses.append
        )
        proof = one.prove(*source.choose(()))
    # It was compared as a whole.
    assert (proof.failure, proof.is_equal, proof.mended, proof.rows) == ("", True, 0, ROWS)


def test_no_row_is_mended_by_an_old_definition(walked: Walked) -> None:
    """The row would lack the value of a new column."""
    walked.make(["NUMBERS"])

    def prove() -> Proof:
        one = ContinuousVerification(
            settings, source, walked.folder, no_session, Mending(100), pause=walked.pauses.append
        )
        while one.prove(table).mended == 0 and one.is_walking(table.full_name):
            pass
        return one.proofs[table.full_name]

    config = walked.config(["NUMBERS"])
    with sources.open_tables(config) as source:
        settings = sources.target_settings(config, source.snapshot, walked.database)
        (table,) = source.choose(())
        changes = (
            "ALTER TABLE {}numbers ADD w {}", "UPDATE {}numbers SET w = 5",
        )  # fmt: skip
        walked.in_source(*(one.format("", "NUMBER") for one in changes))
        walked.in_target(*(one.format("app.", "numeric") for one in changes))
        walked.in_target(
            f"UPDATE olr_pg.ledger SET commit_scn = {walked.scn()}",
            "DELETE FROM app.numbers WHERE v = 3",
        )
        found = prove()
        assert "OLR-05118" in found.failure
        assert walked.of_target("SELECT count(*) FROM app.numbers") == [(ROWS - 1,)]
    error = OlrPgError(Code.DEFINITION_CHANGED, "")
    followed(error, Code.DEFINITION_CHANGED, "run the command again: it then reads the new")
    with sources.open_tables(config) as source:  # it reads the definitions again
        settings = sources.target_settings(config, source.snapshot, walked.database)
        (table,) = source.choose(())
        assert (prove().failure, walked.of_target("SELECT w FROM app.numbers WHERE v = 3")) == (
            "", [(5,)],
        )  # fmt: skip


def test_a_range_that_is_too_slow_is_made_smaller_and_at_last_the_table_is_compared_whole(
    walked: Walked, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked.make(["BYTES"])
    monkeypatch.setattr(continuous, "ROWS_MIN", 1)
    monkeypatch.setattr(live_rows, "KEY_RANGE_SECONDS_MAX", 1e-9)
    (found,) = walked.walk(["BYTES"])
    assert (found.is_equal, found.rows) == (True, ROWS)


def test_a_walk_that_cannot_be_read_begins_anew(tmp_path: Path) -> None:
    file = WalkFile(tmp_path)
    walk = file.of("A.B", ["id int8"])._replace(after=b"\0\xff", scn=5)
    file.put("A.B", walk)
    assert WalkFile(tmp_path).of("A.B", ["id int8"]) == walk
    assert WalkFile(tmp_path).of("A.B", ["id text"]).after is None  # the key has changed
    (tmp_path / WALKS).write_bytes(b"[")
    assert not WalkFile(tmp_path).is_unfinished("A.B")


def test_a_target_that_orders_text_in_another_way_is_compared_whole(
    walked: Walked, postgres_database: str
) -> None:
    """WIN1252 has the euro sign before the letters with accents, Unicode after them."""
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(
            "CREATE DATABASE windows ENCODING 'WIN1252' LOCALE_PROVIDER libc LOCALE 'C'"
            " TEMPLATE template0"
        )
    try:
        walked.database = make_conninfo(postgres_database, dbname="windows")
        walked.in_source("CREATE TABLE priced (id VARCHAR2(9) PRIMARY KEY)")
        walked.in_source(*(f"INSERT INTO priced VALUES ('{'a€ÿ'[n % 3]}{n}')" for n in range(ROWS)))
        walked.load(["PRICED"])
        (found,) = walked.walk(["PRICED"])
        assert (found.is_equal, found.rows) == (True, ROWS)
    finally:
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            connection.execute("DROP DATABASE windows WITH (FORCE)")


def test_the_order_of_icu_is_not_that_of_bytes() -> None:
    assert is_byte_order("c", "C")
    assert is_byte_order("b", "en_US.UTF-8")  # the built-in provider ignores LC_COLLATE
    assert not is_byte_order("i", "C")
    assert not is_byte_order("c", "en_US.UTF-8")


TEXT, NUMBER, TIMESTAMP = OracleType.VARCHAR2, OracleType.NUMBER, OracleType.TIMESTAMP


@pytest.mark.parametrize(
    ("kind", "into", "of_source", "of_target", "charset", "is_alike"),
    [
        (NUMBER, PgKind.NUMERIC, {}, {}, "AL32UTF8", True),
        (NUMBER, PgKind.NUMERIC, {"nullable": True}, {}, "AL32UTF8", False),
        (NUMBER, PgKind.NUMERIC, {}, {"generated": True}, "AL32UTF8", False),
        (NUMBER, PgKind.TEXT, {}, {}, "AL32UTF8", False),  # 10 is before 9
        (OracleType.BINARY_DOUBLE, PgKind.FLOAT8, {}, {}, "AL32UTF8", False),
        (TEXT, PgKind.TEXT, {}, {}, "AL32UTF8", True),
        (TEXT, PgKind.TEXT, {}, {}, "WE8ISO8859P1", True),
        (TEXT, PgKind.TEXT, {}, {}, "WE8MSWIN1252", False),
        (TEXT, PgKind.TEXT, {}, {}, "UTF8", False),  # has surrogates before the last characters
        (TEXT, PgKind.TEXT, {"charset_form": 2}, {}, "AL32UTF8", False),
        (TEXT, PgKind.BPCHAR, {}, {}, "AL32UTF8", False),
        (TIMESTAMP, PgKind.TIMESTAMP, {"scale": 6}, {}, "AL32UTF8", True),
        (TIMESTAMP, PgKind.TIMESTAMP, {"scale": 7}, {}, "AL32UTF8", False),
    ],
)
def test_only_keys_that_both_sides_order_alike_are_walked(
    kind: OracleType,
    into: PgKind,
    of_source: dict[str, Any],
    of_target: dict[str, Any],
    charset: str,
    is_alike: bool,
) -> None:
    column = Column("K", 1, 1, 1, int(kind), 22, charset_form=1, nullable=False)
    target = TargetColumn("k", int(into), int(into), into.name.lower(), False, "")
    found = _is_ordered_alike(replace(column, **of_source), target._replace(**of_target), charset)
    assert found == is_alike


@pytest.mark.parametrize("seed", range(20))
def test_cuts_are_the_range_each_row_once(seed: int) -> None:
    rng = Random(seed)
    names = ("A", "B", "C")[: rng.randint(1, 3)]
    keys = [tuple(rng.randint(0, 3) for _ in names) for _ in range(30)]

    def bound() -> tuple[int, ...] | None:
        return None if rng.random() < 0.2 else rng.choice(keys)

    after, upto = bound(), bound()
    if after is not None and upto is not None and after > upto:
        after, upto = upto, after

    def values(key: tuple[int, ...] | None) -> list[KeyValue] | None:
        if key is None:
            return None
        return [KeyValue(*pair) for pair in zip(names, key, strict=True)]

    cuts = key_cuts(names, values(after), values(upto))
    compares = {"=": operator.eq, ">": operator.gt, "<": operator.lt, "<=": operator.le}
    for key in keys:
        row = dict(zip(names, key, strict=True))
        found = sum(
            all(compares[one.operator](row[one.value.column], one.value.value)
                for one in cut.bounds)
            for cut in cuts
        )  # fmt: skip
        assert found == ((after is None or key > after) and (upto is None or key <= upto))
