"""Single rows of a target, read and repaired by statements with parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.canonical import fields_of, image_expression, shown
from olr_pg.load.cutover_steps import DONE, forget_steps, note_step
from olr_pg.load.verification.differences import TableDifferences
from olr_pg.load.verification.digests import ComparedColumns
from olr_pg.load.verification.repair import repair
from olr_pg.load.verification.target_state import TargetState, read_state
from olr_pg.load.verification.verification import (
    DIFFERENT,
    EXTRA,
    MISSING,
    Blocks,
    RowDifference,
    VerifyTable,
    _target_rows,
)
from tests.advice import followed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from olr_pg.applier.target.catalogue import TargetTable

SCHEMA = """
CREATE SCHEMA "s%s"; CREATE TYPE "s%s"."of%b" AS ENUM ('x', 'y');
CREATE TABLE "s%s"."t%t" ("id%" int PRIMARY KEY, "Rate%" "s%s"."of%b", "a%sb" text);
INSERT INTO "s%s"."t%t" VALUES (1, 'x', 'one'), (2, 'y', 'two'), (3, 'x', 'three');
"""
LISTED = """
INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn, incomplete)
VALUES ('olr_pg', 'S.T', 's%s.t%t', 1, 4);
INSERT INTO olr_pg.incomplete (subscription, source_table, target_table, key, column_name,
    target_column, operation, commit_scn, xid, reason)
SELECT 'olr_pg', 'S.T', 's%s.t%t', jsonb_build_object('id%', n::text), 'A', 'a%sb', 'insert', 1,
    '0.0.1', 2120
