"""Translates the parts of Oracle's SQL that this project's queries use into SQLite's SQL.

The stand-in keeps its dictionary and its fixed views in SQLite. The differences are small: names of
objects contain ``#``, queries use ``AS OF SCN``, binds are given by position. The statement is read
as a list of tokens, not matched by patterns over the whole text, so that texts and quoted names
stay unchanged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.ora_error import OraError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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
        return f"?{self._seen}"

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
