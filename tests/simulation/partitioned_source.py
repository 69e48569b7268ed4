"""A source with tables partitioned by range, list and hash, and all the DDL that their partitions
can have. Names are few, so that partitions get names that others had before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.cells import Cell, Moment, date, number, text
from olr_pg.simulator.model.column_types import (
    DECLARATIONS,
    date_type,
    number_type,
    random_lob,
    varchar,
)
from olr_pg.simulator.model.tables import SimColumn
from olr_pg.simulator.sessions.placement import TableSpec
from olr_pg.simulator.sessions.workload import ACTIONS, WAITING, DdlUse, LobUse, RandomWorkload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from olr_pg.simulator.model.tables import ColumnType, Logging, SimTable
    from olr_pg.simulator.model.transactions import Transaction
    from olr_pg.simulator.sessions.session import SimSession

DDL_WEIGHT: Final = 14.0
NAMES: Final = tuple(f"P{at}" for at in range(9))
VALUES: Final = 40
"""The partition column has the values from 0 to this one, exclusively."""

LISTED: Final = 14
"""Partitions by list have the values from 0 to this one, exclusively."""

FIRST_OTHER_KEY: Final = 1_000_000
"""The first key of tables that are exchanged with partitions, so that no key is in both."""

_FIRST_DAY: Final = datetime(2024, 1, 1, tzinfo=UTC)


class Kind(StrEnum):
    """The type of a partition column."""

    NUMBER = "number"
    DATE = "date"
    TEXT = "text"

    def cell(self, value: int) -> Cell:
        """A value in Oracle's bytes."""
        if self is Kind.NUMBER:
            return number(Decimal(value))
        if self is Kind.TEXT:
            return text(f"v{value:02}", "utf-8")
        day = _FIRST_DAY + timedelta(days=value)
        return date(Moment(day.year, day.month, day.day))

    def literal(self, value: int | None, *, oracle: bool = True) -> str:
        """A value as SQL."""
        if value is None:
            return "NULL"
        if self is not Kind.DATE:
            return str(value) if self is Kind.NUMBER else f"'v{value:02}'"
        day = f"'{_FIRST_DAY + timedelta(days=value):%Y-%m-%d}'"
        return f"TO_DATE({day}, 'YYYY-MM-DD')" if oracle else day

    @property
    def type(self) -> ColumnType:
        """The column's type, whose values are those of no partition."""
        return {
            Kind.NUMBER: number_type(9, 0),
            Kind.DATE: date_type(),
            Kind.TEXT: varchar(10),
        }[self]


class Method(StrEnum):
    """How a table is partitioned."""

    RANGE = "range"
    LIST = "list"
    HASH = "hash"


Bound = tuple[int | None, ...]
"""By range: where the partition ends; by list: its values; empty for MAXVALUE and DEFAULT."""


@dataclass(frozen=True)
class Done:
    """DDL on partitions that was carried out.

    Attributes:
        kind: the method of `PartitionedWorkload`, without the underscore.
        partitions: the names in the statement.
        names, bounds: those of all partitions before it.
        other: the table of an exchange.
    """

    transaction: Transaction
    kind: str
    table: str
    partitions: tuple[str, ...]
    names: tuple[str, ...]
    bounds: tuple[Bound, ...]
    other: str = ""


