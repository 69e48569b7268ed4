"""The data that the stand-in returns: SYS tables, fixed views and tables of users, in SQLite.

Oracle's dictionary is in memory, tables of users in a temporary SQLite file. `state` inserts the
rows. This module defines the columns and the functions that SQLite lacks, and turns a statement
into its rows or its ORA error.

The parts of Oracle's SQL that this project's queries use are translated into SQLite's SQL. The
differences are small: names of objects contain ``#``, queries use ``AS OF SCN``, binds are given by
position. The statement is read as a list of tokens, not matched by patterns over the whole text, so
that texts and quoted names stay unchanged.

Tablespaces, including encrypted tablespaces, are rows of several views. A statement that moves
segments into another tablespace changes only the dictionary: the segments keep their DATAOBJ#.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import tomllib
import weakref
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.dictionary.lob_delivery import CLOB, lob_delivery
from olr_pg.dictionary.stored_segments import ENCRYPTED
from olr_pg.scalars import format_rowid
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net.values import UNICODE, Bfile, ResultColumn, ResultType, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from olr_pg.dictionary.model import Table


_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"[^"]*")
      | (?P<bind>:(?:[\w$#]+|"[^"]+"))
      | (?P<number>\d+(?:\.\d+)?|\.\d+)
      | (?P<word>[^\W\d][\w$#]*)
      | (?P<other><=|>=|<>|!=|\|\||=>|.)""",
    re.VERBOSE | re.DOTALL,
)
_NAME: Final = ("word", "quoted")
_VALUES: Final = frozenset({"bind", "number", "text"})
_LIST_MAX: Final = 1_000
_KEPT_MAX: Final = 1_000
"""Number of translated statements that are kept."""
_LEVELS: Final = (
    "FROM (WITH RECURSIVE levels(LEVEL) AS"
    " (SELECT 1 UNION ALL SELECT LEVEL + 1 FROM levels WHERE LEVEL < {}) SELECT LEVEL FROM levels)"
)
"""SQLite's form of ``FROM DUAL CONNECT BY LEVEL <= n``."""
_TEXT_OF: Final = {"XMLSERIALIZE": 3, "JSON_SERIALIZE": 2, "FROM_VECTOR": 2}
"""Functions that turn a value into a CLOB, with the index of the token that names the value."""


RESERVED: Final = frozenset(
    """ACCESS ADD ALL ALTER AND ANY AS ASC AUDIT BETWEEN BY CHAR CHECK CLUSTER COLUMN COLUMN_VALUE
    COMMENT COMPRESS CONNECT CREATE CURRENT DATE DECIMAL DEFAULT DELETE DESC DISTINCT DROP ELSE
    EXCLUSIVE EXISTS FILE FLOAT FOR FROM GRANT GROUP HAVING IDENTIFIED IMMEDIATE IN INCREMENT INDEX
    INITIAL INSERT INTEGER INTERSECT INTO IS LEVEL LIKE LOCK LONG MAXEXTENTS MINUS MLSLABEL MODE
    MODIFY NESTED_TABLE_ID NOAUDIT NOCOMPRESS NOT NOWAIT NULL NUMBER OF OFFLINE ON ONLINE OPTION OR
    ORDER PCTFREE PRIOR PUBLIC RAW RENAME RESOURCE REVOKE ROW ROWID ROWNUM ROWS SELECT SESSION SET
    SHARE SIZE SMALLINT START SUCCESSFUL SYNONYM SYSDATE TABLE THEN TO TRIGGER UID UNION UNIQUE
    UPDATE USER VALIDATE VALUES VARCHAR VARCHAR2 VIEW WHENEVER WHERE WITH""".split()  # noqa: SIM905
)
"""Words that cannot be names without quotation marks (SQL Language Reference, Reserved Words)."""


@dataclass(frozen=True, slots=True)
class Query:
    """A translated query.

    Attributes:
        sql: the statement for SQLite; every bind is a ``?`` with its number.
        objects: all names that might be tables; in upper case if they are not quoted.
        flashback: (name, value, is bind) for each ``AS OF SCN``; the value is the SCN or the index
            of the bind.
        versioned: the tables of the query whose rows are known at every SCN.
        columns: by alias, the name of the column before ``AS``, also within a CASE; empty for other
            expressions.
        raws: the aliases of expressions with UTL_RAW.CAST_TO_RAW.
        binds: number of the binds, from the first on, that `sql` uses.
    """

    sql: str
    objects: frozenset[str]
    flashback: tuple[tuple[str, int, bool], ...]
    versioned: frozenset[tuple[str, str]]
    columns: Mapping[str, str]
    raws: frozenset[str]
    binds: int

    def scns(self, binds: list[object]) -> list[tuple[str, int]]:
        """Return (table, SCN) of every table that is read as of an SCN."""
        return [
            (name, int(str(binds[value])) if is_bind else value)
            for name, value, is_bind in self.flashback
        ]


