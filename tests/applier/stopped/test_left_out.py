"""A table stops if the appliance ran without it: its changes since then are missing.

Tables whose targets do not fit stop before anything is written; the others go on.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
import structlog
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.session.applier_session import Applier
from olr_pg.applier.session.handover import Created, begin_added
from olr_pg.applier.session.server_side import ServerSide, SourceLogs, connect_over_network
from olr_pg.applier.stopped.error_table import read_errors, skip_error
from olr_pg.applier.stopped.left_out import forget_left_out, stop_left_out
from olr_pg.applier.stopped.pausing import pause_table, unpause_table
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target_checks import check_target
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.load_progress import TableLoadProgress
from olr_pg.observability.findings import Severity
from tests.waiting import wait_until

Replication = Any  # tests/applier/conftest.py

_ID = Column("ID", 1, 1, 1, OracleType.NUMBER, 22, 9, 0, nullable=False)
_T, _R = (
    Table("S", name, number, number, (_ID,), key_kind=KeyKind.PRIMARY, key=(1,))
    for number, name in enumerate(("T", "R"), 1)
)


@pytest.fixture
def narrowed(replication: Replication) -> Replication:
    """Both tables were replicated, then only ``T``."""
    r = replication
    r.execute("CREATE TABLE s.r (id bigint PRIMARY KEY)")
    r.transaction(r.insert({"ID": 1}), r.insert({"ID": 1}, "R"))
    r.apply([_T, _R])
    r.transaction(r.insert({"ID": 2}))  # and a change of R, which nobody delivers
    r.serve()
    r.apply([_T])
    r.transaction(r.insert({"ID": 3}), r.insert({"ID": 3}, "R"))
    r.serve()
    return r


def _stops(r: Replication) -> int:
    with pytest.raises(OlrPgError) as stopped:
        r.apply([_T, _R])
    assert stopped.value.code == Code.TABLES_STOPPED
    assert "OLR-05030" in str(stopped.value)
    with connect(r.target) as connection:
        (error,) = read_errors(connection, "olr_pg", resolved=False)
    assert (error.source_table, error.code) == ("S.R", Code.TABLE_WAS_LEFT_OUT)
    return error.id


def _ids(r: Replication, table: str) -> list[int]:
    return [one for (one,) in r.rows(f"SELECT id FROM s.{table} ORDER BY id")]


def test_it_stops_and_the_others_go_on(narrowed: Replication) -> None:
    _stops(narrowed)
    assert _ids(narrowed, "t") == [1, 2, 3]
    assert _ids(narrowed, "r") == [1]


def test_neither_a_retry_nor_a_restart_resumes_it(narrowed: Replication) -> None:
    _stops(narrowed)
    with connect(narrowed.target) as connection:
        error = replay(connection, narrowed.settings(), "S.R").error
    assert error is not None
    assert error.code == Code.TABLE_WAS_LEFT_OUT
    narrowed.serve()
    _stops(narrowed)
    assert _ids(narrowed, "r") == [1]


def test_a_skipped_gap_is_one_that_an_operator_accepted(narrowed: Replication) -> None:
    number = _stops(narrowed)
    with connect(narrowed.target) as connection:
        skip_error(connection, "olr_pg", number)
        assert replay(connection, narrowed.settings(), "S.R").error is None
    assert _ids(narrowed, "r") == [1, 3]
    narrowed.transaction(narrowed.insert({"ID": 4}, "R"))
    narrowed.serve()
    narrowed.apply([_T, _R])
    assert _ids(narrowed, "r") == [1, 3, 4]


def test_a_stopped_table_that_leaves_the_list_has_one_gap(narrowed: Replication) -> None:
    """A retry while the list lacks the table, and the start with the table, find the same gap."""
    r = narrowed
    r.execute("UPDATE olr_pg.ledger SET stopped = true WHERE source_table = 'S.R'")
    with connect(r.target) as connection:
        for _ in range(2):
            assert replay(connection, r.settings(), "S.R").error is not None
    number = _stops(r)
    r.serve()
    assert _stops(r) == number
    with connect(r.target) as connection:
        skip_error(connection, "olr_pg", number)
        assert replay(connection, r.settings(), "S.R").error is None
        assert read_errors(connection, "olr_pg", resolved=False) == []
    assert _ids(r, "r") == [1, 3]


def test_a_repeated_skip_accepts_no_later_gap(narrowed: Replication) -> None:
    """A command that is repeated by mistake after weeks, when the table was left out once more."""
    r = narrowed
    first = _stops(r)
    with connect(r.target) as connection:
        skip_error(connection, "olr_pg", first)
        assert replay(connection, r.settings(), "S.R").error is None
    r.transaction(r.insert({"ID": 4}))  # and a change of R, which nobody delivers
    r.serve()
    r.apply([_T])
    r.transaction(r.insert({"ID": 5}), r.insert({"ID": 5}, "R"))
    r.serve()
    second = _stops(r)
    assert second != first
    with connect(r.target) as connection:
        skip_error(connection, "olr_pg", first)
        error = replay(connection, r.settings(), "S.R").error
        assert error is not None
        assert error.code == Code.TABLE_WAS_LEFT_OUT
        assert _ids(r, "r") == [1, 3]
        skip_error(connection, "olr_pg", second)
        assert replay(connection, r.settings(), "S.R").error is None
    assert _ids(r, "r") == [1, 3, 5]


@pytest.mark.parametrize(
    ("created_scn", "is_just_read", "expected"),
    [(5, True, [1, 2]), (5, False, None)],
)
def test_a_table_whose_creation_was_read_again_gets_what_it_lacks(
    replication: Replication, created_scn: int, is_just_read: bool, expected: list[int] | None
) -> None:
    """Older files of `context.data` were restored. Until the creation was read again, the list of
    this process lacked the table, and the other table has confirmed more since then.
    """
    r = replication
    r.execute("CREATE TABLE s.r (id bigint PRIMARY KEY)")
    r.transaction(r.insert({"ID": 1}), r.insert({"ID": 1}, "R"))
    r.apply([_T, _R])
    r.transaction(r.insert({"ID": 2}))
    r.serve()
    r.apply([_T])
    r.script.transactions.pop()
    r.transaction(r.insert({"ID": 2}), r.insert({"ID": 2}, "R"))
    r.serve()
    made = {"S.R": Created(created_scn, 1, obj=2, is_just_read=is_just_read)}
    applier = Applier(r.settings(), [_T, _R], created=made)
    if expected is None:
        with pytest.raises(OlrPgError, match="OLR-05030"):
            applier.run(once=True, drained=r.script.complete.is_set)
        return
    applier.run(once=True, drained=r.script.complete.is_set)
    assert (_ids(r, "t"), _ids(r, "r")) == ([1, 2], expected)


def _with_second_table(r: Replication, start_scn: int, logs: SourceLogs) -> Applier:
    """The applier after the list has lacked a table that was dropped. A second table of its name
    was created at SCN 24, and the other table has confirmed more since then.
    """
    r.execute("CREATE TABLE s.r (id bigint PRIMARY KEY)")
    r.transaction(r.insert({"ID": 1}), r.insert({"ID": 1}, "R"))
    r.transaction(r.delete({"ID": 1}, "R"))
    r.apply([_T, _R])
    for number in 2, 3:
        r.transaction(r.insert({"ID": number}))
        r.serve()
        r.apply([_T])
    r.script.transactions.pop()
    r.transaction(r.insert({"ID": 3}), r.insert({"ID": 3}, "R"))
    r.serve()
    made = {"S.R": Created(24, start_scn, obj=2)}
    host, port = r.serve()
    server = ServerSide(lambda: connect_over_network(host, port), logs=logs)
    return Applier(r.settings(), [_T, _R], server, made)


@pytest.mark.parametrize("start_scn", [0, 5])
def test_a_second_table_of_its_name_gets_what_was_delivered_without_it(
    replication: Replication, start_scn: int
) -> None:
    """The policy was to ignore new tables, or this target was out of reach when it was created."""
    r, checked = replication, list[int]()
    applier = _with_second_table(r, start_scn, SourceLogs(check_from=checked.append))
    applier.run(once=True, drained=r.script.complete.is_set)
    assert (_ids(r, "t"), _ids(r, "r")) == ([1, 2, 3], [3])
    assert (r.script.started[-1], checked) == (start_scn, [] if start_scn else [24])
    r.serve()
    again = Applier(r.settings(), [_T, _R], created={"S.R": Created(24, start_scn, obj=2)})
    again.run(once=True, drained=r.script.complete.is_set)
    assert r.script.started[-1] == 41  # once is enough
    assert _ids(r, "r") == [3]


def test_a_second_table_of_its_name_does_not_begin_without_its_redo(
    replication: Replication,
) -> None:
    def check_from(scn: int) -> None:
        raise OlrPgError(Code.LOG_MISSING, f"the oldest log begins after SCN {scn}")

    r = replication
    applier = _with_second_table(r, 0, SourceLogs(check_from=check_from))
    with pytest.raises(OlrPgError, match="OLR-02010"):
        applier.run(once=True, drained=r.script.complete.is_set)
    assert r.rows("SELECT left_scn IS NULL FROM olr_pg.ledger WHERE source_table = 'S.R'") == [
        (False,)
    ]


def test_a_table_that_is_added_without_a_load_gets_only_later_changes(
    narrowed: Replication,
) -> None:
    r = narrowed
    scn = r.transaction(r.insert({"ID": 4}), r.insert({"ID": 4}, "R"))
    r.transaction(r.insert({"ID": 5}), r.insert({"ID": 5}, "R"))
    with connect(r.target) as connection:
        begin_added(connection, "olr_pg", "S.R", "s.r", scn)
        forget_left_out(connection, "olr_pg", "S.R")
    r.execute("INSERT INTO s.r VALUES (2), (3), (4)")
    r.apply([_T, _R])
    assert _ids(r, "t") == [1, 2, 3, 4, 5]
    assert _ids(r, "r") == [1, 2, 3, 4, 5]
    with connect(r.target) as connection:  # a replicated table keeps its position
        begin_added(connection, "olr_pg", "S.R", "s.r", 1 << 40)
    r.transaction(r.insert({"ID": 6}, "R"))
    r.serve()
    r.apply([_T, _R])
    assert _ids(r, "r") == [1, 2, 3, 4, 5, 6]


def test_a_table_that_leaves_the_list_before_its_first_change_has_a_gap(
    replication: Replication,
) -> None:
    """The ledger has no row of such a table, so the list itself is recorded."""
    r = replication
    r.execute("CREATE TABLE s.r (id bigint PRIMARY KEY)")
    r.apply([_T])  # nothing is complete yet, so nothing is missing
    r.apply([_T, _R])
    r.transaction(r.insert({"ID": 1}))
    r.serve()
    r.apply([_T, _R])
    r.transaction(r.insert({"ID": 2}))  # and a change of R, which nobody delivers
    r.serve()
    r.apply([_T])
    assert r.rows("SELECT commit_scn FROM olr_pg.ledger WHERE source_table = 'S.R'") == [(0,)]
    _stops(r)
    assert _ids(r, "r") == []


def test_a_table_that_is_new_in_the_list_has_a_warning(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.r (id bigint PRIMARY KEY)")
    warnings: list[Any] = []
    for tables in ([_T], [_T, _R], [_T, _R]):
        r.transaction(r.insert({"ID": len(warnings)}))
        r.serve()
        with structlog.testing.capture_logs() as logged:
            r.apply(tables)
        warnings.append([one["tables"] for one in logged if "without a load" in one["event"]])
    assert warnings == [[], [["S.R"]], []]


def test_a_paused_table_has_its_error_too(narrowed: Replication) -> None:
    with connect(narrowed.target) as connection:
        pause_table(connection, "olr_pg", "S.R", "s.r")
    narrowed.apply([_T, _R])
    with connect(narrowed.target) as connection:
        unpause_table(connection, "olr_pg", "S.R")
        error = replay(connection, narrowed.settings(), "S.R").error
        assert error is not None
        (line,) = read_errors(connection, "olr_pg", resolved=False)
        skip_error(connection, "olr_pg", line.id)
        assert replay(connection, narrowed.settings(), "S.R").error is None
    assert _ids(narrowed, "r") == [1, 3]


def test_a_new_table_of_its_name_lacks_nothing(narrowed: Replication) -> None:
    settings = narrowed.settings()
    created = {"S.R": Created(scn=1 << 40, start_scn=0, obj=2)}
    Applier(settings, [_T, _R], created=created).run(
        once=True, drained=narrowed.script.complete.is_set
    )
    assert _ids(narrowed, "r") == [1, 3]


def test_without_a_list_nothing_is_known_to_be_missing(replication: Replication) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1}))
    r.apply([_T])
    r.transaction(r.insert({"ID": 2}))
    r.serve()
    r.apply()
    r.transaction(r.insert({"ID": 3}))
    r.serve()
    r.apply([_T])
    assert _ids(r, "t") == [1, 2, 3]


_TABLES = [
    Table("S", name, number, number, (_ID,), key_kind=KeyKind.PRIMARY, key=(1,))
    for number, name in enumerate(("T", "R"), 1)
]
_PLAIN = "CREATE TABLE s.r (id int PRIMARY KEY);"
_RULE = (
    "CREATE TABLE s.h (id int); CREATE RULE x AS ON INSERT TO s.r DO INSTEAD INSERT INTO s.h"
    " SELECT NEW.*; ALTER TABLE s.r ENABLE ALWAYS RULE x"
)
UNFIT = {
    "an unlogged table": (
        "CREATE UNLOGGED TABLE s.r (id int PRIMARY KEY)",
        Code.TARGET_TABLE_UNLOGGED,
        "ALTER TABLE s.r SET LOGGED",
    ),
    "a rule": (_PLAIN + _RULE, Code.TARGET_TABLE_UNFIT, "ALTER TABLE s.r DISABLE RULE x"),
    "a child": (
        _PLAIN + "CREATE TABLE s.child () INHERITS (s.r)",
        Code.TARGET_TABLE_UNFIT,
        "DROP TABLE s.child",
    ),
}


def _codes(r: Replication) -> list[int]:
    return [code for (code,) in r.rows("SELECT code FROM olr_pg.error WHERE resolution='stopped'")]


@pytest.mark.parametrize(("sql", "code", "mend"), UNFIT.values(), ids=UNFIT)
@pytest.mark.parametrize("rows", [1, 5])
def test_it_stops_and_goes_on(
    replication: Replication, sql: str, code: Code, mend: str, rows: int
) -> None:
    """By COPY and INSERT alike."""
    r = replication
    r.execute(sql)
    r.transaction(*(r.insert({"ID": n}, table) for n in range(rows) for table in "TR"))
    with pytest.raises(OlrPgError) as stopped:
        r.apply(_TABLES, copy_rows=3)
    assert stopped.value.code == Code.TABLES_STOPPED
    assert f"OLR-{code:05d}" in str(stopped.value)
    assert r.rows("SELECT count(*) FROM s.t") == [(rows,)]
    assert r.rows("SELECT count(*) FROM s.r") == [(0,)]
    assert _codes(r) == [code]
    with connect(r.target) as connection:
        error = replay(connection, r.settings(), "S.R").error
        assert error is not None
        assert error.code == code
        # A skip does not change the target: the reason is still listed.
        (line,) = read_errors(connection, "olr_pg", resolved=False)
        skip_error(connection, "olr_pg", line.id)
        assert replay(connection, r.settings(), "S.R").error is not None
    assert _codes(r) == [code]
    r.execute(mend)
    r.apply(_TABLES, copy_rows=3)
    assert r.rows("SELECT count(*) FROM s.r") == [(rows,)]
    assert _codes(r) == []


def test_a_key_that_the_target_computes(replication: Replication) -> None:
    r = replication
    r.execute("CREATE TABLE s.r (id int GENERATED ALWAYS AS (n + 1) STORED PRIMARY KEY, n int)")
    assert [(one.severity, one.check) for one in check_target(r.settings(), _TABLES)] == [
        (Severity.ERROR, "postgres.columns")
    ]
    r.transaction(r.insert({"ID": 1}, "R"))
    with pytest.raises(OlrPgError):
        r.apply(_TABLES)
    assert _codes(r) == [Code.TARGET_TABLE_UNFIT]


def test_a_table_without_changes_is_named_too(replication: Replication) -> None:
    r = replication
    r.execute("CREATE UNLOGGED TABLE s.r (id int PRIMARY KEY)")
    r.transaction(r.insert({"ID": 1}, "T"))
    with pytest.raises(OlrPgError) as stopped:
        r.apply(_TABLES)
    assert "S.R, because of OLR-05040" in str(stopped.value)
    r.execute("ALTER TABLE s.r SET LOGGED")
    r.apply(_TABLES)
    assert _codes(r) == []


@pytest.mark.parametrize("rows", [1, 5])
def test_a_rule_that_comes_while_changes_are_applied(replication: Replication, rows: int) -> None:
    """The plan is older than the rule; the transaction that would have met it is rolled back."""
    r = replication
    r.execute(_PLAIN)
    r.transaction(r.insert({"ID": 100}, "R"))
    applier = r.applier(_TABLES, copy_rows=3, batch_milliseconds=0)
    r.script.transaction(*(r.insert({"ID": n}, "R") for n in range(rows)))
    seen = list[bool]()

    def drained() -> bool:
        # Once all that was there at the start is in.
        if not seen and r.rows("SELECT EXISTS (SELECT FROM s.r WHERE id = 100)") == [(True,)]:
            seen.append(True)
            r.execute(_RULE)
            r.script.put_rest()
        return bool(seen)

    r.script.transactions, rest = r.script.transactions[:1], r.script.transactions[1:]
    original = r.script.put_rest

    def put_rest() -> None:
        r.script.transactions.extend(rest)
        original()

    r.script.put_rest = put_rest
    with pytest.raises(OlrPgError):
        applier.run(once=True, drained=drained)
    assert r.rows("SELECT count(*) FROM s.r") == [(1,)]
    assert r.rows("SELECT count(*) FROM s.h") == [(0,)]
    assert _codes(r) == [Code.TARGET_TABLE_UNFIT]


def test_row_level_security_hides_nothing(replication: Replication) -> None:
    r = replication
    database = conninfo_to_dict(r.target)["dbname"]
    role = f"hidden_{database}"
    r.execute(
        f"{_PLAIN} CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT ALL ON SCHEMA s TO {role};"
        f"GRANT ALL ON ALL TABLES IN SCHEMA s TO {role};"
        f"GRANT CREATE ON DATABASE {database} TO {role};"
        f"GRANT SET ON PARAMETER session_replication_role TO {role};"
    )
    string = make_conninfo(r.target, user=role, password="x")
    try:
        r.transaction(r.insert({"ID": 1}, "T"), r.insert({"ID": 1}, "R"))
        r.apply(_TABLES, connect_string=string)
        r.execute(
            "ALTER TABLE s.r ENABLE ROW LEVEL SECURITY;"
            "CREATE POLICY p ON s.r USING (false) WITH CHECK (true)"
        )
        with connect(string) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT FROM s.r")
        r.transaction(r.insert({"ID": 2}, "T"), r.insert({"ID": 2}, "R"))
        with pytest.raises(OlrPgError, match="because of OLR-05042"):
            r.apply(_TABLES, connect_string=string)
        assert r.rows("SELECT count(*) FROM s.t") == [(2,)]
        assert r.rows("SELECT count(*) FROM s.r") == [(1,)]
        r.execute(f"ALTER ROLE {role} BYPASSRLS")
        r.apply(_TABLES, connect_string=string)
        assert r.rows("SELECT count(*) FROM s.r") == [(2,)]
    finally:
        r.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_what_fires_always_is_logged_at_the_start(replication: Replication) -> None:
    r = replication
    r.execute(
        f"{_PLAIN} CREATE FUNCTION s.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW;"
        " END'; CREATE TRIGGER g BEFORE INSERT ON s.r FOR EACH ROW EXECUTE FUNCTION s.f();"
        "ALTER TABLE s.r ENABLE ALWAYS TRIGGER g"
    )
    r.transaction(r.insert({"ID": 1}, "R"))
    with structlog.testing.capture_logs() as events:
        r.apply(_TABLES)
    told = [
        one["what"]
        for one in events
        if one["event"] == "a trigger or rule of the target fires on replicated changes"
    ]
    assert told == ["the trigger g of s.r fires always; it can change rows or discard them"]


@pytest.mark.parametrize("rows", [1, 5])
def test_rows_that_a_trigger_leaves_out_are_a_conflict(replication: Replication, rows: int) -> None:
    """By COPY and INSERT alike."""
    r = replication
    r.execute(
        f"{_PLAIN} CREATE FUNCTION s.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL;"
        " END'; CREATE TRIGGER g BEFORE INSERT ON s.r FOR EACH ROW EXECUTE FUNCTION s.f();"
        "ALTER TABLE s.r ENABLE ALWAYS TRIGGER g"
    )
    r.transaction(*(r.insert({"ID": n}, "R") for n in range(rows)))
    with pytest.raises(OlrPgError, match="OLR-05009"):
        r.apply(_TABLES, copy_rows=3)
    assert _codes(r) == [Code.CHANGE_CONFLICTS]


def test_a_start_creates_no_row_again_that_a_command_deletes_meanwhile(
    narrowed: Replication,
) -> None:
    settings = narrowed.settings()
    with (
        psycopg.connect(narrowed.target) as command,
        psycopg.connect(narrowed.target, autocommit=True) as start,
        ThreadPoolExecutor() as pool,
    ):
        command.execute("SELECT")  # begins a transaction, which `leave` does not end
        TableLoadProgress("olr_pg", "S.R", "s.r").leave(command)
        waits = pool.submit(stop_left_out, start, settings, {"S.T": _T}, {})
        process = start.info.backend_pid
        blocked = f"SELECT cardinality(pg_blocking_pids({process})) > 0"
        wait_until(lambda: waits.done() or narrowed.rows(blocked) == [(True,)])
        command.commit()
        waits.result()
    assert narrowed.rows("SELECT source_table FROM olr_pg.ledger") == [("S.T",)]
