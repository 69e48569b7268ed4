"""The consequences of a changed table definition for a copy of the table.

The rule: what neither changes rows nor how they are stored in the copy is followed silently; a
nullable column without default is added; TRUNCATE is carried out; everything else stops the table,
because the copy needs a decision.

=====================================================  ==========================================
DDL                                                    verdict
=====================================================  ==========================================
comments, grants, indexes, constraints, statistics     nothing (the definition stays the same)
first row of a deferred segment, MOVE, SHRINK          followed
key or NOT NULL added or dropped                       followed: keys of the copy are its own
ADD nullable column without default                    ADD_COLUMNS
ADD column NOT NULL, or with a default                 STOP: rows that exist got values unlogged
MODIFY of length, precision or scale                   `retyped`: followed by a target whose type
                                                       of the column stays the same, else STOP
MODIFY to another type                                 STOP
DROP, RENAME, SET UNUSED of a column                   STOP
ENCRYPT, DECRYPT of a column                           STOP: the values of rows that exist
TRUNCATE TABLE                                         TRUNCATE
ADD, SPLIT, MERGE, RENAME partition, interval          followed: the same rows
DROP PARTITION                                         followed, with a warning: its rows stay
TRUNCATE PARTITION, EXCHANGE PARTITION                 STOP: rows came or went unlogged
a segment replaced, no statement logged                STOP
RENAME, DROP, recycle bin, becoming unsupported        STOP
=====================================================  ==========================================
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.dictionary.committed_changes import Statement
    from olr_pg.dictionary.model import Column, Table

DROP_TABLE: Final = 12
ALTER_TABLE: Final = 15
TRUNCATE_TABLE: Final = 85
ROW_COMMANDS: Final = {
    DROP_TABLE: "DROP TABLE",
    ALTER_TABLE: "ALTER TABLE",
    TRUNCATE_TABLE: "TRUNCATE TABLE",
}
"""The commands that may change a table's rows or columns (redo-format §8.1)."""

UNKNOWN_DDL: Final = Code.DDL_NOT_FOLLOWED
"""The error of a DDL whose effect on the definition nobody tells."""

_PART = r"(?:SUB)?PARTITION"
_FILLS: Final = re.compile(rf"\b(?:TRUNCATE\s+{_PART}|EXCHANGE\s+{_PART})\b")
_KEEPS: Final = re.compile(
    rf"\b(?:MOVE|SHRINK|SPLIT\s+{_PART}|MERGE\s+{_PART}S?|COALESCE\s+{_PART}|ENABLE\s+ROW)\b"
)


class Verdict(Enum):
    """The fate of the copy."""

    FOLLOW = "follow"
    ADD_COLUMNS = "add columns"
    TRUNCATE = "truncate"
    STOP = "stop"


class Evolution(NamedTuple):
    """The meaning of a DDL for the copy.

    Attributes:
        columns: to be added.
        error: why the table stops; of FOLLOW a warning, if there is one.
        retyped: (as it was, as it is) of columns with another length, precision or scale. The
            table stops where the target's type is another one by that, which only who knows what
            is chosen for the target can tell.
    """

    verdict: Verdict
    columns: tuple[Column, ...] = ()
    error: OlrPgError | None = None
    retyped: tuple[tuple[Column, Column], ...] = ()


def judge(
    old: Table,
    new: Table | None,
    statements: Sequence[Statement],
    with_default: frozenset[int] = frozenset(),
) -> Evolution:
    """Judge what the change from `old` to `new` means.

    Args:
        old, new: the definitions; None as `new` where the table is gone.
        statements: the DDL statements on the table that belong to the change.
        with_default: INTCOL# of new columns that were added with a default.
    """
    if new is None or new.refusal is not None:
        reason = "it was dropped" if new is None else new.refusal
        return _stop(Code.TABLE_GONE, f"{reason}", old, statements)
    if (new.owner, new.name) != (old.owner, old.name):
        return _stop(Code.TABLE_GONE, f"it was renamed to {new.full_name}", old, statements)
    added, fault = _added_columns(old, new, with_default)
    if fault is not None:
        return _stop(Code.COLUMNS_CHANGED, fault, old, statements)
    retyped = _retyped_columns(old, new)
    if any(statement.command == TRUNCATE_TABLE for statement in statements):
        return Evolution(Verdict.TRUNCATE, added, retyped=retyped)
    fault = _segment_fault(old, new, statements)
    if fault is not None:
        return _stop(Code.ROWS_CHANGED_BY_DDL, fault, old, statements)
    if added:
        return Evolution(Verdict.ADD_COLUMNS, added, retyped=retyped)
    dropped = _dropped_partitions(old, new, statements)
    return Evolution(Verdict.FOLLOW, error=dropped, retyped=retyped)


