"""A named workload from its seed to the archived logs: batches, archiving, truth.

The kernels work until a log is full or memory has to grow; here logs are closed and written,
arrays grown, and the journal of committed changes printed, which a second core does.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np

from olr_pg.scalars import encode_redo_time
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.named_truth import print_interpreted, print_journal
from olr_pg.simulator.named.session_run import (
    COMMIT_ALL,
    FLUSH,
    HEARTBEAT,
    ROLL_BACK,
    STEP_ROWS,
    work,
    work_interpreted,
)
from olr_pg.simulator.named.setup import Memory, add_start_rows, make_memory, reserve
from olr_pg.simulator.named.start import count_changes, count_interpreted
from olr_pg.simulator.writer.log_file import LogIdentity, OpenLog, archived_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from olr_pg.simulator.named.named_tables import StartRows
    from olr_pg.simulator.named.setup import Setting

    Ints = npt.NDArray[np.int64]
    LogSink = Callable[[str, bytes, memoryview], None]

PRINT_BYTES: Final = 1 << 24
ROWS_MORE: Final = 1 << 16


class TruthFile:
    """Prints journals into a file, on a thread of its own and in their order."""

    def __init__(self, file: BinaryIO, *, compiled: bool) -> None:
        self._file = file
        self._print_journal = print_journal if compiled else print_interpreted
        self._thread = ThreadPoolExecutor(1, "truth")
        self._last: Future[None] | None = None
        self._out = np.zeros(PRINT_BYTES, np.uint8)

    def add(self, memory: Memory, journal: Ints) -> None:
        """Print a journal while the instance works on; waits for the one before."""
        if self._last is not None:
            self._last.result()
        self._last = self._thread.submit(self._print, memory.m, memory.d, journal)

    def flush(self) -> None:
        """Let everything that was added be in the file."""
        if self._last is not None:
            self._last.result()
        if not self._file.closed:
            self._file.flush()

    def close(self) -> None:
        """Wait for the last line."""
        try:
            self.flush()
        finally:
            self._thread.shutdown()

    def _print(self, m: Ints, d: npt.NDArray[np.uint8], journal: Ints) -> None:
        at_, place = 0, np.zeros(1, np.int64)
        while at_ < len(journal):
            size = self._print_journal(m, d, journal, at_, len(journal), self._out, place)
            self._file.write(self._out[:size].data)
            if place[0] == at_:
                self._out = np.zeros(2 * len(self._out), np.uint8)
            at_ = int(place[0])


class ColumnarInstance:
    """An instance that carries out a named workload.

    Args:
        setting: seed, format, tables and so on.
        workload: number of the workload, as `run.work` takes it.
        identity: of the database; the thread is set per log.
        archive: takes the name, the two headers and the data blocks of each log.
        truth: gets the committed changes as lines; None to leave them out.
        start_rows: the rows of each table that the workload starts from.
        prefilled: they are there before the first redo; else the first redo inserts them.
        compiled: compile the kernels, which takes most of a minute the first time; interpreted
            they write about a hundredth as fast.
        first_sequences: log sequence of each thread's first log.
    """

    def __init__(
        self,
        setting: Setting,
        workload: int,
        *,
        identity: LogIdentity,
        archive: LogSink,
        truth: BinaryIO | None,
        start_rows: Sequence[StartRows],
        prefilled: bool,
        compiled: bool,
        first_sequences: Sequence[int],
        name_format: str = "arch%t_%s_%r.dbf",
    ) -> None:
        self.memory = make_memory(setting)
        self.counts = np.zeros(4, np.int64)
        self._setting, self._workload, self._identity = setting, workload, identity
        self._archive, self._name_format = archive, name_format
        self._truth = None if truth is None else TruthFile(truth, compiled=compiled)
        self._logs = list[OpenLog]()
        self._work = work if compiled else work_interpreted
        add_start_rows(self.memory, start_rows, by_redo=not prefilled, compiled=compiled)
        for thread, sequence in enumerate(first_sequences):
            self._logs.append(self._open(thread, sequence))

    def work(self, redo_bytes: int) -> None:
        """Write about so many more bytes of redo."""
        self.memory.m[at.TARGET_BYTES] = self.memory.m[at.REDO_BYTES] + redo_bytes
        self._run(0)

    def end(self) -> None:
        """Commit what is open, archive every thread's log, finish the truth."""
        self._run(COMMIT_ALL)
        for thread in range(self._setting.threads):
            self.close_log(thread)
        self._print_journal()
        if self._truth is not None:
            self._truth.close()

    def switch_logs(self) -> None:
        """Archive what every thread's log holds; an empty log stays."""
        self._run(FLUSH)
        for thread in range(self._setting.threads):
            if self.memory.m[at.T_BLOCK + thread] >= 0:
                self.switch_log(thread)
        self._print_journal()

    def flush_truth(self) -> None:
        """Let every line of what has committed be in the file of the truth."""
        self._print_journal()
        if self._truth is not None:
            self._truth.flush()

    def open_begins(self) -> list[int]:
        """Begin SCNs of the transactions that are open."""
        m = self.memory.m
        sessions = range(int(m[at.SESSIONS]))
        begins = [
            int(m[at.S_BEGIN_SCN + one]) for one in sessions if m[at.S_TRANSACTION + one] >= 0
        ]
        return [scn for scn in begins if scn]

    def set_clock(self, unix_time: float) -> None:
        """Let the database's clock show a time, in seconds since 1970; it never goes back."""
        m = self.memory.m
        m[at.CLOCK] = max(int(m[at.CLOCK]), int(unix_time * 1000))

    def flush(self) -> None:
        """Finish every thread's open LWN."""
        self._run(FLUSH)

    def heartbeat(self, thread: int) -> None:
        """Write a record of no transaction into a thread's log, and flush."""
        self._run(HEARTBEAT + thread)

    def roll_back(self, thread: int) -> None:
        """Roll back what a thread's sessions have open, and flush."""
        self._run(ROLL_BACK + thread)

    def open_log(self, thread: int) -> OpenLog:
        """Return what a thread's log is and how many blocks of finished LWNs it has."""
        m, log = self.memory.m, self._logs[thread]
        open_lwn = int(m[at.T_OPEN + thread])
        log.blocks = int(m[(at.T_LWN_BLOCK if open_lwn else at.T_BLOCK) + thread]) + 1 - open_lwn
        return log

    def log_data(self, thread: int, first: int, end: int) -> memoryview:
        """Return data blocks of a thread's log, by their numbers from 0; what it is goes on."""
        size = self._setting.redo.block_size
        start = int(self.memory.m[at.LOGS_AT] + thread * self.memory.m[at.LOG_STRIDE])
        return self.memory.d[start + first * size : start + end * size].data

    def lose(self, thread: int, size: int) -> bytes:
        """Let the sessions write about `size` bytes of redo that a crash then takes back.

        Returns:
            The finished blocks that were added to the thread's log.
        """
        self.flush()
        self._print_journal()
        own = self.memory
        before, saved = self.open_log(thread).blocks, own.copy()
        own.m[at.TARGET_BYTES] = own.m[at.REDO_BYTES] + size
        for ending in (0, FLUSH):
            self._work(*(own.m, own.d, own.blocks, own.rows, own.cells, self._workload, ending))
        lost = bytes(self.log_data(thread, before, self.open_log(thread).blocks))
        self.memory = saved
        return lost

    def switch_log(self, thread: int) -> None:
        """End a thread's log and begin the next one."""
        sequence = self._logs[thread].sequence
        self.close_log(thread)
        self._logs[thread] = self._open(thread, sequence + 1)

    def open_resetlogs(self, resetlogs: int, activation: int) -> LogIdentity:
        """End every thread's log and begin a new incarnation, with the first log of each thread.

        Args:
            resetlogs: the new resetlogs id.

        Returns:
            What the new incarnation's logs have in common.
        """
        self.flush()
        for thread in range(self._setting.threads):
            self.close_log(thread)
        m = self.memory.m
        m[at.SCN] += 1
        self._identity = replace(
            self._identity,
            resetlogs=resetlogs,
            resetlogs_scn=int(m[at.SCN]),
            activation=activation,
        )
        for thread in range(self._setting.threads):
            self._logs[thread] = self._open(thread, 1)
        return self._identity

    @property
    def is_loading(self) -> bool:
        """Whether the rows that the workload starts from are still being inserted."""
        return bool(self.memory.m[at.LOADING])

    @property
    def redo_time(self) -> int:
        """The host's local time as redo has it."""
        return self.redo_time_at(int(self.memory.m[at.CLOCK]) // 1000)

    def redo_time_at(self, unix_time: int) -> int:
        """Return a time, in seconds since 1970, as the host's local time in redo."""
        zone = timezone(timedelta(seconds=int(self.memory.m[at.ZONE])))
        return encode_redo_time(datetime.fromtimestamp(unix_time, UTC).astimezone(zone))

    def _run(self, ending: int) -> None:
        while True:
            own = self.memory
            status = self._work(
                *(own.m, own.d, own.blocks, own.rows, own.cells, self._workload, ending)
            )
            assert status != at.FAILED
            if status == at.DONE:
                return
            if status == at.LOG_FULL:
                self._switch_full_logs()
            self._print_journal()
            reserve(
                own,
                blocks=2 * STEP_ROWS,
                rows=ROWS_MORE,
                cells=STEP_ROWS * at.COLUMNS_MAX,
                transactions=ROWS_MORE,
            )

    def _count(self, journal: Ints) -> None:
        (count_changes if self._work is work else count_interpreted)(journal, self.counts)

    def _switch_full_logs(self) -> None:
        for thread in range(self._setting.threads):
            if self.memory.m[at.T_FULL + thread]:
                self.switch_log(thread)

    def _open(self, thread: int, sequence: int) -> OpenLog:
        m, own = self.memory.m, self._identity
        m[at.T_SEQUENCE + thread] = sequence
        m[at.T_BLOCK + thread] = -1
        m[at.T_FULL + thread] = m[at.T_LARGEST + thread] = 0
        identity = LogIdentity(
            *(own.dbid, own.name, own.activation, own.resetlogs, own.resetlogs_scn, thread + 1),
            own.online_blocks,
        )
        return OpenLog(self._setting.redo, identity, sequence, int(m[at.SCN]), self.redo_time)

    def close_log(self, thread: int) -> None:
        """Archive a thread's log, all of whose LWNs are finished."""
        m, log = self.memory.m, self._logs[thread]
        m[at.SCN] += 1
        m[at.SCN_DUE] = 0
        log.blocks = int(m[at.T_BLOCK + thread]) + 1
        log.largest_lwn = int(m[at.T_LARGEST + thread])
        headers = log.headers(int(m[at.SCN]), self.redo_time)
        data = self.log_data(thread, 0, log.blocks)
        name = archived_name(self._name_format, log.identity, log.sequence)
        self._archive(name, headers, data)

    def _print_journal(self) -> None:
        m = self.memory.m
        end = int(m[at.JOURNAL_END])
        if not end:
            return
        start = int(m[at.JOURNAL_AT])
        journal = m[start : start + end].copy()
        m[at.JOURNAL_END] = 0
        self._count(journal)
        if self._truth is not None:
            self._truth.add(self.memory, journal)
