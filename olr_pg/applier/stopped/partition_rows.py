"""Finds the target's partitions that hold exactly the rows of partitions of the source.

A partition of the target has the name of the table, an underscore, and the name of the source's
partition, as `schema export` creates it. After SPLIT, MERGE, RENAME or DROP of a partition in the
source, the target keeps its partitions, so a partition with the same name may hold other rows
(`dictionary.partition_groups`). The table `olr_pg.partition` records, for each such partition of
the source, which partitions of the target hold its rows. The record is written in the target
transaction of the DDL event.

If an operator has made the same change in the target, a partition exists whose name is recorded
nowhere as a holder of other rows. This partition is assumed to hold the rows of the source's
partition of that name.

`add_partition` adds to the target a partition that was added in the source. Oracle adds a partition
of ranges only above all others, so its range begins in the target where the highest range of the
target ends. The applier creates the partition as a separate table and then attaches it. This way
does not block other sessions (PostgreSQL, ALTER TABLE … ATTACH PARTITION: SHARE UPDATE EXCLUSIVE on
the partitioned table).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psycopg
from psycopg import Connection, sql

from olr_pg.applier.target.catalogue import TargetTable, has_rows
from olr_pg.postgres.sqlstates import is_transient, plain_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from olr_pg.datatypes.choices import Choices
    from olr_pg.dictionary.evolution import Step

_TREE: Final = """
SELECT substr(c.relname, length(p.relname) + 2), n.nspname, c.relname, p.oid, k.partstrat = 'h',
    k.partdefid = c.oid,
    CASE WHEN pg_get_expr(c.relpartbound, c.oid) LIKE '%%TO (MAXVALUE%%' THEN k.partdefid ELSE 0 END
FROM pg_partition_tree(%s::oid::regclass) t
    JOIN pg_class c ON c.oid = t.relid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_class p ON p.oid = t.parentrelid JOIN pg_partitioned_table k ON k.partrelid = p.oid
WHERE starts_with(c.relname, p.relname || '_')
ORDER BY t.level, c.relname
"""
_NULLS: Final = """
SELECT n.nspname, d.relname, a.attname
FROM pg_class d JOIN pg_namespace n ON n.oid = d.relnamespace
    JOIN pg_inherits i ON i.inhrelid = d.oid
    JOIN pg_partitioned_table k ON k.partrelid = i.inhparent
    JOIN pg_attribute a ON a.attrelid = d.oid
    JOIN pg_attribute p ON p.attrelid = i.inhparent AND p.attname = a.attname
        AND p.attnum = ANY(k.partattrs)
