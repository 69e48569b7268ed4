"""The files of bounded recovery. The files contain the changes of open transactions up to a
position in the redo.

An *image* contains all transactions that were open at a position of a run: for each redo thread,
the end of the last log that was read. An image is a manifest, ``image-*.json``, that refers to
parts of data files, ``image-*.redo``. Each part is one batch of events from the assembler
(`redo.batch`), with its four arrays one after the other. Each image writes one new data file, with
only the events that no earlier image has written. So a transaction that is open for days is not
written again with each image. When most bytes of the data files are not needed any more, all needed
parts are written to a new file.

A manifest contains its version, the layout of the arrays, and a CRC of itself and of each part.
First the data file is synced, then the manifest is synced and renamed to its final name. So an
existing manifest is complete. If a manifest was damaged later, the CRC shows this, and the image is
refused.
"""

from __future__ import annotations

import secrets
import zlib
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from olr_pg.errors import Code, OlrPgError, system_reason
from olr_pg.files.durable import (
    check_version,
    damage,
    removed_on_failure,
    replace_file,
    sync_directory,
)
from olr_pg.files.sealed import SealedReader, is_sealed, row_file
from olr_pg.files.system_errors import advice
from olr_pg.redo.batch import ENTRY, EVENT, PIECE, ChangeBatch, columns_of
from olr_pg.transactions.waiting_storage import Allocate, Kept, batch_cells, kept_bytes, opened

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from io import BufferedReader
    from pathlib import Path

    import numpy.typing as npt

    U8 = npt.NDArray[np.uint8]

VERSION: Final = 3
"""The version that is written and read."""

LAYOUT: Final = zlib.crc32(repr([dtype.descr for dtype in (EVENT, PIECE, ENTRY)]).encode())
"""A checksum of the arrays' layout. Data files of a release with another layout cannot be read."""

_PREFIX: Final = "image-"
_COMPACT_SHARE: Final = 2
"""All parts are written to a new file if the existing files are more than this many times as large
as the needed parts.
"""

