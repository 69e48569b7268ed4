"""The way back, with a real PostgreSQL and the stand-in for Oracle."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import oracledb
import psycopg
import pytest

from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.ledger import TableLedger, ensure_ledger
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.fallback_run import (
    _OF_TABLE,
    _passing,
    _PassingError,
    end,
    prepare,
    resume_table,
    run,
    status,
)
from olr_pg.fallback.oracle_ledger import OracleLedger
from olr_pg.fallback.oracle_writer import OracleWriter
from olr_pg.fallback.pgoutput import lsn_number
from olr_pg.fallback.preparation import read_slot, wait_until_free
from olr_pg.fallback.relation_plans import PartitionWatch
from olr_pg.fallback.slot_stream import SlotStream
from olr_pg.load.cutover_steps import DONE, TAKEN_BACK, note_step
from olr_pg.load.load_progress import LoadState, TableLoadProgress
from olr_pg.load.verification.differences import TableDifferences
from olr_pg.load.verification.repair import repair
from olr_pg.load.verification.target_state import read_state
from olr_pg.load.verification.verification import DIFFERENT, RowDifference
from olr_pg.oracle.oracle_connection import open_connection
from tests.advice import followed
from tests.fallback.made_way import MadeWay
from tests.waiting import wait_until

if TYPE_CHECKING:
    from olr_pg.fallback.oracle_ledger import LedgerState
    from tests.proving.served import Served

_numbers = itertools.count(1)


@pytest.fixture
def made(served: Served, logical_database: str) -> MadeWay:
    found = MadeWay(served, logical_database, f"t{next(_numbers)}")
    prepare(found.way)
    return found


def test_all_kinds_of_changes_go_back(made: MadeWay) -> None:
    made.sql(
        "INSERT INTO {t} SELECT n, 'v' || n, n, repeat('x', 30) FROM generate_series(1, 200) n"
    )
    made.sql("UPDATE {t} SET v = v || '!' WHERE id % 2 = 0", "DELETE FROM {t} WHERE id % 5 = 0")
    made.sql("UPDATE {t} SET id = id + 1000 WHERE id < 20", "INSERT INTO {t} (id) VALUES (5)")
    made.sql("DELETE FROM {t} WHERE id = 5", "INSERT INTO {t} VALUES (5, 'again', NULL, NULL)")
    run(made.way, once=True)
    assert made.same()
    made.sql("TRUNCATE {t}", "INSERT INTO {t} VALUES (1, 'one', 1, NULL)")
    run(made.way, once=True)
    assert made.rows() == ([(1, "one", 1, None)],) * 2


def test_the_session_of_the_slot_has_its_own_encoding(made: MadeWay) -> None:
    """LATIN1 encodes these letters as the bytes of UTF-8 for one other letter."""
    with psycopg.connect(made.database, autocommit=True) as connection:
        connection.execute(
            f"ALTER DATABASE {connection.info.dbname} SET client_encoding = 'LATIN1'".encode()
        )
    made.sql("INSERT INTO {t} VALUES (1, chr(195) || chr(169), 1, NULL)")
    run(made.way, once=True)
    assert made.same()
    assert made.rows()[1][0][1] == "\u00c3\u00a9"


def test_no_time_limit_of_the_role_ends_a_transaction_that_oracle_takes_slowly(
    made: MadeWay,
) -> None:
    state = status(made.way).ledger
    assert state is not None
    made.sql("INSERT INTO {t} SELECT n, 'v', 1, repeat('x', 4000) FROM generate_series(1, 9000) n")
    # Not compressed, the rows are more than the buffers of both sockets.
    with psycopg.connect(made.database, autocommit=True) as connection:
        name = connection.info.dbname
        for limit in ("transaction_timeout", "tcp_user_timeout"):
            connection.execute(f"ALTER DATABASE {name} SET {limit} = '300ms'".encode())
        with closing(SlotStream(made.database)) as stream:
            stream.start(made.way.slot, made.way.publication, state.lsn)
            assert stream.next_message(60.0) is not None
            # PostgreSQL waits for the client, for longer than the limits.
            waits = (
                "SELECT wait_event = 'WalSenderWriteData' FROM pg_stat_activity"
                " WHERE backend_type = 'walsender' AND datname = current_database()"
            )
            wait_until(lambda: connection.execute(waits.encode()).fetchone() == (True,), 60.0)
            connection.execute("SELECT pg_sleep(0.6)")
            count, kind = 0, b""
            while count < 9000 or kind not in (b"C", b"c"):
                message = stream.next_message(60.0)
                assert message is not None
                kind = message[:1]
                count += kind == b"I"


def test_a_toasted_value_that_did_not_change_stays(made: MadeWay) -> None:
    made.sql("ALTER TABLE {t} ALTER big SET STORAGE EXTERNAL")
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, repeat('long', 900))")
    run(made.way, once=True)
    made.sql("UPDATE {t} SET v = 'b'", "UPDATE {t} SET id = 2")
    run(made.way, once=True)
    assert made.same()
    assert made.rows()[1][0][:2] == (2, "b")


def test_streamed_transactions_leave_out_what_rolled_back(made: MadeWay) -> None:
    """Large ones come in pieces before they commit, with their subtransactions."""
    fill = "INSERT INTO {{t}} SELECT n, 'v', 1, repeat('x', 500) FROM generate_series({}, {}) n"
    with psycopg.connect(made.database) as other:
        # Beside it, another one stays open, and a third one rolls back as a whole.
        other.execute(fill.format(5000, 5999).format(t=f"app.{made.name}").encode())
        made.sql(
            fill.format(1, 1000),
            "SAVEPOINT a",
            fill.format(1001, 2000),
            "UPDATE {t} SET w = 7",
            "ROLLBACK TO a",
            "UPDATE {t} SET w = 3 WHERE id <= 500",
        )
        run(made.way, once=True)
        other.rollback()
    run(made.way, once=True)
    there, here = made.rows()
    assert len(there) == 1000
    assert there == here


def test_nothing_is_applied_twice_when_the_slot_was_not_confirmed(made: MadeWay) -> None:
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)", "UPDATE {t} SET w = w + 1")
    run(made.way, once=True)
    slot = made.way.slot
    with psycopg.connect(made.database, autocommit=True) as connection:
        copy = "SELECT pg_copy_logical_replication_slot(%s, %s)"
        connection.execute(copy, (slot, f"{slot}_before"))
        made.sql("UPDATE {t} SET w = w + 1", "INSERT INTO {t} VALUES (2, 'b', 1, NULL)")
        run(made.way, once=True)
        # As a kill leaves it between Oracle's commit and the confirmation.
        wait_until_free(connection, slot)
        connection.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
        connection.execute(copy, (f"{slot}_before", slot))
        connection.execute("SELECT pg_drop_replication_slot(%s)", (f"{slot}_before",))
    made.sql("INSERT INTO {t} VALUES (3, 'c', 1, NULL)")
    run(made.way, once=True)
    assert made.same()


def test_a_refused_change_stops_its_table_until_it_is_resumed(made: MadeWay) -> None:
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL), (2, 'b', 2, NULL)")
    run(made.way, once=True)
    made.oracle("DELETE FROM {t} WHERE id = 1")
    made.sql("UPDATE {t} SET v = 'changed' WHERE id = 2")
    made.sql("UPDATE {t} SET v = 'lost' WHERE id = 1")
    made.sql("UPDATE {t} SET w = 9 WHERE id = 2")
    with pytest.raises(OlrPgError) as caught:
        run(made.way, once=True)
    assert caught.value.code == Code.FALLBACK_TABLES_STOPPED
    assert made.rows()[1] == [(2, "changed", 2, None)]
    kept = status(made.way)
    assert kept.ledger is not None
    assert kept.slot is not None
    assert kept.slot.lsn <= kept.ledger.needed_lsn < kept.ledger.lsn

    with pytest.raises(OlrPgError):
        run(made.way, once=True)  # still
    followed(caught.value, Code.FALLBACK_TABLES_STOPPED, "correct the cause", "fallback resume")
    made.oracle("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    assert resume_table(made.way, made.way.tables[0].full_name)
    made.sql("INSERT INTO {t} VALUES (3, 'c', 3, NULL)")
    run(made.way, once=True)
    assert made.same()
    after = status(made.way)
    assert after.ledger is not None
    assert after.ledger.stops == {}


def test_ddl_in_postgresql_stops_the_table(made: MadeWay) -> None:
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    made.sql("ALTER TABLE {t} ADD extra int")
    made.sql("INSERT INTO {t} VALUES (2, 'b', 2, NULL, 5)")
    with pytest.raises(OlrPgError, match="7313"):
        run(made.way, once=True)
    assert made.rows()[1] == [(1, "a", 1, None)]


PASSING = (
    "ORA-00028", "ORA-00054", "ORA-00060", "ORA-00257", "ORA-01012", "ORA-01033", "ORA-01034",
    "ORA-01089", "ORA-01092", "ORA-01109", "ORA-01555", "ORA-01652", "ORA-02049", "ORA-02396",
    "ORA-03113", "ORA-03114", "ORA-03135", "ORA-04020", "ORA-04021", "ORA-04030", "ORA-04031",
    "ORA-04036", "ORA-04061", "ORA-04068", "ORA-08177", "ORA-12153", "ORA-12514", "ORA-12537",
    "ORA-12541", "ORA-12547", "ORA-12570", "ORA-12571", "ORA-16000", "ORA-22924", "ORA-25402",
    "ORA-25408", "ORA-30006", "ORA-30036",
)  # fmt: skip
OF_TABLE = (
    "ORA-00942", "ORA-01031", "ORA-01400", "ORA-01407", "ORA-01438", "ORA-01502", "ORA-01536",
    "ORA-01653", "ORA-01654", "ORA-01691", "ORA-02290", "ORA-02291", "ORA-02292", "ORA-04098",
    "ORA-12081", "ORA-12899", "ORA-14400", "ORA-20001", "ORA-32795",
)  # fmt: skip


@pytest.mark.parametrize("code", [*PASSING, *OF_TABLE])
def test_each_error_of_oracle_is_retried_or_stops_its_table(code: str) -> None:
    """What does not depend on the change is retried."""
    with pytest.raises((_PassingError, OlrPgError)) as caught, _passing():
        raise oracledb.DatabaseError(f"{code}: as told")
    error = caught.value
    is_of_table = isinstance(error, OlrPgError) and error.code in _OF_TABLE
    assert (isinstance(error, _PassingError), is_of_table) == (code in PASSING, code in OF_TABLE)


def test_after_an_error_of_oracle_the_place_is_kept(
    made: MadeWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.fallback.fallback_run.FIRST_WAIT_SECONDS", 0.01)
    left = ["ORA-20001", "ORA-01653", "ORA-01653", "ORA-00060", "ORA-03113"]
    execute = OracleWriter._execute

    def failing(self: OracleWriter, *arguments: Any) -> int:
        found = execute(self, *arguments)
        if left:
            raise oracledb.DatabaseError(f"{left.pop()}: as told")
        return found

    monkeypatch.setattr(OracleWriter, "_execute", failing)
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    assert "ORA-01653" in stopped_at(made)  # the batch, and then the change by itself
    assert left == ["ORA-20001"]
    assert not made.same()
    left.clear()
    made.sql("INSERT INTO {t} VALUES (2, 'b', 1, NULL)")
    assert resume_table(made.way, made.way.tables[0].full_name)
    run(made.way, once=True)
    assert made.same()


RENAME = "ALTER TABLE app.{0} RENAME TO {1}"


def stopped_at(made: MadeWay) -> str:
    """Run the way back, which stops the table; return why."""
    with pytest.raises(OlrPgError) as caught:
        run(made.way, once=True)
    assert caught.value.code == Code.FALLBACK_TABLES_STOPPED
    return str(caught.value)


def test_a_renamed_table_stops_and_nothing_is_lost_after_it_has_its_name_again(
    made: MadeWay,
) -> None:
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    made.sql(RENAME.format(made.name, "other"), "INSERT INTO app.other VALUES (2, 'b', 2, NULL)")
    assert "7320" in stopped_at(made)
    error = OlrPgError(Code.FALLBACK_NOT_PUBLISHED, "")
    followed(error, Code.FALLBACK_NOT_PUBLISHED, "undo the change in PostgreSQL")
    made.sql(RENAME.format("other", made.name), "INSERT INTO {t} VALUES (3, 'c', 3, NULL)")
    assert resume_table(made.way, made.way.tables[0].full_name)
    run(made.way, once=True)
    assert made.same()
    assert [row[0] for row in made.rows()[1]] == [1, 2, 3]


def test_a_table_that_was_created_again_stops_until_it_is_published(made: MadeWay) -> None:
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    made.sql(
        "CREATE TABLE app.again (LIKE {t} INCLUDING ALL)",
        "INSERT INTO app.again SELECT * FROM {t}",
        "DROP TABLE {t}",
        RENAME.format("again", made.name),
        "INSERT INTO {t} VALUES (2, 'unpublished', 2, NULL)",
    )
    assert "7320" in stopped_at(made)
    assert resume_table(made.way, made.way.tables[0].full_name)
    assert "7320" in stopped_at(made)  # still
    error = OlrPgError(Code.FALLBACK_NOT_PUBLISHED, "")
    followed(error, Code.FALLBACK_NOT_PUBLISHED, "run `olr-pg fallback begin`", "correct the rows")
    prepare(made.way)
    made.oracle("INSERT INTO {t} VALUES (2, 'unpublished', 2, NULL)")
    assert resume_table(made.way, made.way.tables[0].full_name)
    made.sql("INSERT INTO {t} VALUES (3, 'c', 3, NULL)")
    run(made.way, once=True)
    assert made.same()


@pytest.mark.parametrize(
    "change",
    [
        "ALTER PUBLICATION {p} DROP TABLE {t}",
        "ALTER PUBLICATION {p} SET TABLE {t} WHERE (id < 5), olr_pg.ledger, olr_pg.load_part",
        "ALTER PUBLICATION {p} SET (publish = 'insert, update, delete')",
        "ALTER PUBLICATION {p} DROP TABLE olr_pg.ledger",
        "DROP PUBLICATION {p}",
    ],
)
def test_a_changed_publication_is_noticed(made: MadeWay, change: str) -> None:
    made.sql(change.replace("{p}", made.way.publication))
    with pytest.raises(OlrPgError) as caught:
        run(made.way, once=True)
    assert "7320" in str(caught.value)


def test_partitions_that_lose_their_rows_are_noticed(logical_database: str, made: MadeWay) -> None:
    """PostgreSQL sends nothing of it."""
    made.sql(
        "DROP TABLE {t}",
        "CREATE TABLE {t} (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        *(
            f"CREATE TABLE app.{name} PARTITION OF {{t}} FOR VALUES FROM ({n}) TO ({n + 1})"
            for n, name in enumerate(("emptied", "dropped", "detached", "rewritten", "kept"))
        ),
        "INSERT INTO {t} SELECT generate_series(0, 4)",
    )
    with psycopg.connect(logical_database, autocommit=True) as connection:
        watch = PartitionWatch(made.way, connection)
        assert list(watch.emptied()) == []
        for change in (
            "TRUNCATE app.emptied",
            "DROP TABLE app.dropped",
            f"ALTER TABLE app.{made.name} DETACH PARTITION app.detached",
            "VACUUM FULL app.rewritten",
        ):
            connection.execute(change.encode())
        found = {one.partition: one.reason for one in watch.emptied()}
        assert list(watch.emptied()) == []
    assert found == {
        "emptied": "the partition was truncated or rewritten",
        "dropped": "the partition was dropped or detached",
        "detached": "the partition was dropped or detached",
    }


def test_rows_with_the_same_key_of_oracle_are_not_merged(
    served: Served, logical_database: str
) -> None:
    """PostgreSQL need not have Oracle's key."""
    made = MadeWay(served, logical_database, "keyless")
    made.sql("ALTER TABLE {t} DROP CONSTRAINT keyless_pkey")
    prepare(made.way)
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL), (1, 'b', 2, NULL)")
    assert "7306" in stopped_at(made)
    assert made.rows()[1] == []


