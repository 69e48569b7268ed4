"""Checks that a query from a client is safe: a single SELECT that calls only known functions.

The text is read as tokens, so literals, quoted names and comments can contain anything. The text
does not show two cases: a user's function that is called without brackets, and a view that calls a
user's function. The read-only transaction and the privileges of the account protect against both.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from olr_pg.errors import Code, OlrPgError

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<text>n?q'(?:\[.*?\]|\{.*?\}|\(.*?\)|<.*?>|(?P<mark>[^\s\[{(<]).*?(?P=mark))'
          | n?'(?:[^']|'')*')
      | (?P<quoted>"[^"]*")
      | (?P<broken>/\*|n?q'|n?'|")
      | (?P<word>[^\W\d][\w$#]*)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_FIRST: Final = ("SELECT", "WITH")

FUNCTIONS: Final = frozenset(
    {
        *("ABS", "ADD_MONTHS", "ASCII", "AVG", "CAST", "CHR", "COALESCE", "CONCAT", "COUNT"),
        *("DECODE", "DENSE_RANK", "EXTRACT", "GREATEST", "INITCAP", "INSTR", "LEAST", "LENGTH"),
        *("LENGTHB", "LISTAGG", "LNNVL", "LOWER", "LPAD", "LTRIM", "MAX", "MIN", "MOD"),
        *("MONTHS_BETWEEN", "NLS_LOWER", "NLS_UPPER", "NULLIF", "NVL", "NVL2", "ORA_HASH", "RANK"),
        *("REGEXP_COUNT", "REGEXP_INSTR", "REGEXP_LIKE", "REGEXP_REPLACE", "REGEXP_SUBSTR"),
        *("REPLACE", "ROUND", "ROW_NUMBER", "RPAD", "RTRIM", "SIGN", "SUBSTR", "SUBSTRB", "SUM"),
        *("SYS_CONTEXT", "TO_CHAR", "TO_DATE", "TO_NUMBER", "TO_TIMESTAMP", "TRANSLATE", "TRIM"),
        *("TRUNC", "UPPER"),
    }
)
"""Oracle's functions that a query can call; their result depends only on their arguments, and they
have no side effects.
"""

_BEFORE_BRACKETS: Final = FUNCTIONS | {
    *("ALL", "AND", "ANY", "AS", "BETWEEN", "BY", "CASE", "CHAR", "DISTINCT", "ELSE", "EXCEPT"),
    *("EXISTS", "FROM", "GROUP", "HAVING", "IN", "INTERSECT", "JOIN", "LATERAL", "LIKE", "MINUS"),
    *("NCHAR", "NOT", "NUMBER", "NVARCHAR2", "ON", "OR", "OVER", "PRIOR", "RAW", "SELECT", "SOME"),
    *("THEN", "TIMESTAMP", "UNION", "UNIQUE", "USING", "VARCHAR2", "WHEN", "WHERE", "WITH"),
}


class _Token(NamedTuple):
    kind: str
    text: str

    @property
    def word(self) -> str:
        """The token in upper case if it is a word; otherwise empty."""
        return self.text.upper() if self.kind == "word" else ""


_END: Final = _Token("end", "")


def check_plain(query: str) -> None:
    """Refuse a query that is not a single SELECT, or that uses locks, database links, sequences or
    unknown functions.

    Args:
        query: the query, without a semicolon at its end.

    Raises:
        OlrPgError: 3010 a literal or a comment is not closed, 3016 the query is refused.
    """
    tokens = _tokens(query)
    first = next((token for token in tokens if token.text != "("), _END)
    if first.word not in _FIRST:
        raise OlrPgError(Code.TABLE_QUERY_NOT_READ_ONLY, "it does not begin with SELECT or WITH")
    depth = 0
    for at, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth < 0:
            break
        reason = _reason(tokens, at)
        if reason is not None:
            raise OlrPgError(Code.TABLE_QUERY_NOT_READ_ONLY, reason)
    if depth:
        raise OlrPgError(Code.TABLE_QUERY_NOT_READ_ONLY, "its brackets do not match")


def _tokens(query: str) -> list[_Token]:
    found = []
    for match in _TOKEN.finditer(query):
        kind = match.lastgroup or ""
        if match["broken"]:
            raise OlrPgError(
                Code.TABLE_QUERY_INVALID,
                f"the text that begins with {match['broken']} does not end",
            )
        if not match["space"]:
            found.append(_Token("text" if match["text"] else kind, match.group()))
    return found


def _reason(tokens: list[_Token], at: int) -> str | None:
    """Return the reason why a token is not allowed; None if it is allowed."""
    token = tokens[at]
    before = tokens[at - 1] if at else _END
    if token.text == ";":
        return "it is more than one statement"
    if token.text == "@":
        return "it reads over a database link"
    if before.word == "FOR" and token.word == "UPDATE":
        return "it locks rows (FOR UPDATE)"
    if before.word == "WITH" and token.word in ("FUNCTION", "PROCEDURE"):
        return f"it contains PL/SQL (WITH {token.word})"
    if before.text == "." and token.text.strip('"').upper() in ("NEXTVAL", "CURRVAL"):
        return "it reads a sequence"
    if token.text == "(" and not _may_open(tokens, at):
        return f"it calls {before.text}, which is not an allowed function"
    return None


def _may_open(tokens: list[_Token], at: int) -> bool:
    """Return whether the opening bracket is allowed: it belongs to no function call, or to the call
    of an allowed function.
    """
    name = tokens[at - 1] if at else _END
    before = tokens[at - 2] if at > 1 else _END
    if name.kind not in ("word", "quoted"):
        return True
    if [token.text for token in tokens[at + 1 : at + 3]] == ["+", ")"]:
        return True  # outer join in Oracle's syntax
    if before.text != "." and name.word in _BEFORE_BRACKETS:
        return True
    return (before.word == "WITH" or before.text == ",") and _names_columns(tokens, at)


def _names_columns(tokens: list[_Token], at: int) -> bool:
    """Return whether the bracket contains the column names of a WITH clause: it contains only
    names, and AS follows it.
    """
    end = next((n for n, token in enumerate(tokens) if n > at and token.text == ")"), len(tokens))
    names = all(
        token.kind in ("word", "quoted") or token.text == "," for token in tokens[at + 1 : end]
    )
    behind = tokens[end + 1 : end + 3]
    return names and [token.text.upper() for token in behind] == ["AS", "("]
