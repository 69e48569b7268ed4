"""A partition of the target is emptied only if it holds exactly the rows of the source's."""

from __future__ import annotations

from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from olr_pg.applier.settings import ApplierSettings, DdlPolicy
from olr_pg.applier.stopped.ddl import apply_event
from olr_pg.applier.stopped.partition_rows import PartitionRows
from olr_pg.applier.target.catalogue import empty_table, read_table
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.datatypes.choices import DEFAULT_CHOICES
from olr_pg.dictionary.committed_changes import Statement
from olr_pg.dictionary.evolution import ALTER_TABLE, DdlKind, Evolution, Step
from olr_pg.dictionary.model import Column, Table
from olr_pg.dictionary.partition_groups import Part, regroup
from olr_pg.scalars import pack_xid
from olr_pg.transactions.schema_event import SchemaEvent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Connection = psycopg.Connection[Any]

KEY: Final = "olr_pg", "SHOP.T"
TABLE: Final = Table("SHOP", "T", 10, 10, (Column("ID", 1, 1, 1, 2, 22),))
INITIAL: Final = {"P0": 10, "P1": 20, "P2": 30}
"""The partitions at first, and where each ends."""


@pytest.fixture
def target(postgres_database: str) -> Iterator[Connection]:
    """The table has three ranges, and one above them."""
    with connect(postgres_database) as connection:
        ensure_ledger(connection)
        connection.execute("CREATE SCHEMA shop")
        yield connection


def make(connection: Connection, by: str = "RANGE (id)", *parts: str) -> None:
    """Make the table anew; each of `parts` is the name of a partition and its bounds."""
    ranges = [f"p{n} FOR VALUES FROM ({10 * n}) TO ({10 * n + 10})" for n in range(3)]
    connection.execute("DROP TABLE IF EXISTS shop.t; TRUNCATE olr_pg.partition")
    connection.execute(f"CREATE TABLE shop.t (id numeric) PARTITION BY {by}".encode())
    for one in parts or (*ranges, "above FOR VALUES FROM (30) TO (MAXVALUE)"):
        name, bounds = one.split(" ", 1)
        statement = f"CREATE TABLE shop.t_{name} PARTITION OF shop.t {bounds}"
        connection.execute(statement.encode())


def rows_of(connection: Connection) -> set[int]:
    return {int(number) for (number,) in connection.execute("SELECT id FROM shop.t")}


def partition_rows(connection: Connection) -> PartitionRows:
    table = read_table(connection, "shop", "t")
    assert table is not None
    return PartitionRows(connection, KEY, table, DEFAULT_CHOICES)


def empty(connection: Connection, *names: str, others: Sequence[str] = ()) -> bool:
    """Whether the rows of these partitions of the source could be removed."""
    found = partition_rows(connection).only_of(names, others)
    if isinstance(found, str):
        return False
    for one in found:
        empty_table(connection, one)
    return True


@dataclass
class Oracle:
    """A table by ranges, with rows.

    Attributes:
        parts: in order: OBJ#, name and end of each.
    """

    connection: Connection
    parts: list[tuple[int, str, int]] = field(default_factory=list)
    rows: set[int] = field(default_factory=set)
    taken: int = 100
    refused: int = 0

    def begin(self) -> None:
        make(self.connection)
        self.parts = [(self.new_object(), name, end) for name, end in INITIAL.items()]

    def new_object(self) -> int:
        self.taken += 1
        return self.taken

    def described(self) -> dict[int, Part]:
        return {obj: Part(name, 0, (0, at)) for at, (obj, name, _) in enumerate(self.parts)}

    def rows_in(self, at: int) -> set[int]:
        begin = self.parts[at - 1][2] if at else -1
        end = self.parts[at][2]
        return {row for row in self.rows if (begin <= row or not at) and row < end}

    def insert(self, row: int) -> None:
        if row < self.parts[-1][2] and row not in self.rows:
            self.rows.add(row)
            self.connection.execute("INSERT INTO shop.t VALUES (%s)", (row,))

    def change(self, parts: list[tuple[int, str, int]], words: str) -> None:
        before = self.described()
        self.parts = parts
        said = [Statement(ALTER_TABLE, 10, "SHOP", "T", words, 1)]
        steps = regroup(before, self.described(), (), said)
        if steps:
            partition_rows(self.connection).regroup(steps)

    def remove(self, at: int) -> None:
        """Empty a partition; who is told that olr_pg cannot do it removes the rows himself."""
        gone = self.rows_in(at)
        self.rows -= gone
        if not empty(self.connection, self.parts[at][1]):
            self.refused += 1
            self.connection.execute("DELETE FROM shop.t WHERE id = ANY(%s)", (list(gone),))

    def do(self, kind: str, at: int, name: str, number: int) -> None:
        """Execute a statement, if it is possible."""
        at %= len(self.parts)
        obj, old, end = self.parts[at]
        begin = self.parts[at - 1][2] if at else 0
        is_free = name not in {one for _, one, _ in self.parts}
        rest = self.parts[:at], self.parts[at + 1 :]
        if kind == "truncate":
            self.remove(at)
        elif kind == "rename" and is_free:
            self.change([*rest[0], (obj, name, end), *rest[1]], "RENAME PARTITION")
        elif kind == "drop" and len(self.parts) > 1:
            self.remove(at)
            self.change([*rest[0], *rest[1]], "DROP PARTITION")
        elif kind == "add" and is_free:
            last = self.parts[-1][2]
            self.change([*self.parts, (self.new_object(), name, last + 5)], "ADD PARTITION")
        elif kind == "split" and is_free and end - begin > 1:
            middle = begin + 1 + number % (end - begin - 1)
            pieces = [(name, middle), (old, end)] if number % 2 else [(old, middle), (name, end)]
            new = [(self.new_object(), *one) for one in pieces]
            self.change([*rest[0], *new, *rest[1]], "SPLIT PARTITION")
        elif kind == "merge" and at and (is_free or number % 2):
            kept = name if is_free else old
            new = [(self.new_object(), kept, end)]
            self.change([*self.parts[: at - 1], *new, *rest[1]], "MERGE PARTITIONS")
        elif kind == "interval" and is_free and end - begin > 1 and not self.rows_in(at):
            # Of a gap between the intervals that are there.
            new = [(self.new_object(), name, begin + 1 + number % (end - begin - 1))]
            self.change([*rest[0], *new, (obj, old, end), *rest[1]], "")


