"""Parses Oracle's SQL into a syntax tree that keeps each function call as it is written.

sqlglot converts many functions into its own nodes: it reorders arguments, adds defaults and
rewrites formats. This parser does so only for functions that have a special syntax (CAST, EXTRACT,
TRIM, …). Every other call keeps its name and arguments, so that the tables of functions define all
translations.

Two lists contain the nodes of Oracle's syntax tree that mean the same in PostgreSQL, and the nodes
that PostgreSQL does not have.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.oracle import Oracle
from sqlglot.errors import SqlglotError
from sqlglot.parsers.oracle import OracleParser
from sqlglot.tokenizer_core import TokenType

from olr_pg.errors import plain_reason
from olr_pg.schema.translating import UntranslatableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_OWN_SYNTAX: Final = frozenset(
    {
        *("CAST", "CHR", "EXTRACT", "JSON_ARRAY", "JSON_ARRAYAGG", "JSON_OBJECT"),
        *("JSON_OBJECTAGG", "LISTAGG", "TRIM", "XMLELEMENT", "XMLTABLE"),
    }
)
_NAMING: Final = ("XMLATTRIBUTES", "XMLFOREST")
_JSON_CALLS: Final = ("JSON_VALUE", "JSON_QUERY", "JSON_EXISTS", "JSON_TABLE")


class JsonCall(exp.Expression):
    """A call of one of the JSON functions in `_JSON_CALLS`.

    ``clauses`` is the text after the path, with a blank between any two words or signs. ``columns``
    are the columns of JSON_TABLE, each as such a text.
    """

    arg_types = {  # noqa: RUF012 - as in the base class
        "this": True, "name": True, "path": True, "clauses": False, "columns": False,
    }  # fmt: skip


def _json_call(self: OracleParser, name: str) -> exp.Expr:
    """Parse the arguments of a JSON function."""
    this = self._parse_bitwise()
    if self._match_text_seq("FORMAT"):
        self._match_text_seq("JSON")
    self._match(TokenType.COMMA)
    path = self._parse_string()
    if not isinstance(path, exp.Literal):
        self.raise_error(f"{name} with a path that is not a literal")
    clauses, columns = " ".join(_words(self, until="COLUMNS")), list[str]()
    if self._match_text_seq("COLUMNS"):
        bracketed = self._match(TokenType.L_PAREN)
        columns = [" ".join(_words(self, until=","))]
        while self._match(TokenType.COMMA):
            columns.append(" ".join(_words(self, until=",")))
        if bracketed:
            self._match_r_paren()
    path_text = path.name if path is not None else ""
    return JsonCall(this=this, name=name, path=path_text, clauses=clauses, columns=columns)


def _to_number(self: OracleParser) -> exp.Expr:
    """Parse the arguments of TO_NUMBER. A call with a default becomes CAST … DEFAULT … ON
    CONVERSION ERROR.
    """
    this = self._parse_bitwise()
    default = self._parse_bitwise() if self._match(TokenType.DEFAULT) else None
    if default is not None:
        self._match_text_seq("ON", "CONVERSION", "ERROR")
    rest = self._parse_csv(self._parse_bitwise) if self._match(TokenType.COMMA) else []
    if default is None or rest:
        arguments = [this, *rest] if default is None else [this, default, *rest, exp.Null()]
        return exp.Anonymous(this="TO_NUMBER", expressions=arguments)
    return exp.Cast(this=this, to=exp.DataType(this=exp.DType.DECIMAL), default=default)


def _words(self: OracleParser, until: str) -> Iterator[str]:
    """Yield words up to one of the words in `until`, or up to the bracket that ends the call."""
    depth = 0
    while self._curr is not None:
        token = self._curr
        ends = token.token_type is TokenType.R_PAREN or token.text.upper() == until
        if depth == 0 and ends:
            return
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if token.token_type is TokenType.STRING:
            yield "'" + token.text.replace("'", "''") + "'"
        elif token.token_type is TokenType.IDENTIFIER:
            yield f'"{token.text}"'
        else:
            yield token.text.upper()
        self._advance()


class _Parser(OracleParser):
    FUNCTIONS = {}  # noqa: RUF012 - as in the base class
    FUNCTION_PARSERS = {  # noqa: RUF012
        **{
            name: parse
            for name, parse in OracleParser.FUNCTION_PARSERS.items()
            if name in _OWN_SYNTAX
        },
        **{name: partial(_json_call, name=name) for name in _JSON_CALLS},
        "TO_NUMBER": _to_number,
    }
    EXPONENT = {TokenType.DSTAR: exp.Pow}  # noqa: RUF012 - only PL/SQL has it
    NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
        name: parse
        for name, parse in OracleParser.NO_PAREN_FUNCTION_PARSERS.items()
        if name != "DBMS_RANDOM"
    }
    TYPE_LITERAL_PARSERS = {  # noqa: RUF012
        exp.DType.DATE: lambda self, this, _: self.expression(
            exp.Anonymous(this="DATE", expressions=[this])
        ),
        exp.DType.TIMESTAMP: lambda self, this, _: self.expression(
            exp.Anonymous(this="TIMESTAMP", expressions=[this])
        ),
    }


class _Tokenizer(Oracle.Tokenizer):
    NUMERIC_LITERALS = {"D": "DOUBLE", "F": "FLOAT"}  # noqa: RUF012 - as in the base class
    # In Oracle these are decimal numbers; only BINARY_FLOAT and BINARY_DOUBLE are binary ones.
    KEYWORDS = {  # noqa: RUF012 - as in the base class
        **Oracle.Tokenizer.KEYWORDS,
        "**": TokenType.DSTAR,
        **dict.fromkeys(("FLOAT", "REAL", "DOUBLE PRECISION"), TokenType.DECFLOAT),
    }


class _Dialect(Oracle):
    Parser = _Parser
    Tokenizer = _Tokenizer


class _Heard(logging.Handler):
    """A log handler that collects the warnings of sqlglot."""

    def __init__(self) -> None:
        super().__init__()
        self.messages = list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextmanager
def no_warnings() -> Iterator[None]:
    """While the context is active, treat each warning of sqlglot as an error.

    Raises:
        UntranslatableError: sqlglot has logged a warning.
    """
    logger, heard = logging.getLogger("sqlglot"), _Heard()
    before, logger.propagate = logger.propagate, False
    logger.addHandler(heard)
    try:
        yield
    finally:
        logger.removeHandler(heard)
        logger.propagate = before
    if heard.messages:
        raise UntranslatableError(f"the SQL is not supported: {heard.messages[0]}")


def parse_oracle(text: str) -> exp.Expr:
    """Parse one statement. Hints are removed, because PostgreSQL has none.

    Raises:
        UntranslatableError: the statement cannot be parsed.
    """
    try:
        trees = sqlglot.parse(text, read=_Dialect, error_level=sqlglot.ErrorLevel.RAISE)
    except SqlglotError as error:
        reason = plain_reason(error)
        raise UntranslatableError(f"the text cannot be parsed as SQL: {reason}") from error
    if len(trees) != 1 or trees[0] is None:
        raise UntranslatableError("the SQL is not a single statement")
    tree = exp.Paren(this=trees[0])
    for node in list(tree.walk()):
        if isinstance(node, exp.Select):
            node.set("hint", None)
        elif isinstance(node, exp.National | exp.RawString):
            node.replace(exp.Literal.string(node.name))
        elif isinstance(node, exp.Is):
            _word_of_float(node)
        elif isinstance(node, exp.Anonymous) and node.name.upper() == "ALL":
            node.replace(exp.All(this=exp.Tuple(expressions=node.expressions)))
        elif isinstance(node, exp.Anonymous) and node.name.upper() in _NAMING:
            for column in node.expressions:
                _name_as_column(column)
        elif isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous):
            _name_fully(node)
        elif isinstance(node, exp.Pow) and isinstance(node.this, exp.Neg | exp.Pow):
            raise UntranslatableError("** without parentheses after a sign or another **")
        elif isinstance(node, exp.DPipe):
            _from_left_to_right(node)
    found: exp.Expr = tree.this.pop()
    return found


def _from_left_to_right(node: exp.DPipe) -> None:
    """Regroup ``a || b + c``. In Oracle ``||`` has the precedence of ``+`` and ``-``, so this is
    ``(a || b) + c`` (SQL Language Reference, “Operator Precedence”); sqlglot reads
    ``a || (b + c)``.
    """
    right = node.expression
    if not isinstance(right, exp.Add | exp.Sub):
        return
    first = right
    while isinstance(first.this, exp.Add | exp.Sub):
        first = first.this
    node.replace(right)
    first.set("this", exp.DPipe(this=node.this, expression=first.this))


def _name_as_column(node: exp.Expr) -> None:
    """Give an XML value without AS the name of its column."""
    if isinstance(node, exp.Column):
        name = node.name if node.this.args.get("quoted") else node.name.upper()
        node.replace(exp.Alias(this=node.copy(), alias=exp.to_identifier(name, quoted=True)))


def _word_of_float(node: exp.Is) -> None:
    """Convert NAN and INFINITE after IS to keywords; sqlglot parses them as columns."""
    tested = node.expression
    if isinstance(tested, exp.Column) and tested.sql().upper() in ("NAN", "INFINITE"):
        tested.replace(exp.Var(this=tested.name.upper()))


def _name_fully(node: exp.Dot) -> None:
    """Convert the call of a package's function to a call whose name includes the package."""
    packages = list(node.this.find_all(exp.Identifier))
    if any(not isinstance(one, exp.Dot | exp.Identifier) for one in node.this.walk()):
        return
    name = ".".join(one.name for one in (*packages, node.expression))
    node.replace(exp.Anonymous(this=name, expressions=node.expression.expressions))


