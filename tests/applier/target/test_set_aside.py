"""A role that may not set session_replication_role: what fires is set aside, and put back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.applier.settings import TriggerHandling
from olr_pg.applier.statements.target_plan import plan_table
from olr_pg.applier.stopped.column_check import TargetAlteredError, TargetShape
from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.set_aside import (
    Firing,
    firing_on,
    noted,
    put_back,
    set_aside,
    validate_foreign_keys,
)
from olr_pg.errors import Code, OlrPgError
from tests.advice import followed
from tests.applier.seen import fails, rows
from tests.applier.test_target_checks import table_r

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

Replication = Any  # tests/applier/conftest.py

TABLE = replace(table_r(), name="T")
DISABLE = TriggerHandling.DISABLE
FIRING = """
CREATE FUNCTION s.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''fired''; END';
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE ON s.t FOR EACH ROW
    EXECUTE FUNCTION s.refuse();
CREATE TRIGGER off BEFORE INSERT ON s.t FOR EACH ROW EXECUTE FUNCTION s.refuse();
ALTER TABLE s.t DISABLE TRIGGER off;
CREATE TRIGGER copied BEFORE INSERT ON s.t FOR EACH ROW EXECUTE FUNCTION s.refuse();
ALTER TABLE s.t ENABLE REPLICA TRIGGER copied;
CREATE RULE keep AS ON DELETE TO s.t DO INSTEAD NOTHING;
CREATE TABLE s.child (t_id bigint CONSTRAINT of_t REFERENCES s.t ON DELETE CASCADE);
COMMENT ON CONSTRAINT of_t ON s.child IS 'of a parent';
"""
SET_ASIDE = [
    ("foreign key", "child", "of_t"),
    ("rule", "t", "keep"),
    ("trigger", "t", "refuse"),
]


@pytest.fixture
def managed(replication: Replication) -> Iterator[str]:
    """The connection string of a role that owns its tables, and may nothing else."""
    r = replication
    r.execute("CREATE ROLE managed LOGIN PASSWORD 'secret'")
    r.execute(FIRING)
    database = psycopg.conninfo.conninfo_to_dict(r.target)["dbname"]
    r.execute(f'GRANT CREATE ON DATABASE "{database}" TO managed')
    for what in ("SCHEMA s", "TABLE s.t", "TABLE s.child", "FUNCTION s.refuse"):
        r.execute(f"ALTER {what} OWNER TO managed")
    try:
        yield psycopg.conninfo.make_conninfo(r.target, user="managed", password="secret")
    finally:
        r.execute("DROP OWNED BY managed CASCADE; DROP ROLE managed")


def firing(connection: Connection[Any], schema: str, name: str) -> list[Firing]:
    return firing_on(connection, [(schema, name)]).get((schema, name), [])


def titles(connection: Connection[Any]) -> list[tuple[str, str, str]]:
    return [(one.kind, one.table, one.name) for one in noted(connection, "olr_pg")]


def test_what_fires_is_set_aside_before_the_first_row_and_put_back(
    replication: Replication, managed: str
) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1}), r.insert({"ID": 2}), r.insert({"ID": 3}))
    assert fails(r, connect_string=managed).code == Code.TARGET_PRIVILEGE
    r.serve()
    r.apply([TABLE], connect_string=managed, triggers=DISABLE)
    r.execute("INSERT INTO s.child VALUES (1), (2)")
    with connect(managed, replica=False) as connection:
        assert titles(connection) == SET_ASIDE
        assert firing(connection, "s", "t") == []

    r.transaction(r.update({"ID": 3}, {"N": 7}), r.delete({"ID": 1}))
    r.serve()
    r.apply([TABLE], connect_string=managed, triggers=DISABLE)
    assert rows(r) == [(2, None, None), (3, 7, None)]
    assert rows(r, "s.child") == [(1,), (2,)]

    with connect(managed, replica=False) as connection:
        back = put_back(connection, "olr_pg")
        assert [(one.kind, one.table, one.name) for one in back.done] == SET_ASIDE
        assert (back.lost, back.gone, titles(connection)) == ([], [], [])
        assert [one.name for one in firing(connection, "s", "t")] == ["of_t", "keep", "refuse"]
        (broken,) = validate_foreign_keys(connection, back.done)
        assert "of_t" in broken
        connection.execute("DELETE FROM s.child WHERE t_id = 1")
        assert validate_foreign_keys(connection, back.done) == []
        with pytest.raises(psycopg.errors.RaiseException, match="fired"):
            connection.execute("UPDATE s.t SET n = 1")
    assert r.rows("SELECT tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1") == [
        ("copied", "R"),
        ("off", "D"),
        ("refuse", "O"),
    ]
    assert r.rows(
        "SELECT confdeltype, obj_description(oid, 'pg_constraint') FROM pg_constraint"
        " WHERE conname = 'of_t'"
    ) == [("c", "of a parent")]


def test_unique_keys_are_checked_when_all_of_a_transaction_is_applied(
    replication: Replication, managed: str
) -> None:
    """One statement of Oracle can give rows the values of others. The applier may need several
    statements for its changes: here, since one of them is alone in giving a row another key.
    """
    r = replication
    r.execute("ALTER TABLE s.t ADD CONSTRAINT t_uk UNIQUE (n) DEFERRABLE")
    r.transaction(r.insert({"ID": 1, "N": 1}), r.insert({"ID": 2, "N": 2}))
    r.serve()
    r.apply([TABLE], connect_string=managed, triggers=DISABLE)
    r.transaction(
        r.update({"ID": 1}, {"N": 2}), r.update({"ID": 2}, {"ID": 5}), r.update({"ID": 5}, {"N": 1})
    )
    r.serve()
    r.apply([TABLE], connect_string=managed, triggers=DISABLE)
    assert rows(r) == [(1, 2, None), (5, 1, None)]
    with psycopg.connect(r.target) as connection, pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute("INSERT INTO s.t (id, n) VALUES (9, 1)")


def test_what_comes_later_stops_the_table_until_it_is_set_aside_too(
    replication: Replication, managed: str
) -> None:
    r = replication
    settings = r.settings(connect_string=managed, triggers=DISABLE)
    r.apply([TABLE], connect_string=managed, triggers=DISABLE)
    with connect(managed, replica=False) as connection:
        target = read_table(connection, "s", "t")
        assert target is not None
        shape = TargetShape(target, is_quiet=True)
        shape.check(connection)
        connection.execute("ALTER TABLE s.t ENABLE TRIGGER off")
        with pytest.raises(TargetAlteredError):
            shape.check(connection)
        TargetShape(target).check(connection)
        with pytest.raises(OlrPgError) as caught:
            plan_table(connection, settings, TABLE, TABLE)
        followed(caught.value, Code.TARGET_FIRES, "restart the appliance")
        assert "trigger off of s.t" in str(caught.value)
    r.transaction(r.insert({"ID": 1}))
    r.serve()
    r.apply([TABLE], connect_string=managed, triggers=DISABLE)
    assert rows(r) == [(1, None, None)]


def test_a_kill_leaves_all_or_nothing(replication: Replication, managed: str) -> None:
    r = replication
    settings = r.settings(connect_string=managed, triggers=DISABLE)
    r.apply((), connect_string=managed, triggers=DISABLE)
    with connect(managed, replica=False) as connection:
        before = firing(connection, "s", "t")
        with connect(managed, replica=False) as killed:
            killed.execute("BEGIN")
            set_aside(killed, settings, [("s", "t")])
            assert firing(killed, "s", "t") == []
            killed.close()
        assert firing(connection, "s", "t") == before
        assert titles(connection) == []


def test_only_an_owner_may_set_aside(replication: Replication, managed: str) -> None:
    r = replication
    r.execute("ALTER TABLE s.child OWNER TO CURRENT_USER")
    r.transaction(r.insert({"ID": 1}))
    r.serve()
    with pytest.raises(OlrPgError) as caught:
        r.apply([TABLE], connect_string=managed, triggers=DISABLE)
    assert caught.value.code == Code.TARGET_PRIVILEGE
    with connect(managed, replica=False) as connection:
        assert titles(connection) == []
        assert len(firing(connection, "s", "t")) == 3


def test_partitions_and_what_nobody_needs_any_more(replication: Replication, managed: str) -> None:
    r = replication
    r.apply((), connect_string=managed, triggers=DISABLE)
    settings = r.settings(connect_string=managed, triggers=DISABLE)
    with connect(managed, replica=False) as connection:
        connection.execute(
            "CREATE TABLE s.p (id int, t_id bigint REFERENCES s.t) PARTITION BY LIST (id);"
            "CREATE TABLE s.p1 PARTITION OF s.p FOR VALUES IN (1);"
            "CREATE TRIGGER of_part BEFORE INSERT ON s.p1 FOR EACH ROW EXECUTE FUNCTION s.refuse();"
            "CREATE TRIGGER whole AFTER INSERT ON s.p FOR EACH ROW EXECUTE FUNCTION s.refuse()"
        )
        done = set_aside(connection, settings, [("s", "p"), ("s", "nowhere")])
        assert [(one.table, one.name) for one in done] == [
            ("p", "p_t_id_fkey"),
            ("p", "whole"),
            ("p1", "of_part"),
        ]
        connection.execute("INSERT INTO s.p VALUES (1, 99)")
        connection.execute("DROP TRIGGER of_part ON s.p1")
        back = put_back(connection, "olr_pg")
        assert [one.name for one in back.done + back.gone if one.table == "p1"] == ["of_part"]
        # PostgreSQL looks at the rows of a partitioned table at once, or validates them later.
        assert back.lost or validate_foreign_keys(connection, back.done)
        connection.execute("DELETE FROM s.p")
        again = put_back(connection, "olr_pg")
        assert again.lost == []
        assert titles(connection) == []
        assert [one.name for one in firing(connection, "s", "p")] == ["p_t_id_fkey", "whole"]


def test_each_partition_keeps_its_state_of_a_trigger(
    replication: Replication, managed: str
) -> None:
    r = replication
    r.apply((), connect_string=managed, triggers=DISABLE)
    settings = r.settings(connect_string=managed, triggers=DISABLE)
    states = (
        "SELECT tgrelid::regclass::text, tgname, tgenabled FROM pg_trigger"
        " WHERE tgname IN ('whole', 'partly') ORDER BY 1, 2"
    )
    with connect(managed, replica=False) as connection:
        connection.execute(
            "CREATE TABLE s.p (id int) PARTITION BY LIST (id);"
            "CREATE TABLE s.p1 PARTITION OF s.p FOR VALUES IN (1);"
            "CREATE TABLE s.p2 PARTITION OF s.p FOR VALUES IN (2);"
            "CREATE TRIGGER whole BEFORE INSERT ON s.p FOR EACH ROW EXECUTE FUNCTION s.refuse();"
            "CREATE TRIGGER partly BEFORE INSERT ON s.p FOR EACH ROW EXECUTE FUNCTION s.refuse();"
            "ALTER TABLE s.p1 DISABLE TRIGGER whole;"
            "ALTER TABLE s.p2 ENABLE ALWAYS TRIGGER whole;"
            "ALTER TABLE ONLY s.p DISABLE TRIGGER partly; ALTER TABLE s.p2 DISABLE TRIGGER partly"
        )
        before = connection.execute(states).fetchall()
        done = set_aside(connection, settings, [("s", "p")])
        assert [(one.table, one.name) for one in done] == [("p", "whole"), ("p1", "partly")]
        assert [row for row in connection.execute(states) if row[2] != "D"] == [
            ("s.p2", "whole", "A")
        ]
        connection.execute("INSERT INTO s.p VALUES (1)")
        connection.execute("CREATE TABLE s.p3 PARTITION OF s.p FOR VALUES IN (3)")
        connection.execute("INSERT INTO s.p VALUES (3)")
        assert put_back(connection, "olr_pg").lost == []
        after = connection.execute(states).fetchall()
        assert [row for row in after if row[0] != "s.p3"] == before
        assert ("s.p3", "whole", "O") in after
        assert titles(connection) == []


def test_a_foreign_key_means_the_same_table_whatever_the_search_path(
    replication: Replication, managed: str
) -> None:
    r = replication
    r.apply((), connect_string=managed, triggers=DISABLE)
    settings = r.settings(connect_string=managed, triggers=DISABLE)
    refers = "SELECT confrelid::regclass::text FROM pg_constraint WHERE conname = 'of_t'"
    with connect(managed, replica=False) as connection:
        connection.execute("SET search_path = s")
        set_aside(connection, settings, [("s", "t")])
        assert connection.execute("SHOW search_path").fetchone() == ("s",)
    with connect(managed, replica=False) as connection:
        connection.execute("CREATE SCHEMA other; CREATE TABLE other.t (id bigint PRIMARY KEY)")
        connection.execute("SET search_path = other")
        assert put_back(connection, "olr_pg").lost == []
        assert connection.execute(refers).fetchall() == [("s.t",)]
