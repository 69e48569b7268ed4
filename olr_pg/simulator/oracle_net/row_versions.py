"""The rows of the stand-in's tables at every SCN.

The catalogue's SQLite keeps every version of a row, with the SCNs between which it was the
committed version. So a query ``AS OF SCN`` finds the rows that the table contained at that SCN. The
versions come from the simulator's files: the tables at the start, and the truth.
"""

from __future__ import annotations

import heapq
import json
import re
import zlib
from datetime import UTC, datetime
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from olr_pg.datatypes.charsets import DATABASE_FORM
from olr_pg.datatypes.mapping import OracleType
from olr_pg.scalars import format_rowid, parse_rowid
from olr_pg.simulator.fields.cells import text_bytes
from olr_pg.simulator.model.transactions import TRUNCATE
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net.dictionary_rows import partition_name
from olr_pg.simulator.oracle_net.values import ResultType, float_kind
from olr_pg.simulator.truth import ROWID, read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from olr_pg.dictionary.model import Column, Table
    from olr_pg.simulator.oracle_net.catalogue import Catalogue, SqlValue

VERSIONS: Final = "/versions"
"""Suffix of the name of the SQLite table that contains the versions of a table's rows."""

EXTENT_BLOCKS: Final = 8
_ROWID_BYTES: Final = (4, 4, 2)
_DATE_LENGTH: Final = 19
_NANOSECOND_DIGITS: Final = 9
_OTHER_BYTE: Final = re.compile("[\udc80-\udcff]")
"""A byte that is not UTF-8 (`cells.bytes_text`)."""

_BINARY: Final = frozenset({OracleType.RAW, OracleType.BLOB, OracleType.LONG_RAW})
_AS_CLOB: Final = frozenset({OracleType.JSON, OracleType.VECTOR})
_COMPARED: Final[dict[int, str]] = {
    OracleType.NUMBER: " TEXT COLLATE NUMBERS",
    OracleType.CHAR: " TEXT COLLATE RTRIM",
    OracleType.TIMESTAMP: " TEXT COLLATE MOMENTS",
}
"""Collations that compare values instead of their texts; the text of a DATE needs none."""

_FORMATS: Final = {'SYYYY-MM-DD"T"HH24:MI:SS': 0, 'SYYYY-MM-DD"T"HH24:MI:SS.FF9': 9}
"""The supported formats of TO_CHAR, with their number of decimals."""


