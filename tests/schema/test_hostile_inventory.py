"""Every text of an inventory is hostile in turn: nothing of it is executed or becomes markup."""

from __future__ import annotations

import csv
import os
import subprocess
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from pydantic import BaseModel, ValidationError

from olr_pg.assessment.assessor import assess
from olr_pg.assessment.forms import csv_lines, html_pieces, json_pieces, whole_report
from olr_pg.dictionary.inventory import (
    Constraint,
    DatabaseLink,
    Grant,
    IndexPart,
    Inventory,
    InventoryIndex,
    InventoryTable,
    InventoryView,
    MaterializedView,
    NamedObject,
    OtherSchema,
    Partition,
    Partitioning,
    SchedulerJob,
    SchemaObject,
    Synonym,
    Trigger,
    UnitSource,
    UserType,
)
from olr_pg.dictionary.structure import Sequence
from olr_pg.postgres.embedded import packaged_installation
from olr_pg.schema.conversion import convert
from olr_pg.schema.relations import Relations
from olr_pg.schema.statement import write_files
from tests.hostile import MARK, SQL, TEXTS
from tests.schema.shop_relations import SETTINGS, column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot

PARTS: Final = 11
COLUMNS: Final = (
    column("ID", "NUMBER", length=22, precision=9, scale=0, comment="the key"),
    column("V", "VARCHAR2", length=20, char_length=20, default="'none'"),
    column("W", "VARCHAR2", length=40, char_length=40, default="UPPER(V)", virtual=True),
)
INVENTORY: Final = Inventory(
    database="ORCL", version="19.0", owners=("SHOP",), unread=("DBA_JOBS",),
    others=(OtherSchema(owner="HR", objects=2),),
    tables=(
        InventoryTable(owner="SHOP", name="T", columns=COLUMNS, comment="of the shop",
                       logging=("PRIMARY KEY",)),
        InventoryTable(
            owner="SHOP", name="PARTED", columns=COLUMNS[:2],
            partitioning=Partitioning(method="LIST", columns=("V",), partitions=(
                Partition(name="P1", high_value="'a', 'b'"),
                Partition(name="P2", high_value="DEFAULT"))),
        ),
    ),
    constraints=(
        Constraint(owner="SHOP", name="T_PK", table="T", kind="primary key", columns=("ID",)),
        Constraint(owner="SHOP", name="T_CK", table="T", kind="check", condition="ID > 0"),
        Constraint(owner="SHOP", name="T_FK", table="PARTED", kind="foreign key", columns=("ID",),
                   parent_owner="SHOP", parent_table="T", parent_columns=("ID",)),
    ),
    indexes=(
        InventoryIndex(owner="SHOP", name="T_IX", table_owner="SHOP", table="T",
                       parts=(IndexPart(text="V"),)),
        InventoryIndex(owner="SHOP", name="T_UP", table_owner="SHOP", table="T",
                       parts=(IndexPart(text="UPPER(\"V\")", expression=True),)),
    ),
    views=(InventoryView(owner="SHOP", name="SEEN", text="SELECT id, v FROM t WHERE v = 'a'",
                         columns=COLUMNS[:2], comment="seen"),),
    materialized_views=(MaterializedView(owner="SHOP", name="MV", query="SELECT v FROM t"),),
    sequences=(Sequence(owner="SHOP", name="SEQ", next=1),),
    synonyms=(Synonym(owner="SHOP", name="SYN", target_owner="SHOP", target="T"),),
    triggers=(Trigger(owner="SHOP", name="TRG", kind="BEFORE EACH ROW", event="UPDATE",
                      table_owner="SHOP", table="T", when="NEW.ID > 1",
                      head="TRG BEFORE UPDATE OF V ON T FOR EACH ROW",
                      body="BEGIN :NEW.V := TRIM(:NEW.V); END;"),),
    sources=(
        UnitSource(owner="SHOP", name="F", kind="FUNCTION",
                   text="FUNCTION f (p VARCHAR2) RETURN VARCHAR2 IS x NUMBER := 1;"
                        " BEGIN RETURN p || 'a'; END;"),
        UnitSource(owner="SHOP", name="P", kind="PROCEDURE",
                   text="PROCEDURE p IS BEGIN UPDATE t SET v = 'a' WHERE id = 1; END;"),
    ),
    types=(UserType(owner="SHOP", name="TY"),),
    jobs=(SchedulerJob(owner="SHOP", name="J", kind="PLSQL_BLOCK", action="p;", schedule="DAILY"),),
    links=(DatabaseLink(owner="SHOP", name="FAR", user="X", host="far"),),
    grants=(Grant(owner="SHOP", name="T", grantee="APP", privilege="SELECT", kind="TABLE"),),
    named=(NamedObject(owner="SHOP", name="CTX", kind="CONTEXT", detail="of a package"),),
    objects=tuple(
        SchemaObject(owner="SHOP", name=name, kind=kind)
        for name, kind in (("T", "TABLE"), ("F", "FUNCTION"), ("Q", "QUEUE"), ("SEEN", "VIEW"))
    ),
)  # fmt: skip
"""One of each, translated as far as it can be."""


def _mapped(value: Any, text: Callable[[str], str]) -> Any:
    """A copy with other texts; a text that its field does not allow stays."""
    match value:
        case str():
            return text(value)
        case tuple():
            return tuple(_mapped(one, text) for one in value)
        case BaseModel():
            changes = {name: getattr(value, name) for name in type(value).model_fields}
        case _ if is_dataclass(value):
            changes = {one.name: getattr(value, one.name) for one in fields(value)}
        case _:
            return value
    for name, one in changes.items():
        other = _mapped(one, text)
        if other != one:
            with suppress(ValidationError):
                value = _changed(value, name, other)
    return value


