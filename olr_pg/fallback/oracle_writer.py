"""Writes net changes to Oracle, with one array of binds for each table, operation and set of
columns.

A change is a conflict if its row is missing, or if an inserted row already exists.
`fallback.on-conflict` is the policy for conflicts, like `apply.on-conflict` for the replication
from Oracle. A conflict can be resolved only for a change that is written alone. So if a batch has a
conflict, the caller applies its changes one by one.

The net change of each row of a table within a batch is computed from pgoutput's messages. Rows are
identified by the bytes of their key. Oracle's array binds do not guarantee an order between rows.
So the changes of a segment are written in this order: deletes, updates, inserts. An update that
changes a key ends the segment. Updates that change keys form a segment of their own, and are
written in the order in which they were made.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb

from olr_pg.applier.settings import ConflictPolicy
from olr_pg.dictionary.true_charsets import is_explicit, is_whole
from olr_pg.errors import Code, OlrPgError, located
from olr_pg.fallback.oracle_ledger import ROW_EXISTS, ROW_MISSING, Record
from olr_pg.fallback.pgoutput import BINARY, NULL, TEXT, UNCHANGED, Delete, Insert, Row, Update
from olr_pg.fallback.relation_plans import RelationPlan, quoted
from olr_pg.observability.wording import counted
from olr_pg.oracle.key_cuts import CLOB_OF_BYTES, TEXT_OF_BYTES, joined_texts
from olr_pg.oracle.oracle_connection import of_whole_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from olr_pg.dictionary.model import Table
    from olr_pg.fallback.way_back import BoundValues


Key = tuple[bytes | None, ...]


class RowWrite(NamedTuple):
    """Rows that one statement writes.

    Attributes:
        columns: numbers of the columns that the statement sets; empty for a DELETE.
        keys: the key of each row; empty for an INSERT.
        rows: the values of all columns of each row.
        is_ordered: whether the rows must be written in the order of `rows`.
    """

    operation: str
    columns: tuple[int, ...]
    keys: list[Key]
    rows: list[tuple[bytes | None, ...]]
    is_ordered: bool = False


class _Net:
    """The net change of one row.

    Attributes:
        is_deleted: whether the row existed before the batch and must be deleted first.
        is_new: whether to insert `row`; otherwise the existing row is updated.
    """

    __slots__ = ("is_deleted", "is_new", "row")

    def __init__(self, row: Row | None, *, is_deleted: bool, is_new: bool) -> None:
        self.row = row
        self.is_deleted = is_deleted
        self.is_new = is_new


class NetRows:
    """Changes of one table; changes with the same key are combined to one net change.

    Args:
        key: numbers of the key's columns in the row of the relation.
        count: number of columns of the relation.
        name: ``OWNER.NAME``, for errors.
        is_key_logged: whether PostgreSQL sends the old key of each row whose key changes.

    Attributes:
        changes: number of changes added.
        size: bytes of the values added.
    """

    def __init__(
        self, key: Sequence[int], count: int, name: str, *, is_key_logged: bool = True
    ) -> None:
        self._key = tuple(key)
        self._is_key_logged = is_key_logged
        self._count = count
        self._name = name
        self._segments: list[RowWrite | dict[Key, _Net]] = []
        self.changes = 0
        self.size = 0

    def add(self, change: Insert | Update | Delete) -> None:
        """Add one change.

        Raises:
            OlrPgError: 7311 the change lacks the row's key, 7312 a value is not in binary form.
        """
        self.changes += 1
        if isinstance(change, Insert):
            self._insert(self._checked(change.new))
        elif isinstance(change, Delete):
            self._delete(self._checked(change.old))
        else:
            self._update(change)

    def writes(self) -> Iterator[RowWrite]:
        """Yield the writes in the order in which they must be executed."""
        for segment in self._segments:
            if isinstance(segment, RowWrite):
                yield segment
            else:
                yield from self._folded(segment)

    def _insert(self, row: Row) -> None:
        key, nets = self._key_of(row), self._nets()
        before = nets.get(key)
        if before is not None and before.row is not None:
            nets, before = self._new_nets(), None
        deleted = before is not None and before.is_deleted
        nets[key] = _Net(row, is_deleted=deleted, is_new=True)

    def _delete(self, old: Row) -> None:
        key = self._key_of(old)
        nets, before = self._known(key, old)
        if before is not None and before.is_new and not before.is_deleted:
            del nets[key]
        else:
            nets[key] = _Net(None, is_deleted=True, is_new=False)

    def _update(self, change: Update) -> None:
        new = self._checked(change.new)
        old = None if change.old is None else self._checked(change.old)
        if old is None and not self._is_key_logged:
            raise OlrPgError(
                Code.FALLBACK_ROW_WITHOUT_KEY,
                "the replica identity of the updated table does not contain the key",
                table=self._name,
            )
        if old is not None:
            new = _filled(new, old, self._key)
        key = self._key_of(new)
        old_key = key if old is None else self._key_of(old)
        if old_key != key:
            self._move(old_key, new)
            return
        nets, before = self._known(key, old)
        if before is not None and before.row is not None:
            row = _merged(new, before.row)
            nets[key] = _Net(row, is_deleted=before.is_deleted, is_new=before.is_new)
        else:
            nets[key] = _Net(new, is_deleted=False, is_new=False)

    def _move(self, old_key: Key, row: Row) -> None:
        columns = _sent(row)
        last = self._segments[-1] if self._segments else None
        if isinstance(last, RowWrite) and last.columns == columns:
            last.keys.append(old_key)
            last.rows.append(row.values)
        else:
            self._segments.append(
                RowWrite("UPDATE", columns, [old_key], [row.values], is_ordered=True)
            )

    def _nets(self) -> dict[Key, _Net]:
        last = self._segments[-1] if self._segments else None
        return last if isinstance(last, dict) else self._new_nets()

    def _known(self, key: Key, old: Row | None) -> tuple[dict[Key, _Net], _Net | None]:
        """Return the segment for a change of the row `old`, and the row's earlier change in it."""
        nets = self._nets()
        before = nets.get(key)
        if before is not None and (before.row is None or not _is_same(before.row, old)):
            return self._new_nets(), None
        return nets, before

    def _new_nets(self) -> dict[Key, _Net]:
        """Begin a segment. A change that contradicts the row's earlier change is not combined with
        it: Oracle must see both and refuse one. PostgreSQL can contain two rows with the same key,
        because it need not have Oracle's key.
        """
        nets: dict[Key, _Net] = {}
        self._segments.append(nets)
        return nets

    def _folded(self, nets: dict[Key, _Net]) -> Iterator[RowWrite]:
        deleted = [key for key, net in nets.items() if net.is_deleted]
        if deleted:
            yield RowWrite("DELETE", (), deleted, [])
        for operation in ("UPDATE", "INSERT"):
            groups: dict[tuple[int, ...], RowWrite] = {}
            for key, net in nets.items():
                if net.row is None or net.is_new != (operation == "INSERT"):
                    continue
                columns = _sent(net.row)
                if operation == "UPDATE":
                    columns = tuple(one for one in columns if one not in self._key) or self._key
                group = groups.setdefault(columns, RowWrite(operation, columns, [], []))
                group.keys.append(key)
                group.rows.append(net.row.values)
            yield from groups.values()

    def _key_of(self, row: Row) -> Key:
        if any(row.kinds[number] in (NULL, UNCHANGED) for number in self._key):
            raise OlrPgError(
                Code.FALLBACK_ROW_WITHOUT_KEY,
                "a change lacks values of the key",
                table=self._name,
            )
        return tuple(row.values[number] for number in self._key)

    def _checked(self, row: Row) -> Row:
        self.size += sum(len(one) for one in row.values if one is not None)
        if len(row.values) != self._count or TEXT in row.kinds:
            raise OlrPgError(
                Code.FALLBACK_ROW_UNREADABLE,
                "a value is not in binary format, or a row has more or fewer columns"
                " than its table",
                table=self._name,
            )
        return row


