"""The checkpoint file: the SCN from which a restarted client must start.

What it means
-------------
MinStartSCN is the lowest begin SCN of the transactions that no client has confirmed: the
transactions in the ready queue, those that are open in the decoder, and those that are not decoded
yet. StartSCN delivers every transaction that *began* at or after it. So a client that starts at
MinStartSCN receives all unconfirmed transactions. Such a client also receives some confirmed
transactions again: those that began later than an unconfirmed transaction. The client recognizes
and skips them by commit SCN and XID.

When it changes (`port_session.PortSession` decides; this module makes it durable):

- Nothing is written before a client confirms a transaction that was transmitted to it. StartSCN
  alone never writes anything.
- A client that started at or before the saved SCN confirms: this writes the lowest begin SCN of the
  transactions that are still unconfirmed. If the client started at a lower SCN on purpose, the new
  value can be lower than before: the client receives confirmed transactions again, and confirms
  them again. If nothing was saved before, the first confirmation writes the first value;
  transactions that began before the client's StartSCN are ignored.
- A client that started after the saved SCN has skipped transactions that no client has confirmed.
  So the confirmations of such a client never change the saved SCN; the warning 4050 reports this.
  The saved SCN changes only after a client has started at or before it.
- If everything is confirmed and no transaction is waiting, the decoder's progress raises the saved
  SCN (it never lowers it). The decoder's progress counts for three kinds of clients: a client that
  has confirmed something since its start, a client with the same TableList query as the client
  whose confirmations are saved, and the bundled applier. For other clients, the decoder's progress
  does not count. A client whose table never changes has nothing to confirm, and must not skip the
  transactions that another client still needs.

`confirmed_by` identifies the client whose confirmations are saved: the bundled applier by the name
of its subscription, another client by the digest of its TableList query. If another client has
confirmed, the bundled applier starts at the position in its target instead
(`applier.session.conversation`).

A saved SCN that is too low costs time; one that is too high loses transactions. So a confirmation
is first written durably to the checkpoint. Then the queue drops the confirmed transactions, and
after this the next element is sent. If the process is killed between these steps, the saved SCN is
correct or too low.

Durability and its price
------------------------
A write creates a new file, syncs it, renames it over the old file, and syncs the directory. So
after a power failure either the old file or the new file exists, and it is complete. A write takes
one or a few milliseconds, so unchanged values are not written again. If a client confirms the same
SCN with every request, or the lowest begin SCN stays the same, nothing is written. If a client
confirms once per batch, there is one write per batch.

In addition to MinStartSCN, the file can name a recovery image: the changes of open transactions up
to a later position in the redo (`replicator.recovery.bounded_recovery`). If the client that
confirmed starts at exactly MinStartSCN, the redo before that position need not be read, because
everything unconfirmed is in the image or after that position. MinStartSCN and the image's name are
written together, so they always match.

A restart does not read the dictionary changes before MinStartSCN again. It finds them in the stored
dictionary and in the file of its changes (`dictionary.change_history`). If somebody restores these
files from an older copy, changes are missing. So the file also contains the SCN up to which the
dictionary was followed, and decoding compares it at a start (`replicator.decoder`).

The file is JSON. The file contains a format name, a version, the identity of the source, and a CRC,
so that a damaged file, or the file of another source, is refused. A file with a newer version is
refused too, because its meaning is unknown.
"""

from __future__ import annotations

import threading
import zlib
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from olr_pg.errors import Code, OlrPgError, plain_reason
from olr_pg.files.durable import damage, read_state, replace_file
from olr_pg.files.system_errors import advice_unless_full

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from olr_pg.dictionary.model import Database

FILE_NAME: Final = "checkpoint.json"
"""The name of the file in `context.data`."""

VERSION: Final = 4
"""The version that is written. Version 3, without `dictionary_scn`, is read too."""


class Saved(NamedTuple):
    """The content of the file.

    Attributes:
        scn: MinStartSCN; None if there is no file yet.
        image: the name of the recovery image for a start at `scn`, or None.
        confirmed_by: the client whose confirmations are saved; None if unknown.
        dictionary_scn: all dictionary changes that committed up to this SCN were stored when the
            file was written; None if unknown.
    """

    scn: int | None = None
    image: str | None = None
    confirmed_by: str | None = None
    dictionary_scn: int | None = None


