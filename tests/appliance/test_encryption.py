"""Files with rows: which there are, that none shows a row while there is a key, and its errors.

The appliance runs with locked tables, so that everything waits where it can; then each file below
its directories is searched for values of the source's rows, those without a name, too.
"""

from __future__ import annotations

import base64
import errno
import json
import multiprocessing
import os
import re
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil
import psycopg
import pytest
import structlog

from olr_pg.appliance import appliance
from olr_pg.appliance.encryption import FILE_NAME, encrypted_files, row_key
from olr_pg.config.reading import load_config
from olr_pg.decoding.spill import SpillFiles
from olr_pg.errors import OlrPgError
from olr_pg.files.sealed import SealedReader, current_key, is_sealed, must_seal
from olr_pg.load import sources
from olr_pg.oracle.vault import COPIES
from olr_pg.server import backlog
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.sessions.row_shape import RowShape
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.appliance.test_kills_between_writes import write_config
from tests.oracle.live_source import LiveSource
from tests.simulation.entry import recovery_at_each_log
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.simulator.simulated_files import Summary

KEY: Final = base64.b64encode(bytes(range(32))).decode()
OTHER: Final = base64.b64encode(bytes(range(1, 33))).decode()
PATIENCE: Final = 120.0
PLAIN_TEXT: Final = re.compile(r"[A-Za-z][A-Za-z0-9.,_-]{8,}")


def run(config: str, folder: str, held: int) -> None:
    """Run the appliance with so little memory that all that can wait on disk does.

    `held`: what part of the memory may hold what is ready, and what is not applied.
    """
    import tempfile

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", folder)
        patch.setattr(appliance, "SpillFiles", partial(small_spill, folder))
        patch.setattr(appliance, "BoundedRecovery", recovery_at_each_log)
        patch.setattr(appliance, "_SPOOLED_PART", 1 << 40)
        patch.setattr(appliance, "_READY_PART", held)
        patch.setattr(appliance, "_APPLIED_PART", held)
        patch.setattr(backlog, "SEGMENT_BYTES", 1 << 10)
        structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
        from olr_pg.cli.main import app

        app(["run", "-c", config], standalone_mode=False)


def small_spill(_: str, folder: Path, *__: Any, **___: Any) -> SpillFiles:
    return SpillFiles(folder, 2000, 5000, part_bytes=2000)


@contextmanager
def running(config: Path, scratch: Path, held: int) -> Iterator[int]:
    scratch.mkdir()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.simulation.warm"])
    child = context.Process(target=run, args=(str(config), str(scratch), held))
    child.start()
    try:
        assert child.pid is not None
        yield child.pid
    finally:
        child.kill()
        child.join()


def values_of(summary: Summary) -> re.Pattern[bytes]:
    """Values that are in the source's rows, and nowhere else."""
    lines = (summary.logs[0].parent.parent / "truth.jsonl").read_text("utf-8").splitlines()
    texts = {
        value
        for line in map(json.loads, lines)
        for value in (line.get("after") or {}).values()
        if isinstance(value, str) and PLAIN_TEXT.fullmatch(value)
    }
    assert len(texts) > 20
    return re.compile(b"|".join(re.escape(text.encode()) for text in sorted(texts)[:400]))


def files_of(pid: int, folders: list[Path]) -> Iterator[tuple[str, Path]]:
    """Yield every file below the folders, and each of them that is open, with what it is."""
    for folder in folders:
        for path in folder.rglob("*"):
            yield kind_of(str(path)), path
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for one in [process, *process.children(recursive=True)]:
            for link in Path(f"/proc/{one.pid}/fd").iterdir():
                with suppress(OSError):
                    target = str(link.readlink())
                    if any(target.startswith(f"{folder}/") for folder in folders):
                        yield kind_of(target), link


def kind_of(path: str) -> str:
    """Return the name of a file's directory in `context.data`, or its own where it is in none."""
    parts = path.removesuffix(" (deleted)").split("/data/")[-1].split("/")
    if parts[0] == "targets" and len(parts) > 2:
        parts = parts[2:]
    return parts[-2] if len(parts) > 1 else parts[0]


def kinds(pid: int, folders: list[Path], values: re.Pattern[bytes]) -> tuple[set[str], set[str]]:
    """Return the kinds of files that have bytes, and of those that show a row."""
    there, showing = set(), set()
    for kind, path in files_of(pid, folders):
        with suppress(OSError):
            if not path.is_file():
                continue
            data = path.read_bytes()
            if data:
                there.add(kind)
            if values.search(data):
                showing.add(kind)
    return there, showing


