"""How the two sides of a table are compared: by digests of chunks, in ranges of the key.

**Chunks.** The chunks of both sides are compared by their digests first; rows are fetched only for
chunks that differ. A chunk contains the rows for which the digest of the key has the same low bits.
Without a key, the digest of the whole row is used. For each chunk the number of rows and the sum of
the rows' digests (modulo 2^64) are kept. The number and the sum do not depend on the order of the
rows, and each of several equal rows is counted.

**Ranges.** Oracle and PostgreSQL read the same rows for a range of a table's key. The target
determines where a range ends: the end is the key of the n-th row after the previous range, found by
the target's index. A bound is a value of the key in the canonical form, and both sides compare
their rows with the same bounds. So each row of either side is in exactly one range, even if that
side has no row with the bound's key.

The source and the target must order keys in the same way. Otherwise a row could be in one range in
Oracle and in another range in PostgreSQL. The order is the same for these types:

- NUMBER as an integer or numeric, RAW as bytea or uuid, DATE, and TIMESTAMP with a precision of at
  most 6 (microseconds). A higher precision is rounded in PostgreSQL.
- VARCHAR2 and CHAR of a character set whose bytes are in the order of Unicode. Oracle's sessions
  compare bytes (NLS_COMP=BINARY); PostgreSQL does so with COLLATE "C". Oracle pads CHAR with blanks
  to its length before it compares; PostgreSQL ignores the blanks at the end of bpchar, and text
  contains none. So a key of CHAR with a character below the blank is never the end of a range.

Tables without a key, with a key of other types, or with a nullable key column are compared as a
whole. For a range of text, PostgreSQL can use the index on the key only if the column has the
collation "C".
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from psycopg import Connection, sql

from olr_pg.applier.statements.bound_statement import escape_percent_signs
from olr_pg.config.port_sections import FallbackPolicies
from olr_pg.datatypes.charsets import column_charset
from olr_pg.datatypes.mapping import OracleType, PgKind
from olr_pg.dictionary.true_charsets import RAW_MAX, is_explicit
from olr_pg.errors import OlrPgError
from olr_pg.fallback.oracle_values import ValueSettings, oracle_column
from olr_pg.load.canonical import (
    canonical_type,
    canonical_values,
    fields_of,
    image_expression,
    placeholder,
)
from olr_pg.load.column_binding import LoadColumn, add_losses, at_row, encode_batch
from olr_pg.load.large_rows import RowSpool
from olr_pg.load.row_images import RowImages, composites, hashes
from olr_pg.oracle.key_cuts import TEXT_OF_BYTES, KeyBound, KeyCut, KeyValue, LargeRow, key_cuts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.statements.target_plan import TablePlan
    from olr_pg.applier.target.catalogue import TargetColumn, TargetTable
    from olr_pg.datatypes.columns import ValueColumn
    from olr_pg.datatypes.policies import Counters
    from olr_pg.dictionary.model import Column, Table

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


_INTEGERS: Final = (PgKind.INT2, PgKind.INT4, PgKind.INT8)
_TEXTS: Final = (PgKind.TEXT, PgKind.VARCHAR, PgKind.BPCHAR)
_ORDERED_ALIKE: Final[dict[OracleType, tuple[PgKind, ...]]] = {
    OracleType.NUMBER: (*_INTEGERS, PgKind.NUMERIC),
    OracleType.VARCHAR2: (PgKind.TEXT, PgKind.VARCHAR),
    OracleType.CHAR: _TEXTS,
    OracleType.RAW: (PgKind.BYTEA, PgKind.UUID),
    OracleType.DATE: (PgKind.TIMESTAMP,),
    OracleType.TIMESTAMP: (PgKind.TIMESTAMP,),
}
_IN_ORDER_OF_UNICODE: Final = frozenset({"US7ASCII", "AL32UTF8", "WE8ISO8859P1"})
_MICROSECONDS: Final = 6
_NATIONAL: Final = 2
_BLANK: Final = ord(" ")
_FORMATS: Final = {
    OracleType.DATE: "TO_DATE({}, 'SYYYY-MM-DD HH24:MI:SS')",
    OracleType.TIMESTAMP: "TO_TIMESTAMP({}, 'SYYYY-MM-DD HH24:MI:SS.FF6')",
}
_NOT_IN_ORACLE_MAX: Final = 20
"""Number of consecutive target rows that are tried as the end of a range. A row is skipped if its
key cannot be stored in Oracle, or is doubtful (`TableKey.is_doubtful`); if all are skipped, the
range has no end.
"""

_COLLATIONS: Final = """
SELECT a.attname::text, CASE WHEN c.collname = 'default' THEN d.datlocprovider ELSE 'c' END::text,
    CASE WHEN c.collname = 'default' THEN d.datcollate ELSE c.collname END::text
