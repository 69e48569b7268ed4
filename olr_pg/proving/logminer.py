"""The judge that compares decoded changes with LogMiner: both must have the same transactions, and
for each row the same changes.

V$LOGMNR_CONTENTS contains each change as a statement (SQL_REDO) with the values as literals. The
literals are parsed and compared with the decoded values, column by column. Tables with LOBs are
left out, because LogMiner shows their values in pieces. Of columns with a configured character set
(`dictionary.true_charsets`), only NULL and text in ASCII are compared, because Oracle has converted
the statement from the declared set.

The decoded changes have the form that ``olr-pg decode --ddl`` prints.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb

from olr_pg.oracle.driver.bounded_calls import oracle_error
from olr_pg.oracle.oracle_connection import open_connection
from olr_pg.rendering.json_lines import PackedLines, render_ddl
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding
from olr_pg.scalars import format_xid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from olr_pg.config.source_section import OracleSource
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.transactions.row_fault import RowFault

    Event = dict[str, Any]

LOST: Final = "lost"


def decoded_events(
    snapshot: Snapshot, logs: Sequence[str], tables: Sequence[Table], incidents: Path
) -> list[Event]:
    """Decode logs; return the changes that committed after the dictionary's SCN, in delivery order.

    A LOB value that the redo contains only partly is an event with op `LOST`, before or after its
    change.

    Args:
        logs: paths of the logs.
        tables: the tables to decode, from the snapshot.
        incidents: directory for the incident file if decoding fails.

    Raises:
        OlrPgError: 2xxx errors of the logs, 3xxx errors of the tables, because decoding refuses a
            form of change.
    """
    events: list[Event] = []
    wanted = {(one.owner, one.name) for one in tables}

    def take(lines: bytes) -> None:
        for line in lines.splitlines():
            event = json.loads(line, parse_float=Decimal, parse_int=Decimal)
            if int(event["commit_scn"]) > snapshot.scn:
                events.append(event)

    def ddl(transaction: DictionaryTransaction) -> None:
        take(b"".join(render_ddl(transaction, lambda owner, name: (owner, name) in wanted)))

    names = [f'"{one.owner}"."{one.name}"' for one in tables]
    decoding = LogDecoding(snapshot, logs, tables=names, packed=True)
    render = PackedLines(decoding.database)

    def lost(fault: RowFault) -> None:
        for one in fault.lobs:
            if fault.commit_scn > snapshot.scn:
                place = {"table": fault.error.where["table"], "rowid": one.row_id}
                scn = Decimal(fault.commit_scn)
                value = {"column": one.column, "code": one.code, "commit_scn": scn}
                events.append({"op": LOST, "xid": format_xid(fault.xid), **place, **value})

    for run in decoding.runs(DecodingOptions(ddl=ddl, incidents=incidents, lost=lost)):
        for piece in render.pieces(run.blob, decoding.tables):
            take(bytes(piece))
    return events


_SESSION: Final = """
ALTER SESSION SET NLS_DATE_FORMAT = 'SYYYY-MM-DD"T"HH24:MI:SS'
NLS_TIMESTAMP_FORMAT = 'SYYYY-MM-DD"T"HH24:MI:SS.FF9'
NLS_TIMESTAMP_TZ_FORMAT = 'SYYYY-MM-DD"T"HH24:MI:SS.FF9TZH:TZM' NLS_NUMERIC_CHARACTERS = '.,'
"""
_ADD: Final = "BEGIN DBMS_LOGMNR.ADD_LOGFILE(:name, :options); END;"
_START: Final = (
    "BEGIN DBMS_LOGMNR.START_LOGMNR(STARTSCN => :first, ENDSCN => :last, OPTIONS => :o); END;"
)
_END: Final = "BEGIN DBMS_LOGMNR.END_LOGMNR; END;"
_NEW, _ANOTHER = 1, 3
_OPTIONS: Final = 2 + 16 + 64
"""COMMITTED_DATA_ONLY, DICT_FROM_ONLINE_CATALOG, NO_SQL_DELIMITER (DBMS_LOGMNR)."""

_LOGS: Final = """
SELECT DISTINCT NAME FROM V$ARCHIVED_LOG WHERE NEXT_CHANGE# > :first AND FIRST_CHANGE# <= :last
AND ARCHIVED = 'YES' AND DELETED = 'NO' AND STANDBY_DEST = 'NO' AND NAME IS NOT NULL
"""
_CONTENTS: Final = """
SELECT XIDUSN, XIDSLT, XIDSQN, OPERATION, SEG_OWNER, TABLE_NAME, ROW_ID, CSF, SQL_REDO
FROM V$LOGMNR_CONTENTS
WHERE SEG_OWNER = :owner AND OPERATION IN ('INSERT', 'UPDATE', 'DELETE', 'UNSUPPORTED')
"""

_NAME: Final = r'"((?:[^"])+)"'
_TEXT: Final = r"'((?:[^']|'')*)'"
_VALUE: Final = rf"(NULL|\w+\(\s*{_TEXT}(?:\s*,\s*'(?:[^']|'')*')*\s*\)|{_TEXT}|\w+\(\)|-?[\d.]+)"
_TABLE: Final = rf"{_NAME}\.{_NAME}"
_INTO: Final = re.compile(rf"insert into {_TABLE}\((.*?)\)\s*", re.DOTALL)
_VALUES: Final = re.compile(r"values\s*\((.*)\)\s*;?\s*$", re.DOTALL)
_SET: Final = re.compile(rf"update {_TABLE}\s+")
_FROM: Final = re.compile(rf"delete from {_TABLE}\s+")  # noqa: S608 - it is read
_SET_WORD: Final = re.compile(r"set\b")
_LITERAL: Final = re.compile(_VALUE)
_TERM: Final = re.compile(
    rf"\s*(?:and\s+|,\s*)?{_NAME}\s*(?:=|IS)\s*{_VALUE}", re.DOTALL | re.IGNORECASE
)
_WHERE: Final = re.compile(r"\s*where\b", re.IGNORECASE)


class MinedChange(NamedTuple):
    """A row change that LogMiner shows.

    Attributes:
        xid: the transaction id in decimal: ``undo segment.slot.sequence``.
        operation: ``insert``, ``update`` or ``delete``.
        table: ``OWNER.NAME``.
        rowid: the ROWID; empty if LogMiner does not show it.
        before, after: the literals before and after the change, by column; None for NULL.
    """

    xid: str
    operation: str
    table: str
    rowid: str
    before: dict[str, str | None]
    after: dict[str, str | None]


def parse_redo(statement: str) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """Parse the values in a SQL_REDO statement; return them as (before, after).

    Raises:
        ValueError: the text is not such a statement.
    """
    head = _INTO.match(statement)
    listed = _VALUES.match(statement, head.end()) if head is not None else None
    if head is not None and listed is not None:
        names = re.findall(_NAME, head[3])
        values = [_unquoted(*found.groups()) for found in _LITERAL.finditer(listed[1])]
        if len(names) != len(values):
            raise ValueError(f"{len(names)} columns, {len(values)} values")
        return {}, dict(zip(names, values, strict=True))
    head = _SET.match(statement)
    word = _SET_WORD.match(statement, head.end()) if head is not None else None
    if word is not None:
        after, end = _terms(statement, word.end())
        where = _WHERE.match(statement, end)
        return (_terms(statement, where.end())[0] if where else {}), after
    head = _FROM.match(statement)
    where = _WHERE.match(statement, head.end()) if head is not None else None
    if where is None:
        raise ValueError("no INSERT, UPDATE or DELETE")
    return _terms(statement, where.end())[0], {}


def _terms(text: str, at: int) -> tuple[dict[str, str | None], int]:
    found: dict[str, str | None] = {}
    while (term := _TERM.match(text, at)) is not None:
        found[term[1]] = _unquoted(term[2], term[3], term[4])
        at = term.end()
    return found, at


def _unquoted(whole: str, argument: str | None, text: str | None) -> str | None:
    """Return a literal. If a function such as TO_DATE makes the value, return the function's first
    argument.
    """
    if whole.upper() == "NULL":
        return None
    inner = text if argument is None else argument
    return whole if inner is None else inner.replace("''", "'")


def read_changes(
    source: OracleSource, owner: str, first: int, last: int
) -> list[MinedChange] | str:
    """Read the changes of a schema from LogMiner. If LogMiner cannot be used, return the reason as
    a text.

    Raises:
        OlrPgError: 7001 to 7009, the login fails.
    """
    try:
        connection = open_connection(source)
    except oracledb.Error as error:
        raise oracle_error(error, f"logging on as {source.user}") from error
    with connection, connection.cursor() as cursor:
        try:
            cursor.execute(_SESSION)
            cursor.execute(_LOGS, {"first": first, "last": last})
            names = [str(row[0]) for row in cursor.fetchall()]
            for number, name in enumerate(names):
                cursor.execute(_ADD, name=name, options=_ANOTHER if number else _NEW)
            cursor.execute(_START, first=first, last=last, o=_OPTIONS)
            try:
                cursor.execute(_CONTENTS, owner=owner)
                return list(_changes(cursor))
            finally:
                cursor.execute(_END)
        except oracledb.Error as error:
            return oracle_error(error, "LogMiner").detail
        except ValueError as error:
            return f"a statement of LogMiner could not be parsed: {error}"


def _changes(rows: Iterable[Any]) -> Iterator[MinedChange]:
    text = ""
    for usn, slot, sequence, operation, owner, table, rowid, goes_on, redo in rows:
        if operation == "UNSUPPORTED":
            raise ValueError(f"LogMiner does not support {owner}.{table}")
        text += redo or ""
        if goes_on:
            continue
        before, after = parse_redo(text)
        text = ""
        yield MinedChange(
            f"{usn}.{slot}.{sequence}", operation.lower(), f"{owner}.{table}", rowid or "", before,
            after,
        )  # fmt: skip


def compare(
    mined: Sequence[MinedChange],
    events: Iterable[Event],
    left_out: frozenset[str] = frozenset(),
    converted: frozenset[tuple[str, str]] = frozenset(),
) -> list[str]:
    """Return the differences between LogMiner's changes and the decoded changes.

    Args:
        mined: LogMiner's changes in commit order.
        events: the events from `decoded_events`.
        left_out: tables that are not compared.
        converted: (``OWNER.NAME``, column) of columns with a configured character set.
    """
    ours = [
        one for one in events
        if one["op"] in ("insert", "update", "delete") and one["table"] not in left_out
    ]  # fmt: skip
    theirs = [one for one in mined if one.table not in left_out]
    order = list(dict.fromkeys(one.xid for one in theirs))
    decoded = list(dict.fromkeys(str(one["xid"]) for one in ours))
    if order != decoded:
        return [f"LogMiner shows the transactions {_few(order)}; olr_pg decoded {_few(decoded)}"]
    return list(_rows(theirs, ours, converted))


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return (", ".join(names[:10]) or "none") + more


def _rows(
    theirs: Sequence[MinedChange],
    ours: Sequence[Event],
    converted: frozenset[tuple[str, str]],
) -> Iterator[str]:
    """Compare the changes of each row within each transaction."""
    by_row: dict[tuple[str, ...], tuple[list[MinedChange], list[Event]]] = defaultdict(
        lambda: ([], [])
    )
    shows_rowids = all(one.rowid for one in theirs)
    for one in theirs:
        by_row[one.xid, one.table, one.rowid if shows_rowids else ""][0].append(one)
    for event in ours:
        rowid = str(event.get("rowid", "")) if shows_rowids else ""
        by_row[event["xid"], event["table"], rowid][1].append(event)
    for (xid, table, rowid), (mined, events) in by_row.items():
        where = f"{table} {rowid} in transaction {xid}".replace("  ", " ")
        operations = [one.operation for one in mined]
        decoded = [str(one["op"]) for one in events]
        if operations != decoded:
            yield f"{where}: LogMiner shows {_few(operations)}; olr_pg decoded {_few(decoded)}"
            continue
        for change, event in zip(mined, events, strict=True):
            for name in _differing(change, event, converted):
                yield f"{where}: {change.operation}: {name} differs"


def _differing(
    change: MinedChange, event: Event, converted: frozenset[tuple[str, str]]
) -> Iterator[str]:
    for side in ("before", "after"):
        mined: dict[str, str | None] = getattr(change, side)
        decoded = event.get(side, {})
        for name, text in mined.items():
            if name in decoded:
                value = decoded[name]
                if (change.table, name) in converted and text and not str(value).isascii():
                    continue
                if not same_value(text, value):
                    yield f"the value of {name} {side} the change"
            elif side == "after" and text is not None:
                yield f"the value of {name} {side} the change"


def same_value(literal: str | None, value: Any) -> bool:
    """Return whether a literal of LogMiner equals a decoded value."""
    if literal is None or value is None:
        return (literal or None) is None and value is None
    if isinstance(value, Decimal):
        try:
            return Decimal(literal) == value
        except InvalidOperation:
            return False
    text = str(value)
    return literal == text or _time(literal) == text or literal.lower() == text


def _time(literal: str) -> str:
    """Return a time without the blank in place of a sign, and without trailing zeros of the
    fraction.
    """
    found = re.match(r"\s*(-?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(.*)$", literal)
    if found is None:
        return literal
    fraction = (found[2] or "").rstrip("0")
    return found[1] + (f".{fraction}" if fraction else "") + found[3]
