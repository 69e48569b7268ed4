"""Parses statements; sqlglot parses queries and expressions, in Oracle's dialect.

Text that sqlglot cannot parse, or parses with another meaning, is removed first: RETURNING … INTO,
the parts of a MERGE, FOR UPDATE with its options. Binds are renamed by their position. So a bind
that occurs twice has two positions, as the driver sends it.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.dialects.oracle import Oracle
from sqlglot.errors import SqlglotError
from sqlglot.parsers.oracle import OracleParser
from sqlglot.tokenizer_core import TokenType

from olr_pg.simulator.ora_error import OraError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BIND: Final = "B_"
"""Prefix of the name of a bind; its position follows, from 0."""

_KEPT: Final = 2_000
_OWN_SYNTAX: Final = ("CAST", "EXTRACT", "TRIM", "LISTAGG")

logging.getLogger("sqlglot").addHandler(logging.NullHandler())


class _Parser(OracleParser):
    """A parser that keeps the name and the arguments of functions, except those with their own
    syntax.
    """

    FUNCTIONS = {}  # noqa: RUF012 - as in the base class
    FUNCTION_PARSERS = {  # noqa: RUF012
        name: parse for name, parse in OracleParser.FUNCTION_PARSERS.items() if name in _OWN_SYNTAX
    }
    NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
        name: parse
        for name, parse in OracleParser.NO_PAREN_FUNCTION_PARSERS.items()
        if name not in ("DBMS_RANDOM", "SYSDATE")
    }
    TYPE_LITERAL_PARSERS = {  # noqa: RUF012
        exp.DType.DATE: lambda self, this, _: self.expression(
            exp.Anonymous(this="DATE", expressions=[this])
        ),
        exp.DType.TIMESTAMP: lambda self, this, _: self.expression(
            exp.Anonymous(this="TIMESTAMP", expressions=[this])
        ),
    }


class _Dialect(Oracle):
    Parser = _Parser


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A statement other than DDL.

    Attributes:
        returning: the expressions after RETURNING.
        into: the positions of the binds after INTO.
        binds: number of binds.
    """

    text: str
    returning: tuple[Any, ...] = ()
    into: tuple[int, ...] = ()
    binds: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Locking:
    """The options of FOR UPDATE.

    Attributes:
        seconds: the maximum time to wait for a lock; None for no limit.
        skips: locked rows are skipped (SKIP LOCKED).
    """

    seconds: float | None = None
    skips: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Query(Statement):
    """A SELECT."""

    tree: Any = None
    locking: Locking | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Insert(Statement):
    """An INSERT into one table; the source is `query`, or `rows` with expressions."""

    table: Any = None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    query: Any = None
    appends: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """An INTO of INSERT ALL.

    Attributes:
        condition: the condition of its WHEN; None if there is none.
        is_else: it follows ELSE.
    """

    table: Any
    columns: tuple[str, ...]
    values: tuple[Any, ...]
    condition: Any = None
    is_else: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class InsertAll(Statement):
    """INSERT ALL or INSERT FIRST."""

    branches: tuple[Branch, ...] = ()
    query: Any = None
    only_first: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Update(Statement):
    """An UPDATE; `assignments` are (columns, expression), several columns for a subquery."""

    table: Any = None
    assignments: tuple[tuple[tuple[str, ...], Any], ...] = ()
    where: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Delete(Statement):
    """A DELETE."""

    table: Any = None
    where: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Merge(Statement):
    """A MERGE."""

    table: Any = None
    source: Any = None
    on: Any = None
    assignments: tuple[tuple[tuple[str, ...], Any], ...] = ()
    update_where: Any = None
    delete_where: Any = None
    columns: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()
    insert_where: Any = None


class Token(NamedTuple):
    """A word of a statement, and its place in the text; `end` is its last character."""

    kind: TokenType
    text: str
    start: int
    end: int


def tokens_of(text: str) -> list[Token]:
    """Return the words of a statement.

    Raises:
        OraError: ORA-00911, a character is not allowed in SQL.
    """
    try:
        found = Oracle().tokenize(text)
    except SqlglotError as error:
        raise OraError(911, f"invalid character ({error})") from error
    words = list[Token]()
    for one in found:
        written = text[one.start : one.end + 1]
        if one.token_type in _WHOLE:
            words.append(Token(one.token_type, one.text, one.start, one.end))
            continue
        # sqlglot reads PRIMARY KEY and similar keywords as one word.
        for part in re.finditer(r"\S+", written):
            place = one.start + part.start(), one.start + part.end() - 1
            words.append(Token(one.token_type, part[0], *place))
    return words


