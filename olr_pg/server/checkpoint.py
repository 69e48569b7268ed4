"""The checkpoint file: the SCN from which a restarted client must start.

What it means
-------------
MinStartSCN is the lowest begin SCN among the transactions that no client has confirmed: those in
the ready queue, transmitted or not, those still open in the decoder, and those not yet decoded
(which begin at or after the position the decoder has reached). StartSCN delivers every transaction
that *began* at or after it, so whoever starts there gets every unconfirmed transaction again — and
some confirmed ones, those that began later than an unconfirmed one; clients skip them by commit SCN
and XID. The value may fall when a client starts further back on purpose.

Too low a value costs time, too high a one loses transactions. Hence the order of things: a
confirmation is first made durable here and only then does the queue drop what it confirms, and the
next element leaves after both. A kill between any two steps leaves a file that is right or too low.

Durability and its price
------------------------
A write is a new file beside the old one, its fsync, a rename over the old one and the fsync of the
directory: after a power failure there is the old file or the new one, whole. That costs one to a
few milliseconds, so a value that has not changed is not written again: a client that confirms the
same SCN with every request, or one whose progress does not move the lowest begin SCN, pays nothing,
and a client that confirms per batch pays once per batch.

The file is JSON with a format name, a version, the source it belongs to and a CRC over these, so
that a damaged or foreign file is refused instead of believed. Files of older versions are read;
one of a newer version is refused, since nobody here knows what it promises.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME: Final = "checkpoint.json"
"""Its name in `context.data`."""

VERSION: Final = 1
"""The version that is written, and the newest that is read."""


class _Content(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    format: Literal["olr-pg checkpoint"] = "olr-pg checkpoint"
    version: Literal[1] = VERSION
    source: str
    min_start_scn: Annotated[int, Field(ge=0, lt=1 << 64)]


class _File(_Content):
    crc32: int


class Checkpoint:
    """The checkpoint file of one source; safe to use from several threads.

    Args:
        path: of the file; its directory must exist.
        source: what the SCNs belong to, such as DBID and container; compared as it is.

    Raises:
        OlrPgError: 4011 the file is there but cannot be read or is damaged; 4012 it belongs to
            another source; 4035 it is of a newer version.
    """

    def __init__(self, path: Path, source: str) -> None:
        self._path = path
        self._source = source
        self._lock = threading.Lock()
        self._saved = self._read()

    @property
    def saved(self) -> int | None:
        """MinStartSCN as the file has it; None where there is no file yet."""
        return self._saved

    def save(self, scn: int) -> bool:
        """Make `scn` durable.

        Returns:
            False where the file has it already and nothing was written.

        Raises:
            OlrPgError: 4013; the old file is still there.
        """
        with self._lock:
            if scn == self._saved:
                return False
            content = _Content(source=self._source, min_start_scn=scn)
            whole = _File(**content.model_dump(), crc32=_crc(content))
            try:
                _replace(self._path, whole.model_dump_json(indent=2).encode() + b"\n")
            except OSError as error:
                raise OlrPgError(4013, str(error), path=str(self._path)) from error
            self._saved = scn
            return True

    def _read(self) -> int | None:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OlrPgError(4011, str(error), path=str(self._path)) from error
        version = _version(data)
        if version is not None and version > VERSION:
            raise OlrPgError(
                4035, f"version {version}, {VERSION} is the newest known", path=str(self._path)
            )
        try:
            file = _File.model_validate_json(data)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"])) or None
            raise OlrPgError(4011, first["msg"], path=str(self._path), key=key) from error
        content = _Content(source=file.source, min_start_scn=file.min_start_scn)
        if file.crc32 != _crc(content):
            raise OlrPgError(4011, "the checksum does not match", path=str(self._path))
        if file.source != self._source:
            raise OlrPgError(
                4012, f"it is of {file.source!r}, this is {self._source!r}", path=str(self._path)
            )
        return file.min_start_scn


def read_saved_scn(path: Path) -> int | None:
    """MinStartSCN in the file at `path`, whatever source it belongs to; None where there is none.

    For looking only: a damaged file counts as none.
    """
    try:
        return _File.model_validate_json(path.read_bytes()).min_start_scn
    except (OSError, ValidationError):
        return None


def _version(data: bytes) -> int | None:
    """The version that a file claims; None where it is no such file."""
    try:
        document = json.loads(data)
    except ValueError:
        return None
    version = document.get("version") if isinstance(document, dict) else None
    return version if isinstance(version, int) else None


def _crc(content: _Content) -> int:
    return zlib.crc32(content.model_dump_json().encode())


def _replace(path: Path, data: bytes) -> None:
    """Put `data` in the place of `path`, durably: the old file or the new one, never a part."""
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