def unknown_ddl(table: Table, statement: Statement) -> Evolution:
    """Return the verdict on a statement whose effect on the dictionary is not in sight.

    Also after TRUNCATE: new segments have new numbers, by which direct loads and LOBs are known.
    """
    return _stop(UNKNOWN_DDL, ROW_COMMANDS[statement.command], table, (statement,))


def _stop(code: int, detail: str, table: Table, statements: Sequence[Statement]) -> Evolution:
    texts = "; ".join(s.text for s in statements if s.text)
    if texts:
        detail = f"{detail} ({texts[:500]})"
    return Evolution(Verdict.STOP, error=OlrPgError(code, detail, table=table.full_name))


def _added_columns(
    old: Table, new: Table, with_default: frozenset[int]
) -> tuple[tuple[Column, ...], str | None]:
    """Return (columns to add, why the columns cannot be followed)."""
    before = {column.name: column for column in old.delivered}
    after = {column.name: column for column in new.delivered}
    gone = [name for name in before if name not in after]
    unreadable = {column.name: column.unsupported for column in new.left_out}
    for name in gone:
        if name in unreadable:
            return (), f"column {name} cannot be replicated any more: {unreadable[name]}"
    if gone:
        return (), f"column {', '.join(gone)} was dropped, renamed or set unused"
    for name, column in before.items():
        if not _is_same_type(column, after[name]):
            return (), f"the type of column {name} changed"
    added = tuple(column for name, column in after.items() if name not in before)
    was_left_out = {column.name for column in old.left_out}
    for column in added:
        if column.name in was_left_out:
            return (), (
                f"column {column.name} can be replicated now, as of which its copy has no values:"
                " load the table again"
            )
        if not column.nullable:
            return (), f"column {column.name} was added NOT NULL"
        if column.intcol in with_default:
            return (), f"column {column.name} was added with a default"
    return added, None


def _is_same_type(old: Column, new: Column) -> bool:
    one, other = ((c.type_code, c.charset_id, c.charset_form, c.stored_as_lob) for c in (old, new))
    return one == other


def _retyped_columns(old: Table, new: Table) -> tuple[tuple[Column, Column], ...]:
    before = {column.name: column for column in old.delivered}
    both = ((before[c.name], c) for c in new.delivered if c.name in before)
    return tuple((one, other) for one, other in both if _size(one) != _size(other))


def _size(column: Column) -> tuple[int | None, ...]:
    return column.length, column.char_length, column.precision, column.scale


def _segment_fault(old: Table, new: Table, statements: Sequence[Statement]) -> str | None:
    text = " ".join(statement.text.upper() for statement in statements)
    if _FILLS.search(text):
        return "rows of a partition were truncated or exchanged"
    before, after = _segments(old), _segments(new)
    swapped = any(data and after.get(obj, data) != data for obj, data in before.items())
    if swapped and not _KEEPS.search(text):
        return "its segment was replaced: TRUNCATE, EXCHANGE or MOVE without a logged statement"
    return None


def _segments(table: Table) -> dict[int, int]:
    """DATAOBJ# by OBJ# of the table and its partitions; 0 = none."""
    parts = dict(zip(table.partitions, table.segments, strict=False))
    return {table.obj: table.dataobj or 0, **parts}


def _dropped_partitions(
    old: Table, new: Table, statements: Sequence[Statement]
) -> OlrPgError | None:
    gone = set(old.partitions) - set(new.partitions)
    text = " ".join(statement.text.upper() for statement in statements)
    if not gone or _KEEPS.search(text):
        return None
    numbers = ", ".join(map(str, sorted(gone)))
    return OlrPgError(Code.PARTITION_DROPPED, f"partitions {numbers}", table=old.full_name)
