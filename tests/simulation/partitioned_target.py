"""Target tables that are partitioned as the source's tables are, or in another way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from psycopg import sql

from tests.simulation.partitioned_source import LISTED, VALUES, Method

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    import psycopg

    from tests.simulation.partitioned_source import Bound, Partitioning

    Connection = psycopg.Connection[tuple[Any, ...]]

REST: Final = "rest"
"""The name of a default partition of the target alone."""

LAYOUTS: Final = ("same", "same", "nested", "fewer", "other", "coarser", "finer", "hash", "none")
EXACT: Final = ("same", "nested")
"""Layouts in which each partition of the source has one with exactly its rows."""

_LEDGER: Final = "SELECT to_regclass('olr_pg.ledger') IS NOT NULL"
_ACCEPT: Final = "UPDATE olr_pg.ledger SET target_oid = NULL WHERE target_table = %s"
_LACKS_REST: Final = """
SELECT FROM pg_partitioned_table
WHERE partrelid = %s::regclass AND partstrat <> 'h' AND partdefid = 0
"""


@dataclass(frozen=True)
class Layout:
    """How a target table is partitioned.

    Attributes:
        name: of `LAYOUTS`.
        by: behind PARTITION BY; empty if the table is not partitioned.
        parts: the name of each partition, without the table's, and its bounds.
        below: how each partition is partitioned itself; empty if it is not.
    """

    name: str
    by: str = ""
    parts: tuple[tuple[str, str], ...] = ()
    below: str = ""


def draw_layout(rng: Random, one: Partitioning) -> Layout:
    """Draw a layout for a table of the source, as it is at first."""
    layout = _draw_layout(rng, one)
    is_range = one.method is Method.RANGE and layout.name in ("fewer", "other")
    if is_range and len(layout.parts) > 1 and rng.random() < 0.5:
        # No partition for the highest values, so that ADD PARTITION adds one.
        ends = ("DEFAULT", "TO (MAXVALUE)")
        parts = tuple(part for part in layout.parts if not part[1].endswith(ends))
        return replace(layout, parts=parts)
    return layout


def _draw_layout(rng: Random, one: Partitioning) -> Layout:
    name = rng.choice(LAYOUTS)
    if one.method is Method.HASH and name not in ("same", "other", "none"):
        name = "same"
    if name == "none":
        return Layout(name)
    if one.method is Method.HASH or name == "hash":
        count = len(one.names) + (name == "other")
        return Layout(name, "HASH (id)", tuple(hash_parts([*one.names, "more"][:count])))
    exact = exact_layout(one, one.names, one.bounds, rng)
    if name in EXACT:
        below = "HASH (id)" if name == "nested" else ""
        layout = replace(exact, name=name, below=below)
        return _with_rest(layout) if rng.random() < 0.5 else layout
    if name == "other":
        return _other(rng, one, exact)
    parts = list(exact.parts)
    at = rng.randrange(len(parts))
    if name == "fewer":
        del parts[at]
        return _with_rest(replace(exact, name=name, parts=tuple(parts)))
    if name == "coarser":
        return _coarser(rng, one, exact)
    return _finer(one, exact, at)


def exact_layout(
    one: Partitioning, names: Sequence[str], bounds: Sequence[Bound], rng: Random
) -> Layout:
    """The layout of the source, with these names and bounds."""
    parts = list[tuple[str, str]]()
    for at, (name, bound) in enumerate(zip(names, bounds, strict=True)):
        if one.method is Method.LIST:
            parts.append((name, _listed(one, bound)))
        elif not bound and rng.random() < 0.5:
            parts.append((name, "DEFAULT"))
        else:
            parts.append((name, _ranged(one, bounds[at - 1] if at else (), bound)))
    return Layout("same", f"{one.method.upper()} (k)", tuple(parts))


def hash_parts(names: Sequence[str]) -> list[tuple[str, str]]:
    """Partitions by PostgreSQL's hash."""
    return [
        (name, f"FOR VALUES WITH (MODULUS {len(names)}, REMAINDER {at})")
        for at, name in enumerate(names)
    ]


def _listed(one: Partitioning, bound: Bound) -> str:
    if not bound:
        return "DEFAULT"
    values = ", ".join(one.kind.literal(value, oracle=False) for value in bound)
    return f"FOR VALUES IN ({values})"


def _ranged(one: Partitioning, begin: Bound, end: Bound) -> str:
    low = one.kind.literal(begin[0], oracle=False) if begin else "MINVALUE"
    high = one.kind.literal(end[0], oracle=False) if end else "MAXVALUE"
    return f"FOR VALUES FROM ({low}) TO ({high})"


def _with_rest(layout: Layout) -> Layout:
    bounds = [bound for _, bound in layout.parts]
    if "DEFAULT" in bounds:
        return layout
    return replace(layout, parts=(*layout.parts, (REST, "DEFAULT")))


