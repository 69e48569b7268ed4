"""The segments of tables, and the storage properties that make their rows unreadable in the redo:
encryption and compression.

- Encryption: TS$.FLAGS shows which tablespaces are encrypted, and TS# in a segment's row shows its
  tablespace (dictionary §2.10). The redo of a segment in an encrypted tablespace is encrypted. If
  an encrypted segment contains rows, the table is refused; if it contains a column's LOB values,
  the column is left out.
- Compression: for existing segments, it is in SEG$, and SEG$ is read only if the source is a live
  database; for deferred segments, it is in DEFERRED_STG$. Rows with hybrid columnar compression are
  not in the redo. Other compressed rows are logged with their values only if ALL columns are logged
  supplementally.

For index-organised tables, this module finds the index that contains the rows, and decides whether
the rows can be decoded.

The rows are in the leaf blocks of the primary key's index (IND$.TYPE# 4). The redo contains OBJ#
and DATAOBJ# of this index; the table itself has no segment. If the table is partitioned, each
partition of the index has a segment (INDPART$), and the partitions of the table (TABPART$) have
none. Oracle does not allow sub-partitions (ORA-25198). Facts: dictionary §2.3, §2.6, redo-format
§6.1.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from olr_pg.dictionary.model import Column
    from olr_pg.dictionary.sys_rows import (
        DeferredRow,
        IndexRow,
        PartitionRow,
        SubPartitionRow,
        SysRows,
        TablespaceRow,
        TabRow,
    )

_ROWS_INDEX: Final = 4
"""IND$.TYPE# of the index that contains a table's rows."""

_ORGANISED: Final = 0x40
_OVERFLOW: Final = 0x80
"""Bits of TAB$.PROPERTY."""

_MAPPED: Final = 0x10000000
"""Bit of TAB$.FLAGS: the table has a mapping table for bitmap indexes."""

_KEY_COMPRESSION: Final = 0x20
_IOT_COMPRESSED: Final = 0x8
"""Bits of IND$: `_KEY_COMPRESSION` of FLAGS, `_IOT_COMPRESSED` of PROPERTY."""


def is_index_organised(tab: TabRow) -> bool:
    """Return whether the table is index-organised."""
    return bool(tab.property & _ORGANISED)


def rows_index(indexes: Sequence[IndexRow]) -> IndexRow | None:
    """Return the index that contains the rows; None if the dictionary has none.

    Args:
        indexes: the table's indexes; empty for a dictionary from a schema checkpoint.
    """
    return next((row for row in indexes if holds_rows(row)), None)


def holds_rows(index: IndexRow) -> bool:
    """Return whether this index contains the rows of its index-organised table."""
    return index.type == _ROWS_INDEX


def row_segments(
    tab: TabRow,
    index: IndexRow,
    parts: Sequence[PartitionRow],
    of_table: Sequence[PartitionRow | SubPartitionRow],
) -> list[IndexRow | PartitionRow | SubPartitionRow]:
    """Return the objects that the redo of the rows can name: the index, or its partitions and the
    table's.

    Args:
        index: the index that contains the rows.
        parts: partitions of the index.
        of_table: partitions of the table. A partition has no segment, but if redo names its number,
            the redo concerns rows of this table.
    """
    if not tab.property & _PARTITIONED:
        return [index]
    return [*sorted(parts, key=lambda row: row.obj), *of_table]


def index_obstacle(
    tab: TabRow,
    index: IndexRow | None,
    parts: Sequence[PartitionRow],
    key: Sequence[int],
    columns: Sequence[Column],
) -> str | None:
    """Return why the rows of an index-organised table cannot be decoded; None if they can.

    Args:
        index: the index that contains the rows.
        parts: partitions of that index.
        key: INTCOL# of the index's columns, in the order of the index.
    """
    if tab.property & _OVERFLOW:
        return "the table is index-organised and has an overflow segment"
    if tab.flags & _MAPPED:
        return "the table is index-organised and has a mapping table"
    if index is None:
        return (
            "the table is index-organised, and this dictionary does not name the index with its"
            " rows"
        )
    if tab.property & _PARTITIONED and not parts:
        return (
            "the table is index-organised, and this dictionary does not name its index's partitions"
        )
    if index.flags & _KEY_COMPRESSION or index.property & _IOT_COMPRESSED:
        return "the table is index-organised with a compressed key"
    # In a leaf row, the key columns come first, in the order of the index, and then the other
    # columns. SEGCOL# must have the same order.
    places = {column.intcol: column.segcol for column in columns}
    if not key or [places.get(intcol) for intcol in key] != list(range(1, len(key) + 1)):
        return (
            "the table is index-organised, and the columns of its key are not its first columns in"
            " the same order"
        )
    return None


