"""Several targets: one decode serves them all, and each has its own pace, place and faults."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from structlog.testing import capture_logs

from olr_pg.appliance import appliance
from olr_pg.appliance.appliance import run_appliance
from olr_pg.capture.source_database import OfflineDatabase
from olr_pg.config.reading import load_config
from olr_pg.decoding.dictionary_follower import DictionaryFollower
from olr_pg.errors import Code, OlrPgError
from olr_pg.monitor.status_client import ask_status
from olr_pg.replicator.decoder import Decoder, Delivery
from olr_pg.server.backlog import Backlog
from olr_pg.server.checkpoint import Checkpoint, read_saved
from olr_pg.server.listener import Listener
from olr_pg.server.queue import QueueBounds
from olr_pg.simulator.sessions.sys_dictionary import sys_cell
from olr_pg.spark.session import SparkSettings
from tests.replicator import run_with_images
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.scripted_source import ScriptedSource
from tests.replicator.test_port import NO_MORE, RawClient
from tests.simulation.entry import recovery_at_each_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot, Table

WAIT_SECONDS = 240.0


def decoded_sequences(lines: Iterable[Mapping[str, Any]]) -> list[int]:
    """The logs that lines say were decoded; one line may be of several."""
    return [
        sequence
        for line in lines
        if line["event"] == "log decoded"
        for sequence in range(line.get("first_sequence", line["sequence"]), line["sequence"] + 1)
    ]


def two_tables(folder: Path) -> DdlSource:
    """A source with empty tables A and B, and little logs."""
    source = DdlSource(folder, log_blocks=30)
    for name in ("A", "B"):
        source.create(name, {"ID": NUMBER, "NAME": TEXT})
    source.take_snapshot()
    return source


def fill(source: DdlSource, numbers: range) -> None:
    for number in numbers:
        source.insert("A", number, f"a {number}")
        source.insert("B", number, f"b {number}")


def write_config(
    source: DdlSource, targets: Sequence[dict[str, Any]], logs: Path | None = None
) -> Path:
    document = {
        "context": {"data": str(source.directory / "data")},
        "source": {
            "kind": "offline",
            "dictionary": str(source.directory / "dictionary.json"),
            "logs": str(logs or source.directory / "logs"),
        },
        "target": targets,
        "status": {"address": "127.0.0.1:0"},
        "spark": {"master": "local[2,2]"},
    }
    path = source.directory / "config.json"
    path.write_text(json.dumps(document), "utf-8")
    return path


def entry(name: str, database: str, tables: str, **more: Any) -> dict[str, Any]:
    """A target with a bundled applier; `tables` is a letter for each."""
    apply = {
        "connect-string": database,
        "tables": [f"SHOP.{table}" for table in tables],
        "create-tables": True,
        "subscription": name,
        **more.pop("apply", {}),
    }
    return {"name": name, "apply": apply, **more}


def rows_of(database: str, table: str) -> list[tuple[int, str, str]]:
    with psycopg.connect(database) as connection:
        found = connection.execute(
            f"SELECT id, name, xmin::text FROM shop.{table} ORDER BY id".encode()
        )
        return [(int(key), name, xmin) for key, name, xmin in found]


def keys_of(database: str, table: str) -> list[int]:
    try:
        return [key for key, _, _ in rows_of(database, table)]
    except psycopg.errors.UndefinedTable:
        return []


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("one_session")
def test_two_targets_with_other_tables_and_positions_over_one_decode(
    tmp_path: Path, postgres_database: str, second_database: str
) -> None:
    source = two_tables(tmp_path / "s")
    fill(source, range(40))
    middle = source.instance.scn
    early = sorted((source.directory / "logs").iterdir())
    assert len(early) > 2
    one = entry("one", postgres_database, "A")
    two = entry(
        "two",
        second_database,
        "AB",
        filter={"operations": {"SHOP.A": ["delete"]}, "tables": {"exclude": ["SHOP.C*"]}},
    )
    # First only the one, so that the two stand at different places afterwards.
    assert run_appliance(load_config(write_config(source, [one])), once=True, apply=True) == 0
    first = rows_of(postgres_database, "a")
    assert len(first) > 10
    saved = read_saved(source.directory / "data" / "targets" / "one" / "checkpoint.json").scn
    assert saved is not None
    fill(source, range(40, 80))
    source.session.delete(source.tables["A"].live[0])
    source.session.commit()
    source.finish()
    logs = sorted((source.directory / "logs").iterdir())
    config = write_config(source, [one, two])
    with capture_logs() as lines:
        assert run_appliance(load_config(config), once=True, apply=True) == 0
    decoded = decoded_sequences(lines)
    assert len(decoded) == len(set(decoded)) == len(logs)
    assert middle > saved
    # What the one had was not touched again, but for the row that the source deleted since.
    again = rows_of(postgres_database, "a")
    assert again[: len(first) - 1] == first[1:]
    assert [key for key, _, _ in again] == list(range(1, 80))
    with psycopg.connect(postgres_database) as connection:
        assert connection.execute("SELECT to_regclass('shop.b')").fetchone() == (None,)
    assert keys_of(second_database, "a") == list(range(80))
    assert keys_of(second_database, "b") == list(range(80))
    later = read_saved(source.directory / "data" / "targets" / "one" / "checkpoint.json").scn
    assert later is not None
    assert later > saved
    # Everything is confirmed: nothing is decoded that anyone needs, and nothing moves back.
    assert run_appliance(load_config(config), once=True, apply=True) == 0
    assert rows_of(postgres_database, "a") == again
    assert later <= (
        read_saved(source.directory / "data" / "targets" / "one" / "checkpoint.json").scn or 0
    )


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("one_session")
def test_an_error_that_ends_a_run_of_several_targets_names_the_target_in_its_commands(
    tmp_path: Path, postgres_database: str, second_database: str
) -> None:
    source = two_tables(tmp_path / "s")
    fill(source, range(5))
    source.finish()
    with psycopg.connect(second_database) as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute("CREATE TABLE shop.b (id numeric PRIMARY KEY, name varchar(100))")
        connection.execute("INSERT INTO shop.b VALUES (3, 'a row that replication did not write')")
    targets = [entry("one", postgres_database, "A"), entry("two", second_database, "B")]

    with pytest.raises(OlrPgError) as caught:
        run_appliance(load_config(write_config(source, targets)), once=True, apply=True)

    assert caught.value.code == Code.TABLES_STOPPED
    assert caught.value.where["target"] == "two"
    assert "`olr-pg errors list --target two`" in caught.value.action
    assert "`olr-pg errors retry --target two`" in caught.value.action
    assert keys_of(postgres_database, "a") == list(range(5))


def image_of(target: Path) -> str | None:
    """The recovery image that the checkpoint in a target's directory names."""
    path = target / "checkpoint.json"
    image = json.loads(path.read_bytes())["recovery_image"] if path.exists() else None
    assert image is None or isinstance(image, str)
    return image


