"""What a DDL means for the copy of a table: the rule of the module, case by case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from olr_pg.dictionary.committed_changes import Statement
from olr_pg.dictionary.evolution import ALTER_TABLE, TRUNCATE_TABLE, Verdict, judge, unknown_ddl
from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import Code

ID = Column("ID", 1, 1, 1, 2, 22, precision=9, scale=0, nullable=False)
NAME = Column("NAME", 2, 2, 2, 1, 30, charset_id=873, charset_form=1)
NOTE = Column("NOTE", 3, 3, 3, 1, 30, charset_id=873, charset_form=1)
OLD = Table("APP", "T", 7, 8, (ID, NAME))


def statement(text: str = "", command: int = ALTER_TABLE) -> Statement:
    return Statement(command, 7, "APP", "T", text, 100)


def test_the_same_definition_is_followed() -> None:
    found = judge(OLD, OLD, [statement("COMMENT")])
    assert (found.verdict, found.error) == (Verdict.FOLLOW, None)


def test_a_nullable_column_is_added() -> None:
    found = judge(OLD, replace(OLD, columns=(ID, NAME, NOTE)), [statement()])
    assert (found.verdict, found.columns) == (Verdict.ADD_COLUMNS, (NOTE,))


def test_truncate_is_carried_out() -> None:
    found = judge(OLD, replace(OLD, dataobj=9), [statement("", TRUNCATE_TABLE)])
    assert found.verdict == Verdict.TRUNCATE


@pytest.mark.parametrize(
    ("new", "text", "code"),
    [
        (None, "DROP TABLE T", Code.TABLE_GONE),
        (replace(OLD, name="U"), "", Code.TABLE_GONE),
        (replace(OLD, columns=(ID,)), "", Code.COLUMNS_CHANGED),
        (replace(OLD, columns=(ID, replace(NAME, type_code=12))), "", Code.COLUMNS_CHANGED),
        (replace(OLD, columns=(ID, NAME, replace(NOTE, nullable=False))), "", Code.COLUMNS_CHANGED),
        (replace(OLD, dataobj=9), "", Code.ROWS_CHANGED_BY_DDL),
        (OLD, "ALTER TABLE T TRUNCATE PARTITION P", Code.ROWS_CHANGED_BY_DDL),
    ],
)
def test_what_needs_a_decision_stops_the_table(new: Table | None, text: str, code: Code) -> None:
    found = judge(OLD, new, [statement(text)])
    assert found.verdict == Verdict.STOP
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
        assert found.verdict == Verdict.STOP
        assert words in str(found.error)


def test_another_size_of_a_column_is_for_the_target_to_judge() -> None:
    wide = replace(NAME, length=60)
    found = judge(OLD, replace(OLD, columns=(ID, wide)), [statement()])
    assert (found.verdict, found.error) == (Verdict.FOLLOW, None)
    assert found.retyped == ((NAME, wide),)
    long = replace(ID, precision=12)
    found = judge(OLD, replace(OLD, columns=(long, NAME, NOTE)), [statement()])
    assert (found.verdict, found.columns) == (Verdict.ADD_COLUMNS, (NOTE,))
    assert found.retyped == ((ID, long),)
    found = judge(OLD, replace(OLD, columns=(long, NAME)), [statement("", TRUNCATE_TABLE)])
    assert (found.verdict, found.retyped) == (Verdict.TRUNCATE, ((ID, long),))


def test_a_column_with_a_default_stops() -> None:
    new = replace(OLD, columns=(ID, NAME, NOTE))
    assert judge(OLD, new, [statement()], frozenset({3})).verdict == Verdict.STOP


def test_a_moved_segment_is_followed() -> None:
    found = judge(OLD, replace(OLD, dataobj=9), [statement("alter table t move")])
    assert found.verdict == Verdict.FOLLOW


def test_a_dropped_partition_is_followed_with_a_warning() -> None:
    old = replace(OLD, partitions=(11, 12), segments=(21, 22))
    new = replace(OLD, partitions=(11,), segments=(21,))
    found = judge(old, new, [statement("ALTER TABLE T DROP PARTITION P")])
    assert found.verdict == Verdict.FOLLOW
    assert found.error is not None
    assert found.error.code == Code.PARTITION_DROPPED


def test_a_statement_that_nobody_explains_stops() -> None:
    found = unknown_ddl(OLD, statement("ALTER TABLE T SHRINK"))
    assert found.verdict == Verdict.STOP
    assert "SHRINK" in str(found.error)