WHERE d.oid = %s
"""
_READ: Final = """
SELECT name, holds FROM olr_pg.partition WHERE subscription = %s AND source_table = %s
"""
_FORGET: Final = "DELETE FROM olr_pg.partition WHERE subscription = %s AND source_table = %s"
_WRITE: Final = """
INSERT INTO olr_pg.partition (subscription, source_table, name, holds) VALUES (%s, %s, %s, %s)
"""
_UNKNOWN: Final = ""
"""The name in `olr_pg.partition` that holds the partitions of the target whose rows belong to
unknown partitions of the source. After a DROP PARTITION, the target's partition is such a
partition. Among the holders of a partition of the source, it stands for partitions of the target
that are unknown.
"""


class _Partition(NamedTuple):
    """A partition of the target.

    Attributes:
        parent: OID of the table that it is a partition of.
        by_hash: whether this table is partitioned by hash.
        is_default: whether this partition is the default partition, which holds the rows for which
            the parent has no other partition.
        default_above: OID of the parent's default partition if this partition is a range up to
        MAXVALUE; 0 if it is not, or if the parent has no default partition.
    """

    schema: str
    name: str
    parent: int
    by_hash: bool
    is_default: bool
    default_above: int

    @property
    def identifier(self) -> sql.Identifier:
        """The name of the partition as SQL."""
        return sql.Identifier(self.schema, self.name)


class PartitionRows:
    """Which partitions of a target table hold the rows of which partitions of the source.

    Args:
        connection: a connection to the target, in the transaction of a DDL event of the table.
        key: subscription and source table.
    """

    def __init__(
        self,
        connection: Connection[Any],
        key: tuple[str, str],
        target: TargetTable,
        choices: Choices,
    ) -> None:
        self._connection, self._key, self._choices = connection, key, choices
        self._tree = dict[str, _Partition]()
        for name, *place in connection.execute(_TREE, (target.oid,)).fetchall():
            self._tree.setdefault(name, _Partition(*place))
        found = connection.execute(_READ, key).fetchall()
        self._holders: dict[str, list[str]] = dict(found)

    def only_of(
        self, partitions: Sequence[str], others: Sequence[str] = ()
    ) -> list[sql.Identifier] | str:
        """Return the target's partitions that hold exactly the rows of these partitions of the
        source, or the reason why there are none.

        Args:
            others: the other partitions of the source's table.
        """
        names = [self._choices.name(one) if one else "" for one in partitions]
        found = dict.fromkeys(name for one in names for name in self._holding(one) or ())
        for one in names:
            if not one or not self._is_known(one):
                return f"the target has no partition for {one or 'a partition of unknown name'}"
        for name in set(self._holders.get(_UNKNOWN, ())) & self._tree.keys():
            if self._has_rows(name):
                return f"{self._tree[name].name} has rows that may belong to it"
        rest = self._holders.keys() - {_UNKNOWN, *names}
        for other in rest:
            for name in found.keys() & set(self._holding(other) or ()):
                if self._has_rows(name):
                    return f"{self._tree[name].name} may also have rows of partition {other}"
        missing = self._without_own(others)
        for name in found if missing is not None else ():
            if self._tree[name].is_default and self._has_rows(name):
                words = "is the default partition, and may also have rows of partition"
                return f"{self._tree[name].name} {words} {missing or 'of unknown name'}"
        for name in found:
            if self._has_nulls_elsewhere(self._tree[name]):
                return f"the default partition beside {self._tree[name].name} has rows with NULL"
        is_whole = not rest and {self._choices.name(one) for one in others} <= set(names)
        for name, siblings in self._hash_siblings(found):
            is_known = is_whole and found.keys() >= siblings
            if not is_known and any(self._has_rows(one) for one in siblings):
                return f"{self._tree[name].name} is a partition by PostgreSQL's own hash"
        return [self._tree[name].identifier for name in found]

    def _has_nulls_elsewhere(self, partition: _Partition) -> bool:
        """Return whether the default partition has rows with NULL that belong to this partition in
        the source: Oracle puts NULL into the range up to MAXVALUE, PostgreSQL does not.
        """
        if not partition.default_above:
            return False
        places = self._connection.execute(_NULLS, (partition.default_above,)).fetchall()
        query = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE {} IS NULL)")
        return any(
            self._connection.execute(
                query.format(sql.Identifier(schema, name), sql.Identifier(column))
            ).fetchone()
            == (True,)
            for schema, name, column in places
        )

    def _without_own(self, partitions: Sequence[str]) -> str | None:
        """Return the first of these partitions of the source whose rows are in no known partition
        of the target. None if there is no such partition.
        """
        names = (self._choices.name(one) if one else "" for one in partitions)
        return next((one for one in names if not one or not self._is_known(one)), None)

    def _hash_siblings(self, names: Iterable[str]) -> list[tuple[str, set[str]]]:
        """Return pairs, one for each parent by hash: one of `names`, and all partitions of the
        parent. PostgreSQL computes other hashes than Oracle, so each of these partitions can hold
        rows of each partition of the source. All together hold known rows only if the source has
        no other partitions.
        """
        parents = dict[int, str]()
        for name in names:
            if self._tree[name].by_hash:
                parents.setdefault(self._tree[name].parent, name)
        return [
            (name, {sibling for sibling, one in self._tree.items() if one.parent == parent})
            for parent, name in parents.items()
        ]

    def _is_known(self, name: str) -> bool:
        """Return whether all holders of the rows of a partition of the source are known."""
        held = self._holding(name)
        return held is not None and all(one in self._tree for one in held)

    def _has_rows(self, name: str) -> bool:
        return has_rows(self._connection, self._tree[name].identifier)

    def _holding(self, name: str) -> list[str] | None:
        """Return the names of the target's partitions that hold the rows of a partition of the
        source; None if they are unknown.
        """
        held = {one for holds in self._holders.values() for one in holds}
        if name in self._tree and name not in held:
            return [name]
        return self._holders.get(name) or None

    def regroup(self, steps: Sequence[Step]) -> None:
        """Record that partitions of the source have other rows than before (`DdlKind.REGROUP`)."""
        if not self._tree:
            return
        if any(not step.partition for step in steps):
            self._write({_UNKNOWN: sorted(self._tree)})
            return
        after = dict(self._holders)
        name = self._choices.name
        gone = [name(step.partition) for step in steps if not step.sources]
        for one in gone:
            after.pop(one, None)
        inherited = {name(one) for step in steps for one in step.sources}
        lost = {held for one in gone for held in self._holding(one) or ()}
        if not all(self._is_known(one) for one in gone if one not in inherited):
            # A partition was dropped, and the target has no separate partition for its range. Later
            # rows of the range belong to a neighbouring partition in the source, and can be in any
            # partition of the target.
            lost = set(self._tree)
        for step in steps:
            if step.sources:
                held = self._union([name(one) for one in step.sources])
                after[name(step.partition)] = held
                lost -= set(held)
        after[_UNKNOWN] = sorted({*after.get(_UNKNOWN, ()), *lost})
        self._write(after)

    def note_added(self, added: str, after: str, others: Sequence[str]) -> None:
        """Record a partition by range that was added to source and target, unless both ranges
        begin at the same value.

        Args:
            after: the partition of the target after which its range begins; empty for none.
            others: the partitions that the source's table had before the range was added.
        """
        held = {self._tree[one].name for other in self._held_by(others) for one in other}
        if after not in held or self._without_own(others) is not None:
            name = self._choices.name(added)
            self._write({**self._holders, name: [name, _UNKNOWN]})

    def _held_by(self, partitions: Sequence[str]) -> Iterator[list[str]]:
        """Yield the holders of each of these partitions of the source; leave out partitions whose
        holders are unknown.
        """
        for one in map(self._choices.name, filter(None, partitions)):
            if self._is_known(one):
                yield self._holding(one) or []

    def _union(self, sources: Sequence[str]) -> list[str]:
        """Return the target's partitions that hold the rows of all these partitions; also
        `_UNKNOWN` if a part of the rows is in unknown partitions.
        """
        parts = [self._holding(one) or (_UNKNOWN,) for one in sources]
        return list(dict.fromkeys(name for holds in parts for name in holds))

    def _write(self, holders: dict[str, list[str]]) -> None:
        """Write which partitions hold other rows than their names say."""
        self._connection.execute(_FORGET, self._key)
        counted = Counter(held for holds in holders.values() for held in holds)
        for name, holds in holders.items():
            is_usual = holds == [name] and counted[name] == 1
            if not is_usual and (holds or name != _UNKNOWN):
                self._connection.execute(_WRITE, (*self._key, name, holds))
        self._holders = holders


_PARTITIONED: Final = """
SELECT p.partstrat, p.partnatts = 1 AND a.attname IS NOT NULL,
    format_type(a.atttypid, a.atttypmod) || coalesce((
        SELECT format(' COLLATE %%I.%%I', n.nspname, c.collname) FROM pg_collation c
            JOIN pg_namespace n ON n.oid = c.collnamespace WHERE c.oid = p.partcollation[0]), ''),
    p.partdefid <> 0,
    to_regclass(format('%%I.%%I', %(schema)s::text, %(name)s::text)) IS NOT NULL
