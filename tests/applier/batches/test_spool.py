"""Source transactions that do not fit in memory: spooled, applied in slices, exactly once."""

from __future__ import annotations

import errno
import os
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.wire.elements import Chunk, ChunkFlags, ColumnValue
from tests.advice import followed
from tests.applier.batches.large_transactions import SMALL, large, other
from tests.applier.conftest import delete, insert, update
from tests.applier.seen import rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.applier.conftest import Change

Replication = Any  # tests/applier/conftest.py

BLOB: Final = 113


@pytest.mark.parametrize("seed", range(4))
def test_any_transactions_give_the_same(
    replication: Replication,
    replicate: Callable[[str], Replication],
    spooled: list[int],
    seed: int,
) -> None:
    r, rng = replication, Random(seed)
    other(r)
    live: dict[str, set[int]] = {"T": set(), "O": set()}
    for _ in range(25):
        changes: list[Change] = []
        for _ in range(rng.choice((1, 3, 10, 200))):
            table = rng.choice(("T", "O"))
            known = live[table]
            key = rng.randrange(1, 150)
            if key not in known:
                known.add(key)
                changes.append(insert({"ID": key, "N": rng.randrange(99), "V": "v" * 9}, table))
            elif rng.random() < 0.4:
                known.remove(key)
                changes.append(delete({"ID": key}, table))
            else:
                changes.append(update({"ID": key}, {"N": rng.randrange(99)}, table))
        r.transaction(*changes)
    r.apply(spool_bytes=rng.choice((300, 3_000)), batch_changes=rng.choice((5, 60)), window=16)
    assert spooled
    found = rows(r), rows(r, "s.o")
    for table in ("s.t", "s.o"):
        r.execute(f"TRUNCATE {table}")
    r.execute("DROP SCHEMA olr_pg CASCADE")
    (r.folder / "checkpoint.json").unlink()
    r.serve()
    r.apply()
    assert found == (rows(r), rows(r, "s.o"))
    assert {row[0] for row in found[0]} == live["T"]


def test_rows_with_chunked_values(replication: Replication, spooled: list[int]) -> None:
    r = replication
    r.execute("CREATE TABLE s.l (id bigint PRIMARY KEY, b bytea)")
    changes: list[Change] = []
    for number in range(30):
        blob = ColumnValue("B", BLOB, chunked=True)
        changes.append(insert({"ID": number, "B": blob}, "L"))
        parts = [bytes([number, part]) * 400 for part in range(3)]
        for part, data in enumerate(parts):
            flags = ChunkFlags(3 if part == 2 else 0)
            changes.append(Chunk(1, 0, 0, 0, "B", BLOB, flags, data))
    r.transaction(*changes)
    # Few messages at a time: a transaction that comes as a whole need not be spooled.
    r.apply(spool_bytes=5_000, batch_changes=4, window=16)
    assert sum(spooled) > 70_000
    assert rows(r, "s.l") == [
        (n, b"".join(bytes([n, part]) * 400 for part in range(3))) for n in range(30)
    ]


def test_the_limit_of_the_disk(replication: Replication) -> None:
    r = replication
    r.transaction(*large(2_000))
    with pytest.raises(OlrPgError) as caught:
        r.apply(**SMALL, spool_max=50_000)
    words = "raise `context.max-spill-mb` and start the command again"
    followed(caught.value, Code.SPOOL_LIMIT, words)
    assert rows(r) == []
    r.serve()
    r.apply(**SMALL, spool_max=5_000_000)
    assert len(rows(r)) == 2_000


def test_large_ones_take_turns_below_the_limit(replication: Replication) -> None:
    r = replication
    for number in range(6):
        r.transaction(*large(500, 1_000 * number))
    r.apply(**SMALL, spool_max=120_000)
    assert len(rows(r)) == 3_000


def test_a_damaged_spool_is_told(replication: Replication, monkeypatch: pytest.MonkeyPatch) -> None:
    r = replication
    r.transaction(*large(1_000))
    preadv = os.preadv

    def damaged(file: int, rooms: list[memoryview], at: int) -> int:
        count = preadv(file, rooms, at)
        rooms[0][len(rooms[0]) // 2] ^= 1
        return count

    monkeypatch.setattr("olr_pg.files.positioned.os.preadv", damaged)
    with pytest.raises(OlrPgError) as caught:
        r.apply(**SMALL)
    followed(caught.value, Code.SPOOL_DAMAGED, "Then start the command again")
    assert rows(r) == []
    monkeypatch.undo()
    r.serve()
    r.apply(**SMALL)
    assert len(rows(r)) == 1_000


def test_a_full_disk_of_the_spool_is_told(
    replication: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = replication
    r.transaction(*large(1_000))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("olr_pg.files.positioned.os.pwrite", full)
    with pytest.raises(OlrPgError) as caught:
        r.apply(**SMALL)
    words = "free disk space in `context.data`", "Then start the command again"
    followed(caught.value, Code.SPOOL_UNWRITABLE, *words)
    monkeypatch.undo()
    r.serve()
    r.apply(**SMALL)
    assert len(rows(r)) == 1_000


def test_the_limit_of_the_hold(replication: Replication) -> None:
    r = replication
    r.execute("ALTER TABLE s.t ADD CONSTRAINT small CHECK (n < 5000)")
    r.transaction(insert({"ID": 1, "N": 6_000}))
    r.transaction(*large(50, 100))
    r.transaction(*large(900, 1_000))
    with pytest.raises(OlrPgError) as caught:
        r.apply(**SMALL, held_max=30_000)
    assert caught.value.code == 5023
    assert caught.value.where["table"] == "S.T"
    held = r.rows("SELECT count(*), sum(octet_length(data)) <= 30000 FROM olr_pg.held")
    assert held[0][1]
    followed(caught.value, Code.HOLD_FULL, "correct the cause", "start the command again")
    # Nothing of it is confirmed, so that it comes again.
    r.execute("ALTER TABLE s.t DROP CONSTRAINT small")
    r.serve()
    r.apply(**SMALL, held_max=30_000)
    assert len(rows(r)) == 951