def changed(config: Path, **context: object) -> Path:
    document = json.loads(config.read_text("utf-8"))
    document["context"] |= context
    config.write_text(json.dumps(document), "utf-8")
    return config


def lock_tables(connection: psycopg.Connection[Any], summary: Summary) -> None:
    """Wait until the appliance has made the tables, and lock them."""
    names = [table.full_name.lower() for table in summary.tables]
    find = "SELECT count(to_regclass(name)) FROM unnest(%s::text[]) AS name"
    wait_until(lambda: connection.execute(find, [names]).fetchone() == (len(names),), PATIENCE)
    connection.execute("BEGIN")
    connection.execute(f"LOCK TABLE {', '.join(names)} IN ACCESS EXCLUSIVE MODE".encode())


def hidden_logs(summary: Summary) -> list[tuple[Path, Path]]:
    """Move all logs but the first away; (where they are, where they belong)."""
    away = summary.logs[0].parent.parent / "later"
    away.mkdir()
    return [(path.rename(away / path.name), path) for path in summary.logs[1:]]


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_what_waits_of_a_large_transaction_shows_rows_only_without_a_key(
    tmp_path: Path, postgres_database: str, key: str | None
) -> None:
    rows = RowShape(columns=20, statements=0)
    shape = replace(demo_shape(), rows=rows, pace=Pace(log_blocks=150))
    made = simulate(3, tmp_path / "sim", workload="wide", size=200_000, shape=shape)
    values = values_of(made)
    later = hidden_logs(made)
    config = changed(write_config(tmp_path, postgres_database), **{"encryption-key": key})
    folders = [tmp_path / "data", tmp_path / "scratch"]
    wanted = {"recovery", "spill", "spool"}
    there, showing = set[str](), set[str]()

    def look() -> set[str]:
        found = kinds(pid, folders, values)
        there.update(found[0])
        showing.update(found[1])
        return there if key else showing

    with (
        running(config, folders[1], 1 << 12) as pid,
        psycopg.connect(postgres_database, autocommit=True) as connection,
    ):
        lock_tables(connection, made)
        wait_until(lambda: "recovery" in look(), PATIENCE)
        for away, path in later:
            away.rename(path)
        wait_until(lambda: wanted <= look(), PATIENCE)
    assert showing == (wanted if key is None else set())


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_copies_of_logs_and_ready_transactions_show_rows_only_without_a_key(
    tmp_path: Path, postgres_database: str, second_database: str, key: str | None
) -> None:
    shape = replace(demo_shape(), pace=Pace(log_blocks=100))
    made = simulate(5, tmp_path / "sim", workload="orders", size=200_000, shape=shape)
    values = values_of(made)
    (tmp_path / "live").mkdir()
    live = LiveSource(made, tmp_path / "live")
    try:
        live.archive()
        vault = tmp_path / "data" / "vault"
        config = live.write_config(tmp_path, postgres_database, vault={"directory": str(vault)})
        document = json.loads(config.read_text("utf-8"))
        apply = document.pop("apply")
        document["target"] = [
            {"name": name, "address": "127.0.0.1:0", "apply": {**apply, "connect-string": place}}
            for name, place in (("quick", postgres_database), ("slow", second_database))
        ]
        config.write_text(json.dumps(document), "utf-8")
        changed(config, **{"encryption-key": key})
        folders = [tmp_path / "data", tmp_path / "scratch"]
        wanted = {"vault", "ready"}
        with (
            running(config, folders[1], 1 << 16) as pid,
            psycopg.connect(second_database, autocommit=True) as connection,
        ):
            lock_tables(connection, made)
            live.archive_all()
            wait_until(lambda: wanted <= kinds(pid, folders, values)[key is None], PATIENCE)
            showing = kinds(pid, folders, values)[1]
        assert showing >= wanted if key is None else not showing
    finally:
        live.close()


def plain_config(folder: Path, **context: object) -> Path:
    return changed(write_config(folder, "host=localhost dbname=none"), **context)


def begin(path: Path) -> None:
    config = load_config(path)
    data = Path(config.context.data)
    data.mkdir(exist_ok=True)
    with encrypted_files(config, data):
        assert (current_key() is None) == (not config.context.is_encrypted)
    assert current_key() is None


