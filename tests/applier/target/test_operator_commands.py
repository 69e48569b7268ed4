"""Commands of PostgreSQL that an operator runs on the target beside a running applier.

At the end the target has the source's rows, or the table has stopped with an error that names the
cause, and has the rows after the operator has undone the command and retried. All commands run in
one life of one applier, each on a table of its own. Left out are commands that change no property
of a table (cursors, prepared statements, sessions, comments, text search, foreign servers), and
those that other tests run: locks (`test_locked_tables`), columns (`test_column_check`), roles and
servers (`test_sqlstates`), restores (`test_applied_file`), settings (`test_every_setting`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
import pytest

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.target.connection import connect
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import Code
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

Replication = Any  # tests/applier/conftest.py

_COLUMNS: Final = (
    Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0, nullable=False),
    Column("N", 2, 2, 2, OracleType.NUMBER, 22),
    Column("V", 3, 3, 3, OracleType.VARCHAR2, 20, charset_id=873, charset_form=1),
)


class Case(NamedTuple):
    """A command, and what it leads to.

    Attributes:
        do: the statements of the command; {t} is the table ``s.NAME``, {n} its name.
        code: the code with which the table stops; None if it has the source's rows.
        undo: the statements that undo the command.
    """

    do: str
    code: Code | None = None
    undo: str = ""


def _always(what: str) -> str:
    return (
        "CREATE TRIGGER g BEFORE INSERT OR UPDATE OR DELETE ON {t} FOR EACH ROW EXECUTE FUNCTION"
        f" s.{what}(); ALTER TABLE {{t}} ENABLE ALWAYS TRIGGER g"
    )


_EXCHANGE: Final = (
    "BEGIN; UPDATE olr_pg.ledger SET target_oid = NULL WHERE target_table = '{t}'; LOCK TABLE {t};"
    " CREATE TABLE {t}_x (LIKE {t} INCLUDING ALL) %s; %s INSERT INTO {t}_x SELECT * FROM {t};"
    " ALTER TABLE {t} RENAME TO {n}_o; ALTER TABLE {t}_x RENAME TO {n}; COMMIT"
)
_PARTS: Final = (
    "CREATE TABLE {t}_1 PARTITION OF {t}_x FOR VALUES FROM (0) TO (50);"
    " CREATE TABLE {t}_2 PARTITION OF {t}_x FOR VALUES FROM (50) TO (5000);"
)

CASES: Final = {
    # What PostgreSQL's maintenance does, and what has no effect on rows.
    "vacuum_full": Case("VACUUM FULL {t}"),
    "cluster": Case("CLUSTER {t} USING {n}_pkey"),
    "reindex": Case("REINDEX TABLE CONCURRENTLY {t}"),
    "statistics": Case("CREATE STATISTICS s.st_{n} ON n, v FROM {t}; ANALYZE {t}"),
    "storage": Case("ALTER TABLE {t} ALTER v SET STORAGE PLAIN, ALTER v SET COMPRESSION pglz"),
    "parameters": Case("ALTER TABLE {t} SET (fillfactor = 10, autovacuum_enabled = off)"),
    "defaults": Case("ALTER TABLE {t} ALTER n SET DEFAULT 5, ALTER v SET DEFAULT 'x'"),
    "rewritten": Case("ALTER TABLE {t} SET UNLOGGED; ALTER TABLE {t} SET LOGGED"),
    "typed": Case("CREATE TYPE s.y_{n} AS (id bigint, n numeric, v varchar(20));"
                  "ALTER TABLE {t} OF s.y_{n}"),
    "inherits": Case("CREATE TABLE {t}_p (id bigint, n numeric, v varchar(20));"
                     "ALTER TABLE {t} INHERIT {t}_p"),
    "ordinary_trigger": Case("CREATE TRIGGER g BEFORE INSERT ON {t} FOR EACH ROW"
                             " EXECUTE FUNCTION s.nothing()"),
    "ordinary_rule": Case("CREATE RULE r AS ON UPDATE TO {t} DO INSTEAD NOTHING"),
    "foreign_key": Case("CREATE TABLE {t}_p (id bigint PRIMARY KEY); ALTER TABLE {t} ADD FOREIGN"
                        " KEY (id) REFERENCES {t}_p NOT VALID"),
    "copied_back": Case("CREATE TABLE {t}_k AS TABLE {t}; TRUNCATE {t}; INSERT INTO {t} TABLE"
                        " {t}_k"),
    # Keys and types.
    "no_key": Case("ALTER TABLE {t} DROP CONSTRAINT {n}_pkey"),
    "deferrable_key": Case("ALTER TABLE {t} DROP CONSTRAINT {n}_pkey, ADD PRIMARY KEY (id)"
                           " DEFERRABLE INITIALLY DEFERRED"),
    "identity": Case("ALTER TABLE {t} ALTER id ADD GENERATED ALWAYS AS IDENTITY"),
    "key_of_text": Case("ALTER TABLE {t} ALTER id TYPE text"),
    "own_column": Case("ALTER TABLE {t} ADD x int DEFAULT 3,"
                       " ADD g numeric GENERATED ALWAYS AS (n * 2) STORED"),
    "own_column_not_null": Case("ALTER TABLE {t} ADD x int NOT NULL DEFAULT 3;"
                                "ALTER TABLE {t} ALTER x DROP DEFAULT",
                                Code.CHANGE_REFUSED, "ALTER TABLE {t} ALTER x SET DEFAULT 3"),
    "domain": Case("CREATE DOMAIN s.d_{n} AS varchar(20) CHECK (length(value) < 3);"
                   "ALTER TABLE {t} ALTER v TYPE s.d_{n}",
                   Code.CHANGE_REFUSED, "ALTER DOMAIN s.d_{n} DROP CONSTRAINT d_{n}_check"),
    "enum": Case("CREATE TYPE s.e_{n} AS ENUM ('a', 'b'); ALTER TABLE {t} ALTER v TYPE s.e_{n}"
                 " USING v::s.e_{n}", Code.CHANGE_REFUSED, "ALTER TYPE s.e_{n} ADD VALUE 'wide'"),
    "array": Case("ALTER TABLE {t} ALTER v TYPE text[] USING ARRAY[v]", Code.TARGET_TYPE_UNFIT,
                  "ALTER TABLE {t} ALTER v TYPE varchar(20) USING v[1]"),
    # Constraints, and what else refuses rows.
    "check": Case("ALTER TABLE {t} ADD CONSTRAINT c CHECK (n < 50) NOT VALID",
                  Code.CHANGE_REFUSED, "ALTER TABLE {t} DROP CONSTRAINT c"),
    "not_null": Case("ALTER TABLE {t} ALTER v SET NOT NULL",
                     Code.CHANGE_REFUSED, "ALTER TABLE {t} ALTER v DROP NOT NULL"),
    "unique": Case("CREATE UNIQUE INDEX u_{n} ON {t} ((1)) WHERE n > 50",
                   Code.CHANGE_CONFLICTS, "DROP INDEX s.u_{n}"),
    "exclusion": Case("ALTER TABLE {t} ADD CONSTRAINT x EXCLUDE USING btree ((n / n) WITH =)"
                      " WHERE (n > 50)",
                      Code.CHANGE_CONFLICTS, "ALTER TABLE {t} DROP CONSTRAINT x"),
    "raises": Case(_always("raises"), Code.CHANGE_REFUSED, "ALTER TABLE {t} DISABLE TRIGGER g"),
    "discards": Case(_always("nothing"), Code.CHANGE_CONFLICTS, "DROP TRIGGER g ON {t}"),
    "raises_at_commit": Case("CREATE CONSTRAINT TRIGGER g AFTER INSERT ON {t} DEFERRABLE INITIALLY"
                             " DEFERRED FOR EACH ROW EXECUTE FUNCTION s.raises();"
                             "ALTER TABLE {t} ENABLE ALWAYS TRIGGER g",
                             Code.CHANGE_REFUSED, "DROP TRIGGER g ON {t}"),
    "rule": Case("CREATE RULE r AS ON INSERT TO {t} WHERE NEW.n > 50 DO INSTEAD NOTHING;"
                 "ALTER TABLE {t} ENABLE ALWAYS RULE r",
                 Code.TARGET_TABLE_UNFIT, "DROP RULE r ON {t}"),
    "published": Case("CREATE PUBLICATION p_{n} FOR TABLE {t};"
                      "ALTER TABLE {t} REPLICA IDENTITY NOTHING",
                      Code.CHANGE_REFUSED, "ALTER TABLE {t} REPLICA IDENTITY DEFAULT"),
    "attached": Case("CREATE TABLE {t}_w (id bigint, n numeric, v varchar(20)) PARTITION BY RANGE"
                     " (id); ALTER TABLE {t}_w ATTACH PARTITION {t} FOR VALUES FROM (0) TO (50)",
                     Code.CHANGE_REFUSED, "ALTER TABLE {t}_w DETACH PARTITION {t}"),
    "child": Case("CREATE TABLE {t}_c (LIKE {t}); INSERT INTO {t}_c TABLE {t};"
                  "ALTER TABLE {t}_c INHERIT {t}",
                  Code.CHANGE_CONFLICTS, "ALTER TABLE {t}_c NO INHERIT {t}"),
    # Names, owners, and tables in the place of the table.
    "column_renamed": Case("ALTER TABLE {t} RENAME v TO w", Code.TARGET_COLUMN_MISSING,
                           "ALTER TABLE {t} RENAME w TO v"),
    "renamed": Case("ALTER TABLE {t} RENAME TO {n}_o", Code.TARGET_TABLE_MISSING,
                    "ALTER TABLE {t}_o RENAME TO {n}"),
    "moved": Case("ALTER TABLE {t} SET SCHEMA public", Code.TARGET_TABLE_MISSING,
                  "ALTER TABLE public.{n} SET SCHEMA s"),
    "view": Case("ALTER TABLE {t} RENAME TO {n}_o; CREATE VIEW {t} AS TABLE {t}_o",
                 Code.TARGET_TABLE_MISSING, "DROP VIEW {t}; ALTER TABLE {t}_o RENAME TO {n}"),
    "created_again": Case("ALTER TABLE {t} RENAME TO {n}_o; CREATE TABLE {t} (LIKE {t}_o)",
                          Code.TARGET_TABLE_REPLACED,
                          "DROP TABLE {t}; ALTER TABLE {t}_o RENAME TO {n}"),
    "emptied": Case("CREATE TABLE {t}_k AS TABLE {t}; TRUNCATE {t}", Code.TARGET_TABLE_REPLACED,
                    "INSERT INTO {t} TABLE {t}_k"),
    "owner": Case("ALTER TABLE {t} OWNER TO {other}", Code.TARGET_PRIVILEGE,
                  "ALTER TABLE {t} OWNER TO {role}"),
    "row_security": Case("ALTER TABLE {t} ENABLE ROW LEVEL SECURITY;"
                         "ALTER TABLE {t} FORCE ROW LEVEL SECURITY",
                         Code.TARGET_ROW_SECURITY, "ALTER TABLE {t} NO FORCE ROW LEVEL SECURITY"),
    "exchanged": Case(_EXCHANGE % ("", "ALTER TABLE {t}_x OWNER TO {role};")),
    "detached": Case(_EXCHANGE % ("PARTITION BY RANGE (id)",
                                  "ALTER TABLE {t}_x OWNER TO {role};" + _PARTS)
                     + "; ALTER TABLE {t} DETACH PARTITION {t}_2",
                     Code.CHANGE_REFUSED,
                     "ALTER TABLE {t} ATTACH PARTITION {t}_2 FOR VALUES FROM (50) TO (5000)"),
}  # fmt: skip


class Target(NamedTuple):
    """A database whose tables belong to the applier's role."""

    operator: psycopg.Connection[Any]
    replication: Replication
    names: dict[str, str]


