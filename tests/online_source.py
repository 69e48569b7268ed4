"""Small archived logs of one database, and its groups of online logs written step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from olr_pg.capture.logs import discover_logs
from tests.online_group import OnlineGroup
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.dictionary.model import Snapshot

GROUP_BLOCKS = 300


class SmallLogs(NamedTuple):
    """What a database has archived: `logs` in order, and its dictionary."""

    folder: Path
    snapshot: Snapshot
    logs: list[ArchivedLog]


def small_logs(folder: Path, logs: int = 5, rows: int = 4) -> SmallLogs:
    """A table T with a transaction per row, and one that is open through all of it.

    Each LWN is a few blocks, and each commit is one.
    """
    source = DdlSource(folder)
    for name in ("T", "LONG"):
        source.create(name, {"ID": NUMBER, "TXT": TEXT})
    snapshot = source.take_snapshot()
    source.threads[0].switch()
    long = source.open_session()
    number = 0
    from olr_pg.simulator.sessions.sys_dictionary import sys_cell

    for log in range(logs):
        long.insert(source.tables["LONG"], [sys_cell(log), sys_cell("long " * 20)])
        for _ in range(rows):
            source.insert("T", number, f"row {number} " * 3)
            number += 1
        if log == logs - 1:
            long.commit()
        source.threads[0].switch()
    source.instance.shut_down()
    found = discover_logs([str(folder / "logs")])
    return SmallLogs(folder, snapshot, sorted(found, key=lambda log: log.header.first_scn))


class OnlineGroups:
    """The groups of one redo thread: logs are written into one after the other.

    Args:
        folder: of the files; made.
        logs: archived logs, in order.
    """

    def __init__(self, folder: Path, logs: list[ArchivedLog], groups: int = 3) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.groups = [OnlineGroup(folder / f"redo_{n}.log", GROUP_BLOCKS) for n in range(groups)]
        self._data = [_read(log) for log in logs]
        self._at = -1

    @property
    def current(self) -> OnlineGroup:
        return self.groups[self._at % len(self.groups)]

    def switch(self) -> OnlineGroup:
        """Close the current log, if there is one, and begin the next in the next group."""
        if self._at >= 0:
            self.current.write()
            self.current.close()
        self._at += 1
        self.current.begin(self._data[self._at])
        return self.current


def _read(log: ArchivedLog) -> bytes:
    with open(log.path, "rb") as file:  # noqa: PTH123 - a str
        return file.read()
