"""The number of queries about the target's tables does not depend on the number of tables, and a
query reads each table once."""

from __future__ import annotations

import re
from collections import Counter
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from olr_pg.appliance.offline_checks import _missing
from olr_pg.applier.settings import ApplierSettings, TriggerHandling
from olr_pg.applier.stopped.left_out import stop_left_out
from olr_pg.applier.target.catalogue import read_tables
from olr_pg.applier.target.crash_watch import _UNLOGGED
from olr_pg.applier.target.ledger import other_subscriptions
from olr_pg.applier.target_checks import check_target
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, KeyKind, Table
from tests.postgres.own_cluster import own_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.observability.findings import Finding

Replication = Any  # tests/applier/conftest.py

FEW, MANY = 5, 50
LOGGED = re.compile(r"^statements\|LOG: +(?:statement|execute [^:]*): ", re.MULTILINE)


class Target:
    """A cluster that logs its statements."""

    def __init__(self, connect_string: str) -> None:
        with psycopg.connect(connect_string) as connection:
            row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
        self.log = Path(row[0]).parent / "server.log"
        self.connect_string = connect_string
        self._numbers = count()

    def database(self) -> str:
        """A new database."""
        name = f"many_{next(self._numbers)}"
        with psycopg.connect(self.connect_string, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return make_conninfo(self.connect_string, dbname=name)

    def statements(self, since: int) -> Counter[str]:
        """What was executed since the log had this size: how often, without names of tables."""
        text = self.log.read_bytes()[since:].decode()
        # The prefix of the next line ends a statement of several lines.
        parts = re.split(r"^(?=statements\|)", text, flags=re.MULTILINE)
        found = (LOGGED.sub("", one) for one in parts if LOGGED.match(one))
        return Counter(re.sub(r"\b[tT]\d\d\b", "t", one).strip() for one in found)


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    settings = ("log_statement = 'all'", "log_line_prefix = 'statements|'")
    with own_cluster(*settings) as cluster:
        yield Target(cluster.connect_string)


def source_tables(count: int) -> list[Table]:
    columns = (
        Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0, nullable=False),
        Column("NAME", 2, 2, 2, OracleType.VARCHAR2, 20, charset_id=873, charset_form=1),
    )
    return [
        Table("S", f"T{n:02}", n + 1, n + 1, columns, key_kind=KeyKind.PRIMARY, key=(1,))
        for n in range(count)
    ]


def checked(settings: ApplierSettings, tables: list[Table]) -> list[Finding]:
    return check_target(settings, tables)


def looked_for(settings: ApplierSettings, tables: list[Table]) -> list[Table]:
    return _missing(settings, tables)


CREATED = """
CREATE TABLE s.t{0:02} (id int PRIMARY KEY, name varchar(20));
CREATE RULE other AS ON UPDATE TO s.t{0:02} DO ALSO NOTHING;
"""
NARROW = "CREATE TABLE s.t{0:02} (id int PRIMARY KEY, name varchar(3));"


@pytest.mark.parametrize(
    ("command", "created", "options", "per_table"),
    [
        (checked, CREATED, {}, 0),
        (checked, NARROW, {}, 1),
        (checked, CREATED, {"triggers": TriggerHandling.DISABLE}, 0),
        (checked, "CREATE VIEW s.t{0:02} AS SELECT 1;", {}, 1),
        (checked, 'CREATE TABLE s."T{0:02}" (id int);', {"create_tables": True}, 1),
        (checked, "", {"create_tables": True}, 0),
        (checked, "", {}, 1),
        (looked_for, CREATED, {}, 0),
        (looked_for, "", {}, 1),
    ],
    ids=[
        *("rules", "narrow columns", "triggers disabled", "views", "another case", "to create"),
        *("missing", "looked for", "looked for and missing"),
    ],
)
def test_more_tables_are_asked_about_with_as_many_queries(
    target: Target,
    replicate: Callable[[str], Replication],
    command: Callable[[ApplierSettings, list[Table]], list[Any]],
    created: str,
    options: dict[str, Any],
    per_table: int,
) -> None:
    counts, found = [], []
    for number in (FEW, MANY):
        database = target.database()
        replication = replicate(database)
        replication.execute("CREATE SCHEMA s;" + "".join(map(created.format, range(number))))
        settings = replication.settings(**options)
        since = target.log.stat().st_size
        found.append(len(command(settings, source_tables(number))))
        counts.append(target.statements(since))
    assert found[1] - found[0] == per_table * (MANY - FEW)
    assert counts[1] == counts[0]
    assert counts[0]


