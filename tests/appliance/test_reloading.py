"""Which changes of the configuration are taken while the appliance runs."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import structlog

from olr_pg.appliance.reloading import Reloader, changed_keys, hangups
from olr_pg.config.changed_tables import write_changes
from olr_pg.config.model import Config
from olr_pg.config.names import TableName
from olr_pg.config.reading import parse_config
from olr_pg.errors import Code, OlrPgError
from olr_pg.server.port_connection import PortSettings

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
    assert before.apply is not None
    changes = before.apply.changes.plus([TableName("A", "C")])
    write_changes(before.changes_file(), changes)
    reloader.poll()
    reloader.poll()
    assert [names(one) for one in target.renewed] == [["A.B", "A.C"]]


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
