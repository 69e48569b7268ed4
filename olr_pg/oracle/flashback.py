"""Support for ``AS OF SCN`` in SQLAlchemy Core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.selectable import Alias
from sqlalchemy.sql.visitors import InternalTraversal

if TYPE_CHECKING:
    from sqlalchemy import BindParameter, Table


class AsOfScn(Alias):
    """A table as of an SCN; `as_of` returns it.

    The SCN is also a bind in SQLAlchemy's cache of compiled statements, so that a statement is
    compiled only once for all SCNs.
    """

    inherit_cache = True
    _traverse_internals = [  # noqa: RUF012 - as SQLAlchemy declares it
        *Alias._traverse_internals,
        ("scn", InternalTraversal.dp_clauseelement),
    ]
    scn: BindParameter[int]


def as_of(table: Table, scn: int, name: str) -> AsOfScn:
    """Return `table` as of `scn`, with the alias `name`; the SCN is a bind."""
    found = AsOfScn._construct(table, name=name)
    found.scn = bindparam("scn", scn, BigInteger, unique=True)
    return found


@compiles(AsOfScn, "oracle")
def _compile(element: AsOfScn, compiler: Any, asfrom: bool = False, **options: Any) -> str:
    if not asfrom:
        return str(compiler.visit_alias(element, asfrom=False, **options))
    linter = options.pop("from_linter", None)
    if linter is not None:
        # Tell SQLAlchemy's linter that conditions refer to the alias and not to the table.
        linter.froms[element] = str(element.name)
    table = compiler.process(element.element, asfrom=True, **options)
    scn = compiler.process(element.scn)
    return f"{table} AS OF SCN {scn} {compiler.preparer.quote(str(element.name))}"