def _changed(value: Any, name: str, other: Any) -> Any:
    if isinstance(value, BaseModel):
        return type(value).model_validate({**dict(value), name: other})
    return replace(value, **{name: other})


def _texts(value: Any) -> set[str]:
    found = set[str]()

    def note(text: str) -> str:
        found.add(text)
        return text

    _mapped(value, note)
    return found


def _variants(hostile: str) -> Iterator[tuple[str, Inventory]]:
    """Each text of the inventory in turn is the hostile one, or ends with it, everywhere.

    A run tries a part of them, another part with each hostile text; all with ``OLR_PG_SEEDS``.
    """
    forms = ("{1}", "{0}{1}", "{0} {1}")
    all_of_them = product(sorted(_texts(INVENTORY) - {""}), forms)
    part = PARTS if "OLR_PG_SEEDS" not in os.environ else 1
    first = list(SQL.values()).index(hostile) % part
    for text, form in islice(all_of_them, first, None, part):
        other = form.replace("{0}", text).replace("{1}", hostile)
        changes = {text: other}
        yield text, _mapped(INVENTORY, lambda one, c=changes: c.get(one, one))  # type: ignore[misc]


def _is_marked(connection: psycopg.Connection[Any]) -> bool:
    query = "SELECT EXISTS (SELECT FROM pg_class WHERE relname = %s)"
    return connection.execute(query, [MARK]).fetchone() == (True,)


@pytest.mark.parametrize("hostile", SQL.values(), ids=list(SQL))
def test_no_statement_executes_a_part_of_a_text(postgres_database: str, hostile: str) -> None:
    usual = {one.sql for one in convert(INVENTORY, SETTINGS) if one.runs}
    with psycopg.connect(postgres_database) as connection:
        connection.execute("CREATE ROLE app")
        for one in convert(INVENTORY, SETTINGS):
            if one.runs:
                connection.execute(one.sql.encode())
        for text, inventory in _variants(hostile):
            connection.execute("SAVEPOINT usual")
            for one in convert(inventory, SETTINGS):
                if one.sql in usual:
                    continue
                for sql in filter(None, (one.present, one.alike, one.sql, one.trial)):
                    connection.execute("SAVEPOINT before")
                    try:
                        connection.execute(sql.encode())
                    except psycopg.Error:
                        connection.execute("ROLLBACK TO before")
                    connection.execute("RELEASE before")
            assert not _is_marked(connection), text
            connection.execute("ROLLBACK TO usual")
        connection.rollback()


def _all_hostile(hostile: str) -> Inventory:
    """All names are hostile, and differ from each other."""
    words = {"SHOP", "T", "PARTED", "ID", "V", "W", "P1", "SEEN", "MV", "SEQ", "SYN", "TRG", "F",
             "P", "T_PK", "T_CK", "T_FK", "T_IX", "T_UP", "FAR", "CTX", "J", "TY", "HR", "ORCL",
             "Q", "DBA_JOBS", "the key", "of the shop", "seen", "of a package"}  # fmt: skip
    return Inventory.model_validate(
        _mapped(INVENTORY, lambda one: f"{hostile}{one}" if one in words else one)
    )


@pytest.mark.parametrize("hostile", TEXTS.values(), ids=list(TEXTS))
def test_psql_executes_no_part_of_a_name(
    postgres_database: str, hostile: str, tmp_path: Path
) -> None:
    statements = convert(_all_hostile(hostile), SETTINGS)
    assert any(one.runs for one in statements if one.kind == "table")
    files = write_files(statements, tmp_path / "files")
    assert {one.parent for one in files} == {tmp_path / "files"}
    psql = str(packaged_installation() / "bin" / "psql")
    for file in files[:-1]:
        command = [psql, postgres_database, "-qXf", str(file)]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    with psycopg.connect(postgres_database) as connection:
        assert not _is_marked(connection)
        found = connection.execute("SELECT relname FROM pg_class WHERE relkind = 'r'").fetchall()
        assert [name for (name,) in found if name.lower().startswith(hostile[:5].lower())]
    assert not list(tmp_path.rglob(MARK))


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[Any] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))


def _tags(page: str) -> set[Any]:
    parser = _Tags()
    parser.feed(page)
    return set(parser.tags)


@pytest.mark.parametrize("hostile", TEXTS.values(), ids=list(TEXTS))
def test_a_report_contains_names_as_text(hostile: str, shop_snapshot: Snapshot) -> None:
    def report(inventory: Inventory) -> Any:
        statements = convert(inventory, SETTINGS)
        relations = Relations(inventory, SETTINGS)
        return assess(inventory, shop_snapshot, frozenset(), relations, statements)

    usual, found = report(INVENTORY), report(_all_hostile(hostile))
    page, usual_page = ("".join(html_pieces(one)) for one in (found, usual))
    assert _tags(page) <= _tags(usual_page) | {("ul", ()), ("li", ())}  # more lists of reasons
    assert page.count("<script") == usual_page.count("<script")
    for cell in (cell for row in csv.reader(csv_lines(found)) for cell in row):
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    for line in whole_report(found):
        assert "\n" not in line
    assert b"".join(json_pieces(found))
