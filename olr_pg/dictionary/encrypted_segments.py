"""Segments in encrypted tablespaces, whose redo holds cipher text.

TS$.FLAGS says which tablespaces are encrypted, and the TS# of each segment's row says where it is
(dictionary §2.10). Nothing of such a segment's changes can be read: a table with one is refused, a
column with a LOB segment there is left out.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.dictionary.index_organised import holds_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from olr_pg.dictionary.sys_rows import SysRows, TablespaceRow

ENCRYPTED: Final = 0x4000
_UNDO: Final = 0x10
"""Bits of TS$.FLAGS."""

_ONLINE: Final = 1
"""TS$.ONLINE$."""

PLACE: Final = "<unencrypted tablespace>"
"""Stands for a name that the database's administrator chooses."""

_SHOWN_MAX: Final = 3


class EncryptedSegment(NamedTuple):
    """A segment of a table, or of one of its LOB columns, in an encrypted tablespace.

    Attributes:
        kind: ``PARTITION``, ``SUBPARTITION``, or empty for the table's own segment.
        part: the name of the partition in quotes; its OBJ# in angle brackets if the dictionary
            does not name it.
    """

    tablespace: str
    kind: str = ""
    part: str = ""

    def statement(self, owner: str, table: str, lob: str = "") -> str:
        """Return the SQL that moves the segment out of its tablespace.

        Args:
            lob: the LOB column; empty for the rows themselves.
        """
        words = ["MOVE", *([self.kind, self.part] if self.kind else [])]
        words.append(
            f'LOB ("{lob}") STORE AS (TABLESPACE {PLACE})' if lob else f"TABLESPACE {PLACE}"
        )
        return f'ALTER TABLE "{owner}"."{table}" {" ".join(words)};'


class EncryptedSegments:
    """The segments in encrypted tablespaces of all tables of a dictionary.

    Args:
        rows: the tables' rows. If they do not say which tablespaces are encrypted, no segment is
            found; see `is_known`.

    Attributes:
        undo: the name of an undo tablespace that is encrypted; empty if there is none.
    """

    def __init__(self, rows: SysRows) -> None:
        self._names = {
            row.ts: row.name or f"with TS# {row.ts}" for row in rows.sys_ts if is_encrypted(row)
        }
        self._of_rows: dict[int, list[EncryptedSegment]] = defaultdict(list)
        self._of_lobs: dict[tuple[int, int], list[EncryptedSegment]] = defaultdict(list)
        self.undo = next(
            (self._names[row.ts] for row in rows.sys_ts if is_encrypted(row) and _is_undo(row)), ""
        )
        self._parts: dict[int, str] = {}
        if self._names:
            self._parts = {row.obj: f'"{row.subname}"' for row in rows.sys_obj if row.subname}
            self._read_rows(rows)
            self._read_lobs(rows)

    def of_rows(self, obj: int) -> Sequence[EncryptedSegment]:
        """Return those that hold rows of the table with that OBJ#."""
        return self._of_rows.get(obj, ())

    def of_lob(self, obj: int, intcol: int) -> Sequence[EncryptedSegment]:
        """Return those that hold values of a LOB column of the table with that OBJ#."""
        return self._of_lobs.get((obj, intcol), ())

    def _read_rows(self, rows: SysRows) -> None:
        # A partitioned table, an index-organised one and a composite partition have no segment.
        for tab in rows.sys_tab:
            self._add(self._of_rows[tab.obj], tab.ts if tab.data_obj else None)
        for part in rows.sys_tabpart:
            self._add_part(part.bo, part.ts if part.data_obj else None, part.obj)
        table_of_composite = {row.obj: row.bo for row in rows.sys_tabcompart}
        for sub in rows.sys_tabsubpart:
            if sub.p_obj in table_of_composite:
                table = table_of_composite[sub.p_obj]
                self._add_part(table, sub.ts, sub.obj, "SUBPARTITION")
        table_of_index = {row.obj: row.bo for row in rows.sys_ind if holds_rows(row)}
        for index in rows.sys_ind:
            if index.obj in table_of_index:
                self._add(self._of_rows[index.bo], index.ts if index.data_obj else None)
        for part in rows.sys_indpart:
            if part.bo in table_of_index:
                self._add_part(table_of_index[part.bo], part.ts, part.obj)

    def _read_lobs(self, rows: SysRows) -> None:
        lob_of_part = {row.part_obj: row.l_obj for row in rows.sys_lob_comp_part}
        column_of = {row.l_obj: (row.obj, row.int_col) for row in rows.sys_lob}
        divided = set[int]()
        for fragment in rows.sys_lob_frag:
            lob = lob_of_part.get(fragment.parent_obj, fragment.parent_obj)
            divided.add(lob)
            if lob in column_of:
                kind = "SUBPARTITION" if fragment.parent_obj in lob_of_part else "PARTITION"
                number = fragment.table_part or fragment.frag_obj
                self._add(self._of_lobs[column_of[lob]], fragment.ts, kind, self._name(number))
        for row in rows.sys_lob:
            if row.l_obj not in divided:
                self._add(self._of_lobs[row.obj, row.int_col], row.ts)

    def _add_part(self, table: int, ts: int | None, obj: int, kind: str = "PARTITION") -> None:
        self._add(self._of_rows[table], ts, kind, self._name(obj))

    def _add(
        self, found: list[EncryptedSegment], ts: int | None, kind: str = "", part: str = ""
    ) -> None:
        if ts in self._names:
            found.append(EncryptedSegment(self._names[ts], kind, part))

    def _name(self, obj: int) -> str:
        return self._parts.get(obj, f"<OBJ# {obj}>")


