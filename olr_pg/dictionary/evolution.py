"""Determines what a changed table definition means for a copy of the table, such as the table of
the target.

The rule: if the definitions and the statement describe a change completely, it is a step that the
copy can follow (`Step`). If a change affects rows without redo for each row, the table stops,
because it is unknown which rows the copy should have. The target's configuration (`apply.ddl`)
decides whether a step is applied, ignored, or stops the table.

=====================================================  ==========================================
DDL                                                    consequence
=====================================================  ==========================================
grants, statistics                                     nothing (the definition stays the same)
comments                                               COMMENT
first row of a deferred segment, MOVE, SHRINK          nothing
ADD column                                             ADD_COLUMN. SYS.ECOL$ contains the default
                                                       for existing rows. If the redo does not
                                                       contain it: stop. If Oracle wrote it into
                                                       each row: only for an empty copy
ADD identity column                                    ADD_COLUMN (only for an empty copy) and
                                                       IDENTITY_COLUMN
virtual column added, altered or dropped               VIRTUAL_COLUMN
indexes, keys, checks                                  INDEX, CONSTRAINT
MODIFY of length, precision, scale; DATE to TIMESTAMP  MODIFY_COLUMN; no effect if the column's
                                                       type in the target stays the same
MODIFY to another type                                 stop: the converted values are unknown
NOT NULL added or dropped, also by a key               NOT_NULL
DROP COLUMN, SET UNUSED                                DROP_COLUMN
RENAME COLUMN                                          RENAME_COLUMN
ENCRYPT, DECRYPT of a column                           stop: the values in existing rows are
                                                       unknown
TRUNCATE TABLE                                         TRUNCATE
ADD partition of ranges or lists                       ADD_PARTITION
ADD, SPLIT, MERGE, RENAME partition; new interval      the rows stay the same. REGROUP, if other
                                                       partitions hold them now
MOVE, SPLIT, MERGE … INCLUDING ROWS WHERE …            stop: the redo does not show which rows
                                                       were removed
ADD or MODIFY of an external partition                 stop: its rows are in files
TRUNCATE PARTITION                                     TRUNCATE_PARTITION; stop if the dictionary
                                                       does not contain the partition's name
DROP PARTITION                                         DROP_PARTITION, and REGROUP: later rows of
                                                       its range belong to another partition
EXCHANGE PARTITION                                     If both tables are replicated:
                                                       EXCHANGE_PARTITION for the partitioned
                                                       table, EXCHANGE_TABLE for the other one.
                                                       Else stop
a segment was replaced or a partition is gone, but no  stop
statement was logged
DROP TABLE, also into the recycle bin                  DROP_TABLE
RENAME TO                                              If both names are replicated and new
                                                       tables are added automatically:
                                                       RENAME_TABLE for the old name, TAKE_NAME
                                                       for the new one. Else stop
two tables exchange their names in one transaction     the same, as one exchange
(DBMS_REDEFINITION)
CREATE TABLE with the name of a dropped table          the column steps between both definitions,
                                                       and CREATE_AGAIN; stop if it was created
                                                       with rows
CREATE TABLE with the former name of a renamed table   CREATE_AGAIN; stop if it was created with
                                                       rows
FLASHBACK TABLE … TO BEFORE DROP                       stop: the rows are restored without redo
a change that makes the table unsupported              stop; no later change is decoded
=====================================================  ==========================================
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.dictionary.beside_columns import IDENTITY, NOTHING
from olr_pg.dictionary.inventory import Constraint, InventoryIndex
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from olr_pg.dictionary.beside_columns import BesideColumns
    from olr_pg.dictionary.committed_changes import Statement
    from olr_pg.dictionary.model import Column, Table

DROP_TABLE: Final = 12
ALTER_TABLE: Final = 15
TRUNCATE_TABLE: Final = 85
RECYCLE_BIN: Final = "BIN$"
"""Prefix of the name of a table in the recycle bin (dictionary §2.1)."""
ROW_COMMANDS: Final = {
    DROP_TABLE: "DROP TABLE",
    ALTER_TABLE: "ALTER TABLE",
    TRUNCATE_TABLE: "TRUNCATE TABLE",
}
"""The commands that can change a table's rows or columns (redo-format §8.1)."""

RENAMED: Final = "renamed"
REWRITTEN: Final = "rewritten"
REPLACED: Final = "replaced"
SWAPPED: Final = "swapped"
"""See `Step.verb`."""

UNKNOWN_DDL: Final = Code.DDL_NOT_FOLLOWED
"""The error for a DDL whose effect on the definition is unknown."""
ENDING: Final = frozenset((UNKNOWN_DDL, Code.TABLE_NOT_REPLICABLE_NOW))
"""The errors after which no change of the table is decoded. An operator cannot skip them, because
the table would look as if it were replicated.
"""

