"""``olr-pg run`` on a live database, ended by a signal in every phase."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from olr_pg.simulator.oracle_net.session import Fault
from tests.cli.conftest import ENTRY
from tests.oracle.test_live_run import applied_scn, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.oracle.live_source import LiveSource

HOURS: Final = 36_000.0
CONNECTING: Final = ("connect", "")
IDENTIFYING: Final = ("execute", "V$DATABASE")
DICTIONARY: Final = ("execute", '"COL$"')
LISTING: Final = ("execute", "V$ARCHIVED_LOG")


class Run:
    """A run in a process group of its own, with what it prints."""

    def __init__(self, config: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", ENTRY, "run", "--config", str(config), "--log-format", "json"],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines += self.process.stderr

    def ended_by(self, number: signal.Signals) -> int:
        """Its exit code, after the whole group got the signal."""
        os.killpg(self.process.pid, number)
        return self.process.wait(120)

    def close(self) -> None:
        """Once is enough."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


@pytest.fixture
def config(live: LiveSource, tmp_path: Path, postgres_database: str) -> Path:
    return live.write_config(tmp_path, postgres_database)


@contextmanager
def running(config: Path) -> Iterator[Run]:
    run = Run(config)
    try:
        yield run
    finally:
        run.close()


def check(run: Run, number: signal.Signals) -> None:
    exit_code = run.ended_by(number)
    run.close()
    said = [line for line in run.lines if not line.startswith("{")]
    word = {signal.SIGINT: "interrupted\n", signal.SIGTERM: "terminated\n"}[number]
    assert (exit_code, said) == (128 + number, [word])


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("phase", "number"),
    [
        (CONNECTING, signal.SIGTERM),
        (IDENTIFYING, signal.SIGINT),
        (DICTIONARY, signal.SIGTERM),
        (LISTING, signal.SIGINT),
    ],
)
def test_while_oracle_is_asked(
    live: LiveSource, config: Path, phase: tuple[str, str], number: signal.Signals
) -> None:
    fault = live.server.faults.add(Fault(*phase, delay=HOURS))
    with running(config) as run:
        wait_until(lambda: fault.hits > 0 or run.process.poll() is not None)
        check(run, number)


@pytest.mark.timeout(600)
def test_while_the_next_log_is_waited_for(
    live: LiveSource, config: Path, postgres_database: str
) -> None:
    live.archive()
    with running(config) as run:
        wait_until(lambda: applied_scn(postgres_database) > 0 or run.process.poll() is not None)
        check(run, signal.SIGTERM)


@pytest.mark.timeout(600)
def test_a_start_waits_for_oracle_unless_it_is_the_first(
    live: LiveSource, config: Path, postgres_database: str
) -> None:
    live.archive()
    down = Fault("connect", drop=True, times=0)
    live.server.faults.add(down)
    with running(config) as run:
        assert run.process.wait(120) == 8  # as for any wrong configuration
    live.server.faults.clear()
    with running(config) as run:
        wait_until(lambda: applied_scn(postgres_database) > 0 or run.process.poll() is not None)
        check(run, signal.SIGTERM)
    before = applied_scn(postgres_database)
    live.archive_all()
    live.server.faults.add(down)
    with running(config) as run:
        wait_until(lambda: waits(run) or run.process.poll() is not None)
        check(run, signal.SIGTERM)
    with running(config) as run:
        wait_until(lambda: waits(run) or run.process.poll() is not None)
        assert run.process.poll() is None
        live.server.faults.clear()
        wait_until(
            lambda: applied_scn(postgres_database) > before or run.process.poll() is not None
        )
        assert run.process.poll() is None
        check(run, signal.SIGTERM)
    document = json.loads(config.read_text("utf-8"))
    document["source"]["password"] = "another"
    config.write_text(json.dumps(document), "utf-8")
    with running(config) as run:
        assert run.process.wait(120) == 8  # each attempt would count against the account


def waits(run: Run) -> bool:
    return any('"waiting for Oracle"' in line for line in list(run.lines))