class Reader:
    """A raw client of a port: what it was given, one transaction (key, commit SCN) each."""

    def __init__(self, port: int, tables: str, scn: int = 0) -> None:
        self.client = RawClient(port)
        names = ", ".join(f"'{table}'" for table in tables)
        query = f"SELECT owner, table_name FROM all_tables WHERE table_name IN ({names})"
        assert self.client.ask(1, query.encode()) == struct.pack("<H", 1)
        assert self.client.ask(2, struct.pack("<Q", scn)) == struct.pack("<H", 1)
        self.taken: list[tuple[int, int]] = []
        self._commit_scn = 0

    def read(self, *, confirm: bool = True) -> bool:
        """Take what is ready; whether anything was."""
        found = False
        while True:
            scn = self._commit_scn if confirm else 0
            answer = self.client.ask(3, struct.pack("<Q", scn))
            if answer == NO_MORE:
                return found
            found = True
            self.note(answer)

    def note(self, answer: bytes) -> None:
        assert answer[:2] == struct.pack("<H", 4), answer
        code, _, commit_scn, xid = struct.unpack_from("<BQQQ", answer, 2)
        if code == 2:
            self.taken.append((commit_scn, xid))
            self._commit_scn = commit_scn

    def read_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            assert time.monotonic() < deadline
            if not self.read():
                time.sleep(0.05)  # the protocol's own pace: NoMore means ask again later