@lru_cache(_KEPT_MAX)
def is_query(sql: str) -> bool:
    """Return whether the statement returns rows."""
    words = [text for kind, text in _tokens(sql) if kind == "word"]
    return bool(words) and words[0].upper() in ("SELECT", "WITH")


@lru_cache(_KEPT_MAX)
def translate(sql: str, versioned: frozenset[tuple[str, str]] = frozenset()) -> Query:
    """Translate a query into SQLite's SQL.

    Results are cached, because the same statement is often repeated.

    Args:
        versioned: (owner, name) of the tables whose rows are kept at every SCN.

    Raises:
        OraError: ORA-00911, a character is not allowed in SQL; ORA-01795, a list is too long.
    """
    return _Translation(_tokens(sql), versioned).query()


class _Translation:
    """A statement that is being translated into SQLite's SQL."""

    def __init__(
        self, tokens: list[tuple[str, str]], versioned: Collection[tuple[str, str]]
    ) -> None:
        self._tokens = tokens
        self._versioned = versioned
        self._out: list[str] = []
        self._objects: set[str] = set()
        self._flashback: list[tuple[str, int, bool]] = []
        self._found: set[tuple[str, str]] = set()
        self._columns: dict[str, str] = {}
        self._raws: set[str] = set()
        self._is_raw = False
        self._seen = self._used = 0

    def query(self) -> Query:
        at = 0
        while at < len(self._tokens):
            at += self._take(self._tokens[at:])
        return Query(
            " ".join(self._out).replace(" . ", "."),
            frozenset(self._objects),
            tuple(self._flashback),
            frozenset(self._found),
            self._columns,
            frozenset(self._raws),
            self._used,
        )

    def _take(self, rest: list[tuple[str, str]]) -> int:
        """Translate the next tokens; return their number."""
        if _words(rest[:3]) == ["AS", "OF", "SCN"]:
            self._as_of(*rest[3])
            return 4
        if _words(rest[:2]) == ["SAMPLE", "BLOCK"]:
            self._sample(rest[3][1])
            return 5
        if _words(rest[:1]) == ["IN"] and rest[1][1] == "(":
            _check_list(rest[2:])
        if _words(rest[:1]) == ["DBMS_LOB"]:
            self._out.append({"GETLENGTH": "LOB_LENGTH"}.get(rest[2][1], f"LOB_{rest[2][1]}"))
            return 3
        if _words(rest[:1]) == ["UTL_RAW"]:
            self._out.append(rest[2][1])
            self._is_raw = rest[2][1] == "CAST_TO_RAW"
            return 3
        if _words(rest[:5]) == ["FROM", "DUAL", "CONNECT", "BY", "LEVEL"]:
            self._out.append(_LEVELS.format(rest[6][1]))
            return 7
        text_of = _TEXT_OF.get("".join(_words(rest[:1])))
        if text_of is not None:
            return self._text_of(rest, text_of)
        if _words(rest[:1]) == ["VECTOR_DIMENSION_FORMAT"]:
            return 5  # with the ||: the text of a VECTOR contains its format
        kind, text = rest[0]
        if text == "." and _words(rest[1:2]) == ["GETCLOBVAL"]:
            return 4  # An XMLTYPE is stored as its text.
        if kind == "bind":
            self._out.append(self._bind())
        elif kind in _NAME:
            if text.upper() == "AS" and rest[1][0] in _NAME:
                self._alias(*rest[1:3])
            self._objects.add(_plain(text))
            self._out.append(_name(kind, text))
            self._note_table()
            self._note_alias(rest)
        elif text == ";":
            raise OraError(911, "invalid character")
        else:
            self._out.append(text)
        return 1

    def _text_of(self, rest: list[tuple[str, str]], first: int) -> int:
        """Translate a function that turns a value into text: the stored value is its text."""
        end = next(at for at, (_, text) in enumerate(rest) if text == ")")
        kind, text = rest[first]
        self._out.append(_name(kind, text))
        behind = rest[end + 1 :]
        if _words(behind[:1]) == ["END"]:
            behind = behind[1:]
        if len(behind) > 1 and behind[0][1].upper() == "AS":
            self._columns[_plain(behind[1][1])] = _plain(text)
        return end + 1

    def _bind(self) -> str:
        self._seen += 1
        self._used = self._seen
        return f":b{self._seen}"

    def _table(self) -> tuple[str, str] | None:
        """Return the table at the end of the output, if its rows are known at every SCN."""
        if len(self._out) < 3 or self._out[-2] != ".":
            return None
        found = _plain(self._out[-3]), _plain(self._out[-1])
        return found if found in self._versioned else None

    def _note_table(self) -> None:
        table = self._table()
        if table is not None:
            self._found.add(table)

    def _note_alias(self, rest: list[tuple[str, str]]) -> None:
        before = self._out[-4:-3] if self._out[-2:-1] == ["."] else self._out[-2:-1]
        if before == ["THEN"] and _words(rest[1:2]) == ["END"]:
            rest = [rest[0], *rest[2:]]
        elif before not in (["SELECT"], [","]):
            return
        if len(rest) > 2 and rest[1][1].upper() == "AS":
            self._columns[_plain(rest[2][1])] = _plain(rest[0][1])

    def _alias(self, name: tuple[str, str], *behind: tuple[str, str]) -> None:
        """Record the word after AS: a column's alias or, if a bracket follows, a type.

        Raises:
            OraError: ORA-00923, the alias is a reserved word.
        """
        if name[1].upper() in RESERVED and behind[:1] != (("other", "("),):
            raise OraError(923, "FROM keyword not found where expected")
        self._columns.setdefault(_plain(name[1]), "")
        if self._is_raw:
            self._raws.add(_plain(name[1]))
            self._is_raw = False

    def _as_of(self, kind: str, text: str) -> None:
        is_bind, table = kind == "bind", self._table()
        value = self._seen if is_bind else int(text)
        self._flashback.append((_plain(self._out[-1]), value, is_bind))
        if table is None:
            self._seen += is_bind
            return
        scn = self._bind() if is_bind else text
        owner, name = table
        versions = (
            f'SELECT * FROM "{owner}"."{name}/versions" WHERE "/since" <= {scn}'  # noqa: S608
            f' AND ("/until" IS NULL OR "/until" > {scn})'
        )
        self._out[-3:] = [f"({versions})"]

    def _sample(self, percent: str) -> None:
        table = "".join(self._out[-3:])
        self._out[-3:] = [f"(SELECT * FROM {table} WHERE SAMPLED(ROWID, {percent}))"]  # noqa: S608