class RowVersions:
    """The versions of the rows of a catalogue's tables.

    Args:
        catalogue: gets a table of versions and a view of the current rows for each table.
        tables: the tables as in the dictionary.
        prefix: prefix of their names in the simulator's files: the container's name, if the files
            contain several containers.

    Attributes:
        unfinished: begin SCNs of transactions that are not in the truth yet.
    """

    def __init__(self, catalogue: Catalogue, tables: Iterable[Table], prefix: str = "") -> None:
        self._catalogue = catalogue
        self._prefix = prefix
        self._tables = {table.full_name: table for table in tables}
        self._open: list[tuple[int, int]] = []
        self.unfinished: Sequence[int] = ()
        _add_functions(catalogue)
        for table in self._tables.values():
            self._create(table)
        catalogue.made_when_asked |= {
            "GV$TRANSACTION": self._transactions,
            "DBA_EXTENTS": self._extents,
        }

    def _create(self, table: Table) -> None:
        self._catalogue.add_schema(table.owner)
        columns = {column.name: _kind(column) for column in table.delivered}
        self._catalogue.versioned[table.owner, table.name] = columns
        names = ", ".join(map(_quoted, columns))
        declared = ", ".join(
            _quoted(one.name) + _COMPARED.get(one.type_code, "") for one in table.delivered
        )
        owner, versions = _quoted(table.owner), _quoted(table.name + VERSIONS)
        update = self._catalogue.update
        update(f'CREATE TABLE {owner}.{versions} ("/since", "/until", {ROWID}, {declared})')
        update(f"CREATE INDEX {owner}.{_quoted(table.name + '/rowid')} ON {versions} ({ROWID})")
        update(
            f"CREATE VIEW {owner}.{_quoted(table.name)} AS SELECT {ROWID}, {names} FROM {versions}"  # noqa: S608
            ' WHERE "/since" <= CURRENT_SCN()'
            ' AND ("/until" IS NULL OR "/until" > CURRENT_SCN())'
        )

    def knows(self, names: Iterable[str]) -> bool:
        """Return whether versions of all these tables (``OWNER.NAME``) are kept."""
        return self._tables.keys() >= set(names)

    def follow(self, tables: Iterable[Table], added: Mapping[tuple[str, str], object]) -> None:
        """Adopt the tables that exist after DDL.

        Args:
            added: by (table, column), the value that older rows have in an added column, as in the
                truth.
        """
        before = {table.obj: table for table in self._tables.values()}
        now = {table.obj: table for table in tables}
        for obj in before.keys() - now.keys():
            self._drop(before[obj])
        # All rows are read before any table is dropped, because two tables may swap their names.
        altered = [o for o in before.keys() & now.keys() if _shape(before[o]) != _shape(now[o])]
        rows = [(now[obj], self._rows_for(before[obj], now[obj], added)) for obj in altered]
        for obj in altered:
            self._drop(before[obj])
        for obj in now.keys() - before.keys():
            self._create(now[obj])
        for table, own in rows:
            self._create(table)
            self._catalogue.insert_many(self._insertion(table), own)
        self._tables = {table.full_name: table for table in now.values()}

    def _drop(self, table: Table) -> None:
        self._catalogue.update(f"DROP VIEW {_quoted(table.owner)}.{_quoted(table.name)}")
        versions = _quoted(table.name + VERSIONS)
        self._catalogue.update(f"DROP TABLE {_quoted(table.owner)}.{versions}")
        del self._catalogue.versioned[table.owner, table.name]

    def _rows_for(
        self, old: Table, table: Table, added: Mapping[tuple[str, str], object]
    ) -> list[tuple[object, ...]]:
        """Return the versions of a table's rows, converted to its new columns."""
        place = f"{_quoted(old.owner)}.{_quoted(old.name + VERSIONS)}"
        at = {column.intcol: number for number, column in enumerate(old.delivered, 3)}
        given = [
            self._from_json(column, added.get((table.full_name, column.name)))
            for column in table.delivered
        ]
        places = [at.get(column.intcol) for column in table.delivered]
        return [
            (
                *row[:3],
                *(new if p is None else row[p] for p, new in zip(places, given, strict=True)),
            )
            for row in self._catalogue.rows(f"SELECT * FROM {place}")  # noqa: S608
        ]

    def read_start(self, folder: Path, scn: int) -> None:
        """Read the rows at the start, from the simulator's Parquet files.

        Args:
            folder: ``tables/`` of a simulation.
            scn: the SCN from which the rows exist.
        """
        for name, table in self._tables.items():
            found = read_table(folder, f"{self._prefix}{name}").to_pydict()
            columns = [map(_from_parquet, found[column.name]) for column in table.delivered]
            key = [at for at, column in enumerate(table.delivered) if column.intcol in table.key]
            rows = (
                (scn, None, _rowid_bytes(rowid, (str(values[at]) for at in key)), *values)
                for rowid, *values in zip(found[ROWID], *columns, strict=True)
            )
            self._catalogue.insert_many(self._insertion(table), rows)

    def read_truth(self, lines: Iterable[str | bytes], ddl: Iterable[str | bytes] = ()) -> None:
        """Apply committed transactions and DDL, in commit order.

        Args:
            lines: lines of ``truth.jsonl``.
            ddl: lines of ``ddl.jsonl``.
        """
        now = self._catalogue.current_scn()
        self._open = [(begin, commit) for begin, commit in self._open if commit > now]
        told = (map(_parsed, one) for one in (lines, ddl))
        for commit_scn, change in heapq.merge(*told, key=itemgetter(0)):
            if change["op"] == "begin":
                self._open.append((int(change["scn"]), commit_scn))
            elif "table" in change and change["table"].startswith(self._prefix):
                table = self._tables[change["table"].removeprefix(self._prefix)]
                if "moved" in change:
                    self._alter(table, change, commit_scn)
                else:
                    self._change(table, change, commit_scn)

    def _alter(self, table: Table, change: dict[str, Any], scn: int) -> None:
        """Apply the effect of DDL on the rows: removed rows, and new ROWIDs."""
        place = f"{_quoted(table.owner)}.{_quoted(table.name + VERSIONS)}"
        update = self._catalogue.update
        if change["op"] == TRUNCATE:
            update(f'UPDATE {place} SET "/until" = ? WHERE "/until" IS NULL', scn)  # noqa: S608
        for dataobj in change.get("emptied", ()):
            update(
                f'UPDATE {place} SET "/until" = ? WHERE substr({ROWID}, 1, 4) = ?'  # noqa: S608
                ' AND "/until" IS NULL',
                scn,
                int(dataobj).to_bytes(4, "big"),
            )
        for old, new in change["moved"].items():
            current = _rowid_bytes(old, ())
            (row,) = self._catalogue.rows(
                f'SELECT * FROM {place} WHERE {ROWID} = ? AND "/until" IS NULL',  # noqa: S608
                current,
            )
            self._end(place, current, scn)
            moved = (scn, None, _rowid_bytes(new, ()), *row[3:])
            self._catalogue.insert_many(self._insertion(table), [moved])

    def _end(self, place: str, rowid: bytes, scn: int) -> None:
        """End the current version of a row."""
        end = f'UPDATE {place} SET "/until" = ? WHERE {ROWID} = ? AND "/until" IS NULL'  # noqa: S608
        self._catalogue.update(end, scn, rowid)

    def forget(self, scn: int) -> None:
        """Discard versions that ended at or before `scn`, which is now the oldest SCN that can be
        read.
        """
        self._catalogue.undo_scn = scn
        for table in self._tables.values():
            place = f"{_quoted(table.owner)}.{_quoted(table.name + VERSIONS)}"
            self._catalogue.update(f'DELETE FROM {place} WHERE "/until" <= ?', scn)  # noqa: S608

    def _change(self, table: Table, change: dict[str, Any], scn: int) -> None:
        after, before = change.get("after", {}), change.get("before", {})
        key = [column.name for column in table.columns if column.intcol in table.key]
        known = before or after
        rowid = _rowid_bytes(change["rowid"], [str(known.get(name)) for name in key])
        place = f"{_quoted(table.owner)}.{_quoted(table.name + VERSIONS)}"
        values: list[object] = [None] * len(table.delivered)
        if change["op"] != "insert":
            current = f'FROM {place} WHERE {ROWID} = ? AND "/until" IS NULL'
            ((_, _, _, *values),) = self._catalogue.rows(f"SELECT * {current}", rowid)
            self._end(place, rowid, scn)
        if change["op"] == "delete":
            return
        for at, column in enumerate(table.delivered):
            if column.name in after:
                values[at] = self._from_json(column, after[column.name])
        self._catalogue.insert_many(self._insertion(table), [(scn, None, rowid, *values)])

    def put(self, table: Table, scn: int, rowid: str, values: Sequence[object]) -> None:
        """Add a row that exists from `scn` on; `values` are the delivered columns as Oracle's text
        or bytes.
        """
        row = (scn, None, _rowid_bytes(rowid, map(str, values[:1])), *values)
        self._catalogue.insert_many(self._insertion(table), [row])

    def _from_json(self, column: Column, value: Any) -> object:
        if value is None:
            return None
        if column.type_code in _BINARY:
            return bytes.fromhex(value)
        text = str(value)
        if column.charset_form != DATABASE_FORM:
            return text
        has_other_bytes = column.type_code != OracleType.CLOB and _OTHER_BYTE.search(text)
        is_bytes = self._catalogue.text.is_single_byte or has_other_bytes
        return text_bytes(text) if is_bytes else text  # bytes are compared as bytes

    def _insertion(self, table: Table) -> str:
        marks = ", ".join("?" * (3 + len(table.delivered)))
        place = f"{_quoted(table.owner)}.{_quoted(table.name + VERSIONS)}"
        return f"INSERT INTO {place} VALUES ({marks})"  # noqa: S608

    def _transactions(self) -> Iterator[dict[str, object]]:
        now = self._catalogue.current_scn()
        finished = [begin for begin, commit in self._open if begin <= now < commit]
        for begin in (*finished, *self.unfinished):
            yield {"INST_ID": 1, "START_SCN": begin}

    def _extents(self) -> Iterator[dict[str, object]]:
        """Yield rows of DBA_EXTENTS that cover every block that has ever contained a row."""
        for table in self._tables.values():
            if table.index_organised:
                continue
            place = f"{_quoted(table.owner)}.{_quoted(table.name + VERSIONS)}"
            rows = self._catalogue.rows(f"SELECT DISTINCT substr({ROWID}, 1, 8) FROM {place}")  # noqa: S608
            blocks = {_numbers(bytes(prefix) + b"\0\0")[:2] for (prefix,) in rows}  # type: ignore[call-overload]
            parts = {
                data: partition_name(n)
                for n, data in enumerate(table.segments or table.partitions, 1)
                if data != table.dataobj
            }
            for data, first in sorted({(data, dba & -EXTENT_BLOCKS) for data, dba in blocks}):
                yield {
                    "OWNER": table.owner,
                    "SEGMENT_NAME": table.name,
                    "PARTITION_NAME": parts.get(data),
                    "RELATIVE_FNO": first >> 22,
                    "BLOCK_ID": first & 0x3FFFFF,
                    "BLOCKS": EXTENT_BLOCKS,
                }