def test_a_row_that_replaces_another_one_of_the_same_key_is_not_lost(
    served: Served, logical_database: str
) -> None:
    """PostgreSQL's key is another one, so that both rows exist for a moment."""
    made = MadeWay(served, logical_database, "replaced")
    made.sql("ALTER TABLE {t} DROP CONSTRAINT replaced_pkey, ADD PRIMARY KEY (v)")
    prepare(made.way)
    made.sql("INSERT INTO {t} VALUES (1, 'old', 1, NULL)")
    run(made.way, once=True)
    made.sql("INSERT INTO {t} VALUES (1, 'new', 2, NULL)", "DELETE FROM {t} WHERE v = 'old'")
    assert "7306" in stopped_at(made)


def test_truncate_does_not_delete_rows_that_a_filter_keeps_out(made: MadeWay) -> None:
    name = made.way.tables[0].full_name
    made.oracle("INSERT INTO {t} VALUES (9, 'filtered', 1, NULL)")
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    made.sql("TRUNCATE {t}")
    made.way = made.way._replace(partial=frozenset({name}))
    assert "7313" in stopped_at(made)
    assert [row[0] for row in made.rows()[1]] == [1, 9]
    made.oracle("DELETE FROM {t} WHERE id = 1")
    assert resume_table(made.way, name, skip=True)
    run(made.way, once=True)
    assert [row[0] for row in made.rows()[1]] == [9]


