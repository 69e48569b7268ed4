"""A client that executes SQL: decodes its binds, and encodes the results."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from olr_pg.datatypes.charsets import charset
from olr_pg.datatypes.mapping import OracleType
from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net import ttc_messages as msg
from olr_pg.simulator.oracle_net.catalogue import QueryResult
from olr_pg.simulator.oracle_net.server_text import ServerText
from olr_pg.simulator.oracle_net.sql_values import decode_value, result_column, wire_value
from olr_pg.simulator.oracle_net.values import Wanted, write_value
from olr_pg.simulator.sql.formats import text_of
from olr_pg.simulator.sql.parsing import parse
from olr_pg.simulator.sql.sql_session import SqlSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.simulator.oracle_net.ttc import TtcWriter
    from olr_pg.simulator.oracle_net.values import BindType
    from olr_pg.simulator.sql.database import SqlDatabase
    from olr_pg.simulator.sql.statements import Outcome


@lru_cache
def returned_places(sql: str) -> tuple[int, ...]:
    """Return the positions of the binds after RETURNING … INTO; none if the statement cannot be
    parsed.
    """
    if "RETURN" not in sql.upper():
        return ()
    try:
        return parse(sql).into
    except OraError:
        return ()


class SqlClient:
    """A session that executes SQL from the driver."""

    def __init__(self, database: SqlDatabase) -> None:
        self.session = SqlSession(database)
        self.text = ServerText(charset(database.shape.charset))

    def close(self) -> None:
        """End the session."""
        self.session.close()

    def run(
        self, sql: str, types: Sequence[BindType], rows: Sequence[Sequence[bytes | None]]
    ) -> list[Outcome]:
        """Execute a statement for each row of binds.

        Returns:
            With RETURNING, one outcome for each row of binds; otherwise one outcome for all rows.
        """
        decoded = [
            [decode_value(*one, self.text) for one in zip(types, row, strict=True)] for row in rows
        ]
        if returned_places(sql):
            return [self.session.execute(sql, binds) for binds in decoded]
        return [self.session.execute_many(sql, decoded or [[]])]

    @staticmethod
    def result(outcome: Outcome) -> QueryResult:
        """Return the rows of a query in the form in which they are sent."""
        columns = tuple(
            result_column(name, declared, [row[at] for row in outcome.rows])
            for at, (name, declared) in enumerate(
                zip(outcome.columns, outcome.declared, strict=True)
            )
        )
        return QueryResult(columns, [tuple(map(wire_value, row)) for row in outcome.rows])

    def write_returned(
        self,
        out: TtcWriter,
        outcomes: Sequence[Outcome],
        types: Sequence[BindType],
        places: Sequence[int],
    ) -> None:
        """Write the RETURNING values of all rows that each execution has changed."""
        msg.write_bind_directions(out, len(types), places)
        for outcome in outcomes:
            out.byte(msg.Message.ROW_DATA)
            for number, place in enumerate(places):
                kind = types[place]
                out.integer(len(outcome.returned))
                for row in outcome.returned:
                    is_text = kind.code == OracleType.VARCHAR2
                    value = text_of(row[number]) if is_text else row[number]
                    write_value(out, wire_value(value), Wanted(kind.code, kind.form), [], self.text)
                    out.integer(0)
