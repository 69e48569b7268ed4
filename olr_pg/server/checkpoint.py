"""The checkpoint file: the SCN from which a restarted client must start.

What it means
-------------
MinStartSCN is the lowest begin SCN of the transactions that no client has confirmed: those in the
ready queue, those still open in the decoder, and those not yet decoded (which begin at or after the
decoder's position). StartSCN delivers every transaction that *began* at or after it. So a client
that starts there receives every unconfirmed transaction again. It also receives some confirmed
ones, which began later than an unconfirmed one; clients skip them by commit SCN and XID.

When it changes (`port_session.PortSession` decides; this module makes it durable):

- Nothing is written before a client confirms a transaction that was transmitted to it: StartSCN(n)
  alone never writes n, nor anything else.
- A confirmation by a client that started at the saved SCN, or before it, writes the lowest begin
  SCN of the remaining transactions. If the client started at a lower SCN on purpose, the new value
  can be lower than before: the client receives confirmed transactions again, and confirms them
  again. If nothing was saved, the first confirmation is the first value; transactions that began
  before that client's start do not matter.
- A client that started after the saved SCN has skipped transactions that no client confirmed. Which
  ones is unknown without reading them. So its confirmations never change the saved SCN, until a
  client starts there (the warning 4050 reports this).
- In a quiet time, when everything transmitted is confirmed and nothing is waiting, the decoder's
  progress raises it (and never lowers it). This applies only to a client that has confirmed
  something since its start, that names the same tables as the client whose confirmations are saved,
  or that is the bundled applier: for them nothing remains before that position. A client that
  subscribes to a table that never changes has nothing to confirm, and does not affect other
  clients' transactions.

`confirmed_by` identifies these clients: the bundled applier by its subscription's name, others by
the digest of their TableList query. If other clients have confirmed, a bundled applier starts from
the position in its target (`applier.session.conversation`).

A value that is too low costs time; one that is too high loses transactions. So a confirmation is
first made durable here. Only then does the queue drop the confirmed transactions, and the next
element is sent after both. A kill between any two steps leaves a value that is right or too low.

Durability and its price
------------------------
A write creates a new file, syncs it, renames it over the old one, and syncs the directory: after a
power failure either the old or the new file exists, complete. This takes one to a few milliseconds,
so an unchanged value is not written again. A client that confirms the same SCN with every request,
or whose progress does not change the lowest begin SCN, has no cost; a client that confirms once per
batch has it once per batch.

In addition to MinStartSCN the file can name a recovery image: the changes of open transactions up
to a later position in the redo (`replicator.recovery.bounded_recovery`). A start at exactly
MinStartSCN, by the client that confirmed, does not need to read redo before that position, because
everything unconfirmed is in the image or after it. Both are written together, so they always match.

The file is JSON with a format name, a version, the source that it belongs to, and a CRC, so that a
damaged file or one of another source is refused. A file of a newer version is refused too, because
its meaning is unknown.
"""

from __future__ import annotations

import threading
import zlib
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import check_version, replace_file

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Database

FILE_NAME: Final = "checkpoint.json"
"""Its name in `context.data`."""

VERSION: Final = 3
"""The version that is written and read."""


class Saved(NamedTuple):
    """The content of the file.

    Attributes:
        scn: MinStartSCN; None if there is no file yet.
        image: name of the recovery image for a start there, or None.
        confirmed_by: the client whose confirmations it contains; None if unknown.
    """

    scn: int | None = None
    image: str | None = None
    confirmed_by: str | None = None


class _Content(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    format: Literal["olr-pg checkpoint"] = "olr-pg checkpoint"
    version: Literal[3] = VERSION
    source: str
    min_start_scn: Annotated[int, Field(ge=0, lt=1 << 64)]
    recovery_image: str | None = None
    confirmed_by: str | None = None


class _File(_Content):
    crc32: int


class Checkpoint:
    """The checkpoint file of one source; thread-safe.

    Args:
        path: of the file; its directory must exist.
        source: identifies the database of the SCNs, such as DBID and container; compared literally.

    Attributes:
        failure: the error of the last write; None if it succeeded.

    Raises:
        OlrPgError: 4011 the file exists but cannot be read or is damaged; 4012 it belongs to
            another source; 4035 it is of a newer version.
    """

    def __init__(self, path: Path, source: str) -> None:
        self._path = path
        self._source = source
        self._lock = threading.Lock()
        self._saved = self._read()
        self.failure: OlrPgError | None = None

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._path

    @property
    def saved(self) -> int | None:
        """MinStartSCN in the file; None if there is no file yet."""
        return self._saved.scn

    @property
    def image(self) -> str | None:
        """The recovery image for a start at `saved`, or None."""
        return self._saved.image

    @property
    def confirmed_by(self) -> str | None:
        """The client whose confirmations `saved` contains; None if unknown."""
        return self._saved.confirmed_by

    def save(self, scn: int, image: str | None = None, confirmed_by: str | None = None) -> bool:
        """Write `scn` durably, with the recovery image for a start there.

        Args:
            confirmed_by: identifies the client that confirmed everything that began before.

        Returns:
            False if the file already contains it, so that nothing was written.

        Raises:
            OlrPgError: 4013 it cannot be written; the old file is kept.
        """
        with self._lock:
            new = Saved(scn, image, confirmed_by)
            if new == self._saved:
                return False
            content = _Content(
                source=self._source,
                min_start_scn=scn,
                recovery_image=image,
                confirmed_by=confirmed_by,
            )
            whole = _File(**content.model_dump(), crc32=_crc(content))
            try:
                replace_file(self._path, whole.model_dump_json(indent=2).encode() + b"\n")
            except OSError as error:
                self.failure = OlrPgError(
                    Code.CHECKPOINT_UNWRITABLE, plain_reason(error), path=str(self._path)
                )
                raise self.failure from error
            self.failure = None
            self._saved = new
            return True

    def _read(self) -> Saved:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return Saved()
        except OSError as error:
            raise OlrPgError(
                Code.CHECKPOINT_UNUSABLE, plain_reason(error), path=str(self._path)
            ) from error
        check_version(data, VERSION, self._path)
        try:
            file = _File.model_validate_json(data)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"])) or None
            raise OlrPgError(
                Code.CHECKPOINT_UNUSABLE, first["msg"], path=str(self._path), key=key
            ) from error
        if file.crc32 != _crc(file):
            raise OlrPgError(
                Code.CHECKPOINT_UNUSABLE, "the checksum does not match", path=str(self._path)
            )
        if file.source != self._source:
            raise OlrPgError(
                Code.CHECKPOINT_OF_ANOTHER_SOURCE,
                f"it is of {file.source!r}, this is {self._source!r}",
                path=str(self._path),
            )
        return Saved(file.min_start_scn, file.recovery_image, file.confirmed_by)


def read_saved(path: Path) -> Saved:
    """Read the file at `path`, for any source.

    For display only: a damaged file counts as missing.
    """
    try:
        file = _File.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return Saved()
    return Saved(file.min_start_scn, file.recovery_image, file.confirmed_by)


def source_identity(database: Database) -> str:
    """Return the identity of a checkpoint's database."""
    return f"{database.name}/{database.con_id}/{database.dbid or 0}"


def _crc(content: _Content) -> int:
    """Return the checksum of all content except itself."""
    return zlib.crc32(content.model_dump_json(exclude={"crc32"}).encode())
