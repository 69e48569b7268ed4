"""Runs that end at an SCN or at a time: just what commits up to there, and then the rest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.appliance.appliance import run_appliance
from olr_pg.capture.logs import discover_logs
from olr_pg.config.reading import load_config
from olr_pg.ordering.merger import Merger
from olr_pg.ordering.run_end import Until
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.simulator.simulation import simulate
from tests.replicator.ddl_source import NUMBER, DdlSource
from tests.replicator.recovery_runs import QUERY, Delivered, Restarts, split_transactions

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot

SIM = "SELECT owner, table_name FROM all_tables WHERE owner = 'SIM'"


def whole_of(snapshot: Snapshot, logs: str) -> list[Delivered]:
    """Every transaction, as one run without an end delivers them."""
    return [one for blob in decode_logs(snapshot, [logs]) for one in
            split_transactions(bytearray(blob))]  # fmt: skip


def commit_times(snapshot: Snapshot, logs: str) -> list[int]:
    """The redo time of each transaction's commit record, in delivery order."""
    seen = dict[tuple[int, int], int]()

    class Watching(Until):
        def see_transactions(self, transactions: Any) -> None:
            columns = (transactions.commit_scn, transactions.xid, transactions.commit_time)
            for scn, xid, time in zip(*(one.tolist() for one in columns), strict=True):
                seen[scn, xid] = time

    def watched(*arguments: Any, **others: Any) -> Merger:
        return Merger(*arguments, **{**others, "until": Watching()})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("olr_pg.replicator.decode_once.Merger", watched)
        return [seen[one.commit_scn, one.xid] for one in whole_of(snapshot, logs)]


def run_until(restarts: Restarts, until: Until | None, done: int) -> list[Delivered]:
    """One start: everything up to the end is taken and confirmed.

    Args:
        done: commit SCN of the last transaction of the run before: up to there, what comes again
            was confirmed, and a client skips it.
    """
    decoder = restarts.decoder("", once=until is None)
    decoder.until = until
    client = restarts.client(decoder)
    client.start(SIM)
    try:
        taken = client.take_all()
        assert client.delivery.failure is None
        client.confirm(taken)
    finally:
        client.close()
    return [one for one in taken if one.commit_scn > done]


def last_of(delivered: list[Delivered]) -> int:
    return delivered[-1].commit_scn if delivered else 0


