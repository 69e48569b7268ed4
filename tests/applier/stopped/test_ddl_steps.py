"""ADD PARTITION is followed in a target that is partitioned in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.stopped.ddl import apply_event
from olr_pg.applier.stopped.partition_rows import PartitionRows
from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.datatypes.choices import DEFAULT_CHOICES
from olr_pg.dictionary.committed_changes import Statement
from olr_pg.dictionary.evolution import ALTER_TABLE, Evolution
from olr_pg.dictionary.model import Column, Table
from olr_pg.dictionary.partition_groups import added_partitions
from olr_pg.scalars import pack_xid
from olr_pg.schema.followed_steps import step_sql
from olr_pg.transactions.schema_event import SchemaEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    Connection = psycopg.Connection[Any]

NUMBER = Column("K", 1, 1, 1, 2, 22)
DATE = Column("K", 1, 1, 1, 12, 7)
TEXT = Column("K", 1, 1, 1, 1, 30, charset_id=873, charset_form=1)
JANUARY = "TO_DATE('2024-01-01', 'YYYY-MM-DD')"

CASES: dict[str, tuple[Column, str, str, str, str]] = {
    "a range of numbers": (
        NUMBER, "RANGE (k)", "a FOR VALUES FROM (MINVALUE) TO (9); b FOR VALUES FROM (9) TO (10)",
        "ADD PARTITION C VALUES LESS THAN (100)", "FOR VALUES FROM ('10') TO ('100')",
    ),
    "a range of dates": (
        DATE, "RANGE (k)", "a FOR VALUES FROM (MINVALUE) TO ('2023-12-01')",
        f"ADD PARTITION c VALUES LESS THAN ({JANUARY}) TABLESPACE TS2",
        "FOR VALUES FROM ('2023-12-01 00:00:00') TO ('2024-01-01 00:00:00')",
    ),
    "the first range": (
        NUMBER, "RANGE (k)", "", 'ADD PARTITION "C" VALUES LESS THAN (MAXVALUE)',
        "FOR VALUES FROM (MINVALUE) TO (MAXVALUE)",
    ),
    "a list": (
        TEXT, "LIST (k)", "a FOR VALUES IN ('A')",
        "ADD PARTITION C VALUES ('B', 'it''s (', NULL)",
        "FOR VALUES IN ('B', 'it''s (', NULL)",
    ),
    "the rest of a list": (
        TEXT, "LIST (k)", "a FOR VALUES IN ('A')", "ADD PARTITION C VALUES (DEFAULT)", "DEFAULT",
    ),
    "there is one for all that is above": (
        NUMBER, "RANGE (k)", "a FOR VALUES FROM (0) TO (MAXVALUE)",
        "ADD PARTITION C VALUES LESS THAN (100)", "",
    ),
    "there is a default": (
        NUMBER, "RANGE (k)", "a FOR VALUES FROM (0) TO (10); d DEFAULT",
        "ADD PARTITION C VALUES LESS THAN (100)", "",
    ),
    "it was created before": (
        NUMBER, "RANGE (k)", "a FOR VALUES FROM (0) TO (10); c FOR VALUES FROM (10) TO (20)",
        "ADD PARTITION C VALUES LESS THAN (100)", "FOR VALUES FROM ('10') TO ('20')",
    ),
    "by hash": (
        NUMBER, "HASH (k)", "a FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
        "ADD PARTITION C VALUES LESS THAN (100)", "",
    ),
}  # fmt: skip


@pytest.fixture
def target(postgres_database: str) -> Iterator[Connection]:
    with connect(postgres_database) as connection:
        ensure_ledger(connection)
        connection.execute("CREATE SCHEMA shop")
        yield connection


def make(target: Connection, column: Column, by: str, parts: str) -> None:
    kind = {2: "numeric", 12: "timestamp(0)", 1: "text"}[column.type_code]
    target.execute(f"CREATE TABLE shop.t (k {kind}) PARTITION BY {by}".encode())
    for one in filter(None, parts.split("; ")):
        name, bounds = one.split(" ", 1)
        target.execute(f"CREATE TABLE shop.t_{name} PARTITION OF shop.t {bounds}".encode())


def bound(target: Connection) -> str:
    """Of the partition C of the target; empty without it."""
    row = target.execute(
        "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 't_c'"
    ).fetchone()
    return "" if row is None else str(row[0])


def follow(
    target: Connection, database: str, column: Column, words: str, others: tuple[str, ...] = ()
) -> list[str]:
    """Carry the statement out; the reasons of what could not be done."""
    said = Statement(ALTER_TABLE, 10, "SHOP", "T", f"alter table t {words}", 1)
    steps = added_partitions([said], others)
    assert [step.partition for step in steps] == ["C"]
    table = Table("SHOP", "T", 10, None, (column,), partitions=(11, 12))
    event = SchemaEvent("SHOP.T", 500, pack_xid(1, 2, 3), 490, Evolution(tuple(steps)), table)
    settings = ApplierSettings(database, "127.0.0.1", 1, "SELECT 1", translate=step_sql)
    with capture_logs() as logged:
        assert apply_event(target, settings, event, table) is None
    return [line["reason"] for line in logged if line["log_level"] == "warning"]


@pytest.mark.parametrize("case", CASES)
def test_the_target_gets_it(target: Connection, postgres_database: str, case: str) -> None:
    column, by, parts, words, expected = CASES[case]
    make(target, column, by, parts)
    assert follow(target, postgres_database, column, words) == []
    assert bound(target) == expected


@pytest.mark.parametrize(
    ("parts", "others", "is_exact"),
    [
        ("a FOR VALUES FROM (0) TO (10)", ("A",), True),
        ("b FOR VALUES FROM (10) TO (20); a FOR VALUES FROM (0) TO (10)", ("A", "B"), True),
        ("a FOR VALUES FROM (0) TO (10)", ("A", "B"), False),
        ("a FOR VALUES FROM (0) TO (10)", ("A", ""), False),
        ("a FOR VALUES FROM (0) TO (10); high FOR VALUES FROM (10) TO (25)", ("A",), False),
        ("", ("A",), False),
    ],
)
def test_a_range_that_begins_elsewhere_does_not_hold_exactly_the_rows_of_the_sources(
    target: Connection,
    postgres_database: str,
    parts: str,
    others: tuple[str, ...],
    *,
    is_exact: bool,
) -> None:
    """Where the source's begins is in no redo: where its last partition ends."""
    make(target, NUMBER, "RANGE (k)", parts)
    words = "ADD PARTITION C VALUES LESS THAN (30)"
    assert follow(target, postgres_database, NUMBER, words, others) == []
    assert bound(target)
    table = read_table(target, "shop", "t")
    assert table is not None
    rows = PartitionRows(target, ("olr_pg", "SHOP.T"), table, DEFAULT_CHOICES)
    assert isinstance(rows.only_of(["C"], others), list) is is_exact