@pytest.mark.usefixtures("one_session")
def test_once_waits_for_an_external_client_and_says_so(
    tmp_path: Path, postgres_database: str
) -> None:
    source = two_tables(tmp_path / "s")
    fill(source, range(12))
    source.finish()
    config = load_config(
        write_config(source, [entry("one", postgres_database, "A"), {"name": "stream"}])
    )
    with capture_logs() as lines, ThreadPoolExecutor(1) as pool:
        run = pool.submit(run_appliance, config, once=True, apply=True)
        deadline = time.monotonic() + WAIT_SECONDS
        told: list[Any] = []
        while not told:
            assert time.monotonic() < deadline
            assert not run.done()
            time.sleep(0.05)
            told = [line["ports"] for line in lines if line["event"].startswith("waiting for ext")]
        assert keys_of(postgres_database, "a") == list(range(12))
        reader = Reader(int(told[0][0].rpartition(":")[2]), "A")
        # It stays until the server ends: who leaves before all redo is read may be given more.
        with reader.client, suppress(ConnectionError):
            reader.read_until(run.done)
        assert run.result(WAIT_SECONDS) == 0
        assert len(reader.taken) == 12
        assert len(told) == 1


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("one_session")
def test_a_slow_target_is_left_behind_at_its_limit_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.server.backlog.SEGMENT_BYTES", 3 << 10)
    source = two_tables(tmp_path / "s")
    fill(source, range(60))
    assert source.snapshot is not None
    decoder = Decoder(
        OfflineDatabase(source.snapshot, [str(source.directory / "logs")]),
        SparkSettings(),
        expected=("fast", "slow"),
    )
    backlog = Backlog(tmp_path / "backlog", 8 << 10)
    fast = Delivery(decoder, "fast")
    slow = Delivery(decoder, "slow", bounds=QueueBounds(bytes_max=3 << 10, backlog=backlog))
    checkpoints = {name: Checkpoint(tmp_path / f"{name}.json", "S") for name in ("fast", "slow")}
    with ExitStack() as stack:
        lines = stack.enter_context(capture_logs())
        listeners = [
            stack.enter_context(Listener(one, checkpoints[one.name])) for one in (fast, slow)
        ]
        quick = Reader(listeners[0].address[1], "AB")
        idle = Reader(listeners[1].address[1], "B")
        # The slow one asks for nothing; the fast one gets everything all the same.
        known = source.instance.scn
        quick.read_until(lambda: len(quick.taken) > 100)
        limits = [line["reason"] for line in lines if line.get("code") == "OLR-04040"]
        assert len(limits) == 1
        assert "target slow" in limits[0]
        session = listeners[1].replicating
        assert session is not None
        assert session.queue is not None
        assert session.queue.status().spilled > 0
        assert 0 < backlog.size < 11 << 10
        assert checkpoints["slow"].saved is None
        # More redo: still only the fast one gets on.
        fill(source, range(60, 90))
        source.finish()
        quick.read_until(lambda: len(quick.taken) == 180)
        assert len([line for line in lines if line.get("code") == "OLR-04040"]) == 1
        # BackToSCN of the slow one does not move the fast one.
        idle.note(idle.client.ask(3, struct.pack("<Q", 0)))
        begin = idle.client.ask(4, struct.pack("<Q", 0))
        assert begin[2] == 1
        idle.read(confirm=False)
        before = list(idle.taken)
        assert before
        idle.taken.clear()
        idle.note(idle.client.ask(4, struct.pack("<Q", before[0][0])))
        assert not quick.read()
        # Now it takes what it lacks: all of B, each transaction once.
        idle.read_until(lambda: len(idle.taken) >= 89)
        assert [before[0], *idle.taken] == sorted({before[0], *idle.taken})
        assert len(idle.taken) == 89
        assert {scn for scn, _ in idle.taken} < {scn for scn, _ in quick.taken}
        assert min(idle.taken) < (known, 0)
        # It has caught up: one decode feeds both again.
        together = "targets share one decoding run from now on"
        idle.read_until(lambda: any(line["event"] == together for line in lines))
        assert backlog.transactions == 0
        quick.client.socket.close()
        idle.client.socket.close()
    assert (fast.failure, slow.failure) == (None, None)
    assert threading.active_count() < 50


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("one_session")
def test_a_table_that_ends_ends_the_delivery_of_its_client_only(tmp_path: Path) -> None:
    source = DdlSource(tmp_path / "s", followed=False)
    for name in ("A", "B"):
        source.create(name, {"ID": NUMBER, "NAME": TEXT})
    source.take_snapshot()
    fill(source, range(3))
    source.add_column("A", "EXTRA", NUMBER)
    fill(source, range(3, 5))
    source.finish()
    assert source.snapshot is not None
    decoder = Decoder(
        OfflineDatabase(source.snapshot, [str(source.directory / "logs")]),
        SparkSettings(),
        once=True,
        follow=DictionaryFollower,
        expected=("a", "b"),
    )
    ends, goes_on = (Delivery(decoder, name) for name in ("a", "b"))
    ends.ends_with_table = goes_on.ends_with_table = True
    queues = []
    for delivery, table in ((ends, "A"), (goes_on, "B")):
        delivery.resolve(f"SELECT owner, table_name FROM all_tables WHERE table_name = '{table}'")
        queues.append(delivery.start(0))
    assert goes_on.drained.wait(WAIT_SECONDS)
    assert goes_on.failure is None
    assert queues[1].take(1000).messages == 3 * 5
    assert ends.failure is not None
    assert ends.failure.code == 2013
    # What was before the DDL is delivered; then its client is told.
    assert queues[0].take(1000).messages == 3 * 3
    with pytest.raises(OlrPgError) as caught:
        queues[0].take(1)
    assert caught.value.code == 2013
    for delivery, queue in zip((ends, goes_on), queues, strict=True):
        queue.close()
        delivery.stop()