def refused(path: Path) -> int:
    with pytest.raises(OlrPgError) as caught:
        begin(path)
    assert KEY not in str(caught.value)
    return caught.value.code


def test_a_directory_stays_with_its_key(tmp_path: Path) -> None:
    begin(plain_config(tmp_path, **{"encryption-key": KEY}))
    assert KEY not in (tmp_path / "data" / FILE_NAME).read_text("utf-8")
    begin(plain_config(tmp_path, **{"encryption-key": KEY}))
    assert refused(plain_config(tmp_path, **{"encryption-key": OTHER})) == 1191
    assert refused(plain_config(tmp_path)) == 1192
    (tmp_path / "data" / FILE_NAME).write_text("{", "utf-8")
    assert refused(plain_config(tmp_path, **{"encryption-key": KEY})) == 4036


def test_a_full_disk_at_the_first_start_with_a_key_is_a_coded_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.files.durable.replace_file", full)
    assert refused(plain_config(tmp_path, **{"encryption-key": KEY})) == 1092


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_files_from_before_the_key_are_encrypted_or_removed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    kept = [
        "recovery/image-1-a.redo", "incidents/2051-1-2-3-4.incident.json",
        "targets/one/recovery/image-1-b.redo",
    ]  # fmt: skip
    gone = ["online/1_2_3.log", "ready/1.ready", "targets/one/ready/2.ready"]
    for name in (*kept, *gone):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(b"rows of " + name.encode())
    begin(plain_config(tmp_path))
    assert all((data / name).read_bytes().startswith(b"rows") for name in (*kept, *gone))
    path = plain_config(tmp_path, **{"encryption-key": KEY})
    begin(path)
    config = load_config(path)
    for name in kept:
        assert is_sealed(data / name)
        with encrypted_files(config, data), SealedReader(data / name) as reader:
            assert reader.read(0, 100) == b"rows of " + name.encode()
    assert not any((data / name).exists() for name in gone)


def test_copies_of_logs_from_before_the_key_are_encrypted(tmp_path: Path) -> None:
    """Also in a vault outside the directory; a copy that cannot be encrypted ends the start."""
    copy = tmp_path / "vault" / COPIES.replace("*", "1_7_3")
    copy.parent.mkdir()
    copy.write_bytes(b"rows")
    path = plain_config(tmp_path, **{"encryption-key": KEY})
    document = json.loads(path.read_text("utf-8"))
    account = {"user": "u", "password": "p", "server": "h:1521/s"}
    document["source"] = {**account, "vault": {"directory": str(copy.parent)}}
    path.write_text(json.dumps(document), "utf-8")
    begin(path)
    assert is_sealed(copy)
    copy.with_name(COPIES.replace("*", "1_8_3")).mkdir()
    assert refused(path) == 1193


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["printf", KEY], None),
        (["printf", "no key"], "not base64"),
        (["false"], "exit code 1: it printed nothing"),
        (["sh", "-c", "echo locked >&2; exit 3"], "exit code 3: locked"),
        (["/no/such/command"], "cannot be run"),
    ],
)
def test_a_command_prints_the_key(tmp_path: Path, command: list[str], words: str | None) -> None:
    config = load_config(plain_config(tmp_path, **{"encryption-key-command": command}))
    if words is None:
        assert row_key(config) is not None
        return
    with pytest.raises(OlrPgError, match=words) as caught:
        row_key(config)
    assert caught.value.code == 1190


def test_a_key_that_is_none_is_refused_without_its_text(tmp_path: Path) -> None:
    short = base64.b64encode(bytes(16)).decode()
    path = plain_config(tmp_path, **{"encryption-key": short})
    with pytest.raises(OlrPgError, match="32 bytes are required, but the key has 16") as caught:
        row_key(load_config(path))
    assert short not in str(caught.value)
    both = plain_config(
        tmp_path, **{"encryption-key": KEY, "encryption-key-command": ["printf", KEY]}
    )
    with pytest.raises(OlrPgError, match="only one of encryption-key"):
        load_config(both)


def test_rows_that_wait_during_a_load_are_encrypted_where_files_are(tmp_path: Path) -> None:
    made = simulate(3, tmp_path / "sim", workload="wide", size=20_000)
    for key in (None, KEY):
        config = load_config(
            changed(write_config(tmp_path, "host=localhost dbname=none"), **{"encryption-key": key})
        )
        with sources.open_tables(config, folder=made.logs[0].parent, for_load=True):
            assert must_seal() is (key is not None)
    assert not must_seal()
