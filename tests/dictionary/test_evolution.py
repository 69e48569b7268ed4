"""What a DDL means for the copy of a table: the rule of the module, case by case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from olr_pg.dictionary.committed_changes import Statement
from olr_pg.dictionary.evolution import (
    ALTER_TABLE,
    TRUNCATE_TABLE,
    DdlKind,
    Evolution,
    Step,
    judge,
    unknown_ddl,
)
from olr_pg.dictionary.model import AddedColumn, Column, Table
from olr_pg.errors import Code

ID = Column("ID", 1, 1, 1, 2, 22, precision=9, scale=0, nullable=False)
NAME = Column("NAME", 2, 2, 2, 1, 30, charset_id=873, charset_form=1)
NOTE = Column("NOTE", 3, 3, 3, 1, 30, charset_id=873, charset_form=1)
OLD = Table("APP", "T", 7, 8, (ID, NAME))


def statement(text: str = "", command: int = ALTER_TABLE) -> Statement:
    return Statement(command, 7, "APP", "T", text, 100)


def test_the_same_definition_is_followed() -> None:
    assert judge(OLD, OLD, [statement("COMMENT")]) == Evolution()


def test_a_column_is_added() -> None:
    for column in (NOTE, replace(NOTE, nullable=False), replace(NOTE, added=AddedColumn(b"x"))):
        new = replace(OLD, columns=(ID, NAME, column))
        found = judge(OLD, new, [statement()], frozenset({3} if column.added else ()))
        assert found == Evolution((Step(DdlKind.ADD_COLUMN, None, column),))


def test_truncate_is_carried_out() -> None:
    found = judge(OLD, replace(OLD, dataobj=9), [statement("", TRUNCATE_TABLE)])
    assert found == Evolution((Step(DdlKind.TRUNCATE),))


def test_what_becomes_of_columns_is_told_in_steps() -> None:
    title = replace(NAME, name="TITLE", nullable=False)
    unused = replace(NAME, name="SYS_C2$", hidden=True)
    later = replace(NOTE, segcol=2, intcol=2, col=2)
    day = replace(NOTE, type_code=12, charset_id=None, charset_form=None)
    moment = replace(day, type_code=180, scale=6)
    for old, new, steps in (
        ((ID, NAME), (ID, title), [(DdlKind.RENAME_COLUMN, NAME, title),
                                   (DdlKind.NOT_NULL, NAME, title)]),
        ((ID, NAME), (ID,), [(DdlKind.DROP_COLUMN, NAME, None)]),
        ((ID, NAME), (ID, unused), [(DdlKind.DROP_COLUMN, NAME, None)]),
        ((ID, NAME, NOTE), (ID, later), [(DdlKind.DROP_COLUMN, NAME, None)]),
        ((ID, NAME), (ID, replace(NAME, length=60)),
         [(DdlKind.MODIFY_COLUMN, NAME, replace(NAME, length=60))]),
        ((ID, day), (ID, moment), [(DdlKind.MODIFY_COLUMN, day, moment)]),
    ):  # fmt: skip
        found = judge(replace(OLD, columns=old), replace(OLD, columns=new), [statement()])
        assert found == Evolution(tuple(Step(*step) for step in steps))


def test_every_step_says_what_was_done() -> None:
    title = replace(NAME, name="TITLE", nullable=False)
    for kind in DdlKind:
        of_rows = (
            *(DdlKind.TRUNCATE, DdlKind.TRUNCATE_PARTITION, DdlKind.DROP_PARTITION),
            *(DdlKind.DROP_TABLE, DdlKind.CREATE_AGAIN),
        )
        before = None if kind in (DdlKind.ADD_COLUMN, *of_rows) else NAME
        after = None if kind in (DdlKind.DROP_COLUMN, *of_rows) else title
        said = str(Step(kind, before, after, "P1"))
        assert len(said) > 10
        for column in (before, after):
            assert column is None or kind is not DdlKind.RENAME_COLUMN or column.name in said
    assert str(Evolution()) == "nothing that a copy shows"


@pytest.mark.parametrize(
    ("new", "text", "code"),
    [
        (replace(OLD, name="U"), "", Code.TABLE_GONE),
        (replace(OLD, columns=(ID, replace(NAME, type_code=12))), "", Code.COLUMNS_CHANGED),
        (replace(OLD, columns=(ID, NAME, replace(NOTE, added=AddedColumn()))), "",
         Code.COLUMNS_CHANGED),
        (replace(OLD, dataobj=9), "", Code.ROWS_CHANGED_BY_DDL),
        (OLD, "ALTER TABLE T TRUNCATE PARTITION P", Code.ROWS_CHANGED_BY_DDL),
    ],
)  # fmt: skip
def test_what_nobody_can_tell_stops_the_table(new: Table | None, text: str, code: Code) -> None:
    found = judge(OLD, new, [statement(text)])
    assert found.stops
    assert found.error is not None
    assert found.error.code == code


def test_a_column_that_is_encrypted_or_decrypted_stops() -> None:
    clear, cipher = (
        replace(OLD, columns=(ID, NAME, replace(NOTE, encrypted=e))) for e in (False, True)
    )
    for old, new, words in (
        (clear, cipher, "cannot be replicated any more: the column is encrypted"),
        (cipher, clear, "load the table again"),
    ):
        found = judge(old, new, [statement("ALTER TABLE T MODIFY (NOTE …)")])
        assert found.stops
        assert words in str(found.error)


def test_a_default_that_redo_does_not_tell_stops() -> None:
    new = replace(OLD, columns=(ID, NAME, NOTE))
    assert judge(OLD, new, [statement()], frozenset({3})).stops


def test_a_moved_segment_is_followed() -> None:
    found = judge(OLD, replace(OLD, dataobj=9), [statement("alter table t move")])
    assert not found.stops


def test_partitions_that_are_emptied_or_dropped_are_told_by_their_names() -> None:
    old = replace(OLD, partitions=(11, 12), segments=(21, 22))
    names = {11: "P1", 12: "P2"}
    dropped = replace(OLD, partitions=(11,), segments=(21,))
    found = judge(old, dropped, [statement("ALTER TABLE T DROP PARTITION P2")], parts=names)
    assert found == Evolution((Step(DdlKind.DROP_PARTITION, partition="P2"),))
    found = judge(old, dropped, [statement("ALTER TABLE T DROP PARTITION FOR (7)")])
    assert found == Evolution((Step(DdlKind.DROP_PARTITION),))
    emptied = replace(old, segments=(31, 22))
    words = [statement("alter table t truncate partition p1 update indexes")]
    found = judge(old, emptied, words, parts=names)
    assert found == Evolution((Step(DdlKind.TRUNCATE_PARTITION, partition="P1"),))
    for parts, text in (
        ({}, "TRUNCATE PARTITION P1"),
        (names, "EXCHANGE PARTITION P1 WITH TABLE X"),
    ):
        assert judge(old, emptied, [statement(f"ALTER TABLE T {text}")], parts=parts).stops
    merged = [statement("ALTER TABLE T MERGE PARTITIONS P1, P2 INTO PARTITION P3")]
    assert judge(old, dropped, merged, parts=names) == Evolution()


def test_a_statement_that_nobody_explains_stops() -> None:
    found = unknown_ddl(OLD, statement("ALTER TABLE T SHRINK"))
    assert found.stops
    assert "SHRINK" in str(found.error)
