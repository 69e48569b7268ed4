"""Large transactions in slices: all in one target transaction, or none of it."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.applier.batches.replay import replay
from olr_pg.applier.batches.spool import SpoolFiles
from olr_pg.applier.settings import ConflictPolicy, Consistency
from olr_pg.applier.target.connection import connect
from olr_pg.errors import OlrPgError
from olr_pg.wire.frames import ByteOrder
from tests.applier.batches.large_transactions import SMALL, large, other
from tests.applier.conftest import delete, insert, update
from tests.applier.seen import rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.applier.conftest import Change

Replication = Any  # tests/applier/conftest.py


@pytest.mark.parametrize("order", list(ByteOrder))
@pytest.mark.parametrize("consistency", list(Consistency))
def test_a_large_transaction_is_one_target_transaction(
    replication: Replication,
    tmp_path: Path,
    spooled: list[int],
    order: ByteOrder,
    consistency: Consistency,
) -> None:
    r = replication
    r.script.order = order
    other(r)
    r.transaction(*large(3, 90_000), insert({"ID": 1}, "O"))
    changes = large(2_000)
    changes[500:500] = large(300, table="O")[2:]
    changes.append(update({"ID": 7}, {"N": -7}))
    changes.append(delete({"ID": 8}))
    r.transaction(*changes)
    last = r.transaction(*large(3, 95_000), update({"ID": 9}, {"V": "after"}))
    options = {**SMALL, "consistency": consistency, "spool_directory": tmp_path / "spool"}
    report = r.apply(**options)
    assert sum(spooled) > 50_000
    assert len(rows(r)) == 2_005
    assert r.rows("SELECT n FROM s.t WHERE id IN (7, 8)") == [(-7,)]
    assert r.rows("SELECT v FROM s.t WHERE id = 9") == [("after",)]
    assert len(rows(r, "s.o")) == 299
    # Sub-transactions have numbers of their own, but all became visible at once.
    assert report.confirmed_scn == last
    assert report.tables["S.T"].inserted >= 2_006
    assert r.rows("SELECT commit_scn, transactions FROM olr_pg.ledger ORDER BY source_table") == [
        (20, 2),
        (last, 3),
    ]
    assert list((tmp_path / "spool").iterdir()) == []
    # Delivered again, it is not applied again.
    before = r.rows("SELECT xmin::text, id FROM s.t ORDER BY id")
    r.serve()
    (r.folder / "checkpoint.json").unlink()
    r.serve()
    r.apply(**options)
    assert r.rows("SELECT xmin::text, id FROM s.t ORDER BY id") == before


KILLED = """
import pickle, sys
from olr_pg.applier.session.applier_session import Applier
Applier(pickle.loads(bytes.fromhex(sys.argv[1]))).run(once=True)
"""


def test_killed_in_the_middle_nothing_is_half_done(
    replication: Replication, tmp_path: Path
) -> None:
    r = replication
    # The row 1,500 waits for a lock: most slices are in, none is committed.
    r.execute(
        "CREATE FUNCTION s.wait() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_advisory_xact_lock_shared(77); RETURN NEW; END $$;"
        "CREATE TRIGGER wait BEFORE INSERT ON s.t FOR EACH ROW WHEN (NEW.id = 1500)"
        " EXECUTE FUNCTION s.wait(); ALTER TABLE s.t ENABLE ALWAYS TRIGGER wait"
    )
    r.transaction(*large(2_000))
    spool = tmp_path / "spool"
    settings = r.settings(**SMALL, spool_directory=spool)
    command = [sys.executable, "-c", KILLED, pickle.dumps(settings).hex()]
    with psycopg.connect(r.target, autocommit=True) as blocker:
        blocker.execute("SELECT pg_advisory_lock(77)")
        process = subprocess.Popen(command)
        try:
            r.wait_for(
                "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            )
        finally:
            process.kill()
            process.wait()
        assert list(spool.iterdir()) == []
        assert rows(r) == []
        blocker.execute("SELECT pg_advisory_unlock(77)")
    # The backend that was left behind has no client to commit for.
    r.wait_for("SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory'")
    assert rows(r) == []
    r.serve()
    r.apply(**SMALL)
    assert len(rows(r)) == 2_000
    assert r.rows("SELECT transactions, inserted FROM olr_pg.ledger") == [(1, 2_000)]


def test_a_connection_that_breaks_in_the_middle(
    replication: Replication, spooled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    r = replication
    r.transaction(*large(3_000))
    address = r.serve()
    reserve = SpoolFiles.reserve
    broken = threading.Event()

    def breaking(files: SpoolFiles, size: int, own: int, has_stopped: Callable[[], bool]) -> None:
        if own and not broken.is_set():
            broken.set()
            r.serve(address[1])
        reserve(files, size, own, has_stopped)

    monkeypatch.setattr(SpoolFiles, "reserve", breaking)
    r.apply(**SMALL)
    assert broken.is_set()
    assert len(rows(r)) == 3_000
    assert r.rows("SELECT transactions, inserted FROM olr_pg.ledger") == [(1, 3_000)]


def stops(replication: Replication, code: int = 5010, **options: Any) -> None:
    with pytest.raises(OlrPgError) as caught:
        replication.apply(**options)
    assert caught.value.code == code


@pytest.mark.parametrize("spool_bytes", [4_000, 1_000_000])
def test_a_change_that_does_not_go_in_stops_the_table(
    replication: Replication, spool_bytes: int
) -> None:
    r = replication
    other(r)
    r.execute("ALTER TABLE s.t ADD CONSTRAINT small CHECK (n < 5000)")
    r.transaction(insert({"ID": 1, "N": 1}))
    changes = large(1_200, 10)
    changes[777] = insert({"ID": 787, "N": 6_000})
    bad = r.transaction(*changes, *large(600, table="O"))
    last = r.transaction(update({"ID": 10}, {"V": "later"}), insert({"ID": 9_999}, "O"))
    options = {"spool_bytes": spool_bytes, "batch_changes": 100}
    stops(r, **options)
    assert rows(r) == [(1, 1, None)]
    assert len(rows(r, "s.o")) == 601
    assert r.rows("SELECT commit_scn, position, code FROM olr_pg.error") == [(bad, 777, 5008)]
    held = "SELECT commit_scn, sum(changes)::int FROM olr_pg.held GROUP BY 1 ORDER BY 1"
    assert r.rows(held) == [(bad, 1_200), (last, 1)]
    assert r.rows("SELECT max(changes) < 1200 FROM olr_pg.held") == [(spool_bytes < 1_000_000,)]
    with connect(r.target) as connection:
        # Mended only in part: it stops again, at the same change.
        again = replay(connection, r.settings(batch_bytes=20_000, **options), "S.T")
        assert again.error is not None
        assert r.rows("SELECT position, attempts FROM olr_pg.error") == [(777, 2)]
        assert rows(r) == [(1, 1, None)]
        r.execute("ALTER TABLE s.t DROP CONSTRAINT small")
        done = replay(connection, r.settings(batch_bytes=20_000, **options), "S.T")
    assert done.error is None
    assert done.counters.inserted == 1_200
    assert len(rows(r)) == 1_201
    assert r.rows("SELECT v FROM s.t WHERE id = 10") == [("later",)]
    assert r.rows("SELECT resolution FROM olr_pg.error") == [("applied",)]
    assert r.rows("SELECT count(*) FROM olr_pg.held") == [(0,)]


def test_a_stream_ends_with_the_change(replication: Replication) -> None:
    r = replication
    other(r)
    r.execute("ALTER TABLE s.o ADD CONSTRAINT small CHECK (n < 5000)")
    r.transaction(insert({"ID": 1}))
    changes = [*large(600, 10), *large(600, table="O")]
    changes[900] = insert({"ID": 300, "N": 6_000}, "O")
    bad = r.transaction(*changes)
    with pytest.raises(OlrPgError) as caught:
        r.apply(**SMALL, consistency=Consistency.TRANSACTION)
    assert caught.value.code == 5145
    assert rows(r) == [(1, None, None)]
    assert rows(r, "s.o") == []
    found = r.rows("SELECT source_table, commit_scn, position FROM olr_pg.error")
    assert found == [("S.O", bad, 300)]
    r.execute("ALTER TABLE s.o DROP CONSTRAINT small")
    r.serve()
    r.apply(**SMALL, consistency=Consistency.TRANSACTION)
    assert len(rows(r, "s.o")) == 600


@pytest.mark.parametrize("consistency", list(Consistency))
@pytest.mark.parametrize(
    ("spool_bytes", "conflict"),
    [
        (4_000, ConflictPolicy.ERROR),
        (25_000, ConflictPolicy.ERROR),
        (25_000, ConflictPolicy.SKIP),
        (25_000, ConflictPolicy.OVERWRITE),
    ],
)
def test_keys_that_move_over_each_other(
    replication: Replication,
    spooled: list[int],
    spool_bytes: int,
    conflict: ConflictPolicy,
    consistency: Consistency,
) -> None:
    """UPDATE … SET id = id + 1: the net change of a slice needs a key that the next one frees."""
    r = replication
    changes: list[Change] = [
        insert({"ID": n, "N": n, "V": None}, rowid=f"{n:018}") for n in range(400)
    ]
    r.transaction(*changes)
    moves: list[Change] = [
        update({"ID": n, "N": n, "V": None}, {"ID": n + 1}, rowid=f"{n:018}") for n in range(400)
    ]
    r.transaction(*moves)
    options = {
        "spool_bytes": spool_bytes,
        "batch_changes": 50,
        "window": 64,
        "consistency": consistency,
        "conflict": conflict,
    }
    if spool_bytes == 25_000:
        r.apply(**options)
        assert rows(r) == [(n + 1, n, None) for n in range(400)]
        assert r.rows("SELECT count(*) FROM olr_pg.error") == [(0,)]
    else:
        # Too large to be tried whole: the table stops, and nothing is half done.
        stops(r, 5145 if consistency is Consistency.TRANSACTION else 5010, **options)
        assert rows(r) == [(n, n, None) for n in range(400)]
    assert sum(spooled) > 80_000