@pytest.fixture
def target(postgres_database: str, replicate: Any) -> Iterator[Target]:
    names = {"role": "commands_role", "other": "commands_other"}
    with psycopg.connect(postgres_database, autocommit=True) as operator:
        database = operator.info.dbname
        operator.execute(
            f"CREATE ROLE {names['other']}; CREATE ROLE {names['role']} LOGIN PASSWORD 'x';"
            f'GRANT CREATE ON DATABASE "{database}" TO {names["role"]};'
            f"GRANT SET ON PARAMETER session_replication_role TO {names['role']};"
            f"GRANT EXECUTE ON FUNCTION pg_control_system() TO {names['role']};"
            f"CREATE SCHEMA s AUTHORIZATION {names['role']};"
            "CREATE FUNCTION s.nothing() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN RETURN NULL; END';"
            "CREATE FUNCTION s.raises() RETURNS trigger LANGUAGE plpgsql AS"
            " $$BEGIN RAISE EXCEPTION 'no'; END$$".encode()
        )
        for name in CASES:
            operator.execute(
                f"CREATE TABLE s.{name} (id bigint PRIMARY KEY, n numeric, v varchar(20));"
                f"ALTER TABLE s.{name} OWNER TO {names['role']}".encode()
            )
        role = psycopg.conninfo.make_conninfo(postgres_database, user=names["role"], password="x")
        yield Target(operator, replicate(role), names)
        for role in names.values():
            operator.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}".encode())