_WHOLE: Final = frozenset(
    (TokenType.STRING, TokenType.IDENTIFIER, TokenType.NATIONAL_STRING, TokenType.RAW_STRING)
)


def word(token: Token) -> str:
    """Return a token in upper case, for comparisons; empty for a text or name in quotes."""
    return "" if token.kind in _WHOLE else token.text.upper()


def name_of(token: Token) -> str:
    """Return a token as a name: in upper case if it is not quoted."""
    return token.text if token.kind is TokenType.IDENTIFIER else token.text.upper()


_BINARY: Final = {"D": "TO_BINARY_DOUBLE", "F": "TO_BINARY_FLOAT"}
"""The functions that mean the same as a number with a suffix."""


def _with_binary_numbers(text: str) -> str:
    """Replace numbers with a suffix, such as 1.5D and 3.4E+38F, by functions. sqlglot takes the
    suffix for an alias.

    A suffix follows the number without a blank (Oracle's SQL Language Reference, Numeric Literals).
    """
    tokens, out, last = tokens_of(text), list[str](), 0
    for at, (number, suffix) in enumerate(pairwise(tokens)):
        function = _BINARY.get(word(suffix))
        if number.kind is not TokenType.NUMBER or suffix.start != number.end + 1 or not function:
            continue
        dot = tokens[at - 1] if at else None  # sqlglot reads .5 as two words
        has_dot = dot is not None and dot.kind is TokenType.DOT and dot.end + 1 == number.start
        start = number.start - has_dot
        out.append(f"{text[last:start]}{function}('{text[start : suffix.start]}')")
        last = suffix.end + 1
    return "".join(out) + text[last:]


def tree_of(text: str) -> Any:
    """Parse a query or DML.

    Raises:
        OraError: ORA-00900, sqlglot cannot parse the statement.
    """
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    try:
        trees = sqlglot.parse(
            _with_binary_numbers(text), read=_Dialect, error_level=sqlglot.ErrorLevel.RAISE
        )
    except SqlglotError as error:
        reason = str(error).splitlines()[0]
        raise OraError(
            900, f"invalid SQL statement: the simulator cannot parse it ({reason})"
        ) from (error)
    if len(trees) != 1 or trees[0] is None or isinstance(trees[0], exp.Command):
        raise OraError(900, "invalid SQL statement: the simulator cannot parse it")
    return trees[0]


def _condition(text: str) -> Any:
    return tree_of(f"SELECT 1 FROM DUAL WHERE {text}").args["where"].this  # noqa: S608


def _expressions(text: str) -> tuple[Any, ...]:
    return tuple(tree_of(f"SELECT {text} FROM DUAL").expressions)  # noqa: S608