_PART = r"(?:SUB)?PARTITION"
_EMPTIES: Final = re.compile(rf"\bTRUNCATE\s+{_PART}S?\b")
_EXCHANGES: Final = re.compile(rf"\bEXCHANGE\s+{_PART}\b")
_FILTERS: Final = re.compile(r"\bINCLUDING\s+ROWS\b")
"""Matches MOVE, SPLIT and MERGE with a condition. Such statements remove all other rows without
redo for each row.
"""
_HEAD: Final = re.compile(r'^\s*ALTER\s+TABLE\s+(?:(?:""|[\w$#]+)\s*\.\s*)?(?:""|[\w$#]+)')
"""Matches the beginning of ALTER TABLE, up to the table's name."""
_DROPS: Final = re.compile(rf"\bDROP\s+{_PART}S?\b|\bMODIFY\s+PARTITION\s+BY\b")
_KEEPS: Final = re.compile(
    rf"\b(?:MOVE|SHRINK|SPLIT\s+{_PART}|MERGE\s+{_PART}S?|COALESCE\s+{_PART}|ENABLE\s+ROW)\b"
)


_FILES: Final = re.compile(
    rf"\b(?:ADD|MODIFY)\s+{_PART}\b.*(?:\bEXTERNAL\b|\bLOCATION\s*\()", re.DOTALL
)
"""Matches a statement that adds an external partition to a hybrid partitioned table, or changes its
files (VLDB and Partitioning Guide, “Managing Hybrid Partitioned Tables”).
"""

_IDENTITY_SEQUENCE: Final = re.compile(rf"{re.escape(IDENTITY)}\d+")

_DATE: Final = 12
_TIMESTAMP: Final = 180
"""COL$.TYPE#. If a DATE becomes a TIMESTAMP, existing rows keep the 7 bytes of the DATE, which are
also a valid TIMESTAMP.
"""


class DdlKind(Enum):
    """The kinds of steps that a copy can follow. The values are the keys of `apply.ddl`. Four kinds
    have no key there.

    CREATE_AGAIN has no key, because the key of the preceding DROP_TABLE decides: this step
    completes a table that is created again after a DROP that the copy has followed. REGROUP has no
    key, because it changes no row (`partition_groups`). TAKE_NAME and
    EXCHANGE_TABLE have no key, because the key of the other table's step (RENAME_TABLE or
    EXCHANGE_PARTITION) decides.
    """

    ADD_COLUMN = "add-column"
    DROP_COLUMN = "drop-column"
    RENAME_COLUMN = "rename-column"
    MODIFY_COLUMN = "modify-column"
    NOT_NULL = "not-null"
    TRUNCATE = "truncate"
    TRUNCATE_PARTITION = "truncate-partition"
    DROP_PARTITION = "drop-partition"
    ADD_PARTITION = "add-partition"
    REGROUP = "regroup"
    DROP_TABLE = "drop-table"
    VIRTUAL_COLUMN = "virtual-column"
    IDENTITY_COLUMN = "identity-column"
    COMMENT = "comment"
    INDEX = "index"
    CONSTRAINT = "constraint"
    CREATE_AGAIN = "create-again"
    RENAME_TABLE = "rename-table"
    TAKE_NAME = "take-name"
    EXCHANGE_PARTITION = "exchange-partition"
    EXCHANGE_TABLE = "exchange-table"


OF_TWO: Final = frozenset((
    DdlKind.RENAME_TABLE, DdlKind.TAKE_NAME, DdlKind.EXCHANGE_PARTITION, DdlKind.EXCHANGE_TABLE,
))  # fmt: skip
"""The steps that concern two tables of the target. Each of the two tables gets one of these steps
in its own history.
"""