FROM pg_attribute a
JOIN pg_collation c ON c.oid = a.attcollation
JOIN pg_database d ON d.datname = current_database()
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
"""
_BUILTIN: Final = "b"
_LIBC: Final = "c"
_ENCODINGS: Final = ("UTF8", "LATIN1", "SQL_ASCII")
"""Encodings of PostgreSQL in which text ordered by its bytes is in the order of Unicode. A database
with another encoding, such as WIN1252, orders by the bytes of that encoding.
"""


class KeyRange(NamedTuple):
    """The rows whose key is above `after` and not above `upto`.

    Attributes:
        columns: the key's columns, in the order of the key.
        collated: names of the columns that are compared with COLLATE "C", because their own
            collation may order text differently.
        after, upto: the image of a key; None if the range has no lower or upper bound.
        rows: approximate number of rows.
    """

    columns: tuple[TargetColumn, ...]
    collated: frozenset[str]
    after: bytes | None
    upto: bytes | None
    rows: int

    def condition(self) -> tuple[sql.Composable, list[Any]]:
        """Return the SQL condition that a row of ``t`` is in the range, and the parameters of the
        condition.
        """
        parts, parameters = list[sql.Composable](), list[Any]()
        for operator, image in ((">", self.after), ("<=", self.upto)):
            if image is not None:
                bound, values = _row_of(image, self.columns)
                parts.append(sql.SQL(f"{{}} {operator} {{}}").format(self.ordered(), bound))
                parameters += values
        return sql.SQL(" AND ").join(parts) if parts else sql.SQL("true"), parameters

    def ordered(self) -> sql.Composed:
        """Return the SQL of a row value with the key's columns of ``t``, with the collations used
        to compare them.
        """
        return sql.SQL("ROW({})").format(sql.SQL(", ").join(map(self._ordered, self.columns)))

    def _ordered(self, column: TargetColumn) -> sql.Composable:
        name = escape_percent_signs(sql.SQL("t.{}").format(sql.Identifier(column.name)))
        return sql.SQL('{} COLLATE "C"').format(name) if column.name in self.collated else name


def _row_of(image: bytes, columns: Sequence[TargetColumn]) -> tuple[sql.Composed, list[Any]]:
    fields = fields_of(image, columns)
    values = sql.SQL(", ").join(placeholder(field.column) for field in fields)
    return sql.SQL("ROW({})").format(values), [field.parameter for field in fields]


class TableKey:
    """The key of a table that can be compared range by range.

    Args:
        plan: the table's plan.
        table: the table in the source's dictionary.
    """

    def __init__(
        self, connection: Connection[Any], settings: ApplierSettings, plan: TablePlan, table: Table
    ) -> None:
        self._connection, self._target = connection, plan.target
        self._columns = tuple(plan.target.columns[place] for place in plan.key.tolist())
        self._source = _key_columns(table)
        rows = connection.execute(_COLLATIONS, (plan.target.oid,)).fetchall()
        in_bytes = {name for name, provider, locale in rows if is_byte_order(provider, locale)}
        self._collated = frozenset(
            one.name for one in self._columns if one.base_oid in _TEXTS and one.name not in in_bytes
        )
        facts = settings.facts
        values = ValueSettings(
            FallbackPolicies(), settings.choices, settings.policies, facts.charset, facts.ncharset
        )
        self._to_oracle = [
            oracle_column(table.full_name, ours, theirs.base_oid, values)
            for ours, theirs in zip(self._source, self._columns, strict=True)
        ]

    @property
    def has_index(self) -> bool:
        """Return whether PostgreSQL can find a range with the target's index on the key."""
        return not self._collated

    @property
    def shape(self) -> list[str]:
        """Names and types of the key's columns."""
        return [f"{column.name} {column.base_name}" for column in self._columns]

    def next_range(self, after: bytes | None, rows: int) -> KeyRange:
        """Return the range of about `rows` rows after the key `after`; the last range has no end.

        Raises:
            psycopg.Error: the target cannot be read.
        """
        rest = KeyRange(self._columns, self._collated, after, None, rows)
        order = sql.SQL(", ").join(
            sql.SQL("{}").format(rest._ordered(column)) for column in self._columns
        )
        condition, parameters = rest.condition()
        query = sql.SQL(
            "SELECT {} FROM (SELECT {} FROM {} AS t WHERE {} ORDER BY {} OFFSET %s LIMIT %s) AS t"
        ).format(
            escape_percent_signs(image_expression(self._columns)),
            sql.SQL(", ").join(_plain(column) for column in self._columns),
            escape_percent_signs(self._target.identifier),
            condition,
            order,
        )
        with self._connection.cursor(binary=True) as cursor:
            found = cursor.execute(query, [*parameters, rows - 1, _NOT_IN_ORACLE_MAX]).fetchall()
        for (image,) in found:
            # Rows beside a doubtful bound could be in different ranges on the two sides, although
            # their own keys are not doubtful. They would look like missing and extra rows.
            if not self.is_doubtful(bytes(image)) and self._bound(bytes(image)) is not None:
                return rest._replace(upto=bytes(image))
        return rest

    def cuts(self, part: KeyRange) -> tuple[KeyCut, ...]:
        """Return the conditions with which the source reads a range."""
        names = [column.name for column in self._source]
        bounds = (None if one is None else self._bound(one) for one in (part.after, part.upto))
        return key_cuts(names, *bounds)

    def cuts_at(self, images: Iterable[bytes]) -> tuple[KeyCut, ...]:
        """Return the conditions with which the source reads the rows with exactly these keys. Keys
        that Oracle cannot store are left out.
        """
        names = tuple(column.name for column in self._source)
        keys = (self._bound(image) for image in images)
        return tuple(
            KeyCut(names, tuple(KeyBound("=", value) for value in key))
            for key in keys
            if key is not None
        )

    def is_doubtful(self, image: bytes) -> bool:
        """Return whether the two sides may order this key differently.

        Oracle compares the blanks at the end of CHAR. PostgreSQL ignores these blanks, and in a
        text column the blanks are missing. The order can differ only if a value contains a
        character below the blank.
        """
        return any(
            field.value is not None and min(field.value, default=_BLANK) < _BLANK
            for column, field in zip(self._source, fields_of(image, self._columns), strict=True)
            if column.type_code == OracleType.CHAR
        )

    def _bound(self, image: bytes) -> list[KeyValue] | None:
        """Convert a key to values of Oracle; return None if Oracle cannot store it."""
        found = list[KeyValue]()
        for column, field in zip(self._to_oracle, fields_of(image, self._columns), strict=True):
            try:
                bound = column.bind([field.value])
            except OlrPgError:
                return None
            if bound.altered or bound.values[0] is None:
                return None
            found.append(_key_value(column.column, bound.values[0]))
        return found


