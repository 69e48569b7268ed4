"""A named workload from its seed to the archived logs: batches, archiving, truth.

The kernels work until a log is full or memory has to grow; here logs are closed and written,
arrays grown, and the journal of committed changes printed, which a second core does.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np

from olr_pg.scalars import encode_redo_time
from olr_pg.simulator.named import instance_memory as at
from olr_pg.simulator.named.named_truth import print_interpreted, print_journal
from olr_pg.simulator.named.session_run import COMMIT_ALL, FLUSH, STEP_ROWS, work, work_interpreted
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
        keeps_online: `online_log` is going to be asked for.
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
        keeps_online: bool = False,
        first_sequences: Sequence[int],
        name_format: str = "arch%t_%s_%r.dbf",
    ) -> None:
        self.memory = make_memory(setting)
        self.counts = np.zeros(4, np.int64)
        self._setting, self._workload, self._identity = setting, workload, identity
        self._archive, self._name_format = archive, name_format
        self._truth = None if truth is None else TruthFile(truth, compiled=compiled)
        self._logs = list[OpenLog]()
        self._keeps_online = keeps_online
        self._before = dict[int, bytes]()
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
                self._switch_log(thread)
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

    def online_log(self, thread: int) -> bytes:
        """Return a thread's log as it is on disk while it is current.

        The header has neither an end nor a next SCN. The blocks of the LWN that is being written
        are not there yet: in their place, and behind them, are those of the log before.
        """
        m, log = self.memory.m, self._logs[thread]
        open_lwn = int(m[at.T_OPEN + thread])
        log.blocks = int(m[(at.T_LWN_BLOCK if open_lwn else at.T_BLOCK) + thread]) + 1 - open_lwn
        size, first = log.redo.block_size, int(m[at.LOGS_AT] + thread * m[at.LOG_STRIDE])
        whole = self.memory.d[first : first + self._setting.pace.log_blocks * size].tobytes()
        torn = log.blocks * size
        before = self._before.get(thread, b"")[torn:].ljust(len(whole) - torn, b"\0")
        return log.online_headers(len(whole) // size) + whole[:torn] + before

    @property
    def redo_time(self) -> int:
        """The host's local time as redo has it."""
        m = self.memory.m
        utc = datetime.fromtimestamp(int(m[at.CLOCK]) // 1000, UTC)
        zone = timezone(timedelta(seconds=int(m[at.ZONE])))
        return encode_redo_time(utc.astimezone(zone))

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
                self._switch_log(thread)

    def _switch_log(self, thread: int) -> None:
        sequence = self._logs[thread].sequence
        self.close_log(thread)
        self._logs[thread] = self._open(thread, sequence + 1)

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
        first = int(m[at.LOGS_AT] + thread * m[at.LOG_STRIDE])
        data = self.memory.d[first : first + log.blocks * log.redo.block_size].data
        name = archived_name(self._name_format, log.identity, log.sequence)
        self._archive(name, headers, data)
        if self._keeps_online:
            self._before[thread] = bytes(data)

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
