"""Digests of chunks of a table. The chunks of both sides are compared by their digests first; rows
are fetched only for chunks that differ.

A chunk contains the rows for which the digest of the key has the same low bits. Without a key, the
digest of the whole row is used. For each chunk the number of rows and the sum of the rows' digests
(modulo 2^64) are kept. The number and the sum do not depend on the order of the rows, and each of
several equal rows is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from olr_pg.errors import OlrPgError
from olr_pg.load.canonical import canonical_type, canonical_values
from olr_pg.load.column_binding import LoadColumn, add_losses, at_row, encode_batch
from olr_pg.load.large_rows import RowSpool
from olr_pg.load.row_images import RowImages, composites, hashes
from olr_pg.oracle.key_cuts import LargeRow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy.typing as npt
    import pyarrow as pa

    from olr_pg.applier.target.catalogue import TargetColumn
    from olr_pg.datatypes.columns import ValueColumn
    from olr_pg.datatypes.policies import Counters

    I64 = npt.NDArray[np.int64]

ROWS_PER_CHUNK = 1_000
CHUNKS_MAX = 1 << 20


def chunk_count(rows: int) -> int:
    """Return the number of chunks for a table with this many rows: a power of two."""
    wanted = max(rows // ROWS_PER_CHUNK, 1)
    return min(1 << (wanted - 1).bit_length(), CHUNKS_MAX)


class ComparedColumns(NamedTuple):
    """The columns in which two tables are compared.

    Attributes:
        columns: the columns in the order of the images.
        key: indexes of the key's columns in `columns`; all columns if there is no key.
        keyed: whether there is a key.
    """

    columns: tuple[TargetColumn, ...]
    key: tuple[int, ...]
    keyed: bool

    @property
    def key_columns(self) -> tuple[TargetColumn, ...]:
        """The key's columns."""
        return tuple(self.columns[place] for place in self.key)


def in_target_order(columns: Sequence[LoadColumn]) -> list[LoadColumn]:
    """Return the columns in the order of the images."""
    return sorted(columns, key=lambda column: column.field)


class ChunkDigests(NamedTuple):
    """The chunks of a table, or of a part of it.

    Attributes:
        rows: shape (chunks).
        digest: shape (chunks), the sums of digests modulo 2^64.
    """

    rows: npt.NDArray[np.int64]
    digest: npt.NDArray[np.uint64]

    @classmethod
    def none(cls, chunks: int) -> ChunkDigests:
        """Return the digests of an empty set of rows."""
        return cls(np.zeros(chunks, np.int64), np.zeros(chunks, np.uint64))

    def add(self, other: ChunkDigests) -> None:
        """Add the digests of another part."""
        np.add(self.rows, other.rows, out=self.rows)
        np.add(self.digest, other.digest, out=self.digest)

    def add_rows(self, chunk: I64, digest: I64) -> None:
        """Add the digests of rows to the chunks of the rows."""
        np.add.at(self.rows, chunk, 1)
        np.add.at(self.digest, chunk, digest.view(np.uint64))

    def add_sums(self, sums: Sequence[tuple[int, int, Any]]) -> None:
        """Add the sums that PostgreSQL has computed: for each chunk (chunk, number of rows, sum of
        digests).
        """
        chunk = np.array([one[0] for one in sums], np.int64)
        digest = np.array([int(one[2]) % (1 << 64) for one in sums], np.uint64)
        np.add.at(self.rows, chunk, np.array([one[1] for one in sums], np.int64))
        np.add.at(self.digest, chunk, digest)

    def differing(self, other: ChunkDigests) -> list[int]:
        """Return the chunks in which two sides differ."""
        differs = (self.rows != other.rows) | (self.digest != other.digest)
        return [int(chunk) for chunk in np.flatnonzero(differs)]


class DigestedBatch(NamedTuple):
    """Digested rows of the source.

    Attributes:
        chunk: the chunk number of each row.
        digest: the digest of each row.
        keys, images: the key and the image of each row, in the canonical form.
    """

    chunk: I64
    digest: I64
    keys: RowImages
    images: RowImages


class SourceDigester:
    """Computes digests of record batches of one table.

    Args:
        losses: receives the counts of values that policies changed, by column.
    """

    def __init__(
        self,
        columns: tuple[LoadColumn, ...],
        compared: ComparedColumns,
        chunks: int,
        losses: dict[str, Counters],
    ) -> None:
        self._columns = tuple(in_target_order(columns))
        self._compared = compared
        self._mask = np.int64(chunks - 1)
        self._types = [canonical_type(column) for column in compared.columns]
        self._losses = losses
        self._spool = RowSpool(self._columns, losses)
        self._first_row = 0

    def digest(self, batch: pa.RecordBatch | LargeRow) -> DigestedBatch:
        """Digest the rows of a batch."""
        if isinstance(batch, LargeRow):
            return self._digest_large(batch)
        encoded = encode_batch(self._columns, batch, self._first_row)
        add_losses(self._losses, self._columns, encoded.losses)
        values = self._canonical(batch, encoded.columns)
        self._first_row += encoded.rows
        images = composites(values, encoded.rows, self._types)
        return self._digested(images, values, encoded.rows)

    def _digest_large(self, row: LargeRow) -> DigestedBatch:
        """Digest one row with large values. If the table has a key, the large values are not part
        of it.
        """
        small = encode_batch(self._columns, row.batch, self._first_row).columns
        values = self._canonical(row.batch, small)
        images = self._spool.composite(row, self._types, self._first_row)
        self._first_row += 1
        return self._digested(images, values, 1)

    def _canonical(
        self, batch: pa.RecordBatch, encoded: Sequence[ValueColumn]
    ) -> list[ValueColumn]:
        canonical: list[ValueColumn] = []
        for column, values in zip(self._columns, encoded, strict=True):
            try:
                canonical.append(canonical_values(values, column.target))
            except OlrPgError as error:
                name = column.encoder.column_name
                raise at_row(error, name, batch, self._first_row) from error
        return canonical

    def _digested(
        self, images: RowImages, values: Sequence[ValueColumn], rows: int
    ) -> DigestedBatch:
        digest = hashes(images)
        keys, key_digest = images, digest
        if self._compared.keyed:
            places = self._compared.key
            keys = composites([values[i] for i in places], rows, [self._types[i] for i in places])
            key_digest = hashes(keys)
        return DigestedBatch(key_digest & self._mask, digest, keys, images)
