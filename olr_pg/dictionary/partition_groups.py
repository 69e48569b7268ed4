"""Determines which partitions hold which rows after DDL that changes a table's partitions.

A copy can have partitions of its own, which are found by the names of the source's partitions.
After SPLIT, MERGE, RENAME or DROP of a partition in the source, a name no longer stands for the
same rows as in the copy: if P was split into P and Q, the copy's P still holds the rows of both,
and a later TRUNCATE PARTITION P must not empty it. So a step describes each partition that now has
other rows than the partition of this name had before: it lists the former partitions from which
these rows come (`Step.sources`). If two partitions share a former partition, each has a part of its
rows; which rows is unknown.

=================================  ================================================================
DDL                                partitions whose rows have another name now
=================================  ================================================================
ADD PARTITION                      none: the new partition's rows were in no partition
a new interval above all others    none
a new interval between others      the new partition and the next higher one share the rows that
                                   the latter had. If the order is unknown: unknown
DROP PARTITION                     unknown for later rows of its range: the copy still has the
                                   empty partition, but the source has none of this name
MERGE                              the result has the rows of the merged ones
SPLIT                              the results share the rows of the split one
RENAME PARTITION                   the new name has the rows of the old one
COALESCE, ADD or DROP of VALUES    unknown
=================================  ================================================================

Sources: TABPART$.PART# and TABSUBPART$.SUBPART# give the order of partitions (dictionary §3). After
DROP PARTITION, rows of its range go to the next higher partition, and rows of its list of values to
the default partition (Oracle, VLDB and Partitioning Guide, "Dropping Partitions").
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.dictionary.evolution import DdlKind, Step

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from olr_pg.dictionary.committed_changes import Statement

_PART = r"(?:SUB)?PARTITION"
_SPLIT: Final = re.compile(rf"\bSPLIT\s+{_PART}\b")
_MERGE: Final = re.compile(rf"\bMERGE\s+{_PART}S?\b")
_ADD: Final = re.compile(rf"\bADD\s+{_PART}\b")
_VALUES: Final = re.compile(rf"\bMODIFY\s+{_PART}\b.*\b(?:ADD|DROP)\s+VALUES\b", re.DOTALL)
_COALESCE: Final = re.compile(rf"\bCOALESCE\s+{_PART}\b")


_ADDED: Final = re.compile(
    r'\bPARTITION\s+("[^"]+"|[^\W\d][\w$#]*)\s+VALUES\s*(LESS\s+THAN\s*)?\(', re.IGNORECASE
)


class Part(NamedTuple):
    """A partition or sub-partition with rows.

    Attributes:
        parent: OBJ# of the partition of a sub-partition; 0 for a partition.
        place: the place of this part among the partitions of the table (of its parent, in its
            parent); None if unknown.
        segment: DATAOBJ#; 0 without a segment.
    """

    name: str
    parent: int = 0
    place: tuple[int, int] | None = None
    segment: int = 0


def moves_values(statements: Iterable[Statement]) -> bool:
    """Return whether a statement moves values of a list between partitions. Such a statement
    changes no object of the table.
    """
    return any(_VALUES.search(statement.words) for statement in statements)


def regroup(
    before: Mapping[int, Part],
    after: Mapping[int, Part],
    unnamed: Collection[int],
    statements: Sequence[Statement],
) -> list[Step]:
    """Return a step for each partition that has other rows than the partition of this name had
    before.

    Args:
        before, after: the partitions by OBJ#.
        unnamed: OBJ# of partitions that are gone and whose names are unknown.
        statements: the DDL statements that belong to the change.
    """
    if not before:
        return []
    text = " ".join(statement.words for statement in statements)
    holders = None if unnamed else _holders(before, after, text)
    if holders is None:
        return [Step(DdlKind.REGROUP)]
    for obj in before.keys() & after.keys():
        if before[obj].name != after[obj].name:
            holders.setdefault(obj, (obj,))
    steps = [
        Step(
            DdlKind.REGROUP,
            partition=after[obj].name,
            sources=tuple(before[one].name for one in sources),
        )
        for obj, sources in sorted(holders.items())
    ]
    names = {part.name for part in after.values()}
    gone = sorted({part.name for part in before.values()} - names)
    return [*steps, *(Step(DdlKind.REGROUP, partition=name) for name in gone)]


def _holders(
    before: Mapping[int, Part], after: Mapping[int, Part], text: str
) -> dict[int, tuple[int, ...]] | None:
    """Return the former partitions of each partition whose rows were in other partitions. None if
    the former partitions are unknown.
    """
    gone, new = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
    is_split, is_merge = bool(_SPLIT.search(text)), bool(_MERGE.search(text))
    if _VALUES.search(text) or _COALESCE.search(text) or (is_split and is_merge):
        return None
    if not gone and not new:
        return {}
    replaced = [
        obj
        for obj in sorted(before.keys() & after.keys())
        if before[obj].segment != after[obj].segment
    ]
    if is_merge:
        results = new or replaced
        return {one: (*gone, *({one} & before.keys())) for one in results} or None
    if is_split:
        split = tuple(gone or replaced)
        shared = {one: (one,) for one in split if one in after}
        return {**dict.fromkeys(new, split), **shared} if split else None
    if gone and new:
        return None
    return {} if gone or _ADD.search(text) else _of_intervals(new, before, after)


def _of_intervals(
    new: Sequence[int], before: Mapping[int, Part], after: Mapping[int, Part]
) -> dict[int, tuple[int, ...]] | None:
    """Return the former partitions of the rows of new intervals: a new interval shares rows with
    the next higher partition. None if the former partitions are unknown.
    """
    shared = dict[int, tuple[int, ...]]()
    for obj in new:
        part = after[obj]
        level = 0 if part.parent else 1
        places = {one: old.place[level] for one, old in before.items() if old.place}
        if part.place is None or len(places) < len(before):
            return None
        own = part.place[level]
        nearest = min((place for place in places.values() if place >= own), default=None)
        higher = tuple(one for one, place in places.items() if place == nearest)
        if higher:
            shared |= {obj: higher, **{one: (one,) for one in higher}}
    return shared


def added_partitions(statements: Iterable[Statement], others: tuple[str, ...] = ()) -> list[Step]:
    """Return a step for each partition with a name that ADD PARTITION statements add, with the
    bound of its range or the values of its list.

    Args:
        others: see `Step.others`.
    """
    steps = list[Step]()
    for statement in statements:
        words = statement.words
        if not _ADD.search(words) or _SPLIT.search(words) or _MERGE.search(words):
            continue
        text = statement.without_comments
        for found in _ADDED.finditer(text):
            name, less_than = found.groups()
            bound = _until_closed(text[found.end() :])
            if bound is not None:
                steps.append(
                    Step(
                        DdlKind.ADD_PARTITION,
                        partition=name[1:-1] if name.startswith('"') else name.upper(),
                        text=bound,
                        verb="range" if less_than else "list",
                        others=(*others, *(step.partition for step in steps)),
                    )
                )
    return steps


def _until_closed(text: str) -> str | None:
    """Return the text up to the bracket that closes one before it; None if there is none."""
    depth, quote = 1, False
    for at, letter in enumerate(text):
        if letter == "'":
            quote = not quote
        elif not quote and letter in "()":
            depth += 1 if letter == "(" else -1
            if not depth:
                return text[:at].strip()
    return None
