"""What applications have to be granted, tried by a role that has nothing else."""

from __future__ import annotations

import psycopg
import pytest

from olr_pg.applier.target.catalogue import read_table
from olr_pg.applier.target.connection import connect
from olr_pg.load.cutover.application_grants import APPLICATION, application_grants


def test_the_grants_are_all_that_an_application_needs(postgres_database: str) -> None:
    with connect(postgres_database) as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute('CREATE TABLE shop."Orders" (id int PRIMARY KEY, n int)')
        connection.execute("CREATE TABLE shop.other (id int)")
        connection.execute("CREATE SEQUENCE shop.s")
        table = read_table(connection, "shop", "Orders")
        assert table is not None
        statements = application_grants(connection, [table], [("shop", "s")])
        role = "app_" + connection.info.dbname
        connection.execute(f'CREATE ROLE "{role}"')
        try:
            for statement in statements:
                connection.execute(statement.replace(f"TO {APPLICATION};", f'TO "{role}"'))
            connection.execute(f'SET ROLE "{role}"')
            connection.execute("INSERT INTO shop.\"Orders\" VALUES (nextval('shop.s'), 1)")
            connection.execute('UPDATE shop."Orders" SET n = 2')
            assert connection.execute('SELECT n FROM shop."Orders"').fetchall() == [(2,)]
            connection.execute('DELETE FROM shop."Orders"')
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("SELECT FROM shop.other")
        finally:
            connection.execute("RESET ROLE")
            connection.execute(f'DROP OWNED BY "{role}"')
            connection.execute(f'DROP ROLE "{role}"')
    assert len(statements) == 3