class Step(NamedTuple):
    """A step that a copy can follow.

    Attributes:
        before: the column before the change; None if it did not exist.
        after: the column after the change; None if it does not exist any more.
        partition: the name of the partition of the step; empty if unknown. For REGROUP, an empty
            name means that it is unknown for every partition which rows it has now.
        sources: for REGROUP, the former names of the partitions whose rows belong to `partition`
            now; empty if no partition has the name `partition` any more.
        others: for TRUNCATE_PARTITION, DROP_PARTITION and EXCHANGE_PARTITION, the names of the
            table's other partitions, which keep their rows; an empty name if one is unknown. If a
            statement has several such steps, only the first has them. For ADD_PARTITION, the names
            of the partitions before it.
        table: ``OWNER.NAME`` of the other table of a step that concerns two tables (`OF_TWO`).
        text: for COMMENT, the comment; for VIRTUAL_COLUMN, the expression; for IDENTITY_COLUMN, the
            sequence; for ADD_COLUMN, the default that Oracle wrote into each existing row; for a
            renamed index or constraint, the old name; for ADD_PARTITION, the end of its range or
            the values of its list, as Oracle's SQL.
        verb: for ADD_PARTITION, ``range`` or ``list``. For VIRTUAL_COLUMN, RENAMED if only its name
            changed. For INDEX and CONSTRAINT, what was done to the index or constraint, such as
            ``dropped``. REWRITTEN: only names of columns and tables in its definition changed,
            because they were renamed; also for COMMENT, if the comment has not changed, but its
            column is created again. REPLACED: the primary key of a dropped table; the copy gets the
            new table's primary key by CREATE_AGAIN. For RENAME_TABLE and TAKE_NAME, SWAPPED if the
            two tables exchanged their names in one transaction.
        structure: for INDEX and CONSTRAINT, the index or constraint; its former definition if it
            was dropped or disabled.
        is_first: whether this is the first of the two steps for an altered index or constraint. The
            first step removes the former definition, the second adds the new one.
    """

    kind: DdlKind
    before: Column | None = None
    after: Column | None = None
    partition: str = ""
    table: str = ""
    text: str = ""
    verb: str = ""
    structure: Constraint | InventoryIndex | None = None
    is_first: bool = False
    sources: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return a description of the step as a change in the source."""
        column = self.after or self.before
        name = "" if column is None else column.name
        match self.kind:
            case DdlKind.ADD_COLUMN:
                return f"column {name} was added"
            case DdlKind.DROP_COLUMN:
                return f"column {name} was dropped or set unused"
            case DdlKind.RENAME_COLUMN:
                return f"column {self.before.name if self.before else ''} was renamed to {name}"
            case DdlKind.MODIFY_COLUMN:
                return f"the type of column {name} changed"
            case DdlKind.NOT_NULL:
                may = self.after is not None and self.after.nullable
                return f"column {name} {'may be NULL now' if may else 'was made NOT NULL'}"
            case DdlKind.TRUNCATE:
                return "the table was truncated"
            case DdlKind.TRUNCATE_PARTITION:
                return f"partition {self.partition} was truncated"
            case DdlKind.DROP_PARTITION:
                return f"partition {self.partition or 'of an unknown name'} was dropped"
            case DdlKind.ADD_PARTITION:
                return f"partition {self.partition} was added"
            case DdlKind.REGROUP:
                return self._regrouped()
            case DdlKind.DROP_TABLE:
                return "the table was dropped"
            case DdlKind.CREATE_AGAIN:
                return (
                    "the table was created again under the name that it had before it was dropped"
                )
            case DdlKind.RENAME_TABLE | DdlKind.TAKE_NAME:
                return self._renamed()
            case _:
                return self._beside(name)

    def _renamed(self) -> str:
        if self.verb == SWAPPED:
            return f"the name of the table was exchanged with that of {self.table}"
        if self.kind is DdlKind.RENAME_TABLE:
            return f"the table was renamed to {self.table}"
        return f"{self.table} was renamed to it"

    def _regrouped(self) -> str:
        if not self.partition:
            return "rows moved between its partitions"
        if not self.sources:
            return f"there is no partition {self.partition} any more"
        return f"partition {self.partition} has the rows of {', '.join(self.sources)}"

    def _beside(self, name: str) -> str:
        """Describe a step that does not concern stored columns."""
        called = self.structure.name if self.structure else ""
        match self.kind:
            case DdlKind.VIRTUAL_COLUMN:
                if self.verb == RENAMED and self.before:
                    return f"virtual column {self.before.name} was renamed to {name}"
                done = "was dropped" if self.after is None else "was added"
                return f"virtual column {name} {done if self.is_whole else 'was altered'}"
            case DdlKind.IDENTITY_COLUMN:
                done = "became an identity column" if self.after else "is no identity column now"
                return f"column {name} {done}"
            case DdlKind.COMMENT:
                return f"the comment on {f'column {name}' if name else 'the table'} changed"
            case DdlKind.EXCHANGE_PARTITION:
                name = self.partition or "of an unknown name"
                return f"partition {name} was exchanged with table {self.table}"
            case DdlKind.EXCHANGE_TABLE:
                name = self.partition or "of an unknown name"
                return f"the table was exchanged with partition {name} of {self.table}"
            case _:
                what = self.structure.kind if isinstance(self.structure, Constraint) else "index"
                return f"{what} {called} was {self.verb}"

    @property
    def is_whole(self) -> bool:
        """Return whether the step adds or drops a column, instead of altering it."""
        return (self.before is None) != (self.after is None)


class Evolution(NamedTuple):
    """The meaning of a DDL for the copy.

    Attributes:
        steps: the steps that the copy can follow, in order.
        error: the error with which the table stops; None if it does not stop.
    """

    steps: tuple[Step, ...] = ()
    error: OlrPgError | None = None

    def then(self, steps: Sequence[Step]) -> Evolution:
        """Add steps, unless the table was dropped."""
        is_over = any(step.kind is DdlKind.DROP_TABLE for step in self.steps)
        return self if is_over else self._replace(steps=(*self.steps, *steps))

    @property
    def stops(self) -> bool:
        """Whether the copy cannot follow this change, so that the table stops."""
        return self.error is not None

    @property
    def concerns_two(self) -> bool:
        """Whether a step concerns two tables (`OF_TWO`)."""
        return any(step.kind in OF_TWO for step in self.steps)

    @property
    def filled(self) -> Step | None:
        """The step that adds a column whose default Oracle wrote into each existing row; None if
        there is none.
        """
        added = (step for step in self.steps if step.kind is DdlKind.ADD_COLUMN)
        return next((step for step in added if step.text), None)

    def __str__(self) -> str:
        """Return a description of the steps as changes in the source."""
        return "; ".join(map(str, self.steps)) or "no change that affects a copy"


def judge(
    old: Table,
    new: Table | None,
    statements: Sequence[Statement],
    with_default: frozenset[int] = frozenset(),
    parts: Mapping[int, str] = MappingProxyType({}),
    beside: tuple[BesideColumns, BesideColumns] = (NOTHING, NOTHING),
) -> Evolution:
    """Determine what the change from `old` to `new` means for a copy.

    Args:
        old, new: the definitions; `new` is None if the table was dropped.
        statements: the DDL statements on the table that belong to the change.
        with_default: INTCOL# of new columns that were added with a default.
        parts: names of the table's partitions by OBJ#, before the change.
        beside: the table's comments, default texts, constraints and indexes before and after.
    """
    if is_dropped(new):
        return Evolution((Step(DdlKind.DROP_TABLE),))
    assert new is not None
    if new.refusal is not None:
        return refused_now(new, statements, old)
    if (new.owner, new.name) != (old.owner, old.name):
        return _stop(Code.TABLE_GONE, f"the table was renamed to {new.full_name}", old, statements)
    columns = _Columns.of(old, new)
    fault = _column_fault(old, new, columns, with_default)
    if fault is not None:
        return _stop(Code.COLUMNS_CHANGED, fault, old, statements)
    around = _Beside(old, new, *beside, renamed_columns(old, new))
    steps = (
        *around.first(),
        *_column_steps(columns, around.filled(with_default)),
        *around.last(),
    )
    if any(statement.command == TRUNCATE_TABLE for statement in statements):
        return Evolution((Step(DdlKind.TRUNCATE), *steps))
    text = " ".join(_HEAD.sub("", statement.words) for statement in statements)
    emptied = _replaced_segments(old, new) if _EMPTIES.search(text) else set[int]()
    unnamed = emptied - parts.keys()
    fault = _segment_fault(old, new, text, unnamed)
    if fault is not None:
        return _stop(Code.ROWS_CHANGED_BY_DDL, fault, old, statements)
    gone = set(old.partitions) - set(new.partitions)
    if _keeps_rows(text):
        gone = set()
    dropped = [Step(DdlKind.DROP_PARTITION, partition=parts.get(o, "")) for o in sorted(gone)]
    emptied_parts = [Step(DdlKind.TRUNCATE_PARTITION, partition=parts[o]) for o in sorted(emptied)]
    first, *rest = (*emptied_parts, *dropped, *steps) or (None,)
    if emptied_parts or dropped:
        assert first is not None
        kept = [obj for obj in old.partitions if obj not in emptied | gone]
        first = first._replace(others=tuple(parts.get(obj, "") for obj in kept))
    return Evolution(() if first is None else (first, *rest))


def changes_files(statements: Iterable[Statement]) -> bool:
    """Return whether a statement changes the files of an external partition, and with them rows of
    the table. Such a statement need not change an object of the table.
    """
    return any(_FILES.search(statement.words) for statement in statements)


def _keeps_rows(text: str) -> bool:
    """Return whether a clause keeps all rows although segments or partitions change.

    The name of a partition or column can be one of the words of `_KEEPS` too, as in ``DROP
    PARTITION MOVE``.
    """
    return bool(_KEEPS.search(text)) and not _DROPS.search(text)


def is_dropped(table: Table | None) -> bool:
    """Return whether a table was dropped or is in the recycle bin (dictionary §2.1)."""
    return table is None or table.name.startswith(RECYCLE_BIN)


def judge_again(
    old: Table | None,
    new: Table,
    statements: Sequence[Statement],
    *,
    empty: bool,
    beside: tuple[BesideColumns, BesideColumns] = (NOTHING, NOTHING),
) -> Evolution:
    """Determine the effect on a copy if a table is created under the name of a dropped table.

    Args:
        old: the last definition of the dropped table, whose copy is empty now; None if the last
            table of that name was renamed instead, so that no copy has this name.
        statements: the statements that created the new table.
        empty: whether the new table was created without rows.
        beside: the comments, default texts, constraints and indexes of the old table, and of the
            new table.
    """
    if new.obstacle is not None:
        reason = f"the table was created again: {new.obstacle}"
        return _stop(Code.TABLE_NOT_REPLICABLE_NOW, reason, new, statements)
    if not empty:
        reason = (
            "the table was created again with rows that the redo does not contain;"
            " load the table again"
        )
        return _stop(Code.TABLE_GONE, reason, new, statements, load_again(new.full_name))
    if old is None:
        return Evolution((Step(DdlKind.CREATE_AGAIN),))
    before = {column.name: column for column in old.delivered}
    after = {column.name: column for column in new.delivered}
    kept = {
        name
        for name in before.keys() & after.keys()
        if _is_same_type(before[name], after[name]) and _size(before[name]) == _size(after[name])
    }
    gone = [Step(DdlKind.DROP_COLUMN, one) for name, one in before.items() if name not in kept]
    both = [(before[name], after[name]) for name in after if name in kept]
    may = [Step(DdlKind.NOT_NULL, *pair) for pair in both if pair[0].nullable != pair[1].nullable]
    came = [Step(DdlKind.ADD_COLUMN, None, one) for name, one in after.items() if name not in kept]
    moved = [Step(DdlKind.REGROUP)] if new.partitions else []
    # The copy loses the virtual columns, indexes and constraints that use a dropped column.
    virtual = [one for one in _seen(old) if one.virtual] if gone else []
    stays = replace(old, columns=tuple(one for one in old.columns if one not in virtual))
    around = _Beside(stays, new, *beside, {})
    removed, added = _structure_again(*beside, kept, is_whole=not gone)
    without = [Step(DdlKind.VIRTUAL_COLUMN, one) for one in virtual]
    before_it = (*removed, *without, *around.first(), *gone, *may, *came)
    again = Step(DdlKind.CREATE_AGAIN)
    return Evolution((*before_it, again, *moved, *around.columns(), *added))


def _structure_again(
    before: BesideColumns, after: BesideColumns, kept: Set[str], *, is_whole: bool
) -> tuple[list[Step], list[Step]]:
    """Return the steps that remove the indexes and constraints of a dropped table, and the steps
    that add the indexes and constraints of the new table. If both tables have the same index or
    constraint, no step concerns it.

    The definitions decide whether an object is the same, because its number has changed, and its
    name too if Oracle has generated it. CREATE_AGAIN replaces the primary key, which replication
    needs at once.

    Args:
        kept: the columns that the copy keeps.
        is_whole: whether the copy keeps every column.
    """
    removed, added = list[Step](), list[Step]()
    for kind, olds, news in (
        (DdlKind.CONSTRAINT, before.constraints, after.constraints),
        (DdlKind.INDEX, before.indexes, after.indexes),
    ):
        left = {one.name: one for one in news.values() if _holds(one) and not _is_primary(one)}
        names = {one.name for one in olds.values()}
        for was in filter(_holds, olds.values()):
            if _is_primary(was):
                removed.append(Step(kind, verb=REPLACED, structure=was))
                continue
            same = [
                one
                for one in left.values()
                if (one.name == was.name or one.name not in names)
                and _stays(was, one, kept, is_whole=is_whole)
            ]
            if not same:
                removed.append(Step(kind, verb="dropped", structure=was))
                continue
            now = left.pop(min(same, key=lambda one: one.name != was.name).name)
            if now.name != was.name:
                added.append(Step(kind, text=was.name, verb=RENAMED, structure=now))
        added += [Step(kind, verb="added", structure=one) for one in left.values()]
    return removed, added


def _is_primary(one: Constraint | InventoryIndex) -> bool:
    return isinstance(one, Constraint) and one.kind == "primary key"


def _stays(
    was: Constraint | InventoryIndex,
    now: Constraint | InventoryIndex,
    kept: Set[str],
    *,
    is_whole: bool,
) -> bool:
    """Return whether the new table has the same object as the dropped table, so that the copy keeps
    the object.
    """
    if isinstance(was, Constraint):
        used = set(was.columns)
    else:
        used = {part.text for part in was.parts if not part.expression}
        is_whole = is_whole or not any(part.expression for part in was.parts)
        if not is_whole:
            return False
    return used <= kept and _state(was) == _state(now) and _named(was) == _named(now)


def renamed(old: Table, new: Table) -> tuple[Evolution, Evolution]:
    """Return what a rename means: (for the copy with the old name, for the copy with the new
    name).
    """
    return (
        Evolution((Step(DdlKind.RENAME_TABLE, table=new.full_name),)),
        Evolution((Step(DdlKind.TAKE_NAME, table=old.full_name),)),
    )


def swapped(before: Table, *, is_first: bool) -> Evolution:
    """Return the step for a copy whose source table exchanges its name with another table in one
    transaction, as at the end of DBMS_REDEFINITION.

    Args:
        before: the table with the name that it had; now the other table has this name.
        is_first: whether this is the first of the events of the two names.
    """
    kind = DdlKind.RENAME_TABLE if is_first else DdlKind.TAKE_NAME
    return Evolution((Step(kind, table=before.full_name, verb=SWAPPED),))


class Exchange(NamedTuple):
    """A partition and a table that have exchanged their segments.

    Attributes:
        parted, other: OBJ# of the partitioned table, and of the other table.
        part: OBJ# of the partition.
    """

    parted: int
    part: int
    other: int


def find_exchanges(before: Mapping[int, Table], after: Mapping[int, Table]) -> Iterator[Exchange]:
    """Yield the exchanges of a partition's segment with a table's segment by a transaction.

    Args:
        before, after: the changed tables before and after the transaction, by OBJ#.
    """
    own = {obj: table.dataobj for obj, table in before.items() if table.dataobj}
    for obj, table in before.items():
        now = _segments(after[obj])
        for part, segment in _segments(table).items():
            for other, theirs in own.items():
                if part == obj or other == obj or not segment:
                    continue
                if (now.get(part), after[other].dataobj) == (theirs, segment):
                    yield Exchange(obj, part, other)


def exchanged(
    parted: Table, partition: str, other: Table, others: tuple[str, ...]
) -> tuple[Evolution, Evolution]:
    """Return what an exchange means: (for the partitioned table, for the other table).

    Args:
        others: see `Step.others`.
    """
    first = Step(DdlKind.EXCHANGE_PARTITION, partition=partition, table=other.full_name)
    second = Step(DdlKind.EXCHANGE_TABLE, partition=partition, table=parted.full_name)
    return Evolution((first._replace(others=others),)), Evolution((second,))


def unknown_half(step: Step, table: str, statement: str) -> OlrPgError:
    """Return the error with which a table stops if the other table of a step is not replicated.

    Args:
        table: ``OWNER.NAME`` of the table that stops.
    """
    words = f" ({statement[:500]})" if statement else ""
    if step.kind in (DdlKind.EXCHANGE_PARTITION, DdlKind.EXCHANGE_TABLE):
        return OlrPgError(
            Code.ROWS_CHANGED_BY_DDL,
            f"{step}, which is not replicated{words}",
            action="stop the appliance and load the table again: `olr-pg initial-load --anew"
            f" --table {shlex.quote(table)}`. Or copy the rows of {step.table} as of that SCN into"
            " a table of the target, exchange the partition and this table there, then run"
            " `olr-pg errors skip`",
            table=table,
        )
    if step.kind is DdlKind.RENAME_TABLE:
        return OlrPgError(
            Code.TABLE_NOT_REPLICABLE_NOW,
            f"{step}, which is not replicated{words}",
            action=f"remove {table} from `apply.tables`. To continue replicating the table, run"
            f" `olr-pg tables add {shlex.quote(step.table)}`, which loads the table under its new"
            " name",
            table=table,
        )
    return OlrPgError(
        Code.TABLE_GONE,
        f"{step}, whose rows are not replicated{words}",
        action=load_again(table),
        table=table,
    )


def load_again(table: str) -> str:
    """Return the advice to load a table again.

    Args:
        table: ``OWNER.NAME``.
    """
    return (
        "add the columns that the target table lacks. Then stop the appliance and load the"
        f" table again: `olr-pg initial-load --anew --table {shlex.quote(table)}`"
    )


def filled_rows(step: Step, table: str) -> OlrPgError:
    """Return the error with which a table stops if Oracle wrote the default of a new column into
    each existing row.

    Args:
        step: the step that adds the column.
        table: ``OWNER.NAME``.
    """
    return OlrPgError(
        Code.COLUMNS_CHANGED,
        f"{step} with the default {step.text[:200]}, which the source wrote into each existing"
        " row; load the table again",
        action=load_again(table),
        table=table,
    )


def flashed_back(table: Table, statements: Sequence[Statement]) -> Evolution:
    """Return the evolution of a table that was restored from the recycle bin, together with its
    rows.
    """
    reason = "the table was restored from the recycle bin with its rows; load the table again"
    return _stop(Code.TABLE_GONE, reason, table, statements, load_again(table.full_name))


def refused_now(
    table: Table, statements: Sequence[Statement], before: Table | None = None
) -> Evolution:
    """Return the evolution for a statement after which the table cannot be replicated.

    Args:
        table: the new definition, which has a refusal.
        before: the earlier definition, if the statement may have changed the name.
    """
    reason = str(table.refusal)
    return _stop(Code.TABLE_NOT_REPLICABLE_NOW, reason, before or table, statements)


def unknown_ddl(table: Table, statement: Statement) -> Evolution:
    """Return the evolution for a statement whose effect on the dictionary is unknown.

    TRUNCATE is such a statement too: it creates segments with new, unknown numbers, which are
    needed to find the redo of direct loads and LOBs.
    """
    return _stop(UNKNOWN_DDL, ROW_COMMANDS[statement.command], table, (statement,))


def _stop(
    code: int,
    detail: str,
    table: Table,
    statements: Sequence[Statement],
    action: str | None = None,
) -> Evolution:
    texts = "; ".join(s.text for s in statements if s.text)
    if texts:
        detail = f"{detail} ({texts[:500]})"
    return Evolution((), OlrPgError(code, detail, action=action, table=table.full_name))


def renamed_columns(old: Table, new: Table) -> dict[str, str]:
    """Return the new names of renamed columns, by old name.

    A renamed column keeps its INTCOL# and SEGCOL#. A column that is added after another one was
    dropped can get the numbers of the dropped column, but only in a later transaction.
    """
    before = {column.name for column in old.columns}
    after = {column.name for column in new.columns}
    came = {(c.intcol, c.segcol): c for c in new.columns if c.name not in before and not c.hidden}
    gone = [c for c in old.columns if c.name not in after and not c.hidden]
    return {
        column.name: other.name
        for column in gone
        if (other := came.get((column.intcol, column.segcol))) and _is_same_type(column, other)
    }


class _Columns(NamedTuple):
    """The delivered columns of the old and of the new definition. The keys are the columns' names
    in the old definition, or in the new one if the column is new.
    """

    before: dict[str, Column]
    after: dict[str, Column]

    @classmethod
    def of(cls, old: Table, new: Table) -> _Columns:
        names = {now: before for before, now in renamed_columns(old, new).items()}
        after = {names.get(column.name, column.name): column for column in new.delivered}
        return cls({column.name: column for column in old.delivered}, after)

    @property
    def both(self) -> list[tuple[Column, Column]]:
        return [(one, self.after[name]) for name, one in self.before.items() if name in self.after]

    @property
    def added(self) -> list[Column]:
        return [column for name, column in self.after.items() if name not in self.before]

    @property
    def gone(self) -> list[Column]:
        return [column for name, column in self.before.items() if name not in self.after]


def _column_fault(
    old: Table, new: Table, columns: _Columns, with_default: frozenset[int]
) -> str | None:
    """Return a reason if a copy cannot know the columns' values in existing rows, or None."""
    unreadable = {column.name: column.unsupported for column in new.left_out}
    for column in columns.gone:
        if column.name in unreadable:
            reason = unreadable[column.name]
            return (
                f"column {column.name} cannot be replicated any more: {reason}. Later changes of"
                " the other columns are delivered, those of this column are not"
            )
    for before, after in columns.both:
        if not _is_same_type(before, after) and not _is_widened_date(before, after):
            return f"the type of column {before.name} changed"
    was_left_out = {column.name for column in old.left_out}
    for column in columns.added:
        if column.name in was_left_out:
            return (
                f"column {column.name} can be replicated from now on, but the target"
                " lacks its earlier values; load the table again"
            )
        has_default = column.added is not None or column.intcol in with_default
        if has_default and (column.added is None or column.added.default is None):
            return f"column {column.name} was added with a default that the redo does not contain"
    return None