_ORDERED: Final = frozenset({"this", "desc", "nulls_first"})
_QUERY: Final = frozenset({"order", "limit", "offset", "with_"})

KEPT_NODES: Final[dict[type[exp.Expr], frozenset[str]]] = {
    exp.Select: _QUERY
    | {"expressions", "distinct", "from_", "joins", "where", "group", "having"}
    | {"kind", "operation_modifiers"},
    **dict.fromkeys(
        (exp.Union, exp.Except, exp.Intersect), _QUERY | {"this", "expression", "distinct"}
    ),
    exp.Subquery: frozenset({"this", "alias"}),
    exp.With: frozenset({"expressions", "recursive", "search"}),
    exp.RecursiveWithSearch: frozenset({"kind", "this", "expression"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.From: frozenset({"this"}),
    exp.Join: frozenset({"this", "on", "using", "side", "kind", "method"}),
    exp.Lateral: frozenset({"this", "alias"}),
    exp.Table: frozenset({"this", "db", "alias"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Where: frozenset({"this"}),
    exp.Having: frozenset({"this"}),
    exp.Group: frozenset({"expressions"}),
    exp.Rollup: frozenset({"expressions"}),
    exp.Cube: frozenset({"expressions"}),
    exp.GroupingSets: frozenset({"expressions"}),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: _ORDERED,
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Fetch: frozenset({"direction", "count", "limit_options"}),
    exp.LimitOptions: frozenset({"rows", "with_ties"}),
    exp.Distinct: frozenset({"expressions"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Null: frozenset(),
    exp.Boolean: frozenset({"this"}),
    exp.Star: frozenset(),
    exp.Var: frozenset({"this"}),
    exp.Paren: frozenset({"this"}),
    exp.Tuple: frozenset({"expressions"}),
    exp.And: frozenset({"this", "expression"}),
    exp.Or: frozenset({"this", "expression"}),
    exp.Not: frozenset({"this"}),
    exp.Neg: frozenset({"this"}),
    exp.Exists: frozenset({"this"}),
    exp.Any: frozenset({"this"}),
    exp.All: frozenset({"this"}),
    exp.If: frozenset({"this", "true"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side", "exclude"}),
    exp.DataType: frozenset({"this", "expressions", "nested"}),
    exp.DataTypeParam: frozenset({"this", "expression"}),
}
"""The nodes that mean the same in both databases, with the arguments that they may have. A node
that is neither translated nor listed here is refused.
"""

_CONNECT: Final = "a part of CONNECT BY in an unsupported place: use WITH RECURSIVE"

REFUSED_NODES: Final[dict[type[exp.Expr], str]] = {
    exp.MatchRecognize: "MATCH_RECOGNIZE has no equivalent in PostgreSQL",
    exp.Version: "a flashback query: PostgreSQL does not keep old row versions",
    exp.Partition: "the SQL names a partition: in PostgreSQL, partitions are separate tables",
    exp.TableSample: "SAMPLE: TABLESAMPLE of PostgreSQL selects other rows",
    exp.Lock: "FOR UPDATE in a view or a subquery",
    exp.Parameter: "the SQL has bind variables",
    exp.Placeholder: "the SQL has bind variables",
    exp.Collate: "COLLATE: use a collation of PostgreSQL",
}
"""Nodes that are refused, and the reason that the user reads."""

REFUSED_WORDS: Final = {
    "LEVEL": _CONNECT,
    "ROWID": "ROWID: rows in PostgreSQL have no permanent address; use the key",
    "ORA_ROWSCN": "ORA_ROWSCN has no equivalent in PostgreSQL",
    "UID": "UID has no equivalent in PostgreSQL",
    "DBTIMEZONE": "DBTIMEZONE has no equivalent in PostgreSQL",
    "CONNECT_BY_ISLEAF": _CONNECT,
    "CONNECT_BY_ISCYCLE": _CONNECT,
    "SQLCODE": "SQLCODE: PostgreSQL has no numbers of Oracle's errors; use SQLSTATE",
}
"""Pseudo-columns that PostgreSQL does not have, and the reason that the user reads."""