def test_a_name_that_the_protocol_cannot_express_is_refused_by_its_table_list(
    tmp_path: Path,
) -> None:
    def renamed(table: Table) -> Table:
        columns = (replace(c, name="Ж" * 128) if c.name == "NAME" else c for c in table.columns)
        return replace(table, columns=tuple(columns)) if table.name == "A" else table

    source = two_tables(tmp_path / "s")
    assert source.snapshot is not None
    snapshot = replace(source.snapshot, tables=tuple(map(renamed, source.snapshot.tables)))
    delivery = Delivery(Decoder(ScriptedSource(snapshot), SparkSettings()))
    with pytest.raises(OlrPgError) as caught:
        delivery.resolve("SELECT owner, table_name FROM all_tables WHERE table_name = 'A'")
    assert caught.value.code == 4006
    assert caught.value.where["table"] == "SHOP.A"
    delivery.resolve("SELECT owner, table_name FROM all_tables WHERE table_name = 'B'")


def test_a_client_that_could_not_start_is_forgotten(tmp_path: Path) -> None:
    def no_dictionary(_: Snapshot) -> DictionaryFollower:
        raise OlrPgError(3001, "it cannot be read")

    source = two_tables(tmp_path / "s")
    assert source.snapshot is not None
    decoder = Decoder(ScriptedSource(source.snapshot), SparkSettings(), follow=no_dictionary)
    delivery = Delivery(decoder)
    delivery.resolve("SELECT owner, table_name FROM all_tables")
    with pytest.raises(OlrPgError):
        delivery.start(0)
    assert decoder._connected == []


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("one_session")
def test_kill_9_with_one_target_out_of_reach_and_a_transaction_open(
    tmp_path: Path, postgres_database: str, second_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = two_tables(tmp_path / "s")
    early = {path.name for path in (source.directory / "logs").iterdir()}
    long = source.open_session()
    long.insert(source.tables["B"], [sys_cell(1000), sys_cell("open over the kill")])
    fill(source, range(40))
    nowhere = make_conninfo(postgres_database, dbname="there_is_none")
    targets = [
        entry("one", postgres_database, "A"),
        entry("two", second_database, "AB"),
        entry("lost", nowhere, "B"),
    ]
    path = write_config(source, targets)
    config = load_config(path)
    module = run_with_images.__name__
    command = [sys.executable, "-m", module, "run", "--config", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    checkpoints = source.directory / "data" / "targets"
    try:
        deadline = time.monotonic() + WAIT_SECONDS
        while not (
            keys_of(postgres_database, "a")
            and keys_of(second_database, "b")
            and all(image_of(checkpoints / name) for name in ("one", "two"))
        ):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)  # nothing tells when rows are in a database
        # The one that cannot be reached holds nobody up, and is told of.
        health = ask_status(config, page="healthz")
        assert health["health"] == "degraded"
        assert "OLR-05" in health["targets"]["lost"]["problems"][0]
        assert health["targets"]["one"]["problems"] == []
        two = ask_status(config, page="status.json?target=two")
        assert {table["name"] for table in two["tables"]} == {"SHOP.A", "SHOP.B"}
        assert (two["target"], two["targets"]) == ("two", ["one", "two", "lost"])
        shown = subprocess.run(
            [sys.executable, "-m", "olr_pg", "status", "--config", str(path), "--target", "one"],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert "SHOP.A" in shown
        assert "SHOP.B" not in shown
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    long.commit()
    fill(source, range(40, 60))
    source.finish()
    monkeypatch.setattr(appliance, "BoundedRecovery", recovery_at_each_log)
    with capture_logs() as lines, pytest.raises(OlrPgError) as caught:
        run_appliance(load_config(path), once=True, apply=True)
    assert caught.value.code == 5003
    # The redo from the begin of what was open on is not read again, and the rest is read once.
    assert [line["event"] for line in lines].count(
        "open transactions restored from a recovery image"
    ) == 1
    decoded = decoded_sequences(lines)
    assert len(decoded) == len(set(decoded))
    assert min(decoded) > len(early) + 1
    # The two others were brought to their end before that was told.
    assert keys_of(postgres_database, "a") == list(range(60))
    assert keys_of(second_database, "a") == list(range(60))
    assert keys_of(second_database, "b") == [*range(60), 1000]
    assert keys_of(postgres_database, "b") == []
    assert list((source.directory / "data" / "recovery").iterdir()) == []