def _sent(row: Row) -> tuple[int, ...]:
    """Return the numbers of the columns whose values PostgreSQL has sent in the row."""
    if UNCHANGED not in row.kinds:
        return tuple(range(len(row.values)))
    return tuple(number for number, kind in enumerate(row.kinds) if kind != UNCHANGED)


def _is_same(row: Row, old: Row | None) -> bool:
    """Return whether the old image of a change can belong to `row`. With the replica identity FULL,
    it contains all values; otherwise the key only, and NULL for the other columns.
    """
    return old is None or all(
        ours == theirs
        for ours, theirs, our_kind, kind in zip(
            row.values, old.values, row.kinds, old.kinds, strict=True
        )
        if kind == BINARY and our_kind != UNCHANGED
    )


def _merged(new: Row, old: Row) -> Row:
    """Return `new`, with its missing values taken from the older row `old`."""
    if UNCHANGED not in new.kinds:
        return new
    kept = [kind == UNCHANGED for kind in new.kinds]
    return Row(
        tuple(o if keep else n for keep, n, o in zip(kept, new.values, old.values, strict=True)),
        bytes(o if keep else n for keep, n, o in zip(kept, new.kinds, old.kinds, strict=True)),
    )


def _filled(new: Row, old: Row, key: Sequence[int]) -> Row:
    """Return `new`, with the key values that PostgreSQL did not send taken from the old image."""
    if not any(new.kinds[number] == UNCHANGED for number in key):
        return new
    values, kinds = list(new.values), bytearray(new.kinds)
    for number in key:
        if kinds[number] == UNCHANGED:
            values[number], kinds[number] = old.values[number], old.kinds[number]
    return Row(tuple(values), bytes(kinds))


