"""How redo gets to an appliance that reads online logs: they are written, switched and archived."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from olr_pg.capture.logs import scan_logs
from olr_pg.capture.online_file import OnlineFile
from olr_pg.errors import OlrPgError
from olr_pg.redo.log_end import find_end
from olr_pg.simulator.online_redo.flush import FlushStyle
from olr_pg.simulator.online_redo.online_database import OnlineDatabase, OnlineOptions
from olr_pg.simulator.online_redo.online_files import OnlineFiles
from olr_pg.simulator.online_redo.written_redo import WrittenLog, redo_of_logs
from olr_pg.simulator.reader import parse_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulation.arrival import SourceLog

FOLDER: Final = "online"
_FIRST: Final = 2
_WAITS: Final = 0.4


class OnlineStep(NamedTuple):
    """A step of the arrival: so many writes; whether what can be there by then is waited for."""

    writes: int
    waits: bool


class OnlineArrival:
    """The folders of archived and online logs, written step by step.

    Args:
        folder: of the seed; the archived logs come into its ``logs``.
        logs: of the source, in order of archiving.
        seed: decides the pace.
    """

    def __init__(self, folder: Path, logs: Sequence[SourceLog], seed: int) -> None:
        self._folder = folder
        self._logs = {(log.thread, log.sequence): log for log in logs}
        self._threads = sorted({log.thread for log in logs})
        written = [WrittenLog(memoryview(log.path.read_bytes())) for log in logs]
        redo = parse_log(bytes(written[0].data)).format
        rng = Random(seed ^ 0x0E17)
        blocks = max(log.path.stat().st_size for log in logs) // redo.block_size
        options = OnlineOptions(
            members=rng.choice((1, 2)),
            blocks=blocks + rng.randrange(1, 20),
            archive_lag=rng.choice((0, 1, 2)),
            style=FlushStyle(pieces=rng.choice((1, 4)), torn=rng.choice((0.0, 0.5))),
        )
        database = OnlineDatabase(redo, self._threads, options, seed)
        self._writes = list(database.steps(redo_of_logs(written)))
        self._steps = list(_pace(rng, len(self._writes)))
        self._done = self._written = 0
        self._rng = rng
        self._shown = rng.choice((0.2, 0.5, 1.0))
        self._archive = folder / "archive"
        self._files = OnlineFiles(folder / FOLDER, self._archive, folder / "making")
        self._files.__enter__()

    @property
    def left(self) -> int:
        """How many steps are left."""
        return len(self._steps) - self._done

    def close(self) -> None:
        """Close the files."""
        self._files.__exit__(None, None, None)

    def place_every_thread(self) -> int:
        """Do steps until there is a log of each redo thread; how many."""
        while set(self._reached()) != set(self._threads):
            self.step()
        return self._done

    def step(self) -> OnlineStep:
        """Do the next step; what was done."""
        step = self._steps[self._done]
        self._done += 1
        for write in self._writes[self._written : self._written + step.writes]:
            self._files.apply(write)
        self._written += step.writes
        self._show_archived()
        return step

    def _show_archived(self) -> None:
        """Let archived logs get into the folder that is watched, some of them late."""
        for path in sorted(self._archive.iterdir()):
            if not self.left or self._rng.random() < self._shown:
                path.rename(self._folder / "logs" / path.name)

    @property
    def readable_scn(self) -> int:
        """Transactions that commit below this SCN are in what is there now."""
        reached = self._reached()
        return min(reached.get(thread, 0) for thread in self._threads)

    def _reached(self) -> dict[int, int]:
        """Up to which SCN each thread can be read, from its first log on."""
        ends = dict[tuple[int, int], tuple[int, bool]]()
        for log in scan_logs([str(self._folder / "logs")]).logs:
            ends[log.header.thread, log.header.sequence] = log.next_scn, True
        for path in sorted((self._folder / FOLDER).iterdir()):
            found = self._online(path)
            if found is not None:
                at, end = found
                ends[at] = max(end, ends.get(at, (0, False)), key=lambda one: (one[1], one[0]))
        reached = dict[int, int]()
        for thread in self._threads:
            for at in sorted(key for key in self._logs if key[0] == thread):
                if at not in ends:
                    break
                reached[thread], is_whole = ends[at]
                if not is_whole:
                    break
        return reached

    def _online(self, path: Path) -> tuple[tuple[int, int], tuple[int, bool]] | None:
        try:
            with OnlineFile(str(path)) as file:
                header, _ = file.read_header()
        except OlrPgError:
            return None
        data = np.frombuffer(path.read_bytes(), np.uint8)
        end = find_end(data[_FIRST * header.block_size :], _FIRST, header, header.first_scn)
        at = header.thread, header.sequence
        if header.nab is None or end.block < header.nab:
            return at, (max(end.scn, header.first_scn), False)
        return at, (header.next_scn or 0, True)


def _pace(rng: Random, writes: int) -> list[OnlineStep]:
    """Some two dozen steps, of one write up to a good part of all."""
    steps = []
    while writes:
        count = min(writes, int(10 ** rng.uniform(0.0, 2.6)) + writes // 40)
        steps.append(OnlineStep(count, rng.random() < _WAITS))
        writes -= count
    return steps
