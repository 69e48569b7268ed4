from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from olr_pg.dictionary import snapshot_file
from olr_pg.dictionary.inventory import Inventory, InventoryTable
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.dictionary.snapshot_file import (
    check_unique_tables,
    column_fault,
    dump_snapshot,
    inventory_path,
    json_path,
    parse_object,
    parse_snapshot,
    read_bytes,
    read_inventory_file,
    sort_columns,
    store_snapshot,
    validate,
    write_inventory,
    write_snapshot,
)
from olr_pg.errors import Code, OlrPgError
from olr_pg.scalars import MAX_SCN
from tests.files.durable_writes import recorded

# --- round trip ---

names = st.text(
    st.characters(codec="utf-8", exclude_characters='"\0'),
    min_size=1,
    max_size=60,
)
u16 = st.integers(0, 0xFFFF)
u32 = st.integers(0, 0xFFFFFFFF)
int32 = st.integers(-(1 << 31), (1 << 31) - 1)


@st.composite
def column_sets(draw: st.DrawFn) -> tuple[Column, ...]:
    column_names = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    virtual = draw(st.lists(st.booleans(), min_size=len(column_names), max_size=len(column_names)))
    intcols = draw(st.permutations(range(1, len(column_names) + 1)))
    segcols = iter(range(1, len(column_names) + 1))
    return sort_columns(
        Column(
            name=name,
            segcol=0 if is_virtual else next(segcols),
            intcol=intcol,
            col=draw(u16),
            type_code=draw(u16),
            length=draw(u32),
            precision=draw(st.none() | int32),
            scale=draw(st.none() | int32),
            charset_id=draw(st.none() | u16),
            charset_form=draw(st.none() | st.integers(1, 4)),
            nullable=draw(st.booleans()),
            hidden=draw(st.booleans()),
            virtual=is_virtual,
            stored_as_lob=draw(st.booleans()),
            encrypted=draw(st.booleans()),
        )
        for name, is_virtual, intcol in zip(column_names, virtual, intcols, strict=True)
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    pairs = draw(st.lists(st.tuples(names, names), max_size=4, unique=True))
    objects = iter(draw(st.permutations(range(1, 3 * len(pairs) + 1))))
    tables = []
    for owner, name in pairs:
        columns = draw(column_sets())
        kind = draw(st.sampled_from(KeyKind))
        intcols = st.sampled_from([column.intcol for column in columns])
        key = draw(st.lists(intcols, min_size=1, unique=True)) if kind is not KeyKind.NONE else []
        tables.append(
            Table(
                owner=owner,
                name=name,
                obj=next(objects),
                dataobj=draw(st.none() | u32),
                columns=columns,
                partitions=tuple(next(objects) for _ in range(draw(st.integers(0, 2)))),
                cluster_columns=draw(st.integers(0, 3)),
                key_kind=kind,
                key=tuple(key),
                refusal=draw(st.none() | st.text(st.characters(codec="utf-8"), max_size=20)),
            )
        )
    database = Database(
        name=draw(names),
        con_id=draw(u16),
        con_name=draw(st.none() | names),
        dbid=draw(st.none() | u32),
        resetlogs=tuple(draw(st.lists(u32, max_size=3))),
        activation=draw(st.none() | u32),
        big_endian=draw(st.none() | st.booleans()),
        charset=draw(names),
        ncharset=draw(names),
        timezone=draw(names),
    )
    return Snapshot(draw(st.integers(0, MAX_SCN)), database, tuple(tables))


@given(snapshots())
def test_what_is_written_reads_back_equal(snapshot: Snapshot) -> None:
    document = orjson.loads(dump_snapshot(snapshot))

    assert parse_snapshot(document, "memory") == snapshot


def test_the_real_dictionary_survives_our_format(real_snapshot: Snapshot, tmp_path: Path) -> None:
    path = str(tmp_path / "dictionary.json")
    write_snapshot(real_snapshot, path)

    assert load_snapshot(path) == real_snapshot


def test_columns_may_stand_in_any_order(shop: Snapshot) -> None:
    document = orjson.loads(dump_snapshot(shop))
    for table in document["tables"]:
        table["columns"].reverse()

    assert parse_snapshot(document, "memory") == shop


def test_writing_replaces_a_file_whole_and_leaves_nothing_beside_it(
    shop: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "dictionary.json"
    path.write_text("older")
    writes = recorded(monkeypatch)
    store_snapshot(shop, path)

    assert writes.keep(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_snapshot(str(path)) == shop
    assert [path.name for path in tmp_path.iterdir()] == ["dictionary.json"]


def test_a_directory_that_is_not_there_cannot_be_written_to(shop: Snapshot, tmp_path: Path) -> None:
    with pytest.raises(OlrPgError) as caught:
        write_snapshot(shop, str(tmp_path / "missing" / "dictionary.json"))

    assert caught.value.code == 3007


def test_a_failed_replacement_leaves_nothing_behind(shop: Snapshot, tmp_path: Path) -> None:
    (tmp_path / "dictionary.json").mkdir()
    with pytest.raises(OlrPgError) as caught:
        write_snapshot(shop, str(tmp_path / "dictionary.json"))

    assert caught.value.code == 3007
    assert [path.name for path in tmp_path.iterdir()] == ["dictionary.json"]


# --- errors ---


@pytest.fixture
def document(shop: Snapshot) -> dict[str, Any]:
    loaded: dict[str, Any] = orjson.loads(dump_snapshot(shop))
    return loaded


def error_of(document: dict[str, Any]) -> OlrPgError:
    with pytest.raises(OlrPgError) as caught:
        parse_snapshot(document, "d.json")
    assert caught.value.where["file"] == "d.json"
    return caught.value


def test_a_missing_key_is_named(document: dict[str, Any]) -> None:
    del document["tables"][1]["columns"][0]["type_code"]
    error = error_of(document)

    assert error.code == 3004
    assert error.where["key"] == "tables[1].columns[0].type_code"
    assert error.detail == "tables[1].columns[0].type_code: the key is missing"


def test_an_unknown_key_is_named(document: dict[str, Any]) -> None:
    document["database"]["charzet"] = "WE8ISO8859P1"
    error = error_of(document)

    assert (error.code, error.where["key"]) == (3004, "database.charzet")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("12", 'valid integer, found "12"'),
        (12.5, "valid integer, found 12.5"),
        (True, "valid integer, found true"),
        (None, "valid integer, found null"),
        (-1, "greater than or equal to 0, found -1"),
        (1 << 63, "less than or equal to 9223372036854775807"),
        ([1, 2], "found a list of 2 elements"),
        ({"a": 1}, "found an object with the keys a"),
        ("x" * 100, "x…"),
    ],
)
def test_a_wrong_value_says_what_was_expected_and_found(
    document: dict[str, Any], value: object, expected: str
) -> None:
    document["scn"] = value
    error = error_of(document)

    assert (error.code, error.where["key"]) == (3004, "scn")
    assert expected in error.detail


@pytest.mark.parametrize("name", ["", 'a"b', "a\0b", "ä" * 128])
def test_names_that_cannot_be_are_refused(document: dict[str, Any], name: str) -> None:
    document["tables"][0]["owner"] = name
    error = error_of(document)

    assert (error.code, error.where["key"]) == (3004, "tables[0].owner")


def test_many_faults_are_counted(document: dict[str, Any]) -> None:
    for table in document["tables"]:
        del table["name"]
    error = error_of(document)

    assert error.detail.count("the key is missing") == 3
    assert error.detail.endswith("and 2 more")


def test_another_version_of_the_format_is_refused(document: dict[str, Any]) -> None:
    document["format"] = "olr-pg-dictionary/2"
    error = error_of(document)

    assert error.code == 3003
    assert "'olr-pg-dictionary/1'" in error.detail
    assert "'olr-pg-dictionary/2'" in error.detail


@pytest.mark.parametrize(
    ("segcols", "fault"),
    [((1, 3), "SEGCOL# 2 is missing"), ((1, 1), "SEGCOL# 1 appears twice")],
)
def test_stored_columns_must_be_numbered_without_holes(
    document: dict[str, Any], segcols: tuple[int, int], fault: str
) -> None:
    for column, segcol in zip(document["tables"][0]["columns"], segcols, strict=True):
        column["segcol"] = segcol
    error = error_of(document)

    assert (error.code, error.where["key"]) == (3004, "tables[0].columns")
    assert error.detail == f"APP.ORDERS: {fault}"


def test_a_table_needs_columns(document: dict[str, Any]) -> None:
    document["tables"][0]["columns"] = []
    document["tables"][0].pop("key")

    assert error_of(document).detail == "APP.ORDERS: it has no columns"


@pytest.mark.parametrize(
    ("attribute", "value", "fault"),
    [("intcol", 1, "INTCOL# 1 appears twice"), ("name", "ID", "column ID appears twice")],
)
def test_columns_are_told_apart(
    document: dict[str, Any], attribute: str, value: object, fault: str
) -> None:
    document["tables"][0]["columns"][1][attribute] = value

    assert error_of(document).detail == f"APP.ORDERS: {fault}"


def test_a_refused_table_may_be_incomplete(document: dict[str, Any], shop: Snapshot) -> None:
    document["tables"][3]["columns"] = []
    document["tables"][3].pop("key")
    lookup = replace(shop.tables[3], columns=(), key=(), key_kind=KeyKind.NONE)

    assert parse_snapshot(document, "memory").tables[3] == lookup


@pytest.mark.parametrize("columns", [["ID", "ID"], ["ID", "WRONG"]])
def test_a_key_names_columns_of_its_table(document: dict[str, Any], columns: list[str]) -> None:
    document["tables"][2]["key"]["columns"] = columns
    error = error_of(document)

    assert (error.code, error.where["key"]) == (3004, "tables[2].key.columns[1]")


def test_two_tables_of_one_name_contradict(document: dict[str, Any]) -> None:
    document["tables"][1]["name"] = "ORDERS"
    error = error_of(document)

    assert error.code == 3005
    assert "the table APP.ORDERS appears twice" in error.detail


def test_an_object_number_belongs_to_one_table(document: dict[str, Any]) -> None:
    document["tables"][1]["partitions"] = [103]
    error = error_of(document)

    assert error.code == 3005
    assert error.detail == "object number 103 belongs to APP.ORDER_LINES and to App.Größe"


# --- documentation ---


def test_the_example_of_the_page_is_the_real_table(real_snapshot: Snapshot) -> None:
    page = Path(__file__).parents[2] / "docs" / "dictionary-snapshot.md"
    example = page.read_text().split("```json\n")[1].split("```")[0]
    snapshot = parse_snapshot(orjson.loads(example), str(page))

    assert snapshot.database == real_snapshot.database
    assert snapshot.tables == (real_snapshot.find("OLR_TEST", "TEST_CDC"),)


def test_the_example_of_the_module_is_the_same(real_snapshot: Snapshot) -> None:
    assert snapshot_file.__doc__ is not None
    example = snapshot_file.__doc__.split("::\n")[1].split("\nThe keys")[0]
    snapshot = parse_snapshot(orjson.loads(example), "docstring")

    assert snapshot.tables == (real_snapshot.find("OLR_TEST", "TEST_CDC"),)


NOT_IN_A_FILE = {"key_kind", "raw_xml", "con_id", "container", "containers"}
"""Derived from others; set for the targets that want it, or where several files are joined."""


@pytest.mark.parametrize("model", [Column, Table, Database])
def test_every_attribute_is_on_the_page(model: type[Column | Table | Database]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "dictionary-snapshot.md").read_text()

    for field in fields(model):
        assert f"`{field.name}`" in page or field.name in NOT_IN_A_FILE


class Inner(BaseModel, extra="forbid"):
    name: str


class Outer(BaseModel):
    tables: list[Inner]


def test_a_document_is_read_with_or_without_a_byte_order_mark() -> None:
    assert parse_object(b"\xef\xbb\xbf" + b'{"a": 1}', "d.json") == {"a": 1}
    assert parse_object(b'{"a": 1}', "d.json") == {"a": 1}


@pytest.mark.parametrize(
    ("data", "code"), [(b'{"a":\n1,}', Code.DICTIONARY_NOT_JSON), (b"[1]", Code.NOT_A_DICTIONARY)]
)
def test_what_is_no_object_is_refused(data: bytes, code: Code) -> None:
    with pytest.raises(OlrPgError) as caught:
        parse_object(data, "d.json")
    assert caught.value.code == code


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    for path in (str(tmp_path / "none.json"), "a\0b"):
        with pytest.raises(OlrPgError) as caught:
            read_bytes(path)
        assert caught.value.code == Code.DICTIONARY_UNREADABLE


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        ({}, "tables[0].name: the key is missing"),
        ({"name": "x", "nmae": 1}, "tables[0].nmae: there is no such key"),
        ({"name": 5}, "tables[0].name: should be a valid string, found 5"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(inner: dict[str, object], said: str) -> None:
    with pytest.raises(OlrPgError) as caught:
        validate(Outer, {"tables": [inner]}, "d.json")
    assert caught.value.code == Code.DICTIONARY_INVALID
    assert said in str(caught.value)


def test_a_path_is_written_as_one_reads_it() -> None:
    assert json_path(("tables", 0, "columns", 2, "name")) == "tables[0].columns[2].name"
    assert json_path(()) == "(top level)"


def test_it_is_beside_the_dictionary() -> None:
    assert inventory_path(Path("a/dictionary.json")) == Path("a/dictionary.inventory.json")


def test_what_was_written_is_read(tmp_path: Path) -> None:
    found = Inventory(owners=("S",), tables=(InventoryTable(owner="S", name="T", rows=3),))
    write_inventory(found, tmp_path / "x.json")
    assert read_inventory_file(tmp_path / "x.json") == found


@pytest.mark.parametrize("text", ['{"format": "olr-pg-inventory/2"}', '{"nothing": 1}'])
def test_another_file_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(OlrPgError) as caught:
        read_inventory_file(tmp_path / "x.json")
    assert caught.value.code == Code.DICTIONARY_INVALID


def column(name: str, segcol: int, intcol: int) -> Column:
    return Column(name, segcol, intcol, intcol, 2, 22)


GOOD = (column("A", 1, 1), column("V", 0, 2), column("B", 2, 3))


def test_columns_are_kept_in_stored_order() -> None:
    assert [c.name for c in sort_columns(reversed(GOOD))] == ["V", "A", "B"]
    assert column_fault(GOOD) is None


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ((), "no columns"),
        ((column("A", 1, 1), column("B", 3, 2)), "SEGCOL# 2 is missing"),
        ((column("A", 1, 1), column("B", 1, 2)), "SEGCOL# 1 appears twice"),
        ((column("A", 1, 1), column("B", 2, 1)), "INTCOL# 1 appears twice"),
        ((column("A", 1, 1), column("A", 2, 2)), "column A appears twice"),
    ],
)
def test_a_fault_is_named(columns: tuple[Column, ...], fault: str) -> None:
    assert fault in (column_fault(columns) or "")


@pytest.mark.parametrize(
    "other",
    [
        Table("S", "T", 9, 9, GOOD),
        Table("S", "U", 7, 9, GOOD),
        Table("S", "U", 8, 9, GOOD, partitions=(7,)),
    ],
)
def test_a_name_or_number_of_two_tables_is_refused(other: Table) -> None:
    tables = (Table("S", "T", 7, 7, GOOD), other)
    with pytest.raises(OlrPgError) as caught:
        check_unique_tables(Snapshot(1, Database("D"), tables), "d.json")
    assert caught.value.code == Code.DICTIONARY_CONTRADICTS_ITSELF


def test_different_tables_pass() -> None:
    tables = (Table("S", "T", 7, 7, GOOD), Table("S", "t", 8, 8, GOOD))
    check_unique_tables(Snapshot(1, Database("D"), tables), "d.json")