ENCRYPTED: Final = 0x4000
_UNDO: Final = 0x10
"""Bits of TS$.FLAGS."""

_ONLINE: Final = 1
"""The value of TS$.ONLINE$ for an online tablespace."""

_PARTITIONED: Final = 0x20
_INDEX_PARTITIONED: Final = 0x2
"""Bits of PROPERTY: `_PARTITIONED` in TAB$, `_INDEX_PARTITIONED` in IND$."""

_COMPRESSED: Final = 4
"""Bit of DEFERRED_STG$.FLAGS_STG."""

_BY_ROWS: Final = 3
"""Bits of DEFERRED_STG$.CMPFLAG_STG: 1 basic, 2 advanced. If a segment is compressed and both bits
are 0, it has hybrid columnar compression.
"""

PLACE: Final = "<unencrypted tablespace>"
"""A placeholder in SQL. The database's administrator must replace it with the name of a
tablespace.
"""

UNENCRYPTED: Final = f"TABLESPACE {PLACE}"
UNCOMPRESSED: Final = "NOCOMPRESS"
"""Storage clauses for moving a segment: into a tablespace, or without compression."""

_SHOWN_MAX: Final = 3


class Compression(NamedTuple):
    """Compressed segments, by OBJ# of table or partition. The compressed segments are passed
    separately, because the SYS rows of a dictionary do not show which segments are compressed.

    Attributes:
        compressed: segments with any kind of compression.
        hybrid_columnar: segments with hybrid columnar compression.
    """

    compressed: frozenset[int] = frozenset()
    hybrid_columnar: frozenset[int] = frozenset()


NOT_TOLD: Final = Compression()


class NamedSegment(NamedTuple):
    """A segment of a table, or of one of its LOB columns.

    Attributes:
        kind: ``PARTITION``, ``SUBPARTITION``, or empty for the table's own segment.
        part: the name of the partition in quotes; its OBJ# in angle brackets if the name is
            unknown.
        tablespace: the name of its tablespace if this is encrypted; else empty.
    """

    kind: str = ""
    part: str = ""
    tablespace: str = ""

    def move(self, owner: str, table: str, to: str) -> str:
        """Return SQL that moves the segment; `to` is the storage clause (`UNENCRYPTED` or
        `UNCOMPRESSED`).
        """
        words = ["MOVE", *([self.kind, self.part] if self.kind else []), to]
        return f'ALTER TABLE "{owner}"."{table}" {" ".join(words)};'


class _Segment(NamedTuple):
    """A segment that contains rows.

    Attributes:
        table: OBJ# of the table.
        obj: OBJ# of the table, its partition, or its index.
        ts: TS# of its tablespace; None if unknown.
    """

    table: int
    obj: int
    ts: int | None
    kind: str = ""