def _tokens(sql: str) -> list[tuple[str, str]]:
    return [
        (match.lastgroup or "", match.group())
        for match in _TOKEN.finditer(sql)
        if match.lastgroup != "space"
    ]


def _check_list(rest: list[tuple[str, str]]) -> None:
    """Check the length of the list after ``IN (``: before 23ai, Oracle accepts 1,000 values.

    Raises:
        OraError: ORA-01795, the list is too long.
    """
    kinds = [kind for kind, _ in rest[: 2 * _LIST_MAX + 1]]
    if len(kinds) > 2 * _LIST_MAX and set(kinds[::2]) <= _VALUES:
        raise OraError(1795, f"maximum number of expressions in a list is {_LIST_MAX}")


def _words(tokens: list[tuple[str, str]]) -> list[str]:
    return [text.upper() for kind, text in tokens if kind == "word"]


def _plain(name: str) -> str:
    return name[1:-1] if name.startswith('"') else name.upper()


def _name(kind: str, text: str) -> str:
    if kind == "quoted":
        return text
    upper = text.upper()
    return f'"{upper}"' if "#" in upper or "$" in upper else upper


_KNOWN: Final = tomllib.loads(Path(__file__).with_name("dictionary.toml").read_text("utf-8"))
SYS_TABLES: Final[dict[str, str]] = _KNOWN["tables"]
INVENTORY_VIEWS: Final[dict[str, str]] = _KNOWN["inventory"]
VIEWS: Final[dict[str, str]] = _KNOWN["views"] | {
    view: " ".join(told.partition("=")[0] for told in columns.split())
    for view, columns in INVENTORY_VIEWS.items()
}
"""The names of the columns of each view."""

_INDEXED: Final = frozenset(
    {
        *("OBJ#", "BO#", "POBJ#", "CON#", "LOBJ#", "PARENTOBJ#", "TABOBJ#", "BLOCK#", "NAME"),
        *("TABLE_NAME", "OBJECT_NAME", "SEGMENT_NAME"),
    }
)
"""Columns with an index: queries about batches of thousands of tables find their rows by them."""

_STORED: Final = frozenset(
    name for name in (*SYS_TABLES, *VIEWS) if name != "DUAL" and not name.startswith("V$")
)
"""Tables and views that can be read only if the database is open; fixed views (V$) need no open
database.
"""

