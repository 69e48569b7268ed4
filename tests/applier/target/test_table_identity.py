"""Tables and a ledger that were not restored together: the tables stop, and nothing is applied."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.stopped.ddl import apply_event
from olr_pg.applier.stopped.error_table import read_errors
from olr_pg.applier.stopped.left_out import unfit_reason
from olr_pg.applier.stopped.renaming import bring_rows
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.applier.target.table_identity import (
    COPIED,
    check_identity,
    moved_tables,
    record_tables,
)
from olr_pg.applier.target_checks import check_target
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.evolution import DdlKind, Evolution, Step
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.load_progress import LoadState, TableLoadProgress
from olr_pg.transactions.schema_event import SchemaEvent
from tests.advice import followed

if TYPE_CHECKING:
    from collections.abc import Callable

Replication = Any  # tests/applier/conftest.py

_ID = Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0, nullable=False)
_NAMES = ("T", "U", "EMPTY")
_TABLES = [
    Table("S", name, number, number, (_ID,), key_kind=KeyKind.PRIMARY, key=(1,))
    for number, name in enumerate(_NAMES, 1)
]
_AGAIN = "DROP TABLE s.{0}; CREATE TABLE s.{0} (id int PRIMARY KEY);"
_LEDGER = "CREATE TABLE public.kept AS TABLE olr_pg.ledger; DROP SCHEMA olr_pg CASCADE"
_RESTORED = "INSERT INTO olr_pg.ledger SELECT * FROM public.kept"


@pytest.fixture
def applied(postgres_database: str, replicate: Callable[[str], Replication]) -> Replication:
    """One row in T and one in U; EMPTY has had none."""
    made = replicate(postgres_database)
    made.execute("CREATE SCHEMA s")
    for name in _NAMES:
        made.execute(f"CREATE TABLE s.{name} (id int PRIMARY KEY)")
    made.transaction(made.insert({"ID": 1}, "T"), made.insert({"ID": 1}, "U"))
    made.apply(_TABLES)
    return made


def _stopped(r: Replication) -> dict[str, int]:
    with pytest.raises(OlrPgError) as ended:
        r.apply(_TABLES)
    assert ended.value.code == Code.TABLES_STOPPED
    return dict(r.rows("SELECT source_table, code FROM olr_pg.error WHERE resolution = 'stopped'"))


def _ids(r: Replication, name: str) -> list[int]:
    return [number for (number,) in r.rows(f"SELECT id FROM s.{name} ORDER BY id")]


def test_a_table_that_was_restored_without_the_ledger_stops(applied: Replication) -> None:
    """Also without a later change; until an operator loads it, or says that it has all rows."""
    r = applied
    r.execute(_AGAIN.format("t") + _AGAIN.format("u") + _AGAIN.format("empty"))
    r.transaction(r.insert({"ID": 2}, "T"), r.insert({"ID": 2}, "EMPTY"))
    assert _stopped(r) == dict.fromkeys(("S.T", "S.U"), Code.TARGET_TABLE_REPLACED)
    assert (_ids(r, "t"), _ids(r, "empty")) == ([], [2])
    with connect(r.target) as connection:
        error = replay(connection, r.settings(), "S.T").error
        assert error is not None
        assert error.code == Code.TARGET_TABLE_REPLACED
        # What the error advises.
        r.execute("INSERT INTO s.t VALUES (1); INSERT INTO s.u VALUES (1)")
        r.execute("UPDATE olr_pg.ledger SET target_oid = NULL WHERE source_table = 'S.T'")
        assert replay(connection, r.settings(), "S.T").error is None
    assert _ids(r, "t") == [1, 2]
    assert _stopped(r) == {"S.U": Code.TARGET_TABLE_REPLACED}


def test_a_ledger_that_was_restored_without_the_tables_stops_them(applied: Replication) -> None:
    r = applied
    r.execute(_LEDGER)
    with connect(r.target) as connection:
        ensure_ledger(connection)
    r.execute(_RESTORED)
    assert _stopped(r) == dict.fromkeys(("S.T", "S.U"), Code.TARGET_TABLE_REPLACED)


def test_what_keeps_rows_and_ledger_together_stops_nothing(applied: Replication) -> None:
    r = applied
    for statement in (
        "VACUUM FULL s.t",
        "CLUSTER s.t USING t_pkey",
        "REINDEX TABLE s.t",
        "ALTER TABLE s.t ALTER id TYPE bigint",
        "VACUUM FULL olr_pg.ledger",
    ):
        r.execute(statement)
    r.transaction(r.insert({"ID": 2}, "T"))
    r.apply(_TABLES)
    # A dump that is restored into the same database.
    r.execute(_LEDGER)
    r.execute(_AGAIN.format("t") + _AGAIN.format("u"))
    r.execute("INSERT INTO s.t VALUES (1), (2); INSERT INTO s.u VALUES (1)")
    with connect(r.target) as connection:
        ensure_ledger(connection)
    r.execute(_RESTORED)
    r.transaction(r.insert({"ID": 3}, "T"))
    r.apply(_TABLES)
    assert (_ids(r, "t"), _ids(r, "u")) == ([1, 2, 3], [1])
    # The OIDs of another server or database prove nothing.
    r.execute(_AGAIN.format("t"))
    with connect(r.target) as connection:
        assert unfit_reason(connection, r.settings(), "S.T") is not None
        r.execute("INSERT INTO s.t VALUES (1), (2), (3)")
        r.execute("UPDATE olr_pg.ledger SET target_place = regexp_replace(target_place, '^', '1')")
        assert unfit_reason(connection, r.settings(), "S.T") is None
        # But rows that are not there were not restored.
        r.execute("TRUNCATE s.t")
        reason = unfit_reason(connection, r.settings(), "S.T")
        assert reason is not None
        assert "restored the target table without its rows" in reason.detail
    for _ in range(2):
        assert _stopped(r) == {"S.T": Code.TARGET_TABLE_REPLACED}
        with connect(r.target) as connection:
            assert replay(connection, r.settings(), "S.T").error is not None
    with connect(r.target) as connection:
        r.execute("INSERT INTO s.t VALUES (1), (2), (3)")
        assert replay(connection, r.settings(), "S.T").error is None
    with connect(r.target) as connection:
        for _ in range(2):
            r.execute("UPDATE olr_pg.ledger SET target_place = '1' || target_place")
            with capture_logs() as logged:
                record_tables(connection, r.settings().subscription)
                record_tables(connection, r.settings().subscription)
            assert [one["number"] for one in logged if "another database" in one["event"]] == [2]


_UNKNOWN = "UPDATE olr_pg.ledger SET target_oid = NULL"
_EXCHANGE = f"""
{_UNKNOWN} WHERE source_table = 'S.T'; LOCK TABLE s.t;
CREATE TABLE s.new (LIKE s.t INCLUDING ALL); INSERT INTO s.new TABLE s.t;
ALTER TABLE s.t RENAME TO old; ALTER TABLE s.new RENAME TO t"""


def test_the_oid_of_a_table_that_an_operator_is_exchanging_is_not_recorded(
    applied: Replication,
) -> None:
    """After an upgrade of the ledger, no OID is known: at a start, and at a plan that waits."""
    r = applied
    r.execute(_UNKNOWN)
    name = r.settings().subscription
    ((oid,),) = r.rows("SELECT 's.t'::regclass::int8")
    with (
        connect(r.target) as connection,
        psycopg.connect(r.target) as operator,
        ThreadPoolExecutor(1) as pool,
    ):
        operator.execute(_EXCHANGE)
        record_tables(connection, name)
        plan = pool.submit(check_identity, connection, name, "S.T", oid)
        r.wait_for("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted")
        operator.commit()
        plan.result()
        known = "SELECT source_table, target_oid FROM olr_pg.ledger ORDER BY 1"
        assert dict(r.rows(known))["S.T"] is None
        assert dict(r.rows(known))["S.U"] is not None
    r.transaction(r.insert({"ID": 2}, "T"))
    r.apply(_TABLES)
    assert _ids(r, "t") == [1, 2]


def test_a_name_with_dots_that_two_tables_have_is_left_to_the_plan(applied: Replication) -> None:
    r = applied
    for schema, name in (('"s.x"', "y"), ("s", '"x.y"')):
        r.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        r.execute(f"CREATE TABLE {schema}.{name} (id int PRIMARY KEY)")
    r.execute(_UNKNOWN + ", target_table = 's.x.y' WHERE source_table = 'S.T'")
    with connect(r.target) as connection:
        subscription = r.settings().subscription
        record_tables(connection, subscription)
        ((known,),) = r.rows("SELECT target_oid FROM olr_pg.ledger WHERE source_table = 'S.T'")
        assert known is None
        for name in ('"s.x".y', 's."x.y"'):
            ((oid,),) = r.rows(f"SELECT '{name}'::regclass::int8")
            r.execute(_UNKNOWN)
            check_identity(connection, subscription, "S.T", oid)
            recorded = r.rows("SELECT target_oid FROM olr_pg.ledger WHERE source_table = 'S.T'")
            assert recorded == [(oid,)]


def test_a_load_records_its_table_with_the_position(applied: Replication) -> None:
    """A table without changes, such as a paused one, may have been created again before it. But if
    it is created again during the load, or before the first run, rows are missing.
    """
    r = applied
    subscription = r.settings().subscription
    r.execute("DELETE FROM olr_pg.ledger WHERE source_table = 'S.EMPTY'")
    r.execute(
        "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)"
        f" VALUES ('{subscription}', 'S.EMPTY', 's.empty', 0)"
    )
    load = TableLoadProgress(subscription, "S.EMPTY", "s.empty")
    with connect(r.target) as connection:
        record_tables(connection, subscription)
        r.execute(_AGAIN.format("empty"))
        ((oid,),) = r.rows("SELECT 's.empty'::regclass::int8")
        load.begin(connection, LoadState(10, 5, "files", 1))
        load.claim(connection, 0, 10)
        load.note(connection, 0, 3, 30)
        load.finish(connection, 10, oid)
        assert unfit_reason(connection, r.settings(), "S.EMPTY") is None
        r.execute(_AGAIN.format("empty"))
        record_tables(connection, subscription)
        reason = unfit_reason(connection, r.settings(), "S.EMPTY")
        assert reason is not None
        assert reason.code == Code.TARGET_TABLE_REPLACED


@pytest.mark.parametrize("is_partitioned", [False, True])
def test_a_table_that_somebody_has_emptied_stops_at_the_next_start(
    applied: Replication, is_partitioned: bool
) -> None:
    r = applied
    if is_partitioned:
        r.execute(f"""
            {_UNKNOWN} WHERE source_table = 'S.T'; ALTER TABLE s.t RENAME TO former;
            CREATE TABLE s.t (id int PRIMARY KEY) PARTITION BY RANGE (id);
            CREATE TABLE s.t1 PARTITION OF s.t DEFAULT; INSERT INTO s.t TABLE s.former
        """)
    r.apply(_TABLES)
    r.execute("TRUNCATE s.t, s.empty")
    r.transaction(r.insert({"ID": 2}, "T"), r.insert({"ID": 2}, "EMPTY"))
    assert _stopped(r) == {"S.T": Code.TARGET_TABLE_REPLACED}
    assert (_ids(r, "t"), _ids(r, "empty")) == ([], [2])
    with connect(r.target) as connection:
        (line,) = read_errors(connection, "olr_pg", resolved=False)
    # The action of a table that was copied would continue without the rows.
    assert line.action != Code.TARGET_TABLE_REPLACED.action
    assert "If the source's table is empty too" in line.action
    r.execute("INSERT INTO s.t VALUES (1)")
    with connect(r.target) as connection:
        assert replay(connection, r.settings(), "S.T").error is None
    r.apply(_TABLES)
    assert _ids(r, "t") == [1, 2]


def _rewritten_and_emptied(r: Replication, number: int) -> None:
    """An empty table gets another file, and goes on with a row; then somebody empties it."""
    r.execute("VACUUM FULL s.t")
    r.transaction(r.insert({"ID": number}, "T"))
    r.apply(_TABLES)
    assert _ids(r, "t") == [number]
    r.execute("TRUNCATE s.t")
    assert _stopped(r) == {"S.T": Code.TARGET_TABLE_REPLACED}


def test_a_table_whose_rows_the_source_has_deleted_may_get_another_file(
    applied: Replication,
) -> None:
    """Tables of queues are empty at times, and are rewritten to free their space."""
    r = applied
    r.apply(_TABLES)
    ids = _ids(r, "t")
    assert ids
    r.transaction(*[r.delete({"ID": one}, "T") for one in ids])
    r.apply(_TABLES)
    _rewritten_and_emptied(r, 7)


def _scn(r: Replication) -> int:
    """An SCN after the last transaction."""
    return 10 * len(r.script.transactions) + 5


def _truncated(r: Replication, *steps: Step) -> None:
    """A TRUNCATE of the source, or other DDL."""
    scn, evolution = _scn(r), Evolution(steps or (Step(DdlKind.TRUNCATE),))
    event = SchemaEvent("S.T", scn, scn, scn, evolution, _TABLES[0])
    with connect(r.target) as connection:
        assert apply_event(connection, r.settings(), event, _TABLES[0]) is None


def _loaded(r: Replication, source: str = "files") -> None:
    """A load of two rows. Rows that another tool copies are not counted."""
    load, scn = TableLoadProgress(r.settings().subscription, "S.T", "s.t"), _scn(r)
    with connect(r.target) as connection:
        load.forget_applied(connection)
        load.begin(connection, LoadState(scn, scn, source, 1))
        load.claim(connection, 0, scn)
        connection.execute("TRUNCATE s.t; INSERT INTO s.t VALUES (8), (9)")
        load.note(connection, 0, 2 * (source != COPIED), 30)
        ((oid,),) = r.rows("SELECT 's.t'::regclass::int8")
        load.finish(connection, scn, oid)


def _renamed(r: Replication) -> None:
    """The source gives another table with rows the name, by a rename or exchange."""
    with connect(r.target) as connection:
        bring_rows(connection, r.settings().subscription, "S.U", "S.T")


def _inserted(r: Replication) -> None:
    r.transaction(r.insert({"ID": 5}, "T"))


def _deleted(r: Replication) -> None:
    """The source deletes all rows but 8 and 9."""
    r.transaction(*[r.delete({"ID": one}, "T") for one in _ids(r, "t") if one < 8])


def _all_deleted(r: Replication) -> None:
    r.transaction(*[r.delete({"ID": one}, "T") for one in _ids(r, "t")])


_EMPTY = (
    (_truncated,),
    (_truncated, _inserted, _all_deleted),
    (_inserted, _truncated, _inserted, _all_deleted),
    (_loaded, _all_deleted),
    (_loaded, _inserted, _all_deleted),
    (_loaded, _truncated, _inserted, _all_deleted),
    (_renamed, _truncated, _inserted, _all_deleted),
)
_WITH_ROWS = (
    (_truncated, _inserted),
    (_inserted, _loaded),
    (_loaded, _inserted, _deleted),
    (partial(_loaded, source=COPIED), _inserted, _deleted),
    (_renamed, _all_deleted),
)


def test_an_empty_table_with_another_file_stops_unless_the_source_has_emptied_it(
    applied: Replication,
) -> None:
    """Also if changes are not all that fills and empties it: a load, a TRUNCATE, a rename."""
    r = applied
    for steps in (*_EMPTY, *_WITH_ROWS):
        for step in steps:
            step(r)
            r.apply(_TABLES)
        if steps in _EMPTY:
            assert _ids(r, "t") == [], steps
            r.execute("VACUUM FULL s.t")
            r.apply(_TABLES)
        else:
            r.execute("TRUNCATE s.t")
            assert _stopped(r) == {"S.T": Code.TARGET_TABLE_REPLACED}, steps
            _loaded(r)
            r.apply(_TABLES)
        r.execute("DELETE FROM olr_pg.load_part WHERE part = -2")


@pytest.mark.parametrize("kind", [DdlKind.TRUNCATE_PARTITION, DdlKind.DROP_PARTITION])
def test_a_table_whose_partitions_the_source_has_emptied_may_get_another_file(
    applied: Replication, kind: DdlKind
) -> None:
    r = applied
    r.execute(f"""
        {_UNKNOWN} WHERE source_table = 'S.T'; DROP TABLE s.t;
        CREATE TABLE s.t (id int PRIMARY KEY) PARTITION BY RANGE (id);
        CREATE TABLE s.t_p1 PARTITION OF s.t FOR VALUES FROM (0) TO (10);
        CREATE TABLE s.t_p2 PARTITION OF s.t FOR VALUES FROM (10) TO (20);
        INSERT INTO s.t VALUES (1)
    """)
    r.transaction(r.insert({"ID": 2}, "T"), r.insert({"ID": 12}, "T"))
    r.apply(_TABLES)
    _truncated(r, *(Step(kind, partition=name) for name in ("P1", "P2")))
    assert _ids(r, "t") == []
    r.apply(_TABLES)
    _rewritten_and_emptied(r, 13)


@pytest.mark.parametrize(
    ("steps", "is_known"),
    [
        ((_inserted, _all_deleted), True),
        ((_loaded, _inserted, _all_deleted), True),
        ((_truncated, _inserted, _all_deleted), False),
        ((partial(_loaded, source=COPIED), _all_deleted), False),
        ((_renamed, _all_deleted), False),
    ],
)
def test_a_ledger_of_version_18_knows_which_tables_the_source_has_emptied(
    applied: Replication, steps: tuple[Callable[[Replication], None], ...], *, is_known: bool
) -> None:
    r = applied
    for step in steps:
        step(r)
        r.apply(_TABLES)
    r.execute("""
        ALTER TABLE olr_pg.ledger DROP COLUMN empty_at; UPDATE olr_pg.version SET version = 18
    """)
    r.apply(_TABLES)
    r.execute("VACUUM FULL s.t")
    if is_known:
        r.apply(_TABLES)
    else:
        assert _stopped(r) == {"S.T": Code.TARGET_TABLE_REPLACED}


def test_what_the_error_of_an_emptied_table_advises_lets_it_go_on(applied: Replication) -> None:
    """Rows that the source deletes in an unknown number, such as those of a copy."""
    r = applied
    _loaded(r, COPIED)
    _all_deleted(r)
    r.apply(_TABLES)
    r.execute("VACUUM FULL s.t")
    with connect(r.target) as connection:
        error = unfit_reason(connection, r.settings(), "S.T")
        assert error is not None
        followed(error, Code.TARGET_TABLE_REPLACED, "run in the target `UPDATE ")
        (statement,) = re.findall(r"`(UPDATE .*?)`", error.action)
        r.execute(statement)
        assert unfit_reason(connection, r.settings(), "S.T") is None
    for _ in range(2):
        r.apply(_TABLES)
        r.execute("VACUUM FULL s.t")


def test_a_table_with_another_file_and_rows_is_named_once(applied: Replication) -> None:
    r = applied
    r.apply(_TABLES)
    for statements, names in (
        (("TRUNCATE s.t", "INSERT INTO s.t VALUES (7)"), ["S.T"]),
        (("VACUUM FULL s.u",), ["S.U"]),
        (("DELETE FROM s.u", "VACUUM s.u"), []),
    ):
        for one in statements:
            r.execute(one)
        for expected in (names, []):
            with capture_logs() as logged:
                r.apply(_TABLES)
            assert [one["table"] for one in logged if "another file" in one["event"]] == expected


def test_partitions_that_somebody_has_removed_or_emptied_are_named_once(
    applied: Replication,
) -> None:
    r = applied
    r.execute(f"""
        {_UNKNOWN} WHERE source_table = 'S.T'; DROP TABLE s.t;
        CREATE TABLE s.t (id int PRIMARY KEY) PARTITION BY RANGE (id);
        CREATE TABLE s.t_p1 PARTITION OF s.t FOR VALUES FROM (0) TO (10);
        CREATE TABLE s.t_p2 PARTITION OF s.t FOR VALUES FROM (10) TO (20);
        CREATE TABLE s.t_p3 PARTITION OF s.t FOR VALUES FROM (20) TO (30);
        INSERT INTO s.t VALUES (1), (12), (22)
    """)
    r.apply(_TABLES)
    for statements, names in (
        ("VACUUM FULL s.t", []),
        ("CREATE TABLE s.t_p4 PARTITION OF s.t FOR VALUES FROM (30) TO (40)", []),
        ("TRUNCATE s.t_p1", ["s.t_p1"]),
        ("ALTER TABLE s.t DETACH PARTITION s.t_p2", ["s.t_p2"]),
        ("ALTER TABLE s.t ATTACH PARTITION s.t_p2 FOR VALUES FROM (10) TO (20)", []),
        ("DROP TABLE s.t_p2", ["s.t_p2"]),
        ("DELETE FROM s.t WHERE id > 25", []),
    ):
        r.execute(statements)
        for expected in (names, []):
            with capture_logs() as logged:
                r.apply(_TABLES)
            told = [one["partitions"] for one in logged if "emptied partitions" in one["event"]]
            assert told == expected, statements
    r.execute("ALTER TABLE olr_pg.ledger DROP COLUMN target_parts; UPDATE olr_pg.version SET"
              " version = 22")  # fmt: skip
    r.apply(_TABLES)
    r.execute("TRUNCATE s.t_p3; INSERT INTO s.t VALUES (2)")
    with capture_logs() as logged:
        r.apply(_TABLES)
    assert "s.t_p3" in str(logged)


def test_a_start_locks_no_partition(applied: Replication) -> None:
    """A database can have more partitions than PostgreSQL can lock at a time."""
    r = applied
    r.execute(f"""
        {_UNKNOWN} WHERE source_table = 'S.T'; DROP TABLE s.t;
        CREATE TABLE s.t (id int PRIMARY KEY) PARTITION BY RANGE (id);
        CREATE TABLE s.t_p1 PARTITION OF s.t FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (id);
        CREATE TABLE s.t_p11 PARTITION OF s.t_p1 FOR VALUES FROM (0) TO (5);
        CREATE TABLE s.t_p2 PARTITION OF s.t FOR VALUES FROM (10) TO (20);
        ALTER TABLE olr_pg.ledger DROP COLUMN target_parts; UPDATE olr_pg.version SET version = 22
    """)
    with psycopg.connect(r.target) as other, connect(r.target) as connection:
        other.execute("LOCK TABLE ONLY s.t, s.t_p1, s.t_p11, s.t_p2")
        connection.execute("SET lock_timeout = '1s'")
        ensure_ledger(connection)
        record_tables(connection, "olr_pg")
        assert moved_tables(connection, "olr_pg") == set()
    parts = r.rows("SELECT target_parts FROM olr_pg.ledger WHERE source_table = 'S.T'")
    assert sorted(name for _, name in parts[0][0].values()) == ["s.t_p11", "s.t_p2"]


def test_a_table_that_the_role_cannot_read_does_not_hide_another_one(applied: Replication) -> None:
    r = applied
    r.apply(_TABLES)
    r.execute(f"TRUNCATE s.t; {_AGAIN.format('u')}")
    r.execute("CREATE ROLE checker LOGIN PASSWORD 'secret'")
    try:
        r.execute("GRANT USAGE ON SCHEMA s, olr_pg TO checker")
        r.execute("GRANT ALL ON ALL TABLES IN SCHEMA s, olr_pg TO checker")
        r.execute("GRANT SET ON PARAMETER session_replication_role TO checker")
        r.execute("GRANT EXECUTE ON FUNCTION pg_control_system() TO checker")
        r.execute("REVOKE SELECT ON s.t FROM checker")
        target = psycopg.conninfo.make_conninfo(r.target, user="checker", password="secret")
        found = check_target(r.settings(connect_string=target), _TABLES)
        (one,) = (one for one in found if one.check == "postgres.storage")
        assert "S.U" in one.what
    finally:
        r.execute("DROP OWNED BY checker; DROP ROLE checker")
