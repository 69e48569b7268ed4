"""Clients at the appliance's port that are not its applier: what they do moves nothing of its."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.appliance.appliance import run_appliance
from olr_pg.config.reading import load_config
from olr_pg.errors import OlrPgError
from olr_pg.monitor.status_client import ask_status
from olr_pg.server.checkpoint import Checkpoint, read_saved
from tests.appliance.test_appliance import COMMIT_SCN, run_once, write_config
from tests.replicator.test_port import NO_MORE, QUERY, RawClient, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_SECONDS = 120.0
ERROR = struct.pack("<H", 3)


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


def rows(database: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database) as connection:
        return connection.execute("SELECT id, name FROM olr_test.test_cdc").fetchall()


def config_of(folder: Path, real: Path, database: str, port: int, **changes: Any) -> Path:
    target = {"address": f"127.0.0.1:{port}"}
    return write_config(folder, real, database, target=target, **changes)


def connected(port: int, over: threading.Event | None = None) -> RawClient:
    """A client, as soon as anything listens there."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (over is not None and over.is_set()):
        with suppress(ConnectionRefusedError):
            return RawClient(port)
        assert time.monotonic() < deadline
        time.sleep(0.01)
    raise ConnectionRefusedError


@contextmanager
def serving(config: Path) -> Iterator[None]:
    """The port without an applier, until external clients have confirmed what there is."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            run_appliance(load_config(config), once=True, apply=False)
        except BaseException as error:  # noqa: BLE001 - looked at below
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert not failures


@pytest.mark.usefixtures("one_session")
def test_a_stranger_that_comes_first_gets_an_error_and_the_target_everything(
    tmp_path: Path, real_log_dir: Path, postgres_database: str, port: int
) -> None:
    config = config_of(tmp_path, real_log_dir, postgres_database, port)
    over = threading.Event()
    answers: list[bytes] = []

    def knock() -> None:
        with suppress(OSError, AssertionError, struct.error):
            while not over.is_set():
                with connected(port, over) as client:
                    answers.append(client.ask(1, QUERY))
                    answers.append(client.ask(2, struct.pack("<Q", 10**9)))

    stranger = threading.Thread(target=knock)
    stranger.start()
    try:
        run_once(config)
    finally:
        over.set()
        stranger.join()
    assert answers
    codes = {(answer[:2], int.from_bytes(answer[2:6], "little")) for answer in answers}
    assert codes <= {(ERROR, 4008), (ERROR, 4004)}
    assert rows(postgres_database) == [(1, "hello world")]
    saved = read_saved(tmp_path / "data" / "checkpoint.json")
    assert saved.scn is not None
    assert COMMIT_SCN <= saved.scn < 10**9
    assert saved.confirmed_by == "applier olr_pg"


@pytest.mark.usefixtures("one_session")
def test_what_another_client_has_confirmed_the_applier_does_not_pass_over(
    tmp_path: Path, real_log_dir: Path, postgres_database: str, port: int
) -> None:
    config = config_of(tmp_path, real_log_dir, postgres_database, port)
    with serving(config), connected(port) as client:
        client.subscribe(0)
        for _ in range(3):
            client.element(3, 0)
        # Until the server has ended: everything that is there is decoded and confirmed then.
        with suppress(OSError, AssertionError):
            while client.ask(3, struct.pack("<Q", COMMIT_SCN)) == NO_MORE:
                time.sleep(0.01)
    saved = read_saved(tmp_path / "data" / "checkpoint.json").scn
    assert saved is not None
    with capture_logs() as lines:
        run_once(config)
    assert rows(postgres_database) == [(1, "hello world")]
    reasons = [
        line["reason"]
        for line in lines
        if line["event"]
        == "starting at the SCN recorded in the target, not at the one saved by the server"
    ]
    assert len(reasons) == 1
    assert reasons[0].startswith("OLR-05150")
    assert (
        f"the server has saved SCN {saved}, but the target requires all changes from SCN 0 on"
        in reasons[0]
    )
    # From now on what is saved is its own again.
    with capture_logs() as lines:
        run_once(config)
    assert "starting at the SCN recorded in the target, not at the one saved by the server" not in [
        line["event"] for line in lines
    ]


@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("confirmed_by", [None, "tables of somebody", "applier olr_pg"])
def test_a_target_that_is_behind_what_is_saved_starts_from_its_own(
    tmp_path: Path,
    real_log_dir: Path,
    postgres_database: str,
    port: int,
    confirmed_by: str | None,
) -> None:
    """Also where a lost ledger and a lost `applied.json` leave nothing to compare with."""
    config = config_of(tmp_path, real_log_dir, postgres_database, port)
    run_once(config)
    path = tmp_path / "data" / "checkpoint.json"
    source = json.loads(path.read_text())["source"]
    Checkpoint(path, source).save(10**9, None, confirmed_by)
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("TRUNCATE olr_test.test_cdc; DROP SCHEMA olr_pg CASCADE")
    with pytest.raises(OlrPgError) as caught:
        run_once(config)
    assert caught.value.code == 5024
    (tmp_path / "data" / "applied.json").unlink()
    with capture_logs() as lines:
        run_once(config)
    assert "starting at the SCN recorded in the target, not at the one saved by the server" in [
        line["event"] for line in lines
    ]
    assert rows(postgres_database) == [(1, "hello world")]
    saved = read_saved(path)
    assert saved.scn is not None
    assert saved.scn < 10**9


def state_of(folder: Path, *passing: str) -> tuple[str, str]:
    """The name of the state, once it is none of those that pass, and its reason."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        with suppress(OlrPgError):
            state = ask_status(load_config(folder / "serve.json"))["state"]
            if state["name"] not in passing:
                return state["name"], state["reason"] or ""
        assert time.monotonic() < deadline
        time.sleep(0.02)


def problems_of(folder: Path) -> list[str]:
    found: list[str] = ask_status(load_config(folder / "serve.json"))["problems"]
    return found


@pytest.mark.timeout(600)  # it starts Spark
def test_caught_up_is_said_only_where_all_is_confirmed(
    tmp_path: Path, real_log_dir: Path, port: int
) -> None:
    decoding = ("WAITING_FOR_CLIENT", "DECODING", "SPILLING")
    with served(tmp_path, real_log_dir, port):
        for start in (10**9, 2**63, 2**64 - 1):
            with RawClient(port) as client:
                client.subscribe(start)
                name, reason = state_of(tmp_path, *decoding)
                assert (name, reason[:9]) == ("WAITING_FOR_REDO", "OLR-04052")
                assert client.ask(3, struct.pack("<Q", 0)) == NO_MORE
                assert client.saved_scn() is None
            assert state_of(tmp_path, "WAITING_FOR_REDO", *decoding[1:])[0] == decoding[0]
        with RawClient(port) as client:
            client.subscribe(0)
            for _ in range(3):
                client.element(3, 0)
            name, reason = state_of(tmp_path, *decoding)
            assert (name, reason) == ("TARGET_BEHIND", "1 transaction is not confirmed")
            obstacle = tmp_path / "data" / "checkpoint.json.new"
            obstacle.mkdir()
            refused = client.ask(3, struct.pack("<Q", COMMIT_SCN))
            assert (refused[:2], int.from_bytes(refused[2:6], "little")) == (ERROR, 4013)
            assert [text[:9] for text in problems_of(tmp_path)] == ["OLR-04013"]
            obstacle.rmdir()
            assert client.ask(3, struct.pack("<Q", COMMIT_SCN)) == NO_MORE
            assert state_of(tmp_path, "TARGET_BEHIND")[0] == "CAUGHT_UP"
            assert problems_of(tmp_path) == []