class StoredSegments:
    """The encrypted and the compressed segments of a dictionary's tables.

    Args:
        rows: the tables' SYS rows. If the SYS rows do not show which tablespaces are encrypted (see
            `is_encryption_known`), all tablespaces count as unencrypted.

    Attributes:
        undo: the name of an encrypted undo tablespace; empty if there is none.
    """

    def __init__(self, rows: SysRows, compression: Compression = NOT_TOLD) -> None:
        self._names = {
            row.ts: row.name or f"with TS# {row.ts}" for row in rows.sys_ts if is_encrypted(row)
        }
        self.undo = next(
            (self._names[row.ts] for row in rows.sys_ts if is_encrypted(row) and _is_undo(row)), ""
        )
        deferred = [row for row in rows.sys_deferredstg if row.flags_stg & _COMPRESSED]
        self._compression = Compression(
            compression.compressed.union(row.obj for row in deferred),
            compression.hybrid_columnar.union(row.obj for row in deferred if _is_columnar(row)),
        )
        self._encrypted: dict[int, list[NamedSegment]] = defaultdict(list)
        self._compressed: dict[int, list[NamedSegment]] = defaultdict(list)
        self._columnar: dict[int, list[NamedSegment]] = defaultdict(list)
        self._lobs: dict[tuple[int, int], list[NamedSegment]] = defaultdict(list)
        self._parts: dict[int, str] = {}
        if self._names or self._compression.compressed:
            self._parts = {row.obj: f'"{row.subname}"' for row in rows.sys_obj if row.subname}
            self._read(rows)

    def encrypted(self, obj: int) -> Sequence[NamedSegment]:
        """Return the encrypted segments that contain rows of the table `obj`."""
        return self._encrypted.get(obj, ())

    def encrypted_lob(self, obj: int, intcol: int) -> Sequence[NamedSegment]:
        """Return the encrypted segments that contain values of a LOB column of the table `obj`."""
        return self._lobs.get((obj, intcol), ())

    def compressed(self, obj: int) -> Sequence[NamedSegment]:
        """Return the segments of the table `obj` with any kind of compression."""
        return self._compressed.get(obj, ())

    def columnar(self, obj: int) -> Sequence[NamedSegment]:
        """Return the segments of the table `obj` with hybrid columnar compression."""
        return self._columnar.get(obj, ())

    def lob_place(self, obj: int, intcol: int) -> str:
        """Return the names of the encrypted tablespaces with segments of a LOB column; empty if
        there are none.
        """
        segments = self.encrypted_lob(obj, intcol)
        if not segments:
            return ""
        parts = _parts(segments)
        return _places(segments) + (f" ({parts})" if parts else "")

    def obstacle(self, obj: int, owner: str, table: str, *, all_columns_logged: bool) -> str | None:
        """Return why the rows of a table are unreadable in the redo; None if they are readable.

        Args:
            all_columns_logged: whether all columns are logged supplementally, for the table, its
                owner or the database.
        """
        if self.undo:
            return (
                f"the undo tablespace {self.undo} is encrypted, so the redo contains the"
                " undo of all transactions only as cipher text"
            )
        name = owner, table
        if found := self.encrypted(obj):
            return (
                f"{_subject(found, 'is', 'are')} in {_places(found)}, so the redo"
                " contains only cipher text; move it into an unencrypted tablespace:"
                f" {_first_move(found, name, UNENCRYPTED)}"
            )
        if found := self.columnar(obj):
            return (
                f"{_subject(found, 'has', 'have')} hybrid columnar compression, so rows"
                " cannot be read from redo; uncompress it:"
                f" {_first_move(found, name, UNCOMPRESSED)}"
            )
        found = self.compressed(obj)
        if found and not all_columns_logged:
            return (
                f"{_subject(found, 'is', 'are')} compressed, and rows are logged without their"
                f' values: ALTER TABLE "{owner}"."{table}" ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS;'
            )
        return None

    # --- reading ---

    def _read(self, rows: SysRows) -> None:
        compressed, columnar = self._compression
        for one in _segments(rows):
            self._add(self._encrypted[one.table], one.ts, one.kind, one.obj)
            named = NamedSegment(one.kind, self._name(one.obj) if one.kind else "")
            if one.obj in compressed:
                self._compressed[one.table].append(named)
            if one.obj in columnar:
                self._columnar[one.table].append(named)
        lob_of_part = {row.part_obj: row.l_obj for row in rows.sys_lob_comp_part}
        column_of = {row.l_obj: (row.obj, row.int_col) for row in rows.sys_lob}
        divided = set[int]()
        for fragment in rows.sys_lob_frag:
            lob = lob_of_part.get(fragment.parent_obj, fragment.parent_obj)
            divided.add(lob)
            if lob in column_of:
                kind = "SUBPARTITION" if fragment.parent_obj in lob_of_part else "PARTITION"
                number = fragment.table_part or fragment.frag_obj
                self._add(self._lobs[column_of[lob]], fragment.ts, kind, number)
        for row in rows.sys_lob:
            if row.l_obj not in divided:
                self._add(self._lobs[row.obj, row.int_col], row.ts, "", row.l_obj)

    def _add(self, found: list[NamedSegment], ts: int | None, kind: str, obj: int) -> None:
        if ts in self._names:
            part = self._name(obj) if kind else ""
            found.append(NamedSegment(kind, part, self._names[ts]))

    def _name(self, obj: int) -> str:
        return self._parts.get(obj, f"<OBJ# {obj}>")


