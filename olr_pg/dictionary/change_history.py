"""Stores the dictionary changes on disk, because a restart does not read their redo again.

The dictionary snapshot is as of one SCN, but a restart reads redo from a later SCN on. So every
committed transaction that changed the dictionary is stored in a file of JSON lines. The first line
contains the database and the snapshot's SCN; each other line is a `DictionaryTransaction`. A line
becomes durable before any later commit is released.
"""

from __future__ import annotations

import errno
import os
import threading
from bisect import insort
from typing import IO, TYPE_CHECKING, Any, Final

import orjson
import structlog

from olr_pg.dictionary.committed_changes import (
    DictionaryTransaction,
    Statement,
    SysRowChange,
    SysRowOperation,
)
from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import sync_directory
from olr_pg.files.owned import check_plain, open_plain
from olr_pg.files.system_errors import advice

if TYPE_CHECKING:
    from pathlib import Path

_log = structlog.get_logger(__name__)

VERSION: Final = 1
FORMAT_NAME: Final = "olr-pg-dictionary-changes/"
FORMAT: Final = f"{FORMAT_NAME}{VERSION}"
FILE_NAME: Final = "dictionary-changes.jsonl"

_KEEP_IT: Final = (
    "free disk space in `context.data`, and check that this user can write there. Then"
    " start again: nothing is lost. Do not remove the file"
)