_NOT_OPEN: Final = (
    "database or pluggable database not open: queries allowed on fixed tables or views only"
)
_KEYWORDS: Final = {
    table: {column.rstrip("#$"): column for column in columns.split()}
    for table, columns in {**SYS_TABLES, **VIEWS}.items()
}

FIRST_DATA_OBJECT: Final = 2
_DATA_OBJECTS: Final = {table: FIRST_DATA_OBJECT + at for at, table in enumerate(SYS_TABLES)}
ROWS_PER_BLOCK: Final = 60
"""Rows per block in generated ROWIDs."""

_LONG: Final = "\0number "
"""Prefix of the text that represents an integer of more than 64 bits."""

_DATE: Final = "\0date "
"""Prefix of the text that represents a DATE."""

_BFILE: Final = "\0bfile "
"""Prefix of the text that represents a BFILE; a NUL separates its directory from its name."""

_STEPS_BETWEEN_CHECKS: Final = 10_000
_READ_ONLY: Final = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
_ALL_TABLES: Final = """
CREATE VIEW SYS.ALL_TABLES AS
    SELECT OWNER, TABLE_NAME FROM SYS.DBA_TABLES WHERE MAY_READ(TABLE_NAME)
"""
_NO_TABLE: Final = re.compile(r"no such table: (.+)")
_NO_COLUMN: Final = re.compile(r"no such column: (?:\w+\.)?(.+)")


SqlValue = str | bytes | int | float | None


class QueryResult(NamedTuple):
    """The rows of a query."""

    columns: tuple[ResultColumn, ...]
    rows: list[tuple[object, ...]]