FROM pg_partitioned_table p
    LEFT JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
        AND a.attnum > 0
WHERE p.partrelid = %(table)s
"""
_UPPER: Final = """
SELECT substring(pg_get_expr(c.relpartbound, c.oid) FROM '\\) TO \\((.*)\\)$'), c.relname
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = %s AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
"""
_COPY: Final = (
    "CREATE TABLE {} (LIKE {} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED"
    " INCLUDING STORAGE)"
)
_LAST: Final = (
    "SELECT quote_literal(v::text), name FROM (VALUES {}) AS e (v, name) ORDER BY v DESC LIMIT 1"
)
_UNBOUNDED: Final = "MAXVALUE"


class Added(NamedTuple):
    """The result of adding a partition to the target.

    Attributes:
        reason: why rows for it will have no partition; empty if they have one.
        is_range: whether a range was added.
        after: the name of the partition after which the range begins; empty if it has no lower
            bound.
    """

    reason: str = ""
    is_range: bool = False
    after: str = ""


def add_partition(
    connection: Connection[Any], target: TargetTable, name: str, values: str, *, by_list: bool
) -> Added:
    """Add a partition in a subtransaction, unless the target has it or needs none.

    Args:
        name: the target's name for the partition, without the table's name.
        values: the end of its range, or the values of its list, as SQL.

    Raises:
        psycopg.Error: an error after which another attempt can succeed.
    """
    partition = f"{target.name}_{name}"
    named = {"table": target.oid, "schema": target.schema, "name": partition}
    row = connection.execute(_PARTITIONED, named).fetchone()
    if row is None:
        return Added()
    strategy, is_plain, kind, has_default, is_there = row
    if is_there or has_default or strategy == "h":
        return Added()
    if strategy != ("l" if by_list else "r") or not is_plain:
        return Added("the target is partitioned by other columns or in another way")
    after = ""
    bounds = values if values == "DEFAULT" else f"FOR VALUES IN ({values})"
    if not by_list:
        lower, after = _highest(connection, target, kind)
        if lower == _UNBOUNDED:
            return Added()
        bounds = f"FOR VALUES FROM ({lower}) TO ({values})"
    new = sql.Identifier(target.schema, partition)
    try:
        with connection.transaction():
            connection.execute(sql.SQL(_COPY).format(new, target.identifier))
            words = sql.SQL("ALTER TABLE {} ATTACH PARTITION {} ")
            attach = words.format(target.identifier, new) + sql.SQL(bounds)
            connection.execute(attach)
    except psycopg.Error as error:
        if is_transient(error):
            raise
        return Added(f"PostgreSQL: {plain_words(error)}")
    return Added(is_range=not by_list, after=after)


def _highest(connection: Connection[Any], target: TargetTable, kind: str) -> tuple[str, str]:
    """Return where the highest range ends, as SQL, and its partition; MINVALUE without ranges."""
    ends = [one for one in connection.execute(_UPPER, (target.oid,)).fetchall() if one[0]]
    if any(end == _UNBOUNDED for end, _ in ends):
        return _UNBOUNDED, ""
    if not ends:
        return "MINVALUE", ""
    typed = sql.SQL(", ").join(
        sql.SQL("({}::{}, {})").format(sql.SQL(end), sql.SQL(kind), sql.Literal(name))
        for end, name in ends
    )
    row = connection.execute(sql.SQL(_LAST).format(typed)).fetchone()
    assert row is not None
    return str(row[0]), str(row[1])