def _segments(rows: SysRows) -> Iterator[_Segment]:
    """Yield every segment that contains rows.

    A partitioned table has no segment of its own. An index-organised table has none either, because
    its index contains the rows. These tables are skipped: their TS# is 0, which is also the TS# of
    SYSTEM.
    """
    organised = {tab.obj for tab in rows.sys_tab if is_index_organised(tab)}
    for tab in rows.sys_tab:
        if tab.obj not in organised and not tab.property & _PARTITIONED:
            yield _Segment(tab.obj, tab.obj, tab.ts)
    for part in rows.sys_tabpart:
        if part.bo not in organised:
            yield _Segment(part.bo, part.obj, part.ts, "PARTITION")
    table_of_composite = {row.obj: row.bo for row in rows.sys_tabcompart}
    for sub in rows.sys_tabsubpart:
        if sub.p_obj in table_of_composite:
            yield _Segment(table_of_composite[sub.p_obj], sub.obj, sub.ts, "SUBPARTITION")
    table_of_index = {row.obj: row.bo for row in rows.sys_ind if holds_rows(row)}
    for index in rows.sys_ind:
        if index.obj in table_of_index and not index.property & _INDEX_PARTITIONED:
            yield _Segment(index.bo, index.obj, index.ts)
    for part in rows.sys_indpart:
        if part.bo in table_of_index:
            yield _Segment(table_of_index[part.bo], part.obj, part.ts, "PARTITION")


def is_encrypted(row: TablespaceRow) -> bool:
    """Return whether a tablespace's row marks it as encrypted."""
    return bool((row.flags or 0) & ENCRYPTED)


def is_encryption_known(rows: SysRows) -> bool:
    """Return whether the rows show which segments are in encrypted tablespaces.

    The rows of a schema checkpoint, and of a snapshot from an older version, do not show it.
    """
    told = all(row.flags is not None for row in rows.sys_ts)
    return bool(rows.sys_ts) and told and all(row.ts is not None for row in rows.sys_tab)


def _is_undo(row: TablespaceRow) -> bool:
    return bool((row.flags or 0) & _UNDO) and row.state == _ONLINE


def _is_columnar(row: DeferredRow) -> bool:
    return row.cmp_flag is not None and not row.cmp_flag & _BY_ROWS


# --- words ---


def _subject(segments: Sequence[NamedSegment], verb: str, verb_of_several: str) -> str:
    """Return ``it is``, ``partition "P1" is``, or ``partition "P1", partition "P2" are``, with the
    given verbs.
    """
    return f"{_parts(segments) or 'it'} {verb if len(segments) == 1 else verb_of_several}"


def _parts(segments: Iterable[NamedSegment]) -> str:
    return _listed(f"{one.kind.lower()} {one.part}" for one in segments if one.kind)


def _places(segments: Sequence[NamedSegment]) -> str:
    names = sorted({one.tablespace for one in segments})
    return f"the encrypted tablespace{'s' if len(names) > 1 else ''} {_listed(names)}"


def _first_move(segments: Sequence[NamedSegment], name: tuple[str, str], to: str) -> str:
    return segments[0].move(*name, to) + (" …" if len(segments) > 1 else "")


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    rest = len(every) - _SHOWN_MAX
    return ", ".join(every[:_SHOWN_MAX]) + (f" and {rest} more" if rest > 0 else "")
