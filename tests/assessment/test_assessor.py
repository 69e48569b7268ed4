"""The assessment tells of everything that is there, and what it costs.

Constructs that PostgreSQL lacks are found in code, and only there.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from olr_pg.assessment.assessor import (
    assess,
    code_item,
    code_lines,
    find_constructs,
    package_state,
    text_columns,
)
from olr_pg.assessment.forms import csv_lines, html_pieces, report_json, report_lines, whole_report
from olr_pg.assessment.report import (
    Carrier,
    Effort,
    Item,
    MeasuredRates,
    RedoRates,
    Report,
    TextColumns,
)
from olr_pg.cli.migration.assess import _write as write_report
from olr_pg.datatypes.choices import Choices
from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.inventory import (
    IndexPart,
    Inventory,
    InventoryIndex,
    InventoryView,
    LogDay,
    SchemaObject,
)
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.model import Column, Table
from olr_pg.errors import OlrPgError
from olr_pg.schema.conversion import convert
from olr_pg.schema.relations import Relations
from olr_pg.simulator.model.shop_inventory import shop_inventory
from olr_pg.simulator.simulation import simulate
from tests.schema.shop_relations import SETTINGS

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.dictionary.model import Snapshot


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("shop")
    simulate(3, folder, workload="orders", size=1, truth=False)
    return load_snapshot(str(folder / "dictionary.json"))


def _report(
    inventory: Inventory, snapshot: Snapshot, settings: ApplierSettings = SETTINGS
) -> Report:
    replicated = frozenset(table.full_name for table in snapshot.tables)
    relations = Relations(inventory, settings)
    statements = convert(inventory, settings)
    return assess(inventory, snapshot, replicated, relations, statements, MeasuredRates(1e8, 4))


@pytest.fixture(scope="module")
def report(snapshot: Snapshot) -> Report:
    return _report(shop_inventory(snapshot), snapshot)


def test_nothing_that_is_there_is_left_unmentioned(snapshot: Snapshot, report: Report) -> None:
    inventory = shop_inventory(snapshot)
    told = Counter(item.kind for item in report.items if item.is_object)
    assert told == Counter(one.kind for one in inventory.objects)
    constraints = [item for item in report.items if item.kind.startswith("CONSTRAINT")]
    assert len(constraints) == len(inventory.constraints)
    assert sum(item.kind == "GRANT" for item in report.items) == len(inventory.grants)
    public = [one for one in inventory.synonyms if one.owner == "PUBLIC"]
    assert sum(not i.is_object and i.kind == "SYNONYM" for i in report.items) == len(public)
    for form in (
        "".join(html_pieces(report)).replace("<wbr>", ""),
        "\n".join(map(str, report_json(report)["items"])),
        "\n".join(whole_report(report)),
    ):
        assert all(item.name in form for item in report.items)


def test_a_kind_that_nobody_knows_is_named(snapshot: Snapshot) -> None:
    inventory = shop_inventory(snapshot)
    odd = SchemaObject(owner="SHOP", name="CUBE1", kind="CUBE", status="INVALID")
    found = _report(inventory.model_copy(update={"objects": (*inventory.objects, odd)}), snapshot)
    (item,) = [one for one in found.items if one.kind == "CUBE"]
    assert item.carrier is Carrier.BY_HAND
    assert item.status == "INVALID"


def test_effort_has_its_reasons(report: Report) -> None:
    by_name = {(item.kind, item.name): item for item in report.items}
    body = by_name["PACKAGE BODY", "SHOP.ORDER_API"]
    assert body.effort is Effort.HIGH
    assert any("autonomous transaction" in reason for reason in body.reasons)
    orders = by_name["TABLE", "SHOP.ORDERS"]
    assert (orders.carrier, orders.minutes) == (Carrier.REPLICATED, 0)
    assert by_name["TABLE", "SHOP.PRODUCTS"].carrier is Carrier.CONVERTED
    assert all(item.reasons for item in report.items if item.minutes)
    assert all(item.minutes for item in report.items if item.carrier is Carrier.BY_HAND)
    assert report.minutes == sum(item.minutes for item in report.items)


def test_a_table_tells_its_columns_and_what_they_lose(report: Report) -> None:
    (orders,) = [table for table in report.tables if table.name == "SHOP.ORDERS"]
    assert (orders.replicated, orders.key) == ("yes", "primary key: ORDER_ID")
    assert orders.logging == "all column"
    (shipped,) = [column for column in orders.columns if column.name == "SHIPPED"]
    assert shipped.oracle_type == "TIMESTAMP(3) WITH TIME ZONE"
    assert shipped.target_type == "timestamptz(3)"
    assert "zone" in shipped.lost
    text = "\n".join(report_lines(report))
    assert "SHOP.ORDERS.SHIPPED" in text
    assert "not assessed: schema HR" in text


def test_flags_that_nobody_says_are_flags_are_named(snapshot: Snapshot) -> None:
    inventory = shop_inventory(snapshot)
    active = next(one for one in inventory.constraints if "active IN" in one.condition)
    odd = replace(active, condition="active IN ('Y', 'N', 'Q')")
    settings = replace(SETTINGS, choices=Choices(flags=("CHAR(1)",)))
    lost = []
    for checks in ((active,), (odd,), ()):
        found = inventory.model_copy(update={"constraints": checks})
        report = _report(found, snapshot, settings)
        (table,) = [one for one in report.tables if one.name == f"SHOP.{active.table}"]
        (column,) = [one for one in table.columns if one.name == "ACTIVE"]
        assert column.target_type == "boolean"
        lost.append(column.lost)
    assert lost[0].endswith("1/0")
    assert (
        "its check allows Q: a value that means neither true nor false stops the table" in lost[1]
    )
    assert f'"SHOP.{active.table}.ACTIVE": {{"type": "char(1)"}}' in lost[1]
    assert "no check restricts its values" in lost[2]


def test_the_times_are_told_with_their_basis(report: Report) -> None:
    table = next(one for one in report.tables if one.replicated == "yes")
    found = report._replace(
        tables=[table._replace(bytes=3_600_000_000, lob_bytes=0)],
        redo=[
            LogDay(day="2026-03-06", logs=1, bytes=1),
            LogDay(day="2026-03-07", logs=9, bytes=86_400 * 1_000_000),
        ],
        rates=MeasuredRates(copy_bytes=1e6, connections=4, updates=10_000),
        redo_rates=RedoRates(bytes_per_second=4e6, bytes_per_change=250, cores=2),
    )
    # 900 s of load; meanwhile 1 MB/s comes, of the 8 MB/s that are decoded and 10 MB/s applied.
    assert found.load_seconds == 900
    assert found.catch_up == (1e6, 8e6, 10e6, 900 / 7)
    text = "\n".join(report_lines(found))
    assert "Load: about 15 min for 3.6 GB" in text
    assert "Catching up: about 2 min after the load" in text
    assert "10,000 rows per second" in "".join(html_pieces(found))
    slow = found._replace(rates=MeasuredRates(copy_bytes=1e6, connections=1, updates=100))
    assert slow.catch_up is not None
    assert slow.catch_up.seconds is None
    assert "never, because the source writes redo faster" in "\n".join(report_lines(slow))


def test_the_report_as_csv_has_every_thing(report: Report) -> None:
    rows = list(csv.DictReader("\r\n".join(csv_lines(report)).splitlines()))
    assert [(row["kind"], row["name"]) for row in rows] == [(i.kind, i.name) for i in report.items]
    assert sum(int(row["minutes"]) for row in rows) == report.minutes


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff20"])
def test_no_cell_of_the_csv_is_a_formula(report: Report, first: str) -> None:
    text = first + 'HYPERLINK("http://x.example/","y")'
    found = report._replace(items=(_by_hand(text, text), _by_hand("A=B", "C-D", text)))
    rows = list(csv.DictReader(io.StringIO("\r\n".join(csv_lines(found)), newline="")))
    assert [(row["kind"], row["name"], row["reasons"]) for row in rows] == [
        ("VIEW", "'" + text, "'" + text),
        ("'" + text, "A=B", "C-D"),
    ]


def _by_hand(name: str, reason: str, kind: str = "VIEW", minutes: int = 60) -> Item:
    effort = Effort.MEDIUM if minutes else Effort.NONE
    carrier = Carrier.BY_HAND if minutes else Carrier.CONVERTED
    return Item(kind, name, carrier, effort, minutes, (reason,))


def test_a_reason_counts_what_needs_the_thing_that_it_stops(report: Report) -> None:
    items = [
        _by_hand("S.A", "no way"),
        _by_hand("S.B", "the object needs S.A, which is not created"),
        _by_hand("S.C", "the object needs S.A, which is not created"),
        *(_by_hand(f"S.D{n}", "other") for n in range(2)),
    ]
    assert report._replace(items=items).causes == [(3, "no way"), (2, "other")]


@pytest.mark.parametrize(
    ("items", "level"),
    [
        ((("TABLE", 0),), "A1"),
        ((("TRIGGER", 0), ("VIEW", 0)), "A2"),
        ((("TRIGGER", 0), ("FUNCTION", 0)), "A3"),
        ((("VIEW", 60), ("FUNCTION", 0)), "B4"),
        ((("PACKAGE BODY", 60),), "B5"),
        ((("PACKAGE BODY", 6 * 480),), "C5"),
        ((("TRIGGER", 6 * 480),), "C4"),
    ],
)
def test_the_level_is_that_of_ora2pg(
    report: Report, items: tuple[tuple[str, int], ...], level: str
) -> None:
    found = report._replace(items=[_by_hand("S.A", "why", *one) for one in items])
    assert found.level == level
    assert found.cost_units == -(-found.minutes // 5)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.outside += [
            value or ""
            for name, value in attrs
            if name in ("src", "href") and value[:1] != "#"  # type: ignore[index]
        ]
        if tag not in ("meta", "br", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_asks_nothing_of_a_network(report: Report) -> None:
    page = "".join(html_pieces(report))
    parser = _Tags()
    parser.feed(page)
    assert parser.open == []
    assert parser.outside == []
    assert "<script" not in page
    assert "url(" not in page


def test_names_are_escaped(snapshot: Snapshot) -> None:
    inventory = shop_inventory(snapshot)
    odd = SchemaObject(owner="SHOP", name="<b>&", kind="CUBE")
    odd_report = _report(inventory.model_copy(update={"objects": (odd,)}), snapshot)
    page = "".join(html_pieces(odd_report))
    assert "&lt;b&gt;&amp;" in page
    assert "<b>&" not in page


def test_a_report_is_written_over_no_link_to_something_else(report: Report, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("theirs")
    (tmp_path / "report.json").symlink_to(tmp_path / "other")
    with pytest.raises(OlrPgError) as caught:
        write_report(report, tmp_path)
    assert "the path is a symbolic link" in caught.value.detail
    assert (tmp_path / "other").read_text() == "theirs"
    (tmp_path / "report.json").unlink()
    write_report(report, tmp_path)
    assert {"report.html", "report.json", "report.csv", "report.txt"} < {
        one.name for one in tmp_path.iterdir()
    }


def test_reasons_changes_and_what_nobody_looked_at_are_listed(snapshot: Snapshot) -> None:
    shop = shop_inventory(snapshot)
    views = tuple(
        InventoryView(owner="SHOP", name=f"TREE{n}", text="SELECT ROWID FROM orders")
        for n in range(3)
    )
    shown = InventoryView(owner="SHOP", name="RO", text="SELECT 1 AS n FROM dual", read_only=True)
    objects = tuple(
        SchemaObject(owner="SHOP", name=one.name, kind="VIEW") for one in (*views, shown)
    )
    found = shop.model_copy(
        update={
            "views": (*shop.views, *views, shown),
            "objects": (*shop.objects, *objects),
        }
    )
    report = _report(found, snapshot)
    counts = {reason: count for count, reason in report.causes}
    assert counts["ROWID: rows in PostgreSQL have no permanent address; use the key"] >= 3
    assert "SHOP.RO" in [item.name for item in report.altered]
    lines = "\n".join(report_lines(report))
    page = "".join(html_pieces(report))
    for told in ("ROWID: rows in PostgreSQL", "WITH READ ONLY", "Virtual Private Database"):
        assert told in lines
        assert told in page
    assert {one["view"] for one in report_json(report)["not_looked_at"]} >= {"DBA_POLICIES"}


def test_what_objects_have_beside_is_named(snapshot: Snapshot) -> None:
    inventory = shop_inventory(snapshot).model_copy(update={"looked_at": ("DBA_POLICIES",)})
    report = _report(inventory, snapshot)
    told = {item.kind: item for item in report.items if item.name.startswith("SHOP.ORDERS: ")}
    assert told["VPD POLICY"].name == "SHOP.ORDERS: OWN_ORDERS SHOP SEEN_ORDERS"
    assert "CREATE POLICY" in told["VPD POLICY"].reasons[0]
    not_looked_at = {view for _, view in report.not_looked_at}
    assert "DBA_POLICIES" not in not_looked_at
    assert {"REDACTION_POLICIES", "DBA_COL_PRIVS"} <= not_looked_at


def test_text_has_a_remark_only_if_its_set_can_be_configured() -> None:
    texts = (
        Column("A", 1, 1, 1, 1, 40, charset_id=31, charset_form=1),
        Column("B", 2, 2, 2, 112, 4000, charset_id=31, charset_form=1),
        Column("C", 3, 3, 3, 1, 40, charset_id=2000, charset_form=2),
        Column("D", 4, 4, 4, 2, 22),
    )
    tables = [Table("APP", "T", 7, 7, texts)]
    assert text_columns("AL32UTF8", tables) is None
    assert text_columns("ZHS16GBK", tables) is None
    assert text_columns("TR7DEC", tables) is None  # unsupported
    found = text_columns("WE8ISO8859P1", tables)
    assert found == TextColumns("WE8ISO8859P1", 2, 0)
    assert "become other characters or U+FFFD" in found.remark
    assert TextColumns("US7ASCII", 0, 2).remark == ""


def _found(text: str) -> dict[str, int]:
    return {one.word: one.places for one in find_constructs(text)}


def test_comments_and_literals_are_no_code() -> None:
    text = """-- BULK COLLECT
    /* FORALL */ x := 'EXECUTE IMMEDIATE'; y := q'[GOTO]';
    SELECT a BULK COLLECT INTO b FROM t@far WHERE ROWNUM < 5;"""
    assert _found(text) == {"BULK COLLECT": 1, "@": 1, "ROWNUM": 1}


def test_attributes_and_pairs() -> None:
    found = _found(
        "n t.c%TYPE; IF SQL%ROWCOUNT > 0 OR c%NOTFOUND THEN EXECUTE IMMEDIATE s; END IF;"
    )
    assert found == {"%TYPE": 1, "%ROWCOUNT": 1, "%NOTFOUND": 1, "EXECUTE IMMEDIATE": 1}


def test_variables_of_a_package() -> None:
    with_state = "PACKAGE BODY p AS g NUMBER; PROCEDURE x IS BEGIN NULL; END; END;"
    without = "PACKAGE BODY p AS PROCEDURE x IS y NUMBER; BEGIN NULL; END; END;"
    found = package_state(with_state)
    assert found is not None
    assert found.places == 1
    assert package_state(without) is None
    assert package_state("PROCEDURE x IS BEGIN NULL; END;") is None


def test_text_that_cannot_be_read_is_looked_through_all_the_same() -> None:
    assert _found("x := 'open; GOTO there; MERGE INTO t") in ({"GOTO": 1, "MERGE": 1}, {})


def test_lines_of_code() -> None:
    assert code_lines("a;\n\n-- no\n/* no\nno */\nb;\n") == 2


def test_effort() -> None:
    short = code_item("FUNCTION", "S.F", "FUNCTION f RETURN NUMBER IS\nBEGIN\nRETURN 1;\nEND;")
    assert (short.effort, short.lines, short.minutes) == (Effort.LOW, 4, 5)
    hard = code_item("PROCEDURE", "S.P", "PROCEDURE p IS\nBEGIN\nUTL_HTTP.x; DBMS_AQ.y;\nEND;")
    assert hard.effort is Effort.HIGH
    assert any("UTL_HTTP" in reason for reason in hard.reasons)
    long = code_item("PROCEDURE", "S.L", "PROCEDURE l IS\n" + "x := 1;\n" * 60)
    assert (long.effort, long.minutes) == (Effort.MEDIUM, 61)


def test_tables_that_can_exceed_what_postgresql_stores_are_named(
    snapshot: Snapshot, report: Report
) -> None:
    """The key of a table is made of its texts, and one index more is on them."""
    assert {limit for table in report.tables for limit in table.limits} == set()
    inventory = shop_inventory(snapshot)
    (customers,) = (one for one in snapshot.tables if one.name == "CUSTOMERS")
    long = replace(
        customers,
        columns=tuple(
            replace(one, length=4_000) if one.type_code == OracleType.VARCHAR2 else one
            for one in customers.columns
        ),
    )
    texts = [one.name for one in customers.columns if one.type_code == OracleType.VARCHAR2]
    index = InventoryIndex(
        owner=long.owner, name="BY_TEXT", table_owner=long.owner, table=long.name,
        parts=tuple(IndexPart(text=name) for name in texts),
    )  # fmt: skip
    wider = replace(
        snapshot, tables=tuple(long if one is customers else one for one in snapshot.tables)
    )
    changed = _report(inventory.model_copy(update={"indexes": (*inventory.indexes, index)}), wider)
    (named,) = (table for table in changed.tables if table.limits)
    assert named.name == long.full_name
    (limit,) = named.limits
    assert "the index BY_TEXT can need more than the 2,704 bytes" in limit
    assert any(limit in line for line in whole_report(changed))
    assert limit in "".join(html_pieces(changed))
    assert [list(one["limits"]) for one in report_json(changed)["tables"] if one["limits"]] == [
        [limit]
    ]