class _Text:
    """A statement's text and its words."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.depths = list[int]()
        depth = 0
        for token in self.tokens:
            depth -= token.kind is TokenType.R_PAREN
            self.depths.append(depth)
            depth += token.kind is TokenType.L_PAREN

    def find(self, *words: str, start: int = 0, end: int | None = None) -> int | None:
        """Return the index of the first of these words, outside of brackets; None if they do not
        occur.
        """
        end = len(self.tokens) if end is None else end
        for at in range(start, end - len(words) + 1):
            if self.depths[at] == 0 and all(
                word(self.tokens[at + n]) == one for n, one in enumerate(words)
            ):
                return at
        return None

    def cut(self, start: int, end: int | None = None) -> str:
        """Return the text of the words from `start` to before `end`."""
        end = len(self.tokens) if end is None else end
        if start >= end:
            return ""
        return self.text[self.tokens[start].start : self.tokens[end - 1].end + 1]


def _named_binds(text: str) -> tuple[str, int]:
    """Rename every bind by its position; return the text and the number of binds."""
    tokens, out, last, count = tokens_of(text), list[str](), 0, 0
    for at, token in enumerate(tokens):
        if token.kind is TokenType.COLON and at + 1 < len(tokens):
            following = tokens[at + 1]
            out.append(text[last : token.start] + f":{BIND}{count}")
            last = following.end + 1
            count += 1
    return "".join(out) + text[last:], count


@lru_cache(_KEPT)
def parse(text: str) -> Statement:
    """Parse a query or DML.

    Raises:
        OraError: the statement cannot be parsed.
    """
    text, count = _named_binds(text.strip().rstrip(";").strip())
    whole = _Text(text)
    if not whole.tokens:
        raise OraError(900, "invalid SQL statement")
    first = word(whole.tokens[0])
    readers: dict[str, Callable[[_Text], Statement]] = {
        "SELECT": _read_query, "WITH": _read_query, "(": _read_query, "INSERT": _read_insert,
        "UPDATE": _read_update, "DELETE": _read_delete, "MERGE": _read_merge,
    }  # fmt: skip
    if first not in readers:
        raise OraError(900, f"invalid SQL statement: the simulator does not support {first}")
    found = readers[first](whole)
    object.__setattr__(found, "binds", count)
    return found


def _read_query(whole: _Text) -> Query:
    at, locking = whole.find("FOR", "UPDATE"), None
    if at is not None:
        rest = [word(one) for one in whole.tokens[at + 2 :]]
        locking = Locking()
        if "NOWAIT" in rest:
            locking = Locking(0.0)
        elif "SKIP" in rest:
            locking = Locking(0.0, skips=True)
        elif "WAIT" in rest:
            locking = Locking(float(rest[rest.index("WAIT") + 1]))
    tree = tree_of(whole.cut(0, at))
    if isinstance(tree, exp.Select) and not tree.expressions:
        raise OraError(936, "missing expression")
    return Query(whole.text, tree=tree, locking=locking)


def _returning(whole: _Text) -> tuple[int | None, tuple[Any, ...], tuple[int, ...]]:
    """Return the index of RETURNING, its expressions, and the positions of its binds."""
    at = whole.find("RETURNING")
    if at is None:
        at = whole.find("RETURN")
    if at is None:
        return None, (), ()
    into = whole.find("INTO", start=at)
    if into is None:
        raise OraError(925, "missing INTO keyword")
    places = [
        int(one.text.removeprefix(BIND)) for one in whole.tokens[into + 1 :]
        if one.text.startswith(BIND)
    ]  # fmt: skip
    return at, _expressions(whole.cut(at + 1, into)), tuple(places)


def _read_insert(whole: _Text) -> Statement:
    second = word(whole.tokens[1])
    if second in ("ALL", "FIRST"):
        return _read_insert_all(whole)
    end, returning, into = _returning(whole)
    tree = tree_of(whole.cut(0, end))
    target, columns = _target(tree.this)
    appends = re.match(r"\w+\s*/\*\+[^*]*\bAPPEND\b", whole.text, re.IGNORECASE) is not None
    own = {"returning": returning, "into": into, "table": target, "columns": columns}
    source = tree.expression
    if isinstance(source, exp.Values):
        rows = tuple(_row(one) for one in source.expressions)
        return Insert(whole.text, **own, rows=rows)
    if source is None:
        raise OraError(926, "missing VALUES keyword")
    return Insert(whole.text, **own, query=source, appends=appends)


def _row(node: Any) -> tuple[Any, ...]:
    return tuple(node.expressions) if isinstance(node, exp.Tuple) else (node,)


def _target(node: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the table and the columns of an INSERT."""
    if isinstance(node, exp.Schema):
        return node.this, tuple(plain_name(one) for one in node.expressions)
    return node, ()


