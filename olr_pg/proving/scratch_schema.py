"""The scratch schema, in which scenarios run. `olr-pg prove` removes all objects that the scenarios
create.

A table in the schema, called the journal, lists every object before the object is created. So the
next run finds the objects that a killed run left, and drops exactly these. A schema with other
objects is refused.
"""

from __future__ import annotations

import re
import secrets
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import oracledb
from pydantic import SecretStr
from sqlalchemy import Connection, select

from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.wording import counted
from olr_pg.oracle.driver.bounded_calls import oracle_error
from olr_pg.oracle.oracle_connection import OracleDatabase, open_connection
from olr_pg.oracle.tables import OBJ, USER, bound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from olr_pg.config.source_section import OracleSource, Prove

JOURNAL: Final = "OLR_PG_PROVE_JOURNAL"
MADE_USER: Final = "OLR_PG_PROVE"
"""Name of the schema that is created if none is configured."""

_RIGHTS: Final = (
    "CREATE SESSION, CREATE TABLE, CREATE SEQUENCE, CREATE VIEW, CREATE PROCEDURE, CREATE TRIGGER,"
    " CREATE TYPE, CREATE CLUSTER"
)
_TABLE: Final = "TABLE"
_KINDS: Final = {
    2: _TABLE, 3: "CLUSTER", 4: "VIEW", 5: "SYNONYM", 6: "SEQUENCE", 7: "PROCEDURE",
    8: "FUNCTION", 9: "PACKAGE", 12: "TRIGGER", 13: "TYPE", 42: "MATERIALIZED VIEW",
}  # fmt: skip
"""The kinds of objects by OBJ$.TYPE#. Other objects (indexes, LOBs, partitions, bodies) belong to
one of these objects.
"""

_DROPS: Final = (
    *("MATERIALIZED VIEW", "TRIGGER", "VIEW", _TABLE, "CLUSTER", "SEQUENCE", "SYNONYM"),
    *("PROCEDURE", "FUNCTION", "PACKAGE", "TYPE"),
)
"""The order in which objects are dropped. Objects that depend on others come first."""

_SUFFIX: Final = {_TABLE: " CASCADE CONSTRAINTS PURGE", "TYPE": " FORCE", "CLUSTER": ""}
_NAME: Final = r'("[^"]+"|[\w$#]+)'
_MADE: Final = re.compile(
    r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:(?:GLOBAL|PRIVATE)\s+TEMPORARY\s+|IMMUTABLE\s+|"
    r"BLOCKCHAIN\s+|NONEDITIONABLE\s+|EDITIONABLE\s+|FORCE\s+|PUBLIC\s+)*"
    rf"({'|'.join(_DROPS).replace(' ', chr(92) + 's+')})\s+(?:BODY\s+)?{_NAME}",
    re.IGNORECASE,
)
_RENAMED: Final = re.compile(
    rf"\s*(?:ALTER\s+TABLE\s+\S+\s+)?RENAME\b.*\bTO\s+{_NAME}\s*$", re.IGNORECASE
)
_FORGET: Final = f"DELETE FROM {JOURNAL}"  # noqa: S608 - a name of ours
_NOTE: Final = f"INSERT INTO {JOURNAL} VALUES (:1, :2)"  # noqa: S608
_NOTED: Final = f"SELECT kind, name FROM {JOURNAL}"  # noqa: S608
_GONE: Final = (942, 2289, 4043, 4080, 1434, 12003, 943)
"""Numbers of ORA errors that mean that an object is missing."""


