"""What report and doctor say of a way back; Oracle is a stand-in that takes SQL."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import oracledb
import psycopg
import pytest
from psycopg import sql
from pydantic import SecretStr
from typer.testing import CliRunner

from olr_pg.cli.main import make_app
from olr_pg.config.port_sections import Fallback
from olr_pg.config.reading import load_config
from olr_pg.config.table_patterns import LEDGER
from olr_pg.fallback.oracle_values import ValueSettings
from olr_pg.fallback.value_report import TableReport, Unfit, report_lines, report_values
from olr_pg.fallback.way_back_checks import check_ledger_known, check_way_back, slot_state
from olr_pg.load import sources
from olr_pg.load.cutover.cut_back import ways_back
from olr_pg.observability.findings import Finding, Severity
from olr_pg.postgres.bounded_connection import BoundedConnection
from olr_pg.simulator.sql import database
from tests.fallback.made_way import way_document, write_document
from tests.postgres.pooled import NEEDS_PGBOUNCER, pooled
from tests.proving.served import Served, served_source
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ORACLE: Final = (
    """CREATE TABLE items (id NUMBER(9) PRIMARY KEY, name VARCHAR2(5) NOT NULL,
        note VARCHAR2(10), price NUMBER(7,2), made DATE, flag CHAR(1))""",
    "CREATE TABLE plain (id NUMBER(4) PRIMARY KEY)",
    "INSERT INTO items VALUES (1, 'one', NULL, 1.5, DATE '2024-01-01', 'Y')",
)
POSTGRES: Final = """
CREATE SCHEMA app;
CREATE TABLE app.items (id int PRIMARY KEY, name text, note text, price numeric,
    made timestamp, flag boolean, extra int);
CREATE TABLE app.plain (id smallint PRIMARY KEY);
INSERT INTO app.items VALUES
    (1, 'one', 'x', 1.5, '2024-01-01', true, 1),
    (2, '', '', 1.555, 'infinity', false, 1),
    (3, NULL, 'far too long a note', 123456.7, '2024-01-01 00:00:00.5', NULL, 1),
    (4, 'longer', NULL, 'NaN', '20000-01-01', NULL, 1);
INSERT INTO app.plain SELECT generate_series(1, 5);
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_source(tmp_path_factory.mktemp("way-back")) as made:
        for statement in ORACLE:
            made.execute(statement)
        yield made


@pytest.fixture
def target(postgres_database: str) -> str:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(POSTGRES)
    return postgres_database


def config_file(served: Served, target: str, **fallback: Any) -> Path:
    """Write a configuration; Oracle lacks one column."""
    types = {"boolean": ["CHAR(1)"]}
    data = served.folder / "data"
    document = way_document(served, data, target, "items", "plain", types=types)
    document["fallback"].update(fallback)
    return write_document(document, served.folder / "way-back.json")


def reported(path: Path, *, count: bool = True) -> dict[str, TableReport]:
    config = load_config(path)
    assert config.fallback is not None
    assert config.apply is not None
    string = config.apply.connect_string.get_secret_value()
    with psycopg.connect(string) as connection, sources.open_tables(config) as source:
        settings = sources.target_settings(config, source.snapshot, string)
        values = ValueSettings.of(config.fallback.policies, config.apply, source.snapshot.database)
        tables, omits = source.choose(()), config.fallback.omits
        found = report_values(connection, tables, settings, values, count=count, omits=omits)
        return {one.name: one for one in found}


def unfit(table: TableReport) -> dict[str, set[Unfit]]:
    found = {one.name: {each for each in one.unfit if each.rows != 0} for one in table.columns}
    return {name: each for name, each in found.items() if each}


def test_the_report_counts_what_does_not_fit(served: Served, target: str) -> None:
    found = reported(config_file(served, target))
    items = found["APP.ITEMS"]
    assert items.rows == 4
    (extra,) = (one for one in items.columns if one.name == "extra")
    assert "`fallback.omit-columns`" in extra.error
    assert unfit(items) == {
        "NAME": {("empty-text", "refuse", 1), ("length", "refuse", 1), ("not-null", "refuse", 1)},
        "NOTE": {("empty-text", "null", 1), ("length", "refuse", 1)},
        "PRICE": {("digits", "refuse", 2), ("infinity", "refuse", 1)},
        "MADE": {("infinity", "refuse", 1), ("fraction", "refuse", 1), ("years", "refuse", 1)},
    }
    assert not items.is_ready
    (flag,) = (one for one in items.columns if one.name == "FLAG")
    assert "true becomes Y, and false becomes N" in flag.note
    plain = found["APP.PLAIN"]
    assert (plain.rows, plain.is_ready, unfit(plain)) == (5, True, {})


