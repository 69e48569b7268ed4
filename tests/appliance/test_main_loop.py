"""The end of an appliance whose target does not answer, or holds it up.

Which changes of the configuration are taken while the appliance runs.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import urllib.request
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import psycopg
import pytest
import structlog
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from structlog.testing import capture_logs

from olr_pg.appliance.appliance import run_appliance
from olr_pg.appliance.main_loop import Reloader, Watchdog, changed_keys, hangups
from olr_pg.config.changed_tables import change_tables
from olr_pg.config.model import Config
from olr_pg.config.reading import load_config, parse_config
from olr_pg.config.table_patterns import TableName
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.service_manager import ServiceManager, ThreadActivity
from olr_pg.schema.followed_steps import step_sql
from olr_pg.server.port_connection import PortSettings
from tests.appliance.forked_appliance import at_work
from tests.replicator.test_outages import await_status, is_caught_up, running
from tests.replicator.test_targets import entry, fill, keys_of, two_tables, write_config
from tests.simulation.proxy import Proxy
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.appliance.operated_site import Site

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
        waiting = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'shop.a'::regclass"
        wait_until(lambda: locker.execute(waiting).rowcount > 0)
        process.send_signal(number)
        assert process.wait(WAIT_SECONDS) == code
        assert locker.execute(waiting).rowcount == 0
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


SOURCE = {"user": "u", "password": "p", "server": "db:1521/orcl"}


def config(**changes: Any) -> Config:
    return parse_config({"source": SOURCE, **changes}, folder=Path("/nowhere"))


def test_keys_are_named_as_in_the_file() -> None:
    before = config(target={"chunk-size": 2_048}, log={"level": 3})
    after = config(target={"chunk-size": 4_096}, log={"level": 4})
    assert sorted(changed_keys(before, after)) == ["log.level", "target.chunk-size"]
    assert changed_keys(before, before) == []


def test_sighup_asks_and_nothing_more() -> None:
    before = signal.getsignal(signal.SIGHUP)
    with hangups() as wanted:
        os.kill(os.getpid(), signal.SIGHUP)
        assert wanted.wait(60)
    assert signal.getsignal(signal.SIGHUP) == before


def test_a_file_that_is_wrong_changes_nothing() -> None:
    def load() -> Config:
        raise OlrPgError(Code.TABLE_UNKNOWN, "no")

    with structlog.testing.capture_logs() as logs:
        Reloader(config(), load, None, threading.Event()).reload()
    (entry,) = logs
    assert entry["error"].code == Code.CHANGED_CONFIG_REFUSED


class Target:
    """A target whose source has some tables, and its port."""

    name = ""
    settings = PortSettings()

    def __init__(self, config: Config, refuses: str = "") -> None:
        self.config = config
        self.delivery = self.listener = self
        self.named: dict[str, str] = {}
        self.renewed: list[Config] = []
        self._refuses = refuses

    def tables(self, query: str) -> tuple[()]:
        if self._refuses and self._refuses in query:
            raise OlrPgError(Code.TABLE_UNKNOWN, f"there is no {self._refuses}")
        return ()

    def renew(self, config: Config) -> None:
        self.config = config
        self.renewed.append(config)


def applying(folder: Path, *tables: str, **apply: Any) -> Config:
    section = {"connect-string": "embedded", "tables": list(tables), **apply}
    document = {"source": SOURCE, "apply": section, "context": {"data": str(folder)}}
    return parse_config(document, folder=folder)


def names(config: Config) -> list[str]:
    assert config.apply is not None
    return [str(name) for name in config.apply.table_names or ()]


def test_another_list_of_tables_is_taken_and_nothing_else_of_its_section(tmp_path: Path) -> None:
    target: Any = Target(applying(tmp_path, "A.B"))
    fresh = applying(tmp_path, "A.B", "A.C", **{"batch-ms": 5})
    reloader = Reloader(target.config, lambda: fresh, None, threading.Event(), [target])
    reloader.poll()
    assert target.renewed == []
    reloader.reload()
    (taken,) = target.renewed
    assert names(taken) == ["A.B", "A.C"]
    assert taken.apply is not None
    assert taken.apply.batch_ms == 200
    reloader.reload()
    assert len(target.renewed) == 1


def test_what_was_added_by_command_is_taken_at_the_next_look(tmp_path: Path) -> None:
    before = applying(tmp_path, "A.B")
    target: Any = Target(before)
    reloader = Reloader(before, before.with_table_changes, None, threading.Event(), [target])
    change_tables(before.changes_file(), lambda changes: changes.plus([TableName("A", "C")]))
    reloader.poll()
    reloader.poll()
    assert [names(one) for one in target.renewed] == [["A.B", "A.C"]]


def test_what_was_added_while_the_appliance_started_is_taken(tmp_path: Path) -> None:
    before = applying(tmp_path, "A.B")
    target: Any = Target(before)
    change_tables(before.changes_file(), lambda changes: changes.plus([TableName("A", "C")]))
    Reloader(before, before.with_table_changes, None, threading.Event(), [target]).poll()
    assert [names(one) for one in target.renewed] == [["A.B", "A.C"]]


def test_nothing_is_taken_for_a_target_without_an_applier(tmp_path: Path) -> None:
    served = parse_config({"source": SOURCE, "context": {"data": str(tmp_path)}}, folder=tmp_path)
    target: Any = Target(served)
    with structlog.testing.capture_logs() as logs:
        Reloader(served, lambda: served, None, threading.Event(), [target]).poll()
    assert logs == []


def test_a_table_that_was_removed_while_the_appliance_started_is_not_begun(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command finds no status page, and deletes the table's position at once."""
    path = site.config()
    loaded = load_config(path)
    site.change()
    assert "the next start" in site.command("tables", "remove", f"APP.{site.b}")
    monkeypatch.setattr("olr_pg.appliance.main_loop.configure_logging", lambda *_, **__: None)
    run_appliance(
        loaded, once=True, apply=True, reload=partial(load_config, path), translate=step_sql
    )
    assert site.differing() == [site.b]
    assert site.sql("SELECT source_table FROM olr_pg.ledger") == [(f"APP.{site.a}",)]


def test_a_list_that_the_source_refuses_is_not_taken(tmp_path: Path) -> None:
    target: Any = Target(applying(tmp_path, "A.B"), refuses="NO_SUCH")
    fresh = applying(tmp_path, "A.B", "A.NO_SUCH")
    with structlog.testing.capture_logs() as logs:
        Reloader(target.config, lambda: fresh, None, threading.Event(), [target]).reload()
    assert target.renewed == []
    assert any("was rejected" in entry["event"] for entry in logs)


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Any:
    yield
    structlog.reset_defaults()