@dataclass
class Partitioning:
    """How a table is partitioned now; finds the partition of a value.

    Attributes:
        column: the 0-based partition column.
        bounds: of each partition, in the order of the table's segments.
        names: of the partitions at first.
    """

    method: Method
    kind: Kind
    column: int
    bounds: list[Bound]
    names: tuple[str, ...]
    _values: dict[bytes, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._values = {self.kind.cell(value).raw: value for value in range(VALUES)}

    def __call__(self, cell: Cell | None) -> int:
        """The number of the partition of a value; -1 if there is none."""
        if self.method is Method.HASH:
            return hash_place(sum(cell.raw) if cell else 0, len(self.bounds))
        return self.place(None if cell is None else self._values[cell.raw])

    def place(self, value: int | None) -> int:
        """As `__call__`, for a value that is no cell."""
        for at, bound in enumerate(self.bounds):
            if self.method is Method.LIST and value in bound:
                return at
            if self.method is Method.RANGE and (not bound or _is_below(value, bound[0])):
                return at
        return self.catch_all if self.method is Method.LIST else -1

    @property
    def catch_all(self) -> int:
        """The number of the partition for all other values; -1 if there is none."""
        return self.bounds.index(()) if () in self.bounds else -1

    def draw(self, rng: Random) -> Cell:
        """A value for which there is a partition."""
        while True:
            value = rng.randrange(LISTED + 3 if self.method is Method.LIST else VALUES)
            if self.place(value) >= 0:
                return self.kind.cell(value)

    def begin(self, at: int) -> int:
        """Where a range begins."""
        return 0 if not at else self.bounds[at - 1][0] or 0

    @property
    def unlisted(self) -> list[int]:
        """The values that no partition lists."""
        listed = {value for bound in self.bounds for value in bound}
        return [value for value in range(LISTED) if value not in listed]


def hash_place(value: int, count: int) -> int:
    """The partition of a hash, where partitions split one after the other."""
    whole = 1 << max(count - 1, 0).bit_length()
    place = value % whole
    return place if place < count else place - whole // 2


def _is_below(value: int | None, end: int | None) -> bool:
    return value is not None and end is not None and value < end


class PartitionedWorkload(RandomWorkload):
    """Partitioned tables, tables for exchanges with them, and an ordinary one.

    Attributes:
        partitionings: of the partitioned tables.
        exchanged: the table for exchanges with a partitioned one.
        done: the DDL on partitions, in the order of its commits.
    """

    def __init__(self, rng: Random, logging: Sequence[Logging], owner: str, lobs: LobUse) -> None:
        super().__init__(rng, logging, owner, lobs=lobs, ddl=DdlUse.FOLLOWED)
        self._weights[ACTIONS.index("ddl")] = DDL_WEIGHT
        self.partitionings: dict[str, Partitioning] = {}
        self.exchanged: dict[str, str] = {}
        self.done: list[Done] = []

    def tables(self) -> list[TableSpec]:
        """Draw one to three partitioned tables, each perhaps with a table for exchanges."""
        rng, specs = self._rng, list[TableSpec]()
        for at in range(rng.choice((1, 2, 2, 3))):
            spec = self._partitioned(f"T{at}")
            specs.append(spec)
            has_lobs = any(column.type.lob is not None for column in spec.columns)
            if not has_lobs and rng.random() < 0.6:
                specs.append(self._for_exchange(spec, f"X{at}"))
        if rng.random() < 0.5:
            specs.append(replace(self._table(9), row_dependencies=False))
        return specs

    def _partitioned(self, name: str) -> TableSpec:
        rng = self._rng
        method = rng.choice((Method.RANGE, Method.RANGE, Method.LIST, Method.LIST, Method.HASH))
        kinds = [Kind.NUMBER, Kind.DATE] if method is Method.RANGE else [Kind.NUMBER, Kind.TEXT]
        by_id = method is Method.HASH
        names = tuple(rng.sample(NAMES, rng.randint(2, 4)))
        one = Partitioning(
            method, rng.choice(kinds), 0 if by_id else 1, self._bounds(method, len(names)), names
        )
        self.partitionings[f"{self._owner}.{name}"] = one
        in_key = rng.random() < 0.5
        nullable = not by_id and not in_key and one.catch_all >= 0 and rng.random() < 0.5
        columns = [
            SimColumn("ID", number_type(12, 0), nullable=False),
            SimColumn("K", replace(one.kind.type, make=one.draw), nullable=nullable),
            *(
                SimColumn(f"C{at}", rng.choice(DECLARATIONS)(rng), nullable=rng.random() < 0.8)
                for at in range(rng.choice((1, 3, 6)))
            ),
        ]
        if by_id:
            columns[1] = SimColumn("K", number_type(9, 0))
        if self._lobs is not LobUse.NONE and rng.random() < 0.4:
            columns.append(SimColumn("LOB1", random_lob(rng)))
        key = (0, 1) if in_key and not by_id else (0,)
        return TableSpec(
            *(self._owner, name, tuple(columns), key, rng.choice(self._logging), ((key, True),)),
            partitions=len(names), partition_column=one.column, partition_names=names, bounds=one,
        )  # fmt: skip

    def _bounds(self, method: Method, count: int) -> list[Bound]:
        rng = self._rng
        if method is Method.HASH:
            return [()] * count
        open_end = rng.random() < 0.5
        if method is Method.RANGE:
            ends = sorted(rng.sample(range(3, VALUES - 8), count))
            return [*((end,) for end in ends[: count - open_end]), *[()] * open_end]
        values = rng.sample(range(LISTED), LISTED - 4)
        bounds: list[Bound] = [tuple(sorted(values[at::count])) for at in range(count - open_end)]
        return [*bounds, *[()] * open_end]

    def _for_exchange(self, spec: TableSpec, name: str) -> TableSpec:
        """A table with the columns of a partitioned one, and rows of one of its partitions."""
        self.exchanged[f"{self._owner}.{spec.name}"] = f"{self._owner}.{name}"
        one = self.partitionings[f"{self._owner}.{spec.name}"]
        columns = spec.columns
        if one.method is not Method.HASH:
            cell = one.draw(self._rng)
            fixed = replace(one.kind.type, make=lambda _: cell)
            columns = (columns[0], replace(columns[1], type=fixed), *columns[2:])
        return replace(
            spec, name=name, columns=columns, partitions=1, partition_names=(), bounds=None
        )

    def step(self, session: SimSession, tables: Sequence[SimTable]) -> None:
        """Carry out one random action."""
        for table in tables:
            if table.full_name in self.exchanged.values():
                table.next_key = max(table.next_key, FIRST_OTHER_KEY)
        super().step(session, tables)

    # --- DDL ---

    def _ddl(self, session: SimSession, table: SimTable) -> None:
        rng = self._rng
        known = [one for one in session.container.tables if one.full_name in self.partitionings]
        if rng.random() < 0.8:
            table = rng.choice(known)
        if rng.random() < WAITING:
            self._await(session, table)
        if table.full_name not in self.partitionings or rng.random() < 0.1:
            self._ordinary_ddl(session, table)
        else:
            self._partition_ddl(session, table)
        self._marks.pop(id(session), None)

    def _await(self, session: SimSession, table: SimTable) -> None:
        """Let the transactions end that have changed a table, or the one for exchanges with it."""
        name = self.exchanged.get(table.full_name)
        both = [one for one in session.container.tables if one.full_name in (table.full_name, name)]
        objects = frozenset(obj for one in both for obj in one.objects)
        for other in self._sessions.values():
            locked = other.transaction.objects if other.transaction else set[int]()
            if other.container is session.container and not objects.isdisjoint(locked):
                other.commit()
                self._marks.pop(id(other), None)

    def _ordinary_ddl(self, session: SimSession, table: SimTable) -> None:
        rng = self._rng
        if table.full_name in self.exchanged.values() or rng.random() < 0.4:
            session.ddl.truncate(table)
            return
        filled = rng.random() < 0.5
        name = f"A{len(table.columns)}"
        session.ddl.add_column(table, self._new_column(table, name, filled=filled))

    def _partition_ddl(self, session: SimSession, table: SimTable) -> None:
        rng, one = self._rng, self.partitionings[table.full_name]
        kinds = ["truncate_partition"] * 3 + ["rename_partition", "move", "exchange", "exchange"]
        if one.method is Method.HASH:
            kinds += ["add_hash", "coalesce"]
        else:
            kinds += ["drop_partition"] * 2 + ["split", "merge", "add_partition", "add_partition"]
        if one.method is Method.LIST:
            kinds += ["add_values", "drop_values"]
        kind = rng.choice(kinds)
        at = rng.randrange(len(table.segments))
        before = tuple(segment.name for segment in table.segments), tuple(one.bounds)
        act: Callable[[SimSession, SimTable, int], tuple[str, ...]] = getattr(self, f"_{kind}")
        named = act(session, table, at)
        if not named:
            return
        done = next(t for t in reversed(session.instance.committed) if t.ddl)
        other = self.exchanged[table.full_name] if kind == "exchange" else ""
        self.done.append(Done(done, kind, table.full_name, named, *before, other))

    def _free_name(self, table: SimTable) -> str:
        taken = {segment.name for segment in table.segments}
        return self._rng.choice([name for name in NAMES if name not in taken])

    def _truncate_partition(self, session: SimSession, table: SimTable, at: int) -> tuple[str, ...]:
        return (table.segments[at].name,) * session.ddl.truncate_partition(table, at)

    def _rename_partition(self, session: SimSession, table: SimTable, at: int) -> tuple[str, ...]:
        old, new = table.segments[at].name, self._free_name(table)
        return (old, new) if session.ddl.rename_partition(table, at, new) else ()

    def _move(self, session: SimSession, table: SimTable, at: int) -> tuple[str, ...]:
        return (table.segments[at].name,) * session.ddl.move(table, at)

    def _drop_partition(self, session: SimSession, table: SimTable, at: int) -> tuple[str, ...]:
        one, name = self.partitionings[table.full_name], table.segments[at].name
        kept = [*one.bounds[:at], *one.bounds[at + 1 :]]
        is_needed = at == one.catch_all and table.columns[one.column].nullable
        is_last = not any(bound == () or bound[0] is not None for bound in kept)
        if is_needed or is_last or not session.ddl.drop_partition(table, at):
            return ()
        one.bounds[:] = kept
        table.routes = list(table.segments)
        return (name,)

    def _add_partition(self, session: SimSession, table: SimTable, _: int) -> tuple[str, ...]:
        one, rng = self.partitionings[table.full_name], self._rng
        if one.catch_all >= 0 or len(one.bounds) >= len(NAMES) - 2:
            return ()
        name = self._free_name(table)
        bound: Bound = ()
        if rng.random() < 0.8:
            if one.method is Method.RANGE:
                bound = ((one.bounds[-1][0] or 0) + rng.randint(1, 5),)
            else:
                values = one.unlisted
                bound = tuple(rng.sample(values, min(len(values), rng.randint(1, 2))))
        if one.method is Method.RANGE and bound and (bound[0] or 0) >= VALUES:
            return ()
        if not session.ddl.append_partition(table, name, _values(one, bound)):
            return ()
        one.bounds.append(bound)
        return (name,)

    def _split(self, session: SimSession, table: SimTable, at: int) -> tuple[str, ...]:
        one, rng, old = self.partitionings[table.full_name], self._rng, table.segments[at].name
        pieces = self._pieces(one, at)
        if not pieces or len(one.bounds) >= len(NAMES) - 2:
            return ()
        first, rest = pieces
        new = self._free_name(table)
        names = rng.choice(((old, new), (new, old)))
        words = ", ".join(one.kind.literal(value) for value in first)
        how = "AT" if one.method is Method.RANGE else "VALUES"
        kept, routes = list(one.bounds), list(table.routes)
        one.bounds[at : at + 1] = [first, rest]
        table.routes.insert(at, table.routes[at])
        if not session.ddl.split_partition(table, at, names, f"{how} ({words})"):
            one.bounds[:], table.routes = kept, routes
            return ()
        table.segments[:] = list(dict.fromkeys(table.routes))
        return (old, *names)

    def _pieces(self, one: Partitioning, at: int) -> tuple[Bound, Bound] | None:
        """What becomes of the bounds of a partition that is split; None if it cannot be."""
        rng, bound = self._rng, one.bounds[at]
        if one.method is Method.LIST:
            values = list(bound) or one.unlisted
            if len(values) < 2:
                return None
            first = tuple(rng.sample(values, rng.randint(1, len(values) - 1)))
            return first, tuple(value for value in bound if value not in first)
        begin, end = one.begin(at), (bound[0] or 0) if bound else VALUES
        if end - begin < 2:
            return None
        return (rng.randrange(begin + 1, end),), bound

    def _merge(self, session: SimSession, table: SimTable, at: int) -> tuple[str, ...]:
        one = self.partitionings[table.full_name]
        old = tuple(segment.name for segment in table.segments[at : at + 2])
        if len(old) < 2 or len(table.segments) < 3:
            return ()
        name = self._rng.choice((self._free_name(table), old[1]))
        if not session.ddl.merge_partitions(table, at, name):
            return ()
        both = one.bounds[at : at + 2]
        merged: Bound = both[1]
        if one.method is Method.LIST:
            merged = () if () in both else (*both[0], *both[1])
        one.bounds[at : at + 2] = [merged]
        del table.routes[at]
        table.segments[:] = list(dict.fromkeys(table.routes))
        return (*old, name)

    def _add_values(self, session: SimSession, table: SimTable, at: int) -> tuple[str, ...]:
        one, values = self.partitionings[table.full_name], self._unused(session, table)
        free = [value for value in values if value in one.unlisted]
        if not one.bounds[at] or not free:
            return ()
        value = self._rng.choice(free)
        return self._modify(session, table, at, "ADD", value, (*one.bounds[at], value))

    def _drop_values(self, session: SimSession, table: SimTable, at: int) -> tuple[str, ...]:
        one, values = self.partitionings[table.full_name], self._unused(session, table)
        own = [value for value in one.bounds[at] if value in values]
        if len(one.bounds[at]) < 2 or not own:
            return ()
        value = self._rng.choice(own)
        rest = tuple(other for other in one.bounds[at] if other != value)
        return self._modify(session, table, at, "DROP", value, rest)

    def _modify(
        self, session: SimSession, table: SimTable, at: int, verb: str, value: int | None,
        bound: Bound,
    ) -> tuple[str, ...]:  # fmt: skip
        one = self.partitionings[table.full_name]
        words = f"{verb} VALUES ({one.kind.literal(value)})"
        if not session.ddl.modify_values(table, at, words):
            return ()
        one.bounds[at] = bound
        return (table.segments[at].name,)

    def _unused(self, session: SimSession, table: SimTable) -> list[int]:
        """The values that no row has; none while a transaction is open that may bring one back."""
        one = self.partitionings[table.full_name]
        if session.container.is_locked(table):
            return []
        cells = {cell.raw for row in table.live if (cell := row.cells[one.column])}
        return [value for value in range(LISTED) if one.kind.cell(value).raw not in cells]

    def _add_hash(self, session: SimSession, table: SimTable, _: int) -> tuple[str, ...]:
        one, name = self.partitionings[table.full_name], self._free_name(table)
        if len(one.bounds) >= len(NAMES) - 2:
            return ()
        whole = 1 << len(one.bounds).bit_length()
        old = table.segments[len(one.bounds) - whole // 2]
        one.bounds.append(())
        if not session.ddl.rehash(table, old, name):
            one.bounds.pop()
            return ()
        return (name,)

    def _coalesce(self, session: SimSession, table: SimTable, _: int) -> tuple[str, ...]:
        one, old = self.partitionings[table.full_name], table.segments[-1]
        if len(one.bounds) < 2:
            return ()
        one.bounds.pop()
        if not session.ddl.rehash(table, old):
            one.bounds.append(())
            return ()
        return (old.name,)

    def _exchange(self, session: SimSession, table: SimTable, at: int) -> tuple[str, ...]:
        name = self.exchanged.get(table.full_name)
        other = next((one for one in session.container.tables if one.full_name == name), None)
        if other is None or not _are_alike(table, other):
            return ()
        places = {table.range_of(row.cells) for row in other.live}
        if len(places) > 1 or -1 in places:
            return ()
        at = min(places, default=at)
        part = table.segments[at].name
        return (part,) * session.ddl.exchange_with(table, at, other)


def _values(one: Partitioning, bound: Bound) -> str:
    if one.method is Method.RANGE:
        return f"VALUES LESS THAN ({one.kind.literal(bound[0]) if bound else 'MAXVALUE'})"
    return f"VALUES ({', '.join(map(one.kind.literal, bound)) or 'DEFAULT'})"


def _are_alike(table: SimTable, other: SimTable) -> bool:
    """Whether the columns are the same, apart from the values that are drawn for them."""

    def told(one: SimTable) -> list[tuple[object, ...]]:
        return [
            (column.name, column.nullable, column.default, column.unused, column.type.type_code,
             column.type.length, column.type.precision, column.type.scale)
            for column in one.columns
        ]  # fmt: skip

    return told(table) == told(other)
