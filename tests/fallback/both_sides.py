"""Tables in both databases, with the conversions of the product."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
import psycopg
import pytest

from olr_pg.appliance.appliance import settings_for
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.config.port_sections import FallbackPolicies
from olr_pg.datatypes.choices import Choices
from olr_pg.datatypes.policies import Policies
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.fallback_run import prepare, run, status
from olr_pg.fallback.oracle_values import ValueSettings, oracle_column
from olr_pg.fallback.way_back import WayBack

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.proving.served import Served

VALUES: Final = ValueSettings(FallbackPolicies(), Choices(), Policies())
_numbers = itertools.count(1)


class Both(NamedTuple):
    """Tables in both databases."""

    served: Served
    database: str
    way: WayBack

    def sql(self, *statements: str) -> None:
        """Carry statements out in PostgreSQL, in one transaction."""
        with psycopg.connect(self.database, options="-c search_path=app") as connection:
            for one in statements:
                connection.execute(one.encode())

    def rows(self, table: str, columns: str = "*") -> tuple[list[Any], list[Any]]:
        """The rows of PostgreSQL and those of Oracle."""
        query = f"SELECT {columns} FROM {table} ORDER BY id"
        with psycopg.connect(self.database, options="-c search_path=app") as connection:
            there = connection.execute(query.encode()).fetchall()
        with (
            oracledb.connect(user="app", password="olr", dsn=self.served.dsn) as oracle,
            oracle.cursor() as cursor,
        ):
            cursor.execute(query)
            return there, cursor.fetchall()

    def same(self, table: str, columns: str = "*") -> bool:
        there, here = self.rows(table, columns)
        return bool(there) and there == here

    def stops(self) -> dict[str, str | None]:
        """Run the way back; return why which tables have stopped."""
        with pytest.raises(OlrPgError) as caught:
            run(self.way, once=True)
        assert caught.value.code == Code.FALLBACK_TABLES_STOPPED
        found = status(self.way).ledger
        assert found is not None
        return {name: one.reason for name, one in found.stops.items() if one.is_stopped}

    def known_again(self) -> Both:
        """The same after Oracle's tables were altered, and the dictionary was exported."""
        names = [one.name for one in self.way.tables]
        return self._replace(way=self.way._replace(tables=_tables(self.served, names)))


def _tables(served: Served, names: list[str]) -> tuple[Any, ...]:
    server = served.server.database
    snapshot = server.snapshot(server.current_scn())
    return tuple(snapshot.find("APP", name.upper()) for name in names)


def maker_of_tables(served: Served, logical_database: str) -> Callable[..., Both]:
    """Return what makes tables: the name is followed by the columns in Oracle, and by the rest of
    CREATE TABLE in PostgreSQL.
    """

    def make(*tables: tuple[str, str, str], prepared: bool = True) -> Both:
        with psycopg.connect(logical_database, autocommit=True) as connection:
            ensure_ledger(connection)
            connection.execute("CREATE SCHEMA app")
            connection.execute("SET search_path = app")
            for name, here, there in tables:
                served.execute(f"CREATE TABLE {name} ({here})")
                connection.execute(f"CREATE TABLE {name} {there}".encode())
        config, server = served.config(logical_database), served.server.database
        subscription = f"altered{next(_numbers)}"
        way = WayBack(
            source=served.owner,
            connect_string=logical_database,
            subscription=subscription,
            slot=f"slot_{subscription}",
            publication=f"publication_{subscription}",
            tables=_tables(served, [name for name, *_ in tables]),
            settings=settings_for(config, server.snapshot(server.current_scn()), logical_database),
            value_column=lambda table, of, typed: oracle_column(table, of, typed.kind, VALUES),
        )
        if prepared:
            prepare(way)
        return Both(served, logical_database, way)

    return make