Empties = tuple[int, ...]
"""Numbers of the columns whose value is an empty LOB."""

_NOT_UNIQUE: Final = "ORA-00001"
CONSTRAINT: Final = re.compile(r"\(([^()]+)\) violated")
"""The name of a constraint in an error of Oracle, as OWNER.NAME."""


class OracleWriter:
    """Writes over one connection, which is not in autocommit mode. The caller commits.

    Args:
        policy: the policy for conflicts.
    """

    def __init__(
        self, connection: oracledb.Connection, policy: ConflictPolicy = ConflictPolicy.ERROR
    ) -> None:
        self._connection = connection
        self._policy = policy
        self._records: Counter[Record] = Counter()

    def take_records(self) -> Counter[Record]:
        """Return the differences from PostgreSQL that were recorded since the last call."""
        taken, self._records = self._records, Counter()
        return taken

    def write(self, plan: RelationPlan, rows: NetRows) -> None:
        """Write the net changes of one table.

        Raises:
            OlrPgError: 7306 a conflict, 7350 Oracle cannot store a value.
            oracledb.Error: any error of Oracle.
        """
        for one in rows.writes():
            self._write(plan, one)

    def write_one(self, plan: RelationPlan, rows: NetRows) -> None:
        """Write one change. If the change is a conflict, resolve the conflict according to the
        policy.

        Raises:
            OlrPgError, oracledb.Error: see `write`; 7306 also if the policy cannot resolve the
                conflict.
        """
        for one in rows.writes():
            try:
                self._write(plan, one)
            except OlrPgError as error:
                if error.code != Code.FALLBACK_CONFLICT or self._policy == ConflictPolicy.ERROR:
                    raise
                self._resolve(plan, one, error)

    def _resolve(self, plan: RelationPlan, write: RowWrite, error: OlrPgError) -> None:
        """Skip the change, or make Oracle's row equal to PostgreSQL's.

        Raises:
            OlrPgError: 7306, the policy `overwrite` cannot resolve the conflict.
        """
        cause = str(error.where["cause"])
        is_overwritten = self._policy == ConflictPolicy.OVERWRITE and write.operation != "DELETE"
        if is_overwritten and not self._overwrite(plan, write, cause):
            raise error
        policy = ConflictPolicy.OVERWRITE if is_overwritten else ConflictPolicy.SKIP
        self._records[Record(plan.name, write.operation, cause, policy.value)] += 1

    def _overwrite(self, plan: RelationPlan, write: RowWrite, cause: str) -> bool:
        """Make Oracle's row equal to PostgreSQL's; return whether that was possible.

        Overwriting is impossible in two cases. Another row in Oracle has the same value of a unique
        key; or Oracle lacks the row, and PostgreSQL did not send the row's large values (for an
        update, it does not send unchanged TOAST values).
        """
        new = tuple(write.rows[0][number] for number in plan.key)
        others = tuple(one for one in range(len(plan.columns)) if one not in plan.key)
        update = RowWrite("UPDATE", others or plan.key, [new], write.rows)
        if cause == ROW_EXISTS:
            if write.operation == "INSERT":
                return self._written(plan, update) > 0
            is_moved = new != write.keys[0]
            remove = RowWrite("DELETE", (), [new], [])
            return is_moved and self._written(plan, remove) > 0 and self._written(plan, write) > 0
        if not {*write.columns, *plan.key}.issuperset(range(len(plan.columns))):
            return False
        if new != write.keys[0] and self._written(plan, update):
            return True
        insert = RowWrite("INSERT", tuple(range(len(plan.columns))), [new], write.rows)
        return self._written(plan, insert) > 0

    def empty(self, plan: RelationPlan) -> None:
        """Delete all rows of a table. TRUNCATE is not used, because Oracle would commit.

        Raises:
            OlrPgError: 7313, the table has rows that PostgreSQL never had.
        """
        if plan.is_partial:
            raise OlrPgError(
                Code.FALLBACK_TABLE_CHANGED,
                "the table was truncated, but Oracle's table has rows that `filter` keeps out of"
                " PostgreSQL. Make this transaction's changes of the table in Oracle by hand,"
                f" then run `olr-pg fallback skip --table {shlex.quote(plan.name)}`",
                table=plan.name,
            )
        with of_whole_table(self._connection), self._connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {plan.place}")  # noqa: S608 - quoted

    def _write(self, plan: RelationPlan, write: RowWrite) -> None:
        """Write rows.

        Raises:
            OlrPgError: 7306, some rows are missing or already exist.
        """
        found, wanted = self._written(plan, write), len(write.keys)
        if found != wanted:
            what = f"{write.operation} of {counted(wanted, 'row')} found only {found:,} in Oracle"
            raise _conflict(plan, ROW_MISSING, what)

    def _written(self, plan: RelationPlan, write: RowWrite) -> int:
        """Write rows; return the number of rows affected."""
        parts = _by_empties(plan, write)
        return sum(self._execute(plan, part, empties) for empties, part in parts)

    def _execute(self, plan: RelationPlan, write: RowWrite, empties: Empties) -> int:
        statement = _Statement(plan, empties)
        try:
            text = statement.text(write)
        except OlrPgError as error:
            raise located(error, table=plan.name) from error
        with self._connection.cursor() as cursor:
            cursor.setinputsizes(*statement.types)
            try:
                cursor.executemany(text, list(zip(*statement.values, strict=True)))
            except oracledb.IntegrityError as error:
                if _NOT_UNIQUE not in str(error):
                    raise
                # Report only the name of the constraint, because Oracle's message may contain
                # values of the row.
                name = CONSTRAINT.search(str(error))
                where = f" (constraint {name[1]})" if name else ""
                what = f"{write.operation} of a row that exists already in Oracle{where}"
                raise _conflict(plan, ROW_EXISTS, what) from error
            found = int(cursor.rowcount)
        self._records.update(statement.altered)
        return found


