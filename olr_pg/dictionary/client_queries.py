"""Checks which relations the TableList query of a client over the network reads.

A client needs no password. A query that reads other relations could read every row that the account
of the source may read, for example hashes of passwords in SYS.USER$. An error would contain the
value as a name of a table. Or the client would learn one bit with each query, from whether the
query returns rows. So the query may read only DUAL and the views ALL_…, DBA_… and USER_… of the
dictionary. The queries of the configuration are not limited.

The text is divided into tokens as Oracle does it (`tokens_of`), because a parser with other rules
for comments and literals could be deceived.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

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


class Token(NamedTuple):
    """A token of a query; `kind` is the name of its group in the pattern, or "end"."""

    kind: str
    text: str

    @property
    def word(self) -> str:
        """The token in upper case if it is a word; otherwise empty."""
        return self.text.upper() if self.kind == "word" else ""


END: Final = Token("end", "")


def tokens_of(query: str) -> list[Token]:
    """Return the tokens of a query as Oracle reads them, without comments and white space.

    Raises:
        OlrPgError: 3010, a literal or a comment is not closed.
    """
    found = []
    for match in _TOKEN.finditer(query):
        kind = match.lastgroup or ""
        if match["broken"]:
            raise OlrPgError(
                Code.TABLE_QUERY_INVALID,
                f"the text that begins with {match['broken']} does not end",
            )
        if not match["space"]:
            found.append(Token("text" if match["text"] else kind, match.group()))
    return found


_LISTS: Final = re.compile(r"(?:ALL|DBA|USER)_[A-Z_]+|DUAL")
_READS: Final = (
    "a client can read only DUAL and the views ALL_…, DBA_… and USER_… of the dictionary"
)


def check_relations(query: str) -> None:
    """Refuse a query that reads anything but DUAL and views of the dictionary.

    Raises:
        OlrPgError: 3010 a literal or a comment is not closed, 3016 the query is refused.
    """
    from sqlglot import parse_one  # it takes time to load, and few processes need it
    from sqlglot.errors import SqlglotError

    tokens = tokens_of(query.strip().rstrip(";"))
    text = " ".join("'x'" if token.kind == "text" else token.text for token in tokens)
    try:
        tree = parse_one(text, read="oracle")
    except (SqlglotError, RecursionError):
        raise OlrPgError(
            Code.TABLE_QUERY_NOT_READ_ONLY, f"the query cannot be checked: {_READS}"
        ) from None
    for table, scope in _tables(tree):
        name, owner = (_spelled(table.args.get(part)) for part in ("this", "db"))
        is_list = owner in ("", "SYS") and _LISTS.fullmatch(name) is not None
        if not is_list and (owner or not _names_query(name, scope)):
            raise OlrPgError(Code.TABLE_QUERY_NOT_READ_ONLY, f"the query reads {name}: {_READS}")


class _Scope(NamedTuple):
    """The queries that WITH clauses name at a place.

    Attributes:
        outer: those of the clauses around the clause.
        places: the place of each query in the clause, by its name.
        last: the place of the last query that is visible; in a query of the clause, its own.
    """

    outer: _Scope | None
    places: dict[str, int]
    last: int


def _tables(tree: exp.Expr) -> Iterator[tuple[exp.Table, _Scope | None]]:
    """Yield each table of a query, and what WITH clauses name there."""
    from sqlglot import exp

    left: list[tuple[exp.Expr, _Scope | None]] = [(tree, None)]
    while left:
        node, scope = left.pop()
        if isinstance(node, exp.Table):
            yield node, scope
        clause = next((one for one in node.args.values() if isinstance(one, exp.With)), None)
        if clause is not None:
            queries = clause.expressions
            names = [_spelled(query.args["alias"].this) for query in queries]
            # Of two queries with one name, only the first is a query of this name everywhere.
            places = {name: place for place, name in reversed(list(enumerate(names)))}
            left += ((query, _Scope(scope, places, place)) for place, query in enumerate(queries))
            scope = _Scope(scope, places, len(queries))
        left += ((one, scope) for one in node.iter_expressions() if one is not clause)


def _names_query(name: str, scope: _Scope | None) -> bool:
    """Return whether a name is that of a query, and not of a relation: Oracle does not see a query
    of another subquery, or a later one of the same clause.
    """
    while scope is not None:
        if scope.places.get(name, scope.last + 1) <= scope.last:
            return True
        scope = scope.outer
    return False


def _spelled(name: object) -> str:
    """Return a name as Oracle stores it; "?" for something that is no name."""
    from sqlglot import exp

    if name is None:
        return ""
    if not isinstance(name, exp.Identifier):
        return "?"
    return str(name.this) if name.quoted else str(name.this).upper()
