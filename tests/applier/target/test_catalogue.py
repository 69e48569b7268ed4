"""Target tables as the catalogue has them: unusual ones, and those that are created."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from olr_pg.applier.statements.target_plan import plan_table
from olr_pg.applier.target.catalogue import find_tables, missing_table
from olr_pg.applier.target_checks import check_target
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import OlrPgError

Replication = Any  # tests/applier/conftest.py


def _table(replication: Replication, table: str = "s.t") -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = replication.rows(f"SELECT * FROM {table} ORDER BY 1")
    return rows


def test_generated_and_identity_columns(replication: Replication) -> None:
    r = replication
    r.execute(
        "CREATE TABLE s.g (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int,"
        " ndouble int GENERATED ALWAYS AS (n * 2) STORED)"
    )
    r.transaction(r.insert({"ID": 7, "N": 1, "NDOUBLE": 99}, "G"))
    r.transaction(r.insert({"ID": 8, "N": 2}, "G"), r.update({"ID": 7}, {"N": 5, "ID": 7}, "G"))
    r.apply(batch_changes=1)
    assert _table(r, "s.g") == [(7, 5, 10), (8, 2, 4)]


def test_created_tables(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1, "V": "x", "Mixed": "y"}, "NEW"))
    r.apply(create_tables=True, schema_names={"S": "fresh"})
    assert _table(r, "fresh.new") == [(1, "x", "y")]
    columns = r.rows(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'fresh.new'::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert columns == [("id", "numeric"), ("v", "text"), ("Mixed", "text")]


def test_created_from_the_source_dictionary(replication: Replication) -> None:
    r = replication
    columns = (
        Column("ID", 1, 1, 1, 2, 22, 9, 0, nullable=False),
        Column("V", 2, 2, 2, 1, 30, charset_id=873, charset_form=1, nullable=False),
        Column("HIDDEN", 3, 3, 0, 2, 22, hidden=True),
        Column("D", 4, 4, 3, 12, 7),
    )
    known = Table("S", "MADE", 1, 1, columns, key_kind=KeyKind.PRIMARY, key=(1,))
    empty = replace(known, name="EMPTY")
    r.transaction(r.insert({"ID": 1, "V": "x"}, "MADE"), r.update({"ID": 1}, {"V": "y"}, "MADE"))
    r.apply([known, empty], create_tables=True)
    assert _table(r, "s.made") == [(1, "y", None)]
    assert _table(r, "s.empty") == []
    made = r.rows(
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute"
        " WHERE attrelid = 's.made'::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert made == [
        ("id", "integer", True),
        ("v", "character varying(30)", True),
        ("d", "timestamp(0) without time zone", False),
    ]
    r.transaction(r.delete({"ID": 1}, "MADE"))
    r.serve()
    r.apply([known, empty])
    assert _table(r, "s.made") == []


def test_unusual_targets(replication: Replication) -> None:
    """Dropped and further columns, another order, domains, partitions, reserved names."""
    r = replication
    r.execute(
        "CREATE DOMAIN s.name AS varchar(30) CHECK (value <> 'bad');"
        "CREATE TABLE s.u (gone int, \"limit\" s.name, extra text DEFAULT 'own', id bigint,"
        " n numeric(10, 2), PRIMARY KEY (id)) PARTITION BY RANGE (id);"
        "CREATE TABLE s.u1 PARTITION OF s.u FOR VALUES FROM (0) TO (10);"
        "CREATE TABLE s.u2 PARTITION OF s.u FOR VALUES FROM (10) TO (99);"
        "ALTER TABLE s.u DROP gone"
    )
    r.transaction(*(r.insert({"ID": i, "LIMIT": str(i), "N": i}, "U") for i in (1, 2, 3, 20)))
    r.transaction(
        r.update({"ID": 1, "LIMIT": "1", "N": 1}, {"ID": 11}, "U"),
        r.update({"ID": 2}, {"LIMIT": None}, "U"),
        r.delete({"ID": 20}, "U"),
    )
    r.transaction(r.update({"ID": 3}, {"ID": 13, "N": 7}, "U"))
    r.apply(batch_changes=1)
    assert r.rows('SELECT id, "limit", n, extra FROM s.u ORDER BY 1') == [
        (2, None, 2, "own"),
        (11, "1", 1, "own"),
        (13, "3", 7, "own"),
    ]


def test_partitioned_table_without_a_key(replication: Replication) -> None:
    r = replication
    r.execute(
        "CREATE TABLE s.p (n int, v text) PARTITION BY RANGE (n);"
        "CREATE TABLE s.p1 PARTITION OF s.p FOR VALUES FROM (0) TO (10);"
        "CREATE TABLE s.p2 PARTITION OF s.p FOR VALUES FROM (10) TO (20)"
    )
    r.transaction(*(r.insert({"N": n, "V": "x"}, "P") for n in (1, 11)))
    r.transaction(r.delete({"N": 11, "V": "x"}, "P"), r.update({"N": 1, "V": "x"}, {"N": 12}, "P"))
    r.apply()
    assert _table(r, "s.p") == [(12, "x")]


def test_what_is_in_the_place_of_a_missing_table(replication: Replication) -> None:
    r = replication
    r.execute('CREATE VIEW s.r AS SELECT 1 AS id; CREATE SCHEMA "S"; CREATE TABLE "S"."U" (id int)')
    column = Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0, nullable=False)

    def told(name: str, *, create_tables: bool) -> list[tuple[str, str]]:
        table = Table("S", name, 1, 1, (column,), key_kind=KeyKind.PRIMARY, key=(1,))
        found = check_target(r.settings(create_tables=create_tables), [table])
        return [(one.severity.name, one.what.partition(": ")[2]) for one in found]

    for create_tables in (True, False):
        assert told("R", create_tables=create_tables) == [("ERROR", "s.r is a view, not a table")]
    beside = 's.u does not exist; there is "S"."U"'
    assert told("U", create_tables=False) == [("ERROR", beside)]
    assert told("U", create_tables=True) == [
        ("WARNING", f"{beside}; olr_pg would create another table in addition")
    ]
    assert told("V", create_tables=True) == []
    with psycopg.connect(r.target) as connection:
        names = [("x", "t"), ("S", "U"), ("s", "r"), ("s", "t"), ("S", "u"), ("s", "%")]
        assert find_tables(connection, names).keys() == {("S", "U"), ("s", "t")}
        assert find_tables(connection, []) == {}
        error = missing_table(connection, "s", "r", "S.R")
    assert (
        str(error) == "OLR-05005: a target table is missing: s.r is a view, not a table [table S.R]"
    )


def test_a_table_that_had_rows_is_not_made_again_empty(replication: Replication) -> None:
    r = replication
    settings = r.settings(create_tables=True)
    r.transaction(r.insert({"ID": 1, "N": 1, "V": "v"}))
    r.apply(create_tables=True)
    r.execute("ALTER TABLE s.t RENAME TO away")
    r.transaction(r.insert({"ID": 2, "N": 2, "V": "v"}))
    with pytest.raises(OlrPgError, match="OLR-05005"):
        r.apply(create_tables=True)
    ((code, message),) = r.rows("SELECT code, message FROM olr_pg.error")
    assert (code, message) == (
        5005,
        "s.t does not exist any more, although olr_pg has applied rows to it",
    )
    assert r.rows("SELECT to_regclass('s.t')") == [(None,)]
    r.execute("ALTER TABLE s.away RENAME TO t")
    r.apply(create_tables=True)
    assert r.rows("SELECT id FROM s.t ORDER BY id") == [(1,), (2,)]
    # Who loads it anew may have it made.
    with psycopg.connect(r.target, autocommit=True) as connection:
        connection.execute("DROP TABLE s.t")
        id_ = Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0, nullable=False)
        table = Table("S", "T", 1, 1, (id_,))
        with pytest.raises(OlrPgError) as caught:
            plan_table(connection, settings, table, table)
        assert "olr-pg initial-load --anew --table S.T" in caught.value.action
        (told,) = check_target(settings, [table])
        assert (
            told.what == "S.T: s.t does not exist any more, although olr_pg has applied rows to it"
        )
        assert plan_table(connection, settings, table, table, begins=True).target.name == "t"


def test_a_similar_name_is_found_whatever_letters_the_locale_pairs(postgres: str) -> None:
    """In Turkish, the small letter of I is no i."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        try:
            connection.execute(
                "CREATE DATABASE turkish TEMPLATE template0 LOCALE_PROVIDER icu"
                " ICU_LOCALE 'tr-TR' LOCALE 'C'"
            )
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("this server has no ICU")
        try:
            with psycopg.connect(make_conninfo(postgres, dbname="turkish")) as turkish:
                turkish.execute("CREATE SCHEMA shop; CREATE TABLE shop.titles ()")
                assert 'there is "shop"."titles"' in str(
                    missing_table(turkish, "shop", "TITLES", "SHOP.TITLES")
                )
        finally:
            connection.execute("DROP DATABASE turkish WITH (FORCE)")