def _other(rng: Random, one: Partitioning, exact: Layout) -> Layout:
    """Partitions of other names and bounds, which have a place for most rows."""
    parts: list[tuple[str, str]]
    if one.method is Method.RANGE:
        ends: list[Bound] = [(end,) for end in sorted(rng.sample(range(2, VALUES), 2))]
        ranges = zip([(), *ends], [*ends, ()], strict=True)
        parts = [(f"q{at}", _ranged(one, *pair)) for at, pair in enumerate(ranges)]
    else:
        values = rng.sample(range(LISTED), 6)
        parts = [("q0", _listed(one, tuple(values[:3]))), ("q1", _listed(one, tuple(values[3:])))]
    layout = replace(exact, name="other", parts=tuple(parts))
    return _with_rest(layout) if one.method is Method.LIST or rng.random() < 0.5 else layout


def _coarser(rng: Random, one: Partitioning, exact: Layout) -> Layout:
    """One partition for two neighbours, whose name is that of neither."""
    at = rng.randrange(len(one.names) - 1)
    first, second = one.bounds[at : at + 2]
    if one.method is Method.RANGE:
        bound = _ranged(one, one.bounds[at - 1] if at else (), second)
    else:
        bound = _listed(one, () if () in (first, second) else (*first, *second))
    parts = (*exact.parts[:at], ("both", bound), *exact.parts[at + 2 :])
    return replace(exact, name="coarser", parts=parts)


def _finer(one: Partitioning, exact: Layout, at: int) -> Layout:
    """Two partitions for one, whose names are not its own."""
    bound = one.bounds[at]
    pieces: list[str]
    if one.method is Method.RANGE:
        begin = one.begin(at)
        end = (bound[0] or 0) if bound else VALUES
        if end - begin < 2:
            return replace(exact, name="same")
        middle: Bound = ((begin + end) // 2,)
        pieces = [_ranged(one, one.bounds[at - 1] if at else (), middle),
                  _ranged(one, middle, bound)]  # fmt: skip
        if exact.parts[at][1] == "DEFAULT":
            pieces[1] = "DEFAULT"
    else:
        values = list(bound) or one.unlisted
        if len(values) < 2:
            return replace(exact, name="same")
        pieces = [_listed(one, tuple(values[:1])), _listed(one, tuple(values[1:]) if bound else ())]
    split = [(f"{one.names[at]}a", pieces[0]), (f"{one.names[at]}b", pieces[1])]
    return replace(exact, name="finer", parts=(*exact.parts[:at], *split, *exact.parts[at + 1 :]))


class TargetTable:
    """A target table, which is made anew with other partitions."""

    def __init__(self, connection: Connection, schema: str, name: str) -> None:
        self._connection, self._schema, self._name = connection, schema, name

    def _run(self, words: str, *names: str, **literal: str) -> None:
        parts = {key: sql.SQL(value) for key, value in literal.items()}
        tables = [sql.Identifier(self._schema, one) for one in names]
        self._connection.execute(sql.SQL(words).format(*tables, **parts))

    def partition(self, layout: Layout, key: Sequence[str]) -> None:
        """Make the table anew with these partitions and the rows that it has; keep its columns.

        These are the steps of target-tables.md.
        """
        below = f"{self._name}_below"
        with self._connection.transaction():
            if self._connection.execute(_LEDGER).fetchone() == (True,):
                self._connection.execute(_ACCEPT, (f"{self._schema}.{self._name}",))
            self._run("CREATE TABLE {0} (LIKE {1})", below, self._name)
            self._run("INSERT INTO {0} SELECT * FROM {1}", below, self._name)
            self._run("DROP TABLE {0}", self._name)
            words = "CREATE TABLE {0} (LIKE {1}) PARTITION BY {by}"
            self._run(words, self._name, below, by=layout.by)
            partitioned_by = layout.by.rpartition("(")[2].rstrip(")")
            columns = ", ".join(dict.fromkeys([*key, partitioned_by]))
            if partitioned_by in key or self._is_set(partitioned_by):
                words = "ALTER TABLE {0} ADD PRIMARY KEY ({columns})"
                self._run(words, self._name, columns=columns)
            for name, bound in layout.parts:
                self._add(f"{self._name}_{name.lower()}", bound, layout.below)
            self._run("INSERT INTO {0} SELECT * FROM {1}", self._name, below)
            self._run("DROP TABLE {0}", below)

    def _is_set(self, column: str) -> bool:
        query = "SELECT attnotnull FROM pg_attribute WHERE attrelid = %s::regclass AND attname = %s"
        found = self._connection.execute(query, (self._identifier, column)).fetchone()
        return found == (True,)

    @property
    def _identifier(self) -> str:
        return sql.Identifier(self._schema, self._name).as_string(self._connection)

    def _add(self, name: str, bound: str, below: str) -> None:
        words = "CREATE TABLE {0} PARTITION OF {1} {bound}"
        if not below:
            self._run(words, name, self._name, bound=bound)
            return
        self._run(f"{words} PARTITION BY {below}", name, self._name, bound=bound)
        for inner, inner_bound in hash_parts(["x", "y"]):
            self._run(words, f"{name}_{inner}", name, bound=inner_bound)

    def add_rest(self) -> bool:
        """Add a default partition if there may be rows for which there is none; whether it was
        added.
        """
        lacks = self._connection.execute(_LACKS_REST, (self._identifier,)).fetchone() is not None
        if lacks:
            self._add(f"{self._name}_{REST}", "DEFAULT", "")
        return lacks