class Catalogue:
    """The database that the stand-in serves; may be used from several threads.

    Attributes:
        current_scn: returns the current SCN; queries as of a higher SCN are rejected.
        undo_scn: the oldest SCN as of which a table can be read.
        readable: tables that the user may read.
        denied: objects that the user may not read.
        is_mounted: the database is mounted but not open, so that only fixed views can be read.
        no_flashback: objects that the user may not read as of an SCN.
        text: converts text as the database does.
        context: results of SYS_CONTEXT('USERENV', name).
        versioned: the tables whose rows are known at every SCN: by (owner, name), the types of
            their columns.
        made_when_asked: functions that return the rows of a view; called for each query that names
            the view.
        former_rows: for an SCN, returns a function that inserts the rows of SYS tables as of this
            SCN; None if these rows have not changed since. It is the same function for all SCNs
            with the same rows.
    """

    def __init__(self, current_scn: Callable[[], int]) -> None:
        self.current_scn = current_scn
        self.undo_scn = 0
        self.readable: set[str] = set()
        self.denied: set[str] = set()
        self.is_mounted = False
        self.no_flashback: set[str] = set()
        self.text = UNICODE
        self.context: dict[str, str] = {}
        self._lob_columns = {"BINARYDEFVAL"}
        self._clobs: dict[str, ResultType] = {}
        self._schemas = {"SYS", "XDB"}
        self.versioned: dict[tuple[str, str], dict[str, ResultType]] = {}
        self.made_when_asked: dict[str, Callable[[], Iterable[Mapping[str, object]]]] = {}
        self.former_rows: Callable[[int], Callable[[], None] | None] = lambda _: None
        self._functions: dict[tuple[str, int], Callable[..., SqlValue]] = {}
        self._shown: Callable[[], None] | None = None
        self._rows_made = 0
        self._lock = threading.RLock()
        self._is_asked = False
        self._sqlite = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._sqlite.execute("PRAGMA case_sensitive_like = ON")
        self._sqlite.execute("ATTACH ':memory:' AS SYS")
        for name, columns in {**SYS_TABLES, **VIEWS}.items():
            pseudo = ["ROWID", "ORA_ROWSCN"] if name in SYS_TABLES else []
            declared = ", ".join(f'"{column}"' for column in [*columns.split(), *pseudo])
            self._sqlite.execute(f'CREATE TABLE SYS."{name}" ({declared})')
            for column in _INDEXED.intersection(columns.split()):
                index = f'"{name}/{column}" ON "{name}" ("{column}")'
                self._sqlite.execute(f"CREATE INDEX SYS.{index}")
        self._sqlite.execute("ATTACH ':memory:' AS XDB")
        self._sqlite.execute('CREATE TABLE XDB."XDB$TTSET" (TOKSUF, FLAGS)')
        self._sqlite.execute(_ALL_TABLES)
        self._sqlite.execute("INSERT INTO SYS.DUAL VALUES ('X')")
        self._add_functions()
        self._forbid_writing()

    def close(self) -> None:
        """Discard all data. Further calls do nothing."""
        with self._lock:
            self._sqlite.close()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold exclusive access within the context."""
        with self._lock:
            yield

    def insert(self, table: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Add rows, by column name; missing columns are NULL, and a missing ROWID is generated."""
        with self._lock:
            self._show_present()
            for given in rows:
                row = dict(given)
                if table in SYS_TABLES:
                    row.setdefault("ROWID", self._next_rowid(table))
                values = [_to_sqlite(value) for value in row.values()]
                self._sqlite.execute(_insert_statement(table, tuple(row)), values)

    def put(self, table: str, **values: object) -> None:
        """Add a row; the keywords are its columns, without the # or $ that ends them."""
        columns = _KEYWORDS[table]
        self.insert(table, [{columns[name]: value for name, value in values.items()}])

    def create_table(self, table: Table) -> None:
        """Create a table of a user without rows, with its delivered columns and ROWID."""
        names = [column.name for column in table.delivered]
        lobs = {column.name for column in table.delivered if lob_delivery(column)}
        with self._lock:
            self._show_present()
            self.add_schema(table.owner)
            declared = ", ".join(f'"{name}"' for name in (*names, "ROWID"))
            self._sqlite.execute(f'CREATE TABLE "{table.owner}"."{table.name}" ({declared})')
            self._lob_columns |= lobs
            for column in table.delivered:
                if column.type_code == CLOB and not column.xml:
                    self._clobs[column.name] = ResultType(CLOB, 4000, column.charset_form or 1)

    def add_schema(self, owner: str) -> None:
        """Create the schema of a user if it does not exist."""
        if owner not in self._schemas:
            self.update(f"ATTACH '' AS \"{owner}\"")
            self._schemas.add(owner)

    def _next_rowid(self, table: str) -> str:
        self._rows_made += 1
        dataobj = _DATA_OBJECTS[table]
        block, slot = divmod(self._rows_made, ROWS_PER_BLOCK)
        return format_rowid(dataobj, 1 << 22 | block, slot)

    def update(self, sql: str, *values: object) -> int:
        """Change rows by a statement in SQLite's SQL; return the number of changed rows."""
        with self._lock:
            self._show_present()
            return self._sqlite.execute(sql, values).rowcount

    def insert_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Add many rows by a statement in SQLite's SQL."""
        with self._lock:
            self._show_present()
            self._sqlite.executemany(sql, rows)

    def rows(self, sql: str, *values: object) -> list[tuple[object, ...]]:
        """Return the rows of a query in SQLite's SQL."""
        with self._lock:
            self._show_present()
            return self._sqlite.execute(sql, values).fetchall()

    def query(
        self, sql: str, binds: Sequence[object], stopped: Callable[[], bool] = lambda: False
    ) -> QueryResult:
        """Run a query in Oracle's SQL.

        Args:
            stopped: returns whether the client has interrupted the query; called periodically.

        Raises:
            OraError: the error that Oracle would report.
        """
        query = translate(sql, frozenset(self.versioned))
        for name in query.objects & self.denied:
            raise OraError(942, f'table or view "SYS"."{name}" does not exist')
        if self.is_mounted and query.objects & _STORED:
            raise OraError(1219, _NOT_OPEN)
        scns = query.scns(list(binds))
        self._check_scns(scns)
        values = list(binds)[: query.binds]
        with self._lock:
            for name in query.objects & self.made_when_asked.keys():
                self.update(f'DELETE FROM SYS."{name}"')  # noqa: S608
                self.insert(name, self.made_when_asked[name]())
            self._show_dictionary_of(scns)
            scn = self.current_scn()
            self._sqlite.execute('UPDATE SYS."V$DATABASE" SET "CURRENT_SCN" = ?', (scn,))
            names, rows = self._fetched(query.sql, values, stopped)
        found = zip(*rows, strict=True) if rows else ((),) * len(names)
        columns = tuple(
            ResultColumn(name, self._kind(query, name, of_it))
            for name, of_it in zip(names, found, strict=True)
        )
        return QueryResult(columns, rows)

    def _fetched(
        self, sql: str, values: Sequence[object], stopped: Callable[[], bool]
    ) -> tuple[list[str], list[tuple[object, ...]]]:
        """Return (column names, rows) of a query; the query may not write."""
        self._is_asked = True
        self._sqlite.set_progress_handler(stopped, _STEPS_BETWEEN_CHECKS)
        try:
            binds = {f"b{number}": value for number, value in enumerate(values, 1)}
            cursor = self._sqlite.execute(sql, binds)
            rows = [tuple(map(_from_sqlite, row)) for row in cursor.fetchall()]
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise _fault(error) from error
        finally:
            self._is_asked = False
            self._sqlite.set_progress_handler(None, 0)
        return [name for name, *_ in cursor.description], rows

    def _show_dictionary_of(self, scns: Sequence[tuple[str, int]]) -> None:
        """Let SYS tables contain the rows of a former SCN if the query reads them AS OF SCN.

        These rows stay until something else is asked for, since a client reads one SYS table after
        the other as of the same SCN.
        """
        asked = [scn for name, scn in scns if name in SYS_TABLES]
        put = self.former_rows(min(asked)) if asked else None
        if put is self._shown:
            return
        self._show_present()
        if put is not None:
            self._sqlite.execute("SAVEPOINT former")
            try:
                put()
            except BaseException:
                self._discard_former()
                raise
            self._shown = put

    def _show_present(self) -> None:
        """Let SYS tables contain the present rows again."""
        if self._shown is not None:
            self._shown = None
            self._discard_former()

    def _discard_former(self) -> None:
        self._sqlite.execute("ROLLBACK TO former")
        self._sqlite.execute("RELEASE former")

    def _kind(self, query: Query, name: str, values: Sequence[object]) -> ResultType:
        """Return the type of a result column: declared by a versioned table, else by its values."""
        column = query.columns.get(name, name)
        if name in query.raws:
            return kind_of([b"", *values], lob=False)
        if name.startswith("TO_CLOB"):
            return ResultType(CLOB, 4000, 1)
        for table in query.versioned:
            if column in self.versioned[table]:
                return self.versioned[table][column]
        return self._clobs.get(column) or kind_of(values, lob=column in self._lob_columns)

    def _check_scns(self, scns: list[tuple[str, int]]) -> None:
        for name, scn in scns:
            if name in self.no_flashback:
                raise OraError(1031, "insufficient privileges")
            if scn > self.current_scn():
                raise OraError(8181, "specified number is not a valid system change number")
            if scn < self.undo_scn:
                raise OraError(
                    1555, 'snapshot too old: rollback segment number 7 with name "" too small'
                )

    def _forbid_writing(self) -> None:
        """Have SQLite refuse queries of clients that write.

        SQLite keeps one authorizer for all statements: setting it for each query would have SQLite
        prepare every statement again.
        """
        own = weakref.ref(self)

        def authorize(action: int, *_: object) -> int:
            catalogue = own()
            is_asked = catalogue is not None and catalogue._is_asked
            return (
                sqlite3.SQLITE_DENY if is_asked and action not in _READ_ONLY else sqlite3.SQLITE_OK
            )

        self._sqlite.set_authorizer(authorize)

    def _add_functions(self) -> None:
        functions: tuple[tuple[str, int, Callable[..., SqlValue]], ...] = (
            ("NVL", 2, lambda value, other: other if value is None else value),
            ("BITAND", 2, lambda a, b: None if a is None or b is None else int(a) & int(b)),
            ("MOD", 2, lambda a, b: None if a is None or b is None else int(a) % int(b)),
            ("TRUNC", 1, lambda a: None if a is None else int(a)),
            ("UPPER", 1, lambda text: None if text is None else str(text).upper()),
            ("LOWER", 1, lambda text: None if text is None else str(text).lower()),
            ("SYS_CONTEXT", 2, self._sys_context),
            ("MAY_READ", 1, lambda table: table in self.readable - self.denied),
            ("CAST_TO_RAW", 1, lambda text: None if text is None else self.text.stored(text)),
            ("CAST_TO_VARCHAR2", 1, lambda raw: raw),
            ("TO_CLOB", 1, lambda text: text),
            ("LOB_LENGTH", 1, self._lob_length),
            ("LOB_SUBSTR", 3, self._lob_substr),
            ("BFILENAME", 2, lambda directory, name: f"{_BFILE}{directory}\0{name}"),
        )
        for name, count, function in functions:
            self.add_function(name, count, function)

    def add_collation(self, name: str, key: Callable[[str], Any]) -> None:
        """Add a collation that compares texts by the result of `key`."""

        def compare(ours: str, theirs: str) -> int:
            one, other = key(ours), key(theirs)
            return int(one > other) - int(one < other)

        self._sqlite.create_collation(name, compare)

    def add_function(self, name: str, count: int, function: Callable[..., SqlValue]) -> None:
        """Add a function with `count` arguments that queries can call.

        SQLite gets only a weak reference to the catalogue, because the garbage collector cannot see
        references that SQLite holds.
        """
        self._functions[name, count] = function
        own = weakref.ref(self)

        def call(*values: SqlValue) -> SqlValue:
            catalogue = own()
            assert catalogue is not None
            return catalogue._functions[name, count](*values)

        with self._lock:
            self._sqlite.create_function(name, count, call)

    def _lob_length(self, value: str | bytes | None) -> SqlValue:
        """Return the length of a LOB: that of a text in UTF-16 units, or in bytes in a database
        with one byte per character.
        """
        if value is None:
            return None
        if self.text.is_single_byte:
            return len(self.text.stored(value))
        return len(value.encode("utf-16-be")) // 2 if isinstance(value, str) else len(value)

    def _lob_substr(self, value: str | bytes | None, amount: int, first: int) -> SqlValue:
        """Return a part of a LOB; a CLOB of a database with one byte per character is bytes."""
        if value is None:
            return None
        content = self.text.stored(value) if self.text.is_single_byte else value
        return content[first - 1 : first - 1 + amount] or None

    def _sys_context(self, namespace: str, name: str) -> str | None:
        return self.context.get(name.upper()) if namespace.upper() == "USERENV" else None