def _column_steps(columns: _Columns, filled: Mapping[int, str]) -> Iterator[Step]:
    """Yield the steps for stored columns: dropped columns first, added columns last.

    Args:
        filled: defaults by INTCOL#, for the columns whose default Oracle wrote into each existing
            row.
    """
    for column in columns.gone:
        yield Step(DdlKind.DROP_COLUMN, column)
    for before, after in columns.both:
        if before.name != after.name:
            yield Step(DdlKind.RENAME_COLUMN, before, after)
    for before, after in columns.both:
        if _size(before) != _size(after) or before.type_code != after.type_code:
            yield Step(DdlKind.MODIFY_COLUMN, before, after)
        if before.nullable != after.nullable:
            yield Step(DdlKind.NOT_NULL, before, after)
    for column in columns.added:
        yield Step(DdlKind.ADD_COLUMN, None, column, text=filled.get(column.intcol, ""))


class _Beside:
    """Compares the virtual and identity columns, comments, constraints and indexes of two
    definitions of a table.

    Args:
        renamed: the new names of columns, by old name.
    """

    def __init__(
        self,
        old: Table,
        new: Table,
        before: BesideColumns,
        after: BesideColumns,
        renamed: Mapping[str, str],
    ) -> None:
        self._before, self._after = before, after
        self._renamed = renamed
        self._was = {self._renamed.get(one.name, one.name): one for one in _seen(old)}
        self._now = {one.name: one for one in _seen(new)}

    def filled(self, with_default: frozenset[int]) -> dict[int, str]:
        """Return the defaults of added columns that Oracle wrote into each existing row, by
        INTCOL#.

        Oracle does not write the default of a column if it is in SYS.ECOL$, or if the column is in
        `with_default`.
        """
        return {
            column.intcol: text
            for name, column in self._now.items()
            if name not in self._was and not column.virtual
            if (text := self._after.texts.get(column.intcol, ""))
            and column.added is None
            and column.intcol not in with_default
        }

    def first(self) -> Iterator[Step]:
        """Yield the steps before the stored columns change: drop virtual columns, which can depend
        on them.
        """
        for name, column in self._was.items():
            if column.virtual and not self._is_virtual(name):
                yield Step(DdlKind.VIRTUAL_COLUMN, column)

    def last(self) -> Iterator[Step]:
        """Yield the steps after the stored columns have changed."""
        yield from self.columns()
        yield from self._structure()

    def columns(self) -> Iterator[Step]:
        """Yield the steps for columns and comments after the stored columns have changed."""
        yield from self._identities()
        altered = set[str]()
        for name, column in self._now.items():
            if not column.virtual:
                continue
            was = self._was.get(name)
            before = was if was is not None and was.virtual else None
            text = self._after.texts.get(column.intcol, "")
            if self._is_altered(before, column):
                altered.add(name)
                yield Step(DdlKind.VIRTUAL_COLUMN, before, column, text=text)
            elif before is not None and before.name != column.name:
                yield Step(DdlKind.VIRTUAL_COLUMN, before, column, text=text, verb=RENAMED)
        yield from self._comments(altered)

    def _is_virtual(self, name: str) -> bool:
        return name in self._now and self._now[name].virtual

    def _is_altered(self, before: Column | None, after: Column) -> bool:
        if before is None or not _is_same_type(before, after):
            return True
        text, known = self._after.texts.get(after.intcol), self._before.texts.get(before.intcol)
        return _size(before) != _size(after) or (text is not None and text != known)

    def _identities(self) -> Iterator[Step]:
        for name, column in self._now.items():
            was = self._was.get(name)
            sequence = _sequence(self._after.texts.get(column.intcol, ""))
            known = _sequence(self._before.texts.get(was.intcol, "")) if was else ""
            if sequence != known:
                after = column if sequence else None
                yield Step(DdlKind.IDENTITY_COLUMN, was or column, after, text=sequence or known)

    def _comments(self, altered: Set[str]) -> Iterator[Step]:
        """Yield the steps for comments that have changed, and for those that a copy loses because
        it creates a virtual column again.

        Args:
            altered: the names of virtual columns.
        """
        before = {self._renamed.get(name, name): t for name, t in self._before.comments.items()}
        after = self._after.comments
        for name in dict.fromkeys((*before, *after)):
            text, column = after.get(name, ""), self._now.get(name)
            if name and column is None:
                continue
            if before.get(name, "") != text:
                yield Step(DdlKind.COMMENT, column, column, text=text)
            elif name in altered:
                yield Step(DdlKind.COMMENT, column, column, text=text, verb=REWRITTEN)

    def _structure(self) -> Iterator[Step]:
        """Yield the steps for indexes and constraints: first those that remove one, then those that
        add, rename or rewrite one.
        """
        came = list[Step]()
        for kind, before, after in (
            (DdlKind.CONSTRAINT, self._before.constraints, self._after.constraints),
            (DdlKind.INDEX, self._before.indexes, self._after.indexes),
        ):
            for number in dict.fromkeys((*before, *after)):
                was, now = before.get(number), after.get(number)
                # No statement changes the columns, the condition or the expressions of an existing
                # index or constraint. So if they differ, it is only the new name of a column or
                # table, in the form in which Oracle writes it (dictionary §10).
                if was is not None and now is not None and _state(was) == _state(now):
                    came += _names_changed(kind, was, now)
                    continue
                if was is not None and _holds(was):
                    verb = "dropped" if now is None else "altered" if _holds(now) else "disabled"
                    yield Step(kind, verb=verb, structure=was, is_first=verb == "altered")
                if now is not None and _holds(now):
                    verb = "added" if was is None else "altered" if _holds(was) else "enabled"
                    came.append(Step(kind, verb=verb, structure=now))
        yield from sorted(came, key=lambda step: step.kind is DdlKind.INDEX)


