"""The end of an appliance whose target does not answer, or holds it up."""

from __future__ import annotations

import json
import signal
import threading
import urllib.request
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from structlog.testing import capture_logs

from olr_pg.appliance.main_loop import Watchdog
from olr_pg.observability.service_manager import ServiceManager
from olr_pg.observability.thread_activity import ThreadActivity
from tests.appliance.forked_appliance import at_work
from tests.replicator.test_outages import await_status, is_caught_up, running
from tests.replicator.test_targets import entry, fill, keys_of, two_tables, write_config
from tests.simulation.proxy import Proxy
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path


WAIT_SECONDS = 120.0
BOUNDS = {"shutdown-seconds": 3, "drain-seconds": 1}
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_network_that_passes_nothing_on_does_not_keep_it(
    tmp_path: Path, postgres_database: str, number: signal.Signals, code: int
) -> None:
    source = two_tables(tmp_path / "s")
    fill(source, range(40))
    given = conninfo_to_dict(postgres_database)
    place = (str(given["host"]), int(str(given["port"])))
    with Proxy("postgres", lambda: place) as proxy:
        behind = make_conninfo(postgres_database, port=proxy.port, sslmode="disable")
        config = write_config(source, [entry("one", behind, "AB", apply=BOUNDS)])
        with at_work(config, tmp_path / "log") as process:
            await_status(config, process, lambda s: is_caught_up(s, "SHOP.A", "SHOP.B"))
            proxy.silence("requests", "answers")
            process.send_signal(number)
            assert process.wait(WAIT_SECONDS) == code
    assert "Traceback" not in (tmp_path / "log").read_text()
    fill(source, range(40, 80))
    source.finish()
    with running(config_to(postgres_database, config, behind), tmp_path / "log") as process:
        await_status(config, process, lambda s: s["state"]["name"] == "CAUGHT_UP")
        assert keys_of(postgres_database, "a") == keys_of(postgres_database, "b")
    assert keys_of(postgres_database, "a") == list(range(80))


@pytest.mark.timeout(600)
def test_a_start_behind_a_silent_network_says_so_and_ends_in_time(
    tmp_path: Path, postgres_database: str
) -> None:
    source = two_tables(tmp_path / "s")
    fill(source, range(40))
    given = conninfo_to_dict(postgres_database)
    place = (str(given["host"]), int(str(given["port"])))
    log = tmp_path / "log"
    with Proxy("postgres", lambda: place) as proxy:
        proxy.silence("answers")
        behind = make_conninfo(
            postgres_database, port=proxy.port, sslmode="disable", connect_timeout=3
        )
        config = write_config(source, [entry("one", behind, "AB", apply=BOUNDS)])
        with at_work(config, log) as process:
            told = await_status(
                config, process, lambda s: s["state"]["name"] == "WAITING_FOR_TARGET"
            )
            assert told["health"] == "degraded"
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_SECONDS) == 143
    assert "Traceback" not in log.read_text()


def config_to(database: str, config: Path, behind: str) -> Path:
    """The configuration, with the target that is not behind the proxy."""
    text = config.read_text("utf-8")
    assert behind in text
    config.write_text(text.replace(behind, database), "utf-8")
    return config


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_lock_in_the_target_does_not_keep_it(
    tmp_path: Path, postgres_database: str, number: signal.Signals, code: int
) -> None:
    source = two_tables(tmp_path / "s")
    fill(source, range(40))
    config = write_config(source, [entry("one", postgres_database, "AB", apply=BOUNDS)])
    log = tmp_path / "log"
    with psycopg.connect(postgres_database) as locker, at_work(config, log) as process:
        await_status(config, process, lambda s: is_caught_up(s, "SHOP.A", "SHOP.B"))
        locker.execute("LOCK TABLE shop.a")
        fill(source, range(40, 80))
        source.finish()
        await_status(config, process, lambda s: lags(s, "SHOP.A"))
        process.send_signal(number)
        assert process.wait(WAIT_SECONDS) == code
        waiting = locker.execute(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'shop.a'::regclass"
        )
        assert waiting.fetchone() == (0,)
    said = log.read_text()
    assert "the applier did not stop in time: cancelling its running statements" in said
    assert "terminated at once" not in said
    with running(config, log) as process:
        await_status(config, process, lambda s: s["state"]["name"] == "CAUGHT_UP")
    assert keys_of(postgres_database, "a") == keys_of(postgres_database, "b") == list(range(80))


