"""PostgreSQL fails over: the way back goes on only where nothing that Oracle has was lost."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.fallback_run import prepare, run, status
from olr_pg.postgres.embedded import start_embedded
from tests.fallback.made_way import MadeWay
from tests.postgres.own_cluster import memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.proving.served import Served

SLOTS_ARE_SYNCHRONISED = 170000
STANDBY = "standby"


def copied(primary: str, *, follows: bool) -> Path:
    """A physical copy of a cluster; with `follows` it streams what comes after."""
    folder = Path(tempfile.mkdtemp(prefix="olr-pg-test-", dir=memory()))
    with psycopg.connect(primary, autocommit=True) as connection:
        row = connection.execute(
            "SELECT current_setting('data_directory'), setting FROM pg_config WHERE name = 'BINDIR'"
        ).fetchone()
        version = connection.info.server_version
    assert row is not None
    data, binaries = map(Path, row)
    owner = data.stat()
    folder.chmod(0o755)
    shutil.chown(folder, owner.st_uid, owner.st_gid)
    shutil.copy2(data.parent / "password", folder / "password")
    shutil.chown(folder / "password", owner.st_uid, owner.st_gid)
    (folder / "lock").touch()
    shutil.chown(folder / "lock", owner.st_uid, owner.st_gid)
    how = ["--write-recovery-conf", f"--slot={STANDBY}"] if follows else []
    subprocess.run(
        [
            binaries / "pg_basebackup",
            *(f"--pgdata={folder / 'data'}", f"--dbname={primary}", "--checkpoint=fast", *how),
        ],
        check=True,
        cwd=folder,
        user=owner.st_uid,
        group=owner.st_gid,
        extra_groups=[],
    )
    if follows:
        with (folder / "data/postgresql.auto.conf").open("a") as settings:
            settings.write("hot_standby_feedback = on\n")
            if version >= SLOTS_ARE_SYNCHRONISED:
                settings.write("sync_replication_slots = on\n")
    else:
        (folder / "data/standby.signal").touch()
    return folder


@contextmanager
def standby(folder: Path) -> Iterator[str]:
    """Start a copy; yield its connect string."""
    cluster = start_embedded(folder)
    try:
        yield cluster.connect_string
    finally:
        cluster.stop()
        shutil.rmtree(folder)


def promoted(made: MadeWay, place: str) -> MadeWay:
    """Promote a standby; return the way back with it instead of the primary."""
    with psycopg.connect(place, autocommit=True) as connection:
        assert connection.execute("SELECT pg_promote()").fetchone() == (True,)
    there = conninfo_to_dict(place)
    database = make_conninfo(made.database, host=there["host"], port=there["port"])
    made.way = made.way._replace(connect_string=database)
    made.database = database
    return made


def synchronise(made: MadeWay, place: str) -> None:
    """Wait until the standby has the slot, and everything that the primary has."""
    with (
        psycopg.connect(made.database, autocommit=True) as primary,
        psycopg.connect(place, autocommit=True) as there,
    ):
        has_slot = there.info.server_version < SLOTS_ARE_SYNCHRONISED
        number, deadline = 100, time.monotonic() + 120
        while not has_slot:
            assert time.monotonic() < deadline
            made.sql(f"INSERT INTO {{t}} VALUES ({number}, 'moves the slot', 1, NULL)")
            number += 1
            primary.execute("SELECT pg_log_standby_snapshot()")
            run(made.way, once=True)
            found = there.execute(
                "SELECT FROM pg_replication_slots"
                " WHERE slot_name = %s AND synced AND NOT temporary",
                (made.way.slot,),
            ).fetchone()
            has_slot = found is not None
        row = primary.execute("SELECT pg_current_wal_flush_lsn()").fetchone()
        behind = "SELECT pg_last_wal_replay_lsn() < %s"
        while there.execute(behind, row).fetchone() != (False,):
            assert time.monotonic() < deadline


def refused(made: MadeWay, do: Any = run) -> Code:
    options = {"once": True} if do is run else {}
    with pytest.raises(OlrPgError) as error:
        do(made.way, **options)
    return error.value.code


def test_a_promotion_is_followed_where_it_lost_nothing_and_else_refused(
    served: Served, logical_database: str
) -> None:
    made = MadeWay(served, logical_database, "promoted")
    prepare(made.way)
    with psycopg.connect(logical_database, autocommit=True) as primary:
        primary.execute("SELECT pg_create_physical_replication_slot(%s, true)", (STANDBY,))
        try:
            early, late = (copied(logical_database, follows=one) for one in (False, True))
            with standby(late) as place:
                made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
                run(made.way, once=True)
                synchronise(made, place)
                lost = copy(made)
                with standby(early) as other:
                    promoted(lost, other)
                    assert refused(lost) == Code.FALLBACK_OTHER_CLUSTER
                    assert refused(lost, prepare) == Code.FALLBACK_SLOT_LOST
                promoted(made, place)
                _goes_on(made)
        finally:
            primary.execute("SELECT pg_drop_replication_slot(%s)", (STANDBY,))


def _goes_on(made: MadeWay) -> None:
    slot = made.way.slot
    with psycopg.connect(made.database, autocommit=True) as connection:
        if connection.info.server_version >= SLOTS_ARE_SYNCHRONISED:
            made.sql("INSERT INTO {t} VALUES (2, 'after the promotion', 1, NULL)")
            run(made.way, once=True)
            assert made.same()
            ledger = status(made.way).ledger
            assert ledger is not None
            assert ledger.timeline == 2
            connection.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
        assert refused(made) == Code.FALLBACK_SLOT_LOST
        made.sql("INSERT INTO {t} VALUES (3, 'nobody keeps it', 1, NULL)")
        # A slot that somebody makes again does not have it.
        create = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
        connection.execute(create, (slot,))
        assert refused(made) == Code.FALLBACK_SLOT_AHEAD


def test_a_server_that_was_put_back_is_said(served: Served, logical_database: str) -> None:
    """A copy of its disk has the same timeline, and would use the same LSNs again."""
    made = MadeWay(served, logical_database, "putback")
    prepare(made.way)
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    run(made.way, once=True)
    made.oracle(
        "UPDATE olr_pg_fallback SET lsn = lsn + 1000000000000 WHERE subscription = 'putback'"
    )
    made.sql("INSERT INTO {t} VALUES (2, 'b', 1, NULL)")
    assert refused(made) == Code.FALLBACK_OTHER_CLUSTER
    assert made.rows()[1] == [(1, "a", 1, None)]
