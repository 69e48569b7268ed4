"""The shop's schema as its owner would have made it: objects of every kind around the tables.

The tables of the workload `orders` have rows and redo; what is added here has neither: it is what
an assessment finds, and what a schema is converted from. Constraints and defaults that are added to
the tables of the workload are true of its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from olr_pg.dictionary.inventory import (
    Constraint,
    DatabaseLink,
    Grant,
    IndexPart,
    Inventory,
    InventoryColumn,
    InventoryIndex,
    InventoryTable,
    InventoryView,
    Job,
    MaterializedView,
    OtherSchema,
    Partition,
    Partitioning,
    Synonym,
    UserType,
)
from olr_pg.dictionary.inventory_file import inventory_path, write_inventory
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.dictionary.structure import Sequence
from olr_pg.simulator.model.plain_inventory import inventory_of, with_objects
from olr_pg.simulator.model.shop_code import shop_sources, shop_triggers

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot

_SHOP: Final = frozenset({"WAREHOUSES", "CUSTOMERS", "STOCK", "ORDERS", "ORDER_LINES", "PAYMENTS"})
_ROWS: Final = {"WAREHOUSES": 4, "CUSTOMERS": 3_000, "STOCK": 3_000, "ORDERS": 12_000}
_COMMENTS: Final = {
    "CUSTOMERS": "Who buys; one line for each account",
    "ORDERS": "One line for each order, from entry to delivery",
}
_DEFAULTS: Final = {
    ("ORDERS", "STATUS"): "'N'",
    ("ORDERS", "ENTERED"): "SYSTIMESTAMP",
    ("CUSTOMERS", "BALANCE"): "0",
    ("CUSTOMERS", "SINCE"): "SYSDATE",
    ("PAYMENTS", "NOTE"): "SUBSTR(USER, 1, 24)",
}


def shop_inventory(snapshot: Snapshot) -> Inventory:
    """Return what is in the schemas of `snapshot`; of the shop, with all that belongs to it."""
    found = inventory_of(snapshot)
    names = {table.name for table in found.tables}
    if not names >= _SHOP:
        return found
    return with_objects(_Shop(found).inventory())


def write_dictionary(snapshot: Snapshot, directory: Path, *, of_container: bool = False) -> None:
    """Write the snapshot, ``dictionary.json``, and its inventory beside it.

    Args:
        of_container: name it by its container, as of several: ``dictionary.PDB1.json``.

    Raises:
        OlrPgError: 3007, a file cannot be written.
    """
    name = f"dictionary.{snapshot.database.con_name}.json" if of_container else "dictionary.json"
    path = directory / name
    write_snapshot(snapshot, str(path))
    write_inventory(shop_inventory(snapshot), inventory_path(path))


def _column(name: str, data_type: str, **others: Any) -> InventoryColumn:
    lengths = {"NUMBER": 22, "DATE": 7, "CLOB": 4000, "BLOB": 4000, "TIMESTAMP(6)": 11}
    text = "CHAR" in data_type
    length = others.pop("length", lengths.get(data_type, 11))
    return InventoryColumn(
        name=name,
        data_type=data_type,
        length=length,
        char_length=length if text else 0,
        **others,
    )


def _number(name: str, precision: int, scale: int = 0, **others: Any) -> InventoryColumn:
    return _column(name, "NUMBER", precision=precision, scale=scale, **others)


class _Shop:
    def __init__(self, found: Inventory) -> None:
        self._found = found
        self._owner = next(table.owner for table in found.tables if table.name == "ORDERS")

    def inventory(self) -> Inventory:
        found, owner = self._found, self._owner
        added: dict[str, Iterable[Any]] = {
            "constraints": self._constraints(),
            "indexes": self._indexes(),
            "views": self._views(),
            "materialized_views": self._materialized_views(),
            "sequences": [self._identity_sequence()],
            "synonyms": self._synonyms(),
            "triggers": shop_triggers(owner),
            "sources": shop_sources(owner),
            "types": [UserType(owner=owner, name="ADDRESS_T", attributes=3)],
            "jobs": self._jobs(),
            "links": [DatabaseLink(owner=owner, name="ERP.EXAMPLE.COM", user="APP", host="erp")],
            "grants": self._grants(),
        }
        order = {
            "constraints": lambda one: (one.table, one.full_name),
            "sources": lambda one: (one.kind, one.name),
            "synonyms": lambda one: (one.owner, one.name),
            "grants": lambda one: (one.name, one.grantee, one.privilege),
        }
        parts = {
            name: tuple(
                sorted((*getattr(found, name), *more), key=order.get(name, lambda one: one.name))
            )
            for name, more in added.items()
        }
        tables = [*map(self._known_table, found.tables), *self._tables()]
        return found.model_copy(
            update={
                **parts,
                "tables": tuple(sorted(tables, key=lambda table: table.full_name)),
                "others": (OtherSchema(owner="HR", objects=3),),
            }
        )

    def _known_table(self, table: InventoryTable) -> InventoryTable:
        columns = [
            column.model_copy(update={"default": _DEFAULTS.get((table.name, column.name), "")})
            for column in table.columns
        ]
        rows = _ROWS.get(table.name, 100)
        return table.model_copy(
            update={
                "columns": tuple(columns),
                "comment": _COMMENTS.get(table.name, ""),
                "rows": rows,
                "bytes": 65_536 + 128 * rows,
                "logging": ("ALL COLUMN LOGGING",),
            }
        )

    def _table(
        self, name: str, columns: tuple[InventoryColumn, ...], **others: Any
    ) -> InventoryTable:
        others.setdefault("rows", 0)
        return InventoryTable(owner=self._owner, name=name, columns=columns, **others)

    def _tables(self) -> list[InventoryTable]:
        identity: dict[str, Any] = {
            "nullable": False,
            "identity": "BY DEFAULT",
            "identity_sequence": "ISEQ$$_95001",
            "default": f'"{self._owner}"."ISEQ$$_95001".nextval',
        }
        product = (
            _number("PRODUCT_ID", 10, **identity),
            _column("NAME", "VARCHAR2", length=60, nullable=False),
            _number("PRICE", 10, 2, nullable=False, default="0"),
            _number("TAX_RATE", 4, 3, default="0.19"),
            _number("GROSS", 12, 2, default='ROUND("PRICE"*(1+"TAX_RATE"),2)', virtual=True),
            _column("ACTIVE", "CHAR", length=1, nullable=False, default="'Y'"),
            _column("DESCRIPTION", "CLOB"),
            _column("PICTURE", "BLOB", comment="PNG, at most 1 MB"),
            _column("CREATED", "DATE", nullable=False, default="TRUNC(SYSDATE)"),
        )
        audit = (
            _number("AUDIT_ID", 12, nullable=False),
            _column("AT", "DATE", nullable=False),
            _column("WHO", "VARCHAR2", length=30, default="USER"),
            _column("WHAT", "VARCHAR2", length=4000),
        )
        months = tuple(
            Partition(
                name=f"P{month}",
                high_value=f"TO_DATE(' 2026-{month:02}-01 00:00:00', 'SYYYY-MM-DD HH24:MI:SS',"
                " 'NLS_CALENDAR=GREGORIAN')",
            )
            for month in (2, 3)
        )
        regions = (
            Partition(name="NORTH", high_value="'DE', 'DK'"),
            Partition(name="REST", high_value="DEFAULT"),
        )
        return [
            self._table(
                *("PRODUCTS", product),
                comment="What is sold",
                rows=500,
                bytes=1 << 20,
                lob_bytes=8 << 20,
            ),
            self._table(
                *("AUDIT_LOG", audit),
                partitioning=Partitioning(
                    method="RANGE",
                    columns=("AT",),
                    interval="NUMTOYMINTERVAL(1,'MONTH')",
                    partitions=months,
                ),
            ),
            self._table(
                "REGIONS",
                (
                    _column("COUNTRY", "CHAR", length=2, nullable=False),
                    _column("NAME", "VARCHAR2", length=40),
                ),
                partitioning=Partitioning(method="LIST", columns=("COUNTRY",), partitions=regions),
            ),
            self._table(
                "BASKET",
                (_number("ITEM_ID", 6), _number("QUANTITY", 6)),
                kind="temporary table",
                rows=None,
                temporary_duration="SYS$TRANSACTION",
            ),
            self._table(
                "PRICE_LIST",
                (_number("ITEM_ID", 6), _column("LINE", "VARCHAR2", length=200)),
                kind="external table",
                rows=None,
            ),
            self._table(
                "SALES_BY_DAY",
                (_column("DAY", "DATE"), _number("ORDERS", 12), _number("LINES", 12)),
                kind="materialized view",
                rows=30,
            ),
        ]

    def _constraints(self) -> list[Constraint]:
        def of(table: str, name: str, kind: Any, **others: Any) -> Constraint:
            letter = {"primary key": "P", "check": "C"}[kind]
            return Constraint(
                owner=self._owner, name=name, table=table, kind=kind, oracle_kind=letter, **others
            )

        return [
            of(
                *("PRODUCTS", "PRODUCTS_PK", "primary key"),
                columns=("PRODUCT_ID",),
                index="PRODUCTS_PK",
            ),
            of(
                *("PRODUCTS", "PRODUCTS_ACTIVE_CK", "check"),
                columns=("ACTIVE",),
                condition="active IN ('Y', 'N')",
            ),
            of(
                *("PRODUCTS", "SYS_C008001", "check"),
                columns=("NAME",),
                condition='"NAME" IS NOT NULL',
                generated_name=True,
                not_null=True,
            ),
            of(
                *("ORDER_LINES", "ORDER_LINES_LINE_CK", "check"),
                columns=("LINE",),
                condition="line > 0 AND MOD(line, 1) = 0",
            ),
            of(
                *("CUSTOMERS", "CUSTOMERS_NAME_CK", "check"),
                columns=("NAME",),
                condition="LENGTH(name) <= 40 AND NVL(notes, '-') IS NOT NULL",
            ),
        ]

    def _indexes(self) -> list[InventoryIndex]:
        def of(table: str, name: str, *parts: IndexPart, **others: Any) -> InventoryIndex:
            own: dict[str, Any] = {"owner": self._owner, "table_owner": self._owner}
            return InventoryIndex(**own, table=table, name=name, parts=parts, **others)

        key = IndexPart(text="PRODUCT_ID")
        upper = IndexPart(text='UPPER("NAME")', expression=True)
        return [
            of("PRODUCTS", "PRODUCTS_PK", key, unique=True, constraint="PRODUCTS_PK"),
            of(
                *("CUSTOMERS", "CUSTOMERS_UPPER_IX", upper),
                IndexPart(text="CUSTOMER_ID", descending=True),
                kind="FUNCTION-BASED NORMAL",
            ),
            of("ORDERS", "ORDERS_STATUS_BX", IndexPart(text="STATUS"), kind="BITMAP"),
            of("PRODUCTS", "PRODUCTS_TEXT_IX", IndexPart(text="DESCRIPTION"), kind="DOMAIN"),
        ]

    def _views(self) -> list[InventoryView]:
        def of(name: str, text: str, *columns: InventoryColumn, **others: Any) -> InventoryView:
            return InventoryView(owner=self._owner, name=name, text=text, columns=columns, **others)

        names = [_number("CUSTOMER_ID", 12), _column("NAME", "VARCHAR2", length=40)]
        return [
            of(
                "CUSTOMER_BALANCES",
                "SELECT c.customer_id, c.name, NVL(c.balance, 0) AS balance,"
                " DECODE(SIGN(c.balance), -1, 'owes', 0, 'even', 'has') AS state\n"
                "FROM customers c\nWHERE c.payments > 0",
                *(*names, _number("BALANCE", 12, 2), _column("STATE", "VARCHAR2", length=4)),
                comment="What each customer owes",
            ),
            of(
                "ORDER_TOTALS",
                "SELECT o.order_id, o.customer_id, SUM(l.amount) AS total\n"
                "FROM orders o, order_lines l\nWHERE o.order_id = l.order_id (+)\n"
                "GROUP BY o.order_id, o.customer_id",
                *(_number("ORDER_ID", 12), _number("CUSTOMER_ID", 12), _column("TOTAL", "NUMBER")),
            ),
            of(
                "ORDER_TREE",
                "SELECT LEVEL AS depth, order_id FROM orders\n"
                "CONNECT BY PRIOR order_id = customer_id",
                *(_column("DEPTH", "NUMBER"), _number("ORDER_ID", 12)),
            ),
        ]

    def _materialized_views(self) -> list[MaterializedView]:
        return [
            MaterializedView(
                owner=self._owner,
                name="SALES_BY_DAY",
                query="SELECT TRUNC(entered) AS day, COUNT(*) AS orders, SUM(lines) AS lines"
                " FROM orders GROUP BY TRUNC(entered)",
                refresh_mode="DEMAND",
                refresh_method="COMPLETE",
                build_mode="IMMEDIATE",
            )
        ]

    def _identity_sequence(self) -> Sequence:
        return Sequence(owner=self._owner, name="ISEQ$$_95001", next=501)

    def _synonyms(self) -> list[Synonym]:
        owner = self._owner
        return [
            Synonym(owner=owner, name="CLIENTS", target_owner=owner, target="CUSTOMERS"),
            Synonym(owner=owner, name="ERP_ITEMS", target="ITEMS", link="ERP.EXAMPLE.COM"),
            Synonym(owner="PUBLIC", name="SHOP_ORDERS", target_owner=owner, target="ORDERS"),
        ]

    def _jobs(self) -> list[Job]:
        return [
            Job(
                owner=self._owner,
                name="CLOSE_DAY",
                kind="STORED_PROCEDURE",
                action="ORDER_API.CLOSE_DAY",
                schedule="FREQ=DAILY; BYHOUR=2",
            )
        ]

    def _grants(self) -> list[Grant]:
        def of(name: str, grantee: str, privilege: str, kind: str = "TABLE") -> Grant:
            return Grant(
                owner=self._owner, name=name, grantee=grantee, privilege=privilege, kind=kind
            )

        return [
            of("CUSTOMERS", "REPORTING", "SELECT"),
            of("ORDERS", "REPORTING", "SELECT"),
            of("ORDERS", "APP", "INSERT"),
            of("ORDER_API", "APP", "EXECUTE", "PACKAGE"),
        ]