def test_what_the_forward_way_wrote_does_not_go_back(made: MadeWay) -> None:
    made.sql(
        "INSERT INTO {t} VALUES (1, 'from Oracle', 1, NULL)",
        "INSERT INTO olr_pg.ledger (subscription, source_table, target_table, commit_scn)"
        " VALUES ('s', 'x', 'y', 1)",
    )
    made.sql("INSERT INTO {t} VALUES (2, 'from here', 1, NULL)")
    run(made.way, once=True)
    assert made.rows()[1] == [(2, "from here", 1, None)]


def test_repaired_rows_do_not_go_back(made: MadeWay) -> None:
    """They came from Oracle, which may have changed them since."""
    made.sql("INSERT INTO {t} VALUES (1, 'wrong', 1, NULL)")
    run(made.way, once=True)
    made.oracle("UPDATE {t} SET v = 'newer'")
    with psycopg.connect(made.database) as connection:
        target = read_table(connection, "app", made.name)
        assert target is not None
        image = "SELECT record_send(ROW(id, {}, w, big)) FROM app.{}"
        wrong, right = (
            connection.execute(image.format(v, made.name).encode()).fetchall()[0][0]
            for v in ("v", "'right'::varchar")
        )
        version = connection.execute(f"SELECT xmin::text::int8 FROM app.{made.name}".encode())
        row = RowDifference(DIFFERENT, b"", right, wrong, version=version.fetchall()[0][0])
        name, columns = made.way.tables[0].full_name, target.columns
        TableLedger(made.way.subscription, name, target.full_name).lock(connection)
        state = read_state(connection, (made.way.subscription, name), target.oid)
        # As `olr-pg fallback cutover` leaves it: applications use Oracle, and the slot is kept.
        note_step(connection, made.way.subscription, TAKEN_BACK, DONE, {})
    found = TableDifferences(
        *(name, "app", made.name, tuple(one.name for one in columns)),
        *(tuple(one.base_oid for one in columns), ("id",), [row], state),
    )
    settings = replace(made.way.settings, subscription=made.way.subscription)
    assert [one.updated for one in repair(settings, [found])] == [1]
    run(made.way, once=True)
    there, here = made.rows()
    assert [row[1] for row in (*there, *here)] == ["right", "newer"]