def lags(status: dict[str, object], name: str) -> bool:
    tables = status["tables"]
    assert isinstance(tables, list)
    return any(one["name"] == name and (one["lag_seconds"] or 0) > 0.5 for one in tables)


@pytest.mark.timeout(600)
def test_a_lock_in_the_target_is_told_with_who_has_it(
    tmp_path: Path, postgres_database: str
) -> None:
    """Where an operator looks: the page's status, the health, the metrics, the command."""
    source = two_tables(tmp_path / "s")
    fill(source, range(40))
    config = write_config(
        source, [entry("one", postgres_database, "AB", apply={**BOUNDS, "workers": 1})]
    )
    log = tmp_path / "log"
    with (
        psycopg.connect(postgres_database, application_name="night job") as locker,
        running(config, log) as process,
    ):
        await_status(config, process, lambda s: is_caught_up(s, "SHOP.A", "SHOP.B"))
        locker.execute("LOCK TABLE shop.a")
        fill(source, range(40, 80))
        source.finish()
        told = await_status(config, process, lambda s: any(t["blocked"] for t in s["tables"]))
        assert told["health"] == "degraded"
        (problem,) = told["problems"]
        assert "SHOP.A: OLR-05098" in problem
        assert f"pid {locker.info.backend_pid} ('night job'" in problem
        assert [t["name"] for t in told["tables"] if t["blocked"]] == ["SHOP.A"]
        behind = await_status(
            config, process, lambda s: lags(s, "SHOP.A") and not lags(s, "SHOP.B")
        )
        assert behind["health"] == "degraded"
        assert keys_of(postgres_database, "b") == list(range(80))
        assert 'olr_pg_table_blocked{table="SHOP.A"' in metrics(config)
        locker.rollback()
        after = await_status(config, process, lambda s: s["state"]["name"] == "CAUGHT_UP")
        assert (after["health"], after["problems"]) == ("ok", [])
    assert keys_of(postgres_database, "a") == list(range(80))


def metrics(config: Path) -> str:
    place = json.loads((config.parent / "data" / "status.json").read_text("utf-8"))["url"]
    with urllib.request.urlopen(place + "metrics", timeout=60) as answer:
        text: bytes = answer.read()
    return text.decode()


class Told(ServiceManager):
    """Counts the reports."""

    def __init__(self) -> None:
        super().__init__("")
        self.count = 0

    def alive(self) -> None:
        self.count += 1


def test_a_stuck_thread_ends_the_reports_until_it_moves() -> None:
    now = [0.0]
    over = threading.Event()
    worker = threading.Thread(target=over.wait, name="apply-0", daemon=True)
    worker.start()
    busy: list[tuple[threading.Thread, ...]] = [(worker,)]
    target = cast("Any", SimpleNamespace(busy_threads=busy))
    told = Told()
    watchdog = Watchdog(told, [target], ThreadActivity(lambda: now[0]), still_seconds=900)

    def is_silent() -> bool:
        now[0] += 901
        before = told.count
        watchdog.poll()
        return told.count == before

    with capture_logs() as logs:
        wait_until(is_silent)
        assert is_silent()
    assert [entry["code"] for entry in logs] == ["OLR-04045"]
    assert "apply-0" in logs[0]["event"]
    busy.clear()
    assert not is_silent()
    over.set()
    worker.join()