def _shape(table: Table) -> tuple[object, ...]:
    """Return the properties of a table on which its versions depend: its name and its columns."""
    return table.full_name, tuple((c.name, c.intcol, c.type_code) for c in table.delivered)


def _quoted(name: str) -> str:
    return f'"{name}"'


def _kind(column: Column) -> ResultType:
    """Return the type in which the driver receives a column, or the text of a column."""
    code, form = column.type_code, column.charset_form or 1
    if column.xml or code in _AS_CLOB:
        return ResultType(OracleType.CLOB, 4000, 1)
    if code == OracleType.NUMBER:
        scale = -127 if column.scale is None else column.scale
        return ResultType(OracleType.NUMBER, 22, precision=column.precision or 0, scale=scale)
    if code in (OracleType.BINARY_FLOAT, OracleType.BINARY_DOUBLE):
        return float_kind(code)
    fixed: dict[int, int] = {OracleType.CLOB: 4000, OracleType.BLOB: 4000, OracleType.LONG: 0}
    if code in (*fixed, OracleType.RAW, OracleType.LONG_RAW, OracleType.BOOLEAN):
        own = form if code in (OracleType.CLOB, OracleType.LONG) else 0
        return ResultType(code, fixed.get(code, column.length), own)
    text = code if code == OracleType.CHAR else OracleType.VARCHAR2
    return ResultType(text, max(column.length, 4000), form)