def test_a_load_that_begins_again_does_not_empty_oracles_table(made: MadeWay) -> None:
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    run(made.way, once=True)
    progress = TableLoadProgress("loads", "APP.T", made.name)
    with psycopg.connect(made.database) as connection:
        progress.begin(connection, LoadState(10, 5, "range", 1))
    with psycopg.connect(made.database) as connection:  # as --restart before a part was loaded
        progress.forget(connection)
        connection.execute(f"TRUNCATE app.{made.name}".encode())
        progress.begin(connection, LoadState(20, 5, "range", 1))
    run(made.way, once=True)
    assert [row[0] for row in made.rows()[1]] == [1]


def test_what_is_lost_is_said(made: MadeWay) -> None:
    with psycopg.connect(made.database, autocommit=True) as connection:
        connection.execute("SELECT pg_drop_replication_slot(%s)", (made.way.slot,))
    with pytest.raises(OlrPgError) as lost:
        run(made.way, once=True)
    assert lost.value.code == Code.FALLBACK_SLOT_LOST
    with pytest.raises(OlrPgError) as again:
        prepare(made.way)
    followed(again.value, Code.FALLBACK_SLOT_LOST, "run `olr-pg fallback end`")
    end(made.way)
    with pytest.raises(OlrPgError) as ended:
        run(made.way, once=True)
    followed(ended.value, Code.FALLBACK_NOT_BEGUN, "`olr-pg fallback begin`")
    prepare(made.way)
    run(made.way, once=True)
    made.oracle(f"DELETE FROM olr_pg_fallback WHERE subscription = '{made.way.subscription}'")
    with pytest.raises(OlrPgError) as ledger:
        run(made.way, once=True)
    assert ledger.value.code == Code.FALLBACK_LEDGER_LOST
    with pytest.raises(OlrPgError) as kept:
        prepare(made.way)
    followed(kept.value, Code.FALLBACK_LEDGER_LOST, "`olr-pg fallback end` and", "begin`")
    _begins_again(made)


