"""Writes the local copy of a log that a transport fetches.

Errors of this host's disk name the local file. Otherwise, a full disk would look like an error of
the host with the logs.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.owned import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType


@contextmanager
def writing_copy(path: Path) -> Iterator[None]:
    """Convert a system error of the context into an error that names the local file.

    Raises:
        OlrPgError: 7030, the copy cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise OlrPgError(
            Code.VAULT_UNUSABLE,
            system_reason(error),
            action=f"free disk space in {path.parent}, and check that this user can write there;"
            " the appliance retries until it has the log",
            path=str(path),
        ) from error


class LocalCopy:
    """The file of a log that is being fetched.

    Args:
        path: the file, which can contain the beginning of the log from an interrupted fetch.

    Raises:
        OlrPgError: 7030, also raised by each method: the copy cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with writing_copy(path):
            self._file = open_plain(path, "ab")

    def begin(self, size: int) -> int:
        """Keep the bytes that the file already contains, at most `size`; return their number."""
        with writing_copy(self._path):
            done = min(self._file.tell(), size)
            self._file.truncate(done)
        return done

    def write(self, data: bytes) -> None:
        """Append bytes."""
        with writing_copy(self._path):
            self._file.write(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with writing_copy(self._path):
            self._file.close()