def _rowid_bytes(rowid: str, key: Iterable[str]) -> bytes:
    """Return bytes that sort like ROWIDs; for a row without ROWID, its key."""
    if not rowid:
        return ",".join(key).encode()
    numbers = zip(parse_rowid(rowid), _ROWID_BYTES, strict=True)
    return b"".join(number.to_bytes(size, "big") for number, size in numbers)


def _numbers(rowid: bytes) -> tuple[int, int, int]:
    return (
        int.from_bytes(rowid[:4], "big"),
        int.from_bytes(rowid[4:8], "big"),
        int.from_bytes(rowid[8:], "big"),
    )


def _parsed(line: str | bytes) -> tuple[int, dict[str, Any]]:
    change = json.loads(line, parse_int=str, parse_float=str)
    return int(change["commit_scn"]), change


def _from_parquet(value: Any) -> object:
    if value is None or isinstance(value, str | bytes):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)


def _add_functions(catalogue: Catalogue) -> None:
    add = catalogue.add_function
    add("CURRENT_SCN", 0, catalogue.current_scn)
    add("ROWIDTOCHAR", 1, lambda rowid: format_rowid(*_numbers(rowid)))
    add("CHARTOROWID", 1, lambda text: _rowid_bytes(text, ()))
    add("SAMPLED", 2, lambda rowid, percent: zlib.crc32(rowid[:8]) % 100 < percent)
    add("SYS_EXTRACT_UTC", 1, _in_utc)
    add("TO_DATE", 2, _moment)
    add("TO_TIMESTAMP", 2, _moment)
    catalogue.add_collation("NUMBERS", Decimal)
    catalogue.add_collation("MOMENTS", _moment_order)
    for count in (1, 2, 3):
        add("TO_CHAR", count, _to_char)


def _moment(text: str | None, _form: str) -> SqlValue:
    """Return the text in which the catalogue stores a moment."""
    return None if text is None else text.strip().replace(" ", "T")


def _moment_order(text: str) -> tuple[str, str]:
    return text[:_DATE_LENGTH], text[_DATE_LENGTH:].rstrip("0.")


def _in_utc(text: str | None) -> SqlValue:
    if text is None:
        return None
    digits = text[_DATE_LENGTH:].lstrip(".")
    fraction = digits[: len(digits) - len(digits.lstrip("0123456789"))]
    zone = digits[len(fraction) :]
    moment = datetime.fromisoformat(text[:_DATE_LENGTH] + zone).astimezone(UTC)
    return moment.isoformat()[:_DATE_LENGTH] + (f".{fraction}" if fraction else "")


def _to_char(value: str | None, form: str | None = None, _nls: str | None = None) -> SqlValue:
    if value is None or form in (None, "TM9"):
        return value
    if form == "TZR":
        offset = value[-len("+00:00") :]
        return offset if offset[0] in "+-" else "UTC"
    if form not in _FORMATS:
        raise OraError(1821, "date format not recognized")
    seconds, _, fraction = value.partition(".")
    digits = fraction.ljust(_NANOSECOND_DIGITS, "0")[: _FORMATS[form]]
    # A positive year has a blank as its sign.
    return f" {seconds}" + (f".{digits}" if digits else "")