def _begins_again(made: MadeWay) -> None:
    """As several errors advise: when both databases are equal, end the way, and begin it again."""
    end(made.way)
    prepare(made.way)
    made.sql("INSERT INTO {t} VALUES (77, 'after', 7, NULL)")
    run(made.way, once=True)
    assert made.same()


def test_a_slot_that_was_idle_for_too_long_is_said(made: MadeWay) -> None:
    with psycopg.connect(made.database, autocommit=True) as connection:
        if connection.info.server_version < 180_000:
            pytest.skip("no such setting")
        connection.execute("ALTER SYSTEM SET idle_replication_slot_timeout = '1s'")
        connection.execute("SELECT pg_reload_conf()")

        def is_lost() -> bool:
            connection.execute("CHECKPOINT")
            slot = read_slot(connection, made.way.slot)
            return slot is not None and slot.wal_status == "lost"

        try:
            made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
            wait_until(is_lost, 60.0)
        finally:
            connection.execute("ALTER SYSTEM RESET idle_replication_slot_timeout")
            connection.execute("SELECT pg_reload_conf()")
    with pytest.raises(OlrPgError, match="idle_replication_slot_timeout") as lost:
        run(made.way, once=True)
    assert lost.value.code == Code.FALLBACK_SLOT_LOST


