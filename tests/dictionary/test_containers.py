"""Dictionaries of several containers as one: names, alternatives of names, what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from olr_pg.config.table_patterns import configured_table_name, parse_pattern, table_list_query
from olr_pg.dictionary.containers import ContainerNames, join_containers, unqualified
from olr_pg.dictionary.model import Column, Database, Snapshot, Table
from olr_pg.dictionary.selection import select_tables, user_tables
from olr_pg.dictionary.structure import ForeignKey, Structure
from olr_pg.dictionary.table_list import query_tables
from olr_pg.errors import Code, OlrPgError

ID = Column("ID", 1, 1, 1, 2, 22)


def table(name: str, obj: int) -> Table:
    owner, _, own = name.partition(".")
    return Table(owner, own, obj, obj, (ID,))


def pdb(con_id: int, *names: str, **facts: Any) -> Snapshot:
    """A container PDBn whose tables have the object numbers 100, 101, …"""
    name = f"PDB{con_id - 2}"
    database = Database("CDB", **{"con_id": con_id, "con_name": name, "dbid": con_id, **facts})
    tables = tuple(table(one, 100 + number) for number, one in enumerate(names))
    return Snapshot(1000 + con_id, database, tables)


def joined() -> Snapshot:
    return join_containers(
        [
            pdb(3, "SHOP.ORDERS", "SHOP.TMP1", "HR.EMP", "SYS.OBJ$"),
            pdb(4, "SHOP.ORDERS", "SHOP.TMP2", "SYS.OBJ$"),
        ]
    )


def test_a_single_one_stays_as_it_is() -> None:
    alone = pdb(3, "SHOP.ORDERS")
    assert join_containers([alone]) is alone
    assert alone.containers == (alone,)
    assert alone.tables[0].object_key == 100


def test_names_have_the_container_where_two_have_the_schema() -> None:
    both = joined()
    assert [one.full_name for one in user_tables(both).tables] == [
        "PDB1.SHOP.ORDERS", "PDB1.SHOP.TMP1", "HR.EMP", "PDB2.SHOP.ORDERS", "PDB2.SHOP.TMP2",
    ]  # fmt: skip
    assert len({one.object_key for one in both.tables}) == len(both.tables)
    assert both.scn == 1003
    assert both.database.containers == ("PDB1", "PDB2")
    first, second = both.containers
    assert (first.scn, second.scn) == (1003, 1004)
    assert {one.source_owner for one in both.tables} == {"SHOP", "HR", "SYS"}


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        (["SHOP.ORDERS"], ["PDB1.SHOP.ORDERS", "PDB2.SHOP.ORDERS"]),
        (["pdb2.shop.orders"], ["PDB2.SHOP.ORDERS"]),
        (["SHOP.TMP1"], ["PDB1.SHOP.TMP1"]),
        (["PDB1.HR.EMP", "HR.EMP"], ["HR.EMP"]),
    ],
)
def test_a_name_without_container_is_of_all(listed: list[str], found: list[str]) -> None:
    tables = select_tables(joined(), listed)
    assert [one.full_name for one in tables] == found
    query = table_list_query([configured_table_name(one) for one in listed])
    assert query_tables(joined(), query) == tables


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        (["SHOP.*"], {"PDB1.SHOP.ORDERS", "PDB1.SHOP.TMP1", "PDB2.SHOP.ORDERS", "PDB2.SHOP.TMP2"}),
        (["PDB2.SHOP.*"], {"PDB2.SHOP.ORDERS", "PDB2.SHOP.TMP2"}),
        (["*.*", "!SHOP.TMP*"], {"PDB1.SHOP.ORDERS", "PDB2.SHOP.ORDERS", "HR.EMP"}),
        (["SHOP.*", "!PDB2.SHOP.TMP?"], {"PDB1.SHOP.ORDERS", "PDB1.SHOP.TMP1", "PDB2.SHOP.ORDERS"}),
        (["PDB[12].*.ORD*"], {"PDB1.SHOP.ORDERS", "PDB2.SHOP.ORDERS"}),
        (["PDB1.HR.*"], {"HR.EMP"}),
    ],
)
def test_a_pattern_fits_with_and_without_container(listed: list[str], found: set[str]) -> None:
    patterns = [one for text in listed if (one := parse_pattern(text)) is not None]
    assert len(patterns) == len(listed)
    tables = query_tables(joined(), table_list_query(patterns))
    assert {one.full_name for one in tables} == found


def test_a_query_of_a_user_finds_owners_with_and_without_container() -> None:
    for condition in ("OWNER = 'SHOP'", "OWNER IN ('SHOP')", "OWNER LIKE 'SH%P'"):
        query = f"SELECT OWNER, TABLE_NAME FROM USER_TABLES WHERE {condition}"
        assert len(query_tables(joined(), query)) == 4
    query = "SELECT OWNER, TABLE_NAME FROM USER_TABLES WHERE OWNER = 'PDB1.SHOP'"
    assert len(query_tables(joined(), query)) == 2


def test_structure_refers_to_the_tables_of_its_container() -> None:
    key = ForeignKey(
        owner="SHOP", table="TMP1", name="FK", columns=("ID",),
        parent_owner="HR", parent="EMP", parent_columns=("ID",),
    )  # fmt: skip
    one = replace(pdb(3, "SHOP.TMP1", "HR.EMP"), structure=Structure(foreign_keys=(key,)))
    found = join_containers([one, pdb(4, "SHOP.X")]).structure.foreign_keys[0]
    assert (found.full_name, found.parent_name) == ("PDB1.SHOP.TMP1", "HR.EMP")


def test_a_table_is_called_as_its_container_knows_it() -> None:
    names = ContainerNames.of(joined().containers[1])
    (order, *_) = joined().containers[1].tables
    assert unqualified(order) == table("SHOP.ORDERS", 100)
    assert names.qualify(unqualified(order)) == order
    assert names.owner("HR") == "HR"


def test_dictionaries_from_before_and_after_a_switchover_go_together() -> None:
    found = join_containers([pdb(3, "A.B", activation=1), pdb(4, "B.C", activation=5)])
    assert [one.full_name for one in found.tables] == ["A.B", "B.C"]


@pytest.mark.parametrize(
    ("other", "code", "said"),
    [
        (
            pdb(3, "A.B"),
            Code.CONTAINERS_NOT_TOGETHER,
            "two dictionaries have the same container: 3",
        ),
        (pdb(0, "A.B"), Code.CONTAINERS_NOT_TOGETHER, "to no container"),
        (pdb(4, "A.B", con_name="PDB1"), Code.CONTAINERS_NOT_TOGETHER, "the same name: PDB1"),
        (pdb(4, "A.B", big_endian=True), Code.CONTAINERS_NOT_TOGETHER, "big_endian"),
        (pdb(4, "A.B", charset="WE8ISO8859P1"), Code.CONTAINERS_DIFFER, "charset"),
        (pdb(4, "A.B", timezone="+02:00"), Code.CONTAINERS_DIFFER, "timezone"),
    ],
)
def test_what_does_not_go_together_is_refused(other: Snapshot, code: Code, said: str) -> None:
    with pytest.raises(OlrPgError, match=said) as refused:
        join_containers([pdb(3, "A.B"), other])
    assert refused.value.code == code
