"""The checkpoint file: the SCN from which a restarted client must start.

What it means
-------------
MinStartSCN is the lowest begin SCN among the transactions that no client has confirmed: those in
the ready queue, transmitted or not, those still open in the decoder, and those not yet decoded
(which begin at or after the position the decoder has reached). StartSCN delivers every transaction
that *began* at or after it, so whoever starts there gets every unconfirmed transaction again — and
some confirmed ones, those that began later than an unconfirmed one; clients skip them by commit SCN
and XID.

What moves it (`port_session.PortSession` decides, here it becomes durable):

- Nothing is written before a client confirms a transaction that was transmitted to it: StartSCN(n)
  alone never writes n, nor anything else.
- A confirmation by a client that started at the saved SCN, or before it, writes the lowest begin
  SCN of what is left. Where it started further back on purpose that may be lower than before: it
  gets again what was confirmed, and says anew what it has. Where nothing was saved, the first
  confirmation makes the beginning: what began before that client's start is of nobody's concern.
- A client that started ahead of the saved SCN has passed over transactions that nobody confirmed.
  Which, nobody knows without reading them, so that nothing that it does moves the saved SCN: it
  stands until somebody starts there (4050 tells so).
- In a quiet time, with everything transmitted confirmed and nothing waiting, the decoder's own
  progress raises it (it never lowers it then). That is for a client that confirmed something since
  its start, that names the same tables as the one whose confirmations are saved, or that is the
  bundled applier: for them nothing is left before that place. Somebody who subscribed to a table
  that does not change has nothing to confirm and leaves the others' transactions where they are.

`confirmed_by` is how the last two know each other again: the bundled applier by its subscription's
name, others by the digest of their TableList query. A bundled applier that finds that others have
confirmed starts from what its target says (`applier.session.conversation`).

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

Beside MinStartSCN the file may name a recovery image: what the open transactions had changed up to
a later place in the redo (`replicator.recovery.bounded_recovery`). A start at exactly MinStartSCN
need not read what lies before that place, since everything that is not confirmed is in the image or
behind it. Both are written together, so they always belong to each other.

The file is JSON with a format name, a version, the source it belongs to and a CRC over these, so
that a damaged or foreign file is refused instead of believed. So is one of a newer version, since
nobody here knows what it promises.
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
        scn: MinStartSCN; None where there is no file yet.
        image: name of the recovery image for a start there; None where there is none.
        confirmed_by: whose confirmations it tells of; None where the file does not say.
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
    """The checkpoint file of one source; safe to use from several threads.

    Args:
        path: of the file; its directory must exist.
        source: what the SCNs belong to, such as DBID and container; compared as it is.

    Attributes:
        failure: why it could not be written the last time; None once it was.

    Raises:
        OlrPgError: 4011 the file is there but cannot be read or is damaged; 4012 it belongs to
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
        """MinStartSCN as the file has it; None where there is no file yet."""
        return self._saved.scn

    @property
    def image(self) -> str | None:
        """The recovery image for a start at `saved`; None where there is none."""
        return self._saved.image

    @property
    def confirmed_by(self) -> str | None:
        """The client whose confirmations `saved` tells of; None where the file does not say."""
        return self._saved.confirmed_by

    def save(self, scn: int, image: str | None = None, confirmed_by: str | None = None) -> bool:
        """Make `scn` durable, with the recovery image that serves a start there.

        Args:
            confirmed_by: what to know again by who confirmed all that began before.

        Returns:
            False where the file has it already and nothing was written.

        Raises:
            OlrPgError: 4013; the old file is still there.
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
    """Read what the file at `path` says, whatever source it belongs to.

    For looking only: a damaged file counts as none.
    """
    try:
        file = _File.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return Saved()
    return Saved(file.min_start_scn, file.recovery_image, file.confirmed_by)


def source_identity(database: Database) -> str:
    """Return what a checkpoint's SCNs belong to."""
    return f"{database.name}/{database.con_id}/{database.dbid or 0}"


def _crc(content: _Content) -> int:
    """Return the checksum of everything but itself."""
    return zlib.crc32(content.model_dump_json(exclude={"crc32"}).encode())