_U64 = Annotated[int, Field(ge=0, lt=1 << 64)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Part(_Model):
    """A batch of events in a data file: its offset, and the lengths of its four arrays."""

    file: str
    offset: int
    events: int
    pieces: int
    entries: int
    data: int
    crc32: int

    @property
    def size(self) -> int:
        """The number of bytes in the file."""
        lengths = (self.events, self.pieces, self.entries, self.data)
        widths = (EVENT.itemsize, PIECE.itemsize, ENTRY.itemsize, 1)
        return sum(length * width for length, width in zip(lengths, widths, strict=True))


class Mark(_Model):
    """The position up to which a redo thread was read: the last log that was read to its end, and
    the SCN at which reading continues.
    """

    thread: int
    resetlogs_id: int
    sequence: int
    dbid: int
    scn: _U64


class Opened(_Model):
    """An open transaction in a recovery image; its parts are in redo order."""

    con_id: int
    xid: _U64
    begin_scn: _U64 | None
    parts: list[Part]


class SessionEntry(_Model):
    """The Oracle session of an open transaction (`redo.sessions`)."""

    thread: int
    session: int
    serial: int
    attributes: list[str]


class Image(_Model):
    """A manifest.

    Attributes:
        source: identifies the database of the SCNs.
        marks: the mark of each redo thread that was read.
        watermarks: (redo thread, SCN) of the merger's threads.
        commit_scn: all transactions that committed before the image have a commit SCN up to this.
        tables: the identity of each table of the row plan, in the plan's order. Events contain
            table numbers, which refer to this order.
        transactions: the open transactions.
        unowned: the parts with LOB pages whose transaction is not known yet.
        whole_scn: transactions that began before this SCN are incomplete in the image.
        objects: the object keys of its delivered tables, in the order of the row plan.
        begun: (redo thread, block) for each thread whose log after the mark was partly read, up to
            this block.
    """

    format: Literal["olr-pg recovery image"] = "olr-pg recovery image"
    version: Literal[3] = VERSION
    layout: int = LAYOUT
    source: str
    marks: list[Mark]
    watermarks: list[tuple[int, _U64]]
    commit_scn: _U64
    tables: list[str]
    sessions: list[SessionEntry]
    transactions: list[Opened]
    unowned: list[Part]
    whole_scn: _U64 = 0
    objects: list[int] = []
    begun: list[tuple[int, int]] = []

    @property
    def parts(self) -> Iterator[Part]:
        """All parts of the transactions, then the parts without a transaction."""
        for transaction in self.transactions:
            yield from transaction.parts
        yield from self.unowned

    @property
    def read_scn(self) -> int:
        """The SCN from which on redo must be read after the image was loaded."""
        return min(mark.scn for mark in self.marks)

    @property
    def settled_scn(self) -> int:
        """The SCN from which on the redo of all threads is after the image."""
        return max(mark.scn for mark in self.marks)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    image: Image
    crc32: int


class _Written(NamedTuple):
    """A batch that is in a file. The reference to the batch ensures that no other object gets its
    `id`.
    """

    batch: Kept
    part: Part


class PartWriter:
    """Writes the batches of an image that are not in a file yet.

    Args:
        directory: the directory of the files; created when first needed.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._written: dict[int, _Written] = {}

    def forget(self) -> None:
        """Forget all written batches, so that the next image writes all of its batches."""
        self._written = {}

    def forget_others(self, files: Collection[str]) -> None:
        """Forget the batches in all data files except `files`, because the other files were
        deleted.
        """
        self._written = {
            key: written for key, written in self._written.items() if written.part.file in files
        }

    def new_bytes(self, batches: Iterable[Kept]) -> int:
        """Return how many bytes `write` would write for these batches."""
        return sum(kept_bytes(batch) for batch in batches if id(batch) not in self._written)

    def is_mostly_waste(self, batches: Sequence[Kept]) -> bool:
        """Return whether most bytes in the files of these batches belong to other batches."""
        parts = [
            found.part for batch in batches if (found := self._written.get(id(batch))) is not None
        ]
        needed = sum(part.size for part in parts)
        files = {part.file for part in parts}
        there = sum((self._directory / name).stat().st_size for name in files)
        return there > _COMPACT_SHARE * needed

    def write(self, name: str, batches: Sequence[Kept]) -> list[Part]:
        """Write batches durably.

        Args:
            name: the name of the new data file; it is created only if a batch must be written.

        Returns:
            The part of each batch. Batches that are not in `batches` are forgotten.

        Raises:
            OSError: the file cannot be written.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        kept: dict[int, _Written] = {}
        fresh = [one for one in batches if id(one) not in self._written]
        if fresh:
            with (
                removed_on_failure(self._directory / name) as path,
                row_file(path, durable=True) as file,
            ):
                for one in fresh:
                    crc, batch = 0, opened(one)
                    offset = file.tell()
                    for cell in batch_cells(batch):
                        file.write(cell.data)
                        crc = zlib.crc32(cell.data, crc)
                    kept[id(one)] = _Written(one, _part(name, offset, batch, crc))
            sync_directory(self._directory)
        for one in batches:
            if id(one) in self._written:
                kept[id(one)] = self._written[id(one)]
        self._written = kept
        return [kept[id(one)].part for one in batches]

    def loaded(self, batch: ChangeBatch, part: Part) -> None:
        """Record that a batch was read from a file."""
        self._written[id(batch)] = _Written(batch, part)


def write_image(path: Path, image: Image) -> None:
    """Write a manifest durably. The parts that the manifest names must already be durable.

    Raises:
        OSError: the file cannot be written.
    """
    file = _File(image=image, crc32=_crc(image))
    replace_file(path, file.model_dump_json().encode() + b"\n")


def read_image(path: Path, source: str) -> Image:
    """Read the manifest at `path`.

    Raises:
        OlrPgError: 2071 the manifest is missing or damaged, or belongs to another release or
            source; 4035 it has a newer version.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(error, path) from error
    check_version(data, VERSION, path, within="image")
    try:
        file = _File.model_validate_json(data)
    except ValidationError as error:
        raise OlrPgError(Code.RECOVERY_IMAGE_UNUSABLE, damage(data), path=str(path)) from error
    image = file.image
    if file.crc32 != _crc(image):
        raise OlrPgError(
            Code.RECOVERY_IMAGE_UNUSABLE, "the checksum does not match", path=str(path)
        )
    if image.layout != LAYOUT:
        raise OlrPgError(
            Code.RECOVERY_IMAGE_UNUSABLE, "another release wrote the image", path=str(path)
        )
    if image.source != source:
        raise OlrPgError(
            Code.RECOVERY_IMAGE_UNUSABLE,
            f"the image belongs to the source {image.source!r}, not to {source!r}",
            path=str(path),
        )
    if not image.marks:
        raise OlrPgError(Code.RECOVERY_IMAGE_UNUSABLE, "the image names no log", path=str(path))
    return image


def read_part(directory: Path, part: Part, allocate: Allocate) -> ChangeBatch:
    """Read a batch from its data file.

    Args:
        allocate: returns a buffer for the data of the batch.

    Raises:
        OlrPgError: 2071, the file is missing or damaged.
    """
    path = directory / part.file
    batch = ChangeBatch(
        columns_of(EVENT, part.events),
        columns_of(PIECE, part.pieces),
        columns_of(ENTRY, part.entries),
        allocate(part.data),
    )
    try:
        if is_sealed(path):
            with SealedReader(path) as sealed:
                crc = _fill_of_sealed(sealed, part.offset, batch)
        else:
            with path.open("rb") as file:
                file.seek(part.offset)
                crc = _fill(file, batch)
    except (OSError, ValueError) as error:
        raise _unreadable(error, path) from error
    if crc != part.crc32:
        raise OlrPgError(
            Code.RECOVERY_IMAGE_UNUSABLE,
            "the checksum does not match",
            path=str(path),
            position=part.offset,
        )
    return batch


def _unreadable(error: Exception, path: Path) -> OlrPgError:
    """Return the error of an image that cannot be read. Its action is the catalogue's, unless the
    image can be used when the operator has changed something on the machine.
    """
    advised = advice(error)
    action = None if advised is None else f"{advised}. Then start again: the image can be used"
    code = Code.RECOVERY_IMAGE_UNUSABLE
    return OlrPgError(code, system_reason(error), action=action, path=str(path))


def new_stem(directory: Path) -> str:
    """Return the prefix of the file names of the next image.

    A prefix must never be used again, because a checkpoint can name a deleted image. So a prefix
    contains a random part, and a number that shows users the order of the images.
    """
    stems = [path.stem.removeprefix(_PREFIX) for path in directory.glob(f"{_PREFIX}*")]
    numbers = [int(part) for part in (stem.partition("-")[0] for stem in stems) if part.isdecimal()]
    return f"{_PREFIX}{max(numbers, default=0) + 1}-{secrets.token_hex(8)}"


def image_name(stem: str) -> str:
    """Return the file name of an image's manifest."""
    return f"{stem}.json"


def data_name(stem: str) -> str:
    """Return the file name of an image's data file."""
    return f"{stem}.redo"


def files_bytes(directory: Path) -> int:
    """Return the total size in bytes of the image files in a directory; 0 if the directory does not
    exist.
    """
    return sum(path.stat().st_size for path in directory.glob(f"{_PREFIX}*"))


def remove_others(directory: Path, needed: Iterable[str]) -> None:
    """Delete all image files in a directory, except `needed`.

    Raises:
        OSError: a file cannot be deleted.
    """
    keep = set(needed)
    for path in directory.glob(f"{_PREFIX}*"):
        if path.name not in keep:
            path.unlink()


def _fill(file: BufferedReader, batch: ChangeBatch) -> int:
    crc = 0
    for cell in batch_cells(batch):
        if file.readinto(cell.data) != cell.size:
            raise ValueError("the file is too short")
        crc = zlib.crc32(cell.data, crc)
    return crc


def _fill_of_sealed(file: SealedReader, offset: int, batch: ChangeBatch) -> int:
    crc = 0
    for cell in batch_cells(batch):
        file.read_into(cell.data, offset)
        offset += cell.size
        crc = zlib.crc32(cell.data, crc)
    return crc


def _part(name: str, offset: int, batch: ChangeBatch, crc: int) -> Part:
    events, pieces, entries, data = (int(array.size) for array in batch)
    return Part(
        file=name, offset=offset, events=events, pieces=pieces, entries=entries, data=data,
        crc32=crc,
    )  # fmt: skip


def _crc(image: Image) -> int:
    return zlib.crc32(image.model_dump_json().encode())
