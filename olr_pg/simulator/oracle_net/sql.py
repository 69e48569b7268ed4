"""Oracle's SQL, as far as this project's queries use it, for SQLite to run.

The stand-in keeps its dictionary and its fixed views in SQLite. What differs is small: object
names hold ``#``, queries say ``AS OF SCN``, binds are given by position. The statement is read as
a list of tokens, never by patterns over the whole text, so that texts and quoted names keep
whatever they hold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from olr_pg.simulator.oracle_net.faults import OraError

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


@dataclass(frozen=True, slots=True)
class Query:
    """A translated query.

    Attributes:
        sql: for SQLite; every bind is a ``?``.
        objects: names of everything that might be a table, in upper case where unquoted.
        flashback: of these, with the number or the index of the bind that ``AS OF SCN`` gives.
    """

    sql: str
    objects: frozenset[str]
    flashback: tuple[tuple[str, int, bool], ...]

    def scns(self, binds: list[object]) -> list[tuple[str, int]]:
        """(table, SCN) of every table that is read as of an SCN."""
        return [
            (name, int(str(binds[value])) if is_bind else value)
            for name, value, is_bind in self.flashback
        ]

    def values(self, binds: list[object]) -> list[object]:
        """The binds that are left, by position."""
        gone = {value for _, value, is_bind in self.flashback if is_bind}
        return [value for at, value in enumerate(binds) if at not in gone]


def is_query(sql: str) -> bool:
    """Whether the statement returns rows."""
    words = [text for kind, text in _tokens(sql) if kind == "word"]
    return bool(words) and words[0].upper() in ("SELECT", "WITH")


def translate(sql: str) -> Query:
    """The query in SQLite's words.

    Raises:
        OraError: ORA-00911, a character that has no place in SQL.
    """
    tokens = _tokens(sql)
    out: list[str] = []
    objects: set[str] = set()
    flashback: list[tuple[str, int, bool]] = []
    binds = at = 0
    while at < len(tokens):
        kind, text = tokens[at]
        if _words(tokens[at : at + 3]) == ["AS", "OF", "SCN"]:
            kind, text = tokens[at + 3]
            is_bind = kind == "bind"
            flashback.append((_plain(out[-1]), binds if is_bind else int(text), is_bind))
            binds += is_bind
            at += 4
            continue
        if text == "." and _words(tokens[at + 1 : at + 2]) == ["GETCLOBVAL"]:
            at += 4  # XMLTYPEs are kept as their text
            continue
        at += 1
        if kind == "bind":
            binds += 1
            out.append("?")
        elif kind in _NAME:
            objects.add(_plain(text))
            out.append(_name(kind, text))
        elif text == ";":
            raise OraError(911, "invalid character")
        else:
            out.append(text)
    return Query(" ".join(out).replace(" . ", "."), frozenset(objects), tuple(flashback))


def _tokens(sql: str) -> list[tuple[str, str]]:
    return [
        (match.lastgroup or "", match.group())
        for match in _TOKEN.finditer(sql)
        if match.lastgroup != "space"
    ]


def _words(tokens: list[tuple[str, str]]) -> list[str]:
    return [text.upper() for kind, text in tokens if kind == "word"]


def _plain(name: str) -> str:
    return name[1:-1] if name.startswith('"') else name.upper()


def _name(kind: str, text: str) -> str:
    if kind == "quoted":
        return text
    upper = text.upper()
    return f'"{upper}"' if "#" in upper or "$" in upper else upper