def _run(target: Target, name: str, statements: str) -> None:
    """Run each statement by itself, as some may not run in a transaction."""
    for one in filter(str.strip, statements.split(";")):
        target.operator.execute(one.format(t=f"s.{name}", n=name, **target.names).encode())


def _sources() -> list[Table]:
    return [
        Table("S", name.upper(), at, at, _COLUMNS, key_kind=KeyKind.PRIMARY, key=(1,))
        for at, name in enumerate(CASES, 1)
    ]


def _rows(target: Target, name: str) -> dict[str, tuple[str, str | None]]:
    query = f"SELECT id::text, n::text, v::text FROM s.{name}"
    found = target.operator.execute(query.encode()).fetchall()
    assert len({key for key, *_ in found}) == len(found)
    return {key: (number, text) for key, number, text in found}


def test_each_command_beside_a_running_applier(target: Target) -> None:
    r = target.replication
    before: dict[str, tuple[str, str | None]] = {str(n): (str(n), "ab"[n % 2]) for n in range(1, 6)}
    after = {key: row for key, row in before.items() if key not in {"2", "3"}}
    after |= {"1": ("1", "wide"), "33": ("3", "b"), "100": ("100", "wide"), "101": ("101", None)}
    after |= {str(n): (str(n), "wide") for n in range(1000, 1100)}
    tables = list(map(str.upper, CASES))
    for table in tables:
        r.transaction(*(r.insert({"ID": n, "N": n, "V": "ab"[n % 2]}, table) for n in range(1, 6)))
    applier = r.applier(_sources(), batch_milliseconds=20, copy_rows=50)
    thread, failures = r.started(applier)
    try:
        wait_until(lambda: failures or all(_rows(target, name) == before for name in CASES))
        for name, case in CASES.items():
            _run(target, name, case.do)
        for table in tables:
            r.transaction(
                r.insert({"ID": 100, "N": 100, "V": "wide"}, table),
                r.insert({"ID": 101, "N": 101, "V": None}, table),
                r.update({"ID": 1, "N": 1, "V": "b"}, {"V": "wide"}, table),
            )
            r.transaction(
                *(r.insert({"ID": n, "N": n, "V": "wide"}, table) for n in range(1000, 1100))
            )
            r.transaction(
                r.delete({"ID": 2, "N": 2, "V": "a"}, table),
                r.update({"ID": 3, "N": 3, "V": "b"}, {"ID": 33}, table),
            )
        r.script.put_rest()
        ends = {f"S.{one.upper()}": 10 * (len(CASES) + 3 * at) for at, one in enumerate(CASES, 1)}

        def is_done() -> bool:
            found = target.operator.execute("SELECT source_table, commit_scn FROM olr_pg.ledger")
            return dict(found.fetchall()) == ends

        wait_until(lambda: failures or is_done())
        assert not failures
        stopped = dict(
            target.operator.execute(
                "SELECT source_table, code FROM olr_pg.error WHERE resolution = 'stopped'"
            ).fetchall()
        )
        assert {name: stopped.get(f"S.{name.upper()}") for name in CASES} == {
            name: case.code for name, case in CASES.items()
        }
        fine = {name: _rows(target, name) for name, case in CASES.items() if case.code is None}
        assert {name for name, rows in fine.items() if rows != after} == set()
    finally:
        applier.stop()
        thread.join()
    with connect(r.target) as connection:
        for name, case in CASES.items():
            _run(target, name, case.undo)
            error = replay(connection, r.settings(), f"S.{name.upper()}").error
            assert (name, error) == (name, None)
    assert {name for name in CASES if _rows(target, name) != after} == set()
    r.apply(_sources())
    assert {name for name in CASES if _rows(target, name) != after} == set()
