"""Records, durably, which redo threads a source has.

A transaction can be delivered when every redo thread was read past its commit SCN. The decoder
cannot wait for a thread that it does not know. If an unknown thread appears later with redo that is
older than the delivered transactions, its own transactions come too late. Transactions that come
too late must cause an error. Only the record of known threads shows that they are late.

The error must not disappear at the next start. The checkpoint and the ledger have passed a late
transaction, so a restart would skip it without a message. So the record also contains the late
transaction of each target. Nothing is decoded for such a target until an operator has corrected the
target and has removed the file.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Final

import orjson

from olr_pg.errors import Code, OlrPgError, format_place
from olr_pg.files.durable import damaged, read_state, write_state

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FILE_NAME: Final = "threads.json"
"""Name of the file in `context.data`."""

VERSION: Final = 1
"""The version of the file's format that we write; a file without a version has version 1."""

_IF_DAMAGED: Final = (
    "restore the file from a backup. Or delete the file, and make sure that the logs of all redo"
    " threads are available when you start. If the last run ended with OLR-02014, follow the"
    " advice of that error, because a start without the file skips the late transaction"
)


class KnownThreads:
    """The redo threads read so far; several runs can add threads at the same time.

    Args:
        path: path of the file, in an existing directory; None to keep the threads only in memory.

    Attributes:
        known: the threads.

    Raises:
        OlrPgError: 1092 the file cannot be read, 4036 it is damaged, 4035 a newer version of olr_pg
            wrote it.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._changing = threading.Lock()
        self.known: frozenset[int] = frozenset()
        self._late: dict[str, str] = {}
        if path is not None:
            self._read(path)

    def _read(self, path: Path) -> None:
        data = read_state(path, VERSION)
        if data is None:
            return
        try:
            document = orjson.loads(data)
            self.known = frozenset(map(int, document["threads"]))
            self._late = {str(k): str(v) for k, v in document.get("late", {}).items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise damaged(path, data, _IF_DAMAGED) from error

    def add(self, threads: Iterable[int]) -> None:
        """Record that the given threads are read from now on.

        Raises:
            OlrPgError: 1092, the file cannot be written.
        """
        with self._changing:
            known = self.known.union(threads)
            if known != self.known:
                self._keep(known, self._late)

    def forget(self) -> None:
        """Forget all threads, because the source is read again from its oldest log."""
        with self._changing:
            if self.known:
                self._keep(frozenset(), self._late)

    def note_late(self, targets: Iterable[str], error: OlrPgError) -> None:
        """Record that the given targets lack a transaction that was read too late.

        Args:
            error: error 2014, with the transaction.

        Raises:
            OlrPgError: 1092, the file cannot be written.
        """
        found = f"{error.detail} [{format_place(error.where)}]"
        with self._changing:
            self._keep(self.known, {**dict.fromkeys(targets, found), **self._late})

    def check_late(self, target: str) -> None:
        """Check that no earlier run has read a transaction of a target too late.

        Raises:
            OlrPgError: 2014, one has.
        """
        found = self._late.get(target)
        if found is not None:
            raise OlrPgError(
                Code.REDO_TOO_LATE,
                f"an earlier run has ended with this error, and the target lacks changes: {found}",
                path=None if self._path is None else str(self._path),
            )

    def _keep(self, known: frozenset[int], late: dict[str, str]) -> None:
        if self._path is not None:
            document: dict[str, object] = {"version": VERSION, "threads": sorted(known)}
            if late:
                document["late"] = late
            write_state(self._path, json.dumps(document).encode())
        # Set the attribute only after the file is written, so that a retry writes the file again.
        self.known, self._late = known, late