def _names_changed(
    kind: DdlKind, was: Constraint | InventoryIndex, now: Constraint | InventoryIndex
) -> Iterator[Step]:
    """Yield the steps for an index or constraint of which only names have changed."""
    if was.name != now.name:
        yield Step(kind, text=was.name, verb=RENAMED, structure=now)
    if _named(was) != _named(now) and _holds(now):
        yield Step(kind, verb=REWRITTEN, structure=now)


def _named(one: Constraint | InventoryIndex) -> tuple[object, ...]:
    """Return the columns, tables and texts that an index or constraint names."""
    if isinstance(one, Constraint):
        parent = one.parent_owner, one.parent_table, one.parent_columns
        return one.columns, one.condition, *parent
    return one.parts


def _seen(table: Table) -> list[Column]:
    """Return the columns that are not hidden."""
    return [column for column in table.columns if not column.hidden]


def _sequence(default: str) -> str:
    """Return the sequence in the default of an identity column; empty for any other default."""
    found = _IDENTITY_SEQUENCE.search(default)
    return found.group() if found else ""


def _state(one: Constraint | InventoryIndex) -> tuple[object, ...]:
    """Return the properties of an index or constraint that statements can change."""
    if isinstance(one, Constraint):
        return one.kind, one.enabled, one.deferrable, one.deferred, one.delete_rule
    return one.kind, one.unique, one.usable