@lru_cache(_KEPT_MAX)
def _insert_statement(table: str, columns: tuple[str, ...]) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    return f'INSERT INTO SYS."{table}" ({names}) VALUES ({", ".join("?" * len(columns))})'  # noqa: S608


def _to_sqlite(value: object) -> object:
    """Return a value that SQLite can store: it has no dates and no integers over 64 bits."""
    if isinstance(value, datetime):
        return _DATE + value.isoformat()
    return f"{_LONG}{value}" if isinstance(value, int) and value.bit_length() > 63 else value


def _from_sqlite(value: object) -> object:
    if not isinstance(value, str) or not value.startswith("\0"):
        return value
    if value.startswith(_LONG):
        return int(value[len(_LONG) :])
    if value.startswith(_DATE):
        return datetime.fromisoformat(value[len(_DATE) :])
    if value.startswith(_BFILE):
        return Bfile(*value[len(_BFILE) :].split("\0"))
    return value


def _fault(error: Exception) -> OraError:
    text = str(error)
    if match := _NO_TABLE.match(text):
        return OraError(942, f'table or view "{match[1]}" does not exist')
    if match := _NO_COLUMN.match(text):
        return OraError(904, f'"{match[1]}": invalid identifier')
    if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
        return OraError(1013, "user requested cancel of current operation")
    return OraError(900, f"invalid SQL statement ({text})")