@pytest.mark.parametrize("seed", [30, 32, 34, 36, 37])
def test_what_commits_up_to_an_scn_and_then_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    snapshot = simulate(seed, tmp_path, size=60_000).snapshot
    logs = str(tmp_path / "logs")
    whole = whole_of(snapshot, logs)
    restarts = Restarts(tmp_path, snapshot, monkeypatch)
    restarts.archive(discover_logs([logs]))
    scns = sorted({one.commit_scn for one in whole})
    assert scns[len(scns) // 3] <= scns[len(scns) // 2] - 1
    done = 0
    # On a commit, before one, behind one, and where the last run ended.
    for end in (scns[len(scns) // 3], scns[len(scns) // 2] - 1, scns[len(scns) // 2],
                scns[len(scns) // 2], scns[-2]):  # fmt: skip
        count = sum(one.commit_scn <= end for one in whole)
        assert run_until(restarts, Until(end), last_of(whole[:done])) == whole[done:count]
        done = count
    assert run_until(restarts, None, last_of(whole[:done])) == whole[done:]


@pytest.mark.parametrize("seed", [40, 41, 42, 46])
def test_what_commits_up_to_a_time_and_then_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    snapshot = simulate(seed, tmp_path, size=60_000).snapshot
    logs = str(tmp_path / "logs")
    whole, times = whole_of(snapshot, logs), commit_times(snapshot, logs)
    assert len(set(times)) > 2
    restarts = Restarts(tmp_path, snapshot, monkeypatch)
    restarts.archive(discover_logs([logs]))
    done = 0
    for end in (times[len(times) // 3], times[len(times) // 2] + 1):
        later = [number for number, time in enumerate(times) if time > end]
        if not later:
            continue
        # What commits at the SCN of the first later one is delivered or not as a whole.
        first = whole[later[0]].commit_scn
        count = sum(one.commit_scn < first for one in whole)
        last = last_of(whole[:done])
        assert run_until(restarts, Until(redo_time=end), last) == whole[done:count]
        done = count
    assert run_until(restarts, None, last_of(whole[:done])) == whole[done:]


def test_it_waits_for_the_redo_up_to_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs that come later are taken; what they have behind the end is left."""
    snapshot = simulate(34, tmp_path, size=60_000).snapshot
    found = discover_logs([str(tmp_path / "logs")])
    found = sorted(found, key=lambda log: log.header.first_scn)
    whole = whole_of(snapshot, str(tmp_path / "logs"))
    end = whole[-3].commit_scn
    assert found[0].header.next_scn is not None
    assert found[0].header.next_scn <= end
    restarts = Restarts(tmp_path, snapshot, monkeypatch)
    restarts.archive(found[:1])
    decoder = restarts.decoder("", once=False)
    decoder.until = Until(end)
    client = restarts.client(decoder)
    client.start(SIM)
    client.session.queue.status()  # type: ignore[union-attr]
    assert not client.delivery.drained.is_set()
    restarts.archive(found[1:])
    try:
        assert client.take_all() == [one for one in whole if one.commit_scn <= end]
    finally:
        client.close()


def test_ddl_behind_the_end_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER})
    snapshot = source.take_snapshot()
    source.insert("A", 1)
    source.add_column("A", "ONE", NUMBER)
    source.insert("A", 2, 22)
    source.add_column("A", "TWO", NUMBER)
    source.insert("A", 3, 33, 333)
    source.finish()
    logs = str(source.directory / "logs")
    whole = whole_of(snapshot, logs)
    restarts = Restarts(tmp_path, snapshot, monkeypatch)
    restarts.archive(discover_logs([logs]))
    for number, columns in enumerate(([], ["ONE"], ["ONE", "TWO"])):
        decoder = restarts.decoder("", once=False)
        decoder.until = Until(whole[number].commit_scn)
        client = restarts.client(decoder)
        client.start(QUERY, 0)
        assert client.take_all() == whole[: number + 1]
        told = [step.after.name for event in client.events
                for step in event.evolution.steps if step.after]  # fmt: skip
        client.close()
        assert told == columns


@pytest.mark.usefixtures("one_session")
def test_the_appliance_applies_confirms_and_ends(tmp_path: Path, postgres_database: str) -> None:
    snapshot = simulate(8, tmp_path / "s", workload="orders", size=150_000).snapshot
    logs = str(tmp_path / "s" / "logs")
    whole = whole_of(snapshot, logs)
    tables = [table.full_name for table in snapshot.tables if table.owner == "SHOP"]
    document = {
        "context": {"data": str(tmp_path / "data")},
        "source": {
            "kind": "offline", "logs": logs,
            "dictionary": str(tmp_path / "s" / "dictionary.json"),
        },
        "target": {"address": "127.0.0.1:0"},
        "apply": {"connect-string": postgres_database, "tables": tables, "create-tables": True},
        "spark": {"master": "local[2,2]"},
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(document), "utf-8")
    times = commit_times(snapshot, logs)
    middle, late = whole[len(whole) // 2].commit_scn, times[len(times) * 3 // 4]
    later = whole[next(at for at, time in enumerate(times) if time > late)].commit_scn
    before = [one.commit_scn for one in whole if one.commit_scn < later]
    assert middle < before[-1] < whole[-1].commit_scn
    for until, last in (
        (Until(middle), middle),
        (Until(redo_time=late), before[-1]),
        (None, whole[-1].commit_scn),
    ):
        config = load_config(path)
        assert run_appliance(config, once=until is None, apply=True, until=until) == 0
        with psycopg.connect(postgres_database) as connection:
            row = connection.execute("SELECT max(commit_scn) FROM olr_pg.ledger").fetchone()
        assert row == (last,)
