"""The replay judge: it applies the decoded changes to the initial rows, and compares the result
with the source's rows at each commit.

In the source, the judge needs only flashback queries. The judge finds wrong values, lost rows,
phantom rows, and changes at a wrong commit. If DDL changes rows without row changes in the redo
(the default of a new column, ROWIDs of a moved table), the new state is taken from the source. LOB
values that the redo contains only partly are also taken from the source. A TRUNCATE is applied; if
it truncates a partition, it removes the rows of data objects (segments) that have no rows in the
source any more. A renamed table is compared only up to the rename.

The expected rows are read as of an SCN with Oracle's flashback query, and not from redo. The
expected rows are converted to the form that decoding prints, so that the judge can compare both.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
import orjson
import pyarrow as pa

from olr_pg.datatypes.json_values import json_converter
from olr_pg.datatypes.temporal import decode_timestamp, local_isoformat, offset_minutes, shifted
from olr_pg.load.arrow import arrow_column
from olr_pg.load.live_rows import batch_rows
from olr_pg.oracle.driver.bounded_calls import oracle_error
from olr_pg.oracle.key_cuts import LargeRow
from olr_pg.oracle.oracle_connection import open_connection
from olr_pg.oracle.table_query import ROWID, read_rows
from olr_pg.proving.logminer import LOST as LOST_LOB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from olr_pg.config.source_section import OracleSource
    from olr_pg.dictionary.model import Column, Database, Table
    from olr_pg.proving.logminer import Event

Row = dict[str, Any]
Rows = dict[str, Row]
"""Rows by their ROWID, or by their key if they have no ROWID. Each row contains its values by
column, as parsed JSON.
"""


class TableRows(NamedTuple):
    """The rows of a table at one time.

    Attributes:
        columns: the names of the delivered columns.
        key: names of the columns that identify a row if rows have no ROWID; empty if they have one.
    """

    columns: tuple[str, ...]
    key: tuple[str, ...]
    rows: Rows


class Moment(NamedTuple):
    """The rows of all tables as of an SCN.

    Attributes:
        line: the line of the scenario's statement after which it was recorded; 0 at the start.
    """

    scn: int
    line: int
    tables: dict[str, TableRows]


class RowReader:
    """Reads rows of the source database; one connection, used by one thread."""

    def __init__(self, source: OracleSource, database: Database) -> None:
        self._database = database
        try:
            self._connection = open_connection(source)
        except oracledb.Error as error:
            raise oracle_error(error, f"logging on as {source.user}") from error

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def read(self, tables: Sequence[Table], scn: int, line: int) -> Moment:
        """Read all rows of the tables as of an SCN.

        Raises:
            OlrPgError: 7001 to 7009.
        """
        found = {}
        for table in tables:
            try:
                found[table.full_name] = self._table(table, scn)
            except oracledb.Error as error:
                raise oracle_error(error, f"reading {table.full_name} as of {scn}") from error
        return Moment(scn, line, found)

    def _table(self, table: Table, scn: int) -> TableRows:
        key = key_columns(table) if table.index_organised else ()
        rows: Rows = {}
        for batch in read_rows(self._connection, table, scn, None, batch_rows(table)):
            for rowid, row in self._rows(table, batch):
                rows[rowid or row_key(row, key)] = row
        return TableRows(tuple(one.name for one in table.delivered), key, rows)

    def _rows(
        self, table: Table, found: pa.RecordBatch | LargeRow
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        batch = found.batch if isinstance(found, LargeRow) else found
        large = found.large if isinstance(found, LargeRow) else {}
        names = batch.schema.names
        rowids = batch.column(names.index(ROWID)).to_pylist() if ROWID in names else None
        columns = []
        for column in table.delivered:
            array = batch.column(names.index(column.name))
            if column.name in large:
                pieces = [piece[0].as_py() for piece in large[column.name]()]
                array = pa.array([type(pieces[0])().join(pieces)], array.type)
            columns.append(self._values(column, array))
        for at, values in enumerate(zip(*columns, strict=True)):
            row = dict(zip((one.name for one in table.delivered), values, strict=True))
            yield str(rowids[at]) if rowids else "", row

    def _values(self, column: Column, array: Any) -> list[Any]:
        arrow = arrow_column(column, array.type)
        values, database = arrow.convert(array), self._database
        if arrow.in_utc:
            return [None if one is None else self._local(one) for one in _bytes_of(values)]
        convert = json_converter(
            arrow.described,
            charset=database.charset,
            ncharset=database.ncharset,
            timezone=database.timezone,
        )
        return [plain_value(convert(one)) for one in _bytes_of(values)]

    def _local(self, raw: bytes) -> str:
        """Convert a time in UTC to the time in the zone in which Oracle stores local times."""
        utc, zone = decode_timestamp(raw), self._database.timezone
        minutes = offset_minutes(zone)
        if minutes is None:
            return f"{utc.isoformat()}Z"
        return local_isoformat(shifted(utc, minutes * 60), zone)


def _bytes_of(values: Any) -> Iterator[bytes | None]:
    for offset, length in zip(values.offset.tolist(), values.length.tolist(), strict=True):
        yield None if length < 0 else values.data[offset : offset + length].tobytes()


def plain_value(value: Any) -> Any:
    """Return a value as a reader of the JSON Lines gets it, with exact numbers."""
    if value is None or isinstance(value, str | bool):
        return value
    return json.loads(orjson.dumps(value), parse_float=Decimal, parse_int=Decimal)


def key_columns(table: Table) -> tuple[str, ...]:
    """Return the names of the columns of a table's key, in the order of the table's columns."""
    return tuple(one.name for one in table.columns if one.intcol in table.key)


def row_key(row: dict[str, Any], key: Sequence[str]) -> str:
    """Return the key that identifies a row without a ROWID."""
    return json.dumps([row[name] for name in key], default=str)


DIFFERENCES_MAX: Final = 100
"""Maximum number of differences that are reported for a scenario."""

LOST: Final = "lost"
PHANTOM: Final = "phantom"
WRONG: Final = "wrong"
UNFIT: Final = "unfit"
_SHOWN: Final = 60
_RENAMED: Final = re.compile(
    r"^\s*(?:ALTER\s+TABLE\s+\S+\s+)?RENAME\s+(?:\S+\s+)?TO\s+(\"[^\"]+\"|[\w$#]+)", re.IGNORECASE
)
"""Matches a statement that renames a table, but not ``RENAME COLUMN``."""
_PARTITION_GOES: Final = re.compile(
    r"\b(?:TRUNCATE|DROP|EXCHANGE)\s+(?:SUB)?PARTITION\b", re.IGNORECASE
)
_EXCHANGED: Final = re.compile(
    r"\bEXCHANGE\s+(?:SUB)?PARTITION\b.+?\bWITH\s+TABLE\s+(?:[^\s.]+\.)?"
    r"(\"[^\"]+\"|[\w$#]+)",
    re.IGNORECASE | re.DOTALL,
)
_DATAOBJ_LETTERS: Final = 6
"""Number of letters at the beginning of a ROWID that identify the data object."""
_UNKNOWN: Final = object()


class Difference(NamedTuple):
    """A row that was decoded wrongly.

    Attributes:
        kind: `LOST` (a missing row), `PHANTOM` (an extra row), `WRONG` (wrong values), or `UNFIT`
            (a change that does not match its row).
        columns: names of the columns with wrong values.
        scn: the SCN of the comparison, or of the change.
        line: the line of the scenario's statement after which the rows were compared.
        xid: XID of the last transaction that changed the row, if known.
        expected, decoded: the beginning of the expected and of the decoded values, by column.
    """

    table: str
    row: str
    kind: str
    columns: tuple[str, ...]
    scn: int
    line: int
    xid: str
    expected: dict[str, str]
    decoded: dict[str, str]

    @property
    def words(self) -> str:
        """Describe the difference in one line."""
        what = ", ".join(
            f"{name} is {self.decoded.get(name, 'absent')}, not {self.expected.get(name, 'absent')}"
            for name in self.columns
        )
        texts = {
            LOST: "the source contains the row, but olr_pg did not decode it",
            PHANTOM: "olr_pg decoded the row, but the source does not contain it",
            WRONG: what,
            UNFIT: f"a decoded change does not match its row: {what}",
        }
        return f"{self.table} {self.row} at SCN {self.scn}: {texts[self.kind]}"


class _Replayed:
    """A table during the replay."""

    def __init__(self, start: TableRows) -> None:
        self.rows: Rows = {key: dict(row) for key, row in start.rows.items()}
        self.key = start.key
        self.columns = start.columns
        self.is_reshaped = False
        self.partition_went = False
        self.xids: dict[str, str] = {}
        self.lost: set[tuple[str, str]] = set()

    def take_over(self, moment: TableRows) -> None:
        """Take from the source the effects of DDL that the redo does not contain as row changes."""
        if self.partition_went:
            there = {key[:_DATAOBJ_LETTERS] for key in moment.rows}
            gone = [key for key in self.rows if key[:_DATAOBJ_LETTERS] not in there]
            for key in gone:
                del self.rows[key]
            self.partition_went = False
        if self.is_reshaped and self.rows.keys() != moment.rows.keys():
            ours = Counter(map(_content, self.rows.values()))
            if ours == Counter(map(_content, moment.rows.values())):
                self.rows = {key: dict(row) for key, row in moment.rows.items()}
        if self.columns != moment.columns:
            for key, row in self.rows.items():
                theirs = moment.rows.get(key, {})
                for name in set(moment.columns) - set(self.columns) - row.keys():
                    row[name] = theirs.get(name)
                for name in row.keys() - set(moment.columns):
                    del row[name]
            self.columns = moment.columns
        for key, row in self.rows.items():
            for name in set(moment.columns) - row.keys():  # the row existed before the column
                row[name] = moment.rows.get(key, {}).get(name)
        for key, name in self.lost & {(key, name) for key in self.rows for name in self.columns}:
            self.rows[key][name] = moment.rows.get(key, {}).get(name)
        self.lost.clear()
        self.is_reshaped = False


def check_replay(
    start: Moment, moments: Sequence[Moment], events: Iterable[Event]
) -> list[Difference]:
    """Apply the decoded changes to the initial rows; return the differences from the source's rows.

    Args:
        moments: the rows after the commits, in the order of their SCNs.
        events: the decoded events, in delivery order.
    """
    told = list(events)
    lost = [one for one in told if one["op"] == LOST_LOB]
    replay = _Replay(start, moments, lost)
    return list(replay.differences(one for one in told if one["op"] != LOST_LOB))


class _Replay:
    def __init__(self, start: Moment, moments: Sequence[Moment], lost: Iterable[Event]) -> None:
        self._lost = sorted(lost, key=lambda one: one["commit_scn"], reverse=True)
        self._tables = {name: _Replayed(rows) for name, rows in start.tables.items()}
        self._moments = moments
        self._left = DIFFERENCES_MAX
        self._exchanged: list[tuple[str, str]] = []
        self._line = start.line

    def differences(self, events: Iterator[Event]) -> Iterator[Difference]:
        """Yield the differences."""
        event = next(events, None)
        for moment in self._moments:
            self._line = moment.line
            while event is not None and int(event["commit_scn"]) <= moment.scn:
                yield from self._bounded(self._carry_out(event))
                event = next(events, None)
            while self._lost and self._lost[-1]["commit_scn"] <= moment.scn:
                one = self._lost.pop()
                if one["table"] in self._tables:
                    self._tables[one["table"]].lost.add((one["rowid"], one["column"]))
            for pair in self._exchanged:
                self._exchange(pair, moment)
            self._exchanged.clear()
            for name, rows in moment.tables.items():
                if name in self._tables:
                    yield from self._bounded(self._compare(name, rows, moment.scn))
        while event is not None:
            if event["op"] in ("insert", "update", "delete"):
                yield from self._bounded(self._carry_out(event))
                yield from self._bounded([self._late(event)])
            event = next(events, None)

    def _bounded(self, found: Iterable[Difference]) -> Iterator[Difference]:
        for one in found:
            if self._left > 0:
                self._left -= 1
                yield one

    def _late(self, event: Event) -> Difference:
        return self._difference(event, str(event.get("rowid") or ""), PHANTOM)

    def _carry_out(self, event: Event) -> Iterator[Difference]:
        table = self._tables.get(event.get("table", ""))
        if table is None:
            return
        if event["op"] == "ddl":
            renamed = _RENAMED.search(event.get("text", ""))
            if renamed is not None:
                # Decoding may report later rows under either name, so neither name is compared
                # after this point.
                for name in (event["table"], _other_name(event, renamed[1])):
                    self._tables.pop(name, None)
                return
            table.is_reshaped = True
            exchanged = _EXCHANGED.search(event.get("text", ""))
            if exchanged is not None:
                self._exchanged.append((event["table"], _other_name(event, exchanged[1])))
            if _PARTITION_GOES.search(event.get("text", "")) and not table.key:
                table.partition_went = True
            if event["command"] == "TRUNCATE TABLE":
                table.rows.clear()
            return
        if event["op"] not in ("insert", "update", "delete"):
            return
        if event["op"] == "insert":
            key = _key_of(event, event["after"], table.key)
            if key in table.rows:
                yield self._difference(event, key, UNFIT)
            table.rows[key] = dict(event["after"])
            table.xids[key] = event["xid"]
            return
        before = event.get("before", {})
        key = _key_of(event, before, table.key)
        old = table.rows.pop(key, None)
        if old is None:
            yield self._difference(event, key, UNFIT)
            return
        wrong = tuple(
            name
            for name, value in before.items()
            if old.get(name, _UNKNOWN) not in (value, _UNKNOWN)
        )
        if wrong:
            found = self._difference(event, key, UNFIT)
            shown = _shown(old, wrong), _shown(before, wrong)
            yield found._replace(columns=wrong, expected=shown[0], decoded=shown[1])
        table.xids[key] = event["xid"]
        if event["op"] == "update":
            new = old | event.get("after", {})
            key = _key_of(event, new, table.key)
            table.rows[key], table.xids[key] = new, event["xid"]

    def _exchange(self, pair: tuple[str, str], moment: Moment) -> None:
        """Move the rows of exchanged segments to the other table, without changing their values."""
        both = [(self._tables.get(name), moment.tables.get(name)) for name in pair]
        kept = [(ours, rows.rows) for ours, rows in both if ours is not None and rows is not None]
        if len(kept) < len(both):
            return
        letters = [{key[:_DATAOBJ_LETTERS] for key in rows} for _, rows in kept]
        for at in (0, 1):
            ours, theirs = kept[at][0], kept[1 - at][0]
            going = letters[1 - at] - letters[at]
            for key in [key for key in ours.rows if key[:_DATAOBJ_LETTERS] in going]:
                theirs.rows[key] = ours.rows.pop(key)

    def _difference(self, event: Event, row: str, kind: str) -> Difference:
        return Difference(
            table=event["table"], row=row, kind=kind, columns=(), scn=int(event["commit_scn"]),
            line=self._line, xid=event["xid"], expected={}, decoded={},
        )  # fmt: skip

    def _compare(self, name: str, source: TableRows, scn: int) -> Iterator[Difference]:
        table = self._tables[name]
        table.take_over(source)
        if table.rows == source.rows:
            return
        for key in sorted(table.rows.keys() | source.rows.keys()):
            ours, theirs = table.rows.get(key), source.rows.get(key)
            if ours == theirs:
                continue
            kind = LOST if ours is None else PHANTOM if theirs is None else WRONG
            columns: tuple[str, ...] = ()
            if ours is not None and theirs is not None:
                columns = tuple(c for c in source.columns if ours.get(c) != theirs.get(c))
            yield Difference(
                table=name, row=key, kind=kind, columns=columns, scn=scn, line=self._line,
                xid=table.xids.get(key, ""), expected=_shown(theirs, columns),
                decoded=_shown(ours, columns),
            )  # fmt: skip
        # Continue with the source's rows, so that the same difference is not reported again.
        table.rows = {key: dict(row) for key, row in source.rows.items()}


def _key_of(event: Event, image: Row, key: Sequence[str]) -> str:
    rowid = event.get("rowid")
    if rowid:
        return str(rowid)
    return row_key({name: image.get(name) for name in key}, key)


def _other_name(event: Event, name: str) -> str:
    """Return a table name from a statement, with the owner of the statement's own table."""
    owner = event["table"].partition(".")[0]
    return f"{owner}.{name.strip(chr(34)) if chr(34) in name else name.upper()}"


def _content(row: Row) -> str:
    return json.dumps(row, sort_keys=True, default=str)


def _shown(row: Row | None, columns: Sequence[str]) -> dict[str, str]:
    if row is None:
        return {}
    return {name: _short(row.get(name)) for name in columns}


def _short(value: Any) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
