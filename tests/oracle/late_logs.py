"""A RESETLOGS while a log of the incarnation before is late, whichever way logs come.

The list of cases is complete: mounted or brought by a transport, archived or online, the first, a
middle or the last log, seen before the RESETLOGS or not, half read or not, at a log's end or inside
it, once or twice. A tool goes through all of it, the test through every seventeenth case:

    python -m tests.oracle.late_logs
"""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.capture.lineage import Lineage
from olr_pg.capture.logs import open_log
from olr_pg.capture.online_logs import OnlineLogs
from olr_pg.config.source_section import OracleSource, Vault
from olr_pg.oracle.archive import not_brought
from olr_pg.oracle.live_source import LiveDatabase
from olr_pg.oracle.vault import LogVault
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import ARCHIVE, ORADATA, OracleState
from tests.online_source import OnlineGroups, SmallLogs, small_logs
from tests.oracle.live_source import reincarnated
from tests.oracle.test_redo_source import log as log_row
from tests.oracle.test_redo_source import member
from tests.replicator.scripted_source import (
    PATIENCE_SECONDS,
    SHOP,
    Delivered,
    Reader,
    ScriptedSource,
)

if TYPE_CHECKING:
    from olr_pg.capture.archived_log import ArchivedLog
    from olr_pg.capture.logs import LogScan
    from olr_pg.oracle.archive import ListedLog

FIRST: Final = 3
"""Logs of the first incarnation; the others have two each."""

WAYS: Final = ("archived", "archived, brought", "online", "online, brought")
HALF, WHOLE = 3, 10_000
"""Blocks of the last log that were written before the RESETLOGS."""


class Case(NamedTuple):
    """A RESETLOGS.

    Attributes:
        way: of the logs.
        late: the log of the first incarnation that comes last.
        written: blocks of its last log that were read before; None: reading begins only then.
        inside: its SCN is inside of the last log.
        twice: there is another one before the log comes.
    """

    way: str
    late: int
    written: int | None
    inside: bool
    twice: bool


def cases() -> list[Case]:
    found = []
    for way in WAYS:
        online = way.startswith("online")
        moments = (None, 0, HALF, WHOLE) if online else (None, 0)
        found += [
            Case(way, *rest)
            for rest in itertools.product(range(FIRST), moments, (False, True), (False, True))
            if not (rest[1] == WHOLE and rest[2])  # what is delivered then is given up
        ]
    return found


class Era(NamedTuple):
    """An incarnation: where it begins, and its logs."""

    resetlogs: int
    scn: int
    logs: list[ArchivedLog]


class Made(NamedTuple):
    """Three incarnations, by whether they begin inside of a log."""

    small: SmallLogs
    eras: dict[bool, list[Era]]


def make(place: Path) -> Made:
    """Write the logs of the incarnations into a folder."""
    small = small_logs(place / "small", 7, rows=3)
    logs = small.logs[1:]
    # The dictionary is not older than the first log, so no redo between them is missing.
    small = small._replace(snapshot=replace(small.snapshot, scn=logs[0].header.first_scn))
    eras = {}
    for inside in (False, True):
        folder = place / f"eras {inside}"
        folder.mkdir()
        eras[inside] = [Era(logs[0].header.resetlogs_id, 1, logs[:FIRST])]
        for number, at in enumerate((FIRST, FIRST + 2), 1):
            begin, last = logs[at].header.first_scn, logs[at - 1]
            scn = (last.header.first_scn + begin) // 2 if inside else begin
            resetlogs = 1_300_000_000 + number
            own = [
                reincarnated(
                    *(Path(one.path), folder), resetlogs=resetlogs, scn=scn, activation=90 + number,
                    sequence=sequence,
                )
                for sequence, one in enumerate(logs[at : at + 2], 1)
            ]  # fmt: skip
            eras[inside].append(Era(resetlogs, scn, [open_log(str(path)) for path in own]))
    return Made(small, eras)


