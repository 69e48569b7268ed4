"""Constraints and triggers of a target's tables, in PostgreSQL."""

from __future__ import annotations

import pytest

from olr_pg.applier.target.connection import connect
from olr_pg.load.cutover.constraints import Checked, check_constraints

TABLES = """
CREATE SCHEMA s;
CREATE TABLE s.parent (id int PRIMARY KEY);
CREATE TABLE s.child (id int, parent int);
ALTER TABLE s.child ADD CONSTRAINT small CHECK (id < 100) NOT VALID;
ALTER TABLE s.child ADD CONSTRAINT fk FOREIGN KEY (parent) REFERENCES s.parent NOT VALID;
INSERT INTO s.parent VALUES (1);
INSERT INTO s.child VALUES (1, 1), (2, NULL);
"""


def checked(database: str, change: str) -> Checked:
    with connect(database) as connection:
        connection.execute(TABLES.encode())
        connection.execute(change.encode())
        rows = connection.execute("SELECT 's.parent'::regclass::oid, 's.child'::regclass::oid")
        row = rows.fetchone()
        assert row is not None
        return check_constraints(connection, row)


def test_what_holds_is_validated(postgres_database: str) -> None:
    found = checked(postgres_database, "SELECT 1")
    assert found.validated == ["s.child: fk", "s.child: small"]
    assert found.problems == found.checked == found.remarks == []


def test_rows_that_break_a_constraint_are_counted(postgres_database: str) -> None:
    broken = (
        "SET session_replication_role = replica; INSERT INTO s.child VALUES (3, 7), (4, 8);"
        " SET session_replication_role = origin;"
        " ALTER TABLE s.child DROP CONSTRAINT small;"
        " UPDATE s.child SET id = 200 WHERE id = 1;"
        " ALTER TABLE s.child ADD CONSTRAINT c CHECK (id < 100) NOT VALID"
    )
    found = checked(postgres_database, broken)
    assert found.problems == [
        "s.child: c: rows violate this check",
        "s.child: fk: 2 rows refer to missing rows in s.parent",
    ]


def test_a_key_that_is_valid_in_name_only_is_found(postgres_database: str) -> None:
    broken = (
        "ALTER TABLE s.child VALIDATE CONSTRAINT fk; SET session_replication_role = replica;"
        " DELETE FROM s.parent; SET session_replication_role = origin"
    )
    assert checked(postgres_database, broken).problems == [
        "s.child: fk: 1 rows refer to missing rows in s.parent"
    ]


def test_triggers_that_do_not_fire_as_usual(postgres_database: str) -> None:
    triggers = """
        CREATE FUNCTION s.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
        CREATE TRIGGER a BEFORE INSERT ON s.child FOR EACH ROW EXECUTE FUNCTION s.f();
        CREATE TRIGGER b BEFORE INSERT ON s.child FOR EACH ROW EXECUTE FUNCTION s.f();
        ALTER TABLE s.child DISABLE TRIGGER a; ALTER TABLE s.child ENABLE ALWAYS TRIGGER b
    """
    found = checked(postgres_database, triggers)
    assert found.problems == ["s.child: trigger a is disabled"]
    assert found.remarks == ["s.child: trigger b fires always, also for replicated changes"]


def test_a_constraint_that_is_not_enforced_is_a_remark(postgres_database: str) -> None:
    with connect(postgres_database) as connection:
        if connection.info.server_version < 180_000:
            pytest.skip("PostgreSQL 18 has them")
    change = (
        "ALTER TABLE s.child ADD CONSTRAINT loose FOREIGN KEY (id) REFERENCES s.parent NOT ENFORCED"
    )
    found = checked(postgres_database, change)
    assert found.problems == []
    assert found.remarks == ["s.child: loose is NOT ENFORCED: PostgreSQL does not check it"]