def check_bytes_are_kept(connection: oracledb.Connection, tables: Iterable[Table]) -> None:
    """If a column has a configured character set, check that Oracle stores all bytes unchanged.

    Oracle should do so, but its manuals do not say it explicitly: a VARCHAR2 that is made of a RAW
    has the same bytes, and in a database with one byte per character, a CLOB has the character set
    of a VARCHAR2. So `oracle.key_cuts` needs no conversion. Long text is checked only if a column
    can have it; in a database with several bytes per character, no column with a configured set can
    have it.

    Raises:
        OlrPgError: 7351, Oracle changes bytes.
        oracledb.Error: any error of Oracle.
    """
    explicit = [(one, c) for one in tables for c in one.delivered if is_explicit(c)]
    long = [(table, column) for table, column in explicit if not is_whole(column)]
    if not explicit:
        return
    texts = [TEXT_OF_BYTES.format(":1")]
    if long:
        text, clob = (
            joined_texts(one, 2).format(":1", ":2") for one in (TEXT_OF_BYTES, CLOB_OF_BYTES)
        )
        texts += [text, f"DBMS_LOB.SUBSTR({clob}, {len(_BYTES)}, 1)"]
    half = len(_BYTES) // 2
    for one in texts:
        binds = [_BYTES[:half], _BYTES[half:]] if ":2" in one else [_BYTES]
        with connection.cursor() as cursor:
            cursor.setinputsizes(*[oracledb.DB_TYPE_RAW] * len(binds))
            cursor.execute(f"SELECT UTL_RAW.CAST_TO_RAW({one}) AS T FROM DUAL", binds)  # noqa: S608 - constants
            found = cursor.fetchone()
        if found != (_BYTES,):
            table, column = (long or explicit)[0]
            raise OlrPgError(
                Code.COLUMN_NOT_FOR_ORACLE,
                "this Oracle database changes bytes that are not text in its character set",
                table=table.full_name,
                column=column.name,
            )


