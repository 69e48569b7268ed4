"""Online logs of a live database: the stand-in's views, the groups' files, an archive that is late.

The database works against the clock while it is read; whatever happens to it, every transaction of
its truth comes once and in order.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.capture.lineage import Lineage
from olr_pg.capture.online_logs import OnlineLogs
from olr_pg.config.source_section import OracleSource
from olr_pg.oracle.live_source import LiveDatabase
from olr_pg.scalars import format_xid
from olr_pg.simulator import live
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.live import LiveOptions, simulate_live
from olr_pg.simulator.oracle_net.serve import LiveServer
from olr_pg.simulator.oracle_net.state import ARCHIVE, ORADATA
from olr_pg.simulator.writer.instance import Pace
from tests.replicator.scripted_source import PATIENCE_SECONDS, SHOP, Delivered, Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from olr_pg.simulator.online_redo.online_database import OnlineDatabase
    from olr_pg.simulator.oracle_net.serve import StandIn
    from olr_pg.simulator.simulated_files import SimulatedFiles

OPTIONS = LiveOptions(150_000, switch_seconds=0.2, seconds=1.5, archive_lag=2)


class Standby(LiveServer):
    """Serves the physical standby that the database sends its redo to."""

    def begin(self, files: SimulatedFiles, database: OnlineDatabase) -> None:
        super().begin(files, database)
        assert self._state is not None
        self._state.show_standby_logs(database.control)


class Working:
    """A database at work, in a thread of its own, until its time is over."""

    def __init__(
        self, folder: Path, options: LiveOptions, threads: int, serve: type[LiveServer]
    ) -> None:
        self.folder = folder
        self.failure: BaseException | None = None
        self._options = options
        self._shape = replace(demo_shape(), pace=Pace(log_blocks=150), threads=threads)
        self._opened = threading.Event()
        self.watch: Any = serve(folder, 0, self._open)
        self.stop = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _open(self, server: StandIn) -> None:
        self.server = server
        self._opened.set()

    def _work(self) -> None:
        try:
            simulate_live(
                *(2, self.folder, self.stop, self._options),
                workload="orders",
                shape=self._shape,
                watch=self.watch,
            )
        except BaseException as error:  # noqa: BLE001 - raised in the test
            self.failure = error
        finally:
            self._opened.set()

    @property
    def works(self) -> bool:
        return self._thread.is_alive()

    def source(self, **changes: object) -> OracleSource:
        """As soon as it is open."""
        assert self._opened.wait(PATIENCE_SECONDS)
        assert self.failure is None, self.failure
        places = [ARCHIVE, str(self.folder / "logs"), ORADATA, str(self.folder / "online")]
        section = {
            "user": "olr",
            "password": "olr",
            "server": self.server.connect_string,
            "redo": "online",
            "path-mapping": places,
            "poll-ms": 50,
        }
        return OracleSource.model_validate(section | changes)

    def end(self) -> None:
        self.stop.set()
        self._thread.join()
        self.watch.close()

    def truth(self) -> list[tuple[int, str]]:
        lines = map(json.loads, (self.folder / "truth.jsonl").read_bytes().splitlines())
        return [(line["commit_scn"], line["xid"]) for line in lines if line["op"] == "begin"]


@contextmanager
def reading(
    folder: Path, options: LiveOptions, threads: int = 1, serve: type[LiveServer] = LiveServer
) -> Iterator[tuple[Working, Reader]]:
    """A database at work, and who reads it from its beginning."""
    working = Working(folder / "source", options, threads, serve)
    try:
        database = LiveDatabase(
            working.source(), Lineage(folder / "lineage"), online=OnlineLogs(folder / "spool")
        )
        try:
            with Reader(database, query=SHOP) as reader:
                yield working, reader
        finally:
            database.close()
    finally:
        working.end()


def all_of(
    working: Working, reader: Reader, look: Callable[[], object] = lambda: None
) -> list[Delivered]:
    """Everything that is delivered, until the database has ended and all of it is there."""
    got, end = list[Delivered](), time.monotonic() + PATIENCE_SECONDS
    while working.works or len(got) < len(working.truth()):
        got += reader.take()
        look()
        assert reader.failure() is None, reader.failure()
        assert time.monotonic() < end
        time.sleep(0.01)
    assert working.failure is None, working.failure
    return got


def names(transactions: list[Delivered]) -> list[tuple[int, str]]:
    return [(one.commit_scn, format_xid(one.xid)) for one in transactions]


@pytest.mark.parametrize(
    ("options", "serve"),
    [
        pytest.param(OPTIONS, LiveServer, id="primary"),
        pytest.param(OPTIONS, Standby, id="standby"),
        pytest.param(replace(OPTIONS, resetlogs_seconds=0.5), LiveServer, id="resetlogs"),
        pytest.param(replace(OPTIONS, member_faults=0.8, members=3), LiveServer, id="members"),
        pytest.param(replace(OPTIONS, crash_seconds=0.4), LiveServer, id="crashes"),
    ],
)
def test_everything_comes_once_and_in_order(
    tmp_path: Path, options: LiveOptions, serve: type[LiveServer]
) -> None:
    with reading(tmp_path, options, serve=serve) as (working, reader):
        got = all_of(working, reader)
        truth = working.truth()
        assert len(truth) > 20
        assert names(got) == truth


def test_an_idle_thread_holds_the_others_back_until_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "HEARTBEAT_SECONDS", 0.3)
    held = set[int]()
    with reading(tmp_path, replace(OPTIONS, idle_threads=1), threads=2) as (working, reader):

        def look() -> None:
            source = reader.delivery.progress.source
            if source.waiting_transactions and len(source.threads) == 2:
                held.add(min(source.threads, key=lambda one: one.decoded_scn or 0).thread)

        assert names(all_of(working, reader, look)) == working.truth()
    assert held == {2}