_Scn = Annotated[int, Field(ge=0, lt=1 << 64)]


class _Content(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    format: Literal["olr-pg checkpoint"] = "olr-pg checkpoint"
    version: Literal[3, 4] = VERSION
    source: str
    min_start_scn: _Scn
    recovery_image: str | None = None
    confirmed_by: str | None = None
    dictionary_scn: _Scn | None = None

    def saved(self) -> Saved:
        """Return the content without the facts that identify the file."""
        return Saved(
            self.min_start_scn, self.recovery_image, self.confirmed_by, self.dictionary_scn
        )


class _File(_Content):
    crc32: int


class Checkpoint:
    """The checkpoint file of one source; thread-safe.

    Args:
        path: the path of the file; its directory must exist.
        source: the identity of the source database (`source_identity`), which the file must
            contain.
        dictionary_scn: returns the SCN up to which all dictionary changes are stored; None if
            unknown.

    Attributes:
        failure: the error of the last write; None if it succeeded.

    Raises:
        OlrPgError: 4011 the file exists, but cannot be read or is damaged; 4012 it belongs to
            another source; 4035 it has a newer version.
    """

    def __init__(
        self, path: Path, source: str, dictionary_scn: Callable[[], int | None] = lambda: None
    ) -> None:
        self._path = path
        self._source = source
        self._dictionary_scn = dictionary_scn
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
        """The client whose confirmations are saved; None if unknown."""
        return self._saved.confirmed_by

    @property
    def dictionary_scn(self) -> int | None:
        """The SCN up to which dictionary changes were stored at the last write; None if unknown."""
        return self._saved.dictionary_scn

    def save(self, scn: int, image: str | None = None, confirmed_by: str | None = None) -> bool:
        """Write `scn` durably, with the recovery image for a start at `scn`.

        Args:
            confirmed_by: identifies the client that has confirmed all transactions that began
                before `scn`.

        Returns:
            False if the file already contains these values, so that nothing was written.

        Raises:
            OlrPgError: 4013, the file cannot be written; the old file is kept.
        """
        with self._lock:
            new = Saved(scn, image, confirmed_by, self._dictionary_scn())
            if new == self._saved:
                return False
            content = _Content(
                source=self._source,
                min_start_scn=scn,
                recovery_image=image,
                confirmed_by=confirmed_by,
                dictionary_scn=new.dictionary_scn,
            )
            whole = _File(**content.model_dump(), crc32=_crc(content))
            try:
                replace_file(self._path, whole.model_dump_json(indent=2).encode() + b"\n")
            except OSError as error:
                self.failure = OlrPgError(
                    Code.CHECKPOINT_UNWRITABLE,
                    plain_reason(error),
                    action=advice_unless_full(error),
                    path=str(self._path),
                )
                raise self.failure from error
            self.failure = None
            self._saved = new
            return True

    def _read(self) -> Saved:
        data = read_state(self._path, VERSION, Code.CHECKPOINT_UNUSABLE)
        if data is None:
            return Saved()
        try:
            file = _File.model_validate_json(data)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"])) or None
            raise OlrPgError(
                Code.CHECKPOINT_UNUSABLE, damage(data), path=str(self._path), key=key
            ) from error
        if file.crc32 != _crc(file):
            raise OlrPgError(
                Code.CHECKPOINT_UNUSABLE, "the checksum does not match", path=str(self._path)
            )
        if file.source != self._source:
            raise OlrPgError(
                Code.CHECKPOINT_OF_ANOTHER_SOURCE,
                f"the file belongs to the source {file.source!r}, but this source is"
                f" {self._source!r}",
                path=str(self._path),
            )
        return file.saved()


def read_saved(path: Path) -> Saved:
    """Read the file at `path`, for any source.

    For display only: a damaged file counts as missing.
    """
    try:
        file = _File.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return Saved()
    return file.saved()


def source_identity(database: Database) -> str:
    """Return the identity of a source database for its checkpoint."""
    return f"{database.name}/{database.con_id}/{database.dbid or 0}"


def _crc(content: _Content) -> int:
    """Return the checksum of the content, without the checksum itself."""
    added = {"dictionary_scn"} if content.version < VERSION else set[str]()
    return zlib.crc32(content.model_dump_json(exclude={"crc32", *added}).encode())