def test_the_policies_decide_what_is_refused(served: Served, target: str) -> None:
    policies = {"empty-text": "blank", "length": "cut", "digits": "cut", "infinity": "null",
                "years": "null", "fraction": "cut"}  # fmt: skip
    with psycopg.connect(target) as connection:
        connection.execute("UPDATE app.items SET name = 'x' WHERE name IS NULL")
        connection.execute("UPDATE app.items SET price = 1.234 WHERE id = 3")
    more: dict[str, Any] = {"policies": policies, "omit-columns": ["APP.*.extra"]}
    found = reported(config_file(served, target, **more))
    assert all(one.is_ready for one in found.values())
    assert found["APP.ITEMS"].own == ("extra",)
    assert unfit(found["APP.ITEMS"])["PRICE"] == {("digits", "cut", 2), ("infinity", "null", 1)}


def test_without_counting_nothing_is_read(served: Served, target: str) -> None:
    items = reported(config_file(served, target), count=False)["APP.ITEMS"]
    assert items.rows is None
    (name,) = (one for one in items.columns if one.name == "NAME")
    assert ("length", "refuse", None) in {tuple(one) for one in name.unfit}


def test_a_table_that_is_missing_is_named(served: Served, target: str) -> None:
    with psycopg.connect(target) as connection:
        connection.execute("DROP TABLE app.plain; ALTER TABLE app.items DROP COLUMN note")
    found = reported(config_file(served, target))
    assert "does not exist" in found["APP.PLAIN"].error
    note = next(one for one in found["APP.ITEMS"].columns if one.name == "NOTE")
    assert "has no note" in note.error
    lines = list(report_lines(list(found.values())))
    assert lines[-1] == "values that the way back would reject: in 2 of 2 tables"


def test_the_command_ends_with_1_where_something_is_refused(served: Served, target: str) -> None:
    arguments = ["fallback", "report", "--config", str(config_file(served, target)), "--json"]
    found = CliRunner().invoke(make_app(["fallback"]), arguments)
    assert found.exit_code == 1
    document = json.loads(found.stdout)
    assert (document["ready"], len(document["tables"])) == (False, 2)
    with psycopg.connect(target) as connection:
        connection.execute("DELETE FROM app.items WHERE id > 1")
    assert CliRunner().invoke(make_app(["fallback"]), arguments[:-1]).exit_code == 1
    config_file(served, target, **{"omit-columns": ["*.EXTRA"]})
    assert CliRunner().invoke(make_app(["fallback"]), arguments[:-1]).exit_code == 0


# --- doctor ---


def checked(path: Path, *, user: str = "app", password: str = "olr") -> list[Finding]:
    config = load_config(path)
    assert config.fallback is not None
    assert config.apply is not None
    string = config.apply.connect_string.get_secret_value()
    account = config.fallback_source.model_copy(
        update={"user": user, "password": SecretStr(password)}
    )
    with (
        BoundedConnection.connect(string, autocommit=True) as connection,
        sources.open_tables(config) as source,
    ):
        ways = [one._replace(source=account) for one in ways_back(config, source, string)]
        return check_way_back(connection, ways, config.fallback)


def names(findings: list[Finding]) -> set[str]:
    assert all(one.severity is Severity.ERROR and one.mend for one in findings)
    return {one.check for one in findings}


def test_wal_level_and_identities_are_checked(served: Served, target: str) -> None:
    with psycopg.connect(target, autocommit=True) as connection:
        row = connection.execute("SHOW wal_level").fetchone()
        expected = set() if row == ("logical",) else {"fallback.wal-level"}
        path = config_file(served, target)
        assert names(checked(path)) == expected
        connection.execute("ALTER TABLE app.items DROP CONSTRAINT items_pkey")
        connection.execute("ALTER TABLE app.plain REPLICA IDENTITY NOTHING")
        found = checked(path)
        assert names(found) == expected | {"fallback.replica-identity"}
        for one in found:
            if one.check == "fallback.replica-identity":
                connection.execute(one.mend[0].encode())
        assert names(checked(path)) == expected


def test_a_slot_that_a_pause_would_invalidate_is_found(
    served: Served, logical_database: str
) -> None:
    """The setting is one of the whole server, so the server is this module's own."""
    with psycopg.connect(logical_database, autocommit=True) as connection:
        connection.execute(POSTGRES)
        if connection.info.server_version < 180_000:
            pytest.skip("no such setting")
        connection.execute("ALTER SYSTEM SET idle_replication_slot_timeout = '1h'")
        try:
            connection.execute("SELECT pg_reload_conf()")
            setting = "SELECT current_setting('idle_replication_slot_timeout')"
            wait_until(lambda: connection.execute(setting).fetchone() == ("1h",), 30.0)
            found = [one.what for one in checked(config_file(served, logical_database))]
        finally:
            connection.execute("ALTER SYSTEM RESET idle_replication_slot_timeout")
            connection.execute("SELECT pg_reload_conf()")
    assert any("idle_replication_slot_timeout is 1h" in one for one in found)