class SchemaObject(NamedTuple):
    """An object of the schema: its kind as DROP names it, and its name in the dictionary."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.lower()} {self.name}"


def made_objects(statements: Iterable[str]) -> tuple[SchemaObject, ...]:
    """Return the objects that the statements create, and the new names of objects that they
    rename.
    """
    found = []
    for text in statements:
        made = _MADE.match(text)
        if made is not None:
            found.append(SchemaObject(" ".join(made[1].upper().split()), _folded(made[2])))
        renamed = _RENAMED.match(text)
        if renamed is not None:
            found.append(SchemaObject(_TABLE, _folded(renamed[1])))
    return tuple(dict.fromkeys(found))


def _folded(name: str) -> str:
    return name[1:-1] if name.startswith('"') else name.upper()


class ScratchSchema:
    """A scratch schema in the source database; `open_scratch` returns it.

    Args:
        source: the login of the schema's owner.
        database: the database with the replicating account, which reads the dictionary.
    """

    def __init__(self, source: OracleSource, database: OracleDatabase) -> None:
        self.source = source
        self.owner = source.user.strip('"') if '"' in source.user else source.user.upper()
        self._database = database

    def objects(self) -> set[SchemaObject]:
        """Return the objects of the schema."""
        return self._database.read("listing the scratch schema", self._listed)

    def _listed(self, connection: Connection) -> set[SchemaObject]:
        query = (
            select(OBJ.c["TYPE#"], OBJ.c.NAME)
            .join(USER, USER.c["USER#"] == OBJ.c["OWNER#"])
            .where(bound(self.owner) == USER.c.NAME)
        )
        return {
            SchemaObject(_KINDS[int(kind)], str(name))
            for kind, name in connection.execute(query)
            if int(kind) in _KINDS and not str(name).startswith("BIN$")
        }

    def prepare(self) -> int:
        """Remove the objects that an earlier run left, and create the journal; return the number of
        removed objects.

        Raises:
            OlrPgError: 7201, the schema contains objects that no run created; 7001 to 7009 errors
                of the database.
        """
        objects = self.objects()
        journal = SchemaObject(_TABLE, JOURNAL)
        with self._session() as cursor:
            known = _read_journal(cursor) if journal in objects else set[SchemaObject]()
            foreign = objects - known - {journal}
            if foreign:
                listed = ", ".join(map(str, sorted(foreign)[:5]))
                raise OlrPgError(
                    Code.SCRATCH_SCHEMA_IN_USE,
                    f"{self.owner} contains {counted(len(foreign), 'such object')}: {listed}",
                )
            left = objects & known
            _drop(cursor, left)
            if journal in objects:
                cursor.execute(_FORGET)
                cursor.execute("COMMIT")
            else:
                cursor.execute(f"CREATE TABLE {JOURNAL} (kind VARCHAR2(30), name VARCHAR2(128))")
        return len(left)

    def note(self, objects: Iterable[SchemaObject]) -> None:
        """Add objects to the journal, before they are created."""
        with self._session() as cursor:
            for one in objects:
                cursor.execute(_NOTE, list(one))
            cursor.execute("COMMIT")

    def clear(self) -> None:
        """Drop the objects in the journal."""
        with self._session() as cursor:
            _drop(cursor, self.objects() & _read_journal(cursor))
            cursor.execute(_FORGET)
            cursor.execute("COMMIT")

    def end(self) -> None:
        """Drop the journal as well, so that the schema is empty again."""
        self.clear()
        with self._session() as cursor:
            cursor.execute(f"DROP TABLE {JOURNAL}{_SUFFIX[_TABLE]}")

    def grant_reading(self, tables: Iterable[str], reader: str) -> None:
        """Grant the replicating account access to tables; ignore errors, because the account may
        already have access.
        """
        with self._session() as cursor:
            for name in tables:
                with suppress(oracledb.DatabaseError):
                    cursor.execute(f'GRANT SELECT, FLASHBACK ON "{name}" TO {reader}')

    @contextmanager
    def _session(self) -> Iterator[oracledb.Cursor]:
        try:
            with closing(open_connection(self.source)) as connection, connection.cursor() as cursor:
                yield cursor
        except oracledb.Error as error:
            raise oracle_error(error, f"working in the scratch schema {self.owner}") from error


def _read_journal(cursor: oracledb.Cursor) -> set[SchemaObject]:
    cursor.execute(_NOTED)
    return {SchemaObject(str(kind), str(name)) for kind, name in cursor.fetchall()}


def _drop(cursor: oracledb.Cursor, objects: Iterable[SchemaObject]) -> None:
    for one in sorted(objects, key=lambda one: (_DROPS.index(one.kind), one.name)):
        try:
            cursor.execute(f'DROP {one.kind} "{one.name}"{_SUFFIX.get(one.kind, "")}')
        except oracledb.DatabaseError as error:
            if ora_number(error) not in _GONE:
                raise


def ora_number(error: BaseException) -> int:
    """Return the number of an ORA error; 0 if the error has none."""
    first: Any = error.args[0] if error.args else None
    code = getattr(first, "code", 0)
    return int(code or 0) if str(getattr(first, "full_code", "ORA")).startswith("ORA") else 0


@contextmanager
def open_scratch(
    source: OracleSource, prove: Prove | None, database: OracleDatabase, note: Path
) -> Iterator[ScratchSchema]:
    """Open the configured scratch schema, or create one while the context is active.

    Args:
        source: the replicating account.
        prove: the section of the configuration; None to create a schema.
        note: a file that records the created schema, so that the next run can remove the schema if
            this run is killed.

    Raises:
        OlrPgError: 7200, no schema is configured and none can be created; 7201 see
            `ScratchSchema.prepare`.
    """
    if prove is not None:
        update = {"user": prove.user, "password": prove.password}
        own = source.model_copy(update={**update, "server": prove.server or source.server})
        yield ScratchSchema(own, database)
        return
    password = f"P{secrets.token_hex(12)}a1"
    _make_user(source, database, password, note)
    try:
        own = source.model_copy(update={"user": MADE_USER, "password": SecretStr(password)})
        yield ScratchSchema(own, database)
    finally:
        with closing(open_connection(source)) as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP USER {MADE_USER} CASCADE")
        note.unlink(missing_ok=True)


def _make_user(source: OracleSource, database: OracleDatabase, password: str, note: Path) -> None:
    """Create the schema. Before that, drop a schema that a killed run has created.

    Raises:
        OlrPgError: 7200, the schema cannot be created; 7201, another schema has its name.
    """

    def is_there(connection: Connection) -> bool:
        query = select(USER.c.NAME).where(bound(MADE_USER) == USER.c.NAME)
        return connection.execute(query).first() is not None

    exists = database.read("looking for the scratch schema", is_there)
    if exists and not note.exists():
        raise OlrPgError(
            Code.SCRATCH_SCHEMA_IN_USE,
            f"no run with this directory has created the user {MADE_USER}",
        )
    note.write_text(MADE_USER, "utf-8")
    try:
        with closing(open_connection(source)) as connection, connection.cursor() as cursor:
            if exists:
                cursor.execute(f"DROP USER {MADE_USER} CASCADE")
            cursor.execute(f'CREATE USER {MADE_USER} IDENTIFIED BY "{password}"')
            cursor.execute(f"GRANT {_RIGHTS}, UNLIMITED TABLESPACE TO {MADE_USER}")
    except oracledb.Error as error:
        note.unlink(missing_ok=True)
        reason = oracle_error(error, f"CREATE USER {MADE_USER}")
        raise OlrPgError(Code.NO_SCRATCH_SCHEMA, reason.detail) from error