TABLESPACE: Final = 6
SECURE: Final = 7
BLOCK_SIZE: Final = 8192

_MOVE: Final = re.compile(
    r'ALTER\s+TABLE\s+"?([\w$#]+)"?\s*\.\s*"?([\w$#]+)"?\s+MOVE\s+'
    r'(?:(?:SUB)?PARTITION\s+"?([\w$#]+)"?\s+)?'
    r'(?:LOB\s*\(\s*"?([\w$#]+)"?\s*\)\s*STORE\s+AS\s*\(\s*)?TABLESPACE\s+"?([\w$#]+)"?\s*\)?\s*$',
    re.IGNORECASE,
)
_PARTS: Final = """
SELECT "OBJ#", BO FROM (
    SELECT "OBJ#", "BO#" BO FROM SYS."TABPART$"
    UNION ALL SELECT s."OBJ#", c."BO#" FROM SYS."TABSUBPART$" s
        JOIN SYS."TABCOMPART$" c ON c."OBJ#" = s."POBJ#"
    UNION ALL SELECT p."OBJ#", i."BO#" FROM SYS."INDPART$" p JOIN SYS."IND$" i ON i."OBJ#" = p."BO#"
)
"""
"""A query for OBJ# of all partitions that may contain rows, each with the OBJ# of its table."""

_OF_ROWS: Final = {"TAB$": "OBJ#", "TABPART$": "OBJ#", "TABSUBPART$": "OBJ#", "INDPART$": "OBJ#"}


def insert_tablespace(
    catalogue: Catalogue, number: int, name: str, *, encrypted: bool = False, flags: int = 0
) -> None:
    """Insert an online tablespace.

    Args:
        number: TS#.
        flags: further bits of TS$.FLAGS.
    """
    flags |= ENCRYPTED if encrypted else 0
    catalogue.put("TS$", TS=number, NAME=name, BLOCKSIZE=BLOCK_SIZE, ONLINE=1, FLAGS=flags)
    if encrypted:
        own = {"ENCRYPTEDTS": "YES", "STATUS": "NORMAL"}
        catalogue.put("V$ENCRYPTED_TABLESPACES", TS=number, CON_ID=0, **own)