@NEEDS_PGBOUNCER
def test_a_pooler_that_passes_no_replication_is_found(served: Served, target: str) -> None:
    with pooled(target, "session") as pool:
        found = checked(config_file(served, pool.connect_string))
    (stream,) = [one for one in found if "unsupported startup parameter" in one.what]
    assert stream.severity is Severity.ERROR
    assert any("name PostgreSQL itself in `apply.connect-string`" in line for line in stream.mend)


def test_a_role_without_rights_gets_its_grants(served: Served, target: str) -> None:
    role = sql.Identifier("way_back_role")
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'x'").format(role))
        try:
            grant = (
                "GRANT USAGE ON SCHEMA app TO {0}; GRANT SELECT ON ALL TABLES IN SCHEMA app TO {0}"
            )
            connection.execute(sql.SQL(grant).format(role))
            own = psycopg.conninfo.make_conninfo(target, user="way_back_role", password="x")
            found = checked(config_file(served, own))
            roles = [one for one in found if one.check == "fallback.role"]
            assert len(roles) == 4  # replication, publication, and two tables
            for one in roles:
                mend = one.mend[0].replace("CURRENT_USER", '"way_back_role"')
                connection.execute(mend.encode())
            left = checked(config_file(served, own))
            assert [one for one in left if one.check == "fallback.role"] == []
        finally:
            connection.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(role))


def test_an_account_that_is_not_known_is_found(served: Served, target: str) -> None:
    found = checked(config_file(served, target), user="nobody", password="wrong")
    assert "fallback.account" in {one.check for one in found}


def test_an_account_without_rights_gets_its_grants(served: Served, target: str) -> None:
    """The stand-in knows no rights: a dropped table looks as one that nobody may see."""
    with psycopg.connect(target) as connection:
        connection.execute("CREATE TABLE app.gone (id int PRIMARY KEY)")
    path = config_file(served, target)
    served.execute("CREATE TABLE gone (id NUMBER PRIMARY KEY)")
    document = json.loads(path.read_text("utf-8"))
    document["apply"]["tables"] = ["APP.GONE"]
    path.write_text(json.dumps(document), "utf-8")
    config = load_config(path)
    assert config.fallback is not None
    with psycopg.connect(target) as connection, sources.open_tables(config) as source:
        ways = ways_back(config, source, target)
        served.execute("DROP TABLE gone")
        found = check_way_back(connection, ways, config.fallback)
    (rights,) = [one for one in found if one.check == "fallback.privileges"]
    assert rights.what == "app lacks SELECT, INSERT, UPDATE, DELETE on APP.GONE"
    assert rights.mend[0] == 'GRANT SELECT, INSERT, UPDATE, DELETE ON "APP"."GONE" TO app;'


def test_a_policy_that_hides_rows_from_the_account_is_found(
    served: Served, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = config_file(served, target)
    columns, _ = database._VIEWS["ALL_POLICIES"]
    policy = ("APP", "ITEMS", "OWN_ITEMS", "YES", "NO", "NO", "NO", "YES")
    monkeypatch.setitem(database._VIEWS, "ALL_POLICIES", (columns, lambda _: iter([policy])))
    found = [one for one in checked(path) if one.check == "fallback.policies"]
    assert ["OWN_ITEMS" in one.what for one in found] == [True]
    assert "GRANT EXEMPT ACCESS POLICY TO APP. " in found[0].mend[0]


def test_a_dictionary_that_will_not_know_the_ledger_is_found(served: Served, target: str) -> None:
    config = load_config(config_file(served, target))
    assert config.fallback is not None
    with sources.open_tables(config) as source:
        follows = source.snapshot
    assert check_ledger_known(follows, config.fallback) == []
    blind = replace(follows, sys_rows=None)
    (found,) = check_ledger_known(blind, config.fallback)
    assert (found.severity, found.check) == (Severity.ERROR, "fallback.ledger")
    # The ledger of the next way back is another table.
    ledger = replace(follows.tables[0], owner="APP", name=LEDGER)
    assert check_ledger_known(replace(blind, tables=(ledger,)), config.fallback) == [found]


def test_no_slot_is_no_state(postgres: str) -> None:
    way = Fallback.model_validate({"user": "U", "password": "p"})
    with psycopg.connect(postgres) as connection:
        assert slot_state(connection, way.slot_of("olr_pg")) is None
    assert way.slot_of("A-b") == "olr_pg_fallback_a_b"
    assert way.publication_of("A-b") == "olr_pg_fallback_a_b"
    assert way.slot_of("A-b", "SHOP1") == "olr_pg_fallback_a_b_shop1"
    long = [way.slot_of("x" * 60, one) for one in ("SHOP1", "SHOP$2")]
    assert [(len(one), one[-7:]) for one in long] == [(63, "x_shop1"), (63, "_shop_2")]


def test_the_account_s_statements_change_nothing(served: Served, target: str) -> None:
    checked(config_file(served, target))
    with oracledb.connect(user="app", password="olr", dsn=served.dsn) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT COUNT(*) FROM items")
        assert cursor.fetchone() == (1,)