def test_a_slot_that_was_read_by_others_is_noticed(made: MadeWay) -> None:
    run(made.way, once=True)
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    with psycopg.connect(made.database, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", (made.way.slot,)
        )
    with pytest.raises(OlrPgError) as ahead:
        run(made.way, once=True)
    followed(ahead.value, Code.FALLBACK_SLOT_AHEAD, "correct the rows", "`olr-pg fallback end` and")
    made.oracle("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    _begins_again(made)


def test_swapped_unique_values_go_change_by_change(made: MadeWay) -> None:
    """What a batch cannot do in one order is done in PostgreSQL's."""
    made.oracle("ALTER TABLE {t} ADD CONSTRAINT {t}_u UNIQUE (v)")
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL), (2, 'b', 2, NULL)")
    run(made.way, once=True)
    made.sql(
        "UPDATE {t} SET v = 'x' WHERE id = 1",
        "UPDATE {t} SET v = 'a' WHERE id = 2",
        "UPDATE {t} SET v = 'b' WHERE id = 1",
    )
    run(made.way, once=True)
    assert made.same()


def test_wal_that_has_nothing_for_oracle_is_let_go(
    made: MadeWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.fallback.fallback_run.IDLE_SECONDS", 0.0)
    monkeypatch.setattr("olr_pg.fallback.fallback_run.POLL_SECONDS", 0.01)
    before = status(made.way).slot
    made.sql("CREATE TABLE app.other AS SELECT generate_series(1, 2000)")

    class Enough(Exception):  # noqa: N818
        pass

    moves = list[int]()

    def look(state: LedgerState) -> None:
        moves.append(state.lsn)
        slot = status(made.way).slot
        assert slot is not None
        assert slot.lsn <= state.lsn
        if len(moves) > 1:  # the slot was confirmed after the first
            raise Enough
        made.sql("CREATE TABLE app.more AS SELECT 1")

    with pytest.raises(Enough):
        run(made.way, progress=look)
    after = status(made.way).slot
    assert before is not None
    assert after is not None
    assert before.lsn < after.lsn
    assert moves[0] <= after.lsn


def test_large_values_are_written_in_parts(made: MadeWay, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction is one in Oracle, however many arrays it takes."""
    monkeypatch.setattr("olr_pg.fallback.fallback_run.BATCH_BYTES", 20_000)
    written = list[int]()
    write = OracleWriter.write

    def counted(self: OracleWriter, plan: Any, rows: Any) -> None:
        written.append(rows.size)
        write(self, plan, rows)

    monkeypatch.setattr(OracleWriter, "write", counted)
    made.sql("INSERT INTO {t} SELECT n, 'v', 1, repeat('x', 4000) FROM generate_series(1, 40) n")
    run(made.way, once=True)
    assert made.same()
    assert len(written) == 8
    assert max(written) < 25_000


@pytest.mark.parametrize("changed", ["system_id = '1'", "timeline = 99"])
def test_another_cluster_or_history_is_said(made: MadeWay, changed: str) -> None:
    made.oracle(f"UPDATE olr_pg_fallback SET {changed} WHERE subscription = '{made.name}'")
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    with pytest.raises(OlrPgError) as refused:
        run(made.way, once=True)
    followed(refused.value, Code.FALLBACK_OTHER_CLUSTER, "correct the rows", "fallback begin")
    assert made.rows()[1] == []
    made.oracle("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    _begins_again(made)


def test_a_second_process_applies_nothing(made: MadeWay, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL lets one of them read; one that lost its slot cannot move the ledger any more."""
    monkeypatch.setattr("olr_pg.fallback.preparation.FREE_SECONDS", 0.1)
    state = status(made.way).ledger
    assert state is not None
    with closing(SlotStream(made.database)) as other:
        other.start(made.way.slot, made.way.publication, state.lsn)
        with pytest.raises(OlrPgError) as in_use:
            run(made.way, once=True)
        followed(in_use.value, Code.FALLBACK_SLOT_IN_USE, "end the other `olr-pg fallback run`")
        with pytest.raises(OlrPgError) as kept:
            end(made.way)
        assert kept.value.code == Code.FALLBACK_SLOT_IN_USE
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    monkeypatch.setattr("olr_pg.fallback.preparation.FREE_SECONDS", 120.0)
    run(made.way, once=True)
    with open_connection(made.way.source) as connection, pytest.raises(OlrPgError) as moved:
        OracleLedger(connection, made.name).advance(state.lsn, state.lsn + 1, 1)
    words = "end the other `olr-pg fallback run`, then start this command again"
    followed(moved.value, Code.FALLBACK_LEDGER_MOVED, words)
    made.sql("INSERT INTO {t} VALUES (2, 'b', 2, NULL)")
    run(made.way, once=True)
    assert made.same()


def test_a_commit_of_a_lost_session_that_comes_late_is_waited_for(made: MadeWay) -> None:
    """Oracle can still work on a COMMIT although the network has lost the session that sent it."""
    state = status(made.way).ledger
    assert state is not None
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    with psycopg.connect(made.database) as connection:
        row = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None
    database = made.served.server.database
    waits = vars(database)["_waits"]
    with open_connection(made.way.source) as lost, ThreadPoolExecutor(1) as threads:
        lost.cursor().execute(f"INSERT INTO {made.name} VALUES (1, 'a', 1, NULL)")
        OracleLedger(lost, made.name).advance(state.lsn, lsn_number(str(row[0])), 1)
        later = threads.submit(run, made.way, once=True)
        wait_until(lambda: vars(database)["_waits"] > waits or later.done())
        lost.commit()
        later.result()
    assert made.same()
    state = status(made.way).ledger
    assert state is not None
    assert not state.stops


def test_a_table_without_a_key_and_a_server_without_slots_are_refused(
    made: MadeWay, postgres_database: str
) -> None:
    keyless = replace(made.way.tables[0], key=())
    with pytest.raises(OlrPgError) as unfit:
        prepare(made.way._replace(tables=(keyless,)))
    assert unfit.value.code == Code.FALLBACK_TABLE_UNFIT
    other = made.way._replace(connect_string=postgres_database, subscription="elsewhere")
    with pytest.raises(OlrPgError) as unloaded:
        prepare(other)
    assert unloaded.value.code == Code.LEDGER_MISSING
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        ensure_ledger(connection)
        has_slots = connection.execute("SHOW wal_level").fetchone() == ("logical",)
    with pytest.raises(OlrPgError) as level:
        prepare(other)
    # A server with slots is asked for the table next, which it does not have.
    expected = Code.FALLBACK_TABLE_UNFIT if has_slots else Code.FALLBACK_WAL_LEVEL
    assert level.value.code == expected


def test_a_key_that_is_not_the_replica_identity_is_logged_all_the_same(
    served: Served, logical_database: str
) -> None:
    """PostgreSQL's primary key may be another one than Oracle's."""
    made = MadeWay(served, logical_database, "otherkey")
    made.sql("ALTER TABLE {t} DROP CONSTRAINT otherkey_pkey, ADD PRIMARY KEY (v)")
    prepare(made.way)
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL), (2, 'b', 2, NULL)")
    made.sql("UPDATE {t} SET id = 3, w = 5 WHERE v = 'a'", "DELETE FROM {t} WHERE v = 'b'")
    run(made.way, once=True)
    assert made.same()
    assert made.rows()[1] == [(3, "a", 5, None)]


def test_partitions_go_back_as_their_table(served: Served, logical_database: str) -> None:
    made = MadeWay(served, logical_database, "parts")
    made.sql(
        "DROP TABLE {t}",
        "CREATE TABLE {t} (id bigint PRIMARY KEY, v varchar(400), w bigint, big text)"
        " PARTITION BY RANGE (id)",
        "CREATE TABLE {t}_low PARTITION OF {t} FOR VALUES FROM (0) TO (100)",
        "CREATE TABLE {t}_high PARTITION OF {t} FOR VALUES FROM (100) TO (1000)",
    )
    prepare(made.way)
    made.sql("INSERT INTO {t} SELECT n * 30, 'v', n, NULL FROM generate_series(1, 6) n")
    made.sql("UPDATE {t} SET id = 500 WHERE id = 30", "DELETE FROM {t} WHERE id = 150")
    run(made.way, once=True)
    assert made.same()
