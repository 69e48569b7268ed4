"""Which partitions hold which rows behind DDL about partitions, clause by clause."""

from __future__ import annotations

from typing import Any, Final

import pytest

from olr_pg.dictionary.committed_changes import Statement
from olr_pg.dictionary.evolution import ALTER_TABLE, DdlKind, Step
from olr_pg.dictionary.partition_groups import Part, added_partitions, moves_values, regroup
from tests.dictionary.test_evolution import OF_PARTITIONS, STOPS

NAMES: Final = {11: "P1", 12: "P2", 13: "P3", 14: "P4"}
UNKNOWN: Final[list[tuple[str, tuple[str, ...]]]] = [("", ())]
RENAMED: Final = "RENAME PARTITION P1 TO P9"


def steps(told: list[tuple[str, tuple[str, ...]]]) -> list[Step]:
    return [Step(DdlKind.REGROUP, partition=name, sources=sources) for name, sources in told]


def statement(text: str) -> Statement:
    return Statement(ALTER_TABLE, 7, "APP", "T", f"alter table t {text}", 100)


def expected(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """What the clauses mean that change which rows a name stands for."""
    if ("VALUES (" in text and text.startswith("MODIFY")) or "COALESCE" in text:
        return UNKNOWN
    match text.split()[0]:
        case "SPLIT":
            return [("P3", ("P2",)), ("P4", ("P2",)), ("P2", ())]
        case "MERGE":
            return [("P3", ("P1", "P2")), ("P1", ()), ("P2", ())]
        case "DROP" if "EXTERNAL" not in text:
            return [("P2", ())]
        case "RENAME":
            return [("P9", ("P1",)), ("P1", ())]
    return []


@pytest.mark.parametrize(
    ("text", "behind"), [one[1:3] for one in OF_PARTITIONS if "PARTITION BY" not in one[1]]
)
def test_each_clause(text: str, behind: Any) -> None:
    before = {11: Part("P1", 0, (0, 10), 21), 12: Part("P2", 0, (0, 20), 22)}
    names = {**NAMES, 11: "P9"} if text == RENAMED else NAMES
    after = {
        obj: Part(names[obj], 0, (0, obj * 10), segment)
        for obj, segment in zip(*behind, strict=True)
    }
    assert regroup(before, after, (), [statement(text)]) == steps(expected(text))
    assert moves_values([statement(text)]) is (" VALUES (" in text and text.startswith("MODIFY"))


def test_each_clause_is_one_of_the_language_reference() -> None:
    assert sum(bool(expected(text)) for _, text, _, _ in OF_PARTITIONS) == 15
    assert any(means == STOPS and expected(text) for _, text, _, means in OF_PARTITIONS)


INTERVALS: Final = {11: Part("P1", 0, (0, 10), 21), 12: Part("P2", 0, (0, 20), 22)}


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ((0, 30), []),
        ((0, 15), [("P2", ("P2",)), ("SYS_P9", ("P2",))]),
        ((0, 5), [("P1", ("P1",)), ("SYS_P9", ("P1",))]),
        (None, UNKNOWN),
    ],
)
def test_a_new_interval(place: tuple[int, int] | None, told: Any) -> None:
    """It has no statement; above all others it holds rows that no partition had."""
    new = {**INTERVALS, 19: Part("SYS_P9", 0, place, 0)}
    assert regroup(INTERVALS, new, (), []) == steps(told)


def test_a_new_interval_with_sub_partitions() -> None:
    before = {
        21: Part("A", 11, (10, 1), 0),
        22: Part("B", 11, (10, 2), 0),
        31: Part("C", 12, (20, 1), 0),
    }
    above = {**before, 41: Part("D", 13, (30, 1), 0)}
    assert regroup(before, above, (), []) == []
    below = {**before, 41: Part("D", 13, (5, 1), 0)}
    told: list[Any] = [("A", ("A",)), ("B", ("B",)), ("D", ("A", "B"))]
    assert regroup(before, below, (), []) == steps(told)


def test_a_split_that_keeps_the_object_of_one_piece() -> None:
    """A piece without rows is new, and the other keeps its segment, or gets a new one."""
    after = {**INTERVALS, 13: Part("P3", 0, (0, 15), 0)}
    words = [statement("SPLIT PARTITION P2 AT (5) INTO (PARTITION P3, PARTITION P2)")]
    assert regroup(INTERVALS, after, (), words) == steps(UNKNOWN)  # which one is not told
    after[12] = after[12]._replace(segment=99)
    told: list[Any] = [("P2", ("P2",)), ("P3", ("P2",))]
    assert regroup(INTERVALS, after, (), words) == steps(told)


def test_a_merge_into_one_of_both() -> None:
    words = [statement("MERGE PARTITIONS P1, P2 INTO PARTITION P2")]
    after = {12: INTERVALS[12]._replace(segment=99)}
    told: list[Any] = [("P2", ("P1", "P2")), ("P1", ())]
    assert regroup(INTERVALS, after, (), words) == steps(told)
    after = {19: INTERVALS[12]}
    assert regroup(INTERVALS, after, (), words) == steps(told)


def test_what_is_not_told_is_unknown() -> None:
    gone = {11: INTERVALS[11]}
    new = {**INTERVALS, 13: Part("P3")}
    for after, unnamed, text in (
        (gone, {12}, "DROP PARTITION P2"),
        ({11: INTERVALS[11], 13: Part("P3")}, (), ""),
        (new, (), "SPLIT PARTITION P1 AT (1); MERGE PARTITIONS P1, P2"),
        (INTERVALS, (), "MODIFY PARTITION P1 ADD VALUES (7)"),
    ):
        assert regroup(INTERVALS, after, unnamed, [statement(text)]) == steps(UNKNOWN)
    assert regroup({}, new, (), []) == []
    swapped = {11: INTERVALS[11]._replace(name="P2"), 12: INTERVALS[12]._replace(name="P1")}
    told: list[Any] = [("P2", ("P1",)), ("P1", ("P2",))]
    assert regroup(INTERVALS, swapped, (), []) == steps(told)


@pytest.mark.parametrize(
    ("words", "bounds"),
    [
        ("ADD PARTITION p1 VALUES LESS THAN (1), PARTITION p2 VALUES LESS THAN(TO_DATE('x(', 'y'))",
         [("P1", "1"), ("P2", "TO_DATE('x(', 'y')")]),
        ("ADD PARTITION p1 VALUES LESS THAN (1, 2) (SUBPARTITION s VALUES (7))", [("P1", "1, 2")]),
        ("ADD PARTITION p1 VALUES ('a)') -- not yet: PARTITION p2 VALUES (')')", [("P1", "'a)'")]),
        ('ADD PARTITION "p/*1*/" VALUES (1 /* ) */)', [("p/*1*/", "1")]),
        ("ADD PARTITION p1 VALUES (1) /* then SPLIT PARTITION p0 */", [("P1", "1")]),
        ("ADD PARTITION p1", []),
        ("ADD PARTITION VALUES LESS THAN (1)", []),
        ("ADD PARTITION p1 VALUES LESS THAN (1", []),
        ("MODIFY PARTITION p1 ADD SUBPARTITION p2 VALUES (2)", []),
        ("SPLIT PARTITION p1 INTO (PARTITION p2 VALUES LESS THAN (2), PARTITION p3)", []),
    ],
)  # fmt: skip
def test_which_partitions_a_statement_adds(words: str, bounds: list[tuple[str, str]]) -> None:
    added = added_partitions([statement(words)])
    assert [(step.partition, step.text) for step in added] == bounds