_BYTES: Final = bytes(range(1, 256))


def _conflict(plan: RelationPlan, cause: str, what: str) -> OlrPgError:
    return OlrPgError(Code.FALLBACK_CONFLICT, what, table=plan.name, cause=cause)


def _by_empties(plan: RelationPlan, write: RowWrite) -> Iterator[tuple[Empties, RowWrite]]:
    """Group rows that have empty LOBs in the same columns, because an empty LOB is an SQL
    expression and not a bind.
    """
    lobs = [number for number in write.columns if plan.columns[number].empty]
    if not lobs or not any(row[number] == b"" for row in write.rows for number in lobs):
        yield (), write
        return

    def empties(at: int) -> Empties:
        return tuple(number for number in lobs if write.rows[at][number] == b"")

    places = range(len(write.rows))
    for found, group in groupby(
        places if write.is_ordered else sorted(places, key=empties), empties
    ):
        part = list(group)
        keys, rows = [write.keys[at] for at in part], [write.rows[at] for at in part]
        yield found, write._replace(keys=keys, rows=rows)


class _Statement:
    """Builds the text and the binds of one statement."""

    def __init__(self, plan: RelationPlan, empties: Empties) -> None:
        self._plan = plan
        self._empties = empties
        self.types: list[Any] = []
        self.values: list[Sequence[object | None]] = []
        self.altered: list[Record] = []

    def text(self, write: RowWrite) -> str:
        """Bind the values, and return the SQL text."""
        names = self._plan.columns
        written = [number for number in write.columns if names[number].values is not None]
        if write.operation == "UPDATE" and not written:
            written = [*self._plan.key]
        binds = [
            names[number].empty or ""
            if number in self._empties
            else self._bind(number, [row[number] for row in write.rows])
            for number in written
        ]
        columns = [quoted(names[number].name) for number in written]
        if write.operation == "INSERT":
            values = f"({', '.join(columns)}) VALUES ({', '.join(binds)})"
            return f"INSERT INTO {self._plan.place} {values}"
        keys = [
            self._bind(number, [key[place] for key in write.keys])
            for place, number in enumerate(self._plan.key)
        ]
        found = " AND ".join(
            f"{quoted(names[number].name)} = {bind}"
            for number, bind in zip(self._plan.key, keys, strict=True)
        )
        if write.operation == "DELETE":
            return f"DELETE FROM {self._plan.place} WHERE {found}"  # noqa: S608 - quoted
        settings = ", ".join(
            f"{column} = {bind}" for column, bind in zip(columns, binds, strict=True)
        )
        return f"UPDATE {self._plan.place} SET {settings} WHERE {found}"  # noqa: S608 - quoted

    def _bind(self, number: int, raw: Sequence[bytes | None]) -> str:
        column = self._plan.columns[number]
        assert column.values is not None
        bound: BoundValues = column.values.bind(raw)
        self.altered += [
            Record(self._plan.name, column.name, one.cause.replace("_", "-"), one.policy)
            for one in bound.altered
        ]
        first = len(self.values) + 1
        for values in (bound.values, *bound.further):
            self.types.append(bound.db_type)
            self.values.append(values)
        return bound.expression.format(*(f":{at}" for at in range(first, len(self.values) + 1)))
