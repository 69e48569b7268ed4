"""Oracle's SQL read into a tree in which functions stay what the text calls them.

sqlglot knows many functions and makes nodes of its own of them, with arguments put in order,
defaults added and formats rewritten for other databases. Here only what has a syntax of its own is
read that way (CAST, EXTRACT, TRIM, …). Every other call keeps its name and its arguments, so that
one table of functions can say what becomes of each.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.oracle import Oracle
from sqlglot.errors import SqlglotError
from sqlglot.parsers.oracle import OracleParser

from olr_pg.errors import plain_reason
from olr_pg.schema.translating import UntranslatableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_OWN_SYNTAX: Final = frozenset(
    {
        *("CAST", "CHR", "EXTRACT", "JSON_ARRAY", "JSON_ARRAYAGG", "JSON_EXISTS", "JSON_OBJECT"),
        *("JSON_OBJECTAGG", "JSON_TABLE", "JSON_VALUE", "LISTAGG", "TRIM", "XMLELEMENT"),
        "XMLTABLE",
    }
)


class _Parser(OracleParser):
    FUNCTIONS = {}  # noqa: RUF012 - as in the base class
    FUNCTION_PARSERS = {  # noqa: RUF012
        name: parse for name, parse in OracleParser.FUNCTION_PARSERS.items() if name in _OWN_SYNTAX
    }
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


class _Dialect(Oracle):
    Parser = _Parser


class _Heard(logging.Handler):
    """Keeps what the library warns of."""

    def __init__(self) -> None:
        super().__init__()
        self.messages = list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextmanager
def no_warnings() -> Iterator[None]:
    """Make an error of whatever the library warns of within the context.

    Raises:
        UntranslatableError: it has warned.
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
        raise UntranslatableError(f"its translation is not safe: {heard.messages[0]}")


def parse_oracle(text: str) -> exp.Expr:
    """Read one statement; hints are left out, because PostgreSQL has none.

    Raises:
        UntranslatableError: it cannot be read.
    """
    try:
        trees = sqlglot.parse(text, read=_Dialect, error_level=sqlglot.ErrorLevel.RAISE)
    except SqlglotError as error:
        reason = plain_reason(error)
        raise UntranslatableError(f"it cannot be read as SQL: {reason}") from error
    if len(trees) != 1 or trees[0] is None:
        raise UntranslatableError("it is no single statement")
    tree = exp.Paren(this=trees[0])
    for node in list(tree.walk()):
        if isinstance(node, exp.Select):
            node.set("hint", None)
        elif isinstance(node, exp.National | exp.RawString):
            node.replace(exp.Literal.string(node.name))
        elif isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous):
            _name_fully(node)
    found: exp.Expr = tree.this.pop()
    return found


def _name_fully(node: exp.Dot) -> None:
    """Make a call of a package's function one call, whose name has the package's."""
    packages = list(node.this.find_all(exp.Identifier))
    if any(not isinstance(one, exp.Dot | exp.Identifier) for one in node.this.walk()):
        return
    name = ".".join(one.name for one in (*packages, node.expression))
    node.replace(exp.Anonymous(this=name, expressions=node.expression.expressions))