class DictionaryHistory:
    """The file with the dictionary changes of one source; thread-safe.

    Args:
        path: the path of the file; its directory must exist.
        database: identifies the database; the file of another database is refused.
        snapshot_scn: the SCN of the dictionary snapshot; older changes are not needed. If the file
            begins at a later SCN, the changes between both SCNs are missing, so the next change
            begins a new file.

    Raises:
        OlrPgError: 3075, the file cannot be read, or belongs to another database; 4035, it has a
            newer version.
    """

    def __init__(self, path: Path, database: str, snapshot_scn: int) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._known: set[tuple[int, tuple[int, int, int, int]]] = set()
        self._database, self._snapshot_scn = database, snapshot_scn
        self._first_scn, self._begins_later = snapshot_scn, False
        self.transactions: list[DictionaryTransaction] = []
        if path.exists():
            self._load()
        else:
            self._begin()

    @property
    def scn(self) -> int:
        """The commit SCN of the last stored change, or the SCN of the snapshot with which the file
        begins.
        """
        with self._lock:
            last = self.transactions[-1].commit_scn if self.transactions else 0
            return max(self._first_scn, last)

    def add(self, transaction: DictionaryTransaction) -> None:
        """Write a transaction durably, unless it is already stored.

        Raises:
            OlrPgError: 3075, the file cannot be written.
        """
        with self._lock:
            if transaction.order in self._known:
                return
            if self._begins_later:
                self._truncate(0)
                self._begin()
                self._begins_later = False
            self._append(_as_json(transaction))
            self._known.add(transaction.order)
            insort(self.transactions, transaction, key=lambda one: one.order)

    def _begin(self) -> None:
        head = {"database": self._database, "snapshot_scn": self._snapshot_scn}
        self._append({"format": FORMAT, **head})

    def _append(self, document: dict[str, Any]) -> None:
        line = orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
        try:
            with open_plain(self._path, "ab", 0) as file:
                size = file.tell()
                try:
                    _write_all(file, line)
                    os.fsync(file.fileno())
                    if not size:
                        sync_directory(self._path.parent)
                except OSError:
                    # Remove the partial line, so that the next line is not joined to it.
                    file.truncate(size)
                    raise
        except OSError as error:
            raise OlrPgError(
                Code.DICTIONARY_HISTORY_UNUSABLE,
                plain_reason(error),
                action=_KEEP_IT,
                file=str(self._path),
            ) from error

    def _load(self) -> None:
        try:
            lines = self._durable_bytes().splitlines(keepends=True)
            if lines and not lines[-1].endswith(b"\n"):
                # The line is incomplete after a crash. Drop it: no later commit was delivered, so
                # its redo is read again.
                lines.pop()
                self._truncate(sum(map(len, lines)))
            if not lines:
                self._begin()
                return
            head, *rest = map(orjson.loads, lines)
            self._check_head(head)
            if head["snapshot_scn"] > self._snapshot_scn:
                _log.warning(
                    "the recorded dictionary changes begin later than the snapshot: reading them"
                    " from redo again",
                    snapshot_scn=self._snapshot_scn,
                    recorded_from=head["snapshot_scn"],
                )
                # Keep the file for now: an operator may restore the snapshot that belongs to it.
                self._begins_later = True
                return
            found = [_from_json(document) for document in rest]
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise OlrPgError(
                Code.DICTIONARY_HISTORY_UNUSABLE, "a line is damaged", file=str(self._path)
            ) from error
        except (OSError, ValueError) as error:
            raise OlrPgError(
                Code.DICTIONARY_HISTORY_UNUSABLE,
                plain_reason(error),
                action=advice(error),
                file=str(self._path),
            ) from error
        self._first_scn = head["snapshot_scn"]
        # A transaction can be recorded late (`ContainerFollower.late`).
        found.sort(key=lambda one: one.order)
        self.transactions = [t for t in found if t.commit_scn > self._snapshot_scn]
        self._known = {t.order for t in found}

    def _durable_bytes(self) -> bytes:
        """Return the content of the file, after syncing it.

        A run that was killed may have written lines that are not on disk yet. They count as stored
        from now on, so a power failure must not remove them.
        """
        check_plain(self._path)
        with open_plain(self._path, "rb") as file:
            os.fsync(file.fileno())
            data = file.read()
            if len(data) < os.fstat(file.fileno()).st_size:
                raise OSError(errno.EIO, "only a part of the file can be read", str(self._path))
        sync_directory(self._path.parent)
        return data

    def _check_head(self, head: dict[str, Any]) -> None:
        if head["format"] != FORMAT:
            version = str(head["format"]).removeprefix(FORMAT_NAME)
            if version.isdecimal() and int(version) > VERSION:
                raise OlrPgError(
                    Code.FILE_OF_NEWER_VERSION,
                    f"the file has version {version}; this release reads versions up to {VERSION}",
                    path=str(self._path),
                )
            raise ValueError(f"the file has the format {head['format']!r}")
        if head["database"] != self._database:
            raise ValueError(
                f"the file belongs to the database {head['database']!r}, not to {self._database!r}"
            )

    def _truncate(self, size: int) -> None:
        with open_plain(self._path, "r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())


def _write_all(file: IO[bytes], data: bytes) -> None:
    """Write all bytes. If the disk becomes full, one write is partial, and the next one raises the
    error.
    """
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _as_json(transaction: DictionaryTransaction) -> dict[str, Any]:
    return {
        **transaction._asdict(),
        "changes": [
            {
                **change._asdict(),
                "operation": int(change.operation),
                "values": {
                    name: None if value is None else value.hex()
                    for name, value in change.values.items()
                },
            }
            for change in transaction.changes
        ],
        "statements": [statement._asdict() for statement in transaction.statements],
    }


def _from_json(document: dict[str, Any]) -> DictionaryTransaction:
    changes = tuple(
        SysRowChange(
            change["table"],
            SysRowOperation(change["operation"]),
            change["row_id"],
            {
                name: None if value is None else bytes.fromhex(value)
                for name, value in change["values"].items()
            },
        )
        for change in document["changes"]
    )
    thread, sequence, block, offset = document["position"]
    return DictionaryTransaction(
        **{
            **document,
            "position": (thread, sequence, block, offset),
            "changes": changes,
            "statements": tuple(Statement(**values) for values in document["statements"]),
        }
    )