def _holds(one: Constraint | InventoryIndex) -> bool:
    """Return whether a constraint is enabled, or an index usable."""
    return one.enabled if isinstance(one, Constraint) else one.usable


def _is_same_type(old: Column, new: Column) -> bool:
    one, other = ((c.type_code, c.charset_id, c.charset_form, c.stored_as_lob) for c in (old, new))
    return one == other


def _is_widened_date(old: Column, new: Column) -> bool:
    return (old.type_code, new.type_code) == (_DATE, _TIMESTAMP)


def _size(column: Column) -> tuple[int | None, ...]:
    return column.length, column.char_length, column.precision, column.scale


def _segment_fault(old: Table, new: Table, text: str, unnamed: set[int]) -> str | None:
    """Return a reason if unknown rows were added or removed, or None.

    Args:
        unnamed: OBJ# of truncated partitions without a known name.
    """
    if unnamed or (_EMPTIES.search(text) and not _replaced_segments(old, new)):
        return "rows of a partition were truncated"
    if _EXCHANGES.search(text):
        return "rows of a partition were exchanged"
    if _FILTERS.search(text):
        return "rows that do not fulfil a condition (INCLUDING ROWS) were left out"
    if _FILES.search(text):
        return "an external partition was added or changed, whose rows are in files"
    if _replaced_segments(old, new) and not (_keeps_rows(text) or _EMPTIES.search(text)):
        return (
            "the segment of the table was replaced: TRUNCATE, EXCHANGE or MOVE without a logged"
            " statement"
        )
    if not text and set(old.partitions) - set(new.partitions):
        return "a partition is gone: DROP, SPLIT or MERGE without a logged statement"
    return None


def _replaced_segments(old: Table, new: Table) -> set[int]:
    """Return OBJ# of the objects whose segment was replaced."""
    after = _segments(new)
    return {obj for obj, data in _segments(old).items() if data and after.get(obj, data) != data}


def _segments(table: Table) -> dict[int, int]:
    """Return DATAOBJ# by OBJ# for the table and its partitions; 0 for an object without a
    segment.
    """
    parts = dict(zip(table.partitions, table.segments, strict=False))
    return {table.obj: table.dataobj or 0, **parts}
