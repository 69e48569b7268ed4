"""What a DDL means for the copy of a table: the rule of the module, case by case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from olr_pg.dictionary.committed_changes import Statement
from olr_pg.dictionary.evolution import (
    ALTER_TABLE,
    TRUNCATE_TABLE,
    DdlKind,
    Evolution,
    Step,
    exchanged,
    find_exchanges,
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
    assert str(Evolution()) == "no change that affects a copy"


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
    assert found == Evolution(DROPPED)
    found = judge(old, dropped, [statement("ALTER TABLE T DROP PARTITION FOR (7)")])
    assert found == Evolution((Step(DdlKind.DROP_PARTITION, others=("",)),))
    emptied = replace(old, segments=(31, 22))
    words = [statement("alter table t truncate partition p1 update indexes")]
    found = judge(old, emptied, words, parts=names)
    assert found == Evolution(TRUNCATED)
    for parts, text in (
        ({}, "TRUNCATE PARTITION P1"),
        (names, "EXCHANGE PARTITION P1 WITH TABLE X"),
    ):
        assert judge(old, emptied, [statement(f"ALTER TABLE T {text}")], parts=parts).stops
    merged = [statement("ALTER TABLE T MERGE PARTITIONS P1, P2 INTO PARTITION P3")]
    assert judge(old, dropped, merged, parts=names) == Evolution()


KEPT = ((11, 12), (21, 22))
WITH_P3 = ((11, 12, 13), (21, 22, 23))
EMPTIED = ((11, 12), (31, 22))
WITHOUT_P2 = ((11,), (21,))
TRUNCATED = (Step(DdlKind.TRUNCATE_PARTITION, partition="P1", others=("P2",)),)
DROPPED = (Step(DdlKind.DROP_PARTITION, partition="P2", others=("P1",)),)
STOPS = "stops"

OF_PARTITIONS: Final = (
    ("modify_table_default_attrs", "MODIFY DEFAULT ATTRIBUTES TABLESPACE TS2", KEPT, ()),
    ("alter_automatic_partitioning", "SET PARTITIONING AUTOMATIC", KEPT, ()),
    ("alter_interval_partitioning", "SET INTERVAL (NUMTOYMINTERVAL(1, 'MONTH'))", KEPT, ()),
    ("set_subpartition_template", "SET SUBPARTITION TEMPLATE 8", KEPT, ()),
    ("modify_table_partition", "MODIFY PARTITION P1 ADD VALUES ('N')", KEPT, ()),
    ("modify_table_partition", "MODIFY PARTITION P1 DROP VALUES ('N')", KEPT, ()),
    ("modify_table_partition", "MODIFY PARTITION P1 SHRINK SPACE", EMPTIED, ()),
    ("modify_table_partition", "MODIFY PARTITION P1 READ ONLY", KEPT, ()),
    ("modify_table_partition", "MODIFY PARTITION P ADD SUBPARTITION P3", WITH_P3, ()),
    ("modify_table_partition", "MODIFY PARTITION P COALESCE SUBPARTITION", WITHOUT_P2, ()),
    ("modify_table_subpartition", "MODIFY SUBPARTITION P1 ADD VALUES (7)", KEPT, ()),
    ("modify_to_partitioned", "MODIFY PARTITION BY HASH (ID) PARTITIONS 2 ONLINE", EMPTIED, STOPS),
    ("move_table_partition", "MOVE PARTITION P1 TABLESPACE TS2 ONLINE", EMPTIED, ()),
    ("move_table_partition", "MOVE PARTITION P1 INCLUDING ROWS WHERE ID > 5", EMPTIED, STOPS),
    ("move_table_subpartition", "MOVE SUBPARTITION P1 COMPRESS", EMPTIED, ()),
    ("add_external_partition_attrs", "ADD EXTERNAL PARTITION ATTRIBUTES (…)", KEPT, ()),
    ("add_table_partition", "ADD PARTITION P3 VALUES LESS THAN (9)", WITH_P3, ()),
    ("add_table_partition", "ADD PARTITION P3 VALUES LESS THAN (9) EXTERNAL LOCATION ('p3.csv')",
     WITH_P3, STOPS),
    ("add_table_partition", "ADD PARTITION EXTERNALS VALUES ('EXTERNAL')", WITH_P3, ()),
    ("modify_table_partition", "MODIFY PARTITION P1 EXTERNAL DEFAULT DIRECTORY D", KEPT, STOPS),
    ("modify_table_partition", "MODIFY PARTITION P1 LOCATION ('p1.csv')", KEPT, STOPS),
    ("modify_table_partition", "MODIFY PARTITION LOCATION ADD VALUES (1)", KEPT, ()),
    ("coalesce_table_partition", "COALESCE PARTITION UPDATE INDEXES", WITHOUT_P2, ()),
    ("drop_external_partition_attrs", "DROP EXTERNAL PARTITION ATTRIBUTES ()", KEPT, ()),
    ("drop_table_partition", "DROP PARTITIONS P2 UPDATE GLOBAL INDEXES", WITHOUT_P2, DROPPED),
    ("drop_table_subpartition", "DROP SUBPARTITION P2", WITHOUT_P2, DROPPED),
    ("rename_partition_subpart", "RENAME PARTITION P1 TO P9", KEPT, ()),
    ("truncate_partition_subpart", "TRUNCATE PARTITIONS P1 DROP ALL STORAGE", EMPTIED, TRUNCATED),
    ("truncate_partition_subpart", "TRUNCATE SUBPARTITION P1 CASCADE", EMPTIED, TRUNCATED),
    ("split_table_partition", "SPLIT PARTITION P2 AT (5) INTO (PARTITION P3, PARTITION P4)",
     ((11, 13, 14), (21, 23, 24)), ()),
    ("split_table_partition", "SPLIT PARTITION P2 AT (5) INCLUDING ROWS WHERE ID > 5",
     ((11, 13, 14), (21, 23, 24)), STOPS),
    ("split_table_subpartition", "SPLIT SUBPARTITION P2 VALUES (5) INTO (…)",
     ((11, 13, 14), (21, 23, 24)), ()),
    ("merge_table_partitions", "MERGE PARTITIONS P1 TO P2 INTO PARTITION P3", ((13,), (23,)), ()),
    ("merge_table_partitions", "MERGE PARTITIONS P1, P2 INCLUDING ROWS WHERE ID > 5",
     ((13,), (23,)), STOPS),
    ("merge_table_subpartitions", "MERGE SUBPARTITIONS P1, P2 INTO SUBPARTITION P3",
     ((13,), (23,)), ()),
    ("exchange_partition_subpart", "EXCHANGE PARTITION P1 WITH TABLE X", EMPTIED, STOPS),
    ("exchange_partition_subpart", "EXCHANGE SUBPARTITION P1 WITH TABLE X", EMPTIED, STOPS),
)  # fmt: skip
"""Each clause of `alter_table_partitioning` in Oracle's SQL Language Reference, with the partitions
and segments behind it, and what it means; the other table of an exchange is unknown here."""


@pytest.mark.parametrize(("text", "behind", "means"), [one[1:] for one in OF_PARTITIONS])
def test_each_clause_about_partitions(text: str, behind: Any, means: Any) -> None:
    old = replace(OLD, dataobj=None, partitions=(11, 12), segments=(21, 22))
    new = replace(old, partitions=behind[0], segments=behind[1])
    words = [statement(f"alter table t {text}")]
    found = judge(old, new, words, parts={11: "P1", 12: "P2"})
    assert found.stops if means == STOPS else found == Evolution(means)
    if means == STOPS:
        assert found.error is not None
        assert found.error.code == 3073


NOTED: Final = (
    "alter table t {} /* first MOVE, SHRINK, SPLIT PARTITION, MERGE PARTITIONS, ENABLE ROW */",
    "alter table t {} -- DROP PARTITION, EXCHANGE PARTITION, INCLUDING ROWS",
    "alter table /* TRUNCATE PARTITION, COALESCE PARTITION, ADD PARTITION */ t {}",
    'alter table "MOVE PARTITION, DROP PARTITION" {}',
    "alter table shop.move {}",
    'alter table "Shop" . "MOVE" {}',
    "alter table move {}",
)
"""Statements whose comments and names contain the words of other clauses."""


@pytest.mark.parametrize("noted", NOTED)
def test_words_in_comments_and_names_mean_nothing(noted: str) -> None:
    old = replace(OLD, dataobj=None, partitions=(11, 12), segments=(21, 22))
    names = {11: "P1", 12: "P2"}
    for _, text, behind, _ in OF_PARTITIONS:
        new = replace(old, partitions=behind[0], segments=behind[1])
        plain = judge(old, new, [statement(f"alter table t {text}")], parts=names)
        found = judge(old, new, [statement(noted.format(text))], parts=names)
        assert (found.steps, found.stops) == (plain.steps, plain.stops), text


@pytest.mark.parametrize("name", ["MOVE", '"MOVE"', "SHRINK", '"SPLIT PARTITION"'])
def test_a_dropped_partition_can_have_any_name(name: str) -> None:
    old = replace(OLD, dataobj=None, partitions=(11, 12), segments=(21, 22))
    new = replace(old, partitions=(11,), segments=(21,))
    text = f"alter table t drop partition {name}"
    assert judge(old, new, [statement(text)], parts={11: "P1", 12: "P2"}) == Evolution(DROPPED)


def test_an_exchange_is_known_by_the_segments() -> None:
    parted = replace(OLD, dataobj=None, partitions=(11, 12), segments=(21, 22))
    other = replace(OLD, name="X", obj=9, dataobj=50)
    before = {7: parted, 9: other}
    after = {7: replace(parted, segments=(50, 22)), 9: replace(other, dataobj=21)}
    (found,) = find_exchanges(before, after)
    assert found == (7, 11, 9)
    emptied = {7: replace(parted, segments=(60, 22)), 9: other}
    assert list(find_exchanges(before, emptied)) == []
    first, second = exchanged(parted, "P1", other, ("P2",))
    assert first.steps[0].others == ("P2",)
    assert first.concerns_two
    assert str(first) == "partition P1 was exchanged with table APP.X"
    assert str(second) == "the table was exchanged with partition P1 of APP.T"


def test_a_statement_that_nobody_explains_stops() -> None:
    found = unknown_ddl(OLD, statement("ALTER TABLE T SHRINK"))
    assert found.stops
    assert "SHRINK" in str(found.error)