def move_segment(catalogue: Catalogue, sql: str) -> bool:
    """Carry out ``ALTER TABLE … MOVE`` of a table, partition or LOB; False if it is another
    statement.

    Raises:
        OraError: ORA-00942, ORA-00959, ORA-02149, no table, tablespace or partition has this name.
    """
    match = _MOVE.match(sql)
    if match is None:
        return False
    owner, table, part, column, tablespace = match.groups()
    numbers = catalogue.rows('SELECT "TS#" FROM SYS."TS$" WHERE "NAME" = ?', tablespace)
    if not numbers:
        raise OraError(959, f"tablespace '{tablespace}' does not exist")
    objects = _objects(catalogue, owner, table, part)
    if not objects:
        raise OraError(942 if part is None else 2149, "the table or partition does not exist")
    for obj in objects:
        if column is not None:
            _move_lob(catalogue, obj, column, numbers[0][0], is_part=part is not None)
        else:
            _move_rows(catalogue, obj, numbers[0][0])
    return True


def encrypt_tables(catalogue: Catalogue, names: Iterable[str]) -> None:
    """Move all segments of the tables ``OWNER.NAME`` to an encrypted tablespace."""
    for number, name in enumerate(names):
        if number == 0:
            insert_tablespace(catalogue, SECURE, "SECURE", encrypted=True)
        owner, _, table = name.partition(".")
        (obj,) = _objects(catalogue, owner, table, None)
        parts = catalogue.rows(f"{_PARTS} WHERE BO = ?", obj)
        for one in (obj, *(part for part, _ in parts)):
            _move_rows(catalogue, one, SECURE)
        catalogue.update('UPDATE SYS."LOB$" SET "TS#" = ? WHERE "OBJ#" = ?', SECURE, obj)
        catalogue.update(
            'UPDATE SYS."LOBFRAG$" SET "TS#" = ? WHERE "PARENTOBJ#" IN'
            ' (SELECT "LOBJ#" FROM SYS."LOB$" WHERE "OBJ#" = ?)',
            *(SECURE, obj),
        )


def _objects(catalogue: Catalogue, owner: str, table: str, part: str | None) -> list[object]:
    """Return the OBJ# of a table, or of its partitions named `part` and those of the index with its
    rows.
    """
    own = (
        'SELECT o."OBJ#" FROM SYS."OBJ$" o JOIN SYS."USER$" u ON u."USER#" = o."OWNER#"'
        ' WHERE u."NAME" = ? AND o."TYPE#" = 2 AND o."NAME" = ?'
    )
    if part is None:
        return [obj for (obj,) in catalogue.rows(own, owner, table)]
    parts = (
        f"{_PARTS} WHERE BO IN ({own})"  # noqa: S608
        ' AND "OBJ#" IN (SELECT "OBJ#" FROM SYS."OBJ$" WHERE "SUBNAME" = ?)'
    )
    return [obj for obj, _ in catalogue.rows(parts, owner, table, part)]


def _move_rows(catalogue: Catalogue, obj: object, tablespace: object) -> None:
    for table, column in _OF_ROWS.items():
        if "BLOCK#" in _columns(catalogue, table):
            catalogue.update(
                'UPDATE SYS."SEG$" SET "TS#" = ? WHERE ("FILE#", "BLOCK#") IN'  # noqa: S608
                f' (SELECT "FILE#", "BLOCK#" FROM SYS."{table}" WHERE "{column}" = ?)',
                *(tablespace, obj),
            )
        catalogue.update(
            f'UPDATE SYS."{table}" SET "TS#" = ? WHERE "{column}" = ?',  # noqa: S608
            *(tablespace, obj),
        )
    catalogue.update(
        'UPDATE SYS."IND$" SET "TS#" = ? WHERE "BO#" = ? AND "TYPE#" = 4', tablespace, obj
    )


def _columns(catalogue: Catalogue, table: str) -> set[object]:
    return {row[1] for row in catalogue.rows(f'PRAGMA SYS.table_info("{table}")')}


def _move_lob(
    catalogue: Catalogue, obj: object, column: str, tablespace: object, *, is_part: bool
) -> None:
    where, values = '"TABFRAGOBJ#" = ?', [obj]
    table = "LOBFRAG$"
    if not is_part:
        table, values = "LOB$", [obj, obj, column]
        where = (
            '"OBJ#" = ? AND "INTCOL#" IN'
            ' (SELECT "INTCOL#" FROM SYS."COL$" WHERE "OBJ#" = ? AND "NAME" = ?)'
        )
    catalogue.update(f'UPDATE SYS."{table}" SET "TS#" = ? WHERE {where}', tablespace, *values)  # noqa: S608
