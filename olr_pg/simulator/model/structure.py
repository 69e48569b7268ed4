"""Indexes, keys and sequences of the simulated tables, for creating target tables.

The indexes have redo. The rows of the shop fulfil its unique key and its foreign keys, but the
model does not check them, and it does not maintain an index for the unique key.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.structure import ForeignKey, Index, Sequence, Structure, UniqueKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from olr_pg.simulator.model.tables import SimTable

CACHE: Final = 20
"""Number of values of a sequence that an instance reserves at a time (CACHE 20, Oracle's default).
"""

_ORDER_PARENTS: Final = (
    ("DISTRICTS", "WAREHOUSE_ID", "WAREHOUSES"),
    ("CUSTOMERS", "WAREHOUSE_ID", "WAREHOUSES"),
    ("STOCK", "WAREHOUSE_ID", "WAREHOUSES"),
    ("ORDERS", "CUSTOMER_ID", "CUSTOMERS"),
    ("NEW_ORDERS", "ORDER_ID", "ORDERS"),
    ("ORDER_LINES", "ORDER_ID", "ORDERS"),
    ("PAYMENTS", "CUSTOMER_ID", "CUSTOMERS"),
)
"""(table, column, table whose primary key the column refers to)."""

_ORDER_SEQUENCES: Final = ("CUSTOMERS", "ORDERS", "PAYMENTS")


def table_structure(tables: Iterable[SimTable]) -> Structure:
    """Return the tables' indexes, without those of their primary keys."""
    return Structure(indexes=tuple(_indexes(tables)))


def _indexes(tables: Iterable[SimTable]) -> Iterable[Index]:
    for table in tables:
        made = Counter[str]()
        for index in table.indexes:
            if index.columns != table.key:
                columns = tuple(table.columns[at].name for at in index.columns)
                made[columns[0]] += 1
                number = made[columns[0]] if made[columns[0]] > 1 else ""
                yield Index(
                    owner=table.owner,
                    table=table.name,
                    name=f"{table.name}_{columns[0]}_IX{number}",
                    columns=columns,
                    unique=index.unique,
                )


def order_structure(tables: Iterable[SimTable], next_keys: Mapping[str, int]) -> Structure:
    """Return the structure of the shop.

    Args:
        next_keys: the next value of the key of each table that has a sequence.
    """
    tables = tuple(tables)
    owner = tables[0].owner
    sequences = tuple(
        Sequence(
            owner=owner,
            name=f"{name}_SEQ",
            # HIGHWATER is the value after all values that the instance has reserved.
            next=(next_keys[name] + CACHE - 2) // CACHE * CACHE + 1,
            cache=CACHE,
        )
        for name in _ORDER_SEQUENCES
    )
    foreign = tuple(
        ForeignKey(
            owner=owner,
            table=child,
            name=f"{child}_{parent}_FK",
            columns=(column,),
            parent_owner=owner,
            parent=parent,
            parent_columns=(column,),
        )
        for child, column, parent in _ORDER_PARENTS
    )
    unique = UniqueKey(
        owner=owner, table="ORDERS", name="ORDERS_CUSTOMER_UK", columns=("CUSTOMER_ID", "ORDER_ID")
    )
    return Structure(
        unique_keys=(unique,),
        indexes=table_structure(tables).indexes,
        foreign_keys=foreign,
        sequences=sequences,
    )