KINDS: Final = "truncate", "rename", "drop", "add", "split", "merge", "interval"
STEPS: Final = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.integers(0, 5),
        st.sampled_from([f"P{number}" for number in range(6)]),
        st.integers(0, 9),
        st.lists(st.integers(0, 45), max_size=4),
    ),
    min_size=2,
    max_size=12,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_becomes_of_partitions_no_other_row_is_removed_and_none_stays(
    target: Connection, steps: list[tuple[str, int, str, int, list[int]]]
) -> None:
    oracle = Oracle(target)
    oracle.begin()
    for row in range(0, 30, 3):
        oracle.insert(row)
    for kind, at, name, number, rows in steps:
        oracle.do(kind, at, name, number)
        for row in rows:
            oracle.insert(row)
        assert rows_of(target) == oracle.rows
    for at in reversed(range(len(oracle.parts))):
        oracle.remove(at)
        assert rows_of(target) == oracle.rows
    assert not oracle.rows


def test_what_a_site_does_each_month_is_followed(target: Connection) -> None:
    oracle = Oracle(target)
    oracle.begin()
    for month in range(3, 9):
        oracle.do("add", 0, f"P{month}", 0)
        end = oracle.parts[-1][2]
        begin = end - 5
        for statement in (
            "DETACH PARTITION shop.t_above",
            f"ATTACH PARTITION shop.t_p{month} FOR VALUES FROM ({begin}) TO ({end})",
            f"ATTACH PARTITION shop.t_above FOR VALUES FROM ({end}) TO (MAXVALUE)",
        ):
            target.execute(f"CREATE TABLE IF NOT EXISTS shop.t_p{month} (id numeric)".encode())
            target.execute(f"ALTER TABLE shop.t {statement}".encode())
        for row in range(oracle.parts[0][2] - 4, end):
            oracle.insert(row)
        oracle.do("drop", 0, "", 0)
        assert rows_of(target) == oracle.rows
    refused = oracle.refused
    assert not refused
    oracle.rows.add(1)  # it comes late, and belongs to the lowest partition now
    target.execute("INSERT INTO shop.t VALUES (1)")
    oracle.do("truncate", 0, "", 0)
    assert oracle.refused > refused
    assert rows_of(target) == oracle.rows


def test_both_pieces_of_a_split_together_and_what_is_merged_again(target: Connection) -> None:
    oracle = Oracle(target)
    oracle.begin()
    for row in (1, 12, 18, 25):
        oracle.insert(row)
    oracle.do("split", 1, "P5", 3)
    assert not empty(target, "P1")
    assert not empty(target, "P5")
    assert rows_of(target) == {1, 12, 18, 25}
    assert empty(target, "P1", "P5")
    assert rows_of(target) == {1, 25}
    target.execute("INSERT INTO shop.t VALUES (12)")
    oracle.do("merge", 2, "P7", 0)
    assert empty(target, "P7")
    assert rows_of(target) == {1, 25}
    assert not empty(target, "P1")


