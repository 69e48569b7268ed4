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
from olr_pg.config.model import Config
from olr_pg.config.reading import parse_config
from olr_pg.errors import Code, OlrPgError

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
        Reloader(config(), load, [], None, threading.Event()).reload()
    (entry,) = logs
    assert entry["error"].code == Code.CHANGED_CONFIG_REFUSED


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Any:
    yield
    structlog.reset_defaults()
