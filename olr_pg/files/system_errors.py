"""Converts errors of the operating system to errors with a code.

An input/output error, a limit of open files or threads, or missing memory can end any operation.
Such an error is no defect of olr_pg: the operator must change something on the machine.
"""

from __future__ import annotations

import errno
from typing import Final

from olr_pg.errors import Code, OlrPgError, plain_reason

_CONTINUES: Final = "Then start again: replication continues from its saved position"

_DISK: Final = (
    "look for errors of the disk, or of the network mount, in the log of the system (`dmesg`)."
    " Repair the disk or mount the file system again"
)
_FILES: Final = (
    "raise the limit of open files (`ulimit -n`; `LimitNOFILE=` of systemd; `fs.file-max` of the"
    " machine)"
)
_RIGHTS: Final = (
    "give this user the right to read and write the path. The file system must be mounted writable"
)
_MEMORY: Final = (
    "add memory, or raise the limit of this process (`ulimit -v`, the limit of the container), or"
    " lower `context.memory.max-mb`"
)
_PROCESSES: Final = (
    "raise the limit of processes and threads (`ulimit -u`; `TasksMax=` of systemd; `pids.max` of"
    " the container)"
)

_FREE_SPACE: Final = "free disk space, or raise the quota"
_NO_THREAD: Final = "can't start new thread"

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_RIGHTS_MISSING: Final = (errno.EACCES, errno.EPERM, errno.EROFS)

_ACTIONS: Final = {
    **dict.fromkeys(
        (errno.EIO, errno.ENXIO, errno.ENODEV, errno.ESTALE, errno.EUCLEAN, errno.EREMOTEIO), _DISK
    ),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), _FILES),
    **dict.fromkeys(_RIGHTS_MISSING, _RIGHTS),
    **dict.fromkeys(_FULL, _FREE_SPACE),
    errno.ENOMEM: _MEMORY,
    errno.EAGAIN: _PROCESSES,
    errno.ENOLCK: "use a file system that supports locks, or raise its limit of locks",
    errno.EFBIG: "raise the limit of the size of files (`ulimit -f`)",
}
"""What the operator can do after an error of the system, by its number. Other numbers mean that
olr_pg has made a wrong call, which is a defect.
"""


def advice(error: BaseException) -> str | None:
    """Return the action for an error of the system; None if the action of the error's code fits, as
    for a missing file or missing rights.
    """
    if not isinstance(error, OSError) or error.errno in _RIGHTS_MISSING:
        return None
    return _ACTIONS.get(error.errno or 0)


def advice_unless_full(error: BaseException) -> str | None:
    """Return the result of `advice`, for codes whose action says what to do if a disk is full."""
    is_full = isinstance(error, OSError) and error.errno in _FULL
    return None if is_full else advice(error)


def system_failure(error: BaseException) -> OlrPgError | None:
    """Return the error 1108 if the operating system refused an operation, because of the machine's
    state or a limit; otherwise None.
    """
    action = _action(error)
    if action is None:
        return None
    detail = plain_reason(error) if str(error) else "there is no memory left"
    return OlrPgError(Code.SYSTEM_REFUSED, detail, action=f"{action}. {_CONTINUES}")


def unexpected_failure(error: BaseException) -> OlrPgError:
    """Return the error for an exception that nobody expected: 1108 as `system_failure`, or 9001 for
    a defect of olr_pg.
    """
    return system_failure(error) or OlrPgError(Code.INTERNAL, f"{type(error).__name__}: {error}")


def _action(error: BaseException) -> str | None:
    if isinstance(error, OSError):
        return _ACTIONS.get(error.errno or 0)
    if isinstance(error, MemoryError):
        return _MEMORY
    # Python raises a RuntimeError with this text if the system cannot create a thread.
    return _PROCESSES if isinstance(error, RuntimeError) and _NO_THREAD in str(error) else None