def is_encrypted(row: TablespaceRow) -> bool:
    """Tell whether a tablespace is encrypted, as far as its row says."""
    return bool((row.flags or 0) & ENCRYPTED)


def _is_undo(row: TablespaceRow) -> bool:
    return bool((row.flags or 0) & _UNDO) and row.state == _ONLINE


def is_known(rows: SysRows) -> bool:
    """Tell whether the rows say which segments are in encrypted tablespaces.

    A schema checkpoint does not, nor does a snapshot that an older version wrote.
    """
    told = all(row.flags is not None for row in rows.sys_ts)
    return bool(rows.sys_ts) and told and all(row.ts is not None for row in rows.sys_tab)


def rows_obstacle(encrypted: EncryptedSegments, obj: int, owner: str, table: str) -> str | None:
    """Tell why redo does not show the rows of the table with that OBJ#; None if it does."""
    if encrypted.undo:
        return (
            f"the undo tablespace {encrypted.undo} is encrypted: redo holds the undo of every"
            " transaction as cipher text"
        )
    segments = encrypted.of_rows(obj)
    if not segments:
        return None
    parts = _listed(f"{one.kind.lower()} {one.part}" for one in segments if one.kind)
    more = " …" if len(segments) > 1 else ""
    return (
        f"{parts or 'it'} {'are' if len(segments) > 1 else 'is'} in {_places(segments)}: redo holds"
        f" cipher text; move it out: {segments[0].statement(owner, table)}{more}"
    )


def lob_place(segments: Sequence[EncryptedSegment]) -> str:
    """Tell where the encrypted segments of a LOB column are; empty if it has none."""
    if not segments:
        return ""
    parts = _listed(f"{one.kind.lower()} {one.part}" for one in segments if one.kind)
    return _places(segments) + (f" ({parts})" if parts else "")


def _places(segments: Sequence[EncryptedSegment]) -> str:
    names = sorted({one.tablespace for one in segments})
    return f"the encrypted tablespace{'s' if len(names) > 1 else ''} {_listed(names)}"


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    rest = len(every) - _SHOWN_MAX
    return ", ".join(every[:_SHOWN_MAX]) + (f" and {rest} more" if rest > 0 else "")