def test_a_table_without_partitions_stays_as_it_is(
    target: Connection, postgres_database: str
) -> None:
    target.execute("CREATE TABLE shop.t (k numeric)")
    words = "ADD PARTITION C VALUES LESS THAN (5)"
    assert follow(target, postgres_database, NUMBER, words) == []
    assert bound(target) == ""


@pytest.mark.parametrize(
    ("by", "parts", "words", "reason"),
    [
        ("LIST (k)", "a FOR VALUES IN (1)", "LESS THAN (5)", "in another way"),
        ("RANGE (k, (k + 1))", "", "LESS THAN (5)", "in another way"),
        ("RANGE ((k + 1))", "", "LESS THAN (5)", "in another way"),
        ("RANGE (k)", "a FOR VALUES FROM (0) TO (10)", "LESS THAN (5)", "PostgreSQL: "),
        ("RANGE (k)", "", "LESS THAN (MY_FUNCTION(5))", "MY_FUNCTION"),
    ],
)
def test_what_cannot_be_done_is_told_and_stops_nothing(
    target: Connection, postgres_database: str, by: str, parts: str, words: str, reason: str
) -> None:
    make(target, NUMBER, by, parts)
    found = follow(target, postgres_database, NUMBER, f"ADD PARTITION C VALUES {words}")
    assert len(found) == 1
    assert reason in found[0]
    assert bound(target) == ""


def test_a_role_that_does_not_own_the_table_is_told(
    target: Connection, postgres_database: str
) -> None:
    make(target, NUMBER, "RANGE (k)", "a FOR VALUES FROM (0) TO (10)")
    target.execute("CREATE ROLE guest; GRANT ALL ON SCHEMA olr_pg, shop TO guest")
    target.execute("GRANT ALL ON ALL TABLES IN SCHEMA olr_pg, shop TO guest; SET ROLE guest")
    words = "ADD PARTITION C VALUES LESS THAN (50)"
    try:
        (found,) = follow(target, postgres_database, NUMBER, words)
    finally:
        target.execute("RESET ROLE; DROP OWNED BY guest; DROP ROLE guest")
    assert "must be owner of table t" in found
