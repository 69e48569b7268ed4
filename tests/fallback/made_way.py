"""A way back that a test makes by hand: tables on both sides, and how their values go."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import oracledb
import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import Format

from olr_pg.appliance.appliance import settings_for
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.fallback.way_back import WayBack
from tests.proving.served import document_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from olr_pg.applier.target.catalogue import TargetColumn
    from olr_pg.dictionary.model import Column
    from tests.proving.served import Served


class PlainBound(NamedTuple):
    """Values as the driver binds them."""

    values: list[object | None]
    db_type: Any
    expression: str = "{}"
    altered: tuple[Any, ...] = ()
    further: tuple[Any, ...] = ()


class PlainColumn:
    """Plain types only."""

    def __init__(self, oid: int) -> None:
        self._load = Transformer().get_loader(oid, Format.BINARY).load
        text = oid in (25, 1043, 1042)
        self._type = oracledb.DB_TYPE_VARCHAR if text else oracledb.DB_TYPE_NUMBER

    def bind(self, raw: Sequence[bytes | None]) -> PlainBound:
        values = [None if one is None else self._load(one) for one in raw]
        return PlainBound(values, self._type)


def plain_column(_table: str, _column: Column, target: TargetColumn) -> PlainColumn:
    return PlainColumn(target.base_oid)


def way_document(
    served: Served, data: Path, target: str, *tables: str, **apply: Any
) -> dict[str, Any]:
    """Return a configuration of a way back from `target` to tables ``APP.…``."""
    document = document_of(served.folder)
    document["context"] = {"data": str(data)}
    document["apply"] = {
        "connect-string": target,
        "tables": [f"APP.{one.upper()}" for one in tables],
        **apply,
    }
    document["fallback"] = {"user": "app", "password": "olr"}
    return document


def write_document(document: dict[str, Any], path: Path) -> Path:
    """Write a configuration; return where."""
    path.write_text(json.dumps(document), "utf-8")
    return path


@dataclass
class MadeWay:
    """Both sides of one table ``APP.T…`` with the columns id, v, w and big.

    Attributes:
        key: the type of id in Oracle.
    """

    served: Served
    database: str
    name: str
    key: str = "NUMBER(10)"

    def __post_init__(self) -> None:
        self.served.execute(
            f"CREATE TABLE {self.name} (id {self.key} PRIMARY KEY, v VARCHAR2(40), w NUMBER(10),"
            " big VARCHAR2(4000))"
        )
        with psycopg.connect(self.database, autocommit=True) as connection:
            ensure_ledger(connection)
            connection.execute("CREATE SCHEMA IF NOT EXISTS app")
            connection.execute(
                f"CREATE TABLE app.{self.name} (id bigint PRIMARY KEY, v varchar(400), w bigint,"
                " big text)".encode()
            )
        config = self.served.config(self.database)
        server = self.served.server.database
        snapshot = server.snapshot(server.current_scn())
        table = snapshot.find("APP", self.name.upper())
        assert table is not None
        self.way = WayBack(
            source=self.served.owner,
            connect_string=self.database,
            subscription=self.name,
            slot=f"slot_{self.name}",
            publication=f"publication_{self.name}",
            tables=(table,),
            settings=settings_for(config, snapshot, self.database),
            value_column=plain_column,
            batch_changes=50,
        )

    def config_file(self, folder: Path) -> Path:
        """Write a configuration of this way back."""
        document = way_document(self.served, folder / "data", self.database, self.name)
        return write_document(document, folder / "olr-pg.json")

    def sql(self, *statements: str) -> None:
        """Carry statements out in PostgreSQL, in one transaction."""
        with psycopg.connect(self.database) as connection:
            for one in statements:
                connection.execute(one.format(t=f"app.{self.name}").encode())

    def oracle(self, statement: str) -> None:
        """Carry a statement out in Oracle."""
        self.served.execute(statement.format(t=self.name))

    def rows(self) -> tuple[list[Any], list[Any]]:
        """The rows of both sides."""
        columns = f"SELECT id, v, w, big FROM {self.name} ORDER BY id"
        with psycopg.connect(self.database, options="-c search_path=app") as connection:
            there = connection.execute(columns.encode()).fetchall()
        with self.oracle_cursor() as cursor:
            cursor.execute(columns)
            here = cursor.fetchall()
        return there, here

    @contextmanager
    def oracle_cursor(self) -> Iterator[oracledb.Cursor]:
        """A cursor of the tables' owner."""
        with (
            oracledb.connect(user="app", password="olr", dsn=self.served.dsn) as oracle,
            oracle.cursor() as cursor,
        ):
            yield cursor

    def same(self) -> bool:
        there, here = self.rows()
        return there == here