class Gate:
    """A transport that brings what has arrived."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fetch(self, listed: ListedLog, into: Path) -> None:
        there = self._folder / Path(listed.name).name
        if not there.exists():
            raise not_brought(listed, "not yet")
        shutil.copy(there, into)

    def close(self) -> None:
        """Nothing is open."""


class Looked(LiveDatabase):
    """Counts how often it is looked at."""

    looks = 0

    def scan(self, scn: int, delivered_scn: int) -> LogScan:
        self.looks += 1
        return super().scan(scn, delivered_scn)


class Scene:
    """A database that is opened with RESETLOGS, and who reads it."""

    def __init__(self, stack: ExitStack, folder: Path, made: Made, case: Case) -> None:
        self.case, self.eras = case, made.eras[case.inside]
        self.here, self.online = folder / "here", folder / "online"
        self.here.mkdir()
        self.state = OracleState(made.small.snapshot, dbid=77)
        self.server = stack.enter_context(StandIn(self.state))
        self.state.catalogue.insert("V$LOG", [log_row(n, n, "CURRENT") for n in (1, 2, 3)])
        self.state.catalogue.insert(
            "V$LOGFILE",
            [member(n, f"{ORADATA}/redo_{n - 1}.log") for n in (1, 2, 3)],  # type: ignore[misc]
        )
        source = OracleSource.model_validate({
            "user": "olr", "password": "olr", "server": self.server.connect_string, "poll-ms": 10,
            "path-mapping": [ARCHIVE, str(self.here), ORADATA, str(self.online)],
        })  # fmt: skip
        online = vault = None
        if case.way.startswith("online"):
            online = OnlineLogs(folder / "spool")
        if case.way.endswith("brought"):
            place = Vault.model_validate({"directory": str(folder / "vault")})
            vault = LogVault(place, lambda: None, Gate(self.here))
        self.database = Looked(source, Lineage(folder / "lineage"), vault=vault, online=online)
        stack.callback(self.database.close)
        self.groups = OnlineGroups(self.online, self.eras[0].logs)

    def archive(self, era: int, number: int, *, late: bool = False) -> None:
        """A log is archived; one that is late is not here yet."""
        log = self.eras[era].logs[number]
        self.state.archived(Path(log.path).name, log.header)
        if not late:
            shutil.copy(log.path, self.here)

    def work(self) -> None:
        """Write the first incarnation's logs, of the last one a part."""
        for number in range(FIRST):
            last = number == FIRST - 1
            if last and not self.case.written:
                return
            self.groups.switch().write(self.case.written if last else None)
            if not last:
                self.archive(0, number, late=number == self.case.late)

    def reset(self, era: int) -> None:
        """Open the database with RESETLOGS; it archives what was not archived yet."""
        with self.state.catalogue.alone():
            self._reset(era)

    def _reset(self, era: int) -> None:
        before = self.eras[era - 1]
        known = self.state.catalogue.rows(
            'SELECT 1 FROM SYS."V$ARCHIVED_LOG" WHERE "RESETLOGS_ID" = ?', before.resetlogs
        )
        for number in range(len(known), len(before.logs)):
            self.archive(era - 1, number, late=era == 1 and number == self.case.late)
        at = self.eras[era]
        self.groups = OnlineGroups(self.online, at.logs)
        self.state.open_resetlogs(at.scn, at.resetlogs, 90 + era)
        self.groups.switch().write()
        if era == 2:
            self.groups.switch().write()

    def settle(self, reader: Reader) -> None:
        """Wait until it was looked at some times more."""
        wanted, end = self.database.looks + 3, time.monotonic() + PATIENCE_SECONDS
        while self.database.looks < wanted and reader.failure() is None:
            assert time.monotonic() < end
            time.sleep(0.002)


def check(folder: Path, made: Made, case: Case) -> None:
    """See that everything comes, once and in order, although a log is late."""
    expected = calmly(made, case)
    with ExitStack() as stack:
        scene = Scene(stack, folder, made, case)
        if case.written is None:
            scene.reset(1)
        else:
            scene.work()
        reader = stack.enter_context(Reader(scene.database, query=SHOP))
        scene.settle(reader)
        if case.written is not None:
            scene.reset(1)
        if case.twice:
            scene.reset(2)
        else:
            scene.groups.switch().write()
        scene.settle(reader)
        taken = reader.take()
        # What comes behind the late log has not left without it.
        assert taken == expected[: len(taken)], (case, reader.failure())
        shutil.copy(scene.eras[0].logs[case.late].path, scene.here)
        scene.archive(2 if case.twice else 1, 0)
        end = time.monotonic() + PATIENCE_SECONDS
        while len(taken) < len(expected):
            assert reader.failure() is None, (case, reader.failure())
            assert time.monotonic() < end, (case, reader.delivery.state)
            taken += reader.take()
            time.sleep(0.002)
        scene.settle(reader)
        assert reader.failure() is None, (case, reader.failure())
        assert taken + reader.take() == expected, case


def calmly(made: Made, case: Case) -> list[Delivered]:
    """What comes where all logs are there from the beginning."""
    eras = made.eras[case.inside][: 3 if case.twice else 2]
    ends = (*(era.scn for era in eras[1:]), None)
    logs = [
        log if end is None or log.next_scn <= end else replace(log, end_scn=end)
        for era, end in zip(eras, ends, strict=True)
        for log in era.logs
    ]
    if not case.way.startswith("online"):
        logs.pop()  # the current one
    known = made.small.snapshot
    ids = tuple(era.resetlogs for era in reversed(eras))
    database = replace(known.database, resetlogs=ids, activation=eras[-1].logs[0].header.activation)
    source = ScriptedSource(replace(known, database=database))
    source.logs = logs
    with Reader(source, query=SHOP, once=True) as reader:
        reader.drain()
        assert reader.failure() is None, reader.failure()
        return reader.take()


def main() -> None:
    """Go through the whole list."""
    with tempfile.TemporaryDirectory(prefix="olr-pg-late-") as folder:
        made = make(Path(folder))
        for number, case in enumerate(cases()):
            own = Path(folder) / str(number)
            own.mkdir()
            check(own, made, case)
            sys.stdout.write(f"{case}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
