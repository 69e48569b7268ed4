"""What an operator sees of a target that goes away, of a gap in the logs, and after a restart."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.appliance.target import target_directory
from olr_pg.config.reading import load_config
from olr_pg.errors import OlrPgError
from olr_pg.monitor.status_client import ask_status
from olr_pg.postgres.embedded import start_embedded
from tests.appliance.forked_appliance import ForkedAppliance, at_work
from tests.replicator.test_targets import entry, fill, keys_of, two_tables, write_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WAIT_SECONDS = 240.0


@contextmanager
def running(config: Path, log: Path) -> Iterator[ForkedAppliance]:
    with at_work(config, log, "--log-format", "json") as process:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS) == 128 + signal.SIGTERM


def await_status(
    config: Path, process: ForkedAppliance, wanted: Callable[[dict[str, Any]], object]
) -> dict[str, Any]:
    """The first status that is as wanted."""
    loaded, deadline = load_config(config), time.monotonic() + WAIT_SECONDS
    status: dict[str, Any] = {}
    while True:
        with suppress(OlrPgError):
            status = ask_status(loaded)
            if wanted(status):
                return status
        assert process.poll() is None
        assert time.monotonic() < deadline, status
        time.sleep(0.05)  # nothing tells when a status is another


def is_caught_up(status: dict[str, Any], *names: str) -> bool:
    by_name = {table["name"]: table for table in status["tables"]}
    return status["state"]["name"] == "CAUGHT_UP" and all(
        by_name[name]["inserted"] for name in names
    )


@pytest.mark.timeout(600)
def test_a_target_that_goes_away_is_waited_for_and_told_of_once(
    tmp_path: Path, cluster_folder: Path
) -> None:
    source = two_tables(tmp_path / "s")
    fill(source, range(40))
    cluster = start_embedded(cluster_folder)
    config = write_config(source, [entry("one", cluster.connect_string, "AB")])
    log = tmp_path / "log"
    with running(config, log) as process:
        before = await_status(config, process, lambda s: is_caught_up(s, "SHOP.A", "SHOP.B"))
        cluster.stop()
        away = await_status(config, process, lambda s: s["state"]["name"] != "CAUGHT_UP")
        assert (away["state"]["name"], away["health"]) == ("WAITING_FOR_TARGET", "degraded")
        assert "OLR-05003" in away["state"]["reason"]
        assert "dbname" not in away["state"]["reason"]
        assert ask_status(load_config(config), page="healthz")["health"] == "degraded"
        fill(source, range(40, 80))
        source.finish()
        held = await_status(
            config,
            process,
            lambda s: any((table["lag_seconds"] or 0.0) > 1.0 for table in s["tables"]),
        )
        scns = {table["name"]: table["applied_scn"] for table in before["tables"]}
        assert all(scns.values())
        assert {table["name"]: table["applied_scn"] for table in held["tables"]} == scns
        cluster = start_embedded(cluster_folder)
        try:
            await_status(config, process, lambda s: s["confirmed_scn"] > before["confirmed_scn"])
            after = await_status(config, process, lambda s: s["state"]["name"] == "CAUGHT_UP")
            assert after["health"] == "ok"
            assert len(keys_of(cluster.connect_string, "a")) == 80
            assert len(keys_of(cluster.connect_string, "b")) == 80
        finally:
            lines = log.read_text()
            process.send_signal(signal.SIGTERM)
            process.wait(WAIT_SECONDS)
            cluster.stop()
    assert lines.count("the target cannot be reached: waiting for it") == 1
    assert lines.count("the target can be reached again") == 1
    assert "retrying" not in lines


@pytest.mark.timeout(600)
def test_an_embedded_target_that_was_killed_is_started_again(cluster_folder: Path) -> None:
    """Its place is open to others, so that it is not below the state directory of root."""
    source = two_tables(cluster_folder / "s")
    (cluster_folder / "s").chmod(0o755)
    cluster_folder.chmod(0o755)
    fill(source, range(40))
    config = write_config(source, [entry("one", "embedded", "AB")])
    log = cluster_folder / "log"
    with running(config, log) as process:
        before = await_status(config, process, lambda s: is_caught_up(s, "SHOP.A", "SHOP.B"))
        cluster = start_embedded(target_directory(load_config(config).targets[0]) / "postgres")
        killed = cluster.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        fill(source, range(40, 80))
        source.finish()
        await_status(config, process, lambda s: s["state"]["name"] == "WAITING_FOR_TARGET")
        await_status(config, process, lambda s: s["confirmed_scn"] > before["confirmed_scn"])
        after = await_status(config, process, lambda s: s["state"]["name"] == "CAUGHT_UP")
        assert (after["health"], cluster.pid == killed) == ("ok", False)
        assert len(keys_of(cluster.connect_string, "a")) == 80
        assert len(keys_of(cluster.connect_string, "b")) == 80
        lines = log.read_text()
    cluster.stop()
    assert cluster.is_gone()
    for told in (
        "the target cannot be reached: waiting for it",
        "the target can be reached again",
        "embedded PostgreSQL had stopped and was restarted",
    ):
        assert lines.count(told) == 1


@pytest.mark.timeout(600)
def test_a_gap_is_a_lag_and_a_restart_knows_its_positions(
    tmp_path: Path, postgres_database: str
) -> None:
    source = two_tables(tmp_path / "s")
    fill(source, range(40))
    source.finish()
    logs = sorted((source.directory / "logs").iterdir())
    sequence = len(logs) // 2
    hidden = tmp_path / logs[sequence].name
    logs[sequence].rename(hidden)
    config = write_config(source, [entry("one", postgres_database, "AB")])
    with running(config, tmp_path / "log") as process:
        gap = await_status(config, process, lambda s: s["state"]["name"] == "WAITING_FOR_REDO")
        missing = gap["source"]["gaps"][0]
        assert gap["health"] == "degraded"
        assert all(table["lag_seconds"] > 0 for table in gap["tables"])
        last = gap["source"]["threads"][0]["archived_sequence"]
        number = last - (len(logs) - 1 - sequence)
        assert f"sequence {number}" in missing
        assert f"RESTORE ARCHIVELOG SEQUENCE {number} THREAD 1" in gap["state"]["reason"]
        hidden.rename(logs[sequence])
        done = await_status(
            config,
            process,
            lambda s: is_caught_up(s) and all(table["inserted"] == 40 for table in s["tables"]),
        )
    with running(config, tmp_path / "log") as process:
        again = await_status(config, process, lambda s: s["state"]["name"] == "CAUGHT_UP")
    for name in ("applied_scn", "lag_seconds"):
        assert [table[name] for table in again["tables"]] == [
            table[name] for table in done["tables"]
        ]
    assert again["confirmed_scn"] >= done["confirmed_scn"] > 0
    assert again["source"]["decoded_scn"] > 0
    assert not any(table["inserted"] for table in again["tables"])