def bare_node(node: Any) -> Any:
    """Return the node within brackets."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def plain_name(node: Any) -> str:
    """Return a node as a name: in upper case if it is not quoted."""
    identifier = node if isinstance(node, exp.Identifier) else node.this
    if not isinstance(identifier, exp.Identifier):
        return str(node.name).upper()
    return identifier.name if identifier.args.get("quoted") else identifier.name.upper()


def _read_insert_all(whole: _Text) -> InsertAll:
    tree = tree_of(whole.text)
    if not isinstance(tree, exp.MultitableInserts):
        raise OraError(900, "invalid SQL statement: the simulator cannot parse it")
    branches, condition, is_else = list[Branch](), None, False
    for one in tree.expressions:
        if one.args.get("expression") is not None:
            condition, is_else = one.args["expression"], False
        is_else = is_else or bool(one.args.get("else_"))
        target, columns = _target(one.this.this)
        values = one.this.expression
        cells = _row(values.expressions[0]) if values is not None else ()
        branches.append(
            Branch(target, columns, cells, None if is_else else condition, is_else=is_else)
        )
    only_first = str(tree.args.get("kind", "ALL")).upper() == "FIRST"
    source = tree.args["source"]
    return InsertAll(whole.text, branches=tuple(branches), query=source, only_first=only_first)


def _assignments(nodes: Sequence[Any]) -> tuple[tuple[tuple[str, ...], Any], ...]:
    found = list[tuple[tuple[str, ...], Any]]()
    for one in nodes:
        left = one.this
        names = left.expressions if isinstance(left, exp.Tuple) else (left,)
        if isinstance(left, exp.Paren):
            names = (left.this,)
        found.append((tuple(plain_name(name) for name in names), one.expression))
    return tuple(found)


def _read_update(whole: _Text) -> Update:
    end, returning, into = _returning(whole)
    tree = tree_of(whole.cut(0, end))
    where = tree.args.get("where")
    return Update(
        whole.text, returning=returning, into=into, table=tree.this,
        assignments=_assignments(tree.expressions), where=where.this if where else None,
    )  # fmt: skip


def _read_delete(whole: _Text) -> Delete:
    end, returning, into = _returning(whole)
    text = whole.cut(0, end)
    if word(whole.tokens[1]) != "FROM":
        text = f"DELETE FROM {whole.cut(1, end)}"  # noqa: S608
    tree = tree_of(text)
    where = tree.args.get("where")
    return Delete(
        whole.text, returning=returning, into=into, table=tree.this,
        where=where.this if where else None,
    )  # fmt: skip


def _read_merge(whole: _Text) -> Merge:
    using, on = whole.find("USING"), whole.find("ON")
    if using is None or on is None:
        raise OraError(905, "missing keyword")
    matched, unmatched = whole.find("WHEN", "MATCHED"), whole.find("WHEN", "NOT", "MATCHED")
    ends = [at for at in (matched, unmatched) if at is not None]
    parts: dict[str, Any] = {
        "table": _relation(whole.cut(2, using)),
        "source": _relation(whole.cut(using + 1, on)),
        "on": _condition(whole.cut(on + 1, min(ends, default=None))),
    }
    if matched is not None:
        end = unmatched if unmatched is not None and unmatched > matched else None
        parts |= _merge_update(whole, matched, end)
    if unmatched is not None:
        end = matched if matched is not None and matched > unmatched else None
        parts |= _merge_insert(whole, unmatched, end)
    return Merge(whole.text, **parts)


def _relation(text: str) -> Any:
    return tree_of(f"SELECT * FROM {text}").args["from_"].this  # noqa: S608


def _merge_update(whole: _Text, start: int, end: int | None) -> dict[str, Any]:
    """Read WHEN MATCHED THEN UPDATE SET … [WHERE …] [DELETE WHERE …]."""
    delete = whole.find("DELETE", start=start, end=end)
    where = whole.find("WHERE", start=start, end=delete if delete is not None else end)
    stop = where if where is not None else delete if delete is not None else end
    tree = tree_of("UPDATE DUAL " + whole.cut(start + 4, stop))
    return {
        "assignments": _assignments(tree.expressions),
        "update_where": None
        if where is None
        else _condition(whole.cut(where + 1, delete if delete is not None else end)),
        "delete_where": None if delete is None else _condition(whole.cut(delete + 2, end)),
    }


def _merge_insert(whole: _Text, start: int, end: int | None) -> dict[str, Any]:
    """Read WHEN NOT MATCHED THEN INSERT (…) VALUES (…) [WHERE …]."""
    where = whole.find("WHERE", start=start, end=end)
    tree = tree_of("INSERT INTO DUAL " + whole.cut(start + 5, where if where is not None else end))
    _, columns = _target(tree.this)
    return {
        "columns": columns,
        "values": _row(tree.expression.expressions[0]),
        "insert_where": None if where is None else _condition(whole.cut(where + 1, end)),
    }