FROM generate_series(1, 4) AS n
"""
ROWS = 'SELECT * FROM "s%s"."t%t" ORDER BY 1'


@pytest.fixture
def target(postgres_database: str) -> Iterator[Connection[Any]]:
    """Names with percent signs, which Oracle allows in quotes."""
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(SCHEMA)
    with connect(postgres_database) as connection:
        yield connection


def _table(connection: Connection[Any]) -> TargetTable:
    table = read_table(connection, "s%s", "t%t")
    assert table is not None
    return table


def _versions(connection: Connection[Any], ordered: bytes) -> list[int]:
    query = b"SELECT xmin::text::int8 FROM " + ordered
    return [row[0] for row in connection.execute(query)]


def test_rows_that_a_policy_may_hide_are_not_inserted_again(
    target: Connection[Any], postgres_database: str
) -> None:
    table = _table(target)
    role = f"blind_{target.info.dbname}"
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(
            f"CREATE ROLE {role} LOGIN PASSWORD 'x';"
            f'GRANT ALL ON SCHEMA "s%s" TO {role}; GRANT ALL ON "s%s"."t%t" TO {role};'
            f"GRANT CREATE ON DATABASE {target.info.dbname} TO {role};"
            f"GRANT SET ON PARAMETER session_replication_role TO {role};"
            'ALTER TABLE "s%s"."t%t" ENABLE ROW LEVEL SECURITY;'
            'CREATE POLICY p ON "s%s"."t%t" USING (false) WITH CHECK (true);'.encode()
        )
        try:
            image = image_expression(table.columns).as_string()
            (row,) = connection.execute(
                f'SELECT {image} FROM "s%s"."t%t" AS t WHERE "id%" = 1'.encode()
            ).fetchall()
            columns = table.columns
            found = TableDifferences(
                "S.T", "s%s", "t%t", tuple(column.name for column in columns),
                tuple(column.base_oid for column in columns), table.key,
                [RowDifference(MISSING, b"", bytes(row[0]), None)], TargetState(),
            )  # fmt: skip
            string = make_conninfo(postgres_database, user=role, password="x")
            settings = ApplierSettings(string, "", 0, "")
            with pytest.raises(OlrPgError) as refused:
                list(repair(settings, [found]))
            assert refused.value.code == Code.LEDGER_MISSING  # it creates none
            with connect(string, replica=None) as own:
                ensure_ledger(own)
            with pytest.raises(OlrPgError) as refused:
                list(repair(settings, [found]))
            assert refused.value.code == Code.TARGET_ROW_SECURITY
            assert connection.execute(ROWS.encode()).rowcount == 3
        finally:
            connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def test_rows_are_repaired_whatever_the_names(
    target: Connection[Any], postgres_database: str
) -> None:
    table = _table(target)
    image = image_expression(table.columns).as_string()
    query = f'SELECT {image} FROM "s%s"."t%t" AS t ORDER BY "id%"'.encode()
    source = [bytes(row[0]) for row in target.execute(query)]
    wanted = target.execute(ROWS.encode()).fetchall()
    target.execute(b'UPDATE "s%s"."t%t" SET "a%sb" = NULL, "Rate%" = \'y\' WHERE "id%" = 1')
    target.execute(b'UPDATE "s%s"."t%t" SET "id%" = 4 WHERE "id%" = 2')
    found = [bytes(row[0]) for row in target.execute(query)]
    versions = _versions(target, b'"s%s"."t%t" ORDER BY "id%"')
    differences = [
        RowDifference(DIFFERENT, b"", source[0], found[0], version=versions[0]),
        RowDifference(MISSING, b"", source[1], None),
        RowDifference(EXTRA, b"", None, found[2], version=versions[2]),
    ]
    ensure_ledger(target)
    target.execute(LISTED)
    state = read_state(target, ("olr_pg", "S.T"), table.oid)
    file = TableDifferences(
        "S.T", "s%s", "t%t", tuple(column.name for column in table.columns),
        tuple(column.base_oid for column in table.columns), ("id%",), differences, state,
    )  # fmt: skip
    settings = ApplierSettings(postgres_database, "localhost", 1, "")
    (done,) = repair(settings, [file])
    assert done[1:] == (1, 1, 1, 0)
    # Of the rows that lacked a LOB value, those that were repaired lack it no more.
    assert target.execute("SELECT key ->> 'id%' FROM olr_pg.incomplete").fetchall() == [("3",)]
    assert target.execute("SELECT incomplete FROM olr_pg.ledger").fetchall() == [(1,)]
    assert target.execute(ROWS.encode()).fetchall() == wanted
    assert shown(target, fields_of(source[0], table.columns)) == {
        "id%": 1, "Rate%": "x", "a%sb": "one",
    }  # fmt: skip


def test_rows_that_exchanged_a_unique_value_are_repaired_and_a_table_whole_or_not_at_all(
    target: Connection[Any], postgres_database: str
) -> None:
    table = _table(target)
    image = image_expression(table.columns).as_string()
    query = f'SELECT {image}, xmin::text::int8 FROM "s%s"."t%t" AS t ORDER BY "id%"'.encode()
    wanted, source = target.execute(ROWS.encode()).fetchall(), target.execute(query).fetchall()
    target.execute(b"""
        UPDATE "s%s"."t%t" SET "a%sb" = CASE "id%" WHEN 1 THEN 'two' WHEN 2 THEN 'one' END;
        CREATE UNIQUE INDEX ON "s%s"."t%t" ("a%sb");
        ALTER TABLE "s%s"."t%t" ADD CONSTRAINT refuses CHECK ("a%sb" <> 'three')
    """)
    found = target.execute(query).fetchall()
    ensure_ledger(target)
    file = TableDifferences(
        "S.T", "s%s", "t%t", tuple(column.name for column in table.columns),
        tuple(column.base_oid for column in table.columns), ("id%",),
        [
            RowDifference(DIFFERENT, b"", bytes(here), bytes(there), version=version)
            for (here, _), (there, version) in zip(source, found, strict=True)
        ],
        read_state(target, ("olr_pg", "S.T"), table.oid),
    )  # fmt: skip
    settings = ApplierSettings(postgres_database, "localhost", 1, "")
    with pytest.raises(OlrPgError) as caught:
        list(repair(settings, [file]))
    reason = "correct the problem that PostgreSQL's reason above names, then repair again"
    followed(caught.value, Code.ROW_NOT_REPAIRABLE, reason, "This table was not changed")
    assert target.execute(query).fetchall() == found
    for altered in ({"types": (1, 2, 3)}, {"columns": ("id%", "Rate%", "dropped")}):
        with pytest.raises(OlrPgError) as caught:
            list(repair(settings, [file._replace(**altered)]))
        assert caught.value.code == Code.DIFFERENCES_FILE_UNUSABLE
    target.execute(b'ALTER TABLE "s%s"."t%t" DROP CONSTRAINT refuses')
    (done,) = repair(settings, [file])
    assert done[1:] == (0, 3, 0, 0)
    assert target.execute(ROWS.encode()).fetchall() == wanted


@pytest.mark.parametrize("event", ["INSERT", "UPDATE", "DELETE"])
def test_a_row_whose_repair_a_trigger_discards_does_not_count_as_repaired(
    target: Connection[Any], postgres_database: str, event: str
) -> None:
    ensure_ledger(target)
    table = _table(target)
    image = image_expression(table.columns).as_string()
    query = f'SELECT {image}, xmin::text::int8 FROM "s%s"."t%t" AS t ORDER BY "id%"'.encode()
    (there, version), *_ = target.execute(query).fetchall()
    if event == "INSERT":
        target.execute(b'DELETE FROM "s%s"."t%t" WHERE "id%" = 1')
        difference = RowDifference(MISSING, b"", bytes(there), None)
    elif event == "UPDATE":
        target.execute(b'UPDATE "s%s"."t%t" SET "a%sb" = NULL WHERE "id%" = 1')
        (now, version), *_ = target.execute(query).fetchall()
        difference = RowDifference(DIFFERENT, b"", bytes(there), bytes(now), version=version)
    else:
        difference = RowDifference(EXTRA, b"", None, bytes(there), version=version)
    rows = target.execute(ROWS.encode()).fetchall()
    target.execute(
        "CREATE FUNCTION discarded() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
        f'CREATE TRIGGER discards BEFORE {event} ON "s%s"."t%t" FOR EACH ROW'
        ' EXECUTE FUNCTION discarded(); ALTER TABLE "s%s"."t%t" ENABLE ALWAYS TRIGGER discards'
        .encode()
    )  # fmt: skip
    file = TableDifferences(
        "S.T", "s%s", "t%t", tuple(column.name for column in table.columns),
        tuple(column.base_oid for column in table.columns), ("id%",), [difference],
        read_state(target, ("olr_pg", "S.T"), table.oid),
    )  # fmt: skip
    with pytest.raises(OlrPgError) as caught:
        list(repair(ApplierSettings(postgres_database, "localhost", 1, ""), [file]))
    assert caught.value.code == Code.ROW_NOT_REPAIRABLE
    assert target.execute(ROWS.encode()).fetchall() == rows


CONFLICT = b"UPDATE olr_pg.ledger SET conflicts = conflicts + 1"
MOVED = b"UPDATE olr_pg.ledger SET commit_scn = 9"
REFERENCED = b'CREATE TABLE "s%s".child (parent int REFERENCES "s%s"."t%t"); '


@pytest.mark.parametrize(
    ("kind", "before", "meanwhile", "outcome"),
    [
        # The source has changed the row to the value that the target had, as a status that flips.
        (DIFFERENT, b"", b'UPDATE "s%s"."t%t" SET "a%sb" = "a%sb" WHERE "id%" = 1', "left"),
        (DIFFERENT, b"", MOVED, "updated"),
        (DIFFERENT, b"", CONFLICT, "left"),
        # The source has set a LOB value that the redo lacks, and nothing else.
        (DIFFERENT, b"", b"UPDATE olr_pg.incomplete SET commit_scn = 2", "left"),
        # The source has inserted this row, and the conflict policy has kept it.
        (EXTRA, b"", CONFLICT, "left"),
        (EXTRA, b"", MOVED, "deleted"),
        # The source has deleted the missing row: the delete was a conflict, or it was a TRUNCATE.
        (MISSING, b"", CONFLICT, "left"),
        (MISSING, b"", b'TRUNCATE "s%s"."t%t"', "left"),
        (MISSING, b"", MOVED, "inserted"),
        # The inserted row would lack the value of the new column.
        (MISSING, b"", b'ALTER TABLE "s%s"."t%t" ADD added int DEFAULT 7', "left"),
        # PostgreSQL does not truncate this table: the applier deletes its rows.
        (MISSING, REFERENCED, b'DELETE FROM "s%s"."t%t"; ' + MOVED, "left"),
        (MISSING, REFERENCED, b'DELETE FROM "s%s"."t%t" WHERE "id%" = 2', "inserted"),
    ],
)
def test_a_row_is_left_if_replication_may_have_changed_it_since(
    target: Connection[Any],
    postgres_database: str,
    kind: str,
    before: bytes,
    meanwhile: bytes,
    outcome: str,
) -> None:
    """Also if the row looks as it did during the comparison."""
    target.execute(before)
    table = _table(target)
    image = image_expression(table.columns).as_string()
    query = f'SELECT {image} FROM "s%s"."t%t" AS t ORDER BY "id%"'.encode()
    (source, *_) = [bytes(row[0]) for row in target.execute(query)]
    target.execute(
        b'DELETE FROM "s%s"."t%t" WHERE "id%" = 1'
        if kind == MISSING
        else b'UPDATE "s%s"."t%t" SET "a%sb" = NULL WHERE "id%" = 1'
    )
    found = next(bytes(row[0]) for row in target.execute(query))
    version = _versions(target, b'"s%s"."t%t" ORDER BY "id%"')[0]
    difference = {
        DIFFERENT: RowDifference(DIFFERENT, b"", source, found, version=version),
        EXTRA: RowDifference(EXTRA, b"", None, found, version=version),
        MISSING: RowDifference(MISSING, b"", source, None),
    }[kind]
    ensure_ledger(target)
    target.execute(LISTED)
    file = TableDifferences(
        "S.T", "s%s", "t%t", tuple(column.name for column in table.columns),
        tuple(column.base_oid for column in table.columns), ("id%",), [difference],
        read_state(target, ("olr_pg", "S.T"), table.oid),
    )  # fmt: skip
    target.execute(meanwhile)
    target.execute("UPDATE olr_pg.ledger SET empty_at = 0")
    rows = target.execute(ROWS.encode()).fetchall()
    (done,) = repair(ApplierSettings(postgres_database, "localhost", 1, ""), [file])
    assert getattr(done, outcome) == 1
    assert sum(done[1:]) == 1
    assert (target.execute(ROWS.encode()).fetchall() == rows) == (outcome == "left")
    # The number of rows does not follow from the ledger if a row was inserted or deleted.
    is_known = target.execute("SELECT empty_at IS NOT NULL FROM olr_pg.ledger").fetchone()
    assert is_known == (outcome not in ("inserted", "deleted"),)


def test_nothing_is_repaired_after_a_cutover(
    target: Connection[Any], postgres_database: str
) -> None:
    """The applications have written the rows of the target that the source lacks."""
    ensure_ledger(target)
    settings = ApplierSettings(postgres_database, "localhost", 1, "")
    note_step(target, settings.subscription, "quiet", DONE, {"scn": 1})
    table = _table(target)
    image = image_expression(table.columns).as_string()
    (row,) = target.execute(f'SELECT {image} FROM "s%s"."t%t" AS t WHERE "id%" = 1'.encode())
    version = _versions(target, b'"s%s"."t%t" WHERE "id%" = 1')[0]
    file = TableDifferences(
        "S.T", "s%s", "t%t", tuple(column.name for column in table.columns),
        tuple(column.base_oid for column in table.columns), ("id%",),
        [RowDifference(EXTRA, b"", None, bytes(row[0]), version=version)],
        read_state(target, (settings.subscription, "S.T"), table.oid),
    )  # fmt: skip
    note_step(target, settings.subscription, "report", DONE, {})
    with pytest.raises(OlrPgError) as refused:
        list(repair(settings, [file]))
    assert refused.value.code == Code.TARGET_IN_USE
    forget_steps(target, settings.subscription)  # `olr-pg cutover --restart`
    assert [one.deleted for one in repair(settings, [file])] == [1]


def test_an_identity_column_that_differs_is_not_called_repaired(
    target: Connection[Any], postgres_database: str
) -> None:
    target.execute(
        b'CREATE TABLE "s%s".i (id int PRIMARY KEY, "n%" int GENERATED ALWAYS AS IDENTITY, v text);'
        b"INSERT INTO \"s%s\".i OVERRIDING SYSTEM VALUE VALUES (1, 10, 'one'), (2, 20, 'two')"
    )
    table = read_table(target, "s%s", "i")
    assert table is not None
    image = image_expression(table.columns).as_string()
    query = f'SELECT {image} FROM "s%s".i AS t ORDER BY id'.encode()
    source = [bytes(row[0]) for row in target.execute(query)]
    target.execute(b'UPDATE "s%s".i SET v = NULL')
    target.execute(b'DELETE FROM "s%s".i WHERE id = 1')
    target.execute(b'INSERT INTO "s%s".i OVERRIDING SYSTEM VALUE VALUES (1, 11, NULL)')
    found = [bytes(row[0]) for row in target.execute(query)]
    versions = _versions(target, b'"s%s".i ORDER BY id')
    rows = [
        RowDifference(DIFFERENT, b"", ours, theirs, version=version)
        for ours, theirs, version in zip(source, found, versions, strict=True)
    ]
    ensure_ledger(target)
    names, types = zip(*((c.name, c.base_oid) for c in table.columns), strict=True)
    settings = ApplierSettings(postgres_database, "localhost", 1, "")

    def repaired(*rows: RowDifference) -> int:
        state = read_state(target, ("olr_pg", "S.I"), table.oid)
        one = TableDifferences("S.I", "s%s", "i", names, types, ("id",), list(rows), state)
        return next(repair(settings, [one])).updated

    assert repaired(rows[1]) == 1  # it differs in other columns only
    with pytest.raises(OlrPgError) as caught:
        repaired(*rows)
    assert caught.value.code == 5114
    statement = caught.value.detail.partition("Run ")[2].partition(", then repair")[0]
    target.execute(statement.encode())
    assert repaired(rows[0]) == 1
    assert target.execute(b'SELECT * FROM "s%s".i ORDER BY id').fetchall() == [
        (1, 10, "one"),
        (2, 20, "two"),
    ]


def test_rows_are_read_whatever_the_names(target: Connection[Any]) -> None:
    table = _table(target)
    one: Any = VerifyTable(None, table, chunks=1, sampled=1)  # type: ignore[arg-type]
    compared = ComparedColumns(table.columns, (0,), keyed=True)
    rows = list(_target_rows(target, one, compared, Blocks(0, None), np.array([0])))
    assert len(rows) == 3