def test_a_start_asks_about_more_tables_with_as_many_queries(
    target: Target, replicate: Callable[[str], Replication]
) -> None:
    counts = []
    for number in (FEW, MANY):
        replication = replicate(target.database())
        tables = source_tables(number)
        replication.apply(tables, create_tables=True)
        replication.serve()
        since = target.log.stat().st_size
        replication.apply(tables, create_tables=True)
        counts.append(target.statements(since))
    assert counts[1] == counts[0]


class Explained:
    """A connection that counts the rows that the nodes of its queries' plans read."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self.rows = 0

    def execute(self, query: str, values: Any = None) -> psycopg.Cursor[Any]:
        if query.startswith("SET "):
            return self._connection.execute(query.encode())
        asked = f"EXPLAIN (ANALYZE, FORMAT JSON) {query}".encode()
        row = self._connection.execute(asked, values).fetchone()
        assert row is not None
        self._count(row[0][0]["Plan"])
        return self._connection.execute(query.encode(), values)

    def transaction(self) -> Any:
        return self._connection.transaction()

    def _count(self, node: dict[str, Any]) -> None:
        read = sum(node.get(key, 0) for key in ("Actual Rows", "Rows Removed by Join Filter"))
        self.rows += round(read * node["Actual Loops"])
        for part in node.get("Plans", ()):
            self._count(part)


def test_a_batch_of_tables_with_many_columns_is_read_once(
    target: Target, replicate: Callable[[str], Replication]
) -> None:
    """Also with nested loops, which PostgreSQL takes if it has no statistics of new tables yet."""
    replication = replicate(target.database())
    columns = ", ".join(f"c{number} int" for number in range(40))
    tables = [f"t{number}" for number in range(20)]
    replication.execute(
        "CREATE SCHEMA s;" + "".join(f"CREATE TABLE s.{table} ({columns});" for table in tables)
    )
    with psycopg.connect(replication.target) as connection:
        connection.execute("SET enable_hashjoin = off; SET enable_mergejoin = off")
        explained: Any = Explained(connection)
        read = read_tables(explained, [("s", table) for table in tables])
    found = sum(len(table.columns) for table in read.values())
    assert found == 20 * 40
    assert explained.rows < 40 * found


_FOUND = f"{_UNLOGGED} SELECT count(*) FROM unlogged"


@pytest.mark.parametrize("kind", ["", "UNLOGGED"])
def test_a_new_connection_does_not_compare_the_ledger_with_all_tables(
    target: Target, replicate: Callable[[str], Replication], kind: str
) -> None:
    """The applier's sessions have neither hash joins nor merge joins."""
    replication = replicate(target.database())
    replication.apply(source_tables(1), create_tables=True)
    replication.execute(
        "".join(f"CREATE {kind} TABLE s.x{number:03} ();" for number in range(600))
        + "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)"
        " SELECT 'many', 'S.X' || lpad(n::text, 3, '0'), 's.x' || lpad(n::text, 3, '0'), 1"
        " FROM generate_series(0, 599) AS n; CREATE UNLOGGED TABLE s.x600 () INHERITS (s.x007)"
    )
    with psycopg.connect(replication.target) as connection:
        connection.execute("SET enable_hashjoin = off; SET enable_mergejoin = off")
        explained: Any = Explained(connection)
        found = explained.execute(_FOUND, {"subscription": "many"}).fetchone()
    assert found == (600 if kind else 1,)
    assert explained.rows < 40_000


def test_a_start_does_not_compare_the_tables_with_those_of_another_subscription(
    target: Target, replicate: Callable[[str], Replication]
) -> None:
    replication = replicate(target.database())
    tables = source_tables(90)
    replication.apply(source_tables(1), create_tables=True)
    replication.execute(
        "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)"
        " SELECT s, 'S.T' || lpad(n::text, 2, '0'), 's.t' || lpad(n::text, 2, '0'), 1"
        " FROM generate_series(0, 89) AS n, unnest(ARRAY['one', 'other']) AS s;"
        " INSERT INTO olr_pg.load"
        " (subscription, source_table, target_table, scn, start_scn, source, parts)"
        " SELECT subscription, source_table, target_table, 1, 1, '', 1 FROM olr_pg.ledger;"
        " INSERT INTO olr_pg.subscription (subscription, complete_scn) VALUES ('one', 1)"
    )
    settings = ApplierSettings(replication.target, "", 0, "", subscription="one")
    with psycopg.connect(replication.target, autocommit=True) as connection:
        connection.execute("SET enable_hashjoin = off; SET enable_mergejoin = off")
        explained: Any = Explained(connection)
        targets = {one.full_name: one.full_name.lower() for one in tables}
        assert other_subscriptions(explained, "new", targets, dbid=None, start_scn=0)
        stop_left_out(explained, settings, {one.full_name: one for one in tables}, {})
    assert explained.rows < 40_000