def test_a_split_that_was_made_in_the_target_too(target: Connection) -> None:
    oracle = Oracle(target)
    oracle.begin()
    oracle.do("split", 1, "P5", 3)
    assert [name for _, name, _ in oracle.parts] == ["P0", "P5", "P1", "P2"]
    middle = oracle.parts[1][2]
    target.execute(
        f"ALTER TABLE shop.t DETACH PARTITION shop.t_p1;"
        f"CREATE TABLE shop.t_p5 PARTITION OF shop.t FOR VALUES FROM (10) TO ({middle});"
        f"ALTER TABLE shop.t ATTACH PARTITION shop.t_p1 FOR VALUES FROM ({middle}) TO (20)".encode()
    )
    for row in (1, 10, 19):
        oracle.insert(row)
    oracle.do("truncate", 1, "", 0)
    assert rows_of(target) == oracle.rows == {1, 19}
    oracle.do("truncate", 2, "", 0)
    assert rows_of(target) == oracle.rows == {1}
    assert not oracle.refused


def test_hash_partitions_hold_other_rows_than_those_of_oracle(target: Connection) -> None:
    """Both compute a hash of their own; only all of them together are the same rows."""
    hashes = [f"h{n} FOR VALUES WITH (MODULUS 2, REMAINDER {n})" for n in (0, 1)]
    make(target, "HASH (id)", *hashes)
    target.execute("INSERT INTO shop.t SELECT * FROM generate_series(1, 20)")
    assert not empty(target, "H0")
    assert len(rows_of(target)) == 20
    assert empty(target, "H0", "H1")
    assert not rows_of(target)


def test_all_hash_partitions_hold_rows_of_other_partitions_too(target: Connection) -> None:
    """Seed 98007: H1 is split into H1 and H2, H0 merged into H1, and H1 dropped. The only row is
    one of H2, in the target's partition h0.
    """
    hashes = [f"h{n} FOR VALUES WITH (MODULUS 2, REMAINDER {n})" for n in (0, 1)]
    make(target, "HASH (id)", *hashes)
    target.execute("INSERT INTO shop.t SELECT * FROM generate_series(1, 20)")
    target.execute(
        "DELETE FROM shop.t WHERE NOT satisfies_hash_partition('shop.t'::regclass, 2, 0, id)"
    )
    kept = rows_of(target)
    assert kept
    assert not empty(target, "H0", "H1", others=("H2",))
    assert rows_of(target) == kept
    assert empty(target, "H0", "H1")


def test_a_row_alone_in_a_hash_partition_can_be_of_another_one(target: Connection) -> None:
    """That its siblings have no rows says nothing about the partition of the source it is in."""
    hashes = [f"h{n} FOR VALUES WITH (MODULUS 2, REMAINDER {n})" for n in (0, 1)]
    make(target, "HASH (id)", *hashes)
    target.execute("INSERT INTO shop.t VALUES (1)")
    assert not empty(target, "H0")
    assert not empty(target, "H1")
    assert rows_of(target) == {1}


def test_a_default_partition_has_the_rows_of_partitions_that_the_target_lacks(
    target: Connection,
) -> None:
    make(target, "LIST (id)", "p1 FOR VALUES IN (1)", "other DEFAULT")
    target.execute("INSERT INTO shop.t VALUES (1), (2), (3)")
    assert not empty(target, "OTHER", others=("P1", "P2"))
    assert not empty(target, "OTHER", others=("P1", ""))
    assert rows_of(target) == {1, 2, 3}
    assert empty(target, "P1", others=("OTHER", "P2"))
    assert empty(target, "OTHER", others=("P1",))
    assert not rows_of(target)


def test_where_later_rows_of_a_dropped_partition_are_is_unknown_if_the_target_has_not_got_it(
    target: Connection,
) -> None:
    """In the source they belong to the default partition; here they do not."""
    make(target, "LIST (id)", "x FOR VALUES IN (1)", "y FOR VALUES IN (2)", "other DEFAULT")
    partition_rows(target).regroup([Step(DdlKind.REGROUP, partition="P12")])
    target.execute("INSERT INTO shop.t VALUES (2), (3)")
    assert not empty(target, "OTHER")
    assert rows_of(target) == {2, 3}


def test_null_is_in_the_highest_range_of_oracle_and_in_the_default_partition_here(
    target: Connection,
) -> None:
    make(target, "RANGE (id)", "low FOR VALUES FROM (0) TO (20)",
         "high FOR VALUES FROM (20) TO (MAXVALUE)", "more DEFAULT")  # fmt: skip
    target.execute("INSERT INTO shop.t VALUES (15), (25), (NULL)")
    assert not empty(target, "HIGH", others=("LOW",))
    assert empty(target, "LOW", others=("HIGH",))
    target.execute("DELETE FROM shop.t WHERE id IS NULL")
    assert empty(target, "HIGH", others=("LOW",))
    assert not rows_of(target)