def is_byte_order(provider: str, locale: str) -> bool:
    """Return whether a collation orders text by its bytes.

    Args:
        provider: pg_database.datlocprovider. With ICU, `datcollate` can be ``C`` although text has
            a linguistic order. The built-in provider has only locales in the order of code points.
        locale: pg_database.datcollate, or the name of the collation.
    """
    return provider == _BUILTIN or (provider == _LIBC and locale in ("C", "POSIX"))


def _plain(column: TargetColumn) -> sql.SQL:
    return escape_percent_signs(sql.SQL("t.{}").format(sql.Identifier(column.name)))


def _key_columns(table: Table) -> list[Column]:
    by_number = {column.intcol: column for column in table.columns}
    return [by_number[number] for number in table.key]


def _key_value(column: Column, value: Any) -> KeyValue:
    """Return a value in a form that the driver can bind without a declared type."""
    kind = OracleType(column.type_code)
    if is_explicit(column):
        return KeyValue(column.name, value, TEXT_OF_BYTES)
    if kind in _FORMATS:
        if isinstance(value, datetime):
            digits = "seconds" if kind is OracleType.DATE else "microseconds"
            value = value.isoformat(" ", digits)
        return KeyValue(column.name, value, _FORMATS[kind])
    if kind is OracleType.CHAR:
        return KeyValue(column.name, _padded(column, value))
    assert isinstance(value, int | Decimal | str | bytes)
    return KeyValue(column.name, value)


def _padded(column: Column, text: str) -> str:
    """Pad a text with blanks as Oracle pads CHAR. The driver binds a VARCHAR2, and Oracle does not
    pad a VARCHAR2 when it compares.
    """
    characters = (column.char_length or column.length) - len(text)
    return text + " " * max(min(characters, column.length - len(text.encode())), 0)


def can_be_walked(plan: TablePlan, table: Table, charset: str, encoding: str) -> bool:
    """Return whether both sides order the table's key in the same way, and no column of the key can
    be NULL.

    Args:
        charset: Oracle's name of the database's character set.
        encoding: PostgreSQL's name of the target's encoding.
    """
    target: TargetTable = plan.target
    key = [target.columns[place] for place in plan.key.tolist()]
    columns = _key_columns(table)
    if not key or {column.name for column in key} != set(target.key):
        return False
    if encoding not in _ENCODINGS and any(column.base_oid in _TEXTS for column in key):
        return False
    return len(columns) == len(key) and all(
        _is_ordered_alike(ours, theirs, charset) for ours, theirs in zip(columns, key, strict=True)
    )


def _is_ordered_alike(column: Column, target: TargetColumn, charset: str) -> bool:
    kind = column.type_code
    if kind not in _ORDERED_ALIKE or column.nullable or target.generated:
        return False
    if target.base_oid not in _ORDERED_ALIKE[OracleType(kind)]:
        return False
    if kind in (OracleType.VARCHAR2, OracleType.CHAR):
        if is_explicit(column):
            found = column_charset(column.charset_form, column.charset_id, charset, charset)
            return found.name in _IN_ORDER_OF_UNICODE and column.length <= RAW_MAX
        return column.charset_form != _NATIONAL and charset in _IN_ORDER_OF_UNICODE
    return kind != OracleType.TIMESTAMP or (column.scale or 0) <= _MICROSECONDS
