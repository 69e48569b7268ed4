"""A ledger that a stranger has made, or can put code into, is not used: its triggers and views
would run with the applier's rights.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.errors import Code, OlrPgError
from tests.advice import followed

if TYPE_CHECKING:
    from collections.abc import Iterator

Replication = Any  # tests/applier/conftest.py

LEDGER: Final = resources.files("olr_pg.applier").joinpath("sql/ledger.sql").read_text()
TAKEOVER: Final = """
CREATE FUNCTION {place} LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        ALTER ROLE mallory SUPERUSER;
    END IF;
    RETURN {gives};
END $$
"""
TRAPS: Final = {
    "a view in place of the version": (
        "CREATE SCHEMA olr_pg",
        TAKEOVER.format(place="olr_pg.trap() RETURNS int", gives="21"),
        "CREATE VIEW olr_pg.version AS SELECT olr_pg.trap() AS version",
    ),
    "a trigger on a ledger of the stranger": (
        LEDGER,
        TAKEOVER.format(place="olr_pg.trap() RETURNS trigger", gives="NEW"),
        (
            "CREATE TRIGGER trap BEFORE INSERT OR UPDATE ON olr_pg.subscription"
            " FOR EACH ROW EXECUTE FUNCTION olr_pg.trap()"
        ),
        "ALTER TABLE olr_pg.subscription ENABLE ALWAYS TRIGGER trap",
    ),
}


@contextmanager
def stranger(replication: Replication) -> Iterator[str]:
    """The connection string of a role that may create schemas, which is no unusual right."""
    r = replication
    r.execute("CREATE ROLE mallory LOGIN PASSWORD 'm'")
    try:
        with psycopg.connect(r.target) as connection:
            database = sql.Identifier(str(connection.info.dbname)).as_string(connection)
        r.execute(f"GRANT CREATE ON DATABASE {database} TO mallory")
        yield make_conninfo(r.target, user="mallory", password="m")
    finally:
        r.execute("DROP OWNED BY mallory CASCADE; DROP ROLE mallory")


def is_superuser(replication: Replication) -> bool:
    ((found,),) = replication.rows("SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'")
    return bool(found)


def refused(replication: Replication) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught, connect(replication.target):
        pass
    assert caught.value.code == Code.LEDGER_OF_STRANGER
    return caught.value


@pytest.mark.parametrize("trap", TRAPS)
def test_a_schema_that_a_stranger_made_first_is_not_used(
    replication: Replication, trap: str
) -> None:
    r = replication
    r.transaction(r.insert({"ID": 1}))
    with stranger(r) as theirs:
        with psycopg.connect(theirs, autocommit=True) as connection:
            for statement in TRAPS[trap]:
                connection.execute(statement.encode())
        with pytest.raises(OlrPgError) as caught:
            r.apply()
        assert not is_superuser(r)
        assert caught.value.code == Code.LEDGER_OF_STRANGER
        assert "mallory" in caught.value.detail
        assert not r.rows("SELECT FROM s.t")
        followed(caught.value, Code.LEDGER_OF_STRANGER, "run `DROP SCHEMA olr_pg CASCADE`")
        with psycopg.connect(theirs, autocommit=True) as connection:
            connection.execute("DROP SCHEMA olr_pg CASCADE")
        r.serve()
        r.apply()
        assert len(r.rows("SELECT FROM s.t")) == 1


def test_a_schema_that_appears_after_the_connection_is_not_used(replication: Replication) -> None:
    r = replication
    with stranger(r) as theirs, connect(r.target) as ours:
        with psycopg.connect(theirs, autocommit=True) as connection:
            connection.execute(LEDGER.encode())
            connection.execute("UPDATE olr_pg.version SET version = 20")
            for statement in TRAPS["a trigger on a ledger of the stranger"][1:]:
                on_version = statement.replace("olr_pg.subscription", "olr_pg.version")
                connection.execute(on_version.encode())
        with pytest.raises(OlrPgError) as caught:
            ensure_ledger(ours)
        assert caught.value.code == Code.LEDGER_OF_STRANGER
        assert not is_superuser(r)


def test_an_object_of_a_stranger_in_our_schema_is_found(replication: Replication) -> None:
    r = replication
    with stranger(r) as theirs:
        r.apply()
        r.execute("GRANT CREATE, USAGE ON SCHEMA olr_pg TO mallory")
        r.execute("GRANT TRIGGER ON olr_pg.ledger TO mallory; CREATE SCHEMA other")
        r.execute("GRANT ALL ON SCHEMA other TO mallory")
        trap = TAKEOVER.format(place="{}.trap() RETURNS trigger", gives="NEW")
        for made, what in (
            ("CREATE TABLE olr_pg.more ()", "the relation olr_pg.more"),
            ("CREATE TYPE olr_pg.kind AS (n int)", "the relation olr_pg.kind"),
            (trap.format("olr_pg"), "the function olr_pg.trap"),
            (
                trap.format("other") + "; CREATE TRIGGER trap BEFORE UPDATE ON olr_pg.ledger"
                " FOR EACH ROW EXECUTE FUNCTION other.trap()",
                "the function of the trigger trap on olr_pg.ledger",
            ),
        ):
            with psycopg.connect(theirs, autocommit=True) as connection:
                connection.execute(made.encode())
            assert what in refused(r).detail
            r.execute("DROP TABLE IF EXISTS olr_pg.more; DROP TYPE IF EXISTS olr_pg.kind")
            r.execute("DROP FUNCTION IF EXISTS olr_pg.trap, other.trap CASCADE")
        with connect(r.target):
            pass


def test_an_administrator_may_have_made_the_ledger(replication: Replication) -> None:
    """The owner of the database, or one of its members; a role that can act as ours; a role that
    ours can act as.
    """
    r = replication
    r.apply()
    with stranger(r) as theirs:
        r.execute("CREATE ROLE olr LOGIN PASSWORD 'o'; CREATE ROLE owners")
        ours = make_conninfo(r.target, user="olr", password="o")
        with psycopg.connect(theirs) as connection:
            name = sql.Identifier(str(connection.info.dbname)).as_string(connection)
        try:
            r.execute("DROP SCHEMA olr_pg CASCADE")
            with psycopg.connect(theirs, autocommit=True) as connection:
                connection.execute(LEDGER.encode())
            for given, taken in (
                ("GRANT mallory TO olr", "REVOKE mallory FROM olr"),
                ("GRANT olr TO mallory", "REVOKE olr FROM mallory"),
                (
                    f"ALTER DATABASE {name} OWNER TO mallory",
                    f"ALTER DATABASE {name} OWNER TO CURRENT_USER",
                ),
                (
                    f"ALTER DATABASE {name} OWNER TO owners; GRANT owners TO mallory",
                    f"ALTER DATABASE {name} OWNER TO CURRENT_USER",
                ),
            ):
                with pytest.raises(OlrPgError), connect(ours, replica=None):
                    pass
                r.execute(given)
                with connect(ours, replica=None):
                    pass
                r.execute(taken)
        finally:
            r.execute(f"ALTER DATABASE {name} OWNER TO CURRENT_USER; DROP ROLE olr, owners")


REPLACED: Final = [
    f"CREATE FUNCTION public.{name}({left}, {right}) RETURNS {gives} LANGUAGE plpgsql AS $$ BEGIN"
    " IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN"
    f" ALTER ROLE mallory SUPERUSER; END IF; RETURN {value}; END $$;"
    f" CREATE OPERATOR public.{operator} (LEFTARG = {left}, RIGHTARG = {right},"
    f" FUNCTION = public.{name})"
    for name, operator, left, right, gives, value in (
        ("joined", "||", "text", "name", "text", "'x'"),
        ("joined", "||", "name", "text", "text", "'x'"),
        ("same", "=", "name", "varchar", "bool", "true"),
        ("same", "=", "varchar", "name", "bool", "true"),
        ("less", "<", "int4", "numeric", "bool", "true"),
    )
]


def test_the_check_uses_no_operator_of_a_stranger(replication: Replication) -> None:
    """Their types can match better than those of PostgreSQL's own operators."""
    r = replication
    r.apply()
    with stranger(r) as theirs:
        r.execute("GRANT CREATE ON SCHEMA public TO mallory")
        with psycopg.connect(theirs, autocommit=True) as connection:
            for made in REPLACED:
                connection.execute(made.encode())
        with connect(r.target):
            assert not is_superuser(r)