def test_a_name_that_the_result_of_a_merge_has_again_stands_for_more_rows(
    target: Connection,
) -> None:
    """The target has a partition for a part of them only."""
    make(target, "RANGE (id)", "low FOR VALUES FROM (0) TO (20)",
         "p2 FOR VALUES FROM (20) TO (30)")  # fmt: skip
    target.execute("INSERT INTO shop.t VALUES (15), (25)")
    merged = [Step(DdlKind.REGROUP, partition="P2", sources=("P1", "P2")),
              Step(DdlKind.REGROUP, partition="P1")]  # fmt: skip
    partition_rows(target).regroup(merged)
    assert not empty(target, "P2")
    partition_rows(target).regroup([Step(DdlKind.REGROUP, partition="P5", sources=("P2",)),
                                    Step(DdlKind.REGROUP, partition="P2")])  # fmt: skip
    assert not empty(target, "P5")
    assert not empty(target, "P2")
    assert rows_of(target) == {15, 25}


def test_the_sub_partitions_of_one_partition(target: Connection) -> None:
    make(target, "RANGE (id)", "p0 FOR VALUES FROM (0) TO (10) PARTITION BY HASH (id)",
         "p1 FOR VALUES FROM (10) TO (20)")  # fmt: skip
    for n in (0, 1):
        bounds = f"FOR VALUES WITH (MODULUS 2, REMAINDER {n})"
        target.execute(f"CREATE TABLE shop.t_p0_s{n} PARTITION OF shop.t_p0 {bounds}".encode())
    target.execute("INSERT INTO shop.t SELECT * FROM generate_series(0, 19)")
    assert not empty(target, "S0")
    assert empty(target, "S0", "S1")
    assert rows_of(target) == set(range(10, 20))


def test_where_the_partitions_are_unknown_nothing_is_emptied(target: Connection) -> None:
    make(target)
    partition_rows(target).regroup([Step(DdlKind.REGROUP)])
    assert empty(target, "P0") is False  # its name stands for nothing
    target.execute("INSERT INTO shop.t VALUES (5)")
    assert empty(target, "P1") is False
    target.execute("DELETE FROM olr_pg.partition")  # both have the same partitions again
    assert empty(target, "P0")


def event(*steps: Step, scn: int = 500) -> SchemaEvent:
    return SchemaEvent("SHOP.T", scn, pack_xid(1, 2, scn), scn - 10, Evolution(steps), TABLE)


def apply(
    target: Connection, database: str, events: Sequence[SchemaEvent], **choices: Any
) -> list[int | None]:
    """Apply the events; the code of each one's error."""
    applier = changed(ApplierSettings(database, "127.0.0.1", 1, "SELECT 1"), **choices)
    found = [apply_event(target, applier, one, TABLE) for one in events]
    return [None if error is None else int(error.code) for error in found]


def test_events_record_it_with_the_ledger_and_follow_a_rename(
    target: Connection, postgres_database: str
) -> None:
    make(target)
    target.execute("INSERT INTO shop.t VALUES (5), (15), (25)")
    merged = event(
        Step(DdlKind.REGROUP, partition="P9", sources=("P0", "P1")),
        Step(DdlKind.REGROUP, partition="P0"),
        Step(DdlKind.REGROUP, partition="P1"),
    )
    emptied = event(Step(DdlKind.TRUNCATE_PARTITION, partition="P9"), scn=600)
    wrong = event(Step(DdlKind.TRUNCATE_PARTITION, partition="P1"), scn=700)
    assert apply(target, postgres_database, [merged, emptied, wrong]) == [None, None, 3073]
    assert rows_of(target) == {25}
    renamed = event(Step(DdlKind.RENAME_TABLE, table="SHOP.U"), scn=800)
    target.execute("UPDATE olr_pg.ledger SET stopped = false")
    assert apply(target, postgres_database, [renamed]) == [None]
    assert target.execute("SELECT source_table, name, holds FROM olr_pg.partition").fetchall() == [
        ("SHOP.U", "p9", ["p0", "p1"])
    ]
    assert target.execute("SELECT to_regclass('shop.u_p0') IS NULL").fetchone() == (False,)


def test_a_dropped_partition_whose_rows_are_kept(
    target: Connection, postgres_database: str
) -> None:
    """As configured; its rows are not in the way of those that are emptied later."""
    make(target)
    target.execute("INSERT INTO shop.t VALUES (5), (15)")
    dropped = event(
        Step(DdlKind.DROP_PARTITION, partition="P0"), Step(DdlKind.REGROUP, partition="P0")
    )
    emptied = event(Step(DdlKind.TRUNCATE_PARTITION, partition="P1"), scn=600)
    ddl = {DdlKind.DROP_PARTITION: DdlPolicy.IGNORE}
    assert apply(target, postgres_database, [dropped, emptied], ddl=ddl) == [None, None]
    assert rows_of(target) == {5}
