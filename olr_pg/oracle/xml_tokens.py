"""Reads the names in binary XML: the token tables of the default token set (dictionary §2.10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Column, Integer, LargeBinary, MetaData, String, Table, select
from sqlalchemy.sql.elements import quoted_name

from olr_pg.datatypes.binary_xml import NO_TOKENS, QualifiedName, XmlTokens
from olr_pg.oracle.flashback import as_of
from olr_pg.oracle.tables import bound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

_DEFAULT: Final = 0
"""FLAGS of the default token set. Tables use it unless another token set is specified."""

_ATTRIBUTE: Final = 1


def read_xml_tokens(connection: Connection, scn: int) -> XmlTokens:
    """Read the token tables as of `scn`; empty if the database has no XML DB token set.

    Raises:
        sqlalchemy.exc.DBAPIError: any error of Oracle.
    """
    sets = as_of(_xdb("XDB$TTSET", TOKSUF=String, FLAGS=Integer), scn, "t")
    query = select(sets.c.TOKSUF).where(bound(_DEFAULT) == sets.c.FLAGS)
    suffix = connection.execute(query).scalar()
    if suffix is None:
        return NO_TOKENS
    spaces = _rows(connection, _xdb(f"X$NM{suffix}", NMSPCURI=String, ID=LargeBinary), scn)
    columns = {"NMSPCID": LargeBinary, "LOCALNAME": String, "FLAGS": LargeBinary, "ID": LargeBinary}
    names = _rows(connection, _xdb(f"X$QN{suffix}", **columns), scn)
    return XmlTokens(
        {_hex(token): uri for uri, token in spaces},
        {
            _hex(token): QualifiedName(_hex(space), name, bool(flags and flags[-1] & _ATTRIBUTE))
            for space, name, flags, token in names
        },
    )


def _xdb(name: str, **columns: Any) -> Table:
    return Table(
        quoted_name(name, quote=True),
        MetaData(),
        *(Column(quoted_name(column, quote=True), kind) for column, kind in columns.items()),
        schema=quoted_name("XDB", quote=True),
    )


def _rows(connection: Connection, table: Table, scn: int) -> Iterable[Any]:
    return connection.execute(select(as_of(table, scn, "t")))


def _hex(raw: bytes | None) -> str:
    return (raw or b"").hex().upper()
