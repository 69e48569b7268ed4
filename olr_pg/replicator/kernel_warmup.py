"""Compiles the kernels of decoding and of the port before they are needed.

Numba compiles a kernel at its first call, and stores it on disk. Spark forks its workers from one
daemon, so the workers already have the kernels that the daemon has loaded. Numba uses only one
core. So this process compiles the extraction's kernels, while a second process compiles the kernels
of the later steps. Two processes need less time than one. If several processes start at the same
time, the first process compiles; the others wait, and then load the compiled kernels.

The package contains small generated logs (``tools/warmup_log.py`` writes them). Decoding these logs
calls all kernels.
"""

from __future__ import annotations

import fcntl
import gc
import multiprocessing
import tarfile
import tempfile
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import structlog

from olr_pg.capture.logs import discover_logs
from olr_pg.decoding.split import open_for_decoding, plan_splits
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.kernels.cache import index_of, is_on_disk
from olr_pg.kernels.compile import interpreted
from olr_pg.redo import log_extraction as extract
from olr_pg.redo.format.file_fields import FIRST_DATA_BLOCK
from olr_pg.redo.log_end import find_end
from olr_pg.redo.window import Log, blocks_in_use, group_runs
from olr_pg.rendering.json_lines import PackedLines
from olr_pg.rendering.line_plan import write_lines_kernel
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding, decode_logs
from olr_pg.wire.encoder import fill_room
from olr_pg.wire.messages import message_offsets, message_run

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGS: Final = "data/warmup.tar.xz"
RARE_LOGS: Final = ("data/warmup_lobs.tar.xz", "data/warmup_rare.tar.xz")
"""Logs with rare contents: large values, and undo that is divided into parts."""

_log = structlog.get_logger(__name__)

_MESSAGE: Final = bytes((2, 0, 0, 0, 0, 0))
"""The smallest frame: MessageSize and an operation code."""


def is_compiled(*, lines: bool = False) -> bool:
    """Return whether the compiled kernels are on disk.

    Args:
        lines: whether the output is JSON Lines; otherwise it is protocol messages.
    """
    last = write_lines_kernel if lines else fill_room
    return is_on_disk(extract.extract_groups) and is_on_disk(last)


def warm_kernels(*, lines: bool = False) -> None:
    """Decode small generated logs, to compile or load all kernels of decoding.

    Args:
        lines: whether to compile or load the kernels that render JSON Lines, instead of those that
            encode protocol messages.
    """
    with generated_logs() as folder, _one_compiles(lines=lines):
        if is_compiled(lines=lines):
            _decode(folder, lines=lines)
            return
        with uncollected():
            _compile_in_two_processes(folder, lines=lines)


def _compile_in_two_processes(folder: Path, *, lines: bool) -> None:
    """Decode the unpacked logs, while another process compiles the kernels of the steps after the
    extraction.
    """
    # A forked process need not load again what is loaded here. A daemon process ends with this
    # process.
    behind = multiprocessing.get_context("fork").Process(
        target=warm_behind_extraction, args=(folder,), kwargs={"lines": lines}, daemon=True
    )
    behind.start()
    _decode(folder, lines=lines)
    behind.join()
    if behind.exitcode != 0:
        # The call of `_decode` above has compiled the kernels that the other process has not
        # compiled. The traceback of that process is on stderr.
        _log.warning("not all kernels could be compiled in advance", exit_code=behind.exitcode)


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable garbage collection in the block: the compiler creates a million objects, most of
    which stay in use.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _one_compiles(*, lines: bool) -> Iterator[None]:
    """Wait while another process on this host compiles; make others wait while this process
    compiles.
    """
    place = index_of(extract.extract_groups)
    try:
        lock = None if place is None else place.with_name("compiling.lock").open("wb")
    except OSError:  # then kernels cannot be stored there either
        lock = None
    if lock is None:
        yield
        return
    with lock:
        if not is_compiled(lines=lines):
            fcntl.flock(lock, fcntl.LOCK_EX)
        if is_compiled(lines=lines):
            fcntl.flock(lock, fcntl.LOCK_UN)
        yield


def warm_online() -> None:
    """Search for the end of a log as if Oracle were still writing it, to compile the kernel for
    this.
    """
    with generated_logs() as folder:
        log = _first_log(folder)
        find_end(
            log.raw[FIRST_DATA_BLOCK * log.header.block_size :], FIRST_DATA_BLOCK, log.header, 0
        )


@contextmanager
def generated_logs(name: str = _LOGS) -> Iterator[Path]:
    """Yield a temporary directory with logs of the package and their dictionary; `name` is the
    archive.
    """
    with tempfile.TemporaryDirectory(prefix="olr-pg-warm-") as folder:
        unpack_logs(Path(folder), name)
        yield Path(folder)


def unpack_logs(folder: Path, name: str = _LOGS) -> None:
    """Extract logs of the package and their dictionary into `folder`; `name` is the archive."""
    packed = resources.files(__package__).joinpath(name)
    with packed.open("rb") as file, tarfile.open(fileobj=file, mode="r:xz") as archive:
        # The parameter `filter` needs Python 3.11.4, and Debian 12 has an older one. It is safe to
        # omit it, because the archive belongs to this package.
        options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **options)  # noqa: S202 - of our own


def warm_behind_extraction(folder: Path, *, lines: bool = False) -> None:
    """Decode the unpacked logs without compiling the extraction, which stays interpreted in this
    process.

    Args:
        lines: as for `warm_kernels`.
    """
    setattr(extract, extract.extract_groups.__name__, interpreted(extract.extract_groups))
    _decode(folder, lines=lines)


def _first_log(folder: Path) -> Log:
    return open_for_decoding(discover_logs([str(folder / "logs")])[0].path)


def _decode(folder: Path, *, lines: bool = False) -> None:
    log = _first_log(folder)
    for _ in group_runs(log, blocks_in_use(log) // 2):  # call it as for the second split of a log
        pass
    snapshot, logs = load_snapshot(str(folder / "dictionary.json")), [str(folder / "logs")]
    # Decode the logs one by one: if small logs were joined, no transaction would be open at the end
    # of a split.
    if not lines:
        for _ in decode_logs(snapshot, logs, options=DecodingOptions(plan=plan_splits)):
            pass
        return
    decoding, rendered = LogDecoding(snapshot, logs, packed=True), PackedLines(snapshot.database)
    for run in decoding.runs(DecodingOptions(plan=plan_splits)):
        for _ in rendered.pieces(run.blob, decoding.tables):
            pass


def warm_port() -> None:
    """Search for messages in read-only bytes, as the ready queue does, to compile the kernels for
    this.
    """
    blob = np.frombuffer(_MESSAGE * 2, np.uint8)
    message_run(blob, 0, False, 2, blob.size)
    message_offsets(blob.copy(), big_endian=False)
